use crate::config::Destination;
use crate::mesh::machines::Peering;
use crate::protocol::entry::{Entry, Fact, SegmentOrigin, domain};
use crate::protocol::name::EntryId;
use crate::protocol::name::{PodName, SegmentId, SessionId};
use crate::protocol::{Action, ApprovalRequest, Pattern, PeerEdge, Verdict};
use crate::scope::lease::{Changes, Lease, LeaseKind, Restrictions};
use crate::scope::{Permission, Rule, Scope};
use crate::session::Files;
use crate::store::open::open;
use crate::store::schema::MIGRATIONS;
use crate::store::{Change, Decided, Discard, Said, StoredApproval, StoredRule};
use crate::store::{
    DamagedRow, MailboxKind, MailboxMessage, PodRow, Store, StoreError, Wanted, recover,
};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn name(text: &str) -> PodName {
    PodName::parse(text).unwrap()
}

fn pod(text: &str) -> PodRow {
    let rule = Rule { target: "/w".into(), permission: Permission::Write, recursive: true };
    PodRow {
        name: name(text),
        parent: None,
        wanted: Wanted::Live,
        cwd: Path::new(OsStr::from_bytes(b"/w/\xff")).into(),
        workspace: "/w".into(),
        session: SessionId::new(),
        segment: None,
        config: json!({"model": "m"}),
        scope: Scope { allow: vec![rule], deny: Vec::new() },
        created: 5,
        since: 6,
        seen: true,
        later: None,
        last: Some("Read a.txt".into()),
        env: BTreeMap::from([("PATH".into(), "/bin".into())]),
        restrictions: Restrictions {
            capped: vec![Rule::new("/w/x", Permission::Write)],
            ..Restrictions::default()
        },
        last_run: None,
        cost: None,
        ephemeral: false,
    }
}

fn mailbox(id: &str, text: &str) -> MailboxMessage {
    MailboxMessage {
        id: id.into(),
        kind: MailboxKind::Input,
        payload: json!({ "text": text }),
        created: 7,
    }
}

struct Bench {
    temp: tempfile::TempDir,
    path: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("data/yoi.db");
        Self { temp, path }
    }

    async fn open(&self) -> Store {
        Store::open(&self.path).await.unwrap().0
    }

    fn with_row_changed(&self, sql: &str) {
        Connection::open(&self.path).unwrap().execute_batch(sql).unwrap();
    }
}

#[tokio::test]
async fn a_row_comes_back_as_it_was_put_in_also_after_reopening() {
    let bench = Bench::new();
    let (store, opening) = Store::open(&bench.path).await.unwrap();
    assert!(opening.created && opening.set_aside.is_none() && opening.migrated.is_none());
    let parent = pod("Parent");
    let child = PodRow { parent: Some(name("parent")), created: 9, ..pod("child") };
    store.create_pod(parent.clone()).await.unwrap();
    store.create_pod(child.clone()).await.unwrap();
    let child = PodRow { parent: Some(name("Parent")), ..child };
    let rows = vec![Ok(parent), Ok(child.clone())];
    assert_eq!(store.pods().await.unwrap(), rows);
    assert_eq!(store.pod(&name("CHILD")).await.unwrap(), Some(child));
    drop(store);
    let (store, opening) = Store::open(&bench.path).await.unwrap();
    assert!(!opening.created);
    assert_eq!(store.pods().await.unwrap(), rows);
}

#[tokio::test]
async fn the_database_and_all_its_files_are_private() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.create_pod(pod("a")).await.unwrap();
    let dir = bench.path.parent().unwrap();
    for file in std::fs::read_dir(dir).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.path().display());
    }
    assert_eq!(std::fs::metadata(dir).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn a_name_is_taken_whatever_its_case_and_a_parent_must_be_there() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.create_pod(pod("App")).await.unwrap();
    let error = store.create_pod(pod("aPP")).await.unwrap_err();
    assert!(matches!(error, StoreError::Taken(_)), "{error}");
    let orphan = PodRow { parent: Some(name("nobody")), ..pod("b") };
    let error = store.create_pod(orphan).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no pod named nobody");
}

#[tokio::test]
async fn each_setter_changes_its_own_column() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.create_pod(pod("a")).await.unwrap();
    let a = name("A");
    let segment = Some(SegmentId::new());
    store.set_segment(&a, segment).await.unwrap();
    store.set_since(&a, 77).await.unwrap();
    store.set_config(&a, &json!({"model": "n"})).await.unwrap();
    store.set_seen(&a, false).await.unwrap();
    store.set_last(&a, None).await.unwrap();
    store.set_cost(&a, Some(0.25)).await.unwrap();
    let row = store.pod(&a).await.unwrap().unwrap();
    let expected = PodRow {
        segment,
        since: 77,
        config: json!({"model": "n"}),
        seen: false,
        last: None,
        cost: Some(0.25),
        session: row.session,
        ..pod("a")
    };
    assert_eq!(row, expected);
    let error = store.set_seen(&name("nobody"), true).await.unwrap_err();
    assert!(matches!(error, StoreError::NoSuchPod(_)), "{error}");
}

