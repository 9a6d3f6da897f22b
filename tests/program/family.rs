//! A family on the screen of the real program: what the panes show is what the store says, whatever
//! happens, and however many screens look.

use crate::bench::{Bench, PATIENCE, eventually, signal};
use crate::pty::Terminal;
use rusqlite::Connection;
use std::time::{Duration, Instant};
use yoi::protocol::method::NewPod;
use yoi::protocol::{Event, Method, PodName, Segment, SpawnPod};
use yoi::scope::{Permission, Rule};

const SCRIPT: &str = r#"
[[when]]
says = "go"
[[when.step]]
call = [
  { name = "SpawnPod", args = { name = "aa", task = "dig", scope = [{ target = "{cwd}/a", permission = "write" }] } },
  { name = "SpawnPod", args = { name = "bb", task = "slow", scope = [{ target = "{cwd}/b", permission = "write" }] } },
  { name = "SpawnPod", args = { name = "cc", task = "greet", scope = [{ target = "{cwd}/c", permission = "write" }] } },
]
[[when.step]]
text = "All three are at work."

[[when]]
says = "dig"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "sub", task = "greet", scope = [{ target = "{cwd}/deep", permission = "write" }] } }]
[[when.step]]
text = "Somebody digs for me."

[[when]]
says = "slow"
[[when.step]]
text = "word "
repeat = 5000
chunk = 5
delay_ms = 20

[[when]]
says = "greet"
[[when.step]]
call = [{ name = "Write", args = { file_path = "{cwd}/hello.txt", content = "hello\n" } }]
[[when.step]]
text = "A file says hello."

[[when]]
says = "need"
[[when.step]]
call = [{ name = "Bash", args = { command = "echo reached", needs = ["network"], reason = "to look" } }]
[[when.step]]
text = "Bash said: {result}"

[[when]]
says = "sleep"
[[when.step]]
call = [{ name = "Bash", args = { command = "trap '' TERM; sleep 654 & wait" } }]

[[when]]
says = "read"
[[when.step]]
call = [{ name = "ReadPodOutput", args = { name = "cc" } }]
[[when.step]]
text = "cc: {result}"

[[when]]
any = true
text = "heard: {1}"
"#;

/// What the panes have to show, read from the store without the program's own code.
#[derive(Debug, PartialEq, Eq)]
struct Truth {
    /// Depth and name of every live Pod, in the order of the tree.
    tree: Vec<(usize, String)>,
    stopped: usize,
    /// The peers of the Pod that is shown.
    peers: Vec<String>,
    /// The Pods that want an approval, by name.
    approvals: Vec<String>,
}

fn truth(bench: &Bench, current: &str) -> Truth {
    let db = Connection::open(bench.data().join("yoi.db")).expect("the store");
    let mut rows = db
        .prepare("SELECT key, name, parent, wanted FROM pods ORDER BY created, name")
        .expect("pods");
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
    let pods: Vec<(String, String, Option<String>, String)> =
        rows.expect("pods").map(|row| row.expect("a pod")).collect();
    let stopped = pods.iter().filter(|pod| pod.3 == "stopped").count();
    let mut tree = Vec::new();
    below(&pods, None, 0, &mut tree);
    let mut rows = db
        .prepare("SELECT CASE a WHEN ?1 THEN b ELSE a END FROM peers WHERE ?1 IN (a, b)")
        .expect("peers");
    let peers = rows.query_map([current], |row| row.get(0)).expect("peers");
    let mut peers: Vec<String> = peers.map(|peer| peer.expect("a peer")).collect();
    peers.sort();
    let mut rows =
        db.prepare("SELECT pod FROM asks WHERE verdict IS NULL ORDER BY pod").expect("asks");
    let approvals = rows.query_map([], |row| row.get(0)).expect("asks");
    let approvals = approvals.map(|approval| approval.expect("a question")).collect();
    Truth { tree, stopped, peers, approvals }
}

fn below(
    pods: &[(String, String, Option<String>, String)],
    parent: Option<&str>,
    depth: usize,
    tree: &mut Vec<(usize, String)>,
) {
    for (key, name, of, wanted) in pods {
        if of.as_deref() != parent {
            continue;
        }
        if wanted == "live" {
            tree.push((depth, name.clone()));
        }
        below(pods, Some(key), depth + 1, tree);
    }
}

