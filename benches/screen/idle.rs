//! A dashboard that nobody touches, over a host in which nothing runs, does nothing at all.

use crate::figure::Figure;
use crate::home::Home;
use crate::process::{Switches, memory};
use crate::terminal::Terminal;
use std::time::Duration;

/// How long everything is left alone first.
const QUIET: Duration = Duration::from_secs(15);
/// How long it is watched then.
const WATCHED: Duration = Duration::from_secs(20);

/// What happened while nothing did.
pub struct Stillness {
    pub frames: u64,
    pub bytes: u64,
    pub switches: u64,
}

pub fn measure() -> Vec<Figure> {
    let mut home = Home::new();
    home.start_host();
    home.new_pod("idle");
    home.say("idle", "hello");
    let terminal = Terminal::open(&home, &["--pod", "idle"]);
    terminal.until("the answer shows", |seen| seen.shows("heard: hello"));
    let Stillness { frames, bytes, switches } = watch(&home, &terminal);
    let (screen, host) = (memory(terminal.pid()), memory(home.host()));
    vec![
        Figure::count("idle for 20 s: frames", frames, 0),
        Figure::count("idle for 20 s: bytes to the terminal", bytes, 0),
        Figure::count("idle for 20 s: voluntary context switches, both processes", switches, 2),
        Figure::memory("idle: memory of the screen", screen.resident, 60),
        Figure::memory("idle: memory of the host", host.resident, 40),
    ]
}

/// Leaves everything alone, then looks how much happens by itself.
pub fn watch(home: &Home, terminal: &Terminal) -> Stillness {
    std::thread::sleep(QUIET);
    let pids = [terminal.pid(), home.host()];
    let (frames, bytes) = terminal.seen(|seen| (seen.frames(), seen.bytes));
    let before = Switches::of(&pids);
    std::thread::sleep(WATCHED);
    let after = Switches::of(&pids);
    let switches = after.since(&before);
    if switches > 0 {
        eprintln!("  switches: {}", after.explain(&before));
    }
    let (frames_now, bytes_now) = terminal.seen(|seen| (seen.frames(), seen.bytes));
    Stillness { frames: frames_now - frames, bytes: bytes_now - bytes, switches }
}
