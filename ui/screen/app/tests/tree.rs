//! The tree: its foot, and the wheel over it and other lists.

use super::*;
use crate::screen::app::Areas;
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
    let listed =
        screen.lines().filter(|line| line.starts_with(" ○ p") || line.starts_with("›○ p")).count();
    assert!(screen.contains(&format!("\n ↓{} ", 30 - listed)), "{screen}");
    for _ in 10..40 {
        bench.press("down");
    }
    let screen = bench.screen();
    assert!(
        screen.contains("p39") && screen.contains(&format!("\n ↑{} ", 30 - listed)),
        "{screen}"
    );
    bench.press("up");
    let screen = bench.screen();
    assert!(screen.contains("↓1 "), "{screen}");
    bench.size(80, 50);
    let screen = bench.screen();
    assert!(!screen.contains('↓') && !screen.contains('↑'), "{screen}");
}

#[test]
fn ended_children_are_listed_by_a_click_or_a_key_and_fold_again_with_another_current_pod() {
    let ended = |child_name: &str| PodInfo {
        last_result: Some(finished()),
        ..child("shop", child_name, State::Idle)
    };
    let pods = vec![pod("shop", State::Idle), ended("fmt"), ended("docs"), pod("bob", State::Idle)];
    let mut bench = Bench::new(pods);
    bench.go_to("bob");
    let is_folded = |bench: &mut Bench| {
        let screen = bench.screen();
        assert_ne!(screen.contains("✓ 2 ended"), screen.contains("○ fmt"), "{screen}");
        screen.contains("✓ 2 ended")
    };
    assert!(is_folded(&mut bench));
    let down = MouseEventKind::Down(crossterm::event::MouseButton::Left);
    bench.msg(mouse(down, 6, 2));
    assert_eq!((is_folded(&mut bench), bench.app.focus), (false, Focus::Composer));
    bench.go_to("shop");
    assert!(is_folded(&mut bench));
    bench.press("tab");
    assert_eq!((is_folded(&mut bench), bench.app.focus), (true, Focus::Tree), "no row moves");
    bench.press("down");
    bench.press("enter");
    assert!(!is_folded(&mut bench));
    assert!(bench.screen().contains("›  ○ fmt"), "the cursor is on a row: {}", bench.screen());
    bench.go_to("bob");
    bench.go_to("shop");
    bench.press("tab");
    bench.press("right");
    assert!(!is_folded(&mut bench), "that key lists all children of a row");
    bench.go_to("fmt");
    assert!(!is_folded(&mut bench));
}

#[test]
fn the_cursor_goes_down_over_ended_children_that_are_folded() {
    let ended =
        |name: &str| PodInfo { last_result: Some(finished()), ..child("shop", name, State::Idle) };
    let pods = vec![
        pod("shop", State::Idle),
        ended("fmt"),
        ended("docs"),
        child("shop", "scout", State::Running),
        pod("zoe", State::Idle),
    ];
    let mut bench = Bench::new(pods);
    bench.go_to("shop");
    bench.press("tab");
    let row = |bench: &mut Bench| {
        let screen = bench.screen();
        let row = screen.lines().find(|line| line.starts_with('›')).expect("the cursor");
        let names = ["shop", "scout", "2 ended", "zoe"];
        names.into_iter().find(|name| row.contains(name)).expect("a known row")
    };
    let mut seen = vec![row(&mut bench)];
    for _ in 0..3 {
        bench.press("down");
        assert!(bench.screen().contains("✓ 2 ended"), "{}", bench.screen());
        seen.push(row(&mut bench));
    }
    assert_eq!(seen, ["shop", "scout", "2 ended", "zoe"]);
}

#[test]
fn a_dragged_border_wins_also_on_the_next_screen_and_a_click_gives_it_back() {
    use crossterm::event::MouseButton::Left;
    let pods = || vec![pod("alice", State::Idle)];
    let mut bench = Bench::new(pods());
    bench.size(120, 40);
    let border = |bench: &Bench| Areas::of(&bench.app).rules[0].expect("a rule").x;
    let usual = border(&bench);
    bench.msg(mouse(MouseEventKind::Drag(Left), 60, 5));
    assert_eq!(border(&bench), usual, "the border was not pressed");
    bench.msg(mouse(MouseEventKind::Down(Left), usual, 5));
    assert!(bench.update(mouse(MouseEventKind::Drag(Left), 60, 6)).redraw);
    bench.msg(mouse(MouseEventKind::Up(Left), 60, 6));
    bench.msg(mouse(MouseEventKind::Drag(Left), 70, 6));
    assert_eq!(border(&bench), 60);
    let mut next = Bench::returning(bench.app.screen_state(), pods());
    next.size(120, 40);
    assert_eq!(border(&next), 60);
    for (width, at) in [(64, 27), (90, 53), (200, 60)] {
        next.size(width, 40);
        assert_eq!(border(&next), at);
    }
    next.msg(mouse(MouseEventKind::Down(Left), 60, 5));
    next.msg(mouse(MouseEventKind::Up(Left), 60, 5));
    next.size(120, 40);
    assert_eq!((border(&next), next.app.focus), (usual, Focus::Composer));
}

/// An event of the mouse over this cell.
fn mouse(kind: MouseEventKind, column: u16, row: u16) -> Msg {
    Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
}

#[test]
fn the_wheel_moves_through_the_list_under_the_pointer_and_leaves_the_keys_where_they_are() {
    let pods = (10..40).map(|number| pod(&format!("p{number}"), State::Idle)).collect();
    let mut bench = Bench::new(pods);
    let (current, focus) = (bench.app.current.clone(), bench.app.focus);
    for _ in 10..40 {
        bench.msg(mouse(MouseEventKind::ScrollDown, 3, 3));
    }
    let screen = bench.screen();
    assert!(screen.contains("○ p39 ") && !screen.contains("○ p10 "), "{screen}");
    for _ in 10..40 {
        bench.msg(mouse(MouseEventKind::ScrollUp, 3, 3));
    }
    let screen = bench.screen();
    assert!(screen.contains("○ p10 ") && !screen.contains("○ p39 "), "{screen}");
    assert_eq!((&bench.app.current, bench.app.focus), (&current, focus));
    let lines: String = (1..40).map(|line| format!("echo {line}\n")).collect();
    bench.host(None, Event::ApprovalRequested { approval: Box::new(approval("1", "p10", &lines)) });
    bench.press("ctrl-n");
    let card = Areas::of(&bench.app).card.expect("a card");
    bench.msg(mouse(MouseEventKind::ScrollDown, card.x + 2, card.y + 1));
    assert_ne!(bench.app.inbox.scrolled, 0);
    bench.msg(mouse(MouseEventKind::ScrollUp, card.x + 2, card.y + 1));
    assert_eq!(bench.app.inbox.scrolled, 0);
}

#[test]
fn among_all_workspaces_the_tree_names_that_of_the_chosen_pod() {
    let there = PodInfo { workspace: "/else/shop".into(), ..pod("far", State::Idle) };
    let mut bench = Bench::new(vec![pod("alice", State::Idle), there]);
    bench.press("tab");
    bench.press("w");
    assert!(bench.screen().contains("workspace repo · w"), "{}", bench.screen());
    bench.press("down");
    assert!(bench.screen().contains("workspace shop · w"), "{}", bench.screen());
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
