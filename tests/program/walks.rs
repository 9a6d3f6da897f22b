//! Random walks of verbs over one Pod of the real program: messages, tools, rewinds, undos, forks,
//! compactions, pauses, cancels, and hosts that are killed with SIGKILL, also in the middle of what they do.
//! After each step the transcript on a screen, `yoi log`, the next model request, the list of what can be
//! gone back to and the stored files agree with a small model, which keeps whole histories.
//!
//! `YOI_WALKS` is how many walks there are, `YOI_SEED` the seed of the first one.

#[path = "walks/history.rs"]
mod history;
#[path = "walks/life.rs"]
mod life;
#[path = "walks/provider.rs"]
pub mod provider;
#[path = "walks/reading.rs"]
mod reading;
#[path = "walks/steps.rs"]
mod steps;
#[path = "walks/words.rs"]
mod words;

use crate::bench::Bench;
use crate::pty::Terminal;
use history::{Dice, History};
use life::{Life, serve};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use steps::Step;
use tokio::sync::mpsc;
use yoi::protocol::method::NewPod;
use yoi::protocol::{Method, PodName};

const STEPS: usize = 12;
/// A screen on which the transcript of a walk has room.
const SIZE: (u16, u16) = (100, 130);
/// Walks at one time. Most of a walk is waiting for other processes.
const AT_ONCE: u64 = 4;

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// What a walk knows beside the history.
struct Walk {
    bench: Bench,
    screen: Option<Terminal>,
    requests: mpsc::Receiver<Vec<String>>,
    dice: Dice,
    pod: PodName,
    /// What tools wrote, by the names of the files. No verb takes it back.
    files: BTreeMap<String, String>,
    /// What was done, for a person who looks for a mistake.
    done: Vec<String>,
}

impl Walk {
    fn new(seed: u64) -> Self {
        let bench = Bench::new();
        let (sender, requests) = mpsc::channel(64);
        bench.settings(&format!(
            "model = 'fake/m'\ncompaction.keep_tokens = 0\n[provider.fake]\nwire = 'chat'\nkey_env = []\n\
             base_url = '{}'\n",
            provider::provider(bench.ws(), sender)
        ));
        let pod = PodName::parse("w").expect("a name");
        let (files, done) = (BTreeMap::new(), Vec::new());
        Self { bench, screen: None, requests, dice: Dice(seed), pod, files, done }
    }

    /// Walks from host to host.
    async fn walk(&mut self) -> Result<(), String> {
        // What the history may be now: more than one when the last host was killed in a verb.
        let (mut candidates, mut n) = (vec![History::default()], 0);
        while n < STEPS {
            let host = serve(&self.bench);
            let mut life = Life::begin(self, n == 0).await;
            let mut model = life.find_history(&candidates).await?;
            life.check(&model).await?;
            candidates = loop {
                if n == STEPS {
                    break Vec::new();
                }
                n += 1;
                match life.step(&model, n).await? {
                    Step::Done(now) => model = now,
                    Step::Kill(candidates) => break candidates,
                }
                life.check(&model).await?;
            };
            // With SIGKILL.
            drop(host);
        }
        Ok(())
    }

    async fn new_pod(&self, client: &yoi::client::Client) {
        let new =
            NewPod { name: Some(self.pod.clone()), cwd: self.bench.ws(), ..NewPod::default() };
        client.call(None, Method::New(new)).await.expect("a new Pod");
    }
}

/// Takes walks until there is none left or one fails.
fn walk_all(next: &AtomicU64, end: u64) -> Result<(), String> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return Ok(());
        }
        let mut walk = Walk::new(seed);
        let walked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            runtime.block_on(walk.walk())
        }));
        let broken = match walked {
            Ok(Ok(())) => continue,
            Ok(Err(broken)) => broken,
            Err(_) => "the step after these panicked".into(),
        };
        // The others end with the walk in which they are.
        next.store(end, Ordering::Relaxed);
        let screen = walk.screen.as_ref().map(Terminal::text).unwrap_or_default();
        return Err(format!("YOI_SEED={seed}: {broken}\n{}\n{screen}", walk.done.join("\n")));
    }
}

#[test]
fn after_any_walk_of_verbs_screen_log_request_and_files_agree_with_whole_histories() {
    let first = number("YOI_SEED", 1);
    let (next, end) = (AtomicU64::new(first), first + number("YOI_WALKS", 10));
    let broken: Vec<String> = std::thread::scope(|scope| {
        let walkers: Vec<_> =
            (0..AT_ONCE.min(end - first)).map(|_| scope.spawn(|| walk_all(&next, end))).collect();
        let ends = walkers.into_iter().map(|walker| walker.join().expect("panics are caught"));
        ends.filter_map(Result::err).collect()
    });
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}
