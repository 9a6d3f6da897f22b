//! Pods that make Pods: through a person's orders and through the pod_api of a Pod's own tools.

use crate::client::pod_api::PodApi;
use crate::host::tests::Bench;
use crate::host::tests::pods::sql;
use crate::protocol::entry::domain;
use crate::protocol::method::NewPod;
use crate::protocol::{
    EntryId, ErrorCode, Event, Fact, Lent, Method, PodInfo, PodName, Refusal, Restoring, RunResult,
    Segment, SpawnPod, State, StoppedPod,
};
use crate::scope::{Permission, Rule, Scope};
use std::path::{Path, PathBuf};

const SCRIPT: &str = r#"
[[when]]
says = "hang"
[[when.step]]
text = "Never said."
fault = { hang = 0, times = 9 }

[[when]]
any = true
text = "You said {1}."
"#;

pub fn name(text: &str) -> PodName {
    PodName::parse(text).unwrap()
}

pub fn write(target: impl Into<PathBuf>) -> Rule {
    Rule::new(target, Permission::Write)
}

impl Bench {
    /// A host with a parent Pod `p` that writes below `w`.
    pub async fn family() -> Self {
        let bench = Self::new().await;
        let script = bench.root.join("script.toml");
        std::fs::write(&script, SCRIPT).unwrap();
        bench.root_pod("p", "w").await;
        bench
    }

    pub async fn root_pod(&self, pod: &str, dir: &str) -> PodInfo {
        let cwd = self.root.join(dir);
        std::fs::create_dir_all(&cwd).unwrap();
        let script = self.root.join("script.toml");
        let model = Some(format!("rehearsal:{}", script.display()));
        let new = NewPod { name: Some(name(pod)), cwd, model, ..NewPod::default() };
        match self.client.call(None, Method::New(new)).await.unwrap() {
            Event::Created { info } => *info,
            other => panic!("{other:?}"),
        }
    }

    pub fn pod_api(&self, pod: &str) -> PodApi {
        PodApi::new(name(pod), self.host.shared.pod_api.clone())
    }

    /// As the tool of `parent` does it: write on a directory below `w`.
    pub async fn spawn(&self, parent: &str, pod: &str, dir: &str) -> Result<PodInfo, Refusal> {
        self.spawn_with(parent, self.spawn_request(pod, dir)).await
    }

    pub fn spawn_request(&self, pod: &str, dir: &str) -> SpawnPod {
        let target = self.root.join("w").join(dir);
        std::fs::create_dir_all(&target).unwrap();
        let scope = vec![write(target)];
        SpawnPod { name: pod.into(), task: "begin".into(), scope, ..SpawnPod::default() }
    }

    pub async fn spawn_with(&self, parent: &str, new: SpawnPod) -> Result<PodInfo, Refusal> {
        match self.pod_api(parent).call(Some(&name(parent)), Method::Spawn(new)).await? {
            Event::Spawned { info, socket } => {
                assert!(socket.exists(), "{}", socket.display());
                Ok(*info)
            }
            other => panic!("{other:?}"),
        }
    }

    pub async fn stop(&self, pod: &str, tree: bool) -> Result<Vec<StoppedPod>, Refusal> {
        match self
            .call(&name(pod), Method::StopPods { tree, unless_busy: false, silent: false })
            .await?
        {
            Event::PodsStopped { stopped } => Ok(stopped),
            other => panic!("{other:?}"),
        }
    }

    /// What every live Pod holds, as the screens are told.
    pub fn holding(&self) -> Vec<(PodName, Scope)> {
        let live = self.host.shared.family().into_iter().filter(|i| i.state != State::Stopped);
        live.map(|info| (info.name, Scope { allow: info.scope, deny: info.deny })).collect()
    }

    /// Who writes below `w`, in the order of creation.
    pub fn writers(&self, path: &str) -> Vec<String> {
        let path = self.root.join("w").join(path);
        let writes = |scope: &Scope| scope.permission(&path) == Some(Permission::Write);
        let holding = self.holding().into_iter();
        holding.filter(|(_, s)| writes(s)).map(|(name, _)| name.to_string()).collect()
    }
}

