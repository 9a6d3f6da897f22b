//! What is said when a verb was carried out.

use crate::command::Verb;
use crate::pane::scope;
use std::fmt::Write as _;
use yoi::protocol::{
    Action, Event, PathHolder, PlanStep, PodInfo, PodName, PolicyRule, Restoring, State, StoppedPod,
};
use yoi::scope::Permission;
use yoi::text::SafeText;

/// The sentence for a verb that was carried out on `pod`; one line for each thing that is listed.
pub fn done(verb: &Verb, pod: Option<&PodName>, reply: &Event) -> String {
    match reply {
        Event::Created { info } | Event::Spawned { info, .. } => return created(verb, pod, info),
        Event::PodsStopped { stopped } => return stopped_sentence(&[stopped]),
        Event::Plan { steps, done } => return plan(steps, *done),
        Event::PeerRegistered { result } => return peered(&result.source, &result.peer),
        Event::Peered { source, peer } => return peered(source, peer),
        Event::Unpeered { source, peer } => return format!("peers no more: {source} and {peer}"),
        Event::Holders { holders } => return held(holders),
        Event::Reclaimed { loans } if loans.is_empty() => return "nothing was lent there".into(),
        Event::Reclaimed { loans } => {
            let back = loans.iter().map(|l| format!("{} from {}", scope::rule(&l.rule), l.to));
            return format!("took back {}", back.collect::<Vec<_>>().join(", "));
        }
        Event::Policy { rules } => return policy(rules),
        _ => {}
    }
    plain(verb, pod.map_or("the Pod", PodName::as_str), reply)
}

/// The sentence for a verb that was carried out on several Pods.
pub fn done_all(verb: &Verb, replies: &[(PodName, Event)]) -> String {
    let steps = |reply: &Event| match reply {
        Event::Plan { steps, .. } => steps.clone(),
        _ => Vec::new(),
    };
    let names: Vec<&str> = replies.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(", ");
    match verb {
        Verb::Stop { .. } => {
            let stopped: Vec<_> = replies.iter().map(|(_, reply)| stopped_of(reply)).collect();
            stopped_sentence(&stopped)
        }
        Verb::Restore { .. } => {
            let steps: Vec<_> = replies.iter().flat_map(|(_, reply)| steps(reply)).collect();
            plan(&steps, true)
        }
        Verb::Pause(_) => format!("paused {names} · :resume goes on"),
        Verb::Resume(_) => format!("{names} go on"),
        Verb::Cancel(_) => format!("dropped the turns of {names}"),
        Verb::Compact(_) => format!("compacting the histories of {names}"),
        Verb::Remove(_) => format!("deleted {names}"),
        _ => format!("done: {names}"),
    }
}

fn stopped_of(reply: &Event) -> &[StoppedPod] {
    match reply {
        Event::PodsStopped { stopped } => stopped,
        _ => &[],
    }
}

fn plain(verb: &Verb, pod: &str, reply: &Event) -> String {
    match (verb, reply) {
        (Verb::Send { .. }, Event::Accepted { queued: Some(_), .. }) => {
            format!("queued for {pod}: it is sent when the turn ends")
        }
        (Verb::Send { .. }, _) => format!("sent to {pod}"),
        (Verb::Stop { .. }, _) => format!("stopped {pod} · :restore {pod} brings it back"),
        (Verb::Restore { pod: name, .. }, _) => {
            let name = name.as_ref().map_or(pod, |name| name.as_str());
            format!("{name} is back; nothing was run or sent again")
        }
        (Verb::Pause(_), _) => format!("paused {pod} · Enter goes on · :cancel drops the turn"),
        (Verb::Resume(_), _) => format!("{pod} goes on"),
        (Verb::Cancel(_), _) => format!("dropped the turn of {pod}"),
        (Verb::Compact(_), _) => format!("compacting the history of {pod}"),
        (Verb::Model(Some(model)), _) => format!("{pod} uses {model}"),
        (Verb::Remove(_), _) => format!("deleted {pod}"),
        (Verb::Rewind(_), _) => format!("rewound {pod}"),
        (Verb::Peer(other), _) => format!("peers registered: {pod} ↔ {other}"),
        (Verb::Unpeer(other), _) => format!("peers no more: {pod} and {other}"),
        (Verb::Lend { to, path, .. }, _) => {
            let path = path.display();
            format!("{pod} lent {path} to {to} · :reclaim {path} takes it back")
        }
        (Verb::Policy(Some(rule)), _) => format!("rule {rule} is in force no more"),
        _ => "done".into(),
    }
}

fn created(verb: &Verb, pod: Option<&PodName>, info: &PodInfo) -> String {
    match (verb, pod) {
        (Verb::Fork { .. }, Some(from)) => {
            format!("{} goes on from the history of {from}", info.name)
        }
        _ => format!("{} is ready", info.name),
    }
}

fn peered(source: &PodName, peer: &PodName) -> String {
    format!("peers registered: {source} ↔ {peer}")
}

/// What messages to a new peer need, when it is not live; it follows the sentence for the peers.
pub fn peer_needs(peer: Option<&PodInfo>) -> String {
    let stopped = peer.filter(|info| info.state == State::Stopped);
    let needs =
        |info: &PodInfo| format!(" · {} is stopped; messages to it need :restore", info.name);
    stopped.map(needs).unwrap_or_default()
}

