//! What Pods ask a person when there is no screen: let pass by a rule of the command line, denied
//! at once because nobody is there, or left to wait for whoever types.

use crate::headless::Unanswered;
use crate::headless::exit::{Exit, Failure};
use std::collections::BTreeSet;
use yoi::config::policy::matches;
use yoi::protocol::approval::NotAPattern;
use yoi::protocol::{Action, ApprovalRequest, Event, Pattern, PodName, Verdict};
use yoi::run::policy::subject_of;

/// The questions that concern this program, and how they are met.
#[derive(Default)]
pub struct Inbox {
    allow: Vec<Pattern>,
    unanswered: Option<Unanswered>,
    /// Pods that were given something to do here, by key.
    own: BTreeSet<String>,
    /// Pods below them that others had given something to do before, by key.
    engaged: BTreeSet<String>,
    /// The Pod that whoever types is at, by key.
    current: Option<String>,
    /// All that wait, oldest first.
    open: Vec<ApprovalRequest>,
    /// Those that were met, by id.
    met: BTreeSet<String>,
    /// What was denied because nobody was there.
    refused: Option<String>,
}

/// What is done about a question.
pub enum Meeting {
    Answer {
        verdict: Verdict,
        note: String,
    },
    /// It waits; the note says how it can be answered.
    Wait {
        note: String,
    },
}

impl Inbox {
    /// From here on questions are met: those that a rule lets pass, and the others.
    pub fn begin(&mut self, allow: Vec<Pattern>, unanswered: Unanswered) {
        self.allow = allow;
        self.unanswered = Some(unanswered);
    }

    /// What this Pod and those below it ask is met here from now on; of the `engaged` ones only once
    /// they have rested.
    pub fn look_after(&mut self, pod: &PodName, engaged: &[PodName]) {
        self.own.insert(pod.key());
        self.engaged.extend(engaged.iter().map(PodName::key));
    }

    /// Whether this very Pod was given something to do here.
    pub fn was_given_to(&self, pod: &PodName) -> bool {
        self.own.contains(&pod.key())
    }

    /// A Pod has nothing to do any more: what it does next is not what it did before.
    pub fn rested(&mut self, pod: &PodName) {
        self.engaged.remove(&pod.key());
    }

    /// Whoever types is at this Pod: what it and those below it ask is shown.
    pub fn look_at(&mut self, pod: &PodName) {
        self.current = Some(pod.key());
    }

    /// Whether a Pod with these above it works for something that was begun here.
    pub fn concerns(&self, pod: &PodName, lineage: &[PodName]) -> bool {
        let below = || lineage.iter().any(|above| self.own.contains(&above.key()));
        self.own.contains(&pod.key()) || (!self.engaged.contains(&pod.key()) && below())
    }

    /// Nobody types any more.
    pub fn left(&mut self, unanswered: Unanswered) {
        self.unanswered = Some(unanswered);
        if unanswered == Unanswered::End {
            self.met.clear();
        }
    }

    /// Whether a Pod that needs somebody is waited for.
    pub fn waits(&self) -> bool {
        self.unanswered == Some(Unanswered::Wait)
    }

