//! A panic anywhere in the process becomes an event and a redacted sentence on standard error.

use std::io::Write as _;
use std::panic::PanicHookInfo;

/// Takes the place of the hook that prints a panic's text as it is.
pub(super) fn install() {
    std::panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        let (thread, at) = (thread.name().unwrap_or("unnamed"), place(info));
        let text = info.payload_as_str().unwrap_or("no message");
        tracing::error!(thread, at, "panic: {text}");
        if !crate::trace::has_own_output() {
            let text = crate::trace::safe(text);
            // A closed standard error is no reason for a second panic.
            let _ = writeln!(
                std::io::stderr(),
                "yoi: internal error at {at} (thread {thread}): {text}"
            );
        }
    }));
}

fn place(info: &PanicHookInfo<'_>) -> String {
    info.location().map_or_else(|| "an unknown place".into(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use crate::trace::tests::capture;

    #[test]
    fn a_panic_becomes_an_event_with_its_place_and_without_secrets() {
        super::install();
        let (captured, _guard) = capture();
        let panicked = std::panic::catch_unwind(|| panic!("sk-planted-in-a-panic is wrong"));
        assert!(panicked.is_err());
        let lines = captured.lines();
        assert_eq!(lines.len(), 1, "{lines:?}");
        let said = "panic: [secret] is wrong thread=";
        assert!(lines[0].contains(said) && lines[0].contains("src/trace/panic.rs:"), "{lines:?}");
    }
}
