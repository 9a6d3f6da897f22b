//! Every key of `config.toml` changes something: each row shows what, on a host of its own. A key
//! without a row fails the test.

use crate::config::dirs::Env;
use crate::config::settings::Settings;
use crate::host::IdleExit;
use crate::host::pod::start::{command_env, command_limits, command_time, limits, retries};
use crate::host::supervisor::patience;
use crate::host::tests::Bench;
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Method};
use std::collections::BTreeSet;
use std::path::Path;

/// The observation that shows the effect of a key.
#[derive(Clone, Copy, Debug)]
enum Effect {
    /// In the stored configuration of a new Pod.
    NewPod,
    /// A new Pod with this profile.
    NewPodOf(&'static str),
    /// In whether a child and a grandchild may be spawned.
    Spawn,
    /// In what providers are given.
    Timeouts,
    /// In the limits of a run, of its commands and of a host without work.
    Run,
    /// In the rules that are listed.
    Policy,
    /// In this test, which is named behind its file.
    Test(&'static str, &'static str),
}

/// The test of the headers.
const HEADERS: &str =
    "headers_of_the_settings_go_with_each_request_and_their_values_are_shown_nowhere";
/// The test of interrupted runs.
const RESUME: &str =
    "a_parent_reads_what_the_end_of_the_host_did_to_its_children_as_long_as_it_is_true";
/// The test of calls without a screen.
const SILENT: &str = "a_terminal_that_is_to_be_silent_is_given_titles_only";
const ABSENT: &str = "an_absent_person_is_called_by_command_and_address";
/// The test of turns.
const CIRCLES: &str =
    "a_run_in_circles_is_shown_so_from_the_number_of_the_settings_on_until_it_ends";
const BUSY: &str = "a_run_waits_for_its_turn_where_the_settings_say_so_and_esc_ends_the_wait";
/// The test of the effort.
/// The tests of credentials.
const AGENT: &str = "the_ssh_agent_is_reached_by_the_command_with_its_credential_and_by_no_other";
const CREDENTIAL: &str =
    "a_credential_is_seen_by_the_command_that_was_allowed_to_and_its_value_is_written_nowhere";
const SETUP: &str = "a_setup_command_that_fails_is_reported_and_the_pod_works_all_the_same";
const SUMMARY: &str = "the_model_of_the_settings_summarises_and_the_pods_own_where_that_fails";
const EFFORT: &str =
    "the_effort_of_the_settings_and_of_a_pod_count_from_the_next_request_on_also_in_a_run";
/// The beginning of most rows about models.
const FAKE: &str = "provider.fake.wire = 'chat'\nprovider.fake.base_url = 'http://127.0.0.1:9/v1'\n\
    provider.fake.key_env = []\nmodel = 'fake/m'\n";
const BARE: &str = "provider.fake.wire = 'chat'\nprovider.fake.base_url = 'http://127.0.0.1:9'\n\
    provider.fake.key_env = []\nmodel = 'fake/m'\n";
const KEYLESS: &str = "provider.fake.wire = 'chat'\nmodel = 'fake/m'\n\
    provider.fake.base_url = 'http://127.0.0.1:9/v1'\n";
const PRICE: &str = "provider.fake.wire = 'chat'\nprovider.fake.key_env = []\nmodel = 'fake/m'\n\
    provider.fake.base_url = 'http://127.0.0.1:9/v1'\n\
    models.'fake/m'.price.input = 1\nmodels.'fake/m'.price.output = 1\n";
const WIRE: &str = "provider.fake.base_url = 'http://127.0.0.1:9/v1'\nprovider.fake.key_env = []\n\
    model = 'fake/m'\n";
const BASE: &str = "provider.fake.wire = 'chat'\nprovider.fake.key_env = []\nmodel = 'fake/m'\n";
const DEFAULT: &str = "provider.fake.wire = 'chat'\nmodel = 'fake/'\n\
    provider.fake.base_url = 'http://127.0.0.1:9/v1'\nprovider.fake.key_env = []\n";

const SETTINGS: &str = "src/config/settings/tests.rs";
const WITHOUT_EFFECT: &str = "a_key_without_effect_is_accepted_and_named";

/// A key, the rest of the file, the line with the key, and the observation of its effect. `*` in a
/// key is a name that the user chooses.
const ROWS: &[(&str, &str, &str, Effect)] = &[
    ("model", "", "model = 'rehearsal:/x.toml'", Effect::NewPod),
    ("effort", "", "", Effect::Test("src/host/tests/effort.rs", EFFORT)),
    ("instructions", "", "", Effect::Test("src/host/tests/instructions.rs", INSTRUCTIONS)),
    ("limits.max_turns", "", "limits.max_turns = 7", Effect::NewPod),
    ("limits.depth", "", "limits.depth = 1", Effect::Spawn),
    ("limits.live_children", "", "limits.live_children = 1", Effect::Spawn),
    ("limits.mailbox", "", "", Effect::Test("src/host/tests/records.rs", MAILBOX)),
    ("limits.reply_mib", "", "limits.reply_mib = 1", Effect::Run),
    ("limits.block_mib", "", "limits.block_mib = 1", Effect::Run),
    ("limits.argument_mib", "", "limits.argument_mib = 1", Effect::Run),
    ("limits.processes", "", "limits.processes = 500", Effect::Run),
    ("limits.memory_mib", "", "limits.memory_mib = 500", Effect::Run),
    ("limits.open_files", "", "limits.open_files = 500", Effect::Run),
    ("limits.file_mib", "", "limits.file_mib = 500", Effect::Run),
    ("limits.tmp_mib", "", "limits.tmp_mib = 500", Effect::Run),
    ("limits.cache_mib", "", "limits.cache_mib = 500", Effect::Run),
    ("limits.home_mib", "", "limits.home_mib = 500", Effect::Run),
    ("limits.shm_mib", "", "limits.shm_mib = 500", Effect::Run),
    ("host.resume", "", "", Effect::Test("src/host/tests/family.rs", RESUME)),
    ("scope.when_busy", "", "", Effect::Test("src/host/tests/family.rs", BUSY)),
    ("watch.same_failures", "", "", Effect::Test("src/host/tests/work.rs", CIRCLES)),
    ("watch.same_requests", "", "", Effect::Test("src/host/tests/work.rs", CIRCLES)),
    ("mesh.socket", "", "", Effect::Test("tests/program/mesh.rs", MESH)),
    ("mesh.join", "", "", Effect::Test("src/host/tests/mesh.rs", JOIN)),
    ("mesh.wake", "", "", Effect::Test("src/host/tests/mesh.rs", WAKE)),
    ("mesh.message_kib", "", "", Effect::Test("src/host/tests/mesh.rs", LIMITS)),
    ("mesh.waiting", "", "", Effect::Test("src/host/tests/mesh.rs", LIMITS)),
    ("mesh.per_minute", "", "", Effect::Test("src/host/tests/mesh.rs", LIMITS)),
    ("timeouts.connect_s", "", "timeouts.connect_s = 1", Effect::Timeouts),
    ("timeouts.first_event_s", "", "timeouts.first_event_s = 1", Effect::Timeouts),
    ("timeouts.idle_s", "", "timeouts.idle_s = 1", Effect::Timeouts),
    ("retry.minutes", "", "retry.minutes = 0", Effect::Run),
    ("host.idle_exit_min", "", "host.idle_exit_min = 0", Effect::Run),
    ("shell.pass", "", "shell.pass = ['GITHUB_TOKEN']", Effect::Run),
    ("credential.*.env", "", "", Effect::Test("tests/program/credentials.rs", CREDENTIAL)),
    ("credential.*.ssh_agent", "", "", Effect::Test("tests/tools/credentials.rs", AGENT)),
    ("shell.timeout_s", "", "shell.timeout_s = 1", Effect::Run),
    ("shell.max_timeout_s", "", "shell.max_timeout_s = 1", Effect::Run),
    ("worktree.setup", "", "", Effect::Test("tests/program/worktrees.rs", SETUP)),
    ("compaction.model", "", "", Effect::Test("src/host/tests/fallbacks.rs", SUMMARY)),
    ("compaction.threshold_ratio", "", "compaction.threshold_ratio = 0.5", Effect::Run),
    ("compaction.keep_tokens", "", "compaction.keep_tokens = 1", Effect::Run),
    ("compaction.prune_protect", "", "", Effect::Test(SETTINGS, WITHOUT_EFFECT)),
    ("compaction.prune_min", "", "", Effect::Test(SETTINGS, WITHOUT_EFFECT)),
    ("permissions.default", "", "permissions.default = 'ask'", Effect::Policy),
    (
        "permissions.rule.tool",
        "",
        "permissions.rule = [{ tool = 'Read', action = 'deny' }]",
        Effect::Policy,
    ),
    (
        "permissions.rule.pattern",
        "permissions.rule = [{ action = 'deny' }]",
        "permissions.rule = [{ pattern = 'x', action = 'deny' }]",
        Effect::Policy,
    ),
    (
        "permissions.rule.action",
        "permissions.rule = [{ action = 'deny' }]",
        "permissions.rule = [{ action = 'ask' }]",
        Effect::Policy,
    ),
    ("notify.terminal", "", "", Effect::Test("ui/screen/app/tests/outside.rs", SILENT)),
    ("notify.command", "", "", Effect::Test("src/host/tests/absent.rs", ABSENT)),
    ("notify.url", "", "", Effect::Test("src/host/tests/absent.rs", ABSENT)),
    ("notify.text", "", "", Effect::Test("src/host/tests/absent.rs", ABSENT)),
    ("ui.theme", "", "", Effect::Test("ui/screen/run/open.rs", THEME)),
    ("ui.keymap", "", "", Effect::Test("ui/cli/screen.rs", KEYMAP)),
    ("provider.*.wire", WIRE, "provider.fake.wire = 'chat'", Effect::NewPod),
    ("provider.*.base_url", BASE, "provider.fake.base_url = 'http://127.0.0.1:9'", Effect::NewPod),
    ("provider.*.version", BARE, "provider.fake.version = 'v7'", Effect::NewPod),
    ("provider.*.key_env", KEYLESS, "provider.fake.key_env = ['HOME']", Effect::NewPod),
    ("provider.*.key_command", FAKE, "provider.fake.key_command = ['true']", Effect::NewPod),
    (
        "provider.*.headers",
        FAKE,
        "provider.fake.headers.X-Team = 'a'",
        Effect::Test("tests/program/connecting.rs", HEADERS),
    ),
    ("provider.*.base_url_env", FAKE, "provider.fake.base_url_env = ['FAKE_URL']", Effect::NewPod),
    ("provider.*.default_model", DEFAULT, "provider.fake.default_model = 'm'", Effect::NewPod),
    ("provider.*.window", FAKE, "provider.fake.window = 5", Effect::NewPod),
    ("provider.*.max_output", FAKE, "provider.fake.max_output = 5", Effect::NewPod),
    ("provider.*.images", FAKE, "provider.fake.images = true", Effect::NewPod),
    ("provider.*.reasoning", FAKE, "provider.fake.reasoning = 'effort'", Effect::NewPod),
    ("provider.*.dialect", FAKE, "provider.fake.dialect = 'mistral'", Effect::NewPod),
    ("models.*.window", FAKE, "models.'fake/m'.window = 5", Effect::NewPod),
    ("models.*.max_output", FAKE, "models.'fake/m'.max_output = 5", Effect::NewPod),
    ("models.*.images", FAKE, "models.'fake/m'.images = true", Effect::NewPod),
    (
        "models.*.deprecated",
        "",
        "",
        Effect::Test("ui/wording/model.rs", "the_facts_of_a_model_are_one_line"),
    ),
    ("models.*.reasoning", FAKE, "models.'fake/m'.reasoning = 'effort'", Effect::NewPod),
    (
        "models.*.price.input",
        FAKE,
        "models.'fake/m'.price = { input = 5, output = 1 }",
        Effect::NewPod,
    ),
    (
        "models.*.price.output",
        FAKE,
        "models.'fake/m'.price = { input = 1, output = 5 }",
        Effect::NewPod,
    ),
    ("models.*.price.cache_read", PRICE, "models.'fake/m'.price.cache_read = 5", Effect::NewPod),
    ("models.*.price.cache_write", PRICE, "models.'fake/m'.price.cache_write = 5", Effect::NewPod),
    (
        "models.*.price.long_context.above",
        FAKE,
        "models.'fake/m'.price = { input = 1, output = 1, long_context = { above = 5, input = 2, output = 2 } }",
        Effect::NewPod,
    ),
    (
        "models.*.price.long_context.input",
        FAKE,
        "models.'fake/m'.price = { input = 1, output = 1, long_context = { above = 5, input = 2, output = 2 } }",
        Effect::NewPod,
    ),
    (
        "models.*.price.long_context.output",
        FAKE,
        "models.'fake/m'.price = { input = 1, output = 1, long_context = { above = 5, input = 2, output = 2 } }",
        Effect::NewPod,
    ),
    (
        "models.*.price.long_context.cache_read",
        FAKE,
        "models.'fake/m'.price = { input = 1, output = 1, long_context = { above = 5, input = 2, output = 2, cache_read = 5 } }",
        Effect::NewPod,
    ),
    (
        "models.*.price.long_context.cache_write",
        FAKE,
        "models.'fake/m'.price = { input = 1, output = 1, long_context = { above = 5, input = 2, output = 2, cache_write = 5 } }",
        Effect::NewPod,
    ),
    ("profile.*.model", "", "profile.p.model = 'rehearsal:/x.toml'", Effect::NewPodOf("p")),
    ("profile.*.effort", "", "profile.p.effort = 'high'", Effect::NewPodOf("p")),
    ("profile.*.max_turns", "", "profile.p.max_turns = 7", Effect::NewPodOf("p")),
    ("profile.*.instruction", "", "profile.p.instruction = 'Sing.'", Effect::NewPodOf("p")),
    ("mcp.*.command", "", "", Effect::Test(MCP, MCP_USED)),
    ("mcp.*.args", "", "", Effect::Test(MCP, MCP_USED)),
    ("mcp.*.env", "", "", Effect::Test(MCP, MCP_REQUEST)),
    ("mcp.*.network", "", "", Effect::Test(MCP, MCP_REQUEST)),
    ("mcp.*.write", "", "", Effect::Test(MCP, MCP_WALLS)),
    ("mcp.*.read", "", "", Effect::Test(MCP, MCP_READ)),
    ("mcp.*.start_s", "", "", Effect::Test(MCP, MCP_GREETING)),
    ("mcp.*.timeout_s", "", "", Effect::Test(MCP, MCP_TIMEOUT)),
    ("mcp.*.url", "", "", Effect::Test(MCP, MCP_HTTP)),
    ("mcp.*.headers", "", "", Effect::Test(MCP, MCP_HTTP)),
    ("mcp.*.enabled", "", "", Effect::Test("src/config/mcp/tests.rs", MCP_MEANT)),
];
/// The tests of servers as a whole program.
const MCP: &str = "tests/program/mcp.rs";
const MCP_USED: &str = "a_pod_uses_the_tools_of_a_server_that_policy_lets_start";
const MCP_WALLS: &str =
    "a_server_has_the_walls_of_a_command_and_only_reads_the_scope_unless_it_may_write";
const MCP_READ: &str = "a_server_outside_of_the_scope_starts_where_the_settings_let_it_read";
const MCP_GREETING: &str = "a_server_that_never_answers_the_greeting_is_given_up";
const MCP_TIMEOUT: &str = "a_call_that_is_never_answered_ends_after_its_time";
const MCP_MEANT: &str = "a_server_that_cannot_be_meant_is_said_with_what_to_write";
const MCP_REQUEST: &str =
    "a_server_that_policy_does_not_let_start_is_asked_about_with_all_that_it_gets";
const MCP_HTTP: &str =
    "a_server_over_http_is_used_with_its_headers_and_each_call_waits_for_an_approval_or_a_rule";
const INSTRUCTIONS: &str =
    "files_of_the_person_are_in_the_prompt_and_those_of_a_directory_come_with_its_first_call";
const MAILBOX: &str = "a_full_mailbox_refuses_with_the_limit_and_its_setting";
const MESH: &str = "a_member_keeps_the_wire_under_a_leader_of_another_program";
const JOIN: &str = "the_settings_say_which_pods_join_and_a_person_says_otherwise";
const WAKE: &str = "strangers_broadcasts_joins_and_leaves_wake_a_pod_as_the_settings_say";
const LIMITS: &str = "each_limit_denies_with_a_sentence";
const THEME: &str =
    "the_theme_is_that_of_the_command_line_else_the_chosen_one_else_that_of_the_settings";
const KEYMAP: &str = "the_settings_choose_the_keymap";

/// The keys that the settings have, as their types say: a probe with an unknown key is answered
/// with those that are known.
fn keys() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    descend("", &|inner| inner, &mut found);
    found
}

