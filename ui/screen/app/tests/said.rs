//! Sentences, counts and hints on the screen are true: each is compared with the state that it describes.

use super::*;
use crate::verb::dialogue::{KeyReply, KeyStep};
use yoi::config::Settings;
use yoi::llm::trial::{Tried, Works};
use yoi::protocol::event::Line;
use yoi::protocol::{Entry, Fact, LastRun, RunResult, Segment};

fn alone(state: State) -> Bench {
    let mut bench = Bench::new(vec![pod("alice", state)]);
    bench.type_in(":open alice");
    bench.press("enter");
    bench
}

#[test]
fn a_run_that_was_taken_back_is_not_said_to_be_paused() {
    let mut bench = alone(State::Running);
    let asked = bench.press("esc");
    let last_result = Some(LastRun {
        entry: yoi::protocol::EntryId::new(),
        result: RunResult::RolledBack.word().into(),
        error: None,
        at: NOON,
    });
    bench.shown(PodInfo { last_result, ..pod("alice", State::Idle) });
    answer(&mut bench, asked, Event::done());
    let said = "alice had not begun to answer: the message was taken back";
    assert_eq!(bench.notice(), said);
}

#[test]
fn escape_never_withdraws_an_approval_request() {
    let mut bench = alone(State::NeedsYou);
    let request = Box::new(approval("q", "alice", "cargo fetch"));
    bench.host(Some("alice"), Event::ApprovalRequested { approval: request });
    bench.press("ctrl-n");
    for key in ["esc", "esc", "ctrl-c"] {
        bench.wait(1_000);
        assert_eq!(calls(&bench.press(key)), [], "{key}");
    }
    bench.wait(1_000);
    bench.press("esc");
    let said = "alice waits for your decision: Ctrl+N goes there · :pause withdraws the request";
    assert_eq!(bench.notice(), said);
}

#[test]
fn the_head_of_the_tree_counts_failed_and_paused_pods() {
    let states = [("a", State::Failed), ("b", State::Paused), ("c", State::Paused)];
    let mut bench = Bench::new(states.map(|(name, state)| pod(name, state)).to_vec());
    bench.size(120, 40);
    let screen = bench.screen();
    let head = screen.lines().next().unwrap_or_default();
    assert!(head.contains("1 failed · 2 paused · $0.36 │"), "{head}");
}

#[test]
fn a_paused_pod_names_what_interrupted_it_and_the_key_that_continues() {
    let why = Some("interrupted 08:15 (host ended)".to_owned());
    let mut bench = Bench::new(vec![PodInfo { why, ..pod("alice", State::Paused) }]);
    bench.size(120, 40);
    bench.type_in(":open alice");
    bench.press("enter");
    let row = "interrupted 08:15 (host ended) · Enter continues";
    assert!(bench.screen().contains(row), "{}", bench.screen());
    assert_eq!(calls(&bench.press("enter")), [(Some("alice"), &Method::Resume)]);
    bench.type_in("a draft");
    assert!(!bench.screen().contains("Enter continues"), "Enter would send the draft");
}

#[test]
fn one_key_goes_on_with_all_runs_that_the_end_of_the_host_interrupted() {
    let cut = |name: &str| PodInfo { cut_at: Some(1), ..pod(name, State::Paused) };
    let pods =
        vec![pod("carol", State::Idle), cut("alice"), cut("bob"), pod("dave", State::Paused)];
    for current in ["alice", "carol"] {
        let mut bench = Bench::new(pods.clone());
        bench.size(120, 40);
        bench.type_in(&format!(":open {current}"));
        bench.press("enter");
        let screen = bench.screen();
        assert!(screen.contains("2 interrupted by the end of the host"), "{screen}");
        assert!(screen.contains("continues all"), "{screen}");
        assert_eq!(calls(&bench.press("enter")), []);
        assert!(bench.screen().contains("continue the runs of alice, bob?"), "{}", bench.screen());
        let both = [(Some("alice"), &Method::Resume), (Some("bob"), &Method::Resume)];
        bench.wait(1000);
        assert_eq!(calls(&bench.press("enter")), both);
    }
    let mut bench = Bench::new(pods);
    bench.type_in(":open dave");
    bench.press("enter");
    assert_eq!(calls(&bench.press("enter")), [(Some("dave"), &Method::Resume)]);
}

