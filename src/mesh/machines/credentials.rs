//! What a machine needs to connect: the server, the machine's name, its key, and the server's certificate. It is one
//! line, `nats://<machine>:<key>@<host>:<port>/<certificate>`, which `yoi mesh init --add` prints and `yoi mesh join`
//! stores.

use crate::disk::{DiskError, open_regular, private_dir, replace};
use crate::mesh::machines::name::{BadName, MachineName};
use crate::mesh::machines::tls::Pin;
use crate::trace::secrets;
use nkeys::KeyPair;
use std::fmt;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The directory below the state directory, of its own so that it can be watched.
const DIR: &str = "machine";
const FILE: &str = "server";
/// The longest line that is read, in bytes.
const LONGEST: u64 = 1024;
/// The port of a server without one.
pub(super) const PORT: u16 = 4223;

/// How this machine connects to the server.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub machine: MachineName,
    /// The host and port of the server.
    pub server: String,
    /// The seed of the machine's key.
    pub(super) seed: String,
    pub(super) pin: Pin,
}

/// Why a line or its file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    #[error("this is not a line of `yoi mesh init --add`: {0}")]
    Line(&'static str),
    #[error(transparent)]
    Name(#[from] BadName),
    #[error("others can read {}, which holds the key of this machine: run chmod 600 {}", .0.display(), .0.display())]
    Readable(PathBuf),
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Without the key.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({} at {})", self.machine, self.server)
    }
}

impl Credentials {
    /// Reads the line that `yoi mesh init --add` printed.
    ///
    /// # Errors
    /// It is no such line.
    pub fn parse(line: &str) -> Result<Self, CredentialsError> {
        let wrong = CredentialsError::Line;
        let line = line.trim();
        let url = reqwest::Url::parse(line).map_err(|_| wrong("it is no address"))?;
        if url.scheme() != "nats" {
            return Err(wrong("it begins with nats://"));
        }
        let machine = MachineName::parse(url.username())?;
        let seed = url.password().unwrap_or_default().to_owned();
        secrets::register(&seed);
        if !seed.starts_with("SU") || KeyPair::from_seed(&seed).is_err() {
            return Err(wrong("its key is damaged"));
        }
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| wrong("it names no server"))?;
        let server = format!("{host}:{}", url.port().unwrap_or(PORT));
        let pin = Pin::parse(url.path().trim_start_matches('/'));
        let pin = pin.ok_or_else(|| wrong("the hash of the certificate at its end is damaged"))?;
        Ok(Self { machine, server, seed, pin })
    }

    /// The line, with the key.
    pub fn line(&self) -> String {
        format!("nats://{}:{}@{}/{}", self.machine, self.seed, self.server, self.pin)
    }

    /// What tells these machines from others: the name of this one, and the certificate of the server.
    pub fn network(&self) -> String {
        format!("{} {}", self.machine, self.pin)
    }

    /// The directory of the file.
    pub fn dir(state: &Path) -> PathBuf {
        state.join(DIR)
    }

    /// What is stored below the state directory; `None`: this machine reaches no others.
    ///
    /// # Errors
    /// The file cannot be read, others can read it, or it is damaged.
    pub fn read(state: &Path) -> Result<Option<Self>, CredentialsError> {
        let path = Self::dir(state).join(FILE);
        let file = match open_regular(&path).map_err(DiskError::at("read", &path)) {
            Err(error) if error.is_missing() => return Ok(None),
            file => file?,
        };
        let mode = file.metadata().map_err(DiskError::at("read", &path))?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(CredentialsError::Readable(path));
        }
        let mut line = String::new();
        file.take(LONGEST).read_to_string(&mut line).map_err(DiskError::at("read", &path))?;
        Self::parse(&line).map(Some)
    }

    /// Stores the line below the state directory, mode 0600. A running host notices.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, state: &Path) -> Result<(), DiskError> {
        let dir = Self::dir(state);
        private_dir(&dir)?;
        replace(&dir.join(FILE), format!("{}\n", self.line()).as_bytes(), 0o600)
    }

    /// Removes what is stored; whether anything was.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn remove(state: &Path) -> Result<bool, DiskError> {
        let path = Self::dir(state).join(FILE);
        match std::fs::remove_file(&path).map_err(DiskError::at("remove", &path)) {
            Err(error) if error.is_missing() => Ok(false),
            removed => removed.map(|()| true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(server: &str) -> Credentials {
        let seed = KeyPair::new_user().seed().unwrap();
        let machine = MachineName::parse("casa").unwrap();
        Credentials { machine, server: server.into(), seed, pin: Pin::of(b"a certificate") }
    }

    #[test]
    fn a_line_is_read_as_it_was_printed_and_a_damaged_one_says_what_is_wrong() {
        for server in ["example.org:4223", "10.0.0.7:99", "[::1]:4223"] {
            let credentials = credentials(server);
            let line = credentials.line();
            assert_eq!(Credentials::parse(&format!(" {line}\n")).unwrap(), credentials, "{line}");
            assert!(!format!("{credentials:?}").contains(&credentials.seed));
        }
        let line = credentials("h:1").line();
        let without_port = Credentials::parse(&line.replace("h:1", "h")).unwrap();
        assert_eq!(without_port.server, "h:4223");
        for (part, other) in [
            ("nats:", "http:"),
            ("casa", "Casa"),
            (":SU", ":SA"),
            ("@h:1", "@"),
            (line.rsplit('/').next().unwrap(), "abc"),
        ] {
            let broken = line.replace(part, other);
            assert!(broken != line && Credentials::parse(&broken).is_err(), "{other}");
        }
    }

    #[test]
    fn the_file_is_private_and_one_that_others_can_read_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path().join("state");
        assert!(Credentials::read(&state).unwrap().is_none());
        let credentials = credentials("h:1");
        credentials.write(&state).unwrap();
        let path = Credentials::dir(&state).join(FILE);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Credentials::read(&state).unwrap().unwrap(), credentials);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Credentials::read(&state), Err(CredentialsError::Readable(_))));
        assert!(Credentials::remove(&state).unwrap());
        assert!(!Credentials::remove(&state).unwrap());
    }
}
