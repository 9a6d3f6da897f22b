//! The columns of the tree by the width of its pane, and one row laid out in them.

use crate::rows::{cut, cut_front, cut_middle, pad, right, width};
use crate::theme::Theme;
use crate::wording::now::Now;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// From this width of the pane on a row also says what its Pod does now.
const NOW: usize = 38;
/// From this width of the pane on a row also shows what its Pod and all Pods below cost.
const COST: usize = 56;
/// From this width of the pane on a row also shows how full the context of its Pod is, and the columns have headings.
const CONTEXT: usize = 80;
/// The width of the column of ages.
const AGE: usize = 3;
/// The width of the column of costs.
const DOLLARS: usize = 7;
/// The width of the column that shows how full contexts are.
const SHARE: usize = 4;
/// A name with more columns than this is cut to no fewer.
const MIN_NAME: usize = 8;
/// Names, with the sign, the indent and the shape before them and the numbers behind them, end at this column at the latest.
const MAX_NAME_END: usize = 32;
/// The fewest columns in which a row says what a Pod does.
const SENTENCE: usize = 8;
/// The fewest columns that names leave to what Pods do now: `wants the network` fits.
const MIN_NOW_WIDTH: usize = 17;
/// The fewest that the names of deep Pods leave to it, so that one column is that of all rows.
const BESIDE_DEEP: usize = 11;
/// Pods this far below their root are indented; deeper ones show the number instead.
const DEEPEST: usize = 5;

/// The columns that all rows share.
pub struct Columns {
    /// The columns of a row; the one beside the border is empty.
    row: usize,
    deepest: usize,
    /// Where names end; `None` where a row has no column for what the Pod does.
    names: Option<usize>,
    cost: usize,
    context: usize,
}

/// What one row shows.
pub struct Cells {
    /// The cursor or the mark.
    pub sign: Span<'static>,
    pub level: usize,
    pub shape: Span<'static>,
    pub name: String,
    pub name_style: Style,
    /// Behind the name: the digit it is pinned to, and how many Pods are folded below it.
    pub behind: Vec<Span<'static>>,
    pub now: Now,
    pub context: Span<'static>,
    pub cost: String,
    pub age: String,
}

impl Columns {
    /// The columns of a pane of this width with rows of these levels and these widths of the name and of what is behind it.
    pub fn of(pane: usize, rows: impl Iterator<Item = (usize, usize, usize)>) -> Self {
        let shown = |from: usize, columns: usize| if pane >= from { columns } else { 0 };
        let (cost, context) = (shown(COST, DOLLARS), shown(CONTEXT, SHARE));
        let deepest = (pane / 8).min(DEEPEST);
        let mut columns = Self { row: pane.saturating_sub(1), deepest, names: None, cost, context };
        if pane >= NOW {
            let most = |now: usize| columns.row.saturating_sub(columns.after_now() + 2 + now);
            let (mut names, mut least) = (0, 0);
            for (level, name, behind) in rows {
                names = names.max(columns.lead(level) + name + behind);
                least = least.max(columns.least(level, name, behind));
            }
            let usual = most(MIN_NOW_WIDTH).min(MAX_NAME_END);
            columns.names = Some(names.min(usual.max(least.min(most(BESIDE_DEEP)))));
        }
        columns
    }

    /// The fewest columns of a row of this level up to the end of its name and of what is behind it.
    fn least(&self, level: usize, name: usize, behind: usize) -> usize {
        self.lead(level) + name.min(MIN_NAME) + behind
    }

    /// Whether the columns have headings.
    pub fn has_headings(pane: usize) -> bool {
        pane >= CONTEXT
    }

    /// The row of the headings.
    pub fn headings(&self) -> String {
        let names = self.names.unwrap_or_default();
        let now = self.row.saturating_sub(names + 2 + self.after_now());
        let (context, cost) = (right("ctx", self.context), right("cost Σ", self.cost));
        let (pod, now, age) = (pad("   Pod", names), pad("now", now), right("age", AGE));
        format!("{pod}  {now}  {context}  {cost}  {age}")
    }

    /// The columns of a level, of the sign before it and of the shape behind it.
    fn lead(&self, level: usize) -> usize {
        1 + width(&self.indent(level)) + 2
    }

    /// The space before the shape of a Pod of this level, or its number.
    pub fn indent(&self, level: usize) -> String {
        if level > self.deepest { format!("{level}› ") } else { "  ".repeat(level) }
    }

