//! The family as the host last described it, in an order that stays: the Pods, which of them are peers,
//! the approval requests, the agents of the mesh, and the mistakes in the settings of the host.

/// The agents of the mesh that are no Pods of this host.
mod agents;
/// Which approval requests are equal.
pub mod equal;
/// What waits for a person.
pub mod inbox;
/// What of a Pod is for a person to see to.
mod matter;
/// The mistakes in the settings.
mod mistakes;
/// Sums over the tree of Pods.
mod sums;

pub use agents::{Agent, Contact};
pub use matter::Matter;
pub use mistakes::{MistakeChange, Mistakes};
pub use sums::{Cost, Counts, Sum, Sums};

use crate::protocol::mesh::MachineView;
use crate::protocol::{
    ApprovalRequest, Event, LastRun, PeerEdge, PodInfo, PodName, RunResult, State,
};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The Pods of this host.
#[derive(Clone, Debug, Default)]
pub struct Family {
    pods: Vec<PodInfo>,
    /// The index of each Pod in `pods`; `below` holds the indices of its children.
    places: HashMap<PodName, usize>,
    below: HashMap<PodName, Vec<usize>>,
    peers: Vec<PeerEdge>,
    approvals: Vec<ApprovalRequest>,
    agents: agents::Agents,
    machine: Option<Box<MachineView>>,
    /// When the last event of each Pod came; milliseconds since the Unix epoch.
    received: HashMap<PodName, u64>,
    known: bool,
}

/// The numbers of Pods in other workspaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    pub pods: usize,
    pub workspaces: usize,
    /// How many of the Pods need a person.
    pub needs_you: usize,
}

/// What an event of the host replaced or took away.
#[derive(Clone, Debug, Default)]
pub struct Former {
    pub pod: Option<PodInfo>,
    pub request: Option<ApprovalRequest>,
}

impl Family {
    /// Takes in what an event of the host says of the family.
    pub fn apply(&mut self, event: &Event) -> Former {
        let (mut pod, mut request) = (None, None);
        match event {
            Event::Family { pods, peers, approvals, agents } => {
                self.replace(pods.clone(), peers.clone(), approvals.clone());
                self.agents.replace(agents.clone());
            }
            Event::MeshRoster { agents } => self.agents.replace(agents.clone()),
            Event::Machine { machine } => self.machine.clone_from(machine),
            Event::PodChanged { info } => pod = self.set((**info).clone()),
            Event::PodRemoved { name } => self.remove(name),
            Event::Peered { source, peer } => self.peered(source.clone(), peer.clone()),
            Event::Unpeered { source, peer } => self.unpeered(source.clone(), peer.clone()),
            Event::ApprovalRequested { approval } => self.requested((**approval).clone()),
            Event::ApprovalDecided { approval, .. } => request = self.decided(approval),
            _ => {}
        }
        Former { pod, request }
    }

    /// Replaces the whole family by the one that the host sent.
    pub fn replace(
        &mut self,
        pods: Vec<PodInfo>,
        peers: Vec<PeerEdge>,
        approvals: Vec<ApprovalRequest>,
    ) {
        (self.pods, self.peers, self.approvals) = (pods, peers, approvals);
        self.known = true;
        (self.agents, self.machine) = (agents::Agents::default(), None);
        self.approvals.sort_by_key(|approval| approval.since);
        self.find_places();
    }

    /// The connection ended: every state but *stopped* is unknown, and no request can be decided.
    pub fn lose(&mut self) {
        self.approvals.clear();
        self.agents.lose();
        self.machine = None;
        for pod in self.pods.iter_mut().filter(|pod| pod.state != State::Stopped) {
            pod.state = State::Unknown;
            (pod.why, pod.activity, pod.retry_at) = (None, None, None);
        }
    }

    /// Notes that an event of this Pod came at `now`.
    pub fn received(&mut self, name: &PodName, now: u64) {
        match self.received.get_mut(name) {
            Some(at) => *at = now,
            None => drop(self.received.insert(name.clone(), now)),
        }
    }

    /// The time of the last event or activity of a Pod; 0 where none is known.
    pub fn last_activity(&self, info: &PodInfo) -> u64 {
        let received = self.received.get(&info.name).copied().unwrap_or(0);
        received.max(info.last_activity)
    }

    /// The time of the last sign of life of a Pod: an event, an activity or a change of state.
    pub fn silent_since(&self, info: &PodInfo) -> u64 {
        self.last_activity(info).max(info.since)
    }

    /// How this machine takes part among others; `None`: it reaches none.
    pub fn machine(&self) -> Option<&MachineView> {
        self.machine.as_deref()
    }

