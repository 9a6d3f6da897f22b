//! The look of a block: whether it is folded, its one-line head, and its rows.

use crate::rows::{Break, Paragraph, Piece, Row, TextStyle, row_width, width};
use crate::screen::pane::inbox::verdict_words;
use crate::screen::pane::transcript::Detail;
use crate::screen::pane::transcript::block::{Block, Cache, Fold, Kind, Retry, Thought};
use crate::screen::pane::transcript::parts::Begin;
use crate::screen::pane::transcript::rest::{Form, PartText, Reading};
use crate::screen::pane::transcript::tool::Progress;
use crate::screen::pane::transcript::{approval, clean, markdown, outcome};
use crate::theme::Role;
use ratatui::style::Modifier;
use yoi::protocol::{Segment, SystemItem, Verdict};

/// Items that the runtime put into the history.
pub mod system;
/// Tool calls and their results.
mod tool;

/// Pasted text of more lines than this is folded.
const PASTE_LINES: u32 = 8;
/// The width of the names of tools; a longer name makes its own row wider only, so that no other row moves.
pub const NAME: usize = 5;
/// The width of the words that say when a model is asked again.
const NEXT: usize = 30;
/// The width of a time of day and the space before it.
const TIME: usize = 7;

/// Whose words a block holds, if they are neither the person's nor the Pod's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    /// What it is to the Pod: a child, a peer.
    pub kind: &'static str,
    pub name: String,
    /// What stands behind its name.
    pub remark: &'static str,
}

impl Speaker {
    /// The kind of a Pod above this one that is not its parent.
    pub const ABOVE: &'static str = "above";

    pub fn new(kind: &'static str, name: &str) -> Self {
        Self { kind, name: clean::one_line(name).into_owned(), remark: "" }
    }
}

/// Which parts of a block are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its one-line head.
    pub head: bool,
    pub open: bool,
}

impl Block {
    /// Whose words it holds; `None` if these are the person's or the Pod's, or nobody's.
    pub fn speaker(&self) -> Option<Speaker> {
        match &self.kind {
            Kind::User { from, .. } => {
                from.as_ref().map(|from| Speaker::new(Speaker::ABOVE, from.as_str()))
            }
            Kind::System(item) => system::speaker(item),
            _ => None,
        }
    }

    /// Whether it is a message of the person.
    pub fn is_of_person(&self) -> bool {
        matches!(self.kind, Kind::User { from: None, .. })
    }

    /// Whether an empty row stands above and below it: it is read, not scanned.
    pub fn stands_apart(&self) -> bool {
        matches!(self.kind, Kind::User { .. } | Kind::Said { .. } | Kind::Border(_))
            || self.speaker().is_some()
    }

    /// Whether it takes rows at this level of detail.
    pub fn shown(&self, detail: Detail) -> bool {
        let hides = match &self.kind {
            Kind::Aside(_) => detail != Detail::Full,
            // What a model is told of its scope and instructions changes nothing for a person.
            Kind::System(item) if matches!(**item, SystemItem::Knowledge { .. }) => {
                detail != Detail::Full
            }
            Kind::Approval(request) => request.is_in_call(),
            _ => false,
        };
        !self.gone && !hides
    }

    pub fn shape(&self, detail: Detail, unfolded: bool) -> Shape {
        let (head, folds) = match &self.kind {
            Kind::Thought(_) | Kind::Tool(_) | Kind::Result { .. } | Kind::Summary(_) => {
                (true, true)
            }
            Kind::Approval(approval) => (approval.verdict.is_some(), approval.verdict.is_some()),
            Kind::System(item) => {
                let headed = system::speaker(item).is_none();
                (headed, headed || self.begins_folded())
            }
            _ => (false, false),
        };
        if let Kind::Part(_) = self.kind {
            return Shape { head: false, open: true };
        }
        let open = match (self.fold, detail) {
            (Fold::Open, _) => true,
            (Fold::Shut, _) | (Fold::Auto | Fold::Apart, Detail::Overview) => false,
            (Fold::Auto | Fold::Apart, Detail::Full) => true,
            (Fold::Auto | Fold::Apart, Detail::Normal) => unfolded || !folds,
        };
        let folded = !open && !self.begins_folded();
        Shape { head: head || folded || detail == Detail::Overview, open }
    }

    /// Whether its first rows are shown while it is folded.
    fn begins_folded(&self) -> bool {
        matches!(&self.kind, Kind::System(item) if system::report(item).is_some())
    }

    /// Whether the parts of its text are shown; those of a folded paste are not.
    pub fn shows_rest(&self, detail: Detail, unfolded: bool) -> bool {
        !self.folds_rest(detail) && self.shape(detail, unfolded).open
    }

