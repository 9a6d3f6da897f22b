//! Rewinds the history to before an input.

use crate::host::Answer;
use crate::host::events::Rewound;
use crate::host::pod::Pod;
use crate::host::pod::calls::reply;
use crate::host::splice::LogRange;
use crate::protocol::{
    Event, Refusal, RewindSummary, RewindTargetId, Segment, SegmentId, SegmentOrigin, State,
};
use crate::session::{self, Files, rewind_targets};
use std::sync::Arc;

impl Pod {
    pub(super) fn list_rewind_targets(&self, answer: Answer) {
        let Some(segment) = self.row.segment else {
            let none = Event::RewindTargets { head_entries: 0, targets: Vec::new() };
            return reply(answer, Ok(none));
        };
        if let Err(refusal) = self.must_not_run() {
            return reply(answer, Err(refusal));
        }
        let files = self.files.clone();
        tokio::task::spawn_blocking(move || {
            let targets = rewind_targets(&files, segment).map_err(Refusal::from);
            let event = |(head_entries, targets)| Event::RewindTargets { head_entries, targets };
            reply(answer, targets.map(event));
        });
    }

    /// Opens a new segment that holds what came before the input; the old one stays as it is.
    pub(super) async fn rewind(
        &mut self,
        target: RewindTargetId,
        expected: usize,
    ) -> Result<Arc<Rewound>, Refusal> {
        self.must_be_live()?;
        self.must_not_run()?;
        let head =
            self.row.segment.ok_or_else(|| Refusal::invalid("there is nothing to rewind"))?;
        self.close_log().await;
        let files = self.files.clone();
        let plan = move || plan(&files, head, target, expected);
        let plan = tokio::task::spawn_blocking(plan).await??;
        // The log that is left behind says what a person decided.
        self.withdraw("the run was rewound").await?;
        let origin = SegmentOrigin { segment_id: target.segment_id, at_turn_index: plan.turn };
        let (journal, segment, end) =
            session::fork(&self.files, target.segment_id, plan.keep, origin).await?;
        journal.close().await;
        crate::crash_point!("rewind-forked");
        self.shared.store.set_segment(&self.row.name, Some(segment)).await?;
        crate::crash_point!("rewind-stored");
        self.row.segment = Some(segment);
        self.end = Some(end);
        self.change(|info| info.segment = Some(segment));
        let log = LogRange { path: self.files.segment(segment), end: Some(end) };
        let summary = RewindSummary {
            truncated_to_entries: readable(log.clone()).await?,
            discarded_entries: plan.head_entries.saturating_sub(plan.keep),
            tool_side_effect_warning: plan.tools_ran,
        };
        let rewound = Arc::new(Rewound { log, input: plan.input, summary });
        self.publisher.rewound(&rewound);
        let before = self.status();
        self.enter(State::Idle, None);
        if before == self.status() {
            // The protocol has it after every rewind, changed or not.
            self.publisher.publish(&Event::Status { status: before });
        }
        Ok(rewound)
    }
}

struct Plan {
    head_entries: usize,
    keep: usize,
    turn: u64,
    input: Vec<Segment>,
    tools_ran: bool,
}

fn plan(
    files: &Files,
    head: SegmentId,
    target: RewindTargetId,
    expected: usize,
) -> Result<Plan, Refusal> {
    let (head_entries, targets) = rewind_targets(files, head)?;
    if expected != head_entries {
        let text = format!(
            "session head changed since picker opened (expected {expected}, current {head_entries})"
        );
        return Err(Refusal::invalid(text));
    }
    let found = targets.into_iter().find(|t| t.id == target);
    let found = found.ok_or_else(|| Refusal::invalid("that entry is no user input any more"))?;
    let past = session::replay(&files.segment(target.segment_id), None)?;
    let at = target.user_input_entry_index;
    let input = past.user_inputs.into_iter().find(|(index, _, _)| *index == at);
    Ok(Plan {
        head_entries,
        keep: found.truncate_entries,
        turn: found.turn_index as u64,
        input: input.map(|(_, _, segments)| segments).unwrap_or_default(),
        tools_ran: found.warning.is_some(),
    })
}

/// How many entries of a log can be read.
async fn readable(log: LogRange) -> Result<usize, Refusal> {
    let count = move || session::spans(&log.path, log.end.unwrap_or(u64::MAX)).map(|s| s.len());
    Ok(tokio::task::spawn_blocking(count).await??)
}
