//! The panes as widgets, made from the state: `view` paints them, and the mouse and the keys use them to
//! find the row or item at a place.

use crate::screen::app::{App, Focus, Link};
use crate::screen::keys::{Action, Context};
use crate::screen::pane::{self, composer, inbox, peers, tree};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use yoi::text::SafeText;

/// The tree as it is painted now.
pub fn tree(app: &App) -> tree::View<'_> {
    tree::View {
        tree: &app.tree,
        family: &app.family,
        current: app.current.as_ref(),
        theme: &app.theme,
        zone: app.zone(),
        now: app.now,
        focused: app.focus == Focus::Tree,
        workspaces_key: app.keymap.name(Context::Tree, Action::Workspaces),
    }
}

/// The peers as they are painted now.
pub fn peers(app: &App) -> peers::View<'_> {
    peers::View {
        peers: &app.peers,
        family: &app.family,
        of: app.pod_read(),
        theme: &app.theme,
        glyphs: app.setup.glyphs,
        now: app.now,
        focused: app.focus == Focus::Peers,
    }
}

/// The card as it is painted now.
pub fn card(app: &App) -> inbox::View<'_> {
    inbox::View {
        inbox: &app.inbox,
        items: app.items(),
        family: &app.family,
        workspace: &app.setup.workspace,
        current: app.current.as_ref(),
        theme: &app.theme,
        glyphs: app.setup.glyphs,
        keymap: &app.keymap,
        now: app.now,
        has_keys: app.focus == Focus::Inbox && app.rule_said().is_none(),
    }
}

/// Paints the page, if one is open.
pub fn page(app: &App, area: Rect, buf: &mut Buffer) {
    let Some(place) = app.page_place() else { return };
    let view = pane::page::View {
        rows: &app.page_rows(area.width),
        place,
        theme: &app.theme,
        glyphs: app.setup.glyphs,
        focused: app.focus == Focus::Page,
    };
    view.render(area, buf);
}

/// Below this many columns the line does not name the workspace of a new Pod.
const NARROW: u16 = 60;

/// The composer as it is painted now.
pub fn composer(app: &App) -> composer::View<'_> {
    let here = || app.setup.workspace.file_name().unwrap_or_default().to_string_lossy();
    let new = || match &app.initial_pod {
        Some(name) => format!("{name} (new)"),
        None if here().is_empty() || app.size.0 < NARROW => "new Pod".into(),
        None => format!("new Pod in {}", SafeText::line(here())),
    };
    let to = app.current.as_ref().map_or_else(new, ToString::to_string);
    composer::View {
        composer: &app.composer,
        to,
        placeholder: placeholder(app),
        theme: &app.theme,
        glyphs: app.setup.glyphs,
        focused: app.focus == Focus::Composer && app.layers.is_empty(),
    }
}

fn placeholder(app: &App) -> String {
    let send = || app.keymap.name(Context::Composer, Action::Send);
    match (&app.current, app.link) {
        (_, Link::Ended) => format!("the host ended; {} starts it again", send()),
        (Some(_), _) if app.family.is_known() && app.info().is_none() => {
            "was removed; choose a Pod".into()
        }
        (Some(_), _) => String::new(),
        (None, _) => "say what you want".into(),
    }
}
