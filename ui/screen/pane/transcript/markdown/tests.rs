use super::*;
use crate::rows::row_width;
use proptest::prelude::*;

fn shown(text: &str, cells: usize) -> String {
    let rows = render(text, cells);
    let line = |row: &Row| row.iter().map(|piece| piece.text.as_str()).collect::<String>();
    rows.iter().map(|row| line(row).trim_end().to_owned() + "\n").collect()
}

const EVERYTHING: &str = "# Title

A paragraph with **bold**, *slanted*, `code` and a [link](https://example.org).
Second line of it, 日本語👩‍💻é.

- one
- two
  - nested two, with words that do not fit on one row
- [x] done

3. three
4. four

   more of four

> quoted
>
> > twice

```rust
fn main() {
    println!(\"hello\"); // said
}
```

| name | what it does | n |
|:-----|:------------:|--:|
| a    | something that is long | 1 |
| 日本 | `x` | 20 |

---
The end <b>here</b>.
";

#[test]
fn markdown_on_a_wide_screen() {
    insta::assert_snapshot!(shown(EVERYTHING, 60));
}

#[test]
fn markdown_on_a_narrow_screen() {
    insta::assert_snapshot!(shown(EVERYTHING, 24));
}

#[test]
fn a_table_that_does_not_fit_becomes_lines() {
    insta::assert_snapshot!(shown("| name | age |\n|--|--|\n| ann | 7 |\n| bob | 8 |\n", 9), @r"
    name: ann
    age: 7

    name: bob
    age: 8
    ");
}

#[test]
fn code_blocks_are_found_for_copying() {
    let text = "x\n```sh\nls\n```\ny\n\n- item\n  ```\n  a\n  b\n  ```\n";
    assert_eq!(code_blocks(text), ["ls\n", "a\nb\n"]);
}

/// Draws a text as it grows, cut at these places, and as a whole.
fn grown(text: &str, cuts: &[usize], cells: usize) -> (Vec<Row>, Vec<Row>) {
    let mut rows = Vec::new();
    let mut finished = Finished::default();
    let mut cuts: Vec<usize> = cuts.iter().map(|at| at % (text.len() + 1)).collect();
    cuts.sort_unstable();
    for cut in cuts {
        if text.is_char_boundary(cut) {
            grow(&text[..cut], cells, &mut finished, &mut rows);
        }
    }
    grow(text, cells, &mut finished, &mut rows);
    (rows, render(text, cells))
}

/// Documents of the parts that answers are made of.
fn document() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("Some words of a paragraph,\non two lines.\n\n".to_owned()),
        Just("# Heading\n\n".to_owned()),
        Just("- one\n- two\n  - nested\n- three\n\n".to_owned()),
        Just("1. one\n2. two\n\n   more\n\n3. three\n\n".to_owned()),
        Just("> quote\n> goes on\n\n".to_owned()),
        Just("```rust\nfn x() {\n\n    1\n}\n```\n\n".to_owned()),
        Just("~~~\nplain\n~~~\n".to_owned()),
        Just("| a | b |\n|---|---|\n| 1 | 日本 |\n\n".to_owned()),
        Just("---\n\n".to_owned()),
        "[a-z `*_]{0,40}\n\n",
    ];
    proptest::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn no_row_of_markdown_is_wider_than_the_screen(text in any::<String>(), cells in 1usize..120) {
        let text = crate::screen::pane::transcript::clean::words(&text).into_owned();
        prop_assert!(render(&text, cells).iter().all(|row| row_width(row) <= cells));
    }

    #[test]
    fn no_row_of_a_document_is_wider_than_the_screen(text in document(), cells in 1usize..120) {
        for row in render(&text, cells) {
            prop_assert!(row_width(&row) <= cells, "{row:?}");
        }
    }

    #[test]
    fn a_text_that_grows_ends_as_the_whole_text_looks(
        text in document(),
        cuts in proptest::collection::vec(any::<usize>(), 0..20),
        cells in 20usize..80,
    ) {
        let (grown, whole) = grown(&text, &cuts, cells);
        prop_assert_eq!(grown, whole);
    }
}

#[test]
fn a_long_paragraph_grows_by_lines_of_any_markup() {
    let line = "a **bold** word, `code`, *more* and a [link](https://example.org/x) at its end";
    let text = (0..40).map(|n| format!("{n} {line}\n")).collect::<String>();
    let every: Vec<usize> = (0..text.len()).step_by(7).collect();
    let (grown, whole) = grown(&text, &every, 70);
    let lost: Vec<&Row> = whole.iter().filter(|row| !grown.contains(row)).collect();
    assert_eq!((grown.len(), lost), (whole.len(), Vec::new()));
}

#[test]
fn a_growing_text_is_finished_up_to_its_last_part() {
    let long_code = format!("```\n{}", "line\n".repeat(1000));
    let long_text = "word word\n".repeat(1000);
    let long_list = "- item\n".repeat(1000);
    for text in [long_code, long_text, long_list] {
        let (mut finished, mut rows) = (Finished::default(), Vec::new());
        grow(&text, 40, &mut finished, &mut rows);
        assert!(text.len() - finished.byte < 64, "{finished:?} of {}", text.len());
        assert_eq!(rows, render(&text, 40));
    }
}
