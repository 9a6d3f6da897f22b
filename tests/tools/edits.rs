//! Write and Edit: what must be true before, what is kept, what is there after.

use crate::bench::{Bench, argument_error, content};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn a_new_file_is_created_with_its_directories() {
    let mut bench = Bench::new();
    let path = bench.path("ws/deep/er/a.txt");
    let output = bench.write(&path, "é").await;
    assert_eq!(output.summary, format!("Created {} (2 bytes)", path.display()));
    assert_eq!(fs::read_to_string(&path).unwrap(), "é");
    assert_eq!(output.files[0].before, None);
    let plain = bench.file("plain.txt", "");
    assert_eq!(mode(&path), mode(&plain), "the mode of any new file");
}

#[tokio::test]
async fn an_existing_file_must_have_been_read() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "old");
    let output = bench.write(&path, "new").await;
    assert!(argument_error(&output).starts_with("file has not been read yet: "));
    let output = bench.edit(&path, "old", "new").await;
    assert!(argument_error(&output).starts_with("file has not been read yet: "));
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
}

#[tokio::test]
async fn a_file_changed_by_another_program_must_be_read_again() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "old");
    bench.read(&path).await;
    fs::write(&path, "theirs").unwrap();
    let output = bench.write(&path, "mine").await;
    assert!(argument_error(&output).starts_with("file was modified since it was read: "));
    let output = bench.edit(&path, "theirs", "mine").await;
    assert!(argument_error(&output).starts_with("file was modified since it was read: "));
    assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    bench.read(&path).await;
    let output = bench.write(&path, "mine").await;
    assert_eq!(output.summary, format!("Overwrote {} (4 bytes)", path.display()));
}

#[tokio::test]
async fn a_file_that_a_tool_wrote_counts_as_read() {
    let mut bench = Bench::new();
    let path = bench.path("ws/a.txt");
    bench.write(&path, "one two").await;
    assert!(!bench.edit(&path, "one", "three").await.is_error);
    assert!(!bench.edit(&path, "two", "four").await.is_error);
    assert!(!bench.write(&path, "last").await.is_error);
    assert_eq!(fs::read_to_string(&path).unwrap(), "last");
}

#[tokio::test]
async fn the_former_content_is_kept_under_its_hash() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "former");
    bench.read(&path).await;
    let output = bench.edit(&path, "former", "latter").await;
    let before = output.files[0].before.clone().unwrap();
    assert_eq!(fs::read_to_string(bench.ctx.blobs.join(before)).unwrap(), "former");
    let output = bench.write(&path, "third").await;
    let before = output.files[0].before.clone().unwrap();
    assert_eq!(fs::read_to_string(bench.ctx.blobs.join(before)).unwrap(), "latter");
}

#[tokio::test]
async fn the_mode_of_a_changed_file_stays() {
    let mut bench = Bench::new();
    for wanted in [0o755, 0o600, 0o664] {
        let path = bench.file("script.sh", "echo one");
        fs::set_permissions(&path, fs::Permissions::from_mode(wanted)).unwrap();
        bench.read(&path).await;
        assert!(!bench.edit(&path, "one", "two").await.is_error);
        assert_eq!(mode(&path), wanted);
        assert!(!bench.write(&path, "three").await.is_error);
        assert_eq!(mode(&path), wanted);
    }
}

#[tokio::test]
async fn a_write_leaves_only_the_file_in_its_directory() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "one");
    bench.read(&path).await;
    bench.write(&path, "two").await;
    bench.edit(&path, "none", "three").await;
    assert_eq!(fs::read_dir(bench.path("ws")).unwrap().count(), 1);
}

#[tokio::test]
async fn an_edit_shows_three_lines_around_it() {
    let mut bench = Bench::new();
    let text: String = (1..=9).map(|n| format!("line {n}\n")).collect();
    let path = bench.file("a.txt", text);
    bench.read(&path).await;
    let output = bench.edit(&path, "line 5", "five\nand more").await;
    assert_eq!(output.summary, format!("Edited {} (1 replacement(s))", path.display()));
    let numbers: Vec<&str> = content(&output).lines().map(|line| line.trim()).collect();
    let expected = [
        "2\tline 2",
        "3\tline 3",
        "4\tline 4",
        "5\tfive",
        "6\tand more",
        "7\tline 6",
        "8\tline 7",
        "9\tline 8",
    ];
    assert_eq!(numbers, expected);
}

