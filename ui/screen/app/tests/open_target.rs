//! `o` in a transcript: the file of a call, or a link.

use super::*;
use yoi::protocol::event::Line;
use yoi::protocol::{Entry, Fact, Item, Role};

/// alice has said this and then made this call; the keys are in her transcript.
fn bench(said: &str, call: Option<serde_json::Value>) -> Bench {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.go_to("alice");
    bench.screen();
    let said = Item::message(Role::Assistant, said);
    let call = call.map(|arguments| Item::ToolCall {
        call_id: "c1".into(),
        name: "Read".into(),
        arguments: arguments.to_string(),
    });
    let entries = [said].into_iter().chain(call).map(|item| {
        let fact = Fact::AssistantItem { item, origin: None, native: None, partial: false };
        Line::Whole(Box::new(Entry { ts: NOON, ..Entry::new(fact) }))
    });
    let entries = entries.collect();
    let page = Event::Page { entries, before: None, in_flight: Vec::new(), seq: 0 };
    bench.msg(Msg::Answered(Asked::Page(name("alice")), Ok(page)));
    bench.press("ctrl-x");
    bench.press("r");
    bench.screen();
    bench
}

fn environment(bench: &mut Bench, variables: &[&str]) {
    bench.app.setup.env = variables.iter().map(|name| ((*name).into(), "1".into())).collect();
}

/// For the test of the texts that name the key.
pub fn a_file_is_opened() {
    the_file_of_a_call_is_opened_at_the_line_from_which_it_was_read();
}

#[test]
fn the_file_of_a_call_is_opened_at_the_line_from_which_it_was_read() {
    for (path, opened) in [("src/lib.rs", "/repo/src/lib.rs"), ("/etc/hosts", "/etc/hosts")] {
        let read = serde_json::json!({ "file_path": path, "offset": 11, "limit": 5 });
        let mut bench = bench("I read it: https://a.b", Some(read));
        let effects = bench.press("o");
        let [Effect::OpenFile(path, line)] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!((path.to_str(), *line), (Some(opened), Some(12)));
    }
}

#[test]
fn a_link_is_opened_where_there_is_a_display_and_is_copied_elsewhere() {
    let mut bench = bench("See [the guide](https://a.b/guide) and https://c.d.", None);
    environment(&mut bench, &["WAYLAND_DISPLAY"]);
    let effects = bench.press("o");
    assert!(matches!(&effects[..], [Effect::OpenLink(to)] if to == "https://a.b/guide"));
    assert_eq!(bench.notice(), "opening https://a.b/guide");
    for variables in [&[][..], &["DISPLAY", "SSH_CONNECTION"]] {
        environment(&mut bench, variables);
        let effects = bench.press("o");
        assert!(matches!(&effects[..], [Effect::Copy(text)] if text == "https://a.b/guide"));
    }
}

#[test]
fn an_address_of_a_file_is_only_copied_and_a_block_without_a_target_says_so() {
    let mut copies = bench("See file:///home/ann/x.desktop", None);
    environment(&mut copies, &["DISPLAY"]);
    let effects = copies.press("o");
    assert!(matches!(&effects[..], [Effect::Copy(text)] if text == "file:///home/ann/x.desktop"));
    let mut bench = bench("Nothing to see.", None);
    assert!(bench.press("o").is_empty());
    assert_eq!(bench.notice(), "no file and no link here");
}
