//! The consequence of each reason for which a reply ended: the run goes on, ends, or answers a call that was cut.

use crate::llm::Stop;
use crate::protocol::{AlertSource, Entry, ErrorCode, Fact, Refusal, SystemItem};
use crate::run::batch::Call;
use crate::run::stream::Complete;
use crate::run::{End, Run, Stopped, attach, prompt};
use serde_json::{Map, Value};

/// The most replies in a row that the limit of output tokens cuts and the run continues.
const MAX_CUT_REPLIES: u32 = 3;
/// The most requests in a row that a provider pauses and the run continues.
const MAX_PAUSES: u32 = 10;
/// The most replies in a row that the end of the context window cuts and the run continues.
const MAX_SHORTENED: u32 = 3;
/// The most bytes of a call's arguments that its result repeats.
const MAX_HEAD: usize = 200;

/// How often in a row the replies of a run did not reach their own end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unfinished {
    cut: u32,
    paused: u32,
    shortened: u32,
}

/// What follows a reply.
pub(crate) enum Next {
    /// The model has finished.
    Finished,
    /// Another request continues.
    Request,
    /// The run ends.
    End(End),
}

impl Run {
    /// Refuses the calls of a reply that were cut or cannot be read, and returns the others: a part of a
    /// call is never run, and no call of a reply that was declined.
    pub(crate) async fn refuse_cut_calls(
        &mut self,
        reply: Complete,
    ) -> Result<(Vec<Call>, Stop), Stopped> {
        let Complete { calls, cut_calls, stop } = reply;
        let mut whole = Vec::with_capacity(calls.len());
        for call in calls {
            match unusable(&call.arguments, cut_calls.contains(&call.id), &stop) {
                Some(why) => self.refuse_unusable(&call, why).await?,
                None => whole.push(call),
            }
        }
        Ok((whole, stop))
    }

    /// Acts on the end of a reply whose calls have results.
    pub(crate) async fn after_reply(
        &mut self,
        stop: &Stop,
        calls: CallsOfReply,
        unfinished: &mut Unfinished,
    ) -> Result<Next, Stopped> {
        if matches!(calls, CallsOfReply::Ran) {
            *unfinished = Unfinished::default();
        }
        match stop {
            Stop::MaxTokens | Stop::Pause if matches!(calls, CallsOfReply::Ran) => {
                Ok(Next::Request)
            }
            Stop::MaxTokens if unfinished.cut < MAX_CUT_REPLIES => {
                unfinished.cut += 1;
                if matches!(calls, CallsOfReply::Absent) {
                    self.commit_note_to_go_on(prompt::CUT_BY_LIMIT).await?;
                }
                Ok(Next::Request)
            }
            Stop::MaxTokens => {
                let tokens = self.request_config().max_tokens;
                let limit = tokens.map(|tokens| format!(" of {tokens} tokens")).unwrap_or_default();
                let times = MAX_CUT_REPLIES + 1;
                let why = format!("the reply was cut by its limit{limit} {times} times in a row");
                self.stop_short(why).await
            }
            Stop::Pause if unfinished.paused < MAX_PAUSES => {
                unfinished.paused += 1;
                if self.ends_with_own_text() {
                    self.commit_note_to_go_on(prompt::PAUSED).await?;
                }
                Ok(Next::Request)
            }
            Stop::Pause => {
                let times = MAX_PAUSES + 1;
                self.stop_short(format!("the provider paused its reply {times} times in a row"))
                    .await
            }
            Stop::ContextExceeded if unfinished.shortened == MAX_SHORTENED => Err(failed(
                "the context window is full although the history was just shortened: `:rewind` takes messages \
                 back, `:model` takes a model with a larger window",
            )),
            Stop::ContextExceeded => {
                unfinished.shortened += 1;
                let why = "the reply filled the rest of the context window";
                self.shorten(why).await?;
                if matches!(calls, CallsOfReply::Absent) {
                    self.commit_note_to_go_on(prompt::CUT_BY_WINDOW).await?;
                }
                Ok(Next::Request)
            }
            Stop::Refusal(words) => {
                let refusal = Refusal::new(ErrorCode::ProviderError, declined(words));
                Err(self.declined(refusal, words, true).await)
            }
            Stop::EndTurn | Stop::ToolUse | Stop::Other(_) | Stop::Unnamed
                if !matches!(calls, CallsOfReply::Absent) =>
            {
                Ok(Next::Request)
            }
            Stop::Other(word) => {
                let why = format!("the reply ended for a reason that yoi does not know: {word}");
                self.publish(attach::alert(AlertSource::Pod, why)).await;
                Ok(Next::Finished)
            }
            Stop::Unnamed => {
                let why = "the server gave no reason for the end of its reply, which is taken as complete";
                self.publish(attach::alert(AlertSource::Pod, why)).await;
                Ok(Next::Finished)
            }
            Stop::EndTurn | Stop::ToolUse => Ok(Next::Finished),
        }
    }

