//! `:model`: chooses the model, or says which one a Pod uses and why.

use crate::verb::dialogue::or_end;
use crate::verb::{Action, Dialogue, End, Known, Next, Reply, Request, Verb, of, verb};
use clap::Args;
use yoi::protocol::{Method, PodName};

pub static VERB: Verb = of::<Model>(Verb {
    more: &["Without a Pod it is about the model of new Pods."],
    ..verb("model", "choose the model, or say which and why")
});

#[derive(Args)]
struct Model {
    /// provider/model, provider/ or rehearsal:<script>
    #[arg(value_name = "MODEL")]
    model: Option<String>,
    #[arg(skip)]
    pod: Option<PodName>,
}

impl Dialogue for Model {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let Some(model) = &self.model else { return Next::End(End::answer(which(known))) };
        let Some(reply) = last else {
            let Some(pod) = known.selected.cloned() else {
                let said = End::done(format!("new Pods use {model}"));
                return Next::End(said.and(Action::ModelOfNewPods(model.clone())));
            };
            self.pod = Some(pod.clone());
            return Next::call(Request::to(pod, Method::SetModel { model: model.clone() }));
        };
        let pod = self.pod.as_ref().map_or("the Pod", PodName::as_str);
        let said = format!("{pod} uses {model}");
        or_end(reply.single().map(|_| Next::End(End::done(said))))
    }
}

fn which(known: &Known<'_>) -> String {
    match known.selected.and_then(|name| known.family.get(name)) {
        Some(info) if info.model.is_empty() => format!("{} has no model", info.name),
        Some(info) => format!("{} uses {}: {}", info.name, info.model, info.model_why),
        None => match known.model {
            Some(model) => format!("new Pods use {model}"),
            None => "new Pods use what the configuration and the keys here offer".into(),
        },
    }
}
