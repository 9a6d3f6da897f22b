//! What is kept of a screen for the next one: taken from the app when it may have changed, and given to the app of
//! the next screen before its first event.

use crate::screen::app::everything::most;
use crate::screen::app::verb::remember;
use crate::screen::app::{App, Effect, Zoom};
use crate::screen::pane::actionbar::Purpose;
use crate::screen::pane::composer::{Message, SavedDraft, Sent};
use crate::screen::pane::transcript::{Bookmark, Detail};
use crate::screen::pane::tree::{Place, StoppedPods, Workspaces};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use yoi::llm::rehearsal::plays_tour;
use yoi::protocol::{PodInfo, PodName, State};

/// How many lines of the command line are kept.
const MAX_LINES: usize = 200;
/// How many bytes of sent messages are kept, the newest first. A longer message is not kept.
const MAX_SENT_BYTES: usize = 1024 * 1024;
/// How many drafts are kept.
const MAX_DRAFTS: usize = 32;

/// Everything of a screen that the next one in the same workspace shows again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScreenState {
    current: Option<PodName>,
    previous: Option<PodName>,
    beside: Option<PodName>,
    /// The row of the tree with the cursor.
    row: Option<Place>,
    workspaces: Workspaces,
    stopped_pods: StoppedPods,
    folded: BTreeSet<PodName>,
    marks: Vec<PodName>,
    pins: BTreeMap<u8, PodName>,
    detail: Detail,
    zoom: Zoom,
    /// The columns left of the transcript, if a person chose them.
    tree_columns: Option<u16>,
    /// Lines that were run, newest first.
    lines: Vec<String>,
    bookmarks: BTreeMap<PodName, Bookmark>,
    /// How often rows of the palette were chosen.
    chosen: BTreeMap<String, u32>,
    /// By the name of their Pod; the empty name is the Pod that is still to be created.
    drafts: BTreeMap<String, SavedDraft>,
    /// What another screen last held for the same Pods, where both held something. The next screen has it in its history.
    drafts_elsewhere: BTreeMap<String, SavedDraft>,
    /// The history of the composer, sent messages and cleared drafts, oldest first.
    sent: Vec<Sent>,
    /// When it was written last, by whichever screen: about when the person left; milliseconds since the Unix epoch.
    left: Option<u64>,
}

/// Where the earlier screen was.
#[derive(Debug)]
pub(super) struct Returning {
    current: PodName,
    previous: Option<PodName>,
    beside: Option<PodName>,
    row: Option<Place>,
}

impl ScreenState {
    /// This screen as it is written at this time.
    pub fn written_at(self, now: u64) -> Self {
        Self { left: Some(now), ..self }
    }

    /// Joins two screens over the same workspace: `self` is written now, `other` is what another screen
    /// has written since `base`, the state that `self` read or wrote last. Drafts and bookmarks that
    /// `self` has not changed are those of `other`; where both have changed a draft, that of `other` is kept beside;
    /// the newest sent messages of both are kept; all else is that of `self`.
    pub fn merged(mut self, base: &Self, other: Self) -> Self {
        self.drafts_elsewhere =
            joined(self.drafts_elsewhere, &base.drafts_elsewhere, other.drafts_elsewhere);
        for (pod, draft) in &other.drafts {
            let (own, before) = (self.drafts.get(pod), base.drafts.get(pod));
            if own != before && Some(draft) != before && own != Some(draft) {
                self.drafts_elsewhere.insert(pod.clone(), draft.clone());
            }
        }
        self.drafts = joined(self.drafts, &base.drafts, other.drafts);
        self.left = self.left.max(other.left);
        self.chosen = most(self.chosen, other.chosen);
        self.bookmarks = joined(self.bookmarks, &base.bookmarks, other.bookmarks);
        let own: BTreeSet<(u64, String)> = self.sent.iter().map(sent_key).collect();
        // What this screen wrote before and has no more, such as the beginning of a text that is still being typed, is left out.
        let former: BTreeSet<(u64, String)> = base.sent.iter().map(sent_key).collect();
        let is_new = |key: &(u64, String)| !own.contains(key) && !former.contains(key);
        self.sent.extend(other.sent.into_iter().filter(|sent| is_new(&sent_key(sent))));
        self.sent.sort_by_key(|sent| sent.at);
        keep_newest(&mut self.sent);
        self
    }
}

