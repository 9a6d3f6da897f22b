//! Every key of the keymap and every printable character, in every pane, layer and state. Whatever is pressed: no text
//! vanishes, no Pod changes without a confirmation that was drawn, and a message goes to the Pod that the head shows, with
//! its workspace where that is another one.

use super::*;
use crate::screen::app::tests::confirm::{ALL as CONFIRMATIONS, RULE};
use crate::screen::keys::{Action, Binding, CONTEXTS, Context};
use crossterm::event::{MouseButton, MouseEventKind};
use yoi::protocol::{ApprovalRequest, PeerEdge, Question};

/// What the person has typed into the composer, and into the line on top.
const DRAFT: &str = "draftwords";
const LINE: &str = "linewords";

type New = fn() -> Bench;
type Steps = fn(&mut Bench);

/// The states in which a Pod, its family and its host can be.
const STATES: [(&str, New); 14] = [
    ("no Pod", || Bench::new(vec![])),
    ("idle", || of(pod("alice", State::Idle))),
    ("running", || {
        let queue = vec![entering("e", "entering"), queued("q", "queuedwords")];
        of(PodInfo { queue, ..pod("alice", State::Running) })
    }),
    ("waits for a decision", || {
        let mut bench = of(pod("alice", State::NeedsYou));
        request(&mut bench, approval("q", "alice", "cargo publish"));
        bench
    }),
    ("has a question", || {
        let mut bench = of(pod("alice", State::NeedsYou));
        request(&mut bench, question());
        bench
    }),
    ("another waits for a decision", || {
        let mut bench = of(pod("alice", State::Idle));
        request(&mut bench, approval("q", "far", "cargo publish"));
        bench
    }),
    ("paused", || of(pod("alice", State::Paused))),
    ("failed", || of(pod("alice", State::Failed))),
    ("stopped", || of(pod("alice", State::Stopped))),
    ("without consent", || {
        let model_sends = Some("This goes to api.example.com".to_owned());
        of(PodInfo { model_chosen: false, model_sends, ..pod("alice", State::Idle) })
    }),
    ("gone", || {
        let mut bench = of(pod("alice", State::Idle));
        bench.host(None, Event::PodRemoved { name: name("alice") });
        bench
    }),
    ("elsewhere", || {
        let mut bench = of(pod("alice", State::Idle));
        bench.app.make_current(&name("far"));
        bench
    }),
    ("without a host", || {
        let mut bench = of(pod("alice", State::Running));
        bench.msg(Msg::HostEnded);
        bench
    }),
    ("not connected yet", || {
        let mut bench = of(pod("alice", State::Running));
        bench.msg(Msg::HostEnded);
        bench.msg(Msg::Connected);
        bench
    }),
];

/// The panes and layers, each with a draft in the composer below it.
const PLACES: [(&str, Steps); 26] = [
    ("the composer", |_| {}),
    ("the leader", |bench| drop(bench.press("ctrl-x"))),
    ("the tree", |bench| leader(bench, "t")),
    ("a pin", |bench| {
        leader(bench, "t");
        bench.press("m");
    }),
    ("a mark", |bench| {
        leader(bench, "t");
        bench.press("space");
    }),
    ("the peers", |bench| leader(bench, "e")),
    ("the transcript", |bench| leader(bench, "r")),
    ("the second transcript", |bench| {
        bench.size(200, 50);
        bench.app.split(Some(&name("bob")));
        bench.app.focus = Focus::Beside;
        bench.msg(Msg::Wake);
    }),
    ("the inbox", |bench| drop(bench.press("ctrl-n"))),
    ("a page", |bench| {
        since(bench);
        leader(bench, "h");
    }),
    ("a page below the line", since),
    ("the notices", |bench| {
        bench.msg(Msg::Said(crate::screen::notice::Kind::Info, "a notice".into()));
        leader(bench, "l");
    }),
    ("the keys of the tree", |bench| {
        leader(bench, "t");
        bench.press("f1");
    }),
    ("the reason of a denial", |bench| {
        bench.press("ctrl-n");
        bench.screen();
        bench.confirm("D");
    }),
    ("a rule", |bench| {
        bench.press("ctrl-n");
        bench.screen();
        bench.confirm("A");
    }),
    ("an answer", |bench| {
        bench.press("ctrl-n");
        bench.screen();
        bench.press("enter");
    }),
    ("an empty command line", |bench| leader(bench, ":")),
    ("a command line", |bench| {
        leader(bench, ":");
        bench.msg(Msg::Paste(format!("send bob {LINE}")));
    }),
    ("a search", |bench| drop(bench.press("ctrl-f"))),
    ("a filter", |bench| {
        leader(bench, "t");
        bench.press("/");
    }),
    ("the palette", |bench| drop(bench.press("ctrl-p"))),
    ("the history", |bench| drop(bench.press("ctrl-r"))),
    ("the queue", |bench| leader(bench, "g")),
    ("the keys", |bench| leader(bench, "?")),
    ("the help", |bench| drop(bench.press("f1"))),
    ("the menu", |bench| {
        leader(bench, "t");
        bench.press("x");
    }),
];

