//! Each verb through every way that it declares, against one real host: the requests that leave the front
//! end, the confirmation and the sentence are the same.

use super::*;
use crate::screen::app::verb::is_written;
use crate::verb::{self, Verb, Way};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

mod lines;
mod screen;
mod steady;
mod world;

use lines::in_lines;
use screen::on_screen;
use steady::{steady_requests, steady_words, without_verbs_of_the_screen};
use world::{SLOW_ANSWER, World};

/// How long a test waits for the host to say something.
const PATIENCE: Duration = Duration::from_secs(20);

/// What alice does before the verb is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    /// alice and bob are peers.
    Peers,
    /// alice lent a directory to bob.
    Lent,
    /// The agent pi-1 is blocked.
    Blocked,
    /// A run of alice is under way.
    Running,
    /// A run of alice is paused.
    Paused,
    /// alice has changed a file.
    Changed,
    /// … and was rewound to before that.
    Rewound,
    /// A command of alice waits for an approval.
    Asked,
    /// A question of alice waits for an answer.
    Question,
    /// The file of alice's workspace asks for a rule that allows.
    Untrusted,
}

/// One verb with arguments, and what it does in every way.
struct Case {
    line: &'static str,
    before: Before,
    /// The requests, by method and Pod.
    requests: &'static [(&'static str, &'static str)],
    confirmation: Option<&'static str>,
    /// A part of the sentence or of the list.
    says: &'static str,
}

const fn case(
    line: &'static str,
    requests: &'static [(&'static str, &'static str)],
    says: &'static str,
) -> Case {
    Case { line, before: Before::Nothing, requests, confirmation: None, says }
}

const fn confirms(case: Case, confirmation: &'static str) -> Case {
    Case { confirmation: Some(confirmation), ..case }
}

const fn after(before: Before, case: Case) -> Case {
    Case { before, ..case }
}

