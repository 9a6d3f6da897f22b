//! Glob and Grep.

use crate::bench::{Bench, argument_error, content};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};
use yoi::config::policy::{FileRule, Permissions, Rules};
use yoi::protocol::Action;
use yoi::tools::Output;

/// The paths of a result, relative to the workspace.
fn relative<'a>(bench: &Bench, output: &'a Output) -> Vec<&'a str> {
    let ws = format!("{}/", bench.ctx.cwd.display());
    let text = output.content.as_deref().unwrap_or("");
    text.lines().map(|line| line.strip_prefix(&ws).unwrap_or(line)).collect()
}

async fn grep(bench: &mut Bench, input: Value) -> Output {
    bench.call("Grep", input).await
}

#[tokio::test]
async fn glob_finds_hidden_and_ignored_files_newest_first_and_enters_no_link() {
    let mut bench = Bench::new();
    fs::write(bench.path("outside/d.rs"), "").unwrap();
    symlink(bench.path("outside"), bench.path("ws/link")).unwrap();
    bench.file(".gitignore", "c.rs");
    bench.file(".git/x.rs", "");
    let begin = SystemTime::now() - Duration::from_secs(100);
    for (age, name) in ["a.rs", "sub/b.rs", ".hidden/c.rs"].iter().enumerate() {
        let file = fs::File::open(bench.file(name, "")).unwrap();
        file.set_modified(begin + Duration::from_secs(age as u64)).unwrap();
    }
    let output = bench.call("Glob", json!({"pattern": "**/*.rs"})).await;
    assert_eq!(relative(&bench, &output), [".hidden/c.rs", "sub/b.rs", "a.rs"]);
    let output = bench.call("Glob", json!({"pattern": "*.rs"})).await;
    assert_eq!(relative(&bench, &output), ["a.rs"]);
}

#[tokio::test]
async fn glob_takes_a_directory_or_an_absolute_pattern() {
    let mut bench = Bench::new();
    bench.file("src/a.rs", "");
    bench.file("other/b.rs", "");
    for input in [
        json!({"pattern": "*.rs", "path": bench.path("ws/src")}),
        json!({"pattern": "*.rs", "path": "src"}),
        json!({"pattern": bench.path("ws/src/*.rs")}),
        json!({"pattern": bench.path("ws/src/a.rs")}),
        json!({"pattern": "./src/*.{rs,toml}"}),
    ] {
        let output = bench.call("Glob", input.clone()).await;
        assert_eq!(relative(&bench, &output), ["src/a.rs"], "{input}");
    }
}

#[tokio::test]
async fn glob_without_a_result_says_what_else_to_try() {
    let mut bench = Bench::new();
    bench.file("src/a.rs", "");
    let output = bench.call("Glob", json!({"pattern": "*.rs"})).await;
    assert!(output.summary.ends_with("; **/*.rs looks in subdirectories too"));
    for pattern in ["src", "src/", bench.path("ws/src").to_str().expect("UTF-8")] {
        let output = bench.call("Glob", json!({"pattern": pattern})).await;
        assert_eq!(relative(&bench, &output), ["src/a.rs"], "{pattern}");
        let said = "; the pattern is a directory, so src/** was searched";
        assert!(output.summary.ends_with(said), "{}", output.summary);
    }
    let output = bench.call("Glob", json!({"pattern": "a{", "path": "src"})).await;
    assert!(argument_error(&output).starts_with("bad glob pattern: "));
    let output = bench.call("Glob", json!({"pattern": "*", "path": "/etc"})).await;
    assert_eq!(argument_error(&output), "path is outside allowed scope: /etc");
    let output = bench.call("Glob", json!({"pattern": "*", "path": "none"})).await;
    assert!(argument_error(&output).starts_with("path not found: "));
}

