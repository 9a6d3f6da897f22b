//! Every sheet at every size of the terminal.

use crate::screen::app::tests::{Bench, approval, pod, rewind_target};
use crate::screen::app::{Asked, Confirm, Effect, Layer, Msg};
use crate::verb::dialogue::KeyReply;
use yoi::llm::trial::Tried;
use yoi::protocol::{
    Completion, CompletionKind, Event, PlanStep, PodInfo, PodName, Restoring, RewindTarget, State,
};

type Opens = fn(&mut Bench);

const LONG: &str =
    "a sentence that is much longer than a small screen is wide, 日本語の名前 included";

fn rewind() -> Event {
    let target = |turn_index| RewindTarget {
        warning: Some(LONG.into()),
        preview: LONG.into(),
        ..rewind_target(turn_index, "")
    };
    Event::RewindTargets {
        head_entries: 12,
        targets: (1..30).map(target).collect(),
        undo: None,
        redo: None,
    }
}

fn restore() -> Event {
    let step = |n| PlanStep {
        name: PodName::parse(&format!("p{n}")).expect("a name"),
        what: Restoring::Paused,
        notes: vec![LONG.into()],
    };
    Event::Plan { steps: (0..20).map(step).collect(), done: false }
}

fn run(bench: &mut Bench, line: &str) -> Vec<Effect> {
    bench.type_in(line);
    bench.press("enter")
}

/// Runs a line, and answers its request with this event.
fn reply(bench: &mut Bench, line: &str, event: Event) {
    let asked = run(bench, line).into_iter().find_map(|effect| match effect {
        Effect::Call { asked, .. } => Some(asked),
        _ => None,
    });
    bench.msg(Msg::Answered(asked.expect("a request"), Ok(event)));
}

fn in_inbox(bench: &mut Bench, key: &str) {
    bench.press("ctrl-n");
    bench.confirm(key);
}

/// Each kind of sheet, as [`kind`] names it.
const SHEETS: [(&str, Opens); 18] = [
    ("line", |bench| drop(bench.type_in(":re"))),
    ("line", |bench| drop(run(bench, ":lend nobody"))),
    ("line", |bench| in_inbox(bench, "D")),
    ("list", |bench| drop(bench.press("ctrl-p"))),
    ("list", |bench| drop(run(bench, ":help"))),
    ("list", |bench| reply(bench, ":rewind", rewind())),
    ("leader", |bench| drop(bench.press("ctrl-x"))),
    ("files", |bench| {
        bench.type_in("see @ru");
        let found = |n| Completion { value: format!("{LONG}/{n}"), is_dir: n % 2 == 0 };
        let entries = (0..30).map(found).collect();
        let event = Event::Completions { kind: CompletionKind::File, entries };
        bench.msg(Msg::Answered(Asked::Files("ru".into()), Ok(event)));
    }),
    ("offered", |bench| drop(run(bench, "/stop"))),
    ("unusual", |bench| drop(run(bench, "/clear"))),
    ("first message", |bench| {
        let model_sends = Some(LONG.repeat(9));
        bench.shown(PodInfo { model_chosen: false, model_sends, ..pod("alice", State::Idle) });
        run(bench, "hello");
    }),
    ("leave", |bench| {
        bench.shown(pod("alice", State::Running));
        bench.press("ctrl-d");
    }),
    ("verb", |bench| reply(bench, ":rewind 2", rewind())),
    ("key", |bench| {
        let asked = run(bench, ":connect anthropic");
        let [Effect::KeyStep(verb, _)] = asked[..] else { panic!("{asked:?}") };
        bench.msg(Msg::KeyStepDone(verb, KeyReply::Tried(Tried::NeedsKey)));
    }),
    ("verb", |bench| drop(run(bench, ":rm old"))),
    ("verb", |bench| reply(bench, ":restore old --tree", restore())),
    ("line", |bench| in_inbox(bench, "T")),
    ("none", |bench| drop(bench.press("ctrl-n"))),
];

/// The sheet on top. A new kind of confirmation does not compile before it is named here.
fn kind(bench: &Bench) -> &'static str {
    match bench.app.layers.top() {
        Some(Layer::Prompt(_)) => "line",
        Some(Layer::List(_)) => "list",
        Some(Layer::Key(_)) => "key",
        Some(Layer::Confirm(confirm)) => match confirm {
            Confirm::Offered { .. } => "offered",
            Confirm::Unusual { .. } => "unusual",
            Confirm::FirstMessage { .. } => "first message",
            Confirm::Leave { .. } => "leave",
            Confirm::Verb { .. } => "verb",
        },
        None if bench.app.leader => "leader",
        None if bench.app.composer.files.is_some() => "files",
        None => "none",
    }
}

fn bench() -> Bench {
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("old", State::Stopped)]);
    bench.size(120, 40);
    let request = approval("q", "alice", "cargo publish --dry-run\n日本語の名前");
    bench.host(Some("alice"), Event::ApprovalRequested { approval: Box::new(request) });
    bench
}

/// Paints one sheet at every size, from one cell to 80x24.
fn paint_everywhere(name: &str, open: Opens) {
    let mut bench = bench();
    open(&mut bench);
    assert_eq!(kind(&bench), name);
    for columns in 1..=80 {
        for rows in 1..=24 {
            bench.size(columns, rows);
            let area = bench.painted().area;
            assert_eq!((area.width, area.height), (columns, rows), "{name}");
        }
    }
}

#[test]
fn every_sheet_is_painted_at_every_size_of_the_terminal() {
    std::thread::scope(|scope| {
        for (name, open) in SHEETS {
            scope.spawn(move || paint_everywhere(name, open));
        }
    });
}
