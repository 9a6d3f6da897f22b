//! The subjects of the server. What is for a machine goes to `yoi.<to>.<from>.<kind>`; the stream of `<to>` takes it up
//! and the server hands it over on `yoi.to.<to>`.
//!
//! A machine may neither make a consumer nor ask one for messages. With either it could name the subject to which the
//! server delivers, and so have the server publish a message of its choice in the name of another machine.

use crate::mesh::machines::name::MachineName;

/// Where each machine says which agents it has; no stream takes it up.
pub(super) const PRESENCE_OF_ALL: &str = "yoi.all.*.presence";
/// The consumer of each stream.
pub(super) const CONSUMER: &str = "host";

/// The most messages that the server hands over to a machine before the first of them is acknowledged.
pub(super) const IN_FLIGHT: usize = 32;
/// The most bytes of a message, so that those in flight do not fill a slow line for longer than the server waits.
pub(super) const MOST_BYTES: u32 = 128 * 1024;

/// What lies below a pair of machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Outcome,
}

impl Kind {
    const fn token(self) -> &'static str {
        match self {
            Self::Message => "msg",
            Self::Outcome => "out",
        }
    }
}

/// What `from` sends to `to`; both may be `*`.
pub(super) fn between(to: &str, from: &str, kind: Kind) -> String {
    format!("yoi.{to}.{from}.{}", kind.token())
}

pub(super) fn presence(from: &MachineName) -> String {
    format!("yoi.all.{from}.presence")
}

/// On which the server hands over what the stream of a machine holds.
pub(super) fn delivery(machine: &MachineName) -> String {
    format!("yoi.to.{machine}")
}

pub(super) fn stream(machine: &MachineName) -> String {
    format!("yoi_{machine}")
}

/// The prefix of the subjects on which the server answers requests of a machine.
pub(super) fn inbox(machine: &MachineName) -> String {
    format!("_INBOX_{machine}")
}

/// The subjects that a machine may publish on.
pub(super) fn may_publish(machine: &MachineName) -> Vec<String> {
    let own = machine.as_str();
    vec![
        between("*", own, Kind::Message),
        between("*", own, Kind::Outcome),
        presence(machine),
        format!("$JS.ACK.{}.{CONSUMER}.>", stream(machine)),
    ]
}

/// The subjects that a machine may subscribe to.
pub(super) fn may_subscribe(machine: &MachineName) -> Vec<String> {
    vec![format!("{}.>", inbox(machine)), PRESENCE_OF_ALL.to_owned(), delivery(machine)]
}

/// The sender and the kind of what the stream of `own` handed over.
pub(super) fn read(subject: &str, own: &MachineName) -> Option<(MachineName, Kind)> {
    let rest = subject.strip_prefix("yoi.")?.strip_prefix(own.as_str())?.strip_prefix('.')?;
    let (from, kind) = rest.split_once('.')?;
    let kind = [Kind::Message, Kind::Outcome].into_iter().find(|known| known.token() == kind)?;
    Some((MachineName::parse(from).ok()?, kind))
}

/// The machine that says which agents it has.
pub(super) fn read_presence(subject: &str) -> Option<MachineName> {
    let from = subject.strip_prefix("yoi.all.")?.strip_suffix(".presence")?;
    MachineName::parse(from).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_of_what_was_handed_over_is_a_token_of_its_subject() {
        let own = MachineName::parse("trab").unwrap();
        let from = |subject: &str| read(subject, &own).map(|(from, kind)| (from.to_string(), kind));
        assert_eq!(from("yoi.trab.casa.msg"), Some(("casa".to_owned(), Kind::Message)));
        assert_eq!(from("yoi.trab.casa.out"), Some(("casa".to_owned(), Kind::Outcome)));
        for other in [
            "yoi.to.trab",
            "yoi.trabx.casa.msg",
            "yoi.docs.casa.msg",
            "yoi.trab.casa.x",
            "yoi.trab.casa.msg.x",
        ] {
            assert_eq!(from(other), None, "{other}");
        }
    }
}
