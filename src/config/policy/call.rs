//! A call as rules see it: in parts, each of which is one simple command of a command line. A call of any other tool
//! is one part.

use crate::config::policy::arguments;
use crate::config::policy::pattern::{Fit, Matcher, Reach};
use crate::config::policy::tool::Tool;
use crate::config::policy::{Subject, is_command};
use crate::config::shell::{self, ShownWord, SimpleCommand, Unreadable};
use crate::protocol::{Action, Pattern};
use serde_json::Value;

/// A call that was read.
pub struct Call<'a> {
    subject: &'a Subject,
    /// The commands of a command line, or why it could not be read; `None` for every other tool.
    line: Option<Result<Vec<SimpleCommand>, Unreadable>>,
}

/// What a rule speaks about or not.
pub struct Part<'a> {
    call: &'a Call<'a>,
    kind: Kind<'a>,
}

#[derive(Clone, Copy)]
enum Kind<'a> {
    /// A call of another tool than Bash.
    Whole,
    /// A call of an external tool.
    External(&'a Value),
    Command(&'a SimpleCommand),
    Unreadable(&'a Unreadable),
}

impl<'a> Call<'a> {
    pub fn of(subject: &'a Subject) -> Self {
        let line = is_command(subject).then(|| shell::read(text(subject)));
        Self { subject, line }
    }

    /// At least one.
    pub fn parts(&'a self) -> impl DoubleEndedIterator<Item = Part<'a>> {
        let kinds: Vec<Kind<'a>> = match (&self.subject.arguments, &self.line) {
            (Some(arguments), _) => vec![Kind::External(arguments)],
            (None, None) => vec![Kind::Whole],
            (None, Some(Err(why))) => vec![Kind::Unreadable(why)],
            // A line without a command: a comment, or nothing.
            (None, Some(Ok(commands))) if commands.is_empty() => vec![Kind::Whole],
            (None, Some(Ok(commands))) => commands.iter().map(Kind::Command).collect(),
        };
        kinds.into_iter().map(|kind| Part { call: self, kind })
    }
}

/// What the call is really about; for a command, its line.
fn text(subject: &Subject) -> &str {
    subject.texts.last().map_or("", String::as_str)
}

impl Part<'_> {
    /// Whether a rule of a file speaks about this part. One that refuses or asks does when it may fit; one that
    /// allows must fit what the call is really about.
    pub fn matches(&self, pattern: &Pattern, action: Action) -> bool {
        let subject = self.call.subject;
        let tool = Tool::of(&pattern.tool);
        let raw = Matcher::of(&pattern.pattern);
        if !tool.speaks(action, subject) || action == Action::Allow && !self.may_get_it(&raw) {
            return false;
        }
        let certain = |text: &str, reach| raw.fits(text, reach);
        let names =
            || certain(text(subject), Reach::Anything) || stands(&pattern.pattern, text(subject));
        match (self.kind, action) {
            (Kind::External(arguments), _) => {
                arguments::matches(arguments, tool.argument(), &raw, action)
            }
            _ if raw.is_everything() => true,
            (Kind::Whole, Action::Allow) => certain(text(subject), Reach::Anything),
            (Kind::Whole, Action::Ask | Action::Deny) if subject.texts.is_empty() => {
                certain("", Reach::Anything)
            }
            (Kind::Whole, Action::Ask | Action::Deny) => {
                subject.texts.iter().any(|text| certain(text, Reach::Anything))
            }
            (Kind::Unreadable(_), Action::Allow) => {
                raw.is_exact() && certain(text(subject), Reach::Anything)
            }
            (Kind::Unreadable(_), Action::Ask | Action::Deny) => names(),
            (Kind::Command(command), Action::Ask | Action::Deny) if command.starts_another => {
                names()
            }
            (Kind::Command(command), Action::Allow) => {
                (raw.is_exact() || self.may_be_allowed(command))
                    && (self.is_allowed_whole(&raw) || self.allows(&pattern.pattern, command))
            }
            (Kind::Command(command), Action::Ask | Action::Deny) => {
                certain(text(subject), Reach::Anything) || may_be(&pattern.pattern, command)
            }
        }
    }

    /// Whether an answer speaks about this part. One that names a single command line speaks about that
    /// line and no other.
    pub fn is_answered(&self, pattern: &Pattern, action: Action) -> bool {
        let subject = self.call.subject;
        let line = action == Action::Allow && is_command(subject);
        let raw = Matcher::of(&pattern.pattern);
        if line && raw.is_exact() {
            return Tool::of(&pattern.tool).speaks(action, subject)
                && self.may_get_it(&raw)
                && raw.fits(text(subject), Reach::Anything);
        }
        self.matches(pattern, action)
    }

    /// Whether a rule of this pattern may let a command have its credentials: only one that is this line to the letter, where
    /// the line runs the same the next time. Every other call has none.
    fn may_get_it(&self, pattern: &Matcher) -> bool {
        let subject = self.call.subject;
        let stays = !subject.once_only && subject.scripts.is_empty();
        let is_line = || pattern.is_exact() && pattern.fits(text(subject), Reach::Anything);
        subject.credentials.is_empty() || stays && is_line()
    }

    /// Whether a rule of a workspace that a person trusts may allow it: none gives a credential.
    pub fn takes_trusted_rules(&self) -> bool {
        self.call.subject.credentials.is_empty()
    }

    /// Whether an answer that names this single command line no longer allows it: the line may run something else
    /// than when the person saw it.
    pub fn is_answered_once(&self, pattern: &Pattern, action: Action) -> bool {
        let exact = || Matcher::of(&pattern.pattern).is_exact();
        self.call.subject.once_only && action == Action::Allow && exact()
    }

    /// Whether a rule with a wildcard may allow a command: where git may find any repository, it allows no command of
    /// git, and each word by which the Pod hands a program to another one must be in sight.
    fn may_be_allowed(&self, command: &SimpleCommand) -> bool {
        let Some(Ok(commands)) = &self.call.line else { return false };
        let subject = self.call.subject;
        let shown = |word: &String| {
            let mut words = commands.iter().flat_map(|command| &command.words);
            words.any(|shown| shown.text.as_ref() == Some(word))
        };
        !(subject.any_repository && command.finds_repository) && subject.handed.iter().all(shown)
    }

    /// The last word of a command that a rule with a wildcard must spell; an error if no rule can.
    fn must_spell<'c>(&self, command: &'c SimpleCommand) -> Result<Option<&'c ShownWord>, ()> {
        let handed = &self.call.subject.handed;
        let is_handed = |word: &ShownWord| word.text.as_ref().is_some_and(|t| handed.contains(t));
        let last = command.words.iter().rposition(is_handed).map_or(0, |at| at + 1);
        match last.max(command.must_spell).checked_sub(1) {
            Some(last) => command.words.get(last).map(Some).ok_or(()),
            None => Ok(None),
        }
    }

    /// Whether a rule allows the line as it is written: its wildcards end where another command may begin.
    fn is_allowed_whole(&self, pattern: &Matcher) -> bool {
        let Some(Ok(commands)) = &self.call.line else { return false };
        let spelled = pattern.beginning().chars().count();
        let spells = |command: &SimpleCommand| {
            let last = self.must_spell(command);
            !command.starts_another
                && last.is_ok_and(|last| last.is_none_or(|word| word.end_in_line <= spelled))
        };
        pattern.fits(text(self.call.subject), Reach::OneCommand)
            && (pattern.is_exact() || commands.iter().all(spells))
    }

    /// Whether a rule allows a simple command.
    fn allows(&self, pattern: &str, command: &SimpleCommand) -> bool {
        let pattern = Matcher::of_words(pattern);
        let Some(text) = &command.known else { return false };
        let spelled = pattern.beginning().chars().count();
        let spells = || {
            let last = self.must_spell(command);
            last.is_ok_and(|last| last.is_none_or(|word| word.end <= spelled))
        };
        (pattern.is_exact() || spells())
            && pattern.fits_pieces(text.iter().copied(), Fit::Certain, Reach::Words)
    }

    /// Whether a rule that refuses or asks could be about this part although nothing of it shows that.
    pub fn may_hide(&self, tool: &str, action: Action) -> bool {
        matches!(self.kind, Kind::Unreadable(_)) && Tool::of(tool).speaks(action, self.call.subject)
    }

    /// Why a rule that refuses counts although the text of the call does not show that it fits.
    pub fn doubt(&self, pattern: &str) -> Option<String> {
        match self.kind {
            Kind::Unreadable(why) if pattern != "*" => Some(format!(
                "it may fit, because the command cannot be compared: {}",
                why.sentence()
            )),
            Kind::Command(command) if !is_shown(pattern, command, text(self.call.subject)) => Some(
                "it may fit: a part of the command is known only when it runs; write that part out"
                    .into(),
            ),
            Kind::Command(_) | Kind::Unreadable(_) | Kind::Whole | Kind::External(_) => None,
        }
    }
}

/// Whether the first word of a pattern stands anywhere in a line.
fn stands(pattern: &str, line: &str) -> bool {
    let first = pattern.split_whitespace().next().unwrap_or_default();
    // A wildcard may stand for a blank and what follows it.
    let end = first.find('*').map_or(first.len(), |at| at + 1);
    let word = Matcher::of(&first[..end]);
    shell::stands(line, |text| word.fits(text, Reach::Anything))
}

/// Whether a rule may speak about a simple command.
fn may_be(pattern: &str, command: &SimpleCommand) -> bool {
    let pattern = Matcher::of_words(pattern);
    let fits =
        |text: &Vec<_>| pattern.fits_pieces(text.iter().copied(), Fit::Possible, Reach::Anything);
    command.texts.iter().any(fits)
}

/// Whether a rule fits what the text of a command shows.
fn is_shown(pattern: &str, command: &SimpleCommand, line: &str) -> bool {
    let words = Matcher::of_words(pattern);
    let certain =
        |text: &Vec<_>| words.fits_pieces(text.iter().copied(), Fit::Certain, Reach::Anything);
    Matcher::of(pattern).fits(line, Reach::Anything) || command.texts.iter().any(certain)
}
