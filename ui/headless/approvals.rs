//! Approval requests without a screen: allowed by a rule of the command line, denied at once because no person
//! is there to decide, or shown to the person who types.

use crate::headless::Unanswered;
use crate::headless::exit::{Exit, Failure};
use crate::verb::Way;
use crate::verb::decision::name_of;
use crate::verb::numbers::Numbers;
use crate::verb::spell::{spell, worded};
use crate::wording::matter::{By, Step};
use crate::wording::rule::{limit, once_only, only_for_pods};
use crate::wording::{matter, question, scope};
use std::collections::BTreeSet;
use std::slice::from_ref;
use yoi::client::family::inbox::{self, Item};
use yoi::client::family::{Family, Matter, equal};
use yoi::config::policy::matches;
use yoi::protocol::{
    Action, ApprovalRequest, Credential, Pattern, PodInfo, PodName, Question, Verdict,
};
use yoi::run::is_about_a_server;
use yoi::run::policy::subject_of;
use yoi::text::{SafeText, shell_quoted};

/// The approval requests of all Pods, and how those that this program is responsible for are handled.
#[derive(Default)]
pub struct Inbox {
    allow: Vec<Pattern>,
    unanswered: Option<Unanswered>,
    /// Pods that this program gave a message, by key.
    own: BTreeSet<String>,
    /// Pods among these and below them that still work for other clients, by key.
    engaged: BTreeSet<String>,
    /// The Pod that the person who types has selected, by key.
    current: Option<String>,
    numbers: Numbers,
    /// Whether no line of this program can decide a request: a shell does.
    decided_elsewhere: bool,
    /// Requests that were shown or decided here, by id.
    handled: BTreeSet<String>,
    /// The first request that was denied, or question that was declined, because no person was there.
    refused: Option<String>,
}

/// The most characters of what a Pod is about.
const ABOUT: usize = 200;
/// Why a question has no answer without a person.
const NO_PERSON: &str = "no person is here to answer";

/// The handling of an approval request.
pub enum Handling {
    /// No note is printed here: the Pod reports the outcome itself.
    Decide { verdict: Verdict, note: Option<String> },
    /// The person decides; the note shows the request and how it can be decided.
    Show { note: String },
}

impl Inbox {
    /// From now on requests are handled.
    pub fn begin(&mut self, allow: Vec<Pattern>, unanswered: Unanswered) {
        self.allow = allow;
        self.unanswered = Some(unanswered);
    }

    /// From now on the requests of this Pod and of those below it are handled here; those of the
    /// `engaged` Pods only after they have been idle.
    pub fn take_charge_of(&mut self, pod: &PodName, engaged: &[PodName]) {
        self.own.insert(pod.key());
        self.engaged.extend(engaged.iter().map(PodName::key));
    }

    /// Whether this program gave this very Pod a message.
    pub fn was_given_to(&self, pod: &PodName) -> bool {
        self.own.contains(&pod.key())
    }

    /// A Pod is idle: its next run does not belong to other clients any more.
    pub fn became_idle(&mut self, pod: &PodName) {
        self.engaged.remove(&pod.key());
    }

    /// Whether a Pod works for another client's message now; its requests are left to that client.
    pub fn works_for_others(&mut self, pod: &PodName, others: bool) {
        if others {
            self.engaged.insert(pod.key());
        } else {
            self.engaged.remove(&pod.key());
        }
    }

    /// The person who types selects this Pod: its requests and those of the Pods below it are shown.
    pub fn select(&mut self, pod: &PodName) {
        self.current = Some(pod.key());
    }

