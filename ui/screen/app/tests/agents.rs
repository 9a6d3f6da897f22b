//! The agents of the mesh in the pane of peers.

use super::*;
use yoi::protocol::mesh::{AgentKind, MachineView, MeshAgent, MeshStanding, MeshView};
use yoi::protocol::{ApprovalRequest, PeerEdge, PodInfo, State, Verdict};

fn agent(name: &str, kind: AgentKind) -> MeshAgent {
    MeshAgent { kind, reachable: true, ..MeshAgent::away(name.into()) }
}

fn joined(name: &str) -> PodInfo {
    let standing =
        MeshStanding { name: Some(name.into()), led_by_yoi: true, ..MeshStanding::default() };
    PodInfo { mesh: Some(standing), ..pod(name, State::Idle) }
}

/// alice, on the mesh, with the peer bob and these agents.
fn bench(agents: Vec<MeshAgent>) -> Bench {
    let mut bench = Bench::new(Vec::new());
    let pods = vec![joined("alice"), pod("bob", State::Idle)];
    let peers = vec![PeerEdge::new(name("alice"), name("bob"))];
    bench.host(None, Event::Family { pods, peers, approvals: Vec::new(), agents });
    bench.go_to("alice");
    bench
}

fn two() -> Vec<MeshAgent> {
    vec![agent("casa", AgentKind::Yoi), agent("proj/a", AgentKind::Agent)]
}

/// The rows of the peers pane.
fn pane(bench: &mut Bench) -> Vec<String> {
    let screen = bench.screen();
    let mut rows = screen.lines().skip_while(|row| !row.contains("peers of"));
    let title = rows.next().expect("the pane is there").to_owned();
    let rest = rows.take_while(|row| row.contains('│'));
    std::iter::once(title).chain(rest.map(str::to_owned)).map(|row| left(&row)).collect()
}

/// The left column of the screen.
fn left(row: &str) -> String {
    row.chars().take(31).collect::<String>().trim_end().to_owned()
}

#[test]
fn the_agents_that_the_selected_pod_reaches_are_below_its_peers() {
    let mut bench = bench(two());
    let rows = [
        " peers of alice  2 agents │",
        " ⇄ ○ bob        idle      │",
        " ⇄ ◇ casa       online    │",
        " ⇄ ◇ proj/a     online    │",
    ];
    assert_eq!(pane(&mut bench), rows);
    // bob is not on the mesh.
    bench.go_to("bob");
    let empty = "                          │";
    let rows = [" peers of bob             │", " ⇄ ○ alice      idle      │", empty, empty];
    assert_eq!(pane(&mut bench), rows);
}

#[test]
fn an_agent_that_leaves_goes_from_the_pane_and_no_pane_moves() {
    let mut bench = bench(two());
    let rows = pane(&mut bench).len();
    bench.host(None, Event::MeshRoster { agents: vec![agent("proj/a", AgentKind::Agent)] });
    let left = pane(&mut bench);
    assert!(left.len() == rows && left.iter().all(|row| !row.contains("casa")), "{left:?}");
    bench.host(None, Event::MeshRoster { agents: Vec::new() });
    let left = pane(&mut bench);
    assert!(left.len() == rows && left[0].contains(" peers of alice "), "{left:?}");
}

#[test]
fn a_blocked_agent_says_so_in_any_width() {
    let blocked = |name: &str| MeshAgent { blocked: true, ..agent(name, AgentKind::Agent) };
    let mut bench = bench(vec![blocked("a-long-name-of-an-agent")]);
    assert_eq!(pane(&mut bench)[2], " ⇄ ◇ a-long-na… blocked   │");
}

