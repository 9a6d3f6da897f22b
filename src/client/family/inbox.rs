//! What waits for a person: the requests of all Pods and the Pods that need a person for another reason, then the Pods that
//! failed, those whose runs go in circles, and those that finished and were not looked at since; each oldest first.

use crate::client::family::{Family, Matter, equal};
use crate::protocol::{ApprovalRequest, PodInfo, PodName, State};

/// One item of the inbox.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'a> {
    /// An approval request, or several equal ones, the oldest first.
    Approval(Vec<&'a ApprovalRequest>),
    /// A Pod without a request.
    Pod(&'a PodInfo, Matter),
}

impl<'a> Item<'a> {
    /// The ids of its requests, or its Pod: an item is recognised by them.
    pub fn parts(&self) -> Vec<String> {
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
    pub fn matter(&self) -> Matter {
        match self {
            Self::Approval(_) => Matter::Needs,
            Self::Pod(_, matter) => *matter,
        }
    }

    /// By how many it raises the count in the bar.
    pub fn count(&self) -> usize {
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
