//! From a typed line to a verb, or to the sentence that says what is wrong with it.

use crate::command::{Argument, Breadth, Needs, Row, Step, TABLE, Verb, find};
use std::collections::HashSet;
use std::path::PathBuf;
use yoi::protocol::PodName;
use yoi::scope::Permission;

/// Reads a line with or without its leading colon. The error is for the person who typed it.
pub fn read(line: &str) -> Result<Verb, String> {
    let line = line.trim().trim_start_matches(':').trim_start();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if word.is_empty() {
        return Err("type a verb; :help lists them".into());
    }
    let row = find(word).ok_or_else(|| unknown(word))?;
    arguments(row, rest.trim())
}

/// Reads a line that may name several Pods: one verb for each, in their order.
pub fn read_all(line: &str) -> Result<Vec<Verb>, String> {
    match parts(line) {
        Some((row, names, options)) if names.len() > 1 => {
            let options = options.join(" ");
            names.iter().map(|name| read(&format!("{} {name} {options}", row.name))).collect()
        }
        _ => read(line).map(|verb| vec![verb]),
    }
}

/// The line with these Pods in it, when its verb takes several and none is named.
pub fn naming(line: &str, pods: &[PodName]) -> Option<String> {
    let (row, names, options) = parts(line)?;
    if !names.is_empty() || pods.is_empty() {
        return None;
    }
    let words = std::iter::once(row.name).chain(pods.iter().map(PodName::as_str)).chain(options);
    Some(words.collect::<Vec<_>>().join(" "))
}

/// The verb of a line that takes several Pods, the Pods it names, each once, and its options.
fn parts(line: &str) -> Option<(&'static Row, Vec<&str>, Vec<&str>)> {
    let mut words = line.trim().trim_start_matches(':').split_whitespace();
    let row = find(words.next()?).filter(|row| row.argument == Argument::Pods)?;
    let (options, mut names): (Vec<&str>, Vec<&str>) = words.partition(|w| w.starts_with("--"));
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(*name));
    Some((row, names, options))
}

fn unknown(word: &str) -> String {
    match crate::command::complete::nearest(word) {
        Some(name) => format!("no verb :{word}; did you mean :{name}?"),
        None => format!("no verb :{word}; :help lists them"),
    }
}

fn arguments(row: &Row, rest: &str) -> Result<Verb, String> {
    if rest.is_empty() && row.needs == Needs::Argument {
        return Err(format!("usage: :{} {}", row.name, row.usage));
    }
    if !rest.is_empty() && row.usage.is_empty() {
        return Err(format!(":{} takes no argument", row.name));
    }
    match row.name {
        "new" => new(rest),
        "open" => Ok(Verb::Open(pod(rest)?)),
        "send" => send(rest),
        "stop" => stop(rest),
        "restore" => restore(rest),
        "peer" => Ok(Verb::Peer(word("peer", rest)?)),
        "unpeer" => Ok(Verb::Unpeer(word("unpeer", rest)?)),
        "fork" => fork(rest),
        "inbox" => Ok(Verb::Inbox),
        "explain" => Ok(Verb::Explain(maybe_pod(rest)?)),
        "lend" => lend(rest),
        "reclaim" => Ok(Verb::Reclaim(rest.into())),
        "who" => Ok(Verb::Who(rest.into())),
        "policy" => policy(rest),
        "pause" => Ok(Verb::Pause(maybe_pod(rest)?)),
        "resume" => Ok(Verb::Resume(maybe_pod(rest)?)),
        "cancel" => Ok(Verb::Cancel(maybe_pod(rest)?)),
        "compact" => Ok(Verb::Compact(maybe_pod(rest)?)),
        "rewind" => rewind(rest),
        "model" => Ok(Verb::Model(one_word("model", rest)?)),
        "theme" => Ok(Verb::Theme(rest.to_owned())),
        "rm" => Ok(Verb::Remove(pod(rest)?)),
        "pin" => pin(rest),
        "split" => Ok(Verb::Split(maybe_pod(rest)?)),
        "zoom" => Ok(Verb::Zoom),
        "notices" => Ok(Verb::Notices),
        "tour" => Ok(Verb::Tour),
        "redraw" => Ok(Verb::Redraw),
        "keys" => Ok(Verb::Keys),
        "help" => Ok(Verb::Help(one_word("help", rest)?.map(|v| v.trim_start_matches(':').into()))),
        "quit" => Ok(Verb::Quit),
        other => Err(unknown(other)),
    }
}

fn pod(text: &str) -> Result<PodName, String> {
    PodName::parse(text).map_err(|e| e.to_string())
}

fn maybe_pod(text: &str) -> Result<Option<PodName>, String> {
    if text.is_empty() { Ok(None) } else { pod(text).map(Some) }
}

