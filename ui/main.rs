//! yoi: the dashboard, the command line and the program without a screen, over the core in `src/`.
#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used)]

mod console;
mod theme;
mod notice;
mod keys;
mod verb;
mod pane;
mod palette;
mod app;
mod view;
mod run;
mod start;
mod headless;
mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
