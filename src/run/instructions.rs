//! Files that tell agents how to work: those of the person, those of the workspace down to the working
//! directory, and those of directories below when a call first touches them.

use crate::files::{self, FileError, Found, Limit, Miss, WorkspaceFiles, size};
use crate::protocol::{FileMark, InstructionFile};
use crate::scope::Scope;
use crate::text::{Decoded, SafeText, without_cut_character};
use crate::tools::file_kind;
use crate::tools::text_limit::hash;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files of a directory that tell agents how to work there; the first of each directory counts.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// The file in the configuration directory that is for every Pod of the person.
pub const OF_PERSON: &str = NAMES[0];
/// The beginning of the sentence about a file that cannot be read.
pub(crate) const NOT_READ: &str = "instructions are not read";
/// What the path of a file follows in the prompt.
const SECTION: &str = "\n# Instructions from ";
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
    let (files, diagnostics) = of_prompt(sources);
    (files.iter().map(|(path, found)| section(path, found)).collect(), diagnostics)
}

/// A file as it stands in the prompt.
fn section(path: &Path, found: &Found) -> String {
    let body = decoded(&found.bytes, found.size);
    format!("{SECTION}{}\n\n{body}\n", path.display())
}

/// The beginning of a file of this size as text.
fn decoded(bytes: &[u8], size: u64) -> Cow<'_, str> {
    let is_cut = size > bytes.len() as u64;
    Decoded::of(if is_cut { without_cut_character(bytes) } else { bytes }).text
}