/// Who was stopped, and what of their scope went back to whom; one list for each Pod that was named.
fn stopped_sentence(lists: &[&[StoppedPod]]) -> String {
    // Children come first: the last is the one that was named.
    let named: Vec<_> = lists.iter().filter_map(|list| list.last()).collect();
    let named: Vec<_> = named.into_iter().map(|pod| pod.name.as_str()).collect();
    let stopped: Vec<&StoppedPod> = lists.iter().flat_map(|list| list.iter().rev()).collect();
    if stopped.is_empty() {
        return if lists.len() > 1 {
            "they were stopped already"
        } else {
            "it was stopped already"
        }
        .to_owned();
    }
    let names: Vec<_> = stopped.iter().map(|pod| pod.name.as_str()).collect();
    let mut text = format!("stopped {}", names.join(", "));
    for pod in &stopped {
        // What was lent for reading was never gone.
        let mut back = pod.returned.clone();
        back.retain(|rule| rule.permission == Permission::Write);
        if back.is_empty() {
            continue;
        }
        let lender = pod.lender.as_ref().filter(|name| !names.contains(&name.as_str()));
        let Some(lender) = lender else { continue };
        // Writing into a string cannot fail.
        let _ = write!(text, " · {lender} has {} again", scope::rules(&back));
    }
    let tree = if lists.iter().any(|list| list.len() > 1) { " --tree" } else { "" };
    let it = if stopped.len() == 1 { "it" } else { "them" };
    let _ = write!(text, " · :restore {}{tree} brings {it} back", named.join(" "));
    text
}

/// What a restore did in one sentence, or what it would do in a line for each Pod.
fn plan(steps: &[PlanStep], done: bool) -> String {
    if !done {
        return steps.iter().map(|step| step_line(step, done)).collect::<Vec<_>>().join("\n");
    }
    let names = |what: Restoring| {
        let those = steps.iter().filter(|step| step.what == what);
        those.map(|step| step.name.as_str()).collect::<Vec<_>>()
    };
    let (idle, paused) = (names(Restoring::Idle), names(Restoring::Paused));
    let mut said = Vec::new();
    match idle.as_slice() {
        [] => {}
        [one] => said.push(format!("{one} is back; nothing was run or sent again")),
        more => said.push(format!("{} are back; nothing was run or sent again", more.join(", "))),
    }
    said.extend(paused.iter().map(|name| format!("{name} is back, paused; :resume goes on")));
    if said.is_empty() {
        said.extend(names(Restoring::AlreadyLive).first().map(|n| format!("{n} is live already")));
    }
    let kept = steps.iter().filter(|step| step.what != Restoring::Paused);
    for step in kept.filter(|step| !step.notes.is_empty()) {
        said.push(format!("{}: {}", step.name, step.notes.join(" · ")));
    }
    match names(Restoring::StaysStopped).len() {
        0 => {}
        1 => said.push("one below stays stopped".into()),
        many => said.push(format!("{many} below stay stopped")),
    }
    said.join(" · ")
}

/// What becomes of one Pod, in a line.
pub fn step_line(step: &PlanStep, done: bool) -> String {
    let will = match (step.what, done) {
        (Restoring::AlreadyLive, _) => "is live already",
        (Restoring::Idle, false) => "comes back idle",
        (Restoring::Idle, true) => "is back, idle",
        (Restoring::Paused, false) => "comes back paused: a turn was cut off",
        (Restoring::Paused, true) => "is back, paused; :resume goes on",
        (Restoring::StaysStopped, _) => "stays stopped",
        (Restoring::Impossible, _) => "cannot come back",
    };
    let notes: String = step.notes.iter().map(|note| format!(" · {note}")).collect();
    SafeText::line(format!("{} {will}{notes}", step.name)).into_string()
}

fn held(holders: &[PathHolder]) -> String {
    if holders.is_empty() {
        return "no Pod may read or write it".into();
    }
    let one = |holder: &PathHolder| {
        let may = match holder.permission {
            Permission::Read => "reads",
            Permission::Write => "writes",
        };
        let from = holder.lender.as_ref().map(|lender| format!(" (lent by {lender})"));
        format!("{} {may}{}", holder.pod, from.unwrap_or_default())
    };
    holders.iter().map(one).collect::<Vec<_>>().join(" · ")
}

fn policy(rules: &[PolicyRule]) -> String {
    if rules.is_empty() {
        return "no rule is in force".into();
    }
    rules.iter().map(policy_line).collect::<Vec<_>>().join("\n")
}

/// A rule of policy, in a line.
pub fn policy_line(rule: &PolicyRule) -> String {
    let does = match rule.action {
        Action::Allow => "allow",
        Action::Ask => "ask",
        Action::Deny => "deny",
    };
    let whom = match (&rule.pod, rule.tree) {
        (None, _) => String::new(),
        (Some(pod), false) => format!(" for {pod}"),
        (Some(pod), true) => format!(" for {pod} and below"),
    };
    let number = rule.id.map(|id| format!("{id}  ")).unwrap_or_default();
    let what = crate::pane::inbox::rule_words(&rule.pattern);
    format!("{number}{does} {what}{whom}  ({})", rule.source)
}
