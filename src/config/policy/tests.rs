use super::*;
use proptest::prelude::*;

fn bash(command: &str) -> Subject {
    Subject { tool: "Bash".into(), texts: vec![command.into()], ..Subject::default() }
}

fn pattern(tool: &str, pattern: &str) -> Pattern {
    Pattern { tool: tool.into(), pattern: pattern.into() }
}

fn rule(tool: &str, pattern: &str, action: Action) -> FileRule {
    FileRule { tool: tool.into(), pattern: pattern.into(), action }
}

fn rules(user: Vec<FileRule>, workspace: Vec<FileRule>) -> Rules {
    Rules {
        user: Permissions { default: None, rule: user },
        user_file: "config.toml".into(),
        workspace,
        workspace_file: ".yoi/config.toml".into(),
        ..Rules::default()
    }
}

#[test]
fn while_rules_cannot_be_read_what_they_could_deny_waits_for_an_approval() {
    let allow = || vec![rule("*", "*", Action::Allow)];
    let known = rules(allow(), vec![]);
    assert_eq!(known.said(&bash("ls"), &[]), Said::Allow);
    for user in [vec![], allow()] {
        let rules = Rules { unread: Some("no permission".into()), ..rules(user, vec![]) };
        let Said::Ask(why) = rules.said(&bash("ls"), &[]) else { panic!("it is not asked") };
        assert_eq!(
            why,
            "the file of rules .yoi/config.toml, which cannot be read (no permission),"
        );
        let own = Subject { tool: "TaskList".into(), ..Subject::default() };
        assert!(!matches!(rules.said(&own, &[]), Said::Ask(_)));
        let once = (pattern("Bash", "ls"), Action::Allow);
        assert_eq!(rules.said(&bash("ls"), std::slice::from_ref(&once)), Said::Allow);
    }
    let denied = rules(vec![rule("Bash", "ls", Action::Deny)], vec![]);
    let denied = Rules { unread: Some("no permission".into()), ..denied };
    assert!(matches!(denied.said(&bash("ls"), &[]), Said::Deny(_)));
}

#[test]
fn a_rule_of_a_trusted_workspace_allows_only_what_no_other_rule_and_no_answer_speaks_about() {
    let allow = rule("Bash", "make *", Action::Allow);
    let trusted =
        |user, workspace| Rules { trusted: vec![allow.clone()], ..rules(user, workspace) };
    let (make, other) = (bash("make a"), bash("rm a"));
    let alone = trusted(vec![], vec![]);
    assert_eq!(alone.said(&make, &[]), Said::Allow);
    assert_eq!(alone.said(&other, &[]), Said::Nothing(None));
    assert_eq!(alone.said(&bash("make a; rm a"), &[]), Said::Nothing(None), "each command counts");
    let denied = (Pattern { tool: "Bash".into(), pattern: "make a".into() }, Action::Deny);
    assert!(matches!(alone.said(&make, &[denied]), Said::Deny(_)));
    for action in [Action::Ask, Action::Deny] {
        let narrow = || vec![rule("Bash", "make a", action)];
        for rules in [trusted(narrow(), vec![]), trusted(vec![], narrow())] {
            let said = rules.said(&make, &[]);
            assert!(matches!(said, Said::Ask(_) | Said::Deny(_)), "{action:?}: {said:?}");
        }
    }
    let default = Permissions { default: Some(Action::Ask), rule: vec![] };
    let rules = Rules { user: default, ..trusted(vec![], vec![]) };
    assert_eq!(rules.said(&make, &[]), Said::Allow);
    assert_eq!(rules.said(&other, &[]), Said::Nothing(Some(Action::Ask)));
}

#[test]
fn the_first_rule_that_matches_counts_and_tools_ignore_case() {
    let rules =
        rules(vec![rule("bash", "git push*", Action::Deny), rule("*", "*", Action::Allow)], vec![]);
    let said = rules.said(&bash("git push --force"), &[]);
    assert_eq!(said, Said::Deny("the rule `bash: git push*` in config.toml".into()));
    assert_eq!(rules.said(&bash("git pull"), &[]), Said::Allow);
}

