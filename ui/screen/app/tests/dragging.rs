//! The mouse selects text: what is copied, what stands still meanwhile, and what gives the selection up.

use super::*;
use crossterm::event::{KeyModifiers, MouseButton, MouseEventKind};
use yoi::protocol::event::Line;
use yoi::protocol::{Entry, Fact, Item, Role};

/// Something that moves text on the screen, with the pointer at a cell.
type Move = fn(&mut Bench, (u16, u16));

const ANSWER: &str =
    "First 日本語 words.\n\n- an item\n\n```\nfn main() {\n    x();\n}\n```\n\nThe end of it.";

/// alice is current and said this; bob stands in the tree, too.
fn bench(answer: &str) -> Bench {
    let mut bench = Bench::new(vec![pod("alice", State::Running), pod("bob", State::Idle)]);
    bench.go_to("alice");
    bench.screen();
    let item = Item::message(Role::Assistant, answer);
    let said = Fact::AssistantItem { item, origin: None, native: None, partial: false };
    let said = Entry { ts: NOON, ..Entry::new(said) };
    let entries = vec![Line::Whole(Box::new(said))];
    let page = Event::Page { entries, before: None, in_flight: Vec::new(), seq: 0 };
    bench.msg(Msg::Answered(Asked::Page(name("alice")), Ok(page)));
    bench.screen();
    bench
}

/// The first and the last cell of these words on the screen.
fn cells_of(bench: &mut Bench, words: &str) -> ((u16, u16), (u16, u16)) {
    let screen = bench.screen();
    let found = screen.lines().zip(0..).find_map(|(line, y)| Some((line.find(words)?, line, y)));
    let (at, line, y) = found.unwrap_or_else(|| panic!("{words} is not on the screen:\n{screen}"));
    let x = crate::rows::columns(&line[..at]);
    ((x, y), (x + crate::rows::columns(words) - 1, y))
}

fn mouse(bench: &mut Bench, kind: MouseEventKind, (column, row): (u16, u16)) {
    let effects =
        bench.msg(Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Copy(_))), "{effects:?}");
}

fn drag(bench: &mut Bench, from: (u16, u16), to: (u16, u16)) {
    mouse(bench, MouseEventKind::Down(MouseButton::Left), from);
    mouse(bench, MouseEventKind::Drag(MouseButton::Left), to);
}

/// Releases the button; what the next frame has to copy.
fn release(bench: &mut Bench, at: (u16, u16)) -> Option<String> {
    mouse(bench, MouseEventKind::Up(MouseButton::Left), at);
    let frame = bench.painted();
    let text = bench.app.selected_text(&frame)?;
    let effects = bench.msg(Msg::Selected(text));
    assert_eq!(bench.app.selected_text(&frame), None, "it is copied once");
    effects.into_iter().find_map(|effect| match effect {
        Effect::Copy(text) => Some(text),
        _ => None,
    })
}

fn copied(bench: &mut Bench, from: (u16, u16), to: (u16, u16)) -> Option<String> {
    drag(bench, from, to);
    release(bench, to)
}

#[test]
fn what_the_mouse_selects_is_copied_without_the_margin_and_the_panes_beside_it() {
    let mut bench = bench(ANSWER);
    let whole = "First 日本語 words.\n\n• an item\n\n  fn main() {\n      x();\n  }\n\nThe end";
    let ((first, _), (_, last)) = (cells_of(&mut bench, "First"), cells_of(&mut bench, "The end"));
    assert_eq!(copied(&mut bench, first, last).as_deref(), Some(whole));
    assert_eq!(bench.notice(), "copied 9 lines (OSC 52)");
    assert_eq!(copied(&mut bench, last, first).as_deref(), Some(whole), "backwards");
    let ((first, _), (_, last)) = (cells_of(&mut bench, "fn main"), cells_of(&mut bench, "}"));
    let code = "fn main() {\n    x();\n}";
    assert_eq!(copied(&mut bench, first, last).as_deref(), Some(code), "code");
    let (words, _) = cells_of(&mut bench, "本語 words");
    let (_, end) = cells_of(&mut bench, "an it");
    let half = (words.0 + 1, words.1);
    let text = "本語 words.\n\n• an it";
    assert_eq!(copied(&mut bench, half, end).as_deref(), Some(text), "no half of a character");
    let screen = bench.app.size;
    let all = copied(&mut bench, first, screen).expect("a text");
    assert!(all.starts_with("  fn main") && all.ends_with("The end of it."), "{all}");
    assert!(!all.contains('│') && !all.contains("bob"), "{all}");
}

