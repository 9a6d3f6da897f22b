//! The blocks of a transcript: one for each log entry, and one for each reply that streams.

use crate::rows::Row;
use crate::screen::pane::inbox::verdict_words;
use crate::screen::pane::transcript::approval::{self, Approval};
use crate::screen::pane::transcript::clean;
use crate::screen::pane::transcript::parts::LongText;
use crate::screen::pane::transcript::rest::{PartText, Rest, shortened};
use crate::screen::pane::transcript::tool::{Outcome, Tool};
use crate::theme::Role;
use crate::wording;
use crate::wording::duration::elapsed;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::rc::Rc;
use yoi::protocol::entry::{compaction_summary, domain};
use yoi::protocol::mesh::SentMessage;
use yoi::protocol::{
    Entry, EntryId, Fact, Item, Losses, PodName, RunOutcome, Segment, SystemItem, Verdict,
};

/// One block.
pub struct Block {
    /// Its log entry; `None` while it streams.
    pub id: Option<EntryId>,
    /// When it was committed, in milliseconds; 0 while it streams.
    pub ts: u64,
    pub kind: Kind,
    pub fold: Fold,
    /// Whether it streams: its entry is not committed yet.
    pub live: bool,
    /// Whether it takes no row: another block shows it, or it was taken back.
    pub gone: bool,
    /// The size of the whole entry, if this is only its beginning.
    pub cut: Option<u64>,
    /// The long text in the log of which it holds the beginning.
    pub long: Option<Box<LongText>>,
    /// The parts after that beginning.
    pub rest: Rest,
    pub cache: Option<Box<Cache>>,
}

/// Its rows at a width, kept while it is near the view.
#[derive(Default)]
pub struct Cache {
    pub cells: u16,
    /// The generation of the transcript for which the rows were drawn.
    pub generation: u32,
    /// Whether the text has grown since.
    pub stale: bool,
    pub rows: Vec<Row>,
    pub finished: crate::screen::pane::transcript::markdown::Finished,
}

/// Whether a block shows all of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fold {
    /// Decided by its kind and the level of detail.
    #[default]
    Auto,
    Open,
    Shut,
    /// As its kind and the level of detail decide, but not in one row with the reads beside it.
    Apart,
}

pub enum Kind {
    /// A message of a person, or of the parent.
    User {
        segments: Vec<Segment>,
        /// The text behind a long text whose beginning is the last segment. It is shown while a long paste is folded;
        /// the parts of the long text hold it too.
        behind: Vec<Segment>,
        from: Option<PodName>,
    },
    /// A text of the model, as markdown, safe to show.
    Said {
        text: String,
        partial: bool,
    },
    Thought(Thought),
    Tool(Box<Tool>),
    /// A part of a long text, under the block that holds its beginning.
    Part(Box<PartText>),
    /// The result of a tool. Its call shows it; while the call is not loaded, this block does.
    Result {
        call_id: String,
        outcome: Rc<Outcome>,
    },
    /// An item that the runtime put into the history.
    System(Box<SystemItem>),
    /// A line about the run itself.
    Note {
        role: Role,
        text: String,
    },
    /// An approval request of a call.
    Approval(Box<Approval>),
    /// The decision on a request. The request shows it; while the request is not loaded, this block does.
    Decision {
        approval: String,
        verdict: Verdict,
    },
    /// The moment a run was cut off.
    CutOff {
        at: u64,
    },
    /// A border between two parts of the history.
    Border(String),
    /// What a compaction handed over of the history before it.
    Summary(String),
    /// A model request failed and is made again.
    Retry {
        text: String,
        retry: Retry,
    },
    /// What only full detail shows: the usage of a model request, and what a run was told of its surroundings.
    Aside(String),
}

/// When a model request is made again.
#[derive(Clone, Copy, Default)]
pub struct Retry {
    /// 0 if it is made at once.
    pub wait_ms: u64,
    /// When it failed, as this screen saw it.
    pub since: Option<u64>,
    /// Which attempt the next one is, of how many.
    pub attempt: (u32, u32),
}

impl Retry {
    /// How long until the next attempt, in milliseconds.
    pub fn left(&self, now: u64) -> u64 {
        (self.since.unwrap_or(now) + self.wait_ms).saturating_sub(now)
    }

