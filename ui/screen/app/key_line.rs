//! The line for a key of a provider. The key is in this line and in the request that tries it, and nowhere else of the
//! screen: neither a draft nor a history has it, and no frame shows it.

use crate::screen::app::key::typed;
use crate::screen::app::{App, Effect, Layer};
use crate::screen::keys::{Action, Binding, Context, pressed};
use crate::verb::dialogue::{KeyReply, KeyStep};
use crate::verb::{Reply, VerbId};
use crossterm::event::{KeyEvent, KeyEventKind};
use std::fmt;
use yoi::config::Secret;

/// The line for a key, or in its place what is being done with it.
pub struct KeyLine {
    pub verb: VerbId,
    pub provider: String,
    pub state: KeyState,
}

/// What the line shows.
pub enum KeyState {
    /// What to do stands above the line.
    Typing { typed: String, about: String },
    /// The provider is being asked, or the key is being stored.
    UnderWay,
}

impl fmt::Debug for KeyLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyLine").field("provider", &self.provider).finish_non_exhaustive()
    }
}

impl KeyLine {
    /// The line for a step of a verb.
    pub(super) fn of(verb: VerbId, step: &KeyStep) -> Self {
        match step {
            KeyStep::Type { provider, about } => {
                let state = KeyState::Typing { typed: String::new(), about: about.clone() };
                Self { verb, provider: provider.clone(), state }
            }
            KeyStep::Try { provider, .. } | KeyStep::Store { provider, .. } => {
                Self { verb, provider: provider.clone(), state: KeyState::UnderWay }
            }
            KeyStep::Use { model } => {
                let provider = model.split('/').next().unwrap_or_default().to_owned();
                Self { verb, provider, state: KeyState::UnderWay }
            }
        }
    }

    /// What the line begins with, and what stands in it in place of the key.
    pub fn shown(&self) -> (String, String) {
        match &self.state {
            KeyState::UnderWay => (format!("asking {} …", self.provider), String::new()),
            KeyState::Typing { typed, .. } => {
                let shown = match typed.chars().count() {
                    0 => String::new(),
                    1 => "1 character, not shown".into(),
                    count => format!("{count} characters, not shown"),
                };
                (format!("key for {} › ", self.provider), shown)
            }
        }
    }

    /// Takes text that was typed or pasted; blanks around a pasted key are dropped when it is tried.
    pub(super) fn insert(&mut self, text: &str) {
        if let KeyState::Typing { typed, .. } = &mut self.state {
            typed.push_str(text);
        }
    }
}

impl App {
    pub(super) fn key_line_key(&mut self, mut line: KeyLine, key: KeyEvent) -> Vec<Effect> {
        let binding = self.keymap.get(Context::Line, pressed(key)).cloned();
        let action = match binding {
            Some(Binding::Do(action)) => Some(action),
            _ => None,
        };
        match (action, &mut line.state) {
            (Some(Action::Back | Action::Interrupt), _) => {
                // The verb ends with its line; a reply that is still to come finds neither.
                self.closed();
                return Vec::new();
            }
            (Some(action @ (Action::Redraw | Action::Suspend | Action::Help)), _) => {
                self.layers.put_back(Layer::Key(line));
                return self.everywhere(action);
            }
            (_, KeyState::UnderWay) => {}
            (Some(Action::Choose), KeyState::Typing { typed, .. }) => {
                if key.kind != KeyEventKind::Repeat && !typed.trim().is_empty() {
                    let typed = Secret::new(typed.trim());
                    return self.verb_replied(line.verb, Reply::Key(KeyReply::Typed(typed)));
                }
            }
            (Some(Action::DeleteBack), KeyState::Typing { typed, .. }) => {
                if typed.pop().is_none() {
                    self.closed();
                    return Vec::new();
                }
            }
            (
                Some(Action::DeleteToStart | Action::DeleteWordBack),
                KeyState::Typing { typed, .. },
            ) => {
                typed.clear();
            }
            (Some(_), _) => {}
            (None, _) => {
                if let Some(c) = typed(key) {
                    line.insert(c.encode_utf8(&mut [0; 4]));
                }
            }
        }
        self.layers.put_back(Layer::Key(line));
        Vec::new()
    }

    /// Takes what came of a step with a key, unless the person left it.
    pub(super) fn key_step_done(&mut self, verb: VerbId, reply: KeyReply) -> Vec<Effect> {
        if !self.layers.request_for(verb) {
            return Vec::new();
        }
        self.close_layers(|layer| matches!(layer, Layer::Key(line) if line.verb == verb));
        self.verb_replied(verb, Reply::Key(reply))
    }
}
