//! What reaches the app: everything that happened, and what each call to the host was for.

use crate::app::{Copied, RequestToken};
use crate::notice::Kind;
use crate::pane::composer::Message;
use crate::pane::transcript::{PartRange, PartTable};
use crate::theme::Theme;
use crate::verb::VerbId;
use crossterm::event::{KeyEvent, MouseEvent};
use yoi::protocol::{EntryId, Event, Outgoing, PodName, Refusal};

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
    Decision(String),
    /// Nobody waits for the reply; a refusal is said.
    Quietly,
    /// Nobody waits for the reply, and a refusal means nothing.
    Silently,
}
