//! A rule `git *` beside the real git: no line that it allows runs a program that a Pod put into its workspace.

use crate::escape::cell::Cell;
use crate::escape::git::git;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use yoi::config::policy::{FileRule, Permissions, Rules, Said, Subject};
use yoi::protocol::Action;
use yoi::scope::{Permission, Rule, Scope};
use yoi::tools::command_needs;

/// How many lines that are allowed, and how many that are not, are run.
const ALLOWED: usize = 100;
const REFUSED: usize = 60;
/// `@` is a program of the Pod.
const BEFORE: [&str; 8] =
    ["", "", "", "cd . && ", "cd sub/f && ", "cd sub/w; ", "cd sub && ", "git log && "];
const FRONT: [&str; 16] = [
    "",
    "",
    "",
    "",
    "",
    "--no-pager",
    "-P",
    "-c user.name=x",
    "-C sub/f",
    "-C sub/w",
    "--git-dir=sub/f",
    "--git-dir sub/f",
    "--work-tree=.",
    "-c alias.y=!@",
    "-c core.fsmonitor=@",
    "--bare",
];
const VERBS: [&str; 30] = [
    "y",
    "status",
    "status",
    "log",
    "push",
    "push",
    "fetch",
    "fetch",
    "pull",
    "ls-remote",
    "ls-remote",
    "clone",
    "config",
    "grep",
    "diff",
    "merge",
    "cherry-pick",
    "cherry-pick",
    "rebase",
    "bisect",
    "submodule",
    "add",
    "commit",
    "checkout",
    "difftool",
    "revert",
    "./x",
    "reset",
    "show",
    "branch",
];
const ARGUMENTS: [&str; 45] = [
    "./sub/f",
    "sub/f",
    "sub/w",
    "$W/sub/f",
    "file://$W/sub/f",
    "origin",
    "origin",
    "origin",
    "r",
    "b",
    "f",
    "main",
    "main",
    "HEAD",
    "HEAD",
    "--upload-pack=@",
    "--upload-pack",
    "@",
    "--receive-pack=@",
    "--exec=@",
    "--exec",
    "-O@",
    "--open-files-in-pager=@",
    "--strategy=./x",
    "-s",
    "./x",
    "-x",
    "--all",
    "--multiple",
    "--repo=sub/f",
    "--output=.git/remotes/s",
    "-q",
    "--recurse-submodules",
    "run",
    "foreach",
    "o*",
    ".",
    "'ext::@'",
    "-u",
    "--depth",
    "1",
    "-m",
    "./su*/f",
    "su?/f",
    "git",
];

/// A workspace in which almost everything that git reads and that a Pod can write names a program.
fn workspace(ws: &Path, program: &Path) {
    let at = |name: &str| ws.join(name);
    let shown = program.display();
    git(ws, &["init", "-q", "-b", "main", "--template="]);
    fs::write(at("o"), "a\n").unwrap();
    git(ws, &["add", "o"]);
    git(ws, &["commit", "-q", "-m", "x"]);
    git(ws, &["commit", "-q", "-m", "y", "--allow-empty"]);
    let origin = ws.with_file_name("origin").display().to_string();
    git(ws, &["init", "-q", "--bare", "--template=", &origin]);
    git(ws, &["push", "-q", &origin, "main"]);
    git(ws, &["remote", "add", "origin", &origin]);
    for (tree, dir) in [("sub/f", "sub/f"), ("sub/w", "sub/w/.git")] {
        git(ws, &["clone", "-q", "--template=", ".", "copy"]);
        fs::create_dir_all(at(tree).parent().unwrap()).unwrap();
        let moved = if tree == dir { "copy/.git" } else { "copy" };
        fs::rename(at(moved), at(tree)).unwrap();
        let _ = fs::remove_dir_all(at("copy"));
        let settings = format!(
            "[alias]\n\ty = \"!{shown}\"\n[core]\n\tfsmonitor = {shown}\n\tsshCommand = {shown}\n\talternateRefsCommand = \
             {shown}\n[diff]\n\texternal = {shown}\n[receive]\n\tdenyCurrentBranch = ignore\n"
        );
        let config = fs::read_to_string(at(dir).join("config")).unwrap();
        fs::write(at(dir).join("config"), config + &settings).unwrap();
        fs::create_dir(at(dir).join("hooks")).unwrap();
        for hook in ["pre-receive", "update", "post-index-change", "post-checkout", "pre-commit"] {
            fs::copy(program, at(dir).join("hooks").join(hook)).unwrap();
        }
    }
    fs::create_dir_all(at(".git/remotes")).unwrap();
    fs::write(at(".git/remotes/r"), "URL: ./sub/f\n").unwrap();
    fs::create_dir_all(at(".git/branches")).unwrap();
    fs::write(at(".git/branches/b"), "./sub/f\n").unwrap();
    for link in ["f", "git"] {
        std::os::unix::fs::symlink("sub/f", at(link)).unwrap();
    }
    for dir in ["git-merge-.", "git-."] {
        fs::create_dir(at(dir)).unwrap();
        fs::copy(program, at(dir).join("x")).unwrap();
    }
}

