//! Drives the dialogues of verbs on the dashboard: requests become effects, confirmations and lists
//! become layers, results become notices.

use crate::screen::app::{
    App, Asked, Confirm, Effect, KeyLine, Layer, Link, LoadFor, Page, RequestToken,
};
use crate::screen::notice::Kind;
use crate::screen::pick_list::{Choice, ListRow, PickList};
use crate::verb::dialogue::KeyStep;
use crate::verb::line::{self, means_marks, of_unseen, read};
use crate::verb::targets::list;
use crate::verb::words::first;
use crate::verb::{
    self, Action, Dialogue, End, Known, Next, Pick, Reply, Request, Said, Verb, VerbId, Way,
    WithKeys,
};
use yoi::protocol::{EntryId, Event, Method, PodInfo, PodName, Refusal, SegmentId, State};

/// For how many milliseconds requests may be under way before the action bar says so.
const UNSAID: u64 = 1_000;

/// A verb that is being carried out.
pub(super) struct RunningVerb {
    verb: &'static Verb,
    /// The line as it was typed.
    line: String,
    dialogue: Box<dyn Dialogue>,
    way: Way,
    pods_are_marked: bool,
    /// The results of its requests, as they come.
    results: Vec<Option<Result<Event, Refusal>>>,
    /// When they were sent; milliseconds since the Unix epoch.
    sent_at: u64,
    token: RequestToken,
    /// How the Pods stood that it asked about, when what it asked became known.
    stood: Vec<Standing>,
    /// What it asked came from the host, which has to be asked anew where the Pods went on.
    asked_host: bool,
    /// The Pods went on since then, and the confirmation says no more than that.
    is_out_of_date: bool,
}

/// The run that a Pod has or had last, and where it rests: with another one, what was asked about the Pod is not the same
/// any more.
#[derive(Clone, Debug, PartialEq)]
struct Standing {
    last_run: Option<EntryId>,
    /// Since when, and in which segment; `None` while a run is under way.
    rests: Option<(State, u64, Option<SegmentId>)>,
}

impl Standing {
    fn of(info: &PodInfo) -> Self {
        let runs = matches!(info.state, State::Running | State::NeedsYou | State::Paused);
        Self {
            last_run: info.last_result.as_ref().map(|run| run.entry),
            rests: (!runs).then_some((info.state, info.since, info.segment)),
        }
    }
}

impl RunningVerb {
    /// Whether a result is still missing.
    pub(super) fn waits_for_results(&self) -> bool {
        self.results.iter().any(Option::is_none)
    }

    /// From when on the action bar says that it is under way.
    fn is_said_from(&self) -> Option<u64> {
        self.waits_for_results().then(|| self.sent_at.saturating_add(UNSAID))
    }
}

/// Puts a line first in a history, and removes its earlier place. What stands behind a verb that has a person type a key
/// may be that key, so it is left out.
pub(super) fn remember(lines: &mut Vec<String>, line: &str) {
    let line = of_unseen(line).map_or(line, |verb| verb.name);
    lines.retain(|before| before != line);
    lines.insert(0, line.to_owned());
}

impl App {
    /// Runs a line, without its colon, and keeps it in the history of lines.
    pub(super) fn run_line(&mut self, line: &str, way: Way) -> Vec<Effect> {
        self.remember_line(line);
        self.carry_out(line, way)
    }

    /// Keeps a line in the history of lines, as the newest.
    pub(super) fn remember_line(&mut self, line: &str) {
        remember(&mut self.lines, line);
    }

    /// Carries out the verb of a line.
    pub(super) fn carry_out(&mut self, line: &str, way: Way) -> Vec<Effect> {
        match self.read_line(line, way) {
            Ok(verb) => self.advance(verb, None),
            Err(why) => self.say(Kind::Refused, why),
        }
    }

    /// The verb of a line, with the marked Pods where it takes several and names none.
    pub(super) fn read_line(&self, line: &str, way: Way) -> Result<RunningVerb, String> {
        let marked = self.with_marks(line);
        let line = marked.as_deref().unwrap_or(line);
        let line::Line { verb, dialogue } = read(line, way)?;
        Ok(RunningVerb {
            verb,
            line: line.to_owned(),
            dialogue,
            way,
            pods_are_marked: marked.is_some(),
            results: Vec::new(),
            sent_at: self.now,
            token: self.request_token(),
            stood: Vec::new(),
            asked_host: false,
            is_out_of_date: false,
        })
    }

