//! Everyday jobs, outside and inside the walls: the output and the exit codes of each are the same.
//!
//! Each job has a workspace of its own twice. A person prepares both without walls. Then the commands of the job run one
//! after the other, in one workspace unconfined and in the other as commands of a Pod.

use crate::escape::cell::{Cell, no_world_to_test};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use yoi::sandbox::{Command, Outcome, Sandbox, StartGroup};

/// A job of an ordinary day.
struct Job {
    name: &'static str,
    /// The program that it needs besides bash and git; the job is left out where it is missing.
    program: &'static str,
    /// What a person does first, in the workspace.
    before: &'static str,
    /// Directories of the workspace that come first on `PATH`.
    path: &'static [&'static str],
    /// The commands of the Pod.
    commands: &'static [&'static str],
}

const fn job(name: &'static str, before: &'static str, commands: &'static [&'static str]) -> Job {
    Job { name, program: "git", before, path: &[], commands }
}

const fn with(program: &'static str, job: Job) -> Job {
    Job { program, ..job }
}

/// Settings of the person.
const SETTINGS: &str = "[user]\nname = a\nemail = a@b\n[init]\ndefaultBranch = main\n[protocol \"file\"]\n\
                        allow = always\n[alias]\nst = status --short\nlast = !git log -1 --format=%s\n";
/// A repository of the person with a commit, and one with files that editors read on each of two branches.
const REPOSITORY: &str = "git init -q && echo a > a && git add . && git commit -qm first";
const BRANCHES: &str = "git init -q && mkdir .vscode .idea && for b in main other; do \
    [ $b = main ] || git checkout -q -b $b; \
    for f in .vscode/settings.json .envrc .idea/a.xml; do echo $b > $f; done; \
    [ $b = main ] || echo $b > .vscode/tasks.json; git add -A; git commit -qm $b; done; git checkout -q main";
/// A clone of the Pod.
const CLONE: &str =
    "git init -q --bare up && git clone -q up w 2>&1 && cd w && git commit -q --allow-empty -m x";

