//! The words of a Markdown text in one line, for places that have no room for its marks.

use pulldown_cmark::{Event, Parser, Tag};

/// The text without its marks; as it is where nothing would be left of it.
pub fn plain(markdown: &str) -> String {
    let mut words = String::new();
    let mut number = None;
    for event in Parser::new(markdown) {
        match event {
            Event::Start(Tag::List(first)) => number = first,
            Event::Start(Tag::Item) => {
                words.push(' ');
                words.extend(number.map(|number| format!("{number}. ")));
                number = number.map(|number| number + 1);
            }
            Event::Text(text)
            | Event::Code(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => words.push_str(&text),
            // A new block or line begins a new word.
            Event::Start(tag) if is_block(&tag) => words.push(' '),
            Event::SoftBreak | Event::HardBreak => words.push(' '),
            _ => {}
        }
    }
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() { markdown.trim().to_owned() } else { words }
}

fn is_block(tag: &Tag<'_>) -> bool {
    !matches!(
        tag,
        Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_loses_its_marks_and_none_of_its_words() {
        let cases = [
            (
                "**All** `212` tests pass; see [the log](http://x.y)",
                "All 212 tests pass; see the log",
            ),
            ("## Done\n\n- one\n- *two*\n\n```sh\nmake\n```", "Done one two make"),
            ("3. the lock file\n4. the tests", "3. the lock file 4. the tests"),
            ("snake_case_name, 2 * 3 * 4, a <T> of x", "snake_case_name, 2 * 3 * 4, a <T> of x"),
            ("***", "***"),
            ("  plain words  ", "plain words"),
        ];
        for (markdown, words) in cases {
            assert_eq!(plain(markdown), words);
        }
    }
}
