//! The events of a Pod: one numbered stream, for its own socket and for every screen, and the
//! blocks that are still being streamed.

use crate::host::splice::LogRange;
use crate::host::subscribers::{Limits, Queue, Subscribers};
use crate::protocol::frame::encode_event;
use crate::protocol::{
    Alert, CANCELLED, Entry, ErrorCode, Event, Fact, InFlight, Item, PodName, RewindSummary,
    RunResult, Segment,
};
use crate::session::Cut;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;

/// The queue of one reader of a Pod socket; a reader that falls behind gets a snapshot.
const READER: Limits = Limits { lines: 256, bytes: 1024 * 1024 };
/// Alerts that are kept for new clients.
const ALERTS: usize = 512;
/// How much of a streaming block a page holds, in bytes.
const IN_FLIGHT: usize = 64 * 1024;
/// How much of a streaming block is kept, in bytes; what a snapshot leaves out of a long one is in
/// the log as soon as the block is complete.
const STREAMING: usize = 1024 * 1024;
/// How much output of a running tool is kept for later readers, in bytes.
const OUTPUT: usize = 16 * 1024;

/// An event on its way to the readers of a Pod socket.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    pub(crate) content: Content,
    pub(crate) classic: Classic,
}

/// What a reader of a Pod socket is sent.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Line(Bytes),
    /// The Pod's last event; the connections end when they have written it.
    Stopped(Bytes),
    /// A rewind, whose entries each connection copies from the log.
    Rewound(Arc<Rewound>),
}

/// A rewind that was applied.
#[derive(Debug)]
pub(crate) struct Rewound {
    /// The entries that are left.
    pub(crate) log: LogRange,
    pub(crate) input: Vec<Segment>,
    pub(crate) summary: RewindSummary,
}

impl Rewound {
    /// As an event for screens, without the entries: they page through a transcript.
    pub(crate) fn event(&self) -> Event {
        let (input, summary) = (self.input.clone(), self.summary.clone());
        Event::RewindApplied { entries: Vec::new(), input, summary }
    }
}

/// What a classic connection receives of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Classic {
    Same,
    /// This line in its place.
    Line(Bytes),
    Nothing,
}

impl Classic {
    fn of(event: &Event) -> Self {
        let line = |event: &Event| Self::Line(Bytes::from(encode_event(None, None, None, event)));
        match event {
            Event::RunEnd { result: RunResult::Failed, .. } => Self::Nothing,
            Event::RunEnd { result: RunResult::Cancelled, .. } => {
                line(&Event::Error { code: ErrorCode::Internal, message: CANCELLED.into() })
            }
            Event::RunEnd { result, .. } => {
                line(&Event::RunEnd { result: *result, entry: None, run: None })
            }
            event if event.is_classic() => Self::Same,
            _ => Self::Nothing,
        }
    }
}

/// The publisher of one Pod.
pub(crate) struct Publisher {
    name: PodName,
    shared: crate::host::Shared,
    pub(crate) seq: u64,
    readers: Subscribers<Published>,
    pub(crate) alerts: VecDeque<Alert>,
    pub(crate) in_flight: Vec<InFlight>,
}

impl Publisher {
    pub(crate) fn new(name: PodName, shared: crate::host::Shared) -> Self {
        let (alerts, in_flight) = (VecDeque::new(), Vec::new());
        Self { name, shared, seq: 0, readers: Subscribers::new(READER), alerts, in_flight }
    }

    /// A new reader of the Pod socket: every event from now on.
    pub(crate) fn reader(&mut self) -> Queue<Published> {
        self.readers.subscribe()
    }

    /// The streaming blocks for a screen, of long ones the end.
    pub(crate) fn in_flight_tail(&self) -> Vec<InFlight> {
        self.in_flight.iter().map(tail).collect()
    }