    /// Whether a Pod with these above it works for a message that this program sent.
    pub fn is_own<'a>(
        &self,
        pod: &PodName,
        lineage: impl IntoIterator<Item = &'a PodName>,
    ) -> bool {
        let works_here =
            |pod: &PodName| self.own.contains(&pod.key()) && !self.engaged.contains(&pod.key());
        let below = || lineage.into_iter().any(works_here);
        works_here(pod) || (!self.engaged.contains(&pod.key()) && below())
    }

    /// This program reads no lines: a request is shown with the words with which a shell decides it.
    pub fn decided_elsewhere(&mut self) {
        self.decided_elsewhere = true;
    }

    /// Standard input ended: from now on no person decides here.
    pub fn input_ended(&mut self, unanswered: Unanswered) {
        self.decided_elsewhere();
        self.unanswered = Some(unanswered);
        if unanswered == Unanswered::End {
            self.handled.clear();
        }
    }

    /// Whether a Pod that needs a person is waited for.
    pub fn waits_for_person(&self) -> bool {
        self.unanswered == Some(Unanswered::Wait)
    }

    /// Whether the request that a Pod waits for is decided here. The request stays open until the Pod continues: the
    /// host reports the new state of the Pod before the decision.
    pub fn decides_for(&self, pod: &PodName, open: &[ApprovalRequest]) -> bool {
        open.iter().any(|request| request.is_of(pod) && self.is_handled_here(request))
    }

    /// Gives each of the undecided requests its number.
    pub fn number(&mut self, open: &[ApprovalRequest]) {
        for request in open {
            self.numbers.of(&request.id);
        }
    }

    /// The next of the undecided requests that has to be handled, and how.
    pub fn next(&mut self, open: &[ApprovalRequest]) -> Option<(ApprovalRequest, Handling)> {
        let unanswered = self.unanswered?;
        let is_next = |approval: &&ApprovalRequest| {
            self.is_handled_here(approval) && !self.handled.contains(&approval.id)
        };
        let approval = open.iter().find(is_next)?.clone();
        self.handled.insert(approval.id.clone());
        let handling = self.handle(&approval, open, unanswered);
        Some((approval, handling))
    }

    fn is_handled_here(&self, approval: &ApprovalRequest) -> bool {
        if !approval.is_of_pod() {
            return false;
        }
        let mut chain = std::iter::once(&approval.pod).chain(&approval.lineage);
        let is_current = |pod: &PodName| self.current.as_ref() == Some(&pod.key());
        self.is_own(&approval.pod, &approval.lineage)
            || (self.waits_for_person() && chain.any(is_current))
    }

    fn handle(
        &mut self,
        approval: &ApprovalRequest,
        open: &[ApprovalRequest],
        unanswered: Unanswered,
    ) -> Handling {
        let subject = subject_of(approval);
        let passes = |rule: &&Pattern| matches(rule, Action::Allow, &subject);
        let is_question = approval.question.is_some();
        if let Some(rule) = self.allow.iter().find(passes).filter(|_| !is_question) {
            let note =
                format!("allowed by --allow {}: {}", quoted(rule), spelled(&approval.line()));
            return Handling::Decide { verdict: Verdict::Once, note: Some(note) };
        }
        if unanswered == Unanswered::Wait {
            let note = match self.decided_elsewhere {
                true => shown(&[name_of(approval, open).into()], from_ref(&approval), Way::Shell),
                false => numbered(&mut self.numbers, approval),
            };
            return Handling::Show { note };
        }
        if is_question {
            // The model goes on by itself.
            let note = format!("not answered: {}: {NO_PERSON}", spelled(&approval.line()));
            self.note_denied(&note);
            let reason = format!("{NO_PERSON}; go on by yourself, and say what you assumed");
            return Handling::Decide { verdict: Verdict::Deny { reason }, note: Some(note) };
        }
        let way = match !approval.credentials.is_empty() && !passes(&&approval.rule) {
            true => {
                "no rule gives it a credential, and --ask wait lets a person allow it once".into()
            }
            false => format!("--allow {} lets it pass", quoted(&approval.rule)),
        };
        if is_about_a_server(approval) {
            // The model asked for nothing, and the run goes on without the server or its tools.
            let (tool, server) = (&approval.tool, &approval.action);
            let reason = format!(
                "no person is here to decide; {way}, and a [[permissions.rule]] in config.toml does so in every run: \
                 tool = \"{tool}\", pattern = \"{server}\", action = \"allow\""
            );
            return Handling::Decide { verdict: Verdict::Deny { reason }, note: None };
        }
        let reason = format!("no person is here to decide; {way}");
        let note = format!("denied: {}: {}", spelled(&approval.line()), spelled(&reason));
        self.note_denied(&note);
        Handling::Decide { verdict: Verdict::Deny { reason }, note: Some(note) }
    }

    /// There was no room to show this request: it is shown again when there is.
    pub fn show_again(&mut self, id: &str) {
        self.handled.remove(id);
    }

    /// A request was denied, or a question was declined, and no person had seen it.
    pub fn note_denied(&mut self, sentence: &str) {
        self.refused.get_or_insert_with(|| sentence.to_owned());
    }

    /// The exit status of the program if everything else succeeded.
    pub fn outcome(&self) -> Result<(), Failure> {
        match &self.refused {
            // The sentence was printed when the request was denied.
            Some(_) => Err(Failure::new(Exit::Refused, String::new())),
            None => Ok(()),
        }
    }

    /// What waits for a person, equal requests together, as it is read and decided in this way: only lines of one
    /// conversation share numbers.
    pub fn listed(&mut self, family: &Family, way: Way) -> Vec<String> {
        if way == Way::Input {
            self.numbers.list_begins();
        }
        let mut name = |request: &ApprovalRequest| match way {
            Way::Input => self.numbers.show(&request.id).to_string(),
            _ => name_of(request, family.approvals()).to_owned(),
        };
        let text = |item: Item<'_>| match item {
            Item::Approval(group) => {
                let names: Vec<String> = group.iter().map(|request| name(request)).collect();
                shown(&names, &group, way)
            }
            Item::Pod(info, matter) => of_pod(info, matter, family, way),
        };
        inbox::items(family).into_iter().map(text).collect()
    }

    /// From now on requests are numbered for a person at a terminal.
    pub fn number_at_a_terminal(&mut self) {
        self.numbers = Numbers::at_a_terminal();
    }

    /// The numbers under which requests were shown.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// The person decided this request.
    pub fn decided(&mut self, id: &str) {
        self.numbers.decided(id);
    }
}

