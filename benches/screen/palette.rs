//! A key in the palette over 100,000 rows: messages that were sent from this screen.

use crate::figure::{Figure, Times};
use crate::home::Home;
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const ROWS: usize = 100_000;
/// What is searched for, a letter at a time, and then deleted.
const QUERIES: [&str; 4] = ["m0", "theme", "stop", "m99999"];
/// How often each of them.
const ROUNDS: usize = 10;
/// Between two keys: a person types more slowly.
const PAUSE: Duration = Duration::from_millis(30);

const PALETTE: &str = "\x10";
const BACKSPACE: &str = "\x7f";

pub fn measure() -> Vec<Figure> {
    let mut home = Home::new();
    home.start_host();
    home.new_pod("pod");
    let first = Terminal::open(&home, &["--pod", "pod"]);
    first.until("the dashboard shows", |seen| seen.shows("pod"));
    first.send("m00000");
    // In one write the two would be a paste, and Enter a line of it.
    first.until("the message is in the line", |seen| seen.shows("m00000"));
    first.send("\r");
    first.until("the answer shows", |seen| seen.shows("heard: m00000"));
    let state = kept(&home);
    drop(first);
    lengthen(&state);
    let terminal = Terminal::open(&home, &["--pod", "pod"]);
    terminal.until("the answer shows", |seen| seen.shows("heard: m00000"));
    let opened = terminal.frame_after(PALETTE);
    let mut times = Times::default();
    for query in QUERIES.iter().cycle().take(QUERIES.len() * ROUNDS) {
        let letters = query.chars().map(|letter| letter.to_string());
        for key in letters.chain(query.chars().map(|_| BACKSPACE.to_owned())) {
            std::thread::sleep(PAUSE);
            times.push(terminal.echo(&key));
        }
    }
    let what = format!("p99 of a key in the palette over {ROWS} rows");
    vec![
        Figure::time(what, times.percentile(99), 8),
        Figure::seen("a key in the palette", times.spread()),
        Figure::seen("the palette opened", format!("{:.1} ms", opened.as_secs_f64() * 1000.0)),
    ]
}

/// The file that keeps the screen, once the message is in it.
fn kept(home: &Home) -> PathBuf {
    let screens = home.data().with_file_name("state").join("screens");
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let files = fs::read_dir(&screens).into_iter().flatten().flatten().map(|file| file.path());
        let holds =
            |file: &PathBuf| fs::read_to_string(file).is_ok_and(|text| text.contains("m00000"));
        if let Some(file) = files.into_iter().find(holds) {
            return file;
        }
        assert!(Instant::now() < deadline, "no file in {} keeps the message", screens.display());
        std::thread::sleep(PAUSE);
    }
}

/// Makes many messages of the one that is kept.
fn lengthen(state: &PathBuf) {
    let text = fs::read_to_string(state).expect("a readable file");
    let mut kept: Value = serde_json::from_str(&text).expect("a file in JSON");
    let sent = kept["content"]["sent"][0].to_string();
    let message = |n: usize| -> Value {
        serde_json::from_str(&sent.replace("m00000", &format!("m{n:05}"))).expect("a message")
    };
    kept["content"]["sent"] = json!((0..ROWS).map(message).collect::<Vec<_>>());
    fs::write(state, kept.to_string()).expect("a writable file");
}