    /// Whether the host has sent the family.
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// Replaces one Pod by what the host sent, and returns what was known of it; a new Pod is added at the end.
    pub fn set(&mut self, info: PodInfo) -> Option<PodInfo> {
        let Some(&at) = self.places.get(&info.name) else {
            self.pods.push(info);
            self.find_places();
            return None;
        };
        let former = std::mem::replace(&mut self.pods[at], info);
        if former.parent != self.pods[at].parent {
            self.find_places();
        }
        Some(former)
    }

    /// Removes a Pod with its peers and its approval requests.
    fn remove(&mut self, name: &PodName) {
        self.pods.retain(|pod| pod.name != *name);
        self.peers.retain(|edge| edge.other(name).is_none());
        self.approvals.retain(|approval| !approval.is_of(name));
        self.received.remove(name);
        self.find_places();
    }

    fn find_places(&mut self) {
        self.places.clear();
        self.below.clear();
        for (at, pod) in self.pods.iter().enumerate() {
            self.places.insert(pod.name.clone(), at);
            if let Some(parent) = pod.parent.clone().filter(|parent| *parent != pod.name) {
                self.below.entry(parent).or_default().push(at);
            }
        }
    }

    /// The Pod of this name, whatever its case.
    pub fn get(&self, name: &PodName) -> Option<&PodInfo> {
        if let Some(&at) = self.places.get(name) {
            return self.pods.get(at);
        }
        let key = name.key();
        self.pods.iter().find(|pod| pod.name.key() == key)
    }

    pub fn all(&self) -> &[PodInfo] {
        &self.pods
    }

    /// The Pods whose runs the end of a host interrupted and that may go on together, children before their parents.
    pub fn cut_off(&self) -> Vec<&PodInfo> {
        let mut cut: Vec<&PodInfo> =
            self.pods.iter().filter(|info| info.cut_at.is_some()).collect();
        cut.sort_by_key(|info| Reverse(self.lineage(info).len()));
        cut
    }

    /// The Pods that lists show.
    pub fn listed(&self) -> impl Iterator<Item = &PodInfo> {
        self.pods.iter().filter(|info| info.is_listed())
    }

    pub fn children(&self, name: &PodName) -> impl Iterator<Item = &PodInfo> {
        self.below.get(name).into_iter().flatten().filter_map(|&at| self.pods.get(at))
    }

    /// Whether a Pod is done: its last run finished, and no Pod waits or works from it on down.
    pub fn is_done(&self, info: &PodInfo) -> bool {
        let rests = |pod: &PodInfo| matches!(pod.state, State::Idle | State::Stopped);
        has_finished(info) && self.subtree(&info.name).into_iter().all(rests)
    }

