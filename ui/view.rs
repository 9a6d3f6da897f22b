//! Paints a frame from the state of the app.

use crate::app::panes::{composer, inbox, peers, tree};
use crate::app::{App, Areas, Focus, Layer, Link};
use crate::keys::{Action, Context};
use crate::notice::Notice;
use crate::pane::glyph::Glyphs;
use crate::pane::inbox::waiting;
use crate::pane::tree::Workspaces;
use crate::pane::{actionbar, transcript};
use crate::rows::{columns, cut, wrap_text};
use crate::wording::model::cost;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::symbols::merge::MergeStrategy;
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Widget as _};
use yoi::protocol::{PodInfo, PodName};

mod header;
/// The links of a frame.
mod links;
mod popup;
mod wide;

pub use links::{Links, links};

/// Paints a frame of the size that the app has been told; a frame of another size stays empty.
pub fn draw(app: &App, frame: &mut Frame<'_>) {
    let size = frame.area();
    if (size.width, size.height) != app.size {
        return;
    }
    let areas = Areas::of(app);
    let ground = frame.area();
    frame.buffer_mut().set_style(ground, app.theme.text);
    frames(app, &areas, frame);
    if let Some(area) = areas.tree {
        tree(app).render(area, frame.buffer_mut());
    }
    if let Some(area) = areas.peers {
        peers(app).render(area, frame.buffer_mut());
    }
    if let Some(area) = areas.inbox {
        inbox(app).render(area, frame.buffer_mut());
    }
    if let Some(area) = areas.transcript {
        draw_transcript(app, app.shown(), Focus::Transcript, (areas.notes, area), frame);
    }
    if let Some(area) = areas.beside {
        draw_transcript(app, app.beside(), Focus::Beside, (areas.beside_notes, area), frame);
    }
    let caret = composer(app).render(areas.composer, frame.buffer_mut());
    let typed = bar(app, areas.bar, frame);
    selection(app, frame);
    let above = popup::draw(app, &areas, frame);
    if app.setup.glyphs == Glyphs::Ascii {
        plain(frame);
    }
    wide::fix_wide_cells(frame.buffer_mut());
    let caret = caret.filter(|_| app.focus == Focus::Composer && app.layers.is_empty());
    if let Some(position) = above.or(typed).or(caret) {
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
    for cell in &mut frame.buffer_mut().content {
        if let Some(sign) = Glyphs::sign(cell.symbol()) {
            cell.set_symbol(sign);
        }
    }
}

/// The frames of the panes; the one in focus is painted last, over shared lines.
fn frames(app: &App, areas: &Areas, frame: &mut Frame<'_>) {
    let Some(outer) = &areas.outer else {
        compact(app, areas, frame);
        return;
    };
    let panes = [
        (Focus::Transcript, outer.transcript, pod_title(app, app.shown(), outer.transcript)),
        (Focus::Composer, outer.composer, Line::default()),
    ];
    let more = [
        outer.tree.map(|area| (Focus::Tree, area, tree_title(app, area.width))),
        outer.beside.map(|area| (Focus::Beside, area, pod_title(app, app.beside(), area))),
        outer.peers.map(|area| (Focus::Peers, area, peers_title(app, area.width))),
        outer.inbox.map(|area| (Focus::Inbox, area, inbox_title(app, area.width))),
    ];
    let panes = panes.into_iter().chain(more.into_iter().flatten());
    let (rest, focused): (Vec<_>, Vec<_>) = panes.partition(|(focus, ..)| *focus != app.focus);
    for (focus, area, title) in rest.into_iter().chain(focused) {
        let style = if focus == app.focus { app.theme.border_focus } else { app.theme.border };
        Block::bordered()
            .border_set(app.setup.glyphs.frame())
            .merge_borders(MergeStrategy::Exact)
            .border_style(style)
            .title(title)
            .title_style(Style::new().remove_modifier(Modifier::BOLD))
            .render(area, frame.buffer_mut());
    }
}

fn pod_title(app: &App, name: Option<&PodName>, area: Rect) -> Line<'static> {
    header::title(app, name, area.width.saturating_sub(4))
}

