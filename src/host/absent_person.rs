//! Calls a person who has no screen open, by a command or an address of the settings: for Pods that come to need the
//! person, that fail, and for families that finish. What happens between two calls is told in one.

use crate::config::settings::Notify;
use crate::host::Shared;
use crate::host::relations::{Relation, relation};
use crate::llm::http;
use crate::protocol::{Matter, PodInfo, PodName, State, TEST_CALL, TriedWay};
use serde_json::json;
use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;

/// How long the last screen has been gone before a person counts as absent.
pub(crate) const AWAY: Duration = Duration::from_secs(60);
/// The least time between two calls.
pub(crate) const BETWEEN: Duration = Duration::from_secs(60);
/// How long a command or a server may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes of a reason in a call.
const REASON: usize = 500;

/// The screens of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attached {
    pub(crate) screens: usize,
    /// When the last of them left, or the host started.
    pub(crate) left: Instant,
}

impl Default for Attached {
    fn default() -> Self {
        Self { screens: 0, left: Instant::now() }
    }
}

impl Attached {
    pub(crate) fn screen_left(&mut self) {
        (self.screens, self.left) = (self.screens - 1, Instant::now());
    }
}

/// The Pods that the next call is for.
pub(crate) type Matters = BTreeMap<PodName, Matter>;

/// Notes what a change of a Pod means to a person.
pub(crate) fn note(shared: &Shared, before: State, now: &PodInfo) {
    let matter = match (before, now.state) {
        (before, now) if before == now => return,
        (_, State::NeedsYou) => Matter::Needs,
        (_, State::Failed) => Matter::Failed,
        (State::Running, State::Idle) => Matter::Finished,
        _ => return,
    };
    shared.matters.send_modify(|matters| {
        matters.insert(now.name.clone(), matter);
    });
}

/// Calls the person for as long as the host lives.
pub(crate) async fn call(shared: Shared) {
    let (mut matters, mut attached) = (shared.matters.subscribe(), shared.attached.subscribe());
    let mut not_before = Instant::now();
    loop {
        // The senders live as long as `shared`.
        if matters.wait_for(|matters| !matters.is_empty()).await.is_err() {
            return;
        }
        let Attached { screens, left } = *attached.borrow_and_update();
        if screens > 0 {
            // The screen shows what happened.
            shared.matters.send_modify(Matters::clear);
            continue;
        }
        tokio::select! {
            biased;
            _ = attached.changed() => {}
            () = tokio::time::sleep_until(not_before.max(left + AWAY)) => {
                let matters = shared.matters.send_replace(Matters::new());
                if let Some(call) = Call::of(&shared, matters).await {
                    not_before = Instant::now() + BETWEEN;
                    call.place(&shared).await;
                }
            }
        }
    }
}

/// One call, for what is still so.
struct Call {
    notify: Notify,
    matters: Matters,
    reasons: BTreeMap<PodName, String>,
}

impl Call {
    async fn of(shared: &Shared, mut matters: Matters) -> Option<Self> {
        let settings = shared.read_settings().await.unwrap_or_else(|_| shared.settings.last());
        let notify = settings.settings.notify.clone();
        if notify.command.is_empty() && notify.url.is_none() {
            return None;
        }
        let family = shared.family();
        matters.retain(|name, matter| {
            let info = family.iter().find(|info| info.name == *name);
            info.is_some_and(|info| is_still(info, *matter, || below(shared, info, &family)))
        });
        let reasons = family.iter().filter(|info| notify.text && matters.contains_key(&info.name));
        let reasons = reasons.filter_map(|info| Some((info.name.clone(), reason(info)?))).collect();
        (!matters.is_empty()).then_some(Self { notify, matters, reasons })
    }

    /// One sentence, with the reasons where the settings want them.
    fn sentence(&self) -> String {
        let pods: Vec<(&str, Matter)> =
            self.matters.iter().map(|(name, matter)| (name.as_str(), *matter)).collect();
        let reasons = self.reasons.iter().map(|(name, why)| format!("\n{name}: {why}"));
        Matter::sentence(&pods) + &reasons.collect::<String>()
    }

    /// What a command reads: the sentence, and the Pods by matter.
    fn json(&self) -> String {
        let of = |wanted: Matter| -> Vec<&PodName> {
            let its = self.matters.iter().filter(|(_, matter)| **matter == wanted);
            its.map(|(name, _)| name).collect()
        };
        let (needs, failed) = (of(Matter::Needs), of(Matter::Failed));
        let mut call = json!({ "text": self.sentence(), "needs": needs, "failed": failed });
        call["finished"] = json!(of(Matter::Finished));
        if !self.reasons.is_empty() {
            call["reasons"] = json!(self.reasons);
        }
        call.to_string()
    }

    /// Runs the command and sends to the address; a failure becomes a notice.
    async fn place(&self, shared: &Shared) {
        for way in place(shared, &self.notify, self.json(), self.sentence()).await {
            if let Some(why) = way.failure {
                shared.add_notice(format!("[notify] {} did not reach you: {why}", way.name));
            }
        }
    }
}