/// alice is current; bob is her peer, scout her child, old is stopped, far works in another workspace.
fn of(alice: PodInfo) -> Bench {
    let far =
        PodInfo { workspace: "/other".into(), cwd: "/other".into(), ..pod("far", State::Idle) };
    let pods = vec![
        alice,
        child("alice", "scout", State::Idle),
        pod("bob", State::Idle),
        pod("old", State::Stopped),
        far,
    ];
    let mut bench = Bench::new(pods);
    let edge = PeerEdge::new(name("alice"), name("bob"));
    bench.host(None, Event::Peered { source: edge.a, peer: edge.b });
    bench.app.make_current(&name("alice"));
    bench
}

/// Opens *Since you left* without the keys.
fn since(bench: &mut Bench) {
    let last = yoi::protocol::LastRun {
        entry: yoi::protocol::EntryId::new(),
        result: "finished".into(),
        error: None,
        at: NOON,
    };
    let work = yoi::protocol::PodWork { pod: name("bob"), runs: 1, last, work: Default::default() };
    let asked = Asked::Since(NOON, bench.app.request_token());
    bench.msg(Msg::Answered(asked, Ok(Event::Since { pods: vec![work] })));
}

fn request(bench: &mut Bench, approval: ApprovalRequest) {
    let pod = approval.pod.clone();
    bench.host(Some(pod.as_str()), Event::ApprovalRequested { approval: Box::new(approval) });
}

fn question() -> ApprovalRequest {
    ApprovalRequest {
        tool: "AskPerson".into(),
        question: Some(Question::of_model(Vec::new())),
        reason: None,
        once_only: true,
        ..approval("q", "alice", "Which name?")
    }
}

fn leader(bench: &mut Bench, key: &str) {
    bench.press("ctrl-x");
    bench.press(key);
}

/// Every key that the keymap binds anywhere and that types no character.
pub(super) fn bound_keys(bench: &Bench) -> Vec<KeyEvent> {
    let keymap = &bench.app.keymap;
    let bound = CONTEXTS.iter().flat_map(|(_, context)| keymap.list(*context));
    let bound: BTreeSet<_> = bound.map(|(key, _)| key).collect();
    let keys = bound.into_iter().map(key_event);
    keys.filter(|key| crate::screen::app::key::typed(*key).is_none()).collect()
}

/// Every printable character of a keyboard, and some of others.
pub(super) fn characters() -> impl Iterator<Item = KeyEvent> {
    (' '..='~').chain(['ä', '漢', 'ж']).map(|c| KeyEvent::from(KeyCode::Char(c)))
}

/// All text that a person has typed and that is still somewhere: what the next screen gets, the layers, the queues of
/// the host, and what is on its way there or to the editor.
pub(super) fn texts(bench: &Bench, effects: &[Effect]) -> String {
    let queues = bench.app.family.all().iter().map(|info| &info.queue).collect::<Vec<_>>();
    let kept = serde_json::to_string(&bench.app.screen_state()).expect("encoded");
    format!("{kept} {:?} {queues:?} {effects:?}", bench.app.layers)
}

