//! Credentials on real programs: an ssh agent, and a push over ssh.

use crate::bench::{Bench, content, walls};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use yoi::config::settings;
use yoi::protocol::Credential;
use yoi::sandbox::{Isolation, Need};
use yoi::tools::{Credentials, Output};

/// A program that is killed at the end of its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A bench with an ssh agent that holds a key, and the credential `key` for it.
struct Keys {
    bench: Bench,
    socket: PathBuf,
    _agent: Server,
}

/// Runs a program of the person, which must succeed.
fn run(program: &mut Command) {
    let done = program.stdin(Stdio::null()).output().expect("the program starts");
    assert!(done.status.success(), "{program:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Whether credentials are given on this machine.
fn is_given() -> bool {
    let given = walls().isolation() == Isolation::Namespaces && walls().abi > 0;
    if !given {
        println!("not covered: {}", walls().text());
    }
    given
}

fn has(program: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).exists()));
    if !found {
        println!("not covered: {program} is missing");
    }
    found
}

impl Keys {
    fn new() -> Self {
        let mut bench = Bench::new();
        let (key, socket) = (bench.path("outside/key"), bench.path("outside/agent"));
        run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key));
        let mut agent = Command::new("ssh-agent");
        agent.arg("-D").arg("-a").arg(&socket).stdout(Stdio::piped());
        let mut agent = Server(agent.spawn().expect("an agent"));
        // It says where it listens when it does.
        let said = agent.0.stdout.as_mut().expect("its output").read(&mut [0; 64]);
        assert!(said.expect("a word of the agent") > 0);
        run(Command::new("ssh-add").arg("-q").arg(&key).env("SSH_AUTH_SOCK", &socket));
        let credential = settings::Credential { env: Vec::new(), ssh_agent: true };
        let env = BTreeMap::from([("SSH_AUTH_SOCK".to_owned(), socket.display().to_string())]);
        let all = Credentials::of(&BTreeMap::from([("key".to_owned(), credential)]), &env);
        bench.ctx.credentials = Arc::new(all);
        Self { bench, socket, _agent: agent }
    }

    /// Runs a command as one that a person allowed with the credential, with these needs besides.
    async fn with_key(&mut self, command: &str, more: &[Need]) -> Output {
        let key = Credential { name: "key".into(), env: Vec::new(), ssh_agent: true };
        self.bench.ctx.granted_credentials = vec![key];
        self.bench.ctx.needs = more.to_vec();
        let more = more.iter().map(|need| need.word().to_owned());
        let needs: Vec<String> = more.chain(["credential:key".to_owned()]).collect();
        let arguments = json!({ "command": command, "needs": needs, "reason": "r" });
        let output = self.bench.call("Bash", arguments).await;
        self.bench.ctx.granted_credentials.clear();
        self.bench.ctx.needs.clear();
        output
    }

    /// A line that lists the keys of the agent, wherever it is told to look for it.
    fn list(&self) -> String {
        format!("SSH_AUTH_SOCK={} ssh-add -l", self.socket.display())
    }
}

#[tokio::test]
async fn the_ssh_agent_is_reached_by_the_command_with_its_credential_and_by_no_other() {
    if !is_given() || !has("ssh-agent") {
        return;
    }
    let mut keys = Keys::new();
    let list = keys.list();
    // It lists until it sees the keys, or until the other command is over.
    let until = format!("until {list}; do [ -e /tmp/over ] && exit 7; done");
    let beside = json!({ "command": until, "background": true });
    let started = keys.bench.call("Bash", beside).await;
    assert!(!started.is_error, "{started:?}");
    let seen = keys.with_key("ssh-add -l && ls -A ~ && touch /tmp/over", &[]).await;
    assert!(content(&seen).contains("(ED25519)"), "{seen:?}");
    assert!(!content(&seen).contains(".ssh"), "no key of the person is there: {seen:?}");
    let mut ended = keys.bench.records.ended.subscribe();
    ended.wait_for(|ended| !ended.is_empty()).await.expect("the end of the command");
    let result = keys.bench.call("BashOutput", json!({ "id": "job-1" })).await;
    assert!(result.summary.contains("Exit 7"), "{result:?}");
    for line in ["ssh-add -l", &list] {
        let refused = keys.bench.bash(line).await;
        assert!(!refused.summary.starts_with("Exit 0"), "{line}: {refused:?}");
    }
    let asked = json!({ "command": "ssh-add -l", "needs": ["credential:key"], "reason": "r" });
    let refused = keys.bench.call("Bash", asked).await;
    assert!(refused.summary.contains("credential:key was not granted"), "{refused:?}");
}

