//! How long the row of a running Pod says one thing: long enough to be read, however short its calls are.

use crate::screen::app::App;
use std::collections::HashMap;
use yoi::protocol::{PodInfo, PodName, State};

/// For how many milliseconds a row says what its Pod does before it says something else.
const STAYS: u64 = 2_000;

/// What the rows of running Pods say.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace(HashMap<PodName, Said>);

#[derive(Clone, Debug)]
struct Said {
    since: u64,
    /// What the Pod does by now, if the row does not say it yet.
    next: Option<Option<String>>,
}

impl Said {
    fn until(&self) -> u64 {
        self.since.saturating_add(STAYS)
    }
}

/// Whether a row says no more of a Pod than what it does. Why a Pod waits is said at once.
fn only_works(info: &PodInfo) -> bool {
    info.state == State::Running && info.retry_at.is_none() && !info.waits_to_write()
}

impl Pace {
    /// Puts what the row says in the place of what the Pod does now, if the row has said it for too short a time.
    pub(super) fn hold(&mut self, before: Option<&PodInfo>, info: &mut PodInfo, now: u64) {
        let Some(before) = before.filter(|before| only_works(before) && only_works(info)) else {
            self.0.remove(&info.name);
            return;
        };
        let said = self.0.entry(info.name.clone()).or_insert(Said { since: 0, next: None });
        if before.activity == info.activity {
            said.next = None;
        } else if now < said.until() {
            said.next = Some(info.activity.take());
            info.activity.clone_from(&before.activity);
        } else {
            *said = Said { since: now, next: None };
        }
    }

    /// What rows say from now on.
    fn due(&mut self, now: u64) -> Vec<(PodName, Option<String>)> {
        let due = self.0.iter_mut().filter(|(_, said)| said.until() <= now);
        due.filter_map(|(pod, said)| {
            let next = said.next.take()?;
            said.since = now;
            Some((pod.clone(), next))
        })
        .collect()
    }

    /// When a row says something else next.
    pub(super) fn next(&self) -> Option<u64> {
        self.0.values().filter(|said| said.next.is_some()).map(Said::until).min()
    }
}

impl App {
    /// Lets the rows say what their Pods do now, where they have said the former long enough.
    pub(super) fn rows_go_on(&mut self) {
        for (pod, activity) in self.pace.due(self.now) {
            if let Some(info) = self.family.get(&pod).filter(|info| only_works(info)) {
                self.family.set(PodInfo { activity, ..info.clone() });
            }
        }
    }
}
