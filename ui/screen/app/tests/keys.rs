use super::*;
use crate::screen::app::LoadFor;
use crate::screen::reply::Reply;
use crate::theme::Ground;
use crossterm::event::{KeyCode, KeyEventKind, KeyModifiers};

fn alice(state: State) -> Bench {
    Bench::new(vec![pod("alice", state), pod("bob", State::Idle)]).at("alice")
}

impl Bench {
    fn at(mut self, name: &str) -> Self {
        self.type_in(&format!(":open {name}"));
        self.press("enter");
        self
    }

    fn current(&self) -> &str {
        self.app.current.as_ref().map_or("", PodName::as_str)
    }

    fn kind(&mut self, code: KeyCode, kind: KeyEventKind) -> Vec<Effect> {
        self.msg(Msg::Key(KeyEvent::new_with_kind(code, KeyModifiers::NONE, kind)))
    }
}

fn quits(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Quit(_)))
}

#[test]
fn escape_pauses_the_run_and_the_notice_names_the_next_steps() {
    let mut bench = alice(State::Running);
    let paused = bench.press("esc");
    assert_eq!(calls(&paused), [(Some("alice"), &Method::Pause)]);
    answer(&mut bench, paused, Event::done());
    assert_eq!(bench.notice(), "paused alice · Enter continues · :cancel drops the run");
    let mut bench = alice(State::Running);
    bench.type_in("and then");
    let paused = bench.press("esc");
    answer(&mut bench, paused, Event::done());
    let not_by_enter = "paused alice · :resume continues · :cancel drops the run";
    assert_eq!(bench.notice(), not_by_enter, "Enter sends what is written");
}

#[test]
fn escape_does_nothing_for_a_moment_after_it_closed_a_layer() {
    let mut bench = alice(State::Running);
    bench.press("ctrl-p");
    assert!(bench.press("esc").is_empty());
    assert!(bench.app.layers.is_empty());
    bench.wait(200);
    assert!(bench.press("esc").is_empty());
    bench.wait(200);
    assert_eq!(calls(&bench.press("esc")), [(Some("alice"), &Method::Pause)]);
}

#[test]
fn a_press_of_ctrl_c_right_after_one_that_paused_never_leaves() {
    let mut bench = alice(State::Running);
    assert_eq!(calls(&bench.press("ctrl-c")), [(Some("alice"), &Method::Pause)]);
    bench.shown(pod("alice", State::Paused));
    bench.wait(200);
    assert!(!quits(&bench.press("ctrl-c")));
    bench.wait(100);
    assert!(!quits(&bench.press("ctrl-c")));
    bench.wait(600);
    bench.press("ctrl-c");
    assert_eq!(bench.notice(), "Ctrl+C again leaves");
    bench.wait(1_000);
    assert!(quits(&bench.press("ctrl-c")));
}

#[test]
fn a_key_that_opened_a_line_and_is_held_down_types_nothing_into_it() {
    let mut bench = alice(State::Idle);
    bench.press(":");
    bench.kind(KeyCode::Char(':'), KeyEventKind::Repeat);
    bench.type_in("s");
    bench.kind(KeyCode::Char('s'), KeyEventKind::Repeat);
    let Some(Layer::Prompt(prompt)) = bench.app.layers.top() else { panic!("the line") };
    assert_eq!(prompt.input.text(), "ss");
}

#[test]
fn any_key_between_two_presses_of_ctrl_c_disarms_leaving() {
    let mut bench = alice(State::Idle);
    bench.press("ctrl-c");
    bench.type_in("x");
    assert_eq!(bench.notice(), "");
    bench.press("ctrl-u");
    assert!(!quits(&bench.press("ctrl-c")));
    assert_eq!(bench.notice(), "Ctrl+C again leaves");
}

#[test]
fn a_word_with_which_other_programs_are_left_is_offered_as_the_verb_in_the_command_line() {
    for word in [":q", ":exit", ":wq"] {
        let mut bench = alice(State::Idle);
        bench.type_in(word);
        assert!(!quits(&bench.press("enter")), "{word}");
        let screen = bench.screen();
        assert!(screen.contains(&format!("no verb {word}: Enter runs :quit")), "{screen}");
        assert!(quits(&bench.press("enter")), "{word}");
    }
}