struct Bash<'a> {
    cell: &'a Cell,
    rules: Rules,
}

impl Bash<'_> {
    fn allows(&self, line: &str) -> bool {
        let arguments = json!({ "command": line }).to_string();
        let found = command_needs(&arguments, &self.cell.bench.ctx);
        let subject = Subject {
            tool: "Bash".into(),
            handed: found.handed,
            any_repository: found.any_repository,
            texts: vec![line.into()],
            ..Subject::default()
        };
        self.rules.said(&subject, &[]) == Said::Allow
    }

    /// Whether a line runs the program of the Pod. The workspace is new.
    fn runs(&self, line: &str) -> bool {
        let (ws, fresh, mark) =
            (self.cell.path("ws"), self.cell.path("fresh"), self.cell.path("ran"));
        let _ = (fs::remove_dir_all(&ws), fs::remove_file(&mark));
        let copied = Command::new("cp").arg("-a").args([&fresh, &ws]).status().unwrap();
        assert!(copied.success());
        let mut bash = Command::new("timeout");
        bash.args(["20", "bash", "-c", line]).current_dir(&ws);
        bash.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        for (name, value) in
            [("HOME", "home"), ("GIT_CONFIG_GLOBAL", "home/settings"), ("TMPDIR", "tmp")]
        {
            bash.env(name, self.cell.path(value));
        }
        for editor in ["GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "EDITOR"] {
            bash.env(editor, "true");
        }
        bash.status().unwrap();
        mark.exists()
    }
}

