use super::*;
use crate::screen::app::tests::{Bench, NOON, pod};
use crate::screen::app::{Asked, Msg};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::rc::Rc;
use yoi::protocol::event::Line;
use yoi::protocol::{Entry, Event, Fact, Item, PodName, Role, State};

const URL: &str = "https://raw.githubusercontent.com/example-organisation/example-repository/main/documentation/index.html";

/// The links that a terminal shows: identity and target, with the text of each row.
type Shown = BTreeMap<(String, String), Vec<String>>;

/// The hyperlink under way, and every other control string.
#[derive(Default)]
struct Strings {
    link: Option<(String, String)>,
    others: Vec<String>,
}

impl vt100::Callbacks for Strings {
    fn unhandled_osc(&mut self, _: &mut vt100::Screen, params: &[&[u8]]) {
        let words: Vec<_> = params.iter().map(|word| String::from_utf8_lossy(word)).collect();
        match words.as_slice() {
            [eight, id, target @ ..] if eight == "8" => {
                let target = target.join(";");
                let id = id.strip_prefix("id=").unwrap_or_default().to_owned();
                self.link = (!target.is_empty()).then_some((id, target));
            }
            _ => self.others.push(words.join(";")),
        }
    }
}

/// Where the bytes of a terminal are, in a sequence or outside.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Text,
    Escape,
    Csi,
    ControlString,
}

/// A terminal that knows of each cell to which link it belongs.
struct Vt {
    screen: vt100::Parser<Strings>,
    place: Place,
    links: BTreeMap<(u16, u16), (String, String)>,
    bytes: Vec<u8>,
}

impl Vt {
    fn new(columns: u16, rows: u16) -> Self {
        let sized = |cells| NonZeroU16::new(cells).expect("a size");
        let strings = Strings::default();
        let screen = vt100::Parser::new_with_callbacks(sized(rows), sized(columns), 0, strings);
        Self { screen, place: Place::Text, links: BTreeMap::new(), bytes: Vec::new() }
    }

    fn byte(&mut self, byte: u8) {
        let at = self.screen.screen().cursor_position();
        let is_text = self.place == Place::Text && byte >= b' ';
        self.place = match (self.place, byte) {
            (_, 0x1b) => Place::Escape,
            (Place::Escape, b'[') => Place::Csi,
            (Place::Escape, b']') => Place::ControlString,
            (Place::Escape, _) | (Place::Csi, b'@'..=b'~') => Place::Text,
            (Place::ControlString, 0x07) => Place::Text,
            (place, _) => place,
        };
        self.screen.process(&[byte]);
        self.bytes.push(byte);
        if is_text {
            self.links.remove(&at);
            self.links.extend(self.screen.callbacks().link.clone().map(|link| (at, link)));
        }
    }

    fn shown(&self) -> Shown {
        let mut shown = Shown::new();
        let mut last_row = None;
        for ((row, column), link) in &self.links {
            let cell = self.screen.screen().cell(*row, *column).filter(|cell| cell.has_contents());
            let Some(cell) = cell else { continue };
            let rows = shown.entry(link.clone()).or_default();
            if last_row != Some((*row, link.clone())) {
                rows.push(String::new());
            }
            last_row = Some((*row, link.clone()));
            rows.last_mut().expect("a row").push_str(cell.contents());
        }
        shown
    }
}

#[derive(Clone)]
struct Wire(Rc<RefCell<Vt>>);

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        bytes.iter().for_each(|byte| self.0.borrow_mut().byte(*byte));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A dashboard with a terminal.
struct Seen {
    bench: Bench,
    wire: Wire,
    terminal: Terminal<LinkedBackend<Wire>>,
}

impl Seen {
    /// 80x24, with these answers in the transcript.
    fn new(answers: &[&str]) -> Self {
        let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
        bench.type_in(":open alice");
        bench.press("enter");
        bench.screen();
        let entries = answers.iter().map(|text| {
            let item = Item::message(Role::Assistant, *text);
            let fact = Fact::AssistantItem { item, origin: None, native: None, partial: false };
            Line::Whole(Box::new(Entry { ts: NOON, ..Entry::new(fact) }))
        });
        let entries = entries.collect();
        let page = Event::Page { entries, before: None, in_flight: Vec::new(), seq: 0 };
        let alice = PodName::parse("alice").expect("a name");
        bench.msg(Msg::Answered(Asked::Page(alice), Ok(page)));
        let (wire, terminal) = terminal(&bench, Hyperlinks::Written);
        let mut seen = Self { bench, wire, terminal };
        seen.paint();
        seen
    }

