//! The table after all that may happen to a family.

mod reference;

use crate::scope::lease::tests::reference::Slow;
use crate::scope::lease::{Holder, Lease, LeaseTable, NotLent, Turn};
use crate::scope::{Permission, Rule, Scope};
use proptest::prelude::*;
use std::path::Path;

fn write(target: &str) -> Rule {
    Rule::new(target, Permission::Write)
}

fn holder(parent: Option<&str>, allow: Vec<Rule>, created: u64) -> Holder {
    let parent = parent.map(str::to_owned);
    Holder { parent, wanted: Scope::new(allow), created, ..Holder::default() }
}

/// g wants /w and is live; p, its child, has /w/p; c, the child of p, has /w/p/c.
fn family() -> LeaseTable {
    let mut table = LeaseTable::default();
    table.add("g", holder(None, vec![write("/w")], 1));
    table.add("p", holder(Some("g"), vec![write("/w/p")], 2));
    table.add("c", holder(Some("p"), vec![write("/w/p/c")], 3));
    for key in ["g", "p", "c"] {
        table.go_live(key);
        assert_eq!(table.fault(), None);
    }
    table
}

fn writes(table: &LeaseTable, path: &str) -> Vec<String> {
    let held =
        |key: &&String| table.held(key).permission(Path::new(path)) == Some(Permission::Write);
    table.holders().map(|(key, _)| key).filter(held).cloned().collect()
}

#[test]
fn a_lent_path_is_gone_from_the_lender_until_it_returns() {
    let mut table = family();
    assert_eq!(writes(&table, "/w/x"), ["g"]);
    assert_eq!(writes(&table, "/w/p/x"), ["p"]);
    assert_eq!(writes(&table, "/w/p/c/x"), ["c"]);
    assert_eq!(table.held("g").permission(Path::new("/w/p/x")), Some(Permission::Read));
    let back = table.stop("c");
    assert_eq!(back.len(), 1);
    assert_eq!(writes(&table, "/w/p/c/x"), ["p"]);
}

#[test]
fn a_child_is_given_by_a_person_what_its_root_is_and_what_is_lent_to_those_above_it() {
    let mut table = family();
    for key in ["g", "p", "c"] {
        assert_eq!(table.given_by_person(key).allow, [write("/w")], "{key}");
    }
    table.add("z", holder(None, vec![write("/z")], 4));
    table.go_live("z");
    table.lend("z", "p", write("/z/a")).unwrap();
    assert_eq!(table.given_by_person("c").allow, [write("/w"), write("/z/a")]);
    assert_eq!(table.given_by_person("g").allow, [write("/w")]);
    table.reclaim("z", &write("/z/a"));
    assert_eq!(table.given_by_person("c").allow, [write("/w")]);
}

#[test]
fn a_person_gave_only_what_they_lent_to_a_child_whose_parent_is_deleted() {
    for deleted in ["p", "g"] {
        let mut table = family();
        for key in ["p", "c"] {
            let holder = table.holder(key).cloned().unwrap();
            table.set_holder(key, Some(Holder { spawned: true, ..holder }));
        }
        table.add("z", holder(None, vec![write("/z")], 4));
        table.go_live("z");
        table.lend("z", "c", write("/z/a")).unwrap();
        table.stop(deleted);
        assert_eq!(table.given_by_person("c").allow, [write("/w"), write("/z/a")]);
        table.remove(deleted);
        assert_eq!(table.given_by_person("c").allow, [write("/z/a")], "without {deleted}");
        assert_eq!(table.given_by_person("p").allow.len(), 0, "without {deleted}");
        table.stop("c");
        table.go_live("c");
        assert!(table.given_by_person("c").allow.is_empty(), "without {deleted}");
    }
}

#[test]
fn a_grandchild_keeps_what_it_has_when_its_parent_stops_and_comes_back() {
    let mut table = family();
    table.stop("p");
    assert_eq!(writes(&table, "/w/p/x"), ["g"]);
    assert_eq!(writes(&table, "/w/p/c/x"), ["c"]);
    assert_eq!(table.lent_by("g").map(|l| l.borrower.as_str()).collect::<Vec<_>>(), ["c"]);
    table.go_live("p");
    assert_eq!(writes(&table, "/w/p/x"), ["p"]);
    assert_eq!(writes(&table, "/w/p/c/x"), ["c"]);
    let mut before = family();
    let mut leases: Vec<Lease> = before.take_leases();
    leases.reverse();
    let now: Vec<Lease> = table.leases().cloned().collect();
    assert_eq!(now, leases);
}

