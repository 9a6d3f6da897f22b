//! The temporary files and caches of servers, below the data directory. Files of servers that were
//! not started for 30 days are removed.

use crate::disk::remove_tree;
use crate::trace::OrLog as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The age of the last start at which a server's files are removed.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 3600);
/// Hex digits of a key in the name of a directory.
const DIGITS: usize = 16;
/// The prefix of a directory that is being removed. No server has such a name.
const REMOVED: &str = ".removed-";

/// The directory for the files of all servers of a data directory.
pub fn kept_in(data: &Path) -> PathBuf {
    data.join("mcp")
}

/// The directory of a server with this key.
pub fn directory(kept: &Path, server: &str, key: &str) -> PathBuf {
    kept.join(format!("{server}-{}", &key[..DIGITS]))
}

/// Creates the directory of a server that starts, and updates its time of last use.
pub fn use_now(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    File::open(directory)?.set_modified(SystemTime::now())
}

/// Moves the directories of servers that were not started for long aside, while no server runs; [`remove_set_aside`]
/// removes them.
pub fn set_aside_unused(kept: &Path, now: SystemTime) {
    for entry in fs::read_dir(kept).into_iter().flatten().flatten() {
        let is_old = entry.metadata().ok().filter(fs::Metadata::is_dir).is_some_and(|directory| {
            let used = directory.modified().unwrap_or(now);
            now.duration_since(used).is_ok_and(|unused| unused > UNUSED)
        });
        let name = entry.file_name();
        if is_old && name.to_str().is_some_and(is_of_a_server) {
            let aside = kept.join(format!("{REMOVED}{}", uuid::Uuid::now_v7()));
            fs::rename(entry.path(), aside).or_log("set the directory of a server aside");
        }
    }
}

/// Removes the directories that were set aside, by this host or by one that ended before it removed them. Blocking.
pub fn remove_set_aside(kept: &Path) {
    for entry in fs::read_dir(kept).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(REMOVED)) {
            remove_tree(&entry.path()).or_log("remove the directory of a server");
        }
    }
}

/// Whether [`directory`] creates names of this form. The data directory of servers has other files,
/// too.
fn is_of_a_server(name: &str) -> bool {
    let key = name.rsplit_once('-').filter(|(server, _)| !server.is_empty());
    key.is_some_and(|(_, key)| {
        key.len() == DIGITS && key.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_kept_is_removed_when_it_was_not_started_for_long_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("mcp");
        let key = "0123456789abcdef0123";
        let (old, fresh) = (directory(&kept, "old", key), directory(&kept, "fresh", key));
        let (begun, now) = (SystemTime::now(), SystemTime::now() + UNUSED * 2);
        for path in [&old, &fresh, &kept.join("other-directory")] {
            use_now(path).unwrap();
            fs::create_dir(path.join("tmp")).unwrap();
        }
        fs::write(kept.join("mailbox-0123456789abcdef"), "a file").unwrap();
        File::open(&fresh).unwrap().set_modified(now).unwrap();
        set_aside_unused(&kept, begun);
        assert!(old.exists(), "it was used a moment ago");
        set_aside_unused(&kept, now);
        assert!(!old.exists(), "its server starts with an empty directory");
        remove_set_aside(&kept);
        let left = fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = left.map(|name| name.into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["fresh-0123456789abcdef", "mailbox-0123456789abcdef", "other-directory"]);
    }
}
