//! Searching a list: some rows at a time, so that keys are handled in between however long the list is.

use crate::screen::pick_list::{Choice, ListRow};
use nucleo::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo::{Config, Matcher, Utf32Str};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// How many rows are searched at a time.
const ROWS: usize = 4_000;

/// A search that is continued until all rows have been compared with the query.
#[derive(Clone, Debug)]
pub(super) struct Search {
    query: String,
    /// Matches a text that contains the characters of the query in their order.
    text: Pattern,
    /// Matches a help text that contains each word of the query unchanged.
    help: Pattern,
    /// The rows to compare; `None` means all.
    among: Option<Vec<usize>>,
    /// How many of these have been compared.
    seen: usize,
    found: BTreeSet<Match>,
}

/// A row that matches; the smallest is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Match {
    class: Class,
    uses: Reverse<u32>,
    kind: Kind,
    score: Reverse<u32>,
    row: usize,
    /// The characters of the query stand apart in its text.
    is_scattered: bool,
}

/// How well a row matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// Its text begins with the query.
    Begins,
    Text,
    /// Only its help matches.
    Help,
}

/// What a row is, the likeliest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Any,
    Value,
    Setting,
    Message,
}

impl Kind {
    fn of(choice: &Choice) -> Self {
        match choice {
            Choice::Line(_) => Self::Value,
            Choice::Setting(_) => Self::Setting,
            Choice::History(_) => Self::Message,
            _ => Self::Any,
        }
    }
}

impl Search {
    pub(super) fn new(query: &str, among: Option<Vec<usize>>) -> Self {
        let pattern = |kind| Pattern::new(query, CaseMatching::Ignore, Normalization::Smart, kind);
        Self {
            query: without_colon(query).to_owned(),
            text: pattern(AtomKind::Fuzzy),
            help: pattern(AtomKind::Substring),
            among,
            seen: 0,
            found: BTreeSet::new(),
        }
    }

    pub(super) fn is_done(&self, rows: &[ListRow]) -> bool {
        self.seen >= self.among.as_ref().map_or(rows.len(), Vec::len)
    }

    /// Compares the next rows. `uses` says how often each row was chosen before; it may be empty.
    pub(super) fn go_on(&mut self, rows: &[ListRow], uses: &[u32]) {
        let (mut matcher, mut buffer) = (Matcher::new(Config::DEFAULT), Vec::new());
        let mut score = |pattern: &Pattern, text: &str| {
            pattern.score(Utf32Str::new(text, &mut buffer), &mut matcher)
        };
        let end = self.seen + ROWS;
        for place in self.seen..end {
            let at = match &self.among {
                None => Some(place),
                Some(among) => among.get(place).copied(),
            };
            let Some((at, row)) = at.and_then(|at| Some((at, rows.get(at)?))) else { break };
            let (class, score) = match score(&self.text, &row.text) {
                Some(score) if self.begins(&row.text) => (Class::Begins, score),
                Some(score) => (Class::Text, score),
                None => match score(&self.help, &with_a_last_blank(&row.help)) {
                    Some(score) => (Class::Help, score),
                    None => continue,
                },
            };
            let uses = Reverse(uses.get(at).copied().unwrap_or(0));
            let (kind, score) = (Kind::of(&row.choice), Reverse(score));
            let is_scattered = class == Class::Text && !self.has_all(&row.text);
            self.found.insert(Match { class, uses, kind, score, row: at, is_scattered });
        }
        self.seen = end;
    }

    /// The rows that match, best first. Where a row begins with the query, the values of settings in which its characters
    /// only stand somewhere are left out: long names of models have nearly all.
    pub(super) fn found(self) -> Vec<usize> {
        let begins = self.found.first().is_some_and(|best| best.class == Class::Begins);
        let is_far = |found: &Match| begins && found.is_scattered && found.kind == Kind::Value;
        self.found.into_iter().filter(|found| !is_far(found)).map(|found| found.row).collect()
    }

    /// Whether a text has each word of the query.
    fn has_all(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.query.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }

    fn begins(&self, text: &str) -> bool {
        let start = without_colon(text).as_bytes().get(..self.query.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(self.query.as_bytes()))
    }
}

/// A text in which nucleo 0.3 finds a word also at the end: in one with characters beyond ASCII, it does not compare the last
/// place where the word could begin.
fn with_a_last_blank(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { text.into() } else { format!("{text} ").into() }
}

/// A verb without the colon before it.
fn without_colon(text: &str) -> &str {
    text.strip_prefix(':').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::pick_list::Choice;

    fn rows(of: &[(&str, &str)]) -> Vec<ListRow> {
        let row = |(text, help): &(&str, &str)| ListRow {
            text: (*text).into(),
            help: (*help).into(),
            choice: Choice::Nothing,
        };
        of.iter().map(row).collect()
    }

    fn found(query: &str, rows: &[ListRow], uses: &[u32]) -> Vec<String> {
        let mut search = Search::new(query, None);
        while !search.is_done(rows) {
            search.go_on(rows, uses);
        }
        search.found().into_iter().map(|at| rows[at].text.clone()).collect()
    }

    #[test]
    fn a_name_that_begins_with_the_query_keeps_values_away_that_only_have_its_characters() {
        let row = |text: &str, choice| ListRow { text: text.into(), help: String::new(), choice };
        let line = |text: &str| row(text, Choice::Line(text.into()));
        let nano = ":model openai/gpt-5-nano-2025-08-07";
        let all = [row("n2", Choice::Verb("n2")), line(nano), line(":model x/n2")];
        let found = |rows: &[ListRow]| {
            let mut search = Search::new("n2", None);
            while !search.is_done(rows) {
                search.go_on(rows, &[]);
            }
            search.found()
        };
        assert_eq!(found(&all), [0, 2]);
        assert_eq!(found(&all[1..2]), [0], "where it is the only one, it is found");
    }

    #[test]
    fn the_beginning_of_a_text_comes_before_its_middle_and_this_before_what_is_said_of_it() {
        let rows = rows(&[
            (":rm", "delete stopped Pods"),
            (":restore", "bring stopped Pods back"),
            ("nonstop", "Pod, idle"),
            (":stop", "end Pods"),
        ]);
        assert_eq!(found("stop", &rows, &[]), [":stop", "nonstop", ":rm", ":restore"]);
        assert_eq!(found(":ST", &rows, &[]), [":stop", ":restore"]);
        assert_eq!(found("bring pods", &rows, &[]), [":restore"]);
        assert_eq!(found("stop zzz", &rows, &[]), [""; 0]);
    }

    #[test]
    fn of_rows_that_match_alike_the_most_used_comes_first() {
        let rows = rows(&[(":stop", ""), (":steer", ""), (":since", "")]);
        assert_eq!(found("s", &rows, &[0, 2, 7]), [":since", ":steer", ":stop"]);
        assert_eq!(found("st", &rows, &[1, 0, 7]), [":stop", ":steer"]);
    }

    #[test]
    fn a_word_of_a_help_is_found_whatever_else_the_help_says() {
        let helps =
            ["stops · Pods", "a café stops Pods", "写 stops Pods", "“stops” Pods …", "stops Pods"];
        let rows = rows(&helps.map(|help| ("row", help)));
        for query in ["stops", "pods", "stops pods"] {
            assert_eq!(found(query, &rows, &[]).len(), helps.len(), "{query}");
        }
        assert_eq!(found("cafe", &rows, &[]).len(), 1);
    }
}
