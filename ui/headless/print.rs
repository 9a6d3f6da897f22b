//! Prints answers on standard output and notes on standard error or, as JSON, every event as a line on
//! standard output. All text becomes [`SafeText`] first, except the committed text with `--raw`.

use crate::headless::answer::OpenBlock;
use crate::headless::output::{Full, Output, Piece};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use yoi::llm::retry::clock_in;
use yoi::protocol::frame::encode_event;
use yoi::protocol::{Entry, Event, Fact, Item, Outgoing, PodName, Role};
use yoi::text::SafeText;

/// How many bytes of lines about other Pods and the host may wait; more are dropped. The output of verbs
/// is never dropped.
const WAITING: usize = 1024 * 1024;

/// The most characters of a call's argument in the line of its result.
const ARGUMENT: usize = 40;

/// Plain text for people and screen readers, the committed bytes, or one event a line for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Plain,
    Raw,
    Json,
}

/// Prints events, answers and notes.
pub struct Printer {
    form: Form,
    output: Output,
    /// Lines that could not be written yet, the oldest first.
    waiting: VecDeque<SafeText<'static>>,
    waiting_bytes: usize,
    /// The note about the last event that had one.
    said: String,
    /// Whether the text written last ends inside a line.
    inside_a_line: bool,
    /// Calls whose results have no line.
    denied: BTreeSet<String>,
    calls: OpenCalls,
}

/// The calls of the Pod in view whose results have not come.
#[derive(Default)]
struct OpenCalls {
    /// By their ids: the tool and what it is called for.
    open: BTreeMap<String, String>,
    /// Whether several were open at a time: then each result names its call.
    several: bool,
}

impl OpenCalls {
    fn begin(&mut self, id: &str, name: &str, arguments: &str) {
        let label = format!("{} {}", spelled(name), short_argument(arguments));
        self.open.insert(id.to_owned(), label.trim_end().to_owned());
        self.several |= self.open.len() > 1;
    }

    /// What the line of a result begins with.
    fn end(&mut self, id: &str) -> String {
        let label = self.open.remove(id).filter(|_| self.several);
        self.several &= !self.open.is_empty();
        label.map(|label| format!("{label}: ")).unwrap_or_default()
    }
}

impl Printer {
    pub fn new(form: Form) -> Self {
        Self::over(form, Output::standard())
    }

    pub fn over(form: Form, output: Output) -> Self {
        Self {
            form,
            output,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            said: String::new(),
            inside_a_line: false,
            denied: BTreeSet::new(),
            calls: OpenCalls::default(),
        }
    }

    pub fn form(&self) -> Form {
        self.form
    }

    pub fn output(&self) -> &Output {
        &self.output
    }

    /// Prints an event of another Pod or of the host, as JSON only.
    pub fn aside(&mut self, outgoing: &Outgoing) {
        if self.form == Form::Json {
            let line = encode(outgoing);
            if self.waiting_bytes + line.len() <= WAITING {
                self.later(line);
            }
        }
    }

    /// Prints a reply, as JSON only.
    pub fn reply(&mut self, pod: Option<&PodName>, event: &Event) {
        if self.form == Form::Json {
            let line = String::from_utf8(encode_event(None, pod, None, event)).unwrap_or_default();
            self.later(SafeText::json(line));
        }
    }

    /// Prints a sentence for the person, on a line of its own.
    pub fn note(&mut self, text: &str) {
        // A note only informs: it is dropped when too many others wait to be written.
        let _ = self.try_note(text);
    }

    /// As [`Printer::note`] for a sentence that must not be lost: fails if there is no room for it now.
    pub fn try_note(&mut self, text: &str) -> Result<(), Full> {
        if self.output.is_shared() && self.inside_a_line {
            self.inside_a_line = false;
            self.later(SafeText::lines("\n"));
        }
        self.output.try_note(crate::console::sentence(text))
    }

    /// Prints the data of a verb: lists, help.
    pub fn data(&mut self, text: &str) {
        match self.form {
            Form::Plain | Form::Raw => self.later(SafeText::lines(format!("{text}\n"))),
            Form::Json => self.note(text),
        }
    }

