//! What `:allow` and `:deny` share: which approval request a line means, and the decision that is sent.

use crate::verb::dialogue::or_end;
use crate::verb::several::confirm;
use crate::verb::words::first;
use crate::verb::{End, Known, Next, Reply, Request, Why};
use crate::wording::rule;
use std::slice::from_ref;
use yoi::protocol::{ApprovalRequest, Method, PodName, Verdict};
use yoi::text::SafeText;

/// The shortest end of an id that names a request, in characters. Ids begin with the time, so that
/// requests of one minute begin alike; and a number of a conversation is never as long.
const SHORTEST: usize = 6;

/// The decision of one request; empty before it is known which.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    decided: Option<(ApprovalRequest, Verdict)>,
}

/// The request that a line means.
struct Named<'a> {
    request: &'a ApprovalRequest,
    /// The words behind its name.
    words: &'a str,
    /// Whether this conversation has shown it, with its rule.
    is_shown: bool,
}

impl Decision {
    /// The next step of `verb` with these words; `read` makes a verdict of those behind the request.
    pub fn next(
        &mut self,
        known: &Known<'_>,
        last: Option<Reply>,
        verb: &'static str,
        text: &str,
        read: impl Fn(&ApprovalRequest, &str) -> Result<Verdict, End>,
    ) -> Next {
        match last {
            None => or_end(find(known, verb, text).and_then(|named| {
                let verdict = read(named.request, named.words)?;
                Ok(self.begin(&named, verdict))
            })),
            Some(Reply::Results(results)) => {
                or_end(Reply::Results(results).single().map(|_| Next::End(self.end())))
            }
            Some(Reply::Confirmed | Reply::Picked(_)) => self.call(),
        }
    }

    /// A rule is written only after it was shown.
    fn begin(&mut self, named: &Named<'_>, verdict: Verdict) -> Next {
        let request = named.request.clone();
        let question = written(&request, &verdict).filter(|_| !named.is_shown);
        // The confirmation closes when a Pod that it is about is deleted; a client is not a Pod.
        let about: Vec<PodName> =
            request.client.is_none().then(|| request.pod.clone()).into_iter().collect();
        self.decided = Some((request, verdict));
        match question {
            Some(question) => confirm(&about, question, "allow and write the rule"),
            None => self.call(),
        }
    }

    fn call(&self) -> Next {
        let Some((request, verdict)) = &self.decided else { return Next::End(End::default()) };
        let method = Method::Decide { approval: request.id.clone(), verdict: verdict.clone() };
        Next::call(Request::host(method))
    }

    fn end(&self) -> End {
        let Some((request, verdict)) = &self.decided else { return End::default() };
        let line = SafeText::spelled(request.line());
        End::done(format!("{}: {} · {line}", request.asker(), rule::verdict(verdict)))
    }
}

/// What the rule of a verdict says, for a verdict that writes one.
fn written(request: &ApprovalRequest, verdict: &Verdict) -> Option<String> {
    let (own, tree) = match verdict {
        Verdict::Pod { rule } => (rule, false),
        Verdict::Tree { rule } => (rule, true),
        Verdict::Once | Verdict::Deny { .. } | Verdict::Withdrawn { .. } => return None,
    };
    let rule = own.as_ref().unwrap_or(&request.rule);
    if let Some(client) = &request.client {
        return Some(rule::for_client(rule, client));
    }
    Some(rule::from_now_on(rule, from_ref(&request.pod), tree))
}

/// The request that a line means: by its number in a conversation, by its id, or as the only one that
/// was shown.
fn find<'a>(known: &Known<'a>, verb: &'static str, text: &'a str) -> Result<Named<'a>, End> {
    let open = known.family.approvals();
    let (word, rest) = first(text);
    let list = known.spell("inbox");
    let usage = |text: String| End::refused(Why::Usage, text);
    // A short number of a conversation is never read as an id.
    let number = known.numbers.and_then(|_| word.parse().ok()).filter(|_| word.len() < SHORTEST);
    let by_id = open.iter().filter(|request| number.is_none() && is_named(request, word));
    let by_id = by_id.collect::<Vec<_>>();
    match by_id.as_slice() {
        [request] => {
            let is_shown = known.numbers.is_some_and(|numbers| numbers.was_shown(&request.id));
            return Ok(Named { request, words: rest.trim(), is_shown });
        }
        [] => {}
        _ => return Err(usage(format!("more than one id ends with `{word}`: give more of it"))),
    }
    let Some(numbers) = known.numbers else {
        return Err(usage(match word {
            "" => format!("say which request: {list} shows those that wait"),
            _ => format!("no request `{word}` waits: {list} shows those that do"),
        }));
    };
    let words = if number.is_some() { rest.trim() } else { text.trim() };
    let is_open = |id: &str| open.iter().any(|request| request.id == id);
    let id = numbers.find(number, verb, is_open).map_err(|error| usage(error.to_string()))?;
    let gone = || usage("that request does not wait any more".into());
    let request = open.iter().find(|request| request.id == id).ok_or_else(gone)?;
    Ok(Named { request, words, is_shown: numbers.was_shown(id) })
}

/// Whether this word is the id of a request, or a long enough end of it.
fn is_named(request: &ApprovalRequest, word: &str) -> bool {
    let is_long = word.chars().count() >= SHORTEST;
    request.id == word || is_long && request.id.ends_with(word)
}

/// The shortest name of a request that means no other one of these.
pub fn name_of<'a>(request: &'a ApprovalRequest, open: &[ApprovalRequest]) -> &'a str {
    let id = request.id.as_str();
    let means_another =
        |name: &str| open.iter().any(|other| other.id != request.id && other.id.ends_with(name));
    let ends = id.char_indices().rev().map(|(at, _)| &id[at..]).skip(SHORTEST - 1);
    ends.into_iter().find(|name| !means_another(name)).unwrap_or(id)
}
