//! Whether the data directory, its lock and its database are still the ones that this host opened.
//! Where one of them was deleted, moved or replaced, another host may take its place: this one ends.

use crate::disk::FileId;
use crate::host::host_lock::HostLock;
use crate::host::{Ending, Shared};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;

/// What must lie where this host found it, by identity.
#[derive(Clone, Debug)]
pub(crate) struct Ownership(Arc<[Part]>);

#[derive(Debug)]
struct Part {
    what: &'static str,
    /// What follows for this host when it is gone.
    so: &'static str,
    path: PathBuf,
    id: FileId,
}

impl Ownership {
    /// The data directory and the lock file as they are locked, and the database that was opened.
    pub(crate) fn of(lock: &HostLock, database: &Path) -> io::Result<Self> {
        let [(data, data_id), (file, file_id)] = lock.files()?;
        let gone = "nothing can be written there any more";
        let mut parts = vec![
            Part { what: "data directory", so: gone, path: data, id: data_id },
            Part {
                what: "lock file",
                so: "another host could start here",
                path: file,
                id: file_id,
            },
        ];
        if let Some(id) = FileId::at(database)? {
            let so = "the state of the pods cannot be stored any more";
            parts.push(Part { what: "database", so, path: database.to_owned(), id });
        }
        Ok(Self(parts.into()))
    }

    /// Why this host may write no more, if so. Blocking.
    pub(crate) fn lost(&self) -> Option<String> {
        self.0.iter().find_map(|Part { what, so, path, id }| {
            let happened = match FileId::at(path) {
                Ok(Some(found)) if found == *id => return None,
                Ok(Some(_)) => "was replaced",
                Ok(None) => "was deleted or moved",
                // A path that cannot be looked at now says nothing.
                Err(_) => return None,
            };
            let path = path.display();
            Some(format!("the host ends: its {what} {happened}, so {so}; start yoi again ({path})"))
        })
    }

    fn data(&self) -> Option<&Path> {
        self.0.first().map(|part| part.path.as_path())
    }
}

impl Shared {
    /// Lets the store refuse every change once something is lost; then the host ends.
    pub(crate) fn guard_store(&self) {
        let inner = Arc::downgrade(&self.0);
        self.store.guard(Box::new(move || {
            let shared = Shared(inner.upgrade()?);
            let why = shared.ownership.lost()?;
            shared.end_because(why.clone());
            Some(why)
        }));
    }

    /// Ends the host if what it owns is not its own any more; whether it is.
    pub(crate) async fn still_owns(&self) -> bool {
        let ownership = self.ownership.clone();
        let Some(data) = ownership.data().map(Path::to_owned) else { return true };
        let look = move || ownership.lost();
        // A directory that does not answer now is looked at again at the next occasion.
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
        // First: connections end with what waits for them.
        self.add_notice(why.clone());
        self.ending.send_replace(Some(Ending::Failed(why)));
    }
}

/// Looks whenever the data directory or an entry of it is created, deleted or moved.
pub(crate) fn watch(shared: &Shared) -> JoinHandle<()> {
    let shared = shared.clone();
    tokio::spawn(async move {
        let Some(data) = shared.ownership.data().map(Path::to_owned) else { return };
        // Without it, each connection and each commit looks.
        match Changes::of(&data) {
            Ok(changes) => while shared.still_owns().await && changes.next().await.is_ok() {},
            Err(error) => tracing::warn!("the data directory is not watched: {error}"),
        }
    })
}

/// The changes of a directory, as the kernel reports them.
struct Changes(AsyncFd<OwnedFd>);

impl Changes {
    fn of(dir: &Path) -> io::Result<Self> {
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let what = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        inotify::add_watch(&watch, dir, what)?;
        #[expect(deprecated, reason = "the other way is unsafe; an `OwnedFd` stays open with it")]
        let watch = AsyncFd::with_interest(watch, Interest::READABLE)?;
        Ok(Self(watch))
    }

    /// Resolves when something changed; which change does not matter, because all is looked at.
    async fn next(&self) -> io::Result<()> {
        self.0
            .async_io(Interest::READABLE, |watch| {
                let mut buffer = [MaybeUninit::uninit(); 4096];
                let (read, _) = rustix::io::read(watch, &mut buffer)?;
                if read.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
            })
            .await
    }
}