    /// The line of a key without the Pod of the row, if its verb acts on the marked Pods instead.
    pub(super) fn line_for_marks(&self, line: &str) -> Option<String> {
        let of_none = line.replace("{pod}", "");
        (of_none != line && self.with_marks(&of_none).is_some()).then_some(of_none)
    }

    /// The line with the marked Pods in it, when its verb takes several and it names none.
    pub(super) fn with_marks(&self, line: &str) -> Option<String> {
        let marked = self.marked();
        if marked.is_empty() {
            return None;
        }
        let verb = means_marks(line)?;
        let names = marked.iter().map(PodName::as_str).collect::<Vec<_>>().join(" ");
        let rest = first(line.trim_start_matches(':')).1;
        Some(format!("{} {names}{}", verb.name, rest.trim_end()))
    }

    /// Takes one result of a verb's requests; the last one continues the dialogue.
    pub(super) fn verb_answered(
        &mut self,
        id: VerbId,
        at: usize,
        result: Result<Event, Refusal>,
    ) -> Vec<Effect> {
        let Some(running) = self.verbs.get_mut(&id) else { return Vec::new() };
        if let Some(slot) = running.results.get_mut(at) {
            *slot = Some(result);
        }
        if running.waits_for_results() {
            return Vec::new();
        }
        let Some(mut running) = self.verbs.remove(&id) else { return Vec::new() };
        let results = std::mem::take(&mut running.results).into_iter().flatten().collect();
        self.advance(running, Some(Reply::Results(results)))
    }

    /// Continues the dialogue of a verb with the person's reply.
    pub(super) fn verb_replied(&mut self, id: VerbId, reply: Reply) -> Vec<Effect> {
        let Some(mut running) = self.verbs.remove(&id) else { return Vec::new() };
        running.token = self.request_token();
        if std::mem::take(&mut running.is_out_of_date) {
            return match read(&running.line, running.way) {
                Ok(line::Line { dialogue, .. }) => {
                    running.dialogue = dialogue;
                    self.advance(running, None)
                }
                Err(why) => self.say(Kind::Refused, why),
            };
        }
        self.advance(running, Some(reply))
    }

    pub(super) fn advance(&mut self, mut running: RunningVerb, last: Option<Reply>) -> Vec<Effect> {
        let with_keys = |text: &str| self.keymap.with_keys(text);
        let picked = matches!(last, Some(Reply::Picked(_)));
        running.asked_host = last.is_some();
        match running.dialogue.next(&self.known_to(&running, &with_keys), last) {
            Next::Call(requests) if requests.is_empty() => {
                self.advance(running, Some(Reply::Results(Vec::new())))
            }
            Next::Call(requests) => self.send_requests(running, requests),
            Next::Confirm(confirm) => {
                if !picked {
                    running.stood = self.standings(&confirm.about);
                }
                let late = format!("not done: :{} says what it does and asks", running.line);
                let token = running.token.clone();
                let id = self.keep(running);
                let layer = Layer::Confirm(Confirm::Verb { id, confirm });
                self.open_for_reply(&token, layer, late)
            }
            Next::Pick(pick) => self.pick(running, pick),
            Next::Key(step) => self.key_step(running, step),
            Next::End(end) => self.verb_ends(&running, end),
        }
    }

    /// Brings the confirmation of a verb on top up to date with what it is about. To be called after every message.
    pub(super) fn confirmation_follows(&mut self) {
        let Some(Layer::Confirm(Confirm::Verb { id, confirm: asked })) = self.layers.top() else {
            return;
        };
        let with_keys = |text: &str| self.keymap.with_keys(text);
        let (id, Some(running)) = (*id, self.verbs.get(id)) else { return };
        let standings = self.standings(&asked.about);
        let went_on = standings != running.stood;
        let now = running.dialogue.confirmation_now(&self.known_to(running, &with_keys));
        let is_out_of_date = went_on && running.asked_host && now.is_none();
        let now = match now {
            Some(now) if went_on || now.question != asked.question => now,
            None if is_out_of_date => out_of_date(asked),
            None if went_on => asked.clone(),
            Some(_) | None => return,
        };
        if let Some(running) = self.verbs.get_mut(&id) {
            running.stood = standings;
            running.is_out_of_date |= is_out_of_date;
        }
        if let Some(Layer::Confirm(Confirm::Verb { confirm, .. })) = self.layers.top_mut() {
            *confirm = now;
            self.layers.changed();
            self.say(Kind::Info, "what this is about has changed: read it again");
        }
    }

