//! Keys in the layers that are lines or lists: the command line, a search, a filter, the list.

use crate::screen::app::key::typed;
use crate::screen::app::{App, Areas, Effect, Focus, Layer, TextFor};
use crate::screen::keys::{Action, Binding, Context, pressed};
use crate::screen::pane::actionbar::{Prompt, Purpose};
use crate::screen::pane::composer::Message;
use crate::screen::pane::input::Input;
use crate::screen::pick_list::{Outcome, PickList};
use crossterm::event::{KeyEvent, KeyEventKind};

impl App {
    pub(super) fn open_prompt(&mut self, purpose: Purpose) -> Vec<Effect> {
        if purpose == Purpose::Find {
            self.close_pages();
        }
        let text = if purpose == Purpose::Filter {
            self.tree.filter.text().to_owned()
        } else {
            String::new()
        };
        let prompt = Prompt::new(purpose, &text, &self.sources());
        self.open_layer(Layer::Prompt(prompt))
    }

    pub(super) fn prompt_key(&mut self, mut prompt: Prompt, key: KeyEvent) -> Vec<Effect> {
        let binding = self.keymap.get(Context::Line, pressed(key)).cloned();
        let action = match binding {
            Some(Binding::Do(action)) => action,
            _ => return self.prompt_types(prompt, key),
        };
        match action {
            Action::Choose if key.kind == KeyEventKind::Repeat => {}
            Action::Choose => return self.prompt_enter(prompt),
            Action::Back | Action::Interrupt => return self.prompt_left(&prompt),
            Action::DeleteBack if prompt.input.is_empty() => return self.prompt_left(&prompt),
            Action::Complete | Action::CompleteBack | Action::Up | Action::Down
                if prompt.completion.candidates.is_empty() && !prompt.walks(action) =>
            {
                let text = match prompt.purpose.is_of_card() && self.is_next_card(key) {
                    true => {
                        "there is nothing to choose from here · {line back}: back, then {everywhere next-needs-you}: the next card"
                    }
                    false => "there is nothing to choose from here · {line back}: back",
                };
                prompt.wrong = Some(self.keymap.with_keys(text));
            }
            Action::Complete | Action::CompleteBack => prompt.cycle(action),
            Action::Up | Action::Down if prompt.walks(action) => {
                prompt.history(&self.lines, action, &self.sources());
            }
            Action::Up => prompt.cycle(Action::CompleteBack),
            Action::Down => prompt.cycle(Action::Complete),
            Action::PageUp | Action::PageDown => {
                self.everywhere(action);
            }
            Action::Redraw | Action::Suspend | Action::Help => {
                return self.above(Layer::Prompt(prompt), action);
            }
            other => {
                if prompt.input.edit(other) {
                    prompt.changed(&self.sources());
                    self.prompt_follows(&prompt);
                }
            }
        }
        self.layers.put_back(Layer::Prompt(prompt));
        Vec::new()
    }

    /// Whether a key goes to the next card, where no line is open.
    fn is_next_card(&self, key: KeyEvent) -> bool {
        let next = Binding::Do(Action::NextNeedsYou);
        self.keymap.get(Context::Everywhere, pressed(key)) == Some(&next)
    }

    /// Does what a key does everywhere, above a line or list that stays.
    fn above(&mut self, layer: Layer, action: Action) -> Vec<Effect> {
        self.layers.put_back(layer);
        self.everywhere(action)
    }

    fn prompt_types(&mut self, mut prompt: Prompt, key: KeyEvent) -> Vec<Effect> {
        // The key that opened the line may still be held down.
        let is_held = key.kind == KeyEventKind::Repeat && !prompt.is_changed();
        let Some(c) = typed(key).filter(|_| !is_held) else {
            self.layers.put_back(Layer::Prompt(prompt));
            return Vec::new();
        };
        if c == ':' && prompt.purpose == Purpose::Verb && prompt.input.is_empty() {
            self.forget_requests();
            self.composer.insert(':');
            return self.focus(Focus::Composer);
        }
        prompt.input.insert(c.encode_utf8(&mut [0; 4]));
        prompt.changed(&self.sources());
        self.prompt_follows(&prompt);
        self.layers.put_back(Layer::Prompt(prompt));
        Vec::new()
    }

    /// Applies a search or a filter while it is typed.
    pub(super) fn prompt_follows(&mut self, prompt: &Prompt) {
        match prompt.purpose {
            Purpose::Verb | Purpose::Deny | Purpose::Rule | Purpose::Answer | Purpose::Message => {}
            Purpose::Filter => self.tree.filter = prompt.input.clone(),
            Purpose::Find => {
                let text = prompt.input.text().to_owned();
                if let Some(transcript) = self.transcript_mut() {
                    transcript.find(&text);
                }
            }
        }
    }

