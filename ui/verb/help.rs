//! `:help`: lists the verbs, or shows the help page of one.

use crate::verb::{
    CONVERSATION, Dialogue, End, Known, Next, Pick, Reply, Said, Verb, Way, Why, WithKeys, find,
    of, reached, verb,
};
use clap::Args;

pub static VERB: Verb = of::<Help>(Verb {
    ways: CONVERSATION,
    ..verb("help", "list the verbs, or show the help page of one")
});

/// How marked Pods are used; part of the help of each verb that takes several Pods.
pub const MARKS: &str = "{tree mark} marks a Pod in the tree, or removes its mark; {everywhere back} removes all marks. In \
    the tree, a verb that takes several Pods (stop, restore, pause, resume, cancel, compact, rm), given without names, acts on \
    all marked Pods and lists them first. All other verbs act on the Pod under the cursor.";

/// How selectors are used; part of the help of each verb that takes several Pods.
pub const SELECTORS: &str = "In place of names you can type a selector, which stands for all Pods that it matches: @needs (those that \
    wait for you), @failed, @idle, @running, @paused, @done (finished, and you have not looked at the result), alice/** (alice and all \
    below) and alice/* (the children of alice). Pods to which the verb would do nothing are left out. The others are listed first, \
    and the verb acts on exactly those. In a shell, put a selector with * in quotes.";

/// What of a paragraph of help is for a shell, which has no keys, cards and marks: where it names a key, the sentences before
/// the first that tells of the screen. `None` where nothing is left.
pub fn without_screen(paragraph: &str) -> Option<String> {
    if !paragraph.contains('{') {
        return Some(paragraph.to_owned());
    }
    let of_screen =
        |sentence: &str| ["{", " key", "card", "tree"].iter().any(|word| sentence.contains(word));
    let sentences = paragraph.split_inclusive(". ").take_while(|sentence| !of_screen(sentence));
    let kept = sentences.collect::<String>();
    Some(kept.trim().to_owned()).filter(|kept| !kept.is_empty())
}

#[derive(Args)]
pub struct Help {
    /// The verb to explain; without it, all are listed
    #[arg(value_name = "VERB")]
    pub verb: Option<String>,
}

impl Dialogue for Help {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        if let Some(name) = &self.verb {
            let name = name.trim_start_matches(':');
            return Next::End(match find(name) {
                Some(verb) => page(verb, known.with_keys),
                None => End::refused(Why::Usage, format!("no verb :{name}; :help lists them")),
            });
        }
        let listed = listed(known.way);
        if let Some(Reply::Picked(at)) = last {
            let chosen = listed.get(at).map(|verb| page(verb, known.with_keys));
            return Next::End(chosen.unwrap_or_default());
        }
        let rows = listed.iter().map(|verb| (verb.heading(), verb.help.to_owned())).collect();
        Next::Pick(Pick { title: "help".into(), about: None, rows })
    }
}

/// The verbs that work in this way; for a key and for the palette those of the command line.
fn listed(way: Way) -> Vec<&'static Verb> {
    reached(match way {
        Way::Palette | Way::Key => Way::Line,
        other => other,
    })
    .collect()
}

/// The help page of one verb.
pub fn page(verb: &Verb, with_keys: WithKeys<'_>) -> End {
    let lines = verb.about(with_keys).into_iter().map(|text| ("", text).into()).collect();
    End { said: Said::Text { title: format!("help: {}", verb.name), lines }, ..End::default() }
}

#[cfg(test)]
mod tests {
    use crate::verb::Way;
    use crate::verb::reached;

    #[test]
    fn the_help_of_a_shell_tells_of_no_key_and_no_verb_of_the_screen() {
        for verb in reached(Way::Shell) {
            let help = verb.subcommand().render_long_help().to_string();
            for word in ["Ctrl+", "F1", "{", "On the card", " :restore", " :policy"] {
                assert!(!help.contains(word), "{}: {word}: {help}", verb.name);
            }
        }
        let stop = crate::verb::find("stop").expect("a verb").subcommand();
        assert!(stop.clone().render_long_help().to_string().contains("yoi restore brings"));
    }
}
