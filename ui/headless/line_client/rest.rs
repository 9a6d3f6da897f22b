//! When work is done: nobody whom it concerns is at work, and no news is on its way to anybody.

use crate::headless::exit::{Exit, Failure};
use crate::headless::line_client::{LineClient, is_busy};
use yoi::protocol::{CompletionKind, Method, PodInfo, PodName, State};

/// Whose work is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// That of the Pods looked after here and of those below them.
    Ours,
    /// That of every Pod of the host.
    Everybody,
}

impl LineClient {
    /// From now on this Pod's work and questions are ours, and those of the Pods below it: all but
    /// what others gave those to do before, until it is done.
    pub fn look_after(&mut self, pod: &PodName) {
        let below = |info: &&PodInfo| self.lineage(info).iter().any(|name| name.key() == pod.key());
        let engaged = |info: &&PodInfo| is_busy(info.state) && !self.is_ours(info);
        let engaged = self.pods().filter(below).filter(engaged);
        let engaged: Vec<PodName> = engaged.map(|info| info.name.clone()).collect();
        self.inbox.look_after(pod, &engaged);
    }

    /// Waits until nobody is at work any more, and nobody will be by what was done. Questions that
    /// come up meanwhile are met.
    pub async fn until_done(&mut self, whose: Whose) -> Result<(), Failure> {
        let mut known = None;
        self.refresh().await?;
        loop {
            let works = |info: &&PodInfo| self.works(whose, info);
            let at_work: Vec<_> = self.pods().filter(works).map(|i| i.name.clone()).collect();
            if !at_work.is_empty() {
                known = known.or_else(|| self.tell_who_works(&at_work));
                self.step().await?;
            } else if self.nothing_follows(whose).await? {
                return Ok(());
            } else {
                self.refresh().await?;
            }
        }
    }

    /// Says whom the end waits for, when none of those is who was spoken to.
    fn tell_who_works(&mut self, at_work: &[PodName]) -> Option<()> {
        let spoken_to = at_work.iter().any(|name| self.inbox.was_given_to(name));
        let ours = at_work.iter().filter_map(|name| self.find(name).ok());
        let ours = ours.filter(|info| self.is_ours(info)).map(|info| info.name.to_string());
        let names = ours.collect::<Vec<_>>().join(", ");
        if spoken_to || names.is_empty() {
            return None;
        }
        self.printer.note(&format!("waiting for {names}"));
        Some(())
    }

    /// Asks each Pod for a word, those at the bottom first: a Pod answers only after it has told its
    /// parent how its run ended, and the parent only after it has taken that up. When nothing has
    /// changed by then, nothing was on its way.
    async fn nothing_follows(&mut self, whose: Whose) -> Result<bool, Failure> {
        let before = self.concerned(whose);
        let mut names: Vec<(usize, PodName)> =
            before.iter().map(|info| (self.lineage(info).len(), info.name.clone())).collect();
        names.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
        for (_, name) in names {
            // It has none of these; asking changes nothing.
            let (kind, prefix) = (CompletionKind::Workflow, String::new());
            let word = self.exchange(Some(&name), Method::ListCompletions { kind, prefix }).await;
            if let Err(Failure { exit: Exit::Signal(number), message }) = word {
                return Err(Failure::new(Exit::Signal(number), message));
            }
        }
        Ok(self.stale.is_empty() && self.concerned(whose) == before)
    }

    /// Those whose work is waited for, as they are now.
    fn concerned(&self, whose: Whose) -> Vec<PodInfo> {
        let all = whose == Whose::Everybody;
        self.pods().filter(|info| all || self.is_ours(info)).cloned().collect()
    }

    fn works(&self, whose: Whose, info: &PodInfo) -> bool {
        match info.state {
            State::Running => whose == Whose::Everybody || self.is_ours(info),
            State::NeedsYou => self.inbox.waits() && self.is_ours(info),
            State::Paused | State::Idle | State::Stopped | State::Failed | State::Unknown => false,
        }
    }

    fn is_ours(&self, info: &PodInfo) -> bool {
        self.inbox.concerns(&info.name, &self.lineage(info))
    }

    /// The Pods above one, its parent first.
    fn lineage(&self, info: &PodInfo) -> Vec<PodName> {
        let mut names = Vec::new();
        let mut above = info.parent.as_ref();
        while let Some(name) = above.filter(|name| !names.contains(*name)) {
            names.push(name.clone());
            above = self.pods.get(name).and_then(|known| known.info.parent.as_ref());
        }
        names
    }
}
