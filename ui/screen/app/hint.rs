//! The hints and counts of the action bar, computed from the state.

use crate::screen::app::{App, Focus, KeyState, Layer, Link, OpenPage, Page};
use crate::screen::keys::{Action, Binding, Context, label};
use crate::screen::pane::actionbar::{Hint, Purpose, answers_that_fit};
use crate::screen::pane::transcript::{Search, Transcript};
use crate::theme::Role;
use crate::wording::rule::only_for_pods;
use crate::wording::wait;
use crate::wording::why::WayOn;
use yoi::client::family::inbox::waiting;
use yoi::protocol::{GoesOnBy, PodInfo, PodName, Question, State};

/// From this many columns on there is room for hints and counts.
const WIDE: u16 = 64;

impl App {
    /// The hints, the most useful first.
    pub fn hints(&self) -> Vec<Hint> {
        if self.leader {
            let leader = self.keymap.label(Context::Everywhere, Action::Leader);
            let back = self.keymap.label(Context::Leader, Action::Back);
            return vec![Hint::new(leader, "and then …"), Hint::new(back, "leaves")];
        }
        match self.link {
            Link::Ended => return self.ended_hints(),
            Link::Connecting => return vec![Hint::new("", "starting the host …")],
            Link::Up => {}
        }
        // The panes below a layer get no keys.
        match self.layers.top() {
            // It names its keys itself.
            Some(Layer::Confirm(_)) => return Vec::new(),
            Some(Layer::Prompt(prompt)) => {
                let keys = |action| self.list_hints(Context::Line, &[action]);
                let finds = prompt.purpose == Purpose::Find;
                let found = self.found_hint().filter(|_| finds);
                let mut hints: Vec<Hint> = found.into_iter().collect();
                if self.undecided(prompt).is_none() {
                    hints.extend(keys((Action::Choose, prompt.purpose.does())));
                }
                hints.extend(self.other_scope_hint());
                hints.extend(keys((Action::Back, self.layer_back("back"))));
                return hints;
            }
            Some(Layer::Key(line)) => {
                let typing = matches!(line.state, KeyState::Typing { .. });
                let tries = (Action::Choose, "tries it");
                let leaves = if typing { "leaves and forgets it" } else { "leaves it" };
                let leaves = (Action::Back, self.layer_back(leaves));
                let actions = if typing { vec![tries, leaves] } else { vec![leaves] };
                return self.list_hints(Context::Line, &actions);
            }
            Some(Layer::List(_)) => {
                let mut hints = vec![Hint::new("", "type to search")];
                let choose = [(Action::Choose, "chooses")];
                hints.extend(self.list_hints(Context::Line, &choose));
                hints.extend(self.list_hints(Context::Everywhere, &[(Action::PageDown, "more")]));
                let back = [(Action::Back, self.layer_back("back"))];
                hints.extend(self.list_hints(Context::Line, &back));
                return hints;
            }
            None => {}
        }
        let mut hints: Vec<Hint> =
            self.under_way().into_iter().map(|what| Hint::new("", what)).collect();
        hints.extend(self.focus_hints());
        hints
    }

    fn focus_hints(&self) -> Vec<Hint> {
        match self.focus {
            Focus::Composer => self.composer_hints(),
            Focus::Tree => self.tree_hints(),
            Focus::Peers => self.list_hints(
                Context::Peers,
                &[
                    (Action::Choose, self.contact_hint()),
                    (Action::Explain, "explain"),
                    (Action::Menu, "verbs"),
                    (Action::Composer, "write"),
                    (Action::Keys, "keys"),
                ],
            ),
            Focus::Transcript | Focus::Beside => self.transcript_hints(),
            Focus::Inbox => self.card_hints(),
            Focus::Page => self.page_hints(),
        }
    }

