//! What reaches a person whose eyes are elsewhere: the title of the window, a notification of each Pod that comes to need
//! a person, fails or ends, and a record of each Pod for terminals that list them. Derived from the family before each
//! frame.

use crate::screen::app::{App, Areas, Effect, Link};
use crate::screen::notice::Kind;
use crate::screen::program_status::{self, Need, Record, States, Status};
use std::collections::{BTreeMap, HashMap};
use yoi::client::family::inbox::waiting;
use yoi::protocol::{ApprovalRequest, Matter, PodInfo, PodName, State, TEST_CALL};
use yoi::text::SafeText;

/// Milliseconds between two notifications; what comes meanwhile is told together.
const BETWEEN: u64 = 2000;
/// The most characters of a notification.
const LONGEST: usize = 120;
/// The most Pods with a record: terminals keep at least 64 and at most 256.
const RECORDS: usize = 64;

/// What the terminal shows outside of the screen.
#[derive(Default)]
pub(super) struct Outside {
    /// Whether the family, or what the terminal shows, changed since it was last compared.
    due: bool,
    title: String,
    /// What was last known of each Pod; `None` before the family was.
    known: Option<HashMap<PodName, Standing>>,
    /// The Pods that the next notification is of.
    waiting: Vec<PodName>,
    /// No notification is sent before; milliseconds since the Unix epoch.
    quiet_until: u64,
    /// The states that the terminal takes in records; `None` until it answers.
    states: Option<States>,
    /// The records that the terminal has, by id.
    records: BTreeMap<Option<String>, Record>,
    /// The terminal said that its window lost the focus.
    unfocused: bool,
}

/// What a notification would be about, and when the newest request, failure or end was; 0 where no request says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    matter: Option<Matter>,
    newest: u64,
}

impl Standing {
    /// Whether a person who knows what was before has something new to hear. A Pod may come to need a person a moment
    /// before its request comes.
    fn differs_from(self, before: Option<&Self>) -> bool {
        let same = before.filter(|before| before.matter == self.matter);
        let newer = |before: &Self| before.newest != 0 && self.newest > before.newest;
        self.matter.is_some() && same.is_none_or(newer)
    }
}

impl App {
    /// The family changed.
    pub(super) fn outside_changed(&mut self) {
        self.outside.due = true;
    }

    /// The window got or lost the focus.
    pub(super) fn focus_changed(&mut self, focused: bool) {
        self.outside.unfocused = !focused;
    }

    /// The terminal answered that it takes records with these states.
    pub(super) fn takes_records(&mut self, states: States) {
        self.outside.states = Some(states);
        self.outside.due = true;
    }

    /// The terminal was taken again: another program may have changed its title and its records.
    pub fn terminal_retaken(&mut self) {
        self.outside.title.clear();
        self.outside.records.clear();
        self.outside.due = true;
    }

    /// Calls the person by the terminal, as a test, and says what the terminal takes.
    pub(super) fn call_by_terminal(&mut self) -> Vec<Effect> {
        if self.setup.silent {
            return self.say(Kind::Info, "terminal: silent, by [notify] terminal = false");
        }
        let lists = match self.outside.states {
            Some(_) => "it lists the Pods with their states (OSC 7501)",
            None => "it has not said that it lists Pods (OSC 7501)",
        };
        self.say(Kind::Info, format!("terminal: rang and was sent a notification; {lists}"));
        vec![Effect::Notify(TEST_CALL.into())]
    }

    /// When a notification is due that had to wait.
    pub(super) fn notifies_at(&self) -> Option<u64> {
        (!self.outside.waiting.is_empty()).then_some(self.outside.quiet_until)
    }

    /// What the terminal has to show outside of the screen now.
    pub(super) fn tell_outside(&mut self) -> Vec<Effect> {
        let held = !self.outside.waiting.is_empty();
        // Without a host no state is known: what was last shown stays.
        if !(self.outside.due || held) || self.link != Link::Up || !self.family.is_known() {
            return Vec::new();
        }
        self.outside.due = false;
        self.compare();
        let notification = self.notification().filter(|_| !self.setup.silent).map(Effect::Notify);
        let title = self.new_title().map(Effect::Title);
        let records = self.new_records();
        let records = (!records.is_empty()).then_some(Effect::Records(records));
        [title, notification, records].into_iter().flatten().collect()
    }

