//! How the message of an agent reads for a model, in a Pod and in an MCP client.

use crate::text::SafeText;

/// The text of a body: the body itself where that is a text, else its JSON as it was written.
pub fn text_of(body: &str) -> String {
    serde_json::from_str(body).unwrap_or_else(|_| body.to_owned())
}

/// A message with its head. Each line of the text is marked, so that none looks like the head of a message or a line
/// of the runtime; the name is quoted, with its invisible characters spelled.
pub fn message_for_model(from: &str, facts: &[String], text: &str) -> String {
    let head = format!("[agent-network] message from {}", SafeText::quoted(from));
    let lines: String = SafeText::lines(text).lines().map(|line| format!("\n> {line}")).collect();
    format!("{head} ({}){lines}", facts.join(", "))
}