#[test]
fn a_later_pod_reads_and_writes_once_the_first_one_is_gone() {
    let mut table = family();
    table.add("z", holder(None, vec![write("/w")], 9));
    table.go_live("z");
    assert!(writes(&table, "/w/x") == ["g"] && writes(&table, "/w/p/x") == ["p"]);
    for key in ["g", "p", "c"] {
        table.stop(key);
    }
    assert_eq!(writes(&table, "/w/p/c/x"), ["z"]);
    table.go_live("c");
    assert_eq!(writes(&table, "/w/p/c/x"), ["z"]);
    assert_eq!(table.fault(), None);
}

/// Else the work for each new Pod grows with the number of Pods in its workspace.
#[test]
fn a_pod_that_only_reads_where_another_writes_affects_no_other_pod() {
    let mut table = LeaseTable::default();
    for (n, key) in ["a", "b", "c", "d"].into_iter().enumerate() {
        table.add(key, holder(None, vec![write("/w")], n as u64));
        table.commit();
        table.go_live(key);
        assert_eq!(table.affected().collect::<Vec<_>>(), [key]);
    }
    assert_eq!(writes(&table, "/w/x"), ["a"]);
    table.commit();
    table.stop("a");
    assert_eq!(writes(&table, "/w/x"), ["b"]);
    assert_eq!(table.fault(), None);
}

#[test]
fn a_rule_that_is_not_free_is_refused_with_the_reason() {
    let table = family();
    assert_eq!(table.may_lend("g", &write("/w/a")), Ok(()));
    assert_eq!(table.may_lend("g", &write("/x")), Err(NotLent::Outside));
    let lent = |has: &str| Err(NotLent::LentTo { to: "p".into(), has: has.into() });
    assert_eq!(table.may_lend("g", &write("/w/p/d")), lent("p"));
    assert_eq!(table.may_lend("g", &write("/w/p/c/d")), lent("c"));
    assert_eq!(table.may_lend("g", &Rule::new("/w/p", Permission::Read)), Ok(()));
}

#[test]
fn a_lease_of_a_person_ends_with_a_reclaim_and_the_borrower_reads_again() {
    let mut table = family();
    table.add("z", holder(None, vec![write("/z")], 9));
    table.go_live("z");
    table.lend("g", "z", write("/w/a")).unwrap();
    assert_eq!(writes(&table, "/w/a/x"), ["z"]);
    let back = table.reclaim("g", &write("/w/a/deep"));
    assert_eq!(back.len(), 1);
    assert_eq!(writes(&table, "/w/a/x"), ["g"]);
    let back = table.reclaim("g", &write("/w/p"));
    assert_eq!(back[0].borrower, "p");
    assert_eq!(writes(&table, "/w/p/x"), ["g"]);
    assert_eq!(writes(&table, "/w/p/c/x"), ["c"]);
    table.stop("g");
    assert_eq!(writes(&table, "/w/p/x"), [""; 0], "nobody gave it back");
    table.go_live("g");
    assert_eq!(writes(&table, "/w/p/x"), ["g"]);
    let mut lent = table.clone();
    lent.stop("c");
    lent.lend("g", "p", write("/w/p")).unwrap();
    assert_eq!(writes(&lent, "/w/p/x"), ["p"]);
    table.stop("p");
    table.go_live("p");
    assert_eq!(writes(&table, "/w/p/x"), ["g"], "a restore gives back nothing that was reclaimed");
    assert_eq!(table.fault(), None);
    table.stop("c");
    let mut read = table.clone();
    read.lend("g", "p", Rule::new("/w/p", Permission::Read)).unwrap();
    assert_eq!(writes(&read, "/w/p/x"), ["g"], "what is lent for reading is not written");
    table.lend("g", "p", write("/w/p")).unwrap();
    assert_eq!(writes(&table, "/w/p/x"), ["p"]);
    table.stop("p");
    table.go_live("p");
    assert_eq!(writes(&table, "/w/p/x"), ["p"], "it was lent again");
}

