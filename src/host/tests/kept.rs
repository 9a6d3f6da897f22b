//! What a family keeps when something of it is stopped, damaged or refused.

use crate::host::pod::resolved::Resolved;
use crate::host::tests::Bench;
use crate::host::tests::family::{name, write};
use crate::host::tests::pods::sql;
use crate::protocol::method::NewPod;
use crate::protocol::{Event, LastRun, Method, PodInfo, Refusal, SpawnPod, State};
use crate::scope::{Permission, Rule};
use crate::store::PodRow;

impl Bench {
    async fn row(&self, pod: &str) -> PodRow {
        self.host.shared.store.pod(&name(pod)).await.unwrap().unwrap()
    }

    /// What a person gave to a Pod or to one above it.
    fn given(&self, pod: &str) -> Vec<Rule> {
        let handle = self.host.shared.pod(&name(pod)).unwrap();
        handle.granted.borrow().given.allow.clone()
    }

    async fn resolved(&self, pod: &str) -> Resolved {
        Resolved::read(&self.row(pod).await.config)
    }

    pub async fn back(&self, pod: &str) -> Result<Event, Refusal> {
        self.client.call(None, Method::Restore { name: pod.into() }).await
    }

    /// Waits until a Pod rests after another run than this one.
    async fn rested(&mut self, pod: &str, before: Option<LastRun>) {
        loop {
            let info = self.info(&name(pod)).await;
            if info.last_result != before && info.state == State::Idle {
                return;
            }
            self.next(|e| matches!(e, Event::PodChanged { .. })).await;
        }
    }

    /// The same host, started again after its files were changed behind its back.
    pub async fn damaged_while_away(self, change: impl FnOnce(&std::path::Path)) -> Self {
        self.host.end().await;
        change(&self.root);
        Self::at(self._root).await
    }

    /// The same, with statements that changed the database.
    pub async fn database_changed_while_away(self, sql: &str) -> Self {
        let change = |root: &std::path::Path| {
            let db = rusqlite::Connection::open(root.join("home/data/yoi.db")).unwrap();
            db.execute_batch(sql).unwrap();
        };
        self.damaged_while_away(change).await
    }
}

/// What of a Pod must be the same after it came back.
fn lasting(info: &PodInfo) -> impl PartialEq + std::fmt::Debug + use<> {
    (info.parent.clone(), info.cwd.clone(), info.model.clone(), info.scope.clone())
}

#[tokio::test]
async fn a_child_is_back_with_its_own_model_directory_instruction_and_scope() {
    let bench = Bench::family().await;
    let new = SpawnPod { instruction: Some("You test.".into()), ..bench.spawn_request("kid", "a") };
    let before = lasting(&bench.spawn_with("p", new).await.unwrap());
    let model = bench.root.join("other.toml");
    std::fs::copy(bench.root.join("script.toml"), &model).unwrap();
    let model = format!("rehearsal:{}", model.display());
    bench.call(&name("p"), Method::SetModel { model }).await.unwrap();
    bench.stop("kid", false).await.unwrap();
    let bench = bench.restarted().await;
    bench.back("kid").await.unwrap();
    assert_eq!(lasting(&bench.info(&name("kid")).await), before);
    assert_eq!(bench.resolved("kid").await.instruction.as_deref(), Some("You test."));
    assert_eq!(bench.writers("a/x"), ["kid"]);
    assert_eq!(bench.writers("b/x"), ["p"]);
}

#[tokio::test]
async fn no_person_gave_the_scope_of_a_child_whose_parent_is_deleted() {
    let bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    bench.spawn("kid", "sub", "a/deep").await.unwrap();
    let w = [write(bench.root.join("w"))];
    assert_eq!(bench.given("sub"), w);
    bench.stop("p", true).await.unwrap();
    bench.back("sub").await.unwrap();
    assert_eq!(bench.given("sub"), w, "its uppermost parent is stopped and not deleted");
    bench.back("p").await.unwrap();
    bench.call(&name("kid"), Method::Remove).await.unwrap();
    assert_eq!(bench.given("sub"), []);
    assert_eq!(bench.writers("a/deep/x"), ["sub"]);
    bench.call(&name("sub"), Method::Fork { name: Some(name("f")), at: None }).await.unwrap();
    let bench = bench.restarted().await;
    assert_eq!((bench.given("sub"), bench.given("f")), (vec![], vec![]));
    let part = write(bench.root.join("w/b"));
    let lend = Method::lend("sub", part.clone());
    bench.call(&name("p"), lend).await.unwrap();
    assert_eq!(bench.given("sub"), [part]);
}