#[test]
fn child_events_that_wait_are_handed_over_by_the_key_that_is_named() {
    let why = Some("3 children stopped".to_owned());
    let mut bench = Bench::new(vec![PodInfo { why, ..pod("shop", State::Idle) }]);
    bench.type_in(":open shop");
    bench.press("enter");
    let screen = bench.screen();
    assert!(screen.contains("3 children stopped · Enter tells shop"), "{screen}");
    assert_eq!(calls(&bench.press("enter")), [(Some("shop"), &Method::Resume)]);
}

#[test]
fn a_verb_typed_behind_a_draft_is_offered_and_the_draft_stays() {
    let mut bench = alone(State::Idle);
    bench.type_in("hello one:compact");
    assert_eq!(calls(&bench.press("enter")), [], "it is no message before it is confirmed");
    assert!(bench.screen().contains("`:compact` at the end of the message is a verb"));
    assert_eq!(calls(&bench.confirm("enter")), [(Some("alice"), &Method::Compact)]);
    assert_eq!(bench.draft(), "hello one");
    for prose in ["what does :stop do here", "a list: stop, go", "see http://compact"] {
        let mut bench = alone(State::Idle);
        bench.type_in(prose);
        assert_eq!(calls(&bench.press("enter")), [(Some("alice"), &message(prose))]);
    }
}

#[test]
fn a_cleared_draft_is_the_newest_message_of_the_history() {
    let mut bench = alone(State::Idle);
    bench.type_in("half a thought");
    bench.press("ctrl-c");
    assert_eq!(bench.draft(), "");
    bench.press("up");
    assert_eq!(bench.draft(), "half a thought");
}

#[test]
fn leaving_is_offered_only_as_long_as_a_second_key_leaves() {
    let mut bench = alone(State::Idle);
    bench.press("ctrl-c");
    assert_eq!(bench.notice(), "Ctrl+C again leaves");
    bench.wait(2_000);
    assert_eq!(bench.notice(), "");
}

#[test]
fn a_message_that_is_sent_shows_the_end_of_the_transcript() {
    let mut bench = alone(State::Idle);
    let mut page = bench.app.prepare_frame();
    page.retain(|effect| matches!(effect, Effect::Call { method: Method::Page { .. }, .. }));
    let text = |n: usize| vec![Segment::Text { content: format!("line {n}") }];
    let entry = |n| Entry::new(Fact::UserInput { segments: text(n), taken: None, from: None });
    let entries = (0..60).map(|n| Line::Whole(Box::new(entry(n)))).collect();
    answer(&mut bench, page, Event::Page { entries, before: None, in_flight: Vec::new(), seq: 1 });
    bench.screen();
    bench.press("pageup");
    let is_at_tail = |bench: &Bench| bench.app.transcript().is_some_and(|one| one.is_at_tail());
    assert!(!is_at_tail(&bench));
    bench.host(Some("alice"), Event::Entry { entry: Box::new(entry(60)), cut_bytes: None });
    let screen = bench.screen();
    assert_eq!(screen.matches("1 new").count(), 1, "{screen}");
    bench.type_in("more");
    bench.press("enter");
    assert!(is_at_tail(&bench));
}

#[test]
fn a_stop_is_said_as_long_as_the_pod_is_stopped() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("bob", State::Idle)]);
    bench.type_in(":stop bob");
    let asked = bench.press("enter");
    bench.shown(pod("bob", State::Stopped));
    let stopped = yoi::protocol::StoppedPod {
        name: name("bob"),
        returned: vec![],
        lender: None,
        gained: vec![],
    };
    answer(&mut bench, asked, Event::PodsStopped { stopped: vec![stopped] });
    assert_eq!(bench.notice(), "stopped bob · :restore bob brings it back");
    bench.shown(pod("bob", State::Idle));
    assert_eq!(bench.notice(), "");
}

#[test]
fn the_first_screen_lists_the_pods_that_did_something_last_and_has_no_tree() {
    let screen = |pods| {
        let mut bench = Bench::new(pods);
        bench.size(80, 24);
        bench.screen()
    };
    assert!(!screen(Vec::new()).contains("recent"));
    let elsewhere = PodInfo { workspace: "/other".into(), ..pod("far", State::Idle) };
    let late = elsewhere.since + 60_000;
    let old = PodInfo { last_activity: late, ..pod("old", State::Stopped) };
    let child = child("old", "part", State::Stopped);
    let shown = screen(vec![elsewhere, old, child]);
    let rows: Vec<&str> = shown.lines().skip_while(|row| !row.contains("recent")).collect();
    assert!(rows[0].contains(":open <pod> goes there"), "{shown}");
    assert!(rows[1].contains("old") && rows[2].contains("far"), "newest first: {shown}");
    assert!(!shown.contains("part") && !shown.contains('│'), "{shown}");
}

