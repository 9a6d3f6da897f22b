//! Keys while an answer streams in at 200 pieces a second.

use crate::figure::Figure;
use crate::home::Home;
use crate::process::{cpu, memory};
use crate::terminal::Terminal;
use std::time::{Duration, Instant};

/// How long a person reads.
const READING: Duration = Duration::from_secs(10);

pub fn measure() -> Vec<Figure> {
    let mut home = Home::new();
    home.start_host();
    home.new_pod("stream");
    home.say("stream", "hello");
    let terminal = Terminal::open(&home, &["--pod", "stream"]);
    terminal.until("the answer shows", |seen| seen.shows("heard: hello"));
    home.start("stream", "stream");
    terminal.until("the answer streams", |seen| seen.shows("The quick brown fox"));
    let (screen, host) = (terminal.pid(), home.host());
    let read_only = load(screen, host);
    let before = (cpu(screen), cpu(host), terminal.seen(|seen| (seen.frames(), seen.bytes)));
    let started = Instant::now();
    let times = terminal.typed();
    let passed = started.elapsed();
    let (frames, bytes) = terminal.seen(|seen| (seen.frames(), seen.bytes));
    let share = |now: Duration, before: Duration| {
        format!("{:.1} % of one core", 100.0 * (now - before).as_secs_f64() / passed.as_secs_f64())
    };
    let each_second = |count: u64| Duration::from_secs(count).as_secs_f64() / passed.as_secs_f64();
    let frames = each_second(frames - before.2.0);
    let kib = each_second(bytes - before.2.1) / 1024.0;
    vec![
        Figure::held(
            "screen and host together while 200 pieces/s stream, without a key",
            format!("{read_only:.1} % of one core"),
            "under 5 %",
            read_only < 5.0,
        ),
        Figure::time("p99 of a key on screen while 200 pieces/s stream", times.percentile(99), 16),
        Figure::seen("a key on screen while 200 pieces/s stream", times.spread()),
        Figure::seen("screen while 200 pieces/s stream", share(cpu(screen), before.0)),
        Figure::seen("host while 200 pieces/s stream", share(cpu(host), before.1)),
        Figure::seen("frames while 200 pieces/s stream", format!("{frames:.0}/s, {kib:.0} KiB/s")),
        Figure::memory("memory of the screen, streaming", memory(screen).resident, 60),
        Figure::memory("memory of the host, streaming", memory(host).resident, 40),
    ]
}

/// The load of one core by both processes while a person reads, in per cent.
fn load(screen: u32, host: u32) -> f64 {
    let both = || cpu(screen) + cpu(host);
    let (before, started) = (both(), Instant::now());
    std::thread::sleep(READING);
    100.0 * (both() - before).as_secs_f64() / started.elapsed().as_secs_f64()
}
