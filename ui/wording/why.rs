//! Why a Pod is in its state, since when, and what it waits for, in words: the screen shows them and
//! the program without one prints them.

use crate::wording::age::clock;
use crate::wording::duration::{elapsed, in_words};
use crate::wording::lines::{Line, Target};
use crate::wording::model::as_sent;
use crate::wording::now::again;
use crate::wording::{counted, scope, state, wait};
use jiff::tz::TimeZone;
use yoi::client::family::Family;
use yoi::protocol::{EntryId, PodInfo, PodName, State};
use yoi::text::SafeText;

/// The facts that the words are made from.
pub struct Known<'a> {
    pub family: &'a Family,
    /// Milliseconds since the Unix epoch.
    pub now: u64,
    pub zone: &'a TimeZone,
}

impl Known<'_> {
    /// The explanation of a Pod and its state. What is evidence leads to its entry in the log.
    pub fn explain(&self, info: &PodInfo) -> Vec<Line> {
        let at = |millis: u64| clock(millis, self.now, self.zone);
        let ago = |millis: u64| elapsed(self.now.saturating_sub(millis));
        let state =
            format!("{} since {} ({})", state::of_pod(info), at(info.since), ago(info.since));
        let entry = |entry| Some(Target::Entry(info.name.clone(), entry));
        let mut lines: Vec<Line> = vec![("state", state).into(), ("because", because(info)).into()];
        let wait = wait::sentence(info, self.family, self.now);
        lines.extend(wait.map(|wait| Line::from(("waits", wait))));
        for approval in self.family.approvals().iter().filter(|approval| approval.is_of(&info.name))
        {
            let (what, because) =
                (SafeText::spelled(approval.line()), SafeText::spelled(approval.because.as_str()));
            let text = format!("{what} · {because} · {}", ago(approval.since));
            // The entry of a request has its id.
            lines
                .push(Line::from(("needs you", text)).of(approval.id.parse().ok().and_then(entry)));
        }
        // Streamed text is activity: its events say more than the Pod as it was last described.
        let active = match info.state {
            State::Running => self.family.last_activity(info),
            _ => info.last_activity,
        };
        if active > 0 {
            let ago = in_words(self.now.saturating_sub(active));
            lines.push(("last activity", format!("{ago} ago, at {}", at(active))).into());
        }
        if let Some(met) = &info.limit {
            let what = SafeText::spelled(met.sentence.as_str());
            lines.push(("limit", format!("its last commands met one: {what}")).into());
        }
        if let Some(jobs) = state::in_background(info) {
            lines.push(("background", format!("{jobs}: :jobs lists them")).into());
        }
        if let Some(circling) = &info.circling {
            let call = SafeText::spelled(circling.call.as_str());
            let since = at(circling.since);
            let text = format!("{} since {since}: {call}", again(circling));
            let first = entry(EntryId::last_at(circling.since));
            lines.push(Line::from(("in circles", text)).of(first));
        }
        if let Some(run) = &info.last_result {
            let error = run.error.as_deref().map(SafeText::spelled);
            let why = error.map(|error| format!(": {error}")).unwrap_or_default();
            let text = format!("{} at {}{why}", state::of_end(run), at(run.at));
            lines.push(Line::from(("last run", text)).of(entry(run.entry)));
        }
        let notes = info.notes.iter();
        let notes = notes.map(|note| ("note", SafeText::spelled(note.as_str()).into_string()));
        let others = self.relations(info).into_iter().chain(authority(info)).chain(notes);
        lines.extend(others.map(Line::from));
        lines
    }

    fn relations(&self, info: &PodInfo) -> Vec<(&'static str, String)> {
        let named = |name: &PodName| {
            let word = self.family.get(name).map_or("gone", state::of_pod);
            format!("{name} ({word})")
        };
        let list =
            |names: Vec<&PodName>| names.into_iter().map(named).collect::<Vec<_>>().join(", ");
        let lineage: Vec<_> = self.family.lineage(info).into_iter().map(named).collect();
        let children: Vec<_> = self.family.children(&info.name).map(|info| &info.name).collect();
        let mut lines = vec![
            ("parents", lineage.join(" › ")),
            ("children", list(children)),
            ("peers", list(self.family.peers_of(&info.name))),
        ];
        lines.retain(|(_, text)| !text.is_empty());
        if !info.queue.is_empty() {
            lines.push((
                "queue",
                format!("{} queued", counted(info.queue.len(), "message", "messages")),
            ));
        }
        lines
    }
}

