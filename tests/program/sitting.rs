//! A person at the dashboard with a keyboard and no mouse: a family is started, what it needs is decided by the loop, a run in
//! circles is nudged, and after a pause the person reads what happened and goes to it.

use crate::bench::{Bench, eventually, files};
use crate::pty::Terminal;
use rusqlite::Connection;
use std::time::{Duration, Instant};

const SCRIPT: &str = r#"
[[when]]
says = "go"
[[when.step]]
call = [
  { name = "SpawnPod", args = { name = "near", task = "fetch one", scope = [{ target = "{cwd}/a", permission = "write" }] } },
  { name = "SpawnPod", args = { name = "mid", task = "dig", scope = [{ target = "{cwd}/b", permission = "write" }] } },
  { name = "SpawnPod", args = { name = "choice", task = "choose", scope = [{ target = "{cwd}/c", permission = "write" }] } },
  { name = "SpawnPod", args = { name = "aside", task = "fetch four", scope = [{ target = "{cwd}/d", permission = "write" }] } },
  { name = "SpawnPod", args = { name = "looper", task = "loop", scope = [{ target = "{cwd}/e", permission = "write" }] } },
]
[[when.step]]
text = "All five are at work."

[[when]]
says = "dig"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "deep", task = "dig deeper", scope = [{ target = "{cwd}/x", permission = "write" }] } }]
[[when.step]]
text = "Dug."

[[when]]
says = "dig deeper"
[[when.step]]
call = [
  { name = "SpawnPod", args = { name = "last", task = "fetch three", scope = [{ target = "{cwd}/y", permission = "write" }] } },
  { name = "Bash", args = { command = "echo two", needs = ["network"], reason = "to fetch" } },
]
[[when.step]]
text = "Dug deeper."

[[when]]
says = "fetch *"
[[when.step]]
call = [{ name = "Bash", args = { command = "echo {1}", needs = ["network"], reason = "to fetch" } }]
[[when.step]]
text = "Fetched {1}."

[[when]]
says = "choose"
[[when.step]]
call = [{ name = "AskPerson", args = { question = "Which name?", choices = ["total", "sum"] } }]
[[when.step]]
text = "I take {result}"

[[when]]
says = "loop"
LOOP
[[when.step]]
text = "Never said."
fault = { hang = 0, times = 9 }

[[when]]
says = "You do the same *"
[[when.step]]
text = "The test needs a server: that blocks me."

[[when]]
any = true
text = "heard: {1}"
"#;

/// A call that fails in the same way each time, a moment after the one before.
const FAILS: &str = r#"
[[when.step]]
wait_ms = 300
call = [{ name = "Bash", args = { command = "echo no server; exit 7" } }]
"#;

/// The Pods whose requests wait, by name.
fn waiting(bench: &Bench) -> Vec<String> {
    let db = Connection::open(bench.data().join("yoi.db")).expect("the store");
    let mut rows =
        db.prepare("SELECT pod FROM asks WHERE verdict IS NULL ORDER BY pod").expect("requests");
    let pods = rows.query_map([], |row| row.get(0)).expect("requests");
    pods.map(|pod| pod.expect("a name")).collect()
}

/// Presses a key of a card until what it does is seen: keys count once the card has been on the screen for a moment.
fn decides(terminal: &mut Terminal, key: &str, mut is_done: impl FnMut(&Terminal) -> bool) {
    let mut pressed = None;
    sees(terminal, &format!("`{key}` is taken"), |terminal| {
        if pressed.is_none_or(|at: Instant| at.elapsed() > Duration::from_millis(400)) {
            terminal.press(key);
            pressed = Some(Instant::now());
        }
        is_done(terminal)
    });
}

/// Waits; where it is in vain, the screen is in the message.
fn sees(terminal: &mut Terminal, what: &str, mut so: impl FnMut(&mut Terminal) -> bool) {
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        eventually(what, || so(terminal));
    }));
    assert!(found.is_ok(), "{what}:\n{}", terminal.text());
}

/// The card of which Pod has the keys.
fn card_of(terminal: &Terminal) -> Option<String> {
    let text = terminal.text();
    let mut heads = text.lines().filter_map(|line| {
        let (_, path) = line.strip_prefix(' ')?.split_at_checked("▲".len())?;
        path.starts_with(" ws › ").then(|| path.trim_start().split_once("  "))?
    });
    let (path, _) = heads.next()?;
    let name = path.rsplit(" › ").next()?;
    // A card without the keys leaves the line to the draft.
    (!text.contains("ws › a draft")).then(|| name.to_owned())
}

/// Wakes the card on the screen, or goes to the next one. A card whose Pod runs again meanwhile goes back to sleep.
fn next_card(terminal: &mut Terminal) -> Option<String> {
    terminal.press("\x0e");
    terminal.paints_anew();
    card_of(terminal)
}

