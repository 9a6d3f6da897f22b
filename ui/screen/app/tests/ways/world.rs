//! A host with a few Pods, brought into the state in which a verb is given.

use super::*;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use yoi::protocol::method::NewPod;

/// What alice says when it takes its time: a part of it, and the rest when its run goes on.
pub const SLOW_ANSWER: &str = "slowly now, and then the rest";

const SCRIPT: &str = r#"
[[when]]
says = "change the file*"
[[when.step]]
call = [{ name = "Write", args = { file_path = "{cwd}/note.txt", content = "new words\n" } }]
[[when.step]]
text = "Done."

[[when]]
says = "ask me"
[[when.step]]
call = [{ name = "AskPerson", args = { question = "Which name?", choices = ["total", "sum"] } }]
[[when.step]]
text = "Good."

[[when]]
says = "use the network*"
[[when.step]]
call = [{ name = "Bash", args = { command = "true", needs = ["network"], reason = "it must" } }]
[[when.step]]
text = "Done."

[[when]]
says = "take your time*"
[[when.step]]
text = "{slow}"
fault = { hang = 10, times = 99 }

[[when]]
any = true
text = "yes"
"#;

const TRUST: &str =
    "[[permissions.rule]]\ntool = \"Bash\"\npattern = \"make *\"\naction = \"allow\"\n";

/// A host in this process, its socket, and a client that prepares it.
pub struct World {
    pub host: Host,
    dir: tempfile::TempDir,
    pub env: BTreeMap<String, String>,
    client: Client,
    events: Events,
    states: BTreeMap<PodName, State>,
    /// The id of the last approval request.
    request: Option<String>,
    /// The Pods of which a part of an answer came.
    streamed: BTreeSet<PodName>,
    /// The Pods of which a run has ended.
    ended: BTreeSet<PodName>,
}

impl World {
    pub async fn start() -> Self {
        let dir =
            tempfile::Builder::new().prefix("yoi-ways-").tempdir_in("/tmp").expect("a directory");
        for pod in ["alice/part", "bob", "docs", "carol"] {
            std::fs::create_dir_all(dir.path().join(pod)).expect("a directory");
        }
        std::fs::write(dir.path().join("script.toml"), SCRIPT.replace("{slow}", SLOW_ANSWER))
            .expect("a script");
        let home = dir.path().join("home").display().to_string();
        let env =
            BTreeMap::from([("YOI_HOME".to_owned(), home.clone()), ("HOME".to_owned(), home)]);
        let (host, client, events) = host(&env).await;
        client.call(None, Method::Watch).await.expect("a subscription");
        let (streamed, ended) = (BTreeSet::new(), BTreeSet::new());
        let states = BTreeMap::new();
        Self { host, dir, env, client, events, states, request: None, streamed, ended }
    }

    pub fn cwd(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    pub fn filled(&self, text: &str) -> String {
        let request = self.request.as_deref().unwrap_or("{request}");
        text.replace("{dir}", &self.dir.path().display().to_string()).replace("{request}", request)
    }

    fn note(&mut self, outgoing: Outgoing) {
        match outgoing.event {
            Event::TextDelta { .. } => self.streamed.extend(outgoing.pod),
            Event::RunEnd { .. } => self.ended.extend(outgoing.pod),
            Event::Family { pods, .. } => {
                self.states = pods.into_iter().map(|info| (info.name, info.state)).collect();
            }
            Event::ApprovalRequested { approval } => self.request = Some(approval.id),
            Event::PodChanged { info } => drop(self.states.insert(info.name, info.state)),
            Event::PodRemoved { name } => drop(self.states.remove(&name)),
            _ => {}
        }
    }

    /// Waits until the host says that a Pod is in this state.
    async fn until(&mut self, pod: &str, state: State) {
        self.until_it(|world| world.states.get(&name(pod)) == Some(&state)).await;
    }

    /// Takes in what the host says until it is so.
    async fn until_it(&mut self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            let event = tokio::time::timeout(PATIENCE, self.events.recv()).await;
            let event = event.unwrap_or_else(|_| panic!("it does not come: {:?}", self.states));
            self.note(event.expect("a host"));
        }
    }

    /// Sends a request that may be refused, and takes in what the host says meanwhile.
    async fn try_call(&mut self, pod: Option<&str>, method: Method) {
        let pod = pod.map(name);
        let (client, reply) = (self.client.clone(), pod.clone());
        let call = async move { client.call(reply.as_ref(), method).await };
        let mut call = std::pin::pin!(call);
        loop {
            tokio::select! {
                _ = &mut call => break,
                Some(outgoing) = self.events.recv() => self.note(outgoing),
            }
        }
        while let Ok(outgoing) = self.events.try_recv() {
            self.note(outgoing);
        }
    }

    async fn create(&mut self, pod: &str) {
        let new = NewPod {
            name: Some(name(pod)),
            cwd: self.dir.path().join(pod),
            model: Some(self.filled("rehearsal:{dir}/script.toml")),
            env: self.env.clone(),
            ..NewPod::default()
        };
        self.try_call(None, Method::New(new)).await;
        self.until(pod, State::Idle).await;
    }