fn one_word(verb: &str, text: &str) -> Result<Option<String>, String> {
    if text.contains(char::is_whitespace) {
        return Err(format!(":{verb} takes one argument"));
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn word(verb: &str, text: &str) -> Result<String, String> {
    one_word(verb, text).map(Option::unwrap_or_default)
}

/// The options of a line, of which these exist, and its other words.
fn options<'a>(
    verb: &str,
    rest: &'a str,
    known: &[&str],
) -> Result<(Vec<&'a str>, Vec<&'a str>), String> {
    let (options, words): (Vec<&str>, Vec<&str>) =
        rest.split_whitespace().partition(|word| word.starts_with("--"));
    match options.iter().find(|option| !known.contains(option)) {
        Some(option) => Err(format!(":{verb} has no option {option}")),
        None => Ok((options, words)),
    }
}

fn stop(rest: &str) -> Result<Verb, String> {
    let (options, words) = options("stop", rest, &["--tree"])?;
    let pod = maybe_pod(&words.join(" "))?;
    Ok(Verb::Stop { pod, breadth: breadth(&options) })
}

fn restore(rest: &str) -> Result<Verb, String> {
    let (options, words) = options("restore", rest, &["--plan", "--tree"])?;
    let pod = maybe_pod(&words.join(" "))?;
    let step = if options.contains(&"--plan") { Step::Show } else { Step::Do };
    Ok(Verb::Restore { pod, breadth: breadth(&options), step })
}

fn breadth(options: &[&str]) -> Breadth {
    if options.contains(&"--tree") { Breadth::Tree } else { Breadth::One }
}

fn fork(rest: &str) -> Result<Verb, String> {
    let (mut name, mut at) = (None, None);
    let mut words = rest.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "--at" => {
                let entry = words.next().ok_or(":fork --at wants an entry")?;
                at = Some(entry.parse().map_err(|_| format!("`{entry}` is no entry"))?);
            }
            _ if word.starts_with("--") => return Err(format!(":fork has no option {word}")),
            _ if name.is_none() => name = Some(pod(word)?),
            _ => return Err(format!(":fork takes one name; `{word}` is one too many")),
        }
    }
    Ok(Verb::Fork { name, at })
}

fn lend(rest: &str) -> Result<Verb, String> {
    let usage = "usage: :lend <from> <to> <path> [--read]";
    let (rest, permission) = match rest.strip_suffix("--read") {
        Some(rest) => (rest.trim_end(), Permission::Read),
        None => (rest, Permission::Write),
    };
    let (from, rest) = rest.split_once(char::is_whitespace).ok_or(usage)?;
    let (to, path) = rest.trim_start().split_once(char::is_whitespace).ok_or(usage)?;
    Ok(Verb::Lend { from: pod(from)?, to: pod(to)?, path: path.trim().into(), permission })
}

fn policy(rest: &str) -> Result<Verb, String> {
    if rest.is_empty() {
        return Ok(Verb::Policy(None));
    }
    let number = rest.strip_prefix("revoke").map(str::trim).ok_or("usage: :policy [revoke <n>]")?;
    let rule = number.parse().map_err(|_| format!("`{number}` is no rule; :policy lists them"))?;
    Ok(Verb::Policy(Some(rule)))
}

fn pin(rest: &str) -> Result<Verb, String> {
    if rest.is_empty() {
        return Ok(Verb::Pin { slot: None, pod: None });
    }
    let (digit, name) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let slot = digit.parse().ok().filter(|slot| (1..=9).contains(slot));
    let slot = slot.ok_or_else(|| format!("`{digit}` is no slot: they are 1 to 9"))?;
    Ok(Verb::Pin { slot: Some(slot), pod: maybe_pod(name.trim())? })
}

fn send(rest: &str) -> Result<Verb, String> {
    let usage = "usage: :send <pod> <text>";
    let (name, text) = rest.split_once(char::is_whitespace).ok_or(usage)?;
    Ok(Verb::Send { pod: pod(name)?, text: text.trim().to_owned() })
}

fn rewind(rest: &str) -> Result<Verb, String> {
    if rest.is_empty() {
        return Ok(Verb::Rewind(None));
    }
    let turn = rest.parse().map_err(|_| format!("`{rest}` is no turn; :rewind lists them"))?;
    Ok(Verb::Rewind(Some(turn)))
}

fn new(rest: &str) -> Result<Verb, String> {
    let (mut name, mut cwd, mut model, mut profile) = (None, None, None, None);
    let mut words = rest.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "--cwd" => {
                cwd = Some(PathBuf::from(words.next().ok_or(":new --cwd wants a directory")?))
            }
            "--model" => model = Some(words.next().ok_or(":new --model wants a model")?.to_owned()),
            "--profile" => {
                profile = Some(words.next().ok_or(":new --profile wants a name")?.to_owned());
            }
            _ if word.starts_with("--") => return Err(format!(":new has no option {word}")),
            _ if name.is_none() => name = Some(pod(word)?),
            _ => return Err(format!(":new takes one name; `{word}` is one too many")),
        }
    }
    Ok(Verb::New { name, cwd, model, profile })
}

/// The line with its first word completed to the one verb it can only mean.
pub fn complete_verb(line: &str) -> Option<String> {
    let line = line.trim_start();
    let (word, rest) = line.split_at(line.find(char::is_whitespace).unwrap_or(line.len()));
    if word.is_empty() || find(word).is_some() {
        return None;
    }
    let mut meant = TABLE.iter().filter(|row| row.name.starts_with(word));
    let (one, more) = (meant.next()?, meant.next());
    more.is_none().then(|| format!("{}{rest}", one.name))
}

/// The line, without its colon, that a message looks like: `/verb …` or `:verb …` with a known verb as the whole
/// first word, or a bare `exit`, `quit` or `:q`. Habits of other programs; it is only offered.
pub fn offered(message: &str) -> Option<String> {
    let text = message.trim();
    if ["exit", "quit", ":q", ":quit", ":q!", ":wq", "/exit", "/q"].contains(&text) {
        return Some("quit".into());
    }
    let line = text.strip_prefix(['/', ':'])?;
    let word = line.split_whitespace().next()?;
    if !line.starts_with(word) || text.contains('\n') {
        return None;
    }
    find(word).map(|_| line.to_owned())
}
