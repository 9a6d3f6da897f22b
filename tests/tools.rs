//! The tools as a model meets them: arguments in, result out, over real files and the real helper.

#[path = "tools/background.rs"]
mod background;
#[path = "tools/bench.rs"]
mod bench;
#[path = "tools/commands.rs"]
mod commands;
#[path = "tools/credentials.rs"]
mod credentials;
#[path = "shared/dice.rs"]
mod dice;
#[path = "tools/edits.rs"]
mod edits;
#[path = "tools/escape.rs"]
mod escape;
#[path = "tools/jobs.rs"]
mod jobs;
#[path = "tools/kinds.rs"]
mod kinds;
#[path = "tools/output.rs"]
mod output;
#[path = "tools/reading.rs"]
mod reading;
#[path = "tools/reach.rs"]
mod reach;
#[path = "tools/rewinds.rs"]
mod rewinds;
#[path = "tools/searching.rs"]
mod searching;
#[path = "tools/table.rs"]
mod table;
#[path = "tools/tasks.rs"]
mod tasks;