#[test]
fn a_workspace_narrows_and_never_widens() {
    let rules = rules(
        vec![rule("Bash", "*", Action::Allow)],
        vec![rule("Bash", "make *", Action::Ask), rule("Read", "*", Action::Allow)],
    );
    assert!(matches!(rules.said(&bash("make all"), &[]), Said::Ask(_)));
    assert_eq!(rules.said(&bash("ls"), &[]), Said::Allow);
    let read = Subject { tool: "Read".into(), texts: vec!["/x".into()], ..Subject::default() };
    assert_eq!(rules.said(&read, &[]), Said::Nothing(None));
}

#[test]
fn an_approval_overrides_an_asking_rule_and_no_denying_rule() {
    let rules =
        rules(vec![rule("Bash", "a*", Action::Ask), rule("Bash", "d*", Action::Deny)], vec![]);
    let answers =
        [(pattern("Bash", "ask"), Action::Allow), (pattern("Bash", "deny"), Action::Allow)];
    assert_eq!(rules.said(&bash("ask"), &answers), Said::Allow);
    assert!(matches!(rules.said(&bash("also"), &answers), Said::Ask(_)));
    assert!(matches!(rules.said(&bash("deny"), &answers), Said::Deny(_)));
}

/// The decision of rules with one action about a line.
fn said(action: Action, patterns: &[&str], line: &str) -> Said {
    let rules = patterns.iter().map(|pattern| rule("Bash", pattern, action)).collect();
    Rules { user: Permissions { default: None, rule: rules }, ..Rules::default() }
        .said(&bash(line), &[])
}

#[test]
fn a_rule_that_denies_matches_a_command_however_it_is_spelled_and_wherever_it_stands() {
    let evading = [
        "git  push",
        "git\tpush",
        "'git' push",
        "g\\it push",
        "g''it pu\"s\"h",
        "git \\\n push",
        "$'git' push",
        "/usr/bin/git push",
        "A=1 git push",
        "ls; git push",
        "ls && git push",
        "ls | git push",
        "ls & git push",
        "ls\ngit push",
        "(git push)",
        "{ git push; }",
        "! git push",
        "if ls; then git push; fi",
        "while git push; do ls; done",
        "for x in a; do git push; done",
        "case a in a) git push;; esac",
        "f() { git push; }; f",
        "echo $(git push)",
        "echo `git push`",
        "echo \"$(git push)\"",
        "cat <(git push)",
        "x=$(git push)",
        "ls > $(git push)",
        "ls <<< $(git push)",
        "cat <<E\n$(git push)\nE",
        "echo ${x:-$(git push)}",
        "echo $((`git push`))",
        "[[ -n $(git push) ]]",
        "a[$(git push)]=1",
        "sudo git push",
        "env -i A=b git push",
        "env -S 'git push'",
        "nohup git push",
        "timeout 5 git push",
        "xargs git push",
        "echo push | xargs git",
        "exec git push",
        "command git push",
        "builtin command git push",
        "find . -exec git push ';'",
        "sh -c 'git push'",
        "bash -ec 'ls; git  push'",
        "bash -O extglob -c 'git push'",
        "sudo -u x sh -c 'git push'",
        "sh -c \"sh -c 'git push'\"",
        "eval git push",
        "eval 'git push'",
        "eval \"$x\"",
        "trap 'git push' EXIT",
        "bash <<E\ngit push\nE",
        "bash <<< 'git push'",
        "echo git push | sh",
        "sh < script",
        "sh -s",
        "bash -",
        "source /dev/stdin",
        ". <(echo git push)",
        "bash <(echo git push)",
        "$x push",
        "git $x",
        "$(echo git) push",
        "g?t push",
        "{git,x} push",
        "/usr/bin/g* push",
        "alias x='git push'",
        "coproc git push",
        "printf -v 'x[$(git push)]' a",
        "test -v 'x[$(git push)]'",
        "time git push",
        "time -- git push",
        "echo `echo \\`git push\\``",
        "echo $((ls; git push) )",
        "compgen -C 'git push' a",
        "command -p git push",
        "for x in push; do git $x; done",
        "git push;",
        "git push # harmless",
        "git push > /dev/null",
        "git 'push --force'",
    ];
    let passes = |line: &&str| {
        let of = |action| said(action, &["git push*"], line);
        let shows = line.contains("git") && !line.contains("(echo git)");
        match (of(Action::Deny), of(Action::Ask)) {
            (Said::Deny(_), Said::Ask(_)) => false,
            (Said::Ask(_), Said::Ask(_)) => shows,
            _ => true,
        }
    };
    let passing: Vec<_> = evading.into_iter().filter(passes).collect();
    assert!(passing.is_empty(), "{passing:#?}");
    let harmless = [
        "git pull",
        "git log --grep=push",
        "echo git push",
        "grep -rn 'git push' docs",
        "git commit -m \"$x\"",
        "ls 'git push'",
        "cargo test $x",
        "echo '$(git push)'",
        "# git push",
        "timeout 5 cargo test",
        "[ -f x ] && ls *.rs",
    ];
    let denied = harmless
        .iter()
        .filter(|line| said(Action::Deny, &["git push*"], line) != Said::Nothing(None));
    let denied: Vec<_> = denied.collect();
    assert!(denied.is_empty(), "{denied:#?}");
    assert_eq!(said(Action::Deny, &["git push"], "ls; make"), Said::Nothing(None));
    assert!(matches!(said(Action::Deny, &["git push"], "git $x push"), Said::Deny(_)));
}

