//! The inbox: the approval requests of all Pods and the Pods that need a person for another reason, then the Pods that failed,
//! those whose runs go in circles, and those that finished and were not looked at since; each oldest first. One item at a time
//! is shown as a card. Its keys decide a request only after it has been on the screen for a while.

use yoi::client::family::{Family, Matter, equal};
use yoi::protocol::{ApprovalRequest, PodInfo, PodName, State};

mod draw;

pub use crate::wording::rule::verdict as verdict_words;
pub use draw::{Sight, Title, View, in_view, more_below};

/// How long a request or a confirmation must have been on the screen, unchanged and without a key, before a key answers it,
/// in milliseconds.
pub const ARMED_AFTER: u64 = 300;

/// One item of the inbox.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'a> {
    /// An approval request, or several equal ones, the oldest first.
    Approval(Vec<&'a ApprovalRequest>),
    /// A Pod without a request.
    Pod(&'a PodInfo, Matter),
}

/// What a person can do about an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub does: &'static str,
    pub by: By,
}

/// What the digit of a step writes, and Enter sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// The line of a verb.
    Verb(String),
    /// A message to the Pod, which enters its run.
    Message(&'static str),
}

/// What a run that goes in circles is told, unless the person writes something else.
const NUDGE: &str = "You do the same again and again with the same outcome: say what blocks you, or try another way.";

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
    /// How many of its rows are scrolled out of view.
    pub scrolled: usize,
    /// How many rows, from the first on and without a gap, were in view: of which parts, at which width.
    seen: (Vec<String>, u16, usize),
    /// The parts that have the focus.
    focused: Option<Vec<String>>,
    /// Since when they have been on the screen, unchanged and without a key; `None` before the first frame.
    drawn: Option<u64>,
}

/// Whether the card has the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    Here,
    Elsewhere,
}

impl<'a> Item<'a> {
    /// The ids of its requests, or its Pod: an item is recognised by them.
    fn parts(&self) -> Vec<String> {
        match self {
            Self::Approval(approvals) => {
                approvals.iter().map(|approval| approval.id.clone()).collect()
            }
            Self::Pod(info, _) => vec![id_of_pod(&info.name)],
        }
    }

    /// The item with these of its requests only; `None` where none of them is left.
    pub fn only(self, kept: impl Fn(&&'a ApprovalRequest) -> bool) -> Option<Self> {
        match self {
            Self::Approval(mut approvals) => {
                approvals.retain(kept);
                (!approvals.is_empty()).then_some(Self::Approval(approvals))
            }
            pod @ Self::Pod(..) => Some(pod),
        }
    }

    /// When its wait began, in milliseconds since the Unix epoch.
    pub fn since(&self) -> u64 {
        match self {
            Self::Approval(approvals) => approvals.first().map_or(0, |approval| approval.since),
            Self::Pod(info, Matter::InCircles) => info.circling.as_ref().map_or(0, |it| it.since),
            Self::Pod(info, _) => info.since,
        }
    }

    /// The Pod that has waited the longest; `None` where an MCP client waits.
    pub fn pod(&self) -> Option<&'a PodName> {
        match self {
            Self::Approval(approvals) => {
                let first = approvals.first().copied();
                first.filter(|approval| approval.client.is_none()).map(|approval| &approval.pod)
            }
            Self::Pod(info, _) => Some(&info.name),
        }
    }

    /// The Pod with which a person puts it off; `None` where one request is put off.
    pub fn put_off_with(&self) -> Option<&'a PodName> {
        match self {
            Self::Approval(approvals) => {
                let first = approvals.first().copied();
                first.filter(|approval| approval.is_of_pod()).map(|approval| &approval.pod)
            }
            Self::Pod(info, _) => Some(&info.name),
        }
    }

    /// Whether it waits for a person, and is counted in the bar.
    pub fn needs_person(&self) -> bool {
        self.matter() == Matter::Needs
    }

    /// What it is about, where that is not a request.
    fn matter(&self) -> Matter {
        match self {
            Self::Approval(_) => Matter::Needs,
            Self::Pod(_, matter) => *matter,
        }
    }

    /// By how many it raises the count in the bar.
    fn count(&self) -> usize {
        self.approvals().len().max(1)
    }

    /// When a person put it off. What came after a person put its Pod off is not put off.
    pub fn put_off(&self, family: &Family) -> Option<u64> {
        let of_one = self.approvals().first().and_then(|approval| approval.later);
        let of_pod = || family.get(self.put_off_with()?)?.later;
        of_one.or_else(of_pod).filter(|at| *at >= self.since())
    }

    /// The Pod whose result was not looked at.
    pub fn finished(&self) -> Option<&'a PodName> {
        match self {
            Self::Pod(info, Matter::Finished) => Some(&info.name),
            Self::Pod(..) | Self::Approval(_) => None,
        }
    }

    /// What it is known by: the id of its oldest request, or its Pod.
    pub fn id(&self) -> String {
        self.parts().into_iter().next().unwrap_or_default()
    }

    /// Its approval requests.
    pub fn approvals(&self) -> &[&ApprovalRequest] {
        match self {
            Self::Approval(approvals) => approvals,
            Self::Pod(..) => &[],
        }
    }

    /// What a person can do about it by a digit, in the order of the digits.
    pub fn steps(&self) -> Vec<Step> {
        let Self::Pod(info, matter) = self else { return Vec::new() };
        let name = &info.name;
        let step = |does, line| Step { does, by: By::Verb(line) };
        let stop = || step("stop", format!("stop {name}"));
        match matter {
            Matter::Needs | Matter::Finished => Vec::new(),
            Matter::Failed => vec![step("go on", format!("resume {name}")), stop()],
            Matter::InCircles => vec![
                Step { does: "nudge", by: By::Message(NUDGE) },
                step("pause", format!("pause {name}")),
                stop(),
            ],
        }
    }
}

