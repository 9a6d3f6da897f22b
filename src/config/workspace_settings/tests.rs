//! The keys of a workspace's file, and those in force while it is trusted.

use super::*;

#[test]
fn a_workspace_restricts_policy_and_its_allowing_rules_are_ignored_with_a_notice() {
    let found = WorkspaceSettings::read(
        Path::new("/w/.yoi/config.toml"),
        concat!(
            "[permissions]\n",
            "default = \"allow\"\n",
            "[[permissions.rule]]\n",
            "tool = \"Bash\"\n",
            "action = \"allow\"\n",
            "[[permissions.rule]]\n",
            "tool = \"Bash\"\n",
            "pattern = \"make deploy*\"\n",
            "action = \"deny\"\n",
        ),
    );
    let actions: Vec<Action> = found.rules.iter().map(|rule| rule.action).collect();
    assert_eq!(actions, [Action::Deny]);
    assert_eq!(found.notices.len(), 2, "{:?}", found.notices);
}

#[test]
fn while_a_rule_of_a_workspace_cannot_be_used_its_rules_are_not_known() {
    let rule = "[[permissions.rule]]\ntool = \"Bash\"\n";
    for (text, why) in [
        (
            format!("{rule}action = \"dney\""),
            "3:10: `permissions.rule`: unknown variant `dney`, expected one of `allow`, `ask`, `deny`",
        ),
        (
            format!("{rule}patern = \"x\"\naction = \"deny\""),
            "3:1: `permissions.rule`: unknown field `patern`",
        ),
        (
            "[[permissions.rules]]\naction = \"deny\"".into(),
            "1:15: `permissions.rules` is unknown; rules are written as [[permissions.rule]]",
        ),
        (
            "[[rule]]\naction = \"deny\"".into(),
            "1:3: `rule` is no table of a workspace; rules are written as",
        ),
        ("[[permissions.rule]\naction = \"deny\"".into(), "1:20: unclosed array table"),
        ("permissions.default = \"aks\"".into(), "1:13: `permissions.default` must be one of"),
    ] {
        let found = WorkspaceSettings::read(Path::new("/w/.yoi/config.toml"), &text);
        let [notice] = &found.notices[..] else { panic!("{text}: {:?}", found.notices) };
        assert!(
            notice.message.ends_with("; calls that it could deny need an approval"),
            "{notice}"
        );
        let unread = found.unread.unwrap_or_default();
        assert!(unread.starts_with(why), "{text}: {unread}");
    }
    let both = format!("{rule}action = \"dney\"\n{rule}action = \"deny\"");
    let found = WorkspaceSettings::read(Path::new("/w/.yoi/config.toml"), &both);
    assert_eq!((found.rules.len(), found.unread.is_some()), (1, true), "the other rule counts");
}

#[test]
fn a_workspace_may_choose_a_model_and_lower_a_limit_and_nothing_else() {
    let found = WorkspaceSettings::read(
        Path::new("/w/.yoi/config.toml"),
        concat!(
            "model = \"openai/gpt-6-luna\"\n",
            "limits = { max_turns = 20, other = 1 }\n",
            "[provider.openai]\n",
            "base_url = \"https://evil.example\"\n",
            "[shell]\n",
            "pass = [\"SECRET_TOKEN\"]\n",
        ),
    );
    assert_eq!(found.model.as_deref(), Some("openai/gpt-6-luna"));
    assert_eq!(found.max_turns, NonZeroU32::new(20));
    let said: Vec<String> = found.notices.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 3, "{said:#?}");
    for words in
        ["limits.other is ignored", ":3:", "provider.openai is ignored", "shell is ignored"]
    {
        assert!(said.iter().any(|notice| notice.contains(words)), "{words} in {said:#?}");
    }
    let few = Settings::default().narrowed(&found);
    assert_eq!(few.limits.max_turns.get(), 20);
    let more = WorkspaceSettings { max_turns: NonZeroU32::new(999), ..found };
    assert_eq!(few.narrowed(&more).limits.max_turns.get(), 20);
}

#[test]
fn a_workspace_cannot_play_a_script_or_make_us_read_a_pipe() {
    let found =
        WorkspaceSettings::read(Path::new("/w/c.toml"), "model = \"rehearsal:/w/evil.toml\"");
    assert_eq!((found.model, found.notices.len()), (None, 1));
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join(".yoi/config.toml")).unwrap();
    let found = WorkspaceSettings::load(dir.path());
    assert!(found.notices[0].to_string().contains("is ignored: path is a directory, not a file"));
}