/// A server that lets in whoever has the key, and its port.
fn sshd(keys: &Keys) -> (Server, u16) {
    let dir = keys.bench.path("outside");
    let host_key = dir.join("host_key");
    run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&host_key));
    fs::copy(dir.join("key.pub"), dir.join("authorized")).expect("the keys that may log in");
    let port =
        TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("it").port();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
         PidFile none\nPasswordAuthentication no\nPermitRootLogin yes\n",
        host_key.display(),
        dir.join("authorized").display(),
    );
    fs::write(dir.join("sshd_config"), config).expect("its settings");
    let mut server = Command::new("/usr/sbin/sshd");
    server.args(["-D", "-e", "-f"]).arg(dir.join("sshd_config")).stderr(Stdio::piped());
    let mut server = Server(server.spawn().expect("a server"));
    let mut said = [0; 256];
    let count = server.0.stderr.as_mut().expect("its errors").read(&mut said).expect("its words");
    let said = String::from_utf8_lossy(&said[..count]).into_owned();
    assert!(said.contains("Server listening"), "{said}");
    // The person has logged in there before.
    let host = fs::read_to_string(host_key.with_extension("pub")).expect("the key of the host");
    let ssh = keys.bench.path("home/.ssh");
    fs::create_dir(&ssh).expect("a directory");
    fs::write(ssh.join("known_hosts"), format!("[127.0.0.1]:{port} {host}")).expect("a known host");
    (server, port)
}

#[tokio::test]
async fn git_pushes_over_ssh_with_a_credential_and_not_without() {
    let has_server = Path::new("/usr/sbin/sshd").exists();
    if !is_given() || !has("ssh-agent") || !has_server {
        println!("not covered, or sshd is missing: {has_server}");
        return;
    }
    let mut keys = Keys::new();
    // Root's server separates its rights in this directory.
    if rustix::process::geteuid().is_root() {
        fs::create_dir_all("/run/sshd").expect("the directory of the server");
    }
    let (_server, port) = sshd(&keys);
    let up = keys.bench.path("outside/up");
    run(Command::new("git").args(["init", "-q", "--bare", "-b", "main"]).arg(&up));
    let ws = keys.bench.path("ws");
    run(Command::new("git").args(["init", "-q", "-b", "main"]).arg(&ws));
    let commit =
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"];
    run(Command::new("git").arg("-C").arg(&ws).args(commit));
    let user = Command::new("id").arg("-un").output().expect("a name").stdout;
    let user = String::from_utf8_lossy(&user).trim().to_owned();
    let push = format!("git push ssh://{user}@127.0.0.1:{port}{} main", up.display());
    keys.bench.ctx.needs = vec![Need::Network];
    let arguments = json!({ "command": push, "needs": ["network"], "reason": "r" });
    let refused = keys.bench.call("Bash", arguments).await;
    assert!(!refused.summary.starts_with("Exit 0"), "{refused:?}");
    let hint = r#"run it with needs: ["network", "credential:key"] and a reason]"#;
    assert!(refused.content.is_some_and(|said| said.contains(hint)), "the model learns of it");
    let pushed = keys.with_key(&push, &[Need::Network]).await;
    assert!(pushed.summary.starts_with("Exit 0"), "{pushed:?}");
    let log = Command::new("git").arg("-C").arg(&up).args(["log", "--format=%s", "main"]).output();
    assert_eq!(String::from_utf8_lossy(&log.expect("a log").stdout), "x\n");
}
