//! `:model`: chooses the model, says which one a Pod uses and why, or lists the ways to connect one.

use crate::verb::dialogue::or_end;
use crate::verb::several::{Each, Several, names};
use crate::verb::targets::Target;
use crate::verb::{
    Action, Dialogue, End, Known, Next, Pick, Reply, Request, SCREEN, Safety, Said, Verb, Way, of,
    verb,
};
use clap::Args;
use std::path::{Path, PathBuf};
use yoi::config::model_select::example;
use yoi::protocol::reply::FoundModel;
use yoi::protocol::{Event, Method, PodInfo, PodName, State};
use yoi::text::SafeText;

pub static VERB: Verb = of::<Model>(Verb {
    safety: Safety::Confirms,
    more: &[
        "The choice takes effect with the next request, also in a run that is under way. A run that waits for its \
         provider asks the new model at once.",
        "If no Pod is selected, the choice is for new Pods. In a shell, set `model` in config.toml for new Pods.",
        "If no model is connected, :model alone lists the ways to connect one: a key in the environment, :connect, \
         Ollama or LM Studio on this machine, or a provider in config.toml.",
        "After the model you can name the Pods that are to use it, or a selector such as @idle or alice/**. \
         Several Pods are listed before anything changes. :help stop lists the selectors.",
    ],
    ..verb("model", "choose the model, or show which one is used and why")
});

#[derive(Args)]
struct Model {
    /// provider/model, provider/ or rehearsal:<script>
    #[arg(value_name = "MODEL")]
    model: Option<String>,
    /// The Pods; without any, the selected one
    #[arg(value_name = "POD")]
    pods: Vec<Target>,
    #[arg(skip)]
    several: Several,
    /// The path of the settings, once the ways to connect a model are listed.
    #[arg(skip)]
    config: PathBuf,
}

/// A way to connect a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connect {
    Stored,
    Environment,
    ThisMachine,
    Other,
    /// To see the program without a model.
    Tour,
}

impl Connect {
    const ALL: [Self; 5] =
        [Self::Stored, Self::Environment, Self::ThisMachine, Self::Other, Self::Tour];

    /// The row of the list: what it is, and what it does.
    fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::Stored => (":connect", "asks for a provider and its key, tests the key"),
            Self::Environment => ("ANTHROPIC_API_KEY", "start yoi where a key is set"),
            Self::ThisMachine => ("Ollama, LM Studio", "start one: yoi finds it and asks once"),
            Self::Other => (":model <provider>/<name>", "any other server, by config.toml"),
            Self::Tour => (":tour", "without a model: plays five scenes"),
        }
    }

    /// What choosing the row does.
    fn chosen(self, config: &Path) -> End {
        match self {
            Self::Stored => End::act(Action::Prefill("connect".into())),
            Self::Environment => End::shown(
                "set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY in a shell and \
                 start `yoi` there; nothing has to be stopped first",
            ),
            Self::ThisMachine => {
                End::shown("start Ollama or LM Studio with a model; your next message finds it")
            }
            Self::Other => {
                let lines = example("mine", config);
                let then =
                    "then type :model mine/<name> to use it for the Pod on the screen".to_owned();
                let all =
                    "or write model = \"mine/<name>\" at the top of that file, for every new Pod";
                let lines = lines.lines().map(str::to_owned).chain([then, all.to_owned()]);
                let lines = lines.map(|line| ("", line).into()).collect();
                let said = Said::Text { title: "a server of your own".into(), lines };
                End { said, ..End::default() }
            }
            Self::Tour => End::act(Action::Tour),
        }
    }
}

impl Dialogue for Model {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        match last {
            None => self.begin(known),
            Some(Reply::Picked(at)) => Next::End(
                Connect::ALL.get(at).map_or_else(End::default, |way| way.chosen(&self.config)),
            ),
            Some(reply) if self.several.has_begun() => self.of_pods(known, Some(reply)),
            Some(reply) => or_end(reply.single().map(|event| self.answered(known, event))),
        }
    }
}

