//! The line of a rule: allowing always writes the rule of the request into the line, where the person edits it. The sheet
//! above the line says what the rule in it lets through. Enter makes the rule only after that sheet was read.

use crate::rows::wrap_text;
use crate::screen::app::confirm::TOO_EARLY;
use crate::screen::app::inbox::{ChosenRequests, RuleScope};
use crate::screen::app::{App, Areas, Effect, Layer};
use crate::screen::keys::{Action, Binding, Context, pressed};
use crate::screen::notice::Kind;
use crate::screen::pane::actionbar::{Hint, Prompt, Purpose};
use crate::wording::rule;
use crossterm::event::{KeyEvent, KeyEventKind};
use std::slice::from_ref;
use yoi::config::policy::matches;
use yoi::protocol::{self, Pattern, Verdict};
use yoi::run::policy::subject_of;

/// Why the rule in the line is refused.
const WRONG_RULE: &str = "that rule does not allow what is asked: it has to fit each command in the line, or each argument";
/// The same of a rule for a client.
const NO_RULE: &str = "what a client may do is one consent: it cannot be edited";

impl App {
    /// Writes the rule of these requests into the line. It decides nothing.
    pub(super) fn open_rule(
        &mut self,
        requests: ChosenRequests,
        rule_scope: RuleScope,
    ) -> Vec<Effect> {
        let text = requests.rule.to_string();
        self.decided_by_line = Some(ChosenRequests { rule_scope, ..requests });
        self.open_card_line(Purpose::Rule, &text)
    }

    /// The line of a rule on top that can still decide.
    fn rule_line(&self) -> Option<(&Prompt, &ChosenRequests)> {
        match self.layers.top() {
            Some(Layer::Prompt(prompt)) if prompt.purpose == Purpose::Rule => {
                let requests = self.decided_by_line.as_ref()?;
                self.undecided(prompt).is_none().then_some((prompt, requests))
            }
            Some(Layer::Prompt(_) | Layer::List(_) | Layer::Confirm(_) | Layer::Key(_)) | None => {
                None
            }
        }
    }

    /// The rule in the line, or why it cannot be made.
    fn rule_in(&self, prompt: &Prompt, requests: &ChosenRequests) -> Result<Pattern, String> {
        if !prompt.is_changed() {
            return Ok(requests.rule.clone());
        }
        if requests.client.is_some() {
            return Err(NO_RULE.into());
        }
        let rule: Pattern =
            prompt.input.text().trim().parse().map_err(|error| format!("{error}"))?;
        let mut approvals = self.family.approvals().iter();
        let approval = approvals.find(|approval| requests.ids.contains(&approval.id));
        let allows = approval
            .is_none_or(|approval| matches(&rule, protocol::Action::Allow, &subject_of(approval)));
        if allows { Ok(rule) } else { Err(WRONG_RULE.into()) }
    }

    /// What the rule in the line lets through, or why it cannot be made; `None` where no rule is in the line.
    pub fn rule_said(&self) -> Option<Result<String, String>> {
        let (prompt, requests) = self.rule_line()?;
        Some(self.rule_in(prompt, requests).map(|rule| requests.sentence(&rule)))
    }

    /// The rows of the sheet above the line of a rule, and for how many there is room.
    pub fn rule_rows(&self, areas: &Areas) -> (Vec<String>, usize) {
        let room = areas.sheet_above_line(usize::MAX);
        let text = self.rule_said().map(|said| said.unwrap_or_else(|why| why)).unwrap_or_default();
        let rows = wrap_text(&self.setup.glyphs.plain(&text), usize::from(room.width).max(1));
        // In a single column no word can be read.
        (rows, if room.width < 2 { 0 } else { room.height.into() })
    }

    /// The other scope that Tab gives the rule in the line, in a few words.
    pub(super) fn other_scope_hint(&self) -> Option<Hint> {
        let (_, requests) = self.rule_line()?;
        let scope = requests.next_scope()?;
        let key = self.keymap.label(Context::Line, Action::Complete);
        Some(Hint::new(key, requests.in_words(&scope)))
    }

