//! Sums over the tree of Pods: how many Pods below each one are in which state, and what all of them cost.

use crate::client::family::Family;
use crate::protocol::{PodInfo, State};
use std::ops::AddAssign;

/// The number of Pods in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub needs_you: usize,
    pub failed: usize,
    pub running: usize,
    pub paused: usize,
    pub idle: usize,
    pub stopped: usize,
    pub unknown: usize,
}

impl Counts {
    fn one(state: State) -> Self {
        let mut counts = Self::default();
        let count = match state {
            State::NeedsYou => &mut counts.needs_you,
            State::Failed | State::Damaged => &mut counts.failed,
            State::Running => &mut counts.running,
            State::Paused => &mut counts.paused,
            State::Idle => &mut counts.idle,
            State::Stopped => &mut counts.stopped,
            State::Unknown => &mut counts.unknown,
        };
        *count = 1;
        counts
    }

    /// The Pods that are not stopped.
    pub fn live(&self) -> usize {
        self.needs_you + self.failed + self.running + self.paused + self.idle + self.unknown
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.needs_you += other.needs_you;
        self.failed += other.failed;
        self.running += other.running;
        self.paused += other.paused;
        self.idle += other.idle;
        self.stopped += other.stopped;
        self.unknown += other.unknown;
    }
}

/// What one or several Pods cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// US dollars, as far as prices are known.
    pub dollars: f64,
    /// Whether the price of some requests is unknown.
    pub unknown: bool,
}

impl Cost {
    /// What a Pod itself cost.
    pub fn of(info: &PodInfo) -> Self {
        // A Pod that has sent nothing costs nothing, whatever the price.
        let unknown = info.cost.is_none() && info.context_tokens > 0;
        Self { dollars: info.cost.unwrap_or(0.0), unknown }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.dollars += other.dollars;
        self.unknown |= other.unknown;
    }
}

/// The sum of a Pod and the Pods below it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// The Pods below it, without the Pod itself.
    pub below: Counts,
    /// What the Pod and all below it cost.
    pub cost: Cost,
}

/// The sums of all Pods of a family.
pub struct Sums<'a> {
    family: &'a Family,
    /// In the order of the Pods.
    all: Vec<Sum>,
}

impl<'a> Sums<'a> {
    /// Adds the sum of each Pod to its parent, once the sums of all its own children are added to it: each Pod is visited
    /// once. Pods whose parents form a circle, which only a damaged store can hold, keep their own cost alone.
    pub fn of(family: &'a Family) -> Self {
        let pods = &family.pods;
        let parent = |pod: &PodInfo| {
            let at = *family.places.get(pod.parent.as_ref()?)?;
            (pods[at].name != pod.name).then_some(at)
        };
        let parents: Vec<Option<usize>> = pods.iter().map(parent).collect();
        let mut children_left = vec![0_usize; pods.len()];
        for parent in parents.iter().flatten() {
            children_left[*parent] += 1;
        }
        let own = |pod| Sum { below: Counts::default(), cost: Cost::of(pod) };
        let mut all: Vec<Sum> = pods.iter().map(own).collect();
        let mut ready: Vec<usize> = (0..pods.len()).filter(|at| children_left[*at] == 0).collect();
        while let Some(at) = ready.pop() {
            let Some(parent) = parents[at] else { continue };
            let child = all[at];
            all[parent].below += Counts::one(pods[at].state);
            all[parent].below += child.below;
            all[parent].cost += child.cost;
            children_left[parent] -= 1;
            if children_left[parent] == 0 {
                ready.push(parent);
            }
        }
        Self { family, all }
    }

    /// The family of the sums.
    pub fn family(&self) -> &'a Family {
        self.family
    }

    /// The sum of this Pod; empty for a Pod that the family does not have.
    pub fn at(&self, info: &PodInfo) -> Sum {
        let at = self.family.places.get(&info.name).and_then(|at| self.all.get(*at));
        at.copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::PodName;
    use proptest::prelude::*;

    fn pod(text: &str, state: State) -> PodInfo {
        let name = PodName::parse(text).expect("a name");
        let bare = PodInfo::bare(name, state, 0, "/repo".into(), "/repo".into());
        PodInfo { context_tokens: 68_000, ..bare }
    }

    fn name(at: usize) -> PodName {
        PodName::parse(&format!("p{at}")).expect("a name")
    }

    /// Pods with these parents, by their places.
    fn family(parents: &[Option<usize>]) -> Family {
        let states = [State::Running, State::NeedsYou, State::Idle, State::Failed, State::Stopped];
        let pods = parents.iter().enumerate().map(|(at, parent)| PodInfo {
            parent: parent.map(name),
            cost: (!at.is_multiple_of(7)).then_some(0.25),
            ..pod(name(at).as_str(), states[at % states.len()])
        });
        let mut family = Family::default();
        family.replace(pods.collect(), Vec::new(), Vec::new());
        family
    }

    #[test]
    fn a_sum_holds_everything_below_however_deep_and_the_costs_with_the_pod_itself() {
        let family = family(&[None, Some(0), Some(1), Some(1), None]);
        let sums = Sums::of(&family);
        let root = sums.at(&family.all()[0]);
        assert_eq!(root.below, Counts { needs_you: 1, failed: 1, idle: 1, ..Counts::default() });
        assert_eq!(root.cost, Cost { dollars: 0.75, unknown: true });
        assert_eq!(sums.at(&family.all()[1]).cost, Cost { dollars: 0.75, unknown: false });
        assert_eq!(sums.at(&family.all()[4]).below.live(), 0);
    }

    #[test]
    fn parents_that_are_each_others_do_not_stop_the_sums() {
        let family = family(&[Some(1), Some(0), Some(1), None, Some(3)]);
        let sums = Sums::of(&family);
        assert_eq!(sums.at(&family.all()[3]).below.live(), 0);
        assert_eq!(sums.at(&family.all()[3]).below.stopped, 1);
    }

    #[test]
    fn a_pod_that_sent_nothing_costs_nothing_whatever_its_price() {
        let fresh = PodInfo { cost: None, context_tokens: 0, ..pod("a", State::Idle) };
        assert_eq!(Cost::of(&fresh), Cost::default());
    }

    proptest! {
        #[test]
        fn the_sums_are_those_of_each_subtree(picks in prop::collection::vec(any::<u16>(), 1..60)) {
            let parent = |(at, pick): (usize, &u16)| usize::from(*pick).checked_rem(at + 1)
                .filter(|parent| *parent < at);
            let parents: Vec<_> = picks.iter().enumerate().map(parent).collect();
            let family = family(&parents);
            let sums = Sums::of(&family);
            for info in family.all() {
                let mut counts = Counts::default();
                let mut cost = Cost::default();
                for pod in family.subtree(&info.name) {
                    cost += Cost::of(pod);
                    if pod.name != info.name {
                        counts += Counts::one(pod.state);
                    }
                }
                prop_assert_eq!(sums.at(info), Sum { below: counts, cost });
            }
        }
    }
}
