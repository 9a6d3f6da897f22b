//! A mount that never answers: a FUSE file system whose server takes no request after the handshake.
//! Without the right to mount one, the stand-in of `host::files` blocks the threads for paths.

use crate::host::files::Replacement;
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest request that the kernel sends at once; it refuses to write into less.
const BUFFER: usize = 1 << 17;
/// The first request of the kernel.
const INIT: u32 = 26;

/// Gives this thread and the threads it starts a view of the mounts of their own, which ends with
/// them, however they end. Says whether a mount can be made in it.
pub(super) fn own_view() -> bool {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    let own = unshare(CloneFlags::CLONE_NEWNS).map_err(io::Error::from);
    let own = own.and_then(|()| Ok(mount_change("/", private)?));
    let fuse = own.and_then(|()| server());
    if let Err(error) = &fuse {
        eprintln!("no FUSE here ({error}): the stand-in of host::files takes its place");
    }
    fuse.is_ok()
}

fn server() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/fuse")
}

/// A directory that never answers, until this is dropped.
pub(super) enum SilentMount {
    Fuse {
        at: PathBuf,
        /// Closing it ends the connection: every request in it fails then. The kernel also ends it
        /// when this process is killed, because no request was taken from it.
        server: Option<File>,
    },
    Replacement(Arc<Replacement>),
}

impl SilentMount {
    pub(super) fn over(at: &Path, fuse: bool, replacement: &Arc<Replacement>) -> Self {
        if fuse {
            return Self::fuse(at).expect("a FUSE mount");
        }
        replacement.hang(at);
        Self::Replacement(replacement.clone())
    }

    fn fuse(at: &Path) -> io::Result<Self> {
        let mut server = server()?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", server.as_raw_fd());
        let options = CString::new(options)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("silent", at, "fuse", flags, options.as_c_str())?;
        let mut request = vec![0; BUFFER];
        let length = server.read(&mut request)?;
        assert!(length >= 40 && word(&request, 4) == INIT, "the kernel begins with a handshake");
        server.write_all(&handshake(&request[8..16]))?;
        Ok(Self::Fuse { at: at.to_owned(), server: Some(server) })
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The reply to the first request: version 7.31, and names of one directory are looked up side by
/// side.
fn handshake(request: &[u8]) -> Vec<u8> {
    const LENGTH: u32 = 16 + 64;
    let mut reply = Vec::from(LENGTH.to_ne_bytes());
    reply.extend(0_i32.to_ne_bytes());
    reply.extend(request);
    let (read_ahead, abilities, background, most_written) = (0_u32, 1 << 18, 0_u32, 4096_u32);
    for value in [7, 31, read_ahead, abilities, background, most_written] {
        reply.extend(value.to_ne_bytes());
    }
    reply.resize(LENGTH as usize, 0);
    reply
}

impl Drop for SilentMount {
    fn drop(&mut self) {
        match self {
            Self::Fuse { at, server } => {
                drop(server.take());
                // The view of this thread ends with it, and the mount with the view.
                let _ = unmount(&*at, UnmountFlags::DETACH);
            }
            Self::Replacement(replacement) => replacement.release(),
        }
    }
}
