//! `yoi auth`: keys come in unseen and lie where nobody else can read them.

use crate::bench::Bench;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn a_piped_key_is_stored_listed_by_provider_and_removed() {
    let bench = Bench::new();
    let done = bench.yoi_reading(&["auth", "anthropic"], "sk-very-secret\n");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!done.err.contains("sk-very-secret") && !done.out.contains("sk-very-secret"));
    let listed = bench.yoi(&["auth"]);
    assert_eq!((listed.code, listed.out.as_str()), (Some(0), "anthropic\n"));
    let file = bench.path("home/config/keys.toml");
    let mode = std::fs::metadata(&file).expect("the key file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(bench.yoi(&["auth", "anthropic", "--remove"]).code, Some(0));
    assert_eq!(bench.yoi(&["auth"]).out, "");
    assert_eq!(bench.yoi(&["auth", "anthropic", "--remove"]).code, Some(1));
}

#[test]
fn an_empty_key_is_refused() {
    let bench = Bench::new();
    assert_eq!(bench.yoi_reading(&["auth", "anthropic"], "\n").code, Some(1));
    assert_eq!(bench.yoi(&["auth"]).out, "");
}

#[test]
fn a_key_for_an_unknown_provider_is_refused_with_the_known_ones_until_it_is_configured() {
    let bench = Bench::new();
    let done = bench.yoi_reading(&["auth", "nope"], "sk-test\n");
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.err.contains("anthropic") && done.err.contains("key_env"), "{done:?}");
    assert_eq!(bench.yoi(&["auth"]).out, "");
    let lines = done.err.split_once("config.toml:\n").expect("the lines that define it").1;
    bench.settings(lines);
    let done = bench.yoi_reading(&["auth", "nope"], "sk-test\n");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains(":model nope/<name>"), "it has no default model: {done:?}");
}