    /// When the next attempt is made, in words.
    pub fn next(&self, now: u64) -> String {
        let (attempt, of) = self.attempt;
        match self.left(now) {
            0 => "waits for its provider".to_owned(),
            left => format!("again in {}, {attempt} of {of}", elapsed(left + 999)),
        }
    }
}

#[derive(Default)]
pub struct Thought {
    pub text: String,
    /// When it began to stream, as this screen saw it.
    pub since: Option<u64>,
    pub took_ms: Option<u64>,
}

/// The effect of an entry on the blocks.
pub enum Reading {
    Block(Block),
    /// All blocks from this entry on were taken back.
    TakenBack(EntryId),
    /// The entry shows no block.
    Nothing,
}

impl Block {
    pub fn new(kind: Kind) -> Self {
        Self {
            id: None,
            ts: 0,
            kind,
            fold: Fold::Auto,
            live: false,
            gone: false,
            cut: None,
            long: None,
            rest: Rest::default(),
            cache: None,
        }
    }

    /// A block that streams.
    pub fn live(kind: Kind) -> Self {
        Self { live: true, ..Self::new(kind) }
    }

    pub fn note(role: Role, text: impl Into<String>) -> Self {
        Self::new(Kind::Note { role, text: text.into() })
    }

    /// Reads one entry of the log.
    pub fn read(mut entry: Entry, cut: Option<u64>) -> Reading {
        let (long, behind) = cut.and_then(|_| shortened(&mut entry)).unzip();
        let Entry { id, ts, fact, .. } = entry;
        let kind = match fact {
            Fact::UserInput { segments, from, .. } => {
                Kind::User { segments, behind: behind.unwrap_or_default(), from }
            }
            Fact::AssistantItem { item, partial, .. } => match said(item, ts, partial) {
                Some(kind) => kind,
                None => return Reading::Nothing,
            },
            Fact::ToolResult { item, sent, .. } => match result(item, ts, long.clone(), sent) {
                Some(kind) => kind,
                None => return Reading::Nothing,
            },
            Fact::SystemItem { item, .. } => Kind::System(Box::new(item)),
            Fact::RunCompleted { .. } | Fact::RunErrored { .. } => match ended(&fact) {
                Some(kind) => kind,
                None => return Reading::Nothing,
            },
            Fact::Extension { domain, payload } => return extension(id, ts, &domain, &payload),
            Fact::LlmUsage { .. } => usage(&fact),
            Fact::SegmentStart { compacted_from: Some(_), history, .. } => {
                let summary = history.first().and_then(|kept| summary(&kept.item));
                summary.map_or_else(
                    || Kind::Border("the log goes on in a new file".into()),
                    Kind::Summary,
                )
            }
            // Earlier versions copied the log for a rewind and for a fork.
            Fact::SegmentStart { forked_from: Some(_), .. } => {
                Kind::Border("goes on from an earlier log".into())
            }
            Fact::Unknown(fields) => {
                Kind::Note { role: Role::Dim, text: wording::newer_entry(&fields) }
            }
            Fact::SegmentStart { .. }
            | Fact::Invoke { .. }
            | Fact::TurnEnd { .. }
            | Fact::ConfigChanged { .. } => return Reading::Nothing,
        };
        Reading::Block(Self { id, ts, cut, long: long.map(Box::new), ..Self::new(kind) })
    }

    /// A line of the log that could not be read.
    pub fn damaged(why: &str, byte: u64) -> Self {
        let why = clean::one_line(why);
        Self::note(Role::Error, format!("damaged line at byte {byte} of the log: {why}"))
    }

