//! What must be true of a family after a kill: who may write where, who belongs to whom, what a
//! parent has heard of its children, and what a person was asked.

use crate::disk::{Disk, Lease, PodRow};
use crate::hub::Hub;
use crate::ledger::{Acknowledged, Fact};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Everything about the family that contradicts itself or what clients were told. A host has
/// started since the kill.
pub fn contradictions(disk: &Disk, acknowledged: &Acknowledged) -> Vec<String> {
    let mut wrong = writers(disk);
    wrong.extend(ties(disk));
    wrong.extend(disk.pods.iter().filter_map(|pod| last_run(disk, pod)));
    wrong.extend(events(disk));
    wrong.extend(questions(disk, acknowledged));
    wrong.extend(facts(disk, acknowledged));
    wrong
}

/// What is still open when everything came to its end.
pub fn unfinished(disk: &Disk) -> Vec<String> {
    let waits = disk.questions.iter().map(|question| format!("still asked: {question:?}"));
    let mut wrong: Vec<String> = waits.collect();
    let answers = answers(disk);
    for approval in asked(disk) {
        if !answers.contains_key(approval.as_str()) {
            wrong.push(format!("the question {approval} was never answered nor withdrawn"));
        }
    }
    wrong
}

/// A rule of a scope.
#[derive(Clone, PartialEq)]
struct Rule {
    target: PathBuf,
    write: bool,
    recursive: bool,
}

impl Rule {
    fn read(rule: &Value) -> Self {
        Self {
            target: rule["target"].as_str().expect("a path").into(),
            write: rule["permission"] == "write",
            recursive: rule["recursive"] != false,
        }
    }

    fn covers(&self, path: &Path) -> bool {
        let direct = path == self.target || path.parent() == Some(&self.target);
        if self.recursive { path.starts_with(&self.target) } else { direct }
    }
}

fn rules(list: &Value) -> Vec<Rule> {
    list.as_array().into_iter().flatten().map(Rule::read).collect()
}

/// What was taken back from a Pod.
fn reclaimed(pod: &PodRow) -> impl Iterator<Item = Rule> {
    let reclaimed = pod.gaps["reclaimed"].as_array().into_iter().flatten();
    reclaimed.map(|one| Rule::read(&one["rule"]))
}

/// What a live Pod holds by the rows.
struct Held {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
}

impl Held {
    fn of(pod: &PodRow, leases: &[Lease]) -> Self {
        let (mut allow, mut deny) = (rules(&pod.scope["allow"]), rules(&pod.scope["deny"]));
        for lease in leases {
            let rule = Rule::read(&lease.rule);
            if lease.borrower == pod.key {
                allow.push(rule);
            } else if lease.lender == pod.key && rule.write {
                deny.push(rule);
            }
        }
        let mut reads = rules(&pod.gaps["capped"]);
        reads.extend(reclaimed(pod));
        for gap in pod.gaps["forgone"].as_array().into_iter().flatten() {
            let (rule, region) = (Rule::read(&gap["rule"]), Rule::read(&gap["region"]));
            if region.recursive && rule.target.starts_with(&region.target) {
                reads.push(rule);
            } else {
                deny.push(region);
            }
        }
        for rule in &mut allow {
            rule.write &= !reads.contains(rule);
        }
        Self { allow, deny }
    }

    fn writes(&self, path: &Path) -> bool {
        let allowed = self.allow.iter().any(|rule| rule.write && rule.covers(path));
        allowed && !self.deny.iter().any(|rule| rule.covers(path))
    }
}

/// What each live Pod holds by the rows.
fn held(disk: &Disk) -> Vec<(&str, Held)> {
    let live = disk.pods.iter().filter(|pod| pod.live);
    live.map(|pod| (pod.name.as_str(), Held::of(pod, &disk.leases))).collect()
}

/// Every path that a rule names, and some below each.
fn places(held: &[(&str, Held)]) -> Vec<PathBuf> {
    let all = held.iter().flat_map(|(_, held)| held.allow.iter().chain(&held.deny));
    let targets: BTreeSet<&Path> = all.map(|rule| rule.target.as_path()).collect();
    targets.into_iter().flat_map(|at| [at.to_owned(), at.join("x"), at.join("x/y")]).collect()
}

