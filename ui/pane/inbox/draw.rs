//! The inbox on screen: a row for each item, and below the chosen one its details.

use crate::family::Family;
use crate::keys::{Action, Context, Keymap};
use crate::pane::glyph::Glyphs;
use crate::pane::inbox::{Attention, Author, Extent, Inbox, Item, Matter, items, needs};
use crate::rows::{cut, cut_middle, pad, right, width, wrap_text};
use crate::theme::{Role, Theme};
use crate::wording::duration::elapsed;
use crate::wording::now::again;
use crate::wording::rule::{ONCE_ONLY, limit, pattern};
use crate::wording::{question, scope, state};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use yoi::protocol::{ApprovalRequest, PodInfo, START_SERVER};
use yoi::scope::Rule;
use yoi::text::SafeText;

/// Rows of the action that are shown before the item is unfolded.
const BRIEF: usize = 3;
/// The most rows of items while the inbox has no focus.
const LISTED: usize = 3;
/// From this many rows on, the last one says how many more there are.
const NOTED: usize = 3;
/// The columns of the names of facts.
const NAMES: usize = 11;
/// The fewest columns in which a request can be read: its rows stand four columns further in.
const NARROWEST: u16 = 12;
/// The columns of the age.
const AGE: usize = 5;

/// The rows of the details of the chosen item; the rows of the action come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// The index of the first row in view, and the number of rows in view.
    pub first: usize,
    pub shown: usize,
    pub all: usize,
    /// How many rows the whole action has.
    pub action: usize,
    pub cut: Cut,
}

/// Whether rows of the action are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    #[default]
    Whole,
    Brief,
}

/// The inbox as a widget.
pub struct View<'a> {
    pub inbox: &'a Inbox,
    pub family: &'a Family,
    pub theme: &'a Theme,
    pub glyphs: Glyphs,
    pub keymap: &'a Keymap,
    pub now: u64,
    pub attention: Attention,
}

