use super::parser::Parser;
use crate::screen::program_status::Status;
use crate::screen::reply::Reply;
use crate::theme::Ground;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEventKind};
use std::time::{Duration, Instant};

const ESCAPE: Duration = Duration::from_millis(50);

const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// A parser with a clock of its own.
struct Bench {
    parser: Parser,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        Self { parser: Parser::new(ESCAPE), now: Instant::now() }
    }

    fn feed(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.parser.feed(bytes, self.now)
    }

    /// Lets time pass, with everything that is due on the way.
    fn pass(&mut self, millis: u64) -> Vec<Event> {
        self.now += Duration::from_millis(millis);
        self.parser.expire(self.now)
    }

    /// Feeds bytes, and waits until nothing is unfinished.
    fn all(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = self.feed(bytes);
        while let Some(at) = self.parser.deadline() {
            self.now = at;
            events.extend(self.parser.expire(at));
        }
        events
    }
}

fn events(bytes: &[u8]) -> Vec<Event> {
    Bench::new().all(bytes)
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Event {
    Event::Key(KeyEvent::new(code, modifiers))
}

fn plain(code: KeyCode) -> Event {
    key(code, KeyModifiers::NONE)
}

fn letter(c: char, modifiers: KeyModifiers) -> Event {
    key(KeyCode::Char(c), modifiers)
}

const CTRL: KeyModifiers = KeyModifiers::CONTROL;
const ALT: KeyModifiers = KeyModifiers::ALT;
const SHIFT: KeyModifiers = KeyModifiers::SHIFT;

/// Sequences of keys, and what each is.
fn keys() -> Vec<(&'static [u8], Event)> {
    vec![
        (b"a", letter('a', KeyModifiers::NONE)),
        (b"A", letter('A', SHIFT)),
        ("é".as_bytes(), letter('é', KeyModifiers::NONE)),
        ("日".as_bytes(), letter('日', KeyModifiers::NONE)),
        ("🦀".as_bytes(), letter('🦀', KeyModifiers::NONE)),
        (b"\r", plain(KeyCode::Enter)),
        (b"\t", plain(KeyCode::Tab)),
        (b"\x7f", plain(KeyCode::Backspace)),
        (b"\0", letter(' ', CTRL)),
        (b"\x01", letter('a', CTRL)),
        (b"\n", letter('j', CTRL)),
        (b"\x1a", letter('z', CTRL)),
        (b"\x1f", letter('7', CTRL)),
        (b"\x1ba", letter('a', ALT)),
        (b"\x1bA", letter('A', ALT | SHIFT)),
        ("\u{1b}é".as_bytes(), letter('é', ALT)),
        (b"\x1b\r", key(KeyCode::Enter, ALT)),
        (b"\x1b\x7f", key(KeyCode::Backspace, ALT)),
        (b"\x1b[A", plain(KeyCode::Up)),
        (b"\x1b[1;5C", key(KeyCode::Right, CTRL)),
        (b"\x1b[1;2H", key(KeyCode::Home, SHIFT)),
        (b"\x1b\x1b[A", key(KeyCode::Up, ALT)),
        (b"\x1bOA", plain(KeyCode::Up)),
        (b"\x1bOP", plain(KeyCode::F(1))),
        (b"\x1bOM", plain(KeyCode::Enter)),
        (b"\x1bOq", letter('1', KeyModifiers::NONE)),
        (b"\x1b[[A", plain(KeyCode::F(1))),
        (b"\x1b[Z", key(KeyCode::BackTab, SHIFT)),
        (b"\x1b[3~", plain(KeyCode::Delete)),
        (b"\x1b[5;5~", key(KeyCode::PageUp, CTRL)),
        (b"\x1b[15~", plain(KeyCode::F(5))),
        (b"\x1b[24~", plain(KeyCode::F(12))),
        (b"\x1b[27u", plain(KeyCode::Esc)),
        (b"\x1b[13;2u", key(KeyCode::Enter, SHIFT)),
        (b"\x1b[97;5u", letter('a', CTRL)),
        (b"\x1b[9;2u", key(KeyCode::BackTab, SHIFT)),
        (b"\x1b[57414u", plain(KeyCode::Enter)),
        (b"\x1b[57399;129u", letter('0', KeyModifiers::NONE)),
        (b"\x1b[47:63;4u", letter('?', ALT)),
        (b"\x1b[103:71;6u", letter('g', CTRL | SHIFT)),
        (b"\x1b[1092::97;5u", letter('a', CTRL)),
        (b"\x1b[1092;5u", letter('a', CTRL)),
        (b"\x1b[1079::112;5u", letter('p', CTRL)),
        (b"\x1b[1234::98;3u", letter('b', ALT)),
        (b"\x1b[27;2;13~", key(KeyCode::Enter, SHIFT)),
        (b"\x1b[27;5;44~", letter(',', CTRL)),
        (b"\x1b[27;5;1092~", letter('a', CTRL)),
    ]
}

/// Sequences that are no keys, and what each is.
fn others() -> Vec<(&'static [u8], Vec<Event>)> {
    vec![
        (b"\x1b[I", vec![Event::FocusGained]),
        (b"\x1b[O", vec![Event::FocusLost]),
        (b"\x1b[200~one\rtwo \x1b[A\x1b[201~", vec![Event::Paste("one\rtwo \u{1b}[A".into())]),
        (b"\x1b[201~", vec![]),
        (b"\x1b]11;rgb:1e1e/1e1e/2e2e\x07", vec![]),
        (b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\", vec![]),
        (b"\x1bP>|tmux 3.4\x1b\\", vec![]),
        (b"\x1b_Gi=31;OK\x1b\\", vec![]),
        (b"\x1b^private\x1b\\", vec![]),
        (b"\x1bXstart\x1b\\", vec![]),
        (b"\x1b[?62;22;52c", vec![]),
        (b"\x1b[?2026;2$y", vec![]),
        (b"\x1b[?997;1n", vec![]),
        (b"\x1b[>0;276;0c", vec![]),
        (b"\x1b[12;40R", vec![]),
        (b"\x1b[8;24;80t", vec![]),
        (b"\x1b[?1u", vec![]),
    ]
}

#[test]
fn the_reply_about_records_is_no_key_wherever_it_is_cut() {
    let reply = b"a\x1b]7501;?:states=idle,working\x1b\\b";
    for cut in 0..reply.len() {
        let mut bench = Bench::new();
        let mut events = bench.feed(&reply[..cut]);
        events.extend(bench.feed(&reply[cut..]));
        let typed = ['a', 'b'].map(|c| key(KeyCode::Char(c), KeyModifiers::NONE));
        assert_eq!(events, typed, "cut at {cut}");
        let replies = bench.parser.take_replies();
        let [Reply::Records(states)] = &replies[..] else { panic!("cut at {cut}: {replies:?}") };
        assert!(states.take(Status::Idle) && !states.take(Status::Done), "cut at {cut}");
    }
    let mut bench = Bench::new();
    let long = [b"\x1b]7501;?:".as_slice(), &[b'x'; 600], b"\x07"].concat();
    assert_eq!(bench.feed(&long), []);
    assert_eq!(bench.parser.take_replies(), [], "too long");
}

#[test]
fn replies_to_all_questions_are_taken_in_their_order_and_are_no_keys() {
    let replies = b"\x1b]11;rgb:fafa/fafa/fafa\x07\x1b[?1u\x1b[?62;22c";
    for cut in 0..replies.len() {
        let mut bench = Bench::new();
        let mut events = bench.feed(&replies[..cut]);
        events.extend(bench.all(&replies[cut..]));
        assert_eq!(events, [], "cut at {cut}");
        let expected = [Reply::Ground(Ground::Light), Reply::Chords, Reply::Attributes];
        assert_eq!(bench.parser.take_replies(), expected, "cut at {cut}");
        assert_eq!(bench.parser.take_replies(), [], "each is taken once");
    }
}

#[test]
fn every_key_is_read_however_its_bytes_are_cut() {
    let keys = keys().into_iter().map(|(bytes, event)| (bytes, vec![event]));
    for (bytes, expected) in keys.chain(others()) {
        let shown = String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(events(bytes), expected, "{shown:?} whole");
        for cut in 1..bytes.len() {
            let mut bench = Bench::new();
            let mut found = bench.feed(&bytes[..cut]);
            found.extend(bench.pass(30));
            found.extend(bench.all(&bytes[cut..]));
            assert_eq!(found, expected, "{shown:?} cut at {cut}");
        }
        let mut bench = Bench::new();
        let one_by_one: Vec<_> = bytes.iter().flat_map(|byte| bench.feed(&[*byte])).collect();
        let rest = bench.all(b"");
        assert_eq!([one_by_one, rest].concat(), expected, "{shown:?} byte by byte");
    }
}

#[test]
fn esc_alone_is_a_key_after_the_wait() {
    let mut bench = Bench::new();
    assert_eq!(bench.feed(b"\x1b"), []);
    assert_eq!(bench.pass(49), []);
    assert_eq!(bench.pass(1), [plain(KeyCode::Esc)]);
    assert_eq!(events(b"\x1b\x1b"), [plain(KeyCode::Esc), plain(KeyCode::Esc)]);
    // The kitty protocol needs no waiting.
    assert_eq!(bench.feed(b"\x1b[27u"), [plain(KeyCode::Esc)]);
}

#[test]
fn alt_with_the_first_byte_of_a_sequence_is_a_key() {
    for c in ['[', ']', '_', '^'] {
        assert_eq!(events(format!("\u{1b}{c}").as_bytes()), [letter(c, ALT)]);
        let twice = format!("\u{1b}{c}\u{1b}{c}");
        assert_eq!(events(twice.as_bytes()), [letter(c, ALT), letter(c, ALT)], "held down");
    }
    for c in ['O', 'P', 'X'] {
        assert_eq!(events(format!("\u{1b}{c}").as_bytes()), [letter(c, ALT | SHIFT)]);
    }
}

#[test]
fn keys_are_pressed_repeated_and_released() {
    for (number, kind) in
        [(1, KeyEventKind::Press), (2, KeyEventKind::Repeat), (3, KeyEventKind::Release)]
    {
        for (sequence, code) in [
            (format!("\u{1b}[97;1:{number}u"), KeyCode::Char('a')),
            (format!("\u{1b}[1;1:{number}A"), KeyCode::Up),
            (format!("\u{1b}[5;1:{number}~"), KeyCode::PageUp),
        ] {
            let expected = KeyEvent::new_with_kind(code, KeyModifiers::NONE, kind);
            assert_eq!(events(sequence.as_bytes()), [Event::Key(expected)]);
        }
    }
}

#[test]
fn the_mouse_is_read_in_both_forms() {
    let at = |bytes: &[u8]| match events(bytes)[..] {
        [Event::Mouse(event)] => (event.kind, event.column, event.row),
        ref other => panic!("{other:?}"),
    };
    let left = crossterm::event::MouseButton::Left;
    assert_eq!(at(b"\x1b[<0;20;5M"), (MouseEventKind::Down(left), 19, 4));
    assert_eq!(at(b"\x1b[<0;20;5m"), (MouseEventKind::Up(left), 19, 4));
    assert_eq!(at(b"\x1b[<32;300;5M"), (MouseEventKind::Drag(left), 299, 4));
    assert_eq!(at(b"\x1b[<65;0;0M"), (MouseEventKind::ScrollDown, 0, 0));
    assert_eq!(at(b"\x1b[M 5%"), (MouseEventKind::Down(left), 20, 4));
    assert_eq!(events(b"\x1b[<0;99999;5M"), []);
}

#[test]
fn keys_are_read_after_a_string_without_an_end() {
    let mut bench = Bench::new();
    assert_eq!(bench.feed(b"\x1b]11;rgb:1e1e"), []);
    bench.pass(900);
    assert_eq!(bench.feed(b"/1e1e"), []);
    assert_eq!(bench.pass(200), []);
    assert_eq!(bench.all(b"a"), [letter('a', KeyModifiers::NONE)]);
    // Neither does it swallow a key that no reply contains.
    assert_eq!(events(b"\x1bP1$r\x03"), [letter('c', CTRL)]);
    assert_eq!(events(b"\x1b]0;title\x1b[A"), [plain(KeyCode::Up)]);
}

#[test]
fn the_rest_of_a_reply_is_no_text_however_long_it_pauses() {
    let reply = b"\x1b]11;rgb:fafa/fafa/fafa\x1b\\";
    for cut in 3..reply.len() - 2 {
        let mut bench = Bench::new();
        assert_eq!(bench.feed(&reply[..cut]), []);
        assert_eq!(bench.pass(90_000), []);
        let rest = [&reply[cut..], b"a"].concat();
        assert_eq!(bench.feed(&rest), [letter('a', KeyModifiers::NONE)], "cut at {cut}");
        assert_eq!(bench.parser.take_replies().len(), 1, "cut at {cut}");
    }
    // What a person types after a reply without an end is typed at once.
    let mut bench = Bench::new();
    bench.feed(b"\x1b]11;rgb:fa");
    bench.pass(90_000);
    let typed = ['f', 'a'].map(|c| letter(c, KeyModifiers::NONE));
    assert_eq!(bench.feed(b"fa"), typed);
}

#[test]
fn a_paste_without_an_end_is_delivered_after_a_pause() {
    let mut bench = Bench::new();
    assert_eq!(bench.feed(b"\x1b[200~rm -rf\r"), []);
    bench.pass(800);
    assert_eq!(bench.feed(b"more"), []);
    assert_eq!(bench.pass(1000), [Event::Paste("rm -rf\rmore".into())]);
    assert_eq!(bench.feed(b"\x1b[201~x"), [letter('x', KeyModifiers::NONE)]);
}

#[test]
fn a_paste_that_holds_its_own_end_types_nothing() {
    let paste = |text: &str| Event::Paste(text.into());
    let hostile = b"\x1b[200~one\x1b[201~rm -rf /\r\x1b[201~";
    let expected = [paste("one"), paste("rm -rf /\r")];
    assert_eq!(events(hostile), expected, "in one read");
    for cut in 1..hostile.len() {
        let mut bench = Bench::new();
        let mut found = bench.feed(&hostile[..cut]);
        found.extend(bench.pass(9));
        found.extend(bench.all(&hostile[cut..]));
        assert_eq!(found, expected, "cut at {cut}");
    }
    let twice = b"\x1b[200~one\x1b[201~\x1b[200~two\x1b[201~";
    assert_eq!(events(twice), [paste("one"), paste("two")], "two pastes at once");
    let keys = b"\x1b[200~a\x1b[201~\x18q\x1b[200~b\x1b[201~";
    let found = events(keys);
    assert!(found.iter().all(|event| matches!(event, Event::Paste(_))), "{found:?}");
}

#[test]
fn keys_directly_behind_a_paste_are_keys_a_moment_later() {
    let mut bench = Bench::new();
    assert_eq!(bench.feed(b"\x1b[200~one\x1b[201~\r"), [Event::Paste("one".into())]);
    assert_eq!(bench.pass(9), []);
    assert_eq!(bench.pass(1), [plain(KeyCode::Enter)]);
    let typed = [plain(KeyCode::Up), letter('a', KeyModifiers::NONE), plain(KeyCode::Enter)];
    let found = bench.all(b"\x1b[200~two\x1b[201~\x1b[Aa\r");
    assert_eq!(found, [vec![Event::Paste("two".into())], typed.to_vec()].concat());
    // Whatever follows without a pause, the keys are not held for ever.
    bench.feed(b"\x1b[200~three\x1b[201~");
    let held: Vec<_> = (0..200).flat_map(|_| [bench.feed(b"\t"), bench.pass(9)].concat()).collect();
    assert_eq!(held.first(), Some(&plain(KeyCode::Tab)));
}

#[test]
fn a_huge_paste_comes_in_parts_and_whole() {
    let mut bench = Bench::new();
    let line = [b'x'; 1024];
    let mut found = bench.feed(b"\x1b[200~");
    for _ in 0..20 * 1024 {
        found.extend(bench.feed(&line));
    }
    found.extend(bench.feed(b"\x1b[201~"));
    let lengths = found.iter().map(|event| match event {
        Event::Paste(text) => text.len(),
        other => panic!("{other:?}"),
    });
    let lengths: Vec<_> = lengths.collect();
    assert_eq!(lengths.iter().sum::<usize>(), 20 * 1024 * 1024);
    assert!(lengths.iter().all(|length| *length <= 8 * 1024 * 1024), "{lengths:?}");
}

#[test]
fn bytes_that_are_no_text_cost_no_neighbour() {
    let expected = [letter('\u{fffd}', KeyModifiers::NONE), letter('a', KeyModifiers::NONE)];
    assert_eq!(events(b"\xe9a"), expected, "Latin-1");
    assert_eq!(events(b"\xffa"), expected);
    assert_eq!(events(b"\xe3\x81a"), expected, "a character that is cut");
    assert_eq!(events(b"\x1b[200~\xe9a\x1b[201~"), [Event::Paste("\u{fffd}a".into())]);
}

#[test]
fn lines_that_come_at_once_are_a_paste() {
    let paste = |text: &str| vec![Event::Paste(text.into())];
    assert_eq!(events(b"first\rsecond\rthird"), paste("first\rsecond\rthird"));
    assert_eq!(events(b"first\r\n\tsecond\r"), paste("first\r\n\tsecond\r"));
    let mut bench = Bench::new();
    assert_eq!(bench.feed("日本\rone".as_bytes()), []);
    bench.pass(5);
    assert_eq!(bench.feed(b" line\r"), []);
    bench.pass(5);
    assert_eq!(bench.feed(b"two"), []);
    assert_eq!(bench.pass(10), paste("日本\rone line\rtwo"), "in three reads");
    assert_eq!(bench.all(b"\r"), [plain(KeyCode::Enter)], "the person's Enter");
}

#[test]
fn lines_that_come_byte_by_byte_are_a_paste() {
    let mut bench = Bench::new();
    let mut found = Vec::new();
    for byte in b"ab\rcd\r" {
        found.extend(bench.feed(&[*byte]));
        found.extend(bench.pass(1));
    }
    found.extend(bench.pass(10));
    let [Event::Key(_), Event::Key(_), Event::Paste(rest)] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(rest, "\rcd\r");
}

#[test]
fn an_enter_behind_text_is_an_enter() {
    let typed =
        |text: &str| text.chars().map(|c| letter(c, KeyModifiers::NONE)).collect::<Vec<_>>();
    let mut bench = Bench::new();
    assert_eq!(bench.feed(b"hello\r"), typed("hello"));
    assert_eq!(bench.pass(10), [plain(KeyCode::Enter)]);
    let slow: Vec<_> = [b"y", b"\r", b"n", b"\r"]
        .into_iter()
        .flat_map(|byte| [bench.feed(byte), bench.pass(40)].concat())
        .collect();
    let expected =
        [typed("y"), vec![plain(KeyCode::Enter)], typed("n"), vec![plain(KeyCode::Enter)]];
    assert_eq!(slow, expected.concat());
    assert_eq!(bench.feed(b"ok\r"), typed("ok"));
    assert_eq!(bench.feed(b"\x1b[A"), [plain(KeyCode::Enter), plain(KeyCode::Up)], "in order");
}

/// Numbers that look random and are the same in every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        // Zero would stay zero.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("a small number")
    }

    /// Bytes as a bad line gives them: noise, and beginnings of what means something.
    fn noise(&mut self) -> Vec<u8> {
        let beginnings: [&[u8]; 9] = [
            b"\x1b",
            b"\x1b[",
            b"\x1b]",
            b"\x1bP",
            b"\x1b[200~",
            b"\x1b[<",
            b"\x1b[M",
            b"\x1b[1;",
            b"text\r",
        ];
        let mut bytes = Vec::new();
        for _ in 0..self.below(40) {
            match self.below(3) {
                0 => bytes.extend_from_slice(beginnings[self.below(beginnings.len())]),
                _ => bytes.push(self.next().to_le_bytes()[0]),
            }
        }
        bytes
    }
}

