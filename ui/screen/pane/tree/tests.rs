use super::*;
use crate::screen::app::tests::{NOON, finished, pod};
use crate::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget as _;
use std::path::Path;
use yoi::llm::rehearsal::TOUR_MODEL;

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

/// The rows as text: two columns a level, fold mark, name.
fn shown(tree: &Tree, family: &Family, current: Option<&str>) -> Vec<String> {
    let current = current.and_then(|name| PodName::parse(name).ok());
    let rows = tree.rows(&Sums::of(family), current.as_ref());
    rows.iter()
        .map(|row| match row {
            TreeRow::Pod { info, level, children } => {
                let fold = if *children == Children::Folded { "▸ " } else { "" };
                format!("{}{fold}{}", "  ".repeat(*level), info.name)
            }
            TreeRow::Ended { level, count, .. } => {
                format!("{}{count} ended", "  ".repeat(*level))
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
        ["alice", "  scout", "    deep", "  tester", "bob", "2 stopped"]
    );
}

#[test]
fn the_children_of_the_tour_have_rows_when_they_have_finished() {
    let rows = |model: &str| {
        let top = PodInfo { model: model.into(), ..pod("top", State::Idle) };
        let done =
            |name| PodInfo { last_result: Some(finished()), ..child(name, "top", State::Idle) };
        shown(&tree(), &family(vec![top, done("writer"), done("tester")]), Some("top"))
    };
    assert_eq!(rows(TOUR_MODEL), ["top", "  writer", "  tester"]);
    assert_eq!(rows("other/model").len(), 2, "they are one row elsewhere");
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
    let elsewhere = family.elsewhere(Path::new("/repo"), None);
    assert_eq!((elsewhere.pods, elsewhere.workspaces), (1, 1));
    tree.workspaces = Workspaces::All;
    assert_eq!(shown(&tree, &family, None), ["bob", "far"]);
}

#[test]
fn what_is_below_a_listed_pod_is_listed_however_deep_and_wherever_it_works() {
    let far = |info: PodInfo| PodInfo { workspace: "/other".into(), ..info };
    // The parent of `top` is gone; `one` and `two` are parents of each other, as only a damaged store has them.
    let family = family(vec![
        child("top", "gone", State::Idle),
        far(child("mid", "top", State::Idle)),
        far(child("low", "mid", State::NeedsYou)),
        far(child("one", "two", State::Idle)),
        far(child("two", "one", State::Idle)),
    ]);
    assert_eq!(shown(&tree(), &family, None), ["top", "  mid", "    low"]);
    let elsewhere = family.elsewhere(Path::new("/repo"), None);
    assert_eq!((elsewhere.pods, elsewhere.needs_you), (2, 0));
}

#[test]
fn a_filter_lists_what_matches_without_its_lineage() {
    let mut tree = tree();
    tree.filter = Input::new("o");
    assert_eq!(shown(&tree, &lineage(), None), ["bob", "scout", "docs", "old"]);
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

fn painted(tree: &Tree, family: &Family, (width, height): (u16, u16)) -> Buffer {
    let view = View {
        tree,
        family,
        current: None,
        theme: &Theme::default(),
        zone: &jiff::tz::TimeZone::UTC,
        now: NOON + 240_000,
        focused: false,
        workspaces_key: "w".into(),
    };
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    view.render(buf.area, &mut buf);
    buf
}

/// The pane as it is drawn, without the spaces at the ends of its rows.
fn drawn(tree: &Tree, family: &Family, (width, height): (u16, u16)) -> Vec<String> {
    let buf = painted(tree, family, (width, height));
    let row =
        |y| (0..width).map(|x| buf[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(row).collect()
}

#[test]
fn a_folded_parent_tells_what_goes_on_below_it_and_how_many_pods_that_are() {
    let mut tree = tree();
    tree.fold(PodName::parse("alice").expect("a name"));
    let rows = drawn(&tree, &lineage(), (38, 3));
    assert_eq!(rows[0], " ● alice ▸3  ▲1 · 1 running        4m");
    let rows = drawn(&tree, &lineage(), (26, 3));
    assert_eq!(rows[0], " ● alice ▸3        ▲1  4m");
    let quiet = family(vec![pod("a", State::Running), child("b", "a", State::Idle)]);
    tree.fold(PodName::parse("a").expect("a name"));
    assert_eq!(drawn(&tree, &quiet, (38, 1))[0], " ● a ▸1  1 idle                    4m");
}

#[test]
fn a_pod_that_needs_a_person_out_of_view_is_counted_in_the_last_row() {
    let waiting = |at: usize| pod(&format!("p{at}"), State::NeedsYou);
    let far = PodInfo { workspace: "/far".into(), ..pod("far", State::NeedsYou) };
    let pods: Vec<_> = (10..16).map(waiting).chain([far]).collect();
    let family = family(pods);
    let rows = drawn(&tree(), &family, (60, 4));
    assert_eq!(rows[3], " ▲ 3 below · ▲ 1 elsewhere · ↓3 · 1 more in 1 workspace");
    let mut tree = tree();
    tree.cursor = Some(Place::Pod(PodName::parse("p15").expect("a name")));
    let rows = drawn(&tree, &family, (60, 4));
    assert!(rows[3].starts_with(" ▲ 3 above · ▲ 1 elsewhere · ↑3"), "{rows:?}");
    assert!(!drawn(&tree, &lineage(), (60, 9)).concat().contains("below"));
}

#[test]
fn a_folded_pod_that_needs_a_person_hides_no_other_one() {
    let mut tree = tree();
    tree.fold(PodName::parse("a").expect("a name"));
    let family = family(vec![pod("a", State::NeedsYou), child("b", "a", State::NeedsYou)]);
    let rows = drawn(&tree, &family, (40, 4));
    assert_eq!((rows[0].contains("needs you"), rows[3].as_str()), (true, " ▲ 1 hidden"));
}

#[test]
fn a_filter_hides_pods_that_need_a_person_and_puts_none_below() {
    let waiting = |at: usize| pod(&format!("p{at}"), State::NeedsYou);
    let family = family((10..16).map(waiting).chain([pod("other", State::NeedsYou)]).collect());
    let foot = |text: &str| {
        let tree = Tree { filter: Input::new(text), ..tree() };
        drawn(&tree, &family, (60, 4)).pop().expect("a row")
    };
    assert_eq!(foot("other"), " ▲ 6 hidden · /other");
    assert_eq!(foot("p1"), " ▲ 3 below · ▲ 1 hidden · ↓3 · /p1");
}

#[test]
fn a_wide_tree_has_headings_costs_with_all_below_and_the_context() {
    let full = PodInfo { context_tokens: 180_000, ..child("scout", "alice", State::Running) };
    let family = family(vec![pod("alice", State::Idle), full]);
    let rows = drawn(&tree(), &family, (80, 3));
    assert_eq!(
        rows[0].split_whitespace().collect::<Vec<_>>(),
        ["Pod", "now", "ctx", "cost", "Σ", "age"]
    );
    assert!(
        rows[1].contains("waits for scout") && rows[1].ends_with("34%    $0.24   4m"),
        "{rows:?}"
    );
    assert!(rows[2].ends_with("90%    $0.12   4m"), "{rows:?}");
}

#[test]
fn orange_marks_only_what_waits_for_a_person() {
    let orange = Theme::default().needs.fg;
    let words = |tree: &Tree, family: &Family, width: u16| {
        let buf = painted(tree, family, (width, 6));
        let cells = buf.content.iter();
        let text: String =
            cells.map(|cell| if cell.style().fg == orange { cell.symbol() } else { " " }).collect();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let states = [State::Running, State::Failed, State::Paused, State::Unknown, State::Idle];
    let quiet = states.into_iter().enumerate().map(|(at, state)| pod(&format!("p{at}"), state));
    assert_eq!(words(&tree(), &family(quiet.collect()), 100), "");
    let mut tree = tree();
    assert_eq!(words(&tree, &lineage(), 60), "▲ needs you");
    assert_eq!(words(&tree, &lineage(), 28), "▲ needs you");
    tree.fold(PodName::parse("alice").expect("a name"));
    assert_eq!(words(&tree, &lineage(), 60), "▲1");
}

#[test]
fn two_or_more_children_that_ended_are_one_row_where_none_is_current_or_under_the_cursor() {
    let ended = |name: &str, parent: &str| PodInfo {
        last_result: Some(finished()),
        ..child(name, parent, State::Idle)
    };
    let waits = PodInfo { why: Some("a queued message waits".into()), ..ended("waits", "shop") };
    let family = family(vec![
        pod("shop", State::Idle),
        ended("fmt", "shop"),
        child("bench", "shop", State::Failed),
        ended("docs", "shop"),
        ended("pics", "docs"),
        child("fresh", "shop", State::Idle),
        waits,
        ended("busy", "shop"),
        child("scout", "busy", State::Running),
    ]);
    let mut tree = tree();
    let folded = ["shop", "  bench", "  fresh", "  waits", "  busy", "    scout", "  3 ended"];
    assert_eq!(shown(&tree, &family, None), folded);
    assert_eq!(shown(&tree, &family, Some("pics")).len(), family.all().len());
    tree.cursor = PodName::parse("fmt").ok().map(Place::Pod);
    assert_eq!(
        shown(&tree, &family, None).len(),
        family.all().len(),
        "the row of the cursor stays"
    );
    tree.cursor = None;
    assert!(drawn(&tree, &family, (40, 9))[6].starts_with("   ✓ 3 ended"));
    tree.unfolded.extend(PodName::parse("shop"));
    assert_eq!(shown(&tree, &family, None).len(), family.all().len());
    tree.unfolded.clear();
    tree.cursor = PodName::parse("pics").ok().map(Place::Pod);
    assert_eq!(shown(&tree, &family, None).len(), family.all().len(), "it is below an ended one");
    tree.cursor = None;
    tree.marks.toggle(PodName::parse("pics").expect("a name"));
    assert!(shown(&tree, &family, None).contains(&"    pics".into()), "what is marked is in view");
    tree.marks.clear();
    tree.pins.put(3, PodName::parse("pics").expect("a name"));
    assert!(shown(&tree, &family, None).contains(&"    pics".into()), "what is pinned is in view");
}

#[test]
fn the_row_of_stopped_pods_counts_those_that_get_a_row() {
    let away = PodInfo { ephemeral: true, ..child("away", "old", State::Stopped) };
    let family = family(vec![pod("alice", State::Idle), pod("old", State::Stopped), away]);
    let mut tree = tree();
    assert_eq!(shown(&tree, &family, None), ["alice", "1 stopped"]);
    tree.stopped_pods = StoppedPods::Listed;
    assert_eq!(shown(&tree, &family, None), ["alice", "old"]);
}

#[test]
fn stopped_pods_that_are_parents_of_each_other_stop_no_walk() {
    let circle = ("a", "b");
    let family = family(vec![
        pod("root", State::Idle),
        child(circle.0, circle.1, State::Stopped),
        child(circle.1, circle.0, State::Stopped),
    ]);
    for stopped_pods in [StoppedPods::Folded, StoppedPods::Listed] {
        let tree = Tree { stopped_pods, ..tree() };
        assert_eq!(shown(&tree, &family, None), ["root"], "only a damaged store holds them");
    }
}