#[test]
fn ctrl_c_clears_a_draft_and_undo_brings_it_back() {
    let mut bench = alice(State::Idle);
    bench.type_in("half a thought");
    bench.press("ctrl-c");
    assert_eq!((bench.draft().as_str(), bench.notice()), ("", "cleared · Ctrl+_ brings it back"));
    bench.press("ctrl-_");
    assert_eq!(bench.draft(), "half a thought");
}

#[test]
fn a_key_release_does_nothing_and_a_repeated_key_never_sends() {
    let mut bench = alice(State::Idle);
    bench.type_in("x");
    assert!(bench.kind(KeyCode::Enter, KeyEventKind::Release).is_empty());
    assert!(bench.kind(KeyCode::Enter, KeyEventKind::Repeat).is_empty());
    assert_eq!(bench.draft(), "x");
    bench.kind(KeyCode::Char('y'), KeyEventKind::Repeat);
    assert_eq!(bench.draft(), "xy");
}

#[test]
fn a_colon_opens_the_command_line_only_in_an_empty_composer() {
    let mut bench = alice(State::Idle);
    bench.type_in("a:b");
    assert_eq!(bench.draft(), "a:b");
    bench.press("ctrl-c");
    bench.type_in("::");
    assert_eq!(bench.draft(), ":");
    bench.press("ctrl-c");
    bench.press(":");
    assert!(matches!(bench.app.layers.top(), Some(Layer::Prompt(_))));
    bench.press("backspace");
    assert!(bench.app.layers.is_empty());
}

#[test]
fn a_line_that_cannot_be_run_stays_and_says_why() {
    let mut bench = alice(State::Idle);
    bench.type_in(":open");
    assert!(bench.press("enter").is_empty());
    assert!(bench.screen().contains("usage: :open <pod>"), "{}", bench.screen());
    bench.type_in(" bob");
    bench.press("enter");
    assert_eq!(bench.current(), "bob");
}

#[test]
fn a_verb_without_its_argument_lists_what_can_be_chosen() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("bob", State::Idle)]);
    bench.go_to("alice");
    bench.type_in(":open");
    bench.press("enter");
    let screen = bench.screen();
    let rows: Vec<&str> = screen.lines().map(str::trim).collect();
    assert!(rows.windows(2).any(|rows| rows == ["alice  idle", "bob    idle"]), "{screen}");
    assert!(screen.contains("usage: :open <pod>"), "{screen}");
    bench.press("down");
    bench.press("down");
    bench.press("enter");
    assert_eq!(bench.current(), "bob");
}

#[test]
fn a_theme_is_picked_from_a_list_and_the_one_in_use_is_named() {
    let mut bench = alice(State::Idle);
    bench.app.looks.theme = "day".into();
    bench.type_in(":theme");
    bench.press("enter");
    let screen = bench.screen();
    assert!(screen.contains("day    light · in use") && screen.contains("night  dark"), "{screen}");
    bench.type_in("mo");
    let effects = bench.press("enter");
    let [Effect::LoadTheme(wanted @ LoadFor::Choice(name))] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(name, "mono");
    bench.msg(Msg::ThemeLoaded(wanted.clone(), Box::default(), Vec::new()));
    assert_eq!(
        (bench.notice(), bench.app.looks.chosen.theme.as_deref()),
        ("theme mono", Some("mono"))
    );
}

/// A theme that differs from the default one.
fn other_theme() -> Box<crate::theme::Theme> {
    Box::new(crate::theme::Theme::load_for("day", None, crate::theme::Depth::True).0)
}

