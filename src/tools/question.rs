//! Asks the person. The run makes a question of the call, and the result is the answer.

use crate::protocol::{QUESTION_TOOL, Question};
use crate::tools::fault::Fault;
use crate::tools::{Context, Output, input};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

pub const DESCRIPTION: &str = "Asks the person a question and waits for the answer, which may take \
long. Ask only what you cannot find out yourself and where a wrong guess would cost more than the \
wait. One question for each call.";

/// Bytes of the text, and characters of a choice.
const MAX_TEXT: usize = 4096;
const MAX_CHOICE: usize = 200;
/// How many choices there are, unless there are none.
const CHOICES: std::ops::RangeInclusive<usize> = 2..=4;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// The question, with what the person has to know to answer it.
    question: String,
    /// Two to four answers to choose from, the one you would take first. Without them the person writes an answer.
    #[serde(default)]
    choices: Vec<String>,
}

/// The text and the question of a call.
pub fn question(arguments: &str) -> Result<(String, Question), Fault> {
    let Input { question, choices } = input::parse(QUESTION_TOOL, arguments)?;
    let wrong = |why: String| Err(Fault::argument(format!("invalid {QUESTION_TOOL} input: {why}")));
    let text = question.trim();
    if text.is_empty() || text.len() > MAX_TEXT {
        return wrong(format!("question has 1 to {MAX_TEXT} bytes, not {}", text.len()));
    }
    let choices: Vec<String> = choices.iter().map(|choice| choice.trim().to_owned()).collect();
    if !choices.is_empty() && !CHOICES.contains(&choices.len()) {
        return wrong(format!("choices are two to four, or left out, not {}", choices.len()));
    }
    for (at, choice) in choices.iter().enumerate() {
        let count = choice.chars().count();
        if count == 0 || count > MAX_CHOICE || choice.contains('\n') {
            return wrong(format!(
                "choice {} has to be one line of 1 to {MAX_CHOICE} characters",
                at + 1
            ));
        }
        if choices[..at].iter().any(|other| other.to_lowercase() == choice.to_lowercase()) {
            return wrong(format!("choice {} stands twice", at + 1));
        }
    }
    Ok((text.to_owned(), Question::of_model(choices)))
}

pub fn takes(_: &str, arguments: &str) -> Result<(), Fault> {
    question(arguments).map(drop)
}

/// The tool is not carried out: its result is made of the person's answer.
pub fn not_carried_out(_: &str, _: &Context, _: &CancellationToken) -> Result<Output, Fault> {
    Err(Fault::Internal("a question was not asked".into()))
}
