//! The messages that the app handles, and what each call to the host was for.

use crate::screen::app::{Copied, RequestToken};
use crate::screen::keys::Keymap;
use crate::screen::notice::Kind;
use crate::screen::pane::composer::Message;
use crate::screen::pane::transcript::{PartRange, PartTable};
use crate::screen::reply::Reply;
use crate::theme::Theme;
use crate::verb::VerbId;
use crate::verb::dialogue::KeyReply;
use crossterm::event::{KeyEvent, MouseEvent};
use yoi::protocol::{EntryId, Event, Outgoing, PodName, Refusal};

/// Something that happened: [`App::update`] consumes it.
///
/// [`App::update`]: crate::screen::app::App::update
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum Msg {
    Key(KeyEvent),
    Paste(String),
    Mouse(MouseEvent),
    Resize(u16, u16),
    /// Whether the window of the terminal has the focus now.
    Focus(bool),
    /// A reply of the terminal to one of the questions of the screen.
    Terminal(Reply),
    /// An event of the host or of one of its Pods.
    Host(Outgoing),
    /// The connection to the host ended.
    HostEnded,
    /// The screen is connected to a host again.
    Connected,
    ConnectFailed(String),
    /// The search found no host, or one that refuses the connection for this reason.
    NotFound(Option<String>),
    /// The reply to a call.
    Answered(Asked, Result<Event, Refusal>),
    /// What came of a step of a verb with a key.
    KeyStepDone(VerbId, KeyReply),
    /// The parts of an entry's long text, or why they cannot be read.
    Table(PodName, EntryId, Result<PartTable, String>),
    /// A text that was read from the log to be copied, or why it could not be read.
    Copied(Result<Copied, String>),
    /// A text that a program did not put into the clipboard, and why.
    NotCopied(String, String),
    /// The text that the mouse selected in the frame that was painted last.
    Selected(String),
    /// A theme, and what is wrong in its file.
    ThemeLoaded(LoadFor, Box<Theme>, Vec<String>),
    /// A keymap, and what is wrong in the person's file.
    KeymapLoaded(LoadFor, Box<Keymap>, Vec<String>),
    /// The person's own files may have changed.
    OwnFilesChanged,
    /// The text that the external editor saved, or why it failed.
    Edited(Result<String, String>),
    /// A notice of the loop about work outside of the host.
    Said(Kind, String),
    /// The time of [`App::wakes_at`] has come.
    ///
    /// [`App::wakes_at`]: crate::screen::app::App::wakes_at
    Wake,
}

/// Why a theme or a keymap is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadFor {
    /// The person chose the one of this name.
    Choice(String),
    /// The terminal named its ground.
    Ground,
    /// The file of the one in force may have changed.
    Change,
}

impl LoadFor {
    /// The name to load: the one that was chosen, or else the one in force.
    pub fn name<'a>(&'a self, in_force: &'a str) -> &'a str {
        match self {
            Self::Choice(name) => name,
            Self::Ground | Self::Change => in_force,
        }
    }
}

/// What a call was for; it decides what the reply does.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// One of the requests of a verb.
    Verb(VerbId, usize),
    /// The subscription.
    Watch,
    Page(PodName),
    /// The whole of an entry of which only the beginning came.
    Whole(PodName),
    /// Parts of a long text.
    Parts(PodName, PartRange),
    /// A message to a Pod; a refusal puts it back into the composer.
    Send(PodName, Message, RequestToken),
    /// Creates the Pod for this first message.
    NewFor(Message, RequestToken),
    /// Creates the Pod of the tour.
    NewTour(RequestToken),
    /// Agrees to the model of the Pod; the message is sent after that.
    AgreedFor(PodName, Message),
    /// Restores the Pod; the message is sent after that.
    ReadyFor(PodName, Message),
    /// What the Pods did since the screen before was left, at this time; for a screen that was just opened.
    Since(u64, RequestToken),
    /// Files whose paths are like this text, for the sheet of the composer.
    Files(String),
    /// The same for an `@word` of a line.
    FilesMentioned(String),
    /// The same for the palette.
    FilesLike(String),
    /// Whether an image whose path was dropped into the draft for this Pod can be attached.
    Dropped(Option<PodName>, String),
    /// Takes a queued message out so that it can be edited.
    Unqueue(PodName, Message),
    /// A decision on the approval request with this id.
    Decision(String),
    /// The model that a new Pod would get, for the first screen.
    FirstModel,
    /// Sends a queued message into the run; it stays in the queue until the run takes it.
    Steered,
    /// A call whose reply changes nothing; a refusal becomes a notice.
    Quietly,
    /// A call whose reply and whose refusal change nothing.
    Silently,
}
