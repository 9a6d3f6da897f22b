use super::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use yoi::protocol::Segment;

/// A message of plain text.
pub fn plain(text: &str) -> Vec<Segment> {
    vec![Segment::Text { content: text.into() }]
}

fn type_in(composer: &mut Composer, text: &str) {
    text.chars().for_each(|c| composer.insert(c));
}

fn name(name: &str) -> PodName {
    PodName::parse(name).expect("a name")
}

#[test]
fn the_message_that_a_rewind_put_into_the_draft_goes_with_its_undo() {
    let mut composer = Composer::default();
    let (alice, undo) = (name("alice"), Message::default());
    composer.rewound(Some(&alice), &Message::plain("fix it"));
    composer.switch(Some(&alice));
    assert_eq!(composer.draft().message().text, "fix it");
    composer.rewound(Some(&alice), &Message::plain("fix that first"));
    assert_eq!(composer.draft().message().text, "fix that first", "of the last rewind");
    composer.rewound(Some(&alice), &undo);
    assert!(composer.is_empty());

    composer.rewound(Some(&alice), &Message::plain("fix it"));
    type_in(&mut composer, " now");
    composer.rewound(Some(&alice), &undo);
    assert_eq!(composer.draft().message().text, "fix it now", "what a person wrote stays");
}

#[test]
fn every_pod_keeps_its_own_draft() {
    let mut composer = Composer::default();
    composer.switch(Some(&name("alice")));
    type_in(&mut composer, "for alice");
    composer.switch(Some(&name("bob")));
    assert!(composer.is_empty());
    composer.switch(Some(&name("alice")));
    assert_eq!(composer.draft().message().text, "for alice");
}

#[test]
fn a_long_paste_becomes_a_chip_and_is_sent_whole() {
    let mut composer = Composer::default();
    type_in(&mut composer, "look: ");
    let long = "line\r\n".repeat(12);
    composer.paste(&long);
    type_in(&mut composer, " ok?");
    let message = composer.take();
    assert_eq!(message.text, "look: [paste #1 · 60 chars, 12 lines] ok?");
    assert_eq!(
        message.segments,
        [
            Segment::Text { content: "look: ".into() },
            Segment::Paste { id: 1, chars: 60, lines: 12, content: "line\n".repeat(12) },
            Segment::Text { content: " ok?".into() },
        ]
    );
}

#[test]
fn backspace_takes_a_chip_or_a_cluster_whole() {
    let mut composer = Composer::default();
    composer.paste(&"x".repeat(2000));
    composer.edit(Action::DeleteBack);
    assert!(composer.is_empty());
    type_in(&mut composer, "a👩‍💻");
    composer.edit(Action::DeleteBack);
    assert_eq!(composer.draft().message().text, "a");
}

#[test]
fn a_short_paste_is_text_with_its_newlines() {
    let mut composer = Composer::default();
    composer.paste("one\ntwo");
    assert_eq!(composer.take().segments, plain("one\ntwo"));
}

#[test]
fn a_chosen_file_is_sent_as_a_reference() {
    let mut composer = Composer::default();
    type_in(&mut composer, "read @ui/r");
    let mut files = Files::at(&composer.draft).expect("a file is being named");
    assert_eq!(files.prefix, "ui/r");
    let file = yoi::protocol::Completion { value: "ui/run.rs".into(), is_dir: false };
    files.found("ui/r", vec![file], std::iter::empty());
    files.accept(&mut composer.draft);
    type_in(&mut composer, "and mail a@b.c");
    assert_eq!(
        composer.take().segments,
        [
            Segment::Text { content: "read ".into() },
            Segment::FileRef { path: "ui/run.rs".into() },
            Segment::Text { content: " and mail a@b.c".into() },
        ]
    );
}

#[test]
fn the_path_of_an_image_that_is_dropped_on_the_terminal_names_that_file() {
    for (dropped, path) in [
        ("/tmp/shot.png", "/tmp/shot.png"),
        ("'/tmp/a shot.JPG' ", "/tmp/a shot.JPG"),
        ("/tmp/a\\ shot.webp", "/tmp/a shot.webp"),
        ("file:///tmp/shot.gif\n", "/tmp/shot.gif"),
        ("file:///tmp/a%20shot.gif", "/tmp/a shot.gif"),
    ] {
        assert_eq!(dropped_images(dropped), [path], "{dropped}");
    }
    let two = ["/tmp/a.png", "/tmp/b c.png"];
    for dropped in [
        "/tmp/a.png\n/tmp/b\\ c.png",
        "'/tmp/a.png' '/tmp/b c.png' ",
        "file:///tmp/a.png\r\nfile:///tmp/b%20c.png\r\n",
    ] {
        assert_eq!(dropped_images(dropped), two, "{dropped}");
    }
    for text in
        ["shot.png", "see /tmp/shot.png", "/tmp/notes.txt", "/tmp/a.png\n/tmp/b.txt", "/png", ""]
    {
        assert!(dropped_images(text).is_empty(), "{text}");
    }
}

