//! Paints a frame from the state of the app.

use crate::screen::app::panes::{composer, page, peers, tree};
use crate::screen::app::{App, Areas, Focus, Heads, Layer, Link};
use crate::screen::keys::{Action, Context};
use crate::screen::notice::Notice;
use crate::screen::pane::glyph::Glyphs;
use crate::screen::pane::{actionbar, transcript};
use ratatui::Frame;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect};
use ratatui::widgets::Widget as _;
use yoi::protocol::PodName;

mod first;
mod heads;
/// The links of a frame.
mod links;
mod sheet;
mod wide;

pub use links::{Links, links};

/// Paints a frame of the size that the app has been told; a frame of another size stays empty.
pub fn draw(app: &App, frame: &mut Frame<'_>) {
    let size = frame.area();
    if (size.width, size.height) != app.size {
        return;
    }
    let areas = Areas::of(app);
    for cell in &mut frame.buffer_mut().content {
        cell.set_style(app.theme.text);
    }
    grounds(app, &areas, frame.buffer_mut());
    heads(app, &areas, frame.buffer_mut());
    if let Some(area) = areas.tree {
        tree(app).render(area, frame.buffer_mut());
    }
    if let Some(area) = areas.peers {
        peers(app).render(area, frame.buffer_mut());
    }
    if let Some(area) = areas.scope {
        heads::scope(app, area, frame.buffer_mut());
    }
    if let Some(area) = areas.page {
        page(app, area, frame.buffer_mut());
    }
    if let Some(area) = areas.transcript {
        let (notes, queue) = (areas.notes, areas.queue);
        draw_transcript(app, app.shown(), Focus::Transcript, (notes, area, queue), frame);
    }
    if let Some(area) = areas.beside {
        let (notes, queue) = (areas.beside_notes, areas.beside_queue);
        draw_transcript(app, app.beside(), Focus::Beside, (notes, area, queue), frame);
    }
    let caret = line(app, areas.composer, frame.buffer_mut());
    bar(app, areas.bar, frame.buffer_mut());
    sheet::card(app, &areas, frame);
    selection(app, frame);
    let above = sheet::draw(app, &areas, frame);
    if app.setup.glyphs == Glyphs::Ascii {
        plain(frame);
    }
    wide::fix_wide_cells(frame.buffer_mut());
    if let Some(position) = above.or(caret) {
        frame.set_cursor_position(position);
    }
}

/// Marks the text that the mouse selects.
fn selection(app: &App, frame: &mut Frame<'_>) {
    for row in app.selected_rows() {
        let (x, last) = (*row.columns.start(), *row.columns.end());
        let cells = Rect { x, y: row.y, width: last + 1 - x, height: 1 };
        frame.buffer_mut().set_style(cells, app.theme.selection);
    }
}

/// Replaces every shape that a terminal without UTF-8 cannot show.
fn plain(frame: &mut Frame<'_>) {
    let shapes = |cell: &&mut Cell| !cell.symbol().is_ascii();
    for cell in frame.buffer_mut().content.iter_mut().filter(shapes) {
        if let Some(sign) = Glyphs::sign(cell.symbol()) {
            cell.set_symbol(sign);
        }
    }
}

/// Paints the ground of the line and the rules. A screen without grounds has a rule above the line.
fn grounds(app: &App, areas: &Areas, buf: &mut Buffer) {
    buf.set_style(areas.composer, app.theme.raised);
    let rule = app.setup.glyphs.plain("│");
    for area in areas.rules.into_iter().flatten() {
        for y in area.y..area.bottom() {
            buf.set_stringn(area.x, y, &rule, 1, app.theme.rule);
        }
    }
    if let Some(area) = areas.rule {
        sheet::rule(app, area, buf);
    }
}

