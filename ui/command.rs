//! Every verb in one table: action bar, palette, completion, help and `--no-ui` read the same rows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use yoi::protocol::{EntryId, Method, PodName};
use yoi::scope::{Permission, Rule};

mod about;
pub mod complete;
pub mod done;
mod read;

pub use about::about;
pub use done::{done, done_all, peer_needs};
pub use read::{complete_verb, naming, offered, read_all};

/// What an argument names, for completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    Nothing,
    Pod,
    /// One Pod or several.
    Pods,
    /// A Pod, then free text.
    PodThenText,
    /// A new name, then options.
    NewPod,
    Model,
    Theme,
    Verb,
    /// A file or directory.
    Path,
    /// Two Pods, then a file or directory.
    Lending,
    /// `revoke` and a number.
    Policy,
    /// A digit, then a Pod.
    Slot,
}

/// Whether a verb is about one Pod or also about everything below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Breadth {
    #[default]
    One,
    Tree,
}

/// Whether something is done or only shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    #[default]
    Do,
    Show,
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
    row("new", "[name] [--cwd dir] [--model m] [--profile p]", "create a Pod and go to it", Argument::NewPod, Needs::Nothing),
    row("open", "<pod>", "go to a Pod", Argument::Pod, Needs::Argument),
    row("send", "<pod> <text>", "send a message to a Pod", Argument::PodThenText, Needs::Argument),
    row("stop", "[pod …] [--tree]", "stop Pods, or everything below them too; :restore brings them back", Argument::Pods, Needs::Nothing),
    row("restore", "[pod …] [--plan] [--tree]", "bring stopped Pods back; nothing is run or sent again", Argument::Pods, Needs::Nothing),
    row("peer", "<pod>", "make the selected Pod and another one peers of each other", Argument::Pod, Needs::Argument),
    row("unpeer", "<pod>", "end what :peer began", Argument::Pod, Needs::Argument),
    row("pause", "[pod …]", "interrupt the turn so that it can go on", Argument::Pods, Needs::Nothing),
    row("resume", "[pod …]", "go on with a paused turn", Argument::Pods, Needs::Nothing),
    row("cancel", "[pod …]", "drop the turn", Argument::Pods, Needs::Nothing),
    row("compact", "[pod …]", "shorten the history now; :rewind undoes it", Argument::Pods, Needs::Nothing),
    row("rewind", "[turn]", "go back to before one of your messages", Argument::Nothing, Needs::Nothing),
    row("fork", "[name] [--at entry]", "make a new Pod with the history of the selected one", Argument::NewPod, Needs::Nothing),
    row("inbox", "", "go to what waits for you", Argument::Nothing, Needs::Nothing),
    row("explain", "[pod]", "say why a Pod is in its state, what it waits for, and its scope", Argument::Pod, Needs::Nothing),
    row("lend", "<from> <to> <path> [--read]", "lend a part of a Pod's scope to another Pod", Argument::Lending, Needs::Argument),
    row("reclaim", "<path>", "take back what was lent there", Argument::Path, Needs::Argument),
    row("who", "<path>", "say which Pods may read or write a path", Argument::Path, Needs::Argument),
    row("policy", "[revoke <n>]", "list the rules of what Pods may do, or end one", Argument::Policy, Needs::Nothing),
    row("model", "[provider/model]", "choose the model, or say which and why", Argument::Model, Needs::Nothing),
    row("theme", "<name>", "choose the colours", Argument::Theme, Needs::Argument),
    row("rm", "<pod …>", "delete stopped Pods and their transcripts (asks)", Argument::Pods, Needs::Argument),
    row("pin", "[1-9] [pod]", "keep a Pod under a digit, or say which are; again ends it", Argument::Slot, Needs::Nothing),
    row("split", "[pod]", "show another Pod's transcript beside the current one; again: one", Argument::Pod, Needs::Nothing),
    row("zoom", "", "show the transcripts alone on the whole width; again: all", Argument::Nothing, Needs::Nothing),
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
        profile: Option<String>,
    },
    Open(PodName),
    Send {
        pod: PodName,
        text: String,
    },
    Stop {
        pod: Option<PodName>,
        breadth: Breadth,
    },
    Restore {
        pod: Option<PodName>,
        breadth: Breadth,
        step: Step,
    },
    /// The other Pod is free text: it may not exist, and then the host says so.
    Peer(String),
    Unpeer(String),
    Fork {
        name: Option<PodName>,
        at: Option<EntryId>,
    },
    Inbox,
    Explain(Option<PodName>),
    Lend {
        from: PodName,
        to: PodName,
        path: PathBuf,
        permission: Permission,
    },
    Reclaim(PathBuf),
    Who(PathBuf),
    /// Lists the rules, or ends one.
    Policy(Option<u64>),
    Pause(Option<PodName>),
    Resume(Option<PodName>),
    Cancel(Option<PodName>),
    Compact(Option<PodName>),
    /// Lists where one can go back to, or goes back to before that turn.
    Rewind(Option<usize>),
    Model(Option<String>),
    Theme(String),
    Remove(PodName),
    /// Keeps a Pod under a digit from 1 to 9; without a digit it says what is pinned.
    Pin {
        slot: Option<u8>,
        pod: Option<PodName>,
    },
    /// Another Pod's transcript beside the current one, or one again.
    Split(Option<PodName>),
    Zoom,
    Notices,
    Tour,
    Redraw,
    Keys,
    Help(Option<String>),
    Quit,
}

