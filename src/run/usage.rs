//! What each model request used and cost. It is committed to the log for every request: a whole
//! answer, one that broke or was interrupted, and the summary of a compaction.

use crate::config::models::Price;
use crate::llm::Usage;
use crate::protocol::{Entry, Event, Fact};
use crate::run::{Run, RunEvent, Stopped};

impl Run {
    /// The entry for a request over the first `asked` items of the history; none when the provider
    /// reported no tokens.
    pub(super) fn usage_entry(&self, usage: Usage, asked: u64) -> Option<Entry> {
        let model = self.setup.models.model.as_ref().map(|(model, _)| model);
        let asked = if exceeds(usage, model.map_or(0, |model| model.window)) { 0 } else { asked };
        fact(usage, asked, model.and_then(|model| model.price.as_ref())).map(Entry::new)
    }

    /// Commits what a request used that leaves no other entry.
    pub(super) async fn commit_usage(&mut self, usage: Usage, asked: u64) -> Result<(), Stopped> {
        let Some(entry) = self.usage_entry(usage, asked) else { return Ok(()) };
        self.commit(vec![entry]).await?;
        self.publish_context().await;
        Ok(())
    }

    pub(super) async fn publish_usage(&self, usage: Usage) {
        if usage == Usage::default() {
            return;
        }
        self.publish(Event::Usage {
            input_tokens: usage.input,
            output_tokens: usage.output,
            cache_read_input_tokens: usage.cache_read,
        })
        .await;
    }

    /// Says how full the context window is, and what the Pod cost so far.
    pub(super) async fn publish_context(&self) {
        self.send(RunEvent::Context { tokens: self.tokens(), cost: self.session_state.state.cost })
            .await;
    }
}

/// Whether a provider reports more input than the context window holds. It paid for that input, but in
/// several rounds (a server's own tools, a gateway that adds up), so it does not measure the history of one
/// request. A window of 0 is not known.
fn exceeds(usage: Usage, window: u64) -> bool {
    window > 0 && usage.input.is_some_and(|input| input > window)
}

fn fact(usage: Usage, asked: u64, price: Option<&Price>) -> Option<Fact> {
    let input = usage.input?;
    let (read, write) = (usage.cache_read.unwrap_or(0), usage.cache_write.unwrap_or(0));
    let output = usage.output.unwrap_or(0);
    Some(Fact::LlmUsage {
        history_len: asked,
        input_total_tokens: input,
        cache_read_tokens: read,
        cache_write_tokens: write,
        output_tokens: output,
        cost: price.map(|price| price.cost(input, output, read, write)),
    })
}

/// Counts are cumulative within a request: a newer one replaces an older one.
pub(super) fn merged(old: Usage, new: Usage) -> Usage {
    Usage {
        input: new.input.or(old.input),
        output: new.output.or(old.output),
        cache_read: new.cache_read.or(old.cache_read),
        cache_write: new.cache_write.or(old.cache_write),
        reasoning: new.reasoning.or(old.reasoning),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_are_paid_once_at_their_own_price() {
        let price = Price {
            input: 1.0,
            output: 10.0,
            cache_read: 0.1,
            cache_write: 2.0,
            long_context: None,
        };
        let usage = Usage {
            input: Some(1_000_000),
            output: Some(100_000),
            cache_read: Some(500_000),
            cache_write: Some(200_000),
            reasoning: None,
        };
        let Some(Fact::LlmUsage { cost: Some(cost), .. }) = fact(usage, 1, Some(&price)) else {
            panic!()
        };
        let expected = 0.3 + 0.1 * 10.0 + 0.5 * 0.1 + 0.2 * 2.0;
        assert!((cost - expected).abs() < 1e-9, "{cost}");
    }
}
