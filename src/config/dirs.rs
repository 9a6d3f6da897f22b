//! Where yoi keeps its files: found from an environment, made private.

use crate::protocol::name::MAX_NAME;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// An environment: what a client or a test hands over.
pub type Env = BTreeMap<String, String>;

/// The value of a variable; an empty one counts as unset.
pub fn var<'a>(env: &'a Env, name: &str) -> Option<&'a str> {
    env.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

/// The longest path a Unix socket can have, in bytes.
const LONGEST_SOCKET: usize = 107;

/// The file in a runtime directory that names the data directory it serves. No Pod can be called
/// so, as names start with a letter or digit.
const CLAIM: &str = ".data";

/// yoi's directories cannot be found or used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("HOME is not set: set it, or YOI_HOME")]
    NoHome,
    #[error("{name} must be an absolute path, not {value}")]
    Relative { name: String, value: String },
    #[error("cannot use the directory {}: {cause}", dir.display())]
    Unusable { dir: PathBuf, cause: io::Error },
    #[error("{} is not a directory of yours: remove it or set YOI_RUNTIME_DIR", dir.display())]
    NotADirectory { dir: PathBuf },
    #[error(
        "{} belongs to another user (uid {owner}), who could change your settings and read what your pods write: \
         set YOI_HOME to a directory of your own",
        dir.display()
    )]
    Foreign { dir: PathBuf, owner: u32 },
    #[error(
        "other users can write to {} (mode {mode:03o}), so the settings in it may not be yours: look at what lies \
         there, then run `chmod go-w {}`, or set YOI_HOME to a directory of your own",
        dir.display(), dir.display()
    )]
    Writable { dir: PathBuf, mode: u32 },
    #[error(
        "{} is the runtime directory of {}: give {} its own with YOI_RUNTIME_DIR",
        dir.display(), owner.display(), data.display()
    )]
    Shared { dir: PathBuf, owner: PathBuf, data: PathBuf },
}

/// The directories of yoi in this user's account by the XDG rules, as the program found them when it read
/// its own environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usual {
    pub config: PathBuf,
    pub data: PathBuf,
    pub state: PathBuf,
    /// Absent where `XDG_RUNTIME_DIR` names no absolute path.
    pub runtime: Option<PathBuf>,
}

/// yoi's directories, all absolute; nothing is made before [`Dirs::make`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirs {
    /// Settings and stored keys.
    pub config: PathBuf,
    /// Logs and the store.
    pub data: PathBuf,
    /// Sockets; serves exactly one data directory.
    pub runtime: PathBuf,
    /// Log files of the program itself.
    pub state: PathBuf,
    /// `YOI_HOME`.
    home: Option<PathBuf>,
    /// Whether the runtime directory was named by the person, so that no other may be taken.
    explicit: bool,
}

impl Dirs {
    /// `YOI_*_DIR`, else below `YOI_HOME`, else the usual places, which are absent where the account has no
    /// home directory. A data directory elsewhere keeps its sockets and log files with it.
    pub fn find(env: &Env, usual: Option<&Usual>) -> Result<Self, ConfigError> {
        let home = absolute(env, "YOI_HOME")?;
        let below = |name: &str, of: fn(&Usual) -> &PathBuf| match (&home, usual) {
            (Some(home), _) => Ok(home.join(name)),
            (None, Some(usual)) => {
                absolute(env, "HOME")?;
                Ok(of(usual).clone())
            }
            (None, None) => Err(ConfigError::NoHome),
        };
        let place = |own: &str, usual: Result<PathBuf, ConfigError>| match absolute(env, own)? {
            Some(dir) => Ok((dir.clone(), usual.is_ok_and(|usual| usual == dir))),
            None => Ok((usual?, true)),
        };
        let (config, _) = place("YOI_CONFIG_DIR", below("config", |usual| &usual.config))?;
        let (data, is_usual) = place("YOI_DATA_DIR", below("data", |usual| &usual.data))?;
        let named = absolute(env, "YOI_RUNTIME_DIR")?;
        let explicit = named.is_some();
        let usual_runtime = usual.and_then(|usual| usual.runtime.as_ref());
        // A data directory elsewhere keeps its sockets with it: it never meets another one's.
        let runtime = match (named, &home, usual_runtime) {
            (Some(dir), _, _) => dir,
            (None, Some(home), _) if is_usual => home.join("run"),
            (None, None, Some(dir)) if is_usual => dir.clone(),
            _ => data.join("run"),
        };
        let state = match absolute(env, "YOI_STATE_DIR")? {
            Some(dir) => dir,
            None if !is_usual => data.join("state"),
            None => below("state", |usual| &usual.state)?,
        };
        Ok(Self { config, data, runtime, state, home, explicit })
    }

