//! Pairs of a Pod of this host and an agent of another machine that want to be peers. Both hosts keep a row, and tell each
//! other what theirs says until the other one has it.
//!
//! They are peers while both want it in the same generation. A side that does not want it any more begins the next one,
//! in which neither wants it yet. What is told may be lost, repeated or overtaken: the higher generation counts, and
//! within one a side only ever begins to want it, so both rows say the same in the end. A row stays after its pair has
//! ended, so that what comes late does not begin it again; only one that nobody here ever wanted goes.

use crate::mesh::machines::Peering;
use crate::protocol::name::PodName;
use crate::protocol::now_ms;
use crate::store::lane::Failure;
use crate::store::pods::{must_exist, signed};
use crate::store::rows::number;
use crate::store::{Store, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

/// Requests that may wait for a person at once: of one machine, for one Pod, and in all.
const OF_MACHINE: i64 = 4;
const FOR_POD: i64 = 8;
const IN_ALL: i64 = 32;

/// The highest generation that is believed: far beyond any that two hosts come to, so that counting on never overflows.
const LATEST: u64 = u64::MAX / 4;

/// How a pair stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// This side asked, and the other one has not answered.
    Asked,
    /// The other side asked, and a person here has to decide.
    Pending,
    Peers,
}

/// Who wants what of a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wants {
    generation: u64,
    here: bool,
    there: bool,
    /// Whether the other side has to be told.
    owed: bool,
}

impl Wants {
    fn state(self) -> Option<PeerState> {
        match (self.here, self.there) {
            (true, true) => Some(PeerState::Peers),
            (true, false) => Some(PeerState::Asked),
            (false, true) => Some(PeerState::Pending),
            (false, false) => None,
        }
    }

    /// The row after a person here has said whether they want it.
    fn after_here(self, wants: bool) -> Self {
        match (wants, self.state()) {
            (true, Some(PeerState::Peers)) | (false, None) => self,
            (true, _) => Self { here: true, owed: true, ..self },
            (false, Some(_)) => {
                let generation = self.generation.saturating_add(1);
                Self { generation, here: false, there: false, owed: true }
            }
        }
    }

    /// The row after the other side has said what it wants.
    fn after_there(self, says: Peering) -> Self {
        let Peering { generation, wants } = says;
        match generation.cmp(&self.generation) {
            // Both asked before they knew of each other: what this side wants still holds.
            std::cmp::Ordering::Greater if wants && self.state() == Some(PeerState::Asked) => {
                Self { generation, here: true, there: true, owed: true }
            }
            std::cmp::Ordering::Greater => {
                Self { generation, here: false, there: wants, owed: false }
            }
            std::cmp::Ordering::Equal => Self { there: self.there || wants, ..self },
            // It has to learn that this is over.
            std::cmp::Ordering::Less => Self { owed: true, ..self },
        }
    }
}

/// A pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachinePeer {
    pub pod: PodName,
    /// The agent with its machine, as in `casa:reviewer`, by its [`agent_key`].
    pub agent: String,
    wants: Wants,
    /// The id of the request that waits here, or of what was said last.
    pub id: String,
    /// The sentence with which it was ended here; often empty.
    pub reason: String,
    /// Milliseconds since the Unix epoch.
    pub since: u64,
}

impl MachinePeer {
    /// `None`: neither side wants it.
    pub fn state(&self) -> Option<PeerState> {
        self.wants.state()
    }

    /// What the other side has to be told.
    pub fn owed(&self) -> Option<Peering> {
        let Wants { generation, here, owed, .. } = self.wants;
        owed.then_some(Peering { generation, wants: here })
    }
}

/// What a side says about a pair.
#[derive(Clone, Debug)]
pub enum Said {
    /// Someone here wants it, or not any more; with `only_after` only if this is the id of what was said last.
    Here { wants: bool, only_after: Option<String> },
    /// The other side says this. Unless it `may_request`, it becomes no request that waits for a person.
    There { peering: Peering, may_request: bool },
}

/// A pair before and after something was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerChange {
    pub before: Option<MachinePeer>,
    pub after: Option<MachinePeer>,
}

const COLUMNS: &str = "name, agent, generation, here, there, owed, id, reason, since";

impl Store {
    /// Stores what a side said about a pair, under this id and with this reason. `None`: it is a request, and too many
    /// wait already, or it may not be made.
    pub async fn record_peer(
        &self,
        pod: &PodName,
        agent: &str,
        said: Said,
        id: String,
        reason: String,
    ) -> Result<Option<PeerChange>, StoreError> {
        let (pod, agent) = (pod.clone(), agent_key(agent));
        let record = move |db: &Connection| record(db, &pod, &agent, &said, &id, &reason);
        self.writer.run("write to", record).await
    }

