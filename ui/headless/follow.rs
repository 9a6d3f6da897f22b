//! Shows one Pod: its events while the output keeps up and none is missing, otherwise its log until the
//! end.

use crate::headless::answer::OpenBlock;
use crate::headless::exit::Failure;
use crate::headless::output::{Full, Output, Piece};
use crate::headless::own_runs::OwnRuns;
use crate::headless::print::{Form, Printer, encode, message, message_text};
use crate::wording;
use yoi::client::Client;
use yoi::client::follow::Follower;
use yoi::client::pages::{PagesBehind, Place};
use yoi::client::whole_entry::WholeEntry;
use yoi::protocol::event::Line;
use yoi::protocol::{Begun, Entry, EntryId, Event, Fact, Outgoing, PodName, Unescape};
use yoi::text::SafeText;

/// How many events may come between the begin of a run and the reply that says whose run it is.
const HELD: usize = 256;

/// The position up to which a Pod was shown.
#[derive(Default)]
pub struct Follow {
    follower: Follower,
    place: Place,
    block: OpenBlock,
    /// Whether the beginning of the text that streams now was not seen.
    cut_block: bool,
    /// Whether another Pod is in view: then only whole answers are shown.
    beside: bool,
    /// Set where the runs of other programs' messages are not shown.
    own: Option<OwnRuns>,
    /// Events of which it is not known yet whose run they belong to.
    held: Vec<Outgoing>,
}

impl Follow {
    /// Continues behind a place in the log that covers the events up to `seq`.
    pub fn behind(place: Place, seq: u64, streaming: bool) -> Self {
        Self { follower: Follower::after(seq), place, cut_block: streaming, ..Self::default() }
    }

    /// A Pod that was just created.
    pub fn from_start() -> Self {
        Self { place: Place::start(), ..Self::default() }
    }

    /// A Pod of which only later events are shown.
    pub fn from_here() -> Self {
        Self::default()
    }

    /// The same, but it shows only the runs of this program's own message, except as JSON.
    pub fn only_own_runs(self, runs: OwnRuns) -> Self {
        Self { own: Some(runs), ..self }
    }

    /// The host accepted this program's message. The events that came meanwhile are shown now.
    pub fn accepted(&mut self, message: Begun, printer: &mut Printer) {
        if let Some(own) = &mut self.own {
            own.accepted(message);
        }
        for outgoing in std::mem::take(&mut self.held) {
            self.show_in_turn(&outgoing, printer);
        }
    }

    /// Whether the last run belongs to another program's message; `None` where all runs are shown.
    pub fn is_others(&self) -> Option<bool> {
        self.own.as_ref().map(OwnRuns::is_others)
    }

    /// Whether the log has to be read now, before events can be shown. Where only runs of this program are shown, the
    /// log is read after the host has accepted the message: before that, the run of the message would count as
    /// another program's, and its answer would not be printed. Where only later events of a Pod are shown, its log is
    /// read from the first entry that came.
    pub fn needs_log(&self, form: Form) -> bool {
        let waits = form != Form::Json && self.own.as_ref().is_some_and(|own| !own.has_message());
        self.follower.needs_page() && !waits && self.place.is_known()
    }

    /// Notes whether another Pod is in view. A text that was shown in part by then is shown again as a whole.
    pub fn stands_beside(&mut self, beside: bool, printer: &mut Printer) {
        if beside && !self.beside {
            printer.end_line(&self.block);
            (self.block, self.cut_block) = (OpenBlock::default(), true);
        }
        self.beside = beside;
    }

    /// Notes that events were missed.
    pub fn missed(&mut self) {
        self.follower.note_loss();
    }

