//! Consecutive reads are one row until it is unfolded. Which reads these are follows from the blocks alone, so that it is
//! the same while calls stream and while pages load; a group never reaches beyond its page.

use crate::rows::{Piece, Row};
use crate::screen::pane::transcript::Transcript;
use crate::screen::pane::transcript::block::{Block, Fold, Kind};
use crate::screen::pane::transcript::outcome::lines_read;
use crate::screen::pane::transcript::pages::Pos;
use crate::screen::pane::transcript::rows::named;
use crate::screen::pane::transcript::tool::{Progress, Tool};
use crate::screen::pane::transcript::{Detail, scroll::RowPosition};
use crate::theme::Role;
use crate::wording::counted;
use std::collections::HashSet;

impl Block {
    /// The call, if it reads a file and went as it should so far.
    fn read_call(&self) -> Option<&Tool> {
        let Kind::Tool(tool) = &self.kind else { return None };
        let goes_well = match &tool.outcome {
            Some(outcome) => !outcome.is_error,
            None => matches!(tool.progress, Progress::Asked | Progress::Running),
        };
        (goes_well && tool.name == "Read").then_some(tool)
    }

    /// Whether a person gave it a row of its own, and it is folded.
    fn is_read_apart(&self) -> bool {
        matches!(self.fold, Fold::Apart | Fold::Shut) && self.read_call().is_some()
    }

    fn joins_group(&self) -> bool {
        self.fold == Fold::Auto && self.read_call().is_some()
    }
}

impl Transcript {
    /// Whether a block, or a part of one, takes rows.
    pub(super) fn takes_rows(&self, pos: Pos) -> bool {
        let shown = self.pages.get(pos).is_some_and(|block| block.shown(self.detail));
        shown && (pos.part > 0 || !self.is_behind_head(pos))
    }

    /// Whether the row of a read above stands for this one too.
    fn is_behind_head(&self, pos: Pos) -> bool {
        let joins = |pos| self.pages.get(pos).is_some_and(Block::joins_group);
        self.groups() && joins(pos) && self.beside(pos, false).is_some_and(joins)
    }

    fn groups(&self) -> bool {
        self.detail != Detail::Full && !self.unfolded
    }

    /// The block on the same page above or below that is shown apart from groups.
    pub(super) fn beside(&self, pos: Pos, below: bool) -> Option<Pos> {
        let mut at = pos.head();
        loop {
            at.block = if below { at.block + 1 } else { at.block.checked_sub(1)? };
            if self.pages.get(at)?.shown(self.detail) {
                return Some(at);
            }
        }
    }

    /// The block whose row stands for this one.
    pub(super) fn head_of_group(&self, pos: Pos) -> Pos {
        let mut head = pos;
        while self.is_behind_head(head) {
            let Some(above) = self.beside(head, false) else { break };
            head = above;
        }
        head
    }

    /// The reads for which the row of this block stands; none if it stands for itself alone.
    fn members(&self, head: Pos) -> Vec<(Pos, &Tool)> {
        let read = |pos: Pos| Some((pos, self.pages.get(pos)?.read_call()?));
        let mut members: Vec<_> = read(head).into_iter().collect();
        let mut at = head;
        while let Some(next) = self.beside(at, true).filter(|next| self.is_behind_head(*next)) {
            members.extend(read(next));
            at = next;
        }
        if members.len() > 1 { members } else { Vec::new() }
    }

    /// The row of a group: how many files, and how many lines of them; while one is read, for how long.
    pub(super) fn group_row(&self, head: Pos) -> Option<(Row, Piece)> {
        let members = self.members(head);
        let (_, last) = members.last()?;
        let files: HashSet<&str> = members.iter().map(|(_, tool)| tool.path()).collect();
        let about = match files.len() {
            1 => last.path().to_owned(),
            many => format!("{many} files"),
        };
        let going_on = members.iter().rev().find(|(_, tool)| tool.outcome.is_none());
        let (role, words) = match going_on {
            Some((_, tool)) => tool.status(self.now),
            None => {
                let outcomes = members.iter().filter_map(|(_, tool)| tool.outcome.as_deref());
                let lines: u64 = outcomes.filter_map(lines_read).sum();
                (Role::Dim, counted(lines, "line", "lines"))
            }
        };
        Some((named("Read", &about, Role::Text), Piece::new(words, role)))
    }

    /// The files that a group has read, a line for each call.
    pub(super) fn group_files(&self, head: Pos) -> Option<String> {
        let members = self.members(head);
        let files: Vec<&str> = members.iter().map(|(_, tool)| tool.brief.as_str()).collect();
        (!files.is_empty()).then(|| files.join("\n"))
    }

    /// When the row of a block, or of its group, changes without an event.
    pub(super) fn row_changes_at(&self, head: Pos, now: u64) -> Option<u64> {
        let members = self.members(head);
        let all = members.into_iter().map(|(pos, _)| pos).chain([head]);
        all.filter_map(|pos| self.pages.get(pos)?.changes_at(now)).min()
    }

    /// Gives each read of a group a row of its own; `false` if the block stands for itself alone.
    pub(super) fn open_group(&mut self, pos: Pos) -> bool {
        let members: Vec<Pos> =
            self.members(self.head_of_group(pos)).into_iter().map(|(pos, _)| pos).collect();
        members.iter().for_each(|pos| self.keep_fold(*pos, Fold::Apart));
        !members.is_empty()
    }

    /// Makes one row of the reads around a block that have rows of their own; `false` if it has none.
    pub(super) fn close_group(&mut self, pos: Pos) -> bool {
        let is_apart = |pos: Pos| self.pages.get(pos).is_some_and(Block::is_read_apart);
        if !is_apart(pos) {
            return false;
        }
        let mut head = pos;
        while let Some(above) = self.beside(head, false).filter(|pos| is_apart(*pos)) {
            head = above;
        }
        let mut members = vec![head];
        let mut at = head;
        while let Some(below) = self.beside(at, true).filter(|pos| is_apart(*pos)) {
            members.push(below);
            at = below;
        }
        members.into_iter().for_each(|pos| self.keep_fold(pos, Fold::Auto));
        self.cursor = Some(head);
        let third = usize::from(self.size.1) / 3;
        let position = self.up(RowPosition { pos: head, row: 0, of: 0 }, third);
        self.anchor_at(position);
        self.find_visible_rows();
        true
    }
}
