//! The blocks that are loaded, in the pages they came in. Pages far from the view are dropped again
//! and remember where they are to be read.

use crate::pane::transcript::block::{Block, Kind, Reading};
use crate::pane::transcript::tool::Progress;
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;
use yoi::protocol::event::Line;
use yoi::protocol::{EntryId, Verdict};

/// What all loaded blocks together may hold, in bytes, before pages far away are dropped.
const BUDGET: usize = 8 * 1024 * 1024;
/// From this size on, in bytes, the growing last page is closed and a new one begun.
const SEAL: usize = 128 * 1024;
/// A call and its answer lie at most this many pages apart.
const REACH: usize = 8;

/// The place of a block; places compare as the blocks follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pos {
    pub page: i64,
    pub block: usize,
}

/// Where the reading of a page ends, walking backwards.
#[derive(Clone, Copy, PartialEq)]
enum Bound {
    /// With this entry.
    From(EntryId),
    /// Just after this entry.
    After(EntryId),
}

struct Page {
    /// The page lies before this entry; unknown for the last page, which nothing drops.
    before: Option<EntryId>,
    bound: Option<Bound>,
    blocks: Vec<Block>,
    bytes: usize,
    state: State,
}

enum State {
    Loaded,
    /// Not here; `newest` are those of its blocks that were read already, the rest lies before
    /// `next`.
    Dropped {
        newest: Vec<Block>,
        next: EntryId,
    },
}

/// What lies before the first page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beginning {
    #[default]
    Here,
    /// More, before this entry.
    Before(EntryId),
}

/// What walking comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    To(Pos),
    /// A page that is not here.
    Missing(i64),
    /// The beginning or the end of what there is.
    End,
}

#[derive(Default)]
pub struct Pages {
    list: VecDeque<Page>,
    /// The number of the first page; it falls as older pages are put before it.
    first: i64,
    pub beginning: Beginning,
}

impl Pages {
    fn index(&self, page: i64) -> Option<usize> {
        usize::try_from(page - self.first).ok().filter(|at| *at < self.list.len())
    }

    fn number(&self, index: usize) -> i64 {
        self.first + i64::try_from(index).unwrap_or(i64::MAX)
    }

    pub fn get(&self, pos: Pos) -> Option<&Block> {
        self.list.get(self.index(pos.page)?)?.blocks.get(pos.block)
    }

    pub fn get_mut(&mut self, pos: Pos) -> Option<&mut Block> {
        let index = self.index(pos.page)?;
        self.list.get_mut(index)?.blocks.get_mut(pos.block)
    }

    /// The block before or after a place.
    pub fn step(&self, from: Pos, forward: bool) -> Step {
        let Some(mut index) = self.index(from.page) else { return Step::End };
        if forward && from.block + 1 < self.list[index].blocks.len() {
            return Step::To(Pos { page: from.page, block: from.block + 1 });
        }
        if !forward && let Some(block) = from.block.checked_sub(1) {
            return Step::To(Pos { page: from.page, block });
        }
        loop {
            let next = if forward { Some(index + 1) } else { index.checked_sub(1) };
            let Some((next, page)) = next.and_then(|n| Some((n, self.list.get(n)?))) else {
                return Step::End;
            };
            index = next;
            let number = self.number(index);
            if matches!(page.state, State::Dropped { .. }) {
                return Step::Missing(number);
            }
            if let Some(last) = page.blocks.len().checked_sub(1) {
                return Step::To(Pos { page: number, block: if forward { 0 } else { last } });
            }
        }
    }

    /// The last block of all.
    pub fn last(&self) -> Option<Pos> {
        let page = self.number(self.list.len());
        match self.step_from_end(page) {
            Step::To(pos) => Some(pos),
            Step::Missing(_) | Step::End => None,
        }
    }

    fn step_from_end(&self, end: i64) -> Step {
        let last = end - 1;
        let Some(index) = self.index(last) else { return Step::End };
        match self.list[index].blocks.len().checked_sub(1) {
            Some(block) => Step::To(Pos { page: last, block }),
            None => self.step(Pos { page: last, block: 0 }, false),
        }
    }

