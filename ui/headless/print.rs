//! What comes out: the answer on standard output, everything else on standard error; or, as JSON,
//! every event as a line on standard output.

use std::collections::HashSet;
use std::io::{self, IsTerminal as _, Write};
use yoi::protocol::{Entry, EntryId, Event, Fact, Item, Outgoing, PodName, Role};

/// Plain text for people and screen readers, or one event a line for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Plain,
    Json,
}

/// Writes what happens. A reader of our output that went away ends the writing and nothing else.
pub struct Printer {
    form: Form,
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    /// Both go to one terminal, so a note must not land inside a line of the answer.
    shared: bool,
    answer: Answer,
}

impl Printer {
    pub fn new(form: Form) -> Self {
        let shared = io::stdout().is_terminal() && io::stderr().is_terminal();
        Self::over(form, Box::new(io::stdout()), Box::new(io::stderr()), shared)
    }

    fn over(
        form: Form,
        out: Box<dyn Write + Send>,
        err: Box<dyn Write + Send>,
        shared: bool,
    ) -> Self {
        Self { form, out, err, shared, answer: Answer::default() }
    }

    /// An event of the Pod in view.
    pub fn event(&mut self, outgoing: &Outgoing) {
        match self.form {
            Form::Json => self.line(&outgoing.encode()),
            Form::Plain => self.plain(&outgoing.event),
        }
    }

    /// An event of another Pod or of the host: programs get it, people do not.
    pub fn aside(&mut self, outgoing: &Outgoing) {
        if self.form == Form::Json {
            self.line(&outgoing.encode());
        }
    }

    /// A reply: for programs an event like every other.
    pub fn reply(&mut self, pod: Option<&PodName>, event: &Event) {
        if self.form == Form::Json {
            self.line(&yoi::protocol::frame::encode_event(None, pod, None, event));
        }
    }

    /// A sentence for the person, on a line of its own.
    pub fn note(&mut self, text: &str) {
        if self.shared && self.answer.inside_a_line() {
            self.write(b"\n");
        }
        // A closed standard error leaves nobody to tell.
        let _ = writeln!(self.err, "{text}");
    }

    /// Data asked for by a verb: lists, help.
    pub fn data(&mut self, text: &str) {
        match self.form {
            Form::Plain => self.line(format!("{text}\n").as_bytes()),
            Form::Json => self.note(text),
        }
    }

    /// What a transcript holds beyond what was shown, after events were missed.
    pub fn catch_up<'a>(&mut self, entries: impl Iterator<Item = &'a Entry>) {
        if self.form == Form::Plain {
            for entry in entries {
                self.committed(entry);
            }
        }
    }

    /// Ends a line that was begun, so that what follows stands on its own.
    pub fn finish(&mut self) {
        if self.answer.inside_a_line() {
            self.write(b"\n");
        }
    }

    fn plain(&mut self, event: &Event) {
        match event {
            Event::TextDelta { text } => {
                let text = self.answer.stream(text);
                self.write(text.as_bytes());
            }
            Event::Entry { entry, .. } => self.committed(entry),
            event => {
                if let Some(text) = sentence(event) {
                    self.note(&text);
                }
            }
        }
    }

    fn committed(&mut self, entry: &Entry) {
        let Fact::AssistantItem { item, .. } = &entry.fact else { return };
        let Item::Message { role: Role::Assistant, .. } = item else { return };
        let rest = self.answer.commit(entry.id, &item.text().unwrap_or_default());
        self.line(rest.as_bytes());
    }

    fn line(&mut self, bytes: &[u8]) {
        self.write(bytes);
    }

    fn write(&mut self, bytes: &[u8]) {
        // Who closed our output does not want the rest; the work goes on to its end.
        let _ = self.out.write_all(bytes).and_then(|()| self.out.flush());
    }
}

/// How much of the answer was written already: text is shown as it streams, and completed from the
/// committed entry, which is the truth.
#[derive(Default)]
struct Answer {
    streamed: String,
    done: HashSet<EntryId>,
}

impl Answer {
    fn inside_a_line(&self) -> bool {
        !self.streamed.is_empty() && !self.streamed.ends_with('\n')
    }

    fn stream(&mut self, text: &str) -> String {
        self.streamed.push_str(text);
        text.to_owned()
    }