#[test]
fn a_light_ground_changes_only_a_theme_that_follows_it() {
    let mut bench = alice(State::Idle);
    let light = || Msg::Terminal(Reply::Ground(Ground::Light));
    bench.app.looks.theme = "night".into();
    assert!(bench.msg(light()).is_empty());
    let mut bench = alice(State::Idle);
    bench.app.looks.theme = "auto".into();
    assert!(bench.msg(Msg::Terminal(Reply::Ground(Ground::Dark))).is_empty());
    let effects = bench.msg(light());
    let [Effect::LoadTheme(wanted)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(bench.app.wanted_theme(wanted), "day");
    let before = bench.notice().to_owned();
    bench.msg(Msg::ThemeLoaded(wanted.clone(), other_theme(), Vec::new()));
    assert_eq!((bench.app.theme.name.as_str(), bench.notice()), ("day", before.as_str()));
    assert_eq!(bench.app.looks.chosen.theme, None, "the person chose nothing");
    assert!(bench.msg(light()).is_empty(), "the same ground once more");
}

#[test]
fn a_theme_file_is_read_again_and_one_with_a_mistake_changes_nothing() {
    let mut bench = alice(State::Idle);
    assert!(matches!(
        &bench.msg(Msg::OwnFilesChanged)[..],
        [Effect::LoadTheme(LoadFor::Change), Effect::LoadKeymap(LoadFor::Change)]
    ));
    let read = |wrong: &[&str]| {
        let wrong = wrong.iter().map(ToString::to_string).collect();
        Msg::ThemeLoaded(LoadFor::Change, other_theme(), wrong)
    };
    let night = bench.app.theme.clone();
    bench.msg(read(&["night.toml:3:1: no role named x"]));
    assert_eq!(bench.notice(), "night.toml:3:1: no role named x");
    assert_eq!(bench.app.theme, night);
    let said = bench.app.notices.past().count();
    bench.msg(read(&["night.toml:3:1: no role named x"]));
    assert_eq!(bench.app.notices.past().count(), said, "it is said once");
    bench.msg(read(&[]));
    let again = "theme day: its file was read again";
    assert!(bench.app.notices.past().any(|notice| notice.text == again), "{}", bench.screen());
    assert_eq!(bench.app.theme, *other_theme());
}

#[test]
fn a_keymap_is_chosen_and_one_with_a_mistake_is_said_and_changes_nothing() {
    let mut bench = alice(State::Idle);
    bench.app.looks.keymap = "default".into();
    bench.type_in(":keymap");
    bench.press("enter");
    let screen = bench.screen();
    assert!(screen.contains("default  the usual keys · in use"), "{screen}");
    bench.type_in("vi");
    let effects = bench.press("enter");
    let [Effect::LoadKeymap(wanted @ LoadFor::Choice(name))] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((name.as_str(), bench.app.wanted_keymap(wanted)), ("vim", "vim"));
    let vim = crate::screen::keys::built_in("vim");
    bench.msg(Msg::KeymapLoaded(wanted.clone(), Box::new(vim.clone()), Vec::new()));
    assert_eq!(bench.notice(), "keymap vim: Ctrl+X ? lists every key");
    assert_eq!(bench.app.looks.chosen.keymap.as_deref(), Some("vim"));
    let wrong = vec!["keymap.toml:2:7: no such action `dance`".to_owned()];
    let usual = Box::new(crate::screen::keys::default_keymap());
    bench.msg(Msg::KeymapLoaded(LoadFor::Change, usual.clone(), wrong.clone()));
    assert_eq!(bench.notice(), wrong[0]);
    assert_eq!(bench.app.keymap, vim);
    let said = bench.app.notices.past().count();
    bench.msg(Msg::KeymapLoaded(LoadFor::Change, usual.clone(), wrong));
    assert_eq!(bench.app.notices.past().count(), said, "it is said once");
    bench.msg(Msg::KeymapLoaded(LoadFor::Change, usual.clone(), Vec::new()));
    assert_eq!(bench.app.keymap, *usual);
    bench.type_in(":keymap emacs");
    assert!(bench.press("enter").is_empty());
    let refused = "no keymap named emacs; there are default, vim";
    assert!(bench.app.notices.past().any(|notice| notice.text == refused));
}

#[test]
fn tab_goes_round_through_the_completions() {
    let mut bench = alice(State::Idle);
    bench.type_in(":stop ");
    let text = |bench: &Bench| match bench.app.layers.top() {
        Some(Layer::Prompt(prompt)) => prompt.input.text().to_owned(),
        _ => panic!("the command line is open"),
    };
    bench.press("tab");
    assert_eq!(text(&bench), "stop alice");
    bench.press("tab");
    assert_eq!(text(&bench), "stop bob");
    bench.press("shift-tab");
    assert_eq!(text(&bench), "stop alice");
    let stop = Method::StopPods { tree: false, unless_busy: false, silent: false };
    assert_eq!(calls(&bench.press("enter")), [(Some("alice"), &stop)]);
}

#[test]
fn moving_in_the_tree_only_previews() {
    let mut bench = alice(State::Idle);
    bench.press("tab");
    bench.press("down");
    assert_eq!((bench.current(), bench.app.shown().map(PodName::as_str)), ("alice", Some("bob")));
    bench.size(120, 40);
    bench.press("f1");
    assert!(bench.screen().contains("write to alice"), "{}", bench.screen());
    bench.press("f1");
    bench.size(80, 24);
    bench.press("esc");
    assert_eq!(bench.app.shown().map(PodName::as_str), Some("alice"));
    bench.wait(400);
    bench.press("tab");
    bench.press("j");
    bench.press("enter");
    assert_eq!(bench.current(), "bob");
    assert_eq!(bench.app.focus, Focus::Composer);
}

#[test]
fn a_letter_that_does_nothing_in_a_list_says_how_to_write() {
    let mut bench = alice(State::Idle);
    bench.press("tab");
    bench.press("q");
    assert_eq!(bench.notice(), "q is no key here · i or Esc: write");
}

#[test]
fn keys_that_end_something_only_prefill_the_line() {
    let mut bench = alice(State::Idle);
    bench.press("tab");
    assert!(bench.press("s").is_empty());
    let Some(Layer::Prompt(prompt)) = bench.app.layers.top() else { panic!("no line") };
    assert_eq!(prompt.input.text(), "stop alice");
}

#[test]
fn the_leader_lists_its_keys_and_escape_leaves_it() {
    let mut bench = alice(State::Idle);
    bench.press("ctrl-x");
    assert!(bench.screen().contains("Ctrl+X last two Pods"));
    assert!(bench.screen().contains("a :new"));
    bench.press("esc");
    assert!(!bench.app.leader);
    bench.press("ctrl-x");
    bench.press("2");
    assert_eq!(bench.current(), "bob");
    bench.press("ctrl-x");
    bench.press("ctrl-x");
    assert_eq!(bench.current(), "alice");
}

#[test]
fn ctrl_n_goes_to_the_longest_waiting() {
    let waiting = |name: &str, since| PodInfo { since, ..pod(name, State::NeedsYou) };
    let mut bench = Bench::new(vec![waiting("a", NOON + 5), waiting("b", NOON + 1)]);
    bench.press("ctrl-n");
    assert!(bench.screen().contains("▲ b  needs you"), "{}", bench.screen());
    let mut bench = alice(State::Idle);
    bench.press("ctrl-n");
    assert_eq!(bench.notice(), "nothing needs you");
}

#[test]
fn ctrl_n_goes_from_a_result_to_what_came_meanwhile_and_needs_the_person() {
    let done = |name: &str| PodInfo { unseen: true, ..pod(name, State::Idle) };
    let mut bench = Bench::new(vec![done("a"), done("b"), done("c")]);
    bench.press("ctrl-n");
    bench.press("ctrl-n");
    assert!(bench.screen().contains("✓ b  done"), "{}", bench.screen());
    bench.press("a");
    assert!(bench.notice().starts_with("press again"), "{}", bench.notice());
    bench.shown(pod("d", State::NeedsYou));
    assert!(bench.screen().contains("✓ b  done"), "a card that has the keys stays");
    bench.press("ctrl-n");
    assert!(bench.screen().contains("▲ d  needs you"), "{}", bench.screen());
    assert_eq!(bench.notice(), "", "that was about the card before");
    bench.press("ctrl-n");
    assert!(bench.screen().contains("✓ a  done"), "{}", bench.screen());
}

#[test]
fn leaving_during_a_run_wants_one_confirmation() {
    let mut bench = alice(State::Running);
    bench.type_in(":quit");
    assert!(!quits(&bench.press("enter")));
    bench.wait(300);
    let screen = bench.screen();
    assert!(screen.contains("alice is working"), "{screen}");
    assert!(
        screen.contains("Enter: leave it running · p: pause and leave · Esc: stay"),
        "{screen}"
    );
    bench.press("esc");
    bench.type_in(":quit");
    bench.press("enter");
    let left = bench.confirm("p");
    assert_eq!(calls(&left), [(Some("alice"), &Method::Pause)]);
    assert!(quits(&left));
}

#[test]
fn a_small_screen_shows_all_answers_to_the_question_about_leaving() {
    for (width, height) in [(40, 12), (30, 8), (64, 14)] {
        let mut bench = alice(State::Running);
        bench.size(width, height);
        bench.type_in(":quit");
        bench.press("enter");
        bench.wait(300);
        let screen = bench.screen();
        for answer in ["Enter: leave it running", "p: pause and leave", "Esc: stay"] {
            assert!(screen.contains(answer), "{width}x{height}: {screen}");
        }
        assert!(screen.contains("alice is working"), "{width}x{height}: {screen}");
    }
}

#[test]
fn the_question_about_leaving_follows_the_pods_that_work() {
    let mut bench = alice(State::Running);
    bench.type_in(":quit");
    bench.press("enter");
    bench.shown(pod("bob", State::Running));
    bench.wait(300);
    assert!(bench.screen().contains("2 Pods are working"), "{}", bench.screen());
    bench.shown(pod("alice", State::Idle));
    assert!(bench.press("p").is_empty(), "the question has changed under the key");
    bench.wait(300);
    assert!(bench.screen().contains("bob is working"), "{}", bench.screen());
    bench.shown(pod("bob", State::Idle));
    bench.wait(300);
    let screen = bench.screen();
    assert!(screen.contains("no Pod is working any more"), "{screen}");
    assert!(screen.contains("Enter: leave · Esc: stay"), "{screen}");
    assert!(bench.confirm("p").is_empty(), "there is no run to pause");
    assert!(quits(&bench.confirm("enter")));
    let mut bench = alice(State::Running);
    bench.type_in(":quit");
    bench.press("enter");
    bench.msg(Msg::HostEnded);
    bench.wait(300);
    let screen = bench.screen();
    assert!(screen.contains(" the host ended") && !screen.contains("working"), "{screen}");
    assert!(!screen.contains("starts it again"), "Enter leaves: {screen}");
    assert!(quits(&bench.confirm("enter")));
}

#[test]
fn leaving_says_how_to_come_back_and_how_to_end_it() {
    let mut bench = alice(State::Idle);
    let left = bench.press("ctrl-d");
    let [Effect::Quit(ExitReason::Quit { farewell })] = &left[..] else { panic!("{left:?}") };
    assert_eq!(
        farewell[..],
        [
            "2 Pods kept, none running",
            "come back: yoi · end it: yoi stop alice · end all: yoi stop --all"
        ]
    );
}

#[test]
fn deleting_wants_a_confirmation_and_a_live_pod_is_stopped_first() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("old", State::Stopped)]);
    bench.type_in(":rm alice");
    bench.press("enter");
    assert_eq!(bench.notice(), "alice is live: :stop alice comes first");
    bench.type_in(":rm old");
    assert!(bench.press("enter").is_empty());
    assert_eq!(calls(&bench.confirm("enter")), [(Some("old"), &Method::Remove)]);
}

