//! When the next frame is due, and what has to be laid out and loaded for it.

use crate::screen::app::{App, Areas, Asked, Effect, Link, Msg, panes};
use crate::screen::pane::transcript::{PartRange, Wanted};
use crate::wording::{age, wait};
use ratatui::layout::Rect;
use yoi::protocol::{ByteRange, Event, Method, Outgoing, PodInfo, PodName};

/// The size of a page of the log, in bytes.
const PAGE: u64 = 256 * 1024;

impl App {
    /// Whether a message changes the screen apart from its notices. An event of a Pod that is not in view
    /// changes nothing, and neither does a movement of the pointer.
    pub(super) fn redraw_after(&self, msg: &Msg) -> bool {
        match msg {
            Msg::Host(Outgoing { pod, event, .. }) => {
                let in_view = [self.shown(), self.beside(), self.current.as_ref()];
                is_of_the_family(event)
                    || pod.as_ref().is_some_and(|pod| in_view.contains(&Some(pod)))
            }
            Msg::NotFound(None) | Msg::Focus(_) => false,
            Msg::Mouse(event) => self.mouse_changes(event.kind),
            _ => true,
        }
    }

    /// Prepares the state for a frame: lays out the transcripts for the size of their panes, and
    /// requests the pages and parts that are missing in view.
    pub fn prepare_frame(&mut self) -> Vec<Effect> {
        self.tree_follows();
        let areas = Areas::of(self);
        self.composer_follows();
        let text = panes::composer(self).text_area(areas.composer);
        self.composer.fill(text);
        let first = self.shown().cloned().map(|name| (name, areas.transcript));
        let second = self.beside().cloned().zip(areas.beside);
        let second = second.map(|(name, area)| (name, Some(area)));
        let panes = first.into_iter().chain(second);
        let effects = panes.flat_map(|(name, area)| self.prepare_transcript(name, area));
        let effects: Vec<Effect> = effects.collect();
        // Before their pages are read, so that no event between a page and what follows it is left out.
        let shown = self.tell_shown().into_iter();
        shown.chain(effects).chain(self.tell_outside()).collect()
    }

    /// Tells the host which Pods this screen shows and whose transcripts it keeps, when these are others than before.
    /// A look at another row of the tree does not leave the current Pod.
    fn tell_shown(&mut self) -> Option<Effect> {
        let beside = self.beside().filter(|_| Areas::of(self).beside.is_some());
        let mut pods = Vec::new();
        for pod in [self.shown(), beside, self.current.as_ref()].into_iter().flatten() {
            if !pods.contains(pod) {
                pods.push(pod.clone());
            }
        }
        let mut follows: Vec<PodName> = self.transcripts.keys().cloned().collect();
        follows.sort();
        let shows = Some(Method::Show { pods, follows: Some(follows) });
        if self.link != Link::Up || self.known_shown == shows {
            return None;
        }
        self.known_shown = shows;
        let method = self.known_shown.clone()?;
        Some(Effect::Call { pod: None, method, asked: Asked::Silently })
    }

    fn prepare_transcript(&mut self, name: PodName, area: Option<Rect>) -> Vec<Effect> {
        if self.is_gone(&name) {
            return Vec::new();
        }
        // A result behind a page is not looked at, and one that the cursor of a list passes is not read.
        let is_read = self.current.as_ref() == Some(&name)
            || self.beside() == Some(&name)
            || self.inbox.inside.as_ref() == Some(&name);
        let is_read = is_read && self.page.is_none();
        let mut effects = if is_read { self.look_at(&name) } else { Vec::new() };
        // Without a connection no time passes in a transcript.
        let (now, until) = (self.now, self.search.lost.unwrap_or(u64::MAX));
        let transcript = self.transcript_of(&name);
        if let Some(area) = area {
            transcript.layout(area.width, area.height, now.min(until));
        }
        let pod = Some(name.clone());
        if let Some(entry) = transcript.wants_whole() {
            let asked = Asked::Whole(name.clone());
            effects.push(Effect::Call {
                pod: pod.clone(),
                method: Method::Fetch { entry, range: None },
                asked,
            });
        }
        while let Some(text) = transcript.wants_table() {
            effects.push(Effect::ReadTable(name.clone(), text));
        }
        if let Some(wanted) = transcript.wants() {
            transcript.asked();
            let (method, asked) = match wanted {
                Wanted::Page(before) => {
                    (Method::Page { before, max_bytes: PAGE }, Asked::Page(name))
                }
                Wanted::Parts(range) => (fetch(range), Asked::Parts(name, range)),
            };
            effects.push(Effect::Call { pod, method, asked });
        }
        effects
    }

    /// When the screen changes next without a message, for example because an age grows.
    pub fn wakes_at(&self) -> Option<u64> {
        let (notice, arms) = (self.notices.ends(), self.arms_at());
        let areas = Areas::of(self);
        let shown = self.shown();
        let beside = self.beside().filter(|_| areas.beside.is_some());
        let connected = self.link == Link::Up;
        let transcripts = [shown, beside].into_iter().flatten().filter(|_| connected);
        let transcripts = transcripts.filter_map(|name| self.transcripts.get(name));
        let transcript = transcripts.filter_map(|one| one.wakes_at(self.now)).min();
        let in_view = |info: &PodInfo| [shown, beside].contains(&Some(&info.name));
        // A card shows a running clock, the tree and the peers ages by the minute.
        let card = areas.card.and_then(|_| self.card_changes_at());
        let listed = |info: &PodInfo| {
            areas.peers.is_some()
                || areas.tree.is_some()
                    && self.tree.lists(info, &self.family, self.current.as_ref())
        };
        let changes = |info: &PodInfo| {
            let age = match in_view(info) {
                true => age::changes_at(info, self.now),
                false if listed(info) => age::by_minute_changes_at(info, self.now),
                false => return None,
            };
            let wait = wait::changes_at(info, &self.family, self.now);
            age.into_iter().chain(wait).min()
        };
        let ages = self.family.all().iter().filter_map(changes).min();
        let rows = self.pace.next();
        let search = self.layers.are_searching().then_some(self.now);
        let under_way = self.under_way_at();
        let looks = [search, self.looks_at(), self.notifies_at()];
        let shown = [notice, arms, transcript, ages, card, rows, under_way];
        shown.into_iter().chain(looks).flatten().min()
    }
}

/// Whether an event changes the tree, the peers or the inbox, or what each transcript shows.
pub(super) fn is_of_the_family(event: &Event) -> bool {
    matches!(
        event,
        Event::Lagged
            | Event::Family { .. }
            | Event::MeshRoster { .. }
            | Event::Machine { .. }
            | Event::HostNotices { .. }
            | Event::PodChanged { .. }
            | Event::PodRemoved { .. }
            | Event::Peered { .. }
            | Event::Unpeered { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalDecided { .. }
    )
}

/// The request for some parts of a long text.
fn fetch(range: PartRange) -> Method {
    let PartRange { place, start, end, .. } = range;
    Method::Fetch { entry: place, range: Some(ByteRange { start, bytes: end - start }) }
}
