//! `yoi log`: a transcript from its beginning, read in pages, and large entries in pieces, so that
//! its length does not matter.

use crate::headless::{Exit, Failure, Form, LineClient, Output, Piece, Printer, close};
use crate::start::Opening;
use crate::wording;
use yoi::client::Client;
use yoi::client::pages::{PagesBehind, Place};
use yoi::client::whole_entry::WholeEntry;
use yoi::protocol::entry::compaction_summary;
use yoi::protocol::event::Line;
use yoi::protocol::{Entry, EntryId, Fact, Item, PodName, Role, Unescape, flatten};
use yoi::text::{SafeStream, SafeText};

/// Prints all of a Pod's transcript, as text or as one entry a line.
pub async fn log(opening: &Opening, pod: &PodName, form: Form) -> Result<(), Failure> {
    let mut client = LineClient::open_to_read(opening, Printer::new(form)).await?;
    let result = print(&mut client, pod, form).await;
    match close(client, result).await {
        Exit::Finished => Ok(()),
        exit => Err(Failure::new(exit, String::new())),
    }
}

async fn print(lines: &mut LineClient, pod: &PodName, form: Form) -> Result<(), Failure> {
    let pod = lines.find(pod)?.name.clone();
    let (client, output) = (lines.client().clone(), lines.printer.output().clone());
    let mut log = Log { client, pod, form, output, calls: Calls::default() };
    lines.while_listening(async move { log.print().await }).await?
}

/// Writes a log to the standard output.
struct Log {
    client: Client,
    pod: PodName,
    form: Form,
    output: Output,
    calls: Calls,
}

/// The tool calls of one reply, so that each result names its call.
#[derive(Default)]
struct Calls {
    /// The id of each call, and what it is called: the name of its tool, and from the second one on its number.
    named: Vec<(String, String)>,
    /// Whether a result came: the next call is of another reply.
    is_answered: bool,
}

impl Calls {
    fn call(&mut self, id: &str, tool: &str) -> String {
        if std::mem::take(&mut self.is_answered) {
            self.named.clear();
        }
        let tool = SafeText::spelled(tool);
        let name = match self.named.len() {
            0 => tool.to_string(),
            before => format!("{tool} ({})", before + 1),
        };
        self.named.push((id.to_owned(), name.clone()));
        name
    }

    /// What the call of a result is called; `None` if that is not in the log.
    fn result(&mut self, id: &str) -> Option<&str> {
        self.is_answered = true;
        self.named.iter().find(|(call, _)| call == id).map(|(_, name)| name.as_str())
    }
}

impl Log {
    async fn print(&mut self) -> Result<(), Failure> {
        let (client, pod) = (self.client.clone(), self.pod.clone());
        let mut pages = PagesBehind::find(client, pod, &Place::start()).await?;
        while let Some(lines) = pages.next().await? {
            for line in lines {
                self.line(&line).await?;
            }
        }
        Ok(())
    }

    async fn line(&mut self, line: &Line) -> Result<(), Failure> {
        match (line, self.form) {
            (Line::Damaged { damaged, byte }, _) => {
                let note = format!("a damaged line at byte {byte}: {damaged}");
                self.output.note(SafeText::spelled(note));
                Ok(())
            }
            (Line::Cut { entry, .. }, form) => match entry.id {
                Some(id) if form == Form::Json => self.json_in_pieces(id).await,
                Some(id) => self.text_in_pieces(entry, id).await,
                None => self.whole(entry).await,
            },
            (Line::Whole(entry), _) => self.whole(entry).await,
        }
    }

    async fn whole(&mut self, entry: &Entry) -> Result<(), Failure> {
        if self.form == Form::Json {
            // Entries are made of JSON values only.
            let line = serde_json::to_string(entry).unwrap_or_default();
            return self.write(Piece::Safe(SafeText::json(line + "\n"))).await;
        }
        let Some(Said { speaker, text, judged }) = said(entry, &self.pod, &mut self.calls) else {
            return Ok(());
        };
        let mut indented = Indented::new(self.form, judged);
        self.write(Piece::Safe(speaker)).await?;
        self.write(indented.push(&text)).await?;
        self.end(indented).await
    }

