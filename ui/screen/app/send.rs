//! Sending a message: its Pod is created, restored or given a model first where that is needed, and a
//! refused message returns to the composer.

use crate::screen::app::{App, Asked, Confirm, Effect, Layer, RequestToken, TextFor};
use crate::screen::keys::{Action, Context};
use crate::screen::notice::Kind;
use crate::screen::pane::composer::Message;
use crate::screen::pane::transcript::Scroll;
use crate::verb::Way;
use crate::verb::line::{offered, offered_at_end, unusual};
use crate::wording::why::WayOn;
use yoi::client::family::inbox::Item;
use yoi::protocol::method::NewPod;
use yoi::protocol::{ApprovalRequest, Method, PodInfo, PodName, Queued, State};

impl App {
    /// Enter in the composer.
    pub(super) fn enter(&mut self) -> Vec<Effect> {
        if self.composer.newline_after_backslash() {
            return Vec::new();
        }
        if self.composer.is_empty() {
            return self.enter_on_nothing();
        }
        let text = match self.whole_text() {
            Ok(text) => text,
            Err(said) => return said,
        };
        if let Some(sentence) = self.question_of_current() {
            let text_for = TextFor::Message;
            return self.open_layer(Layer::Confirm(Confirm::Unusual { sentence, text_for }));
        }
        match self.offered_verb(&text, TextFor::Message) {
            Some(offer) => self.open_layer(Layer::Confirm(offer)),
            None => self.send_draft(),
        }
    }

    /// Why a text for the current Pod may be meant as the answer to its question, which is given elsewhere.
    fn question_of_current(&self) -> Option<String> {
        let name = self.current.as_ref()?;
        let is_question =
            |request: &&ApprovalRequest| request.is_of(name) && request.question.is_some();
        self.items().iter().flat_map(Item::approvals).find(|request| is_question(request))?;
        let key = self.keymap.name(Context::Everywhere, Action::NextNeedsYou);
        Some(format!(
            "{name} waits for the answer to its question, and this text would not be the answer: it would be a \
             message for the run. {key} leads to the question"
        ))
    }

    /// The text of the draft. One with a part of a paste's chip is not sent, and the notice says why: the model would
    /// get the part, and not the paste.
    fn whole_text(&mut self) -> Result<String, Vec<Effect>> {
        let Some(id) = self.composer.draft().broken_paste() else {
            return Ok(self.composer.draft().message().text);
        };
        let undo = self.keymap.label(Context::Composer, Action::Undo);
        let text = format!(
            "paste #{id} is not whole: {undo} brings it back, or delete what is left of it"
        );
        Err(self.say(Kind::Refused, text))
    }

    /// What a person is asked before a text is sent: whether to run the verb that it looks like or ends in, or to send
    /// what has the form of a command.
    pub(super) fn offered_verb(&self, text: &str, text_for: TextFor) -> Option<Confirm> {
        if let Some(line) = offered(text) {
            return Some(Confirm::Offered { before: String::new(), line, text_for });
        }
        if let Some(sentence) = unusual(text).filter(|_| text_for != TextFor::Reason) {
            return Some(Confirm::Unusual { sentence, text_for });
        }
        let is_pod =
            |word: &str| PodName::parse(word).is_ok_and(|name| self.family.get(&name).is_some());
        let (before, line) = offered_at_end(text, is_pod)?;
        Some(Confirm::Offered { before, line, text_for })
    }

    fn enter_on_nothing(&mut self) -> Vec<Effect> {
        let Some(info) = self.info() else { return self.enter_on_first_screen() };
        if info.state == State::NeedsYou
            && let Some(confirm) = Confirm::first_message(info, None)
        {
            return self.open_layer(Layer::Confirm(confirm));
        }
        if let Some(line) = self.resumes_together(info) {
            return self.carry_out(&line, Way::Key);
        }
        let pod = info.name.clone();
        let method = match (info.state, info.queue.iter().find(|queued| !queued.enters)) {
            (State::Paused | State::Failed, _) => Method::Resume,
            (State::Idle, None) if WayOn::of(info).is_some() => Method::Resume,
            (State::Running, _) if info.retry_at.is_some() => Method::Resume,
            (State::Stopped | State::Damaged, _) | (_, None) => return Vec::new(),
            (_, Some(queued)) => Method::Steer { id: Some(queued.id.clone()), input: Vec::new() },
        };
        let asked = match (&method, info.state) {
            (Method::Steer { .. }, State::Running) => Asked::Steered,
            _ => Asked::Quietly,
        };
        vec![Effect::Call { pod: Some(pod), method, asked }]
    }

