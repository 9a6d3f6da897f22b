//! Gives a file a new content, only if it still has the expected one. The file that a person has stays that file:
//! with its mode, owner, attributes and all its names.

use crate::files::Found;
use crate::protocol::{FileMark, LinesChanged};
use crate::sandbox::changed_package_scripts;
use crate::tools::fault::Fault;
use crate::tools::file_text::FileText;
use crate::tools::line_diff::lines_changed;
use crate::tools::scoped_path::{MAX_FILE, ScopedPath};
use crate::tools::{Context, file_kind, text_limit};
use rustix::fs::{Access, AtFlags, Gid, Mode, OFlags, RenameFlags, Uid, XattrFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Refuses a file whose current content the model has not read, and one whose encoding is not written; its text.
pub fn text_to_change<'a>(
    ctx: &Context,
    target: &ScopedPath,
    found: &'a Found,
) -> Result<FileText<'a>, Fault> {
    match ctx.read.get(&target.path) {
        None => return Err(Fault::argument(unread(&target.path))),
        Some(seen) if *seen != text_limit::hash(&found.bytes) => return Err(changed(target)),
        Some(_) => {}
    }
    let text = FileText::of(&found.bytes);
    match text.encoding {
        Some(encoding) => Err(Fault::Argument(file_kind::not_written(&target.path, encoding))),
        None => Ok(text),
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

/// A file after its change.
pub struct Written {
    pub mark: FileMark,
    /// What a person should know of a changed `package.json`.
    pub note: Option<String>,
    /// The lines that differ from the former content.
    pub lines: LinesChanged,
}

/// Replaces the content `former` (`None`: the file does not exist yet) by a text, and keeps the former content
/// among the blobs first.
pub fn put(
    ctx: &Context,
    target: &ScopedPath,
    former: Option<&Found>,
    text: &str,
) -> Result<Written, Fault> {
    let (path, bytes) = (&target.path, text.as_bytes());
    if bytes.len() as u64 > MAX_FILE {
        let (path, limit) = (path.display(), text_limit::size(MAX_FILE));
        return Err(Fault::argument(format!(
            "{path} would become too large: the limit is {limit}"
        )));
    }
    let old = former.map(|found| String::from_utf8_lossy(&found.bytes));
    let lines = lines_changed(old.as_deref().unwrap_or_default(), text);
    let before = former.map(|found| text_limit::blob(&ctx.blobs, &found.bytes)).transpose()?;
    let (directory, name) = target.directory()?;
    let place = Place { directory, name, target };
    match former {
        None => place.create(bytes)?,
        Some(found) => {
            place.refuse_protected()?;
            // A rename would leave the other names of the file with the former content.
            if found.has_other_names || !place.replace(found, bytes)? {
                place.overwrite(found, bytes, &ctx.blobs)?;
            }
        }
    }
    let note = changed_package_scripts(path, former.map(|found| &*found.bytes), bytes);
    Ok(Written {
        mark: FileMark { path: path.clone(), hash: text_limit::hash(bytes), before },
        note,
        lines,
    })
}

/// The name of a file in its open directory.
struct Place<'a> {
    directory: OwnedFd,
    name: OsString,
    target: &'a ScopedPath,
}