/// What the panes of a screen show.
fn shown(screen: &str) -> Truth {
    let left: Vec<String> = screen.lines().map(left_pane).collect();
    let peers_at = left.iter().position(|line| line.contains("peers of")).unwrap_or(left.len());
    let (tree_part, peers_part) = left.split_at(peers_at);
    let tree = tree_part.iter().filter_map(|line| pod_row(line)).collect();
    let folded = tree_part.iter().map(|line| line.trim_start_matches([' ', '›']));
    let folded = folded.filter_map(|line| line.strip_prefix("◌ ")?.strip_suffix(" stopped")).next();
    let stopped = folded.and_then(|count| count.trim().parse().ok()).unwrap_or(0);
    let peers = peers_part.iter().filter_map(|line| line.trim_start().strip_prefix("⇄ "));
    let mut peers: Vec<String> = peers.filter_map(name_of).collect();
    peers.sort();
    let waits = |line: &&String| line.contains("▲ ") && line.contains(" wants ");
    let mut approvals: Vec<String> =
        tree_part.iter().filter(waits).filter_map(|line| name_of(line)).collect();
    approvals.sort();
    Truth { tree, stopped, peers, approvals }
}

/// What stands before the rule; a row without a rule is marked as such.
fn left_pane(line: &str) -> String {
    let end = line.char_indices().skip(20).find(|(_, c)| *c == '│');
    end.map_or_else(|| format!("# {line}"), |(at, _)| line[..at].trim_end().to_owned())
}

const SHAPES: [char; 8] = ['●', '▲', '‖', '○', '✓', '◌', '✕', '?'];

/// Depth and name of the Pod in a row of the tree.
fn pod_row(line: &str) -> Option<(usize, String)> {
    // The first column is the cursor's; two more stand for each level.
    let shape = line.chars().position(|c| SHAPES.contains(&c))?;
    if line.starts_with('#') || line.ends_with(" stopped") {
        return None;
    }
    Some((shape.checked_sub(1)? / 2, name_of(line)?))
}

/// The word behind the shape.
fn name_of(line: &str) -> Option<String> {
    let (_, rest) = line.split_once(SHAPES)?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// Waits until the panes show what the store says. Children that ended are one row, which Enter lists: Ctrl+X t goes to
/// the tree, Ctrl+X c back to the composer.
fn same(terminal: &mut Terminal, bench: &Bench, current: &str) {
    terminal.press("\x18t");
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        eventually("screen and store agree", || {
            let agree = shown(&terminal.text()) == truth(bench, current);
            if !agree {
                unfold(terminal);
            }
            agree
        });
    }));
    terminal.press("\x18c");
    assert!(
        found.is_ok(),
        "shown: {:?}\ntruth: {:?}\n{}",
        shown(&terminal.text()),
        truth(bench, current),
        terminal.text()
    );
}

/// Lists the children that ended, where the cursor is on their row; otherwise moves it on, from the end to the top.
fn unfold(terminal: &mut Terminal) {
    let text = terminal.text();
    let Some(row) = text.lines().map(left_pane).find(|line| line.starts_with('›')) else {
        return;
    };
    terminal.press(if row.ends_with(" ended") { "\r" } else { "j" });
    terminal.paints_anew();
    if terminal.text().lines().map(left_pane).any(|line| line == row) {
        terminal.press("g");
    }
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.play(SCRIPT);
    for dir in ["a/deep", "b", "c"] {
        std::fs::create_dir_all(bench.ws().join(dir)).expect("a new directory");
    }
    bench
}

/// The parent answers each report of its child with another task.
#[test]
fn p_ends_with_a_note_where_a_parent_and_its_child_only_answer_each_other() {
    let bench = Bench::new();
    bench.play(
        r#"
[[when]]
says = "begin"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "kid", task = "work" } }]
[[when.step]]
text = "It works."

[[when]]
note = "*finished a turn*"
[[when.step]]
call = [{ name = "SendToPod", args = { name = "kid", message = "again", queue = true } }]
[[when.step]]
text = "Told it."

[[when]]
any = true
text = "Done."
"#,
    );
    let done = bench.say("begin");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("only answer each other"), "{done:?}");
    let runs = bench.log("kid").iter().filter(|entry| entry["kind"] == "run_completed").count();
    assert!((8..12).contains(&runs), "{runs}: {done:?}");
}

