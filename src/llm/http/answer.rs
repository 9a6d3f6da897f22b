//! The bytes of a reply as deltas. How they are read depends on the bytes and not on the labels of the server: events,
//! JSON in one piece or an HTML page, each compressed or not.

use crate::llm::http::unpack::Unpack;
use crate::llm::http::{MAX_SHOWN, Who, error_text};
use crate::llm::sse::{self, Event};
use crate::llm::wire::{Decode, Fault, Progress};
use crate::llm::{Delta, Failure, Stop, json};
use crate::protocol::{Item, MAX_LINE, MAX_VALUES};
use serde_json::Deserializer;
use serde_json::value::RawValue;
use std::collections::VecDeque;

/// How many packed bytes are read at a time: unpacked they may be a thousand times as many.
const MAX_PACKED: usize = 4096;

/// A reply while it is read. It ends with [`Delta::End`] or with a failure.
pub(crate) struct Answer {
    pub(super) who: Who,
    decoder: Box<dyn Decode>,
    unpack: Unpack,
    form: Form,
    /// The bytes of a form that is not known yet, or of a reply in one piece.
    body: Vec<u8>,
    sse: sse::Decoder,
    /// Whether a tool call has begun.
    has_call: bool,
    /// Whether it, a text or a thought has.
    has_content: bool,
    /// Whether an event of the API came, or one of another API that keeps no connection open.
    has_event: bool,
    has_foreign_event: bool,
    /// What came before the first event of the API, as far as a person may read it.
    start: Vec<u8>,
    /// Whether the last event was damaged: where nothing follows, the connection was cut within it.
    ends_damaged: bool,
    /// Why the first part could not be read that was damaged and may have been a part of a call. The calls may differ
    /// from those that the model wrote, so the reply fails.
    damage: Option<String>,
    ready: VecDeque<Result<Delta, Failure>>,
    /// Nothing more will be read.
    pub(super) is_over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Unknown,
    /// An object began: of a reply in one piece, or the first of several rows.
    Object,
    Events,
    OnePiece,
}

/// Whether the start of a body is empty, or that of a stream of events.
fn may_be_events(start: &[u8]) -> bool {
    let start = String::from_utf8_lossy(start);
    let bare = start.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    bare.is_empty()
        || [":", "data", "event", "id", "retry"].iter().any(|field| bare.starts_with(field))
}

/// One of these stands in every event that carries a call, whatever its wire.
const OF_A_CALL: [&str; 3] = ["function", "tool", "call"];

impl Answer {
    pub(crate) fn new(who: Who, decoder: Box<dyn Decode>) -> Self {
        Self {
            who,
            decoder,
            unpack: Unpack::default(),
            form: Form::Unknown,
            body: Vec::new(),
            sse: sse::Decoder::default(),
            has_call: false,
            has_content: false,
            has_event: false,
            has_foreign_event: false,
            start: Vec::new(),
            ends_damaged: false,
            damage: None,
            ready: VecDeque::new(),
            is_over: false,
        }
    }

    /// The same, of a body that is compressed so.
    pub(super) fn unpacking(self, unpack: Unpack) -> Self {
        Self { unpack, ..self }
    }

    /// The next delta that is ready.
    pub(crate) fn next(&mut self) -> Option<Result<Delta, Failure>> {
        self.ready.pop_front()
    }

    pub(super) fn progress(&mut self) -> Progress {
        self.decoder.progress()
    }

    /// Whether a delta is ready that carries content of the answer, not only its cost.
    pub(super) fn has_piece(&self) -> bool {
        let is_piece = |delta: &Result<Delta, Failure>| {
            !matches!(delta, Ok(Delta::Usage(_) | Delta::Unknown(_)))
        };
        self.ready.iter().any(is_piece)
    }

