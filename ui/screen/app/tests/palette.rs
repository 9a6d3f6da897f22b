//! The palette: one list over everything.

use super::{Bench, calls, pod};
use crate::screen::app::screen_state::ScreenState;
use crate::screen::app::{Asked, Effect, Layer, LoadFor, Msg};
use crate::screen::pick_list::{Choice, ListRow, PickList};
use yoi::protocol::{Completion, CompletionKind, Event, Method, State};

fn open(bench: &mut Bench, query: &str) -> Vec<Effect> {
    bench.press("ctrl-p");
    bench.type_in(query)
}

/// The row that Enter would choose.
fn best(bench: &mut Bench) -> String {
    let screen = bench.screen();
    let title = screen.lines().position(|line| line.trim() == "palette").expect("the palette");
    screen.lines().nth(title + 1).unwrap_or_default().trim().to_owned()
}

#[test]
fn it_finds_values_settings_and_messages_and_chooses_them() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    open(&mut bench, "night");
    let chosen = bench.press("enter");
    assert!(
        matches!(&chosen[..], [Effect::LoadTheme(LoadFor::Choice(name))] if name == "night"),
        "{chosen:?}"
    );
    open(&mut bench, "sonnet");
    let chosen = bench.press("enter");
    assert!(matches!(calls(&chosen)[..], [(Some("alice"), Method::SetModel { .. })]), "{chosen:?}");
    open(&mut bench, "limits.max_turns");
    let chosen = bench.press("enter");
    assert!(
        matches!(&chosen[..], [Effect::OpenSettings(key)] if key == "limits.max_turns"),
        "{chosen:?}"
    );
    bench.type_in("mend the parser");
    bench.press("enter");
    open(&mut bench, "parser");
    bench.press("enter");
    assert_eq!(bench.draft(), "mend the parser");
}

#[test]
fn what_is_said_of_a_verb_finds_it() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    open(&mut bench, "shorten the history");
    assert!(best(&mut bench).starts_with(":compact"), "{}", bench.screen());
}

#[test]
fn the_rows_that_were_chosen_most_come_first_also_on_the_next_screen() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    for query in ["theme day", "theme night", "theme day"] {
        open(&mut bench, query);
        bench.press("enter");
    }
    bench.press("ctrl-p");
    assert!(best(&mut bench).starts_with(":theme day"), "{}", bench.screen());
    let mut next = Bench::returning(bench.app.screen_state(), vec![pod("alice", State::Idle)]);
    open(&mut next, "theme");
    next.press("down");
    next.press("up");
    assert!(best(&mut next).starts_with(":theme day"), "{}", next.screen());
    let none = ScreenState::default();
    let merged = next.app.screen_state().merged(&none, bench.app.screen_state());
    let mut third = Bench::returning(merged, vec![pod("alice", State::Idle)]);
    third.press("ctrl-p");
    assert!(best(&mut third).starts_with(":theme day"), "{}", third.screen());
}

#[test]
fn the_host_finds_files_for_one_query_at_a_time_and_a_chosen_one_is_named_in_the_draft() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.type_in("look at ");
    let asked = open(&mut bench, "zzlist");
    let prefixes = |effects: &[Effect]| -> Vec<String> {
        let prefix = |(_, method): (Option<&str>, &Method)| match method {
            Method::ListCompletions { prefix, .. } => prefix.clone(),
            other => panic!("{other:?}"),
        };
        calls(effects).into_iter().map(prefix).collect()
    };
    assert_eq!(prefixes(&asked), ["z"]);
    let found = |query: &str, path: &str| {
        let entries = vec![
            Completion { value: path.into(), is_dir: false },
            Completion { value: "zz".into(), is_dir: true },
        ];
        let reply = Event::Completions { kind: CompletionKind::File, entries };
        Msg::Answered(Asked::FilesLike(query.into()), Ok(reply))
    };
    assert_eq!(prefixes(&bench.msg(found("z", "z.rs"))), ["zzlist"]);
    assert!(!bench.screen().contains("z.rs"), "that was for another query");
    assert_eq!(prefixes(&bench.msg(found("zzlist", "zz/list.rs"))), [""; 0]);
    assert!(bench.screen().contains("zz/list.rs"), "{}", bench.screen());
    // A query that comes back is asked for again: its files went with another one.
    bench.press("ctrl-u");
    assert_eq!(prefixes(&bench.type_in("zzlist")), ["z"]);
    bench.msg(found("z", "z.rs"));
    bench.msg(found("zzlist", "zz/list.rs"));
    assert!(best(&mut bench).starts_with("zz/list.rs"), "{}", bench.screen());
    bench.press("enter");
    assert_eq!(bench.draft(), "look at @zz/list.rs ");
    open(&mut bench, "zzlist");
    bench.msg(found("z", "z.rs"));
    bench.msg(found("zzlist", "zz/list.rs"));
    bench.press("enter");
    assert_eq!(bench.draft(), "look at @zz/list.rs @zz/list.rs ");
}

#[test]
fn a_long_list_is_searched_on_while_keys_come_and_enter_takes_what_the_whole_query_finds() {
    let row = |i: usize| ListRow {
        text: format!("row {i}"),
        help: String::new(),
        choice: Choice::Prefill(format!("send alice {i}")),
    };
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    let list = PickList::new("rows", (0..100_000).map(row).collect());
    drop(bench.app.open_layer(Layer::List(list)));
    let before = bench.screen();
    bench.type_in("99");
    assert_eq!(bench.app.wakes_at(), Some(bench.app.now), "it goes on at once");
    let rows = |screen: &str| screen.lines().filter(|l| l.contains("row ")).count();
    assert_eq!(rows(&bench.screen()), rows(&before), "the rows stay until the search is done");
    while bench.app.layers.are_searching() {
        bench.msg(Msg::Wake);
    }
    assert!(bench.screen().contains("row 99"), "{}", bench.screen());
    bench.type_in("999");
    bench.press("enter");
    assert!(bench.screen().contains("send alice 99999"), "{}", bench.screen());
}
