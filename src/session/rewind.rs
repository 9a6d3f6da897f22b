//! Where one can go back to: before each thing a person said, also before a compaction.

use crate::protocol::entry::{Entry, Fact};
use crate::protocol::method::Segment;
use crate::protocol::name::SegmentId;
use crate::protocol::{RewindTarget, RewindTargetId};
use crate::session::line::{Forward, Head, decode};
use crate::session::locate::chain;
use crate::session::rollback::Skip;
use crate::session::{Files, LogError};
use std::fs::File;
use std::path::Path;

/// Characters of an input that a target shows.
const PREVIEW: usize = 120;
const WARNING: &str = "history suffix will be discarded; tool side effects are not undone";
const MID_RUN: &str = "sent while a run was under way; go back to the input that began it";

/// The places to go back to, newest first, and the number of lines in `segment`. Targets from
/// before a compaction name the older segment. Blocking; reads the segments whole.
pub fn rewind_targets(
    files: &Files,
    segment: SegmentId,
) -> Result<(usize, Vec<RewindTarget>), LogError> {
    let mut targets = Vec::new();
    let mut head = 0;
    let mut tools_ran = false;
    for (index, segment) in chain(files, segment).into_iter().enumerate() {
        let found = Inputs::read(&files.segment(segment));
        // An older segment that cannot be read any more takes only its own targets away.
        let found = if index == 0 { found? } else { found.unwrap_or_default() };
        if index == 0 {
            head = found.lines;
        }
        targets.extend(found.targets(segment, head, tools_ran));
        tools_ran |= !found.tool_results.is_empty();
    }
    number(&mut targets);
    Ok((head, targets))
}

/// Numbers the turns from the oldest on, from 1.
fn number(targets: &mut [RewindTarget]) {
    for (index, target) in targets.iter_mut().rev().enumerate() {
        target.turn_index = index + 1;
    }
}

/// What matters of one segment.
#[derive(Default)]
struct Inputs {
    lines: usize,
    inputs: Vec<Input>,
    /// Which lines are tool results.
    tool_results: Vec<usize>,
    /// The invoke that the next input may belong to.
    invoke: Option<usize>,
}

struct Input {
    index: usize,
    /// Lines that stay when one goes back to before it.
    keep: Option<usize>,
    ts: u64,
    preview: String,
}

impl Inputs {
    fn read(path: &Path) -> Result<Self, LogError> {
        let read = || -> std::io::Result<Self> {
            let end = File::open(path)?.metadata()?.len();
            let mut skip = Skip::read(path, end)?;
            let mut lines = Forward::new(File::open(path)?, 0, end)?;
            let mut found = Self::default();
            let mut line = Vec::new();
            while let Some(start) = lines.next_into(&mut line)? {
                let head = Head::read(&line);
                if !skip.skips(start, head.as_ref().and_then(|head| head.id)) {
                    found.line(head.as_ref().map_or("", |head| &head.kind), &line);
                }
                found.lines += 1;
            }
            Ok(found)
        };
        read().map_err(LogError::reading(path))
    }

    fn line(&mut self, kind: &str, line: &[u8]) {
        let index = self.lines;
        match kind {
            "invoke" => self.invoke = Some(index),
            "user_input" => {
                let keep = self.invoke.take();
                if let Ok(Entry { ts, fact: Fact::UserInput { segments, .. }, .. }) = decode(line) {
                    let preview = preview(&segments);
                    self.inputs.push(Input { index, keep, ts, preview });
                }
            }
            "system_item" | "extension" | "config_changed" => {}
            "tool_result" => {
                self.invoke = None;
                self.tool_results.push(index);
            }
            _ => self.invoke = None,
        }
    }

    /// Newest first.
    fn targets(&self, segment_id: SegmentId, head: usize, tools_ran: bool) -> Vec<RewindTarget> {
        let target = |input: &Input| {
            let after = |result: &usize| *result > input.index;
            let warned = tools_ran || self.tool_results.last().is_some_and(after);
            RewindTarget {
                id: RewindTargetId { segment_id, user_input_entry_index: input.index },
                expected_head_entries: head,
                truncate_entries: input.keep.unwrap_or(input.index),
                turn_index: 0,
                timestamp_ms: Some(input.ts),
                preview: input.preview.clone(),
                eligible: input.keep.is_some(),
                disabled_reason: input.keep.is_none().then(|| MID_RUN.into()),
                warning: warned.then(|| WARNING.into()),
            }
        };
        self.inputs.iter().rev().map(target).collect()
    }
}
/// The beginning of an input, on one line.
fn preview(segments: &[Segment]) -> String {
    let text: Vec<String> = segments.iter().map(Segment::flat).collect();
    let words: Vec<&str> = text.iter().flat_map(|flat| flat.split_whitespace()).collect();
    words.join(" ").chars().take(PREVIEW).collect()
}
