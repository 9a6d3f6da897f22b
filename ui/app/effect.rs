//! What the app wants to be done: effects for the loop of the dashboard, and the next frame.

use crate::app::{Asked, RequestToken};
use crate::pane::transcript::{LogCopy, LongText};
use yoi::protocol::{Method, PodName};

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
    pub(super) fn interrupts(&self) -> Option<&PodName> {
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
