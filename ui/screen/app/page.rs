//! The page in the place of the transcript: what it shows now, what opens and closes it, and its keys.

use crate::rows::{width, wrap_text};
use crate::screen::app::inbox::NO_CARD;
use crate::screen::app::{App, Areas, Asked, Effect, Focus, RequestToken, panes};
use crate::screen::keys::{Action, Context};
use crate::screen::notice::Kind;
use crate::screen::pane::glyph::Glyphs;
use crate::screen::pane::inbox::Title;
use crate::screen::pane::page::{
    PageRow, Place, blank, columns, piece, rows_of_lines, rows_of_report,
};
use crate::screen::pane::transcript::Scroll;
use crate::theme::Role;
use crate::verb::Way;
use crate::wording::age;
use crate::wording::lines::{Line, Target};
use crate::wording::since::{self, Absence, Report, Since, Span};
use yoi::client::family::inbox::Item;
use yoi::protocol::{Event, Method, PodInfo};

/// The page of F1.
mod help;

/// What a page is about. Its rows are made anew for each frame.
#[derive(Debug)]
pub enum Page {
    Since(Since),
    /// What the keys do.
    Keys(KeysOf),
    /// Lines to read.
    Text {
        title: String,
        lines: Vec<Line>,
    },
    /// The past notices.
    Notices,
    /// All that waits for the person.
    Inbox,
}

/// The place whose keys a page of keys lists first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysOf {
    Place(Context),
    /// The sheet that asks for a confirmation.
    Confirm,
    /// The line in which a key of a provider is typed.
    Key,
}

/// The page that is open.
#[derive(Debug)]
pub struct OpenPage {
    pub page: Page,
    place: Place,
    /// The pane that has the keys once the page is closed.
    back: Focus,
    /// The page that a page of keys covers.
    below: Option<Box<OpenPage>>,
}

impl App {
    /// Opens a page in place of the one before, and gives it the keys.
    pub(super) fn open_page(&mut self, page: Page) -> Vec<Effect> {
        let back = self.focus;
        self.show_page(page);
        self.give_keys_to_page(back);
        Vec::new()
    }

    /// Gives the keys to the page until it is closed; then `back` gets them.
    fn give_keys_to_page(&mut self, back: Focus) {
        self.forget_requests();
        if let Some(open) = &mut self.page
            && (back != Focus::Page || open.below.is_some())
        {
            open.back = back;
        }
        self.focus = Focus::Page;
    }

    /// Opens a page and leaves the keys where they are.
    fn show_page(&mut self, page: Page) {
        let former = self.page.take();
        let back = former.as_ref().map(|open| open.back).unwrap_or_default();
        let below = match (&page, former) {
            (Page::Keys(_), Some(OpenPage { page: Page::Keys(_), below, .. })) => below,
            (Page::Keys(_), former) => former.map(Box::new),
            _ => {
                self.return_page = None;
                None
            }
        };
        self.page = Some(OpenPage { page, place: Place::default(), back, below });
    }

    /// Opens a page for a reply, with the keys if the person still waits for it; else the notice `late` names the verb that
    /// opens it.
    pub(super) fn open_page_for_reply(
        &mut self,
        token: &RequestToken,
        page: Page,
        late: String,
    ) -> Vec<Effect> {
        if self.still_waits(token) {
            return self.open_page(page);
        }
        self.say(Kind::Info, late)
    }

    /// Closes the page. The page below a page of keys is shown again; else the line gets the keys, or the pane that had
    /// them before.
    pub(super) fn close_page(&mut self) {
        let Some(open) = self.page.take() else { return };
        self.page = open.below.map(|below| *below);
        if self.focus == Focus::Page {
            self.focus = open.back;
            // A key that was meant for the page decides nothing.
            self.inbox.changed();
        }
    }

    /// Closes the page and the one that it covers.
    pub(super) fn close_pages(&mut self) {
        while self.page.is_some() {
            self.close_page();
        }
    }

    /// The title of the page, with what stands at the right of it, the most important first.
    pub fn page_title(&self) -> Option<(String, Vec<String>)> {
        let OpenPage { page, .. } = self.page.as_ref()?;
        Some(match page {
            Page::Since(since) => {
                let Report { title, figures, .. } = self.report(since);
                (title, figures)
            }
            Page::Keys(of) => (self.title_of_keys(*of), vec![self.all_keys()]),
            Page::Text { title, .. } => (title.clone(), Vec::new()),
            Page::Notices => ("Notices".into(), Vec::new()),
            Page::Inbox => ("Inbox".into(), Vec::new()),
        })
    }

