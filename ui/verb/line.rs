//! From a typed line to the dialogue of a verb, or to the sentence that says what is wrong with it.

use crate::verb::spell::spell;
use crate::verb::targets::Target;
use crate::verb::words::{self, OpenQuote};
use crate::verb::{Dialogue, LIST, SCREEN, UNSEEN, Verb, Way, find, help, reached, source};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use std::error::Error as _;
use yoi::text::nearest;

/// A line that was understood.
pub struct Line {
    pub verb: &'static Verb,
    pub dialogue: Box<dyn Dialogue>,
}

/// Reads a line with or without its leading colon. The error is for the person who typed it.
pub fn read(line: &str, way: Way) -> Result<Line, String> {
    let (word, rest) = words::first(line.trim().trim_start_matches(':'));
    if word.is_empty() {
        return Err("type a verb; :help lists them".into());
    }
    let verb = find(word).ok_or_else(|| unknown(word))?;
    if !verb.ways.contains(&way) {
        return Err(not_here(verb, way));
    }
    let command = verb.line();
    let arguments = arguments(&command, rest).map_err(|error| format!(":{word}: {error}"))?;
    let read = command.try_get_matches_from(arguments).and_then(|matches| verb.begin(&matches));
    match read {
        Ok(dialogue) => Ok(Line { verb, dialogue }),
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            let dialogue = Box::new(help::Help { verb: Some(word.to_owned()) });
            Ok(Line { verb: &help::VERB, dialogue })
        }
        // The words may be a key that was typed too early, so the sentence repeats none of them.
        Err(_) if verb.ways == UNSEEN => Err(format!(
            ":{word} {} takes no more: the key is typed afterwards, unseen",
            verb.usage()
        )),
        Err(error) => Err(diagnostic(verb, &error)),
    }
}

/// The verb of a line, if it has a person type something unseen.
pub fn of_unseen(line: &str) -> Option<&'static Verb> {
    let (word, _) = words::first(line.trim().trim_start_matches(':'));
    find(word).filter(|verb| verb.ways == UNSEEN)
}

/// The arguments of a line. Free text at its end stays as it was typed.
fn arguments(command: &Command, rest: &str) -> Result<Vec<String>, OpenQuote> {
    let Some(free) = free_text(command, rest) else {
        return Ok(words::split(rest)?.into_iter().map(|word| word.text).collect());
    };
    let (before, text) = rest.split_at(free);
    let before = words::split(before)?.into_iter().map(|word| word.text);
    let text = Some(text.trim_end()).filter(|text| !text.is_empty());
    Ok(before.chain(text.into_iter().flat_map(|text| ["--".to_owned(), text.to_owned()])).collect())
}

/// The byte at which the free text of a line begins; `None` for a verb without any.
pub fn free_text(command: &Command, rest: &str) -> Option<usize> {
    let mut left = command.get_positionals().position(Arg::is_trailing_var_arg_set)?;
    let mut value_of = None;
    for word in words::split_unfinished(rest) {
        let option = option(command, &word.text);
        match (value_of.take(), option) {
            (Some(_), _) => {}
            (None, Some(option)) => {
                value_of = Some(option).filter(|option| takes_next(option, &word.text));
            }
            (None, None) if left == 0 => return Some(word.start),
            (None, None) => left -= 1,
        }
    }
    Some(rest.len())
}

/// The option that a word names, if any.
pub fn option<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let name = word.strip_prefix("--")?.split('=').next()?;
    command.get_arguments().find(|argument| argument.get_long() == Some(name))
}

/// Whether an option takes the next word as its value.
pub fn takes_next(option: &Arg, word: &str) -> bool {
    option.get_action().takes_values() && !word.contains('=')
}

/// The sentence for a verb that does not work where it was given: it says where it does.
pub fn not_here(verb: &Verb, way: Way) -> String {
    let places = [
        (Way::Line, "on the screen"),
        (Way::Command, "with -c"),
        (Way::Input, "with --no-ui"),
        (Way::Shell, "from a shell"),
    ];
    let places = places.iter().filter(|(place, _)| verb.ways.contains(place));
    let places = places.map(|(_, words)| *words).collect::<Vec<_>>().join(", ");
    let on_screen = matches!(way, Way::Line | Way::Palette | Way::Key);
    let instead = match verb.name {
        "allow" | "answer" | "deny" if on_screen => {
            "; on the screen, :inbox lists the requests, and keys decide them"
        }
        _ if verb.ways == SCREEN => ": start `yoi` and type it there, after a colon",
        _ => "",
    };
    let name = spell(verb.name, way);
    format!("{name} works {}{places}{instead}", if verb.ways == SCREEN { "only " } else { "" })
}

fn unknown(word: &str) -> String {
    match nearest(word, LIST.iter().map(|verb| verb.name)) {
        Some(name) => format!("no verb :{word}; did you mean :{name}?"),
        None => format!("no verb :{word}; :help lists them"),
    }
}

