//! The consequence of each reason for which a reply ended: the run goes on, ends, or answers a call that was cut.

use crate::llm::Stop;
use crate::protocol::{AlertSource, Entry, ErrorCode, Fact, Refusal, SystemItem};
use crate::run::batch::Call;
use crate::run::{End, Run, Stopped, attach, prompt};
use serde_json::{Map, Value};

/// The most replies in a row that the limit of output tokens cuts and the run continues.
const MAX_CUT_REPLIES: u32 = 3;
/// The most requests in a row that a provider pauses.
const MAX_PAUSES: u32 = 10;
/// The most bytes of a call's arguments that its result repeats.
const MAX_HEAD: usize = 200;

/// The stop reason of Anthropic for a reply that the context window cut.
const CONTEXT_EXCEEDED: &str = "model_context_window_exceeded";
/// The stop reason of Anthropic for a reply that the same request continues.
const PAUSED_BY_PROVIDER: &str = "pause_turn";

/// How often in a row the replies of a run did not reach their own end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unfinished {
    cut: u32,
    paused: u32,
}

/// What follows a reply without calls.
pub(crate) enum Next {
    /// The model has finished.
    Finished,
    /// Another request continues the reply.
    Request,
    /// The run ends.
    End(End),
}

impl Run {
    /// Refuses the calls of a reply that were cut or cannot be read, and returns the others: a part of a
    /// call is never run.
    pub(crate) async fn refuse_cut_calls(
        &mut self,
        calls: Vec<Call>,
        stop: &Stop,
    ) -> Result<Vec<Call>, Stopped> {
        let last = calls.len().saturating_sub(1);
        let mut whole = Vec::with_capacity(calls.len());
        for (place, call) in calls.into_iter().enumerate() {
            match unusable(&call, limit(stop).filter(|_| place == last)) {
                Some(why) => self.refuse(&call, why).await?,
                None => whole.push(call),
            }
        }
        Ok(whole)
    }

    /// Acts on the end of a reply without calls.
    pub(crate) async fn after_reply(
        &mut self,
        stop: &Stop,
        unfinished: &mut Unfinished,
    ) -> Result<Next, Stopped> {
        match stop {
            Stop::MaxTokens if unfinished.cut < MAX_CUT_REPLIES => {
                unfinished.cut += 1;
                let item = SystemItem::Interrupt { body: prompt::CUT_BY_LIMIT.into() };
                self.commit(vec![Entry::new(Fact::SystemItem { item, taken: None })]).await?;
                Ok(Next::Request)
            }
            Stop::MaxTokens => {
                let tokens = self.session_state.state.config.max_tokens;
                let limit = tokens.map(|tokens| format!(" of {tokens} tokens")).unwrap_or_default();
                let why = format!(
                    "the reply was cut by its limit{limit} {} times in a row; a message continues",
                    MAX_CUT_REPLIES + 1
                );
                self.publish(attach::alert(AlertSource::Pod, why)).await;
                Ok(Next::End(End::LimitReached))
            }
            Stop::Other(word) if word == PAUSED_BY_PROVIDER && unfinished.paused < MAX_PAUSES => {
                unfinished.paused += 1;
                Ok(Next::Request)
            }
            Stop::Other(word) if word == CONTEXT_EXCEEDED => Err(failed(
                "the context window is full: `:compact` shortens the history, then a message continues",
            )),
            Stop::Refusal(words) => Err(failed(&declined(words))),
            Stop::EndTurn | Stop::ToolUse | Stop::Other(_) => Ok(Next::Finished),
        }
    }
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

/// The limit that cut a reply.
fn limit(stop: &Stop) -> Option<&'static str> {
    match stop {
        Stop::MaxTokens => Some("the limit of output tokens"),
        Stop::Other(word) if word == CONTEXT_EXCEEDED => Some("the end of the context window"),
        Stop::EndTurn | Stop::ToolUse | Stop::Refusal(_) | Stop::Other(_) => None,
    }
}

/// Why a call is not run; `cut` is the limit that cut the reply right after this call began.
fn unusable(call: &Call, cut: Option<&'static str>) -> Option<String> {
    let arguments = call.arguments.as_str();
    match (serde_json::from_str::<Map<String, Value>>(arguments), cut) {
        // The reply was cut before any argument arrived.
        (Ok(object), Some(limit)) if object.is_empty() => {
            Some(format!("not run: {limit} cut this call before its arguments. Call again."))
        }
        (Ok(_), _) => None,
        (Err(_), Some(limit)) => Some(format!(
            "not run: {limit} cut the arguments of this call after {} bytes. Call again with less text, or in \
             several calls. They begin: {}",
            arguments.len(),
            head(arguments)
        )),
        (Err(error), None) => Some(format!(
            "not run: the arguments of this call ({} bytes) are no JSON object ({error}). They begin: {}",
            arguments.len(),
            head(arguments)
        )),
    }
}

fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_HEAD)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arguments: &str) -> Call {
        Call { id: "c".into(), name: "Write".into(), arguments: arguments.into() }
    }

    #[test]
    fn a_call_that_was_cut_is_not_run_and_its_result_says_where_and_by_what() {
        let cut = limit(&Stop::MaxTokens);
        let why = unusable(&call(r#"{"file_path":"/w/a","content":"on"#), cut).unwrap();
        assert!(why.contains("after 33 bytes") && why.contains("limit of output tokens"), "{why}");
        assert!(why.contains("file_path"), "{why}");
        assert!(unusable(&call("{}"), cut).unwrap().contains("before its arguments"));
        assert_eq!(unusable(&call(r#"{"a":1}"#), cut), None, "a complete call runs");
    }

    #[test]
    fn a_call_whose_arguments_are_no_object_is_not_run() {
        for arguments in ["[1]", "7", "{\"a\":", "text", "\"{\\\"a\\\":\""] {
            let why = unusable(&call(arguments), None).unwrap();
            assert!(why.contains("no JSON object") && why.contains(arguments), "{why}");
        }
        assert_eq!(unusable(&call("{}"), None), None);
    }

    #[test]
    fn a_long_argument_is_repeated_in_part() {
        let why = unusable(&call(&format!("{{\"a\":\"{}", "é".repeat(10_000))), None).unwrap();
        assert!(why.len() < 500 && why.contains("20006 bytes"), "{why}");
    }
}