    /// The rows of the page in a pane of this width.
    pub fn page_rows(&self, width: u16) -> Vec<PageRow> {
        let Some(OpenPage { page, .. }) = &self.page else { return Vec::new() };
        match page {
            Page::Since(since) => {
                rows_of_report(&self.report(since), columns(width), self.setup.glyphs)
            }
            Page::Keys(of) => self.rows_of_help(*of, columns(width)),
            Page::Text { lines, .. } => rows_of_lines(lines, columns(width)),
            Page::Notices => self.rows_of_notices(columns(width)),
            Page::Inbox => self.rows_of_inbox(),
        }
    }

    /// How far the page is scrolled, and its cursor.
    pub fn page_place(&self) -> Option<&Place> {
        self.page.as_ref().map(|open| &open.place)
    }

    /// Opens the past notices.
    pub(super) fn open_notices(&mut self) -> Vec<Effect> {
        if self.notices.past().next().is_none() {
            return self.say(Kind::Info, "no notices yet");
        }
        self.open_page(Page::Notices)
    }

    /// Opens the list of all that waits for the person.
    pub(super) fn open_inbox(&mut self) -> Vec<Effect> {
        if self.items().is_empty() {
            return self.say(Kind::Info, NO_CARD);
        }
        self.open_page(Page::Inbox)
    }

