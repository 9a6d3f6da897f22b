//! Files of a project that a command may change and that its result names: their programs ask the person, or only run
//! what the person starts by name.

use crate::files::{Limit, WorkspaceFiles};
use crate::sandbox::access::project::{self, PACKAGE, changed_package_scripts};
use crate::sandbox::access::view::{Level, Links};
use crate::sandbox::git::check::{Snapshot, ViewByPath};
use crate::sandbox::git::search::Found;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The most working trees that are compared, entries of a directory, and bytes of a file.
const TREES: usize = 64;
const ENTRIES: usize = 500;
const BYTES: u64 = 1024 * 1024;
/// The most names in a sentence: more than there are of one working tree.
const NAMES: usize = 100;

/// A file or directory before the command.
#[derive(Debug)]
pub struct Shown {
    path: PathBuf,
    /// The program that obeys it, as a person reads it.
    program: &'static str,
    before: Option<blake3::Hash>,
    /// The content of a `package.json`.
    package: Option<Vec<u8>>,
}

impl Snapshot {
    /// Records these files in the scope's directories and the working trees found.
    pub fn keep_shown(&mut self, view: &ViewByPath, found: &Found) {
        let own = view
            .asked
            .grants
            .iter()
            .filter(|grant| grant.level == Level::Write && grant.links == Links::Refused);
        let dirs: BTreeSet<&PathBuf> =
            own.map(|grant| &grant.path).chain(&found.projects).take(TREES).collect();
        let files = dirs.into_iter().flat_map(|dir| {
            let asked = project::ASKED.iter().map(|(name, program)| (dir.join(name), *program));
            asked.chain([(dir.join(PACKAGE), "")])
        });
        let open = files.filter(|(path, _)| view.opens(path));
        self.shown = open.map(|(path, program)| Shown::of(path, program)).collect();
    }

    /// Says which of them changed.
    pub fn say_shown(&self) -> Vec<String> {
        let now = |shown: &&Shown| {
            hash(&shown.path).is_some_and(|now| shown.before.as_ref() != Some(&now))
        };
        let (mut said, mut names) = (Vec::new(), Vec::new());
        for shown in self.shown.iter().filter(now) {
            match shown.program {
                "" => said.extend(changed_package_scripts(
                    &shown.path,
                    shown.package.as_deref(),
                    &read(&shown.path).unwrap_or_default(),
                )),
                program => names.push(format!("{} ({program})", shown.path.display())),
            }
        }
        let more = names.len().saturating_sub(NAMES);
        names.truncate(NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        said.extend((!names.is_empty()).then(|| {
            format!(
                "the command changed {}{more}: these programs read it once you trust it there, so look at it before you do",
                names.join(", ")
            )
        }));
        said
    }
}

impl Shown {
    fn of(path: PathBuf, program: &'static str) -> Self {
        let before = hash(&path);
        let package = program.is_empty().then(|| read(&path)).flatten();
        Self { path, program, before, package }
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let files = WorkspaceFiles::of(path.parent()?);
    files.read(path, Limit::whole(BYTES)).ok().map(|found| found.bytes)
}

/// A hash of what is at a path; `None` if nothing is. Of a large file, and of files in a directory, time and size count.
fn hash(path: &Path) -> Option<blake3::Hash> {
    let meta = fs::symlink_metadata(path).ok()?;
    let mut hasher = blake3::Hasher::new();
    let facts = |meta: &fs::Metadata| {
        format!("{} {} {} {}", meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec())
    };
    if meta.is_dir() {
        let mut open = vec![path.to_owned()];
        let mut left = ENTRIES;
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten().take(left) {
                left -= 1;
                let Ok(meta) = entry.metadata() else { continue };
                hasher.update(entry.path().as_os_str().as_encoded_bytes());
                if meta.is_dir() {
                    open.push(entry.path());
                } else {
                    hasher.update(facts(&meta).as_bytes());
                }
            }
        }
    } else if let Some(bytes) = read(path) {
        hasher.update(&bytes);
    } else {
        hasher.update(facts(&meta).as_bytes());
    }
    Some(hasher.finalize())
}
