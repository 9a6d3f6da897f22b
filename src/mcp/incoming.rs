//! Checks the text of a message before it is decoded. A value takes much more memory than its text, so a message with
//! too many values becomes the failure of the request that it answers.

use crate::protocol::{MAX_VALUES, ValueCount};
use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use serde::Deserialize;

/// The fields by which a message is recognised whose rest is not decoded.
#[derive(Deserialize)]
pub struct Named {
    pub id: RequestId,
}

/// Decodes a message; `None` if the text is not a message.
pub fn read(text: &[u8]) -> Option<ServerJsonRpcMessage> {
    let text = std::str::from_utf8(text).ok()?;
    if ValueCount::is_too_many(text) {
        return unread(text);
    }
    serde_json::from_str(text).ok()
}

/// The failure of the request that a message with too many values answers.
pub fn unread(text: &str) -> Option<ServerJsonRpcMessage> {
    let Named { id } = serde_json::from_str(text).ok()?;
    let why = format!("its answer has more than {MAX_VALUES} JSON values, which is not read");
    Some(ServerJsonRpcMessage::error(ErrorData::parse_error(why, None), Some(id)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::JsonRpcMessage;

    /// An answer to request 7 that has so many values.
    fn answer(values: usize) -> String {
        // The message, its four keys and their values, without those of the list.
        const AROUND: usize = 9;
        let list = "0,".repeat(values - AROUND - 1);
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"tools":[{list}0]}}}}"#)
    }

    #[test]
    fn an_answer_of_too_many_values_is_not_read_and_fails_its_request() {
        let most = read(answer(MAX_VALUES).as_bytes());
        assert!(matches!(most, Some(JsonRpcMessage::Response(_))), "{most:?}");
        let Some(JsonRpcMessage::Error(error)) = read(answer(MAX_VALUES + 1).as_bytes()) else {
            panic!("it was read");
        };
        assert_eq!(error.id, Some(RequestId::Number(7)));
        assert!(error.error.message.contains("more than 262144 JSON values"), "{error:?}");
    }

    #[test]
    fn values_that_belong_to_no_request_are_no_message() {
        let many = "{\"\":0},".repeat(MAX_VALUES);
        for text in [format!("[{many}0]"), format!(r#"{{"method":"x","params":[{many}0]}}"#)] {
            assert!(read(text.as_bytes()).is_none());
        }
    }
}
