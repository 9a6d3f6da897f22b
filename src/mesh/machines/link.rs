//! A connection to the server. It ends when it is lost: whoever holds it connects again, so each attempt can say why it
//! failed.

use crate::mesh::Id;
use crate::mesh::machines::credentials::Credentials;
use crate::mesh::machines::name::MachineName;
use crate::mesh::machines::subject::{self, Kind};
use crate::mesh::machines::wire::{Message, Outcome, Presence, json};
use async_nats::{
    Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, Request, RequestErrorKind,
    Subject, Subscriber,
};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use serde::Deserialize;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long one address of the server may take, and all of them together.
const CONNECT: Duration = Duration::from_secs(5);
const CONNECT_ALL: Duration = Duration::from_secs(12);
/// A server that is silent for three times as long is gone.
const PING: Duration = Duration::from_secs(15);
/// How long the server may take to say that it holds a message.
const STORED: Duration = Duration::from_secs(5);
/// How long a message is sent again that no stream takes, and the pause between two attempts.
const RELOADED: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(200);
/// How long the last words of a connection may take.
const LAST: Duration = Duration::from_millis(500);
/// What arrived and waits to be read, in messages of each subscription. More are dropped: those of the stream come
/// again, and who is present is said again.
const WAITING: usize = 2 * subject::IN_FLIGHT;

/// Why this machine is not connected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    #[error(
        "the server {0} does not admit this machine: its key was replaced or removed. Have `yoi mesh init --add` print \
         a new line there, and give that to `yoi mesh join`"
    )]
    Refused(String),
    #[error(
        "the server {0} shows another certificate than the one that this machine joined with: it is another server, or \
         it was set up anew"
    )]
    OtherServer(String),
    #[error("the server {0} cannot be reached: {1}")]
    Unreachable(String, String),
}

/// Why a message is not on its way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStored {
    #[error("the server knows no machine `{0}`")]
    NoSuchMachine(MachineName),
    #[error("the message has {0} bytes, and the server takes at most {1}")]
    TooLarge(usize, usize),
    #[error("the server did not take it: {0}")]
    Refused(String),
    #[error(
        "the server holds as many messages of this machine for {0} as it may; it takes more when {0} has taken some"
    )]
    Full(MachineName),
    /// It may be on its way or not, as with [`NotStored::Unknown`].
    #[error(
        "the server did not say within {} s that it holds the message: the line to it may be cut; if it says so of no \
         message of any machine, its disk may be full: make room there, then kill it and start it again",
        STORED.as_secs()
    )]
    Silent,
    /// It may be on its way or not.
    #[error("the connection to the server was lost before it said that it holds the message")]
    Unknown,
}

/// The handle of a connection, for sending.
#[derive(Debug)]
pub struct Link {
    client: Client,
    machine: MachineName,
    /// Tells this connection from another one under the same name.
    id: String,
    ended: CancellationToken,
}

/// What arrives on a connection.
#[derive(Debug)]
pub struct Incoming {
    delivered: Subscriber,
    presence: Subscriber,
    machine: MachineName,
    id: String,
    ended: CancellationToken,
}

/// What another machine sent.
#[derive(Debug)]
pub enum Arrived {
    Message {
        from: MachineName,
        message: Message,
        receipt: Receipt,
    },
    Outcome {
        from: MachineName,
        outcome: Outcome,
        receipt: Receipt,
    },
    /// Nothing that this program reads. It is to be acknowledged, so that the next one comes.
    Unreadable {
        from: MachineName,
        receipt: Receipt,
    },
    Presence {
        from: MachineName,
        presence: Presence,
    },
    /// Another connection works under the name of this machine.
    SameName,
}

/// With this the server learns that it need not hold a message any more.
#[derive(Clone, Debug)]
pub struct Receipt {
    subject: Subject,
    /// The place of the message in the stream, from 1 on.
    pub place: u64,
    /// Whether the server has handed it over before.
    pub is_repeated: bool,
    /// When the server took the message, by its clock.
    pub taken: SystemTime,
}

