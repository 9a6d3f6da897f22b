//! Runs every test of `escape` again in every setting: exactly the tests listed here fail, each
//! with the words of the header that explain it.
//!
//! A setting is a machine that forbids something, for example user namespaces. `setting.py`
//! simulates it and starts this test program in it.

use crate::escape::cell::SETTING;
use crate::escape::ways;
use std::collections::BTreeSet;
use std::process::Command;
use yoi::sandbox::{Confinement, OTHERS_SHOWN, WITHOUT_NAMESPACES};

/// The prefix of the line with the header in the output of the tests.
pub const HEADER: &str = "header: ";

/// Tests that fail where the header says these words, because the escape that they try succeeds
/// there.
const OPEN: [(&str, &[&str]); 9] = [
    (
        ways::ATTRIBUTES,
        &[
            "watchers::modes_and_times_of_devices_are_not_changed",
            "world::modes_owners_and_times_of_what_may_only_be_read_are_not_changed",
        ],
    ),
    (
        ways::LOOKS,
        &[
            "visible::a_command_of_a_child_sees_what_its_parent_gave_it",
            "visible::a_command_with_a_read_grant_sees_that_besides",
            "visible::a_command_with_a_write_grant_sees_and_writes_that_besides",
            "visible::a_command_without_a_grant_sees_the_system_and_places_of_its_own",
        ],
    ),
    (ways::LISTS, &["world::other_processes_and_other_files_are_neither_listed_nor_watched"]),
    (OTHERS_SHOWN, &["world::other_processes_and_other_files_are_neither_listed_nor_watched"]),
    (
        ways::COUNT,
        &[
            "watchers::processes_that_spin_and_ignore_a_request_to_end_are_ended",
            "world::processes_of_a_command_have_an_end",
            "limits::a_program_that_met_a_limit_inside_a_line_leaves_a_word_about_it",
        ],
    ),
    (
        ways::TEMPORARY,
        &[
            "private::a_command_ends_when_its_pod_keeps_too_much",
            "private::commands_that_run_at_the_same_time_are_ended_together_and_each_result_says_so",
            "private::a_command_that_ended_by_itself_is_measured_at_its_end",
            "private::a_pipe_in_the_place_of_a_generated_file_stops_no_command",
            "private::no_mount_of_a_command_goes_to_another_place_while_one_beside_it_moves_directories",
        ],
    ),
    (ways::GIT_SETTINGS, &["world::settings_of_git_are_shown_without_passwords_and_their_helpers"]),
    (
        ways::CACHES,
        &[
            "private::a_command_in_the_background_keeps_what_it_writes_to_tmp_and_nothing_in_a_cache",
            "private::commands_that_run_at_once_write_to_different_layers",
            "private::what_a_pod_writes_to_a_cache_neither_another_pod_nor_the_person_gets",
        ],
    ),
    (
        ways::SCRIPTS,
        &[
            "scripts::a_command_does_not_exchange_the_script_that_was_approved_with_it",
            "scripts::scripts_in_what_the_pod_keeps_are_compared_and_held",
        ],
    ),
];

/// Tests of features and messages that fail where the header says these words, and why. No escape
/// succeeds in them.
const LESS: [(&str, &str, &[&str]); 5] = [
    (
        ways::ATTRIBUTES,
        "no new file can be created directly in a directory that contains a guarded path, so git does not work there (docs/confinement.md)",
        &[
            "background::a_main_repository_without_a_head_starts_nothing_for_a_person_either",
            "background::what_a_command_in_the_background_makes_for_git_is_moved_away_while_it_runs",
            "guard::directories_with_more_guarded_files_than_can_be_restored_are_read_only",
            "home::the_rest_of_a_home_directory_is_worked_in_as_ever",
            "linked::a_gitlink_and_its_repository_may_come_from_two_commands",
            "linked::ordinary_repositories_of_a_command_stay_and_are_its_pods_own",
            "project::a_checkout_that_leaves_a_guarded_file_says_so_although_git_ends_with_0",
            "project::a_command_that_changes_the_scripts_of_a_package_says_so",
            "project::a_file_whose_program_wants_trust_first_is_changed_and_the_result_names_it",
            "together::no_command_takes_for_the_persons_what_one_beside_it_made",
        ],
    ),
    (
        ways::ATTRIBUTES,
        "there is no network, no shared memory, no `/tmp` and no layer of a command's own, and earlier output is read with `Read`",
        &[
            "explained::a_command_gets_what_its_explanation_says",
            "limits::a_place_in_memory_without_room_is_named_whatever_the_command_did_then",
            "net::a_command_without_the_network_has_one_of_its_own",
            "others::a_command_uses_sockets_of_its_own_and_reaches_none_of_another_program",
            "others::shared_memory_and_terminals_are_the_commands_own",
            "private::a_file_in_tmp_is_the_same_for_commands_and_for_file_tools",
            "private::the_end_of_a_command_does_not_wait_for_the_disk",
            "private::tmp_leads_no_file_tool_to_files_of_the_person",
            "world::a_command_that_met_a_limit_reads_which_one",
            "world::long_output_of_earlier_commands_is_read_and_not_changed",
        ],
    ),
    (
        ways::ATTRIBUTES,
        "there is no first process of a PID namespace that could be killed or stopped",
        &[
            "watchers::a_command_whose_watcher_is_killed_is_said_to_have_run_and_is_mended",
            "watchers::a_world_whose_first_process_does_not_end_it_is_ended_all_the_same",
        ],
    ),
    (
        ways::ATTRIBUTES,
        "a gap of the namespaces does not exist: the secret that is replaced cannot be read",
        &["holes::not_covered_is_a_secret_file_that_is_replaced_where_the_command_may_write"],
    ),
    (
        OTHERS_SHOWN,
        "the process ids in the list differ from those in the namespace, so remaining processes are ended and not named",
        &["others::a_process_that_forks_twice_ends_with_its_command"],
    ),
];

