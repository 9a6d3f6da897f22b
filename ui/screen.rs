//! The dashboard. Input of the terminal and events of the host become messages (`run`), messages change the state
//! (`app`), and the state is painted (`view`, `pane`).
//!
//! The rooms, bottom to top, as in `ui/main.rs`: a room uses only the rooms before it.

/// Keys and what they do, as data.
pub mod keys;
/// Notices: short messages on the action bar, and the list of past ones.
pub mod notice;
/// Colours of source code: what each piece of a line is.
pub mod code;
/// The Program Status Protocol: the state of the program for terminals that list it.
pub mod program_status;
/// Questions to the terminal, and its replies.
pub mod reply;
/// The panes: what each holds, and how it is painted.
pub mod pane;
/// A list to choose from by fuzzy search.
pub mod pick_list;
/// The state of the dashboard, and how messages change it.
pub mod app;
/// Paints a frame from the state.
pub mod view;
/// The loop of the dashboard: input of the terminal, events of the host, effects, frames.
pub mod run;