#[test]
fn after_any_noise_and_a_pause_a_letter_is_a_letter() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut bench = Bench::new();
    for round in 0..20_000 {
        let noise = random.noise();
        for part in noise.chunks(random.below(16) + 1) {
            bench.feed(part);
            bench.pass(random.next() % 60);
        }
        bench.pass(1000);
        let found = bench.feed(b"a");
        assert_eq!(found.last(), Some(&letter('a', KeyModifiers::NONE)), "{round}: {noise:?}");
        bench.pass(20);
    }
}

#[test]
fn typed_text_keeps_its_order() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let letters: Vec<char> = "abc Zé日🦀\r".chars().collect();
    for round in 0..5_000 {
        let text: String = (0..30).map(|_| letters[random.below(letters.len())]).collect();
        let mut bench = Bench::new();
        let mut found = Vec::new();
        for part in text.as_bytes().chunks(random.below(9) + 1) {
            found.extend(bench.feed(part));
            found.extend(bench.pass(random.next() % 30));
        }
        found.extend(bench.all(b""));
        let read: String = found.iter().map(text_of).collect();
        assert_eq!(read, text, "{round}");
    }
}

fn text_of(event: &Event) -> String {
    match event {
        Event::Key(KeyEvent { code: KeyCode::Char(c), .. }) => c.to_string(),
        Event::Key(KeyEvent { code: KeyCode::Enter, .. }) => "\r".into(),
        Event::Paste(text) => text.clone(),
        other => panic!("{other:?}"),
    }
}

