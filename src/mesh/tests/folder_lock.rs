//! Locks of folders: among agents of ours, and with the lock of remote-pi's agents.

use crate::config::dirs::Env;
use crate::mesh::{FolderAgent, FolderLock, LockError, remote_pi_locks};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use tokio::task::JoinSet;

/// Directories of locks, ours and remote-pi's, and an agent of a folder.
struct Place {
    temp: tempfile::TempDir,
    agent: FolderAgent,
}

impl Place {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("proj");
        std::fs::create_dir(&folder).unwrap();
        Self { agent: FolderAgent::new(&folder, None), temp }
    }

    fn own(&self) -> PathBuf {
        self.temp.path().join("own")
    }

    fn theirs(&self) -> PathBuf {
        self.temp.path().join("theirs")
    }

    fn named(&self, name: &str) -> FolderAgent {
        FolderAgent::new(&self.agent.folder, Some(name.to_owned()))
    }

    async fn take(&self, agent: &FolderAgent) -> Result<FolderLock, LockError> {
        FolderLock::take(agent, &self.own(), None).await
    }

    /// On the mesh of remote-pi; `data` tells apart programs with data directories of their own.
    async fn take_both(&self, agent: &FolderAgent, data: &str) -> Result<FolderLock, LockError> {
        FolderLock::take(agent, &self.own().join(data), Some(&self.theirs())).await
    }

    /// The one socket in remote-pi's directory.
    fn socket(&self) -> PathBuf {
        let found = std::fs::read_dir(self.theirs()).unwrap().map(|entry| entry.unwrap().path());
        let sockets: Vec<_> = found.filter(|path| path.extension().unwrap() == "sock").collect();
        let [socket] = &sockets[..] else { panic!("{sockets:?}") };
        socket.clone()
    }
}

/// The lock as agents of remote-pi take it.
fn cwd_lock(path: &Path) -> Option<UnixListener> {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    if let Ok(held) = UnixListener::bind(path) {
        return Some(held);
    }
    if UnixStream::connect(path).is_ok() {
        return None;
    }
    std::fs::remove_file(path).unwrap();
    UnixListener::bind(path).ok()
}

#[tokio::test]
async fn one_agent_holds_the_lock_of_a_folder_and_a_name_until_it_ends() {
    let place = Place::new();
    let held = place.take(&place.agent).await.unwrap();
    assert!(held.is_held());
    let refused = place.take(&place.agent).await.unwrap_err().to_string();
    let own = format!("as `proj` (process {})", std::process::id());
    assert!(refused.contains(&own) && refused.contains("another name"), "{refused}");
    let _other = place.take(&place.named("reviewer")).await.unwrap();
    let linked = place.temp.path().join("linked");
    std::os::unix::fs::symlink(&place.agent.folder, &linked).unwrap();
    place.take(&FolderAgent::new(&linked, Some("proj".into()))).await.unwrap_err();
    drop(held);
    place.take(&place.agent).await.unwrap();
}

#[tokio::test]
async fn of_many_that_take_a_lock_at_once_one_gets_it_also_where_a_crash_left_it() {
    for crashed in [false, true] {
        for both in [false, true] {
            let place = std::sync::Arc::new(Place::new());
            if crashed {
                let held = place.take_both(&place.agent, "x").await.unwrap();
                let socket = place.socket();
                drop(held);
                drop(UnixListener::bind(&socket).unwrap());
            }
            let mut taking = JoinSet::new();
            for number in 0..16 {
                let place = place.clone();
                taking.spawn(async move {
                    match both {
                        false => place.take(&place.agent).await,
                        true => place.take_both(&place.agent, &number.to_string()).await,
                    }
                });
            }
            let held: Vec<_> = taking.join_all().await.into_iter().flatten().collect();
            assert_eq!(held.len(), 1, "crashed: {crashed}, both: {both}");
            assert!(held[0].is_held());
        }
    }
}

#[tokio::test]
async fn the_lock_is_respected_by_agents_of_remote_pi_and_respects_theirs() {
    let place = Place::new();
    let held = place.take_both(&place.agent, "a").await.unwrap();
    let socket = place.socket();
    for _ in 0..300 {
        assert!(cwd_lock(&socket).is_none(), "an agent of remote-pi took a held lock");
        tokio::task::yield_now().await;
    }
    drop(held);
    assert!(!socket.exists());
    let theirs = cwd_lock(&socket).unwrap();
    let refused = place.take_both(&place.agent, "a").await.unwrap_err().to_string();
    assert!(refused.contains("an agent of remote-pi already serves"), "{refused}");
    let _other = place.take_both(&place.named("reviewer"), "a").await.unwrap();
    // As after kill -9: the file stays and no process listens.
    drop(theirs);
    let held = place.take_both(&place.agent, "a").await.unwrap();
    assert!(cwd_lock(&socket).is_none() && held.is_held());
    std::fs::remove_file(&socket).unwrap();
    let _thief = cwd_lock(&socket).unwrap();
    assert!(!held.is_held());
    drop(held);
    assert!(socket.exists(), "a lock that was lost is not removed");
}

#[tokio::test]
async fn the_lock_lies_where_remote_pi_has_it() {
    let place = Place::new();
    let _held = place.take_both(&FolderAgent::new(Path::new("/tmp"), None), "a").await.unwrap();
    assert_eq!(place.socket(), place.theirs().join("6WcazSRIScVx.sock"));
    let env = |all: &[(&str, &str)]| -> Env {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let socket = Path::new("/home/u/.pi/remote/sessions/local/broker.sock");
    let locks = |env: &Env| remote_pi_locks(socket, env);
    assert_eq!(locks(&env(&[("HOME", "/home/u")])), Some("/home/u/.pi/remote/locks".into()));
    let moved = env(&[("HOME", "/home/u"), ("REMOTE_PI_HOME", "/srv/pi")]);
    assert_eq!(locks(&moved), Some("/srv/pi/.pi/remote/locks".into()));
    assert_eq!(remote_pi_locks(Path::new("/run/user/1/yoi/.mesh/sock"), &moved), None);
}