fn tree_title(app: &App, width: u16) -> Line<'static> {
    let place = match app.tree.workspaces {
        Workspaces::All => "all Pods".to_owned(),
        Workspaces::This => {
            let name = app.setup.workspace.file_name().unwrap_or_default();
            format!("pods in {}", name.to_string_lossy())
        }
    };
    let marked = match app.tree.marks.all().len() {
        0 => String::new(),
        many => format!(" · {many} marked"),
    };
    let total = app.tree.cost(&app.family, app.current.as_ref());
    let spent = if total.dollars > 0.0 { format!(" · {}", cost(&total)) } else { String::new() };
    let text = app.setup.glyphs.plain(&format!("{place}{marked}{spent}"));
    let text = cut(&text, usize::from(width.saturating_sub(4)));
    Line::styled(format!(" {text} "), app.theme.dim)
}

fn peers_title(app: &App, width: u16) -> Line<'static> {
    let text = app.selected().map_or("peers".to_owned(), |name| {
        let agents = match app.family.agents_of(name).len() {
            0 => String::new(),
            1 => " · 1 agent".to_owned(),
            many => format!(" · {many} agents"),
        };
        format!("peers of {name}{agents}")
    });
    let text = app.setup.glyphs.plain(&text);
    let text = cut(&text, usize::from(width.saturating_sub(4)));
    Line::styled(format!(" {text} "), app.theme.dim)
}

fn inbox_title(app: &App, width: u16) -> Line<'static> {
    let waiting = waiting(&app.family);
    let key = app.keymap.label(Context::Everywhere, Action::NextNeedsYou);
    let text = match app.focus {
        Focus::Inbox => format!("inbox · {waiting}"),
        _ => format!("inbox · {waiting} · {key} goes there"),
    };
    let text = app.setup.glyphs.plain(&cut(&text, usize::from(width.saturating_sub(4))));
    Line::styled(format!(" {text} "), app.theme.needs)
}

/// A small screen has no frames: a header, and a rule above the composer.
fn compact(app: &App, areas: &Areas, frame: &mut Frame<'_>) {
    let screen = frame.area();
    if areas.header > 0 {
        let line = match app.focus {
            Focus::Tree => tree_title(app, screen.width + 4),
            Focus::Peers => peers_title(app, screen.width + 4),
            Focus::Inbox => inbox_title(app, screen.width + 4),
            Focus::Composer | Focus::Transcript | Focus::Beside => {
                header::title(app, app.shown(), screen.width)
            }
        };
        frame.buffer_mut().set_line(screen.x, screen.y, &line, screen.width);
    }
    if let Some(y) = areas.rule {
        let rule = Rect { y, height: 1, ..screen };
        let style =
            if app.focus == Focus::Composer { app.theme.border_focus } else { app.theme.border };
        Block::new()
            .borders(Borders::TOP)
            .border_set(app.setup.glyphs.frame())
            .border_style(style)
            .render(rule, frame.buffer_mut());
    }
}

/// Paints one transcript, with the row of its notes, into the pane that has the keys with `focus`.
fn draw_transcript(
    app: &App,
    name: Option<&PodName>,
    focus: Focus,
    (notes, area): (Option<Rect>, Rect),
    frame: &mut Frame<'_>,
) {
    let Some(name) = name else { return welcome(app, area, frame) };
    if let Some(row) = notes {
        header::notes(app, name, row, frame.buffer_mut());
    }
    let Some(transcript) = app.transcript_at(name) else { return };
    let parent = app.family.get(name).and_then(|info| info.parent.as_ref());
    transcript::View {
        transcript,
        theme: &app.theme,
        focused: app.focus == focus,
        pod: name.as_str(),
        parent: parent.map(|parent| parent.as_str()),
        family: &app.family,
    }
    .render(area, frame.buffer_mut());
    new_below(app, transcript, area, frame);
}

