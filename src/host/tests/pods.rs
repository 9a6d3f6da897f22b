//! A family as its members see it: the requests that each may make, the Pods that each may list and
//! read, and child events.

use crate::host::output::{self, Reader};
use crate::host::relations::{Relation, relation};
use crate::host::tests::Bench;
use crate::host::verb::carry_out;
use crate::host::{listing, notify_parent};
use crate::protocol::RewindTarget;
use crate::protocol::method::NewPod;
use crate::protocol::{
    Event, Fact, Method, PeerEdge, PodName, PodOutput, Refusal, SessionId, State, SystemItem,
};
use crate::scope::{Permission, Rule, Scope};
use crate::store::{PodRow, Store, Wanted};
use serde_json::{Value, json};
use std::path::Path;

pub(super) const SCRIPT: &str = r#"
[[when]]
says = "hang"
[[when.step]]
text = "This answer stops."
fault = { hang = 4, times = 9 }

[[when]]
says = "stall"
[[when.step]]
text = "This answer goes on."
fault = { hang = 4, times = 1 }

[[when]]
says = "fail"
[[when.step]]
fault = { status = 400 }

[[when]]
note = "*[Notification]*"
text = "Noted."

[[when]]
says = "spawn * in *"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "{1}", task = "hello", profile = "inherit", scope = [{ target = "{2}", permission = "write" }] } }]
[[when.step]]
text = "Done."

[[when]]
says = "send * word *"
[[when.step]]
call = [{ name = "SendToPod", args = { name = "{1}", message = "{2}" } }]
[[when.step]]
text = "Done."

[[when]]
says = "tell * word *"
[[when.step]]
call = [{ name = "SendToPeerPod", args = { name = "{1}", message = "{2}" } }]
[[when.step]]
text = "Done."

[[when]]
says = "read *"
[[when.step]]
call = [{ name = "ReadPodOutput", args = { name = "{1}" } }]
[[when.step]]
text = "Done."

[[when]]
says = "stop *"
[[when.step]]
call = [{ name = "StopPod", args = { name = "{1}" } }]
[[when.step]]
text = "Done."

[[when]]
says = "restore *"
[[when.step]]
call = [{ name = "RestorePod", args = { name = "{1}" } }]
[[when.step]]
text = "Done."

[[when]]
says = "list"
[[when.step]]
call = [{ name = "ListPods", args = {} }]
[[when.step]]
text = "Done."

[[when]]
any = true
text = "You said {1}."
"#;

pub(super) fn name(text: &str) -> PodName {
    PodName::parse(text).unwrap()
}

fn row(root: &Path, pod: &str, parent: Option<&str>, wanted: Wanted) -> PodRow {
    let cwd = root.join("w");
    PodRow {
        name: name(pod),
        parent: parent.map(name),
        wanted,
        cwd: cwd.clone(),
        workspace: cwd.clone(),
        session: SessionId::new(),
        segment: None,
        config: json!({}),
        scope: Scope::new(vec![Rule::new(cwd, Permission::Read)]),
        created: crate::protocol::now_ms(),
        since: crate::protocol::now_ms(),
        seen: true,
        later: None,
        last: None,
        env: Default::default(),
        restrictions: Default::default(),
        last_run: None,
        cost: None,
        ephemeral: false,
    }
}

fn database(root: &Path) -> std::path::PathBuf {
    root.join("home/data/yoi.db")
}

/// Changes the store behind the back of a host that is not running.
pub fn sql(root: &Path, statement: &str) {
    let db = rusqlite::Connection::open(database(root)).unwrap();
    db.execute_batch(statement).unwrap();
}

/// A host with these Pods, each with its parent, and these peers; all of them play the script.
pub(super) async fn family(pods: &[(&str, Option<&str>, Wanted)], peers: &[(&str, &str)]) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let (store, _) = Store::open(&database(&root)).await.unwrap();
    for (pod, parent, wanted) in pods {
        store.create_pod(row(&root, pod, *parent, *wanted)).await.unwrap();
    }
    for (a, b) in peers {
        store.add_peer(&PeerEdge::new(name(a), name(b))).await.unwrap();
    }
    store.close().await;
    let bench = Bench::at(dir).await;
    std::fs::write(bench.root.join("script.toml"), SCRIPT).unwrap();
    for (pod, _, wanted) in pods {
        if *wanted == Wanted::Live {
            play(&bench, pod).await;
        }
    }
    bench
}

async fn play(bench: &Bench, pod: &str) {
    let model = format!("rehearsal:{}", bench.root.join("script.toml").display());
    bench.call(&name(pod), Method::SetModel { model }).await.unwrap();
}

/// A parent and a child, both live.
async fn two() -> Bench {
    family(&[("alice", None, Wanted::Live), ("kid", Some("alice"), Wanted::Live)], &[]).await
}

fn listed(bench: &Bench, me: &str) -> Vec<Value> {
    let Event::PodsListed { pods } = listing::of_pod(&name(me), &bench.host.shared) else {
        panic!()
    };
    pods
}

/// What comes of a request that alice makes.
async fn asked(bench: &Bench, target: &str, method: Method) -> Result<Event, Refusal> {
    asked_by(bench, "alice", target, method).await
}

async fn asked_by(bench: &Bench, by: &str, target: &str, method: Method) -> Result<Event, Refusal> {
    let (by, to) = (Some(name(by)), Some(name(target)));
    carry_out(&bench.host.shared, &bench.host.supervisor, by, to, method).await
}