    /// The verb that goes on with all runs that the end of a host interrupted. An empty Enter offers it where the Pod shown
    /// has one of them, or has nothing to do.
    pub(super) fn resumes_together(&self, info: &PodInfo) -> Option<String> {
        let cut = self.family.cut_off();
        let rests = info.state == State::Idle && info.queue.is_empty() && WayOn::of(info).is_none();
        let offers = if info.cut_at.is_some() { cut.len() > 1 } else { rests && !cut.is_empty() };
        let names = || cut.iter().map(|info| info.name.as_str()).collect::<Vec<_>>().join(" ");
        offers.then(|| format!("resume {}", names()))
    }

    /// Sends the draft to the current Pod, or to a new one if there is none.
    pub(super) fn send_draft(&mut self) -> Vec<Effect> {
        if !self.family.is_known() {
            return self.say(Kind::Info, "not connected to the host yet");
        }
        let Some(name) = self.current.clone() else {
            if self.creating {
                return self.say(Kind::Info, "the Pod for the message before is being made");
            }
            let message = self.take();
            return self.create_for(message);
        };
        if self.current_is_gone && self.family.get(&name).is_some() {
            let text = format!("another Pod has the name {name} now · :open {name} writes to it");
            return self.say(Kind::Refused, text);
        }
        if self.family.get(&name).is_none() {
            return self.say(Kind::Refused, self.gone(&name));
        }
        let message = self.take();
        self.send_to(&name, message)
    }

    /// Sends the message of the command line, as Enter would; the draft of the earlier screen stays in the line.
    pub(super) fn send_first_message(&mut self) -> Vec<Effect> {
        let Some(text) = self.first_message.take() else { return Vec::new() };
        let message = Message::plain(&text);
        self.composer.history.add(&message, self.now);
        match self.current.clone() {
            Some(name) => self.send_to(&name, message),
            None => self.create_for(message),
        }
    }

    fn take(&mut self) -> Message {
        let message = self.composer.take();
        self.composer.history.add(&message, self.now);
        message
    }

    fn create_for(&mut self, message: Message) -> Vec<Effect> {
        self.creating = true;
        let token = self.request_token();
        let method = Method::New(NewPod {
            name: self.initial_pod.clone(),
            cwd: self.setup.cwd.clone(),
            model: self.model.clone(),
            effort: self.setup.effort,
            env: self.setup.env.clone(),
            ..NewPod::default()
        });
        vec![Effect::Call { pod: None, method, asked: Asked::NewFor(message, token) }]
    }

    /// Sends a message, after a confirmation of the model and a restore where they are needed.
    pub(super) fn send_to(&mut self, name: &PodName, message: Message) -> Vec<Effect> {
        let Some(info) = self.family.get(name) else {
            return self.say(Kind::Refused, format!("no Pod named {name}"));
        };
        if let Some(confirm) = Confirm::first_message(info, Some(&message)) {
            return self.open_layer(Layer::Confirm(confirm));
        }
        self.restore_and_send(name, message)
    }

    /// Sends a message; a Pod that is stopped or failed is restored first.
    pub(super) fn restore_and_send(&mut self, name: &PodName, message: Message) -> Vec<Effect> {
        let state = self.family.get(name).map(|info| info.state);
        if !state.is_some_and(State::can_be_restored) {
            return self.send_now(name, message);
        }
        let method = Method::Restore { name: name.to_string() };
        let asked = Asked::ReadyFor(name.clone(), message);
        vec![Effect::Call { pod: None, method, asked }]
    }

    /// Sends a message; into the run if one is under way.
    pub(super) fn send_now(&mut self, name: &PodName, message: Message) -> Vec<Effect> {
        let input = message.segments.clone();
        let method = if self.family.get(name).is_some_and(|info| self.runs(info)) {
            Method::Steer { id: None, input }
        } else {
            Method::Send { input, queue: true }
        };
        self.send_by(name, message, method)
    }

    /// Whether a run of the Pod is under way; one that waits for a decision is, one that has no key is not.
    pub(super) fn runs(&self, info: &PodInfo) -> bool {
        match info.state {
            State::Running => true,
            State::NeedsYou => self.family.approvals().iter().any(|asked| asked.is_of(&info.name)),
            _ => false,
        }
    }

    fn send_by(&mut self, name: &PodName, message: Message, method: Method) -> Vec<Effect> {
        if let Some(transcript) = self.transcripts.get_mut(name) {
            transcript.scroll(Scroll::Tail);
        }
        self.notices.went_on();
        let asked = Asked::Send(name.clone(), message, self.request_token());
        vec![Effect::Call { pod: Some(name.clone()), method, asked }]
    }

