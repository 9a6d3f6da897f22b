//! The directory of a NATS server: its configuration, certificate and keys, and the machines that it admits.

/// The text of the configuration.
mod configuration;
/// The certificate of the server.
mod certificate;
/// The streams of machines, which the administrator makes.
mod streams;

use crate::disk::{DiskError, private_dir, replace};
use crate::mesh::machines::credentials::{Credentials, PORT};
use crate::mesh::machines::link::{self, LinkError};
use crate::mesh::machines::name::MachineName;
use crate::mesh::machines::tls::Pin;
use crate::trace::secrets;
use nkeys::KeyPair;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a server may take to read its configuration again.
const RELOAD: Duration = Duration::from_secs(10);
/// Between two tries to connect meanwhile.
const AGAIN: Duration = Duration::from_millis(100);
/// The name of the process.
const PROGRAM: &str = "nats-server";

/// Why something could not be done with a server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("{} holds no server: `yoi mesh init {}` makes one", .0.display(), .0.display())]
    NotThere(PathBuf),
    #[error("the path {} holds a quote, a backslash or a line break, which a configuration cannot name", .0.display())]
    Path(PathBuf),
    #[error("{path} is damaged: {why}", path = .0.display(), why = .1)]
    Damaged(PathBuf, String),
    #[error("`{0}` is no address: write a host name, or <host>:<port>")]
    Address(String),
    #[error("a key or certificate cannot be made: {0}")]
    Key(String),
    #[error("the server does not run: start it with `nats-server -c {}`, then run this again", .0.display())]
    NotRunning(PathBuf),
    #[error("the server did not take the machine up: {0}; its log says more")]
    NotTaken(LinkError),
    #[error("the administrator cannot connect: {0}")]
    Administrator(LinkError),
    #[error("the server refused `{0}`: {1}")]
    Request(String, String),
    #[error("the server admits no machine `{0}`")]
    NoSuchMachine(MachineName),
}

/// The directory of a server. Holding it locks it.
#[derive(Debug)]
pub struct ServerDir {
    dir: PathBuf,
    registry: Registry,
    _lock: File,
}

/// Which machines there are, with their public keys; `machines.toml`.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Registry {
    /// The host and port by which machines reach the server.
    address: String,
    #[serde(default)]
    machines: BTreeMap<String, String>,
}

impl ServerDir {
    /// Makes what is missing, and writes the configuration. An address is kept if none is given.
    ///
    /// # Errors
    /// A file cannot be read or written, or the address is none.
    pub fn init(dir: &Path, address: Option<&str>) -> Result<Self, ServerError> {
        private_dir(dir)?;
        let mut server = Self::locked(dir)?;
        if let Some(address) = address {
            server.registry.address = with_port(address)?;
        } else if server.registry.address.is_empty() {
            server.registry.address = with_port(&host_name())?;
        }
        certificate::make(&server.dir, &server.registry.address)?;
        let key = server.dir.join(ADMINISTRATOR);
        if !key.exists() {
            replace(&key, new_seed()?.as_bytes(), 0o600)?;
        }
        server.write()?;
        Ok(server)
    }

    /// A server that was made before.
    ///
    /// # Errors
    /// There is none, or its files cannot be read.
    pub fn open(dir: &Path) -> Result<Self, ServerError> {
        if !dir.join(REGISTRY).is_file() {
            return Err(ServerError::NotThere(dir.to_owned()));
        }
        Self::locked(dir)
    }

    fn locked(dir: &Path) -> Result<Self, ServerError> {
        let dir = fs::canonicalize(dir).map_err(DiskError::at("find", dir))?;
        let text = dir.to_str().filter(|text| !text.contains(['"', '\\', '\n', '\r']));
        if text.is_none() {
            return Err(ServerError::Path(dir));
        }
        let path = dir.join(REGISTRY);
        // The directory itself is the lock: files in it are replaced. Another change ends within seconds.
        let lock = File::open(&dir).map_err(DiskError::at("open", &dir))?;
        lock.lock().map_err(DiskError::at("lock", &dir))?;
        let registry = match fs::read_to_string(&path).map_err(DiskError::at("read", &path)) {
            Err(error) if error.is_missing() => Registry::default(),
            text => {
                let damaged =
                    |error: toml::de::Error| ServerError::Damaged(path, error.message().into());
                toml::from_str(&text?).map_err(damaged)?
            }
        };
        Ok(Self { dir, registry, _lock: lock })
    }

