//! The steps of a rebase and the paths of a bisect, which git goes on with when a person says so. A
//! command may go on with them, too; it may not add programs.

use crate::sandbox::after::{Before, Known, ViewByPath, known_at, remove, restore};
use crate::sandbox::guard::Found;
use std::path::{Path, PathBuf};

/// The directory of a rebase's state in a repository.
const REBASE: &str = "rebase-merge";
const TODO: &str = "git-rebase-todo";
/// The quoted paths of a bisect: versions of git that are shell scripts evaluate them.
const BISECT: &str = "BISECT_NAMES";

/// A file from which git continues a rebase or a bisect.
#[derive(Debug)]
pub struct Step {
    path: PathBuf,
    /// `None` if it did not exist.
    before: Option<Known>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Rebase,
    Bisect,
}

impl Before {
    /// Remembers the steps of each repository.
    pub fn keep_steps(&mut self, view: &ViewByPath, found: &Found) {
        for dir in found.dirs.keys() {
            let rebase = dir.join(REBASE);
            let steps = [(rebase.join(TODO), Kind::Rebase), (dir.join(BISECT), Kind::Bisect)];
            let open = steps.into_iter().filter(|(path, _)| view.opens(path));
            self.steps.extend(open.map(|(path, kind)| Step::of(path, kind)));
        }
    }
}

impl Step {
    fn of(path: PathBuf, kind: Kind) -> Self {
        Self { before: known_at(&path), path, kind }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Undoes added programs. A missing file means that the rebase or bisect has ended.
    pub fn mend(&self) -> Option<String> {
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
        match (self.kind, &self.before) {
            (Kind::Rebase, Some(Known::File { bytes: before, .. })) => {
                let mut known = programs(before);
                programs(bytes).iter().all(|new| {
                    let at = known.iter().position(|old| old == new);
                    at.map(|at| known.swap_remove(at)).is_some()
                })
            }
            (Kind::Rebase, _) => true,
            (Kind::Bisect, before) => are_quoted(bytes) || before.as_ref() == Some(now),
        }
    }

    /// A sentence that says how many programs an unfinished rebase of this command will run.
    fn said(&self, now: &Known) -> Option<String> {
        let Known::File { bytes, .. } = now else { return None };
        let programs = match self.kind {
            Kind::Rebase => programs(bytes).len(),
            Kind::Bisect => 0,
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
