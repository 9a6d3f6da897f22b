//! What each piece of a text promises, done with the keys that it names.

use super::*;
use crate::screen::app::tests::split::split;
use crossterm::event::{KeyModifiers, MouseButton, MouseEventKind};
use yoi::protocol::{Entry, Fact, Item, PlanStep, Restoring, Verdict};

/// tour with its child checker, and bob; tour is current.
pub(super) fn family(state: State) -> Bench {
    let mut bench = Bench::new(vec![
        pod("tour", state),
        child("tour", "checker", State::Idle),
        pod("bob", State::Idle),
    ]);
    bench.size(120, 40);
    bench.type_in(":open tour");
    bench.press("enter");
    bench
}

pub(super) fn current(bench: &Bench) -> &str {
    bench.app.current.as_ref().map_or("", PodName::as_str)
}

/// The Pod whose transcript is on the screen.
pub(super) fn shown(bench: &Bench) -> &str {
    bench.app.shown().map_or("", PodName::as_str)
}

/// The requests of the Pods, gone to and read.
fn asking(requests: &[(&str, &str)]) -> Bench {
    let mut bench = family(State::Idle);
    for (id, pod) in requests {
        let mut approval = approval(id, pod, "cat /etc/hostname");
        if *pod == "checker" {
            approval.lineage = vec![PodName::parse("tour").expect("a name")];
        }
        bench.host(Some(pod), Event::ApprovalRequested { approval: Box::new(approval) });
    }
    bench.press("ctrl-n");
    bench.wait(1_000);
    bench
}

fn verdicts(effects: &[Effect]) -> Vec<Verdict> {
    let verdict = |method: &Method| match method {
        Method::Decide { verdict, .. } => Some(verdict.clone()),
        _ => None,
    };
    calls(effects).into_iter().filter_map(|(_, method)| verdict(method)).collect()
}

pub fn enter_makes_a_pod_and_sends() {
    let mut bench = Bench::new(Vec::new());
    bench.type_in("hello");
    let made = bench.press("enter");
    let [(None, Method::New(new))] = calls(&made)[..] else { panic!("{made:?}") };
    assert_eq!(new.cwd, std::path::Path::new("/repo"));
    let info = Box::new(pod("repo", State::Idle));
    let sent = answer(&mut bench, made, Event::Created { info });
    assert!(calls(&sent).contains(&(Some("repo"), &message("hello"))), "{sent:?}");
}

pub fn the_first_message_waits_for_enter() {
    let sends: String = "sends text to api.example.com with KEY".into();
    let mut bench = family(State::Idle);
    let info = PodInfo {
        model_chosen: false,
        model_sends: Some(sends.clone()),
        ..pod("tour", State::Idle)
    };
    bench.shown(info);
    bench.type_in("hello");
    assert_eq!(calls(&bench.press("enter")), []);
    assert!(bench.screen().contains(&sends), "{}", bench.screen());
    let agreed = bench.confirm("enter");
    assert_eq!(calls(&agreed), [(Some("tour"), &Method::Consent { sends })]);
    let sent = answer(&mut bench, agreed, Event::done());
    assert_eq!(calls(&sent), [(Some("tour"), &message("hello"))]);
}

pub fn enter_sends_into_the_run() {
    let mut bench = family(State::Running);
    bench.type_in("and this");
    assert_eq!(calls(&bench.press("enter")), [(Some("tour"), &steer("and this"))]);
    let queue = vec![entering("one", "and this")];
    bench.shown(PodInfo { queue, ..pod("tour", State::Running) });
    let screen = bench.screen();
    let row = screen.lines().find(|row| row.contains("you    and this ")).expect("its row");
    assert!(row.trim_end().ends_with("enters at the next tool"), "{screen}");
}

pub fn tab_queues() {
    let mut bench = family(State::Running);
    bench.type_in("and that");
    bench.press("ctrl-x");
    bench.press(":");
    bench.type_in("queue");
    assert_eq!(calls(&bench.press("enter")), [(Some("tour"), &message("and that"))]);
    bench.type_in("and then this");
    let sent = bench.press("tab");
    assert_eq!(calls(&sent), [(Some("tour"), &message("and then this"))]);
    bench.shown(PodInfo {
        queue: vec![queued("one", "and then this")],
        ..pod("tour", State::Running)
    });
    let screen = bench.screen();
    let row = screen.lines().find(|row| row.contains("you    and then this ")).expect("its row");
    assert!(row.trim_end().ends_with("queued 1"), "{screen}");
}