    /// Stores that the other side was told what it was owed, unless something else was said since.
    pub async fn peer_notified(&self, of: &MachinePeer) -> Result<(), StoreError> {
        let (pod, agent, id) = (of.pod.key(), of.agent.clone(), of.id.clone());
        let Wants { generation, there, .. } = of.wants;
        let write = move |db: &Connection| {
            let sql = "UPDATE machine_peers SET owed = 0
                WHERE pod = ?1 AND agent = ?2 AND id = ?3 AND generation = ?4 AND there = ?5";
            db.execute(sql, params![pod, agent, id, signed(generation), there])?;
            Ok(())
        };
        self.writer.run("write to", write).await
    }

    /// Forgets every pair if this machine has another name or another server than when they were made, and returns what is
    /// forgotten. `network`: the name of this machine, with the certificate of its server.
    pub async fn begin_network(&self, network: String) -> Result<Vec<MachinePeer>, StoreError> {
        let begin = move |db: &Connection| {
            let sql = "SELECT 1 FROM machine_network WHERE name = ?1";
            if db.prepare(sql)?.exists([&network])? {
                return Ok(Vec::new());
            }
            let mut select = db.prepare(&format!("SELECT {COLUMNS} FROM machine_peers"))?;
            let pairs = select.query_map([], stored)?.collect::<Result<Vec<_>, _>>()?;
            db.execute_batch("DELETE FROM machine_peers; DELETE FROM machine_network")?;
            db.execute("INSERT INTO machine_network (name) VALUES (?1)", [&network])?;
            Ok(pairs.into_iter().flatten().collect())
        };
        self.writer.run("write to", begin).await
    }

    /// The place of the message that was taken last, in the stream of this machine; 0: none was.
    pub async fn taken_of_stream(&self) -> Result<u64, StoreError> {
        let read = |db: &Connection| {
            let sql = "SELECT taken FROM machine_network";
            Ok(db.query_row(sql, [], |row| number(row, 0)).optional()?.unwrap_or(0))
        };
        self.reader.run("read", read).await
    }

    /// Stores that all messages of the stream up to this place were taken. A lower place than the stored one changes nothing.
    pub async fn note_taken_of_stream(&self, place: u64) -> Result<(), StoreError> {
        let write = move |db: &Connection| {
            db.execute("UPDATE machine_network SET taken = MAX(taken, ?1)", [signed(place)])?;
            Ok(())
        };
        self.writer.run("write to", write).await
    }

    /// Stores that the stream is a new one: none of its messages was taken.
    pub async fn begin_stream(&self) -> Result<(), StoreError> {
        let write = |db: &Connection| {
            db.execute("UPDATE machine_network SET taken = 0", [])?;
            Ok(())
        };
        self.writer.run("write to", write).await
    }

    /// Every pair, oldest first.
    pub async fn machine_peers(&self) -> Result<Vec<MachinePeer>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM machine_peers ORDER BY since, pod, agent");
        let rows = self.listed(sql, stored).await?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// The pair of a Pod in which this is the id of what was said last.
    pub async fn pair_of(
        &self,
        pod: &PodName,
        id: String,
    ) -> Result<Option<MachinePeer>, StoreError> {
        let key = pod.key();
        let read = move |db: &Connection| {
            let sql = format!("SELECT {COLUMNS} FROM machine_peers WHERE pod = ?1 AND id = ?2");
            let row = db.prepare_cached(&sql)?.query_row([key, id], stored).optional()?;
            Ok(row.flatten())
        };
        self.reader.run("read", read).await
    }

    /// Whether a Pod and an agent of another machine are peers.
    pub async fn are_machine_peers(&self, pod: &PodName, agent: &str) -> Result<bool, StoreError> {
        let (pod, agent) = (pod.clone(), agent_key(agent));
        let read = move |db: &Connection| {
            let pair = of_pair(db, &pod, &agent)?;
            Ok(pair.is_some_and(|pair| pair.state() == Some(PeerState::Peers)))
        };
        self.reader.run("read", read).await
    }
}

/// The name of an agent by which it is found: names of Pods ignore case.
pub fn agent_key(agent: &str) -> String {
    let parts = agent.split_once(':');
    let pod = parts.and_then(|(machine, name)| Some((machine, PodName::parse(name).ok()?)));
    pod.map_or_else(|| agent.to_owned(), |(machine, pod)| format!("{machine}:{}", pod.key()))
}