    /// The first loaded block.
    pub fn oldest(&self) -> Option<Pos> {
        let loaded = |page: &Page| !page.blocks.is_empty();
        let index = self.list.iter().position(loaded)?;
        Some(Pos { page: self.number(index), block: 0 })
    }

    /// Where the missing page is to be read.
    pub fn missing(&self, page: i64) -> Option<EntryId> {
        match &self.list.get(self.index(page)?)?.state {
            State::Dropped { next, .. } => Some(*next),
            State::Loaded => None,
        }
    }

    /// The place of an entry, the newest pages first.
    pub fn find_entry(&self, id: EntryId) -> Option<Pos> {
        self.newest_first().find(|(_, block)| block.id == Some(id)).map(|(pos, _)| pos)
    }

    /// All loaded blocks, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = (Pos, &Block)> {
        self.list.iter().enumerate().rev().flat_map(|(index, page)| {
            let page_number = self.number(index);
            let blocks = page.blocks.iter().enumerate().rev();
            blocks.map(move |(block, found)| (Pos { page: page_number, block }, found))
        })
    }

    /// All loaded blocks, to change them; in no order that matters.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        self.list.iter_mut().flat_map(|page| page.blocks.iter_mut())
    }

    /// The place of the call with this id, if it is not too long ago.
    pub fn find_call(&self, call_id: &str) -> Option<Pos> {
        let old = self.number(self.list.len().saturating_sub(REACH));
        self.newest_first().take_while(|(pos, _)| pos.page >= old).find_map(|(pos, block)| {
            let Kind::Tool(tool) = &block.kind else { return None };
            (tool.call_id == call_id && !block.gone).then_some(pos)
        })
    }

    /// Adds a block at the end.
    pub fn push(&mut self, block: Block) -> Pos {
        let full = self.list.back().is_none_or(|page| {
            let settled = page.blocks.iter().rev().take(64).all(|block| !block.live);
            page.bytes > SEAL && settled && block.id.is_some()
        });
        if full {
            if let Some(last) = self.list.back_mut() {
                last.before = block.id;
            }
            self.list.push_back(Page::new(Vec::new(), None));
        }
        let page = self.number(self.list.len() - 1);
        let index = self.list.len() - 1;
        let last = &mut self.list[index];
        last.bytes += block.bytes();
        last.bound = last.bound.or(block.id.map(Bound::From));
        last.blocks.push(block);
        Pos { page, block: last.blocks.len() - 1 }
    }

    /// Puts a page before all others.
    pub fn prepend(&mut self, lines: Vec<Line>, older: Option<EntryId>) -> i64 {
        let next = self.list.iter().find_map(Page::oldest_id);
        let before = match self.beginning {
            Beginning::Before(id) => Some(id),
            Beginning::Here => next,
        };
        let bound = older.or_else(|| lines.iter().find_map(line_id)).map(Bound::From);
        let mut page = Page::new(read(lines), before);
        page.bound = bound;
        self.list.push_front(page);
        self.first -= 1;
        self.beginning = older.map_or(Beginning::Here, Beginning::Before);
        self.join(0);
        self.first
    }

    /// Fills a page that was dropped, as far as these lines reach.
    pub fn refill(&mut self, number: i64, lines: Vec<Line>, older: Option<EntryId>) {
        let Some(index) = self.index(number) else { return };
        let page = &mut self.list[index];
        let State::Dropped { newest, next } = &mut page.state else { return };
        let at = |id: EntryId| lines.iter().position(|line| line_id(line) == Some(id));
        let cut = match page.bound {
            Some(Bound::From(id)) => at(id),
            Some(Bound::After(id)) => at(id).map(|at| at + 1),
            None => None,
        };
        let mut lines = lines;
        let kept = lines.split_off(cut.unwrap_or(0));
        let oldest = kept.iter().find_map(line_id);
        let mut blocks = read(kept);
        blocks.append(newest);
        match older {
            Some(older) if cut.is_none() => {
                *newest = blocks;
                *next = older;
            }
            _ => {
                let bound = match page.bound {
                    Some(Bound::From(id)) => Some(id),
                    _ => oldest.or_else(|| blocks.iter().find_map(|block| block.id)),
                };
                *page = Page { bound: bound.map(Bound::From), ..Page::new(blocks, page.before) };
                if let Some(previous) = index.checked_sub(1) {
                    let previous = &mut self.list[previous];
                    previous.before = previous.before.or(bound);
                }
                self.join(index);
            }
        }
    }

    /// Brings the end up to date with the newest page. Blocks that stream are forgotten. What both
    /// know is taken from the new one. Where nothing is known to both, everything before is
    /// forgotten too, or with `keep` there is a gap in between, to be filled when it is looked at.
    pub fn renew(&mut self, lines: Vec<Line>, older: Option<EntryId>, keep: bool) {
        let ids: Vec<EntryId> = lines.iter().filter_map(line_id).collect();
        let overlap = self.overlap(&ids);
        let newest = self.newest_first().find_map(|(_, block)| block.id);
        match (overlap, newest, older.or_else(|| ids.first().copied())) {
            (Some(pos), _, oldest) => {
                self.truncate(pos);
                self.meet(&ids, oldest, older);
            }
            (None, Some(newest), Some(oldest)) if keep && older.is_some() => {
                self.all_mut().filter(|block| block.live).for_each(|block| block.gone = true);
                let state = State::Dropped { newest: Vec::new(), next: oldest };
                let gap = Page::new(Vec::new(), Some(oldest));
                let bound = Some(Bound::After(newest));
                self.list.push_back(Page { state, bound, ..gap });
            }
            _ => {
                let next = self.number(self.list.len());
                self.list.clear();
                self.first = next;
                self.beginning = older.map_or(Beginning::Here, Beginning::Before);
            }
        }
        let mut page = Page::new(read(lines), None);
        page.bound = older.or_else(|| ids.first().copied()).map(Bound::From);
        self.list.push_back(page);
        self.join(self.list.len() - 1);
    }

    /// The oldest loaded block that is among these entries.
    fn overlap(&self, ids: &[EntryId]) -> Option<Pos> {
        let known: HashSet<&EntryId> = ids.iter().collect();
        let same = |block: &Block| block.id.is_some_and(|id| known.contains(&id));
        self.newest_first().filter(|(_, block)| same(block)).last().map(|(pos, _)| pos)
    }

    /// Lets the pages that are left end where a new page with these entries begins.
    fn meet(&mut self, ids: &[EntryId], oldest: Option<EntryId>, older: Option<EntryId>) {
        while let Some(Page { state: State::Dropped { newest, next }, bound, before, .. }) =
            self.list.back_mut()
        {
            let covered = matches!(bound, Some(Bound::From(id)) if ids.contains(id));
            match oldest {
                Some(oldest) if !covered => {
                    newest.clear();
                    (*next, *before) = (oldest, Some(oldest));
                    return;
                }
                _ => drop(self.list.pop_back()),
            }
        }
        if self.list.is_empty() {
            self.beginning = older.map_or(Beginning::Here, Beginning::Before);
        }
    }

    /// Forgets everything from a place on.
    fn truncate(&mut self, from: Pos) {
        let Some(index) = self.index(from.page) else { return };
        self.list.truncate(index + 1);
        let page = &mut self.list[index];
        let id = page.blocks.get(from.block).and_then(|block| block.id);
        page.blocks.truncate(from.block);
        page.bytes = page.blocks.iter().map(Block::bytes).sum();
        page.before = id;
        if page.blocks.is_empty() {
            self.list.pop_back();
        }
    }

    /// Hides everything from an entry on: it was taken back.
    pub fn take_back(&mut self, from: EntryId) {
        let Some(start) = self.find_entry(from) else { return };
        let Some(index) = self.index(start.page) else { return };
        for (at, page) in self.list.iter_mut().enumerate().skip(index) {
            let skip = if at == index { start.block } else { 0 };
            page.blocks.iter_mut().skip(skip).for_each(|block| block.gone = true);
        }
    }

    /// Gives the answers on and around a page that has just come to their calls.
    fn join(&mut self, index: usize) {
        let from = index.saturating_sub(REACH);
        let until = (index + REACH).min(self.list.len());
        self.join_questions(from, until);
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
    }

    /// Gives an answer to its question; `false` when that is not here.
    pub fn answer_question(&mut self, approval: &str, verdict: &Verdict) -> bool {
        let old = self.list.len().saturating_sub(REACH);
        let recent = self.list.range_mut(old..).flat_map(|page| page.blocks.iter_mut());
        give_answer(recent, approval, verdict)
    }

    /// Gives the answers to questions on and around a page that has just come to their questions.
    fn join_questions(&mut self, from: usize, until: usize) {
        let mut answers = Vec::new();
        for block in self.list.range(from..until).flat_map(|page| page.blocks.iter()) {
            if let Kind::Answer { approval, verdict } = &block.kind {
                answers.push((approval.clone(), verdict.clone()));
            }
        }
        for (asked, verdict) in answers {
            let blocks = self.list.range_mut(from..until).flat_map(|page| page.blocks.iter_mut());
            if !give_answer(blocks, &asked, &verdict) {
                continue;
            }
            let blocks = self.list.range_mut(from..until).flat_map(|page| page.blocks.iter_mut());
            for block in blocks {
                block.gone |=
                    matches!(&block.kind, Kind::Answer { approval, .. } if *approval == asked);
            }
        }
    }

    /// Drops what is farthest from these pages until the rest is within the budget.
    pub fn keep_near(&mut self, near: &[i64]) {
        self.keep_within(near, BUDGET);
    }

    fn keep_within(&mut self, near: &[i64], budget: usize) {
        let mut total: usize = self.list.iter().map(|page| page.bytes).sum();
        let far = |number: i64| near.iter().map(|n| (n - number).abs()).min().unwrap_or(0);
        while total > budget {
            let candidates = (0..self.list.len()).filter(|index| {
                let page = &self.list[*index];
                let whole = matches!(page.state, State::Loaded) && !page.blocks.is_empty();
                whole && page.bound.is_some() && far(self.number(*index)) > 1
            });
            let farthest = candidates
                .filter_map(|index| Some((index, self.list[index].before?)))
                .max_by_key(|(index, _)| far(self.number(*index)));
            let Some((index, next)) = farthest else { return };
            let page = &mut self.list[index];
            total -= page.bytes;
            page.blocks = Vec::new();
            page.bytes = 0;
            page.state = State::Dropped { newest: Vec::new(), next };
        }
    }

    /// Counts a page again after one of its blocks has changed.
    pub fn recount(&mut self, page: i64) {
        let Some(index) = self.index(page) else { return };
        let page = &mut self.list[index];
        page.bytes = page.blocks.iter().map(Block::bytes).sum();
    }

    /// What all loaded blocks hold, in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.list.iter().map(|page| page.bytes).sum()
    }

    #[cfg(test)]
    pub fn drop_beyond(&mut self, near: &[i64], budget: usize) {
        self.keep_within(near, budget);
    }
}

