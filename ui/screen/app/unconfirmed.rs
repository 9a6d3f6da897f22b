//! Decisions that have no effect: while there is no host, and once another screen has decided. The line of a decision stays open and says that nothing is decided; after the
//! next start of the host a notice names the decisions that the host did not take.

use crate::screen::app::inbox::HOST_ENDED;
use crate::screen::app::{App, Confirm, Effect, Layer, Link, TextFor};
use crate::screen::notice::Kind;
use crate::screen::pane::actionbar::Prompt;
use yoi::protocol::ApprovalRequest;

impl App {
    /// Closes the confirmations of decisions, because the host ended. The line of a decision stays with its text, and
    /// decides nothing any more: its request has to be drawn again.
    pub(super) fn decisions_interrupted(&mut self) {
        self.decided_by_line = None;
        let deciding = std::mem::take(&mut self.deciding);
        for decision in deciding.values().filter(|decision| decision.asker.is_none()) {
            self.composer.history.keep(&decision.text, self.now);
        }
        self.unconfirmed = deciding.into_keys().collect();
        self.close_layers(|layer| {
            matches!(layer, Layer::Confirm(Confirm::Offered { text_for: TextFor::Reason, .. }))
        });
    }

    /// The reason why the line of a decision has no effect now; `None` for other lines.
    pub fn undecided(&self, prompt: &Prompt) -> Option<String> {
        if !prompt.purpose.decides() {
            return None;
        }
        let text = match self.link {
            Link::Up if self.decided_by_line.is_some() => return None,
            Link::Up => match self.inbox.ended() {
                Some(HOST_ENDED) => "the host is starting: nothing is decided yet",
                Some(_) => "it was decided elsewhere: nothing is sent ({line back}: back)",
                None => {
                    "what it is for was drawn again: nothing is sent ({line back}: back to it, the text is kept)"
                }
            },
            Link::Connecting => "the host is starting: nothing is decided yet",
            Link::Ended if self.setup.reconnects => {
                "the host ended: nothing is decided ({line choose}: start it again, {line back}: back)"
            }
            Link::Ended => "the host ended: nothing is decided ({line back}: back)",
        };
        Some(self.keymap.with_keys(text))
    }

    /// Enter in the line of a decision that has no effect: the line stays, and a host that ended is started.
    pub(super) fn start_host_for(&mut self, prompt: Prompt) -> Vec<Effect> {
        self.layers.put_back(Layer::Prompt(prompt));
        match self.link {
            Link::Ended if self.setup.reconnects => self.bring_back(),
            Link::Ended | Link::Connecting | Link::Up => Vec::new(),
        }
    }

    /// Names the requests among these whose decision was confirmed or under way when the host ended, and was not
    /// taken.
    pub(super) fn note_undecided(&mut self, requests: &[ApprovalRequest]) {
        let waits = |request: &&ApprovalRequest| self.unconfirmed.contains(&request.id);
        let waiting: Vec<&ApprovalRequest> = requests.iter().filter(waits).collect();
        if waiting.is_empty() {
            return;
        }
        let askers: Vec<String> = waiting.iter().map(|request| request.asker()).collect();
        self.unconfirmed.retain(|id| !waiting.iter().any(|request| request.id == *id));
        let text = format!("your decision was not taken: {} waits for it again", askers.join(", "));
        self.say(Kind::Warned, text);
    }
}