#[test]
fn a_command_inside_of_braces_a_loop_or_a_word_is_never_passed_by_a_rule_for_another() {
    let hiding = [
        "git log {$(rm x),b}",
        "git log {`rm x`,b}",
        "git log {<(rm x),b}",
        "git log {${x:-$(rm x)},b}",
        "git log {$((a[$(rm x)])),b}",
        "git log {a,{b,$(rm x)}}",
        "git log {$(rm x)..3}",
        "git log {a..$(rm x)}",
        "git log {$'\\x41',$(rm x)}",
        "for x in {$(rm x),b}; do git log a; done",
        "case {$(rm x),b} in *) git log a;; esac",
        "for PATH in /w/evil; do git log a; done",
        "select PATH in /w/evil; do git log a; done",
        "git log a {PATH}>/dev/null",
        "git log a {PATH}<&0",
        "PATH=/w/evil git log a",
        "LD_PRELOAD=/w/x git log a",
        "BASH_ENV=/w/x git log a",
        "PATH+=:/w git log a",
        "read PATH < /w/x; git log a",
        "printf -v PATH /w; git log a",
        "export PATH=/w; git log a",
        "git log a\r; rm x",
        "git log \u{a0}a",
        "git log \\\n a",
    ];
    for line in hiding {
        let of = |action, pattern| said(action, &[pattern], line);
        assert_eq!(of(Action::Allow, "git log *"), Said::Nothing(None), "{line}");
        assert!(matches!(of(Action::Deny, "git log *"), Said::Deny(_)), "{line}");
        assert!(matches!(of(Action::Deny, "curl *"), Said::Ask(_)), "{line}");
        assert!(matches!(of(Action::Ask, "curl *"), Said::Ask(_)), "{line}");
        assert_eq!(
            of(Action::Allow, &line.replace('\\', r"\\").replace('*', r"\*")),
            Said::Allow,
            "{line}"
        );
    }
    let pushes = "echo {$(git push origin main >&2),b}";
    assert!(matches!(said(Action::Deny, &["git push*"], pushes), Said::Deny(_)));
}

#[test]
fn a_line_that_cannot_be_compared_waits_only_where_a_rule_could_deny_it() {
    let line = "for x in a; do wc $x; done";
    assert_eq!(rules(vec![], vec![]).said(&bash(line), &[]), Said::Nothing(None));
    assert_eq!(said(Action::Allow, &["cargo *"], line), Said::Nothing(None));
    let deny = || rule("Bash", "git push*", Action::Deny);
    let everything = || rule("Bash", "*", Action::Allow);
    let of = |user, workspace| rules(user, workspace).said(&bash(line), &[]);
    assert!(matches!(of(vec![deny(), everything()], vec![]), Said::Ask(_)));
    assert!(matches!(of(vec![everything()], vec![deny()]), Said::Ask(_)));
    assert_eq!(of(vec![everything(), deny()], vec![]), Said::Allow, "the first rule counts");
    let network = rule("Bash+network", "git push*", Action::Deny);
    assert_eq!(of(vec![network], vec![]), Said::Nothing(None), "it needs no network");
    let answer = (exactly(&bash(line)), Action::Allow);
    assert_eq!(rules(vec![deny()], vec![]).said(&bash(line), &[answer]), Said::Allow);
}

