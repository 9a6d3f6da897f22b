//! Finds the text that an edit replaces: exactly, or at the one place that differs only in white
//! space, in quotation marks and dashes, or in the line numbers that Read shows.

use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a file in which more than the exact text is looked for.
const MAX_LOOKED_AT: usize = 2 * 1024 * 1024;
/// Lines and characters of each line that are compared with a text that was not found.
const MAX_LINES: usize = 20_000;
const MAX_LINE: usize = 200;
/// How alike two lines must be to be shown for each other.
const ALIKE: f64 = 0.5;
/// Lines that are shown for a text that was not found.
const MAX_SHOWN: usize = 8;

/// The places that an edit changes.
#[derive(Debug, PartialEq)]
pub enum Places {
    /// The offsets of the old text itself; there may be none.
    Exact(Vec<usize>),
    /// The one part of the file that is like the old text, the text that belongs in its place, and in words
    /// what differs.
    Nearly(Range<usize>, String, &'static str),
    /// So many parts of the file are like the old text.
    Ambiguous(usize),
}

/// Finds `old` in a file.
pub fn find(text: &str, old: &str, new: &str) -> Places {
    let exact = exactly(text, old);
    if !exact.is_empty() || text.len() > MAX_LOOKED_AT {
        return Places::Exact(exact);
    }
    let Some(unnumbered) = without_line_numbers(old) else { return nearly(text, old, new, OTHER) };
    let new = without_line_numbers(new).unwrap_or_else(|| new.to_owned());
    match exactly(text, &unnumbered).as_slice() {
        [only] => Places::Nearly(*only..*only + unnumbered.len(), new, NUMBERS),
        [] => nearly(text, &unnumbered, &new, NUMBERS),
        more => Places::Ambiguous(more.len()),
    }
}

const NUMBERS: &str = "without the line numbers in old_string";
const OTHER: &str = "old_string differs there in white space, quotation marks or dashes";

fn exactly(text: &str, old: &str) -> Vec<usize> {
    text.match_indices(old).map(|(at, _)| at).collect()
}

/// The text without the number and the tab that Read puts before each line, if each line has them.
fn without_line_numbers(text: &str) -> Option<String> {
    let lines = text.split_inclusive('\n').map(|line| {
        let (number, rest) = line.split_once('\t')?;
        let number = number.trim_start_matches(' ');
        (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(rest)
    });
    lines
        .collect::<Option<Vec<&str>>>()
        .filter(|lines| !lines.is_empty())
        .map(|lines| lines.concat())
}

/// The one place that equals the old text when both are folded.
fn nearly(text: &str, old: &str, new: &str, how: &'static str) -> Places {
    let (folded, wanted) = (Folded::of(text), Folded::of(old).text);
    if wanted.trim().is_empty() {
        return Places::Exact(Vec::new());
    }
    let places: Vec<usize> = folded.text.match_indices(&wanted).map(|(at, _)| at).collect();
    let at = match places.as_slice() {
        [] => return Places::Exact(Vec::new()),
        [only] => *only,
        more => return Places::Ambiguous(more.len()),
    };
    let (mut start, mut end) = (folded.spans[at].start, folded.spans[at + wanted.len() - 1].end);
    if old.starts_with(is_blank) {
        start = text[..start].trim_end_matches(is_blank).len();
    }
    if old.ends_with(is_blank) {
        end = text.len() - text[end..].trim_start_matches(is_blank).len();
    }
    let before = text[..start].rsplit('\n').next().unwrap_or_default();
    let new = adapted(old, &text[start..end], new, before);
    Places::Nearly(start..end, new, how)
}

/// A text in which spellings of the same are equal, and where each of its bytes comes from.
struct Folded {
    text: String,
    spans: Vec<Range<usize>>,
}

impl Folded {
    /// White space at both ends of a line is left out and is one space elsewhere; each quotation mark
    /// and dash is that of ASCII.
    fn of(text: &str) -> Self {
        let mut folded = Self { text: String::new(), spans: Vec::new() };
        let mut chars = text.char_indices().peekable();
        let mut at_start = true;
        while let Some((at, c)) = chars.next() {
            if is_blank(c) {
                let mut end = at + c.len_utf8();
                while let Some((at, c)) = chars.next_if(|(_, c)| is_blank(*c)) {
                    end = at + c.len_utf8();
                }
                let at_end = chars.peek().is_none_or(|(_, c)| *c == '\n');
                if !at_start && !at_end {
                    folded.push(' ', at..end);
                }
                continue;
            }
            at_start = c == '\n';
            folded.push(plain(c), at..at + c.len_utf8());
        }
        folded
    }

    fn push(&mut self, c: char, span: Range<usize>) {
        self.text.push(c);
        self.spans.extend(std::iter::repeat_n(span, c.len_utf8()));
    }
}

fn is_blank(c: char) -> bool {
    c != '\n' && c.is_whitespace()
}

/// The character of ASCII for a quotation mark or dash; every other character stays.
fn plain(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        other => other,
    }
}

/// The new text as it belongs at a place that differs from the old text: lines that do not change stay
/// as they are there, the others get its indentation and its ASCII characters.
fn adapted(old: &str, there: &str, new: &str, before: &str) -> String {
    let (old, there): (Vec<&str>, Vec<&str>) =
        (old.split('\n').collect(), there.split('\n').collect());
    let new: Vec<&str> = new.split('\n').collect();
    let habits = Habits::of(&old, &there, before);
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[same..], &new[same..]);
    let equal = |(old, new): &(&&str, &&str)| old == new;
    let same_end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(equal).count();
    let changed = new_rest[..new_rest.len() - same_end].iter().enumerate();
    let changed = changed.map(|(index, line)| match same + index {
        // The part of the first line before the place stays, with its indentation.
        0 if !old[0].starts_with(is_blank) => habits.characters(line),
        _ => habits.line(line),
    });
    let stay = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let mut lines = stay(&there[..same]);
    lines.extend(changed);
    lines.extend(stay(&there[there.len() - same_end..]));
    lines.join("\n")
}

