//! The gitlinks in the index of a repository. `git status`, `git diff` and `git add` in a working tree run git in the
//! repository at each gitlink, with the configuration and the hooks of that one.

use crate::files::{Limit, WorkspaceFiles};
use crate::sandbox::gitfile;
use crate::sandbox::index_file::{self, Entry};
use crate::sandbox::view::GIT;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The name of the index in a repository.
pub const INDEX: &str = "index";
/// The prefix of the file that a split index adds entries to.
const SHARED: &str = "sharedindex.";
/// The mode of an entry that names the commit of another repository.
const GITLINK: u32 = 0o160_000;

/// The `.git` of each gitlink in the index of a repository, in this working tree.
pub fn of(dir: &Path, top: &Path) -> Vec<PathBuf> {
    let id = id_length(dir);
    let (mut found, mut replaces) = (Vec::new(), false);
    let base = for_each(&dir.join(INDEX), id, |entry| {
        let is_link = entry.mode == GITLINK;
        // An entry without a path replaces one of the base.
        replaces |= is_link && entry.path.is_empty();
        found.extend((is_link && !entry.path.is_empty()).then(|| path_of(entry)));
    });
    let base = base.and_then(|base| base_of(dir, &base?));
    base.map(|base| {
        for_each(&base, id, |entry| {
            let replaced = || replaces && top.join(path_of(entry)).is_dir();
            found.extend((entry.mode == GITLINK || replaced()).then(|| path_of(entry)));
        })
    });
    found.into_iter().map(|path| top.join(path).join(GIT)).collect()
}

fn path_of(entry: &Entry<'_>) -> PathBuf {
    OsStr::from_bytes(entry.path).into()
}

/// Calls `on_entry` for each entry of one file and returns the id of its base; `None` if the file is missing, or git
/// does not write such a file.
fn for_each(
    index: &Path,
    id: usize,
    mut on_entry: impl FnMut(&Entry<'_>),
) -> Option<Option<Vec<u8>>> {
    let files = WorkspaceFiles::of(index.parent()?);
    let bytes = files.read(index, Limit::whole(index_file::LIMIT)).ok()?.bytes;
    index_file::parse(&bytes, id, |entry| on_entry(&entry))
}

/// The file that a split index adds entries to, by its id.
pub fn base_of(dir: &Path, id: &[u8]) -> Option<PathBuf> {
    let is_split = id.iter().any(|byte| *byte != 0);
    let name: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    is_split.then(|| dir.join(format!("{SHARED}{name}")))
}

/// The length of ids in a repository, which its configuration or that of its main repository says.
pub fn id_length(dir: &Path) -> usize {
    let [sha1, sha256] = index_file::IDS;
    let main = dir.parent().and_then(Path::parent).unwrap_or(dir);
    let is_sha256 = [dir, main].into_iter().any(|dir| {
        let files = WorkspaceFiles::of(dir);
        let config = files.read(&dir.join("config"), Limit::whole(index_file::LIMIT));
        let settings = config.map(|found| gitfile::parse_bytes(&found.bytes)).unwrap_or_default();
        let mut format =
            settings.iter().filter(|s| s.section == "extensions" && s.name == "objectformat");
        format.any(|setting| setting.value.as_deref() == Some("sha256"))
    });
    if is_sha256 { sha256 } else { sha1 }
}
