//! The tree: its foot, and the wheel over it and other lists.

use super::*;
use crate::app::Areas;
use crossterm::event::{KeyModifiers, MouseEvent, MouseEventKind};

#[test]
fn a_tree_with_more_pods_than_rows_says_how_many_are_above_and_below() {
    let pods = (10..40).map(|number| pod(&format!("p{number}"), State::Idle)).collect();
    let mut bench = Bench::new(pods);
    bench.press("tab");
    for _ in 10..40 {
        bench.press("up");
    }
    let screen = bench.screen();
    let listed = screen
        .lines()
        .filter(|line| line.starts_with("│ ○ p") || line.starts_with("│›○ p"))
        .count();
    assert!(screen.contains(&format!("│ ↓{} ", 30 - listed)), "{screen}");
    for _ in 10..40 {
        bench.press("down");
    }
    let screen = bench.screen();
    assert!(screen.contains("p39") && screen.contains(&format!("│ ↑{} ", 30 - listed)), "{screen}");
    bench.press("up");
    let screen = bench.screen();
    assert!(screen.contains("↓1 "), "{screen}");
    bench.size(80, 50);
    let screen = bench.screen();
    assert!(!screen.contains('↓') && !screen.contains('↑'), "{screen}");
}

/// A step of the wheel over this cell.
fn wheel(kind: MouseEventKind, column: u16, row: u16) -> Msg {
    Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
}

#[test]
fn the_wheel_moves_through_the_list_under_the_pointer_and_leaves_the_keys_where_they_are() {
    let pods = (10..40).map(|number| pod(&format!("p{number}"), State::Idle)).collect();
    let mut bench = Bench::new(pods);
    let (current, focus) = (bench.app.current.clone(), bench.app.focus);
    for _ in 10..40 {
        bench.msg(wheel(MouseEventKind::ScrollDown, 3, 3));
    }
    let screen = bench.screen();
    assert!(screen.contains("○ p39 ") && !screen.contains("○ p10 "), "{screen}");
    for _ in 10..40 {
        bench.msg(wheel(MouseEventKind::ScrollUp, 3, 3));
    }
    let screen = bench.screen();
    assert!(screen.contains("○ p10 ") && !screen.contains("○ p39 "), "{screen}");
    assert_eq!((&bench.app.current, bench.app.focus), (&current, focus));
    let lines: String = (1..40).map(|line| format!("echo {line}\n")).collect();
    bench.host(None, Event::ApprovalRequested { approval: Box::new(approval("1", "p10", &lines)) });
    bench.press("ctrl-n");
    bench.app.inbox.show_whole();
    let inbox = Areas::of(&bench.app).inbox.expect("an inbox");
    bench.msg(wheel(MouseEventKind::ScrollDown, inbox.x + 2, inbox.y + 1));
    assert_ne!(bench.app.inbox.scrolled, 0);
    bench.msg(wheel(MouseEventKind::ScrollUp, inbox.x + 2, inbox.y + 1));
    assert_eq!(bench.app.inbox.scrolled, 0);
}

#[test]
fn among_all_workspaces_the_tree_names_that_of_the_chosen_pod() {
    let there = PodInfo { workspace: "/else/shop".into(), ..pod("far", State::Idle) };
    let mut bench = Bench::new(vec![pod("alice", State::Idle), there]);
    bench.press("tab");
    bench.press("w");
    assert!(bench.screen().contains("works in repo · w"), "{}", bench.screen());
    bench.press("down");
    assert!(bench.screen().contains("works in shop · w"), "{}", bench.screen());
}

#[test]
fn ages_in_the_tree_make_a_frame_by_the_minute_and_only_while_pods_work() {
    let works = PodInfo { since: NOON + 30_000, ..pod("bob", State::Running) };
    let works = PodInfo { last_activity: NOON + 119_000, ..works };
    let mut bench = Bench::new(vec![pod("alice", State::Idle), works]);
    bench.go_to("alice");
    assert_eq!(bench.app.wakes_at(), Some(NOON + 150_000));
    assert!(bench.screen().contains(" 1m │"), "{}", bench.screen());
    bench.shown(pod("bob", State::Idle));
    assert_eq!(bench.app.wakes_at(), None);
}
