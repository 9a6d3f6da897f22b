//! The state of the dashboard and its one writer: `update` takes what happened and returns what is to
//! be done and painted. It does no I/O and gets the time as an argument.

use crate::family::Family;
use crate::keys::Keymap;
use crate::notice::{Kind, Notices};
use crate::pane::composer::{Composer, Message};
use crate::pane::glyph::Glyphs;
use crate::pane::inbox::Inbox;
use crate::pane::peers::Peers;
use crate::pane::transcript::{
    Detail, LogCopy, LongText, PartRange, PartTable, Transcript, Wanted,
};
use crate::pane::tree::Tree;
use crate::theme::Theme;
use crate::verb::VerbId;
use crate::verb::complete::Sources;
use crate::wording::{age, wait};
use crossterm::event::{KeyEvent, MouseEvent};
use jiff::tz::TimeZone;
use ratatui::layout::Rect;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use yoi::protocol::{ByteRange, EntryId, Event, Method, Outgoing, PodInfo, PodName, Refusal};

mod areas;
mod confirm;
mod copy;
mod compose;
mod explain;
mod hint;
mod host;
pub mod inbox;
mod key;
mod layer;
mod line;
mod list;
mod mouse;
mod peers;
pub mod panes;
mod picked;
mod pods;
mod prompt;
mod send;
mod split;
mod verb;

pub use areas::Areas;
pub use confirm::{Confirm, Read, confirm_rows};
pub use copy::{CLIPBOARD, Copied};
pub use layer::{Layer, Layers, RequestToken};
pub use split::Zoom;

/// Something that happened. It is moved into `update` and gone.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum Msg {
    Key(KeyEvent),
    Paste(String),
    Mouse(MouseEvent),
    Resize(u16, u16),
    /// An event of the host or of one of its Pods.
    Host(Outgoing),
    /// The connection to the host ended.
    HostEnded,
    /// The connection is there again.
    Connected,
    ConnectFailed(String),
    /// No host runs, or there is one that cannot be talked to, and why.
    NotFound(Option<String>),
    /// The reply to a call.
    Answered(Asked, Result<Event, Refusal>),
    /// The parts of an entry's long text, or why they cannot be had.
    Table(PodName, EntryId, Result<PartTable, String>),
    /// A text that was read from the log, or why it could not be.
    Copied(Result<Copied, String>),
    ThemeLoaded(Box<Theme>, Vec<String>),
    /// What the external editor left behind.
    Edited(Result<String, String>),
    /// Something went well or wrong outside of the host.
    Said(Kind, String),
    /// The time that [`App::wakes_at`] named has come.
    Wake,
}

/// Why the dashboard ended. The terminal is as it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitReason {
    /// The person left. The sentences say how to come back, and how to end what still runs; they
    /// are for standard error.
    Quit { farewell: Vec<String> },
    /// The host ended and the person did not want it back.
    HostEnded,
    /// A signal; the exit code is 128 + its number.
    Signal(i32),
}

/// What follows from a message.
#[derive(Debug, Default)]
#[must_use]
pub struct Update {
    /// To be done, in this order.
    pub effects: Vec<Effect>,
    pub redraw: Redraw,
}

/// What must be painted anew; of several updates, the greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Redraw {
    #[default]
    Nothing,
    /// A frame.
    Frame,
}

/// Something to be done, once.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum Effect {
    /// Calls the host; the reply comes back as [`Msg::Answered`].
    Call {
        pod: Option<PodName>,
        method: Method,
        asked: Asked,
    },
    /// Finds the parts of a long text; the reply comes back as [`Msg::Table`].
    ReadTable(PodName, LongText),
    /// Puts a text into the clipboard of the terminal.
    Copy(String),
    /// Reads a text from the log to copy it; it comes back as [`Msg::Copied`].
    CopyFromLog(PodName, LogCopy),
    /// Opens the text in the person's editor.
    Edit(String),
    LoadTheme(String),
    /// Makes a temporary directory and in it the Pod of the tour.
    Tour(RequestToken),
    Mouse(Capture),
    /// Paints everything anew.
    Redraw,
    /// Gives the terminal back to the shell until the person returns.
    Suspend,
    /// Starts or finds the host again.
    Reconnect,
    /// Looks whether a host runs again; starts none.
    FindHost,
    Quit(ExitReason),
}

