//! Files of an unfinished rebase, cherry-pick, `git am` or bisect, with which git continues later. A command may
//! continue these, too, but may not add programs, or options with which git writes other files.

mod words;

use crate::sandbox::after::{Before, Known, ViewByPath, known_at, remove, restore};
use crate::sandbox::guard::Found;
use std::path::{Path, PathBuf};

/// The files in the directory of a repository or worktree.
const FILES: [(&str, Kind); 8] = [
    ("rebase-merge/git-rebase-todo", Kind::Todo),
    ("rebase-merge/strategy", Kind::Strategy),
    ("rebase-merge/strategy_opts", Kind::StrategyOptions),
    ("rebase-apply/strategy", Kind::Strategy),
    ("rebase-apply/strategy_opts", Kind::StrategyOptions),
    ("rebase-apply/apply-opt", Kind::ApplyOptions),
    ("sequencer/opts", Kind::Options),
    ("BISECT_NAMES", Kind::Bisect),
];

/// A file from which git continues.
#[derive(Debug)]
pub struct Step {
    path: PathBuf,
    /// `None` if it did not exist.
    before: Option<Known>,
    /// Its directory was a link before.
    was_linked: bool,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// The todo list of a rebase.
    Todo,
    /// The name of a merge strategy: git runs the program `git-merge-<name>`.
    Strategy,
    /// The options of a strategy. Some strategies of git pass them to `git read-tree`.
    StrategyOptions,
    /// The options of `git apply` that `git am` passes.
    ApplyOptions,
    /// The options of a cherry-pick or revert, in the format of a configuration.
    Options,
    /// The quoted paths of a bisect: versions of git that are shell scripts evaluate them.
    Bisect,
}

impl Before {
    /// Records these files of each repository.
    pub fn keep_steps(&mut self, view: &ViewByPath, found: &Found) {
        for dir in found.dirs.keys() {
            for (path, kind) in steps_in(dir).filter(|(path, _)| view.opens(path)) {
                let before = self.recorded.known_at(&path);
                if before.is_none() && path.symlink_metadata().is_ok() {
                    self.recorded.close(&path);
                } else {
                    let was_linked = linked_dir(&path).is_some();
                    self.steps.push(Step { path, before, was_linked, kind });
                }
            }
        }
    }

    /// Undoes programs that the command added; also in worktrees that it added.
    pub fn mend_steps(&self) -> Vec<String> {
        let fresh = self.new_worktrees().flat_map(|dir| steps_in(&dir));
        let fresh = fresh
            .filter_map(|(path, kind)| Step { path, before: None, was_linked: false, kind }.mend());
        self.steps.iter().filter_map(Step::mend).chain(fresh).collect()
    }
}

fn steps_in(dir: &Path) -> impl Iterator<Item = (PathBuf, Kind)> + use<> {
    FILES.map(|(file, kind)| (dir.join(file), kind)).into_iter()
}

/// The directory of a path, if it is a link.
fn linked_dir(path: &Path) -> Option<&Path> {
    path.parent().filter(|dir| dir.is_symlink())
}

impl Step {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Undoes added programs. A missing file means that git's work has ended, or has no such options.
    fn mend(&self) -> Option<String> {
        let is_new = self.before.is_none() && !self.was_linked;
        if let Some(dir) = linked_dir(&self.path).filter(|_| is_new) {
            return remove(dir);
        }
        let now = known_at(&self.path);
        self.path.symlink_metadata().ok()?;
        match &self.before {
            Some(before) => restore(&self.path, before, |now| self.is_well(now)),
            None => match now.filter(|now| self.is_well(now)) {
                Some(now) => self.said(&now),
                // Also removes files that are too large to be read.
                None => remove(&self.path),
            },
        }
    }

    fn is_well(&self, now: &Known) -> bool {
        let Known::File { bytes, .. } = now else { return self.before.as_ref() == Some(now) };
        if self.before.as_ref() == Some(now) {
            return true;
        }
        match (self.kind, &self.before) {
            (Kind::Todo, Some(Known::File { bytes: before, .. })) => {
                let mut known = programs(before);
                programs(bytes).iter().all(|new| {
                    let at = known.iter().position(|old| old == new);
                    at.map(|at| known.swap_remove(at)).is_some()
                })
            }
            (Kind::Todo, _) => true,
            (Kind::Strategy, _) => {
                words::is_own_strategy(bytes.strip_suffix(b"\n").unwrap_or(bytes))
            }
            (Kind::StrategyOptions, _) => words::are_strategy_options(bytes),
            (Kind::ApplyOptions, _) => words::are_apply_options(bytes),
            (Kind::Options, _) => words::are_options(bytes),
            (Kind::Bisect, _) => are_quoted(bytes),
        }
    }

    /// A sentence that says how many programs an unfinished rebase of this command will run.
    fn said(&self, now: &Known) -> Option<String> {
        let Known::File { bytes, .. } = now else { return None };
        let programs = match self.kind {
            Kind::Todo => programs(bytes).len(),
            _ => 0,
        };
        let shown = self.path.display();
        (programs > 0).then(|| {
            format!("`git rebase --continue` will run {programs} program(s) that {shown} names")
        })
    }
}

/// The lines of a todo list that run a program, as git recognises them.
fn programs(todo: &[u8]) -> Vec<&[u8]> {
    let lines = todo.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let word = |line: &[u8]| {
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        matches!(&line[..end], b"exec" | b"x")
    };
    lines.filter(|line| word(line)).collect()
}

/// Whether a text consists only of words in single quotes, as git writes them.
fn are_quoted(text: &[u8]) -> bool {
    let (mut quoted, mut bytes) = (false, text.iter());
    while let Some(byte) = bytes.next() {
        match byte {
            b'\'' => quoted = !quoted,
            _ if quoted => {}
            b' ' | b'\n' => {}
            b'\\' if matches!(bytes.next(), Some(b'\'' | b'!')) => {}
            _ => return false,
        }
    }
    !quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_run_a_program_are_recognised_as_git_does() {
        let todo = b"pick 1 exec x\n\t x\ttouch a\nexec make\r\n# exec no\nexecute\n x\nbreak\n";
        let found = programs(todo);
        assert_eq!(found, [b"x\ttouch a".as_slice(), b"exec make", b"x"]);
    }

    #[test]
    fn paths_of_a_bisect_are_words_in_quotes() {
        for text in ["", "\n", " '--' 'it'\\''s' 'f1' ''\\!'x'\n"] {
            assert!(are_quoted(text.as_bytes()), "{text}");
        }
        for text in ["x", "'a", "$(touch a)", " 'a' ; touch b", "'a'\\$(b)", "'a'`b`"] {
            assert!(!are_quoted(text.as_bytes()), "{text}");
        }
    }
}