    async fn json_in_pieces(&self, id: EntryId) -> Result<(), Failure> {
        let whole = WholeEntry::open(self.client.clone(), self.pod.clone(), id).await?;
        let mut reading = whole.line();
        while let Some(piece) = whole.next(&mut reading).await? {
            self.write(Piece::Safe(SafeText::json(piece))).await?;
        }
        self.write(Piece::Safe(SafeText::json("\n"))).await
    }

    /// `beginning` is the entry with its long texts shortened.
    async fn text_in_pieces(&mut self, beginning: &Entry, id: EntryId) -> Result<(), Failure> {
        if let Fact::UserInput { .. } | Fact::SegmentStart { .. } = beginning.fact {
            // The text of this entry is one of several in it, or made of several.
            return self.whole(&self.fetched(id).await?).await;
        }
        let Some(Said { speaker, judged, .. }) = said(beginning, &self.pod, &mut self.calls) else {
            return Ok(());
        };
        let whole = WholeEntry::open(self.client.clone(), self.pod.clone(), id).await?;
        let mut indented = Indented::new(self.form, judged);
        self.write(Piece::Safe(speaker)).await?;
        for (index, span) in whole.texts().iter().enumerate() {
            if index > 0 && span.field == "content" {
                self.write(indented.push("\n")).await?;
            }
            let (mut reading, mut decoder) = (whole.span(span), Unescape::default());
            while let Some(text) = whole.next_text(&mut reading, &mut decoder).await? {
                self.write(indented.push(&text)).await?;
            }
        }
        self.end(indented).await
    }

    async fn fetched(&self, entry: EntryId) -> Result<Entry, Failure> {
        let method = yoi::protocol::Method::Fetch { entry, range: None };
        match self.client.call(Some(&self.pod), method).await? {
            yoi::protocol::Event::Fetched { entry } => Ok(*entry),
            _ => Err(Failure::new(Exit::Failed, "the host did not answer with an entry")),
        }
    }

    async fn end(&self, mut indented: Indented) -> Result<(), Failure> {
        match indented.end() {
            Some(end) => self.write(end).await,
            None => Ok(()),
        }
    }

    async fn write(&self, piece: Piece) -> Result<(), Failure> {
        self.output.write(piece).await.map_err(|_closed| self.output.failure())
    }
}

/// Text that comes in pieces, each line of it indented.
struct Indented {
    form: Form,
    /// Every character is shown, on one line.
    judged: bool,
    safe: SafeStream,
    line_begins: bool,
}

impl Indented {
    fn new(form: Form, judged: bool) -> Self {
        Self { form, judged, safe: SafeStream::default(), line_begins: true }
    }

    fn push(&mut self, text: &str) -> Piece {
        // Every kind of line end has become a newline before the lines are indented: no text looks like a speaker.
        match self.form {
            Form::Plain if self.judged => {
                Piece::Safe(SafeText::spelled_row(text).indented(&mut self.line_begins))
            }
            Form::Plain | Form::Json => {
                Piece::Safe(self.safe.push(text).indented(&mut self.line_begins))
            }
            Form::Raw => {
                let mut out = String::with_capacity(text.len() + text.len() / 16);
                for line in text.split_inclusive('\n') {
                    if std::mem::replace(&mut self.line_begins, line.ends_with('\n')) {
                        out.push_str("  ");
                    }
                    out.push_str(line);
                }
                Piece::Committed(out)
            }
        }
    }

    /// The end of the last line, if it has none.
    fn end(&mut self) -> Option<Piece> {
        let missing = !std::mem::replace(&mut self.line_begins, true);
        missing.then(|| Piece::Safe(self.safe.push("\n")))
    }
}

/// An entry that a person reads.
#[derive(Debug, PartialEq)]
struct Said {
    speaker: SafeText<'static>,
    text: String,
    /// What a tool was called with: a person judges it, so none of its characters is hidden.
    judged: bool,
}