    /// Notes what an event says of questions.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::Family { asks, .. } => self.open.clone_from(asks),
            Event::ApprovalRequested { ask } if !self.open.iter().any(|open| open.id == ask.id) => {
                self.open.push((**ask).clone());
            }
            Event::ApprovalDecided { ask, .. } => self.open.retain(|open| open.id != *ask),
            _ => {}
        }
    }

    /// The next question that has to be met, and how.
    pub fn next(&mut self) -> Option<(ApprovalRequest, Meeting)> {
        let unanswered = self.unanswered?;
        let is_next = |ask: &&ApprovalRequest| self.is_to_meet(ask) && !self.met.contains(&ask.id);
        let ask = self.open.iter().find(is_next)?.clone();
        self.met.insert(ask.id.clone());
        let meeting = self.meet(&ask, unanswered);
        Some((ask, meeting))
    }

    fn is_to_meet(&self, ask: &ApprovalRequest) -> bool {
        let mut chain = std::iter::once(&ask.pod).chain(&ask.lineage);
        let is_current = |pod: &PodName| self.current.as_ref() == Some(&pod.key());
        self.concerns(&ask.pod, &ask.lineage) || (self.waits() && chain.any(is_current))
    }

    fn meet(&mut self, ask: &ApprovalRequest, unanswered: Unanswered) -> Meeting {
        let subject = subject_of(ask);
        let passes = |rule: &&Pattern| matches(rule, Action::Allow, &subject);
        if let Some(rule) = self.allow.iter().find(passes) {
            let note = format!("allowed by --allow {}: {}", quoted(rule), ask.line());
            return Meeting::Answer { verdict: Verdict::Once, note };
        }
        if unanswered == Unanswered::Wait {
            return Meeting::Wait { note: self.question(ask) };
        }
        let way = format!("--allow {} lets it pass", quoted(&ask.rule));
        let reason = format!("nobody is here to answer; {way}");
        let note = format!("denied: {}: {reason}", ask.line());
        self.deny(&note);
        Meeting::Answer { verdict: Verdict::Deny { reason }, note }
    }

    /// A question was denied without anybody having seen it.
    pub fn deny(&mut self, sentence: &str) {
        self.refused.get_or_insert_with(|| sentence.to_owned());
    }

    /// How the program ends when everything else went well.
    pub fn outcome(&self) -> Result<(), Failure> {
        match &self.refused {
            // It was said when it happened.
            Some(_) => Err(Failure::new(Exit::Refused, String::new())),
            None => Ok(()),
        }
    }

    /// All that wait, oldest first.
    pub fn open(&self) -> &[ApprovalRequest] {
        &self.open
    }

    /// All that wait, as a person reads them.
    pub fn questions(&self) -> Vec<String> {
        self.open.iter().map(|ask| self.question(ask)).collect()
    }

    fn question(&self, ask: &ApprovalRequest) -> String {
        let number = self.open.iter().position(|open| open.id == ask.id).unwrap_or(0) + 1;
        let reason = ask.reason.as_ref().map(|text| format!(" (it says: {text})"));
        format!(
            "[{number}] {} asks: {} {}\n    {}{}; :allow {number}, :allow {number} pod, :allow {number} tree (writes {}), :deny {number} <why>",
            ask.pod,
            ask.tool,
            ask.action,
            ask.because,
            reason.unwrap_or_default(),
            quoted(&ask.rule),
        )
    }

    /// The answer that a typed line gives, `None` when it gives none: `:allow [n] [pod|tree [rule]]` or
    /// `:deny [n] [why]`; without a number it is the oldest question.
    pub fn typed(&self, line: &str) -> Option<Result<(ApprovalRequest, Verdict), Failure>> {
        let (verb, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        let allows = match verb {
            ":allow" => true,
            ":deny" => false,
            _ => return None,
        };
        let (first, behind) =
            rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
        let (number, words) = match first.parse::<usize>() {
            Ok(number) => (number, behind.trim()),
            Err(_) => (1, rest.trim()),
        };
        let none = || Failure::usage(format!("there is no question {number}; :inbox lists them"));
        let ask = number.checked_sub(1).and_then(|at| self.open.get(at)).cloned().ok_or_else(none);
        let verdict = match (allows, words) {
            (false, why) => Ok(Verdict::Deny { reason: why.into() }),
            (true, "" | "once") => Ok(Verdict::Once),
            (true, words) => for_good(words),
        };
        Some(ask.and_then(|ask| Ok((ask, verdict?))))
    }
}

/// An answer that writes a rule: `pod` or `tree`, and behind it a rule of one's own.
fn for_good(words: &str) -> Result<Verdict, Failure> {
    let (reach, own) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let own = Some(own.trim()).filter(|own| !own.is_empty());
    let rule = own.map(str::parse).transpose();
    let rule = rule.map_err(|error: NotAPattern| Failure::usage(error.to_string()))?;
    match reach {
        "pod" => Ok(Verdict::Pod { rule }),
        "tree" => Ok(Verdict::Tree { rule }),
        other => Err(Failure::usage(format!(":allow takes pod or tree, not {other}"))),
    }
}

