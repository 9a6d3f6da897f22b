//! What a script file holds, and what is wrong with one that does not fit.

use crate::config::Diagnostic;
use crate::llm::Usage;
use crate::llm::rehearsal::pattern::Pattern;
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Characters in a delta unless the script says otherwise.
const CHUNK: usize = 12;
/// The longest text that `repeat` may make, in bytes.
const MOST_TEXT: usize = 256 * 1024 * 1024;
/// The longest time in a script, in seconds: a year. The end of a longer one may be beyond the last date.
const LONGEST_S: u64 = 365 * 24 * 60 * 60;

/// A script that fits.
#[derive(Clone, Debug)]
pub struct Script {
    pub file: PathBuf,
    pub otherwise: Option<String>,
    /// Requests of more bytes are refused as too long.
    pub reads: Option<u64>,
    pub when: Vec<When>,
}

/// What is answered to a message.
#[derive(Clone, Debug)]
pub struct When {
    pub on: On,
    pub steps: Vec<Step>,
}

/// The messages a `[[when]]` is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum On {
    /// A user message of any of these forms.
    Says(Vec<Pattern>),
    /// Every user message.
    Any,
    /// A note of the runtime, such as a notification.
    Note(Pattern),
}

/// One reply.
#[derive(Clone, Debug)]
pub struct Step {
    pub think: String,
    pub text: String,
    pub calls: Vec<Call>,
    pub usage: Option<Usage>,
    pub stop: Option<String>,
    pub fault: Option<Fault>,
    pub pace: Pace,
}

