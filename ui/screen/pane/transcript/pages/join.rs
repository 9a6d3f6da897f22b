//! Joins calls with their results and the waits before them, and approval requests with their decisions.

use crate::screen::pane::transcript::block::{Block, Kind};
use crate::screen::pane::transcript::pages::{Pages, REACH};
use crate::screen::pane::transcript::tool::Progress;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use yoi::protocol::Verdict;

impl Pages {
    /// Gives the results on and around a new page to their calls.
    pub(super) fn join(&mut self, index: usize) {
        let from = index.saturating_sub(REACH);
        let until = (index + REACH).min(self.list.len());
        self.join_decisions(from, until);
        let mut answers = HashMap::new();
        for page in self.list.range(index..until) {
            for block in &page.blocks {
                if let Kind::Result { call_id, outcome } = &block.kind {
                    answers.entry(call_id.clone()).or_insert_with(|| Rc::clone(outcome));
                }
            }
        }
        let mut answered = HashSet::new();
        for page in self.list.range_mut(from..=index) {
            for block in &mut page.blocks {
                let Kind::Tool(tool) = &mut block.kind else { continue };
                let Some(outcome) = answers.get(&tool.call_id) else { continue };
                answered.insert(tool.call_id.clone());
                if tool.outcome.is_none() {
                    tool.outcome = Some(Rc::clone(outcome));
                    tool.progress = Progress::Over;
                    block.cache = None;
                }
            }
        }
        for block in self.list.range_mut(index..until).flat_map(|page| page.blocks.iter_mut()) {
            if let Kind::Result { call_id, .. } = &block.kind {
                block.gone |= answered.contains(call_id);
            }
        }
        self.join_waits(from, until);
        self.mark_waiting();
    }

    /// Marks the calls that run once a person has decided: the call of a request that is still open at
    /// the end of the log, and the calls of the same reply that have no result either.
    fn mark_waiting(&mut self) {
        let old = self.list.len().saturating_sub(REACH);
        let mut open: Option<(String, u64)> = None;
        let mut is_shown = false;
        for block in self.list.range_mut(old..).flat_map(|page| page.blocks.iter_mut()).rev() {
            match &mut block.kind {
                _ if block.gone => {}
                Kind::Approval(request) if request.verdict.is_none() => {
                    open = Some((request.call_id.clone(), block.ts));
                }
                Kind::Tool(tool) if tool.outcome.is_some() => {}
                Kind::Tool(tool) if tool.progress == Progress::Over => {
                    let Some((call_id, ts)) = &open else { continue };
                    is_shown |= tool.wait(call_id, *ts);
                    block.cache = None;
                }
                Kind::User { .. } | Kind::Said { .. } | Kind::Note { .. } | Kind::Border(_) => {
                    break;
                }
                _ => {}
            }
        }
        let Some((call_id, _)) = open.filter(|_| is_shown) else { return };
        for block in self.list.range_mut(old..).flat_map(|page| page.blocks.iter_mut()) {
            if let Kind::Approval(request) = &mut block.kind {
                request.in_call |= request.call_id == call_id;
            }
        }
    }

    /// Begins the wait of a call for its request, which was made at `ts`, and of the calls of the same reply behind it.
    /// Returns whether the call is loaded.
    pub fn wait_for(&mut self, call_id: &str, ts: u64) -> bool {
        let old = self.list.len().saturating_sub(REACH);
        let blocks = self.list.range_mut(old..).flat_map(|page| page.blocks.iter_mut());
        let is_it =
            |block: &Block| matches!(&block.kind, Kind::Tool(tool) if tool.call_id == call_id);
        let mut is_shown = false;
        for block in blocks.skip_while(|block| !is_it(block)) {
            if let Kind::Tool(tool) = &mut block.kind
                && tool.outcome.is_none()
                && tool.progress == Progress::Running
            {
                is_shown |= tool.wait(call_id, ts);
                block.cache = None;
            }
        }
        is_shown
    }

