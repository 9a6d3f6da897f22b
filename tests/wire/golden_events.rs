//! A golden line for every event and reply, and the words of their enumerations.

use crate::{every_variant, golden};
use serde_json::json;
use yoi::protocol::event::Line;
use yoi::protocol::family::Confined;
use yoi::protocol::mesh::{
    AgentKind, MachineMessage, MachineView, MeshAgent, MeshMember, MeshStanding, MeshView,
    MessageState,
};
use yoi::protocol::{
    Action, Alert, AlertLevel, AlertSource, ApprovalRequest, Choice, CircleKind, Circling,
    Comeback, CommandSheet, Completion, CompletionKind, Entry, ErrorCode, Event, Fact, Field,
    FieldKind, FoundModel, GoesOnBy, Greeting, InFlight, InstructionFile, JobInfo, LastRun, Lent,
    LimitKind, LimitMet, LineShape, LinesChanged, Losses, McpServerInfo, McpServerState, Outgoing,
    OwnPlace, PathHolder, Pattern, PeerEdge, PeerRegistered, PlanStep, PodInfo, PodName, PodOutput,
    PodStatus, PodWork, PolicyClient, PolicyConsent, PolicyRule, PolicyTrust, Question, Queued,
    Restoring, RewindSummary, RewindTarget, RewindTargetId, RunResult, Segment, SettingsMistake,
    ShutPlace, State, StoppedPod, SystemItem, TextSpan, Trigger, TurnResult, Verdict, Work,
    WorkspaceFile, WorktreeInfo, WorktreeState,
};
use yoi::scope::{Permission, Rule};

const ID: &str = "01a1fff2-d277-7d93-b554-1afe8ed56657";

fn text(content: &str) -> Vec<Segment> {
    vec![Segment::Text { content: content.into() }]
}

fn name(text: &str) -> PodName {
    PodName::parse(text).expect("a name")
}

fn entry() -> Entry {
    Entry { id: ID.parse().ok(), ts: 7, run: None, fact: Fact::TurnEnd { turn_count: 1 } }
}

const ENTRY: &str =
    r#"{"id":"01a1fff2-d277-7d93-b554-1afe8ed56657","ts":7,"kind":"turn_end","turn_count":1}"#;

fn greeting() -> Greeting {
    Greeting {
        pod_name: "alpha".into(),
        cwd: "/w".into(),
        provider: "anthropic".into(),
        model: "m".into(),
        scope_summary: "s".into(),
        tools: vec!["Bash".into()],
        context_window: 200,
        context_tokens: 3,
    }
}

fn info() -> PodInfo {
    PodInfo {
        name: name("alice"),
        parent: None,
        state: State::Idle,
        since: 1,
        seq: 2,
        why: None,
        goes_on_by: None,
        activity: None,
        retry_at: None,
        limit: None,
        circling: None,
        unseen: false,
        later: None,
        cwd: "/w".into(),
        workspace: "/w".into(),
        directory_id: Some("7-9".into()),
        model: "anthropic/m".into(),
        model_why: "ANTHROPIC_API_KEY is set".into(),
        model_chosen: true,
        model_sends: None,
        model_address: Some("api.anthropic.com".into()),
        model_key: Some("key from ANTHROPIC_API_KEY".into()),
        effort: None,
        effort_unsent: None,
        effort_sent: None,
        context_tokens: 3,
        context_window: 200,
        cost: None,
        scope: vec![],
        deny: vec![],
        lent: vec![],
        last_result: None,
        last_activity: 5,
        cut_at: None,
        confined: Some(Confined::Partly),
        notes: vec![],
        queue: vec![
            Queued { id: "q".into(), input: text("next"), enters: false },
            Queued { id: "r".into(), input: text("now"), enters: true },
        ],
        waiting: vec![],
        segment: None,
        ephemeral: false,
        mesh: None,
        jobs: 0,
        worktree: None,
    }
}

const INFO: &str = r#"{"name":"alice","state":"idle","since":1,"seq":2,"unseen":false,"cwd":"/w","workspace":"/w","directory_id":"7-9","model":"anthropic/m","model_why":"ANTHROPIC_API_KEY is set","model_chosen":true,"model_address":"api.anthropic.com","model_key":"key from ANTHROPIC_API_KEY","context_tokens":3,"context_window":200,"scope":[],"last_activity":5,"confined":"partly","notes":[],"queue":[{"id":"q","input":[{"kind":"text","content":"next"}]},{"id":"r","input":[{"kind":"text","content":"now"}],"enters":true}]}"#;

fn met() -> LimitMet {
    LimitMet { kind: LimitKind::FileSize, sentence: "1 MiB".into() }
}

fn circling() -> Circling {
    Circling { kind: CircleKind::Failure, times: 5, call: "Bash make".into(), since: 3 }
}

const MET: &str = r#""limit":{"kind":"file_size","sentence":"1 MiB"},"#;