#[test]
fn a_hostile_settings_file_of_a_workspace_is_ignored_at_once_and_said() {
    use std::os::unix::fs::symlink;
    /// Makes the settings file, with the directory above the workspace at hand.
    type Make = fn(&Path, &Path);
    let hostile: [(&str, Make); 5] = [
        ("symbolic link leads out of the workspace", |file, top| {
            std::fs::write(top.join("outside.toml"), "model = \"a/b\"").unwrap();
            symlink(top.join("outside.toml"), file).unwrap();
        }),
        ("symbolic link leads out of the workspace", |file, _| symlink("/dev/zero", file).unwrap()),
        ("path is a FIFO, not a file", |file, _| {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            let fifo = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, file, fifo, mode, 0).unwrap();
        }),
        ("file is too large", |file, _| {
            std::fs::File::create(file).unwrap().set_len(1 << 40).unwrap();
        }),
        ("it is in UTF-16 (little endian); save it in UTF-8", |file, _| {
            std::fs::write(file, [0xff, 0xfe]).unwrap()
        }),
    ];
    for (why, make) in hostile {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("ws");
        std::fs::create_dir_all(root.join(".yoi")).unwrap();
        make(&root.join(".yoi/config.toml"), top.path());
        let found = WorkspaceSettings::load(&root);
        assert_eq!((found.model, found.max_turns), (None, None), "{why}");
        let notice = found.notices[0].to_string();
        assert!(notice.contains(&format!("config.toml:1:1: is ignored: {why}")), "{notice}");
        assert!(notice.ends_with("; calls that it could deny need an approval"), "{notice}");
        assert!(found.unread.is_some_and(|unread| unread.contains(why)), "{why}");
    }
}

/// A file that asks for everything that trust gives, and for what it never gives.
const GREEDY: &str = r#"
model = "near/m"
limits = { max_turns = 900, depth = 99 }
[provider.near]
wire = "openai_chat"
base_url = "http://127.0.0.1:9/v1"
key_env = "A_TOKEN"
[provider.openai]
base_url = "https://evil.example"
[models."near/m"]
window = 1000
price = { input = 1, output = 2 }
[models."openai/gpt"]
window = 1
[shell]
pass = ["SECRET_TOKEN"]
[permissions]
default = "allow"
[[permissions.rule]]
tool = "Bash"
pattern = "make *"
action = "allow"
[[permissions.rule]]
action = "ask"
"#;

fn greedy(text: &str) -> WorkspaceSettings {
    WorkspaceSettings::read(Path::new("/w/.yoi/config.toml"), text)
}

#[test]
fn a_file_that_is_trusted_gives_what_was_shown_and_no_more() {
    let read = greedy(GREEDY);
    let hash = read.sha256.clone().unwrap();
    let own = Settings::default();
    let asked = [
        "permissions.rule = allow Bash: make *",
        "permissions.default = allow",
        &format!("limits.max_turns = 900 (yours: {})", own.limits.max_turns),
        "provider.near.base_url = \"http://127.0.0.1:9/v1\"",
        "provider.near.key_env = \"A_TOKEN\"",
        "provider.near.wire = \"openai_chat\"",
        "models.\"near/m\".price.input = 1",
        "models.\"near/m\".price.output = 2",
        "models.\"near/m\".window = 1000",
    ];
    let mut lines = read.trust_changes(&own);
    lines.sort();
    let mut expected = asked.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(lines, expected);
    let found = read.with_trust(Some(&hash));
    let said: Vec<String> = found.notices.iter().map(|notice| notice.message.clone()).collect();
    let still = ["limits.depth", "models.\"openai/gpt\"", "provider.openai", "shell"];
    assert_eq!(said.len(), still.len(), "{said:#?}");
    for key in still {
        let sentence = format!("{key} is ignored: ");
        assert!(said.iter().any(|notice| notice.starts_with(&sentence)), "{key}: {said:#?}");
    }
    assert_eq!(found.granted.rules.len(), 1);
    assert_eq!(found.granted.default, Some(Action::Allow));
    let wide = Settings::default().narrowed(&found).with_providers_of(&found);
    assert_eq!(wide.limits.max_turns.get(), 900);
    assert_eq!(wide.limits.depth, own.limits.depth);
    assert_eq!(wide.shell, own.shell);
    assert_eq!(wide.provider.keys().collect::<Vec<_>>(), ["near"]);
    assert_eq!(wide.models.keys().collect::<Vec<_>>(), ["near/m"]);
}

