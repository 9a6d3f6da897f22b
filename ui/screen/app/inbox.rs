//! The card: one item of the inbox at a time, over the panes. Only a key of its own gives it the keys. A key decides a request
//! only after its card has been on the screen, unchanged and without another key, for a while.

use crate::screen::app::confirm::TOO_EARLY;
use crate::screen::app::{App, Asked, Confirm, Deciding, Effect, Focus, Layer, Link, TextFor};
use crate::screen::app::{Areas, panes};
use crate::screen::keys::{Action, Context};
use crate::screen::notice::Kind;
use crate::screen::pane::actionbar::Prompt;
use crate::screen::pane::actionbar::Purpose;
use crate::screen::pane::composer::Message;
use crate::screen::pane::inbox::{Attention, Inbox, verdict_words};
use crate::screen::pane::input::Input;
use crate::verb::Way;
use crate::wording::duration::elapsed_changes;
use crate::wording::matter::{By, Step, steps};
use crate::wording::{counted, rule, state};
use yoi::client::family::inbox::{self, Item};
use yoi::client::family::{Matter, equal};
use yoi::protocol::{
    self, ApprovalRequest, McpClient, Method, Pattern, PodName, Question, State, Verdict,
};
use yoi::text::SafeText;

/// The reason why a client cannot be allowed for its children.
const NO_TREE: &str = "a client has no children: {inbox allow-pod} allows it for good";

/// The reason why a question has no rule.
const NO_RULE_ANSWERS: &str = "no rule answers a question";

/// Rows that are scrolled at once.
const PAGE: isize = 5;
/// What the card says of an item that ended with its host.
pub(super) const HOST_ENDED: &str = "the host ended: nothing waits here now";
/// What is said where no card is left.
pub(super) const NO_CARD: &str = "nothing needs you";
/// Why a request is not allowed on a screen too small to show it.
pub(super) const NO_ROOM: &str = "there is no room to show what it wants: make the screen larger";

/// The approval requests that one decision is for, as they were when the key was pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenRequests {
    /// Their ids; one decision for all of them.
    pub ids: Vec<String>,
    pub pods: Vec<PodName>,
    /// The MCP client that asks, where no Pod does.
    pub client: Option<McpClient>,
    /// The Pods above all of them, the nearest first.
    pub roots: Vec<PodName>,
    /// The rule that allows them always, unless the person writes another one, and whom it is for.
    pub rule: Pattern,
    pub rule_scope: RuleScope,
    /// Whether no rule may come from the decision.
    pub once_only: Option<&'static str>,
}

/// The Pods that a rule is written for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleScope {
    Pod,
    Tree,
    /// For a Pod above all that ask, and everything below it.
    TreeOf(PodName),
}