    /// Sends an event to every screen and every reader.
    pub(crate) fn publish(&mut self, event: &Event) {
        self.follow(event);
        if let Event::Alert(alert) = event {
            if self.alerts.len() == ALERTS {
                self.alerts.pop_front();
            }
            self.alerts.push_back(alert.clone());
        }
        self.feed(event);
        self.publish_to_readers(event);
    }

    /// Sends a rewind to every screen and every reader.
    pub(crate) fn rewound(&mut self, rewound: &Arc<Rewound>) {
        self.feed(&rewound.event());
        let content = Content::Rewound(rewound.clone());
        // The queue counts the input; the log is copied only when this event is written.
        let bytes = rewound.input.iter().map(|segment| segment.flat().len()).sum();
        self.readers.publish(&Published { content, classic: Classic::Same }, bytes);
    }

    fn feed(&mut self, event: &Event) {
        self.seq += 1;
        self.shared.feed(Some(&self.name), Some(self.seq), event);
    }

    fn publish_to_readers(&mut self, event: &Event) {
        if self.readers.is_empty() {
            return;
        }
        if matches!(event, Event::Entry { .. }) {
            return;
        }
        let classic = Classic::of(event);
        let line = Bytes::from(encode_event(None, None, None, event));
        let bytes = line.len();
        let last = matches!(event, Event::Stopped);
        let content = if last { Content::Stopped(line) } else { Content::Line(line) };
        self.readers.publish(&Published { content, classic }, bytes);
        if last {
            self.readers.clear();
        }
    }

    /// Publishes what was committed: the events that the entries mean, and the entries themselves.
    pub(crate) fn committed(&mut self, entries: &[Entry]) {
        for entry in entries {
            self.landed(&entry.fact);
            if let Some(event) = derived(entry) {
                self.publish(&event);
            }
            self.publish(&match crate::session::cut(entry) {
                Some(Cut { entry, cut_bytes }) => {
                    Event::Entry { entry: Box::new(entry), cut_bytes: Some(cut_bytes) }
                }
                None => Event::Entry { entry: Box::new(entry.clone()), cut_bytes: None },
            });
        }
    }

    /// What was in flight is in the log now.
    fn landed(&mut self, fact: &Fact) {
        match fact {
            Fact::AssistantItem { item: Item::Message { .. }, .. } => {
                self.in_flight.retain(|b| !matches!(b, InFlight::Text { .. }));
            }
            Fact::AssistantItem { item: Item::Reasoning { .. }, .. } => {
                self.in_flight.retain(|b| !matches!(b, InFlight::Thinking { .. }));
            }
            Fact::AssistantItem { item: Item::ToolCall { call_id, name, .. }, .. } => {
                self.in_flight
                    .retain(|b| !matches!(b, InFlight::ToolCall { id, .. } if id == call_id));
                let (id, name) = (call_id.clone(), name.clone());
                self.in_flight.push(InFlight::Tool { id, name, output: String::new() });
            }
            Fact::ToolResult { item: Item::ToolResult { call_id, .. }, .. } => {
                self.in_flight.retain(|b| !matches!(b, InFlight::Tool { id, .. } if id == call_id));
            }
            Fact::RunCompleted { .. } | Fact::RunErrored { .. } => self.in_flight.clear(),
            _ => {}
        }
    }