impl Model {
    fn begin(&mut self, known: &Known<'_>) -> Next {
        let selected = known.selected.and_then(|name| known.family.get(name));
        match (&self.model, selected) {
            (Some(_), info) if info.is_some() || !self.pods.is_empty() => self.of_pods(known, None),
            (None, Some(info)) if !info.model.is_empty() => {
                let which = format!("{} uses {}: {}", info.name, info.model, info.model_why);
                Next::End(End::answer(which))
            }
            _ => Next::call(Request::host(Method::FindModel {
                cwd: known.cwd.to_owned(),
                model: self.model.clone().or_else(|| known.model.map(str::to_owned)),
                env: known.env.clone(),
            })),
        }
    }

    /// The next step for Pods that are to use the model.
    fn of_pods(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let each = EachPod(self.model.clone().unwrap_or_default());
        self.several.next(known, last, &self.pods, &each)
    }

    fn answered(&mut self, known: &Known<'_>, event: Event) -> Next {
        let Event::ModelFound { model, config, mistakes, .. } = event else {
            return Next::End(End::default());
        };
        self.config = config;
        let said = match (model, &self.model) {
            (Some(found), Some(_)) if known.way == Way::Shell => {
                return Next::End(known.not_for_new_pods("model", &found.model, &self.config));
            }
            (Some(found), Some(asked)) => {
                let end = End::done(format!("new Pods use {}", found.model));
                return Next::End(end.and(Action::ModelOfNewPods(asked.clone())));
            }
            (Some(found), None) => which(known, &found),
            (None, _) => {
                let mut rows: Vec<(String, String)> =
                    mistakes.into_iter().map(|mistake| (mistake, String::new())).collect();
                let row = |way: Connect| match way {
                    Connect::Tour if !screen(known) => None,
                    Connect::Stored if !screen(known) => {
                        Some(("yoi connect anthropic".to_owned(), way.row().1.to_owned()))
                    }
                    _ => Some((way.row().0.to_owned(), way.row().1.to_owned())),
                };
                // The ways come first: the row that is chosen is counted among them.
                rows.splice(0..0, Connect::ALL.into_iter().filter_map(row));
                let title = "no model is connected: ways to connect one".into();
                return Next::Pick(Pick { title, about: None, rows });
            }
        };
        Next::End(End::answer(said))
    }
}

/// With the model as it was typed.
struct EachPod(String);

impl Each for EachPod {
    fn method(&self) -> Method {
        Method::SetModel { model: self.0.clone() }
    }

    fn fits(&self, info: &PodInfo) -> bool {
        !info.state.is_at_rest()
    }

    fn needs_fit(&self) -> bool {
        false
    }

    fn question(&self, pods: &str) -> String {
        format!("use {} for {pods}?", SafeText::line(&self.0))
    }

    fn enter(&self) -> &'static str {
        "use it"
    }

    fn said(&self, known: &Known<'_>, done: &[(PodName, Event)]) -> String {
        let found = done.iter().find_map(|(_, event)| match event {
            Event::ModelFound { model: Some(found), .. } => Some(&found.model),
            _ => None,
        });
        let model = found.unwrap_or(&self.0);
        let runs = |pod| known.family.get(pod).is_some_and(|info| info.state == State::Running);
        let some_run = done.iter().any(|(pod, _)| runs(pod));
        let (use_it, from) = match done.len() {
            1 => ("uses", " from its next request on"),
            _ => ("use", " from their next requests on"),
        };
        format!("{} {use_it} {model}{}", names(done), if some_run { from } else { "" })
    }
}

fn screen(known: &Known<'_>) -> bool {
    SCREEN.contains(&known.way)
}

fn which(known: &Known<'_>, found: &FoundModel) -> String {
    let FoundModel { model, why, sends, .. } = found;
    let users = match known.selected {
        Some(pod) => format!("the next message of {pod} uses"),
        None => "new Pods use".into(),
    };
    let consent =
        sends.as_ref().map(|sends| format!("; it {sends}: yoi asks before the first message"));
    format!("{users} {model}: {why}{}", consent.unwrap_or_default())
}
