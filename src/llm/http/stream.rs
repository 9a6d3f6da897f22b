//! A response as deltas, with an eye on the clock. Dropping the stream closes the connection.

use crate::llm::http::answer::Answer;
use crate::llm::http::unpack::Unpack;
use crate::llm::http::{Timeouts, error_text};
use crate::llm::wire::Progress;
use crate::llm::{Delta, Deltas, Failure};
use futures_util::stream;
use reqwest::Response;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

/// The most bytes that are read of an error body.
pub(super) const MAX_BODY: usize = 64 << 10;
/// The most bytes that are read of a list.
pub(super) const MAX_LIST: usize = 1 << 20;
/// How long the accounts may take once the model has finished.
const AFTER_ANSWER: Duration = Duration::from_secs(5);
/// How long the end of the response is waited for, so that its connection can be used again.
const AFTER_END: Duration = Duration::from_millis(200);
/// How long pieces are left to come before they are read together: each read wakes every task behind it.
const TOGETHER: Duration = Duration::from_millis(25);
/// They are left for no longer than this part of the time that the answer took so far.
const PART: u32 = 40;
/// A read that took less found bytes that were there before, and more of them may be.
const WAITED: Duration = Duration::from_millis(1);

/// The answer that `response` carries. `first` is when its first bytes must have come.
pub(super) fn deltas(
    response: Response,
    answer: Answer,
    timeouts: Timeouts,
    first: Instant,
) -> Deltas {
    let reader = Reader {
        answer: answer.unpacking(Unpack::of(response.headers())),
        response,
        timeouts,
        deadline: first,
        piece: Instant::now(),
        allowed: timeouts.first_event,
        began: Instant::now(),
        next_read: Instant::now(),
    };
    Box::pin(stream::unfold(reader, |mut reader| async move {
        let next = reader.next().await?;
        Some((next, reader))
    }))
}

/// The beginning of a body that is not streamed: at most `most` bytes, as far as they arrive before `until`.
pub(super) async fn start_of(mut response: Response, until: Instant, most: usize) -> String {
    let (mut body, mut unpack) = (Vec::new(), Unpack::of(response.headers()));
    while body.len() < most {
        let Ok(Ok(Some(bytes))) = timeout_at(until, response.chunk()).await else { break };
        let Ok(plain) = unpack.feed(&bytes[..bytes.len().min(most)]) else { break };
        body.extend(plain);
    }
    body.extend(unpack.finish());
    body.truncate(most);
    String::from_utf8_lossy(&body).into_owned()
}

/// How long the next read waits, when the last one took `waited` and ended `elapsed` after the answer began.
fn pause(waited: Duration, elapsed: Duration) -> Duration {
    if waited < WAITED { Duration::ZERO } else { TOGETHER.min(elapsed / PART) }
}

struct Reader {
    response: Response,
    answer: Answer,
    timeouts: Timeouts,
    /// When the last piece of the answer came; at first, when the response did.
    piece: Instant,
    /// When the next bytes must have come, and how long that was allowed to take.
    deadline: Instant,
    allowed: Duration,
    began: Instant,
    /// Before it no bytes are read.
    next_read: Instant,
}

impl Reader {
    async fn next(&mut self) -> Option<Result<Delta, Failure>> {
        loop {
            if let Some(delta) = self.answer.next() {
                return Some(delta);
            }
            if self.answer.is_over {
                return None;
            }
            self.read().await;
        }
    }

    /// Waits for the next bytes and makes deltas of them.
    async fn read(&mut self) {
        // Pings, comments and empty pieces keep a connection open and bring no answer.
        let patience = self.timeouts.piece.max(self.allowed);
        let kept_open = self.piece + patience;
        let only_kept_open = |answer: &Answer| error_text::only_kept_open(&answer.who, patience);
        let mut asked = Instant::now();
        if self.next_read > asked {
            sleep_until(self.next_read).await;
            asked = Instant::now();
        }
        let failure = match timeout_at(self.deadline.min(kept_open), self.response.chunk()).await {
            // Bytes that are there at every moment leave the clock no turn.
            Ok(Ok(Some(_))) if Instant::now() > kept_open => only_kept_open(&self.answer),
            Ok(Ok(Some(bytes))) => {
                let (came, waited) = (Instant::now(), asked.elapsed());
                self.take(&bytes);
                if self.answer.progress() == Progress::Open {
                    self.next_read = came + pause(waited, came - self.began);
                }
                return;
            }
            Ok(Ok(None)) => return self.answer.finish(),
            Ok(Err(error)) => error_text::cut(&self.answer.who, &error_text::cause(&error)),
            Err(_) if kept_open < self.deadline => only_kept_open(&self.answer),
            Err(_) => error_text::silence(&self.answer.who, self.allowed),
        };
        self.answer.end(&failure);
    }

    fn take(&mut self, bytes: &[u8]) {
        let before = self.answer.progress();
        self.answer.feed(bytes);
        if self.answer.has_piece() || self.answer.progress() != before {
            self.piece = Instant::now();
        }
        self.allowed = match self.answer.progress() {
            Progress::Open => self.timeouts.idle,
            Progress::Answered => self.timeouts.idle.min(AFTER_ANSWER),
            Progress::Ended => self.timeouts.idle.min(AFTER_END),
        };
        self.deadline = Instant::now() + self.allowed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_left_to_come_only_once_all_that_came_is_read_and_never_for_long() {
        let ms = Duration::from_millis;
        for (waited, elapsed, expected) in [
            (ms(0), ms(60_000), ms(0)),
            (ms(5), ms(0), ms(0)),
            (ms(5), ms(400), ms(10)),
            (ms(5), ms(1_000), ms(25)),
            (ms(5_000), ms(60_000), ms(25)),
        ] {
            assert_eq!(pause(waited, elapsed), expected, "{waited:?} of {elapsed:?}");
        }
    }
}
