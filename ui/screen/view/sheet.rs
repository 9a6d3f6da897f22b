//! Paints the layers over the panes: lists, confirmations, completions.

use crate::rows::{cut, width, wrap_text};
use crate::screen::app::{App, Areas, Confirm, KeyLine, KeyState, Layer, confirm_rows, panes};
use crate::screen::pane::actionbar::{self, CANDIDATES, Hint, Prompt};
use crate::screen::pane::composer::{Files, Found};
use crate::screen::pane::inbox;
use crate::screen::pick_list::PickList;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget as _};

/// The columns between two columns of keys.
const GAP: usize = 2;

/// Paints the topmost layer, and returns the position of its caret.
pub fn draw(app: &App, areas: &Areas, frame: &mut Frame<'_>) -> Option<Position> {
    match app.layers.top() {
        Some(Layer::List(list)) => Some(pick_list(app, list, areas, frame)),
        Some(Layer::Confirm(asked)) => {
            confirm(app, asked, areas, frame);
            None
        }
        Some(Layer::Prompt(prompt)) => {
            above_line(app, prompt, areas, frame);
            None
        }
        Some(Layer::Key(line)) => {
            about_key(app, line, areas, frame);
            None
        }
        None => {
            if app.leader {
                leader(app, areas, frame);
            } else if let Some(found) = &app.composer.files {
                files(app, found, areas, frame);
            }
            None
        }
    }
}

/// Opens a sheet, whose text has this area: empties its rows, and rules it off on a screen without grounds. Every sheet is
/// painted through this function. It returns the cells for the text, which are always on the screen, however small that is.
fn open(app: &App, text: Rect, frame: &mut Frame<'_>) -> Rect {
    let screen = frame.area();
    let rows = Rect { x: screen.x, width: screen.width, ..text }.intersection(screen);
    clear(app, rows, frame.buffer_mut());
    if !app.theme.has_grounds()
        && let Some(y) = rows.y.checked_sub(1)
    {
        rule(app, Rect { y, height: 1, ..rows }, frame.buffer_mut());
    }
    text.intersection(screen)
}

/// Paints a rule in place of a ground.
pub fn rule(app: &App, area: Rect, buf: &mut Buffer) {
    clear(app, area, buf);
    let sign = app.setup.glyphs.plain("─");
    for x in area.x..area.right() {
        buf.set_stringn(x, area.y, &sign, 1, app.theme.rule);
    }
}

/// Empties an area.
fn clear(app: &App, area: Rect, buf: &mut Buffer) {
    if area.is_empty() {
        return;
    }
    Clear.render(area, buf);
    buf.set_style(area, app.theme.text.patch(app.theme.raised));
}

/// Paints the card, if one is on the screen.
pub fn card(app: &App, areas: &Areas, frame: &mut Frame<'_>) {
    if let Some(area) = areas.card {
        let area = open(app, area, frame);
        panes::card(app).render(area, frame.buffer_mut());
    }
}

fn pick_list(app: &App, list: &PickList, areas: &Areas, frame: &mut Frame<'_>) -> Position {
    let area = areas.list(list);
    let title = area.y.saturating_sub(1);
    let sheet = open(app, Rect { y: title, height: area.bottom() - title, ..area }, frame);
    let text = cut(&app.setup.glyphs.plain(&list.title), usize::from(sheet.width));
    frame.buffer_mut().set_stringn(
        sheet.x,
        sheet.y,
        text,
        usize::from(sheet.width),
        app.theme.accent,
    );
    list.render(area.intersection(sheet), frame.buffer_mut(), &app.theme, app.setup.glyphs)
}

fn confirm(app: &App, confirm: &Confirm, areas: &Areas, frame: &mut Frame<'_>) {
    let (rows, room) = confirm_rows(app, confirm);
    let text = rows_in_view(app, rows, room);
    let answers = answers(app, confirm, areas);
    let inner = open(app, areas.sheet(text.len() + answers.len()), frame);
    let rows = text.into_iter().map(Line::raw);
    for (line, y) in rows.chain(answers).zip(inner.y..inner.bottom()) {
        frame.buffer_mut().set_line(inner.x, y, &line, inner.width);
    }
}

/// The rows of a sheet that are in view, for the room above its keys. The last one says how many more there are.
fn rows_in_view(app: &App, rows: Vec<String>, room: usize) -> Vec<String> {
    let top = app.layers.read.top(&rows);
    let left = rows.len() - top;
    let shown = inbox::in_view(left, room + 1);
    let mut text: Vec<String> = rows.into_iter().skip(top).take(shown).collect();
    if shown < left && shown < room {
        text.push(app.setup.glyphs.plain(&inbox::more_below(left - shown, &app.keymap)));
    }
    text
}

fn answers(app: &App, confirm: &Confirm, areas: &Areas) -> Vec<Line<'static>> {
    let columns = usize::from(areas.sheet(1).width);
    let rows = confirm.answer_rows(app.is_armed(), &app.keymap, columns);
    rows.into_iter().map(|row| answer_row(app, row)).collect()
}

fn answer_row(app: &App, hints: Vec<Hint>) -> Line<'static> {
    let glyphs = app.setup.glyphs;
    let mut spans = Vec::new();
    for (i, hint) in hints.into_iter().enumerate() {
        if i > 0 {
            spans.push(Span::styled(glyphs.plain(" · "), app.theme.dim));
        }
        spans.push(Span::styled(hint.key, app.theme.accent));
        spans.push(Span::raw(format!(": {}", hint.does)));
    }
    Line::from(spans)
}

