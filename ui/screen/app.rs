//! The state of the dashboard. `App::update` is the only function that changes it: it takes a message
//! and returns the effects that follow from it. It does no I/O and gets the time as an argument.

use crate::screen::keys::{self, Keymap};
use crate::screen::notice::{Kind, Notices};
use crate::screen::pane::composer::{Composer, Message};
use crate::screen::pane::glyph::Glyphs;
use crate::screen::pane::inbox::Inbox;
use crate::screen::pane::peers::Peers;
use crate::screen::pane::transcript::{Bookmark, Detail, Transcript};
use crate::screen::pane::tree::Tree;
use crate::theme::Theme;
use crate::verb::VerbId;
use crate::verb::complete::Sources;
use crate::verb::targets;
use jiff::tz::TimeZone;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use yoi::client::family::{Agent, Family, Mistakes};
use yoi::protocol::{Completion, Effort, Method, PodInfo, PodName};
use yoi::text::SafeText;

/// Where each pane stands on the screen.
mod areas;
/// Confirmations: small windows that ask yes or no.
mod confirm;
/// Copying to the clipboard or to a file.
mod copy;
/// What puts a copy into the clipboard.
mod clipboard;
/// Keys and pastes in the composer.
mod compose;
/// What the app wants to be done.
mod effect;
/// The palette.
mod everything;
/// `:explain` and the menu of a Pod.
mod explain;
/// The first screen: the model of new Pods.
pub mod first;
/// When the next frame is due, and what it needs.
mod frame;
/// The hints and counts of the action bar.
mod hint;
/// Events and replies of the host.
mod host;
/// Decisions on approval requests.
pub mod inbox;
/// The line of a rule.
mod rule;
/// Decisions that a host which ended may not have taken.
mod unconfirmed;
/// From a key to its action.
mod key;
/// The line for a key of a provider.
mod key_line;
/// The stack of layers over the panes.
mod layer;
/// The command line, and leaving the screen.
mod line;
/// The lists that open over the panes.
mod list;
/// The colours, the keymap, and what the terminal says of itself.
mod looks;
/// What reaches the app.
mod message;
/// Clicks and the wheel.
mod mouse;
/// What reaches a person who looks away from the screen.
mod notify;
/// How long a row says one thing.
mod pace;
/// Keys in the pane of peers.
mod peers;
/// The panes as they are painted from the state.
pub mod panes;
/// Marked and pinned Pods.
mod picked;
/// Going from Pod to Pod and from pane to pane.
mod pods;
/// Keys in the lines and lists on top.
mod prompt;
/// What of the screen outlives it.
mod screen_state;
/// Text that the mouse selects.
mod selection;
/// The page in the place of the transcript.
mod page;
/// Sending messages.
mod send;
/// Two transcripts, or the whole width for one.
mod split;
/// Opening what a block leads to.
mod open_target;
/// The dialogues of verbs.
mod verb;

pub use areas::{Areas, Heads};
pub use clipboard::Clipboard;
pub use confirm::{Confirm, Read, TextFor, confirm_rows};
pub use copy::{CLIPBOARD, Copied};
pub use effect::{Capture, Effect, ExitReason, Update};
pub use key_line::{KeyLine, KeyState};
pub use layer::{Layer, Layers, RequestToken};
pub use looks::{Chosen, Looks};
pub use message::{Asked, LoadFor, Msg};
pub use page::{KeysOf, OpenPage, Page};
pub use screen_state::ScreenState;
pub use split::Zoom;

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
    /// The page in the place of the transcripts.
    Page,
}

/// Whether there is a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    #[default]
    Up,
    Ended,
    Connecting,
}

/// The settings of a dashboard that do not change while it is open.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    pub cwd: PathBuf,
    /// The workspace that `cwd` belongs to.
    pub workspace: PathBuf,
    pub env: BTreeMap<String, String>,
    pub models: Vec<(String, String)>,
    /// The providers that are known by name.
    pub providers: Vec<String>,
    /// The effort of new Pods, if the person chose one.
    pub effort: Option<Effort>,
    pub themes: Vec<String>,
    pub zone: Option<TimeZone>,
    pub glyphs: Glyphs,
    /// What puts copies into the clipboard.
    pub clipboard: Clipboard,
    /// Whether the dashboard can start the host again after it ended.
    pub reconnects: bool,
    /// Why a Pod made here may not write; `None` when it may.
    pub read_only: Option<String>,
    /// Whether the terminal neither rings nor shows notifications.
    pub silent: bool,
}