pub fn enter_steers() {
    let mut bench = family(State::Running);
    let queue = vec![queued("one", "first"), queued("two", "second")];
    bench.shown(PodInfo { queue, ..pod("tour", State::Running) });
    let first = Method::Steer { id: Some("one".into()), input: Vec::new() };
    assert_eq!(calls(&bench.press("enter")), [(Some("tour"), &first)]);
}

pub fn enter_continues_what_was_interrupted() {
    let mut bench = family(State::Idle);
    for pod in ["a", "b"] {
        bench.shown(PodInfo {
            cut_at: Some(1),
            ..crate::screen::app::tests::pod(pod, State::Paused)
        });
    }
    assert_eq!(calls(&bench.press("enter")), []);
    let both = [(Some("a"), &Method::Resume), (Some("b"), &Method::Resume)];
    assert_eq!(calls(&bench.confirm("enter")), both);
}

pub fn a_run_is_paused_and_continued() {
    let mut bench = family(State::Running);
    assert_eq!(calls(&bench.press("esc")), [(Some("tour"), &Method::Pause)]);
    bench.shown(pod("tour", State::Paused));
    assert_eq!(calls(&bench.press("enter")), [(Some("tour"), &Method::Resume)]);
    bench.type_in(":cancel");
    assert_eq!(calls(&bench.press("enter")), [(Some("tour"), &Method::Cancel)]);
}

pub fn a_run_is_only_paused_and_marks_are_removed() {
    for key in ["esc", "ctrl-c"] {
        let mut bench = family(State::Running);
        assert_eq!(calls(&bench.press(key)), [(Some("tour"), &Method::Pause)], "{key}");
    }
    let mut bench = family(State::Running);
    bench.press("tab");
    bench.press("space");
    bench.press("down");
    bench.press("space");
    assert_eq!(bench.app.marked().len(), 2);
    assert_eq!(calls(&bench.press("esc")), []);
    assert_eq!(bench.app.marked().len(), 0);
}

pub fn a_text_is_found_and_copied() {
    let mut bench = split(120, 36);
    bench.screen();
    bench.press("ctrl-x");
    bench.press("r");
    bench.press("/");
    bench.type_in("flaky");
    bench.press("enter");
    assert!(
        bench.screen().contains("1/1") || bench.screen().contains("flaky"),
        "{}",
        bench.screen()
    );
    let copied = bench.press("y");
    let [Effect::Copy(text), ..] = &copied[..] else { panic!("{copied:?}") };
    assert_eq!(text, "fix the flaky test in ui/run.rs");
}

pub fn leaving_stops_no_pod() {
    let leave: [fn(&mut Bench) -> Vec<Effect>; 2] = [
        |bench| bench.press("ctrl-d"),
        |bench| {
            bench.type_in(":quit");
            bench.press("enter")
        },
    ];
    for leave in leave {
        let left = leave(&mut family(State::Idle));
        assert!(matches!(left[..], [Effect::Quit(_)]), "{left:?}");
    }
}

pub fn lists_are_opened() {
    let mut bench = family(State::Idle);
    bench.press(":");
    assert!(matches!(bench.app.layers.top(), Some(Layer::Prompt(_))));
    let mut bench = family(State::Idle);
    bench.press("ctrl-p");
    assert!(matches!(bench.app.layers.top(), Some(Layer::List(_))));
    assert!(bench.screen().contains(":peer"), "{}", bench.screen());
    let mut bench = family(State::Idle);
    bench.press("f1");
    assert!(bench.screen().contains("Writing to"), "{}", bench.screen());
}

pub fn pods_are_marked() {
    let mut bench = family(State::Idle);
    bench.press("tab");
    bench.press("space");
    bench.press("down");
    bench.press("space");
    let marked: Vec<_> = bench.app.marked().iter().map(PodName::as_str).collect();
    assert_eq!(marked, ["tour", "checker"]);
    bench.type_in(":stop");
    assert_eq!(calls(&bench.press("enter")), [], "each is named before anything happens");
    assert!(bench.screen().contains("stop tour, checker?"), "{}", bench.screen());
    bench.confirm("esc");
    bench.wait(1_000);
    bench.press("space");
    assert_eq!(bench.app.marked().len(), 1, "again removes the mark");
}