    /// Paints the next frame. What is linked then is what a terminal that shows this frame alone has.
    fn paint(&mut self) {
        paint(&mut self.bench, &mut self.terminal);
        let (alone, mut whole) = terminal(&self.bench, Hyperlinks::Written);
        paint(&mut self.bench, &mut whole);
        assert_eq!(self.shown(), alone.0.borrow().shown());
    }

    fn press(&mut self, key: &str) {
        self.bench.press(key);
        self.paint();
    }

    fn size(&mut self, columns: u16, rows: u16) {
        self.bench.size(columns, rows);
        (self.wire, self.terminal) = terminal(&self.bench, Hyperlinks::Written);
        self.paint();
    }

    fn shown(&self) -> Shown {
        self.wire.0.borrow().shown()
    }

    /// The text of the link with this target, row by row.
    fn text_of(&self, target: &str) -> Vec<String> {
        let shown = self.shown();
        let mut found = shown.into_iter().filter(|((_, of), _)| of == target);
        let text = found.next().map(|(_, rows)| rows).unwrap_or_default();
        assert_eq!(found.next(), None, "{target} has one identity");
        text
    }
}

fn terminal(bench: &Bench, written: Hyperlinks) -> (Wire, Terminal<LinkedBackend<Wire>>) {
    let (columns, rows) = bench.app.size;
    let wire = Wire(Rc::new(RefCell::new(Vt::new(columns, rows))));
    let viewport = Viewport::Fixed(Rect::new(0, 0, columns, rows));
    let backend = LinkedBackend::new(wire.clone(), written);
    let terminal = Terminal::with_options(backend, TerminalOptions { viewport });
    (wire, terminal.expect("a terminal"))
}

fn paint(bench: &mut Bench, terminal: &mut Terminal<LinkedBackend<Wire>>) {
    bench.app.prepare_frame();
    terminal.backend_mut().links = crate::screen::view::links(&bench.app);
    terminal.draw(|frame| crate::screen::view::draw(&bench.app, frame)).expect("a frame");
}

#[test]
fn an_address_that_wraps_is_one_link_with_its_whole_target_at_every_width() {
    let text = format!("See {URL} and [the guide](https://example.org/guide).");
    let mut seen = Seen::new(&[&text]);
    for (columns, rows) in [(80, 24), (60, 20), (40, 12), (120, 40), (200, 60)] {
        seen.size(columns, rows);
        let address = seen.text_of(URL);
        assert_eq!(address.concat(), URL, "{columns} columns");
        assert!(address.len() > 1, "{address:?}");
        let guide = seen.text_of("https://example.org/guide").concat();
        let guide = guide.replace(' ', "");
        assert_eq!(guide, "theguidehttps://example.org/guide", "its text and its address");
    }
}

#[test]
fn links_go_with_their_text_when_it_scrolls_and_end_below_a_sheet() {
    let lines: Vec<String> = (0..60).map(|n| format!("- line {n} of <https://a.b/{n}>")).collect();
    let mut seen = Seen::new(&[&lines.join("\n")]);
    assert_eq!(seen.text_of("https://a.b/59"), ["https://a.b/59"]);
    for key in ["pageup", "pageup", "pagedown", "ctrl-home"] {
        seen.press(key);
    }
    assert_eq!(seen.text_of("https://a.b/0"), ["https://a.b/0"]);
    let before = seen.shown().len();
    seen.press("ctrl-p");
    assert!(seen.shown().len() < before, "the palette covers some of them");
    seen.press("esc");
    assert_eq!(seen.shown().len(), before);
}