#[test]
fn the_pod_that_has_all_of_a_path_holds_it_though_a_part_is_lent_on() {
    let mut table = family();
    table.add("z", holder(None, vec![write("/w")], 9));
    table.go_live("z");
    assert_eq!(table.writer_of(&write("/w"), "z").as_deref(), Some("g"));
    assert_eq!(table.writer_of(&write("/w/p/c/x"), "z").as_deref(), Some("c"));
}

#[test]
fn a_part_of_what_the_borrower_reads_as_a_whole_is_refused_and_the_whole_is_lent() {
    let mut table = LeaseTable::default();
    table.add("f", holder(None, vec![write("/w/a")], 1));
    table.add("e", holder(None, vec![write("/w")], 2));
    table.go_live("f");
    table.go_live("e");
    let before = table.clone();
    let part = table.lend("f", "e", write("/w/a/deep"));
    assert_eq!(part, Err(NotLent::PartOf(write("/w/a"))));
    assert_eq!(table.extend("e", &write("/w/a/deep")), Err(NotLent::HeldBy("f".into())));
    assert_eq!(table, before);
    table.lend("f", "e", write("/w/a")).unwrap();
    assert_eq!(writes(&table, "/w/a/deep"), ["e"]);
}

#[test]
fn scope_approved_for_a_child_passes_through_its_parents_and_ends_with_it() {
    let mut table = family();
    table.extend("c", &write("/out")).unwrap();
    assert_eq!(writes(&table, "/out/x"), ["c"]);
    table.stop("c");
    assert_eq!(writes(&table, "/out/x"), ["p"]);
    table.add("z", holder(None, vec![write("/z")], 9));
    table.go_live("z");
    assert_eq!(table.extend("c", &write("/z/a")), Err(NotLent::NotLive("c".into())));
    assert_eq!(table.extend("p", &write("/z/a")), Err(NotLent::HeldBy("z".into())));
    for key in ["p", "g"] {
        table.stop(key);
    }
    assert!(table.leases().next().is_none());
}

#[test]
fn what_a_rule_opened_ends_with_it_for_the_pods_above_too_and_lasts_where_it_is_lent_on() {
    let keys: Vec<String> = ["c", "p", "g"].map(str::to_owned).to_vec();
    let is_out = |_: &str, rule: &Rule| rule.target.starts_with("/out");
    let mut table = family();
    let before = table.clone();
    table.extend("c", &write("/out")).unwrap();
    let revoked = table.end_grants(&keys, is_out);
    assert_eq!((revoked.ended.len(), revoked.kept.len()), (3, 0), "{revoked:?}");
    assert_eq!(table, before);
    table.extend("c", &write("/out")).unwrap();
    let revoked = table.end_grants(&keys, |key, rule| key != "p" && is_out(key, rule));
    assert_eq!((revoked.ended.len(), revoked.kept.len()), (1, 1), "{revoked:?}");
    assert_eq!(writes(&table, "/out/x"), ["p"], "another rule lets it stay there");
    table.lend("p", "c", write("/out/lent")).unwrap();
    let revoked = table.end_grants(&keys, is_out);
    assert_eq!((revoked.ended, revoked.kept.len()), (Vec::new(), 2));
    assert_eq!(writes(&table, "/out/lent"), ["c"], "a person lent it");
    assert_eq!(table.fault(), None);
}

#[test]
fn what_was_made_for_a_child_is_the_childs_alone_whoever_above_it_lives() {
    let mut table = family();
    let made = holder(Some("c"), vec![write("/made")], 9);
    table.add("own", Holder { own: true, ..made });
    table.go_live("own");
    let is_its = |table: &LeaseTable| {
        assert_eq!(writes(table, "/made/x"), ["own"]);
        assert!(!table.leases().any(|lease| lease.rule.overlaps(&write("/made"))));
        assert_eq!(table.fault(), None);
    };
    is_its(&table);
    table.stop("c");
    is_its(&table);
    table.stop("own");
    assert_eq!(writes(&table, "/made/x"), [""; 0], "nobody above it gets it");
    table.go_live("own");
    is_its(&table);
    table.go_live("c");
    table.remove("c");
    is_its(&table);
    let part = holder(Some("own"), vec![write("/made/a")], 10);
    table.add("below", part);
    table.go_live("below");
    assert_eq!(writes(&table, "/made/a"), ["below"], "it lends of it as of any scope");
    assert!(!table.mend());
}