#[test]
fn a_family_is_led_by_keys_alone_from_its_first_request_to_what_happened_meanwhile() {
    let bench = Bench::new();
    bench.play(&SCRIPT.replace("LOOP", &FAILS.repeat(200)));
    for dir in ["a", "b/x/y", "c", "d", "e"] {
        std::fs::create_dir_all(bench.ws().join(dir)).expect("a new directory");
    }
    let model = bench.model();
    let mut terminal = Terminal::sized(&bench, &["--model", &model], 120, 40);
    terminal.waits_for("what to work on");
    terminal.press("go\r");
    eventually("five requests wait", || {
        waiting(&bench) == ["aside", "choice", "deep", "last", "near"]
    });
    // The draft stays where it is, whatever is decided.
    terminal.press("a draft");
    let mut answered = Vec::new();
    while answered.len() < 4 {
        let mut pod = None;
        sees(&mut terminal, "a card has the keys", |terminal| {
            pod = next_card(terminal).filter(|pod| !answered.contains(pod));
            pod.is_some()
        });
        let pod = pod.expect("a card");
        let waits = |pod: &str| waiting(&bench).iter().any(|other| other == pod);
        match pod.as_str() {
            "aside" => decides(&mut terminal, "z", |terminal| {
                card_of(terminal).is_none_or(|now| now != "aside")
            }),
            "choice" => {
                decides(&mut terminal, "2", |terminal| terminal.text().contains("answer › sum"));
                // It counts once the card could be read.
                decides(&mut terminal, "\r", |_| !waits("choice"));
            }
            pod => decides(&mut terminal, "a", |_| !waits(pod)),
        }
        if pod != "aside" {
            answered.push(pod.clone());
        }
    }
    assert_eq!(waiting(&bench), ["aside"], "what was put off waits");
    let rests = |pod: &str| bench.pod(pod).is_some_and(|pod| pod["state"] == "idle");
    eventually("the reports are read", || ["ws", "mid", "deep"].into_iter().all(rests));
    terminal.waits_for("ws › a draft");
    // Behind what waits come the run in circles and what ended.
    sees(&mut terminal, "the card of the run in circles has the keys", |terminal| {
        next_card(terminal).is_some_and(|pod| pod == "looper")
    });
    decides(&mut terminal, "1", |terminal| terminal.text().contains("message ›"));
    terminal.press("\r");
    let log = |pod: &str| serde_json::Value::from(bench.log(pod)).to_string();
    eventually("the nudge reaches the run", || log("looper").contains("that blocks me"));
    terminal.waits_for("ws › a draft");
    terminal.press("\x18:open looper\r");
    terminal.waits_for("looper ›");
    terminal.press(":peer near\r");
    terminal.waits_for("looper and near are peers");
    let is_seen = |pod: &str| bench.pod(pod).is_some_and(|pod| pod["unseen"] == false);
    eventually("its report is read", || rests("ws") && rests("looper") && is_seen("looper"));
    // Its run may have ended before or after the person left it.
    terminal.press("\x18:open ws\r");
    terminal.waits_for("ws › a draft");
    eventually("the root is read", || is_seen("ws"));
    terminal.press("\x18:open looper\r");
    terminal.waits_for("looper ›");
    terminal.press(":stop @done\r");
    terminal.waits_for("stop 5 Pods: near, mid, choice, deep, last?");
    // The question is gone, and no verb is under way, once the screen says what came of it.
    decides(&mut terminal, "\r", |terminal| {
        terminal.text().contains("✓ stopped near, mid, choice, deep, last")
    });
    terminal.waits_without("stop 5 Pods");
    // The root reads that its children were stopped: where its run goes on, leaving is confirmed.
    let mut pressed = None;
    sees(&mut terminal, "the screen is left", |terminal| {
        if pressed.is_none_or(|at: Instant| at.elapsed() > Duration::from_millis(400)) {
            let confirms = terminal.text().contains("Esc: stay");
            terminal.press(if confirms { "\r" } else { "\x18q" });
            pressed = Some(Instant::now());
        }
        terminal.is_as_before()
    });
    assert_eq!(terminal.ends(), 0);
    // As if ten minutes passed.
    for file in files(&bench.path("home/state/screens")) {
        let text = std::fs::read_to_string(&file).expect("a file of the screen");
        let mut screen: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let Some(left) = screen["content"]["left"].as_u64() else { continue };
        screen["content"]["left"] = (left - 600_000).into();
        std::fs::write(&file, screen.to_string()).expect("a file of ours");
    }
    let mut terminal = Terminal::sized(&bench, &[], 120, 40);
    terminal.waits_for("Since you left");
    // The page leaves the keys with the line until the person goes there.
    terminal.press("\x18h");
    sees(&mut terminal, "the cursor is on the run of `mid`", |terminal| {
        terminal.press("j");
        terminal.paints_anew();
        terminal.text().lines().any(|line| line.contains("│ › ws › mid  "))
    });
    terminal.press("\r");
    terminal.waits_without("Since you left");
    terminal.waits_for("│ ws › mid ");
    terminal.waits_for("Dug.");
    assert_eq!(waiting(&bench), ["aside"], "a look decides nothing");
}