impl Arrived {
    /// That of what the stream of this machine held; `None`: no stream held it.
    pub fn receipt(&self) -> Option<&Receipt> {
        match self {
            Self::Message { receipt, .. }
            | Self::Outcome { receipt, .. }
            | Self::Unreadable { receipt, .. } => Some(receipt),
            Self::Presence { .. } | Self::SameName => None,
        }
    }
}

impl Receipt {
    /// The subject is `$JS.ACK.<stream>.<consumer>.<deliveries>.<place in the stream>.<count>.<nanoseconds since 1970>.<waiting>`.
    fn read(subject: Subject, machine: &MachineName) -> Option<Self> {
        let own = format!("$JS.ACK.{}.{}.", subject::stream(machine), subject::CONSUMER);
        let parts = subject.as_str().strip_prefix(&own)?;
        let mut numbers = parts.split('.').map(|part| part.parse::<u64>().ok());
        let (deliveries, place) = (numbers.next()??, numbers.next()??);
        let taken = SystemTime::UNIX_EPOCH + Duration::from_nanos(numbers.nth(1)??);
        Some(Self { subject, place, is_repeated: deliveries > 1, taken })
    }
}

/// Opens a connection with the key of a machine or of the administrator.
pub(super) async fn open(
    credentials: &Credentials,
    ended: CancellationToken,
) -> Result<Client, LinkError> {
    let unreachable = |why: String| LinkError::Unreachable(credentials.server.clone(), why);
    let tls = credentials.pin.client_config().map_err(|error| unreachable(error.to_string()))?;
    let options = ConnectOptions::with_nkey(credentials.seed.clone())
        .name(format!("yoi {}", credentials.machine))
        .require_tls(true)
        .tls_client_config(tls)
        .ignore_discovered_servers()
        .custom_inbox_prefix(subject::inbox(&credentials.machine))
        .connection_timeout(CONNECT)
        .subscription_capacity(WAITING)
        .ping_interval(PING)
        .max_reconnects(1)
        .event_callback(move |event| {
            match event {
                Event::Disconnected | Event::Closed => ended.cancel(),
                Event::ServerError(error) => tracing::warn!("the server of the mesh says: {error}"),
                other => tracing::debug!("the connection to the server of the mesh: {other}"),
            }
            std::future::ready(())
        });
    let connected = timeout(CONNECT_ALL, options.connect(format!("nats://{}", credentials.server)));
    match connected.await {
        Ok(connected) => connected.map_err(|error| link_error(&credentials.server, &error)),
        Err(_) => Err(unreachable(format!("it did not answer within {CONNECT_ALL:?}"))),
    }
}

fn link_error(server: &str, error: &ConnectError) -> LinkError {
    let text = error.to_string();
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            LinkError::Refused(server.to_owned())
        }
        _ if text.contains("invalid peer certificate") => LinkError::OtherServer(server.to_owned()),
        _ => LinkError::Unreachable(server.to_owned(), text),
    }
}

/// Whether the server admits a machine; takes nothing.
///
/// # Errors
/// As of [`connect`].
pub async fn admitted(credentials: &Credentials) -> Result<(), LinkError> {
    open(credentials, CancellationToken::new()).await.map(drop)
}

/// Whether the server takes what a machine publishes and has a stream for it: the stream gets an outcome that the host of
/// the machine drops.
///
/// # Errors
/// As of [`connect`]; and why the server does not take it.
pub async fn tried(credentials: &Credentials) -> Result<Result<(), NotStored>, LinkError> {
    let (ended, machine) = (CancellationToken::new(), credentials.machine.clone());
    let client = open(credentials, ended.clone()).await?;
    let link = Link { client, machine: machine.clone(), id: String::new(), ended };
    let outcome = Outcome::about_itself(&machine, Id::new());
    Ok(link.store(&machine, Kind::Outcome, json(&outcome)).await)
}