    /// The effect of the key that leaves a layer: above it, it closes the help on the layer first.
    fn layer_back(&self, does: &'static str) -> &'static str {
        if self.explains_layer() { "closes the help" } else { does }
    }

    fn page_hints(&self) -> Vec<Hint> {
        // Each look lays out the rows of the page.
        let leads = self.leads_somewhere();
        let copies = if leads { "copy" } else { "copy all" };
        let mut actions = vec![
            (Action::Choose, "go there"),
            (Action::Seen, "seen"),
            (Action::Down, "further"),
            (Action::Copy, copies),
            (Action::Composer, "write"),
            (Action::Keys, "keys"),
        ];
        let is_since = matches!(&self.page, Some(OpenPage { page: Page::Since(_), .. }));
        actions.retain(|(action, _)| match action {
            Action::Choose => leads,
            Action::Seen => is_since && leads,
            Action::Down => !leads && self.page_goes_on(),
            _ => true,
        });
        let mut hints = self.list_hints(Context::Page, &actions);
        hints.insert(hints.len().min(2), Hint::new(self.back_key(), "closes it"));
        hints
    }

    /// The effect of choosing the row of the peers pane.
    fn contact_hint(&self) -> &'static str {
        if self.chosen_agent().is_some() { "write to it" } else { "go there" }
    }

    fn tree_hints(&self) -> Vec<Hint> {
        if let Some(pod) = &self.pinning {
            let pins = match self.tree.pins.of(pod) {
                Some(slot) => format!("pins {pod}; {slot} again takes it from there"),
                None => format!("pins {pod} to that slot"),
            };
            return vec![
                Hint::new(self.slot_keys(Context::Tree), pins),
                Hint::new(self.back_key(), "leaves"),
            ];
        }
        let marked = self.marked().len();
        if marked == 0 {
            // The row may be that of another Pod than the line.
            let write = match self.current.as_ref().filter(|current| self.shown() != Some(current))
            {
                Some(current) => format!("write to {current}"),
                None => "write".into(),
            };
            let actions = [
                (Action::Choose, "go there"),
                (Action::Explain, "explain"),
                (Action::Menu, "verbs"),
                (Action::Mark, "mark"),
                (Action::Filter, "filter"),
                (Action::Workspaces, "workspaces"),
                (Action::Stopped, "stopped"),
                (Action::Pin, "pin"),
                (Action::Composer, write.as_str()),
                (Action::Keys, "keys"),
            ];
            return self.list_hints(Context::Tree, &actions);
        }
        let mut hints = vec![Hint::new("", format!("{marked} marked"))];
        for verb in ["stop", "restore"] {
            let prefill = Binding::Prefill(format!("{verb} {{pod}}"));
            let key = self.keymap.label_of(Context::Tree, &prefill);
            hints.extend((!key.is_empty()).then(|| Hint::new(key, format!("{verb} them"))));
        }
        hints.push(Hint::new(self.keymap.label(Context::Tree, Action::Menu), "verbs"));
        hints.push(Hint::new(self.back_key(), "takes the marks back"));
        hints
    }

    /// The keys of the slots, the first and the last: `1 to 9`.
    pub(super) fn slot_keys(&self, context: Context) -> String {
        let key = |slot| self.keymap.name(context, Action::Slot(slot));
        format!("{} to {}", key(1), key(9))
    }

    fn back_key(&self) -> String {
        self.keymap.label(Context::Everywhere, Action::Back)
    }

    /// The keys that answer the card, as many as there is room for in the line, and the others.
    pub fn answers(&self) -> (Vec<Hint>, Vec<Hint>) {
        if self.inbox.ended().is_some() {
            return (Vec::new(), Vec::new());
        }
        let mut answers = self.all_answers();
        answers.extend(self.list_hints(Context::Inbox, &[(Action::Later, "later")]));
        let rest = answers.split_off(answers_that_fit(&answers, self.size.0));
        (answers, rest)
    }