    fn rows_of_inbox(&self) -> Vec<PageRow> {
        let card = panes::card(self);
        let row = |item: &Item<'_>| {
            let Title { shape, role, asker, why, age, .. } = card.title(item);
            let text = vec![
                blank(2),
                piece(format!("{shape} {asker}"), role),
                piece(format!("  {why}"), role),
                piece(format!("  {}", card.about(item)), Role::Dim),
            ];
            let target = Some(Target::Item(item.id()));
            PageRow { text, aside: age, target }
        };
        card.items.iter().map(row).collect()
    }

    fn rows_of_notices(&self, columns: usize) -> Vec<PageRow> {
        let ascii = self.setup.glyphs == Glyphs::Ascii;
        let times = self.notices.past().map(|notice| age::clock(notice.at, self.now, self.zone()));
        let indent = times.map(|time| width(&time)).max().unwrap_or(0) + 4;
        let room = columns.saturating_sub(indent).max(1);
        let rows = self.notices.past().flat_map(|notice| {
            let role = match notice.kind {
                Kind::Done | Kind::Info => Role::Text,
                Kind::Warned => Role::Warn,
                Kind::Refused => Role::Error,
            };
            let time = age::clock(notice.at, self.now, self.zone());
            let lines = wrap_text(&self.setup.glyphs.plain(&notice.text), room);
            lines.into_iter().enumerate().map(move |(at, line)| {
                let (time, mark) =
                    if at == 0 { (time.as_str(), notice.kind.mark(ascii)) } else { ("", "") };
                let before = piece(format!("{time:<0$}", indent - 4), Role::Dim);
                let mark = piece(format!(" {mark:<1} "), role);
                PageRow::new(vec![blank(1), before, mark, piece(line, role)])
            })
        });
        rows.collect()
    }

    /// Whether rows of the page are below the view.
    pub fn page_goes_on(&self) -> bool {
        let (Some(area), Some(place)) = (Areas::of(self).page, self.page_place()) else {
            return false;
        };
        let rows = self.page_rows(area.width);
        place.top(&rows, area.height.into()) + usize::from(area.height) < rows.len()
    }

    pub(super) fn report(&self, since: &Since) -> Report {
        let is_here =
            |info: &PodInfo| self.family.belongs(info, &self.setup.workspace, self.pod_read());
        since.report(&self.family, is_here, self.now)
    }

    /// Moves in the page.
    fn in_page(&mut self, change: impl Fn(&mut Place, &[PageRow], usize)) {
        let Some(area) = Areas::of(self).page else { return };
        let rows = self.page_rows(area.width);
        if let Some(open) = &mut self.page {
            change(&mut open.place, &rows, area.height.into());
        }
    }

    /// Scrolls the page.
    pub(super) fn scroll_page(&mut self, by: Scroll) {
        self.in_page(|place, rows, height| {
            let page = isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(isize::MAX);
            match by {
                Scroll::Lines(n) => place.scroll(rows, n as isize, height),
                Scroll::Page(n) => place.scroll(rows, page.saturating_mul(n as isize), height),
                Scroll::HalfPage(n) => {
                    place.scroll(rows, (page / 2).saturating_mul(n as isize), height);
                }
                Scroll::Top => place.first(rows),
                Scroll::Tail => place.last(rows, height),
                Scroll::Turn(n) => place.step(rows, n as isize, height),
            }
        });
    }

    /// A click puts the cursor on the row.
    pub(super) fn click_page(&mut self, line: u16) {
        self.in_page(|place, rows, height| place.click(rows, line.into(), height));
    }

    /// Does what a key of the page is for.
    pub(super) fn page_action(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Up => self.in_page(|place, rows, height| place.step(rows, -1, height)),
            Action::Down => self.in_page(|place, rows, height| place.step(rows, 1, height)),
            Action::First => self.in_page(|place, rows, _| place.first(rows)),
            Action::Last => self.in_page(|place, rows, height| place.last(rows, height)),
            Action::Choose => return self.choose_in_page(),
            Action::Seen => return self.see_in_page(),
            Action::Copy => return self.copy_page(),
            other => return self.everywhere(other),
        }
        Vec::new()
    }

    /// The row under the cursor.
    fn page_row(&self) -> Option<PageRow> {
        let area = Areas::of(self).page?;
        let rows = self.page_rows(area.width);
        rows.get(self.page_place()?.cursor(&rows)?).cloned()
    }

    /// Whether rows of the page have a target.
    pub(super) fn leads_somewhere(&self) -> bool {
        self.page_row().is_some()
    }

    /// Goes back to the page from an entry that one of its rows opened; `false` where no row did.
    pub(super) fn back_to_page(&mut self) -> bool {
        let reads = matches!(self.focus, Focus::Composer | Focus::Transcript | Focus::Beside);
        let Some(open) = self.return_page.take().filter(|_| reads) else { return false };
        (self.page, self.focus) = (Some(open), Focus::Page);
        true
    }

    fn choose_in_page(&mut self) -> Vec<Effect> {
        match self.page_row().and_then(|row| row.target) {
            Some(Target::NeedsYou) => self.next_needs_you(),
            Some(Target::Item(id)) => self.wake_card_of(&id),
            Some(Target::Entry(pod, entry)) => {
                let open = self.page.take();
                let effects = self.make_current(&pod);
                match self.current.as_ref() == Some(&pod) {
                    true => self.return_page = open,
                    false => self.page = open,
                }
                self.transcript_of(&pod).go_to_entry(entry);
                effects
            }
            None => Vec::new(),
        }
    }

    /// Marks the result of the row as seen.
    fn see_in_page(&mut self) -> Vec<Effect> {
        match self.page_row().and_then(|row| row.target) {
            Some(Target::Entry(pod, _)) => self.look_at(&pod),
            Some(Target::NeedsYou | Target::Item(_)) | None => Vec::new(),
        }
    }

    /// Copies the row under the cursor, or all of a page that is only read.
    fn copy_page(&mut self) -> Vec<Effect> {
        let text = match self.page_row() {
            Some(row) => row.plain(),
            None => {
                let rows = self.page_rows(u16::MAX);
                rows.iter().map(PageRow::plain).collect::<Vec<_>>().join("\n")
            }
        };
        self.copy(text)
    }

    /// The key of *Since you left*: gives the keys to the page, or opens it first.
    pub(super) fn since_key(&mut self) -> Vec<Effect> {
        match &self.page {
            Some(OpenPage { page: Page::Since(_), .. }) => self.focus(Focus::Page),
            Some(_) | None => self.carry_out("since", Way::Key),
        }
    }

    /// A screen was opened: requests what the Pods did since the one before, if that is worth a page. While the person types
    /// a notice says it.
    pub(super) fn look_back(&mut self, typed: bool) -> Option<Effect> {
        self.back = self.now;
        let left = self.left?;
        let place = (self.setup.workspace.as_path(), self.current.as_ref());
        let sentence = since::returned(&self.family, place, left, self.now)?;
        if typed {
            self.say(Kind::Info, sentence);
            return None;
        }
        let asked = Asked::Since(left, self.request_token());
        Some(Effect::Call { pod: None, method: Method::Since { at: left }, asked })
    }

    /// When the person left the screen before this one, and came back.
    pub(super) fn absence(&self) -> Option<Absence> {
        self.left.map(|left| Absence { left, back: self.back })
    }

    /// The reply to that: the page, without the keys, or a notice if the person has begun with something else.
    pub(super) fn looked_back(&mut self, left: u64, token: &RequestToken, event: Option<Event>) {
        let waits = self.still_waits(token) && self.focus == Focus::Composer;
        let page = match event {
            Some(Event::Since { pods }) if waits && self.layers.is_empty() => {
                Some(Since { span: Span::Left(Absence { left, back: self.back }), pods })
            }
            Some(_) | None => None,
        };
        if let Some(since) = page {
            return self.show_page(Page::Since(since));
        }
        let place = (self.setup.workspace.as_path(), self.current.as_ref());
        let returned = since::returned(&self.family, place, left, self.now);
        if let Some(sentence) = returned {
            self.say(Kind::Info, sentence);
        }
    }

    /// The Pods that the person gives work cannot be read behind a page: it closes.
    pub(super) fn page_follows(&mut self, effects: &[Effect]) {
        if effects.iter().any(Effect::gives_work) {
            self.return_page = None;
            self.close_pages();
        }
    }
}