/// Calls the person by the command and the address once, as a test, with the settings in force.
pub(super) async fn try_ways(shared: &Shared) -> Vec<TriedWay> {
    let settings = shared.read_settings().await.unwrap_or_else(|_| shared.settings.last());
    let none: [&PodName; 0] = [];
    let call =
        json!({ "text": TEST_CALL, "needs": none, "failed": none, "finished": none, "test": true });
    place(shared, &settings.settings.notify, call.to_string(), TEST_CALL.into()).await
}

/// Runs the command with this on its standard input, and sends the sentence to the address.
async fn place(shared: &Shared, notify: &Notify, input: String, sentence: String) -> Vec<TriedWay> {
    let ran = async {
        match &notify.command[..] {
            [] => Ok(()),
            [program, args @ ..] => run(program, args, input).await,
        }
    };
    let sent = async {
        match &notify.url {
            None => Ok(()),
            Some(url) => send(shared, url, sentence).await,
        }
    };
    let (ran, sent) = tokio::join!(ran, sent);
    let way = |name: &str, is_set, result: Result<(), String>| TriedWay {
        name: name.into(),
        is_set,
        failure: result.err(),
    };
    vec![way("command", !notify.command.is_empty(), ran), way("url", notify.url.is_some(), sent)]
}

/// Whether it is still so; `below` are the Pods below it.
fn is_still<'a, I: Iterator<Item = &'a PodInfo>>(
    info: &PodInfo,
    matter: Matter,
    below: impl FnOnce() -> I,
) -> bool {
    match matter {
        Matter::Needs => info.state == State::NeedsYou,
        Matter::Failed => info.state == State::Failed,
        Matter::Finished => info.is_root_of_done(below()),
    }
}

/// Everything below a Pod.
fn below<'a>(
    shared: &Shared,
    root: &PodInfo,
    family: &'a [PodInfo],
) -> impl Iterator<Item = &'a PodInfo> {
    family.iter().filter(|pod| relation(shared, &root.name, &pod.name) == Relation::Below)
}

fn reason(info: &PodInfo) -> Option<String> {
    let why = info.why.as_deref()?;
    Some(why[..why.floor_char_boundary(REASON)].to_owned())
}

/// Runs a command with `input` on its standard input, as the host and outside of any sandbox: it is the person's own.
async fn run(program: &str, args: &[String], input: String) -> Result<(), String> {
    let mut command = tokio::process::Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("{program} cannot be run: {error}"))?;
    let ended = async {
        if let Some(mut stdin) = child.stdin.take() {
            // A command need not read.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        child.wait().await
    };
    match tokio::time::timeout(PATIENCE, ended).await {
        Err(_) => Err(format!("{program} was ended after {} s", PATIENCE.as_secs())),
        Ok(Err(error)) => Err(format!("{program}: {error}")),
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("{program}: {status}")),
    }
}

/// Posts the sentence, as ntfy and most webhooks take it.
async fn send(shared: &Shared, url: &str, text: String) -> Result<(), String> {
    let client = shared.http.client_for(url)?;
    let request = client.post(url).header("Title", "yoi").header("Content-Type", "text/plain");
    let answer = request.body(text).timeout(PATIENCE).send().await;
    // The address may hold a secret: it is not part of the sentence.
    let answer = answer.map_err(|error| http::cause(&error.without_url()))?;
    let status = answer.status();
    if status.is_success() { Ok(()) } else { Err(format!("the server answered {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{EntryId, LastRun, RunResult};

    fn pod(own: &str, parent: Option<&str>, state: State) -> PodInfo {
        let name = |name: &str| PodName::parse(name).expect("a name");
        let run = LastRun {
            entry: EntryId::new(),
            result: RunResult::Finished.word().into(),
            error: None,
            at: 1,
        };
        PodInfo {
            parent: parent.map(name),
            last_result: Some(run),
            ..PodInfo::bare(name(own), state, 0, "/w".into(), "/w".into())
        }
    }

    #[test]
    fn only_a_family_without_work_is_done_and_what_is_over_is_passed_over() {
        let ann = pod("ann", None, State::Idle);
        let mut kids =
            [pod("kid", Some("ann"), State::Idle), pod("grandkid", Some("kid"), State::Running)];
        let is_done =
            |info: &PodInfo, below: &[PodInfo]| is_still(info, Matter::Finished, || below.iter());
        assert!(!is_done(&ann, &kids), "a Pod below works");
        kids[1].state = State::NeedsYou;
        assert!(!is_done(&ann, &kids), "a Pod below needs the person");
        assert!(is_still(&kids[1], Matter::Needs, || [].iter()));
        kids[1].state = State::Stopped;
        assert!(is_done(&ann, &kids));
        assert!(!is_done(&kids[0], &kids[1..]), "its parent is called, not the person");
        assert!(!is_still(&kids[1], Matter::Needs, || [].iter()), "it was answered");
        assert!(!is_still(&ann, Matter::Failed, || kids.iter()));
    }
}