fn numbered(numbers: &mut Numbers, request: &ApprovalRequest) -> String {
    let number = numbers.show(&request.id);
    shown(&[number.to_string()], from_ref(&request), Way::Input)
}

/// A request, or several equal ones with their names, as a person judges it: the action is on one line, each line of the
/// details stands behind a bar, and every character that a terminal would not show is spelled.
fn shown(names: &[String], group: &[&ApprovalRequest], way: Way) -> String {
    let ([name, other_names @ ..], [request, others @ ..]) = (names, group) else {
        return String::new();
    };
    if let Some(question) = &request.question {
        return of_question(name, request, question, way) + &equal_ones(other_names, others);
    }
    let reason =
        request.reason.as_ref().map(|text| format!(" (the model says: {})", spelled(text)));
    let details: String = (request.details.iter())
        .flat_map(|text| text.split('\n'))
        .map(|line| format!("\n    | {}", SafeText::spelled_row(line)))
        .collect();
    let opens = |path| format!("\n    opens {}, for this command only", scope::outside(path));
    let runs = |script| {
        let (label, text) = scope::hashed(request, script);
        format!("\n    {label} {text}")
    };
    let gives = |credential: &Credential| {
        let credential = SafeText::spelled(credential.to_string());
        format!("\n    gives the credential {credential}, to this command only")
    };
    let details: String = [details]
        .into_iter()
        .chain(request.outside.iter().map(opens))
        .chain(request.credentials.iter().map(gives))
        .chain(request.scripts.iter().map(runs))
        .collect();
    let typed = |line: &str| spell(line, way);
    if request.client.is_some() {
        return of_client(name, request, &details, &typed) + &equal_ones(other_names, others);
    }
    let head = format!(
        "[{name}] {}: {} {}{details}\n    needs {}{}; {}",
        askers(group),
        spelled(&request.tool),
        SafeText::spelled_row(&request.action),
        spelled(&request.because),
        reason.unwrap_or_default(),
        typed(&format!("allow {name}")),
    );
    let deny = typed(&format!("deny {name} <why>"));
    let alone = if others.is_empty() { String::new() } else { format!(" ({} alone)", request.pod) };
    let (each, deny) = match others {
        [] => (String::new(), deny),
        _ => (
            format!(", {} (each of them once)", typed(&format!("allow {name} each"))),
            format!("{deny}, {}", typed(&format!("deny {name} each <why>"))),
        ),
    };
    let equal = equal_ones(other_names, others);
    if let Some(why) = once_only(request) {
        return format!("{head}{alone}{each} ({why}), {deny}{equal}");
    }
    let outside = request.lease.is_some();
    let once = if outside { " (this call only)" } else { "" };
    let root = equal::roots(group).into_iter().next();
    let root = root.map(|root| format!(", {}", typed(&format!("allow {name} tree --of {root}"))));
    let lasts =
        if outside { ", which grants the path until it is revoked or the pod stops" } else { "" };
    let limit = limit(&request.rule).map(|limit| format!("; {limit}")).unwrap_or_default();
    let tree = match only_for_pods(&request.rule) {
        Some(_) => String::new(),
        None => format!(", {}{}", typed(&format!("allow {name} tree")), root.unwrap_or_default()),
    };
    format!(
        "{head}{once}{alone}{each}, {}{tree} (writes {}{lasts}{limit}), {deny}{equal}",
        typed(&format!("allow {name} pod")),
        quoted(&request.rule),
    )
}

/// The Pods that ask: `one asks`, `one, two ask`.
fn askers(group: &[&ApprovalRequest]) -> String {
    let pods: Vec<String> = group.iter().map(|request| request.asker()).collect();
    format!("{} {}", pods.join(", "), if pods.len() == 1 { "asks" } else { "ask" })
}

/// The line that names the other requests of a group.
fn equal_ones(names: &[String], others: &[&ApprovalRequest]) -> String {
    let of = |(name, request): (&String, &&ApprovalRequest)| match request.client {
        None => format!("[{name}] {}", request.pod),
        Some(_) => format!("[{name}]"),
    };
    match others {
        [] => String::new(),
        _ => format!(
            "\n    equal: {}",
            names.iter().zip(others).map(of).collect::<Vec<_>>().join(", ")
        ),
    }
}

/// A question: its text, then a row for each choice or field, then how it is answered.
fn of_question(name: &str, request: &ApprovalRequest, asked: &Question, way: Way) -> String {
    let rows = question::rows(asked);
    let rows: String = rows.iter().map(|row| format!("\n    | {row}")).collect();
    format!(
        "[{name}] {} asks: {}{rows}\n    wants {}; {}, {}",
        question::asker(request),
        SafeText::spelled_row(&request.action),
        question::wants(asked),
        spell(&format!("answer {name} {}", question::form(asked)), way),
        spell(&format!("deny {name} <why>"), way),
    )
}