/// Whether screens are told of the family what the rows say.
pub fn differences(disk: &Disk, hub: &Hub) -> Vec<String> {
    let (held, pods, mut wrong) = (held(disk), hub.pods(), Vec::new());
    for (name, stored) in &held {
        let Some(info) = pods.iter().find(|info| info["name"] == *name) else { continue };
        let acknowledged = Held { allow: rules(&info["scope"]), deny: rules(&info["deny"]) };
        for place in places(&held) {
            if acknowledged.writes(&place) != stored.writes(&place) {
                wrong.push(format!("{} of {name} is told otherwise: {info}", place.display()));
            }
        }
    }
    let stored: BTreeSet<(String, String)> = disk.peers.iter().cloned().collect();
    let acknowledged = hub.peers();
    if acknowledged != stored {
        wrong.push(format!("peers are told {acknowledged:?}, stored {stored:?}"));
    }
    wrong
}

/// No two live Pods may write one path.
fn writers(disk: &Disk) -> Vec<String> {
    let held = held(disk);
    let mut wrong = Vec::new();
    for place in places(&held) {
        let writers = held.iter().filter(|(_, held)| held.writes(&place)).map(|(name, _)| *name);
        let writers: Vec<&str> = writers.collect();
        if writers.len() > 1 {
            wrong.push(format!("{} is written by {writers:?}", place.display()));
        }
    }
    wrong
}

/// Loans, peers, children and what they are allowed are whole.
fn ties(disk: &Disk) -> Vec<String> {
    let mut wrong = Vec::new();
    let live = |key: &str| disk.pod(key).is_some_and(|pod| pod.live);
    for lease in disk.leases.iter().filter(|lease| !live(&lease.borrower)) {
        wrong.push(format!("{} is not live and has a loan: {lease:?}", lease.borrower));
    }
    for (a, b) in &disk.peers {
        if a >= b || disk.pod(a).is_none() || disk.pod(b).is_none() {
            wrong.push(format!("{a} and {b} are no whole pair"));
        }
    }
    for pod in disk.policy.iter().filter(|pod| !live(pod)) {
        wrong.push(format!("{pod} is not live and its rules of policy are in force"));
    }
    let born = disk.pods.iter().filter_map(|pod| Some((pod, pod.parent.as_deref()?)));
    for (pod, parent) in born {
        let Some(parent) = disk.pod(parent) else {
            wrong.push(format!("the parent of {} is missing", pod.name));
            continue;
        };
        // One that came back before its parent has its own, and the parent goes without.
        let withheld = parent.gaps["forgone"].as_array().cloned().unwrap_or_default();
        let wanted = pod.scope["allow"].as_array().into_iter().flatten();
        for rule in wanted.filter(|_| pod.live && parent.live) {
            let lent = |lease: &Lease| lease.borrower == pod.key && lease.rule == *rule;
            let kept = withheld.iter().any(|gap| gap["region"] == *rule)
                || reclaimed(pod).any(|own| own == Rule::read(rule));
            if !kept && !disk.leases.iter().any(lent) {
                wrong.push(format!("{} lives and was not lent {rule}", pod.name));
            }
        }
    }
    wrong
}

/// What a row says of a Pod's last run and the log does not.
fn last_run(disk: &Disk, pod: &PodRow) -> Option<String> {
    let id = pod.last_run["entry"].as_str()?;
    let entries = disk.entries_of(pod);
    let Some(end) = entries.get(id) else {
        return Some(format!("the last run of {} did not end: {}", pod.name, pod.last_run));
    };
    let word = match (end["kind"].as_str()?, end["interrupted"] == true) {
        ("run_completed", _) => end["result"].as_str()?,
        ("run_errored", false) => "failed",
        ("run_errored", true) if end["message"] == "Cancelled" => "cancelled",
        ("extension", _) if end["domain"] == "yoi.rolled_back" => "rolled_back",
        _ => "no end that is noted",
    };
    let same = pod.last_run["result"] == word;
    (!same).then(|| format!("{} is {word} in the log: {}", pod.name, pod.last_run))
}

