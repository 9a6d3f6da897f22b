//! What may differ from way to way and from run to run, made equal.

use super::*;

/// What a front end sends of its own accord: to show a Pod, to offer it an environment, and to attend its messages.
const OF_THE_FRONT_END: [&str; 7] = ["watch", "page", "seen", "show", "attend", "open", "fetch"];

/// The requests of a verb, without what differs from run to run.
pub fn steady_requests(lines: &[String]) -> Vec<String> {
    let parsed = lines.iter().filter_map(|line| serde_json::from_str(line).ok());
    let requests = parsed.filter_map(|mut line: serde_json::Value| {
        let method = line["method"].as_str()?.to_owned();
        if OF_THE_FRONT_END.contains(&method.as_str()) {
            return None;
        }
        if let Some(params) = line["params"].as_object_mut() {
            params.remove("target");
            params.remove("ask");
            params.remove("entry");
            params.remove("at");
            params.remove("expected_head_entries");
        }
        let pod = line["pod"].as_str().unwrap_or("").to_owned();
        Some(format!("{method} {pod} {}", line["params"]))
    });
    requests.collect()
}

/// A sentence as the command line spells it, with blanks and numbers that do not matter made equal.
pub fn steady_words(text: &str) -> String {
    let mut words = text.replace("Enter continues", ":resume continues");
    while let Some(at) = words.find("`yoi ") {
        let end = words[at + 1..].find('`').map_or(words.len(), |end| at + 1 + end);
        let line = words[at + "`yoi ".len()..end].to_owned();
        // A shell has no selected Pod, so it names alice.
        let line = line.strip_suffix(" --pod alice").unwrap_or(&line);
        let line = line.strip_suffix(" alice").filter(|verb| !verb.contains(' ')).unwrap_or(line);
        let spelt = if line == "ls" { "the tree".to_owned() } else { format!(":{line}") };
        words.replace_range(at..(end + 1).min(words.len()), &spelt);
    }
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = words.replace("add --pod <name>", "name one, or :open it first");
    if words.contains(" since ") || words.starts_with("The last ") {
        without_numbers(&words)
    } else {
        words
    }
}

/// Every number is 0: times and counts of events differ from run to run.
fn without_numbers(text: &str) -> String {
    let mut steady = String::new();
    for c in text.chars() {
        match c.is_ascii_digit() {
            true if steady.ends_with('0') => {}
            true => steady.push('0'),
            false => steady.push(c),
        }
    }
    steady
}

/// The list of verbs names those that can be reached where it is read: only the verbs of both lists count.
pub fn without_verbs_of_the_screen(text: &str) -> String {
    let of_the_screen = |line: &&str| {
        let name = line.trim_start_matches(':').split(' ').next().unwrap_or("");
        verb::find(name).is_some_and(|verb| {
            [Way::Line, Way::Command].iter().any(|way| !verb.ways.contains(way))
        })
    };
    text.lines().filter(|line| !of_the_screen(line)).collect::<Vec<_>>().join("\n")
}
