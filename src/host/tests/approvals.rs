//! Approval requests, from the call that waits to the decision that lets it go on.

use super::Bench;
use crate::host::rules;
use crate::protocol::Segment;
use crate::protocol::entry::domain;
use crate::protocol::method::NewPod;
use crate::protocol::{
    ApprovalRequest, Entry, Event, Lent, Method, Pattern, PodName, RunResult, SessionId, State,
    Verdict, now_ms,
};
use crate::store::{Change, Decided, Store, Wanted};
use serde_json::json;

/// A rule asks about every call here, so that a decision has a visible effect.
const RULES: &str = r#"
[[permissions.rule]]
tool = "Write"
pattern = "*/never.txt"
action = "deny"

[[permissions.rule]]
tool = "Write"
action = "ask"

[[permissions.rule]]
tool = "Read"
action = "ask"

[[permissions.rule]]
tool = "Fl*"
action = "ask"

[[permissions.rule]]
tool = "ReadPodOutput"
action = "ask"

[[permissions.rule]]
tool = "RestorePod"
action = "ask"

[[permissions.rule]]
tool = "SendToPeerPod"
action = "ask"

[[permissions.rule]]
tool = "SendToPod"
action = "ask"

[[permissions.rule]]
tool = "StopPod"
action = "ask"
"#;