/// Writes on the line below the transcript how much is new below the view.
fn new_below(app: &App, transcript: &transcript::Transcript, area: Rect, frame: &mut Frame<'_>) {
    if transcript.is_at_tail() || area.bottom() >= frame.area().bottom() {
        return;
    }
    let new = transcript.new_below();
    let tail = app.keymap.label(Context::Everywhere, Action::Tail);
    let text = if new > 0 { format!(" ↓ {new} new ") } else { format!(" ↓ {tail} tail ") };
    let text = app.setup.glyphs.plain(&text);
    let width = columns(&text);
    if width + 2 < area.width {
        let (x, room) = (area.right() - width - 1, usize::from(width));
        frame.buffer_mut().set_stringn(x, area.bottom(), text, room, app.theme.accent);
    }
}

/// The text in place of a transcript while there is none.
fn welcome(app: &App, area: Rect, frame: &mut Frame<'_>) {
    let place = app.setup.cwd.display().to_string();
    let send = app.keymap.name(Context::Composer, Action::Send);
    let here = |info: &PodInfo| info.is_listed() && info.workspace == app.setup.workspace;
    let head = match app.family.all().iter().any(here) {
        true => "No Pod is open. :open <pod> shows one.",
        false => "No Pod works here yet.",
    };
    let does = match &app.setup.read_only {
        None => format!("reads and writes below\n{place}"),
        Some(why) => format!("reads here.\n{why}."),
    };
    let text = if app.family.is_known() {
        format!(
            "{head}\n\nSay what you want and press {send}: that makes a Pod that {does}\n\n:tour  plays a small real story, in a temporary directory\n\
             :help  lists the verbs\n:quit  leaves; Pods go on"
        )
    } else {
        "connecting to the host …".into()
    };
    let text = match text.split_once("\n\n:tour") {
        Some((head, tour)) if !app.first_lines().is_empty() => {
            let lines = app.first_lines();
            // The ways to connect a model name the tour already.
            let named = lines.iter().any(|line| line.trim_start().starts_with(":tour"));
            let verbs = match tour.split_once('\n') {
                Some((_, verbs)) if named => verbs.to_owned(),
                Some(_) | None => format!(":tour{tour}"),
            };
            format!("{head}\n\n{}\n{verbs}", lines.join("\n"))
        }
        Some(_) | None => text,
    };
    let lines = text.split('\n').flat_map(|line| {
        let wrapped = wrap_text(line, usize::from(area.width.saturating_sub(2)));
        if wrapped.is_empty() { vec![String::new()] } else { wrapped }
    });
    for (line, y) in lines.zip(area.y..area.bottom()) {
        let line = app.setup.glyphs.plain(&line);
        frame.buffer_mut().set_stringn(
            area.x + 1,
            y,
            line,
            usize::from(area.width.saturating_sub(1)),
            app.theme.dim,
        );
    }
}

fn bar(app: &App, area: Rect, frame: &mut Frame<'_>) -> Option<Position> {
    let prompt = match app.layers.top() {
        Some(Layer::Prompt(prompt)) => Some(prompt),
        _ => None,
    };
    // The hints for the next key are more important than a notice.
    let waits = app.leader || app.pinning.is_some();
    let hints = app.hints();
    let counts = app.counts();
    // Without a host, only the reason why it ended is worth the place of the hints.
    let of_host =
        |notice: &&Notice| app.link == Link::Up || app.host_notices.contains(&notice.text);
    let urgent = app.request_hint();
    let notice = app.notices.shown().filter(of_host).filter(|_| !waits);
    let view = actionbar::View {
        prompt,
        notice,
        hints: &hints,
        urgent: urgent.first(),
        counts: &counts,
        theme: &app.theme,
        glyphs: app.setup.glyphs,
    };
    view.render(area, frame.buffer_mut())
}

#[cfg(test)]
mod tests;