    /// The same, refused where another user can change what lies in a directory. Makes nothing.
    pub fn open(env: &Env, usual: Option<&Usual>) -> Result<Self, ConfigError> {
        let dirs = Self::find(env, usual)?;
        dirs.check()?;
        Ok(dirs)
    }

    /// Refuses directories of other users and those that other users can write to. A runtime directory that
    /// no person named is left aside instead, see [`Dirs::make`].
    fn check(&self) -> Result<(), ConfigError> {
        let runtime = self.explicit.then_some(&self.runtime);
        let own = [&self.config, &self.data, &self.state];
        own.into_iter().chain(&self.home).chain(runtime).try_for_each(|dir| ours(dir))
    }

    /// Makes the directories, 0700, and takes the runtime directory for this data directory. One
    /// that serves another data directory is left alone: `<data>/run` is taken instead, or, where
    /// the person named it, that is an error.
    pub fn make(&mut self) -> Result<(), ConfigError> {
        self.check()?;
        match private_tree(&self.config) {
            // Settings are only read where the system keeps them read-only.
            Err(cause)
                if cause.kind() == io::ErrorKind::ReadOnlyFilesystem && self.config.is_dir() => {}
            made => made.map_err(|cause| unusable(&self.config, cause))?,
        }
        private_tree(&self.data).map_err(|cause| unusable(&self.data, cause))?;
        match claim(&self.runtime, &self.data) {
            Err(
                ConfigError::Shared { .. }
                | ConfigError::Unusable { .. }
                | ConfigError::Foreign { .. }
                | ConfigError::Writable { .. },
            ) if !self.explicit => {
                self.runtime = self.data.join("run");
                claim(&self.runtime, &self.data)
            }
            other => other,
        }
    }

    /// Takes `<data>/run` as the runtime directory, made and claimed; whether it was another one
    /// before.
    pub fn move_runtime(&mut self) -> Result<bool, ConfigError> {
        let below_data = self.data.join("run");
        if self.runtime == below_data {
            return Ok(false);
        }
        claim(&below_data, &self.data)?;
        self.runtime = below_data;
        Ok(true)
    }

    /// Where a socket lies: `<runtime>/<name>/sock`, or below `/tmp` if that path is too long for
    /// a socket. Pure; see [`Dirs::make_socket_dir`].
    pub fn socket(&self, name: &str) -> PathBuf {
        let path = self.runtime.join(name).join("sock");
        if path.as_os_str().len() <= LONGEST_SOCKET {
            return path;
        }
        self.short().join(name).join("sock")
    }

    /// The host's own socket.
    pub fn host_socket(&self) -> PathBuf {
        self.socket(".host")
    }

    /// Every Pod's socket that lies there, whether anybody listens or not.
    pub fn sockets(&self) -> Vec<PathBuf> {
        let places = [self.runtime.clone(), self.short()];
        let entries = places.iter().flat_map(std::fs::read_dir).flatten().flatten();
        let pods = entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
        let sockets = pods.map(|pod| pod.path().join("sock"));
        sockets.filter(|socket| socket.symlink_metadata().is_ok()).collect()
    }

    /// Makes the directory of a socket, 0700 and ours, and answers the socket's path.
    pub fn make_socket_dir(&self, name: &str) -> Result<PathBuf, ConfigError> {
        let socket = self.socket(name);
        let (Some(dir), short) = (socket.parent(), self.short()) else { return Ok(socket) };
        if dir.starts_with(&short) {
            own_dir(&short)?;
        }
        private_tree(dir).map_err(|cause| unusable(dir, cause))?;
        Ok(socket)
    }

    /// yoi's own directories, that of sockets with long paths too: no Pod's scope ever includes them.
    pub fn own(&self) -> Vec<PathBuf> {
        let named = [&self.config, &self.data, &self.runtime, &self.state];
        let longest = self.runtime.join("n".repeat(MAX_NAME)).join("sock");
        let is_long = longest.as_os_str().len() > LONGEST_SOCKET;
        named.into_iter().cloned().chain(is_long.then(|| self.short())).collect()
    }