async fn refusal(bench: &Bench, target: &str, method: Method) -> String {
    asked(bench, target, method).await.unwrap_err().message
}

impl Bench {
    /// Says something to a Pod and waits until it rests again.
    pub(super) async fn turn(&mut self, pod: &str, text: &str) {
        let before = self.info(&name(pod)).await.last_result;
        self.call(&name(pod), Method::say(text)).await.unwrap();
        self.until(pod, |info| info.last_result != before && info.state != State::Running).await;
    }

    /// Waits until what is known of a Pod fits.
    pub(super) async fn until(
        &mut self,
        pod: &str,
        fits: impl Fn(&crate::protocol::PodInfo) -> bool,
    ) {
        while !fits(&self.info(&name(pod)).await) {
            self.next(|event| matches!(event, Event::PodChanged { .. })).await;
        }
    }

    async fn read(&self, by: Option<&str>, pod: &str) -> PodOutput {
        let by = by.map(name);
        let reader = by.as_ref().map_or(Reader::Person, Reader::Pod);
        let read = output::read(&self.host.shared, reader, &name(pod)).await.unwrap();
        let Event::Output(output) = read else { panic!() };
        if let (Some(by), Some(upto)) = (by, output.upto) {
            // As the reader's run does once its log holds the result.
            self.host.shared.store.set_cursor(&by, &output.name, upto).await.unwrap();
        }
        *output
    }

    async fn new_texts(&self, pod: &str) -> Vec<String> {
        self.read(Some("alice"), pod).await.texts
    }

    /// What was told to a Pod of its children, as its history holds it.
    async fn child_event(&self, pod: &str) -> Vec<String> {
        let sentence = |body: String| {
            let line = body.lines().nth(1).unwrap();
            line.split(". ").next().unwrap().to_owned()
        };
        self.child_event_bodies(pod).await.into_iter().map(sentence).collect()
    }

    /// The child events in a Pod's history, as its model reads them.
    async fn child_event_bodies(&self, pod: &str) -> Vec<String> {
        let page = self.call(&name(pod), Method::Page { before: None, max_bytes: 1 << 20 }).await;
        let Ok(Event::Page { entries, .. }) = page else { panic!("{page:?}") };
        let mut child_event = Vec::new();
        for line in entries {
            let crate::protocol::event::Line::Whole(entry) = line else { continue };
            if let Fact::SystemItem { item: SystemItem::PodEvent { body, .. }, .. } = entry.fact {
                child_event.push(body);
            }
        }
        child_event
    }

    /// Every entry of a transcript.
    async fn entries(&self, pod: &str) -> Vec<Fact> {
        let page = self.call(&name(pod), Method::Page { before: None, max_bytes: 1 << 20 }).await;
        let Ok(Event::Page { entries, .. }) = page else { panic!("{page:?}") };
        let whole = |line| match line {
            crate::protocol::event::Line::Whole(entry) => Some(entry.fact),
            _ => None,
        };
        entries.into_iter().filter_map(whole).collect()
    }

    /// Lets alice's model call a tool; what it reads as the result.
    async fn tool(&mut self, words: &str) -> String {
        let Method::Send { input, .. } = Method::say(words) else { unreachable!() };
        self.call(&name("alice"), Method::Send { input, queue: true }).await.unwrap();
        let shown = self.next(|event| matches!(event, Event::ToolResult { .. })).await;
        let Event::ToolResult { summary, output, .. } = shown else { unreachable!() };
        self.until("alice", |info| info.state == State::Idle && info.queue.is_empty()).await;
        format!("{summary}\n{}", output.unwrap_or_default()).trim_end().to_owned()
    }

    async fn targets(&self, pod: &str) -> (usize, Vec<RewindTarget>) {
        let listed = self.call(&name(pod), Method::ListRewindTargets).await.unwrap();
        let Event::RewindTargets { head_entries, targets, .. } = listed else { panic!() };
        (head_entries, targets)
    }

    /// Goes back to before the message with this text.
    async fn rewind_to(&self, pod: &str, text: &str) {
        let (expected_head_entries, targets) = self.targets(pod).await;
        let target = targets.iter().find(|target| target.preview == text).unwrap().id;
        let rewind = Method::Rewind { target, expected_head_entries };
        self.call(&name(pod), rewind).await.unwrap();
    }

    async fn undo_rewind(&self, pod: &str) {
        let listed = self.call(&name(pod), Method::ListRewindTargets).await.unwrap();
        let Event::RewindTargets { undo: Some(undo), head_entries, .. } = listed else { panic!() };
        let undo = Method::UndoRewind { entry: undo.entry, expected_head_entries: head_entries };
        self.call(&name(pod), undo).await.unwrap();
    }

    /// Waits until a run has taken a child event with this text and has ended.
    async fn learned(&mut self, pod: &str, text: &str) {
        // The entry may come before the state of its run does: the end of that run counts.
        let takes = |fact: &Fact| match fact {
            Fact::SystemItem { item: SystemItem::PodEvent { body, .. }, .. } => body.contains(text),
            _ => false,
        };
        let ends =
            |fact: &Fact| matches!(fact, Fact::RunCompleted { .. } | Fact::RunErrored { .. });
        let has_ended = |facts: Vec<Fact>| {
            facts.into_iter().skip_while(|fact| !takes(fact)).any(|fact| ends(&fact))
        };
        while !has_ended(self.entries(pod).await) {
            self.next(|event| matches!(event, Event::Entry { .. })).await;
        }
        self.is(&name(pod), State::Idle).await;
        // The end of a run takes what came meanwhile, after the Pod is seen idle: the next call comes after that.
        self.targets(pod).await;
    }