    /// Prints an event of the Pod in view, as JSON.
    pub fn try_line(&mut self, outgoing: &Outgoing) -> Result<(), Full> {
        self.in_order()?;
        self.output.try_write(|| Piece::Safe(encode(outgoing)))
    }

    /// Prints the next piece of an answer that streams.
    pub fn try_text(&mut self, block: &mut OpenBlock, text: &str) -> Result<(), Full> {
        self.in_order()?;
        self.output.try_write(|| block.stream(self.form, text))?;
        self.inside_a_line = block.inside_a_line();
        Ok(())
    }

    /// Prints the rest of an answer that was committed.
    pub fn try_block(&mut self, block: &mut OpenBlock, text: &str) -> Result<(), Full> {
        self.in_order()?;
        let form = self.form;
        self.output.try_write(|| join(std::mem::take(block).finish(form, text)))?;
        self.inside_a_line = false;
        Ok(())
    }

    /// Ends the line of an answer that will not continue.
    pub fn end_line(&mut self, block: &OpenBlock) {
        if block.inside_a_line() && self.form != Form::Json {
            self.inside_a_line = false;
            self.later(SafeText::lines("\n"));
        }
    }

    /// A note says that this call was denied, so its result has no line of its own.
    pub fn denied(&mut self, call: &str) {
        self.denied.insert(call.to_owned());
    }

    /// Prints the line of an event for a person, if it has one.
    pub fn tell(&mut self, event: &Event) {
        let call = match event {
            Event::ToolCallDone { id, name, arguments } => {
                self.calls.begin(id, name, arguments);
                String::new()
            }
            Event::ToolResult { id, .. } => self.calls.end(id),
            // What was not told of does not count for the next run.
            Event::RunEnd { .. } => {
                self.calls = OpenCalls::default();
                String::new()
            }
            _ => String::new(),
        };
        if matches!(event, Event::ToolResult { id, .. } if self.denied.remove(id)) {
            return;
        }
        if let (Form::Plain | Form::Raw, Some(text)) = (self.form, sentence(event, &call)) {
            self.note(&text);
            self.said = text;
        }
    }

    /// Forgets the last note about an event: what is noted from here on follows the request that is sent next.
    pub fn before_request(&mut self) {
        self.said.clear();
    }

    /// Whether an event since the last request had a note.
    pub fn has_followed(&self) -> bool {
        !self.said.is_empty()
    }

    /// Whether the last note about an event was this sentence.
    pub fn has_said(&self, text: &str) -> bool {
        !self.said.is_empty() && self.said == spelled(text)
    }

    /// Writes all waiting lines; fails if one of them still has no room.
    fn in_order(&mut self) -> Result<(), Full> {
        while let Some(next) = self.waiting.front() {
            self.output.try_write(|| Piece::Safe(next.clone()))?;
            self.waiting_bytes -= next.len();
            self.waiting.pop_front();
        }
        Ok(())
    }

    fn later(&mut self, text: SafeText<'static>) {
        self.waiting_bytes += text.len();
        self.waiting.push_back(text);
        // A line without room is written by `write_waiting`.
        let _ = self.in_order();
    }

    /// Whether a line waits for room in the output.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Writes the waiting lines once there is room. Cancel-safe.
    pub async fn write_waiting(&mut self) {
        if self.output.room().await.is_ok() {
            // The next call waits for more room.
            let _ = self.in_order();
        } else {
            (self.waiting, self.waiting_bytes) = (VecDeque::new(), 0);
        }
    }
}

fn join(pieces: Vec<Piece>) -> Piece {
    let mut committed = false;
    let text = pieces.into_iter().map(|piece| match piece {
        Piece::Safe(text) | Piece::Note(text) => text.into_string(),
        Piece::Committed(text) => {
            committed = true;
            text
        }
    });
    let text: String = text.collect();
    if committed { Piece::Committed(text) } else { Piece::Safe(SafeText::lines(text)) }
}

/// An event as a line of JSON.
pub fn encode(outgoing: &Outgoing) -> SafeText<'static> {
    SafeText::json(String::from_utf8(outgoing.encode()).unwrap_or_default())
}

