//! The one path on which messages of agents and of peers come into a mailbox: they are committed there, then their
//! Pod is told. A Pod that is busy takes them before its next request, an idle one when one of them wakes it.

use crate::host::Shared;
use crate::host::pod::{Fact, waiting};
use crate::protocol::{AgentOrigin, NotificationSource, PodName, Refusal, now_ms};
use crate::run::{AgentMessage, Notification};
use crate::store::{MailboxKind, MailboxMessage, Offer, Offered, Room, StoreError};
use serde_json::Value;
use std::time::{Duration, Instant};

/// How long a sender waits until a busy Pod has shown that its message waits.
const TO_SHOW: Duration = Duration::from_secs(1);

/// Commits messages to a mailbox as far as it takes them, in their order, and tells its Pod.
pub(crate) async fn deliver(
    shared: &Shared,
    to: &PodName,
    offers: Vec<Offer>,
) -> Result<Vec<Offered>, StoreError> {
    let (outcomes, new) = commit(shared, to, offers).await?;
    if !new.is_empty()
        && let Some(handle) = shared.pod(to)
    {
        let of_pods = !waiting::waiting(&new).is_empty();
        let delivered = Fact::Delivered(new);
        if of_pods {
            // Screens know that the message waits before they show the result of the call that sent it.
            let _ = tokio::time::timeout(TO_SHOW, handle.tell(delivered)).await;
        } else {
            handle.post(delivered).await;
        }
    }
    Ok(outcomes)
}

/// Commits messages to the mailbox of a live Pod as far as it has room, in their order. Returns what became of each, and
/// the new ones.
async fn commit(
    shared: &Shared,
    to: &PodName,
    offers: Vec<Offer>,
) -> Result<(Vec<Offered>, Vec<MailboxMessage>), StoreError> {
    let settings = shared.settings.last().settings;
    let room = Room {
        all: settings.limits.mailbox.get().into(),
        agents: settings.mesh.waiting.get().into(),
    };
    let offered = shared.store.offer_messages(to, offers, room).await?;
    crate::crash_point!("mail-stored");
    Ok(offered)
}

/// Commits a message of a person or of a child, whose Pod is the caller. Returns the reason if it was not taken.
pub(crate) async fn put(
    shared: &Shared,
    to: &PodName,
    message: MailboxMessage,
) -> Result<Option<String>, StoreError> {
    let (outcomes, _) = commit(shared, to, vec![Offer { message, refused: None }]).await?;
    Ok(outcomes.first().and_then(|outcome| refusal(shared, to, outcome)))
}

/// A message that is committed unless there is no room.
pub(crate) fn offer(id: String, kind: MailboxKind, payload: Value) -> Offer {
    Offer { message: MailboxMessage { id, kind, payload, created: now_ms() }, refused: None }
}

/// Why a message was not taken, as a sentence; `None`: it is in the mailbox.
pub(crate) fn refusal(shared: &Shared, to: &PodName, outcome: &Offered) -> Option<String> {
    let settings = shared.settings.last().settings;
    match outcome {
        Offered::New | Offered::Known => None,
        Offered::Refused(reason) => Some(reason.clone()),
        Offered::Full(waiting) => Some(format!(
            "{waiting} messages wait for pod `{to}` and limits.mailbox is {}; try again when it has taken some, \
             or drop some from its queue",
            settings.limits.mailbox
        )),
        Offered::FullOfAgents => Some(format!(
            "{} messages of agents wait for pod `{to}`, as many as may; try again when it has taken some",
            settings.mesh.waiting
        )),
        Offered::FullOfOne(own) => Some(format!(
            "{own} messages of this agent wait for pod `{to}`, and the rest of its room is for others; try again when \
             it has taken some"
        )),
        Offered::NotLive => Some(format!("pod `{to}` is stopped")),
    }
}

/// Commits a message of one Pod to a peer, and returns its id in the mailbox.
pub(crate) async fn tell_peer(
    shared: &Shared,
    from: &PodName,
    to: &PodName,
    message: &str,
) -> Result<String, Refusal> {
    let message = format!("[Peer message from `{from}`]\n{message}");
    let from = Some(NotificationSource::Peer(from.clone()));
    let id = uuid::Uuid::now_v7().to_string();
    let offer = offer(id.clone(), MailboxKind::Notify, Notification { message, from }.payload());
    one(shared, to, offer).await?.map_or(Ok(id), |reason| Err(Refusal::invalid(reason)))
}