#[test]
fn the_name_of_a_file_becomes_plain_text_and_the_cursor_stays_where_it_was() {
    let mut composer = Composer::default();
    type_in(&mut composer, "see ");
    composer.write_file("/t/a.png");
    composer.write_file("/t/a.png");
    type_in(&mut composer, "and @/t/a.png2");
    assert!(composer.unname_file(None, "/t/a.png"));
    assert!(!composer.unname_file(None, "/t/a.png"), "it is none any more");
    type_in(&mut composer, "!");
    assert_eq!(composer.take().segments, plain("see /t/a.png /t/a.png and @/t/a.png2!"));
}

#[test]
fn history_comes_back_to_the_draft_it_began_with() {
    let mut composer = Composer::default();
    for text in ["first", "second"] {
        type_in(&mut composer, text);
        let message = composer.take();
        composer.history.add(&message, 1);
    }
    type_in(&mut composer, "draft");
    let text = |composer: &Composer| composer.draft().message().text;
    composer.up();
    assert_eq!(text(&composer), "second");
    composer.up();
    composer.up();
    assert_eq!(text(&composer), "first");
    composer.down();
    composer.down();
    assert_eq!(text(&composer), "draft");
}

#[test]
fn a_cleared_draft_is_brought_back_by_undo() {
    let mut composer = Composer::default();
    type_in(&mut composer, "precious");
    composer.clear();
    assert!(composer.is_empty());
    composer.edit(Action::Undo);
    assert_eq!(composer.draft().message().text, "precious");
}

#[test]
fn a_queued_message_comes_back_with_its_paste() {
    let mut composer = Composer::default();
    composer.paste(&"y\n".repeat(20));
    let sent = composer.take();
    assert_eq!(Message::of(&sent.segments).segments, sent.segments);
}

#[test]
fn rows_are_counted_as_they_are_painted() {
    let mut composer = Composer::default();
    assert_eq!(composer.draft().rows(10), 1);
    type_in(&mut composer, "one two three four");
    assert_eq!(composer.draft().rows(10), 2);
    composer.edit(Action::Newline);
    assert_eq!(composer.draft().rows(10), 3);
    type_in(&mut composer, "日本語日本語");
    assert_eq!(composer.draft().rows(10), 4);
}

#[test]
fn a_draft_that_has_room_is_shown_whole() {
    let theme = crate::theme::Theme::default();
    let mut composer = Composer::default();
    let top = |composer: &mut Composer, height: u16| {
        let area = Rect::new(0, 0, 20, height);
        composer.fill(Rect { width: 15, ..area });
        let view = View {
            composer,
            to: "a".into(),
            placeholder: "".into(),
            theme: &theme,
            glyphs: crate::screen::pane::glyph::Glyphs::Unicode,
            focused: true,
        };
        view.render(area, &mut Buffer::empty(area));
        composer.draft().text.scroll_offset().0
    };
    type_in(&mut composer, "one\ntwo\nthree\nfour");
    assert_eq!(top(&mut composer, 2), 2, "the caret is in view");
    assert_eq!(top(&mut composer, 3), 1, "the area has grown");
    for _ in 0..5 {
        composer.edit(Action::DeleteBack);
    }
    assert_eq!(top(&mut composer, 3), 0, "the draft has shrunk");
    assert_eq!(composer.draft().before_cursor(), "three");
}

#[test]
fn the_caret_stands_after_the_last_cluster() {
    for (text, column) in [("日本", 4), ("👩‍💻", 2), ("é", 1), ("❤️", 2), ("ab", 2)] {
        let mut composer = Composer::default();
        type_in(&mut composer, text);
        let theme = crate::theme::Theme::default();
        let view = View {
            composer: &composer,
            to: "alice".into(),
            placeholder: "".into(),
            theme: &theme,
            glyphs: crate::screen::pane::glyph::Glyphs::Unicode,
            focused: true,
        };
        let area = Rect::new(0, 0, 40, 3);
        let mut buf = Buffer::empty(area);
        let caret = view.render(area, &mut buf).expect("a caret");
        assert_eq!(caret.x - view.text_area(area).x, column, "after {text:?}");
    }
}

#[test]
fn two_pastes_of_the_same_size_stay_two_messages_in_the_history_and_when_they_are_sent() {
    let mut composer = Composer::default();
    for letter in ["a", "b"] {
        composer.paste(&letter.repeat(2000));
        let message = composer.take();
        composer.history.add(&message, 1);
    }
    let contents = |message: &Message| match &message.segments[..] {
        [Segment::Paste { content, .. }] => content.chars().next(),
        other => panic!("{other:?}"),
    };
    let sent: Vec<_> = composer.history.newest_first().map(contents).collect();
    assert_eq!(sent, [Some('b'), Some('a')]);
    // The older one, called back over the chip of a third one of the same size.
    composer.paste(&"c".repeat(2000));
    let older = composer.history.newest_first().nth(1).cloned().expect("the first message");
    composer.write(&older);
    assert_eq!(contents(&composer.take()), Some('a'));
}

