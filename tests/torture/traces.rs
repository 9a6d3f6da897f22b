//! What must not be left after a kill: something of a Pod that was not finished or is deleted, a
//! part of a copied log, scope that nobody allowed.

use crate::bench::Bench;
use crate::disk::{Disk, PodRow};
use crate::family::answers;
use crate::ledger::{Acknowledged, Leaving};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that is left and should not be. A host has started since the kill.
pub fn contradictions(bench: &Bench, disk: &Disk, acknowledged: &Acknowledged) -> Vec<String> {
    let mut wrong = sessions(disk);
    wrong.extend(sockets(bench, disk));
    wrong.extend(children(disk));
    wrong.extend(forks(disk, acknowledged));
    wrong.extend(
        acknowledged.leaving.iter().flat_map(|(pod, leaving)| half_gone(disk, pod, leaving)),
    );
    wrong.extend(extensions(disk));
    wrong
}

/// Every session is some Pod's, and whole.
fn sessions(disk: &Disk) -> Vec<String> {
    let owned: BTreeSet<&String> = disk.pods.iter().map(|pod| &pod.session).collect();
    let mut wrong: Vec<String> = disk.marked.iter().map(|of| format!("{of} is marked")).collect();
    for session in disk.sessions.iter().filter(|session| !owned.contains(session)) {
        wrong.push(format!("the session {session} is nobody's"));
    }
    for pod in &disk.pods {
        let Some(segment) = &pod.segment else { continue };
        let first = disk.lines(pod, segment).and_then(<[Value]>::first);
        if first.is_none_or(|first| first["session_id"] != pod.session) {
            wrong.push(format!("the log of {} does not begin as its own: {first:?}", pod.name));
        }
    }
    wrong
}

/// A socket is there for who lives, and for nobody else.
fn sockets(bench: &Bench, disk: &Disk) -> Option<String> {
    let live = disk.pods.iter().filter(|pod| pod.live);
    let live: BTreeSet<String> = live.map(|pod| pod.name.clone()).collect();
    let there = bench.sockets();
    (live != there).then(|| format!("there are sockets of {there:?}, live are {live:?}"))
}

/// Every child was told its task.
fn children(disk: &Disk) -> Vec<String> {
    let born = disk.pods.iter().filter(|pod| pod.parent.is_some());
    let idle = born
        .filter(|pod| !disk.entries_of(pod).values().any(|entry| entry["kind"] == "user_input"));
    idle.map(|pod| format!("{} was never told what to do", pod.name)).collect()
}

/// A log that was copied for another Pod has every line that was told before.
fn forks(disk: &Disk, acknowledged: &Acknowledged) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, copied) in &acknowledged.copied {
        let Some(pod) = disk.pod(name) else { continue };
        let Some((copy, source)) = copy_of(disk, pod) else {
            // Who had said nothing yet left nothing to copy.
            continue;
        };
        for (id, line) in &source {
            match copy.get(id) {
                Some(there) if there != line => {
                    wrong.push(format!("the line {id} is another one in the log of {name}"));
                }
                None if copied.contains(*id) => {
                    wrong.push(format!("the log of {name} lacks the line {id}"));
                }
                Some(_) | None => {}
            }
        }
    }
    wrong
}

type Lines<'a> = BTreeMap<&'a str, &'a Value>;

/// The entries of a fork, and those of the segment in which it parted from another session.
fn copy_of<'a>(disk: &'a Disk, pod: &PodRow) -> Option<(Lines<'a>, Lines<'a>)> {
    let own = disk.segments.iter().filter(|((session, _), _)| *session == pod.session);
    let parted = own.filter_map(|(_, lines)| lines.first()?["forked_from"]["segment_id"].as_str());
    let mut sources = parted.filter_map(|parted| {
        let of_another = |((session, name), _): &(&(String, String), _)| {
            *session != pod.session && name == parted
        };
        disk.segments.iter().find(of_another).map(|(_, lines)| lines)
    });
    Some((disk.entries_of(pod), by_id(sources.next_back()?)))
}

fn by_id(lines: &[Value]) -> Lines<'_> {
    lines.iter().filter_map(|line| Some((line["id"].as_str()?, line))).collect()
}

/// A Pod that was ordered to be removed is there with all that was told of it, or nothing is.
fn half_gone(disk: &Disk, pod: &str, leaving: &Leaving) -> Vec<String> {
    let (stays, entries) = (disk.pod(pod).is_some(), disk.entries());
    let there = |id: &String| entries.contains_key(id.as_str());
    let half = leaving.entries.keys().filter(|id| there(id) != stays);
    let mut wrong: Vec<String> =
        half.map(|id| format!("{pod} is there: {stays}, and its entry {id} is not so")).collect();
    let rows = leaving.accepted.values().filter_map(|accepted| accepted.row.as_ref());
    let mailbox = |row: &String| disk.mailbox.iter().any(|letter| letter.id == *row);
    let half = rows.filter(|row| mailbox(row) != stays);
    wrong.extend(half.map(|row| format!("{pod} is there: {stays}, and its mail {row} is not so")));
    let letters = disk.mailbox.iter().filter(|letter| letter.pod == pod && !stays);
    wrong.extend(letters.map(|letter| format!("{pod} is gone and has mail: {letter:?}")));
    wrong
}

/// Scope beyond what a Pod was made with is there when a person allowed it for the Pod or its tree, and
/// only then: what is allowed once is in no lease.
fn extensions(disk: &Disk) -> Vec<String> {
    let mut wrong = Vec::new();
    let answers = answers(disk);
    for entry in disk.entries().values().filter(|entry| entry["domain"] == "yoi.asked") {
        let approval = &entry["payload"];
        let (id, pod) = (approval["id"].as_str().unwrap_or_default(), approval["pod"].as_str());
        let Some(pod) = pod.and_then(|pod| disk.pod(pod)).filter(|_| !approval["lease"].is_null())
        else {
            continue;
        };
        let row = disk.questions.iter().find(|question| question.id == id);
        let stored = row.and_then(|question| serde_json::from_str(question.verdict.as_ref()?).ok());
        let logged = answers.get(id).and_then(|all| all.first().cloned());
        let verdict: Value = stored.or(logged).unwrap_or_default();
        let allowed = matches!(verdict["verdict"].as_str(), Some("pod" | "tree"));
        let given = disk
            .leases
            .iter()
            .any(|lease| lease.borrower == pod.key && lease.rule == approval["lease"]);
        if given != allowed && (given || !was_stopped(disk, pod)) {
            wrong.push(format!("{} was answered {verdict}; given: {given}: {approval}", pod.name));
        }
    }
    wrong
}

/// Whether a child stopped since it was made: then it has only what it was made with.
fn was_stopped(disk: &Disk, pod: &PodRow) -> bool {
    let events = format!("stopped:{}:", pod.session);
    !pod.live || disk.mailbox.iter().any(|letter| letter.id.starts_with(&events))
}