    /// The messages in a Pod's mailbox that no run has taken.
    async fn unread(&self, pod: &str) -> Vec<String> {
        let rows = self.host.shared.store.messages(&name(pod)).await.unwrap();
        rows.into_iter().map(|row| row.payload.to_string()).collect()
    }
}

/// Alice, who holds write on the workspace and plays the script.
async fn commander() -> Bench {
    let bench = family(&[], &[]).await;
    for pod in ["alice", "bob"] {
        let cwd = bench.root.join(if pod == "alice" { "w" } else { "b" });
        std::fs::create_dir_all(&cwd).unwrap();
        let new = NewPod { name: Some(name(pod)), cwd, ..NewPod::default() };
        bench.client.call(None, Method::New(new)).await.unwrap();
        play(&bench, pod).await;
    }
    bench
}

#[tokio::test]
async fn a_child_is_spawned_read_written_to_stopped_and_restored_by_tools() {
    let mut bench = commander().await;
    let at = bench.root.join("w/a");
    std::fs::create_dir(&at).unwrap();
    let at = at.display().to_string();
    let spawned = bench.tool(&format!("spawn kid in {at}")).await;
    assert!(spawned.starts_with("spawned pod `kid` listening on /"), "{spawned}");
    // A child event that comes together with a message would get the reply of the message.
    bench.learned("alice", "pod `kid` finished a turn").await;
    let read = bench.tool("read kid").await;
    assert!(read.starts_with("pod `kid`: 1 new line(s) of assistant text; idle\n"), "{read}");
    assert!(read.ends_with("[last run: finished]\n\nYou said hello."), "{read}");
    let mut bench = bench.restarted().await;
    let read = bench.tool("read kid").await;
    assert!(read.starts_with("pod `kid` idle; no new assistant text"), "{read}");
    assert_eq!(bench.tool("send kid word hang").await, "sent message to `kid`");
    let busy = "pod `kid` is already running a turn; wait for it to finish and retry: a notification \
                tells you when; or set `queue`";
    assert_eq!(bench.tool("send kid word again").await, busy);
    let stopped = format!("stopped pod `kid`; reclaimed scope: write:{at}");
    assert_eq!(bench.tool("stop kid").await, stopped);
    let read = bench.tool("read kid").await;
    assert!(read.starts_with("pod `kid`: 1 new line(s) of assistant text; is stopped"), "{read}");
    let asleep = bench.tool("send kid word x").await;
    assert!(asleep.contains("pod `kid` is stopped; bring it back with RestorePod"), "{asleep}");
    let back = bench.tool("restore kid").await;
    assert!(back.starts_with("pod `kid` restored from pod state"), "{back}");
    assert!(bench.tool("restore kid").await.starts_with("pod `kid` is already live"));
    assert!(bench.tool("list").await.starts_with("2 visible pod(s)\n["));
    assert_eq!(
        bench.child_event("alice").await,
        ["pod `kid` finished a turn"],
        "who stops knows it"
    );
}

#[tokio::test]
async fn strangers_are_refused_to_a_model_in_the_words_of_the_tool() {
    let mut bench = commander().await;
    for (words, said) in [
        ("send bob word x", "no spawned pod named `bob`"),
        ("read ghost", "no spawned pod named `ghost`"),
        ("stop alice", "no spawned pod named `alice`"),
        ("restore ghost", "pod state missing for `ghost`"),
        ("tell alice word x", "pod `alice` is visible as SelfPod, not as a peer"),
    ] {
        assert_eq!(bench.tool(words).await, said);
    }
}

#[tokio::test]
async fn a_peers_message_is_in_the_history_under_the_senders_name() {
    let mut bench = commander().await;
    bench.call(&name("alice"), Method::Peer { name: "bob".into() }).await.unwrap();
    assert_eq!(bench.tool("tell bob word hi").await, "sent peer message to `bob`");
    bench.until("bob", |info| info.last_result.is_some() && info.state == State::Idle).await;
    let on_run_event = bench.entries("bob").await.into_iter().find_map(|fact| match fact {
        Fact::SystemItem { item: SystemItem::Notification { message, .. }, .. } => Some(message),
        _ => None,
    });
    assert_eq!(on_run_event.unwrap(), "[Peer message from `alice`]\nhi");
    // The result of the call names the message, which waits no more.
    let sent = bench.entries("alice").await.into_iter().find_map(|fact| match fact {
        Fact::ToolResult { sent, .. } => sent,
        _ => None,
    });
    let sent = sent.expect("the call sent a message");
    assert_eq!((sent.status.as_str(), sent.pods), ("received", vec![name("bob")]));
    let taken = bench.entries("bob").await.into_iter().any(
        |fact| matches!(fact, Fact::SystemItem { taken, .. } if taken.as_deref() == Some(&sent.id)),
    );
    assert!(taken && bench.info(&name("bob")).await.waiting.is_empty());
    bench.call(&name("bob"), Method::Stop).await.unwrap();
    let refused = bench.tool("tell bob word hi").await;
    assert!(
        refused.ends_with("pod `bob` is stopped; bring it back with RestorePod, then send again")
    );
    assert_eq!(
        bench.child_event("alice").await,
        Vec::<String>::new(),
        "a peer sends no child events"
    );
}