/// Routes of Next.js and SvelteKit, templates of cookiecutter, and names that no program should give.
#[tokio::test]
async fn a_pattern_that_names_what_is_on_the_disk_means_that_name() {
    let mut bench = Bench::new();
    let names = [
        "app/(auth)/a.tsx",
        "app/[...rest]/a.tsx",
        "app/[[...all]]/a.tsx",
        "app/[slug]/a.tsx",
        "app/[user-id]/a.tsx",
        "app/s/a.tsx",
        "app/{{name}}/a.tsx",
        "#b/a.tsx",
        "two words /a.tsx",
    ];
    names.iter().for_each(|name| drop(bench.file(name, "needle")));
    for (pattern, expected) in [
        ("app/[slug]/a.tsx", &["app/[slug]/a.tsx"] as &[_]),
        ("app/[slug]/**", &["app/[slug]/a.tsx"]),
        ("app/[...rest]/*.tsx", &["app/[...rest]/a.tsx"]),
        ("app/[[...all]]/*", &["app/[[...all]]/a.tsx"]),
        ("app/(auth)/*", &["app/(auth)/a.tsx"]),
        ("./app/{{name}}/*.{ts,tsx}", &["app/{{name}}/a.tsx"]),
        ("**/[user-id]/*.[jt]sx", &["app/[user-id]/a.tsx"]),
        ("**/[slug]/a.tsx", &["app/[slug]/a.tsx", "app/s/a.tsx"]),
        ("app/[st]/*", &["app/s/a.tsx"]),
        ("app/{s,[slug]}/*", &["app/[slug]/a.tsx", "app/s/a.tsx"]),
        ("#b/*", &["#b/a.tsx"]),
        ("two words /*", &["two words /a.tsx"]),
    ] {
        for pattern in [pattern.to_owned(), bench.path("ws").join(pattern).display().to_string()] {
            let output = bench.call("Glob", json!({"pattern": pattern})).await;
            let mut found = relative(&bench, &output);
            found.sort_unstable();
            assert_eq!(found, expected, "Glob {pattern}");
            let output = grep(&mut bench, json!({"pattern": "needle", "glob": pattern})).await;
            assert_eq!(relative(&bench, &output), expected, "Grep {pattern}");
        }
    }
    let output = grep(&mut bench, json!({"pattern": "needle", "glob": "!app/[slug]/**"})).await;
    assert_eq!(relative(&bench, &output).len(), names.len() - 1, "{output:?}");
}

#[tokio::test]
async fn a_name_with_a_line_break_is_one_line_of_a_result_and_can_be_read() {
    let mut bench = Bench::new();
    let path = bench.file("a\nb.txt", "needle\n");
    let quoted = format!("\"{}/a\\nb.txt\"", bench.ctx.cwd.display());
    let globbed = bench.call("Glob", json!({"pattern": "*.txt"})).await;
    assert_eq!(content(&globbed), quoted);
    assert_eq!(content(&grep(&mut bench, json!({"pattern": "needle"})).await), quoted);
    let lines = json!({"pattern": "needle", "output_mode": "content"});
    assert_eq!(content(&grep(&mut bench, lines).await), format!("{quoted}:1:needle"));
    assert_eq!(content(&bench.read(&bench.path("ws")).await), "\"a\\nb.txt\"\n");
    let named: String = serde_json::from_str(&quoted).unwrap();
    assert_eq!(named, path.display().to_string());
    assert_eq!(content(&bench.read(named.as_ref()).await), "     1\tneedle\n");
}

#[tokio::test]
async fn glob_shows_a_thousand_paths_at_most() {
    let mut bench = Bench::new();
    for n in 0..1005 {
        bench.file(&format!("{n}.txt"), "");
    }
    let output = bench.call("Glob", json!({"pattern": "*.txt"})).await;
    assert!(output.summary.contains("Found 1005 file(s)"));
    assert_eq!(content(&output).lines().count(), 1000);
}

#[tokio::test]
async fn grep_names_the_files_and_skips_ignored_and_binary_ones() {
    let mut bench = Bench::new();
    bench.file(".gitignore", "ignored.txt\n");
    bench.file("ignored.txt", "needle");
    bench.file("binary.bin", b"needle\0");
    bench.file(".git/config", "needle");
    bench.file("b.txt", "a Needle and a needle");
    bench.file("a/z.txt", "needle");
    let output = grep(&mut bench, json!({"pattern": "needle"})).await;
    assert_eq!(relative(&bench, &output), ["a/z.txt", "b.txt"]);
    assert!(output.summary.starts_with("Found 2 file(s) with matches in "));
}

#[tokio::test]
async fn grep_shows_lines_with_their_numbers_and_surroundings() {
    let mut bench = Bench::new();
    bench.file("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nNINE\n");
    let input = json!({"pattern": "three|nine", "output_mode": "content", "-i": true, "-C": 1});
    let output = grep(&mut bench, input).await;
    let expected =
        ["a.txt-2-two", "a.txt:3:three", "a.txt-4-four", "--", "a.txt-8-eight", "a.txt:9:NINE"];
    assert_eq!(relative(&bench, &output), expected);
    let input = json!({"pattern": "^t", "output_mode": "content", "-n": false, "-A": 0});
    let output = grep(&mut bench, input).await;
    assert_eq!(relative(&bench, &output), ["a.txt:two", "a.txt:three"]);
}

