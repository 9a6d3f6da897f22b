//! What a machine tries with its own key and a client of its own.

use crate::mesh::machines::subject::{self, Kind};
use crate::mesh::machines::tests::{TestServer, message, name, next, take};
use crate::mesh::machines::{Arrived, Credentials, NotStored, connect};
use async_nats::{Client, ConnectOptions, Event};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a test waits for an answer of the server.
const PATIENCE: Duration = Duration::from_secs(30);

/// A plain client with the key of a machine, and what the server says to it.
struct Attacker {
    client: Client,
    errors: mpsc::UnboundedReceiver<String>,
}

impl Attacker {
    async fn of(credentials: &Credentials) -> Self {
        let (said, errors) = mpsc::unbounded_channel();
        let options = ConnectOptions::with_nkey(credentials.seed.clone())
            .require_tls(true)
            .tls_client_config(credentials.pin.client_config().unwrap())
            .custom_inbox_prefix(subject::inbox(&credentials.machine))
            .event_callback(move |event| {
                if let Event::ServerError(error) = event {
                    let _ = said.send(error.to_string().to_lowercase());
                }
                std::future::ready(())
            });
        let client = options.connect(format!("nats://{}", credentials.server)).await.unwrap();
        Self { client, errors }
    }

    /// The next complaint of the server.
    async fn refused(&mut self, what: &str, subject: &str) {
        let error = tokio::time::timeout(PATIENCE, self.errors.recv()).await;
        let error = error.unwrap_or_else(|_| panic!("{subject} is allowed")).unwrap();
        let expected =
            format!("permissions violation for {what} to \"{}\"", subject.to_lowercase());
        assert!(error.contains(&expected), "{subject}: {error}");
    }
}

#[tokio::test]
async fn a_machine_reaches_nothing_but_its_own_subjects() {
    let Some(mut server) = TestServer::start() else { return };
    let casa = server.admit("casa").await;
    let (trab, docs) = (server.admit("trab").await, server.admit("docs").await);
    let (of_docs, _incoming) = connect(&docs).await.unwrap();
    of_docs.send(&name("trab"), &message("untouched")).await.unwrap();
    let mut attacker = Attacker::of(&casa).await;
    for subject in [
        // The stream of another machine: made, read, emptied, acknowledged.
        "$JS.API.CONSUMER.CREATE.yoi_trab",
        "$JS.API.CONSUMER.CREATE.yoi_trab.x.yoi.trab.casa.msg",
        "$JS.API.CONSUMER.DURABLE.CREATE.yoi_trab.x",
        "$JS.API.CONSUMER.DURABLE.CREATE.yoi_trab.host",
        "$JS.API.CONSUMER.DELETE.yoi_trab.host",
        "$JS.API.CONSUMER.MSG.NEXT.yoi_trab.host",
        "$JS.API.CONSUMER.INFO.yoi_trab.host",
        "$JS.API.STREAM.INFO.yoi_trab",
        "$JS.API.STREAM.MSG.GET.yoi_trab",
        "$JS.API.DIRECT.GET.yoi_trab",
        "$JS.API.STREAM.MSG.DELETE.yoi_trab",
        "$JS.API.STREAM.PURGE.yoi_trab",
        "$JS.API.STREAM.UPDATE.yoi_trab",
        "$JS.API.STREAM.SNAPSHOT.yoi_trab",
        "$JS.API.STREAM.DELETE.yoi_trab",
        "$JS.API.STREAM.CREATE.another",
        "$JS.API.STREAM.LIST",
        "$JS.API.INFO",
        "$JS.ACK.yoi_trab.host.1.1.1.1.0",
        // With its own stream a machine could have the server speak for it.
        "$JS.API.CONSUMER.DURABLE.CREATE.yoi_casa.x",
        "$JS.API.CONSUMER.MSG.NEXT.yoi_casa.host",
        "$JS.API.STREAM.UPDATE.yoi_casa",
        "$JS.API.STREAM.DELETE.yoi_casa",
        // In the name of another machine, and where no machine speaks.
        "yoi.trab.docs.msg",
        "yoi.trab.docs.out",
        "yoi.trab.casa.other",
        "yoi.all.docs.presence",
        "yoi.to.trab",
        "_INBOX_trab.x",
        "$SYS.REQ.SERVER.PING",
    ] {
        attacker.client.publish_with_reply(subject, "_INBOX_casa.x", "{}".into()).await.unwrap();
        attacker.refused("publish", subject).await;
    }
    for subject in [
        ">",
        "*",
        "yoi.>",
        "yoi.to.trab",
        "yoi.to.*",
        "yoi.trab.>",
        "_INBOX_trab.>",
        "_INBOX.>",
        "$JS.>",
        "$SYS.>",
    ] {
        let _subscription = attacker.client.subscribe(subject).await.unwrap();
        attacker.refused("subscription", subject).await;
    }
    let (link, mut incoming) = connect(&trab).await.unwrap();
    let expected = ("docs".to_owned(), "\"untouched\"".to_owned());
    assert_eq!(take(&link, &mut incoming).await, expected);
}

