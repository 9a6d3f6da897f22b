//! Which Pods a person had join the mesh or leave it, which agents a person blocked, and the messages of agents
//! that are accepted for a Pod.

use crate::protocol::name::PodName;
use crate::protocol::now_ms;
use crate::store::lane::Failure;
use crate::store::mailbox::add;
use crate::store::pods::{must_exist, signed};
use crate::store::{MailboxKind, MailboxMessage, Store, StoreError, Wanted};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::{BTreeSet, HashMap};

/// A message that is offered to a mailbox.
#[derive(Clone, Debug)]
pub struct Offer {
    pub message: MailboxMessage,
    /// Why it is not taken, unless the mailbox has it already.
    pub refused: Option<String>,
}

/// What became of an [`Offer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offered {
    /// Stored now.
    New,
    /// The mailbox knows its id: the message waits or was taken.
    Known,
    /// Not stored, for the reason in [`Offer::refused`].
    Refused(String),
    /// Not stored: this many messages wait, the limit.
    Full(u64),
    /// Not stored: the messages of agents have reached their limit.
    FullOfAgents,
    /// Not stored: this many messages of the sender wait; the rest of the room is for others.
    FullOfOne(u64),
    /// Not stored: the Pod is stopped or missing.
    NotLive,
}

/// How many messages may wait in one mailbox.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The most messages of all kinds.
    pub all: u64,
    /// The most messages of agents; one agent fills at most half of the room that others leave.
    pub agents: u64,
}

impl Store {
    /// Whether a person had this Pod join (`true`) or leave; `None`: the settings decide.
    pub async fn mesh_choice(&self, pod: &PodName) -> Result<Option<bool>, StoreError> {
        let key = pod.key();
        let read = move |db: &Connection| {
            let sql = "SELECT joined FROM mesh_choices WHERE pod = ?1";
            Ok(db.query_row(sql, [key], |row| row.get(0)).optional()?)
        };
        self.reader.run("read", read).await
    }

    /// Stores that a person had this Pod join or leave.
    pub async fn set_mesh_choice(&self, pod: &PodName, joined: bool) -> Result<(), StoreError> {
        let pod = pod.clone();
        let write = move |db: &Connection| {
            must_exist(db, &pod)?;
            let sql = "INSERT INTO mesh_choices (pod, joined) VALUES (?1, ?2)
                ON CONFLICT (pod) DO UPDATE SET joined = excluded.joined";
            db.execute(sql, params![pod.key(), joined])?;
            Ok(())
        };
        self.writer.run("write to", write).await
    }

    /// The agents that a person blocked.
    pub async fn blocked_agents(&self) -> Result<BTreeSet<String>, StoreError> {
        let read = |db: &Connection| {
            let mut statement = db.prepare("SELECT name FROM mesh_blocks")?;
            let names = statement.query_map([], |row| row.get(0))?;
            Ok(names.collect::<Result<_, _>>()?)
        };
        self.reader.run("read", read).await
    }

    /// Stores that a person blocked this agent, or unblocked it.
    pub async fn block_agent(&self, name: &str, blocked: bool) -> Result<(), StoreError> {
        let name = name.to_owned();
        let write = move |db: &Connection| {
            let now = signed(now_ms());
            if blocked {
                let sql = "INSERT INTO mesh_blocks (name, created) VALUES (?1, ?2)
                    ON CONFLICT DO NOTHING";
                db.execute(sql, params![name, now])?;
            } else {
                db.execute("DELETE FROM mesh_blocks WHERE name = ?1", [name])?;
            }
            Ok(())
        };
        self.writer.run("write to", write).await
    }

    /// Stores messages for a live Pod in their order, as far as there is room, in one transaction. Returns what became of
    /// each, and the new ones.
    pub async fn offer_messages(
        &self,
        pod: &PodName,
        offers: Vec<Offer>,
        room: Room,
    ) -> Result<(Vec<Offered>, Vec<MailboxMessage>), StoreError> {
        let pod = pod.clone();
        let write = move |db: &Connection| offer(db, &pod, offers, room);
        self.writer.run("write to", write).await
    }

