//! The tree of Pods: one row a Pod with what it does now or why it waits, in an order that stays.

use crate::screen::pane::glyph::Glyphs;
use crate::screen::pane::input::Input;
use icu_normalizer::ComposingNormalizerBorrowed;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use yoi::client::family::{Cost, Counts, Family, Sums, has_finished};
use yoi::llm::rehearsal::plays_tour;
use yoi::protocol::name::folded;
use yoi::protocol::{PodInfo, PodName, State};

mod columns;
mod draw;
mod picked;

pub use draw::View;
pub use picked::{Marks, Pins};

/// Of which workspaces Pods have rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workspaces {
    #[default]
    This,
    All,
}

/// Whether stopped Pods have rows of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedPods {
    #[default]
    Folded,
    Listed,
}

/// What a person set in the tree. The Pods themselves are in the family.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The workspace the screen was opened in.
    pub workspace: PathBuf,
    pub glyphs: Glyphs,
    pub workspaces: Workspaces,
    pub stopped_pods: StoppedPods,
    pub filter: Input,
    /// The row the cursor is on.
    pub cursor: Option<Place>,
    /// Where that row was last, from 0.
    at: usize,
    pub marks: Marks,
    pub pins: Pins,
    /// The columns left of the transcript, if a person dragged the border there.
    pub columns: Option<u16>,
    /// The Pods whose ended children have rows, until another Pod becomes the current one.
    pub unfolded: BTreeSet<PodName>,
    folded: HashSet<PodName>,
}

/// The thing that a row shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    Pod(PodName),
    /// The row into which the ended children of this Pod fold.
    Ended(PodName),
    /// The row into which stopped Pods fold.
    Stopped,
}

/// One row of the tree.
#[derive(Clone, Debug, PartialEq)]
pub enum TreeRow<'a> {
    Pod {
        info: &'a PodInfo,
        /// The number of Pods above it in the tree.
        level: usize,
        children: Children,
    },
    /// The number of ended Pods below `parent` without rows.
    Ended { parent: &'a PodInfo, level: usize, count: usize },
    /// The number of stopped Pods without rows.
    Stopped(usize),
}

/// Whether a row has children, and whether they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    None,
    Shown,
    Folded,
}

impl TreeRow<'_> {
    /// The thing that the row shows.
    pub fn place(&self) -> Place {
        match self {
            Self::Pod { info, .. } => Place::Pod(info.name.clone()),
            Self::Ended { parent, .. } => Place::Ended(parent.name.clone()),
            Self::Stopped(_) => Place::Stopped,
        }
    }

    /// Whether the row shows this thing.
    pub fn is_at(&self, place: &Place) -> bool {
        match (self, place) {
            (Self::Pod { info, .. }, Place::Pod(name)) => info.name == *name,
            (Self::Ended { parent, .. }, Place::Ended(name)) => parent.name == *name,
            (Self::Stopped(_), Place::Stopped) => true,
            (Self::Pod { .. } | Self::Ended { .. } | Self::Stopped(_), _) => false,
        }
    }
}

impl Tree {
    /// A tree that lists the Pods of `workspace`.
    pub fn new(workspace: PathBuf, glyphs: Glyphs) -> Self {
        Self { workspace, glyphs, ..Self::default() }
    }

    /// The rows of the tree. `current` has a row even when it is stopped or ended.
    pub fn rows<'a>(&self, sums: &Sums<'a>, current: Option<&PodName>) -> Vec<TreeRow<'a>> {
        let family = sums.family();
        let picked = self.marks.all().iter().chain(self.pins.all().map(|(_, name)| name));
        let (in_use, picked) =
            (ways_to(family, current.into_iter().chain(self.chosen())), ways_to(family, picked));
        let (rows, stopped) = (Vec::new(), 0);
        let mut walk = Walk { tree: self, family, current, in_use, picked, sums, rows, stopped };
        if self.filter.is_empty() {
            walk.roots();
        } else {
            walk.matches();
        }
        let Walk { mut rows, stopped, .. } = walk;
        if stopped > 0 {
            rows.push(TreeRow::Stopped(stopped));
        }
        rows
    }

    /// Where the cursor is among the rows, from 0; `None` where its row is gone.
    pub fn position(&self, rows: &[TreeRow<'_>]) -> Option<usize> {
        let cursor = self.cursor.as_ref()?;
        rows.iter().position(|row| row.is_at(cursor))
    }

    /// Keeps the cursor where it is when its row goes: it is on the row that is there now, or on the last one.
    pub fn keep_cursor(&mut self, rows: &[TreeRow<'_>]) {
        match (self.position(rows), rows.len().checked_sub(1)) {
            (Some(at), _) => self.at = at,
            (None, Some(last)) => {
                self.at = self.at.min(last);
                self.cursor = Some(rows[self.at].place());
            }
            (None, None) => self.cursor = None,
        }
    }

    /// The Pod under the cursor.
    pub fn chosen(&self) -> Option<&PodName> {
        match self.cursor.as_ref()? {
            Place::Pod(name) => Some(name),
            Place::Ended(_) | Place::Stopped => None,
        }
    }

    /// The Pods whose children are folded.
    pub fn folded(&self) -> BTreeSet<PodName> {
        self.folded.iter().cloned().collect()
    }

    pub fn is_folded(&self, name: &PodName) -> bool {
        self.folded.contains(name)
    }

    pub fn fold(&mut self, name: PodName) {
        self.folded.insert(name);
    }

    pub fn unfold(&mut self, name: &PodName) {
        self.folded.remove(name);
    }

    /// What all Pods of the tree cost.
    pub fn cost(&self, family: &Family, current: Option<&PodName>) -> Cost {
        let mut cost = Cost::default();
        let pods = family.all().iter().filter(|info| self.lists(info, family, current));
        pods.for_each(|info| cost += Cost::of(info));
        cost
    }

    /// Whether a Pod can have a row, or is counted in the row of a folded one.
    pub fn lists(&self, info: &PodInfo, family: &Family, current: Option<&PodName>) -> bool {
        let is_current = current == Some(&info.name);
        (info.is_listed() || is_current)
            && (self.workspaces == Workspaces::All
                || family.belongs(info, &self.workspace, current))
    }
}

/// These Pods and all above them.
fn ways_to<'a, 'b>(
    family: &'a Family,
    pods: impl Iterator<Item = &'b PodName>,
) -> HashSet<&'a PodName> {
    let pods = pods.filter_map(|name| family.get(name));
    pods.flat_map(|info| family.lineage(info).into_iter().chain([&info.name])).collect()
}

