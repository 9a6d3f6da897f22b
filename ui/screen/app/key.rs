//! From a key to its action: the leader first, then the topmost layer, then the pane in focus.

use crate::screen::app::{App, Capture, Effect, Focus, KeysOf, Layer, Link};
use crate::screen::keys::{Action, Binding, Context, pressed};
use crate::screen::notice::{Kind, Pressed};
use crate::screen::pane::actionbar::Purpose;
use crate::screen::pane::composer::Message;
use crate::screen::pane::transcript::{Detail, Scroll, Transcript};
use crate::verb::Way;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use yoi::protocol::State;

/// Milliseconds for which Esc does nothing after it closed something.
const ESCAPE: u64 = 300;
/// Milliseconds within which a second Ctrl+C leaves the dashboard.
const ARMED: u64 = 2_000;
/// Milliseconds for which it is said that a key does nothing; then the keys that do are shown again.
const NO_KEY: u64 = 2_000;
/// Milliseconds without a letter after which letters are keys again in a pane where one was none.
const BURST: u64 = 1_000;
/// Milliseconds after a single wrong letter after which a key that leads out is no letter of the same text.
const PAUSE: u64 = 500;
/// Milliseconds after a pause in which Ctrl+C does not prepare leaving.
const PAUSED: u64 = 500;

