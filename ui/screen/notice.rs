//! Notices: short sentences on the action bar. Each is shown for a while, and the past ones can be listed.

use std::collections::VecDeque;
use yoi::protocol::{PodName, State};
use yoi::text::SafeText;

/// How many past notices are kept.
const KEPT: usize = 200;

/// The kind of a notice: its shape, its colour and how long it stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Milliseconds on screen, for a short text.
    fn stays(self) -> u64 {
        match self {
            Self::Done => 4_000,
            Self::Info => 6_000,
            Self::Warned | Self::Refused => 10_000,
        }
    }

    /// The mark before the text.
    pub fn mark(self, ascii: bool) -> &'static str {
        match (self, ascii) {
            (Self::Done, false) => "✓",
            (Self::Done, true) => "v",
            (Self::Info, _) => "·",
            (Self::Warned, _) => "!",
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
    /// When it leaves the screen; a long text stays longer.
    fn until(&self) -> u64 {
        if let Some(ends) = self.ends {
            return ends;
        }
        let length = u64::try_from(self.text.len()).unwrap_or(u64::MAX);
        self.at.saturating_add(self.kind.stays()).saturating_add(length.saturating_mul(25))
    }
}

/// The safe form of a text, its lines beside each other.
fn of_one_line(text: &str) -> SafeText<'static> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    SafeText::line(lines.collect::<Vec<_>>().join(" · "))
}

/// The notice on screen and those before it.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    shown: Option<Notice>,
    past: VecDeque<Notice>,
    /// Counts the changes of the notice on screen.
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
        self.past.push_front(notice.clone());
        self.past.truncate(KEPT);
        self.shown = Some(notice);
        self.version += 1;
    }

    /// The notice on screen holds while this Pod is in this state.
    pub fn holds_while(&mut self, while_in: Option<(PodName, State)>) {
        if let Some(shown) = &mut self.shown {
            shown.while_in = while_in;
        }
    }

    /// Takes the notice off the screen if it holds only while this Pod is in another state.
    pub fn state_changed(&mut self, pod: &PodName, state: State) {
        self.end_if(|(of, holds)| of == pod && *holds != state);
    }

    /// Another Pod is in front: takes the notice off the screen if it is about a Pod's state.
    pub fn pod_opened(&mut self) {
        self.end_if(|_| true);
    }

    /// The person went on: takes a notice that answered what they did before off the screen.
    pub fn went_on(&mut self) {
        let answered = |notice: &Notice| matches!(notice.kind, Kind::Done | Kind::Info);
        if self.shown.as_ref().is_some_and(answered) {
            self.shown = None;
            self.version += 1;
        }
    }

    fn end_if(&mut self, ends: impl Fn(&(PodName, State)) -> bool) {
        if self.shown.as_ref().and_then(|shown| shown.while_in.as_ref()).is_some_and(ends) {
            self.shown = None;
            self.version += 1;
        }
    }

    /// Takes the notice of this text off the screen: it holds no longer.
    pub fn end(&mut self, text: &str) {
        let text = of_one_line(text);
        if self.shown.as_ref().is_some_and(|shown| shown.text == text) {
            self.shown = None;
            self.version += 1;
        }
    }

    /// The notice of this text has other words now, on the screen and in the list.
    pub fn reword(&mut self, before: &str, now: &str) {
        let (before, now) = (of_one_line(before), of_one_line(now));
        for notice in self.past.iter_mut().chain(&mut self.shown) {
            if notice.text == before {
                notice.text = now.clone();
            }
        }
        self.version += 1;
    }

    /// What is on screen.
    pub fn shown(&self) -> Option<&Notice> {
        self.shown.as_ref()
    }

    /// Takes the notice off the screen when its time is over.
    pub fn expire(&mut self, now: u64) {
        if self.ends().is_some_and(|end| end <= now) {
            self.shown = None;
            self.version += 1;
        }
    }

    /// Another number after each change of the notice on screen.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// When the notice on screen ends.
    pub fn ends(&self) -> Option<u64> {
        self.shown.as_ref().map(Notice::until)
    }

    /// All notices, the newest first.
    pub fn past(&self) -> impl Iterator<Item = &Notice> {
        self.past.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_leaves_the_screen_and_stays_in_the_list() {
        let mut notices = Notices::default();
        notices.say(Kind::Done, "alice is stopped", 1_000);
        notices.expire(4_000);
        assert_eq!(notices.shown().map(|n| n.text.as_str()), Some("alice is stopped"));
        let end = notices.ends().expect("it ends");
        notices.expire(end);
        assert_eq!(notices.shown(), None);
        assert_eq!(notices.ends(), None);
        assert_eq!(notices.past().count(), 1);
    }

    #[test]
    fn a_text_of_several_lines_is_a_notice_without_signs_for_line_ends() {
        let mut notices = Notices::default();
        notices.say(Kind::Refused, "no wire\nwrite into it:\n\n[provider.x]\n", 0);
        let text = notices.shown().map(|notice| notice.text.as_str());
        assert_eq!(text, Some("no wire · write into it: · [provider.x]"));
    }

    #[test]
    fn a_refusal_stays_longer_than_a_success() {
        let end = |kind| {
            let mut notices = Notices::default();
            notices.say(kind, "x", 0);
            notices.ends()
        };
        assert!(end(Kind::Refused) > end(Kind::Done));
    }
}
