//! `yoi mesh audit`: who sent what to whom and what became of it, as the leader of the mesh noted it.

use crate::console;
use crate::headless::Failure;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::time::Duration;
use yoi::disk::{FileId, generations, open_regular};
use yoi::text::SafeText;

/// How often the file is looked at for new lines.
const AGAIN: Duration = Duration::from_millis(200);
/// The longest line that is read, in bytes: a message to all members names each of them.
const LONGEST: u64 = 1 << 20;

/// Which lines are printed, and how.
#[derive(Debug)]
pub struct Wanted {
    /// Only lines about one of these agents, as sender, addressee or receiver; empty is every line.
    pub names: Vec<String>,
    pub json: bool,
    /// Goes on with lines that are written later.
    pub follow: bool,
}

/// A line of the audit.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Routed {
        ts: i64,
        from: String,
        to: Addressee,
        id: String,
        #[serde(default)]
        re: Option<String>,
        delivered: Vec<String>,
        ack_status: String,
        /// Why a message from or to another machine was denied.
        #[serde(default)]
        why: Option<String>,
    },
    /// Lines that the leader could not write.
    Lost { ts: i64, lost: u64 },
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Addressee {
    One(String),
    Many(Vec<String>),
}

/// Prints the audit at `path` with its older files, oldest line first.
pub async fn print(path: &Path, wanted: &Wanted) -> Result<(), Failure> {
    let mut files = opened(path).map_err(crate::cli::mesh::failed)?;
    if files.is_empty() && !wanted.follow {
        console::err(&format!("no message was noted yet: {} does not exist", path.display()));
    }
    let mut printer = Printer { wanted, zone: TimeZone::system(), unread: 0 };
    for file in &mut files {
        file.rest(&mut printer).map_err(crate::cli::mesh::failed)?;
    }
    if !wanted.follow {
        printer.say_unread();
        return Ok(());
    }
    loop {
        tokio::time::sleep(AGAIN).await;
        follow(path, &mut files, &mut printer).map_err(crate::cli::mesh::failed)?;
    }
}

/// One file of the audit, read so far.
struct AuditFile {
    id: FileId,
    lines: BufReader<File>,
    /// The beginning of a line whose end is not written yet.
    begun: Vec<u8>,
    /// Whether the line that is read now is too long and left out.
    too_long: bool,
}

/// The files there are, oldest first. They are opened before one is read, newest first, so that none is missed
/// when the leader begins a new one meanwhile.
fn opened(path: &Path) -> io::Result<Vec<AuditFile>> {
    let mut files: Vec<AuditFile> = Vec::new();
    for path in generations(path) {
        let file = match AuditFile::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        if !files.iter().any(|known| known.id == file.id) {
            files.push(file);
        }
    }
    files.reverse();
    Ok(files)
}

/// Reads what was added, and then the files that are new.
fn follow(path: &Path, files: &mut Vec<AuditFile>, printer: &mut Printer<'_>) -> io::Result<()> {
    let now = opened(path)?;
    for file in files.iter_mut() {
        file.rest(printer)?;
    }
    for mut file in now {
        if !files.iter().any(|known| known.id == file.id) {
            file.rest(printer)?;
            files.push(file);
        }
    }
    // Of the older ones only the identity is needed, and the leader keeps as many.
    let spare = files.len().saturating_sub(generations(path).len());
    files.drain(..spare);
    Ok(())
}

impl AuditFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = open_regular(path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        let id = FileId::of(&file)?;
        Ok(Self { id, lines: BufReader::new(file), begun: Vec::new(), too_long: false })
    }

    /// Prints every whole line that was not read yet.
    fn rest(&mut self, printer: &mut Printer<'_>) -> io::Result<()> {
        loop {
            let room = LONGEST.saturating_sub(self.begun.len() as u64).max(1);
            let read = io::Read::take(&mut self.lines, room).read_until(b'\n', &mut self.begun)?;
            if read == 0 {
                return Ok(());
            }
            if self.begun.last() == Some(&b'\n') {
                self.begun.pop();
                match std::mem::take(&mut self.too_long) {
                    true => printer.unread += 1,
                    false => printer.line(&self.begun),
                }
                self.begun.clear();
            } else if self.begun.len() as u64 >= LONGEST {
                self.too_long = true;
                self.begun.clear();
            }
        }
    }
}

struct Printer<'a> {
    wanted: &'a Wanted,
    zone: TimeZone,
    /// Lines that are none of an audit.
    unread: u64,
}

