//! Changes of a directory, as the kernel reports them.

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What happens to the entries of a directory, and to itself.
const ENTRIES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

/// A watch on directories.
pub struct Changes(AsyncFd<OwnedFd>);

impl Changes {
    /// Watches the entries of a directory from now on.
    pub fn of(dir: &Path) -> io::Result<Self> {
        Self::with([dir], ENTRIES)
    }

    /// Watches the entries of directories from now on, and the contents of their files; those that are not there are
    /// left out.
    ///
    /// # Errors
    /// None of them can be watched.
    pub fn of_files<'a>(dirs: impl IntoIterator<Item = &'a Path>) -> io::Result<Self> {
        Self::with(dirs, ENTRIES | WatchFlags::CLOSE_WRITE)
    }

    fn with<'a>(dirs: impl IntoIterator<Item = &'a Path>, what: WatchFlags) -> io::Result<Self> {
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let mut found = Err(io::Error::from(io::ErrorKind::NotFound));
        for dir in dirs {
            match (inotify::add_watch(&watch, dir, what), &found) {
                (Ok(_), _) => found = Ok(()),
                (Err(error), Err(_)) => found = Err(error.into()),
                (Err(_), Ok(())) => {}
            }
        }
        found?;
        #[expect(deprecated, reason = "the other way is unsafe; an `OwnedFd` stays open with it")]
        let watch = AsyncFd::with_interest(watch, Interest::READABLE)?;
        Ok(Self(watch))
    }

    /// Resolves when an entry of a directory, or the directory itself, was created, deleted or moved since the last
    /// call, or the content of a watched file was written. Cancel-safe.
    pub async fn next(&self) -> io::Result<()> {
        self.0
            .async_io(Interest::READABLE, |watch| {
                let mut buffer = [MaybeUninit::uninit(); 4096];
                let (read, _) = rustix::io::read(watch, &mut buffer)?;
                if read.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
            })
            .await
    }
}
