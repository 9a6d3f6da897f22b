//! Random walks over a screen: keys, pastes, the mouse, replies of the terminal, events and replies of a host, hosts that end
//! at any moment, and screens that end and are opened again. Whatever happens: no text that a person has typed is lost, no Pod
//! changes without a confirmation that was drawn, a message goes to the Pod that the head shows, and the screen that is opened
//! again shows what the one before showed.
//!
//! `YOI_WALKS` is how many walks there are, `YOI_SEED` the seed of the first one.

use super::every_key::{bound_keys, changes_a_pod, characters, takes_text, texts, typed_so_far};
use super::*;
use crate::screen::run::input::parser::Parser;
use crate::screen::run::input::tests::Random;
use crossterm::event::{Event as FromTerminal, KeyModifiers, MouseButton, MouseEventKind};
use std::time::{Duration, Instant};
use yoi::protocol::{ApprovalRequest, Question, Queued, Verdict};

const STEPS: usize = 120;

/// Lines that a person types and does not mean as messages.
const LINES: [&str; 16] = [
    ":stop alice",
    ":stop @idle",
    ":rm old",
    ":send bob ",
    ":open bob",
    ":open far",
    ":pause",
    ":resume",
    ":peer bob",
    ":split bob",
    ":restore old",
    ":new fresh",
    "/stop",
    "fix it :stop",
    ":later alice",
    ":marks",
];

/// What a terminal sends by itself.
const REPLIES: [&[u8]; 7] = [
    b"\x1b]11;rgb:1e1e/1e1e/2e2e\x07",
    b"\x1b]7501;?:states=idle,working,needs-input,done\x1b\\",
    b"\x1bP>|tmux 3.4\x1b\\",
    b"\x1b[?62;22;52c",
    b"\x1b[12;40R",
    b"\x1b[I",
    b"\x1b[O",
];

/// A request that is under way.
struct Pending {
    pod: Option<PodName>,
    method: Method,
    asked: Asked,
    /// Whether a confirmation led to it.
    confirmed: bool,
    /// Whether its host ended before it replied.
    lost: bool,
}

/// A host as far as a screen sees it.
struct FakeHost {
    pods: Vec<PodInfo>,
    approvals: Vec<ApprovalRequest>,
    /// What it was given and keeps.
    got: String,
    made: usize,
}

impl FakeHost {
    fn new() -> Self {
        let far =
            PodInfo { workspace: "/other".into(), cwd: "/other".into(), ..pod("far", State::Idle) };
        let pods = vec![
            pod("alice", State::Idle),
            child("alice", "scout", State::Running),
            pod("bob", State::Running),
            pod("old", State::Stopped),
            far,
        ];
        Self { pods, approvals: Vec::new(), got: String::new(), made: 0 }
    }

    fn family(&self) -> Event {
        let (pods, approvals) = (self.pods.clone(), self.approvals.clone());
        Event::Family { pods, peers: Vec::new(), approvals, agents: Vec::new() }
    }

    fn pod(&mut self, name: Option<&PodName>) -> Option<&mut PodInfo> {
        self.pods.iter_mut().find(|info| Some(&info.name) == name)
    }

