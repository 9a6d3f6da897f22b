//! Whether the data directory, its lock and its database are still the ones that this host opened.
//! If one of them was deleted, moved or replaced, another host could start on the same directory, so this
//! host ends itself.

use crate::disk::{Changes, FileId};
use crate::host::host_lock::HostLock;
use crate::host::{Ending, Shared};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// The files that must stay where this host opened them, by device and inode.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ownership(Arc<[Part]>);

#[derive(Debug)]
struct Part {
    what: &'static str,
    /// What follows for this host once it is gone or replaced.
    consequence: &'static str,
    path: PathBuf,
    id: FileId,
}

impl Ownership {
    /// The data directory and the lock file as they are locked, and the database that was opened.
    pub(crate) fn of(lock: &HostLock, database: &Path) -> io::Result<Self> {
        let [(data, data_id), (file, file_id)] = lock.files()?;
        let consequence = "this host does not own it any more";
        let mut parts = vec![
            Part { what: "data directory", consequence, path: data, id: data_id },
            Part {
                what: "lock file",
                consequence: "another host could start here",
                path: file,
                id: file_id,
            },
        ];
        if let Some(id) = FileId::at(database)? {
            let consequence = "the state of the pods cannot be stored any more";
            parts.push(Part { what: "database", consequence, path: database.to_owned(), id });
        }
        Ok(Self(parts.into()))
    }

    /// Why this host must stop writing; `None` while everything is in place. Blocking.
    pub(crate) fn lost(&self) -> Option<String> {
        self.0.iter().find_map(|Part { what, consequence, path, id }| {
            let happened = match FileId::at(path) {
                Ok(Some(found)) if found == *id => return None,
                Ok(Some(_)) => "was replaced",
                Ok(None) => "was deleted or moved",
                // A path that cannot be read now is taken to be unchanged.
                Err(_) => return None,
            };
            let path = path.display();
            Some(format!(
                "the host ends: its {what} {happened}, so {consequence}; start yoi again ({path})"
            ))
        })
    }

    fn data(&self) -> Option<&Path> {
        self.0.first().map(|part| part.path.as_path())
    }
}

impl Shared {
    /// Makes the store check before each change that nothing is lost; if something is, the store refuses
    /// the change and the host ends.
    pub(crate) fn guard_store(&self) {
        let inner = Arc::downgrade(&self.0);
        self.store.guard(Box::new(move || {
            let shared = Shared(inner.upgrade()?);
            let why = shared.ownership.lost()?;
            shared.end_because(why.clone());
            Some(why)
        }));
    }

    /// Ends the host if it lost one of its files. Returns whether it still has them.
    pub(crate) async fn end_if_lost(&self) -> bool {
        let ownership = self.ownership.clone();
        let Some(data) = ownership.data().map(Path::to_owned) else { return true };
        let look = move || ownership.lost();
        // A directory that does not answer now is looked at again the next time.
        match self.files.run(&data, look).await {
            Ok(Some(why)) => {
                self.end_because(why);
                false
            }
            Ok(None) | Err(_) => true,
        }
    }

    /// Says on every screen why the host ends, and ends it.
    pub(crate) fn end_because(&self, why: String) {
        if self.ending.borrow().is_some() {
            return;
        }
        tracing::error!("{why}");
        // Before `ending`: a connection that ends still sends what is queued for it.
        self.add_notice(why.clone());
        self.ending.send_if_modified(|ending| {
            let first = ending.is_none();
            ending.get_or_insert(Ending::Failed(why));
            first
        });
    }
}

/// Checks whenever an entry of the data directory, or the directory itself, is created, deleted or moved.
/// A move of a directory above it is seen at the next connection or commit.
pub(crate) fn watch(shared: &Shared) -> JoinHandle<()> {
    let shared = shared.clone();
    tokio::spawn(async move {
        let Some(data) = shared.ownership.data().map(Path::to_owned) else { return };
        let watched = async {
            let changes = Changes::of(&data)?;
            while shared.end_if_lost().await {
                changes.next().await?;
            }
            Ok::<(), io::Error>(())
        };
        // Without the watch, connections and commits still check.
        if let Err(error) = watched.await {
            tracing::warn!("the data directory is not watched any more: {error}");
        }
    })
}
