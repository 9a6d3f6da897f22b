//! Read.

use crate::bench::{Bench, argument_error, content};
use serde_json::json;
use std::fs;

#[tokio::test]
async fn lines_come_with_their_numbers_and_a_mark_of_the_content() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "one\ntwo\r\n日本語👩‍💻é");
    let output = bench.read(&path).await;
    assert_eq!(output.summary, format!("Read 3 line(s) from {}", path.display()));
    assert_eq!(content(&output), "     1\tone\n     2\ttwo\n     3\t日本語👩‍💻é\n");
    let hash = blake3::hash(&fs::read(&path).unwrap()).to_hex().to_string();
    assert_eq!((&output.files[0].path, &output.files[0].hash), (&path, &hash));
    assert_eq!(output.files[0].before, None);
}

#[tokio::test]
async fn a_part_says_which_and_how_to_go_on() {
    let mut bench = Bench::new();
    let text: String = (1..=10).map(|n| format!("line {n}\n")).collect();
    let path = bench.file("a.txt", text);
    let output = bench.call("Read", json!({"file_path": path, "offset": 3, "limit": 2})).await;
    assert_eq!(output.summary, format!("Read 2 line(s) from {} (4-5 of 10)", path.display()));
    let expected = "     4\tline 4\n     5\tline 5\n[5 more line(s); continue with offset 5]";
    assert_eq!(content(&output), expected);
    let output = bench.call("Read", json!({"file_path": path, "offset": 10})).await;
    assert!(argument_error(&output).starts_with("offset 10 is past the end"));
}

#[tokio::test]
async fn a_relative_path_begins_at_the_working_directory_and_the_result_names_the_absolute_one() {
    let mut bench = Bench::new();
    fs::create_dir_all(bench.path("ws/src")).unwrap();
    let path = bench.file("src/a.txt", "one\n");
    let shown = path.display();
    for name in ["src/a.txt", "./src/a.txt", "src/../src/a.txt"] {
        let output = bench.call("Read", json!({"file_path": name})).await;
        assert_eq!(output.summary, format!("Read 1 line(s) from {shown}"), "{name}");
    }
    let change = json!({"file_path": "src/a.txt", "old_string": "one", "new_string": "two"});
    let edited = bench.call("Edit", change).await;
    assert_eq!(edited.summary, format!("Edited {shown} (1 replacement(s))"));
    let made = bench.call("Write", json!({"file_path": "new/b.txt", "content": "two\n"})).await;
    let new = bench.path("ws/new/b.txt");
    assert_eq!(made.summary, format!("Created {} (4 bytes)", new.display()));
    assert_eq!(fs::read_to_string(&new).unwrap(), "two\n");
    let found = bench.call("Grep", json!({"pattern": "two", "path": "src"})).await;
    assert!(content(&found).contains("a.txt"), "{found:?}");
    let globbed = bench.call("Glob", json!({"pattern": "*.txt", "path": "new"})).await;
    assert!(content(&globbed).contains("b.txt"), "{globbed:?}");
    let gone = bench.call("Read", json!({"file_path": "gone.txt"})).await;
    let gone_path = bench.path("ws/gone.txt");
    assert_eq!(argument_error(&gone), format!("file not found: {}", gone_path.display()));
    let there = bench.file("Docs/Re\u{301}sume\u{301}.MD", "words");
    let other = bench.call("Read", json!({"file_path": "docs/r\u{e9}sum\u{e9}.md"})).await;
    let said = argument_error(&other);
    assert!(said.ends_with(&format!("; there is {}", there.display())), "{said}");
    let form = bench.call(
        "Edit",
        json!({"file_path": "Docs/R\u{e9}sum\u{e9}.MD", "old_string": "a", "new_string": "b"}),
    );
    let form = form.await;
    let said = argument_error(&form);
    assert!(said.contains("in another form of Unicode"), "{said}");
    let search = bench.call("Grep", json!({"pattern": "words", "path": "docs"})).await;
    let said = argument_error(&search);
    assert!(said.ends_with(&format!("; there is {}", bench.path("ws/Docs").display())), "{said}");
    let outside = bench.call("Read", json!({"file_path": "../outside.txt"})).await;
    assert!(argument_error(&outside).starts_with("path is outside allowed scope: "), "{outside:?}");
}

