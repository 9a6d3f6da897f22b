//! Starts commands of one reply together: the state of the guarded files is recorded for each of
//! them before the first one can change any. So no command takes a change by another one for the
//! person's.

use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The membership of one command in a group that starts together; by default it is alone.
#[derive(Clone, Debug, Default)]
pub struct StartGroup {
    own: CancellationToken,
    all: Arc<[CancellationToken]>,
    /// Cancelled when the command has started.
    started: CancellationToken,
}

impl StartGroup {
    /// A membership for each of this number of commands.
    pub fn of(commands: usize) -> Vec<Self> {
        let all: Arc<[_]> = (0..commands).map(|_| CancellationToken::new()).collect();
        let started = CancellationToken::new;
        all.iter()
            .map(|own| Self { own: own.clone(), all: all.clone(), started: started() })
            .collect()
    }

    /// Whether no other command starts together with it.
    pub(crate) fn is_alone(&self) -> bool {
        self.all.len() <= 1
    }

    /// Marks the command as ready, and waits for all others.
    pub(crate) async fn ready(&self) {
        self.own.cancel();
        for other in self.all.iter() {
            other.cancelled().await;
        }
    }

    /// Marks the command as started.
    pub(crate) fn begin(&self) {
        self.started.cancel();
    }

    /// Whether the command has started.
    pub fn has_started(&self) -> bool {
        self.started.is_cancelled()
    }

    /// Resolves when the command has started.
    pub async fn started(&self) {
        self.started.cancelled().await;
    }

    /// Lets the other commands start without this one.
    pub fn leave(&self) {
        self.own.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Poll;

    #[tokio::test]
    async fn all_begin_when_the_last_one_is_ready_or_has_left() {
        let [first, second, third] = &StartGroup::of(3)[..] else { panic!() };
        let mut waits = Box::pin(first.ready());
        assert!(futures_util::poll!(&mut waits).is_pending());
        third.leave();
        assert!(futures_util::poll!(&mut waits).is_pending());
        assert_eq!(futures_util::poll!(Box::pin(second.ready())), Poll::Ready(()));
        waits.await;
        StartGroup::default().ready().await;
    }
}
