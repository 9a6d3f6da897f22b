use super::*;
use crate::app::tests::pod;
use std::path::Path;

fn family(pods: Vec<PodInfo>) -> Family {
    let mut family = Family::default();
    family.replace(pods, Vec::new(), Vec::new());
    family
}

fn child(name: &str, parent: &str, state: State) -> PodInfo {
    let parent = PodName::parse(parent).ok();
    PodInfo { parent, ..pod(name, state) }
}

fn tree() -> Tree {
    Tree { workspace: "/repo".into(), ..Tree::default() }
}

/// The rows as text: lines, fold mark, name.
fn shown(tree: &Tree, family: &Family, current: Option<&str>) -> Vec<String> {
    let current = current.and_then(|name| PodName::parse(name).ok());
    let rows = tree.rows(family, current.as_ref());
    rows.iter()
        .map(|row| match row {
            TreeRow::Pod { info, lines, children } => {
                let fold = match children {
                    Children::None => "",
                    Children::Shown => "▾ ",
                    Children::Folded => "▸ ",
                };
                format!("{lines}{fold}{}", info.name)
            }
            TreeRow::Stopped(count) => format!("{count} stopped"),
        })
        .collect()
}

fn lineage() -> Family {
    family(vec![
        pod("alice", State::Running),
        pod("bob", State::Idle),
        child("scout", "alice", State::Running),
        child("deep", "scout", State::Idle),
        child("tester", "alice", State::NeedsYou),
        pod("docs", State::Stopped),
        child("old", "alice", State::Stopped),
    ])
}

#[test]
fn children_hang_below_their_parent_in_the_given_order() {
    assert_eq!(
        shown(&tree(), &lineage(), None),
        ["▾ alice", "├ ▾ scout", "│ └ deep", "└ tester", "bob", "2 stopped"]
    );
}

#[test]
fn a_fold_hides_what_is_below() {
    let mut tree = tree();
    tree.fold(PodName::parse("alice").expect("a name"));
    assert_eq!(shown(&tree, &lineage(), None), ["▸ alice", "bob", "2 stopped"]);
}

#[test]
fn stopped_pods_fold_into_one_row_but_the_current_one_stays() {
    let names = shown(&tree(), &lineage(), Some("docs"));
    assert_eq!(names[4..], ["bob", "docs", "1 stopped"]);
    let mut tree = tree();
    tree.stopped_pods = StoppedPods::Listed;
    assert!(shown(&tree, &lineage(), None).contains(&"docs".to_owned()));
}

#[test]
fn other_workspaces_are_listed_only_when_asked() {
    let far = PodInfo { workspace: "/other".into(), ..pod("far", State::Idle) };
    let family = family(vec![pod("bob", State::Idle), far]);
    let mut tree = tree();
    assert_eq!(shown(&tree, &family, None), ["bob"]);
    assert_eq!(shown(&tree, &family, Some("far")), ["bob", "far"]);
    assert_eq!(family.elsewhere(Path::new("/repo"), None), (1, 1));
    tree.workspaces = Workspaces::All;
    assert_eq!(shown(&tree, &family, None), ["bob", "far"]);
}

#[test]
fn a_filter_lists_what_matches_without_its_lineage() {
    let mut tree = tree();
    tree.filter = Input::new("o");
    assert_eq!(shown(&tree, &lineage(), None), ["bob", "scout", "docs", "old"]);
}

#[test]
fn the_strip_shows_three_that_need_a_person_oldest_first() {
    let waiting = |name: &str, since| PodInfo { since, ..pod(name, State::NeedsYou) };
    let family = family(vec![
        waiting("d", 9),
        waiting("a", 2),
        waiting("b", 1),
        waiting("c", 3),
        pod("x", State::Idle),
    ]);
    let (strip, more) = tree().strip(&family);
    let names: Vec<&str> = strip.iter().map(|info| info.name.as_str()).collect();
    assert_eq!((names, more), (vec!["b", "a", "c"], 1));
}

#[test]
fn an_ephemeral_pod_is_shown_while_it_is_live_or_current_and_not_when_it_is_stopped() {
    let ephemeral = |name: &str, state| PodInfo { ephemeral: true, ..pod(name, state) };
    let family = family(vec![
        pod("alice", State::Idle),
        ephemeral("once", State::Running),
        ephemeral("done", State::Stopped),
        pod("docs", State::Stopped),
    ]);
    assert_eq!(shown(&tree(), &family, None), ["alice", "once", "1 stopped"]);
    let all = Tree { stopped_pods: StoppedPods::Listed, ..tree() };
    assert_eq!(shown(&all, &family, None), ["alice", "once", "docs"]);
    assert_eq!(shown(&all, &family, Some("done")), ["alice", "once", "done", "docs"]);
    assert_eq!(family.likely(Path::new("/repo")).map(|info| info.name.as_str()), Some("alice"));
}