/// Connects, and takes what the server holds for this machine from now on.
///
/// # Errors
/// The server cannot be reached, is another one, or does not admit this machine.
pub async fn connect(credentials: &Credentials) -> Result<(Link, Incoming), LinkError> {
    let (machine, ended) = (credentials.machine.clone(), CancellationToken::new());
    let client = open(credentials, ended.clone()).await?;
    let lost = |why: String| LinkError::Unreachable(credentials.server.clone(), why);
    let presence = client.subscribe(subject::PRESENCE_OF_ALL).await;
    let presence = presence.map_err(|error| lost(error.to_string()))?;
    let delivered = client.subscribe(subject::delivery(&machine)).await;
    let delivered = delivered.map_err(|error| lost(error.to_string()))?;
    client.flush().await.map_err(|error| lost(error.to_string()))?;
    let id = uuid::Uuid::new_v4().to_string();
    let link = Link { client, machine: machine.clone(), id: id.clone(), ended: ended.clone() };
    Ok((link, Incoming { delivered, presence, machine, id, ended }))
}

/// What the server answers when it was given a message.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    error: Option<AnswerError>,
    #[serde(default)]
    stream: Option<String>,
}

#[derive(Deserialize)]
struct AnswerError {
    #[serde(default)]
    description: String,
}

impl AnswerError {
    /// Whether the stream holds as many messages or bytes as it may, of one machine or in all.
    fn is_about_room(&self) -> bool {
        self.description.starts_with("maximum ") && self.description.ends_with(" exceeded")
    }
}

impl Link {
    /// Has the server hold a message for a machine. It is on its way then, whatever happens to this process.
    ///
    /// # Errors
    /// It is not on its way, or that is not known.
    pub async fn send(&self, to: &MachineName, message: &Message) -> Result<(), NotStored> {
        self.store(to, Kind::Message, json(message)).await
    }

    async fn store(&self, to: &MachineName, kind: Kind, bytes: Vec<u8>) -> Result<(), NotStored> {
        let limit = self.client.max_payload();
        if bytes.len() > limit {
            return Err(NotStored::TooLarge(bytes.len(), limit));
        }
        let subject = subject::between(to.as_str(), self.machine.as_str(), kind);
        let bytes = Bytes::from(bytes);
        let end = tokio::time::Instant::now() + RELOADED;
        let answer = loop {
            let request = Request::new().payload(bytes.clone()).timeout(Some(STORED));
            let answer = tokio::select! {
                answer = self.client.send_request(subject.clone(), request) => answer,
                () = self.ended.cancelled() => return Err(NotStored::Unknown),
            };
            match answer.map_err(|error| error.kind()) {
                Ok(answer) => break answer,
                // While a server reads its configuration again, no stream answers for a moment.
                Err(RequestErrorKind::NoResponders) if tokio::time::Instant::now() < end => {
                    tokio::time::sleep(AGAIN).await;
                }
                Err(RequestErrorKind::NoResponders) => {
                    return Err(NotStored::NoSuchMachine(to.clone()));
                }
                Err(RequestErrorKind::TimedOut) => return Err(NotStored::Silent),
                Err(_) => return Err(NotStored::Unknown),
            }
        };
        match serde_json::from_slice(&answer.payload) {
            Ok(Answer { error: Some(error), .. }) if error.is_about_room() => {
                Err(NotStored::Full(to.clone()))
            }
            Ok(Answer { error: Some(error), .. }) => Err(NotStored::Refused(error.description)),
            Ok(Answer { error: None, stream: Some(_) }) => Ok(()),
            Ok(_) | Err(_) => Err(NotStored::Unknown),
        }
    }

    /// Says what became of a message, and has the server drop it. If the connection is lost before, the message comes
    /// again.
    pub async fn decided(&self, to: &MachineName, outcome: &Outcome, receipt: Receipt) {
        self.tell(to, outcome).await;
        self.acknowledge(receipt).await;
    }

