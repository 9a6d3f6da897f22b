//! The book after all that may happen to a family.

use crate::scope::lease::{Holder, LeaseTable, NotLent};
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
    let mut book = LeaseTable::default();
    book.add("g", holder(None, vec![write("/w")], 1));
    book.add("p", holder(Some("g"), vec![write("/w/p")], 2));
    book.add("c", holder(Some("p"), vec![write("/w/p/c")], 3));
    for key in ["g", "p", "c"] {
        book.go_live(key);
        assert_eq!(book.fault(), None);
    }
    book
}

fn writes(book: &LeaseTable, path: &str) -> Vec<String> {
    let held =
        |key: &&String| book.held(key).permission(Path::new(path)) == Some(Permission::Write);
    book.live().filter(held).cloned().collect()
}

#[test]
fn what_is_lent_is_gone_from_the_lender_until_it_returns() {
    let mut book = family();
    assert_eq!(writes(&book, "/w/x"), ["g"]);
    assert_eq!(writes(&book, "/w/p/x"), ["p"]);
    assert_eq!(writes(&book, "/w/p/c/x"), ["c"]);
    assert_eq!(book.held("g").permission(Path::new("/w/p/x")), Some(Permission::Read));
    let back = book.stop("c");
    assert_eq!(back.len(), 1);
    assert_eq!(writes(&book, "/w/p/c/x"), ["p"]);
}

#[test]
fn a_grandchild_keeps_what_it_has_when_its_parent_stops_and_comes_back() {
    let mut book = family();
    book.stop("p");
    assert_eq!(writes(&book, "/w/p/x"), ["g"]);
    assert_eq!(writes(&book, "/w/p/c/x"), ["c"]);
    assert_eq!(book.lent_by("g").map(|l| l.borrower.as_str()).collect::<Vec<_>>(), ["c"]);
    book.go_live("p");
    assert_eq!(writes(&book, "/w/p/x"), ["p"]);
    assert_eq!(writes(&book, "/w/p/c/x"), ["c"]);
    let mut before = family();
    before.loans.reverse();
    assert_eq!(book, before);
}

#[test]
fn who_comes_later_reads_and_writes_once_the_first_is_gone() {
    let mut book = family();
    book.add("z", holder(None, vec![write("/w")], 9));
    book.go_live("z");
    assert!(writes(&book, "/w/x") == ["g"] && writes(&book, "/w/p/x") == ["p"]);
    for key in ["g", "p", "c"] {
        book.stop(key);
    }
    assert_eq!(writes(&book, "/w/p/c/x"), ["z"]);
    book.go_live("c");
    assert_eq!(writes(&book, "/w/p/c/x"), ["z"]);
    assert_eq!(book.fault(), None);
}

#[test]
fn a_rule_that_is_not_free_is_refused_with_the_reason() {
    let book = family();
    assert_eq!(book.may_lend("g", &write("/w/a")), Ok(()));
    assert_eq!(book.may_lend("g", &write("/x")), Err(NotLent::Outside));
    let lent = |has: &str| Err(NotLent::LentTo { to: "p".into(), has: has.into() });
    assert_eq!(book.may_lend("g", &write("/w/p/d")), lent("p"));
    assert_eq!(book.may_lend("g", &write("/w/p/c/d")), lent("c"));
    assert_eq!(book.may_lend("g", &Rule::new("/w/p", Permission::Read)), Ok(()));
}

#[test]
fn a_loan_of_a_person_ends_with_a_reclaim_and_the_borrower_reads_again() {
    let mut book = family();
    book.add("z", holder(None, vec![write("/z")], 9));
    book.go_live("z");
    book.lend("g", "z", write("/w/a")).unwrap();
    assert_eq!(writes(&book, "/w/a/x"), ["z"]);
    let back = book.reclaim("g", &write("/w/a/deep"));
    assert_eq!(back.len(), 1);
    assert_eq!(writes(&book, "/w/a/x"), ["g"]);
    let back = book.reclaim("g", &write("/w/p"));
    assert_eq!(back[0].borrower, "p");
    assert_eq!(writes(&book, "/w/p/x"), ["g"]);
    assert_eq!(writes(&book, "/w/p/c/x"), ["c"]);
    book.stop("g");
    assert_eq!(writes(&book, "/w/p/x"), [""; 0], "nobody gave it back");
    book.go_live("g");
    assert_eq!(writes(&book, "/w/p/x"), ["g"]);
    let mut lent = book.clone();
    lent.stop("c");
    lent.lend("g", "p", write("/w/p")).unwrap();
    assert_eq!(writes(&lent, "/w/p/x"), ["p"]);
    book.stop("p");
    book.go_live("p");
    assert_eq!(writes(&book, "/w/p/x"), ["p"]);
}

#[test]
fn who_has_all_of_a_path_holds_it_though_a_part_is_lent_on() {
    let mut book = family();
    book.add("z", holder(None, vec![write("/w")], 9));
    book.go_live("z");
    assert_eq!(book.writer_of(&write("/w"), "z").as_deref(), Some("g"));
    assert_eq!(book.writer_of(&write("/w/p/c/x"), "z").as_deref(), Some("c"));
}

