use super::judge::{MAX_ACTION, denied};
use super::*;
use crate::config::policy::{FileRule, Permissions};
use crate::protocol::{ApprovalRequest, OutsideAccess};
use crate::tools::{CommandNeeds, PathThreads, Touch};
use serde_json::json;
use std::path::PathBuf;

struct Alone;

impl FamilyView for Alone {
    fn lineage(&self) -> Vec<PodName> {
        Vec::new()
    }
    fn is_peer(&self, name: &str) -> bool {
        name == "peer"
    }
    fn unreachable(&self, _: &str, _: &str) -> Option<String> {
        None
    }
    fn extend(&self, _: Rule) -> BoxFuture<'static, Result<(), Refusal>> {
        Box::pin(async { Ok(()) })
    }
    fn could_extend(&self, _: Rule) -> BoxFuture<'static, Result<(), Refusal>> {
        Box::pin(async { Ok(()) })
    }
    fn writers_at(&self, _: Vec<PathBuf>) -> BoxFuture<'static, Result<Vec<String>, Refusal>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    fn begin_turn(&self, _: WhenBusy) -> BoxFuture<'static, Result<Begun, Refusal>> {
        Box::pin(async { Err(Refusal::internal("no run is under way")) })
    }
}

fn policy(walls: Walls) -> Policy {
    Policy { rules: Arc::default(), relations: Arc::new(Alone), walls }
}

fn of(name: &str, arguments: &str, touch: Option<Touch>, walls: Walls) -> Decision {
    let policy = policy(walls);
    judge(&policy.rules, &[], claimed(name, arguments, touch, &policy))
}

fn claimed(name: &str, arguments: &str, touch: Option<Touch>, policy: &Policy) -> Claim {
    let call = Call { id: "c".into(), name: name.into(), arguments: arguments.into() };
    let seen = match (name, touch) {
        ("Bash", _) => Seen::Command(command(arguments)),
        (_, touch) => touch.map_or(Seen::Plain, Seen::Path),
    };
    claim(&call, seen, policy, None)
}

/// The needs of a command with these arguments, whose paths are assumed to be canonical.
fn command(arguments: &str) -> CommandNeeds {
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    let mut needs: Vec<Need> =
        serde_json::from_value(arguments["needs"].clone()).unwrap_or_default();
    needs.sort();
    needs.dedup();
    let outside = arguments["outside"].as_array().into_iter().flatten().map(|named| OutsidePath {
        path: named["path"].as_str().unwrap().into(),
        access: match (named["socket"].is_null(), named["write"] == true) {
            (false, _) => OutsideAccess::Socket,
            (true, true) => OutsideAccess::Write,
            (true, false) => OutsideAccess::Read,
        },
    });
    CommandNeeds { needs, outside: outside.collect(), ..CommandNeeds::default() }
}

fn outside(permission: Permission) -> Option<Touch> {
    let path = PathBuf::from("/else/where");
    let lacks = Some(Rule { target: path.clone(), permission, recursive: false });
    Some(Touch { path, lacks, ..Touch::default() })
}

fn guarded(path: &str, need: Need) -> Option<Touch> {
    Some(Touch { path: path.into(), needs: vec![need], ..Touch::default() })
}

/// `allow`, `deny`, or the reason of the approval request and the rule that a permanent decision
/// would store.
fn word(decision: &Decision) -> String {
    match decision {
        Decision::Allow(_) => "allow".into(),
        Decision::Deny(_) => "deny".into(),
        Decision::NeedsApproval(draft) => format!("{} [{}]", draft.because, draft.rule),
    }
}