/// `around` makes the text of a file out of a table's inside.
fn descend(prefix: &str, around: &dyn Fn(String) -> String, found: &mut BTreeSet<String>) -> bool {
    let probe = around("no_such_key = 1".into());
    let Err(error) = toml::from_str::<Settings>(&probe) else { return false };
    let Some((_, known)) = error.message().split_once("unknown field `no_such_key`, expected")
    else {
        return false;
    };
    let known: Vec<String> = known.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    for key in known {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        let table = |inner: String| around(format!("{key} = {{ {inner} }}"));
        let named = |inner: String| around(format!("{key} = {{ x = {{ {inner} }} }}"));
        let list = |inner: String| around(format!("{key} = [{{ {inner} }}]"));
        let inside = descend(&name, &table, found)
            || descend(&format!("{name}.*"), &named, found)
            || descend(&name, &list, found);
        if !inside {
            found.insert(name);
        }
    }
    true
}

impl Effect {
    /// The observation with these settings.
    async fn seen(self, settings: &str) -> String {
        let bench = Bench::with_settings(settings).await;
        let shared = &bench.host.shared;
        match self {
            Self::NewPod => bench.configured(None).await,
            Self::NewPodOf(profile) => bench.configured(Some(profile)).await,
            Self::Spawn => bench.spawned().await,
            Self::Timeouts => format!("{:?}", shared.timeouts),
            Self::Run => {
                let settings = &shared.settings.last().settings;
                let env = Env::from([("GITHUB_TOKEN".to_owned(), "t".to_owned())]);
                let (time, most) = (command_time(settings), command_limits(settings));
                let commands = (time, most, command_env(settings, &env));
                let patience = patience(settings, IdleExit::BySettings);
                let retries = retries(settings);
                format!("{:?} {commands:?} {patience:?} {retries:?}", limits(settings, 1))
            }
            Self::Policy => format!("{:?}", bench.client.call(None, Method::ListPolicy).await),
            Self::Test(..) => unreachable!("such a row names its test"),
        }
    }
}

