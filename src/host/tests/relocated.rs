//! A family whose directory was moved.

use crate::host::tests::Bench;
use crate::host::tests::family::{name, write};
use crate::protocol::entry::SystemItem;
use crate::protocol::{Event, Fact, Method, PodName, Refusal, State};
use crate::store::recover;
use std::path::PathBuf;

impl Bench {
    async fn relocate(&self, pod: &str, cwd: PathBuf) -> Result<(PathBuf, Vec<PodName>), Refusal> {
        match self.call(&name(pod), Method::Relocate { cwd }).await? {
            Event::Relocated { to, pods, .. } => Ok((to, pods)),
            other => panic!("{other:?}"),
        }
    }

    /// Waits until a Pod has no run and no message that could begin one.
    async fn rests(&mut self, pod: &str) {
        let pod = name(pod);
        loop {
            self.is(&pod, State::Idle).await;
            // Answered only after the Pod looked for messages behind its last run.
            self.said(&pod).await;
            let waits = self.host.shared.store.messages(&pod).await.unwrap();
            if waits.is_empty() && self.info(&pod).await.state == State::Idle {
                return;
            }
        }
    }
}

#[tokio::test]
async fn a_family_follows_its_directory_with_its_scopes_and_leases() {
    let mut bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    bench.spawn("kid", "sub", "a/deep").await.unwrap();
    bench.root_pod("z", "z").await;
    let lend = Method::lend("z", write(bench.root.join("w/b")));
    bench.call(&name("p"), lend).await.unwrap();
    // What a child did first is a message for its parent.
    for pod in ["sub", "kid", "p"] {
        bench.rests(pod).await;
    }
    bench.say_and_wait(&name("p"), "hello").await;
    let (old, new) = (bench.root.join("w"), bench.root.join("moved"));
    let still = bench.relocate("p", bench.root.join("z")).await.unwrap_err();
    assert!(still.message.contains("which is still there"), "{still}");
    let quietly = Method::StopPods { tree: false, unless_busy: false, silent: true };
    bench.call(&name("kid"), quietly).await.unwrap();
    std::fs::rename(&old, &new).unwrap();
    let gone = format!("its directory {} is not there", old.display());
    let forked = bench.call(&name("p"), Method::Fork { name: None, at: None }).await.unwrap_err();
    assert!(forked.message.contains("cannot be forked") && forked.message.contains(&gone));
    let restored = bench.back("kid").await.unwrap_err();
    assert!(restored.message.contains(":restore --cwd=DIR kid has"), "{restored}");

    // From a child: its own place, and its whole family follows.
    let moved = bench.relocate("kid", new.join("a")).await.unwrap();
    assert_eq!(moved, (new.clone(), vec![name("p"), name("kid"), name("sub")]));
    bench.back("kid").await.unwrap();
    for restart in [false, true] {
        if restart {
            bench = bench.restarted().await;
        }
        for (pod, cwd) in [("p", new.clone()), ("kid", new.join("a")), ("sub", new.join("a/deep"))]
        {
            let info = bench.info(&name(pod)).await;
            assert_eq!((info.cwd, info.workspace), (cwd, new.clone()), "{pod}");
            assert_ne!(info.state, State::Stopped, "{pod}");
        }
        let holds = |path: &str| bench.writers(new.join(path).to_str().unwrap());
        assert_eq!(
            [holds("x"), holds("a/x"), holds("a/deep/x"), holds("b/x")],
            ["p", "kid", "sub", "z"].map(|pod| vec![pod.to_owned()])
        );
        assert_eq!(bench.writers("x"), Vec::<String>::new());
    }
    let records = recover(&bench.host.shared.dirs.data, &std::collections::BTreeSet::new());
    assert!(records.iter().any(|row| row.name == name("p") && row.cwd == new), "{records:?}");
    bench.say_and_wait(&name("p"), "hello").await;
    let directory = format!("Working directory: {}", new.display());
    let notes = bench.notes(&name("p")).await;
    assert!(notes.iter().any(|(_, note)| note.contains(&directory)), "{notes:?}");
    let facts = bench.facts(&name("p")).await;
    let message = facts.iter().rposition(|fact| matches!(fact, Fact::UserInput { .. }));
    let is_note =
        |fact: &Fact| matches!(fact, Fact::SystemItem { item: SystemItem::Knowledge { .. }, .. });
    let note = facts.iter().rposition(is_note);
    assert!(note.is_some() && note < message, "the message comes last: {facts:?}");
}

#[tokio::test]
async fn a_directory_is_followed_only_to_a_place_where_a_pod_may_write_and_by_resting_pods() {
    let mut bench = Bench::family().await;
    bench.root_pod("q", "q").await;
    bench.hang("p").await;
    let new = bench.root.join("moved");
    std::fs::rename(bench.root.join("w"), &new).unwrap();
    let busy = bench.relocate("p", new.clone()).await.unwrap_err();
    assert!(busy.message.contains("in the middle of a run; :pause p first"), "{busy}");
    bench.call(&name("p"), Method::Cancel).await.unwrap();
    bench.is(&name("p"), State::Idle).await;
    for (place, why) in [(PathBuf::from("/"), "is read only"), (bench.root.join("none"), "")] {
        let refused = bench.relocate("p", place).await.unwrap_err();
        assert!(refused.message.contains(why), "{refused}");
    }
    // Another Pod writes there already: the one that comes reads.
    std::fs::remove_dir_all(&new).unwrap();
    bench.relocate("p", bench.root.join("q")).await.unwrap();
    assert_eq!(bench.writers(bench.root.join("q/x").to_str().unwrap()), ["q"]);
}
