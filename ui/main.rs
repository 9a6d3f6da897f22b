//! yoi: the dashboard, the command line and the program without a screen, over the core in `src/`.
#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used)]
// They panic when the reader has gone.
#![warn(clippy::print_stdout, clippy::print_stderr)]

// The rooms, bottom to top. A room uses only the rooms before it; tests/layers.rs holds that.

/// Lines on standard output and standard error, in their safe form.
mod console;
/// Colours, as data.
mod theme;
/// Text brought to a width: measured, cut, filled and wrapped.
mod rows;
/// Colours of source code: what each piece of a line is.
mod code;
/// Notices: short messages on the action bar, and the list of past ones.
mod notice;
/// The family as the host last described it.
mod family;
/// The Program Status Protocol: the state of the program for terminals that list it.
mod program_status;
/// Words for people: durations, states, reasons, scopes.
mod wording;
/// Every verb: arguments, help, completion, and the dialogue that carries it out.
mod verb;
/// Keys and what they do, as data.
mod keys;
/// The panes: what each holds, and how it is painted.
mod pane;
/// A list to choose from by fuzzy search.
mod palette;
/// The state of the dashboard, and how messages change it.
mod app;
/// Paints a frame from the state.
mod view;
/// The loop of the dashboard: input of the terminal, events of the host, effects, frames.
mod run;
/// Finds the host of the data directory, or starts one.
mod start;
/// The program without a screen: lines, JSON, exit codes.
mod headless;
/// The command line of the program.
mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
