//! Replaces a file atomically, keeps its mode, and only if it still has the expected content.

use crate::files::Found;
use crate::protocol::FileMark;
use crate::tools::Context;
use crate::tools::fault::Fault;
use crate::tools::scoped_path::ScopedPath;
use crate::tools::text_limit;
use rustix::fs::{Access, AtFlags, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Refuses a file whose current content the model has not read.
pub fn check_read(ctx: &Context, target: &ScopedPath, found: &Found) -> Result<(), Fault> {
    match ctx.read.get(&target.path) {
        None => Err(Fault::argument(unread(&target.path))),
        Some(seen) if *seen != text_limit::hash(&found.bytes) => Err(changed(target)),
        Some(_) => Ok(()),
    }
}

/// The error for a file that the model never read.
pub fn unread(path: &Path) -> String {
    format!("file has not been read yet: {}; use Read on it first", path.display())
}

fn changed(target: &ScopedPath) -> Fault {
    let path = target.path.display();
    Fault::argument(format!("file was modified since it was read: {path}; use Read on it again"))
}

/// Replaces the content `former` (`None`: the file does not exist yet) by `bytes` and stores the
/// former content; returns the hash of the new one.
pub fn replace(
    ctx: &Context,
    target: &ScopedPath,
    former: Option<&Found>,
    bytes: &[u8],
) -> Result<FileMark, Fault> {
    let before = former.map(|found| text_limit::blob(&ctx.blobs, &found.bytes)).transpose()?;
    let (directory, name) = target.directory()?;
    if former.is_some() {
        check_writable(&directory, &name, target)?;
    }
    let temp = OsString::from(format!(".yoi-{}.tmp", uuid::Uuid::now_v7()));
    let result = put(&directory, &temp, &name, target, former, bytes);
    if result.is_err() {
        // The first error is the one to report.
        let _ = rustix::fs::unlinkat(&directory, &temp, AtFlags::empty());
    }
    result?;
    Ok(FileMark { path: target.path.clone(), hash: text_limit::hash(bytes), before })
}

/// A rename would bypass a missing write permission of the file itself.
fn check_writable(directory: &OwnedFd, name: &OsStr, target: &ScopedPath) -> Result<(), Fault> {
    match rustix::fs::accessat(directory, name, Access::WRITE_OK, AtFlags::EACCESS) {
        Err(Errno::ACCESS | Errno::ROFS | Errno::PERM) => {
            let path = target.path.display();
            Err(Fault::argument(format!("file is write-protected: {path}; change its mode first")))
        }
        _ => Ok(()),
    }
}

fn put(
    directory: &OwnedFd,
    temp: &OsStr,
    name: &OsStr,
    target: &ScopedPath,
    former: Option<&Found>,
    bytes: &[u8],
) -> Result<(), Fault> {
    let failed = |error: std::io::Error| Fault::io("cannot write", &target.path, error);
    write_temp(directory, temp, former, bytes).map_err(failed)?;
    if let Some(found) = former {
        let now = target.now()?;
        if now.is_none_or(|now| now.bytes != found.bytes) {
            return Err(changed(target));
        }
        rustix::fs::renameat(directory, temp, directory, name).map_err(|e| failed(e.into()))?;
    } else {
        rename_new(directory, temp, name, target)?;
    }
    rustix::fs::fsync(directory).map_err(|error| failed(error.into()))
}

fn write_temp(
    directory: &OwnedFd,
    temp: &OsStr,
    former: Option<&Found>,
    bytes: &[u8],
) -> std::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // A new file gets its mode from the umask; a replacement is private until it gets the old mode.
    let mode = Mode::from_raw_mode(if former.is_some() { 0o600 } else { 0o666 });
    let mut file = File::from(rustix::fs::openat(directory, temp, flags, mode)?);
    file.write_all(bytes)?;
    if let Some(found) = former {
        copy_owner_and_mode(&file, found)?;
    }
    file.sync_all()
}

fn copy_owner_and_mode(file: &File, found: &Found) -> std::io::Result<()> {
    let own = rustix::fs::fstat(file)?;
    if (own.st_uid, own.st_gid) != (found.uid, found.gid) {
        // Only a privileged process can keep a foreign owner; the content matters more.
        let _ = rustix::fs::fchown(
            file,
            Some(Uid::from_raw(found.uid)),
            Some(Gid::from_raw(found.gid)),
        );
    }
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(found.mode))?)
}

/// Gives a new file its name, unless another program was faster.
fn rename_new(
    directory: &OwnedFd,
    temp: &OsStr,
    name: &OsStr,
    target: &ScopedPath,
) -> Result<(), Fault> {
    use rustix::fs::{renameat, renameat_with};
    match renameat_with(directory, temp, directory, name, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => return Err(changed(target)),
        // Some file systems do not support the flag.
        Err(Errno::INVAL | Errno::NOSYS) => renameat(directory, temp, directory, name),
        other => other,
    }
    .map_err(|error| Fault::io("cannot write", &target.path, std::io::Error::from(error)))
}
