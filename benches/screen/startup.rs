//! From the command to a dashboard that can be used, with and without a host that runs already.

use crate::figure::{Figure, Times, millis};
use crate::home::Home;
use crate::terminal::Terminal;
use std::time::Instant;

/// Starts of each kind; the first of each does not count.
const STARTS: usize = 12;

#[derive(Default)]
struct Start {
    frame: Times,
    transcript: Times,
    key: Times,
}

pub fn measure() -> Vec<Figure> {
    let mut home = Home::new();
    home.start_host();
    home.new_pod("start");
    home.say("start", "hello");
    let (mut with, mut without) = (Start::default(), Start::default());
    for n in 0..STARTS {
        start(&home, &mut with, n > 0);
        home.stop_host();
        start(&home, &mut without, n > 0);
    }
    vec![
        Figure::time("start to first frame, host runs", with.frame.median(), 50),
        Figure::seen("start to transcript, host runs", millis(with.transcript.median())),
        Figure::seen("start to first typed key on screen, host runs", millis(with.key.median())),
        Figure::time("start to first frame, host started too", without.frame.median(), 300),
        Figure::seen("start to transcript, host started too", millis(without.transcript.median())),
    ]
}

fn start(home: &Home, start: &mut Start, counts: bool) {
    let begun = Instant::now();
    let terminal = Terminal::open(home, &["--pod", "start"]);
    let frame = terminal.until("a frame", |seen| seen.frames() > 0);
    let transcript = terminal.until("the answer", |seen| seen.shows("heard: hello"));
    terminal.echo("x");
    if counts {
        start.frame.push(frame);
        start.transcript.push(transcript);
        start.key.push(begun.elapsed());
    }
}