    /// Takes the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for packed in bytes.chunks(MAX_PACKED) {
            match self.unpack.feed(packed) {
                Ok(plain) => self.read(&plain),
                Err(error) => self.end(&error_text::cut(&self.who, &error.to_string())),
            }
        }
    }

    /// The connection ended in order.
    pub(crate) fn finish(&mut self) {
        let rest = self.unpack.finish();
        self.read(&rest);
        if matches!(self.form, Form::Object | Form::OnePiece) {
            return self.one_piece();
        }
        let mut events = Vec::new();
        self.sse.finish(&mut events);
        self.decode(&events);
        let start = std::mem::take(&mut self.start);
        if !self.has_event && (self.has_foreign_event || !may_be_events(&start)) {
            let start = String::from_utf8(start).unwrap_or_default();
            return self.end(&error_text::no_stream(&self.who, &start));
        }
        self.end_in_order(&error_text::cut(&self.who, "it ended before it was complete"));
    }

    /// The whole body was read. `failure`: why it is no answer, where it has no content.
    fn end_in_order(&mut self, failure: &Failure) {
        let has_answer = self.has_content && !self.ends_damaged && self.damage.is_none();
        if has_answer && !self.is_over && !self.decoder.ending().is_named() {
            self.ready.push_back(Ok(Delta::Unended(error_text::unended(&self.who))));
            self.decoder.ending().because(Stop::Unnamed);
        }
        self.end(failure);
    }

    /// Nothing more will be read: the answer is complete, or `failure` says why it is not.
    pub(super) fn end(&mut self, failure: &Failure) {
        if self.is_over {
            return;
        }
        self.is_over = true;
        if let Some(damage) = &self.damage {
            return self.ready.push_back(Err(error_text::cut(&self.who, damage)));
        }
        let mut out = Vec::new();
        let stop = self.decoder.finish(&mut out);
        self.ready.extend(out.into_iter().map(Ok));
        self.ready.push_back(stop.map(Delta::End).ok_or_else(|| failure.clone()));
    }

    fn read(&mut self, bytes: &[u8]) {
        if self.form == Form::Events {
            return self.events(bytes);
        }
        if self.body.len() + bytes.len() > MAX_LINE {
            let error = sse::TooLong(MAX_LINE).to_string();
            return self.end(&error_text::too_large(&self.who, &error));
        }
        // What came before was searched when it came.
        let mut searched = self.body.len();
        self.body.extend_from_slice(bytes);
        let is_blank = |byte: &u8| byte.is_ascii_whitespace() || sse::BOM.contains(byte);
        if self.form == Form::Unknown
            && let Some(begin) = bytes.iter().position(|byte| !is_blank(byte))
        {
            self.form = match bytes[begin] {
                b'{' => Form::Object,
                b'[' | b'<' => Form::OnePiece,
                _ => Form::Events,
            };
            if self.form != Form::Events {
                // A blank row in front of the first one ends no row.
                self.body.drain(..searched + begin);
                searched = 0;
            }
        }
        if self.form == Form::Object {
            let is_end = |pair: &[u8]| matches!(pair, [b'\r' | b'\n', b'{']);
            let from = searched.saturating_sub(1);
            if let Some(end) = self.body[from..].windows(2).position(is_end) {
                let row = String::from_utf8_lossy(&self.body[..=from + end]);
                let row = row.trim();
                let is_row = !row.contains(['\r', '\n']) && json::is_value(row);
                self.form = if is_row { Form::Events } else { Form::OnePiece };
            }
        }
        if self.form == Form::Events {
            let body = std::mem::take(&mut self.body);
            self.events(&body);
        }
    }

    fn events(&mut self, bytes: &[u8]) {
        if !self.has_event {
            let room = MAX_SHOWN.saturating_sub(self.start.len());
            self.start.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        let mut events = Vec::new();
        let fed = self.sse.feed(bytes, &mut events);
        self.decode(&events);
        if let Err(error) = fed {
            self.end(&error_text::too_large(&self.who, &error.to_string()));
        }
    }

    /// Reads a reply that came as JSON: one object, a list of objects, or objects one behind the other in one line. Each
    /// stands for an event.
    fn one_piece(&mut self) {
        let body = std::mem::take(&mut self.body);
        let body = json::strict(&String::from_utf8_lossy(&body));
        let is_between = |c: char| c.is_ascii_whitespace() || matches!(c, '[' | ',' | ']');
        let mut is_cut = body.starts_with('[') && !body.trim_end().ends_with(']');
        let mut rest = body.trim_start_matches(is_between);
        for count in 0.. {
            if count == MAX_VALUES {
                return self.too_many("a reply in one piece");
            }
            let mut values = Deserializer::from_str(rest).into_iter::<&RawValue>();
            let data = match values.next() {
                None => break,
                Some(Ok(value)) => value.get().to_owned(),
                Some(Err(error)) => {
                    is_cut |= error.is_eof();
                    break;
                }
            };
            rest = rest[values.byte_offset()..].trim_start_matches(is_between);
            self.decode(&[Event { name: String::new(), data }]);
        }
        match is_cut {
            true => self.end(&error_text::cut(&self.who, "it ended before it was complete")),
            false => self.end_in_order(&error_text::no_stream(&self.who, &body)),
        }
    }

    fn decode(&mut self, events: &[Event]) {
        for event in events {
            if !event.data.contains('\n') || json::is_value(&event.data) {
                self.event(event);
                continue;
            }
            // The blank line between events is missing.
            for line in event.data.lines() {
                self.event(&Event { name: event.name.clone(), data: line.to_owned() });
            }
        }
    }

    fn event(&mut self, event: &Event) {
        if self.is_over || self.progress() == Progress::Ended {
            return;
        }
        let mut out = Vec::new();
        let result = self.decoder.event(event, &mut out);
        if let Err(Fault::Garbled(_)) = result
            && let objects @ [_, ..] = &json::objects(&event.data)[..]
        {
            // Each of them is an event.
            for data in objects {
                self.event(&Event { name: event.name.clone(), data: data.clone() });
            }
            return;
        }
        let begins_call = |delta: &Delta| matches!(delta, Delta::ToolCallStart { .. });
        let is_content = |delta: &Delta| match delta {
            Delta::Text(text) | Delta::Thinking(text) => !text.trim().is_empty(),
            Delta::Block { item, .. } => matches!(item, Item::Message { .. }),
            _ => false,
        };
        let is_known = !matches!(&out[..], [Delta::Unknown(_)]);
        self.has_event |= result.is_ok() && is_known;
        self.has_foreign_event |= !is_known
            && !["ping", "alive", "heartbeat"].iter().any(|word| event.data.contains(word));
        self.ends_damaged = matches!(result, Err(Fault::Garbled(_)));
        self.has_call |= out.iter().any(begins_call);
        self.has_content |= self.has_call || out.iter().any(is_content);
        self.ready.extend(out.into_iter().map(Ok));
        match result {
            Ok(()) => {}
            Err(Fault::Reported { message, cause }) => {
                let failure = error_text::reported(&self.who, &message, cause);
                if self.progress() == Progress::Open {
                    self.ready.push_back(Err(failure));
                    self.is_over = true;
                } else {
                    // The answer was complete before.
                    self.end(&failure);
                }
            }
            Err(Fault::Garbled(cause)) => {
                tracing::warn!("{}: passed over a damaged part of a reply: {cause}", self.who);
                let data = event.data.to_ascii_lowercase();
                let may_be_call = || OF_A_CALL.iter().any(|word| data.contains(word));
                if self.progress() == Progress::Open {
                    if self.has_call || may_be_call() {
                        self.damage.get_or_insert(cause);
                    } else {
                        self.ready.push_back(Ok(Delta::Garbled(cause)));
                    }
                }
            }
            Err(Fault::Noise(cause)) => tracing::debug!("{}: passed over: {cause}", self.who),
            Err(Fault::TooMany) => self.too_many("one event"),
        }
    }

    fn too_many(&mut self, what: &str) {
        let cause = format!("{what} holds more than {MAX_VALUES} JSON values");
        self.end(&error_text::too_large(&self.who, &cause));
    }
}
