//! MCP clients that want to use Pods: what of it waits for a person, and what a person decided. A request lasts as long
//! as this host and its client; after a restart of the host the next call of the client asks again.

mod presence;

pub(crate) use presence::ClientConnection;

use crate::host::Shared;
use crate::protocol::{ApprovalRequest, McpClient, Pattern, PodName, Refusal, Verdict, now_ms};
use crate::scope::{Permission, Rule};
use crate::text::SafeText;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// How long a call waits for a person. Clients give up on a tool after a minute.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a decision waits for its call.
const COUNTS: Duration = Duration::from_mins(10);
/// Requests of one client that may wait at once, and of all clients.
const WAITING: (usize, usize) = (4, 32);
/// The tools that a consent to a client lets it use.
const TOOLS: &str = "list_pods, read_pod_output, send_to_pod, spawn_pod";
/// Characters of the end of an id by which a shell names a request.
const NAME: usize = 6;

/// The calls of clients. The lock is never held across an await.
#[derive(Default)]
pub(crate) struct Clients {
    asked: Mutex<Vec<Asked>>,
    presence: presence::Presence,
}

/// A call of a client that a person is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientCall {
    /// The name of the tool, as the client knows it.
    pub(crate) tool: &'static str,
    pub(crate) action: String,
    pub(crate) details: Option<String>,
}

/// A request and, once there is one, the decision and when it was made.
struct Asked {
    approval: ApprovalRequest,
    decision: watch::Sender<Option<(Verdict, Instant)>>,
}

/// The state of a call.
enum Progress {
    Decided(Verdict),
    /// A person has to decide; holds the request if it is new.
    Waits(watch::Receiver<Option<(Verdict, Instant)>>, String, Option<Box<ApprovalRequest>>),
    /// Too many other calls wait.
    Full,
}

impl Shared {
    /// Waits until a person lets a client make a call, for a few seconds at most: the refusal after that names the
    /// request and the ways to decide it. A consent to the client lets every call pass.
    pub(crate) async fn must_be_allowed(
        &self,
        client: &McpClient,
        call: &ClientCall,
    ) -> Result<(), Refusal> {
        let (deadline, folder) = (Instant::now() + PATIENCE, folder(client)?);
        loop {
            if self.store.is_admitted(folder, &client.name).await? {
                return Ok(());
            }
            let (mut decision, id, new) = match self.clients.progress(client, call) {
                Progress::Decided(Verdict::Deny { reason }) => return Err(denied(&reason)),
                Progress::Decided(Verdict::Once) => return Ok(()),
                // The store has the consent.
                Progress::Decided(_) => continue,
                Progress::Full => return Err(full()),
                Progress::Waits(decision, id, new) => (decision, id, new),
            };
            if let Some(approval) = new {
                self.approval_requested(&approval);
            }
            let decided = timeout_at(deadline, decision.wait_for(Option::is_some)).await;
            if decided.is_err() {
                return Err(waits(&id));
            }
        }
    }

    /// A person decided the request of a client. The first decision counts.
    pub(crate) async fn decide_for_client(
        &self,
        client: &McpClient,
        id: &str,
        verdict: Verdict,
    ) -> Result<(), Refusal> {
        match &verdict {
            Verdict::Once | Verdict::Deny { .. } => {}
            Verdict::Pod { rule: None } => self.store.admit(folder(client)?, &client.name).await?,
            Verdict::Pod { rule: Some(_) } => {
                return Err(Refusal::invalid(
                    "a client is allowed once or for good; no rule can narrow that",
                ));
            }
            Verdict::Tree { .. } => {
                return Err(Refusal::invalid(
                    "a client has no children: allow it once or for good",
                ));
            }
            Verdict::Answer { .. } | Verdict::Withdrawn { .. } => {
                return Err(Refusal::invalid("a person allows or denies the request of a client"));
            }
        }
        let decided = self.clients.decide(client, id, &verdict);
        if decided.is_empty() {
            return Err(Refusal::invalid("that approval request was decided already"));
        }
        for id in decided {
            self.approval_decided(&id, &verdict);
        }
        Ok(())
    }
}

impl Clients {
    fn asked(&self) -> MutexGuard<'_, Vec<Asked>> {
        // Each change is one call, so the list is whole also after a panic.
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the decision for a call, or asks for one. A decision counts for one call.
    fn progress(&self, client: &McpClient, call: &ClientCall) -> Progress {
        let mut asked = self.asked();
        asked.retain(|asked| asked.counts());
        if let Some(at) = asked.iter().position(|asked| asked.is_for(client, call)) {
            let decided = asked[at].decision.borrow().as_ref().map(|(verdict, _)| verdict.clone());
            if let Some(verdict) = decided {
                asked.remove(at);
                return Progress::Decided(verdict);
            }
            let Asked { approval, decision } = &asked[at];
            return Progress::Waits(decision.subscribe(), approval.id.clone(), None);
        }
        let own = asked.iter().filter(|asked| asked.is_of(client)).count();
        if own >= WAITING.0 || asked.len() >= WAITING.1 {
            return Progress::Full;
        }
        let (approval, decision) = (request(client, call), watch::Sender::new(None));
        let (waits, id) = (decision.subscribe(), approval.id.clone());
        asked.push(Asked { approval: approval.clone(), decision });
        Progress::Waits(waits, id, Some(Box::new(approval)))
    }

