//! Orders about a family. What is acknowledged goes into the ledger.

use crate::family::write;
use crate::hub::{Hub, Note};
use crate::ledger::Fact;
use serde_json::{Value, json};
use std::path::Path;

impl Hub {
    /// Asks for a child that cannot begin, because its model has no key.
    pub async fn spawn_keyless(&self, parent: &str, name: &str, dir: &Path) -> Option<Value> {
        let (task, profile) = ("@talk k0 .", "keyless");
        let child = json!({"name": name, "task": task, "scope": [write(dir)], "profile": profile});
        let reply = self.call(Some(parent), "spawn", child).await?;
        self.believe(reply, &[(Fact::There(name.to_owned()), false)], "error")
    }

    /// Makes a second Pod with the same past, under a name that is free.
    pub async fn fork(&self, pod: &str, name: &str) -> Option<Value> {
        let facts = [(Fact::Live(name.to_owned()), true), (Fact::There(name.to_owned()), true)];
        facts.iter().for_each(|(fact, _)| self.doubt(fact.clone()));
        self.write_down(|acknowledged| acknowledged.forks(pod, name));
        let reply = self.call(Some(pod), "fork", json!({"name": name})).await?;
        self.believe(reply, &facts, "created")
    }

    /// Deletes a stopped Pod.
    pub async fn remove(&self, pod: &str) -> Option<Value> {
        self.write_down(|acknowledged| acknowledged.leaves(pod));
        self.doubt(Fact::There(pod.to_owned()));
        let reply = self.call(Some(pod), "remove", Value::Null).await?;
        self.believe(reply, &[(Fact::There(pod.to_owned()), false)], "accepted")
    }

    /// Makes a child that may write below `dir`; its task begins with what is to be done.
    pub async fn spawn(&self, parent: &str, name: &str, task: &str, dir: &Path) -> Option<Value> {
        let id = task.split(' ').nth(1).expect("a task names itself");
        let note = Note { pod: name.to_owned(), id: id.to_owned() };
        let child = json!({"name": name, "task": task, "scope": [write(dir)]});
        self.doubt(Fact::Live(name.to_owned()));
        let reply = self.order(Some(parent), "spawn", child, Some(note)).await?;
        self.believe(reply, &[(Fact::Live(name.to_owned()), true)], "spawned")
    }

    /// Stops a Pod and, when there are any, those below it.
    pub async fn stop(&self, pod: &str, below: &[&str]) -> Option<Value> {
        let facts = live(pod, below, false);
        facts.iter().for_each(|(fact, _)| self.doubt(fact.clone()));
        let tree = json!({"tree": !below.is_empty()});
        let reply = self.call(Some(pod), "stop", tree).await?;
        self.believe(reply, &facts, "pods_stopped")
    }

    /// Brings a Pod back and, when there are any, those below it.
    pub async fn restore(&self, pod: &str, below: &[&str]) -> Option<Value> {
        let facts = live(pod, below, true);
        facts.iter().for_each(|(fact, _)| self.doubt(fact.clone()));
        let tree = json!({"tree": !below.is_empty()});
        let reply = self.call(Some(pod), "restore", tree).await?;
        self.believe(reply, &facts, "plan")
    }

    /// Makes two Pods peers.
    pub async fn peer(&self, one: &str, two: &str) -> Option<Value> {
        self.doubt(pair(one, two));
        let reply = self.call(Some(one), "register_peer", json!({"name": two})).await?;
        self.believe(reply, &[(pair(one, two), true)], "peer_registered")
    }

    /// Makes them peers no more.
    pub async fn unpeer(&self, one: &str, two: &str) -> Option<Value> {
        self.doubt(pair(one, two));
        let reply = self.call(Some(one), "unpeer", json!({"name": two})).await?;
        self.believe(reply, &[(pair(one, two), false)], "accepted")
    }

    /// Lends what lies below a path.
    pub async fn lend(&self, from: &str, to: &str, dir: &Path) -> Option<Value> {
        self.call(Some(from), "lend", json!({"to": to, "rule": write(dir)})).await
    }

    /// Takes it back.
    pub async fn reclaim(&self, owner: &str, dir: &Path) -> Option<Value> {
        self.call(Some(owner), "reclaim", json!({"path": dir})).await
    }

    /// Answers a question.
    pub async fn answer(&self, approval: &Value, verdict: Value) -> Option<Value> {
        let answer = json!({"ask": approval["id"], "verdict": verdict});
        let reply = self.call(None, "answer", answer).await?;
        if reply["event"] == "accepted" {
            let approval = approval["id"].as_str().expect("an id").to_owned();
            self.write_down(|acknowledged| acknowledged.answered.insert(approval));
        }
        Some(reply)
    }

    /// It is no longer known whether this is so.
    fn doubt(&self, fact: Fact) {
        self.write_down(|acknowledged| acknowledged.facts.insert(fact, None));
    }

    /// It is known again, if the reply is the one to an order that was carried out.
    fn believe(&self, reply: Value, facts: &[(Fact, bool)], carried_out: &str) -> Option<Value> {
        if reply["event"] == carried_out {
            let facts = facts.iter().map(|(fact, is)| (fact.clone(), Some(*is)));
            self.write_down(|acknowledged| acknowledged.facts.extend(facts));
        }
        Some(reply)
    }
}

fn live(pod: &str, below: &[&str], is: bool) -> Vec<(Fact, bool)> {
    let all = std::iter::once(&pod).chain(below);
    all.map(|name| (Fact::Live((*name).to_owned()), is)).collect()
}

fn pair(one: &str, two: &str) -> Fact {
    let (a, b) = if one < two { (one, two) } else { (two, one) };
    Fact::Peers(a.to_owned(), b.to_owned())
}