impl Effect {
    /// The Pod whose turn this asks to halt.
    fn interrupts(&self) -> Option<&PodName> {
        match self {
            Self::Call { pod, method: Method::Pause | Method::Cancel, .. } => pod.as_ref(),
            _ => None,
        }
    }
}

/// Who gets the mouse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Capture {
    #[default]
    Ours,
    Terminals,
}

/// What a call was for, so that its reply can be dealt with.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// One of the requests of a verb.
    Verb(VerbId, usize),
    /// The subscription.
    Watch,
    Page(PodName),
    /// An entry that came cut.
    Whole(PodName),
    /// Parts of a long text.
    Parts(PodName, PartRange),
    /// A message to a Pod; it is given back when it is refused.
    Send(PodName, Message),
    /// The Pod for the first message.
    NewFor(Message, RequestToken),
    /// The Pod of the tour.
    NewTour(RequestToken),
    /// The model is chosen; then the message can be sent.
    ChosenFor(PodName, Message),
    /// The Pod is back; then the message can be sent.
    ReadyFor(PodName, Message),
    /// Files whose names begin so.
    Files(String),
    /// A queued message is taken out to be edited.
    Unqueue(PodName, Message),
    /// A verdict on this question.
    Answer(String),
    /// Nobody waits for the reply; a refusal is said.
    Quietly,
    /// Nobody waits for the reply, and a refusal means nothing.
    Silently,
}

/// Which pane gets the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    #[default]
    Composer,
    Tree,
    Peers,
    Transcript,
    /// The second transcript.
    Beside,
    Inbox,
}

/// Whether there is a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    #[default]
    Up,
    Ended,
    Connecting,
}

/// What does not change while the dashboard is open.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    pub cwd: PathBuf,
    /// The workspace that `cwd` belongs to.
    pub workspace: PathBuf,
    pub env: BTreeMap<String, String>,
    pub models: Vec<String>,
    pub themes: Vec<String>,
    pub zone: Option<TimeZone>,
    pub glyphs: Glyphs,
    /// Whether somebody can bring the host back.
    pub reconnects: bool,
}

/// The state of the dashboard.
#[derive(Default)]
pub struct App {
    pub setup: Setup,
    pub keymap: Keymap,
    pub theme: Theme,
    pub size: (u16, u16),
    /// When the last message came; what is painted is as of then.
    pub now: u64,
    pub link: Link,
    /// Looking for a host that somebody else started.
    search: host::Search,
    pub family: Family,
    /// Shown, written to, meant by verbs. It never changes by itself.
    pub current: Option<PodName>,
    pub focus: Focus,
    pub layers: Layers,
    /// The leader key was pressed, and the next key is its second.
    pub leader: bool,
    /// The Pod that the digit to come is for.
    pub pinning: Option<PodName>,
    pub tree: Tree,
    pub peers: Peers,
    pub inbox: Inbox,
    pub composer: Composer,
    pub notices: Notices,
    pub detail: Detail,
    pub zoom: Zoom,
    /// The model of new Pods, when a person chose one.
    pub model: Option<String>,
    pub capture: Capture,
    transcripts: HashMap<PodName, Transcript>,
    /// The Pod that was current before.
    previous: Option<PodName>,
    /// The Pod whose transcript was asked for beside the current one.
    beside: Option<PodName>,
    /// The Pod to begin with, until the family is known.
    initial_pod: Option<PodName>,
    /// Lines that were run, newest first.
    lines: Vec<String>,
    guard: Guard,
    /// What the line that is being written is about: the reason of a refusal, or a rule.
    answered_by_line: Option<inbox::Questions>,
    /// Pods whose turns were asked to halt from here, until they have.
    interrupted: HashSet<PodName>,
    /// Questions whose answer is under way from here.
    answering: HashSet<String>,
    /// Since when a Pod's last state is known to have been seen.
    seen: HashMap<PodName, u64>,
    /// Pods that were offered this environment.
    opened: HashSet<PodName>,
    tour: Option<Tour>,
    /// Verbs that wait for results, or for the person's answer.
    verbs: BTreeMap<VerbId, verb::Carried>,
    /// A Pod is being made for a message.
    creating: bool,
    /// Counts what the person does; a [`RequestToken`] holds the count of its request.
    moment: u64,
}

