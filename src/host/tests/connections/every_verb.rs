//! A client sends a request and disconnects at once, a thousand times over all verbs: each request
//! is finished or refused, nothing is half done, and no Pod is stuck.

use super::{LIMIT, Raw};
use crate::client::Client;
use crate::host::tests::Bench;
use crate::protocol::method::{Addressees, NewPod};
use crate::protocol::{
    CompletionKind, EntryId, Event, Incoming, McpClient, Method, PodEvent, PodInfo, PodName,
    RewindTargetId, Segment, SegmentId, SpawnPod, State, Verdict, WorktreeChange,
};
use crate::scope::{Permission, Rule};
use crate::store::Wanted;
use std::collections::{BTreeMap, BTreeSet};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout};

const REQUESTS: usize = 1_000;
const SEED: u64 = 20_261_122;

/// The list of verbs, and the name of a request in it: a new verb does not compile until it is
/// listed, and a listed one needs a request below.
macro_rules! verbs {
    ($($verb:ident)*) => {
        const VERBS: &[&str] = &[$(stringify!($verb)),*];

        fn name_of(method: &Method) -> &'static str {
            match method {
                $(Method::$verb { .. } => stringify!($verb)),*
            }
        }
    };
}

verbs! {
    Send Notify PodEvent Resume Cancel Pause Compact ListRewindTargets Rewind Stop ListCompletions
    ListPods Restore Peer Watch Page Fetch New Open Remove SetModel SetEffort Consent FindModel EditQueued Steer Seen Later PutOff Show Attend
    HostStatus TryNotify Trace Spawn StopPods ReadOutput Relocate RestorePods Unpeer Lend Reclaim Who Since Decide ListPolicy ExplainCommand Revoke
    Trust ListServers ListJobs StopJob Worktree UndoRewind LeaveOut MeshJoin MeshLeave MeshAgents MeshSend MeshBlock ActAs Fork
}

/// Numbers that are the same each time (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % end as u64).unwrap()
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        (!of.is_empty()).then(|| &of[self.below(of.len())])
    }
}

/// Makes requests that fit the family as it is.
struct Asker<'b> {
    bench: &'b Bench,
    /// A connection that watches nothing, to look things up.
    client: Client,
    random: Random,
    made: usize,
}

