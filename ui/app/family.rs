//! All Pods as the host last told them, in an order that stays.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use yoi::protocol::{PodInfo, PodName, State};

/// The Pods of this host.
#[derive(Clone, Debug, Default)]
pub struct Family {
    pods: Vec<PodInfo>,
    known: bool,
}

impl Family {
    /// Takes over what the host says about all Pods.
    pub fn replace(&mut self, pods: Vec<PodInfo>) {
        self.pods = pods;
        self.known = true;
    }

    /// Whether the host has told its Pods at all.
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// Takes over what the host says about one Pod; a new one comes last.
    pub fn set(&mut self, info: PodInfo) {
        match self.pods.iter_mut().find(|pod| pod.name == info.name) {
            Some(pod) => *pod = info,
            None => self.pods.push(info),
        }
    }

    pub fn remove(&mut self, name: &PodName) {
        self.pods.retain(|pod| pod.name != *name);
    }

    /// The Pod of this name, whatever its case.
    pub fn get(&self, name: &PodName) -> Option<&PodInfo> {
        self.pods.iter().find(|pod| pod.name.key() == name.key())
    }

    pub fn all(&self) -> &[PodInfo] {
        &self.pods
    }

    pub fn children<'a>(&'a self, name: &'a PodName) -> impl Iterator<Item = &'a PodInfo> {
        self.pods.iter().filter(move |pod| pod.parent.as_ref() == Some(name))
    }

    /// What waits for a person, the longest waiting first.
    pub fn needs_you(&self) -> Vec<&PodInfo> {
        let mut waiting: Vec<_> =
            self.pods.iter().filter(|pod| pod.state == State::NeedsYou).collect();
        waiting.sort_by_key(|pod| pod.since);
        waiting
    }

    pub fn running(&self) -> impl Iterator<Item = &PodInfo> {
        self.pods.iter().filter(|pod| pod.state == State::Running)
    }

    /// How many Pods besides `current` other workspaces have, and in how many they are.
    pub fn elsewhere(&self, workspace: &Path, current: Option<&PodName>) -> (usize, usize) {
        let others =
            self.pods.iter().filter(|pod| pod.workspace != workspace && current != Some(&pod.name));
        let (count, places) = others.fold((0, BTreeSet::<&PathBuf>::new()), |(n, mut set), pod| {
            set.insert(&pod.workspace);
            (n + 1, set)
        });
        (count, places.len())
    }

    /// The Pod that a fresh screen in `workspace` shows: the live one that did something last.
    pub fn likely(&self, workspace: &Path) -> Option<&PodInfo> {
        let here = self.pods.iter().filter(|pod| pod.workspace == workspace);
        here.filter(|pod| pod.state != State::Stopped).max_by_key(|pod| pod.since)
    }
}