#[tokio::test]
async fn the_mark_of_a_child_outlives_its_parent_in_older_records_and_without_the_store() {
    let mut bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    bench.rested("kid", None).await;
    let older = |root: &std::path::Path| {
        sql(root, "UPDATE pods SET config = json_remove(config, '$.spawned')");
    };
    let bench = bench.damaged_while_away(older).await;
    bench.stop("p", false).await.unwrap();
    bench.call(&name("p"), Method::Remove).await.unwrap();
    let bench = bench.restarted().await;
    assert_eq!(bench.given("kid"), []);
    let lost =
        |root: &std::path::Path| std::fs::remove_file(root.join("home/data/yoi.db")).unwrap();
    let bench = bench.damaged_while_away(lost).await;
    bench.back("kid").await.unwrap();
    assert_eq!(bench.given("kid"), []);
    assert_eq!(bench.writers("a/x"), ["kid"]);
}

#[tokio::test]
async fn a_pod_that_cannot_come_back_says_why_and_stays_stopped() {
    let bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    bench.stop("kid", false).await.unwrap();
    let at = bench.root.join("w/a");
    std::fs::remove_dir(&at).unwrap();
    let refused = bench.back("kid").await.unwrap_err().message;
    let why = format!("its directory {} is not there", at.display());
    assert!(refused.starts_with(&format!("pod `kid` cannot be restored: {why}; if")), "{refused}");
    assert_eq!(bench.info(&name("kid")).await.state, State::Stopped);
    assert_eq!(bench.writers("a/x"), ["p"]);
    let bench = bench
        .damaged_while_away(|root| {
            sql(root, "UPDATE pods SET config = 'not JSON' WHERE key = 'kid'")
        })
        .await;
    let refused = bench.back("kid").await.unwrap_err().message;
    assert!(refused.starts_with("pod `kid` cannot be restored: its record is damaged ("));
    let sessions = || std::fs::read_dir(bench.root.join("home/data/sessions")).unwrap().count();
    let before = sessions();
    bench.call(&name("kid"), Method::Remove).await.unwrap();
    let refused = bench.back("kid").await.unwrap_err().message;
    assert_eq!(refused, "pod state missing for `kid`");
    let bench = bench.restarted().await;
    assert!(bench.host.shared.damaged.borrow().is_empty());
    let sessions = || std::fs::read_dir(bench.root.join("home/data/sessions")).unwrap().count();
    assert_eq!(sessions(), before - 1);
}

#[tokio::test]
async fn a_fork_is_found_under_its_own_name_when_the_store_is_lost() {
    let mut bench = Bench::family().await;
    bench.call(&name("p"), Method::say("one")).await.unwrap();
    bench.rested("p", None).await;
    bench.call(&name("p"), Method::Fork { name: Some(name("f")), at: None }).await.unwrap();
    let lost =
        |root: &std::path::Path| std::fs::remove_file(root.join("home/data/yoi.db")).unwrap();
    let bench = bench.damaged_while_away(lost).await;
    let names = bench.host.shared.family().into_iter().map(|info| info.name.to_string());
    assert_eq!(names.collect::<Vec<_>>(), ["p", "f"]);
    for pod in ["p", "f"] {
        assert_eq!(bench.said(&name(pod)).await, ["You said one."]);
    }
}

#[tokio::test]
async fn an_unreachable_child_is_stopped_and_its_scope_returns() {
    let mut bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    bench.is(&name("kid"), State::Idle).await;
    std::fs::remove_dir_all(bench.root.join("home/run/kid")).unwrap();
    std::fs::remove_dir_all(bench.root.join("home/data/sessions")).unwrap();
    let stopped = bench.stop("kid", false).await.unwrap();
    assert_eq!(stopped[0].returned, [write(bench.root.join("w/a"))]);
    assert_eq!(bench.writers("a/x"), ["p"]);
}

#[tokio::test]
async fn the_family_needs_nothing_of_the_runtime_directory() {
    let bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    let before = bench.holding();
    let empty = |root: &std::path::Path| {
        let _ = std::fs::remove_dir_all(root.join("home/run"));
    };
    let bench = bench.damaged_while_away(empty).await;
    assert_eq!(bench.holding(), before);
    assert_eq!(bench.info(&name("kid")).await.parent, Some(name("p")));
    bench.stop("kid", false).await.unwrap();
    assert_eq!(bench.writers("a/x"), ["p"]);
}