const JOBS: &[Job] = &[
    job(
        "settings of a repository of the Pod",
        "",
        &[
            "git init -q r && git -C r commit -q --allow-empty -m x",
            "cd r && git config pull.rebase true && git remote add o ../up && git remote rename o p && \
             git remote -v && git branch -m old && git branch && git config --list --local | sort",
        ],
    ),
    job(
        "push and track from a clone of the Pod",
        "",
        &[CLONE, "cd w && git push -q -u origin HEAD && git checkout -qb b && git branch -q -u origin/main && git branch -vv"],
    ),
    job(
        "a submodule in a repository of the Pod",
        "",
        &[
            "git init -q sub && git -C sub commit -q --allow-empty -m x && git init -q r",
            "cd r && git submodule --quiet add ../sub s 2>&1 && git commit -qm s && git submodule status | cut -c43-",
            "cd r && git submodule --quiet deinit s && git rm -q s && git commit -qm gone && git status --short",
        ],
    ),
    job("remove a clone of the Pod", "", &[CLONE, "rm -rf w && ls"]),
    job("move a clone of the Pod", "", &[CLONE, "mv w v && git -C v status --short && ls"]),
    job("clone over an old clone", "", &[CLONE, "rm -rf w; git clone -q up w 2>&1; ls w -A"]),
    job(
        "a worktree of a repository of the Pod",
        "",
        &[CLONE, "cd w && git worktree add -q ../t 2>&1", "cd w && git worktree remove ../t && git worktree list | wc -l; ls .."],
    ),
    job(
        "a sparse checkout of the Pod",
        "",
        &[CLONE, "cd w && mkdir a b && touch a/x b/x && git add . && git commit -qm y && git sparse-checkout set a && ls"],
    ),
    job(
        "a checkout of other settings of editors",
        BRANCHES,
        &["git checkout -q other && cat .vscode/* .envrc .idea/a.xml && git status --short && git checkout -q main && \
           ls .vscode && git status --short"],
    ),
    job("a merge of other settings of editors", BRANCHES, &["git merge -q other && cat .envrc && git st"]),
    job(
        "a stash of settings of editors",
        BRANCHES,
        &["echo x > .envrc; echo x > .vscode/tasks.json; git stash -q -u && git st && git stash pop -q && git st && cat .envrc"],
    ),
    job("a clean of settings of editors", "git init -q; mkdir -p .idea .vscode; touch .idea/a .vscode/tasks.json .exrc", &["git clean -fdxq && ls -A"]),
    job("write settings of editors", REPOSITORY, &["mkdir .vscode && echo '{}' > .vscode/settings.json && echo x > .envrc", "cat .vscode/settings.json .envrc; git st"]),
    job("commit, amend, tag, gc", REPOSITORY, &["echo b > b && git add b && git commit -qm b && git commit -q --amend -m c && git tag t && git gc -q && git log --format=%s"]),
    job("rebase and cherry-pick", REPOSITORY, &["git checkout -qb b && echo b > b && git add b && git commit -qm b && git checkout -q main && echo c > c && git add c && git commit -qm c && git checkout -q b && git rebase -q main && git log --format=%s", "git checkout -q main && git cherry-pick b >/dev/null && git last"]),
    job("a conflict and its resolution", REPOSITORY, &["git checkout -qb b && echo b > a && git commit -qam b && git checkout -q main && echo c > a && git commit -qam c; git merge -q b; echo d > a; git add a; git commit -qm d; git log --format=%s -1"]),
    job("commit with the person's hook", "git init -q && printf '#!/bin/sh\\necho hook ran\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit", &["echo a > a && git add a && git commit -qm a"]),
    job("a worktree of the person's repository", REPOSITORY, &["git worktree add -q -b n t 2>&1 && cd t && git commit -q --allow-empty -m n && git last", "git worktree list | wc -l && cd t && git st"]),
    job(
        "a template and ignored files of the person's settings",
        "echo subject > ~/.message && \
         git config --global commit.template ~/.message && echo '*.out' > ~/ignored && \
         git config --global core.excludesFile ~/ignored && git init -q",
        &["touch a.out && git st; git commit --allow-empty -m x; git commit --allow-empty 2>&1; git last"],
    ),
    job("a repository without hooks", "git init -q --template= && git commit -q --allow-empty -m x", &["git st; echo a > a; git add a; git commit -qm a && git last"]),
    job("bisect", "git init -q; for n in 1 2 3 4; do echo $n > $n; git add .; git commit -qm $n; done", &["git bisect start -q HEAD HEAD~3 >/dev/null && git bisect run sh -c '! test -e 3' | grep 'first bad' && git bisect reset -q"]),
    job("a linked worktree as workspace", "git init -q ../outside/m && cd ../outside/m && git commit -q --allow-empty -m x && git worktree add -q ../../ws -b n", &["git st && echo a > a && git add a && git commit -qm a && git last && git branch && git log --oneline | wc -l", "git checkout -q -b k && git merge -q n && git tag t && git pack-refs --all && git status -s"]),
    job("a submodule as workspace", "git init -q ../outside/s && git -C ../outside/s commit -q --allow-empty -m x && cd .. && rmdir ws && git init -q && git submodule --quiet add ./outside/s ws", &["git st && echo a > a && git add a && git commit -qm a && git last"]),
    job("a repository two levels down", "mkdir -p x/y && cd x/y && git init -q && git commit -q --allow-empty -m x", &["cd x/y && echo a > a && git add a && git commit -qm a && git st && git last"]),
    with("python3", job("a Unix socket in the workspace", "", &["python3 -c \"
import socket
s = socket.socket(socket.AF_UNIX); s.bind('sock'); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect('sock'); s.accept()[0].send(b'hello'); print(c.recv(5))\"", "rm sock; ls"])),
    with("python3", job("a Unix socket in /tmp", "", &["python3 -c \"
import os, socket, tempfile
p = tempfile.mkdtemp() + '/s'
s = socket.socket(socket.AF_UNIX); s.bind(p); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect(p); s.accept()[0].send(b'hello'); print(c.recv(5))\""])),
    with("python3", job("a forkserver and a manager", "", &["cat > f.py <<'E'
import multiprocessing as m
def f(q): q.put('from the child')
if __name__ == '__main__':
    c = m.get_context('forkserver'); q = c.Queue(); p = c.Process(target=f, args=(q,)); p.start(); print(q.get()); p.join()
    with m.Manager() as manager: d = manager.dict(); d['a'] = 1; print(dict(d))
E
python3 f.py"])),
    Job { path: &[".venv/bin"], ..with("python3", job("pip in the environment of the project", "python3 -m venv .venv", &["python3 - <<'E'
import zipfile
with zipfile.ZipFile('x-1-py3-none-any.whl', 'w') as w:
    w.writestr('x.py', 'def main(): print(\"x runs\")')
    d = 'x-1.dist-info/'
    w.writestr(d + 'METADATA', 'Metadata-Version: 2.1\\nName: x\\nVersion: 1\\n')
    w.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    w.writestr(d + 'entry_points.txt', '[console_scripts]\\nxrun = x:main\\n')
    w.writestr(d + 'RECORD', '')
E
pip install -q --no-index ./x-1-py3-none-any.whl 2>&1 && xrun", "xrun && pip uninstall -qy x && ls .venv/bin | grep -c xrun"])) },
    Job { path: &["node_modules/.bin"], ..with("npm", job("npm with a program of a package", "mkdir p && echo '{\"name\":\"p\",\"version\":\"1.0.0\",\"bin\":{\"prun\":\"p.js\"}}' > p/package.json && printf '#!/usr/bin/env node\\nconsole.log(1)\\n' > p/p.js && echo '{\"name\":\"w\",\"version\":\"1.0.0\"}' > package.json && mkdir -p node_modules/.bin", &["npm install -s --offline --no-audit ./p && prun", "npm uninstall -s --offline p && ls node_modules/.bin 2>/dev/null | wc -l"])) },
    with("make", job("make", "printf 'all:\\n\\t@echo made > out && cat out\\n' > Makefile", &["make && make -n"])),
];

/// What each command of a job said, and how it ended.
async fn played(job: &Job, walls: bool) -> String {
    let mut cell = Cell::outside_of_tmp();
    std::fs::write(cell.path("home/.gitconfig"), SETTINGS).unwrap();
    let dirs = job.path.iter().map(|dir| cell.path("ws").join(dir).display().to_string());
    let path = dirs.chain([cell.bench.ctx.env["PATH"].clone()]).collect::<Vec<_>>().join(":");
    for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
        cell.env(name, "2026-01-01T00:00:00Z");
    }
    let before = free(&cell, job.before).await;
    assert_eq!(before.0, Outcome::Exited(0), "{}: {}", job.name, before.1);
    cell.env("PATH", path);
    if job.path.iter().any(|dir| dir.starts_with(".venv")) {
        cell.env("VIRTUAL_ENV", cell.path("ws/.venv").display().to_string());
    }
    let mut all = String::new();
    for command in job.commands {
        let (outcome, text, said) = match walls {
            false => free(&cell, command).await,
            true => {
                let did = cell.run(command).await;
                (did.ended.outcome, did.text, did.ended.undone)
            }
        };
        let text = text.replace(&cell.path("").display().to_string(), "ROOT/");
        writeln!(all, "{outcome:?}\n{text}").unwrap();
        said.iter().for_each(|said| println!("{}: said: {said}", job.name));
    }
    all
}

async fn free(cell: &Cell, program: &str) -> (Outcome, String, Vec<String>) {
    let ctx = &cell.bench.ctx;
    let (cwd, env) = (ctx.cwd.clone(), ctx.env.clone());
    let (timeout, group) = (Duration::from_secs(120), StartGroup::default());
    let command = Command { program: program.into(), cwd, env, timeout, view: None, group };
    let sandbox = Sandbox { helper: ctx.helper.clone(), ..Sandbox::default() };
    let mut bytes = Vec::new();
    let ended = sandbox.run(&command, &cell.bench.cancel, |part| bytes.extend(part)).await;
    (ended.unwrap().outcome, String::from_utf8_lossy(&bytes).into_owned(), Vec::new())
}

fn is_here(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap();
    std::env::split_paths(&path)
        .any(|dir: std::path::PathBuf| Path::new(&dir).join(program).is_file())
}

#[tokio::test]
async fn every_job_of_an_ordinary_day_does_the_same_inside_as_outside() {
    if no_world_to_test() {
        return;
    }
    let only = std::env::var("YOI_JOB").unwrap_or_default();
    let mut other = String::new();
    for job in JOBS.iter().filter(|job| job.name.contains(&only)) {
        if !is_here(job.program) {
            println!("not covered: {}, no {} here", job.name, job.program);
            continue;
        }
        let (outside, inside) = (played(job, false).await, played(job, true).await);
        if outside != inside {
            writeln!(other, "== {}\n-- outside\n{outside}-- inside\n{inside}", job.name).unwrap();
        }
    }
    assert!(other.is_empty(), "{other}");
}