fn said(entry: &Entry, pod: &PodName, calls: &mut Calls) -> Option<Said> {
    let (speaker, text) = match &entry.fact {
        Fact::UserInput { segments, from, .. } => {
            let speaker = from.as_ref().map_or_else(|| "you".into(), PodName::to_string);
            (speaker, flatten(segments))
        }
        Fact::SystemItem { item, .. } => ("system".into(), item.body().to_owned()),
        Fact::AssistantItem { item, .. } => match item {
            Item::Message { role: Role::Assistant, .. } => (pod.to_string(), item.text()?),
            Item::ToolCall { call_id, name, arguments } => {
                (format!("{pod} ▸ {}", calls.call(call_id, name)), arguments.clone())
            }
            Item::Reasoning { text, .. } if !text.is_empty() => {
                (format!("{pod} (thinking)"), text.clone())
            }
            _ => return None,
        },
        Fact::ToolResult {
            item: Item::ToolResult { call_id, summary, content, is_error, .. },
            ..
        } => {
            let who = if *is_error { "tool error" } else { "tool" };
            let of = calls.result(call_id).map(|call| format!(" ▸ {call}")).unwrap_or_default();
            let rest = content.as_ref().map(|content| format!("\n{content}"));
            (format!("{who}{of}"), format!("{summary}{}", rest.unwrap_or_default()))
        }
        Fact::RunErrored { message, .. } => ("error".into(), message.clone()),
        Fact::Unknown(fields) => ("note".into(), wording::newer_entry(fields)),
        Fact::Extension { domain, payload }
            if wording::context::note(domain, payload).is_some() =>
        {
            ("note".into(), wording::context::note(domain, payload)?)
        }
        fact if fact.is_empty_answer() => ("note".into(), wording::EMPTY_ANSWER.to_owned()),
        Fact::SegmentStart { compacted_from: Some(_), history, .. } => {
            let first = &history.first()?.item;
            ("summary of what came before (compacted)".into(), compaction_summary(first)?)
        }
        _ => return None,
    };
    let judged = matches!(entry.fact, Fact::AssistantItem { item: Item::ToolCall { .. }, .. });
    Some(Said { speaker: SafeText::lines(speaker + "\n"), text, judged })
}

#[cfg(test)]
mod tests {
    use super::*;
    use yoi::protocol::Segment;

    fn text(piece: Piece) -> String {
        match piece {
            Piece::Safe(text) | Piece::Note(text) => text.into_string(),
            Piece::Committed(text) => text,
        }
    }

    #[test]
    fn every_speaker_is_named() {
        let pod = PodName::parse("alice").expect("a name");
        let item = Item::message(Role::Assistant, "one\ntwo");
        let entry =
            Entry::new(Fact::AssistantItem { item, origin: None, native: None, partial: false });
        let mut calls = Calls::default();
        let Said { speaker, text, judged } = said(&entry, &pod, &mut calls).expect("a text");
        assert_eq!((speaker.as_str(), text.as_str(), judged), ("alice\n", "one\ntwo", false));
        let mut input = |from| {
            let segments = vec![Segment::Text { content: "go".into() }];
            let entry = Entry::new(Fact::UserInput { segments, taken: None, from });
            said(&entry, &pod, &mut calls).expect("a text").speaker.into_string()
        };
        assert_eq!(
            (input(None), input(PodName::parse("lead").ok())),
            ("you\n".into(), "lead\n".into())
        );
        assert_eq!(said(&Entry::new(Fact::TurnEnd { turn_count: 1 }), &pod, &mut calls), None);
    }

    #[test]
    fn every_result_names_its_call() {
        let pod = PodName::parse("alice").expect("a name");
        let mut calls = Calls::default();
        let mut speaker = |fact: serde_json::Value| {
            let entry: Entry = serde_json::from_value(fact).expect("an entry");
            said(&entry, &pod, &mut calls).expect("a text").speaker.into_string()
        };
        let call = |id: &str, tool: &str| {
            let item = serde_json::json!({
                "kind": "tool_call", "call_id": id, "name": tool, "arguments": "{}",
            });
            serde_json::json!({ "kind": "assistant_item", "ts": 1, "item": item })
        };
        let result = |id: &str, is_error: bool| {
            let item = serde_json::json!({
                "kind": "tool_result", "call_id": id, "summary": "s", "is_error": is_error,
            });
            serde_json::json!({ "kind": "tool_result", "ts": 1, "item": item })
        };
        let of_two = [call("a", "Bash"), call("b", "Bash"), result("b", false), result("a", true)];
        assert_eq!(
            of_two.map(&mut speaker),
            ["alice ▸ Bash\n", "alice ▸ Bash (2)\n", "tool ▸ Bash (2)\n", "tool error ▸ Bash\n"]
        );
        let next = [call("c", "Read"), result("c", false), result("lost", false)];
        assert_eq!(next.map(&mut speaker), ["alice ▸ Read\n", "tool ▸ Read\n", "tool\n"]);
    }

