//! Valid settings, and the handling of mistakes in them.

use super::*;
use crate::protocol::Action;

fn read(text: &str) -> (Settings, Vec<String>) {
    let (settings, diagnostics) = Settings::read(Path::new("/c/config.toml"), text);
    (settings, diagnostics.iter().map(ToString::to_string).collect())
}

#[test]
fn without_a_file_the_documented_defaults_hold() {
    let dir = tempfile::tempdir().unwrap();
    let (settings, diagnostics) = Settings::load(dir.path());
    assert_eq!(diagnostics, []);
    assert_eq!(settings.limits.max_turns.get(), 200);
    assert_eq!(settings.timeouts.connect(), Duration::from_secs(10));
    assert_eq!(settings.timeouts.first_event(), Duration::from_secs(300));
    assert_eq!(settings.timeouts.idle(), Duration::from_secs(120));
    assert_eq!(settings.host.idle_exit(), Some(Duration::from_secs(600)));
    assert!((settings.compaction.threshold_ratio.get() - 0.85).abs() < 1e-9);
}

#[test]
fn every_section_is_read() {
    let (settings, diagnostics) = read(
        r#"
        model = "openai/"
        [limits]
        max_turns = 7
        [timeouts]
        idle_s = 5
        [host]
        idle_exit_min = 0
        [shell]
        pass = ["GITHUB_TOKEN"]
        [compaction]
        threshold_ratio = 0.5
        [ui]
        theme = "day"
        [provider.shed]
        wire = "openai_chat"
        [models."shed/a"]
        price = { input = 1, output = 2 }
        "#,
    );
    assert_eq!(diagnostics, [""; 0]);
    assert_eq!(settings.model.as_ref().and_then(Names::first), Some("openai/"));
    assert_eq!(settings.limits.max_turns.get(), 7);
    assert_eq!(settings.timeouts.idle(), Duration::from_secs(5));
    assert_eq!(settings.host.idle_exit(), None);
    assert_eq!(settings.shell.pass, ["GITHUB_TOKEN"]);
    assert_eq!(settings.ui.theme.as_deref(), Some("day"));
    assert!((settings.models["shed/a"].price.unwrap().output - 2.0).abs() < 1e-9);
}

#[test]
fn each_mistake_is_named_by_its_place_and_costs_only_its_own_key() {
    let (settings, diagnostics) = read(concat!(
        "model = 7\n",
        "[limits]\n",
        "max_turns = 0\n",
        "[timeouts]\n",
        "idle_s = 5\n",
        "conect_s = 3\n",
        "[provider.shed]\n",
        "wire = \"telegraph\"\n",
        "base_url = \"http://shed\"\n",
        "[compaction]\n",
        "threshold_ratio = 3.0\n",
    ));
    for place in [":1:9: ", ":3:13: ", ":6:1: ", ":8:8: ", ":11:19: "] {
        let at = format!("/c/config.toml{place}");
        assert!(diagnostics.iter().any(|c| c.starts_with(&at)), "{at} not in {diagnostics:#?}");
    }
    assert_eq!(diagnostics.len(), 5);
    assert!(diagnostics.iter().any(|c| c.contains("conect_s") && c.contains("connect_s")));
    assert_eq!(settings.model, None);
    assert_eq!(settings.limits, Limits::default());
    assert_eq!(settings.timeouts.idle(), Duration::from_secs(5));
    assert_eq!(settings.provider["shed"].base_url.as_deref(), Some("http://shed"));
}