/// How a person continues with a Pod that rests in the middle of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayOn {
    /// Its run is interrupted and can continue.
    Continue,
    /// Child events, notifications or messages wait for it.
    HandOver,
    /// Its run failed and can be tried again: its input is in the log.
    TryAgain,
}

impl WayOn {
    /// The way on for a Pod in this state, if it has one.
    pub fn of(info: &PodInfo) -> Option<Self> {
        match info.state {
            // The reason names the verb, or says that a message lets the Pod go on.
            _ if info.goes_on_by.is_some() => None,
            State::Paused => Some(Self::Continue),
            State::Failed => Some(Self::TryAgain),
            State::Idle if info.why.is_some() => Some(Self::HandOver),
            _ => None,
        }
    }

    /// What `key` does: `Enter continues`.
    pub fn by(self, key: &str, pod: &PodName) -> String {
        match self {
            Self::Continue => format!("{key} continues"),
            Self::HandOver => format!("{key} tells {pod}"),
            Self::TryAgain => format!("{key} tries again"),
        }
    }

    /// The same with the verb, as the host writes verbs; a front end words it for its way.
    pub fn by_verb(self) -> &'static str {
        match self {
            Self::Continue => ":resume continues",
            Self::HandOver => ":resume hands it over",
            Self::TryAgain => ":resume tries again",
        }
    }
}

/// Why a Pod is in its state and how a person continues, for a front end without hints; `otherwise`
/// where the state says it all.
pub fn why_and_way_on(info: &PodInfo, otherwise: &str) -> String {
    let why = SafeText::spelled(info.why.as_deref().unwrap_or(otherwise)).into_string();
    match WayOn::of(info) {
        Some(way) => format!("{why}; {}", way.by_verb()),
        None => why,
    }
}

/// Why a Pod is in its state, and how a person continues, in one line.
pub fn because(info: &PodInfo) -> String {
    let doing = SafeText::spelled(info.activity.as_deref().unwrap_or("it begins"));
    match (&info.why, info.state) {
        (why, State::Paused) => {
            let why = SafeText::spelled(why.as_deref().unwrap_or("its run was interrupted"));
            format!("{why}; :resume continues it, :cancel drops it")
        }
        (Some(why), _) => why_and_way_on(info, why),
        (None, State::Running) if info.retry_at.is_some() => {
            format!("a run is under way: {doing}; :resume tries now")
        }
        (None, State::Running) => format!("a run is under way: {doing}"),
        (None, State::NeedsYou) => "it needs a person to continue".into(),
        (None, State::Idle) if info.unseen => {
            "its run ended; you have not seen the result yet".into()
        }
        (None, State::Idle) => "its run is over; it waits for a message".into(),
        (None, State::Stopped) => "it was stopped; :restore brings it back".into(),
        (None, State::Failed) => "the runtime could not go on with it; :resume tries again".into(),
        (None, State::Damaged) => "its record cannot be read; :rm deletes it".into(),
        (None, State::Unknown) => "the host is newer than this screen".into(),
    }
}