/// The state of the dashboard.
#[derive(Default)]
pub struct App {
    pub setup: Setup,
    pub keymap: Keymap,
    pub theme: Theme,
    pub size: (u16, u16),
    /// The time of the last message; a frame shows the state at this time.
    pub now: u64,
    pub link: Link,
    /// The search for a host that another program started.
    search: host::Search,
    pub family: Family,
    pace: pace::Pace,
    /// The Pod that is shown, that messages go to and that verbs mean. Only the person changes it.
    pub current: Option<PodName>,
    /// The current Pod was deleted: another one that gets its name is sent nothing.
    current_is_gone: bool,
    pub focus: Focus,
    pub layers: Layers,
    /// The page in the place of the transcripts.
    pub page: Option<OpenPage>,
    /// The page to which Esc leads back from an entry that one of its rows opened.
    return_page: Option<OpenPage>,
    /// The leader key was pressed, and the next key is its second.
    pub leader: bool,
    /// The Pod to pin: the next key is its digit.
    pub pinning: Option<PodName>,
    pub tree: Tree,
    pub peers: Peers,
    pub inbox: Inbox,
    pub composer: Composer,
    pub notices: Notices,
    /// What a person has to know about the whole host, as the host last said it.
    pub host_notices: Vec<SafeText<'static>>,
    /// The mistakes in the settings of the host.
    pub mistakes: Mistakes,
    pub detail: Detail,
    pub zoom: Zoom,
    /// The notice that the second transcript does not fit, while it does not.
    hidden_said: Option<String>,
    border: mouse::Border,
    /// The text that the mouse selects.
    selection: Option<selection::Selection>,
    /// The model of new Pods, if the person chose one.
    pub model: Option<String>,
    /// What is known of the model of new Pods while there is no Pod.
    first: first::FirstModel,
    /// The Pod that refused the last message, while its model may still come.
    refused_message: Option<(PodName, RequestToken)>,
    pub capture: Capture,
    transcripts: HashMap<PodName, Transcript>,
    /// The Pod that was current before.
    previous: Option<PodName>,
    /// The Pod whose transcript was asked for beside the current one.
    beside: Option<PodName>,
    /// The Pod that the command line names, until one is current. If there is none, the first message makes it.
    initial_pod: Option<PodName>,
    /// The message of the command line, until the family is known.
    pub first_message: Option<String>,
    /// Where the earlier screen was, until the family is known.
    returning: Option<screen_state::Returning>,
    /// Where the earlier screen was, if this one was opened for a new Pod instead of going there.
    not_returned: Option<screen_state::Returning>,
    /// The draft without a Pod as the earlier screen left it.
    restored_text: String,
    /// When the person left the screen before this one; milliseconds since the Unix epoch.
    left: Option<u64>,
    /// When this screen came to know the family.
    back: u64,
    /// Where the person was in transcripts that are not kept.
    bookmarks: BTreeMap<PodName, Bookmark>,
    pub looks: Looks,
    /// The last `@word` of a line, and the files that it may become.
    mentions: Option<(String, Vec<Completion>)>,
    /// Lines that were run, newest first.
    lines: Vec<String>,
    /// How often rows of the palette were chosen.
    chosen: BTreeMap<String, u32>,
    guard: Guard,
    /// The letters of a text that was typed into a pane, where they are no text.
    astray: String,
    /// The requests that the line being typed is for: the reason of a denial, or a rule.
    decided_by_line: Option<inbox::ChosenRequests>,
    /// Pods whose runs this screen has interrupted and that still run.
    interrupted: HashSet<PodName>,
    /// Messages, each with its Pod, that had not entered a run when this screen interrupted it.
    taken_back: Vec<(PodName, String)>,
    /// Approval requests whose decision this screen has sent and the host has not published yet.
    deciding: HashMap<String, Deciding>,
    /// The pane in which the search began whose matches have the keys.
    found_from: Option<Focus>,
    /// Approval requests that a rule of this screen decides together with another one.
    covered: HashSet<String>,
    /// Approval requests whose decision was confirmed or under way here when the host ended.
    unconfirmed: HashSet<String>,
    /// For each Pod, the time of its last state that the person has seen.
    seen: HashMap<PodName, u64>,
    /// What the host knows of the Pods that this screen shows and follows.
    known_shown: Option<Method>,
    /// Pods that this environment was offered to.
    opened: HashSet<PodName>,
    tour: Option<Tour>,
    /// What the terminal shows outside of the screen.
    outside: notify::Outside,
    /// Verbs that wait for results or for the person.
    verbs: BTreeMap<VerbId, verb::RunningVerb>,
    last_verb: Option<VerbId>,
    /// A Pod is being created for a message.
    creating: bool,
    /// Counts what the person does; a [`RequestToken`] holds the count of its request.
    moment: u64,
}