    /// Shows an event of the Pod if it is new and no event before it is missing.
    pub fn event(&mut self, outgoing: &Outgoing, printer: &mut Printer) {
        let is_next = self.follower.accept(outgoing.seq, &outgoing.event);
        if let Event::Entry { entry, .. } = &outgoing.event {
            entry.id.into_iter().for_each(|id| self.place.begin_at(id));
        }
        let is_undecided = self.own.as_ref().is_some_and(OwnRuns::is_undecided);
        if !is_next {
            return;
        }
        if is_undecided && printer.form() != Form::Json {
            self.held.push(outgoing.clone());
            if self.held.len() == HELD {
                // More than these are read from the log.
                self.follower.note_loss();
            }
        } else {
            self.show_in_turn(outgoing, printer);
        }
    }

    fn show_in_turn(&mut self, outgoing: &Outgoing, printer: &mut Printer) {
        if !self.follower.needs_page() && self.show(outgoing, printer).is_err() {
            self.follower.note_loss();
        }
    }

    fn show(&mut self, outgoing: &Outgoing, printer: &mut Printer) -> Result<(), Full> {
        if let (Event::Entry { entry, .. }, Some(own)) = (&outgoing.event, &mut self.own) {
            own.note(entry);
        }
        let is_others = self.is_others() == Some(true) && printer.form() != Form::Json;
        match &outgoing.event {
            Event::Entry { entry, .. } if is_others => {
                entry.id.into_iter().for_each(|id| self.place.read(id));
            }
            _ if is_others => {}
            Event::Entry { cut_bytes: Some(_), .. } => return Err(Full),
            Event::Entry { entry, .. } => {
                if printer.form() == Form::Json {
                    printer.try_line(outgoing)?;
                } else if let Some(text) = message(entry) {
                    if let Some(pod) = outgoing.pod.as_ref().filter(|_| self.beside) {
                        printer.try_note(&format!("{pod} answers:"))?;
                    }
                    printer.try_block(&mut self.block, &text)?;
                    self.cut_block = false;
                } else if entry.fact.is_empty_answer() {
                    printer.try_note(wording::EMPTY_ANSWER)?;
                }
                entry.id.into_iter().for_each(|id| self.place.read(id));
            }
            Event::SegmentRotated { entry } if printer.form() == Form::Json => {
                let event = Event::SegmentRotated { entry: Box::new(without_texts(entry)) };
                printer.try_line(&Outgoing { event, ..outgoing.clone() })?;
            }
            _ if printer.form() == Form::Json => printer.try_line(outgoing)?,
            Event::TextDelta { .. } if self.beside => self.cut_block = true,
            Event::TextDelta { text } if !self.cut_block => {
                printer.try_text(&mut self.block, text)?;
            }
            Event::RunEnd { .. } => {
                printer.end_line(&self.block);
                (self.block, self.cut_block) = (OpenBlock::default(), false);
                printer.tell(&outgoing.event);
            }
            _ if self.beside => {}
            event => printer.tell(event),
        }
        Ok(())
    }

    /// The task that shows the rest of the log.
    pub fn catch_up(&mut self, client: Client, pod: PodName, printer: &Printer) -> CatchUp {
        self.follower.page_requested();
        let (place, block) = (self.place.clone(), std::mem::take(&mut self.block));
        let (form, output) = (printer.form(), printer.output().clone());
        CatchUp { client, pod, place, block, own: self.own.clone(), form, output }
    }

    /// Notes that the log was shown up to an event; events are shown again unless more were missed since.
    pub fn caught_up(&mut self, caught: CaughtUp) {
        self.place = caught.place;
        self.block = caught.block;
        if let (Some(own), Some(found)) = (&mut self.own, caught.own) {
            own.continued(found);
        }
        self.cut_block = caught.streaming;
        self.follower.page_arrived(caught.seq);
    }
}

/// The beginning of a segment without the texts that its `entry` event has, too.
fn without_texts(entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    if let Fact::SegmentStart { system_prompt, history, .. } = &mut entry.fact {
        *system_prompt = None;
        history.clear();
    }
    entry
}

