//! Notices: short sentences on the action bar. Each is shown for a while, the worst first, and the past ones can be listed.

use std::collections::VecDeque;
use yoi::protocol::{PodName, State};
use yoi::text::SafeText;

/// How many past notices are kept.
const KEPT: usize = 200;
/// How many notices wait behind the one on screen.
const WAITING: usize = 20;
/// Milliseconds for which a notice stays; a refusal stays on until a key is pressed.
const STAYS: u64 = 5_000;
/// Milliseconds after which a warning makes room for what answers the person.
const READ: u64 = 2_000;

/// The kinds of notices, the least urgent first. Each has a shape and a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// What was asked for is done.
    Done,
    /// Something to know.
    Info,
    /// Something is not as it should be.
    Warned,
    /// What was asked for was not done.
    Refused,
}

impl Kind {
    /// Whether it answers what the person did, so that the next one takes its place.
    fn answers(self) -> bool {
        matches!(self, Self::Done | Self::Info)
    }

    /// The mark before the text.
    pub fn mark(self, ascii: bool) -> &'static str {
        match (self, ascii) {
            (Self::Done, false) => "✓",
            (Self::Done, true) => "v",
            (Self::Info, _) => "·",
            (Self::Warned, false) => "!",
            (Self::Warned, true) => "(!)",
            (Self::Refused, false) => "✕",
            (Self::Refused, true) => "x",
        }
    }
}

/// One notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub kind: Kind,
    pub text: SafeText<'static>,
    /// When it was said; milliseconds since the Unix epoch.
    pub at: u64,
    /// When it leaves the screen, if its text holds for a limited time only.
    ends: Option<u64>,
    /// It holds while this Pod is in this state, and is of use while the Pod in front stays.
    while_in: Option<(PodName, State)>,
}

impl Notice {
    /// When its time on the screen is over. A refusal leaves it with the next key after that.
    fn until(&self) -> u64 {
        self.ends.unwrap_or(self.at.saturating_add(STAYS))
    }

    fn waits_for_a_key(&self) -> bool {
        self.kind == Kind::Refused && self.ends.is_none()
    }
}

/// The safe form of a text, its lines beside each other.
fn of_one_line(text: &str) -> SafeText<'static> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    SafeText::line(lines.collect::<Vec<_>>().join(" · "))
}

/// The two kinds of keys that notices tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressed {
    /// A letter of a text.
    Letter,
    Other,
}

/// The current notices and the past ones.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    /// In the order in which they came. The worst is on screen, of several the newest.
    current: Vec<Notice>,
    past: VecDeque<Notice>,
    /// Counts the changes of what is on screen.
    version: u64,
}

impl Notices {
    /// Shows `text` from `now` on. Names, paths and reasons in it come from others, so it passes the
    /// door of safe text here, on one line.
    pub fn say(&mut self, kind: Kind, text: impl Into<String>, now: u64) {
        let text = of_one_line(&text.into());
        self.show(Notice { kind, text, at: now, ends: None, while_in: None });
    }

    /// The same for a text that holds until this time only.
    pub fn say_until(&mut self, kind: Kind, text: impl Into<String>, now: u64, ends: u64) {
        let text = SafeText::line(text.into());
        self.show(Notice { kind, text, at: now, ends: Some(ends), while_in: None });
    }

    fn show(&mut self, notice: Notice) {
        // A sentence that is said again and again stands once in the list.
        let is_again = |before: &mut Notice| before.text == notice.text;
        self.past.pop_front_if(is_again);
        self.past.push_front(notice.clone());
        self.past.truncate(KEPT);
        self.current.retain(|before| {
            let is_answered = notice.kind != Kind::Warned && before.kind.answers();
            !is_answered && before.text != notice.text
        });
        if self.current.len() > WAITING {
            self.current.remove(0);
        }
        self.current.push(notice);
        self.version += 1;
    }

