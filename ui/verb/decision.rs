//! What `:allow`, `:answer` and `:deny` share: which approval request a line means, and the decision that is sent.

use crate::verb::dialogue::or_end;
use crate::verb::several::confirm;
use crate::verb::words::first;
use crate::verb::{End, Known, Next, Reply, Request, Why};
use crate::wording::rule;
use std::slice::from_ref;
use yoi::client::family::equal::are_equal;
use yoi::protocol::{ApprovalRequest, Event, Method, PodName, Refusal, Verdict};
use yoi::text::SafeText;

/// The shortest end of an id that names a request, in characters. Ids begin with the time, so that
/// requests of one minute begin alike; and a number of a conversation is never as long.
const SHORTEST: usize = 6;

/// The decision of one request, or of each of several equal ones; empty before it is known which.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    requests: Vec<ApprovalRequest>,
    verdict: Option<Verdict>,
}

/// What the words behind a request say.
pub enum Decided {
    One(Verdict),
    /// The same for each request that is equal to it.
    Each(Verdict),
}

/// The request that a line means.
struct Named<'a> {
    request: &'a ApprovalRequest,
    /// The words behind its name.
    words: &'a str,
    /// Whether this conversation has shown it, with its rule.
    is_shown: bool,
    /// Whether the line names its Pod, which may wait for something else than the person has read.
    is_by_pod: bool,
}

impl Decision {
    /// The next step of `verb` with these words; `read` makes a verdict of those behind the request.
    pub fn next(
        &mut self,
        known: &Known<'_>,
        last: Option<Reply>,
        verb: &'static str,
        text: &str,
        read: impl Fn(&ApprovalRequest, &str) -> Result<Decided, End>,
    ) -> Next {
        match last {
            None => or_end(find(known, verb, text).and_then(|named| {
                let decided = read(named.request, named.words)?;
                Ok(self.begin(known, &named, decided))
            })),
            Some(Reply::Results(results)) => Next::End(self.end(results)),
            Some(Reply::Confirmed | Reply::Picked(_) | Reply::Key(_)) => self.call(),
        }
    }

    /// A rule is written only after it was shown.
    fn begin(&mut self, known: &Known<'_>, named: &Named<'_>, decided: Decided) -> Next {
        let request = named.request;
        let (requests, verdict) = match decided {
            Decided::One(verdict) => (vec![request.clone()], verdict),
            Decided::Each(verdict) => {
                let open = known.family.approvals().iter();
                (open.filter(|other| are_equal(request, other)).cloned().collect(), verdict)
            }
        };
        let by_pod = || {
            let askers: Vec<String> = requests.iter().map(|request| request.asker()).collect();
            let (askers, line) = (askers.join(", "), SafeText::spelled(request.line()));
            format!("{askers}: {line} (needs {}): allow it?", SafeText::spelled(&request.because))
        };
        let allows = !matches!(verdict, Verdict::Deny { .. } | Verdict::Answer { .. });
        let shown = (named.is_by_pod && allows).then(by_pod);
        let rule = written(request, &verdict).filter(|_| !named.is_shown);
        let question = match (shown, rule) {
            (Some(shown), Some(rule)) => Some(format!("{shown}\n{rule}")),
            (shown, rule) => shown.or(rule),
        };
        // The confirmation closes when a Pod that it is about is deleted; a client is not a Pod.
        let about: Vec<PodName> =
            request.client.is_none().then(|| request.pod.clone()).into_iter().collect();
        (self.requests, self.verdict) = (requests, Some(verdict));
        match question {
            Some(question) => confirm(&about, question, "allow"),
            None => self.call(),
        }
    }

    fn call(&self) -> Next {
        let Some(verdict) = &self.verdict else { return Next::End(End::default()) };
        let decide = |request: &ApprovalRequest| {
            let verdict = verdict.clone();
            Request::host(Method::Decide { approval: request.id.clone(), verdict })
        };
        Next::Call(self.requests.iter().map(decide).collect())
    }

    fn end(&self, results: Vec<Result<Event, Refusal>>) -> End {
        let Some(verdict) = &self.verdict else { return End::default() };
        let (mut done, mut refused) = (Vec::new(), Vec::new());
        for (request, result) in self.requests.iter().zip(results) {
            match result {
                Ok(_) => done.push(request),
                Err(refusal) if self.requests.len() == 1 => refused.push(refusal.message),
                Err(refusal) => refused.push(format!("{}: {}", request.asker(), refusal.message)),
            }
        }
        let said = done.first().map(|first| {
            let askers: Vec<String> = done.iter().map(|request| request.asker()).collect();
            let line = SafeText::spelled(first.line());
            format!("{}: {} · {line}", askers.join(", "), rule::verdict(verdict))
        });
        if refused.is_empty() {
            return said.map_or_else(End::default, End::done);
        }
        refused.extend(said);
        End::refused(Why::Failed, refused.join(" · "))
    }
}

