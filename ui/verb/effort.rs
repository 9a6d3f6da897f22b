//! `:effort`: chooses how much the model of a Pod thinks, or says how much that is.

use crate::verb::dialogue::or_end;
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Verb, of, verb};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use yoi::protocol::{Effort, Method, PodInfo, PodName};

pub static VERB: Verb = of::<ChooseEffort>(Verb {
    more: &[
        "It counts from the next request on, also in a run under way; a model that has no such setting is not told.",
        "default is what `effort` in config.toml says, or what the provider of the model does by itself.",
    ],
    ..verb("effort", "choose how much the model thinks, or say how much that is")
});

/// The word for the effort that the settings name.
const DEFAULT: &str = "default";

#[derive(Args)]
struct ChooseEffort {
    /// low, medium, high, max, off or default
    #[arg(value_name = "EFFORT", value_parser = PossibleValuesParser::new(words()))]
    effort: Option<String>,
    #[arg(skip)]
    pod: Option<PodName>,
}

/// What can be typed.
pub fn words() -> Vec<&'static str> {
    Effort::ALL.map(Effort::name).into_iter().chain([DEFAULT]).collect()
}

/// Reads `--effort`.
pub fn parser() -> impl clap::builder::TypedValueParser<Value = Effort> {
    PossibleValuesParser::new(Effort::ALL.map(Effort::name))
        .map(|word| of_word(&word).unwrap_or(Effort::Medium))
}

fn of_word(word: &str) -> Option<Effort> {
    Effort::ALL.into_iter().find(|effort| effort.name() == word)
}

impl Dialogue for ChooseEffort {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        match last {
            None => self.begin(known).unwrap_or_else(Next::End),
            Some(reply) => or_end(reply.single().map(|_| Next::End(self.done(known)))),
        }
    }
}

impl ChooseEffort {
    fn begin(&mut self, known: &Known<'_>) -> Result<Next, End> {
        let name = known.current()?;
        let Some(word) = &self.effort else {
            return Ok(Next::End(End::answer(in_words(known.find(&name)?))));
        };
        self.pod = Some(name.clone());
        let method = Method::SetEffort { effort: of_word(word) };
        Ok(Next::call(Request::to(name, method)))
    }

    fn done(&self, known: &Known<'_>) -> End {
        let (Some(pod), Some(effort)) = (&self.pod, &self.effort) else { return End::default() };
        // This provider's cache is of requests with one effort.
        let is_cached = known.find(pod).is_ok_and(|info| info.model.starts_with("anthropic/"));
        let cost =
            if is_cached { "; that request reads nothing from the prompt cache" } else { "" };
        End::done(format!("{pod}: effort {effort} from the next request on{cost}"))
    }
}

fn in_words(info: &PodInfo) -> String {
    match info.effort {
        Some(effort) => format!("{}: effort {}", info.name, effort.name()),
        None => format!("{}: as much effort as the provider of its model chooses", info.name),
    }
}
