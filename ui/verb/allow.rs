//! `:allow`: allows what an approval request wants, once or by a rule.

use crate::verb::decision::{Decided, Decision};
use crate::verb::words::first;
use crate::verb::{
    Dialogue, End, Known, Next, Reply, Runs, Safety, Verb, WITHOUT_SCREEN, Why, of, verb,
};
use crate::wording::rule::once_only;
use clap::Args;
use yoi::protocol::approval::NotAPattern;
use yoi::protocol::{ApprovalRequest, Pattern, PodName, Verdict};

pub static VERB: Verb = of::<Allow>(Verb {
    ways: WITHOUT_SCREEN,
    safety: Safety::Confirms,
    runs: Runs::Unattended,
    more: &[
        "The request alone allows its call once; followed by each, it allows all equal calls that wait. Followed by \
         pod, it allows such calls of its Pod from now on; by tree, also those of everything below the Pod. Both \
         write a rule: the one that :inbox shows with the request, or one that you type after the word, as in \
         Bash:cargo *. yoi asks before it writes a rule that this conversation has not shown.",
        "With tree and --of, the rule is for a Pod above the one that asks, and for everything below that Pod, \
         including Pods that it spawns later: :allow 1 tree --of lead. The rule ends when that Pod stops.",
        "The request of an MCP client allows one call; followed by client, it allows the client to use the Pods of \
         its folder from now on. :policy lists such consents and revokes them.",
        "With --no-ui a request has a number. You can leave it out if only one request was shown, but not at a \
         terminal. Everywhere else name it by its Pod, if that has one request only, or by the end of its id, as \
         `yoi inbox` prints it.",
        "On the screen, {everywhere next-needs-you} shows the oldest request, and keys decide it.",
    ],
    ..verb("allow", "allow an approval request")
});

#[derive(Args)]
struct Allow {
    /// The request; then each for all equal ones, pod or tree for a rule (yours may follow), or client for an MCP client
    #[arg(value_name = "REQUEST [each|pod|tree [RULE]|client]", trailing_var_arg = true)]
    words: Vec<String>,
    /// With tree: the Pod that gets the rule, with all Pods below it; it must be above the Pod that asks
    #[arg(long, value_name = "POD")]
    of: Option<PodName>,
    #[arg(skip)]
    decision: Decision,
}

impl Dialogue for Allow {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let of = self.of.clone();
        let read = |request: &ApprovalRequest, words: &str| allowed(request, words, of.clone());
        self.decision.next(known, last, "allow", &self.words.join(" "), read)
    }
}

fn usage(text: impl Into<String>) -> End {
    End::refused(Why::Usage, text.into())
}

/// What the words behind a request allow; `of` is the Pod of an option before them.
fn allowed(request: &ApprovalRequest, words: &str, of: Option<PodName>) -> Result<Decided, End> {
    let (reach, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let (of, own) = match rest.trim().strip_prefix("--of") {
        Some(behind) if behind.starts_with(['=', ' ']) => {
            let (pod, own) = first(&behind[1..]);
            (Some(PodName::parse(pod).map_err(|error| usage(error.to_string()))?), own)
        }
        Some(_) | None => (of, rest),
    };
    if of.is_some() && reach != "tree" {
        return Err(usage("--of goes with tree, as in `tree --of lead`"));
    }
    if request.client.is_some() {
        return match words {
            "" | "once" => Ok(Decided::One(Verdict::Once)),
            "client" => Ok(Decided::One(Verdict::Pod { rule: None })),
            other => Err(usage(format!("for a client :allow takes client, not {other}"))),
        };
    }
    if request.question.is_some() {
        return Err(usage("that request is a question: :answer answers it, :deny declines"));
    }
    if let Some(why) = once_only(request).filter(|_| !matches!(words, "" | "once" | "each")) {
        return Err(usage(why));
    }
    let own = Some(own.trim()).filter(|own| !own.is_empty());
    let rule = own.map(str::parse::<Pattern>).transpose();
    let rule = rule.map_err(|error: NotAPattern| usage(error.to_string()))?;
    let of = of.filter(|of| of.key() != request.pod.key());
    match reach {
        "" | "once" if rule.is_none() => Ok(Decided::One(Verdict::Once)),
        "each" if rule.is_none() => Ok(Decided::Each(Verdict::Once)),
        "pod" => Ok(Decided::One(Verdict::Pod { rule })),
        "tree" => Ok(Decided::One(Verdict::Tree { rule, of })),
        other => Err(usage(format!(":allow takes each, pod or tree, not {other}"))),
    }
}