/// What is wrong with the arguments, in one line.
fn diagnostic(verb: &Verb, error: &clap::Error) -> String {
    let name = verb.name;
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(" "),
        _ => String::new(),
    };
    // The word as it was typed where clap does not know it; else a placeholder such as `<POD>`.
    let argument = said(ContextKind::InvalidArg);
    let placeholder = || argument.to_lowercase();
    match error.kind() {
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            format!(":{name} has no option {argument}")
        }
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => {
            let word =
                if argument.is_empty() { said(ContextKind::InvalidSubcommand) } else { argument };
            match verb.usage().as_str() {
                "" => format!(":{name} takes no arguments, but got `{word}`"),
                usage => format!("unexpected `{word}`: :{name} {usage}"),
            }
        }
        ErrorKind::InvalidValue if said(ContextKind::InvalidValue).is_empty() => {
            format!(":{name} {} needs a value", placeholder())
        }
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            let value = said(ContextKind::InvalidValue);
            match (error.source(), error.get(ContextKind::ValidValue)) {
                (Some(why), _) => why.to_string(),
                (None, Some(ContextValue::Strings(values))) => {
                    format!(":{name} takes {}, not `{value}`", one_of(values))
                }
                (None, _) => format!("`{value}` is not a valid {}", placeholder()),
            }
        }
        ErrorKind::ArgumentConflict => {
            format!(
                ":{name}: {} and {} exclude each other",
                placeholder(),
                said(ContextKind::PriorArg)
            )
        }
        _ => format!("usage: {}", verb.heading()),
    }
}

/// Values as a list in a sentence: `a, b or c`.
fn one_of(values: &[String]) -> String {
    match values {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        few => few.concat(),
    }
}

/// The line with its first word completed, if exactly one verb begins with that word.
pub fn complete_verb(line: &str) -> Option<String> {
    let (word, rest) = words::first(line);
    if word.is_empty() || find(word).is_some() {
        return None;
    }
    let mut meant = reached(Way::Line).filter(|verb| verb.name.starts_with(word));
    let (one, more) = (meant.next()?, meant.next());
    more.is_none().then(|| format!("{}{rest}", one.name))
}

/// The line, without its colon, that a message looks like: `/verb …` or `:verb …` with a known verb as the whole
/// first word, or one of the bare words with which other programs are left. The line is offered, never run.
pub fn offered(message: &str) -> Option<String> {
    let text = message.trim();
    if ["exit", "quit", ":q", ":quit", ":q!", ":wq", ":exit", "/exit", "/q"].contains(&text) {
        return Some("quit".into());
    }
    let line = text.strip_prefix(['/', ':'])?;
    let (word, _) = words::first(line);
    if !line.starts_with(word) || text.contains('\n') {
        return None;
    }
    find(word).filter(|verb| verb.ways.contains(&Way::Line)).map(|_| line.to_owned())
}

/// What is to be said of a message before it is sent, when it has the form of a command of other programs: `/word …`
/// without such a verb here, or `!command`. A path begins with more than one `/`.
pub fn unusual(message: &str) -> Option<String> {
    let text = message.trim();
    let (first, _) = words::first(text);
    let rest = first.get(1..).filter(|rest| !rest.is_empty() && !text.contains('\n'))?;
    let is_word = rest.chars().all(|c| c.is_alphanumeric() || "-_:".contains(c));
    let why = match first.chars().next()? {
        '/' if is_word => unknown(rest),
        '!' if rest.starts_with(char::is_alphabetic) => "no command runs from this line".into(),
        _ => return None,
    };
    Some(format!("{why} · `{first}` would go to the model as a message"))
}

/// A message that ends in a verb: the text before it, and the line without its colon. After `text:` the
/// verb may have any arguments. After `text :`, which occurs in prose, it is offered only alone, or with
/// options, names of Pods and selectors.
pub fn offered_at_end(message: &str, is_pod: impl Fn(&str) -> bool) -> Option<(String, String)> {
    let last = message.trim_end().rfind('\n').map_or(0, |at| at + 1);
    let at = message[last..].rfind(':').map(|at| last + at)?;
    let (before, line) = (&message[..at], message[at + 1..].trim_end());
    let (word, rest) = words::first(line);
    let verb = find(word).filter(|_| line.starts_with(word) && !before.trim().is_empty())?;
    let attached = !before.ends_with(char::is_whitespace);
    let mut words = rest.split_whitespace();
    let is_target = |word: &str| word.starts_with("--") || is_pod(word) || is_selector(word);
    let certain = attached || words.all(is_target);
    let meant = rest.trim().is_empty() || (certain && read(line, Way::Line).is_ok());
    (meant && verb.ways.contains(&Way::Line)).then(|| (before.to_owned(), line.to_owned()))
}

fn is_selector(word: &str) -> bool {
    word.parse().is_ok_and(|target: Target| target.is_selector())
}

/// The verb of a line, when it takes several Pods and names none: it then means those that are marked,
/// unless an option such as `--stopped` says which Pods are meant.
pub fn means_marks(line: &str) -> Option<&'static Verb> {
    let (word, rest) = words::first(line.trim().trim_start_matches(':'));
    let verb = find(word).filter(|verb| verb.takes_several())?;
    let words = arguments(&verb.line(), rest).ok()?;
    let matches = verb.line().try_get_matches_from(&words);
    let command = verb.line();
    let pods = command.get_positionals().find(|argument| source(argument) == "pod")?;
    // A required Pod that is missing is not an error where marks stand for it.
    let names_none = match matches {
        Ok(matches) => !matches.contains_id(pods.get_id().as_str()),
        Err(error) => error.kind() == ErrorKind::MissingRequiredArgument,
    };
    // Read once more with a Pod: an option that says which Pods are meant refuses it.
    let marked = std::iter::once("marked".into()).chain(words);
    (names_none && verb.line().try_get_matches_from(marked).is_ok()).then_some(verb)
}
