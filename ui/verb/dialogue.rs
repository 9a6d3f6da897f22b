//! How a verb is carried out: a dialogue without I/O. A front end asks for the next step, does it, and hands
//! the reply back, until the dialogue ends.

use crate::verb::numbers::Numbers;
use crate::verb::several::for_person;
use crate::verb::targets::{Target, one};
use crate::verb::{Way, WithKeys, find, spell};
use crate::wording::lines::Line;
use crate::wording::since::{Absence, Report, Since};
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use std::path::Path;
use yoi::client::family::Family;
use yoi::config::model_of_new_pods;
use yoi::config::{Keys, Secret};
use yoi::llm::trial::{self, Tried};
use yoi::protocol::{Effort, Event, Method, PodInfo, PodName, Refusal, State};

/// A verb that is being carried out.
pub trait Dialogue {
    /// The next step. `last` is the reply to the step before; the first step has none.
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next;

    /// What it asks before it acts, as things stand now. Where that differs from what was asked, the person is asked again.
    fn confirmation_now(&self, _known: &Known<'_>) -> Option<Confirm> {
        None
    }
}

/// Names a dialogue. A screen gives no name twice: what comes late is not taken for an answer to another dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VerbId(u64);

impl VerbId {
    /// The name that follows the last one given.
    pub fn after(last: Option<Self>) -> Self {
        Self(last.map_or(0, |last| last.0 + 1))
    }
}

/// What the front end does next.
#[derive(Debug)]
pub enum Next {
    /// Sends these requests; their results come back together, in this order.
    Call(Vec<Request>),
    /// Asks the person. A dialogue that is not confirmed is dropped.
    Confirm(Confirm),
    /// Lets the person choose; without a screen the rows are printed, and that is all.
    Pick(Pick),
    /// Reads, tries or stores the key of a provider.
    Key(KeyStep),
    /// Ends the dialogue with this result.
    End(End),
}

/// One request to the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The Pod that it addresses; `None` is the host.
    pub pod: Option<PodName>,
    pub method: Method,
}

/// The reply to a step.
#[derive(Debug)]
pub enum Reply {
    /// One result for each request.
    Results(Vec<Result<Event, Refusal>>),
    Confirmed,
    /// The row that was chosen.
    Picked(usize),
    /// What came of a step with a key.
    Key(KeyReply),
}

/// A step of connecting a provider. Only these steps carry its key: no request and no line does.
#[derive(Debug)]
pub enum KeyStep {
    /// Lets the person type it unseen.
    Type {
        provider: String,
        about: String,
    },
    /// Asks the provider, with this key or with what the environment has.
    Try {
        provider: String,
        key: Option<Secret>,
    },
    Store {
        provider: String,
        key: Secret,
    },
    /// Writes the model of new Pods into the settings, unless they name one.
    Use {
        model: String,
    },
}

/// What came of such a step.
#[derive(Debug)]
pub enum KeyReply {
    Typed(Secret),
    Tried(Tried),
    /// Why it could not be stored.
    Stored(Result<(), String>),
    /// The model that the settings name now, or why they could not be written.
    Used(Result<String, String>),
}

impl KeyStep {
    /// Does a step that needs no person. The settings and the keys are those of the directory `config`.
    pub async fn carry_out(self, config: &Path, env: &BTreeMap<String, String>) -> KeyReply {
        match self {
            Self::Type { .. } => KeyReply::Tried(Tried::NeedsKey),
            Self::Use { model } => {
                let config = config.to_owned();
                let write = move || model_of_new_pods::write(&config, &model);
                let used = tokio::task::spawn_blocking(write).await;
                KeyReply::Used(used.unwrap_or_else(|why| Err(why.to_string())))
            }
            Self::Try { provider, key } => {
                KeyReply::Tried(trial::try_key(config, env, &provider, key.as_ref()).await)
            }
            Self::Store { provider, key } => {
                let keys = Keys::at(config);
                // It waits while another process changes the file.
                let store =
                    move || keys.set(&provider, key.expose()).map_err(|why| why.to_string());
                let stored = tokio::task::spawn_blocking(store).await;
                KeyReply::Stored(stored.unwrap_or_else(|why| Err(why.to_string())))
            }
        }
    }
}

/// A question that the person confirms or leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirm {
    pub question: String,
    /// The Pods without which it is void.
    pub about: Vec<PodName>,
    /// What Enter does.
    pub enter: &'static str,
    pub unasked: Unasked,
}

/// What happens to a confirmation without a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unasked {
    /// A terminal is asked `y/N`; elsewhere it needs `--yes`.
    Asking,
    /// The action is safe: it is done without a confirmation, and its sentence reports all of it.
    Does,
}

/// Rows to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    pub title: String,
    /// The Pod without which it is void.
    pub about: Option<PodName>,
    /// Text and help of each.
    pub rows: Vec<(String, String)>,
}

/// The last step.
#[derive(Debug, Default)]
pub struct End {
    pub said: Said,
    pub action: Option<Action>,
    /// The state of a Pod without which what is said is not true any more.
    pub while_in: Option<(PodName, State)>,
}