    /// Handles a key that makes the rule in the line, or shows more of it. `None` for keys that edit the line or leave it.
    pub(super) fn rule_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        self.rule_line()?;
        if let Some(pages) = self.page_key(key) {
            let areas = Areas::of(self);
            let (rows, room) = self.rule_rows(&areas);
            self.layers.read.turn(rows, room, pages);
            self.layers.disturbed(self.now);
            return Some(Vec::new());
        }
        match self.keymap.get(Context::Line, pressed(key))? {
            Binding::Do(Action::Choose) if key.kind == KeyEventKind::Repeat => Some(Vec::new()),
            Binding::Do(Action::Choose) => Some(self.make_rule()),
            Binding::Do(Action::Complete) => {
                let requests = self.decided_by_line.as_mut()?;
                if let Some(scope) = requests.next_scope() {
                    requests.rule_scope = scope;
                    self.layers.changed();
                }
                Some(Vec::new())
            }
            _ => None,
        }
    }

    /// Decides with the rule in the line, after it was on the screen as it is for a while.
    fn make_rule(&mut self) -> Vec<Effect> {
        let armed = self.is_armed();
        self.layers.pressed(self.now);
        if !armed {
            return self.say(Kind::Info, TOO_EARLY);
        }
        let (rows, room) = self.rule_rows(&Areas::of(self));
        if let Some(unread) = self.unread(&rows, room) {
            return self.say(Kind::Info, unread);
        }
        let Some((prompt, requests)) = self.rule_line() else { return Vec::new() };
        let Ok(rule) = self.rule_in(prompt, requests) else { return Vec::new() };
        let (rule, text) = match prompt.is_changed() {
            true => (Some(rule), prompt.input.text().to_owned()),
            false => (None, String::new()),
        };
        self.layers.pop();
        let Some(requests) = self.decided_by_line.take() else { return Vec::new() };
        match requests.rule_scope.clone() {
            RuleScope::Pod => self.decide_with(&requests, &Verdict::Pod { rule }, &text),
            RuleScope::Tree => {
                self.decide_with(&requests, &Verdict::Tree { rule, of: None }, &text)
            }
            RuleScope::TreeOf(root) => {
                // One rule for all of them: with it the host decides the others, too.
                self.covered.extend(requests.ids.iter().skip(1).cloned());
                let verdict = Verdict::Tree { rule, of: Some(root) };
                self.decide_with(&requests.oldest(), &verdict, &text)
            }
        }
    }
}

impl ChosenRequests {
    /// What this rule lets through, and for whom.
    fn sentence(&self, rule: &Pattern) -> String {
        if let Some(client) = &self.client {
            return rule::for_client(rule, client);
        }
        let sentence = match &self.rule_scope {
            RuleScope::Pod => rule::from_now_on(rule, &self.pods, false),
            RuleScope::Tree => rule::from_now_on(rule, &self.pods, true),
            RuleScope::TreeOf(root) => rule::from_now_on(rule, from_ref(root), true),
        };
        match rule::limit(rule) {
            Some(limit) => format!("{sentence} ({limit})"),
            None => sentence,
        }
    }

    /// The scope that a rule for a tree can have instead; behind the last one comes the first.
    fn next_scope(&self) -> Option<RuleScope> {
        let at = match &self.rule_scope {
            RuleScope::Pod => return None,
            RuleScope::Tree => 0,
            RuleScope::TreeOf(root) => self.roots.iter().position(|other| other == root)? + 1,
        };
        let next =
            self.roots.get(at).map_or(RuleScope::Tree, |root| RuleScope::TreeOf(root.clone()));
        (next != self.rule_scope).then_some(next)
    }

    /// The Pods for whose trees a rule of this scope is, in a few words.
    fn in_words(&self, rule_scope: &RuleScope) -> String {
        match rule_scope {
            RuleScope::Pod | RuleScope::Tree => rule::trees(&self.pods),
            RuleScope::TreeOf(root) => rule::trees(from_ref(root)),
        }
    }
}