impl Page {
    fn new(blocks: Vec<Block>, before: Option<EntryId>) -> Self {
        let bytes = blocks.iter().map(Block::bytes).sum();
        let bound = blocks.iter().find_map(|block| block.id).map(Bound::From);
        Self { before, bound, blocks, bytes, state: State::Loaded }
    }

    fn oldest_id(&self) -> Option<EntryId> {
        match self.bound? {
            Bound::From(id) => Some(id),
            Bound::After(_) => None,
        }
    }
}

fn give_answer<'a>(
    blocks: impl Iterator<Item = &'a mut Block>,
    approval: &str,
    verdict: &Verdict,
) -> bool {
    for block in blocks {
        let Kind::Question(question) = &mut block.kind else { continue };
        if question.id == approval {
            question.verdict = Some(verdict.clone());
            block.cache = None;
            return true;
        }
    }
    false
}

fn line_id(line: &Line) -> Option<EntryId> {
    match line {
        Line::Whole(entry) | Line::Cut { entry, .. } => entry.id,
        Line::Damaged { .. } => None,
    }
}

fn read(lines: Vec<Line>) -> Vec<Block> {
    let read = |line| match line {
        Line::Whole(entry) => Block::read(*entry, None),
        Line::Cut { cut_bytes, entry } => Block::read(*entry, Some(cut_bytes)),
        Line::Damaged { damaged, byte } => Reading::Block(Block::damaged(&damaged, byte)),
    };
    let shown = |reading| match reading {
        Reading::Block(block) => Some(block),
        // What was taken back is not in the page.
        Reading::TakenBack(_) | Reading::Nothing => None,
    };
    lines.into_iter().map(read).filter_map(shown).collect()
}