    /// The newest notice holds while this Pod is in this state.
    pub fn holds_while(&mut self, while_in: Option<(PodName, State)>) {
        if let Some(newest) = self.current.last_mut() {
            newest.while_in = while_in;
        }
    }

    /// Takes notices off the screen that hold only while this Pod is in another state.
    pub fn state_changed(&mut self, pod: &PodName, state: State) {
        self.end_if(|notice| {
            notice.while_in.as_ref().is_some_and(|(of, holds)| of == pod && *holds != state)
        });
    }

    /// Another Pod is in front: takes notices about a Pod's state off the screen.
    pub fn pod_opened(&mut self) {
        self.end_if(|notice| notice.while_in.is_some());
    }

    /// The person went on: takes a notice that answered what they did before off the screen.
    pub fn went_on(&mut self) {
        self.end_if(|notice| notice.kind.answers());
    }

    /// The person pressed a key: takes refusals off the screen. A letter of a text leaves those that could not be read yet.
    pub fn key_pressed(&mut self, key: Pressed, now: u64) {
        let could_be_read = |notice: &Notice| key == Pressed::Other || notice.until() <= now;
        self.end_if(|notice| notice.waits_for_a_key() && could_be_read(notice));
    }

    fn end_if(&mut self, ends: impl Fn(&Notice) -> bool) {
        let before = self.current.len();
        self.current.retain(|notice| !ends(notice));
        self.version += u64::from(self.current.len() != before);
    }

    /// Takes the notice of this text off the screen: it holds no longer.
    pub fn end(&mut self, text: &str) {
        let text = of_one_line(text);
        self.end_if(|notice| notice.text == text);
    }

    /// The notice of this text has other words now, on the screen and in the list.
    pub fn reword(&mut self, before: &str, now: &str) {
        let (before, now) = (of_one_line(before), of_one_line(now));
        for notice in self.past.iter_mut().chain(&mut self.current) {
            if notice.text == before {
                notice.text = now.clone();
            }
        }
        self.version += 1;
    }

    /// What is on screen: the worst, but where a person did something since a warning could be read, what came of that.
    pub fn shown(&self) -> Option<&Notice> {
        let worst = self.current.iter().max_by_key(|notice| notice.kind)?;
        let newest = self.current.last().filter(|newest| newest.kind.answers());
        let was_read = |newest: &&Notice| {
            let warned = self.current.iter().filter(|notice| notice.kind == Kind::Warned);
            worst.kind == Kind::Warned
                && warned.map(|warning| warning.at + READ).all(|read| read <= newest.at)
        };
        newest.filter(was_read).or(Some(worst))
    }

    /// How many current notices are not shown.
    pub fn behind(&self) -> usize {
        self.current.len().saturating_sub(1)
    }

    /// Takes notices off the screen when their time is over.
    pub fn expire(&mut self, now: u64) {
        self.end_if(|notice| !notice.waits_for_a_key() && notice.until() <= now);
    }

    /// Another number after each change of what is on screen.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// When the next notice ends by itself.
    pub fn ends(&self) -> Option<u64> {
        let ending = self.current.iter().filter(|notice| !notice.waits_for_a_key());
        ending.map(Notice::until).min()
    }