pub fn a_pod_is_pinned() {
    let mut bench = family(State::Idle);
    bench.press("tab");
    bench.press("down");
    bench.press("m");
    bench.press("7");
    assert_eq!(bench.app.tree.pins.at(7).map(PodName::as_str), Some("checker"));
    bench.press("7");
    assert_eq!(current(&bench), "checker", "the key of the slot goes to it");
    bench.press("tab");
    bench.press("m");
    bench.press("7");
    assert_eq!(bench.app.tree.pins.at(7), None, "the same slot again ends it");
}

pub fn a_pod_is_shown_beside() {
    let mut bench = family(State::Idle);
    bench.press("tab");
    bench.press("G");
    bench.press("v");
    assert_eq!((current(&bench), bench.app.beside.as_ref()), ("tour", Some(&name("bob"))));
}

pub fn a_draft_is_cleared_and_brought_back() {
    let mut bench = family(State::Idle);
    bench.type_in("a draft");
    bench.press("ctrl-c");
    assert_eq!(bench.draft(), "");
    bench.press("up");
    assert_eq!(bench.draft(), "a draft");
}

pub fn tab_walks() {
    let mut bench = family(State::Idle);
    let mut reached = Vec::new();
    for _ in 0..3 {
        bench.press("tab");
        reached.push(bench.app.focus);
    }
    assert_eq!(reached, [Focus::Tree, Focus::Transcript, Focus::Composer]);
}

pub fn both_transcripts_are_reached() {
    let mut bench = split(120, 36);
    let mut reached = Vec::new();
    for _ in 0..6 {
        bench.press("tab");
        reached.push(bench.app.focus);
    }
    assert!(
        reached.contains(&Focus::Transcript) && reached.contains(&Focus::Beside),
        "{reached:?}"
    );
}

pub fn the_rule_is_edited() {
    let mut bench = asking(&[("q", "checker")]);
    bench.press("A");
    let Some(Layer::Prompt(prompt)) = bench.app.layers.top() else { panic!("no line") };
    assert_eq!(prompt.input.text(), "Bash:cat /etc/hostname");
}

#[test]
fn the_leader_goes_to_the_transcript() {
    let mut bench = family(State::Idle);
    bench.press("ctrl-x");
    bench.press("r");
    assert_eq!(bench.app.focus, Focus::Transcript);
}

pub fn the_mouse_is_left_to_the_terminal() {
    let mut bench = family(State::Idle);
    bench.press("ctrl-x");
    let effects = bench.press("u");
    assert!(matches!(effects[..], [Effect::Mouse(Capture::Terminals)]), "{effects:?}");
}

#[test]
fn the_composer_is_gone_to() {
    let mut bench = family(State::Idle);
    bench.press("ctrl-x");
    bench.press("r");
    bench.press("i");
    assert_eq!(bench.app.focus, Focus::Composer);
}

/// The family, with three calls in the transcript of tour.
pub(super) fn with_calls() -> Bench {
    let mut bench = family(State::Idle);
    bench.screen();
    let entries = (0..3).flat_map(call_and_result).collect();
    let page = Event::Page { entries, before: None, in_flight: Vec::new(), seq: 1 };
    bench.msg(Msg::Answered(Asked::Page(name("tour")), Ok(page)));
    bench
}

#[test]
fn lines_are_unfolded() {
    let mut bench = with_calls();
    let folded = bench.screen();
    bench.press("ctrl-x");
    bench.press("r");
    bench.press("up");
    bench.press("up");
    bench.press("down");
    bench.press("enter");
    let unfolded = bench.screen();
    let results = |screen: &str| screen.matches("line 7 of").count();
    assert_eq!((results(&folded), results(&unfolded)), (0, 1), "{unfolded}");
}

