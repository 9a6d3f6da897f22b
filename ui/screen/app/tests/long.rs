//! A long answer of a Pod on the screen: what is asked of the host, and what is said of a copy.

use super::*;
use crate::screen::pane::transcript::{LongText, PartTable, TableBuilder};
use yoi::protocol::event::Line;
use yoi::protocol::{Entry, EntryId, Fact, Item, Role};

/// An answer of about 300 KB.
fn answer_of_alice() -> Entry {
    let text: String = (0..12_000).map(|n| format!("line {n} of the answer\n")).collect();
    let item = Item::message(Role::Assistant, text);
    Entry::new(Fact::AssistantItem { item, origin: None, native: None, partial: false })
}

/// alice is current and has said it; bob says nothing.
fn bench(entry: &Entry) -> Bench {
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("bob", State::Idle)]);
    bench.type_in(":open alice");
    bench.press("enter");
    bench.screen();
    let cut = yoi::session::cut(entry).expect("a long entry");
    let line = Line::Cut { cut_bytes: cut.cut_bytes, entry: Box::new(cut.entry) };
    let (entries, before, in_flight, seq) = (vec![line], None, Vec::new(), 0);
    let page = Event::Page { entries, before, in_flight, seq };
    bench.msg(Msg::Answered(Asked::Page(name("alice")), Ok(page)));
    bench
}

fn table(line: &str, text: &LongText) -> PartTable {
    let start = line.find("\"text\":\"").expect("a text") + 8;
    let end = start + line[start..].find('"').expect("its end");
    let mut builder = TableBuilder::behind(text.kept);
    builder.begin(start as u64);
    builder.push(&line[start..end]).expect("a text");
    builder.end();
    builder.table(text.entry)
}

/// Answers what a frame asks for until nothing is; `limit` requests at most.
fn serve(bench: &mut Bench, entry: &Entry, limit: usize) {
    let line = serde_json::to_string(entry).expect("encoded");
    for _ in 0..limit {
        let effects = bench.app.prepare_frame();
        if effects.is_empty() {
            return;
        }
        for effect in effects {
            match effect {
                Effect::ReadTable(pod, text) => {
                    let read = Ok(table(&line, &text));
                    bench.msg(Msg::Table(pod, text.entry, read));
                }
                Effect::Call { method: Method::Fetch { entry, range }, asked, .. } => {
                    let range = range.expect("a part");
                    let start = range.start as usize;
                    let part = line[start..start + range.bytes as usize].to_owned();
                    let start = range.start;
                    let fetched = Event::FetchedRange { entry, start, line: part, shape: None };
                    bench.msg(Msg::Answered(asked, Ok(fetched)));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

fn transcript_keys(bench: &mut Bench) {
    bench.press("tab");
    bench.press("tab");
    assert_eq!(bench.app.focus, Focus::Transcript);
}

#[test]
fn a_long_answer_is_read_in_parts_to_both_of_its_ends() {
    let entry = answer_of_alice();
    let mut bench = bench(&entry);
    assert!(bench.screen().contains("(the rest is being loaded …)"));
    let mut bench = self::bench(&entry);
    serve(&mut bench, &entry, 99);
    assert!(bench.screen().contains("line 11999 of"), "{}", bench.screen());
    transcript_keys(&mut bench);
    bench.press("g");
    serve(&mut bench, &entry, 99);
    assert!(bench.screen().contains("line 0 of"), "{}", bench.screen());
}

#[test]
fn a_table_or_a_part_for_a_pod_that_is_not_shown_any_more_does_no_harm() {
    let entry = answer_of_alice();
    let mut bench = bench(&entry);
    let effects = bench.app.prepare_frame();
    let Some(Effect::ReadTable(_, text)) = effects.into_iter().next() else { panic!("no table") };
    let line = serde_json::to_string(&entry).expect("encoded");
    bench.type_in(":open bob");
    bench.press("enter");
    let before = bench.screen();
    bench.msg(Msg::Table(name("alice"), text.entry, Ok(table(&line, &text))));
    bench.msg(Msg::Table(name("carol"), text.entry, Ok(table(&line, &text))));
    assert_eq!(bench.screen(), before);
    bench.msg(Msg::HostEnded);
    bench.msg(Msg::Connected);
    bench.msg(Msg::Table(name("alice"), EntryId::new(), Err("the connection ended".into())));
    bench.screen();
}

#[test]
fn escape_stops_a_search_through_a_long_answer_and_stays_in_the_transcript() {
    let entry = answer_of_alice();
    let mut bench = bench(&entry);
    serve(&mut bench, &entry, 99);
    transcript_keys(&mut bench);
    bench.press("/");
    bench.type_in("line 7 of");
    bench.press("enter");
    assert!(bench.screen().contains("looking …"), "{}", bench.screen());
    bench.wait(5_000);
    bench.press("esc");
    assert!(!bench.screen().contains("looking …"), "{}", bench.screen());
    assert_eq!(bench.app.focus, Focus::Transcript);
    serve(&mut bench, &entry, 99);
    assert!(!bench.screen().contains("line 7 of"), "{}", bench.screen());
}

#[test]
fn a_long_copy_is_read_from_the_log_and_the_notice_says_where_it_is() {
    let entry = answer_of_alice();
    let mut bench = bench(&entry);
    serve(&mut bench, &entry, 99);
    transcript_keys(&mut bench);
    let effects = bench.press("y");
    let [Effect::CopyFromLog(pod, copy)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((pod.as_str(), copy.entry), ("alice", entry.id));
    let effects = bench.msg(Msg::Copied(Ok(Copied::Text("a\nb\n".into()))));
    assert!(matches!(&effects[..], [Effect::Copy(text)] if text == "a\nb\n"), "{effects:?}");
    assert_eq!(bench.notice(), "copied 2 lines (OSC 52)");
    bench.msg(Msg::Copied(Ok(Copied::File("/state/copies/alice-1.txt".into(), 5_000_000))));
    assert_eq!(bench.notice(), "copied 5.0 MB to /state/copies/alice-1.txt");
    let effects = bench.msg(Msg::Copied(Err("cannot write /state/copies/alice-1.txt".into())));
    assert!(effects.is_empty());
    assert_eq!(bench.notice(), "not copied: cannot write /state/copies/alice-1.txt");
}

#[test]
fn a_text_above_1_mb_never_goes_to_the_clipboard() {
    let mut bench = bench(&answer_of_alice());
    let effects = bench.msg(Msg::Copied(Ok(Copied::Text("x".repeat(CLIPBOARD + 1)))));
    assert!(matches!(&effects[..], [Effect::CopyFromLog(..)]), "{effects:?}");
}
