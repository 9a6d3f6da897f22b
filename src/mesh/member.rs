//! A member of the mesh. It is a task that holds one connection to the leader, which may be this process, and
//! joins again by itself when the leader is gone. Others hold the handle.

mod connecting;
mod receiving;
mod resending;
mod seen;
mod serving;
mod session;

pub use connecting::{JoinError, roster};

use crate::mesh::envelope::{Fate, MAX_FRAME, To};
use crate::mesh::id::Id;
use crate::mesh::machines::address;
use crate::mesh::name::{GATEWAY, is_broker};
use crate::mesh::{Socket, envelope};
use crate::text::SafeText;
use serde_json::value::RawValue;
use serving::Actor;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long an acknowledgement is waited for; after it the message may have arrived or not.
pub(crate) const ACK_WAIT: Duration = Duration::from_secs(5);
/// How long the list of members is waited for.
const LIST_WAIT: Duration = Duration::from_secs(2);
/// Sends that wait for the member's task. At this number further callers wait.
const COMMANDS: usize = 64;
/// Messages that wait to be received. When there are as many, the member reads no further ones, and the leader's
/// bounded queue for this member fills.
pub(crate) const INBOX: usize = 1024;

/// The reason why a message to a name that no agent has is not delivered.
pub(crate) const NO_AGENT: &str = "no agent of this name is here";
/// The same where the name is one of another machine.
const AWAY: &str = "it is not listed now, so it is not known whether it gets the message";
/// Addressees that are not there that a sentence names.
const NAMED: usize = 8;

/// How a process joins.
#[derive(Clone, Debug)]
pub struct Options {
    pub socket: Socket,
    /// The name asked for. A number is added where it is taken; after a leader is gone this name is asked for again.
    pub name: String,
    /// Whether this process leads where no other does; otherwise it only follows.
    pub leads: bool,
    /// Whether this process confirms the messages that it keeps, see [`Inbox::confirm`]. Without it a message counts as
    /// received when the kernel has it for this process.
    pub confirms: bool,
}

impl Options {
    /// The gateway to other machines: it is no member, and takes what is addressed to agents of other machines.
    pub(crate) fn gateway(socket: Socket) -> Self {
        Self { socket, name: GATEWAY.to_owned(), leads: false, confirms: true }
    }
}

/// What a member is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The name that the leader assigned.
    pub name: String,
    /// Whether this process leads.
    pub leading: bool,
    /// Whether the leader is yoi. A leader of another program says less: a message that it cannot deliver is a
    /// timeout.
    pub led_by_yoi: bool,
}

impl Standing {
    /// Whether the sender of a message learns that this member did not take it: only a leader of yoi waits for the
    /// member before it acknowledges, and only a message to one member.
    pub fn tells_sender(&self, message: &Message) -> bool {
        self.led_by_yoi && matches!(message.to, To::One(_))
    }

    /// The sentence that this member did not take a message, with why, and with whether its sender knows.
    pub fn not_taken(&self, message: &Message, why: &str) -> String {
        let from = SafeText::quoted(&message.from);
        let knows = if self.tells_sender(message) { "knows" } else { "does not know" };
        format!("a message of the agent {from} was not taken, which that agent {knows}: {why}")
    }
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The leader handed it to its addressee.
    Received,
    /// A server holds it for the machine of its addressee.
    Queued,
    /// It was not delivered.
    Denied,
    /// Nothing is known: it may have arrived.
    Timeout,
    /// It went to several members, which are not waited for.
    Sent,
    /// It was not sent.
    Refused,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Queued => "queued",
            Self::Denied => "denied",
            Self::Timeout => "timeout",
            Self::Sent => "sent",
            Self::Refused => "refused",
        }
    }
}

/// The outcome of a send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The id of the message: an answer names it as `re`.
    pub id: Id,
    pub status: Status,
    /// Why it was not delivered, as a sentence.
    pub reason: Option<String>,
}

/// Another member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub name: String,
    /// Whether it is a member of yoi that says when it has kept a message. A leader of another program does not
    /// know that.
    pub confirms: bool,
}

/// Why the members could not be listed.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error("the mesh leader did not answer within {LIST_WAIT:?}")]
    NoAnswer,
}

/// A message to this member.
#[derive(Clone, Debug)]
pub struct Message {
    /// The name of the sender, as the leader knows it.
    pub from: String,
    pub to: To,
    pub id: Id,
    /// The id of the message that this one answers.
    pub re: Option<Id>,
    /// The body as its sender wrote it.
    pub body: Box<RawValue>,
}

