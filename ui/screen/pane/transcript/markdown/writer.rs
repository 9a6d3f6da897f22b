//! Walks the parts of a markdown text and writes their rows.

use crate::rows::{Break, Link, Paragraph, Piece, Row, TextStyle, half, row_width, wrap};
use crate::screen::code::Highlighter;
use crate::screen::pane::transcript::code;
use crate::screen::pane::transcript::markdown::fence::language_of;
use crate::screen::pane::transcript::markdown::{Fence, Finished, grow_code};
use crate::screen::pane::transcript::table::Table;
use crate::theme::Role;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};
use ratatui::style::Modifier;
use std::ops::Range;

/// The widest rule.
const RULE: usize = 40;
/// From this length on, in bytes, a growing paragraph is finished line by line.
const LONG_PARAGRAPH: usize = 2048;

/// A list or quote that a line stands in.
struct Indent {
    /// The piece before its first row; the first paragraph takes it.
    first: Option<Piece>,
    rest: Piece,
}

/// A break between two lines of a paragraph.
struct LineBreak {
    /// The byte of the source behind it.
    byte: usize,
    /// Bytes of the drawn text before it.
    drawn: usize,
}

pub struct Writer<'a> {
    text: &'a str,
    cells: usize,
    out: &'a mut Vec<Row>,
    /// The byte at which this drawing began.
    from: usize,
    start_rows: usize,
    indents: Vec<Indent>,
    line: Vec<Piece>,
    /// The last break of the paragraph that lies in no emphasis and no link.
    line_break: Option<LineBreak>,
    styles: Vec<TextStyle>,
    /// The next number of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    /// The number with which the first list continues.
    pub number: Option<u64>,
    /// The addresses of the open links and images, and their links.
    links: Vec<(String, Option<Link>)>,
    depth: usize,
    code: Option<Code>,
    table: Option<Table>,
    finished: Option<Finished>,
}

#[derive(Default)]
struct Code {
    text: String,
    language: String,
    colours: Highlighter,
    /// Set if a later drawing can continue inside it.
    fence: Option<Fence>,
}

impl<'a> Writer<'a> {
    pub fn new(text: &'a str, from: usize, cells: usize, out: &'a mut Vec<Row>) -> Self {
        Self {
            text,
            cells,
            start_rows: out.len(),
            out,
            from,
            indents: Vec::new(),
            line: Vec::new(),
            line_break: None,
            styles: Vec::new(),
            lists: Vec::new(),
            number: None,
            links: Vec::new(),
            depth: 0,
            code: None,
            table: None,
            finished: None,
        }
    }

    /// Writes the rest, and returns how far the text is finished if that has grown.
    pub fn finish(mut self) -> Option<Finished> {
        self.end_paragraph();
        self.finished
    }

    fn style(&self) -> TextStyle {
        self.styles.last().copied().unwrap_or_default()
    }

