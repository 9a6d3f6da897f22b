//! Commands that try to get out. Each test names the Landlock it needs; on an older kernel it does
//! not pass in silence: it says that the way is not covered, and so must the confinement itself.

#[path = "escape/ahead.rs"]
pub mod ahead;
#[path = "escape/background.rs"]
mod background;
#[path = "escape/cell.rs"]
pub mod cell;
#[path = "escape/closed.rs"]
mod closed;
#[path = "escape/explained.rs"]
mod explained;
#[path = "escape/files.rs"]
mod files;
#[path = "escape/git.rs"]
mod git;
#[path = "escape/git_rules.rs"]
mod git_rules;
#[path = "escape/guard.rs"]
mod guard;
#[path = "escape/holes.rs"]
mod holes;
#[path = "escape/home.rs"]
mod home;
#[path = "escape/kept.rs"]
mod kept;
#[path = "escape/limits.rs"]
mod limits;
#[path = "escape/linked.rs"]
mod linked;
#[path = "escape/names.rs"]
mod names;
#[path = "escape/net.rs"]
mod net;
#[path = "escape/ordinary.rs"]
mod ordinary;
#[path = "escape/outside.rs"]
mod outside;
#[path = "escape/others.rs"]
mod others;
#[path = "escape/private.rs"]
mod private;
#[path = "escape/project.rs"]
mod project;
#[path = "escape/sequences.rs"]
mod sequences;
#[path = "escape/settings.rs"]
mod settings;
#[path = "escape/together.rs"]
mod together;
#[path = "escape/visible.rs"]
mod visible;
#[path = "escape/scripts.rs"]
mod scripts;
#[path = "escape/watchers.rs"]
mod watchers;
#[path = "escape/ways.rs"]
mod ways;
#[path = "escape/world.rs"]
mod world;
