//! What becomes of commands that run and may write what a verb takes from their Pod.

use clap::Args;
use yoi::protocol::WhileRunning;

/// The paragraph of a verb's help about it.
pub const RUNNING: &str = "While a command runs that may write there, in the foreground or in the background, it is refused and \
                           names the command. --wait waits until it has ended, keeps others from starting in the background \
                           there, and changes nothing if you give up before; --end ends it first.";

#[derive(Args)]
pub struct Running {
    /// Wait until commands that may write there have ended
    #[arg(long, conflicts_with = "end")]
    wait: bool,
    /// Stop commands that may write there first
    #[arg(long)]
    end: bool,
}

impl From<&Running> for WhileRunning {
    fn from(asked: &Running) -> Self {
        match (asked.wait, asked.end) {
            (true, _) => Self::Wait,
            (_, true) => Self::End,
            _ => Self::Refuse,
        }
    }
}