    fn prompt_enter(&mut self, prompt: Prompt) -> Vec<Effect> {
        if self.undecided(&prompt).is_some() {
            return self.start_host_for(prompt);
        }
        match prompt.purpose {
            Purpose::Verb => self.enter_line(prompt),
            Purpose::Filter => self.focus(Focus::Tree),
            Purpose::Find => self.read_matches(),
            Purpose::Deny => self.enter_reason(prompt),
            // Handled above.
            Purpose::Rule => Vec::new(),
            Purpose::Answer => self.answer_entered(prompt),
            Purpose::Message => self.message_entered(prompt),
        }
    }

    /// Gives the keys to the transcript with the matches. Esc leads back to the pane in which the search began.
    fn read_matches(&mut self) -> Vec<Effect> {
        let from = self.focus;
        if from != Focus::Beside {
            let inside = self.inbox.inside.take();
            self.focus(Focus::Transcript);
            self.inbox.inside = inside;
        }
        self.found_from = Some(from);
        Vec::new()
    }

    /// Enter behind the reason of a denial. Where the reason looks like a verb, that is offered above the
    /// line, which stays.
    fn enter_reason(&mut self, prompt: Prompt) -> Vec<Effect> {
        if self.now < self.guard.decides {
            return self.too_early(prompt);
        }
        match self.offered_verb(prompt.input.text(), TextFor::Reason) {
            Some(offer) => {
                self.layers.put_back(Layer::Prompt(prompt));
                self.open_layer(Layer::Confirm(offer))
            }
            None => self.deny(prompt.input.text()),
        }
    }

    /// Denies with the reason in the line on top, whatever it looks like.
    pub(super) fn deny_as_typed(&mut self) -> Vec<Effect> {
        match self.layers.pop() {
            Some(Layer::Prompt(prompt)) => self.deny(prompt.input.text()),
            Some(Layer::List(_) | Layer::Confirm(_) | Layer::Key(_)) | None => Vec::new(),
        }
    }

    /// Closes the line of a reason; its requests stay undecided.
    pub(super) fn leave_reason(&mut self) {
        if let Some(Layer::Prompt(prompt)) = self.layers.pop() {
            self.keep_typed(&prompt);
        }
        self.decided_by_line = None;
    }

    /// Keeps the text of a line that is closed: a verb in the history of lines, a text in that of messages.
    /// That of a line of a card is there again when such a line of that card is opened.
    pub(super) fn keep_typed(&mut self, prompt: &Prompt) {
        if prompt.purpose.is_of_card() && (prompt.typed().is_some() || prompt.input.is_empty()) {
            self.inbox.keep_typed(prompt.purpose, prompt.typed());
        }
        let Some(text) = prompt.typed().map(str::to_owned) else { return };
        match prompt.purpose {
            Purpose::Verb => self.remember_line(&text),
            Purpose::Deny | Purpose::Rule | Purpose::Answer | Purpose::Message => {
                self.composer.history.keep(&Message::plain(&text), self.now);
            }
            Purpose::Find | Purpose::Filter => {}
        }
    }

    fn prompt_left(&mut self, prompt: &Prompt) -> Vec<Effect> {
        self.closed();
        self.keep_typed(prompt);
        self.inbox.steps = false;
        match prompt.purpose {
            Purpose::Verb | Purpose::Message => {}
            Purpose::Deny | Purpose::Rule | Purpose::Answer => self.decided_by_line = None,
            Purpose::Filter => self.tree.filter = Input::default(),
            Purpose::Find => {
                if let Some(transcript) = self.transcript_mut() {
                    transcript.find("");
                }
            }
        }
        Vec::new()
    }

    pub(super) fn pick_list_key(&mut self, mut list: PickList, key: KeyEvent) -> Vec<Effect> {
        let binding = self.keymap.get(Context::Line, pressed(key)).cloned();
        let outcome = match (binding, typed(key)) {
            (Some(Binding::Do(Action::Back | Action::Interrupt)), _) => {
                self.closed();
                return Vec::new();
            }
            (Some(Binding::Do(Action::DeleteBack)), _) if list.query.is_empty() => {
                self.closed();
                return Vec::new();
            }
            (Some(Binding::Do(Action::Choose)), _) if key.kind == KeyEventKind::Repeat => {
                Outcome::Stays
            }
            (Some(Binding::Do(action @ (Action::Redraw | Action::Suspend | Action::Help))), _) => {
                return self.above(Layer::List(list), action);
            }
            (Some(Binding::Do(Action::PageUp)), _) => {
                list.page_up(Areas::of(self).list(&list));
                Outcome::Stays
            }
            (Some(Binding::Do(Action::PageDown)), _) => {
                list.page_down(Areas::of(self).list(&list));
                Outcome::Stays
            }
            (Some(Binding::Do(action)), _) => list.act(action),
            (_, Some(c)) => {
                list.insert(c.encode_utf8(&mut [0; 4]));
                Outcome::Stays
            }
            _ => Outcome::Stays,
        };
        match outcome {
            Outcome::Chose(row) => {
                if list.is_of_everything() {
                    self.count_use(&row);
                }
                self.chose(row.choice)
            }
            Outcome::Stays => {
                self.layers.put_back(Layer::List(list));
                Vec::new()
            }
        }
    }
}
