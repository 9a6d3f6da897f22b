//! Appending lines to a file that no other program writes: whole or not at all, and never again
//! after a failure.

use crate::disk::{self, DiskError, FileId};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Why lines were not appended. Each is final for the handle.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The file is longer than this handle left it.
    #[error(
        "another program writes to {} too (it has {found} bytes, {expected} were written here)",
        path.display()
    )]
    SecondWriter { path: PathBuf, expected: u64, found: u64 },
    /// The file is shorter than this handle left it.
    #[error(
        "{} was cut to {found} of its {expected} bytes while it was written to: what is missing is lost",
        path.display()
    )]
    Truncated { path: PathBuf, expected: u64, found: u64 },
    /// Another file, or none, lies at the path: what is appended here would be lost.
    #[error("{} was deleted or replaced while it was written to", path.display())]
    Replaced { path: PathBuf },
    /// An earlier write or sync failed.
    #[error("{} is closed after an earlier failure", path.display())]
    Final { path: PathBuf },
}

/// What an appender needs of a file; tests put a disk that fills up in its place.
trait Medium: Write + Send {
    /// How long the file is, in bytes. `None` where it does not lie at the path any more.
    fn length_at(&self, path: &Path) -> io::Result<Option<u64>>;
    fn cut(&mut self, length: u64) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
}