/// Times until which a key does less than it is bound to.
#[derive(Clone, Copy, Debug, Default)]
struct Guard {
    /// Esc does nothing before this time: it has just closed a layer.
    escape: u64,
    /// Before this time a second Ctrl+C leaves the dashboard.
    armed: u64,
    /// Before this time letters do nothing in a pane: one before them was no key there, so they belong to a text.
    stray: u64,
    /// The time of the last such letter.
    strayed: u64,
    /// Before this time Ctrl+C does not prepare leaving: it has just paused a run.
    paused: u64,
    /// Before this time Enter behind the line of a decision does nothing: its card has just come.
    decides: u64,
}

/// A decision that is under way.
#[derive(Clone, Debug)]
struct Deciding {
    /// The text that the person typed for it.
    text: Message,
    /// All requests that the person decided together.
    together: Vec<String>,
    /// The request was decided; what was decided with it is still under way.
    asker: Option<String>,
}

/// The Pod of the tour, and which of its lines comes next.
#[derive(Clone, Debug)]
struct Tour {
    pod: PodName,
    next: usize,
    /// The next line is due; it is written when the Pod is the current one.
    due: bool,
}

impl App {
    /// A dashboard before its first event. `initial_pod` is the Pod to show first, or to make.
    pub fn new(setup: Setup, keymap: Keymap, theme: Theme, initial_pod: Option<PodName>) -> Self {
        let tree = Tree::new(setup.workspace.clone(), setup.glyphs);
        Self { setup, keymap, theme, tree, initial_pod, ..Self::default() }
    }

    /// Handles a message that came at `now` (milliseconds since the Unix epoch) and returns the effects
    /// that follow.
    pub fn update(&mut self, msg: Msg, now: u64) -> Update {
        self.now = now;
        let notices = self.notices.version();
        self.notices.expire(now);
        let redraw = self.redraw_after(&msg);
        let mut effects = self.take_in(msg);
        effects.extend(self.look_for_host());
        for pod in effects.iter().filter_map(Effect::interrupts) {
            self.takes_back(pod);
            self.interrupted.insert(pod.clone());
        }
        effects.extend(self.look_for_files());
        self.page_follows(&effects);
        self.inbox_follows();
        self.split_follows();
        self.leaving_follows();
        self.confirmation_follows();
        Update { effects, redraw: redraw || self.notices.version() != notices }
    }

    fn take_in(&mut self, msg: Msg) -> Vec<Effect> {
        match msg {
            Msg::Key(key) => {
                // The host may have taken the row of the cursor since the last frame.
                self.tree_follows();
                let mut effects = self.key(key);
                effects.extend(self.look_for_model());
                effects
            }
            Msg::Paste(text) => self.paste(&text),
            Msg::Mouse(event) => self.mouse(event),
            Msg::Focus(focused) => {
                self.focus_changed(focused);
                Vec::new()
            }
            Msg::Terminal(reply) => self.terminal_replied(reply),
            Msg::Resize(width, height) => {
                self.end_selection();
                self.size = (width, height);
                self.inbox.changed();
                self.layers.changed();
                if self.is_card_awake() && self.inbox.ended().is_none() {
                    self.card_sleeps();
                }
                self.say_hidden()
            }
            Msg::Host(event) => self.host(event),
            Msg::HostEnded => self.host_ended(),
            Msg::Connected => self.connected(),
            Msg::ConnectFailed(why) => self.connect_failed(&why),
            Msg::NotFound(why) => self.not_found(why),
            Msg::Answered(asked, reply) => self.answered(asked, reply),
            Msg::KeyStepDone(verb, reply) => self.key_step_done(verb, reply),
            Msg::Table(pod, entry, read) => {
                if let Some(transcript) = self.transcripts.get_mut(&pod) {
                    transcript.table(entry, read);
                }
                Vec::new()
            }
            Msg::Copied(copied) => self.copied(copied),
            Msg::Selected(text) => self.copy_selected(text),
            Msg::NotCopied(text, why) => self.not_copied(text, &why),
            Msg::ThemeLoaded(load_for, theme, diagnostics) => {
                self.theme_loaded(load_for, *theme, diagnostics)
            }
            Msg::KeymapLoaded(load_for, keymap, wrong) => {
                self.keymap_loaded(load_for, *keymap, wrong)
            }
            Msg::OwnFilesChanged => {
                vec![Effect::LoadTheme(LoadFor::Change), Effect::LoadKeymap(LoadFor::Change)]
            }
            Msg::Edited(text) => self.edited(text),
            Msg::Said(kind, text) => self.say(kind, text),
            Msg::Wake => {
                self.rows_go_on();
                self.layers.search_on();
                Vec::new()
            }
        }
    }