#[derive(Clone, Debug)]
enum Step {
    Spawn(usize, usize, Vec<usize>),
    /// A child whose scope was made for it.
    SpawnOwn(usize, usize, usize),
    Live(usize),
    Stop(usize),
    Lend(usize, usize, usize),
    Reclaim(usize, usize),
    Remove(usize),
    Extend(usize, usize),
    Revoke(usize, usize),
    StopAll(usize),
    LiveAll(usize),
    BeginTurn(usize),
    EndTurn(usize),
    /// The host is killed and starts anew.
    Kill,
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const PATHS: [&str; 8] = ["/", "/a", "/b", "/a/a", "/a/b", "/a/a/a", "/a/a/b", "/b/b"];

/// The rule of this number: first those that write, then those that read.
fn numbered(rule: usize) -> Rule {
    let reads = rule >= PATHS.len();
    let permission = if reads { Permission::Read } else { Permission::Write };
    Rule::new(PATHS[rule % PATHS.len()], permission)
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0..NAMES.len();
    let path = prop_oneof![4 => 0..PATHS.len(), 1 => PATHS.len()..2 * PATHS.len()];
    let rules = prop::collection::vec(path.clone(), 1..3);
    prop_oneof![
        3 => (name.clone(), name.clone(), rules).prop_map(|(a, b, c)| Step::Spawn(a, b, c)),
        1 => (name.clone(), name.clone(), 0..PATHS.len()).prop_map(|(a, b, c)| Step::SpawnOwn(a, b, c)),
        3 => name.clone().prop_map(Step::Live),
        3 => name.clone().prop_map(Step::Stop),
        2 => (name.clone(), name.clone(), path.clone()).prop_map(|(a, b, c)| Step::Lend(a, b, c)),
        2 => (name.clone(), path.clone()).prop_map(|(a, b)| Step::Reclaim(a, b)),
        2 => (name.clone(), path.clone()).prop_map(|(a, b)| Step::Extend(a, b)),
        1 => (name.clone(), path).prop_map(|(a, b)| Step::Revoke(a, b)),
        1 => name.clone().prop_map(Step::Remove),
        1 => name.clone().prop_map(Step::StopAll),
        1 => name.clone().prop_map(Step::LiveAll),
        4 => name.clone().prop_map(Step::BeginTurn),
        3 => name.prop_map(Step::EndTurn),
        1 => Just(Step::Kill),
    ]
}

fn apply(table: &mut LeaseTable, step: &Step, n: u64) {
    match *step {
        Step::Spawn(parent, child, ref rules) => {
            let (parent, child) = (NAMES[parent], NAMES[child]);
            let rules: Vec<Rule> = rules.iter().copied().map(numbered).collect();
            if table.holder(child).is_some() {
                return;
            }
            if table.holder(parent).is_none() {
                table.add(child, holder(None, rules, n));
            } else if rules.iter().all(|rule| table.may_lend(parent, rule).is_ok()) {
                let wanted = table.child_scope(parent, rules);
                let parent = Some(parent.to_owned());
                table.add(child, Holder { parent, wanted, created: n, ..Holder::default() });
            } else {
                return;
            }
            table.go_live(child);
        }
        Step::SpawnOwn(parent, child, path) => {
            let (parent, child) = (NAMES[parent], NAMES[child]);
            if table.holder(child).is_none() && table.is_live(parent) {
                let made = holder(Some(parent), vec![numbered(path)], n);
                table.add(child, Holder { own: true, ..made });
                table.go_live(child);
            }
        }
        Step::Live(name) => table.go_live(NAMES[name]),
        Step::Stop(name) => drop(table.stop(NAMES[name])),
        Step::Lend(from, to, path) if from != to => {
            if table.lend(NAMES[from], NAMES[to], numbered(path)).is_ok() {
                assert!(table.held(NAMES[to]).covers(&numbered(path)));
            }
        }
        Step::Lend(..) => {}
        Step::Reclaim(owner, path) => drop(table.reclaim(NAMES[owner], &numbered(path))),
        Step::Remove(name) => table.remove(NAMES[name]),
        Step::StopAll(top) => drop(table.stop_all(&with_all_below(table, NAMES[top]))),
        Step::LiveAll(top) => {
            let mut keys = with_all_below(table, NAMES[top]);
            keys.retain(|key| table.holder(key).is_some());
            keys.reverse();
            table.go_live_all(&keys);
        }
        Step::BeginTurn(name) => drop(table.begin_turn(NAMES[name])),
        Step::EndTurn(name) => {
            if let Some(turn) = table.holder(NAMES[name]).and_then(|holder| holder.turn) {
                table.end_turn(NAMES[name], turn);
            }
        }
        Step::Kill => *table = read_back(table),
        Step::Extend(name, path) => {
            if table.extend(NAMES[name], &numbered(path)).is_ok() {
                assert!(table.held(NAMES[name]).covers(&numbered(path)));
            }
        }
        Step::Revoke(name, path) => {
            let keys = upwards(table, NAMES[name]);
            table.end_grants(&keys, |_, rule| *rule == numbered(path));
        }
    }
}

/// The table as the next host reads it from the store.
fn read_back(table: &LeaseTable) -> LeaseTable {
    let mut read = LeaseTable::default();
    for (key, holder) in table.holders() {
        read.add(key.clone(), Holder { turn: None, ..holder.clone() });
    }
    for (id, lease) in table.lease_ids().into_iter().zip(table.leases()) {
        read.load_lease(id, lease.clone());
    }
    read.commit();
    read
}

/// A Pod and those above it, the nearest first.
fn upwards(table: &LeaseTable, name: &str) -> Vec<String> {
    let mut keys = vec![name.to_owned()];
    keys.extend(table.above(name));
    keys
}

/// A Pod with everything below it, children before parents.
fn with_all_below(table: &LeaseTable, top: &str) -> Vec<String> {
    let mut keys = vec![top.to_owned()];
    keys.extend(table.below(top));
    keys.reverse();
    keys
}

/// Applies the step to the reference table.
fn apply_slowly(slow: &mut Slow, table: &LeaseTable, step: &Step, n: u64) {
    match *step {
        Step::Spawn(parent, child, ref rules) => {
            let (parent, child) = (NAMES[parent], NAMES[child]);
            let rules: Vec<Rule> = rules.iter().copied().map(numbered).collect();
            if slow.holders.contains_key(child) {
                return;
            }
            if !slow.holders.contains_key(parent) {
                slow.holders.insert(child.into(), holder(None, rules, n));
            } else if rules.iter().all(|rule| slow.may_lend(parent, rule).is_ok()) {
                let wanted = slow.child_scope(parent, rules);
                let parent = Some(parent.to_owned());
                let child_of = Holder { parent, wanted, created: n, ..Holder::default() };
                slow.holders.insert(child.into(), child_of);
            } else {
                return;
            }
            slow.go_live_all(&[child.to_owned()]);
        }
        Step::SpawnOwn(parent, child, path) => {
            let (parent, child) = (NAMES[parent], NAMES[child]);
            let is_live = slow.holders.get(parent).is_some_and(|parent| parent.live);
            if !slow.holders.contains_key(child) && is_live {
                let made = holder(Some(parent), vec![numbered(path)], n);
                slow.holders.insert(child.into(), Holder { own: true, ..made });
                slow.go_live_all(&[child.to_owned()]);
            }
        }
        Step::Live(name) => slow.go_live_all(&[NAMES[name].to_owned()]),
        Step::Stop(name) => drop(slow.stop_all(&[NAMES[name].to_owned()])),
        Step::Lend(from, to, path) if from != to => {
            // A refused step changes neither table.
            let _ = slow.lend(NAMES[from], NAMES[to], numbered(path));
        }
        Step::Lend(..) => {}
        Step::Reclaim(owner, path) => drop(slow.reclaim(NAMES[owner], &numbered(path))),
        Step::Remove(name) => slow.remove(NAMES[name]),
        // The fast table has counted this turn, too.
        Step::BeginTurn(name) => slow.begin_turn(NAMES[name], Turn::of(table.turns + 1)),
        Step::EndTurn(name) => slow.end_turn(NAMES[name]),
        Step::Kill => slow.holders.values_mut().for_each(|holder| holder.turn = None),
        Step::Extend(name, path) => drop(slow.extend(NAMES[name], &numbered(path))),
        Step::Revoke(name, path) => {
            slow.end_grants(&upwards(table, NAMES[name]), &numbered(path));
        }
        Step::StopAll(top) => drop(slow.stop_all(&with_all_below(table, NAMES[top]))),
        Step::LiveAll(top) => {
            let mut keys = with_all_below(table, NAMES[top]);
            keys.retain(|key| slow.holders.contains_key(key));
            keys.reverse();
            slow.go_live_all(&keys);
        }
    }
}

fn same(table: &LeaseTable, slow: &Slow) -> Result<(), String> {
    let holders: std::collections::BTreeMap<_, _> =
        table.holders().map(|(key, holder)| (key.clone(), holder.clone())).collect();
    let leases: Vec<Lease> = table.leases().cloned().collect();
    if holders != slow.holders || leases != slow.leases {
        return Err(format!("{holders:#?}\n{leases:#?}\nshould be\n{slow:#?}"));
    }
    let other = |key: &&String| table.held(key) != slow.held(key);
    slow.holders.keys().find(other).map_or(Ok(()), |key| Err(format!("{key} holds another scope")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn the_table_comes_to_what_looking_at_everything_comes_to(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let (mut table, mut slow) = (LeaseTable::default(), Slow::default());
        for (n, step) in steps.iter().enumerate() {
            apply_slowly(&mut slow, &table, step, n as u64);
            apply(&mut table, step, n as u64);
            prop_assert_eq!(same(&table, &slow), Ok(()), "after {:?}", step);
        }
    }

    #[test]
    fn what_is_rolled_back_leaves_the_table_as_it_was_and_changes_say_what_differs(
        before in prop::collection::vec(step(), 1..20),
        tried in prop::collection::vec(step(), 1..10),
    ) {
        let mut table = LeaseTable::default();
        for (n, step) in before.iter().enumerate() {
            apply(&mut table, step, n as u64);
        }
        table.commit();
        let (at, whole) = (table.savepoint(), table.clone());
        // A host that starts reads what is stored.
        let tried: Vec<Step> =
            tried.into_iter().filter(|step| !matches!(step, Step::Kill)).collect();
        for (n, step) in tried.iter().enumerate() {
            apply(&mut table, step, 100 + n as u64);
        }
        let changes = table.changes();
        let mut stored: std::collections::BTreeMap<u64, Lease> =
            whole.lease_ids().into_iter().zip(whole.leases().cloned()).collect();
        for (id, lease) in changes.leases {
            match lease {
                Some(lease) => drop(stored.insert(id, lease)),
                None => drop(stored.remove(&id)),
            }
        }
        prop_assert!(stored.values().eq(table.leases()));
        table.roll_back(at);
        prop_assert_eq!(&table, &whole);
        prop_assert_eq!(table.changes(), crate::scope::lease::Changes::default());
        for (n, step) in tried.iter().enumerate() {
            let mut again = whole.clone();
            apply(&mut again, step, 200 + n as u64);
            // Turns have other numbers then.
            let mut rolled = table.clone();
            rolled.turns = whole.turns;
            apply(&mut rolled, step, 200 + n as u64);
            prop_assert_eq!(again, rolled);
        }
    }

    #[test]
    fn after_any_sequence_no_two_pods_write_one_path_and_the_leases_add_up(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut table = LeaseTable::default();
        for (n, step) in steps.iter().enumerate() {
            apply(&mut table, step, n as u64);
            prop_assert_eq!(table.fault(), None, "after {:?}", step);
            for path in PATHS {
                let holds = |key: &str| table.held(key).permission(Path::new(path)) == Some(Permission::Write);
                for lease in table.leases() {
                    let covered = lease.rule.covers(Path::new(path));
                    prop_assert!(!(lease.takes() && covered && holds(&lease.lender)), "lent and kept: {:?}", lease);
                }
            }
        }
        // When only the roots are live, every path that a root wants to write has a writer.
        let children: Vec<String> = table.holders().filter(|(_, h)| h.parent.is_some()).map(|(k, _)| k.clone()).collect();
        for child in children {
            table.stop(&child);
        }
        for lease in table.leases().cloned().collect::<Vec<_>>() {
            table.reclaim(&lease.lender, &lease.rule);
        }
        prop_assert!(!table.leases().any(Lease::takes));
        for path in PATHS.map(Path::new) {
            let wanted = table.holders().any(|(_, h)| h.live && h.restrictions.read_only().next().is_none() && h.wanted.permission(path) == Some(Permission::Write));
            let written = table.holders().any(|(key, _)| table.held(key).permission(path) == Some(Permission::Write));
            prop_assert!(!wanted || written, "lost: {:?} in {:?}", path, table);
        }
    }

    #[test]
    fn pods_take_turns(steps in prop::collection::vec(step(), 1..40)) {
        let mut table = LeaseTable::default();
        for (n, step) in steps.iter().enumerate() {
            let before = table.clone();
            apply(&mut table, step, n as u64);
            prop_assert_eq!(table.fault(), None, "after {:?}", step);
            for (key, holder) in table.holders().filter(|(_, holder)| holder.turn.is_some()) {
                // Whatever keeps it from writing is lent, or in the family of a Pod whose turn lasts.
                for blocked in &holder.restrictions.blocked {
                    let writers = table.writers_at(&blocked.region, |other| other == key);
                    let stands = |other: &String| {
                        let mut leases = table.borrowed_by(other);
                        let lent = leases.any(|lease| lease.takes() && lease.rule.overlaps(&blocked.region));
                        lent || table.above(other).contains(key) || relatives(&table, other).iter().any(|member| {
                            member != key && table.holder(member).is_some_and(|h| h.turn.is_some())
                        })
                    };
                    prop_assert!(writers.iter().any(stands), "{key} waits for {writers:?} after {step:?}: {table:?}");
                }
                // Only a loan, a stop or a kill takes what it writes before its turn ends.
                let is_turn = matches!(step, Step::BeginTurn(_) | Step::EndTurn(_));
                if is_turn && before.holder(key).is_some_and(|holder| holder.turn.is_some()) {
                    let lost = before.held(key).write_lost_in(&table.held(key));
                    prop_assert!(lost.is_empty(), "{key} loses {lost:?} by {step:?}");
                }
            }
        }
    }
}

/// The Pods of the tree that this one is in.
fn relatives(table: &LeaseTable, key: &str) -> Vec<String> {
    let top = table.above(key).pop().unwrap_or_else(|| key.to_owned());
    with_all_below(table, &top)
}

#[test]
fn who_rests_gives_way_and_writes_again_at_the_next_turn() {
    let mut table = LeaseTable::default();
    for (n, key) in ["a", "b", "c"].iter().enumerate() {
        table.add(*key, holder(None, vec![write("/w")], n as u64));
        table.go_live(key);
    }
    assert_eq!(writes(&table, "/w/x"), ["a"]);
    let b = table.begin_turn("b").unwrap();
    assert_eq!(writes(&table, "/w/x"), ["b"]);
    let a = table.begin_turn("a").unwrap();
    assert_eq!(writes(&table, "/w/x"), ["b"], "a turn that lasts is not taken");
    assert_eq!(table.in_the_way_of("a").into_iter().collect::<Vec<_>>(), ["b"]);
    table.end_turn("b", b);
    assert_eq!(writes(&table, "/w/x"), ["a"], "its own turn still lasts");
    assert!(table.in_the_way_of("a").is_empty());
    table.end_turn("a", a);
    assert_eq!(writes(&table, "/w/x"), ["a"], "nobody else wants to");
    table.end_turn("b", b);
    let b = table.begin_turn("b").unwrap();
    assert_eq!(writes(&table, "/w/x"), ["b"]);
    table.stop("b");
    table.end_turn("b", b);
    assert_eq!(writes(&table, "/w/x"), ["a"]);
}

#[test]
fn what_is_lent_to_a_child_stays_lent_and_a_child_that_writes_keeps_its_root_from_resting() {
    let mut table = family();
    table.add("z", holder(None, vec![write("/w")], 9));
    table.go_live("z");
    let turn = table.begin_turn("z").unwrap();
    assert_eq!(
        (writes(&table, "/w/x"), writes(&table, "/w/p/x")),
        (vec!["z".into()], vec!["p".into()])
    );
    assert_eq!(table.in_the_way_of("z").into_iter().collect::<Vec<_>>(), ["c", "p"]);
    table.end_turn("z", turn);
    let of_child = table.begin_turn("c").unwrap();
    let of_root = table.begin_turn("g").unwrap();
    table.end_turn("g", of_root);
    table.begin_turn("z").unwrap();
    assert_eq!(writes(&table, "/w/x"), ["g"], "its grandchild writes");
    table.end_turn("c", of_child);
    assert_eq!(writes(&table, "/w/x"), ["z"]);
}

#[test]
fn a_child_that_came_back_before_its_parent_keeps_what_it_has_in_a_turn_of_the_parent() {
    let mut table = family();
    table.stop_all(&["c".into(), "p".into(), "g".into()]);
    table.go_live("p");
    table.go_live("g");
    assert!(table.borrowed_by("p").next().is_none());
    let turn = table.begin_turn("g").unwrap();
    assert_eq!(
        (writes(&table, "/w/x"), writes(&table, "/w/p/x")),
        (vec!["g".into()], vec!["p".into()])
    );
    assert!(table.in_the_way_of("g").is_empty(), "it works for the other one");
    table.end_turn("g", turn);
}

#[test]
fn a_child_in_a_turn_that_loses_its_last_path_lets_its_family_rest() {
    let mut table = LeaseTable::default();
    table.add("p", holder(None, vec![write("/x"), write("/y")], 1));
    table.add("c", holder(Some("p"), vec![write("/x/a")], 2));
    table.add("z", holder(None, vec![write("/y")], 3));
    for key in ["p", "c", "z"] {
        table.go_live(key);
    }
    table.begin_turn("c").unwrap();
    table.begin_turn("z").unwrap();
    assert_eq!(writes(&table, "/y/x"), ["p"]);
    table.reclaim("p", &write("/x"));
    assert_eq!(writes(&table, "/y/x"), ["z"]);
}

#[test]
fn a_child_that_was_lent_a_path_only_to_read_gives_way_where_it_writes_by_itself() {
    let mut table = LeaseTable::default();
    table.add("p", holder(None, vec![write("/w")], 0));
    table.add("z", holder(None, vec![write("/w/x")], 1));
    let read = Rule::new("/w", Permission::Read);
    table.add("c", holder(Some("p"), vec![read, write("/w/x")], 2));
    table.go_live_all(&["p".into(), "z".into()]);
    let turn = table.begin_turn("z").unwrap();
    table.go_live("c");
    assert!(table.borrowed_by("c").all(|lease| !lease.takes()), "it was disputed");
    table.end_turn("z", turn);
    let turn = table.begin_turn("c").unwrap();
    assert_eq!(writes(&table, "/w/x/y"), ["c"]);
    table.end_turn("c", turn);
    table.begin_turn("z").unwrap();
    assert_eq!(writes(&table, "/w/x/y"), ["z"]);
}

#[test]
fn a_child_that_only_reads_takes_nothing_from_a_pod_at_rest() {
    let mut table = LeaseTable::default();
    table.add("z", holder(None, vec![write("/w")], 0));
    table.add("p", holder(None, vec![write("/w")], 1));
    table.add("c", holder(Some("p"), vec![Rule::new("/w", Permission::Read)], 2));
    for key in ["z", "p", "c"] {
        table.go_live(key);
    }
    assert_eq!(writes(&table, "/w/x"), ["z"]);
}

#[test]
fn a_child_that_comes_back_is_lent_what_a_pod_at_rest_wrote_last() {
    let mut table = LeaseTable::default();
    table.add("p", holder(None, vec![write("/")], 0));
    table.add("z", holder(None, vec![write("/a")], 1));
    table.add("c", holder(Some("p"), vec![write("/a")], 2));
    table.go_live("p");
    table.go_live("z");
    let turn = table.begin_turn("z").unwrap();
    table.end_turn("z", turn);
    assert_eq!(writes(&table, "/a/x"), ["z"]);
    table.go_live("c");
    assert_eq!(writes(&table, "/a/x"), ["c"]);
    assert_eq!(
        table.borrowed_by("c").map(|lease| lease.lender.as_str()).collect::<Vec<_>>(),
        ["p"]
    );
}

#[test]
fn a_pod_at_rest_lends_what_another_one_at_rest_wrote_last() {
    let mut table = family();
    table.add("z", holder(None, vec![write("/w")], 9));
    table.go_live("z");
    let turn = table.begin_turn("z").unwrap();
    assert_eq!(table.lend("g", "p", write("/w/a")), Err(NotLent::HeldBy("z".into())));
    table.end_turn("z", turn);
    assert_eq!(table.lend("g", "p", write("/w/a")), Ok(()));
    assert_eq!(
        (writes(&table, "/w/a/x"), writes(&table, "/w/x")),
        (vec!["p".into()], vec!["g".into()])
    );
    table.add("k", holder(Some("g"), vec![write("/w/k")], 10));
    table.begin_turn("z").unwrap();
    table.go_live("k");
    assert_eq!(writes(&table, "/w/k/x"), ["z"], "its turn lasts");
}
