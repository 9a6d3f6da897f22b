//! Child events for the parent: each fact once. The fact stands in the child's log or row, and the
//! parent's mailbox message carries its id. So an event that a crash kept from being sent is sent
//! at the next start, and one that was sent is not sent again.

use crate::host::pod::tail::Interrupted;
use crate::host::{Shared, output, pod};
use crate::protocol::{
    ApprovalRequest, Entry, EntryId, Fact, LastRun, NotificationSource, PodEvent, PodName, Refusal,
    SegmentId, SessionId, State, SystemItem, now_ms,
};
use crate::run::Notification;
use crate::session::{self, Files, Jump, JumpKind, LostOfChildren};
use crate::store::{MailboxKind, MailboxMessage, PodRow, Wanted};
use crate::trace::OrLog as _;

/// How far back the end of a run is looked for, in bytes. The parent of a run that ended further
/// back was notified long ago.
const FAR: u64 = 1024 * 1024;

/// Notifies the parent of a run that finished or failed. A person paused, cancelled or rolled back
/// every other one, and the parent is not notified of that.
pub(crate) async fn run_ended(shared: &Shared, child: &PodRow, parent: &PodName, end: &Entry) {
    if let Some(message) = of_run(shared, child, end).await {
        deliver(shared, parent, message).await;
    }
}

/// Notifies the parent that its child waits for a person.
pub(crate) async fn approval_requested(
    shared: &Shared,
    parent: &PodName,
    approval: &ApprovalRequest,
) {
    deliver(shared, parent, of_approval(approval)).await;
}

/// The same at the start of a host, for a request of which the last host did not notify the parent
/// any more. The parent is not woken.
pub(crate) async fn approval_waits(shared: &Shared, parent: &PodName, approval: &ApprovalRequest) {
    put(shared, parent, of_approval(approval)).await;
}

/// Notifies the parent at the start of a host that the end of the last one interrupted the run of its child. The parent is
/// not woken.
pub(crate) async fn run_was_cut(
    shared: &Shared,
    child: &PodRow,
    parent: &PodName,
    interrupted: &Interrupted,
) {
    let message = format!("pod `{}` waits for a person: {}", child.name, interrupted.sentence());
    put(shared, parent, about(&child.name, cut_id(child, interrupted.at), message)).await;
}

/// Notifies the parent of what a person did with that run, unless it has not read that the run was interrupted: then it
/// never will. The parent is not woken.
pub(crate) async fn cut_is_over(
    shared: &Shared,
    child: &PodRow,
    parent: &PodName,
    at: u64,
    what: &str,
) {
    let id = cut_id(child, at);
    let handle = shared.pod(parent).filter(|parent| parent.info.borrow().state == State::Running);
    if handle.is_none() {
        let withdrawn = shared.store.withdraw_message(parent, &id).await;
        withdrawn.as_ref().map(drop).or_log("withdraw a mailbox message");
        if withdrawn.unwrap_or_default() {
            return;
        }
    }
    let message = about(&child.name, format!("{id}:over"), format!("pod `{}` {what}", child.name));
    put(shared, parent, message.clone()).await;
    if let Some(handle) = handle {
        handle.post(pod::Fact::ChildEvent(message)).await;
    }
}

/// Notifies a Pod of its children after a rewind, or the undo of one, which is the entry `jump`. For each child that was
/// spawned in the dropped part and lives, the mailbox gets a sentence. For each other child, it gets again what the
/// dropped part said of it, but not that a child was stopped which lives. An undo withdraws the unread messages of its rewind. The Pod is not woken, and a second call
/// changes nothing.
pub(crate) async fn jumped(
    shared: &Shared,
    parent: &PodName,
    files: &Files,
    segment: SegmentId,
    jump: EntryId,
) -> Result<(), Refusal> {
    let files = files.clone();
    let is_of = |row: &str, jump| row.starts_with(&lost_id(jump, ""));
    let lost =
        move || session::lost_of_children(&files, segment, jump, is_of).map_err(Refusal::from);
    let LostOfChildren { spawned, dropped, returned } = tokio::task::spawn_blocking(lost).await??;
    if let Some(returned) = returned {
        let withdrawn = shared.store.withdraw_messages(parent, lost_id(returned, "")).await;
        withdrawn.or_log("withdraw mailbox messages");
    }
    for (child, items) in dropped {
        let row = record(shared, &child).await;
        if row.as_ref().is_some_and(|row| row.parent.as_ref() != Some(parent)) {
            // A fork has the history of its source and none of its children.
            continue;
        }
        let lives = row.is_some_and(|row| row.wanted == Wanted::Live);
        let newest = items.len();
        for (n, item) in (1..).zip(items) {
            let id = lost_id(jump, &child);
            // The id of the newest one is that of earlier versions, which stored only that one.
            let id = if n == newest { id } else { format!("{id}:{n}") };
            let Some(message) = again(id, &item) else { continue };
            if !(is_stop(&item) && lives) {
                put(shared, parent, message).await;
            }
        }
    }
    for child in spawned {
        let row = record(shared, child.as_str()).await;
        let lives = |row: PodRow| row.wanted == Wanted::Live && row.parent.as_ref() == Some(parent);
        if !row.is_some_and(lives) {
            continue;
        }
        let text = format!(
            "pod `{child}` is your child and goes on: it was spawned in a part of this conversation that was taken back"
        );
        put(shared, parent, about(&child, lost_id(jump, child.as_str()), text)).await;
    }
    Ok(())
}

/// What the store has of a Pod, if that can be read. It knows whether the Pod is live; at the start of a host its actor is
/// not live yet.
async fn record(shared: &Shared, pod: &str) -> Option<PodRow> {
    let pod = PodName::parse(pod).ok()?;
    shared.store.pod(&pod).await.ok().flatten()
}