#[tokio::test]
async fn a_child_and_a_peer_that_were_restored_are_reached_and_tell_as_before() {
    let mut bench = Bench::family().await;
    bench.root_pod("z", "z").await;
    bench.call(&name("p"), Method::Peer { name: "z".into() }).await.unwrap();
    bench.spawn("p", "kid", "a").await.unwrap();
    // The child event of its first run was taken.
    bench.rested("p", None).await;
    let stop = Method::StopPods { tree: false, unless_busy: false, silent: false };
    bench.pod_api("p").call(Some(&name("kid")), stop).await.unwrap();
    bench.stop("z", false).await.unwrap();
    let mut bench = bench.restarted().await;
    for pod in ["kid", "z"] {
        bench.back(pod).await.unwrap();
    }
    let (pod_api, before) = (bench.pod_api("p"), bench.info(&name("p")).await.last_result);
    pod_api.call(Some(&name("z")), Method::Notify { message: "hi".into() }).await.unwrap();
    pod_api.call(Some(&name("kid")), Method::say("again")).await.unwrap();
    bench.rested("p", before).await;
    assert_eq!(bench.said(&name("kid")).await.last().unwrap(), "You said again.");
    assert!(bench.host.shared.store.messages(&name("p")).await.unwrap().is_empty());
}

#[tokio::test]
async fn two_hundred_children_that_cannot_start_are_reported_and_leave_nothing() {
    let bench = Bench::family().await;
    bench.call(&name("p"), Method::SetModel { model: "anthropic/claude-x".into() }).await.unwrap();
    for n in 0..200 {
        let refused = bench.spawn("p", &format!("kid-{n}"), "a").await.unwrap_err();
        assert!(refused.message.contains("no key for anthropic"), "{refused}");
    }
    assert_eq!(bench.host.shared.family().len(), 1);
}

#[tokio::test]
async fn a_child_whose_record_is_damaged_keeps_nothing_of_its_parents_scope() {
    let bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    bench.spawn("kid", "sub", "a/deep").await.unwrap();
    let damage = |root: &std::path::Path| {
        sql(root, "UPDATE pods SET scope = 'not JSON' WHERE key = 'kid'");
    };
    let bench = bench.damaged_while_away(damage).await;
    assert_eq!(bench.writers("a/x"), ["p"]);
    assert_eq!(bench.writers("a/deep/x"), ["sub"], "who is below it keeps its own");
    assert!(bench.host.shared.store.leases().await.unwrap().is_empty());
    let bench = bench.restarted().await;
    assert_eq!(bench.writers("a/deep/x"), ["sub"]);
}

