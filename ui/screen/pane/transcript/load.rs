//! Chooses which page to request, and applies it when it comes.

use crate::screen::pane::transcript::Transcript;
use crate::screen::pane::transcript::block::Kind;
use crate::screen::pane::transcript::pages::{Beginning, Kept, Pos};
use crate::screen::pane::transcript::parts::PartRange;
use crate::screen::pane::transcript::scroll::{Anchor, RowPosition};
use crate::screen::pane::transcript::tool::{Progress, Tool};
use yoi::client::follow::Follower;
use yoi::protocol::EntryId;
use yoi::protocol::event::{Event, InFlight, Line};

/// How many events are kept while the newest page is under way; if more come, it is read again.
const EARLY: usize = 4096;

/// A page or parts that the transcript needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The newest one.
    Tail,
    /// The one before all that is loaded.
    Older(EntryId),
    /// A dropped one.
    Refill(i64, EntryId),
    /// Parts of a long text.
    Parts(PartRange),
}

/// A request to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The page before this entry, or the newest one.
    Page(Option<EntryId>),
    Parts(PartRange),
}

#[derive(Default)]
pub struct Load {
    /// Until the newest page has come, and after events were lost, it applies none.
    follower: Follower,
    /// Whether the newest page has come.
    pub ready: bool,
    stale: bool,
    /// What the view needs, once the newest page is loaded.
    pub want: Option<Want>,
    under_way: Option<Want>,
    pub failed: Option<String>,
    /// Whether the history goes on from another place than the end of the loaded blocks.
    jumped: bool,
    whole: Vec<EntryId>,
}

impl Load {
    pub fn new() -> Self {
        Self { follower: Follower::from_page(EARLY), ..Self::default() }
    }

    fn next(&self) -> Option<Want> {
        let behind = self.stale || self.follower.needs_page();
        if behind { Some(Want::Tail) } else { self.want }
    }

    /// Requests the newest page again.
    pub fn again(&mut self) {
        self.stale = true;
        self.failed = None;
    }

    /// Notes that the history goes on from another place, so that loaded blocks may not be part of it.
    pub fn jumped(&mut self) {
        self.jumped = true;
        self.again();
    }

    /// Notes that events were lost, and requests the newest page.
    fn lagged(&mut self) {
        self.follower.note_loss();
        self.failed = None;
    }

    pub fn under_way(&self) -> Option<Want> {
        self.under_way
    }

    /// Notes that the reply to a request has come.
    pub fn arrived(&mut self) {
        (self.failed, self.want, self.under_way) = (None, None, None);
    }

    pub fn want_whole(&mut self, id: Option<EntryId>) {
        self.whole.extend(id);
    }

    pub fn take_whole(&mut self) -> Option<EntryId> {
        self.whole.pop()
    }

    /// Whether an event is to be applied now.
    pub fn is_new(&mut self, seq: Option<u64>, event: &Event) -> bool {
        if matches!(event, Event::Lagged) {
            self.lagged();
            return false;
        }
        self.wait_for_page(event);
        self.follower.accept(seq, event)
    }

    /// Notes what an event means for the newest page, while the screen waits for that page. A page that could not be
    /// read is requested again at the next entry, because the view may never move.
    fn wait_for_page(&mut self, event: &Event) {
        if self.next() != Some(Want::Tail) {
            return;
        }
        match event {
            Event::RewindApplied { .. } => self.jumped = true,
            Event::Entry { .. } => self.failed = None,
            _ => {}
        }
    }

    /// Whether the newest page is loaded and the events after it are applied.
    #[cfg(test)]
    pub fn is_current(&self) -> bool {
        !self.stale && !self.follower.needs_page()
    }
}

impl Transcript {
    /// The request to send now, if there is one.
    pub fn wants(&self) -> Option<Wanted> {
        if self.load.under_way.is_some() || self.load.failed.is_some() {
            return None;
        }
        self.load.next().map(|want| match want {
            Want::Tail => Wanted::Page(None),
            Want::Older(before) | Want::Refill(_, before) => Wanted::Page(Some(before)),
            Want::Parts(range) => Wanted::Parts(range),
        })
    }

    /// Notes that the request of [`Transcript::wants`] was sent.
    pub fn asked(&mut self) {
        self.load.under_way = self.load.next();
        if self.load.under_way == Some(Want::Tail) {
            self.load.stale = false;
            self.load.follower.page_requested();
        }
    }

