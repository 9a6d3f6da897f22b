//! `:effort`: chooses how much the model of a Pod thinks, or says how much that is.

use crate::verb::dialogue::or_end;
use crate::verb::{Action, Dialogue, End, Known, Next, Reply, Request, Verb, Way, of, verb};
use crate::wording::model::{as_sent, unsent};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use std::path::Path;
use yoi::protocol::{Effort, Event, Method, PodName};

pub static VERB: Verb = of::<ChooseEffort>(Verb {
    more: &[
        "Without a Pod it is about new Pods; in a shell, write `effort` into config.toml for those.",
        "It counts from the next request on, also in a run under way; a model that has no such setting is not told.",
        "max is sent as xhigh and off as none to the APIs of OpenAI, as high and low to Gemini.",
        "default is what `effort` in config.toml says. Where that says nothing, no request names an effort, and the \
         provider's own default for the model counts.",
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
            Some(reply) => {
                or_end(reply.single().map(|event| Next::End(self.answered(known, event))))
            }
        }
    }
}

impl ChooseEffort {
    fn begin(&mut self, known: &Known<'_>) -> Result<Next, End> {
        let Some(name) = known.selected.cloned() else {
            return Ok(Next::call(Request::host(Method::FindModel {
                cwd: known.cwd.to_owned(),
                model: known.model.map(str::to_owned),
                env: known.env.clone(),
            })));
        };
        let Some(word) = &self.effort else {
            let info = known.find(&name)?;
            let said = format!("{name}: {}{}", in_words(info.effort), as_sent(info));
            return Ok(Next::End(End::answer(said)));
        };
        self.pod = Some(name.clone());
        let method = Method::SetEffort { effort: of_word(word) };
        Ok(Next::call(Request::to(name, method)))
    }

    fn answered(&self, known: &Known<'_>, event: Event) -> End {
        let Event::ModelFound { model, effort: settings, config, .. } = event else {
            return End::default();
        };
        let why = model.and_then(|found| found.effort_unsent);
        let Some(pod) = &self.pod else {
            return self.of_new_pods(known, settings, why.as_deref(), &config);
        };
        let word = self.effort.as_deref().unwrap_or(DEFAULT);
        if let Some(why) = why.filter(|_| of_word(word).or(settings).is_some()) {
            return End::done(format!("{pod}: effort {word}{}", unsent(Some(&why))));
        }
        // This provider's cache is of requests with one effort.
        let is_cached = known
            .find(pod)
            .is_ok_and(|info| info.context_tokens > 0 && info.model.starts_with("anthropic/"));
        let cost =
            if is_cached { "; that request reads nothing from the prompt cache" } else { "" };
        End::done(format!("{pod}: effort {word} from the next request on{cost}"))
    }

    /// Chooses the effort of new Pods, or says which one that is; `why` no request to their model carries one.
    fn of_new_pods(
        &self,
        known: &Known<'_>,
        settings: Option<Effort>,
        why: Option<&str>,
        config: &Path,
    ) -> End {
        let said = |effort: Option<Effort>| {
            let why = why.filter(|_| effort.is_some());
            format!("new Pods: {}{}", in_words(effort), unsent(why))
        };
        match &self.effort {
            None => End::answer(said(known.effort.or(settings))),
            Some(word) if known.way == Way::Shell => known.not_for_new_pods("effort", word, config),
            Some(word) => {
                let chosen = of_word(word);
                End::done(said(chosen.or(settings))).and(Action::EffortOfNewPods(chosen))
            }
        }
    }
}

fn in_words(effort: Option<Effort>) -> String {
    match effort {
        Some(effort) => format!("effort {}", effort.name()),
        None => "the provider's default effort for the model".to_owned(),
    }
}