/// A rule as a shell takes it.
fn quoted(rule: &Pattern) -> String {
    format!("'{}'", rule.to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> PodName {
        PodName::parse(text).unwrap()
    }

    fn ask(id: &str, pod: &str) -> ApprovalRequest {
        ApprovalRequest {
            id: id.into(),
            pod: name(pod),
            lineage: vec![name("top")],
            call_id: "c".into(),
            tool: "Bash".into(),
            action: "cargo fetch".into(),
            because: "it wants the network".into(),
            reason: Some("crates".into()),
            scope: vec![],
            lease: None,
            rule: Pattern { tool: "Bash+network".into(), pattern: "cargo fetch".into() },
            since: 0,
        }
    }

    fn inbox(allow: Vec<Pattern>, unanswered: Unanswered) -> Inbox {
        let mut inbox = Inbox::default();
        inbox.begin(allow, unanswered);
        inbox
    }

    fn asked(inbox: &mut Inbox, ask: ApprovalRequest) {
        inbox.note(&Event::ApprovalRequested { ask: Box::new(ask) });
    }

    #[test]
    fn nobody_there_means_no_with_the_way_to_a_yes() {
        let mut inbox = inbox(vec![], Unanswered::End);
        inbox.look_after(&name("alice"), &[]);
        asked(&mut inbox, ask("1", "alice"));
        let Some((_, Meeting::Answer { verdict, .. })) = inbox.next() else { panic!() };
        let reason =
            "nobody is here to answer; --allow 'Bash+network:cargo fetch' lets it pass".into();
        assert_eq!(verdict, Verdict::Deny { reason });
        assert!(inbox.next().is_none(), "each is met once");
        assert_eq!(inbox.outcome().unwrap_err().exit, Exit::Refused);
    }

    #[test]
    fn a_rule_of_the_command_line_lets_pass_and_nothing_was_refused() {
        let rule = Pattern { tool: "Bash".into(), pattern: "cargo *".into() };
        let mut inbox = inbox(vec![rule], Unanswered::End);
        inbox.look_after(&name("top"), &[]);
        asked(&mut inbox, ask("1", "alice"));
        let Some((_, Meeting::Answer { verdict, .. })) = inbox.next() else { panic!() };
        assert_eq!(verdict, Verdict::Once);
        assert!(inbox.outcome().is_ok());
    }

    #[test]
    fn what_other_pods_ask_is_not_answered_here() {
        let mut inbox = inbox(vec![], Unanswered::End);
        inbox.look_after(&name("bob"), &[]);
        asked(&mut inbox, ask("1", "alice"));
        assert!(inbox.next().is_none());
    }

    #[test]
    fn what_a_pod_below_asks_for_others_is_left_to_them_until_it_has_rested() {
        let mut inbox = inbox(vec![], Unanswered::End);
        inbox.look_after(&name("top"), &[name("alice")]);
        asked(&mut inbox, ask("1", "alice"));
        assert!(inbox.next().is_none());
        inbox.rested(&name("alice"));
        asked(&mut inbox, ask("2", "alice"));
        assert!(inbox.next().is_some());
    }

    #[test]
    fn what_the_pod_in_view_asks_is_shown_to_whoever_types_and_denied_by_nobody() {
        let mut inbox = inbox(vec![], Unanswered::Wait);
        inbox.look_at(&name("top"));
        asked(&mut inbox, ask("1", "alice"));
        assert!(matches!(inbox.next(), Some((_, Meeting::Wait { .. }))));
        inbox.left(Unanswered::End);
        assert!(inbox.next().is_none());
    }

    #[test]
    fn who_types_answers_by_number_or_the_oldest() {
        let mut inbox = inbox(vec![], Unanswered::Wait);
        asked(&mut inbox, ask("1", "alice"));
        asked(&mut inbox, ask("2", "bob"));
        let typed = |line: &str| inbox.typed(line).map(|r| r.map(|(a, v)| (a.id, v)).ok());
        assert_eq!(typed(":allow"), Some(Some(("1".into(), Verdict::Once))));
        assert_eq!(typed(":allow 2 tree"), Some(Some(("2".into(), Verdict::Tree { rule: None }))));
        let rule = Some(Pattern { tool: "Bash".into(), pattern: "cargo *".into() });
        let pod = Verdict::Pod { rule };
        assert_eq!(typed(":allow pod Bash:cargo *"), Some(Some(("1".into(), pod))));
        assert_eq!(typed(":allow pod cargo"), Some(None), "no tool");
        let deny = Verdict::Deny { reason: "not now".into() };
        assert_eq!(typed(":deny 2 not now"), Some(Some(("2".into(), deny.clone()))));
        assert_eq!(typed(":deny not now"), Some(Some(("1".into(), deny))));
        assert_eq!(typed(":allow 3"), Some(None));
        assert_eq!(typed(":allow for ever"), Some(None));
        assert_eq!(typed(":allowed"), None);
    }
}