/// Something that a terminal sends as a whole, and what it is.
type Sent = (Vec<u8>, Vec<Event>);

/// Everything that a person does with keys and paste, in the old protocol and that of kitty, and what terminals send by
/// themselves.
fn anything(random: &mut Random) -> Sent {
    const TEXTS: [&str; 6] = ["a", "Z9", "日本", "é🦀", "\x1b[A", "\r\n\tfn"];
    let known = |(bytes, events): (&[u8], Vec<Event>)| (bytes.to_vec(), events);
    match random.below(8) {
        0 | 1 => {
            let keys = keys();
            let (bytes, event) = keys[random.below(keys.len())].clone();
            (bytes.to_vec(), vec![event])
        }
        2 => {
            let c = ['a', 'ж', '漢', '/'][random.below(4)];
            (c.to_string().into_bytes(), vec![letter(c, KeyModifiers::NONE)])
        }
        3 => {
            let (c, held) = (['q', 'x', '5'][random.below(3)], random.below(8));
            let number = u32::try_from(held).expect("a small number");
            let bytes = format!("\x1b[{};{}u", u32::from(c), number + 1);
            let all = [(1, SHIFT), (2, ALT), (4, CTRL)];
            let modifiers = all.iter().filter(|(bit, _)| number & bit != 0).map(|(_, held)| *held);
            (bytes.into_bytes(), vec![letter(c, modifiers.collect())])
        }
        4 => {
            let (column, row) = (random.below(300), random.below(90));
            let bytes = format!("\x1b[<65;{};{}M", column + 1, row + 1);
            let event = crossterm::event::MouseEvent {
                kind: MouseEventKind::ScrollDown,
                column: column.try_into().expect("a small number"),
                row: row.try_into().expect("a small number"),
                modifiers: KeyModifiers::NONE,
            };
            (bytes.into_bytes(), vec![Event::Mouse(event)])
        }
        5 => {
            let text: String =
                (0..random.below(9) + 1).map(|_| TEXTS[random.below(TEXTS.len())]).collect();
            let bytes = [b"\x1b[200~", text.as_bytes(), b"\x1b[201~"].concat();
            (bytes, vec![Event::Paste(text)])
        }
        _ => {
            let others = others();
            known(others[random.below(others.len())].clone())
        }
    }
}

