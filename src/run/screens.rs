//! Which Pods screens show: while a person looks, a run waits for its provider without end.

use crate::protocol::PodName;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long it is remembered that a screen showed a Pod.
const REMEMBERED: Duration = Duration::from_hours(24);

/// When a screen showed a Pod last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LastShown {
    #[default]
    Never,
    Until(Instant),
    /// A screen shows it.
    Now,
}

/// The Pods that screens show and have shown, by [`PodName::key`].
#[derive(Debug, Default)]
pub struct Screens(BTreeMap<String, Shown>);

#[derive(Clone, Copy, Debug)]
struct Shown {
    screens: usize,
    until: Instant,
}

impl Screens {
    /// A screen shows other Pods from now on.
    pub fn change(&mut self, before: &[PodName], after: &[PodName]) {
        let now = Instant::now();
        for pod in after {
            let shown = self.0.entry(pod.key()).or_insert(Shown { screens: 0, until: now });
            shown.screens += 1;
        }
        for pod in before {
            if let Some(shown) = self.0.get_mut(&pod.key()) {
                (shown.screens, shown.until) = (shown.screens.saturating_sub(1), now);
            }
        }
        self.0.retain(|_, shown| shown.screens > 0 || shown.until.elapsed() < REMEMBERED);
    }

    fn last_shown(&self, pods: &[PodName]) -> LastShown {
        let of = |pod: &PodName| match self.0.get(&pod.key()) {
            None => LastShown::Never,
            Some(Shown { screens: 0, until }) => LastShown::Until(*until),
            Some(_) => LastShown::Now,
        };
        pods.iter().map(of).max().unwrap_or_default()
    }
}

/// The screens that show a Pod or one above it.
#[derive(Clone, Debug)]
pub struct Viewers {
    screens: watch::Receiver<Screens>,
    pods: Vec<PodName>,
}

impl Viewers {
    /// `above` are the ancestors of the Pod: a person who looks at one of them waits for its children, too.
    pub fn new(screens: watch::Receiver<Screens>, pod: PodName, above: Vec<PodName>) -> Self {
        let pods = above.into_iter().chain([pod]).collect();
        Self { screens, pods }
    }

    pub fn last_shown(&self) -> LastShown {
        self.screens.borrow().last_shown(&self.pods)
    }

    /// Resolves when a screen shows other Pods than before.
    pub async fn changed(&mut self) {
        if self.screens.changed().await.is_err() {
            // The host has ended.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pod_is_shown_until_the_last_screen_has_left_it_and_those_above_it() {
        let names = |names: &[&str]| -> Vec<PodName> {
            names.iter().map(|name| PodName::parse(name).unwrap()).collect()
        };
        let (screens, receiver) = watch::channel(Screens::default());
        let [pod, above] = ["child", "root"].map(|name| PodName::parse(name).unwrap());
        let viewers = Viewers::new(receiver, pod, vec![above]);
        let change = |before: &[&str], after: &[&str]| {
            screens.send_modify(|screens| screens.change(&names(before), &names(after)));
            viewers.last_shown()
        };
        assert_eq!(change(&[], &["other"]), LastShown::Never);
        assert_eq!(change(&[], &["child"]), LastShown::Now);
        assert_eq!(change(&[], &["root"]), LastShown::Now);
        assert_eq!(change(&["child"], &["child"]), LastShown::Now);
        assert_eq!(change(&["child"], &[]), LastShown::Now, "one looks at its parent");
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(change(&["root"], &["other"]), LastShown::Until(Instant::now()));
        assert_eq!(screens.borrow().0.len(), 3);
        tokio::time::advance(REMEMBERED).await;
        assert_eq!(change(&["other"], &["other"]), LastShown::Never);
        assert_eq!(screens.borrow().0.len(), 1, "what is forgotten is not kept");
    }
}
