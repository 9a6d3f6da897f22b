//! `:help`: explains the verbs, or one of them.

use crate::verb::{
    CONVERSATION, Dialogue, End, Known, Next, Pick, Reply, Said, Verb, Way, Why, WithKeys, find,
    of, reached, verb,
};
use clap::Args;

pub static VERB: Verb =
    of::<Help>(Verb { ways: CONVERSATION, ..verb("help", "explain the verbs, or one of them") });

/// Which verbs mean the marks; for the help of those that take several Pods.
pub const MARKS: &str = "{tree mark} marks a row of the tree. There, a verb that takes several Pods (stop, restore, \
    pause, resume, cancel, compact, rm) and names none means those that are marked, after it has named \
    them; every other key means the row. {tree mark} again or {everywhere back} takes marks back.";

#[derive(Args)]
pub struct Help {
    /// The verb
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

/// The verbs that can be reached here: from a key or a list of the screen, those of its command line.
fn listed(way: Way) -> Vec<&'static Verb> {
    reached(match way {
        Way::Palette | Way::Key => Way::Line,
        other => other,
    })
    .collect()
}

/// Everything about one verb.
pub fn page(verb: &Verb, with_keys: WithKeys<'_>) -> End {
    let lines = verb.about(with_keys).into_iter().map(|text| ("", text)).collect();
    End { said: Said::Sheet { title: format!("help: {}", verb.name), lines }, ..End::default() }
}