impl Medium for File {
    fn length_at(&self, path: &Path) -> io::Result<Option<u64>> {
        let own = self.metadata()?;
        let is_there = FileId::at_link(path)? == Some(FileId::read(&own));
        Ok(is_there.then_some(own.len()))
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A file that lines are appended to. Blocking.
pub struct Appender {
    medium: Box<dyn Medium>,
    path: PathBuf,
    length: u64,
    failed: bool,
}

impl Appender {
    /// Opens a file for appending and removes a torn tail, whatever stands behind the last line
    /// end. Returns how many bytes that were, 0 for none. What is left is on disk then. A link, and
    /// anything else that is not a regular file, is refused.
    pub fn open(path: &Path) -> Result<(Self, u64), DiskError> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .mode(0o600)
            .custom_flags(disk::without_waiting() | disk::without_following())
            .open(path)
            .map_err(DiskError::at("open", path))?;
        disk::must_be_regular(&file).map_err(DiskError::at("open", path))?;
        let found = file.metadata().map_err(DiskError::at("read", path))?.len();
        let length = last_line_end(&mut file, found).map_err(DiskError::at("read", path))?;
        if length < found {
            file.cut(length).map_err(DiskError::at("cut the torn tail of", path))?;
        }
        file.sync().map_err(DiskError::at("sync", path))?;
        let appender =
            Self { medium: Box::new(file), path: path.to_owned(), length, failed: false };
        Ok((appender, found - length))
    }

    /// Appends whole lines and makes them durable. Returns the length of the file with them. On
    /// an error the file is cut back to what it was, as far as the disk allows.
    pub fn append(&mut self, lines: &[u8]) -> Result<u64, AppendError> {
        if self.failed {
            return Err(AppendError::Final { path: self.path.clone() });
        }
        let appended = self.check_alone().and_then(|()| self.write(lines));
        self.failed = appended.is_err();
        appended
    }

    /// Bytes in the file, as far as this handle wrote or found them.
    pub fn length(&self) -> u64 {
        self.length
    }

    fn check_alone(&self) -> Result<(), AppendError> {
        let path = &self.path;
        let found = self.medium.length_at(path).map_err(DiskError::at("look at", path))?;
        let Some(found) = found else { return Err(AppendError::Replaced { path: path.clone() }) };
        if found == self.length {
            return Ok(());
        }
        let (path, expected) = (self.path.clone(), self.length);
        Err(if found < expected {
            AppendError::Truncated { path, expected, found }
        } else {
            AppendError::SecondWriter { path, expected, found }
        })
    }

    fn write(&mut self, lines: &[u8]) -> Result<u64, AppendError> {
        let written = self.medium.write_all(lines).map_err(DiskError::at("append to", &self.path));
        let durable =
            written.and_then(|()| self.medium.sync().map_err(DiskError::at("sync", &self.path)));
        if let Err(error) = durable {
            // If this fails as well, the next opening removes or keeps the lines that got through;
            // none of them was acknowledged.
            let _ = self.medium.cut(self.length);
            return Err(error.into());
        }
        self.length += lines.len() as u64;
        Ok(self.length)
    }
}

/// The offset behind the last `\n` before `length`.
fn last_line_end(file: &mut File, length: u64) -> io::Result<u64> {
    const CHUNK: usize = 1 << 16;
    let mut chunk = vec![0; CHUNK];
    let mut end = length;
    while end > 0 {
        let start = end.saturating_sub(CHUNK as u64);
        let part = &mut chunk[..usize::try_from(end - start).unwrap_or(CHUNK)];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
pub mod small {
    //! A disk that fills up, for the tests of those who append.
    use super::*;

    /// A disk with room for so many bytes, or whose sync fails.
    pub struct Small {
        file: File,
        room: usize,
        sync_fails: bool,
    }

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let fits = bytes.len().min(self.room);
            if fits == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= fits;
            self.file.write(&bytes[..fits])
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Medium for Small {
        /// Its file is never replaced.
        fn length_at(&self, _: &Path) -> io::Result<Option<u64>> {
            Ok(Some(self.file.metadata()?.len()))
        }

        fn cut(&mut self, length: u64) -> io::Result<()> {
            self.file.cut(length)
        }

        fn sync(&mut self) -> io::Result<()> {
            if self.sync_fails { Err(io::Error::other("bad sector")) } else { Ok(()) }
        }
    }

    /// An appender to a file on such a disk.
    pub fn on_small_disk(path: &Path, room: usize, sync_fails: bool) -> Appender {
        let file = OpenOptions::new().append(true).open(path).unwrap();
        let length = file.metadata().unwrap().len();
        let medium = Box::new(Small { file, room, sync_fails });
        Appender { medium, path: path.to_owned(), length, failed: false }
    }
}

#[cfg(test)]
mod tests {
    use super::small::on_small_disk;
    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_was_replaced_or_deleted_takes_no_more_lines() {
        for replaced in [true, false] {
            let (temp, path) = file_with(b"one\n");
            let (mut appender, _) = Appender::open(&path).unwrap();
            if replaced {
                fs::write(temp.path().join("copy"), b"one\n").unwrap();
                fs::rename(temp.path().join("copy"), &path).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
            let error = appender.append(b"two\n").unwrap_err();
            assert!(matches!(error, AppendError::Replaced { .. }), "{error}");
            assert!(!replaced || fs::read(&path).unwrap() == b"one\n");
        }
    }

    #[test]
    fn lines_are_not_appended_through_a_link() {
        let (temp, path) = file_with(b"one\n");
        let link = temp.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(Appender::open(&link).is_err());
    }

    fn file_with(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("log");
        fs::write(&path, content).unwrap();
        (temp, path)
    }

    #[test]
    fn a_torn_tail_is_cut_when_the_file_is_opened() {
        for (content, kept) in [
            (&b"one\ntwo\n"[..], &b"one\ntwo\n"[..]),
            (b"one\ntw", b"one\n"),
            (b"on", b""),
            (b"", b""),
        ] {
            let (_temp, path) = file_with(content);
            let (appender, torn) = Appender::open(&path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), kept);
            assert_eq!(
                (appender.length(), torn),
                (kept.len() as u64, (content.len() - kept.len()) as u64)
            );
        }
    }

    #[test]
    fn a_torn_tail_longer_than_any_buffer_is_cut_at_the_last_line_end() {
        let mut content = b"one\n".to_vec();
        content.resize(300_000, 0);
        let (_temp, path) = file_with(&content);
        Appender::open(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one\n");
    }

    #[test]
    fn a_second_writer_is_noticed_and_its_lines_are_left_alone() {
        let (_temp, path) = file_with(b"one\n");
        let (mut ours, _) = Appender::open(&path).unwrap();
        let (mut theirs, _) = Appender::open(&path).unwrap();
        theirs.append(b"two\n").unwrap();
        let error = ours.append(b"three\n").unwrap_err();
        assert!(
            matches!(error, AppendError::SecondWriter { expected: 4, found: 8, .. }),
            "{error}"
        );
        assert!(matches!(ours.append(b"four\n"), Err(AppendError::Final { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn a_full_disk_cuts_a_short_write_back_and_ends_the_handle() {
        let (_temp, path) = file_with(b"one\n");
        let mut appender = on_small_disk(&path, 6, false);
        appender.append(b"two\n").unwrap();
        let error = appender.append(b"three\n").unwrap_err();
        assert!(matches!(&error, AppendError::Disk(disk) if disk.is_full()), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\n");
        assert!(matches!(appender.append(b"4\n"), Err(AppendError::Final { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn a_failed_sync_takes_the_lines_back_and_ends_the_handle() {
        let (_temp, path) = file_with(b"one\n");
        let mut appender = on_small_disk(&path, 100, true);
        let error = appender.append(b"two\n").unwrap_err();
        assert!(error.to_string().contains("bad sector"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"one\n");
        assert!(matches!(appender.append(b"two\n"), Err(AppendError::Final { .. })));
    }
}