#[test]
fn a_copy_that_a_program_does_not_take_goes_to_the_terminal_and_that_is_said() {
    let mut bench = bench(ANSWER);
    bench.app.setup.clipboard = Clipboard::Program(&["wl-copy"]);
    let (first, last) = cells_of(&mut bench, "an item");
    assert_eq!(copied(&mut bench, first, last).as_deref(), Some("an item"));
    assert_eq!(bench.notice(), "copied 7 chars (wl-copy)");
    let effects = bench.msg(Msg::NotCopied("an item".into(), "wl-copy: no display".into()));
    assert!(matches!(&effects[..], [Effect::Copy(text)] if text == "an item"), "{effects:?}");
    assert_eq!(bench.notice(), "wl-copy: no display: copied by the terminal (OSC 52)");
    assert_eq!(copied(&mut bench, first, (first.0 + 1, first.1)).as_deref(), Some("an"));
    assert_eq!(bench.app.setup.clipboard, Clipboard::Terminal);
}

#[test]
fn what_is_selected_is_marked_until_it_is_copied() {
    let mut bench = bench(ANSWER);
    let selection = bench.app.theme.selection.bg;
    let (first, last) = cells_of(&mut bench, "an item");
    let marked = |bench: &mut Bench| -> String {
        let frame = bench.painted();
        let row = (first.0..frame.area.right()).map(|x| &frame[(x, first.1)]);
        row.filter(|cell| cell.style().bg == selection).map(|cell| cell.symbol()).collect()
    };
    assert_eq!(marked(&mut bench), "");
    drag(&mut bench, first, last);
    assert_eq!(marked(&mut bench), "an item");
    assert_eq!(release(&mut bench, last).as_deref(), Some("an item"));
    assert_eq!((marked(&mut bench).as_str(), bench.notice()), ("", "copied 7 chars (OSC 52)"));
}

#[test]
fn a_transcript_that_streams_stands_still_while_text_is_selected_and_follows_again() {
    let lines: Vec<String> = (0..60).map(|n| format!("- line {n}.")).collect();
    let mut bench = bench(&lines.join("\n"));
    let (first, last) = cells_of(&mut bench, "line 50.");
    let stream = |bench: &mut Bench, word: &str| {
        let text = format!("{word}\n\n").repeat(9);
        bench.host(Some("alice"), Event::TextDelta { text });
    };
    drag(&mut bench, first, last);
    bench.screen();
    stream(&mut bench, "early");
    // The note above the transcript goes, and the row above becomes free.
    let (first, last) = ((first.0, first.1 - 1), (last.0, last.1 - 1));
    assert_eq!(cells_of(&mut bench, "line 50."), (first, last));
    assert_eq!(release(&mut bench, last).as_deref(), Some("line 50."));
    stream(&mut bench, "late");
    let screen = bench.screen();
    assert!(screen.contains("late") && !screen.contains("line 50."), "{screen}");
}

#[test]
fn a_click_copies_nothing_and_what_moves_text_gives_the_selection_up() {
    let mut bench = bench(ANSWER);
    let (first, last) = cells_of(&mut bench, "an item");
    mouse(&mut bench, MouseEventKind::Down(MouseButton::Left), first);
    assert_eq!(release(&mut bench, first), None);
    assert_eq!(copied(&mut bench, first, first), None, "back where it began");
    let moves: [Move; 4] = [
        |bench, _| drop(bench.press("pageup")),
        |bench, at| mouse(bench, MouseEventKind::ScrollUp, at),
        |bench, _| bench.size(90, 30),
        |bench, at| mouse(bench, MouseEventKind::Down(MouseButton::Left), at),
    ];
    for gives_up in moves {
        drag(&mut bench, first, last);
        gives_up(&mut bench, last);
        assert_eq!(release(&mut bench, last), None);
        bench.size(80, 24);
    }
    bench.press("ctrl-p");
    assert_eq!(copied(&mut bench, first, last), None, "below a sheet");
    bench.press("esc");
    assert_eq!(copied(&mut bench, first, last).as_deref(), Some("an item"));
}
