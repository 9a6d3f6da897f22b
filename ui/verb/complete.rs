//! Completion of a command line: fuzzy over what its current word can be, which the arguments of the verb say.

use crate::verb::effort;
use crate::verb::line::{free_text, option, takes_next};
use crate::verb::words::{self, Word, split_unfinished};
use crate::verb::{Way, find, reached, source};
use clap::{Arg, Command};
use nucleo::pattern::{CaseMatching, Normalization, Pattern};
use nucleo::{Config, Matcher, Utf32Str};
use yoi::protocol::Completion as File;
use yoi::text::verb_word;

/// The verbs that have no effect on a stopped Pod.
const OF_LIVE_PODS: [&str; 3] = ["stop", "pause", "cancel"];
/// The verbs about the selected Pod and another one.
const OF_OTHER_PODS: [&str; 2] = ["peer", "unpeer"];
/// The verb that does nothing to a live Pod but for those below it.
const FIRST_AT_REST: &str = "restore";
/// The verb that refuses a live Pod.
const OF_PODS_AT_REST: &str = "rm";

/// What arguments can be, besides verbs.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Name and state.
    pub pods: Vec<(String, String)>,
    /// The names of those that are stopped or cannot be read.
    pub at_rest: Vec<String>,
    /// The name of the selected Pod.
    pub selected: Option<String>,
    /// Selectors of Pods, and what each matches.
    pub selectors: Vec<(String, String)>,
    /// The agents that the selected Pod reaches: name and kind.
    pub agents: Vec<(String, String)>,
    /// `provider/model` and what is known of it.
    pub models: Vec<(String, String)>,
    /// The providers that are known by name.
    pub providers: Vec<String>,
    /// Paths that some Pod has to do with.
    pub paths: Vec<String>,
    /// An `@word` of a text, and the files that it may become.
    pub mentions: (String, Vec<File>),
    pub themes: Vec<String>,
    pub keymaps: Vec<String>,
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

/// The `@word` at the end of a line: its first byte, and the word without the sign.
pub fn mention(line: &str) -> Option<(usize, &str)> {
    let blank = line.char_indices().rev().find(|(_, c)| c.is_whitespace());
    let start = blank.map_or(0, |(at, blank)| at + blank.len_utf8());
    line[start..].strip_prefix('@').map(|word| (start, word))
}

/// Whether byte `start` of a command line lies in the last argument of the verb, and that argument is free text.
pub fn is_text(line: &str, start: usize) -> bool {
    let (name, rest) = words::first(line);
    let text = find(name).and_then(|verb| free_text(&verb.line(), rest));
    text.is_some_and(|at| line.len() - rest.len() + at <= start)
}

/// What the `@word` at the end of a text may become: a Pod, by its name, or a file.
pub fn mentions(text: &str, sources: &Sources) -> Option<Completion> {
    let (start, word) = mention(text)?;
    let pods = rank(word, named(&sources.pods), |one| &one.text);
    let (known, files) = &sources.mentions;
    let files = files.iter().filter(|_| known == word).map(|file| Candidate {
        text: format!("@{}{}", file.value, if file.is_dir { "/" } else { "" }),
        help: String::new(),
    });
    let (first, last): (Vec<_>, Vec<_>) =
        pods.into_iter().partition(|pod| !word.is_empty() && pod.text.starts_with(word));
    Some(Completion { start, candidates: first.into_iter().chain(files).chain(last).collect() })
}

/// The completions of `line`, which stands without its colon.
pub fn complete(line: &str, sources: &Sources) -> Completion {
    if let Some((start, _)) = mention(line)
        && is_text(line, start)
    {
        return mentions(line, sources).unwrap_or_default();
    }
    let mut before = split_unfinished(line);
    let current = before.pop_if(|word| word.end == line.len());
    let current =
        current.unwrap_or(Word { text: String::new(), start: line.len(), end: line.len() });
    let all = match before.split_first() {
        None => verbs(),
        Some((verb, before)) => arguments(line, &verb.text, before, &current, sources),
    };
    Completion { start: current.start, candidates: rank(&current.text, all, |one| &one.text) }
}

fn verbs() -> Vec<Candidate> {
    let candidate = |verb: &crate::verb::Verb| {
        let usage = verb.usage();
        let help =
            if usage.is_empty() { verb.help.into() } else { format!("{usage}  {}", verb.help) };
        Candidate { text: verb.name.into(), help }
    };
    reached(Way::Line).map(candidate).collect()
}

