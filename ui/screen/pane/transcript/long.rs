//! Requests for long texts of the log: which tables and which parts are read, and what they do when they
//! come. `parts` divides a text, `rest` holds its loaded parts, `stream` divides it while it streams.

use crate::screen::pane::transcript::Transcript;
use crate::screen::pane::transcript::load::Want;
use crate::screen::pane::transcript::pages::{Gap, Pos, Walk};
use crate::screen::pane::transcript::parts::{LongText, PartRange, PartTable};
use crate::screen::pane::transcript::rest::Reading;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use yoi::protocol::{EntryId, Unescape};

/// How many parts are requested at once while the view moves.
const AHEAD: usize = 2;
/// How many parts are requested at once while a search goes through them.
const SEARCH: usize = 12;

/// The tables of parts.
#[derive(Default)]
pub struct Tables {
    /// Tables to request.
    wanted: Vec<LongText>,
    under_way: HashSet<EntryId>,
    known: HashMap<EntryId, Rc<PartTable>>,
}

/// The reason why parts of a text are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    UntilComplete,
    UntilLoaded,
}

#[cfg(test)]
impl Tables {
    pub fn is_idle(&self) -> bool {
        self.wanted.is_empty() && self.under_way.is_empty() && self.known.is_empty()
    }
}

impl Transcript {
    /// A long text whose table is to be read.
    pub fn wants_table(&mut self) -> Option<LongText> {
        self.tables.wanted.pop()
    }

    /// Takes the table of [`Transcript::wants_table`], or the reason why it cannot be read.
    pub fn table(&mut self, entry: EntryId, read: Result<PartTable, String>) {
        if !self.tables.under_way.remove(&entry) {
            return;
        }
        let state = match read {
            Ok(table) => {
                self.tables.known.insert(entry, Rc::new(table));
                Reading::Done
            }
            Err(why) => Reading::Failed(why),
        };
        for pos in self.pages.find_long(entry) {
            self.read_table(pos, &state);
        }
        self.go_on_seeking();
        self.find_visible_rows();
        self.drop_pages();
    }

    fn read_table(&mut self, pos: Pos, state: &Reading) {
        let Some(block) = self.pages.get_mut(pos) else { return };
        let known = block.long().and_then(|long| self.tables.known.get(&long.entry));
        match (known, block.lacks_table()) {
            (_, false) => return,
            (Some(table), true) => block.rest.attach(Rc::clone(table)),
            (None, true) => block.rest.state = state.clone(),
        }
        block.cache = None;
        self.pages.recount(pos.page);
    }

    /// Gives known tables to blocks that have just been loaded.
    pub(super) fn attach_tables(&mut self) {
        let awaits = self.pages.newest_first().filter(|(_, block)| block.awaits_table());
        let known = awaits.filter(|(_, block)| {
            block.long().is_some_and(|long| self.tables.known.contains_key(&long.entry))
        });
        let places: Vec<Pos> = known.map(|(pos, _)| pos).collect();
        places.into_iter().for_each(|pos| self.read_table(pos, &Reading::Wanted));
    }

    /// Requests the table of a block's parts, once.
    pub(super) fn want_table(&mut self, pos: Pos) {
        let Some(block) = self.pages.get_mut(pos.head()).filter(|block| block.awaits_table())
        else {
            return;
        };
        let Some(long) = block.long().cloned() else { return };
        if self.tables.known.contains_key(&long.entry) {
            return self.read_table(pos.head(), &Reading::Wanted);
        }
        block.rest.state = Reading::UnderWay;
        if self.tables.under_way.insert(long.entry) {
            self.tables.wanted.push(long);
        }
    }

    /// Requests the table of a block again if it could not be read before; `false` if it could.
    pub(super) fn retry_table(&mut self, pos: Pos) -> bool {
        let Some(block) = self.pages.get_mut(pos.head()) else { return false };
        if !matches!(block.rest.state, Reading::Failed(_)) {
            return false;
        }
        (block.rest.state, block.cache) = (Reading::Wanted, None);
        self.find_visible_rows();
        true
    }

    /// Requests what the view misses at a gap.
    pub(super) fn want(&mut self, gap: Gap, back: bool) -> Option<Want> {
        self.want_some(gap, back, AHEAD)
    }