#[test]
fn enter_writes_to_the_agent_and_the_menu_holds_what_can_be_done_with_it() {
    let mut bench = bench(two());
    bench.press("ctrl-x");
    bench.press("e");
    bench.press("g");
    bench.press("down");
    bench.press("down");
    bench.press("enter");
    assert!(bench.screen().contains(":send proj/a"), "{}", bench.screen());
    let effects = bench.type_in("hello");
    assert!(calls(&effects).is_empty());
    let sent = bench.press("enter");
    let to = yoi::protocol::method::Addressees::One("proj/a".into());
    let send = Method::MeshSend { to, body: "hello".into(), re: None };
    assert_eq!(calls(&sent), [(Some("alice"), &send)]);
}

#[test]
fn a_message_that_is_refused_stays_in_the_line() {
    let mut bench = bench(two());
    let refused = Event::MeshSent {
        id: "1".into(),
        status: "refused".into(),
        reason: Some("no other machine can be reached".into()),
        pods: Vec::new(),
        handed_over: false,
    };
    let send = |bench: &mut Bench| {
        bench.type_in(":send casa:x look at {pod}");
        bench.press("enter")
    };
    let sent = send(&mut bench);
    answer(&mut bench, sent, refused.clone());
    let screen = bench.screen();
    assert!(screen.contains(":send casa:x look at {pod}"), "{screen}");
    let why = "casa:x did not get the message (refused): no other machine can be reached";
    assert_eq!(bench.notice(), why);
    bench.press("esc");
    // No line opens over something else that the person began.
    let sent = send(&mut bench);
    bench.type_in("a draft");
    answer(&mut bench, sent, refused);
    assert!(!bench.screen().contains(":send"), "{}", bench.screen());
    assert_eq!((bench.notice(), bench.draft().as_str()), (why, "a draft"));
}

#[test]
fn a_peer_on_another_machine_is_asked_for_and_stays_while_it_is_away() {
    let mut bench = bench(two());
    let line = |bench: &mut Bench, line: &str| {
        bench.type_in(line);
        bench.press("enter")
    };
    let asked = line(&mut bench, ":peer casa:x");
    assert_eq!(calls(&asked), [(Some("alice"), &Method::Peer { name: "casa:x".into() })]);
    let sent = |status: &str, reason: Option<&str>| Event::MeshSent {
        id: "1".into(),
        status: status.into(),
        reason: reason.map(str::to_owned),
        pods: Vec::new(),
        handed_over: false,
    };
    answer(&mut bench, asked, sent("received", None));
    assert_eq!(bench.notice(), "asked casa:x: a person there decides in the inbox");
    let asked = line(&mut bench, ":peer casa:x");
    answer(&mut bench, asked, sent("queued", Some("casa is away")));
    assert_eq!(bench.notice(), "casa:x will be asked (queued): casa is away");
    let peer = MeshAgent { peers: vec![name("alice")], ..MeshAgent::away("casa:x".into()) };
    let agents = vec![peer.clone()];
    let asked = line(&mut bench, ":peer casa:x");
    answer(&mut bench, asked, Event::Mesh(MeshView { agents, ..MeshView::default() }));
    assert_eq!(bench.notice(), "alice and casa:x are peers");
    bench.host(None, Event::MeshRoster { agents: vec![peer] });
    bench.size(120, 40);
    let rows = pane(&mut bench);
    assert!(rows[2].contains("casa:x") && rows[2].contains("away"), "{rows:?}");
    let ended = line(&mut bench, ":unpeer casa:x");
    assert_eq!(calls(&ended), [(Some("alice"), &Method::Unpeer { name: "casa:x".into() })]);
}