#[tokio::test]
async fn a_text_must_be_there_exactly_once_unless_all_are_meant() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "x y x");
    bench.read(&path).await;
    let output = bench.edit(&path, "z", "w").await;
    assert!(argument_error(&output).starts_with("old_string was not found in "));
    let output = bench.edit(&path, "x", "w").await;
    assert!(argument_error(&output).contains("it occurs 2 times"));
    let output = bench.edit(&path, "", "w").await;
    assert!(argument_error(&output).starts_with("old_string is empty"));
    let output = bench.edit(&path, "x", "x").await;
    assert_eq!(argument_error(&output), "old_string and new_string are the same");
    let all = json!({"file_path": path, "old_string": "x", "new_string": "", "replace_all": true});
    let output = bench.call("Edit", all).await;
    assert!(output.summary.ends_with("(2 replacement(s))"));
    assert_eq!(fs::read_to_string(&path).unwrap(), " y ");
}

#[tokio::test]
async fn a_text_that_differs_only_in_its_spelling_is_found_where_one_place_is_meant() {
    let mut bench = Bench::new();
    let path = bench.file("a.rs", "fn a() {\n\tsay(\"hi\");\n}\nfn b() {\n\tsay(\"ho\");\n}\n");
    bench.read(&path).await;
    let output = bench.edit(&path, "    say(“hi”);\n}", "    say(“hi”);\n    go();\n}").await;
    assert!(output.summary.contains(", old_string differs there in white space"), "{output:?}");
    let output = bench.edit(&path, "     6\t\tsay(\"ho\");", "     6\t\tsay(\"no\");").await;
    assert!(output.summary.ends_with(", without the line numbers in old_string"), "{output:?}");
    let expected = "fn a() {\n\tsay(\"hi\");\n\tgo();\n}\nfn b() {\n\tsay(\"no\");\n}\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    let output = bench.edit(&path, "    say(", "    tell(").await;
    assert!(
        argument_error(&output).contains(", and 2 places differ from it only in "),
        "{output:?}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
}

#[tokio::test]
async fn a_text_that_is_not_there_is_answered_with_the_nearest_lines() {
    let mut bench = Bench::new();
    let path = bench.file("a.rs", "one\ntwo\nlet total = count(first, second);\nfour\nfive\nsix\n");
    bench.read(&path).await;
    let output = bench.edit(&path, "let total = count(first, third);", "x").await;
    assert!(output.is_error && output.summary.contains("these lines there are the most like it"));
    let shown = output.content.as_deref().unwrap();
    assert!(shown.starts_with("     3\tlet total = count(first, second);\n"), "{output:?}");
    let output = bench.edit(&path, "@@@@", "x").await;
    assert!(argument_error(&output).contains("no line there is like it"), "{output:?}");
}

#[tokio::test]
async fn a_change_by_a_command_is_shown_and_the_file_counts_as_read() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "one\ntwo\nthree\n");
    let other = bench.file("b.txt", "never read\n");
    bench.read(&path).await;
    let output = bench.bash("sed -i s/two/TWO/ a.txt; echo x >> b.txt").await;
    let said = format!(
        "[{} changed while this command ran]\nfrom line 1:\n  one\n- two\n+ TWO\n",
        path.display()
    );
    assert!(content(&output).contains(&said), "{output:?}");
    assert!(!content(&output).contains("b.txt"), "{output:?}");
    assert!(!bench.edit(&path, "three", "four").await.is_error);
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\nTWO\nfour\n");
    assert!(bench.edit(&other, "never", "x").await.is_error);
    assert!(bench.bash("cat a.txt").await.files.is_empty(), "nothing changed");
}

#[tokio::test]
async fn a_change_by_a_command_that_is_too_long_to_show_must_be_read() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "short line\n".repeat(3000));
    let gone = bench.file("gone.txt", "x");
    bench.read(&path).await;
    bench.read(&gone).await;
    let output = bench.bash("sed -i s/short/long/ a.txt; rm gone.txt").await;
    let said = format!(
        "[changed or removed while this command ran: {}, {}; use Read",
        path.display(),
        gone.display()
    );
    assert!(content(&output).contains(&said), "{output:?}");
    let output = bench.edit(&path, "long", "x").await;
    assert!(argument_error(&output).starts_with("file was modified since it was read: "));
    fs::write(&path, "theirs").unwrap();
    bench.read(&path).await;
    fs::write(&path, "theirs, later").unwrap();
    assert!(
        bench.bash("true").await.files.is_empty(),
        "what was changed before is not the command's"
    );
    assert!(bench.edit(&path, "theirs", "mine").await.is_error);
}