    /// The Pod whose transcript is on screen: the one under the tree's cursor while a list has the
    /// focus, the one that the person looks into from its card, else the current one.
    pub fn shown(&self) -> Option<&PodName> {
        let looked_at = match self.focus {
            Focus::Tree | Focus::Peers => self.tree.chosen(),
            Focus::Transcript => self.inbox.inside.as_ref(),
            Focus::Composer | Focus::Beside | Focus::Inbox | Focus::Page => None,
        };
        looked_at.or(self.current.as_ref())
    }

    /// The current Pod, as the host last described it.
    pub fn info(&self) -> Option<&PodInfo> {
        self.family.get(self.current.as_ref()?)
    }

    /// The transcript that keys act on: the one of the two that has the focus.
    pub fn transcript(&self) -> Option<&Transcript> {
        self.transcript_at(self.pod_read()?)
    }

    /// The transcript of a Pod, if it was ever shown.
    pub fn transcript_at(&self, name: &PodName) -> Option<&Transcript> {
        self.transcripts.get(name)
    }

    fn transcript_mut(&mut self) -> Option<&mut Transcript> {
        let name = self.pod_read()?.clone();
        self.transcripts.get_mut(&name)
    }

    /// The transcript of a Pod, created if it is not kept.
    fn transcript_of(&mut self, name: &PodName) -> &mut Transcript {
        if !self.transcripts.contains_key(name) && self.transcripts.len() >= TRANSCRIPTS {
            let keep = [&self.current, &self.previous, &self.beside, &self.shown().cloned()]
                .map(Option::clone);
            self.set_bookmarks();
            self.transcripts.retain(|name, _| keep.contains(&Some(name.clone())));
        }
        let (detail, zone) = (self.detail, self.zone().clone());
        let bookmark = self.bookmarks.get(name).cloned().unwrap_or_default();
        self.transcripts.entry(name.clone()).or_insert_with(|| {
            let mut transcript = Transcript::in_zone(zone);
            transcript.set_detail(detail);
            transcript.open_at(bookmark);
            transcript
        })
    }

    /// The values that arguments of verbs complete to.
    fn sources(&self) -> Sources {
        let word = |info: &PodInfo| self.setup.glyphs.state_sign(info).word.to_owned();
        let pods = || self.family.listed();
        let at_rest = pods().filter(|info| info.state.is_at_rest());
        Sources {
            pods: pods().map(|info| (info.name.to_string(), word(info))).collect(),
            at_rest: at_rest.map(|info| info.name.to_string()).collect(),
            selected: self.selected().map(ToString::to_string),
            selectors: targets::selectors(&self.family),
            agents: self.known_agents(),
            models: self.setup.models.clone(),
            providers: self.setup.providers.clone(),
            paths: self.known_paths(),
            mentions: self.mentions.clone().unwrap_or_default(),
            themes: self.setup.themes.clone(),
            keymaps: keys::names().map(str::to_owned).collect(),
        }
    }

    /// The agents that the selected Pod reaches, whose names can be typed.
    fn known_agents(&self) -> Vec<(String, String)> {
        let agents = self.selected().map(|name| self.family.agents_of(name)).unwrap_or_default();
        let typed = |agent: &Agent| Some((agent.typed()?.to_owned(), agent.word().to_owned()));
        agents.iter().filter_map(typed).collect()
    }

    /// The paths in the scopes of all Pods, and the directory of this screen.
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

    /// Shows a notice; no effect follows.
    fn say(&mut self, kind: Kind, text: impl Into<String>) -> Vec<Effect> {
        self.notices.say(kind, text, self.now);
        Vec::new()
    }
}

/// How many transcripts are kept; any other is read again when it is shown.
const TRANSCRIPTS: usize = 4;

#[cfg(test)]
pub mod tests;