const SCRIPT: &str = r#"
[[when]]
says = "reread *"
[[when.step]]
call = [{ name = "Read", args = { file_path = "{cwd}/{1}.txt" } }]
[[when.step]]
call = [{ name = "Write", args = { file_path = "{cwd}/{1}.txt", content = "x" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "write *"
[[when.step]]
text = "I write."
call = [{ name = "Write", args = { file_path = "{cwd}/{1}.txt", content = "x" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "plan *"
[[when.step]]
text = "I plan."
call = [{ name = "TaskCreate", args = { subject = "write the guide", description = "short" } }, { name = "TaskUpdate", args = { taskid = 1, status = "inprogress" } }]
[[when.step]]
text = "The notes are missing."
call = [{ name = "Write", args = { file_path = "{cwd}/{1}.txt", content = "x" } }]

[[when]]
says = "both"
[[when.step]]
text = "I write both."
call = [{ name = "Write", args = { file_path = "{cwd}/a.txt", content = "x" } }, { name = "Write", args = { file_path = "{cwd}/b.txt", content = "x" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "both * and git's *"
[[when.step]]
text = "I write both."
call = [{ name = "Write", args = { file_path = "{cwd}/{1}.txt", content = "x" } }, { name = "Write", args = { file_path = "{cwd}/.git/hooks/{2}.txt", content = "x" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "fly"
[[when.step]]
text = "I fly."
call = [{ name = "Fly", args = { name = "home" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "empty"
[[when.step]]
text = "I write nothing."
call = [{ name = "Write", args = { file_path = "{cwd}/a.txt" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "fetch"
[[when.step]]
text = "I fetch."
call = [{ name = "Bash", args = { command = "true", needs = ["network"] } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "hook"
[[when.step]]
text = "I set a hook."
call = [{ name = "Bash", args = { command = "true", needs = ["git"], reason = "a hook" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "ask"
[[when.step]]
call = [{ name = "AskPerson", args = { question = "Which name?", choices = ["total", "sum"] } }, { name = "Write", args = { file_path = "{cwd}/asked.txt", content = "x" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "ask wrong *"
[[when.step]]
call = [{ name = "AskPerson", args = { question = "{1}", choices = ["total"] } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "ask only"
[[when.step]]
call = [{ name = "AskPerson", args = { question = "Which name?" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "read"
[[when.step]]
text = "I read."
call = [{ name = "Read", args = { file_path = "{cwd}/note.txt" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "look *"
[[when.step]]
text = "I look."
call = [{ name = "Read", args = { file_path = "{1}" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "output of *"
[[when.step]]
text = "I look."
call = [{ name = "ReadPodOutput", args = { name = "{1}" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "stop *"
[[when.step]]
text = "I stop it."
call = [{ name = "StopPod", args = { name = "{1}" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "restore *"
[[when.step]]
text = "I restore it."
call = [{ name = "RestorePod", args = { name = "{1}" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "send *"
[[when.step]]
text = "I send."
call = [{ name = "SendToPod", args = { name = "{1}", message = "x" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "peer *"
[[when.step]]
text = "I send."
call = [{ name = "SendToPeerPod", args = { name = "{1}", message = "x" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
any = true
text = "You said {1}."
"#;

#[tokio::test]
async fn a_request_carries_the_task_of_its_pod_and_what_it_wrote_last() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "plan a").await;
    let asked = bench.asked().await;
    assert_eq!(asked.task.as_deref(), Some("write the guide"));
    assert_eq!(asked.said.as_deref(), Some("The notes are missing."));
    bench.answer(&asked, Verdict::Deny { reason: String::new() }).await.unwrap();
    bench.ended(&pod).await;
    bench.say(&pod, "reread b").await;
    let asked = bench.asked().await;
    assert_eq!(asked.said, None, "it wrote nothing since that message");
}

fn once() -> Verdict {
    Verdict::Once
}

impl Bench {
    /// A Pod whose file tools need approvals.
    async fn asking() -> (Self, PodName) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("home/config")).unwrap();
        std::fs::write(root.join("home/config/config.toml"), RULES).unwrap();
        let bench = Self::at(dir).await;
        let script = root.join("script.toml");
        std::fs::write(&script, SCRIPT).unwrap();
        std::fs::write(root.join("w/note.txt"), "hello file\n").unwrap();
        let pod = bench.new_pod(Some(&script)).await;
        (bench, pod.name)
    }

    async fn say(&self, pod: &PodName, text: &str) {
        self.call(pod, Method::say(text)).await.unwrap();
    }

    /// The next published approval request.
    async fn asked(&mut self) -> ApprovalRequest {
        let asked = self.next(|e| matches!(e, Event::ApprovalRequested { .. })).await;
        let Event::ApprovalRequested { approval } = asked else { unreachable!() };
        *approval
    }

    /// Waits for the end of this Pod's run; others have theirs.
    async fn ended(&mut self, pod: &PodName) {
        self.all_ended(&[pod]).await;
    }

    /// Waits until a run of each of these Pods has ended, in any order.
    async fn all_ended(&mut self, pods: &[&PodName]) {
        let mut running = pods.to_vec();
        while !running.is_empty() {
            let line = self.events.recv().await.expect("the host is there");
            if matches!(line.event, Event::RunEnd { .. }) {
                running.retain(|pod| line.pod.as_ref() != Some(pod));
            }
        }
    }

    async fn answer(&self, approval: &ApprovalRequest, verdict: Verdict) -> Result<Event, String> {
        let method = Method::Decide { approval: approval.id.clone(), verdict };
        self.client.call(None, method).await.map_err(|refusal| refusal.message)
    }

    fn wrote(&self, name: &str) -> bool {
        self.root.join("w").join(name).exists()
    }

    fn questions(&self) -> Vec<ApprovalRequest> {
        self.host.shared.approvals()
    }

    /// A Pod that holds write on the directory `else`.
    async fn writes_else(&self) {
        std::fs::create_dir_all(self.root.join("else")).unwrap();
        let new = NewPod { cwd: self.root.join("else"), ..NewPod::default() };
        self.client.call(None, Method::New(new)).await.unwrap();
    }

    /// The model's text about the result of its call, which needs no approval.
    async fn refused(&mut self, pod: &PodName, text: &str) -> String {
        self.say(pod, text).await;
        let first = |e: &Event| matches!(e, Event::ApprovalRequested { .. } | Event::RunEnd { .. });
        let event = self.next(first).await;
        assert!(matches!(event, Event::RunEnd { .. }), "{text}: {event:?}");
        self.is(pod, State::Idle).await;
        self.said(pod).await.pop().unwrap()
    }

    async fn results(&self, pod: &PodName) -> usize {
        self.transcript(pod).await.iter().filter(|kind| *kind == "tool_result").count()
    }

    /// A Pod below another one, live after the next start of the host.
    pub(super) async fn child(&self, parent: &PodName, name: &str) -> PodName {
        let store = &self.host.shared.store;
        let mut row = store.pod(parent).await.unwrap().unwrap();
        row.name = PodName::parse(name).unwrap();
        row.parent = Some(parent.clone());
        row.session = SessionId::new();
        (row.segment, row.wanted, row.created) = (None, Wanted::Live, row.created + 1);
        let name = row.name.clone();
        store.create_pod(row).await.unwrap();
        name
    }

    /// The log files of a Pod.
    async fn files(&self, pod: &PodName) -> (crate::session::Files, crate::protocol::SegmentId) {
        let view = self.host.shared.pod(pod).unwrap().view().await.unwrap();
        (view.files, view.segment.unwrap())
    }

    /// Ends the host, lets something happen to its files, and starts another one.
    async fn after(self, happens: impl AsyncFnOnce(Store)) -> Self {
        let database = self.host.shared.dirs.data.join("yoi.db");
        self.host.end().await;
        let (store, _) = Store::open(&database).await.unwrap();
        happens(store.clone()).await;
        store.close().await;
        Self::at(self._root).await
    }
}

#[tokio::test]
async fn a_request_shows_and_allowing_it_once_runs_that_call_and_no_other() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write a").await;
    let approval = bench.asked().await;
    assert_eq!((approval.pod.clone(), approval.tool.as_str()), (pod.clone(), "Write"));
    assert_eq!(approval.action, bench.root.join("w/a.txt").display().to_string());
    assert!(
        approval.because.starts_with("your approval: the rule `Write: *` in "),
        "{}",
        approval.because
    );
    let info = bench.is(&pod, State::NeedsYou).await;
    assert_eq!(info.why.unwrap(), format!("waits for you: {}", approval.line()));
    let Event::Family { approvals, .. } = bench.host.shared.whole_family() else { panic!() };
    assert_eq!(approvals, std::slice::from_ref(&approval));
    assert!(!bench.wrote("a.txt"));
    bench.answer(&approval, once()).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert!(bench.wrote("a.txt"));
    assert_eq!(bench.questions(), []);
    bench.say(&pod, "write a").await;
    assert_ne!(bench.asked().await.id, approval.id);
}

#[tokio::test]
async fn a_rule_of_ones_own_is_written_if_it_allows_what_is_asked() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write a").await;
    let approval = bench.asked().await;
    let with = |rule: &str| Verdict::Pod { rule: Some(rule.parse().unwrap()) };
    let wrong = bench.answer(&approval, with("Write:/elsewhere/*")).await.unwrap_err();
    assert!(wrong.contains("does not allow the call"), "{wrong}");
    bench.answer(&approval, with("Write:*.txt")).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    bench.say(&pod, "write b").await;
    assert_eq!(bench.end().await, RunResult::Finished);
    assert!(bench.wrote("a.txt") && bench.wrote("b.txt"));
}

#[tokio::test]
async fn an_answer_for_the_pod_is_a_rule_that_is_listed_and_revoked() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write a").await;
    let approval = bench.asked().await;
    bench.answer(&approval, Verdict::Pod { rule: None }).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    bench.say(&pod, "write a").await;
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(bench.questions(), []);
    let Event::Policy { rules, .. } = bench.call(&pod, Method::ListPolicy).await.unwrap() else {
        panic!()
    };
    let own = rules.iter().position(|rule| rule.id.is_some()).expect("the answer's rule");
    assert_eq!(rules[own].pattern, approval.rule);
    assert_eq!(rules[own].source, "your decision for w");
    assert!(rules[..own].iter().any(|rule| rule.source.ends_with("config.toml")));
    let rule = rules[own].id.unwrap();
    let ended = bench.client.call(None, Method::Revoke { rule }).await.unwrap();
    let only = vec![rules[own].clone()];
    assert_eq!(
        ended,
        Event::Policy {
            rules: only,
            consents: Vec::new(),
            trusts: Vec::new(),
            clients: Vec::new(),
            closed: Vec::new(),
            kept: Vec::new()
        }
    );
    bench.say(&pod, "write a").await;
    bench.asked().await;
    let again = bench.client.call(None, Method::Revoke { rule }).await.unwrap_err();
    assert!(again.message.contains(":policy"), "{again}");
}

#[tokio::test]
async fn a_denial_is_read_by_the_model_and_so_is_the_rule_that_denies() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write a").await;
    let approval = bench.asked().await;
    bench.answer(&approval, Verdict::Deny { reason: "not now".into() }).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert!(!bench.wrote("a.txt"));
    assert_eq!(bench.said(&pod).await.last().unwrap(), "It says: denied: not now");
    bench.say(&pod, "write never").await;
    assert_eq!(bench.end().await, RunResult::Finished);
    let said = bench.said(&pod).await.pop().unwrap();
    assert!(said.starts_with("It says: denied by policy: the rule `Write: */never.txt` in "));
    assert!(!bench.wrote("never.txt"));
}

#[tokio::test]
async fn a_second_answer_is_refused() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write a").await;
    let approval = bench.asked().await;
    let (one, two) = tokio::join!(bench.answer(&approval, once()), bench.answer(&approval, once()));
    let refused: Vec<String> = [one, two].into_iter().filter_map(Result::err).collect();
    assert_eq!(refused, ["that request was decided or withdrawn already"]);
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(bench.results(&pod).await, 1);
    let why = Verdict::Withdrawn { why: String::new() };
    assert!(bench.answer(&approval, why).await.is_err());
}

#[tokio::test]
async fn pausing_withdraws_the_request_and_the_call_never_runs() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "both").await;
    let approval = bench.asked().await;
    let waits = bench.call(&pod, Method::Resume).await.unwrap_err().message;
    assert!(waits.contains("waits for you: Write "), "{waits}");
    bench.call(&pod, Method::Pause).await.unwrap();
    let shown = bench.next(|e| matches!(e, Event::ApprovalDecided { .. })).await;
    let verdict = Verdict::Withdrawn { why: "the run was paused".into() };
    assert_eq!(
        shown,
        Event::ApprovalDecided { approval: approval.id.clone(), pod: pod.clone(), verdict }
    );
    bench.is(&pod, State::Paused).await;
    assert_eq!(bench.questions(), []);
    assert_eq!(bench.host.shared.store.approvals().await.unwrap(), []);
    assert!(bench.answer(&approval, once()).await.is_err());
    assert_eq!(bench.results(&pod).await, 2, "both calls are closed");
    bench.call(&pod, Method::Resume).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Paused);
    assert_eq!(bench.end().await, RunResult::Finished);
    assert!(!bench.wrote("a.txt") && !bench.wrote("b.txt"));
}

#[tokio::test]
async fn a_request_survives_the_host_and_its_decision_resumes_that_call_once_and_those_behind_it() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "both").await;
    let approval = bench.asked().await;
    let mut bench = bench.restarted().await;
    let info = bench.is(&pod, State::NeedsYou).await;
    assert_eq!(info.why.unwrap(), format!("waits for you: {}", approval.line()));
    assert_eq!(bench.questions(), std::slice::from_ref(&approval));
    let refused = bench.call(&pod, Method::say("x")).await.unwrap_err().message;
    assert!(refused.contains("answer it in the inbox"), "{refused}");
    assert!(!bench.wrote("a.txt"));
    bench.answer(&approval, once()).await.unwrap();
    let next = bench.asked().await;
    assert!(next.action.ends_with("/b.txt"), "{next:?}");
    assert!(bench.wrote("a.txt") && !bench.wrote("b.txt"));
    let mut bench = bench.restarted().await;
    bench.answer(&next, Verdict::Deny { reason: "one is enough".into() }).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert!(!bench.wrote("b.txt"));
    assert_eq!(bench.results(&pod).await, 2);
    assert_eq!(bench.said(&pod).await.last().unwrap(), "It says: denied: one is enough");
}

#[tokio::test]
async fn a_run_that_goes_on_with_a_decision_learns_what_changed_behind_the_results_of_its_calls() {
    use crate::protocol::{Fact, Item, SystemItem};
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "both").await;
    let approval = bench.asked().await;
    let mut bench = bench.restarted().await;
    std::fs::write(bench.root.join("w/AGENTS.md"), "use spaces").unwrap();
    bench.answer(&approval, once()).await.unwrap();
    let next = bench.asked().await;
    bench.answer(&next, once()).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    let part = |fact: Fact| match fact {
        Fact::AssistantItem { item: Item::ToolCall { .. }, .. } => Some("call"),
        Fact::ToolResult { .. } => Some("result"),
        Fact::SystemItem { item: SystemItem::Knowledge { .. }, .. } => Some("note"),
        _ => None,
    };
    let parts: Vec<_> = bench.facts(&pod).await.into_iter().filter_map(part).collect();
    assert_eq!(parts, ["call", "call", "result", "result", "note"]);
    assert_eq!(bench.notes(&pod).await[0].0, "instructions");
}

#[tokio::test]
async fn a_call_that_was_allowed_and_has_no_result_is_never_run_again() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write a").await;
    let approval = bench.asked().await;
    let files = bench.files(&pod).await;
    let mut bench = bench
        .after(async move |_| {
            let (files, segment) = files;
            let (journal, _) = crate::session::Journal::open(&files, segment).await.unwrap();
            let payload = json!({ "ask": approval.id, "verdict": Verdict::Once });
            let answered = Entry::extension(domain::ANSWERED, payload);
            journal.commit(vec![answered]).await.unwrap();
            journal.close().await;
        })
        .await;
    bench.is(&pod, State::Paused).await;
    assert_eq!(bench.questions(), []);
    assert_eq!(bench.host.shared.store.approvals().await.unwrap(), []);
    bench.call(&pod, Method::Resume).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert!(!bench.wrote("a.txt"));
    assert_eq!(bench.results(&pod).await, 1);
}

#[tokio::test]
async fn an_answer_that_came_as_the_host_ended_waits_for_resume_and_counts_once() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write a").await;
    let approval = bench.asked().await;
    let decided = Decided { approval: approval.id.clone(), verdict: once(), rule: None };
    let mut bench = bench
        .after(async move |store| {
            assert!(store.decide_approval(decided).await.unwrap());
        })
        .await;
    let info = bench.is(&pod, State::Paused).await;
    assert!(info.why.unwrap().ends_with("is decided"));
    assert!(!bench.wrote("a.txt"), "a start runs nothing");
    assert!(bench.answer(&approval, once()).await.is_err());
    bench.call(&pod, Method::Resume).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert!(bench.wrote("a.txt"));
    assert_eq!(bench.results(&pod).await, 1);
}

impl Bench {
    /// Ends the host while a Pod waits, stores a decision as the last thing it does, with `stopped`
    /// that the Pod is stopped, too, and starts another host.
    async fn decided_as_the_host_ended(self, approval: &ApprovalRequest, stopped: bool) -> Self {
        let decided = Decided { approval: approval.id.clone(), verdict: once(), rule: None };
        let pod = approval.pod.clone();
        self.after(async move |store| {
            assert!(store.decide_approval(decided).await.unwrap());
            if stopped {
                let wanted = vec![(pod, Wanted::Stopped, now_ms())];
                store.change_family(Change { wanted, ..Change::default() }).await.unwrap();
            }
        })
        .await
    }

    /// The verdict on a request, as the logs of its Pod have it.
    async fn logged(&self, approval: &ApprovalRequest) -> Vec<Verdict> {
        let (files, _) = self.files(&approval.pod).await;
        let logs = files.segments().into_iter().map(|segment| files.segment(segment));
        let lines: Vec<String> = logs.map(|log| std::fs::read_to_string(log).unwrap()).collect();
        let entries = lines.iter().flat_map(|log| log.lines());
        let answers = entries.filter_map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let own = line["domain"] == "yoi.answered" && line["payload"]["ask"] == approval.id;
            own.then(|| serde_json::from_value(line["payload"]["verdict"].clone()).unwrap())
        });
        answers.collect()
    }
}

#[tokio::test]
async fn a_decision_is_in_the_log_although_its_pod_was_stopped_before_it_was_taken() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write a").await;
    let approval = bench.asked().await;
    let bench = bench.decided_as_the_host_ended(&approval, true).await;
    bench.call(&pod, Method::RestorePods { tree: false, plan: false }).await.unwrap();
    assert_eq!(bench.logged(&approval).await, [once()]);
    assert!(!bench.wrote("a.txt"), "a restore runs nothing");
    assert_eq!(bench.host.shared.store.approvals_of(&pod).await.unwrap(), []);
}

#[tokio::test]
async fn a_decision_is_in_the_log_although_its_run_is_cancelled_or_rewound() {
    for rewind in [false, true] {
        let (mut bench, pod) = Bench::asking().await;
        bench.say(&pod, "write a").await;
        let approval = bench.asked().await;
        let mut bench = bench.decided_as_the_host_ended(&approval, false).await;
        bench.is(&pod, State::Paused).await;
        if rewind {
            let targets = bench.call(&pod, Method::ListRewindTargets).await.unwrap();
            let Event::RewindTargets { head_entries, targets, .. } = targets else { panic!() };
            let (target, expected_head_entries) = (targets[0].id, head_entries);
            let rewind = Method::Rewind { target, expected_head_entries };
            bench.call(&pod, rewind).await.unwrap();
        } else {
            bench.call(&pod, Method::Cancel).await.unwrap();
        }
        assert_eq!(bench.logged(&approval).await, [once()]);
        assert!(!bench.wrote("a.txt"));
        bench.is(&pod, State::Idle).await;
    }
}

#[tokio::test]
async fn a_request_that_only_the_log_holds_is_shown_again() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write a").await;
    let approval = bench.asked().await;
    let id = approval.id.clone();
    let mut bench =
        bench.after(async move |store| store.end_approvals(vec![id]).await.unwrap()).await;
    assert_eq!(bench.questions(), std::slice::from_ref(&approval));
    bench.answer(&approval, once()).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert!(bench.wrote("a.txt"));
    bench.is(&pod, State::Idle).await;
}

#[tokio::test]
async fn stopping_withdraws_the_request_and_ends_the_rules_of_decisions() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write a").await;
    let approval = bench.asked().await;
    bench.answer(&approval, Verdict::Tree { rule: None, of: None }).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(bench.host.shared.store.policy().await.unwrap().len(), 1);
    bench.say(&pod, "write b").await;
    bench.asked().await;
    let bench = bench.restarted().await;
    assert_eq!(bench.questions().len(), 1);
    bench.call(&pod, Method::Stop).await.unwrap();
    assert_eq!(bench.questions(), []);
    assert_eq!(bench.host.shared.store.approvals().await.unwrap(), []);
    assert_eq!(bench.host.shared.store.policy().await.unwrap(), []);
    let mut bench = bench;
    bench.client.call(None, Method::Restore { name: pod.to_string() }).await.unwrap();
    bench.is(&pod, State::Paused).await;
    assert_eq!(bench.questions(), []);
}

#[tokio::test]
async fn cancelling_a_pod_that_waits_without_a_run_withdraws_its_request() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write a").await;
    bench.asked().await;
    let mut bench = bench.restarted().await;
    bench.call(&pod, Method::Cancel).await.unwrap();
    bench.is(&pod, State::Idle).await;
    assert_eq!(bench.questions(), []);
    bench.say(&pod, "hello").await;
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(bench.said(&pod).await.last().unwrap(), "You said hello.");
    let mut bench = bench.restarted().await;
    bench.is(&pod, State::Idle).await;
}

#[tokio::test]
async fn an_approval_for_the_subtree_decides_requests_of_children_now_and_later() {
    let (bench, pod) = Bench::asking().await;
    let kid = bench.child(&pod, "kid").await;
    let mut bench = bench.restarted().await;
    bench.say(&kid, "read").await;
    let kids = bench.asked().await;
    assert_eq!(kids.lineage, std::slice::from_ref(&pod));
    // The parent is notified, which is a run of its own.
    bench.ended(&pod).await;
    bench.is(&pod, State::Idle).await;
    bench.say(&pod, "read").await;
    let own = bench.asked().await;
    assert_eq!((&own.rule, &own.action), (&kids.rule, &kids.action));
    bench.answer(&own, Verdict::Tree { rule: None, of: None }).await.unwrap();
    bench.ended(&kid).await;
    assert_eq!(bench.questions(), []);
    bench.is(&kid, State::Idle).await;
    bench.say(&kid, "read").await;
    bench.ended(&kid).await;
    assert_eq!(bench.questions(), []);
    assert!(bench.said(&kid).await.pop().unwrap().contains("It says: "));
}

#[tokio::test]
async fn a_decision_for_the_tree_of_a_pod_above_counts_there_now_and_later_until_that_pod_stops() {
    let (bench, lead) = Bench::asking().await;
    let one = bench.child(&lead, "one").await;
    let two = bench.child(&lead, "two").await;
    let low = bench.child(&two, "low").await;
    let mut bench = bench.restarted().await;
    let other = bench.new_pod(Some(&bench.root.join("script.toml"))).await.name;
    let mut waiting = Vec::new();
    for pod in [&one, &low, &other] {
        bench.say(pod, "read").await;
        while !bench.questions().iter().any(|approval| approval.is_of(pod)) {
            bench.next(|e| matches!(e, Event::ApprovalRequested { .. })).await;
        }
        waiting.push(bench.questions().into_iter().find(|request| request.is_of(pod)).unwrap());
    }
    let of = |pod: &PodName| Verdict::Tree { rule: None, of: Some(pod.clone()) };
    let wrong = bench.answer(&waiting[0], of(&two)).await.unwrap_err();
    assert_eq!(wrong, format!("`two` is not above `one`: only {lead} is"));
    let wrong = bench.answer(&waiting[2], of(&lead)).await.unwrap_err();
    assert_eq!(wrong, format!("`{lead}` is not above `{other}`: no pod is"));
    bench.answer(&waiting[0], of(&lead)).await.unwrap();
    for pod in [&one, &low] {
        bench.is(pod, State::Idle).await;
        assert!(bench.said(pod).await.pop().unwrap().contains("It says: "));
    }
    assert_eq!(bench.questions(), [waiting[2].clone()], "another family goes on waiting");
    // A Pod that comes later, after the one that asked first is gone.
    bench.call(&one, Method::Stop).await.unwrap();
    let late = bench.child(&low, "late").await;
    let mut bench = bench.restarted().await;
    bench.is(&late, State::Idle).await;
    bench.say(&late, "read").await;
    bench.ended(&late).await;
    bench.is(&late, State::Idle).await;
    assert!(bench.questions().iter().all(|request| request.is_of(&other)));
    let rules = bench.host.shared.store.policy().await.unwrap();
    assert_eq!(
        rules.iter().map(|rule| (&rule.pod, rule.tree)).collect::<Vec<_>>(),
        [(&lead, true)]
    );
    bench
        .call(&lead, Method::StopPods { tree: false, unless_busy: false, silent: false })
        .await
        .unwrap();
    assert_eq!(bench.host.shared.store.policy().await.unwrap(), []);
    bench.say(&late, "read").await;
    while !bench.questions().iter().any(|request| request.is_of(&late)) {
        bench.next(|e| matches!(e, Event::ApprovalRequested { .. })).await;
    }
    let request = bench.questions().into_iter().find(|request| request.is_of(&late)).unwrap();
    let stopped = bench.answer(&request, of(&lead)).await.unwrap_err();
    assert!(stopped.contains("is stopped, and no rule is made for it"), "{stopped}");
    assert!(bench.questions().contains(&request));
    bench.answer(&request, of(&low)).await.unwrap();
    bench.is(&late, State::Idle).await;
}

#[tokio::test]
async fn an_answer_for_one_pod_leaves_others_waiting() {
    let (bench, pod) = Bench::asking().await;
    let kid = bench.child(&pod, "kid").await;
    let mut bench = bench.restarted().await;
    bench.say(&kid, "read").await;
    let kids = bench.asked().await;
    bench.ended(&pod).await;
    bench.is(&pod, State::Idle).await;
    bench.say(&pod, "read").await;
    let own = bench.asked().await;
    bench.answer(&own, Verdict::Pod { rule: None }).await.unwrap();
    bench.ended(&pod).await;
    assert_eq!(bench.questions(), [kids]);
    let rule = Pattern { tool: "Read".into(), pattern: own.action };
    assert_eq!(own.rule, rule);
}

#[tokio::test]
async fn an_approval_request_of_a_child_notifies_its_parent_once() {
    let (bench, pod) = Bench::asking().await;
    let kid = bench.child(&pod, "kid").await;
    let mut bench = bench.restarted().await;
    bench.say(&kid, "read").await;
    let approval = bench.asked().await;
    bench.ended(&pod).await;
    let mut bench = bench.restarted().await;
    bench.is(&kid, State::NeedsYou).await;
    let page = bench.call(&pod, Method::Page { before: None, max_bytes: 1 << 20 }).await;
    let text = serde_json::to_string(&page.unwrap()).unwrap();
    let child_event = format!("pod `kid` waits for a person: {}", approval.line());
    assert_eq!(text.matches(&format!("\"message\":\"{child_event}\"")).count(), 1, "{text}");
    assert_eq!(bench.host.shared.store.messages(&pod).await.unwrap(), []);
}

#[tokio::test]
async fn the_rules_of_a_workspace_restrict_and_are_named() {
    let (mut bench, pod) = Bench::asking().await;
    std::fs::create_dir_all(bench.root.join("w/.yoi")).unwrap();
    let rules =
        "[[permissions.rule]]\ntool = \"Write\"\npattern = \"*/b.txt\"\naction = \"deny\"\n";
    std::fs::write(bench.root.join("w/.yoi/config.toml"), rules).unwrap();
    bench.say(&pod, "write b").await;
    assert_eq!(bench.end().await, RunResult::Finished);
    let said = bench.said(&pod).await.pop().unwrap();
    assert!(said.contains("the rule `Write: */b.txt` in ") && said.contains(".yoi/config.toml"));
    let Event::Policy { rules, .. } = bench.call(&pod, Method::ListPolicy).await.unwrap() else {
        panic!()
    };
    assert!(rules.iter().any(|rule| rule.source.ends_with("w/.yoi/config.toml")));
}

#[tokio::test]
async fn while_the_rules_of_a_workspace_cannot_be_read_calls_wait_and_the_pod_says_so() {
    let mut bench = Bench::with_settings("").await;
    let script = bench.root.join("script.toml");
    std::fs::write(&script, SCRIPT).unwrap();
    let pod = bench.new_pod(Some(&script)).await.name;
    let file = bench.root.join("w/.yoi/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "[[permissions.rule]]\ntool = \"Write\"\naction = \"deny\"\n").unwrap();
    bench.say(&pod, "write b").await;
    assert_eq!(bench.end().await, RunResult::Finished);
    let noted = |notes: &[String]| notes.iter().any(|note| note.contains("cannot be read, so"));
    assert!(!noted(&bench.info(&pod).await.notes));
    // Root can read a file of any mode, but no user can read a directory as a file.
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    bench.say(&pod, "write b").await;
    let approval = bench.asked().await;
    assert!(approval.because.contains("config.toml, which cannot be read (path is a directory"));
    assert!(noted(&bench.info(&pod).await.notes));
    let Event::Policy { rules, .. } = bench.call(&pod, Method::ListPolicy).await.unwrap() else {
        panic!()
    };
    assert!(rules.iter().any(|rule| rule.source.ends_with("config.toml, which cannot be read")));
    bench.answer(&approval, Verdict::Deny { reason: "no".into() }).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert!(!bench.root.join("w/b.txt").exists());
    std::fs::remove_dir(&file).unwrap();
    bench.say(&pod, "write b").await;
    assert_eq!(bench.end().await, RunResult::Finished);
    assert!(bench.root.join("w/b.txt").exists(), "without the file nothing is denied");
    assert!(!noted(&bench.info(&pod).await.notes));
}

#[tokio::test]
async fn a_path_that_a_rule_opened_is_closed_when_the_rule_is_revoked() {
    let (mut bench, pod) = Bench::asking().await;
    std::fs::create_dir_all(bench.root.join("else")).unwrap();
    let before = bench.info(&pod).await.scope;
    bench.say(&pod, "write ../else/x").await;
    let approval = bench.asked().await;
    let lease = approval.lease.clone().unwrap();
    bench.answer(&approval, Verdict::Pod { rule: None }).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_ne!(bench.info(&pod).await.scope, before);
    let who = Method::Who { path: lease.target.clone() };
    let Event::Holders { holders } = bench.client.call(None, who.clone()).await.unwrap() else {
        panic!()
    };
    assert_eq!(holders.len(), 1);
    assert_eq!((&holders[0].pod, &holders[0].lender), (&pod, &None), "no Pod lent it");
    let mut bench = bench.restarted().await;
    let rule = bench.host.shared.store.policy().await.unwrap()[0].id;
    let ended = bench.client.call(None, Method::Revoke { rule }).await.unwrap();
    let Event::Policy { closed, kept, .. } = ended else { panic!("{ended:?}") };
    assert_eq!((closed, kept), (vec![Lent { to: pod.clone(), rule: lease }], Vec::new()));
    assert_eq!(bench.info(&pod).await.scope, before);
    assert_eq!(bench.host.shared.store.leases().await.unwrap(), []);
    bench.say(&pod, "write ../else/x").await;
    assert!(bench.asked().await.lease.is_some(), "it is asked about again");
}

#[tokio::test]
async fn a_call_outside_the_scope_that_is_allowed_once_leaves_the_scope_as_it_was() {
    let (mut bench, pod) = Bench::asking().await;
    std::fs::create_dir_all(bench.root.join("else")).unwrap();
    let before = bench.info(&pod).await.scope;
    for _ in 0..2 {
        bench.say(&pod, "write ../else/x").await;
        let approval = bench.asked().await;
        assert!(approval.lease.is_some());
        bench.answer(&approval, once()).await.unwrap();
        assert_eq!(bench.end().await, RunResult::Finished);
        let said = bench.said(&pod).await.pop().unwrap();
        assert!(said.ends_with("outside the scope, allowed for this call only"), "{said}");
        std::fs::remove_file(bench.root.join("else/x.txt")).unwrap();
        assert_eq!(bench.info(&pod).await.scope, before);
        assert_eq!(bench.host.shared.store.leases().await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_write_outside_the_scope_gets_scope_with_an_approval_for_the_pod() {
    let (mut bench, pod) = Bench::asking().await;
    std::fs::create_dir_all(bench.root.join("else")).unwrap();
    bench.say(&pod, "write ../else/x").await;
    let approval = bench.asked().await;
    let target = bench.root.join("else/x.txt");
    assert_eq!(approval.action, target.display().to_string());
    let lease = approval.lease.clone().expect("it asks for scope");
    assert_eq!((lease.target, lease.permission), (target, crate::scope::Permission::Write));
    assert!(approval.line().ends_with("(outside its scope)"));
    bench.answer(&approval, Verdict::Pod { rule: None }).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert!(bench.root.join("else/x.txt").exists());
    let scope = bench.info(&pod).await.scope;
    assert!(scope.iter().any(|rule| rule.target.ends_with("else/x.txt")), "{scope:?}");
}

#[tokio::test]
async fn a_change_of_what_git_executes_needs_an_approval_for_that_call_only() {
    let (mut bench, pod) = Bench::asking().await;
    for _ in 0..2 {
        bench.say(&pod, "write .git/hooks/x").await;
        let approval = bench.asked().await;
        assert!(approval.because.ends_with("hooks or the configuration of a git repository"));
        assert_eq!((approval.rule.tool.as_str(), &approval.lease), ("Write+git", &None));
        assert_eq!(approval.details.as_deref(), Some("+ x"));
        assert!(!bench.wrote(".git/hooks/x.txt"));
        bench.answer(&approval, once()).await.unwrap();
        assert_eq!(bench.end().await, RunResult::Finished);
        assert!(bench.wrote(".git/hooks/x.txt"));
        std::fs::remove_file(bench.root.join("w/.git/hooks/x.txt")).unwrap();
    }
}

#[tokio::test]
async fn a_file_is_replaced_only_as_the_approval_request_showed_it() {
    let (mut bench, pod) = Bench::asking().await;
    let file = bench.root.join("w/.git/hooks/x.txt");
    for changes in [false, true] {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "old\n").unwrap();
        bench.say(&pod, "reread .git/hooks/x").await;
        let read = bench.asked().await;
        bench.answer(&read, once()).await.unwrap();
        let approval = bench.asked().await;
        let shown = "from line 1:\n- old\n+ x (without a line end)";
        assert_eq!(approval.details.as_deref(), Some(shown));
        if changes {
            std::fs::write(&file, "newer\n").unwrap();
        }
        bench.answer(&approval, once()).await.unwrap();
        assert_eq!(bench.end().await, RunResult::Finished);
        let now = std::fs::read_to_string(&file).unwrap();
        assert_eq!(now, if changes { "newer\n" } else { "x" });
    }
    let said = bench.said(&pod).await.pop().unwrap();
    assert!(said.contains("the file changed since it was approved"), "{said}");
}

#[tokio::test]
async fn a_rule_that_is_revoked_while_an_earlier_call_of_the_reply_waits_allows_no_later_one() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write .git/hooks/x").await;
    let hook = bench.asked().await;
    bench.answer(&hook, Verdict::Pod { rule: None }).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    std::fs::remove_file(bench.root.join("w/.git/hooks/x.txt")).unwrap();
    bench.is(&pod, State::Idle).await;
    bench.say(&pod, "both a and git's x").await;
    let first = bench.asked().await;
    assert!(first.action.ends_with("/a.txt"), "{first:?}");
    let rule = bench.host.shared.store.policy().await.unwrap()[0].id;
    bench.client.call(None, Method::Revoke { rule }).await.unwrap();
    bench.answer(&first, once()).await.unwrap();
    let event =
        bench.next(|e| matches!(e, Event::ApprovalRequested { .. } | Event::RunEnd { .. })).await;
    let Event::ApprovalRequested { approval: second } = event else {
        panic!("the hook is not asked about: {event:?}")
    };
    assert_eq!(second.action, hook.action);
    assert!(bench.wrote("a.txt") && !bench.wrote(".git/hooks/x.txt"));
    bench.answer(&second, Verdict::Deny { reason: "no".into() }).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert!(!bench.wrote(".git/hooks/x.txt"));
}

#[tokio::test]
async fn a_path_that_no_approval_can_open_is_refused_without_a_request() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write ../../../../../../../../proc/x").await;
    assert_eq!(bench.end().await, RunResult::Finished);
    let said = bench.said(&pod).await.pop().unwrap();
    assert!(said.contains("path is the kernel's own"), "{said}");
}

#[tokio::test]
async fn scope_that_cannot_be_given_is_said_to_the_person_and_the_request_goes_on_waiting() {
    let (mut bench, pod) = Bench::asking().await;
    std::fs::create_dir_all(bench.root.join("else")).unwrap();
    bench.say(&pod, "write ../else/x").await;
    let approval = bench.asked().await;
    bench.writes_else().await;
    let refused = bench.answer(&approval, once()).await.unwrap_err();
    assert!(refused.contains("`else` holds write on "), "{refused}");
    assert_eq!(bench.questions(), std::slice::from_ref(&approval));
    bench.answer(&approval, Verdict::Deny { reason: String::new() }).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(bench.said(&pod).await.last().unwrap(), "It says: denied: a person said no");
}

#[tokio::test]
async fn a_call_that_cannot_work_is_refused_before_a_person_is_asked() {
    let (mut bench, pod) = Bench::asking().await;
    for (text, why) in [
        ("fly", "It says: Tool 'Fly' not found; the tools are AskPerson, Bash, "),
        ("empty", "It says: invalid Write input: missing field `content`"),
        ("fetch", "It says: needs want a reason: say in a sentence what they are for"),
    ] {
        let said = bench.refused(&pod, text).await;
        assert!(said.starts_with(why), "{said}");
    }
    assert!(!bench.wrote("a.txt"));
}

#[tokio::test]
async fn a_path_that_another_pod_writes_is_refused_before_a_person_is_asked() {
    let (mut bench, pod) = Bench::asking().await;
    std::fs::create_dir_all(bench.root.join("else")).unwrap();
    bench.writes_else().await;
    let before = bench.info(&pod).await.scope;
    let said = bench.refused(&pod, "write ../else/x").await;
    let path = bench.root.join("else/x.txt");
    let lend = format!(":lend else {pod} {} hands it over · :stop else frees it", path.display());
    let why = format!("`else` holds write on {}; {lend}; go on without it", path.display());
    assert!(said.contains(&why), "{said}");
    assert_eq!(bench.info(&pod).await.scope, before);
    // Both suggested forms of the call lead to an approval request.
    let rule = crate::scope::Rule::new(&path, crate::scope::Permission::Write);
    let lend = Method::lend(pod.as_str(), rule);
    bench.call(&PodName::parse("else").unwrap(), lend).await.unwrap();
    bench.say(&pod, "write ../else/x").await;
    let approval = bench.asked().await;
    bench.answer(&approval, once()).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert!(path.exists());
    bench.call(&PodName::parse("else").unwrap(), Method::Stop).await.unwrap();
    bench.say(&pod, "write ../else/y").await;
    bench.asked().await;
}

#[tokio::test]
async fn a_path_that_a_tool_refuses_is_refused_before_a_person_is_asked() {
    let (mut bench, pod) = Bench::asking().await;
    let none = bench.root.join("none.txt").display().to_string();
    let dir = bench.root.join("w").display().to_string();
    for (text, why) in [
        ("look gone.txt".to_owned(), format!("file not found: {dir}/gone.txt")),
        (format!("look {none}"), format!("file not found: {none}")),
        (
            "write note".into(),
            format!("file has not been read yet: {dir}/note.txt; use Read on it first"),
        ),
    ] {
        assert_eq!(bench.refused(&pod, &text).await, format!("It says: {why}"));
    }
}

#[tokio::test]
async fn a_tool_call_about_a_pod_that_it_cannot_concern_is_refused_before_a_person_is_asked() {
    let (mut bench, pod) = Bench::asking().await;
    bench.writes_else().await;
    let unseen = "pod `else` is not visible to `w`; ListPods shows what is";
    for (text, why) in [
        ("output of nobody", "no spawned pod named `nobody`"),
        ("send nobody", "no spawned pod named `nobody`"),
        ("stop else", "no spawned pod named `else`"),
        ("restore nobody", "pod state missing for `nobody`"),
        ("restore else", unseen),
        ("peer else", unseen),
    ] {
        assert_eq!(bench.refused(&pod, text).await, format!("It says: {why}"), "{text}");
    }
    bench.call(&pod, Method::Peer { name: "else".into() }).await.unwrap();
    bench.say(&pod, "peer else").await;
    let approval = bench.asked().await;
    bench.answer(&approval, once()).await.unwrap();
    bench.all_ended(&[&pod, &PodName::parse("else").unwrap()]).await;
    bench.call(&PodName::parse("else").unwrap(), Method::Stop).await.unwrap();
    let stopped = "It says: pod `else` is stopped; bring it back with RestorePod, then send again";
    assert_eq!(bench.refused(&pod, "peer else").await, stopped);
}

#[tokio::test]
async fn the_need_git_of_a_pod_without_write_is_refused_before_a_person_is_asked() {
    let (mut bench, first) = Bench::asking().await;
    let script = bench.root.join("script.toml");
    let reader = bench.new_pod(Some(&script)).await.name;
    bench.say(&first, "hook").await;
    assert_eq!(bench.asked().await.tool, "Bash", "one that may write is asked about");
    // The run of the first one waits, so this one reads.
    let said = bench.refused(&reader, "hook").await;
    assert!(said.contains("needs git opens nothing here"), "{said}");
    assert!(said.contains("run the command without needs git"), "{said}");
}

#[tokio::test]
async fn an_answer_that_a_pause_overtakes_is_what_the_log_says_and_the_call_does_not_run() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write a").await;
    let approval = bench.asked().await;
    bench.is(&pod, State::NeedsYou).await;
    let decided = Decided { approval: approval.id.clone(), verdict: once(), rule: None };
    assert!(bench.host.shared.store.decide_approval(decided).await.unwrap());
    bench.call(&pod, Method::Pause).await.unwrap();
    bench.is(&pod, State::Paused).await;
    let (files, segment) = bench.files(&pod).await;
    let answers = crate::session::records(&files.segment(segment), domain::ANSWERED).unwrap();
    let said = answers.iter().map(|entry| json!(entry)["payload"]["verdict"]["verdict"].clone());
    assert_eq!(said.collect::<Vec<_>>(), ["once"]);
    assert_eq!(bench.results(&pod).await, 1);
    assert!(!bench.wrote("a.txt"));
    assert_eq!(bench.questions(), []);
}

#[tokio::test]
async fn a_fork_of_a_pod_that_waits_leaves_the_request_alone() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write a").await;
    let approval = bench.asked().await;
    bench.is(&pod, State::NeedsYou).await;
    let before = (bench.info(&pod).await, bench.transcript(&pod).await);
    for (fork, order) in [("f", Method::Resume), ("g", Method::say("hello"))] {
        let fork = PodName::parse(fork).unwrap();
        bench.call(&pod, Method::Fork { name: Some(fork.clone()), at: None }).await.unwrap();
        assert_eq!(bench.info(&fork).await.state, State::Paused);
        bench.call(&fork, order).await.unwrap();
        loop {
            let line = bench.events.recv().await.expect("the host is there");
            assert!(!matches!(line.event, Event::ApprovalDecided { .. }), "{:?}", line.event);
            if line.pod.as_ref() == Some(&fork) && matches!(line.event, Event::RunEnd { .. }) {
                break;
            }
        }
        assert_eq!(bench.results(&fork).await, 1, "its copy of the call is closed");
        assert_eq!(bench.questions(), std::slice::from_ref(&approval));
        let stored = bench.host.shared.store.approvals_of(&pod).await.unwrap();
        assert_eq!(stored.iter().map(|row| row.verdict.clone()).collect::<Vec<_>>(), [None]);
    }
    assert_eq!((bench.info(&pod).await, bench.transcript(&pod).await), before);
    bench.answer(&approval, once()).await.unwrap();
    bench.ended(&pod).await;
    assert!(bench.wrote("a.txt"));
    assert_eq!(bench.results(&pod).await, 1);
}

#[tokio::test]
async fn a_withdrawn_approval_request_gives_no_scope() {
    let (mut bench, pod) = Bench::asking().await;
    std::fs::create_dir_all(bench.root.join("else")).unwrap();
    bench.say(&pod, "write ../else/x").await;
    let approval = bench.asked().await;
    let (shared, orders) = (&bench.host.shared, bench.host.supervisor.clone());
    let decided = Decided { approval: "another".into(), verdict: once(), rule: None };
    let lease = approval.lease.clone().unwrap();
    let refused = rules::extend(orders, pod.clone(), lease, Some(decided)).await.unwrap_err();
    assert_eq!(refused.message, "that request was decided or withdrawn already");
    assert_eq!(shared.store.leases().await.unwrap(), []);
    let scope = bench.info(&pod).await.scope;
    assert!(!scope.iter().any(|rule| rule.target.ends_with("else/x.txt")), "{scope:?}");
    bench.answer(&approval, Verdict::Pod { rule: None }).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(bench.host.shared.store.leases().await.unwrap().len(), 1);
}

impl Bench {
    /// The state of a live Pod in the words of the frozen wire: on its socket, in a list, and in the
    /// reply to a restore.
    async fn words(&self, pod: &PodName) -> [String; 3] {
        let handle = self.host.shared.pod(pod).unwrap();
        let socket = json!(handle.subscribe().await.unwrap().status);
        let Ok(Event::PodsListed { pods }) = self.call(pod, Method::ListPods).await else {
            panic!("a list")
        };
        let restore = Method::Restore { name: pod.to_string() };
        let Ok(Event::PodRestored { result }) = self.call(pod, restore).await else {
            panic!("it is live")
        };
        let word = |value: &serde_json::Value| value.as_str().unwrap_or("none").to_owned();
        [word(&socket), word(&pods[0]["live"]["status"]), word(&result["status"])]
    }
}

#[tokio::test]
async fn a_pod_that_waits_for_an_approval_reads_as_running_everywhere_also_over_a_restart() {
    let (mut bench, pod) = Bench::asking().await;
    assert_eq!(bench.words(&pod).await, ["idle"; 3]);
    bench.say(&pod, "write a").await;
    bench.asked().await;
    bench.is(&pod, State::NeedsYou).await;
    assert_eq!(bench.words(&pod).await, ["running"; 3]);
    let mut bench = bench.restarted().await;
    bench.is(&pod, State::NeedsYou).await;
    assert_eq!(bench.words(&pod).await, ["running"; 3]);
    bench.call(&pod, Method::Pause).await.unwrap();
    assert_eq!(bench.words(&pod).await, ["paused"; 3]);
}

#[tokio::test]
async fn a_pod_that_waits_for_a_key_reads_as_idle_everywhere() {
    let mut bench = Bench::new().await;
    let model = Some("anthropic/claude-x".into());
    let new = NewPod { cwd: bench.root.join("w"), model, ..NewPod::default() };
    bench.client.call(None, Method::New(new)).await.unwrap();
    let pod = PodName::parse("w").unwrap();
    assert!(bench.call(&pod, Method::say("x")).await.is_err());
    bench.is(&pod, State::NeedsYou).await;
    assert_eq!(bench.words(&pod).await, ["idle"; 3]);
}

#[tokio::test]
async fn messages_into_a_run_that_waits_for_a_decision_enter_together_after_it() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write a.txt").await;
    let approval = bench.asked().await;
    for text in ["one", "two"] {
        let Method::Send { input, .. } = Method::say(text) else { unreachable!() };
        let sent = bench.call(&pod, Method::Steer { id: None, input }).await.unwrap();
        let Event::Accepted { queued: Some(id), .. } = sent else { panic!("{sent:?}") };
        let refusal = bench.call(&pod, Method::EditQueued { id, input: None }).await.unwrap_err();
        assert!(refusal.message.contains("pause it first"), "{refusal:?}");
    }
    let enters = |info: crate::protocol::PodInfo| {
        info.queue.iter().map(|queued| queued.enters).collect::<Vec<_>>()
    };
    assert_eq!(enters(bench.info(&pod).await), [true, true]);
    bench.answer(&approval, once()).await.unwrap();
    bench.ended(&pod).await;
    bench.is(&pod, State::Idle).await;
    assert_eq!(bench.said(&pod).await.last().unwrap(), "You said two.");
    let entries = bench.whole_entries(&pod).await;
    let inputs: Vec<_> = entries
        .iter()
        .filter(|entry| matches!(entry.fact, crate::protocol::Fact::UserInput { .. }))
        .collect();
    assert_eq!(inputs.iter().map(|input| input.run).collect::<Vec<_>>(), [inputs[0].id; 3]);
    let kinds = bench.transcript(&pod).await;
    let of = |kind: &str| kinds.iter().rposition(|other| other == kind).unwrap();
    let result = of("tool_result");
    assert_eq!(kinds[result + 1..=result + 2], ["user_input", "user_input"], "{kinds:?}");
    assert!(of("assistant_item") > result + 2, "{kinds:?}");
    let listed = bench.call(&pod, Method::ListRewindTargets).await.unwrap();
    let Event::RewindTargets { head_entries, targets, .. } = listed else { panic!() };
    let previews: Vec<&str> = targets.iter().map(|target| target.preview.as_str()).collect();
    assert_eq!(previews, ["two", "one", "write a.txt"]);
    let back =
        |at: usize| Method::Rewind { target: targets[at].id, expected_head_entries: head_entries };
    let rewound = bench.call(&pod, back(1)).await.unwrap();
    let Event::RewindApplied { input, .. } = rewound else { panic!("{rewound:?}") };
    assert_eq!(crate::protocol::flatten(&input), "one");
    bench.is(&pod, State::Idle).await;
    assert_eq!(bench.transcript(&pod).await[..=result], kinds[..=result]);
    bench.say(&pod, "three").await;
    bench.ended(&pod).await;
    assert_eq!(bench.said(&pod).await.last().unwrap(), "You said three.");
    let carried = bench.inputs(&pod).await;
    assert_eq!(carried, ["write a.txt", "three"]);
}

#[tokio::test]
async fn a_file_that_a_message_into_a_run_names_is_attached_behind_it() {
    let (mut bench, pod) = Bench::asking().await;
    for name in ["chosen.txt", "typed.txt"] {
        std::fs::write(bench.root.join("w").join(name), name).unwrap();
    }
    bench.say(&pod, "write a.txt").await;
    let request = bench.asked().await;
    let chosen = Segment::FileRef { path: "chosen.txt".into() };
    let typed = Segment::Text { content: " is like @typed.txt".into() };
    bench.call(&pod, Method::Steer { id: None, input: vec![chosen, typed] }).await.unwrap();
    bench.answer(&request, once()).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(
        bench.attached(&pod).await,
        ["[File: chosen.txt]\nchosen.txt", "[File: typed.txt]\ntyped.txt"]
    );
    let kinds = bench.transcript(&pod).await;
    let at = kinds.iter().rposition(|kind| kind == "user_input").unwrap();
    assert_eq!(kinds[at + 1..at + 3], ["system_item", "system_item"]);
}

#[tokio::test]
async fn a_message_that_had_not_entered_a_paused_run_can_be_taken_back() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write a.txt").await;
    bench.asked().await;
    let Method::Send { input, .. } = Method::say("not that") else { unreachable!() };
    bench.call(&pod, Method::Steer { id: None, input }).await.unwrap();
    bench.call(&pod, Method::Pause).await.unwrap();
    bench.ended(&pod).await;
    let info = bench.is(&pod, State::Paused).await;
    let [queued] = &info.queue[..] else { panic!("{info:?}") };
    let edit = Method::EditQueued { id: queued.id.clone(), input: None };
    bench.call(&pod, edit).await.unwrap();
    let queue = bench.info(&pod).await.queue;
    assert_eq!(queue, Vec::new());
    assert!(!bench.transcript(&pod).await.iter().rev().take(2).any(|kind| kind == "user_input"));
}

fn answer(text: &str) -> Verdict {
    let values = json!({ "answer": text }).as_object().cloned().unwrap();
    Verdict::Answer { values }
}

#[tokio::test]
async fn a_question_waits_for_an_answer_that_the_model_reads() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "ask only").await;
    let question = bench.asked().await;
    assert_eq!(question.line(), "question: Which name?");
    let info = bench.is(&pod, State::NeedsYou).await;
    assert_eq!(info.why.unwrap(), "waits for you: question: Which name?");
    let rule = "AskPerson:*".parse().ok();
    for verdict in [once(), Verdict::Pod { rule: rule.clone() }, Verdict::Tree { rule, of: None }] {
        let wrong = bench.answer(&question, verdict).await.unwrap_err();
        assert_eq!(wrong, "this is a question: answer it or deny it");
    }
    let wrong = bench.answer(&question, answer(" ")).await.unwrap_err();
    assert_eq!(wrong, r#"" " is not a text"#);
    bench.answer(&question, answer("keep\nboth")).await.unwrap();
    let late = bench.answer(&question, answer("sum")).await.unwrap_err();
    assert_eq!(late, "that request was decided or withdrawn already");
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(bench.said(&pod).await.pop().unwrap(), "It says: keep\nboth");
    assert_eq!(bench.questions(), []);
}

#[tokio::test]
async fn a_declined_question_is_an_error_with_the_reason() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "ask only").await;
    let question = bench.asked().await;
    bench.answer(&question, Verdict::Deny { reason: "decide yourself".into() }).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(bench.said(&pod).await.pop().unwrap(), "It says: no answer: decide yourself");
    let wrong = bench.refused(&pod, "ask wrong x").await;
    let said = "It says: invalid AskPerson input: choices are two to four, or left out, not 1";
    assert_eq!(wrong, said);
}

#[tokio::test]
async fn only_an_answer_answers_a_question_and_an_approval_request_has_none() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "write a").await;
    let approval = bench.asked().await;
    let wrong = bench.answer(&approval, answer("yes")).await.unwrap_err();
    assert_eq!(wrong, "this is no question: allow it or deny it");
    let other = bench.host.shared.store.clone();
    let kid = bench.child(&pod, "kid").await;
    let question = ApprovalRequest {
        id: "0".into(),
        pod: kid,
        lineage: vec![pod.clone()],
        question: Some(crate::protocol::Question::of_model(vec![])),
        ..approval.clone()
    };
    other.add_approval(question.clone()).await.unwrap();
    bench.host.shared.approval_requested(&question);
    let rule = Some("*:*".parse().unwrap());
    bench.answer(&approval, Verdict::Tree { rule, of: None }).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(bench.questions(), [question], "a rule for everything answers no question");
}

#[tokio::test]
async fn a_question_outlives_the_host_and_its_answer_goes_on_with_the_run() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "ask").await;
    let question = bench.asked().await;
    let mut bench = bench.after(async |_| {}).await;
    assert_eq!(bench.questions(), std::slice::from_ref(&question));
    bench.is(&pod, State::NeedsYou).await;
    bench.answer(&question, answer("sum")).await.unwrap();
    let write = bench.asked().await;
    assert_eq!(write.tool, "Write", "the calls behind the question run");
    bench.answer(&write, once()).await.unwrap();
    bench.ended(&pod).await;
    assert!(bench.wrote("asked.txt"));
    assert_eq!(bench.results(&pod).await, 2);
}

#[tokio::test]
async fn an_answer_that_comes_as_the_host_ends_is_not_asked_for_again() {
    let (mut bench, pod) = Bench::asking().await;
    bench.say(&pod, "ask only").await;
    let question = bench.asked().await;
    let id = question.id.clone();
    let answered = Decided { approval: id, verdict: answer("sum"), rule: None };
    let mut bench =
        bench.after(async |store| assert!(store.decide_approval(answered).await.unwrap())).await;
    assert_eq!(bench.questions(), []);
    bench.call(&pod, Method::Resume).await.unwrap();
    bench.ended(&pod).await;
    assert_eq!(bench.said(&pod).await.pop().unwrap(), "It says: sum");
}

#[tokio::test]
async fn a_cancelled_run_and_a_stopped_pod_withdraw_their_question() {
    for method in [Method::Cancel, Method::Stop] {
        let (mut bench, pod) = Bench::asking().await;
        bench.say(&pod, "ask only").await;
        let question = bench.asked().await;
        bench.call(&pod, method.clone()).await.unwrap();
        let decided = bench.next(|e| matches!(e, Event::ApprovalDecided { .. })).await;
        let Event::ApprovalDecided { verdict, .. } = decided else { unreachable!() };
        assert!(matches!(verdict, Verdict::Withdrawn { .. }), "{method:?}: {verdict:?}");
        let late = bench.answer(&question, answer("sum")).await.unwrap_err();
        assert_eq!(late, "that request was decided or withdrawn already");
        assert_eq!(bench.questions(), []);
    }
}
