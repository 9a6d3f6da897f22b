//! The last row of the screen: how many Pods need a person, a notice or hints, and on the right the key of the help. And
//! a line of text that is typed in place of the draft.

use crate::rows::{columns, cut, width};
use crate::screen::keys::Action;
use crate::screen::notice::{Kind, Notice};
use crate::screen::pane::glyph::Glyphs;
use crate::screen::pane::input::Input;
use crate::theme::{Role, Theme};
use crate::verb::complete::{Completion, Sources, complete, is_text, mention, mentions};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

/// Rows of the list of completions.
pub const CANDIDATES: usize = 6;

/// The verb that lists all notices. It follows a notice that is cut or that hides others.
const REST: &str = " :notices";
/// The columns from which on there is room for it.
const ROOM_FOR_REST: usize = 40;

/// Between two answers.
const GAP: &str = "  ";

/// Below this many columns the help is named by its key alone.
const BRIEF: usize = 60;

/// What the line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Verb,
    Find,
    Filter,
    /// The reason of a denial.
    Deny,
    /// The rule that a decision writes.
    Rule,
    /// The answer to a question.
    Answer,
    /// A message to the Pod of a card.
    Message,
}

impl Purpose {
    /// Whether the line is a part of a decision on a request.
    pub fn decides(self) -> bool {
        matches!(self, Self::Deny | Self::Rule | Self::Answer)
    }

    /// Whether the line was opened on a card and is about its item.
    pub fn is_of_card(self) -> bool {
        self.decides() || self == Self::Message
    }

    /// What the line begins with.
    fn sign(self) -> &'static str {
        match self {
            Self::Verb => ":",
            Self::Find | Self::Filter => "/",
            Self::Deny => "deny, because › ",
            Self::Rule => "always allow › ",
            Self::Answer => "answer › ",
            Self::Message => "message › ",
        }
    }

    /// What Enter does.
    pub fn does(self) -> &'static str {
        match self {
            Self::Verb => "runs it",
            Self::Find => "finds",
            Self::Filter => "keeps the filter",
            Self::Deny => "denies",
            Self::Rule => "makes it",
            Self::Answer | Self::Message => "sends",
        }
    }
}

/// A line being typed into the action bar.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub purpose: Purpose,
    pub input: Input,
    /// The text that the line began with.
    begun: String,
    /// The completions of the word before the cursor.
    pub completion: Completion,
    /// The completion that Tab put in.
    pub chosen: Option<usize>,
    /// The position in the history while Up and Down go through it: 0 = the newest.
    walk: Option<usize>,
    /// Why the line was refused.
    pub wrong: Option<String>,
}

impl Prompt {
    /// A line that begins with `text`.
    pub fn new(purpose: Purpose, text: &str, sources: &Sources) -> Self {
        let mut prompt = Self {
            purpose,
            input: Input::new(text),
            begun: text.to_owned(),
            completion: Completion::default(),
            chosen: None,
            walk: None,
            wrong: None,
        };
        prompt.changed(sources);
        prompt
    }

    /// Whether the person has changed the text that the line began with.
    pub fn is_changed(&self) -> bool {
        self.input.text().trim() != self.begun.trim()
    }

    /// The text, if the person has written any of it.
    pub fn typed(&self) -> Option<&str> {
        let text = self.input.text().trim();
        (!text.is_empty() && self.is_changed()).then_some(text)
    }

    /// To be called after the text was edited.
    pub fn changed(&mut self, sources: &Sources) {
        self.chosen = None;
        self.walk = None;
        self.wrong = None;
        self.complete(sources);
    }

    /// Finds the completions anew, unless the person goes through them.
    pub fn complete(&mut self, sources: &Sources) {
        let before = self.input.before();
        match self.purpose {
            _ if self.chosen.is_some() => {}
            Purpose::Verb => self.completion = complete(before, sources),
            Purpose::Deny | Purpose::Answer | Purpose::Message => {
                self.completion = mentions(before, sources).unwrap_or_default();
            }
            Purpose::Find | Purpose::Filter | Purpose::Rule => {}
        }
    }

    /// The word behind `@` before the cursor, in a text that goes to a Pod.
    pub fn mention(&self) -> Option<&str> {
        let before = self.input.before();
        let (start, word) = mention(before)?;
        let is_text = match self.purpose {
            Purpose::Verb => is_text(before, start),
            Purpose::Deny | Purpose::Answer | Purpose::Message => true,
            Purpose::Find | Purpose::Filter | Purpose::Rule => false,
        };
        is_text.then_some(word)
    }

    /// Puts in the next completion, or the previous one.
    pub fn cycle(&mut self, action: Action) {
        let count = self.completion.candidates.len();
        if count == 0 {
            return;
        }
        let next = match (self.chosen, action) {
            (None, Action::CompleteBack) => count - 1,
            (None, _) => 0,
            (Some(at), Action::CompleteBack) => (at + count - 1) % count,
            (Some(at), _) => (at + 1) % count,
        };
        self.chosen = Some(next);
        let text = self.completion.candidates[next].text.clone();
        self.input.replace_from(self.completion.start, &text);
    }