/// Every verb has a row here, and for each of its ways at least one.
#[rustfmt::skip]
const CASES: &[Case] = &[
    case("new carol --model rehearsal:{dir}/script.toml --cwd {dir}/carol", &[("new", "")], "carol is ready"),
    case("new --worktree", &[("new", "")], "is not the top of a git repository of yours"),
    case("new --worktree fix-login", &[("new", "")], "is not the top of a git repository of yours"),
    case("open bob", &[], ""),
    case("open nobody", &[], "there is no pod `nobody`"),
    case("send bob hello", &[("run", "bob")], "sent to bob"),
    confirms(case("send bob/** hello", &[("run", "bob")], "sent to bob"), "send this message to bob (in bob)?"),
    confirms(case("send docs/** hello", &[("restore", "docs"), ("run", "docs")], "sent to docs"), "send this message to docs (in docs)? docs is restored first."),
    case("stop bob", &[("stop", "bob")], "stopped bob · :restore bob brings it back"),
    case("stop docs", &[("stop", "docs")], "pod `docs` is stopped already"),
    confirms(case("stop alice bob", &[("stop", "alice"), ("stop", "bob")], "stopped alice, bob · :restore alice bob brings them back"), "stop alice, bob?"),
    confirms(case("stop --all", &[("stop", "alice"), ("stop", "bob")], "stopped alice, bob"), "stop alice, bob?"),
    confirms(case("stop @idle", &[("stop", "alice"), ("stop", "bob")], "stopped alice, bob · :restore alice bob brings them back"), "stop alice, bob (in bob)?"),
    confirms(after(Before::Running, case("pause @running", &[("pause", "alice")], "paused alice")), "pause alice?"),
    confirms(case("rm docs/**", &[("remove", "docs")], "deleted docs"), "delete docs (in docs) and its transcript for good?"),
    case("stop @failed", &[], "@failed matches no Pod"),
    case("stop docs/**", &[], "docs/** matches docs, but this verb does nothing to it"),
    case("explain @idle", &[], "@idle matches 2 Pods, and one is needed here: alice, bob"),
    case("restore docs", &[("restore", "docs"), ("restore", "docs")], "docs is back; nothing was run or sent again"),
    case("restore docs --plan", &[("restore", "docs")], "docs comes back idle"),
    case("peer bob", &[("register_peer", "alice")], "alice and bob are peers"),
    case("peer docs", &[("register_peer", "alice")], "docs is stopped; messages to it need :restore docs"),
    case("peer casa:reviewer", &[("register_peer", "alice")], "pod store error: invalid pod name: casa:reviewer (no other machine can be reached: this machine has joined none)"),
    case("unpeer casa:reviewer", &[("unpeer", "alice")], "alice and casa:reviewer are no peers"),
    after(Before::Peers, case("unpeer bob", &[("unpeer", "alice")], "alice and bob are not peers any more")),
    case("mesh", &[("mesh_agents", "")], "no Pod of this host is on the mesh · type :mesh join to add one"),
    case("mesh join", &[("mesh_join", "alice")], "alice is on the mesh as alice"),
    case("mesh join docs", &[("mesh_join", "docs")], "docs joins the mesh when it is live"),
    case("mesh leave", &[("mesh_leave", "alice")], "alice takes no part in the mesh"),
    case("block pi-1", &[("mesh_block", "")], "pi-1 is blocked: no Pod accepts its messages"),
    case("block casa:", &[("mesh_block", "")], "the machine casa is blocked: no Pod accepts messages of its agents"),
    after(Before::Blocked, case("block pi-1 --end", &[("mesh_block", "")], "pi-1 is no longer blocked")),
    after(Before::Running, case("pause", &[("pause", "alice")], "paused alice · :resume continues · :cancel drops the run")),
    after(Before::Paused, case("resume", &[("resume", "alice")], "alice goes on")),
    after(Before::Paused, case("resume --tree", &[("resume", "alice")], "alice goes on")),
    after(Before::Paused, case("resume --all", &[("resume", "alice")], "alice goes on")),
    case("resume --all", &[], "no pod is paused there"),
    after(Before::Paused, case("resume --without x", &[("leave_out", "alice")], "no result that the model reads has an id that ends with `x`")),
    after(Before::Running, case("cancel", &[("cancel", "alice")], "dropped the run of alice")),
    after(Before::Asked, case("later", &[("later", "alice")], "alice: later")),
    case("later", &[], "alice waits for nothing that could be put off"),
    case("notify test", &[("try_notify", "")], "command: not set: [notify] command in config.toml"),
    case("cancel", &[("cancel", "alice")], ""),
    confirms(after(Before::Running, case("pause alice bob", &[("pause", "alice"), ("pause", "bob")], "paused alice")), "pause alice, bob?"),
    case("compact", &[("compact", "alice")], ""),
    confirms(after(Before::Changed, case("rewind 1", &[("list_rewind_targets", "alice"), ("rewind_to", "alice")], ":rewind --undo brings it back · rewound alice to before: change the file")), "go back to before “change the file”? 1 message, 1 tool call leave the history; changed files stay as they are: note.txt"),
    after(Before::Changed, case("rewind", &[("list_rewind_targets", "alice")], "1 change the file drops")),
    after(Before::Changed, case("rewind --undo", &[("list_rewind_targets", "alice")], "alice has no rewind to take back")),
    confirms(after(Before::Rewound, case("rewind --undo", &[("list_rewind_targets", "alice"), ("undo_rewind", "alice")], ":rewind --redo takes that back · undid the rewind of alice")), "undo the rewind? 1 message, 1 tool call from “change the file” on come back"),
    case("rewind 99", &[("list_rewind_targets", "alice")], "alice has no message 99; :rewind lists them"),
    case("fork carol", &[("fork", "alice")], "carol goes on from the history of alice"),
    case("inbox", &[], "nothing needs you"),
    after(Before::Asked, case("allow {request}", &[("answer", "")], "alice: allowed once · Bash true (network)")),
    confirms(after(Before::Asked, case("allow {request} tree", &[("answer", "")], "alice: always allowed, for its children too")), "always allow Bash+network: true for alice and its children?"),
    after(Before::Question, case("answer alice 2", &[("answer", "")], "alice: answered: sum · question: Which name?")),
    after(Before::Question, case("answer alice 3", &[], r#""3" is none of the choices: 1 total, 2 sum"#)),
    after(Before::Asked, case("deny {request} not now", &[("answer", "")], "alice: denied: not now · Bash true")),
    case("explain", &[("explain_command", "alice")], "state idle since"),
    case("explain docs", &[], "because it was stopped"),
    case("lend alice bob {dir}/alice/part", &[("lend", "alice")], "alice lent {dir}/alice/part to bob · :reclaim {dir}/alice/part takes it back"),
    case("lend --wait alice bob {dir}/alice/part", &[("lend", "alice")], "alice lent {dir}/alice/part to bob"),
    after(Before::Lent, case("reclaim --end {dir}/alice/part", &[("reclaim", "alice")], "took back write {dir}/alice/part from bob")),
    after(Before::Lent, case("reclaim {dir}/alice/part", &[("reclaim", "alice")], "took back write {dir}/alice/part from bob")),
    after(Before::Changed, case("since", &[("since", "")], "The last day · cost unknown · 0 file +0 −0 finished alice:")),
    case("since 8h", &[("since", "")], "no run ended in the last 8 h"),
    case("since 8h --json", &[("since", "")], ""),
    case("who {dir}/alice", &[("who", "")], "alice may read and write"),
    case("policy", &[("list_policy", "alice"), ("list_policy", "")], "allow"),
    case("policy revoke 99", &[("revoke", "")], ""),
    case("trust", &[("trust", "")], "there is nothing to trust: there is no {dir}/alice/.yoi/config.toml and no {dir}/alice/.mcp.json"),
    confirms(after(Before::Untrusted, case("trust", &[("trust", ""), ("trust", "")], "is trusted with this content: its rules count from the next run")), "{dir}/alice/.yoi/config.toml asks for:\npermissions.rule = allow Bash: make *\ntrust it with this content?"),
    case("mcp", &[("list_mcp_servers", "")], "no MCP server is defined"),
    case("jobs", &[("list_jobs", "")], "nothing runs in the background"),
    case("jobs stop job-1", &[("stop_job", "alice")], "no command in the background has the id"),
    case("worktree", &[("worktree", "alice")], "pod `alice` has no working tree of its own"),
    case("worktree alice", &[("worktree", "alice")], "pod `alice` has no working tree of its own"),
    case("worktree keep", &[("worktree", "alice")], "pod `alice` has no working tree of its own"),
    case("worktree drop", &[], "alice is live and may change its working tree: stop it first"),
    case("connect", &[], "a key from platform.claude.com/settings/keys"),
    case("model", &[], "alice uses rehearsal:"),
    case("effort", &[], "alice: "),
    case("effort high", &[("set_effort", "alice")], "alice: effort high"),
    case("effort high bob", &[("set_effort", "bob")], "bob: effort high"),
    confirms(case("effort high @idle", &[("set_effort", "alice"), ("set_effort", "bob")], "alice, bob: effort high"), "effort high for alice, bob (in bob)?"),
    confirms(case("model rehearsal:{dir}/script.toml alice bob", &[("set_model", "alice"), ("set_model", "bob")], "alice, bob use rehearsal:"), "use rehearsal:{dir}/script.toml for alice, bob?"),
    case("model rehearsal:{dir}/script.toml", &[("set_model", "alice")], "alice uses rehearsal:"),
    case("theme day", &[], ""),
    case("theme", &[], "night"),
    case("keymap vim", &[], ""),
    case("keymap default", &[], ""),
    case("keymap", &[], "vim"),
    confirms(case("rm docs", &[("remove", "docs")], "deleted docs"), "delete docs and its transcript for good?"),
    case("rm bob", &[], "bob is live: :stop bob comes first"),
    case("pin", &[], "nothing is pinned"),
    case("pin 3 bob", &[], "3 is bob"),
    case("split", &[], "no other Pod was current yet"),
    case("split bob", &[], ""),
    case("zoom", &[], ""),
    case("queue", &[], "write the message first"),
    case("notices", &[], "no notices yet"),
    case("trace", &[("trace", "")], "the host has logged nothing yet"),
    case("trace no such words", &[("trace", "")], "no log line contains `no such words`"),
    case("tour", &[], ""),
    case("redraw", &[], ""),
    case("keys", &[], ":split"),
    case("help", &[], ":stop [pod …] [--tree] [--all]"),
    case("help peer", &[], "Peers get nothing else"),
    case("quit", &[], ""),
];

/// The lines that are given in every way.
pub fn lines_played() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.line)
}