impl App {
    /// The items of the cards: without the requests that this screen has decided and the host has not confirmed yet.
    pub fn items(&self) -> Vec<Item<'_>> {
        let open = |request: &&ApprovalRequest| {
            !self.deciding.contains_key(&request.id) && !self.covered.contains(&request.id)
        };
        inbox::items(&self.family).into_iter().filter_map(|item| item.only(open)).collect()
    }

    /// Whether a card has the keys.
    pub fn is_card_awake(&self) -> bool {
        self.focus == Focus::Inbox && self.layers.is_empty() && !self.leader
    }

    /// Whether a card is on the screen.
    pub fn has_card(&self) -> bool {
        let asleep = self.inbox.asleep && self.focus == Focus::Composer;
        let has_item = || self.inbox.ended().is_some() || !self.items().is_empty();
        (asleep || self.focus == Focus::Inbox) && has_item()
    }

    /// Whether a card is on the screen about what waits for the person: its head says how many there are.
    pub fn has_card_of_need(&self) -> bool {
        self.has_card() && self.chosen_item(|item| item.needs_person().then_some(())).is_some()
    }

    /// Keeps the card on its item, and notes what of it is in view. Where the item of a card with the keys ends by itself, the
    /// card stays and says so: the keys that are meant for it reach neither the draft nor another card. To be called after
    /// every message.
    pub(super) fn inbox_follows(&mut self) {
        if self.focus != Focus::Inbox && !self.inbox.asleep {
            return self.inbox.rests();
        }
        let has_keys = self.focus == Focus::Inbox;
        if !has_keys && let Some(at) = self.newly_urgent() {
            self.choose_item(at);
        }
        if has_keys && !self.inbox.is_among(&self.items()) {
            return self.inbox.end(self.why_ended());
        }
        // What a host that ended asked, the next one asks again: the card is drawn anew.
        self.inbox.goes_on();
        if has_keys && self.items().is_empty() {
            // The person went on from the last one: what comes next has no keys.
            (self.focus, self.inbox.asleep) = (Focus::Composer, false);
            return self.inbox.rests();
        }
        let attention = match has_keys {
            true if self.is_card_awake() => Attention::Here,
            true => Attention::Elsewhere,
            false => Attention::Asleep,
        };
        let left = self.with_items(|inbox, items| {
            inbox.follow(items, attention);
            !items.is_empty()
        });
        self.inbox.asleep &= left;
        if attention == Attention::Here
            && let Some(area) = Areas::of(self).card
        {
            let sight = panes::card(self).sight(area);
            self.inbox.saw(sight, area.width);
        }
    }

    /// Why the item of the card ended, where no decision says so.
    fn why_ended(&self) -> String {
        if self.link != Link::Up {
            return HOST_ENDED.into();
        }
        let Some((pod, matter)) = self.inbox.kept_pod() else {
            return "it does not wait any more".into();
        };
        match self.family.get(pod) {
            None => format!("{pod} was removed"),
            Some(info) if matter == Matter::Finished && info.state == State::Idle => {
                "it was looked at elsewhere".into()
            }
            Some(info) if matter == Matter::InCircles && info.state == State::Running => {
                "it does not go in circles any more".into()
            }
            Some(info) => format!("it does not need you any more: {}", state::of_pod(info)),
        }
    }

    /// The place of what came to need the person after the chosen card was drawn, where that card is less urgent.
    fn newly_urgent(&self) -> Option<usize> {
        let items = self.items();
        let is_due = |item: &Item<'_>| item.needs_person() && item.put_off(&self.family).is_none();
        let is_less_urgent = !self.inbox.chosen(&items).is_some_and(Item::needs_person);
        let is_new = |item: &Item<'_>| is_due(item) && self.inbox.is_new(item);
        items.iter().position(is_new).filter(|_| is_less_urgent)
    }

    /// When the clock of the card shows another time.
    pub(super) fn card_changes_at(&self) -> Option<u64> {
        self.chosen_item(|item| Some(elapsed_changes(item.since(), self.now)))
    }

    /// Leaves the card on the screen and gives the keys back to the line.
    pub(super) fn card_sleeps(&mut self) {
        if self.focus == Focus::Inbox {
            self.forget_requests();
            (self.focus, self.inbox.asleep) = (Focus::Composer, true);
        }
    }

    /// Gives the keys to the card, unless there is none.
    fn focus_inbox(&mut self) -> Vec<Effect> {
        if self.with_items(|inbox, items| inbox.choose(items, inbox.position(items))) {
            return self.focus(Focus::Inbox);
        }
        self.say(Kind::Info, NO_CARD)
    }

    /// Wakes the card that is on the screen, or shows that of the first item. If a card has the keys already, goes to the next
    /// one. The current Pod and its draft stay.
    pub(super) fn next_needs_you(&mut self) -> Vec<Effect> {
        match self.focus {
            Focus::Inbox => {
                self.choose_item(self.newly_urgent().unwrap_or_else(|| self.next_place()));
            }
            _ if self.has_card() => {}
            _ => self.choose_item(0),
        }
        self.focus_inbox()
    }

    /// The place of the item after that of the card; where that has ended, the next one has its place.
    fn next_place(&self) -> usize {
        self.inbox.position(&self.items()) + usize::from(self.inbox.ended().is_none())
    }

    /// The person is done with the card: the next one comes without the keys, and after the last the draft.
    pub(super) fn card_goes_on(&mut self) {
        let others = self.items().len() > usize::from(self.inbox.ended().is_none());
        self.choose_item(self.next_place());
        (self.focus, self.inbox.asleep) = (Focus::Composer, others);
    }

    /// Shows the card of the item at a place; behind the last comes the first.
    fn choose_item(&mut self, at: usize) {
        self.notices.end(TOO_EARLY);
        self.with_items(|inbox, items| inbox.choose(items, at % items.len().max(1)));
    }

    /// Gives the keys to the card of the item with this id, if that still waits.
    pub(super) fn wake_card_of(&mut self, id: &str) -> Vec<Effect> {
        let Some(at) = self.items().iter().position(|item| item.id() == id) else {
            return self.say(Kind::Info, "that does not wait any more");
        };
        self.choose_item(at);
        self.focus_inbox()
    }

    /// Changes the inbox by the items of the cards.
    fn with_items<T>(&mut self, change: impl FnOnce(&mut Inbox, &[Item<'_>]) -> T) -> T {
        let mut inbox = std::mem::take(&mut self.inbox);
        let changed = change(&mut inbox, &self.items());
        self.inbox = inbox;
        changed
    }

    /// Shows the transcript of the Pod that the card is about, as long as that has the keys; Esc leads back to the card.
    fn look_inside(&mut self) -> Vec<Effect> {
        let Some(pod) = self.chosen_item(|item| item.pod().cloned()) else {
            return self.say(Kind::Info, "a client has no transcript");
        };
        let effects = self.focus(Focus::Transcript);
        self.inbox.inside = Some(pod);
        effects
    }

    /// Puts off what the card is about. The next card comes without the keys, as after an answer.
    fn put_off(&mut self) -> Vec<Effect> {
        // A request of no Pod is named by its id.
        let name = |item: &Item<'_>| {
            Some(item.put_off_with().map_or_else(|| item.id(), PodName::to_string))
        };
        let Some(name) = self.chosen_item(name) else { return Vec::new() };
        self.card_goes_on();
        self.carry_out(&format!("later {name}"), Way::Key)
    }

    /// Notes that the person has seen the result that the card is about.
    fn card_seen(&mut self) -> Vec<Effect> {
        match self.chosen_item(|item| item.finished().cloned()) {
            Some(pod) => {
                self.card_goes_on();
                self.look_at(&pod)
            }
            None => self.say(Kind::Info, "only a result is seen; this waits for you"),
        }
    }

    /// Whether the card is about a result that was not looked at.
    pub(super) fn is_finished_item(&self) -> bool {
        self.chosen_item(|item| item.finished().cloned()).is_some()
    }

    fn explain_item(&mut self) -> Vec<Effect> {
        match self.chosen_item(|item| item.pod().cloned()) {
            Some(pod) => self.carry_out(&format!("explain {pod}"), Way::Key),
            None => self.say(Kind::Info, "a client has no state to explain"),
        }
    }

    /// Back to the card from the transcript of its Pod. `false` where no card led there.
    pub(super) fn leave_inside(&mut self) -> bool {
        let was_inside = self.inbox.inside.take().is_some() && self.focus == Focus::Transcript;
        if was_inside {
            self.focus(Focus::Inbox);
        }
        was_inside
    }

    pub(super) fn inbox_key(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::AllowOnce
            | Action::AllowEach
            | Action::AllowPod
            | Action::AllowTree
            | Action::Deny => {
                return self.decision_key(action);
            }
            _ => self.inbox.distracted(self.now),
        }
        match action {
            Action::Up => self.inbox_step(-1),
            Action::Down => self.inbox_step(1),
            Action::PageUp => self.inbox_scroll(-PAGE),
            Action::PageDown => self.inbox_scroll(PAGE),
            // It never allows.
            Action::LookInside => return self.look_inside(),
            Action::Later => return self.put_off(),
            Action::Seen => return self.card_seen(),
            Action::Explain => return self.explain_item(),
            Action::Copy => return self.copy_action(),
            // A message that begins here is for the Pod that waits.
            Action::OpenPod | Action::Composer => return self.open_requesting_pod(),
            other => return self.everywhere(other),
        }
        Vec::new()
    }

    fn inbox_step(&mut self, by: isize) {
        let items = self.items();
        let last = items.len().saturating_sub(1);
        let at = self.inbox.position(&items).saturating_add_signed(by).min(last);
        self.choose_item(at);
    }

    pub(super) fn inbox_scroll(&mut self, by: isize) {
        let Some(area) = Areas::of(self).card else { return };
        let sight = panes::card(self).sight(area);
        // No row is passed over, and none below the last is shown.
        let by = by.clamp(-PAGE, isize::try_from(sight.shown).unwrap_or(PAGE));
        let most = sight.all.saturating_sub(usize::from(area.height).saturating_sub(1));
        self.inbox.scrolled = sight.first.saturating_add_signed(by).min(most);
    }

    fn chosen_item<'a, T>(&'a self, read: impl FnOnce(&Item<'a>) -> Option<T>) -> Option<T> {
        let items = self.items();
        self.inbox.chosen(&items).and_then(read)
    }

    /// The Pod that the card is about, also where it does not wait any more; `None` for a client.
    pub(super) fn pod_of_card(&self) -> Option<&PodName> {
        let ended = self.inbox.ended_item();
        ended.and_then(|item| item.pod()).or_else(|| self.chosen_item(Item::pod))
    }

    /// Who waits with the card, in a word.
    pub(super) fn asker_of_card(&self) -> String {
        let asker = |item: &Item<'_>| {
            let client = item.approvals().first().map(|request| request.asker());
            item.pod().map(PodName::to_string).or(client)
        };
        self.chosen_item(asker).unwrap_or_default()
    }

    /// How many equal requests the chosen row stands for; 0 where it stands for none.
    pub(super) fn equal_requests(&self) -> usize {
        self.chosen_item(|item| Some(item.approvals().len())).unwrap_or(0)
    }

    pub(super) fn chosen_requests(&self) -> Option<ChosenRequests> {
        self.chosen_item(|item| {
            let rule = item.approvals().first()?.rule.clone();
            let client = item.approvals().first().and_then(|approval| approval.client.clone());
            let of_pods = item.approvals().iter().filter(|approval| approval.client.is_none());
            let pods = distinct(of_pods.map(|approval| approval.pod.clone()));
            let ids = item.approvals().iter().map(|approval| approval.id.clone()).collect();
            let roots = equal::roots(item.approvals());
            let once_only = item.approvals().first().and_then(|approval| rule::once_only(approval));
            let rule_scope = RuleScope::Pod;
            Some(ChosenRequests { ids, pods, client, roots, rule, rule_scope, once_only })
        })
    }

    fn copy_action(&mut self) -> Vec<Effect> {
        let action = self
            .chosen_item(|item| item.approvals().first().map(|approval| approval.action.clone()));
        match action {
            Some(action) => self.copy(action),
            None => self.say(Kind::Info, "nothing to copy here"),
        }
    }

    fn open_requesting_pod(&mut self) -> Vec<Effect> {
        match self.chosen_item(|item| item.pod().cloned()) {
            Some(pod) => self.make_current(&pod),
            // A client has no transcript.
            None => self.focus(Focus::Composer),
        }
    }

    /// Enter behind the message to the Pod of the card, which enters its run.
    pub(super) fn message_entered(&mut self, mut prompt: Prompt) -> Vec<Effect> {
        let text = prompt.input.text().trim().to_owned();
        let pod = self.chosen_item(|item| item.pod().cloned());
        let (Some(pod), false) = (pod, text.is_empty()) else {
            let why = self.inbox.ended().unwrap_or("the message is empty");
            let back = self.keymap.with_keys("nothing is sent ({line back}: back)");
            prompt.wrong = Some(format!("{why}: {back}"));
            self.layers.put_back(Layer::Prompt(prompt));
            return Vec::new();
        };
        let message = Message::plain(&text);
        self.composer.history.add(&message, self.now);
        self.inbox.keep_typed(Purpose::Message, None);
        self.card_goes_on();
        self.send_to(&pod, message)
    }

    /// The question of the chosen item.
    pub(super) fn chosen_question(&self) -> Option<Question> {
        self.chosen_item(|item| item.approvals().first()?.question.clone())
    }

    /// What the digits do about the chosen item.
    pub(super) fn steps(&self) -> Vec<Step> {
        self.chosen_item(|item| Some(steps(item))).unwrap_or_default()
    }

    /// Writes what a digit does into a line, which Enter sends: the verb of a step, or the choice that it selects of a
    /// question, or the digit. `None` where no digit is meant.
    pub(super) fn digit_answers(&mut self, c: char) -> Option<Vec<Effect>> {
        let digit = usize::try_from(c.to_digit(10).filter(|_| self.focus == Focus::Inbox)?).ok()?;
        if let Some(step) = digit.checked_sub(1).and_then(|at| self.steps().into_iter().nth(at)) {
            let effects = match step.by {
                By::Verb(line) => self.open_line(&line),
                By::Message(text) => self.open_card_line(Purpose::Message, text),
            };
            self.inbox.steps = true;
            return Some(effects);
        }
        let question = self.chosen_question()?;
        let choices = question.choices();
        let choice = digit.checked_sub(1).and_then(|at| choices.get(at).cloned());
        let effects = self.decision_key(Action::AllowOnce);
        if let Some(Layer::Prompt(mut prompt)) = self.layers.pop() {
            let choice = choice.unwrap_or_else(|| c.to_string());
            // Words that were typed behind this choice before are there again.
            let goes_on = prompt.input.text().starts_with(&choice);
            if prompt.purpose == Purpose::Answer && !goes_on {
                prompt = Prompt::new(Purpose::Answer, &choice, &self.sources());
            }
            self.layers.put_back(Layer::Prompt(prompt));
        }
        Some(effects)
    }

    /// Opens the line for the answer to the questions.
    fn open_answer(&mut self, requests: ChosenRequests, question: &Question) -> Vec<Effect> {
        let names = question.fields.iter().map(|field| format!("{}=", field.name));
        let text = match question.fields.len() {
            0 => "yes".to_owned(),
            1 => String::new(),
            _ => names.collect::<Vec<_>>().join(" "),
        };
        self.decided_by_line = Some(requests);
        self.open_card_line(Purpose::Answer, &text)
    }

    /// Opens a line of the card: with `text`, or with what was typed into such a line of this card and not sent.
    pub(super) fn open_card_line(&mut self, purpose: Purpose, text: &str) -> Vec<Effect> {
        let mut prompt = Prompt::new(purpose, text, &self.sources());
        if let Some(typed) = self.inbox.typed(purpose) {
            prompt.input = Input::new(typed);
        }
        self.open_layer(Layer::Prompt(prompt))
    }

    /// Sends the answer in the line, or says above it what is wrong.
    pub(super) fn answer_entered(&mut self, mut prompt: Prompt) -> Vec<Effect> {
        if self.now < self.guard.decides {
            return self.too_early(prompt);
        }
        let Some(requests) = self.decided_by_line.take() else { return Vec::new() };
        let is_one = |approval: &&ApprovalRequest| requests.ids.contains(&approval.id);
        let approval = self.family.approvals().iter().find(is_one);
        let question = approval.and_then(|approval| approval.question.as_ref());
        let Some(question) = question else { return Vec::new() };
        match question.read(prompt.input.text()) {
            Ok(values) => {
                self.decide_with(&requests, &Verdict::Answer { values }, prompt.input.text())
            }
            Err(why) => {
                self.decided_by_line = Some(requests);
                prompt.wrong = Some(why);
                self.layers.put_back(Layer::Prompt(prompt));
                Vec::new()
            }
        }
    }

    /// Enter before the card, for which the line decides, was on the screen for a while: the line stays.
    pub(super) fn too_early(&mut self, prompt: Prompt) -> Vec<Effect> {
        self.layers.put_back(Layer::Prompt(prompt));
        self.say(Kind::Info, TOO_EARLY)
    }

    fn decision_key(&mut self, action: Action) -> Vec<Effect> {
        let question = self.chosen_question();
        let decides = question.is_none() && matches!(action, Action::AllowOnce | Action::AllowEach);
        let arms_at = self.inbox.arms_at();
        self.inbox.pressed(self.now);
        // A key that only opens a line decides nothing; Enter behind the line does.
        if arms_at.is_none_or(|at| decides && self.now < at) {
            return self.say(Kind::Info, TOO_EARLY);
        }
        self.guard.decides = arms_at.unwrap_or_default();
        let Some(requests) = self.chosen_requests() else {
            return self.say(Kind::Info, "there is no request here");
        };
        let requests = if action == Action::AllowOnce { requests.oldest() } else { requests };
        if question.is_some() && matches!(action, Action::AllowPod | Action::AllowTree) {
            return self.say(Kind::Info, NO_RULE_ANSWERS);
        }
        if let Some(why) = requests.once_only
            && matches!(action, Action::AllowPod | Action::AllowTree)
        {
            return self.say(Kind::Info, why);
        }
        if let (Action::AllowTree, Some(why)) = (action, rule::only_for_pods(&requests.rule)) {
            return self.say(Kind::Info, why);
        }
        if requests.ids.iter().any(|id| self.deciding.contains_key(id)) {
            return self.say(Kind::Info, "its decision is under way");
        }
        if action != Action::Deny
            && let Some(unread) = self.unread_request()
        {
            return self.say(Kind::Info, unread);
        }
        match action {
            Action::AllowPod => self.open_rule(requests, RuleScope::Pod),
            Action::AllowTree if requests.client.is_some() => {
                self.say(Kind::Info, self.keymap.with_keys(NO_TREE))
            }
            Action::AllowTree => self.open_rule(requests, RuleScope::Tree),
            Action::Deny => {
                self.decided_by_line = Some(requests);
                self.open_card_line(Purpose::Deny, "")
            }
            _ => match question {
                Some(question) => self.open_answer(requests, &question),
                None => self.decide(&requests, &Verdict::Once),
            },
        }
    }

    /// The notice for a key that allows a request of which a part was never in view.
    fn unread_request(&mut self) -> Option<String> {
        let Some(area) = Areas::of(self).card else { return Some(NO_ROOM.into()) };
        let sight = panes::card(self).sight(area);
        self.inbox.saw(sight, area.width);
        self.inbox.back_to_unseen(sight);
        match self.inbox.unseen(sight) {
            0 => None,
            _ if sight.shown == 0 => Some(NO_ROOM.into()),
            rows => {
                let key = self.keymap.name(Context::Everywhere, Action::PageDown);
                let lines = counted(rows, "more line", "more lines");
                Some(format!("{key} first: {lines}, then the key again"))
            }
        }
    }

    /// Sends one verdict for each of the requests.
    fn decide(&mut self, requests: &ChosenRequests, verdict: &Verdict) -> Vec<Effect> {
        self.decide_with(requests, verdict, "")
    }

    /// Sends one verdict for each of the requests, and keeps the text that was typed for it until the host has it.
    pub(super) fn decide_with(
        &mut self,
        requests: &ChosenRequests,
        verdict: &Verdict,
        text: &str,
    ) -> Vec<Effect> {
        let call = |id: &String| Effect::Call {
            pod: None,
            method: Method::Decide { approval: id.clone(), verdict: verdict.clone() },
            asked: Asked::Decision(id.clone()),
        };
        let (text, together) = (Message::plain(text.trim()), requests.ids.clone());
        let deciding = Deciding { text, together, asker: None };
        self.deciding.extend(requests.ids.iter().map(|id| (id.clone(), deciding.clone())));
        self.card_sleeps();
        requests.ids.iter().map(call).collect()
    }

    /// Denies the requests with the reason that was typed.
    pub(super) fn deny(&mut self, reason: &str) -> Vec<Effect> {
        let Some(requests) = self.decided_by_line.take() else { return Vec::new() };
        self.decide_with(&requests, &Verdict::Deny { reason: reason.trim().to_owned() }, reason)
    }

    /// A request was decided or withdrawn. A layer that was about to decide it is closed, and a notice says whether
    /// this screen or another client decided.
    pub(super) fn request_decided(
        &mut self,
        approval: &protocol::ApprovalRequest,
        verdict: &Verdict,
    ) -> Vec<Effect> {
        let id = approval.id.as_str();
        self.inbox.forget_typed(id);
        let is_covered = self.covered.remove(id);
        let ours = self.deciding.contains_key(id);
        let looking = self.is_about(id);
        if !ours && looking {
            let line = self.decided_by_line.take();
            // A line that is being typed stays: its text would go on into another line.
            self.close_layers(|layer| {
                !matches!(layer, Layer::Prompt(_)) && is_about(layer, line.as_ref(), id)
            });
            if let Some(Layer::Prompt(prompt)) = self.layers.top() {
                self.keep_typed(&prompt.clone());
            }
        }
        if is_covered && *verdict == Verdict::Once {
            // The notice of the rule says it.
            return Vec::new();
        }
        let asker = match ours {
            true => match self.decided_together(id, approval.asker()) {
                Some(askers) => askers,
                None => return Vec::new(),
            },
            false => approval.asker(),
        };
        let what = SafeText::spelled(approval.line());
        let text = match verdict {
            Verdict::Withdrawn { why } => format!("{asker} withdrew its request: {why}"),
            verdict if ours => {
                format!("{asker}: {} · {what}", verdict_words(verdict))
            }
            verdict => {
                format!("decided elsewhere · {asker}: {} · {what}", verdict_words(verdict))
            }
        };
        let is_over = self.inbox.is_about(id) && !self.inbox.is_among(&self.items());
        if !ours && is_over && self.focus == Focus::Inbox {
            self.inbox.end(match verdict {
                Verdict::Withdrawn { why } => format!("the request was withdrawn: {why}"),
                verdict => format!("it was decided elsewhere: {}", verdict_words(verdict)),
            });
        }
        if ours || looking || self.has_card() {
            return self.say(if ours { Kind::Done } else { Kind::Info }, text);
        }
        Vec::new()
    }

    /// Notes that the host took the decision of this screen on a request. Once none of those that were decided together is
    /// under way, returns all that asked.
    fn decided_together(&mut self, id: &str, asker: String) -> Option<String> {
        let decision = self.deciding.get_mut(id)?;
        decision.asker = Some(asker);
        let together = decision.together.clone();
        let decided = |id: &String| Some(self.deciding.get(id)?.asker.clone());
        let askers: Option<Vec<String>> = together.iter().filter_map(decided).collect();
        let names = distinct(askers?);
        self.deciding.retain(|id, _| !together.contains(id));
        Some(names.join(", "))
    }

    /// Whether the topmost layer is about this request.
    fn is_about(&self, id: &str) -> bool {
        let line = self.decided_by_line.as_ref();
        self.layers.top().is_some_and(|layer| is_about(layer, line, id))
    }
}

/// Each of these once, where it came first.
fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for one in all {
        if !distinct.contains(&one) {
            distinct.push(one);
        }
    }
    distinct
}

/// Whether a layer is about this request; `line` holds the requests that a typed reason or rule is for.
fn is_about(layer: &Layer, line: Option<&ChosenRequests>, id: &str) -> bool {
    let has = |requests: &ChosenRequests| requests.ids.iter().any(|known| known == id);
    match layer {
        Layer::Prompt(prompt) if prompt.purpose.decides() => line.is_some_and(has),
        Layer::Confirm(Confirm::Offered { text_for: TextFor::Reason, .. }) => line.is_some_and(has),
        Layer::Prompt(_) | Layer::List(_) | Layer::Confirm(_) | Layer::Key(_) => false,
    }
}

impl ChosenRequests {
    /// The oldest of these requests alone.
    pub(super) fn oldest(mut self) -> Self {
        self.ids.truncate(1);
        self.pods.truncate(1);
        self
    }
}