impl Verb {
    /// The Pod it names.
    pub fn pod(&self) -> Option<&PodName> {
        match self {
            Self::Stop { pod, .. } | Self::Restore { pod, .. } | Self::Pin { pod, .. } => {
                pod.as_ref()
            }
            Self::Explain(pod)
            | Self::Split(pod)
            | Self::Pause(pod)
            | Self::Resume(pod)
            | Self::Cancel(pod)
            | Self::Compact(pod) => pod.as_ref(),
            Self::Open(pod) | Self::Send { pod, .. } | Self::Remove(pod) => Some(pod),
            Self::New { .. }
            | Self::Peer(_)
            | Self::Unpeer(_)
            | Self::Fork { .. }
            | Self::Inbox
            | Self::Lend { .. }
            | Self::Reclaim(_)
            | Self::Who(_)
            | Self::Policy(_)
            | Self::Rewind(_)
            | Self::Model(_)
            | Self::Theme(_)
            | Self::Zoom
            | Self::Notices
            | Self::Tour
            | Self::Redraw
            | Self::Keys
            | Self::Help(_)
            | Self::Quit => None,
        }
    }
}

/// Where a line is typed: what its verbs mean without an argument.
#[derive(Clone, Copy, Debug)]
pub struct Defaults<'a> {
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
pub fn call(verb: &Verb, here: Defaults<'_>) -> Result<Call, String> {
    let to = |pod: &Option<PodName>, method: Method| {
        let pod = pod.as_ref().or(here.current).cloned();
        let pod = pod.ok_or("no Pod is selected: name one, or :open it first")?;
        Ok(Call::Host { pod: Some(pod), method })
    };
    let host = |method: Method| Ok(Call::Host { pod: None, method });
    match verb {
        Verb::New { .. } => Ok(Call::Host { pod: None, method: create(verb, here) }),
        Verb::Send { pod, text } => to(&Some(pod.clone()), message(text)),
        Verb::Stop { pod, breadth } => {
            to(pod, Method::StopPods { tree: *breadth == Breadth::Tree })
        }
        Verb::Restore { pod, breadth, step } => {
            let (tree, plan) = (*breadth == Breadth::Tree, *step == Step::Show);
            to(pod, Method::RestorePods { tree, plan })
        }
        Verb::Peer(name) => to(&None, Method::Peer { name: name.clone() }),
        Verb::Unpeer(name) => to(&None, Method::Unpeer { name: name.clone() }),
        Verb::Fork { name, at } => to(&None, Method::Fork { name: name.clone(), at: *at }),
        Verb::Lend { from, to: borrower, path, permission } => {
            let rule = Rule::new(here.cwd.join(path), *permission);
            to(&Some(from.clone()), Method::Lend { to: borrower.to_string(), rule })
        }
        Verb::Reclaim(path) => to(&None, Method::Reclaim { path: here.cwd.join(path) }),
        Verb::Who(path) => host(Method::Who { path: here.cwd.join(path) }),
        Verb::Policy(None) => host(Method::ListPolicy),
        Verb::Policy(Some(rule)) => host(Method::Revoke { rule: *rule }),
        Verb::Pause(pod) => to(pod, Method::Pause),
        Verb::Resume(pod) => to(pod, Method::Resume),
        Verb::Cancel(pod) => to(pod, Method::Cancel),
        Verb::Compact(pod) => to(pod, Method::Compact),
        Verb::Rewind(_) => to(&None, Method::ListRewindTargets),
        Verb::Model(Some(model)) => to(&None, Method::SetModel { model: model.clone() }),
        Verb::Remove(pod) => to(&Some(pod.clone()), Method::Remove),
        Verb::Open(_)
        | Verb::Model(None)
        | Verb::Inbox
        | Verb::Explain(_)
        | Verb::Theme(_)
        | Verb::Pin { .. }
        | Verb::Split(_)
        | Verb::Zoom
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

fn create(verb: &Verb, here: Defaults<'_>) -> Method {
    let mut new = yoi::protocol::method::NewPod {
        cwd: here.cwd.to_owned(),
        model: here.model.map(str::to_owned),
        env: here.env.clone(),
        ..Default::default()
    };
    if let Verb::New { name, cwd, model, profile } = verb {
        new.name.clone_from(name);
        new.profile.clone_from(profile);
        new.cwd = cwd.as_ref().map_or(new.cwd, |dir| here.cwd.join(dir));
        new.model = model.clone().or(new.model);
    }
    Method::New(new)
}

#[cfg(test)]
mod tests;