/// Times before which a key means less than it says.
#[derive(Clone, Copy, Debug, Default)]
struct Guard {
    /// Esc does nothing until then: it has just closed something.
    escape: u64,
    /// A second Ctrl+C leaves until then.
    armed: u64,
    /// Ctrl+C does not arm leaving until then: it has just paused.
    paused: u64,
}

/// The Pod of the tour and the lines it still waits for.
#[derive(Clone, Debug)]
struct Tour {
    pod: PodName,
    next: usize,
    /// The next line is due, and waits for the Pod to be looked at.
    due: bool,
}

impl App {
    /// A dashboard before its first event. `wanted` is the Pod to begin with.
    pub fn new(setup: Setup, keymap: Keymap, theme: Theme, initial_pod: Option<PodName>) -> Self {
        let tree = Tree::new(setup.workspace.clone(), setup.glyphs);
        Self { setup, keymap, theme, tree, initial_pod, ..Self::default() }
    }

    /// Takes in what happened at `now` (milliseconds since the Unix epoch), and answers with what
    /// is to be done.
    pub fn update(&mut self, msg: Msg, now: u64) -> Update {
        self.now = now;
        let notices = self.notices.version();
        self.notices.expire(now);
        let redraw = self.redraw_after(&msg);
        let mut effects = self.take_in(msg);
        effects.extend(self.look_for_host());
        let interrupts = effects.iter().filter_map(Effect::interrupts);
        self.interrupted.extend(interrupts.cloned());
        self.inbox_follows();
        self.split_follows();
        let notices =
            if self.notices.version() == notices { Redraw::Nothing } else { Redraw::Frame };
        Update { effects, redraw: redraw.max(notices) }
    }

    /// Whether a message changes the screen, but for its notices: an event about a Pod that is not in
    /// view does not, and neither does the pointer when it only moves.
    fn redraw_after(&self, msg: &Msg) -> Redraw {
        let changes = match msg {
            Msg::Host(Outgoing { pod, event, .. }) => {
                let in_view = [self.shown(), self.beside(), self.current.as_ref()];
                is_of_the_family(event)
                    || pod.as_ref().is_some_and(|pod| in_view.contains(&Some(pod)))
            }
            Msg::NotFound(None) => false,
            Msg::Mouse(event) => mouse::does_something(event.kind),
            _ => true,
        };
        if changes { Redraw::Frame } else { Redraw::Nothing }
    }

    fn take_in(&mut self, msg: Msg) -> Vec<Effect> {
        match msg {
            Msg::Key(key) => self.key(key),
            Msg::Paste(text) => self.paste(&text),
            Msg::Mouse(event) => self.mouse(event),
            Msg::Resize(width, height) => {
                self.size = (width, height);
                self.inbox.changed();
                self.layers.changed();
                self.say_hidden()
            }
            Msg::Host(event) => self.host(event),
            Msg::HostEnded => self.host_ended(),
            Msg::Connected => self.connected(),
            Msg::ConnectFailed(why) => self.connect_failed(&why),
            Msg::NotFound(why) => self.not_found(why),
            Msg::Answered(asked, reply) => self.answered(asked, reply),
            Msg::Table(pod, entry, read) => {
                if let Some(transcript) = self.transcripts.get_mut(&pod) {
                    transcript.table(entry, read);
                }
                Vec::new()
            }
            Msg::Copied(copied) => self.copied(copied),
            Msg::ThemeLoaded(theme, diagnostics) => self.theme_loaded(*theme, diagnostics),
            Msg::Edited(text) => self.edited(text),
            Msg::Said(kind, text) => self.say(kind, text),
            Msg::Wake => Vec::new(),
        }
    }