    /// Goes through the lines that were run before, which are given newest first.
    pub fn history(&mut self, lines: &[String], action: Action, sources: &Sources) {
        let at = match (self.walk, action) {
            (None, Action::Up) => Some(0),
            (Some(at), Action::Up) => Some((at + 1).min(lines.len().saturating_sub(1))),
            (Some(at), _) => at.checked_sub(1),
            (None, _) => None,
        };
        self.input = Input::new(at.and_then(|at| lines.get(at)).map_or("", String::as_str));
        self.changed(sources);
        self.walk = at.filter(|at| *at < lines.len());
    }

    /// Whether this action walks through the history of verb lines rather than the completions. The walk begins with
    /// Up in an empty line.
    pub fn walks(&self, action: Action) -> bool {
        let begins = action == Action::Up && self.input.is_empty();
        self.purpose == Purpose::Verb && (self.walk.is_some() || begins)
    }
}

/// A key and what it does, as a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    pub key: String,
    pub does: String,
}

impl Hint {
    pub fn new(key: impl Into<String>, does: impl Into<String>) -> Self {
        Self { key: key.into(), does: does.into() }
    }
}

/// Between a notice and the hints.
const BESIDE: &str = "   ";

/// The action bar as a widget.
pub struct View<'a> {
    pub notice: Option<&'a Notice>,
    /// How many other notices are current.
    pub behind: usize,
    pub hints: &'a [Hint],
    /// How many need a person, and the key that goes to them: it keeps its place beside a notice.
    pub needs: Option<Hint>,
    /// The key of the help.
    pub help: String,
    pub theme: &'a Theme,
    pub glyphs: Glyphs,
}

impl View<'_> {
    /// Paints the row. The hints follow a notice, as far as there is room.
    pub fn render(&self, area: Rect, buf: &mut Buffer) {
        let room = usize::from(area.width);
        let mut spans = vec![Span::raw(" ")];
        if let Some(needs) = &self.needs {
            spans.push(Span::styled(self.glyphs.plain(&needs.does), self.theme.needs));
            spans.push(Span::styled(format!(" {}   ", needs.key), self.theme.dim));
        }
        let taken: usize = spans.iter().map(Span::width).sum();
        let help = if room < BRIEF { self.help.clone() } else { format!("{} help", self.help) };
        let help = if self.help.is_empty() { String::new() } else { help };
        let wide = |help: &str| if help.is_empty() { 0 } else { width(help) + 3 };
        let left = room.saturating_sub(taken);
        let is_long = self.notice.is_some_and(|notice| {
            width(self.mark(notice))
                + 1
                + width(&notice.text)
                + width(&self.rest(left))
                + wide(&help)
                > left
        });
        // A long notice leaves room for the key alone, and on a narrow screen for nothing else.
        let help = match is_long {
            true if room < BRIEF => String::new(),
            true => self.help.clone(),
            false => help,
        };
        let right = wide(&help);
        let (text, right) = match self.notice {
            Some(notice) if is_long => (self.notice(notice, left.saturating_sub(right)), right),
            Some(notice) => {
                let mut line = self.notice(notice, left);
                let room = left.saturating_sub(right + line.width() + BESIDE.len());
                let hints = self.hints(room);
                if hints.width() > 0 {
                    line.spans.push(Span::raw(BESIDE));
                    line.spans.extend(hints.spans);
                }
                (line, right)
            }
            None => (self.hints(left.saturating_sub(right)), right),
        };
        spans.extend(text.spans.into_iter().map(|span| span.patch_style(text.style)));
        buf.set_line(area.x, area.y, &Line::from(spans), area.width);
        if right > 0 && left >= right {
            let at = area.right() - u16::try_from(right - 2).unwrap_or(area.width);
            buf.set_stringn(at, area.y, help, room, self.theme.dim);
        }
    }

    fn mark(&self, notice: &Notice) -> &'static str {
        notice.kind.mark(self.glyphs == Glyphs::Ascii)
    }

    fn notice(&self, notice: &Notice, room: usize) -> Line<'static> {
        let role = match notice.kind {
            Kind::Done => Role::Text,
            Kind::Info => Role::Text,
            Kind::Warned => Role::Warn,
            Kind::Refused => Role::Error,
        };
        let text = self.glyphs.plain(&format!("{} {}", self.mark(notice), notice.text));
        let style = self.theme.style(role);
        let mut rest = self.rest(room);
        if width(&text) + width(&rest) <= room {
            let rest = Span::styled(rest, self.theme.dim);
            return Line::from(vec![Span::styled(text, style), rest]);
        }
        if rest.is_empty() && notice.kind >= Kind::Warned && room >= ROOM_FOR_REST {
            rest = REST.into();
        }
        let shown = cut(&text, room.saturating_sub(width(&rest)));
        Line::from(vec![Span::styled(shown, style), Span::styled(rest, self.theme.dim)])
    }

    /// How many other notices are current, and where there is room the verb that lists them.
    fn rest(&self, room: usize) -> String {
        match self.behind {
            0 => String::new(),
            more if room < ROOM_FOR_REST => format!(" +{more}"),
            more => self.glyphs.plain(&format!(" · +{more}{REST}")),
        }
    }

    fn hints(&self, room: usize) -> Line<'static> {
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut used = 0;
        for hint in self.hints {
            let between = if spans.is_empty() { "" } else { " · " };
            let between = self.glyphs.plain(between);
            let hint = self.key_and_help(hint);
            used += width(&between) + hint.iter().map(Span::width).sum::<usize>();
            if used > room {
                break;
            }
            spans.push(Span::styled(between, self.theme.dim));
            spans.extend(hint);
        }
        Line::from(spans)
    }

    fn key_and_help(&self, hint: &Hint) -> Vec<Span<'static>> {
        let blank = if hint.key.is_empty() { "" } else { " " };
        let does = self.glyphs.plain(&format!("{blank}{}", hint.does));
        vec![Span::styled(self.glyphs.plain(&hint.key), self.theme.dim), Span::raw(does)]
    }
}

