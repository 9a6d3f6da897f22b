//! Questions to a person, in words.

use yoi::protocol::{ApprovalRequest, Field, Question};
use yoi::text::SafeText;

/// Who asks, where an MCP server does: its words are not those of the Pod.
pub fn asker(request: &ApprovalRequest) -> String {
    let server = request.question.as_ref().and_then(|question| question.server.as_ref());
    match server {
        Some(server) => format!("the MCP server {}, for {}", SafeText::quoted(server), request.pod),
        None => request.asker(),
    }
}

/// What is wanted, a row for each choice or field.
pub fn rows(question: &Question) -> Vec<String> {
    match question.fields.as_slice() {
        [] => Vec::new(),
        [field] => {
            let about = about(field);
            let choices = field.choices().into_iter().enumerate();
            let choices = choices.map(|(at, choice)| format!("{} {}", at + 1, spelled(&choice)));
            about.into_iter().chain(choices).collect()
        }
        fields => fields.iter().map(row).collect(),
    }
}

/// One of several fields.
fn row(field: &Field) -> String {
    let wants = match field.choices().as_slice() {
        [] => field.wants(),
        choices => {
            let choices = choices.iter().enumerate();
            let choices = choices.map(|(at, choice)| format!("{} {}", at + 1, spelled(choice)));
            format!("{}: {}", field.wants(), choices.collect::<Vec<_>>().join(", "))
        }
    };
    let optional = if field.optional { ", may be left out" } else { "" };
    let about = about(field).map(|about| format!(" ({about})")).unwrap_or_default();
    format!("{}{about}: {wants}{optional}", spelled(&field.name))
}

/// The title and the description of a field.
fn about(field: &Field) -> Option<String> {
    let parts: Vec<String> = [&field.title, &field.description]
        .into_iter()
        .flatten()
        .map(|text| spelled(text))
        .collect();
    (!parts.is_empty()).then(|| parts.join(": "))
}

/// What is wanted in all, in a few words.
pub fn wants(question: &Question) -> String {
    match question.fields.as_slice() {
        [] => "a yes".into(),
        [field] if field.optional => format!("{}, or nothing", field.wants()),
        [field] => field.wants(),
        fields => format!("{} values, each with its name", fields.len()),
    }
}

/// The form of an answer.
pub fn form(question: &Question) -> String {
    match question.fields.as_slice() {
        [] => "yes".into(),
        [field] if !field.choices().is_empty() => "<number or words>".into(),
        [_] => "<words>".into(),
        fields => {
            let named = fields.iter().map(|field| format!("{}=<…>", spelled(&field.name)));
            named.collect::<Vec<_>>().join(" ")
        }
    }
}

fn spelled(text: &str) -> String {
    SafeText::spelled_row(text).to_string()
}
