//! The heads of the panes: whose Pods the tree lists, which Pod a transcript is of, its model and what it has used. And the row
//! of its notes.

use crate::rows::{cut, cut_middle, width};
use crate::screen::app::{App, Areas, Focus};
use crate::screen::keys::{Action, Context};
use crate::screen::pane::transcript::Transcript;
use crate::screen::pane::tree::Workspaces;
use crate::wording::age::age;
use crate::wording::model::{context, cost, cost_alone};
use crate::wording::scope::may;
use crate::wording::why::WayOn;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use std::path::{Path, PathBuf};
use yoi::client::family::Cost;
use yoi::protocol::family::Confined;
use yoi::protocol::{LinesChanged, PodInfo, PodName, WorktreeInfo};
use yoi::text::SafeText;

/// From this many columns on the provider of a model is named too.
const ROOMY: u16 = 100;

/// The rank of the model in the head.
const MODEL: u8 = 3;
/// The rank of the words that say that commands are confined.
const SANDBOX: u8 = 5;
/// The fewest columns that a shortened name of a model gets.
const LEAST: usize = 8;

/// A piece of a head; less important pieces are left out first.
struct Piece {
    text: String,
    style: Style,
    /// The lower, the longer it stays.
    rank: u8,
    /// Shortens the text to a width.
    shorten: fn(&str, usize) -> String,
    /// A shorter text, which is shown before a piece of rank [`SANDBOX`] or less is left out.
    brief: Option<String>,
}

impl Piece {
    fn new(text: impl Into<String>, style: Style, rank: u8) -> Self {
        Self { text: text.into(), style, rank, shorten: cut, brief: None }
    }

    /// The name of a Pod, which is known by its beginning and its end.
    fn name(name: &str, style: Style) -> Self {
        Self { shorten: cut_middle, ..Self::new(name, style, 0) }
    }
}

/// Whether a head says the state of its Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The row in the tree says it.
    InTree,
    Said,
}

/// Paints the head of the tree: whose Pods it lists, how many are marked, and on the right how many failed, rest paused and
/// run, and what all cost.
pub fn of_family(app: &App, area: Rect, buf: &mut Buffer) {
    let place = match app.tree.workspaces {
        Workspaces::All => "all workspaces".to_owned(),
        Workspaces::This => {
            let name = app.setup.workspace.file_name().unwrap_or_default();
            SafeText::line(name.to_string_lossy()).into_string()
        }
    };
    let left = vec![Piece::new(place, name_style(app, Focus::Tree), 0)];
    let marked = app.tree.marks.all().len();
    let counts = app.counts().into_iter().zip(MODEL + 1..);
    let mut right: Vec<Piece> =
        counts.map(|((text, role), rank)| Piece::new(text, app.theme.style(role), rank)).collect();
    if marked > 0 {
        right.insert(0, Piece::new(format!("{marked} marked"), app.theme.accent, 0));
    }
    let total = app.tree.cost(&app.family, app.current.as_ref());
    right.extend((total.dollars > 0.0).then(|| Piece::new(cost(&total), app.theme.dim, u8::MAX)));
    head(app, left, right, area, buf);
}

/// Paints the head of the peers.
pub fn of_peers(app: &App, area: Rect, buf: &mut Buffer) {
    let text = app.pod_read().map_or("peers".to_owned(), |name| format!("peers of {name}"));
    let style = if app.focus == Focus::Peers { app.theme.accent } else { app.theme.dim };
    let agents = app.pod_read().map_or(0, |name| app.family.agents_of(name).len());
    let agents = match agents {
        0 => None,
        1 => Some("1 agent".to_owned()),
        many => Some(format!("{many} agents")),
    };
    let right = agents.map(|agents| Piece::new(agents, app.theme.dim, 0)).into_iter().collect();
    head(app, vec![Piece::new(text, style, 0)], right, area, buf);
}

/// Paints what the selected Pod may write and read.
pub fn scope(app: &App, area: Rect, buf: &mut Buffer) {
    let Some(info) = app.pod_read().and_then(|name| app.family.get(name)) else { return };
    let text = cut(&app.setup.glyphs.plain(&may(info)), area.width.into());
    buf.set_stringn(area.x, area.y, text, area.width.into(), app.theme.dim);
}