impl View<'_> {
    /// The items that have rows: without the keys, only those that wait for a person.
    fn listed(&self) -> Vec<Item<'_>> {
        match self.attention {
            Attention::Elsewhere => needs(self.family),
            Attention::Here => items(self.family),
        }
    }

    /// How many rows it needs at this width.
    pub fn height(&self, columns: u16) -> usize {
        let items = self.listed();
        match self.attention {
            Attention::Elsewhere => items.len().min(LISTED + 1),
            Attention::Here => {
                let chosen = self.inbox.chosen(&items);
                items.len() + chosen.map_or(0, |item| self.details(item, columns.into()).len())
            }
        }
    }

    /// Which rows of the chosen item are in view.
    pub fn sight(&self, area: Rect) -> Sight {
        let items = items(self.family);
        let columns = usize::from(area.width);
        let Some(item) = self.inbox.chosen(&items) else { return Sight::default() };
        let all = self.details(item, columns).len();
        let action = item
            .approvals()
            .first()
            .map_or(0, |approval| action(approval, columns, self.glyphs).len());
        let first = self.inbox.scrolled.min(all);
        // Below this width no word of the action has room.
        let height = if area.width < NARROWEST { 0 } else { area.height };
        let shown = in_view(all - first, usize::from(height));
        let most = item.approvals().first().map_or(BRIEF, |approval| brief_rows(approval));
        let brief = self.inbox.extent == Extent::Brief && action > most;
        Sight { first, shown, all, action, cut: if brief { Cut::Brief } else { Cut::Whole } }
    }

    /// The item at row `y` of the pane, from 0.
    pub fn item_at(&self, y: u16, area: Rect) -> Option<usize> {
        let items = self.listed();
        self.rows(&items, area).get(usize::from(y)).and_then(|(_, item)| *item)
    }

    /// Every row with the item whose head it is, as many as there is room for.
    fn rows(&self, items: &[Item<'_>], area: Rect) -> Vec<(Line<'static>, Option<usize>)> {
        let (columns, height) = (usize::from(area.width), usize::from(area.height));
        let head = |at: usize| (self.head(&items[at], columns), Some(at));
        if self.attention == Attention::Elsewhere {
            let shown = if items.len() > height { height.saturating_sub(1) } else { items.len() };
            let mut rows: Vec<_> = (0..shown).map(head).collect();
            if items.len() > shown && height > 0 {
                let more = format!("  +{} more", items.len() - shown);
                rows.push((Line::styled(more, self.theme.needs), None));
            }
            return rows;
        }
        let at = self.inbox.position(items);
        let details = items.get(at).map(|item| self.details(item, columns)).unwrap_or_default();
        let details = self.in_view(details, height);
        // The chosen item is shown whole before other items get a row.
        let room = height.saturating_sub(1 + details.len());
        let before = at.min(room);
        let after = (items.len() - at.min(items.len())).saturating_sub(1).min(room - before);
        let first = at - before;
        let mut rows: Vec<_> = (first..items.len().min(at + 1)).map(head).collect();
        rows.extend(details.into_iter().map(|line| (line, None)));
        rows.extend((at + 1..at + 1 + after).map(head));
        rows.truncate(height);
        rows
    }

    /// The rows of the details that there is room for below a head, the last of which says how many
    /// more there are.
    fn in_view(&self, details: Vec<Line<'static>>, height: usize) -> Vec<Line<'static>> {
        let first = self.inbox.scrolled.min(details.len());
        let left = details.len() - first;
        let shown = in_view(left, height);
        let mut rows: Vec<_> = details.into_iter().skip(first).take(shown).collect();
        if shown < left && shown + 1 < height {
            rows.push(self.fact("", &more_below(left - shown, self.keymap), usize::MAX));
        }
        rows
    }

    fn head(&self, item: &Item<'_>, columns: usize) -> Line<'static> {
        let age = right(&elapsed(self.now.saturating_sub(item.since())), AGE);
        let needs = self.glyphs.pick("▲", "!");
        let (shape, role, from, what) = match item {
            Item::Approval(approvals) => {
                (needs, Role::Needs, requesters(approvals), brief(approvals))
            }
            Item::Pod(info, matter) => {
                let (shape, role) = match matter {
                    Matter::Needs => (needs, Role::Needs),
                    Matter::Failed => (self.glyphs.state_sign(info).shape, Role::Error),
                    Matter::InCircles => (self.glyphs.state_sign(info).shape, Role::Warn),
                };
                (shape, role, below_parent(info), why(info, *matter))
            }
        };
        let shape = format!("{shape} ");
        let room = columns.saturating_sub(width(&shape) + AGE + 1);
        let from = cut_middle(&self.glyphs.plain(&from), room / 2);
        let rest = room.saturating_sub(width(&from) + 2);
        let what = pad(&self.glyphs.plain(&SafeText::spelled(what)), rest);
        Line::from(vec![
            Span::styled(shape, self.theme.style(role)),
            Span::styled(from, Style::new().add_modifier(Modifier::BOLD)),
            Span::raw(format!("  {what}")),
            Span::styled(format!(" {age}"), self.theme.dim),
        ])
    }

    /// The details that a person needs to decide.
    fn details(&self, item: &Item<'_>, columns: usize) -> Vec<Line<'static>> {
        let room = columns.saturating_sub(4).max(1);
        let approval = match item {
            Item::Approval(approvals) => approvals.first(),
            Item::Pod(info, matter) => return self.details_of_pod(info, *matter, room),
        };
        let Some(approval) = approval else { return Vec::new() };
        let mut lines = Vec::new();
        let all = action(approval, columns, self.glyphs);
        let whole = self.inbox.extent == Extent::Whole;
        let shown = if whole { all.len() } else { all.len().min(brief_rows(approval)) };
        for line in &all[..shown] {
            let line = Span::styled(line.clone(), self.theme.code);
            lines.push(Line::from(vec![Span::raw("    "), line]));
        }
        if shown < all.len() {
            let unfold = self.keymap.name(Context::Inbox, Action::Unfold);
            let more = format!("… {} more lines: {unfold} shows them", all.len() - shown);
            lines.push(self.fact("", &more, room));
        }
        lines.extend(self.equal_requests(
            item.approvals().len(),
            approval.question.is_some(),
            room,
        ));
        for (name, value) in self.facts(item, approval) {
            for (i, line) in wrap_text(&value, room.saturating_sub(NAMES)).into_iter().enumerate() {
                lines.push(self.fact(if i == 0 { name } else { "" }, &line, room));
            }
        }
        let rule = self.rule(item).into_iter().chain(for_every_pod(approval));
        let rule = rule.flat_map(|rule| wrap_text(&self.glyphs.plain(&rule), room));
        lines.extend(rule.map(|row| Line::raw(format!("    {row}"))));
        lines
    }

    /// Why a Pod without a request is here, in full.
    fn details_of_pod(&self, info: &PodInfo, matter: Matter, room: usize) -> Vec<Line<'static>> {
        let open = self.keymap.name(Context::Inbox, Action::OpenPod);
        let text = match matter {
            Matter::Needs => format!("nothing to allow here: {open} goes there"),
            Matter::Failed | Matter::InCircles => why(info, matter),
        };
        let rows = wrap_text(&self.glyphs.plain(&SafeText::spelled(text)), room).into_iter();
        rows.map(|row| Line::raw(format!("    {row}"))).collect()
    }

    /// How many equal requests the row stands for, and the keys that allow one or all of them.
    fn equal_requests(
        &self,
        count: usize,
        is_question: bool,
        room: usize,
    ) -> Option<Line<'static>> {
        let key = |action| self.keymap.name(Context::Inbox, action);
        let (one, each) = (key(Action::AllowOnce), key(Action::AllowEach));
        let text = match is_question {
            true => {
                format!("{count} equal questions: {one} answers the oldest, {each} each of them")
            }
            false => {
                format!("{count} equal requests: {one} allows the oldest, {each} each of them")
            }
        };
        let text = self.glyphs.plain(&cut(&text, room));
        (count > 1).then(|| Line::raw(format!("    {text}")))
    }

    /// The rule that allowing always would write, with the keys that do so.
    fn rule(&self, item: &Item<'_>) -> Option<String> {
        if item.approvals().iter().any(|approval| approval.question.is_some()) {
            return None;
        }
        if item.approvals().iter().any(|approval| approval.is_once_only()) {
            return Some(ONCE_ONLY.into());
        }
        let (rule, author) = self.inbox.rule(item.approvals())?;
        let key = |action| self.keymap.name(Context::Inbox, action);
        let (pod, tree) = (key(Action::AllowPod), key(Action::AllowTree));
        let yours = if author == Author::Person { " (yours)" } else { "" };
        if item.approvals().iter().any(|approval| approval.client.is_some()) {
            return Some(format!("{pod} would allow this client {}", pattern(rule)));
        }
        let limit = limit(rule).map(|limit| format!(" ({limit})")).unwrap_or_default();
        Some(format!("{pod} and {tree} would allow {}{yours}{limit}", pattern(rule)))
    }

    fn facts(&self, item: &Item<'_>, approval: &ApprovalRequest) -> Vec<(&'static str, String)> {
        let whole = self.inbox.extent == Extent::Whole;
        let mut facts = match &approval.question {
            Some(asked) => vec![("wants", question::wants(asked))],
            None => vec![("needs", spelled(&approval.because))],
        };
        facts.extend(approval.lease.iter().map(|lease| ("opens", self.opens(lease))));
        let command = |path| format!("{}, for this command only", scope::outside(path));
        facts.extend(approval.outside.iter().map(|path| ("opens", command(path))));
        facts.extend(approval.scripts.iter().map(|script| scope::hashed(approval, script)));
        facts.extend(approval.reason.iter().map(|reason| ("model says", spelled(reason))));
        if whole || item.approvals().len() > 1 {
            facts.push(("asked by", lineages(item.approvals())));
        }
        if whole {
            facts.push(("scope", scope::rules(&approval.scope)));
        }
        facts
    }

    /// The access outside the scope that an approval grants, and how long with each key.
    fn opens(&self, lease: &Rule) -> String {
        let key = |action| self.keymap.name(Context::Inbox, action);
        let (once, pod, tree) =
            (key(Action::AllowOnce), key(Action::AllowPod), key(Action::AllowTree));
        let rule = scope::rule(lease);
        format!(
            "{rule}, with {once} for this call only, with {pod} or {tree} until it is revoked or the pod stops"
        )
    }

    fn fact(&self, name: &str, value: &str, room: usize) -> Line<'static> {
        let value = cut(&self.glyphs.plain(value), room.saturating_sub(NAMES));
        Line::from(vec![
            Span::styled(format!("    {name:<NAMES$}"), self.theme.dim),
            Span::raw(value),
        ])
    }

    pub fn render(&self, area: Rect, buf: &mut Buffer) {
        let items = self.listed();
        if items.is_empty() && area.height > 0 {
            let columns = usize::from(area.width);
            buf.set_stringn(area.x, area.y, "nothing needs you", columns, self.theme.dim);
        }
        let chosen = self.inbox.position(&items);
        for ((line, item), y) in self.rows(&items, area).into_iter().zip(area.y..area.bottom()) {
            buf.set_line(area.x, y, &line, area.width);
            if self.attention == Attention::Here && item == Some(chosen) {
                buf.set_style(Rect { y, height: 1, ..area }, self.theme.selection);
            }
        }
    }
}