/// Whether a request of the screen changes a Pod. A message does not, and neither does what Esc and Enter do with a
/// run, for nothing is lost by that.
pub(super) fn changes_a_pod(method: &Method) -> bool {
    !matches!(
        method,
        Method::Send { .. }
            | Method::Steer { .. }
            | Method::Resume
            | Method::Pause
            | Method::EditQueued { .. }
            | Method::New(_)
            | Method::Restore { .. }
            | Method::RestorePods { plan: true, .. }
            | Method::Open { .. }
            | Method::Watch
            | Method::Page { .. }
            | Method::Fetch { .. }
            | Method::Show { .. }
            | Method::Seen
            | Method::Later
            | Method::PutOff { .. }
            | Method::FindModel { .. }
            | Method::ListCompletions { .. }
            | Method::ListRewindTargets
            | Method::ListPolicy
            | Method::ListServers { .. }
            | Method::ListJobs
            | Method::Worktree { change: None }
            | Method::ReadOutput
            | Method::HostStatus
            | Method::TryNotify
            | Method::Trace { .. }
            | Method::Who { .. }
            | Method::Since { .. }
            | Method::ExplainCommand
            | Method::MeshAgents
    )
}

/// What stands where a key goes: the draft, or the line or list on top.
pub(super) fn typed_so_far(bench: &Bench) -> Option<String> {
    if bench.app.leader || bench.app.pinning.is_some() {
        return None;
    }
    match bench.app.layers.top() {
        Some(Layer::Prompt(prompt)) => Some(prompt.input.text().to_owned()),
        Some(Layer::List(list)) => Some(list.query.text().to_owned()),
        // A key of a provider is forgotten, not kept.
        Some(Layer::Confirm(_) | Layer::Key(_)) => None,
        None => (bench.app.focus == Focus::Composer).then(|| bench.draft()),
    }
}

/// Whether the person takes text away with this key: deletes it, undoes it, or has it completed.
pub(super) fn takes_text(bench: &Bench, key: KeyEvent) -> bool {
    let context = match bench.app.layers.top() {
        Some(_) => Context::Line,
        None => bench.app.place(),
    };
    let deletes = [
        Action::DeleteBack,
        Action::DeleteNext,
        Action::DeleteWordBack,
        Action::DeleteWordNext,
        Action::DeleteToStart,
        Action::DeleteToEnd,
        Action::Undo,
        Action::Complete,
        Action::CompleteBack,
    ];
    let bound = bench.app.keymap.get(context, crate::screen::keys::pressed(key));
    matches!(bound, Some(Binding::Do(action)) if deletes.contains(action))
}

/// Presses a key and looks at what it did.
fn press_and_look(scene: &str, bench: &mut Bench, key: KeyEvent, drawn: bool) {
    let scene = format!("{scene}, {key:?}");
    let before = typed_so_far(bench);
    let current = bench.app.current.clone();
    let decides = match bench.app.layers.top() {
        Some(Layer::Confirm(_)) => true,
        Some(Layer::Prompt(prompt)) => key.code == KeyCode::Enter && !prompt.input.is_empty(),
        Some(Layer::List(_) | Layer::Key(_)) => key.code == KeyCode::Enter,
        None => bench.app.focus == Focus::Inbox,
    };
    let had = texts(bench, &[]);
    let takes = takes_text(bench, key);
    let effects = bench.msg(Msg::Key(key));
    let has = texts(bench, &effects);
    for words in [DRAFT, LINE, "queuedwords"] {
        let kept = takes || !had.contains(words) || has.contains(words);
        assert!(kept, "{scene}: {words} vanished");
    }
    let plain = (key.modifiers - crossterm::event::KeyModifiers::SHIFT).is_empty();
    if let (Some(before), KeyCode::Char(c), true) = (before, key.code, plain) {
        let now = typed_so_far(bench).unwrap_or_default();
        let opens_line = before.is_empty() && c == ':';
        assert!(opens_line || now == format!("{before}{c}"), "{scene}: {before:?} became {now:?}");
    }
    for (pod, method) in calls(&effects) {
        let allowed = !changes_a_pod(method) || (decides && drawn);
        assert!(allowed, "{scene} changes {pod:?}: {method:?}");
        let sends = matches!(method, Method::Send { .. } | Method::Steer { .. } | Method::Resume);
        if !sends || !drawn || decides {
            continue;
        }
        assert_eq!(pod, current.as_ref().map(PodName::as_str), "{scene}");
        let head = head(bench);
        assert!(pod.is_some_and(|pod| head.contains(pod)), "{scene}: {head}");
        assert!(pod != Some("far") || head.contains("other"), "{scene}: {head}");
    }
}