/// Paints the head of the page: its title, its figures, of which the last go first, and the key that shows more of it. It says where a message goes that is
/// for another workspace than this screen's.
pub fn of_page(app: &App, area: Rect, buf: &mut Buffer) {
    let Some((title, figures)) = app.page_title() else { return };
    let figures = figures.into_iter().zip(1..);
    let figures = figures.map(|(text, rank)| Piece::new(text, app.theme.dim, rank));
    let far = app.info().and_then(|info| Some(format!("{} {}", info.name, elsewhere(app, info)?)));
    let far = far.map(|place| Piece::new(format!("to {place}"), app.theme.warn, 0));
    let left = vec![Piece::new(title, name_style(app, Focus::Page), 0)];
    let below = app.page_goes_on().then(|| {
        let key = app.keymap.label(Context::Everywhere, Action::PageDown);
        Piece::new(format!("↓ {key}"), app.theme.accent, 0)
    });
    head(app, left, far.into_iter().chain(figures).chain(below).collect(), area, buf);
}

/// Paints the head of a transcript: the Pod below its ancestors, and on the right its model and what it has used. A Pod
/// that the tree does not show says its state.
pub fn of_pod(
    app: &App,
    name: Option<&PodName>,
    (focus, state): (Focus, State),
    area: Rect,
    buf: &mut Buffer,
) {
    let style = name_style(app, focus);
    let info = name.and_then(|name| app.family.get(name));
    let Some(info) = info else {
        let Some(name) = name else { return title(app, area, buf) };
        let gone = app.is_gone(name).then(|| Piece::new("removed", app.theme.warn, 0));
        let right = gone.into_iter().collect();
        return head(app, vec![Piece::name(name.as_str(), style)], right, area, buf);
    };
    let mut left = vec![Piece::name(info.name.as_str(), style)];
    let above: Vec<&str> = app.family.lineage(info).into_iter().map(PodName::as_str).collect();
    if !above.is_empty() {
        left.insert(0, Piece::new(above.join(" › "), app.theme.dim, 2));
    }
    let mut right = pieces(app, info);
    if state == State::Said {
        let sign = app.setup.glyphs.state_sign(info);
        let text = format!("{} {} {}", sign.shape, sign.word, age(info, app.now));
        right.insert(0, Piece::new(text.trim_end(), app.theme.style(sign.role), 1));
    }
    let tail = app.transcript_at(&info.name).and_then(|transcript| below(app, transcript));
    right.extend(tail);
    head(app, left, right, area, buf);
}

/// Paints what the program is, in place of the head of a Pod.
fn title(app: &App, area: Rect, buf: &mut Buffer) {
    let is = "A family of agents, what needs you first, and walls around each.";
    let margin = if area.width < 60 { " " } else { "   " };
    let name = app.theme.text.add_modifier(Modifier::BOLD);
    let spans = vec![
        Span::raw(margin),
        Span::styled("yoi", name),
        Span::styled(format!("   {is}"), app.theme.dim),
    ];
    buf.set_line(area.x, area.y, &Line::from(spans), area.width);
}

/// How much is new below the view of a transcript, or the key to its end.
fn below(app: &App, transcript: &Transcript) -> Option<Piece> {
    if transcript.is_at_tail() {
        return None;
    }
    let text = match transcript.new_below() {
        0 => format!("↓ {} tail", app.keymap.label(Context::Everywhere, Action::Tail)),
        new => format!("↓ {new} new"),
    };
    Some(Piece::new(text, app.theme.accent, 0))
}

/// The look of the name in the head of a pane.
fn name_style(app: &App, focus: Focus) -> Style {
    let style = if app.focus == focus { app.theme.accent } else { Style::new() };
    style.add_modifier(Modifier::BOLD)
}

