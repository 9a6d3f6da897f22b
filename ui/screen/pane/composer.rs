//! Where a person writes: one draft per Pod, history, chips for long pastes, names of files.

use crate::screen::keys::Action;
use crate::verb::words;
use ratatui::layout::Rect;
use reqwest::Url;
use std::collections::HashMap;
use tui_textarea::CursorMove;
use yoi::protocol::{PodName, Segment};

mod atoms;
mod complete;
mod draft;
mod draw;
mod history;
mod saved;

pub use complete::{Accepted, Files, Found};
pub use draft::{Draft, Message, pasted};
pub use draw::View;
pub use history::{History, Sent};
pub use saved::SavedDraft;

/// The composer: the draft for the current Pod, and those for the others.
#[derive(Default)]
pub struct Composer {
    /// The Pod that the draft is for; `None` = a Pod that is still to be created.
    at: Option<PodName>,
    draft: Draft,
    others: HashMap<Option<PodName>, Draft>,
    pub history: History,
    /// The sheet with names of files and Pods, while it is open.
    pub files: Option<Files>,
    /// What the last rewind put into the draft of its Pod.
    rewound: Option<(Option<PodName>, String)>,
    /// The number of the last paste: each gets its own, whatever its size, also over several drafts.
    last_paste: u32,
}

impl Composer {
    /// Shows the draft of another Pod; the current draft stays with its Pod.
    pub fn switch(&mut self, to: Option<&PodName>) {
        if self.at.as_ref() == to {
            return;
        }
        let draft = self.others.remove(&to.cloned()).unwrap_or_default();
        let before = std::mem::replace(&mut self.draft, draft);
        let at = std::mem::replace(&mut self.at, to.cloned());
        if !before.is_empty() {
            self.others.insert(at, before);
        }
        self.history.leave();
        self.files = None;
    }

    /// Moves the drafts for Pods that are gone to the history, but for the one that is shown.
    pub fn keep_drafts_of(&mut self, gone: impl Fn(&PodName) -> bool, now: u64) {
        let is_gone = |pod: &Option<PodName>, _: &mut Draft| pod.as_ref().is_some_and(&gone);
        for (_, draft) in self.others.extract_if(is_gone) {
            self.history.keep(&draft.message(), now);
        }
    }

    /// Moves the draft without a Pod to `pod`, below what is written there. If that draft is shown, it stays in view.
    pub fn adopt(&mut self, pod: &PodName) {
        if self.at.is_none() {
            self.at = Some(pod.clone());
            if let Some(before) = self.others.remove(&self.at) {
                let added = std::mem::replace(&mut self.draft, before);
                self.add(Some(pod), &added.message());
            }
        } else if let Some(added) = self.others.remove(&None) {
            self.add(Some(pod), &added.message());
        }
    }

    pub fn is_empty(&self) -> bool {
        self.draft.is_empty()
    }

    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Takes the draft out, to be sent.
    pub fn take(&mut self) -> Message {
        let message = self.draft.message();
        self.draft = Draft::default();
        self.history.leave();
        self.files = None;
        message
    }

    /// Puts back a message that could not be sent to `pod`. If another draft was begun meanwhile, the message
    /// is in the history from `now` on.
    pub fn give_back(&mut self, pod: Option<&PodName>, message: &Message, now: u64) {
        let draft = self.draft_of(pod);
        if draft.is_empty() {
            *draft = Draft::of(message);
        } else {
            self.history.keep(message, now);
        }
    }

    /// Adds a message that was taken out of the queue of `pod` to the draft there, below what is written.
    pub fn add(&mut self, pod: Option<&PodName>, message: &Message) {
        let draft = self.draft_of(pod);
        let mut segments = draft.message().segments;
        if !draft.is_empty() && !message.segments.is_empty() {
            segments.push(Segment::Text { content: "\n".into() });
        }
        segments.extend(message.segments.iter().cloned());
        *draft = Draft::of(&Message::of(&segments));
    }

    /// Puts the message that a rewind took back into the draft of its Pod, if nothing else is written there.
    /// What an earlier rewind put there goes, if it was not changed: an undo brings it back into the
    /// history. Its `message` is empty.
    pub fn rewound(&mut self, pod: Option<&PodName>, message: &Message) {
        let before = self.rewound.take();
        let draft = self.draft_of(pod);
        let is_as_given = |(of, text): &(Option<PodName>, String)| {
            of.as_ref() == pod && draft.message().text == *text
        };
        if before.as_ref().is_some_and(is_as_given) {
            *draft = Draft::default();
        }
        if draft.is_empty() && !message.text.is_empty() {
            *draft = Draft::of(message);
            self.rewound = Some((pod.cloned(), message.text.clone()));
        }
    }

    fn draft_of(&mut self, pod: Option<&PodName>) -> &mut Draft {
        if self.at.as_ref() == pod {
            self.history.leave();
            return &mut self.draft;
        }
        self.others.entry(pod.cloned()).or_default()
    }

    /// Replaces the draft, undoably.
    pub fn write(&mut self, message: &Message) {
        self.history.leave();
        self.draft.replace(message);
    }