impl App {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        self.notices.key_pressed(self.kind_of(key), self.now);
        self.end_selection();
        self.disarm_unless_interrupt(key);
        if self.explains_layer() && self.is_back(key) {
            self.close_page();
            self.layers.disturbed(self.now);
            return Vec::new();
        }
        let effects = self.key_below_help(key);
        // The help on a layer that has ended is of no use.
        if self.layers.top().is_none() && self.explains_layer() {
            self.close_page();
        }
        effects
    }

    /// Any other key takes back what the first of the two that leave has prepared.
    fn disarm_unless_interrupt(&mut self, key: KeyEvent) {
        let binding = self.keymap.get(Context::Everywhere, pressed(key));
        if self.guard.armed > 0 && binding != Some(&Binding::Do(Action::Interrupt)) {
            self.guard.armed = 0;
            self.notices.end(&self.again_leaves());
        }
    }

    fn again_leaves(&self) -> String {
        format!("{} again leaves", self.keymap.label(Context::Everywhere, Action::Interrupt))
    }

    fn is_back(&self, key: KeyEvent) -> bool {
        self.keymap.get(Context::Line, pressed(key)) == Some(&Binding::Do(Action::Back))
    }

    fn key_below_help(&mut self, key: KeyEvent) -> Vec<Effect> {
        if self.leader {
            return self.leader_key(key);
        }
        if let Some(pod) = self.pinning.take() {
            return self.pin_key(pod, key);
        }
        if let Some(Layer::Confirm(confirm)) = self.layers.top() {
            let confirm = confirm.clone();
            return self.confirm_key(confirm, key);
        }
        if let Some(effects) = self.rule_key(key) {
            return effects;
        }
        match self.layers.pop() {
            // Handled above.
            Some(Layer::Confirm(_)) => Vec::new(),
            Some(Layer::Prompt(prompt)) => self.prompt_key(prompt, key),
            Some(Layer::List(list)) => self.pick_list_key(list, key),
            Some(Layer::Key(line)) => self.key_line_key(line, key),
            None => self.pane_key(key),
        }
    }

    /// Whether a key is a letter of a text.
    fn kind_of(&self, key: KeyEvent) -> Pressed {
        let types = match self.layers.top() {
            Some(Layer::Prompt(_) | Layer::List(_) | Layer::Key(_)) => true,
            Some(Layer::Confirm(_)) => false,
            None => self.focus == Focus::Composer && !self.leader,
        };
        if types && typed(key).is_some() { Pressed::Letter } else { Pressed::Other }
    }

    /// The context of the keymap for the pane in focus.
    pub fn place(&self) -> Context {
        match self.focus {
            Focus::Composer => Context::Composer,
            Focus::Tree => Context::Tree,
            Focus::Peers => Context::Peers,
            Focus::Transcript | Focus::Beside => Context::Transcript,
            Focus::Inbox => Context::Inbox,
            Focus::Page => Context::Page,
        }
    }

    fn pane_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if self.composer.files.is_some()
            && self.focus == Focus::Composer
            && let Some(effects) = self.files_key(key)
        {
            return effects;
        }
        // The bar names this key in every pane.
        let sends = Binding::Do(Action::Send);
        if self.link == Link::Ended
            && self.focus != Focus::Composer
            && key.kind == KeyEventKind::Press
            && self.keymap.get(Context::Composer, pressed(key)) == Some(&sends)
        {
            return self.bring_back();
        }
        if self.focus == Focus::Inbox && self.inbox.ended().is_some() && !leads_on(key) {
            // What is typed here is kept, as in each pane.
            self.strays(key);
            let text = "this card is over: its keys do nothing · {everywhere next-needs-you}: next · \
                        {everywhere back}: draft";
            let text = self.keymap.with_keys(text);
            self.notices.say_until(Kind::Info, text, self.now, self.now + NO_KEY);
            return Vec::new();
        }
        if self.is_stray(key) {
            return self.typed_astray(key);
        }
        let mut binding = self.keymap.get(self.place(), pressed(key));
        if binding == Some(&Binding::Do(Action::Queue)) && !self.can_queue() {
            binding = self.keymap.get(Context::Everywhere, pressed(key));
        }
        let binding = binding.cloned();
        let repeat = key.kind == KeyEventKind::Repeat;
        match binding {
            Some(Binding::Do(action)) if repeat && !repeats(action) => Vec::new(),
            Some(Binding::Do(action)) => self.act(action),
            Some(Binding::Prefill(line)) => match self.line_for_marks(&line) {
                // The confirmation names them.
                Some(line) => self.carry_out(&line, Way::Key),
                None => self.open_line(&line),
            },
            Some(Binding::Run(line)) => self.run_line(&line, Way::Key),
            None => self.unbound(key),
        }
    }

    fn unbound(&mut self, key: KeyEvent) -> Vec<Effect> {
        if let Some(effects) = typed(key).and_then(|c| self.digit_answers(c)) {
            return effects;
        }
        self.inbox.distracted(self.now);
        let Some(c) = typed(key) else { return Vec::new() };
        if self.focus == Focus::Composer {
            self.forget_requests();
            self.return_page = None;
            self.composer.insert(c);
            self.follow_files();
            return Vec::new();
        }
        self.strays(key);
        let text = format!("{c} is no key here · {}", self.near_key(c));
        self.notices.say_until(Kind::Info, text, self.now, self.now + NO_KEY);
        Vec::new()
    }

    /// Whether a key continues a text that was typed into a pane: it follows a letter that is no key there, without a
    /// pause and without another kind of key between them. After a single letter, the keys that the notice names lead out.
    fn is_stray(&mut self, key: KeyEvent) -> bool {
        let goes_on = self.now < self.guard.stray && self.focus != Focus::Composer;
        let bound = self.keymap.get(self.place(), pressed(key));
        let leads_out = matches!(bound, Some(Binding::Do(Action::Composer | Action::Keys)))
            && self.astray.chars().nth(1).is_none()
            && self.now >= self.guard.strayed + PAUSE;
        if !goes_on || leads_out || typed(key).is_none() {
            self.guard.stray = 0;
            let text = std::mem::take(&mut self.astray);
            // A single letter was meant as a key.
            if text.chars().nth(1).is_some() {
                self.composer.history.keep(&Message::plain(&text), self.now);
            }
        }
        self.guard.stray > 0
    }

    /// Does nothing, and says where a text is typed.
    fn typed_astray(&mut self, key: KeyEvent) -> Vec<Effect> {
        self.strays(key);
        self.inbox.distracted(self.now);
        let text = format!("not typed: letters are keys here · {}", self.write_keys());
        self.notices.say_until(Kind::Info, text, self.now, self.now + NO_KEY);
        Vec::new()
    }

    /// Notes a letter that is no key here.
    fn strays(&mut self, key: KeyEvent) {
        self.astray.extend(typed(key));
        (self.guard.stray, self.guard.strayed) = (self.now + BURST, self.now);
    }

    /// The keys that lead from a pane to the line.
    fn write_keys(&self) -> String {
        let name = |action| self.keymap.name(self.place(), action);
        format!("{} or {}: write", name(Action::Composer), name(Action::Back))
    }

    /// What a person may have meant with a letter that does nothing in this pane: the same letter in the
    /// other case, or to write.
    fn near_key(&self, c: char) -> String {
        let place = self.place();
        let other = if c.is_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
        let meant = pressed(KeyEvent::from(KeyCode::Char(other)));
        match self.keymap.get(place, meant) {
            Some(Binding::Do(action)) if other != c => format!("{other}: {}", action.help()),
            _ => self.write_keys(),
        }
    }

    fn leader_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        self.leader = false;
        if key.kind == KeyEventKind::Repeat {
            self.leader = true;
            return Vec::new();
        }
        match self.keymap.get(Context::Leader, pressed(key)).cloned() {
            Some(Binding::Do(Action::Back)) => Vec::new(),
            Some(Binding::Do(action)) => self.everywhere(action),
            Some(Binding::Prefill(line)) => self.open_line(&line),
            Some(Binding::Run(line)) => self.run_line(&line, Way::Key),
            None if self.keymap.get(Context::Everywhere, pressed(key))
                == Some(&Binding::Do(Action::Help)) =>
            {
                self.help_on(KeysOf::Place(Context::Leader))
            }
            None => self.say(Kind::Info, "the leader has no such key"),
        }
    }

    fn act(&mut self, action: Action) -> Vec<Effect> {
        match self.focus {
            Focus::Composer => self.composer_action(action),
            Focus::Tree => self.tree_key(action),
            Focus::Peers => self.peers_key(action),
            Focus::Transcript | Focus::Beside => self.transcript_action(action),
            Focus::Inbox => self.inbox_key(action),
            Focus::Page => self.page_action(action),
        }
    }

    fn tree_key(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Filter => self.open_prompt(Purpose::Filter),
            Action::Up
            | Action::Down
            | Action::PageUp
            | Action::PageDown
            | Action::First
            | Action::Last
            | Action::Choose
            | Action::Unfold
            | Action::Fold
            | Action::Workspaces
            | Action::Stopped
            | Action::Mark
            | Action::Pin
            | Action::Copy => self.tree_action(action),
            other => self.everywhere(other),
        }
    }

    fn transcript_action(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Copy => {
                let of = self.transcript().map_or("", Transcript::name_under_cursor);
                return self.copy_from(|transcript| transcript.yank(), of);
            }
            Action::CopyMessage => {
                return self.copy_from(|transcript| transcript.yank_message(), "the message");
            }
            Action::OpenTarget => return self.open_target(),
            Action::CopyCode => {
                return self.copy_from(|transcript| transcript.yank_code(), "the code");
            }
            _ => {}
        }
        // A message that begins here is for the Pod that is read.
        if action == Action::Composer
            && let Some(pod) = self.inbox.inside.take()
        {
            return self.make_current(&pod);
        }
        let Some(transcript) = self.transcript_mut() else { return self.everywhere(action) };
        match action {
            Action::Up => transcript.step(-1),
            Action::Down => transcript.step(1),
            Action::HalfPageUp => transcript.scroll(Scroll::HalfPage(-1)),
            Action::HalfPageDown => transcript.scroll(Scroll::HalfPage(1)),
            Action::PreviousTurn => transcript.scroll(Scroll::Turn(-1)),
            Action::NextTurn => transcript.scroll(Scroll::Turn(1)),
            Action::UnfoldHere => transcript.toggle_fold(),
            Action::Unfold => transcript.unfold(),
            Action::Fold => transcript.fold(),
            Action::UnfoldAll => transcript.toggle_fold_all(),
            Action::FindNext => transcript.find_next(1),
            Action::FindBack => transcript.find_next(-1),
            other => return self.everywhere(other),
        }
        Vec::new()
    }

    /// Does an action that is the same in every pane.
    pub(super) fn everywhere(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Palette => self.open_palette(),
            Action::Leader => {
                self.forget_requests();
                self.leader = true;
                Vec::new()
            }
            Action::NextNeedsYou => self.next_needs_you(),
            Action::NextPane | Action::PreviousPane => self.next_pane(action),
            Action::Back => self.back(),
            Action::Interrupt => self.interrupt(),
            Action::Leave => self.leave(),
            Action::Detail => self.next_detail(),
            Action::Find => self.open_prompt(Purpose::Find),
            Action::PageUp => self.scroll(Scroll::Page(-1)),
            Action::PageDown => self.scroll(Scroll::Page(1)),
            Action::HalfPageUp => self.scroll(Scroll::HalfPage(-1)),
            Action::HalfPageDown => self.scroll(Scroll::HalfPage(1)),
            Action::Top => self.scroll(Scroll::Top),
            Action::Tail => self.scroll(Scroll::Tail),
            Action::Redraw => vec![Effect::Redraw],
            Action::Suspend => vec![Effect::Suspend],
            Action::Help => self.help_key(),
            Action::Keys => self.list_keys(),
            Action::Notices => self.open_notices(),
            Action::Since => self.since_key(),
            Action::CommandLine => self.open_line(""),
            Action::Composer => self.focus(Focus::Composer),
            Action::Tree => self.focus(Focus::Tree),
            Action::Peers => self.focus_peers(),
            Action::Inbox => self.open_inbox(),
            Action::Explain => self.explain_row(),
            Action::Menu => self.open_menu(),
            Action::Transcript => self.focus(Focus::Transcript),
            Action::Slot(number) => self.slot(number),
            Action::Parent => self.parent(),
            Action::Split => self.split_key(),
            Action::Zoom => self.toggle_zoom(),
            Action::LastPod => self.last_pod(),
            Action::PreviousPod => self.neighbour(-1),
            Action::NextPod => self.neighbour(1),
            Action::CopyAnswer => {
                self.copy_from(|transcript| transcript.yank_last_answer(), "the last answer")
            }
            Action::Steer => self.enter(),
            Action::Queue => self.queue(),
            Action::EditQueue => self.list_queue(),
            Action::HistorySearch => self.list_history(),
            Action::Mouse => self.toggle_mouse(),
            other => {
                // Editing keys bound outside of the composer edit the draft.
                self.composer.edit(other);
                Vec::new()
            }
        }
    }

    /// Notes that a layer was closed: Esc does nothing for a moment.
    pub(super) fn closed(&mut self) {
        self.guard.escape = self.now + ESCAPE;
    }

    fn back(&mut self) -> Vec<Effect> {
        if self.now < self.guard.escape {
            return Vec::new();
        }
        if self.composer.files.take().is_some() {
            self.closed();
            return Vec::new();
        }
        if matches!(self.focus, Focus::Transcript | Focus::Beside)
            && let Some(from) = self.found_from.take()
        {
            self.closed();
            if let Some(transcript) = self.transcript_mut() {
                transcript.find("");
            }
            return self.focus(from);
        }
        if self.back_to_page() {
            self.closed();
            return Vec::new();
        }
        if self.leave_inside() || self.inbox.asleep && self.focus == Focus::Composer {
            self.inbox.asleep = false;
            self.closed();
            return Vec::new();
        }
        if self.page.is_some() && self.focus != Focus::Inbox {
            self.close_page();
            self.closed();
            return Vec::new();
        }
        if self.focus == Focus::Tree && !self.tree.filter.is_empty() {
            self.tree.filter = crate::screen::pane::input::Input::default();
            self.closed();
            return Vec::new();
        }
        if !self.marked().is_empty() {
            self.tree.marks.clear();
            self.closed();
            return Vec::new();
        }
        let reads = matches!(self.focus, Focus::Transcript | Focus::Beside);
        if reads && self.transcript_mut().is_some_and(Transcript::stop_search) {
            self.closed();
            return Vec::new();
        }
        if self.focus != Focus::Composer {
            self.closed();
            return self.focus(Focus::Composer);
        }
        match self.waits_for_decision() {
            Some(text) => self.say(Kind::Info, text),
            None => self.pause(),
        }
    }

    /// Pauses the run of the selected Pod, if there is one: that of the card while it has the keys. A run that waits for a
    /// decision is paused by its verb only, for that withdraws the request.
    fn pause(&mut self) -> Vec<Effect> {
        let info = self.selected().and_then(|name| self.family.get(name));
        let Some(info) = info.filter(|info| info.state == State::Running) else {
            return Vec::new();
        };
        let line = format!("pause {}", info.name);
        self.carry_out(&line, Way::Key)
    }

    /// The notice for a key that would pause a run that waits for a decision.
    fn waits_for_decision(&self) -> Option<String> {
        let pod = &self.info()?.name;
        let waits = self.family.approvals().iter().any(|approval| approval.is_of(pod));
        let text = format!(
            "{pod} waits for your decision: {{everywhere next-needs-you}} goes there · :pause withdraws the request"
        );
        waits.then(|| self.keymap.with_keys(&text))
    }

    fn interrupt(&mut self) -> Vec<Effect> {
        if let Some(text) = self.composer.selected() {
            return self.copy(text);
        }
        let pausing = self.pause();
        if !pausing.is_empty() {
            self.guard.paused = self.now + PAUSED;
            return pausing;
        }
        if self.focus == Focus::Inbox {
            // The draft is below the card: it stays.
            return self.back();
        }
        if !self.composer.is_empty() {
            let cleared = self.composer.draft().message();
            self.composer.history.add(&cleared, self.now);
            self.composer.clear();
            let undo = self.keymap.label(Context::Composer, Action::Undo);
            return self.say(Kind::Info, format!("cleared · {undo} brings it back"));
        }
        if self.now < self.guard.armed {
            return self.leave();
        }
        if self.now < self.guard.paused {
            return Vec::new();
        }
        self.guard.armed = self.now + ARMED;
        let text = self.again_leaves();
        self.notices.say_until(Kind::Info, text, self.now, self.guard.armed);
        Vec::new()
    }

    fn next_detail(&mut self) -> Vec<Effect> {
        let (detail, name) = match self.detail {
            Detail::Overview => (Detail::Normal, "normal"),
            Detail::Normal => (Detail::Full, "detail"),
            Detail::Full => (Detail::Overview, "overview"),
        };
        self.detail = detail;
        for transcript in self.transcripts.values_mut() {
            transcript.set_detail(detail);
        }
        self.say(Kind::Info, name)
    }

    pub(super) fn scroll(&mut self, by: Scroll) -> Vec<Effect> {
        if self.page.is_some() {
            self.scroll_page(by);
        } else if let Some(transcript) = self.transcript_mut() {
            transcript.scroll(by);
        }
        Vec::new()
    }

    fn toggle_mouse(&mut self) -> Vec<Effect> {
        let (capture, text) = match self.capture {
            Capture::Ours => (Capture::Terminals, "mouse released: select with your terminal"),
            Capture::Terminals => (Capture::Ours, "mouse captured: clicks and the wheel work here"),
        };
        self.capture = capture;
        self.say(Kind::Info, text);
        vec![Effect::Mouse(capture)]
    }

    /// Enter when the host is gone.
    pub(super) fn bring_back(&mut self) -> Vec<Effect> {
        if !self.setup.reconnects {
            return vec![Effect::Quit(crate::screen::app::ExitReason::HostEnded)];
        }
        self.link = Link::Connecting;
        vec![Effect::Reconnect]
    }
}