    /// Requests what a search misses at a gap.
    pub(super) fn want_for_search(&mut self, gap: Gap, back: bool) {
        self.load.want = self.want_some(gap, back, SEARCH);
    }

    fn want_some(&mut self, gap: Gap, back: bool, most: usize) -> Option<Want> {
        match gap {
            Gap::Page(page) => self.pages.missing(page).map(|before| Want::Refill(page, before)),
            Gap::Part(pos) => self.part_range(pos, back, most).map(Want::Parts),
            Gap::Table(pos) => {
                self.want_table(pos);
                None
            }
        }
    }

    fn part_range(&self, pos: Pos, back: bool, most: usize) -> Option<PartRange> {
        let block = self.pages.get(pos.head())?;
        let table = block.rest.table.as_ref()?;
        let missing = |part: usize| block.rest.slot(part).is_none();
        let (first, count) = table.range(pos.part, back, most, missing)?;
        let parts = table.parts.get(first - 1..first - 1 + count)?;
        let (start, end) = (parts.first()?.start, parts.last()?.end);
        let entry = block.long()?.entry;
        Some(PartRange { entry, place: table.entry, first, count, start, end })
    }

    /// Takes the requested parts: a piece of the line of their entry, from byte `start` on.
    pub fn parts(&mut self, range: PartRange, start: u64, line: &str) {
        if self.load.under_way() != Some(Want::Parts(range)) {
            return;
        }
        match self.decode(range, start, line) {
            Ok(texts) => {
                self.load.arrived();
                for pos in self.pages.find_long(range.entry) {
                    self.fill_parts(pos, &texts);
                }
                self.go_on_seeking();
                self.find_visible_rows();
                self.drop_pages();
            }
            Err(why) => self.page_failed(why),
        }
    }

    /// Notes that the requested parts could not be read.
    pub fn parts_failed(&mut self, range: PartRange, why: String) {
        if self.load.under_way() == Some(Want::Parts(range)) {
            self.page_failed(why);
        }
    }

    /// The texts of the parts in a piece of a line, with their numbers.
    fn decode(
        &self,
        range: PartRange,
        start: u64,
        line: &str,
    ) -> Result<Vec<(usize, String)>, String> {
        let Some(table) = self.tables.known.get(&range.entry) else { return Ok(Vec::new()) };
        let numbers = range.first..range.first + range.count;
        let offset = |at: u64| at.checked_sub(start).and_then(|at| usize::try_from(at).ok());
        let text = |number: usize| {
            let part = table.parts.get(number - 1)?;
            let raw = line.get(offset(part.start)?..offset(part.end)?)?;
            Some(Unescape::default().push(raw).map(|text| (number, text)))
        };
        let found: Result<Vec<_>, _> = numbers.map_while(text).collect();
        match found {
            Ok(texts) if texts.is_empty() => {
                Err("the host did not send the part of a long entry that was asked for".into())
            }
            found => found.map_err(|error| error.to_string()),
        }
    }

    fn fill_parts(&mut self, pos: Pos, texts: &[(usize, String)]) {
        let Some(block) = self.pages.get_mut(pos).filter(|block| block.rest.table.is_some()) else {
            return;
        };
        for (number, text) in texts {
            if block.rest.slot(*number).is_none() {
                block.fill(*number, text);
            }
        }
        self.pages.recount(pos.page);
    }

    /// Whether parts of a text in view are left out. Parts of an answer that streams are not in the log yet,
    /// and only the newest ones and those near the view are kept.
    pub fn leaves_out(&self) -> Option<LeftOut> {
        let begun = self.seen.iter().filter(|seen| seen.row == 0 && seen.pos.part > 1);
        begun.filter_map(|seen| self.left_out_before(seen.pos)).next()
    }

    fn left_out_before(&self, pos: Pos) -> Option<LeftOut> {
        let block = self.pages.get(pos.head())?;
        if block.rest.table.is_some() || block.rest.slot(pos.part - 1).is_some() {
            return None;
        }
        let committed = block.long().is_some();
        Some(if committed { LeftOut::UntilLoaded } else { LeftOut::UntilComplete })
    }

    /// The parts that the view goes through at this level of detail.
    pub(super) fn walk(&self) -> Walk {
        Walk::Shown(self.detail, self.unfolded)
    }
}
