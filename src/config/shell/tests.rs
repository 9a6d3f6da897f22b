use super::*;
use proptest::prelude::*;

mod differential;

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
    read.iter().map(|command| shown(&command.texts[0])).collect()
}

#[test]
fn each_command_of_pipelines_and_lists_of_literal_words_is_read() {
    let table: &[(&str, &[&str])] = &[
        ("a b; c && d || e & f | g |& h\ni", &["a b", "c", "d", "e", "f", "g", "h", "i"]),
        ("\n a &&\n\n b # c; d\n# e\nf;", &["a", "b", "f"]),
        ("git  push", &["git push"]),
        ("'git' p\"us\"h", &["git push"]),
        ("g\\it\tpush", &["git push"]),
        ("git 'push  now' \"\\$x\"", &["git push__now $x"]),
        ("A=1 B='c d' e f=g", &["A=1 B=c_d e f=g"]),
        ("a 2>&1 >/dev/null b &>c <d", &["a b"]),
        ("a $x \"${y}z\"", &["a··z"]),
        ("[ -f a ] && b *.c?", &["[ -f a ]", "b *.c?"]),
        ("a#b HEAD^ c,d e=f @x", &["a#b HEAD^ c,d e=f @x"]),
        ("a <<< b", &["a"]),
        ("'' a", &[" a"]),
        ("# a comment", &[]),
        ("", &[]),
    ];
    for (line, expected) in table {
        assert_eq!(commands(line), *expected, "{line}");
    }
    let spelled = &read("A=1 /bin/a b").unwrap()[0];
    let texts: Vec<String> = spelled.texts.iter().map(|text| shown(text)).collect();
    assert_eq!(texts, ["A=1 /bin/a b", "/bin/a b", "a b"]);
}

#[test]
fn any_other_form_is_not_read() {
    let long = "x".repeat(MAX_LINE + 1);
    assert_eq!(read(&long), Err(Unreadable::TooLong));
    for line in [
        "a $(b)",
        "a `b`",
        "a \"$(b)\"",
        "a \"`b`\"",
        "a {b,c}",
        "a {$(b),c}",
        "a <(b)",
        "a >(b)",
        "(a)",
        "{ a; }",
        "a() { b; }",
        "if a; then b; fi",
        "for PATH in a; do b; done",
        "while a; do b; done",
        "case a in b) c;; esac",
        "! a",
        "a !b",
        "time a",
        "coproc a",
        "[[ a ]]",
        "((a))",
        "a $((1))",
        "a ${x:-b}",
        "a ${x@P}",
        "a $'b'",
        "a $\"b\"",
        "a $1",
        "a $@",
        "$x a",
        "\"$x\" a",
        "a$x",
        "a*",
        "~/a",
        "a <<E\nb\nE",
        "a {x}>b",
        "a 123>b",
        "a > *",
        "a > $x",
        "a >",
        "a 'b",
        "a \"b",
        "a \\",
        "a \\\n b",
        "a &&",
        "; a",
        "a ;; b",
        "a & & b",
        "| a",
        "PATH=b a",
        "LD_PRELOAD=b a",
        "GIT_DIR=b a",
        "PATH=b",
        "x+=b a",
        "x[0]=b a",
        "eval a",
        "source a",
        ". a",
        "exec a",
        "command a",
        "builtin a",
        "trap a EXIT",
        "alias a=b",
        "sh a",
        "bash -c a",
        "a | sh",
        "xargs a",
        "env -S'a b'",
        "env -Sa b",
        "env $x",
        "env sh a",
        "timeout 5 bash -c a",
        "find . -exec sh -c a ';'",
        "ssh a b",
        "export PATH=b",
        "read PATH",
        "printf -v PATH b",
        "test -v 'x[$(a)]'",
        "[ -v 'x[$(a)]' ]",
        "test -v $x",
        "declare -i x=b",
        "let x=b",
        "set -k",
        "shopt -s extglob",
        "hash -p b a",
        "unset a",
        "a\u{a0}b",
        "a\rb",
        "a \u{1}",
        "a 'b\u{0}'",
        "a é",
    ] {
        assert_eq!(read(line), Err(Unreadable::NotLiteral), "{line}");
    }
}

#[test]
fn a_rule_with_a_wildcard_may_allow_only_what_is_known() {
    let known = |line: &str| read(line).unwrap().pop().unwrap().known.as_deref().map(shown);
    let of = |text: &str| Some(text.to_owned());
    assert_eq!(known("cargo test *.rs 2>&1 >/dev/null"), of("cargo test *.rs"));
    assert_eq!(known("A=1 cargo test"), of("A=1 cargo test"));
    for line in [
        "cargo $x",
        "cargo \"$x\"",
        "cargo > file",
        "cargo < file",
        "cargo <<< x",
        "cargo >& file",
        "cargo &> file",
        "cargo >| file",
        "env A=1 cargo test",
        "sudo cargo",
        "timeout 5 cargo",
        "find . -exec cargo ';'",
        "uv run cargo",
        "npx cargo",
        "/lib64/ld-linux-x86-64.so.2 /bin/cargo",
        "ld.so /bin/cargo",
    ] {
        assert_eq!(known(line), None, "{line}");
    }
}

#[test]
fn a_word_of_a_line_that_is_not_read_is_found_however_it_is_written() {
    let names = |line: &str| stands(line, |word| word == "frob");
    for line in [
        "echo {$(frob x),b}",
        "echo `frob`",
        "echo \"$(fr\"ob\" x)\"",
        "fr\\\nob x",
        "f\\r'o'b x",
        "(frob)",
        "x=$(frob)",
        "/usr/bin/frob x",
        "bash -c 'frob x'",
        "eval \"fr\"'ob'",
        "echo $((frob))",
        "a|frob",
        "a&frob",
        "<(frob)",
        "a[$(frob)]=1",
        "frob>x",
    ] {
        assert!(names(line), "{line}");
    }
    assert!(!names("echo frobs") && !names("a.frob.b"));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_and_ends_nothing(line in "\\PC{0,60}", shell in "[a-z $`'\"\\\\(){};&|<>\\n#=~*]{0,40}") {
        let _ = (read(&line), read(&shell));
        let _ = (named_commands(&line), named_commands(&shell));
    }
}
