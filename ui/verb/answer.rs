//! `:answer`: answers the question of a Pod.

use crate::verb::decision::{Decided, Decision};
use crate::verb::{Dialogue, End, Known, Next, Reply, Runs, Verb, WITHOUT_SCREEN, Why, of, verb};
use clap::Args;
use yoi::protocol::{ApprovalRequest, Verdict};

pub static VERB: Verb = of::<Answer>(Verb {
    ways: WITHOUT_SCREEN,
    runs: Runs::Unattended,
    more: &[
        "A model asks you with the tool AskPerson; an MCP server can ask while it works on a call. Name the question \
         by its Pod, or by its own name as for :allow. After that, type the answer: the words or the number of a \
         choice, or words of your own. If several values are wanted, write each with its name, as in name=Ann \
         age=30.",
        ":deny declines a question, with a reason that the asker reads.",
        "On the screen, {everywhere next-needs-you} shows the oldest question, and keys answer it.",
    ],
    ..verb("answer", "answer the question of a Pod")
});

#[derive(Args)]
struct Answer {
    /// The Pod or the request, then the answer
    #[arg(value_name = "POD|REQUEST [ANSWER]", trailing_var_arg = true)]
    words: Vec<String>,
    #[arg(skip)]
    decision: Decision,
}

impl Dialogue for Answer {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        self.decision.next(known, last, "answer", &self.words.join(" "), answered)
    }
}

/// The answer in the words behind a request.
fn answered(request: &ApprovalRequest, words: &str) -> Result<Decided, End> {
    let usage = |text: String| End::refused(Why::Usage, text);
    let Some(question) = &request.question else {
        return Err(usage("that request is not a question: :allow or :deny decides it".into()));
    };
    let answer = question.read(words).map(|values| Verdict::Answer { values });
    answer.map(Decided::One).map_err(usage)
}