#[tokio::test]
async fn removing_a_pod_deletes_its_mailbox_and_frees_its_name_and_children() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.create_pod(pod("a")).await.unwrap();
    store.create_pod(PodRow { parent: Some(name("a")), ..pod("b") }).await.unwrap();
    store.add_message(&name("a"), mailbox("1", "x")).await.unwrap();
    store.remove_pod(&name("A")).await.unwrap();
    assert_eq!(store.pod(&name("a")).await.unwrap(), None);
    assert_eq!(store.pod(&name("b")).await.unwrap().unwrap().parent, None);
    store.create_pod(pod("a")).await.unwrap();
    assert_eq!(store.messages(&name("a")).await.unwrap(), []);
    let error = store.remove_pod(&name("nobody")).await.unwrap_err();
    assert!(matches!(error, StoreError::NoSuchPod(_)), "{error}");
}

#[tokio::test]
async fn the_session_of_a_pod_that_is_deleted_is_marked_until_it_is_settled() {
    let bench = Bench::new();
    let store = bench.open().await;
    let (a, b) = (pod("a"), PodRow { session: SessionId::new(), ..pod("b") });
    store.create_pod(a.clone()).await.unwrap();
    store.create_pod(b.clone()).await.unwrap();
    store.discard(b.session).await.unwrap();
    store.discard(b.session).await.unwrap();
    store.remove_pod(&a.name).await.unwrap();
    let marked = [
        Discard { session: a.session, pod: None },
        Discard { session: b.session, pod: Some(b.name.clone()) },
    ];
    assert_eq!(store.discards().await.unwrap(), marked);
    store.keep_session(a.session).await.unwrap();
    assert_eq!(store.discards().await.unwrap(), marked[1..]);
}

#[tokio::test]
async fn a_request_that_was_decided_is_not_withdrawn() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.create_pod(pod("alice")).await.unwrap();
    let withdrawn = Verdict::Withdrawn { why: "it went on".into() };
    for (id, answered) in [("1", Some(Verdict::Once)), ("2", None), ("3", None)] {
        if id != "3" {
            store.add_approval(question(id)).await.unwrap();
        }
        if let Some(verdict) = answered.clone() {
            let decided = Decided { approval: id.into(), verdict, rule: None };
            assert!(store.decide_approval(decided).await.unwrap());
        }
        let counts = store.withdraw_approval(id, withdrawn.clone()).await.unwrap();
        assert_eq!(counts, answered.unwrap_or_else(|| withdrawn.clone()), "{id}");
    }
    let late = Decided { approval: "2".into(), verdict: Verdict::Once, rule: None };
    assert!(!store.decide_approval(late).await.unwrap(), "what was withdrawn takes no answer");
}

#[tokio::test]
async fn a_stop_ends_open_approval_requests_and_keeps_decided_ones() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.create_pod(pod("alice")).await.unwrap();
    for id in ["1", "2"] {
        store.add_approval(question(id)).await.unwrap();
    }
    let decided = |id: &str| Decided { approval: id.into(), verdict: Verdict::Once, rule: None };
    assert!(store.decide_approval(decided("1")).await.unwrap());
    let wanted = vec![(name("alice"), Wanted::Stopped, 7)];
    store.change_family(Change { wanted, ..Change::default() }).await.unwrap();
    let left: Vec<String> =
        store.approvals().await.unwrap().into_iter().map(|row| row.approval.id).collect();
    assert_eq!(left, ["1"]);
    assert!(!store.decide_approval(decided("2")).await.unwrap(), "its Pod is stopped");
}

#[tokio::test]
async fn a_change_whose_answer_comes_too_late_changes_nothing() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.create_pod(pod("a")).await.unwrap();
    let rule = Rule::new("/w", Permission::Write);
    let kind = LeaseKind::Lent;
    let lease = Lease { lender: "a".into(), borrower: "a".into(), rule, kind };
    let answer = Some(Decided { approval: "1".into(), verdict: Verdict::Once, rule: None });
    let leases = Changes { leases: vec![(1, Some(lease))], ..Changes::default() };
    let change = Change { answer, leases, ..Change::default() };
    let error = store.change_family(change).await.unwrap_err();
    assert!(matches!(error, StoreError::NotAsked), "{error}");
    assert_eq!(store.leases().await.unwrap(), []);
}

#[tokio::test]
async fn one_damaged_row_hides_no_other() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.create_pod(pod("bad")).await.unwrap();
    let good = PodRow { created: 9, ..pod("good") };
    store.create_pod(good.clone()).await.unwrap();
    for damage in ["scope = '{'", "segment = '?'", "session = 'x'", "wanted = 'maybe'"] {
        bench.with_row_changed(&format!("UPDATE pods SET {damage} WHERE key = 'bad'"));
        let rows = store.pods().await.unwrap();
        let Err(DamagedRow { name, reason, .. }) = &rows[0] else { panic!("{rows:?}") };
        assert_eq!(name, "bad");
        assert!(reason.starts_with(damage.split(' ').next().unwrap()), "{reason}");
        assert_eq!(rows[1], Ok(good.clone()));
    }
    let error = store.pod(&name("bad")).await.unwrap_err();
    assert!(error.to_string().contains(":rm bad"), "{error}");
}

