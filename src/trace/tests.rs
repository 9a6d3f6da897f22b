//! A sink of a test's own, and what becomes of events in it.

use super::*;
use tracing::subscriber::DefaultGuard;

/// Sends every event of this thread to a sink of its own while the guard lives.
pub(crate) fn capture() -> (Captured, DefaultGuard) {
    let sink = Arc::new(Sink::new(None));
    let layer = layer::Lines::new(sink.clone()).with_filter(LevelFilter::TRACE);
    let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    (Captured(sink), guard)
}

/// The lines of a test.
pub(crate) struct Captured(Arc<Sink>);

impl Captured {
    pub(crate) fn lines(&self) -> Vec<String> {
        lock(&self.0.ring).matching("")
    }
}

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

#[test]
fn an_event_is_one_line_with_its_spans_and_fields() {
    let (captured, _guard) = capture();
    let run = tracing::info_span!("run", pod = "alice", id = tracing::field::Empty);
    run.record("id", 7);
    run.in_scope(|| tracing::info!(ms = 12, "finished\nearly"));
    let lines = captured.lines();
    let (_, line) = lines[0].split_once(' ').unwrap();
    let pid = std::process::id();
    let expected =
        format!("INFO {pid} yoi::trace::tests run{{pod=alice id=7}}: finished⏎early ms=12");
    assert_eq!((lines.len(), line), (1, expected.as_str()));
}

#[test]
fn a_secret_in_a_message_a_field_or_a_span_never_reaches_the_ring() {
    let (captured, _guard) = capture();
    let span = tracing::info_span!("request", url = "https://me:word-1@h/");
    span.in_scope(|| tracing::info!(header = "Bearer word-2-word-2", "key sk-word-3-word-3"));
    assert_eq!(captured.lines().len(), 1);
    assert!(!captured.lines()[0].contains("word-"), "{:?}", captured.lines());
}

#[test]
fn yoi_log_wins_over_rust_log_and_a_mistake_is_said() {
    let level = |pairs: &[(&str, &str)]| {
        let (filter, diagnostic) = filter(&env(pairs));
        let debug = filter.would_enable("yoi::run", &tracing::Level::DEBUG);
        (debug, filter.would_enable("hyper", &tracing::Level::INFO), diagnostic.is_some())
    };
    assert_eq!(level(&[]), (false, false, false));
    assert_eq!(level(&[("RUST_LOG", "debug")]), (true, true, false));
    assert_eq!(level(&[("RUST_LOG", "debug"), ("YOI_LOG", "yoi=warn")]), (false, false, false));
    assert_eq!(level(&[("YOI_LOG", "yoi=loud")]), (false, false, true));
}

#[test]
fn a_state_directory_that_cannot_be_used_leaves_the_ring() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("file");
    std::fs::write(&file, "").unwrap();
    let sink = Sink::new(Some(&file));
    sink.line("first");
    sink.line("second");
    let lines = lock(&sink.ring).matching("");
    assert!(lines[0].starts_with("log lines are kept in memory only"), "{lines:?}");
    assert_eq!(lines[1..], ["first", "second"]);
}