    /// Prepares the state for a frame: lays the transcripts out for the size of their panes,
    /// and asks for what is missing in them.
    pub fn prepare_frame(&mut self) -> Vec<Effect> {
        let areas = Areas::of(self);
        self.composer_follows();
        let first = self.shown().cloned().map(|name| (name, areas.transcript));
        let second = self.beside().cloned().zip(areas.beside);
        let second = second.map(|(name, area)| (name, Some(area)));
        let panes = first.into_iter().chain(second);
        panes.flat_map(|(name, area)| self.prepare_transcript(name, area)).collect()
    }

    fn prepare_transcript(&mut self, name: PodName, area: Option<Rect>) -> Vec<Effect> {
        let mut effects = self.look_at(&name);
        // What nobody tells of any more does not grow older.
        let (now, until) = (self.now, self.search.lost.unwrap_or(u64::MAX));
        let transcript = self.transcript_of(&name);
        if let Some(area) = area {
            transcript.layout(area.width, area.height, now.min(until));
        }
        let pod = Some(name.clone());
        if let Some(entry) = transcript.wants_whole() {
            let asked = Asked::Whole(name.clone());
            effects.push(Effect::Call {
                pod: pod.clone(),
                method: Method::Fetch { entry, range: None },
                asked,
            });
        }
        while let Some(text) = transcript.wants_table() {
            effects.push(Effect::ReadTable(name.clone(), text));
        }
        if let Some(wanted) = transcript.wants() {
            transcript.asked();
            let (method, asked) = match wanted {
                Wanted::Page(before) => {
                    (Method::Page { before, max_bytes: PAGE }, Asked::Page(name))
                }
                Wanted::Parts(range) => (fetch(range), Asked::Parts(name, range)),
            };
            effects.push(Effect::Call { pod, method, asked });
        }
        effects
    }

    /// When something on the screen changes by itself, if nothing else happens.
    pub fn wakes_at(&self) -> Option<u64> {
        let (notice, arms) = (self.notices.ends(), self.arms_at());
        let areas = Areas::of(self);
        let shown = self.shown();
        let beside = self.beside().filter(|_| areas.beside.is_some());
        let connected = self.link == Link::Up;
        let transcripts = [shown, beside].into_iter().flatten().filter(|_| connected);
        let transcripts = transcripts.filter_map(|name| self.transcripts.get(name));
        let transcript = transcripts.filter_map(|one| one.wakes_at(self.now)).min();
        let lists = areas.tree.is_some() || areas.peers.is_some() || areas.inbox.is_some();
        let in_view = |info: &&PodInfo| {
            [shown, beside].contains(&Some(&info.name))
                || lists && self.tree.may_show(info, &self.family, self.current.as_ref())
        };
        let age = |info: &PodInfo| age::changes_at(info, self.now);
        let wait = |info: &PodInfo| wait::changes_at(info, &self.family, self.now);
        let ages = self.family.all().iter().filter(in_view);
        let ages = ages.filter_map(|info| age(info).into_iter().chain(wait(info)).min()).min();
        [notice, arms, transcript, ages, self.looks_at()].into_iter().flatten().min()
    }

    /// The Pod whose transcript is on screen: the one under the tree's cursor while a list has the
    /// focus, else the current one.
    pub fn shown(&self) -> Option<&PodName> {
        let listed = matches!(self.focus, Focus::Tree | Focus::Peers);
        let chosen = if listed { self.tree.chosen() } else { None };
        chosen.or(self.current.as_ref())
    }

