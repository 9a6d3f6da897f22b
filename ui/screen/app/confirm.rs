//! Confirmations: sheets that ask yes or no before something is done. Enter confirms, but only after the
//! sheet has been on the screen for a while; Esc does not.

use crate::rows::{width, wrap_text};
use crate::screen::app::inbox::NO_ROOM;
use crate::screen::app::key::typed;
use crate::screen::app::{App, Areas, Asked, Effect, Layer, Link};
use crate::screen::keys::{Action, Binding, Context, Keymap, pressed};
use crate::screen::notice::Kind;
use crate::screen::pane::actionbar::Hint;
use crate::screen::pane::composer::Message;
use crate::screen::pane::inbox;
use crate::verb::{self, Reply, VerbId, Way};
use crossterm::event::{KeyEvent, KeyEventKind};
use yoi::protocol::{Method, PodInfo, PodName};

/// The notice for a key that came before the person could read what it would decide.
pub(super) const TOO_EARLY: &str =
    "press again: that was too soon after this appeared or after the last key";

/// Columns of ` · ` and `: ` around an answer.
const ANSWER_GAP: usize = 5;

/// What the person is to confirm.
#[derive(Clone, Debug, PartialEq)]
pub enum Confirm {
    /// A text looks like a verb, or ends in one; `before` is the text before it.
    Offered { before: String, line: String, text_for: TextFor },
    /// A message has the form of a command of other programs, and would go to the model as it is.
    Unusual { sentence: String, text_for: TextFor },
    /// The first message to a model that no person chose or agreed to; without a message, what waits.
    FirstMessage { pod: PodName, model: String, sends: String, message: Option<Message> },
    /// Leaving the screen while these Pods work; `None` while there is no host to say so.
    Leave { working: Option<Vec<PodName>> },
    /// The confirmation of a verb.
    Verb { id: VerbId, confirm: verb::Confirm },
}

/// What a text is for that looks like a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFor {
    /// A message to the Pod.
    Message,
    /// A message for the queue of the Pod.
    Queue,
    /// The reason of a denial; its line stays open below the confirmation.
    Reason,
}

/// Which rows of a text longer than the screen have been in view.
#[derive(Clone, Debug, Default)]
pub struct Read {
    rows: Vec<String>,
    top: usize,
    /// The number of rows, from the first on and without a gap, that were in view.
    seen: usize,
}

impl Read {
    /// The index of the first row in view.
    pub fn top(&self, rows: &[String]) -> usize {
        if self.rows == rows { self.top } else { 0 }
    }

    /// How many rows were never in view on a screen with room for `room` rows.
    pub fn unread(&self, rows: &[String], room: usize) -> usize {
        let seen = if self.rows == rows { self.seen } else { 0 };
        rows.len() - seen.max(inbox::in_view(rows.len(), room + 1))
    }

    pub(super) fn turn(&mut self, rows: Vec<String>, room: usize, pages: Pages) {
        let top = self.top(&rows);
        let shown = inbox::in_view(rows.len() - top, room + 1);
        let seen = rows.len() - self.unread(&rows, room);
        let top = match pages {
            Pages::Back => top.saturating_sub(shown.max(1)),
            Pages::On => (top + shown).min(rows.len().saturating_sub(room)),
        };
        let seen = seen.max(top + inbox::in_view(rows.len() - top, room + 1));
        *self = Self { rows, top, seen };
    }
}

/// The direction in which a page is turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    Back,
    On,
}

impl Confirm {
    /// The confirmation that a message to this Pod needs, if no person chose its model or agreed to it.
    pub fn first_message(info: &PodInfo, message: Option<&Message>) -> Option<Self> {
        let sends = info.model_sends.clone()?;
        let model = format!("{} ({})", info.model, info.model_why);
        let (pod, message) = (info.name.clone(), message.cloned());
        Some(Self::FirstMessage { pod, model, sends, message })
    }

    /// The text of the confirmation.
    pub fn text(&self) -> String {
        match self {
            Self::Offered { before, line, text_for } => offer(before, line, *text_for),
            Self::Unusual { sentence, .. } => sentence.clone(),
            Self::FirstMessage { model, sends, .. } => {
                format!("{model} {sends}. You are asked once.")
            }
            Self::Leave { working } => match working.as_deref() {
                None => "the host ended".into(),
                Some([]) => "no Pod is working any more".into(),
                Some([one]) => format!("{one} is working, and goes on without this screen"),
                Some(more) => {
                    format!("{} Pods are working, and go on without this screen", more.len())
                }
            },
            Self::Verb { confirm, .. } => confirm.question.clone(),
        }
    }

    /// Whether it becomes void when this Pod is gone.
    pub fn is_about(&self, name: &PodName) -> bool {
        match self {
            Self::Offered { .. } | Self::Unusual { .. } | Self::Leave { .. } => false,
            Self::FirstMessage { pod, .. } => pod == name,
            Self::Verb { confirm, .. } => confirm.about.contains(name),
        }
    }

