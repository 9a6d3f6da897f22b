//! Commands of one reply run at the same time and change guarded paths that the others compare.

use crate::escape::cell::{Cell, no_world_to_test};
use crate::escape::git::{git, repository};
use std::fs;
use yoi::sandbox::StartGroup;

#[tokio::test]
async fn no_command_takes_for_the_persons_what_one_beside_it_made() {
    let mut first = repository();
    if no_world_to_test() {
        return;
    }
    first.only_in_a_world();
    let ws = first.path("ws");
    git(&ws, &["commit", "-q", "--allow-empty", "-m", "x"]);
    let mut second = Cell::new();
    second.bench.ctx = first.bench.ctx.clone();
    [first.group, second.group] = StartGroup::of(2).try_into().unwrap();
    let plant = "cp -r .git /tmp/evil; echo ../x > .git/commondir; echo evil > .mcp.json; \
                     rm .git/HEAD; echo evil > .git/HEAD; echo x > planted";
    let wait = "until test -e planted; do read -t 0.01 <> <(:); done; \
                    while test -e .mcp.json; do read -t 0.01 <> <(:); done; echo evil > .mcp.json";
    let (did, beside) = tokio::join!(first.run(plant), second.run(wait));
    assert!(did.ended.undone.len() >= 3, "{:?}", did.ended);
    beside.well();
    for planted in [".git/commondir", ".mcp.json"] {
        let is_there = ws.join(planted).symlink_metadata().is_ok();
        assert!(!is_there, "{planted} is back: {:?}", beside.ended);
    }
    assert!(fs::read_to_string(ws.join(".git/HEAD")).unwrap().starts_with("ref: "));
}

#[tokio::test]
async fn a_command_whose_group_never_begins_ends_when_its_time_is_over() {
    let mut cell = Cell::new();
    let [own, _other] = &StartGroup::of(2)[..] else { panic!() };
    cell.group = own.clone();
    cell.seconds = 1;
    let did = cell.run("touch began").await;
    assert_eq!(did.ended.outcome, yoi::sandbox::Outcome::TimedOut);
    assert!(!cell.path("ws/began").exists());
}
