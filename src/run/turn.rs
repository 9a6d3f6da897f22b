//! The turn of a Pod to write. It begins with a run and ends before the end of the run is published.

use crate::files;
use crate::protocol::entry::domain;
use crate::protocol::{AlertSource, Entry, Item, WAITS_TO_WRITE};
use crate::run::attach::alert;
use crate::run::batch::Call;
use crate::run::{Run, Setup, Start, Stopped, interrupted};
use crate::sandbox::Isolation;
use crate::tools::{self, Lane};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A turn that lasts. One that is dropped ends soon.
pub trait Turn: Send + Sync {
    /// When it resolves, other Pods can write.
    fn end(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// The answer to a Pod that wants its turn.
pub enum Begun {
    /// It has its turn; these Pods write where it wants to, and it only reads there.
    Turn(Box<dyn Turn>, Vec<String>),
    /// It has to wait for these Pods; `freed` resolves when it may be tried again.
    Busy { writers: Vec<String>, freed: BoxFuture<'static, ()> },
}

/// Where a run only reads.
#[derive(Debug, Default)]
pub(crate) struct ReadsBeside {
    writers: Vec<String>,
    /// Whether the log says that a call could not write there.
    said: bool,
}

/// Errors of programs that could not write a path which they could read. Without namespaces the kernel says the same of
/// paths that could not be read.
const NOT_WRITABLE: [&str; 3] = ["Read-only file system", "read-only file system", "EROFS"];
const DENIED: [&str; 2] = ["ermission denied", "EACCES"];
/// The most rows with such an error that are looked at.
const MAX_ROWS: usize = 64;

/// The turn of a run that begins, if it need not wait: the prompt, which is made next, says where the Pod writes.
pub(crate) async fn before_prompt(
    setup: &Setup,
    start: &Start,
) -> (Option<Box<dyn Turn>>, ReadsBeside) {
    if !matches!(start, Start::Compact { .. })
        && let Ok(Begun::Turn(turn, writers)) =
            setup.permissions.relations.begin_turn(setup.when_busy).await
    {
        return (Some(turn), ReadsBeside { writers, said: false });
    }
    (None, ReadsBeside::default())
}

impl Run {
    /// Waits for the turn where it has not begun yet. Where the run only reads, its first row says so.
    pub(crate) async fn begin_turn(&mut self) -> Result<(), Stopped> {
        let mut interrupt = self.ports.interrupt.clone();
        let mut named = Vec::new();
        while self.turn.is_none() {
            let family = &self.setup.permissions.relations;
            match family.begin_turn(self.setup.when_busy).await? {
                Begun::Turn(turn, writers) => {
                    (self.turn, self.reads_beside.writers) = (Some(turn), writers);
                }
                Begun::Busy { writers, freed } => {
                    // Another wait for the same Pods is the same wait to a person.
                    if named != writers {
                        self.doing(format!("{WAITS_TO_WRITE}{}", ended(&writers))).await;
                        self.publish(alert(AlertSource::Pod, wait_notice(&writers))).await;
                        named = writers;
                    }
                    tokio::select! {
                        () = freed => {}
                        () = interrupted(&mut interrupt) => return Err(Stopped::Interrupted),
                    }
                }
            }
        }
        match self.reads_beside.writers.is_empty() {
            true => Ok(()),
            false => self.commit(vec![self.reads_beside.entry()]).await,
        }
    }

    /// Ends the turn: no call of the run changes a file any more.
    pub(crate) async fn end_turn(&mut self) {
        if let Some(turn) = self.turn.take() {
            turn.end().await;
        }
    }

    /// The log says once that a call could not write because another Pod does.
    pub(crate) async fn note_refused_write(
        &mut self,
        call: &Call,
        item: &Item,
    ) -> Result<(), Stopped> {
        let Item::ToolResult { is_error, content, summary, .. } = item else { return Ok(()) };
        if self.reads_beside.said || self.reads_beside.writers.is_empty() {
            return Ok(());
        }
        let paths = match self.offered.lane(&call.name) {
            Some(Lane::Change) if *is_error => self.file_of(call).into_iter().collect(),
            Some(Lane::Shell) if !tools::succeeded(summary) => {
                self.not_written(content.as_deref().unwrap_or_default())
            }
            _ => Vec::new(),
        };
        if paths.is_empty() {
            return Ok(());
        }
        // Those that wrote when the run began may have ended.
        let writers = self.setup.permissions.relations.writers_at(paths).await?;
        if writers.is_empty() {
            return Ok(());
        }
        self.reads_beside = ReadsBeside { writers, said: true };
        self.commit(vec![self.reads_beside.entry()]).await
    }

    /// The file of a call.
    fn file_of(&self, call: &Call) -> Option<PathBuf> {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let keys = tools::find(&call.name).map_or(&[][..], |tool| tool.telling);
        let path = keys.iter().find_map(|key| arguments.get(key)?.as_str());
        path.map(|path| files::lexical(&self.setup.tools.cwd.join(path)))
    }

    /// The paths that a failed command may not have been able to write: those in the rows of its output that say so.
    fn not_written(&self, output: &str) -> Vec<PathBuf> {
        let denied = match self.setup.tools.isolation {
            Isolation::Namespaces => &[][..],
            Isolation::LandlockOnly => &DENIED,
        };
        let says = |row: &&str| NOT_WRITABLE.iter().chain(denied).any(|text| row.contains(text));
        let rows = output.lines().filter(says).take(MAX_ROWS);
        rows.flat_map(|row| named(row, &self.setup.tools.cwd)).collect()
    }
}

/// The paths that a row may name: its absolute ones, or else every word as a name in this directory.
fn named(row: &str, dir: &Path) -> Vec<PathBuf> {
    let signs = |c: char| c.is_whitespace() || "'\"`‘’“”:,;()[]<>".contains(c);
    let words: Vec<&str> = row.split(signs).filter(|word| !word.is_empty()).collect();
    let is_absolute = words.iter().any(|word| word.starts_with('/'));
    let counts = |word: &&&str| !is_absolute || word.starts_with('/');
    words.iter().filter(counts).map(|word| files::lexical(&dir.join(word))).collect()
}

impl ReadsBeside {
    fn entry(&self) -> Entry {
        Entry::extension(domain::TURN, json!({"writers": self.writers, "refused": self.said}))
    }
}

/// What a run says that waits for these Pods, and how a person ends the wait.
fn wait_notice(writers: &[String]) -> String {
    let stops: Vec<String> = writers.iter().map(|name| format!(":pause {name}")).collect();
    format!(
        "{WAITS_TO_WRITE}{}: a run that writes here is under way, or what it started in the background (:jobs) · {} frees it · scope.when_busy = \"read\" in the settings lets a run begin \
         at once and only read",
        ended(writers),
        stops.join(" and ")
    )
}

/// `a has ended its run`, or `a, b have ended their runs`.
fn ended(names: &[String]) -> String {
    let list = names.join(", ");
    match names {
        [_] => format!("{list} has ended its run"),
        _ => format!("{list} have ended their runs"),
    }
}

#[cfg(test)]
mod tests {
    use super::named;
    use std::path::Path;

    #[test]
    fn a_row_names_its_absolute_paths_or_else_what_may_be_in_the_directory() {
        let at = |row| {
            let paths = named(row, Path::new("/w")).into_iter();
            paths.map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(at("touch: cannot touch '/usr/x': Read-only file system"), "/usr/x");
        assert_eq!(at("open /w/a/../b: read-only file system"), "/w/b");
        assert_eq!(at("sh: 1: a/x: Read-only"), "/w/sh /w/1 /w/a/x /w/Read-only");
    }
}
