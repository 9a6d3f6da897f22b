use super::*;
use proptest::prelude::*;

/// Pieces of text that a terminal acts on or that hide something.
pub const HOSTILE: [&str; 44] = [
    "\u{1b}[2K",
    "\u{1b}[31m",
    "\u{1b}]0;title\u{7}",
    "\u{1b}]52;c;Zm9v\u{1b}\\",
    "\u{1b}(B",
    "\u{1b}c",
    "\u{1b}",
    "\u{1b}[",
    "\u{1b}]8;;http://x",
    "\u{1b}P",
    "\u{9b}1;2H",
    "\u{9d}0;t\u{9c}",
    "\u{90}q",
    "\u{85}",
    "\u{84}",
    "\r",
    "\r\n",
    "\n",
    "\t",
    "\u{8}",
    "\u{7}",
    "\0",
    "\u{7f}",
    "\u{18}",
    "\u{e}",
    "\u{c}",
    "\u{b}",
    "\u{202e}",
    "\u{202a}",
    "\u{2066}",
    "\u{2069}",
    "\u{200f}",
    "\u{200b}",
    "\u{200d}",
    "\u{fe0f}",
    "\u{feff}",
    "\u{ad}",
    "\u{2028}",
    "\u{2029}",
    "\u{e0041}",
    "\u{e0101}",
    "\u{3164}",
    "\u{fff9}",
    "\u{061c}",
];

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(HOSTILE.to_vec()).prop_map(str::to_owned),
        prop::sample::select(vec!["a", "B7", " ", "日本", "é", "👩‍💻", "❤️", "می‌خواهم", "\\", ";"])
            .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Whether a terminal shows a character, or it is a mark that shapes one that is shown.
fn is_shown(c: char) -> bool {
    matches!(c, '\n' | '\t') || !hidden::is_removed(c)
}

#[test]
fn escape_sequences_leave_only_the_text_around_them() {
    let text = "\u{1b}[1;31mred\u{1b}[0m \u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{1b}\\ \u{9b}2Jend\u{1b}(B";
    assert_eq!(SafeText::lines(text), "red link end");
    assert_eq!(SafeText::output(text), "red link \nend");
}

#[test]
fn an_open_escape_sequence_hides_no_further_line() {
    assert_eq!(SafeText::lines("a\u{1b}]0;title\nb\u{1b}Pxx\r\nc\u{1b}[12\nd"), "a\nb\nc\nd");
    assert_eq!(SafeText::lines("\u{1b}]0;x\u{1b}[31mred"), "red");
}

#[test]
fn every_line_end_becomes_one_newline() {
    let text = "one\rtwo\r\nthree\u{2028}four\u{85}five\r\u{1b}[K\nsix";
    assert_eq!(SafeText::lines(text), "one\ntwo\nthree\nfour\nfive\nsix");
}

#[test]
fn the_output_of_a_progress_line_is_its_last_state() {
    assert_eq!(SafeText::output("10%\r50%\r100%\r\ndone\r\n"), "100%\ndone\n");
    assert_eq!(SafeText::output("kept\n10%\r\u{1b}[K20%\r"), "kept\n20%");
    assert_eq!(SafeText::output("abc\u{8}\u{8}x\n\u{8}y"), "axc\ny");
}

#[test]
fn marks_that_shape_a_visible_character_stay_and_marks_that_hide_text_go() {
    for kept in ["👩‍💻", "❤️‍🔥", "می‌خواهم", "葛\u{e0100}", "e\u{301}"] {
        assert_eq!(SafeText::lines(kept), kept);
    }
    assert_eq!(
        SafeText::lines("a\u{fe01}\u{fe02}\u{fe03}b\u{200d}\u{200d}c"),
        "a\u{fe01}b\u{200d}c"
    );
    assert_eq!(SafeText::lines("x \u{200d}\t\u{fe0f}y\u{e0041}\u{200b}\u{202e}z"), "x \tyz");
}