/// A Pod without a request: why it waits and what it is about, then what can be done about it.
fn of_pod(info: &PodInfo, matter: Matter, family: &Family, way: Way) -> String {
    let said = |text: String| match matter {
        Matter::Needs | Matter::Failed => worded(&text, way, family, Some(&info.name)),
        // A model wrote these.
        Matter::InCircles | Matter::Finished => text,
    };
    let why = said(matter::why(info, matter, family));
    let about = matter::about(info, matter).filter(|about| !about.is_empty());
    let about = about.map(|about| format!(": {}", SafeText::brief(said(about), ABOUT)));
    let typed = |step: Step| match step.by {
        By::Verb(line) => spell(&line, way),
        By::Message(text) => spell(&format!("send {} {}", info.name, shell_quoted(text)), way),
    };
    let mut steps: Vec<String> =
        matter::steps(&Item::Pod(info, matter)).into_iter().map(typed).collect();
    steps.push(spell(&format!("explain {}", info.name), way));
    let about = about.unwrap_or_default();
    format!("{}: {}{about}\n    {}", family.path(info), spelled(&why), steps.join(", "))
}

/// The request of an MCP client.
fn of_client(
    name: &str,
    request: &ApprovalRequest,
    details: &str,
    typed: &impl Fn(&str) -> String,
) -> String {
    format!(
        "[{name}] {} asks: {} {}{details}\n    needs {}; {}, {} (for good), {}",
        request.asker(),
        spelled(&request.tool),
        SafeText::spelled_row(&request.action),
        spelled(&request.because),
        typed(&format!("allow {name}")),
        typed(&format!("allow {name} client")),
        typed(&format!("deny {name} <why>")),
    )
}

fn spelled(text: &str) -> SafeText<'_> {
    SafeText::spelled(text)
}