/// The top line of the screen.
fn head(bench: &mut Bench) -> String {
    bench.screen().lines().next().unwrap_or_default().to_owned()
}

/// A screen in a state and a place, with this draft in its composer.
fn at(new: New, go: Steps, draft: &str) -> Bench {
    let mut bench = new();
    if !draft.is_empty() {
        bench.msg(Msg::Paste(draft.to_owned()));
    }
    go(&mut bench);
    let decides = |prompt: &crate::screen::pane::actionbar::Prompt| prompt.purpose.decides();
    if matches!(bench.app.layers.top(), Some(Layer::Prompt(prompt)) if decides(prompt)) {
        bench.msg(Msg::Paste(LINE.to_owned()));
    }
    bench
}

/// Presses every key on such a screen, once it has been drawn for a while. A line or list that can be typed into gets
/// all characters one after the other, any other place gets each on a screen of its own.
fn press_every_key(scene: &str, bound: &[KeyEvent], build: &dyn Fn() -> Bench) {
    let drawn = || {
        let mut bench = build();
        bench.wait(1_000);
        bench
    };
    for key in bound {
        press_and_look(scene, &mut drawn(), *key, true);
    }
    let mut one = drawn();
    for key in characters() {
        if typed_so_far(&one).is_none() {
            one = drawn();
        }
        press_and_look(scene, &mut one, key, true);
    }
}

#[test]
fn no_key_loses_a_text_or_changes_a_pod_without_a_confirmation() {
    let bound = &bound_keys(&Bench::new(vec![]));
    std::thread::scope(|scope| {
        for (state, new) in STATES {
            scope.spawn(move || {
                for (place, go) in PLACES {
                    let scene = format!("{state}, {place}");
                    press_every_key(&scene, bound, &|| at(new, go, DRAFT));
                }
                press_every_key(&format!("{state}, an empty line"), bound, &|| at(new, |_| {}, ""));
            });
        }
        for (confirmation, open, _) in CONFIRMATIONS {
            scope.spawn(move || {
                press_every_key(confirmation, bound, &|| {
                    at(|| of(pod("alice", State::Idle)), open, "")
                });
            });
        }
    });
}

#[test]
fn no_key_decides_what_was_not_drawn() {
    let inbox = |bench: &mut Bench| drop(bench.press("ctrl-n"));
    let idle: New = || of(pod("alice", State::Idle));
    let keys: Vec<_> = bound_keys(&idle()).into_iter().chain(characters()).collect();
    let sheets = CONFIRMATIONS.into_iter().chain([RULE]);
    let sheets = sheets.map(|(name, open, _)| (name, idle, open));
    let inboxes = STATES.map(|(state, new)| (state, new, inbox as Steps));
    for (scene, new, open) in sheets.chain(inboxes) {
        for key in &keys {
            press_and_look(scene, &mut at(new, open, ""), *key, false);
        }
    }
}

#[test]
fn a_click_leaves_the_typing_with_the_line() {
    for (state, new) in STATES {
        let (width, height) = (80, 24);
        for (column, row) in (0..width).step_by(13).flat_map(|x| (0..height).map(move |y| (x, y))) {
            let mut bench = new();
            bench.type_in(DRAFT);
            bench.screen();
            let kind = MouseEventKind::Down(MouseButton::Left);
            let modifiers = crossterm::event::KeyModifiers::NONE;
            bench.msg(Msg::Mouse(MouseEvent { kind, column, row, modifiers }));
            let before = bench.draft();
            bench.press("end");
            bench.type_in("stop it please");
            let now = bench.draft();
            assert_eq!(now, format!("{before}stop it please"), "{state}: {column}, {row}");
        }
    }
}