#[test]
fn without_rules_only_actions_outside_the_scope_need_an_approval() {
    let inside = || Some(Touch { path: "/w/x".into(), ..Touch::default() });
    let network = r#"{"command":"cargo fetch","needs":["network"],"reason":"crates"}"#;
    let table = [
        ("Read", r#"{"file_path":"/w/x"}"#, inside(), "allow"),
        (
            "Read",
            r#"{"file_path":"/else/where"}"#,
            outside(Permission::Read),
            "to read outside its scope [Read:/else/where]",
        ),
        (
            "Write",
            r#"{"file_path":"/else/../else/where"}"#,
            outside(Permission::Write),
            "to write outside its scope [Write:/else/where]",
        ),
        (
            "Write",
            r#"{"file_path":"/w/.git/config"}"#,
            guarded("/w/.git/config", Need::Git),
            "to change hooks or the configuration of a git repository [Write+git:/w/.git/config]",
        ),
        (
            "Edit",
            r#"{"file_path":"/w/bin/x"}"#,
            guarded("/w/bin/x", Need::Outside),
            "to change a directory of programs on PATH, or the target of a guarded link [Edit+outside:/w/bin/x]",
        ),
        (
            "Write",
            r#"{"file_path":"/w/.mcp.json"}"#,
            guarded("/w/.mcp.json", Need::Outside),
            "to change files that an editor or an agent executes or reads as settings without asking you [Write+outside:/w/.mcp.json]",
        ),
        (
            "Write",
            r#"{"file_path":"/w/.yoi/config.toml"}"#,
            guarded("/w/.yoi/config.toml", Need::Outside),
            "to change the rules of this workspace [Write+outside:/w/.yoi/config.toml]",
        ),
        ("Bash", r#"{"command":"cargo test"}"#, None, "allow"),
        ("Bash", network, None, "network access [Bash+network:cargo fetch]"),
        (
            "Bash",
            r#"{"command":"rm *","needs":["outside","git"],"outside":[{"path":"/srv/a","write":true}]}"#,
            None,
            "to change hooks or the configuration of a git repository; paths outside its scope [Bash+git+write=/srv/a:rm \\*]",
        ),
        (
            "Bash",
            r#"{"command":"ps","needs":["outside"],"outside":[{"path":"/run/d","socket":1}]}"#,
            None,
            "to ask another program through its socket, for anything [Bash+socket=/run/d:ps]",
        ),
        ("RestorePod", r#"{"name":"kid"}"#, None, "allow"),
        (
            "RestorePod",
            r#"{"name":"peer"}"#,
            None,
            "your approval: it is a peer, not a child [RestorePod:peer]",
        ),
        ("SendToPeerPod", r#"{"name":"peer","message":"x"}"#, None, "allow"),
        ("SpawnPod", r#"{"name":"kid","task":"x"}"#, None, "allow"),
        ("TaskList", "", None, "allow"),
        ("NoSuchTool", "not json", None, "allow"),
    ];
    for (tool, arguments, touch, expected) in table {
        assert_eq!(word(&of(tool, arguments, touch, Walls::Hold)), expected, "{tool}");
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_looked_at_is_answered_and_takes_no_other_with_it() {
    let call = |id: &str| Call { id: id.into(), name: "Read".into(), arguments: "{}".into() };
    let touch = |call: &Call| {
        assert!(call.id != "b", "the second call brings it to a fault");
        Seen::Path(Touch { path: call.id.clone().into(), ..Touch::default() })
    };
    let looked = look(&[call("a"), call("b"), call("c")], &PathThreads::default(), touch).await;
    let seen = |id: &str| Ok(Seen::Path(Touch { path: id.into(), ..Touch::default() }));
    assert_eq!((&looked[0], &looked[2]), (&seen("a"), &seen("c")));
    let why = looked[1].as_ref().unwrap_err();
    assert_eq!(why, "not started: a fault in the program kept it from being looked at");
}

#[test]
fn without_walls_every_command_needs_an_approval() {
    let decision = of("Bash", r#"{"command":"ls"}"#, None, Walls::Missing);
    assert_eq!(word(&decision), "your approval: the sandbox is off [Bash:ls]");
}

#[test]
fn an_argument_that_a_tool_does_not_have_hides_nothing_from_policy() {
    let decoys = [
        ("RestorePod", r#"{"command":"x","file_path":"/w","name":"peer"}"#, "RestorePod:peer"),
        ("Bash", r#"{"name":"x","command":"ls"}"#, "Bash:ls"),
    ];
    for (tool, arguments, rule) in decoys {
        let asked = word(&of(tool, arguments, None, Walls::Missing));
        assert!(asked.ends_with(&format!("[{rule}]")), "{asked}");
    }
    let deny = |tool: &str, pattern: &str| {
        let (tool, pattern) = (tool.into(), pattern.into());
        let rule = FileRule { tool, pattern, action: Action::Deny };
        let user = Permissions { default: None, rule: vec![rule] };
        Rules { user, ..Rules::default() }
    };
    let evading = [
        ("SendToPeerPod", "bob", r#"{"command":"x","path":"y","name":"bob","message":"z"}"#),
        ("Write", "/w/no", r#"{"command":"x","file_path":"/w/no","content":"z"}"#),
        ("Grep", "/w/no*", r#"{"command":"x","pattern":"a","path":"/w/no/b"}"#),
        ("Grep", "key*", r#"{"pattern":"key=","path":"/w"}"#),
        ("SpawnPod", "kid", r#"{"query":"x","url":"y","name":"kid","task":"z"}"#),
        ("mcp__sh__run", "rm *", r#"{"command":"ls","steps":[{"script":"rm x"}]}"#),
    ];
    for (tool, pattern, arguments) in evading {
        let claim = claimed(tool, arguments, None, &policy(Walls::Hold));
        let decided = judge(&deny(tool, pattern), &[], claim);
        assert!(matches!(decided, Decision::Deny(_)), "{tool} {arguments}: {decided:?}");
    }
}

#[test]
fn a_request_for_an_external_tool_shows_each_argument_and_its_rule_is_for_these_arguments_alone() {
    let hiding = r#"{"command":"rm -rf ~","name":"ls","needs":["x"],"outside":1,"reason":"deps"}"#;
    let claimed = |arguments: &str| {
        let reason = Some("a call of the MCP server `sh`".into());
        let call =
            Call { id: "c".into(), name: "mcp__sh__run".into(), arguments: arguments.into() };
        claim(&call, Seen::Plain, &policy(Walls::Hold), reason)
    };
    let decide = |answers: &[(Pattern, Action)], arguments: &str| {
        judge(&Rules::default(), answers, claimed(arguments))
    };
    let allow = |rule: &str| [(rule.parse::<Pattern>().unwrap(), Action::Allow)];
    let Decision::NeedsApproval(draft) = decide(&[], hiding) else { panic!("it is asked about") };
    assert_eq!((draft.action.as_str(), draft.details), (hiding, None));
    assert_eq!(draft.reason.as_deref(), Some("deps"), "it is shown as the model's words");
    let rule = draft.rule.to_string();
    assert_eq!(rule, format!("mcp__sh__run():{hiding}"));
    assert_eq!(
        decide(&allow(&rule), hiding),
        Decision::Allow(Grant { by_rule: true, ..Grant::default() })
    );
    for other in [r#"{"command":"rm -rf ~"}"#, &hiding.replace("ls", "lt"), "{}"] {
        assert!(matches!(decide(&allow(&rule), other), Decision::NeedsApproval(_)), "{other}");
    }
    let by_name = decide(&allow("mcp__sh__run:ls*"), hiding);
    assert!(matches!(by_name, Decision::NeedsApproval(_)), "{by_name:?}");
    let long = json!({ "text": "x".repeat(MAX_DETAILS) }).to_string();
    let Decision::Deny(why) = decide(&[], &long) else { panic!("it is too much") };
    assert!(
        why.ends_with("33 KiB are too much to judge; make the change in smaller calls"),
        "{why}"
    );
}

#[test]
fn a_stored_request_is_compared_by_all_its_arguments_and_an_old_one_only_by_a_rule_for_everything()
{
    let arguments = json!({ "command": "rm -rf ~", "name": "ls" });
    let rule = Pattern { tool: "mcp__sh__run".into(), pattern: "*".into() };
    let stored = |arguments: Option<Value>| ApprovalRequest {
        call_id: "c".into(),
        action: arguments.as_ref().map_or("ls".into(), Value::to_string),
        arguments,
        ..ApprovalRequest::new(
            "a".into(),
            PodName::parse("alice").unwrap(),
            "mcp__sh__run",
            rule.clone(),
        )
    };
    let allows = |rule: &str, stored: &ApprovalRequest| {
        let stored = serde_json::from_str(&serde_json::to_string(stored).unwrap()).unwrap();
        matches(&rule.parse().unwrap(), Action::Allow, &subject_of(&stored))
    };
    let (new, old) = (stored(Some(arguments)), stored(None));
    assert!(!allows("mcp__sh__run:ls", &new) && allows("mcp__sh__run(name):ls", &new));
    for narrow in ["mcp__sh__run:ls", "mcp__sh__run(name):ls", "mcp__sh__run(command):ls", "*:ls"] {
        assert!(!allows(narrow, &old), "{narrow}");
    }
    assert!(allows("mcp__sh__run:*", &old) && allows("*:*", &new));
}

#[test]
fn an_approval_request_shows_the_whole_action_or_the_call_is_refused() {
    let bash = |command: &str| {
        let arguments = serde_json::json!({ "command": command, "needs": ["network"] });
        of("Bash", &arguments.to_string(), None, Walls::Hold)
    };
    let longest = "x".repeat(MAX_ACTION);
    let Decision::NeedsApproval(draft) = bash(&longest) else { panic!("it is asked about") };
    assert_eq!((draft.action.len(), draft.rule.pattern), (MAX_ACTION, longest.clone()));
    let Decision::Deny(why) = bash(&format!("{longest}; rm x")) else { panic!("it is refused") };
    assert!(why.ends_with("17 KiB are too much to judge; put it into a script file and run that"));
    let plain = serde_json::json!({ "command": format!("{longest}; rm x") }).to_string();
    assert_eq!(word(&of("Bash", &plain, None, Walls::Hold)), "allow");
    let write = |content: &str| {
        let arguments = serde_json::json!({ "file_path": "/w/h", "content": content });
        of("Write", &arguments.to_string(), guarded("/w/h", Need::Git), Walls::Hold)
    };
    let Decision::NeedsApproval(draft) = write("a\nb") else { panic!("it is asked about") };
    assert_eq!(draft.details.as_deref(), Some("+ a\n+ b"));
    let decided = within_limit(write(&"x".repeat(MAX_DETAILS)));
    let Decision::Deny(why) = decided else { panic!("it is too much") };
    assert!(why.ends_with("make the change in smaller calls"), "{why}");
}

#[test]
fn a_call_that_a_rule_allows_gets_its_needs() {
    let rule = FileRule { tool: "*".into(), pattern: "*".into(), action: Action::Allow };
    let user = Permissions { default: None, rule: vec![rule] };
    let rules = Rules { user, ..Rules::default() };
    let network = r#"{"command":"x","needs":["network"]}"#;
    let claim = claimed("Bash", network, None, &policy(Walls::Hold));
    let grant = Grant { needs: vec![Need::Network], by_rule: true, ..Grant::default() };
    assert_eq!(judge(&rules, &[], claim), Decision::Allow(grant));
}

#[test]
fn a_wildcard_that_grants_the_network_hands_no_program_of_the_pod_to_another_one() {
    let decide = |pattern: &str, handed: &[&str]| {
        let (tool, pattern) = ("Bash+network".into(), pattern.into());
        let rule = FileRule { tool, pattern, action: Action::Allow };
        let user = Permissions { default: None, rule: vec![rule] };
        let handed = handed.iter().map(|word| (*word).to_owned()).collect();
        let needs = CommandNeeds { needs: vec![Need::Network], handed, ..CommandNeeds::default() };
        let arguments = r#"{"command":"own --with ./x.sh","needs":["network"]}"#.into();
        let call = Call { id: "c".into(), name: "Bash".into(), arguments };
        let claim = super::claim(&call, Seen::Command(needs), &policy(Walls::Hold), None);
        word(&judge(&Rules { user, ..Rules::default() }, &[], claim))
    };
    assert_eq!(decide("own *", &[]), "allow");
    let asked = "network access [Bash+network:own --with ./x.sh]";
    assert_eq!(decide("own *", &["--with", "./x.sh"]), asked);
    assert_eq!(decide("own --with ./x.sh*", &["--with", "./x.sh"]), "allow");
}

#[test]
fn a_default_stands_in_for_the_programs_own_but_not_for_what_is_only_the_pods() {
    let decide = |action: Action, tool: &str, arguments: &str| {
        let user = Permissions { default: Some(action), rule: vec![] };
        let rules = Rules { user, user_file: "config.toml".into(), ..Rules::default() };
        judge(&rules, &[], claimed(tool, arguments, None, &policy(Walls::Hold)))
    };
    let ls = r#"{"command":"ls"}"#;
    let asked = "your approval: `[permissions] default` in config.toml asks [Bash:ls]";
    assert_eq!(word(&decide(Action::Ask, "Bash", ls)), asked);
    let stands = denied("`[permissions] default` in config.toml denies Bash");
    assert_eq!(decide(Action::Deny, "Bash", ls), stands);
    let network = r#"{"command":"x","needs":["network"]}"#;
    assert_eq!(word(&decide(Action::Allow, "Bash", network)), "allow");
    assert_eq!(word(&decide(Action::Deny, "TaskList", "{}")), "allow");
    for arguments in ["{}", r#"{"text":"x"}"#] {
        let stands = denied("`[permissions] default` in config.toml denies mcp__demo__echo");
        assert_eq!(decide(Action::Deny, "mcp__demo__echo", arguments), stands);
        let asked = format!(
            "{} asks [mcp__demo__echo():{arguments}]",
            "your approval: `[permissions] default` in config.toml"
        );
        assert_eq!(word(&decide(Action::Ask, "mcp__demo__echo", arguments)), asked);
    }
}

#[test]
fn a_pods_own_answers_come_before_those_for_the_subtrees_it_is_in() {
    let name = |name: &str| PodName::parse(name).unwrap();
    let rule = |id: u64, pod: &str, tree: bool| StoredRule {
        id,
        pod: name(pod),
        tree,
        pattern: Pattern { tool: "Bash".into(), pattern: "x".into() },
        action: Action::Allow,
    };
    let stored = vec![
        rule(6, "root", true),
        rule(5, "mid", true),
        rule(4, "mid", false),
        rule(3, "kid", false),
        rule(2, "other", true),
    ];
    let binding = in_force(&name("kid"), &[name("root"), name("mid")], stored);
    assert_eq!(binding.iter().map(|rule| rule.id).collect::<Vec<_>>(), [3, 5, 6]);
}

#[test]
fn beside_a_command_in_the_background_no_rule_allows_more_rights_or_a_script() {
    let script = ScriptHash { path: "/tmp/x.sh".into(), sha256: "a".repeat(64) };
    let claim = |needs: &[Need], scripts: Vec<ScriptHash>, jobs: &[String]| {
        let needs = CommandNeeds { needs: needs.to_vec(), scripts, ..CommandNeeds::default() };
        let arguments = r#"{"command":"./fetch"}"#.into();
        let call = Call { id: "c".into(), name: "Bash".into(), arguments };
        super::claim(&call, Seen::Command(needs), &policy(Walls::Hold), None).beside(jobs)
    };
    let allow = |tool: &str| Pattern { tool: tool.into(), pattern: "*".into() };
    let of_a_file =
        |tool: &str| FileRule { tool: tool.into(), pattern: "*".into(), action: Action::Allow };
    let stored = vec![(allow("Bash+network"), Action::Allow), (allow("Bash"), Action::Allow)];
    let rule = vec![of_a_file("Bash+network"), of_a_file("Bash")];
    let in_a_file = Permissions { default: None, rule };
    let by_default = Permissions { default: Some(Action::Allow), rule: Vec::new() };
    let jobs = ["job-1 (npm run dev)".to_owned()];
    for (user, answers) in
        [(Permissions::default(), stored), (in_a_file, Vec::new()), (by_default, Vec::new())]
    {
        let rules = Rules { user, ..Rules::default() };
        for (needs, scripts) in [(vec![Need::Network], vec![]), (vec![], vec![script.clone()])] {
            let alone = judge(&rules, &answers, claim(&needs, scripts.clone(), &[]));
            assert!(matches!(alone, Decision::Allow(_)), "{alone:?}");
            match judge(&rules, &answers, claim(&needs, scripts, &jobs)) {
                Decision::NeedsApproval(draft) => {
                    assert!(draft.once_only && draft.because.ends_with(&jobs[0]), "{draft:?}");
                }
                other => panic!("{other:?}"),
            }
        }
        let plain = judge(&rules, &answers, claim(&[], Vec::new(), &jobs));
        assert!(matches!(plain, Decision::Allow(_)), "{plain:?}");
    }
}

#[test]
fn a_command_with_a_script_that_its_pod_can_change_has_no_rule_for_its_content() {
    let script = |digit: &str| ScriptHash { path: "/w/build.sh".into(), sha256: digit.repeat(64) };
    let with = |needs: &[Need], scripts: Vec<ScriptHash>| {
        let needs = CommandNeeds { needs: needs.to_vec(), scripts, ..CommandNeeds::default() };
        let arguments = r#"{"command":"./build.sh"}"#.into();
        let call = Call { id: "c".into(), name: "Bash".into(), arguments };
        super::claim(&call, Seen::Command(needs), &policy(Walls::Hold), None)
    };
    let network = |scripts| with(&[Need::Network], scripts);
    let rules = Rules::default();
    let Decision::NeedsApproval(first) = judge(&rules, &[], network(vec![script("a")])) else {
        panic!("it is asked about")
    };
    assert_eq!(first.because, "network access");
    assert_eq!(first.grant.scripts, [script("a")], "only this content runs");
    assert_eq!(first.rule.to_string(), "Bash+network:./build.sh");
    let old = format!("Bash+network+sha256={}", "a".repeat(32));
    let old = Pattern { tool: old, pattern: "./build.sh".into() };
    let of_a_file =
        FileRule { tool: old.tool.clone(), pattern: old.pattern.clone(), action: Action::Allow };
    let user = Permissions { default: None, rule: vec![of_a_file] };
    for (rules, answers) in [
        (Rules::default(), vec![(old.clone(), Action::Allow)]),
        (Rules { user, ..Rules::default() }, vec![]),
    ] {
        let decided = judge(&rules, &answers, network(vec![script("a")]));
        assert!(matches!(decided, Decision::NeedsApproval(_)), "{decided:?}");
    }
    let asked = |scripts| match judge(&rules, &[], network(scripts)) {
        Decision::NeedsApproval(draft) => draft.because,
        other => panic!("{other:?}"),
    };
    let unread = asked(vec![ScriptHash::unread("/w/build.sh".into())]);
    assert!(
        unread.ends_with("; the content of /w/build.sh is not compared, so any may run"),
        "{unread}"
    );
    let unheld = asked(vec![script("a"), ScriptHash::unheld("/w/build.sh".into())]);
    let exchange = "; another Pod or a command in the background may exchange /w/build.sh while the command runs";
    assert!(unheld.ends_with(exchange), "{unheld}");
    let many = (0..=tools::MAX_SCRIPTS).map(|n| ScriptHash::unread(format!("/w/{n}").into()));
    let Decision::Deny(why) = judge(&rules, &[], network(many.collect())) else {
        panic!("they are too many")
    };
    assert!(
        why.ends_with("more than 256 scripts are too many to judge; run them in several commands")
    );
    let plain = judge(&rules, &[], with(&[], vec![script("b")]));
    assert_eq!(plain, Decision::Allow(Grant::default()), "what needs no approval is not compared");
    let by_command = Pattern { tool: "Bash+network".into(), pattern: "./build.sh".into() };
    let decided = judge(&rules, &[(by_command, Action::Allow)], network(vec![script("b")]));
    let grant = Grant { needs: vec![Need::Network], by_rule: true, ..Grant::default() };
    assert_eq!(decided, Decision::Allow(grant), "a rule that a person wrote is about the line");
}

#[test]
fn a_credential_is_given_by_a_rule_that_names_it_and_the_line_to_the_letter_and_by_no_other() {
    let push = "git push origin main";
    let github =
        Credential { name: "github".into(), env: vec!["GH_TOKEN".into()], ssh_agent: false };
    let with = |line: &str, change: fn(&mut CommandNeeds)| {
        let (needs, credentials) = (vec![Need::Network], vec![github.clone()]);
        let mut needs = CommandNeeds { needs, credentials, ..CommandNeeds::default() };
        change(&mut needs);
        let arguments = json!({ "command": line }).to_string();
        let call = Call { id: "c".into(), name: "Bash".into(), arguments };
        super::claim(&call, Seen::Command(needs), &policy(Walls::Hold), None)
    };
    let stays: fn(&mut CommandNeeds) = |_| {};
    let asked = |line, change| match judge(&Rules::default(), &[], with(line, change)) {
        Decision::NeedsApproval(draft) => draft,
        other => panic!("{other:?}"),
    };
    let draft = asked(push, stays);
    assert_eq!(draft.because, "network access; the credential github");
    let own = draft.rule.to_string();
    assert_eq!(own, format!("Bash+network+credential=github:{push}"));
    assert!(!draft.once_only);

    // As a rule of config.toml, an answer for the Pod, and a rule of a workspace that a person trusts.
    let decided = |rule: &str, line: &str, change| {
        let pattern: Pattern = rule.parse().unwrap();
        let Pattern { tool, pattern: text } = pattern.clone();
        let file = FileRule { tool, pattern: text, action: Action::Allow };
        let of_user = Permissions { default: None, rule: vec![file.clone()] };
        [
            judge(&Rules { user: of_user, ..Rules::default() }, &[], with(line, change)),
            judge(&Rules::default(), &[(pattern, Action::Allow)], with(line, change)),
            judge(&Rules { trusted: vec![file], ..Rules::default() }, &[], with(line, change)),
        ]
        .map(|decided| matches!(decided, Decision::Allow(_)))
    };
    assert_eq!(decided(&own, push, stays), [true, true, false]);
    let wider = [
        format!("Bash:{push}"),
        format!("Bash+network:{push}"),
        format!("*:{push}"),
        "*:*".into(),
        "Bash+network+credential=github:*".into(),
        "Bash+network+credential=github:git push*".into(),
        format!("Bash+network+credential=*:{push}"),
        format!("Bash+network+credential=gitlab:{push}"),
        format!("Bash+credential=github:{push}"),
    ];
    for rule in &wider {
        assert_eq!(decided(rule, push, stays), [false; 3], "{rule}");
    }
    for line in
        ["git push origin main --force", "git push origin main; ls", "git  push origin main"]
    {
        assert_eq!(decided(&own, line, stays), [false; 3], "{line}");
    }
    // What may run another time as something else is allowed once only.
    let changes: [fn(&mut CommandNeeds); 3] = [
        |needs| needs.may_run_another = true,
        |needs| needs.any_repository = true,
        |needs| needs.scripts = vec![ScriptHash { path: "/w/x".into(), sha256: "a".repeat(64) }],
    ];
    for change in changes {
        assert_eq!(decided(&own, push, change), [false; 3]);
    }
    assert!(asked(push, changes[1]).once_only);
    // A person who writes the rule knows the programs; an answer to a request writes none for them.
    let obeys: fn(&mut CommandNeeds) = |needs| needs.may_obey_the_pod = true;
    assert!(asked(push, obeys).answered_once && !asked(push, obeys).once_only);
    assert!(!asked(push, stays).answered_once);
    assert_eq!(decided(&own, push, obeys), [true, true, false]);

    // A default allows nothing of it, and a rule may deny one credential or all.
    let user = Permissions { default: Some(Action::Allow), rule: vec![] };
    let decided = judge(&Rules { user, ..Rules::default() }, &[], with(push, stays));
    assert_eq!(word(&decided), format!("network access; the credential github [{own}]"));
    for (tool, denies) in
        [("credential=github", true), ("credential=*", true), ("credential=x", false)]
    {
        let (tool, pattern) = (format!("Bash+{tool}"), "*".into());
        let rule = vec![FileRule { tool, pattern, action: Action::Deny }];
        let user = Permissions { default: None, rule };
        let decided = judge(&Rules { user, ..Rules::default() }, &[], with(push, stays));
        assert_eq!(word(&decided) == "deny", denies);
    }
    // Beside a command in the background a person decides about each.
    let allow = [(own.parse().unwrap(), Action::Allow)];
    let beside = with(push, stays).beside(&["job-1 (npm run dev)".into()]);
    let decided = judge(&Rules::default(), &allow, beside);
    assert!(matches!(&decided, Decision::NeedsApproval(draft) if draft.once_only), "{decided:?}");
}
