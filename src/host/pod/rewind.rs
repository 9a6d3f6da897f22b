//! Rewinds the history to before an input, and takes a rewind back. Both are one entry of the log.

use crate::host::Answer;
use crate::host::events::Rewound;
use crate::host::notify_parent;
use crate::host::pod::Pod;
use crate::host::pod::calls::reply;
use crate::host::splice::LogRange;
use crate::protocol::{
    Entry, EntryId, ErrorCode, Event, Losses, Refusal, RewindSummary, RewindTarget, RewindTargetId,
    Segment, SegmentId, State,
};
use crate::session::{self, Files, Jump, JumpKind, Targets, rewind_targets};
use crate::trace::OrLog as _;
use serde_json::json;
use std::sync::Arc;

impl Pod {
    pub(super) fn list_rewind_targets(&self, answer: Answer) {
        let Some(segment) = self.row.segment else {
            let none = Event::RewindTargets {
                head_entries: 0,
                targets: Vec::new(),
                undo: None,
                redo: None,
            };
            return reply(answer, Ok(none));
        };
        if let Err(refusal) = self.can_rewind() {
            return reply(answer, Err(refusal));
        }
        let files = self.files.clone();
        let (shared, parent) = (self.shared.clone(), self.row.name.clone());
        tokio::task::spawn_blocking(move || {
            let targets = rewind_targets(&files, segment, None).map_err(Refusal::from);
            let live = |losses: &mut Losses| {
                losses.pods.retain(|child| shared.is_live_child(child, &parent));
            };
            reply(answer, targets.map(|targets| listed(targets, live)));
        });
    }

    /// Refuses while a run writes to the history that would be changed.
    fn can_rewind(&self) -> Result<(), Refusal> {
        if !self.phase.is_running() {
            return self.refuse_if_undecided();
        }
        let text = format!("pod `{}` is running; before that, :pause or :cancel", self.row.name);
        Err(Refusal::new(ErrorCode::AlreadyRunning, text))
    }

    /// Goes back to before an input. What came after it stays in the log.
    pub(super) async fn rewind(
        &mut self,
        target: RewindTargetId,
        expected: usize,
    ) -> Result<Arc<Rewound>, Refusal> {
        let plan = move |files: &Files, head| plan(files, head, target, expected);
        self.jump("the run was rewound", plan).await
    }

    /// Takes a rewind, or the undo of one, back.
    pub(super) async fn undo_rewind(
        &mut self,
        entry: EntryId,
        expected: usize,
    ) -> Result<Event, Refusal> {
        let plan = move |files: &Files, head| plan_undo(files, head, entry, expected);
        let rewound = self.jump("a rewind was taken back", plan).await?;
        Ok(rewound.event())
    }

    async fn jump(
        &mut self,
        why: &str,
        plan: impl FnOnce(&Files, SegmentId) -> Result<Plan, Refusal> + Send + 'static,
    ) -> Result<Arc<Rewound>, Refusal> {
        self.must_be_live()?;
        self.can_rewind()?;
        let head =
            self.row.segment.ok_or_else(|| Refusal::invalid("there is nothing to rewind"))?;
        self.close_log().await;
        let files = self.files.clone();
        let plan = tokio::task::spawn_blocking(move || plan(&files, head)).await??;
        let entry = plan.entry.id;
        // The part of the log that is left behind says what a person decided.
        self.withdraw(why).await?;
        self.write_log(vec![plan.entry]).await?;
        crate::crash_point!("rewind-committed");
        self.after_jump(head, entry).await;
        let (files, end) = (self.files.clone(), self.end);
        let left = move || session::standing_entries(&files, head, end);
        let summary = RewindSummary {
            truncated_to_entries: tokio::task::spawn_blocking(left).await??,
            discarded_entries: plan.dropped_entries,
            tool_side_effect_warning: plan.losses.tool_calls > 0,
        };
        let log = LogRange { files: self.files.clone(), segment: head, end: self.end };
        let rewound = Arc::new(Rewound { log, input: plan.input, summary });
        self.publisher.rewound(&rewound);
        self.enter_after_jump().await?;
        Ok(rewound)
    }

