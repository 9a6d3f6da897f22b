//! Changes of a directory, as the kernel reports them.

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A watch on one directory.
pub struct Changes(AsyncFd<OwnedFd>);

impl Changes {
    /// Watches a directory from now on.
    pub fn of(dir: &Path) -> io::Result<Self> {
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

    /// Resolves when an entry of the directory, or the directory itself, was created, deleted or moved since the last
    /// call. Cancel-safe.
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
