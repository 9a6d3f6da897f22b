//! The gate in front of a model: one for all requests of a host with the same address, key and model. While the
//! provider is overloaded no request goes to it; when the pause is over one probes, and once it is answered the Pods
//! that a screen shows follow at once, the others one after the other.

use crate::llm::Failure;
use crate::llm::retry::Policy;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The time between two requests that waited, once the gate is open again.
const STAGGER: Duration = Duration::from_millis(250);

/// The gate, open at first.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Set while the gate is shut: when the next request may probe.
    until: Option<Instant>,
    /// How many pauses began since the last answer. The refusal of a request that was sent before the last of them began
    /// is no sign that the provider needs another one.
    pauses: u32,
    /// A request probes whether the provider answers again.
    is_probing: bool,
    /// When the last of the requests that waited is sent, now that the gate is open.
    last_slot: Option<Instant>,
}

/// The permission to send one request; its outcome is to be told.
#[derive(Debug)]
pub struct Pass<'g> {
    gate: &'g Gate,
    /// The pauses when it was given.
    pauses: u32,
    is_probe: bool,
}

impl Gate {
    /// When the next request may be sent; `None` while the gate is open.
    pub fn shut_until(&self) -> Option<Instant> {
        self.lock().until
    }

    /// Ends the pause: the next request may probe.
    pub fn end_pause(&self) {
        let mut state = self.lock();
        state.until = state.until.map(|until| until.min(Instant::now()));
        self.changed.notify_waiters();
    }

    /// Waits until a request may be sent. `is_shown` says whether a screen shows the Pod that sends it; `waiting` is
    /// called with the end of each pause.
    pub async fn pass<F: Future<Output = ()>>(
        &self,
        is_shown: impl Fn() -> bool,
        waiting: impl Fn(Instant) -> F,
    ) -> Pass<'_> {
        let (mut has_waited, mut said) = (false, None);
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let next = self.next(has_waited && !is_shown());
            let until = match next {
                Next::Now(pass) => return pass,
                Next::At(slot, pass) => {
                    tokio::time::sleep_until(slot).await;
                    return pass;
                }
                Next::Pause(until) => Some(until),
                Next::Probing => None,
            };
            has_waited = true;
            if let Some(end) = until.filter(|_| said != until) {
                said = until;
                waiting(end).await;
            }
            tokio::select! {
                () = changed => {}
                () = async {
                    match until {
                        Some(until) => tokio::time::sleep_until(until).await,
                        None => std::future::pending().await,
                    }
                } => {}
            }
        }
    }

    fn next(&self, is_staggered: bool) -> Next<'_> {
        let mut state = self.lock();
        let now = Instant::now();
        let pass = |pauses, is_probe| Pass { gate: self, pauses, is_probe };
        match state.until {
            Some(until) if now < until => Next::Pause(until),
            Some(_) if state.is_probing => Next::Probing,
            Some(_) => {
                state.is_probing = true;
                Next::Now(pass(state.pauses, true))
            }
            None if is_staggered => {
                let slot = now.max(state.last_slot.unwrap_or(now) + STAGGER);
                state.last_slot = Some(slot);
                Next::At(slot, pass(state.pauses, false))
            }
            None => Next::Now(pass(state.pauses, false)),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Next<'g> {
    Now(Pass<'g>),
    At(Instant, Pass<'g>),
    /// No request may be sent before then.
    Pause(Instant),
    /// Another request probes.
    Probing,
}

impl Pass<'_> {
    /// The provider has taken the request.
    pub fn answered(self) {
        let mut state = self.gate.lock();
        if self.is_probe {
            *state = State::default();
        } else if state.until.is_none() {
            state.pauses = 0;
        }
    }

    /// The provider refused because of its load: shuts the gate for as long as it names, at least for a time that
    /// doubles with each refusal. Returns when the next request may be sent.
    pub fn refused(self, failure: &Failure, policy: &Policy, random: f64) -> Instant {
        let mut state = self.gate.lock();
        let now = Instant::now();
        if state.pauses == self.pauses {
            state.pauses += 1;
        }
        let pause = policy.pause(state.pauses, failure, random);
        let until = match state.until.filter(|until| *until > now) {
            // Sent before the pause began: only a longer time that the provider names counts.
            Some(until) => until.max(now + failure.retry_after().unwrap_or_default()),
            None => now + pause,
        };
        state.until = Some(until);
        until
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            self.gate.lock().is_probing = false;
        }
        self.gate.changed.notify_waiters();
    }
}

