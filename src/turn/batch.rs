//! The tool calls of one reply: in groups that may run together, each result committed when its
//! call ends.

use crate::protocol::{Entry, Event, Fact, Item};
use crate::tools::{self, Done, Lane};
use crate::turn::{Halt, Out, Run, Stopped, context, halted};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A tool call of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// Live output that waits to be told; when it is full output is only seen in the result.
const LIVE: usize = 64;

impl Run {
    /// Runs all calls of a reply. When the run is halted, what was not done is closed as
    /// interrupted, so no call is ever open.
    pub(crate) async fn call_tools(&mut self, calls: Vec<Call>) -> Result<(), Stopped> {
        self.acted = true;
        let mut rest = calls.as_slice();
        while !rest.is_empty() {
            let (group, later) = rest.split_at(together(rest));
            self.call_group(group).await?;
            if *self.ports.halt.borrow() != Halt::Go {
                for call in later {
                    self.close_call(call).await?;
                }
                return Err(Stopped::Halted);
            }
            rest = later;
        }
        Ok(())
    }

    async fn close_call(&mut self, call: &Call) -> Result<(), Stopped> {
        let item = context::interrupted(&call.id);
        self.conclude(item, Vec::new()).await
    }

    async fn call_group(&mut self, group: &[Call]) -> Result<(), Stopped> {
        let cancel = CancellationToken::new();
        let ctx = tools::Context {
            scope: (self.setup.scope)(),
            read: self.mind.state.files.clone(),
            tasks: self.mind.tasks.clone(),
            ..self.setup.tools.clone()
        };
        let (live, mut shown) = mpsc::channel::<(String, String)>(LIVE);
        let first = &group[0];
        self.doing(label(&first.name, &first.arguments)).await;
        crate::crash_point!("tool-starting");
        let mut running: FuturesUnordered<_> =
            group.iter().map(|call| one(call, &ctx, &cancel, live.clone())).collect();
        let mut halt = self.ports.halt.clone();
        loop {
            tokio::select! {
                biased;
                Some((id, text)) = shown.recv() => {
                    self.tell(Event::ToolOutput { id, text }).await;
                }
                done = running.next() => match done {
                    Some((call, done)) => self.concluded(call, done).await?,
                    None => return Ok(()),
                },
                () = halted(&mut halt), if !cancel.is_cancelled() => cancel.cancel(),
            }
        }
    }

    async fn concluded(&mut self, call: &Call, done: Done) -> Result<(), Stopped> {
        if let Some(tasks) = done.tasks {
            self.mind.tasks = tasks;
        }
        let output = done.output;
        let item = Item::ToolResult {
            call_id: call.id.clone(),
            summary: output.summary,
            content: output.content,
            is_error: output.is_error,
            images: output.images,
        };
        self.conclude(item, output.files).await?;
        self.keep_place(output.read).await;
        Ok(())
    }

    /// What was read of another Pod counts as read once the log holds it; a crash in between shows
    /// it once more and loses nothing.
    async fn keep_place(&self, read: Option<tools::Reading>) {
        let Some(tools::Reading { pod, upto }) = read else { return };
        // Where this fails the same text is read again.
        let _ = self.setup.store.set_cursor(&self.setup.pod, &pod, upto).await;
    }

    async fn conclude(
        &mut self,
        item: Item,
        files: Vec<crate::protocol::FileMark>,
    ) -> Result<(), Stopped> {
        crate::crash_point!("tool-ended");
        self.commit(vec![Entry::new(Fact::ToolResult { item: item.clone(), files })]).await?;
        crate::crash_point!("tool-result-committed");
        let Item::ToolResult { call_id, summary, content, is_error, .. } = item else {
            return Ok(());
        };
        let event = Event::ToolResult { id: call_id, summary, output: content, is_error };
        self.send(Out::Event(event)).await;
        Ok(())
    }
}

async fn one<'a>(
    call: &'a Call,
    ctx: &tools::Context,
    cancel: &CancellationToken,
    live: mpsc::Sender<(String, String)>,
) -> (&'a Call, Done) {
    let mut show = |text: String| {
        // Only what is shown live is lost when the screen lags; the result holds everything.
        let _ = live.try_send((call.id.clone(), text));
    };
    (call, tools::run(&call.name, &call.arguments, ctx, cancel, &mut show).await)
}

/// How many of the next calls may run together: looks with looks, commands with commands; what
/// changes something goes alone, in the order asked for.
fn together(calls: &[Call]) -> usize {
    let lane = |call: &Call| tools::find(&call.name).map_or(Lane::Look, |tool| tool.lane);
    let first = lane(&calls[0]);
    match first {
        Lane::Look | Lane::Shell => calls.iter().take_while(|c| lane(c) == first).count(),
        Lane::Change | Lane::Note | Lane::Pods => 1,
    }
}

/// What a call does, in one line: the tool and the first argument that says most.
pub(crate) fn label(name: &str, arguments: &str) -> String {
    const TELLING: [&str; 6] = ["command", "file_path", "path", "pattern", "subject", "name"];
    let parsed: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    let telling = TELLING.iter().find_map(|key| parsed.get(key)?.as_str());
    let line = telling.unwrap_or("").lines().next().unwrap_or("");
    let short: String = line.chars().take(120).collect();
    format!("{name} {short}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str) -> Call {
        Call { id: "1".into(), name: name.into(), arguments: "{}".into() }
    }

    #[test]
    fn looks_run_together_and_changes_one_by_one() {
        let of = |names: &[&str]| together(&names.iter().map(|n| call(n)).collect::<Vec<_>>());
        assert_eq!(of(&["Read", "Grep", "Write", "Read"]), 2);
        assert_eq!(of(&["Write", "Write"]), 1);
        assert_eq!(of(&["Bash", "Bash", "Edit"]), 2);
        assert_eq!(of(&["Bash", "Read"]), 1);
    }

    #[test]
    fn a_label_names_the_tool_and_what_it_is_about() {
        assert_eq!(label("Bash", r#"{"command":"cargo test\nls"}"#), "Bash cargo test");
        assert_eq!(label("TaskList", "not json"), "TaskList");
    }
}