#[tokio::test]
async fn a_child_that_a_person_stops_notifies_its_parent_once() {
    let mut bench = two().await;
    bench.call(&name("kid"), Method::Stop).await.unwrap();
    bench.until("alice", |info| info.last_result.is_some() && info.state == State::Idle).await;
    assert_eq!(bench.child_event("alice").await, ["pod `kid` stopped"]);
    let mut bench = bench.restarted().await;
    bench.turn("alice", "anything").await;
    assert_eq!(bench.child_event("alice").await.len(), 1);
}

#[tokio::test]
async fn visible_stored_and_live_entries_are_listed_and_nothing_else() {
    let pods = [
        ("alice", None, Wanted::Live),
        ("kid", Some("alice"), Wanted::Live),
        ("baby", Some("kid"), Wanted::Stopped),
        ("broken", Some("alice"), Wanted::Live),
        ("bob", None, Wanted::Stopped),
        ("stranger", None, Wanted::Live),
    ];
    let bench = family(&pods, &[("alice", "bob"), ("alice", "kid")]).await;
    let (root, bench) = (bench.root.clone(), bench);
    bench.host.end().await;
    sql(&root, "UPDATE pods SET scope = 'not JSON' WHERE key = 'broken'");
    let mut bench = Bench::at(bench._root).await;
    bench.turn("kid", "hello").await;
    let listed = listed(&bench, "alice");
    let short = |pod: &Value| {
        let text = |key: &str| pod[key].as_str().unwrap().to_owned();
        let possible = pod["restore"]["possible"].as_bool().unwrap();
        (text("pod_name"), text("visibility"), text("state"), possible)
    };
    let found: Vec<_> = listed.iter().map(short).collect();
    let expected = [
        ("alice", "self_pod", "readable", false),
        ("baby", "spawned_child", "readable", true),
        ("bob", "peer", "readable", true),
        ("broken", "spawned_child", "corrupt", false),
        ("kid", "spawned_child", "readable", false),
    ];
    let own = |(n, v, s, p): (&str, &str, &str, bool)| (n.to_owned(), v.into(), s.into(), p);
    assert_eq!(found, expected.map(own));
    let kid = &listed[4];
    assert_eq!(kid["live"]["reachable"], true);
    assert_eq!(kid["live"]["status"], "idle");
    assert_eq!(kid["family"]["parent"], "alice");
    assert_eq!(kid["family"]["registered"], true);
    assert_eq!(kid["last_result"]["result"], "finished");
    assert!(kid["active"]["segment_id"].is_string() && kid["last_activity"].as_u64() > Some(0));
    let count = json!({"count": 1, "reachable": 0, "unreachable": 1});
    assert_eq!(kid["spawned_children"], count);
    let pending = &listed[1]["restore"]["reason"];
    assert!(pending.as_str().unwrap().starts_with("pending"), "{pending}");
    assert!(listed[3]["error"].as_str().unwrap().starts_with("scope: "));
}

#[tokio::test]
async fn a_pod_whose_log_is_gone_is_listed_as_missing() {
    let mut bench = two().await;
    bench.turn("kid", "hello").await;
    let session = bench.host.shared.pod(&name("kid")).unwrap().session.to_string();
    bench.call(&name("kid"), Method::Stop).await.unwrap();
    // Its parent may run on its child event, and write its own log.
    std::fs::remove_dir_all(bench.root.join("home/data/sessions").join(session)).unwrap();
    let kid = &listed(&bench, "alice")[1];
    assert_eq!(
        (kid["state"].as_str(), kid["restore"]["possible"].as_bool()),
        (Some("missing"), Some(false))
    );
}

#[tokio::test]
async fn two_hundred_pods_are_listed_whole() {
    let names: Vec<String> = (0..199).map(|n| format!("kid-{n}")).collect();
    let mut pods = vec![("alice", None, Wanted::Stopped)];
    pods.extend(names.iter().map(|kid| (kid.as_str(), Some("alice"), Wanted::Stopped)));
    let bench = family(&pods, &[]).await;
    // How long it takes is measured by `cargo bench --bench screen -- --bench family`.
    let mut listed: Vec<String> = listed(&bench, "alice")
        .iter()
        .map(|pod| pod["pod_name"].as_str().unwrap().to_owned())
        .collect();
    listed.sort();
    let mut expected = names.clone();
    expected.push("alice".into());
    expected.sort();
    assert_eq!(listed, expected);
}

#[tokio::test]
async fn only_what_is_below_is_commanded() {
    let pods = [
        ("alice", None, Wanted::Live),
        ("kid", Some("alice"), Wanted::Live),
        ("baby", Some("kid"), Wanted::Live),
        ("bob", None, Wanted::Live),
    ];
    let bench = family(&pods, &[("alice", "bob")]).await;
    let orders = [
        Method::say("x"),
        Method::ReadOutput,
        Method::StopPods { tree: false, unless_busy: false, silent: false },
    ];
    for order in orders {
        for own in ["kid", "baby"] {
            asked(&bench, own, order.clone()).await.unwrap();
        }
        for other in ["bob", "alice", "ghost"] {
            let text = refusal(&bench, other, order.clone()).await;
            assert_eq!(text, format!("no spawned pod named `{other}`"));
        }
    }
    let up = asked_by(
        &bench,
        "kid",
        "alice",
        Method::StopPods { tree: true, unless_busy: false, silent: false },
    );
    assert_eq!(up.await.unwrap_err().message, "no spawned pod named `alice`");
}