/// Paints one head: what it names on the left, and numbers on the right.
fn head(app: &App, mut left: Vec<Piece>, mut right: Vec<Piece>, area: Rect, buf: &mut Buffer) {
    let room = usize::from(area.width.saturating_sub(2));
    let glyphs = app.setup.glyphs;
    let (within, between) = (glyphs.plain(" › "), glyphs.plain(" · "));
    let total = |pieces: &[Piece], gap: &str| {
        let gaps = width(gap) * pieces.len().saturating_sub(1);
        pieces.iter().map(|piece| width(&piece.text)).sum::<usize>() + gaps
    };
    let used = |left: &[Piece], right: &[Piece]| {
        let gap = if right.is_empty() { 0 } else { 2 };
        total(left, &within) + gap + total(right, &between)
    };
    while used(&left, &right) > room {
        let rank = left.iter().chain(&right).map(|piece| piece.rank).max().unwrap_or(0);
        if rank == 0 {
            break;
        }
        if rank <= SANDBOX
            && let Some(piece) = right.iter_mut().find(|piece| piece.brief.is_some())
        {
            piece.text = piece.brief.take().unwrap_or_default();
            continue;
        }
        let excess = used(&left, &right) - room;
        // The name of a model says much by its beginning.
        if let Some(model) = right.iter_mut().find(|piece| rank == MODEL && piece.rank == MODEL)
            && let Some(least) =
                width(&model.text).checked_sub(excess).filter(|left| *left >= LEAST)
        {
            model.text = cut(&model.text, least);
            break;
        }
        left.retain(|piece| piece.rank != rank);
        right.retain(|piece| piece.rank != rank);
    }
    let line = |pieces: Vec<Piece>, gap: &str, mut room: usize| {
        let mut spans = Vec::new();
        for piece in pieces {
            let gap = if spans.is_empty() { "" } else { gap };
            if room <= width(gap) {
                break;
            }
            let text = (piece.shorten)(&glyphs.plain(&piece.text), room - width(gap));
            room = room.saturating_sub(width(gap) + width(&text));
            spans.push(Span::styled(gap.to_owned(), app.theme.dim));
            spans.push(Span::styled(text, piece.style));
        }
        Line::from(spans)
    };
    // The name keeps its first columns beside whatever stands on the right.
    let named = left.last().map_or(0, |piece| width(&piece.text).min(LEAST) + 2);
    let right = line(right, &between, room.saturating_sub(named));
    let wide = right.width();
    let beside = room.saturating_sub(if wide == 0 { 0 } else { wide + 2 });
    let left = line(left, &within, beside);
    buf.set_line(area.x + 1, area.y, &left, area.width.saturating_sub(1));
    let x = area.right().saturating_sub(u16::try_from(wide + 1).unwrap_or(area.width)).max(area.x);
    buf.set_line(x, area.y, &right, area.right() - x);
}

fn pieces(app: &App, info: &PodInfo) -> Vec<Piece> {
    let theme = &app.theme;
    let piece = |text: String, style: Style, rank: u8| Piece::new(text, style, rank);
    let elsewhere = elsewhere(app, info).map(|place| piece(place, theme.warn, 0));
    let mut pieces: Vec<Piece> = elsewhere.into_iter().collect();
    match model(app, info) {
        Some((model, brief)) => {
            pieces.push(Piece { brief: Some(brief), ..piece(model, theme.dim, MODEL) });
        }
        None => pieces.push(piece("no model".into(), theme.warn, 0)),
    }
    let sent = if info.effort_unsent.is_some() { " (not sent)" } else { "" };
    let effort = info.effort.map(|effort| format!("effort {}{sent}", effort.name()));
    pieces.extend(effort.map(|effort| piece(effort, theme.dim, 6)));
    pieces.extend(info.model_address.clone().map(|address| piece(address, theme.dim, 8)));
    pieces.extend(info.model_key.clone().map(|key| piece(key, theme.dim, 9)));
    if !info.model_why.is_empty() {
        pieces.push(piece(format!("({})", info.model_why), theme.dim, 10));
    }
    if let Some((full, role)) = context(info) {
        pieces.push(piece(format!("ctx {full}"), theme.style(role), 4));
    }
    if info.cost.is_some() {
        pieces.push(piece(cost_alone(&Cost::of(info)), theme.dim, 7));
    }
    pieces.extend(info.worktree.as_ref().map(|tree| piece(worktree(tree), theme.dim, 3)));
    if info.jobs > 0 {
        let jobs = if info.jobs == 1 { "job" } else { "jobs" };
        pieces.push(piece(format!("{} {jobs}", info.jobs), theme.dim, 5));
    }
    if let Some(confined) = info.confined {
        let (style, rank) = match confined {
            Confined::Enforced => (theme.dim, SANDBOX),
            Confined::Partly => (theme.warn, SANDBOX),
            Confined::NotEnforced => (theme.warn, 0),
        };
        pieces.push(piece(format!("sandbox {confined}"), style, rank));
    }
    pieces
}

/// The branch of a Pod's working tree and the lines that changed since its start: `wt:fix-login +3 −1`.
fn worktree(tree: &WorktreeInfo) -> String {
    let branch = SafeText::line(&tree.branch);
    match tree.lines {
        Some(LinesChanged { added: 0, removed: 0 }) | None => format!("wt:{branch}"),
        Some(LinesChanged { added, removed }) => format!("wt:{branch} +{added} −{removed}"),
    }
}

