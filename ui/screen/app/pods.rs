//! Going from Pod to Pod and from pane to pane.

use crate::screen::app::Areas;
use crate::screen::app::{App, Asked, Effect, Focus, Zoom};
use crate::screen::keys::Action;
use crate::screen::notice::Kind;
use crate::screen::pane::tree::{Children, Place, StoppedPods, TreeRow, Workspaces};
use yoi::client::family::Sums;
use yoi::protocol::{Method, PodName};

/// The panes in the order of Tab.
const ROUND: [Focus; 5] =
    [Focus::Composer, Focus::Tree, Focus::Peers, Focus::Transcript, Focus::Beside];

impl App {
    /// Makes a Pod the current one and goes to the composer.
    pub(super) fn make_current(&mut self, name: &PodName) -> Vec<Effect> {
        let Some(name) = self.family.get(name).map(|info| info.name.clone()) else {
            return self.say(Kind::Refused, format!("no Pod named {name}"));
        };
        self.current_is_gone = false;
        self.initial_pod = None;
        if self.current.as_ref() != Some(&name) {
            self.forget_requests();
            self.previous = self.current.replace(name.clone());
            self.notices.pod_opened();
            if self.beside.as_ref() == Some(&name) {
                // The Pod of the second transcript changes places with the current one.
                self.beside.clone_from(&self.previous);
            }
        }
        self.tree.cursor = Some(Place::Pod(name));
        self.tree.unfolded.clear();
        (self.page, self.return_page) = (None, None);
        self.focus = Focus::Composer;
        (self.inbox.asleep, self.inbox.inside) = (false, None);
        self.composer_follows();
        if self.tour.as_ref().is_some_and(|tour| tour.due) {
            self.tour_step();
        }
        self.offer_environment().into_iter().collect()
    }

    pub(super) fn composer_follows(&mut self) {
        let current = self.current.clone();
        self.composer.switch(current.as_ref());
        if self.family.is_known() {
            let gone = |name: &PodName| self.family.get(name).is_none();
            self.composer.keep_drafts_of(gone, self.now);
        }
    }

    /// Offers this environment to the current Pod, once per connection.
    pub(super) fn offer_environment(&mut self) -> Option<Effect> {
        let name = self.current.clone()?;
        if self.setup.env.is_empty() || !self.opened.insert(name.clone()) {
            return None;
        }
        let method = Method::Open { env: self.setup.env.clone() };
        Some(Effect::Call { pod: Some(name), method, asked: Asked::Silently })
    }

    /// Marks the last result of a Pod as seen.
    pub(super) fn look_at(&mut self, name: &PodName) -> Vec<Effect> {
        let Some(info) = self.family.get(name).filter(|info| info.unseen) else {
            return Vec::new();
        };
        let since = info.since;
        if self.seen.insert(name.clone(), since) == Some(since) {
            return Vec::new();
        }
        let pod = Some(name.clone());
        vec![Effect::Call { pod, method: Method::Seen, asked: Asked::Silently }]
    }

    /// Moves the focus; entering the lists puts the tree's cursor on the current Pod.
    pub(super) fn focus(&mut self, focus: Focus) -> Vec<Effect> {
        let lists = [Focus::Tree, Focus::Peers];
        if focus != self.focus {
            self.forget_requests();
        }
        // Every other pane shows a transcript, or stands where a page is.
        if !matches!(focus, Focus::Composer | Focus::Page | Focus::Inbox) {
            self.page = None;
        }
        self.inbox.asleep &= focus == Focus::Composer;
        (self.inbox.inside, self.found_from) = (None, None);
        if lists.contains(&focus) {
            self.zoom = Zoom::Off;
        }
        if lists.contains(&focus) && !lists.contains(&self.focus) {
            let rows = self.tree_rows();
            let current = self.current.clone().map(Place::Pod);
            let there = rows.iter().any(|row| Some(row.place()) == current);
            self.tree.cursor = if there { current } else { rows.first().map(TreeRow::place) };
        }
        self.focus = focus;
        Vec::new()
    }

