//! Failures that stop nothing: what was to be done is done again later, or only shown less exactly.
//! They are logged, so that a bug report tells of them.

use std::fmt::Display;

/// A result that nothing depends on.
pub trait OrLog {
    /// Drops the result; a failure becomes a warning that says what was not done.
    fn or_log(self, not_done: &'static str);
}

impl<T, E: Display> OrLog for Result<T, E> {
    fn or_log(self, not_done: &'static str) {
        if let Err(error) = self {
            tracing::warn!(%error, "not done: {not_done}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::capture;

    #[test]
    fn a_failure_that_stops_nothing_is_logged_and_a_success_is_not() {
        let (captured, _guard) = capture();
        Ok::<u8, String>(1).or_log("store the first thing");
        Err::<u8, _>("disk full").or_log("store the second thing");
        let lines = captured.lines();
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].ends_with("not done: store the second thing error=disk full"),
            "{lines:?}"
        );
    }
}