    /// The directory of the working trees that are made for Pods. It lies beside the state directory, outside of every
    /// directory of yoi: those are hidden from all commands, and a Pod works in its working tree.
    pub fn worktrees(&self) -> PathBuf {
        let own = self.own();
        let mut beside = &self.state;
        while let Some(outer) = own.iter().find(|dir| *dir != beside && beside.starts_with(dir)) {
            beside = outer;
        }
        let name = beside.file_name().unwrap_or(OsStr::new("yoi")).to_string_lossy();
        beside.with_file_name(format!("{name}-worktrees"))
    }

    fn short(&self) -> PathBuf {
        let hash = blake3::hash(self.runtime.as_os_str().as_bytes()).to_hex();
        Path::new(SHORT_DIRS).join(short_prefix() + &hash[..12])
    }
}

/// Where sockets lie whose paths are too long elsewhere.
pub const SHORT_DIRS: &str = "/tmp";

/// How the names of this user's directories there begin.
#[must_use]
pub fn short_prefix() -> String {
    format!("yoi-{}-", rustix::process::getuid().as_raw())
}

fn unusable(dir: &Path, cause: io::Error) -> ConfigError {
    ConfigError::Unusable { dir: dir.into(), cause }
}

fn absolute(env: &Env, name: &str) -> Result<Option<PathBuf>, ConfigError> {
    match var(env, name) {
        None => Ok(None),
        Some(value) if value.starts_with('/') => Ok(Some(value.into())),
        Some(value) => Err(ConfigError::Relative { name: name.into(), value: value.into() }),
    }
}

/// Makes a directory and what is missing above it, each 0700; one of ours that exists is made
/// private too.
pub fn private_tree(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let found = fs::metadata(dir)?;
    if found.permissions().mode() & 0o077 != 0 && found.uid() == rustix::process::getuid().as_raw()
    {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Refuses a directory that another user owns or can write to. One that does not exist is made later.
fn ours(dir: &Path) -> Result<(), ConfigError> {
    let found = match fs::metadata(dir) {
        Ok(found) => found,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(unusable(dir, cause)),
    };
    let (owner, mode) = (found.uid(), found.permissions().mode() & 0o777);
    if owner != rustix::process::getuid().as_raw() {
        return Err(ConfigError::Foreign { dir: dir.into(), owner });
    }
    if mode & 0o022 != 0 {
        return Err(ConfigError::Writable { dir: dir.into(), mode });
    }
    Ok(())
}

/// A directory in a place where anybody may have made one before us.
fn own_dir(dir: &Path) -> Result<(), ConfigError> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => {
            return Err(unusable(dir, cause));
        }
        _ => {}
    }
    let found = fs::symlink_metadata(dir).map_err(|cause| unusable(dir, cause))?;
    if !found.is_dir() {
        return Err(ConfigError::NotADirectory { dir: dir.into() });
    }
    ours(dir)?;
    private_tree(dir).map_err(|cause| unusable(dir, cause))
}