    /// Says what became of a message.
    pub async fn tell(&self, to: &MachineName, outcome: &Outcome) {
        let subject = subject::between(to.as_str(), self.machine.as_str(), Kind::Outcome);
        // A connection that is lost ends, and then this is said again.
        let _ = self.client.publish(subject, json(outcome).into()).await;
    }

    /// Sends an outcome to this machine itself, which comes back with the time of the server, and returns its id.
    pub async fn tell_itself(&self) -> Id {
        let id = Id::new();
        self.tell(&self.machine, &Outcome::about_itself(&self.machine, id)).await;
        id
    }

    /// Has the server drop a message.
    pub async fn acknowledge(&self, receipt: Receipt) {
        // As above.
        let _ = self.client.publish(receipt.subject, "+ACK".into()).await;
    }

    /// Says to all machines which agents this one has.
    pub async fn announce(&self, presence: Presence) {
        let presence = Presence { connection: self.id.clone(), ..presence };
        // As above.
        let _ = self.client.publish(subject::presence(&self.machine), json(&presence).into()).await;
    }

    /// Says that this machine leaves, as its last words.
    pub async fn leave(&self) {
        self.announce(Presence { leaves: true, ..Presence::default() }).await;
        // Where this fails, the others notice after a while.
        let _ = timeout(LAST, self.client.flush()).await;
    }
}

impl Incoming {
    /// What arrives next; `None`: the connection is lost. Cancel-safe.
    pub async fn next(&mut self) -> Option<Arrived> {
        loop {
            let (message, is_delivered) = tokio::select! {
                biased;
                () = self.ended.cancelled() => return None,
                message = self.delivered.next() => (message?, true),
                message = self.presence.next() => (message?, false),
            };
            let arrived = if is_delivered {
                delivered(&self.machine, message)
            } else {
                present(&self.machine, &self.id, &message)
            };
            if let Some(arrived) = arrived {
                return Some(arrived);
            }
        }
    }
}

impl Incoming {
    /// What has arrived already; `None`: nothing, or the connection is lost.
    pub fn try_next(&mut self) -> Option<Arrived> {
        self.next().now_or_never().flatten()
    }
}

/// What the server handed over. Anything that is not from the stream of this machine is dropped.
fn delivered(own: &MachineName, message: async_nats::Message) -> Option<Arrived> {
    let receipt = Receipt::read(message.reply?, own)?;
    let (from, kind) = subject::read(message.subject.as_str(), own)?;
    Some(match kind {
        Kind::Message => match Message::read(&message.payload) {
            Some(message) => Arrived::Message { from, message, receipt },
            None => Arrived::Unreadable { from, receipt },
        },
        Kind::Outcome => match Outcome::read(&message.payload) {
            Some(outcome) => Arrived::Outcome { from, outcome, receipt },
            None => Arrived::Unreadable { from, receipt },
        },
    })
}

fn present(own: &MachineName, id: &str, message: &async_nats::Message) -> Option<Arrived> {
    let from = subject::read_presence(message.subject.as_str())?;
    let presence = Presence::read(&message.payload)?;
    if from != *own {
        return Some(Arrived::Presence { from, presence });
    }
    let is_another = presence.connection != id && !presence.leaves;
    is_another.then_some(Arrived::SameName)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_of_the_own_stream_and_has_the_time_of_the_server() {
        let machine = MachineName::parse("trab").unwrap();
        let read = |subject: &str| Receipt::read(subject.into(), &machine);
        let receipt = read("$JS.ACK.yoi_trab.host.1.7.9.1500000000.3").unwrap();
        assert_eq!(receipt.taken, SystemTime::UNIX_EPOCH + Duration::from_millis(1500));
        assert_eq!((receipt.place, receipt.is_repeated), (7, false));
        assert!(read("$JS.ACK.yoi_trab.host.2.7.9.1500000000.3").unwrap().is_repeated);
        for other in [
            "yoi.trab.docs.msg",
            "$JS.ACK.yoi_docs.host.1.7.9.1500000000.3",
            "$JS.ACK.yoi_trab.host.1",
        ] {
            assert!(read(other).is_none(), "{other}");
        }
    }
}
