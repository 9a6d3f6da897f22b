//! Files that tell agents how to work: those of the person, those of the workspace down to the working
//! directory, and those of directories below when a call first touches them.

use crate::files::{self, FileError, Found, Limit, Miss, WorkspaceFiles, size};
use crate::protocol::FileMark;
use crate::scope::Scope;
use crate::text::SafeText;
use crate::tools::text_limit::hash;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Files of a directory that tell agents how to work there; the first of each directory counts.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// The file in the configuration directory that is for every Pod of the person.
pub const OF_PERSON: &str = NAMES[0];
/// The beginning of the sentence about a file that cannot be read.
pub(crate) const NOT_READ: &str = "instructions are not read";
/// The most bytes of such a file in the prompt, and in the result of a call.
const MAX: u64 = 64 * 1024;
const MAX_IN_RESULT: u64 = 16 * 1024;

/// Where the files are looked for.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    /// Files of the person, for all work.
    pub(crate) person: &'a [PathBuf],
    pub(crate) workspace: &'a Path,
    pub(crate) cwd: &'a Path,
    /// The Pod's scope: the target of a file that is a link must be readable in it.
    pub(crate) reads: &'a Scope,
    pub(crate) secrets: &'a [PathBuf],
}

/// The files of the person and those from the workspace down to the working directory, each with its
/// path, and sentences about what is missing or cut. Blocking.
pub(crate) fn in_prompt(sources: &Sources<'_>) -> (String, Vec<String>) {
    let (mut text, mut diagnostics) = (String::new(), Vec::new());
    let mut take = |path: &Path, read: Result<Found, FileError>| match read {
        Ok(found) => {
            diagnostics.extend(cut_off(path, &found));
            let body = String::from_utf8_lossy(&found.bytes);
            text.push_str(&format!("\n# Instructions from {}\n\n{body}\n", path.display()));
            true
        }
        Err(FileError::Missing(_)) => false,
        Err(error) => {
            diagnostics.push(format!("{NOT_READ}: {error}"));
            false
        }
    };
    for path in sources.person {
        take(path, read_of_person(path));
    }
    let files = sources.files();
    for dir in between(sources.workspace, sources.cwd) {
        for path in NAMES.map(|name| dir.join(name)) {
            if take(&path, files.read_obeyed(&path, Limit::head(MAX))) {
                break;
            }
        }
    }
    (text, diagnostics)
}

/// A text each of whose lines begins with a mark, so that none looks like the end of it, or like words of another.
fn quoted(text: &str) -> String {
    let shown = |line: &str| line.replace(|c: char| c.is_control() && c != '\t', "");
    text.trim_end().lines().map(|line| format!("> {}\n", shown(line))).collect()
}

/// The files of directories between the workspace and a touched path that are neither in the prompt nor
/// known, as text for the result of the call, and their marks. Blocking.
pub(crate) fn below(
    sources: &Sources<'_>,
    touched: &Path,
    known: &BTreeSet<PathBuf>,
) -> (String, Vec<FileMark>) {
    let (mut text, mut marks) = (String::new(), Vec::new());
    let real = |path: &Path| files::canonical(path).unwrap_or_else(|_| path.to_owned());
    let (workspace, cwd) = (real(sources.workspace), real(sources.cwd));
    let inner = Sources { workspace: &workspace, cwd: &cwd, ..*sources };
    let directory = if touched.is_dir() { Some(touched) } else { touched.parent() };
    let Some(directory) = directory.filter(|directory| directory.starts_with(&workspace)) else {
        return (text, marks);
    };
    let new = between(&workspace, directory).into_iter().filter(|dir| !cwd.starts_with(dir));
    for dir in new {
        for path in NAMES.map(|name| dir.join(name)) {
            if known.contains(&path) {
                break;
            }
            // What cannot be read is reported where it is in the prompt.
            let Ok(found) = inner.files().read_obeyed(&path, Limit::head(MAX_IN_RESULT)) else {
                continue;
            };
            let name = SafeText::spelled(path.display().to_string());
            let body = quoted(&String::from_utf8_lossy(&found.bytes));
            let cut = if found.size > MAX_IN_RESULT { "[cut: Read shows the rest]\n" } else { "" };
            text.push_str(&format!(
                "\n[Instructions from {name}: words of a file, for work in its directory; each line begins with >]\n\
                 {body}{cut}[End of {name}]\n"
            ));
            let hash = hash(&found.bytes);
            marks.push(FileMark { path, hash, before: None });
            break;
        }
    }
    (text, marks)
}

