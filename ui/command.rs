//! Every verb in one table: action bar, palette, completion, help and `--no-ui` read the same rows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use yoi::protocol::{Event, Method, PodName};

pub mod complete;
mod read;

pub use read::{complete_verb, offered, read};

/// What an argument names, for completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    Nothing,
    Pod,
    /// A Pod, then free text.
    PodThenText,
    /// A new name, then options.
    NewPod,
    Model,
    Theme,
    Verb,
}

/// Whether a verb can be typed without its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    Argument,
}

/// One verb.
#[derive(Debug)]
pub struct Row {
    pub name: &'static str,
    /// Its arguments, as help writes them.
    pub usage: &'static str,
    /// One sentence.
    pub help: &'static str,
    pub argument: Argument,
    pub needs: Needs,
}

const fn row(
    name: &'static str,
    usage: &'static str,
    help: &'static str,
    argument: Argument,
    needs: Needs,
) -> Row {
    Row { name, usage, help, argument, needs }
}

/// All verbs, in the order of help.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    row("new", "[name] [--cwd dir] [--model m]", "create a Pod and go to it", Argument::NewPod, Needs::Nothing),
    row("open", "<pod>", "go to a Pod", Argument::Pod, Needs::Argument),
    row("send", "<pod> <text>", "send a message to a Pod", Argument::PodThenText, Needs::Argument),
    row("stop", "[pod]", "stop a Pod; :restore brings it back", Argument::Pod, Needs::Nothing),
    row("restore", "[pod]", "bring a stopped Pod back; nothing is run or sent again", Argument::Pod, Needs::Nothing),
    row("pause", "[pod]", "interrupt the turn so that it can go on", Argument::Pod, Needs::Nothing),
    row("resume", "[pod]", "go on with a paused turn", Argument::Pod, Needs::Nothing),
    row("cancel", "[pod]", "drop the turn", Argument::Pod, Needs::Nothing),
    row("compact", "[pod]", "shorten the history now; :rewind undoes it", Argument::Pod, Needs::Nothing),
    row("rewind", "[turn]", "go back to before one of your messages", Argument::Nothing, Needs::Nothing),
    row("model", "[provider/model]", "choose the model, or say which and why", Argument::Model, Needs::Nothing),
    row("theme", "<name>", "choose the colours", Argument::Theme, Needs::Argument),
    row("rm", "<pod>", "delete a stopped Pod and its transcript (asks)", Argument::Pod, Needs::Argument),
    row("notices", "", "list past notices", Argument::Nothing, Needs::Nothing),
    row("tour", "", "play a small real story in a temporary directory", Argument::Nothing, Needs::Nothing),
    row("redraw", "", "paint the screen anew", Argument::Nothing, Needs::Nothing),
    row("keys", "", "list the keys", Argument::Nothing, Needs::Nothing),
    row("help", "[verb]", "explain the verbs, or one of them", Argument::Verb, Needs::Nothing),
    row("quit", "", "leave the screen; Pods go on", Argument::Nothing, Needs::Nothing),
];

/// The row of a verb.
pub fn find(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}

/// A line that was understood. `None` as a Pod means the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    New {
        name: Option<PodName>,
        cwd: Option<PathBuf>,
        model: Option<String>,
    },
    Open(PodName),
    Send {
        pod: PodName,
        text: String,
    },
    Stop(Option<PodName>),
    Restore(Option<PodName>),
    Pause(Option<PodName>),
    Resume(Option<PodName>),
    Cancel(Option<PodName>),
    Compact(Option<PodName>),
    /// Lists where one can go back to, or goes back to before that turn.
    Rewind(Option<usize>),
    Model(Option<String>),
    Theme(String),
    Remove(PodName),
    Notices,
    Tour,
    Redraw,
    Keys,
    Help(Option<String>),
    Quit,
}

/// Where a line is typed: what its verbs mean without an argument.
#[derive(Clone, Copy, Debug)]
pub struct Here<'a> {
    pub current: Option<&'a PodName>,
    /// Absolute; the working directory of a new Pod.
    pub cwd: &'a Path,
    /// The model of a new Pod, when a person chose one.
    pub model: Option<&'a str>,
    /// What a new Pod's commands inherit.
    pub env: &'a BTreeMap<String, String>,
}