impl Bench {
    /// The stored configuration of a new Pod, or why there is none.
    async fn configured(&self, profile: Option<&str>) -> String {
        let home = self.root.join("home").display().to_string();
        let vars = [("HOME", home.as_str()), ("FAKE_URL", "http://127.0.0.1:8/v1")];
        let env: Env = vars.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let profile = profile.map(str::to_owned);
        let new = NewPod { cwd: self.root.join("w"), env, profile, ..NewPod::default() };
        match self.client.call(None, Method::New(new)).await {
            Ok(Event::Created { info }) => {
                let rows = self.host.shared.store.pods().await.unwrap();
                let row = rows.into_iter().flatten().find(|row| row.name == info.name);
                row.expect("a created Pod is stored").config.to_string()
            }
            other => format!("{other:?}"),
        }
    }

    async fn spawned(&self) -> String {
        std::fs::write(self.root.join("script.toml"), "[[when]]\nany = true\ntext = \"x\"\n")
            .unwrap();
        self.root_pod("p", "w").await;
        let mut refused = Vec::new();
        for (parent, pod, dir) in [("p", "c", "a"), ("c", "g", "a/a"), ("p", "d", "b")] {
            let spawned = self.spawn(parent, pod, dir).await;
            refused.extend(spawned.err().map(|refusal| format!("{pod}: {refusal}")));
        }
        refused.join("\n")
    }
}