/// The sentence or the lines at the end of a verb.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Said {
    #[default]
    Nothing,
    /// It was done.
    Done(String),
    /// Something to know.
    Info(String),
    /// The requested information, as a sentence.
    Answer(String),
    /// The requested information, as lines with labels.
    Text { title: String, lines: Vec<Line> },
    /// What the Pods did: a page of the screen, and its report now for a front end without one.
    Since(Since, Box<Report>),
    /// It was not done.
    Refused(Why, String),
}

/// Why a verb was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The line is wrong.
    Usage,
    /// There is no such Pod.
    NotThere,
    /// It was tried and failed.
    Failed,
}

/// An action that only the front end can do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Makes a Pod the current one.
    GoTo(PodName),
    /// The same with a Pod that was just created.
    Created(Box<PodInfo>),
    /// Writes this line into the command line.
    Prefill(String),
    /// Writes the line of this verb into the command line again, unless the person did something else meanwhile.
    TypeAgain,
    /// The model of Pods that are created from now on.
    ModelOfNewPods(String),
    /// `None` is what the settings name.
    EffortOfNewPods(Option<Effort>),
    Inbox,
    /// Chooses a theme; without a name, from a list.
    Theme(Option<String>),
    /// Chooses a keymap; without a name, from a list.
    Keymap(Option<String>),
    Pin {
        slot: Option<u8>,
        pod: Option<PodName>,
    },
    Split(Option<PodName>),
    Zoom,
    Queue,
    Notices,
    /// Calls the person by the terminal, as a test.
    CallByTerminal,
    Tour,
    Redraw,
    Keys,
    Quit,
}

/// The state of the front end, by which verbs decide.
pub struct Known<'a> {
    pub family: &'a Family,
    /// The Pod that a verb means when it names none.
    pub selected: Option<&'a PodName>,
    /// Whether the Pods of the line are those that are marked: then all are named before anything is done.
    pub pods_are_marked: bool,
    /// The numbers of the approval requests, in a conversation of lines.
    pub numbers: Option<&'a Numbers>,
    /// Absolute; paths are relative to it, and new Pods work there.
    pub cwd: &'a Path,
    /// The workspace that `cwd` belongs to.
    pub workspace: &'a Path,
    /// The model of new Pods, when a person chose one.
    pub model: Option<&'a str>,
    /// The providers that are known by name.
    pub providers: &'a [String],
    /// The effort of new Pods, when a person chose one.
    pub effort: Option<Effort>,
    /// When the person left the screen before this one, and came back; `None` without a screen.
    pub absence: Option<Absence>,
    /// The environment that the commands of a new Pod inherit.
    pub env: &'a BTreeMap<String, String>,
    /// Milliseconds since the Unix epoch.
    pub now: u64,
    pub zone: &'a TimeZone,
    pub way: Way,
    pub with_keys: WithKeys<'a>,
    /// Whether a text is written in the line, so that its key is about that text.
    pub is_written: bool,
}

impl Known<'_> {
    /// The Pod that a verb means: the one it names, else the selected one.
    pub fn target(&self, named: Option<&Target>) -> Result<PodName, End> {
        match (named, self.selected) {
            (Some(target), _) => one(self, target).map(|info| info.name.clone()),
            (None, Some(selected)) => Ok(selected.clone()),
            (None, None) => {
                Err(self.no_pod("name one, or :open it first", "name one, as `yoi ls` lists them"))
            }
        }
    }

    /// The selected Pod, for a verb that names none.
    pub fn current(&self) -> Result<PodName, End> {
        self.selected.cloned().ok_or_else(|| self.no_pod(":open one first", "add --pod <name>"))
    }

    /// A command of the shell ends before a new Pod could get what it chose: the ways to choose it for a Pod, and for
    /// every new one.
    pub fn not_for_new_pods(&self, setting: &str, value: &str, config: &Path) -> End {
        let text = format!(
            "no Pod is selected, so nothing was changed: add --pod <name> to change one Pod; to change every new Pod, write \
             {setting} = {value:?} at the top of {}",
            config.display()
        );
        End::refused(Why::Usage, text)
    }

    fn no_pod(&self, on_screen: &str, in_shell: &str) -> End {
        let way_out = match self.way {
            Way::Shell => in_shell,
            Way::Line | Way::Palette | Way::Key | Way::Command | Way::Input => on_screen,
        };
        End::refused(Why::Usage, format!("no Pod is selected: {way_out}"))
    }

    /// A Pod by its name, whatever its case.
    pub fn find(&self, name: &PodName) -> Result<&PodInfo, End> {
        self.family.get(name).ok_or_else(|| self.no_such(name.as_str()))
    }

    /// The refusal for a Pod that does not exist.
    pub fn no_such(&self, name: &str) -> End {
        let list = match self.way {
            Way::Line | Way::Palette | Way::Key => "the tree shows",
            Way::Command | Way::Shell | Way::Input => "`yoi ls` shows",
        };
        End::refused(Why::NotThere, format!("there is no pod `{name}`: {list} those there are"))
    }

    /// The verb or key that continues a paused run, as a person types it here.
    pub fn go_on(&self, pods: &[PodName]) -> String {
        match (self.way, pods) {
            (Way::Line | Way::Palette | Way::Key, [pod])
                if self.selected == Some(pod) && !self.is_written =>
            {
                (self.with_keys)("{composer send}")
            }
            _ => self.spell_for("resume", pods),
        }
    }

    /// A verb as a person types it here: `:restore bob`, or `yoi restore bob`.
    pub fn spell(&self, line: &str) -> String {
        spell::spell(line, self.way)
    }

    /// A verb for these Pods as a person types it here: a selected Pod need not be named, but a shell has
    /// none.
    pub fn spell_for(&self, verb: &str, pods: &[PodName]) -> String {
        let Some(known) = find(verb) else { return self.spell(verb) };
        match (self.way, pods) {
            (Way::Shell, [pod]) => spell::in_shell(known, "", &[], Some(pod)),
            (Way::Shell, _) => spell::in_shell(known, "", pods, None),
            (_, [pod]) if self.selected == Some(pod) => self.spell(verb),
            _ if known.takes_several() => self.spell(&format!(
                "{verb} {}",
                pods.iter().map(PodName::as_str).collect::<Vec<_>>().join(" ")
            )),
            _ => self.spell(verb),
        }
    }

    /// A sentence of the host, or about the state of a Pod, with its verbs as they are typed here.
    pub fn worded(&self, text: &str, about: Option<&PodName>) -> String {
        let about = about.filter(|pod| self.way == Way::Shell || self.selected != Some(pod));
        spell::worded(text, self.way, self.family, about)
    }
}