/// Whether a run ended in a way that a parent hears of.
fn is_child_event(entry: &Value) -> bool {
    match entry["kind"].as_str() {
        Some("run_completed" | "run_errored") => entry["interrupted"] != true,
        _ => false,
    }
}

/// Every end of a child's run, its last stop and every question of it that waits are news to its
/// parent, once.
fn events(disk: &Disk) -> Vec<String> {
    let mut wrong = Vec::new();
    for (pod, parent) in disk.pods.iter().filter_map(|pod| Some((pod, pod.parent.as_deref()?))) {
        let ends = disk.entries_of(pod).into_iter().filter(|(_, entry)| is_child_event(entry));
        let mut ids: Vec<String> = ends.map(|(id, _)| id.to_owned()).collect();
        if !pod.live {
            ids.push(format!("stopped:{}:{}", pod.session, pod.since));
        }
        let approvals =
            disk.questions.iter().filter(|approval| approval.pod == pod.key && pod.live);
        ids.extend(
            approvals
                .filter(|approval| approval.verdict.is_none())
                .map(|approval| approval.id.clone()),
        );
        for id in ids {
            let letters =
                disk.mailbox.iter().filter(|letter| letter.pod == parent && letter.id == id);
            let times = letters.count();
            if times != 1 {
                wrong.push(format!("{parent} has the news {id} of {} {times} times", pod.name));
            }
        }
    }
    wrong
}

/// The questions in the logs.
fn asked(disk: &Disk) -> Vec<String> {
    let entries = disk.entries();
    let asked = entries.values().filter(|entry| entry["domain"] == "yoi.asked");
    asked.filter_map(|entry| entry["payload"]["id"].as_str().map(str::to_owned)).collect()
}

/// What the logs say of each question: every answer to it.
pub fn answers(disk: &Disk) -> BTreeMap<String, Vec<Value>> {
    let mut answers: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for entry in disk.entries().values().filter(|entry| entry["domain"] == "yoi.answered") {
        let approval = entry["payload"]["ask"].as_str().unwrap_or_default().to_owned();
        answers.entry(approval).or_default().push(entry["payload"]["verdict"].clone());
    }
    answers
}

/// A question is answered once, its row says what its log says, and an answer that was
/// acknowledged is in one of the two.
fn questions(disk: &Disk, acknowledged: &Acknowledged) -> Vec<String> {
    let (asked, answers) = (asked(disk), answers(disk));
    let mut wrong: Vec<String> = answers
        .iter()
        .filter(|(approval, verdicts)| verdicts.len() > 1 || !asked.contains(approval))
        .map(|(approval, verdicts)| format!("the question {approval} was answered {verdicts:?}"))
        .collect();
    for question in &disk.questions {
        if !asked.contains(&question.id) || answers.contains_key(&question.id) {
            wrong.push(format!("a row without a question in the log: {question:?}"));
        }
    }
    for approval in &acknowledged.answered {
        let row = disk.questions.iter().find(|question| question.id == *approval);
        let stored = row.is_some_and(|question| question.verdict.is_some());
        if !stored && !answers.contains_key(approval) {
            wrong.push(format!("the answer to {approval} was acknowledged and is lost"));
        }
    }
    wrong
}

/// What was acknowledged is so.
fn facts(disk: &Disk, acknowledged: &Acknowledged) -> Vec<String> {
    let is = |fact: &Fact| match fact {
        Fact::Live(pod) => disk.pod(pod).is_some_and(|pod| pod.live),
        Fact::There(pod) => disk.pod(pod).is_some(),
        Fact::Peers(a, b) => disk.peers.iter().any(|pair| (&pair.0, &pair.1) == (a, b)),
    };
    let known = acknowledged.facts.iter().filter_map(|(fact, known)| Some((fact, (*known)?)));
    let wrong = known.filter(|(fact, known)| is(fact) != *known);
    wrong.map(|(fact, known)| format!("{fact:?} should be {known}")).collect()
}

/// The rule for writing below a path, as it stands in orders.
pub fn write(path: &Path) -> Value {
    json!({"target": path, "permission": "write", "recursive": true})
}