#[test]
fn every_pod_keeps_its_draft_and_a_command_leaves_it_alone() {
    let mut bench = alice(State::Idle);
    bench.type_in("for alice");
    bench.press("ctrl-x");
    bench.press(":");
    bench.type_in("open bob");
    bench.press("enter");
    assert_eq!((bench.current(), bench.draft().as_str()), ("bob", ""));
    bench.press("ctrl-x");
    bench.press("ctrl-x");
    assert_eq!((bench.current(), bench.draft().as_str()), ("alice", "for alice"));
}

#[test]
fn when_the_host_ended_enter_starts_it_again() {
    let mut bench = alice(State::Idle);
    bench.type_in("a draft");
    bench.msg(Msg::HostEnded);
    assert!(bench.screen().contains("the host ended · Enter starts it again"));
    assert!(matches!(bench.press("enter")[..], [Effect::Reconnect]));
    let watched = bench.msg(Msg::Connected);
    assert_eq!(calls(&watched), [(None, &Method::Watch)]);
    assert_eq!(bench.draft(), "a draft");
}

#[test]
fn when_the_host_ended_enter_starts_it_again_from_every_pane_and_from_a_card() {
    for keys in [&["ctrl-n"][..], &["ctrl-x", "t"], &["ctrl-x", "r"]] {
        let mut bench = alice(State::Idle);
        bench.shown(pod("bob", State::Failed));
        keys.iter().for_each(|key| drop(bench.press(key)));
        bench.msg(Msg::HostEnded);
        let screen = bench.screen();
        assert!(screen.contains("the host ended · Enter starts it again"), "{screen}");
        assert!(matches!(bench.press("enter")[..], [Effect::Reconnect]), "{keys:?}");
    }
}