/// `INFO` with a field before `unseen`.
fn info_with(field: &str) -> String {
    INFO.replacen(r#""unseen""#, &format!(r#"{field}"unseen""#), 1)
}

/// The first group: what a classic client may receive.
fn classic() -> Vec<(Event, String)> {
    let plain: Vec<(Event, &str)> = vec![
        (
            Event::UserMessage { segments: text("hi") },
            r#"{"event":"user_message","data":{"segments":[{"kind":"text","content":"hi"}]}}"#,
        ),
        (
            Event::SystemItem { item: SystemItem::Interrupt { body: "b".into() } },
            r#"{"event":"system_item","data":{"item":{"kind":"interrupt","body":"b"}}}"#,
        ),
        (
            Event::InvokeStart { kind: Trigger::UserSend },
            r#"{"event":"invoke_start","data":{"kind":"user_send"}}"#,
        ),
        (Event::TurnStart { turn: 0 }, r#"{"event":"turn_start","data":{"turn":0}}"#),
        (
            Event::TurnEnd { turn: 0, result: TurnResult::Finished },
            r#"{"event":"turn_end","data":{"turn":0,"result":"finished"}}"#,
        ),
        (
            Event::LlmCallStart { llm_call: 4 },
            r#"{"event":"llm_call_start","data":{"llm_call":4}}"#,
        ),
        (Event::LlmCallEnd { llm_call: 4 }, r#"{"event":"llm_call_end","data":{"llm_call":4}}"#),
        (
            Event::LlmRetry {
                llm_call: 4,
                failed_attempt: 1,
                max_attempts: 5,
                wait_ms: 500,
                elapsed_ms: 20,
                status: Some(429),
                error: "busy".into(),
            },
            r#"{"event":"llm_retry","data":{"llm_call":4,"failed_attempt":1,"max_attempts":5,"wait_ms":500,"elapsed_ms":20,"status":429,"error":"busy"}}"#,
        ),
        (
            Event::LlmContinuation {
                llm_call: 4,
                attempt: 1,
                max_attempts: 3,
                reason: "cut".into(),
            },
            r#"{"event":"llm_continuation","data":{"llm_call":4,"attempt":1,"max_attempts":3,"reason":"cut"}}"#,
        ),
        (Event::TextDelta { text: "h".into() }, r#"{"event":"text_delta","data":{"text":"h"}}"#),
        (Event::TextDone { text: "hi".into() }, r#"{"event":"text_done","data":{"text":"hi"}}"#),
        (Event::ThinkingStart, r#"{"event":"thinking_start"}"#),
        (
            Event::ThinkingDelta { text: "t".into() },
            r#"{"event":"thinking_delta","data":{"text":"t"}}"#,
        ),
        (
            Event::ThinkingDone { text: "t".into() },
            r#"{"event":"thinking_done","data":{"text":"t"}}"#,
        ),
        (
            Event::ToolCallStart { id: "c".into(), name: "Read".into() },
            r#"{"event":"tool_call_start","data":{"id":"c","name":"Read"}}"#,
        ),
        (
            Event::ToolCallArgsDelta { id: "c".into(), json: "{".into() },
            r#"{"event":"tool_call_args_delta","data":{"id":"c","json":"{"}}"#,
        ),
        (
            Event::ToolCallDone { id: "c".into(), name: "Read".into(), arguments: "{}".into() },
            r#"{"event":"tool_call_done","data":{"id":"c","name":"Read","arguments":"{}"}}"#,
        ),
        (
            Event::ToolResult { id: "c".into(), summary: "s".into(), output: None, is_error: true },
            r#"{"event":"tool_result","data":{"id":"c","summary":"s","is_error":true}}"#,
        ),
        (
            Event::Usage {
                input_tokens: Some(10),
                output_tokens: None,
                cache_read_input_tokens: None,
            },
            r#"{"event":"usage","data":{"input_tokens":10,"output_tokens":null}}"#,
        ),
        (
            Event::RunEnd { result: RunResult::Finished, entry: None, run: None },
            r#"{"event":"run_end","data":{"result":"finished"}}"#,
        ),
        (
            Event::RunEnd { result: RunResult::Paused, entry: None, run: ID.parse().ok() },
            r#"{"event":"run_end","data":{"result":"paused","run":"01a1fff2-d277-7d93-b554-1afe8ed56657"}}"#,
        ),
        (
            Event::Error { code: ErrorCode::Internal, message: "Cancelled".into() },
            r#"{"event":"error","data":{"code":"internal","message":"Cancelled"}}"#,
        ),
        (
            Event::Status { status: PodStatus::Paused },
            r#"{"event":"status","data":{"status":"paused"}}"#,
        ),
        (
            Event::Completions {
                kind: CompletionKind::File,
                entries: vec![Completion { value: "a".into(), is_dir: false }],
            },
            r#"{"event":"completions","data":{"kind":"file","entries":[{"value":"a","is_dir":false}]}}"#,
        ),
        (
            Event::PodsListed { pods: vec![json!({"pod_name": "a"})] },
            r#"{"event":"pods_listed","data":{"pods":[{"pod_name":"a"}]}}"#,
        ),
        (
            Event::PodRestored { result: json!({"action": "already_live"}) },
            r#"{"event":"pod_restored","data":{"result":{"action":"already_live"}}}"#,
        ),
        (
            Event::PeerRegistered {
                result: PeerRegistered { source: name("alpha"), peer: name("beta") },
            },
            r#"{"event":"peer_registered","data":{"result":{"source":"alpha","peer":"beta"}}}"#,
        ),
        (
            Event::Alert(Alert {
                level: AlertLevel::Warn,
                source: AlertSource::AgentsMd,
                message: "m".into(),
                timestamp_ms: 5,
            }),
            r#"{"event":"alert","data":{"level":"warn","source":"agents_md","message":"m","timestamp_ms":5}}"#,
        ),
        (
            Event::MemoryWorker(json!({"worker": "w"})),
            r#"{"event":"memory_worker","data":{"worker":"w"}}"#,
        ),
        (Event::CompactStart, r#"{"event":"compact_start"}"#),
        (
            Event::CompactFailed { error: "e".into() },
            r#"{"event":"compact_failed","data":{"error":"e"}}"#,
        ),
        (Event::Stopped, r#"{"event":"shutdown"}"#),
    ];
    plain.into_iter().map(|(event, json)| (event, json.to_owned())).collect()
}

/// The classic events that carry entries or ids.
fn with_entries() -> Vec<(Event, String)> {
    let id = RewindTargetId { segment_id: ID.parse().expect("a uuid"), user_input_entry_index: 2 };
    let target = RewindTarget {
        id,
        expected_head_entries: 7,
        truncate_entries: 1,
        turn_index: 1,
        timestamp_ms: None,
        preview: "hi".into(),
        eligible: true,
        disabled_reason: None,
        warning: Some("w".into()),
        drops: Some(Losses {
            messages: 2,
            tool_calls: 3,
            files: vec!["/w/a".into()],
            more_files: 1,
            pods: vec![PodName::parse("kid").unwrap()],
        }),
    };
    let undo = Comeback {
        entry: ID.parse().expect("a uuid"),
        preview: "hi".into(),
        returns: Losses { messages: 1, ..Losses::default() },
        drops: Losses::default(),
    };
    vec![
        (
            Event::Snapshot {
                entries: vec![entry()],
                greeting: Box::new(greeting()),
                status: PodStatus::Idle,
                in_flight: vec![InFlight::Text { text: "so f".into(), skipped: 0 }],
            },
            format!(
                r#"{{"event":"snapshot","data":{{"entries":[{ENTRY}],"greeting":{{"pod_name":"alpha","cwd":"/w","provider":"anthropic","model":"m","scope_summary":"s","tools":["Bash"],"context_window":200,"context_tokens":3}},"status":"idle","in_flight":[{{"kind":"text","text":"so f"}}]}}}}"#
            ),
        ),
        (
            Event::SegmentRotated { entry: Box::new(entry()) },
            format!(r#"{{"event":"segment_rotated","data":{{"entry":{ENTRY}}}}}"#),
        ),
        (
            Event::RewindTargets {
                head_entries: 7,
                targets: vec![target],
                undo: Some(Box::new(undo)),
                redo: None,
            },
            format!(
                r#"{{"event":"rewind_targets","data":{{"head_entries":7,"targets":[{{"id":{{"segment_id":"{ID}","user_input_entry_index":2}},"expected_head_entries":7,"truncate_entries":1,"turn_index":1,"timestamp_ms":null,"preview":"hi","eligible":true,"warning":"w","drops":{{"messages":2,"tool_calls":3,"files":["/w/a"],"more_files":1,"pods":["kid"]}}}}],"undo":{{"entry":"{ID}","preview":"hi","returns":{{"messages":1,"tool_calls":0}},"drops":{{"messages":0,"tool_calls":0}}}}}}}}"#
            ),
        ),
        (
            Event::RewindApplied {
                entries: vec![entry()],
                input: text("hi"),
                summary: RewindSummary {
                    truncated_to_entries: 1,
                    discarded_entries: 2,
                    tool_side_effect_warning: true,
                },
            },
            format!(
                r#"{{"event":"rewind_applied","data":{{"entries":[{ENTRY}],"input":[{{"kind":"text","content":"hi"}}],"summary":{{"truncated_to_entries":1,"discarded_entries":2,"tool_side_effect_warning":true}}}}}}"#
            ),
        ),
        (
            Event::CompactDone { new_segment_id: ID.parse().expect("a uuid") },
            format!(r#"{{"event":"compact_done","data":{{"new_segment_id":"{ID}"}}}}"#),
        ),
    ]
}

const RULE: &str = r#"{"target":"/w","permission":"write","recursive":true}"#;
const LAST_RUN: &str =
    r#"{"entry":"01a1fff2-d277-7d93-b554-1afe8ed56657","result":"failed","error":"no","at":9}"#;
const APPROVAL: &str = r#"{"id":"a1","pod":"kid","lineage":["alice"],"call_id":"c","tool":"Bash","action":"cargo fetch","because":"it needs the network","reason":"deps","said":"The crates are missing.","task":"write the guide","scope":[{"target":"/w","permission":"write","recursive":true}],"rule":{"tool":"Bash","pattern":"cargo *"},"since":7}"#;

fn rule() -> Rule {
    Rule::new("/w", Permission::Write)
}

fn pattern() -> Pattern {
    Pattern { tool: "Bash".into(), pattern: "cargo *".into() }
}

fn edge() -> PeerEdge {
    PeerEdge::new(name("bob"), name("alice"))
}

fn last_run() -> LastRun {
    let entry = ID.parse().expect("a uuid");
    LastRun { entry, result: "failed".into(), error: Some("no".into()), at: 9 }
}

fn approval() -> ApprovalRequest {
    ApprovalRequest {
        id: "a1".into(),
        pod: name("kid"),
        client: None,
        agent: None,
        lineage: vec![name("alice")],
        cwd: None,
        call_id: "c".into(),
        tool: "Bash".into(),
        action: "cargo fetch".into(),
        question: None,
        arguments: None,
        details: None,
        because: "it needs the network".into(),
        reason: Some("deps".into()),
        said: Some("The crates are missing.".into()),
        task: Some("write the guide".into()),
        scope: vec![rule()],
        lease: None,
        outside: vec![],
        credentials: vec![],
        scripts: vec![],
        once_only: false,
        answered_once: false,
        rule: pattern(),
        since: 7,
        later: None,
    }
}

#[test]
fn a_request_for_an_external_tool_carries_its_arguments() {
    let approval = ApprovalRequest { arguments: Some(json!({ "text": "x" })), ..approval() };
    let action = r#""action":"cargo fetch","#;
    let line = APPROVAL.replace(action, &format!(r#"{action}"arguments":{{"text":"x"}},"#));
    assert_eq!(serde_json::to_string(&approval).expect("a line"), line);
    let read: ApprovalRequest = serde_json::from_str(&line).expect("a request");
    assert_eq!(read, approval);
}

#[test]
fn a_request_to_become_a_peer_names_its_agent() {
    let approval = ApprovalRequest { agent: Some("casa:kid".into()), ..approval() };
    let line = APPROVAL.replace(r#""pod":"kid","#, r#""pod":"kid","agent":"casa:kid","#);
    assert_eq!(serde_json::to_string(&approval).expect("a line"), line);
    let read: ApprovalRequest = serde_json::from_str(&line).expect("a request");
    assert!(read == approval && !read.is_of(&name("kid")));
}

#[test]
fn a_question_carries_its_fields() {
    let choice = |value: &str, label: Option<&str>| Choice {
        value: value.into(),
        label: label.map(str::to_owned),
    };
    let field = |name: &str, kind: FieldKind| Field {
        name: name.into(),
        title: None,
        description: None,
        optional: false,
        kind,
    };
    let choices = vec![choice("a", None), choice("b", Some("B"))];
    let fields = vec![
        Field {
            title: Some("T".into()),
            description: Some("D".into()),
            optional: true,
            ..field("t", FieldKind::Text { min: Some(1), max: Some(9) })
        },
        field("c", FieldKind::Choice { choices: choices.clone(), other: true }),
        field("l", FieldKind::Choices { choices, min: None, max: Some(2) }),
        field("n", FieldKind::Number { min: serde_json::Number::from_f64(0.5), max: None }),
        field("i", FieldKind::Integer { min: Some(-1), max: None }),
        field("b", FieldKind::Boolean),
    ];
    let question = Question { server: Some("db".into()), fields };
    let line = concat!(
        r#"{"server":"db","fields":[{"name":"t","title":"T","description":"D","optional":true,"type":"text","min":1,"max":9},"#,
        r#"{"name":"c","type":"choice","choices":[{"value":"a"},{"value":"b","label":"B"}],"other":true},"#,
        r#"{"name":"l","type":"choices","choices":[{"value":"a"},{"value":"b","label":"B"}],"max":2},"#,
        r#"{"name":"n","type":"number","min":0.5},{"name":"i","type":"integer","min":-1},{"name":"b","type":"boolean"}]}"#,
    );
    assert_eq!(serde_json::to_string(&question).expect("a line"), line);
    assert_eq!(serde_json::from_str::<Question>(line).expect("a question"), question);
    let approval = ApprovalRequest { question: Some(question), ..approval() };
    let action = r#""action":"cargo fetch","#;
    let line = APPROVAL.replace(action, &format!(r#"{action}"question":{line},"#));
    assert_eq!(serde_json::to_string(&approval).expect("a line"), line);
    assert_eq!(serde_json::from_str::<ApprovalRequest>(&line).expect("a request"), approval);
}

#[test]
fn every_verdict_has_its_line() {
    every_variant!(
        Verdict,
        vec![
            (Verdict::Once, r#"{"verdict":"once"}"#),
            (Verdict::Pod { rule: None }, r#"{"verdict":"pod"}"#),
            (
                Verdict::Pod { rule: Some(pattern()) },
                r#"{"verdict":"pod","rule":{"tool":"Bash","pattern":"cargo *"}}"#
            ),
            (
                Verdict::Tree { rule: None, of: Some(name("lead")) },
                r#"{"verdict":"tree","of":"lead"}"#,
            ),
            (Verdict::Tree { rule: None, of: None }, r#"{"verdict":"tree"}"#),
            (
                Verdict::Answer { values: json!({"answer": "total"}).as_object().cloned().expect("values") },
                r#"{"verdict":"answer","values":{"answer":"total"}}"#
            ),
            (Verdict::Deny { reason: String::new() }, r#"{"verdict":"deny"}"#),
            (
                Verdict::Withdrawn { why: "stopped".into() },
                r#"{"verdict":"withdrawn","why":"stopped"}"#
            ),
        ],
        Once Pod Tree Answer Deny Withdrawn
    );
}

fn agent() -> MeshAgent {
    MeshAgent { kind: AgentKind::Agent, reachable: true, ..MeshAgent::away("pi-1".into()) }
}

const AGENT: &str = r#"{"name":"pi-1","kind":"agent","reachable":true}"#;

/// The second group: what only connections with request ids and the host socket know.
fn ours() -> Vec<(Event, String)> {
    let line = Line::Whole(Box::new(entry()));
    vec![
        (
            Event::Accepted { entry: ID.parse().ok(), queued: None, run: ID.parse().ok() },
            format!(r#"{{"event":"accepted","data":{{"entry":"{ID}","run":"{ID}"}}}}"#),
        ),
        (
            Event::Accepted { entry: None, queued: Some("q".into()), run: None },
            r#"{"event":"accepted","data":{"queued":"q"}}"#.into(),
        ),
        (
            Event::Family { pods: vec![info()], peers: vec![], approvals: vec![], agents: vec![] },
            format!(r#"{{"event":"family","data":{{"pods":[{INFO}]}}}}"#),
        ),
        (
            Event::Family {
                pods: vec![],
                peers: vec![edge()],
                approvals: vec![approval()],
                agents: vec![],
            },
            format!(
                r#"{{"event":"family","data":{{"pods":[],"peers":[{{"a":"alice","b":"bob"}}],"asks":[{APPROVAL}]}}}}"#
            ),
        ),
        (
            Event::Family { pods: vec![], peers: vec![], approvals: vec![], agents: vec![agent()] },
            format!(r#"{{"event":"family","data":{{"pods":[],"agents":[{AGENT}]}}}}"#),
        ),
        (
            Event::MeshRoster { agents: vec![agent(), MeshAgent { blocked: true, ..agent() }] },
            format!(
                r#"{{"event":"mesh_roster","data":{{"agents":[{AGENT},{{"name":"pi-1","kind":"agent","reachable":true,"blocked":true}}]}}}}"#
            ),
        ),
        (
            Event::MeshRoster {
                agents: vec![MeshAgent {
                    peers: vec![name("alice")],
                    asked: vec![name("bob")],
                    ..MeshAgent::away("casa:kid".into())
                }],
            },
            r#"{"event":"mesh_roster","data":{"agents":[{"name":"casa:kid","kind":"yoi","reachable":false,"peers":["alice"],"asked":["bob"]}]}}"#.into(),
        ),
        (
            Event::Machine {
                machine: Some(Box::new(MachineView {
                    name: "casa".into(),
                    server: "h:4223".into(),
                    connected: true,
                    messages: vec![MachineMessage {
                        id: ID.into(),
                        pod: name("alice"),
                        to: "trab:bob".into(),
                        state: MessageState::Read,
                        at: 5,
                    }],
                    ..MachineView::default()
                })),
            },
            format!(
                r#"{{"event":"machine","data":{{"machine":{{"name":"casa","server":"h:4223","connected":true,"messages":[{{"id":"{ID}","pod":"alice","to":"trab:bob","state":"read","at":5}}]}}}}}}"#
            ),
        ),
        (Event::Machine { machine: None }, r#"{"event":"machine","data":{}}"#.into()),
        (
            Event::HostNotices { notices: vec!["a repair".into()], mistakes: vec![] },
            r#"{"event":"host_notices","data":{"notices":["a repair"]}}"#.into(),
        ),
        (
            Event::HostNotices {
                notices: vec![],
                mistakes: vec![SettingsMistake {
                    text: "config.toml:1:1: no".into(),
                    about: "no".into(),
                    stops_runs: true,
                }],
            },
            r#"{"event":"host_notices","data":{"notices":[],"mistakes":[{"text":"config.toml:1:1: no","about":"no","stops_runs":true}]}}"#.into(),
        ),
        (
            Event::PodChanged { info: Box::new(info()) },
            format!(r#"{{"event":"pod_changed","data":{{"info":{INFO}}}}}"#),
        ),
        (
            Event::PodChanged {
                info: Box::new(PodInfo {
                    effort: Some(yoi::protocol::Effort::High),
                    effort_unsent: Some("no".into()),
                    ..info()
                }),
            },
            format!(
                r#"{{"event":"pod_changed","data":{{"info":{}}}}}"#,
                INFO.replacen(
                    r#""context_tokens""#,
                    r#""effort":"high","effort_unsent":"no","context_tokens""#,
                    1
                )
            ),
        ),
        (
            Event::PodChanged { info: Box::new(PodInfo { limit: Some(met()), ..info() }) },
            format!(r#"{{"event":"pod_changed","data":{{"info":{}}}}}"#, info_with(MET)),
        ),
        (
            Event::PodChanged {
                info: Box::new(PodInfo { goes_on_by: Some(GoesOnBy::Compact), ..info() }),
            },
            format!(
                r#"{{"event":"pod_changed","data":{{"info":{}}}}}"#,
                info_with(r#""goes_on_by":"compact","#)
            ),
        ),
        (
            Event::PodChanged { info: Box::new(PodInfo { circling: Some(circling()), ..info() }) },
            format!(
                r#"{{"event":"pod_changed","data":{{"info":{}}}}}"#,
                info_with(
                    r#""circling":{"kind":"failure","times":5,"call":"Bash make","since":3},"#
                )
            ),
        ),
        (
            Event::PodChanged {
                info: Box::new(PodInfo { waiting: vec!["m".into()], ..info() }),
            },
            format!(
                r#"{{"event":"pod_changed","data":{{"info":{}}}}}"#,
                INFO.replacen(r#""enters":true}]"#, r#""enters":true}],"waiting":["m"]"#, 1)
            ),
        ),
        (
            Event::PodRemoved { name: name("alice") },
            r#"{"event":"pod_removed","data":{"name":"alice"}}"#.into(),
        ),
        (
            Event::Entry { entry: Box::new(entry()), cut_bytes: None },
            format!(r#"{{"event":"entry","data":{{"entry":{ENTRY}}}}}"#),
        ),
        (
            Event::Entry { entry: Box::new(entry()), cut_bytes: Some(70_000) },
            format!(r#"{{"event":"entry","data":{{"entry":{ENTRY},"cut_bytes":70000}}}}"#),
        ),
        (
            Event::ToolOutput { id: "c".into(), text: "o".into() },
            r#"{"event":"tool_output","data":{"id":"c","text":"o"}}"#.into(),
        ),
        (
            Event::Page { entries: vec![line], before: None, in_flight: vec![], seq: 3 },
            format!(
                r#"{{"event":"page","data":{{"entries":[{ENTRY}],"before":null,"in_flight":[],"seq":3}}}}"#
            ),
        ),
        (
            Event::Fetched { entry: Box::new(entry()) },
            format!(r#"{{"event":"fetched","data":{{"entry":{ENTRY}}}}}"#),
        ),
        (
            Event::FetchedRange {
                entry: ID.parse().unwrap(),
                start: 0,
                line: "{\"id\"".into(),
                shape: Some(LineShape {
                    total: 70_000,
                    texts: vec![TextSpan { field: "text".into(), start: 200, end: 69_000 }],
                }),
            },
            format!(
                r#"{{"event":"fetched_range","data":{{"entry":"{ID}","start":0,"line":"{{\"id\"","shape":{{"total":70000,"texts":[{{"field":"text","start":200,"end":69000}}]}}}}}}"#
            ),
        ),
        (
            Event::Created { info: Box::new(info()) },
            format!(r#"{{"event":"created","data":{{"info":{INFO}}}}}"#),
        ),
        (
            Event::Host {
                version: "1".into(),
                pid: 2,
                data_dir: "/d".into(),
                runtime_dir: "/r".into(),
            },
            r#"{"event":"host","data":{"version":"1","pid":2,"data_dir":"/d","runtime_dir":"/r"}}"#
                .into(),
        ),
        (
            Event::ModelFound {
                model: Some(FoundModel {
                    model: "ollama/m".into(),
                    why: "ollama runs on this machine".into(),
                    sends: Some("sends it".into()),
                    effort_unsent: Some("no".into()),
                }),
                effort: Some(yoi::protocol::Effort::High),
                config: "/c/config.toml".into(),
                mistakes: vec!["config.toml:1:1: no".into()],
            },
            r#"{"event":"model_found","data":{"model":{"model":"ollama/m","why":"ollama runs on this machine","sends":"sends it","effort_unsent":"no"},"effort":"high","config":"/c/config.toml","mistakes":["config.toml:1:1: no"]}}"#.into(),
        ),
        (
            Event::NotifyTried {
                ways: vec![yoi::protocol::TriedWay {
                    name: "url".into(),
                    is_set: true,
                    failure: Some("no".into()),
                }],
            },
            r#"{"event":"notify_tried","data":{"ways":[{"name":"url","is_set":true,"failure":"no"}]}}"#.into(),
        ),
        (
            Event::Trace { lines: vec!["a".into()] },
            r#"{"event":"trace","data":{"lines":["a"]}}"#.into(),
        ),
        (Event::Lagged, r#"{"event":"lagged"}"#.into()),
        (
            Event::Peered { source: name("bob"), peer: name("alice") },
            r#"{"event":"peered","data":{"source":"bob","peer":"alice"}}"#.into(),
        ),
        (
            Event::Unpeered { source: name("bob"), peer: name("alice") },
            r#"{"event":"unpeered","data":{"source":"bob","peer":"alice"}}"#.into(),
        ),
        (
            Event::ApprovalRequested { approval: Box::new(approval()) },
            format!(r#"{{"event":"asked","data":{{"ask":{APPROVAL}}}}}"#),
        ),
        (
            Event::ApprovalDecided { approval: "a1".into(), pod: name("kid"), verdict: Verdict::Tree { rule: None, of: None } },
            r#"{"event":"answered","data":{"ask":"a1","pod":"kid","verdict":{"verdict":"tree"}}}"#
                .into(),
        ),
        (
            Event::Spawned { info: Box::new(info()), socket: "/r/alice/sock".into() },
            format!(
                r#"{{"event":"spawned","data":{{"info":{INFO},"socket":"/r/alice/sock"}}}}"#
            ),
        ),
        (
            Event::PodsStopped {
                stopped: vec![StoppedPod {
                    name: name("kid"),
                    returned: vec![rule()],
                    lender: Some(name("alice")),
                    gained: vec![Lent { to: name("bob"), rule: rule() }],
                }],
            },
            format!(
                r#"{{"event":"pods_stopped","data":{{"stopped":[{{"name":"kid","returned":[{RULE}],"lender":"alice","gained":[{{"to":"bob","rule":{RULE}}}]}}]}}}}"#
            ),
        ),
        (
            Event::Output(Box::new(PodOutput {
                name: name("kid"),
                state: State::Idle,
                why: None,
                texts: vec!["done".into()],
                cut: false,
                upto: None,
                last_result: Some(last_run()),
            })),
            format!(
                r#"{{"event":"output","data":{{"name":"kid","state":"idle","texts":["done"],"last_result":{LAST_RUN}}}}}"#
            ),
        ),
        (
            Event::Plan {
                steps: vec![PlanStep {
                    name: name("kid"),
                    what: Restoring::StaysStopped,
                    notes: vec!["n".into()],
                }],
                done: false,
            },
            r#"{"event":"plan","data":{"steps":[{"name":"kid","what":"stays_stopped","notes":["n"]}],"done":false}}"#
                .into(),
        ),
        (
            Event::Relocated { from: "/a".into(), to: "/b".into(), pods: vec![name("kid")] },
            r#"{"event":"relocated","data":{"from":"/a","to":"/b","pods":["kid"]}}"#.into(),
        ),
        (
            Event::Holders {
                holders: vec![PathHolder {
                    pod: name("kid"),
                    permission: Permission::Write,
                    lender: Some(name("alice")),
                }],
            },
            r#"{"event":"holders","data":{"holders":[{"pod":"kid","permission":"write","lender":"alice"}]}}"#
                .into(),
        ),
        (
            Event::Since {
                pods: vec![PodWork {
                    pod: name("kid"),
                    runs: 2,
                    last: LastRun { entry: ID.parse().expect("an id"), result: "finished".into(), error: None, at: 9 },
                    work: Work {
                        files: ["/w/a.rs".to_owned()].into(),
                        lines: LinesChanged { added: 3, removed: 1 },
                        by_walls: 4,
                        cost: Some(0.5),
                        tasks_not_begun: 1,
                        subjects: vec!["CHANGELOG".into()],
                        report: Some("All pass.".into()),
                        ..Work::default()
                    },
                }],
            },
            format!(
                r#"{{"event":"since","data":{{"pods":[{{"pod":"kid","runs":2,"last":{{"entry":"{ID}","result":"finished","at":9}},"work":{{"files":["/w/a.rs"],"lines":{{"added":3,"removed":1}},"by_walls":4,"by_rules":0,"by_person":0,"cost":0.5,"tasks_not_begun":1,"subjects":["CHANGELOG"],"report":"All pass."}}}}]}}}}"#
            ),
        ),
        (
            Event::CommandSheet(Box::new(CommandSheet {
                sandbox: "sandbox on".into(),
                write: vec!["/w".into()],
                own: vec![OwnPlace { path: "/tmp".into(), kept: true, mib: 1 }],
                shut: vec![ShutPlace { path: "/w/a".into(), read: true, why: "secret".into() }],
                instructions: vec![InstructionFile {
                    path: "/w/AGENTS.md".into(),
                    age_s: Some(60),
                    changed: true,
                }],
                mistakes: vec!["config.toml:1:1: no".into()],
                ..CommandSheet::default()
            })),
            r#"{"event":"command_sheet","data":{"sandbox":"sandbox on","read":[],"write":["/w"],"caches":[],"own":[{"path":"/tmp","kept":true,"mib":1}],"shut":[{"path":"/w/a","read":true,"why":"secret"}],"cost":[],"env":[],"withheld":[],"limits":[],"instructions":[{"path":"/w/AGENTS.md","age_s":60,"changed":true}],"mistakes":["config.toml:1:1: no"]}}"#
                .into(),
        ),
        (
            Event::PathLent { exists: false },
            r#"{"event":"path_lent","data":{"exists":false}}"#.into(),
        ),
        (
            Event::Reclaimed {
                leases: vec![Lent { to: name("kid"), rule: rule() }],
                left: Vec::new(),
            },
            format!(r#"{{"event":"reclaimed","data":{{"loans":[{{"to":"kid","rule":{RULE}}}]}}}}"#),
        ),
        (
            Event::Reclaimed {
                leases: Vec::new(),
                left: vec![Lent { to: name("kid"), rule: rule() }],
            },
            format!(r#"{{"event":"reclaimed","data":{{"loans":[],"left":[{{"to":"kid","rule":{RULE}}}]}}}}"#),
        ),
        (
            Event::Policy {
                rules: vec![PolicyRule {
                    id: Some(4),
                    pod: Some(name("kid")),
                    tree: true,
                    pattern: pattern(),
                    action: Action::Allow,
                    source: "answered".into(),
                }],
                consents: Vec::new(),
                trusts: Vec::new(),
                clients: Vec::new(), closed: Vec::new(), kept: Vec::new() },
            r#"{"event":"policy","data":{"rules":[{"id":4,"pod":"kid","tree":true,"tool":"Bash","pattern":"cargo *","action":"allow","source":"answered"}]}}"#
                .into(),
        ),
        (
            Event::Policy {
                rules: Vec::new(),
                consents: vec![PolicyConsent {
                    id: 5,
                    provider: "far".into(),
                    base_url: "https://far/v1".into(),
                    key: "with the key from FAR".into(),
                    since: 7,
                }],
                trusts: vec![PolicyTrust {
                    id: 6,
                    workspace: "/w".into(),
                    sha256: "ab12".into(),
                    since: 8,
                }],
                clients: vec![PolicyClient {
                    id: 7,
                    folder: "/w".into(),
                    name: "w".into(),
                    since: 9,
                }], closed: Vec::new(), kept: Vec::new() },
            r#"{"event":"policy","data":{"rules":[],"consents":[{"id":5,"provider":"far","base_url":"https://far/v1","key":"with the key from FAR","since":7}],"trusts":[{"id":6,"workspace":"/w","sha256":"ab12","since":8}],"clients":[{"id":7,"folder":"/w","name":"w","since":9}]}}"#
                .into(),
        ),
        (
            Event::WorkspaceFile(WorkspaceFile {
                file: "/w/.yoi/config.toml".into(),
                sha256: "ab12".into(),
                trusted: false,
                changes: vec!["permissions.rule = allow Bash: make".into()],
            }),
            r#"{"event":"workspace_file","data":{"file":"/w/.yoi/config.toml","sha256":"ab12","trusted":false,"changes":["permissions.rule = allow Bash: make"]}}"#
                .into(),
        ),
        (
            Event::Mesh(MeshView {
                members: vec![MeshMember {
                    pod: PodName::parse("alice").expect("a name"),
                    standing: Some(MeshStanding {
                        name: Some("alice#2".into()),
                        leads: true,
                        led_by_yoi: true,
                        why: None,
                    }),
                }],
                agents: vec![agent()],
                blocked: vec!["spam".into()],
                machine: Some(Box::new(MachineView {
                    name: "casa".into(),
                    server: "h:4223".into(),
                    connected: false,
                    why: Some("no route".into()),
                    machines: vec!["trab".into()],
                    messages: vec![],
                    clock_ms: Some(-7),
                })),
            }),
            r#"{"event":"mesh","data":{"members":[{"pod":"alice","standing":{"name":"alice#2","leads":true,"led_by_yoi":true}}],"agents":[{"name":"pi-1","kind":"agent","reachable":true}],"blocked":["spam"],"machine":{"name":"casa","server":"h:4223","connected":false,"why":"no route","machines":["trab"],"clock_ms":-7}}}"#
                .into(),
        ),
        (
            Event::MeshSent {
                id: ID.into(),
                status: "denied".into(),
                reason: Some("no agent of this name is here".into()),
                pods: vec![],
                handed_over: false,
            },
            format!(r#"{{"event":"mesh_sent","data":{{"id":"{ID}","status":"denied","reason":"no agent of this name is here"}}}}"#),
        ),
        (
            Event::MeshSent {
                id: ID.into(),
                status: "sent".into(),
                reason: None,
                pods: vec![name("bob")],
                handed_over: true,
            },
            format!(r#"{{"event":"mesh_sent","data":{{"id":"{ID}","status":"sent","pods":["bob"],"handed_over":true}}}}"#),
        ),
        (
            Event::McpServers {
                servers: vec![McpServerInfo {
                    name: "git".into(),
                    state: McpServerState::Ready,
                    reached_by: "uvx mcp-server-git".into(),
                    file: "/c/config.toml".into(),
                    tools: vec!["mcp__git__log".into()],
                    notes: Vec::new(),
                    last_error: None,
                    users: vec![name("alice")],
                    withheld: vec!["bob: not started: no".into()],
                }],
                problems: vec!["no".into()],
            },
            r#"{"event":"mcp_servers","data":{"servers":[{"name":"git","state":"ready","reached_by":"uvx mcp-server-git","file":"/c/config.toml","tools":["mcp__git__log"],"users":["alice"],"withheld":["bob: not started: no"]}],"problems":["no"]}}"#
                .into(),
        ),
        (
            Event::PodChanged { info: Box::new(PodInfo { jobs: 2, ..info() }) },
            format!(
                r#"{{"event":"pod_changed","data":{{"info":{}}}}}"#,
                INFO.replacen(r#""enters":true}]"#, r#""enters":true}],"jobs":2"#, 1)
            ),
        ),
        (
            Event::PodChanged {
                info: Box::new(PodInfo { worktree: Some(worktree()), ..info() }),
            },
            format!(
                r#"{{"event":"pod_changed","data":{{"info":{}}}}}"#,
                INFO.replacen(
                    r#""enters":true}]"#,
                    &format!(r#""enters":true}}],"worktree":{WORKTREE}"#),
                    1
                )
            ),
        ),
        (
            Event::Worktree(Box::new(WorktreeState {
                info: worktree(),
                repository: "/w".into(),
                is_there: true,
                kept: false,
                ahead: 2,
                commits: vec!["ab1 Fix".into()],
                unsaved: vec!["?? new".into()],
                setup: Some("Exit 1".into()),
                digest: "ab12".into(),
                stays: Some("it was kept".into()),
            })),
            format!(
                r#"{{"event":"worktree","data":{{"info":{WORKTREE},"repository":"/w","is_there":true,"kept":false,"ahead":2,"commits":["ab1 Fix"],"unsaved":["?? new"],"setup":"Exit 1","digest":"ab12","stays":"it was kept"}}}}"#
            ),
        ),
        (
            Event::Jobs {
                jobs: vec![JobInfo {
                    pod: name("alice"),
                    id: "job-1".into(),
                    command: "make".into(),
                    writes: vec!["/w/dist".into()],
                    since: 1,
                    ended_at: Some(2),
                    outcome: Some("Exit 0 after 0.1 s".into()),
                    last_line: Some("ok".into()),
                }],
            },
            r#"{"event":"jobs","data":{"jobs":[{"pod":"alice","id":"job-1","command":"make","writes":["/w/dist"],"since":1,"ended_at":2,"outcome":"Exit 0 after 0.1 s","last_line":"ok"}]}}"#
                .into(),
        ),
        (
            Event::Unknown(json!({"event": "later", "data": {"x": [1]}})),
            r#"{"event":"later","data":{"x":[1]}}"#.into(),
        ),
    ]
}

const WORKTREE: &str = r#"{"path":"/t/alice/w","branch":"alice","lines":{"added":3,"removed":1}}"#;

fn worktree() -> WorktreeInfo {
    let lines = Some(LinesChanged { added: 3, removed: 1 });
    WorktreeInfo { path: "/t/alice/w".into(), branch: "alice".into(), lines }
}

/// As `golden`; an event is read and written as a whole line only.
fn golden_line(event: &Event, json: &str) {
    let outgoing = Outgoing { re: None, pod: None, seq: None, event: event.clone() };
    let value = |line: &[u8]| serde_json::from_slice::<serde_json::Value>(line).expect("JSON");
    assert_eq!(value(&outgoing.encode()), value(json.as_bytes()), "written");
    assert_eq!(Outgoing::decode(json.as_bytes()).expect(json), outgoing, "read");
}

#[test]
fn every_event_has_its_line() {
    let table = [classic(), with_entries(), ours()].concat();
    every_variant!(
        Event by golden_line,
        table.iter().map(|(event, json)| (event.clone(), json.as_str())).collect(),
        UserMessage SystemItem InvokeStart TurnStart TurnEnd LlmCallStart LlmCallEnd LlmRetry
        LlmContinuation TextDelta TextDone ThinkingStart ThinkingDelta ThinkingDone ToolCallStart
        ToolCallArgsDelta ToolCallDone ToolResult Usage RunEnd Error Snapshot SegmentRotated Status
        Completions RewindTargets RewindApplied PodsListed PodRestored PeerRegistered Alert
        MemoryWorker CompactStart CompactDone CompactFailed Stopped Accepted Family MeshRoster Machine HostNotices PodChanged
        PodRemoved Entry ToolOutput Page Fetched FetchedRange Created Host ModelFound NotifyTried Trace Peered Unpeered ApprovalRequested ApprovalDecided Spawned
        PodsStopped Output Plan Relocated Holders Since CommandSheet PathLent Reclaimed Policy WorkspaceFile Mesh MeshSent McpServers Jobs Worktree
        Lagged Unknown
    );
}

#[test]
fn the_vocabulary_of_the_pod_socket_is_frozen() {
    for (event, json) in [classic(), with_entries()].concat() {
        assert!(event.is_classic(), "{json}");
    }
    for (event, json) in ours() {
        assert!(!event.is_classic(), "{json}");
    }
}

#[test]
fn a_page_shows_cut_and_damaged_lines_in_their_place() {
    every_variant!(
        Line,
        vec![
            (Line::Whole(Box::new(entry())), ENTRY),
            (
                Line::Cut { cut_bytes: 99, entry: Box::new(entry()) },
                r#"{"cut_bytes":99,"entry":{"id":"01a1fff2-d277-7d93-b554-1afe8ed56657","ts":7,"kind":"turn_end","turn_count":1}}"#,
            ),
            (Line::Damaged { damaged: "{\"ki".into(), byte: 12 }, r#"{"damaged":"{\"ki","byte":12}"#),
        ],
        Whole Cut Damaged
    );
}

#[test]
fn every_in_flight_block_has_its_line() {
    every_variant!(
        InFlight,
        vec![
            (InFlight::Text { text: "t".into(), skipped: 0 }, r#"{"kind":"text","text":"t"}"#),
            (
                InFlight::Text { text: "t".into(), skipped: 9 },
                r#"{"kind":"text","text":"t","skipped":9}"#,
            ),
            (InFlight::Thinking { text: "t".into(), skipped: 0 }, r#"{"kind":"thinking","text":"t"}"#),
            (
                InFlight::ToolCall { id: "c".into(), name: "Read".into(), arguments: "{".into() },
                r#"{"kind":"tool_call","id":"c","name":"Read","arguments":"{"}"#,
            ),
            (
                InFlight::Tool { id: "c".into(), name: "Bash".into(), output: "so far".into() },
                r#"{"kind":"tool","id":"c","name":"Bash","output":"so far"}"#,
            ),
        ],
        Text Thinking ToolCall Tool
    );
}

#[test]
fn every_state_has_its_word() {
    for (state, word) in [
        (State::Running, "running"),
        (State::NeedsYou, "needs_you"),
        (State::Paused, "paused"),
        (State::Idle, "idle"),
        (State::Stopped, "stopped"),
        (State::Failed, "failed"),
        (State::Damaged, "damaged"),
    ] {
        golden(&state, &format!("\"{word}\""));
    }
    let later: State = serde_json::from_str("\"dreaming\"").expect("a state");
    assert_eq!(later, State::Unknown);
}

#[test]
fn the_enumerations_have_the_words_of_the_protocol() {
    for (code, word) in [
        (ErrorCode::AlreadyRunning, "already_running"),
        (ErrorCode::NotRunning, "not_running"),
        (ErrorCode::NotPaused, "not_paused"),
        (ErrorCode::ProviderError, "provider_error"),
        (ErrorCode::ToolError, "tool_error"),
        (ErrorCode::InvalidRequest, "invalid_request"),
        (ErrorCode::Internal, "internal"),
    ] {
        golden(&code, &format!("\"{word}\""));
    }
    for (result, word) in [
        (RunResult::Finished, "finished"),
        (RunResult::Paused, "paused"),
        (RunResult::LimitReached, "limit_reached"),
        (RunResult::RolledBack, "rolled_back"),
        (RunResult::Cancelled, "cancelled"),
        (RunResult::Failed, "failed"),
    ] {
        golden(&result, &format!("\"{word}\""));
    }
    for (status, word) in
        [(PodStatus::Idle, "idle"), (PodStatus::Running, "running"), (PodStatus::Paused, "paused")]
    {
        golden(&status, &format!("\"{word}\""));
    }
    for (kind, word) in [
        (LimitKind::Processes, "processes"),
        (LimitKind::Memory, "memory"),
        (LimitKind::OpenFiles, "open_files"),
        (LimitKind::FileSize, "file_size"),
        (LimitKind::Space, "space"),
    ] {
        golden(&kind, &format!("\"{word}\""));
    }
    let later: LimitKind = serde_json::from_str("\"light\"").expect("a kind");
    assert_eq!(later, LimitKind::Unknown);
    golden(&TurnResult::Paused, "\"paused\"");
    golden(&CompletionKind::Knowledge, "\"knowledge\"");
    golden(&CompletionKind::Workflow, "\"workflow\"");
    golden(&AlertLevel::Error, "\"error\"");
    golden(&AlertSource::Pod, "\"pod\"");
    golden(&AlertSource::Worker, "\"worker\"");
    golden(&AlertSource::Compactor, "\"compactor\"");
}