#[test]
fn a_line_passes_only_if_a_rule_allows_each_command_in_it() {
    let rules = [
        "cargo *",
        "git status*",
        "ls",
        "env A=1 cargo *",
        "sh *",
        "env *",
        "xargs *",
        "time *",
        "! *",
        "eval *",
        "trap *",
        "mapfile *",
        "bash -c *",
    ];
    let passing = [
        "cargo test",
        "cargo  test",
        "'cargo' te\"st\"",
        "cargo test 2>&1",
        "cargo test > /dev/null",
        "cargo test && ls",
        "cargo test | cargo fmt; git status -s",
        "cargo test *.rs",
        "cargo test 'a|b'",
    ];
    let refused = passing.iter().filter(|line| said(Action::Allow, &rules, line) != Said::Allow);
    let refused: Vec<_> = refused.collect();
    assert!(refused.is_empty(), "{refused:#?}");
    let held = [
        "(cargo test)",
        "if ls; then cargo test; fi",
        "env A=1 cargo test",
        "sh build.sh",
        "sh -c 'cargo test; ls'",
        "time -p cargo test",
        "! cargo test",
        "eval cargo test",
        "trap ls EXIT",
        "bash -c 'cargo test'",
        "mapfile -t a",
        "cargo test; rm x",
        "cargo test && rm x",
        "cargo test || rm x",
        "cargo test | rm x",
        "cargo test & rm x",
        "cargo test\nrm x",
        "cargo $(rm x)",
        "cargo `rm x`",
        "cargo \"$(rm x)\"",
        "cargo <(rm x)",
        "cargo $x",
        "cargo \"$x\"",
        "cargo test > file",
        "cargo test < file",
        "cargo test <<< x",
        "cargo test <<E\nx\nE",
        "cargo test >& file",
        "cargo test &> file",
        "cargo test 2>file",
        "A=1 cargo test",
        "PATH=/tmp cargo test",
        "PATH=/tmp; cargo test",
        "export PATH=/tmp; cargo test",
        "cargo() { rm x; }; cargo test",
        "./cargo test",
        "/tmp/cargo test",
        "sh -c 'cargo test; rm x'",
        "sh -c \"$x\"",
        "sh",
        "cat x | sh",
        "sh <<E\nrm x\nE",
        "env rm x",
        "env A=2 rm x",
        "time rm x",
        "time -p -- rm x",
        "! rm x",
        "xargs rm",
        "find . | xargs rm",
        "eval rm x",
        "trap 'rm x' EXIT",
        "mapfile -C rm a",
        "bash -c 'rm x'",
        "sh -c 'rm x'",
        "eval ls $x",
        "cargo 'unfinished",
        "cargo test )",
        "{ cargo test; } > file",
        "while ls; do rm x; done",
        "[[ -n $(rm x) ]] && ls",
        "(( x[$(rm x)] )); ls",
        "cargo 'a[$(rm x)]'",
        "ls $'\\x41'",
        "lss",
        "$x",
        "",
        "cargo test; $x",
    ];
    let passing = held.iter().filter(|line| said(Action::Allow, &rules, line) == Said::Allow);
    let passing: Vec<_> = passing.collect();
    assert!(passing.is_empty(), "{passing:#?}");
    assert_eq!(
        said(Action::Allow, &["*"], "$x | sh > file"),
        Said::Allow,
        "everything is everything"
    );
}

#[test]
fn a_rule_for_a_whole_line_still_lets_that_line_pass() {
    let line = "cd sub && VAR=$x ./run > log";
    assert_eq!(said(Action::Allow, &[line], line), Said::Allow);
    assert_eq!(said(Action::Allow, &["cd * && cargo test"], "cd sub && cargo test"), Said::Allow);
    assert_eq!(said(Action::Allow, &["git commit -m \"*\""], "git commit -m \"x y\""), Said::Allow);
    assert_eq!(
        said(Action::Allow, &["cd * && cargo test"], "cd $x && cargo test"),
        Said::Nothing(None)
    );
}

