//! Questions in the inbox, and their answers.

use super::*;
use serde_json::json;
use yoi::protocol::{ApprovalRequest, Question, Verdict};

fn question(id: &str, pod: &str, choices: &[&str]) -> ApprovalRequest {
    let choices = choices.iter().map(|choice| (*choice).to_owned()).collect();
    ApprovalRequest {
        tool: "AskPerson".into(),
        question: Some(Question::of_model(choices)),
        because: "your answer".into(),
        reason: None,
        once_only: true,
        ..approval(id, pod, "Which name for the sum?\nThe issue says total.")
    }
}

/// The inbox with these questions, in front of the person for a while.
fn asked(questions: &[ApprovalRequest]) -> Bench {
    let mut bench = Bench::new(vec![pod("alice", State::NeedsYou), pod("bob", State::NeedsYou)]);
    bench.size(100, 30);
    for question in questions {
        let approval = Box::new(question.clone());
        bench.host(None, Event::ApprovalRequested { approval });
    }
    bench.press("ctrl-n");
    bench.screen();
    bench.wait(1_000);
    bench
}

fn answers(effects: &[Effect]) -> Vec<String> {
    let verdict = |method: &Method| match method {
        Method::Decide { verdict: Verdict::Answer { values }, .. } => {
            Some(serde_json::to_string(values).expect("values"))
        }
        Method::Decide { verdict, .. } => Some(format!("{verdict:?}")),
        _ => None,
    };
    calls(effects).into_iter().filter_map(|(_, method)| verdict(method)).collect()
}

#[test]
fn a_digit_selects_and_enter_sends() {
    a_choice_is_sent();
}