    /// Goes to the next or the previous pane. A draft stops it: in another pane the letters that follow would act as keys.
    pub(super) fn next_pane(&mut self, action: Action) -> Vec<Effect> {
        if self.focus == Focus::Composer && self.has_own_draft() {
            let text = "{everywhere next-pane} leaves only an empty line · {everywhere leader} leads to panes";
            return self.say(Kind::Info, self.keymap.with_keys(text));
        }
        if self.page.is_some() {
            let reads = self.focus == Focus::Page;
            return self.focus(if reads { Focus::Composer } else { Focus::Page });
        }
        let zoomed = Areas::zooms(self);
        let beside = Areas::of(self).beside.is_some();
        let there = |focus: &Focus| match focus {
            Focus::Tree => !zoomed,
            Focus::Peers => !zoomed && self.family.has_contacts(),
            Focus::Beside => beside,
            Focus::Composer | Focus::Transcript | Focus::Inbox => true,
            // An open page and the line take turns, as above.
            Focus::Page => false,
        };
        let round: Vec<Focus> = ROUND.into_iter().filter(there).collect();
        let at = round.iter().position(|focus| *focus == self.focus).unwrap_or(0);
        let by = if action == Action::NextPane { 1 } else { round.len() - 1 };
        self.focus(round[(at + by) % round.len()])
    }