    /// alice and bob are live and idle, docs is stopped, and there is nothing else.
    async fn reset(&mut self) {
        // It is there after a row that is about it.
        let _ = std::fs::remove_dir_all(self.dir.path().join("alice/.yoi"));
        for pod in ["alice", "bob", "docs", "carol"] {
            if self.states.contains_key(&name(pod)) {
                self.try_call(Some(pod), Method::Cancel).await;
                self.try_call(
                    Some(pod),
                    Method::StopPods { tree: false, unless_busy: false, silent: false },
                )
                .await;
                self.until(pod, State::Stopped).await;
                self.try_call(Some(pod), Method::Remove).await;
            }
        }
        for pod in ["alice", "bob", "docs"] {
            self.create(pod).await;
        }
        self.try_call(
            Some("docs"),
            Method::StopPods { tree: false, unless_busy: false, silent: false },
        )
        .await;
        self.until("docs", State::Stopped).await;
    }

    pub async fn prepare(&mut self, before: Before) {
        self.reset().await;
        self.streamed.clear();
        self.ended.clear();
        self.request = None;
        match before {
            Before::Nothing => {}
            Before::Peers => {
                self.try_call(Some("alice"), Method::Peer { name: "bob".into() }).await;
            }
            Before::Blocked => {
                let block = Method::MeshBlock { name: "pi-1".into(), end: false };
                self.try_call(None, block).await;
            }
            Before::Lent => {
                let path = self.dir.path().join("alice/part");
                let rule = yoi::scope::Rule::new(path, yoi::scope::Permission::Write);
                self.try_call(Some("alice"), Method::lend("bob", rule)).await;
            }
            Before::Changed => {
                // A file that is there already cannot be written without reading it. It may be missing.
                let _ = std::fs::remove_file(self.dir.path().join("alice/note.txt"));
                self.try_call(Some("alice"), Method::say("change the file")).await;
                self.until_it(|world| world.ended.contains(&name("alice"))).await;
                self.until("alice", State::Idle).await;
            }
            Before::Rewound => {
                Box::pin(self.prepare(Before::Changed)).await;
                let listed =
                    self.client.call(Some(&name("alice")), Method::ListRewindTargets).await;
                let Ok(Event::RewindTargets { targets, head_entries, .. }) = listed else {
                    panic!("{listed:?}")
                };
                let (target, expected_head_entries) = (targets[0].id, head_entries);
                let rewind = Method::Rewind { target, expected_head_entries };
                self.try_call(Some("alice"), rewind).await;
            }
            Before::Asked => {
                self.try_call(Some("alice"), Method::say("use the network")).await;
                self.until_it(|world| world.request.is_some()).await;
                self.until("alice", State::NeedsYou).await;
            }
            Before::Question => {
                self.try_call(Some("alice"), Method::say("ask me")).await;
                self.until_it(|world| world.request.is_some()).await;
                self.until("alice", State::NeedsYou).await;
            }
            Before::Untrusted => {
                let dir = self.dir.path().join("alice/.yoi");
                std::fs::create_dir(&dir).expect("a directory");
                std::fs::write(dir.join("config.toml"), TRUST).expect("a file");
                // The way before trusted the same content.
                let listed = self.client.call(None, Method::ListPolicy).await;
                let Ok(Event::Policy { trusts, .. }) = listed else { panic!("{listed:?}") };
                for trust in trusts {
                    self.try_call(None, Method::Revoke { rule: trust.id }).await;
                }
            }
            Before::Running | Before::Paused => {
                self.try_call(Some("alice"), Method::say("take your time")).await;
                self.until_it(|world| world.streamed.contains(&name("alice"))).await;
                if before == Before::Paused {
                    self.try_call(Some("alice"), Method::Pause).await;
                    self.until("alice", State::Paused).await;
                }
            }
        }
    }

    /// A connection whose requests are written down as they pass.
    pub async fn recorded(&self) -> (Client, Events, Arc<Mutex<Vec<String>>>) {
        let dirs = yoi::config::Dirs::find(&self.env, None).expect("directories");
        let lock = std::fs::read_to_string(dirs.data.join("host.lock")).expect("a lock");
        let lock: serde_json::Value = serde_json::from_str(&lock).expect("JSON");
        let socket = lock["socket"].as_str().expect("a socket").to_owned();
        let host = tokio::net::UnixStream::connect(socket).await.expect("a host");
        let (front, relay) = tokio::io::duplex(64 * 1024);
        let (from_front, mut to_front) = tokio::io::split(relay);
        let (mut from_host, mut to_host) = host.into_split();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let record = sent.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(from_front).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                record.lock().expect("a record").push(line.clone());
                if to_host.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                    return;
                }
            }
        });
        tokio::spawn(async move { tokio::io::copy(&mut from_host, &mut to_front).await });
        let (client, events) = Client::over(front).await.expect("a client");
        (client, events, sent)
    }
}
