//! Stopping: the turns halt side by side and within their time, then one transaction says that the
//! Pods are stopped and what they had on loan is back.

use crate::host::Answer;
use crate::host::pod::Handle;
use crate::host::supervisor::{Order, Supervisor};
use crate::protocol::{Event, PodName, Refusal, StoppedPod};
use crate::store::{Change, Wanted};
use std::time::Duration;

/// When the asker is answered in any case.
const IN_ANY_CASE: Duration = Duration::from_millis(7500);

impl Supervisor {
    /// Lets Pods finish, in a task of its own: nothing else waits for them.
    pub(super) fn stop(&mut self, name: &PodName, tree: bool, by: Option<PodName>, answer: Answer) {
        let targets = match self.stoppable(name, tree) {
            Ok(targets) => targets,
            Err(refusal) => {
                // An asker that is gone wants no answer.
                let _ = answer.send(Err(refusal));
                return;
            }
        };
        for handle in &targets {
            *self.stopping.entry(handle.name.key()).or_default() += 1;
        }
        let orders = self.orders.clone();
        tokio::spawn(async move {
            let mut leaving = tokio::task::JoinSet::new();
            let names = targets.iter().map(|handle| handle.name.clone()).collect();
            for handle in targets {
                leaving.spawn(async move { handle.let_go().await });
            }
            // One that does not even let go is stopped all the same; its turn was ended.
            let _ = tokio::time::timeout(IN_ANY_CASE, leaving.join_all()).await;
            let Some(orders) = orders.upgrade() else { return };
            // A supervisor that is gone drops the order and with it the answer.
            let _ = orders.send(Order::LetGo { names, by, answer }).await;
        });
    }

    /// What an order to stop is about, children before parents.
    fn stoppable(&self, name: &PodName, tree: bool) -> Result<Vec<Handle>, Refusal> {
        let first = self.pod(name)?;
        let mut names = if tree { self.below(&first.name) } else { Vec::new() };
        names.reverse();
        names.push(first.name.clone());
        let live = |key: &String| self.book.holder(key).is_some_and(|holder| holder.live);
        names.retain(|name| live(&name.key()));
        if names.is_empty() {
            let below = if tree { " and so is everything below it" } else { "" };
            let text = format!("pod `{name}` is stopped already{below}");
            return Err(Refusal::invalid(text));
        }
        Ok(names.iter().filter_map(|name| self.shared.pod(name)).collect())
    }

    /// They have let go.
    pub(super) async fn stopped(
        &mut self,
        names: Vec<PodName>,
        by: Option<PodName>,
    ) -> Result<Event, Refusal> {
        for name in &names {
            self.has_let_go(name);
        }
        let (mut next, mut stopped) = (self.book.clone(), Vec::new());
        for name in &names {
            let back = next.stop(&name.key());
            let lender = back.first().and_then(|loan| self.name_of(&loan.lender));
            let returned = back.into_iter().map(|loan| loan.rule).collect();
            stopped.push(StoppedPod { name: name.clone(), returned, lender });
        }
        // What another order stopped or removed meanwhile is not stopped twice.
        let live = |name: &PodName| self.book.holder(&name.key()).is_some_and(|h| h.live);
        let leaving: Vec<PodName> = names.into_iter().filter(live).collect();
        let wanted = leaving.iter().map(|name| (name.clone(), Wanted::Stopped)).collect();
        if let Err(refusal) = self.commit_leases(next, Change { wanted, ..Change::default() }).await
        {
            for handle in leaving.iter().filter_map(|name| self.shared.pod(name)) {
                // They are not stopped, so they take orders again.
                let _ = handle.live(Vec::new()).await;
            }
            return Err(refusal);
        }
        crate::crash_point!("stop-stored");
        for handle in leaving.iter().filter_map(|name| self.shared.pod(name)) {
            handle.stopped(by.clone()).await;
        }
        Ok(Event::PodsStopped { stopped })
    }

    fn has_let_go(&mut self, name: &PodName) {
        let key = name.key();
        match self.stopping.get_mut(&key) {
            Some(orders) if *orders > 1 => *orders -= 1,
            _ => drop(self.stopping.remove(&key)),
        }
    }
}
