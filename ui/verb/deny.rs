//! `:deny`: denies what an approval request wants, with a reason that the model reads.

use crate::verb::decision::Decision;
use crate::verb::{Dialogue, Known, Next, Reply, Runs, Verb, WITHOUT_SCREEN, of, verb};
use clap::Args;
use yoi::protocol::{ApprovalRequest, Verdict};

pub static VERB: Verb = of::<Deny>(Verb {
    ways: WITHOUT_SCREEN,
    runs: Runs::InTheBackground,
    more: &[
        "What stands behind the request is the reason; the model reads it. The request is named as for \
         :allow.",
        "On the screen {leader inbox} goes to the requests, and keys decide them.",
    ],
    ..verb("deny", "deny what an approval request wants, with a reason for the model")
});

#[derive(Args)]
struct Deny {
    /// The request, then the reason
    #[arg(value_name = "REQUEST [WHY]", trailing_var_arg = true)]
    words: Vec<String>,
    #[arg(skip)]
    decision: Decision,
}

impl Dialogue for Deny {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let deny =
            |_: &ApprovalRequest, reason: &str| Ok(Verdict::Deny { reason: reason.to_owned() });
        self.decision.next(known, last, "deny", &self.words.join(" "), deny)
    }
}
