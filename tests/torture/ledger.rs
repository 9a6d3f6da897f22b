//! What clients were told: the truth that a killed host is held to.

use crate::hub::Note;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Acknowledged {
    /// Committed entries by their id, as they were sent.
    pub entries: BTreeMap<String, Entry>,
    /// What was acknowledged, by the id that its text holds.
    pub accepted: BTreeMap<String, Accepted>,
    /// What is so by the last acknowledged order about it; `None` while one is under way or was
    /// never answered.
    pub facts: BTreeMap<Fact, Option<bool>>,
    /// Questions whose answers were acknowledged.
    pub answered: BTreeSet<String>,
    /// Which entries of its source were told before a Pod was ordered to be forked from it.
    pub copied: BTreeMap<String, BTreeSet<String>>,
    /// What was told of Pods that were ordered to be removed, by their names.
    pub leaving: BTreeMap<String, Leaving>,
}

/// A committed entry as it was sent, and the Pod it is of.
pub struct Entry {
    pub pod: String,
    pub sent: Value,
}

/// What was told of a Pod: all of it is there, or all of it is gone.
#[derive(Default)]
pub struct Leaving {
    pub entries: BTreeMap<String, Entry>,
    pub accepted: BTreeMap<String, Accepted>,
}

/// Something that orders make so or not so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// This Pod lives.
    Live(String),
    /// There is a Pod of this name, live or not.
    There(String),
    /// These two, in the order of their names, are peers.
    Peers(String, String),
}

/// An acknowledged message or piece of news.
#[derive(Clone, Debug)]
pub struct Accepted {
    pub pod: String,
    /// The entry it became, when the reply said so.
    pub entry: Option<String>,
    /// The row it waits in, when the reply said so.
    pub row: Option<String>,
}

impl Acknowledged {
    /// Notes an event that was sent to everyone.
    pub fn note(&mut self, event: &Value) {
        let entry = &event["data"]["entry"];
        if event["event"] == "entry"
            && event["re"].is_null()
            && let Some(id) = entry["id"].as_str()
        {
            let pod = event["pod"].as_str().unwrap_or_default().to_owned();
            self.entries.insert(id.to_owned(), Entry { pod, sent: entry.clone() });
        }
    }

    /// Notes what a fork has to hold. One of this name that was there before is of no interest.
    pub fn forks(&mut self, pod: &str, name: &str) {
        let of = self.entries.iter().filter(|(_, entry)| entry.pod == pod);
        let acknowledged = of.map(|(id, _)| id.clone()).collect();
        self.copied.insert(name.to_owned(), acknowledged);
        self.leaving.remove(name);
    }

    /// Sets aside what was told of a Pod that is to be removed.
    pub fn leaves(&mut self, pod: &str) {
        let entries = self.entries.extract_if(.., |_, entry| entry.pod == pod).collect();
        let accepted = self.accepted.extract_if(.., |_, accepted| accepted.pod == pod).collect();
        self.leaving.insert(pod.to_owned(), Leaving { entries, accepted });
        let is_its = |fact: &Fact| matches!(fact, Fact::Peers(a, b) if a == pod || b == pod);
        self.facts.retain(|fact, _| !is_its(fact));
    }

    /// Notes an acknowledgement.
    pub fn accepted(&mut self, note: &Note, data: &Value) {
        let text = |key: &str| data[key].as_str().map(str::to_owned);
        let accepted =
            Accepted { pod: note.pod.clone(), entry: text("entry"), row: text("queued") };
        let before = self.accepted.insert(note.id.clone(), accepted);
        assert!(before.is_none(), "{} was acknowledged twice", note.id);
    }
}
