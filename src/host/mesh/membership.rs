//! One Pod as a member of the mesh: a task that joins under the name of the Pod, commits what comes to its mailbox
//! and confirms it, and leaves when the Pod stops. It joins again by itself.

use crate::backoff::Backoff;
use crate::config::settings::Wake;
use crate::host::Shared;
use crate::host::mesh::roster::{self, Change};
use crate::host::mesh::{Seat, delivery};
use crate::host::pod::Fact;
use crate::mesh::machines;
use crate::mesh::{Inbox, Member, Message, Options, Received, Socket, Standing, To};
use crate::protocol::mesh::MeshStanding;
use crate::protocol::{AgentOrigin, NotificationSource, PodName};
use crate::run::{AgentMessage, Notification};
use crate::store::{MailboxKind, Offer, StoreError};
use crate::text::SafeText;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Messages that are committed together.
const BATCH: usize = 64;
/// Between two tries to join, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The membership of a Pod. Dropping it leaves.
pub(crate) struct Membership(CancellationToken);

impl Drop for Membership {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Has a live Pod join; its actor learns of the standing.
pub(crate) fn start(shared: &Shared, pod: PodName) -> Membership {
    let leaving = CancellationToken::new();
    let task = Task { shared: shared.clone(), pod, leaving: leaving.clone() };
    shared.mesh.members.spawn(task.run());
    Membership(leaving)
}

/// Whether a Pod takes part: a person said so, or else the settings do. `is_own`: a person made the Pod, to stay.
pub(crate) async fn is_wanted(
    shared: &Shared,
    pod: &PodName,
    is_own: bool,
) -> Result<bool, StoreError> {
    let choice = shared.store.mesh_choice(pod).await?;
    let settings = shared.settings.last().settings;
    Ok(choice.unwrap_or_else(|| settings.mesh.joins(pod, is_own)))
}

/// Joins the mesh of this machine.
///
/// # Errors
/// Why that cannot be, as a sentence.
pub(crate) async fn join(
    shared: &Shared,
    options: impl FnOnce(Socket) -> Options,
) -> Result<(Member, Inbox), String> {
    let settings = shared.settings.last().settings;
    let admits = |pid| !crate::sandbox::is_ours(pid);
    let socket = Socket::find(&settings.mesh, &shared.dirs, &shared.env, admits);
    let socket = socket.map_err(|error| error.to_string())?;
    crate::mesh::join(options(socket)).await.map_err(|error| error.to_string())
}

/// Takes part as a Pod that begins to leave as it joins.
#[cfg(test)]
pub(crate) async fn leave_at_once(shared: &Shared, pod: PodName, member: Member, inbox: Inbox) {
    let leaving = CancellationToken::new();
    leaving.cancel();
    Task { shared: shared.clone(), pod, leaving }.take_part(Arc::new(member), inbox).await;
}

struct Task {
    shared: Shared,
    pod: PodName,
    leaving: CancellationToken,
}

impl Task {
    async fn run(self) {
        if !self.host_lasts().await {
            return;
        }
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let name = self.pod.to_string();
            let options = |socket| Options { socket, name, leads: true, confirms: true };
            let joined = tokio::select! {
                biased;
                () = self.leaving.cancelled() => return,
                joined = join(&self.shared, options) => joined,
            };
            match joined {
                Ok((member, inbox)) => {
                    backoff.reset();
                    self.take_part(Arc::new(member), inbox).await;
                    self.show_why("the mesh was lost and is joined again in a moment".to_owned())
                        .await;
                }
                Err(why) => {
                    tracing::debug!(pod = %self.pod, "the mesh cannot be joined: {why}");
                    self.show_why(why).await;
                }
            }
            tokio::select! {
                () = self.leaving.cancelled() => return,
                () = sleep(backoff.pause()) => {}
            }
        }
    }