    /// Notes that the requested page could not be read; it is requested again when the view moves.
    pub fn page_failed(&mut self, why: String) {
        if self.load.under_way.take() == Some(Want::Tail) {
            self.load.stale = true;
            self.load.follower.page_failed();
        }
        self.load.failed = Some(why);
    }

    /// Adds the requested page, which covers the events up to number `seq`.
    pub fn page(
        &mut self,
        entries: Vec<Line>,
        before: Option<EntryId>,
        in_flight: Vec<InFlight>,
        seq: u64,
    ) {
        self.load.failed = None;
        self.load.want = None;
        match self.load.under_way.take() {
            Some(Want::Tail) => self.renew(entries, before, in_flight, seq),
            Some(Want::Older(asked)) if self.pages.beginning == Beginning::Before(asked) => {
                self.pages.prepend(entries, before);
            }
            Some(Want::Refill(page, asked)) if self.pages.missing(page) == Some(asked) => {
                self.pages.refill(page, entries, before);
            }
            // The reply to a request that a new tail has made void.
            Some(Want::Older(_) | Want::Refill(..) | Want::Parts(_)) | None => {}
        }
        self.attach_tables();
        self.go_on_back();
        self.go_on_seeking();
        self.find_visible_rows();
        self.drop_pages();
    }

    fn renew(
        &mut self,
        entries: Vec<Line>,
        before: Option<EntryId>,
        in_flight: Vec<InFlight>,
        seq: u64,
    ) {
        let reading = self.place_read();
        let lost = self.load.ready && self.load.follower.needs_page();
        let jumped = std::mem::take(&mut self.load.jumped) || self.pages.lack_jump(&entries);
        let kept = match (jumped, lost && self.anchor != Anchor::Tail) {
            (true, _) => Kept::Nothing,
            (false, true) => Kept::OverGap,
            (false, false) => Kept::Joined,
        };
        self.pages.renew(entries, before, kept);
        self.streams_from = None;
        self.cached.clear();
        self.cursor = None;
        self.pages.all_mut().for_each(|block| block.cache = None);
        let place = reading.and_then(|(id, part, row)| {
            let pos = Pos { part, ..self.pages.find_entry(id)? };
            Some(Anchor::At(RowPosition { pos, row, of: 0 }))
        });
        self.anchor = place.unwrap_or(Anchor::Tail);
        in_flight.into_iter().for_each(|block| self.in_flight(block));
        self.load.ready = true;
        for (seq, event) in self.load.follower.page_arrived(seq) {
            self.apply(seq, &event);
        }
    }

    /// The entry at the top of the view, and the part and row of it, when the tail is not being
    /// followed.
    fn place_read(&self) -> Option<(EntryId, usize, i32)> {
        let Anchor::At(position) = self.anchor else { return None };
        Some((self.pages.get(position.pos.head())?.id?, position.pos.part, position.row))
    }

    fn in_flight(&mut self, block: InFlight) {
        let kind = match block {
            InFlight::Text { text, .. } => return self.text(&text),
            InFlight::Thinking { text, .. } => {
                self.begin_thought();
                return self.think(&text);
            }
            InFlight::ToolCall { id, name, arguments } => {
                let mut tool = Tool::asked(id, name);
                tool.more_arguments(&arguments);
                Kind::Tool(Box::new(tool))
            }
            InFlight::Tool { id, name, output } => return self.running(id, name, &output),
        };
        self.push_streaming(kind);
    }

    fn running(&mut self, id: String, name: String, output: &str) {
        let pos = match self.pages.find_call(&id) {
            Some(pos) => pos,
            None => self.push_streaming(Kind::Tool(Box::new(Tool::asked(id, name)))),
        };
        self.unstamped = true;
        self.streams_at(pos);
        let Some(block) = self.pages.get_mut(pos) else { return };
        if let Kind::Tool(tool) = &mut block.kind {
            // A call is under way for the host while a person decides about it, too.
            if !matches!(tool.progress, Progress::NeedsPerson | Progress::Waiting) {
                tool.progress = Progress::Running;
            }
            tool.output = output.to_owned();
        }
        block.cache = None;
    }

    /// Drops pages that are far from the view and from where a search is.
    pub(super) fn drop_pages(&mut self) {
        let mut near: Vec<Pos> = self.seen.iter().map(|seen| seen.pos).collect();
        near.dedup();
        near.extend(self.find.from());
        if let Anchor::At(position) = self.anchor {
            near.push(position.pos);
        }
        if near.is_empty() {
            near.extend(self.pages.last());
        }
        self.pages.keep_near(&near);
    }
}