#[tokio::test]
async fn grep_counts_matching_lines_per_file() {
    let mut bench = Bench::new();
    bench.file("a.txt", "x\nx x\ny\n");
    bench.file("b.txt", "x\n");
    let output = grep(&mut bench, json!({"pattern": "x", "output_mode": "count"})).await;
    assert_eq!(relative(&bench, &output), ["a.txt:2", "b.txt:1"]);
    assert!(output.summary.starts_with("Found 3 match(es) in 2 file(s)"));
}

#[tokio::test]
async fn grep_matches_across_lines_only_when_asked() {
    let mut bench = Bench::new();
    bench.file("a.txt", "fn a(\n  b: u8,\n)\n");
    let input = json!({"pattern": "a\\(.*\\)", "output_mode": "content"});
    assert_eq!(content(&grep(&mut bench, input.clone()).await), "");
    let mut across = input;
    across["multiline"] = json!(true);
    let output = grep(&mut bench, across).await;
    assert_eq!(relative(&bench, &output), ["a.txt:1:fn a(", "a.txt:2:  b: u8,", "a.txt:3:)"]);
}

#[tokio::test]
async fn grep_is_narrowed_by_glob_type_and_path() {
    let mut bench = Bench::new();
    for name in ["a.rs", "b.py", "src/c.rs"] {
        bench.file(name, "needle");
    }
    let cases = [
        (json!({"pattern": "needle", "glob": "*.rs"}), vec!["a.rs", "src/c.rs"]),
        (json!({"pattern": "needle", "glob": "!*.rs"}), vec!["b.py"]),
        (json!({"pattern": "needle", "type": "py"}), vec!["b.py"]),
        (json!({"pattern": "needle", "path": bench.path("ws/src")}), vec!["src/c.rs"]),
        (json!({"pattern": "needle", "path": bench.path("ws/a.rs")}), vec!["a.rs"]),
    ];
    for (input, expected) in cases {
        let output = grep(&mut bench, input.clone()).await;
        assert_eq!(relative(&bench, &output), expected, "{input}");
    }
    let output = grep(&mut bench, json!({"pattern": "needle", "type": "klingon"})).await;
    assert!(argument_error(&output).starts_with("bad filter: "));
    let output = grep(&mut bench, json!({"pattern": "a(b"})).await;
    assert!(argument_error(&output).starts_with("bad pattern: "));
}

#[tokio::test]
async fn grep_shows_a_page_of_a_long_result() {
    let mut bench = Bench::new();
    let text: String = (1..=600).map(|n| format!("line {n}\n")).collect();
    bench.file("a.txt", text);
    let output = grep(&mut bench, json!({"pattern": "line", "output_mode": "content"})).await;
    assert_eq!(content(&output).lines().count(), 250);
    assert!(output.summary.ends_with(", the first 250 line(s) are shown"));
    let page = json!({"pattern": "line", "output_mode": "content", "head_limit": 2, "offset": 300});
    let output = grep(&mut bench, page).await;
    assert_eq!(relative(&bench, &output), ["a.txt:301:line 301", "a.txt:302:line 302"]);
    let all = json!({"pattern": "line", "output_mode": "content", "head_limit": 0});
    assert_eq!(content(&grep(&mut bench, all).await).lines().count(), 600);
}

#[tokio::test]
async fn a_cancelled_search_says_so() {
    let mut bench = Bench::new();
    bench.file("a.txt", "x");
    bench.cancel.cancel();
    for tool in ["Glob", "Grep"] {
        let output = bench.call(tool, json!({"pattern": "x"})).await;
        assert!(output.is_error);
        assert_eq!(output.summary, "cancelled");
    }
}