    /// A Pod and everything below it, parents first.
    pub fn subtree<'a>(&'a self, name: &PodName) -> Vec<&'a PodInfo> {
        let mut found: Vec<&PodInfo> = self.get(name).into_iter().collect();
        let mut seen: BTreeSet<&PodName> = found.iter().map(|pod| &pod.name).collect();
        let mut at = 0;
        while let Some(pod) = found.get(at) {
            // A circle of parents, which only a damaged store can hold, is walked once.
            let children: Vec<_> =
                self.children(&pod.name).filter(|child| seen.insert(&child.name)).collect();
            found.extend(children);
            at += 1;
        }
        found
    }

    /// The ancestors of a Pod, the root first.
    pub fn lineage<'a>(&'a self, info: &'a PodInfo) -> Vec<&'a PodName> {
        let mut names = Vec::new();
        let mut above = info.parent.as_ref();
        while let Some(name) = above.filter(|name| !names.contains(name)) {
            names.push(name);
            above = self.get(name).and_then(|pod| pod.parent.as_ref());
        }
        names.reverse();
        names
    }

    /// A Pod below all above it: `shop › tester`.
    pub fn path(&self, info: &PodInfo) -> String {
        let names = self.lineage(info).into_iter().chain([&info.name]);
        names.map(PodName::as_str).collect::<Vec<_>>().join(" › ")
    }

    /// How many ancestors a Pod has.
    pub fn depth(&self, name: &PodName) -> usize {
        self.get(name).map_or(0, |info| self.lineage(info).len())
    }

    /// The Pods that wait for a person: for the decision of a request, or for something else, such as a key.
    pub fn waiting_for_person(&self) -> HashSet<&PodName> {
        let needs = self.pods.iter().filter(|info| info.state == State::NeedsYou);
        let requests = self.approvals.iter().filter(|approval| approval.is_of_pod());
        needs.map(|info| &info.name).chain(requests.map(|approval| &approval.pod)).collect()
    }

    /// The Pods that need a person, the longest waiting first.
    pub fn needs_you(&self) -> Vec<&PodInfo> {
        let mut waiting: Vec<_> =
            self.pods.iter().filter(|pod| pod.state == State::NeedsYou).collect();
        waiting.sort_by_key(|pod| pod.since);
        waiting
    }

    pub fn running(&self) -> impl Iterator<Item = &PodInfo> {
        self.pods.iter().filter(|pod| pod.state == State::Running)
    }

    /// Makes two Pods peers; they may be peers already.
    fn peered(&mut self, one: PodName, two: PodName) {
        let edge = PeerEdge::new(one, two);
        if !self.peers.contains(&edge) {
            self.peers.push(edge);
        }
    }

    fn unpeered(&mut self, one: PodName, two: PodName) {
        let edge = PeerEdge::new(one, two);
        self.peers.retain(|known| *known != edge);
    }

    /// The peers of a Pod by name.
    pub fn peers_of<'a>(&'a self, name: &'a PodName) -> Vec<&'a PodName> {
        let mut peers: Vec<_> = self.peers.iter().filter_map(|edge| edge.other(name)).collect();
        peers.sort_by_key(|peer| peer.key());
        peers
    }

    /// Whether any two Pods are peers.
    pub fn has_peers(&self) -> bool {
        !self.peers.is_empty()
    }

    /// The most peers that one Pod has.
    pub fn most_peers(&self) -> usize {
        let mut counts: HashMap<&PodName, usize> = HashMap::new();
        for name in self.peers.iter().flat_map(|edge| [&edge.a, &edge.b]) {
            *counts.entry(name).or_default() += 1;
        }
        counts.into_values().max().unwrap_or(0)
    }

    /// The undecided approval requests, oldest first.
    pub fn approvals(&self) -> &[ApprovalRequest] {
        &self.approvals
    }

    /// Adds an approval request, unless it is known already.
    pub fn requested(&mut self, approval: ApprovalRequest) {
        if let Some(known) = self.approvals.iter_mut().find(|known| known.id == approval.id) {
            known.later = approval.later;
            return;
        }
        // It was decided meanwhile.
        if approval.later.is_some() {
            return;
        }
        let at = self.approvals.partition_point(|known| known.since <= approval.since);
        self.approvals.insert(at, approval);
    }

    /// Removes an approval request that was decided or withdrawn, and returns it if it was known.
    pub fn decided(&mut self, id: &str) -> Option<ApprovalRequest> {
        let at = self.approvals.iter().position(|approval| approval.id == id)?;
        Some(self.approvals.remove(at))
    }

    /// The topmost ancestor of a Pod that the family has, or the Pod itself.
    fn root<'a>(&'a self, info: &'a PodInfo) -> &'a PodInfo {
        let parent = |pod: &PodInfo| {
            let at = *self.places.get(pod.parent.as_ref()?)?;
            self.pods.get(at)
        };
        let mut root = info;
        // A circle of parents, which only a damaged store can hold, ends after as many steps as there are Pods.
        for _ in &self.pods {
            match parent(root) {
                Some(above) => root = above,
                None => break,
            }
        }
        root
    }

    /// Whether a Pod is listed in `workspace`: it works there, or the Pod at the top of its tree does, or the
    /// current Pod is in the same tree.
    pub fn belongs(&self, info: &PodInfo, workspace: &Path, current: Option<&PodName>) -> bool {
        // Of a damaged record even the workspace may be lost: then every screen lists it.
        let lost = info.state == State::Damaged && info.workspace.as_os_str().is_empty();
        if lost || info.workspace == workspace || current == Some(&info.name) {
            return true;
        }
        let root = self.root(info);
        let current = current.and_then(|name| self.get(name)).map(|info| self.root(info));
        root.workspace == workspace || current.is_some_and(|current| current.name == root.name)
    }

    /// The name of the workspace of a Pod that does not belong to `workspace`, for a person.
    pub fn place(
        &self,
        info: &PodInfo,
        workspace: &Path,
        current: Option<&PodName>,
    ) -> Option<String> {
        let name =
            info.workspace.file_name().filter(|_| !self.belongs(info, workspace, current))?;
        Some(crate::text::SafeText::line(name.to_string_lossy()).into_string())
    }

    /// The Pods of other workspaces.
    pub fn elsewhere(&self, workspace: &Path, current: Option<&PodName>) -> Elsewhere {
        let others = self.listed().filter(|pod| !self.belongs(pod, workspace, current));
        let mut elsewhere = Elsewhere::default();
        let mut places = BTreeSet::<&PathBuf>::new();
        for pod in others {
            elsewhere.pods += 1;
            elsewhere.needs_you += usize::from(pod.state == State::NeedsYou);
            places.insert(&pod.workspace);
        }
        Elsewhere { workspaces: places.len(), ..elsewhere }
    }

    /// The Pod that a new screen in `workspace` shows: the live one with the latest activity.
    pub fn likely(&self, workspace: &Path) -> Option<&PodInfo> {
        let here = self.pods.iter().filter(|pod| pod.workspace == workspace);
        // To show an ephemeral Pod would be to keep it.
        let here = here.filter(|pod| !pod.ephemeral);
        here.filter(|pod| pod.state != State::Stopped).max_by_key(|pod| pod.since)
    }
}