/// Shows the log from a place on, as fast as the reader of the output takes it.
pub struct CatchUp {
    client: Client,
    pod: PodName,
    place: Place,
    block: OpenBlock,
    own: Option<OwnRuns>,
    form: Form,
    output: Output,
}

/// How far the log was shown.
pub struct CaughtUp {
    place: Place,
    block: OpenBlock,
    own: Option<OwnRuns>,
    seq: u64,
    streaming: bool,
}

impl CatchUp {
    /// Shows everything that is in the log now.
    pub async fn run(mut self) -> Result<CaughtUp, Failure> {
        let (client, pod) = (self.client.clone(), self.pod.clone());
        let mut pages = PagesBehind::find(client, pod, &self.place).await?;
        while let Some(lines) = pages.next().await? {
            for line in lines {
                self.line(&line).await?;
                line.id().into_iter().for_each(|id| self.place.read(id));
            }
        }
        let (seq, streaming) = (pages.seq, pages.streaming);
        Ok(CaughtUp { place: self.place, block: self.block, own: self.own, seq, streaming })
    }

    async fn line(&mut self, line: &Line) -> Result<(), Failure> {
        if let (Some(entry), Some(own)) = (line.entry(), &mut self.own) {
            own.note(entry);
            if own.is_others() && self.form != Form::Json {
                return Ok(());
            }
        }
        match (line, self.form) {
            (Line::Damaged { damaged, byte }, _) => {
                let note = format!("a damaged line at byte {byte}: {damaged}");
                self.output.note(SafeText::spelled(note));
                Ok(())
            }
            (Line::Whole(entry), Form::Json) => self.json(entry).await,
            (Line::Cut { entry, .. }, Form::Json) => match entry.id {
                Some(id) => self.json_in_pieces(id).await,
                None => self.json(entry).await,
            },
            (Line::Whole(entry), _) => match message(entry) {
                Some(text) => self.block(&text).await,
                None if entry.fact.is_empty_answer() => {
                    self.output.note(crate::console::sentence(wording::EMPTY_ANSWER));
                    Ok(())
                }
                None => Ok(()),
            },
            (Line::Cut { entry, .. }, _) => match (message(entry), entry.id) {
                (Some(_), Some(id)) => self.block_in_pieces(id).await,
                _ => Ok(()),
            },
        }
    }

    async fn json(&self, entry: &Entry) -> Result<(), Failure> {
        let entry = Box::new(entry.clone());
        let event = Event::Entry { entry, cut_bytes: None };
        let outgoing = Outgoing { re: None, pod: Some(self.pod.clone()), seq: None, event };
        let _exclusive = self.output.exclusive().await;
        self.write(Piece::Safe(encode(&outgoing))).await
    }