#[test]
fn while_a_rule_cannot_be_used_the_rules_are_not_known() {
    for (text, expected) in [
        (
            "tool = \"Bash\"\naction = \"dney\"",
            ":5:10: `permissions.rule.action` is \"dney\", but must be one of `allow`, `ask`, `deny`",
        ),
        (
            "tool = \"Bsh\"\naction = \"deny\"",
            ":4:8: `permissions.rule.tool`: no tool is named `Bsh`",
        ),
        (
            "patern = \"x\"\naction = \"deny\"",
            ":4:1: unknown field `patern`: did you mean `pattern`?",
        ),
        ("tool = 3\naction = \"deny\"", ":4:8: `permissions.rule.tool` is 3, but must be a text"),
        ("tool = \"Bash\"", ":3:1: `permissions.rule`: missing field `action`"),
    ] {
        let file = format!("model = \"a/b\"\nlimits.depth = 2\n[[permissions.rule]]\n{text}\n");
        let (settings, said) = read(&file);
        let [one] = &said[..] else { panic!("{text}: {said:#?}") };
        assert!(one.starts_with(&format!("/c/config.toml{expected}")), "{text}: {one}");
        assert_eq!(settings.unread, said, "{text}");
        assert_eq!(settings.model.as_ref().and_then(Names::first), Some("a/b"), "{text}");
    }
    for text in [
        "[[permissions.rules]]\naction = \"deny\"",
        "[[permission.rule]]\naction = \"deny\"",
        "[[Permissions.rule]]\naction = \"deny\"",
        "[[rule]]\naction = \"deny\"",
        "[permissions.rule]\naction = \"deny\"",
        "[permissions]\ndefault = \"aks\"",
        "permissions = 3",
    ] {
        let (settings, said) = read(text);
        assert_eq!(said.len(), 1, "{text}: {said:#?}");
        assert_eq!(settings.unread, said, "{text}");
    }
    let (settings, said) =
        read("modle = \"a/b\"\nlimits.depth = 0\n[profil.quick]\nmodel = \"a/b\"");
    assert_eq!((said.len(), settings.unread.len()), (3, 0), "no rule is meant: {said:#?}");
    assert!(said[1].ends_with("unknown field `modle`: did you mean `model`?"), "{said:#?}");
}

#[test]
fn a_mistake_in_one_rule_of_policy_costs_that_rule() {
    let (settings, diagnostics) = read(concat!(
        "[permissions]\n",
        "default = \"ask\"\n",
        "[[permissions.rule]]\n",
        "tool = \"Bash\"\n",
        "pattern = \"git push*\"\n",
        "action = \"deny\"\n",
        "[[permissions.rule]]\n",
        "tool = \"Bash\"\n",
        "action = \"perhaps\"\n",
        "[[permissions.rule]]\n",
        "action = \"ask\"\n",
    ));
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    assert!(diagnostics[0].starts_with("/c/config.toml:9:10: "), "{diagnostics:?}");
    let rules = &settings.permissions.rule;
    assert_eq!(settings.permissions.default, Some(Action::Ask));
    assert_eq!(rules.iter().map(|r| r.action).collect::<Vec<_>>(), [Action::Deny, Action::Ask]);
    assert_eq!((rules[1].tool.as_str(), rules[1].pattern.as_str()), ("*", "*"));
}

#[test]
fn a_text_that_is_no_toml_gives_all_defaults_and_one_diagnostic() {
    let (settings, diagnostics) = read("model = \"a/b\"\nlimits = {\n[x");
    assert_eq!(settings.unread, diagnostics, "its rules are not known");
    assert_eq!(Settings { unread: Vec::new(), ..settings }, Settings::default());
    assert_eq!(diagnostics.len(), 1);
    assert!(diagnostics[0].starts_with("/c/config.toml:"), "{diagnostics:?}");
}

#[test]
fn a_key_written_into_the_settings_is_refused_without_being_repeated() {
    let (_, diagnostics) = read("[provider.openai]\napi_key = \"sk-secret\"\n");
    assert_eq!(diagnostics.len(), 1);
    assert!(!diagnostics[0].contains("sk-secret"), "{diagnostics:?}");
    for way in ["`yoi auth <provider>`", "`key_env`", "`provider.openai.api_key`"] {
        assert!(diagnostics[0].contains(way), "{diagnostics:?}");
    }
}

#[test]
fn a_key_that_belongs_elsewhere_is_said_with_its_right_place_first() {
    let (_, said) = read("[provider.mine]\nwire = \"openai_chat\"\nmodel = \"mine/a\"\n");
    let place = "/c/config.toml:3:1: `model` belongs at the top of the file, before the first [table]: \
                 unknown field `model`";
    assert!(said[0].starts_with(place), "{said:?}");
    let (_, said) = read("theme = \"day\"\n");
    assert!(said[0].contains(":1:1: `theme` belongs below [ui]: unknown field"), "{said:?}");
    let (settings, said) = read("[shell]\npass = [\"A\"]\nmemory_mib = 500\n");
    let moved =
        "/c/config.toml:3:1: `memory_mib` belongs below [limits]: unknown field `memory_mib`";
    assert!(said[0].starts_with(moved), "{said:?}");
    assert_eq!((settings.shell.pass, settings.limits.memory_mib), (vec!["A".to_owned()], 0));
}

#[test]
fn each_key_with_a_right_place_is_known_there() {
    for (key, table) in PLACES {
        let table = table.replace("<name>", "mine");
        let head = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
        // The value may not fit; the key does.
        let (_, said) = read(&format!("{head}{key} = \"x\"\n"));
        assert!(!said.iter().any(|one| one.contains("unknown field")), "{key}: {said:?}");
    }
}

