use super::*;
use proptest::prelude::*;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// A command as text: `·` is an unknown part, a blank inside a word is `_`.
fn shown(pieces: &[Piece]) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Char(' ') => '_',
        Piece::Char(c) | Piece::Expands(c) => *c,
        Piece::Blank => ' ',
        Piece::Unknown => '·',
    };
    pieces.iter().map(piece).collect()
}

/// The first text of each command of a line.
fn commands(line: &str) -> Vec<String> {
    let read = read(line).unwrap_or_else(|why| panic!("{line}: {why:?}"));
    read.iter()
        .map(|command| command.texts.last().map_or("calculation".into(), |t| shown(t)))
        .collect()
}

/// The texts of each command that a rule with a wildcard can match.
fn known(line: &str) -> Vec<Option<String>> {
    read(line).unwrap().iter().map(|command| command.known.as_deref().map(shown)).collect()
}

#[test]
fn every_command_of_a_line_is_found_wherever_it_stands() {
    let table: &[(&str, &[&str])] = &[
        ("a b; c && d || e & f | g |& h\ni", &["a b", "c", "d", "e", "f", "g", "h", "i"]),
        ("(a; b) && { c; }", &["a", "b", "c"]),
        ("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]),
        ("while a; do b; done; until c; do d; done", &["a", "b", "c", "d"]),
        ("for i in $(a) b; do c; done", &["a", "c"]),
        ("case $(a) in x$(b)) c;; *) d;; esac", &["a", "b", "c", "d"]),
        ("f() { a; }; function g { b; }; coproc c; ! d; time e", &["a", "b", "c", "d", "e"]),
        ("a $(b $(c)) \"$(d)\" `e` <(f) >(g)", &["c", "b ·", "d", "e", "f", "g", "a · · · · ·"]),
        ("x=$(a) b", &["a", "b"]),
        ("a > $(b) 2>&1 <<< $(c)", &["b", "c", "a"]),
        ("a <<E; b\n$(c)\nE", &["·", "a", "b"]),
        ("[[ -n $(a) ]] && (( $(b) ))", &["calculation", "·", "calculation", "·"]),
        ("a ${x:-$(b)} ${ c; } $((d[$(e)]))", &["·", "·", "·", "a · · ·"]),
        ("sh -c 'a; b'", &["sh -c a;_b", "a", "b"]),
        ("sudo -u x bash -O extglob -c 'a b'", &["a_b", "a b"]),
        ("echo a | sh", &["echo a", "sh", "·"]),
        ("bash <<E\na b\nE", &["bash", "a b"]),
        ("bash <<A 3<<B\na b\nA\nls\nB", &["bash", "a b"]),
        ("bash 3<<<ls", &["bash", "·"]),
        ("bash <<<ls <script", &["bash", "·"]),
        ("bash <script <<<'a b'", &["bash", "a b"]),
        ("bash <&3 3<<<ls", &["bash", "·"]),
        ("bash <<<ls 0<&3-", &["bash", "·"]),
        ("bash {fd}<<A\nls\nA", &["bash", "ls", "·"]),
        ("bash /dev/stdin <<<'a b'", &["bash /dev/stdin", "a b"]),
        ("bash /dev/fd/3 <<<ls 3<<<'a b'", &["bash /dev/fd/3", "·"]),
        ("cd /dev; bash fd/3 3<<<'a b'", &["cd /dev", "bash fd/3", "·"]),
        ("bash dev/setup.sh", &["bash dev/setup.sh"]),
        ("bash <<A\na\\\\t b\nA", &["bash", "·"]),
        ("x='a[$(b)]'; echo $((x))", &["·", "x=a[$(b)]", "echo ·", "·"]),
        ("for x in 'a[$(b)]'; do ((x)); done", &["·", "calculation", "·"]),
        ("read x <<<'a[$(b)]'", &["read x", "·"]),
        ("trap a EXIT", &["trap a EXIT", "a"]),
        ("trap -- 'a b' 0 2", &["trap -- a_b 0 2", "a b"]),
        ("trap - INT; trap INT; trap -p", &["trap - INT", "trap INT", "trap -p"]),
        ("eval -- a b", &["eval -- a b", "a b"]),
        ("env -S'a b'", &["-Sa_b", "a b"]),
        ("env -iS'a b' c", &["c", "a b"]),
        ("env --split-string='a b'", &["--split-string=a_b", "a b"]),
        (": '$(a)'; b \"${_@P}\"", &[": $(a)", "·", "b ·"]),
        ("set -- 'a[$(b)]'; echo $(($1))", &["set -- a[$(b)]", "echo ·", "·"]),
        ("f() { local -i z=$1; }; f 'a[$(b)]'", &["local -i z=·", "f a[$(b)]", "·"]),
        ("hash -p /bin/a b; b", &["hash -p /bin/a b", "·", "b"]),
        ("hash -r", &["hash -r"]),
        ("BASH_ALIASES[a]='b c'; a", &["·", "BASH_ALIASES[a]=b_c", "a"]),
        ("BASH_ENV=x bash -c :", &["·", "bash -c :", ":"]),
        ("mapfile -C 'a b' x", &["mapfile -C a_b x", "a b ·"]),
        ("eval a 'b; c'", &["eval a b;_c", "a b", "c"]),
        ("eval $x", &["eval ·", "·"]),
        ("trap 'a b' EXIT", &["trap a_b EXIT", "a b"]),
        ("alias x='a b'", &["alias x=a_b", "·"]),
        ("printf -v 'x[$(a)]' y", &["printf -v x[$(a)] y", "·"]),
        ("# a comment", &[]),
    ];
    // The last text of a starter is its innermost command.
    let wrong = table.iter().filter(|(line, expected)| commands(line) != *expected);
    let wrong: Vec<_> = wrong.map(|(line, _)| (line, commands(line))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Each of them makes bash run `frob`.
const RUN_FROB: &[&str] = &[
    "echo `echo \\`frob x\\``",
    "echo \"`echo \\`frob x\\``\"",
    "echo `echo \\`echo \\\\\\`frob x\\\\\\`\\``",
    "echo \"`\\\"frob\\\" x`\"",
    "echo '`'`echo \\`frob x\\``",
    "echo ${x}`echo \\`frob x\\``",
    "echo `echo '`; frob x; echo `'`",
    "echo `echo \"`; frob x; echo `\"`",
    "echo `echo # `; frob x # `",
    "echo $(:)`echo '`; frob x; echo `'`",
    "x=`echo \\`frob x\\``",
    "echo > `echo \\`frob x\\``",
    "echo $((echo a; frob x) )",
    "echo \"$((echo a; frob x) )\"",
    "x=$(( (1) ); frob x)",
    "echo $((echo a); (frob x))",
    "echo $((echo \"(\"); frob x; (echo \")\"))",
    "echo $((echo \"))\"; frob x) )",
    "((echo a); (frob x))",
    "((echo a; frob x) )",
    "cat <<A\n$((echo a; frob x) )\nA",
    "time -- frob x",
    "time -p -- frob x",
    "time -- A=1 frob x",
    "! time -- frob x",
    "time -- eval 'frob x'",
    "mapfile -C frob -c1 a <<< x",
    "mapfile -Cfrob -c1 a <<< x",
    "readarray -tC frob -c1 a <<< x",
    "readarray -c1 -C'frob x' a <<< x",
    "mapfile -c1 -C 'eval :' a <<< ';frob'",
    "compgen -C frob a",
    "compgen -W '`frob`' a",
    "builtin compgen -Cfrob a",
    "history -s frob; fc -s",
    "jobs -x frob x",
    "trap $(echo frob EXIT)",
    "builtin trap frob EXIT",
    "command eval frob",
];

#[test]
fn each_command_that_bash_runs_may_be_what_a_rule_denies() {
    let runs = |line: &str| run_by_bash(line).unwrap().iter().any(|run| run[0] == "frob");
    let shows = |text: &str| text.starts_with("frob") || text.starts_with('·');
    let may_be = |text: &Vec<Piece>| shows(&shown(text));
    let is_found = |line: &str| match read(line) {
        Ok(read) => read.iter().any(|command| command.texts.iter().any(may_be)),
        Err(_) => true,
    };
    let wrong: Vec<_> = RUN_FROB.iter().filter(|line| !runs(line) || !is_found(line)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn arguments_that_no_builtin_evaluates_are_no_commands() {
    for (line, expected) in [
        ("mapfile -t a < b", &["mapfile -t a"][..]),
        ("complete -F a -o default b", &["complete -F a -o default b"]),
        ("complete -W 'a b' c", &["complete -W a_b c"]),
        ("complete -C 'a b' c", &["complete -C a_b c", "a b ·"]),
        ("enable -n a", &["enable -n a"]),
        ("bind -p", &["bind -p"]),
        ("bind -x '\"a\": b'", &["bind -x \"a\":_b", "·"]),
        ("enable -f ./a.so a", &["enable -f ./a.so a", "·"]),
        ("a $((1 + (2 * 3))) $(( \"$x\" + 16#ff )) \"$(( (y) ))\"", &["a · · ·"]),
        ("((x = (1 + 2) * 3))", &["calculation"]),
        ("a `b '(' \"$x\"` \"`c # d`\"", &["b ( ·", "c", "a · ·"]),
        ("a `b \\$x`", &["b ·", "b $x", "a ·"]),
    ] {
        assert_eq!(commands(line), expected, "{line}");
    }
}

#[test]
fn words_are_compared_without_their_quotes_and_blanks() {
    for spelled in [
        "git  push",
        "'git' push",
        "g\\it pu\"s\"h",
        "\"git\"\tpush",
        "git \\\n push",
        "git $'push'",
    ] {
        assert_eq!(commands(spelled), ["git push"], "{spelled}");
    }
    assert_eq!(commands("git 'push  now'"), ["git push__now"]);
    assert_eq!(commands("A=1 git push"), ["git push"]);
}

#[test]
fn the_command_that_a_program_starts_is_one_of_the_texts() {
    let has = |line: &str, text: &str| {
        let read = read(line).unwrap();
        let mut texts = read.iter().flat_map(|command| &command.texts);
        texts.any(|found| shown(found) == text)
    };
    for line in [
        "sudo git push",
        "env -i A=b git push",
        "timeout -k 5 10 nice -n 3 /usr/bin/git push",
        "/usr/bin/git push",
        "find . -exec git push \\;",
        "xargs -0 git push",
        "command git push",
        "nohup setsid git push &",
        "prlimit --nofile=100 git push",
        "linux64 git push",
        "pkexec git push",
        "ls | entr -r git push",
        "/lib64/ld-linux-x86-64.so.2 /usr/bin/git push",
        "uv --quiet run git push",
        "poetry run git push",
        "bundle exec git push",
        "npm exec -- git push",
        "npx git push",
    ] {
        let text = if line.contains("find") { "git push ; ·" } else { "git push" };
        assert!(has(line, text) || has(line, "git push ·"), "{line}: {:?}", read(line));
    }
    for line in ["uv sync git push", "bundle install git push", "npm test git push"] {
        assert!(!has(line, "git push"), "{line}: {:?}", read(line));
    }
}

#[test]
fn a_word_that_a_program_puts_in_its_place_may_be_any() {
    for line in [
        "xargs -I% git % <<< push",
        "xargs -n1 -rI % git % <<< push",
        "xargs -i% git % <<< push",
        "xargs --replace=% git % <<< push",
        "xargs --repl=@ git @ <<< push",
        "find . -exec git {} +",
        "parallel git {} ::: push",
        "parallel git ::: push",
        "parallel -j1 git :::: list",
    ] {
        let read = read(line).unwrap();
        let texts: Vec<String> =
            read.iter().flat_map(|command| &command.texts).map(|text| shown(text)).collect();
        let may_be = |text: &String| text.starts_with("git ·");
        assert!(texts.iter().any(may_be), "{line}: {texts:?}");
    }
    let whole = read("parallel ::: reboot").unwrap();
    assert!(whole[0].texts.iter().any(|text| shown(text).starts_with("reboot")), "{whole:?}");
    assert_eq!(commands("hyperfine 'a b' 'c d'"), ["c_d", "a b", "c d"]);
    assert_eq!(commands("sg group -c 'a b'"), ["a_b", "a b"]);
}

#[test]
fn a_rule_with_a_wildcard_may_allow_only_what_is_known() {
    let of = |text: &str| Some(text.to_owned());
    assert_eq!(known("cargo test *.rs 2>&1 >/dev/null"), [of("cargo test *.rs")]);
    assert_eq!(known("A=1 cargo test"), [of("A=1 cargo test")]);
    for unknown in [
        "cargo $x",
        "cargo \"$x\"",
        "cargo $(x)",
        "cargo > file",
        "cargo < file",
        "cargo <<< x",
        "cargo >& file",
        "cargo &> file",
        "cargo $'x'",
        "cargo <(x)",
        "cargo >| file",
        "$x",
    ] {
        assert_eq!(known(unknown).last().unwrap(), &None, "{unknown}");
    }
}

#[test]
fn a_line_that_is_too_long_too_nested_or_no_shell_is_not_read() {
    assert_eq!(read(&"x".repeat(MAX_LINE + 1)), Err(Unreadable::TooLong));
    assert_eq!(read(&"a $(".repeat(40)), Err(Unreadable::TooNested));
    for line in ["a '", "if a", "a )", "(a", "a &&"] {
        assert_eq!(read(line), Err(Unreadable::NotShell), "{line}");
    }
}

#[test]
fn the_deepest_line_of_each_form_is_read_without_ending_the_program() {
    let nested = |open: &str, close: &str| {
        let times = MAX_LINE / (open.len() + close.len()) - 2;
        format!("{} a {}", open.repeat(times), close.repeat(times))
    };
    let pairs = [
        ("(", ")"),
        ("{ ", ";}"),
        ("if ", "; then b; fi"),
        ("! ", ""),
        ("time ", ""),
        ("f() ", ""),
        ("[[ ! ", ""),
        ("[[ ( ", ")"),
        ("((", "))"),
        ("case a in b) ", ";; esac"),
        ("{a,", "}"),
        ("while ", "; do b; done"),
        ("a=(", ")"),
        ("1>", ""),
        ("env ", ""),
        ("sudo sh -c ", ""),
        ("a | ", ""),
        ("a <<E ", ""),
        ("$((", "))"),
        ("\\", ""),
        ("'", ""),
        ("\"", ""),
    ];
    for (open, close) in pairs {
        let _ = read(&nested(open, close));
        let _ = read(&format!("[[ {} ]]", nested(open, close).get(..MAX_LINE - 8).unwrap_or("")));
        let _ = read(&format!("(( {} ))", nested(open, close).get(..MAX_LINE - 8).unwrap_or("")));
    }
    let deep = format!("{}a{}", "a $(".repeat(MAX_SUBSTITUTIONS), ")".repeat(MAX_SUBSTITUTIONS));
    // The parser opens the first few; the rest may be anything.
    assert!(read(&deep).unwrap().contains(&SimpleCommand::unknown()));
}

/// Text in which the characters that mean something to a shell are common.
fn lines() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "aa",
        "bb",
        "cc",
        "'",
        "\"",
        "\\",
        "$",
        "`",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "[[",
        "]]",
        ";",
        "&",
        "|",
        "<",
        ">",
        "\n",
        " ",
        " ",
        " ",
        " ",
        "#",
        "!",
        "=",
        "*",
        "?",
        "~",
        ",",
        "if ",
        "then ",
        "fi",
        "for x in ",
        "do ",
        "done",
        "case x in ",
        "esac",
        "function ",
        "eval ",
        "sh -c ",
        "time ",
        "$(",
        "<(",
        "${",
        "$((",
        "))",
        "<<E\n",
        "E\n",
        "<<<",
        "2>&1",
        "&&",
        "||",
        ";;",
        "é",
        "\r",
        "\t",
        "x=",
        "x",
        "1",
    ]);
    prop::collection::vec(word, 1..14).prop_map(|words| words.concat())
}

/// The argument lists that bash runs for a line; `None` where it runs too many or ends with the
/// line. No program is run: bash calls a handler for each name that is not a builtin.
fn run_by_bash(line: &str) -> Option<Vec<Vec<String>>> {
    let dir = tempfile::tempdir().unwrap();
    // Each call writes a file of its own, because the commands of a pipeline run at the same time
    // in different processes.
    let script = "command_not_found_handle() { printf '%s\\0' \"$@\" > \"$LOG/$BASHPID\"; return 1; }\n\
                  PATH=/nowhere\nFUNCNEST=3\nulimit -t 1\n";
    let log = dir.path().join("log");
    std::fs::create_dir(&log).unwrap();
    std::fs::create_dir(dir.path().join("cwd")).unwrap();
    let mut bash = Command::new("/bin/bash")
        .args(["--norc", "--noprofile", "-c", &format!("{script}\nsource /dev/stdin")])
        .env_clear()
        .env("LOG", &log)
        .current_dir(dir.path().join("cwd"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    bash.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
    bash.wait().unwrap();
    let runs: Vec<Vec<String>> = std::fs::read_dir(log)
        .unwrap()
        .map(|run| {
            let run = std::fs::read(run.unwrap().path()).unwrap();
            let words = String::from_utf8_lossy(&run).into_owned();
            words.split('\0').filter(|word| !word.is_empty()).map(str::to_owned).collect()
        })
        .filter(|run: &Vec<String>| !run.is_empty())
        .collect();
    (runs.len() < 100).then_some(runs)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_read_or_refused_and_ends_nothing(line in "\\PC{0,60}", shell in lines()) {
        let _ = read(&line);
        let _ = read(&shell);
        let _ = read(&format!("{shell}{line}"));
    }

    /// Bash runs exactly the commands that the parser found in a line without unknown parts.
    #[test]
    fn bash_runs_no_command_that_was_not_read(line in lines()) {
        let Ok(read) = read(&line) else { return Ok(()) };
        let texts: Vec<Vec<Piece>> = read.iter().filter_map(|command| command.known.clone()).collect();
        if texts.len() != read.len() || texts.iter().flatten().any(|p| matches!(p, Piece::Expands(_))) {
            return Ok(());
        }
        let Some(runs) = run_by_bash(&line) else { return Ok(()) };
        for run in runs {
            let words = run.iter().map(|word| word.replace(' ', "_")).collect::<Vec<_>>().join(" ");
            let found = texts.iter().any(|text| {
                // The handler does not report empty words.
                let words_of = shown(text);
                let text: Vec<&str> = words_of.split(' ').filter(|word| !word.is_empty()).collect();
                let text = text.join(" ");
                text == words || text.ends_with(&format!(" {words}"))
            });
            prop_assert!(found, "bash runs {words:?} of {line:?}, which was read as {read:?}");
        }
    }
}