    /// What the host said last about the current Pod.
    pub fn info(&self) -> Option<&PodInfo> {
        self.family.get(self.current.as_ref()?)
    }

    /// The transcript that keys are about: of the two, the one in focus.
    pub fn transcript(&self) -> Option<&Transcript> {
        self.transcript_at(self.selected()?)
    }

    /// The transcript of a Pod, if it was ever shown.
    pub fn transcript_at(&self, name: &PodName) -> Option<&Transcript> {
        self.transcripts.get(name)
    }

    fn transcript_mut(&mut self) -> Option<&mut Transcript> {
        let name = self.selected()?.clone();
        self.transcripts.get_mut(&name)
    }

    /// The transcript of a Pod, begun when there is none.
    fn transcript_of(&mut self, name: &PodName) -> &mut Transcript {
        if !self.transcripts.contains_key(name) && self.transcripts.len() >= TRANSCRIPTS {
            let keep = [&self.current, &self.previous, &self.beside, &self.shown().cloned()]
                .map(Option::clone);
            self.transcripts.retain(|name, _| keep.contains(&Some(name.clone())));
        }
        let (detail, zone) = (self.detail, self.zone().clone());
        self.transcripts.entry(name.clone()).or_insert_with(|| {
            let mut transcript = Transcript::in_zone(zone);
            transcript.set_detail(detail);
            transcript
        })
    }

    /// What arguments can be.
    fn sources(&self) -> Sources {
        let word = |info: &PodInfo| self.setup.glyphs.state_sign(info).word.to_owned();
        let pods = self.family.all().iter();
        Sources {
            pods: pods.map(|info| (info.name.to_string(), word(info))).collect(),
            models: self.setup.models.clone(),
            paths: self.known_paths(),
            themes: self.setup.themes.clone(),
        }
    }

    /// The paths that scopes speak of, and this directory.
    fn known_paths(&self) -> Vec<String> {
        let pods = self.family.all().iter();
        let rules =
            pods.flat_map(|info| info.scope.iter().chain(info.lent.iter().map(|lent| &lent.rule)));
        let paths = rules.map(|rule| &rule.target).chain([&self.setup.cwd]);
        let paths: BTreeSet<String> = paths.map(|path| path.display().to_string()).collect();
        paths.into_iter().collect()
    }

    /// The time zone that clock times are shown in.
    pub fn zone(&self) -> &TimeZone {
        static UTC: TimeZone = TimeZone::UTC;
        self.setup.zone.as_ref().unwrap_or(&UTC)
    }

    /// Shows a notice; there is nothing else to be done.
    fn say(&mut self, kind: Kind, text: impl Into<String>) -> Vec<Effect> {
        self.notices.say(kind, text, self.now);
        Vec::new()
    }

    fn theme_loaded(&mut self, theme: Theme, diagnostics: Vec<String>) -> Vec<Effect> {
        let name = theme.name.clone();
        self.theme = theme;
        if diagnostics.is_empty() {
            return self.say(Kind::Done, format!("theme {name}"));
        }
        for diagnostic in diagnostics {
            self.notices.say(Kind::Warned, diagnostic, self.now);
        }
        Vec::new()
    }
}

/// Whether an event is about what the lists show of all Pods.
fn is_of_the_family(event: &Event) -> bool {
    matches!(
        event,
        Event::Family { .. }
            | Event::PodChanged { .. }
            | Event::PodRemoved { .. }
            | Event::Peered { .. }
            | Event::Unpeered { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalDecided { .. }
    )
}

/// The request for some parts of a long text.
fn fetch(range: PartRange) -> Method {
    let PartRange { place, start, end, .. } = range;
    Method::Fetch { entry: place, range: Some(ByteRange { start, bytes: end - start }) }
}

/// How many transcripts are kept; those beyond are read again when they are shown.
const TRANSCRIPTS: usize = 8;
/// Bytes of log asked for at once.
const PAGE: u64 = 256 * 1024;

#[cfg(test)]
pub mod tests;
