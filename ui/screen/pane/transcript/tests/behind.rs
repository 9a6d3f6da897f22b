//! A screen that falls behind its host: whatever events it missed, and in whatever order events, pages and refusals
//! come, the screen shows the log and the streaming blocks.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

/// A step of the host, or of the screen.
#[derive(Clone, Debug)]
enum Step {
    /// The model thinks, writes, or calls a tool.
    Think(String),
    Write(String),
    Call,
    /// The reply is committed.
    Reply,
    /// The calls are answered, the run ends, and the person writes again.
    End,
    /// The log goes on behind a compaction.
    Compact,
    /// The queue of the screen is full: the host sends the queued events, then the mark, then later events.
    Full,
    /// The screen reads this many events.
    Read(usize),
    /// The screen requests pages; the host answers or refuses; the reply reaches the screen.
    Request,
    Answer,
    Refuse,
    Arrive,
    Scroll(i32),
}

fn step() -> impl Strategy<Value = Step> {
    let word = || "[a-z]{1,9} ";
    prop_oneof![
        2 => word().prop_map(Step::Think),
        4 => word().prop_map(Step::Write),
        1 => Just(Step::Call),
        3 => Just(Step::Reply),
        2 => Just(Step::End),
        1 => Just(Step::Compact),
        2 => Just(Step::Full),
        6 => (1usize..12).prop_map(Step::Read),
        4 => Just(Step::Request),
        4 => Just(Step::Answer),
        1 => Just(Step::Refuse),
        4 => Just(Step::Arrive),
        1 => (-30i32..30).prop_map(Step::Scroll),
    ]
}

/// The host's side of one Pod, and the screen that watches it.
struct Watched {
    bench: Bench,
    thought: String,
    text: String,
    calls: Vec<String>,
    /// The calls that run.
    running: Vec<String>,
    count: usize,
    queue: VecDeque<(Option<u64>, Event)>,
    full: bool,
    request: Option<Option<EntryId>>,
    reply: Option<Event>,
}

impl Watched {
    fn new() -> Self {
        let log = vec![you("begin"), said("yes")];
        Self {
            bench: Bench::new(log).sized(60, 8).paged(900),
            thought: String::new(),
            text: String::new(),
            calls: Vec::new(),
            running: Vec::new(),
            count: 0,
            queue: VecDeque::new(),
            full: false,
            request: None,
            reply: None,
        }
    }

    fn publish(&mut self, event: Event) {
        self.bench.seq += 1;
        if !self.full {
            self.queue.push_back((Some(self.bench.seq), event));
        }
    }

    fn commit(&mut self, entry: Entry) {
        self.bench.log.push(entry.clone());
        self.publish(Event::Entry { entry: Box::new(entry), cut_bytes: None });
    }

    fn in_flight(&self) -> Vec<InFlight> {
        let text = |text: &String| (!text.is_empty()).then(|| text.clone());
        let thinking = text(&self.thought).map(|text| InFlight::Thinking { text, skipped: 0 });
        let text = text(&self.text).map(|text| InFlight::Text { text, skipped: 0 });
        let call = |id: &String| InFlight::ToolCall {
            id: id.clone(),
            name: "Bash".into(),
            arguments: String::new(),
        };
        let tool = |id: &String| InFlight::Tool {
            id: id.clone(),
            name: "Bash".into(),
            output: String::new(),
        };
        let running = self.running.iter().map(tool);
        running.chain(thinking).chain(text).chain(self.calls.iter().map(call)).collect()
    }

    /// Commits the streaming blocks.
    fn reply(&mut self) {
        for text in [std::mem::take(&mut self.thought)].iter().filter(|text| !text.is_empty()) {
            self.commit(thought(text));
        }
        for text in [std::mem::take(&mut self.text)].iter().filter(|text| !text.is_empty()) {
            self.commit(said(text));
        }
        for id in std::mem::take(&mut self.calls) {
            self.running.push(id.clone());
            self.commit(call(&id, "Bash", json!({ "command": id })));
        }
    }

    fn end(&mut self) {
        self.reply();
        for id in std::mem::take(&mut self.running) {
            self.commit(result(1500, &id, "exit status 0", None, false));
        }
        self.publish(Event::RunEnd { result: RunResult::Finished, entry: None, run: None });
        self.count += 1;
        self.commit(you(&format!("message {}", self.count)));
    }

    fn think(&mut self, word: &str) {
        if !self.text.is_empty() || !self.calls.is_empty() || !self.running.is_empty() {
            return;
        }
        if self.thought.is_empty() {
            self.publish(Event::ThinkingStart);
        }
        self.thought.push_str(word);
        self.publish(Event::ThinkingDelta { text: word.into() });
    }