    /// Whether the rest of its text belongs to a paste that is folded.
    fn folds_rest(&self, detail: Detail) -> bool {
        let Kind::User { segments, .. } = &self.kind else { return false };
        !self.unfolds_pastes(detail) && segments.last().is_some_and(is_folded)
    }

    /// Whether a paste of the message is folded; `None` if none is ever folded at this level of detail.
    pub fn folds_paste(&self, detail: Detail) -> Option<bool> {
        let Kind::User { segments, .. } = &self.kind else { return None };
        let folds = detail != Detail::Full && segments.iter().any(is_folded);
        folds.then(|| !self.unfolds_pastes(detail))
    }

    fn unfolds_pastes(&self, detail: Detail) -> bool {
        self.fold == Fold::Open || detail == Detail::Full
    }

    /// Updates its rows; the head is not among them.
    pub fn draw(&mut self, cells: u16, generation: u32, shape: Shape, detail: Detail) {
        let cells_at_most = usize::from(cells);
        let growing = match self.cache.take() {
            Some(cache) if cache.cells == cells && cache.generation == generation => {
                if !cache.stale {
                    self.cache = Some(cache);
                    return;
                }
                cache
            }
            _ => {
                let rows = self.first_rows();
                let finished = self.begun(rows.len());
                Box::new(Cache { cells, generation, finished, rows, ..Cache::default() })
            }
        };
        let mut cache = Box::new(Cache { stale: false, ..*growing });
        match &self.kind {
            Kind::Said { text, .. } if shape.open => {
                markdown::grow(text, cells_at_most, &mut cache.finished, &mut cache.rows);
            }
            Kind::Part(part) if part.form == Form::Markdown => {
                markdown::grow(&part.text, cells_at_most, &mut cache.finished, &mut cache.rows);
            }
            _ => {
                cache.rows.clear();
                if shape.open {
                    self.body(cells_at_most, detail, &mut cache.rows);
                } else if self.begins_folded() && detail != Detail::Overview {
                    self.body(cells_at_most, detail, &mut cache.rows);
                    system::shorten(&mut cache.rows);
                } else if let Kind::Tool(tool) = &self.kind
                    && detail != Detail::Overview
                {
                    tool::folded(tool, cells_at_most, &mut cache.rows);
                }
            }
        }
        if shape.open {
            self.remarks(cells_at_most, detail, &mut cache.rows);
        }
        self.cache = Some(cache);
    }

    /// The state in which the drawing of its markdown begins.
    fn begun(&self, rows: usize) -> markdown::Finished {
        let fence = match &self.kind {
            Kind::Part(part) => part.begin.fence.clone(),
            _ => None,
        };
        markdown::Finished::begun(fence, rows)
    }

    /// The rows that its markdown begins with: a part follows an empty line of the part before it.
    fn first_rows(&self) -> Vec<Row> {
        match &self.kind {
            Kind::Part(part) if part.form == Form::Markdown => {
                let Begin { fence, blank, .. } = &part.begin;
                if *blank && fence.is_none() { vec![Row::new()] } else { Vec::new() }
            }
            _ => Vec::new(),
        }
    }

    /// The remarks below a block: the rest of it is being loaded, could not be loaded, or is left out.
    fn remarks(&self, cells: usize, detail: Detail, out: &mut Vec<Row>) {
        let cut_off = match &self.kind {
            Kind::Said { partial, .. } => *partial && self.rest.slots.is_empty(),
            Kind::Part(part) => part.partial,
            _ => false,
        };
        if cut_off {
            text("(interrupted here)", Role::Warn, cells, out);
        }
        if self.long().is_some() && !self.folds_rest(detail) {
            match &self.rest.state {
                Reading::Wanted | Reading::UnderWay if self.rest.slots.is_empty() => {
                    text("(the rest is being loaded …)", Role::Dim, cells, out);
                }
                Reading::Failed(why) => {
                    let note = format!("(the rest is not loaded: {why}; unfold it again to retry)");
                    text(&note, Role::Error, cells, out);
                }
                Reading::Wanted | Reading::UnderWay | Reading::Done => {}
            }
        }
        if let Some(size) = self.cut.filter(|_| self.long.is_none()) {
            let note = format!("(shortened: the whole entry has {} KiB)", size.div_ceil(1024));
            text(&note, Role::Dim, cells, out);
        }
    }

