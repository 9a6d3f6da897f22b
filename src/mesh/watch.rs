//! Notices that something changed beside a socket: the kernel reports changes of its directory, or the path is
//! looked at every second where that cannot be had.

use crate::disk::{Changes, FileId};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often the path is looked at without reports of the kernel.
const LOOK: Duration = Duration::from_secs(1);

/// A watch on the directory of a socket.
pub(crate) struct Watch {
    dir: PathBuf,
    /// The reports on the directory that lay there, and which one that was.
    changes: Option<(Changes, FileId)>,
}

impl Watch {
    pub(crate) fn beside(path: &Path) -> Self {
        let dir = path.parent().unwrap_or(Path::new(".")).to_owned();
        let changes = Changes::of(&dir);
        if let Err(error) = &changes {
            tracing::debug!("{} is looked at every second: {error}", dir.display());
        }
        let directory = FileId::at(&dir).ok().flatten();
        Self { changes: changes.ok().zip(directory), dir }
    }

    /// Resolves when something may have changed. Cancel-safe.
    pub(crate) async fn changed(&mut self) {
        let Some((changes, directory)) = &self.changes else {
            return tokio::time::sleep(LOOK).await;
        };
        // There are no reports on a directory that lies there in the place of this one.
        let ended = changes.next().await.is_err();
        if ended || FileId::at(&self.dir).ok().flatten() != Some(*directory) {
            self.changes = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_that_comes_goes_or_moves_is_noticed_also_in_a_new_directory() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("mesh/broker.sock");
        std::fs::create_dir(temp.path().join("mesh")).unwrap();
        let mut watch = Watch::beside(&path);
        std::fs::write(&path, "").unwrap();
        watch.changed().await;
        std::fs::rename(&path, temp.path().join("mesh/other")).unwrap();
        watch.changed().await;
        std::fs::remove_dir_all(temp.path().join("mesh")).unwrap();
        while watch.changes.is_some() {
            watch.changed().await;
        }
        watch.changed().await;
    }
}
