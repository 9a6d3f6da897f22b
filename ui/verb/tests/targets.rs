//! Selectors: `@idle`, `alice/**`, `alice/*`.

use super::*;
use crate::screen::app::tests::{approval, finished, pod as info};
use crate::screen::pane::glyph::Glyphs;
use crate::verb::targets::{Target, meant, selectors};
use std::collections::BTreeSet;
use yoi::client::family::inbox::needs;
use yoi::protocol::PodInfo;

/// alice with scout, whose child is probe, and tester; bob, who is done; old, which is stopped; far, in another directory.
fn house() -> Family {
    let below = |parent: &str, info: PodInfo| PodInfo { parent: Some(pod(parent)), ..info };
    let mut family = Family::default();
    let pods = vec![
        info("alice", State::Running),
        below("alice", info("scout", State::Idle)),
        below("scout", info("probe", State::Failed)),
        below("alice", info("tester", State::NeedsYou)),
        PodInfo { unseen: true, last_result: Some(finished()), ..info("bob", State::Idle) },
        info("old", State::Stopped),
        PodInfo { workspace: "/far/shop".into(), ..info("far", State::Idle) },
        PodInfo { ephemeral: true, ..below("alice", info("gone", State::Stopped)) },
    ];
    family.replace(pods, Vec::new(), vec![approval("q", "tester", "ls")]);
    family
}

/// The names that a word means for a verb that fits every Pod.
fn found(family: &Family, word: &str) -> Vec<String> {
    let env = BTreeMap::new();
    let target: Target = word.parse().unwrap_or_else(|why| panic!("{word}: {why}"));
    let meant = meant(&known_in(family, &env, Way::Line), &[target], |_| true);
    let pods = meant.unwrap_or_else(|end| panic!("{word}: {end:?}")).pods;
    pods.iter().map(PodName::to_string).collect()
}

/// The first step of a line among the Pods of [`house`].
fn step(line: &str) -> Next {
    let (family, env) = (house(), BTreeMap::new());
    let mut read = read(line, Way::Line).unwrap_or_else(|why| panic!("{line}: {why}"));
    read.dialogue.next(&known_in(&family, &env, Way::Line), None)
}

fn refusal(line: &str) -> String {
    match step(line) {
        Next::End(End { said: Said::Refused(_, text), .. }) => text,
        other => panic!("{line}: {other:?}"),
    }
}

