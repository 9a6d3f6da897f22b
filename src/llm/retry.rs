//! When a failed request is made again, and after how long. The caller runs the loop.

use crate::llm::Failure;
use crate::llm::cause::named_wait;
use std::time::Duration;

/// How long to try, and after which pauses. Only for requests of whose answer nothing was shown yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The longest wait after the first failure; doubles with each further one. The shortest is half of it.
    pub base: Duration,
    /// The longest wait after any failure, unless the provider names a time.
    pub cap: Duration,
    /// No wait ends later than this after the first attempt failed.
    pub budget: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(20),
            // An overload of a provider passes in minutes; a run that was given up is not taken up by itself.
            budget: Duration::from_secs(600),
        }
    }
}

impl Policy {
    /// About how many attempts there are until the budget ends, the first one included.
    pub fn attempts(&self) -> u32 {
        let pauses = self.budget.as_secs_f64() / self.cap.as_secs_f64().max(1.0);
        // Pauses are shorter at first, and as short as half of the longest one.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let attempts = (pauses * 2.0).ceil() as u32;
        attempts.saturating_add(1)
    }

    /// How long to wait before the next attempt; `None` when there is to be none.
    /// `failed_attempt` counts from 1, `left` is the time until the run gives up, `None` where it does not,
    /// and `random` lies in 0.0 ..= 1.0.
    pub fn wait(
        &self,
        failed_attempt: u32,
        left: Option<Duration>,
        failure: &Failure,
        random: f64,
    ) -> Option<Duration> {
        if !failure.retryable() {
            return None;
        }
        let wait = self.pause(failed_attempt, failure, random);
        left.is_none_or(|left| wait < left).then_some(wait)
    }

    /// How long the next request should wait after so many failures in a row, counted from 1.
    pub fn pause(&self, failures: u32, failure: &Failure, random: f64) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        let ceiling = self.base.saturating_mul(doubled).min(self.cap);
        // At least half of it, so that a minute of overload costs few requests.
        let jittered = ceiling.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0);
        // A provider that names no time, or one that has passed, is not asked in a burst.
        failure.retry_after().map_or(jittered, |named| named.max(jittered))
    }
}

impl Failure {
    /// Whether the same request may succeed when it is made again.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Connect(_) | Self::Timeout(_) | Self::Cut(_) => true,
            Self::Status { status, .. } => passing_status(*status),
            Self::Provider { retryable, .. } => *retryable,
            Self::TooLong { .. } | Self::Filtered { .. } | Self::Unusable(_) => false,
        }
    }

    /// How long the provider asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Provider { provider_text, retryable: true, .. } => named_wait(provider_text),
            _ => None,
        }
    }
}

/// Whether an HTTP status says that the trouble is of the moment.
pub fn passing_status(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..=599)
}

/// The clock after a wait: `12:40:05`, with the date when that is another day.
pub fn clock_in(wait: Duration) -> String {
    let now = jiff::Zoned::now();
    now.checked_add(wait).map_or_else(|_| "later".into(), |then| clock_at(&then, &now))
}

/// A time as a clock shows it, with the date where that is not the one of `now`.
pub fn clock_at(then: &jiff::Zoned, now: &jiff::Zoned) -> String {
    let format = if then.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M" };
    then.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_TIME: Duration = Duration::ZERO;

    fn status(status: u16, retry_after: Option<u64>) -> Failure {
        let retry_after = retry_after.map(Duration::from_secs);
        Failure::Status { status, retry_after, message: "no".into(), provider_text: String::new() }
    }

    fn wait(attempt: u32, elapsed: u64, failure: &Failure, random: f64) -> Option<u128> {
        let policy = Policy::default();
        let left = policy.budget.saturating_sub(Duration::from_secs(elapsed));
        policy.wait(attempt, Some(left), failure, random).map(|wait| wait.as_millis())
    }

    #[test]
    fn waits_double_and_are_jittered_from_half_of_them() {
        let busy = status(503, None);
        let longest: Vec<_> = (1..5).map(|attempt| wait(attempt, 0, &busy, 1.0)).collect();
        assert_eq!(longest, [Some(1000), Some(2000), Some(4000), Some(8000)]);
        assert_eq!(wait(3, 0, &busy, 0.5), Some(3000));
        assert_eq!(wait(1, 0, &busy, 0.0), Some(500));
    }

    #[test]
    fn a_minute_of_overload_takes_at_most_twelve_requests_and_ends_no_run() {
        for failure in [status(429, None), status(529, None), status(500, None)] {
            for random in [0.0, 0.5, 1.0] {
                let (mut now, mut requests) = (NO_TIME, 1);
                while now < Duration::from_secs(60) {
                    now += Policy::default().wait(requests, None, &failure, random).unwrap();
                    requests += 1;
                }
                assert!(requests <= 12, "{failure}: {requests} requests");
            }
        }
        assert_eq!(wait(1, 0, &status(429, Some(70)), 0.0), Some(70_000));
        assert_eq!(wait(4, 0, &status(429, Some(0)), 1.0), Some(8_000), "no burst");
    }

    #[test]
    fn a_wait_never_exceeds_the_cap() {
        let wait = Policy::default().wait(4_000_000_000, None, &status(500, None), 1.0);
        assert_eq!(wait, Some(Duration::from_secs(20)));
    }

    #[test]
    fn only_failures_that_may_pass_are_tried_again() {
        let passes = |code| wait(1, 0, &status(code, None), 0.5).is_some();
        assert!([408, 409, 425, 429, 500, 502, 503, 504, 529].into_iter().all(passes));
        assert!(![301, 400, 401, 403, 404, 413, 422].into_iter().any(passes));
        assert!(wait(1, 0, &Failure::Timeout(String::new()), 0.5).is_some());
        assert!(wait(1, 0, &Failure::Cut(String::new()), 0.5).is_some());
        assert!(wait(1, 0, &Failure::Unusable(String::new()), 0.5).is_none());
        for retryable in [true, false] {
            let failure = Failure::Provider {
                message: String::new(),
                provider_text: String::new(),
                retryable,
            };
            assert_eq!(wait(1, 0, &failure, 0.5).is_some(), retryable);
        }
    }

    #[test]
    fn the_delay_a_provider_wants_is_kept_within_the_budget() {
        assert_eq!(wait(1, 0, &status(429, Some(20)), 0.0), Some(20_000));
        assert_eq!(wait(2, 581, &status(429, Some(20)), 0.0), None);
        assert_eq!(wait(1, 0, &status(429, Some(3600)), 0.0), None);
    }

    #[test]
    fn no_request_is_retried_after_the_budget() {
        assert_eq!(wait(1, 600, &status(500, None), 0.0), None);
        assert_eq!(wait(1, 660, &Failure::Timeout(String::new()), 0.0), None);
    }

    #[test]
    fn a_provider_that_cannot_be_reached_is_waited_for_as_long_as_one_that_is_overloaded() {
        let dead = Failure::Connect(String::new());
        assert_eq!(wait(1, 0, &dead, 1.0), Some(1000));
        assert_eq!(wait(12, 500, &dead, 1.0), Some(20_000));
        assert_eq!(wait(40, 590, &dead, 1.0), None);
    }
}