#[tokio::test]
async fn a_mailbox_message_is_accepted_once_and_taken_once() {
    let bench = Bench::new();
    let store = bench.open().await;
    let a = name("a");
    store.create_pod(pod("a")).await.unwrap();
    store.create_pod(pod("b")).await.unwrap();
    for (id, new) in [("2", true), ("1", true), ("2", false), ("3", true)] {
        assert_eq!(store.add_message(&a, mailbox(id, id)).await.unwrap(), new, "{id}");
    }
    assert!(store.add_message(&name("b"), mailbox("1", "of b")).await.unwrap());
    assert!(store.edit_input(&a, "1", &json!({"text": "edited"})).await.unwrap());
    let waiting = vec![mailbox("2", "2"), mailbox("1", "edited"), mailbox("3", "3")];
    assert_eq!(store.messages(&a).await.unwrap(), waiting);

    store.take_message(&a, vec!["2".into(), "unknown".into()]).await.unwrap();
    assert!(store.drop_input(&a, "3").await.unwrap());
    assert!(!store.drop_input(&a, "3").await.unwrap());
    assert!(!store.edit_input(&a, "2", &Value::Null).await.unwrap());
    drop(store);
    let store = bench.open().await;
    for id in ["1", "2", "3"] {
        assert!(!store.add_message(&a, mailbox(id, "again")).await.unwrap());
    }
    assert_eq!(store.messages(&a).await.unwrap(), [mailbox("1", "edited")]);
    assert_eq!(store.messages(&name("b")).await.unwrap(), [mailbox("1", "of b")]);
    let error = store.add_message(&name("nobody"), mailbox("1", "x")).await.unwrap_err();
    assert!(matches!(error, StoreError::NoSuchPod(_)), "{error}");
}

#[tokio::test]
async fn an_acknowledged_entry_is_in_a_copy_of_the_files_taken_at_that_moment() {
    let bench = Bench::new();
    let store = bench.open().await;
    for n in 0..20 {
        store.create_pod(pod(&format!("p{n}"))).await.unwrap();
        let copy = bench.temp.path().join(format!("copy{n}"));
        std::fs::create_dir(&copy).unwrap();
        for file in ["yoi.db", "yoi.db-wal"] {
            let from = bench.path.with_file_name(file);
            std::fs::copy(from, copy.join(file)).unwrap();
        }
        let (copied, _) = Store::open(&copy.join("yoi.db")).await.unwrap();
        assert_eq!(copied.pods().await.unwrap().len(), n + 1);
    }
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let bench = Bench::new();
    let store = bench.open().await;
    let other = store.clone();
    store.close().await;
    assert!(matches!(other.pods().await, Err(StoreError::Closed)));
    assert!(matches!(other.create_pod(pod("a")).await, Err(StoreError::Closed)));
    other.close().await;
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused_and_left_alone() {
    let bench = Bench::new();
    bench.open().await.close().await;
    bench.with_row_changed("PRAGMA user_version = 99");
    let error = Store::open(&bench.path).await.map(drop).unwrap_err();
    let (known, sentence) = (MIGRATIONS.len(), error.to_string());
    let knows = format!("knows {known}");
    assert!(sentence.contains("version 99") && sentence.contains(&knows), "{sentence}");
    bench.with_row_changed(&format!("PRAGMA user_version = {known}"));
    bench.open().await;
}

#[tokio::test]
async fn a_damaged_database_is_kept_aside_and_a_new_one_takes_its_place() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path.parent().unwrap()).unwrap();
    for (round, aside) in ["yoi.db.damaged", "yoi.db.damaged-2"].into_iter().enumerate() {
        let rubbish = format!("this is no database {round} ").repeat(500);
        std::fs::write(&bench.path, &rubbish).unwrap();
        let (store, opening) = Store::open(&bench.path).await.unwrap();
        let aside = bench.path.with_file_name(aside);
        assert!(opening.created);
        assert_eq!(opening.set_aside, Some(aside.clone()));
        assert_eq!(std::fs::read_to_string(aside).unwrap(), rubbish);
        store.create_pod(pod("a")).await.unwrap();
        store.close().await;
    }
}

#[tokio::test]
async fn a_database_with_a_damaged_page_is_noticed_when_it_is_opened() {
    let bench = Bench::new();
    let store = bench.open().await;
    for n in 0..200 {
        store.create_pod(pod(&format!("p{n}"))).await.unwrap();
    }
    store.close().await;
    assert!(!bench.path.with_file_name("yoi.db-wal").exists());
    let mut content = std::fs::read(&bench.path).unwrap();
    content[8192..].iter_mut().for_each(|byte| *byte ^= 0x5a);
    std::fs::write(&bench.path, content).unwrap();
    let (_, opening) = Store::open(&bench.path).await.unwrap();
    assert!(opening.set_aside.is_some());
}