    /// Resolves when the host does not end with its last client; false if the Pod leaves before.
    async fn host_lasts(&self) -> bool {
        let mut connections = self.shared.connections.subscribe();
        if !connections.borrow().is_lasting {
            self.show_why(
                "the host ends with its last command; with a dashboard it joins".to_owned(),
            )
            .await;
        }
        tokio::select! {
            () = self.leaving.cancelled() => false,
            lasts = connections.wait_for(|connections| connections.is_lasting) => lasts.is_ok(),
        }
    }

    /// Takes messages until the Pod leaves.
    async fn take_part(&self, member: Arc<Member>, mut inbox: Inbox) {
        self.note_joined(&member, member.standing()).await;
        self.roster_changed(Change::Member);
        loop {
            let first = tokio::select! {
                biased;
                () = self.leaving.cancelled() => break,
                received = inbox.next() => received,
            };
            let Some(first) = first else { break };
            let more = std::iter::from_fn(|| inbox.try_next());
            let batch: Vec<Received> = std::iter::once(first).chain(more.take(BATCH - 1)).collect();
            self.take(&member, &inbox, batch).await;
        }
        self.shared.mesh.note_left(&self.pod, &member);
        self.roster_changed(Change::Member);
        member.begin_to_leave();
        // Ends when the member has left. Messages that come meanwhile are denied.
        while let Some(received) = inbox.next().await {
            if let Received::Message(message) = received {
                let reason = format!("pod `{}` takes no part in the mesh any more", self.pod);
                self.deny(&member, &inbox, &message, reason).await;
            }
        }
    }

    async fn take(&self, member: &Arc<Member>, inbox: &Inbox, batch: Vec<Received>) {
        let mut messages = Vec::new();
        for received in batch {
            match received {
                Received::Message(message) => messages.push(message),
                Received::Rejoined(standing) => {
                    self.note_joined(member, standing).await;
                    self.roster_changed(Change::Leader);
                }
                Received::PeerJoined(name) => {
                    self.roster_changed(Change::Member);
                    self.presence(&name, Wake::Joins, "joined").await;
                }
                Received::PeerLeft(name) => {
                    self.roster_changed(Change::Member);
                    self.presence(&name, Wake::Leaves, "left").await;
                }
            }
        }
        if !messages.is_empty() {
            self.keep(member, inbox, messages).await;
        }
    }

    /// Commits messages, and tells each sender whether its message is kept.
    async fn keep(&self, member: &Member, inbox: &Inbox, messages: Vec<Message>) {
        let (mut kept, mut offers) = (Vec::new(), Vec::new());
        for message in messages {
            if self.shared.mesh.pod_named(&message.from).is_some() {
                // Pods of one host reach each other inside of it, as far as they may.
                inbox.deny(&message, "Pods of one host use no mesh among themselves".into()).await;
                continue;
            }
            offers.push(self.offer(&message));
            kept.push(message);
        }
        if offers.is_empty() {
            return;
        }
        let outcomes = delivery::deliver(&self.shared, &self.pod, offers).await;
        let outcomes = match outcomes {
            Ok(outcomes) => outcomes,
            Err(error) => {
                tracing::warn!(pod = %self.pod, "messages of agents cannot be stored: {error}");
                for message in &kept {
                    let reason = "the mailbox cannot be written now".to_owned();
                    self.deny(member, inbox, message, reason).await;
                }
                return;
            }
        };
        for (message, outcome) in kept.iter().zip(&outcomes) {
            match delivery::refusal(&self.shared, &self.pod, outcome) {
                None => inbox.confirm(message).await,
                Some(reason) => self.deny(member, inbox, message, reason).await,
            }
        }
    }

