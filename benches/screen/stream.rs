//! Keys while an answer streams in at 200 pieces a second.

use crate::figure::Figure;
use crate::home::Home;
use crate::process::{cpu, memory};
use crate::terminal::Terminal;
use std::time::{Duration, Instant};

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
        Figure::time("p99 of a key on screen while 200 pieces/s stream", times.percentile(99), 16),
        Figure::seen("a key on screen while 200 pieces/s stream", times.spread()),
        Figure::seen("screen while 200 pieces/s stream", share(cpu(screen), before.0)),
        Figure::seen("host while 200 pieces/s stream", share(cpu(host), before.1)),
        Figure::seen("frames while 200 pieces/s stream", format!("{frames:.0}/s, {kib:.0} KiB/s")),
        Figure::memory("memory of the screen, streaming", memory(screen).resident, 60),
        Figure::memory("memory of the host, streaming", memory(host).resident, 40),
    ]
}