#[tokio::test]
async fn a_verb_for_people_is_refused_to_a_pod() {
    let bench = two().await;
    let answer = Method::Decide {
        approval: "1".into(),
        verdict: crate::protocol::Verdict::Tree { rule: None, of: None },
    };
    let restores = Method::RestorePods { tree: true, plan: false };
    let model = Method::SetModel { model: "x".into() };
    for order in [answer, restores, model, Method::Remove, Method::Stop, Method::Watch] {
        for target in ["alice", "kid"] {
            assert_eq!(refusal(&bench, target, order.clone()).await, "only a person may do that");
        }
    }
    let spawn = Method::Spawn(crate::protocol::SpawnPod::default());
    assert_eq!(refusal(&bench, "kid", spawn.clone()).await, "only a person may do that");
    let text = refusal(&bench, "alice", spawn).await;
    assert!(!text.contains("only a person"), "{text}");
}

#[tokio::test]
async fn invisible_and_missing_pods_are_not_restored() {
    let pods = [
        ("alice", None, Wanted::Live),
        ("kid", Some("alice"), Wanted::Stopped),
        ("bob", None, Wanted::Stopped),
        ("stranger", None, Wanted::Stopped),
    ];
    let bench = family(&pods, &[("alice", "bob")]).await;
    let restore = |name: &str| Method::Restore { name: name.into() };
    for seen in ["alice", "kid", "Bob"] {
        asked(&bench, "alice", restore(seen)).await.unwrap();
    }
    assert_eq!(refusal(&bench, "alice", restore("ghost")).await, "pod state missing for `ghost`");
    assert_eq!(refusal(&bench, "alice", restore("../x")).await, "pod state missing for `../x`");
    assert_eq!(
        refusal(&bench, "alice", restore("stranger")).await,
        "pod `stranger` is not visible to `alice`; ListPods shows what is"
    );
}

#[tokio::test]
async fn a_message_goes_to_a_live_peer_only_and_under_the_senders_name() {
    let pods = [
        ("alice", None, Wanted::Live),
        ("kid", Some("alice"), Wanted::Live),
        ("bob", None, Wanted::Live),
        ("carol", None, Wanted::Stopped),
        ("stranger", None, Wanted::Live),
    ];
    let peers = [("alice", "bob"), ("alice", "carol")];
    let mut bench = family(&pods, &peers).await;
    let hello = || Method::Notify { message: "hello".into() };
    asked(&bench, "bob", hello()).await.unwrap();
    bench.until("bob", |info| info.last_result.is_some()).await;
    let shown = format!("{:?}", bench.entries("bob").await);
    assert!(shown.contains("[Peer message from `alice`]\\nhello"), "{shown}");
    for (other, text) in [
        ("alice", "pod `alice` is visible as SelfPod, not as a peer"),
        ("kid", "pod `kid` is visible as SpawnedChild, not as a peer"),
        ("carol", "pod `carol` is stopped; bring it back with RestorePod, then send again"),
        ("stranger", "pod `stranger` is not visible to `alice`; ListPods shows what is"),
        ("ghost", "pod state missing for `ghost`"),
    ] {
        assert_eq!(refusal(&bench, other, hello()).await, text);
    }
}

#[tokio::test]
async fn a_child_belongs_to_its_parent_whatever_letters_its_name_has() {
    // In lower case, the first two characters have a composed form.
    let kid = "H\u{331}asan";
    let pods = [("alice", None, Wanted::Live), (kid, Some("alice"), Wanted::Live)];
    let bench = family(&pods, &[]).await;
    let relation = relation(&bench.host.shared, &name("alice"), &name(kid));
    assert_eq!(relation, Relation::Below);
}

#[tokio::test]
async fn a_parent_and_a_child_that_are_peers_send_each_other_messages() {
    let pods = [("alice", None, Wanted::Live), ("kid", Some("alice"), Wanted::Live)];
    let mut bench = family(&pods, &[("alice", "kid")]).await;
    for (from, to) in [("alice", "kid"), ("kid", "alice")] {
        let hello = Method::Notify { message: format!("hello {to}") };
        asked_by(&bench, from, to, hello).await.unwrap();
        let said = format!("[Peer message from `{from}`]\\nhello {to}");
        while !format!("{:?}", bench.entries(to).await).contains(&said) {
            bench.next(|e| matches!(e, Event::Entry { .. })).await;
        }
    }
}

#[tokio::test]
async fn new_text_is_read_once_and_the_state_is_the_real_one() {
    let mut bench = two().await;
    assert_eq!(bench.read(Some("alice"), "kid").await.texts, Vec::<String>::new());
    bench.turn("kid", "one").await;
    bench.turn("kid", "two").await;
    let read = bench.read(Some("alice"), "kid").await;
    assert_eq!(read.texts, ["You said one.", "You said two."]);
    assert_eq!((read.state, read.last_result.unwrap().result.as_str()), (State::Idle, "finished"));
    assert_eq!(bench.new_texts("kid").await, Vec::<String>::new());
    bench.turn("kid", "fail").await;
    let failed = bench.read(Some("alice"), "kid").await;
    assert_eq!(failed.state, State::Failed);
    assert!(failed.last_result.unwrap().error.is_some());
    bench.turn("kid", "three").await;
    bench.call(&name("kid"), Method::Stop).await.unwrap();
    let stopped = bench.read(Some("alice"), "kid").await;
    assert_eq!((stopped.state, stopped.texts.len()), (State::Stopped, 1));
}

