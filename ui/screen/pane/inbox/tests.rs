use super::*;
use crate::screen::app::tests::{NOON, approval, pod};
use crate::wording::matter::steps;
use yoi::client::family::inbox::{items, needs, waiting};
use yoi::client::family::{Family, Matter};
use yoi::protocol::State;
use yoi::protocol::{ApprovalRequest, PodInfo};
use yoi::protocol::{CircleKind, Circling};

fn family(approvals: Vec<ApprovalRequest>) -> Family {
    let mut family = Family::default();
    let pods = vec![pod("alice", State::NeedsYou), pod("bob", State::NeedsYou)];
    family.replace(pods, Vec::new(), approvals);
    family
}

#[test]
fn equal_requests_are_one_row_and_the_oldest_comes_first() {
    let late = ApprovalRequest { since: NOON + 9, ..approval("1", "bob", "cargo fetch") };
    let early = ApprovalRequest { since: NOON + 1, ..approval("2", "alice", "cargo publish") };
    let same = ApprovalRequest { since: NOON + 20, ..approval("3", "alice", "cargo fetch") };
    let family = family(vec![late, same, early]);
    let parts: Vec<_> = items(&family).iter().map(Item::parts).collect();
    assert_eq!(parts, [vec!["2".to_owned()], vec!["1".into(), "3".into()]]);
}

#[test]
fn a_pod_that_needs_a_person_for_another_reason_is_listed_too() {
    let family = family(vec![approval("1", "alice", "cargo fetch")]);
    let items = items(&family);
    assert_eq!(items.len(), 2);
    assert!(
        items.iter().any(
            |item| matches!(item, Item::Pod(info, Matter::Needs) if info.name.as_str() == "bob")
        )
    );
}

#[test]
fn a_decision_counts_only_some_time_after_the_last_key_and_the_last_change() {
    let mut family = family(vec![approval("1", "alice", "cargo fetch")]);
    let mut inbox = Inbox::default();
    inbox.follow(&items(&family), Attention::Elsewhere);
    assert!(!inbox.is_armed(10_000), "the inbox has no focus");
    inbox.follow(&items(&family), Attention::Here);
    inbox.frame_drawn(10_000);
    assert!(!inbox.is_armed(10_299));
    assert!(inbox.is_armed(10_300));
    family.requested(ApprovalRequest { since: NOON + 50, ..approval("9", "bob", "cargo fetch") });
    inbox.follow(&items(&family), Attention::Here);
    inbox.frame_drawn(10_400);
    assert!(!inbox.is_armed(10_500), "one more equal request makes it another item");
    assert!(inbox.is_armed(10_700));
    inbox.distracted(10_800);
    assert!(!inbox.is_armed(10_900));
}

#[test]
fn the_choice_stays_on_the_chosen_item() {
    let mut family = family(vec![]);
    for (id, since) in [("1", 10), ("2", 20), ("3", 30)] {
        family.requested(ApprovalRequest { since, ..approval(id, "alice", &format!("make {id}")) });
    }
    let mut inbox = Inbox::default();
    inbox.choose(&items(&family), 1);
    family.decided("1");
    inbox.follow(&items(&family), Attention::Here);
    assert_eq!(inbox.chosen(&items(&family)).map(Item::parts), Some(vec!["2".to_owned()]));
    family.decided("2");
    inbox.follow(&items(&family), Attention::Here);
    assert_eq!(inbox.chosen(&items(&family)).map(Item::parts), Some(vec!["3".to_owned()]));
}

#[test]
fn what_waits_for_a_person_comes_before_what_failed_and_what_goes_in_circles() {
    let circling = Circling {
        kind: CircleKind::Failure,
        times: 6,
        call: "Bash cargo test".into(),
        since: NOON,
    };
    let child = |name: &str, parent: &str, state| PodInfo {
        parent: PodName::parse(parent).ok(),
        ..pod(name, state)
    };
    let mut family = Family::default();
    let pods = vec![
        PodInfo { circling: Some(circling.clone()), ..pod("lint", State::Running) },
        PodInfo { circling: Some(circling), ..pod("paused", State::Paused) },
        PodInfo { since: NOON + 2, ..pod("late", State::Failed) },
        pod("bench", State::Failed),
        child("left", "lint", State::Failed),
        pod("bob", State::NeedsYou),
        pod("idle", State::Idle),
    ];
    family.replace(pods, Vec::new(), Vec::new());
    let items = items(&family);
    let names: Vec<&str> =
        items.iter().filter_map(|item| item.pod()).map(PodName::as_str).collect();
    assert_eq!(names, ["bob", "bench", "late", "lint"], "a running parent sees to its child");
    let steps: Vec<Vec<&str>> =
        items.iter().map(|item| steps(item).iter().map(|step| step.does).collect()).collect();
    assert_eq!(
        steps,
        [vec![], vec!["go on", "stop"], vec!["go on", "stop"], vec!["nudge", "pause", "stop"]]
    );
    assert_eq!((waiting(&family), needs(&family).len()), (1, 1));
}