    /// The columns behind what the Pod does, with their gaps.
    fn after_now(&self) -> usize {
        let column = |columns: usize| if columns > 0 { 2 + columns } else { 0 };
        column(self.context) + column(self.cost) + 2 + AGE
    }

    /// A row in these columns. A row whose name leaves no room for what the Pod does is laid out as in a narrow pane.
    pub fn line(&self, cells: Cells, theme: &Theme) -> Line<'static> {
        let behind: usize = cells.behind.iter().map(|span| width(&span.content)).sum();
        let lead = self.lead(cells.level);
        let least = self.least(cells.level, width(&cells.name), behind);
        if let Some(names) = self.names.map(|names| names.max(least)) {
            let now = self.row.saturating_sub(names + 2 + self.after_now());
            if now >= SENTENCE.max(width(&cells.now.short)) {
                return self.wide(cells, names - lead - behind, now, theme);
            }
        }
        self.narrow(cells, lead + behind, theme)
    }

    fn wide(&self, cells: Cells, name: usize, now: usize, theme: &Theme) -> Line<'static> {
        let (context, cost) = (cells.context.clone(), cells.cost.clone());
        let age = right(&cells.age, AGE);
        let sentence = sentence(&cells.now, now, theme);
        let mut spans = self.named(cells, name);
        spans.push(Span::raw("  "));
        spans.extend(sentence);
        if self.context > 0 {
            let text = right(&context.content, self.context);
            spans.push(Span::styled(format!("  {text}"), context.style));
        }
        if self.cost > 0 {
            spans.push(Span::styled(format!("  {}", right(&cost, self.cost)), theme.dim));
        }
        spans.push(Span::styled(format!("  {age}"), theme.dim));
        Line::from(spans)
    }

    /// The name, the sentence where it fits beside it or else the short reason, and the age, which is left out before the
    /// name gets less than its fewest columns.
    fn narrow(&self, cells: Cells, before: usize, theme: &Theme) -> Line<'static> {
        let room = self.row.saturating_sub(before);
        let whole = width(&cells.name) + 1 + width(&cells.now.text) + 1 + AGE;
        let text = if whole <= room { &cells.now.text } else { &cells.now.short }.clone();
        let reason = match width(&text) {
            0 => 0,
            columns => columns + 1,
        };
        let least = width(&cells.name).min(MIN_NAME) + reason;
        // A short age needs less than its column.
        let rest = room.saturating_sub(least).min(AGE + 1);
        let age = if rest > width(&cells.age) { rest } else { 0 };
        let name = room.saturating_sub(reason + age);
        let style = theme.style(cells.now.role);
        let since = right(&cells.age, age.saturating_sub(1));
        let mut spans = self.named(cells, name);
        if reason > 0 {
            spans.push(Span::styled(format!(" {}", cut(&text, room)), style));
        }
        if age > 0 {
            spans.push(Span::styled(format!(" {since}"), theme.dim));
        }
        Line::from(spans)
    }

    /// A row up to the end of its name, which gets so many columns.
    fn named(&self, cells: Cells, columns: usize) -> Vec<Span<'static>> {
        let name = cut_middle(&cells.name, columns);
        let rest = columns.saturating_sub(width(&name));
        let mut spans = vec![
            cells.sign,
            Span::raw(self.indent(cells.level)),
            cells.shape,
            Span::raw(" "),
            Span::styled(name, cells.name_style),
        ];
        spans.extend(cells.behind);
        spans.push(Span::raw(" ".repeat(rest)));
        spans
    }
}

/// The sentence in exactly so many columns: with what follows it where that has room, else alone, else its short form.
/// Where the column has its usual width, the beginning of a long sentence says more than the short form.
fn sentence(now: &Now, columns: usize, theme: &Theme) -> [Span<'static>; 2] {
    let style = theme.style(now.role);
    let text = width(&now.text);
    let rest = columns.saturating_sub(text);
    if text < columns && rest >= width(&now.rest).min(SENTENCE + 2) {
        return [
            Span::styled(now.text.clone(), style),
            Span::styled(pad(&now.rest, rest), theme.dim),
        ];
    }
    let fits = text <= columns || columns >= MIN_NOW_WIDTH || now.short.is_empty();
    let text = if fits { cut_target(&now.text, columns) } else { cut(&now.short, columns) };
    let rest = " ".repeat(columns.saturating_sub(width(&text)));
    [Span::styled(text, style), Span::raw(rest)]
}

