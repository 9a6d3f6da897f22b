//! Long waits, in words: for whom a Pod waits, and since how long.

use crate::wording::duration::in_words;
use yoi::client::family::Family;
use yoi::protocol::family::{WAITS_TO_LEND, WAITS_TO_WRITE};
use yoi::protocol::{PodInfo, PodName, State};

const MINUTE: u64 = 60_000;
/// A wait is mentioned from this duration on.
const LONG: u64 = MINUTE;
/// The silence of a run is mentioned from this duration on.
const SILENT: u64 = 2 * MINUTE;
/// The last part of a wait for a provider is not mentioned, so that short waits show and hide no row.
const SHORT: u64 = 3_000;
/// How many names a sentence holds.
const NAMED: usize = 2;

/// The Pods that a Pod has been waiting for, once the wait is long: `waits for tester, 4 min`; or why it waits for
/// its provider and until when, or for which Pod that writes.
pub fn sentence(info: &PodInfo, family: &Family, now: u64) -> Option<String> {
    if for_provider(info, now).is_some() || info.waits_to_write() {
        return info.activity.clone();
    }
    let waited = long_wait(info, family, now)?;
    Some(words(info, family) + &in_words(waited))
}

/// For how many milliseconds a running Pod has shown no activity, once that is long.
pub fn silent_for(info: &PodInfo, family: &Family, now: u64) -> Option<u64> {
    long_wait(info, family, now).filter(|_| info.state == State::Running)
}

fn long_wait(info: &PodInfo, family: &Family, now: u64) -> Option<u64> {
    let waited = now.saturating_sub(since(info, family)?);
    let long = if info.state == State::Running { SILENT } else { LONG };
    (waited >= long).then_some(waited)
}

/// When [`sentence`] changes without an event.
pub fn changes_at(info: &PodInfo, family: &Family, now: u64) -> Option<u64> {
    if let Some(end) = for_provider(info, now) {
        return Some(end);
    }
    if info.waits_to_write() {
        return None;
    }
    let since = since(info, family)?;
    Some(since + (now.saturating_sub(since) / MINUTE + 1) * MINUTE)
}

/// Until when a long wait for a provider is mentioned.
pub fn for_provider(info: &PodInfo, now: u64) -> Option<u64> {
    let end = info.retry_at?.saturating_sub(SHORT);
    (info.state == State::Running && end > now).then_some(end)
}

/// Since when a Pod has been waiting; `None` if it does not wait.
fn since(info: &PodInfo, family: &Family) -> Option<u64> {
    match info.state {
        State::NeedsYou => Some(info.since),
        State::Running => Some(family.silent_since(info)),
        State::Idle => working(info, family).next().map(|_| info.since),
        State::Paused | State::Stopped | State::Failed | State::Damaged | State::Unknown => None,
    }
}

fn words(info: &PodInfo, family: &Family) -> String {
    match info.state {
        State::NeedsYou => "waits for you, ".into(),
        State::Running => "no activity for ".into(),
        _ => for_children(info, family).unwrap_or_default() + ", ",
    }
}

/// The children that an idle Pod waits for, those that need a person first: `waits for tester and lint`.
pub fn for_children(info: &PodInfo, family: &Family) -> Option<String> {
    let mut children: Vec<&PodInfo> = working(info, family).collect();
    children.sort_by_key(|child| child.state != State::NeedsYou);
    let names: Vec<&PodName> = children.into_iter().map(|child| &child.name).collect();
    (info.state == State::Idle && !names.is_empty()).then(|| format!("waits for {}", list(&names)))
}

/// The Pods whose writing a run waits for: `waits for bob`.
pub fn for_writers(info: &PodInfo) -> Option<String> {
    let activity = info.activity.as_deref().filter(|_| info.waits_to_write())?;
    let names = activity.strip_prefix(WAITS_TO_WRITE)?;
    let end = names.find(" has ").or_else(|| names.find(" have ")).unwrap_or(names.len());
    Some(format!("waits for {}", &names[..end]))
}

/// The commands of the Pod that a request for a part of its scope waits for: `a lend waits until job-1 (npm run dev) …`.
pub fn to_lend(info: &PodInfo) -> Option<&str> {
    info.notes.iter().find(|note| note.starts_with(WAITS_TO_LEND)).map(String::as_str)
}

/// The children whose child events would wake it.
fn working<'a>(info: &PodInfo, family: &'a Family) -> impl Iterator<Item = &'a PodInfo> {
    let busy = |child: &&PodInfo| matches!(child.state, State::Running | State::NeedsYou);
    family.children(&info.name).filter(busy)
}

fn list(names: &[&PodName]) -> String {
    let shown: Vec<_> = names.iter().take(NAMED).map(|name| name.as_str()).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(" and "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::app::tests::{NOON, pod};

    #[test]
    fn a_long_wait_names_the_pods_it_is_for() {
        let alice = PodInfo { since: NOON, ..pod("alice", State::Idle) };
        let child =
            |name: &str, state| PodInfo { parent: Some(alice.name.clone()), ..pod(name, state) };
        let mut family = Family::default();
        let children = [child("scout", State::Running), child("tester", State::NeedsYou)];
        let pods = std::iter::once(alice.clone()).chain(children).collect();
        family.replace(pods, Vec::new(), Vec::new());
        assert_eq!(sentence(&alice, &family, NOON + 59_000), None);
        assert_eq!(changes_at(&alice, &family, NOON + 59_000), Some(NOON + 60_000));
        let said = sentence(&alice, &family, NOON + 250_000);
        assert_eq!(said.as_deref(), Some("waits for tester and scout, 4 min"));
        let tester = family.children(&alice.name).nth(1).expect("tester").clone();
        let said = sentence(&tester, &family, NOON + 12 * 60_000);
        assert_eq!(said.as_deref(), Some("waits for you, 12 min"));
    }

    #[test]
    fn a_long_wait_for_a_provider_is_mentioned_until_shortly_before_its_end() {
        let activity = "its provider takes no requests now, tries again 12:00:20";
        let info = PodInfo {
            activity: Some(activity.into()),
            retry_at: Some(NOON + 20_000),
            last_activity: NOON,
            ..pod("alice", State::Running)
        };
        let family = Family::default();
        assert_eq!(sentence(&info, &family, NOON).as_deref(), Some(activity));
        assert_eq!(changes_at(&info, &family, NOON), Some(NOON + 17_000));
        assert_eq!(sentence(&info, &family, NOON + 17_000), None);
    }

    #[test]
    fn a_wait_for_another_writer_is_mentioned_at_once() {
        let activity = "waits until bob has ended its run";
        let waiting = pod("alice", State::Running);
        let waiting = PodInfo { activity: Some(activity.into()), last_activity: NOON, ..waiting };
        let family = Family::default();
        assert_eq!(sentence(&waiting, &family, NOON).as_deref(), Some(activity));
        assert_eq!(changes_at(&waiting, &family, NOON), None);
        let paused = PodInfo { state: State::Paused, ..waiting };
        assert_eq!(sentence(&paused, &family, NOON), None);
    }

    #[test]
    fn a_running_pod_is_silent_since_its_last_activity() {
        let received = NOON + 30_000;
        let info = PodInfo { last_activity: received, ..pod("alice", State::Running) };
        let family = Family::default();
        assert_eq!(sentence(&info, &family, received + 119_000), None);
        let said = sentence(&info, &family, received + 120_000);
        assert_eq!(said.as_deref(), Some("no activity for 2 min"));
        let resting = pod("bob", State::Idle);
        assert_eq!(sentence(&resting, &family, NOON + 3_600_000), None);
    }
}