#[test]
fn every_key_of_the_settings_has_a_row() {
    let rows: Vec<String> = ROWS.iter().map(|row| row.0.to_owned()).collect();
    let listed: BTreeSet<String> = rows.iter().cloned().collect();
    assert_eq!(listed.len(), rows.len(), "a key has one row");
    assert_eq!(listed, keys());
}

#[tokio::test]
async fn every_key_of_the_settings_changes_something() {
    for (key, before, line, effect) in ROWS {
        if let Effect::Test(file, name) = effect {
            let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
            assert!(text.unwrap().contains(&format!("fn {name}(")), "{key}: {file} has no {name}");
            continue;
        }
        // The file can contain a list only once, so the line with the key replaces it.
        let replaced = before.starts_with("permissions.rule");
        let after = if replaced { (*line).to_owned() } else { format!("{before}{line}\n") };
        let (_, diagnostics) = Settings::read(Path::new("config.toml"), &after);
        assert!(diagnostics.is_empty(), "{key}: {diagnostics:?}");
        let (without, with) = (effect.seen(before).await, effect.seen(&after).await);
        assert_ne!(without, with, "{key} changes nothing");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_at_the_start_lets_nothing_run() {
    let (bench, pod) = Bench::scripted().await;
    let broken = "[[permissions.rule]]\naction = 'deny'\ntool = 'Bash'\nfrob = [\n";
    let wrong = "model = 'a/b'\n[[permissions.rule]]\ntool = 'Bash'\naction = 'dney'\n";
    let bench = bench
        .damaged_while_away(|root| {
            std::fs::create_dir_all(root.join("home/config")).unwrap();
            std::fs::write(root.join("home/config/config.toml"), wrong).unwrap();
        })
        .await;
    let refused = bench.call(&pod, Method::say("hello")).await.unwrap_err().message;
    assert!(refused.contains("config.toml:4:10: `permissions.rule.action` is 'dney'"), "{refused}");
    assert!(refused.contains("the rules of this file are not known"), "{refused}");
    let bench = bench
        .damaged_while_away(|root| {
            std::fs::create_dir_all(root.join("home/config")).unwrap();
            std::fs::write(root.join("home/config/config.toml"), broken).unwrap();
        })
        .await;
    let refused = bench.call(&pod, Method::say("hello")).await.unwrap_err().message;
    assert!(refused.contains("config.toml:4:") && refused.contains("mended"), "{refused}");
    bench.write_settings("");
    bench.call(&pod, Method::say("hello")).await.unwrap();
}

#[tokio::test]
async fn what_commands_get_is_explained_by_the_settings_as_they_are_now() {
    let (bench, pod) = Bench::scripted().await;
    let explained = async || {
        let Ok(Event::CommandSheet(sheet)) = bench.call(&pod, Method::ExplainCommand).await else {
            panic!("no sheet")
        };
        sheet.limits.join("\n")
    };
    bench.write_settings("limits.open_files = 512\nshell.timeout_s = 77\n");
    let limits = explained().await;
    assert!(limits.contains("512") && limits.contains("77 s"), "{limits}");
    bench.write_settings("");
    let limits = explained().await;
    assert!(!limits.contains("512") && !limits.contains("77 s"), "{limits}");
}

#[tokio::test]
async fn every_screen_learns_of_a_mistake_in_the_settings_and_when_it_is_corrected() {
    let (mut bench, pod) = Bench::scripted().await;
    let is_notice = |event: &Event| matches!(event, Event::HostNotices { .. });
    let noticed = async |bench: &mut Bench| {
        let Event::HostNotices { mistakes, .. } = bench.next(is_notice).await else {
            unreachable!()
        };
        Vec::from_iter(mistakes.into_iter().map(|mistake| mistake.text))
    };
    bench.write_settings("modle = 'x'\nlimits.depth = 'deep'\n");
    bench.call(&pod, Method::say("hello")).await.unwrap();
    let notices = noticed(&mut bench).await;
    assert!(notices.iter().any(|notice| notice.contains("config.toml:1:1")), "{notices:?}");
    assert!(notices.iter().any(|notice| notice.contains("`limits.depth`")), "{notices:?}");
    let Ok(Event::CommandSheet(sheet)) = bench.call(&pod, Method::ExplainCommand).await else {
        panic!("no sheet")
    };
    assert_eq!(sheet.mistakes, notices);
    // A screen that comes now has them with the family, and one that comes after the correction has none.
    let (client, mut events) = bench.host.client().await.unwrap();
    client.call(None, Method::Watch).await.unwrap();
    let first = events.recv().await.unwrap().event;
    assert!(matches!(first, Event::HostNotices { mistakes, .. } if mistakes.len() == 2));
    bench.write_settings("");
    let (client, mut events) = bench.host.client().await.unwrap();
    client.call(None, Method::Watch).await.unwrap();
    let first = events.recv().await.unwrap().event;
    assert!(matches!(first, Event::Family { .. }), "{first:?}");
    assert_eq!(noticed(&mut bench).await, [""; 0]);
}

#[tokio::test]
async fn a_request_uses_the_settings_as_they_were_corrected_just_before() {
    let (bench, _) = Bench::scripted().await;
    let rules = async || {
        let Ok(Event::Policy { rules, .. }) = bench.client.call(None, Method::ListPolicy).await
        else {
            panic!("no policy")
        };
        rules.into_iter().filter(|rule| rule.pattern.pattern == "mine *").count()
    };
    let rule = "[[permissions.rule]]\ntool = 'Bash'\npattern = 'mine *'\naction = 'deny'\n";
    bench.write_settings(&format!("modle = 1\n{rule}"));
    assert_eq!(rules().await, 0, "of a wrong file nothing is taken");
    bench.write_settings(rule);
    assert_eq!(rules().await, 1);
    bench.write_settings("");
    assert_eq!(rules().await, 0);
}
