//! The first screen: what a person can do while there is no Pod, which model a new one would get and why, and what other
//! Pods did last.

use crate::screen::app::{App, Asked, Effect, Focus};
use crate::screen::keys::{Action, Context};
use crate::theme::Role;
use crate::verb::Way;
use crate::wording::scope;
use yoi::protocol::reply::FoundModel;
use yoi::protocol::{Event, Method, PodInfo, Refusal, State};

/// The most Pods that are listed as recent.
const RECENT: usize = 5;

/// How long what was found is shown before a key looks again, in milliseconds.
const LOOK_EVERY: u64 = 2_000;

/// What is known of the model of new Pods.
#[derive(Clone, Debug, Default)]
pub struct FirstModel {
    /// `None` until the first reply; then what was found, or why a model that is named cannot be used.
    found: Option<Result<Option<FoundModel>, String>>,
    /// When it was looked for last.
    at: u64,
    under_way: bool,
}

impl App {
    /// Looks for the model of new Pods while no Pod is current; a person's key looks again, so that an idle
    /// screen does nothing.
    pub(super) fn look_for_model(&mut self) -> Option<Effect> {
        let is_due = self.first.found.is_none() || self.now >= self.first.at + LOOK_EVERY;
        if self.current.is_some() || !self.family.is_known() || self.first.under_way || !is_due {
            return None;
        }
        (self.first.under_way, self.first.at) = (true, self.now);
        let method = Method::FindModel {
            cwd: self.setup.cwd.clone(),
            model: self.model.clone(),
            env: self.setup.env.clone(),
        };
        Some(Effect::Call { pod: None, method, asked: Asked::FirstModel })
    }

    /// Looks again where the settings are other ones than those by which a model was found.
    pub(super) fn look_for_model_again(&mut self) -> Option<Effect> {
        self.first.at = 0;
        self.look_for_model()
    }

    /// Takes the reply. It changes the text of the first screen and opens nothing.
    pub(super) fn first_model(&mut self, reply: Result<Event, Refusal>) {
        self.first.under_way = false;
        match reply {
            Ok(Event::ModelFound { model, .. }) => self.first.found = Some(Ok(model)),
            Ok(_) => {}
            Err(refusal) => self.first.found = Some(Err(refusal.message)),
        }
    }

    /// Enter on the empty line of the first screen connects a model where there is none.
    pub(super) fn enter_on_first_screen(&mut self) -> Vec<Effect> {
        match self.lacks_model() {
            true => self.carry_out("connect", Way::Key),
            false => Vec::new(),
        }
    }

    /// Whether it is known that a new Pod would get no model.
    pub(super) fn lacks_model(&self) -> bool {
        matches!(self.first.found, Some(Ok(None) | Err(_)))
    }

    /// Whether the first screen is shown without a tree: no Pod is current, and none works here that the tree would show.
    pub fn is_first_screen(&self) -> bool {
        let works_here =
            |info: &PodInfo| info.state != State::Stopped && info.workspace == self.setup.workspace;
        self.current.is_none()
            && self.focus == Focus::Composer
            && !self.family.all().iter().any(works_here)
    }

    /// The rows of the first screen.
    pub fn first_rows(&self) -> Vec<FirstRow> {
        let send = self.keymap.name(Context::Composer, Action::Send);
        let place = scope::from_home(&self.setup.cwd, &self.setup.env);
        let makes = match &self.setup.read_only {
            None => format!("{send} starts a Pod that may write below {place}"),
            Some(why) => format!("{send} starts a Pod that reads here: {why}"),
        };
        let mut rows = vec![
            FirstRow::new("type", format!("what to work on; {makes}"), Role::Dim),
            FirstRow::new(
                ":tour",
                "five scenes with a scripted model; nothing leaves this machine",
                Role::Dim,
            ),
        ];
        rows.extend(self.row_of_model());
        let mistakes = self.mistakes.iter();
        rows.extend(
            mistakes.map(|mistake| FirstRow::new("settings", mistake.text.as_str(), Role::Warn)),
        );
        rows
    }

    fn row_of_model(&self) -> Option<FirstRow> {
        Some(match self.first.found.as_ref()? {
            Err(why) => FirstRow::new(":connect", why.as_str(), Role::Warn),
            Ok(None) => {
                let text = "no model yet: Anthropic, OpenAI, Gemini, local …";
                FirstRow::new(":connect", text, Role::Warn)
            }
            Ok(Some(FoundModel { model, why, sends, .. })) => {
                let consent = match sends {
                    Some(sends) => format!("; it {sends}: the first message asks"),
                    None => String::new(),
                };
                FirstRow::new("model", format!("{model}: {why}{consent}"), Role::Dim)
            }
        })
    }

    /// The Pods that did something last, newest first.
    pub fn recent(&self) -> Vec<&PodInfo> {
        let is_top = |info: &&PodInfo| info.is_listed() && info.parent.is_none();
        let mut all: Vec<&PodInfo> = self.family.all().iter().filter(is_top).collect();
        all.sort_by_key(|info| std::cmp::Reverse(info.last_activity.max(info.since)));
        all.truncate(RECENT);
        all
    }
}

/// A row of the first screen: what to type or what it is about, and what is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstRow {
    pub label: &'static str,
    pub text: String,
    pub role: Role,
}

impl FirstRow {
    fn new(label: &'static str, text: impl Into<String>, role: Role) -> Self {
        Self { label, text: text.into(), role }
    }
}
