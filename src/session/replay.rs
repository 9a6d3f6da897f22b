//! The fold of a segment: what the model is told when the Pod goes on, and what the Pod was when
//! it ended.

use crate::protocol::entry::{Entry, Fact, FileMark, Kept, SegmentOrigin, domain};
use crate::protocol::item::{Item, RequestConfig, Role, flatten};
use crate::protocol::method::Segment;
use crate::protocol::name::{EntryId, SessionId};
use crate::session::LogError;
use crate::session::line::{Damaged, Forward, decode};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A segment, folded.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    pub session_id: SessionId,
    pub system_prompt: Option<String>,
    pub config: RequestConfig,
    /// What the model reads, oldest first.
    pub history: Vec<Kept>,
    pub turn_count: u64,
    /// Whether the last run ended before its work did, or has not ended.
    pub interrupted: bool,
    /// Calls without a result, oldest first: call id and tool name.
    pub open_calls: Vec<(String, String)>,
    /// Lines in the segment, damaged ones included.
    pub entries: usize,
    /// Bytes of whole lines.
    pub end: u64,
    /// blake3 of each file as the last call that touched it left it.
    pub files: BTreeMap<PathBuf, String>,
    /// Ids of mailbox rows that are in the history.
    pub taken: BTreeSet<String>,
    /// The length of the history and the input tokens it took, when last measured.
    pub usage: Option<(u64, u64)>,
    /// US dollars in this segment, as far as prices were known.
    pub cost: Option<f64>,
    pub damaged: Vec<Damaged>,
    /// The last `yoi.pod` record.
    pub pod: Option<Value>,
    /// When the last run was cut off by the end of its host; milliseconds since the Unix epoch.
    pub cut_at: Option<u64>,
    /// What was said by a person: which line of the segment, counted from 0; when, in milliseconds
    /// since the Unix epoch; and the words.
    pub user_inputs: Vec<(usize, u64, Vec<Segment>)>,
    pub forked_from: Option<SegmentOrigin>,
    pub compacted_from: Option<SegmentOrigin>,
}

/// Folds a segment, or its first `upto` bytes. Blocking. Damaged lines are skipped and listed; a
/// torn tail is not a line.
pub fn replay(path: &Path, upto: Option<u64>) -> Result<Replay, LogError> {
    let read = || -> std::io::Result<Fold> {
        let length = File::open(path)?.metadata()?.len();
        let end = upto.map_or(length, |upto| upto.min(length));
        let rolled_back = rolled_back(path, end)?;
        let mut fold = Fold::new(path, rolled_back);
        let mut lines = Forward::new(File::open(path)?, 0, end)?;
        let mut line = Vec::new();
        while let Some(start) = lines.next_into(&mut line)? {
            fold.line(start, &line);
        }
        Ok(fold)
    };
    let fold = read().map_err(LogError::reading(path))?;
    if fold.replay.entries == 0 {
        return Err(LogError::Empty(path.to_owned()));
    }
    Ok(fold.finish())
}

/// Which entry a rollback goes back to, when this extension is one.
pub fn rolled_back_from(name: &str, payload: &Value) -> Option<EntryId> {
    if name != domain::ROLLED_BACK {
        return None;
    }
    payload.get("from")?.as_str()?.parse().ok()
}

/// Every rollback of a segment: where it goes back to, and where its own line begins.
pub fn rolled_back(path: &Path, end: u64) -> std::io::Result<BTreeMap<EntryId, u64>> {
    let mut found = BTreeMap::new();
    let mut lines = Forward::new(File::open(path)?, 0, end)?;
    let mut line = Vec::new();
    while let Some(start) = lines.next_into(&mut line)? {
        if let Some(from) = rollback(&line) {
            found.insert(from, start);
        }
    }
    Ok(found)
}

/// Reads a rollback line; any other line is left after a glance.
pub fn rollback(line: &[u8]) -> Option<EntryId> {
    const LONGEST: usize = 512;
    let text = std::str::from_utf8(line).ok().filter(|text| text.len() < LONGEST)?;
    if !text.contains(domain::ROLLED_BACK) {
        return None;
    }
    match decode(line).ok()?.fact {
        Fact::Extension { domain, payload } => rolled_back_from(&domain, &payload),
        _ => None,
    }
}