    pub(super) fn tree_action(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Up => self.move_cursor(-1),
            Action::Down => self.move_cursor(1),
            Action::PageUp => self.move_cursor(-10),
            Action::PageDown => self.move_cursor(10),
            Action::First => self.move_cursor(isize::MIN),
            Action::Last => self.move_cursor(isize::MAX),
            Action::Choose => return self.choose_row(),
            Action::Unfold => self.unfold_row(),
            Action::Fold => self.fold_row(),
            Action::Workspaces => {
                self.tree.workspaces = match self.tree.workspaces {
                    Workspaces::This => Workspaces::All,
                    Workspaces::All => Workspaces::This,
                };
            }
            Action::Stopped => self.toggle_stopped(),
            Action::Mark => return self.mark_row(),
            Action::Pin => return self.begin_pin(),
            Action::Copy => {
                let name = match self.marked() {
                    [] => self.tree.chosen().map(ToString::to_string),
                    marks => Some(marks.iter().map(PodName::as_str).collect::<Vec<_>>().join(" ")),
                };
                return name.map(|name| self.copy(name)).unwrap_or_default();
            }
            _ => {}
        }
        Vec::new()
    }

    fn toggle_stopped(&mut self) {
        self.tree.stopped_pods = match self.tree.stopped_pods {
            StoppedPods::Folded => StoppedPods::Listed,
            StoppedPods::Listed => StoppedPods::Folded,
        };
    }

    /// The rows of the tree as they are drawn.
    fn tree_rows(&self) -> Vec<TreeRow<'_>> {
        self.tree.rows(&Sums::of(&self.family), self.current.as_ref())
    }

    pub(super) fn move_cursor(&mut self, by: isize) {
        let rows = self.tree_rows();
        let last = rows.len().saturating_sub(1);
        let at = self.tree.position(&rows).unwrap_or(0);
        let chosen = self.tree.chosen().and_then(|name| self.family.get(name));
        let lineage = chosen.into_iter().flat_map(|info| self.family.lineage(info));
        let above = lineage.filter_map(|name| self.family.get(name));
        let ended = above.chain(chosen).filter(|info| self.family.is_done(info));
        let opened: Vec<PodName> = ended.filter_map(|info| info.parent.clone()).collect();
        let place = rows.get(at.saturating_add_signed(by).min(last)).map(TreeRow::place);
        // Ended Pods that have rows because of the cursor keep them when it goes on.
        self.tree.unfolded.extend(opened);
        self.tree.cursor = place;
    }

    /// Keeps the cursor of the tree on a row, as long as the tree has the keys. To be called before each frame and key, not
    /// after every message: it sums the whole family.
    pub(super) fn tree_follows(&mut self) {
        if self.focus == Focus::Tree {
            let mut tree = std::mem::take(&mut self.tree);
            tree.keep_cursor(&tree.rows(&Sums::of(&self.family), self.current.as_ref()));
            self.tree = tree;
        }
    }

    fn choose_row(&mut self) -> Vec<Effect> {
        match self.tree.cursor.clone() {
            Some(Place::Pod(name)) => self.make_current(&name),
            Some(Place::Ended(_) | Place::Stopped) => {
                self.unfold_row();
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// Unfolds the row under the cursor. If that row disappears, the cursor goes to the first row that replaced it.
    fn unfold_row(&mut self) {
        let before: Vec<Place> = self.tree_rows().iter().map(TreeRow::place).collect();
        match self.tree.cursor.clone() {
            Some(Place::Pod(name)) => {
                self.tree.unfold(&name);
                self.tree.unfolded.insert(name);
            }
            Some(Place::Ended(parent)) => {
                self.tree.unfolded.insert(parent);
            }
            Some(Place::Stopped) => self.tree.stopped_pods = StoppedPods::Listed,
            None => {}
        }
        let rows = self.tree_rows();
        if self.tree.position(&rows).is_none() {
            let new = rows.iter().map(TreeRow::place).find(|place| !before.contains(place));
            self.tree.cursor = new;
        }
    }

    /// Folds the children of the row; a row without visible children moves the cursor to its parent.
    fn fold_row(&mut self) {
        let Some(name) = self.tree.chosen().cloned() else { return };
        let rows = self.tree_rows();
        let shows = rows.iter().any(|row| {
            matches!(row, TreeRow::Pod { info, children: Children::Shown, .. } if info.name == name)
        });
        if shows {
            self.tree.fold(name);
        } else if let Some(parent) = self.family.get(&name).and_then(|info| info.parent.clone()) {
            self.tree.cursor = Some(Place::Pod(parent));
        }
    }

    /// The Pods of the tree, top down.
    fn listed(&self) -> Vec<PodName> {
        let rows = self.tree_rows();
        rows.iter()
            .filter_map(|row| match row.place() {
                Place::Pod(name) => Some(name),
                Place::Ended(_) | Place::Stopped => None,
            })
            .collect()
    }

    /// Goes to the Pod pinned to a digit, or, if none is, to the Pod in that row of the tree.
    pub(super) fn slot(&mut self, number: u8) -> Vec<Effect> {
        let at = usize::from(number).saturating_sub(1);
        let pinned = self.tree.pins.at(number).cloned();
        match pinned.or_else(|| self.listed().get(at).cloned()) {
            Some(name) => self.make_current(&name),
            None => self.say(Kind::Info, format!("there is no Pod {number}")),
        }
    }

    pub(super) fn parent(&mut self) -> Vec<Effect> {
        let of = self.selected().and_then(|name| self.family.get(name));
        match of.and_then(|info| info.parent.clone()) {
            Some(parent) => self.make_current(&parent),
            None => self.say(Kind::Info, "this Pod has no parent"),
        }
    }

    /// The Pod above or below the current one in the tree.
    pub(super) fn neighbour(&mut self, by: isize) -> Vec<Effect> {
        let pods = self.listed();
        let at = pods.iter().position(|name| Some(name) == self.current.as_ref());
        let next =
            at.map_or(0, |at| at.saturating_add_signed(by).min(pods.len().saturating_sub(1)));
        match pods.get(next).cloned() {
            Some(name) => self.make_current(&name),
            None => Vec::new(),
        }
    }

    pub(super) fn last_pod(&mut self) -> Vec<Effect> {
        match self.previous.clone() {
            Some(name) => self.make_current(&name),
            None => self.say(Kind::Info, "no other Pod was current yet"),
        }
    }
}
