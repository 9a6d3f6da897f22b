//! A transcript on the screen: its rows in view, the cursor, matches of the search, and how much is new
//! below.

use crate::rows::{Link, Piece, Row, cut_front, paint, row_width, shorten, width};
use crate::screen::pane::transcript::block::{Block, Kind};
use crate::screen::pane::transcript::find::{divided, find_in};
use crate::screen::pane::transcript::long::LeftOut;
use crate::screen::pane::transcript::pages::Pos;
use crate::screen::pane::transcript::rows::{NAME, Speaker, bold, system, verdict_piece};
use crate::screen::pane::transcript::scroll::{Columns, Seen};
use crate::screen::pane::transcript::tool::Tool;
use crate::screen::pane::transcript::{Detail, Search, Transcript, clean, code};
use crate::theme::{Role, Theme};
use crate::wording::{sent, state};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::Widget;
use std::ops::Range;
use std::path::Path;
use yoi::client::family::Family;
use yoi::protocol::{PodName, Verdict};

/// The widest border between two parts of the history.
const BORDER: usize = 60;

/// A transcript as a widget; [`Transcript::layout`] with the same size goes before it.
pub struct View<'a> {
    pub transcript: &'a Transcript,
    pub theme: &'a Theme,
    pub focused: bool,
    /// The directory of the Pod.
    pub root: &'a Path,
    /// The Pod right above it.
    pub parent: Option<&'a str>,
    /// Which messages wait in mailboxes.
    pub family: &'a Family,
}

/// The text of a row of the screen, and the cell at which each of its symbols begins.
struct CellsOfRow {
    text: String,
    cells: Vec<(usize, u16)>,
    y: u16,
}

impl CellsOfRow {
    fn of(area: Rect, y: u16, buf: &Buffer) -> Self {
        let mut row = Self { text: String::new(), cells: Vec::new(), y };
        let mut hidden = 0;
        for x in area.left()..area.right() {
            if hidden > 0 {
                hidden -= 1;
                continue;
            }
            let symbol = buf[(x, y)].symbol();
            row.cells.push((row.text.len(), x));
            row.text.push_str(symbol);
            hidden = width(symbol).saturating_sub(1);
        }
        row
    }

    /// Whether the text reaches the column at which rows are wrapped.
    fn fills(&self, area: Rect) -> bool {
        width(self.text.trim_end()) + 1 >= usize::from(Columns::of(area.width).wrap)
    }

    /// Gives the symbols at these bytes a style; blanks at the edges of the row keep theirs.
    fn mark(&self, bytes: Range<usize>, style: Style, buf: &mut Buffer) {
        let text = self.text.trim_end().len();
        let first = self.text.len() - self.text.trim_start().len();
        let bytes = bytes.start.max(first)..bytes.end.min(text);
        for (_, x) in self.cells.iter().filter(|(at, _)| bytes.contains(at)) {
            buf[(*x, self.y)].set_style(style);
        }
    }
}

impl Transcript {
    /// The pieces in view that are links.
    pub fn links(&self) -> impl Iterator<Item = (&Piece, &Link)> {
        let rows = self.seen.iter().filter_map(|seen| self.body_row(seen));
        rows.flatten().filter_map(|piece| Some((piece, piece.link.as_ref()?)))
    }

    /// The row of a body; `None` for rows with a speaker, heads and rows between two blocks.
    pub(super) fn body_row(&self, seen: &Seen) -> Option<&Row> {
        let block = self.pages.get(seen.pos).filter(|_| seen.speaker.is_none())?;
        let head = block.shape(self.detail, self.unfolded).head;
        let row = usize::try_from(seen.row).ok()?.checked_sub(usize::from(head))?;
        block.cache.as_ref()?.rows.get(row)
    }
}