    fn write(&self) -> Result<(), ServerError> {
        let path = self.dir.join(REGISTRY);
        let text = toml::to_string(&self.registry);
        let text = text.map_err(|error| ServerError::Damaged(path.clone(), error.to_string()))?;
        replace(&path, text.as_bytes(), 0o600)?;
        let text = configuration::text(&self.dir, &self.registry, &self.administrator()?.public);
        replace(&self.configuration(), text.as_bytes(), 0o600)?;
        Ok(())
    }

    /// The file that `nats-server -c` takes.
    pub fn configuration(&self) -> PathBuf {
        self.dir.join(CONFIGURATION)
    }

    /// The host and port by which machines reach the server.
    pub fn address(&self) -> &str {
        &self.registry.address
    }

    /// The machines that the server admits.
    pub fn machines(&self) -> impl Iterator<Item = &str> {
        self.registry.machines.keys().map(String::as_str)
    }

    /// Has the running server admit a machine, and makes its stream. The key is new: one that the machine had before
    /// is refused from now on. What the server holds for the machine stays.
    ///
    /// # Errors
    /// The server does not run, or does not take the change up.
    pub async fn add(&mut self, machine: MachineName) -> Result<Credentials, ServerError> {
        let process = self.process()?;
        // The stream comes first: if the server does not answer, no file has changed yet.
        let administrator = self.administrator()?;
        until_taken_up(async || streams::make(&administrator, &machine).await).await?;
        let seed = new_seed()?;
        self.registry.machines.insert(machine.to_string(), public_key(&seed)?);
        self.write()?;
        reload(process);
        let pin = certificate::pin(&self.dir)?;
        let credentials = Credentials { machine, server: self.registry.address.clone(), seed, pin };
        let here = Credentials { server: self.local_address(), ..credentials.clone() };
        until_taken_up(async || link::admitted(&here).await)
            .await
            .map_err(ServerError::NotTaken)?;
        Ok(credentials)
    }

    /// Has the running server refuse a machine, and deletes what it holds for it.
    ///
    /// # Errors
    /// As for `add`; or there is no such machine.
    pub async fn remove(&mut self, machine: &MachineName) -> Result<(), ServerError> {
        let process = self.process()?;
        if self.registry.machines.remove(machine.as_str()).is_none() {
            return Err(ServerError::NoSuchMachine(machine.clone()));
        }
        self.write()?;
        reload(process);
        let administrator = self.administrator()?;
        until_taken_up(async || streams::delete(&administrator, machine).await).await
    }

    fn administrator(&self) -> Result<Administrator, ServerError> {
        let path = self.dir.join(ADMINISTRATOR);
        let seed = fs::read_to_string(&path).map_err(DiskError::at("read", &path))?;
        let seed = seed.trim().to_owned();
        secrets::register(&seed);
        let (public, pin) = (public_key(&seed)?, certificate::pin(&self.dir)?);
        Ok(Administrator { server: self.local_address(), seed, public, pin })
    }

    /// By which the server is reached on its own machine.
    fn local_address(&self) -> String {
        let (host, port) = parts(&self.registry.address);
        if is_loopback(host) { format!("{host}:{port}") } else { format!("127.0.0.1:{port}") }
    }

    /// The process of the server, by its own word.
    fn process(&self) -> Result<Pid, ServerError> {
        let running = || {
            let text = fs::read_to_string(self.dir.join(PROCESS)).ok()?;
            let number: i32 = text.trim().parse().ok()?;
            let name = fs::read_to_string(format!("/proc/{number}/comm")).ok()?;
            Pid::from_raw(number).filter(|_| name.trim() == PROGRAM)
        };
        running().ok_or_else(|| ServerError::NotRunning(self.configuration()))
    }
}