/// A tool with its target; a path is cut in front.
fn cut_target(text: &str, columns: usize) -> String {
    if let Some((tool, path)) = text.split_once(' ')
        && path.contains('/')
        && !path.contains(char::is_whitespace)
        && let Some(room) = columns.checked_sub(width(tool) + 1).filter(|room| *room >= MIN_NAME)
    {
        return format!("{} {}", cut(tool, columns), cut_front(path, room));
    }
    cut(text, columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Role;
    use proptest::prelude::*;

    fn cells(name: &str, level: usize, now: Now) -> Cells {
        Cells {
            sign: Span::raw("›"),
            level,
            shape: Span::raw("▲"),
            name: name.into(),
            name_style: Style::new(),
            behind: Vec::new(),
            now,
            context: Span::raw("34%"),
            cost: "$0.12".into(),
            age: "4m".into(),
        }
    }

    fn network() -> Now {
        Now {
            text: "wants the network".into(),
            rest: ": cargo fetch && cargo test".into(),
            short: "network".into(),
            role: Role::Needs,
        }
    }

    fn shown(pane: usize, cells: Cells) -> String {
        let columns = Columns::of(pane, std::iter::once((cells.level, width(&cells.name), 0)));
        let line = columns.line(cells, &Theme::default());
        line.spans.iter().map(|span| span.content.as_ref()).collect::<String>().trim_end().into()
    }

    #[test]
    fn each_width_shows_more_of_a_row() {
        let row = |pane| shown(pane, cells("tester", 1, network()));
        assert_eq!(row(24), "›  ▲ tester network  4m");
        assert_eq!(row(26), "›  ▲ tester   network  4m");
        assert_eq!(row(38), "›  ▲ tester  wants the network     4m");
        assert_eq!(row(56), "›  ▲ tester  wants the network: cargo fe…    $0.12   4m");
        let wide =
            "›  ▲ tester  wants the network: cargo fetch && cargo test     34%    $0.12   4m";
        assert_eq!(row(80), wide);
    }

    #[test]
    fn a_narrow_row_leaves_out_the_age_and_never_the_shape_or_the_reason() {
        let row = |pane, name: &str| shown(pane, cells(name, 1, network()));
        assert_eq!(row(24, "reviewer-of-all-docs"), "›  ▲ revie…docs network");
        assert_eq!(shown(26, cells("probe", 3, network())), "›      ▲ probe network 4m");
        assert_eq!(row(30, "reviewer-of-all-docs"), "›  ▲ review…-docs network  4m");
        assert_eq!(row(24, "審査員である人の名前"), "›  ▲ 審査…名前  network");
    }

    #[test]
    fn what_pods_do_now_begins_in_one_column_at_every_level() {
        let reads = || Now { text: "Read a.rs".into(), ..Now::default() };
        for (name, pane) in [("probe", 38), ("reviewer-of-docs", 40), ("審査員である人", 40)]
        {
            let rows = (0..5).map(|level| (level, width(name), 0));
            let columns = Columns::of(pane, rows);
            let begins = |level| {
                let line = columns.line(cells(name, level, reads()), &Theme::default());
                let row: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
                width(row.split("Read").next().unwrap_or_default())
            };
            let all: Vec<usize> = (0..5).map(begins).collect();
            assert!(all.iter().all(|at| *at == all[0]), "{name} at {pane}: {all:?}");
        }
    }

    #[test]
    fn a_deep_pod_shows_its_level_and_a_long_path_its_end() {
        let reads = Now { text: "Read src/shop/cart/total.rs".into(), ..Now::default() };
        let deep = "›7› ▲ scout  Read …hop/cart/total.rs   4m";
        assert_eq!(shown(42, cells("scout", 7, reads.clone())), deep);
        assert_eq!(shown(38, cells("scout", 0, reads)), "›▲ scout  Read …op/cart/total.rs   4m");
    }

    proptest! {
        #[test]
        fn a_row_never_exceeds_its_pane_and_keeps_its_reason(
            pane in 24_usize..120, level in 0_usize..12, name in "[a-z日]{1,30}"
        ) {
            let row = shown(pane, cells(&name, level, network()));
            prop_assert!(width(&row) < pane, "{}", row);
            prop_assert!(row.contains("network") && row.contains('▲'), "{}", row);
        }
    }
}