#[tokio::test]
async fn grep_does_not_hang_on_a_fifo_or_choke_on_a_long_line() {
    let mut bench = Bench::new();
    let fifo = bench.path("ws/pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, fifo, 0o600.into()).unwrap();
    bench.file("long.txt", format!("needle{}", "é".repeat(100_000)));
    let output = grep(&mut bench, json!({"pattern": "needle", "output_mode": "content"})).await;
    assert!(content(&output).ends_with("é…"));
    assert!(content(&output).chars().count() < 700);
}

#[tokio::test]
async fn a_pattern_of_a_model_or_of_a_repository_that_nests_without_end_ends_no_search() {
    let mut bench = Bench::new();
    bench.file("a.txt", "needle");
    bench.file("ignored.txt", "needle");
    for depth in [17, 300, 30_000] {
        let nested = format!("{}a{}", "{".repeat(depth), "}".repeat(depth));
        let output = bench.call("Glob", json!({"pattern": nested})).await;
        assert!(argument_error(&output).contains("bad glob pattern"), "{}", output.summary);
        let input = json!({"pattern": "needle", "glob": nested});
        let output = grep(&mut bench, input).await;
        assert!(argument_error(&output).contains("bad glob pattern"), "{}", output.summary);
        for name in [".gitignore", ".ignore", "sub/.gitignore", ".git/info/exclude"] {
            bench.file(name, format!("{nested}\n"));
        }
        bench.file(".gitignore", format!("{nested}\nignored.txt\n"));
        let output = grep(&mut bench, json!({"pattern": "needle"})).await;
        assert_eq!(relative(&bench, &output), ["a.txt"], "{depth}");
    }
}

#[tokio::test]
async fn the_nearest_pattern_decides_what_grep_skips() {
    let mut bench = Bench::new();
    bench.file(".gitignore", "*.log\n/build/\nnames/*\n!names/kept\n");
    bench.file(".ignore", "!shown.log\n");
    bench.file(".git/info/exclude", "excluded\n");
    bench.file("sub/.gitignore", "\u{feff}!this.log\n# no pattern\n");
    bench.file("sub/repository/.git/HEAD", "");
    for name in [
        "a.log",
        "build/a",
        "excluded",
        "names/dropped",
        "names/kept",
        "shown.log",
        "sub/a.log",
        "sub/build/a",
        "sub/repository/b.log",
        "sub/this.log",
    ] {
        bench.file(name, "needle");
    }
    let output = grep(&mut bench, json!({"pattern": "needle"})).await;
    let seen = ["names/kept", "shown.log", "sub/build/a", "sub/repository/b.log", "sub/this.log"];
    assert_eq!(relative(&bench, &output), seen);
    let output = grep(&mut bench, json!({"pattern": "needle", "glob": "*.log"})).await;
    let named = ["a.log", "shown.log", "sub/a.log", "sub/repository/b.log", "sub/this.log"];
    assert_eq!(relative(&bench, &output), named);
    let output = grep(&mut bench, json!({"pattern": "needle", "path": "build"})).await;
    assert_eq!(relative(&bench, &output), ["build/a"]);
}

#[tokio::test]
async fn a_pipe_or_a_link_in_the_place_of_a_list_of_ignored_files_is_not_read() {
    let mut bench = Bench::new();
    bench.file("a.txt", "needle");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        bench.path("ws/.gitignore"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    fs::write(bench.path("outside/list"), "a.txt\n").unwrap();
    symlink(bench.path("outside/list"), bench.path("ws/.ignore")).unwrap();
    let output = grep(&mut bench, json!({"pattern": "needle"})).await;
    assert_eq!(relative(&bench, &output), ["a.txt"]);
}

#[tokio::test]
async fn a_long_list_of_wildcards_drops_no_other_pattern_and_takes_little_memory() {
    let mut bench = Bench::new();
    bench.file("secret", "needle");
    bench.file("a.txt", "needle");
    let classes: String = (0..4_000).map(|n| format!("[a-z0-9]*{n}\n")).collect();
    let long = format!("{}\n", "?*".repeat(2040)).repeat(60);
    for list in [classes, long] {
        bench.file(".gitignore", format!("/secret\n{list}"));
        for name in 0..100 {
            bench.file(&format!("many/{name}/some/file{name}.txt"), "");
        }
        let output = grep(&mut bench, json!({"pattern": "needle"})).await;
        assert_eq!(relative(&bench, &output), ["a.txt"]);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 1024 * 1024, "{peak} kB");
}

#[tokio::test]
async fn a_list_that_is_too_long_is_cut_at_the_end_of_a_line_and_the_result_says_so() {
    let mut bench = Bench::new();
    bench.file("a.txt", "needle");
    bench.file("b.log", "needle");
    for limit in [64 * 1024, 256 * 1024] {
        let first = "b.log\n";
        let comment = format!("#{}\n", "x".repeat(limit - first.len() - 3));
        bench.file(".gitignore", format!("{first}{comment}*.none\n"));
        let output = grep(&mut bench, json!({"pattern": "needle"})).await;
        assert_eq!(relative(&bench, &output), ["a.txt"], "{limit}");
        assert!(output.summary.contains("; of ignore files only 64 KiB"), "{}", output.summary);
    }
}

#[tokio::test]
async fn patterns_above_the_scope_count_in_a_repository_only() {
    let mut bench = Bench::new();
    bench.file("a.txt", "needle");
    let above = bench.path("ws").parent().unwrap().to_owned();
    for name in [".ignore", ".gitignore"] {
        fs::write(above.join(name), "*\n").unwrap();
    }
    let output = grep(&mut bench, json!({"pattern": "needle"})).await;
    assert_eq!(relative(&bench, &output), ["a.txt"]);
    fs::create_dir(above.join(".git")).unwrap();
    let output = grep(&mut bench, json!({"pattern": "needle"})).await;
    assert_eq!(output.content, None);
}

#[tokio::test]
async fn a_linked_working_tree_ignores_what_its_repository_excludes() {
    let mut bench = Bench::new();
    bench.file("a.txt", "needle");
    bench.file("excluded", "needle");
    let private = bench.path("outside/main/.git/worktrees/ws");
    fs::create_dir_all(&private).unwrap();
    fs::write(private.join("commondir"), "../..\n").unwrap();
    fs::create_dir(bench.path("outside/main/.git/info")).unwrap();
    fs::write(bench.path("outside/main/.git/info/exclude"), "excluded\n").unwrap();
    for pointer in [private.display().to_string(), "../outside/main/.git/worktrees/ws".into()] {
        bench.file(".git", format!("gitdir: {pointer}\n"));
        let output = grep(&mut bench, json!({"pattern": "needle"})).await;
        assert_eq!(relative(&bench, &output), ["a.txt"]);
    }
}

#[tokio::test]
async fn what_a_rule_denies_to_read_no_search_shows_and_the_result_says_how_much() {
    let mut bench = Bench::new();
    for name in ["keys/a.pem", "local.env", "src/b.rs"] {
        bench.file(name, "token\n");
    }
    let rule = |tool: &str, pattern: &str, action| FileRule {
        tool: tool.to_owned(),
        pattern: pattern.to_owned(),
        action,
    };
    let ws = bench.ctx.cwd.display().to_string();
    let rule_of_directory = rule("read", &format!("{ws}/keys/*"), Action::Deny);
    let user = Permissions { rule: vec![rule_of_directory], ..Permissions::default() };
    let workspace = vec![rule("Read", "*.env", Action::Deny), rule("Bash", "cat *", Action::Deny)];
    bench.ctx.rules = Rules { user, workspace, ..Rules::default() }.into();
    let output = bench.call("Glob", json!({"pattern": "**/*"})).await;
    assert_eq!(relative(&bench, &output), ["src/b.rs"]);
    assert!(output.summary.ends_with("; 2 file(s) that a rule denies to Read are left out"));
    let output = grep(&mut bench, json!({"pattern": "token", "output_mode": "content"})).await;
    assert_eq!(relative(&bench, &output), ["src/b.rs:1:token"]);
    let named = bench.path("ws/local.env");
    let output = grep(&mut bench, json!({"pattern": "token", "path": named})).await;
    assert_eq!((output.content.as_deref(), output.is_error), (None, false));
    assert!(output.summary.contains("a rule denies to Read"), "{}", output.summary);
    let open = vec![rule("Read", "*", Action::Allow), rule("Read", "*.env", Action::Deny)];
    let user = Permissions { rule: open, ..Permissions::default() };
    bench.ctx.rules = Rules { user, ..Rules::default() }.into();
    let output = bench.call("Glob", json!({"pattern": "*.env"})).await;
    assert_eq!(relative(&bench, &output), ["local.env"], "the first rule that matches counts");
}

#[tokio::test]
async fn grep_finds_the_ends_of_lines_in_files_of_windows_too() {
    let mut bench = Bench::new();
    bench.file("a.txt", "one\r\ntwo\r\n");
    bench.file("b.txt", "one\ntwo\n");
    for (pattern, multiline) in
        [("one$", false), ("^two$", false), ("one\\n+two", true), ("e$", true)]
    {
        let input = json!({"pattern": pattern, "multiline": multiline});
        let output = bench.call("Grep", input).await;
        assert!(output.summary.starts_with("Found 2 file(s)"), "{pattern}: {}", output.summary);
    }
    let output = bench.call("Grep", json!({"pattern": "one\\r"})).await;
    assert!(output.summary.starts_with("Found 1 file(s)"), "a CR that is named is a character");
}
