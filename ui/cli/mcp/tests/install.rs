//! Changes of the settings of MCP clients.

use super::entry::{Edited, Entry};
use super::{Client, Shape};

fn entry() -> Entry {
    let env = vec![("XDG_RUNTIME_DIR".to_owned(), "/run/user/7".to_owned())];
    Entry { program: "/usr/bin/yoi".into(), args: vec!["mcp".into()], env }
}

fn changed(client: Client, text: &str, entry: Option<&Entry>) -> String {
    match client.edit(text, entry) {
        Ok(Edited::Changed(after)) => after,
        other => panic!("{other:?}"),
    }
}

const CLIENTS: [Client; 7] = [
    Client::Claude,
    Client::Codex,
    Client::Cursor,
    Client::Gemini,
    Client::Opencode,
    Client::Vscode,
    Client::Windsurf,
];

#[test]
fn each_client_gets_its_entry_in_its_own_form_and_a_second_time_changes_nothing() {
    let mut all = String::new();
    for client in CLIENTS {
        let after = changed(client, "", Some(&entry()));
        all.push_str(&format!("--- {client:?}\n{after}"));
        assert_eq!(client.edit(&after, Some(&entry())), Ok(Edited::Unchanged), "{client:?}");
        let removed = changed(client, &after, None);
        assert!(!removed.contains("yoi"), "{removed}");
        assert_eq!(client.edit(&removed, None), Ok(Edited::Unchanged), "{client:?}");
    }
    insta::assert_snapshot!("entries", all);
}

#[test]
fn comments_order_and_unknown_keys_of_json_stay() {
    let before = r#"{
  // mine
  "zebra": [1, 2.50],
  "mcpServers": {
    "github": { "command": "gh", "env": { "TOKEN": "x" } }, /* keep */
    "yoi": {
      "trust": true,
      "command": "/old/yoi", // moved
      "env": { "A": "b" },
      "args": ["mcp"]
    }
  },
  "apple": 1e3
}
"#;
    let after = changed(Client::Gemini, before, Some(&entry()));
    let mut expected = before.replace("/old/yoi", "/usr/bin/yoi");
    let env = "{\n        \"A\": \"b\",\n        \"XDG_RUNTIME_DIR\": \"/run/user/7\"\n      }";
    expected = expected.replace(r#"{ "A": "b" }"#, env);
    assert_eq!(after, expected);
}

#[test]
fn comments_order_and_unknown_keys_of_toml_stay() {
    let before = r#"# mine
model = "o9" # the best

[mcp_servers.github]
command = "gh"

[mcp_servers.yoi]
startup_timeout_sec = 20
command = "/old/yoi" # moved
args = [ "mcp" ]

[mcp_servers.yoi.env]
A = "b"

[zebra]
x = 1
"#;
    let after = changed(Client::Codex, before, Some(&entry()));
    let expected = before
        .replace("/old/yoi", "/usr/bin/yoi")
        .replace("A = \"b\"\n", "A = \"b\"\nXDG_RUNTIME_DIR = \"/run/user/7\"\n");
    assert_eq!(after, expected);
    let inline = "mcp_servers = { github = { command = \"gh\" } }\n";
    let after = changed(Client::Codex, inline, Some(&entry()));
    assert!(after.contains("github") && after.contains("yoi = {"), "{after}");
}

#[test]
fn settings_that_are_broken_or_of_another_form_are_left_alone_with_the_reason() {
    for (client, text) in [
        (Client::Claude, "{\"mcpServers\": {"),
        (Client::Claude, "[]"),
        (Client::Claude, "{\"mcpServers\": []}"),
        (Client::Claude, "{\"mcpServers\": {\"yoi\": 7}}"),
        (Client::Codex, "[mcp_servers"),
        (Client::Codex, "mcp_servers = 1"),
    ] {
        let why = client.edit(text, Some(&entry())).unwrap_err();
        assert!(!why.is_empty(), "{text}");
    }
    for (client, text, place) in [
        (Client::Codex, "[mcp_servers.git.env]\nKEY = \"hunter2\" x\n", "line 2: "),
        (Client::Codex, "model = 1\nKEY = hunter2\n", "line 2: "),
        (Client::Claude, "{\n \"KEY\": \"hunter2\" x}", "line 2 "),
    ] {
        let why = client.edit(text, Some(&entry())).unwrap_err();
        assert!(why.contains(place) && !why.contains("hunter2") && !why.contains('\n'), "{why}");
    }
}

