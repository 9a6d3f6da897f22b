//! A file of lines with a limit: lines are appended, and at its limit the file becomes `.1`, `.1` becomes `.2`, and
//! `.2` is deleted. Several processes may write to it at once.

use crate::disk::{self, DiskError, FileId};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// How many files there are at most, the newest one included.
const GENERATIONS: usize = 3;

/// A rotated file, opened at its first line.
pub struct RotatedFile {
    file: Option<File>,
    path: PathBuf,
    limit: u64,
    /// Whether standard output and standard error of this process go to the file.
    owns_output: bool,
}

impl RotatedFile {
    /// The file at `path`, which becomes an older one before it is larger than `limit` bytes.
    pub fn at(path: &Path, limit: u64) -> Self {
        Self { file: None, path: path.to_owned(), limit, owns_output: false }
    }

    /// Appends one line, given without its newline.
    pub fn write(&mut self, line: &str) -> Result<(), DiskError> {
        self.append(format!("{line}\n").as_bytes())
    }

    /// Appends whole lines in one write, so that lines of several processes do not mix. The write is
    /// not synced: after a crash of the program the lines are there, after a power cut perhaps not.
    pub fn append(&mut self, lines: &[u8]) -> Result<(), DiskError> {
        let limit = self.limit;
        if is_full(self.file()?, lines.len() as u64, limit) {
            self.rotate()?;
        }
        let mut file = self.file()?;
        file.write_all(lines).map_err(DiskError::at("write", &self.path))
    }

    /// Sends standard output and standard error of this process to the file.
    pub fn take_output(&mut self) -> Result<(), DiskError> {
        self.owns_output = true;
        let file = self.file()?;
        rustix::stdio::dup2_stdout(file)
            .and_then(|()| rustix::stdio::dup2_stderr(file))
            .map_err(|error| DiskError::at("send output to", &self.path)(error.into()))
    }

    /// The open file; created when it is missing, readable by its owner only.
    fn file(&mut self) -> Result<&File, DiskError> {
        let file = match self.file.take() {
            Some(file) => file,
            None => self.open()?,
        };
        Ok(self.file.insert(file))
    }

    fn open(&self) -> Result<File, DiskError> {
        if let Some(state) = self.path.parent() {
            disk::private_dir(state)?;
        }
        // A link planted in place of the log must not lead to another file.
        let flags = disk::without_following() | disk::without_waiting();
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true).mode(0o600).custom_flags(flags);
        let file = options.open(&self.path).and_then(|file| {
            disk::must_have_one_name(&file)?;
            Ok(file)
        });
        file.map_err(DiskError::at("open", &self.path))
    }

    /// Starts a new file. The lock on the old one makes one of several processes rename it; the
    /// others find another file at the path and only open that.
    fn rotate(&mut self) -> Result<(), DiskError> {
        let Some(old) = self.file.take() else { return Ok(()) };
        old.lock().map_err(DiskError::at("lock", &self.path))?;
        if FileId::is_at(&old, &self.path) {
            let files = generations(&self.path);
            for pair in files.windows(2).rev() {
                // An older file that does not exist yet cannot be renamed.
                let _ = fs::rename(&pair[0], &pair[1]);
            }
        }
        // Opened before the lock is released, so that the next process finds the new file.
        self.file()?;
        drop(old);
        if self.owns_output { self.take_output() } else { Ok(()) }
    }
}

fn is_full(file: &File, more: u64, limit: u64) -> bool {
    file.metadata().is_ok_and(|meta| meta.len() > 0 && meta.len() + more > limit)
}

/// The path and those of its older files, newest first.
pub fn generations(path: &Path) -> Vec<PathBuf> {
    let older = (1..GENERATIONS).map(|number| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    });
    std::iter::once(path.to_owned()).chain(older).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn sizes(path: &Path) -> Vec<u64> {
        let size = |path: PathBuf| fs::metadata(path).ok().map(|meta| meta.len());
        generations(path).into_iter().filter_map(size).collect()
    }

    #[test]
    fn the_log_is_kept_in_three_files_of_limited_size_for_its_owner_only() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("yoi.log");
        let mut log = RotatedFile::at(&path, 1_000);
        for number in 0..1_000 {
            log.write(&format!("line {number:05}")).unwrap();
        }
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 3);
        assert!(sizes(&path).iter().all(|size| *size <= 1_000), "{:?}", sizes(&path));
        assert!(fs::read_to_string(&path).unwrap().ends_with("line 00999\n"));
        for file in generations(&path) {
            assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_fifo_or_another_name_of_a_file_in_its_place_is_refused_at_once() {
        let temp = tempfile::tempdir().unwrap();
        let (fifo, victim) = (temp.path().join("fifo"), temp.path().join("victim"));
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(RotatedFile::at(&fifo, 1_000).write("x").is_err());
        fs::write(&victim, "mine").unwrap();
        let link = temp.path().join("link");
        fs::hard_link(&victim, &link).unwrap();
        let refused = RotatedFile::at(&link, 1_000).write("x").unwrap_err().to_string();
        assert!(refused.contains("hard link"), "{refused}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    }

    #[test]
    fn two_processes_that_share_the_log_lose_no_line_when_it_is_rotated() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("yoi.log");
        let mut logs = [0, 1].map(|_| RotatedFile::at(&path, 1_000));
        // 2,600 bytes fit into three files, so every line must still be there.
        for number in 0..200 {
            logs[number % 2].write(&format!("line {number:07}")).unwrap();
        }
        let text: String =
            generations(&path).iter().rev().map(|f| fs::read_to_string(f).unwrap()).collect();
        let expected: Vec<String> = (0..200).map(|number| format!("line {number:07}")).collect();
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_link_in_place_of_the_log_is_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        let (path, other) = (temp.path().join("yoi.log"), temp.path().join("other"));
        fs::write(&other, "").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(RotatedFile::at(&path, 1_000).write("line").is_err());
        assert_eq!(fs::read(&other).unwrap(), b"");
    }
}