    /// Replaces the draft by what the person's editor made of its whole text, undoably. A paste that is still whole is
    /// a chip again.
    pub fn edited(&mut self, text: &str) {
        let message = self.draft.folded(text);
        self.write(&message);
    }

    /// Types a character.
    pub fn insert(&mut self, c: char) {
        self.draft.text.insert_char(c);
        self.draft.touched();
        self.history.leave();
    }

    /// Inserts pasted text; a long one becomes a chip.
    pub fn paste(&mut self, text: &str) {
        if let Some(used) = self.draft.paste(text, self.last_paste + 1) {
            self.last_paste = self.last_paste.max(used);
        }
        self.history.leave();
    }

    /// Empties the draft; undo brings it back.
    pub fn clear(&mut self) {
        self.draft.text.select_all();
        self.draft.text.cut();
        self.draft.touched();
    }

    /// The selected text, if any.
    pub fn selected(&mut self) -> Option<String> {
        if !self.draft.text.is_selecting() {
            return None;
        }
        self.draft.text.copy();
        self.draft.text.cancel_selection();
        Some(self.draft.text.yank_text()).filter(|text| !text.is_empty())
    }

    /// Does an editing action; `false` when it is none.
    pub fn edit(&mut self, action: Action) -> bool {
        let done = self.draft.edit(action);
        if done {
            self.draft.touched();
        }
        done
    }

    /// `\` before the cursor and then Enter is a newline.
    pub fn newline_after_backslash(&mut self) -> bool {
        if !self.draft.before_cursor().ends_with('\\') {
            return false;
        }
        self.draft.text.delete_char();
        self.draft.text.insert_newline();
        self.draft.touched();
        true
    }

    /// Names a file in the draft.
    pub fn write_file(&mut self, path: &str) {
        if self.draft.before_cursor().ends_with(|c: char| !c.is_whitespace()) {
            self.draft.text.insert_char(' ');
        }
        self.draft.file(path);
        self.draft.text.insert_char(' ');
        self.history.leave();
    }

    /// Makes the name of a file in the draft for `pod` plain text. `false` where that draft names no such file.
    pub fn unname_file(&mut self, pod: Option<&PodName>, path: &str) -> bool {
        let draft = match self.at.as_ref() == pod {
            true => Some(&mut self.draft),
            false => self.others.get_mut(&pod.cloned()),
        };
        draft.is_some_and(|draft| draft.unname(path))
    }

    /// Puts the chosen name of the sheet into the draft. After a directory the sheet stays open.
    pub fn accept_file(&mut self) {
        let Some(files) = self.files.take() else { return };
        if files.accept(&mut self.draft) == Some(Accepted::Directory) {
            self.files = Files::at(&self.draft);
        }
    }

    /// A row of the screen up: in the draft, or from its first row to the history.
    pub fn up(&mut self) {
        if !self.draft.steps(CursorMove::Up)
            && let Some(message) = self.history.older(|| self.draft.message())
        {
            self.draft = Draft::of(&message);
        }
        self.draft.touched();
    }

    /// A row of the screen down: in the draft, or from its last row to the history.
    pub fn down(&mut self) {
        if !self.draft.steps(CursorMove::Down)
            && let Some(message) = self.history.newer()
        {
            self.draft = Draft::of(&message);
        }
        self.draft.touched();
    }

    /// Shows as much of the text as this area has room for.
    pub fn fill(&mut self, area: Rect) {
        self.draft.fill(area);
    }

    /// Puts the cursor at a cell of the text's area.
    pub fn click(&mut self, row: u16, column: u16) {
        let text = &self.draft.text;
        let (top, left) = text.scroll_offset();
        let at = text.screen_to_data(usize::from(top + row), usize::from(left + column));
        let cell = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        self.draft.go(CursorMove::Jump(cell(at.0), cell(at.1)));
    }
}

/// The paths of the images that a terminal pastes when files are dropped on it: absolute, and perhaps quoted. None where
/// the text holds anything else.
pub fn dropped_images(pasted: &str) -> Vec<String> {
    let words = words::split(pasted).unwrap_or_default();
    let paths: Option<Vec<_>> = words.into_iter().map(|word| image_path(word.text)).collect();
    match paths.filter(|paths| !paths.is_empty()) {
        Some(paths) => paths,
        // A terminal may leave the blanks of a path as they are.
        None => image_path(pasted.trim().to_owned()).into_iter().collect(),
    }
}

fn image_path(text: String) -> Option<String> {
    let path = match text.starts_with("file://") {
        true => Url::parse(&text).ok()?.to_file_path().ok()?.into_os_string().into_string().ok()?,
        false => text,
    };
    let (_, kind) = path.rsplit_once('.')?;
    let is_image =
        ["png", "jpg", "jpeg", "gif", "webp"].iter().any(|of| kind.eq_ignore_ascii_case(of));
    (is_image && path.starts_with('/') && !path.contains(['\n', '\r'])).then_some(path)
}

#[cfg(test)]
pub mod tests;
