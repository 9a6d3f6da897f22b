//! The tree on screen: the rows, and a last row about what is out of view.

use crate::rows::width;
use crate::screen::pane::tree::columns::{Cells, Columns};
use crate::screen::pane::tree::{Children, Place, StoppedPods, Tree, TreeRow, Workspaces};
use crate::theme::{Role, Theme};
use crate::wording::age;
use crate::wording::model::{context, cost};
use crate::wording::now::{self, Now};
use jiff::tz::TimeZone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use yoi::client::family::{Elsewhere, Family, Sum, Sums};
use yoi::protocol::{PodInfo, PodName, State};
use yoi::text::SafeText;

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

/// The rows of the pane, from top to bottom.
struct PaneRows<'a> {
    rows: Vec<TreeRow<'a>>,
    sums: Sums<'a>,
    /// The rows of the headings: 0 or 1.
    headings: usize,
    foot: Foot,
    /// The index of the first row in view, and the number of rows that fit.
    first: usize,
    shown: usize,
}

/// The last row: the Pods that need a person and have no row in view, and the numbers of other Pods.
#[derive(Default)]
struct Foot {
    needs: Vec<String>,
    more: Vec<String>,
}

impl Foot {
    fn is_empty(&self) -> bool {
        self.needs.is_empty() && self.more.is_empty()
    }
}

impl PaneRows<'_> {
    fn in_view(&self) -> impl Iterator<Item = &TreeRow<'_>> {
        self.rows.iter().skip(self.first).take(self.shown)
    }

    /// The Pods that need a person of which this row shows the reason or the number.
    fn needs_at(&self, row: &TreeRow<'_>) -> usize {
        let TreeRow::Pod { info, children, .. } = row else { return 0 };
        match (info.state, children) {
            (State::NeedsYou, _) => 1,
            (_, Children::Folded) => self.sums.at(info).below.needs_you,
            (_, Children::None | Children::Shown) => 0,
        }
    }
}

