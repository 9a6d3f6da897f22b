//! Paints the first screen: what to type, and what other Pods did last.

use crate::rows::{columns, cut, pad, width, wrap_text};
use crate::screen::app::App;
use crate::screen::pane::transcript::text_area;
use crate::wording::age;
use crate::wording::model;
use crate::wording::now;
use crate::wording::plain::plain;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use yoi::client::family::Cost;
use yoi::protocol::{PodInfo, PodName, State};
use yoi::text::SafeText;

/// The column before a text, and the columns of what is to be typed.
const MARGIN: u16 = 3;
const LABEL: usize = 11;
/// Under this many columns both are narrower.
const NARROW: u16 = 60;
/// The last column of prose.
const PROSE: u16 = 96;
/// The columns of an age.
const AGE: usize = 3;

/// Paints it into the place of a transcript.
pub fn draw(app: &App, area: Rect, buf: &mut Buffer) {
    let (margin, label) = if area.width < NARROW { (1, LABEL - 1) } else { (MARGIN, LABEL) };
    let area = Rect {
        x: area.x + margin,
        width: area.width.saturating_sub(margin + 1).min(PROSE),
        ..area
    };
    let mut lines = Vec::new();
    if app.family.is_known() {
        lines.push(Line::default());
        lines.extend(rows(app, area.width, label));
        lines.extend(recent(app, area));
    } else {
        lines.push(Line::raw("connecting to the host …"));
    }
    for (line, y) in lines.into_iter().zip(area.y..area.bottom()) {
        let plain =
            |span: Span<'static>| Span::styled(app.setup.glyphs.plain(&span.content), span.style);
        let line = Line::from(line.spans.into_iter().map(plain).collect::<Vec<_>>());
        buf.set_line(area.x, y, &line, area.width);
    }
}

/// Paints in the place of a transcript that its Pod was removed, and what becomes of the draft for it.
pub fn gone(app: &App, name: &PodName, area: Rect, buf: &mut Buffer) {
    let draft = match app.composer.is_empty() {
        true => "",
        false => " Your draft stays in the line, and is sent to no Pod of this name.",
    };
    let text = format!("{}.{draft}", app.gone(name));
    let columns = text_area(area);
    let rows = wrap_text(&app.setup.glyphs.plain(&text), usize::from(columns.width).max(1));
    for (row, y) in rows.into_iter().zip(columns.y + 1..columns.bottom()) {
        buf.set_stringn(columns.x, y, row, columns.width.into(), app.theme.text);
    }
}

fn rows(app: &App, room: u16, label: usize) -> Vec<Line<'static>> {
    let room = usize::from(room).saturating_sub(label);
    let mut lines = Vec::new();
    for row in app.first_rows() {
        let style = app.theme.style(row.role);
        for (at, text) in row.text.lines().flat_map(|line| wrap_text(line, room)).enumerate() {
            let name = if at == 0 { row.label } else { "" };
            lines.push(Line::from(vec![Span::raw(pad(name, label)), Span::styled(text, style)]));
        }
    }
    lines
}

/// The Pods that did something last, as far as there is room for them.
fn recent(app: &App, area: Rect) -> Vec<Line<'static>> {
    let recent = app.recent();
    if recent.is_empty() {
        return Vec::new();
    }
    let names = recent.iter().map(|info| usize::from(columns(info.name.as_str()))).max();
    let names = names.unwrap_or(0).min(usize::from(area.width) / 3);
    let head = Line::from(vec![
        Span::styled("recent", app.theme.dim),
        Span::styled("   :open <pod> goes there", app.theme.dim),
    ]);
    let row = |info: &PodInfo| row_of(app, info, names, usize::from(area.width));
    [Line::default(), head].into_iter().chain(recent.into_iter().map(row)).collect()
}

fn row_of(app: &App, info: &PodInfo, names: usize, room: usize) -> Line<'static> {
    let sign = app.setup.glyphs.state_sign(info);
    let name = pad(&cut(info.name.as_str(), names), names);
    let cost = Cost { dollars: info.cost.unwrap_or_default(), unknown: false };
    let cost = model::cost(&cost);
    let right = format!("  {:>AGE$}  {cost:>6}", age::by_minute(info, app.now));
    let text = room.saturating_sub(names + width(&right) + 5);
    let said = cut(&said(app, info), text);
    Line::from(vec![
        Span::styled(format!("{} ", sign.shape), app.theme.style(sign.role)),
        Span::styled(format!("{name}   "), Style::new()),
        Span::styled(pad(&said, text), app.theme.dim),
        Span::styled(right, app.theme.dim),
    ])
}

/// What a Pod said last, else what it does or why it waits.
fn said(app: &App, info: &PodInfo) -> String {
    let is_over = matches!(info.state, State::Idle | State::Stopped);
    let last =
        info.activity.as_deref().map(plain).filter(|text| is_over && !text.trim().is_empty());
    let text = last.unwrap_or_else(|| {
        let now = now::of(info, &app.family, app.now, app.zone());
        now.text + &now.rest
    });
    SafeText::line(text.as_str()).into_string()
}