/// What a place of a file has instead of what a model wrote for it.
#[derive(Default)]
struct Habits<'a> {
    /// The indentations of the file by those of the old text.
    indents: BTreeMap<&'a str, &'a str>,
    /// Spaces that stand for a tab where one side indents with tabs.
    tab: Option<usize>,
    characters: BTreeMap<char, char>,
}

impl<'a> Habits<'a> {
    /// `before` is the part of the first line before the place.
    fn of(old: &[&'a str], there: &[&'a str], before: &'a str) -> Self {
        let mut habits = Self::default();
        for (index, (old, there)) in old.iter().zip(there).enumerate() {
            habits.learn_characters(old, there);
            let starts_inside = index == 0 && !before.chars().all(is_blank);
            if starts_inside || old.trim().is_empty() {
                continue;
            }
            let inside =
                if index == 0 && indent(there).is_empty() { before } else { indent(there) };
            habits.indents.entry(indent(old)).or_insert(inside);
        }
        let tab = |(old, there): (&&str, &&str)| {
            spaces_for_tab(old, there).or_else(|| spaces_for_tab(there, old))
        };
        habits.tab = habits.indents.iter().find_map(tab);
        habits
    }

    fn learn_characters(&mut self, old: &str, there: &str) {
        let visible = |c: &char| !is_blank(*c);
        let pairs = old.chars().filter(visible).zip(there.chars().filter(visible));
        // A mark of ASCII stays in what is new: in a program it may be the only one that is right.
        self.characters.extend(pairs.filter(|(old, there)| old != there && there.is_ascii()));
    }

    fn line(&self, line: &str) -> String {
        if line.trim().is_empty() {
            return line.to_owned();
        }
        let own = indent(line);
        format!("{}{}", self.indentation(own), self.characters(&line[own.len()..]))
    }

    fn characters(&self, text: &str) -> String {
        text.chars().map(|c| self.characters.get(&c).copied().unwrap_or(c)).collect()
    }

    fn indentation(&self, own: &str) -> String {
        let known = self.indents.iter().filter(|(old, _)| own.starts_with(**old));
        let (old, there) = known.max_by_key(|(old, _)| old.len()).unwrap_or((&"", &""));
        format!("{there}{}", self.converted(&own[old.len()..]))
    }

    /// A further indentation in tabs or spaces, whichever the file has.
    fn converted(&self, more: &str) -> String {
        let tabs = self.indents.values().any(|there| there.contains('\t'));
        match self.tab {
            Some(tab)
                if tabs && more.len().is_multiple_of(tab) && more.bytes().all(|b| b == b' ') =>
            {
                "\t".repeat(more.len() / tab)
            }
            Some(tab) if !tabs => more.replace('\t', &" ".repeat(tab)),
            _ => more.to_owned(),
        }
    }
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches(is_blank).len()]
}

fn spaces_for_tab(spaces: &str, tabs: &str) -> Option<usize> {
    let all = |text: &str, byte: u8| !text.is_empty() && text.bytes().all(|b| b == byte);
    let fits = all(spaces, b' ') && all(tabs, b'\t') && spaces.len().is_multiple_of(tabs.len());
    fits.then(|| spaces.len() / tabs.len())
}