#[test]
fn a_request_to_become_a_peer_names_its_agent_and_is_allowed_once() {
    let mut bench = bench(two());
    let request = ApprovalRequest {
        agent: Some("casa:evil\u{1b}[2J".into()),
        tool: "Peer".into(),
        once_only: true,
        ..approval("r1", "alice", "alice")
    };
    bench.size(120, 40);
    bench.host(None, Event::ApprovalRequested { approval: Box::new(request) });
    bench.press("ctrl-n");
    bench.wait(1_000);
    let screen = bench.screen();
    assert!(screen.contains("the agent \"casa:evil") && !screen.contains('\u{1b}'), "{screen}");
    let decides = bench.press("A");
    let why = "one yes makes them peers, so there is no rule for it";
    assert_eq!((calls(&decides).len(), bench.notice()), (0, why));
    // A key counts only a while after the one before.
    bench.wait(1_000);
    let decided = bench.press("a");
    let once = Method::Decide { approval: "r1".into(), verdict: Verdict::Once };
    assert_eq!(calls(&decided), [(None, &once)], "{}", bench.notice());
}

#[test]
fn a_request_to_become_a_peer_is_put_off_without_its_pod() {
    let mut bench = bench(two());
    let agent = Some("casa:reviewer".into());
    let request = ApprovalRequest { agent, ..approval("r1", "alice", "alice") };
    bench.host(None, Event::ApprovalRequested { approval: Box::new(request) });
    bench.press("ctrl-n");
    bench.wait(1_000);
    let put_off = Method::PutOff { approval: "r1".into() };
    assert_eq!(calls(&bench.press("z")), [(None, &put_off)]);
}

#[test]
fn names_of_agents_are_shown_safe_and_in_their_columns() {
    let hostile = "evil\u{1b}[2J\u{202e}\nname";
    let names = ["日本語のエージェント・長い名前", hostile, &"long-".repeat(40)];
    let agents = names.map(|name| agent(name, AgentKind::Agent)).to_vec();
    for size in [(80, 24), (40, 12), (200, 60)] {
        let mut bench = bench(agents.clone());
        bench.size(size.0, size.1);
        bench.press("ctrl-x");
        bench.press("e");
        let screen = bench.screen();
        assert!(!screen.contains(['\u{1b}', '\u{202e}']), "{screen}");
        let rows = screen.lines().filter(|row| row.contains('◇'));
        let ends = rows.map(|row| crate::rows::width(row.split("online").next().unwrap_or(row)));
        let ends: Vec<usize> = ends.collect();
        assert!(ends.len() == 3 && ends.iter().all(|end| *end == ends[0]), "{size:?}\n{screen}");
    }
    let mut bench = bench(vec![agent(hostile, AgentKind::Agent)]);
    bench.press("ctrl-x");
    bench.press("e");
    bench.press("g");
    bench.press("down");
    bench.press("enter");
    assert!(bench.notice().contains("cannot be typed"), "{}", bench.notice());
}

#[test]
fn a_thousand_agents_show_as_many_as_there_is_room_for_and_how_many_there_are() {
    let agents = (0..1024).map(|n| agent(&format!("a{n:04}"), AgentKind::Agent)).collect();
    let mut bench = bench(agents);
    let rows = pane(&mut bench);
    assert!(rows[0].contains("1024 agents"), "{rows:?}");
    assert!(rows.len() <= 6, "{rows:?}");
    bench.press("ctrl-x");
    bench.press("e");
    bench.press("G");
    assert!(pane(&mut bench).iter().any(|row| row.contains("a1023")), "{}", bench.screen());
}

#[test]
fn the_tree_says_how_many_other_machines_are_there() {
    let mut bench = bench(Vec::new());
    let foot = |bench: &mut Bench, connected, machines: &[&str]| {
        let machines = machines.iter().map(|&name| name.into()).collect();
        let view =
            MachineView { name: "casa".into(), connected, machines, ..MachineView::default() };
        bench.host(None, Event::Machine { machine: Some(Box::new(view)) });
        bench.screen()
    };
    assert!(foot(&mut bench, true, &["docs", "trab"]).contains("2 other machines"));
    assert!(foot(&mut bench, true, &["trab"]).contains("1 other machine"));
    assert!(foot(&mut bench, false, &[]).contains("no other machine: :mesh"));
    bench.host(None, Event::Machine { machine: None });
    assert!(!bench.screen().contains("other machine"));
}