/// A tool call whose output is longer than what is shown of it, and its result.
fn call_and_result(n: usize) -> Vec<yoi::protocol::event::Line> {
    let output: Vec<String> = (0..40).map(|line| format!("line {line} of {n}")).collect();
    let (call_id, arguments) = (format!("c{n}"), r#"{"command":"seq 40"}"#.to_owned());
    let call = Item::ToolCall { call_id: call_id.clone(), name: "Bash".into(), arguments };
    let result = Item::ToolResult {
        call_id,
        summary: "40 lines".into(),
        content: Some(output.join("\n")),
        is_error: false,
        images: Vec::new(),
    };
    let items = [
        Fact::AssistantItem { item: call, origin: None, native: None, partial: false },
        Fact::ToolResult { item: result, files: Vec::new(), sent: None },
    ];
    items.map(|fact| yoi::protocol::event::Line::Whole(Box::new(Entry::new(fact)))).to_vec()
}

pub fn the_palette_has_every_verb() {
    for verb in crate::verb::reached(crate::verb::Way::Palette) {
        let mut bench = family(State::Idle);
        bench.press("ctrl-p");
        bench.type_in(&format!(":{}", verb.name));
        let Some(Layer::List(list)) = bench.app.layers.top() else { panic!("no palette") };
        let found = list.rows().any(|row| row.text.starts_with(&format!(":{}", verb.name)));
        assert!(found, ":{}", verb.name);
    }
}

pub fn a_request_is_gone_to() {
    let mut bench = asking(&[("q", "checker")]);
    assert_eq!((shown(&bench), bench.app.focus), ("tour", Focus::Inbox));
    assert!(bench.screen().contains("tour › checker  wants an approval"), "{}", bench.screen());
}

pub fn a_request_is_decided() {
    let mut bench = asking(&[("q", "checker")]);
    assert_eq!(verdicts(&bench.press("a")), [Verdict::Once]);
    let mut bench = asking(&[("q", "checker")]);
    bench.press("D");
    bench.type_in("not this file");
    let reason = "not this file".to_owned();
    assert_eq!(verdicts(&bench.press("enter")), [Verdict::Deny { reason }]);
}

pub fn equal_requests_are_allowed_together() {
    let mut bench = asking(&[("one", "checker"), ("two", "tour")]);
    assert_eq!(verdicts(&bench.press("M")), [Verdict::Once, Verdict::Once]);
}

pub fn a_rule_is_written() {
    for (key, verdict) in
        [("A", Verdict::Pod { rule: None }), ("T", Verdict::Tree { rule: None, of: None })]
    {
        let mut bench = asking(&[("q", "checker")]);
        assert_eq!(verdicts(&bench.press(key)), [], "the rule is shown first");
        assert_eq!(verdicts(&bench.confirm("enter")), [verdict]);
    }
}

pub fn a_rule_is_written_for_a_family() {
    let mut bench = asking(&[("q", "checker")]);
    assert_eq!(verdicts(&bench.press("T")), []);
    assert_eq!(verdicts(&bench.confirm("tab")), [], "another rule is shown");
    let of = Some(PodName::parse("tour").expect("a name"));
    assert_eq!(verdicts(&bench.confirm("enter")), [Verdict::Tree { rule: None, of }]);
}

pub fn nothing_else_decides() {
    let click = crossterm::event::MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: 60,
        row: 30,
        modifiers: KeyModifiers::NONE,
    };
    for row in 0..40 {
        let mut bench = asking(&[("q", "checker")]);
        let click = crossterm::event::MouseEvent { row, ..click };
        assert_eq!(verdicts(&bench.msg(Msg::Mouse(click))), []);
    }
    let mut bench = asking(&[("q", "checker")]);
    assert_eq!(verdicts(&bench.press("enter")), []);
    assert_eq!((shown(&bench), bench.app.focus), ("checker", Focus::Transcript));
    let mut bench = family(State::Idle);
    let request = Box::new(approval("q", "checker", "cat /etc/hostname"));
    bench.host(Some("checker"), Event::ApprovalRequested { approval: request });
    bench.press("ctrl-n");
    assert_eq!(verdicts(&bench.press("a")), [], "this key was on its way");
}

pub fn the_last_answer_comes_back() {
    let mut bench = asking(&[("q", "checker")]);
    bench.press("a");
    let verdict = Verdict::Once;
    bench
        .host(None, Event::ApprovalDecided { approval: "q".into(), pod: name("checker"), verdict });
    bench.shown(pod("checker", State::Running));
    assert_eq!((shown(&bench), bench.app.focus), ("tour", Focus::Composer));
}