#[tokio::test]
async fn many_replacements_on_long_texts_show_a_few_places() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "é\n\n\n\n\n\n\n\n\n\n".repeat(50));
    bench.read(&path).await;
    let all =
        json!({"file_path": path, "old_string": "é", "new_string": "日本", "replace_all": true});
    let output = bench.call("Edit", all).await;
    assert!(content(&output).ends_with("[45 more places]\n"));
    assert_eq!(content(&output).matches("日本").count(), 5);
}

#[tokio::test]
async fn line_ends_of_windows_survive_an_edit_that_does_not_know_of_them() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "one\r\ntwo\r\nthree\r\n");
    bench.read(&path).await;
    assert!(!bench.edit(&path, "one\ntwo", "1\n2\n2b").await.is_error);
    assert_eq!(fs::read_to_string(&path).unwrap(), "1\r\n2\r\n2b\r\nthree\r\n");
}

#[tokio::test]
async fn a_line_with_new_lines_in_its_place_keeps_the_line_ends_of_windows() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "one\r\ntwo\r\n");
    bench.read(&path).await;
    assert!(!bench.edit(&path, "two", "2\n2b").await.is_error);
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\r\n2\r\n2b\r\n");
}

#[tokio::test]
async fn a_file_with_several_names_keeps_them_and_one_in_a_closed_directory_is_written() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "one");
    let other = bench.path("ws/b.txt");
    fs::hard_link(&path, &other).unwrap();
    bench.read(&path).await;
    let output = bench.edit(&path, "one", "two").await;
    assert_eq!(fs::read_to_string(&other).unwrap(), "two", "{output:?}");
    let before = output.files[0].before.clone().unwrap();
    assert_eq!(fs::read_to_string(bench.ctx.blobs.join(before)).unwrap(), "one");
    assert!(!bench.write(&path, "a longer text").await.is_error);
    assert!(!bench.write(&path, "short").await.is_error);
    assert_eq!(fs::read_to_string(&other).unwrap(), "short");
    let closed = bench.file("closed/a.txt", "one");
    let directory = bench.path("ws/closed");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o555)).unwrap();
    bench.read(&closed).await;
    let output = bench.edit(&closed, "one", "two").await;
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(fs::read_to_string(&closed).unwrap(), "two", "{output:?}");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
}

#[tokio::test]
async fn the_attributes_of_a_changed_file_stay() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "one");
    match setxattr(&path, "user.origin", b"https://example.org", XattrFlags::empty()) {
        Err(rustix::io::Errno::NOTSUP) => return,
        set => set.unwrap(),
    }
    bench.read(&path).await;
    assert!(!bench.edit(&path, "one", "two").await.is_error);
    let mut value = [0; 64];
    let size = getxattr(&path, "user.origin", &mut value[..]).unwrap();
    assert_eq!(&value[..size], b"https://example.org");
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
}

