//! `:allow`: allows what an approval request wants, once or by a rule.

use crate::verb::decision::Decision;
use crate::verb::{
    Dialogue, End, Known, Next, Reply, Runs, Safety, Verb, WITHOUT_SCREEN, Why, of, verb,
};
use crate::wording::rule::ONCE_ONLY;
use clap::Args;
use yoi::protocol::approval::NotAPattern;
use yoi::protocol::{ApprovalRequest, Pattern, Verdict};

pub static VERB: Verb = of::<Allow>(Verb {
    ways: WITHOUT_SCREEN,
    safety: Safety::Confirms,
    runs: Runs::InTheBackground,
    more: &[
        "Once, or with pod behind the request from now on for its Pod, with tree for everything below it, \
         too. Both write the rule that :inbox shows with the request, or the rule behind them, as in \
         Bash:cargo *. A rule that was not shown in this conversation is confirmed first.",
        "What an MCP client wants is allowed once, or with client behind the request for good: it may then use the \
         Pods of its folder. :policy lists and ends such consents.",
        "With --no-ui a request is named by its number, or not at all when it alone was shown. Elsewhere it \
         is named as `yoi inbox` prints it: by the end of its id.",
        "On the screen {leader inbox} goes to the requests, and keys decide them.",
    ],
    ..verb("allow", "allow what an approval request wants")
});

#[derive(Args)]
struct Allow {
    /// The request, then pod or tree to write a rule, then a rule of your own; client for an MCP client
    #[arg(value_name = "REQUEST [pod|tree [RULE]|client]", trailing_var_arg = true)]
    words: Vec<String>,
    #[arg(skip)]
    decision: Decision,
}

impl Dialogue for Allow {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        self.decision.next(known, last, "allow", &self.words.join(" "), allowed)
    }
}

/// What the words behind a request allow.
fn allowed(request: &ApprovalRequest, words: &str) -> Result<Verdict, End> {
    let usage = |text: String| End::refused(Why::Usage, text);
    if request.client.is_some() {
        return match words {
            "" | "once" => Ok(Verdict::Once),
            "client" => Ok(Verdict::Pod { rule: None }),
            other => Err(usage(format!("for a client :allow takes client, not {other}"))),
        };
    }
    if request.is_once_only() && !matches!(words, "" | "once") {
        return Err(usage(ONCE_ONLY.into()));
    }
    let (reach, own) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let own = Some(own.trim()).filter(|own| !own.is_empty());
    let rule = own.map(str::parse::<Pattern>).transpose();
    let rule = rule.map_err(|error: NotAPattern| usage(error.to_string()))?;
    match reach {
        "" | "once" if rule.is_none() => Ok(Verdict::Once),
        "pod" => Ok(Verdict::Pod { rule }),
        "tree" => Ok(Verdict::Tree { rule }),
        other => Err(usage(format!(":allow takes pod or tree, not {other}"))),
    }
}