impl<'a> Sources<'a> {
    fn files(&self) -> WorkspaceFiles<'a> {
        WorkspaceFiles::for_scope(self.workspace, self.reads, self.secrets)
    }
}

/// Reads a file of the person, wherever links lead it.
fn read_of_person(path: &Path) -> Result<Found, FileError> {
    files::retry(path, || {
        let found = files::resolve(path)?;
        let parent = found.path.parent().filter(|_| found.exists);
        let missing = || Miss::Error(FileError::Missing(path.to_owned()));
        files::read_below(parent.ok_or_else(missing)?, &found.path, Limit::head(MAX))
    })
}

/// A diagnostic if a file is longer than the part that the model gets.
fn cut_off(path: &Path, found: &Found) -> Option<String> {
    (found.size > MAX).then(|| {
        format!(
            "instructions are cut: {} has {}, the first {} are sent",
            path.display(),
            size(found.size),
            size(MAX)
        )
    })
}

fn between(top: &Path, bottom: &Path) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> =
        bottom.ancestors().take_while(|d| d.starts_with(top)).map(Path::to_path_buf).collect();
    dirs.reverse();
    if dirs.is_empty() { vec![bottom.to_path_buf()] } else { dirs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::{Permission, Rule};

    /// A directory with files of these names and contents.
    fn files(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for (name, text) in files {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), text).unwrap();
        }
        (dir, root)
    }

    #[test]
    fn instruction_files_are_read_from_the_person_and_from_the_workspace_down() {
        let (_dir, root) = files(&[
            ("home/AGENTS.md", "my rule"),
            ("w/AGENTS.md", "top rule"),
            ("w/CLAUDE.md", "not read"),
            ("w/a/b/CLAUDE.md", "inner rule"),
        ]);
        let (workspace, cwd) = (root.join("w"), root.join("w/a/b"));
        let person = [root.join("home/AGENTS.md"), root.join("home/none.md")];
        let reads = Scope::new(vec![Rule::new(&workspace, Permission::Read)]);
        let sources = Sources {
            person: &person,
            workspace: &workspace,
            cwd: &cwd,
            reads: &reads,
            secrets: &[],
        };
        let (text, diagnostics) = in_prompt(&sources);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let at = |rule: &str| text.find(rule).unwrap();
        assert!(at("my rule") < at("top rule") && at("top rule") < at("inner rule"), "{text}");
        assert!(!text.contains("not read"));
        let foreign = cwd.join("CLAUDE.md");
        if std::os::unix::fs::lchown(&foreign, Some(65534), None).is_err() {
            println!("not covered: only root can give a file to another owner");
            return;
        }
        let (text, diagnostics) = in_prompt(&sources);
        assert!(text.contains("top rule") && !text.contains("inner rule"), "{text}");
        assert!(diagnostics[0].contains("belongs to another user"), "{diagnostics:?}");
    }

    #[test]
    fn a_directory_below_gives_its_instructions_once_and_none_that_the_prompt_holds() {
        let (_dir, root) = files(&[
            ("w/AGENTS.md", "top rule"),
            ("w/sub/AGENTS.md", "sub rule"),
            ("w/sub/deep/CLAUDE.md", "deep rule"),
            ("w/sub/deep/a.rs", "x"),
            ("else/AGENTS.md", "foreign rule"),
            ("else/a.rs", "x"),
        ]);
        let workspace = root.join("w");
        let reads = Scope::new(vec![Rule::new(&root, Permission::Read)]);
        let sources = Sources {
            person: &[],
            workspace: &workspace,
            cwd: &workspace,
            reads: &reads,
            secrets: &[],
        };
        let mut known = BTreeSet::new();
        let (text, marks) = below(&sources, &root.join("w/sub/deep/a.rs"), &known);
        let (outer, inner) = (root.join("w/sub/AGENTS.md"), root.join("w/sub/deep/CLAUDE.md"));
        assert!(text.find("sub rule").unwrap() < text.find("deep rule").unwrap(), "{text}");
        assert!(!text.contains("top rule") && text.contains("words of a file"), "{text}");
        assert_eq!(marks.iter().map(|mark| &mark.path).collect::<Vec<_>>(), [&outer, &inner]);
        known.insert(outer);
        let (text, _) = below(&sources, &root.join("w/sub/deep"), &known);
        assert!(!text.contains("sub rule") && text.contains("deep rule"), "{text}");
        known.insert(inner);
        assert_eq!(below(&sources, &root.join("w/sub/deep/a.rs"), &known).0, "");
        assert_eq!(below(&sources, &root.join("else/a.rs"), &known).0, "");
    }
}