/// Takes a runtime directory for a data directory. A claim of a data directory that is gone
/// lapses.
fn claim(runtime: &Path, data: &Path) -> Result<(), ConfigError> {
    ours(runtime)?;
    private_tree(runtime).map_err(|cause| unusable(runtime, cause))?;
    let file = runtime.join(CLAIM);
    match fs::read(&file) {
        Ok(owner) => {
            let owner = PathBuf::from(std::ffi::OsStr::from_bytes(&owner));
            if owner == data {
                return Ok(());
            }
            if owner.exists() {
                return Err(ConfigError::Shared { dir: runtime.into(), owner, data: data.into() });
            }
        }
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
        Err(cause) => return Err(unusable(runtime, cause)),
    }
    let write = || {
        let mut new = tempfile::NamedTempFile::new_in(runtime)?;
        new.write_all(data.as_os_str().as_bytes())?;
        new.persist(&file).map_err(|error| error.error)
    };
    write().map(drop).map_err(|cause| unusable(runtime, cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    /// The usual places of a home directory, with a directory for sockets.
    fn usual(home: &str, runtime: Option<&str>) -> Usual {
        let at = |place: &str| Path::new(home).join(place).join("yoi");
        Usual {
            config: at(".config"),
            data: at(".local/share"),
            state: at(".local/state"),
            runtime: runtime.map(|dir| Path::new(dir).join("yoi")),
        }
    }

    fn find(pairs: &[(&str, &str)]) -> Result<Dirs, ConfigError> {
        Dirs::find(&env(pairs), Some(&usual("/h", Some("/r"))))
    }

    fn found(pairs: &[(&str, &str)]) -> [String; 3] {
        let dirs = find(pairs).unwrap();
        [dirs.config, dirs.data, dirs.runtime].map(|dir| dir.display().to_string())
    }

    #[test]
    fn the_state_directory_is_named_or_lies_beside_the_others() {
        let found = |pairs: &[(&str, &str)]| find(pairs).unwrap().state;
        assert_eq!(found(&[]), Path::new("/h/.local/state/yoi"));
        assert_eq!(found(&[("YOI_HOME", "/y")]), Path::new("/y/state"));
        assert_eq!(found(&[("YOI_DATA_DIR", "/d")]), Path::new("/d/state"));
        assert_eq!(found(&[("YOI_STATE_DIR", "/t")]), Path::new("/t"));
    }

    #[test]
    fn working_trees_lie_beside_the_state_directory_and_in_no_directory_of_yoi() {
        let places = |pairs: &[(&str, &str)]| {
            let dirs = find(pairs).unwrap();
            let place = dirs.worktrees();
            assert!(!dirs.own().iter().any(|own| place.starts_with(own)), "{place:?}");
            place.display().to_string()
        };
        assert_eq!(places(&[("YOI_HOME", "/y")]), "/y/state-worktrees");
        assert_eq!(places(&[("YOI_HOME", "/y"), ("YOI_DATA_DIR", "/d/x")]), "/d/x-worktrees");
        let inner = [("YOI_HOME", "/y"), ("YOI_CONFIG_DIR", "/d"), ("YOI_DATA_DIR", "/d/x")];
        assert_eq!(places(&inner), "/d-worktrees");
    }

    #[test]
    fn directories_are_found_in_the_documented_order() {
        assert_eq!(found(&[]), ["/h/.config/yoi", "/h/.local/share/yoi", "/r/yoi"]);
        let without_sockets = Dirs::find(&Env::new(), Some(&usual("/h", None))).unwrap();
        assert_eq!(without_sockets.runtime, Path::new("/h/.local/share/yoi/run"));
        assert_eq!(found(&[("YOI_HOME", "/y")]), ["/y/config", "/y/data", "/y/run"]);
        let named = [("YOI_CONFIG_DIR", "/1"), ("YOI_DATA_DIR", "/2"), ("YOI_RUNTIME_DIR", "/3")];
        assert_eq!(found(&named), ["/1", "/2", "/3"]);
    }

    #[test]
    fn an_empty_variable_is_unset_and_a_relative_one_is_refused() {
        assert_eq!(found(&[("YOI_HOME", ""), ("YOI_DATA_DIR", "")])[1], "/h/.local/share/yoi");
        for name in ["YOI_DATA_DIR", "YOI_HOME", "HOME"] {
            let relative = find(&[(name, "data")]).unwrap_err().to_string();
            assert_eq!(relative, format!("{name} must be an absolute path, not data"));
        }
        assert!(matches!(Dirs::find(&Env::new(), None), Err(ConfigError::NoHome)));
    }

    #[test]
    fn another_data_directory_never_gets_the_usual_runtime_directory() {
        assert_eq!(found(&[("YOI_DATA_DIR", "/d")])[2], "/d/run");
        assert_eq!(found(&[("YOI_HOME", "/y"), ("YOI_DATA_DIR", "/d")])[2], "/d/run");
        assert_eq!(found(&[("YOI_DATA_DIR", "/h/.local/share/yoi")])[2], "/r/yoi");
    }

    #[test]
    fn a_runtime_directory_serves_one_data_directory_at_a_time() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name).display().to_string();
        let dirs =
            |home: &str| Dirs::find(&Env::new(), Some(&usual(&at(home), Some(&at("r"))))).unwrap();
        let (mut first, mut second) = (dirs("a"), dirs("b"));
        first.make().unwrap();
        first.make().unwrap();
        second.make().unwrap();
        assert_eq!(first.runtime, top.path().join("r/yoi"));
        assert_eq!(second.runtime, second.data.join("run"));
        for dir in [&first.config, &first.data, &first.runtime, &second.runtime] {
            assert_eq!(fs::metadata(dir).unwrap().permissions().mode() & 0o777, 0o700);
        }
        fs::remove_dir_all(&first.data).unwrap();
        let mut third = dirs("c");
        third.make().unwrap();
        assert_eq!(third.runtime, first.runtime, "the claim of a data directory gone lapses");
    }

    #[test]
    fn a_named_runtime_directory_of_another_is_an_error_that_names_both() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name).display().to_string();
        let dirs = |home: &str| {
            Dirs::find(&env(&[("YOI_HOME", &at(home)), ("YOI_RUNTIME_DIR", &at("r"))]), None)
                .unwrap()
        };
        dirs("a").make().unwrap();
        let sentence = dirs("b").make().unwrap_err().to_string();
        assert!(sentence.contains("/a/data") && sentence.contains("/b/data"), "{sentence}");
    }

    #[test]
    fn a_socket_path_that_is_too_long_moves_to_a_private_place_of_its_runtime_directory() {
        let long = format!("/{}", "d".repeat(90));
        let dirs = |runtime: &str| {
            Dirs::find(&env(&[("YOI_HOME", "/y"), ("YOI_RUNTIME_DIR", runtime)]), None).unwrap()
        };
        assert_eq!(dirs("/r").socket("alice"), Path::new("/r/alice/sock"));
        let name = "n".repeat(64);
        let moved = dirs(&long).socket(&name);
        assert!(moved.as_os_str().len() <= LONGEST_SOCKET && moved.starts_with("/tmp"));
        assert_ne!(moved, dirs(&format!("{long}x")).socket(&name));
        assert_eq!(dirs(&long).socket("a"), Path::new(&long).join("a/sock"));
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        let top = tempfile::tempdir().unwrap();
        let link = top.path().join("link");
        std::os::unix::fs::symlink(top.path(), &link).unwrap();
        assert!(matches!(own_dir(&link), Err(ConfigError::NotADirectory { .. })));
        own_dir(&top.path().join("new")).unwrap();
        own_dir(&top.path().join("new")).unwrap();
    }

    fn home_of(top: &Path) -> Env {
        env(&[("YOI_HOME", &top.display().to_string())])
    }

    #[test]
    fn a_directory_that_other_users_can_write_to_is_refused_with_the_way_out() {
        for place in ["", "config", "data", "state"] {
            let top = tempfile::tempdir().unwrap();
            let dir = top.path().join(place);
            fs::create_dir_all(&dir).unwrap();
            for mode in [0o777, 0o770, 0o1777] {
                fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
                let sentence = Dirs::open(&home_of(top.path()), None).unwrap_err().to_string();
                assert!(
                    sentence.contains("chmod go-w") && sentence.contains("YOI_HOME"),
                    "{sentence}"
                );
                assert!(Dirs::find(&home_of(top.path()), None).unwrap().make().is_err());
            }
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
            Dirs::open(&home_of(top.path()), None).unwrap().make().unwrap();
        }
    }

    #[test]
    fn a_directory_that_another_user_owns_is_refused_with_the_way_out() {
        if !rustix::process::getuid().is_root() {
            eprintln!("only root can make a directory of another user: not tested");
            return;
        }
        for place in ["", "config", "data"] {
            let top = tempfile::tempdir().unwrap();
            let dir = top.path().join(place);
            fs::create_dir_all(&dir).unwrap();
            std::os::unix::fs::chown(&dir, Some(65534), None).unwrap();
            let sentence = Dirs::open(&home_of(top.path()), None).unwrap_err().to_string();
            assert!(sentence.contains("uid 65534") && sentence.contains("YOI_HOME"), "{sentence}");
        }
    }

    #[test]
    fn a_runtime_directory_that_is_not_safe_is_left_aside_unless_it_was_named() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name).display().to_string();
        let unsafe_dir = top.path().join("r/yoi");
        fs::create_dir_all(&unsafe_dir).unwrap();
        fs::set_permissions(&unsafe_dir, fs::Permissions::from_mode(0o777)).unwrap();
        let places = usual(&at("h"), Some(&at("r")));
        let mut dirs = Dirs::open(&Env::new(), Some(&places)).unwrap();
        dirs.make().unwrap();
        assert_eq!(dirs.runtime, dirs.data.join("run"));
        let named = env(&[("YOI_RUNTIME_DIR", &unsafe_dir.display().to_string())]);
        assert!(matches!(Dirs::open(&named, Some(&places)), Err(ConfigError::Writable { .. })));
    }

    #[test]
    fn the_directory_of_sockets_with_long_paths_is_one_of_the_own_directories() {
        let long = format!("/{}", "d".repeat(90));
        let dirs =
            Dirs::find(&env(&[("YOI_HOME", "/y"), ("YOI_RUNTIME_DIR", &long)]), None).unwrap();
        let socket = dirs.socket(&"n".repeat(64));
        assert!(dirs.own().iter().any(|dir| socket.starts_with(dir)), "{}", socket.display());
    }
}