    /// What is still to be written of a block, its last newline included.
    fn commit(&mut self, id: Option<EntryId>, whole: &str) -> String {
        if id.is_some_and(|id| !self.done.insert(id)) {
            return String::new();
        }
        let streamed = std::mem::take(&mut self.streamed);
        let mut rest = match whole.strip_prefix(&streamed) {
            Some(rest) => rest.to_owned(),
            // What was shown is not how it was kept: the whole follows on a line of its own.
            None => format!("\n{whole}"),
        };
        if !whole.ends_with('\n') {
            rest.push('\n');
        }
        rest
    }
}

/// What a person is told of an event, when it is worth a line.
fn sentence(event: &Event) -> Option<String> {
    Some(match event {
        Event::ToolCallDone { name, arguments, .. } => {
            format!("▸ {name}  {}", shorten(arguments, 100))
        }
        Event::ToolResult { summary, is_error: true, .. } => {
            format!("  error: {}", shorten(summary, 200))
        }
        Event::ToolResult { summary, .. } => format!("  {}", shorten(summary, 200)),
        Event::LlmRetry { failed_attempt, max_attempts, wait_ms, error, .. } => format!(
            "attempt {failed_attempt} of {max_attempts} failed, the next in {}.{} s: {error}",
            wait_ms / 1000,
            wait_ms % 1000 / 100
        ),
        Event::LlmContinuation { reason, .. } => {
            format!("the answer broke off, going on: {reason}")
        }
        Event::Alert(alert) => alert.message.clone(),
        Event::CompactStart => "compacting the history".into(),
        Event::CompactDone { .. } => "the history is compacted".into(),
        Event::CompactFailed { error } => format!("the history could not be compacted: {error}"),
        _ => return None,
    })
}

/// The text on one line, at most `most` characters of it.
fn shorten(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Paper {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn printer(form: Form) -> (Printer, Paper, Paper) {
        let (out, err) = (Paper::default(), Paper::default());
        (Printer::over(form, Box::new(out.clone()), Box::new(err.clone()), false), out, err)
    }

    fn event(event: Event) -> Outgoing {
        Outgoing { re: None, pod: PodName::parse("alice").ok(), seq: Some(1), event }
    }

    fn said(text: &str) -> Entry {
        let item = Item::message(Role::Assistant, text);
        Entry::new(Fact::AssistantItem { item, origin: None, native: None, partial: false })
    }

    #[test]
    fn the_answer_is_written_once_as_it_streams() {
        let (mut printer, out, err) = printer(Form::Plain);
        for text in ["hel", "lo"] {
            printer.event(&event(Event::TextDelta { text: text.into() }));
        }
        assert_eq!(out.text(), "hello");
        let entry = Box::new(said("hello there"));
        printer.event(&event(Event::Entry { entry: entry.clone(), cut_bytes: None }));
        printer.event(&event(Event::Entry { entry, cut_bytes: None }));
        assert_eq!(out.text(), "hello there\n");
        assert_eq!(err.text(), "");
    }

    #[test]
    fn what_was_missed_is_read_from_the_transcript() {
        let (mut printer, out, _) = printer(Form::Plain);
        let (first, second) = (said("one"), said("two"));
        printer.event(&event(Event::Entry { entry: Box::new(first.clone()), cut_bytes: None }));
        printer.catch_up([&first, &second].into_iter());
        assert_eq!(out.text(), "one\ntwo\n");
    }

    #[test]
    fn tools_and_retries_are_told_on_standard_error() {
        let (mut printer, out, err) = printer(Form::Plain);
        printer.event(&event(Event::ToolCallDone {
            id: "c".into(),
            name: "Bash".into(),
            arguments: "{\"command\":\n \"ls\"}".into(),
        }));
        printer.event(&event(Event::LlmRetry {
            llm_call: 1,
            failed_attempt: 1,
            max_attempts: 4,
            wait_ms: 1500,
            elapsed_ms: 3,
            status: Some(429),
            error: "too many requests".into(),
        }));
        assert_eq!(out.text(), "");
        let expected = "▸ Bash  {\"command\": \"ls\"}\n\
                        attempt 1 of 4 failed, the next in 1.5 s: too many requests\n";
        assert_eq!(err.text(), expected);
    }

    #[test]
    fn as_json_every_event_is_a_line_with_its_pod() {
        let (mut printer, out, _) = printer(Form::Json);
        printer.event(&event(Event::TextDelta { text: "a".into() }));
        let expected =
            "{\"pod\":\"alice\",\"seq\":1,\"event\":\"text_delta\",\"data\":{\"text\":\"a\"}}\n";
        assert_eq!(out.text(), expected);
    }
}