#[test]
fn a_family_at_work_is_shown_as_it_is_through_a_kill_of_the_host() {
    let bench = bench();
    let model = bench.model();
    let mut terminal = Terminal::sized(&bench, &["--model", &model], 120, 40);
    terminal.waits_for("what to work on");
    terminal.press("go\r");
    terminal.waits_for("All three are at work.");
    same(&mut terminal, &bench, "ws");
    eventually("the grandchild is there", || bench.ws().join("a/deep/hello.txt").exists());
    same(&mut terminal, &bench, "ws");
    assert_eq!(truth(&bench, "ws").tree.len(), 5);
    terminal.press(":stop bb\r");
    eventually("bb is stopped", || truth(&bench, "ws").stopped == 1);
    same(&mut terminal, &bench, "ws");
    terminal.press(":new mate\r");
    terminal.waits_for("\n mate ›");
    terminal.press(":peer ws\r");
    terminal.waits_for("mate and ws are peers");
    same(&mut terminal, &bench, "mate");
    terminal.press(":open ws\r");
    terminal.waits_for("\n ws ›");
    terminal.press("need\r");
    eventually("a question waits", || truth(&bench, "ws").approvals == ["ws"]);
    same(&mut terminal, &bench, "ws");
    signal(bench.host_pid().expect("a host"), "KILL");
    drop(terminal);
    let mut terminal = Terminal::sized(&bench, &["--pod", "ws"], 120, 40);
    terminal.waits_for("echo reached");
    same(&mut terminal, &bench, "ws");
    assert_eq!(truth(&bench, "ws").approvals, ["ws"]);
    // Ctrl+N shows the card. A key counts once the card was on the screen for a moment, without another key.
    terminal.press("\x0e");
    terminal.waits_for(" a once");
    let mut pressed = Instant::now();
    eventually("the request is answered", || {
        if pressed.elapsed() > Duration::from_millis(400) && terminal.text().contains(" a once") {
            terminal.press("a");
            pressed = Instant::now();
        }
        truth(&bench, "ws").approvals.is_empty()
    });
    terminal.waits_for("Bash said:");
    same(&mut terminal, &bench, "ws");
    // Ctrl+X c goes to the composer; an Esc just before a letter could be read as Alt. A key too many was text there.
    terminal.press("\x18c");
    terminal.press("\x15read\r");
    terminal.waits_for("A file says hello.");
    same(&mut terminal, &bench, "ws");
}

/// Processes below the workspace with this command line; other tests run the same commands.
fn running(bench: &Bench, words: &str) -> usize {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let workspace = bench.ws();
    let own = entries.filter(|entry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&workspace))
    });
    let lines = own.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.trim() == words).count()
}

#[tokio::test]
async fn nothing_is_lent_below_a_running_command_and_a_stop_ends_it() {
    let bench = bench();
    let _host = bench.serve();
    let found = yoi::client::find::connect(&bench.data()).await.expect("a connection");
    let (client, mut events) = found.expect("a host");
    client.call(None, Method::Watch).await.expect("a subscription");
    for (pod, dir) in [("p", "a"), ("z", "b")] {
        let (name, cwd) = (PodName::parse(pod).ok(), bench.ws().join(dir));
        let scope = Some(vec![Rule::new(cwd.clone(), Permission::Write)]);
        let model = Some(bench.model());
        let new = NewPod { name, cwd, model, scope, ..NewPod::default() };
        client.call(None, Method::New(new)).await.expect("a new Pod");
    }
    let p = PodName::parse("p").expect("a name");
    client.call(Some(&p), Method::say("sleep")).await.expect("it is taken");
    eventually("the command runs", || running(&bench, "sleep 654") == 1);
    let rule = Rule::new(bench.ws().join("a/deep"), Permission::Write);
    let lend = client.call(Some(&p), Method::lend("z", rule.clone())).await;
    let refusal = lend.expect_err("a command writes there");
    assert!(refusal.message.contains("`p` runs Bash trap"), "{refusal}");
    // The command ignores SIGTERM and lasts longer than the harness waits: only the stop can end it.
    let stopped =
        client.call(Some(&p), Method::StopPods { tree: false, unless_busy: false, silent: false });
    let stopped = tokio::time::timeout(PATIENCE, stopped).await.expect("an answer");
    assert!(matches!(stopped, Ok(Event::PodsStopped { .. })), "{stopped:?}");
    assert_eq!(running(&bench, "sleep 654"), 0);
    while let Ok(event) = events.try_recv() {
        assert!(!matches!(event.event, Event::Lagged));
    }
}