/// What a verb asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// One call to the host; `pod` is whom it concerns.
    Host { pod: Option<PodName>, method: Method },
    /// Nothing of the host's: it is done where it was typed.
    Local,
}

/// The call a verb makes, or the sentence that says why it cannot.
pub fn call(verb: &Verb, here: Here<'_>) -> Result<Call, String> {
    let to = |pod: &Option<PodName>, method: Method| {
        let pod = pod.as_ref().or(here.current).cloned();
        let pod = pod.ok_or("no Pod is selected: name one, or :open it first")?;
        Ok(Call::Host { pod: Some(pod), method })
    };
    match verb {
        Verb::New { name, cwd, model } => {
            Ok(Call::Host { pod: None, method: create(name, cwd, model, here) })
        }
        Verb::Send { pod, text } => to(&Some(pod.clone()), message(text)),
        Verb::Stop(pod) => to(pod, Method::Stop),
        Verb::Restore(pod) => {
            let name = pod.as_ref().or(here.current);
            let name = name.ok_or("which Pod? :restore <pod>")?.to_string();
            Ok(Call::Host { pod: None, method: Method::Restore { name } })
        }
        Verb::Pause(pod) => to(pod, Method::Pause),
        Verb::Resume(pod) => to(pod, Method::Resume),
        Verb::Cancel(pod) => to(pod, Method::Cancel),
        Verb::Compact(pod) => to(pod, Method::Compact),
        Verb::Rewind(_) => to(&None, Method::ListRewindTargets),
        Verb::Model(Some(model)) => to(&None, Method::SetModel { model: model.clone() }),
        Verb::Remove(pod) => to(&Some(pod.clone()), Method::Remove),
        Verb::Open(_)
        | Verb::Model(None)
        | Verb::Theme(_)
        | Verb::Notices
        | Verb::Tour
        | Verb::Redraw
        | Verb::Keys
        | Verb::Help(_)
        | Verb::Quit => Ok(Call::Local),
    }
}

/// A message that waits in the queue when the Pod is busy.
fn message(text: &str) -> Method {
    let input = vec![yoi::protocol::Segment::Text { content: text.to_owned() }];
    Method::Send { input, queue: true }
}

fn create(
    name: &Option<PodName>,
    cwd: &Option<PathBuf>,
    model: &Option<String>,
    here: Here<'_>,
) -> Method {
    Method::New(yoi::protocol::method::NewPod {
        name: name.clone(),
        cwd: cwd.as_ref().map_or_else(|| here.cwd.to_owned(), |dir| here.cwd.join(dir)),
        model: model.clone().or_else(|| here.model.map(str::to_owned)),
        env: here.env.clone(),
        ..Default::default()
    })
}

/// The sentence for a verb that was carried out on `pod`.
pub fn done(verb: &Verb, pod: Option<&PodName>, reply: &Event) -> String {
    let pod = pod.map_or("the Pod", PodName::as_str);
    match (verb, reply) {
        (Verb::New { .. }, Event::Created { info }) => format!("{} is ready", info.name),
        (Verb::Send { .. }, Event::Accepted { queued: Some(_), .. }) => {
            format!("queued for {pod}: it is sent when the turn ends")
        }
        (Verb::Send { .. }, _) => format!("sent to {pod}"),
        (Verb::Stop(_), _) => format!("stopped {pod} · :restore {pod} brings it back"),
        (Verb::Restore(name), Event::PodRestored { .. }) => {
            format!(
                "{} is back; nothing was run or sent again",
                name.as_ref().map_or(pod, |n| n.as_str())
            )
        }
        (Verb::Pause(_), _) => format!("paused {pod} · Enter goes on · :cancel drops the turn"),
        (Verb::Resume(_), _) => format!("{pod} goes on"),
        (Verb::Cancel(_), _) => format!("dropped the turn of {pod}"),
        (Verb::Compact(_), _) => format!("compacting the history of {pod}"),
        (Verb::Model(Some(model)), _) => format!("{pod} uses {model}"),
        (Verb::Remove(_), _) => format!("deleted {pod}"),
        (Verb::Rewind(_), _) => format!("rewound {pod}"),
        _ => "done".into(),
    }
}

#[cfg(test)]
mod tests;
