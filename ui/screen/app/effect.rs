//! The effects of a message: work for the loop of the dashboard, and whether a frame is to be painted.

use crate::screen::app::{Asked, LoadFor, RequestToken};
use crate::screen::pane::transcript::{LogCopy, LongText};
use crate::verb::VerbId;
use crate::verb::dialogue::KeyStep;
use std::path::PathBuf;
use yoi::protocol::{Method, PodName};

/// The result of handling a message.
#[derive(Debug, Default)]
#[must_use]
pub struct Update {
    /// The loop performs them in this order.
    pub effects: Vec<Effect>,
    /// Whether a frame has to be painted.
    pub redraw: bool,
}

/// Something that the loop does once.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum Effect {
    /// Calls the host; the reply comes back as [`Msg::Answered`].
    Call {
        pod: Option<PodName>,
        method: Method,
        asked: Asked,
    },
    /// Does a step of a verb with a key; the reply comes back as [`Msg::KeyStepDone`].
    KeyStep(VerbId, KeyStep),
    /// Finds the parts of a long text; the reply comes back as [`Msg::Table`].
    ReadTable(PodName, LongText),
    /// Puts a text into the clipboard.
    Copy(String),
    /// Reads a text from the log to copy it; it comes back as [`Msg::Copied`].
    CopyFromLog(PodName, LogCopy),
    /// Opens a text in the person's editor.
    Edit(String),
    /// Opens a file in the person's editor, at this line.
    OpenFile(PathBuf, Option<u64>),
    /// Opens the settings in the person's editor, at this key.
    OpenSettings(String),
    /// Opens an address in the program of the display.
    OpenLink(String),
    /// Finds the files for this text below the directory of the screen.
    FindFiles(String, Asked),
    LoadTheme(LoadFor),
    LoadKeymap(LoadFor),
    /// Sets the title of the window.
    Title(String),
    /// Calls a person who looks away from the screen.
    Notify(String),
    /// Sequences of the Program Status Protocol, for a terminal that takes them.
    Records(Vec<String>),
    /// Creates a temporary directory and the Pod of the tour in it.
    Tour(RequestToken),
    Mouse(Capture),
    /// Paints every cell again.
    Redraw,
    /// Suspends the program; the shell has the terminal until the program is continued.
    Suspend,
    /// Connects to a running host, or starts one.
    Reconnect,
    /// Connects to a host if one runs; starts none.
    FindHost,
    Quit(ExitReason),
}

impl Effect {
    /// Whether this effect gives a Pod a message, or lets its run go on.
    pub(super) fn gives_work(&self) -> bool {
        use Method::{Resume, Send, Steer};
        matches!(self, Self::Call { method: Send { .. } | Steer { .. } | Resume, .. })
    }

    /// The Pod whose run this effect interrupts.
    pub(super) fn interrupts(&self) -> Option<&PodName> {
        match self {
            Self::Call { pod, method: Method::Pause | Method::Cancel, .. } => pod.as_ref(),
            _ => None,
        }
    }
}

/// Which program gets the events of the mouse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Capture {
    #[default]
    Ours,
    Terminals,
}

/// Why the dashboard ended. The terminal has been restored by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitReason {
    /// The person left. The sentences for standard error say which Pods still run, how to come back,
    /// and how to stop them.
    Quit { farewell: Vec<String> },
    /// The host ended and the person did not want it back.
    HostEnded,
    /// A signal; the exit code is 128 + its number.
    Signal(i32),
}
