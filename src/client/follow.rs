//! Follows one Pod by its numbered events: which of them go on from what is known, and when a page of its log has to be
//! read first.

use crate::protocol::Event;
use std::collections::VecDeque;

/// An event of a Pod and its number, where it has one.
pub type Numbered = (Option<u64>, Event);

/// How far the events of a Pod are known.
#[derive(Clone, Debug, Default)]
pub struct Follower {
    /// The highest number that came, applied or not, or that a page accounts for; `None` before the first.
    seq: Option<u64>,
    /// Whether an event is missing: no later one is applied before a page was read.
    needs_page: bool,
    /// How many events are kept while a page is read; 0: none is.
    room: usize,
    /// The events that came while a page is read; `None` while none is.
    early: Option<VecDeque<Numbered>>,
    /// The number of the last event that came meanwhile, was not kept, and may be newer than the page; `u64::MAX` if its
    /// number is not known.
    missing: Option<u64>,
}

impl Follower {
    /// Goes on after the event of this number.
    pub fn after(seq: u64) -> Self {
        Self { seq: Some(seq), ..Self::default() }
    }

    /// Begins with a page. At most `room` events are kept while one is read; if more come, it is read again.
    pub fn from_page(room: usize) -> Self {
        Self { needs_page: true, room, ..Self::default() }
    }

    /// Whether a page has to be read.
    pub fn needs_page(&self) -> bool {
        self.needs_page
    }

    /// Notes that events were missed, or could not be applied.
    pub fn note_loss(&mut self) {
        self.needs_page = true;
        if self.early.is_some() {
            self.missing = Some(u64::MAX);
        }
    }

    /// Takes an event. `true`: it is to be applied now, because it is new and none before it is missing.
    pub fn accept(&mut self, seq: Option<u64>, event: &Event) -> bool {
        self.keep(seq, event);
        if let Some(seq) = seq {
            let seen = self.seq;
            if seen.is_some_and(|seen| seq <= seen) {
                return false;
            }
            self.needs_page |= seen.is_some_and(|seen| seq > seen + 1);
            self.seq = Some(seq);
        }
        !self.needs_page
    }

    /// Keeps an event that comes while a page is read. An event that came before the request is in the page.
    fn keep(&mut self, seq: Option<u64>, event: &Event) {
        let Some(early) = &mut self.early else { return };
        if early.len() < self.room {
            early.push_back((seq, event.clone()));
        } else {
            self.missing = self.missing.max(seq);
        }
    }

    /// The newest page is requested.
    pub fn page_requested(&mut self) {
        (self.early, self.missing) = (Some(VecDeque::new()), None);
    }

    /// The page could not be read.
    pub fn page_failed(&mut self) {
        self.early = None;
    }

    /// A page that accounts for the events up to `seq` came. The events that were kept meanwhile are to be taken again.
    pub fn page_arrived(&mut self, seq: u64) -> VecDeque<Numbered> {
        self.seq = Some(seq);
        self.needs_page = self.missing.take().is_some_and(|missing| missing > seq);
        self.early.take().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What happens to a follower of events 1, 2, 3 …
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Event,
        /// An event that does not come; the host says so or not.
        Lost {
            said: bool,
        },
        Request,
        Answer,
        Arrive,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => Just(Step::Event),
            1 => any::<bool>().prop_map(|said| Step::Lost { said }),
            2 => Just(Step::Request),
            2 => Just(Step::Answer),
            2 => Just(Step::Arrive),
        ]
    }

    fn event() -> Event {
        Event::ThinkingStart
    }

    /// A reader that holds the number up to which it has applied everything.
    struct Reader {
        follower: Follower,
        sent: u64,
        applied: u64,
        /// What was requested, and what the page that answers accounts for.
        page: Option<Option<u64>>,
    }

    impl Reader {
        fn take(&mut self, seq: u64) {
            if self.follower.accept(Some(seq), &event()) {
                assert_eq!(seq, self.applied + 1, "no event is applied over a gap, or twice");
                self.applied = seq;
            }
        }

        fn perform(&mut self, step: Step) {
            match step {
                Step::Event => {
                    self.sent += 1;
                    self.take(self.sent);
                }
                Step::Lost { said } => {
                    self.sent += 1;
                    if said {
                        self.follower.note_loss();
                    }
                }
                Step::Request if self.page.is_none() => {
                    self.follower.page_requested();
                    self.page = Some(None);
                }
                Step::Answer if self.page == Some(None) => self.page = Some(Some(self.sent)),
                Step::Arrive => {
                    let Some(Some(seq)) = self.page else { return };
                    self.page = None;
                    self.applied = seq;
                    for (seq, _) in self.follower.page_arrived(seq) {
                        self.take(seq.expect("a number"));
                    }
                }
                Step::Request | Step::Answer => {}
            }
        }
    }

    #[test]
    fn what_is_lost_while_a_page_is_read_is_read_again_though_no_event_follows() {
        for (lost, is_behind) in [(false, false), (true, true)] {
            let mut follower = Follower::from_page(8);
            follower.page_requested();
            if lost {
                follower.note_loss();
            }
            assert!(follower.page_arrived(3).is_empty());
            assert_eq!(follower.needs_page(), is_behind);
        }
    }

    proptest! {
        #[test]
        fn each_event_is_applied_once_and_none_over_a_gap(
            room in 0usize..4,
            begins in any::<bool>(),
            steps in proptest::collection::vec(step(), 0..60),
        ) {
            let follower = if begins { Follower::from_page(room) } else { Follower::after(0) };
            let mut reader = Reader { follower, sent: 0, applied: 0, page: None };
            steps.into_iter().for_each(|step| reader.perform(step));
            // The next event shows what was lost without a word.
            reader.perform(Step::Event);
            for _ in 0..2 {
                reader.perform(Step::Answer);
                reader.perform(Step::Arrive);
                if reader.follower.needs_page() {
                    reader.perform(Step::Request);
                }
            }
            prop_assert!(!reader.follower.needs_page());
            prop_assert_eq!(reader.applied, reader.sent);
        }
    }
}
