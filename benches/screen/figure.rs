//! What was measured, as a row of the README's table.

use std::time::Duration;

/// One row.
pub struct Figure {
    what: String,
    value: String,
    limit: String,
    met: bool,
}

impl Figure {
    /// A figure that nothing was promised about.
    pub fn seen(what: impl Into<String>, value: impl Into<String>) -> Self {
        Self { what: what.into(), value: value.into(), limit: String::new(), met: true }
    }

    /// A figure with its limit, and whether it keeps it.
    pub fn held(
        what: impl Into<String>,
        value: impl Into<String>,
        limit: impl Into<String>,
        met: bool,
    ) -> Self {
        Self { what: what.into(), value: value.into(), limit: limit.into(), met }
    }

    /// A count with the most it may be.
    pub fn count(what: impl Into<String>, value: u64, most: u64) -> Self {
        Self::held(what, value.to_string(), format!("at most {most}"), value <= most)
    }

    /// Kibibytes of memory with the megabytes it stays under.
    pub fn memory(what: impl Into<String>, kib: u64, under_mb: u64) -> Self {
        Self::held(what, megabytes(kib), format!("under {under_mb} MB"), kib < under_mb * 1024)
    }

    /// A time with the milliseconds it stays under.
    pub fn time(what: impl Into<String>, took: Duration, under_ms: u32) -> Self {
        let met = took < Duration::from_millis(under_ms.into());
        Self::held(what, millis(took), format!("under {under_ms} ms"), met)
    }

    pub fn is_met(&self) -> bool {
        self.met
    }
}

/// A Markdown table.
pub fn table(figures: &[Figure]) -> String {
    let mut text = String::from("| | measured | limit |\n|---|---|---|\n");
    for Figure { what, value, limit, met } in figures {
        let missed = if *met { "" } else { " **missed**" };
        text.push_str(&format!("| {what} | {value}{missed} | {limit} |\n"));
    }
    text
}

pub fn megabytes(kib: u64) -> String {
    format!("{}.{} MB", kib / 1024, kib % 1024 * 10 / 1024)
}

pub fn millis(took: Duration) -> String {
    let micros = took.as_micros();
    match micros {
        0..10_000 => format!("{}.{:02} ms", micros / 1000, micros % 1000 / 10),
        _ => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
    }
}

/// Times of the same thing, done often.
#[derive(Default)]
pub struct Times(Vec<Duration>);

impl Times {
    pub fn push(&mut self, took: Duration) {
        self.0.push(took);
    }

    pub fn extend(&mut self, more: &Self) {
        self.0.extend(&more.0);
    }

    /// The time that so many of a hundred are not above.
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(rank).copied().unwrap_or_default()
    }

    pub fn median(&self) -> Duration {
        self.percentile(50)
    }

    /// Median and 99th percentile in words.
    pub fn spread(&self) -> String {
        format!("p50 {}, p99 {}", millis(self.median()), millis(self.percentile(99)))
    }
}

/// The one in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