#[tokio::test]
async fn two_thousand_lines_are_shown_unless_more_is_asked_for() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "x\n".repeat(2001));
    let output = bench.read(&path).await;
    assert!(content(&output).ends_with("  2000\tx\n[1 more line(s); continue with offset 2000]"));
    let output = bench.call("Read", json!({"file_path": path, "limit": 5000})).await;
    assert!(content(&output).ends_with("  2001\tx\n"));
}

#[tokio::test]
async fn a_result_that_would_be_too_long_ends_at_a_line_and_says_how_to_go_on() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", format!("{}\n", "ü".repeat(500)).repeat(500));
    let output = bench.read(&path).await;
    let text = content(&output);
    assert!(text.len() <= bench.ctx.max_output);
    let shown = text.lines().count() - 1;
    assert!(text.ends_with(&format!("continue with offset {shown}]")), "{}", output.summary);
}

#[tokio::test]
async fn a_very_long_line_is_cut_and_says_by_how_much() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "é".repeat(2500));
    let output = bench.read(&path).await;
    assert!(content(&output).ends_with("é [500 more characters]\n"));
}

#[tokio::test]
async fn an_empty_file_is_said_to_be_empty() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "");
    assert_eq!(content(&bench.read(&path).await), "(empty file)");
}

#[tokio::test]
async fn bytes_that_are_not_text_are_replaced_and_said() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", b"\xc3\xa9\xc3\xa9 a\xff b");
    let output = bench.read(&path).await;
    let said = "UTF-8 with bad bytes, shown as \u{fffd}";
    assert!(output.summary.ends_with(&format!(", in {said}")), "{output:?}");
    let expected = format!(
        "[this file is in {said}; Write and Edit cannot change it]\n     1\téé a\u{fffd} b\n"
    );
    assert_eq!(content(&output), expected);
}

#[tokio::test]
async fn a_directory_is_listed_without_what_the_scope_hides() {
    let mut bench = Bench::new();
    for name in ["b.txt", "src/main.rs", "own/key", ".hidden"] {
        bench.file(name, "x");
    }
    bench.ctx.scope = bench.ctx.scope.clone().with_deny([bench.path("ws/own")]);
    let ws = bench.path("ws");
    let output = bench.read(&ws).await;
    assert_eq!(output.summary, format!("Listed 3 of 3 entries in directory {}", ws.display()));
    assert_eq!(content(&output), ".hidden\nb.txt\nsrc/\n");
    assert!(output.files.is_empty() && !output.is_error);
    let output = bench.call("Read", json!({"file_path": ws, "offset": "1", "limit": "1"})).await;
    assert_eq!(content(&output), "b.txt\n[1 more; continue with offset 2]");
    let empty = bench.path("ws/src/none");
    fs::create_dir(&empty).unwrap();
    assert_eq!(content(&bench.read(&empty).await), "(empty directory)");
    let outside = bench.read(&bench.path("outside")).await;
    assert!(argument_error(&outside).starts_with("path is outside allowed scope: "));
    let hidden = bench.read(&bench.path("ws/own")).await;
    assert!(argument_error(&hidden).starts_with("path is outside allowed scope: "));
}

#[tokio::test]
async fn a_file_that_is_no_text_is_refused_with_its_kind_its_size_and_a_command_that_reads_it() {
    let mut bench = Bench::new();
    let notebook = r##"{"cells": [{"cell_type": "markdown", "source": ["# one\n", "two"]}]}"##;
    for (name, bytes, said) in [
        ("a.pdf", b"%PDF-1.7\n".as_slice(), " is a PDF document, 9 bytes, and not shown as text; "),
        ("a.bin", b"a\0b", " is binary, 3 bytes, and not shown as text; "),
        (
            "a.ipynb",
            notebook.as_bytes(),
            " is a Jupyter notebook, 68 bytes, and not shown as text; ",
        ),
    ] {
        let path = bench.file(name, bytes);
        let output = bench.read(&path).await;
        let error = argument_error(&output);
        assert!(
            error.starts_with(&format!("{}{said}read it with Bash: ", path.display())),
            "{error}"
        );
        assert!(output.files.is_empty(), "what was not shown was not read");
    }
    let path = bench.path("ws/a.ipynb");
    let part = bench.call("Read", json!({"file_path": path, "limit": 10})).await;
    assert!(content(&part).contains("cell_type") && part.files.len() == 1);
    let hex = bench.bash("od -A x -t x1z a.bin | head -n 40").await;
    assert!(content(&hex).contains(">a.b<"), "{hex:?}");
}

