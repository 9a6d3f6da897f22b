use super::*;

fn program(command: &str) -> McpServer {
    McpServer { command: Some(command.into()), ..McpServer::default() }
}

fn named(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

#[test]
fn a_server_of_the_user_counts_before_one_of_the_workspace_and_may_only_grant() {
    let grants = McpServer { network: Some(true), ..McpServer::default() };
    let user = BTreeMap::from([("a".to_owned(), program("mine")), ("b".to_owned(), grants)]);
    let theirs = ["a", "b", "c"].map(|name| (name.to_owned(), program("theirs")));
    let found = McpServers::of(&user, "config.toml", &theirs.into(), ".mcp.json");
    let said = found.servers.iter().map(|s| (s.reached_by(), s.network, s.file.as_str()));
    let expected = [
        ("mine".to_owned(), false, "config.toml"),
        ("theirs".to_owned(), true, ".mcp.json"),
        ("theirs".to_owned(), false, ".mcp.json"),
    ];
    assert_eq!(said.collect::<Vec<_>>(), expected);
    assert_eq!(found.problems, Vec::<String>::new());
}

#[test]
fn a_server_that_cannot_be_meant_is_said_with_what_to_write() {
    let both = McpServer { url: Some("http://h".into()), ..program("x") };
    let servers = [
        ("a b", program("x")),
        ("both", both),
        ("ftp", McpServer { url: Some("ftp://h".into()), ..McpServer::default() }),
        ("none", McpServer::default()),
        ("off", McpServer { enabled: Some(false), ..McpServer::default() }),
    ];
    let user = servers.map(|(name, server)| (name.to_owned(), server)).into();
    let found = McpServers::of(&user, "f", &BTreeMap::new(), "");
    assert_eq!(found.servers, []);
    let said = found.problems.join("\n");
    for part in [
        "`a b` in f: its name",
        "both a command and a url",
        "neither http:// nor",
        "neither a command",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(found.problems.len(), 4);
}

#[test]
fn no_server_is_called_so_that_its_tools_look_like_those_of_another() {
    let names = ["git__x", "git_", "_git", "a___b", "git_hub"];
    let user = names.map(|name| (name.to_owned(), program("x"))).into();
    let found = McpServers::of(&user, "f", &BTreeMap::new(), "");
    let taken: Vec<&str> = found.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(taken, ["git_hub"]);
    assert!(found.problems.iter().all(|why| why.contains("in which __ divides")));
}

#[test]
fn what_a_person_agrees_to_changes_with_the_definition_and_not_with_values() {
    let of = |server: McpServer| server.defined("a", "f", false).unwrap().sha256();
    let one = of(program("x"));
    assert_eq!(one, of(program("x")));
    for other in [
        program("y"),
        McpServer { args: vec!["-y".into()], ..program("x") },
        McpServer { env: named(&[("A", "${B}")]), ..program("x") },
        McpServer { network: Some(true), ..program("x") },
        McpServer { write: Some(true), ..program("x") },
    ] {
        assert_ne!(of(other), one);
    }
    let of_workspace = program("x").defined("a", "f", true).unwrap().sha256();
    assert_ne!(of_workspace, one, "the same words mean another program there");
}

#[test]
fn the_file_of_a_workspace_is_read_as_other_programs_write_it() {
    let text = r#"{"mcpServers": {
        "git": {"type": "stdio", "command": "uvx", "args": ["mcp-server-git"], "env": {"A": "${B}"}},
        "web": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${T}"}, "x": 1},
        "old": {"type": "sse", "url": "https://h/sse"}, "bad": {"command": 1}}}"#;
    let (servers, problems) = read_workspace_file(text);
    assert_eq!(servers.keys().collect::<Vec<_>>(), ["git", "web"]);
    assert_eq!(servers["web"].headers["Authorization"], "Bearer ${T}");
    let asked = servers["git"].reached_by();
    assert_eq!(asked, "uvx mcp-server-git, with A='${B}'", "a person sees what is taken");
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[1].1.contains("streamable HTTP") && problems[0].1.contains("`bad`"));
    assert_eq!(problems[0].0, text.find("\"bad\"").unwrap(), "a problem has its place");
    let (_, problems) = read_workspace_file("{\n {mine: 1}}");
    assert_eq!(problems, [(3, "is ignored: key must be a string".to_owned())], "one place");
    for hidden in [r#"{"a": {"command": "x", "env": "KEY=hunter2"}}"#, r#""hunter2""#] {
        let (_, problems) = read_workspace_file(&format!("{{\"mcpServers\": {hidden}}}"));
        assert!(
            problems[0].1.ends_with("ignored: invalid type: string, expected a map"),
            "{problems:?}"
        );
    }
}

#[test]
fn a_relative_path_in_the_settings_of_the_user_is_refused_and_one_of_a_workspace_is_not() {
    let with = |args: &[&str]| McpServer {
        args: args.iter().map(|&word| word.to_owned()).collect(),
        ..program("python3")
    };
    let problem = |server: &McpServer| server.defined("a", "f", false).err();
    for (server, word) in [
        (program("./server.py"), "./server.py"),
        (program("bin/server"), "bin/server"),
        (program("~/server"), "'~/server'"),
        (with(&["-u", "../server.py"]), "../server.py"),
        (with(&["."]), "."),
    ] {
        let said = problem(&server).expect("a problem");
        assert!(
            said.starts_with(&format!("{word} is a relative path: write it from / on")),
            "{said}"
        );
        assert!(server.defined("a", "f", true).is_ok());
    }
    for server in [program("/opt/server"), program("npx"), with(&["-y", "@scope/server", "a/b"])] {
        assert_eq!(problem(&server), None);
    }
}

#[test]
fn a_list_of_servers_shows_no_secret_of_a_command_line_or_an_address() {
    let file = r#"{"mcpServers": {
        "a": {"command": "x", "args": ["--api-key", "hunter2", "--token=hunter2", "--key-file", "/k", "-v", "plain"]},
        "b": {"url": "https://h/mcp/s/0123456789abcdefghij/x?key=hunter2&flag"}}}"#;
    let (named, problems) = read_workspace_file(file);
    assert_eq!(problems, []);
    let found = McpServers::of(&BTreeMap::new(), "", &named, ".mcp.json");
    let shown: Vec<String> = found.servers.iter().map(McpDefinition::shown).collect();
    assert_eq!(
        shown,
        [
            "x --api-key [secret] '--token=[secret]' --key-file /k -v plain",
            "https://h/mcp/s/[secret]/x?key=[secret]&flag"
        ]
    );
}
