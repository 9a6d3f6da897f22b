//! `:policy`: lists the rules of what Pods may do, or ends one.

use crate::verb::dialogue::or_end;
use crate::verb::{Action, Dialogue, End, Known, Next, Pick, Reply, Request, Verb, of, verb};
use clap::{Args, Subcommand};
use yoi::protocol::{Action as Does, Event, Method, PolicyRule};

pub static VERB: Verb = of::<Policy>(Verb {
    more: &[
        "Lists every rule that decides what Pods may do, in the order in which they are tried; the first \
         that fits counts. Rules with a number come from your answers: :policy revoke <n> ends one, and \
         so does :stop of its Pod.",
    ],
    ..verb("policy", "list the rules of what Pods may do, or end one")
});

#[derive(Args)]
struct Policy {
    #[command(subcommand)]
    change: Option<Change>,
    #[arg(skip)]
    rules: Vec<PolicyRule>,
}

#[derive(Subcommand)]
enum Change {
    /// End a rule that an answer made
    Revoke {
        /// Its number
        #[arg(value_name = "N", value_parser = number)]
        rule: u64,
    },
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no rule: rules have numbers"))
}

impl Dialogue for Policy {
    fn next(&mut self, _known: &Known<'_>, last: Option<Reply>) -> Next {
        match (last, &self.change) {
            (None, None) => Next::call(Request::host(Method::ListPolicy)),
            (None, Some(Change::Revoke { rule })) => {
                Next::call(Request::host(Method::Revoke { rule: *rule }))
            }
            (Some(Reply::Picked(at)), _) => Next::End(self.picked(at)),
            (Some(reply), Some(Change::Revoke { rule })) => {
                or_end(reply.single().map(|event| Next::End(End::done(ended(*rule, &event)))))
            }
            (Some(reply), None) => or_end(reply.single().map(|event| self.list(event))),
        }
    }
}

impl Policy {
    fn list(&mut self, event: Event) -> Next {
        if let Event::Policy { rules } = event {
            self.rules = rules;
        }
        if self.rules.is_empty() {
            return Next::End(End::shown("no rule is in force"));
        }
        let rows = self.rules.iter().map(|rule| (line(rule), String::new())).collect();
        Next::Pick(Pick { title: "policy: the first that fits counts".into(), about: None, rows })
    }

    /// A rule that an answer made can be ended from the list.
    fn picked(&self, at: usize) -> End {
        match self.rules.get(at).and_then(|rule| rule.id) {
            Some(id) => End::act(Action::Prefill(format!("policy revoke {id}"))),
            None => End::shown("a rule without a number stands in a configuration file"),
        }
    }
}

/// What is said of a rule that ended.
fn ended(number: u64, reply: &Event) -> String {
    let rule = match reply {
        Event::Policy { rules } => rules.first(),
        _ => None,
    };
    let what = rule.map(|rule| format!(": {}", text(rule))).unwrap_or_default();
    format!("rule {number} is in force no more{what}")
}

/// A rule of policy, in a line.
fn line(rule: &PolicyRule) -> String {
    let number = rule.id.map(|id| format!("{id}  ")).unwrap_or_default();
    format!("{number}{}  ({})", text(rule), rule.source)
}

/// What a rule says.
fn text(rule: &PolicyRule) -> String {
    let does = match rule.action {
        Does::Allow => "allow",
        Does::Ask => "ask",
        Does::Deny => "deny",
    };
    let whom = match (&rule.pod, rule.tree) {
        (None, _) => String::new(),
        (Some(pod), false) => format!(" for {pod}"),
        (Some(pod), true) => format!(" for {pod} and its children"),
    };
    format!("{does} {}{whom}", crate::wording::rule::pattern(&rule.pattern))
}