/// Paints the head of every pane.
fn heads(app: &App, areas: &Areas, buf: &mut Buffer) {
    let Heads { tree, peers, transcript, beside, page } = areas.heads;
    if let Some(area) = tree {
        heads::of_family(app, area, buf);
    }
    if let Some(area) = peers {
        heads::of_peers(app, area, buf);
    }
    if let Some(area) = page {
        heads::of_page(app, area, buf);
    }
    let transcripts =
        [(Focus::Transcript, app.shown(), transcript), (Focus::Beside, app.beside(), beside)];
    for (focus, name, area) in transcripts {
        if let Some(area) = area {
            let state =
                if areas.tree.is_none() { heads::State::Said } else { heads::State::InTree };
            heads::of_pod(app, name, (focus, state), area, buf);
        }
    }
}

/// Paints the line: what is typed, the keys that answer the card, or the draft. The caret stands in it while it has the
/// keys.
fn line(app: &App, area: Rect, buf: &mut Buffer) -> Option<Position> {
    if let Some(Layer::Prompt(prompt)) = app.layers.top() {
        return actionbar::prompt(prompt, area, buf, &app.theme, app.setup.glyphs);
    }
    if let Some(Layer::Key(line)) = app.layers.top() {
        let (sign, shown) = line.shown();
        return actionbar::unseen(&sign, &shown, area, buf, &app.theme, app.setup.glyphs);
    }
    if app.is_card_awake() {
        let counts = app.inbox.is_armed(app.now);
        let keys = if counts { app.theme.accent } else { app.theme.dim };
        actionbar::answers(&app.answers().0, keys, area, buf, &app.theme, app.setup.glyphs);
        return None;
    }
    let caret = composer(app).render(area, buf);
    caret.filter(|_| app.focus == Focus::Composer && app.layers.is_empty())
}

/// Paints one transcript, with the rows of its notes and its queue. `focus` is the pane that it stands in.
fn draw_transcript(
    app: &App,
    name: Option<&PodName>,
    focus: Focus,
    (notes, area, queue): (Option<Rect>, Rect, Option<Rect>),
    frame: &mut Frame<'_>,
) {
    let Some(name) = name else { return first::draw(app, area, frame.buffer_mut()) };
    if app.is_gone(name) {
        return first::gone(app, name, area, frame.buffer_mut());
    }
    if let Some(row) = notes {
        heads::notes(app, name, row, frame.buffer_mut());
    }
    let Some(transcript) = app.transcript_at(name) else { return };
    let info = app.family.get(name);
    let parent = info.and_then(|info| info.parent.as_ref());
    transcript::View {
        transcript,
        theme: &app.theme,
        focused: app.focus == focus,
        root: info.map_or(&app.setup.workspace, |info| &info.workspace),
        parent: parent.map(|parent| parent.as_str()),
        family: &app.family,
    }
    .render(area, frame.buffer_mut());
    if let Some((info, rows)) = info.zip(queue) {
        // Right below the last row, with an empty row between.
        let free = transcript.free_rows().saturating_sub(1);
        let rows = Rect { y: rows.y.saturating_sub(free), ..rows };
        transcript::Queue { info, theme: &app.theme }.render(rows, frame.buffer_mut());
    }
}

fn bar(app: &App, area: Rect, buf: &mut Buffer) {
    // The hints for the next key are more important than a notice.
    let waits = app.leader || app.pinning.is_some();
    let hints = app.hints();
    // Without a host, only the reason why it ended is worth the place of the hints.
    let of_host =
        |notice: &&Notice| app.link == Link::Up || app.host_notices.contains(&notice.text);
    let view = actionbar::View {
        notice: app.notices.shown().filter(of_host).filter(|_| !waits),
        behind: app.notices.behind(),
        hints: &hints,
        needs: app.needs().filter(|_| !app.has_card_of_need()),
        help: app.keymap.label(Context::Everywhere, Action::Help),
        theme: &app.theme,
        glyphs: app.setup.glyphs,
    };
    view.render(area, buf);
}

#[cfg(test)]
mod tests;