fn arguments(
    line: &str,
    verb: &str,
    before: &[Word],
    current: &Word,
    sources: &Sources,
) -> Vec<Candidate> {
    let Some(verb) = find(verb) else { return Vec::new() };
    let (command, rest) = (verb.line(), words::first(line).1);
    let behind_verb = line.len() - rest.len();
    let is_text = free_text(&command, rest).is_some_and(|at| behind_verb + at < current.start);
    if is_text {
        return Vec::new();
    }
    let mut all = of_command(&command, before, current, sources);
    let rests = |one: &str| sources.at_rest.iter().any(|name| verb_word(name) == one);
    let is_pod = |one: &str| sources.pods.iter().any(|(name, _)| verb_word(name) == one);
    if OF_LIVE_PODS.contains(&verb.name) {
        all.retain(|one| !rests(&one.text));
    } else if verb.name == OF_PODS_AT_REST {
        all.retain(|one| rests(&one.text) || !is_pod(&one.text));
    } else if verb.name == FIRST_AT_REST {
        all.sort_by_key(|one| is_pod(&one.text) && !rests(&one.text));
    } else if OF_OTHER_PODS.contains(&verb.name) {
        let selected = sources.selected.as_deref().map(verb_word);
        all.retain(|one| selected.as_deref() != Some(&one.text));
    }
    all
}

fn of_command(
    command: &Command,
    before: &[Word],
    current: &Word,
    sources: &Sources,
) -> Vec<Candidate> {
    let mut named: Vec<&str> = Vec::new();
    let mut value_of = None;
    for (at, word) in before.iter().enumerate() {
        if let Some(order) = command.find_subcommand(&word.text).filter(|_| named.is_empty()) {
            return of_command(order, &before[at + 1..], current, sources);
        }
        value_of = match (value_of, option(command, &word.text)) {
            (None, Some(option)) => Some(option).filter(|one| takes_next(one, &word.text)),
            (None, None) => {
                named.push(&word.text);
                None
            }
            (Some(_), _) => None,
        };
    }
    if let Some(option) = value_of {
        return values(option, current, sources);
    }
    if current.text.starts_with('-') {
        return options(command);
    }
    let subcommands =
        command.get_subcommands().map(|order| candidate(order.get_name(), order.get_about()));
    let positional = command.get_positionals().nth(named.len());
    let last = command.get_positionals().last().filter(|last| crate::verb::repeats(last));
    let mut found =
        positional.or(last).map(|one| values(one, current, sources)).unwrap_or_default();
    found.retain(|one| !named.contains(&one.text.as_str()));
    if named.is_empty() {
        found.extend(subcommands);
    }
    found
}

fn candidate(text: &str, help: Option<&clap::builder::StyledStr>) -> Candidate {
    Candidate { text: text.into(), help: help.map(ToString::to_string).unwrap_or_default() }
}

fn options(command: &Command) -> Vec<Candidate> {
    let long = |argument: &Arg| {
        Some(candidate(&format!("--{}", argument.get_long()?), argument.get_help()))
    };
    command.get_arguments().filter_map(long).collect()
}

/// What an argument can be, by what stands for it in usage lines.
fn values(argument: &Arg, current: &Word, sources: &Sources) -> Vec<Candidate> {
    let plain = |list: &[String]| {
        list.iter()
            .map(|text| Candidate { text: verb_word(text).into_owned(), help: String::new() })
            .collect()
    };
    match source(argument).as_str() {
        "pod" if crate::verb::repeats(argument) => {
            [named(&sources.pods), selectors(&current.text, sources)].concat()
        }
        "pod" | "from" | "to" => named(&sources.pods),
        "agent" => named(&sources.agents),
        "addressee" => {
            let selectors = selectors(&current.text, sources);
            [named(&sources.pods), selectors, named(&sources.agents)].concat()
        }
        "model" => named(&sources.models),
        "effort" => effort::words()
            .into_iter()
            .map(|word| Candidate { text: word.into(), help: String::new() })
            .collect(),
        "path" | "dir" => plain(&sources.paths),
        "theme" => plain(&sources.themes),
        "provider" => plain(&sources.providers),
        "keymap" => plain(&sources.keymaps),
        "verb" => verbs(),
        _ => Vec::new(),
    }
}

/// The selectors that `word` may become. Each parent has two with a slash, which would hide the names before one is typed.
fn selectors(word: &str, sources: &Sources) -> Vec<Candidate> {
    let fits = |text: &str| text.starts_with('@') || word.contains('/');
    let fitting = sources.selectors.iter().filter(|(text, _)| fits(text));
    fitting.map(|(text, help)| Candidate { text: text.clone(), help: help.clone() }).collect()
}

/// Names, each with its description.
fn named(names: &[(String, String)]) -> Vec<Candidate> {
    let candidate = |(name, help): &(String, String)| Candidate {
        text: verb_word(name).into_owned(),
        help: help.clone(),
    };
    names.iter().map(candidate).collect()
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
