//! What is on disk: the rows of the store and the lines of the logs, read without the program's own
//! code.

use crate::bench::Bench;
use rusqlite::{Connection, OpenFlags, Row};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A Pod as the store has it.
#[derive(Debug)]
pub struct PodRow {
    pub key: String,
    pub name: String,
    pub parent: Option<String>,
    pub live: bool,
    /// Milliseconds since the Unix epoch.
    pub since: i64,
    pub session: String,
    pub segment: Option<String>,
    pub scope: Value,
    pub gaps: Value,
    /// How its last run ended, if any has.
    pub last_run: Value,
}

/// Something for a Pod's mailbox.
#[derive(Debug)]
pub struct Letter {
    pub pod: String,
    pub id: String,
    pub payload: String,
    pub taken: bool,
}

/// A part of one Pod's scope that another one has.
#[derive(Debug)]
pub struct Lease {
    pub lender: String,
    pub borrower: String,
    pub rule: Value,
}

/// A question as the store has it.
#[derive(Debug)]
pub struct Question {
    pub id: String,
    pub pod: String,
    pub verdict: Option<String>,
}

/// Everything.
#[derive(Default)]
pub struct Disk {
    pub pods: Vec<PodRow>,
    pub mailbox: Vec<Letter>,
    pub peers: Vec<(String, String)>,
    pub leases: Vec<Lease>,
    pub questions: Vec<Question>,
    /// Whom a rule of policy was made for.
    pub policy: Vec<String>,
    /// Sessions that were marked as nobody's.
    pub marked: BTreeSet<String>,
    /// Every directory of a session.
    pub sessions: BTreeSet<String>,
    /// Every segment by its session and its name: whole lines only. A fork has its own file of the
    /// segment in which it parts.
    pub segments: BTreeMap<(String, String), Vec<Value>>,
    /// Lines that are no entries.
    pub wrong: Vec<String>,
}

impl Disk {
    pub fn read(bench: &Bench) -> Self {
        let mut disk = Self::default();
        disk.read_store(&bench.data().join("yoi.db"));
        let sessions = std::fs::read_dir(bench.data().join("sessions"));
        let dirs = sessions.into_iter().flatten().flatten();
        disk.sessions = dirs.map(|dir| dir.file_name().to_string_lossy().into_owned()).collect();
        for path in bench.files(".jsonl") {
            disk.read_segment(&path);
        }
        disk
    }

    fn read_store(&mut self, path: &Path) {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let mut db = Connection::open_with_flags(path, flags).expect("the store");
        // One moment for all tables.
        let db = db.transaction().expect("a transaction");
        let pods = "SELECT key, name, parent, wanted, since, session, segment, scope, gaps, \
                    coalesce(last_run, 'null') FROM pods";
        self.pods = rows(&db, pods, |row| {
            Ok(PodRow {
                key: row.get(0)?,
                name: row.get(1)?,
                parent: row.get(2)?,
                live: row.get::<_, String>(3)? == "live",
                since: row.get(4)?,
                session: row.get(5)?,
                segment: row.get(6)?,
                scope: json(&row.get::<_, String>(7)?),
                gaps: json(&row.get::<_, String>(8)?),
                last_run: json(&row.get::<_, String>(9)?),
            })
        });
        self.mailbox = rows(&db, "SELECT pod, id, payload, taken FROM mail", |row| {
            let (pod, id, payload) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Letter { pod, id, payload, taken: row.get(3)? })
        });
        self.peers = rows(&db, "SELECT a, b FROM peers", |row| Ok((row.get(0)?, row.get(1)?)));
        self.leases = rows(&db, "SELECT lender, borrower, rule FROM loans", |row| {
            let (lender, borrower) = (row.get(0)?, row.get(1)?);
            Ok(Lease { lender, borrower, rule: json(&row.get::<_, String>(2)?) })
        });
        let marked = rows(&db, "SELECT session FROM discards", |row| row.get(0));
        self.marked = marked.into_iter().collect();
        self.policy = rows(&db, "SELECT pod FROM policy", |row| row.get(0));
        self.questions = rows(&db, "SELECT id, pod, verdict FROM asks", |row| {
            Ok(Question { id: row.get(0)?, pod: row.get(1)?, verdict: row.get(2)? })
        });
    }

    fn read_segment(&mut self, path: &Path) {
        let bytes = std::fs::read(path).expect("a segment");
        let mut lines = Vec::new();
        let mut ids = BTreeSet::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if line.last() != Some(&b'\n') {
                break;
            }
            match serde_json::from_slice::<Value>(line) {
                Ok(entry) => {
                    let id = entry["id"].as_str().unwrap_or_default().to_owned();
                    if id.is_empty() || !ids.insert(id) {
                        let text = format!("{}: no id of its own: {entry}", path.display());
                        self.wrong.push(text);
                    }
                    lines.push(entry);
                }
                Err(error) => {
                    let text = String::from_utf8_lossy(line);
                    self.wrong.push(format!("{}: {error}: {text}", path.display()));
                }
            }
        }
        let last = |part: Option<&std::ffi::OsStr>| {
            part.expect("a segment lies in its session").to_string_lossy().into_owned()
        };
        let session = last(path.parent().and_then(Path::file_name));
        self.segments.insert((session, last(path.file_stem())), lines);
    }

    /// Every entry once, also when segments share it.
    pub fn entries(&self) -> BTreeMap<&str, &Value> {
        let all = self.segments.values().flatten();
        all.filter_map(|entry| Some((entry["id"].as_str()?, entry))).collect()
    }

    /// Every entry of one Pod once, oldest first.
    pub fn entries_of(&self, pod: &PodRow) -> BTreeMap<&str, &Value> {
        let own = self.segments.iter().filter(|((session, _), _)| *session == pod.session);
        let all = own.flat_map(|(_, lines)| lines);
        all.filter_map(|entry| Some((entry["id"].as_str()?, entry))).collect()
    }

    /// Whether a Pod was being made and had nothing to do yet when its host ended.
    pub fn is_unfinished(&self, pod: &PodRow) -> bool {
        let begins =
            |entry: &Value| entry["kind"] == "user_input" || !entry["forked_from"].is_null();
        let mut own = self.segments.iter().filter(|((session, _), _)| *session == pod.session);
        self.marked.contains(&pod.session) && !own.any(|(_, lines)| lines.iter().any(begins))
    }

    /// The lines of a segment of a Pod.
    pub fn lines(&self, pod: &PodRow, segment: &str) -> Option<&[Value]> {
        let name = (pod.session.clone(), segment.to_owned());
        self.segments.get(&name).map(Vec::as_slice)
    }

    /// What waits in mailboxes.
    pub fn waiting(&self) -> impl Iterator<Item = &Letter> {
        self.mailbox.iter().filter(|letter| !letter.taken)
    }

    pub fn pod(&self, key: &str) -> Option<&PodRow> {
        self.pods.iter().find(|row| row.key == key)
    }
}

fn rows<T>(
    db: &Connection,
    sql: &str,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Vec<T> {
    let mut statement = db.prepare(sql).expect(sql);
    let all = statement.query_map([], read).expect(sql);
    all.map(|row| row.expect(sql)).collect()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