impl Printer<'_> {
    fn line(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let Ok(line) = serde_json::from_slice::<Line>(bytes) else {
            self.unread += 1;
            return;
        };
        if !line.is_about(&self.wanted.names) {
            return;
        }
        if self.wanted.json {
            console::out(&SafeText::json(String::from_utf8_lossy(bytes)));
        } else {
            console::out(&line.text(&self.zone));
        }
    }

    fn say_unread(&self) {
        if self.unread > 0 {
            let lines = if self.unread == 1 { "line is" } else { "lines are" };
            console::err(&format!("{} {lines} damaged and left out", self.unread));
        }
    }
}

impl Line {
    /// Whether one of these names occurs in it; a line about lost lines may be about any.
    fn is_about(&self, names: &[String]) -> bool {
        let Self::Routed { from, to, delivered, .. } = self else { return true };
        let to = match to {
            Addressee::One(name) => std::slice::from_ref(name),
            Addressee::Many(names) => names,
        };
        let mut all = std::iter::once(from).chain(to).chain(delivered);
        names.is_empty() || all.any(|name| names.contains(name))
    }

    fn text(&self, zone: &TimeZone) -> String {
        let time = |ts: i64| {
            let at = Timestamp::from_millisecond(ts).unwrap_or(Timestamp::UNIX_EPOCH);
            at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
        };
        match self {
            Self::Routed { ts, from, to, id, re, delivered, ack_status, why } => {
                let state = state(ack_status, to, delivered);
                let to = match to {
                    Addressee::One(name) => name.clone(),
                    Addressee::Many(names) => names.join(","),
                };
                let re = re.as_ref().map(|re| format!(" re={re}")).unwrap_or_default();
                let why = why.as_ref().map(|why| format!(" why: {why}")).unwrap_or_default();
                let line = format!("{} {from} -> {to}: {state} id={id}{re}{why}", time(*ts));
                SafeText::line(line).into_string()
            }
            Self::Lost { ts, lost } => {
                format!("{} {lost} messages were not noted: the disk was too slow", time(*ts))
            }
        }
    }
}

/// What became of a message: the acknowledgement, else which agents got it.
fn state(ack_status: &str, to: &Addressee, delivered: &[String]) -> String {
    match (ack_status, to, delivered) {
        ("none", _, []) => "delivered to no agent".into(),
        ("none", Addressee::One(to), [one]) if to == one => "delivered, not acknowledged".into(),
        ("none", _, all) => format!("delivered to {}", all.join(",")),
        (status, ..) => status.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(json: &str) -> Line {
        serde_json::from_str(json).expect(json)
    }

    #[test]
    fn a_line_says_the_time_the_way_and_what_became_of_the_message() {
        let text = |json: &str| line(json).text(&TimeZone::UTC);
        let one = r#"{"ts":1000,"from":"a","to":"b","id":"i","re":"r","delivered":["b"],"ack_status":"received","via":"uds"}"#;
        assert_eq!(text(one), "1970-01-01 00:00:01.000 a -> b: received id=i re=r");
        let many = r#"{"ts":0,"from":"a","to":["b","c"],"id":"i","re":null,"delivered":["c"],"ack_status":"none","via":"uds"}"#;
        assert_eq!(text(many), "1970-01-01 00:00:00.000 a -> b,c: delivered to c id=i");
        let unknown = r#"{"ts":0,"from":"a","to":"x","id":"i","re":null,"delivered":[],"ack_status":"none","via":"uds"}"#;
        assert!(text(unknown).contains("a -> x: delivered to no agent id=i"));
        let open = r#"{"ts":0,"from":"a","to":"b","id":"i","re":null,"delivered":["b"],"ack_status":"none","via":"uds"}"#;
        assert!(text(open).contains("a -> b: delivered, not acknowledged id=i"));
        let lost = text(r#"{"ts":0,"lost":7}"#);
        assert!(lost.ends_with("7 messages were not noted: the disk was too slow"), "{lost}");
        let evil = r#"{"ts":0,"from":"a\n\u001b[2J","to":"b","id":"i","delivered":[],"ack_status":"denied","via":"uds"}"#;
        assert_eq!(text(evil).lines().count(), 1);
        assert!(!text(evil).contains('\u{1b}'));
    }

    #[test]
    fn a_name_is_that_of_a_sender_an_addressee_or_a_receiver() {
        let all = r#"{"ts":0,"from":"a","to":"broadcast","id":"i","re":null,"delivered":["b"],"ack_status":"none","via":"uds"}"#;
        for (names, expected) in
            [(vec![], true), (vec!["a"], true), (vec!["x", "b"], true), (vec!["x"], false)]
        {
            let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            assert_eq!(line(all).is_about(&names), expected, "{names:?}");
        }
    }
}