/// The workspace of a Pod that works in another one than this screen: its name, with as many folders above it as tell the
/// two apart.
fn elsewhere(app: &App, info: &PodInfo) -> Option<String> {
    let (theirs, ours) = (&info.workspace, &app.setup.workspace);
    // Of a damaged record the workspace may be lost.
    if theirs == ours || theirs.as_os_str().is_empty() {
        return None;
    }
    let parts = theirs.iter().count();
    let end = |path: &Path, parts: usize| -> PathBuf {
        path.iter().skip(path.iter().count().saturating_sub(parts)).collect()
    };
    let enough = (1..parts).find(|parts| end(theirs, *parts) != end(ours, *parts));
    Some(format!("in {}", end(theirs, enough.unwrap_or(parts)).display()))
}

/// The model as the head names it, and the same where room is scarce, without its provider. A script has no directory.
fn model(app: &App, info: &PodInfo) -> Option<(String, String)> {
    if let Some(script) = info.model.strip_prefix("rehearsal:") {
        let name = script.rsplit('/').next().unwrap_or(script);
        let name = format!("rehearsal:{name}");
        return Some((name.clone(), name));
    }
    let short = info.model.split_once('/').map_or(info.model.as_str(), |(_, model)| model);
    let shown = if app.size.0 < ROOMY { short } else { &info.model };
    (!shown.is_empty()).then(|| (shown.to_owned(), short.to_owned()))
}

/// Why a Pod is in its state, what is to be known about the host, and the notes of the Pod.
fn sentences(app: &App, name: &PodName) -> Vec<(String, Style)> {
    let Some(info) = app.family.get(name) else { return Vec::new() };
    let sign = app.setup.glyphs.state_sign(info);
    let why = app.reasons_of(info).chain(way_on(app, info));
    let why = why.map(|why| (why, app.theme.style(sign.role)));
    let is_shown = |_: &&String| Areas::are_beside_each_other(app);
    let notes = info.notes.iter().filter(is_shown).map(|note| (note.clone(), app.theme.warn));
    let mistakes = app.mistakes.iter().map(|mistake| &mistake.text);
    let host = app.host_notices.iter().map(SafeText::to_string).chain(mistakes.cloned());
    let host = host.map(|note| (note, app.theme.warn));
    why.chain(host).chain(notes).collect()
}

/// How the person continues with a Pod that rests: by a key where that means this Pod and no text is
/// written, else by a verb.
fn way_on(app: &App, info: &PodInfo) -> Option<String> {
    let way = WayOn::of(info)?;
    if app.current.as_ref() != Some(&info.name) {
        let line = format!(":resume {}", info.name);
        return Some(way.by(&line, &info.name));
    }
    let send = app.keymap.name(Context::Composer, Action::Send);
    app.composer.is_empty().then(|| way.by(&send, &info.name))
}

/// Paints the notes of a Pod into one row.
pub fn notes(app: &App, name: &PodName, area: Rect, buf: &mut Buffer) {
    let mut spans = Vec::new();
    let mut room = usize::from(area.width.saturating_sub(2));
    for (i, (text, style)) in sentences(app, name).into_iter().enumerate() {
        let between = app.setup.glyphs.plain(if i > 0 { " · " } else { " " });
        if room <= width(&between) + 1 {
            break;
        }
        room -= width(&between);
        let text = app.setup.glyphs.plain(&cut(&text, room));
        room -= width(&text).min(room);
        spans.push(Span::styled(between, app.theme.dim));
        spans.push(Span::styled(text, style));
    }
    buf.set_line(area.x, area.y, &Line::from(spans), area.width);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_names_the_branch_of_a_working_tree_and_the_lines_that_changed() {
        let lines = |added, removed| Some(LinesChanged { added, removed });
        let shown = |branch: &str, lines| {
            worktree(&WorktreeInfo { path: "/t".into(), branch: branch.into(), lines })
        };
        assert_eq!(shown("fix-login", lines(3, 1)), "wt:fix-login +3 −1");
        assert_eq!(shown("fix-login", lines(0, 2)), "wt:fix-login +0 −2");
        assert_eq!([shown("a", lines(0, 0)), shown("a", None)], ["wt:a", "wt:a"]);
    }
}
