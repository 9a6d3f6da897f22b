//! The request of an MCP client in the inbox.

use super::*;
use yoi::protocol::{ApprovalRequest, McpClient, Pattern, Verdict};

/// The Pod `w` waits for no decision; a client of the same name waits for one.
fn bench() -> Bench {
    let mut bench = Bench::new(vec![pod("bob", State::Idle), pod("w", State::Idle)]);
    bench.size(110, 40);
    bench.host(None, Event::ApprovalRequested { approval: Box::new(request("q")) });
    bench
}

fn request(id: &str) -> ApprovalRequest {
    let client =
        McpClient { folder: "/repo".into(), name: "w".into(), address: None, program: None };
    ApprovalRequest {
        client: Some(client),
        tool: "spawn_pod".into(),
        action: "kid in /repo".into(),
        details: Some("scope: write /repo\ntask: count".into()),
        because: "your consent".into(),
        reason: None,
        rule: Pattern { tool: "list_pods, spawn_pod".into(), pattern: "in /repo".into() },
        ..approval(id, "w", "")
    }
}

fn decisions(effects: &[Effect]) -> Vec<Verdict> {
    let verdict = |method: &Method| match method {
        Method::Decide { verdict, .. } => Some(verdict.clone()),
        _ => None,
    };
    calls(effects).into_iter().filter_map(|(_, method)| verdict(method)).collect()
}

#[test]
fn the_request_of_a_client_is_no_request_of_a_pod_of_the_same_name() {
    let mut bench = bench();
    let before = bench.app.current.clone();
    bench.press("ctrl-n");
    assert_eq!((bench.app.focus, &bench.app.current), (Focus::Inbox, &before));
    let screen = bench.screen();
    for part in ["the MCP client \"w\"", "spawn_pod  kid in /repo", "task: count", "your consent"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    let removed = Event::PodRemoved { name: name("w") };
    bench.host(None, removed);
    assert_eq!(bench.app.family.approvals().len(), 1, "the request is not that Pod's");
    bench.wait(1_000);
    assert_eq!(decisions(&bench.press("a")), [Verdict::Once]);
    let verdict = Verdict::Once;
    bench.host(None, Event::ApprovalDecided { approval: "q".into(), pod: name("w"), verdict });
    assert_eq!(bench.notice(), "the MCP client \"w\": allowed once · spawn_pod kid in /repo");
}

#[test]
fn the_request_of_a_client_is_put_off_and_comes_behind_a_newer_one_but_before_what_failed() {
    let mut bench = bench();
    bench.shown(pod("bob", State::Failed));
    bench.press("ctrl-n");
    bench.wait(1_000);
    let sent = bench.press("z");
    assert_eq!(calls(&sent), [(None, &Method::PutOff { approval: "q".into() })]);
    answer(&mut bench, sent, Event::done());
    assert_eq!(bench.notice(), "the MCP client \"w\": later");
    let put_off = ApprovalRequest { later: Some(u64::MAX), ..request("q") };
    bench.host(None, Event::ApprovalRequested { approval: Box::new(put_off) });
    bench.shown(pod("w", State::NeedsYou));
    let newer = ApprovalRequest { since: NOON + 1, ..approval("r", "w", "cargo fetch") };
    bench.host(Some("w"), Event::ApprovalRequested { approval: Box::new(newer) });
    let order: Vec<String> = bench.app.items().iter().map(|item| item.id()).collect();
    assert_eq!(order, ["r", "q", "pod bob"]);
    let unknown = ApprovalRequest { later: Some(1), ..request("decided meanwhile") };
    bench.host(None, Event::ApprovalRequested { approval: Box::new(unknown) });
    assert_eq!(bench.app.items().len(), 3);
}

#[test]
fn a_client_is_allowed_for_good_after_its_consent_was_shown_and_has_no_children() {
    let mut bench = bench();
    bench.press("ctrl-n");
    bench.wait(1_000);
    bench.press("T");
    assert!(bench.notice().contains("a client has no children"), "{}", bench.notice());
    bench.wait(1_000);
    assert_eq!(decisions(&bench.press("A")), []);
    bench.type_in("x");
    assert_eq!(decisions(&bench.confirm("enter")), []);
    assert!(bench.screen().contains("it cannot be edited"), "{}", bench.screen());
    bench.press("backspace");
    let question = "always allow list_pods, spawn_pod in /repo for the MCP client \"w\"?";
    assert!(bench.screen().contains(question), "{}", bench.screen());
    assert_eq!(decisions(&bench.confirm("enter")), [Verdict::Pod { rule: None }]);
}