#[tokio::test]
async fn a_pod_that_is_being_stopped_takes_no_child_is_not_deleted_and_comes_back_afterwards() {
    let bench = bench();
    let _host = bench.serve();
    let found = yoi::client::find::connect(&bench.data()).await.expect("a connection");
    let (client, _events) = found.expect("a host");
    let name = |name: &str| PodName::parse(name).expect("a name");
    let new = NewPod {
        name: Some(name("p")),
        cwd: bench.ws(),
        model: Some(bench.model()),
        ..NewPod::default()
    };
    client.call(None, Method::New(new)).await.expect("a new Pod");
    let child = |name: &str, dir: &str| {
        let scope = vec![Rule::new(bench.ws().join(dir), Permission::Write)];
        SpawnPod { name: name.into(), task: "hi".into(), scope, ..SpawnPod::default() }
    };
    let (p, kid) = (name("p"), name("kid"));
    client.call(Some(&p), Method::Spawn(child("kid", "a"))).await.expect("a child");
    // The child event may have started a run.
    let sleep = Segment::Text { content: "sleep".into() };
    let say = Method::Send { input: vec![sleep], queue: true };
    client.call(Some(&p), say).await.expect("it is taken");
    eventually("the command runs", || running(&bench, "sleep 654") == 1);
    let meanwhile = async {
        let stopped = client
            .call(Some(&kid), Method::StopPods { tree: false, unless_busy: false, silent: false })
            .await;
        assert!(matches!(stopped, Ok(Event::PodsStopped { .. })), "{stopped:?}");
        let orders = [(Some(&kid), Method::Remove), (Some(&p), Method::Spawn(child("late", "b")))];
        for (pod, order) in orders {
            let refusal = client.call(pod, order).await.expect_err("not now");
            assert!(refusal.message.contains("is being stopped"), "{refusal}");
        }
    };
    let (stopped, ()) = tokio::join!(
        client.call(Some(&p), Method::StopPods { tree: true, unless_busy: false, silent: false }),
        meanwhile
    );
    assert!(matches!(stopped, Ok(Event::PodsStopped { .. })), "{stopped:?}");
    client.call(None, Method::Restore { name: "kid".into() }).await.expect("it is over");
    assert!(bench.pod("late").is_none());
}

/// Numbers that a seed decides.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % n.max(1)
    }

    fn of(&mut self, list: &[String]) -> String {
        list[self.below(list.len())].clone()
    }
}

#[test]
fn two_screens_show_the_same_after_whatever_is_done_on_either() {
    let bench = bench();
    let model = bench.model();
    let mut one = Terminal::sized(&bench, &["--model", &model], 120, 40);
    one.waits_for("what to work on");
    one.press("hello\r");
    one.waits_for("heard: hello");
    let mut two = Terminal::sized(&bench, &["--pod", "ws"], 120, 40);
    two.waits_for("heard: hello");
    let mut dice = Dice(7);
    // Both look at one Pod for the whole time, so the peers shown are the same, too.
    for step in 0..50 {
        let now = truth(&bench, "ws");
        let live: Vec<String> =
            now.tree.iter().map(|(_, name)| name.clone()).filter(|name| name != "ws").collect();
        let action = match dice.below(6) {
            0 if live.len() < 6 => format!(":new p{step}"),
            1 if !live.is_empty() => format!(":stop {}", dice.of(&live)),
            2 if !live.is_empty() => format!(":peer {}", dice.of(&live)),
            3 if !now.peers.is_empty() => format!(":unpeer {}", dice.of(&now.peers)),
            4 if !live.is_empty() => format!(":send {} word {step}", dice.of(&live)),
            _ => format!("word {step}"),
        };
        let on = if dice.below(2) == 0 { &mut one } else { &mut two };
        on.press(&action);
        on.waits_for(&action);
        on.press("\r");
        // What follows an Enter at once is the next line of a paste.
        if action.starts_with(':') {
            eventually("the command is carried out", || !on.text().contains(&action));
        }
        if action.starts_with(":new") {
            on.waits_for(&format!("\n p{step} ›"));
            on.press(":open ws\r");
            on.waits_for("\n ws ›");
        }
        let said = action.starts_with("word");
        let expected = |text: &str| {
            let truth = truth(&bench, "ws");
            shown(text) == truth && (!said || text.contains(&format!("heard: {action}")))
        };
        let both = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually("both screens show it", || {
                truth(&bench, "ws") != now
                    || said
                    || action.starts_with(":peer")
                    || action.starts_with(":send")
            });
            eventually("both screens show it", || expected(&one.text()) && expected(&two.text()));
        }));
        assert!(both.is_ok(), "step {step} `{action}`:\n{}\n{}", one.text(), two.text());
    }
    one.press("a draft of mine");
    one.waits_for("a draft of mine");
    two.press("word at last\r");
    two.waits_for("heard: word at last");
    assert!(one.text().contains("a draft of mine") && !two.text().contains("a draft of mine"));
}
