//! The inbox: what waits for a person, one item at a time as a card. Its keys decide a request only after it has been on the
//! screen for a while.

use crate::screen::pane::actionbar::Purpose;
use yoi::client::family::Matter;
use yoi::client::family::inbox::Item;
use yoi::protocol::{ApprovalRequest, PodInfo, PodName};

mod draw;

pub use crate::wording::rule::verdict as verdict_words;
pub use draw::{Sight, Title, View, in_view, more_below};

/// How long a request or a confirmation must have been on the screen, unchanged and without a key, before a key answers it,
/// in milliseconds.
pub const ARMED_AFTER: u64 = 300;

/// How long no key may have come before one that decides, in milliseconds: a key that is held down repeats sooner.
pub const HELD: u64 = 300;

/// The chosen item, and since when it has been on the screen.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    /// The parts of the chosen item; empty before the first choice.
    chosen: Vec<String>,
    /// The place of the chosen item; it stays when the item goes.
    at: usize,
    /// Whether its card is on the screen without the keys.
    pub asleep: bool,
    /// The Pod of the card, while the person looks into it.
    pub inside: Option<PodName>,
    /// The item of the card that has the keys, as it last was.
    kept: Option<Kept>,
    /// Why that item ended, though the person had not left its card: the card stays, and its keys do nothing.
    ended: Option<String>,
    /// The line on top does what a digit chose on the card: after it comes the next card.
    pub steps: bool,
    /// How many of its rows are scrolled out of view.
    pub scrolled: usize,
    /// How many rows, from the first on and without a gap, were in view: of which parts, at which width.
    seen: (Vec<String>, u16, usize),
    /// The parts that have the focus.
    focused: Option<Vec<String>>,
    /// Since when they have been on the screen, unchanged and without a key; `None` before the first frame.
    drawn: Option<u64>,
    /// Until when a key may be one that is held down.
    held: u64,
    /// The parts of all items that needed the person when the item was chosen.
    known: Vec<String>,
    /// What was typed for an item and not sent: for which of its parts, into which line.
    typed: Vec<(String, Purpose, String)>,
}

/// An item apart from its family.
#[derive(Clone, Debug, PartialEq)]
enum Kept {
    Requests(Vec<ApprovalRequest>),
    Pod(Box<PodInfo>, Matter),
}

impl Kept {
    fn of(item: &Item<'_>) -> Self {
        match item {
            Item::Approval(requests) => {
                Self::Requests(requests.iter().map(|&request| request.clone()).collect())
            }
            Item::Pod(info, matter) => Self::Pod(Box::new((*info).clone()), *matter),
        }
    }

    fn item(&self) -> Item<'_> {
        match self {
            Self::Requests(requests) => Item::Approval(requests.iter().collect()),
            Self::Pod(info, matter) => Item::Pod(info, *matter),
        }
    }

    /// Whether an item is this one, or a part of it: a Pod that is a matter of another kind now is not.
    fn is(&self, item: &Item<'_>) -> bool {
        let kept = self.item();
        kept.matter() == item.matter()
            && item.parts().iter().any(|part| kept.parts().contains(part))
    }
}

/// Whether the card has the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    Here,
    /// It gets them back from a layer above it.
    Elsewhere,
    Asleep,
}

