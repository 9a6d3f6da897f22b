//! The effort of a Pod in the terms of each wire and model.

use crate::config::models::{Model, Reasoning, Wire};
use crate::protocol::Effort;
use serde_json::{Value, json};

/// The reasoning setting of a request: a label or a number of tokens, as the model takes it; `None` where
/// the model takes none, or thinks only when asked and shall not.
pub fn setting(model: &Model, effort: Effort) -> Option<Value> {
    match (model.reasoning, model.wire) {
        (Reasoning::None, _) | (_, Wire::Rehearsal) => None,
        (Reasoning::Effort, Wire::Anthropic) => {
            (effort != Effort::Off).then(|| json!(effort.name()))
        }
        (Reasoning::Effort, Wire::Responses | Wire::Chat) => Some(json!(match effort {
            Effort::Off => "none",
            Effort::Max => "xhigh",
            Effort::Low | Effort::Medium | Effort::High => effort.name(),
        })),
        // These models always think.
        (Reasoning::Effort, Wire::Gemini) => Some(json!(match effort {
            Effort::Off => "low",
            Effort::Max => "high",
            Effort::Low | Effort::Medium | Effort::High => effort.name(),
        })),
        (Reasoning::Budget, Wire::Gemini) => Some(json!(match effort {
            // The least that each of them takes.
            Effort::Off => 128,
            _ => tokens(effort)?,
        })),
        (Reasoning::Budget, Wire::Anthropic | Wire::Chat | Wire::Responses) => {
            tokens(effort).map(|tokens| json!(tokens))
        }
    }
}

/// The word or the number of tokens in which requests to this model carry an effort, where it is not its name.
pub fn in_other_words(model: &Model, effort: Effort) -> Option<String> {
    match setting(model, effort)? {
        Value::String(word) => (word != effort.name()).then_some(word),
        tokens => Some(format!("{tokens} tokens")),
    }
}

/// Why no request to this model carries an effort, and what changes that; `None` where requests carry it.
pub fn why_unsent(model: &Model) -> Option<String> {
    let spec = model.spec();
    match (model.reasoning, model.wire) {
        (_, Wire::Rehearsal) => Some("a script has no effort".into()),
        (Reasoning::None, _) => Some(format!(
            "{spec} is not known to take one; where it does, write reasoning = \"effort\", or \"budget\" for a number of \
             tokens, into [models.{spec:?}] of config.toml"
        )),
        (Reasoning::Effort | Reasoning::Budget, _) => None,
    }
}

/// The tokens that a model with a budget may think.
fn tokens(effort: Effort) -> Option<u64> {
    match effort {
        Effort::Off => None,
        Effort::Low => Some(2_048),
        Effort::Medium => Some(8_192),
        Effort::High => Some(16_384),
        Effort::Max => Some(24_576),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::bench::{model, request};
    use crate::llm::{Request, anthropic, chat, gemini, responses};
    use crate::protocol::RequestConfig;

    /// What the body of a request says of thinking.
    fn sent(model: &Model, effort: Effort) -> Value {
        let config =
            RequestConfig { reasoning: setting(model, effort), ..RequestConfig::default() };
        let request = Request { config, ..request(Vec::new()) };
        let body = match model.wire {
            Wire::Anthropic => anthropic::body(&request, model),
            Wire::Responses => responses::body(&request, model),
            Wire::Chat => chat::body(&request, model),
            Wire::Gemini => gemini::body(&request, model),
            Wire::Rehearsal => unreachable!("a script gets no request"),
        };
        let body: Value = serde_json::from_slice(&body).unwrap();
        let names = ["thinking", "output_config", "reasoning", "reasoning_effort"];
        let mut said: Vec<Value> =
            names.iter().filter_map(|name| body.get(*name).cloned()).collect();
        said.extend(body["generationConfig"].get("thinkingConfig").cloned());
        Value::Array(said)
    }

    #[test]
    fn an_effort_that_goes_out_in_another_word_or_as_a_number_is_named() {
        let of = |wire, reasoning| Model { reasoning, ..model(wire) };
        let words = |model: &Model, effort| in_other_words(model, effort);
        let chat = of(Wire::Chat, Reasoning::Effort);
        assert_eq!(words(&chat, Effort::Max).as_deref(), Some("xhigh"));
        assert_eq!(words(&chat, Effort::High), None);
        let budget = of(Wire::Anthropic, Reasoning::Budget);
        assert_eq!(words(&budget, Effort::Max).as_deref(), Some("24576 tokens"));
        assert_eq!(words(&of(Wire::Chat, Reasoning::None), Effort::Max), None);
    }

    #[test]
    fn each_wire_and_form_gets_the_effort_in_its_own_terms() {
        use Effort::{High, Low, Max, Medium, Off};
        let adaptive =
            |label: &str| json!([{"type": "adaptive", "display": "summarized"}, {"effort": label}]);
        let budget = |tokens: u64| json!([{"type": "enabled", "budget_tokens": tokens}]);
        let level = |label: &str| json!([{"includeThoughts": true, "thinkingLevel": label}]);
        let thoughts = |tokens: u64| json!([{"includeThoughts": true, "thinkingBudget": tokens}]);
        let label = |label: &str| json!([{"effort": label}]);
        let summarised = |label: &str| json!([{"effort": label, "summary": "auto"}]);
        let nothing = json!([]);
        let table = [
            (
                Wire::Anthropic,
                Reasoning::Effort,
                [
                    adaptive("low"),
                    adaptive("medium"),
                    adaptive("high"),
                    adaptive("max"),
                    nothing.clone(),
                ],
            ),
            (
                Wire::Anthropic,
                Reasoning::Budget,
                [budget(2048), budget(8192), budget(16_384), budget(24_576), nothing.clone()],
            ),
            (
                Wire::Responses,
                Reasoning::Effort,
                ["low", "medium", "high", "xhigh", "none"].map(summarised),
            ),
            (
                Wire::Chat,
                Reasoning::Effort,
                [
                    json!(["low"]),
                    json!(["medium"]),
                    json!(["high"]),
                    json!(["xhigh"]),
                    json!(["none"]),
                ],
            ),
            (
                Wire::Gemini,
                Reasoning::Effort,
                [level("low"), level("medium"), level("high"), level("high"), level("low")],
            ),
            (
                Wire::Gemini,
                Reasoning::Budget,
                [thoughts(2048), thoughts(8192), thoughts(16_384), thoughts(24_576), thoughts(128)],
            ),
        ];
        for (wire, reasoning, expected) in table {
            let thinks = Model { reasoning, max_output: 64_000, ..model(wire) };
            let said = [Low, Medium, High, Max, Off].map(|effort| sent(&thinks, effort));
            assert_eq!(said, expected, "{wire:?} {reasoning:?}");
        }
        for wire in [Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini] {
            for effort in Effort::ALL {
                assert_eq!(sent(&model(wire), effort), nothing, "{wire:?}: the model has none");
            }
            let why = why_unsent(&model(wire)).unwrap();
            let spec = model(wire).spec();
            assert!(why.contains(&format!("[models.\"{spec}\"]")), "{why}");
            let thinks = Model { reasoning: Reasoning::Effort, ..model(wire) };
            assert_eq!(why_unsent(&thinks), None);
        }
        let routed = Model {
            reasoning: Reasoning::Effort,
            provider: "openrouter".into(),
            ..model(Wire::Chat)
        };
        assert_eq!(sent(&routed, Max), label("xhigh"));
    }
}