    fn body(&self, cells: usize, detail: Detail, out: &mut Vec<Row>) {
        match &self.kind {
            Kind::User { segments, behind, from } => {
                let behind = if self.folds_rest(detail) { &behind[..] } else { &[] };
                let all = segments.iter().chain(behind);
                let bar = if from.is_some() { &[words_of_another()][..] } else { &[] };
                let cells = if from.is_some() { cells } else { beside_time(cells) };
                user(all, self.unfolds_pastes(detail), bar, cells, out)
            }
            Kind::Said { text, .. } | Kind::Summary(text) => {
                out.extend(markdown::render(text, cells))
            }
            Kind::Thought(thought) => {
                let style = TextStyle { role: Role::Dim, emphasis: Modifier::ITALIC };
                indented(thought.text.trim(), style, Break::Words, cells, out);
            }
            Kind::Tool(tool) => tool::unfolded(tool, cells, out),
            Kind::Part(part) => part_rows(part, cells, out),
            Kind::Result { outcome, .. } => tool::result(outcome, cells, out),
            Kind::System(item) => system::rows(item, cells, out),
            Kind::Note { role, text: note } => text(note, *role, cells, out),
            Kind::Approval(approval) => {
                let (role, sentence) = approval.sentence();
                text(&sentence, role, cells, out);
            }
            Kind::Decision { verdict, .. } => {
                let sentence = format!("answered: {}", verdict_words(verdict));
                text(&sentence, approval::role(verdict), cells, out);
            }
            Kind::Aside(usage) => text(usage, Role::Dim, cells, out),
            Kind::Retry { text, retry } => retried(text, retry, cells, out),
            // Their only row has a time or a width of its own.
            Kind::CutOff { .. } | Kind::Border(_) => out.push(Row::new()),
        }
    }

    /// The one-line head: the row that is cut to the width, and the state on its right.
    pub fn head(&self, shape: Shape, now: u64) -> (Row, Option<Piece>) {
        let row = match &self.kind {
            Kind::Tool(tool) => {
                let (role, status) = tool.status(now);
                let row = named(&tool.short_name(), &tool.brief, Role::Text);
                return (row, Some(Piece::new(status, role)));
            }
            Kind::Thought(thought) => {
                let words = if shape.open { String::new() } else { preview(&thought.text) };
                named(&thought_title(thought, self.live, now), &words, Role::Dim)
            }
            Kind::Result { outcome, .. } => {
                let role = if outcome.is_error { Role::Error } else { Role::Text };
                named("result", &clean::one_line(&outcome.summary), role)
            }
            Kind::System(item) if system::speaker(item).is_some() => {
                one(preview(system::said(item)), Role::Text)
            }
            Kind::System(item) => {
                let (title, about) = system::title(item);
                let size = system::size(item).map(|size| Piece::new(size, Role::Dim));
                return (named(title, &about, Role::Dim), size);
            }
            Kind::Summary(text) => named("compacted", &preview(text), Role::Dim),
            Kind::Said { text, .. } => one(preview(text), Role::Text),
            Kind::User { .. } => one(preview(&self.plain()), Role::Text),
            Kind::Note { role, text } => one(clean::one_line(text), *role),
            Kind::Approval(approval) => match &approval.verdict {
                Some(verdict) => {
                    let row = named("waited", &approval.line, Role::Dim);
                    return (row, Some(verdict_piece(verdict)));
                }
                None => one(clean::one_line(&approval.sentence().1), Role::Needs),
            },
            Kind::Decision { verdict, .. } => vec![verdict_piece(verdict)],
            Kind::Retry { text, .. } => named("model", &clean::one_line(text), Role::Warn),
            Kind::Aside(text) => one(text.as_str(), Role::Dim),
            Kind::CutOff { .. } | Kind::Border(_) | Kind::Part(_) => Row::new(),
        };
        (row, None)
    }

    /// The sign before a block that unfolds or folds.
    pub fn fold_sign(&self, shape: Shape, detail: Detail) -> Option<&'static str> {
        let is_open = match self.folds_paste(detail) {
            Some(is_folded) => !is_folded,
            None if shape.head || self.begins_folded() => shape.open,
            None => return None,
        };
        Some(if is_open { "▾" } else { "▸" })
    }

    /// When its head changes without an event.
    pub fn changes_at(&self, now: u64) -> Option<u64> {
        use crate::wording::duration::elapsed_changes;
        match &self.kind {
            Kind::Tool(tool)
                if tool.outcome.is_none()
                    && matches!(tool.progress, Progress::Running | Progress::NeedsPerson) =>
            {
                Some(elapsed_changes(tool.since.unwrap_or(now), now))
            }
            Kind::Thought(thought) if self.live => {
                Some(elapsed_changes(thought.since.unwrap_or(now), now))
            }
            Kind::Retry { retry, .. } => {
                let left = Some(retry.left(now)).filter(|left| *left > 0)?;
                Some(now + (left - 1) % 1000 + 1)
            }
            _ => None,
        }
    }
}

/// The row of a name, as wide as the names of most tools, and what it is about.
pub fn named(name: &str, about: &str, role: Role) -> Row {
    let name = format!("{name}{}  ", " ".repeat(NAME.saturating_sub(width(name))));
    vec![Piece::new(name, Role::Dim), Piece::new(about, role)]
}