#[test]
fn without_a_host_states_are_unknown_and_no_clock_runs() {
    let mut bench = alice(State::Running);
    bench.shown(PodInfo { why: Some("which one?".into()), ..pod("bob", State::NeedsYou) });
    bench.shown(pod("docs", State::Stopped));
    let approval = Box::new(approval("q", "bob", "cargo fetch"));
    bench.host(Some("bob"), Event::ApprovalRequested { approval });
    bench.app.setup.reconnects = false;
    bench.wait(100);
    bench.msg(Msg::HostEnded);
    let screen = bench.screen();
    assert!(screen.contains("? alice") && screen.contains("? bob"), "{screen}");
    assert!(screen.contains("1 stopped"), "{screen}");
    for shown in ["running", "needs you", "which one", "2:00"] {
        assert!(!screen.contains(shown), "{shown}: {screen}");
    }
    bench.wait(10_000);
    assert_eq!((bench.app.wakes_at(), bench.screen()), (None, screen));
}

#[test]
fn a_host_started_by_another_program_is_found_within_a_second_and_watched() {
    let mut bench = alice(State::Running);
    let ended = bench.now;
    assert!(bench.msg(Msg::HostEnded).is_empty());
    let looks = |bench: &mut Bench, millis: u64| {
        bench.now += millis;
        bench.msg(Msg::Wake).iter().filter(|e| matches!(e, Effect::FindHost)).count()
    };
    assert_eq!(bench.app.wakes_at(), Some(ended + 1_000));
    assert_eq!((looks(&mut bench, 999), looks(&mut bench, 1)), (0, 1));
    assert_eq!(looks(&mut bench, 60_000), 0, "one at a time");
    assert!(bench.msg(Msg::NotFound(None)).is_empty());
    assert_eq!(looks(&mut bench, 999), 0, "at most one a second");
    bench.msg(Msg::NotFound(Some("it speaks protocol 2, this is 1".into())));
    assert_eq!(looks(&mut bench, 1_000), 1);
    let watched = bench.msg(Msg::Connected);
    assert_eq!(calls(&watched), [(None, &Method::Watch)]);
    let pods = vec![pod("alice", State::Idle), pod("bob", State::Idle)];
    bench.host(None, family_of(pods));
    assert!(bench.screen().contains("○ alice"), "{}", bench.screen());
    assert_eq!(looks(&mut bench, 60_000), 0);
}