#[test]
fn an_answer_for_a_line_ends_when_the_line_may_run_something_else() {
    let line = "split --filter=./x.sh f";
    let later = Subject { once_only: true, ..bash(line) };
    let said = |subject: &Subject, answer: &str| {
        Rules::default().said(subject, &[(pattern("Bash", answer), Action::Allow)])
    };
    assert_eq!(said(&bash(line), line), Said::Allow);
    assert_eq!(said(&later, line), Said::Nothing(None));
    let wide = "split --filter=./x.sh *";
    assert_eq!(said(&later, wide), Said::Allow, "a person wrote it about all such lines");
    let own = rules(vec![rule("Bash", line, Action::Allow)], vec![]);
    assert_eq!(own.said(&later, &[]), Said::Allow, "a rule of a file is about the line");
}

/// `git fetch*` is about what is fetched, and not about a program that git is handed.
#[test]
fn a_wildcard_that_allows_hands_a_program_to_no_other_one() {
    let rules = ["git *", "rsync *", "scp *", "tar *", "wget *", "npm *", "go *", "split *"];
    for line in [
        "git fetch --upload-pack=./x",
        "git fetch --upload-p 'sh -c x' origin",
        "git push --receive-pack=./x --exec=./x",
        "git -c core.sshCommand=./x fetch",
        "git --config-env=core.sshCommand=X fetch",
        "git --exec-path=/w fetch",
        "git clone -u ./x y",
        "git clone --config core.sshCommand=./x y",
        "git clone --template=./x y",
        "git fetch 'ext::sh -c x'",
        "git rebase -x ./x",
        "git -C sub submodule foreach x",
        "rsync -ae ./x a b",
        "rsync --rsync-path=./x a b",
        "scp -oProxyCommand=./x a b:",
        "tar -I ./x -xf a",
        "tar --to-command=./x -xf a",
        "wget --use-askpass=./x https://example.org",
        "npm --script-shell=./x run a",
        "go test -exec ./x",
        "git fetch && git fetch --upload-pack=./x",
    ] {
        assert_eq!(said(Action::Allow, &rules, line), Said::Nothing(None), "{line}");
        assert_eq!(said(Action::Allow, &[line], line), Said::Allow, "{line}");
        assert_eq!(said(Action::Allow, &["*"], line), Said::Allow, "{line}");
    }
    for line in [
        "git fetch --depth=1 origin main",
        "git push -u origin main",
        "git switch -c feature",
        "git -c user.name='A B' -c color.ui=never commit -m x",
        "git -C sub clean -x",
        "git commit --template",
        "rsync -a --exclude=target --progress a b",
        "tar -xzf a",
        "npm install",
        "go test ./...",
    ] {
        let expected = if line.contains("--template") { Said::Nothing(None) } else { Said::Allow };
        assert_eq!(said(Action::Allow, &rules, line), expected, "{line}");
    }
    let spelled = "git -c core.sshCommand=./x fetch origin";
    assert_eq!(said(Action::Allow, &["git -c core.sshCommand=./x fetch*"], spelled), Said::Allow);

    let line = "split --filter ./x.sh f";
    let handed =
        Subject { handed: vec!["--own".into(), "./x.sh".into()], ..bash("own --own ./x.sh f") };
    let said_of = |pattern: &str, subject: &Subject| rules_of(pattern).said(subject, &[]);
    assert_eq!(said(Action::Allow, &["split *"], line), Said::Nothing(None));
    assert_eq!(said_of("own *", &handed), Said::Nothing(None));
    assert_eq!(said_of("own --own ./x.sh *", &handed), Said::Allow);
    assert_eq!(said_of("own *", &bash("own --own ./x.sh f")), Said::Allow);
}

fn rules_of(pattern: &str) -> Rules {
    rules(vec![rule("Bash", pattern, Action::Allow)], vec![])
}

#[test]
fn the_first_rule_that_fits_a_command_counts_and_the_strictest_command_decides() {
    let rules = rules(
        vec![
            rule("Bash", "git push origin", Action::Allow),
            rule("Bash", "git push*", Action::Deny),
            rule("Bash", "make*", Action::Ask),
            rule("Bash", "*", Action::Allow),
        ],
        vec![],
    );
    let said = |line: &str| rules.said(&bash(line), &[]);
    assert_eq!(said("git  push origin && ls"), Said::Allow);
    assert!(matches!(said("make; git push origin"), Said::Ask(_)));
    assert!(matches!(said("make; git push far"), Said::Deny(_)));
}

