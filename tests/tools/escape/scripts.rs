//! Scripts that were approved: what runs is what was approved, byte for byte.

use crate::bench::content;
use crate::escape::cell::{Cell, no_world_to_test};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use yoi::protocol::ScriptHash;
use yoi::scope::{Permission, Rule, Scope};
use yoi::tools::{MAX_SCRIPTS, command_needs};

/// A workspace with scripts in it.
fn cell() -> Cell {
    let cell = Cell::new();
    for name in ["build.sh", "sub/tool.py", "sub/run", "data.csv", "hook.js", "lib.rb", "-x"] {
        let path = cell.bench.file(name, "#!/bin/sh\necho approved\n");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    symlink("build.sh", cell.path("ws/link.sh")).unwrap();
    symlink(cell.path("outside/secret"), cell.path("ws/out.sh")).unwrap();
    fs::create_dir_all(cell.path("ws/sub/deep/er")).unwrap();
    symlink("sub/deep", cell.path("ws/to")).unwrap();
    cell
}

fn scripts(cell: &Cell, line: &str) -> Vec<ScriptHash> {
    let arguments = json!({ "command": line }).to_string();
    command_needs(&arguments, &cell.bench.ctx).scripts
}

#[test]
fn the_scripts_of_a_command_line_are_found_however_they_are_started() {
    let cell = cell();
    fs::create_dir_all(cell.path("ws/pack")).unwrap();
    cell.bench.file("pack/__main__.py", "print(1)");
    cell.bench.file("web/package.json", "{}");
    cell.bench.file("web/src/x.js", "");
    let table: [(&str, &[&str]); 61] = [
        ("cd web/src && npm run build", &["web/package.json"]),
        ("npm --prefix web test", &["package.json", "web/package.json"]),
        ("pnpm -C web run build", &["package.json", "web/package.json"]),
        ("yarn --cwd=web start", &["package.json", "web/package.json"]),
        ("A=1 npm test", &["package.json"]),
        ("npm view left-pad", &[]),
        ("yarn --version", &[]),
        ("./build.sh", &["build.sh"]),
        ("bash build.sh data.csv", &["build.sh"]),
        ("bash -x build.sh", &["build.sh"]),
        ("sh -e ./sub/run now", &["sub/run"]),
        ("python3.12 sub/tool.py", &["sub/tool.py"]),
        ("node -r ./hook.js sub/tool.py data.csv", &["hook.js", "sub/tool.py"]),
        ("source build.sh && . sub/run", &["build.sh", "sub/run"]),
        ("cd sub && ./run", &["sub/run"]),
        ("(cd sub; python3 tool.py); ./build.sh", &["build.sh", "sub/tool.py"]),
        ("env A=1 ./build.sh", &["build.sh"]),
        ("A=1 timeout 5 bash build.sh", &["build.sh"]),
        ("bash -c './build.sh; sub/run'", &["build.sh", "sub/run"]),
        ("echo $(./build.sh)", &["build.sh"]),
        ("'./build.sh'", &["build.sh"]),
        ("bash ./link.sh", &["build.sh"]),
        ("find . -name x -exec ./build.sh ';'", &["build.sh"]),
        ("bash to/../run", &["sub/run"]),
        ("cd to && ../run", &["sub/run"]),
        ("cd to/.. && ./build.sh", &["build.sh"]),
        ("cd -P to/.. && ./run", &["sub/run"]),
        ("cd sub/deep/er; cd ../..; cd ..; cd .; cd sub; cd deep; cd ..; ./run", &["sub/run"]),
        ("cd to/er; cd ..; cd ..; ./build.sh", &["build.sh"]),
        ("rbash build.sh", &["build.sh"]),
        ("trap ./build.sh EXIT", &["build.sh"]),
        ("BASH_ENV=build.sh bash -c :", &["build.sh"]),
        ("mawk -f data.csv", &["data.csv"]),
        ("sed -i s/a/b/ data.csv", &[]),
        ("sed -nf build.sh data.csv", &["build.sh"]),
        ("make -f sub/run all; make -fbuild.sh", &["build.sh", "sub/run"]),
        ("make --file=build.sh", &["build.sh"]),
        ("ruby -r./lib -e 1; ruby -r ./lib", &["lib.rb"]),
        ("uv run sub/tool.py", &["sub/tool.py"]),
        ("python3 pack; python3 -u ./pack/", &["pack/__main__.py"]),
        ("python3 -W ignore -u sub/tool.py data.csv", &["sub/tool.py"]),
        ("bash -eo pipefail build.sh data.csv", &["build.sh"]),
        ("bash +o posix -- build.sh", &["build.sh"]),
        ("bash --rcfile build.sh -i; bash --init-file=sub/run -i", &["build.sh", "sub/run"]),
        ("node hook; node .", &["", "hook.js"]),
        ("node --test hook.js 8080", &["hook.js"]),
        ("awk '{ print }' data.csv", &[]),
        ("awk -F: -v x=1 -f build.sh data.csv", &["build.sh"]),
        ("perl -lne print data.csv -w", &["data.csv"]),
        ("make all -f sub/run", &["sub/run"]),
        ("uv run -p 3.12 sub/tool.py", &["sub/tool.py"]),
        ("python3 - data.csv", &["data.csv"]),
        ("poetry run python sub/tool.py", &["sub/tool.py"]),
        ("node --require=./hook.js -e 1", &["hook.js"]),
        ("fish build.sh", &["build.sh"]),
        ("./out.sh", &[]),
        ("./missing.sh; bash missing.sh", &["missing.sh"]),
        ("cat build.sh", &[]),
        ("ls ./build.sh", &[]),
        ("bash ./sub", &[]),
        ("cargo test", &[]),
    ];
    for (line, expected) in table {
        let found: Vec<_> = scripts(&cell, line).into_iter().map(|script| script.path).collect();
        let mut expected: Vec<_> = expected.iter().map(|name| cell.path("ws").join(name)).collect();
        expected.sort();
        assert_eq!(found, expected, "{line}");
    }
}

/// A later run of the same line may start what the Pod has put there meanwhile.
#[test]
fn a_line_is_allowed_for_later_only_where_it_shows_what_it_starts() {
    let cell = cell();
    cell.bench.file("run.sh", "#!/bin/sh\n");
    cell.bench.file("notes.txt", "1\n");
    let table = [
        ("split --filter=./run.sh notes.txt", true),
        ("git -c alias.x='!./run.sh' x", true),
        ("git -c 'alias.x=!run.sh now' x", true),
        ("tar -I./run.sh -xf notes.txt", true),
        ("tar '--use-compress-program=perl -w notes.txt' -xf a", true),
        ("rsync -e ./run.sh a b", true),
        ("cat run.sh", true),
        ("find . -exec ./run.sh {} \\;", true),
        ("cd sub && split --filter=../run.sh notes.txt", true),
        ("strace python3 notes.txt", true),
        ("$PWD/run.sh", true),
        ("split --filter='$PWD/run.sh' notes.txt", true),
        ("split --filter='./r*.sh' notes.txt", true),
        ("for i in 1 2; do true; done", true),
        ("echo $x", true),
        ("split --filter=./missing.sh notes.txt", false),
        ("cargo fetch && cargo test 2>&1 | tail -n 5", false),
        ("cargo test --manifest-path=./notes.txt", false),
        ("git commit -m 'make it faster: a=b' notes.txt", false),
        ("curl -d @notes.txt 'https://example.org/a?b=1'", false),
        ("grep -rn 'x$' sub", false),
    ];
    let once = |line: &str| {
        let arguments = json!({ "command": line }).to_string();
        command_needs(&arguments, &cell.bench.ctx).may_run_another
    };
    for (line, expected) in table {
        assert_eq!(once(line), expected, "{line}");
    }
    let message = "Write a longer message, as a model does: with names, and signs. ".repeat(8);
    assert!(!once(&format!("git commit -m '{message}' notes.txt")));
    cell.bench.file("missing.sh", "echo 1");
    let line = "split --filter=./missing.sh notes.txt";
    assert!(!once(line));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(cell.path("ws/missing.sh"), mode).unwrap();
    assert!(once(line), "each use of a rule looks at the disk again");
}

/// A rule with a wildcard stands for what a program works on, and not for a program that it is handed.
#[test]
fn the_words_that_hand_a_program_of_the_pod_to_another_one_are_known() {
    let cell = cell();
    cell.bench.file("run.sh", "#!/bin/sh\n");
    cell.bench.file("notes.txt", "1\n");
    let elf = |kind: u8| format!("\x7fELF{}{}\0", "\0".repeat(12), char::from(kind));
    cell.bench.file("load.so", elf(3));
    cell.bench.file("part.o", elf(1));
    let table: [(&str, &[&str]); 22] = [
        ("own --filter=./run.sh f", &["--filter=./run.sh"]),
        ("own -f ./run.sh f", &["-f", "./run.sh"]),
        ("own -f./run.sh f", &["-f./run.sh"]),
        ("own '!./run.sh' f", &["!./run.sh"]),
        ("own x::./run.sh", &["x::./run.sh"]),
        ("own -f './r*.sh'", &["-f", "./r*.sh"]),
        ("own --with=sh notes.txt", &["notes.txt"]),
        ("own --with sh notes.txt", &["notes.txt"]),
        ("own --with '/bin/sh -e' x notes.txt", &["notes.txt"]),
        ("own --with -v --own=python3 notes.txt", &["notes.txt"]),
        ("own '-TTsh notes.txt' f", &["-TTsh notes.txt"]),
        ("own -plugin ./load.so", &["-plugin", "./load.so"]),
        ("own -Wl,-plugin,./load.so", &["-Wl,-plugin,./load.so"]),
        ("own -o part.o", &[]),
        ("own load.so", &[]),
        ("own -n sh notes.txt", &[]),
        ("own sh notes.txt", &[]),
        ("own --message='sh is old' notes.txt", &[]),
        ("own --level=short notes.txt", &[]),
        ("own upload run.sh", &[]),
        ("own --clobber=true run.sh", &[]),
        ("./run.sh a", &[]),
    ];
    for (line, expected) in table {
        let arguments = json!({ "command": line }).to_string();
        assert_eq!(command_needs(&arguments, &cell.bench.ctx).handed, expected, "{line}");
    }
}

/// The mount of the approved copy does not stop a process in another view that renames a directory.
#[test]
fn a_script_that_another_pod_may_exchange_is_marked() {
    let mut cell = cell();
    cell.bench.file("lent/dir/x.sh", "echo approved");
    cell.bench.file("own/x.sh", "echo approved");
    symlink("../own", cell.path("ws/lent/link")).unwrap();
    symlink("lent/dir", cell.path("ws/into")).unwrap();
    let all = cell.bench.ctx.scope.clone();
    let lent = Rule::new(cell.path("ws/lent"), Permission::Write);
    let parent = Scope { deny: vec![lent], ..all.clone() };
    let read = Rule::new(cell.path("ws"), Permission::Read);
    let child = Scope::new(vec![read, Rule::new(cell.path("ws/own"), Permission::Write)]);
    let beside = vec![cell.path("ws/lent")];
    let around = vec![cell.path("ws")];
    let file = vec![cell.path("ws/lent/dir/x.sh")];
    let storage = vec![cell.path("")];
    let table = [
        (&parent, &beside, "bash lent/dir/x.sh", true),
        (&parent, &beside, "cd lent/dir && ./x.sh", true),
        (&parent, &beside, "cd lent && bash dir/../link/x.sh", true),
        (&parent, &beside, "bash lent/link/x.sh", true),
        (&parent, &beside, "bash into/../../own/x.sh", true),
        (&parent, &beside, "bash own/x.sh", false),
        (&parent, &file, "bash lent/dir/x.sh", false),
        (&parent, &Vec::new(), "bash lent/dir/x.sh", false),
        (&child, &around, "bash lent/dir/x.sh", true),
        (&child, &around, "bash own/x.sh", false),
        (&all, &beside, "bash lent/dir/x.sh", false),
        (&all, &storage, "bash /tmp/x.sh", false),
    ];
    fs::create_dir_all(cell.path("private/tmp")).unwrap();
    fs::write(cell.path("private/tmp/x.sh"), "echo approved").unwrap();
    for (scope, others, line, marked) in table {
        cell.bench.ctx.scope = scope.clone();
        cell.bench.ctx.others = others.clone();
        let found = scripts(&cell, line);
        let (marks, contents): (Vec<_>, Vec<_>) =
            found.into_iter().partition(ScriptHash::is_unheld);
        assert!(contents.len() == 1 && contents[0].is_content(), "{line}: {contents:?}");
        assert_eq!(marks.iter().map(|mark| &mark.path).eq([&contents[0].path]), marked, "{line}");
    }
}

/// A model could else choose by their names which scripts are compared.
#[test]
fn a_line_with_more_scripts_than_a_person_can_judge_has_one_without_a_content() {
    let cell = cell();
    let names = (0..=MAX_SCRIPTS).map(|n| format!("s{n}"));
    let line = |names: Vec<String>| {
        names.iter().for_each(|name| drop(cell.bench.file(name, "echo 1\n")));
        names.iter().map(|name| format!("./{name};")).collect::<String>()
    };
    let found = scripts(&cell, &line(names.clone().take(MAX_SCRIPTS).collect()));
    assert!(found.len() == MAX_SCRIPTS && !found.iter().any(ScriptHash::is_unread));
    let found = scripts(&cell, &line(names.collect()));
    assert!(found.len() > MAX_SCRIPTS && found.iter().any(ScriptHash::is_unread));
}

#[test]
fn an_address_is_no_script_whatever_its_letters() {
    let cell = cell();
    for path in ["x", "ü", "日本"] {
        let line = format!("curl -s https://api.example.com/{path}");
        assert!(scripts(&cell, &line).is_empty(), "{line}");
    }
    cell.bench.file("https:/api.example.com/ü", "echo 1\n");
    let found = scripts(&cell, "https://api.example.com/ü");
    assert_eq!(found.len(), 1, "a file of that name would run");
}

/// The content is unknown if the command itself creates the script or makes it readable.
#[test]
fn a_script_that_cannot_be_read_yet_is_named_without_a_content() {
    let cell = cell();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        cell.path("ws/pipe.sh"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    for line in [
        "cp build.sh later.sh; bash later.sh",
        "bash -eu later.sh",
        "mv x later.sh && ./later.sh",
        "python3 later.sh",
        "source later.sh",
        "rm pipe.sh; mv build.sh pipe.sh; bash pipe.sh",
    ] {
        let found = scripts(&cell, line);
        let [script] = found.as_slice() else { panic!("{line}: {found:?}") };
        assert!(script.is_unread(), "{line}: {found:?}");
    }
    for line in [
        "python3 -u later.sh",
        "python3 -W ignore later.sh data.csv",
        "python3 sub -x",
        "bash -o pipefail later.sh",
        "bash --rcfile later.sh -i",
        "bash - later.sh",
        "BASH_ENV=later.sh bash -c :",
        "ENV=./later.sh sh -ic :",
        "awk -f later.sh data.csv",
        "sed -nf later.sh data.csv",
        "make -f later.sh all; make --makefile=later.sh",
        "node later.sh; node --inspect later.sh 8080",
        "node -r ./later.sh -e 1",
        "perl -w later.sh",
        "ruby -w later.sh",
        "tclsh later.sh; tclsh -encoding utf-8 later.sh",
        "fish later.sh; fish -C : later.sh",
        "php -f later.sh",
        "lua -e 'x = 1' later.sh",
        "deno run -A later.sh",
        "uv run --with x later.sh",
    ] {
        let found = scripts(&cell, line);
        let [script] = found.as_slice() else { panic!("{line}: {found:?}") };
        assert!(script.is_unread(), "{line}: {found:?}");
    }
    for line in [
        "python3 -m later",
        "python3 - <<< later",
        "bash -c later",
        "bash -eo pipefail -c later",
        "perl -lne 'print' later",
        "ruby -r json -e 1",
        "node -r dotenv/config -e 1",
        "uv pip install later==2.1",
        "bun install",
        "ENV=prod make",
        "awk later",
        "gdb -ex run later",
    ] {
        assert_eq!(scripts(&cell, line), [], "{line}");
    }
}

#[tokio::test]
async fn a_script_that_changed_since_it_was_approved_is_not_run() {
    let mut cell = cell();
    cell.scripts = scripts(&cell, "./build.sh");
    assert_eq!(cell.run("./build.sh").await.well(), "approved\n");
    fs::write(cell.path("ws/build.sh"), "echo other").unwrap();
    let refused = cell.try_run("./build.sh").await.unwrap_err().to_string();
    assert!(refused.contains("build.sh changed since it was approved"), "{refused}");
}

#[tokio::test]
async fn many_large_scripts_are_approved_and_run() {
    let mut cell = cell();
    let names: Vec<String> = (0..10).map(|index| format!("./large-{index}.sh")).collect();
    for name in &names {
        let text = format!("#!/bin/sh\necho run\nexit\n{}", "#".repeat(1_000_000));
        cell.bench.file(name, &text);
        fs::set_permissions(cell.path("ws").join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let line = names.join("; ");
    cell.scripts = scripts(&cell, &line);
    assert_eq!(cell.scripts.len(), 10);
    assert_eq!(cell.run(&line).await.well(), "run\n".repeat(10));
}

#[tokio::test]
async fn a_command_does_not_exchange_the_script_that_was_approved_with_it() {
    let mut cell = cell();
    if no_world_to_test() {
        return;
    }
    cell.scripts = scripts(&cell, "./build.sh");
    cell.bench.file("evil", "#!/bin/sh\necho evil\n");
    for exchange in
        ["cp evil build.sh", "mv -f evil build.sh", "rm -f build.sh", "echo x >> build.sh"]
    {
        let did = cell.run(&format!("{{ {exchange}; }} 2>&-; ./build.sh; bash build.sh")).await;
        assert_eq!(did.well(), "approved\napproved\n", "{exchange}");
    }
    let kept = fs::read_to_string(cell.path("ws/build.sh")).unwrap();
    assert_eq!(kept, "#!/bin/sh\necho approved\n");
    // Beside the script everything is as ever.
    assert_eq!(
        cell.run("echo x > new && cat new && ls -a / | grep -c script").await.text,
        "x\n0\n"
    );
}

#[tokio::test]
async fn bash_runs_the_script_that_its_grant_names() {
    let mut cell = cell();
    cell.bench.ctx.scripts = scripts(&cell, "./build.sh");
    assert_eq!(content(&cell.bench.bash("./build.sh").await), "approved\n");
    fs::write(cell.path("ws/build.sh"), "echo other").unwrap();
    let output = cell.bench.bash("./build.sh").await;
    assert!(
        output.is_error && output.summary.contains("changed since it was approved"),
        "{output:?}"
    );
}

#[test]
fn each_of_many_scripts_of_a_line_is_compared() {
    let cell = cell();
    let names: Vec<String> = (0..40).map(|n| format!("many/{n}.sh")).collect();
    for name in &names {
        cell.bench.file(name, "echo");
    }
    let line: Vec<String> = names.iter().map(|name| format!("bash {name}")).collect();
    assert_eq!(scripts(&cell, &line.join("; ")).len(), names.len());
}

#[test]
fn behind_a_cd_a_script_is_the_one_that_lies_where_the_command_is() {
    let cell = Cell::outside_of_tmp();
    let kept = |name: &str| {
        let path = cell.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("echo {name}")).unwrap();
        path
    };
    let (ours, tmp) = (kept("ws/deploy.sh"), kept("private/tmp/deploy.sh"));
    symlink("/tmp/deploy.sh", cell.path("private/tmp/link")).unwrap();
    let table: [(&str, &[_]); 11] = [
        ("cd /tmp && ./deploy.sh", &[&tmp]),
        ("cd /tmp && cd - && ./deploy.sh", &[&tmp, &ours]),
        ("cd /tmp; ./deploy.sh", &[&tmp, &ours]),
        ("bash /tmp/deploy.sh", &[&tmp]),
        ("cd /tmp && bash link", &[&tmp]),
        ("./deploy.sh; cd /tmp", &[&ours]),
        ("cd $X && ./deploy.sh", &[]),
        ("cd \"$(mktemp -d)\" && bash deploy.sh", &[]),
        ("cd $X && bash /tmp/deploy.sh", &[&tmp]),
        ("CDPATH=/ cd tmp && ./deploy.sh", &[]),
        ("cd && ./deploy.sh", &[]),
    ];
    for (line, expected) in table {
        let found: Vec<_> = scripts(&cell, line).into_iter().map(|script| script.path).collect();
        let found: Vec<_> = found.iter().collect();
        assert_eq!(found, expected, "{line}");
    }
}

#[tokio::test]
async fn scripts_in_what_the_pod_keeps_are_compared_and_held() {
    let mut cell = Cell::outside_of_tmp();
    if no_world_to_test() {
        return;
    }
    fs::create_dir_all(cell.path("home/.cache")).unwrap();
    cell.run("mkdir /tmp/d").await.well();
    for place in ["/tmp/d/x.sh", "~/.cache/x.sh"] {
        cell.scripts.clear();
        let write = |text: &str| format!("echo 'echo {text}' > {place}");
        cell.run(&write("approved")).await.well();
        let line = format!("bash {place}");
        cell.scripts = scripts(&cell, &line);
        assert_eq!(cell.scripts.len(), 1, "{place}");
        let exchange = format!("{{ {}; rm -f {place}; }} 2>&-; {line}", write("evil"));
        assert_eq!(cell.run(&exchange).await.well(), "approved\n", "{place}");
        let approved = std::mem::take(&mut cell.scripts);
        assert_eq!(cell.run(&line).await.well(), "approved\n", "{place}");
        cell.run(&write("other")).await.well();
        cell.scripts = approved;
        let refused = cell.try_run(&line).await.unwrap_err().to_string();
        assert!(refused.contains("changed since it was approved"), "{refused}");
    }
}