/// What the rule of a verdict says, for a verdict that writes one.
fn written(request: &ApprovalRequest, verdict: &Verdict) -> Option<String> {
    let (own, pod, tree) = match verdict {
        Verdict::Pod { rule } => (rule, &request.pod, false),
        Verdict::Tree { rule, of } => (rule, of.as_ref().unwrap_or(&request.pod), true),
        Verdict::Once
        | Verdict::Answer { .. }
        | Verdict::Deny { .. }
        | Verdict::Withdrawn { .. } => return None,
    };
    let rule = own.as_ref().unwrap_or(&request.rule);
    if let Some(client) = &request.client {
        return Some(rule::for_client(rule, client));
    }
    Some(rule::from_now_on(rule, from_ref(pod), tree))
}

/// The request that a line means: by its number in a conversation, by its id, by its Pod, or as the only one that
/// was shown. A Pod names its only request of the kind that the verb decides; in a conversation, a question alone: there
/// another request may have come after the one that was shown.
fn find<'a>(known: &Known<'a>, verb: &'static str, text: &'a str) -> Result<Named<'a>, End> {
    let open = known.family.approvals();
    let (word, rest) = first(text);
    let list = known.spell("inbox");
    let usage = |text: String| End::refused(Why::Usage, text);
    // A short number of a conversation is never read as an id.
    let number = known.numbers.and_then(|_| word.parse().ok()).filter(|_| word.len() < SHORTEST);
    let by_pod = |request: &&ApprovalRequest| {
        let fits = match verb {
            "answer" => request.question.is_some(),
            "allow" => request.question.is_none(),
            _ => true,
        };
        fits && is_of(request, word) && (verb == "answer" || known.numbers.is_none())
    };
    let found = |is_meant: &dyn Fn(&&ApprovalRequest) -> bool| {
        open.iter().filter(|request| number.is_none() && is_meant(request)).collect::<Vec<_>>()
    };
    let by_id = found(&|request| is_named(request, word));
    let meant = if by_id.is_empty() { found(&by_pod) } else { by_id.clone() };
    match meant.as_slice() {
        [request] => {
            let is_shown = known.numbers.is_some_and(|numbers| numbers.was_shown(&request.id));
            return Ok(Named {
                request,
                words: rest.trim(),
                is_shown,
                is_by_pod: by_id.is_empty(),
            });
        }
        [] => {}
        _ if !by_id.is_empty() => {
            return Err(usage(format!("more than one id ends with `{word}`: type more of it")));
        }
        [first, ..] => {
            let (id, count) = (name_of(first, open), meant.len());
            return Err(usage(format!(
                "{} waits with {count} requests: say the id of one, such as `{id}`; {list} shows them",
                first.pod
            )));
        }
    }
    let Some(numbers) = known.numbers else {
        return Err(usage(match word {
            "" => format!("say which request: {list} shows those that wait"),
            // What the verb does not decide is said with the verb that does.
            _ if let Some(request) = open.iter().find(|request| is_of(request, word)) => {
                let is_shown = false;
                return Ok(Named { request, words: rest.trim(), is_shown, is_by_pod: true });
            }
            _ => format!("no request `{word}` waits: {list} shows those that do"),
        }));
    };
    let words = if number.is_some() { rest.trim() } else { text.trim() };
    let is_open = |id: &str| open.iter().any(|request| request.id == id);
    let id = numbers.find(number, verb, is_open).map_err(|error| usage(error.to_string()))?;
    let gone = || usage("that request does not wait any more".into());
    let request = open.iter().find(|request| request.id == id).ok_or_else(gone)?;
    Ok(Named { request, words, is_shown: numbers.was_shown(id), is_by_pod: false })
}

/// Whether this word is the id of a request, or a long enough end of it.
pub fn is_named(request: &ApprovalRequest, word: &str) -> bool {
    let is_long = word.chars().count() >= SHORTEST;
    request.id == word || is_long && request.id.ends_with(word)
}

/// Whether a request is one of the Pod with this name.
fn is_of(request: &ApprovalRequest, word: &str) -> bool {
    request.is_of_pod() && PodName::parse(word).is_ok_and(|name| name.key() == request.pod.key())
}

/// The shortest name of a request that means no other one of these.
pub fn name_of<'a>(request: &'a ApprovalRequest, open: &[ApprovalRequest]) -> &'a str {
    let id = request.id.as_str();
    let means_another =
        |name: &str| open.iter().any(|other| other.id != request.id && other.id.ends_with(name));
    let ends = id.char_indices().rev().map(|(at, _)| &id[at..]).skip(SHORTEST - 1);
    ends.into_iter().find(|name| !means_another(name)).unwrap_or(id)
}
