//! Requests that take from Pods what their commands write: each does what it was asked to do with these, no path is ever
//! writable by the commands of two Pods, and no request waits for ever.

use crate::client::{Client, Events};
use crate::host::tests::Bench;
use crate::host::tests::family::{name, write};
use crate::host::tests::histories::Dice;
use crate::protocol::{Event, Method, Refusal, SpawnPod, State, WhileRunning};
use crate::scope::{Permission, Scope};
use crate::tools::jobs::{EndedBy, Jobs};
use futures_util::future::select_all;
use std::path::PathBuf;
use std::pin::pin;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const PODS: [&str; 3] = ["p", "y", "z"];
/// Of which the steps are: one writes everything at first.
const LENDERS: [&str; 5] = ["p", "p", "p", "y", "z"];
const PLACES: [&str; 5] = ["a", "a/x", "a/y", "b", "b/x"];
const STEPS: usize = 10;

/// A request of a person who has a connection of his own and waits.
struct Asked {
    connection: (Client, Events),
    call: JoinHandle<Result<Event, Refusal>>,
}

/// A command in the foreground, as the run of a Pod starts it.
struct Foreground {
    pod: &'static str,
    /// What it may write until it ends.
    scope: Scope,
    _running: Box<dyn std::any::Any>,
    end: CancellationToken,
}

/// How often each thing happened.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    refused: usize,
    jobs_ended: usize,
    commands_ended: usize,
    waited: usize,
    kept_from_starting: usize,
    gave_up: usize,
}

struct Life {
    bench: Bench,
    /// Watches nothing: events that nobody reads would stop its replies.
    client: Client,
    seed: u64,
    jobs: u32,
    foreground: Vec<Foreground>,
    asked: Vec<Asked>,
    seen: Seen,
}

async fn three_pods() -> Bench {
    let bench = Bench::family().await;
    for pod in ["y", "z"] {
        bench.root_pod(pod, pod).await;
    }
    for place in PLACES {
        std::fs::create_dir_all(bench.root.join("w").join(place)).unwrap();
    }
    bench
}

impl Bench {
    fn jobs_of(&self, pod: &str) -> Jobs {
        self.host.shared.pod(&name(pod)).unwrap().jobs
    }

    fn place(&self, place: &str) -> PathBuf {
        self.root.join("w").join(place)
    }

    fn scope_of(&self, pod: &str) -> Scope {
        self.host.shared.pod(&name(pod)).unwrap().granted.borrow().scope.clone()
    }

    /// Starts a command in the background as Bash does: only where the Pod writes now.
    fn start_job(&self, pod: &str, place: &str, number: u32) -> Result<(), String> {
        let handle = self.host.shared.pod(&name(pod)).unwrap();
        let _call = handle.commands.begin("Bash".into(), Default::default());
        let dir = self.place(place);
        match self.scope_of(pod).covers(&write(&dir)) {
            true => handle.jobs.pretend(number, vec![dir]),
            false => Err("outside".into()),
        }
    }

    /// The ids of the commands of a Pod that run in the background and may write below a place.
    fn jobs_at(&self, pod: &str, place: &str) -> Vec<String> {
        let at = write(self.place(place));
        let running = self.jobs_of(pod).list(&name(pod)).into_iter();
        let running = running.filter(|job| job.ended_at.is_none());
        let there = running.filter(|job| job.writes.iter().any(|dir| write(dir).overlaps(&at)));
        there.map(|job| job.id).collect()
    }

    /// What each live Pod may read and write now.
    fn live(&self) -> Vec<(&'static str, Scope)> {
        let is_live = |pod: &&str| {
            let handle = self.host.shared.pod(&name(pod)).unwrap();
            handle.info.borrow().state != State::Stopped
        };
        PODS.into_iter().filter(is_live).map(|pod| (pod, self.scope_of(pod))).collect()
    }

    fn all_jobs(&self) -> Vec<(&'static str, String)> {
        let of = |pod: &'static str| self.jobs_at(pod, ".").into_iter().map(move |id| (pod, id));
        PODS.into_iter().flat_map(of).collect()
    }

    async fn end_jobs(&self, pod: &str, place: &str) {
        for id in self.jobs_at(pod, place) {
            self.jobs_of(pod).stop(&id, &name(pod), EndedBy::Person).await.unwrap();
        }
    }