#[test]
pub fn enter_on_the_empty_first_screen_connects_a_model_only_where_there_is_none() {
    let mut bench = Bench::new(Vec::new());
    bench.press("enter");
    assert!(bench.app.layers.is_empty(), "nothing is known yet");
    bench.msg(Msg::Answered(Asked::FirstModel, Ok(found(None))));
    assert!(bench.screen().contains("Enter connects a model"), "{}", bench.screen());
    bench.press("enter");
    assert!(bench.screen().contains("which provider?"), "{}", bench.screen());
    bench.press("esc");
    bench.msg(Msg::Answered(Asked::FirstModel, Ok(found(Some("anthropic/x")))));
    assert!(bench.screen().contains("anthropic/x: a key is there"), "{}", bench.screen());
    let bar = bench.screen().lines().last().map(str::to_owned).unwrap_or_default();
    assert!(!bar.contains("Enter"), "{bar}");
    bench.press("enter");
    assert!(bench.app.layers.is_empty());
    bench.type_in("go");
    assert!(bench.screen().contains("Enter starts it"), "{}", bench.screen());
}

/// What a new Pod would get.
fn found(model: Option<&str>) -> Event {
    let model = model.map(|model| yoi::protocol::reply::FoundModel {
        model: model.into(),
        why: "a key is there".into(),
        sends: None,
        effort_unsent: None,
    });
    let config = "/c/config.toml".into();
    Event::ModelFound { model, effort: None, config, mistakes: Vec::new() }
}

#[test]
pub fn a_key_is_on_no_frame_and_in_no_history_and_esc_forgets_it() {
    const KEY: &str = "sk-typed-0123456789";
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    let opens = |bench: &mut Bench| {
        bench.type_in(":connect anthropic");
        let asked = bench.press("enter");
        let verb = key_steps(&asked)[0].0;
        bench.msg(Msg::KeyStepDone(verb, KeyReply::Tried(Tried::NeedsKey)));
        assert!(bench.screen().contains("key for anthropic ›"), "{}", bench.screen());
        verb
    };
    opens(&mut bench);
    bench.type_in(&KEY[..4]);
    bench.msg(Msg::Paste(KEY[4..].to_owned()));
    assert!(bench.screen().contains("19 characters, not shown"), "{}", bench.screen());
    assert!(!bench.screen().contains("sk-"), "{}", bench.screen());
    let saved = |bench: &Bench| format!("{:?}", bench.app.screen_state());
    assert!(!saved(&bench).contains("sk-"));
    bench.press("esc");
    assert!(!bench.screen().contains("key for anthropic"), "{}", bench.screen());
    let verb = opens(&mut bench);
    bench.type_in(KEY);
    let tried = bench.press("enter");
    let [(_, KeyStep::Try { key: Some(key), .. })] = key_steps(&tried)[..] else {
        panic!("{tried:?}")
    };
    assert_eq!(key.expose(), KEY);
    assert!(bench.screen().contains("asking anthropic …"), "{}", bench.screen());
    bench.press("esc");
    let works = Tried::Works(Works::default());
    let late = bench.msg(Msg::KeyStepDone(verb, KeyReply::Tried(works)));
    assert!(key_steps(&late).is_empty(), "a key that was left is not stored");
    // The next line for a key gets no answer that was meant for the last one.
    let next = opens(&mut bench);
    assert_ne!(next, verb);
    bench.type_in(KEY);
    bench.msg(Msg::KeyStepDone(verb, KeyReply::Tried(Tried::NoProvider)));
    assert!(bench.screen().contains("19 characters, not shown"), "{}", bench.screen());
    bench.press("esc");
    assert!(!saved(&bench).contains("sk-") && !bench.screen().contains("sk-"));
}

#[test]
fn a_key_behind_the_verb_is_refused_and_kept_in_no_history() {
    for line in [":connect anthropic sk-typed-0123456789", ":connect sk-typed-0123456789"] {
        let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
        bench.type_in(line);
        let asked = bench.press("enter");
        if let Some((verb, _)) = key_steps(&asked).first() {
            bench.msg(Msg::KeyStepDone(*verb, KeyReply::Tried(Tried::NoProvider)));
        }
        assert!(!bench.screen().contains("sk-typed"), "{}", bench.screen());
        bench.press("esc");
        let saved = format!("{:?}", bench.app.screen_state());
        assert!(saved.contains("connect") && !saved.contains("sk-typed"), "{saved}");
    }
}