    /// Ends the wait of the calls: they run, unless the request was withdrawn.
    pub fn go_on(&mut self, verdict: &Verdict) {
        let progress = match verdict {
            Verdict::Withdrawn { .. } => Progress::Over,
            _ => Progress::Running,
        };
        let old = self.list.len().saturating_sub(REACH);
        for block in self.list.range_mut(old..).flat_map(|page| page.blocks.iter_mut()) {
            if let Kind::Tool(tool) = &mut block.kind
                && matches!(tool.progress, Progress::NeedsPerson | Progress::Waiting)
            {
                tool.progress = progress;
                block.cache = None;
            }
        }
    }

    /// Begins the time of the newest calls anew behind what they waited for.
    pub fn end_waits(&mut self) {
        self.join_waits(self.list.len().saturating_sub(REACH), self.list.len());
    }

    /// The calls of a reply run one after the other where a person is asked: the time of a call begins
    /// when its own request was decided, or when a call before it that was decided had ended.
    fn join_waits(&mut self, from: usize, until: usize) {
        let (mut asked, mut waits) = (HashSet::new(), Vec::new());
        for block in self.list.range(from..until).flat_map(|page| page.blocks.iter()) {
            match &block.kind {
                Kind::Approval(request) => drop(asked.insert(request.call_id.clone())),
                Kind::Decision { .. } => waits.push((block.ts, None)),
                _ => {}
            }
        }
        if asked.is_empty() && waits.is_empty() {
            return;
        }
        for block in self.list.range(from..until).flat_map(|page| page.blocks.iter()) {
            if let Kind::Tool(tool) = &block.kind
                && asked.contains(&tool.call_id)
                && let Some(outcome) = &tool.outcome
            {
                waits.push((outcome.ts, Some(tool.call_id.clone())));
            }
        }
        for block in self.list.range_mut(from..until).flat_map(|page| page.blocks.iter_mut()) {
            let Kind::Tool(tool) = &mut block.kind else { continue };
            let end = tool.outcome.as_ref().map_or(u64::MAX, |outcome| outcome.ts);
            let before = waits.iter().filter(|(at, by)| {
                *at <= end && by.as_ref().is_none_or(|call_id| *call_id != tool.call_id)
            });
            let begun = before.map(|(at, _)| *at).max();
            if begun.is_some() && tool.since.is_some() && begun > tool.since {
                tool.since = begun;
                block.cache = None;
            }
        }
    }

    /// Gives a decision to its request; `false` if the request is not loaded.
    pub fn decide(&mut self, approval: &str, verdict: &Verdict) -> bool {
        let old = self.list.len().saturating_sub(REACH);
        let recent = self.list.range_mut(old..).flat_map(|page| page.blocks.iter_mut());
        give_decision(recent, approval, verdict)
    }

    /// Gives the decisions on and around a new page to their requests.
    fn join_decisions(&mut self, from: usize, until: usize) {
        let mut answers = Vec::new();
        for block in self.list.range(from..until).flat_map(|page| page.blocks.iter()) {
            if let Kind::Decision { approval, verdict } = &block.kind {
                answers.push((approval.clone(), verdict.clone()));
            }
        }
        for (asked, verdict) in answers {
            let blocks = self.list.range_mut(from..until).flat_map(|page| page.blocks.iter_mut());
            if !give_decision(blocks, &asked, &verdict) {
                continue;
            }
            let blocks = self.list.range_mut(from..until).flat_map(|page| page.blocks.iter_mut());
            for block in blocks {
                block.gone |=
                    matches!(&block.kind, Kind::Decision { approval, .. } if *approval == asked);
            }
        }
    }
}

fn give_decision<'a>(
    blocks: impl Iterator<Item = &'a mut Block>,
    approval: &str,
    verdict: &Verdict,
) -> bool {
    for block in blocks {
        let Kind::Approval(request) = &mut block.kind else { continue };
        if request.id == approval {
            request.verdict = Some(verdict.clone());
            block.cache = None;
            return true;
        }
    }
    false
}
