//! What the texts promise of the keys of vim.

use super::players::{current, family, shown, with_calls};
use super::*;
use crate::screen::keys::built_in;

fn press(bench: &mut Bench, keys: &[&str]) {
    for key in keys {
        bench.press(key);
    }
}

fn with_vim(mut bench: Bench) -> Bench {
    bench.app.keymap = built_in("vim");
    bench
}

pub fn pages_and_rows_are_scrolled() {
    let mut bench = with_vim(family(State::Idle));
    bench.size(80, 24);
    press(&mut bench, &["ctrl-x", "t", "f1"]);
    for (down, up) in [("ctrl-d", "ctrl-u"), ("ctrl-f", "ctrl-b"), ("ctrl-e", "ctrl-y")] {
        let before = bench.screen();
        bench.press(down);
        assert_ne!(bench.screen(), before, "{down}");
        bench.press(up);
        assert_eq!(bench.screen(), before, "{up}");
    }
    let mut bench = with_vim(family(State::Idle));
    press(&mut bench, &["ctrl-x", "t", "ctrl-d"]);
    assert_eq!(shown(&bench), "bob");
    bench.press("ctrl-u");
    assert_eq!(shown(&bench), "tour");
}

pub fn rows_are_folded() {
    let mut bench = with_vim(with_calls());
    press(&mut bench, &["ctrl-x", "r", "k", "k", "j"]);
    let mut unfolded = |key: &str| {
        bench.press(key);
        bench.screen().matches("line 7 of").count()
    };
    assert_eq!(["z", "h", "l", "z"].map(&mut unfolded), [1, 0, 1, 0]);
}

pub fn a_list_is_walked() {
    let mut bench = with_vim(family(State::Idle));
    press(&mut bench, &["ctrl-x", "t", "j"]);
    assert_eq!(shown(&bench), "checker");
    press(&mut bench, &["k", "G"]);
    assert_eq!(shown(&bench), "bob");
    press(&mut bench, &["g", "j", "o"]);
    assert_eq!((current(&bench), bench.app.focus), ("checker", Focus::Composer));
    let (usual, vim) = (default_keymap(), built_in("vim"));
    for (place, context) in CONTEXTS {
        for key in ["up", "down", "j", "k", "g", "G", "/", "n", "N", "y", "i", ":"] {
            let key = crate::screen::keys::parse(key).expect("a key");
            let bound = usual.get(context, key);
            assert!(bound.is_none() || bound == vim.get(context, key), "{place}: {}", label(key));
        }
    }
}

pub fn the_leader_has_a_second_key() {
    let mut bench = with_vim(family(State::Idle));
    press(&mut bench, &["ctrl-x", "t", "ctrl-w", "w"]);
    assert_eq!(bench.app.focus, Focus::Transcript);
    press(&mut bench, &["ctrl-w", "W"]);
    assert_eq!(bench.app.focus, Focus::Tree);
    press(&mut bench, &["ctrl-w", "j"]);
    assert_eq!(current(&bench), "checker");
    press(&mut bench, &["ctrl-x", "t", "ctrl-w", "k"]);
    assert_eq!(current(&bench), "tour");
}