/// The lines that are most like the old text: the index of the first, and how many. `None` if none is.
pub fn nearest(text: &str, old: &str) -> Option<Range<usize>> {
    let unnumbered = without_line_numbers(old);
    let old: Vec<&str> = unnumbered.as_deref().unwrap_or(old).lines().collect();
    let short = |line: &str| line.trim().chars().take(MAX_LINE).map(plain).collect::<String>();
    let (index, wanted) =
        old.iter().map(|line| short(line)).enumerate().max_by_key(|(_, line)| line.len())?;
    if wanted.is_empty() {
        return None;
    }
    let lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
    let like = |line: &&str| strsim::sorensen_dice(&short(line), &wanted);
    let scored = lines.iter().map(like).enumerate();
    let (best, score) = scored.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    if score < ALIKE {
        return None;
    }
    let from = best.saturating_sub(index.min(MAX_SHOWN / 2));
    Some(from..(from + old.len().clamp(3, MAX_SHOWN)).max(best + 1).min(lines.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file after the edit, and whether the old text was there exactly.
    fn edited(text: &str, old: &str, new: &str) -> Option<(String, bool)> {
        let (place, new, exact) = match find(text, old, new) {
            Places::Exact(places) => {
                let [at] = places.as_slice() else { return None };
                (*at..*at + old.len(), new.to_owned(), true)
            }
            Places::Nearly(place, new, _) => (place, new, false),
            Places::Ambiguous(_) => return None,
        };
        let mut changed = text.to_owned();
        changed.replace_range(place, &new);
        Some((changed, exact))
    }

    fn nearly(text: &str, old: &str, new: &str) -> String {
        let (changed, exact) = edited(text, old, new).unwrap();
        assert!(!exact);
        changed
    }

    #[test]
    fn the_exact_text_counts_before_all_that_is_like_it() {
        let text = "a = “x”\na = \"x\"\n";
        assert_eq!(edited(text, "\"x\"", "y"), Some(("a = “x”\na = y\n".into(), true)));
    }

    #[test]
    fn quotation_marks_and_dashes_may_differ_and_stay_as_the_file_has_them() {
        assert_eq!(
            nearly("say(\"hi\") - 1\n", "say(“hi”) – 1", "say(“ho”) – 2"),
            "say(\"ho\") - 2\n"
        );
        let text = "He said “no”.\nShe left.\n";
        assert_eq!(
            nearly(text, "He said \"no\".\nShe left.", "He said \"no\".\nShe stayed."),
            "He said “no”.\nShe stayed.\n"
        );
    }

    #[test]
    fn spaces_for_tabs_are_tabs_again_in_what_is_new() {
        let text = "fn f() {\n\tif x {\n\t\ty();\n\t}\n}\n";
        let old = "    if x {\n        y();\n    }";
        let new = "    if x {\n        y();\n        if z {\n            w();\n        }\n    }";
        let expected = "fn f() {\n\tif x {\n\t\ty();\n\t\tif z {\n\t\t\tw();\n\t\t}\n\t}\n}\n";
        assert_eq!(nearly(text, old, new), expected);
        let text = "f:\n    a\n        b\n";
        assert_eq!(
            nearly(text, "\ta\n\t\tb", "\ta\n\t\tb\n\t\t\tc"),
            "f:\n    a\n        b\n            c\n"
        );
    }

    #[test]
    fn an_indentation_that_was_left_out_comes_back() {
        let text = "    if x:\n        y()\n    z()\n";
        assert_eq!(
            nearly(text, "if x:\n    y()", "if x:\n    y()\n    w()"),
            "    if x:\n        y()\n        w()\n    z()\n"
        );
    }

    #[test]
    fn white_space_at_the_end_of_a_line_does_not_count() {
        assert_eq!(nearly("a  \nb\t\nc\n", "a\nb\nc", "a\nB\nc"), "a  \nB\nc\n");
        assert_eq!(nearly("a\nb\n", "a   \nb", "c\nb"), "c\nb\n");
        assert_eq!(nearly("x\u{a0}=\u{a0}1\n", "x = 1", "x = 2"), "x = 2\n");
    }

    #[test]
    fn line_numbers_of_read_are_left_out() {
        let text = "one\ntwo\n\tthree\n";
        let old = "     2\ttwo\n     3\t\tthree";
        assert_eq!(nearly(text, old, "     2\tTWO\n     3\t\tthree"), "one\nTWO\n\tthree\n");
        assert_eq!(nearly(text, old, "TWO\n\tthree"), "one\nTWO\n\tthree\n");
    }

    #[test]
    fn a_text_like_several_places_changes_none() {
        let text = "say(\"a\")\nsay( \"a\")\n";
        assert_eq!(find("f( a)\ng\nf( a)\n", "f(  a)", "h"), Places::Ambiguous(2));
        assert_eq!(find(text, "say(“b”)", "x"), Places::Exact(Vec::new()));
        assert_eq!(find(text, " \n", "x"), Places::Exact(Vec::new()));
    }

    #[test]
    fn the_lines_that_are_most_like_a_text_are_found() {
        let text =
            "fn alpha() {}\n\nfn main() {\n    let total = count(a, b);\n    print(total);\n}\n";
        assert_eq!(nearest(text, "    let total = counted(a, b, c);\n"), Some(3..6));
        assert_eq!(nearest(text, "zzz"), None);
        assert_eq!(nearest("", "zzz"), None);
    }
}