/// Paints above a line that is being typed why it was refused or, if it was not, its completions.
fn above_line(app: &App, prompt: &Prompt, areas: &Areas, frame: &mut Frame<'_>) {
    let columns = usize::from(areas.sheet(1).width).max(1);
    let (rows, style) = match app.rule_said() {
        Some(said) => {
            let (rows, room) = app.rule_rows(areas);
            let style = if said.is_ok() { Style::new() } else { app.theme.error };
            (rows_in_view(app, rows, room), style)
        }
        None => {
            let wrong = app.undecided(prompt).or_else(|| prompt.wrong.clone()).unwrap_or_default();
            (wrap_text(&app.setup.glyphs.plain(&wrong), columns), app.theme.error)
        }
    };
    let ends = prompt.input.text().len();
    let listed = rows.is_empty() || prompt.wrong.is_some() && prompt.completion.start == ends;
    let values = if listed { prompt.completion.candidates.len().min(CANDIDATES) } else { 0 };
    if rows.len() + values == 0 {
        return;
    }
    let area = line_sheet(app, rows.len() + values, areas, frame);
    for (row, y) in rows.iter().zip(area.y..area.bottom()) {
        frame.buffer_mut().set_stringn(area.x, y, row, columns, style);
    }
    let above = u16::try_from(rows.len()).unwrap_or(area.height).min(area.height);
    let values = Rect { y: area.y + above, height: area.height - above, ..area };
    if listed {
        actionbar::completions(prompt, values, frame.buffer_mut(), &app.theme, app.setup.glyphs);
    }
}

/// Paints above the line for a key where to get one and what becomes of it.
fn about_key(app: &App, line: &KeyLine, areas: &Areas, frame: &mut Frame<'_>) {
    let KeyState::Typing { about, .. } = &line.state else { return };
    let columns = usize::from(areas.sheet(1).width).max(1);
    let rows = wrap_text(&app.setup.glyphs.plain(about), columns);
    let area = line_sheet(app, rows.len(), areas, frame);
    for (row, y) in rows.iter().zip(area.y..area.bottom()) {
        frame.buffer_mut().set_stringn(area.x, y, row, columns, Style::new());
    }
}

/// The area of `rows` rows above the line that is being typed.
fn line_sheet(app: &App, rows: usize, areas: &Areas, frame: &mut Frame<'_>) -> Rect {
    open(app, areas.sheet_above_line(rows), frame)
}

/// Paints the keys that can follow the leader, in as many columns as fit: in sentences where there is room for these, else
/// in a word or two.
fn leader(app: &App, areas: &Areas, frame: &mut Frame<'_>) {
    let glyphs = app.setup.glyphs;
    let plain = |hint: Hint| (glyphs.plain(&hint.key), glyphs.plain(&hint.does));
    let hints = |brief| app.leader_hints(brief).into_iter().map(plain).collect::<Vec<_>>();
    let (whole, brief) = (hints(false), hints(true));
    let room = usize::from(areas.sheet(1).width);
    let fits = |hints: &[(String, String)], rows: usize| {
        let columns = hints.chunks(rows).map(|column| column.iter().map(wide).max().unwrap_or(0));
        columns.map(|wide| wide + GAP).sum::<usize>() <= room + GAP
    };
    let most = |sheet: Rect| usize::from(sheet.height).max(1);
    let sentences = most(areas.sheet_above_line(whole.len()));
    let sentences = (1..=sentences).find(|rows| fits(&whole, *rows));
    let (hints, rows, sheet) = match sentences {
        Some(rows) => (whole, rows, areas.sheet_above_line(rows)),
        None => {
            // The line waits meanwhile: a low screen has its rows, too.
            let above = most(areas.sheet_above_line(brief.len()));
            let all = most(areas.sheet(brief.len()));
            let rows = (1..=all).find(|rows| fits(&brief, *rows)).unwrap_or(all);
            let sheet = if rows > above { areas.sheet(rows) } else { areas.sheet_above_line(rows) };
            (brief, rows, sheet)
        }
    };
    let area = open(app, sheet, frame);
    let mut x = area.x;
    for column in hints.chunks(rows) {
        for ((key, does), y) in column.iter().zip(area.y..area.bottom()) {
            let room = area.right().saturating_sub(x);
            let does = cut(does, usize::from(room).saturating_sub(width(key) + 1));
            let key = Span::styled(key.clone(), app.theme.accent);
            let line = Line::from(vec![key, Span::raw(format!(" {does}"))]);
            frame.buffer_mut().set_line(x, y, &line, room);
        }
        let wide = column.iter().map(wide).max().unwrap_or(0) + GAP;
        x = x.saturating_add(u16::try_from(wide).unwrap_or(u16::MAX));
    }
}

/// The columns of a key with what it does.
fn wide((key, does): &(String, String)) -> usize {
    width(key) + 1 + width(does)
}

fn files(app: &App, files: &Files, areas: &Areas, frame: &mut Frame<'_>) {
    let rows = files.found.len().min(CANDIDATES);
    if rows == 0 {
        return;
    }
    let area = open(app, areas.sheet_above_line(rows), frame);
    let (rows, columns) = (usize::from(area.height), usize::from(area.width));
    let from = (files.selected + 1).saturating_sub(rows);
    let shown = files.found.iter().enumerate().skip(from).take(rows);
    for ((i, found), y) in shown.zip(area.y..) {
        let name = cut(found.name(), columns);
        let (end, _) = frame.buffer_mut().set_stringn(area.x, y, name, columns, Style::new());
        if let Found::Pod(_) = found {
            let room = usize::from(area.right().saturating_sub(end));
            frame.buffer_mut().set_stringn(end, y, "  Pod", room, app.theme.dim);
        }
        if i == files.selected {
            let row = Rect { y, height: 1, ..area };
            frame.buffer_mut().set_style(row, app.theme.selection);
        }
    }
}
