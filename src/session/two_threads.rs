//! Long work on a log in two halves at the same time.

use std::panic::resume_unwind;
use std::thread::{Builder, scope};

/// Does `first` on this thread and, at the same time, `second` on another one. Where no thread can be
/// started, `second` is done on this thread, after `first`.
pub fn both<A, B: Send>(first: impl FnOnce() -> A, second: impl Fn() -> B + Sync) -> (A, B) {
    scope(|scope| match Builder::new().name("log".into()).spawn_scoped(scope, &second) {
        Ok(thread) => {
            let first = first();
            (first, thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
        }
        Err(_) => (first(), second()),
    })
}
