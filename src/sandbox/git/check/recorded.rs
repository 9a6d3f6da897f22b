//! The memory of the recorded files. A command can make repositories and large files, of which the next one records
//! what they contain.

use crate::sandbox::git::check::{Known, Snapshot, known_at};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The most MiB of recorded files of one command. Up to 16 commands of a Pod run at the same time.
const TOTAL_MIB: u64 = 16;

/// The size of the recorded files, and the directories of those that are not recorded.
#[derive(Debug, Default)]
pub struct Recorded {
    bytes: u64,
    closed: BTreeSet<PathBuf>,
}

impl Recorded {
    /// The file or link at a path. Without memory for it this is `None`, and its directory is closed.
    pub fn known_at(&mut self, path: &Path) -> Option<Known> {
        let known = known_at(path)?;
        let fits = self.take(&known, path);
        if !fits {
            self.close(path);
        }
        fits.then_some(known)
    }

    /// Takes the memory of a file, if there is enough.
    fn take(&mut self, known: &Known, path: &Path) -> bool {
        let bytes = self.bytes + known.size() + path.as_os_str().len() as u64;
        let fits = bytes <= TOTAL_MIB << 20;
        if fits {
            self.bytes = bytes;
        }
        fits
    }

    /// Closes the directory of a path whose content is not recorded.
    pub fn close(&mut self, path: &Path) {
        self.closed.extend(path.parent().map(Path::to_owned));
    }
}

impl Snapshot {
    /// Directories that must be read-only for the command, because changes in them could not be undone.
    pub fn closed(&self) -> impl Iterator<Item = &PathBuf> {
        self.recorded.closed.iter()
    }

    /// A sentence for each of these directories.
    pub fn cost(&self) -> impl Iterator<Item = String> {
        let why =
            format!("only {TOTAL_MIB} MiB of guarded files can be restored, each of at most 1 MiB");
        self.closed().map(move |dir| format!("writing to {}: {why}", dir.display()))
    }
}

impl Known {
    fn size(&self) -> u64 {
        match self {
            Self::File { bytes, .. } => bytes.len() as u64,
            Self::Link(target) => target.as_bytes().len() as u64,
        }
    }
}