impl Asker<'_> {
    /// The next request of this verb.
    async fn request(&mut self, verb: &str) -> Incoming {
        let family = self.family().await;
        let info = self.random.one(&family).expect("a pod").clone();
        let other = self.random.one(&family).expect("a pod").name.clone();
        let pod = info.name.clone();
        let method = self.method(verb, &info, other).await;
        let of_host = matches!(
            method,
            Method::New(_)
                | Method::Restore { .. }
                | Method::Who { .. }
                | Method::Decide { .. }
                | Method::ListPolicy
                | Method::Revoke { .. }
                | Method::Trust { .. }
                | Method::MeshBlock { .. }
                | Method::ActAs(_)
                | Method::ListServers { .. }
                | Method::ListJobs
                | Method::HostStatus
                | Method::TryNotify
                | Method::FindModel { .. }
                | Method::Trace { .. }
                | Method::Watch
                | Method::Show { .. }
                | Method::Attend { .. }
        );
        // To stop without a Pod is to end the host, which is asked for at times.
        let of_host = of_host || (matches!(method, Method::Stop) && self.random.below(4) == 0);
        let id = (self.random.below(2) == 0).then(|| "1".to_owned());
        Incoming { id, pod: (!of_host).then_some(pod), method }
    }

    /// The family. Where the last Pod was removed before a new one is listed, one is created.
    async fn family(&mut self) -> Vec<PodInfo> {
        let family = self.bench.host.shared.family();
        if !family.is_empty() {
            return family;
        }
        let new = Method::New(self.new_pod());
        let Event::Created { info } = self.client.call(None, new).await.unwrap() else {
            panic!("the reply to `new` is no created Pod");
        };
        vec![*info]
    }

    async fn method(&mut self, verb: &str, info: &PodInfo, other: PodName) -> Method {
        self.made += 1;
        let n = self.made;
        let path = self.bench.root.join("w");
        match verb {
            "Send" => {
                let text = if self.random.below(2) == 0 { "write" } else { "hello" };
                let queue = self.random.below(2) == 0;
                Method::Send { input: input(format!("{text} {n}")), queue }
            }
            "Notify" => Method::Notify { message: format!("note {n}") },
            "PodEvent" => {
                Method::PodEvent(PodEvent::TurnEnded { pod_name: other.to_string(), result: None })
            }
            "Resume" => Method::Resume,
            "Cancel" => Method::Cancel,
            "Pause" => Method::Pause,
            "Compact" => Method::Compact,
            "ListRewindTargets" => Method::ListRewindTargets,
            "Rewind" => self.rewind(&info.name).await,
            "Stop" => Method::Stop,
            "ListCompletions" => {
                Method::ListCompletions { kind: CompletionKind::File, prefix: "n".into() }
            }
            "ListPods" => Method::ListPods,
            "Restore" => Method::Restore { name: other.to_string() },
            "Peer" => Method::Peer { name: other.to_string() },
            "Watch" => Method::Watch,
            "Page" => Method::Page { before: None, max_bytes: 1 << 16 },
            "Fetch" => Method::Fetch { entry: EntryId::new(), range: None },
            "New" => Method::New(self.new_pod()),
            "Open" => Method::Open { env: BTreeMap::from([("TZ".into(), "UTC".into())]) },
            "Remove" => Method::Remove,
            "SetModel" => Method::SetModel { model: self.model() },
            "SetEffort" => Method::SetEffort { effort: Some(crate::protocol::Effort::Low) },
            "Consent" => Method::Consent { sends: format!("sends {n}") },
            "FindModel" => {
                Method::FindModel { cwd: path, model: Some(self.model()), env: BTreeMap::new() }
            }
            "EditQueued" => {
                let id = info.queue.first().map(|queued| queued.id.clone()).unwrap_or_default();
                Method::EditQueued {
                    id,
                    input: n.is_multiple_of(2).then(|| input(format!("hello {n}"))),
                }
            }
            "Steer" => Method::Steer { id: None, input: input(format!("hello {n}")) },
            "Seen" => Method::Seen,
            "Later" => Method::Later,
            "PutOff" => Method::PutOff { approval: format!("request-{n}") },
            "Show" => Method::Show { pods: vec![info.name.clone(), other], follows: None },
            "Attend" => Method::Attend { attends: n.is_multiple_of(2) },
            "HostStatus" => Method::HostStatus,
            "TryNotify" => Method::TryNotify,
            "Trace" => Method::Trace { filter: "warn".into() },
            "Spawn" => Method::Spawn(SpawnPod {
                name: format!("child-{n}"),
                task: format!("write {n}"),
                scope: vec![rule(path.join(format!("d{n}")))],
                profile: Some("inherit".into()),
                ..SpawnPod::default()
            }),
            "StopPods" => {
                Method::StopPods { tree: n.is_multiple_of(2), unless_busy: false, silent: false }
            }
            "ReadOutput" => Method::ReadOutput,
            "Relocate" => Method::Relocate { cwd: path },
            "RestorePods" => {
                Method::RestorePods { tree: n.is_multiple_of(2), plan: n.is_multiple_of(3) }
            }
            "Unpeer" => Method::Unpeer { name: other.to_string() },
            "Lend" => Method::lend(other.as_str(), rule(path.join("lent"))),
            "Reclaim" => Method::reclaim(path),
            "Who" => Method::Who { path },
            "Decide" => {
                let approvals = self.bench.host.shared.approvals();
                let approval = self
                    .random
                    .one(&approvals)
                    .map(|approval| approval.id.clone())
                    .unwrap_or_default();
                let verdict = if n.is_multiple_of(2) {
                    Verdict::Once
                } else {
                    Verdict::Deny { reason: String::new() }
                };
                Method::Decide { approval, verdict }
            }
            "Since" => Method::Since { at: n as u64 },
            "ListPolicy" => Method::ListPolicy,
            "ExplainCommand" => Method::ExplainCommand,
            "Revoke" => Method::Revoke { rule: n as u64 },
            "ListServers" => Method::ListServers { workspace: info.workspace.clone() },
            "ListJobs" => Method::ListJobs,
            "StopJob" => Method::StopJob { id: "job-1".into() },
            "Worktree" => Method::Worktree {
                change: [
                    None,
                    Some(WorktreeChange::Keep),
                    Some(WorktreeChange::Drop { digest: String::new() }),
                ][n % 3]
                    .clone(),
            },
            "Trust" => {
                let sha256 = n.is_multiple_of(2).then(|| "0".repeat(64));
                Method::Trust { workspace: info.workspace.clone(), sha256 }
            }
            "LeaveOut" => Method::LeaveOut { result: EntryId::new().to_string() },
            "UndoRewind" => self.undo_rewind(&info.name).await,
            "MeshJoin" => Method::MeshJoin,
            "MeshLeave" => Method::MeshLeave,
            "MeshAgents" => Method::MeshAgents,
            "MeshSend" => Method::MeshSend {
                to: Addressees::One(other.to_string()),
                body: "hello".into(),
                re: None,
            },
            "MeshBlock" => {
                Method::MeshBlock { name: format!("agent-{}", n % 3), end: n.is_multiple_of(2) }
            }
            "ActAs" => Method::ActAs(McpClient {
                folder: path,
                name: format!("client-{n}"),
                address: None,
                program: None,
            }),
            "Fork" => Method::Fork { name: None, at: None },
            verb => panic!("`{verb}` is listed and has no request here"),
        }
    }

    fn model(&self) -> String {
        format!("rehearsal:{}", self.bench.root.join("script.toml").display())
    }

    fn new_pod(&mut self) -> NewPod {
        let cwd = self.bench.root.join(format!("new-{}", self.made));
        std::fs::create_dir_all(&cwd).unwrap();
        NewPod { cwd, model: Some(self.model()), ..NewPod::default() }
    }

    /// Takes the last rewind back, where there is one.
    async fn undo_rewind(&self, pod: &PodName) -> Method {
        let listed = timeout(LIMIT, self.client.call(Some(pod), Method::ListRewindTargets)).await;
        let (expected_head_entries, undo) = match listed.expect("an answer") {
            Ok(Event::RewindTargets { head_entries, undo, redo, .. }) => {
                (head_entries, undo.or(redo))
            }
            _ => (0, None),
        };
        let entry = undo.map_or_else(EntryId::new, |undo| undo.entry);
        Method::UndoRewind { entry, expected_head_entries }
    }

    /// Back to before the last input, where there is one.
    async fn rewind(&self, pod: &PodName) -> Method {
        let listed = timeout(LIMIT, self.client.call(Some(pod), Method::ListRewindTargets)).await;
        if let Ok(Event::RewindTargets { head_entries, targets, .. }) = listed.expect("an answer")
            && let Some(target) = targets.first()
        {
            return Method::Rewind { target: target.id, expected_head_entries: head_entries };
        }
        let target = RewindTargetId { segment_id: SegmentId::new(), user_input_entry_index: 0 };
        Method::Rewind { target, expected_head_entries: 0 }
    }
}

