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
        "cargo test src/*.rs",
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
        // A file may have the name of an option.
        "cargo test *.rs",
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
        "git --no-pager -P clean -x",
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
    // The place of a word counts, and not that the rule has such a text.
    for line in ["git push git", "git push it", "git push g"] {
        let word = line.rsplit(' ').next().unwrap().to_owned();
        let handed = Subject { handed: vec![word], ..bash(line) };
        assert_eq!(said_of("git *", &handed), Said::Nothing(None), "{line}");
        assert_eq!(
            said_of("git push g*", &handed),
            if line.ends_with(" g") { Said::Allow } else { Said::Nothing(None) }
        );
    }
    let unseen = Subject { handed: vec!["own f".into()], ..bash("own f") };
    assert_eq!(said_of("own *", &unseen), Said::Nothing(None));
    assert_eq!(said_of("own f", &unseen), Said::Allow);
}

#[test]
fn a_wildcard_of_a_rule_for_git_stands_for_nothing_that_chooses_a_repository_or_runs_a_text() {
    for (rule, line) in [
        ("git *", "git init -q --bare sub/f"),
        ("git *", "git -C sub/f config alias.y '!id'"),
        ("git *", "git -C sub/f y"),
        ("git *", "git --git-dir=sub/e status"),
        ("git *", "git --git-dir sub/e status"),
        ("git *", "git --git-d sub/e status"),
        ("git *", "git --work-tree=. status"),
        ("git *", "git --bare status"),
        ("git *", "git --namespace x status"),
        ("git *", "git -c user.name=x -C sub/e status"),
        ("git *", "git -c alias.user.name=!id status"),
        ("git *", "git -p log"),
        ("git *", "git x"),
        ("git *", "git ./x"),
        ("git *", "git s*"),
        ("git *", "git -*"),
        ("git *", "git log *"),
        ("git *", "git log --out*"),
        ("git *", "git log -- [a-z]*"),
        ("git *", "git config --file=sub/f/config core.sshCommand ./x"),
        ("git *", "git config -f sub/f/config core.sshCommand ./x"),
        ("git *", "git clone --bare . sub/f"),
        ("git *", "git init --separate-git-dir=sub/g"),
        ("git *", "git worktree add sub/w"),
        ("git *", "git submodule foreach id"),
        ("git submodule *", "git submodule foreach id"),
        ("git *", "git bisect run id"),
        ("git bisect *", "git bisect run id"),
        ("git *", "git rebase --exec id main"),
        ("git rebase *", "git rebase --exec id main"),
        ("git rebase *", "git rebase --ex=id main"),
        ("git rebase *", "git rebase -ix id main"),
        ("git *", "git rebase --continue"),
        ("git *", "git filter-branch --tree-filter id"),
        ("git *", "git difftool -x id"),
        ("git difftool *", "git difftool --extcmd=id"),
        ("git *", "git mergetool"),
        ("git *", "git grep -O./x a"),
        ("git grep *", "git grep -iOid a"),
        ("git *", "git hook run x"),
        ("git *", "git help log"),
        ("git *", "git remote set-url origin ./f"),
        ("git *", "git log --output=.git/hooks/x"),
        ("git *", "git diff --no-index --output=sub/p secret.txt x"),
        ("git *", "git push --repo=./f"),
        ("git *", "git push --repo ./f"),
        ("git *", "git cherry-pick --strategy=./x main"),
        ("git *", "git pull --rebase -s ./x"),
        ("git *", "git fetch fd::17"),
        ("git *", "git push ./su*"),
        ("git *", "git push -q su?/f main"),
        ("git *", "git fetch --other origin su[b]"),
        ("git*", "git-submodule foreach id"),
        ("git*", "git-status"),
        ("git-rebase *", "git-rebase --exec id main"),
        ("/usr/lib/git-core/git-grep *", "/usr/lib/git-core/git-grep -Oid a"),
        ("git-fetch *", "git-fetch 'ext::id'"),
        ("git archive *", "git archive -o .git/hooks/x main"),
        ("git archive *", "git archive --remote=./sub main"),
        ("git send-email *", "git send-email --to-cmd id x"),
        ("git send-email *", "git send-email --sendmail-cmd=id x"),
        ("git*", "git-receive-pack sub/f"),
        ("git -C *", "git -C sub/f status"),
        ("git -C sub/*", "git -C sub/f status"),
        ("git -C /w/lib *", "git -C /w/lib -C /w status"),
        ("git -C /w/lib *", "git -C /w/lib x"),
        ("cd * && git *", "cd sub && git x"),
        ("cd * && git x *", "cd sub && git x y"),
        ("git -C \"/w/a b\" *", "git -C \"/w/a b\" x"),
    ] {
        assert_eq!(said(Action::Allow, &[rule], line), Said::Nothing(None), "{rule}: {line}");
        let exactly = exactly(&bash(line)).pattern;
        assert_eq!(said(Action::Allow, &[&exactly], line), Said::Allow, "{line}");
    }
    for (rule, line) in [
        ("git -C /w/lib *", "git -C /w/lib log -3"),
        ("git config *", "git config alias.y '!id'"),
        ("git --git-dir=sub/e x*", "git --git-dir=sub/e x y"),
        ("git clone *", "git clone https://example.org/x"),
        ("git rebase *", "git rebase main"),
        ("git bisect *", "git bisect good"),
        ("git *", "git --no-pager log -p -- src/*.rs"),
        ("git -p *", "git -p log"),
        ("git --no-replace-objects log *", "git --no-replace-objects log x"),
        ("git --work-tree=. *", "git --work-tree=. status"),
        ("git --namespace x *", "git --namespace x status"),
        ("git --bare *", "git --bare log"),
        ("git-rebase *", "git-rebase main"),
        ("git-push *", "git-push origin main"),
        ("git *", "git grep -in a:b"),
        ("git log*", "git log"),
        ("git*", "git log"),
        ("git *", "git fetch origin '+refs/heads/*:refs/remotes/origin/*'"),
        ("cd sub && git x *", "cd sub && git x y"),
        ("git -C \"/w/a b\" *", "git -C \"/w/a b\" log"),
        ("cd * && git *", "cd sub && git status"),
    ] {
        assert_eq!(said(Action::Allow, &[rule], line), Said::Allow, "{rule}: {line}");
        let open = Subject { any_repository: true, ..bash(line) };
        let of_rule = rules_of(rule).said(&open, &[]);
        let chosen = rule.contains("-C") || rule.contains("--git-dir");
        let expected = if chosen { Said::Allow } else { Said::Nothing(None) };
        assert_eq!(of_rule, expected, "in any repository, {rule}: {line}");
        assert_eq!(rules_of("*").said(&open, &[]), Said::Allow);
        assert_eq!(rules_of(&exactly(&bash(line)).pattern).said(&open, &[]), Said::Allow, "{line}");
    }
    let beside = Subject { any_repository: true, ..bash("cargo test") };
    assert_eq!(rules_of("cargo *").said(&beside, &[]), Said::Allow);
}