    /// Denies a message. The leader of another program does not pass that on: it has said `received` already. So the Pod
    /// is told, at most once in a minute of each agent.
    async fn deny(&self, member: &Member, inbox: &Inbox, message: &Message, reason: String) {
        let standing = member.standing();
        if !standing.led_by_yoi
            && !delivery::denials_are_over_rate(&self.shared, &self.pod, &message.from)
        {
            let text = standing.not_taken(message, &reason);
            if let Some(handle) = self.shared.pod(&self.pod) {
                // A blocked agent reaches the model with nothing.
                let fact = match self.shared.mesh.is_blocked(&message.from) {
                    true => Fact::Notice(text),
                    false => Fact::AgentRefused(text),
                };
                handle.post(fact).await;
            }
        }
        inbox.deny(message, reason).await;
    }

    fn offer(&self, message: &Message) -> Offer {
        let origin = AgentOrigin {
            name: message.from.clone(),
            id: message.id.to_string(),
            re: message.re.map(|re| re.to_string()),
            pod: false,
        };
        let wake = match message.to {
            To::One(_) | To::Many(_) => Wake::Strangers,
            To::Broadcast => Wake::Broadcasts,
        };
        let body = message.body.get().to_owned();
        let agents = AgentMessage { from: origin, body, wakes: self.wakes(wake) };
        let mut offer = delivery::offer(agents.row(), MailboxKind::Agent, agents.payload());
        offer.refused = self.refused(message);
        if offer.refused.is_some() {
            // Not stored, so it need not be held.
            offer.message.payload = serde_json::Value::Null;
        }
        offer
    }

    /// Why a message is not taken, whatever room there is.
    fn refused(&self, message: &Message) -> Option<String> {
        let (shared, from) = (&self.shared, &message.from);
        let is_of_machine = machines::address(from).is_some();
        if is_of_machine && shared.mesh.machines.own().is_some() {
            return Some(format!(
                "{} looks like an agent of another machine, and is one of this machine's",
                SafeText::quoted(from)
            ));
        }
        delivery::refused(shared, &self.pod, from, message.body.get().len(), Instant::now())
    }

    fn roster_changed(&self, change: Change) {
        roster::changed(&self.shared, change);
    }

    fn wakes(&self, wake: Wake) -> bool {
        self.shared.settings.last().settings.mesh.wake.contains(&wake)
    }

    /// Tells the Pod that an agent joined or left, if the settings say that this wakes it.
    async fn presence(&self, name: &str, wake: Wake, word: &str) {
        let own = self.shared.mesh.pod_named(name).is_some();
        if own || !self.wakes(wake) || self.shared.mesh.is_blocked(name) {
            return;
        }
        if delivery::presence_is_over_rate(&self.shared, &self.pod, name) {
            return;
        }
        let name = SafeText::quoted(name);
        let message = format!("[agent-network] the agent {name} {word}");
        let payload = Notification { message, from: None::<NotificationSource> }.payload();
        let id = uuid::Uuid::now_v7().to_string();
        let offer = delivery::offer(id, MailboxKind::Notify, payload);
        let outcome = delivery::deliver(&self.shared, &self.pod, vec![offer]).await;
        if let Err(error) = outcome {
            tracing::warn!(pod = %self.pod, "a notification cannot be stored: {error}");
        }
    }

    /// Notes and shows the name under which the Pod takes part, unless the Pod leaves.
    async fn note_joined(&self, member: &Arc<Member>, standing: Standing) {
        let shown = MeshStanding {
            name: Some(standing.name.clone()),
            leads: standing.leading,
            led_by_yoi: standing.led_by_yoi,
            why: None,
        };
        let seat = Seat { pod: self.pod.clone(), member: member.clone(), standing };
        if self.shared.mesh.note_joined(seat, &self.leaving) {
            self.show(shown).await;
        }
    }

    async fn show_why(&self, why: String) {
        if !self.leaving.is_cancelled() {
            self.show(MeshStanding { why: Some(why), ..MeshStanding::default() }).await;
        }
    }

    async fn show(&self, standing: MeshStanding) {
        if let Some(handle) = self.shared.any_pod(&self.pod) {
            handle.post(Fact::Mesh(standing)).await;
        }
    }
}