    /// Notes which Pods have a new matter that the person does not see.
    fn compare(&mut self) {
        let standings = self.family.listed().map(|info| (info.name.clone(), self.standing(info)));
        let now: HashMap<PodName, Standing> = standings.collect();
        let before = self.outside.known.take();
        let is_new = |name: &&PodName| {
            let (Some(before), Some(now)) = (&before, now.get(*name)) else { return false };
            now.differs_from(before.get(*name)) && !self.is_in_view(name)
        };
        let mut waiting = self.outside.waiting.clone();
        waiting.retain(|name| now.get(name).is_some_and(|it| it.matter.is_some()));
        for name in self.family.listed().map(|info| &info.name).filter(is_new) {
            if !waiting.contains(name) {
                waiting.push(name.clone());
            }
        }
        self.outside.waiting = waiting;
        self.outside.known = Some(now);
    }

    fn standing(&self, info: &PodInfo) -> Standing {
        let requests = self.requests_of(info);
        let newest = requests.map(|approval| approval.since).max();
        let below = || self.family.subtree(&info.name).into_iter().skip(1);
        let (matter, newest) = match (newest, info.state, &info.last_result) {
            (Some(newest), ..) => (Some(Matter::Needs), newest),
            (None, State::NeedsYou, _) => (Some(Matter::Needs), 0),
            (None, State::Failed, _) => (Some(Matter::Failed), info.since),
            (None, State::Idle, Some(run)) if info.is_root_of_done(below()) => {
                (Some(Matter::Finished), run.at)
            }
            _ => (None, 0),
        };
        Standing { matter, newest }
    }

    fn requests_of<'a>(&'a self, info: &'a PodInfo) -> impl Iterator<Item = &'a ApprovalRequest> {
        self.family.approvals().iter().filter(|approval| approval.is_of(&info.name))
    }

    /// Whether the person looks at the screen, and the screen shows the Pod.
    fn is_in_view(&self, name: &PodName) -> bool {
        let areas = Areas::of(self);
        let lists = areas.tree.is_some() || areas.card.is_some();
        let shown = [self.shown(), self.beside()].contains(&Some(name));
        !self.outside.unfocused && (lists || shown)
    }

    /// The next notification, once the one before is long enough ago.
    fn notification(&mut self) -> Option<String> {
        if self.outside.waiting.is_empty() || self.now < self.outside.quiet_until {
            return None;
        }
        self.outside.quiet_until = self.now + BETWEEN;
        let names = std::mem::take(&mut self.outside.waiting);
        let known = self.outside.known.as_ref()?;
        let pods = names.iter().filter_map(|name| self.family.get(name));
        let pods: Vec<(&PodInfo, Matter)> =
            pods.filter_map(|info| Some((info, known.get(&info.name)?.matter?))).collect();
        let text = match pods[..] {
            [] => return None,
            [(info, matter)] => self.sentence(info, matter),
            _ => {
                let named = pods.iter().map(|(info, matter)| (info.name.as_str(), *matter));
                Matter::sentence(&named.collect::<Vec<_>>())
            }
        };
        Some(text.chars().take(LONGEST).collect())
    }

    fn sentence(&self, info: &PodInfo, matter: Matter) -> String {
        let name = &info.name;
        match (matter, self.requests_of(info).next()) {
            (Matter::Needs, Some(approval)) if approval.question.is_some() => {
                format!("{name} has a question for you")
            }
            (Matter::Needs, Some(approval)) => {
                format!("{name} needs you: {}", SafeText::spelled(approval.because.as_str()))
            }
            (Matter::Needs | Matter::Failed, _) => {
                let what = Matter::sentence(&[(name.as_str(), matter)]);
                info.why
                    .as_deref()
                    .map_or(what.clone(), |why| format!("{what}: {}", SafeText::spelled(why)))
            }
            (Matter::Finished, _) => Matter::sentence(&[(name.as_str(), matter)]),
        }
    }