#[test]
fn an_unseen_result_is_seen_once_it_is_shown() {
    let mut bench = Bench::new(vec![]);
    bench.shown(PodInfo { unseen: true, ..pod("alice", State::Idle) });
    bench.type_in(":open alice");
    bench.press("enter");
    let seen = |effects: &[Effect]| calls(effects).contains(&(Some("alice"), &Method::Seen));
    assert!(seen(&bench.app.prepare_frame()));
    assert!(!seen(&bench.app.prepare_frame()));
}

#[test]
fn the_host_learns_which_pods_a_screen_shows_and_again_after_a_new_connection() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("bob", State::Idle)]);
    let learned = |bench: &mut Bench| -> Vec<Vec<PodName>> {
        let effects = bench.app.prepare_frame();
        let shows = effects.into_iter().filter_map(|effect| match effect {
            Effect::Call { pod: None, method: Method::Show { pods, .. }, .. } => Some(pods),
            _ => None,
        });
        shows.collect()
    };
    let name = |name: &str| pod(name, State::Idle).name;
    bench.go_to("alice");
    learned(&mut bench);
    bench.go_to("bob");
    assert_eq!(learned(&mut bench), [[name("bob")]]);
    assert_eq!(learned(&mut bench), [[]; 0]);
    bench.msg(Msg::HostEnded);
    bench.go_to("alice");
    assert_eq!(learned(&mut bench), [[]; 0], "there is no host");
    bench.msg(Msg::Connected);
    assert_eq!(learned(&mut bench), [[name("alice")]]);
}