    /// Commits a note that tells the model to continue the reply that was cut.
    async fn commit_note_to_go_on(&mut self, note: &str) -> Result<(), Stopped> {
        let item = SystemItem::Interrupt { body: note.into() };
        self.commit(vec![Entry::new(Fact::SystemItem { item, taken: None })]).await
    }

    async fn stop_short(&mut self, why: String) -> Result<Next, Stopped> {
        self.publish(attach::alert(AlertSource::Pod, format!("{why}; a message continues"))).await;
        Ok(Next::End(End::LimitReached(why)))
    }
}

/// What a reply has of tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallsOfReply {
    Absent,
    /// No call was whole.
    Refused,
    Ran,
}

fn failed(why: &str) -> Stopped {
    Stopped::Failed(Refusal::new(ErrorCode::ProviderError, why))
}

/// The sentence about a reply that the model or the provider's filter declined.
fn declined(words: &str) -> String {
    match words.trim() {
        "" => "the model or its provider declined to answer".to_owned(),
        words => format!("the model or its provider declined to answer: {words}"),
    }
}

/// What cut a reply; `None` where the model ended it.
fn cutter(stop: &Stop) -> Option<String> {
    match stop {
        Stop::EndTurn | Stop::ToolUse => None,
        Stop::MaxTokens => Some("the limit of output tokens".to_owned()),
        Stop::ContextExceeded => Some("the end of the context window".to_owned()),
        Stop::Pause => Some("a pause of the provider".to_owned()),
        Stop::Refusal(_) => Some("the refusal".to_owned()),
        Stop::Other(word) => Some(format!("the end of the reply ({word})")),
        Stop::Unnamed => Some("the end of the reply".to_owned()),
    }
}

/// Why a call with these arguments is not run; `cut`: its reply ended within it, for the reason `stop`.
fn unusable(arguments: &str, cut: bool, stop: &Stop) -> Option<String> {
    if let Stop::Refusal(words) = stop {
        return Some(format!("not run: {}", declined(words)));
    }
    let (bytes, head) = (arguments.len(), head(arguments));
    match (serde_json::from_str::<Map<String, Value>>(arguments), cutter(stop)) {
        (Ok(_), _) if !cut => None,
        (Ok(_), cutter) => {
            let cutter = cutter.unwrap_or_else(|| "the end of the reply".to_owned());
            Some(format!("not run: {cutter} cut this call before it was complete. Call again."))
        }
        // Some providers close a call that they cut.
        (Err(error), Some(cutter)) if cut || error.is_eof() => Some(format!(
            "not run: {cutter} cut the arguments of this call after {bytes} bytes. Make it \
             smaller, such as a Write of the first part and an Edit that adds the rest. The arguments began: {head}"
        )),
        (Err(error), _) => Some(format!(
            "not run: the arguments of this call ({bytes} bytes) are not a JSON object ({error}). They began: {head}"
        )),
    }
}

fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_HEAD)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_was_cut_is_not_run_and_its_result_says_where_and_by_what() {
        let stops = [
            (Stop::MaxTokens, "limit of output tokens"),
            (Stop::ContextExceeded, "context window"),
            (Stop::Pause, "pause"),
            (Stop::Other("odd".into()), "odd"),
        ];
        for (stop, words) in stops {
            for closed in [false, true] {
                let begun = r#"{"file_path":"/w/a","content":"on"#;
                let why = unusable(begun, !closed, &stop).unwrap();
                assert!(why.contains("after 33 bytes") && why.contains(words), "{why}");
                assert!(why.contains("file_path"), "{why}");
            }
            for whole in ["{}", r#"{"a":1}"#] {
                assert_eq!(unusable(whole, false, &stop), None, "a complete call runs: {whole}");
                let why = unusable(whole, true, &stop).unwrap();
                assert!(why.contains("before it was complete") && why.contains(words), "{why}");
            }
        }
    }

    #[test]
    fn a_call_that_its_provider_did_not_close_is_not_run_whatever_ended_the_reply() {
        for stop in [Stop::ToolUse, Stop::EndTurn] {
            assert!(unusable("{}", true, &stop).unwrap().contains("before it was complete"));
            assert!(unusable("{", true, &stop).unwrap().contains("not a JSON object"));
        }
    }

    #[test]
    fn no_call_of_a_declined_reply_is_run() {
        let why = unusable(r#"{"a":1}"#, false, &Stop::Refusal("not this".into())).unwrap();
        assert!(why.contains("declined to answer: not this"), "{why}");
    }

    #[test]
    fn a_call_whose_arguments_are_no_object_is_not_run() {
        for arguments in ["[1]", "7", "{\"a\":", "text", "\"{\\\"a\\\":\""] {
            let why = unusable(arguments, false, &Stop::ToolUse).unwrap();
            assert!(why.contains("not a JSON object") && why.contains(arguments), "{why}");
        }
    }

    #[test]
    fn a_long_argument_is_repeated_in_part() {
        let long = format!("{{\"a\":\"{}", "é".repeat(10_000));
        let why = unusable(&long, false, &Stop::ToolUse).unwrap();
        assert!(why.len() < 500 && why.contains("20006 bytes"), "{why}");
    }
}
