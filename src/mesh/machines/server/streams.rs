//! The stream of each machine, and the consumer that hands it over. Only the administrator makes and deletes them.

use crate::mesh::machines::credentials::Credentials;
use crate::mesh::machines::link;
use crate::mesh::machines::name::MachineName;
use crate::mesh::machines::server::{Administrator, ServerError};
use crate::mesh::machines::subject::{self, Kind};
use crate::mesh::machines::wire::{self, Presence};
use async_nats::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The most messages that the server holds of one machine for another, so that a flood harms no third one.
const MOST_OF_ONE: u64 = 20_000;
/// The most bytes that the server holds for one machine.
const MOST_BYTES: u64 = 1 << 30;
/// A message that was not acknowledged for this long comes again, in nanoseconds.
const AGAIN_NS: u64 = 5_000_000_000;
/// What the server says of a stream that is not there.
const NO_STREAM: u64 = 10_059;

/// Makes the stream and the consumer of a machine, unless they are there. A consumer that an older program made gets what
/// this one wants of it.
pub(super) async fn make(
    administrator: &Administrator,
    machine: &MachineName,
) -> Result<(), ServerError> {
    let (name, own) = (subject::stream(machine), machine.as_str());
    let stream = json!({
        "name": name,
        "subjects": [subject::between(own, "*", Kind::Message), subject::between(own, "*", Kind::Outcome)],
        "retention": "workqueue",
        "storage": "file",
        "max_consumers": 1,
        "max_msgs": -1,
        "max_age": 0,
        "max_bytes": MOST_BYTES,
        "max_msgs_per_subject": MOST_OF_ONE,
        // What is full takes no more, and loses nothing.
        "discard": "new",
        "discard_new_per_subject": true,
        "num_replicas": 1,
    });
    // The machine restores the order that a lost connection mixes up.
    let consumer = json!({ "stream_name": name, "config": {
        "durable_name": subject::CONSUMER,
        "deliver_subject": subject::delivery(machine),
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "ack_wait": AGAIN_NS,
        "max_ack_pending": subject::IN_FLIGHT,
        "max_deliver": -1,
        "replay_policy": "instant",
    } });
    let client = connect(administrator).await?;
    request(&client, &format!("STREAM.CREATE.{name}"), &stream).await?;
    let create = format!("CONSUMER.DURABLE.CREATE.{name}.{}", subject::CONSUMER);
    request(&client, &create, &consumer).await
}

/// Deletes the stream with what it holds.
pub(super) async fn delete(
    administrator: &Administrator,
    machine: &MachineName,
) -> Result<(), ServerError> {
    let client = connect(administrator).await?;
    request(&client, &format!("STREAM.DELETE.{}", subject::stream(machine)), &json!({})).await?;
    // Published in the name of the machine, which cannot publish any more.
    let leaves = wire::json(&Presence { leaves: true, ..Presence::default() });
    let said = client.publish(subject::presence(machine), leaves.into()).await;
    said.map_err(|error| ServerError::Request("its presence".into(), error.to_string()))?;
    // If this fails, the other machines notice when its presence expires.
    let _ = client.flush().await;
    Ok(())
}

async fn connect(administrator: &Administrator) -> Result<Client, ServerError> {
    let Administrator { server, seed, pin, .. } = administrator;
    let machine = MachineName::administrator();
    let credentials =
        Credentials { machine, server: server.clone(), seed: seed.clone(), pin: *pin };
    let opened = link::open(&credentials, CancellationToken::new()).await;
    opened.map_err(ServerError::Administrator)
}

async fn request(client: &Client, what: &str, body: &Value) -> Result<(), ServerError> {
    let refused = |why: String| ServerError::Request(what.to_owned(), why);
    let answer = client.request(format!("$JS.API.{what}"), body.to_string().into()).await;
    let answer = answer.map_err(|error| refused(error.to_string()))?;
    let answer: Value = serde_json::from_slice(&answer.payload).unwrap_or_default();
    match answer.get("error") {
        None => Ok(()),
        Some(error) if error["err_code"] == NO_STREAM => Ok(()),
        Some(error) => Err(refused(error["description"].as_str().unwrap_or("it fails").to_owned())),
    }
}