/// How the deltas come.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Characters in a delta, at least 1.
    pub chunk: usize,
    /// Milliseconds before each delta.
    pub delay_ms: u64,
    /// Milliseconds before the first.
    pub wait_ms: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub name: String,
    #[serde(default)]
    pub args: Value,
    /// The reply ends after so many bytes of its arguments.
    pub cut: Option<usize>,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub kind: FaultKind,
    /// How often, before it goes well; `None` = always.
    pub times: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// The stream breaks after this many characters of text.
    Cut(usize),
    /// Nothing more comes after this many characters of text.
    Hang(usize),
    /// The provider answers with this HTTP status.
    Status { status: u16, retry_after_s: Option<u64> },
    /// The provider reports an error inside the stream, after this many characters of text.
    Error { message: String, retryable: bool, after: usize },
    /// The model declines, with these words.
    Refuse(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScript {
    chunk: Option<usize>,
    delay_ms: Option<Spanned<u64>>,
    otherwise: Option<String>,
    reads: Option<u64>,
    #[serde(default)]
    when: Vec<Spanned<RawWhen>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWhen {
    says: Option<Says>,
    #[serde(default)]
    any: bool,
    note: Option<String>,
    /// The only step, if it says nothing but this.
    text: Option<String>,
    #[serde(default)]
    step: Vec<RawStep>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a pattern or a list of patterns")]
enum Says {
    One(String),
    Many(Vec<String>),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawStep {
    think: String,
    text: String,
    repeat: Option<Spanned<usize>>,
    call: Vec<Spanned<Call>>,
    usage: Option<RawUsage>,
    stop: Option<String>,
    fault: Option<Spanned<RawFault>>,
    chunk: Option<usize>,
    delay_ms: Option<Spanned<u64>>,
    wait_ms: Option<Spanned<u64>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawUsage {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    reasoning: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawFault {
    cut: Option<usize>,
    hang: Option<usize>,
    status: Option<u16>,
    retry_after: Option<Spanned<u64>>,
    error: Option<String>,
    retryable: bool,
    after: usize,
    refuse: Option<String>,
    times: Option<usize>,
}

/// A sentence about the byte of a script where something does not fit.
type Misfit = (usize, &'static str);

impl Script {
    /// The script a text holds, or what is wrong and where.
    pub fn read(file: &Path, text: &str) -> Result<Self, Diagnostic> {
        let raw: RawScript =
            toml::from_str(text).map_err(|error| Diagnostic::of_toml(file, text, &error))?;
        let misfit = |(at, message)| Diagnostic::at(file, text, at, message);
        let delay_ms = read_time(raw.delay_ms, 1_000).map_err(misfit)?.unwrap_or(0);
        let pace = Pace { chunk: raw.chunk.unwrap_or(CHUNK).max(1), delay_ms, wait_ms: 0 };
        let when = raw.when.into_iter().map(|when| read_when(when, pace)).collect::<Result<_, _>>();
        let when = when.map_err(misfit)?;
        let (otherwise, reads) = (raw.otherwise, raw.reads);
        Ok(Self { file: file.into(), otherwise, reads, when })
    }
}

fn read_when(raw: Spanned<RawWhen>, pace: Pace) -> Result<When, Misfit> {
    let at = raw.span().start;
    let raw = raw.into_inner();
    let on = match (raw.says, raw.any, raw.note) {
        (Some(Says::One(one)), false, None) => On::Says(vec![Pattern::new(one)]),
        (Some(Says::Many(many)), false, None) => {
            On::Says(many.into_iter().map(Pattern::new).collect())
        }
        (None, true, None) => On::Any,
        (None, false, Some(note)) => On::Note(Pattern::new(note)),
        _ => return Err((at, "a [[when]] has exactly one of says, any = true and note")),
    };
    let steps = match (raw.text, raw.step) {
        (Some(text), steps) if steps.is_empty() => vec![RawStep { text, ..RawStep::default() }],
        (None, steps) if !steps.is_empty() => steps,
        _ => return Err((at, "a [[when]] has either text or at least one [[when.step]]")),
    };
    let steps = steps.into_iter().map(|step| read_step(step, pace)).collect::<Result<_, _>>()?;
    Ok(When { on, steps })
}

fn read_step(raw: RawStep, pace: Pace) -> Result<Step, Misfit> {
    Ok(Step {
        think: raw.think,
        text: read_text(&raw.text, raw.repeat)?,
        calls: raw.call.into_iter().map(read_call).collect::<Result<_, _>>()?,
        usage: raw.usage.map(|usage| Usage {
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            reasoning: usage.reasoning,
        }),
        stop: raw.stop,
        fault: raw.fault.map(read_fault).transpose()?,
        pace: Pace {
            chunk: raw.chunk.unwrap_or(pace.chunk).max(1),
            delay_ms: read_time(raw.delay_ms, 1_000)?.unwrap_or(pace.delay_ms),
            wait_ms: read_time(raw.wait_ms, 1_000)?.unwrap_or(0),
        },
    })
}

fn read_text(text: &str, repeat: Option<Spanned<usize>>) -> Result<String, Misfit> {
    let Some(repeat) = repeat else { return Ok(text.to_owned()) };
    match text.len().checked_mul(*repeat.get_ref()) {
        Some(bytes) if bytes <= MOST_TEXT => Ok(text.repeat(repeat.into_inner())),
        Some(_) | None => Err((repeat.span().start, "the repeated text is larger than 256 MiB")),
    }
}

/// A time in a unit of which a second has so many.
fn read_time(time: Option<Spanned<u64>>, per_second: u64) -> Result<Option<u64>, Misfit> {
    let Some(time) = time else { return Ok(None) };
    match *time.get_ref() {
        short if short <= LONGEST_S * per_second => Ok(Some(short)),
        _ => Err((time.span().start, "a time is a year at most")),
    }
}

/// Arguments are a table, or a JSON object as text.
fn read_call(raw: Spanned<Call>) -> Result<Call, Misfit> {
    let at = raw.span().start;
    let mut call = raw.into_inner();
    call.args = match call.args {
        Value::Null => Value::Object(serde_json::Map::new()),
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::Null),
        other => other,
    };
    if call.args.is_object() {
        Ok(call)
    } else {
        Err((at, "the args of a call are a table, or a JSON object as text"))
    }
}

fn read_fault(raw: Spanned<RawFault>) -> Result<Fault, Misfit> {
    let at = raw.span().start;
    let raw = raw.into_inner();
    let retry_after_s = read_time(raw.retry_after, 1)?;
    let kinds = [
        raw.cut.map(FaultKind::Cut),
        raw.hang.map(FaultKind::Hang),
        raw.status.map(|status| FaultKind::Status { status, retry_after_s }),
        raw.error.map(|message| FaultKind::Error {
            message,
            retryable: raw.retryable,
            after: raw.after,
        }),
        raw.refuse.map(FaultKind::Refuse),
    ];
    let mut kinds = kinds.into_iter().flatten();
    let (Some(kind), None) = (kinds.next(), kinds.next()) else {
        return Err((at, "a fault is exactly one of cut, hang, status, error and refuse"));
    };
    let times = match kind {
        FaultKind::Cut(_) => raw.times.or(Some(1)),
        _ => raw.times,
    };
    Ok(Fault { kind, times })
}