struct Walk<'a, 'b> {
    tree: &'b Tree,
    family: &'a Family,
    current: Option<&'b PodName>,
    /// The current Pod, the one under the cursor, and all above them.
    in_use: HashSet<&'a PodName>,
    /// The marked and pinned Pods, and all above them.
    picked: HashSet<&'a PodName>,
    sums: &'b Sums<'a>,
    rows: Vec<TreeRow<'a>>,
    /// The number of stopped Pods without rows.
    stopped: usize,
}

impl<'a> Walk<'a, '_> {
    fn roots(&mut self) {
        let family = self.family;
        for info in family.all() {
            let parent = info.parent.as_ref().and_then(|name| family.get(name));
            let below = parent.is_some_and(|parent| self.listed(parent));
            if !below && self.listed(info) {
                self.pod(info, 0);
            }
        }
    }

    /// The current Pod and its tree are listed wherever they work.
    fn listed(&self, info: &PodInfo) -> bool {
        self.tree.lists(info, self.family, self.current)
    }

    fn matches(&mut self) {
        let nfc = ComposingNormalizerBorrowed::new_nfc();
        let wanted = folded(&nfc.normalize(self.tree.filter.text()));
        for info in self.family.all() {
            if self.listed(info) && info.name.key().contains(&wanted) {
                self.rows.push(TreeRow::Pod { info, level: 0, children: Children::None });
            }
        }
    }

    /// Adds a Pod and the Pods below it.
    fn pod(&mut self, info: &'a PodInfo, level: usize) {
        if self.folds_away(info) {
            self.stopped += self.count(info);
            return;
        }
        let family = self.family;
        let (shown, hidden): (Vec<&PodInfo>, Vec<&PodInfo>) = family
            .children(&info.name)
            .filter(|child| self.listed(child) && child.name != info.name)
            .partition(|child| !self.folds_away(child));
        self.stopped += hidden.into_iter().map(|child| self.count(child)).sum::<usize>();
        let folded = self.tree.is_folded(&info.name);
        let children = match (shown.is_empty(), folded) {
            (true, _) => Children::None,
            (false, true) => Children::Folded,
            (false, false) => Children::Shown,
        };
        self.rows.push(TreeRow::Pod { info, level, children });
        if children == Children::Shown {
            self.children(info, shown, level + 1);
        }
    }

    /// Adds the children of `parent`; two or more that have ended are one row, unless the current Pod or the cursor is
    /// among them or below one of them, or the tour speaks of them.
    fn children(&mut self, parent: &'a PodInfo, shown: Vec<&'a PodInfo>, level: usize) {
        let may_fold = !self.tree.unfolded.contains(&parent.name) && !plays_tour(parent);
        let (ended, others): (Vec<&PodInfo>, Vec<&PodInfo>) =
            shown.iter().copied().partition(|child| may_fold && self.has_ended(child));
        if ended.len() < 2 || ended.iter().any(|child| self.in_use.contains(&child.name)) {
            shown.into_iter().for_each(|child| self.pod(child, level));
            return;
        }
        others.into_iter().for_each(|child| self.pod(child, level));
        let count = ended.into_iter().map(|child| 1 + self.below(child).idle).sum();
        self.rows.push(TreeRow::Ended { parent, level, count });
    }

    /// Whether a Pod is done, as [`Family::is_done`] says by the sums, and the person picked none from it on down.
    fn has_ended(&self, info: &PodInfo) -> bool {
        has_finished(info)
            && !self.picked.contains(&info.name)
            && self.below(info).live() == self.below(info).idle
    }

    fn below(&self, info: &PodInfo) -> Counts {
        self.sums.at(info).below
    }

    /// Whether a Pod gets no row: stopped Pods are folded, and it and all below it are stopped and not the current one.
    fn folds_away(&self, info: &PodInfo) -> bool {
        self.tree.stopped_pods == StoppedPods::Folded && self.folds_as_stopped(info)
    }

    fn folds_as_stopped(&self, info: &PodInfo) -> bool {
        let is_away =
            |pod: &PodInfo| pod.state == State::Stopped && self.current != Some(&pod.name);
        // Most Pods are not stopped, and need no look below them.
        is_away(info) && self.family.subtree(&info.name).into_iter().all(is_away)
    }

    /// How many Pods have a row, from this one on down, once stopped Pods have rows.
    fn count(&self, info: &PodInfo) -> usize {
        self.family.subtree(&info.name).into_iter().filter(|pod| self.listed(pod)).count()
    }
}

#[cfg(test)]
mod tests;