    #[test]
    fn the_summary_of_a_compaction_is_printed() {
        let pod = PodName::parse("alice").expect("a name");
        let text = format!("{}\n\nWe fixed it.", yoi::protocol::entry::COMPACTED);
        let summary = Item::message(Role::System, text);
        let start = serde_json::json!({
            "kind": "segment_start", "ts": 1, "session_id": yoi::protocol::SessionId::new(),
            "config": {"stop_sequences": []}, "history": [summary],
            "compacted_from": {"segment_id": yoi::protocol::SegmentId::new(), "at_turn_index": 1},
        });
        let entry: Entry = serde_json::from_value(start).expect("an entry");
        let Said { speaker, text, .. } = said(&entry, &pod, &mut Calls::default()).expect("a text");
        assert_eq!(speaker.as_str(), "summary of what came before (compacted)\n");
        assert_eq!(text, "We fixed it.");
    }

    #[test]
    fn the_arguments_of_a_call_hide_no_character_wherever_the_pieces_end() {
        let pod = PodName::parse("alice").expect("a name");
        let call = Item::ToolCall {
            call_id: "c".into(),
            name: "Bash".into(),
            arguments: "{\"command\":\"echo safe \u{202e}; rm\u{200b}\u{ad}\u{2028}-rf\u{a0}~\"}"
                .into(),
        };
        let entry = Entry::new(Fact::AssistantItem {
            item: call,
            origin: None,
            native: None,
            partial: false,
        });
        let said = said(&entry, &pod, &mut Calls::default()).expect("a call");
        let expected = r#"  {"command":"echo safe \u{202e}; rm\u{200b}\u{ad}\u{2028}-rf\u{a0}~"}"#;
        for size in [1, 7, 1000] {
            let mut indented = Indented::new(Form::Plain, said.judged);
            let chars: Vec<char> = said.text.chars().collect();
            let pieces = chars.chunks(size).map(|piece| piece.iter().collect::<String>());
            let out: String = pieces.map(|piece| text(indented.push(&piece))).collect();
            let end = text(indented.end().expect("the line has no end"));
            assert_eq!(out + &end, format!("{expected}\n"));
        }
        let mut raw = Indented::new(Form::Raw, said.judged);
        assert_eq!(text(raw.push(&said.text)), format!("  {}", said.text), "--raw is raw");
    }

    #[test]
    fn no_kind_of_line_end_begins_a_line_that_looks_like_one_of_the_log() {
        for end in ["\n", "\r", "\r\n", "\u{85}", "\u{2028}", "\u{2029}"] {
            let said: Vec<char> = format!("one{end}you{end}two 👨\u{200d}👩").chars().collect();
            for size in [1, 2, 100] {
                let mut indented = Indented::new(Form::Plain, false);
                let pieces = said.chunks(size).map(|piece| piece.iter().collect::<String>());
                let out: String = pieces.map(|piece| text(indented.push(&piece))).collect();
                assert_eq!(out, "  one\n  you\n  two 👨\u{200d}👩", "{end:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn lines_are_indented_wherever_the_pieces_end() {
        for (form, expected) in
            [(Form::Plain, "  one\n  \n  two"), (Form::Raw, "  o\u{1b}[mne\n  \n  two")]
        {
            let mut indented = Indented::new(form, false);
            let pieces = ["o\u{1b}[m", "ne", "\n", "\ntw", "o"];
            let out: String = pieces.into_iter().map(|piece| text(indented.push(piece))).collect();
            assert_eq!(out, expected);
            assert!(!indented.line_begins);
        }
    }
}