/// Whether the last run of a Pod finished and nothing waits for the Pod.
pub fn has_finished(info: &PodInfo) -> bool {
    let finished = |run: &LastRun| run.result == RunResult::Finished.word();
    info.state == State::Idle
        && info.last_result.as_ref().is_some_and(finished)
        && info.why.is_none()
        && info.limit.is_none()
        && info.queue.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> PodName {
        PodName::parse(text).expect("a name")
    }

    fn pod(text: &str, state: State) -> PodInfo {
        PodInfo::bare(name(text), state, 0, "/repo".into(), "/repo".into())
    }

    fn child(of: &str, child: &str) -> PodInfo {
        PodInfo { parent: Some(name(of)), ..pod(child, State::Idle) }
    }

    #[test]
    fn events_change_the_family_and_say_what_they_replaced() {
        let mut family = Family::default();
        let pods = vec![pod("a", State::Idle), pod("b", State::Idle)];
        let (peers, approvals, agents) = (Vec::new(), Vec::new(), Vec::new());
        assert!(!family.is_known());
        family.apply(&Event::Family { pods, peers, approvals, agents });
        assert!(family.is_known());
        family.apply(&Event::Peered { source: name("a"), peer: name("b") });
        let changed = |info: PodInfo| Event::PodChanged { info: Box::new(info) };
        let former = family.apply(&changed(pod("a", State::Running)));
        assert_eq!(former.pod.map(|before| before.state), Some(State::Idle));
        assert!(family.apply(&changed(child("a", "c"))).pod.is_none(), "it is new");
        assert_eq!(family.running().count(), 1);
        family.apply(&Event::PodRemoved { name: name("b") });
        assert!(family.get(&name("b")).is_none() && !family.has_peers());
    }

    #[test]
    fn a_subtree_is_everything_below_however_deep() {
        let mut family = Family::default();
        let pods = vec![pod("a", State::Idle), child("a", "b"), child("b", "c"), child("x", "y")];
        family.replace(pods, Vec::new(), Vec::new());
        family.set(child("c", "d"));
        let names = |of: &str| {
            let found = family.subtree(&name(of));
            found.into_iter().map(|info| info.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names("A"), ["a", "b", "c", "d"]);
        assert_eq!(names("y"), ["y"]);
        let lineage = family.lineage(family.get(&name("d")).expect("d"));
        assert_eq!(lineage, [&name("a"), &name("b"), &name("c")]);
    }

    #[test]
    fn parents_that_are_each_others_are_walked_once() {
        let mut family = Family::default();
        family.replace(vec![child("b", "a"), child("a", "b")], Vec::new(), Vec::new());
        let names: Vec<_> =
            family.subtree(&name("a")).into_iter().map(|info| info.name.to_string()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(family.lineage(family.get(&name("a")).expect("a")).len(), 2);
    }

    #[test]
    fn a_tree_is_shown_whole_wherever_its_pods_work() {
        let far = |info: PodInfo| PodInfo { workspace: "/far".into(), ..info };
        let mut family = Family::default();
        let pods = vec![
            pod("here", State::Idle),
            far(child("here", "away")),
            far(pod("x", State::Idle)),
            far(child("x", "y")),
        ];
        family.replace(pods, Vec::new(), Vec::new());
        let here = Path::new("/repo");
        let far = Elsewhere { pods: 2, workspaces: 1, needs_you: 0 };
        assert_eq!(family.elsewhere(here, None), far);
        assert_eq!(family.elsewhere(here, Some(&name("y"))), Elsewhere::default());
    }

    #[test]
    fn a_peer_is_one_edge_seen_from_both_ends() {
        let mut family = Family::default();
        family.replace(vec![pod("a", State::Idle), pod("b", State::Idle)], Vec::new(), Vec::new());
        family.peered(name("b"), name("a"));
        family.peered(name("a"), name("b"));
        assert_eq!(family.peers_of(&name("a")), [&name("b")]);
        assert_eq!(family.peers_of(&name("b")), [&name("a")]);
        family.unpeered(name("a"), name("b"));
        assert!(!family.has_peers());
        family.peered(name("a"), name("b"));
        family.remove(&name("b"));
        assert!(family.peers_of(&name("a")).is_empty());
    }
}
