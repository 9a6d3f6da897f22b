//! What a Pod does now or why it waits, in one short sentence, by the facts that the host sends.

use crate::theme::Role;
use crate::wording::age::clock;
use crate::wording::duration::in_words;
use crate::wording::plain::plain;
use crate::wording::{state, wait};
use jiff::tz::TimeZone;
use std::borrow::Cow;
use yoi::client::family::{Counts, Family};
use yoi::protocol::approval::{CHANGED_TOOLS, START_SERVER};
use yoi::protocol::limit_met::LimitKind;
use yoi::protocol::{ApprovalRequest, CircleKind, Circling, PodInfo, RunResult, State};
use yoi::scope::Permission;
use yoi::text::SafeText;

/// The most characters of a sentence and of what follows it.
const LONGEST: usize = 200;
/// The longest reason that is its own short form.
const SHORT: usize = 10;
/// The need of paths outside the scope.
const OUTSIDE: &str = "outside";
const CREDENTIAL: &str = "credential";

/// What a row says about a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// The sentence.
    pub text: String,
    /// What follows the sentence where there is room, with its separator.
    pub rest: String,
    /// The reason in a word or two, which no row leaves out; empty where the shape of the row says enough.
    pub short: String,
    /// How the sentence and its short form look.
    pub role: Role,
}

impl Now {
    /// Something that goes as it should.
    fn plain(text: impl AsRef<str>) -> Self {
        Self { text: safe(text), role: Role::Dim, ..Self::default() }
    }

    /// Something that a person should see.
    fn reason(role: Role, text: impl AsRef<str>, short: impl AsRef<str>) -> Self {
        Self { text: safe(text), short: safe(short), role, ..Self::default() }
    }

    /// A reason that is short itself, or else has this short form.
    fn reason_or(role: Role, text: &str, otherwise: &str) -> Self {
        let text = safe(text);
        let short = if text.chars().count() <= SHORT { &text } else { otherwise };
        Self::reason(role, &text, short)
    }

    fn with(mut self, separator: &str, rest: &str) -> Self {
        if !rest.is_empty() {
            self.rest = format!("{separator}{}", safe(rest));
        }
        self
    }
}

/// A text of the host in one line without control characters: models, commands and providers write parts of it.
fn safe(text: impl AsRef<str>) -> String {
    SafeText::brief(text.as_ref().trim_end(), LONGEST).into_string()
}

/// The sentence about a Pod itself.
pub fn of(info: &PodInfo, family: &Family, now: u64, zone: &TimeZone) -> Now {
    match info.state {
        State::NeedsYou => needs(info, family),
        State::Running => runs(info, family, now, zone),
        State::Paused => paused(info),
        State::Idle => idle(info, family),
        State::Failed | State::Damaged => {
            let word = state::of(info.state);
            let (asked, failure) = of_provider(info.why.as_deref().unwrap_or(word));
            Now::reason_or(Role::Error, failure, word).with(" · ", asked)
        }
        State::Stopped | State::Unknown => Now::plain(state::of(info.state)),
    }
}

/// A failure of a model request, and before it the provider with its address, which is empty for any other failure.
fn of_provider(why: &str) -> (&str, &str) {
    let asked = why.find(" at ").filter(|at| !why[..*at].contains(' ')).and_then(|at| {
        let host = at + " at ".len();
        let end = host + why[host..].find(' ')?;
        why[host..end].contains(['.', ':']).then_some(end)
    });
    asked.map_or(("", why), |end| (&why[..end], why[end..].trim_start()))
}

/// The sentence about all Pods below a folded one: `▲1 · 3 running`.
pub fn of_all(below: &Counts) -> Now {
    let mut counts: Vec<(String, Role)> = Vec::new();
    for (sign, count, role) in
        [("▲", below.needs_you, Role::Needs), ("✕", below.failed, Role::Error)]
    {
        counts.extend((count > 0).then(|| (format!("{sign}{count}"), role)));
    }
    for (count, state) in [(below.running, State::Running), (below.paused, State::Paused)] {
        counts.extend((count > 0).then(|| (format!("{count} {}", state::of(state)), Role::Dim)));
    }
    if counts.is_empty() && below.idle > 0 {
        counts.push((format!("{} {}", below.idle, state::of(State::Idle)), Role::Dim));
    }
    let mut counts = counts.into_iter();
    let Some((first, role)) = counts.next() else { return Now::default() };
    let rest: Vec<String> = counts.map(|(text, _)| text).collect();
    let now = match role {
        Role::Dim => Now::plain(first),
        role => Now::reason(role, first.clone(), first),
    };
    now.with(" · ", &rest.join(" · "))
}