#[test]
fn a_screen_follows_the_pods_whose_transcripts_it_keeps_and_says_so_before_it_reads_their_pages() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("bob", State::Idle)]);
    let calls_of = |bench: &mut Bench| -> Vec<String> {
        let effects = bench.app.prepare_frame();
        let calls = effects.into_iter().filter_map(|effect| match effect {
            Effect::Call { pod: None, method: Method::Show { follows, .. }, .. } => Some(
                follows
                    .unwrap_or_default()
                    .iter()
                    .map(PodName::as_str)
                    .collect::<Vec<_>>()
                    .join(" "),
            ),
            Effect::Call { pod, method: Method::Page { .. }, .. } => {
                pod.map(|pod| format!("page of {pod}"))
            }
            _ => None,
        });
        calls.collect()
    };
    bench.go_to("alice");
    assert_eq!(calls_of(&mut bench), ["alice", "page of alice"]);
    bench.go_to("bob");
    assert_eq!(calls_of(&mut bench), ["alice bob", "page of bob"]);
    bench.go_to("alice");
    assert_eq!(calls_of(&mut bench), ["alice bob"], "its transcript missed nothing");
}

#[test]
fn an_idle_screen_never_wakes() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("bob", State::Paused)]);
    bench.wait(60_000);
    assert_eq!(bench.app.wakes_at(), None);
    bench.shown(pod("bob", State::Running));
    assert_eq!(bench.app.wakes_at(), Some(NOON + 181_000));
}

#[test]
fn a_row_says_what_its_pod_does_for_two_seconds_and_why_it_waits_at_once() {
    let mut bench = Bench::new(vec![pod("alice", State::Running), pod("bob", State::Idle)]);
    bench.size(120, 40);
    bench.go_to("bob");
    let begun = bench.now;
    let does = |activity: &str| PodInfo {
        activity: Some(activity.into()),
        since: begun,
        last_activity: begun,
        ..pod("alice", State::Running)
    };
    let row = |bench: &mut Bench| {
        let screen = bench.screen();
        screen.lines().find(|line| line.contains("alice")).expect("a row").to_owned()
    };
    bench.shown(does("Read one"));
    assert!(row(&mut bench).contains("Read one"), "{}", row(&mut bench));
    bench.wait(500);
    bench.shown(does("Read two"));
    bench.wait(500);
    bench.shown(does("Read three"));
    assert!(row(&mut bench).contains("Read one"), "{}", row(&mut bench));
    assert_eq!(bench.app.wakes_at(), Some(begun + 2_000));
    bench.wait(1_000);
    assert!(row(&mut bench).contains("Read three"), "{}", row(&mut bench));
    bench.shown(does("Read four"));
    bench.shown(does("Read three"));
    bench.wait(2_000);
    assert!(row(&mut bench).contains("Read three"), "{}", row(&mut bench));
    bench.shown(does("Read five"));
    bench.shown(PodInfo { why: Some("no key for x".into()), ..pod("alice", State::NeedsYou) });
    assert!(row(&mut bench).contains("no key for x"), "{}", row(&mut bench));
    bench.wait(2_000);
    assert!(row(&mut bench).contains("no key for x"), "{}", row(&mut bench));
}