#[test]
fn the_spelled_form_is_one_line_that_shows_every_character() {
    let text = "rm\u{1b}[2K\r a\u{202e}b\n\tc\u{9b}\u{200b}\u{7f}";
    let spelled = r"rm\x1b[2K\r a\u{202e}b⏎\tc\u{9b}\u{200b}\x7f";
    assert_eq!(SafeText::spelled(text), spelled);
    assert_eq!(SafeText::spelled("echo 日本 e\u{301}"), "echo 日本 e\u{301}");
    let blanks = "rm\u{a0}-rf\u{3000}a\u{2800}b\u{2003}c";
    assert_eq!(SafeText::spelled(blanks), r"rm\u{a0}-rf\u{3000}a\u{2800}b\u{2003}c");
}

#[test]
fn a_long_run_of_what_leaves_no_mark_is_counted_so_that_it_pushes_nothing_out_of_sight() {
    for (run, shown) in [
        (" ".repeat(3000), "⟨3000 blanks⟩"),
        ("\t".repeat(9), "⟨9 blanks⟩"),
        ("\n".repeat(3000), "⟨3000 ⏎⟩"),
        ("\u{200b}".repeat(3000), "⟨3000 hidden characters⟩"),
        ("\u{202e}\u{a0}\r".repeat(100), "⟨300 hidden characters⟩"),
        (" \t\n\u{2800}".repeat(20), "⟨40 blanks, 20 ⏎, 20 hidden characters⟩"),
        (" ".repeat(8), "        "),
        ("\n\t".repeat(4), r"⏎\t⏎\t⏎\t⏎\t"),
    ] {
        let text = format!("ls{run}; rm x");
        assert_eq!(SafeText::spelled(text.as_str()), format!("ls{shown}; rm x").as_str());
        let brief = SafeText::brief(text.as_str(), 60);
        assert!(brief.ends_with("; rm x") && brief.lines().count() == 1, "{brief}");
    }
    let indented = format!("{}a", " ".repeat(80));
    assert_eq!(SafeText::spelled_row(indented.as_str()), indented.as_str());
    assert_eq!(SafeText::spelled_rows(&format!(" {indented}\n"))[0], "⟨81 blanks⟩a⏎");
    assert_eq!(SafeText::brief("abc", 3), "abc");
    assert_eq!(SafeText::brief("日本語", 2), "日本…");
}

#[test]
fn a_line_spells_what_is_hidden_and_keeps_what_is_written() {
    assert_eq!(
        SafeText::line("👩‍💻 می‌خواهم\n\u{200d}a\u{1b}[2Kb\u{202e}"),
        "👩‍💻 می‌خواهم⏎\\u{200d}a\\x1b[2Kb\\u{202e}"
    );
}

#[test]
fn the_rows_of_a_spelled_text_show_where_its_lines_end() {
    let rows = SafeText::spelled_rows("cat <<E\nx\r\nE\n");
    let rows: Vec<&str> = rows.iter().map(SafeText::as_str).collect();
    assert_eq!(rows, ["cat <<E⏎", "x\\r⏎", "E⏎", ""]);
}

/// What a terminal shows of a text that comes in these pieces.
fn seen<'a>(pieces: impl IntoIterator<Item = &'a str>) -> String {
    let mut terminal = Terminal::default();
    let above: String = pieces.into_iter().map(|piece| terminal.push(piece)).collect();
    above + &terminal.finish()
}

