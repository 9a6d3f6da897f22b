//! `yoi mcp` and `yoi mcp install`: the program as an MCP server, with clients that know the protocol from its
//! specification alone (`tests/mcp`).

use crate::bench::{Bench, Done};
use std::fs;
use std::process::Command;

/// A program of `tests/mcp`, in the home of a test.
pub fn python(bench: &Bench, script: &str) -> Command {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp");
    let mut command = Command::new("python3");
    // -B: no compiled files beside the sources.
    command.arg("-B").arg(format!("{dir}/{script}"));
    command.arg(env!("CARGO_BIN_EXE_yoi")).arg(bench.path("home"));
    for name in
        ["YOI_CONFIG_DIR", "YOI_DATA_DIR", "YOI_RUNTIME_DIR", "YOI_STATE_DIR", "REMOTE_PI_HOME"]
    {
        command.env_remove(name);
    }
    command.env("YOI_HOME", bench.path("home")).env("HOME", bench.path("home"));
    command
}

/// Plays a session of a client.
fn session(name: &str) {
    let bench = Bench::new();
    let output = python(&bench, "session.py").arg(name).output().expect("python3");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
}

#[test]
fn a_client_of_either_version_lists_agents_sends_and_gets_messages() {
    session("both_versions");
}

#[test]
fn a_batch_whose_taking_was_not_confirmed_comes_again_with_the_same_ids() {
    session("batches");
}

#[test]
fn a_server_that_cannot_join_says_why_in_its_results_and_joins_when_it_can() {
    session("troubles");
}

#[test]
fn a_client_that_can_be_woken_hears_of_a_message_and_no_other_does() {
    session("pushes");
}

#[test]
fn a_message_that_is_too_large_or_one_too_many_is_denied() {
    session("limits");
}

#[test]
fn a_client_learns_whether_the_sender_knows_that_its_message_was_not_taken() {
    session("other_leader");
}

#[test]
fn a_client_of_either_version_that_subscribes_hears_of_each_message() {
    session("subscriptions");
}

#[test]
fn lines_that_are_no_messages_end_no_server() {
    session("strange_lines");
}

#[test]
fn one_agent_serves_a_folder_also_beside_remote_pi() {
    session("beside_remote_pi");
}

#[test]
fn a_client_that_does_not_read_costs_no_message() {
    session("never_read");
}

#[test]
fn a_client_uses_pods_of_its_folder_as_far_as_a_person_lets_it() {
    session("pods");
}

#[test]
fn an_answer_once_at_the_next_host_counts_for_the_call_of_a_client() {
    session("next_host");
}

#[test]
fn a_killed_server_loses_no_acknowledged_message_and_repeats_only_with_the_same_ids() {
    let bench = Bench::new();
    // 100 kills take half a minute; a few of them show that nothing is lost.
    let count = std::env::var("YOI_KILLS").unwrap_or_else(|_| "5".to_owned());
    let output = python(&bench, "kills.py").arg(&count).output().expect("python3");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let figures: serde_json::Value = serde_json::from_str(&out).expect("the figures");
    assert_eq!(figures["kills"].to_string(), count);
}

/// Without a terminal, so that no question can be answered.
fn install(bench: &Bench, words: &[&str]) -> Done {
    bench.yoi(&[&["mcp", "install"], words].concat())
}

#[test]
fn a_client_learns_of_yoi_after_its_change_was_shown_and_agreed_to() {
    let bench = Bench::new();
    let file = bench.path("home/.gemini/settings.json");
    fs::create_dir_all(file.parent().expect("a directory")).expect("a writable home");
    let before = "{\n  // mine\n  \"theme\": \"dark\"\n}\n";
    let one_line = bench.path("home/.claude.json");
    fs::write(&one_line, r#"{"history":["words"],"oauthAccount":{"token":"s3cret"}}"#)
        .expect("a writable home");
    let shown = install(&bench, &["claude"]);
    assert!(shown.out.contains("@@ mcpServers.yoi @@"), "{shown:?}");
    assert!(!shown.out.contains("s3cret") && !shown.out.contains("words"), "{shown:?}");
    fs::write(&file, before).expect("a writable home");
    let shown = install(&bench, &["gemini"]);
    assert_eq!(shown.code, Some(2), "{shown:?}");
    assert!(shown.out.contains("@@ mcpServers.yoi @@\n+{\n+  \"args\": "), "{shown:?}");
    assert!(!shown.out.contains("dark"), "nothing else is shown: {shown:?}");
    assert!(shown.last_words().contains("nothing was changed"), "{shown:?}");
    assert_eq!(fs::read_to_string(&file).expect("a file"), before);
    let done = install(&bench, &["gemini", "--name", "reviewer", "--yes"]);
    assert!(done.code == Some(0) && done.last_words().contains("start it anew"), "{done:?}");
    let after = fs::read_to_string(&file).expect("a file");
    assert!(after.contains("// mine\n  \"theme\": \"dark\"") && after.contains("\"reviewer\""));
    assert!(after.contains("YOI_HOME"), "it finds the same mesh: {after}");
    let again = install(&bench, &["gemini", "--name", "reviewer", "--yes"]);
    assert!(again.code == Some(0) && again.out.is_empty(), "{again:?}");
    assert!(again.last_words().contains("knows yoi already"), "{again:?}");
    assert_eq!(fs::read_to_string(&file).expect("a file"), after);
    let removed = bench.yoi(&["mcp", "uninstall", "gemini", "--yes"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(!fs::read_to_string(&file).expect("a file").contains("yoi"));
}

#[test]
fn a_link_to_the_settings_of_a_client_and_their_mode_stay() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    let (link, file) = (bench.path("home/.claude.json"), bench.path("home/dotfiles/claude.json"));
    fs::create_dir_all(file.parent().expect("a directory")).expect("a writable home");
    fs::write(&file, "{}").expect("a writable home");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("an own file");
    std::os::unix::fs::symlink("dotfiles/claude.json", &link).expect("a writable home");
    assert_eq!(install(&bench, &["claude", "--yes"]).code, Some(0));
    assert!(link.is_symlink());
    assert!(fs::read_to_string(&file).expect("a file").contains("\"mcpServers\""));
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o640);
    fs::write(&file, "{ broken").expect("an own file");
    let refused = install(&bench, &["claude", "--yes"]);
    assert!(refused.code == Some(1) && refused.last_words().contains("claude.json"), "{refused:?}");
    assert_eq!(fs::read_to_string(&file).expect("a file"), "{ broken");
}

#[test]
fn started_by_a_person_it_names_the_command_that_makes_it_known() {
    let bench = Bench::new();
    let mut command = bench.shell("script -qec 'yoi mcp' /dev/null");
    let done = bench.finish(command.spawn().expect("a shell"));
    assert!(done.out.contains("yoi mcp install <client>"), "{done:?}");
}
