//! The working tree of a Pod: stored with the Pod, and shown with what changed in it.

use crate::host::pod::resolved::Resolved;
use crate::host::pod::{Fact, Pod, PodRequest};
use crate::host::worktree::{self, Worktree};
use crate::protocol::{Entry, Item, Refusal, WorktreeInfo, entry};
use crate::tools::{self, Lane};
use std::fs;
use tokio::sync::oneshot;

/// Whether git is asked what changed in the working tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Counting {
    #[default]
    Idle,
    Counts,
    /// Something may have changed since it began.
    CountsAgain,
}

impl Pod {
    /// A Pod whose working tree is not there does not become live: it would work in nothing.
    pub(super) fn must_have_worktree(&self) -> Result<(), Refusal> {
        let is_missing = |tree: &&Worktree| !tree.made || fs::symlink_metadata(&tree.path).is_err();
        match self.resolved.worktree.as_ref().filter(is_missing) {
            Some(tree) if !self.shared.only_reads => Err(Refusal::invalid(format!(
                "its working tree {} is not there; :restore makes it on the branch {}",
                tree.path.display(),
                tree.branch
            ))),
            _ => Ok(()),
        }
    }

    /// Stores what became of the working tree, which may have changed since that began.
    pub(super) async fn change_worktree(
        &mut self,
        change: worktree::Change,
    ) -> Result<(), Refusal> {
        let tree = self.resolved.worktree.clone().map(|tree| tree.changed(change)).transpose()?;
        self.keep_worktree(tree).await
    }

    /// Stores the working tree as it is now.
    pub(super) async fn keep_worktree(&mut self, tree: Option<Worktree>) -> Result<(), Refusal> {
        let info = tree.as_ref().map(Worktree::info);
        self.store_config(Resolved { worktree: tree, ..self.resolved.clone() }).await?;
        self.change(|info_of_pod| info_of_pod.worktree = info);
        Ok(())
    }

    /// Counts after results of Bash, Write and Edit: other tools change no file.
    pub(super) fn count_after(&mut self, entries: &[Entry]) {
        if self.resolved.worktree.is_none() {
            return;
        }
        let mut may_differ = false;
        for entry in entries {
            match &entry.fact {
                entry::Fact::AssistantItem {
                    item: Item::ToolCall { call_id, name, .. }, ..
                } if !changes_files(name) => {
                    self.harmless.insert(call_id.clone());
                }
                entry::Fact::ToolResult { item: Item::ToolResult { call_id, .. }, .. } => {
                    may_differ |= !self.harmless.remove(call_id);
                }
                _ => {}
            }
        }
        if may_differ {
            self.count_lines();
        }
    }

    /// Has git count what changed, unless it does so already; then it counts once more.
    pub(super) fn count_lines(&mut self) {
        let Some(tree) = self.resolved.worktree.clone().filter(|tree| tree.made) else { return };
        if self.counting != Counting::Idle {
            self.counting = Counting::CountsAgain;
            return;
        }
        self.counting = Counting::Counts;
        let (shared, env, requests) =
            (self.shared.clone(), self.env.clone(), self.requests.clone());
        tokio::spawn(async move {
            let counted = worktree::counted(&shared, &env, &tree).await;
            let Some(requests) = requests.upgrade() else { return };
            let (answer, _) = oneshot::channel();
            let fact = Fact::LinesCounted(counted.map(Box::new));
            // A Pod that is gone shows nothing.
            let _ = requests.send(PodRequest::Fact { fact, answer }).await;
        });
    }

    pub(super) fn lines_counted(&mut self, counted: Option<WorktreeInfo>) {
        let again = std::mem::take(&mut self.counting) == Counting::CountsAgain;
        if let Some(counted) = counted.filter(|_| self.resolved.worktree.is_some()) {
            self.change(|info| info.worktree = Some(counted));
        }
        if again {
            self.count_lines();
        }
    }
}

/// Whether a tool may change a file of the working tree.
fn changes_files(tool: &str) -> bool {
    tools::find(tool).is_some_and(|tool| matches!(tool.lane, Lane::Change | Lane::Shell))
}