#[test]
fn opencode_gets_the_arguments_in_its_command() {
    let fields = entry().written(Shape::Opencode);
    let command = &fields.iter().find(|(key, _)| *key == "command").unwrap().1;
    assert_eq!(*command, serde_json::json!(["/usr/bin/yoi", "mcp"]));
}

#[test]
fn what_is_left_without_yoi_is_what_was_there_before() {
    let words = |text: &str| text.split_whitespace().collect::<String>();
    for before in ["{\n  \"theme\": \"dark\"\n}\n", "{}\n"] {
        let after = changed(Client::Gemini, before, Some(&entry()));
        let removed = changed(Client::Gemini, &after, None);
        assert!(!removed.contains("mcpServers"), "{removed}");
        assert_eq!(words(&removed), words(before));
    }
    let others = r#"{"mcpServers": {"yoi": {}, "git": {}}}"#;
    assert_eq!(words(&changed(Client::Gemini, others, None)), r#"{"mcpServers":{"git":{}}}"#);
    let comment = "{\"mcpServers\": {\n  // mine\n  \"yoi\": {}\n}}";
    assert!(changed(Client::Gemini, comment, None).contains("// mine"));
}

#[test]
fn the_program_is_named_by_the_link_that_stays_when_a_newer_one_comes() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let (own, bin) = (root.join("yoi-1.0"), root.join("bin"));
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(&own, "").unwrap();
    let path = bin.display().to_string();
    let called =
        |called: &str| super::entry::lasting_path(&own, std::path::Path::new(called), &path);
    assert_eq!(called("yoi"), own, "nothing on PATH leads to it");
    std::os::unix::fs::symlink(&own, bin.join("yoi")).unwrap();
    assert_eq!(called("yoi"), bin.join("yoi"));
    assert_eq!(called(own.to_str().unwrap()), bin.join("yoi"), "also by its own path");
    std::fs::write(bin.join("yoi-1.0"), "another").unwrap();
    assert_eq!(called("yoi-1.0"), bin.join("yoi"));
}

#[test]
fn what_is_shown_of_a_change_is_the_entry_of_yoi_alone_also_in_a_file_of_one_line() {
    let shown = |client: Client, before: &str, after: &str| {
        let (place, old) = client.entry(before);
        let (_, new) = client.entry(after);
        (place, super::changed_lines(&old, &new).join("\n"))
    };
    let before = r#"{"history":["my words"],"oauthAccount":{"token":"s3cret"},"mcpServers":{"git":{"env":{"KEY":"s3cret"}}}}"#;
    let after = changed(Client::Claude, before, Some(&entry()));
    let expected = r#"+{
+  "args": [
+    "mcp"
+  ],
+  "command": "/usr/bin/yoi",
+  "env": {
+    "XDG_RUNTIME_DIR": "/run/user/7"
+  },
+  "type": "stdio"
+}"#;
    let place = || "mcpServers.yoi".to_owned();
    assert_eq!(shown(Client::Claude, before, &after), (place(), expected.to_owned()));
    let removed = changed(Client::Claude, &after, None);
    let (_, lines) = shown(Client::Claude, &after, &removed);
    assert_eq!(lines, expected.replace('+', "-"));
    let moved = after.replace("/usr/bin/yoi", "/old/yoi");
    let (_, lines) = shown(Client::Claude, &moved, &after);
    assert_eq!(lines, "-  \"command\": \"/old/yoi\",\n+  \"command\": \"/usr/bin/yoi\",");
    let before = "[mcp_servers.git.env]\nKEY = \"s3cret\"\n";
    let after = changed(Client::Codex, before, Some(&entry()));
    let (place, lines) = shown(Client::Codex, before, &after);
    assert_eq!(place, "mcp_servers.yoi");
    assert!(lines.contains("+command = \"/usr/bin/yoi\""), "{lines}");
    assert!(lines.contains("XDG_RUNTIME_DIR") && !lines.contains("s3cret"), "{lines}");
}
