use super::*;
use crossterm::event::{KeyCode, KeyModifiers, MouseButton, MouseEventKind};

fn mouse(kind: MouseEventKind) -> Msg {
    Msg::Mouse(MouseEvent { kind, column: 9, row: 9, modifiers: KeyModifiers::NONE })
}

fn key(c: char) -> Msg {
    Msg::Key(KeyEvent::from(KeyCode::Char(c)))
}

#[test]
fn a_pointer_that_moves_redraws_nothing_and_takes_no_repaint_away() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    let burst =
        [key('x'), mouse(MouseEventKind::Moved), mouse(MouseEventKind::Drag(MouseButton::Left))];
    let redraws = burst.map(|msg| bench.update(msg).redraw);
    assert_eq!(redraws, [true, false, false]);
}

#[test]
fn a_click_and_a_step_of_the_wheel_are_painted() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    for kind in [MouseEventKind::Down(MouseButton::Left), MouseEventKind::ScrollUp] {
        assert!(bench.update(mouse(kind)).redraw);
    }
}

#[test]
fn a_notice_that_comes_or_ends_with_an_event_of_a_hidden_pod_is_painted() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("bob", State::Idle)]);
    bench.type_in(":open alice");
    bench.press("enter");
    let event = |bench: &mut Bench| {
        let pod = PodName::parse("bob").ok();
        let event = Event::TurnStart { turn: 1 };
        bench.update(Msg::Host(Outgoing { re: None, pod, seq: None, event })).redraw
    };
    assert!(!event(&mut bench));
    bench.press("ctrl-n");
    let end = bench.app.notices.ends().expect("a notice is shown");
    bench.until(end);
    assert!(event(&mut bench), "the notice ended");
    assert!(!event(&mut bench));
}