    /// Notes a decision, and returns the ids of the requests that it decides: a consent decides all requests of its
    /// client.
    fn decide(&self, client: &McpClient, id: &str, verdict: &Verdict) -> Vec<String> {
        let mut asked = self.asked();
        let undecided = |asked: &&Asked| asked.decision.borrow().is_none();
        let is_open = asked.iter().filter(undecided).any(|asked| asked.approval.id == id);
        if !is_open {
            return Vec::new();
        }
        let for_good = matches!(verdict, Verdict::Pod { .. });
        let also = |asked: &&Asked| asked.approval.id == id || for_good && asked.is_of(client);
        let decided: Vec<&Asked> = asked.iter().filter(undecided).filter(also).collect();
        let ids = decided.iter().map(|asked| asked.approval.id.clone()).collect();
        for asked in decided {
            asked.decision.send_replace(Some((verdict.clone(), Instant::now())));
        }
        if for_good {
            // The calls of the other requests find the consent in the store.
            asked.retain(|asked| !asked.is_of(client));
        }
        ids
    }
}

impl Clients {
    /// Drops the undecided requests of a client that is gone, and returns their ids. A decision that was made still
    /// counts for the same call if the client comes back.
    fn withdraw(&self, client: &McpClient) -> Vec<String> {
        let waits =
            |asked: &mut Asked| asked.is_of_program(client) && asked.decision.borrow().is_none();
        self.asked().extract_if(.., waits).map(|asked| asked.approval.id).collect()
    }
}

impl Asked {
    fn is_of(&self, client: &McpClient) -> bool {
        self.approval.client.as_ref().is_some_and(|own| own.is_same(client))
    }

    fn is_of_program(&self, client: &McpClient) -> bool {
        self.approval.client.as_ref().is_some_and(|own| own.is_same_program(client))
    }

    /// A person saw which program asks, so the decision is for no other one.
    fn is_for(&self, client: &McpClient, call: &ClientCall) -> bool {
        let ApprovalRequest { tool, action, details, .. } = &self.approval;
        self.is_of_program(client)
            && (tool, action, details) == (&call.tool.to_owned(), &call.action, &call.details)
    }

    /// Whether the request waits, or its decision waits for the call.
    fn counts(&self) -> bool {
        self.decision.borrow().as_ref().is_none_or(|(_, at)| at.elapsed() < COUNTS)
    }
}

fn folder(client: &McpClient) -> Result<&str, Refusal> {
    let text = "the folder of the client is not valid UTF-8, so no consent can be kept for it";
    client.folder.to_str().ok_or_else(|| Refusal::invalid(text))
}

fn request(client: &McpClient, call: &ClientCall) -> ApprovalRequest {
    let folder = client.folder.display();
    let calls_itself = match &client.program {
        Some(program) => format!("calls itself {}", SafeText::quoted(program)),
        None => "does not say what it is".to_owned(),
    };
    let because = format!(
        "your consent: an MCP client that works in {folder} under the name {} and {calls_itself}; allowed for good, it \
         may list, read and send to the Pods that work in that folder, and start Pods whose scope stays inside it",
        SafeText::quoted(&client.name)
    );
    let id = uuid::Uuid::now_v7().to_string();
    let rule = Pattern { tool: TOOLS.to_owned(), pattern: format!("in {folder}") };
    ApprovalRequest {
        client: Some(client.clone()),
        action: call.action.clone(),
        details: call.details.clone(),
        because,
        scope: vec![Rule::new(&client.folder, Permission::Write)],
        since: now_ms(),
        ..ApprovalRequest::new(id, PodName::from_directory(&client.name), call.tool, rule)
    }
}

fn denied(reason: &str) -> Refusal {
    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    Refusal::invalid(format!("a person denied this call{why}; do not repeat it"))
}

fn waits(id: &str) -> Refusal {
    let name: String = id.chars().skip(id.chars().count().saturating_sub(NAME)).collect();
    Refusal::invalid(format!(
        "not done: this call waits as request {name} for the approval of a person, in the inbox of `yoi`; in a shell, \
         `yoi inbox` lists it and says how it is allowed or denied. Tell your user, decide nothing yourself, and make \
         the same call again when it was allowed"
    ))
}

fn full() -> Refusal {
    let (own, all) = WAITING;
    Refusal::invalid(format!(
        "not done: {own} calls of this client, or {all} of all clients, wait for the approval of a person already, in \
         the inbox of `yoi`"
    ))
}