/// Reads bytes that are cut anywhere, with pauses of less than `pause` milliseconds.
fn read_in_parts(bench: &mut Bench, random: &mut Random, bytes: &[u8], pause: u64) -> Vec<Event> {
    let (mut rest, mut found) = (bytes, Vec::new());
    while !rest.is_empty() {
        let longest = if random.below(2) == 0 { 1 } else { rest.len() };
        let (part, behind) = rest.split_at(random.below(longest) + 1);
        found.extend(bench.feed(part));
        found.extend(bench.pass(random.next() % pause));
        rest = behind;
    }
    found
}

/// What was typed and pasted as text, and all else as it is. Where lines end at once, typed text may count as pasted.
fn flat(events: &[Event]) -> String {
    let one = |event: &Event| match event {
        Event::Paste(text) => text.clone(),
        Event::Key(KeyEvent { code: KeyCode::Enter, modifiers, .. }) if modifiers.is_empty() => {
            "\r".into()
        }
        Event::Key(KeyEvent { code: KeyCode::Tab, modifiers, .. }) if modifiers.is_empty() => {
            "\t".into()
        }
        Event::Key(KeyEvent { code: KeyCode::Char('j'), modifiers: CTRL, .. }) => "\n".into(),
        Event::Key(KeyEvent { code: KeyCode::Char(c), modifiers, .. })
            if (*modifiers - SHIFT).is_empty() =>
        {
            c.to_string()
        }
        other => format!("<{other:?}>"),
    };
    events.iter().map(one).collect()
}