#[test]
fn a_migration_copies_the_database_first_and_a_failed_one_changes_nothing() {
    let bench = Bench::new();
    let (first, _, _) = open(&bench.path, MIGRATIONS).unwrap();
    let row = "INSERT INTO pods (key, name, wanted, cwd, workspace, session, config, scope, env,
            created, since, seen)
        VALUES ('a', 'a', 'live', x'', x'', '', '', '', '', 1, 1, 1)";
    first.execute_batch(row).unwrap();
    drop(first);
    let broken = [MIGRATIONS, &["CREATE TABLE more (x); INSERT INTO nowhere VALUES (1)"]].concat();
    // As a start leaves it that was killed while it copied.
    std::fs::write(bench.path.with_file_name(format!("yoi.db.v{}.part", MIGRATIONS.len())), "half")
        .unwrap();
    for _ in 0..3 {
        let error = open(&bench.path, &broken).map(drop).unwrap_err();
        assert!(error.to_string().starts_with("cannot migrate"), "{error}");
    }
    let files = std::fs::read_dir(bench.path.parent().unwrap()).unwrap().flatten();
    let copies = files.filter(|file| file.file_name().to_string_lossy().contains(".db.v"));
    let of_version = format!("yoi.db.v{}", MIGRATIONS.len());
    let others: Vec<_> = copies.map(|file| file.file_name().into_string().unwrap()).collect();
    assert_eq!(others.iter().filter(|name| name.starts_with(&of_version)).count(), 1, "{others:?}");
    let next = [MIGRATIONS, &["CREATE TABLE more (x)"]].concat();
    let (migrated, _, opening) = open(&bench.path, &next).unwrap();
    migrated.execute_batch("INSERT INTO more VALUES (1)").unwrap();
    let copy = opening.migrated.unwrap();
    let copy = Connection::open(copy).unwrap();
    let count = |db: &Connection| db.query_row("SELECT count(*) FROM pods", [], |row| row.get(0));
    assert_eq!((count(&migrated), count(&copy)), (Ok(1), Ok(1)));
    assert!(copy.prepare("SELECT * FROM more").is_err());
}

#[tokio::test]
async fn consents_of_an_older_database_get_numbers_that_no_rule_has_or_gets() {
    let bench = Bench::new();
    let before = MIGRATIONS.iter().position(|sql| sql.contains("old_consents")).unwrap();
    let (older, _, _) = open(&bench.path, &MIGRATIONS[..before]).unwrap();
    let rows =
        "INSERT INTO consents VALUES ('a', 'http://a', 'none', 1), ('b', 'http://b', 'none', 2);
        INSERT INTO pods (key, name, wanted, cwd, workspace, session, config, scope, env,
            created, since, seen)
        VALUES ('p', 'p', 'live', x'', x'', '', '', '', '', 1, 1, 1);
        INSERT INTO policy (pod, tree, tool, pattern, action, created)
        VALUES ('p', 0, 'Bash', 'one', 'allow', 1), ('p', 0, 'Bash', 'two', 'allow', 1)";
    older.execute_batch(rows).unwrap();
    drop(older);
    let (store, _) = Store::open(&bench.path).await.unwrap();
    let numbers = || async {
        store.consents().await.unwrap().into_iter().map(|stored| stored.id).collect::<Vec<_>>()
    };
    assert_eq!(numbers().await, [3, 4]);
    let rule = StoredRule {
        id: 0,
        pod: PodName::parse("p").unwrap(),
        tree: false,
        pattern: Pattern { tool: "Bash".into(), pattern: "three".into() },
        action: Action::Allow,
    };
    store
        .writer
        .run("write to", move |db| crate::store::policy::insert_rule(db, &rule))
        .await
        .unwrap();
    assert_eq!(store.policy().await.unwrap()[0].id, 5);
    store.end_consent(4).await.unwrap().expect("it is there");
    assert_eq!(store.end_trust(3).await.unwrap(), None, "a consent is no trust");
    let to = Destination { provider: "c".into(), base_url: "http://c".into(), key: "none".into() };
    store.consent(to).await.unwrap();
    assert_eq!(numbers().await, [3, 6], "no number is given twice");
}

#[tokio::test]
async fn a_trust_is_kept_with_the_hash_of_one_content_and_is_no_consent() {
    let bench = Bench::new();
    let (store, _) = Store::open(&bench.path).await.unwrap();
    let to = Destination { provider: "c".into(), base_url: "/w".into(), key: "aa".into() };
    store.consent(to).await.unwrap();
    assert_eq!(store.trusted_hash("/w").await.unwrap(), None);
    for hash in ["aa", "bb", "bb"] {
        store.trust("/w".into(), hash.into()).await.unwrap();
    }
    store.trust("/other".into(), "cc".into()).await.unwrap();
    let trusts = store.trusts().await.unwrap();
    let listed: Vec<_> = trusts.iter().map(|t| (&*t.workspace, &*t.sha256)).collect();
    assert_eq!(listed, [("/w", "bb"), ("/other", "cc")]);
    let id = trusts[0].id;
    assert!(id > 1 && trusts[1].id > id, "no number is given twice: {trusts:?}");
    assert_eq!(store.trusted_hash("/w").await.unwrap().as_deref(), Some("bb"));
    assert_eq!(store.consents().await.unwrap().len(), 1);
    assert_eq!(store.end_consent(id).await.unwrap(), None, "a trust is no consent");
    assert_eq!(store.end_trust(id).await.unwrap(), Some(trusts[0].clone()));
    assert_eq!(store.trusted_hash("/w").await.unwrap(), None);
    assert_eq!(store.trusted_hash("/other").await.unwrap().as_deref(), Some("cc"));
}