    /// Does what a request says; the events that precede its reply, and the reply.
    fn carry_out(&mut self, to: Option<&PodName>, method: &Method) -> (Vec<Event>, Event) {
        self.made += 1;
        let id = format!("q{}", self.made);
        let done = Event::done();
        let named = |name: &str| PodName::parse(name).ok();
        let mut keeps = true;
        let changed = match method {
            Method::Watch | Method::Show { .. } | Method::Open { .. } => return (Vec::new(), done),
            Method::Page { .. } => {
                let (entries, in_flight) = (Vec::new(), Vec::new());
                return (Vec::new(), Event::Page { entries, before: None, in_flight, seq: 0 });
            }
            Method::Since { .. } => return (Vec::new(), Event::Since { pods: Vec::new() }),
            Method::New(_) => {
                let info = pod(&format!("new{}", self.made), State::Idle);
                self.pods.push(info.clone());
                let created = Event::Created { info: Box::new(info.clone()) };
                return (vec![Event::PodChanged { info: Box::new(info) }], created);
            }
            Method::Send { input, .. } => self.pod(to).map(|info| {
                if info.state == State::Running {
                    keeps = false;
                    info.queue.push(Queued { id, input: input.clone(), enters: false });
                } else {
                    info.state = State::Running;
                }
                info.clone()
            }),
            Method::Steer { id: None, input } => self.pod(to).map(|info| {
                keeps = false;
                info.queue.push(Queued { id, input: input.clone(), enters: true });
                info.clone()
            }),
            Method::Steer { id: Some(id), .. } => self.pod(to).map(|info| {
                info.queue.iter_mut().filter(|q| q.id == *id).for_each(|q| q.enters = true);
                info.clone()
            }),
            Method::EditQueued { id, input: None } => self.pod(to).map(|info| {
                info.queue.retain(|queued| queued.id != *id);
                info.clone()
            }),
            Method::Pause | Method::Cancel => self.set(to, State::Paused),
            Method::Resume => self.set(to, State::Running),
            Method::Restore { name } => self.set(named(name).as_ref(), State::Idle),
            Method::StopPods { .. } => self.set(to, State::Stopped),
            Method::Decide { approval, verdict } => {
                let decided = self.decided(approval, verdict.clone());
                self.got.push_str(&format!("{method:?}"));
                return (decided.into_iter().collect(), done);
            }
            Method::Remove => {
                let name = to.cloned();
                self.pods.retain(|info| Some(&info.name) != to);
                return (name.map(|name| Event::PodRemoved { name }).into_iter().collect(), done);
            }
            _ => None,
        };
        if keeps {
            self.got.push_str(&format!("{method:?}"));
        }
        (changed.map(|info| Event::PodChanged { info: Box::new(info) }).into_iter().collect(), done)
    }

    fn set(&mut self, name: Option<&PodName>, state: State) -> Option<PodInfo> {
        let info = self.pod(name)?;
        info.state = state;
        Some(info.clone())
    }

    fn decided(&mut self, id: &str, verdict: Verdict) -> Option<Event> {
        let at = self.approvals.iter().position(|approval| approval.id == id)?;
        let pod = self.approvals.remove(at).pod;
        Some(Event::ApprovalDecided { approval: id.into(), pod, verdict })
    }

    /// Something that happens without the person.
    fn happens(&mut self, random: &mut Random) -> Option<Event> {
        self.made += 1;
        let at = random.below(self.pods.len().max(1));
        let name = self.pods.get(at)?.name.clone();
        let id = format!("a{}", self.made);
        match random.below(8) {
            0 => {
                let mut request = approval(&id, name.as_str(), &format!("cargo publish {id}"));
                if random.below(3) == 0 {
                    request.question = Some(Question::of_model(vec!["one".into(), "two".into()]));
                    request.once_only = true;
                }
                self.approvals.push(request.clone());
                Some(Event::ApprovalRequested { approval: Box::new(request) })
            }
            1 => {
                let id = self.approvals.first()?.id.clone();
                self.decided(&id, Verdict::Once)
            }
            2 if self.pods.len() > 3 && random.below(4) == 0 => {
                self.pods.retain(|info| info.name != name);
                Some(Event::PodRemoved { name })
            }
            3 => {
                let kid = child(name.as_str(), &format!("kid{}", self.made), State::Running);
                self.pods.push(kid.clone());
                Some(Event::PodChanged { info: Box::new(kid) })
            }
            // The run takes what waits for it.
            4 => {
                let got = format!("{:?}", self.pods[at].queue);
                self.got.push_str(&got);
                self.pods[at].queue.clear();
                Some(Event::PodChanged { info: Box::new(self.pods[at].clone()) })
            }
            n => {
                let states = [State::Idle, State::Running, State::Failed, State::NeedsYou];
                let info = &mut self.pods[at];
                info.state = states[random.below(states.len())];
                info.unseen = n == 5;
                info.last_result = (n == 5).then(finished);
                Some(Event::PodChanged { info: Box::new(info.clone()) })
            }
        }
    }
}