#[test]
fn a_setting_that_would_not_count_is_a_mistake() {
    let (settings, diagnostics) = read(concat!(
        "[limits]\n",
        "processes = 300\n",
        "[[permissions.rule]]\n",
        "tool = \"Bsh\"\n",
        "action = \"deny\"\n",
        "[[permissions.rule]]\n",
        "tool = \"mcp__git__*\"\n",
        "action = \"deny\"\n",
    ));
    let [processes, tool] = &diagnostics[..] else { panic!("{diagnostics:#?}") };
    let said = "/c/config.toml:2:13: `limits.processes` is 300, but must be a whole number from 301 \
                to 4294967295; the default is 4096";
    assert_eq!(processes, said);
    let said = ":4:8: `permissions.rule.tool`: no tool is named `Bsh`; there are AskPerson, Bash, BashOutput";
    assert!(tool.contains(said), "{tool}");
    assert_eq!(settings.limits.processes.get(), 4096);
    let tools = settings.permissions.rule.iter().map(|rule| rule.tool.as_str());
    assert_eq!(tools.collect::<Vec<_>>(), ["mcp__git__*"]);
}

#[test]
fn a_value_that_cannot_be_used_is_said_with_its_key_and_the_expected_values() {
    for (text, expected) in [
        (
            "[limits]\nprocesses = -5",
            "`limits.processes` is -5, but must be a whole number from 301 to 4294967295; the \
             default is 4096",
        ),
        (
            "limits.reply_mib = \"big\"",
            "`limits.reply_mib` is \"big\", but must be a whole number from 1 to 1024, in MiB; the default \
             is 128 MiB",
        ),
        (
            "[limits]\nmax_turns = 0",
            "`limits.max_turns` is 0, but must be a whole number from 1 to 4294967295; the default is 200",
        ),
        (
            "[limits]\nmemory_mib = 5000000000",
            "`limits.memory_mib` is 5000000000, but must be a whole number from 0 to 4294967295, in MiB; \
             the default is 0 MiB",
        ),
        (
            "[timeouts]\nidle_s = -1",
            "`timeouts.idle_s` is -1, but must be a whole number of at least 1, in seconds",
        ),
        ("limits = 3", "`limits` is 3, but must be a table"),
        ("mcp.a.env = 'KEY=hunter2'", "`mcp.a.env` is of another kind, but must be a table"),
        (
            "mcp.a.headers.X = 4711",
            "`mcp.a.headers.X` is of another kind, but must be a text in quotes",
        ),
        ("model = 7", "`model` is 7, but must be a name or a list of names"),
        (
            "[compaction]\nthreshold_ratio = 3.0",
            "`compaction.threshold_ratio` is 3.0, but must be a number above 0 and at most 1",
        ),
        (
            "[mesh]\njoin = 3",
            "`mesh.join` is 3, but must be true, false or a list of names of Pods",
        ),
        (
            "[[permissions.rule]]\naction = \"perhaps\"",
            "`permissions.rule.action` is \"perhaps\", but must be one of `allow`, `ask`, `deny`",
        ),
    ] {
        let (_, said) = Settings::read(Path::new("c"), text);
        let [said] = &said[..] else { panic!("{said:?}") };
        assert_eq!(said.message, expected);
    }
}

#[test]
fn the_sentence_about_a_limit_names_its_default() {
    let head = "[limits]\n";
    let error = toml::from_str::<Settings>("limits.no_such_key = 1").unwrap_err();
    let (_, known) = error.message().split_once(", expected").unwrap();
    let keys: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    assert!(keys.len() > 10, "{known}");
    for key in keys {
        let number = Limits::default_of(key).expect(key);
        let (settings, said) = read(&format!("{head}{key} = {number}"));
        assert_eq!((settings.limits, said), (Limits::default(), Vec::new()), "{key}");
    }
}

#[test]
fn a_key_without_effect_is_accepted_and_named() {
    let text = "[compaction]\nkeep_tokens = 9\nprune_protect = 8000\nprune_min = 1\n";
    let (settings, said) = Settings::read(Path::new("config.toml"), text);
    assert_eq!(settings.compaction.keep_tokens, 9);
    let said: Vec<String> = said.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    for (line, key) in [(3, "prune_protect"), (4, "prune_min")] {
        let named = format!(":{line}:1: `compaction.{key}` has no effect any more");
        assert!(said.iter().any(|said| said.contains(&named)), "{said:?}");
    }
}