#[test]
fn of_what_is_drawn_in_place_the_last_state_is_seen() {
    for (written, shown) in [
        (
            "\r\u{1b}[32m 10%\u{1b}[0m\r\u{1b}[32m100%\u{1b}[0m\nerror: full\n",
            "100%\nerror: full\n",
        ),
        ("10%\r\u{1b}[K20%\r\u{1b}[K", ""),
        ("Downloading\rDone", "Doneloading"),
        ("Downloading\r\u{1b}[2KDone", "Done"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("wait |\u{8}/\u{8}-\u{8} \u{8}ok\n", "wait ok\n"),
        ("N\u{8}NA\u{8}AM\u{8}ME\u{8}E _\u{8}x", "NAME x"),
        (
            "one 1%\ntwo 1%\n\u{1b}[2A\r\u{1b}[2Kone 9%\n\u{1b}[2Ktwo 9%\nend\n",
            "one 9%\ntwo 9%\nend\n",
        ),
        ("a\nb\n\u{1b}[1A\u{1b}[2K\u{1b}[1A\u{1b}[2K\u{1b}[Gc\n", "c\n"),
        ("a\nb\nc\n\u{1b}[3A\u{1b}[Jd\n", "d\n"),
        ("a\nb\u{1b}[F1\u{1b}[E2", "1\n2"),
        ("a\u{1b}[3Cb\u{1b}[2Dc\u{1b}[999C!", &format!("a  cb{}!", " ".repeat(74))),
        ("page one\u{1b}[2J\u{1b}[Hpage two\n", "page one\npage two\n"),
        (
            "\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\\u{1b}(B\u{1b}[?25l",
            "alink",
        ),
        ("open \u{1b}]0;title\nnext", "open \nnext"),
        ("下载 10%\rdone    \n", "done    \n"),
        ("下载中\r\u{1b}[Cx", " x载中"),
        ("e\u{301}\u{301}x\rA", "Ax"),
        ("a\tb\r1\t2\n", "1\t2\n"),
        ("a\tb\r\u{1b}[3Cx", "a  x    b"),
        ("bell\u{7}\u{7f}\u{e}", "bell"),
    ] {
        assert_eq!(seen([written]), shown, "{written:?}");
        let cuts = written.char_indices().map(|(at, _)| written.split_at(at));
        for (before, behind) in cuts {
            assert_eq!(seen([before, behind]), shown, "{before:?} {behind:?}");
        }
        assert_eq!(seen(written.split("")), shown, "{written:?}");
    }
}

#[test]
fn a_screen_is_small_however_much_is_drawn() {
    let mut terminal = Terminal::default();
    let long = "x".repeat(1000) + "日本語\t";
    let mut above = String::new();
    for _ in 0..200 {
        above += &terminal.push(&long);
    }
    assert!(above.len() < 1012 * 200 && above.len() + 64 * 4096 * 3 > 1012 * 200);
    assert_eq!(above + &terminal.finish(), long.repeat(200), "a long line stays one line");
    let frame = "\r\u{1b}[1A\u{1b}[2Kone\n\u{1b}[2Ktwo\u{301}";
    assert!((0..100_000).all(|_| terminal.push(frame).is_empty()));
    assert_eq!(terminal.finish(), "one\ntwo\u{301}");
    let marks = "\u{301}".repeat(100_000);
    let above = terminal.push(&marks);
    assert!(!above.is_empty() || marks.len() < 64 * 4096);
    assert_eq!(above + &terminal.finish(), marks);
    let lines: String = (0..200).map(|n| format!("{n}\n")).collect();
    let drawn = seen([lines.as_str(), "\u{1b}[999Alast\n"]);
    assert!(drawn.starts_with("0\n1\n") && drawn.contains("\nlast\n"), "{drawn}");
    assert_eq!(drawn.lines().count(), 200, "what left the screen is not drawn over");
}

#[test]
fn many_lines_in_one_piece_are_drawn_over_as_far_back_as_in_many() {
    let lines = |words: &str| (0..300).map(|n| format!("{n}\t{words}\n")).collect::<String>();
    for (words, before, behind) in [
        ("of many", "", "\u{1b}[999Afirst\n"),
        ("von 日本e\u{301}\u{200d}", "begun ", "\u{1b}[3A\u{1b}[2Kthird\n"),
        ("é\0\u{7f}", "12345\r", "\u{1b}[999A\u{1b}[J"),
        ("of many", "a\nb\nc\u{1b}[2A", "end"),
        ("日本", "title \u{1b}]0;x", "\u{1b}[64A!\u{1b}[65B?"),
        ("\u{301}x\u{85}", "日本\u{301}", "\u{1b}[63A\u{1b}[K"),
    ] {
        let lines = lines(words);
        let text = format!("{before}{lines}{behind}");
        assert_eq!(
            seen([before, lines.as_str(), behind]),
            seen(text.split("")),
            "{before:?} {behind:?}"
        );
        assert_eq!(seen([text.as_str()]), seen(text.split("")), "{before:?} {behind:?}");
    }
}

#[test]
fn of_a_heap_of_marks_upon_one_character_a_few_are_shown() {
    let heap = format!("a{}b", "\u{301}".repeat(400));
    let few = "\u{301}".repeat(8);
    assert_eq!(SafeText::lines(heap.as_str()), format!("a{few}b").as_str());
    let counted = format!("a{few}⟨392 marks⟩b");
    for form in [SafeText::line, SafeText::spelled, SafeText::spelled_row] {
        let text: SafeText<'_> = form(Cow::Owned(heap.clone()));
        assert_eq!(text, counted.as_str());
    }
    // A joiner or a selector within begins no other heap.
    for between in ["\u{200d}", "\u{fe0f}"] {
        let heap = format!("a{}", format!("{}{between}", "\u{301}".repeat(8)).repeat(50));
        let shown = SafeText::lines(heap.as_str());
        assert!(shown.chars().count() < 20, "{shown:?}");
        assert!(SafeText::line(heap.as_str()).chars().count() < 40);
    }
    let thai = "ที่นี่ நிலை ཀྵྨྲ नमस्ते Việt e\u{301}\u{323}";
    assert_eq!(SafeText::lines(thai), thai);
    assert_eq!(SafeText::spelled(thai), thai);
}

proptest! {
    #[test]
    fn a_terminal_shows_text_without_control_characters_unchanged(text in any_text()) {
        let plain: String =
            text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect();
        prop_assert_eq!(seen([plain.as_str()]), plain);
    }

    #[test]
    fn a_terminal_shows_the_same_of_text_in_pieces(text in any_text(), frame in any_text()) {
        let whole = format!("{text}\r{frame}\u{1b}[1A{text}\u{1b}[K\n");
        prop_assert_eq!(seen([whole.as_str()]), seen(whole.split("")));
    }

    #[test]
    fn nothing_that_a_terminal_acts_on_is_left(text in any_text()) {
        for safe in [SafeText::lines(text.as_str()), SafeText::output(text.as_str())] {
            prop_assert!(safe.chars().all(is_shown), "{safe:?}");
        }
        let line = SafeText::line(text.as_str());
        prop_assert!(line.chars().all(|c| !matches!(c, '\n' | '\t') && is_shown(c)), "{line:?}");
        let mut rows = SafeText::spelled_rows(&text);
        rows.push(SafeText::spelled(text.as_str()).into_owned());
        for row in rows {
            prop_assert!(!row.chars().any(hidden::is_spelled), "{row:?}");
        }
    }

    #[test]
    fn safe_text_passes_again_unchanged(text in any_text()) {
        let forms = [
            SafeText::lines,
            SafeText::output,
            SafeText::line,
            SafeText::spelled,
            SafeText::spelled_row,
        ];
        for form in forms {
            let once: SafeText<'_> = form(Cow::Owned(text.clone()));
            prop_assert_eq!(form(Cow::Owned(once.clone().into_string())), once);
        }
    }

    #[test]
    fn pieces_give_what_the_whole_text_gives(pieces in prop::collection::vec(any_text(), 0..6)) {
        let mut stream = SafeStream::default();
        let joined: String = pieces.iter().map(|piece| stream.push(piece).into_string()).collect();
        prop_assert_eq!(SafeText::lines(pieces.concat()), joined.as_str());
    }

    #[test]
    fn a_text_may_be_cut_at_every_character(text in any_text()) {
        let mut stream = SafeStream::default();
        let joined: String =
            text.chars().map(|c| stream.push(c.encode_utf8(&mut [0; 4])).into_string()).collect();
        prop_assert_eq!(SafeText::lines(text.as_str()), joined.as_str());
    }

    #[test]
    fn visible_text_outside_of_escape_sequences_is_never_lost(text in any_text()) {
        let plain: String = text.chars().filter(|c| !c.is_control()).collect();
        let visible = |text: &str| -> String {
            text.chars().filter(|c| is_shown(*c) && !hidden::is_joiner(*c) && !hidden::is_variation(*c)).collect()
        };
        let safe = SafeText::lines(plain.as_str()).replace('\n', "");
        prop_assert_eq!(visible(&safe), visible(&plain));
    }

    #[test]
    fn the_line_behind_a_newline_is_never_lost(text in any_text()) {
        let whole = text + "\u{1b}]0;x\nlast line";
        prop_assert!(SafeText::lines(whole.as_str()).ends_with("\nlast line"));
        prop_assert!(SafeText::output(whole.as_str()).ends_with("\nlast line"));
    }

    #[test]
    fn escaped_json_decodes_to_the_same_text_and_hides_nothing(text in any_text()) {
        let encoded = serde_json::to_string(&text).unwrap();
        let safe = SafeText::json(encoded);
        prop_assert!(!safe.chars().any(hidden::is_spelled));
        prop_assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
    }
}