pub fn a_choice_is_sent() {
    let mut bench = asked(&[question("q", "alice", &["total", "sum", "both"])]);
    insta::assert_snapshot!("question", bench.screen());
    assert_eq!(answers(&bench.press("2")), [""; 0], "a digit only selects");
    let screen = bench.screen();
    let mut rows = screen.lines().rev();
    assert!(rows.next().unwrap_or_default().contains("Enter sends · Esc back"), "{screen}");
    assert!(rows.next().unwrap_or_default().starts_with(" answer › sum"), "{screen}");
    assert_eq!(answers(&bench.press("enter")), [r#"{"answer":"sum"}"#]);
    let values = json!({"answer": "sum"}).as_object().cloned().expect("values");
    let verdict = Verdict::Answer { values };
    bench.host(None, Event::ApprovalDecided { approval: "q".into(), pod: name("alice"), verdict });
    let said = "alice: answered: sum · question: Which name for the sum?⏎The issue says total.";
    assert_eq!(bench.notice(), said);
}

#[test]
fn an_answer_in_ones_own_words_is_checked_before_it_is_sent() {
    let mut bench = asked(&[question("q", "alice", &["total", "sum"])]);
    bench.press("a");
    bench.type_in("7");
    assert_eq!(answers(&bench.press("enter")), [""; 0]);
    let wrong = r#""7" is none of the choices: 1 total, 2 sum"#;
    assert!(bench.screen().contains(wrong), "{}", bench.screen());
    bench.press("backspace");
    bench.type_in("keep both");
    assert_eq!(answers(&bench.press("enter")), [r#"{"answer":"keep both"}"#]);
}

#[test]
fn a_key_opens_the_line_and_esc_leaves_the_question_open() {
    let mut bench = asked(&[question("q", "alice", &[])]);
    bench.press("a");
    assert!(bench.screen().contains("\n answer ›"), "{}", bench.screen());
    assert_eq!(answers(&bench.press("esc")), [""; 0]);
    assert_eq!(bench.app.family.approvals().len(), 1);
    for key in ["A", "T"] {
        bench.wait(1_000);
        assert_eq!(answers(&bench.press(key)), [""; 0]);
        assert_eq!(bench.notice(), "no rule answers a question", "{key}");
    }
    bench.wait(1_000);
    bench.press("D");
    bench.type_in("no idea");
    assert_eq!(answers(&bench.press("enter")), [r#"Deny { reason: "no idea" }"#]);
}

#[test]
fn a_key_that_only_opens_the_line_of_an_answer_counts_at_once_and_enter_after_the_card_was_read() {
    let mut bench = Bench::new(vec![pod("alice", State::NeedsYou)]);
    let approval = Box::new(question("q", "alice", &["total", "sum"]));
    bench.host(None, Event::ApprovalRequested { approval });
    bench.press("ctrl-n");
    bench.wait(100);
    assert!(answers(&bench.press("1")).is_empty());
    assert!(bench.screen().contains("answer › total"), "{}", bench.screen());
    assert!(answers(&bench.press("enter")).is_empty(), "the question was not read");
    assert!(bench.screen().contains("answer › total"), "the line stays: {}", bench.screen());
    bench.press("esc");
    bench.wait(100);
    bench.press("a");
    bench.type_in("please use blue");
    bench.wait(200);
    assert_eq!(answers(&bench.press("enter")), [r#"{"answer":"please use blue"}"#]);
}

#[test]
fn a_digit_before_the_question_could_be_read_is_ignored() {
    let mut bench = asked(&[question("q", "alice", &["total", "sum"])]);
    bench.host(
        None,
        Event::ApprovalDecided {
            approval: "q".into(),
            pod: name("alice"),
            verdict: Verdict::Withdrawn { why: "the run was cancelled".into() },
        },
    );
    let approval = Box::new(question("r", "bob", &["yes", "no"]));
    bench.host(None, Event::ApprovalRequested { approval });
    bench.press("ctrl-n");
    bench.screen();
    assert_eq!(answers(&bench.press("1")), [""; 0]);
    assert!(!bench.screen().contains("answer ›"), "{}", bench.screen());
}

#[test]
fn equal_questions_are_answered_together_and_different_ones_are_not() {
    let same = question("r", "bob", &["total"]);
    let mut bench = asked(&[question("q", "alice", &["total"]), same]);
    assert!(bench.screen().contains("2 equal questions: a answers the oldest, M each of them"));
    bench.press("M");
    bench.type_in("1");
    let both = bench.press("enter");
    assert_eq!(answers(&both), [r#"{"answer":"total"}"#, r#"{"answer":"total"}"#]);
    let other = question("r", "bob", &["sum"]);
    let bench = asked(&[question("q", "alice", &["total"]), other]);
    assert_eq!(yoi::client::family::inbox::items(&bench.app.family).len(), 2);
}

#[test]
fn an_open_line_keeps_its_text_and_sends_nothing_once_the_question_is_answered_elsewhere() {
    let mut bench = asked(&[question("q", "alice", &["total"])]);
    bench.press("1");
    let values = json!({"answer": "x"}).as_object().cloned().expect("values");
    let verdict = Verdict::Answer { values };
    bench.host(None, Event::ApprovalDecided { approval: "q".into(), pod: name("alice"), verdict });
    assert!(
        bench.notice().starts_with("decided elsewhere · alice: answered: x · "),
        "{}",
        bench.notice()
    );
    bench.type_in(" and more");
    assert!(bench.press("enter").is_empty());
    let screen = bench.screen();
    for said in ["it was decided elsewhere: nothing is sent", "answer › total and more"] {
        assert!(screen.contains(said), "{said}: {screen}");
    }
    assert!(screen.contains("alice  ") && !screen.contains("Enter sends"), "{screen}");
    bench.press("esc");
    assert!(bench.app.layers.is_empty() && bench.draft().is_empty());
    bench.wait(1_000);
    bench.press("esc");
    bench.press("up");
    assert_eq!(bench.draft(), "total and more", "the history has it");
}

#[test]
fn a_text_for_a_pod_with_an_open_question_is_sent_into_the_run_only_after_a_yes() {
    let mut bench = asked(&[question("q", "alice", &[])]);
    bench.go_to("alice");
    bench.type_in("total");
    assert!(calls(&bench.press("enter")).is_empty());
    let screen = bench.screen();
    assert!(screen.contains("would not be the answer") && screen.contains("Ctrl+N"), "{screen}");
    bench.press("esc");
    assert_eq!(bench.draft(), "total");
    bench.press("enter");
    let input = vec![yoi::protocol::Segment::Text { content: "total".into() }];
    let steer = Method::Steer { id: None, input };
    assert_eq!(calls(&bench.confirm("enter")), [(Some("alice"), &steer)]);

    let mut bench = asked(&[question("q", "bob", &[])]);
    bench.go_to("alice");
    bench.type_in("total");
    assert_eq!(calls(&bench.press("enter")).len(), 1, "another Pod asks");
}

#[test]
fn a_key_that_finds_nothing_to_choose_in_a_line_says_so() {
    let mut bench = asked(&[question("q", "alice", &[])]);
    bench.press("a");
    bench.type_in("total");
    for key in ["ctrl-n", "ctrl-p", "tab", "up", "down"] {
        assert!(bench.press(key).is_empty());
        let said = "there is nothing to choose from here · Esc: back";
        assert!(bench.screen().contains(said), "{key}: {}", bench.screen());
        bench.type_in("s");
        assert!(!bench.screen().contains(said), "{key}: {}", bench.screen());
    }
}

#[test]
fn hints_follow_a_notice_as_far_as_there_is_room() {
    let mut bench = Bench::new(vec![pod("alice", State::Running)]);
    bench.size(100, 30);
    bench.host(
        Some("alice"),
        yoi::protocol::Event::Alert(yoi::protocol::Alert {
            level: yoi::protocol::AlertLevel::Warn,
            source: yoi::protocol::AlertSource::Pod,
            message: "the disk is slow".into(),
            timestamp_ms: 0,
        }),
    );
    let bar = |bench: &mut Bench| bench.screen().lines().last().unwrap_or_default().to_owned();
    let row = bar(&mut bench);
    assert!(row.contains("the disk is slow") && row.contains("   Esc pauses · "), "{row}");
    assert!(row.trim_end().ends_with("F1 help"), "{row}");
    bench.size(40, 30);
    let row = bar(&mut bench);
    assert!(row.contains("the disk is slow") && !row.contains("Ctrl+P"), "{row}");
}

#[test]
fn f1_explains_the_line_of_a_key_and_the_keys_after_the_leader() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.size(120, 40);
    bench.press("ctrl-x");
    bench.press("f1");
    assert!(bench.screen().contains("After Ctrl+X"), "{}", bench.screen());
    bench.press("f1");
    bench.type_in(":connect anthropic");
    let effects = bench.press("enter");
    let [Effect::KeyStep(verb, _)] = effects[..] else { panic!("{effects:?}") };
    let needs = crate::verb::dialogue::KeyReply::Tried(yoi::llm::trial::Tried::NeedsKey);
    bench.msg(Msg::KeyStepDone(verb, needs));
    bench.type_in("sk-0123");
    bench.press("f1");
    let screen = bench.screen();
    for said in ["Typing a key", "leaves the line and forgets", "7 characters, not shown"] {
        assert!(screen.contains(said), "{said}: {screen}");
    }
    bench.press("f1");
    assert!(!bench.screen().contains("Typing a key"), "{}", bench.screen());
}

#[test]
fn escape_closes_the_help_before_the_line_list_or_sheet_that_it_is_about() {
    for (opens, shows) in [(":stop alice", "stop alice"), ("ctrl-p", "type to search")] {
        let mut bench = Bench::new(vec![pod("alice", State::Running)]);
        bench.size(120, 40);
        match opens {
            "ctrl-p" => bench.press(opens),
            _ => bench.type_in(opens),
        };
        let is_open =
            |bench: &mut Bench| !bench.app.layers.is_empty() && bench.screen().contains(shows);
        bench.press("f1");
        assert!(is_open(&mut bench) && bench.app.page.is_some(), "{}", bench.screen());
        bench.press("esc");
        assert!(is_open(&mut bench) && bench.app.page.is_none(), "{}", bench.screen());
        bench.press("f1");
        bench.press("f1");
        assert!(is_open(&mut bench) && bench.app.page.is_none(), "{}", bench.screen());
        bench.press("f1");
        bench.press("esc");
        bench.press("esc");
        assert!(bench.app.layers.is_empty(), "{}", bench.screen());
    }
    // Typed below its help, a key never reaches the line of a message.
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.type_in(":connect anthropic");
    let effects = bench.press("enter");
    let [Effect::KeyStep(verb, _)] = effects[..] else { panic!("{effects:?}") };
    let needs = crate::verb::dialogue::KeyReply::Tried(yoi::llm::trial::Tried::NeedsKey);
    bench.msg(Msg::KeyStepDone(verb, needs));
    bench.press("f1");
    bench.press("esc");
    bench.type_in("sk-0123");
    assert!(bench.screen().contains("7 characters, not shown"), "{}", bench.screen());
    // The help ends with what it is about.
    bench.press("f1");
    bench.press("ctrl-c");
    assert!(bench.app.layers.is_empty() && bench.app.page.is_none(), "{}", bench.screen());
}

/// A Pod whose run goes in circles.
fn in_circles(name: &str) -> PodInfo {
    let circling = yoi::protocol::Circling {
        kind: yoi::protocol::CircleKind::Failure,
        times: 6,
        call: "Bash cargo test".into(),
        since: crate::screen::app::tests::NOON,
    };
    PodInfo { circling: Some(circling), ..pod(name, State::Running) }
}

#[test]
fn on_a_card_with_the_keys_verbs_and_the_key_that_pauses_mean_its_pod_and_the_draft_stays() {
    let mut bench = Bench::new(vec![pod("alice", State::Running), in_circles("lint")]);
    bench.go_to("alice");
    bench.type_in("and then");
    bench.press("ctrl-n");
    assert_eq!(calls(&bench.press("ctrl-c")), [(Some("lint"), &Method::Pause)]);
    bench.press(":");
    bench.type_in("cancel");
    assert_eq!(calls(&bench.press("enter")), [(Some("lint"), &Method::Cancel)]);
    // Its run ends meanwhile: the key leads back to the draft, as from every other card.
    bench.shown(pod("lint", State::Idle));
    bench.wait(1_000);
    assert_eq!(calls(&bench.press("ctrl-c")), []);
    assert_eq!((bench.app.focus, bench.draft().as_str()), (Focus::Composer, "and then"));
    bench.wait(1_000);
    assert_eq!(calls(&bench.press("ctrl-c")), [(Some("alice"), &Method::Pause)]);
}

#[test]
fn a_digit_writes_the_verb_for_a_run_in_circles_and_only_enter_sends_it() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle), in_circles("lint")]);
    bench.go_to("alice");
    bench.press("ctrl-n");
    let screen = bench.screen();
    for words in
        ["lint  same failure 6×", "1 of 1", "Bash cargo test", "1 nudge  2 pause  3 stop  i write"]
    {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    assert_eq!(bench.app.current, Some(name("alice")), "the current Pod and its draft stay");
    assert!(calls(&bench.press("2")).is_empty());
    assert!(bench.screen().contains("\n :pause lint"), "{}", bench.screen());
    let sent = bench.press("enter");
    assert_eq!(calls(&sent), [(Some("lint"), &Method::Pause)]);
}

#[test]
fn a_nudge_enters_the_run_from_its_card_and_the_person_stays_where_one_was() {
    let lint = in_circles("lint");
    let nudged = |others: Vec<PodInfo>| {
        let mut bench =
            Bench::new([vec![pod("alice", State::Idle), lint.clone()], others].concat());
        bench.go_to("alice");
        bench.type_in("look at");
        bench.press("ctrl-n");
        bench
    };
    let mut bench = nudged(vec![PodInfo { unseen: true, ..pod("fmt", State::Idle) }]);
    assert!(calls(&bench.press("1")).is_empty());
    assert!(bench.screen().contains("message › "), "{}", bench.screen());
    let sent = bench.press("enter");
    let [(Some("lint"), Method::Steer { id: None, .. })] = calls(&sent)[..] else {
        panic!("{sent:?}")
    };
    assert_eq!((bench.app.current.clone(), bench.draft()), (Some(name("alice")), "look at".into()));
    let screen = bench.screen();
    assert!(
        screen.contains("✓ fmt  done") && !bench.app.is_card_awake(),
        "the next card: {screen}"
    );
    answer(&mut bench, sent, Event::done());
    assert_eq!(bench.notice(), "sent to lint");
    // The run ends while the message stands in the line.
    let mut bench = nudged(Vec::new());
    bench.press("1");
    bench.type_in(" Stop.");
    bench.shown(pod("lint", State::Idle));
    assert!(calls(&bench.press("enter")).is_empty(), "it would begin another run");
    let screen = bench.screen();
    assert!(screen.contains("it does not need you any more: idle"), "{screen}");
    bench.press("esc");
    let kept = bench.app.composer.history.newest_first().next().map(|sent| sent.text.clone());
    assert!(kept.is_some_and(|text| text.ends_with(" Stop.")));
}

#[test]
fn a_request_comes_before_the_pods_that_failed() {
    let failed = [pod("bench", State::Failed), pod("lint", State::Failed)];
    let mut bench = Bench::new([vec![pod("alice", State::NeedsYou)], failed.to_vec()].concat());
    let approval = Box::new(approval("q", "alice", "cargo fetch"));
    bench.host(Some("alice"), Event::ApprovalRequested { approval });
    bench.press("ctrl-n");
    let screen = bench.screen();
    assert!(screen.contains("▲ alice  wants an approval") && screen.contains("1 of 3"), "{screen}");
    bench.press("down");
    let screen = bench.screen();
    assert!(screen.contains("bench  failed") && screen.contains("2 of 3"), "{screen}");
}

#[test]
fn the_loop_goes_past_a_request_that_stays_and_back_to_one_that_came_meanwhile() {
    let failed = [pod("bench", State::Failed), pod("lint", State::Failed)];
    let needs = [pod("alice", State::NeedsYou), pod("bob", State::NeedsYou)];
    let mut bench = Bench::new([needs.to_vec(), failed.to_vec()].concat());
    let request = |bench: &mut Bench, pod: &str| {
        let request = yoi::protocol::ApprovalRequest {
            since: bench.app.now,
            ..approval(pod, pod, &format!("cargo fetch {pod}"))
        };
        bench.host(Some(pod), Event::ApprovalRequested { approval: Box::new(request) });
    };
    request(&mut bench, "alice");
    bench.shown(pod("bob", State::Running));
    let card = |bench: &mut Bench| {
        bench.press("ctrl-n");
        bench.wait(1_000);
        bench.app.asker_of_card()
    };
    for pod in ["alice", "bench", "lint", "alice", "bench"] {
        assert_eq!(card(&mut bench), pod);
    }
    bench.shown(pod("bob", State::NeedsYou));
    request(&mut bench, "bob");
    for pod in ["bob", "bench", "lint", "alice", "bob"] {
        assert_eq!(card(&mut bench), pod);
    }
}

#[test]
fn a_digit_counts_on_a_small_screen_once_the_question_and_its_choices_are_in_view() {
    let mut bench = asked(&[question("q", "alice", &["total", "sum"])]);
    bench.size(40, 12);
    bench.press("ctrl-n");
    let screen = bench.screen();
    assert!(screen.contains("2 sum") && !screen.contains("words of your own"), "{screen}");
    bench.confirm("2");
    assert!(bench.screen().contains("answer › sum"), "{}", bench.screen());
}

#[test]
fn words_behind_a_choice_that_were_left_are_there_again_with_its_digit() {
    let mut bench = asked(&[question("q", "alice", &["total", "sum"])]);
    bench.press("2");
    bench.type_in(" of all");
    bench.press("esc");
    for (digit, text) in [("2", "sum of all"), ("1", "total"), ("2", "sum of all")] {
        bench.confirm(digit);
        let screen = bench.screen();
        assert!(screen.contains(&format!("answer › {text}")), "{digit}: {screen}");
        bench.press("esc");
    }
}

#[test]
fn the_bar_names_the_keys_of_a_line_that_is_typed_and_of_a_list() {
    let mut bench = asked(&[question("q", "alice", &["total", "sum"])]);
    let bar = |bench: &mut Bench| bench.screen().lines().last().unwrap_or_default().to_owned();
    bench.press("D");
    assert!(bar(&mut bench).contains(" Enter denies · Esc back"), "{}", bench.screen());
    bench.press("esc");
    bench.press("ctrl-x");
    bench.press("p");
    let keys = " type to search · Enter chooses · PageDown more · Esc back";
    assert!(bar(&mut bench).contains(keys), "{}", bench.screen());
}

#[test]
fn a_request_has_no_row_of_notes_beside_its_row_in_the_transcript() {
    let waits = PodInfo { why: Some("may I?".into()), ..pod("alice", State::NeedsYou) };
    let mut bench = Bench::new(vec![waits]);
    bench.go_to("alice");
    assert!(bench.screen().contains("may I?"), "{}", bench.screen());
    let approval = Box::new(approval("q", "alice", "cargo fetch"));
    bench.host(Some("alice"), Event::ApprovalRequested { approval });
    let screen = bench.screen();
    assert!(!screen.contains("│ may I?"), "{screen}");
}