/// A message of an agent in this host. The reason why it was not taken, if so.
pub(crate) async fn send_to_pod(
    shared: &Shared,
    from: AgentOrigin,
    to: &PodName,
    body: String,
    wakes: bool,
) -> Result<Option<String>, StoreError> {
    let message = AgentMessage { from, body, wakes };
    let mut offer = offer(message.row(), MailboxKind::Agent, message.payload());
    offer.refused = over_rate(shared, to, &message.from.name, Instant::now());
    one(shared, to, offer).await
}

async fn one(shared: &Shared, to: &PodName, offer: Offer) -> Result<Option<String>, StoreError> {
    let outcomes = deliver(shared, to, vec![offer]).await?;
    Ok(outcomes.first().and_then(|outcome| refusal(shared, to, outcome)))
}

/// The limit of a body in KiB, if `bytes` is above it.
pub(crate) fn over_size(shared: &Shared, bytes: usize) -> Option<u32> {
    let limit = shared.settings.last().settings.mesh.message_kib.get();
    (bytes > limit as usize * 1024).then_some(limit)
}

/// The sentence that refuses a message of an agent that the person blocked.
pub(crate) fn blocked(shared: &Shared, to: &PodName, from: &str) -> Option<String> {
    let is_blocked = shared.mesh.is_blocked(from);
    is_blocked.then(|| format!("the person of pod `{to}` has blocked `{from}`"))
}

/// Counts that an agent joined or left, and returns whether it does so too often. Messages of the agent are counted
/// apart.
pub(crate) fn presence_is_over_rate(shared: &Shared, to: &PodName, agent: &str) -> bool {
    let per_minute = shared.settings.last().settings.mesh.per_minute.get();
    // No Pod has a name with a space.
    let to = format!("{} presence", to.key());
    !shared.mesh.rates().count(&to, agent, per_minute, Instant::now())
}

/// Counts that a message of an agent was denied, and returns whether that was said a moment ago.
pub(crate) fn denials_are_over_rate(shared: &Shared, to: &PodName, agent: &str) -> bool {
    // No Pod has a name with a space.
    let to = format!("{} denials", to.key());
    !shared.mesh.rates().count(&to, agent, 1, Instant::now())
}

/// Why a message of an agent outside this host is not taken, whatever room there is: the agent is blocked, the body of
/// `bytes` is too large, or the agent sends too many. It was sent at `at`.
pub(crate) fn refused(
    shared: &Shared,
    to: &PodName,
    from: &str,
    bytes: usize,
    at: Instant,
) -> Option<String> {
    let too_large = || {
        let limit = over_size(shared, bytes)?;
        Some(format!("the body of a message to pod `{to}` has at most {limit} KiB"))
    };
    blocked(shared, to, from).or_else(too_large).or_else(|| over_rate(shared, to, from, at))
}

/// Counts a message that was sent at `at`; the sentence that refuses it, if its sender sends too many.
pub(crate) fn over_rate(shared: &Shared, to: &PodName, from: &str, at: Instant) -> Option<String> {
    let per_minute = shared.settings.last().settings.mesh.per_minute.get();
    let may = shared.mesh.rates().count(&to.key(), from, per_minute, at);
    (!may).then(|| format!("pod `{to}` takes {per_minute} messages of one agent in a minute"))
}

/// As [`over_rate`], of a message from or to an agent that is no Pod.
pub(crate) fn agent_over_rate(
    shared: &Shared,
    to: &str,
    from: &str,
    at: Instant,
) -> Option<String> {
    let per_minute = shared.settings.last().settings.mesh.per_minute.get();
    // No Pod has a name with a space.
    let may = shared.mesh.rates().count(&format!("{to} agent"), from, per_minute, at);
    (!may).then(|| {
        format!("at most {per_minute} messages of one agent to {to} are passed on in a minute")
    })
}

/// Takes back that a message was counted: it comes again, or came before.
pub(crate) fn not_sent(shared: &Shared, to: &PodName, from: &str) {
    shared.mesh.rates().give_back(&to.key(), from);
}