#[tokio::test]
async fn trusts_clients_and_tools_of_an_older_database_keep_their_numbers() {
    let bench = Bench::new();
    let before = MIGRATIONS.iter().position(|sql| sql.contains("CREATE TABLE trusts")).unwrap();
    let (older, _, _) = open(&bench.path, &MIGRATIONS[..before]).unwrap();
    let rows = r#"INSERT INTO consents (id, provider, base_url, key, created) VALUES
        (3, 'far', 'https://far', 'none', 1),
        (4, 'workspace/.yoi/config.toml', '/w', 'aa', 2),
        (6, 'mcp/client', '/w', 'claude', 3),
        (9, 'mcp/tools', 'hash', '{"add":"bb"}', 4)"#;
    older.execute_batch(rows).unwrap();
    drop(older);
    let (store, _) = Store::open(&bench.path).await.unwrap();
    let [consent] = &*store.consents().await.unwrap() else { panic!() };
    assert_eq!((consent.id, &*consent.to.provider), (3, "far"));
    let [trust] = &*store.trusts().await.unwrap() else { panic!() };
    assert_eq!((trust.id, &*trust.workspace, &*trust.sha256, trust.since), (4, "/w", "aa", 2));
    let [client] = &*store.clients().await.unwrap() else { panic!() };
    assert_eq!((client.id, &*client.folder, &*client.name, client.since), (6, "/w", "claude", 3));
    let tools = store.agreed_tools("hash").await.unwrap().unwrap();
    assert_eq!(tools, [("add".to_owned(), "bb".to_owned())].into());
    assert!(store.end_client(6).await.unwrap().is_some());
    store.admit("/w", "other").await.unwrap();
    assert_eq!(store.clients().await.unwrap()[0].id, 10, "no number is given twice");
}

/// Writes a session whose Pod is this row.
fn session(data: &Path, row: &PodRow, segments: &[Vec<Entry>]) -> SegmentId {
    let files = Files::new(data, row.session);
    std::fs::create_dir_all(files.dir()).unwrap();
    let mut last = SegmentId::new();
    for entries in segments {
        last = SegmentId::new();
        let lines: Vec<String> =
            entries.iter().map(|entry| serde_json::to_string(entry).unwrap() + "\n").collect();
        std::fs::write(files.segment(last), lines.concat()).unwrap();
    }
    last
}

fn record(row: &PodRow) -> Entry {
    Entry::extension(domain::POD, row.record())
}

fn other() -> Entry {
    Entry::extension("metrics", json!({"about": "yoi.pod"}))
}

#[tokio::test]
async fn a_lost_database_is_made_again_from_the_logs() {
    let bench = Bench::new();
    let data = bench.temp.path();
    let plain = || PodRow { cwd: "/w/x".into(), last: None, wanted: Wanted::Stopped, ..pod("x") };
    let child = PodRow { name: name("kid"), parent: Some(name("mother")), ..plain() };
    let older = PodRow { name: name("Mother"), ..plain() };
    let mother = PodRow { name: name("mother"), parent: Some(name("gone")), ..plain() };
    let renamed = PodRow { config: json!({"model": "new"}), ..mother.clone() };
    let child_at = session(data, &child, &[vec![record(&child), other()]]);
    let older_at = session(data, &older, &[vec![record(&older)]]);
    let mother_at =
        session(data, &mother, &[vec![record(&mother), other(), record(&renamed)], vec![other()]]);
    session(data, &pod("nothing-said"), &[vec![other()]]);
    session(data, &pod("no-log"), &[]);
    std::fs::create_dir_all(data.join("sessions/not-an-id")).unwrap();

    let rows = recover(data, &BTreeSet::new());
    let store = bench.open().await;
    for row in &rows {
        let parent = row.parent.clone().filter(|parent| parent.as_str() != "gone");
        store.create_pod(PodRow { parent, ..row.clone() }).await.unwrap();
    }
    let known = rows.iter().map(|row| row.session).collect();
    assert_eq!(recover(data, &known), []);
    let shown: Vec<_> = rows
        .into_iter()
        .map(|row| PodRow { since: 6, ..row })
        .map(|row| (row.name.to_string(), row))
        .collect();
    let shown: BTreeMap<_, _> = shown.into_iter().collect();
    let expected = [
        ("kid", PodRow { segment: Some(child_at), ..child }),
        ("mother", PodRow { segment: Some(mother_at), ..renamed }),
        ("Mother-2", PodRow { segment: Some(older_at), name: name("Mother-2"), ..older }),
    ];
    let expected: BTreeMap<_, _> =
        expected.into_iter().map(|(name, row)| (name.to_owned(), row)).collect();
    // The leases of other Pods at that time are in no log.
    let expected: BTreeMap<_, _> = expected
        .into_iter()
        .map(|(name, row)| (name, PodRow { restrictions: Restrictions::default(), ..row }))
        .collect();
    assert_eq!(shown, expected);
}

