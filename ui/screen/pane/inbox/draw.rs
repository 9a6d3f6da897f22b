//! The card of one item: a head that says whose it is and why, and below it what a person needs to decide.

use crate::rows::{cut, cut_middle, pad, width, wrap_text};
use crate::screen::keys::{Action, Context, Keymap};
use crate::screen::pane::glyph::Glyphs;
use crate::screen::pane::inbox::Inbox;
use crate::theme::{Role, Theme};
use crate::wording::duration::elapsed;
use crate::wording::matter::{about, why};
use crate::wording::now::{in_circles, needs, wants};
use crate::wording::plain::plain;
use crate::wording::rule::{limit, once_only, only_for_pods, pattern};
use crate::wording::{counted, question, scope, state};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use std::path::Path;
use yoi::client::family::inbox::Item;
use yoi::client::family::{Family, Matter};
use yoi::protocol::{ApprovalRequest, PodInfo, PodName, START_SERVER, State};
use yoi::scope::Rule;
use yoi::text::SafeText;

/// From this many rows on, the last one says how many more there are.
const NOTED: usize = 3;
/// The columns of the names of facts.
const NAMES: usize = 11;
/// The most columns of what an action belongs to and stands behind.
const BESIDE: usize = 9;
/// The most characters of what an item is about in one line.
const ABOUT: usize = 200;
/// The columns before each row below the head.
const INDENT: usize = 2;
/// The fewest columns in which the head says what its time is.
const ROOMY: usize = 60;
/// The fewest columns in which the beginning of a long reason says more than its short form.
const REASON: usize = 17;
/// The fewest columns in which a request can be read.
const NARROWEST: u16 = 12;

/// The rows of a card below its head; those of what is decided come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// The index of the first row in view, and the number of rows in view.
    pub first: usize,
    pub shown: usize,
    pub all: usize,
    /// How many rows, from the first on, say what a decision allows and for whom; all of them have to be seen.
    pub decided: usize,
}

/// Whose item it is and why it is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Title {
    pub shape: &'static str,
    pub role: Role,
    /// The Pod or the client, below the Pods above it.
    pub asker: String,
    pub why: String,
    /// The same in a word or two.
    pub short: String,
    /// How long it has waited.
    pub age: String,
}

/// The card of the chosen item as a widget.
pub struct View<'a> {
    pub inbox: &'a Inbox,
    /// The items that the card is one of.
    pub items: Vec<Item<'a>>,
    pub family: &'a Family,
    /// The workspace of the screen and its current Pod: a Pod of another workspace is named with it.
    pub workspace: &'a Path,
    pub current: Option<&'a PodName>,
    pub theme: &'a Theme,
    pub glyphs: Glyphs,
    pub keymap: &'a Keymap,
    pub now: u64,
    /// Whether the card has the keys: only then it names them.
    pub has_keys: bool,
}