#[tokio::test]
async fn a_person_reads_the_last_run_as_often_as_asked_for() {
    let mut bench = two().await;
    bench.turn("kid", "one").await;
    bench.turn("kid", "two").await;
    for _ in 0..2 {
        assert_eq!(bench.read(None, "kid").await.texts, ["You said two."]);
    }
    assert_eq!(bench.new_texts("kid").await.len(), 2, "a person's look moves nobody's place");
}

#[tokio::test]
async fn reading_goes_on_across_compaction_rewind_and_restart() {
    let mut bench = two().await;
    bench.turn("kid", "one").await;
    assert_eq!(bench.new_texts("kid").await, ["You said one."]);
    bench.turn("kid", "two").await;
    bench.call(&name("kid"), Method::Compact).await.unwrap();
    bench.next(|event| matches!(event, Event::CompactDone { .. })).await;
    bench.is(&name("kid"), State::Idle).await;
    bench.turn("kid", "three").await;
    let mut bench = bench.restarted().await;
    assert_eq!(bench.new_texts("kid").await, ["You said two.", "You said three."]);
    // What was read last is taken away, and something else is said instead.
    let (expected_head_entries, targets) = bench.targets("kid").await;
    assert_eq!(targets[1].preview, "two");
    let target = targets[1].id;
    bench.call(&name("kid"), Method::Rewind { target, expected_head_entries }).await.unwrap();
    assert_eq!(bench.new_texts("kid").await, Vec::<String>::new());
    bench.turn("kid", "four").await;
    assert_eq!(bench.new_texts("kid").await, ["You said four."]);
    let bench = bench.restarted().await;
    assert_eq!(bench.new_texts("kid").await, Vec::<String>::new());
}

/// Alice, who was told to spawn `kid` in `w/a`, and hung on it.
async fn spawned() -> Bench {
    let mut bench = commander().await;
    let at = bench.root.join("w/a");
    std::fs::create_dir(&at).unwrap();
    bench.tool(&format!("spawn kid in {}", at.display())).await;
    bench.learned("alice", "pod `kid` finished a turn").await;
    bench
}

#[tokio::test]
async fn a_rewind_names_the_live_children_that_it_drops_and_the_parent_reads_of_them() {
    let bench = spawned().await;
    let (expected_head_entries, targets) = bench.targets("alice").await;
    let drops = targets[0].drops.clone().unwrap();
    assert_eq!(drops.pods, [name("kid")]);
    let target = targets[0].id;
    let rewind = Method::Rewind { target, expected_head_entries };
    bench.call(&name("alice"), rewind).await.unwrap();
    let waiting = bench.host.shared.store.messages(&name("alice")).await.unwrap();
    let note = waiting[0].payload["message"].as_str().unwrap();
    assert!(note.starts_with("pod `kid` is your child and goes on: "), "{note}");
    // As after a host that died before it stored the note.
    sql(&bench.root, "DELETE FROM mail WHERE pod = 'alice' AND taken = 0");
    let bench = bench.restarted().await;
    assert_eq!(bench.unread("alice").await, [waiting[0].payload.to_string()]);
    // What is back in the history needs no note.
    let listed = bench.call(&name("alice"), Method::ListRewindTargets).await.unwrap();
    let Event::RewindTargets { undo: Some(undo), head_entries, .. } = listed else { panic!() };
    let undo = Method::UndoRewind { entry: undo.entry, expected_head_entries: head_entries };
    bench.call(&name("alice"), undo).await.unwrap();
    assert_eq!(bench.host.shared.store.messages(&name("alice")).await.unwrap(), []);
    // Nor is it put there again by the next host.
    let mut bench = bench.restarted().await;
    assert_eq!(bench.host.shared.store.messages(&name("alice")).await.unwrap(), []);
    // A child that does not live is not named.
    bench.call(&name("kid"), Method::Stop).await.unwrap();
    bench.is(&name("alice"), State::Idle).await;
    let (_, targets) = bench.targets("alice").await;
    assert_eq!(targets.last().unwrap().drops.clone().unwrap().pods, []);
}

#[tokio::test]
async fn a_rewind_past_what_became_of_a_child_says_it_again_and_its_undo_withdraws_it() {
    let mut bench = spawned().await;
    bench.turn("alice", "list").await;
    for task in ["two", "three"] {
        bench.turn("kid", task).await;
        bench.learned("alice", &format!("You said {task}.")).await;
    }
    bench.rewind_to("alice", "list").await;
    let rows = bench.unread("alice").await;
    assert!(rows.len() == 1 && rows[0].contains("You said three."), "{rows:?}");
    bench.undo_rewind("alice").await;
    assert_eq!(bench.unread("alice").await, [""; 0]);

    bench.rewind_to("alice", "list").await;
    // As after a host that died before it stored the message.
    sql(&bench.root, "DELETE FROM mail WHERE pod = 'alice' AND taken = 0");
    let mut bench = bench.restarted().await;
    assert_eq!(bench.unread("alice").await, rows);
    bench.turn("alice", "list").await;
    let bodies = bench.child_event_bodies("alice").await;
    assert!(bodies.last().unwrap().contains("You said three."), "{bodies:?}");
    assert_eq!(bench.unread("alice").await, [""; 0]);
}