    /// Resolves when requests wait for commands of a Pod, or none does.
    async fn waits(&self, pod: &str, does: bool) {
        let mut info = self.host.shared.pod(&name(pod)).unwrap().info;
        let says = |note: &String| note.starts_with("a lend waits until ");
        info.wait_for(|info| info.notes.iter().any(says) == does).await.unwrap();
    }
}

impl Life {
    /// A request on a connection of its own: its answer, if it has one after so many moments.
    async fn request(
        &mut self,
        pod: &str,
        method: Method,
        moments: usize,
    ) -> Option<Result<Event, Refusal>> {
        let connection = self.bench.host.client().await.unwrap();
        let (client, pod) = (connection.0.clone(), name(pod));
        let call = tokio::spawn(async move { client.call(Some(&pod), method).await });
        for _ in 0..moments {
            tokio::task::yield_now().await;
        }
        if call.is_finished() {
            let answer = call.await.unwrap();
            self.close(connection).await;
            return Some(answer);
        }
        self.asked.push(Asked { connection, call });
        None
    }

    /// Resolves when the host counts this connection no more: its requests have ended then.
    async fn close(&self, connection: (Client, Events)) {
        let mut connections = self.bench.host.shared.connections.subscribe();
        let open = connections.borrow_and_update().open;
        drop(connection);
        connections.wait_for(|connections| connections.open < open).await.unwrap();
    }

    /// Whether a request waits for a command that runs.
    fn one_waits(&self) -> bool {
        PODS.iter().any(|pod| {
            let waiting = self.bench.jobs_of(pod).waiting().concat();
            let in_foreground = self.foreground.iter().any(|command| command.pod == *pod);
            let jobs = self.bench.jobs_at(pod, ".");
            in_foreground && waiting.contains("Bash make")
                || jobs.iter().any(|id| waiting.contains(&format!("{id} (")))
        })
    }

    fn begin(&mut self, pod: &'static str) {
        let handle = self.bench.host.shared.pod(&name(pod)).unwrap();
        let end = CancellationToken::new();
        let _running = Box::new(handle.commands.begin("Bash make".into(), end.clone()));
        let scope = self.bench.scope_of(pod);
        self.foreground.push(Foreground { pod, scope, _running, end });
    }

    /// Ends the commands in the foreground that were told to.
    fn drop_cancelled(&mut self) -> usize {
        let before = self.foreground.len();
        self.foreground.retain(|command| !command.end.is_cancelled());
        before - self.foreground.len()
    }

    /// A request with this choice, while nothing ends by itself; and what it did to the commands.
    async fn take(&mut self, dice: &mut Dice) {
        let (pod, place) = (dice.of(&LENDERS), dice.of(&PLACES));
        let running = dice.of(&[WhileRunning::Refuse, WhileRunning::End, WhileRunning::Wait]);
        let path = self.bench.place(place);
        let is_lend = dice.below(3) > 0;
        let method = match is_lend {
            true => Method::Lend { to: dice.of(&PODS).into(), rule: write(path), running },
            false => Method::Reclaim { path, running },
        };
        let (there, all) = (self.bench.jobs_at(pod, place), self.bench.all_jobs());
        let in_foreground = self.foreground.iter().any(|command| command.pod == pod);
        let seed = self.seed;
        match running {
            WhileRunning::Refuse => {
                let answer = self.client.call(Some(&name(pod)), method).await;
                assert_eq!(self.bench.all_jobs(), all, "history {seed}: none is ended");
                assert!(self.foreground.iter().all(|command| !command.end.is_cancelled()));
                let is_free = there.is_empty() && !in_foreground;
                assert!(answer.is_err() || is_free || !is_lend, "history {seed}");
                let said = answer.err().map(|refusal| refusal.message).unwrap_or_default();
                if said.contains("which may write below") {
                    self.seen.refused += 1;
                    let named = |id: &String| said.contains(&format!("{id} (true)"));
                    assert!(!is_lend || there.iter().all(named), "history {seed}: {said}");
                    assert!(said.contains("--wait waits"), "history {seed}: {said}");
                }
            }
            WhileRunning::End => {
                let (client, to) = (self.client.clone(), name(pod));
                let mut call = pin!(async move { client.call(Some(&to), method).await });
                let mut ends: Vec<_> =
                    self.foreground.iter().map(|command| command.end.clone()).collect();
                // Each ends as soon as it is told to.
                let answer = loop {
                    let each = ends.iter().map(|end| Box::pin(end.cancelled()));
                    let any = async {
                        match ends.is_empty() {
                            true => std::future::pending().await,
                            false => select_all(each).await.1,
                        }
                    };
                    tokio::select! {
                        answer = &mut call => break answer,
                        _ = any => {}
                    }
                    ends.retain(|end| !end.is_cancelled());
                    self.seen.commands_ended += self.drop_cancelled();
                };
                self.seen.commands_ended += self.drop_cancelled();
                let now = self.bench.all_jobs();
                let ended: Vec<_> = all.iter().filter(|job| !now.contains(job)).collect();
                self.seen.jobs_ended += ended.len();
                let is_there = |job: &&(&str, String)| job.0 == pod && there.contains(&job.1);
                if is_lend && answer.is_ok() {
                    assert_eq!(ended.len(), there.len(), "history {seed}: {ended:?} of {there:?}");
                }
                assert!(!is_lend || ended.iter().all(is_there), "history {seed}");
                let is_alone = self.asked.is_empty();
                assert!(answer.is_ok() || ended.is_empty() || !is_alone, "history {seed}");
            }
            WhileRunning::Wait => {
                let answer = self.request(pod, method, dice.below(200)).await;
                assert_eq!(self.bench.all_jobs(), all, "history {seed}: none is ended");
                let is_free = there.is_empty() && !in_foreground;
                let is_lent = is_lend && matches!(answer, Some(Ok(_)));
                assert!(!is_lent || is_free, "history {seed}: it did not wait");
            }
        }
    }