#[test]
fn a_paste_that_comes_back_from_the_queue_keeps_apart_from_one_of_the_same_size() {
    let mut composer = Composer::default();
    let queued = |letter: &str| Segment::Paste {
        id: 1,
        chars: 2000,
        lines: 1,
        content: letter.repeat(2000),
    };
    composer.write(&Message::of(&[queued("a"), queued("b")]));
    composer.paste(&"c".repeat(2000));
    let segments = composer.take().segments;
    let first = |segment: &Segment| match segment {
        Segment::Paste { content, .. } => content.chars().next().unwrap_or(' '),
        other => panic!("{other:?}"),
    };
    let letters: String = segments.iter().map(first).collect();
    assert_eq!(letters, "abc");
}

/// A draft with a chip between two words, and the cursor at its end.
fn around_a_chip() -> (Composer, String) {
    let mut composer = Composer::default();
    type_in(&mut composer, "see ");
    composer.paste(&"line\n".repeat(30));
    let chip = composer.draft().message().text["see ".len()..].to_owned();
    type_in(&mut composer, " ok");
    (composer, chip)
}

#[test]
fn no_deletion_leaves_a_part_of_a_chip() {
    let chip = around_a_chip().1;
    let all = [
        Action::DeleteBack,
        Action::DeleteNext,
        Action::DeleteWordBack,
        Action::DeleteWordNext,
        Action::DeleteToStart,
        Action::DeleteToEnd,
    ];
    for action in all {
        for steps in 0..12 {
            let (mut composer, _) = around_a_chip();
            composer.edit(Action::LineStart);
            (0..steps).for_each(|_| _ = composer.edit(Action::Right));
            composer.edit(action);
            let text = composer.draft().message().text;
            let whole = text.contains(&chip);
            assert!(whole || !text.contains(['[', ']']), "{action:?} after {steps}: {text}");
            assert_eq!(composer.draft().broken_paste(), None, "{action:?} after {steps}");
        }
    }
}

#[test]
fn words_and_chips_are_deleted_one_by_one() {
    let (mut composer, chip) = around_a_chip();
    for left in [format!("see {chip} "), "see ".into(), String::new()] {
        composer.edit(Action::DeleteWordBack);
        assert_eq!(composer.draft().message().text, left);
    }
    composer.edit(Action::Undo);
    composer.edit(Action::Undo);
    assert_eq!(composer.draft().message().segments.len(), 2, "the paste is back whole");
}

#[test]
fn no_movement_stops_inside_a_chip() {
    let chip = around_a_chip().1;
    let (start, end) = ("see ".len(), "see ".len() + chip.chars().count());
    let stands = |composer: &Composer| composer.draft().text.cursor().1;
    let is_outside = |at: usize| at <= start || at >= end;
    for action in [Action::Left, Action::SelectLeft, Action::WordLeft] {
        let (mut composer, _) = around_a_chip();
        while stands(&composer) > 0 {
            composer.edit(action);
            assert!(is_outside(stands(&composer)), "{action:?} at {}", stands(&composer));
        }
    }
    for action in [Action::Right, Action::SelectRight, Action::WordRight] {
        let (mut composer, _) = around_a_chip();
        composer.edit(Action::LineStart);
        while !composer.draft().is_at_end() {
            composer.edit(action);
            assert!(is_outside(stands(&composer)), "{action:?} at {}", stands(&composer));
        }
    }
    for column in 0..60 {
        let (mut composer, _) = around_a_chip();
        composer.click(0, column);
        assert!(is_outside(stands(&composer)), "a click at {column}");
    }
    let (mut composer, _) = around_a_chip();
    type_in(&mut composer, " and a second line below");
    composer.edit(Action::LineStart);
    composer.edit(Action::Newline);
    composer.up();
    type_in(&mut composer, "0123456789");
    composer.down();
    assert!(is_outside(stands(&composer)), "from the line above");
}

#[test]
fn a_part_of_a_chip_is_noticed() {
    let (mut composer, chip) = around_a_chip();
    for broken in [&chip[..chip.len() - 1], &chip[1..], &chip[..10]] {
        composer.write(&Message::plain(&format!("see {broken} ok")));
        assert_eq!(composer.draft().broken_paste(), Some(1), "{broken}");
    }
    composer.write(&Message::plain("see it"));
    assert_eq!(composer.draft().broken_paste(), None, "the person deleted it");
}

#[test]
fn a_word_of_a_script_without_spaces_is_deleted_alone() {
    for text in ["修复这个测试并且提交", "テストを直してください"] {
        let mut composer = Composer::default();
        type_in(&mut composer, text);
        composer.edit(Action::DeleteWordBack);
        let left = composer.draft().message().text;
        assert!(!left.is_empty() && text.starts_with(&left) && left != text, "{left}");
        composer.edit(Action::WordLeft);
        assert!(!composer.draft().before_cursor().is_empty(), "{text}");
    }
}