/// Why a Pod needs the person.
pub fn needs(info: &PodInfo, family: &Family) -> Now {
    if let Some(request) = family.approvals().iter().find(|request| request.is_of(&info.name)) {
        let (text, short) = wants(request);
        return Now::reason(Role::Needs, text, short).with(": ", &request.action);
    }
    let word = state::of(info.state);
    match &info.why {
        Some(why) if why.starts_with("no key for ") => {
            let (what, more) = why.split_once(": ").unwrap_or((why, ""));
            Now::reason(Role::Needs, what, "no key").with(": ", more)
        }
        Some(why) => Now::reason_or(Role::Needs, why, word),
        None => Now::reason(Role::Needs, word, word),
    }
}

/// What an approval request is about, in a sentence and in a word.
pub fn wants(request: &ApprovalRequest) -> (Cow<'static, str>, Cow<'static, str>) {
    let (text, short) = match request.tool.as_str() {
        _ if request.question.is_some() => ("asks", "asks"),
        START_SERVER => ("wants to start a server", "server"),
        CHANGED_TOOLS => ("wants a server's new tools", "tools"),
        _ => match needs_of(request).as_slice() {
            [] => ("wants an approval", "approval"),
            [need] => (sentence_of(need, request), *need),
            needs @ [first, more @ ..] => {
                let text = format!("wants {}", needs.join(", "));
                return (text.into(), format!("{first} +{}", more.len()).into());
            }
        },
    };
    (text.into(), short.into())
}

/// The words for what an approval request needs beyond the scope and the sandbox of its Pod.
fn needs_of(request: &ApprovalRequest) -> Vec<&'static str> {
    let needs: Vec<String> = request.needs().collect();
    let has = |word: &&str| {
        needs.iter().any(|need| need == word) || *word == OUTSIDE && request.lease.is_some()
    };
    let credential = (!request.credentials.is_empty()).then_some(CREDENTIAL);
    ["network", "git", OUTSIDE].into_iter().filter(has).chain(credential).collect()
}

/// The sentence about an approval request with this one need.
fn sentence_of(need: &str, request: &ApprovalRequest) -> &'static str {
    match (need, &request.lease) {
        ("network", _) => "wants the network",
        ("git", _) => "wants to change git",
        (CREDENTIAL, _) => "wants a credential",
        (_, None) => "wants to go outside its scope",
        (_, Some(rule)) if rule.permission == Permission::Write => {
            "wants to write outside its scope"
        }
        (_, Some(_)) => "wants to read outside its scope",
    }
}

fn runs(info: &PodInfo, family: &Family, now: u64, zone: &TimeZone) -> Now {
    let activity = info.activity.as_deref().unwrap_or_default();
    if wait::for_provider(info, now).is_some() {
        return for_provider(info, activity, now, zone);
    }
    if let Some(waits) = wait::for_writers(info) {
        return Now::plain(waits);
    }
    if let Some(waits) = wait::to_lend(info) {
        return lend_waits(waits);
    }
    if let Some(limit) = limit(info) {
        return limit;
    }
    if let Some(circling) = &info.circling {
        return in_circles(circling);
    }
    match wait::silent_for(info, family, now) {
        Some(silent) => Now::plain(format!("silent for {}", in_words(silent))).with(": ", activity),
        None if activity.is_empty() => Now::plain(state::of(info.state)),
        None => Now::plain(activity),
    }
}

/// What a run does again and again.
pub fn in_circles(circling: &Circling) -> Now {
    let Circling { kind, times, .. } = circling;
    let now = Now::reason(
        Role::Warn,
        again(circling),
        match kind {
            CircleKind::Denied => format!("{times}× denied"),
            CircleKind::Failure | CircleKind::Unknown => format!("{times}× same"),
        },
    );
    now.with(": ", &circling.call)
}

