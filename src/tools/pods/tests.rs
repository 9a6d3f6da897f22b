//! Each tool against a host that is played: the request it makes, and the result it makes of the reply.

use crate::client::pod_api::{PodApi, Request};
use crate::protocol::family::State;
use crate::protocol::{
    EntryId, ErrorCode, Event, LastRun, Method, PodName, PodOutput, Refusal, StoppedPod,
};
use crate::scope::{Permission, Rule};
use crate::tools::pods::{self, Verb};
use crate::tools::{Output, Reading, fault::Fault};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

fn name(text: &str) -> PodName {
    PodName::parse(text).unwrap()
}

/// Calls a tool as `me` and lets the host answer this.
async fn call(
    verb: &Verb,
    arguments: Value,
    answer: Result<Event, Refusal>,
) -> (Option<(PodName, Method)>, Result<Output, Fault>) {
    let (requests, mut inbox) = mpsc::channel(1);
    let pod_api = PodApi::new(name("me"), requests);
    let text = arguments.to_string();
    let cancel = CancellationToken::new();
    let host = async move {
        let Request { by, pod, method, answer: to } = inbox.recv().await?;
        assert_eq!(by, name("me"));
        to.send(answer).unwrap();
        Some((pod.unwrap(), method))
    };
    let tool = async move { pods::act(verb, &text, Some(&pod_api), &cancel).await };
    tokio::join!(host, tool)
}

async fn said(verb: &Verb, arguments: Value, answer: Event) -> String {
    call(verb, arguments, Ok(answer)).await.1.unwrap().summary
}

async fn refused(verb: &Verb, arguments: Value, refusal: Refusal) -> String {
    call(verb, arguments, Err(refusal)).await.1.unwrap_err().to_string()
}

#[tokio::test]
async fn a_spawn_is_a_request_to_the_pod_itself_and_rules_are_recursive_by_default() {
    let arguments = json!({"name": "kid", "task": "work", "scope": [
        {"target": "/w/a", "permission": "write"},
        {"target": "/w/b", "permission": "read", "recursive": false}]});
    let none = Refusal::invalid("scope must not be empty");
    let (request, result) = call(&pods::spawn::VERB, arguments, Err(none)).await;
    let Some((pod, Method::Spawn(spawn))) = request else { panic!("{request:?}") };
    assert_eq!((pod, spawn.name.as_str(), spawn.task.as_str()), (name("me"), "kid", "work"));
    let inner = Rule { recursive: false, ..Rule::new("/w/b", Permission::Read) };
    assert_eq!(spawn.scope, [Rule::new("/w/a", Permission::Write), inner]);
    assert_eq!(result.unwrap_err().to_string(), "scope must not be empty");
}

#[tokio::test]
async fn a_message_goes_to_the_child_word_for_word() {
    let arguments = json!({"name": "kid", "message": "go on", "queue": true});
    let (request, result) = call(&pods::send::VERB, arguments, Ok(Event::done())).await;
    let Some((pod, Method::Send { input, queue: true })) = request else { panic!("{request:?}") };
    assert_eq!((pod, crate::protocol::flatten(&input)), (name("kid"), "go on".into()));
    assert_eq!(result.unwrap().summary, "sent message to `kid`");
}

#[tokio::test]
async fn a_busy_child_is_said_to_be_waited_for() {
    let busy = Refusal::new(ErrorCode::AlreadyRunning, "Pod is already executing a turn");
    let arguments = json!({"name": "kid", "message": "x"});
    assert_eq!(
        refused(&pods::send::VERB, arguments, busy).await,
        "pod `kid` is already running a turn; wait for it to finish and retry: a notification tells you when; or set `queue`"
    );
}

#[tokio::test]
async fn a_name_that_is_none_is_refused_without_asking_the_host() {
    for (verb, text) in [
        (&pods::send::VERB, "no spawned pod named `a/b`"),
        (&pods::output::VERB, "no spawned pod named `a/b`"),
        (&pods::stop::VERB, "no spawned pod named `a/b`"),
        (&pods::peer::VERB, "pod state missing for `a/b`"),
    ] {
        let arguments = json!({"name": "a/b", "message": "x"});
        let (request, result) = call(verb, arguments, Ok(Event::done())).await;
        assert!(request.is_none());
        assert_eq!(result.unwrap_err().to_string(), text);
    }
}

fn output(state: State, texts: &[&str], last: Option<LastRun>) -> Event {
    Event::Output(Box::new(PodOutput {
        name: name("kid"),
        state,
        why: None,
        texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        cut: false,
        upto: last.as_ref().map(|last| last.entry),
        last_result: last,
    }))
}