impl Request {
    pub fn to(pod: PodName, method: Method) -> Self {
        Self { pod: Some(pod), method }
    }

    pub fn host(method: Method) -> Self {
        Self { pod: None, method }
    }

    /// Whether the request gives the Pod work.
    pub fn begins_work(&self) -> bool {
        begins_work(&self.method)
    }

    /// Whether the environment of this program is offered to the Pod first: it may hold the address and
    /// the key of the model.
    pub fn needs_environment(&self) -> bool {
        self.begins_work() || matches!(self.method, Method::SetModel { .. })
    }
}

/// Whether a request gives a Pod work.
pub fn begins_work(method: &Method) -> bool {
    use Method::{Compact, LeaveOut, Resume, Send};
    matches!(method, Send { .. } | Resume | LeaveOut { .. } | Compact)
}

impl Said {
    /// The same with every sentence changed.
    pub fn map(self, change: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::Done(text) => Self::Done(change(&text)),
            Self::Info(text) => Self::Info(change(&text)),
            Self::Answer(text) => Self::Answer(change(&text)),
            Self::Text { title, lines } => {
                let line = |line: Line| Line { text: change(&line.text), ..line };
                Self::Text { title, lines: lines.into_iter().map(line).collect() }
            }
            Self::Since(since, report) => Self::Since(since, report),
            Self::Refused(why, text) => Self::Refused(why, change(&text)),
        }
    }
}

impl Reply {
    /// The result of the only request.
    pub fn single(self) -> Result<Event, End> {
        let lost = || End::refused(Why::Failed, "the host did not answer");
        self.results().next().unwrap_or_else(|| Err(lost()))
    }

    /// The results of all requests, or the first refusal.
    pub fn all(self) -> Result<Vec<Event>, End> {
        self.results().collect()
    }

    fn results(self) -> impl Iterator<Item = Result<Event, End>> {
        let results = match self {
            Self::Results(results) => results,
            Self::Confirmed | Self::Picked(_) | Self::Key(_) => Vec::new(),
        };
        let refused = |refusal: Refusal| {
            let text = for_person(&refusal, None).unwrap_or(refusal.message);
            End::refused(Why::Failed, text)
        };
        results.into_iter().map(move |result| result.map_err(refused))
    }
}

impl End {
    pub fn done(text: impl Into<String>) -> Self {
        Self { said: Said::Done(text.into()), ..Self::default() }
    }

    pub fn shown(text: impl Into<String>) -> Self {
        Self { said: Said::Info(text.into()), ..Self::default() }
    }

    pub fn answer(text: impl Into<String>) -> Self {
        Self { said: Said::Answer(text.into()), ..Self::default() }
    }

    pub fn refused(why: Why, text: impl Into<String>) -> Self {
        Self { said: Said::Refused(why, text.into()), ..Self::default() }
    }

    pub fn act(action: Action) -> Self {
        Self { action: Some(action), ..Self::default() }
    }

    /// The notice is shown only as long as this Pod is in this state.
    pub fn while_in(self, pod: PodName, state: State) -> Self {
        Self { while_in: Some((pod, state)), ..self }
    }

    pub fn and(self, action: Action) -> Self {
        Self { action: Some(action), ..self }
    }
}

/// A step, or the end that came instead of it.
pub fn or_end(step: Result<Next, End>) -> Next {
    step.unwrap_or_else(Next::End)
}

impl Next {
    /// One request.
    pub fn call(request: Request) -> Self {
        Self::Call(vec![request])
    }
}