    /// What can be done with a card apart from answering it.
    fn card_hints(&self) -> Vec<Hint> {
        let (_, rest) = self.answers();
        let draft = match self.composer.is_empty() {
            true => "back",
            false => "your draft waits",
        };
        if self.inbox.ended().is_some() {
            let next =
                (!self.items().is_empty()).then_some((Action::NextNeedsYou, "the next card"));
            let actions: Vec<_> = next.into_iter().chain([(Action::Back, draft)]).collect();
            return self.list_hints(Context::Everywhere, &actions);
        }
        let mut hints = self.list_hints(Context::Inbox, &[(Action::LookInside, "look inside")]);
        hints.extend(rest);
        hints.extend(self.list_hints(Context::Everywhere, &[(Action::Back, draft)]));
        let others = [(Action::Copy, "copy"), (Action::Explain, "explain")];
        hints.extend(self.list_hints(Context::Inbox, &others));
        hints
    }

    pub(super) fn all_answers(&self) -> Vec<Hint> {
        let count = self.equal_requests();
        let (each, deny) = match count {
            0 | 1 => (String::new(), "deny".to_owned()),
            _ if self.is_narrow() => ("all".to_owned(), "deny".to_owned()),
            many => (format!("all {many} once"), format!("deny all {many}")),
        };
        let (once, always, tree) = match (self.is_narrow(), count) {
            (true, 2..) => ("one", "always", "below"),
            (true, _) => ("once", "always", "and below"),
            (false, _) => ("once", "always, for this Pod", "always, and below"),
        };
        let write = [(Action::Composer, "write to it")];
        let steps = self.steps();
        if !steps.is_empty() {
            let digits = steps.into_iter().zip(1..);
            let mut hints: Vec<Hint> =
                digits.map(|(step, digit)| Hint::new(digit.to_string(), step.does)).collect();
            hints.extend(self.list_hints(Context::Inbox, &write));
            return hints;
        }
        if count == 0 {
            let seen = self.is_finished_item().then_some((Action::Seen, "seen"));
            let answers: Vec<_> = seen.into_iter().chain(write).collect();
            return self.list_hints(Context::Inbox, &answers);
        }
        if let Some(question) = self.chosen_question() {
            return self.question_hints(&question, count);
        }
        let mut answers = vec![
            (Action::AllowOnce, once),
            (Action::AllowEach, each.as_str()),
            (Action::AllowPod, always),
            (Action::AllowTree, tree),
            (Action::Deny, deny.as_str()),
        ];
        let refused = self.refused_answers();
        answers.retain(|(action, does)| !does.is_empty() && !refused.contains(action));
        self.list_hints(Context::Inbox, &answers)
    }

