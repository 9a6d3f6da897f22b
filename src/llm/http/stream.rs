//! A response as deltas: bytes to events to deltas, with an eye on the clock. Dropping the stream
//! closes the connection.

use crate::llm::http::{Timeouts, Who, error_text};
use crate::llm::sse::{Decoder, Event};
use crate::llm::wire::{Decode, Fault, Progress};
use crate::llm::{Delta, Deltas, Failure};
use crate::protocol::MAX_VALUES;
use futures_util::stream;
use reqwest::Response;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The most bytes that are read of an error body.
const MAX_BODY: usize = 64 << 10;
/// How long the accounts may take once the model has finished.
const AFTER_ANSWER: Duration = Duration::from_secs(5);
/// How long the end of the response is waited for, so that its connection can be used again.
const AFTER_END: Duration = Duration::from_millis(200);

/// The answer that `response` carries. `first` is when its first bytes must have come.
pub(super) fn deltas(
    response: Response,
    who: Who,
    decoder: Box<dyn Decode>,
    timeouts: Timeouts,
    first: Instant,
) -> Deltas {
    let reader = Reader {
        response,
        who,
        decoder,
        timeouts,
        deadline: first,
        piece: Instant::now(),
        allowed: timeouts.first_event,
        sse: Decoder::default(),
        ready: VecDeque::new(),
        over: false,
    };
    Box::pin(stream::unfold(reader, |mut reader| async move {
        let next = reader.next().await?;
        Some((next, reader))
    }))
}

/// What is read of an error body within the time.
pub(super) async fn start_of(mut response: Response, until: Instant) -> String {
    let mut body = Vec::new();
    while body.len() < MAX_BODY {
        let Ok(Ok(Some(bytes))) = timeout_at(until, response.chunk()).await else { break };
        body.extend_from_slice(&bytes);
    }
    body.truncate(MAX_BODY);
    String::from_utf8_lossy(&body).into_owned()
}

struct Reader {
    response: Response,
    who: Who,
    decoder: Box<dyn Decode>,
    timeouts: Timeouts,
    /// When the last piece of the answer came; at first, when the response did.
    piece: Instant,
    /// When the next bytes must have come, and how long that was allowed to take.
    deadline: Instant,
    allowed: Duration,
    sse: Decoder,
    ready: VecDeque<Result<Delta, Failure>>,
    over: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<Result<Delta, Failure>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                return Some(delta);
            }
            if self.over {
                return None;
            }
            self.read().await;
        }
    }

    /// Waits for the next bytes and makes deltas of them.
    async fn read(&mut self) {
        let mut events = Vec::new();
        // Pings, comments and empty pieces keep a connection open and bring no answer.
        let patience = self.timeouts.piece.max(self.allowed);
        let kept_open = self.piece + patience;
        match timeout_at(self.deadline.min(kept_open), self.response.chunk()).await {
            // Bytes that are there at every moment leave the clock no turn.
            Ok(Ok(Some(_))) if Instant::now() > kept_open => {
                self.end(&error_text::only_kept_open(&self.who, patience));
            }
            Ok(Ok(Some(bytes))) => {
                let fed = self.sse.feed(&bytes, &mut events);
                let before = self.decoder.progress();
                self.decode(&events);
                let is_piece = |delta: &Result<Delta, Failure>| {
                    !matches!(delta, Ok(Delta::Usage(_) | Delta::Unknown(_)))
                };
                if self.ready.iter().any(is_piece) || self.decoder.progress() != before {
                    self.piece = Instant::now();
                }
                if let Err(error) = fed {
                    self.end(&error_text::reported(&self.who, &error.to_string(), false));
                }
                self.allowed = match self.decoder.progress() {
                    Progress::Open => self.timeouts.idle,
                    Progress::Answered => self.timeouts.idle.min(AFTER_ANSWER),
                    Progress::Ended => self.timeouts.idle.min(AFTER_END),
                };
                self.deadline = Instant::now() + self.allowed;
            }
            Ok(Ok(None)) => {
                self.sse.finish(&mut events);
                self.decode(&events);
                self.end(&error_text::cut(&self.who, "it ended before it was complete"));
            }
            Ok(Err(error)) => self.end(&error_text::cut(&self.who, &error_text::cause(&error))),
            Err(_) if kept_open < self.deadline => {
                self.end(&error_text::only_kept_open(&self.who, patience));
            }
            Err(_) => self.end(&error_text::silence(&self.who, self.allowed)),
        }
    }

    fn decode(&mut self, events: &[Event]) {
        for event in events {
            if self.over || self.decoder.progress() == Progress::Ended {
                return;
            }
            let mut out = Vec::new();
            let result = self.decoder.event(event, &mut out);
            self.ready.extend(out.into_iter().map(Ok));
            match result {
                Ok(()) => {}
                Err(Fault::Reported { message, retryable }) => {
                    self.fail(error_text::reported(&self.who, &message, retryable));
                }
                Err(Fault::Garbled(cause)) => self.end(&error_text::cut(&self.who, &cause)),
                Err(Fault::TooMany) => {
                    let cause = format!("one event holds more than {MAX_VALUES} JSON values");
                    self.end(&error_text::reported(&self.who, &cause, false));
                }
            }
        }
    }

    /// Nothing more will be read: the answer is complete, or `failure` says why it is not.
    fn end(&mut self, failure: &Failure) {
        if self.over {
            return;
        }
        let mut out = Vec::new();
        let stop = self.decoder.finish(&mut out);
        self.ready.extend(out.into_iter().map(Ok));
        match stop {
            Some(stop) => self.ready.push_back(Ok(Delta::End(stop))),
            None => self.ready.push_back(Err(failure.clone())),
        }
        self.over = true;
    }

    fn fail(&mut self, failure: Failure) {
        self.ready.push_back(Err(failure));
        self.over = true;
    }
}