impl View<'_> {
    /// The item of the card, also one that has ended.
    fn item(&self) -> Option<Item<'_>> {
        self.inbox.ended_item().or_else(|| self.inbox.chosen(&self.items).cloned())
    }

    /// How many rows it needs at this width, its head included.
    pub fn height(&self, columns: u16) -> usize {
        self.item().map_or(0, |item| 1 + self.details(&item, columns.into()).len())
    }

    /// Which rows of the card are in view.
    pub fn sight(&self, area: Rect) -> Sight {
        let columns = usize::from(area.width);
        let Some(item) = self.item() else { return Sight::default() };
        let all = self.details(&item, columns).len();
        let decided = self.decided(&item, columns).len();
        // Below this width no word of the action has room.
        let height = if area.width < NARROWEST { 0 } else { area.height.into() };
        let first = self.first(all, height);
        let shown = in_view(all - first, height);
        Sight { first, shown, all, decided }
    }

    /// The first row in view. The card does not scroll past its last row.
    fn first(&self, rows: usize, height: usize) -> usize {
        self.inbox.scrolled.min(rows.saturating_sub(height.saturating_sub(1)))
    }

    /// The rows of the details that there is room for below the head, the last of which says how many
    /// more there are.
    fn in_view(&self, details: Vec<Line<'static>>, height: usize) -> Vec<Line<'static>> {
        let first = self.first(details.len(), height);
        let left = details.len() - first;
        let shown = in_view(left, height);
        let mut rows: Vec<_> = details.into_iter().skip(first).take(shown).collect();
        if shown < left && shown + 1 < height {
            rows.push(self.fact("", &more_below(left - shown, self.keymap), usize::MAX));
        }
        rows
    }

    /// Whose item it is and why it is one.
    pub fn title(&self, item: &Item<'_>) -> Title {
        let blocked = self.glyphs.sign_of(State::NeedsYou, false).0;
        let (shape, role, asker, why, short) = match item {
            Item::Approval(approvals) => {
                let (why, short) = approvals.first().map(|one| wants(one)).unwrap_or_default();
                let asker = approvals.first().map(lineage).unwrap_or_default();
                (blocked, Role::Needs, asker, why.into_owned(), short.into_owned())
            }
            Item::Pod(info, matter) => {
                let sign = self.glyphs.state_sign(info);
                let (shape, role) = match matter {
                    Matter::Needs => (blocked, Role::Needs),
                    Matter::Failed => (sign.shape, Role::Error),
                    Matter::InCircles => (sign.shape, Role::Warn),
                    Matter::Finished => (sign.shape, Role::Text),
                };
                let short = self.short(info, *matter);
                (shape, role, self.family.path(info), why(info, *matter, self.family), short)
            }
        };
        let age = elapsed(self.now.saturating_sub(item.since()));
        let elsewhere = item.pod().and_then(|pod| self.family.get(pod));
        let elsewhere =
            elsewhere.and_then(|info| self.family.place(info, self.workspace, self.current));
        let asker = elsewhere.map_or(asker.clone(), |place| format!("{asker} (in {place})"));
        Title { shape, role, asker, why: spelled(&why), short, age }
    }

    /// What an item is about in one line: the action, the error, the call, or the result.
    pub fn about(&self, item: &Item<'_>) -> String {
        let text = match item {
            Item::Approval(approvals) => approvals.first().map(|first| first.action.clone()),
            Item::Pod(info, matter) => about(info, *matter),
        };
        SafeText::brief(text.unwrap_or_default(), ABOUT).into_string()
    }

    /// The title, and on the right its place among the items and how long it has waited.
    fn head(&self, item: &Item<'_>, columns: usize) -> Line<'static> {
        let title = self.title(item);
        let (shape, style) = (format!("{} ", title.shape), self.theme.style(title.role));
        let age = title.age.clone();
        let (at, all) = self.inbox.place(&self.items);
        let place = format!("{at} of {all}");
        let alike = item.approvals().len();
        let is_narrow = columns < ROOMY;
        let is_over = self.inbox.ended().is_some();
        let place = (!is_over && (!is_narrow || all > alike.max(1))).then_some(place);
        let alike = (alike > 1).then(|| format!("{alike} alike"));
        let age = match item {
            _ if is_over => None,
            _ if is_narrow => alike.is_none().then_some(age),
            Item::Approval(_) | Item::Pod(_, Matter::Needs) => Some(format!("waits {age}")),
            Item::Pod(_, Matter::InCircles) => Some(format!("for {age}")),
            Item::Pod(_, Matter::Failed | Matter::Finished) => Some(format!("{age} ago")),
        };
        let right: Vec<String> = [alike, place, age].into_iter().flatten().collect();
        let right = self.glyphs.plain(&right.join(" · "));
        let room = columns.saturating_sub(width(&shape) + width(&right) + 2);
        let (asker, why) = self.asker_and_why(&title, room);
        let rest = room.saturating_sub(width(&asker) + 2);
        let why = pad(&cut(&why, rest), rest);
        Line::from(vec![
            Span::styled(shape, style),
            Span::styled(asker, style.add_modifier(Modifier::BOLD)),
            Span::styled(format!("  {why}"), style),
            Span::styled(format!("  {right}"), self.theme.dim),
        ])
    }

    /// Whose item it is and why, as far as there is room: the Pods above it go first, then all but a word of the reason.
    fn asker_and_why(&self, title: &Title, room: usize) -> (String, String) {
        let [asker, why, short] =
            [&title.asker, &title.why, &title.short].map(|text| self.glyphs.plain(text));
        let is_enough = |asker: &str| room >= width(asker) + 2 + width(&why).min(REASON);
        if is_enough(&asker) {
            return (asker, why);
        }
        let own = title.asker.rsplit(" › ").next().unwrap_or_default();
        let below =
            if own == title.asker { asker } else { self.glyphs.plain(&format!("… › {own}")) };
        if is_enough(&below) {
            return (below, why);
        }
        let rest = room.saturating_sub(width(&short) + 2);
        let own = if width(&below) <= rest { below } else { self.glyphs.plain(own) };
        (cut_middle(&own, rest), short)
    }

    /// The details that a person needs to decide.
    fn details(&self, item: &Item<'_>, columns: usize) -> Vec<Line<'static>> {
        let room = columns.saturating_sub(INDENT).max(1);
        if let Some(why) = self.inbox.ended() {
            return self.prose(why, room);
        }
        let approval = match item {
            Item::Approval(approvals) => approvals.first(),
            Item::Pod(info, matter) => return self.details_of_pod(info, *matter, room),
        };
        let Some(approval) = approval else { return Vec::new() };
        let mut lines = self.decided(item, columns);
        let explained = explained(approval).map(|what| ("wants", what));
        let stated = explained.into_iter().chain(stated_by_all(item.approvals()));
        let stated = stated.flat_map(|(name, value)| self.fact_rows(name, &value, room));
        let rule = self.rule(item).into_iter().chain(for_every_pod(approval));
        let rule = rule.flat_map(|rule| self.prose(&rule, room));
        // Where the last rows may be out of view, what a key would allow comes before what the Pod says.
        match columns < ROOMY {
            true => lines.extend(rule.chain(stated)),
            false => lines.extend(stated.chain(rule)),
        }
        lines
    }

    /// What a decision allows, whole, and for whom: no row of it may be out of view when a person allows it.
    fn decided(&self, item: &Item<'_>, columns: usize) -> Vec<Line<'static>> {
        let room = columns.saturating_sub(INDENT).max(1);
        let Some(approval) = item.approvals().first() else { return Vec::new() };
        let mut lines = Vec::new();
        let exact = self.theme.code.add_modifier(Modifier::BOLD);
        let rows = action(approval, columns, self.glyphs).into_iter();
        lines.extend(rows.map(|(call, row)| {
            let call = Span::styled(format!("  {call}"), self.theme.dim);
            Line::from(vec![call, Span::styled(row, exact)])
        }));
        let equal = self.equal_requests(item.approvals().len(), approval.question.is_some());
        lines.extend(equal.into_iter().flat_map(|text| self.prose(&text, room)));
        for (name, value) in self.granted(item, approval) {
            lines.extend(self.fact_rows(name, &value, room));
        }
        lines
    }

    /// A text in rows below the head.
    fn prose(&self, text: &str, room: usize) -> Vec<Line<'static>> {
        let rows = wrap_text(&self.glyphs.plain(text), room).into_iter();
        rows.map(|row| Line::raw(format!("  {row}"))).collect()
    }

    /// A fact in rows behind its name.
    fn fact_rows(&self, name: &str, value: &str, room: usize) -> Vec<Line<'static>> {
        let rows = wrap_text(value, room.saturating_sub(NAMES)).into_iter().enumerate();
        rows.map(|(at, row)| self.fact(if at == 0 { name } else { "" }, &row, room)).collect()
    }

    /// What is known of the matter of a Pod without a request.
    fn details_of_pod(&self, info: &PodInfo, matter: Matter, room: usize) -> Vec<Line<'static>> {
        let text = about(info, matter).unwrap_or_else(|| {
            let open = self.keymap.name(Context::Inbox, Action::LookInside);
            format!("nothing to allow here: {open} looks inside")
        });
        let mut lines = self.prose(&SafeText::spelled(text.as_str()), room);
        // A Pod that finished says its result above, and one in circles its call.
        let last = info.activity.as_deref().map(plain);
        let last = last.filter(|last| matter == Matter::Failed && *last != text);
        lines.extend(last.iter().flat_map(|last| self.fact_rows("last", &spelled(last), room)));
        lines
    }

    /// The same in a word or two.
    fn short(&self, info: &PodInfo, matter: Matter) -> String {
        match matter {
            Matter::Needs => needs(info, self.family).short,
            Matter::InCircles => {
                info.circling.as_ref().map(|it| in_circles(it).short).unwrap_or_default()
            }
            Matter::Failed => state::of_pod(info).to_owned(),
            Matter::Finished => "done".into(),
        }
    }

    /// How many equal requests the row stands for, and the keys that allow one or all of them.
    fn equal_requests(&self, count: usize, is_question: bool) -> Option<String> {
        let key = |action| self.keymap.name(Context::Inbox, action);
        let (one, each) = (key(Action::AllowOnce), key(Action::AllowEach));
        let text = match is_question {
            true => {
                format!("{count} equal questions: {one} answers the oldest, {each} each of them")
            }
            false => {
                format!("{count} equal requests: {one} allows the oldest, {each} each of them")
            }
        };
        (count > 1 && self.has_keys).then_some(text)
    }

    /// The rule that allowing always would write, with the keys that do so.
    fn rule(&self, item: &Item<'_>) -> Option<String> {
        if !self.has_keys || item.approvals().iter().any(|approval| approval.question.is_some()) {
            return None;
        }
        let first = item.approvals().first()?;
        if let Some(why) = once_only(first) {
            return Some(why.into());
        }
        let rule = &first.rule;
        let key = |action| self.keymap.name(Context::Inbox, action);
        let (pod, tree) = (key(Action::AllowPod), key(Action::AllowTree));
        if item.approvals().iter().any(|approval| approval.client.is_some()) {
            return Some(format!("{pod} would allow this client {}", pattern(rule)));
        }
        let limit = limit(rule).map(|limit| format!(" ({limit})")).unwrap_or_default();
        let keys = match only_for_pods(rule) {
            Some(_) => pod,
            None => format!("{pod} and {tree}"),
        };
        Some(format!("{keys} would allow {}{limit}", pattern(rule)))
    }

    /// What is granted beside the action, and to whom.
    fn granted(&self, item: &Item<'_>, approval: &ApprovalRequest) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        if approval.question.is_none() {
            facts.push(("needs", spelled(&approval.because)));
        }
        facts.extend(approval.lease.iter().map(|lease| ("opens", self.opens(lease, approval))));
        let command = |path| format!("{}, for this command only", scope::outside(path));
        facts.extend(approval.outside.iter().map(|path| ("opens", command(path))));
        facts.extend(approval.credentials.iter().map(|credential| {
            (
                "gives",
                format!(
                    "the credential {}, to this command only",
                    spelled(&credential.to_string())
                ),
            )
        }));
        facts.extend(approval.scripts.iter().map(|script| scope::hashed(approval, script)));
        if item.approvals().len() > 1 {
            facts.push(("asked by", lineages(item.approvals())));
        }
        facts
    }

    /// The access outside the scope that an approval grants, and how long with each key.
    fn opens(&self, lease: &Rule, approval: &ApprovalRequest) -> String {
        let key = |action| self.keymap.name(Context::Inbox, action);
        let (once, pod, tree) =
            (key(Action::AllowOnce), key(Action::AllowPod), key(Action::AllowTree));
        let rule = scope::rule(lease);
        if approval.is_once_only() {
            return format!("{rule}, for this call only");
        }
        format!(
            "{rule}, with {once} for this call only, with {pod} or {tree} until it is revoked or the pod stops"
        )
    }

    fn fact(&self, name: &str, value: &str, room: usize) -> Line<'static> {
        let value = cut(&self.glyphs.plain(value), room.saturating_sub(NAMES));
        Line::from(vec![
            Span::styled(format!("  {name:<NAMES$}"), self.theme.dim),
            Span::raw(value),
        ])
    }

    pub fn render(&self, area: Rect, buf: &mut Buffer) {
        let Some(item) = self.item() else { return };
        let (columns, height) = (usize::from(area.width), usize::from(area.height));
        let details = self.in_view(self.details(&item, columns), height);
        let rows = [self.head(&item, columns)].into_iter().chain(details);
        for (line, y) in rows.zip(area.y..area.bottom()) {
            buf.set_line(area.x, y, &line, area.width);
        }
    }
}