/// Paints a line that is typed in place of the draft, and returns the position of the caret.
pub fn prompt(
    prompt: &Prompt,
    area: Rect,
    buf: &mut Buffer,
    theme: &Theme,
    glyphs: Glyphs,
) -> Option<Position> {
    let sign = prompt.purpose.sign();
    let wide = columns(sign);
    let room = area.width.checked_sub(wide + 2)?;
    let y = area.bottom().checked_sub(1)?;
    let (text, at) = match prompt.purpose {
        Purpose::Rule => prompt.input.window_spelled(room.into()),
        _ => prompt.input.window(room.into()),
    };
    buf.set_stringn(area.x + 1, y, glyphs.plain(sign), wide.into(), theme.accent);
    buf.set_stringn(area.x + 1 + wide, y, text, room.into(), Style::new());
    let column = u16::try_from(at).unwrap_or(0).saturating_add(1 + wide);
    Some(Position::new(area.x + column.min(area.width - 1), y))
}

/// Paints a line whose text is not shown: what it begins with, and what is said of the text. Returns the position of the caret.
pub fn unseen(
    sign: &str,
    shown: &str,
    area: Rect,
    buf: &mut Buffer,
    theme: &Theme,
    glyphs: Glyphs,
) -> Option<Position> {
    let y = area.bottom().checked_sub(1)?;
    let spans = [
        Span::styled(glyphs.plain(&format!(" {sign}")), theme.accent),
        Span::styled(shown.to_owned(), theme.dim),
    ];
    let line = Line::from(spans.to_vec());
    let caret = u16::try_from(line.width()).unwrap_or(0).min(area.width.saturating_sub(1));
    buf.set_line(area.x, y, &line, area.width);
    Some(Position::new(area.x + caret, y))
}

/// Paints the keys that answer a card into the line, in place of the draft, with this look of the keys.
pub fn answers(
    answers: &[Hint],
    keys: Style,
    area: Rect,
    buf: &mut Buffer,
    theme: &Theme,
    glyphs: Glyphs,
) {
    let Some(y) = area.bottom().checked_sub(1) else { return };
    buf.set_style(area, theme.selection);
    let key = keys.add_modifier(Modifier::BOLD);
    let mut spans = vec![Span::raw(" ")];
    for (i, hint) in answers.iter().enumerate() {
        spans.push(Span::raw(if i > 0 { GAP } else { "" }));
        spans.push(Span::styled(glyphs.plain(&hint.key), key));
        spans.push(Span::raw(glyphs.plain(&format!(" {}", hint.does))));
    }
    buf.set_line(area.x, y, &Line::from(spans), area.width);
}

/// How many of these answers there is room for in the line.
pub fn answers_that_fit(answers: &[Hint], columns: u16) -> usize {
    let mut used = 1;
    let fits = |hint: &&Hint| {
        used += width(&hint.key) + 1 + width(&hint.does);
        let fits = used <= usize::from(columns);
        used += GAP.len();
        fits
    };
    answers.iter().take_while(fits).count()
}

/// The list of completions above the line, in the rows of `area` from its bottom up.
pub fn completions(prompt: &Prompt, area: Rect, buf: &mut Buffer, theme: &Theme, glyphs: Glyphs) {
    let all = &prompt.completion.candidates;
    let height = usize::from(area.height);
    let from = prompt.chosen.map_or(0, |at| (at + 1).saturating_sub(height));
    let names = all.iter().map(|c| columns(&c.text)).max().unwrap_or(0);
    for ((i, candidate), y) in all.iter().enumerate().skip(from).take(height).zip(area.y..) {
        let help = usize::from(area.width.saturating_sub(names + 2));
        let line = Line::from(vec![
            Span::raw(crate::rows::pad(&candidate.text, usize::from(names))),
            Span::styled(format!("  {}", glyphs.plain(&cut(&candidate.help, help))), theme.dim),
        ]);
        buf.set_line(area.x, y, &line, area.width);
        if prompt.chosen == Some(i) {
            buf.set_style(Rect { y, height: 1, ..area }, theme.selection);
        }
    }
}
