//! How a sentence names a verb: as it is typed in the way in which the sentence is read.

use crate::verb::words::{first, first_word};
use crate::verb::{Verb, Way, find};
use yoi::client::family::Family;
use yoi::protocol::PodName;
use yoi::text::shell_word;

/// Verbs of one Pod that take none: in a shell, `--pod` names it.
const OF_SELECTED: [&str; 5] = ["fork", "model", "peer", "rewind", "unpeer"];

/// Words that are no arguments.
const OF_PROSE: [&str; 12] =
    ["and", "or", "to", "for", "with", "first", "again", "then", "it", "them", "alone", "also"];

/// What ends a part of a sentence.
const END_OF_PART: [char; 5] = [',', ';', '.', ':', ')'];

/// A verb with its arguments as a person types it: `:restore bob`, or `yoi restore bob`.
pub fn spell(line: &str, way: Way) -> String {
    match way {
        Way::Shell => format!("`yoi {line}`"),
        Way::Line | Way::Palette | Way::Key | Way::Command | Way::Input => format!(":{line}"),
    }
}

/// A sentence of the host for the shell.
pub fn for_shell(text: &str, family: &Family, about: Option<&PodName>) -> String {
    worded(text, Way::Shell, family, about)
}

/// A paragraph of help for the shell, whose verbs stand without quotes: its rows may end anywhere.
pub fn for_help(text: &str) -> String {
    const QUOTE: &str = "\u{1}";
    let spelled = for_shell(&text.replace('`', QUOTE), &Family::default(), None);
    spelled.replace('`', "").replace(QUOTE, "`")
}

/// A sentence of the host for one of the ways. The host writes verbs as `:resume bob`, and leaves the Pod
/// out where the sentence is about it; where that Pod is not the selected one, `about` names it.
pub fn worded(text: &str, way: Way, family: &Family, about: Option<&PodName>) -> String {
    let mut said = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        let (before, line) = rest.split_at(at);
        said.push_str(before);
        let begins = said.chars().next_back().is_none_or(|c| c.is_whitespace() || c == '(');
        match verb_at(&line[1..]).filter(|_| begins) {
            Some((verb, behind)) => {
                let (words, behind) = arguments_at(verb, behind, family);
                let (flags, behind) = flags_at(behind);
                // The words name what the verb is for.
                let about = about.filter(|_| words.is_empty() || !verb.takes_several());
                // A shell asks for no confirmation of a rewind.
                let given = format!("{words}{flags}");
                let is_number = given.trim_start().starts_with(|c: char| c.is_ascii_digit());
                let goes_back = way == Way::Shell && verb.name == "rewind" && is_number;
                let confirmed = if goes_back { " --yes" } else { "" };
                let flags = &format!("{given}{confirmed}");
                let (pods, behind) = pods_at(behind, family);
                let (path, behind) = path_at(behind);
                let mut line = typed(verb, flags, &pods, about, way);
                if let Some(path) = path {
                    let end = line.trim_end_matches('`').len();
                    line.insert_str(end, &format!(" {}", shell_word(&path)));
                }
                said.push_str(&line);
                rest = behind;
            }
            None => {
                said.push(':');
                rest = &line[1..];
            }
        }
    }
    said + rest
}

/// The verb that a text begins with, if it can be typed in a shell or has a verb there in its place.
fn verb_at(text: &str) -> Option<(&'static Verb, &str)> {
    let end = text.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(text.len());
    let (word, behind) = text.split_at(end);
    let verb = find(word)?;
    (verb.ways.contains(&Way::Shell) || verb.name == "open").then_some((verb, behind))
}

/// The word that a text begins with and that is an argument of the verb before it, though no Pod has its name: what the verb
/// does follows it, such as *replaces*, or a flag, a path, or the end of the part of the sentence.
fn arguments_at<'a>(verb: &Verb, text: &'a str, family: &Family) -> (&'a str, &'a str) {
    let none = text.split_at(0);
    if verb.line().get_positionals().next().is_none() {
        return none;
    }
    let Some(rest) = text.strip_prefix(' ') else { return none };
    let (word, behind) = first(rest);
    let bare = word.trim_end_matches(END_OF_PART);
    let is_pod = PodName::parse(bare).is_ok_and(|name| family.get(&name).is_some());
    let is_other = is_pod
        || bare.is_empty()
        || bare.starts_with(['-', '/', '\''])
        || bare.parse::<usize>().is_ok()
        || is_predicate(bare)
        || OF_PROSE.contains(&bare);
    let next = first(behind).0;
    let ends = bare.len() < word.len() || next.is_empty();
    if is_other || !(ends || next.starts_with(['-', '/', '\'']) || is_predicate(next)) {
        return none;
    }
    text.split_at(1 + bare.len())
}

/// Whether a word of a sentence says what its verb does.
fn is_predicate(word: &str) -> bool {
    let word = word.trim_end_matches(END_OF_PART);
    word.len() > 3 && word.ends_with('s') && word.chars().all(|c| c.is_ascii_lowercase())
}

/// The flags and numbers that a text begins with: ` --undo`, ` --without=8ed566`, ` 2`.
fn flags_at(text: &str) -> (&str, &str) {
    let mut end = 0;
    while let Some(rest) = text[end..].strip_prefix(' ') {
        let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '.' | ':' | ')');
        let word = &rest[..rest.find(is_end).unwrap_or(rest.len())];
        let name = word.strip_prefix("--").map(|flag| flag.split('=').next().unwrap_or_default());
        let is_flag = name.is_some_and(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-')
        });
        if !is_flag && word.parse::<usize>().is_err() {
            break;
        }
        end += 1 + word.len();
    }
    text.split_at(end)
}