    /// The host refused a message because its Pod found a model that no person agreed to: the person is
    /// asked now, or, when something else was done meanwhile, by the next message.
    pub(super) fn sending_refused(
        &mut self,
        pod: &PodName,
        message: &Message,
        token: &RequestToken,
    ) -> bool {
        let Some(info) = self.family.get(pod) else { return false };
        let waits = self.still_waits(token) && self.selected() == Some(pod);
        if !waits || !self.layers.is_empty() {
            return false;
        }
        match Confirm::first_message(info, Some(message)) {
            Some(confirm) => {
                self.open_layer(Layer::Confirm(confirm));
                true
            }
            None => {
                self.refused_message = Some((pod.clone(), token.clone()));
                false
            }
        }
    }

    /// The event about the model of a Pod may come after the refusal of the message that found it: then the
    /// person is asked now, while nothing else was done.
    pub(super) fn model_came(&mut self, pod: &PodName) {
        let Some((of, token)) = self.refused_message.take() else { return };
        let is_asked = self.family.get(pod).is_some_and(|info| info.model_sends.is_some());
        if of != *pod || !is_asked {
            self.refused_message = Some((of, token));
            return;
        }
        let here = self.selected() == Some(pod) && self.current.as_ref() == Some(pod);
        let free = self.layers.is_empty() && !self.composer.is_empty();
        if here && free && self.still_waits(&token) {
            let message = self.composer.take();
            self.sending_refused(pod, &message, &token);
        }
    }

    /// Whether the key that queues does so here: at the end of a text, while the Pod runs.
    pub(super) fn can_queue(&self) -> bool {
        let draft = self.composer.draft();
        !draft.is_empty() && draft.is_at_end() && self.info().is_some_and(|info| self.runs(info))
    }

    /// The key that queues the draft.
    pub(super) fn queue(&mut self) -> Vec<Effect> {
        let text = match self.whole_text() {
            Ok(text) => text,
            Err(said) => return said,
        };
        match self.offered_verb(&text, TextFor::Queue) {
            Some(offer) => self.open_layer(Layer::Confirm(offer)),
            None => self.queue_draft(),
        }
    }

    /// Puts the draft into the queue of the current Pod; it is sent at once where no run is under way.
    pub(super) fn queue_draft(&mut self) -> Vec<Effect> {
        if self.composer.is_empty() {
            return self.say(Kind::Info, "write the message first");
        }
        let running = self.info().filter(|info| self.runs(info)).map(|info| info.name.clone());
        let Some(pod) = running else { return self.send_draft() };
        let message = self.take();
        let method = Method::Send { input: message.segments.clone(), queue: true };
        self.send_by(&pod, message, method)
    }

    /// Notes the messages that have not entered a run which this screen interrupts.
    pub(super) fn takes_back(&mut self, pod: &PodName) {
        let Some(info) = self.family.get(pod) else { return };
        let entering = info.queue.iter().filter(|queued| queued.enters);
        self.taken_back.extend(entering.map(|queued| (pod.clone(), queued.id.clone())));
    }

    /// Brings the messages that had not entered an interrupted run back into the draft, once the run has halted.
    pub(super) fn bring_back_unentered(&mut self, pod: &PodName) -> Vec<Effect> {
        let Some(info) = self.family.get(pod).filter(|info| !self.runs(info)) else {
            return Vec::new();
        };
        let (of_pod, others): (Vec<_>, _) =
            std::mem::take(&mut self.taken_back).into_iter().partition(|(of, _)| of == pod);
        let queued =
            info.queue.iter().filter(|queued| of_pod.iter().any(|(_, id)| *id == queued.id));
        let queued: Vec<Queued> = queued.cloned().collect();
        self.taken_back = others;
        queued.iter().map(|queued| self.take_out(pod, queued)).collect()
    }

    /// Takes a queued message back into the empty composer.
    pub(super) fn unqueue(&mut self, pod: &PodName, id: &str) -> Vec<Effect> {
        let Some(info) = self.family.get(pod) else { return Vec::new() };
        let Some(queued) = info.queue.iter().find(|queued| queued.id == id) else {
            return self.say(Kind::Info, "it was sent already");
        };
        if queued.enters {
            let text = "it enters the run next · :pause takes it back";
            return self.say(Kind::Info, text);
        }
        if !self.composer.is_empty() {
            return self.say(Kind::Refused, "send or clear what is written first");
        }
        let queued = queued.clone();
        vec![self.take_out(pod, &queued)]
    }

    /// Takes a message out of the queue, for the draft. It is in the history already when the host drops it, so that a
    /// screen that ends before the reply loses nothing.
    fn take_out(&mut self, pod: &PodName, queued: &Queued) -> Effect {
        let message = Message::of(&queued.input);
        self.composer.history.keep(&message, self.now);
        let method = Method::EditQueued { id: queued.id.clone(), input: None };
        Effect::Call { pod: Some(pod.clone()), method, asked: Asked::Unqueue(pod.clone(), message) }
    }
}
