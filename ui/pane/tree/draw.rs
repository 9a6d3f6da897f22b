//! The tree on screen: a strip of Pods that need a person, the rows, and a line about other workspaces.

use crate::family::Family;
use crate::pane::tree::{Children, Place, Tree, TreeRow, Workspaces};
use crate::rows::{cut, pad, right, width};
use crate::theme::Theme;
use crate::wording::age::age;
use crate::wording::wait;
use jiff::tz::TimeZone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use yoi::protocol::{PodInfo, PodName};
use yoi::text::SafeText;

/// The fewest columns a longer name gets before the word of its state is left out.
const NAME: usize = 8;
/// From this width on a row also shows the activity of the Pod.
const WIDE: usize = 52;
/// The columns of names, and of the lines before them, where activities are shown.
const FIELD: usize = 18;

/// Beside the name of a Pod whose last commands met a limit; `:explain` says which.
const LIMIT: &str = " limit";

/// The tree as a widget.
pub struct View<'a> {
    pub tree: &'a Tree,
    pub family: &'a Family,
    pub current: Option<&'a PodName>,
    pub theme: &'a Theme,
    pub zone: &'a TimeZone,
    pub now: u64,
    pub focused: bool,
    /// The key that lists all workspaces.
    pub workspaces_key: String,
}

impl View<'_> {
    /// The Pod, or the fold of stopped ones, at row `y` of the pane, from 0.
    pub fn place_at(&self, y: u16, height: u16) -> Option<Place> {
        let pane = self.pane_rows(height);
        let y = usize::from(y);
        if let Some(info) = pane.strip.get(y) {
            return Some(Place::Pod(info.name.clone()));
        }
        let at = y.checked_sub(pane.strip_rows())? + pane.first;
        (y < pane.strip_rows() + pane.shown).then(|| pane.rows.get(at).map(TreeRow::place))?
    }

    fn pane_rows(&self, height: u16) -> PaneRows<'_> {
        let (strip, more) = self.tree.strip(self.family);
        let rows = self.tree.rows(self.family, self.current);
        let foot = self.foot();
        let height = usize::from(height);
        let mut pane = PaneRows { strip, more, rows, foot, first: 0, shown: 0 };
        let room = height.saturating_sub(pane.strip_rows());
        // Rows that do not fit are counted in the foot.
        let has_foot = pane.foot.is_some() || pane.rows.len() > room;
        pane.shown = room.saturating_sub(usize::from(has_foot));
        let cursor = self.tree.position(&pane.rows).unwrap_or(0);
        pane.first = (cursor + 1).saturating_sub(pane.shown);
        pane.foot = self.foot_with_hidden_rows(&pane);
        pane
    }

    /// The foot, after the numbers of rows above and below the view.
    fn foot_with_hidden_rows(&self, pane: &PaneRows<'_>) -> Option<String> {
        let below = pane.rows.len().saturating_sub(pane.first + pane.shown);
        let glyphs = self.tree.glyphs;
        let above = (pane.first > 0).then(|| format!("{}{}", glyphs.pick("↑", "^"), pane.first));
        let below = (below > 0).then(|| format!("{}{below}", glyphs.pick("↓", "v")));
        let parts: Vec<String> = above.into_iter().chain(below).chain(pane.foot.clone()).collect();
        (!parts.is_empty()).then(|| parts.join(" · "))
    }

    fn foot(&self) -> Option<String> {
        if !self.tree.filter.is_empty() {
            return Some(format!("/{}", self.tree.filter.text()));
        }
        if self.tree.workspaces == Workspaces::All {
            let chosen = self.tree.chosen().and_then(|name| self.family.get(name));
            let place = chosen.and_then(|info| info.workspace.file_name());
            let place = place.map_or("all workspaces".into(), |name| {
                format!("works in {}", SafeText::line(name.to_string_lossy()))
            });
            return Some(format!("{place} · {}", self.workspaces_key));
        }
        let (pods, places) = self.family.elsewhere(&self.tree.workspace, self.current);
        let places =
            if places == 1 { "1 workspace".into() } else { format!("{places} workspaces") };
        (pods > 0).then(|| format!("{pods} more in {places} · {}", self.workspaces_key))
    }

    fn line(&self, row: &TreeRow<'_>, room: &Room) -> Line<'static> {
        match row {
            TreeRow::Pod { info, lines, children } => self.pod(info, lines, *children, room),
            TreeRow::Stopped(count) => {
                let text = format!("{} {count} stopped", self.tree.glyphs.pick("◌", "."));
                Line::styled(pad(&text, room.columns), self.theme.dim)
            }
        }
    }

    fn pod(&self, info: &PodInfo, lines: &str, children: Children, room: &Room) -> Line<'static> {
        let glyphs = self.tree.glyphs;
        let sign = glyphs.state_sign(info);
        let fold = match children {
            Children::None => "",
            Children::Shown => glyphs.pick("▾ ", "- "),
            Children::Folded => glyphs.pick("▸ ", "+ "),
        };
        let before = cut(&format!("{lines}{fold}"), room.columns / 3);
        let left = room.columns.saturating_sub(width(&before) + 2);
        let mark = if self.tree.marks.has(&info.name) { glyphs.pick("◆", "#") } else { " " };
        let pin = self.tree.pins.of(&info.name).map_or(String::new(), |slot| format!(" {slot}"));
        let limit = if info.limit.is_some() { LIMIT } else { "" };
        let needed = (width(info.name.as_str()) + width(&pin)).min(NAME) + width(limit);
        let field = FIELD.saturating_sub(width(&before)).max(needed);
        let ends = room.ends(left, needed, field);
        let name = left.saturating_sub(ends.columns() + width(&pin) + width(limit));
        let label = cut(info.name.as_str(), name);
        let rest = name.saturating_sub(width(&label));
        let state = self.theme.style(sign.role);
        let mut spans = vec![
            Span::styled(before, self.theme.border),
            Span::styled(sign.shape, state),
            Span::styled(mark, self.theme.accent),
            Span::styled(label, self.name_style(info)),
            Span::styled(pin, self.theme.accent),
            Span::styled(limit, self.theme.warn),
            Span::raw(" ".repeat(rest)),
        ];
        if ends.word > 0 {
            spans.push(Span::styled(format!(" {}", pad(sign.word, ends.word)), state));
        }
        if ends.age > 0 {
            let age = age(info, self.now, self.zone);
            spans.push(Span::styled(format!(" {}", right(&age, ends.age)), self.theme.dim));
        }
        if ends.activity > 0 {
            let wait = wait::sentence(info, self.family, self.now);
            let doing = info.why.as_deref().or(wait.as_deref()).or(info.activity.as_deref());
            let doing = pad(doing.unwrap_or(""), ends.activity);
            spans.push(Span::styled(format!("  {doing}"), self.theme.dim));
        }
        Line::from(spans)
    }

    fn room<'a>(&self, columns: usize, pods: impl Iterator<Item = &'a PodInfo>) -> Room {
        let (mut word, mut longest) = (0, 0);
        for info in pods {
            word = word.max(width(self.tree.glyphs.state_sign(info).word));
            longest = longest.max(width(&age(info, self.now, self.zone)));
        }
        Room { columns, word, age: longest }
    }

    fn name_style(&self, info: &PodInfo) -> Style {
        let current = self.current == Some(&info.name);
        let base = match (current, self.tree.marks.has(&info.name)) {
            (_, true) => self.theme.accent,
            (true, false) => self.theme.agent,
            (false, false) => Style::new(),
        };
        if info.unseen { base.add_modifier(Modifier::BOLD) } else { base }
    }
}

