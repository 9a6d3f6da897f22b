//! The output of a running command: whole characters, at a limited rate.

use crate::tools::text_limit;
use std::time::Duration;
use tokio::time::Instant;

/// The most bytes shown in one [`WINDOW`]; further ones are only counted.
const BUDGET: usize = 32 * 1024;
const WINDOW: Duration = Duration::from_millis(100);

/// Publishes chunks of bytes as text.
pub struct LiveOutput<'a> {
    publish: &'a mut (dyn FnMut(String) + Send),
    /// The first bytes of an incomplete character.
    open: Vec<u8>,
    window: Instant,
    shown: usize,
    skipped: u64,
}

impl<'a> LiveOutput<'a> {
    pub fn new(publish: &'a mut (dyn FnMut(String) + Send)) -> Self {
        Self { publish, open: Vec::new(), window: Instant::now(), shown: 0, skipped: 0 }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        if self.window.elapsed() >= WINDOW {
            self.flush();
            (self.window, self.shown) = (Instant::now(), 0);
        }
        if self.shown >= BUDGET {
            self.skipped += bytes.len() as u64;
            return;
        }
        self.shown += bytes.len();
        self.open.extend_from_slice(bytes);
        let rest = self.open.split_off(whole(&self.open));
        let text = std::mem::replace(&mut self.open, rest);
        self.say(&text);
    }

    /// Publishes the rest at the end.
    pub fn finish(&mut self) {
        let rest = std::mem::take(&mut self.open);
        self.say(&rest);
        self.flush();
    }

    fn flush(&mut self) {
        if self.skipped > 0 {
            let skipped = text_limit::size(std::mem::take(&mut self.skipped));
            (self.publish)(format!("\n[{skipped} not shown]\n"));
            // The incomplete character before the gap is lost.
            self.open.clear();
        }
    }

    fn say(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            (self.publish)(text(bytes));
        }
    }
}

/// Bytes as text: what is not UTF-8, and NUL, as the replacement character.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}

/// The number of bytes without an incomplete character at the end.
pub fn whole(bytes: &[u8]) -> usize {
    let len = bytes.len();
    for back in 1..=len.min(3) {
        let byte = bytes[len - back];
        let width = match byte {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => return len,
        };
        return if width > back { len - back } else { len };
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_counted_instead_of_streamed() {
        let mut shown = String::new();
        let mut publish = |text: String| shown.push_str(&text);
        let mut live = LiveOutput::new(&mut publish);
        for _ in 0..2 {
            for _ in 0..100 {
                live.push(&[b'x'; 1024]);
            }
            tokio::time::advance(WINDOW).await;
        }
        live.finish();
        let part = format!("{}\n[68.0 KiB not shown]\n", "x".repeat(BUDGET));
        assert_eq!(shown, part.repeat(2));
    }
}
