//! When the work of a program without a screen is done: every Pod that it waits for is idle, and no child event
//! is on its way to one of them.

use crate::headless::exit::{Exit, Failure};
use crate::headless::line_client::{LineClient, is_busy};
use yoi::protocol::{CompletionKind, Method, PodInfo, PodName, State};

impl LineClient {
    /// From now on this program waits for the work of this Pod and of the Pods below it, and handles their
    /// requests; Pods below it that still work for other clients are left to those until they are idle.
    pub fn take_charge_of(&mut self, pod: &PodName) {
        let below = self.family.subtree(pod).into_iter().skip(1);
        let engaged = below.filter(|info| is_busy(info.state) && !self.is_ours(info));
        let engaged: Vec<PodName> = engaged.map(|info| info.name.clone()).collect();
        self.inbox.take_charge_of(pod, &engaged);
    }

    /// Waits until the Pods that were given a message here and those below them are idle, and no child event can wake
    /// one of them. Requests that come meanwhile are handled.
    pub async fn until_idle(&mut self) -> Result<(), Failure> {
        let mut noted = None;
        self.refresh().await?;
        loop {
            let at_work = self.family.all().iter().filter(|info| self.works(info));
            let at_work: Vec<PodName> = at_work.map(|info| info.name.clone()).collect();
            if !at_work.is_empty() {
                noted = noted.or_else(|| self.note_awaited(&at_work));
                self.step().await?;
            } else if self.stay_idle().await? {
                return Ok(());
            } else {
                self.refresh().await?;
            }
        }
    }

    /// Prints the Pods that are awaited, when the Pod that was given the message is none of them.
    fn note_awaited(&mut self, at_work: &[PodName]) -> Option<()> {
        let with_message = at_work.iter().any(|name| self.inbox.was_given_to(name));
        let ours = at_work.iter().filter_map(|name| self.find(name).ok());
        let ours = ours.filter(|info| self.is_ours(info)).map(|info| info.name.to_string());
        let names = ours.collect::<Vec<_>>().join(", ");
        if with_message || names.is_empty() {
            return None;
        }
        self.printer.note(&format!("waiting for {names}"));
        Some(())
    }

    /// Sends each Pod a request that changes nothing, those at the bottom first: a Pod replies only after it
    /// has sent its parent the child event of its run, and the parent only after it has taken that up. If
    /// no Pod has changed by then, no child event was on its way.
    async fn stay_idle(&mut self) -> Result<bool, Failure> {
        let before = self.awaited();
        let mut names: Vec<&PodName> = before.iter().map(|info| &info.name).collect();
        names.sort_by_key(|name| std::cmp::Reverse(self.family.depth(name)));
        for name in names {
            // A Pod has no workflows, so the reply is empty.
            let (kind, prefix) = (CompletionKind::Workflow, String::new());
            let reply = self.exchange(Some(name), Method::ListCompletions { kind, prefix }).await;
            if let Err(Failure { exit: Exit::Signal(number), message }) = reply {
                return Err(Failure::new(Exit::Signal(number), message));
            }
        }
        Ok(self.stale.is_empty() && self.awaited() == before)
    }

    /// The Pods whose work is awaited, as they are now.
    fn awaited(&self) -> Vec<PodInfo> {
        self.family.all().iter().filter(|info| self.is_ours(info)).cloned().collect()
    }

    fn works(&self, info: &PodInfo) -> bool {
        let waits = info.state == State::NeedsYou && !self.inbox.waits_for_person();
        is_busy(info.state) && !waits && self.is_ours(info)
    }

    pub(super) fn is_ours(&self, info: &PodInfo) -> bool {
        self.inbox.is_own(&info.name, self.family.lineage(info))
    }
}