#[test]
fn no_line_that_a_rule_for_git_allows_runs_a_program_that_the_pod_made() {
    let cell = Cell::new();
    let (ws, program) = (cell.path("ws"), cell.path("own.sh"));
    let mark = cell.path("ran").display().to_string();
    fs::write(&program, format!("#!/bin/sh\ntouch {mark}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let settings = "[protocol \"ext\"]\n\tallow = always\n[user]\n\tname = a\n\temail = a@b\n";
    fs::write(cell.path("home/settings"), settings).unwrap();
    fs::create_dir(cell.path("tmp")).unwrap();
    workspace(&ws, &program);
    fs::rename(&ws, cell.path("fresh")).unwrap();
    let rule = FileRule { tool: "Bash".into(), pattern: "git *".into(), action: Action::Allow };
    let cd = FileRule { pattern: "cd *".into(), ..rule.clone() };
    let user = Permissions { default: None, rule: vec![rule, cd] };
    let bash = Bash { cell: &cell, rules: Rules { user, ..Rules::default() } };

    let mut seed = 7_u64;
    let mut pick = |list: &[&'static str]| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        list[(seed >> 33) as usize % list.len()]
    };
    let own = program.display().to_string();
    let (mut allowed, mut refused, mut evil) = (0, 0, 0);
    // The first line makes the workspace.
    assert!(!bash.runs("true") && bash.runs("git -C sub/f y"));
    while allowed < ALLOWED || refused < REFUSED {
        let count = pick(&["", "a", "aa", "aa", "aaa"]).len();
        let arguments: Vec<&str> = (0..count).map(|_| pick(&ARGUMENTS)).collect();
        let (before, front, verb) = (pick(&BEFORE), pick(&FRONT), pick(&VERBS));
        let line = format!("{before}git {front} {verb} {}", arguments.join(" "));
        let line = line.replace('@', &own).replace("$W", &ws.display().to_string());
        if bash.allows(&line) {
            allowed += 1;
            assert!(
                allowed > ALLOWED || !bash.runs(&line),
                "allowed, and it runs the program: {line}"
            );
        } else {
            refused += 1;
            evil += usize::from(refused <= REFUSED && bash.runs(&line));
        }
    }
    assert!(evil >= 3, "only {evil} of {REFUSED} refused lines run the program");
}

#[test]
fn a_wildcard_for_git_counts_only_in_a_repository_that_a_person_gave_to_the_pod() {
    let mut cell = Cell::new();
    let (ws, sub) = (cell.path("ws"), cell.path("ws/sub"));
    git(&ws, &["init", "-q"]);
    git(&ws, &["init", "-q", "sub"]);
    git(&ws, &["remote", "add", "origin", "https://example.org/x"]);
    let any = |cell: &Cell, line: &str| {
        let arguments = json!({ "command": line }).to_string();
        let found = command_needs(&arguments, &cell.bench.ctx);
        (found.any_repository, found.handed)
    };
    let top = ws.display().to_string();
    for (line, is_any, handed) in [
        ("git status", false, ""),
        ("cargo test; ls sub", false, ""),
        ("git -C sub status", false, ""),
        ("cd . && git status", false, ""),
        (&*format!("cd {top} && git status"), false, ""),
        ("cd sub && git status", true, ""),
        ("cd sub; cd ..; git status", true, ""),
        ("pushd sub && git status", true, ""),
        ("cd $x && git status", true, ""),
        ("cd missing && git status", true, ""),
        ("cd /tmp && git status", true, ""),
        ("git push", false, ""),
        ("git push -u origin a/b", false, ""),
        ("git fetch --depth 1 origin", false, ""),
        ("git push origin ./sub", false, ""),
        ("git fetch https://example.org/y main", false, ""),
        ("git fetch git@example.org:y", false, ""),
        ("git push ./sub main", false, "./sub"),
        ("git push sub", false, "sub"),
        ("git push other", false, "other"),
        ("git push -q sub main", false, "sub"),
        ("git fetch --multiple origin sub", false, "sub"),
        ("git fetch --other origin sub", false, "sub"),
        ("git ls-remote FILE:///x", false, "FILE:///x"),
        ("git ls-remote a/b:c", false, "a/b:c"),
        ("git ls-remote a/b://c", false, "a/b://c"),
        ("git clone ext::x", false, "ext::x"),
    ] {
        let handed: Vec<String> = handed.split_whitespace().map(str::to_owned).collect();
        assert_eq!(any(&cell, line), (is_any, handed), "{line}");
    }
    // The Pod above may have made the repository in the directory that it gave to this one.
    cell.bench.ctx.cwd = sub.clone();
    cell.bench.ctx.scope = Scope::new(vec![Rule::new(sub.clone(), Permission::Write)]);
    assert!(any(&cell, "git status").0);
    cell.bench.ctx.given = cell.bench.ctx.scope.clone();
    assert!(!any(&cell, "git status").0);
    assert!(any(&cell, "git push").0, "no remote is configured");
    fs::rename(sub.join(".git"), sub.join("x")).unwrap();
    assert!(any(&cell, "git status").0, "the directory may become a repository");
    std::os::unix::fs::symlink("x", sub.join(".git")).unwrap();
    assert!(any(&cell, "git status").0);
}

#[test]
fn only_git_in_a_repository_of_the_person_and_with_its_remotes_is_known_not_to_obey_the_pod() {
    let cell = Cell::new();
    let ws = cell.path("ws");
    git(&ws, &["init", "-q"]);
    git(&ws, &["init", "-q", "sub"]);
    git(&ws, &["init", "-q", "--bare", "bare.git"]);
    git(&ws, &["remote", "add", "origin", "https://example.org/x"]);
    for (line, may) in [
        ("git push", false),
        ("git push -u origin main", false),
        ("git fetch https://example.org/y main", false),
        ("git -C sub push origin main", true),
        ("git --git-dir=sub/.git push origin main", true),
        ("GIT_DIR=sub/.git git push origin main", true),
        ("git -c core.hooksPath=sub push origin main", true),
        ("git push ./bare.git main", true),
        ("git push bare.git", true),
        ("git push file:///tmp/x main", true),
        ("git push --receive-pack=./x origin main", true),
        ("git push $remote main", true),
        ("git status", true),
        ("cd sub && git push origin main", true),
        ("git push origin main && npm publish", true),
        ("git push origin main; gh pr create --fill", true),
        ("git push origin main | ./x", true),
        ("gh pr create --fill", true),
        ("npm publish", true),
        ("env git push origin main", true),
        ("printenv GH_TOKEN", true),
    ] {
        let arguments = json!({ "command": line }).to_string();
        let found = command_needs(&arguments, &cell.bench.ctx);
        assert_eq!(found.may_obey_the_pod, may, "{line}");
    }
}