    /// Stores messages about the children of which this rewind, or the undo of one, dropped something from the history.
    pub(super) async fn after_jump(&self, segment: SegmentId, jump: Option<EntryId>) {
        let Some(jump) = jump else { return };
        let (shared, name) = (&self.shared, &self.row.name);
        let notified = notify_parent::jumped(shared, name, &self.files, segment, jump).await;
        notified.or_log("notify a Pod of what a rewind dropped");
    }

    /// Shows the state in which the last run stands now.
    async fn enter_after_jump(&mut self) -> Result<(), Refusal> {
        let tail = self.look_back().await?;
        self.change(|info| info.context_tokens = tail.context_tokens);
        let before = self.status();
        let (state, why) = match tail.interrupted {
            Some(interrupted) => (State::Paused, Some(interrupted.sentence())),
            None => (State::Idle, None),
        };
        self.enter(state, why);
        if before == self.status() {
            // The protocol has it after every rewind, changed or not.
            self.publisher.publish(&Event::Status { status: before });
        }
        Ok(())
    }
}

fn listed(found: Targets, live: impl Fn(&mut Losses)) -> Event {
    let Targets { head_entries, targets, mut undo, mut redo } = found;
    let mut targets: Vec<RewindTarget> = targets.into_iter().map(|target| target.listed).collect();
    targets.iter_mut().filter_map(|target| target.drops.as_mut()).for_each(&live);
    undo.iter_mut().chain(&mut redo).for_each(|comeback| live(&mut comeback.drops));
    Event::RewindTargets { head_entries, targets, undo, redo }
}

/// What a rewind or its undo does.
struct Plan {
    entry: Entry,
    /// The input that is taken back.
    input: Vec<Segment>,
    dropped_entries: usize,
    losses: Losses,
}

fn plan(
    files: &Files,
    head: SegmentId,
    target: RewindTargetId,
    expected: usize,
) -> Result<Plan, Refusal> {
    let targets = rewind_targets(files, head, None)?;
    must_be_current(targets.head_entries, expected)?;
    let found = targets.targets.into_iter().find(|found| found.listed.id == target);
    let found = found.ok_or_else(|| Refusal::invalid("that entry is no user input any more"))?;
    let losses = found.listed.drops.unwrap_or_default();
    let entry = Jump::entry(JumpKind::Rewound, found.to, json!({ "drops": losses }));
    Ok(Plan {
        entry,
        input: session::input_at(files, found.input)?,
        dropped_entries: found.entries,
        losses,
    })
}

fn plan_undo(
    files: &Files,
    head: SegmentId,
    entry: EntryId,
    expected: usize,
) -> Result<Plan, Refusal> {
    must_be_current(session::head_entries(files, head, None)?, expected)?;
    let found = session::find_jump(files, head, None, entry)?;
    let kind = found.as_ref().and_then(|(jump, _)| match jump.kind {
        JumpKind::Rewound | JumpKind::Redone => Some(JumpKind::Undone),
        JumpKind::Undone => Some(JumpKind::Redone),
        JumpKind::RolledBack | JumpKind::Forked => None,
    });
    let Some(((jump, back), kind)) = found.zip(kind) else {
        return Err(Refusal::invalid("that rewind cannot be taken back any more"));
    };
    let (returns, losses) = (back.returns, back.drops);
    let entry = Jump::entry(kind, jump.at, json!({ "returns": returns, "drops": losses }));
    Ok(Plan { entry, input: Vec::new(), dropped_entries: 0, losses })
}

/// Refuses when something was added to the log since it was listed with this number of entries.
fn must_be_current(current: usize, expected: usize) -> Result<(), Refusal> {
    if expected == current {
        return Ok(());
    }
    Err(Refusal::head_changed(expected, current))
}