fn confirmation(line: &str) -> String {
    match step(line) {
        Next::Confirm(confirm) => confirm.question,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_selector_of_a_state_means_the_pods_that_the_tree_shows_in_it() {
    let mut family = house();
    family.set(info("old", State::Paused));
    // Results that were looked at, and one with a child that failed.
    let seen = |name: &str, unseen| PodInfo {
        unseen,
        last_result: Some(finished()),
        ..info(name, State::Idle)
    };
    family.set(seen("carol", false));
    family.set(seen("dave", true));
    family.set(PodInfo { parent: Some(pod("dave")), ..info("kid", State::Failed) });
    assert_eq!(found(&family, "@done"), ["bob", "dave"]);
    assert_eq!(found(&family, "@idle"), ["scout", "far", "carol"]);
    for word in ["failed", "idle", "running", "paused", "done"] {
        let shown = family.listed().filter(|info| Glyphs::Unicode.state_sign(info).word == word);
        let shown: Vec<String> = shown.map(|info| info.name.to_string()).collect();
        assert!(!shown.is_empty(), "{word}");
        assert_eq!(found(&family, &format!("@{word}")), shown, "{word}");
    }
}

#[test]
fn the_selector_needs_means_the_pods_of_the_requests_that_the_bar_counts() {
    let mut family = house();
    // A request may come before the state of its Pod, and a Pod may need a person without any request.
    family.requested(approval("r", "scout", "make"));
    family.set(info("old", State::NeedsYou));
    let of_item = |item: &yoi::client::family::inbox::Item<'_>| item.pod().map(PodName::to_string);
    let counted: BTreeSet<String> = needs(&family).iter().filter_map(of_item).collect();
    assert_eq!(counted.len(), 3);
    assert_eq!(found(&family, "@needs").into_iter().collect::<BTreeSet<_>>(), counted);
}

#[test]
fn a_part_of_the_tree_is_a_pod_with_all_below_it_or_its_children() {
    let family = house();
    assert_eq!(found(&family, "alice/**"), ["alice", "scout", "tester", "probe"]);
    assert_eq!(found(&family, "ALICE/*"), ["scout", "tester"]);
    assert_eq!(found(&family, "bob/**"), ["bob"]);
}

#[test]
fn a_selector_takes_only_pods_to_which_its_verb_does_something() {
    assert_eq!(confirmation("pause alice/**"), "pause alice, tester?");
    assert_eq!(confirmation("stop scout/** @done scout"), "stop bob, scout, probe?");
    assert_eq!(confirmation("resume alice/**"), "continue the runs of probe?");
    assert_eq!(confirmation("cancel alice/*"), "drop the runs of tester?");
    assert_eq!(
        refusal("rm alice/**"),
        "alice/** matches alice, scout, tester, probe, but this verb does nothing to any of them"
    );
}

#[test]
fn a_verb_that_does_nothing_to_any_of_the_named_pods_has_no_confirmation() {
    for (line, states) in [
        ("pause scout far", "scout (idle), far (idle)"),
        ("cancel scout far", "scout (idle), far (idle)"),
        ("resume alice scout", "scout (idle), alice (running)"),
        ("compact alice tester", "alice (running), tester (needs you)"),
        ("stop old gone", "old (stopped), gone (stopped)"),
    ] {
        assert_eq!(refusal(line), format!("nothing to do: {states}"), "{line}");
    }
    assert_eq!(confirmation("pause alice scout"), "pause alice, scout?");
}

#[test]
fn a_selector_that_matches_none_is_refused_before_anything_is_done() {
    assert_eq!(refusal("stop @done bob/*"), "bob/* matches no Pod");
    assert_eq!(
        refusal("stop nobody/**"),
        "there is no pod `nobody`: the tree shows those there are"
    );
}

#[test]
fn a_verb_for_one_pod_names_those_of_a_selector_that_matches_several() {
    for verb in ["open", "explain", "split", "mesh join", "pin 3"] {
        assert_eq!(
            refusal(&format!("{verb} @idle")),
            "@idle matches 2 Pods, and one is needed here: scout, far",
            "{verb}"
        );
    }
    let Next::End(end) = step("open @done") else { panic!("one Pod is done") };
    assert_eq!(end.action, Some(Action::GoTo(pod("bob"))));
}

#[test]
fn a_confirmation_says_in_which_directory_a_pod_of_another_workspace_is() {
    assert_eq!(confirmation("stop @idle"), "stop far (in shop), scout?");
    assert_eq!(
        confirmation("stop alice/**"),
        "stop 4 Pods: alice, scout, tester, probe?\nnot finished: alice, tester"
    );
    assert_eq!(confirmation("stop bob far"), "stop bob, far?", "a person typed these names");
}

#[test]
fn even_one_pod_that_a_selector_found_is_named_in_a_confirmation() {
    assert_eq!(confirmation("stop @failed"), "stop probe?");
    assert_eq!(confirmation("rm old/**"), "delete old and its transcript for good?");
}

#[test]
fn a_word_that_is_no_selector_says_which_there_are() {
    let wrong = |line| read(line, Way::Line).err().unwrap_or_else(|| panic!("{line} was read"));
    let known = "@needs, @failed, @idle, @running, @paused, @done";
    assert_eq!(wrong("stop @ready"), format!("unknown selector `@ready`; known: {known}"));
    assert!(wrong("stop al ice/").starts_with("invalid pod name: ice/ "));
    assert!(wrong("stop */**").starts_with("invalid pod name: * "));
}

#[test]
fn the_selectors_that_match_are_offered_with_what_they_match() {
    let offered = selectors(&house());
    let of =
        |text: &str| offered.iter().find(|(name, _)| name == text).map(|(_, help)| help.as_str());
    assert_eq!(of("@idle"), Some("scout, far"));
    assert_eq!(of("alice/**"), Some("alice and all below it"));
    assert_eq!(of("scout/*"), Some("the children of scout"));
    let mut many = Family::default();
    let pods = (1..=8).map(|at| info(&format!("p{at}"), State::Paused));
    many.replace(pods.collect(), Vec::new(), Vec::new());
    let paused = ("@paused".to_owned(), "p1, p2, p3, p4, p5, p6 and 2 more".to_owned());
    assert_eq!(selectors(&many), [paused]);
    assert_eq!((of("bob/**"), selectors(&Family::default())), (None, Vec::new()));
}