    pub fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => {
                self.mark(&tag, &range);
                self.depth += 1;
                self.start(tag, &range);
            }
            Event::End(tag) => {
                self.depth -= 1;
                self.end(tag, &range);
            }
            Event::Text(text) => self.text(&text),
            Event::Code(code) => self.push(&code, TextStyle { role: Role::Code, ..self.style() }),
            Event::Html(html) | Event::InlineHtml(html) => self.push(&html, Role::Dim.into()),
            Event::SoftBreak | Event::HardBreak => self.break_line(&range),
            Event::Rule => self.rule(&range),
            Event::TaskListMarker(done) => {
                self.push(if done { "[x] " } else { "[ ] " }, Role::Accent.into());
            }
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text(&text);
            }
        }
    }

    /// Notes the starts of top-level blocks, and of items of a top-level list: the text before the last of
    /// them is finished.
    fn mark(&mut self, tag: &Tag<'_>, range: &Range<usize>) {
        let item = matches!(tag, Tag::Item) && self.depth == 1 && self.lists.len() == 1;
        if self.depth > 0 && !item {
            return;
        }
        self.end_paragraph();
        let line = self.text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        // An incomplete line may still become a part of the block above it.
        let whole = self.text[range.start..].contains('\n');
        let alone = self.text[line..range.start].trim().is_empty();
        if whole && alone && line >= self.from {
            let number = self.lists.first().copied().flatten();
            let rows = self.out.len();
            self.finished = Some(Finished { byte: line, rows, fence: None, number });
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: &Range<usize>) {
        match tag {
            Tag::Paragraph => self.begin_block(range),
            Tag::Heading { level, .. } => {
                self.begin_block(range);
                let mut style = TextStyle { role: Role::Accent, emphasis: Modifier::BOLD };
                if level == HeadingLevel::H1 {
                    style.emphasis |= Modifier::UNDERLINED;
                }
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.begin_block(range);
                let bar = Piece::new("│ ", Role::Dim);
                self.indents.push(Indent { first: None, rest: bar });
                self.styles.push(TextStyle { role: Role::Dim, ..self.style() });
            }
            Tag::CodeBlock(kind) => {
                self.begin_block(range);
                self.code = Some(self.code_of(&kind, range));
            }
            Tag::List(first) => {
                self.end_paragraph();
                if self.lists.is_empty() {
                    self.blank_before(range);
                }
                let went_on = self.number.take();
                self.lists.push(first.map(|first| went_on.unwrap_or(first)));
            }
            Tag::Item => self.item(range),
            Tag::Table(alignments) => {
                self.begin_block(range);
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead => self.emphasise(Modifier::BOLD),
            Tag::Emphasis => self.emphasise(Modifier::ITALIC),
            Tag::Strong => self.emphasise(Modifier::BOLD),
            Tag::Strikethrough => self.emphasise(Modifier::CROSSED_OUT),
            Tag::Link { dest_url, .. } => {
                self.begin_link(dest_url.into_string());
                self.styles.push(TextStyle { role: Role::Link, ..self.style() });
            }
            Tag::Image { dest_url, .. } => {
                self.begin_link(dest_url.into_string());
                self.push("image: ", Role::Dim.into());
                self.styles.push(TextStyle { role: Role::Link, ..self.style() });
            }
            Tag::HtmlBlock => self.begin_block(range),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, range: &Range<usize>) {
        match tag {
            TagEnd::Paragraph => {
                let last_line = self.last_line();
                self.end_paragraph();
                self.finish_lines(range, last_line);
            }
            TagEnd::Heading(_) => {
                self.end_paragraph();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.end_paragraph();
                self.styles.pop();
                self.indents.pop();
            }
            TagEnd::CodeBlock => self.end_code(range),
            TagEnd::List(_) => {
                self.end_paragraph();
                self.lists.pop();
            }
            TagEnd::Item => {
                self.end_item();
                self.indents.pop();
            }
            TagEnd::Table => self.end_table(),
            TagEnd::TableHead => {
                self.styles.pop();
                self.end_table_row();
            }
            TagEnd::TableRow => self.end_table_row(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::HtmlBlock => self.end_paragraph(),
            _ => {}
        }
    }

    fn emphasise(&mut self, more: Modifier) {
        let style = self.style();
        self.styles.push(TextStyle { emphasis: style.emphasis | more, ..style });
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some(code) => code.text.push_str(text),
            None => self.push(text, self.style()),
        }
    }

    fn push(&mut self, text: &str, style: TextStyle) {
        let link = self.links.last().and_then(|(_, link)| link.clone());
        match self.line.last_mut() {
            Some(piece) if piece.style == style && piece.link == link => piece.text.push_str(text),
            _ => self.line.push(Piece { link, ..Piece::new(text, style) }),
        }
    }

    fn begin_link(&mut self, url: String) {
        let link = Link::parse(&url);
        self.links.push((url, link));
    }

    fn end_link(&mut self) {
        self.styles.pop();
        let Some((url, link)) = self.links.pop() else { return };
        let shown = self.line.last().is_some_and(|piece| piece.text.ends_with(&url));
        let bare = url.strip_prefix("mailto:").unwrap_or(&url);
        if !shown && !self.line.last().is_some_and(|piece| piece.text.ends_with(bare)) {
            self.push(" (", Role::Dim.into());
            self.line.push(Piece { link, ..Piece::new(url, Role::Dim) });
            self.push(")", Role::Dim.into());
        }
    }

    fn begin_block(&mut self, range: &Range<usize>) {
        self.end_paragraph();
        self.blank_before(range);
    }

    /// An empty row where the source has one.
    fn blank_before(&mut self, range: &Range<usize>) {
        let above = self.out.len() > self.start_rows || self.from > 0;
        if above && blank_line_before(self.text, range.start) && !self.ends_blank() {
            let row = self.rest_prefix();
            self.out.push(half(&row, self.cells));
        }
    }

    fn ends_blank(&self) -> bool {
        let empty = |piece: &Piece| piece.text.trim_matches([' ', '│']).is_empty();
        self.out.last().is_none_or(|row| row.iter().all(empty))
    }

    fn rest_prefix(&self) -> Row {
        self.indents.iter().map(|indent| indent.rest.clone()).collect()
    }

    fn first_prefix(&mut self) -> Row {
        let take = |indent: &mut Indent| indent.first.take().unwrap_or(indent.rest.clone());
        self.indents.iter_mut().map(take).collect()
    }

    fn item(&mut self, range: &Range<usize>) {
        self.end_paragraph();
        self.blank_before(range);
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => "• ".to_owned(),
        };
        let rest = Piece::new(" ".repeat(mark.chars().count()), Role::Text);
        self.indents.push(Indent { first: Some(Piece::new(mark, Role::Accent)), rest });
    }

    /// An item without a word still shows its mark.
    fn end_item(&mut self) {
        self.end_paragraph();
        if self.indents.last().is_some_and(|indent| indent.first.is_some()) {
            let row = self.first_prefix();
            self.out.push(half(&row, self.cells));
        }
    }

    fn end_paragraph(&mut self) {
        let mut body = std::mem::take(&mut self.line);
        while body.last().is_some_and(|piece| piece.text.trim_end_matches('\n').is_empty()) {
            body.pop();
        }
        let Some(last) = body.last_mut() else { return };
        last.text.truncate(last.text.trim_end_matches('\n').len());
        let rest = self.rest_prefix();
        let first = self.first_prefix();
        Paragraph { first: &first, rest: &rest, body: &body, at: Break::Words }
            .wrap(self.cells, self.out);
    }

    fn break_line(&mut self, range: &Range<usize>) {
        self.push("\n", TextStyle::default());
        let newline = self.text[range.start..].find('\n');
        if let Some(at) = newline.filter(|_| self.styles.is_empty() && self.links.is_empty()) {
            let drawn = self.line.iter().map(|piece| piece.text.len()).sum();
            self.line_break = Some(LineBreak { byte: range.start + at + 1, drawn });
        }
    }

    /// Where the last line of the paragraph begins in the source, and how many rows it takes.
    fn last_line(&mut self) -> Option<(usize, usize)> {
        let LineBreak { byte, drawn } = self.line_break.take()?;
        let mut before = drawn;
        let mut line = Vec::new();
        for piece in &self.line {
            let skipped = before.min(piece.text.len());
            before -= skipped;
            line.push(piece.part(&piece.text[skipped..]));
        }
        let mut rows = Vec::new();
        wrap(&line, self.cells, Break::Words, &mut rows);
        Some((byte, rows.len()))
    }

    /// A long paragraph at the top level is finished up to its last line.
    fn finish_lines(&mut self, range: &Range<usize>, last_line: Option<(usize, usize)>) {
        let Some((byte, rows)) = last_line else { return };
        if self.depth == 0 && range.len() >= LONG_PARAGRAPH && range.end == self.text.len() {
            let rows = self.out.len().saturating_sub(rows).max(self.start_rows);
            self.finished = Some(Finished { byte, rows, ..Finished::default() });
        }
    }

    fn rule(&mut self, range: &Range<usize>) {
        self.mark(&Tag::Paragraph, range);
        self.begin_block(range);
        let mut row = self.first_prefix();
        let taken = row_width(&row);
        let long = RULE.min(self.cells.saturating_sub(taken));
        row.push(Piece::new("─".repeat(long), Role::Dim));
        wrap_once(row, self.cells, self.out);
    }

    fn code_of(&self, kind: &CodeBlockKind<'_>, range: &Range<usize>) -> Code {
        let CodeBlockKind::Fenced(info) = kind else {
            return Code::default();
        };
        let language = language_of(info);
        let opening = self.text[range.clone()].lines().next().unwrap_or("");
        let fence = (self.depth == 1).then(|| Fence::opened_by(opening, language)).flatten();
        let (text, colours) = (String::new(), Highlighter::new(language));
        Code { text, language: language.to_owned(), colours, fence }
    }

    fn end_code(&mut self, range: &Range<usize>) {
        let Some(mut code) = self.code.take() else { return };
        let source = &self.text[range.clone()];
        let closing = source.trim_end_matches('\n').lines().skip(1).last();
        let open = code.fence.filter(|fence| {
            range.end == self.text.len() && !closing.is_some_and(|line| fence.closed_by(line))
        });
        if let Some(fence) = open {
            self.open_code(fence, &code.language, range);
            return;
        }
        if !code.language.is_empty() {
            let prefix = self.first_prefix();
            code::language(&code.language, &prefix, self.cells, self.out);
        }
        for line in code.text.lines() {
            let prefix = self.first_prefix();
            code::line(line, &mut code.colours, &prefix, self.cells, self.out);
        }
    }

    /// A block of code that has not ended is drawn line by line, and each whole line is finished.
    fn open_code(&mut self, fence: Fence, language: &str, range: &Range<usize>) {
        let Some(first) = self.text[range.clone()].find('\n') else { return };
        code::language(language, &[], self.cells, self.out);
        let byte = range.start + first + 1;
        let (rows, inside) = (self.out.len(), Some(fence.clone()));
        let mut finished = Finished { byte, rows, fence: inside, number: None };
        grow_code(self.text, self.cells, fence, &mut finished, self.out);
        self.finished = Some(finished);
    }

    fn end_table_row(&mut self) {
        if let Some(table) = &mut self.table {
            table.end_row();
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let rest = self.rest_prefix();
        let taken = row_width(&rest);
        let mut rows = Vec::new();
        table.render(self.cells.saturating_sub(taken).max(1), &mut rows);
        for row in rows {
            let mut whole = self.first_prefix();
            whole.extend(row);
            wrap_once(whole, self.cells, self.out);
        }
    }
}

/// Wraps a finished row if its prefix made it wider than the pane.
fn wrap_once(row: Row, cells: usize, out: &mut Vec<Row>) {
    if row_width(&row) <= cells {
        out.push(row);
    } else {
        wrap(&row, cells, Break::Anywhere, out);
    }
}

/// Whether the line above the one with this byte is empty, quote marks aside.
fn blank_line_before(text: &str, byte: usize) -> bool {
    let Some(end) = text[..byte].rfind('\n') else { return false };
    let start = text[..end].rfind('\n').map_or(0, |at| at + 1);
    text[start..end].trim_matches([' ', '>', '\t']).is_empty()
}