#[tokio::test]
async fn output_comes_with_the_real_state_and_the_last_result() {
    let kid = || json!({"name": "kid"});
    let verb = &pods::output::VERB;
    let idle = said(verb, kid(), output(State::Idle, &[], None)).await;
    assert_eq!(idle, "pod `kid` idle; no new assistant text");
    let stopped = said(verb, kid(), output(State::Stopped, &[], None)).await;
    assert_eq!(stopped, "pod `kid` is stopped; no new assistant text");
    let entry = EntryId::new();
    let last = LastRun { entry, result: "failed".into(), error: Some("no key".into()), at: 1 };
    let failed = output(State::Failed, &["one\ntwo", "three"], Some(last));
    let shown = call(verb, kid(), Ok(failed)).await.1.unwrap();
    assert_eq!(shown.summary, "pod `kid`: 4 new line(s) of assistant text; failed");
    assert_eq!(
        shown.content.unwrap(),
        "[state: failed]\n[last run: failed: no key]\n\none\ntwo\n\nthree"
    );
    assert_eq!(shown.read, Some(Reading { pod: name("kid"), upto: entry }));
}

fn stopped(pod: &str, returned: Vec<Rule>) -> StoppedPod {
    StoppedPod { name: name(pod), returned, lender: Some(name("me")), gained: vec![] }
}

#[tokio::test]
async fn a_stop_lists_the_scope_that_came_back() {
    let inner = Rule { recursive: false, ..Rule::new("/b", Permission::Read) };
    let returned = vec![Rule::new("/a", Permission::Write), inner];
    let event = Event::PodsStopped { stopped: vec![stopped("kid", returned)] };
    let shown = said(&pods::stop::VERB, json!({"name": "kid"}), event).await;
    assert_eq!(shown, "stopped pod `kid`; reclaimed scope: write:/a, read:/b [non-recursive]");
    let tree = vec![stopped("baby", Vec::new()), stopped("kid", Vec::new())];
    let event = Event::PodsStopped { stopped: tree };
    let arguments = json!({"name": "kid", "tree": true});
    let shown = call(&pods::stop::VERB, arguments, Ok(event)).await.1.unwrap();
    let summary = "stopped pod `kid`; reclaimed scope: (none) (1 below it stopped, too)";
    assert_eq!(shown.summary, summary);
    assert!(shown.content.unwrap().starts_with("stopped pod `baby`; reclaimed scope: (none)\n"));
}

#[tokio::test]
async fn already_live_is_reported_in_its_own_words() {
    let result = |action: &str| Event::PodRestored {
        result: json!({"action": action, "pod_name": "Kid", "socket_path": "/s"}),
    };
    let kid = || json!({"name": "kid"});
    let live = said(&pods::restore::VERB, kid(), result("already_live")).await;
    assert_eq!(live, "pod `Kid` is already live");
    let back = said(&pods::restore::VERB, kid(), result("restored")).await;
    assert_eq!(back, "pod `Kid` restored from pod state");
}

#[tokio::test]
async fn a_message_to_a_peer_is_a_notification_there() {
    let arguments = json!({"name": "bob", "message": "hello"});
    let (request, result) = call(&pods::peer::VERB, arguments, Ok(Event::done())).await;
    assert_eq!(request, Some((name("bob"), Method::Notify { message: "hello".into() })));
    assert_eq!(result.unwrap().summary, "sent peer message to `bob`");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_answer_is_waited_for_no_longer_than_8_s() {
    let (requests, _inbox) = mpsc::channel(1);
    let pod_api = PodApi::new(name("me"), requests);
    let begun = tokio::time::Instant::now();
    let cancel = CancellationToken::new();
    let kid = r#"{"name":"kid"}"#;
    let late = pods::act(&pods::stop::VERB, kid, Some(&pod_api), &cancel).await.unwrap_err();
    assert!(begun.elapsed() < std::time::Duration::from_secs(8));
    assert!(late.to_string().contains("`kid`: it has not ended within 8 s"), "{late}");
}

#[tokio::test]
async fn a_cancelled_pod_waits_for_no_reply() {
    let (requests, _inbox) = mpsc::channel(1);
    let pod_api = PodApi::new(name("me"), requests);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let ended = pods::act(&pods::list::VERB, "{}", Some(&pod_api), &cancel).await.unwrap_err();
    assert_eq!(ended, Fault::cancelled());
}