/// The server answers to any subject that a message names for the answer. Nothing that it says there is a message.
#[tokio::test]
async fn the_server_says_nothing_in_the_name_of_a_machine_that_is_taken_for_its_words() {
    let Some(mut server) = TestServer::start() else { return };
    let casa = server.admit("casa").await;
    let (trab, docs) = (server.admit("trab").await, server.admit("docs").await);
    let attacker = Attacker::of(&casa).await;
    for answer in ["yoi.trab.docs.msg", "yoi.trab.docs.out", "yoi.to.trab", "yoi.all.docs.presence"]
    {
        let subject = "yoi.docs.casa.msg";
        attacker.client.publish_with_reply(subject, answer, "{}".into()).await.unwrap();
    }
    attacker.client.flush().await.unwrap();
    let (of_docs, _incoming) = connect(&docs).await.unwrap();
    of_docs.send(&name("trab"), &message("the only one")).await.unwrap();
    let (link, mut incoming) = connect(&trab).await.unwrap();
    for _ in 0..2 {
        let Arrived::Unreadable { from, receipt } = next(&mut incoming).await else {
            panic!("it is taken for words of docs")
        };
        assert_eq!(from, name("docs"));
        link.acknowledge(receipt).await;
    }
    let expected = ("docs".to_owned(), "\"the only one\"".to_owned());
    assert_eq!(take(&link, &mut incoming).await, expected);
}

#[tokio::test]
async fn a_flood_of_one_machine_is_bounded_and_leaves_room_to_others() {
    let Some(mut server) = TestServer::start() else { return };
    let (casa, docs) = (server.admit("casa").await, server.admit("docs").await);
    let trab = server.admit("trab").await;
    let attacker = Attacker::of(&casa).await;
    let subject = subject::between("trab", "casa", Kind::Message);
    for _ in 0..20_000 {
        attacker.client.publish(subject.clone(), "{}".into()).await.unwrap();
    }
    let (link, _incoming) = connect(&casa).await.unwrap();
    // The flood was sent on another connection: this message comes behind it.
    attacker.client.request(subject, "{}".into()).await.unwrap();
    let refused = link.send(&name("trab"), &message("one more")).await.unwrap_err();
    assert_eq!(refused, NotStored::Full(name("trab")));
    let (other, _incoming) = connect(&docs).await.unwrap();
    assert_eq!(other.send(&name("trab"), &message("hi")).await, Ok(()));
    // It goes on when some were taken.
    let (of_trab, mut incoming) = connect(&trab).await.unwrap();
    let Arrived::Unreadable { receipt, .. } = next(&mut incoming).await else { panic!("a flood") };
    of_trab.acknowledge(receipt).await;
    of_trab.leave().await;
    while link.send(&name("trab"), &message("one more")).await.is_err() {}
}

#[tokio::test]
async fn a_client_without_a_key_or_without_tls_is_refused() {
    let Some(mut server) = TestServer::start() else { return };
    let casa = server.admit("casa").await;
    let address = format!("nats://{}", casa.server);
    let without_key = ConnectOptions::new()
        .require_tls(true)
        .tls_client_config(casa.pin.client_config().unwrap())
        .connect(&address);
    assert_eq!(
        without_key.await.unwrap_err().kind(),
        async_nats::ConnectErrorKind::AuthorizationViolation
    );
    // Without the certificate the client does not believe the server.
    assert!(ConnectOptions::with_nkey(casa.seed.clone()).connect(&address).await.is_err());
}