/// What one way did.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// The requests as they left the front end, without what differs from run to run.
    requests: Vec<String>,
    confirmation: Option<String>,
    said: String,
    /// What only the front end can do.
    acted: Vec<&'static str>,
}

/// Whether this line can be given in this way: a list runs some verbs at once, without arguments.
fn fits(verb: &Verb, line: &str, way: Way) -> bool {
    way != Way::Palette || is_written(verb) || line == verb.name
}

/// Does one row in one way.
async fn outcome(world: &World, verb: &'static Verb, line: &str, way: Way) -> Outcome {
    let done = async {
        match way {
            Way::Line | Way::Palette | Way::Key => on_screen(world, verb, line, way).await,
            Way::Command | Way::Shell | Way::Input => in_lines(world, verb, line, way).await,
        }
    };
    let mut outcome = tokio::time::timeout(PATIENCE, done).await.unwrap_or_else(|_| Outcome {
        requests: Vec::new(),
        confirmation: None,
        said: "it has not ended".into(),
        acted: Vec::new(),
    });
    if line == "help" {
        outcome.said = without_verbs_of_the_screen(&outcome.said);
    }
    outcome.said = steady_words(&outcome.said);
    outcome
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_verb_is_the_same_in_every_way_that_it_declares() {
    let mut world = World::start().await;
    let mut covered: Vec<(&str, Way)> = Vec::new();
    let mut wrong: Vec<String> = Vec::new();
    for case in CASES {
        let line = world.filled(case.line);
        let verb = verb::find(line.split(' ').next().unwrap_or("")).expect("a verb");
        let mut first: Option<(Way, Outcome)> = None;
        for way in verb.ways.iter().copied().filter(|way| fits(verb, &line, *way)) {
            world.prepare(case.before).await;
            let line = world.filled(case.line);
            let outcome = outcome(&world, verb, &line, way).await;
            covered.push((verb.name, way));
            if let Some(why) = unexpected(&world, case, &outcome) {
                wrong.push(format!(":{} by {way:?}: {why}: {outcome:#?}", case.line));
            }
            match &first {
                Some((other, before)) if *before != outcome => wrong.push(format!(
                    ":{}: {way:?} is not as {other:?}: {outcome:#?} {before:#?}",
                    case.line
                )),
                Some(_) => {}
                None => first = Some((way, outcome)),
            }
        }
    }
    for verb in verb::LIST {
        let missing = verb.ways.iter().filter(|way| !covered.contains(&(verb.name, **way)));
        wrong.extend(missing.map(|way| format!(":{} has no row for {way:?}", verb.name)));
    }
    world.host.end().await;
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

/// What is not as the row says.
fn unexpected(world: &World, case: &Case, outcome: &Outcome) -> Option<&'static str> {
    let head = |request: &String| {
        let mut words = request.split(' ').map(str::to_owned);
        (words.next().unwrap_or_default(), words.next().unwrap_or_default())
    };
    let sent: Vec<(String, String)> = outcome.requests.iter().map(head).collect();
    let wanted = case.requests.iter().map(|(method, pod)| ((*method).into(), (*pod).into()));
    if sent != wanted.collect::<Vec<(String, String)>>() {
        return Some("other requests");
    }
    if outcome.confirmation != case.confirmation.map(|text| world.filled(text)) {
        return Some("another confirmation");
    }
    (!outcome.said.contains(&world.filled(case.says))).then_some("another sentence")
}