#[tokio::test]
async fn a_rewind_says_again_how_a_child_ended_its_run_beside_what_came_after_as_far_as_it_is_true()
{
    let mut bench = spawned().await;
    bench.turn("alice", "list").await;
    bench.turn("kid", "two").await;
    bench.learned("alice", "You said two.").await;
    bench.call(&name("kid"), Method::Stop).await.unwrap();
    bench.learned("alice", "pod `kid` stopped").await;
    let (shared, alice) = (bench.host.shared.clone(), name("alice"));
    let kid = shared.store.pod(&name("kid")).await.unwrap().unwrap();
    notify_parent::cut_is_over(&shared, &kid, &alice, 7, "goes on with the run").await;
    bench.turn("alice", "more").await;
    assert_eq!(bench.unread("alice").await, [""; 0]);

    bench.rewind_to("alice", "list").await;
    let rows = bench.unread("alice").await;
    let says = |rows: &[String], texts: &[&str]| {
        let each = rows.iter().zip(texts).all(|(row, text)| row.contains(text));
        assert!(rows.len() == texts.len() && each, "{rows:?}");
    };
    says(&rows, &["You said two.", "shut_down", "goes on with the run"]);
    sql(&bench.root, "DELETE FROM mail WHERE pod = 'alice' AND taken = 0");
    drop(shared);
    let bench = bench.restarted().await;
    assert_eq!(bench.unread("alice").await, rows);
    let restore = Method::RestorePods { tree: false, plan: false };
    bench.call(&name("kid"), restore).await.unwrap();
    let of_a_live_one = ["You said two.", "goes on with the run"];
    says(&bench.unread("alice").await, &of_a_live_one);
    bench.undo_rewind("alice").await;
    assert_eq!(bench.unread("alice").await, [""; 0]);
    bench.rewind_to("alice", "list").await;
    says(&bench.unread("alice").await, &of_a_live_one);
}

#[tokio::test]
async fn a_rewind_of_a_fork_says_nothing_of_the_children_of_its_source() {
    let mut bench = spawned().await;
    bench.turn("alice", "list").await;
    bench.turn("kid", "two").await;
    bench.learned("alice", "You said two.").await;
    let fork = Method::Fork { name: Some(name("copy")), at: None };
    bench.call(&name("alice"), fork).await.unwrap();
    for (pod, unread) in [("copy", 0), ("alice", 1)] {
        bench.rewind_to(pod, "list").await;
        assert_eq!(bench.unread(pod).await.len(), unread, "{pod}");
    }
}

#[tokio::test]
async fn a_child_that_goes_with_a_rewind_is_stopped_without_a_word_to_its_parent() {
    let bench = spawned().await;
    let stop = Method::StopPods { tree: true, unless_busy: false, silent: true };
    bench.call(&name("kid"), stop).await.unwrap();
    assert_eq!(bench.info(&name("alice")).await.state, State::Idle);
    let bench = bench.restarted().await;
    assert_eq!(bench.host.shared.store.messages(&name("alice")).await.unwrap(), []);
}

#[tokio::test]
async fn too_much_text_is_cut_at_its_beginning_and_said_to_be() {
    let mut bench = two().await;
    bench.turn("kid", "one").await;
    bench.turn("kid", &"long ".repeat(20_000)).await;
    let read = bench.read(Some("alice"), "kid").await;
    assert!(read.cut && read.texts.len() == 1);
    assert!(read.texts[0].len() <= 48 * 1024 && read.texts[0].ends_with(" long."));
    assert_eq!(bench.new_texts("kid").await, Vec::<String>::new());
}

#[tokio::test]
async fn the_notification_of_a_child_holds_its_last_message_to_8_kb_and_the_output_can_be_read_again()
 {
    let mut bench = two().await;
    bench.turn("kid", "hello").await;
    bench.until("alice", |info| info.last_result.is_some() && info.state == State::Idle).await;
    let bodies = bench.child_event_bodies("alice").await;
    let expected =
        "[Notification]\npod `kid` finished a turn. Its last message:\n> You said hello.\n\n";
    assert!(bodies.len() == 1 && bodies[0].starts_with(expected), "{bodies:?}");
    assert_eq!(bench.new_texts("kid").await, ["You said hello."]);
    bench.turn("kid", &"long ".repeat(5_000)).await;
    bench.learned("alice", "> You said long ").await;
    let body = bench.child_event_bodies("alice").await.pop().unwrap();
    let result = body.lines().find(|line| line.starts_with("> You said long ")).unwrap();
    assert!(
        result.ends_with(" […]") && (8 * 1024..8 * 1024 + 20).contains(&result.len()),
        "{}",
        result.len()
    );
}

#[tokio::test]
async fn a_child_that_finished_or_failed_wakes_its_idle_parent_once() {
    let mut bench = two().await;
    bench.turn("kid", "hello").await;
    bench.until("alice", |info| info.last_result.is_some() && info.state == State::Idle).await;
    assert_eq!(bench.child_event("alice").await, ["pod `kid` finished a turn"]);
    assert_eq!(bench.said(&name("alice")).await, ["Noted."]);
    bench.turn("kid", "fail").await;
    bench.learned("alice", "pod `kid` errored").await;
    let child_event = bench.child_event("alice").await;
    assert!(
        child_event.len() == 2 && child_event[1].starts_with("pod `kid` errored: "),
        "{child_event:?}"
    );
    for _ in 0..2 {
        bench = bench.restarted().await;
        bench.turn("alice", "anything").await;
        assert_eq!(bench.child_event("alice").await.len(), 2);
    }
}