#[test]
fn a_rebuilt_pod_goes_on_in_its_newest_segment_also_where_the_clock_was_set_back() {
    let temp = tempfile::tempdir().unwrap();
    let row = pod("alice");
    let files = Files::new(temp.path(), row.session);
    std::fs::create_dir_all(files.dir()).unwrap();
    let (newest, oldest) = (SegmentId::new(), SegmentId::new());
    assert!(newest < oldest);
    let renamed = PodRow { config: json!({"model": "new"}), ..row.clone() };
    for (segment, from, row) in [(oldest, None, &row), (newest, Some(oldest), &renamed)] {
        let origin = |segment_id| SegmentOrigin { segment_id, at_turn_index: 1 };
        let start = Entry::new(Fact::SegmentStart {
            session_id: row.session,
            system_prompt: None,
            config: crate::protocol::RequestConfig::default(),
            history: Vec::new(),
            forked_from: None,
            compacted_from: from.map(origin),
        });
        let lines = [start, record(row)].map(|entry| serde_json::to_string(&entry).unwrap() + "\n");
        std::fs::write(files.segment(segment), lines.concat()).unwrap();
    }
    let [found] = recover(temp.path(), &BTreeSet::new()).try_into().expect("one Pod");
    assert_eq!((found.segment, found.config), (Some(newest), renamed.config));
}

#[tokio::test]
async fn a_peer_relation_is_one_row_and_goes_with_either_end() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.create_pod(pod("Alice")).await.unwrap();
    store.create_pod(pod("bob")).await.unwrap();
    let edge = PeerEdge::new(name("bob"), name("Alice"));
    assert_eq!(edge.a, name("Alice"));
    assert!(store.add_peer(&edge).await.unwrap());
    assert!(!store.add_peer(&edge).await.unwrap());
    assert_eq!(store.peers().await.unwrap(), std::slice::from_ref(&edge));
    let ghost = PeerEdge::new(name("bob"), name("ghost"));
    assert!(matches!(store.add_peer(&ghost).await, Err(StoreError::NoSuchPod(_))));
    store.remove_pod(&name("bob")).await.unwrap();
    assert!(store.peers().await.unwrap().is_empty());
    let ended = Change { peers: vec![(edge, false)], ..Change::default() };
    store.change_family(ended).await.unwrap();
}

#[tokio::test]
async fn a_change_of_the_family_is_made_whole_or_not_at_all() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.create_pod(pod("alice")).await.unwrap();
    let lease = Lease {
        lender: "alice".into(),
        borrower: "kid".into(),
        rule: Rule::new("/w/k", Permission::Write),
        kind: LeaseKind::Born,
    };
    let kid = PodRow { parent: Some(name("alice")), ..pod("kid") };
    let leases = Changes { leases: vec![(1, Some(lease.clone()))], ..Changes::default() };
    let change = Change { create: Some(kid), leases, ..Change::default() };
    let bad = Change { wanted: vec![(name("ghost"), Wanted::Live, 7)], ..change.clone() };
    assert!(matches!(store.change_family(bad).await, Err(StoreError::NoSuchPod(_))));
    assert!(store.pod(&name("kid")).await.unwrap().is_none());
    assert!(store.leases().await.unwrap().is_empty());
    store.change_family(change).await.unwrap();
    assert_eq!(store.leases().await.unwrap(), [(1, lease)]);
    let gone = Change { remove: Some(name("kid")), ..Change::default() };
    store.change_family(gone).await.unwrap();
    assert!(store.leases().await.unwrap().is_empty());
}

/// An approval request of alice.
fn question(id: &str) -> ApprovalRequest {
    ApprovalRequest {
        call_id: "c".into(),
        action: "cargo fetch".into(),
        because: "it needs the network".into(),
        since: 4,
        ..ApprovalRequest::new(
            id.into(),
            name("alice"),
            "Bash",
            Pattern { tool: "Bash".into(), pattern: "cargo *".into() },
        )
    }
}