/// The Pods that are named at the beginning of a text.
fn pods_at<'a>(text: &'a str, family: &Family) -> (Vec<PodName>, &'a str) {
    let (mut pods, mut rest) = (Vec::new(), text);
    loop {
        let word = first(rest).0.trim_end_matches([',', ';', '.', ')']);
        let known = PodName::parse(word).ok().and_then(|name| family.get(&name));
        let Some(info) = known else { return (pods, rest) };
        pods.push(info.name.clone());
        let end = rest.len() - rest.trim_start().len() + word.len();
        rest = &rest[end..];
    }
}

/// The absolute path that a text begins with, without its quotes, and what follows it.
fn path_at(text: &str) -> (Option<String>, &str) {
    let end = first_word(text).map_or(0, |word| word.end);
    let typed = text[..end].trim_end_matches([',', ';', '.', ')']);
    match first_word(typed).filter(|word| word.text.starts_with('/')) {
        Some(word) => (Some(word.text), &text[typed.len()..]),
        None => (None, text),
    }
}

/// A verb for these Pods, or for the one that the sentence is about.
fn typed(verb: &Verb, flags: &str, pods: &[PodName], about: Option<&PodName>, way: Way) -> String {
    if way == Way::Shell {
        return in_shell(verb, flags, pods, about);
    }
    let about = about.filter(|_| pods.is_empty() && verb.takes_several());
    let names = pods.iter().chain(about).map(|pod| format!(" {pod}")).collect::<String>();
    format!(":{}{flags}{names}", verb.name)
}

/// The same in a shell, which has no selected Pod. Flags begin with a blank each.
pub fn in_shell(verb: &Verb, flags: &str, pods: &[PodName], about: Option<&PodName>) -> String {
    let named = pods.iter().chain(about.filter(|_| pods.is_empty()));
    let names = named.map(|pod| format!(" {pod}")).collect::<String>();
    match (verb.name, about) {
        // A shell shows no Pod: it sends to one.
        ("open", _) => format!("`yoi send{names} \"…\"`"),
        (name, _) if !pods.is_empty() || verb.takes_several() => {
            format!("`yoi {name}{flags}{names}`")
        }
        (name, Some(pod)) if OF_SELECTED.contains(&name) => {
            format!("`yoi {name}{flags} --pod {pod}`")
        }
        (name, _) => format!("`yoi {name}{flags}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yoi::protocol::State;

    #[test]
    fn a_sentence_of_the_host_names_verbs_as_a_shell_takes_them() {
        let mut family = Family::default();
        let info = |name: &str| crate::screen::app::tests::pod(name, State::Idle);
        family.replace(vec![info("kid"), info("shop-4")], Vec::new(), Vec::new());
        let about = PodName::parse("shop-4").expect("a name");
        for (said, shell) in [
            ("paused; :resume goes on", "paused; `yoi resume shop-4` goes on"),
            (
                "pod `kid` is live; :stop kid comes first",
                "pod `kid` is live; `yoi stop kid` comes first",
            ),
            (
                "pod name `kid` is already taken; :open kid goes there",
                "pod name `kid` is already taken; `yoi send kid \"…\"` goes there",
            ),
            (
                "no message 9; :rewind lists them",
                "no message 9; `yoi rewind --pod shop-4` lists them",
            ),
            (
                "read-only: :lend kid shop-4 /w/a hands it over; :who /w/b.",
                "read-only: `yoi lend kid shop-4 /w/a` hands it over; `yoi who /w/b`.",
            ),
            (
                "it was taken back; :who '/w/a b' names it; :who '/w/it'\\''s'.",
                "it was taken back; `yoi who '/w/a b'` names it; `yoi who '/w/it'\\''s'`.",
            ),
            (":lend kid shop-4 /w/$(id)/d gives", "`yoi lend kid shop-4 '/w/$(id)/d'` gives"),
            (":who '/w/a is not closed", "`yoi who` '/w/a is not closed"),
            (":rewind --undo brings it back", "`yoi rewind --undo --pod shop-4` brings it back"),
            (
                ": :resume --without=8ed566 goes on, :rewind 2 goes back",
                ": `yoi resume --without=8ed566 shop-4` goes on, `yoi rewind 2 --yes --pod shop-4` goes back",
            ),
            (
                "401; :connect shed --key-first stores one",
                "401; `yoi connect shed --key-first` stores one",
            ),
            (":connect shed replaces it", "`yoi connect shed` replaces it"),
            (
                "no key: :connect shed, or :model",
                "no key: `yoi connect shed`, or `yoi model --pod shop-4`",
            ),
            (":connect stores one", "`yoi connect` stores one"),
            (":restore gone brings it back", "`yoi restore gone` brings it back"),
            (
                ":rewind can still go back further",
                "`yoi rewind --pod shop-4` can still go back further",
            ),
            (":model alone lists the ways", "`yoi model --pod shop-4` alone lists the ways"),
            ("with :stop of its Pod", "with `yoi stop shop-4` of its Pod"),
            ("no key is stored: :connect groq", "no key is stored: `yoi connect groq`"),
            (":resume and wait.", "`yoi resume shop-4` and wait."),
            (":policy lists them (:inbox)", "`yoi policy` lists them (`yoi inbox`)"),
            ("12:30 a:stop :nosuch :", "12:30 a:stop :nosuch :"),
        ] {
            assert_eq!(for_shell(said, &family, Some(&about)), shell);
        }
        assert_eq!(for_shell(":resume goes on", &family, None), "`yoi resume` goes on");
        let said = worded(":restore brings it back; :open kid", Way::Line, &family, Some(&about));
        assert_eq!(said, ":restore shop-4 brings it back; :open kid");
    }
}