/// `YOI_FUZZ` is the number of seconds that this takes; without it, a few thousand rounds.
#[test]
fn whatever_is_sent_is_read_as_it_was_sent_however_it_is_cut_and_whatever_came_before() {
    let seconds = std::env::var("YOI_FUZZ").ok().and_then(|seconds| seconds.parse().ok());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let seed = if until.is_some() { yoi::protocol::now_ms() | 1 } else { 0x9e37_79b9 };
    let mut random = Random(seed);
    let mut bench = Bench::new();
    for round in 0_u64.. {
        if until.map_or(round == 3_000, |until| Instant::now() >= until) {
            break;
        }
        let mut sent: Vec<Sent> =
            (0..random.below(12) + 1).map(|_| anything(&mut random)).collect();
        let scene = format!("seed {seed}, round {round}: {sent:?}");
        // A line that was bad, and is good again.
        let noise = random.noise();
        read_in_parts(&mut bench, &mut random, &noise, 60);
        bench.pass(1_000);
        bench.pass(1_000);
        assert_eq!(bench.all(b"a").last(), Some(&letter('a', KeyModifiers::NONE)), "deaf, {scene}");
        bench.pass(20);
        for (bytes, expected) in &sent {
            let mut found = read_in_parts(&mut bench, &mut random, bytes, 50);
            found.extend(bench.all(b""));
            assert_eq!(&found, expected, "one by one, {scene}");
            bench.pass(20);
        }
        // The end of a paste without its beginning means something behind another one.
        sent.retain(|(bytes, _)| bytes != PASTE_ENDS);
        for part in sent.split_inclusive(|(_, events)| matches!(events[..], [Event::Paste(_)])) {
            let bytes: Vec<u8> = part.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
            let expected: Vec<Event> = part.iter().flat_map(|(_, events)| events.clone()).collect();
            let mut found = read_in_parts(&mut bench, &mut random, &bytes, 50);
            found.extend(bench.all(b""));
            assert_eq!(flat(&found), flat(&expected), "together, {scene}");
            bench.pass(20);
        }
        // Pasted text that holds the end of a paste types nothing and presses nothing.
        let held: Vec<u8> = sent.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let bytes = [b"\x1b[200~x\x1b[201~", &held[..], PASTE_ENDS].concat();
        let mut found = read_in_parts(&mut bench, &mut random, &bytes, 4);
        found.extend(bench.all(b""));
        let pasted = found.iter().all(|event| matches!(event, Event::Paste(_)));
        assert!(pasted, "hostile, {scene}: {found:?}");
        bench.pass(20);
    }
}