    /// Its approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let text = match &self.kind {
            Kind::User { segments, behind, .. } => {
                segments.iter().chain(behind).map(|s| s.flat().len() + 64).sum()
            }
            Kind::Said { text, .. } | Kind::Note { text, .. } | Kind::Aside(text) => text.len(),
            Kind::Thought(thought) => thought.text.len(),
            Kind::Tool(tool) => tool.bytes(),
            Kind::Result { outcome, .. } => outcome.bytes(),
            Kind::System(item) => item.body().len() * 2,
            Kind::Retry { text, .. } => text.len(),
            Kind::Approval(approval) => approval.bytes(),
            Kind::Decision { approval, .. } => approval.len(),
            Kind::Part(part) => part.text.len(),
            Kind::Border(text) | Kind::Summary(text) => text.len(),
            Kind::CutOff { .. } => 0,
        };
        size_of::<Self>() + text + self.rest.bytes()
    }

    /// Its words, for copying and searching.
    pub fn plain(&self) -> String {
        match &self.kind {
            Kind::User { segments, .. } => segments.iter().map(Segment::flat).collect(),
            Kind::Said { text, .. } | Kind::Note { text, .. } | Kind::Aside(text) => text.clone(),
            Kind::Thought(thought) => thought.text.clone(),
            Kind::Tool(tool) => tool.plain(),
            Kind::Result { outcome, .. } => outcome.plain(),
            Kind::System(item) => item.body().to_owned(),
            Kind::Retry { text, .. } => text.clone(),
            Kind::Approval(approval) => approval.sentence().1,
            Kind::Decision { verdict, .. } => verdict_words(verdict),
            Kind::Part(part) => part.text.clone(),
            Kind::Summary(text) => text.clone(),
            Kind::CutOff { .. } | Kind::Border(_) => String::new(),
        }
    }

    /// Notes that the block has changed: its rows have to be drawn again.
    pub fn touch(&mut self) {
        match &mut self.cache {
            Some(cache) if self.live && matches!(self.kind, Kind::Said { .. } | Kind::Part(_)) => {
                cache.stale = true
            }
            _ => self.cache = None,
        }
    }
}

fn said(item: Item, ts: u64, partial: bool) -> Option<Kind> {
    match item {
        Item::Reasoning { text, summary, .. } => {
            let text = if text.is_empty() { summary.join("\n\n") } else { text };
            let thought = Thought { text: clean::words(&text).into_owned(), ..Thought::default() };
            (!thought.text.trim().is_empty()).then_some(Kind::Thought(thought))
        }
        Item::ToolCall { call_id, name, arguments } => {
            Some(Kind::Tool(Box::new(Tool::called(call_id, name, arguments, Some(ts)))))
        }
        Item::ToolResult { .. } => result(item, ts, None, None),
        Item::Message { role: yoi::protocol::Role::User, .. } => {
            let content = item.text().unwrap_or_default();
            let (segments, behind) = (vec![Segment::Text { content }], Vec::new());
            Some(Kind::User { segments, behind, from: None })
        }
        Item::Message { .. } => {
            let text = clean::words(&item.text().unwrap_or_default()).into_owned();
            (!text.trim().is_empty()).then_some(Kind::Said { text, partial })
        }
        Item::Unknown(value) => {
            let kind = value.get("kind").or(value.get("type")).and_then(Value::as_str);
            let text = format!("a block of a kind not known here: {}", clean::one_line(kind?));
            Some(Kind::Note { role: Role::Dim, text })
        }
    }
}

fn result(item: Item, ts: u64, long: Option<LongText>, sent: Option<SentMessage>) -> Option<Kind> {
    let Item::ToolResult { call_id, summary, content, is_error, images } = item else {
        return None;
    };
    let images = images.len();
    let mut outcome = Outcome::new(summary, is_error, ts);
    (outcome.content, outcome.images, outcome.long, outcome.sent) = (content, images, long, sent);
    Some(Kind::Result { call_id, outcome: Rc::new(outcome) })
}

/// A note about how a run ended; none where the text of the model is its end.
fn ended(fact: &Fact) -> Option<Kind> {
    let (role, text) = match RunOutcome::of(fact)? {
        RunOutcome::Finished | RunOutcome::Yielded | RunOutcome::RolledBack => return None,
        RunOutcome::Paused => (Role::Warn, "paused".to_owned()),
        RunOutcome::LimitReached => (Role::Warn, "stopped at a limit; a message continues".into()),
        RunOutcome::Cancelled => (Role::Warn, "cancelled".into()),
        // The entry before it has a row that says when its host ended.
        RunOutcome::CutOff(why) if why == yoi::session::HOST_ENDED => return None,
        RunOutcome::CutOff(why) if why.trim().is_empty() => (Role::Warn, "interrupted".into()),
        RunOutcome::CutOff(why) => {
            let why = words(why.strip_prefix("cut off: ").unwrap_or(why));
            (Role::Warn, format!("interrupted: {why}"))
        }
        RunOutcome::Failed(why) => (Role::Error, format!("error: {}", words(why))),
        RunOutcome::Other(word) => (Role::Dim, format!("ended: {}", clean::one_line(word))),
    };
    Some(Kind::Note { role, text })
}