/// The message of the model to the person in an entry.
pub fn message(entry: &Entry) -> Option<String> {
    let Fact::AssistantItem { item, .. } = &entry.fact else { return None };
    let Item::Message { role: Role::Assistant, .. } = item else { return None };
    item.text()
}

/// Whether a field of an entry is part of such a message.
pub fn message_text(field: &str) -> bool {
    matches!(field, "text" | "refusal")
}

/// The sentence for a person about an event; `None` for most events.
/// The line of a result names its `call` where that is not clear.
fn sentence(event: &Event, call: &str) -> Option<String> {
    Some(match event {
        Event::ToolCallDone { name, arguments, .. } => {
            format!("▸ {}  {}", spelled(name), shorten(arguments, 100))
        }
        Event::ToolResult { summary, is_error: true, .. } => {
            format!("  {call}error: {}", shorten(summary, 200))
        }
        Event::ToolResult { summary, .. } => format!("  {call}{}", shorten(summary, 200)),
        Event::LlmRetry { wait_ms, error, .. } => {
            format!("{}, tries again {}", spelled(error), clock_in(Duration::from_millis(*wait_ms)))
        }
        Event::LlmContinuation { reason, .. } => {
            format!("the answer broke off, going on: {}", spelled(reason))
        }
        Event::Alert(alert) => spelled(&alert.message),
        Event::CompactStart => "compacting the history".into(),
        Event::CompactDone { .. } => "the history is compacted".into(),
        Event::CompactFailed { error } => {
            format!("the history could not be compacted: {}", spelled(error))
        }
        _ => return None,
    })
}

fn spelled(text: &str) -> String {
    SafeText::spelled(text.to_owned()).into_string()
}

/// What a call is about, in a few characters: its first text, else all arguments.
fn short_argument(arguments: &str) -> String {
    let values = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments);
    let first = values
        .ok()
        .and_then(|values| values.values().find_map(|value| value.as_str().map(str::to_owned)));
    shorten(first.as_deref().unwrap_or(arguments), ARGUMENT)
}