    /// The keys that work now; before the confirmation is armed, only the key that leaves it.
    pub fn answers(&self, armed: bool, keymap: &Keymap) -> Vec<Hint> {
        let back = if matches!(self, Self::Leave { .. }) { "stay" } else { "back" };
        let back = Hint::new(keymap.name(Context::Line, Action::Back), back);
        if !armed {
            return vec![back];
        }
        let enter = match self {
            Self::Offered { .. } => "run it",
            Self::Unusual { .. } => "send it anyway",
            Self::FirstMessage { .. } => "send",
            leave @ Self::Leave { .. } if leave.working().is_empty() => "leave",
            Self::Leave { .. } => "leave it running",
            Self::Verb { confirm, .. } => confirm.enter,
        };
        let mut answers = vec![Hint::new(keymap.name(Context::Line, Action::Choose), enter)];
        match self {
            Self::Offered { text_for: TextFor::Reason, .. } => {
                answers.push(Hint::new("s", "deny with it as the reason"));
            }
            Self::Offered { .. } => answers.push(Hint::new("s", "send it as a message")),
            leave @ Self::Leave { .. } if !leave.working().is_empty() => {
                answers.push(Hint::new("p", "pause and leave"));
            }
            Self::Leave { .. }
            | Self::Unusual { .. }
            | Self::FirstMessage { .. }
            | Self::Verb { .. } => {}
        }
        answers.push(back);
        answers
    }

    /// The keys that work now, in rows of at most `columns` columns.
    pub fn answer_rows(&self, armed: bool, keymap: &Keymap, columns: usize) -> Vec<Vec<Hint>> {
        let mut rows: Vec<Vec<Hint>> = Vec::new();
        let mut used = 0;
        for hint in self.answers(armed, keymap) {
            let needs = width(&hint.key) + width(&hint.does) + ANSWER_GAP;
            match rows.last_mut() {
                Some(row) if used + needs <= columns => row.push(hint),
                Some(_) | None => {
                    used = 0;
                    rows.push(vec![hint]);
                }
            }
            used += needs;
        }
        rows
    }

    /// The Pods that work, as far as a question about leaving knows them.
    fn working(&self) -> &[PodName] {
        match self {
            Self::Leave { working } => working.as_deref().unwrap_or_default(),
            Self::Offered { .. }
            | Self::Unusual { .. }
            | Self::FirstMessage { .. }
            | Self::Verb { .. } => &[],
        }
    }
}

impl App {
    /// Brings the question about leaving up to date with the Pods that work. To be called after every message.
    pub(super) fn leaving_follows(&mut self) {
        let working = self.working();
        let Some(Layer::Confirm(Confirm::Leave { working: asked })) = self.layers.top_mut() else {
            return;
        };
        if *asked != working {
            *asked = working;
            self.layers.changed();
        }
    }

    /// The Pods that work; `None` while there is no host to say so.
    pub(super) fn working(&self) -> Option<Vec<PodName>> {
        let names = || self.family.running().map(|info| info.name.clone()).collect();
        (self.link == Link::Up).then(names)
    }

    /// Handles a key while a confirmation is on top. It counts only after the confirmation has been on
    /// the screen for a while.
    pub(super) fn confirm_key(&mut self, confirm: Confirm, key: KeyEvent) -> Vec<Effect> {
        if key.kind == KeyEventKind::Repeat {
            return Vec::new();
        }
        if !self.layers.is_drawn() {
            return self.say(Kind::Info, TOO_EARLY);
        }
        if let Some(pages) = self.page_key(key) {
            let (rows, room) = confirm_rows(self, &confirm);
            self.layers.read.turn(rows, room, pages);
            self.layers.disturbed(self.now);
            return Vec::new();
        }
        let bound = self.keymap.get(Context::Line, pressed(key)).cloned();
        if let Some(Binding::Do(action @ (Action::Redraw | Action::Suspend | Action::Help))) = bound
        {
            self.layers.disturbed(self.now);
            return self.everywhere(action);
        }
        if let Some(Binding::Do(Action::Back | Action::Interrupt)) = bound {
            self.layers.pop();
            return self.answer_back(confirm);
        }
        let armed = self.is_armed();
        let leaves = Some(&Binding::Do(Action::Leave));
        let leaves = self.keymap.get(Context::Everywhere, pressed(key)) == leaves;
        match leaves || bound == Some(Binding::Do(Action::Choose)) {
            true => self.layers.pressed(self.now),
            // It may be a letter of a text.
            false => self.layers.disturbed(self.now),
        }
        match (bound, typed(key)) {
            _ if !armed => self.say(Kind::Info, TOO_EARLY),
            // The key that asked is an answer, too.
            _ if leaves && matches!(confirm, Confirm::Leave { .. }) => {
                self.layers.pop();
                self.leave_now()
            }
            (Some(Binding::Do(Action::Choose)), _) => {
                let (rows, room) = confirm_rows(self, &confirm);
                match self.unread(&rows, room) {
                    Some(unread) => self.say(Kind::Info, unread),
                    None => self.answer_enter(confirm),
                }
            }
            (_, Some(letter)) => self.answer_letter(confirm, letter),
            _ => Vec::new(),
        }
    }