struct Walk {
    bench: Bench,
    host: FakeHost,
    pending: Vec<Pending>,
    random: Random,
    parser: Parser,
    clock: Instant,
    keys: Vec<KeyEvent>,
    words: usize,
    /// Words that a person has typed and not taken away.
    typed: Vec<String>,
    /// What would decide something, as it stands on the screen, and since when it stands there.
    seen: Option<(String, u64)>,
    done: Vec<String>,
}

impl Walk {
    fn new(seed: u64) -> Self {
        let host = FakeHost::new();
        let bench = Bench::new(host.pods.clone());
        let keys = bound_keys(&bench).into_iter().chain(characters()).collect();
        Self {
            bench,
            host,
            pending: Vec::new(),
            random: Random::new(seed),
            parser: Parser::new(Duration::from_millis(50)),
            clock: Instant::now(),
            keys,
            words: 0,
            typed: Vec::new(),
            seen: None,
            done: Vec::new(),
        }
    }

    fn walk(&mut self) {
        for _ in 0..STEPS {
            self.step();
            self.nothing_is_lost();
        }
        self.come_to_rest();
        self.nothing_is_lost();
        self.leave(true);
    }

    fn step(&mut self) {
        match self.random.below(24) {
            0..=5 => {
                let key = self.keys[self.random.below(self.keys.len())];
                self.press(key);
            }
            6 | 7 => {
                let keys = [
                    "enter",
                    "enter",
                    "up",
                    "esc",
                    "ctrl-n",
                    "a",
                    "ctrl-x",
                    "tab",
                    "alt-enter",
                    "D",
                ];
                let key = keys[self.random.below(keys.len())];
                self.press(key_event(crate::screen::keys::parse(key).expect("a key")));
            }
            8..=10 => self.type_word(),
            11 => {
                let line = LINES[self.random.below(LINES.len())];
                self.type_text(line);
            }
            12 => self.click(),
            13 => {
                let reply = REPLIES[self.random.below(REPLIES.len())];
                self.read(reply);
            }
            14..=16 => self.answer(),
            17 => {
                if let Some(event) = self.host.happens(&mut self.random) {
                    self.tell(event);
                }
            }
            18..=20 => self.time_passes(),
            21 => {
                let sizes = [(40, 12), (80, 24), (120, 40), (200, 60), (20, 5)];
                let (width, height) = sizes[self.random.below(sizes.len())];
                self.note(format!("{width}x{height}"));
                self.message(Msg::Resize(width, height), false);
            }
            22 if self.random.below(2) == 0 => self.host_ends(),
            23 if self.random.below(2) == 0 => self.leave(false),
            _ => self.time_passes(),
        }
    }

    fn note(&mut self, step: String) {
        self.done.push(step);
    }

    fn message(&mut self, msg: Msg, confirmed: bool) {
        let effects = self.bench.msg(msg);
        self.perform(effects, confirmed);
    }

    /// The host says something, unless there is none.
    fn tell(&mut self, event: Event) {
        if self.bench.app.link == Link::Up {
            self.note(format!("host: {}", brief(&event)));
            let effects = self.bench.host(None, event);
            self.perform(effects, false);
        }
    }

