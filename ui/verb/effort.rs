//! `:effort`: chooses how much the model of a Pod thinks, or says how much that is.

use crate::verb::dialogue::or_end;
use crate::verb::several::{Each, Several};
use crate::verb::targets::{Target, list};
use crate::verb::{
    Action, Dialogue, End, Known, Next, Reply, Request, Safety, Verb, Way, of, verb,
};
use crate::wording::model::{as_sent, unsent};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use yoi::protocol::{Effort, Event, Method, PodInfo, PodName};

pub static VERB: Verb = of::<ChooseEffort>(Verb {
    safety: Safety::Confirms,
    more: &[
        "The choice takes effect with the next request, also in a run that is under way. yoi sends none to a \
         model that has no such setting.",
        "If no Pod is selected, the choice is for new Pods. In a shell, set `effort` in config.toml for new Pods.",
        "The APIs of OpenAI get xhigh for max and none for off; Gemini gets high for max and low for off. Models that \
         take a number of tokens get 2048 to 24576; off sends them none, Gemini 128.",
        "default goes back to what `effort` in config.toml says. If that says nothing, yoi sends no effort, and the \
         provider's default for the model applies.",
        "After the effort you can name the Pods that are to use it, or a selector such as @idle or alice/**. \
         Several Pods are listed before anything changes. :help stop lists the selectors.",
    ],
    ..verb("effort", "choose how much the model thinks, or show what is chosen")
});

/// The word for the effort that the settings name.
const DEFAULT: &str = "default";

#[derive(Args)]
struct ChooseEffort {
    /// low, medium, high, max, off or default
    #[arg(value_name = "EFFORT", value_parser = PossibleValuesParser::new(words()))]
    effort: Option<String>,
    /// The Pods; without any, the selected one
    #[arg(value_name = "POD")]
    pods: Vec<Target>,
    /// The effort of each Pod before the choice.
    #[arg(skip)]
    former: Vec<(PodName, Option<Effort>)>,
    #[arg(skip)]
    several: Several,
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
            None => or_end(self.begin(known)),
            Some(reply) if self.several.has_begun() => self.of_pods(known, Some(reply)),
            Some(reply) => {
                or_end(reply.single().map(|event| Next::End(self.of_new_pods(known, event))))
            }
        }
    }
}

impl ChooseEffort {
    fn begin(&mut self, known: &Known<'_>) -> Result<Next, End> {
        match (&self.effort, known.selected) {
            (Some(_), selected) if selected.is_some() || !self.pods.is_empty() => {
                let all = known.family.all().iter();
                self.former = all.map(|info| (info.name.clone(), info.effort)).collect();
                Ok(self.of_pods(known, None))
            }
            (None, Some(name)) => {
                let info = known.find(name)?;
                let said = format!("{name}: {}{}", in_words(info.effort), as_sent(info));
                Ok(Next::End(End::answer(said)))
            }
            _ => Ok(Next::call(Request::host(Method::FindModel {
                cwd: known.cwd.to_owned(),
                model: known.model.map(str::to_owned),
                env: known.env.clone(),
            }))),
        }
    }

    /// The next step for Pods that are to use the effort.
    fn of_pods(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let word = self.effort.as_deref().unwrap_or_default();
        let each = EachPod { word, former: &self.former };
        self.several.next(known, last, &self.pods, &each)
    }

    /// Chooses the effort of new Pods, or says which one that is.
    fn of_new_pods(&self, known: &Known<'_>, event: Event) -> End {
        let Event::ModelFound { model, effort: settings, config, .. } = event else {
            return End::default();
        };
        // Why no request to their model carries one.
        let why = model.and_then(|found| found.effort_unsent);
        let said = |effort: Option<Effort>| {
            let why = why.as_deref().filter(|_| effort.is_some());
            format!("new Pods: {}{}", in_words(effort), unsent(why))
        };
        match &self.effort {
            None => End::answer(said(known.effort.or(settings))),
            Some(word) if known.way == Way::Shell => {
                known.not_for_new_pods("effort", word, &config)
            }
            Some(word) => {
                let chosen = of_word(word);
                End::done(said(chosen.or(settings))).and(Action::EffortOfNewPods(chosen))
            }
        }
    }
}

struct EachPod<'a> {
    /// As it was typed.
    word: &'a str,
    /// The effort of each Pod before.
    former: &'a [(PodName, Option<Effort>)],
}

impl EachPod<'_> {
    /// The sentence about one Pod, without its name.
    fn sentence(&self, known: &Known<'_>, pod: &PodName, event: &Event) -> String {
        let word = self.word;
        let Event::ModelFound { model, effort: settings, .. } = event else { return String::new() };
        let why = model.as_ref().and_then(|found| found.effort_unsent.as_deref());
        if let Some(why) = why.filter(|_| of_word(word).or(*settings).is_some()) {
            return format!("effort {word}{}", unsent(Some(why)));
        }
        // Anthropic reads a cached prompt only for a request with the same effort.
        let now = of_word(word).or(*settings);
        let is_same = self.former.iter().any(|(name, former)| name == pod && *former == now);
        let is_cached = !is_same
            && known
                .find(pod)
                .is_ok_and(|info| info.context_tokens > 0 && info.model.starts_with("anthropic/"));
        let cost =
            if is_cached { "; that request reads nothing from the prompt cache" } else { "" };
        format!("effort {word} from the next request on{cost}")
    }
}

impl Each for EachPod<'_> {
    fn method(&self) -> Method {
        Method::SetEffort { effort: of_word(self.word) }
    }

    fn fits(&self, info: &PodInfo) -> bool {
        !info.state.is_at_rest()
    }

    fn needs_fit(&self) -> bool {
        false
    }

    fn question(&self, pods: &str) -> String {
        format!("effort {} for {pods}?", self.word)
    }

    fn enter(&self) -> &'static str {
        "choose it"
    }

    fn said(&self, known: &Known<'_>, done: &[(PodName, Event)]) -> String {
        let mut sentences: Vec<(String, Vec<PodName>)> = Vec::new();
        for (pod, event) in done {
            let sentence = self.sentence(known, pod, event);
            match sentences.iter_mut().find(|(other, _)| *other == sentence) {
                Some((_, pods)) => pods.push(pod.clone()),
                None => sentences.push((sentence, vec![pod.clone()])),
            }
        }
        let of_pods =
            |(sentence, pods): (String, Vec<PodName>)| format!("{}: {sentence}", list(&pods));
        sentences.into_iter().map(of_pods).collect::<Vec<_>>().join(" · ")
    }
}

fn in_words(effort: Option<Effort>) -> String {
    match effort {
        Some(effort) => format!("effort {}", effort.name()),
        None => "the provider's default effort for the model".to_owned(),
    }
}