/// What a member receives.
#[derive(Clone, Debug)]
pub enum Received {
    Message(Message),
    PeerJoined(String),
    PeerLeft(String),
    /// The member joined again; its name may have changed, and the roster began anew.
    Rejoined(Standing),
}

/// Where a member's messages arrive, in order. A process that drops it wants none.
#[derive(Debug)]
pub struct Inbox {
    received: mpsc::Receiver<Received>,
    commands: mpsc::Sender<Command>,
}

impl Inbox {
    /// The next message; `None`: the member left. Cancel-safe.
    pub async fn next(&mut self) -> Option<Received> {
        self.received.recv().await
    }

    /// The next message, if one has arrived.
    pub fn try_next(&mut self) -> Option<Received> {
        self.received.try_recv().ok()
    }

    /// Says that a message is kept. Of a member that [confirms](Options::confirms), a leader of yoi acknowledges a
    /// message to it alone at this moment.
    pub async fn confirm(&self, message: &Message) {
        self.report(message, Fate::Kept).await;
    }

    /// Says that a message is not kept, and why, as a sentence. Its sender learns it as of [`Inbox::confirm`].
    pub async fn deny(&self, message: &Message, reason: String) {
        self.report(message, Fate::Denied(reason)).await;
    }

    /// Says that a server holds a message for the machine of its addressee, and why, as a sentence.
    pub async fn queue(&self, message: &Message, reason: String) {
        self.report(message, Fate::Queued(reason)).await;
    }

    /// Says that a message may have arrived or not, and why, as a sentence.
    pub async fn leave_unknown(&self, message: &Message, reason: String) {
        self.report(message, Fate::Unknown(reason)).await;
    }

    async fn report(&self, message: &Message, fate: Fate) {
        if let To::One(to) = &message.to {
            let (from, to) = (message.from.clone(), to.clone());
            let confirm = Command::Confirm { from, to, id: message.id, fate };
            // A member that has left has no leader to tell.
            let _ = self.commands.send(confirm).await;
        }
    }
}

/// A member of the mesh. Dropping it leaves.
#[derive(Debug)]
pub struct Member {
    commands: mpsc::Sender<Command>,
    standing: watch::Receiver<Standing>,
    leaving: CancellationToken,
    task: Option<JoinHandle<()>>,
}

/// What the handle asks of the task.
enum Command {
    Send {
        /// An agent of another machine; `None`: this member.
        from: Option<String>,
        id: Id,
        to: To,
        re: Option<Id>,
        body: String,
        done: oneshot::Sender<Sent>,
    },
    List(oneshot::Sender<Vec<Peer>>),
    /// The agents of other machines, of the gateway.
    Elsewhere(Vec<String>),
    /// What became of a message.
    Confirm {
        from: String,
        to: String,
        id: Id,
        fate: Fate,
    },
}

/// Joins the mesh: returns when the leader has assigned a name.
pub async fn join(options: Options) -> Result<(Member, Inbox), JoinError> {
    let seated = connecting::connect(&options, None).await?;
    let (commands, requests) = mpsc::channel(COMMANDS);
    let (arrived, inbox) = mpsc::channel(INBOX);
    let (standing, current) = watch::channel(seated.session.standing(seated.leadership.is_some()));
    let leaving = CancellationToken::new();
    let actor = Actor::new(options, requests, arrived, standing, leaving.clone());
    let task = tokio::spawn(actor.run(seated));
    let inbox = Inbox { received: inbox, commands: commands.clone() };
    let member = Member { commands, standing: current, leaving, task: Some(task) };
    Ok((member, inbox))
}

impl Member {
    pub fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// Sends a message and waits for what becomes of it, 5 s at most.
    pub async fn send(&self, to: To, body: &RawValue, re: Option<Id>) -> Sent {
        self.send_as(Id::new(), to, body, re).await
    }

    /// The same with an id of the caller, which no other message has.
    pub async fn send_as(&self, id: Id, to: To, body: &RawValue, re: Option<Id>) -> Sent {
        self.pass_on(None, id, to, body, re).await
    }