    fn perform(&mut self, effects: Vec<Effect>, confirmed: bool) {
        for effect in effects {
            match effect {
                Effect::Call { pod, method, asked } => {
                    let changes = changes_a_pod(&method);
                    assert!(confirmed || !changes, "{pod:?} is changed unconfirmed: {method:?}");
                    let lost = self.bench.app.link != Link::Up;
                    self.pending.push(Pending { pod, method, asked, confirmed, lost });
                }
                Effect::Edit(text) => {
                    let word = self.word();
                    self.message(Msg::Edited(Ok(format!("{text} {word}"))), confirmed);
                }
                Effect::Reconnect | Effect::FindHost => self.connects(),
                Effect::Quit(_) => return self.leave(false),
                _ => {}
            }
        }
    }

    fn connects(&mut self) {
        if self.random.below(3) == 0 {
            return self.message(Msg::NotFound(None), false);
        }
        // The requests that the former host did not answer are refused first.
        while self.pending.iter().any(|pending| pending.lost) {
            self.answer();
        }
        self.note("connected".into());
        self.message(Msg::Connected, false);
        let family = self.host.family();
        self.tell(family);
    }

    fn word(&mut self) -> String {
        self.words += 1;
        format!("word{}x", self.words)
    }

    /// A word goes where keys go. One that stands in a line that is kept counts as typed.
    fn type_word(&mut self) {
        let word = self.word();
        let pasted = self.random.below(3) == 0;
        if pasted {
            let lines = if self.random.below(4) == 0 { 30 } else { 1 };
            let text = format!("{word}{}", "\nmore".repeat(lines - 1));
            self.read(format!("\x1b[200~{text}\x1b[201~").as_bytes());
        } else {
            self.type_text(&word);
        }
        let kept = match self.bench.app.layers.top() {
            Some(Layer::Prompt(prompt)) => {
                use crate::screen::pane::actionbar::Purpose;
                !matches!(prompt.purpose, Purpose::Find | Purpose::Filter)
                    && prompt.input.text().contains(&word)
            }
            Some(_) => false,
            None => self.bench.draft().contains(&word),
        };
        if kept {
            self.typed.push(word);
        }
    }

    fn type_text(&mut self, text: &str) {
        for c in text.chars() {
            self.press(KeyEvent::from(KeyCode::Char(c)));
        }
    }