    /// Writes the same line as for an entry that came whole, piece by piece from its line in the log.
    async fn json_in_pieces(&self, id: EntryId) -> Result<(), Failure> {
        let whole = WholeEntry::open(self.client.clone(), self.pod.clone(), id).await?;
        let _exclusive = self.output.exclusive().await;
        let safe = |text: String| Piece::Safe(SafeText::json(text));
        let head = format!(r#"{{"pod":"{}","event":"entry","data":{{"entry":"#, self.pod);
        self.write(safe(head)).await?;
        let mut reading = whole.line();
        while let Some(piece) = whole.next(&mut reading).await? {
            self.write(safe(piece)).await?;
        }
        self.write(safe("}}\n".to_owned())).await
    }

    async fn block(&mut self, text: &str) -> Result<(), Failure> {
        let _exclusive = self.output.exclusive().await;
        for piece in std::mem::take(&mut self.block).finish(self.form, text) {
            write(&self.output, piece).await?;
        }
        Ok(())
    }

    async fn block_in_pieces(&mut self, id: EntryId) -> Result<(), Failure> {
        let whole = WholeEntry::open(self.client.clone(), self.pod.clone(), id).await?;
        let block = std::mem::take(&mut self.block);
        let inside_a_line = block.inside_a_line();
        let _exclusive = self.output.exclusive().await;
        if self.complete(&whole, block).await? {
            return Ok(());
        }
        if inside_a_line {
            write(&self.output, OpenBlock::default().stream(self.form, "\n")).await?;
        }
        self.complete(&whole, OpenBlock::default()).await.map(drop)
    }

    /// Writes the rest of a text; `false` when it does not begin with what was written.
    async fn complete(&self, whole: &WholeEntry, block: OpenBlock) -> Result<bool, Failure> {
        let mut completion = block.complete();
        for span in whole.texts().iter().filter(|span| message_text(&span.field)) {
            let (mut reading, mut decoder) = (whole.span(span), Unescape::default());
            while let Some(text) = whole.next_text(&mut reading, &mut decoder).await? {
                let Ok(piece) = completion.push(self.form, &text) else { return Ok(false) };
                if let Some(piece) = piece {
                    self.write(piece).await?;
                }
            }
        }
        let Ok(end) = completion.end(self.form) else { return Ok(false) };
        if let Some(end) = end {
            self.write(end).await?;
        }
        Ok(true)
    }

    async fn write(&self, piece: Piece) -> Result<(), Failure> {
        write(&self.output, piece).await
    }
}

async fn write(output: &Output, piece: Piece) -> Result<(), Failure> {
    output.write(piece).await.map_err(|_closed| output.failure())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_of_which_later_events_are_shown_is_read_from_the_first_entry_that_came() {
        let input = || Entry::new(Fact::UserInput { segments: vec![], taken: None, from: None });
        let (before, first) = (input(), input());
        let output = Output::over(Box::new(std::io::sink()), Box::new(std::io::sink()), false);
        let mut printer = Printer::over(Form::Json, output);
        let mut follow = Follow::from_here();
        follow.missed();
        assert!(!follow.needs_log(Form::Json), "the place in its log is not known");
        let event = Event::Entry { entry: Box::new(first.clone()), cut_bytes: Some(70_000) };
        follow.event(&Outgoing { re: None, pod: None, seq: Some(7), event }, &mut printer);
        assert!(follow.needs_log(Form::Json));
        let lines = [before, first].map(|entry| Line::Whole(Box::new(entry)));
        assert_eq!(follow.place.within(&lines), Some(1));
        follow.place.read(lines[1].id().expect("an id"));
        assert_eq!(follow.place.within(&lines), Some(2));
        assert_eq!(
            follow.place.within(&lines[..1]),
            None,
            "no entry is shown twice after a rewind"
        );
    }

    /// Where a busy machine delays the reply, a whole run can be over before it.
    #[test]
    fn the_log_is_read_for_a_run_once_its_message_is_known() {
        let output = Output::over(Box::new(std::io::sink()), Box::new(std::io::sink()), false);
        let mut printer = Printer::over(Form::Plain, output);
        let mut follow = Follow::from_start().only_own_runs(OwnRuns::behind(None));
        let input = Entry::new(Fact::UserInput { segments: vec![], taken: None, from: None });
        let message = Begun::Entry(input.id.expect("an id"));
        let entry = Event::Entry { entry: Box::new(input), cut_bytes: None };
        let deltas = (0..2 * HELD).map(|_| Event::TextDelta { text: "x".into() });
        for (seq, event) in std::iter::once(entry).chain(deltas).enumerate() {
            let seq = Some(seq as u64 + 1);
            follow.event(&Outgoing { re: None, pod: None, seq, event }, &mut printer);
        }
        assert!(follow.needs_log(Form::Json));
        assert!(!follow.needs_log(Form::Plain), "the run would pass for another program's");
        follow.accepted(message, &mut printer);
        assert!(follow.needs_log(Form::Plain));
        assert_eq!(follow.is_others(), Some(false));
    }
}
