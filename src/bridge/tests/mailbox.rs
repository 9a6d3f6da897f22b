//! The mailbox of an agent, with crashes at any line.

use super::*;
use std::fs;
use tempfile::TempDir;

/// Messages that may wait.
const MOST: usize = 1_000;

fn place() -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("box.jsonl");
    (temp, path)
}

fn message(number: usize, body: &str) -> Kept {
    Kept {
        from: "bob".into(),
        id: format!("00000000-0000-7000-8000-{number:012}"),
        re: None,
        to: Addressed::You,
        at: 7,
        body: RawValue::from_string(body.to_owned()).unwrap(),
    }
}

fn messages(numbers: std::ops::Range<usize>) -> Vec<Kept> {
    numbers.map(|number| message(number, &number.to_string())).collect()
}

fn bodies(batch: &Batch) -> Vec<String> {
    batch.messages.iter().map(|given| given.message.body.get().to_owned()).collect()
}

#[test]
fn messages_are_given_in_their_order_and_again_until_their_taking_is_confirmed() {
    let (_temp, path) = place();
    let mut mailbox = Mailbox::open(&path).unwrap();
    assert_eq!(mailbox.keep(messages(0..3), MOST).unwrap(), [Arrival::Kept; 3]);
    let first = mailbox.give(false).unwrap();
    assert_eq!(bodies(&first), ["0", "1", "2"]);
    assert!(first.messages.iter().all(|given| !given.again));
    mailbox.keep(messages(3..4), MOST).unwrap();
    let again = mailbox.give(false).unwrap();
    assert_eq!((bodies(&again), again.waiting), (bodies(&first), 1));
    assert!(again.messages.iter().all(|given| given.again));
    assert_eq!(bodies(&mailbox.give(true).unwrap()), ["3"]);
    assert!(bodies(&mailbox.give(true).unwrap()).is_empty());
}

#[test]
fn what_is_kept_and_not_confirmed_comes_back_after_a_crash() {
    let (_temp, path) = place();
    let mut mailbox = Mailbox::open(&path).unwrap();
    mailbox.keep(messages(0..2), MOST).unwrap();
    mailbox.give(false).unwrap();
    mailbox.keep(messages(2..3), MOST).unwrap();
    drop(mailbox);
    // A crash in the middle of a line.
    let torn = fs::OpenOptions::new().append(true).open(&path);
    std::io::Write::write_all(&mut torn.unwrap(), b"{\"kept\":{\"from\"").unwrap();
    let mut mailbox = Mailbox::open(&path).unwrap();
    let batch = mailbox.give(false).unwrap();
    assert_eq!(bodies(&batch), ["0", "1", "2"]);
    assert_eq!(batch.messages.iter().map(|g| g.again).collect::<Vec<_>>(), [true, true, false]);
    mailbox.confirm().unwrap();
    drop(mailbox);
    assert_eq!(Mailbox::open(&path).unwrap().waiting(), 0);
}

#[test]
fn a_message_that_comes_twice_is_kept_once_also_after_it_was_taken() {
    let (_temp, path) = place();
    let mut mailbox = Mailbox::open(&path).unwrap();
    let twice = vec![message(1, "1"), message(1, "1")];
    assert_eq!(mailbox.keep(twice, MOST).unwrap(), [Arrival::Kept, Arrival::Known]);
    mailbox.give(false).unwrap();
    mailbox.confirm().unwrap();
    let mut mailbox = Mailbox::open(&path).unwrap();
    assert_eq!(mailbox.keep(messages(1..2), MOST).unwrap(), [Arrival::Known]);
    assert_eq!(mailbox.waiting(), 0);
}

#[test]
fn a_full_mailbox_keeps_no_more_and_loses_nothing() {
    let (_temp, path) = place();
    let mut mailbox = Mailbox::open(&path).unwrap();
    let outcome = mailbox.keep(messages(0..MOST + 1), MOST).unwrap();
    assert_eq!(outcome.iter().filter(|arrival| **arrival == Arrival::Kept).count(), MOST);
    assert_eq!(outcome.last(), Some(&Arrival::Full));
    let large = format!("\"{}\"", "x".repeat(MAX_BYTES));
    mailbox.give(false).unwrap();
    mailbox.confirm().unwrap();
    assert_eq!(mailbox.keep(vec![message(5_000, &large)], MOST).unwrap(), [Arrival::Full]);
    assert_eq!(mailbox.keep(messages(6_000..6_001), MOST).unwrap(), [Arrival::Kept]);
    let mut all = Vec::new();
    loop {
        let batch = mailbox.give(true).unwrap();
        if batch.messages.is_empty() {
            break;
        }
        all.extend(bodies(&batch));
    }
    let expected = (100..MOST).chain([6_000]).map(|number| number.to_string());
    assert_eq!(all, expected.collect::<Vec<_>>());
}

#[test]
fn a_batch_is_small_and_a_large_message_comes_alone() {
    let (_temp, path) = place();
    let mut mailbox = Mailbox::open(&path).unwrap();
    let large = format!("\"{}\"", "x".repeat(BATCH_BYTES));
    mailbox.keep(vec![message(0, "0"), message(1, &large), message(2, "2")], MOST).unwrap();
    assert_eq!(bodies(&mailbox.give(false).unwrap()), ["0"]);
    assert_eq!(bodies(&mailbox.give(true).unwrap()), [large]);
    assert_eq!(bodies(&mailbox.give(true).unwrap()), ["2"]);
}

#[test]
fn the_file_does_not_grow_with_what_was_taken() {
    let (_temp, path) = place();
    let mut mailbox = Mailbox::open(&path).unwrap();
    let body = format!("\"{}\"", "x".repeat(40 * 1024));
    for number in 0..100 {
        mailbox.keep(vec![message(number, &body)], MOST).unwrap();
        mailbox.give(true).unwrap();
    }
    assert!(fs::metadata(&path).unwrap().len() < 2 * SLACK);
    assert_eq!(mailbox.keep(messages(0..1), MOST).unwrap(), [Arrival::Known]);
}

#[test]
fn a_file_that_was_deleted_is_written_again_with_what_waits() {
    let (_temp, path) = place();
    let mut mailbox = Mailbox::open(&path).unwrap();
    mailbox.keep(messages(0..1), MOST).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(mailbox.keep(messages(1..2), MOST).is_err(), "what was not kept is said");
    assert_eq!(mailbox.keep(messages(1..2), MOST).unwrap(), [Arrival::Kept]);
    assert_eq!(bodies(&Mailbox::open(&path).unwrap().give(false).unwrap()), ["0", "1"]);
}

#[test]
fn a_body_that_is_no_text_comes_back_as_it_was_written() {
    let (_temp, path) = place();
    Mailbox::open(&path).unwrap().keep(vec![message(0, r#"["\ud800", 1.0]"#)], MOST).unwrap();
    let batch = Mailbox::open(&path).unwrap().give(false).unwrap();
    assert_eq!(bodies(&batch), [r#"["\ud800", 1.0]"#]);
}