/// The files of the directory.
const REGISTRY: &str = "machines.toml";
const CONFIGURATION: &str = "nats-server.conf";
const ADMINISTRATOR: &str = "administrator.key";
const PROCESS: &str = "nats-server.pid";

/// The administrator of a server, who may use every subject.
struct Administrator {
    server: String,
    seed: String,
    public: String,
    pin: Pin,
}

fn new_seed() -> Result<String, ServerError> {
    let seed = KeyPair::new_user().seed().map_err(key_error)?;
    secrets::register(&seed);
    Ok(seed)
}

fn public_key(seed: &str) -> Result<String, ServerError> {
    Ok(KeyPair::from_seed(seed).map_err(key_error)?.public_key())
}

fn key_error(error: impl std::fmt::Display) -> ServerError {
    ServerError::Key(error.to_string())
}

/// Has the server read its configuration again. One that ended meanwhile reads it at its next start.
fn reload(process: Pid) {
    let _ = kill_process(process, Signal::HUP);
}

/// Repeats a request until it succeeds: a server that reads its configuration again refuses some, or does not answer.
async fn until_taken_up<T, E>(mut act: impl AsyncFnMut() -> Result<T, E>) -> Result<T, E> {
    let end = tokio::time::Instant::now() + RELOAD;
    loop {
        match act().await {
            Err(_) if tokio::time::Instant::now() < end => tokio::time::sleep(AGAIN).await,
            outcome => return outcome,
        }
    }
}

fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// A host and a port, which may be missing.
fn with_port(address: &str) -> Result<String, ServerError> {
    let wrong = || ServerError::Address(address.to_owned());
    let url = reqwest::Url::parse(&format!("nats://{address}")).map_err(|_| wrong())?;
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
    let is_plain = url.username().is_empty() && matches!(url.path(), "" | "/");
    let is_host = !host.contains(['"', '\\', '%']);
    if !is_plain || !is_host || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong());
    }
    Ok(format!("{host}:{}", url.port().unwrap_or(PORT)))
}

fn parts(address: &str) -> (&str, &str) {
    address.rsplit_once(':').unwrap_or((address, ""))
}

fn is_loopback(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_server_is_made_once_and_keeps_its_keys_which_no_other_user_can_read() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a/server");
        assert!(matches!(ServerDir::open(&dir), Err(ServerError::NotThere(_))));
        let made = ServerDir::init(&dir, Some("example.org")).unwrap();
        assert_eq!(made.address(), "example.org:4223");
        assert!(File::open(&dir).unwrap().try_lock().is_err(), "it is locked while it is held");
        drop(made);
        let files = || {
            let entries = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
            let mut files: Vec<(PathBuf, Vec<u8>)> =
                entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
            files.sort();
            files
        };
        let before = files();
        drop(ServerDir::init(&dir, None).unwrap());
        assert_eq!(files(), before);
        for (path, _) in before {
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0, "{path:?}");
        }
        let moved = ServerDir::init(&dir, Some("10.0.0.7:99")).unwrap();
        assert_eq!(
            (moved.address(), moved.local_address()),
            ("10.0.0.7:99", "127.0.0.1:99".into())
        );
    }

    #[tokio::test]
    async fn a_machine_is_added_to_a_running_server_only() {
        let temp = tempfile::tempdir().unwrap();
        let mut server = ServerDir::init(temp.path(), Some("localhost")).unwrap();
        // The number of a process that is no server.
        fs::write(temp.path().join(PROCESS), std::process::id().to_string()).unwrap();
        let error = server.add(MachineName::parse("casa").unwrap()).await.unwrap_err();
        assert!(matches!(error, ServerError::NotRunning(_)), "{error}");
        assert_eq!(server.machines().count(), 0);
    }

    #[test]
    fn an_address_is_a_host_with_or_without_a_port() {
        for (address, whole) in [("h", "h:4223"), ("h:1", "h:1"), ("[::1]:1", "[::1]:1")] {
            assert_eq!(with_port(address).unwrap(), whole);
        }
        for wrong in ["", "h:x", "a b", "h/x", "u@h", "h:1?x", "\"h"] {
            assert!(with_port(wrong).is_err(), "{wrong}");
        }
    }
}
