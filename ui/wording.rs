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