/// How many of `rows` are in view below a head. If some are left out and there is room, one row is kept
/// for the number of the others.
pub fn in_view(rows: usize, height: usize) -> usize {
    let room = height.saturating_sub(1);
    if rows <= room {
        return rows;
    }
    if room >= NOTED { room - 1 } else { room }
}

/// How many rows are below those in view, and the key that shows them.
pub fn more_below(rows: usize, keymap: &Keymap) -> String {
    let down = keymap.name(Context::Everywhere, Action::PageDown);
    format!("… {}: {down}", counted(rows, "more line", "more lines"))
}

/// How a person allows the start of a server once for all Pods, which a decision does not.
fn for_every_pod(approval: &ApprovalRequest) -> Option<String> {
    let (tool, server) = (&approval.rule.tool, &approval.rule.pattern);
    let rule = format!(
        "for every Pod: [[permissions.rule]] in config.toml with tool = {tool:?}, pattern = {server:?}, \
         action = \"allow\""
    );
    (approval.tool == START_SERVER).then(|| spelled(&rule))
}

/// What a question takes as its answer. It decides nothing.
fn explained(approval: &ApprovalRequest) -> Option<String> {
    approval.question.as_ref().map(question::wants)
}

/// What those who made equal requests say: once where all say the same, else each with its asker.
fn stated_by_all(approvals: &[&ApprovalRequest]) -> Vec<(&'static str, String)> {
    let stated = approvals
        .iter()
        .flat_map(|one| stated(one).into_iter().map(|(name, value)| (name, one.asker(), value)));
    let stated: Vec<_> = stated.collect();
    let mut facts: Vec<(&'static str, String)> = Vec::new();
    for (name, _, value) in &stated {
        if facts.iter().any(|(known, _)| known == name) {
            continue;
        }
        let of_all: Vec<_> = stated.iter().filter(|(other, ..)| other == name).collect();
        let is_same = of_all.iter().all(|(.., other)| other == value);
        let each = of_all.iter().map(|(_, asker, value)| format!("{asker}: {value}"));
        let said = match is_same && of_all.len() == approvals.len() {
            true => value.clone(),
            false => each.collect::<Vec<_>>().join(" · "),
        };
        facts.push((*name, said));
    }
    facts
}

/// What the Pod says, and what it may do without a decision.
fn stated(approval: &ApprovalRequest) -> Vec<(&'static str, String)> {
    let said = |name, text: &Option<String>| text.as_ref().map(|text| (name, spelled(text)));
    let scope = approval.question.is_none().then(|| ("scope", scope::rules(&approval.scope)));
    let said = [
        said("model says", &approval.reason),
        said("task", &approval.task),
        said("last", &approval.said.as_deref().map(plain)),
    ];
    said.into_iter().chain([scope]).flatten().collect()
}

/// The exact action and its details, wrapped, below or behind what they belong to: every character that would be hidden is
/// spelled, and a row that a line break of the action follows ends in a sign for it.
fn action(approval: &ApprovalRequest, columns: usize, glyphs: Glyphs) -> Vec<(String, String)> {
    let mut rows = SafeText::spelled_rows(&approval.action);
    rows.extend(details(approval));
    let fields = approval.question.iter().flat_map(question::rows);
    rows.extend(fields.map(SafeText::spelled_row));
    // The head says that a model asks.
    let of_model = approval.question.as_ref().is_some_and(|question| question.server.is_none());
    let call = if of_model { String::new() } else { spelled(&approval.call()) };
    let beside =
        if (1..=BESIDE).contains(&width(&call)) { format!("{call}  ") } else { String::new() };
    let room = columns.saturating_sub(INDENT + width(&beside)).max(1);
    let rows = rows.iter().map(|row| glyphs.exact(row));
    let rows = rows.flat_map(|row| wrap_text(&row, room));
    let mut action: Vec<_> = rows.map(|row| (" ".repeat(width(&beside)), row)).collect();
    match action.first_mut() {
        Some((before, _)) if !beside.is_empty() => *before = beside,
        Some(_) | None => {
            let room = columns.saturating_sub(INDENT).max(1);
            let above = wrap_text(&glyphs.plain(&call), room).into_iter();
            action.splice(0..0, above.map(|row| (row, String::new())));
        }
    }
    action
}

/// The details of a request, a row for each of their lines.
fn details(approval: &ApprovalRequest) -> impl Iterator<Item = SafeText<'_>> {
    approval.details.iter().flat_map(|text| text.split('\n')).map(SafeText::spelled_row)
}

fn spelled(text: &str) -> String {
    SafeText::spelled(text).into_string()
}

/// Every asker of the requests, each below the Pods above it.
fn lineages(approvals: &[&ApprovalRequest]) -> String {
    approvals.iter().map(lineage).collect::<Vec<_>>().join(", ")
}

fn lineage(approval: &&ApprovalRequest) -> String {
    let above = approval.lineage.iter().map(ToString::to_string);
    above.chain([approval.asker()]).collect::<Vec<_>>().join(" › ")
}