fn of_prompt(sources: &Sources<'_>) -> (Vec<(PathBuf, Found)>, Vec<String>) {
    let (mut read_files, mut diagnostics) = (Vec::new(), Vec::new());
    let mut take = |path: &Path, read: Result<Found, FileError>| match read
        .and_then(|found| as_text(path, found))
    {
        Ok(found) => {
            diagnostics.extend(cut_off(path, &found));
            read_files.push((path.to_owned(), found));
            true
        }
        Err(FileError::Missing(..)) => false,
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
    (read_files, diagnostics)
}

/// The files of the prompt, and those that calls brought, as they are now. `read` is the last text that the model got
/// of the former, and the marks of what it got of the latter. Blocking.
pub(crate) fn listed(
    sources: &Sources<'_>,
    read: Option<(&str, &BTreeMap<PathBuf, String>)>,
) -> Vec<InstructionFile> {
    let (of_prompt, _) = of_prompt(sources);
    let is_read = |path: &Path, found: &Found| {
        read.is_none_or(|(text, _)| holds(text, section(path, found).trim()))
    };
    let listed = |path: &Path, is_read: bool| {
        let written = std::fs::metadata(path).and_then(|meta| meta.modified());
        let age = written.ok().and_then(|written| written.elapsed().ok());
        InstructionFile {
            path: path.into(),
            age_s: age.map(|age| age.as_secs()),
            changed: !is_read,
        }
    };
    let mut files: Vec<InstructionFile> =
        of_prompt.iter().map(|(path, found)| listed(path, is_read(path, found))).collect();
    let (workspace, cwd) = (real(sources.workspace), real(sources.cwd));
    let inner = Sources { workspace: &workspace, cwd: &cwd, ..*sources };
    for (path, mark) in read.into_iter().flat_map(|(_, marks)| marks) {
        let is_named = path.file_name().is_some_and(|name| NAMES.iter().any(|own| name == *own));
        let is_below =
            path.parent().is_some_and(|dir| dir.starts_with(&workspace) && !cwd.starts_with(dir));
        if !is_named || !is_below {
            continue;
        }
        if let Ok(found) = inner.files().read_obeyed(path, Limit::head(MAX)) {
            files.push(listed(path, is_mark_of(mark, &found)));
        }
    }
    files
}

/// Whether a text holds the whole section of a file: the text or the next section follows.
fn holds(text: &str, section: &str) -> bool {
    text.find(section).is_some_and(|at| {
        let behind = text[at + section.len()..].trim_start();
        behind.is_empty() || behind.starts_with(SECTION.trim_start())
    })
}

fn real(path: &Path) -> PathBuf {
    files::canonical(path).unwrap_or_else(|_| path.to_owned())
}

/// The part of a file that the result of a call shows.
fn shown(found: &Found) -> &[u8] {
    let most = usize::try_from(MAX_IN_RESULT).unwrap_or(usize::MAX);
    &found.bytes[..found.bytes.len().min(most)]
}

/// Whether the model got this content: as the result of a call showed it, or by a tool.
fn is_mark_of(mark: &str, found: &Found) -> bool {
    mark == hash(shown(found)) || mark == hash(&found.bytes)
}

/// A text each of whose lines begins with a mark, so that none looks like the end of it, or like words of another.
fn quoted(text: &str) -> String {
    let shown = |line: &str| line.replace(|c: char| c.is_control() && c != '\t', "");
    text.trim_end().lines().map(|line| format!("> {}\n", shown(line))).collect()
}

/// The files of directories between the workspace and a touched path that are neither in the prompt nor known with their
/// content, as text for the result of the call, and their marks. Blocking.
pub(crate) fn below(
    sources: &Sources<'_>,
    touched: &Path,
    known: &BTreeMap<PathBuf, String>,
) -> (String, Vec<FileMark>) {
    let (mut text, mut marks) = (String::new(), Vec::new());
    let (workspace, cwd) = (real(sources.workspace), real(sources.cwd));
    let inner = Sources { workspace: &workspace, cwd: &cwd, ..*sources };
    let directory = if touched.is_dir() { Some(touched) } else { touched.parent() };
    let Some(directory) = directory.filter(|directory| directory.starts_with(&workspace)) else {
        return (text, marks);
    };
    let new = between(&workspace, directory).into_iter().filter(|dir| !cwd.starts_with(dir));
    for dir in new {
        for path in NAMES.map(|name| dir.join(name)) {
            // What cannot be read is reported where it is in the prompt.
            let Ok(found) = inner.files().read_obeyed(&path, Limit::head(MAX)) else {
                continue;
            };
            let mark = known.get(&path);
            if mark.is_some_and(|mark| is_mark_of(mark, &found)) {
                break;
            }
            let name = SafeText::spelled(path.display().to_string());
            let body = quoted(&decoded(shown(&found), found.size));
            let cut = if found.size > MAX_IN_RESULT { "[cut: Read shows the rest]\n" } else { "" };
            let changed = if mark.is_some() { ", which changed" } else { "" };
            text.push_str(&format!(
                "\n[Instructions from {name}{changed}: words of a file, for work in its directory; each line begins \
                 with >]\n{body}{cut}[End of {name}]\n"
            ));
            let hash = hash(shown(&found));
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

/// A file that holds text; any other one is refused with its kind.
fn as_text(path: &Path, found: Found) -> Result<Found, FileError> {
    match file_kind::not_text(path, &found.bytes, found.size) {
        Some(why) => Err(FileError::Refused(why)),
        None => Ok(found),
    }
}

/// Reads a file of the person, wherever links lead it.
fn read_of_person(path: &Path) -> Result<Found, FileError> {
    files::retry(path, || {
        let found = files::resolve(path)?;
        let parent = found.path.parent().filter(|_| found.exists);
        let missing = || Miss::Error(FileError::Missing(path.to_owned(), String::new()));
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
        let mut known = BTreeMap::new();
        let (text, marks) = below(&sources, &root.join("w/sub/deep/a.rs"), &known);
        let (outer, inner) = (root.join("w/sub/AGENTS.md"), root.join("w/sub/deep/CLAUDE.md"));
        assert!(text.find("sub rule").unwrap() < text.find("deep rule").unwrap(), "{text}");
        assert!(!text.contains("top rule") && text.contains("words of a file"), "{text}");
        assert_eq!(marks.iter().map(|mark| &mark.path).collect::<Vec<_>>(), [&outer, &inner]);
        known.insert(outer.clone(), marks[0].hash.clone());
        let (text, _) = below(&sources, &root.join("w/sub/deep"), &known);
        assert!(!text.contains("sub rule") && text.contains("deep rule"), "{text}");
        known.insert(inner, marks[1].hash.clone());
        assert_eq!(below(&sources, &root.join("w/sub/deep/a.rs"), &known).0, "");
        std::fs::write(&outer, "another rule").unwrap();
        let (text, marks) = below(&sources, &root.join("w/sub/deep/a.rs"), &known);
        assert!(text.contains("> another rule") && !text.contains("deep rule"), "{text}");
        assert!(text.contains("AGENTS.md, which changed: words"), "{text}");
        known.insert(outer, marks[0].hash.clone());
        assert_eq!(below(&sources, &root.join("w/sub/deep/a.rs"), &known).0, "");
        assert_eq!(below(&sources, &root.join("else/a.rs"), &known).0, "");
    }

    #[test]
    fn a_long_file_below_is_shown_once_and_again_after_a_change_behind_what_is_shown() {
        let long = "line of a rule\n".repeat(2000);
        let (_dir, root) = files(&[("w/sub/AGENTS.md", &long), ("w/sub/a.rs", "x")]);
        let workspace = root.join("w");
        let reads = Scope::new(vec![Rule::new(&root, Permission::Read)]);
        let sources = Sources {
            person: &[],
            workspace: &workspace,
            cwd: &workspace,
            reads: &reads,
            secrets: &[],
        };
        let touched = root.join("w/sub/a.rs");
        let (text, marks) = below(&sources, &touched, &BTreeMap::new());
        assert!(text.contains("[cut: Read shows the rest]"), "{text}");
        let path = root.join("w/sub/AGENTS.md");
        let known = |hash: &str| BTreeMap::from([(path.clone(), hash.to_owned())]);
        assert_eq!(below(&sources, &touched, &known(&marks[0].hash)).0, "");
        let whole = known(&hash(long.as_bytes()));
        assert_eq!(below(&sources, &touched, &whole).0, "", "it was read whole");
        std::fs::write(&path, format!("{long}more\n")).unwrap();
        assert!(below(&sources, &touched, &whole).0.contains("which changed"));
    }

    #[test]
    fn each_file_is_listed_with_whether_the_model_read_it_as_it_is() {
        let (_dir, root) = files(&[
            ("w/AGENTS.md", "top rule\n"),
            ("w/a/AGENTS.md", "inner rule"),
            ("w/a/sub/AGENTS.md", "sub rule"),
            ("w/b.md", "no instructions"),
        ]);
        let (workspace, cwd) = (root.join("w"), root.join("w/a"));
        let reads = Scope::new(vec![Rule::new(&root, Permission::Read)]);
        let sources =
            Sources { person: &[], workspace: &workspace, cwd: &cwd, reads: &reads, secrets: &[] };
        let read = format!("You are.\n{}", in_prompt(&sources).0.trim_end());
        let marks = below(&sources, &cwd.join("sub"), &BTreeMap::new()).1;
        let mut marks: BTreeMap<_, _> =
            marks.into_iter().map(|mark| (mark.path, mark.hash)).collect();
        marks.insert(root.join("w/b.md"), "x".into());
        let changed = |read: Option<&str>| {
            let listed = listed(&sources, read.map(|read| (read, &marks)));
            assert!(listed.iter().all(|file| file.age_s.is_some()), "{listed:?}");
            let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
            listed.iter().map(|file| (name(&file.path), file.changed)).collect::<Vec<_>>()
        };
        let expected = |of: [bool; 3]| {
            let names = ["w/AGENTS.md", "w/a/AGENTS.md", "w/a/sub/AGENTS.md"];
            names.map(str::to_owned).into_iter().zip(of).collect::<Vec<_>>()
        };
        assert_eq!(changed(Some(&read)), expected([false; 3]));
        assert_eq!(changed(None), expected([false; 3])[..2], "it was told of nothing yet");
        std::fs::write(root.join("w/AGENTS.md"), "top\n").unwrap();
        std::fs::write(root.join("w/a/sub/AGENTS.md"), "another rule").unwrap();
        assert_eq!(changed(Some(&read)), expected([true, false, true]));
        std::fs::write(root.join("w/a/AGENTS.md"), "inner").unwrap();
        assert_eq!(changed(Some(&read)), expected([true; 3]), "a shorter file is another one");
    }
}