impl View<'_> {
    /// The Pod, or the group of Pods that share a row, at row `y` of the pane, from 0.
    pub fn place_at(&self, y: u16, area: Rect) -> Option<Place> {
        let pane = self.pane_rows(area);
        let at = usize::from(y).checked_sub(pane.headings).filter(|at| *at < pane.shown)?;
        pane.rows.get(pane.first + at).map(TreeRow::place)
    }

    fn pane_rows(&self, area: Rect) -> PaneRows<'_> {
        let sums = Sums::of(self.family);
        let rows = self.tree.rows(&sums, self.current);
        let headings = usize::from(Columns::has_headings(area.width.into()) && !rows.is_empty());
        let room = usize::from(area.height).saturating_sub(headings);
        let foot = Foot::default();
        let mut pane = PaneRows { rows, sums, headings, foot, first: 0, shown: room };
        let elsewhere = match self.tree.workspaces {
            Workspaces::This => self.family.elsewhere(&self.tree.workspace, self.current),
            Workspaces::All => Elsewhere::default(),
        };
        self.scroll(&mut pane, elsewhere);
        if !pane.foot.is_empty() {
            pane.shown = room.saturating_sub(1);
            self.scroll(&mut pane, elsewhere);
        }
        pane
    }

    /// Brings the cursor into view, and makes the foot for that view.
    fn scroll(&self, pane: &mut PaneRows<'_>, elsewhere: Elsewhere) {
        let cursor = self.tree.position(&pane.rows).unwrap_or(0);
        pane.first = (cursor + 1).saturating_sub(pane.shown);
        let glyphs = self.tree.glyphs;
        let below = pane.rows.len().saturating_sub(pane.first + pane.shown);
        let numbers = [(glyphs.pick("↑", "^"), pane.first), (glyphs.pick("↓", "v"), below)];
        let numbers = numbers.into_iter().filter(|(_, count)| *count > 0);
        let more = numbers.map(|(sign, count)| format!("{sign}{count}"));
        let needs = self.hidden_needs(pane, elsewhere);
        let more = more.chain(self.foot(elsewhere)).chain(self.machines());
        pane.foot = Foot { needs, more: more.collect() };
    }

    /// The Pods that need a person and are shown by no row in view: those of rows above and below, those without a row
    /// because of a filter or a fold, and those of other workspaces.
    fn hidden_needs(&self, pane: &PaneRows<'_>, elsewhere: Elsewhere) -> Vec<String> {
        let needs = self.family.all().iter().filter(|info| info.state == State::NeedsYou).count();
        let at = |rows: &[TreeRow<'_>]| rows.iter().map(|row| pane.needs_at(row)).sum::<usize>();
        let (rows_above, rest) = pane.rows.split_at(pane.first.min(pane.rows.len()));
        let rows_below = rest.get(pane.shown..).unwrap_or_default();
        let (above, below) = (at(rows_above), at(rows_below));
        let hidden = needs.saturating_sub(at(&pane.rows) + elsewhere.needs_you);
        let elsewhere = elsewhere.needs_you;
        let places =
            [(above, "above"), (below, "below"), (hidden, "hidden"), (elsewhere, "elsewhere")];
        let places = places.into_iter().filter(|(count, _)| *count > 0);
        places.map(|(count, place)| format!("▲ {count} {place}")).collect()
    }

    fn foot(&self, elsewhere: Elsewhere) -> Option<String> {
        if !self.tree.filter.is_empty() {
            return Some(format!("/{}", self.tree.filter.text()));
        }
        if self.tree.workspaces == Workspaces::All {
            let chosen = self.tree.chosen().and_then(|name| self.family.get(name));
            let place = chosen.and_then(|info| info.workspace.file_name());
            let place = place.map_or("all workspaces".into(), |name| {
                format!("workspace {}", SafeText::line(name.to_string_lossy()))
            });
            return Some(format!("{place}{}", self.workspaces_key()));
        }
        let Elsewhere { pods, workspaces, .. } = elsewhere;
        let places = match workspaces {
            1 => "1 workspace".into(),
            more => format!("{more} workspaces"),
        };
        (pods > 0).then(|| format!("{pods} more in {places}{}", self.workspaces_key()))
    }

    /// How many other machines are there, where this one takes part.
    fn machines(&self) -> Option<String> {
        let machine = self.family.machine()?;
        Some(match (machine.connected, machine.machines.len()) {
            (false, _) => "no other machine: :mesh".into(),
            (true, 1) => "1 other machine".into(),
            (true, count) => format!("{count} other machines"),
        })
    }

    /// The key that changes between all workspaces and this one, while the tree has the keys: elsewhere it types a letter.
    fn workspaces_key(&self) -> String {
        if self.focused { format!(" · {}", self.workspaces_key) } else { String::new() }
    }

    fn line(&self, row: &TreeRow<'_>, sums: &Sums<'_>, columns: &Columns) -> Line<'static> {
        match row {
            TreeRow::Pod { info, level, children } => {
                let sum = sums.at(info);
                columns.line(self.cells(info, *level, *children, &sum), self.theme)
            }
            TreeRow::Ended { level, count, .. } => {
                let shape = self.tree.glyphs.pick("✓", "v");
                self.count(columns.indent(*level), format!("{shape} {count} ended"), row)
            }
            TreeRow::Stopped(count) => {
                let shape = self.tree.glyphs.pick("◌", ".");
                self.count(String::new(), format!("{shape} {count} stopped"), row)
            }
        }
    }

    /// A row into which Pods fold.
    fn count(&self, indent: String, text: String, row: &TreeRow<'_>) -> Line<'static> {
        let here = self.focused && self.tree.cursor.as_ref().is_some_and(|place| row.is_at(place));
        let text = Span::styled(format!("{indent}{text}"), self.theme.dim);
        Line::from(vec![self.sign(here, false), text])
    }

    fn cells(&self, info: &PodInfo, level: usize, children: Children, sum: &Sum) -> Cells {
        let glyphs = self.tree.glyphs;
        let shape = glyphs.state_sign(info);
        let marked = self.tree.marks.has(&info.name);
        Cells {
            sign: self.sign(self.is_here(info), marked),
            level,
            shape: Span::styled(shape.shape, self.theme.style(shape.role)),
            name: info.name.to_string(),
            name_style: self.name_style(info, marked),
            behind: self.behind(info, children, sum),
            now: self.now_of(info, children, sum),
            context: self.context(info),
            cost: cost(&sum.cost),
            age: age::by_minute(info, self.now),
        }
    }

    /// Whether the row of this Pod has the cursor sign: while the tree has the focus, the row under the cursor, else that of
    /// the current Pod.
    fn is_here(&self, info: &PodInfo) -> bool {
        match self.focused {
            true => self.tree.chosen() == Some(&info.name),
            false => self.current == Some(&info.name),
        }
    }

    fn sign(&self, here: bool, marked: bool) -> Span<'static> {
        let sign = match (marked, here) {
            (true, _) => "+",
            (false, true) => self.tree.glyphs.pick("›", ">"),
            (false, false) => " ",
        };
        Span::styled(sign, self.theme.accent)
    }

    fn name_style(&self, info: &PodInfo, marked: bool) -> Style {
        let current = self.current == Some(&info.name);
        let base = if current || marked { self.theme.accent } else { Style::new() };
        if info.unseen { base.add_modifier(Modifier::BOLD) } else { base }
    }

    /// The digit that the Pod is pinned to, and how many Pods are folded below it.
    fn behind(&self, info: &PodInfo, children: Children, sum: &Sum) -> Vec<Span<'static>> {
        let pin = self.tree.pins.of(&info.name).map(|slot| format!(" {slot}"));
        let pin = pin.map(|pin| Span::styled(pin, self.theme.accent));
        let stopped = match self.tree.stopped_pods {
            StoppedPods::Listed => sum.below.stopped,
            StoppedPods::Folded => 0,
        };
        let fold = || format!(" {}{}", self.tree.glyphs.pick("▸", ">"), sum.below.live() + stopped);
        let fold = (children == Children::Folded).then(fold);
        pin.into_iter().chain(fold.map(|fold| Span::styled(fold, self.theme.dim))).collect()
    }

    /// A folded Pod tells what goes on below it, unless it needs a person itself, or has another reason and none below
    /// needs one.
    fn now_of(&self, info: &PodInfo, children: Children, sum: &Sum) -> Now {
        let own = now::of(info, self.family, self.now, self.zone);
        let has_reason = !own.short.is_empty();
        let own_first = own.role == Role::Needs || has_reason && sum.below.needs_you == 0;
        let mut now = match children {
            Children::Folded if !own_first => now::of_all(&sum.below),
            Children::None | Children::Shown | Children::Folded => own,
        };
        // Without colours a warning has a sign; in ASCII another one than that of a Pod which needs a person.
        if now.role == Role::Warn && !self.theme.has_grounds() {
            let sign = self.tree.glyphs.pick("! ", "(!) ");
            now.text.insert_str(0, sign);
            now.short.insert_str(0, sign);
        }
        now
    }

    fn context(&self, info: &PodInfo) -> Span<'static> {
        let context = context(info);
        context
            .map_or_else(Span::default, |(text, role)| Span::styled(text, self.theme.style(role)))
    }

    fn columns(&self, pane: &PaneRows<'_>, width_of_pane: usize) -> Columns {
        let has_pins = self.tree.pins.all().next().is_some();
        let pods = pane.rows.iter().filter_map(|row| match row {
            TreeRow::Pod { info, level, children }
                if *children != Children::Folded && !has_pins =>
            {
                Some((*level, width(info.name.as_str()), 0))
            }
            TreeRow::Pod { info, level, children } => {
                let behind = self.behind(info, *children, &pane.sums.at(info));
                let behind: usize = behind.iter().map(|span| width(&span.content)).sum();
                Some((*level, width(info.name.as_str()), behind))
            }
            TreeRow::Ended { .. } | TreeRow::Stopped(_) => None,
        });
        Columns::of(width_of_pane, pods)
    }

    fn draw_foot(&self, foot: &Foot, area: Rect, buf: &mut Buffer) {
        let needs = foot.needs.iter().map(|text| (text, self.theme.needs));
        let more = foot.more.iter().map(|text| (text, self.theme.dim));
        let mut spans = Vec::new();
        for (text, style) in needs.chain(more) {
            let between = if spans.is_empty() { " " } else { " · " };
            spans.push(Span::styled(self.tree.glyphs.plain(between), self.theme.dim));
            spans.push(Span::styled(self.tree.glyphs.plain(text), style));
        }
        buf.set_line(area.x, area.bottom() - 1, &Line::from(spans), area.width);
    }
}

impl Widget for View<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let pane = self.pane_rows(area);
        let columns = self.columns(&pane, usize::from(area.width));
        let mut y = area.y;
        if pane.headings > 0 {
            buf.set_stringn(area.x, y, columns.headings(), area.width.into(), self.theme.dim);
            y += 1;
        }
        for (row, y) in pane.in_view().zip(y..) {
            buf.set_line(area.x, y, &self.line(row, &pane.sums, &columns), area.width);
            let place = row.place();
            let selected = match (self.focused, &place) {
                (true, place) => self.tree.cursor.as_ref() == Some(place),
                (false, Place::Pod(name)) => self.current == Some(name),
                (false, Place::Ended(_) | Place::Stopped) => false,
            };
            if selected {
                buf.set_style(Rect { y, height: 1, ..area }, self.theme.selection);
            }
        }
        if !pane.foot.is_empty() && area.height > 0 {
            self.draw_foot(&pane.foot, area, buf);
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
