//! `yoi log`: a transcript from its beginning, read in pages so that its length does not matter.

use crate::headless::{Exit, Failure, Form, LineClient, Printer, Reach, close};
use crate::start::Opening;
use std::io::Write as _;
use yoi::protocol::event::Line;
use yoi::protocol::{Entry, EntryId, Event, Fact, Item, Method, PodName, Role, flatten};

/// How much of the log one page holds, in bytes.
const PAGE: u64 = 1024 * 1024;

/// Prints all of a Pod's transcript, as text or as one entry a line.
pub async fn log(opening: &Opening, pod: &PodName, json: bool) -> Result<(), Failure> {
    let printer = Printer::new(Form::Plain);
    let mut talk = LineClient::open(opening, printer, Reach::AttachOrBeTheHost).await?;
    let result = print(&mut talk, pod, json).await;
    match close(talk, result).await {
        Exit::Finished => Ok(()),
        exit => Err(Failure::new(exit, String::new())),
    }
}

async fn print(talk: &mut LineClient, pod: &PodName, json: bool) -> Result<(), Failure> {
    let name = talk.find(pod)?.name.clone();
    let mut ends = page_ends(talk, &name).await?;
    while let Some(before) = ends.pop() {
        let (lines, _) = page(talk, &name, before).await?;
        for line in lines {
            let text = match line {
                Line::Cut { entry, .. } => text_of(&whole(talk, &name, *entry).await?, &name, json),
                Line::Whole(entry) => text_of(&entry, &name, json),
                Line::Damaged { damaged, byte } => {
                    talk.printer.note(&format!("a damaged line at byte {byte}: {damaged}"));
                    continue;
                }
            };
            if std::io::stdout().write_all(text.as_bytes()).is_err() {
                // Whoever read our output has seen enough.
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Where the pages end, the last one first.
async fn page_ends(talk: &mut LineClient, pod: &PodName) -> Result<Vec<Option<EntryId>>, Failure> {
    let mut ends = vec![None];
    let mut before = None;
    loop {
        let (_, earlier) = page(talk, pod, before).await?;
        if earlier.is_none() {
            return Ok(ends);
        }
        ends.push(earlier);
        before = earlier;
    }
}

async fn page(
    talk: &mut LineClient,
    pod: &PodName,
    before: Option<EntryId>,
) -> Result<(Vec<Line>, Option<EntryId>), Failure> {
    let reply = talk.call(Some(pod), Method::Page { before, max_bytes: PAGE }).await?;
    let Event::Page { entries, before, .. } = reply else {
        return Err(Failure::new(Exit::Failed, "the host did not answer with a page"));
    };
    Ok((entries, before))
}

async fn whole(talk: &mut LineClient, pod: &PodName, entry: Entry) -> Result<Entry, Failure> {
    let Some(id) = entry.id else { return Ok(entry) };
    match talk.call(Some(pod), Method::Fetch { entry: id, range: None }).await? {
        Event::Fetched { entry } => Ok(*entry),
        _ => Ok(entry),
    }
}

fn text_of(entry: &Entry, pod: &PodName, json: bool) -> String {
    if json {
        // Entries are made of JSON values only.
        return serde_json::to_string(entry).map_or_else(|_| String::new(), |line| line + "\n");
    }
    match said(entry, pod) {
        Some((who, text)) => format!("{who}\n{}\n", indented(&text)),
        None => String::new(),
    }
}

/// Who said what, for the entries that a person reads.
fn said(entry: &Entry, pod: &PodName) -> Option<(String, String)> {
    match &entry.fact {
        Fact::UserInput { segments, .. } => Some(("you".into(), flatten(segments))),
        Fact::SystemItem { item, .. } => Some(("system".into(), item.body().to_owned())),
        Fact::AssistantItem { item, .. } => match item {
            Item::Message { role: Role::Assistant, .. } => Some((pod.to_string(), item.text()?)),
            Item::ToolCall { name, arguments, .. } => {
                Some((format!("{pod} ▸ {name}"), arguments.clone()))
            }
            Item::Reasoning { text, .. } if !text.is_empty() => {
                Some((format!("{pod} (thinking)"), text.clone()))
            }
            _ => None,
        },
        Fact::ToolResult { item: Item::ToolResult { summary, content, is_error, .. }, .. } => {
            let who = if *is_error { "tool error" } else { "tool" };
            let rest = content.as_ref().map(|content| format!("\n{content}"));
            Some((who.into(), format!("{summary}{}", rest.unwrap_or_default())))
        }
        Fact::RunErrored { message, .. } => Some(("error".into(), message.clone())),
        _ => None,
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_is_named_and_its_words_are_indented() {
        let pod = PodName::parse("alice").expect("a name");
        let item = Item::message(Role::Assistant, "one\ntwo");
        let entry =
            Entry::new(Fact::AssistantItem { item, origin: None, native: None, partial: false });
        assert_eq!(text_of(&entry, &pod, false), "alice\n  one\n  two\n");
        assert_eq!(text_of(&Entry::new(Fact::TurnEnd { turn_count: 1 }), &pod, false), "");
    }
}
