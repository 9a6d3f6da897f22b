//! The foot of the tree.

use super::*;

#[test]
fn a_tree_with_more_pods_than_rows_says_how_many_are_above_and_below() {
    let pods = (10..40).map(|number| pod(&format!("p{number}"), State::Idle)).collect();
    let mut bench = Bench::new(pods);
    bench.press("tab");
    for _ in 10..40 {
        bench.press("up");
    }
    let screen = bench.screen();
    let listed = screen.lines().filter(|line| line.starts_with("│○ p")).count();
    assert!(screen.contains(&format!("│↓{} ", 30 - listed)), "{screen}");
    for _ in 10..40 {
        bench.press("down");
    }
    let screen = bench.screen();
    assert!(screen.contains("p39") && screen.contains(&format!("│↑{} ", 30 - listed)), "{screen}");
    bench.press("up");
    let screen = bench.screen();
    assert!(screen.contains("↓1 "), "{screen}");
    bench.size(80, 50);
    let screen = bench.screen();
    assert!(!screen.contains('↓') && !screen.contains('↑'), "{screen}");
}

#[test]
fn among_all_workspaces_the_tree_names_that_of_the_chosen_pod() {
    let there = PodInfo { workspace: "/else/shop".into(), ..pod("far", State::Idle) };
    let mut bench = Bench::new(vec![pod("alice", State::Idle), there]);
    bench.press("tab");
    bench.press("w");
    assert!(bench.screen().contains("works in repo · w"), "{}", bench.screen());
    bench.press("down");
    assert!(bench.screen().contains("works in shop · w"), "{}", bench.screen());
}