    /// The asker of a request is gone: if it waited, it has ended now, and has changed nothing.
    async fn give_up(&mut self, number: usize) {
        let before = (self.bench.live(), self.bench.all_jobs());
        let waited = self.asked.len() == 1 && self.one_waits();
        let Asked { connection, call } = self.asked.swap_remove(number);
        call.abort();
        drop(call.await);
        self.close(connection).await;
        if waited {
            assert_eq!((self.bench.live(), self.bench.all_jobs()), before, "history {}", self.seed);
            self.seen.gave_up += 1;
        }
    }

    async fn step(&mut self, dice: &mut Dice) {
        let (pod, place) = (dice.of(&LENDERS), dice.of(&PLACES));
        match dice.below(12) {
            0..3 => {
                self.jobs += 1;
                let started = self.bench.start_job(pod, place, self.jobs);
                let is_kept = started.is_err_and(|why| why.contains("a lend waits until "));
                self.seen.kept_from_starting += usize::from(is_kept);
            }
            3 if self.bench.live().iter().any(|(live, _)| *live == pod) => self.begin(pod),
            4 => self.bench.end_jobs(pod, place).await,
            5 => self.foreground.retain(|command| command.pod != pod),
            6 if !self.asked.is_empty() => self.give_up(dice.below(self.asked.len())).await,
            7 if dice.below(8) == 0 => {
                self.foreground.retain(|command| command.pod != pod);
                // One that is stopped already is refused.
                let _ = self.stop(pod).await;
            }
            _ => self.take(dice).await,
        }
        self.check_writers();
    }

    /// What a command may write, no other Pod may.
    #[track_caller]
    fn check_writers(&self) {
        let live = self.bench.live();
        let check = |pod: &str, may: &dyn Fn(&PathBuf) -> bool| {
            for place in PLACES.map(|place| self.bench.place(place)).iter().filter(|at| may(at)) {
                for (other, scope) in &live {
                    let writes = scope.permission(place) == Some(Permission::Write);
                    let seed = self.seed;
                    assert!(
                        !writes || *other == pod,
                        "history {seed}: {other} at {place:?} of {pod}"
                    );
                }
            }
        };
        for pod in PODS {
            for job in self.bench.jobs_of(pod).list(&name(pod)) {
                let may = |at: &PathBuf| job.writes.iter().any(|dir| at.starts_with(dir));
                if job.ended_at.is_none() {
                    check(pod, &may);
                }
            }
        }
        for Foreground { pod, scope, .. } in &self.foreground {
            check(pod, &|at| scope.permission(at) == Some(Permission::Write));
        }
    }