#[tokio::test]
async fn a_run_that_does_not_end_in_time_is_aborted_before_its_pod_is_stopped() {
    let mut bench = two().await;
    bench.call(&name("kid"), Method::say("stall")).await.unwrap();
    bench.next(|event| matches!(event, Event::TextDelta { .. })).await;
    let kid = bench.host.shared.pod(&name("kid")).unwrap();
    kid.tell(crate::host::pod::Fact::Stopped).await;
    let info = bench.info(&name("kid")).await;
    assert_eq!(
        (info.state, info.last_result),
        (State::Stopped, None),
        "it did not end: it can go on"
    );
    kid.live(Vec::new()).await.unwrap();
    let info = bench.info(&name("kid")).await;
    assert_eq!(info.state, State::Paused);
    assert!(info.why.unwrap().starts_with("interrupted "));
    bench.call(&name("kid"), Method::Resume).await.unwrap();
    bench.is(&name("kid"), State::Idle).await;
    bench.until("alice", |info| info.state == State::Idle && info.last_result.is_some()).await;
    assert_eq!(bench.child_event("alice").await, ["pod `kid` finished a turn"]);
}

#[tokio::test]
async fn a_pod_that_is_being_stopped_does_not_go_on() {
    let mut bench = two().await;
    bench.call(&name("kid"), Method::say("hang")).await.unwrap();
    bench.next(|event| matches!(event, Event::TextDelta { .. })).await;
    let kid = bench.host.shared.pod(&name("kid")).unwrap();
    kid.prepare_stop().await;
    let refused = bench.call(&name("kid"), Method::Resume).await.unwrap_err();
    assert_eq!(refused.message, "pod `kid` is stopped; :restore kid brings it back");
    assert_eq!(bench.info(&name("kid")).await.state, State::Paused);
}

#[tokio::test]
async fn pausing_and_cancelling_a_child_sends_no_child_event() {
    let mut bench = two().await;
    for order in [Method::Pause, Method::Cancel] {
        bench.call(&name("kid"), Method::say("hang")).await.unwrap();
        bench.next(|event| matches!(event, Event::TextDelta { .. })).await;
        bench.call(&name("kid"), order).await.unwrap();
        bench.until("kid", |info| info.state != State::Running).await;
    }
    bench.turn("alice", "anything").await;
    assert_eq!(bench.child_event("alice").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_busy_parent_gets_a_child_event_within_its_run() {
    let mut bench = two().await;
    bench.call(&name("alice"), Method::say("hang")).await.unwrap();
    bench.next(|event| matches!(event, Event::TextDelta { .. })).await;
    bench.turn("kid", "one").await;
    bench.turn("kid", "two").await;
    bench.call(&name("alice"), Method::Pause).await.unwrap();
    bench.is(&name("alice"), State::Paused).await;
    assert_eq!(bench.child_event("alice").await, Vec::<String>::new());
    bench.turn("alice", "go on").await;
    assert_eq!(bench.child_event("alice").await.len(), 2);
}

#[tokio::test]
async fn a_stopped_parent_finds_child_events_after_its_restore() {
    let mut bench = two().await;
    bench.call(&name("alice"), Method::Stop).await.unwrap();
    bench.turn("kid", "hello").await;
    let mut bench = bench.restarted().await;
    bench.client.call(None, Method::Restore { name: "alice".into() }).await.unwrap();
    assert_eq!(bench.child_event("alice").await, Vec::<String>::new(), "a restore runs nothing");
    let info = bench.info(&name("alice")).await;
    assert_eq!(info.why.unwrap(), "kid finished");
    bench.call(&name("alice"), Method::Resume).await.unwrap();
    bench.until("alice", |now| now.last_result != info.last_result).await;
    assert_eq!(bench.child_event("alice").await, ["pod `kid` finished a turn"]);
    assert_eq!(bench.info(&name("alice")).await.why, None);
}

#[tokio::test]
async fn a_child_event_that_a_dying_host_did_not_store_is_delivered_at_the_next_start() {
    let pods = [("alice", None, Wanted::Live), ("kid", None, Wanted::Live)];
    let mut bench = family(&pods, &[]).await;
    bench.turn("kid", "hello").await;
    // The end of the run is in the log, and its child event was not sent.
    bench.host.end().await;
    let lost = "UPDATE pods SET parent = 'alice', last_run = NULL WHERE key = 'kid'";
    sql(&bench.root, lost);
    let mut bench = Bench::at(bench._root).await;
    assert_eq!(bench.info(&name("kid")).await.last_result.unwrap().result, "finished");
    bench.turn("alice", "what is new?").await;
    assert_eq!(bench.child_event("alice").await, ["pod `kid` finished a turn"]);
    let mut bench = bench.restarted().await;
    bench.turn("alice", "and now?").await;
    assert_eq!(bench.child_event("alice").await.len(), 1);
}

#[tokio::test]
async fn a_pod_is_paused_since_the_moment_that_its_log_names() {
    let mut bench = family(&[("alice", None, Wanted::Live)], &[]).await;
    let alice = name("alice");
    bench.call(&alice, Method::say("hang")).await.unwrap();
    bench.next(|event| matches!(event, Event::TextDelta { .. })).await;
    bench.call(&alice, Method::Pause).await.unwrap();
    bench.is(&alice, State::Paused).await;
    let ended = bench.whole_entries(&alice).await.pop().unwrap().ts;
    bench.host.end().await;
    // The host died before it stored when the run ended.
    sql(&bench.root, "UPDATE pods SET since = 1, last_run = NULL WHERE key = 'alice'");
    let bench = Bench::at(bench._root).await;
    let info = bench.info(&alice).await;
    assert_eq!((info.state, info.since, info.last_activity), (State::Paused, ended, ended));
}
