//! The Program Status Protocol (OSC 7501, revision 0.4): programs report their state, and the states of their parts,
//! to terminals that list them. Terminals that do not know it ignore the sequences; yoi sends reports only to one that
//! answered its query.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt;

/// The request to say which states the terminal takes.
pub const QUERY: &str = "\x1b]7501;?\x1b\\";
/// The beginning of a reply, behind ESC ].
const REPLY: &str = "7501;?";
/// The most bytes of the whole id, of one of its segments, of a title and of a message; and the most segments.
const MAX_ID: usize = 128;
const MAX_SEGMENT: usize = 32;
const MAX_SEGMENTS: usize = 8;
const MAX_TITLE: usize = 192;
const MAX_MESSAGE: usize = 512;
/// Digits of a hash that stands for a name.
const HASH: usize = 16;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    Idle,
    /// It has ended and the result was not seen.
    Done,
    Working,
    /// It failed and stands still.
    Error,
    /// Only a person can get it further.
    Blocked(Need),
}

/// What a person has to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    Permission,
    Question,
    /// A key or a login.
    Auth,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Done => "done",
            Self::Working => "working",
            Self::Error => "error",
            Self::Blocked(_) => "blocked",
        }
    }
}

impl Need {
    fn word(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Question => "question",
            Self::Auth => "auth",
        }
    }
}

/// The states that a terminal takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct States(Option<Vec<String>>);

impl States {
    /// The states of a control string of the terminal, without ESC ] and its end; `None` if it is no reply to
    /// [`QUERY`].
    pub fn of_reply(text: &[u8]) -> Option<Self> {
        let fields = std::str::from_utf8(text).ok()?.strip_prefix(REPLY)?;
        if !fields.is_empty() && !fields.starts_with(':') {
            return None;
        }
        let states = fields.split(':').find_map(|field| field.strip_prefix("states="));
        Some(Self(states.map(|list| list.split(',').map(|word| word.trim().to_owned()).collect())))
    }

    /// Whether the terminal takes it; one that lists no states takes those of the revision.
    pub fn take(&self, status: Status) -> bool {
        self.0.as_ref().is_none_or(|words| words.iter().any(|word| word == status.word()))
    }
}

/// One record of a terminal, which each report replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// From [`id`]; `None` for the record of the whole program.
    pub id: Option<String>,
    pub status: Status,
    pub title: String,
    /// A line about the state; may be empty.
    pub message: String,
}

/// The sequence that reports the record.
impl fmt::Display for Record {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\x1b]7501;state={}", self.status.word())?;
        if let Some(id) = &self.id {
            write!(out, ":id={id}")?;
        }
        if let Status::Blocked(need) = self.status {
            write!(out, ":kind={}", need.word())?;
        }
        out.write_str(":app=yoi")?;
        for (key, text, most) in
            [("title", &self.title, MAX_TITLE), ("msg", &self.message, MAX_MESSAGE)]
        {
            let text = encoded(text, most);
            if !text.is_empty() {
                write!(out, ":{key}={text}")?;
            }
        }
        out.write_str("\x1b\\")
    }
}

/// The sequence that removes a record and those below it; without an id, all records of this program.
pub fn clear(id: &Option<String>) -> String {
    let id = id.as_ref().map(|id| format!(":id={id}")).unwrap_or_default();
    format!("\x1b]7501;state=clear{id}\x1b\\")
}

/// The id of the record of a Pod: its lineage, the root first. A name that an id cannot hold becomes a hash, and so does
/// a lineage that is too long.
pub fn id<'a>(lineage: impl Iterator<Item = &'a str>) -> String {
    let segments: Vec<String> = lineage.map(segment).collect();
    let id = segments.join("/");
    if segments.len() <= MAX_SEGMENTS && id.len() <= MAX_ID { id } else { hash(&id) }
}

fn segment(name: &str) -> String {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte);
    let fits = (1..=MAX_SEGMENT).contains(&name.len()) && name.bytes().all(is_allowed);
    if fits { name.to_owned() } else { hash(name) }
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..HASH].to_owned()
}

/// A text without control characters, of at most so many bytes, as the protocol carries it.
fn encoded(text: &str, most: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    STANDARD.encode(&text[..text.floor_char_boundary(most)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use termstate_core::{Kind, Message, State, parse_body};

    /// What a terminal reads of a sequence.
    fn body(sequence: &str) -> &str {
        let body = sequence.strip_prefix("\x1b]7501;").and_then(|rest| rest.strip_suffix("\x1b\\"));
        body.unwrap_or_else(|| panic!("no sequence: {sequence:?}"))
    }

    #[test]
    fn another_decoder_reads_the_reports() {
        let long = "🦀".repeat(400);
        let record = Record {
            id: Some(id(["shop", "prüfer", "über-den-zaun"].into_iter())),
            status: Status::Blocked(Need::Permission),
            title: "prüfer".into(),
            message: format!("wants\x1b the network\n{long}"),
        };
        let text = record.to_string();
        let Ok(Message::Report(report)) = parse_body(body(&text).as_bytes()) else {
            panic!("no report: {text:?}")
        };
        assert_eq!((report.state, report.kind), (State::Blocked, Some(Kind::Permission)));
        let id = report.id.map(|id| id.as_str()).expect("an id");
        assert!(id.starts_with("shop/") && id.split('/').count() == 3, "{id}");
        let message = report.msg.expect("a message").to_string();
        assert!(message.starts_with("wants  the network 🦀"), "{message}");
        for status in [Status::Idle, Status::Done, Status::Working, Status::Error] {
            let text = Record { id: None, status, title: String::new(), message: String::new() };
            let text = text.to_string();
            let Ok(Message::Report(report)) = parse_body(body(&text).as_bytes()) else {
                panic!("no report: {text:?}")
            };
            assert_eq!((report.state.as_str(), report.id), (status.word(), None));
        }
        for id in [None, Some("shop/a".to_owned())] {
            let text = clear(&id);
            let read = parse_body(body(&text).as_bytes());
            assert!(matches!(read, Ok(Message::Clear { .. })), "{text:?}");
        }
        assert!(matches!(parse_body(body(QUERY).as_bytes()), Ok(Message::Feature(_))));
    }

    #[test]
    fn the_id_of_any_lineage_is_valid_and_its_own() {
        let deep: Vec<String> = (0..40).map(|level| format!("a{level}")).collect();
        let long = "x".repeat(64);
        let other = "y".repeat(64);
        let cases: [Vec<&str>; 5] = [
            vec!["a"],
            deep.iter().map(String::as_str).collect(),
            deep.iter().skip(1).map(String::as_str).collect(),
            vec![&long, &long, &long],
            vec![&long, &long, &other],
        ];
        let ids: Vec<String> = cases.iter().map(|case| id(case.iter().copied())).collect();
        for id in &ids {
            assert!(termstate_core::Id::new(id).is_ok(), "{id}");
        }
        let unique: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "{ids:?}");
    }

    #[test]
    fn a_reply_says_which_states_the_terminal_takes() {
        let some = States::of_reply(b"7501;?:states=idle,blocked:kinds=auth").expect("a reply");
        assert!(some.take(Status::Blocked(Need::Question)) && !some.take(Status::Done));
        let all = States::of_reply(b"7501;?").expect("a reply");
        assert!(all.take(Status::Done));
        for other in [b"7501;state=idle".as_slice(), b"10;rgb:0/0/0", b"7501;?x", b"\xff"] {
            assert_eq!(States::of_reply(other), None);
        }
    }
}