    /// Bytes of the terminal, cut anywhere.
    fn read(&mut self, bytes: &[u8]) {
        self.note(format!("bytes {:?}", String::from_utf8_lossy(bytes)));
        let mut rest = bytes;
        let mut events = Vec::new();
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(self.random.below(rest.len()) + 1);
            events.extend(self.parser.feed(part, self.clock));
            rest = behind;
        }
        self.clock += Duration::from_secs(2);
        events.extend(self.parser.expire(self.clock));
        for event in events {
            match event {
                FromTerminal::Paste(text) => {
                    // The second key of the leader can be a paste.
                    let before = typed_so_far(&self.bench).or_else(|| Some(self.bench.draft()));
                    let had = self.texts();
                    let takes = self.replaces();
                    self.message(Msg::Paste(text), false);
                    self.forget_what_was_taken(before, &had, takes);
                }
                FromTerminal::FocusGained => self.message(Msg::Focus(true), false),
                FromTerminal::FocusLost => self.message(Msg::Focus(false), false),
                other => panic!("nobody did {other:?}"),
            }
        }
        for reply in self.parser.take_replies() {
            self.message(Msg::Terminal(reply), false);
        }
    }

    fn press(&mut self, key: KeyEvent) {
        let top = self.bench.app.layers.top();
        self.note(format!(
            "{:?} {:?} on {}",
            key.modifiers,
            key.code,
            match top {
                Some(Layer::Prompt(prompt)) =>
                    format!("{:?} {:?}", prompt.purpose, prompt.input.text()),
                Some(Layer::List(_)) => "a list".into(),
                Some(Layer::Key(line)) => line.shown().0,
                Some(Layer::Confirm(confirm)) => confirm.text(),
                None => format!("{:?}", self.bench.app.focus),
            }
        ));
        let confirmed = match self.bench.app.layers.top() {
            Some(Layer::Prompt(prompt)) => key.code == KeyCode::Enter && !prompt.input.is_empty(),
            Some(Layer::List(_) | Layer::Key(_)) => key.code == KeyCode::Enter,
            Some(Layer::Confirm(_)) | None => {
                let seen = self.seen.as_ref().filter(|_| decides(&self.bench).is_some());
                seen.is_some_and(|(what, since)| {
                    Some(what) == decides(&self.bench).as_ref()
                        && self.bench.now >= since + layer::ARMED_AFTER
                })
            }
        };
        // Where something is written, the key that leaves the screen deletes.
        let leaves = key == KeyEvent::new(KeyCode::Char('d'), KeyModifiers::CONTROL);
        let takes = takes_text(&self.bench, key) || self.replaces() || leaves;
        let (before, had) = (typed_so_far(&self.bench), self.texts());
        let current = self.bench.app.current.clone();
        let effects = self.bench.msg(Msg::Key(key));
        let sends = |method: &&Method| {
            matches!(method, Method::Send { .. } | Method::Steer { .. } | Method::Resume)
        };
        let sent = calls(&effects).into_iter().filter(|(_, method)| sends(method));
        let sent: Vec<_> = sent.map(|(pod, method)| (pod.map(name), method.name())).collect();
        if let Some((_, since)) = self.seen.as_mut().filter(|_| decides(&self.bench).is_some()) {
            *since = self.bench.now;
        }
        self.perform(effects, confirmed);
        for (pod, method) in sent.into_iter().filter(|_| !confirmed) {
            assert_eq!(pod, current, "{method}");
            let screen = self.frame();
            let head = screen.lines().next().unwrap_or_default();
            let shown = pod.is_some_and(|pod| head.contains(pod.as_str()));
            // A screen of a few columns cuts it.
            assert!(shown || self.bench.app.size.0 < 40, "{method} to another than {head}");
        }
        self.forget_what_was_taken(before, &had, takes);
    }

    /// Whether what is typed now takes the place of a selected text.
    fn replaces(&self) -> bool {
        self.bench.app.composer.draft().text.is_selecting()
    }

    /// What the person takes away, or writes into, is not looked for any more.
    fn forget_what_was_taken(&mut self, before: Option<String>, had: &str, takes: bool) {
        let after = typed_so_far(&self.bench).unwrap_or_else(|| self.bench.draft());
        let has = self.texts();
        let grown = before.filter(|before| after.len() > before.len()).unwrap_or_default();
        let written = |word: &String| grown.contains(word.as_str());
        self.typed.retain(|word| {
            has.contains(word.as_str()) || !had.contains(word.as_str()) || !(takes || written(word))
        });
    }

    fn click(&mut self) {
        let (width, height) = self.bench.app.size;
        let column = u16::try_from(self.random.below(width.into())).expect("a column");
        let row = u16::try_from(self.random.below(height.into())).expect("a row");
        let kinds = [
            MouseEventKind::Down(MouseButton::Left),
            MouseEventKind::Down(MouseButton::Left),
            MouseEventKind::Drag(MouseButton::Left),
            MouseEventKind::Up(MouseButton::Left),
            MouseEventKind::ScrollUp,
            MouseEventKind::ScrollDown,
            MouseEventKind::Down(MouseButton::Right),
        ];
        let kind = kinds[self.random.below(kinds.len())];
        self.note(format!("{kind:?} at {column}, {row}"));
        let event = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
        self.message(Msg::Mouse(event), false);
    }

    /// The host answers a request that is under way, or refuses it.
    fn answer(&mut self) {
        let Some(first) = self.pending.first() else { return };
        let is_page = matches!(first.method, Method::Page { .. });
        if !first.lost && (is_page || self.random.below(6) != 0) {
            return self.grant();
        }
        let Pending { method, asked, confirmed, .. } = self.pending.remove(0);
        self.note(format!("refused: {}", method.name()));
        let refusal = Refusal::invalid("not now");
        self.message(Msg::Answered(asked, Err(refusal)), confirmed);
    }

    fn grant(&mut self) {
        let Pending { pod, method, asked, confirmed, .. } = self.pending.remove(0);
        self.note(format!("done: {}", method.name()));
        let (events, reply) = self.host.carry_out(pod.as_ref(), &method);
        events.into_iter().for_each(|event| self.tell(event));
        self.message(Msg::Answered(asked, Ok(reply)), confirmed);
    }

    /// What the screen shows.
    fn frame(&mut self) -> String {
        let effects = self.bench.app.prepare_frame();
        self.perform(effects, false);
        painted(&self.bench.app)
    }

    fn time_passes(&mut self) {
        self.frame();
        let now = self.bench.now;
        let stands = decides(&self.bench);
        self.seen = stands.map(|what| match self.seen.take() {
            Some((before, since)) if before == what => (what, since),
            _ => (what, now),
        });
        let millis = [5, 50, 299, 300, 700, 5_000][self.random.below(6)];
        self.note(format!("{millis} ms"));
        self.bench.app.frame_drawn(now);
        self.bench.until(now + millis);
        self.message(Msg::Wake, false);
    }

    /// The host is killed: it has carried out some of the open requests, and replies to none of them.
    fn host_ends(&mut self) {
        if self.bench.app.link != Link::Up {
            return;
        }
        self.note("the host ends".into());
        self.host_does_the_rest();
        // Runs end with their host; queues outlive it.
        for info in &mut self.host.pods {
            if info.state == State::Running {
                info.state = State::Idle;
            }
        }
        let early = self.random.below(self.pending.len() + 1);
        (0..early).for_each(|_| self.answer());
        self.message(Msg::HostEnded, false);
        while self.pending.iter().any(|pending| pending.lost) && self.random.below(4) != 0 {
            self.answer();
        }
    }

    fn host_does_the_rest(&mut self) {
        for pending in &mut self.pending {
            if !pending.lost && self.random.below(2) == 0 {
                self.host.carry_out(pending.pod.as_ref(), &pending.method);
            }
            pending.lost = true;
        }
    }

    /// Everything that is under way comes to its end.
    fn come_to_rest(&mut self) {
        for _ in 0..200 {
            if self.pending.is_empty() && self.bench.app.link == Link::Up {
                break;
            }
            self.answer();
            self.time_passes();
        }
    }

    /// The pages of what is shown are read.
    fn loads(&mut self) {
        for _ in 0..4 {
            self.frame();
            while !self.pending.is_empty() {
                self.grant();
            }
        }
    }

    /// The screen ends, as by a signal, and is opened again.
    fn leave(&mut self, rests: bool) {
        self.note("the screen ends and is opened again".into());
        // A request that left the screen reaches its host.
        for Pending { pod, method, lost, .. } in std::mem::take(&mut self.pending) {
            if !lost {
                self.host.carry_out(pod.as_ref(), &method);
            }
        }
        let rests = rests && self.bench.app.link == Link::Up;
        if rests {
            self.loads();
            self.bench.wait(60_000);
        }
        let kept = self.bench.app.screen_state();
        let text = serde_json::to_string(&kept).expect("encoded");
        let state = serde_json::from_str(&text).expect("decoded");
        let draft = self.bench.draft();
        // A draft of blanks is none, but it may take several rows.
        let is_blank = !draft.is_empty() && draft.trim().is_empty();
        let rests = rests && !is_blank && is_at_rest(&self.bench);
        let before = Before {
            size: self.bench.app.size,
            draft,
            current: self.bench.app.current.clone(),
            at_rest: rests.then(|| painted(&self.bench.app)),
        };
        let now = self.bench.now;
        self.bench = Bench::returning(state, self.host.pods.clone());
        self.bench.until(now);
        self.bench.size(before.size.0, before.size.1);
        let family = self.host.family();
        self.tell(family);
        self.seen = None;
        let there = |name: &PodName| {
            self.bench
                .app
                .family
                .get(name)
                .is_some_and(|info| info.workspace == std::path::Path::new("/repo"))
        };
        if before.current.as_ref().is_some_and(there) {
            assert_eq!(self.bench.app.current, before.current);
            assert_eq!(self.bench.draft().trim(), before.draft.trim());
        }
        if let Some(screen) = before.at_rest {
            self.loads();
            self.bench.wait(0);
            assert_eq!(without_bar(&painted(&self.bench.app)), without_bar(&screen));
            assert_eq!(self.bench.app.screen_state(), kept);
        }
    }

    /// All text that is somewhere: on the screen and what it keeps, on its way to a host, and there.
    fn texts(&self) -> String {
        let is_counted =
            |pending: &&Pending| !matches!(pending.method, Method::ListCompletions { .. });
        let under_way = self.pending.iter().filter(is_counted).filter(|pending| !pending.lost);
        let under_way: String = under_way.map(|pending| format!("{:?}", pending.method)).collect();
        let queues: Vec<_> = self.host.pods.iter().map(|info| &info.queue).collect();
        let asked: String = self
            .pending
            .iter()
            .filter(is_counted)
            .map(|pending| format!("{:?}", pending.asked))
            .collect();
        format!("{} {under_way} {queues:?} {} {asked}", texts(&self.bench, &[]), self.host.got)
    }

    fn nothing_is_lost(&self) {
        let texts = self.texts();
        let lost = self.typed.iter().find(|word| !texts.contains(word.as_str()));
        assert_eq!(lost, None, "a text is lost");
    }
}