#[tokio::test]
async fn the_first_answer_counts_and_writes_its_rule_with_it() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.create_pod(pod("alice")).await.unwrap();
    let approval = question("1");
    store.add_approval(approval.clone()).await.unwrap();
    let (pod, pattern) = (name("alice"), approval.rule.clone());
    let rule = StoredRule { id: 0, pod, tree: true, pattern, action: Action::Allow };
    let decided = |verdict| Decided { approval: "1".into(), verdict, rule: Some(rule.clone()) };
    assert!(store.decide_approval(decided(Verdict::Tree { rule: None, of: None })).await.unwrap());
    assert!(!store.decide_approval(decided(Verdict::Once)).await.unwrap());
    let stored = store.approvals_of(&name("ALICE")).await.unwrap();
    assert_eq!(
        stored,
        [StoredApproval { approval, verdict: Some(Verdict::Tree { rule: None, of: None }) }]
    );
    let rules = store.policy().await.unwrap();
    assert_eq!(rules.len(), 1);
    let revoke = Change { revoke: Some(rules[0].id), ..Change::default() };
    store.change_family(revoke).await.unwrap();
    assert_eq!(store.policy().await.unwrap(), []);
    store.end_approvals(vec!["1".into()]).await.unwrap();
    assert!(store.approvals().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_stopped_pod_gets_no_rule_and_the_request_goes_on_waiting() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.create_pod(pod("alice")).await.unwrap();
    store.create_pod(PodRow { wanted: Wanted::Stopped, ..pod("lead") }).await.unwrap();
    let approval = question("1");
    store.add_approval(approval.clone()).await.unwrap();
    let pattern = approval.rule.clone();
    let rule = StoredRule { id: 0, pod: name("lead"), tree: true, pattern, action: Action::Allow };
    let verdict = Verdict::Tree { rule: None, of: Some(name("lead")) };
    let decided = Decided { approval: "1".into(), verdict, rule: Some(rule) };
    let error = store.decide_approval(decided).await.unwrap_err();
    let said = "pod lead is stopped, and no rule is made for it: :restore lead comes first";
    assert_eq!(error.to_string(), said);
    assert_eq!(store.approvals().await.unwrap(), [StoredApproval { approval, verdict: None }]);
    assert_eq!(store.policy().await.unwrap(), []);
}

#[tokio::test]
async fn a_reading_position_is_kept_for_each_pair() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.create_pod(pod("alice")).await.unwrap();
    store.create_pod(pod("kid")).await.unwrap();
    let (one, two) = (EntryId::new(), EntryId::new());
    for entry in [one, two] {
        store.set_cursor(&name("alice"), &name("kid"), entry).await.unwrap();
    }
    assert_eq!(store.cursor(&name("alice"), &name("kid")).await.unwrap(), Some(two));
    assert_eq!(store.cursor(&name("kid"), &name("alice")).await.unwrap(), None);
}

#[tokio::test]
async fn rows_of_taken_messages_do_not_grow_for_ever_and_a_repeated_one_is_known() {
    let bench = Bench::new();
    let store = bench.open().await;
    let a = name("a");
    store.create_pod(pod("a")).await.unwrap();
    for n in 0..1100 {
        store.add_message(&a, mailbox(&n.to_string(), "x")).await.unwrap();
    }
    let in_log = (0..1099).map(|n| n.to_string()).collect();
    store.delete_taken_messages(&a, in_log).await.unwrap();
    let waiting: Vec<String> =
        store.messages(&a).await.unwrap().into_iter().map(|m| m.id).collect();
    assert_eq!(waiting, ["1099"]);
    assert!(!store.add_message(&a, mailbox("1098", "x")).await.unwrap(), "the newest are known");
    assert!(store.add_message(&a, mailbox("0", "x")).await.unwrap(), "the oldest row is gone");
}

#[tokio::test]
async fn counts_are_read_beside_a_host_and_hold_no_contents() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.create_pod(pod("alice")).await.unwrap();
    store.add_message(&name("alice"), mailbox("1", "a private text")).await.unwrap();
    let counts = crate::store::counts(&bench.path).unwrap();
    assert_eq!(counts.version as usize, MIGRATIONS.len());
    assert_eq!(counts.pods, [("alice".to_owned(), "live".to_owned())]);
    assert!(counts.rows.contains(&("mail".to_owned(), 1)), "{counts:?}");
    assert!(!format!("{counts:?}").contains("private"));
}

#[tokio::test]
async fn what_a_provider_refused_is_known_after_a_restart_and_forgotten_after_a_month() {
    let bench = Bench::new();
    let (store, _) = Store::open(&bench.path).await.unwrap();
    let (now, day) = (crate::protocol::now_ms(), 24 * 60 * 60 * 1000);
    for (learned, at) in [("old", now - 31 * day), ("young", now - 29 * day), ("new", now)] {
        store.learn(learned.into(), at).await.unwrap();
    }
    drop(store);
    let (store, _) = Store::open(&bench.path).await.unwrap();
    assert_eq!(store.learned().await.unwrap(), ["young", "new"]);
}

#[tokio::test]
async fn what_one_model_at_one_address_refused_can_be_forgotten() {
    let bench = Bench::new();
    let (store, _) = Store::open(&bench.path).await.unwrap();
    let row = |provider: &str, base_url: &str, model: &str| {
        serde_json::json!({"provider": provider, "base_url": base_url, "model": model}).to_string()
    };
    let kept = [row("q", "u", "m"), row("p", "v", "m"), row("p", "u", "n"), "no JSON".to_owned()];
    let now = crate::protocol::now_ms();
    for row in kept.iter().cloned().chain([row("p", "u", "m")]) {
        store.learn(row, now).await.unwrap();
    }
    store.forget("p".into(), "u".into(), "m".into()).await.unwrap();
    let mut known = store.learned().await.unwrap();
    known.sort();
    let mut kept = kept;
    kept.sort();
    assert_eq!(known, kept);
}