    /// The same of the gateway, in the name of an agent of another machine.
    pub(crate) async fn pass_on(
        &self,
        from: Option<String>,
        id: Id,
        to: To,
        body: &RawValue,
        re: Option<Id>,
    ) -> Sent {
        if let Some(reason) = self.refusal(&to, body) {
            return Sent { id, status: Status::Refused, reason: Some(reason) };
        }
        let (done, outcome) = oneshot::channel();
        let names = if let To::Many(names) = &to { names.clone() } else { Vec::new() };
        let command = Command::Send { from, id, to, re, body: body.get().to_owned(), done };
        let waiting = async {
            self.commands.send(command).await.ok()?;
            outcome.await.ok()
        };
        let sent = tokio::time::timeout(ACK_WAIT, waiting).await.ok().flatten();
        if let Some(sent) = sent {
            let reason = if names.is_empty() { None } else { self.absent(names).await };
            return Sent { reason: reason.or(sent.reason), ..sent };
        }
        Sent {
            id,
            status: Status::Timeout,
            reason: Some(format!("no acknowledgement came within {ACK_WAIT:?}")),
        }
    }

    /// Which of these agents are not there, as a sentence: a message to several of them is not acknowledged. `None`: all
    /// are, or the leader did not say.
    async fn absent(&self, mut names: Vec<String>) -> Option<String> {
        let peers = self.peers().await.ok()?;
        let own = self.standing().name;
        let mut known = std::collections::BTreeSet::from([own]);
        known.extend(peers);
        // A name that is there twice is named once.
        names.retain(|name| known.insert(name.clone()));
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        let why = |name: &String| match address(name) {
            Some(_) => AWAY,
            None => NO_AGENT,
        };
        let mut absent: Vec<String> =
            names.iter().map(|name| format!("{}: {}", SafeText::line(name), why(name))).collect();
        if more > 0 {
            absent.push(format!("{more} more are not listed either"));
        }
        (!absent.is_empty()).then(|| absent.join("; "))
    }

    /// Why a message cannot be sent, as a sentence.
    fn refusal(&self, to: &To, body: &RawValue) -> Option<String> {
        let names: &[String] = match to {
            To::One(name) => std::slice::from_ref(name),
            To::Many(names) => names,
            To::Broadcast => &[],
        };
        let size = body.get().len() + names.iter().map(|name| name.len() * 6 + 3).sum::<usize>();
        if size > MAX_FRAME - envelope::AROUND {
            return Some(format!("a message has at most {MAX_FRAME} bytes"));
        }
        match to {
            To::One(name) if is_broker(name) => {
                Some("the leader of a mesh takes no messages of agents".to_owned())
            }
            To::One(name) if *name == self.standing.borrow().name => {
                Some("a message to oneself is not sent".to_owned())
            }
            To::Many(names) if names.is_empty() || names.len() > envelope::MAX_ADDRESSEES => {
                Some(format!("a message has 1 to {} addressees", envelope::MAX_ADDRESSEES))
            }
            _ if names.iter().any(String::is_empty) => Some("an addressee has no name".to_owned()),
            _ => None,
        }
    }

    /// Tells the leader which agents of other machines the gateway reaches.
    pub(crate) async fn reaches(&self, agents: Vec<String>) {
        // A gateway that has left reaches none.
        let _ = self.commands.send(Command::Elsewhere(agents)).await;
    }

    /// The names of the other members.
    pub async fn peers(&self) -> Result<Vec<String>, SendError> {
        Ok(self.peers_in_detail().await?.into_iter().map(|peer| peer.name).collect())
    }

    /// The other members.
    pub async fn peers_in_detail(&self) -> Result<Vec<Peer>, SendError> {
        let (done, listed) = oneshot::channel();
        let waiting = async {
            self.commands.send(Command::List(done)).await.ok()?;
            listed.await.ok()
        };
        let listed = tokio::time::timeout(LIST_WAIT, waiting).await.ok().flatten();
        let mut peers = listed.ok_or(SendError::NoAnswer)?;
        let own = self.standing().name;
        peers.retain(|peer| peer.name != own);
        Ok(peers)
    }

    /// What this member is, as it changes.
    pub fn standings(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }

    /// Begins to leave: the inbox ends when this member has left.
    pub fn begin_to_leave(&self) {
        self.leaving.cancel();
    }

    /// Leaves the mesh: the name is free, and where this process led, another one may.
    pub async fn leave(mut self) {
        self.leaving.cancel();
        if let Some(task) = self.task.take() {
            // A task that panicked has left too.
            let _ = task.await;
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.leaving.cancel();
    }
}