    /// All notices, the newest first.
    pub fn past(&self) -> impl Iterator<Item = &Notice> {
        self.past.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(notices: &[(Kind, &str, u64)]) -> Notices {
        let mut all = Notices::default();
        notices.iter().for_each(|(kind, text, at)| all.say(*kind, *text, *at));
        all
    }

    fn shown(notices: &Notices) -> (Option<&str>, usize) {
        (notices.shown().map(|notice| notice.text.as_str()), notices.behind())
    }

    #[test]
    fn what_answers_the_person_is_shown_over_a_warning_that_could_be_read() {
        let warned = (Kind::Warned, "alice may write /dead now", 1_000);
        let early = said(&[warned, (Kind::Done, "stopped bob", 2_000)]);
        assert_eq!(shown(&early), (Some(warned.1), 1));
        let mut late = said(&[warned, (Kind::Done, "stopped bob", 4_000)]);
        assert_eq!(shown(&late), (Some("stopped bob"), 1));
        late.say(Kind::Warned, "the disk is full", 5_000);
        assert_eq!(shown(&late).0, Some("the disk is full"), "a new warning is the worst");
        let refused = said(&[(Kind::Refused, "no", 1_000), (Kind::Done, "stopped bob", 9_000)]);
        assert_eq!(shown(&refused).0, Some("no"));
    }

    #[test]
    fn a_notice_leaves_the_screen_and_stays_in_the_list() {
        let mut notices = said(&[(Kind::Done, "alice is stopped", 1_000)]);
        assert_eq!(notices.ends(), Some(6_000));
        notices.expire(5_999);
        assert_eq!(shown(&notices), (Some("alice is stopped"), 0));
        notices.expire(6_000);
        assert_eq!((shown(&notices), notices.ends()), ((None, 0), None));
        assert_eq!(notices.past().count(), 1);
    }

    #[test]
    fn a_sentence_that_is_said_several_times_in_a_row_stands_once_in_the_list() {
        let said = said(&[
            (Kind::Info, "read it again", 1_000),
            (Kind::Info, "read it again", 60_000),
            (Kind::Done, "stopped", 70_000),
            (Kind::Info, "read it again", 80_000),
        ]);
        let past: Vec<_> = said.past().map(|notice| (&*notice.text, notice.at)).collect();
        let all = [("read it again", 80_000), ("stopped", 70_000), ("read it again", 60_000)];
        assert_eq!(past, all);
    }

    #[test]
    fn a_text_of_several_lines_is_a_notice_without_signs_for_line_ends() {
        let notices = said(&[(Kind::Refused, "no wire\nwrite into it:\n\n[provider.x]\n", 0)]);
        assert_eq!(shown(&notices), (Some("no wire · write into it: · [provider.x]"), 0));
    }

    #[test]
    fn of_several_notices_the_worst_is_shown_and_the_others_are_counted() {
        let mut notices = said(&[
            (Kind::Warned, "no such theme", 0),
            (Kind::Refused, "the disk is full", 1_000),
            (Kind::Warned, "no such key", 2_000),
            (Kind::Info, "a peer came", 2_000),
            (Kind::Done, "stopped", 3_000),
            (Kind::Warned, "no such key", 3_000),
        ]);
        assert_eq!(shown(&notices), (Some("the disk is full"), 3));
        notices.expire(5_000);
        assert_eq!(shown(&notices), (Some("the disk is full"), 2));
        notices.end("the disk is full");
        assert_eq!(shown(&notices), (Some("no such key"), 1));
        notices.went_on();
        assert_eq!(shown(&notices), (Some("no such key"), 0));
    }

    #[test]
    fn what_answered_the_person_before_a_refusal_does_not_come_back_after_it() {
        let mut notices = said(&[(Kind::Done, "zz is ready", 0), (Kind::Refused, "no pod", 1_000)]);
        notices.key_pressed(Pressed::Other, 2_000);
        assert_eq!(shown(&notices), (None, 0));
    }

    #[test]
    fn a_refusal_stays_until_a_key_is_pressed_and_5_s_while_a_text_is_typed() {
        let refused = said(&[(Kind::Refused, "the disk is full", 0)]);
        let mut notices = refused.clone();
        notices.key_pressed(Pressed::Letter, 4_999);
        notices.expire(60_000);
        assert_eq!((shown(&notices), notices.ends()), ((Some("the disk is full"), 0), None));
        notices.key_pressed(Pressed::Letter, 60_000);
        assert_eq!(shown(&notices), (None, 0));
        let mut notices = refused;
        notices.key_pressed(Pressed::Other, 1);
        assert_eq!(shown(&notices), (None, 0));
    }
}
