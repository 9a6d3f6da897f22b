//! What the screen asks of the terminal after its first frame, and the replies.

use crate::screen::program_status::{self, States};
use crate::theme::Ground;

/// A reply of the terminal. It never becomes a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The terminal takes records of the Program Status Protocol with these states.
    Records(States),
    Ground(Ground),
    /// The terminal tells all chords apart (the kitty protocol).
    Chords,
    /// The reply to the last question, which every terminal answers: an earlier question without a reply gets none.
    Attributes,
}

/// All that is asked, in the order of the replies.
pub fn queries() -> String {
    [program_status::QUERY, Ground::QUERY, "\x1b[?u", "\x1b[c"].concat()
}

impl Reply {
    /// The reply in a control string, without ESC ] and its end.
    pub fn of_string(text: &[u8]) -> Option<Self> {
        let records = States::of_reply(text).map(Self::Records);
        records.or_else(|| Ground::of_reply(text).map(Self::Ground))
    }

    /// The reply in a sequence behind ESC [: its parameters, and the byte that ends it.
    pub fn of_sequence(parameters: &[u8], last: u8) -> Option<Self> {
        match (parameters.first(), last) {
            (Some(b'?'), b'u') => Some(Self::Chords),
            (Some(b'?'), b'c') => Some(Self::Attributes),
            _ => None,
        }
    }
}