/// A rule as a shell takes it.
fn quoted(rule: &Pattern) -> String {
    SafeText::spelled(shell_quoted(&rule.to_string())).into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::{self, End, Known, Next, Said, Why};
    use crate::wording::rule::ONCE_ONLY;
    use std::collections::BTreeMap;
    use std::ops::{Deref, DerefMut};
    use std::path::Path;
    use yoi::client::family::Family;
    use yoi::protocol::{CircleKind, Circling, State};
    use yoi::protocol::{Event, Method, ScriptHash};

    /// An inbox over the requests of a family.
    struct Requests {
        inbox: Inbox,
        family: Family,
    }

    impl Requests {
        fn apply(&mut self, event: &Event) {
            self.family.apply(event);
            self.inbox.number(self.family.approvals());
        }

        fn next(&mut self) -> Option<(ApprovalRequest, Handling)> {
            self.inbox.next(self.family.approvals())
        }

        fn listed(&mut self, way: Way) -> Vec<String> {
            self.inbox.listed(&self.family, way)
        }
    }

    impl Deref for Requests {
        type Target = Inbox;

        fn deref(&self) -> &Inbox {
            &self.inbox
        }
    }

    impl DerefMut for Requests {
        fn deref_mut(&mut self) -> &mut Inbox {
            &mut self.inbox
        }
    }

    fn name(text: &str) -> PodName {
        PodName::parse(text).unwrap()
    }

    fn approval(id: &str, pod: &str) -> ApprovalRequest {
        ApprovalRequest {
            lineage: vec![name("top")],
            call_id: "c".into(),
            action: "cargo fetch".into(),
            because: "network access".into(),
            reason: Some("crates".into()),
            ..ApprovalRequest::new(
                id.into(),
                name(pod),
                "Bash",
                Pattern { tool: "Bash+network".into(), pattern: "cargo fetch".into() },
            )
        }
    }

    fn inbox(allow: Vec<Pattern>, unanswered: Unanswered) -> Requests {
        let mut inbox = Inbox::default();
        inbox.begin(allow, unanswered);
        Requests { inbox, family: Family::default() }
    }

    /// What a line decides in this way; the sentence of a refusal or of a confirmation otherwise.
    fn decided(inbox: &Requests, line: &str, way: Way) -> Result<Vec<(String, Verdict)>, String> {
        let known = Known {
            family: &inbox.family,
            selected: None,
            pods_are_marked: false,
            numbers: Some(inbox.numbers()).filter(|_| way == Way::Input),
            cwd: Path::new("/"),
            workspace: Path::new("/"),
            model: None,
            providers: &[],
            absence: None,
            effort: None,
            env: &BTreeMap::new(),
            now: 0,
            zone: &jiff::tz::TimeZone::UTC,
            way,
            with_keys: &crate::screen::keys::with_default_keys,
            is_written: false,
        };
        let mut dialogue = verb::line::read(line, way)?.dialogue;
        let decision = |request: verb::Request| match request.method {
            Method::Decide { approval, verdict } => (approval, verdict),
            other => panic!("{line}: {other:?}"),
        };
        match dialogue.next(&known, None) {
            Next::Call(requests) => Ok(requests.into_iter().map(decision).collect()),
            Next::Confirm(confirm) => Err(confirm.question),
            Next::End(End { said: Said::Refused(Why::Usage, why), .. }) => Err(why),
            other => panic!("{line}: {other:?}"),
        }
    }

    /// The same of a line that decides one request.
    fn given(inbox: &mut Requests, line: &str, way: Way) -> Result<(String, Verdict), String> {
        let decision = decided(inbox, line, way)?.pop().unwrap_or_else(|| panic!("{line}"));
        inbox.decided(&decision.0);
        Ok(decision)
    }

    fn typed(inbox: &mut Requests, line: &str) -> Result<(String, Verdict), String> {
        given(inbox, line, Way::Input)
    }

    fn requested(inbox: &mut Requests, approval: ApprovalRequest) {
        inbox.apply(&Event::ApprovalRequested { approval: Box::new(approval) });
    }

    #[test]
    fn an_unattended_request_is_denied_with_the_rule_that_allows_it() {
        let mut inbox = inbox(vec![], Unanswered::End);
        inbox.take_charge_of(&name("alice"), &[]);
        requested(&mut inbox, approval("1", "alice"));
        let Some((_, Handling::Decide { verdict, .. })) = inbox.next() else { panic!() };
        let reason =
            "no person is here to decide; --allow 'Bash+network:cargo fetch' lets it pass".into();
        assert_eq!(verdict, Verdict::Deny { reason });
        assert!(inbox.next().is_none(), "each is handled once");
        assert_eq!(inbox.outcome().unwrap_err().exit, Exit::Refused);
    }

    #[test]
    fn a_request_that_is_allowed_once_only_names_no_rule_and_takes_none() {
        let mut inbox = inbox(vec![], Unanswered::Wait);
        let scripts = vec![ScriptHash::unread("/w/x.sh".into())];
        requested(&mut inbox, ApprovalRequest { scripts, ..approval("1", "alice") });
        let shown = inbox.listed(Way::Input).remove(0);
        let ways = format!("; :allow 1 ({ONCE_ONLY}), :deny 1 <why>");
        assert!(shown.ends_with(&ways), "{shown}");
        for wider in [":allow 1 pod", ":allow 1 tree", ":allow 1 pod Bash:*"] {
            assert_eq!(typed(&mut inbox, wider), Err(ONCE_ONLY.to_owned()));
        }
        assert_eq!(typed(&mut inbox, ":allow 1"), Ok(("1".into(), Verdict::Once)));
    }

    #[test]
    fn a_server_that_no_person_allows_is_no_refusal_and_its_denial_names_the_rule_for_every_run() {
        let mut inbox = inbox(vec![], Unanswered::End);
        inbox.take_charge_of(&name("alice"), &[]);
        let rule = Pattern { tool: "McpServer+sha256=ab".into(), pattern: "git".into() };
        let (tool, action) = ("McpServer".to_owned(), "git".to_owned());
        requested(&mut inbox, ApprovalRequest { tool, action, rule, ..approval("1", "alice") });
        let Some((_, Handling::Decide { verdict, note: None })) = inbox.next() else { panic!() };
        let Verdict::Deny { reason } = verdict else { panic!("{verdict:?}") };
        assert!(reason.contains("--allow 'McpServer+sha256=ab:git' lets it pass"), "{reason}");
        let lasting = r#"tool = "McpServer", pattern = "git", action = "allow""#;
        assert!(reason.contains(lasting), "{reason}");
        assert!(inbox.outcome().is_ok(), "the model asked for nothing");
    }

    #[test]
    fn a_rule_of_the_command_line_lets_pass_and_nothing_was_refused() {
        let rule = Pattern { tool: "Bash".into(), pattern: "cargo *".into() };
        let mut inbox = inbox(vec![rule], Unanswered::End);
        inbox.take_charge_of(&name("top"), &[]);
        requested(&mut inbox, approval("1", "alice"));
        let Some((_, Handling::Decide { verdict, .. })) = inbox.next() else { panic!() };
        assert_eq!(verdict, Verdict::Once);
        assert!(inbox.outcome().is_ok());
    }

    #[test]
    fn an_unattended_question_of_a_model_or_a_server_stays_unanswered_whatever_is_allowed() {
        for server in [None, Some("git".to_owned())] {
            let every = Pattern { tool: "*".into(), pattern: "*".into() };
            let mut inbox = inbox(vec![every], Unanswered::End);
            inbox.take_charge_of(&name("alice"), &[]);
            let question = Some(Question { server, ..Question::of_model(vec![]) });
            requested(&mut inbox, ApprovalRequest { question, ..approval("1", "alice") });
            let Some((_, Handling::Decide { verdict, note })) = inbox.next() else { panic!() };
            assert!(matches!(verdict, Verdict::Deny { .. }), "{verdict:?}");
            assert!(note.is_some_and(|note| note.starts_with("not answered: ")));
            assert_eq!(inbox.outcome().unwrap_err().exit, Exit::Refused);
        }
    }

    #[test]
    fn requests_of_other_pods_are_not_decided_here() {
        let mut inbox = inbox(vec![], Unanswered::End);
        inbox.take_charge_of(&name("bob"), &[]);
        requested(&mut inbox, approval("1", "alice"));
        assert!(inbox.next().is_none());
    }

    #[test]
    fn a_request_that_a_child_makes_for_other_clients_is_left_to_them() {
        let mut inbox = inbox(vec![], Unanswered::End);
        inbox.take_charge_of(&name("top"), &[name("alice")]);
        requested(&mut inbox, approval("1", "alice"));
        assert!(inbox.next().is_none());
        inbox.became_idle(&name("alice"));
        requested(&mut inbox, approval("2", "alice"));
        assert!(inbox.next().is_some());
    }

    #[test]
    fn a_request_of_a_run_for_another_programs_message_is_left_to_that_program() {
        let mut inbox = inbox(vec![], Unanswered::End);
        inbox.take_charge_of(&name("alice"), &[]);
        inbox.works_for_others(&name("alice"), true);
        requested(&mut inbox, approval("1", "alice"));
        assert!(inbox.next().is_none());
        inbox.works_for_others(&name("alice"), false);
        assert!(inbox.next().is_some());
    }

    #[test]
    fn a_request_of_the_shown_pod_is_printed_and_waits_for_the_typing_person() {
        let mut inbox = inbox(vec![], Unanswered::Wait);
        inbox.select(&name("top"));
        requested(&mut inbox, approval("1", "alice"));
        assert!(matches!(inbox.next(), Some((_, Handling::Show { .. }))));
        inbox.input_ended(Unanswered::End);
        assert!(inbox.next().is_none());
    }

    #[test]
    fn a_typed_line_decides_the_request_of_its_number_or_the_only_one_that_was_shown() {
        let mut inbox = inbox(vec![], Unanswered::Wait);
        inbox.take_charge_of(&name("alice"), &[]);
        inbox.take_charge_of(&name("bob"), &[]);
        let once = |id: &str| Ok((id.to_owned(), Verdict::Once));
        requested(&mut inbox, approval("1", "alice"));
        let none = "no request was shown that waits; :inbox lists them".to_owned();
        assert_eq!(typed(&mut inbox, ":allow"), Err(none));
        while inbox.next().is_some() {}
        assert_eq!(typed(&mut inbox, ":allow"), once("1"));
        requested(&mut inbox, approval("2", "bob"));
        requested(&mut inbox, approval("3", "bob"));
        while inbox.next().is_some() {}
        let several = "2 requests were shown; say the number of the one you mean, as in `:allow 3`"
            .to_owned();
        assert_eq!(typed(&mut inbox, ":allow"), Err(several));
        let pod =
            Verdict::Pod { rule: Some(Pattern { tool: "Bash".into(), pattern: "cargo *".into() }) };
        assert_eq!(typed(&mut inbox, ":allow 2 pod Bash:cargo *"), Ok(("2".into(), pod)));
        assert!(typed(&mut inbox, ":allow 2 pod cargo").is_err(), "no tool");
        let deny = Verdict::Deny { reason: "not now".into() };
        assert_eq!(typed(&mut inbox, ":deny 3 not now"), Ok(("3".into(), deny)));
        assert!(typed(&mut inbox, ":allow 2 for ever").is_err());
    }

    #[test]
    fn the_number_of_a_withdrawn_request_allows_no_other_one() {
        let mut inbox = inbox(vec![], Unanswered::Wait);
        requested(&mut inbox, approval("1", "alice"));
        requested(&mut inbox, approval("2", "bob"));
        let why = "the pod stopped".to_owned();
        let verdict = Verdict::Withdrawn { why };
        let pod = name("alice");
        inbox.apply(&Event::ApprovalDecided { pod, approval: "1".into(), verdict });
        let refused = typed(&mut inbox, ":allow 1");
        let over = "request 1 does not wait any more: it was withdrawn, or decided elsewhere";
        assert_eq!(refused, Err(over.to_owned()));
        assert_eq!(typed(&mut inbox, ":allow 2"), Ok(("2".into(), Verdict::Once)));
    }

    #[test]
    fn outside_of_a_conversation_a_request_is_named_by_the_end_of_its_id() {
        let mut inbox = inbox(vec![], Unanswered::Wait);
        let (one, two) =
            ("0199a1b2-0000-7000-8000-00000aaaaaa1", "0199a1b2-0000-7000-8000-0000baaaaaa1");
        requested(&mut inbox, approval(one, "alice"));
        let listed = inbox.listed(Way::Shell).remove(0);
        assert!(listed.starts_with("[aaaaa1] alice asks: Bash cargo fetch"), "{listed}");
        assert!(listed.contains("`yoi allow aaaaa1`, `yoi allow aaaaa1 pod`"), "{listed}");
        let once = |id: &str| Ok((id.to_owned(), Verdict::Once));
        assert_eq!(given(&mut inbox, "allow aaaaa1", Way::Shell), once(one));
        requested(&mut inbox, approval(two, "bob"));
        let listed = inbox.listed(Way::Command).remove(0);
        assert!(listed.ends_with("\n    equal: [baaaaaa1] bob"), "{listed}");
        let several = "more than one id ends with `aaaaa1`: type more of it".to_owned();
        assert_eq!(given(&mut inbox, "allow aaaaa1", Way::Command), Err(several));
        assert_eq!(given(&mut inbox, "allow baaaaaa1", Way::Command), once(two));
        assert_eq!(given(&mut inbox, &format!("allow {one}"), Way::Shell), once(one));
        let none = "no request `1` waits: `yoi inbox` shows those that do".to_owned();
        assert_eq!(given(&mut inbox, "allow 1", Way::Shell), Err(none));
        // A Pod names its only request; a question is none that is allowed.
        // It may wait for something else by now, so it is said what.
        let line = "alice: Bash cargo fetch (network) (needs network access): allow it?";
        assert_eq!(given(&mut inbox, "allow ALICE", Way::Shell), Err(line.to_owned()));
        let each = given(&mut inbox, "allow alice each", Way::Shell).expect_err("a question");
        assert!(each.starts_with("alice, bob: Bash cargo fetch"), "{each}");
        let rule = given(&mut inbox, "allow alice tree", Way::Shell).expect_err("a question");
        assert!(rule.starts_with(line) && rule.contains("always allow"), "{rule}");
        let id = "0199a1b2-0000-7000-8000-00000bbbbbb2";
        let question = Some(Question::of_model(vec!["total".into()]));
        requested(&mut inbox, ApprovalRequest { question, ..approval(id, "alice") });
        assert_eq!(given(&mut inbox, "allow alice", Way::Shell), Err(line.to_owned()));
        let several = given(&mut inbox, "deny alice", Way::Shell).expect_err("two requests");
        assert!(several.starts_with("alice waits with 2 requests: say the id of one"), "{several}");
        inbox.apply(&Event::ApprovalDecided {
            approval: one.into(),
            pod: PodName::parse("alice").expect("a name"),
            verdict: Verdict::Once,
        });
        let wrong = given(&mut inbox, "allow alice", Way::Shell).expect_err("a question");
        assert!(wrong.contains("is a question"), "{wrong}");
        let unnamed = "say which request: :inbox shows those that wait".to_owned();
        assert_eq!(given(&mut inbox, "allow", Way::Command), Err(unnamed));
        let question = "always allow Bash+network: cargo fetch for bob and its children?";
        assert_eq!(given(&mut inbox, "allow baaaaaa1 tree", Way::Shell), Err(question.to_owned()));
    }

    #[test]
    fn pods_without_a_request_are_listed_with_what_can_be_done_in_the_order_of_the_screen() {
        let mut inbox = inbox(vec![], Unanswered::Wait);
        let pod = crate::screen::app::tests::pod;
        let because =
            |name, state, why: &str| PodInfo { why: Some(why.into()), ..pod(name, state) };
        let circling = Circling {
            kind: CircleKind::Failure,
            times: 6,
            call: "Bash :resume bob \x1b[2J".into(),
            since: 0,
        };
        let done = PodInfo {
            unseen: true,
            activity: Some("**all** green".into()),
            ..pod("done", State::Idle)
        };
        let pods = vec![
            done,
            PodInfo { circling: Some(circling), ..pod("round", State::Running) },
            PodInfo {
                parent: Some(name("round")),
                ..because("kid", State::Failed, "HTTP 500: try :resume")
            },
            because("keyless", State::NeedsYou, "no key for x: see :inbox"),
            pod("calm", State::Idle),
        ];
        inbox.family.replace(pods, Vec::new(), vec![approval("000001", "asker")]);
        let listed = inbox.listed(Way::Shell);
        assert!(listed[0].starts_with("[000001] asker asks"), "{listed:?}");
        assert_eq!(
            listed[1..],
            [
                "keyless: no key for x: see `yoi inbox`\n    `yoi explain keyless`",
                "round: same failure 6×: Bash :resume bob \\x1b[2J\n    `yoi send round 'You do the same again and again \
             with the same outcome: say what blocks you, or try another way.'`, `yoi pause round`, `yoi stop round`, \
             `yoi explain round`",
                "done: done, not seen: all green\n    `yoi explain done`",
            ]
        );
        assert!(
            inbox.listed(Way::Input)[1].ends_with("no key for x: see :inbox\n    :explain keyless")
        );
    }

    #[test]
    fn equal_requests_are_one_entry_and_are_decided_together_or_for_the_pod_above_them() {
        let mut inbox = inbox(vec![], Unanswered::Wait);
        let ids = ["000001", "000002", "000003"];
        for (id, pod) in ids.into_iter().zip(["one", "two", "three"]) {
            requested(&mut inbox, approval(id, pod));
        }
        let other = ApprovalRequest { action: "cargo publish".into(), ..approval("000004", "one") };
        requested(&mut inbox, other);
        let listed = inbox.listed(Way::Shell);
        assert_eq!(listed.len(), 2, "{listed:?}");
        assert!(listed[0].starts_with("[000001] one, two, three ask: Bash cargo fetch\n"));
        let ways = "`yoi allow 000001` (one alone), `yoi allow 000001 each` (each of them once), `yoi allow 000001 pod`, \
                    `yoi allow 000001 tree`, `yoi allow 000001 tree --of top` (writes ";
        assert!(listed[0].contains(ways), "{}", listed[0]);
        assert!(listed[0].ends_with("\n    equal: [000002] two, [000003] three"), "{}", listed[0]);
        let numbered = inbox.listed(Way::Input);
        assert!(numbered[0].contains("equal: [2] two, [3] three"), "{}", numbered[0]);
        let each = decided(&inbox, "allow 000002 each", Way::Shell).unwrap();
        assert_eq!(each, ids.map(|id| (id.to_owned(), Verdict::Once)));
        assert!(listed[0].contains("`yoi deny 000001 <why>`, `yoi deny 000001 each <why>`"));
        let deny = |reason: &str| Verdict::Deny { reason: reason.to_owned() };
        for (line, way) in
            [("deny 000002 each not  today", Way::Shell), (":deny 2 each not  today", Way::Input)]
        {
            let denied = decided(&inbox, line, way).unwrap();
            assert_eq!(denied, ids.map(|id| (id.to_owned(), deny("not  today"))), "{line}");
        }
        let alone = decided(&inbox, ":deny 2 eachother", Way::Input);
        assert_eq!(alone, Ok(vec![("000002".into(), deny("eachother"))]));
        let silent = decided(&inbox, ":deny 2 each", Way::Input).unwrap();
        assert_eq!(silent, ids.map(|id| (id.to_owned(), deny(""))));
        let top = Verdict::Tree { rule: None, of: Some(name("top")) };
        for line in [":allow 2 tree --of top", ":allow 2 tree --of=top", ":allow --of top 2 tree"] {
            let given = decided(&inbox, line, Way::Input);
            assert_eq!(given, Ok(vec![("000002".into(), top.clone())]), "{line}");
        }
        let rule = Some(Pattern { tool: "Bash".into(), pattern: "cargo *".into() });
        let wide = Verdict::Tree { rule, of: Some(name("top")) };
        assert_eq!(
            typed(&mut inbox, ":allow 2 tree --of top Bash:cargo *"),
            Ok(("000002".into(), wide))
        );
        let own = Verdict::Tree { rule: None, of: None };
        assert_eq!(typed(&mut inbox, ":allow 3 tree --of three"), Ok(("000003".into(), own)));
        let question =
            "always allow Bash+network: cargo fetch for top and its children?".to_owned();
        let line = "allow 000002 tree --of top";
        assert_eq!(given(&mut inbox, line, Way::Shell), Err(question));
        let wrong = "--of goes with tree, as in `tree --of lead`".to_owned();
        assert_eq!(typed(&mut inbox, ":allow 1 pod --of top"), Err(wrong));
        assert!(typed(&mut inbox, ":allow 1 tree --of").is_err());
        assert!(typed(&mut inbox, ":allow 1 each Bash:*").is_err());
    }

    #[test]
    fn a_request_outside_the_scope_says_how_long_each_decision_opens_it() {
        let mut inbox = inbox(vec![], Unanswered::Wait);
        let lease = Some(yoi::scope::Rule::new("/else", yoi::scope::Permission::Read));
        requested(&mut inbox, ApprovalRequest { lease, ..approval("1", "alice") });
        let shown = inbox.listed(Way::Input).remove(0);
        assert!(shown.contains(":allow 1 (this call only), :allow 1 pod, "), "{shown}");
        assert!(
            shown.contains(
                ", which grants the path until it is revoked or the pod stops; files that "
            ),
            "{shown}"
        );
    }

    #[test]
    fn a_request_hides_nothing_of_what_it_wants() {
        let mut inbox = inbox(vec![], Unanswered::Wait);
        let action = "ls\u{1b}[2K\r\n[2] bob asks: Bash true".to_owned();
        requested(&mut inbox, ApprovalRequest { action, ..approval("1", "alice") });
        let shown = inbox.listed(Way::Input).remove(0);
        let expected = "[1] alice asks: Bash ls\\x1b[2K\\r⏎[2] bob asks: Bash true";
        assert_eq!(shown.lines().next(), Some(expected), "{shown}");
        assert_eq!(shown.lines().count(), 2);
        let details = Some("+ a\u{1b}[2K\n+ [3] bob asks: Bash true".to_owned());
        requested(&mut inbox, ApprovalRequest { details, ..approval("2", "alice") });
        let shown = inbox.listed(Way::Input).remove(1);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1..3], ["    | + a\\x1b[2K", "    | + [3] bob asks: Bash true"]);
        let action = format!("ls{}; rm x", " ".repeat(3000));
        let rule = Pattern { tool: "Bash".into(), pattern: action.clone() };
        requested(&mut inbox, ApprovalRequest { action, rule, ..approval("3", "alice") });
        let shown = inbox.listed(Way::Input).remove(2);
        assert_eq!(shown.matches("ls⟨3000 blanks⟩; rm x").count(), 2, "{shown}");
    }
}