fn record(
    db: &Connection,
    pod: &PodName,
    agent: &str,
    said: &Said,
    id: &str,
    reason: &str,
) -> Result<Option<PeerChange>, Failure> {
    let before = of_pair(db, pod, agent)?;
    let known = before.as_ref().map(|pair| pair.wants);
    let Some(next) = after(said, before.as_ref()) else {
        return Ok(Some(PeerChange { before: before.clone(), after: before }));
    };
    let state = known.and_then(Wants::state);
    if next.state().is_some() {
        must_exist(db, pod)?;
    }
    let is_request = next.state() == Some(PeerState::Pending) && state != next.state();
    if is_request && (!may_request(said) || is_full(db, pod, agent)?) {
        // That the other side ended the pair before it asked anew holds nevertheless.
        let sql =
            "UPDATE machine_peers SET here = 0, there = 0, owed = 0 WHERE pod = ?1 AND agent = ?2";
        db.execute(sql, params![pod.key(), agent])?;
        return Ok(None);
    }
    if known == Some(next) && !next.owed || known.is_none() && next.state().is_none() {
        return Ok(Some(PeerChange { before: before.clone(), after: before }));
    }
    if next.state().is_none() && !next.owed && known.is_some_and(|known| !known.here) {
        // Only the other side ever wanted it, under names that it invents as it likes.
        db.execute(
            "DELETE FROM machine_peers WHERE pod = ?1 AND agent = ?2",
            params![pod.key(), agent],
        )?;
        return Ok(Some(PeerChange { before, after: None }));
    }
    write(db, (pod, agent), next, before.as_ref(), (id, reason))?;
    let after = of_pair(db, pod, agent)?;
    Ok(Some(PeerChange { before, after }))
}

/// What a pair wants after this was said; `None`: it changes nothing.
fn after(said: &Said, before: Option<&MachinePeer>) -> Option<Wants> {
    let known = before.map(|pair| pair.wants);
    match said {
        Said::Here { only_after: Some(id), .. } if before.is_none_or(|pair| pair.id != *id) => None,
        // Higher than the generation of a row that was deleted.
        Said::Here { wants, .. } => {
            let known = known.unwrap_or(Wants { generation: now_ms(), ..Wants::default() });
            Some(known.after_here(*wants))
        }
        Said::There { peering, .. } if peering.generation > LATEST => None,
        Said::There { peering, .. } if !peering.wants && known.is_none() => None,
        Said::There { peering, .. } => Some(known.unwrap_or_default().after_there(*peering)),
    }
}

/// Writes the row of a pair.
fn write(
    db: &Connection,
    (pod, agent): (&PodName, &str),
    next: Wants,
    before: Option<&MachinePeer>,
    (id, reason): (&str, &str),
) -> Result<(), Failure> {
    let sql = "INSERT INTO machine_peers
        (pod, name, agent, generation, here, there, owed, id, reason, since)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (pod, agent) DO UPDATE SET
        name = excluded.name, generation = excluded.generation, here = excluded.here,
        there = excluded.there, owed = excluded.owed, id = excluded.id, reason = excluded.reason,
        since = excluded.since";
    let Wants { generation, here, there, owed } = next;
    let same = before.filter(|pair| pair.state() == next.state());
    // A request that waits keeps its id.
    let waits = same.filter(|pair| pair.state() == Some(PeerState::Pending));
    let id = waits.map_or(id, |pair| &pair.id);
    let since = same.map_or_else(now_ms, |pair| pair.since);
    let reason = same.filter(|_| reason.is_empty()).map_or(reason, |pair| &pair.reason);
    let (key, name, since) = (pod.key(), pod.as_str(), signed(since));
    let values =
        params![key, name, agent, signed(generation), here, there, owed, id, reason, since];
    db.execute(sql, values)?;
    Ok(())
}

fn may_request(said: &Said) -> bool {
    matches!(said, Said::There { may_request: true, .. })
}

/// Whether as many requests wait as may.
fn is_full(db: &Connection, pod: &PodName, agent: &str) -> Result<bool, Failure> {
    let machine = agent.split_inclusive(':').next().unwrap_or_default();
    let sql = "SELECT count(*) FILTER (WHERE substr(agent, 1, length(?1)) = ?1) >= ?3
            OR count(*) FILTER (WHERE pod = ?2) >= ?4 OR count(*) >= ?5
        FROM machine_peers WHERE there AND NOT here";
    let values = params![machine, pod.key(), OF_MACHINE, FOR_POD, IN_ALL];
    Ok(db.query_row(sql, values, |row| row.get(0))?)
}

