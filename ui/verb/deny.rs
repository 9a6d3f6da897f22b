//! `:deny`: denies what an approval request wants, with a reason that the model reads.

use crate::verb::decision::{Decided, Decision};
use crate::verb::words::first;
use crate::verb::{Dialogue, Known, Next, Reply, Runs, Verb, WITHOUT_SCREEN, of, verb};
use clap::Args;
use yoi::protocol::{ApprovalRequest, Verdict};

pub static VERB: Verb = of::<Deny>(Verb {
    ways: WITHOUT_SCREEN,
    runs: Runs::Unattended,
    more: &[
        "The words after the request are the reason, which the model reads. Name the request as for :allow. With \
         each after the request, all equal requests that wait are denied, too; type the reason after each.",
        "On the screen, {everywhere next-needs-you} shows the oldest request, and keys decide it.",
    ],
    ..verb("deny", "deny an approval request, with a reason for the model")
});

#[derive(Args)]
struct Deny {
    /// The request, then each for all equal ones, then the reason
    #[arg(value_name = "REQUEST [each] [WHY]", trailing_var_arg = true)]
    words: Vec<String>,
    #[arg(skip)]
    decision: Decision,
}

impl Dialogue for Deny {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let deny = |_: &ApprovalRequest, words: &str| {
            let verdict = |reason: &str| Verdict::Deny { reason: reason.to_owned() };
            Ok(match first(words) {
                ("each", reason) => Decided::Each(verdict(reason.trim())),
                _ => Decided::One(verdict(words)),
            })
        };
        self.decision.next(known, last, "deny", &self.words.join(" "), deny)
    }
}
