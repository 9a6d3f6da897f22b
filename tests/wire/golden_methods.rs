//! A golden line for every order, and for every piece of input and news of a child.

use crate::{every_variant, golden};
use std::collections::BTreeMap;
use yoi::protocol::method::{Addressees, NewPod};
use yoi::protocol::{
    ByteRange, CompletionKind, Effort, EntryId, McpClient, Method, NewWorktree, PodEvent, PodName,
    RewindTargetId, Segment, SpawnPod, Verdict, WhileRunning, WorktreeChange,
};
use yoi::scope::{Permission, Rule};

const ID: &str = "01a1fff2-d277-7d93-b554-1afe8ed56657";

fn entry() -> EntryId {
    ID.parse().expect("a uuid")
}

fn text(content: &str) -> Segment {
    Segment::Text { content: content.into() }
}

fn rule() -> Rule {
    Rule { target: "/w".into(), permission: Permission::Write, recursive: true }
}

#[test]
fn every_method_has_its_line() {
    let target =
        RewindTargetId { segment_id: ID.parse().expect("a uuid"), user_input_entry_index: 2 };
    let new = NewPod {
        name: PodName::parse("alice").ok(),
        cwd: "/w".into(),
        model: Some("anthropic/".into()),
        scope: Some(vec![rule()]),
        profile: Some("fast".into()),
        effort: Some(Effort::Max),
        max_turns: Some(9),
        env: BTreeMap::from([("PATH".into(), "/bin".into())]),
        ephemeral: true,
        worktree: Some(NewWorktree { branch: Some("fix".into()) }),
    };
    let lines = vec![
        (
            Method::say("Hi"),
            r#"{"method":"run","params":{"input":[{"kind":"text","content":"Hi"}]}}"#,
        ),
        (
            Method::Send { input: vec![text("Hi")], queue: true },
            r#"{"method":"run","params":{"input":[{"kind":"text","content":"Hi"}],"queue":true}}"#,
        ),
        (
            Method::Notify { message: "green".into() },
            r#"{"method":"notify","params":{"message":"green"}}"#,
        ),
        (
            Method::PodEvent(PodEvent::TurnEnded { pod_name: "kid".into(), result: None }),
            r#"{"method":"pod_event","params":{"kind":"turn_ended","pod_name":"kid"}}"#,
        ),
        (Method::Resume, r#"{"method":"resume"}"#),
        (Method::Cancel, r#"{"method":"cancel"}"#),
        (Method::Pause, r#"{"method":"pause"}"#),
        (Method::Compact, r#"{"method":"compact"}"#),
        (Method::ListRewindTargets, r#"{"method":"list_rewind_targets"}"#),
        (
            Method::Rewind { target, expected_head_entries: 7 },
            r#"{"method":"rewind_to","params":{"target":{"segment_id":"01a1fff2-d277-7d93-b554-1afe8ed56657","user_input_entry_index":2},"expected_head_entries":7}}"#,
        ),
        (Method::Stop, r#"{"method":"shutdown"}"#),
        (
            Method::ListCompletions { kind: CompletionKind::File, prefix: "src/".into() },
            r#"{"method":"list_completions","params":{"kind":"file","prefix":"src/"}}"#,
        ),
        (Method::ListPods, r#"{"method":"list_pods"}"#),
        (Method::Restore { name: "x".into() }, r#"{"method":"restore_pod","params":{"name":"x"}}"#),
        (Method::Peer { name: "x".into() }, r#"{"method":"register_peer","params":{"name":"x"}}"#),
        (Method::Watch, r#"{"method":"watch"}"#),
        (
            Method::Page { before: None, max_bytes: 65_536 },
            r#"{"method":"page","params":{"before":null,"max_bytes":65536}}"#,
        ),
        (
            Method::Fetch { entry: entry(), range: None },
            r#"{"method":"fetch","params":{"entry":"01a1fff2-d277-7d93-b554-1afe8ed56657"}}"#,
        ),
        (
            Method::Fetch {
                entry: entry(),
                range: Some(ByteRange { start: 65_536, bytes: 1_024 }),
            },
            r#"{"method":"fetch","params":{"entry":"01a1fff2-d277-7d93-b554-1afe8ed56657","range":{"start":65536,"bytes":1024}}}"#,
        ),
        (
            Method::New(new),
            r#"{"method":"new","params":{"name":"alice","cwd":"/w","model":"anthropic/","scope":[{"target":"/w","permission":"write","recursive":true}],"profile":"fast","effort":"max","max_turns":9,"env":{"PATH":"/bin"},"ephemeral":true,"worktree":{"branch":"fix"}}}"#,
        ),
        (
            Method::New(NewPod { cwd: "/w".into(), ..NewPod::default() }),
            r#"{"method":"new","params":{"cwd":"/w"}}"#,
        ),
        (
            Method::New(NewPod {
                cwd: "/w".into(),
                worktree: Some(NewWorktree::default()),
                ..NewPod::default()
            }),
            r#"{"method":"new","params":{"cwd":"/w","worktree":{}}}"#,
        ),
        (
            Method::Open { env: BTreeMap::from([("A".into(), "b".into())]) },
            r#"{"method":"open","params":{"env":{"A":"b"}}}"#,
        ),
        (Method::Remove, r#"{"method":"remove"}"#),
        (
            Method::SetModel { model: "ollama/".into() },
            r#"{"method":"set_model","params":{"model":"ollama/"}}"#,
        ),
        (
            Method::SetEffort { effort: Some(Effort::High) },
            r#"{"method":"set_effort","params":{"effort":"high"}}"#,
        ),
        (
            Method::Consent { sends: "sends it".into() },
            r#"{"method":"consent","params":{"sends":"sends it"}}"#,
        ),
        (
            Method::FindModel {
                cwd: "/w".into(),
                model: Some("ollama/m".into()),
                env: BTreeMap::from([("A".into(), "b".into())]),
            },
            r#"{"method":"find_model","params":{"cwd":"/w","model":"ollama/m","env":{"A":"b"}}}"#,
        ),
        (
            Method::EditQueued { id: "q1".into(), input: Some(vec![text("new")]) },
            r#"{"method":"edit_queued","params":{"id":"q1","input":[{"kind":"text","content":"new"}]}}"#,
        ),
        (
            Method::EditQueued { id: "q1".into(), input: None },
            r#"{"method":"edit_queued","params":{"id":"q1"}}"#,
        ),
        (
            Method::Steer { id: Some("q1".into()), input: vec![] },
            r#"{"method":"steer","params":{"id":"q1"}}"#,
        ),
        (
            Method::Steer { id: None, input: vec![text("left")] },
            r#"{"method":"steer","params":{"input":[{"kind":"text","content":"left"}]}}"#,
        ),
        (Method::Seen, r#"{"method":"seen"}"#),
        (Method::Later, r#"{"method":"later"}"#),
        (
            Method::PutOff { approval: "a1".into() },
            r#"{"method":"put_off","params":{"approval":"a1"}}"#,
        ),
        (
            Method::Show { pods: PodName::parse("a").into_iter().collect(), follows: None },
            r#"{"method":"show","params":{"pods":["a"]}}"#,
        ),
        (
            Method::Show { pods: Vec::new(), follows: PodName::parse("a").ok().map(|a| vec![a]) },
            r#"{"method":"show","params":{"pods":[],"follows":["a"]}}"#,
        ),
        (Method::Attend { attends: true }, r#"{"method":"attend","params":{"attends":true}}"#),
        (Method::HostStatus, r#"{"method":"host_status"}"#),
        (Method::TryNotify, r#"{"method":"try_notify"}"#),
        (Method::Trace { filter: String::new() }, r#"{"method":"trace","params":{}}"#),
        (
            Method::Trace { filter: "warn".into() },
            r#"{"method":"trace","params":{"filter":"warn"}}"#,
        ),
        (
            Method::Spawn(SpawnPod {
                name: "kid".into(),
                task: "look".into(),
                scope: vec![rule()],
                profile: Some("inherit".into()),
                instruction: Some("be brief".into()),
                effort: Some(Effort::Off),
                cwd: Some("/w".into()),
                worktree: None,
                running: WhileRunning::End,
            }),
            r#"{"method":"spawn","params":{"name":"kid","task":"look","scope":[{"target":"/w","permission":"write","recursive":true}],"profile":"inherit","instruction":"be brief","effort":"off","cwd":"/w","running":"end"}}"#,
        ),
        (
            Method::Spawn(SpawnPod {
                name: "kid".into(),
                task: "look".into(),
                worktree: Some(NewWorktree { branch: Some("fix".into()) }),
                ..SpawnPod::default()
            }),
            r#"{"method":"spawn","params":{"name":"kid","task":"look","scope":[],"worktree":{"branch":"fix"}}}"#,
        ),
        (
            Method::StopPods { tree: false, unless_busy: false, silent: false },
            r#"{"method":"stop","params":{}}"#,
        ),
        (
            Method::StopPods { tree: false, unless_busy: true, silent: false },
            r#"{"method":"stop","params":{"unless_busy":true}}"#,
        ),
        (
            Method::StopPods { tree: true, unless_busy: false, silent: false },
            r#"{"method":"stop","params":{"tree":true}}"#,
        ),
        (Method::ReadOutput, r#"{"method":"read_output"}"#),
        (Method::Relocate { cwd: "/w".into() }, r#"{"method":"relocate","params":{"cwd":"/w"}}"#),
        (
            Method::RestorePods { tree: true, plan: true },
            r#"{"method":"restore","params":{"tree":true,"plan":true}}"#,
        ),
        (Method::Unpeer { name: "x".into() }, r#"{"method":"unpeer","params":{"name":"x"}}"#),
        (
            Method::lend("x", rule()),
            r#"{"method":"lend","params":{"to":"x","rule":{"target":"/w","permission":"write","recursive":true}}}"#,
        ),
        (
            Method::Lend { to: "x".into(), rule: rule(), running: WhileRunning::Wait },
            r#"{"method":"lend","params":{"to":"x","rule":{"target":"/w","permission":"write","recursive":true},"running":"wait"}}"#,
        ),
        (Method::reclaim("/w"), r#"{"method":"reclaim","params":{"path":"/w"}}"#),
        (
            Method::Reclaim { path: "/w".into(), running: WhileRunning::End },
            r#"{"method":"reclaim","params":{"path":"/w","running":"end"}}"#,
        ),
        (Method::Who { path: "/w".into() }, r#"{"method":"who","params":{"path":"/w"}}"#),
        (Method::Since { at: 5 }, r#"{"method":"since","params":{"at":5}}"#),
        (
            Method::Decide {
                approval: ID.into(),
                verdict: Verdict::Deny { reason: "not now".into() },
            },
            r#"{"method":"answer","params":{"ask":"01a1fff2-d277-7d93-b554-1afe8ed56657","verdict":{"verdict":"deny","reason":"not now"}}}"#,
        ),
        (Method::ListPolicy, r#"{"method":"list_policy"}"#),
        (Method::ExplainCommand, r#"{"method":"explain_command"}"#),
        (Method::Revoke { rule: 3 }, r#"{"method":"revoke","params":{"rule":3}}"#),
        (
            Method::ListServers { workspace: "/w".into() },
            r#"{"method":"list_mcp_servers","params":{"workspace":"/w"}}"#,
        ),
        (
            Method::Trust { workspace: "/w".into(), sha256: Some("ab12".into()) },
            r#"{"method":"trust","params":{"workspace":"/w","sha256":"ab12"}}"#,
        ),
        (Method::ListJobs, r#"{"method":"list_jobs"}"#),
        (
            Method::StopJob { id: "job-1".into() },
            r#"{"method":"stop_job","params":{"id":"job-1"}}"#,
        ),
        (Method::Worktree { change: None }, r#"{"method":"worktree","params":{}}"#),
        (
            Method::Worktree { change: Some(WorktreeChange::Keep) },
            r#"{"method":"worktree","params":{"change":{"change":"keep"}}}"#,
        ),
        (
            Method::Worktree { change: Some(WorktreeChange::Drop { digest: "ab12".into() }) },
            r#"{"method":"worktree","params":{"change":{"change":"drop","digest":"ab12"}}}"#,
        ),
        (
            Method::LeaveOut { result: "8ed566".into() },
            r#"{"method":"leave_out","params":{"result":"8ed566"}}"#,
        ),
        (
            Method::UndoRewind { entry: entry(), expected_head_entries: 7 },
            r#"{"method":"undo_rewind","params":{"entry":"01a1fff2-d277-7d93-b554-1afe8ed56657","expected_head_entries":7}}"#,
        ),
        (Method::MeshJoin, r#"{"method":"mesh_join"}"#),
        (Method::MeshLeave, r#"{"method":"mesh_leave"}"#),
        (Method::MeshAgents, r#"{"method":"mesh_agents"}"#),
        (
            Method::MeshSend {
                to: Addressees::One("pi-1".into()),
                body: serde_json::json!({"n": 1}),
                re: Some(ID.into()),
            },
            r#"{"method":"mesh_send","params":{"to":"pi-1","body":{"n":1},"re":"01a1fff2-d277-7d93-b554-1afe8ed56657"}}"#,
        ),
        (
            Method::MeshSend {
                to: Addressees::Many(vec!["a".into(), "b".into()]),
                body: "hi".into(),
                re: None,
            },
            r#"{"method":"mesh_send","params":{"to":["a","b"],"body":"hi"}}"#,
        ),
        (
            Method::MeshBlock { name: "pi-1".into(), end: true },
            r#"{"method":"mesh_block","params":{"name":"pi-1","end":true}}"#,
        ),
        (
            Method::ActAs(McpClient {
                folder: "/w".into(),
                name: "w".into(),
                address: Some("w#2".into()),
                program: Some("claude-code 2".into()),
            }),
            r#"{"method":"act_as","params":{"folder":"/w","name":"w","address":"w#2","program":"claude-code 2"}}"#,
        ),
        (
            Method::Fork { name: PodName::parse("b").ok(), at: Some(entry()) },
            r#"{"method":"fork","params":{"name":"b","at":"01a1fff2-d277-7d93-b554-1afe8ed56657"}}"#,
        ),
    ];
    for (method, line) in &lines {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        assert_eq!(line["method"], method.name(), "the name in logs is the name on the wire");
    }
    every_variant!(
        Method,
        lines,
        Send Notify PodEvent Resume Cancel Pause Compact ListRewindTargets Rewind Stop
        ListCompletions ListPods Restore Peer Watch Page Fetch New Open Remove SetModel SetEffort Consent FindModel EditQueued
        Steer Seen Later PutOff Show Attend HostStatus TryNotify Trace Spawn StopPods ReadOutput Relocate RestorePods Unpeer Lend Reclaim Who Since Decide
        ListPolicy ExplainCommand Revoke Trust ListServers ListJobs StopJob Worktree UndoRewind LeaveOut MeshJoin MeshLeave MeshAgents
        MeshSend MeshBlock ActAs Fork
    );
}

#[test]
fn every_segment_has_its_line() {
    let future = serde_json::json!({"kind": "from_the_future", "x": 1});
    every_variant!(
        Segment,
        vec![
            (text("see "), r#"{"kind":"text","content":"see "}"#),
            (
                Segment::Paste { id: 1, chars: 7, lines: 2, content: "abc\ndef".into() },
                r#"{"kind":"paste","id":1,"chars":7,"lines":2,"content":"abc\ndef"}"#,
            ),
            (Segment::FileRef { path: "a.rs".into() }, r#"{"kind":"file_ref","path":"a.rs"}"#),
            (Segment::KnowledgeRef { slug: "k".into() }, r#"{"kind":"knowledge_ref","slug":"k"}"#),
            (Segment::WorkflowInvoke { slug: "w".into() }, r#"{"kind":"workflow_invoke","slug":"w"}"#),
            (Segment::Unknown(future), r#"{"kind":"from_the_future","x":1}"#),
        ],
        Text Paste FileRef KnowledgeRef WorkflowInvoke Unknown
    );
}

#[test]
fn every_child_event_has_its_line() {
    let name = || "kid".to_owned();
    every_variant!(
        PodEvent,
        vec![
            (
                PodEvent::TurnEnded { pod_name: name(), result: None },
                r#"{"kind":"turn_ended","pod_name":"kid"}"#,
            ),
            (
                PodEvent::TurnEnded { pod_name: name(), result: Some("done".into()) },
                r#"{"kind":"turn_ended","pod_name":"kid","result":"done"}"#,
            ),
            (
                PodEvent::Errored { pod_name: name(), message: "no".into() },
                r#"{"kind":"errored","pod_name":"kid","message":"no"}"#,
            ),
            (PodEvent::ShutDown { pod_name: name() }, r#"{"kind":"shut_down","pod_name":"kid"}"#),
            (
                PodEvent::ScopeSubDelegated {
                    parent_pod: name(),
                    sub_pod: "sub".into(),
                    sub_socket: "/run/sub/sock".into(),
                    scope: vec![rule()],
                },
                r#"{"kind":"scope_sub_delegated","parent_pod":"kid","sub_pod":"sub","sub_socket":"/run/sub/sock","scope":[{"target":"/w","permission":"write","recursive":true}]}"#,
            ),
        ],
        TurnEnded Errored ShutDown ScopeSubDelegated
    );
}

#[test]
fn a_rule_is_recursive_when_it_does_not_say() {
    golden(
        &Rule { target: "/w".into(), permission: Permission::Read, recursive: false },
        r#"{"target":"/w","permission":"read","recursive":false}"#,
    );
    let short: Rule =
        serde_json::from_str(r#"{"target":"/w","permission":"write"}"#).expect("a rule");
    assert_eq!(short, rule());
}

#[test]
fn only_the_orders_of_the_predecessor_are_classic() {
    assert!(Method::Compact.is_classic() && Method::ListPods.is_classic());
    assert!(!Method::Watch.is_classic() && !Method::Seen.is_classic());
    assert!(
        !Method::StopPods { tree: false, unless_busy: false, silent: false }.is_classic()
            && !Method::ReadOutput.is_classic()
    );
}