    fn write(&mut self, word: &str) {
        if !self.calls.is_empty() || !self.running.is_empty() {
            return;
        }
        self.text.push_str(word);
        self.publish(delta(word));
    }

    fn call(&mut self) {
        if self.running.is_empty() {
            self.count += 1;
            let id = format!("call{}", self.count);
            self.calls.push(id.clone());
            self.publish(Event::ToolCallStart { id, name: "Bash".into() });
        }
    }

    fn perform(&mut self, step: Step) {
        match step {
            Step::Think(word) => self.think(&word),
            Step::Write(word) => self.write(&word),
            Step::Call => self.call(),
            Step::Reply => self.reply(),
            Step::End => self.end(),
            Step::Compact => {
                let new_segment_id = yoi::protocol::SegmentId::new();
                self.publish(Event::CompactDone { new_segment_id });
            }
            Step::Full => self.full = true,
            Step::Read(events) => (0..events).for_each(|_| self.read()),
            Step::Request => self.request(),
            Step::Answer => self.answer(),
            Step::Refuse => {
                if self.request.take().is_some() {
                    self.bench.transcript.page_failed("too late".into());
                }
            }
            Step::Arrive => self.arrive(),
            Step::Scroll(rows) => {
                self.bench.layout();
                self.bench.transcript.scroll(Scroll::Lines(rows));
            }
        }
    }

    /// The screen reads the next event.
    fn read(&mut self) {
        if self.queue.is_empty() && std::mem::take(&mut self.full) {
            self.queue.push_back((None, Event::Lagged));
        }
        if let Some((seq, event)) = self.queue.pop_front() {
            self.bench.transcript.apply(seq, &event);
        }
    }

    fn request(&mut self) {
        self.bench.layout();
        if let Some(wanted) = self.bench.transcript.wants() {
            let Wanted::Page(before) = wanted else { panic!("{wanted:?}: all texts are short") };
            self.bench.transcript.asked();
            self.request = Some(before);
        }
    }

    fn answer(&mut self) {
        if let Some(before) = self.request.take() {
            let (entries, before) = self.bench.page(before);
            let (in_flight, seq) = (self.in_flight(), self.bench.seq);
            self.reply = Some(Event::Page { entries, before, in_flight, seq });
        }
    }

    fn arrive(&mut self) {
        if let Some(Event::Page { entries, before, in_flight, seq }) = self.reply.take() {
            self.bench.transcript.page(entries, before, in_flight, seq);
        }
    }

    /// All sent events arrive, and all pages that the screen wants.
    fn catch_up(&mut self) {
        loop {
            while !self.queue.is_empty() || self.full {
                self.read();
            }
            self.request();
            self.answer();
            if self.reply.is_none() {
                return;
            }
            self.arrive();
        }
    }

    /// Each block from the first to the last, as the screen shows it after the view has passed all of them.
    fn blocks(&mut self) -> Vec<(Option<EntryId>, String)> {
        self.bench.transcript.scroll(Scroll::Top);
        self.catch_up();
        while !self.bench.transcript.is_at_tail() {
            self.bench.transcript.scroll(Scroll::Page(1));
            self.catch_up();
        }
        let blocks = self.bench.transcript.pages.newest_first();
        let shown = blocks.filter(|(_, block)| !block.gone);
        shown.map(|(_, block)| (block.id, block.plain())).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_screen_that_missed_events_shows_the_log_in_its_order(
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut watched = Watched::new();
        steps.into_iter().for_each(|step| watched.perform(step));
        // A page that was refused is requested again without a key.
        watched.answer();
        watched.arrive();
        watched.end();
        watched.think("hm ");
        watched.write("and on ");
        watched.catch_up();
        prop_assert!(watched.bench.transcript.load.is_current());
        let shown = watched.blocks();
        watched.bench.transcript = Transcript::in_zone(jiff::tz::TimeZone::UTC);
        watched.catch_up();
        prop_assert_eq!(shown, watched.blocks());
    }
}

#[test]
fn an_answer_whose_end_was_missed_stands_above_the_next_question() {
    let mut watched = Watched::new();
    watched.catch_up();
    watched.write("a long ");
    watched.catch_up();
    watched.full = true;
    watched.write("answer ");
    watched.end();
    watched.read();
    watched.write("the next ");
    watched.reply();
    watched.read();
    let screen = watched.bench.screen();
    assert!(!screen.contains("the next"), "it does not follow what is loaded: {screen}");
    watched.catch_up();
    let rows = watched.bench.rows();
    let row = |text: &str| rows.iter().position(|row| row.contains(text)).expect("a row");
    assert!(row("a long answer") < row("message 1") && row("message 1") < row("the next"));
}
