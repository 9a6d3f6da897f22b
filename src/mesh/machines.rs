//! Machines that reach each other over a NATS server with JetStream. The server holds one stream for each machine with
//! what others sent to it, and keeps each message until it is acknowledged. So a machine that is away loses nothing. A
//! machine takes the messages in the order of its stream, so those of a pair stay in order. A machine is known by its key: the
//! server lets it publish only below subjects that name it as the sender. This room knows nothing of Pods.

/// The names of machines, and addresses such as `casa:reviewer`.
mod name;
/// The subjects of the server, and which of them a machine may use.
mod subject;
/// What machines send each other, as JSON.
mod wire;
/// The TLS of a connection: the server is known by its certificate.
mod tls;
/// What a machine needs to connect: the line that `yoi mesh join` takes, and its file.
mod credentials;
/// A connection to the server.
mod link;
/// The order in which a machine takes what its stream holds.
mod order;
/// The server: its configuration, its keys, and the machines that it admits.
mod server;
#[cfg(test)]
pub(crate) mod tests;

pub use credentials::{Credentials, CredentialsError};
pub use link::{Arrived, Incoming, Link, LinkError, NotStored, Receipt, admitted, connect, tried};
pub(crate) use name::is_addressable;
pub use name::{BadName, MachineName, address};
pub use order::InOrder;
pub use server::{ServerDir, ServerError};
pub use wire::{Fate, Message, Outcome, Peering, Presence};
