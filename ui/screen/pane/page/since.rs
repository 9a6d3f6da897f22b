//! Lays out the report on a span of time: one row for what needs the person, one for each Pod that failed or ended, and what
//! let calls begin.

use crate::rows::{Piece, TextStyle, cut, cut_middle, width, wrap_text};
use crate::screen::pane::glyph::Glyphs;
use crate::screen::pane::page::{PageRow, blank, piece};
use crate::theme::Role;
use crate::wording::lines::Target;
use crate::wording::since::{Group, Outcome, Report, Row};
use ratatui::style::Modifier;
use yoi::client::family::inbox::id_of_pod;
use yoi::protocol::State;

/// From this many columns on more room is left between columns.
const ROOMY: usize = 60;
/// The fewest columns of a name, and of a report beside its tasks.
const LEAST: usize = 8;
const LEAST_REPORT: usize = 20;
/// The columns of an age and of the gap before it.
const AGE: usize = 5;
/// The columns before a name.
const INDENT: usize = 3;

/// The columns of the report.
struct Columns {
    all: usize,
    gap: usize,
    label: usize,
    name: usize,
}

/// The rows of a report in so many columns.
pub fn rows_of_report(report: &Report, columns: usize, glyphs: Glyphs) -> Vec<PageRow> {
    let labels = report.groups.iter().map(|group| width(&group.label));
    let listed = report.groups.iter().filter(|group| !is_one_row(group));
    let names = listed.flat_map(|group| &group.rows).map(|row| width(&row.path));
    let columns = Columns {
        all: columns,
        gap: if columns < ROOMY { 2 } else { 3 },
        label: labels.max().unwrap_or(0),
        name: names.max().unwrap_or(0).min((columns / 3).max(LEAST)),
    };
    let mut rows: Vec<PageRow> =
        report.groups.iter().flat_map(|group| group_rows(group, &columns, glyphs)).collect();
    if let Some(allowed) = &report.allowed {
        rows.push(PageRow::default());
        let lines = wrap_text(allowed, columns.all.saturating_sub(1).max(1)).into_iter();
        rows.extend(lines.map(|line| PageRow::new(vec![blank(1), piece(line, Role::Dim)])));
    }
    rows
}

/// Whether the whole group stands in the row with its label.
fn is_one_row(group: &Group) -> bool {
    match group.outcome {
        Outcome::NeedsYou => true,
        Outcome::Failed | Outcome::InCircles => group.rows.len() == 1,
        Outcome::Finished | Outcome::StoppedShort => false,
    }
}

fn group_rows(group: &Group, columns: &Columns, glyphs: Glyphs) -> Vec<PageRow> {
    let ((shape, role), emphasis) = match group.outcome {
        Outcome::NeedsYou => (glyphs.sign_of(State::NeedsYou, false), Modifier::BOLD),
        Outcome::Failed => (glyphs.sign_of(State::Failed, false), Modifier::empty()),
        Outcome::InCircles => {
            let (shape, _) = glyphs.sign_of(State::Running, false);
            ((shape, Role::Warn), Modifier::empty())
        }
        Outcome::Finished => (glyphs.sign_of(State::Idle, true), Modifier::empty()),
        Outcome::StoppedShort => (glyphs.sign_of(State::Paused, false), Modifier::empty()),
    };
    let head = format!("{shape} {}", group.label);
    let mut text = vec![blank(1), Piece::new(head, TextStyle { role, emphasis })];
    if !is_one_row(group) {
        let rows = group.rows.iter().flat_map(|row| pod_rows(group.outcome, row, columns));
        return std::iter::once(PageRow::new(text)).chain(rows).collect();
    }
    let Some(first) = group.rows.first() else { return Vec::new() };
    text.push(blank(columns.label - width(&group.label) + columns.gap));
    let names: Vec<&str> = group.rows.iter().map(|row| row.path.as_str()).collect();
    text.push(piece(names.join(", "), Role::Text));
    if group.rows.len() == 1 {
        text.extend([blank(2), piece(first.text.clone(), role)]);
    }
    vec![PageRow { text, aside: first.age.clone(), target: target(group.outcome, first) }]
}

fn target(outcome: Outcome, row: &Row) -> Option<Target> {
    match outcome {
        Outcome::NeedsYou => Some(Target::NeedsYou),
        Outcome::InCircles => Some(Target::Item(id_of_pod(&row.pod))),
        Outcome::Failed | Outcome::Finished | Outcome::StoppedShort => {
            Some(Target::Entry(row.pod.clone(), row.entry?))
        }
    }
}

/// The row of a Pod, and a second one for its tasks where they do not fit beside the report.
fn pod_rows(outcome: Outcome, row: &Row, columns: &Columns) -> Vec<PageRow> {
    let name = cut_middle(&row.path, columns.name);
    let role = if row.seen { Role::Dim } else { Role::Text };
    let before = columns.name - width(&name) + columns.gap;
    let room = columns.all.saturating_sub(INDENT + columns.name + columns.gap + AGE);
    let between = " · ";
    let tasks = row.not_begun.as_deref().unwrap_or_default();
    let beside = room.saturating_sub(width(tasks) + width(between));
    let is_beside = !tasks.is_empty() && beside >= LEAST_REPORT.min(width(&row.text));
    let report = cut(&row.text, if is_beside { beside } else { room });
    let mut text = vec![blank(INDENT), piece(name, Role::Text), blank(before), piece(report, role)];
    if is_beside {
        text.extend([piece(between, Role::Dim), piece(tasks, Role::Warn)]);
    }
    let first = PageRow { text, aside: row.age.clone(), target: target(outcome, row) };
    if tasks.is_empty() || is_beside {
        return vec![first];
    }
    let tasks = cut(tasks, room + AGE);
    let indent = INDENT + columns.name + columns.gap;
    vec![first, PageRow::new(vec![blank(indent), piece(tasks, Role::Warn)])]
}