#[tokio::test]
async fn a_file_that_is_written_whole_keeps_its_line_ends_and_its_byte_order_mark() {
    let mut bench = Bench::new();
    for (former, new, expected) in [
        ("\u{feff}one\r\ntwo\r\n", "one\ntwo\nthree\n", "\u{feff}one\r\ntwo\r\nthree\r\n"),
        ("\u{feff}one\n", "\u{feff}two\n", "\u{feff}two\n"),
        ("one\r\ntwo\nthree\r\n", "one\ntwo\n2b\nthree\n", "one\r\ntwo\n2b\nthree\r\n"),
        ("one\rtwo\r", "one\ntwo\nthree\n", "one\rtwo\rthree\r"),
        ("one\r\n", "one\r\ntwo\n", "one\r\ntwo\n"),
        ("one\n", "one\ntwo\n", "one\ntwo\n"),
    ] {
        let path = bench.file("a.txt", former);
        let shown = bench.read(&path).await;
        assert!(!content(&shown).contains(['\r', '\u{feff}']), "{shown:?}");
        let output = bench.write(&path, new).await;
        assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{output:?}");
        let said = output.summary.ends_with(" bytes, with its line ends and byte order mark)");
        assert_eq!(said, expected != new, "{output:?}");
    }
}

#[tokio::test]
async fn each_line_of_a_file_with_two_kinds_of_line_ends_keeps_its_own() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "one\r\ntwo\nthree\r\nfour\n");
    bench.read(&path).await;
    assert!(!bench.edit(&path, "two\nthree", "2\n2b\n3").await.is_error);
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\r\n2\n2b\r\n3\r\nfour\n");
    assert!(!bench.edit(&path, "one\r\n2\n", "1\r\n2\r\n").await.is_error);
    assert_eq!(fs::read_to_string(&path).unwrap(), "1\r\n2\r\n2b\r\n3\r\nfour\n");
}

#[tokio::test]
async fn a_text_in_another_encoding_is_read_and_not_written() {
    let mut bench = Bench::new();
    let little: Vec<u8> =
        "\u{feff}caf\u{e9}\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = "\u{feff}caf\u{e9}\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    for (bytes, encoding) in [
        (little.as_slice(), "UTF-16 (little endian)"),
        (&big, "UTF-16 (big endian)"),
        (b"caf\xe9\n", "an 8-bit encoding, shown as Windows-1252"),
    ] {
        let path = bench.file("a.txt", bytes);
        let output = bench.read(&path).await;
        let expected = format!(
            "[this file is in {encoding}; Write and Edit cannot change it]\n     1\tcaf\u{e9}\n"
        );
        assert_eq!(content(&output), expected);
        for refused in
            [bench.edit(&path, "caf\u{e9}", "tea").await, bench.write(&path, "tea").await]
        {
            let error = argument_error(&refused);
            assert!(error.contains(&format!(" is in {encoding}: ")), "{error}");
        }
        assert_eq!(fs::read(&path).unwrap(), bytes);
        let found = bench.call("Grep", json!({"pattern": "caf", "output_mode": "content"})).await;
        assert!(content(&found).ends_with(":1:caf\u{e9}"), "{found:?}");
    }
}

#[tokio::test]
async fn a_large_file_can_become_smaller() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", "aa\n".repeat(20_000_000 / 3));
    bench.read(&path).await;
    let all =
        json!({"file_path": path, "old_string": "aa", "new_string": "b", "replace_all": true});
    assert!(!bench.call("Edit", all).await.is_error);
}

#[tokio::test]
async fn an_edit_never_touches_bytes_it_cannot_read() {
    let mut bench = Bench::new();
    let path = bench.file("a.txt", b"caf\xe9");
    bench.read(&path).await;
    let output = bench.edit(&path, "caf", "tea").await;
    assert!(argument_error(&output).contains(" is in an 8-bit encoding"), "{output:?}");
    assert_eq!(fs::read(&path).unwrap(), b"caf\xe9");
}

#[tokio::test]
async fn special_files_and_directories_cannot_be_written() {
    let mut bench = Bench::new();
    let ws = bench.path("ws");
    rustix::fs::mkfifoat(rustix::fs::CWD, ws.join("pipe"), 0o600.into()).unwrap();
    let output = bench.write(&ws.join("pipe"), "x").await;
    assert!(argument_error(&output).starts_with("path is a FIFO"));
    let output = bench.write(&ws, "x").await;
    assert!(argument_error(&output).starts_with("path is a directory"));
    let file = bench.file("file", "");
    let output = bench.write(&file.join("below"), "x").await;
    let text = "path leads through something that is not a directory: ";
    assert!(argument_error(&output).starts_with(text));
}
