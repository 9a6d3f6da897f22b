//! The published facts of a model, as people read them.

use crate::theme::Role;
use yoi::client::family::Cost;
use yoi::config::{Known, Price, Reasoning};
use yoi::protocol::PodInfo;

/// From this share of the context on, in percent, it is shown as a warning.
const NEARLY_FULL: u64 = 80;

/// The cost of requests to a model without a price.
const UNKNOWN: &str = "unknown";

/// A number of tokens: `200k`, `1M`.
pub fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", count / 1_000),
        _ if count % 1_000_000 < 50_000 => format!("{}M", count / 1_000_000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// What requests cost, at most 7 columns wide: `$0.12`, `<1¢`, `$104`, `~$2` where a part is unknown, `unknown` where all of
/// it is; empty where nothing was sent.
pub fn cost(cost: &Cost) -> String {
    let dollars = cost.dollars;
    let shown = match dollars {
        _ if dollars <= 0.0 => return if cost.unknown { UNKNOWN.into() } else { String::new() },
        _ if dollars < 0.01 => "<1¢".into(),
        _ if dollars < 99.995 => format!("${dollars:.2}"),
        _ => format!("${dollars:.0}"),
    };
    if cost.unknown { format!("~{shown}") } else { shown }
}

/// The same where no heading says that it is a cost.
pub fn cost_alone(cost: &Cost) -> String {
    let shown = self::cost(cost);
    if shown == UNKNOWN { format!("cost {UNKNOWN}") } else { shown }
}

/// How full the context of a Pod is, `34%` or `full`, and whether that is as it should be; `None` where nothing is known.
pub fn context(info: &PodInfo) -> Option<(String, Role)> {
    if info.context_window == 0 || info.context_tokens == 0 {
        return None;
    }
    let percent = info.context_tokens.saturating_mul(100) / info.context_window;
    // The tokens of the next request are estimated: one that does not fit is made shorter before it is sent.
    let text = if percent >= 100 { "full".into() } else { format!("{percent}%") };
    Some((text, if percent >= NEARLY_FULL { Role::Warn } else { Role::Dim }))
}

/// US dollars for a million tokens of input and of output: `$2 / $10`, with the price of long inputs where it differs.
pub fn price(price: &Price) -> String {
    let usual = format!("${} / ${}", price.input, price.output);
    match price.long_context {
        Some(long) => {
            format!("{usual}, above {} ${} / ${}", tokens(long.above), long.input, long.output)
        }
        None => usual,
    }
}

/// What the model takes besides text, and until when it is there.
pub fn notes(known: &Known) -> String {
    let thinks = known.reasoning.filter(|reasoning| *reasoning != Reasoning::None);
    let notes = [
        known.images.unwrap_or(false).then(|| "images".to_owned()),
        thinks.map(|_| "effort".to_owned()),
        known.deprecated.as_ref().map(|date| format!("deprecated, ends {date}")),
    ];
    notes.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// All of it in one line.
pub fn facts(known: &Known) -> String {
    let facts = [
        known.window.map(|window| format!("window {}", tokens(window))),
        known.price.as_ref().map(price),
        Some(notes(known)).filter(|notes| !notes.is_empty()),
    ];
    facts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// In which other words requests carry an effort, or why they do not, behind the effort.
pub fn as_sent(info: &PodInfo) -> String {
    let sent = info.effort_sent.as_ref().map(|sent| format!(", sent as {sent}"));
    sent.unwrap_or_else(|| unsent(info.effort_unsent.as_deref()))
}

/// Why no request carries an effort, behind the effort.
pub fn unsent(why: Option<&str>) -> String {
    why.map_or_else(String::new, |why| format!(", but no request carries it: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use yoi::config::LongContextPrice;

    #[test]
    fn the_facts_of_a_model_are_one_line() {
        let known = Known {
            window: Some(1_048_576),
            max_output: Some(64_000),
            images: Some(true),
            reasoning: Some(Reasoning::Effort),
            price: Some(Price {
                input: 1.25,
                output: 10.0,
                long_context: Some(LongContextPrice {
                    above: 200_000,
                    input: 2.5,
                    output: 15.0,
                    ..LongContextPrice::default()
                }),
                ..Price::default()
            }),
            deprecated: Some("2026-12-31".into()),
        };
        assert_eq!(
            facts(&known),
            "window 1M · $1.25 / $10, above 200k $2.5 / $15 · images, effort, deprecated, ends 2026-12-31"
        );
        assert_eq!(facts(&Known::default()), "");
    }

    #[test]
    fn a_cost_is_short_and_says_what_is_unknown() {
        let of = |dollars, unknown| cost(&Cost { dollars, unknown });
        let known = [0.0, 0.004, 0.12, 99.99, 99.996, 104.4].map(|dollars| of(dollars, false));
        assert_eq!(known, ["", "<1¢", "$0.12", "$99.99", "$100", "$104"]);
        assert_eq!((of(0.0, true), of(2.0, true)), ("unknown".into(), "~$2.00".to_owned()));
    }

    #[test]
    fn a_number_of_tokens_is_short() {
        let counts = [0, 999, 8_192, 200_000, 1_000_000, 1_048_576, 1_500_000, 2_000_000];
        let short = ["0", "999", "8k", "200k", "1M", "1M", "1.5M", "2M"];
        assert_eq!(counts.map(tokens), short);
    }
}