#[test]
fn a_command_that_cannot_be_compared_with_a_rule_that_denies_is_refused_with_the_way_out() {
    let sentence = |line: &str| match said(Action::Deny, &["git push*"], line) {
        Said::Deny(sentence) => sentence,
        other => panic!("{line}: {other:?}"),
    };
    assert!(sentence("git 'x").contains("write the commands out"));
    assert!(sentence(&"git ".repeat(9000)).contains("more than 16 KiB: put it into a script file"));
    assert!(sentence("git $x").contains("known only when it runs; write that part out"));
    assert!(sentence("git push").ends_with("config.toml") || !sentence("git push").contains('('));
}

#[test]
fn a_wildcard_that_allows_ends_with_the_command_and_one_that_refuses_does_not() {
    let cargo = pattern("Bash", "cargo *");
    assert!(matches(&cargo, Action::Allow, &bash("cargo test --all")));
    for sneaky in ["cargo x; rm y", "cargo x && rm y", "cargo $(rm y)", "cargo x\nrm y"] {
        assert!(!matches(&cargo, Action::Allow, &bash(sneaky)), "{sneaky}");
        assert!(matches(&cargo, Action::Deny, &bash(sneaky)), "{sneaky}");
    }
    assert!(matches(&pattern("Bash", "*"), Action::Allow, &bash("a; b")));
}

#[test]
fn the_needs_of_a_command_are_part_of_the_rule() {
    let needs = |needs: &[&'static str]| Subject { needs: needs.to_vec(), ..bash("make") };
    let network = pattern("Bash+network", "make");
    assert!(matches(&network, Action::Allow, &needs(&["network"])));
    assert!(matches(&network, Action::Allow, &needs(&[])));
    assert!(!matches(&network, Action::Allow, &needs(&["network", "outside"])));
    assert!(matches(&network, Action::Deny, &needs(&["network", "outside"])));
    assert!(!matches(&network, Action::Deny, &needs(&[])));
    assert!(matches(&pattern("Bash", "make"), Action::Allow, &needs(&["outside"])));
}

#[test]
fn a_rule_that_allows_a_file_tool_opens_what_is_guarded_only_by_name() {
    let texts = vec!["/w/.git/hooks/x".to_owned()];
    let write = Subject { tool: "Write".into(), needs: vec!["git"], texts, ..Subject::default() };
    assert!(!matches(&pattern("Write", "/w/*"), Action::Allow, &write));
    assert!(matches(&pattern("Write", "/w/*"), Action::Deny, &write));
    assert!(matches(&pattern("Write+git", "/w/*"), Action::Allow, &write));
    assert!(matches(&pattern("*", "*"), Action::Allow, &write));
    assert!(matches(&exactly(&write), Action::Allow, &write));
}

#[test]
fn a_path_is_allowed_by_what_it_really_is_and_refused_by_either() {
    let texts = vec!["/w/../secret/x".to_owned(), "/secret/x".to_owned()];
    let read = Subject { tool: "Read".into(), texts, ..Subject::default() };
    assert!(!matches(&pattern("Read", "/w/*"), Action::Allow, &read));
    assert!(matches(&pattern("Read", "/secret/*"), Action::Deny, &read));
}

#[test]
fn a_call_that_is_about_nothing_matches_only_what_matches_everything() {
    let list = Subject { tool: "ListPods".into(), ..Subject::default() };
    assert!(matches(&pattern("*", "*"), Action::Allow, &list));
    assert!(!matches(&pattern("ListPods", "a*"), Action::Deny, &list));
}

proptest! {
    #[test]
    fn the_rule_of_an_answer_speaks_about_that_call_and_no_other(
        one in "[ab*?\\\\; ]{0,6}", two in "[ab*?\\\\; ]{0,6}",
    ) {
        let rule = exactly(&bash(&one));
        prop_assert_eq!(matches(&rule, Action::Allow, &bash(&two)), one == two);
    }
}