/// What the item of a Pod without a request is known by.
pub fn id_of_pod(pod: &PodName) -> String {
    format!("pod {pod}")
}

/// How many requests wait for a person, those of Pods that need one for another reason included.
pub fn waiting(family: &Family) -> usize {
    needs(family).iter().map(Item::count).sum()
}

/// All items: those that wait for a person first, and of these and of the others those last that were put off.
pub fn items(family: &Family) -> Vec<Item<'_>> {
    let mut items = needs(family);
    // A child that failed or finished is the matter of its parent while that runs.
    let is_left_alone = |info: &PodInfo| {
        let parent = info.parent.as_ref().and_then(|parent| family.get(parent));
        parent.is_none_or(|parent| parent.state != State::Running)
    };
    for matter in [Matter::Failed, Matter::InCircles, Matter::Finished] {
        let is_one = |info: &&PodInfo| {
            let is_mine = matter == Matter::InCircles || is_left_alone(info);
            info.is_listed() && Matter::of(info) == Some(matter) && is_mine
        };
        let pods = family.all().iter().filter(is_one);
        let mut pods: Vec<_> = pods.map(|info| Item::Pod(info, matter)).collect();
        pods.sort_by_key(Item::since);
        items.extend(pods);
    }
    // What needs a person comes before all others, also where it was put off: the count in the bar has it.
    items.sort_by_key(|item| (!item.needs_person(), item.put_off(family)));
    items
}

/// The items that wait for a person, oldest first.
pub fn needs(family: &Family) -> Vec<Item<'_>> {
    let mut items: Vec<Item<'_>> =
        equal::grouped(family.approvals()).into_iter().map(Item::Approval).collect();
    let approvals =
        |info: &PodInfo| family.approvals().iter().any(|approval| approval.is_of(&info.name));
    let others = family.needs_you().into_iter().filter(|info| !approvals(info));
    items.extend(others.map(|info| Item::Pod(info, Matter::Needs)));
    items.sort_by_key(Item::since);
    items
}

impl Inbox {
    /// Where the chosen item is among these, from 0.
    pub fn position(&self, items: &[Item<'_>]) -> usize {
        let mine = |item: &Item<'_>| item.parts().iter().any(|part| self.chosen.contains(part));
        let found = items.iter().position(mine);
        // Behind the last comes the first.
        found.unwrap_or(if self.at < items.len() { self.at } else { 0 })
    }

    /// The number of the chosen item, from 1, among the items of the same [`Matter`], and how many of these there are. Each
    /// request counts, as in the bar.
    pub fn place(&self, items: &[Item<'_>]) -> (usize, usize) {
        let (before, rest) = items.split_at(self.position(items));
        let Some(matter) = rest.first().map(Item::matter) else { return (0, 0) };
        let count = |items: &[Item<'_>]| {
            items.iter().filter(|item| item.matter() == matter).map(Item::count).sum::<usize>()
        };
        (count(before) + 1, count(items))
    }

    /// Whether the chosen item is one of these.
    pub fn is_among(&self, items: &[Item<'_>]) -> bool {
        items.iter().any(|item| item.parts().iter().any(|part| self.chosen.contains(part)))
    }

    /// Notes that its card is not on the screen: the next one has to be drawn before it can be decided.
    pub fn rests(&mut self) {
        (self.focused, self.drawn) = (None, None);
    }

    /// The chosen item.
    pub fn chosen<'a, 'b>(&self, items: &'b [Item<'a>]) -> Option<&'b Item<'a>> {
        items.get(self.position(items))
    }

    /// Chooses the item at a place; beyond the end it is the last. `false` where there is none.
    pub fn choose(&mut self, items: &[Item<'_>], at: usize) -> bool {
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
        let focused = match attention {
            Attention::Here => Some(self.chosen.clone()),
            Attention::Elsewhere => None,
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
        self.drawn.filter(|_| chosen).map(|drawn| drawn.saturating_add(ARMED_AFTER))
    }

    /// Whether a decision counts by now.
    pub fn is_armed(&self, now: u64) -> bool {
        self.arms_at().is_some_and(|at| at <= now)
    }
}

#[cfg(test)]
mod tests;
