//! A span of time as a person types it.

/// The milliseconds of a time with its unit: `45m`, `12h`, `7d`, `2w`.
pub fn time_span(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no time: a number with m, h, d or w is, such as 12h or 7d");
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let minutes = match unit {
        "m" => 1,
        "h" => 60,
        "d" => 24 * 60,
        "w" => 7 * 24 * 60,
        _ => return Err(wrong()),
    };
    let millis = number.parse().ok().and_then(|number: u64| number.checked_mul(minutes * 60_000));
    millis.ok_or_else(wrong)
}
