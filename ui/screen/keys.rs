//! The keymap: which key does what in which context, read from TOML files.

use crokey::KeyCombination;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::collections::HashMap;

pub mod action;
mod hidden;
mod layout;
mod load;
mod names;
mod source;
mod swallowed;

pub use action::Action;
pub use hidden::Hidden;
pub use layout::latin;
pub use load::{built_in, default_keymap, names, read};
pub use names::with_default_keys;
pub use source::{Loaded, Source};
pub use swallowed::{Swallower, arrives_as, swallowers};

/// Where a key is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Context {
    Everywhere,
    Composer,
    /// The command line, the palette and every sheet.
    Line,
    Tree,
    Peers,
    Transcript,
    /// The inbox: the only context whose keys decide approval requests.
    Inbox,
    /// The page in the place of the transcript.
    Page,
    /// After the leader key.
    Leader,
}

/// The sections of a keymap file.
pub const CONTEXTS: [(&str, Context); 9] = [
    ("everywhere", Context::Everywhere),
    ("composer", Context::Composer),
    ("line", Context::Line),
    ("tree", Context::Tree),
    ("peers", Context::Peers),
    ("transcript", Context::Transcript),
    ("inbox", Context::Inbox),
    ("page", Context::Page),
    ("leader", Context::Leader),
];

/// What a key is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    Do(Action),
    /// Puts a line into the command line, without its colon; Enter runs it.
    Prefill(String),
    /// Runs a line, without its colon.
    Run(String),
}

impl Binding {
    /// The binding as keymap files write it.
    pub fn written(&self) -> String {
        match self {
            Self::Do(action) => action.name().to_owned(),
            Self::Prefill(line) => format!(":{line}"),
            Self::Run(line) => format!("run :{line}"),
        }
    }
}

/// All bindings in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keymap {
    bindings: HashMap<(Context, KeyCombination), Binding>,
    /// The order of the file, for lists of keys.
    order: Vec<(Context, KeyCombination)>,
}

impl Keymap {
    /// What `key` does in `context`; the context's own keys come before those of everywhere. Where letters are
    /// commands, a letter of another script stands for the one at its place on a Latin keyboard.
    pub fn get(&self, context: Context, key: KeyCombination) -> Option<&Binding> {
        let types = matches!(context, Context::Composer | Context::Line);
        let found = self.bound(context, key);
        found.or_else(|| self.bound(context, on_latin_keyboard(key).filter(|_| !types)?))
    }

    fn bound(&self, context: Context, key: KeyCombination) -> Option<&Binding> {
        let own = self.bindings.get(&(context, key));
        if own.is_some() || context == Context::Leader {
            return own;
        }
        self.bindings.get(&(Context::Everywhere, key))
    }

    /// The keys of one context with what they do, in the order of the file.
    pub fn list(&self, context: Context) -> impl Iterator<Item = (KeyCombination, &Binding)> {
        self.order
            .iter()
            .filter(move |(of, _)| *of == context)
            .filter_map(|at| self.bindings.get(at).map(|binding| (at.1, binding)))
    }

    /// The first key that does `action`, as it is written for people; empty when none does.
    pub fn label(&self, context: Context, action: Action) -> String {
        self.label_of(context, &Binding::Do(action))
    }

    /// As [`Keymap::label`], for any binding.
    pub fn label_of(&self, context: Context, wanted: &Binding) -> String {
        self.list(context)
            .find(|(_, binding)| *binding == wanted)
            .map(|(key, _)| label(key))
            .unwrap_or_default()
    }

    fn set(&mut self, context: Context, key: KeyCombination, binding: Binding) {
        if self.bindings.insert((context, key), binding).is_none() {
            self.order.push((context, key));
        }
    }

    fn remove(&mut self, context: Context, key: KeyCombination) {
        self.bindings.remove(&(context, key));
        self.order.retain(|at| *at != (context, key));
    }
}

/// A key as it was pressed, in the one form that bindings are kept in.
pub fn pressed(event: KeyEvent) -> KeyCombination {
    normal(KeyCombination::from(event))
}

/// Reads a key as keymaps write it: `ctrl-p`, `shift-tab`, `G`, `?`.
pub fn parse(text: &str) -> Option<KeyCombination> {
    let upper = text.len() == 1 && text.starts_with(|c: char| c.is_ascii_uppercase());
    let text = if upper { format!("shift-{text}") } else { text.to_owned() };
    crokey::parse(&text).ok().map(normal)
}

fn on_latin_keyboard(key: KeyCombination) -> Option<KeyCombination> {
    let crokey::OneToThree::One(KeyCode::Char(c)) = key.codes else { return None };
    let same_place = KeyCombination::one_key(KeyCode::Char(latin(c)?), key.modifiers);
    Some(normal(same_place))
}

/// Keys that arrive as the same byte are one key, however the terminal spells them.
fn normal(key: KeyCombination) -> KeyCombination {
    let key = key.normalized();
    let crokey::OneToThree::One(code) = key.codes else { return key };
    let (code, modifiers) = one(code, key.modifiers);
    KeyCombination::one_key(code, modifiers)
}

fn one(code: KeyCode, modifiers: KeyModifiers) -> (KeyCode, KeyModifiers) {
    let control = modifiers == KeyModifiers::CONTROL;
    match code {
        KeyCode::Tab | KeyCode::BackTab if modifiers.contains(KeyModifiers::SHIFT) => {
            (KeyCode::BackTab, modifiers)
        }
        KeyCode::Char('h') if control => (KeyCode::Backspace, KeyModifiers::NONE),
        KeyCode::Char('i') if control => (KeyCode::Tab, KeyModifiers::NONE),
        KeyCode::Char('m') if control => (KeyCode::Enter, KeyModifiers::NONE),
        KeyCode::Char('[' | '3') if control => (KeyCode::Esc, KeyModifiers::NONE),
        KeyCode::Char('7' | '/' | '_' | '-') if modifiers.contains(KeyModifiers::CONTROL) => {
            (KeyCode::Char('_'), modifiers - KeyModifiers::SHIFT)
        }
        KeyCode::Char(c) if !c.is_alphabetic() => {
            (KeyCode::Char(c), modifiers - KeyModifiers::SHIFT)
        }
        code => (code, modifiers),
    }
}

/// A key as it is written for people: `Ctrl+P`, `Shift+Tab`, `G`.
pub fn label(key: KeyCombination) -> String {
    let crokey::OneToThree::One(code) = key.codes else { return key.to_string() };
    let letter = matches!(code, KeyCode::Char(_));
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let mut text = String::new();
    if control {
        text += "Ctrl+";
    }
    if key.modifiers.contains(KeyModifiers::ALT) {
        text += "Alt+";
    }
    if key.modifiers.contains(KeyModifiers::SHIFT) && !letter {
        text += "Shift+";
    }
    text + &name(code, control)
}

fn name(code: KeyCode, control: bool) -> String {
    match code {
        KeyCode::Char(' ') => "Space".into(),
        KeyCode::Char(c) if control => c.to_ascii_uppercase().into(),
        KeyCode::Char(c) => c.into(),
        KeyCode::BackTab => "Tab".into(),
        KeyCode::Up => "↑".into(),
        KeyCode::Down => "↓".into(),
        KeyCode::Left => "←".into(),
        KeyCode::Right => "→".into(),
        KeyCode::PageUp => "PageUp".into(),
        KeyCode::PageDown => "PageDown".into(),
        KeyCode::F(n) => format!("F{n}"),
        code => format!("{code:?}"),
    }
}

#[cfg(test)]
mod tests;
