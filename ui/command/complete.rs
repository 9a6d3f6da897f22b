//! Completion of a command line: fuzzy over what its current word can be.

use crate::command::{Argument, Row, TABLE, find};
use nucleo::pattern::{CaseMatching, Normalization, Pattern};
use nucleo::{Config, Matcher, Utf32Str};

/// What arguments can be, besides verbs.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Name and state.
    pub pods: Vec<(String, String)>,
    pub models: Vec<String>,
    /// Paths that some Pod has to do with.
    pub paths: Vec<String>,
    pub themes: Vec<String>,
}

/// One possible completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Replaces the word under completion.
    pub text: String,
    pub help: String,
}

/// What the last word of a line can become.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Byte at which the word begins.
    pub start: usize,
    /// Best first.
    pub candidates: Vec<Candidate>,
}

/// The completions of `line`, which stands without its colon.
pub fn complete(line: &str, sources: &Sources) -> Completion {
    let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let word = &line[start..];
    let all =
        if line[..start].trim().is_empty() { verbs() } else { argument(line, start, sources) };
    Completion { start, candidates: rank(word, all, |candidate| &candidate.text) }
}

fn verbs() -> Vec<Candidate> {
    TABLE
        .iter()
        .map(|row| Candidate { text: row.name.into(), help: help_of(row.usage, row.help) })
        .collect()
}

fn help_of(usage: &str, help: &str) -> String {
    if usage.is_empty() { help.to_owned() } else { format!("{usage}  {help}") }
}

fn argument(line: &str, start: usize, sources: &Sources) -> Vec<Candidate> {
    let mut words = line[..start].split_whitespace();
    let (Some(verb), before) = (words.next(), words.collect::<Vec<_>>()) else { return Vec::new() };
    let Some(row) = find(verb) else { return Vec::new() };
    let plain = |list: &[String]| {
        list.iter().map(|text| Candidate { text: text.clone(), help: String::new() }).collect()
    };
    match row.argument {
        Argument::Pod | Argument::Pods | Argument::NewPod if line[start..].starts_with('-') => {
            plain(&named_options(row))
        }
        Argument::Pod | Argument::PodThenText if before.is_empty() => pods(sources),
        Argument::Pods => {
            let mut left = pods(sources);
            left.retain(|pod| !before.contains(&pod.text.as_str()));
            left
        }
        Argument::Slot if before.len() == 1 => pods(sources),
        Argument::Lending if before.len() < 2 => pods(sources),
        Argument::Lending if before.len() == 2 => plain(&sources.paths),
        Argument::Path if before.is_empty() => plain(&sources.paths),
        Argument::Policy if before.is_empty() => plain(&["revoke".to_owned()]),
        Argument::Model if before.is_empty() => plain(&sources.models),
        Argument::Theme if before.is_empty() => plain(&sources.themes),
        Argument::Verb if before.is_empty() => verbs(),
        Argument::NewPod if before.last() == Some(&"--model") => plain(&sources.models),
        _ => Vec::new(),
    }
}

/// The options that its usage names.
fn named_options(row: &Row) -> Vec<String> {
    let words = row.usage.split([' ', '[', ']']);
    words.filter(|word| word.starts_with("--")).map(String::from).collect()
}

fn pods(sources: &Sources) -> Vec<Candidate> {
    let pods = sources.pods.iter();
    pods.map(|(name, state)| Candidate { text: name.clone(), help: state.clone() }).collect()
}

/// Those of `all` that match `query`, best first; all of them, in their order, for an empty one.
pub fn rank<T>(query: &str, all: Vec<T>, text: impl Fn(&T) -> &str) -> Vec<T> {
    if query.trim().is_empty() {
        return all;
    }
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::parse(query, CaseMatching::Ignore, Normalization::Smart);
    let mut buffer = Vec::new();
    let mut scored: Vec<(bool, u32, T)> = all
        .into_iter()
        .filter_map(|item| {
            let score = pattern.score(Utf32Str::new(text(&item), &mut buffer), &mut matcher)?;
            let begins = text(&item).starts_with(query);
            Some((begins, score, item))
        })
        .collect();
    scored.sort_by_key(|(begins, score, _)| std::cmp::Reverse((*begins, *score)));
    scored.into_iter().map(|(_, _, item)| item).collect()
}

/// The verb most like `word`, for a hint.
pub fn nearest(word: &str) -> Option<&'static str> {
    let close = |name: &str| {
        let common = name.chars().zip(word.chars()).take_while(|(a, b)| a == b).count();
        let anagram = {
            let sorted = |text: &str| {
                let mut chars: Vec<char> = text.chars().collect();
                chars.sort_unstable();
                chars
            };
            sorted(name) == sorted(word)
        };
        if anagram { usize::MAX } else { common }
    };
    let best = TABLE.iter().map(|row| row.name).max_by_key(|name| close(name))?;
    (close(best) >= 2).then_some(best)
}