/// Whether a key leads away from a card that is over, and types nothing: no key of a text and none that answers does.
fn leads_on(key: KeyEvent) -> bool {
    let chord = KeyModifiers::CONTROL | KeyModifiers::ALT;
    let leads =
        matches!(key.code, KeyCode::Esc | KeyCode::F(_) | KeyCode::PageUp | KeyCode::PageDown);
    leads || key.modifiers.intersects(chord)
}

/// The character a key types, if it types one.
pub(super) fn typed(key: KeyEvent) -> Option<char> {
    let plain = (key.modifiers - KeyModifiers::SHIFT).is_empty();
    match key.code {
        KeyCode::Char(c) if plain => Some(c),
        _ => None,
    }
}

/// Whether a key that is held down repeats this action.
fn repeats(action: Action) -> bool {
    !matches!(
        action,
        Action::Send
            | Action::Choose
            | Action::Interrupt
            | Action::Leave
            | Action::Back
            | Action::NextPane
            | Action::PreviousPane
            | Action::NextNeedsYou
            | Action::AllowOnce
            | Action::AllowEach
            | Action::AllowPod
            | Action::AllowTree
            | Action::Deny
            | Action::Steer
            | Action::Queue
            | Action::Leader
            | Action::Mark
            | Action::Seen
            | Action::Pin
            | Action::Split
            | Action::Zoom
            | Action::Suspend
    )
}