    /// How these Pods stand now.
    fn standings(&self, pods: &[PodName]) -> Vec<Standing> {
        pods.iter().filter_map(|pod| self.family.get(pod)).map(Standing::of).collect()
    }

    fn known_to<'a>(&'a self, running: &RunningVerb, with_keys: WithKeys<'a>) -> Known<'a> {
        Known {
            family: &self.family,
            selected: self.selected(),
            pods_are_marked: running.pods_are_marked,
            numbers: None,
            cwd: &self.setup.cwd,
            workspace: &self.setup.workspace,
            model: self.model.as_deref(),
            absence: self.absence(),
            effort: self.setup.effort,
            providers: &self.setup.providers,
            env: &self.setup.env,
            now: self.now,
            zone: self.zone(),
            way: running.way,
            with_keys,
            is_written: !self.composer.is_empty(),
        }
    }

    /// Closes the confirmations and lists of verbs, because the host that they were about ended, and says so.
    pub(super) fn verbs_interrupted(&mut self) {
        let waiting = self.verbs.iter().filter(|(id, _)| self.layers.request_for(**id));
        let lines: Vec<String> = waiting.map(|(_, verb)| format!(":{}", verb.line)).collect();
        self.close_layers(|layer| match layer {
            Layer::Confirm(confirm) => matches!(confirm, Confirm::Verb { .. }),
            Layer::List(list) => {
                list.choices().any(|choice| matches!(choice, Choice::Picked { .. }))
            }
            Layer::Key(_) => true,
            Layer::Prompt(_) => false,
        });
        if !lines.is_empty() {
            self.say(Kind::Warned, format!("not done, for the host ended: {}", lines.join(", ")));
        }
    }

    /// The verb whose requests take long, of several the one that was begun first.
    pub(super) fn under_way(&self) -> Option<String> {
        let said = |running: &&RunningVerb| running.is_said_from().is_some_and(|at| at <= self.now);
        let longest = self.verbs.values().filter(said).min_by_key(|running| running.sent_at)?;
        Some(format!(":{} is under way", longest.verb.name))
    }

    /// When the action bar says that a further verb is under way.
    pub(super) fn under_way_at(&self) -> Option<u64> {
        let said_from = self.verbs.values().filter_map(RunningVerb::is_said_from);
        said_from.filter(|at| *at > self.now).min()
    }

    /// Keeps a verb until its results or the person's reply come. Verbs whose layer was closed are dropped.
    fn keep(&mut self, running: RunningVerb) -> VerbId {
        let Self { verbs, layers, last_verb, .. } = self;
        verbs.retain(|id, verb| verb.waits_for_results() || layers.request_for(*id));
        let id = VerbId::after(*last_verb);
        *last_verb = Some(id);
        verbs.insert(id, running);
        id
    }

    fn send_requests(&mut self, mut running: RunningVerb, requests: Vec<Request>) -> Vec<Effect> {
        if running.verb.takes_several() {
            let used = requests.iter().filter(|request| !is_plan(request));
            let used: Vec<_> = used.filter_map(|request| request.pod.clone()).collect();
            self.tree.marks.drop_if(|marked| used.contains(marked));
        }
        running.results = requests.iter().map(|_| None).collect();
        running.sent_at = self.now;
        let id = self.keep(running);
        let effect = |(at, Request { pod, method }): (usize, Request)| Effect::Call {
            pod,
            method,
            asked: Asked::Verb(id, at),
        };
        requests.into_iter().enumerate().map(effect).collect()
    }

    /// Opens the line for a key. What the program does with the key shows in it, so that Esc leaves the verb meanwhile.
    fn key_step(&mut self, running: RunningVerb, step: KeyStep) -> Vec<Effect> {
        let id = self.keep(running);
        self.open_layer(Layer::Key(KeyLine::of(id, &step)));
        match step {
            KeyStep::Type { .. } => Vec::new(),
            KeyStep::Try { .. } | KeyStep::Store { .. } | KeyStep::Use { .. } => {
                vec![Effect::KeyStep(id, step)]
            }
        }
    }