#[tokio::test]
async fn an_image_comes_as_an_image_whatever_its_name() {
    let mut bench = Bench::new();
    for (bytes, kind) in pictures() {
        let path = bench.file("picture.txt", &bytes);
        let output = bench.read(&path).await;
        assert_eq!((output.images.len(), &output.content), (1, &None), "{output:?}");
        assert_eq!(output.images[0].media_type, kind);
        assert_eq!(fs::read(bench.ctx.blobs.join(&output.images[0].blob)).unwrap(), bytes);
    }
}

/// A picture of one pixel of each kind.
fn pictures() -> [(Vec<u8>, &'static str); 4] {
    let of = |hex: &str| {
        let digits = hex.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).unwrap());
        digits.map(|two| u8::from_str_radix(two, 16).unwrap()).collect()
    };
    [
        (
            of(
                "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da6364f8cf500f00038601805a347d6b0000000049454e44ae426082",
            ),
            "image/png",
        ),
        (
            of("ffd8ffe00008ffd8ffd9ffe2ffc0000b080001000101011100ffda0008010100003f00d2cf20ffd9"),
            "image/jpeg",
        ),
        (
            of(
                "47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002014c003b",
            ),
            "image/gif",
        ),
        (of("524946461a000000574542505650384c0d0000002f00000010071011118888fe0700"), "image/webp"),
    ]
}

/// A provider refuses a request with a broken picture, and every later one that holds it.
#[tokio::test]
async fn a_picture_that_is_cut_or_too_large_comes_as_words() {
    let mut bench = Bench::new();
    for (bytes, kind) in pictures() {
        for cut in [12, bytes.len() / 2, bytes.len() - 4] {
            let path = bench.file("cut", &bytes[..cut]);
            let output = bench.read(&path).await;
            let said = format!("{} is an {kind} that is broken: ", path.display());
            assert!(argument_error(&output).starts_with(&said), "{cut}: {output:?}");
        }
    }
    let [(png, _), (jpeg, _), ..] = pictures();
    let mut wide = png.clone();
    wide[18..20].copy_from_slice(&[0x1f, 0x41]);
    let output = bench.read(&bench.path("ws/wide")).await;
    assert!(output.is_error);
    let path = bench.file("wide", &wide);
    let output = bench.read(&path).await;
    assert!(
        argument_error(&output).ends_with("it has 8001 x 1 pixels, the limit of a side is 8000"),
        "{output:?}"
    );
    let path = bench.file("long", [jpeg, vec![0; 6 * 1024 * 1024]].concat());
    let output = bench.read(&path).await;
    assert!(argument_error(&output).contains("is too large: it has 6.0 MiB"), "{output:?}");
}

#[tokio::test]
async fn each_kind_of_unreadable_file_is_refused_with_its_own_sentence() {
    let mut bench = Bench::new();
    let ws = bench.path("ws");
    rustix::fs::mkfifoat(rustix::fs::CWD, ws.join("pipe"), 0o600.into()).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(ws.join("sock")).unwrap();
    let big = fs::File::create(ws.join("big")).unwrap();
    big.set_len(33 * 1024 * 1024).unwrap();
    let cases = [
        (ws.join("none"), "file not found: "),
        (ws.join("pipe"), "path is a FIFO, not a file: "),
        (ws.join("sock"), "path is a socket, not a file: "),
        (ws.join("big"), "file is too large: "),
        (ws.join("none/../none"), "path leads through a directory that does not exist: "),
        ("/dev/zero".into(), "path is outside allowed scope: /dev/zero"),
        ("/etc/passwd".into(), "path is outside allowed scope: /etc/passwd"),
    ];
    for (path, text) in cases {
        let output = bench.read(&path).await;
        let error = argument_error(&output);
        assert!(error.starts_with(text), "{}: {error}", path.display());
    }
}
