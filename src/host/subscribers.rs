//! The subscribers of a stream of lines. Each has a queue of its own, bounded in lines and in
//! bytes; a publisher never waits for one. A subscriber that falls behind is cut off: it reads
//! what its queue holds, subscribes anew and gets the state as a whole.

use crate::protocol::PodName;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{mpsc, watch};

/// How much may wait for one subscriber. A line is taken while less than `bytes` wait, so one
/// line that is larger than this still reaches a subscriber that keeps up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) lines: usize,
    pub(crate) bytes: usize,
}

/// The Pods whose text a watching connection gets; all until it names some. Clones change with it.
#[derive(Clone, Debug)]
pub(crate) struct Follows(watch::Receiver<Option<Vec<PodName>>>);

impl Follows {
    pub(crate) fn new() -> (watch::Sender<Option<Vec<PodName>>>, Self) {
        let (sender, receiver) = watch::channel(None);
        (sender, Self(receiver))
    }

    pub(crate) fn holds(&self, pod: &PodName) -> bool {
        self.0.borrow().as_ref().is_none_or(|pods| pods.contains(pod))
    }
}

/// All subscribers. Each says by an `F` what it takes.
#[derive(Debug)]
pub(crate) struct Subscribers<T, F = ()> {
    limits: Limits,
    list: Vec<Subscriber<T, F>>,
}

#[derive(Debug)]
struct Subscriber<T, F> {
    lines: mpsc::Sender<Queued<T>>,
    waiting: Arc<AtomicUsize>,
    takes: F,
}

/// The lines that wait for one subscriber.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    lines: mpsc::Receiver<Queued<T>>,
}

/// A line on its way; it counts as waiting until it is dropped, which is after it was written.
#[derive(Debug)]
pub(crate) struct Queued<T> {
    pub(crate) line: T,
    bytes: usize,
    waiting: Arc<AtomicUsize>,
}

impl<T> Drop for Queued<T> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl<T: Clone> Subscribers<T> {
    /// A queue of everything published from now on.
    pub(crate) fn subscribe(&mut self) -> Queue<T> {
        self.subscribe_to(())
    }

    /// Puts a line of `bytes` bytes into every queue. Subscribers whose queue is full, or that are
    /// gone, are subscribers no more.
    pub(crate) fn publish(&mut self, line: &T, bytes: usize) {
        self.publish_to(line, bytes, |()| true);
    }
}

impl<T: Clone, F> Subscribers<T, F> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, list: Vec::new() }
    }

    /// A queue of what `takes` says, from now on.
    pub(crate) fn subscribe_to(&mut self, takes: F) -> Queue<T> {
        let (sender, lines) = mpsc::channel(self.limits.lines);
        self.list.push(Subscriber { lines: sender, waiting: Arc::default(), takes });
        Queue { lines }
    }

    /// Whether a subscriber takes it, so that its line has to be made.
    pub(crate) fn any(&mut self, takes: impl Fn(&F) -> bool) -> bool {
        !self.is_empty() && self.list.iter().any(|subscriber| takes(&subscriber.takes))
    }

    /// Whether there is no subscriber, so that a line need not be made.
    pub(crate) fn is_empty(&mut self) -> bool {
        self.list.retain(|subscriber| !subscriber.lines.is_closed());
        self.list.is_empty()
    }

    /// The same, into the queues of the subscribers that take it.
    pub(crate) fn publish_to(&mut self, line: &T, bytes: usize, takes: impl Fn(&F) -> bool) {
        let limit = self.limits.bytes;
        let keeps = |one: &Subscriber<T, F>| !takes(&one.takes) || one.take(line, bytes, limit);
        self.list.retain(keeps);
    }

    /// Cuts every subscriber off: nothing follows.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
    }
}

impl<T: Clone, F> Subscriber<T, F> {
    fn take(&self, line: &T, bytes: usize, limit: usize) -> bool {
        if self.waiting.load(Ordering::Relaxed) >= limit {
            return false;
        }
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
        // If the queue is full, `try_send` drops the line, and its `Drop` subtracts the bytes.
        let queued = Queued { line: line.clone(), bytes, waiting: self.waiting.clone() };
        self.lines.try_send(queued).is_ok()
    }
}

impl<T> Queue<T> {
    /// The next line; `None` when this subscriber was cut off and has read everything.
    /// Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Queued<T>> {
        self.lines.recv().await
    }

    /// A line that waits already.
    pub(crate) fn try_next(&mut self) -> Option<Queued<T>> {
        self.lines.try_recv().ok()
    }

    /// How many lines wait.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether this subscriber was cut off and has read everything.
    pub(crate) fn is_over(&self) -> bool {
        self.lines.is_closed() && self.lines.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { lines: 4, bytes: 100 };

    #[tokio::test]
    async fn a_subscriber_that_falls_behind_in_bytes_reads_what_waits_and_is_cut_off() {
        let mut subscribers = Subscribers::new(LIMITS);
        let mut slow = subscribers.subscribe();
        for n in 0..3 {
            subscribers.publish(&n, 60);
        }
        assert!(subscribers.is_empty(), "the third line found more than 100 bytes waiting");
        assert_eq!(slow.next().await.map(|q| q.line), Some(0));
        assert_eq!(slow.next().await.map(|q| q.line), Some(1));
        assert!(slow.is_over());
        assert!(slow.next().await.is_none());
    }

    #[tokio::test]
    async fn a_subscriber_that_falls_behind_in_lines_is_cut_off_and_the_others_are_not() {
        let mut subscribers = Subscribers::new(LIMITS);
        let (slow, mut fast) = (subscribers.subscribe(), subscribers.subscribe());
        for n in 0..9 {
            subscribers.publish(&n, 1);
            assert_eq!(fast.next().await.map(|q| q.line), Some(n));
        }
        assert_eq!(slow.len(), LIMITS.lines);
        assert!(!fast.is_over());
    }

    #[tokio::test]
    async fn one_line_over_the_limit_reaches_a_subscriber_that_keeps_up() {
        let mut subscribers = Subscribers::new(LIMITS);
        let mut fast = subscribers.subscribe();
        for n in 0..3 {
            subscribers.publish(&n, 1_000);
            assert_eq!(fast.next().await.map(|q| q.line), Some(n));
        }
    }

    #[tokio::test]
    async fn the_bytes_of_a_line_wait_until_it_is_dropped() {
        let mut subscribers = Subscribers::new(LIMITS);
        let mut slow = subscribers.subscribe();
        subscribers.publish(&0, 100);
        let first = slow.next().await;
        subscribers.publish(&1, 1);
        assert!(subscribers.is_empty(), "the first line was received and not dropped");
        drop(first);
        let mut next = subscribers.subscribe();
        subscribers.publish(&2, 100);
        drop(next.next().await);
        subscribers.publish(&3, 1);
        assert_eq!(next.next().await.map(|queued| queued.line), Some(3));
    }

    #[test]
    fn a_subscriber_that_is_gone_gets_nothing() {
        let mut subscribers = Subscribers::<u8>::new(LIMITS);
        drop(subscribers.subscribe());
        assert!(subscribers.is_empty());
    }
}