/// A screen but for its last row: a notice there is not kept.
fn without_bar(screen: &str) -> &str {
    screen.rsplit_once('\n').map_or("", |(above, _)| above)
}

struct Before {
    size: (u16, u16),
    draft: String,
    current: Option<PodName>,
    at_rest: Option<String>,
}

fn brief(event: &Event) -> String {
    format!("{event:?}").chars().take(60).collect()
}

/// What a key would decide now: the confirmation on top, or the card that has the keys.
fn decides(bench: &Bench) -> Option<String> {
    match bench.app.layers.top() {
        Some(Layer::Confirm(confirm)) => Some(confirm.text()),
        Some(_) => None,
        None => {
            let items = bench.app.items();
            let item = bench.app.inbox.chosen(&items).filter(|_| bench.app.focus == Focus::Inbox);
            item.map(|item| format!("{item:?}"))
        }
    }
}

/// Whether the screen shows only what outlives it.
fn is_at_rest(bench: &Bench) -> bool {
    let app = &bench.app;
    let line = panes::composer(app).text_area(Areas::of(app).composer);
    app.layers.is_empty()
        && app.focus == Focus::Composer
        && app.page.is_none()
        && !app.leader
        && app.pinning.is_none()
        && !app.has_card()
        && (app.composer.is_empty() || !bench.draft().trim().is_empty())
        && !app.composer.draft().text.is_selecting()
        // A long draft is scrolled to its cursor, no further.
        && app.composer.draft().rows(line.width) <= line.height
        && app.current.as_ref().is_some_and(|name| app.family.get(name).is_some())
}

#[test]
fn on_any_walk_no_text_is_lost_no_pod_changes_unconfirmed_and_the_screen_returns() {
    let number = |name: &str, usual: u64| {
        std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
    };
    let first = number("YOI_SEED", 1);
    let mut broken = Vec::new();
    for seed in first..first + number("YOI_WALKS", 24) {
        let mut walk = Walk::new(seed);
        let walked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| walk.walk()));
        if walked.is_err() {
            println!(
                "YOI_SEED={seed} YOI_WALKS=1\n{}\n{}",
                walk.done.join("\n"),
                walk.bench.screen()
            );
            broken.push(seed);
        }
    }
    assert!(broken.is_empty(), "these walks broke: {broken:?}");
}