/// A decision in a row.
pub fn verdict_piece(verdict: &Verdict) -> Piece {
    Piece::new(clean::one_line(&verdict_words(verdict)), approval::role(verdict))
}

fn one(text: impl Into<String>, role: Role) -> Row {
    vec![Piece::new(text, role)]
}

pub fn bold(role: Role) -> TextStyle {
    TextStyle { role, emphasis: Modifier::BOLD }
}

fn italic() -> TextStyle {
    TextStyle { role: Role::Dim, emphasis: Modifier::ITALIC }
}

fn preview(text: &str) -> String {
    let line = clean::one_line(text);
    line.trim_start_matches(['#', '*', '>', ' ', '`']).chars().take(400).collect()
}

fn thought_title(thought: &Thought, live: bool, now: u64) -> String {
    use crate::wording::duration::{elapsed, took};
    match (live, thought.since, thought.took_ms) {
        (true, since, _) => {
            format!("thinking {}", elapsed(now.saturating_sub(since.unwrap_or(now))))
        }
        (false, _, Some(millis @ outcome::LONG..)) => format!("thought {}", took(millis)),
        (false, _, _) => "thought".to_owned(),
    }
}

/// The rows of an error of a model. The last one has room for the time of the next attempt.
fn retried(why: &str, retry: &Retry, cells: usize, out: &mut Vec<Row>) {
    let indent = [Piece::new(" ".repeat(NAME + 2), Role::Text)];
    let first = named("model", "", Role::Warn).swap_remove(0);
    let body = [Piece::new(why, Role::Warn)];
    Paragraph { first: &[first], rest: &indent, body: &body, at: Break::Words }.wrap(cells, out);
    let room = out.last().is_some_and(|row| row_width(row) + NEXT <= cells);
    out.extend((retry.wait_ms > 0 && !room).then(|| indent.to_vec()));
}

fn text(words: &str, role: Role, cells: usize, out: &mut Vec<Row>) {
    let body = [Piece::new(clean::words(words), role)];
    Paragraph { first: &[], rest: &[], body: &body, at: Break::Words }.wrap(cells, out);
}

/// Text under a head.
fn indented(words: &str, style: impl Into<TextStyle>, at: Break, cells: usize, out: &mut Vec<Row>) {
    let prefix = [Piece::new("  ", Role::Text)];
    let body = [Piece::new(words, style)];
    Paragraph { first: &prefix, rest: &prefix, body: &body, at }.wrap(cells, out);
}

/// A part of a long text, as the block that it belongs to draws its beginning.
fn part_rows(part: &PartText, cells: usize, out: &mut Vec<Row>) {
    let words = part.text.strip_suffix('\n').unwrap_or(&part.text);
    match part.form {
        Form::Markdown => out.extend(markdown::render(words, cells)),
        Form::Thought => indented(words, italic(), Break::Words, cells, out),
        Form::Input => text(words, Role::Text, cells, out),
        Form::Output => indented(words, Role::Text, Break::Anywhere, cells, out),
    }
}

/// Whether pasted text is shown as one word until it is unfolded.
fn is_folded(segment: &Segment) -> bool {
    matches!(segment, Segment::Paste { lines, .. } if *lines > PASTE_LINES)
}

/// What leads each row of the words of another Pod, an agent or a child.
fn words_of_another() -> Piece {
    Piece::new("│ ", Role::Dim)
}

/// The width of a message of the person, whose first row ends with the time.
fn beside_time(cells: usize) -> usize {
    if cells > 3 * TIME { cells - TIME } else { cells }
}

fn user<'a>(
    segments: impl Iterator<Item = &'a Segment>,
    all: bool,
    bar: &[Piece],
    cells: usize,
    out: &mut Vec<Row>,
) {
    let mut body: Vec<Piece> = Vec::new();
    for segment in segments {
        match segment {
            Segment::Paste { chars, lines, .. } if is_folded(segment) && !all => {
                let chip = format!("[pasted text: {lines} lines, {chars} characters]");
                body.push(Piece::new(chip, Role::Accent));
            }
            Segment::FileRef { .. }
            | Segment::KnowledgeRef { .. }
            | Segment::WorkflowInvoke { .. } => {
                body.push(Piece::new(clean::words(&segment.flat()), Role::Link));
            }
            Segment::Unknown(_) => body.push(Piece::new(segment.flat().into_owned(), Role::Dim)),
            Segment::Text { content } | Segment::Paste { content, .. } => {
                body.push(Piece::new(clean::words(content), Role::Text));
            }
        }
    }
    if let Some(last) = body.last_mut() {
        last.text.truncate(last.text.trim_end().len());
    }
    Paragraph { first: bar, rest: bar, body: &body, at: Break::Words }.wrap(cells, out);
}