/// Runs all tests of `escape` in this setting and compares those that fail with the list.
fn every_test_ends_as_listed_in(setting: &str) -> Confinement {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/escape/settings/setting.py");
    let run = Command::new("python3")
        .args([script, setting])
        .arg(std::env::current_exe().unwrap())
        .args(["escape::", "reach::", "--skip", "escape::settings::", "--show-output"])
        .env(SETTING, setting)
        .env("YOI_SEQUENCES", "100")
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    let said = text.lines().find_map(|line| line.strip_prefix(HEADER));
    let said = said
        .unwrap_or_else(|| panic!("no header: {text}\n{}", String::from_utf8_lossy(&run.stderr)));
    let header: Confinement = serde_json::from_str(said).unwrap();
    let failed: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("test escape::")?.strip_suffix(" ... FAILED"))
        .collect();
    let less = LESS.iter().map(|(words, _, tests)| (words, tests));
    let listed = OPEN.iter().map(|(words, tests)| (words, tests)).chain(less);
    let listed = listed.filter(|(words, _)| header.open.iter().any(|open| open == *words));
    let expected: BTreeSet<&str> = listed.flat_map(|(_, tests)| tests.iter().copied()).collect();
    let not_listed: Vec<_> = failed.difference(&expected).collect();
    assert!(not_listed.is_empty(), "{setting}: failed and not listed: {not_listed:?}\n{text}");
    let passed: Vec<_> = expected.difference(&failed).collect();
    assert!(passed.is_empty(), "{setting}: listed and passed: {passed:?}; {}", header.text());
    header
}

#[test]
fn without_user_namespaces_every_test_ends_as_the_header_says() {
    let header = every_test_ends_as_listed_in("no user namespaces");
    assert!(header.no_world.is_some(), "{header:?}");
}

/// Namespaces alone hide everything that was not granted, so no test fails without Landlock.
#[test]
fn without_landlock_every_test_ends_as_the_header_says() {
    let header = every_test_ends_as_listed_in("no Landlock");
    assert_eq!(header.abi, 0);
}

#[test]
fn in_a_container_every_test_ends_as_the_header_says() {
    every_test_ends_as_listed_in("container");
}

#[test]
fn in_a_container_that_forbids_namespaces_every_test_ends_as_the_header_says() {
    let header = every_test_ends_as_listed_in("container that forbids namespaces");
    assert!(header.no_world.is_some(), "{header:?}");
}

#[test]
fn the_docs_list_what_is_open_in_a_setting() {
    let docs = include_str!("../../../docs/confinement.md");
    for (way, open) in ways::OPEN {
        assert!(docs.contains(open), "{way}: {open}");
    }
    let list = docs.split("this is open then:").nth(1).unwrap().trim_start();
    let listed: BTreeSet<&str> =
        list.lines().map_while(|line| line.strip_prefix("* ")).map(str::trim).collect();
    assert_eq!(listed, BTreeSet::from(WITHOUT_NAMESPACES));
    let shown: BTreeSet<&str> = ways::OPEN.iter().map(|(_, open)| *open).collect();
    assert_eq!(listed.difference(&shown).count(), 0, "no way shows what the docs list");
}