#[test]
fn a_part_of_what_the_borrower_reads_as_a_whole_is_refused_and_the_whole_is_lent() {
    let mut book = LeaseTable::default();
    book.add("f", holder(None, vec![write("/w/a")], 1));
    book.add("e", holder(None, vec![write("/w")], 2));
    book.go_live("f");
    book.go_live("e");
    let before = book.clone();
    let part = book.lend("f", "e", write("/w/a/deep"));
    assert_eq!(part, Err(NotLent::PartOf(write("/w/a"))));
    assert_eq!(book.extend("e", &write("/w/a/deep")), Err(NotLent::HeldBy("f".into())));
    assert_eq!(book, before);
    book.lend("f", "e", write("/w/a")).unwrap();
    assert_eq!(writes(&book, "/w/a/deep"), ["e"]);
}

#[test]
fn what_a_person_allows_a_child_passes_through_its_parents_and_ends_with_it() {
    let mut book = family();
    book.extend("c", &write("/out")).unwrap();
    assert_eq!(writes(&book, "/out/x"), ["c"]);
    book.stop("c");
    assert_eq!(writes(&book, "/out/x"), ["p"]);
    book.add("z", holder(None, vec![write("/z")], 9));
    book.go_live("z");
    assert_eq!(book.extend("c", &write("/z/a")), Err(NotLent::NotLive("c".into())));
    assert_eq!(book.extend("p", &write("/z/a")), Err(NotLent::HeldBy("z".into())));
    for key in ["p", "g"] {
        book.stop(key);
    }
    assert!(book.loans().is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Spawn(usize, usize, usize),
    Live(usize),
    Stop(usize),
    Lend(usize, usize, usize),
    Reclaim(usize, usize),
    Remove(usize),
    Extend(usize, usize),
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const PATHS: [&str; 8] = ["/", "/a", "/b", "/a/a", "/a/b", "/a/a/a", "/a/a/b", "/b/b"];

fn step() -> impl Strategy<Value = Step> {
    let (name, path) = (0..NAMES.len(), 0..PATHS.len());
    prop_oneof![
        3 => (name.clone(), name.clone(), path.clone()).prop_map(|(a, b, c)| Step::Spawn(a, b, c)),
        3 => name.clone().prop_map(Step::Live),
        3 => name.clone().prop_map(Step::Stop),
        2 => (name.clone(), name.clone(), path.clone()).prop_map(|(a, b, c)| Step::Lend(a, b, c)),
        2 => (name.clone(), path.clone()).prop_map(|(a, b)| Step::Reclaim(a, b)),
        2 => (name.clone(), path).prop_map(|(a, b)| Step::Extend(a, b)),
        1 => name.prop_map(Step::Remove),
    ]
}

fn apply(book: &mut LeaseTable, step: &Step, n: u64) {
    match *step {
        Step::Spawn(parent, child, path) => {
            let (parent, child, rule) = (NAMES[parent], NAMES[child], write(PATHS[path]));
            if book.holder(child).is_some() {
                return;
            }
            if book.holder(parent).is_none() {
                book.add(child, holder(None, vec![rule], n));
            } else if book.may_lend(parent, &rule).is_ok() {
                let wanted = book.child_scope(parent, vec![rule]);
                let parent = Some(parent.to_owned());
                book.add(child, Holder { parent, wanted, created: n, ..Holder::default() });
            } else {
                return;
            }
            book.go_live(child);
        }
        Step::Live(name) => book.go_live(NAMES[name]),
        Step::Stop(name) => drop(book.stop(NAMES[name])),
        Step::Lend(from, to, path) if from != to => {
            if book.lend(NAMES[from], NAMES[to], write(PATHS[path])).is_ok() {
                assert!(book.held(NAMES[to]).covers(&write(PATHS[path])));
            }
        }
        Step::Lend(..) => {}
        Step::Reclaim(owner, path) => drop(book.reclaim(NAMES[owner], &write(PATHS[path]))),
        Step::Remove(name) => book.remove(NAMES[name]),
        Step::Extend(name, path) => {
            if book.extend(NAMES[name], &write(PATHS[path])).is_ok() {
                assert!(book.held(NAMES[name]).covers(&write(PATHS[path])));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn after_any_sequence_nobody_writes_beside_another_and_the_loans_add_up(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut book = LeaseTable::default();
        for (n, step) in steps.iter().enumerate() {
            apply(&mut book, step, n as u64);
            prop_assert_eq!(book.fault(), None, "after {:?}", step);
            for path in PATHS {
                let holds = |key: &str| book.held(key).permission(Path::new(path)) == Some(Permission::Write);
                for loan in book.loans() {
                    let covered = loan.rule.covers(Path::new(path));
                    let beyond = loan.lender == loan.borrower;
                    prop_assert!(beyond || !(covered && holds(&loan.lender)), "lent and kept: {:?}", loan);
                }
            }
        }
        // When all but the roots let go, a path a root wants is written by somebody.
        let children: Vec<String> = book.holders().filter(|(_, h)| h.parent.is_some()).map(|(k, _)| k.clone()).collect();
        for child in children {
            book.stop(&child);
        }
        for loan in book.loans().to_vec() {
            book.reclaim(&loan.lender, &loan.rule);
        }
        prop_assert!(book.loans().iter().all(|loan| loan.lender == loan.borrower));
        for path in PATHS.map(Path::new) {
            let wanted = book.holders().any(|(_, h)| h.live && h.gaps.capped.is_empty() && h.wanted.permission(path) == Some(Permission::Write));
            let written = book.live().any(|key| book.held(key).permission(path) == Some(Permission::Write));
            prop_assert!(!wanted || written, "lost: {:?} in {:?}", path, book);
        }
    }
}