/// How many of `rows` are in view below a head. If some are left out and there is room, one row is kept
/// for the number of the others.
pub fn in_view(rows: usize, height: usize) -> usize {
    let room = height.saturating_sub(1);
    if rows <= room {
        return rows;
    }
    if room >= NOTED { room - 1 } else { room }
}

/// How many rows are below those in view, and the key that shows them.
pub fn more_below(rows: usize, keymap: &Keymap) -> String {
    let down = keymap.name(Context::Everywhere, Action::PageDown);
    let lines = if rows == 1 { "line" } else { "lines" };
    format!("… {rows} more {lines}: {down}")
}

/// How many rows of the action are shown before the item is unfolded. The start of a server is decided by its
/// definition, which is short and shown whole; so is a question.
fn brief_rows(approval: &ApprovalRequest) -> usize {
    let is_whole = approval.tool == START_SERVER || approval.question.is_some();
    if is_whole { usize::MAX } else { BRIEF }
}

/// How a person allows the start of a server once for all Pods, which a decision does not.
fn for_every_pod(approval: &ApprovalRequest) -> Option<String> {
    let (tool, server) = (&approval.rule.tool, &approval.rule.pattern);
    let rule = format!(
        "for every Pod: [[permissions.rule]] in config.toml with tool = {tool:?}, pattern = {server:?}, \
         action = \"allow\""
    );
    (approval.tool == START_SERVER).then(|| spelled(&rule))
}

