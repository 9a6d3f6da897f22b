//! Every line of a shell that a text of the program tells a person to type: run as it stands there, and what
//! the text promises is looked at. The lines are read from the texts, so a line without a row here fails.

use crate::plays::place::Place;
use crate::plays::players::*;
use crate::plays::texts::{blocks, document, shell_lines, texts};

#[path = "plays/place.rs"]
mod place;
#[path = "plays/players.rs"]
mod players;
#[path = "plays/texts.rs"]
mod texts;

/// Runs a line and looks at what it did.
type Player = fn(&Place, &str);

/// The lines of the block in `docs/headless.md`, in its order: each finds what those before it left.
const IN_ORDER: &[(&str, Player)] = &[
    (r#"yoi -p "fix the failing test""#, a_fresh_pod_answers),
    (r#"yoi -p "and now the docs" --pod docs"#, the_named_pod_is_begun_and_goes_on),
    (r#"git diff | yoi -p "review this""#, the_diff_is_text),
    ("git diff | yoi send docs -", the_diff_is_the_message),
    ("yoi send docs --pod lead -- --help is out", the_words_behind_the_dashes_are_the_message),
    ("yoi -p - --json < prompt.txt", each_line_is_an_event),
    (r#"yoi -c ":new api" -c ":send api hello""#, verbs_run_in_order),
    (r#"yoi -p "test" --allow 'Bash+network:cargo *'"#, only_what_is_allowed_passes),
    ("yoi --no-ui", lines_are_messages_and_verbs),
    ("yoi stop api --tree", the_pod_is_stopped),
    ("yoi stop 'docs/**' --yes", the_pods_of_the_selector_are_stopped),
    (r#"yoi -c ":rm api" --yes"#, the_pod_is_deleted_after_a_confirmation),
    ("yoi rm --older-than 7d", nothing_young_is_deleted),
    ("yoi ls", the_pods_are_listed),
    ("yoi log docs", the_transcript_is_printed),
    ("yoi mesh ls", agents_of_the_mesh_are_listed_and_hear),
    ("yoi mesh send <to> <text>", agents_of_the_mesh_are_listed_and_hear),
    ("yoi mesh tail", agents_of_the_mesh_are_listed_and_hear),
    ("yoi mesh audit [name]", the_messages_of_the_mesh_are_listed),
    ("yoi mcp install <client>", an_mcp_client_learns_of_yoi),
    ("yoi host", the_host_is_shown),
    ("yoi models sonnet", the_models_are_listed),
    ("yoi doctor", the_doctor_reports),
    ("yoi man", the_manual_page_is_read_by_man),
    ("yoi install", the_program_is_installed),
];

/// Every other line, each in a place of its own where the Pod `api` lives.
const PLAYS: &[(&str, Player)] = &[
    ("yoi", the_dashboard_opens),
    (r#"yoi "fix the failing tests""#, the_dashboard_sends_the_message),
    ("yoi -- continue", the_dashboard_sends_the_message),
    ("yoi --message <TEXT>", the_dashboard_sends_the_message),
    ("--model provider/model", the_model_is_chosen),
    ("--model rehearsal:<file>", the_script_answers),
    ("yoi --model rehearsal:<file>", the_script_answers_on_the_screen),
    ("-", the_standard_input_is_the_message),
    ("-p", a_message_is_answered),
    ("-c", a_verb_is_carried_out),
    ("--no-ui", lines_are_messages_and_verbs),
    ("--yes", the_pod_is_deleted_after_a_confirmation),
    ("--keep", the_pod_is_kept),
    ("--raw", control_characters_are_printed),
    ("--json", each_line_is_an_event),
    ("--allow", only_what_is_allowed_passes),
    ("--allow '<tool>:<pattern>'", only_what_is_allowed_passes),
    ("--ask wait", the_request_waits),
    ("--name", an_mcp_client_is_answered),
    ("yoi -p", a_message_is_answered),
    ("yoi -c", a_verb_is_carried_out),
    ("yoi --no-ui", lines_are_messages_and_verbs),
    ("yoi <verb>", each_verb_of_the_shell_is_a_command),
    ("yoi mesh audit", the_messages_of_the_mesh_are_listed),
    ("yoi mesh init --address <host>", two_machines_are_connected),
    ("nats-server -c <file>", two_machines_are_connected),
    ("yoi mesh init --add casa", two_machines_are_connected),
    ("yoi mesh init --add", two_machines_are_connected),
    ("yoi mesh join <line>", two_machines_are_connected),
    ("yoi mesh join -", two_machines_are_connected),
    ("yoi mesh leave", two_machines_are_connected),
    ("--remove", two_machines_are_connected),
    ("yoi mcp", an_mcp_client_is_answered),
    ("yoi mcp install <client>", an_mcp_client_learns_of_yoi),
    ("yoi mcp uninstall <client>", an_mcp_client_learns_of_yoi),
    ("yoi explain <pod>", the_commands_of_the_pod_are_explained),
    ("yoi stop <pod>", the_pod_is_stopped),
    ("yoi restore <pod>", the_pod_of_one_message_becomes_ordinary),
    ("yoi log <pod> --json", the_transcript_is_printed),
    ("yoi send <pod> -", the_diff_is_the_message),
    ("yoi ls --all", the_pod_of_one_message_is_listed),
    ("yoi inbox", the_request_is_printed),
    ("yoi allow <name> [pod|tree [<tool>:<pattern>]]", the_request_is_allowed),
    ("yoi allow <name> each", the_equal_requests_are_allowed),
    ("yoi allow <name> tree --of <pod>", the_request_is_allowed_for_a_family),
    ("yoi deny <name> [why]", the_request_is_denied),
    ("yoi deny <name> each [why]", the_request_is_denied),
    ("yoi answer <name> <answer>", the_question_is_answered),
    ("yoi answer <pod> <answer>", the_question_is_answered),
    ("yoi trace [words]", the_lines_of_the_host_are_shown),
    ("YOI_LOG=yoi=debug yoi", the_host_logs_more),
    ("yoi host stop", the_host_ends),
    ("yoi resume --all", the_interrupted_runs_go_on),
    ("yoi doctor", the_doctor_reports),
    ("yoi doctor --report", a_report_is_written),
    ("yoi doctor --report [file]", a_report_is_written),
    ("yoi connect anthropic", a_key_is_tried_and_stored),
    ("yoi connect <provider>", a_key_is_tried_and_stored),
    ("yoi auth <provider>", a_key_is_stored),
    ("yoi completions <shell>", the_shell_reads_the_completions),
    ("man -l -", the_manual_page_is_read_by_man),
    ("yoi uninstall --plan", the_installed_program_is_taken_back),
    ("yoi uninstall", the_installed_program_is_taken_back),
    // The options that help lists.
    ("yoi --model <MODEL>", the_model_is_chosen),
    ("yoi --effort <EFFORT>", the_effort_is_chosen),
    ("--effort", the_effort_is_chosen),
    ("yoi --cwd <DIR>", the_pod_works_in_the_directory),
    ("yoi --pod <NAME>", the_named_pod_is_begun_and_goes_on),
    ("yoi --theme <NAME>", the_theme_is_checked),
    ("yoi --inside", the_host_is_inside),
    ("yoi --no-ui", lines_are_messages_and_verbs),
    ("yoi --serve", a_host_serves_until_sigterm),
    ("yoi -p, --prompt <TEXT>", a_message_is_answered),
    ("yoi --keep", the_pod_is_kept),
    ("yoi -c, --command <VERB>", a_verb_is_carried_out),
    ("yoi --json", each_line_is_an_event),
    ("yoi --raw", control_characters_are_printed),
    ("yoi --yes", the_pod_is_deleted_after_a_confirmation),
    ("yoi --allow <TOOL:PATTERN>", only_what_is_allowed_passes),
    ("yoi --ask <UNATTENDED>", the_request_waits),
    ("yoi -V, --version", the_version_is_printed),
    ("yoi ls --all", the_pod_of_one_message_is_listed),
    ("yoi ls --json", the_pods_are_listed),
    ("yoi log --json", the_transcript_is_printed),
    ("yoi log --raw", the_transcript_is_printed),
    ("yoi models --json", the_models_are_listed),
    ("yoi doctor --json", the_doctor_reports),
    ("yoi doctor --online", the_doctor_reports),
    ("yoi doctor --report [<FILE>]", a_report_is_written),
    ("yoi auth --remove", a_key_is_removed),
    ("yoi install --to <DIR>", the_program_is_installed),
    ("yoi install --plan", the_program_is_installed),
    ("yoi uninstall --to <DIR>", the_installed_program_is_taken_back),
    ("yoi uninstall --all", the_installed_program_is_taken_back),
    ("yoi mcp --name <NAME>", an_mcp_client_is_answered),
    ("yoi mcp --cwd <DIR>", an_mcp_client_is_answered),
    ("yoi send --socket <PATH>", the_socket_of_the_pod_takes_a_message),
    ("yoi <verb> --pod <NAME>", the_pod_that_is_named_is_meant),
    ("yoi <verb> --yes", the_pod_is_deleted_after_a_confirmation),
];

/// What no test can do, with the reason.
const NOT_PLAYED: &[(&str, &str)] = &[
    ("cargo run --release", "builds for minutes; every test here runs what it builds"),
    ("cargo bench --bench screen", "measures for minutes"),
    ("cargo bench --bench mesh -- machines", "measures for minutes"),
    ("cargo bench --bench mesh", "measures for minutes"),
    ("./scripts/test", "runs this test"),
    ("apt-get install nats-server", "installs a package; scripts/test does"),
    ("./scripts/release", "builds for minutes"),
    (
        "./install",
        "stands in the archive that scripts/release makes; `yoi install` is what it calls",
    ),
    (
        "yoi allow <request> client",
        "needs a client of MCP: the session `pods` of tests/mcp/session.py plays it",
    ),
];

/// What looks like a line of a shell, and is none.
const NO_INSTRUCTION: &[(&str, &str)] = &[
    ("cargo *", "a pattern of a rule"),
    ("cargo x; rm y", "a command of a model"),
    ("./build.sh", "a command of a model"),
    ("./target/debug/app", "a program in a command of a model"),
    ("--", "the end of the options"),
];

/// What begins like a line of a shell in `docs/policy.md`: the words of other programs, about which rules decide.
fn is_word_of_a_rule(text: &str, line: &str) -> bool {
    let is_path = line.starts_with("./");
    let is_option = line.starts_with('-') && !["-p", "-c", "--allow"].contains(&line);
    text == "docs/policy.md"
        && (is_path || is_option || !line.starts_with("yoi") && line.contains(" -"))
}

/// Every line of the texts with the text that it stands in.
fn lines() -> Vec<(String, String)> {
    let place = Place::empty();
    let texts = texts(&place.bench);
    let lines = texts.iter().flat_map(|(name, text)| {
        shell_lines(name, text).into_iter().map(|line| (name.clone(), line))
    });
    let of_help = |name: &str| name.ends_with(" --help");
    lines
        .map(|(name, line)| match of_help(&name) {
            true => (name, of_any_verb(line)),
            false => (name, line),
        })
        .collect()
}

/// An option that every verb of the shell has is one instruction. A verb's own options are those of the
/// screen, where each is played.
fn of_any_verb(line: String) -> String {
    match line.split_once(" --") {
        Some((command, option @ ("pod <NAME>" | "yes"))) if command.contains(' ') => {
            format!("yoi <verb> --{option}")
        }
        _ => line,
    }
}

fn is_option_of_a_verb(line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    let own = [
        "ls",
        "log",
        "host",
        "doctor",
        "auth",
        "install",
        "uninstall",
        "completions",
        "man",
        "<verb>",
        "send",
    ];
    matches!(words[..], ["yoi", verb, option, ..] if option.starts_with("--") && !own.contains(&verb))
}

#[test]
fn every_line_of_a_shell_in_the_texts_is_played_or_has_a_reason() {
    let lines = lines();
    let rows = IN_ORDER.iter().chain(PLAYS).map(|(line, _)| *line);
    let reasons = NOT_PLAYED.iter().chain(NO_INSTRUCTION).map(|(line, _)| *line);
    let known: Vec<&str> = rows.chain(reasons).collect();
    let unknown = lines.iter().filter(|(_, line)| !known.contains(&line.as_str()));
    let unknown = unknown.filter(|(_, line)| !is_option_of_a_verb(line));
    let unknown: Vec<_> = unknown.filter(|(text, line)| !is_word_of_a_rule(text, line)).collect();
    assert!(unknown.is_empty(), "no row of tests/program/plays.rs plays {unknown:#?}");
    let gone = known.iter().filter(|row| !lines.iter().any(|(_, line)| line == *row));
    let gone: Vec<_> = gone.collect();
    assert!(gone.is_empty(), "no text has these lines of tests/program/plays.rs: {gone:#?}");
}

#[test]
fn the_lines_of_the_page_do_in_their_order_what_stands_beside_them() {
    let (blocks, _) = blocks(&document("docs/headless.md"));
    let block = blocks.iter().find(|block| block.contains("yoi -p")).expect("the block");
    let place = Place::empty();
    for line in block.lines() {
        let line = line.split("  ").next().unwrap_or(line);
        let row = IN_ORDER.iter().find(|(row, _)| *row == line);
        row.unwrap_or_else(|| panic!("no row plays {line}")).1(&place, line);
    }
}

/// Plays every row whose place in the table leaves this rest, so that the parts run side by side.
fn play_part(rest: usize) {
    for (_, (line, play)) in PLAYS.iter().enumerate().filter(|(at, _)| at % 3 == rest) {
        play(&Place::with_a_pod(), line);
    }
}

#[test]
fn each_line_of_the_texts_does_what_they_say_first_part() {
    play_part(0);
}

#[test]
fn each_line_of_the_texts_does_what_they_say_second_part() {
    play_part(1);
}

#[test]
fn each_line_of_the_texts_does_what_they_say_third_part() {
    play_part(2);
}