/// Ends every pair of a Pod that is deleted. The other sides are still told.
pub(super) fn end_of_pod(db: &Connection, pod: &PodName) -> Result<(), Failure> {
    let sql = "UPDATE machine_peers SET generation = generation + 1, here = 0, there = 0, owed = 1,
        reason = '' WHERE pod = ?1 AND (here OR there)";
    db.execute(sql, [pod.key()])?;
    Ok(())
}

fn of_pair(db: &Connection, pod: &PodName, agent: &str) -> Result<Option<MachinePeer>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM machine_peers WHERE pod = ?1 AND agent = ?2");
    let row = db.prepare_cached(&sql)?.query_row(params![pod.key(), agent], stored).optional()?;
    Ok(row.flatten())
}

/// `None`: the row has a name that no Pod can have.
fn stored(row: &Row<'_>) -> rusqlite::Result<Option<MachinePeer>> {
    let Ok(pod) = PodName::parse(&row.get::<_, String>(0)?) else { return Ok(None) };
    let (generation, here, there, owed) = (number(row, 2)?, row.get(3)?, row.get(4)?, row.get(5)?);
    Ok(Some(MachinePeer {
        pod,
        agent: row.get(1)?,
        wants: Wants { generation, here, there, owed },
        id: row.get(6)?,
        reason: row.get(7)?,
        since: number(row, 8)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(seed: u64) -> impl FnMut(usize) -> usize {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % below as u64).unwrap()
        }
    }

    fn tell(side: &mut Wants, way: &mut Vec<Peering>, is_known: bool) {
        way.push(Peering { generation: side.generation, wants: side.here });
        if is_known {
            side.owed = false;
        }
    }

    /// What is on its way arrives in any order, or twice.
    fn agree_in_the_end(seed: u64) {
        let mut random = random(seed);
        let mut sides = [Wants::default(); 2];
        let mut ways: [Vec<Peering>; 2] = Default::default();
        for _ in 0..random(16) {
            let at = random(2);
            match random(4) {
                0 | 1 => {
                    let wants = random(3) > 0;
                    // A first request has the time as its generation.
                    if wants && sides[at] == Wants::default() {
                        sides[at].generation = random(3) as u64;
                    }
                    sides[at] = sides[at].after_here(wants);
                }
                2 if sides[at].owed => tell(&mut sides[at], &mut ways[1 - at], random(3) > 0),
                _ if !ways[at].is_empty() => {
                    let says = random(ways[at].len());
                    let says = ways[at].remove(says);
                    sides[at] = sides[at].after_there(says);
                }
                _ => {}
            }
        }
        let mut rounds = 0;
        while sides.iter().any(|side| side.owed) || ways.iter().any(|way| !way.is_empty()) {
            for at in 0..2 {
                if sides[at].owed {
                    tell(&mut sides[at], &mut ways[1 - at], true);
                }
                if let Some(says) = ways[at].pop() {
                    sides[at] = sides[at].after_there(says);
                }
            }
            rounds += 1;
            assert!(rounds < 100, "seed {seed}: {sides:?}");
        }
        let [one, other] = sides;
        let mirrored = Wants { here: other.there, there: other.here, ..other };
        assert_eq!(one, mirrored, "seed {seed}");
    }

    #[test]
    fn both_sides_agree_in_the_end_whatever_is_repeated_or_overtaken() {
        (1..20_000).for_each(agree_in_the_end);
    }

    #[test]
    fn two_are_peers_only_while_both_want_it() {
        let peering = Peering { generation: 7, wants: true };
        let asked = Wants { generation: 7, ..Wants::default() }.after_here(true);
        assert_eq!((asked.state(), asked.owed), (Some(PeerState::Asked), true));
        let pending = Wants::default().after_there(peering);
        assert_eq!((pending.state(), pending.owed), (Some(PeerState::Pending), false));
        let peers = pending.after_here(true);
        assert_eq!((peers.state(), peers.owed), (Some(PeerState::Peers), true));
        let ended = peers.after_here(false);
        assert_eq!(ended, Wants { generation: 8, here: false, there: false, owed: true });
        // What was wanted before counts no more.
        assert_eq!(ended.after_there(peering), ended);
        // Both asked, the other side later.
        let earlier = Wants { generation: 5, ..Wants::default() }.after_here(true);
        let both = earlier.after_there(peering);
        assert_eq!(both, Wants { generation: 7, here: true, there: true, owed: true });
        assert_eq!(
            peers.after_there(Peering { generation: 9, wants: true }).state(),
            Some(PeerState::Pending)
        );
    }
}