#[tokio::test]
async fn a_child_works_in_what_it_was_lent_and_its_parent_only_reads_there() {
    let mut bench = Bench::family().await;
    let kid = bench.spawn("p", "kid", "a").await.unwrap();
    assert_eq!(kid.parent, Some(name("p")));
    assert_eq!(kid.cwd, bench.root.join("w/a"));
    bench.next(|e| matches!(e, Event::RunEnd { .. })).await;
    let said = bench.said(&name("kid")).await;
    assert_eq!(said, ["You said begin."]);
    assert_eq!(bench.writers("a/x"), ["kid"]);
    assert_eq!(bench.writers("b/x"), ["p"]);
    let parent = bench.info(&name("p")).await;
    assert_eq!(parent.lent[0].to, name("kid"));
    let page = bench.call(&name("kid"), Method::Page { before: None, max_bytes: 1 << 20 }).await;
    let page = serde_json::to_string(&page.unwrap()).unwrap();
    assert!(page.contains(r#""from":"p""#), "{page}");
}

/// The parent answers each report of its child with a message, and the child reports each of its runs.
#[tokio::test]
async fn a_parent_and_a_child_that_only_answer_each_other_are_slowed_down_until_a_person_writes() {
    let mut bench = Bench::family().await;
    let endless = r#"
[[when]]
note = "*finished a turn*"
[[when.step]]
call = [{ name = "SendToPod", args = { name = "kid", message = "again", queue = true } }]
[[when.step]]
text = "Told it."

[[when]]
any = true
text = "Yes."
"#;
    std::fs::write(bench.root.join("script.toml"), endless).unwrap();
    bench.spawn("p", "kid", "a").await.unwrap();
    let slowed =
        |info: &PodInfo| info.notes.iter().any(|note| note.contains("only answer each other"));
    // The parent has answered the last report that it got, and the answer waits.
    let held = bench.until("kid", |info| slowed(info) && !info.queue.is_empty());
    tokio::time::timeout(PATIENCE, held).await.expect("the child is slowed down");
    let runs = bench.said(&name("kid")).await.len();
    assert!((8..12).contains(&runs), "{runs}");
    let input = vec![Segment::Text { content: "go on".into() }];
    bench.call(&name("kid"), Method::Send { input, queue: true }).await.unwrap();
    bench.until("kid", |info| !slowed(info)).await;
}

#[tokio::test]
async fn a_child_without_a_scope_reads_what_its_parent_may_read_and_changes_nothing() {
    let bench = Bench::family().await;
    let without = SpawnPod { scope: Vec::new(), ..bench.spawn_request("kid", "b") };
    bench.spawn_with("p", without).await.unwrap();
    let held = |pod: &str| {
        let mut held = bench.holding().into_iter();
        held.find(|(name, _)| name.as_str() == pod).unwrap().1
    };
    let (own, lent) = (held("p"), held("kid"));
    assert!(!own.allow.is_empty() && own.writable().count() > 0);
    assert_eq!(lent.allow, own.as_read_only().allow);
    assert_eq!(bench.writers("b/x"), ["p"], "nothing is taken from the parent");
}

#[tokio::test]
async fn a_spawn_that_cannot_be_is_refused_whole_and_leaves_nothing() {
    let bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    let before = bench.host.shared.family();
    let refusal = |new: SpawnPod| async {
        let refusal = bench.spawn_with("p", new).await.unwrap_err();
        refusal.message
    };
    let outside = SpawnPod { scope: vec![write("/usr")], ..bench.spawn_request("x", "b") };
    let text = refusal(outside).await;
    assert!(text.contains("`p` cannot give "), "{text}");
    let twice = refusal(bench.spawn_request("x", "a/deep")).await;
    assert!(
        twice.contains("cannot give write on") && twice.contains("lent it to `kid`"),
        "{twice}"
    );
    let relative = SpawnPod { scope: vec![write("../ws")], ..bench.spawn_request("x", "b") };
    let text = refusal(relative).await;
    assert!(text.contains("`p` cannot give ") && !text.contains(".."), "{text}");
    let own = refusal(bench.spawn_request("p", "b")).await;
    assert_eq!(own, "a child cannot have its parent's name `p`");
    let taken = refusal(bench.spawn_request("KID", "b")).await;
    assert!(taken.starts_with("you have a child `KID` already, and it is live: "), "{taken}");
    let bad = refusal(bench.spawn_request("a/b", "b")).await;
    assert!(bad.contains("a/b"), "{bad}");
    let profile = SpawnPod { profile: Some("nope".into()), ..bench.spawn_request("x", "b") };
    let text = refusal(profile).await;
    assert!(text.contains("profile not found: nope; there are: default, inherit"), "{text}");
    let cwd = SpawnPod { cwd: Some("/usr".into()), ..bench.spawn_request("x", "b") };
    assert!(refusal(cwd).await.contains("not readable under the scope"));
    let names = |family: Vec<PodInfo>| family.into_iter().map(|i| i.name).collect::<Vec<_>>();
    assert_eq!(names(bench.host.shared.family()), names(before));
    assert_eq!(bench.host.shared.store.leases().await.unwrap().len(), 1);
    assert!(!bench.root.join("home/run/x").exists());
}

#[tokio::test]
async fn a_child_whose_first_message_fails_is_undone_with_its_error() {
    let mut bench = Bench::family().await;
    let script = bench.root.join("script.toml");
    std::fs::remove_file(&script).unwrap();
    let kid = bench.spawn("p", "kid", "a").await;
    // A script that is gone is noticed by the first request, after the task was accepted.
    assert!(kid.is_ok());
    bench.stop("kid", false).await.unwrap();
    // The end of the child wakes its parent, and a model without a key is refused while a run lasts.
    let model = || Method::SetModel { model: "anthropic/claude-x".into() };
    while bench.call(&name("p"), model()).await.is_err() {
        bench.until("p", |info| info.state != State::Running).await;
    }
    let refusal = bench.spawn("p", "other", "b").await.unwrap_err();
    assert!(refusal.message.starts_with("could not start pod `other`: no key for anthropic"));
    assert!(bench.host.shared.pod(&name("other")).is_none());
    assert!(bench.host.shared.store.pod(&name("other")).await.unwrap().is_none());
    assert_eq!(bench.writers("b/x"), ["p"]);
    assert_eq!(bench.host.shared.store.leases().await.unwrap().len(), 0);
}

#[tokio::test]
async fn the_scope_of_a_stopped_child_returns_to_its_parent_at_once() {
    let bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    let stopped = bench.stop("kid", false).await.unwrap();
    assert_eq!(stopped[0].returned, [write(bench.root.join("w/a"))]);
    assert_eq!(stopped[0].lender, Some(name("p")));
    assert_eq!(bench.writers("a/x"), ["p"]);
    assert_eq!(bench.info(&name("kid")).await.state, State::Stopped);
    let again = bench.stop("kid", true).await.unwrap_err();
    assert!(again.message.contains("stopped already"), "{again}");
}

#[tokio::test]
async fn two_orders_to_stop_a_pod_stop_it_once() {
    let bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    let (kid, all) = tokio::join!(bench.stop("kid", false), bench.stop("p", true));
    assert!(kid.is_ok(), "{kid:?}");
    assert_eq!(all.unwrap().last().unwrap().name, name("p"));
    // A start looks for stops that were not told.
    let bench = bench.restarted().await;
    let db = rusqlite::Connection::open(bench.root.join("home/data/yoi.db")).unwrap();
    let sql = "SELECT count(*) FROM mail WHERE pod = 'p' AND id LIKE 'stopped:%'";
    let shown: i64 = db.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(shown, 1);
}

#[tokio::test]
async fn a_tree_is_stopped_children_first_and_restored_with_what_each_had() {
    let bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    bench.spawn("kid", "sub", "a/deep").await.unwrap();
    let stopped = bench.stop("p", true).await.unwrap();
    let names: Vec<&str> = stopped.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["sub", "kid", "p"]);
    let plan = Method::RestorePods { tree: false, plan: true };
    let Event::Plan { steps, done } = bench.call(&name("p"), plan).await.unwrap() else { panic!() };
    assert!(!done);
    let what: Vec<Restoring> = steps.iter().map(|step| step.what).collect();
    // News of its children may have woken it before it was stopped.
    assert!(matches!(what[0], Restoring::Idle | Restoring::Paused), "{what:?}");
    assert_eq!(what[1..], [Restoring::StaysStopped, Restoring::StaysStopped]);
    assert_eq!(bench.info(&name("p")).await.state, State::Stopped);
    let all = Method::RestorePods { tree: true, plan: false };
    let Event::Plan { steps, done } = bench.call(&name("p"), all).await.unwrap() else { panic!() };
    assert!(done && steps.len() == 3, "{steps:?}");
    assert_eq!(bench.writers("a/deep/x"), ["sub"]);
    assert_eq!(bench.writers("a/x"), ["kid"]);
    assert_eq!(bench.writers("x"), ["p"]);
}

#[tokio::test]
async fn a_child_that_cannot_be_restored_keeps_none_of_the_others_from_coming_back() {
    let bench = Bench::family().await;
    let reader = |pod: &str| SpawnPod { scope: Vec::new(), ..bench.spawn_request(pod, "a") };
    bench.spawn_with("p", reader("first")).await.unwrap();
    bench.spawn("p", "writer", "b").await.unwrap();
    bench.spawn_with("p", reader("last")).await.unwrap();
    for pod in ["first", "writer", "last"] {
        bench.stop(pod, false).await.unwrap();
    }
    let _command = bench
        .host
        .shared
        .pod(&name("p"))
        .unwrap()
        .commands
        .begin("Bash make".into(), Default::default());
    let restore = Method::RestorePods { tree: true, plan: false };
    let Event::Plan { steps, .. } = bench.call(&name("p"), restore).await.unwrap() else {
        panic!()
    };
    let found = |pod: &str| steps.iter().find(|step| step.name.as_str() == pod).unwrap();
    assert_eq!(found("p").what, Restoring::AlreadyLive);
    assert_eq!(found("writer").what, Restoring::Impossible);
    assert!(found("writer").notes.concat().contains("`p` runs Bash make"), "{steps:?}");
    assert_eq!(bench.info(&name("writer")).await.state, State::Stopped);
    for pod in ["first", "last"] {
        assert!(matches!(found(pod).what, Restoring::Idle | Restoring::Paused), "{steps:?}");
        assert_ne!(bench.info(&name(pod)).await.state, State::Stopped, "{pod}");
    }
}

#[tokio::test]
async fn a_restored_parent_leaves_its_running_children_what_they_have() {
    let bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    bench.stop("p", false).await.unwrap();
    assert_eq!(bench.writers("a/x"), ["kid"]);
    bench.client.call(None, Method::Restore { name: "p".into() }).await.unwrap();
    assert_eq!(bench.writers("a/x"), ["kid"]);
    assert_eq!(bench.writers("x"), ["p"]);
}

#[tokio::test]
async fn the_family_is_the_same_after_the_host_ended() {
    let bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    bench.spawn("kid", "sub", "a/deep").await.unwrap();
    bench.root_pod("z", "w").await;
    bench.call(&name("p"), Method::Peer { name: "z".into() }).await.unwrap();
    let lend = Method::lend("z", write(bench.root.join("w/b")));
    bench.call(&name("p"), lend).await.unwrap();
    let before = (bench.holding(), bench.host.shared.peers.borrow().clone());
    let bench = bench.restarted().await;
    assert_eq!((bench.holding(), bench.host.shared.peers.borrow().clone()), before);
    assert_eq!(bench.writers("b/x"), ["z"]);
}

/// What the host told a Pod of its children in sentences, in the order in which the Pod reads it.
async fn notes_of(bench: &Bench, pod: &str) -> Vec<String> {
    let rows = bench.host.shared.store.messages(&name(pod)).await.unwrap();
    let notes = rows.iter().filter_map(|row| row.payload["message"].as_str());
    notes.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_parent_reads_what_the_end_of_the_host_did_to_its_children_as_long_as_it_is_true() {
    for settings in ["", "[host]\nresume = \"never\"\n"] {
        let bench = Bench::with_settings(settings).await;
        std::fs::write(bench.root.join("script.toml"), SCRIPT).unwrap();
        bench.root_pod("p", "w").await;
        for kid in ["k", "l", "m"] {
            bench.child(&name("p"), kid).await;
        }
        let mut bench = bench.restarted().await;
        for kid in ["k", "l", "m"] {
            bench.hang(kid).await;
        }
        let mut bench = bench.restarted().await.restarted().await;
        for kid in ["k", "l", "m"] {
            let info = bench.is(&name(kid), State::Paused).await;
            assert_eq!(info.cut_at.is_some(), settings.is_empty());
            assert!(info.why.unwrap().contains("(host ended)"));
        }
        let notes = notes_of(&bench, "p").await;
        assert_eq!(notes.len(), 3, "{notes:?}");
        let of_k = notes.iter().find(|note| note.contains("`k`")).unwrap();
        assert!(of_k.starts_with("pod `k` waits for a person: interrupted "), "{notes:?}");
        // A note that is not true any more is not read.
        bench.call(&name("k"), Method::Resume).await.unwrap();
        bench.call(&name("l"), Method::Cancel).await.unwrap();
        bench.is(&name("l"), State::Idle).await;
        assert_eq!(bench.info(&name("k")).await.cut_at, None);
        let notes = notes_of(&bench, "p").await;
        assert!(notes.len() == 1 && notes[0].starts_with("pod `m` waits"), "{notes:?}");
        // What the parent has read is followed by what became of it.
        bench.call(&name("p"), Method::say("hello")).await.unwrap();
        bench.is(&name("p"), State::Idle).await;
        // A Pod whose run has just ended looks for messages once more, so it answers first.
        bench.said(&name("p")).await;
        assert_eq!(notes_of(&bench, "p").await, Vec::<String>::new());
        bench.call(&name("m"), Method::Resume).await.unwrap();
        let goes_on = "pod `m` goes on with the run that was interrupted";
        assert_eq!(notes_of(&bench, "p").await, [goes_on]);
        assert_eq!(bench.info(&name("p")).await.state, State::Idle, "it is not woken");
    }
}

#[tokio::test]
async fn depth_and_number_of_children_have_a_limit_that_is_said() {
    let bench = Bench::family().await;
    for (parent, pod, dir) in
        [("p", "c1", "a"), ("c1", "c2", "a/a"), ("c2", "c3", "a/a/a"), ("c3", "c4", "a/a/a/a")]
    {
        bench.spawn(parent, pod, dir).await.unwrap();
    }
    let deep = bench.spawn("c4", "c5", "a/a/a/a/a").await.unwrap_err();
    assert!(deep.message.contains("limits.depth is 4"), "{deep}");
    for n in 0..12 {
        bench.spawn("p", &format!("n{n}"), &format!("n{n}")).await.unwrap();
    }
    let many = bench.spawn("p", "more", "more").await.unwrap_err();
    assert!(many.message.contains("limits.live_children is 16"), "{many}");
}

#[tokio::test]
async fn peers_are_one_fact_published_to_every_screen() {
    let mut bench = Bench::family().await;
    bench.root_pod("z", "z").await;
    bench.stop("z", false).await.unwrap();
    let Event::PeerRegistered { result } =
        bench.call(&name("p"), Method::Peer { name: "Z".into() }).await.unwrap()
    else {
        panic!()
    };
    assert_eq!((result.source.as_str(), result.peer.as_str()), ("p", "z"));
    bench.next(|e| matches!(e, Event::Peered { .. })).await;
    bench.call(&name("z"), Method::Peer { name: "p".into() }).await.unwrap();
    assert_eq!(bench.host.shared.store.peers().await.unwrap().len(), 1);
    let refused = async |of: &str, to: &str| {
        bench.call(&name(of), Method::Peer { name: to.into() }).await.unwrap_err().message
    };
    assert_eq!(refused("p", "p").await, "pod `p` cannot be registered as a peer of itself");
    assert_eq!(refused("p", "ghost").await, "pod `ghost` does not exist");
    let bad = refused("p", "../x").await;
    assert!(bad.starts_with("pod store error: "), "{bad}");
    bench.call(&name("z"), Method::Unpeer { name: "p".into() }).await.unwrap();
    bench.next(|e| matches!(e, Event::Unpeered { .. })).await;
    assert!(bench.host.shared.peers.borrow().is_empty());
    assert!(bench.call(&name("z"), Method::Unpeer { name: "p".into() }).await.is_err());
}

#[tokio::test]
async fn peers_are_made_while_either_of_them_runs() {
    let mut bench = Bench::family().await;
    bench.root_pod("z", "z").await;
    bench.call(&name("p"), Method::say("hang")).await.unwrap();
    bench.is(&name("p"), State::Running).await;
    bench.call(&name("p"), Method::Peer { name: "z".into() }).await.unwrap();
    bench.call(&name("z"), Method::Unpeer { name: "p".into() }).await.unwrap();
}

#[tokio::test]
async fn a_path_is_lent_found_and_taken_back() {
    let bench = Bench::family().await;
    bench.root_pod("z", "w").await;
    let path = bench.root.join("w/b");
    let lend = |to: &str| Method::lend(to, write(&path));
    bench.call(&name("p"), lend("z")).await.unwrap();
    assert_eq!(bench.writers("b/x"), ["z"]);
    assert!(
        bench.call(&name("p"), lend("z")).await.unwrap_err().message.contains("lent it to `z`")
    );
    let who = bench.client.call(None, Method::Who { path: path.clone() }).await.unwrap();
    let Event::Holders { holders } = who else { panic!() };
    assert_eq!((holders[0].pod.as_str(), holders[0].permission), ("z", Permission::Write));
    assert_eq!(holders[0].lender, Some(name("p")));
    assert_eq!((holders[1].pod.as_str(), holders[1].permission), ("p", Permission::Read));
    let back = bench.call(&name("p"), Method::reclaim(path.clone())).await.unwrap();
    let Event::Reclaimed { leases, .. } = back else { panic!() };
    assert_eq!(leases[0].to, name("z"));
    assert_eq!(bench.writers("b/x"), ["p"]);
    let none = bench.call(&name("p"), Method::reclaim(path)).await.unwrap_err();
    assert!(none.message.contains("has lent nothing"), "{none}");
}

#[tokio::test]
async fn reclaim_says_only_what_it_took_and_names_a_pod_that_still_reads() {
    let bench = Bench::family().await;
    let mut kid = bench.spawn_request("kid", "a");
    kid.scope = vec![Rule::new(bench.root.join("w/a"), Permission::Read)];
    bench.spawn_with("p", kid).await.unwrap();
    let path = bench.root.join("w/a");
    let reads = |bench: &Bench| {
        let (_, scope) = bench.holding().into_iter().find(|(pod, _)| *pod == name("kid")).unwrap();
        scope.permission(&path) == Some(Permission::Read)
    };
    let back = bench.call(&name("p"), Method::reclaim(path.clone())).await;
    let text = back.unwrap_err().message;
    assert!(
        text.contains("nothing can be taken back") && text.contains("`kid` still reads"),
        "{text}"
    );
    assert!(reads(&bench));
    bench.root_pod("z", "z").await;
    let rule = write(&path);
    bench.call(&name("p"), Method::lend("z", rule)).await.unwrap();
    let back = bench.call(&name("p"), Method::reclaim(path.clone())).await.unwrap();
    let Event::Reclaimed { leases, left } = back else { panic!() };
    assert_eq!(leases.iter().map(|lent| lent.to.as_str()).collect::<Vec<_>>(), ["z"]);
    let may = |to: &str, permission| Lent { to: name(to), rule: Rule::new(&path, permission) };
    assert_eq!(left, [may("kid", Permission::Read)]);
    assert!(reads(&bench));
    let lent = bench.host.shared.pod(&name("p")).unwrap().info.borrow().lent.clone();
    assert_eq!(lent, [may("kid", Permission::Read)], "a lease that gives nothing more is kept");
}

#[tokio::test]
async fn a_reclaim_of_write_access_says_that_reading_stays_where_it_does() {
    let bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    bench.root_pod("z", "z").await;
    let path = bench.root.join("w");
    let rule = write(bench.root.join("w/b"));
    bench.call(&name("p"), Method::lend("z", rule)).await.unwrap();
    let back = bench.call(&name("p"), Method::reclaim(path)).await.unwrap();
    let Event::Reclaimed { leases, left } = back else { panic!() };
    assert_eq!(leases.len(), 2);
    let reads = Rule::new(bench.root.join("w/a"), Permission::Read);
    assert_eq!(left, [Lent { to: name("kid"), rule: reads }]);
}

#[tokio::test]
async fn scope_never_moves_from_under_a_running_command() {
    let bench = Bench::family().await;
    bench.root_pod("z", "z").await;
    bench.spawn("p", "kid", "a").await.unwrap();
    bench.spawn("p", "old", "b").await.unwrap();
    bench.stop("old", false).await.unwrap();
    let command = bench
        .host
        .shared
        .pod(&name("p"))
        .unwrap()
        .commands
        .begin("Bash make".into(), Default::default());
    let refused = |result: Result<Event, Refusal>| {
        let refusal = result.unwrap_err();
        assert!(refusal.message.contains("`p` runs Bash make, which may write below"), "{refusal}");
    };
    let (c, d) = (bench.root.join("w/c"), bench.root.join("w/d"));
    let lend = || Method::lend("z", write(&d));
    refused(bench.spawn("p", "new", "c").await.map(|info| Event::Created { info: Box::new(info) }));
    refused(bench.client.call(None, Method::Restore { name: "old".into() }).await);
    refused(bench.call(&name("p"), lend()).await);
    let extend =
        || crate::host::rules::extend(bench.host.supervisor.clone(), name("kid"), write(&c), None);
    let refusal = extend().await.unwrap_err();
    assert!(refusal.message.contains("`p` runs Bash make"), "{refusal}");
    for path in ["b/x", "c/x", "d/x"] {
        assert_eq!(bench.writers(path), ["p"]);
    }
    drop(command);
    bench.call(&name("p"), lend()).await.unwrap();
    bench.client.call(None, Method::Restore { name: "old".into() }).await.unwrap();
    extend().await.unwrap();
    assert_eq!(
        (bench.writers("d/x"), bench.writers("b/x")),
        (vec!["z".into()], vec!["old".into()])
    );
    assert_eq!(bench.writers("c/x"), ["kid"]);
}

#[tokio::test]
async fn relative_paths_of_a_spawn_are_meant_from_the_directory_of_the_parent() {
    let bench = Bench::family().await;
    let parent = bench.info(&name("p")).await.cwd;
    let whole = SpawnPod { scope: vec![write(".")], ..bench.spawn_request("all", "a") };
    let part = SpawnPod {
        scope: vec![write("./a/../b")],
        cwd: Some("b".into()),
        ..bench.spawn_request("part", "b")
    };
    for (spawn, cwd) in [(part, parent.join("b")), (whole, parent.clone())] {
        let info = bench.spawn_with("p", spawn).await.unwrap();
        assert_eq!(info.cwd, cwd);
        let held: Vec<_> = info.scope.iter().map(|rule| rule.target.clone()).collect();
        assert!(held.contains(&cwd), "{held:?}");
        let stop = Method::StopPods { tree: false, unless_busy: false, silent: false };
        bench.call(&info.name, stop).await.unwrap();
    }
}

#[tokio::test]
async fn a_fork_has_the_same_past_and_goes_its_own_way() {
    let mut bench = Bench::family().await;
    bench.call(&name("p"), Method::say("one")).await.unwrap();
    bench.end().await;
    bench.is(&name("p"), State::Idle).await;
    let fork = Method::Fork { name: None, at: None };
    let Event::Created { info } = bench.call(&name("p"), fork).await.unwrap() else { panic!() };
    assert_eq!(info.name.as_str(), "p-2");
    assert!(info.scope.iter().all(|rule| rule.permission == Permission::Read), "{:?}", info.scope);
    bench.call(&info.name, Method::say("two")).await.unwrap();
    bench.end().await;
    assert_eq!(bench.said(&info.name).await, ["You said one.", "You said two."]);
    assert_eq!(bench.said(&name("p")).await, ["You said one."]);
}

#[tokio::test]
async fn a_fork_of_a_pod_without_a_message_has_an_empty_transcript() {
    let mut bench = Bench::family().await;
    let fork = Method::Fork { name: Some(name("f")), at: None };
    bench.call(&name("p"), fork).await.unwrap();
    for pod in ["p", "f"] {
        let page = bench.call(&name(pod), Method::Page { before: None, max_bytes: 1 << 20 }).await;
        let Event::Page { entries, before, .. } = page.unwrap() else { panic!("no page") };
        assert_eq!((entries.len(), before), (0, None), "{pod}: {entries:?}");
    }
    bench.call(&name("f"), Method::say("two")).await.unwrap();
    bench.end().await;
    assert_eq!(bench.said(&name("f")).await, ["You said two."]);
}

#[tokio::test]
async fn a_fork_goes_up_to_an_entry_and_one_that_is_not_there_is_refused() {
    let mut bench = Bench::family().await;
    let (p, unknown, mut last) = (name("p"), EntryId::new(), None);
    for text in ["one", "two"] {
        let accepted = bench.call(&p, Method::say(text)).await.unwrap();
        let Event::Accepted { entry, .. } = accepted else { panic!("{accepted:?}") };
        last = entry;
        bench.end().await;
        bench.is(&p, State::Idle).await;
    }
    let pods = bench.host.shared.family().len();
    let fork = |at| Method::Fork { name: Some(name("f")), at };
    let refused = bench.call(&p, fork(Some(unknown))).await.unwrap_err();
    assert!(refused.message.starts_with(&format!("there is no entry {unknown} in ")), "{refused}");
    assert_eq!(bench.host.shared.family().len(), pods, "nothing is left of it");
    bench.call(&p, fork(last)).await.unwrap();
    assert_eq!(bench.said(&name("f")).await, ["You said one."]);
    let info = bench.info(&name("f")).await;
    assert_eq!(info.state, State::Paused, "its last message has no answer yet");
    let why = info.why.unwrap();
    assert!(why.starts_with("interrupted ") && why.ends_with(" (forked here)"), "{why}");
    bench.call(&name("f"), Method::Resume).await.unwrap();
    bench.end().await;
    assert_eq!(bench.said(&name("f")).await, ["You said one.", "You said two."]);
}

/// How long the test waits for an answer before it says that the host hangs.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// How many stops the storm below makes; the whole thousand takes a while.
fn stops() -> usize {
    std::env::var("YOI_STOPS").ok().and_then(|n| n.parse().ok()).unwrap_or(40)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_stop_answers_beside_spawns_messages_and_child_events() {
    let bench = std::sync::Arc::new(Bench::family().await);
    let lanes = 4;
    let mut storm = tokio::task::JoinSet::new();
    for lane in 0..lanes {
        let bench = bench.clone();
        storm.spawn(async move {
            let pod_api = bench.pod_api("p");
            for n in 0..stops() / lanes {
                let pod = format!("k{lane}-{n}");
                bench.spawn("p", &pod, &format!("d{lane}")).await.unwrap();
                let kid = name(&pod);
                let said = pod_api.call(Some(&kid), Method::say("more")).await;
                // The first run may still be under way.
                if let Err(refusal) = said {
                    assert_eq!(refusal.code, ErrorCode::AlreadyRunning, "{refusal}");
                }
                let stop = pod_api.call(
                    Some(&kid),
                    Method::StopPods { tree: n % 2 == 0, unless_busy: false, silent: false },
                );
                let stopped = tokio::time::timeout(PATIENCE, stop).await.expect("an answer");
                assert!(matches!(stopped, Ok(Event::PodsStopped { .. })), "{stopped:?}");
            }
        });
    }
    while let Some(lane) = storm.join_next().await {
        lane.unwrap();
    }
    assert_eq!(bench.writers("d0/x"), ["p"]);
}

/// Whether two Pods may write one path.
pub fn two_writers(holding: &[(PodName, Scope)]) -> Option<String> {
    for (n, (one, held)) in holding.iter().enumerate() {
        for (two, other) in &holding[n + 1..] {
            if let Some(path) = held.write_conflicts(other).first() {
                return Some(format!("{one} and {two} write {}", path.display()));
            }
        }
    }
    None
}

#[test]
fn two_writers_are_seen() {
    let scope = |path: &str| Scope::new(vec![write(Path::new(path))]);
    let apart = [(name("a"), scope("/a")), (name("b"), scope("/b"))];
    assert_eq!(two_writers(&apart), None);
    let beside = [(name("a"), scope("/a")), (name("b"), scope("/a/b"))];
    assert!(two_writers(&beside).is_some());
}

impl Bench {
    /// What the log of a Pod says of its turns.
    async fn turns(&self, pod: &PodName) -> Vec<serde_json::Value> {
        let turn = |fact: Fact| match fact {
            Fact::Extension { domain: of, payload } => (of == domain::TURN).then_some(payload),
            _ => None,
        };
        self.facts(pod).await.into_iter().filter_map(turn).collect()
    }

    /// Carries out a verb as a note names it: `:lend a b /path`, `:stop a` or `:stop --tree a`.
    async fn follow(&self, advice: &str) {
        let words: Vec<&str> = advice.split(' ').collect();
        let (pod, method) = match words.as_slice() {
            [":lend", from, to, path, ..] => (*from, Method::lend(*to, write(*path))),
            [":stop", "--tree", pod, ..] => {
                (*pod, Method::StopPods { tree: true, unless_busy: false, silent: false })
            }
            [":stop", pod, ..] => {
                (*pod, Method::StopPods { tree: false, unless_busy: false, silent: false })
            }
            _ => panic!("{advice}"),
        };
        self.call(&name(pod), method).await.unwrap();
    }

    /// What the note of a Pod that only reads advises, each way by itself.
    async fn advised(&self, pod: &str) -> Vec<String> {
        let notes = self.info(&name(pod)).await.notes;
        let note = notes.iter().find(|note| note.starts_with("read-only")).unwrap();
        note.split(" · ").skip(1).map(str::to_owned).collect()
    }
}

impl Bench {
    /// A run of the Pod that lasts until it is paused.
    pub async fn hang(&mut self, pod: &str) {
        self.call(&name(pod), Method::say("hang")).await.unwrap();
        self.next(|event| matches!(event, Event::TurnStart { .. })).await;
    }

    /// The notes of a Pod that say where it only reads.
    async fn reads(&self, pod: &str) -> Vec<String> {
        let notes = self.info(&name(pod)).await.notes;
        notes.into_iter().filter(|note| note.starts_with("read-only")).collect()
    }
}

#[tokio::test]
async fn each_way_to_write_that_a_note_names_leads_to_writing() {
    for way in [0, 1] {
        let mut bench = Bench::family().await;
        bench.root_pod("second", "w").await;
        assert_eq!(bench.writers("x"), ["p"]);
        bench.hang("p").await;
        bench.hang("second").await;
        let advised = bench.advised("second").await;
        let path = bench.root.join("w");
        let lend = format!(":lend p second {} hands it over", path.display());
        assert_eq!(advised, [lend, "second writes there when the run of p has ended".into()]);
        match way {
            0 => bench.follow(&advised[0]).await,
            _ => drop(bench.call(&name("p"), Method::Pause).await.unwrap()),
        }
        assert_eq!(bench.writers("x"), ["second"]);
        assert_eq!(bench.reads("second").await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_note_names_no_way_that_would_not_lead_to_writing() {
    let mut bench = Bench::family().await;
    bench.root_pod("second", "w").await;
    bench.spawn("p", "kid", "a").await.unwrap();
    // Its own run, and that of its parent, which learns of its end.
    for _ in 0..2 {
        bench.end().await;
    }
    bench.hang("second").await;
    // The rest of the directory is given up by the Pod at rest; a part of it is lent to its child.
    assert_eq!(bench.writers("x"), ["second"]);
    let advised = bench.advised("second").await;
    let path = bench.root.join("w/a");
    let lend = format!(":lend kid second {} hands it over", path.display());
    assert_eq!(advised, [lend, ":stop kid frees it".into()]);
    bench.follow(&advised[1]).await;
    assert_eq!(bench.writers("a/x"), ["second"]);
}

#[tokio::test]
async fn a_run_takes_what_pods_at_rest_write_and_another_one_reads_beside_it_and_says_so() {
    let mut bench = Bench::family().await;
    bench.root_pod("second", "w").await;
    bench.call(&name("second"), Method::say("one")).await.unwrap();
    bench.end().await;
    assert_eq!(bench.writers("x"), ["second"], "it keeps what it had");
    assert_eq!(bench.turns(&name("second")).await, Vec::<serde_json::Value>::new());
    bench.hang("p").await;
    assert_eq!(bench.writers("x"), ["p"]);
    bench.hang("second").await;
    let row = serde_json::json!({"writers": ["p"], "refused": false});
    assert_eq!(bench.turns(&name("second")).await, [row]);
    bench.call(&name("p"), Method::Pause).await.unwrap();
    assert_eq!(bench.writers("x"), ["second"], "it comes back by itself");
}

#[tokio::test]
async fn a_listing_above_yois_own_directories_is_granted_and_all_that_is_below_is_not() {
    let bench = Bench::family().await;
    let extend =
        |rule| crate::host::rules::extend(bench.host.supervisor.clone(), name("p"), rule, None);
    let all = Rule::new(&bench.root, Permission::Read);
    let refused = extend(all.clone()).await.unwrap_err().message;
    assert!(refused.contains("is in or around yoi's own directory"), "{refused}");
    extend(Rule { recursive: false, ..all }).await.unwrap();
    let own = Rule::new(bench.root.join("home/config/x"), Permission::Read);
    assert!(extend(Rule { recursive: false, ..own }).await.is_err());
}

#[tokio::test]
async fn a_turn_ends_also_where_the_store_cannot_keep_what_another_pod_writes_then() {
    let mut bench = Bench::family().await;
    bench.root_pod("second", "w").await;
    bench.hang("p").await;
    bench.hang("second").await;
    let full = "CREATE TRIGGER full BEFORE UPDATE OF gaps ON pods
                BEGIN SELECT RAISE(ABORT, 'disk full'); END";
    sql(&bench.root, full);
    bench.call(&name("p"), Method::Pause).await.unwrap();
    bench.is(&name("p"), State::Idle).await;
    assert_eq!(bench.writers("x"), ["p"], "nothing of it was stored");
    sql(&bench.root, "DROP TRIGGER full");
    bench.call(&name("second"), Method::Pause).await.unwrap();
    bench.is(&name("second"), State::Idle).await;
    bench.hang("second").await;
    assert_eq!(bench.writers("x"), ["second"]);
}

#[tokio::test]
async fn a_run_waits_for_its_turn_where_the_settings_say_so_and_esc_ends_the_wait() {
    let mut bench = Bench::with_settings("scope.when_busy = 'wait'\n").await;
    std::fs::write(bench.root.join("script.toml"), SCRIPT).unwrap();
    for pod in ["p", "second"] {
        bench.root_pod(pod, "w").await;
    }
    bench.hang("p").await;
    bench.call(&name("second"), Method::say("one")).await.unwrap();
    let waits = |event: &Event| match event {
        Event::PodChanged { info } => {
            info.activity.as_deref() == Some("waits until p has ended its run")
                && info.waits_to_write()
        }
        _ => false,
    };
    bench.next(waits).await;
    let notice = bench.next(|event| matches!(event, Event::Alert(_))).await;
    let says = |text: &str| matches!(&notice, Event::Alert(a) if a.message.contains(text));
    assert!(says("waits until p has ended its run") && says(":pause p frees it"), "{notice:?}");
    bench.call(&name("second"), Method::Pause).await.unwrap();
    bench.is(&name("second"), State::Idle).await;
    bench.call(&name("second"), Method::say("two")).await.unwrap();
    bench.next(waits).await;
    assert_eq!(bench.writers("x"), ["p"]);
    bench.call(&name("p"), Method::Pause).await.unwrap();
    bench.next(|event| matches!(event, Event::RunEnd { result: RunResult::Finished, .. })).await;
    assert_eq!(bench.said(&name("second")).await, ["You said two."]);
    assert_eq!(bench.writers("x"), ["second"]);
    assert_eq!(bench.turns(&name("second")).await, Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn the_notes_of_an_ephemeral_pod_advise_no_lease() {
    let mut bench = Bench::family().await;
    bench.ephemeral("e").await;
    bench.hang("p").await;
    bench.hang("e").await;
    assert_eq!(bench.advised("e").await, ["e writes there when the run of p has ended"]);
}

#[tokio::test]
async fn a_lease_that_needs_a_live_pod_names_the_stopped_one_and_how_it_comes_back() {
    let bench = Bench::family().await;
    bench.root_pod("other", "v").await;
    let lend = |to: &str| Method::lend(to, write(bench.root.join("w")));
    bench.stop("other", false).await.unwrap();
    let refused = bench.call(&name("p"), lend("other")).await.unwrap_err().message;
    assert!(refused.contains("`other` is stopped") && refused.ends_with(":restore other first"));
    bench.stop("p", false).await.unwrap();
    let refused = bench.call(&name("p"), lend("other")).await.unwrap_err().message;
    assert!(refused.contains("`p` and `other` are stopped"), "{refused}");
    assert!(refused.ends_with(":restore p and :restore other first"), "{refused}");
}

#[tokio::test]
async fn what_was_reclaimed_stays_reclaimed_over_stop_restore_and_a_new_host_until_it_is_lent_again()
 {
    let bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    assert_eq!(bench.writers("a/x"), ["kid"]);
    let path = bench.root.join("w/a");
    bench.call(&name("p"), Method::reclaim(path.clone())).await.unwrap();
    bench.stop("kid", false).await.unwrap();
    bench.call(&name("kid"), Method::RestorePods { tree: false, plan: false }).await.unwrap();
    assert_eq!(bench.writers("a/x"), ["p"]);
    let bench = bench.restarted().await;
    assert_eq!(bench.writers("a/x"), ["p"]);
    let notes = bench.info(&name("kid")).await.notes;
    let back = format!(":lend p kid {} gives it back", path.display());
    let note = format!("read-only below {}: p took it back · {back}", path.display());
    assert!(notes.contains(&note), "{notes:?}");
    bench.follow(&back).await;
    assert_eq!(bench.writers("a/x"), ["kid"]);
    bench.stop("kid", false).await.unwrap();
    bench.call(&name("kid"), Method::RestorePods { tree: false, plan: false }).await.unwrap();
    assert_eq!(bench.writers("a/x"), ["kid"]);
}

#[tokio::test]
async fn write_access_that_a_stop_hands_to_another_pod_is_said_by_the_verb_and_on_that_pod() {
    let mut bench = Bench::family().await;
    bench.root_pod("second", "w").await;
    bench.spawn("p", "kid", "a").await.unwrap();
    // Its own run, and that of its parent, which learns of its end.
    for _ in 0..2 {
        bench.end().await;
    }
    bench.hang("second").await;
    let stopped = bench.stop("kid", false).await.unwrap();
    let path = bench.root.join("w/a");
    let gained = crate::protocol::Lent { to: name("second"), rule: write(&path) };
    assert_eq!(stopped[0].gained, [gained]);
    let alert = bench.next(|event| matches!(event, Event::Alert(_))).await;
    let Event::Alert(alert) = alert else { unreachable!() };
    let text =
        format!("`second` may write {} now: `kid`, which wrote there, has stopped", path.display());
    assert_eq!(alert.message, text);
    let restore = Method::RestorePods { tree: false, plan: false };
    let restored = bench.call(&name("kid"), restore).await.unwrap();
    let Event::Plan { steps, .. } = restored else { panic!("a plan") };
    assert!(steps[0].notes.is_empty(), "it writes when its turn comes: {steps:?}");
    assert_eq!(bench.writers("a/x"), ["second"]);
}

#[tokio::test]
async fn reading_that_a_pod_has_already_is_not_lent_again() {
    let bench = Bench::family().await;
    bench.root_pod("second", "w").await;
    let rule = Rule::new(bench.root.join("w"), Permission::Read);
    let lend = Method::lend("second", rule);
    let refused = bench.call(&name("p"), lend).await.unwrap_err().message;
    assert_eq!(refused, format!("`second` can read {} already", bench.root.join("w").display()));
}

#[tokio::test]
async fn a_tree_that_is_live_again_says_nothing_of_children_that_stopped() {
    let bench = Bench::family().await;
    bench.spawn("p", "c", "a").await.unwrap();
    bench
        .call(&name("p"), Method::StopPods { tree: true, unless_busy: false, silent: false })
        .await
        .unwrap();
    let stops = async || {
        let waiting = bench.host.shared.store.messages(&name("p")).await.unwrap();
        waiting.iter().filter(|message| message.id.starts_with("stopped:")).count()
    };
    assert_eq!(stops().await, 1);
    bench.call(&name("p"), Method::RestorePods { tree: true, plan: false }).await.unwrap();
    assert_eq!(stops().await, 0);
    assert_ne!(bench.info(&name("p")).await.why.as_deref(), Some("c stopped"));
}