    /// The answers that the chosen request does not take: a rule where it is allowed once only, the children of a client.
    pub(super) fn refused_answers(&self) -> &'static [Action] {
        match self.chosen_requests() {
            Some(requests) if requests.once_only.is_some() => {
                &[Action::AllowPod, Action::AllowTree]
            }
            Some(requests)
                if requests.client.is_some() || only_for_pods(&requests.rule).is_some() =>
            {
                &[Action::AllowTree]
            }
            Some(_) | None => &[],
        }
    }

    /// The key hints of a question. Digits are not in the keymap, so their hint is added here.
    fn question_hints(&self, question: &Question, count: usize) -> Vec<Hint> {
        let each = format!("answer all {count}");
        let mut answers = vec![(Action::AllowOnce, "answer"), (Action::Deny, "decline")];
        if count > 1 {
            answers.insert(1, (Action::AllowEach, each.as_str()));
        }
        let digits = question.choices().len().min(9);
        let choose = (digits > 0).then(|| {
            let keys = if digits == 1 { "1".to_owned() } else { format!("1-{digits}") };
            Hint::new(keys, "choose")
        });
        let hints = self.list_hints(Context::Inbox, &answers);
        choose.into_iter().chain(hints).collect()
    }

    /// Which of the entries with a match the transcript shows.
    fn found_hint(&self) -> Option<Hint> {
        Some(Hint::new("", self.transcript()?.found_entry()?))
    }

    fn transcript_hints(&self) -> Vec<Hint> {
        let mut hints = match self.transcript().map(Transcript::search) {
            Some(Search::Looking) => vec![Hint::new("", "looking …")],
            Some(Search::NoneAbove) if self.transcript().is_some_and(Transcript::has_no_match) => {
                let name = self.shown().map_or("the transcript", PodName::as_str);
                vec![Hint::new("", format!("not in {name}"))]
            }
            Some(Search::NoneAbove) => {
                let next = self.keymap.label(Context::Transcript, Action::FindNext);
                vec![Hint::new("", "no match further up"), Hint::new(next, "looks from the end")]
            }
            Some(Search::NoneBelow) => vec![Hint::new("", "no match further down")],
            Some(Search::Found) => {
                let next = self.keymap.label(Context::Transcript, Action::FindNext);
                self.found_hint().into_iter().chain([Hint::new(next, "next match")]).collect()
            }
            Some(Search::Off) | None => Vec::new(),
        };
        let card = self.inbox.inside.as_ref().map(|_| "back to the card");
        if let Some(does) = self.return_page.as_ref().map(|_| "back to the page").or(card) {
            hints.extend(self.list_hints(Context::Everywhere, &[(Action::Back, does)]));
        }
        hints.extend(self.list_hints(
            Context::Transcript,
            &[
                (Action::UnfoldHere, "unfold"),
                (Action::Find, "find"),
                (Action::Copy, "copy"),
                (Action::PreviousTurn, "turn"),
                (Action::Tail, "tail"),
                (Action::Composer, "write"),
                (Action::Keys, "keys"),
            ],
        ));
        hints
    }

    /// The keys that can follow the leader, with what each does: in a sentence, or in a word or two.
    pub fn leader_hints(&self, brief: bool) -> Vec<Hint> {
        let short = |binding: &Binding| match binding {
            Binding::Do(Action::Slot(1)) if brief => {
                Some(format!("to {} Pod", self.keymap.label(Context::Leader, Action::Slot(9))))
            }
            Binding::Do(action) if brief && !matches!(action, Action::Slot(_) | Action::Back) => {
                Some(in_a_word(*action).to_owned())
            }
            Binding::Do(Action::Slot(2..) | Action::Back) => None,
            Binding::Do(Action::Slot(_)) => {
                let last = self.keymap.label(Context::Leader, Action::Slot(9));
                Some(format!("to {last}: go to that Pod"))
            }
            Binding::Do(action) => Some(action.help().to_owned()),
            Binding::Prefill(line) | Binding::Run(line) => Some(format!(":{}", line.trim())),
        };
        let keys = self.keymap.list(Context::Leader);
        let hints = keys.filter_map(|(key, binding)| Some(Hint::new(label(key), short(binding)?)));
        let mut hints: Vec<Hint> = hints.collect();
        let of = |word: &str, hints: &[Hint]| hints.iter().position(|hint| hint.does == word);
        if let (true, Some(above), Some(below)) = (brief, of(ABOVE, &hints), of(BELOW, &hints)) {
            // The two arrows are one piece.
            let key = format!("{} {}", hints[above].key, hints[below].key);
            hints[above] = Hint::new(key, "Pod");
            hints.remove(below);
        }
        hints
    }

    fn ended_hints(&self) -> Vec<Hint> {
        let does = if self.setup.reconnects { "starts it again" } else { "leaves" };
        let ended = match self.unconfirmed.is_empty() {
            true => "the host ended",
            false => "the host ended; your decision is not confirmed",
        };
        // A layer on top gets the key.
        match self.layers.is_empty() {
            true => vec![Hint::new("", ended), Hint::new(self.send_key(), does)],
            false => vec![Hint::new("", ended)],
        }
    }

    fn send_key(&self) -> String {
        self.keymap.label(Context::Composer, Action::Send)
    }

    fn list_hints(&self, context: Context, actions: &[(Action, &str)]) -> Vec<Hint> {
        let hint = |(action, does): &(Action, &str)| {
            let key = self.keymap.label(context, *action);
            (!key.is_empty()).then(|| Hint::new(key, *does))
        };
        actions.iter().filter_map(hint).collect()
    }

    fn composer_hints(&self) -> Vec<Hint> {
        if self.has_card() {
            let does = if self.equal_requests() > 0 { "answers" } else { "goes to" };
            let does = format!("{does} {}", self.asker_of_card());
            let actions = [(Action::NextNeedsYou, does.as_str()), (Action::Back, "folds the card")];
            return self.list_hints(Context::Everywhere, &actions);
        }
        let files = self.composer.files.as_ref();
        if files.is_some_and(|files| !files.found.is_empty()) {
            let mut hints = self.list_hints(Context::Line, &[(Action::Choose, "puts it in")]);
            hints
                .extend(self.list_hints(Context::Everywhere, &[(Action::Back, "closes the list")]));
            return hints;
        }
        let mut hints = match self.info() {
            Some(info) => self.pod_hints(info),
            None if self.current.is_some() => Vec::new(),
            None if !self.composer.is_empty() => vec![Hint::new(self.send_key(), "starts it")],
            None if self.lacks_model() => vec![Hint::new(self.send_key(), "connects a model")],
            None => Vec::new(),
        };
        if self.return_page.is_some() {
            hints.retain(|hint| hint.key != self.back_key());
            hints.insert(0, Hint::new(self.back_key(), "back to the page"));
        }
        if !self.has_own_draft() {
            let line = self.keymap.label(Context::Composer, Action::CommandLine);
            hints.push(Hint::new(line, "verbs"));
        }
        let palette = self.keymap.label(Context::Everywhere, Action::Palette);
        let finds = if self.info().is_some() { "palette" } else { "everything" };
        hints.push(Hint::new(palette, finds));
        // With a text in the line this key stays there.
        if !self.has_own_draft() {
            let panes = if self.page.is_some() { "into the page" } else { "panes" };
            let key = self.keymap.label(Context::Everywhere, Action::NextPane);
            hints.push(Hint::new(key, panes));
        }
        if self.info().is_some() {
            hints.extend(self.list_hints(Context::Everywhere, &[(Action::Find, "find")]));
        }
        hints
    }

    fn pod_hints(&self, info: &PodInfo) -> Vec<Hint> {
        let send = self.send_key();
        // A run that waits for a decision is paused by its verb only.
        let pause = || match info.state {
            _ if self.page.is_some() => Hint::new(self.back_key(), "closes the page"),
            State::NeedsYou => Hint::new(":pause", "withdraws the request"),
            _ => Hint::new(self.keymap.label(Context::Everywhere, Action::Back), "pauses"),
        };
        let written = !self.composer.is_empty();
        let queued = info.queue.iter().any(|queued| !queued.enters);
        // A Pod whose run failed is there; one that could not come back is not.
        let is_live = info.state == State::Failed && info.goes_on_by != Some(GoesOnBy::Restore);
        match (info.state, written) {
            (State::Running | State::NeedsYou, true) if self.runs(info) => vec![
                Hint::new(send, "steers"),
                Hint::new(self.keymap.label(Context::Composer, Action::Queue), "queues"),
                pause(),
            ],
            (State::Running | State::NeedsYou, true) => vec![Hint::new(send, "queues"), pause()],
            (State::Running, false) if info.retry_at.is_some() => {
                vec![Hint::new(send, "tries now"), pause()]
            }
            (State::Running | State::NeedsYou, false) if queued => vec![
                Hint::new(send, "sends the first queued into the run"),
                Hint::new(self.keymap.label(Context::Composer, Action::Up), "edits the last"),
                pause(),
            ],
            (State::Running | State::NeedsYou, false) => vec![pause()],
            (State::Paused | State::Idle, false) if self.resumes_together(info).is_some() => {
                let cut = self.family.cut_off().len();
                let mut hints = vec![
                    Hint::new("", format!("{cut} interrupted by the end of the host")),
                    Hint::new(send, if cut == 1 { "continues it" } else { "continues all" }),
                ];
                if info.state == State::Paused {
                    hints.push(Hint::new(":resume", "this one"));
                }
                hints
            }
            (State::Paused, false) => {
                vec![Hint::new(send, "continues"), Hint::new(":cancel", "drops the run")]
            }
            (state, true) if state.can_be_restored() && !is_live => {
                vec![Hint::new(send, "restores and sends")]
            }
            (State::Failed, false) if WayOn::of(info).is_some() => {
                vec![Hint::new(send, "tries again")]
            }
            (State::Damaged, _) => vec![Hint::new(":rm", "deletes it")],
            (state, false) if state.can_be_restored() => {
                vec![Hint::new(":restore", "brings it back")]
            }
            (_, false) if queued => vec![
                Hint::new(send, "sends the first queued"),
                Hint::new(self.keymap.label(Context::Composer, Action::Up), "edits the last"),
            ],
            (_, true) => vec![
                Hint::new(send, "sends"),
                Hint::new(self.keymap.label(Context::Composer, Action::Newline), "newline"),
            ],
            (_, false) => Vec::new(),
        }
    }

    /// Whether the keys of a pane need the whole row.
    fn is_narrow(&self) -> bool {
        self.size.0 < WIDE
    }

    /// Why a Pod is in its state and what it waits for, where no row of its transcript says so: a request has one.
    pub fn reasons_of(&self, info: &PodInfo) -> impl Iterator<Item = String> {
        let requests = self.family.approvals();
        let has_row = requests.iter().any(|request| request.is_of(&info.name));
        let wait = || wait::sentence(info, &self.family, self.now);
        let reasons = if has_row { [None, None] } else { [info.why.clone(), wait()] };
        reasons.into_iter().flatten()
    }

    /// How many requests wait, and the key that goes to the oldest.
    pub fn needs(&self) -> Option<Hint> {
        let waiting = waiting(&self.family);
        let need = if waiting == 1 { "needs" } else { "need" };
        let text = match self.is_narrow() {
            true => format!("▲ {waiting}"),
            false => format!("▲ {waiting} {need} you"),
        };
        let key = self.keymap.label(Context::Everywhere, Action::NextNeedsYou);
        (waiting > 0).then(|| Hint::new(key, text))
    }

    /// The numbers in the head of the family: how many failed, rest paused, and run.
    pub fn counts(&self) -> Vec<(String, Role)> {
        let in_state = |state| self.family.all().iter().filter(|info| info.state == state).count();
        let states = [
            (in_state(State::Failed), "failed", Role::Error),
            (in_state(State::Paused), "paused", Role::Warn),
            (self.family.running().count(), "running", Role::Dim),
        ];
        let present = states.into_iter().filter(|(count, ..)| *count > 0);
        present.map(|(count, word, role)| (format!("{count} {word}"), role)).collect()
    }
}

const ABOVE: &str = "Pod above";
const BELOW: &str = "Pod below";

/// What an action does, in a word or two.
fn in_a_word(action: Action) -> &'static str {
    match action {
        Action::LastPod => "back",
        Action::Parent => "parent",
        Action::PreviousPod => ABOVE,
        Action::NextPod => BELOW,
        Action::Transcript => "read",
        Action::Inbox => "inbox",
        Action::NextNeedsYou => "needs you",
        Action::Since => "since",
        Action::Notices => "notices",
        Action::Palette => "palette",
        Action::CommandLine => "verb",
        Action::Steer => "steer",
        Action::EditQueue => "queue",
        Action::Split => "split",
        Action::Zoom => "zoom",
        Action::CopyAnswer => "copy",
        Action::Detail => "detail",
        Action::Find => "find",
        Action::Mouse => "mouse",
        Action::Help => "help",
        Action::Keys => "all keys",
        Action::Leave => "leave",
        Action::HistorySearch => "history",
        other => other.help(),
    }
}
