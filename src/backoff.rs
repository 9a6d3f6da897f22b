//! The pauses between tries of something that fails.

use std::time::Duration;

/// Each pause is twice as long as the one before, up to a limit.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// The pause before the next try.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause
    }

    /// Begins with the first pause again, because a try succeeded.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew_after_a_success() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
        let seconds = [1, 2, 4, 5, 5].map(Duration::from_secs);
        assert_eq!([(); 5].map(|()| backoff.pause()), seconds);
        backoff.reset();
        assert_eq!(backoff.pause(), Duration::from_secs(1));
    }
}
