//! A conversation of lines with a host that is written here line by line.

use super::*;
use crate::headless::Unanswered;
use crate::headless::output::Output;
use crate::headless::print::Form;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::task::JoinHandle;
use yoi::protocol::frame::{Hello, Lines};
use yoi::protocol::{ApprovalRequest, Frame, Incoming, MAX_LINE, State};

/// How long a step may take before the test says that it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// More requests than notes wait for a reader.
const REQUESTS: usize = 400;

/// A standard error whose reader does not read until it is told to.
#[derive(Clone, Default)]
struct Reader(Arc<(Mutex<Read>, Condvar)>);

#[derive(Default)]
struct Read {
    reads: bool,
    text: Vec<u8>,
}

impl Reader {
    fn begins(&self) {
        self.0.0.lock().expect("a reader").reads = true;
        self.0.1.notify_all();
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.0.lock().expect("a reader").text.clone()).expect("text")
    }
}

impl Write for Reader {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (read, begins) = &*self.0;
        let read = read.lock().expect("a reader");
        let mut read = begins.wait_while(read, |read| !read.reads).expect("a reader");
        read.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn request(number: usize) -> ApprovalRequest {
    crate::screen::app::tests::approval(&format!("q{number}"), "alice", "cargo fetch")
}

/// Greets, answers the subscription with a family of one Pod, and sends the requests: with the family, or later
/// and one by one.
async fn host(
    mut lines: Lines<ReadHalf<DuplexStream>>,
    mut writer: WriteHalf<DuplexStream>,
    approvals: Vec<ApprovalRequest>,
    later: Vec<ApprovalRequest>,
) {
    writer.write_all(&Hello::line()).await.expect("a client");
    lines.next().await.expect("the hello of the client");
    let Ok(Some(Frame::Line(watch))) = lines.next().await else { panic!("no subscription") };
    let watch = Incoming::decode(&watch).expect("a request");
    let alice = crate::screen::app::tests::pod("alice", State::NeedsYou);
    let family = Event::Family { pods: vec![alice], peers: vec![], approvals, agents: vec![] };
    let accepted = Event::done();
    let requested = |approval| Event::ApprovalRequested { approval: Box::new(approval) };
    let requests = later.into_iter().map(|approval| (None, requested(approval)));
    for (re, event) in [(None, family), (watch.id, accepted)].into_iter().chain(requests) {
        let line = Outgoing { re, pod: None, seq: None, event }.encode();
        writer.write_all(&line).await.expect("a client");
    }
    // The connection stays until the client leaves.
    while let Ok(Some(Frame::Line(line))) = lines.next().await {
        let re = Incoming::decode(&line).expect("a request").id;
        let accepted = Outgoing { re, pod: None, seq: None, event: Event::done() }.encode();
        if writer.write_all(&accepted).await.is_err() {
            return;
        }
    }
}

/// A conversation with such a host, for a person who has selected the Pod and reads standard error there.
async fn conversation(
    approvals: Vec<ApprovalRequest>,
    later: Vec<ApprovalRequest>,
    err: &Reader,
) -> (LineClient, JoinHandle<()>) {
    let (ours, theirs) = duplex(1024 * 1024);
    let (reader, writer) = split(theirs);
    let host = tokio::spawn(host(Lines::new(reader, MAX_LINE), writer, approvals, later));
    let (client, events) = Client::over(ours).await.expect("a connection");
    let output = Output::over(Box::new(io::sink()), Box::new(err.clone()), false);
    let printer = Printer::over(Form::Plain, output);
    let mut client = LineClient::over(client, events, printer).await.expect("a conversation");
    client.inbox.begin(Vec::new(), Unanswered::Wait);
    client.inbox.select(&PodName::parse("alice").expect("a name"));
    (client, host)
}

#[tokio::test]
async fn a_request_that_came_during_a_call_is_shown_though_no_event_follows() {
    let err = Reader::default();
    err.begins();
    let (mut client, host) = conversation(vec![request(1)], vec![], &err).await;
    client.while_listening(std::future::ready(())).await.expect("a host");
    client.printer.output().flush().await;
    assert!(err.text().starts_with("[1] alice asks"), "{}", err.text());
    drop(client);
    host.await.expect("the host ends");
}

#[tokio::test]
async fn a_request_without_room_on_standard_error_is_shown_when_it_is_read() {
    let err = Reader::default();
    let later = (1..=REQUESTS).map(request).collect();
    let (mut client, host) = conversation(vec![], later, &err).await;
    while client.family.approvals().len() < REQUESTS {
        tokio::time::timeout(PATIENCE, client.step()).await.expect("an event").expect("a host");
    }
    assert!(client.is_request_unshown, "{REQUESTS} requests are more than there is room for");
    err.begins();
    while client.is_request_unshown {
        tokio::time::timeout(PATIENCE, client.step()).await.expect("room").expect("a host");
    }
    client.printer.output().flush().await;
    let text = err.text();
    let shown: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    let shown: Vec<&str> = shown.into_iter().filter(|word| word.starts_with('[')).collect();
    let expected: Vec<String> = (1..=REQUESTS).map(|number| format!("[{number}]")).collect();
    assert_eq!(shown, expected);
    drop(client);
    host.await.expect("the host ends");
}

/// Answers the subscription, and the next request behind more events than the client holds.
async fn busy_host(
    mut lines: Lines<ReadHalf<DuplexStream>>,
    mut writer: WriteHalf<DuplexStream>,
    events: usize,
) {
    writer.write_all(&Hello::line()).await.expect("a client");
    lines.next().await.expect("the hello of the client");
    let mut waiting =
        vec![Event::Family { pods: vec![], peers: vec![], approvals: vec![], agents: vec![] }];
    while let Ok(Some(Frame::Line(line))) = lines.next().await {
        let re = Incoming::decode(&line).expect("a request").id;
        let accepted = Event::done();
        let before = waiting.drain(..).map(|event| (None, event));
        for (re, event) in before.chain([(re, accepted)]) {
            let line = Outgoing { re, pod: None, seq: None, event }.encode();
            writer.write_all(&line).await.expect("a client");
        }
        let notice = |number| Event::HostNotices {
            notices: vec![format!("notice {number}")],
            mistakes: vec![],
        };
        waiting.extend((0..events).map(notice));
    }
}

#[tokio::test]
async fn an_interrupt_is_accepted_also_behind_more_events_than_are_held() {
    let (ours, theirs) = duplex(1024 * 1024);
    let (reader, writer) = split(theirs);
    let host = tokio::spawn(busy_host(Lines::new(reader, MAX_LINE), writer, 3_000));
    let (client, events) = Client::over(ours).await.expect("a connection");
    let output = Output::over(Box::new(io::sink()), Box::new(io::sink()), false);
    let printer = Printer::over(Form::Plain, output);
    let mut client = LineClient::over(client, events, printer).await.expect("a conversation");
    let alice = PodName::parse("alice").expect("a name");
    let stop = Method::StopPods { tree: true, unless_busy: false, silent: false };
    assert!(client.interrupt(&alice, &[Method::Pause, stop]).await);
    drop(client);
    host.await.expect("the host ends");
}

#[tokio::test]
async fn a_last_note_is_written_before_the_program_ends_also_after_a_signal_or_without_a_host() {
    for host_ends_first in [false, true] {
        let err = Reader::default();
        let (mut client, host) = conversation(vec![], vec![], &err).await;
        client.printer.note("took it back");
        let result = match host_ends_first {
            true => Ok(()),
            false => Err(interrupted(15)),
        };
        if host_ends_first {
            host.abort();
            let ended = async { while client.step().await.is_ok() {} };
            tokio::time::timeout(PATIENCE, ended).await.expect("the client learns it");
        }
        let left = tokio::time::timeout(PATIENCE, client.leave(&result));
        let read_late = async {
            // It ends with the client, or was ended.
            let _ = host.await;
            err.begins();
        };
        let (left, ()) = tokio::join!(left, read_late);
        assert_eq!(left.expect("an end").is_err(), host_ends_first);
        assert_eq!(err.text(), "took it back\n");
    }
}

#[tokio::test]
async fn the_reply_to_a_message_is_awaited_though_a_signal_came_and_then_the_signal_ends_the_wait()
{
    // Which of the two a wait takes first is left to chance.
    for _ in 0..20 {
        let (mut client, host) = conversation(vec![], vec![], &Reader::default()).await;
        client.signals.come(15);
        let alice = PodName::parse("alice").expect("a name");
        let send = Method::Send { input: vec![], queue: true };
        let reply = client.exchange(Some(&alice), send).await;
        assert!(matches!(reply, Ok(Ok(_))), "{reply:?}");
        let ended = tokio::time::timeout(PATIENCE, async { while client.step().await.is_ok() {} });
        ended.await.expect("the signal ends the wait");
        drop(client);
        host.await.expect("the host ends");
    }
}