    /// The title, if it is another one than before.
    fn new_title(&mut self) -> Option<String> {
        let place = self.workspace_name();
        let shape = self.setup.glyphs.pick("▲", "!");
        let title = match waiting(&self.family) {
            0 => place,
            count => format!("{shape}{count} {place}"),
        };
        if self.outside.title == title {
            return None;
        }
        self.outside.title.clone_from(&title);
        Some(title)
    }

    /// The name of the workspace.
    fn workspace_name(&self) -> String {
        let name = self.setup.workspace.file_name().unwrap_or_default();
        SafeText::spelled(name.to_string_lossy()).to_string()
    }

    /// The sequences for the records that changed. A record goes with those below it, which are reported again.
    fn new_records(&mut self) -> Vec<String> {
        let Some(states) = &self.outside.states else { return Vec::new() };
        let mut now = self.records();
        now.retain(|record| states.take(record.status));
        let now: BTreeMap<_, _> =
            now.into_iter().map(|record| (record.id.clone(), record)).collect();
        let before = std::mem::replace(&mut self.outside.records, now);
        let now = &self.outside.records;
        let gone: Vec<&Option<String>> = before.keys().filter(|id| !now.contains_key(id)).collect();
        let goes_with = |id: &Option<String>| gone.iter().any(|gone| is_below(id, gone));
        let changed =
            now.iter().filter(|(id, record)| before.get(*id) != Some(*record) || goes_with(id));
        let mut sequences: Vec<String> = gone.iter().map(|id| program_status::clear(id)).collect();
        sequences.extend(changed.map(|(_, record)| record.to_string()));
        sequences
    }

    /// One record of the program, with the worst state of the family, and one of each Pod that lives.
    fn records(&self) -> Vec<Record> {
        let pods = self.family.listed();
        let pods = pods.filter_map(|info| Some((info, self.status(info)?))).take(RECORDS - 1);
        let pods: Vec<(&PodInfo, Status)> = pods.collect();
        let worst = pods.iter().map(|(_, status)| *status).max().unwrap_or(Status::Idle);
        let message = match waiting(&self.family) {
            0 => String::new(),
            1 => "1 needs you".to_owned(),
            count => format!("{count} need you"),
        };
        let root = Record { id: None, status: worst, title: self.workspace_name(), message };
        let record = |(info, status): (&PodInfo, Status)| {
            let lineage = self.family.lineage(info).into_iter().chain([&info.name]);
            let message = self.standing(info).matter.filter(|matter| *matter != Matter::Finished);
            Record {
                id: Some(program_status::id(lineage.map(PodName::as_str))),
                status,
                title: info.name.to_string(),
                message: message.map(|matter| self.sentence(info, matter)).unwrap_or_default(),
            }
        };
        [root].into_iter().chain(pods.into_iter().map(record)).collect()
    }

    /// The state of a Pod in a record; `None` without one.
    fn status(&self, info: &PodInfo) -> Option<Status> {
        Some(match info.state {
            State::NeedsYou => Status::Blocked(match self.requests_of(info).next() {
                Some(approval) if approval.question.is_some() => Need::Question,
                Some(_) => Need::Permission,
                // What a Pod needs beyond its requests is a model, a key or an agreement to one.
                None => Need::Auth,
            }),
            State::Running => Status::Working,
            State::Failed => Status::Error,
            State::Idle if info.unseen => Status::Done,
            State::Idle | State::Paused => Status::Idle,
            State::Stopped | State::Damaged | State::Unknown => return None,
        })
    }
}

/// Whether a record belongs to another one.
fn is_below(id: &Option<String>, above: &Option<String>) -> bool {
    let Some(above) = above else { return true };
    let rest = id.as_deref().and_then(|id| id.strip_prefix(above.as_str()));
    rest.is_some_and(|rest| rest.starts_with('/'))
}
