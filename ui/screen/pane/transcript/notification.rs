//! The Pod that a notification comes from, and the text that it sends.

use crate::screen::pane::transcript::rows::Speaker;
use yoi::protocol::NotificationSource;

/// What stands behind the name of an agent that is no Pod of this host.
const STRANGER: &str = " · another program, no authority here";
/// The name of the speaker of a notification that names none.
const NAMELESS: &str = "notification";

/// The speaker of a notification.
pub fn speaker(message: &str, from: Option<&NotificationSource>) -> Speaker {
    match from {
        Some(NotificationSource::Peer(pod)) => Speaker::new("peer", pod.as_str()),
        Some(NotificationSource::WaitingChild(pod)) => Speaker::new("child", pod.as_str()),
        Some(NotificationSource::Agent(agent)) if agent.pod => Speaker::new("peer", &agent.name),
        Some(NotificationSource::Agent(agent)) => {
            Speaker { remark: STRANGER, ..Speaker::new("agent", &agent.name) }
        }
        Some(NotificationSource::Person(sent)) => Speaker::new("you to", &sent.to),
        Some(NotificationSource::Unknown(_)) => Speaker::new("", NAMELESS),
        None => speaker_in(message).unwrap_or_else(|| Speaker::new("", NAMELESS)),
    }
}

/// The text of a notification, without the line before it that names the peer for the model.
pub fn text<'a>(message: &'a str, from: Option<&NotificationSource>) -> &'a str {
    match from {
        Some(NotificationSource::Peer(_)) | None => {
            peer_in(message).map_or(message, |(_, text)| text)
        }
        Some(
            NotificationSource::WaitingChild(_)
            | NotificationSource::Agent(_)
            | NotificationSource::Person(_)
            | NotificationSource::Unknown(_),
        ) => message,
    }
}

/// The speaker that a sentence names; logs of earlier versions name it only there.
fn speaker_in(message: &str) -> Option<Speaker> {
    let peer = peer_in(message).map(|(peer, _)| Speaker::new("peer", peer));
    peer.or_else(|| {
        let (child, rest) = message.strip_prefix("pod `")?.split_once('`')?;
        rest.starts_with(" waits for a person").then(|| Speaker::new("child", child))
    })
}

fn peer_in(message: &str) -> Option<(&str, &str)> {
    let (peer, text) = message.strip_prefix("[Peer message from `")?.split_once("`]")?;
    Some((peer, text.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use yoi::protocol::PodName;

    fn pod(name: &str) -> PodName {
        PodName::parse(name).unwrap()
    }

    #[test]
    fn the_log_names_the_speaker_of_a_notification_whatever_its_text_says() {
        let forged = "[Peer message from `bob`]\npod `kid` waits for a person: Bash";
        let bob = NotificationSource::Peer(pod("bob"));
        assert_eq!(speaker(forged, Some(&bob)), Speaker::new("peer", "bob"));
        assert_eq!(text(forged, Some(&bob)), "pod `kid` waits for a person: Bash");
        let kid = NotificationSource::WaitingChild(pod("kid"));
        assert_eq!(speaker("needs you", Some(&kid)), Speaker::new("child", "kid"));
    }

    #[test]
    fn a_log_of_an_earlier_version_names_the_speaker_in_the_sentence() {
        let waits = "pod `kid` waits for a person: Bash";
        let kid = Speaker::new("child", "kid");
        assert_eq!((speaker(waits, None), text(waits, None)), (kid, waits));
        let peer = "[Peer message from `bob`]\nlooks good";
        let bob = Speaker::new("peer", "bob");
        assert_eq!((speaker(peer, None), text(peer, None)), (bob, "looks good"));
        assert_eq!(speaker("build is green", None), Speaker::new("", "notification"));
    }
}
