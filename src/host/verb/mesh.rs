//! The mesh: a Pod joins or leaves it, agents are listed and blocked, and messages are sent to them.

use crate::host::Shared;
use crate::host::mesh::{delivery, on_blocked_machine, roster, sending, stored_block, view};
use crate::host::pod::Fact;
use crate::host::verb::{Caller, Cx, Verb};
use crate::mesh::machines::MachineName;
use crate::protocol::mesh::{MeshView, SentMessage};
use crate::protocol::method::Addressees;
use crate::protocol::{Event, NotificationSource, Refusal, SentByPerson, State};
use crate::run::Notification;
use crate::text::SafeText;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::timeout;

/// Characters of a message that is too large to be sent, in the log.
const TOO_LARGE: usize = 200;
/// Blocked agents that a refusal names.
const NAMED: usize = 5;
/// How long a person waits to see that a Pod joined.
const TO_JOIN: Duration = Duration::from_secs(6);

/// MeshJoin: the Pod joins, now and whenever it becomes live.
pub(crate) struct Join;

impl Verb for Join {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let pod = cx.pod()?;
        // The address of the mesh stands in the settings.
        cx.shared.read_settings().await?;
        cx.shared.store.set_mesh_choice(&pod.name, true).await?;
        pod.tell(Fact::MeshChosen(true)).await;
        let mut info = pod.info.clone();
        let is_known = |info: &crate::protocol::PodInfo| {
            let standing = info.mesh.as_ref();
            info.state == State::Stopped
                || standing.is_some_and(|mesh| mesh.name.is_some() || mesh.why.is_some())
        };
        // A Pod that needs longer shows it when it has joined.
        let _ = timeout(TO_JOIN, info.wait_for(is_known)).await;
        Ok(of(&cx, &pod.name))
    }
}

/// MeshLeave: the Pod leaves, and joins no more.
pub(crate) struct Leave;

impl Verb for Leave {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let pod = cx.pod()?;
        cx.shared.store.set_mesh_choice(&pod.name, false).await?;
        pod.tell(Fact::MeshChosen(false)).await;
        Ok(of(&cx, &pod.name))
    }
}

fn of(cx: &Cx, pod: &crate::protocol::PodName) -> Event {
    let members = vec![view::member(&cx.shared, pod)];
    Event::Mesh(MeshView { members, ..MeshView::default() })
}

/// MeshAgents: the agents that the addressed Pod can reach, or how this host takes part.
pub(crate) struct Agents;

impl Verb for Agents {
    const ALLOWED: Caller = Caller::Itself;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let view = match &cx.to {
            Some(_) => view::of_pod(&cx.shared, &cx.pod()?.name).await?,
            None => view::of_host(&cx.shared).await,
        };
        Ok(Event::Mesh(view))
    }
}

/// MeshSend: a message to agents, in the name of the addressed Pod.
pub(crate) struct SendToAgents {
    pub(crate) to: Addressees,
    pub(crate) body: Value,
    pub(crate) re: Option<String>,
}

impl Verb for SendToAgents {
    const ALLOWED: Caller = Caller::Itself;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let pod = cx.pod()?;
        let Self { to, body, re } = self;
        let sent = sending::send(&cx.shared, &pod.name, to.clone(), &body, re).await?;
        if cx.by.is_none()
            && let Some(message) = noted(&cx.shared, to, body, &sent)
        {
            pod.tell(Fact::Noted(message)).await;
        }
        Ok(sent)
    }
}

/// The note in the log of a Pod about a message of a person in its name, also about one that was refused. Of a message
/// that is larger than any may be, it has the beginning.
fn noted(shared: &Shared, to: Addressees, body: Value, sent: &Event) -> Option<Notification> {
    let Event::MeshSent { id, status, reason, pods, handed_over } = sent else { return None };
    let to = match to {
        Addressees::One(name) => name,
        Addressees::Many(names) => names.join(", "),
    };
    let message = match body {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let message = match delivery::over_size(shared, message.len()) {
        Some(_) => SafeText::brief(&message, TOO_LARGE).to_string(),
        None => message,
    };
    let (id, status, pods) = (id.clone(), status.clone(), pods.clone());
    let sent = SentMessage { id, status, pods, handed_over: *handed_over };
    let from =
        NotificationSource::Person(Box::new(SentByPerson { to, sent, reason: reason.clone() }));
    Some(Notification { message, from: Some(from) })
}

/// MeshBlock: no Pod of this host takes messages of an agent, or of any agent of a machine, or they do again.
pub(crate) struct Block {
    pub(crate) name: String,
    pub(crate) end: bool,
}

impl Verb for Block {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let Self { name, end } = self;
        let shared = &cx.shared;
        if !end && let Some(pod) = shared.mesh.pod_named(&name) {
            let text = format!(
                "`{name}` is pod `{pod}` of this host; :unpeer ends what two Pods may send"
            );
            return Err(Refusal::invalid(text));
        }
        if !end && let Some(machine) = name.strip_suffix(':') {
            let machine = MachineName::parse(machine);
            let machine = machine.map_err(|error| Refusal::invalid(error.to_string()))?;
            if shared.mesh.machines.own().as_ref() == Some(&machine) {
                return Err(Refusal::invalid(format!("`{machine}` is this machine")));
            }
        }
        if !end && is_machine_only(shared, &name) {
            let text = format!("`{name}` is a machine: `:block {name}:` blocks all of its agents");
            return Err(Refusal::invalid(text));
        }
        let blocked = shared.mesh.blocked();
        let stored = stored_block(&blocked, &name).map(str::to_owned);
        if end && stored.is_none() {
            return Err(Refusal::invalid(not_blocked(&name, &blocked)));
        }
        let name = stored.unwrap_or(name);
        shared.store.block_agent(&name, !end).await?;
        shared.mesh.set_blocked(shared.store.blocked_agents().await?);
        shared.deny_blocked().await?;
        roster::changed(shared, roster::Change::Member);
        let blocked = shared.mesh.blocked().iter().cloned().collect();
        Ok(Event::Mesh(MeshView { blocked, ..MeshView::default() }))
    }
}

/// Whether another machine has this name, and no agent of this machine.
fn is_machine_only(shared: &Shared, name: &str) -> bool {
    let is_agent = || shared.mesh.roster.agents().iter().any(|agent| agent.name == name);
    shared.mesh.machines.knows(name) && !is_agent()
}

fn not_blocked(name: &str, blocked: &BTreeSet<String>) -> String {
    if let Some(machine) = on_blocked_machine(blocked, name) {
        return format!("the whole machine `{machine}` is blocked: :block {machine}: --end");
    }
    let name = SafeText::quoted(name);
    let blocked: Vec<String> =
        blocked.iter().take(NAMED).map(|name| SafeText::quoted(name).to_string()).collect();
    match blocked.as_slice() {
        [] => format!("{name} is not blocked, and no other agent is"),
        some => format!("{name} is not blocked; blocked are {}; :mesh lists them", some.join(", ")),
    }
}