    fn pick(&mut self, mut running: RunningVerb, pick: Pick) -> Vec<Effect> {
        running.stood = self.standings(pick.about.as_slice());
        let of = pick.about.as_ref().map(|pod| format!(" for {pod}")).unwrap_or_default();
        let late = format!("the list{of} is ready: :{} shows it", running.line);
        let token = running.token.clone();
        let id = self.keep(running);
        let about = pick.about;
        let row = |(at, (text, help)): (usize, (String, String))| ListRow {
            text,
            help,
            choice: Choice::Picked { verb: id, at, about: about.clone() },
        };
        let rows = pick.rows.into_iter().enumerate().map(row).collect();
        self.open_for_reply(&token, Layer::List(PickList::new(pick.title, rows)), late)
    }

    /// Shows the result of a verb, and does what its end requires of the screen.
    fn verb_ends(&mut self, running: &RunningVerb, end: End) -> Vec<Effect> {
        let mut effects = Vec::new();
        if running.verb.name == "connect" {
            effects.extend(self.look_for_model_again());
        }
        match end.said {
            Said::Nothing => Vec::new(),
            Said::Done(text) => {
                self.say(Kind::Done, text);
                self.notices.holds_while(end.while_in);
                Vec::new()
            }
            Said::Info(text) | Said::Answer(text) => self.say(Kind::Info, text),
            Said::Since(since, _) => {
                let late = format!("the page is ready: :{} shows it", running.line);
                self.open_page_for_reply(&running.token, Page::Since(since), late)
            }
            // Without a connection the screen says so already.
            Said::Refused(..) if self.link == Link::Ended => Vec::new(),
            Said::Refused(_, text) => self.say(Kind::Refused, text),
            Said::Text { title, lines } => {
                let late = format!("the text is ready: :{} shows it", running.line);
                self.open_page_for_reply(&running.token, Page::Text { title, lines }, late)
            }
        };
        effects
            .extend(end.action.map(|action| self.verb_acts(running, action)).unwrap_or_default());
        effects
    }

    fn verb_acts(&mut self, running: &RunningVerb, action: Action) -> Vec<Effect> {
        match action {
            Action::GoTo(pod) => self.make_current(&pod),
            Action::Created(info) => self.go_to_new(*info, &running.token),
            Action::Prefill(line) => self.open_line(&line),
            // It is in the history of lines as well.
            Action::TypeAgain if running.way == Way::Line && self.still_waits(&running.token) => {
                self.open_typed_line(&running.line)
            }
            Action::TypeAgain => Vec::new(),
            Action::ModelOfNewPods(model) => {
                self.model = Some(model);
                Vec::new()
            }
            Action::EffortOfNewPods(effort) => {
                self.setup.effort = effort;
                Vec::new()
            }
            Action::Inbox => self.open_inbox(),
            Action::Theme(Some(name)) => vec![Effect::LoadTheme(LoadFor::Choice(name))],
            Action::Keymap(Some(name)) => self.choose_keymap(name),
            Action::Keymap(None) => self.list_keymaps(),
            Action::Theme(None) => self.list_themes(),
            Action::Pin { slot, pod } => self.pin_verb(slot, pod.as_ref()),
            Action::Split(pod) => self.split(pod.as_ref()),
            Action::Queue => self.queue_draft(),
            Action::Zoom => self.toggle_zoom(),
            Action::Notices => self.open_notices(),
            Action::CallByTerminal => self.call_by_terminal(),
            Action::Tour => vec![Effect::Tour(running.token.clone())],
            Action::Redraw => vec![Effect::Redraw],
            Action::Keys => self.list_keys(),
            Action::Quit => self.leave(),
        }
    }

    /// Makes a new Pod the current one, unless the person did something else meanwhile.
    fn go_to_new(&mut self, info: PodInfo, token: &RequestToken) -> Vec<Effect> {
        if self.still_waits(token) {
            return self.created(info);
        }
        let text = format!("{0} is ready · :open {0} goes there", info.name);
        self.known(info);
        self.say(Kind::Done, text)
    }
}

/// In place of a confirmation whose Pods went on: the host knows what it would be about now.
fn out_of_date(asked: &verb::Confirm) -> verb::Confirm {
    let pods = list(&asked.about);
    let question = format!("{pods} went on since this was asked, so nothing is done: begin again?");
    verb::Confirm { question, enter: "begin again", ..asked.clone() }
}

fn is_plan(request: &Request) -> bool {
    matches!(request.method, Method::RestorePods { plan: true, .. })
}

/// Whether choosing this verb from a list writes it into the command line instead of running it.
pub(super) fn is_written(verb: &verb::Verb) -> bool {
    verb.is_only_typed() || verb.is_completed_first()
}