    /// Everything ends, so each request that waits has its answer; then each Pod has what it had at first.
    async fn end(&mut self) {
        let waited = self.one_waits();
        self.foreground.clear();
        for pod in PODS {
            self.bench.end_jobs(pod, ".").await;
        }
        for Asked { connection, call } in std::mem::take(&mut self.asked) {
            self.seen.waited += usize::from(call.await.unwrap().is_ok() && waited);
            self.close(connection).await;
        }
        self.check_writers();
        for pod in PODS {
            assert_eq!(self.bench.jobs_of(pod).waiting(), [""; 0], "history {}", self.seed);
        }
        if self.bench.live().len() == PODS.len() {
            for pod in PODS {
                // A Pod that lent nothing is refused.
                let all = Method::reclaim(self.bench.place("."));
                let _ = self.client.call(Some(&name(pod)), all).await;
            }
            return;
        }
        for (pod, _) in self.bench.live() {
            self.stop(pod).await.unwrap();
        }
        for pod in PODS {
            let restore = Method::RestorePods { tree: false, plan: false };
            self.client.call(Some(&name(pod)), restore).await.unwrap();
        }
    }

    async fn stop(&self, pod: &str) -> Result<Event, Refusal> {
        let stop = Method::StopPods { tree: false, unless_busy: false, silent: false };
        self.client.call(Some(&name(pod)), stop).await
    }
}

#[tokio::test]
async fn each_way_to_lend_what_is_written_meanwhile_does_what_it_says_in_random_histories() {
    // One history: YOI_LENDS_OF=seed.
    let number = |name| std::env::var(name).ok().and_then(|count| count.parse().ok());
    let seeds = match number("YOI_LENDS_OF") {
        Some(seed) => seed..seed + 1,
        None => 0..number("YOI_LENDS").unwrap_or(300),
    };
    let bench = three_pods().await;
    let (client, _events) = bench.host.client().await.unwrap();
    let (foreground, asked, seen) = (Vec::new(), Vec::new(), Seen::default());
    let mut life = Life { bench, client, seed: 0, jobs: 0, foreground, asked, seen };
    for seed in seeds.clone() {
        life.seed = seed;
        let mut dice = Dice(seed);
        for _ in 0..STEPS {
            life.step(&mut dice).await;
        }
        life.end().await;
    }
    let Seen { refused, jobs_ended, commands_ended, waited, kept_from_starting, gave_up } =
        life.seen;
    let each = [refused, jobs_ended, commands_ended, waited, kept_from_starting, gave_up];
    assert!(seeds.end - seeds.start < 300 || !each.contains(&0), "{:?}", life.seen);
}

#[tokio::test]
async fn a_request_that_waits_changes_nothing_when_its_asker_is_gone() {
    let bench = three_pods().await;
    bench.start_job("p", "a", 1).unwrap();
    let (pod_api, parent) = (bench.pod_api("p"), name("p"));
    let spawn = SpawnPod { running: WhileRunning::Wait, ..bench.spawn_request("kid", "a") };
    tokio::select! {
        ended = pod_api.call(Some(&parent), Method::Spawn(spawn)) => panic!("{ended:?}"),
        () = bench.waits("p", true) => {}
    }
    // The tool of the Pod was cancelled.
    bench.waits("p", false).await;
    bench.end_jobs("p", "a").await;
    // A later request is taken after what that one could still do.
    bench.call(&parent, Method::lend("z", write(bench.place("b")))).await.unwrap();
    assert_eq!(bench.writers("a/file"), ["p"]);
    assert!(bench.host.shared.pod(&name("kid")).is_none());
}

#[tokio::test]
async fn where_a_command_was_waited_for_none_begins_until_the_last_one_has_ended() {
    let bench = three_pods().await;
    let owner = name("p");
    for (to, place) in [("y", "a"), ("z", "b")] {
        bench.call(&owner, Method::lend(to, write(bench.place(place)))).await.unwrap();
    }
    bench.start_job("y", "a", 1).unwrap();
    bench.start_job("z", "b", 2).unwrap();
    let (client, _events) = bench.host.client().await.unwrap();
    let reclaim = Method::Reclaim { path: bench.place("."), running: WhileRunning::Wait };
    let call = tokio::spawn(async move { client.call(Some(&owner), reclaim).await });
    bench.waits("y", true).await;
    bench.waits("z", true).await;
    bench.end_jobs("y", "a").await;
    let refused = bench.start_job("y", "a", 3).unwrap_err();
    assert!(refused.contains("a lend waits until "), "{refused}");
    bench.end_jobs("z", "b").await;
    call.await.unwrap().unwrap();
    assert_eq!(bench.writers("a/file"), ["p"]);
}