#[tokio::test]
async fn a_damaged_lease_record_gives_no_path_a_second_writer() {
    let bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    bench.spawn("kid", "sub", "a/deep").await.unwrap();
    let before = bench.holding();
    let damage = |root: &std::path::Path| sql(root, "UPDATE loans SET rule = 'not JSON'");
    let bench = bench.damaged_while_away(damage).await;
    assert_eq!(bench.holding(), before);
    assert_eq!(bench.host.shared.store.leases().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_spawn_whose_socket_cannot_be_made_is_taken_back() {
    let bench = Bench::family().await;
    let at = bench.root.join("home/run/kid/sock");
    std::fs::create_dir_all(at.join("in the way")).unwrap();
    let refused = bench.spawn("p", "kid", "a").await.unwrap_err().message;
    assert!(refused.starts_with("could not start pod `kid`: cannot listen on "), "{refused}");
    assert!(bench.host.shared.pod(&name("kid")).is_none());
    assert!(bench.host.shared.store.leases().await.unwrap().is_empty());
    assert_eq!(bench.writers("a/x"), ["p"]);
}

#[tokio::test]
async fn a_pod_that_opens_a_lent_directory_reads_the_name_of_its_writer() {
    let bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    bench.spawn("kid", "sub", "a/deep").await.unwrap();
    let new = NewPod {
        name: Some(name("late")),
        cwd: bench.root.join("w/a/deep"),
        scope: Some(vec![write(bench.root.join("w/a/deep"))]),
        ..NewPod::default()
    };
    let Event::Created { info } = bench.client.call(None, Method::New(new)).await.unwrap() else {
        panic!()
    };
    assert!(
        info.notes[0].starts_with("read-only: sub holds write here · :lend sub "),
        "{:?}",
        info.notes
    );
    bench.stop("sub", false).await.unwrap();
    let held = bench.info(&name("late")).await.scope[0].permission;
    assert_eq!((held, bench.writers("a/deep/x")), (Permission::Read, vec!["kid".to_owned()]));
}

#[tokio::test]
async fn a_pod_beside_a_family_at_rest_reads_only_what_that_has_lent() {
    let bench = Bench::family().await;
    bench.spawn("p", "one", "a").await.unwrap();
    bench.spawn("p", "two", "b/deep").await.unwrap();
    let late = bench.root_pod("late", "w").await;
    let places = [("one", "a"), ("two", "b/deep")];
    let notes = late.notes.iter().filter(|note| note.starts_with("read-only"));
    let notes: Vec<&String> = notes.collect();
    assert_eq!(notes.len(), places.len(), "{notes:?}");
    for (note, (holder, place)) in notes.into_iter().zip(places) {
        let place = bench.root.join("w").join(place).display().to_string();
        let holds = format!("read-only below {place}: {holder} holds write there · ");
        let lend = format!(":lend {holder} late {place} hands it over · ");
        assert!(note.starts_with(&(holds + &lend)), "{note}");
        // No run that ends gives back what was lent.
        assert!(!note.contains("writes there when"), "{note}");
    }
}

#[tokio::test]
async fn a_profile_gives_model_and_instruction_and_the_call_replaces_the_instruction_alone() {
    let settings = |root: &std::path::Path| {
        let config = root.join("home/config");
        std::fs::create_dir_all(&config).unwrap();
        let script = root.join("script.toml");
        let text = format!(
            "[profile.review]\nmodel = \"rehearsal:{}\"\nmax_turns = 7\ninstruction = \"Review.\"\n\
             [profile.default]\nmax_turns = 9\n",
            script.display()
        );
        std::fs::write(config.join("config.toml"), text).unwrap();
    };
    let bench = Bench::family().await.damaged_while_away(settings).await;
    let of = |pod: &str, profile: Option<&str>, instruction: Option<&str>| SpawnPod {
        profile: profile.map(str::to_owned),
        instruction: instruction.map(str::to_owned),
        ..bench.spawn_request(pod, pod)
    };
    for (pod, profile, instruction, turns, shown) in [
        ("plain", Some("inherit"), None, bench.resolved("p").await.max_turns, None),
        ("usual", None, None, 9, None),
        ("named", Some("review"), None, 7, Some("Review.")),
        ("both", Some("review"), Some("Only look."), 7, Some("Only look.")),
    ] {
        let kid = bench.spawn_with("p", of(pod, profile, instruction)).await.unwrap();
        let resolved = bench.resolved(pod).await;
        assert_eq!((resolved.max_turns, resolved.instruction.as_deref()), (turns, shown), "{pod}");
        assert!(kid.model.starts_with("rehearsal:"), "{pod}: {}", kid.model);
        assert_eq!(kid.scope, [write(bench.root.join("w").join(pod))], "no more than it was lent");
    }
    let path = of("x", Some("../review.toml"), None);
    let refused = bench.spawn_with("p", path).await.unwrap_err().message;
    let known = "there are: default, inherit, review";
    assert_eq!(
        refused,
        format!("invalid SpawnPod.profile: profile not found: ../review.toml; {known}")
    );
}

#[tokio::test]
async fn a_registration_that_fails_keeps_the_relations_that_were_there() {
    let bench = Bench::family().await;
    for pod in ["y", "z"] {
        bench.root_pod(pod, pod).await;
    }
    let own = name("p");
    let peer = |to: &str| bench.call(&own, Method::Peer { name: to.into() });
    peer("y").await.unwrap();
    let before = bench.host.shared.store.peers().await.unwrap();
    sql(
        &bench.root,
        "CREATE TRIGGER full BEFORE INSERT ON peers BEGIN SELECT RAISE(ABORT, 'disk full'); END",
    );
    for bad in ["z", "ghost", "p", "../x"] {
        assert!(peer(bad).await.is_err(), "{bad}");
        assert_eq!(bench.host.shared.store.peers().await.unwrap(), before);
        assert_eq!(*bench.host.shared.peers.borrow().as_ref(), before);
    }
    sql(&bench.root, "DROP TRIGGER full");
    peer("z").await.unwrap();
    assert_eq!(bench.host.shared.store.peers().await.unwrap().len(), 2);
}