impl Replay {
    /// Takes in an entry that was just committed, as the next replay would.
    pub fn apply(&mut self, entry: &Entry) {
        let (replay, skip) = (std::mem::replace(self, empty(Path::new(""))), BTreeMap::new());
        let mut fold = Fold { replay, skip: Skip::new(skip), run_is_open: false };
        let index = fold.replay.entries;
        fold.replay.entries += 1;
        fold.taken(&entry.fact);
        fold.entry(index, entry.clone());
        *self = fold.replay;
        if let Fact::Extension { domain, payload } = &entry.fact
            && let Some(from) = rolled_back_from(domain, payload)
        {
            self.history.retain(|kept| kept.id.is_none_or(|id| id < from));
            self.usage = self.usage.filter(|(at, _)| *at <= self.history.len() as u64);
        }
    }
}

/// Skips what was rolled back, when it is fed every line in order.
pub struct Skip {
    rolled_back: BTreeMap<EntryId, u64>,
    until: Option<u64>,
}

impl Skip {
    pub fn new(rolled_back: BTreeMap<EntryId, u64>) -> Self {
        Self { rolled_back, until: None }
    }

    /// Whether the line at `start`, with this id, was rolled back.
    pub fn skips(&mut self, start: u64, id: Option<EntryId>) -> bool {
        let back_from = id.and_then(|id| self.rolled_back.get(&id)).copied();
        self.until = self.until.max(back_from.filter(|until| *until > start));
        if self.until.is_some_and(|until| start >= until) {
            self.until = None;
        }
        self.until.is_some()
    }
}

/// A replay under construction.
struct Fold {
    replay: Replay,
    skip: Skip,
    run_is_open: bool,
}

impl Fold {
    fn new(path: &Path, rolled_back: BTreeMap<EntryId, u64>) -> Self {
        Self { replay: empty(path), skip: Skip::new(rolled_back), run_is_open: false }
    }

    fn line(&mut self, start: u64, line: &[u8]) {
        self.replay.end = start + line.len() as u64 + 1;
        let index = self.replay.entries;
        self.replay.entries += 1;
        match decode(line) {
            Ok(entry) => {
                self.taken(&entry.fact);
                if !self.skip.skips(start, entry.id) {
                    self.entry(index, entry);
                }
            }
            Err(reason) if self.skip.skips(start, None) => drop(reason),
            Err(reason) => {
                let line = Some(index + 1);
                self.replay.damaged.push(Damaged { byte: start, line, reason });
            }
        }
    }

    /// A row that was taken stays taken when its entry is rolled back.
    fn taken(&mut self, fact: &Fact) {
        let id = match fact {
            Fact::UserInput { taken, .. } | Fact::SystemItem { taken, .. } => taken.as_deref(),
            Fact::Extension { domain, payload } if domain == domain::TAKEN => {
                payload.get("id").and_then(Value::as_str)
            }
            _ => None,
        };
        self.replay.taken.extend(id.map(str::to_owned));
    }

    fn entry(&mut self, index: usize, Entry { id, ts, fact }: Entry) {
        let replay = &mut self.replay;
        match fact {
            Fact::SegmentStart { .. } => self.segment_start(fact),
            Fact::Invoke { .. } => self.under_way(),
            Fact::UserInput { segments, .. } => {
                self.keep(id, Item::message(Role::User, flatten(&segments)));
                self.replay.cut_at = None;
                self.replay.user_inputs.push((index, ts, segments));
            }
            Fact::AssistantItem { item, origin, native, partial } => {
                self.under_way();
                let native = native.filter(|_| !partial);
                if !partial || is_text(&item) {
                    self.replay.history.push(Kept { id, origin, native, item });
                }
            }
            Fact::ToolResult { item, files } => {
                self.under_way();
                self.keep(id, item);
                let marks = files.into_iter().map(|FileMark { path, hash, .. }| (path, hash));
                self.replay.files.extend(marks);
            }
            Fact::SystemItem { item, .. } => {
                self.keep(id, Item::message(Role::System, item.body()))
            }
            Fact::TurnEnd { turn_count } => replay.turn_count = turn_count,
            Fact::RunCompleted { interrupted, .. } | Fact::RunErrored { interrupted, .. } => {
                replay.interrupted = interrupted;
                self.run_is_open = false;
            }
            Fact::ConfigChanged { config } => replay.config = config,
            Fact::LlmUsage { history_len, input_total_tokens, cost, .. } => {
                replay.usage = Some((history_len, input_total_tokens));
                if let Some(cost) = cost {
                    *replay.cost.get_or_insert_default() += cost;
                }
            }
            Fact::Extension { domain, payload } => self.extension(&domain, payload),
            Fact::Unknown(_) => {}
        }
    }