fn sent_key(sent: &Sent) -> (u64, String) {
    (sent.at, sent.message.text.clone())
}

/// For each key: the own value, unless only the other one has changed.
fn joined<K: Ord + Clone, V: Clone + PartialEq>(
    own: BTreeMap<K, V>,
    base: &BTreeMap<K, V>,
    other: BTreeMap<K, V>,
) -> BTreeMap<K, V> {
    let keys: BTreeSet<K> = own.keys().chain(other.keys()).cloned().collect();
    let value = |key: K| {
        let unchanged = own.get(&key) == base.get(&key);
        let value = if unchanged { other.get(&key) } else { own.get(&key) };
        value.cloned().map(|value| (key, value))
    };
    keys.into_iter().filter_map(value).collect()
}

fn keep_newest(sent: &mut Vec<Sent>) {
    sent.retain(|sent| sent.message.bytes() <= MAX_SENT_BYTES);
    let mut bytes = 0;
    let newest = sent.iter().rev().take_while(|sent| {
        bytes += sent.message.bytes();
        bytes <= MAX_SENT_BYTES
    });
    let drop = sent.len() - newest.count();
    sent.drain(..drop);
}

impl App {
    /// What of this screen the next one shows again.
    pub fn screen_state(&self) -> ScreenState {
        if let Some(returning) = &self.returning {
            // The family is not known yet: the screen is still where the earlier one was.
            return self.state_at(returning);
        }
        let here = |name: &&PodName| self.is_shown_again(name);
        let place = self.current.iter().chain(&self.previous).find(here).map(|current| Returning {
            current: current.clone(),
            previous: self.previous.clone(),
            beside: self.beside.clone(),
            row: self.tree.cursor.clone(),
        });
        let former = || self.not_returned.as_ref().filter(|former| self.can_return(former));
        match place.as_ref().or_else(former) {
            Some(place) => self.state_at(place),
            None => self.state(),
        }
    }

    fn state_at(&self, place: &Returning) -> ScreenState {
        ScreenState {
            current: Some(place.current.clone()),
            previous: place.previous.clone(),
            beside: place.beside.clone(),
            row: place.row.clone(),
            ..self.state()
        }
    }

    /// All but the place of the screen.
    fn state(&self) -> ScreenState {
        let is_there = |name: &PodName| !self.family.is_known() || self.family.get(name).is_some();
        let mut bookmarks = self.all_bookmarks();
        bookmarks.retain(|name, _| is_there(name));
        let mut history = self.composer.history.clone();
        let (mut drafts, mut others): (Vec<_>, Vec<_>) = self
            .composer
            .drafts()
            .into_iter()
            .partition(|(pod, _)| pod.as_ref().is_none_or(is_there));
        others.extend(drafts.drain(drafts.len().min(MAX_DRAFTS)..));
        // A draft for a Pod that is gone can still be sent to another one.
        others.iter().for_each(|(_, draft)| history.keep_unsent(&draft.message));
        let mut lines = self.lines.clone();
        for prompt in self.layers.prompts() {
            // A line that is being typed ends with this screen, so its text goes into a history.
            match (prompt.typed(), prompt.purpose) {
                (Some(text), Purpose::Verb) => remember(&mut lines, text),
                (Some(text), purpose) if purpose.is_of_card() => {
                    history.keep_unsent(&Message::plain(text));
                }
                _ => {}
            }
        }
        lines.truncate(MAX_LINES);
        let name = |pod: Option<PodName>| pod.map(String::from).unwrap_or_default();
        let mut sent = history.all();
        keep_newest(&mut sent);
        ScreenState {
            workspaces: self.tree.workspaces,
            stopped_pods: self.tree.stopped_pods,
            folded: self.tree.folded(),
            marks: self.tree.marks.all().to_vec(),
            pins: self.tree.pins.all().map(|(slot, name)| (slot, name.clone())).collect(),
            detail: self.detail,
            zoom: self.zoom,
            tree_columns: self.tree.columns,
            lines,
            chosen: self.chosen.clone(),
            bookmarks,
            drafts: drafts.into_iter().map(|(pod, draft)| (name(pod), draft)).collect(),
            drafts_elsewhere: BTreeMap::new(),
            sent,
            left: self.left,
            ..ScreenState::default()
        }
    }