impl Inbox {
    /// Where the chosen item is among these, from 0.
    pub fn position(&self, items: &[Item<'_>]) -> usize {
        let mine = |item: &Item<'_>| item.parts().iter().any(|part| self.chosen.contains(part));
        let found = items.iter().position(mine);
        // Behind the last comes the first.
        found.unwrap_or(if self.at < items.len() { self.at } else { 0 })
    }

    /// The number of the chosen item, from 1, and how many there are. Each request counts, as in the bar.
    pub fn place(&self, items: &[Item<'_>]) -> (usize, usize) {
        let count = |items: &[Item<'_>]| items.iter().map(Item::count).sum::<usize>();
        (count(&items[..self.position(items).min(items.len())]) + 1, count(items))
    }

    /// Whether the item of the card that has the keys is still one of these.
    pub fn is_among(&self, items: &[Item<'_>]) -> bool {
        self.kept.as_ref().is_none_or(|kept| items.iter().any(|item| kept.is(item)))
    }

    /// The Pod and the kind of the item that the card had when it last was one of the items.
    pub fn kept_pod(&self) -> Option<(&PodName, Matter)> {
        match self.kept.as_ref()? {
            Kept::Pod(info, matter) => Some((&info.name, *matter)),
            Kept::Requests(_) => None,
        }
    }

    /// Whether the card with the keys is about this request.
    pub fn is_about(&self, id: &str) -> bool {
        let has = |requests: &Vec<ApprovalRequest>| requests.iter().any(|request| request.id == id);
        matches!(&self.kept, Some(Kept::Requests(requests)) if has(requests))
    }

    /// The item of the card has ended: the card says why, and stays.
    pub fn end(&mut self, why: impl Into<String>) {
        self.ended.get_or_insert(why.into());
        (self.focused, self.drawn, self.scrolled) = (None, None, 0);
    }

    /// Why the item of the card ended; `None` while it has not.
    pub fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    /// The item that has ended.
    pub fn ended_item(&self) -> Option<Item<'_>> {
        self.ended.as_ref().and(self.kept.as_ref()).map(Kept::item)
    }

    /// The item of the card waits again.
    pub fn goes_on(&mut self) {
        self.ended = None;
    }

    /// Whether this item came to need the person after the chosen one was chosen.
    pub fn is_new(&self, item: &Item<'_>) -> bool {
        !item.parts().iter().any(|part| self.known.contains(part))
    }

    /// Keeps what was typed for the chosen item into a line, in place of what was kept of that line before.
    pub fn keep_typed(&mut self, purpose: Purpose, text: Option<&str>) {
        let chosen = &self.chosen;
        self.typed.retain(|(part, line, _)| *line != purpose || !chosen.contains(part));
        let kept = chosen.first().zip(text);
        self.typed.extend(kept.map(|(part, text)| (part.clone(), purpose, text.to_owned())));
    }

    /// What was typed for the chosen item into such a line, and not sent.
    pub fn typed(&self, purpose: Purpose) -> Option<&str> {
        let is_mine = |part: &String| self.chosen.contains(part);
        let mut typed = self.typed.iter();
        typed.find(|(part, line, _)| *line == purpose && is_mine(part)).map(|(.., text)| &**text)
    }

    /// Forgets what was typed for a request that is decided.
    pub fn forget_typed(&mut self, id: &str) {
        self.typed.retain(|(part, ..)| part != id);
    }

    /// Notes that its card is not on the screen: the next one has to be drawn before it can be decided.
    pub fn rests(&mut self) {
        (self.focused, self.drawn, self.ended) = (None, None, None);
    }

    /// The chosen item; none while the card is about one that has ended.
    pub fn chosen<'a, 'b>(&self, items: &'b [Item<'a>]) -> Option<&'b Item<'a>> {
        items.get(self.position(items)).filter(|_| self.ended.is_none())
    }

    /// Chooses the item at a place; beyond the end it is the last. `false` where there is none.
    pub fn choose(&mut self, items: &[Item<'_>], at: usize) -> bool {
        (self.kept, self.ended) = (None, None);
        let needed = items.iter().filter(|item| item.needs_person());
        self.known = needed.flat_map(Item::parts).collect();
        self.at = at.min(items.len().saturating_sub(1));
        self.chosen = items.get(self.at).map(Item::parts).unwrap_or_default();
        self.scrolled = 0;
        !items.is_empty()
    }

    /// Keeps the choice on its item. To be called after every change of the items or the focus: a decision
    /// counts only some time after the last change.
    pub fn follow(&mut self, items: &[Item<'_>], attention: Attention) {
        let at = self.position(items);
        let parts = items.get(at).map(Item::parts).unwrap_or_default();
        if !self.chosen.iter().any(|part| parts.contains(part)) {
            self.scrolled = 0;
        }
        (self.at, self.chosen) = (at, parts);
        if let Some(item) = items.get(at)
            && attention != Attention::Asleep
            && !self.kept.as_ref().is_some_and(|kept| kept.item() == *item)
        {
            self.kept = Some(Kept::of(item));
        }
        let focused = match attention {
            Attention::Here => Some(self.chosen.clone()),
            Attention::Elsewhere | Attention::Asleep => None,
        };
        if self.focused != focused {
            self.focused = focused;
            self.drawn = None;
        }
    }

    /// Notes which rows of the chosen item are in view at this width.
    pub fn saw(&mut self, sight: Sight, columns: u16) {
        let (parts, width, rows) = &mut self.seen;
        if (&*parts, *width) != (&self.chosen, columns) {
            (*parts, *width, *rows) = (self.chosen.clone(), columns, 0);
        }
        if sight.first <= *rows {
            *rows = (*rows).max(sight.first + sight.shown);
        }
    }

    /// Scrolls back to the first row that was never in view, if one was passed over.
    pub fn back_to_unseen(&mut self, sight: Sight) {
        if self.unseen(sight) > 0 {
            self.scrolled = self.scrolled.min(self.seen.2);
        }
    }

    /// How many rows of the request were never in view.
    pub fn unseen(&self, sight: Sight) -> usize {
        sight.decided.saturating_sub(self.seen.2)
    }

    /// Starts the time until a decision counts anew, because another key was pressed.
    pub fn distracted(&mut self, now: u64) {
        self.drawn = self.drawn.map(|_| now);
    }

    /// Notes a key that decides: those that follow it at once may come from holding it down.
    pub fn pressed(&mut self, now: u64) {
        self.held = now.saturating_add(HELD);
    }

    /// Notes that the request is shown in another way: it has to be drawn before it can be decided.
    pub fn changed(&mut self) {
        self.drawn = None;
    }

    /// Notes that a frame with the inbox is on the screen.
    pub fn frame_drawn(&mut self, now: u64) {
        if self.focused.is_some() {
            self.drawn.get_or_insert(now);
        }
    }

    /// From when on a decision counts.
    pub fn arms_at(&self) -> Option<u64> {
        let chosen = self.focused.as_ref().is_some_and(|parts| !parts.is_empty());
        let armed = self.drawn.filter(|_| chosen).map(|drawn| drawn.saturating_add(ARMED_AFTER));
        armed.map(|at| at.max(self.held))
    }

    /// Whether a decision counts by now.
    pub fn is_armed(&self, now: u64) -> bool {
        self.arms_at().is_some_and(|at| at <= now)
    }
}

#[cfg(test)]
mod tests;
