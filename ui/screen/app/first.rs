//! The first screen: while there is no Pod it says which model a new Pod would get and why, or lists the ways
//! to connect one.

use crate::screen::app::{App, Asked, Effect};
use crate::screen::keys::{Action, Context};
use crate::verb::{Way, model};
use yoi::protocol::reply::FoundModel;
use yoi::protocol::{Event, Method, Refusal};

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

    /// Enter on the empty line of the first screen lists the ways to connect a model.
    pub(super) fn enter_on_first_screen(&mut self) -> Vec<Effect> {
        match self.first.found {
            Some(Ok(None) | Err(_)) => self.carry_out("model", Way::Key),
            Some(Ok(Some(_))) | None => Vec::new(),
        }
    }

    /// The lines about the model.
    pub fn first_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = match &self.first.found {
            None => Vec::new(),
            Some(Err(why)) => why.lines().map(str::to_owned).collect(),
            Some(Ok(Some(FoundModel { model, why, sends, .. }))) => {
                let consent = match sends {
                    Some(sends) => format!("\nIt {sends}; the first message asks."),
                    None => String::new(),
                };
                format!("Model: {model} ({why}){consent}").lines().map(str::to_owned).collect()
            }
            Some(Ok(None)) => {
                let send = self.keymap.name(Context::Composer, Action::Send);
                let head =
                    format!("No model is connected. {send} on the empty line lets you choose:");
                let rows = model::ways().map(|(text, help)| format!("  {text} · {help}"));
                std::iter::once(head).chain(rows).collect()
            }
        };
        lines.extend(self.mistakes.iter().map(|mistake| mistake.text.clone()));
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines
    }
}