/// The steps with keys among these effects.
fn key_steps(effects: &[Effect]) -> Vec<(VerbId, &KeyStep)> {
    let steps = effects.iter().filter_map(|effect| match effect {
        Effect::KeyStep(verb, step) => Some((*verb, step)),
        _ => None,
    });
    steps.collect()
}

#[test]
fn a_compaction_is_said_only_as_long_as_it_goes_on() {
    let mut bench = alone(State::Idle);
    bench.type_in(":compact");
    let asked = bench.press("enter");
    bench.shown(pod("alice", State::Running));
    answer(&mut bench, asked, Event::done());
    assert_eq!(bench.notice(), "compacting the history of alice");
    bench.shown(pod("alice", State::Idle));
    assert_eq!(bench.notice(), "");
}

#[test]
fn the_first_screen_names_the_tour_once_and_no_peers_of_nothing() {
    let mut bench = Bench::new(Vec::new());
    bench.msg(Msg::Answered(Asked::FirstModel, Ok(found(None))));
    bench.size(100, 40);
    let screen = bench.screen();
    assert!(screen.contains("no model yet"), "{screen}");
    assert_eq!(screen.matches(":tour").count(), 1, "{screen}");
    let mut bench = Bench::new(vec![pod("alice", State::Stopped), pod("bob", State::Stopped)]);
    bench.host(None, Event::Peered { source: name("alice"), peer: name("bob") });
    bench.size(100, 40);
    assert!(!bench.screen().contains("no Pod "), "{}", bench.screen());
}

#[test]
fn the_answer_of_who_names_the_whole_path_that_was_looked_up() {
    let mut bench = alone(State::Idle);
    bench.type_in(":who docs");
    let asked = bench.press("enter");
    answer(&mut bench, asked, Event::Holders { holders: Vec::new() });
    assert!(bench.notice().starts_with("/repo/docs is in no live Pod"), "{}", bench.notice());
}

#[test]
fn a_warning_that_is_cut_begins_with_its_place_and_names_the_verb_that_shows_all_of_it() {
    let file = std::path::Path::new("/home/me/.config/yoi/config.toml");
    let (settings, found) = Settings::read(file, "[limits]\nprocesses = 0\n");
    let mistake =
        settings.with_value_in_use(&found[0], "until you correct it, the default is used");
    let text = mistake.text.clone();
    let mut bench = alone(State::Idle);
    bench.size(80, 24);
    bench.host(None, Event::HostNotices { notices: vec![], mistakes: vec![mistake] });
    let screen = bench.screen();
    let bar = screen.lines().find(|line| line.trim_end().ends_with("… :notices  F1"));
    let bar = bar.unwrap_or_else(|| panic!("{screen}"));
    assert!(bar.contains("config.toml:2:13: `limits.processes` is 0, but must be"), "{bar}");
    bench.type_in(":notices");
    bench.press("enter");
    let screen = bench.screen().replace(['│', '\n'], " ");
    let words: Vec<&str> = screen.split_whitespace().collect();
    for word in text.split_whitespace() {
        assert!(words.contains(&word), "{word}: {screen}");
    }
}

#[test]
fn a_verb_whose_answer_takes_long_is_said_to_be_under_way_until_it_comes() {
    let mut bench = alone(State::Idle);
    bench.type_in(":new fix --worktree");
    let first = bench.press("enter");
    let sent_at = bench.now;
    bench.wait(100);
    bench.type_in(":who docs");
    let second = bench.press("enter");
    let said = ":new is under way";
    assert!(!bench.screen().contains(said), "{}", bench.screen());
    assert!(bench.app.wakes_at().is_some_and(|at| at <= sent_at + 1_000));
    bench.until(sent_at + 1_000);
    bench.msg(Msg::Wake);
    for (width, height) in [(40, 12), (80, 24)] {
        bench.size(width, height);
        assert!(bench.screen().contains(said), "{}", bench.screen());
    }
    refuse(&mut bench, first, "git is not installed");
    assert!(bench.notice().contains("git is not installed"), "{}", bench.notice());
    bench.wait(100);
    bench.press("esc");
    let screen = bench.screen();
    assert!(!screen.contains(said) && screen.contains(":who is under way"), "{screen}");
    answer(&mut bench, second, Event::Holders { holders: Vec::new() });
    bench.wait(6_000);
    assert!(!bench.screen().contains("under way"), "{}", bench.screen());
}