impl Widget for View<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let mut cursor = self.transcript.cursor.filter(|_| self.focused);
        for (seen, y) in self.transcript.seen.iter().zip(area.top()..area.bottom()) {
            let line = Rect { y, height: 1, ..area };
            if self.is_of_person(seen) {
                buf.set_style(line, self.theme.raised);
            }
            self.row(seen, line, buf);
            if seen.row >= 0 && cursor.take_if(|cursor| seen.pos.is_in(*cursor)).is_some() {
                self.cursor(seen, line, buf);
            }
        }
        self.highlight(area, buf);
        self.corner(area, buf);
    }
}

impl View<'_> {
    /// Whether a row is one of a message of the person.
    fn is_of_person(&self, seen: &Seen) -> bool {
        let head = self.transcript.pages.get(seen.pos.head());
        seen.row >= 0 && head.is_some_and(Block::is_of_person)
    }

    fn row(&self, seen: &Seen, line: Rect, buf: &mut Buffer) {
        let Some(block) = self.transcript.pages.get(seen.pos) else { return };
        let Columns { text: words, wrap, .. } = Columns::of(line.width);
        if let Some(speaker) = &seen.speaker {
            return self.put(&self.name(speaker, block), line, words, buf);
        }
        let Ok(row) = usize::try_from(seen.row) else { return };
        let shape = block.shape(self.transcript.detail, self.transcript.unfolded);
        let cells = usize::from(wrap - words);
        if block.is_of_person() {
            self.bar(row, line, buf);
        }
        if shape.head && row == 0 {
            return self.head(seen, line, buf);
        }
        if row == 0 && block.is_of_person() {
            self.time(block, line, buf);
        }
        match &block.kind {
            Kind::CutOff { .. } | Kind::Border(_) | Kind::Retry { .. } => {
                if let Some(own) = self.own_row(seen, cells) {
                    return self.put(&own, line, words, buf);
                }
            }
            _ => {}
        }
        if let Some(pieces) = self.transcript.body_row(seen) {
            if let Some(at) = code::ground(pieces).and_then(|at| u16::try_from(at).ok()) {
                let x = words.saturating_add(at).min(wrap);
                let ground = Rect { x: line.x + x, width: wrap - x, ..line };
                buf.set_style(ground, self.theme.raised);
            }
            self.put(pieces, line, words, buf);
        }
    }

    /// The sign of a message of the person: in its first row, in each row where the message has no ground of its own.
    fn bar(&self, row: usize, line: Rect, buf: &mut Buffer) {
        let shown = row == 0 || !self.theme.has_grounds();
        if shown && Columns::of(line.width).text > 0 {
            buf.set_stringn(line.x, line.y, "▌", 1, self.theme.accent);
        }
    }

    /// Whose message it is and its time, on the right of its first row.
    fn time(&self, block: &Block, line: Rect, buf: &mut Buffer) {
        let Columns { text, right, .. } = Columns::of(line.width);
        let first = block.cache.as_ref().and_then(|cache| cache.rows.first());
        let room = usize::from(right - text).saturating_sub(first.map_or(0, |row| row_width(row)));
        let clock = self.clock(block.ts);
        let brief = clock.rsplit(' ').next().unwrap_or_default();
        let clock = [format!("you {clock}"), clock.clone(), brief.to_owned()];
        let fits = clock.iter().find(|clock| block.ts > 0 && width(clock) + 1 < room);
        if let Some(clock) = fits {
            let at = usize::from(right) - width(clock);
            let at = u16::try_from(at).unwrap_or(text);
            self.put(&[Piece::new(clock, Role::Dim)], line, at, buf);
        }
    }

    /// Whose words follow, and when they came.
    fn name(&self, speaker: &Speaker, block: &Block) -> Row {
        let kind = match speaker.kind {
            Speaker::ABOVE if self.parent == Some(&speaker.name) => "parent",
            kind => kind,
        };
        let space = if kind.is_empty() { "" } else { " " };
        let mut row = vec![
            Piece::new(format!("{kind}{space}"), Role::Dim),
            Piece::new(speaker.name.as_str(), bold(Role::Text)),
        ];
        row.extend(
            (block.ts > 0).then(|| Piece::new(format!(" {}", self.clock(block.ts)), Role::Dim)),
        );
        if let Some(sent) = self.sent(&block.kind) {
            row.push(Piece::new(" · ", Role::Dim));
            row.push(sent);
        }
        row.push(Piece::new(speaker.remark, Role::Dim));
        row
    }

    /// The head of a block, cut to fit beside its state.
    fn head(&self, seen: &Seen, line: Rect, buf: &mut Buffer) {
        let transcript = self.transcript;
        let Some(block) = transcript.pages.get(seen.pos) else { return };
        let shape = block.shape(transcript.detail, transcript.unfolded);
        let (mut left, right) = block.head(shape, transcript.now);
        let Columns { text, right: end, .. } = Columns::of(line.width);
        let cells = usize::from(end - text);
        if let Some(own) = self.own_row(seen, cells) {
            left = own;
        }
        let (mut left, right) = match transcript.group_row(seen.pos) {
            Some((row, state)) => (row, Some(state)),
            None => match self.decision(seen.pos, block) {
                Some(row) => (row, None),
                None => (left, right),
            },
        };
        if let (Kind::Tool(tool), Some(about)) = (&block.kind, left.last_mut()) {
            about.text = self.beside_root(tool, &about.text);
        }
        let right = match &block.kind {
            // Above their words.
            Kind::System(item) if system::sent(item).is_some() => None,
            Kind::User { from: None, .. } if block.ts > 0 && cells >= 24 => {
                Some(Piece::new(self.clock(block.ts), Role::Dim))
            }
            kind => self.sent(kind).or_else(|| self.child(kind)).or(right),
        };
        if transcript.detail == Detail::Overview
            && let Some(speaker) = block.speaker()
        {
            let name = self.name(&speaker, block).into_iter();
            left.splice(0..0, name.chain([Piece::new("  ", Role::Text)]));
        }
        let Some(right) = right.map(|piece| brief_enough(self.marked(piece), cells)) else {
            return self.put(&left, line, text, buf);
        };
        let wide = width(&right.text);
        let room = cells.saturating_sub(wide + 2);
        let left = match (&block.kind, left.as_slice()) {
            (Kind::Tool(tool), [name, path]) if tool.is_of_path() => {
                let beside = room.saturating_sub(width(&name.text));
                vec![name.clone(), path.part(&cut_front(&path.text, beside))]
            }
            _ => shorten(&left, room),
        };
        self.put(&left, line, text, buf);
        let taken = u16::try_from(wide).unwrap_or(end);
        self.put(&[right], line, end.saturating_sub(taken), buf);
    }

    /// The state of the message that a call, or a person in the name of the Pod, sent.
    fn sent(&self, kind: &Kind) -> Option<Piece> {
        let message = match kind {
            Kind::Tool(tool) => tool.outcome.as_ref()?.sent.as_ref()?,
            Kind::Result { outcome, .. } => outcome.sent.as_ref()?,
            Kind::System(item) => &system::sent(item)?.sent,
            _ => return None,
        };
        let (role, words) = sent::state(message, self.family);
        Some(Piece::new(words, role))
    }

    /// The decision on a request, right below the call that made it.
    fn decision(&self, pos: Pos, block: &Block) -> Option<Row> {
        let Kind::Approval(approval) = &block.kind else { return None };
        let verdict = approval.verdict.as_ref()?;
        let above = self.transcript.beside(pos, false)?;
        match &self.transcript.pages.get(above)?.kind {
            Kind::Tool(tool) if tool.call_id == approval.call_id => {
                // The result of a call that was denied says so, with the reason.
                let said = match verdict {
                    Verdict::Deny { .. } if tool.outcome.is_some() => {
                        Piece::new("you said no", Role::Dim)
                    }
                    verdict => verdict_piece(verdict),
                };
                Some(vec![Piece::new(" ".repeat(NAME + 2), Role::Text), said])
            }
            _ => None,
        }
    }

    /// The state of the child that a call made.
    fn child(&self, kind: &Kind) -> Option<Piece> {
        let Kind::Tool(tool) = kind else { return None };
        let is_made = tool.outcome.as_ref().is_some_and(|outcome| !outcome.is_error);
        let name = tool.brief.split("  ").next().filter(|_| is_made && tool.name == "SpawnPod")?;
        let child = self.family.get(&PodName::parse(name).ok()?)?;
        Some(Piece::new(state::of_pod(child), Role::Dim))
    }

    /// What a call is about, with paths below the directory of the Pod as they are from there. A command stays as it is.
    fn beside_root(&self, tool: &Tool, about: &str) -> String {
        match self.root.to_str() {
            Some(root) if tool.names_paths() && root.len() > 1 => {
                let about = about.strip_suffix(&format!("  in {root}")).unwrap_or(about);
                about.replace(&format!("{root}/"), "")
            }
            _ => about.to_owned(),
        }
    }

    /// A state with a sign where colours do not tell it.
    fn marked(&self, piece: Piece) -> Piece {
        let sign = match piece.style.role {
            Role::Error if !self.theme.has_grounds() => "✕ ",
            Role::Warn if !self.theme.has_grounds() => "! ",
            _ => return piece,
        };
        piece.part(&format!("{sign}{}", piece.text))
    }

    /// A row that says the time, or is as wide as the pane.
    fn own_row(&self, seen: &Seen, cells: usize) -> Option<Row> {
        let block = self.transcript.pages.get(seen.pos)?;
        let rows = block.cache.as_ref().map_or(0, |cache| cache.rows.len());
        let is_last = usize::try_from(seen.row).is_ok_and(|row| row + 1 == rows);
        match &block.kind {
            Kind::System(item) => {
                let (child, role, words) = system::fact(item)?;
                let mut row = self.name(&child, block);
                row.push(Piece::new(" · ", Role::Dim));
                row.push(Piece::new(words, role));
                Some(row)
            }
            Kind::CutOff { at } => {
                let text = format!("interrupted {} (host ended)", self.clock(*at));
                Some(vec![Piece::new(text, Role::Warn)])
            }
            Kind::Border(word) => {
                let long = BORDER.min(cells).saturating_sub(width(word) + 2);
                let (left, right) = (long / 2, long - long / 2);
                let text = format!("{} {word} {}", "─".repeat(left), "─".repeat(right));
                Some(vec![Piece::new(text, Role::Dim)])
            }
            Kind::Retry { retry, .. } if retry.wait_ms > 0 && is_last => {
                let wait = retry.next(self.transcript.now);
                let mut row = self.transcript.body_row(seen)?.clone();
                let between = if row.len() > 1 { " · " } else { "" };
                row.push(Piece::new(format!("{between}{wait}"), Role::Warn));
                Some(row)
            }
            _ => None,
        }
    }

    /// The time of day, with the day when it is not today's.
    fn clock(&self, ms: u64) -> String {
        let zoned = |ms: u64| {
            let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
            time.unwrap_or_default().to_zoned(self.transcript.zone.clone())
        };
        let (then, now) = (zoned(ms), zoned(self.transcript.now));
        let form = if then.date() == now.date() { "%H:%M" } else { "%b %-d %H:%M" };
        then.strftime(form).to_string()
    }

    fn put(&self, row: &[Piece], line: Rect, from: u16, buf: &mut Buffer) {
        let cells = usize::from(line.width.saturating_sub(from));
        let cut;
        let row = if row_width(row) <= cells {
            row
        } else {
            cut = shorten(row, cells);
            &cut
        };
        paint(row, self.theme, (line.x + from.min(line.width), line.y), line.right(), buf);
    }

    /// Marks the row of the cursor, with a sign that says whether its block unfolds or folds.
    fn cursor(&self, seen: &Seen, line: Rect, buf: &mut Buffer) {
        let transcript = self.transcript;
        let Some(block) = transcript.pages.get(seen.pos.head()) else { return };
        buf.set_style(line, self.theme.selection);
        if Columns::of(line.width).text > 0 {
            let shape = block.shape(transcript.detail, transcript.unfolded);
            let sign = block.fold_sign(shape, transcript.detail);
            buf.set_stringn(line.x, line.y, sign.unwrap_or("›"), 1, self.theme.accent);
        }
    }

    /// Marks the matches of the search: those in one row, and those that the end of a row divides. The one that was found
    /// last stands out.
    fn highlight(&self, area: Rect, buf: &mut Buffer) {
        let find = &self.transcript.find;
        let needle = find.needle();
        if needle.is_empty() {
            return;
        }
        let seen = &self.transcript.seen;
        let rows = seen.iter().zip(area.top()..area.bottom());
        let rows: Vec<_> = rows.map(|(seen, y)| (seen, CellsOfRow::of(area, y, buf))).collect();
        for (at, (seen, cells)) in rows.iter().enumerate() {
            let mut style = self.theme.found;
            if find.shown_at() == Some((seen.pos, seen.row)) {
                style = style.add_modifier(Modifier::REVERSED);
            }
            let mut from = 0;
            while let Some((start, end)) =
                cells.text.get(from..).and_then(|rest| find_in(rest, needle))
            {
                cells.mark(from + start..from + end, style, buf);
                from += end;
            }
            let Some((next, below)) = rows.get(at + 1) else { continue };
            if (next.pos, next.row) == (seen.pos, seen.row + 1)
                && let Some((start, end)) =
                    divided(&cells.text, &below.text, needle, cells.fills(area))
            {
                cells.mark(start..cells.text.len(), style, buf);
                below.mark(0..end, style, buf);
            }
        }
    }

    /// Says in the corner that entries are being read, or could not be read.
    fn corner(&self, area: Rect, buf: &mut Buffer) {
        let transcript = self.transcript;
        let (text, style): (String, Style) = if let Some(why) = &transcript.load.failed {
            (format!("not loaded: {}", clean::one_line(why)), self.theme.error)
        } else if transcript.search() == Search::Looking {
            ("searching older pages …".into(), self.theme.dim)
        } else if transcript.find.is_seeking() || !transcript.load.ready {
            ("loading …".into(), self.theme.dim)
        } else if let Some(left_out) = transcript.leaves_out() {
            let text = match left_out {
                LeftOut::UntilComplete => "the text above is shown when the answer is complete",
                LeftOut::UntilLoaded => "loading …",
            };
            (text.into(), self.theme.dim)
        } else {
            return;
        };
        let row = shorten(&[Piece::new(format!(" {text} "), Role::Text)], usize::from(area.width));
        let text: String = row.into_iter().map(|piece| piece.text).collect();
        let wide = u16::try_from(width(&text)).unwrap_or(area.width).min(area.width);
        if area.height > 0 {
            let (x, y) = (area.right() - wide, area.bottom() - 1);
            // What stood there may have been a link.
            let style = self.theme.text.patch(style).underline_color(Color::Reset);
            buf.set_stringn(x, y, text, usize::from(wide), style);
        }
    }
}

/// The state of a block, down to a sign where there is little room.
fn brief_enough(piece: Piece, cells: usize) -> Piece {
    if cells >= 50 {
        return piece;
    }
    let first = |text: &str, mark: &str| text.split(mark).next().unwrap_or("").to_owned();
    let words = first(&first(&piece.text, " · "), ": ").replace(" for you", "");
    let sign = match (cells, piece.style.role) {
        (24.., _) => words,
        (_, Role::Dim) => "✓".into(),
        (_, Role::Error) => "✕".into(),
        (_, Role::Warn) => "!".into(),
        (_, _) => "…".into(),
    };
    Piece::new(sign, piece.style)
}