#[test]
fn a_text_that_keeps_its_look_and_changes_its_target_is_written_again() {
    let mut seen = Seen::new(&["[here](https://a.b/1)"]);
    let bytes = seen.wire.0.borrow().bytes.len();
    seen.paint();
    let again = seen.wire.0.borrow_mut().bytes.split_off(bytes);
    assert!(!String::from_utf8_lossy(&again).contains("]8;"), "an equal frame has no link");
    let mut other = Seen::new(&["[here](https://a.b/2)"]);
    paint(&mut other.bench, &mut seen.terminal);
    assert_eq!(seen.text_of("https://a.b/2").concat(), "herehttps://a.b/2");
    assert_eq!(seen.text_of("https://a.b/1"), [""; 0]);
}

#[test]
fn no_text_of_a_model_gets_a_sequence_or_a_program_into_a_link() {
    let long = format!("https://a.b/{}", "x".repeat(10_000));
    let hostile = [
        "https://a.b/\u{1b}]0;title\u{7}c",
        "https://a.b/\u{1b}\\\u{1b}[2Jc",
        "[x](https://a.b/&#27;]0;title&#7;)",
        "[x](<https://a.b/&#27;\\c>)",
        "[x](<https://a.b/&#10;c>)",
        "[x](<https://a.b/c d\u{9c}\u{85}>)",
        "[x](javascript:alert(1)) <ssh://a.b> [y](/bin/sh) [z](vscode://a)",
        &format!("{long} [x]({long})"),
        "[x](https://a.b/é\u{202e};;id=z)",
    ];
    for text in hostile {
        let mut seen = Seen::new(&[text]);
        for (columns, rows) in [(80, 24), (40, 12)] {
            seen.size(columns, rows);
            let vt = seen.wire.0.borrow();
            assert_eq!(vt.screen.callbacks().others, [""; 0], "{text:?}");
            assert_eq!(vt.screen.callbacks().link, None, "{text:?}: each link ends");
            for (_, target) in vt.shown().keys() {
                assert!(target.starts_with("https://a.b/"), "{text:?}: {target}");
                assert!(target.bytes().all(|byte| byte.is_ascii_graphic()), "{text:?}: {target}");
                assert!(target.len() < 100, "{text:?}: {target}");
            }
        }
    }
}

#[test]
fn a_terminal_that_takes_no_hyperlinks_gets_the_same_text_without_them() {
    let mut seen = Seen::new(&[&format!("See {URL}.")]);
    let (wire, mut plain) = terminal(&seen.bench, Hyperlinks::LeftOut);
    paint(&mut seen.bench, &mut plain);
    let (linked, plain) = (seen.wire.0.borrow(), wire.0.borrow());
    assert_eq!(linked.screen.screen().contents(), plain.screen.screen().contents());
    let bytes = String::from_utf8_lossy(&plain.bytes);
    assert!(!bytes.contains("\x1b]"), "{bytes:?}");
    for bytes in [&bytes, &String::from_utf8_lossy(&linked.bytes)] {
        assert!(!bytes.contains("\x1b[58"), "no mark is taken for a colour: {bytes:?}");
    }
}

#[test]
fn terminals_that_print_or_cut_the_sequence_do_not_get_it() {
    let of = |env: &[(&str, &str)]| {
        let find = |name: &str| env.iter().find(|(of, _)| *of == name).map(|(_, value)| *value);
        Hyperlinks::of_terminal(|name| find(name).map(str::to_owned))
    };
    for env in [
        &[("TERM", "xterm-256color")][..],
        &[("TERM", "xterm-256color"), ("NO_COLOR", "1"), ("VTE_VERSION", "7600")],
        &[("TERM", "screen-256color"), ("TMUX", "/tmp/tmux-0/default,1,0")],
        &[("TERM", "tmux-256color"), ("TMUX", "/tmp/tmux-0/default,1,0")],
    ] {
        assert_eq!(of(env), Hyperlinks::Written, "{env:?}");
    }
    for env in [
        &[][..],
        &[("TERM", "linux")],
        &[("TERM", "dumb")],
        &[("TERM", "screen.xterm-256color")],
        &[("TERM", "xterm-256color"), ("VTE_VERSION", "5000")],
    ] {
        assert_eq!(of(env), Hyperlinks::LeftOut, "{env:?}");
    }
}
