//! Words for people, each thing in one place: durations and clocks, states, reasons, scopes, rules. The
//! screen, the lines without a screen and the shell say the same.

pub mod duration;
pub mod losses;
pub mod age;
pub mod rule;
pub mod scope;
pub mod state;
pub mod wait;
pub mod why;

/// The note about a model's answer that has nothing to read and calls no tool.
pub const EMPTY_ANSWER: &str = "the model's answer was empty: it has no text and no tool call; ask again or choose another model";
