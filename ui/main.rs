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
/// Words for people: durations, states, reasons, scopes.
mod wording;
/// Every verb: arguments, help, completion, and the dialogue that carries it out.
mod verb;
/// The dashboard: keys, panes, state, frames, and the loop that drives them.
mod screen;
/// Finds the host of the data directory, or starts one.
mod start;
/// The program without a screen: lines, JSON, exit codes.
mod headless;
/// The command line of the program.
mod cli;

/// The published file is linked with musl, whose own allocator has one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