#[tokio::test]
async fn pairs_are_found_in_any_case_and_forgotten_among_other_machines() {
    let (bench, alice) = (Bench::new(), name("alice"));
    let store = bench.open().await;
    let record = async |said, agent: &str| {
        store.record_peer(&alice, agent, said, "r1".into(), String::new()).await
    };
    let says = |generation| Said::There {
        peering: Peering { generation, wants: true },
        may_request: true,
    };
    let refused = record(says(7), "casa:bob").await.unwrap_err();
    assert!(matches!(refused, StoreError::NoSuchPod(_)), "{refused}");
    store.create_pod(pod("alice")).await.unwrap();
    assert_eq!(store.begin_network("trab pin".into()).await.unwrap(), []);
    // Counting on from such a generation would overflow.
    assert_eq!(record(says(u64::MAX), "casa:bob").await.unwrap().unwrap().after, None);
    assert!(record(says(1 << 60), "casa:bob").await.unwrap().unwrap().after.is_some());
    record(Said::Here { wants: true, only_after: None }, "casa:Bob").await.unwrap();
    assert!(store.are_machine_peers(&alice, "casa:BOB").await.unwrap());
    assert_eq!(store.machine_peers().await.unwrap().len(), 1);
    assert_eq!(store.begin_network("trab pin".into()).await.unwrap(), []);
    let forgotten = store.begin_network("trab other".into()).await.unwrap();
    assert_eq!(forgotten[0].agent, "casa:bob");
    assert_eq!(store.machine_peers().await.unwrap(), []);
}

#[tokio::test]
async fn a_database_of_before_the_machines_opens_and_one_with_them_keeps_what_is_blocked() {
    let at = |table: &str| MIGRATIONS.iter().position(|sql| sql.contains(table)).unwrap();
    let before = at("CREATE TABLE machine_peers");
    let bench = Bench::new();
    let (older, _, _) = open(&bench.path, &MIGRATIONS[..before]).unwrap();
    older.execute_batch("INSERT INTO mesh_blocks (name, created) VALUES ('casa', 1)").unwrap();
    drop(older);
    let store = bench.open().await;
    assert_eq!(store.machine_peers().await.unwrap(), []);
    assert_eq!(store.taken_of_stream().await.unwrap(), 0);
    assert_eq!(store.begin_network("trab pin".into()).await.unwrap(), []);
    for place in [7, 3] {
        store.note_taken_of_stream(place).await.unwrap();
        assert_eq!(store.taken_of_stream().await.unwrap(), 7);
    }
    store.begin_stream().await.unwrap();
    assert_eq!(store.taken_of_stream().await.unwrap(), 0);
    // It had no machines, so an agent is meant.
    assert_eq!(store.blocked_agents().await.unwrap(), ["casa".to_owned()].into());

    let bench = Bench::new();
    let (older, _, _) = open(&bench.path, &MIGRATIONS[..=before]).unwrap();
    let rows = "INSERT INTO pods (key, name, wanted, cwd, workspace, session, config, scope, env,
            created, since, seen)
        VALUES ('alice', 'alice', 'live', x'', x'', '', '', '', '', 1, 1, 1);
        INSERT INTO machine_network (name) VALUES ('trab pin');
        INSERT INTO machine_peers VALUES ('alice', 'alice', 'casa:bob', 3, 1, 1, 0, 'r1', '', 5);
        INSERT INTO mesh_blocks (name, created) VALUES ('docs', 1), ('docs:eve', 1), ('Pi 1', 1)";
    older.execute_batch(rows).unwrap();
    drop(older);
    let store = bench.open().await;
    assert!(store.are_machine_peers(&name("alice"), "casa:bob").await.unwrap());
    assert_eq!(store.begin_network("trab pin".into()).await.unwrap(), [], "it is the same one");
    assert_eq!(store.taken_of_stream().await.unwrap(), 0);
    let blocked = ["Pi 1", "docs", "docs:", "docs:eve"].map(str::to_owned);
    assert_eq!(store.blocked_agents().await.unwrap(), blocked.into());
}

#[tokio::test]
async fn requests_of_other_machines_are_few_for_one_pod_and_none_while_they_may_make_none() {
    let (bench, alice) = (Bench::new(), name("alice"));
    let store = bench.open().await;
    store.create_pod(pod("alice")).await.unwrap();
    let requests = async |agent: &str, may_request: bool| {
        let said = Said::There { peering: Peering { generation: 1, wants: true }, may_request };
        let change = store.record_peer(&alice, agent, said, "r1".into(), String::new());
        change.await.unwrap().is_some_and(|change| change.after.is_some())
    };
    assert!(!requests("casa:a", false).await);
    let mut taken = Vec::new();
    for machine in ["casa", "trab", "docs"] {
        for number in 0..5 {
            let agent = format!("{machine}:a{number}");
            if requests(&agent, true).await {
                taken.push(agent);
            }
        }
    }
    let all = ["casa", "trab"].iter().flat_map(|of| (0..4).map(move |n| format!("{of}:a{n}")));
    assert_eq!(taken, all.collect::<Vec<_>>(), "four of a machine, and eight for a Pod");
}