impl Failure {
    /// Whether the provider cannot take requests now, so that no other request would be answered either.
    pub fn is_overload(&self) -> bool {
        match self {
            Self::Status { status, retry_after, .. } => {
                matches!(status, 429 | 503 | 529) || (self.retryable() && retry_after.is_some())
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn overload(retry_after: Option<u64>) -> Failure {
        let retry_after = retry_after.map(Duration::from_secs);
        Failure::Status {
            status: 429,
            retry_after,
            message: "slow down".into(),
            provider_text: String::new(),
        }
    }

    /// Twenty Pods that ask a provider which refuses everything for a minute. Returns the times of all requests and of
    /// all answers, in seconds.
    async fn twenty_pods(retry_after: Option<u64>) -> (Vec<f64>, Vec<f64>) {
        let gate = Arc::new(Gate::default());
        let begun = Instant::now();
        let (asked, answered) = (Arc::new(Mutex::new(vec![])), Arc::new(Mutex::new(vec![])));
        let pods: Vec<_> = (0..20)
            .map(|_| {
                let (gate, asked, answered) = (gate.clone(), asked.clone(), answered.clone());
                tokio::spawn(async move {
                    loop {
                        let pass = gate.pass(|| false, |_| std::future::ready(())).await;
                        let now = begun.elapsed().as_secs_f64();
                        asked.lock().unwrap().push(now);
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        if now >= 60.0 {
                            pass.answered();
                            return answered.lock().unwrap().push(now);
                        }
                        pass.refused(&overload(retry_after), &Policy::default(), 0.5);
                    }
                })
            })
            .collect();
        for pod in pods {
            pod.await.unwrap();
        }
        let times = |all: Arc<Mutex<Vec<f64>>>| all.lock().unwrap().clone();
        (times(asked), times(answered))
    }

    #[tokio::test(start_paused = true)]
    async fn in_a_minute_of_overload_one_request_probes_after_each_pause_and_then_all_follow() {
        for retry_after in [None, Some(0), Some(7)] {
            let (asked, answered) = twenty_pods(retry_after).await;
            let during: Vec<f64> = asked.iter().copied().filter(|at| *at < 60.0).collect();
            let probes: Vec<f64> = during.iter().copied().filter(|at| *at > 0.0).collect();
            assert_eq!(during.len() - probes.len(), 20, "all ask at first");
            assert!(probes.len() <= 11, "{retry_after:?}: {probes:?}");
            assert!(probes.is_sorted_by(|a, b| b - a >= 0.3), "one a pause: {probes:?}");
            assert_eq!(answered.len(), 20);
            let last = answered.iter().copied().fold(0.0, f64::max);
            assert!(last < 90.0, "{retry_after:?}: the last one went on after {last} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_that_a_provider_names_is_kept() {
        let gate = Gate::default();
        let begun = Instant::now();
        gate.pass(|| false, |_| std::future::ready(())).await.refused(
            &overload(Some(70)),
            &Policy::default(),
            0.0,
        );
        let said = AtomicU32::new(0);
        let pass = gate
            .pass(
                || false,
                |until| {
                    said.fetch_add(1, Ordering::Relaxed);
                    assert_eq!(until - begun, Duration::from_secs(70));
                    std::future::ready(())
                },
            )
            .await;
        assert_eq!((begun.elapsed(), said.into_inner()), (Duration::from_secs(70), 1));
        pass.answered();
        assert_eq!(gate.shut_until(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_a_person_ends_lets_one_request_probe() {
        let (gate, begun) = (Gate::default(), Instant::now());
        let pass = gate.pass(|| false, |_| std::future::ready(())).await;
        pass.refused(&overload(Some(70)), &Policy::default(), 0.0);
        let waiting = gate.pass(|| false, async |_| gate.end_pause());
        waiting.await.refused(&overload(Some(70)), &Policy::default(), 0.0);
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert!(gate.shut_until() >= Some(begun + Duration::from_secs(70)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_is_given_up_lets_another_one_probe() {
        let gate = Gate::default();
        gate.pass(|| false, |_| std::future::ready(())).await.refused(
            &overload(None),
            &Policy::default(),
            0.0,
        );
        let probe = gate.pass(|| false, |_| std::future::ready(())).await;
        let other = gate.pass(|| false, |_| std::future::ready(()));
        tokio::pin!(other);
        assert!(futures_util::poll!(other.as_mut()).is_pending(), "one probes at a time");
        drop(probe);
        assert!(other.await.is_probe);
    }

    #[tokio::test(start_paused = true)]
    async fn the_pods_that_a_screen_shows_go_first_when_the_gate_opens() {
        let gate = Arc::new(Gate::default());
        gate.pass(|| false, |_| std::future::ready(())).await.refused(
            &overload(None),
            &Policy::default(),
            0.0,
        );
        let order = Arc::new(Mutex::new(Vec::new()));
        let pods: Vec<_> = (0..10)
            .map(|pod| {
                let (gate, order) = (gate.clone(), order.clone());
                tokio::spawn(async move {
                    let pass = gate.pass(|| pod == 7, |_| std::future::ready(())).await;
                    order.lock().unwrap().push((pod, pass.is_probe));
                    pass.answered();
                })
            })
            .collect();
        for pod in pods {
            pod.await.unwrap();
        }
        let order = order.lock().unwrap();
        let probe = order.iter().filter(|(_, is_probe)| *is_probe).count();
        assert!(order[..2].iter().any(|(pod, _)| *pod == 7) && probe == 1, "{order:?}");
    }
}