    fn segment_start(&mut self, fact: Fact) {
        let Fact::SegmentStart {
            session_id,
            system_prompt,
            config,
            history,
            forked_from,
            compacted_from,
        } = fact
        else {
            return;
        };
        let replay = &mut self.replay;
        replay.session_id = session_id;
        replay.system_prompt = system_prompt;
        replay.config = config;
        replay.history = history;
        replay.forked_from = forked_from;
        replay.compacted_from = compacted_from;
    }

    fn extension(&mut self, name: &str, payload: Value) {
        match name {
            domain::POD => self.replay.pod = Some(payload),
            domain::CUT => self.replay.cut_at = payload.get("at").and_then(Value::as_u64),
            _ => {}
        }
    }

    fn under_way(&mut self) {
        self.run_is_open = true;
        self.replay.cut_at = None;
    }

    fn keep(&mut self, id: Option<EntryId>, item: Item) {
        self.replay.history.push(Kept { id, origin: None, native: None, item });
    }

    fn finish(mut self) -> Replay {
        self.replay.open_calls = open_calls(&self.replay.history);
        self.replay.interrupted |= self.run_is_open;
        self.replay
    }
}

fn is_text(item: &Item) -> bool {
    item.text().is_some_and(|text| !text.is_empty())
}

/// Calls that have no result.
fn open_calls(history: &[Kept]) -> Vec<(String, String)> {
    let mut open: Vec<(String, String)> = Vec::new();
    for kept in history {
        match &kept.item {
            Item::ToolCall { call_id, name, .. } => open.push((call_id.clone(), name.clone())),
            Item::ToolResult { call_id, .. } => open.retain(|(id, _)| id != call_id),
            Item::Message { .. } | Item::Reasoning { .. } | Item::Unknown(_) => {}
        }
    }
    open
}

/// What is known of a segment before its first line: the directory it lies in names the session.
fn empty(path: &Path) -> Replay {
    let session = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let session_id = session.and_then(|name| name.parse().ok());
    Replay {
        session_id: session_id.unwrap_or(SessionId(uuid::Uuid::nil())),
        system_prompt: None,
        config: RequestConfig::default(),
        history: Vec::new(),
        turn_count: 0,
        interrupted: false,
        open_calls: Vec::new(),
        entries: 0,
        end: 0,
        files: BTreeMap::new(),
        taken: BTreeSet::new(),
        usage: None,
        cost: None,
        damaged: Vec::new(),
        pod: None,
        cut_at: None,
        user_inputs: Vec::new(),
        forked_from: None,
        compacted_from: None,
    }
}

/// The first line of a segment, which must be its start.
pub fn first_line(path: &Path) -> Result<(Entry, u64), LogError> {
    let read = || -> std::io::Result<_> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Forward::new(file, 0, length)?.next_line()
    };
    let line = read().map_err(LogError::reading(path))?;
    let Some(line) = line else { return Err(LogError::Empty(path.to_owned())) };
    let damaged = |reason| LogError::Damaged { path: path.to_owned(), byte: 0, reason };
    let entry = decode(&line.bytes).map_err(damaged)?;
    if !matches!(entry.fact, Fact::SegmentStart { .. }) {
        return Err(damaged("it does not begin with segment_start".into()));
    }
    Ok((entry, line.end()))
}