/// The text on one line, at most `most` characters of it.
fn shorten(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    SafeText::brief(line, most).into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headless::follow::Follow;
    use std::io::{self, Write};
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

    /// A Pod that is followed, and the output about it.
    struct LineRunner {
        follow: Follow,
        printer: Printer,
        out: Paper,
        err: Paper,
        seq: u64,
    }

    impl LineRunner {
        fn new(form: Form) -> Self {
            let (out, err) = (Paper::default(), Paper::default());
            let output = Output::over(Box::new(out.clone()), Box::new(err.clone()), false);
            let (follow, printer) = (Follow::from_start(), Printer::over(form, output));
            Self { follow, printer, out, err, seq: 0 }
        }

        fn event(&mut self, event: Event) {
            self.seq += 1;
            let pod = PodName::parse("alice").ok();
            let outgoing = Outgoing { re: None, pod, seq: Some(self.seq), event };
            self.follow.event(&outgoing, &mut self.printer);
        }

        async fn written(&self) -> (String, String) {
            self.printer.output().flush().await;
            let text = |paper: &Paper| String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
            (text(&self.out), text(&self.err))
        }
    }

    fn said(text: &str) -> Event {
        let item = Item::message(Role::Assistant, text);
        let fact = Fact::AssistantItem { item, origin: None, native: None, partial: false };
        Event::Entry { entry: Box::new(Entry::new(fact)), cut_bytes: None }
    }

    fn delta(text: &str) -> Event {
        Event::TextDelta { text: text.into() }
    }

    #[tokio::test]
    async fn the_answer_is_written_once_as_it_streams() {
        let mut runner = LineRunner::new(Form::Plain);
        runner.event(delta("hel"));
        runner.event(delta("lo"));
        assert_eq!(runner.written().await.0, "hello");
        runner.event(said("hello there"));
        assert_eq!(runner.written().await, ("hello there\n".into(), String::new()));
    }

    #[tokio::test]
    async fn no_text_is_written_behind_a_gap_or_an_entry_that_came_cut() {
        let mut runner = LineRunner::new(Form::Plain);
        runner.event(delta("one"));
        runner.seq += 1;
        runner.event(delta("three"));
        assert!(runner.follow.needs_log(Form::Plain));
        assert_eq!(runner.written().await.0, "one");
        let mut runner = LineRunner::new(Form::Plain);
        runner.event(delta("one"));
        let Event::Entry { entry, .. } = said("on…") else { panic!() };
        runner.event(Event::Entry { entry, cut_bytes: Some(70_000) });
        assert!(runner.follow.needs_log(Form::Plain));
        assert_eq!(runner.written().await.0, "one");
    }

    #[tokio::test]
    async fn control_characters_reach_a_terminal_in_no_form_but_the_committed_one() {
        let hidden = "a\u{1b}[2K\rb\u{202e}c";
        for (form, expected) in [(Form::Plain, "a\nbc\n"), (Form::Raw, "a\u{1b}[2K\rb\u{202e}c\n")]
        {
            let mut runner = LineRunner::new(form);
            hidden.chars().for_each(|c| runner.event(delta(&c.to_string())));
            runner.event(said(hidden));
            assert_eq!(runner.written().await.0, expected);
        }
        let mut runner = LineRunner::new(Form::Json);
        runner.event(said(hidden));
        let out = runner.written().await.0;
        assert!(!out.trim_end().contains(char::is_control), "{out:?}");
        let read = Outgoing::decode(out.trim_end().as_bytes()).unwrap();
        let Event::Entry { entry, .. } = read.event else { panic!("{read:?}") };
        assert_eq!(message(&entry).as_deref(), Some(hidden));
    }

    #[tokio::test]
    async fn tools_and_retries_are_printed_on_standard_error() {
        let mut runner = LineRunner::new(Form::Plain);
        runner.event(Event::ToolCallDone {
            id: "c".into(),
            name: "Bash".into(),
            arguments: "{\"command\":\n \"ls\"}".into(),
        });
        runner.event(Event::LlmRetry {
            llm_call: 1,
            failed_attempt: 1,
            max_attempts: 4,
            wait_ms: 1500,
            elapsed_ms: 3,
            status: Some(429),
            error: "too many\nrequests\u{1b}[1m".into(),
        });
        let (out, said) = runner.written().await;
        let (expected, time) = said.rsplit_once(' ').unwrap();
        assert_eq!((out.as_str(), time.len()), ("", "12:40:05\n".len()));
        assert_eq!(
            expected,
            "▸ Bash  {\"command\": \"ls\"}\ntoo many⏎requests\\x1b[1m, tries again"
        );
    }

    #[tokio::test]
    async fn the_results_of_parallel_calls_name_their_calls_and_that_of_one_alone_does_not() {
        let mut runner = LineRunner::new(Form::Plain);
        let call = |id: &str, path: &str| Event::ToolCallDone {
            id: id.into(),
            name: "Read".into(),
            arguments: format!("{{\"file_path\":\"{path}\"}}"),
        };
        let result = |id: &str, summary: &str, is_error| Event::ToolResult {
            id: id.into(),
            summary: summary.into(),
            output: None,
            is_error,
        };
        for event in [
            call("a", "/w/a"),
            call("b", "/w/b"),
            result("b", "2 lines", false),
            result("a", "gone", true),
            call("c", "/w/c"),
            result("c", "3 lines", false),
        ] {
            runner.event(event);
        }
        let said = runner.written().await.1;
        let results: Vec<&str> = said.lines().filter(|line| !line.starts_with('▸')).collect();
        assert_eq!(results, ["  Read /w/b: 2 lines", "  Read /w/a: error: gone", "  3 lines"]);
    }

    #[tokio::test]
    async fn as_json_every_event_is_a_line_with_its_pod() {
        let mut runner = LineRunner::new(Form::Json);
        runner.event(delta("a"));
        let expected =
            "{\"pod\":\"alice\",\"seq\":1,\"event\":\"text_delta\",\"data\":{\"text\":\"a\"}}\n";
        assert_eq!(runner.written().await.0, expected);
    }
}