fn is_stop(item: &SystemItem) -> bool {
    matches!(item, SystemItem::PodEvent { event: PodEvent::ShutDown { .. }, .. })
}

/// The row of what a jump dropped about a child.
fn lost_id(jump: EntryId, child: &str) -> String {
    format!("dropped:{jump}:{child}")
}

/// The message from which an entry was made.
fn again(id: String, item: &SystemItem) -> Option<MailboxMessage> {
    match item {
        SystemItem::PodEvent { event, .. } => Some(message(id, event)),
        SystemItem::Notification { message, from, .. } => {
            let (message, from) = (message.clone(), from.clone());
            Some(notification(id, &Notification { message, from }))
        }
        _ => None,
    }
}

fn cut_id(child: &PodRow, at: u64) -> String {
    format!("cut:{}:{at}", child.session)
}

/// Stores the child events and the ends of runs that the last host did not store any more. No Pod
/// is woken: a start runs nothing.
pub(crate) async fn catch_up(shared: &Shared, rows: &mut [PodRow]) {
    for row in rows.iter_mut() {
        let Some(parent) = row.parent.clone() else { continue };
        if let Some(end) = last_end(shared, row).await {
            note(shared, row, &end).await;
            if let Some(message) = of_run(shared, row, &end).await {
                put(shared, &parent, message).await;
            }
        }
        if row.wanted == Wanted::Stopped {
            put(shared, &parent, of_stop(&row.name, row.session, row.since)).await;
        }
    }
}

/// Stores a child event. One that cannot be stored now is found again at the next start.
async fn put(shared: &Shared, parent: &PodName, message: MailboxMessage) {
    shared.store.add_message(parent, message).await.or_log("store a mailbox message");
}

/// Stores how a run ended, if the last host did not.
async fn note(shared: &Shared, row: &mut PodRow, end: &Entry) {
    let known = row.last_run.as_ref().map(|run| run.entry);
    let Some(last) = LastRun::of(end).filter(|last| known != Some(last.entry)) else { return };
    // Only shown; the log says it, too.
    shared.store.set_last_run(&row.name, &last).await.or_log("store how the last run ended");
    row.last_run = Some(last);
}

/// Stores a child event and puts it into the queue of the parent, which takes it up according to its state. The actor of
/// the child does not wait for that: a parent that is late must not stop its children.
async fn deliver(shared: &Shared, parent: &PodName, message: MailboxMessage) {
    // The fact stays where it came from: the next start finds an event that could not be stored.
    let Ok(true) = shared.store.add_message(parent, message.clone()).await else { return };
    crate::crash_point!("upward-stored");
    if let Some(handle) = shared.pod(parent) {
        handle.post(pod::Fact::ChildEvent(message)).await;
    }
}

async fn of_run(shared: &Shared, child: &PodRow, end: &Entry) -> Option<MailboxMessage> {
    let pod_name = child.name.to_string();
    let event = match &end.fact {
        Fact::RunCompleted { interrupted: false, .. } => {
            let files = Files::new(&shared.dirs.data, child.session);
            let result = match child.segment.zip(end.id) {
                Some((segment, end)) => output::result_of(files, segment, end).await,
                None => None,
            };
            PodEvent::TurnEnded { pod_name, result }
        }
        Fact::RunErrored { interrupted: false, message, .. } => {
            PodEvent::Errored { pod_name, message: message.clone() }
        }
        _ => return None,
    };
    Some(message(end.id?.to_string(), &event))
}

fn of_approval(approval: &ApprovalRequest) -> MailboxMessage {
    let message = format!("pod `{}` waits for a person: {}", approval.pod, approval.line());
    about(&approval.pod, approval.id.clone(), message)
}

/// What the host says of a child in a sentence.
fn about(child: &PodName, id: String, message: String) -> MailboxMessage {
    let from = Some(NotificationSource::WaitingChild(child.clone()));
    notification(id, &Notification { message, from })
}

fn notification(id: String, notification: &Notification) -> MailboxMessage {
    let payload = notification.payload();
    MailboxMessage { id, kind: MailboxKind::Notify, payload, created: now_ms() }
}

/// The child event of a stop. Its time tells it from every other stop of the same Pod.
pub(crate) fn of_stop(pod: &PodName, session: SessionId, since: u64) -> MailboxMessage {
    let event = PodEvent::ShutDown { pod_name: pod.to_string() };
    message(format!("stopped:{session}:{since}"), &event)
}

fn message(id: String, event: &PodEvent) -> MailboxMessage {
    // Names and texts always encode.
    let payload = serde_json::to_value(event).unwrap_or_default();
    MailboxMessage { id, kind: MailboxKind::PodEvent, payload, created: now_ms() }
}

/// The end of a Pod's last run, as its log has it; `None` when it is under way or never ran.
async fn last_end(shared: &Shared, row: &PodRow) -> Option<Entry> {
    let segment = row.segment?;
    let files = Files::new(&shared.dirs.data, row.session);
    let read = move || {
        for recent in session::backwards(&files, segment, None).within(FAR) {
            let entry = recent.ok()?.entry;
            match &entry.fact {
                Fact::RunCompleted { .. } | Fact::RunErrored { .. } => return Some(entry),
                Fact::Invoke { .. } => return None,
                // A person was there since: the parent was told of every run before.
                fact if Jump::of(fact).is_some_and(|jump| jump.kind != JumpKind::RolledBack) => {
                    return None;
                }
                _ => {}
            }
        }
        None
    };
    tokio::task::spawn_blocking(read).await.ok().flatten()
}