#[test]
fn a_draft_below_an_older_message_is_in_the_history_once_that_is_changed_or_sent() {
    let mut bench = of(pod("alice", State::Idle));
    bench.type_in("first");
    bench.press("enter");
    bench.type_in(DRAFT);
    bench.press("up");
    assert_eq!(bench.draft(), "first");
    assert!(texts(&bench, &[]).contains(DRAFT), "a screen that is killed now keeps it");
    bench.type_in(" again");
    bench.press("enter");
    bench.press("up");
    bench.press("up");
    assert_eq!(bench.draft(), DRAFT);
}

#[test]
fn a_message_chosen_from_the_history_leaves_the_draft_there() {
    let mut bench = of(pod("alice", State::Idle));
    bench.type_in("first");
    bench.press("enter");
    bench.type_in(DRAFT);
    bench.press("ctrl-r");
    bench.press("enter");
    assert_eq!(bench.draft(), "first");
    bench.press("up");
    assert_eq!(bench.draft(), DRAFT);
}

#[test]
fn a_message_that_is_taken_out_of_the_queue_is_kept_before_the_host_drops_it() {
    let queue = vec![queued("q", "queuedwords")];
    let mut bench = of(PodInfo { queue, ..pod("alice", State::Running) });
    bench.press("up");
    let kept = serde_json::to_string(&bench.app.screen_state()).expect("encoded");
    assert!(kept.contains("queuedwords"), "{kept}");
}

#[test]
fn a_reason_is_kept_until_the_host_has_it_and_when_the_request_is_decided_elsewhere() {
    let denying = || {
        let mut bench = of(pod("alice", State::NeedsYou));
        request(&mut bench, approval("q", "alice", "cargo publish"));
        bench.press("ctrl-n");
        bench.screen();
        bench.confirm("D");
        bench.type_in(LINE);
        bench
    };
    let kept = |bench: &Bench| serde_json::to_string(&bench.app.screen_state()).expect("encoded");
    let mut bench = denying();
    let sent = bench.press("enter");
    refuse(&mut bench, sent, "it was decided already");
    assert!(kept(&bench).contains(LINE));
    let mut bench = denying();
    bench.press("enter");
    bench.msg(Msg::HostEnded);
    assert!(kept(&bench).contains(LINE));
    let mut bench = denying();
    let verdict = yoi::protocol::Verdict::Once;
    let decided = Event::ApprovalDecided { approval: "q".into(), pod: name("alice"), verdict };
    bench.host(None, decided);
    assert!(kept(&bench).contains(LINE));
    assert!(calls(&bench.press("enter")).is_empty(), "it is no reason any more");
    bench.press("esc");
    assert!(bench.app.layers.is_empty() && kept(&bench).contains(LINE));
}

#[test]
fn the_end_of_a_host_closes_the_confirmation_of_a_verb_and_says_so() {
    let mut bench = of(pod("alice", State::Idle));
    bench.type_in(":rm old");
    bench.press("enter");
    bench.screen();
    bench.msg(Msg::HostEnded);
    assert!(bench.app.layers.is_empty());
    assert_eq!(bench.notice(), "not done, for the host ended: :rm old");
    bench.msg(Msg::Connected);
    assert!(calls(&bench.confirm("enter")).iter().all(|(_, method)| !changes_a_pod(method)));
}

#[test]
fn a_first_message_returns_to_the_draft_when_the_pod_that_it_was_for_is_gone() {
    let model_sends = Some("This goes to api.example.com".to_owned());
    let mut bench = of(PodInfo { model_chosen: false, model_sends, ..pod("alice", State::Idle) });
    bench.type_in(DRAFT);
    bench.press("enter");
    assert_eq!(bench.draft(), "");
    bench.host(None, Event::PodRemoved { name: name("alice") });
    assert_eq!(bench.draft(), DRAFT);
}