    /// Takes over what an earlier screen kept, before the first event.
    pub fn restore_screen(&mut self, state: ScreenState) {
        let drafts = state.drafts.into_iter().filter_map(|(name, draft)| match name.as_str() {
            "" => Some((None, draft)),
            name => Some((Some(PodName::parse(name).ok()?), draft)),
        });
        self.composer.restore(drafts.collect(), state.sent);
        for draft in state.drafts_elsewhere.values() {
            self.composer.history.keep(&draft.message, state.left.unwrap_or_default());
        }
        self.tree.workspaces = state.workspaces;
        self.tree.stopped_pods = state.stopped_pods;
        state.folded.into_iter().for_each(|name| self.tree.fold(name));
        state.marks.into_iter().for_each(|name| self.tree.marks.toggle(name));
        state.pins.into_iter().for_each(|(slot, name)| self.tree.pins.put(slot, name));
        (self.detail, self.zoom) = (state.detail, state.zoom);
        self.tree.columns = state.tree_columns;
        self.lines = state.lines;
        self.chosen = state.chosen;
        self.left = state.left;
        self.bookmarks = state.bookmarks;
        let (previous, beside, row) = (state.previous, state.beside, state.row);
        self.returning = state.current.map(|current| Returning { current, previous, beside, row });
        self.restored_text = self.composer.draft().message().text;
    }

    /// Whether a Pod belongs to the workspace of this screen. A visit to another one ends with the screen, but that to a
    /// tour does not: it has a directory of its own, wherever it is played.
    fn is_shown_again(&self, name: &PodName) -> bool {
        let is_tour = |info: &PodInfo| plays_tour(info) && info.state != State::Stopped;
        let info = self.family.get(name);
        info.is_some_and(|info| {
            is_tour(info) || self.family.belongs(info, &self.setup.workspace, None)
        })
    }

    /// Whether this screen begins where the earlier one was. A message of the command line goes to no Pod of another
    /// workspace.
    pub(super) fn can_return(&self, to: &Returning) -> bool {
        let is_here = |info: &PodInfo| info.workspace == self.setup.workspace;
        self.is_shown_again(&to.current)
            && (self.first_message.is_none() || self.family.get(&to.current).is_some_and(is_here))
    }

    /// Goes where the earlier screen was; the keys go to the composer, whatever had the focus then.
    pub(super) fn return_to(&mut self, to: Returning) -> Vec<Effect> {
        let Returning { current, previous, beside, row } = to;
        let effects = self.make_current(&current);
        let there = |name: &PodName| self.family.get(name).is_some() && *name != current;
        let (previous, beside) = (previous.filter(&there), beside.filter(&there));
        (self.previous, self.beside) = (previous, beside);
        self.tree.cursor = row.or(self.tree.cursor.take());
        effects
    }

    /// Remembers where the person is in every transcript.
    pub(super) fn set_bookmarks(&mut self) {
        self.bookmarks = self.all_bookmarks();
    }

    fn all_bookmarks(&self) -> BTreeMap<PodName, Bookmark> {
        let mut bookmarks = self.bookmarks.clone();
        for (name, transcript) in &self.transcripts {
            let bookmark = transcript.bookmark();
            if bookmark == Bookmark::default() {
                bookmarks.remove(name);
            } else {
                bookmarks.insert(name.clone(), bookmark);
            }
        }
        bookmarks
    }
}