/// The rows of the pane, from top to bottom.
struct PaneRows<'a> {
    strip: Vec<&'a PodInfo>,
    more: usize,
    rows: Vec<TreeRow<'a>>,
    foot: Option<String>,
    /// The index of the first row in view, and the number of rows that fit.
    first: usize,
    shown: usize,
}

impl PaneRows<'_> {
    fn strip_rows(&self) -> usize {
        let rule = usize::from(!self.strip.is_empty());
        self.strip.len() + usize::from(self.more > 0) + rule
    }
}

/// The widths that all rows share.
struct Room {
    columns: usize,
    /// The longest word of a state.
    word: usize,
    /// The longest age.
    age: usize,
}

/// The columns right of a name; 0 = left out.
struct Ends {
    word: usize,
    age: usize,
    activity: usize,
}

impl Room {
    /// The columns that fit beside a name that needs `name` columns, if `left` columns are left for both.
    /// Beside an activity the name has `field` columns.
    fn ends(&self, left: usize, name: usize, field: usize) -> Ends {
        let age = if left > self.age + name { self.age } else { 0 };
        let word = if left >= self.word + 1 + self.age + 1 + name { self.word } else { 0 };
        let taken = 2 + word + 1 + self.age + 1;
        let activity = if self.columns >= WIDE { left.saturating_sub(taken + field) } else { 0 };
        Ends { word, age, activity }
    }
}

impl Ends {
    fn columns(&self) -> usize {
        let column = |columns: usize, gap: usize| if columns > 0 { columns + gap } else { 0 };
        column(self.word, 1) + column(self.age, 1) + column(self.activity, 2)
    }
}

impl Widget for View<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let pane = self.pane_rows(area.height);
        let columns = usize::from(area.width);
        let pods = pane.rows.iter().filter_map(|row| match row {
            TreeRow::Pod { info, .. } => Some(*info),
            TreeRow::Stopped(_) => None,
        });
        let room = self.room(columns, pods.chain(pane.strip.iter().copied()));
        let mut lines: Vec<Line<'_>> = Vec::new();
        for info in &pane.strip {
            lines.push(self.pod(info, "", Children::None, &room));
        }
        if pane.more > 0 {
            lines.push(Line::styled(format!("  +{} more", pane.more), self.theme.needs));
        }
        if !pane.strip.is_empty() {
            let rule = self.tree.glyphs.pick("─", "-").repeat(columns);
            lines.push(Line::styled(rule, self.theme.border));
        }
        let mut chosen = None;
        for row in pane.rows.iter().skip(pane.first).take(pane.shown) {
            if self.focused && self.tree.cursor == Some(row.place()) {
                chosen = Some(lines.len());
            }
            lines.push(self.line(row, &room));
        }
        lines.truncate(usize::from(area.height));
        for ((line, y), i) in lines.iter().zip(area.y..).zip(0..) {
            buf.set_line(area.x, y, line, area.width);
            if chosen == Some(i) {
                buf.set_style(Rect { y, height: 1, ..area }, self.theme.selection);
            }
        }
        if let Some(foot) = pane.foot.filter(|_| area.height > 0) {
            let foot = self.tree.glyphs.plain(&pad(&foot, columns));
            buf.set_stringn(area.x, area.bottom() - 1, foot, columns, self.theme.dim);
        }
        self.empty(&pane.rows, area, buf);
    }
}

impl View<'_> {
    fn empty(&self, rows: &[TreeRow<'_>], area: Rect, buf: &mut Buffer) {
        if rows.is_empty() && area.height > 0 {
            let text = if self.tree.filter.is_empty() { "no Pod yet" } else { "no Pod matches" };
            buf.set_stringn(area.x, area.y, text, usize::from(area.width), self.theme.dim);
        }
    }
}
