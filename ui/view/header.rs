//! The header of a transcript: the Pod, its model, its address, its key and the reason for it, its state and since when, what it
//! has used, and its notes.

use crate::app::App;
use crate::keys::{Action, Context};
use crate::rows::{cut, width};
use crate::wording::age::age;
use crate::wording::wait;
use crate::wording::why::WayOn;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use std::path::{Path, PathBuf};
use yoi::protocol::family::Confined;
use yoi::protocol::{PodInfo, PodName};
use yoi::text::SafeText;

/// From this many columns on the provider of a model is named too.
const ROOMY: u16 = 100;

/// The rank of the model in the header.
const MODEL: u8 = 3;
/// The fewest columns that a shortened name of a model gets.
const LEAST: usize = 8;

/// A piece of the header; less important pieces are left out first.
struct Piece {
    text: String,
    style: Style,
    /// The lower, the longer it stays.
    rank: u8,
}

/// The header of a Pod, at most `room` columns wide.
pub fn title(app: &App, name: Option<&PodName>, room: u16) -> Line<'static> {
    let Some(name) = name else { return Line::styled(" yoi ", app.theme.dim) };
    let Some(info) = app.family.get(name) else {
        return Line::styled(format!(" {} ", cut(name.as_str(), usize::from(room))), app.theme.dim);
    };
    let mut pieces = pieces(app, info);
    let room = usize::from(room.saturating_sub(2));
    let separator = app.setup.glyphs.plain(" · ");
    let total = |pieces: &[Piece]| {
        let gaps = width(&separator) * pieces.len().saturating_sub(1);
        pieces.iter().map(|piece| width(&piece.text)).sum::<usize>() + gaps
    };
    while pieces.len() > 1 && total(&pieces) > room {
        let rank = pieces.iter().map(|piece| piece.rank).max().unwrap_or(0);
        let excess = total(&pieces) - room;
        // The name of a model says much by its beginning.
        if let Some(model) = pieces.iter_mut().find(|piece| rank == MODEL && piece.rank == MODEL)
            && let Some(left) = width(&model.text).checked_sub(excess).filter(|left| *left >= LEAST)
        {
            model.text = cut(&model.text, left);
            break;
        }
        pieces.retain(|piece| piece.rank != rank);
    }
    let mut spans = vec![Span::raw(" ")];
    for (i, piece) in pieces.iter().enumerate() {
        if i > 0 {
            spans.push(Span::styled(separator.clone(), app.theme.dim));
        }
        let text = app.setup.glyphs.plain(&cut(&piece.text, room));
        spans.push(Span::styled(text, piece.style));
    }
    spans.push(Span::raw(" "));
    Line::from(spans)
}

fn pieces(app: &App, info: &PodInfo) -> Vec<Piece> {
    let theme = &app.theme;
    let sign = app.setup.glyphs.state_sign(info);
    let piece = |text: String, style: Style, rank: u8| Piece { text, style, rank };
    let state = format!("{} {} {}", sign.shape, sign.word, age(info, app.now, app.zone()));
    let state = state.trim_end().to_owned();
    let mut pieces = vec![piece(info.name.to_string(), theme.agent, 0)];
    pieces.extend(elsewhere(app, info).map(|place| piece(place, theme.warn, 0)));
    match model(app, info) {
        Some(model) => pieces.push(piece(model, theme.dim, MODEL)),
        None => pieces.push(piece("no model".into(), theme.warn, 3)),
    }
    let sent = if info.effort_unsent.is_some() { " (not sent)" } else { "" };
    let effort = info.effort.map(|effort| format!("effort {}{sent}", effort.name()));
    pieces.extend(effort.map(|effort| piece(effort, theme.dim, 5)));
    pieces.extend(info.model_address.clone().map(|address| piece(address, theme.dim, 7)));
    pieces.extend(info.model_key.clone().map(|key| piece(key, theme.dim, 8)));
    if !info.model_why.is_empty() {
        pieces.push(piece(format!("({})", info.model_why), theme.dim, 9));
    }
    pieces.push(piece(state, theme.style(sign.role), 1));
    if info.context_window > 0 && info.context_tokens > 0 {
        let percent = info.context_tokens.saturating_mul(100) / info.context_window;
        let style = if percent >= 80 { theme.warn } else { theme.dim };
        // The tokens of the next request are estimated: one that does not fit is made shorter before it is sent.
        let full = if percent > 100 { "over 100%".into() } else { format!("{percent}%") };
        pieces.push(piece(format!("ctx {full}"), style, 4));
    }
    if let Some(cost) = info.cost {
        pieces.push(piece(format!("${cost:.2}"), theme.dim, 6));
    }
    if let Some(confined) = info.confined {
        let style = if confined == Confined::Enforced { theme.dim } else { theme.warn };
        pieces.push(piece(format!("sandbox {confined}"), style, 10));
    }
    pieces
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

/// The model as the header names it: without its provider where room is scarce, a script without
/// its directory.
fn model(app: &App, info: &PodInfo) -> Option<String> {
    if let Some(script) = info.model.strip_prefix("rehearsal:") {
        let name = script.rsplit('/').next().unwrap_or(script);
        return Some(format!("rehearsal:{name}"));
    }
    let short = info.model.split_once('/').map_or(info.model.as_str(), |(_, model)| model);
    let shown = if app.size.0 < ROOMY { short } else { &info.model };
    (!shown.is_empty()).then(|| shown.to_owned())
}

/// Why a Pod is in its state, what is to be known about the host, and the notes of the Pod.
fn sentences(app: &App, name: &PodName) -> Vec<(String, Style)> {
    let Some(info) = app.family.get(name) else { return Vec::new() };
    let sign = app.setup.glyphs.state_sign(info);
    let why = info.why.clone().into_iter().chain(way_on(app, info));
    let why = why.map(|why| (why, app.theme.style(sign.role)));
    let notes = info.notes.iter().map(|note| (note.clone(), app.theme.warn));
    let wait = wait::sentence(info, &app.family, app.now);
    let wait = wait.map(|wait| (wait, app.theme.style(sign.role)));
    let mistakes = app.mistakes.iter().map(|mistake| &mistake.text);
    let host = app.host_notices.iter().map(SafeText::to_string).chain(mistakes.cloned());
    let host = host.map(|note| (note, app.theme.warn));
    why.chain(wait).chain(host).chain(notes).collect()
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
