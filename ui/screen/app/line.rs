//! The command line after `:`, and leaving the screen.

use crate::screen::app::ExitReason;
use crate::screen::app::{App, Confirm, Effect, Layer};
use crate::screen::pane::actionbar::{Prompt, Purpose};
use crate::screen::pane::input::Input;
use crate::screen::pane::transcript::Transcript;
use crate::verb::line::{complete_verb, of_unseen, offered};
use crate::verb::{Way, find};
use yoi::protocol::{PodInfo, State};

impl App {
    /// Opens the command line with `text` in it.
    pub(super) fn open_line(&mut self, text: &str) -> Vec<Effect> {
        let named = self.row_pod().map_or(String::new(), |pod| pod.to_string());
        let entry = self.transcript().and_then(Transcript::entry);
        let entry = entry.map_or(String::new(), |entry| entry.to_string());
        let text = text.replace("{pod}", &named).replace("{entry}", &entry);
        self.open_typed_line(&text)
    }

    /// Opens the command line with this text as it is.
    pub(super) fn open_typed_line(&mut self, text: &str) -> Vec<Effect> {
        let prompt = Prompt::new(Purpose::Verb, text, &self.sources());
        self.open_layer(Layer::Prompt(prompt))
    }

    /// Enter in the command line. A line that cannot be run stays there.
    pub(super) fn enter_line(&mut self, mut prompt: Prompt) -> Vec<Effect> {
        let text = prompt.input.text().trim().trim_start_matches(':').to_owned();
        if text.is_empty() {
            self.closed();
            return Vec::new();
        }
        let line = complete_verb(&text).unwrap_or(text);
        match self.read_line(&line, Way::Line) {
            Ok(verb) => {
                self.remember_line(&line);
                if std::mem::take(&mut self.inbox.steps) {
                    self.card_goes_on();
                }
                self.advance(verb, None)
            }
            Err(why) => {
                // After a verb without arguments, the values of its first argument are listed. A word with which other
                // programs are left stands for the verb that leaves this one.
                let verb = of_unseen(&line).or_else(|| find(&line));
                let meant = offered(&format!(":{line}")).filter(|meant| *meant != line);
                let why = match &meant {
                    Some(verb) => {
                        let runs = format!("no verb :{line}: {{line choose}} runs :{verb}");
                        self.keymap.with_keys(&runs)
                    }
                    None => why,
                };
                let line = verb.map(|verb| format!("{} ", verb.name)).or(meant).unwrap_or(line);
                prompt.input = Input::new(line);
                prompt.changed(&self.sources());
                prompt.wrong = Some(why);
                self.layers.put_back(Layer::Prompt(prompt));
                Vec::new()
            }
        }
    }

    /// Leaves the screen; while a run is under way, only after a confirmation.
    pub(super) fn leave(&mut self) -> Vec<Effect> {
        let working = self.working();
        if working.as_ref().is_none_or(Vec::is_empty) {
            return self.leave_now();
        }
        self.open_layer(Layer::Confirm(Confirm::Leave { working }))
    }

    pub(super) fn leave_now(&mut self) -> Vec<Effect> {
        vec![Effect::Quit(ExitReason::Quit { farewell: self.farewell() })]
    }

    /// Which Pods do nothing until a person decides.
    fn waiting_for_decisions(&self) -> Option<String> {
        match self.family.needs_you().as_slice() {
            [] => None,
            [one] => Some(format!("{} waits for your decision", one.name)),
            [one, two] => Some(format!("{} and {} wait for your decision", one.name, two.name)),
            [one, more @ ..] => {
                Some(format!("{} and {} more wait for your decision", one.name, more.len()))
            }
        }
    }

    /// The sentences for the shell: which Pods still run, how to come back, and how to stop them.
    fn farewell(&self) -> Vec<String> {
        let live = |info: &&PodInfo| info.state != State::Stopped;
        let pods: Vec<_> = self.family.all().iter().filter(live).collect();
        let Some(one) = self.info().filter(live).or(pods.first().copied()) else {
            return Vec::new();
        };
        let who = match pods.len() {
            1 => one.name.to_string(),
            n => format!("{n} Pods"),
        };
        let them = if pods.len() == 1 { "it" } else { "them" };
        if !self.setup.reconnects {
            return vec![format!("{who} kept · yoi shows {them} again")];
        }
        let working = match self.family.running().count() {
            0 => "none running".to_owned(),
            n => format!("{n} running"),
        };
        let waiting = self.waiting_for_decisions().map(|waiting| format!("; {waiting}"));
        vec![
            format!("{who} kept, {working}{}", waiting.unwrap_or_default()),
            format!("come back: yoi · end it: yoi stop {} · end all: yoi stop --all", one.name),
        ]
    }
}