fn authority(info: &PodInfo) -> Vec<(&'static str, String)> {
    let mut lines: Vec<(&'static str, String)> = Vec::new();
    let mut several = |label: &'static str, texts: Vec<String>| {
        for (i, text) in texts.into_iter().enumerate() {
            lines.push((if i == 0 { label } else { "" }, text));
        }
    };
    several("may", info.scope.iter().map(scope::rule).collect());
    several("but", info.deny.iter().map(scope::denied).collect());
    several("lent", info.lent.iter().map(scope::lent).collect());
    several("works in", vec![info.cwd.display().to_string()]);
    if !info.model.is_empty() {
        several("model", vec![format!("{} ({})", info.model, info.model_why)]);
        let effort = info.effort.map(|effort| format!("{}{}", effort.name(), as_sent(info)));
        several("effort", effort.into_iter().collect());
        let key = info.model_key.as_deref().unwrap_or_default();
        let to = info.model_address.as_ref().map(|address| format!("{address}, {key}"));
        several("sends to", to.into_iter().collect());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_streams_is_activity_of_a_running_pod() {
        use crate::screen::app::tests::{NOON, pod};
        let info = pod("alice", State::Running);
        let mut family = Family::default();
        family.replace(vec![info.clone()], Vec::new(), Vec::new());
        family.received(&info.name, NOON + 24_000);
        let known = Known { family: &family, now: NOON + 25_000, zone: &TimeZone::UTC };
        let lines = known.explain(&info);
        let last = lines.iter().find(|line| line.label == "last activity");
        assert_eq!(last.map(|line| line.text.as_str()), Some("1 s ago, at 12:00"));
    }

    #[test]
    fn a_reason_of_the_host_is_one_line_without_control_characters() {
        use crate::screen::app::tests::pod;
        for state in [State::Paused, State::Failed, State::Idle, State::NeedsYou] {
            let info = PodInfo { why: Some("bad\x1b[31m\nline".into()), ..pod("alice", state) };
            let because = because(&info);
            assert!(because.starts_with("bad\\x1b[31m⏎line"), "{because}");
        }
    }

    #[test]
    fn what_a_request_needs_is_shown_with_its_hidden_characters_spelled() {
        use crate::screen::app::tests::{NOON, approval, pod};
        let hiding = format!("the rule `Bash: ls{}; rm -rf ~`", "\t \u{200b}".repeat(100));
        let request =
            yoi::protocol::ApprovalRequest { because: hiding, ..approval("q", "alice", "ls") };
        let info = pod("alice", State::NeedsYou);
        let mut family = Family::default();
        family.replace(vec![info.clone()], Vec::new(), vec![request]);
        let known = Known { family: &family, now: NOON, zone: &TimeZone::UTC };
        let lines = known.explain(&info);
        let shown = &lines.iter().find(|line| line.label == "needs you").unwrap().text;
        let spelled = "the rule `Bash: ls⟨200 blanks, 100 hidden characters⟩; rm -rf ~`";
        assert!(shown.contains(spelled), "{shown}");
    }

    #[test]
    fn the_way_on_is_what_the_host_says_whatever_stands_in_the_reason() {
        use crate::screen::app::tests::pod;
        use yoi::protocol::GoesOnBy;
        let of = |state, goes_on_by| {
            let why = Some("429: type :restore or :compact, or send a message".to_owned());
            WayOn::of(&PodInfo { why, goes_on_by, ..pod("alice", state) })
        };
        assert_eq!(of(State::Failed, None), Some(WayOn::TryAgain));
        assert_eq!(of(State::Idle, None), Some(WayOn::HandOver));
        for by in [GoesOnBy::Restore, GoesOnBy::Compact, GoesOnBy::Message, GoesOnBy::Unknown] {
            assert_eq!(of(State::Failed, Some(by)), None);
            assert_eq!(of(State::Idle, Some(by)), None);
        }
    }

    #[test]
    fn evidence_leads_to_its_entry_and_notes_are_spelled() {
        use crate::screen::app::tests::{NOON, approval, pod};
        use yoi::protocol::{CircleKind, Circling, LastRun, RunResult};
        let entries = [EntryId::new(), EntryId::new()];
        let request = yoi::protocol::ApprovalRequest {
            id: entries[0].to_string(),
            ..approval("q", "alice", "ls")
        };
        let result = RunResult::Finished.word().into();
        let last = LastRun { entry: entries[1], result, error: None, at: NOON };
        let kind = CircleKind::Failure;
        let info = PodInfo {
            last_result: Some(last),
            circling: Some(Circling { kind, times: 6, call: "Bash x".into(), since: NOON }),
            notes: vec!["bad\x1b[31m".into()],
            ..pod("alice", State::NeedsYou)
        };
        let mut family = Family::default();
        family.replace(vec![info.clone()], Vec::new(), vec![request]);
        let known = Known { family: &family, now: NOON, zone: &TimeZone::UTC };
        let lines = known.explain(&info);
        let of = |label: &str| lines.iter().find(|line| line.label == label).unwrap();
        let entry = |entry| Some(Target::Entry(info.name.clone(), entry));
        assert_eq!(of("needs you").target, entry(entries[0]));
        assert_eq!(of("last run").target, entry(entries[1]));
        assert_eq!(of("in circles").target, entry(EntryId::last_at(NOON)));
        assert_eq!(of("state").target, None);
        assert!(of("note").text.starts_with(r"bad\x1b[31m"), "{}", of("note").text);
    }
}