    /// Keeps the streaming blocks in step with what is published.
    fn follow(&mut self, event: &Event) {
        match event {
            Event::TextDelta { text } => match self.in_flight.last_mut() {
                Some(InFlight::Text { text: all, skipped }) => grow(all, skipped, text),
                _ => self.in_flight.push(InFlight::Text { text: text.clone(), skipped: 0 }),
            },
            Event::ThinkingStart => {
                self.in_flight.push(InFlight::Thinking { text: String::new(), skipped: 0 });
            }
            Event::ThinkingDelta { text } => match self.in_flight.last_mut() {
                Some(InFlight::Thinking { text: all, skipped }) => grow(all, skipped, text),
                _ => self.in_flight.push(InFlight::Thinking { text: text.clone(), skipped: 0 }),
            },
            Event::ToolCallStart { id, name } => {
                let (id, name) = (id.clone(), name.clone());
                self.in_flight.push(InFlight::ToolCall { id, name, arguments: String::new() });
            }
            Event::ToolCallArgsDelta { id, json } => {
                for block in &mut self.in_flight {
                    if let InFlight::ToolCall { id: of, arguments, .. } = block
                        && of == id
                    {
                        let room = STREAMING.saturating_sub(arguments.len());
                        arguments.push_str(&json[..json.floor_char_boundary(room)]);
                    }
                }
            }
            Event::ToolOutput { id, text } => self.follow_output(id, text),
            Event::LlmContinuation { .. } | Event::RunEnd { .. } | Event::Error { .. } => {
                self.in_flight.clear();
            }
            _ => {}
        }
    }

    fn follow_output(&mut self, id: &str, text: &str) {
        for block in &mut self.in_flight {
            let InFlight::Tool { id: of, output, .. } = block else { continue };
            if of != id {
                continue;
            }
            output.push_str(text);
            let over = output.len().saturating_sub(OUTPUT);
            let from = output.ceil_char_boundary(over);
            output.drain(..from);
        }
    }
}

/// Adds streamed text; of a long one the beginning is dropped, about half of what is kept at once.
fn grow(all: &mut String, skipped: &mut u64, text: &str) {
    all.push_str(text);
    if all.len() > STREAMING {
        let from = all.ceil_char_boundary(all.len() - STREAMING / 2);
        all.drain(..from);
        *skipped += from as u64;
    }
}

/// A streaming block, of a long text its end, of long arguments their beginning.
fn tail(block: &InFlight) -> InFlight {
    let end = |text: &str, skipped: u64| {
        let from = text.ceil_char_boundary(text.len().saturating_sub(IN_FLIGHT));
        (text[from..].to_owned(), skipped + from as u64)
    };
    match block {
        InFlight::Text { text, skipped } => {
            let (text, skipped) = end(text, *skipped);
            InFlight::Text { text, skipped }
        }
        InFlight::Thinking { text, skipped } => {
            let (text, skipped) = end(text, *skipped);
            InFlight::Thinking { text, skipped }
        }
        InFlight::ToolCall { id, name, arguments } => {
            let arguments = arguments[..arguments.floor_char_boundary(IN_FLIGHT)].to_owned();
            InFlight::ToolCall { id: id.clone(), name: name.clone(), arguments }
        }
        InFlight::Tool { .. } => block.clone(),
    }
}

/// The line of an event for screens. Screens fetch large texts in pieces, so a text that a committed entry holds too
/// is shortened here.
pub(crate) fn screen_line(pod: Option<&PodName>, seq: Option<u64>, event: &Event) -> Vec<u8> {
    let line = encode_event(None, pod, seq, event);
    match event {
        Event::TextDone { .. }
        | Event::ThinkingDone { .. }
        | Event::ToolCallDone { .. }
        | Event::ToolResult { .. }
        | Event::UserMessage { .. }
        | Event::SystemItem { .. }
        | Event::SegmentRotated { .. } => crate::session::shorten_line(line),
        _ => line,
    }
}

/// The event of the frozen vocabulary that a committed entry means.
fn derived(entry: &Entry) -> Option<Event> {
    match &entry.fact {
        Fact::SegmentStart { .. } => Some(Event::SegmentRotated { entry: Box::new(entry.clone()) }),
        Fact::UserInput { segments, .. } => Some(Event::UserMessage { segments: segments.clone() }),
        Fact::SystemItem { item, .. } => Some(Event::SystemItem { item: item.clone() }),
        Fact::Invoke { trigger } => Some(Event::InvokeStart { kind: *trigger }),
        _ => None,
    }
}