    /// The messages of agents that wait for a Pod, in the order in which they came.
    pub async fn agent_messages(&self, pod: &PodName) -> Result<Vec<MailboxMessage>, StoreError> {
        self.messages_of(pod, MailboxKind::Agent).await
    }
}

fn offer(
    db: &Connection,
    pod: &PodName,
    offers: Vec<Offer>,
    room: Room,
) -> Result<(Vec<Offered>, Vec<MailboxMessage>), Failure> {
    let wanted = "SELECT wanted FROM pods WHERE key = ?1";
    let mut wanted = db.prepare_cached(wanted)?;
    let wanted: Option<Wanted> = wanted.query_row([pod.key()], |row| row.get(0)).optional()?;
    let one = |sql: &str| -> rusqlite::Result<u64> {
        db.prepare_cached(sql)?.query_row([pod.key()], |row| row.get(0)).map(i64::unsigned_abs)
    };
    // As long as all messages together fill at most half of the room for agents, no limit can be reached. Counting reads
    // every row, but no more can wait than there are places.
    let fits = |all: u64| (all + offers.len() as u64) * 2 <= room.agents.min(room.all);
    let mut all =
        one("SELECT ifnull((SELECT max(place) FROM mail WHERE pod = ?1 AND taken = 0) + 1
            - (SELECT min(place) FROM mail WHERE pod = ?1 AND taken = 0), 0)")?;
    if !fits(all) {
        all = one("SELECT count(*) FROM mail WHERE pod = ?1 AND taken = 0")?;
    }
    let mut each = if fits(all) { HashMap::new() } else { waiting_of_each(db, pod)? };
    let mut agents: u64 = each.values().sum();
    let known = "SELECT 1 FROM mail WHERE pod = ?1 AND id = ?2";
    let mut known = db.prepare_cached(known)?;
    let (mut outcomes, mut new) = (Vec::with_capacity(offers.len()), Vec::new());
    for Offer { message, refused } in offers {
        let is_agents = message.kind == MailboxKind::Agent;
        let own = sender(&message).map(|name| each.entry(name).or_default());
        let outcome = if known.exists(params![pod.key(), message.id])? {
            Offered::Known
        } else if let Some(reason) = refused {
            Offered::Refused(reason)
        } else if wanted != Some(Wanted::Live) {
            Offered::NotLive
        } else if all >= room.all {
            Offered::Full(all)
        } else if is_agents && agents >= room.agents {
            Offered::FullOfAgents
        } else if let Some(own) = own.as_deref().copied()
            && own > 0
            && own >= room.agents - agents
        {
            Offered::FullOfOne(own)
        } else {
            add(db, pod, &message)?;
            if let Some(own) = own {
                *own += 1;
            }
            (all, agents) = (all + 1, agents + u64::from(is_agents));
            new.push(message);
            Offered::New
        };
        outcomes.push(outcome);
    }
    Ok((outcomes, new))
}

/// How many messages of each agent wait, by its name.
fn waiting_of_each(db: &Connection, pod: &PodName) -> Result<HashMap<String, u64>, Failure> {
    // The id of such a row is `agent:`, the id of the message, `:`, and the name. The payload, which has the name, too,
    // may be long.
    let sql = "SELECT substr(id, 44), count(*) FROM mail
        WHERE pod = ?1 AND taken = 0 AND kind = 'agent' GROUP BY 1";
    let mut waiting = db.prepare(sql)?;
    let rows = waiting.query_map([pod.key()], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))?;
    let count = |row: Result<(String, i64), _>| row.map(|(name, n)| (name, n.unsigned_abs()));
    Ok(rows.map(count).collect::<Result<_, _>>()?)
}

/// The agent that sent a message, if one did.
fn sender(message: &MailboxMessage) -> Option<String> {
    let name = message.payload.pointer("/from/name").and_then(serde_json::Value::as_str);
    name.filter(|_| message.kind == MailboxKind::Agent).map(str::to_owned)
}