/// What a run does again and again, and how often.
pub fn again(circling: &Circling) -> String {
    let times = circling.times;
    match circling.kind {
        CircleKind::Denied => format!("denied {times}×, tries again"),
        CircleKind::Failure => format!("same failure {times}×"),
        CircleKind::Unknown => format!("repeats itself {times}×"),
    }
}

/// A long wait before the next request to the provider.
fn for_provider(info: &PodInfo, activity: &str, now: u64, zone: &TimeZone) -> Now {
    let until = clock(info.retry_at.unwrap_or(now), now, zone);
    match activity.split(',').next().unwrap_or_default() {
        "limited" | "its provider takes no requests now" => {
            Now::reason(Role::Warn, format!("limit until {until}"), "limit")
        }
        failure => {
            let text = format!("model {failure}, retries at {until}");
            Now::reason(Role::Warn, text, "no model")
        }
    }
}

/// The limit that the last commands met.
fn limit(info: &PodInfo) -> Option<Now> {
    let met = info.limit.as_ref()?;
    let sentence = match met.kind {
        LimitKind::Unknown => "met a limit".into(),
        kind => format!("{kind} limit met"),
    };
    let now = Now::reason(Role::Warn, sentence, "limit");
    Some(now.with(": ", &met.sentence))
}

fn paused(info: &PodInfo) -> Now {
    let word = state::of(info.state);
    let why = info.why.as_deref().unwrap_or(word);
    match why {
        // Only a person pauses; everything else interrupts.
        _ if why.starts_with(word) => Now::reason(Role::Warn, why, word),
        _ if why.ends_with("(host ended)") => {
            Now::reason(Role::Warn, format!("{word} by restart"), word)
        }
        _ => Now::reason(Role::Warn, why, word),
    }
}

fn lend_waits(what: &str) -> Now {
    Now::reason(Role::Warn, what, "lend waits")
}