#[test]
fn a_notice_wakes_the_screen_once_to_leave_it() {
    let mut bench = alice(State::Idle);
    bench.press("ctrl-n");
    let end = bench.app.wakes_at().expect("the notice ends");
    bench.wait(end - (NOON + 120_000));
    assert_eq!((bench.notice(), bench.app.wakes_at()), ("", None));
}

#[test]
fn a_key_of_the_palette_never_runs_what_ends_a_pod() {
    let mut bench = alice(State::Idle);
    bench.press("ctrl-p");
    bench.type_in(":stop");
    assert!(bench.press("enter").is_empty());
    assert!(matches!(bench.app.layers.top(), Some(Layer::Prompt(_))));
}

#[test]
fn a_rewind_lists_the_messages_to_go_back_to() {
    let mut bench = alice(State::Idle);
    bench.type_in(":rewind");
    let asked = bench.press("enter");
    assert_eq!(calls(&asked), [(Some("alice"), &Method::ListRewindTargets)]);
    // The host lists the last message first, and so does the screen.
    let targets = vec![rewind_target(2, "now the docs"), rewind_target(1, "fix the tests")];
    let id = targets[0].id;
    answer(
        &mut bench,
        asked,
        Event::RewindTargets { head_entries: 12, targets, undo: None, redo: None },
    );
    let screen = bench.screen();
    assert!(
        screen.contains("2  now the docs") && screen.contains("drops 2 messages, 1 tool call"),
        "{screen}"
    );
    assert_eq!(calls(&bench.press("enter")), []);
    let rewound = bench.confirm("enter");
    let rewind = Method::Rewind { target: id, expected_head_entries: 12 };
    assert_eq!(calls(&rewound), [(Some("alice"), &rewind)]);
}

/// What the list on top shows for a search.
fn found(bench: &mut Bench, search: &str) -> String {
    bench.type_in(search);
    let screen = bench.screen();
    bench.press("esc");
    bench.wait(1_000);
    screen
}

#[test]
fn the_list_of_keys_finds_a_verb_by_its_name() {
    let mut bench = alice(State::Idle);
    for (search, shown) in [("split", "Ctrl+X v  :split"), ("tour", ":tour"), ("quit", ":quit")] {
        bench.type_in(":keys");
        bench.press("enter");
        let screen = found(&mut bench, search);
        assert!(screen.contains(shown), "{search}: {screen}");
    }
}

#[test]
fn the_list_of_keys_is_searched_by_what_a_key_does_and_names_keys_that_do_not_arrive() {
    let mut bench = alice(State::Idle);
    let list = |bench: &mut Bench, search: &str| {
        bench.type_in(":keys");
        bench.press("enter");
        found(bench, search)
    };
    let screen = list(&mut bench, "half page");
    assert!(screen.contains("half a page up  (transcript)"), "{screen}");
    assert!(!list(&mut bench, "newline").contains("arrives as"), "the terminal has not replied");
    bench.msg(Msg::Terminal(Reply::Attributes));
    let screen = list(&mut bench, "newline");
    assert!(screen.contains("newline  (composer), arrives as Enter"), "{screen}");
    bench.app.setup.env.insert("TERM_PROGRAM".into(), "vscode".into());
    let screen = list(&mut bench, "VS Code");
    assert!(screen.contains("keeps Ctrl+P, Ctrl+E, Ctrl+Q, F1"), "{screen}");
    assert!(screen.contains("(everywhere), kept by VS"), "{screen}");
    bench.msg(Msg::Terminal(Reply::Chords));
    assert!(!list(&mut bench, "newline").contains("arrives as"));
}

#[test]
fn names_of_keys_come_from_the_keymap() {
    let mut bench = alice(State::Idle);
    let text = "[everywhere]\n\"ctrl-x\" = \"\"\n\"ctrl-e\" = \"leader\"\n";
    assert_eq!(crate::screen::keys::read(&mut bench.app.keymap, "keymap.toml", text), []);
    bench.type_in(":keys");
    bench.press("enter");
    let screen = found(&mut bench, "split");
    assert!(screen.contains("Ctrl+E v  :split") && !screen.contains("Ctrl+X"), "{screen}");
}