fn words(text: &str) -> String {
    clean::words(text.trim()).into_owned()
}

fn extension(id: Option<EntryId>, ts: u64, name: &str, payload: &Value) -> Reading {
    let shown = |kind| Reading::Block(Block { id, ts, ..Block::new(kind) });
    match name {
        domain::CUT => {
            let at = payload.get("at").and_then(Value::as_u64).unwrap_or(ts);
            shown(Kind::CutOff { at })
        }
        domain::ROLLED_BACK => {
            let from = payload.get("from").and_then(Value::as_str).and_then(|id| id.parse().ok());
            from.map_or(Reading::Nothing, Reading::TakenBack)
        }
        domain::EMPTY_ANSWER => {
            let text = wording::EMPTY_ANSWER.to_owned();
            shown(Kind::Note { role: Role::Warn, text })
        }
        domain::STOPPED | domain::PRUNED | domain::FALLBACK | domain::LEARNED | domain::TURN => {
            match wording::context::note(name, payload) {
                // The head says what a run may write, and a call that was refused says why.
                Some(text) if wording::context::is_aside(name, payload) => shown(Kind::Aside(text)),
                Some(text) => shown(Kind::Note { role: Role::Warn, text }),
                None => Reading::Nothing,
            }
        }
        domain::REWOUND => match jumped(payload) {
            Some(text) => shown(Kind::Border(text)),
            None => Reading::Nothing,
        },
        domain::ASKED => match Approval::requested(payload) {
            Some(approval) => shown(Kind::Approval(Box::new(approval))),
            None => Reading::Nothing,
        },
        domain::ANSWERED => match approval::decided(payload) {
            Some((approval, verdict)) => shown(Kind::Decision { approval, verdict }),
            None => Reading::Nothing,
        },
        _ => Reading::Nothing,
    }
}

/// The words on the border that a rewind, its undo or a fork leaves.
fn jumped(payload: &Value) -> Option<String> {
    let losses = |key: &str| Losses::deserialize(payload.get(key)?).ok();
    let has = |key: &str| payload.get(key).is_some();
    let text = if has("to") {
        let dropped = losses("drops").map(|drops| wording::losses::count(&drops));
        dropped.map_or("rewound".into(), |dropped| format!("rewound: {dropped} dropped"))
    } else if has("redo") {
        "rewound again".into()
    } else if has("undo") {
        let returned = losses("returns").map(|returns| wording::losses::count(&returns));
        returned.map_or("rewind undone".into(), |back| format!("rewind undone: {back} back"))
    } else if has("fork") {
        "forked".into()
    } else {
        return None;
    };
    Some(text)
}

/// The handover text of a compaction, without the words that the runtime puts before it.
fn summary(item: &Item) -> Option<String> {
    Some(clean::words(&compaction_summary(item)?).into_owned())
}

fn usage(fact: &Fact) -> Kind {
    let Fact::LlmUsage { input_total_tokens, cache_read_tokens, output_tokens, cost, .. } = fact
    else {
        return Kind::Aside(String::new());
    };
    let mut text = format!("{input_total_tokens} tokens in");
    if *cache_read_tokens > 0 {
        text.push_str(&format!(" ({cache_read_tokens} cached)"));
    }
    text.push_str(&format!(", {output_tokens} out"));
    if let Some(cost) = cost {
        text.push_str(&format!(", ${cost:.4}"));
    }
    Kind::Aside(text)
}

impl Kind {
    /// Takes the result out of a call.
    pub fn take_outcome(&mut self) -> Option<Rc<Outcome>> {
        match self {
            Self::Tool(tool) => tool.outcome.take(),
            _ => None,
        }
    }

    /// Puts the result back into a call.
    pub fn give_outcome(&mut self, outcome: Option<Rc<Outcome>>) {
        if let Self::Tool(tool) = self {
            tool.outcome = tool.outcome.take().or(outcome);
        }
    }
}