    pub(super) fn page_key(&self, key: KeyEvent) -> Option<Pages> {
        match self.keymap.get(Context::Everywhere, pressed(key)) {
            Some(Binding::Do(Action::PageUp)) => Some(Pages::Back),
            Some(Binding::Do(Action::PageDown)) => Some(Pages::On),
            _ => None,
        }
    }

    /// The reason why the sheet on top cannot be accepted yet, if a part of these rows was never in view.
    pub(super) fn unread(&self, rows: &[String], room: usize) -> Option<String> {
        if room == 0 {
            return Some(NO_ROOM.into());
        }
        match self.layers.read.unread(rows, room) {
            0 => None,
            unread => {
                let more = inbox::more_below(unread, &self.keymap);
                let accept = self.keymap.name(Context::Line, Action::Choose);
                Some(format!("{more}, then {accept}"))
            }
        }
    }

    fn answer_enter(&mut self, confirm: Confirm) -> Vec<Effect> {
        self.layers.pop();
        match confirm {
            Confirm::Offered { before, line, text_for } => {
                match text_for {
                    TextFor::Message | TextFor::Queue => {
                        self.composer.write(&Message::plain(&before));
                    }
                    TextFor::Reason => self.leave_reason(),
                }
                self.run_line(&line, Way::Line)
            }
            Confirm::Unusual { text_for, .. } => self.send_as_typed(text_for),
            Confirm::FirstMessage { pod, sends, message, .. } => {
                let asked = match message {
                    Some(message) => Asked::AgreedFor(pod.clone(), message),
                    None => Asked::Quietly,
                };
                let method = Method::Consent { sends };
                vec![Effect::Call { pod: Some(pod), method, asked }]
            }
            Confirm::Leave { .. } => self.leave_now(),
            Confirm::Verb { id, .. } => self.verb_replied(id, Reply::Confirmed),
        }
    }

    fn answer_letter(&mut self, confirm: Confirm, letter: char) -> Vec<Effect> {
        match (confirm, letter) {
            (Confirm::Offered { text_for, .. }, 's') => {
                self.layers.pop();
                self.send_as_typed(text_for)
            }
            (Confirm::Leave { working: Some(working) }, 'p') if !working.is_empty() => {
                self.layers.pop();
                let pause = |pod: PodName| Effect::Call {
                    pod: Some(pod),
                    method: Method::Pause,
                    asked: Asked::Silently,
                };
                let mut effects: Vec<Effect> = working.into_iter().map(pause).collect();
                effects.extend(self.leave_now());
                effects
            }
            _ => Vec::new(),
        }
    }

    /// Sends a text as it is, whatever it looks like.
    fn send_as_typed(&mut self, text_for: TextFor) -> Vec<Effect> {
        match text_for {
            TextFor::Message => self.send_draft(),
            TextFor::Queue => self.queue_draft(),
            TextFor::Reason => self.deny_as_typed(),
        }
    }

    fn answer_back(&mut self, confirm: Confirm) -> Vec<Effect> {
        self.closed();
        match confirm {
            Confirm::FirstMessage { pod, message, .. } => {
                if let Some(message) = message {
                    self.composer.give_back(Some(&pod), &message, self.now);
                }
                self.say(Kind::Info, "nothing was sent · :model chooses another model")
            }
            Confirm::Offered { .. }
            | Confirm::Unusual { .. }
            | Confirm::Leave { .. }
            | Confirm::Verb { .. } => Vec::new(),
        }
    }
}

/// The sentence that offers to run a verb instead of sending the text that it stands in.
fn offer(before: &str, line: &str, text_for: TextFor) -> String {
    let leaves = match text_for {
        TextFor::Message | TextFor::Queue => "the text before it would stay",
        TextFor::Reason => "to run it leaves the request undecided",
    };
    match (text_for, before.is_empty()) {
        (TextFor::Message | TextFor::Queue, true) => format!("`:{line}` is a verb"),
        (TextFor::Reason, true) => format!("`:{line}` is a verb; {leaves}"),
        (TextFor::Message | TextFor::Queue, false) => {
            format!("`:{line}` at the end of the message is a verb; {leaves}")
        }
        (TextFor::Reason, false) => {
            format!("`:{line}` at the end of the reason is a verb; {leaves}")
        }
    }
}

/// The rows of a confirmation, and for how many there is room above its keys.
pub fn confirm_rows(app: &App, confirm: &Confirm) -> (Vec<String>, usize) {
    let most = Areas::of(app).sheet(usize::MAX);
    let width = usize::from(most.width).max(1);
    // The keys that an armed confirmation has take the most rows.
    let answers = confirm.answer_rows(true, &app.keymap, most.width.into()).len();
    // In a single column no word can be read.
    let height = if most.width < 2 { 0 } else { usize::from(most.height) };
    (wrap_text(&confirm.text(), width), height.saturating_sub(answers))
}