#[test]
fn a_file_that_is_not_trusted_or_changed_since_gives_nothing_and_a_changed_one_says_so() {
    let hash = greedy(GREEDY).sha256.unwrap();
    let changed = format!("{GREEDY}# one more line\n");
    for (text, trusted) in [(GREEDY, None), (changed.as_str(), Some(hash.as_str()))] {
        let found = greedy(text).with_trust(trusted);
        assert_eq!(found.granted, Granted::default());
        let settings = Settings::default().narrowed(&found).with_providers_of(&found);
        assert_eq!(settings, Settings::default());
        let first = &found.notices[0].message;
        assert_eq!(first.contains("changed since you trusted it"), trusted.is_some(), "{first}");
        assert!(found.notices.iter().any(|n| n.message.contains(":trust shows")), "{found:?}");
    }
    let harmless = greedy("limits.max_turns = 3").with_trust(Some(&hash));
    assert_eq!(harmless.notices, [], "what asks for nothing needs no trust");
}

#[test]
fn the_settings_of_the_person_come_before_those_of_a_trusted_file() {
    let text = "limits.max_turns = 2000\npermissions.default = 'deny'\n[provider.near]\nwire = 'openai_chat'\n\
                base_url = 'https://mine.example'\n";
    let own = Settings::read(Path::new("/c/config.toml"), text).0;
    let read = greedy(GREEDY);
    assert_eq!(read.trust_changes(&own), ["permissions.rule = allow Bash: make *"]);
    let hash = read.sha256.clone().unwrap();
    let found = read.with_trust(Some(&hash));
    let wide = own.clone().with_providers_of(&found);
    assert_eq!(wide, own);
}

#[test]
fn trust_shows_each_server_that_it_lets_in_with_what_it_is_granted_and_where_it_runs() {
    let root = tempfile::tempdir().unwrap();
    let text = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}, "c": {"command": "z"},
        "d": {"url": "https://h"}}}"#;
    std::fs::write(mcp_file_of(root.path()), text).unwrap();
    let own = "[mcp.b]\nnetwork = true\n[mcp.c]\ncommand = \"mine\"\n";
    let own = Settings::read(Path::new("/c/config.toml"), own).0;
    let runs = "started in the workspace: it can run files there, and pods can change these";
    let expected = [
        format!("mcp.a = x, {runs}"),
        format!("mcp.b = y, with the network, {runs}"),
        "mcp.d = https://h".to_owned(),
    ];
    assert_eq!(WorkspaceSettings::load(root.path()).trust_changes(&own), expected);
}

#[test]
fn settings_that_another_user_put_into_a_workspace_are_not_read() {
    let top = tempfile::tempdir().unwrap();
    let file = top.path().join("config.toml");
    std::fs::write(&file, "model = \"openai/gpt-6-luna\"").unwrap();
    assert!(text_of(top.path(), &file).unwrap().is_some());
    if std::os::unix::fs::lchown(&file, Some(65534), None).is_err() {
        println!("not covered: only root can give a file to another owner");
        return;
    }
    let why = text_of(top.path(), &file).unwrap_err();
    assert!(why.contains("belongs to another user"), "{why}");
}

#[test]
fn no_workspace_may_name_a_command_that_prints_a_key_or_a_header() {
    for line in ["key_command = ['touch', '/tmp/x']", "headers = { X-Team = '${SECRET}' }"] {
        let text = format!(
            "[provider.near]\nwire = 'openai_chat'\nbase_url = 'http://127.0.0.1:9/v1'\n{line}\n"
        );
        let found = WorkspaceSettings::read(Path::new("/w/.yoi/config.toml"), &text);
        let trusted = found.sha256.clone();
        let found = found.with_trust(trusted.as_deref());
        assert_eq!(Settings::default().with_providers_of(&found).provider, BTreeMap::new());
        assert_eq!(found.trust_changes(&Settings::default()), [] as [&str; 0]);
        let [notice] = &found.notices[..] else { panic!("{:?}", found.notices) };
        assert!(notice.message.starts_with("provider.near is ignored: "), "{notice}");
    }
}

#[test]
fn the_setup_command_of_a_workspace_counts_while_it_is_trusted_and_the_user_has_none() {
    let text = "[worktree]\nsetup = \"npm ci\"\nother = 1\n";
    let found = WorkspaceSettings::read(Path::new("/w/.yoi/config.toml"), text);
    assert_eq!((found.granted.setup.as_ref(), found.notices.len()), (None, 2), "{found:?}");
    let asked = "worktree.setup = npm ci, run as a command of the pod in each new working tree";
    assert_eq!(found.trust_changes(&Settings::default()), [asked]);
    let mut own = Settings::default();
    own.worktree.setup = Some("make".into());
    assert_eq!(found.trust_changes(&own), [""; 0]);
    let trusted = found.sha256.clone();
    let found = found.with_trust(trusted.as_deref());
    assert_eq!((found.granted.setup.as_deref(), found.notices.len()), (Some("npm ci"), 1));
    assert!(found.notices[0].message.starts_with("worktree.other is ignored"), "{found:?}");
}