pub fn the_list_leads_to_the_card() {
    let mut bench = asking(&[("q", "checker")]);
    bench.press("esc");
    assert_eq!(bench.app.focus, Focus::Composer);
    bench.wait(1_000);
    bench.press("ctrl-x");
    bench.press("i");
    assert_eq!(bench.app.focus, Focus::Page);
    bench.press("enter");
    assert_eq!(bench.app.focus, Focus::Inbox);
}

pub fn the_plan_waits_for_enter() {
    let mut bench = family(State::Idle);
    bench.shown(pod("bob", State::Stopped));
    bench.type_in(":restore bob");
    let planned = bench.press("enter");
    let step = PlanStep {
        name: name("bob"),
        what: Restoring::Paused,
        notes: vec!["a tool call was interrupted; it is not repeated".into()],
    };
    answer(&mut bench, planned, Event::Plan { steps: vec![step], done: false });
    let restored = bench.confirm("enter");
    let restore = Method::RestorePods { tree: false, plan: false };
    assert_eq!(calls(&restored), [(Some("bob"), &restore)]);
}

pub fn the_tree_is_looked_through() {
    let mut bench = family(State::Idle);
    bench.press("tab");
    bench.press("down");
    let shown = bench.app.shown().map(ToString::to_string);
    assert_eq!((bench.app.focus, shown.as_deref()), (Focus::Tree, Some("checker")));
    bench.press("esc");
    assert_eq!(bench.app.focus, Focus::Composer);
}

pub fn what_pods_did_is_looked_up() {
    let mut bench = family(State::Idle);
    bench.press("ctrl-x");
    let asked = bench.press("h");
    assert!(matches!(calls(&asked)[..], [(None, Method::Since { .. })]), "{asked:?}");
}

pub fn the_pod_of_the_tour_is_stopped_and_restored() {
    let mut bench = family(State::Idle);
    bench.type_in(":stop");
    let stop = Method::StopPods { tree: false, unless_busy: false, silent: false };
    assert_eq!(calls(&bench.press("enter")), [(Some("tour"), &stop)]);
    bench.shown(pod("tour", State::Stopped));
    bench.type_in(":restore");
    let plan = Method::RestorePods { tree: false, plan: true };
    assert_eq!(calls(&bench.press("enter")), [(Some("tour"), &plan)]);
}

pub fn the_fork_names_the_message() {
    let mut bench = split(120, 36);
    bench.screen();
    bench.press("ctrl-x");
    bench.press("r");
    bench.press("f");
    let Some(Layer::Prompt(prompt)) = bench.app.layers.top() else { panic!("no line") };
    let text = prompt.input.text();
    assert!(text.starts_with("fork --at ") && !text.contains('{'), "{text}");
}

#[test]
fn enter_sends_to_the_pod_whose_transcript_is_shown() {
    let mut bench = family(State::Idle);
    bench.press("tab");
    bench.press("G");
    assert_eq!(bench.app.shown().map(PodName::as_str), Some("bob"), "the tree previews");
    bench.press("i");
    let shown = bench.app.shown().map(ToString::to_string);
    bench.type_in("hello");
    let sent = bench.press("enter");
    assert_eq!(calls(&sent), [(shown.as_deref(), &message("hello"))]);
    assert_eq!(shown.as_deref(), Some("tour"));
}

#[test]
fn the_tour_writes_the_line_that_its_text_says_to_send() {
    let tour = include_str!("../../../../../prompts/tour.toml");
    let named: Vec<&str> = tour
        .split("Then send: *")
        .skip(1)
        .map(|rest| rest.split('*').next().unwrap_or(""))
        .collect();
    let lines = yoi::llm::rehearsal::TOUR_LINES;
    let (before, last) = lines.split_at(yoi::llm::rehearsal::TOUR_RETURN);
    assert_eq!(named, before[1..], "in the order in which they are written");
    assert!(tour.contains(&format!("Back here, send: *{}*", last[0])));
    let otherwise = tour.split("\"\"\"").nth(1).expect("the answer to everything else");
    for line in lines {
        assert!(otherwise.contains(&format!("- {line}\n")), "{line}");
    }
}

pub fn a_file_is_completed() {
    let mut bench = family(State::Idle);
    let asked = bench.press("@");
    let list = Method::ListCompletions {
        kind: yoi::protocol::CompletionKind::File,
        prefix: String::new(),
    };
    assert_eq!(calls(&asked), [(Some("tour"), &list)]);
}