#[test]
fn a_wildcard_that_stands_for_the_program_of_an_interpreter_allows_nothing() {
    for (rule, line) in [
        ("sed *", "sed '1e id' x"),
        ("sed *", "sed s/x/id/e x"),
        ("sed -n *", "sed -n '1w x' y"),
        ("sed -n 1,5p *", "sed -n 1,5p -i x"),
        ("sed -n 1,5p *", "sed -n 1,5p x --in-place"),
        ("sed -n 1,5p *", "sed -n 1,5p x -e '1e id'"),
        ("sed -n 1,5p *", "sed -n 1,5p x -ne1e"),
        ("sed -n 1,5p *", "sed -n 1,5p x -f y"),
        ("sed -n 1,5p *", "sed -n 1,5p *"),
        ("awk *", "awk 'BEGIN{system(\"id\")}'"),
        ("awk -F: *", "awk -F: '{print|\"id\"}' x"),
        ("gawk -v x=1 *", "gawk -v x=1 -f x"),
        ("mawk *", "mawk -f x"),
        ("perl *", "perl -e id"),
        ("perl *", "perl -c -e 'BEGIN{}'"),
        ("perl -e 1 *", "perl -e 1 -e id"),
        ("perl -ne print *", "perl -ne print -I. -Mevil x"),
        ("perl -e 1 *", "perl -e 1 -mevil"),
        ("perl -e 1 *", "perl -e 1 -d:Devil x"),
        ("ruby -e 1 *", "ruby -e 1 -I . -revil x"),
        ("php -r 1 *", "php -r 1 -d extension=./evil.so"),
        ("php -r 1 *", "php -r 1 -z evil.so"),
        ("node -e 1 *", "node -e 1 --input-type commonjs --require ./e.js"),
        ("node -e 1 --input-type *", "node -e 1 --input-type commonjs --require ./e.js"),
        ("node -e 1 --loader-of-its-own *", "node -e 1 --loader-of-its-own ./e.js"),
        ("pwsh -Command Get-Date *", "pwsh -Command Get-Date '; ./x.ps1'"),
        ("pwsh -c Get-Date *", "pwsh -c Get-Date '; ./x.ps1'"),
        ("pwsh *", "pwsh -Enc aQBkAA=="),
        ("pwsh -NoProfile *", "pwsh -NoProfile x.ps1"),
        ("java *", "java A.java"),
        ("java *", "java -cp x A"),
        ("julia *", "julia -e 1 x"),
        ("julia -e 1 *", "julia -e 1 -L x.jl"),
        ("R *", "R -f x.R"),
        ("sed -l [0-9] *", "sed -l [0-9] -i x"),
        ("perl *", "perl x.pl"),
        ("perl *", "perl -w"),
        ("python3 *", "python3 -c id"),
        ("python3 *", "python3 -um x"),
        ("python3 *", "python3 x.py"),
        ("python3 *", "python3 -"),
        ("python3.12 *", "python3.12 -u"),
        ("python3 -u *", "python3 -u x.py"),
        ("/usr/bin/python3 *", "/usr/bin/python3 x.py"),
        ("node *", "node --eval=id"),
        ("node *", "node -pe id"),
        ("node *", "node --other x.js"),
        ("node --other *", "node --other 8 x.js"),
        ("node -r ./a *", "node -r ./a x.js"),
        ("deno *", "deno run x.ts"),
        ("deno run *", "deno run x.ts"),
        ("ruby *", "ruby -e id"),
        ("php *", "php -r id"),
        ("lua *", "lua -e id"),
        ("make *", "make --eval='$(shell id)'"),
        ("make *", "make --ev=x"),
        ("make *", "make -E '$(shell id)'"),
        ("make *", "make -E'$(shell id)'"),
        ("make *", "make 'X:=$(shell id)'"),
        ("make *", "make all SHELL=./x"),
        ("rake *", "rake -e id"),
        ("rake *", "rake --exec=id"),
        ("just *", "just x=y"),
        ("ninja *", "ninja -f x"),
        ("cmake *", "cmake -P x.cmake"),
        ("cmake *", "cmake -E env sh x.sh"),
        ("just *", "just --command id"),
        ("just *", "just --chooser id --choose"),
        ("vim *", "vim -c '!id'"),
        ("vim *", "vim x"),
        ("less *", "less '+!id' x"),
        ("sqlite3 *", "sqlite3 x '.shell id'"),
        ("sqlite3 x *", "sqlite3 x '.shell id'"),
        ("man *", "man -P id x"),
        ("man *", "man -Hid x"),
        ("man *", "man --pager=id x"),
        ("tar *", "tar --checkpoint=1 --checkpoint-action=exec=id -cf a b"),
        ("tar *", "tar --checkpoint-a exec=id -cf a b"),
        ("tar *", "tar -cf a *"),
        ("tar *", "tar -cIid -f a b"),
        ("tar *", "tar cIf ./x.sh o.tar a.c"),
        ("tar *", "tar cfI o.tar ./x.sh a.c"),
        ("gcc *", "gcc -B./sp/ a.c"),
        ("gcc *", "gcc -Bsp a.c"),
        ("gcc *", "gcc -no-integrated-cpp -B sp -c a.c"),
        ("gcc *", "gcc @list -c a.c"),
        ("gcc *", "gcc -fplugin=missing.so a.c"),
        ("gcc-14 *", "gcc-14 -wrapper sh,y a.c"),
        ("gcc *", "gcc -Wl,-plugin,./evil.so m.c"),
        ("gcc *", "gcc -Xlinker -plugin -Xlinker evil.so m.c"),
        ("gcc *", "gcc -fmodule-mapper='|sh x' m.cc"),
        ("gcc *", "gcc -iplugindir=x m.c"),
        ("gcc -B./sp *", "gcc -B./sp -specs=x a.c"),
        ("x86_64-linux-gnu-gcc-14 *", "x86_64-linux-gnu-gcc-14 -wrapper sh,y a.c"),
        ("clang *", "clang -Xclang -load -Xclang evil.so m.c"),
        ("clang *", "clang --config=x m.c"),
        ("clang *", "clang -mllvm -load=evil.so m.c"),
        ("clang *", "clang --gcc-toolchain=x m.c"),
        ("ld *", "ld -plugin missing.so a.o"),
        ("ld.gold *", "ld.gold --plugin missing.so a.o"),
        ("x86_64-linux-gnu-nm *", "x86_64-linux-gnu-nm --plugin=missing.so a.o"),
        ("rustc *", "rustc -Clinker=x a.rs"),
        ("rustc *", "rustc --extern m=./libm.so a.rs"),
        ("javac *", "javac -cp jp A.java"),
        ("groff *", "groff -U a.1"),
        ("groff *", "groff -Uz a.1"),
        ("openssl *", "openssl req -engine missing.so"),
        ("sort *", "sort --compress-program=id x"),
        ("sort *", "sort --c=id x"),
        ("zip *", "zip -TT id x"),
        ("zip *", "zip -T '-TTsh x.sh' a f"),
        ("zip *", "zip '-rTTsh x.sh' a f"),
        ("install *", "install -s --strip-program=sh y.sh z"),
        ("rg *", "rg --pre sh pat x.sh"),
        ("rg *", "rg --pre=sh pat x.sh"),
        ("bat *", "bat --paging=always --pager 'sh x' y"),
        ("fzf *", "fzf --preview 'sh x'"),
        ("curl *", "curl -sK x https://example.org"),
        ("nmap *", "nmap --script ./x.nse localhost"),
        ("sort -u x && sort *", "sort -u x && sort --compress-program=id x"),
    ] {
        assert_eq!(said(Action::Allow, &[rule], line), Said::Nothing(None), "{rule}: {line}");
    }
    for (rule, line) in [
        ("sed -n *", "sed -n 1,200p src/x.rs"),
        ("sed -n 1,5p *", "sed -n 1,5p x y"),
        ("sed -e s/a/b/ *", "sed -e s/a/b/ x"),
        ("awk '{print}' *", "awk '{print}' x"),
        ("awk {print} *", "awk '{print}' x"),
        ("python3 tool.py *", "python3 tool.py -c conf x"),
        ("python3 -m pytest *", "python3 -m pytest tests -q"),
        ("python3 -m pytest*", "python3 -m pytest"),
        ("node x.js *", "node x.js --eval=1"),
        ("perl x.pl *", "perl x.pl -e 1"),
        ("perl -ne print *", "perl -ne print x -Mevil"),
        ("perl -I lib -we 1 *", "perl -I lib -we 1 x"),
        ("node -e 1 *", "node -e 1 x --require ./y"),
        ("pwsh x.ps1 *", "pwsh x.ps1 -Command y"),
        ("java -Xmx1g -jar a.jar *", "java -Xmx1g -jar a.jar x -y"),
        ("julia --project=. x.jl *", "julia --project=. x.jl -e 1"),
        ("make *", "make -C sub test"),
        ("make CC=gcc *", "make CC=gcc test"),
        ("rake *", "rake -N test"),
        ("just *", "just test"),
        ("uv *", "uv add x"),
        ("man *", "man -k x"),
        ("tar *", "tar -xzf a.tgz -C sub"),
        ("tar *", "tar xzf a.tgz"),
        ("tar *", "tar cf INFO.tar a"),
        ("gcc *", "gcc -O2 -DDEBUG -Iinc/Big -o a a.c"),
        (
            "g++-14 *",
            "g++-14 -std=c++20 -Wall -Werror=format -march=native -fPIC -fsanitize=address -g3 -MMD -c a.cc",
        ),
        ("cc *", "cc a.c -Lsub -lm -pthread -shared"),
        ("gcc -B./sp *", "gcc -B./sp -c a.c"),
        ("nm *", "nm -CD --defined-only a.o"),
        ("rg *", "rg -epreface --type sh x"),
        ("curl *", "curl -sSL https://example.org -o x"),
        ("zip *", "zip -qr a.zip sub"),
        ("groff *", "groff -man a.1"),
        ("sort *", "sort -u x"),
        ("less*", "less"),
        ("tar -I./x *", "tar -I./x -xf a"),
    ] {
        assert_eq!(said(Action::Allow, &[rule], line), Said::Allow, "{rule}: {line}");
    }
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
