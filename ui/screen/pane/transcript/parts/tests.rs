use super::*;
use crate::screen::code::Highlighter;
use proptest::prelude::*;

/// The parts of a text as it stands in a line, which comes in pieces.
fn parts(raw: &str, kept: usize, pieces: usize) -> Vec<Part> {
    let mut builder = TableBuilder::behind(kept);
    builder.begin(0);
    let mut from = 0;
    while from < raw.len() {
        let to = raw.ceil_char_boundary((from + pieces).min(raw.len()));
        builder.push(&raw[from..to]).expect("a text");
        from = to;
    }
    builder.end();
    builder.table(EntryId::new()).parts
}

/// The inside of the JSON string of a text.
fn encoded(text: &str, ascii: bool) -> String {
    let raw = serde_json::to_string(text).expect("encoded");
    let raw = &raw[1..raw.len() - 1];
    if !ascii {
        return raw.to_owned();
    }
    let unit = |unit: u16| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
        _ => format!("\\u{unit:04x}"),
    };
    raw.encode_utf16().map(unit).collect()
}

fn decoded(raw: &str, part: &Part) -> String {
    let (start, end) = (part.start as usize, part.end as usize);
    Unescape::default().push(&raw[start..end]).expect("a text")
}

/// Text with everything that a border must not divide: escapes of JSON and of terminals, characters
/// of one to four bytes, marks that belong to the character before them, and long lines.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("日本語 é 🎈 \"x\" \\\\ \n".to_owned()),
        Just("word ".to_owned()),
        Just("\u{1b}[31mred\u{1b}[0m\n".to_owned()),
        Just("e\u{301}👩\u{200d}💻".to_owned()),
        Just("\n\n```rust\nlet a = 1;\n```\n".to_owned()),
        "\\PC{0,20}",
    ];
    (prop::collection::vec(piece, 1..12), 1usize..1500)
        .prop_map(|(pieces, times)| pieces.concat().repeat(times))
        .prop_map(|text| text[..text.floor_char_boundary(160_000)].to_owned())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_parts_of_a_text_together_are_the_text(
        text in text(),
        ascii in any::<bool>(),
        pieces in 1usize..200_000,
        kept in 0usize..9000,
    ) {
        let raw = encoded(&text, ascii);
        let kept = beginning(&text[..text.floor_char_boundary(kept)]);
        let found = parts(&raw, kept, pieces.max(raw.len() / 50));
        let joined: String = found.iter().map(|part| decoded(&raw, part)).collect();
        prop_assert_eq!(&joined, &text[kept..]);
        for part in &found {
            prop_assert!(part.bytes > 0 && part.bytes <= LONG_WORD + 64, "{} bytes", part.bytes);
            prop_assert_eq!(decoded(&raw, part).len(), part.bytes);
        }
        for part in found.iter().rev().skip(1) {
            prop_assert!(part.bytes >= PART, "{} bytes", part.bytes);
        }
        // What is shown of the parts is what would be shown of the whole text.
        let mut shown = yoi::text::SafeText::lines(&text[..kept]).into_string();
        for part in &found {
            let mut safe = part.begin.safe.as_deref().cloned().unwrap_or_default();
            shown.push_str(&safe.push(&decoded(&raw, part)));
        }
        let whole = yoi::text::SafeText::lines(text.as_str());
        prop_assert_eq!(shown.replace('\u{200d}', ""), whole.replace('\u{200d}', ""));
    }

    #[test]
    fn the_borders_do_not_depend_on_the_pieces(text in text(), one in 1usize..5000) {
        let raw = encoded(&text, false);
        let borders = |pieces| -> Vec<(u64, u64)> {
            parts(&raw, 0, pieces).iter().map(|part| (part.start, part.end)).collect()
        };
        prop_assert_eq!(borders(one.max(raw.len() / 50)), borders(usize::MAX / 2));
    }
}

#[test]
fn a_part_inside_a_block_of_code_knows_its_fence_and_what_its_lines_left_open() {
    let code = "let a = 1; // and so on\n".repeat(6_000);
    let text = format!("Look:\n\n```rust\n/*\n{code}```\n\n{}", "more words\n".repeat(20_000));
    let found = parts(&encoded(&text, false), 7, 1000);
    let mut inside_comment = Highlighter::new("rust");
    inside_comment.line("/*");
    let begins: Vec<Option<&Highlighter>> =
        found.iter().map(|part| part.begin.fence.as_ref().map(|fence| &fence.code)).collect();
    assert_eq!(begins[..4], [None, Some(&inside_comment), Some(&inside_comment), None]);
}

#[test]
fn parts_are_read_together_as_far_as_they_adjoin_and_are_missing() {
    let part = |start, end| Part { start, end, bytes: 1, begin: Begin::default() };
    let parts = vec![part(10, 20), part(20, 30), part(33, 40), part(40, 50), part(50, 60)];
    let table = PartTable { entry: EntryId::new(), parts };
    assert_eq!(table.range(1, false, 9, |_| true), Some((1, 2)));
    assert_eq!(table.range(3, false, 2, |_| true), Some((3, 2)));
    assert_eq!(table.range(5, true, 9, |part| part != 3), Some((4, 2)));
    assert_eq!(table.range(6, true, 9, |_| true), None);
}