fn input(content: String) -> Vec<Segment> {
    vec![Segment::Text { content }]
}

fn rule(target: std::path::PathBuf) -> Rule {
    Rule { target, permission: Permission::Write, recursive: true }
}

/// Sends one request and disconnects, over the socket of its Pod or of the host.
async fn send_and_leave(bench: &Bench, request: &Incoming, to_pod: bool) {
    let mut request = request.clone();
    let socket = request.pod.as_ref().map(|pod| bench.host.shared.sockets().socket(pod.as_str()));
    // A Pod that is being stopped takes no connection any more.
    let pod = match socket.filter(|_| to_pod) {
        Some(socket) => UnixStream::connect(socket).await.ok(),
        None => None,
    };
    let mut raw = match pod {
        Some(stream) => {
            request.pod = None;
            Raw::over(stream)
        }
        None => Raw::at_host(bench).await,
    };
    // Or it has closed the connection meanwhile.
    let _ = raw.writer.write_all(&request.encode().unwrap()).await;
}

/// What is not as it should be, if anything: Pods that need a person without an open request, and
/// what the store says otherwise than the actors.
async fn disagreement(bench: &Bench) -> Option<String> {
    let shared = &bench.host.shared;
    let rows = shared.store.pods().await.unwrap();
    let rows: Vec<_> = rows.into_iter().map(|row| row.expect("a whole record")).collect();
    let family = shared.family();
    let stored: BTreeSet<_> = rows.iter().map(|row| row.name.key()).collect();
    let listed: BTreeSet<_> = family.iter().map(|info| info.name.key()).collect();
    if stored != listed {
        return Some(format!("the store has {stored:?}, the family is {listed:?}"));
    }
    let open = shared.approvals();
    for row in rows {
        let info = family.iter().find(|info| info.name == row.name)?;
        let name = &row.name;
        if (row.wanted == Wanted::Live) == (info.state == State::Stopped) {
            return Some(format!("{name} is wanted {:?} and {:?}", row.wanted, info.state));
        }
        if (row.segment, &row.parent) != (info.segment, &info.parent) {
            return Some(format!("{name}: {row:?} is not {info:?}"));
        }
        let approvals = shared.store.approvals_of(name).await.unwrap();
        if let Some(approval) = open.iter().find(|approval| approval.pod == *name) {
            let decided =
                approvals.iter().any(|row| row.approval.id == approval.id && row.verdict.is_some());
            if decided || info.state != State::NeedsYou {
                return Some(format!("{name} is {:?} with an open request", info.state));
            }
        } else if info.state == State::NeedsYou {
            return Some(format!("{name} needs a person and asks nothing: {:?}", info.why));
        }
        let mut queue = Vec::new();
        for message in shared.store.messages(name).await.unwrap() {
            queue.extend(info.queue.iter().find(|q| q.id == message.id).map(|q| q.id.clone()));
        }
        if queue.len() != info.queue.len() {
            return Some(format!(
                "{name} shows a queue of {}, {queue:?} is stored",
                info.queue.len()
            ));
        }
    }
    let mut peers = shared.store.peers().await.unwrap();
    let mut known = shared.peers.borrow().as_ref().clone();
    peers.sort_by_key(|edge| format!("{edge:?}"));
    known.sort_by_key(|edge| format!("{edge:?}"));
    (peers != known).then(|| format!("the store has {peers:?}, the host {known:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_requests_whose_clients_disconnect_leave_nothing_half_done() {
    let (bench, pod) = Bench::with_rules().await;
    let (client, _events) = bench.host.client().await.unwrap();
    let mut asker = Asker { bench: &bench, client, random: Random(SEED), made: 0 };
    for n in 0..REQUESTS {
        let verb = VERBS[n % VERBS.len()];
        let request = asker.request(verb).await;
        assert_eq!(name_of(&request.method), verb);
        let to_pod = request.method.is_classic() && asker.random.below(2) == 0;
        send_and_leave(&bench, &request, to_pod).await;
    }
    let everyone = bench.host.shared.family();
    assert!(everyone.len() > 3, "{} pods: the requests were refused", everyone.len());
    let until = Instant::now() + 2 * LIMIT;
    loop {
        // Each answer comes after everything that was asked of that Pod before.
        for info in bench.host.shared.family() {
            let page = Method::Page { before: None, max_bytes: 1 };
            let page = timeout(LIMIT, asker.client.call(Some(&info.name), page)).await;
            assert!(page.is_ok(), "`{}` is stuck: {info:?}", info.name);
        }
        let who = asker.client.call(None, Method::Who { path: bench.root.clone() });
        assert!(timeout(LIMIT, who).await.is_ok(), "the supervisor is stuck");
        let family = bench.host.shared.family();
        let running = family.iter().find(|info| info.state == State::Running);
        let wrong = match running {
            Some(info) => Some(format!("`{}` runs: {info:?}", info.name)),
            None => disagreement(&bench).await,
        };
        let Some(wrong) = wrong else { break };
        assert!(Instant::now() < until, "{wrong}");
    }
    // It still works.
    let sent = asker.client.call(Some(&pod), Method::Seen).await;
    assert!(sent.is_ok() || bench.host.shared.pod(&pod).is_none(), "{sent:?}");
}