fn idle(info: &PodInfo, family: &Family) -> Now {
    if let Some(waits) = wait::to_lend(info) {
        return lend_waits(waits);
    }
    if let Some(waits) = wait::for_children(info, family) {
        return Now::plain(waits);
    }
    let at_limit = |run: &yoi::protocol::LastRun| run.result == RunResult::LimitReached.word();
    match &info.why {
        Some(why) if info.last_result.as_ref().is_some_and(at_limit) => {
            Now::reason(Role::Warn, why, "limit")
        }
        Some(why) => Now::reason(Role::Warn, why, "waits"),
        None if info.model.is_empty() => Now::reason(Role::Warn, "no model", "no model"),
        None => limit(info).unwrap_or_else(|| {
            let result = info.activity.as_deref().filter(|_| info.unseen).unwrap_or_default();
            let jobs = state::in_background(info).map(|jobs| format!(", {jobs}"));
            let state = format!("{}{}", state::of_pod(info), jobs.unwrap_or_default());
            Now::plain(state).with(": ", &plain(result))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::app::tests::{NOON, approval, pod};
    use yoi::protocol::PodName;
    use yoi::protocol::limit_met::LimitMet;

    fn now(info: &PodInfo) -> (String, String, String, Role) {
        let mut family = Family::default();
        let requests = vec![approval("q", "tester", "cargo fetch\ncargo test")];
        family.replace(vec![info.clone()], Vec::new(), requests);
        let Now { text, rest, short, role } = of(info, &family, NOON, &TimeZone::UTC);
        (text, rest, short, role)
    }

    fn as_text(info: &PodInfo) -> String {
        let (text, rest, short, role) = now(info);
        format!("{text}|{rest}|{short}|{role:?}")
    }

    fn because(name: &str, state: State, why: &str) -> PodInfo {
        PodInfo { why: Some(why.into()), ..pod(name, state) }
    }

    #[test]
    fn a_pod_that_needs_a_person_says_what_for() {
        let tester = pod("tester", State::NeedsYou);
        let wants = "wants an approval|: cargo fetch⏎cargo test|approval|Needs";
        assert_eq!(as_text(&tester), wants);
        let key =
            because("a", State::NeedsYou, "no key for anthropic: ANTHROPIC_API_KEY is not set");
        let missing = "no key for anthropic|: ANTHROPIC_API_KEY is not set|no key|Needs";
        assert_eq!(as_text(&key), missing);
        let sends = because("a", State::NeedsYou, "nothing was sent: a found a model");
        assert_eq!(as_text(&sends), "nothing was sent: a found a model||needs you|Needs");
        assert_eq!(as_text(&pod("a", State::NeedsYou)), "needs you||needs you|Needs");
    }

    #[test]
    fn a_row_says_the_words_of_a_failure_before_the_address_of_the_provider() {
        let failed = |why: &str| as_text(&because("a", State::Failed, why));
        let refused = "fake at 127.0.0.1:8080 refused the connection: check that it runs";
        let said =
            "refused the connection: check that it runs| · fake at 127.0.0.1:8080|failed|Error";
        assert_eq!(failed(refused), said);
        let other = "cannot look at the log: no such file";
        assert_eq!(failed(other), format!("{other}||failed|Error"));
    }

    #[test]
    fn a_lend_that_waits_for_commands_is_said_at_the_pod_that_runs_them() {
        let waits = "a lend waits until job-1 (npm run dev) in the background has ended";
        let notes = vec!["reads only".to_owned(), waits.to_owned()];
        for state in [State::Idle, State::Running] {
            let shop = PodInfo { notes: notes.clone(), ..pod("shop", state) };
            assert_eq!(as_text(&shop), format!("{waits}||lend waits|Warn"));
        }
    }

    #[test]
    fn each_kind_of_request_has_a_sentence_and_a_word() {
        let tool = |tool: &str| ApprovalRequest {
            rule: yoi::protocol::Pattern { tool: tool.into(), pattern: "*".into() },
            ..approval("q", "a", "x")
        };
        let lease = |permission| ApprovalRequest {
            lease: Some(yoi::scope::Rule::new("/far", permission)),
            ..approval("q", "a", "x")
        };
        let server = ApprovalRequest { tool: START_SERVER.into(), ..approval("q", "a", "x") };
        let everything =
            ApprovalRequest { lease: lease(Permission::Read).lease, ..tool("Bash+git+network") };
        let asked = [
            (tool("Bash+network"), "wants the network"),
            (tool("Bash+git"), "wants to change git"),
            (tool("Bash+outside"), "wants to go outside its scope"),
            (lease(Permission::Write), "wants to write outside its scope"),
            (lease(Permission::Read), "wants to read outside its scope"),
            (tool("Bash"), "wants an approval"),
            (tool("Bash+network+git"), "wants network, git"),
            (everything, "wants network, git, outside"),
            (server, "wants to start a server"),
        ];
        for (request, sentence) in asked {
            let (said, word) = wants(&request);
            assert_eq!(said, sentence);
            assert!(word.len() <= SHORT, "{word}");
        }
    }

    #[test]
    fn a_running_pod_says_its_tool_and_its_target_or_why_it_waits() {
        let runs = |activity: &str| PodInfo {
            activity: Some(activity.into()),
            ..pod("alice", State::Running)
        };
        assert_eq!(as_text(&runs("Grep overflow")), "Grep overflow|||Dim");
        assert_eq!(as_text(&pod("alice", State::Running)), "running|||Dim");
        let waits = runs("waits until bob has ended its run");
        assert_eq!(as_text(&waits), "waits for bob|||Dim");
        let until = |activity| PodInfo { retry_at: Some(NOON + 2_400_000), ..runs(activity) };
        let limited = until("limited, tries again 12:40:00");
        assert_eq!(as_text(&limited), "limit until 12:40||limit|Warn");
        let away = until("not reachable, tries again 12:40:00, gives up 13:00:00");
        assert_eq!(as_text(&away), "model not reachable, retries at 12:40||no model|Warn");
        let silent = PodInfo { last_activity: 0, since: NOON - 300_000, ..runs("Bash make") };
        assert_eq!(as_text(&silent), "silent for 5 min|: Bash make||Dim");
        let met = LimitMet { kind: LimitKind::Memory, sentence: "2 GB of memory".into() };
        let circling = Circling {
            kind: CircleKind::Failure,
            times: 6,
            call: "Bash cargo test".into(),
            since: NOON,
        };
        let limit = PodInfo { circling: Some(circling.clone()), limit: Some(met), ..runs("x") };
        assert_eq!(as_text(&limit), "memory limit met|: 2 GB of memory|limit|Warn");
        let circles = PodInfo { circling: Some(circling), ..runs("Bash make") };
        assert_eq!(as_text(&circles), "same failure 6×|: Bash cargo test|6× same|Warn");
    }

    #[test]
    fn text_of_the_host_enters_a_row_in_one_line_without_control_characters() {
        let why = "\x1b[31mred\nno key for x: \u{202e}";
        let met = LimitMet { kind: LimitKind::Unknown, sentence: why.into() };
        let pods = [
            PodInfo { activity: Some(why.into()), ..pod("a", State::Running) },
            PodInfo { limit: Some(met), ..pod("a", State::Running) },
            because("a", State::NeedsYou, why),
            because("a", State::NeedsYou, &format!("no key for {why}")),
            because("a", State::Failed, why),
            because("a", State::Paused, why),
            because("a", State::Idle, why),
        ];
        for info in pods {
            let (text, rest, short, _) = now(&info);
            let row = [text, rest, short].concat();
            assert!(row.contains("\\x1b[31mred⏎") && row.contains("\\u{202e}"), "{row}");
            assert!(!row.contains(['\x1b', '\n', '\u{202e}']), "{row:?}");
        }
    }

    #[test]
    fn a_pod_that_rests_says_how_it_ended() {
        let done = PodInfo {
            unseen: true,
            activity: Some("All 212 tests pass".into()),
            ..pod("fmt", State::Idle)
        };
        assert_eq!(as_text(&done), "done|: All 212 tests pass||Dim");
        assert_eq!(as_text(&pod("bob", State::Idle)), "idle|||Dim");
        assert_eq!(as_text(&pod("bob", State::Stopped)), "stopped|||Dim");
        let bare = PodInfo { model: String::new(), ..pod("bob", State::Idle) };
        assert_eq!(as_text(&bare), "no model||no model|Warn");
        let failed = because("bench", State::Failed, "exit 101");
        assert_eq!(as_text(&failed), "exit 101||exit 101|Error");
        let failed = because("bench", State::Failed, "the model refused the request");
        assert_eq!(as_text(&failed), "the model refused the request||failed|Error");
        let restart = because("a", State::Paused, "interrupted 12:40 (host ended)");
        assert_eq!(as_text(&restart), "paused by restart||paused|Warn");
        let paused = because("a", State::Paused, "paused 12:40");
        assert_eq!(as_text(&paused), "paused 12:40||paused|Warn");
        let waits = because("a", State::Idle, "a queued message waits");
        assert_eq!(as_text(&waits), "a queued message waits||waits|Warn");
    }

    #[test]
    fn a_parent_names_the_child_that_needs_a_person_first() {
        let shop = pod("shop", State::Idle);
        let child =
            |name: &str, state| PodInfo { parent: PodName::parse("shop").ok(), ..pod(name, state) };
        let pods = [child("lint", State::Running), child("tester", State::NeedsYou)];
        let mut family = Family::default();
        family.replace(std::iter::once(shop.clone()).chain(pods).collect(), vec![], vec![]);
        let said = of(&shop, &family, NOON, &TimeZone::UTC);
        assert_eq!((said.text.as_str(), said.role), ("waits for tester and lint", Role::Dim));
    }

    #[test]
    fn a_folded_subtree_counts_what_needs_a_person_first() {
        let said = |below: Counts| {
            let Now { text, rest, short, role } = of_all(&below);
            format!("{text}|{rest}|{short}|{role:?}")
        };
        let busy = Counts { needs_you: 1, running: 3, idle: 2, ..Counts::default() };
        assert_eq!(said(busy), "▲1| · 3 running|▲1|Needs");
        let failed = Counts { failed: 2, paused: 1, ..Counts::default() };
        assert_eq!(said(failed), "✕2| · 1 paused|✕2|Error");
        assert_eq!(said(Counts { running: 3, ..Counts::default() }), "3 running|||Dim");
        assert_eq!(said(Counts { idle: 4, ..Counts::default() }), "4 idle|||Dim");
    }
}