impl Place<'_> {
    fn failed(&self, error: impl Into<io::Error>) -> Fault {
        Fault::io("cannot write", &self.target.path, error.into())
    }

    /// A rename would bypass a missing write permission of the file itself.
    fn refuse_protected(&self) -> Result<(), Fault> {
        let access = (Access::WRITE_OK, AtFlags::EACCESS);
        match rustix::fs::accessat(&self.directory, &self.name, access.0, access.1) {
            Err(Errno::ACCESS | Errno::ROFS | Errno::PERM) => {
                let path = self.target.path.display();
                Err(Fault::argument(format!(
                    "file is write-protected: {path}; change its mode first"
                )))
            }
            _ => Ok(()),
        }
    }

    fn create(&self, bytes: &[u8]) -> Result<(), Fault> {
        let temp = Temp::new(&self.directory);
        // A new file gets its mode from the umask.
        let mut file = temp.open(0o666).map_err(|error| self.failed(error))?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.map_err(|error| self.failed(error))?;
        use rustix::fs::{renameat, renameat_with};
        let (dir, name) = (&self.directory, &*self.name);
        match renameat_with(dir, &*temp.name, dir, name, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => return Err(changed(self.target)),
            // Some file systems do not support the flag.
            Err(Errno::INVAL | Errno::NOSYS) => renameat(dir, &*temp.name, dir, name),
            other => other,
        }
        .and_then(|()| rustix::fs::fsync(dir))
        .map_err(|error| self.failed(error))
    }

    /// Puts a new file with the same owner, mode and attributes in the place of the former one, so that a crash
    /// leaves one or the other. `false` where that is not possible: the directory may not be writable, the file may
    /// be a mount of its own or belong to another user.
    fn replace(&self, found: &Found, bytes: &[u8]) -> Result<bool, Fault> {
        let (dir, name) = (&self.directory, &*self.name);
        let temp = Temp::new(dir);
        // It is private until it gets the mode of the former one.
        let mut file = match temp.open(0o600) {
            Err(error) if needs_overwriting(error) => return Ok(false),
            opened => opened.map_err(|error| self.failed(error))?,
        };
        file.write_all(bytes).map_err(|error| self.failed(error))?;
        let former = self.open(OFlags::RDONLY)?;
        if keep_attributes(&former, &file, found).is_err() {
            return Ok(false);
        }
        file.sync_all().map_err(|error| self.failed(error))?;
        let now = self.target.now()?;
        if now.is_none_or(|now| now.bytes != found.bytes) {
            return Err(changed(self.target));
        }
        match rustix::fs::renameat(dir, &*temp.name, dir, name) {
            Err(error) if needs_overwriting(error) => Ok(false),
            renamed => {
                renamed
                    .and_then(|()| rustix::fs::fsync(dir))
                    .map_err(|error| self.failed(error))?;
                Ok(true)
            }
        }
    }

    /// Writes the content into the file itself, and the former one again if that fails.
    fn overwrite(&self, found: &Found, bytes: &[u8], blobs: &Path) -> Result<(), Fault> {
        let file = self.open(OFlags::RDWR)?;
        let mut now = Vec::with_capacity(found.bytes.len());
        let limit = found.bytes.len() as u64 + 1;
        (&file).take(limit).read_to_end(&mut now).map_err(|error| self.failed(error))?;
        if now != found.bytes {
            return Err(changed(self.target));
        }
        let write = |bytes: &[u8]| {
            file.write_all_at(bytes, 0)?;
            file.set_len(bytes.len() as u64)?;
            file.sync_all()
        };
        let former = blobs.join(text_limit::hash(&found.bytes));
        // The result that names the former content is lost with a host that dies now.
        tracing::info!(former = %former.display(), "{} is overwritten", self.target.path.display());
        write(bytes).map_err(|error| match write(&found.bytes) {
            Ok(()) => self.failed(error),
            Err(_) => {
                let (path, former) = (self.target.path.display(), former.display());
                Fault::Execution(format!(
                    "cannot write {path}: {error}; a part of it was overwritten, its former content is in {former}"
                ))
            }
        })
    }

    /// Opens the former file, which is no link and not another kind of file.
    fn open(&self, access: OFlags) -> Result<File, Fault> {
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty());
        let file = File::from(file.map_err(|error| self.failed(error))?);
        let is_file = file.metadata().map_err(|error| self.failed(error))?.is_file();
        if is_file { Ok(file) } else { Err(changed(self.target)) }
    }
}

/// A new file beside its target, removed unless it was renamed.
struct Temp<'a> {
    directory: &'a OwnedFd,
    name: OsString,
}

impl<'a> Temp<'a> {
    fn new(directory: &'a OwnedFd) -> Self {
        Self { directory, name: format!(".yoi-{}.tmp", uuid::Uuid::now_v7()).into() }
    }

    fn open(&self, mode: u32) -> rustix::io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name: &OsStr = &self.name;
        rustix::fs::openat(self.directory, name, flags, Mode::from_raw_mode(mode)).map(File::from)
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        // There is none after a rename.
        let _ = rustix::fs::unlinkat(self.directory, &*self.name, AtFlags::empty());
    }
}

/// Whether a directory refused another file in the place of this one, whose content may be writable.
fn needs_overwriting(error: Errno) -> bool {
    matches!(error, Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::BUSY | Errno::XDEV)
}

/// Gives a new file the owner, mode and extended attributes (and thereby the access control list) of a former one.
fn keep_attributes(former: &File, file: &File, found: &Found) -> rustix::io::Result<()> {
    let own = rustix::fs::fstat(file)?;
    if (own.st_uid, own.st_gid) != (found.uid, found.gid) {
        let (uid, gid) = (Uid::from_raw(found.uid), Gid::from_raw(found.gid));
        rustix::fs::fchown(file, Some(uid), Some(gid))?;
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(found.mode))?;
    let (wanted, has) = (attributes(former)?, attributes(file)?);
    for (name, value) in wanted.iter().filter(|(name, value)| has.get(*name) != Some(*value)) {
        rustix::fs::fsetxattr(file, &**name, value, XattrFlags::empty())?;
    }
    for name in has.keys().filter(|name| !wanted.contains_key(*name)) {
        rustix::fs::fremovexattr(file, &**name)?;
    }
    Ok(())
}

fn attributes(file: &File) -> rustix::io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    /// The most bytes that the kernel gives for a list or a value.
    const MOST: usize = 64 * 1024;
    let mut buffer = vec![0; MOST];
    let names = match rustix::fs::flistxattr(file, &mut buffer[..]) {
        Err(Errno::NOTSUP) => 0,
        listed => listed?,
    };
    let names = buffer[..names].to_vec();
    // As a write does, a change takes the privileges of a program away.
    let names =
        names.split(|byte| *byte == 0).filter(|n| !n.is_empty() && *n != b"security.capability");
    names
        .map(|name| {
            let size = rustix::fs::fgetxattr(file, name, &mut buffer[..])?;
            Ok((name.to_vec(), buffer[..size].to_vec()))
        })
        .collect()
}