/// A Pod below its parent.
fn below_parent(info: &PodInfo) -> String {
    let above = info.parent.as_ref().map(|parent| format!("{parent} › ")).unwrap_or_default();
    format!("{above}{}", info.name)
}

/// Why a Pod without a request is in the inbox.
fn why(info: &PodInfo, matter: Matter) -> String {
    let error = info.last_result.as_ref().and_then(|run| run.error.as_deref());
    let state = || state::of_pod(info).to_owned();
    match (matter, &info.circling) {
        (Matter::InCircles, Some(circling)) => format!("{}: {}", again(circling), circling.call),
        (Matter::Failed, _) => error.map_or_else(state, |error| format!("failed: {error}")),
        (Matter::Needs | Matter::InCircles, _) => info.why.clone().unwrap_or_else(state),
    }
}

/// The Pod of the requests below its parent, and how many equal requests there are.
fn requesters(approvals: &[&ApprovalRequest]) -> String {
    let Some(first) = approvals.first() else { return String::new() };
    if first.client.is_some() {
        return first.asker();
    }
    let above = first.lineage.last().map(|parent| format!("{parent} › ")).unwrap_or_default();
    match approvals.len() {
        1 => format!("{above}{}", first.pod),
        many => format!("{above}{} ×{many}", first.pod),
    }
}

fn brief(approvals: &[&ApprovalRequest]) -> String {
    approvals.first().map_or(String::new(), |approval| spelled(&approval.line()))
}

/// The exact action and its details, wrapped: every character that would be hidden is spelled, and a
/// row that a line break of the action follows ends in a sign for it.
fn action(approval: &ApprovalRequest, columns: usize, glyphs: Glyphs) -> Vec<String> {
    let mut rows = SafeText::spelled_rows(&approval.action);
    rows.extend(details(approval));
    let fields = approval.question.iter().flat_map(question::rows);
    rows.extend(fields.map(SafeText::spelled_row));
    let rows = rows.iter().map(|row| glyphs.exact(row));
    rows.flat_map(|row| wrap_text(&row, columns.saturating_sub(4).max(1))).collect()
}

/// The details of a request, a row for each of their lines.
fn details(approval: &ApprovalRequest) -> impl Iterator<Item = SafeText<'_>> {
    approval.details.iter().flat_map(|text| text.split('\n')).map(SafeText::spelled_row)
}

fn spelled(text: &str) -> String {
    SafeText::spelled(text).into_string()
}

/// Every Pod of the requests, with its ancestors.
fn lineages(approvals: &[&ApprovalRequest]) -> String {
    let path = |approval: &&ApprovalRequest| {
        let above = approval.lineage.iter().map(ToString::to_string);
        above.chain([approval.asker()]).collect::<Vec<_>>().join(" › ")
    };
    approvals.iter().map(path).collect::<Vec<_>>().join(", ")
}
