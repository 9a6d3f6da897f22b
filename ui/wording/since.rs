//! What the Pods did since a time: what needs the person, what failed, what finished and what ended otherwise, and the sum of
//! all. Every front end shows the same report.

use crate::wording::age::ago;
use crate::wording::duration::{elapsed, in_words};
use crate::wording::now::{Now, in_circles, needs};
use crate::wording::plain::plain;
use crate::wording::{model, state};
use std::cmp::Reverse;
use std::path::Path;
use yoi::client::family::{Cost, Family};
use yoi::protocol::work::MAX_FILES;
use yoi::protocol::{EntryId, PodInfo, PodName, PodWork, RunResult, State, Work};
use yoi::text::SafeText;

/// The shortest absence that is worth a sentence, in milliseconds.
const AWAY: u64 = 60_000;
/// The most tasks of a Pod that a row names.
const SUBJECTS: usize = 3;

/// The runs that ended in a span of time, as the host listed them.
#[derive(Clone, Debug, PartialEq)]
pub struct Since {
    pub span: Span,
    pub pods: Vec<PodWork>,
}

/// A span of time that ends now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Since the person left the screen before this one.
    Left(Absence),
    /// Since this time, which the person chose.
    Chosen(u64),
}

/// When the person left the screen before this one, and came back; milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absence {
    pub left: u64,
    pub back: u64,
}

/// How the last run of a Pod ended, or why the Pod needs a look now; in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    NeedsYou,
    Failed,
    /// Its run goes on, and in circles.
    InCircles,
    Finished,
    /// Paused, cancelled, at a limit or interrupted.
    StoppedShort,
}

/// What a report says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub title: String,
    /// How long the person was away, the cost, and what changed; the most important first.
    pub figures: Vec<String>,
    pub groups: Vec<Group>,
    /// What let calls begin.
    pub allowed: Option<String>,
}

/// The Pods whose runs ended alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub outcome: Outcome,
    /// How many there are, and of what.
    pub label: String,
    /// The newest first; of those that need a look now the oldest first.
    pub rows: Vec<Row>,
}

/// What a row says of a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub pod: PodName,
    /// Its name behind those of its ancestors.
    pub path: String,
    pub text: String,
    /// The tasks that it wrote down and did not begin.
    pub not_begun: Option<String>,
    /// How long ago that was.
    pub age: String,
    /// The entry that ended its last run.
    pub entry: Option<EntryId>,
    /// Whether the result was looked at.
    pub seen: bool,
}

impl Span {
    /// When it began; milliseconds since the Unix epoch.
    pub fn from(self) -> u64 {
        match self {
            Self::Left(Absence { left: at, .. }) | Self::Chosen(at) => at,
        }
    }
}

impl Since {
    /// The report on the Pods that are here, at this time.
    pub fn report(&self, family: &Family, is_here: impl Fn(&PodInfo) -> bool, now: u64) -> Report {
        let here = |work: &&PodWork| family.get(&work.pod).is_some_and(&is_here);
        let pods: Vec<&PodWork> = self.pods.iter().filter(here).collect();
        let mut all = Work::default();
        pods.iter().for_each(|pod| all.add(pod.work.clone()));
        let (title, away) = match self.span {
            Span::Left(Absence { left, back }) => {
                let away = format!("{} away", elapsed(back.saturating_sub(left)));
                ("Since you left".to_owned(), Some(away))
            }
            Span::Chosen(at) => (format!("The last {}", span(now.saturating_sub(at))), None),
        };
        let mut rows: Vec<(Outcome, u64, Row)> = Vec::new();
        for info in family.all().iter().filter(|info| is_here(info)) {
            let Some((outcome, said, since)) = is_now(info, family) else { continue };
            let text = format!("{}{}", said.text, said.rest);
            rows.push((outcome, since, row(family, info, (text, None), (since, None), now)));
        }
        for work in pods {
            let info = family.get(&work.pod).filter(|info| is_now(info, family).is_none());
            let Some(info) = info else { continue };
            let end = (work.last.at, Some(work.last.entry));
            let row = row(family, info, (report(work), not_begun(&work.work)), end, now);
            rows.push((outcome(work), work.last.at, row));
        }
        rows.sort_by_key(|(outcome, at, _)| match outcome {
            Outcome::NeedsYou | Outcome::InCircles => (*outcome, *at, Reverse(0)),
            Outcome::Failed | Outcome::Finished | Outcome::StoppedShort => {
                (*outcome, 0, Reverse(*at))
            }
        });
        Report {
            title,
            figures: away.into_iter().chain(figures(&all)).collect(),
            groups: groups(rows),
            allowed: allowed(&all),
        }
    }
}

impl Report {
    /// The report below its heading as lines of text: one for each Pod, and what let calls begin.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for group in &self.groups {
            let word = group.outcome.word();
            lines.extend(group.rows.iter().map(|row| {
                let parts = [Some(row.text.clone()), row.not_begun.clone(), Some(row.age.clone())];
                let parts: Vec<String> = parts.into_iter().flatten().collect();
                format!("{word} {}: {}", row.path, parts.join(" · "))
            }));
        }
        lines.extend(self.allowed.clone());
        lines
    }

    /// The title with its figures.
    pub fn heading(&self) -> String {
        let title = std::iter::once(&self.title).chain(&self.figures).cloned();
        title.collect::<Vec<_>>().join(" · ")
    }
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::NeedsYou => "needs you",
            Self::Failed => "failed",
            Self::InCircles => "in circles",
            Self::Finished => "finished",
            Self::StoppedShort => "stopped short",
        }
    }
}

/// The rows as groups; the rows are in the order of their outcomes.
fn groups(rows: Vec<(Outcome, u64, Row)>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (outcome, _, row) in rows {
        match groups.last_mut().filter(|group| group.outcome == outcome) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group { outcome, label: String::new(), rows: vec![row] }),
        }
    }
    for group in &mut groups {
        let word = match (group.outcome, group.rows.len()) {
            (Outcome::NeedsYou, 2..) => "need you",
            (outcome, _) => outcome.word(),
        };
        group.label = format!("{} {word}", group.rows.len());
    }
    groups
}

/// Why a Pod needs a look now, and since when.
fn is_now(info: &PodInfo, family: &Family) -> Option<(Outcome, Now, u64)> {
    match (info.state, &info.circling) {
        (State::NeedsYou, _) => Some((Outcome::NeedsYou, needs(info, family), info.since)),
        (State::Running, Some(it)) => Some((Outcome::InCircles, in_circles(it), it.since)),
        _ => None,
    }
}

fn outcome(work: &PodWork) -> Outcome {
    match work.last.result.as_str() {
        result if result == RunResult::Failed.word() => Outcome::Failed,
        result if result == RunResult::Finished.word() => Outcome::Finished,
        _ => Outcome::StoppedShort,
    }
}

/// Cost, and files with their lines, as far as there are any.
fn figures(work: &Work) -> Vec<String> {
    let cost = Cost { dollars: work.cost.unwrap_or(0.0), unknown: work.cost_unknown };
    let cost = Some(model::cost_alone(&cost)).filter(|cost| !cost.is_empty());
    let files = match work.files.len() {
        0 => None,
        1 => Some("1 file".to_owned()),
        // No more names are kept.
        MAX_FILES.. => Some(format!("{MAX_FILES}+ files")),
        more => Some(format!("{more} files")),
    };
    let lines = &work.lines;
    let changed = files.map(|files| format!("{files} +{} −{}", lines.added, lines.removed));
    cost.into_iter().chain(changed).collect()
}

/// What let calls begin.
fn allowed(work: &Work) -> Option<String> {
    let (walls, rules, person) = (work.by_walls, work.by_rules, work.by_person);
    let parts =
        [(walls, "inside the sandbox"), (rules, "allowed by rules"), (person, "allowed by you")];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, by)| format!("{count} {by}")).collect();
    (!parts.is_empty()).then(|| format!("calls: {}", parts.join(", ")))
}

fn row(
    family: &Family,
    info: &PodInfo,
    (text, not_begun): (String, Option<String>),
    (at, entry): (u64, Option<EntryId>),
    now: u64,
) -> Row {
    Row {
        pod: info.name.clone(),
        path: family.path(info),
        text,
        not_begun,
        age: ago(now.saturating_sub(at)),
        entry,
        seen: !info.unseen,
    }
}

/// How the last run of a Pod ended.
fn report(pod: &PodWork) -> String {
    let said = pod.work.report.as_deref().map(|text| safe(&plain(text)));
    match (&pod.last.error, said, outcome(pod)) {
        (Some(error), _, _) => safe(error),
        (None, Some(report), Outcome::Finished) => report,
        (None, Some(report), _) => format!("{}: {report}", state::of_end(&pod.last)),
        (None, None, _) => state::of_end(&pod.last),
    }
}

fn safe(text: &str) -> String {
    SafeText::line(text).into_string()
}

/// The tasks that the runs of a Pod wrote down and did not begin.
fn not_begun(work: &Work) -> Option<String> {
    let subjects: Vec<String> =
        work.subjects.iter().take(SUBJECTS).map(|subject| safe(subject)).collect();
    let more = work.tasks_not_begun.saturating_sub(subjects.len() as u64);
    match (subjects.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(format!("not touched: {}", subjects.join(", "))),
        (false, more) => Some(format!("not touched: {} and {more} more", subjects.join(", "))),
    }
}

/// What happened since a screen was left, in one sentence for the next one; `None` where that is little. `current` is the
/// Pod that this one shows.
pub fn returned(
    family: &Family,
    (workspace, current): (&Path, Option<&PodName>),
    left: u64,
    now: u64,
) -> Option<String> {
    let here = family.all().iter().filter(|info| family.belongs(info, workspace, current));
    let (mut needs, mut failed, mut done, mut cut) = (0_usize, 0_usize, 0_usize, 0_usize);
    for info in here {
        let ended = info.last_result.as_ref().is_some_and(|run| run.at > left);
        match info.state {
            State::NeedsYou if info.since > left => needs += 1,
            State::Failed if ended => failed += 1,
            State::Paused if info.cut_at.is_some_and(|at| at > left) => cut += 1,
            State::Idle | State::Stopped if ended && info.unseen => done += 1,
            _ => {}
        }
    }
    let needs = match needs {
        0 => None,
        1 => Some("1 Pod needs you".to_owned()),
        more => Some(format!("{more} Pods need you")),
    };
    let counted = |count: usize, word| (count > 0).then(|| format!("{count} {word}"));
    let others =
        [counted(failed, "failed"), counted(cut, "interrupted"), counted(done, "finished")];
    let parts: Vec<String> = std::iter::once(needs).chain(others).flatten().collect();
    let away = now.saturating_sub(left);
    let is_worth_it = away >= AWAY && !parts.is_empty();
    is_worth_it.then(|| {
        let (away, parts) = (in_words(away), parts.join(", "));
        format!("while you were away ({away}): {parts} · :since lists them")
    })
}

/// How long a span is: `8 h`, and `day` where it is one.
fn span(millis: u64) -> String {
    match in_words(millis).as_str() {
        "1 d" => "day".into(),
        "1 h" => "hour".into(),
        "1 min" => "minute".into(),
        several => several.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::app::tests::{NOON, pod};
    use std::path::PathBuf;
    use yoi::protocol::{EntryId, LastRun, LinesChanged};

    const HOUR: u64 = 3_600_000;

    fn run(result: RunResult, error: Option<&str>, at: u64) -> LastRun {
        let error = error.map(str::to_owned);
        LastRun { entry: EntryId::new(), result: result.word().into(), error, at }
    }

    /// Three Pods below `shop`: one that needs the person, one that failed, one that is done.
    fn shop() -> (Family, Vec<PodWork>) {
        let name = |text: &str| PodName::parse(text).unwrap();
        let child = |own: &str, state| PodInfo { parent: Some(name("shop")), ..pod(own, state) };
        let tester = PodInfo {
            since: NOON - HOUR,
            why: Some("wants the network".into()),
            ..child("tester", State::NeedsYou)
        };
        let (failed, done) = (
            run(RunResult::Failed, Some("exit 101"), NOON - 2 * HOUR),
            run(RunResult::Finished, None, NOON - 3 * HOUR),
        );
        let bench = PodInfo { last_result: Some(failed.clone()), ..child("bench", State::Failed) };
        let fmt =
            PodInfo { unseen: true, last_result: Some(done.clone()), ..child("fmt", State::Idle) };
        let mut family = Family::default();
        let pods = vec![pod("shop", State::Running), tester, bench, fmt];
        family.replace(pods, Vec::new(), Vec::new());
        let work = Work {
            files: ["/w/a".to_owned(), "/w/b".to_owned()].into(),
            lines: LinesChanged { added: 12, removed: 3 },
            by_walls: 4,
            by_person: 1,
            cost: Some(0.5),
            tasks_not_begun: 50,
            subjects: ["CHANGELOG", "docs", "x", "y"].map(str::to_owned).into(),
            report: Some("All pass.\u{1b}[31m".into()),
            ..Work::default()
        };
        let broken = Work { cost: Some(0.25), ..Work::default() };
        let pods = vec![
            PodWork { pod: name("fmt"), runs: 2, last: done, work },
            PodWork { pod: name("bench"), runs: 1, last: failed, work: broken },
        ];
        (family, pods)
    }

    #[test]
    fn what_needs_the_person_stands_first_then_what_failed_then_reports_with_open_tasks() {
        let (family, pods) = shop();
        let since = Since { span: Span::Left(Absence { left: NOON - 8 * HOUR, back: NOON }), pods };
        let report = since.report(&family, |_| true, NOON);
        assert_eq!(
            report.lines(),
            [
                "needs you shop › tester: wants the network · 1h",
                "failed shop › bench: exit 101 · 2h",
                r"finished shop › fmt: All pass.\x1b[31m · not touched: CHANGELOG, docs, x and 47 more · 3h",
                "calls: 4 inside the sandbox, 1 allowed by you",
            ]
        );
        let heading = "Since you left · 8h00 away · $0.75 · 2 files +12 −3";
        assert_eq!(report.heading(), heading);
        let labels: Vec<&str> = report.groups.iter().map(|group| group.label.as_str()).collect();
        assert_eq!(labels, ["1 needs you", "1 failed", "1 finished"]);
        let seen: Vec<bool> = report.groups.iter().map(|group| group.rows[0].seen).collect();
        assert_eq!(seen, [true, true, false], "only the result of fmt was not looked at");
    }

    #[test]
    fn a_run_that_goes_in_circles_stands_behind_those_that_failed_whatever_ended_before() {
        let (family, pods) = shop();
        let fmt = family.all().iter().find(|info| info.name.as_str() == "fmt").unwrap();
        let circling = Some(yoi::protocol::Circling {
            kind: yoi::protocol::CircleKind::Failure,
            times: 6,
            since: NOON - HOUR,
            call: "Bash make".into(),
        });
        let fmt = PodInfo { state: State::Running, circling, ..fmt.clone() };
        let mut family = family.clone();
        family.set(fmt);
        let report =
            Since { span: Span::Chosen(NOON - 8 * HOUR), pods }.report(&family, |_| true, NOON);
        let labels: Vec<&str> = report.groups.iter().map(|group| group.label.as_str()).collect();
        assert_eq!(labels, ["1 needs you", "1 failed", "1 in circles"]);
        assert_eq!(report.lines()[2], "in circles shop › fmt: same failure 6×: Bash make · 1h");
    }

    #[test]
    fn a_span_that_was_chosen_is_named_and_pods_elsewhere_count_in_no_figure() {
        let (family, pods) = shop();
        let since = Since { span: Span::Chosen(NOON - 8 * HOUR), pods };
        let report = since.report(&family, |info| info.name.as_str() == "bench", NOON);
        assert_eq!(report.heading(), "The last 8 h · $0.25");
        assert_eq!([24, 25, 48, 1].map(|hours| span(hours * HOUR)), ["day", "day", "2 d", "hour"]);
        assert_eq!(report.lines(), ["failed shop › bench: exit 101 · 2h"]);
        let none = since.report(&family, |_| false, NOON);
        assert_eq!((none.heading().as_str(), none.groups), ("The last 8 h", vec![]));
    }

    #[test]
    fn a_run_that_was_cancelled_stands_behind_those_that_finished() {
        let (family, mut pods) = shop();
        let at = pods[1].last.at;
        pods[1].last = run(RunResult::Cancelled, None, at);
        let since = Since { span: Span::Left(Absence { left: NOON - 8 * HOUR, back: NOON }), pods };
        let report = since.report(&family, |_| true, NOON);
        let last = report.groups.last().expect("a group");
        assert_eq!((last.outcome, last.label.as_str()), (Outcome::StoppedShort, "1 stopped short"));
        assert_eq!(last.rows[0].text, "cancelled");
    }

    #[test]
    fn a_screen_that_opens_counts_what_happened_since_the_last_one_and_says_so_only_then() {
        let (family, _) = shop();
        let place = PathBuf::from(&family.all()[0].workspace);
        let said = |left| returned(&family, (&place, None), left, NOON);
        assert_eq!(
            said(NOON - 7 * HOUR).as_deref(),
            Some(
                "while you were away (7 h): 1 Pod needs you, 1 failed, 1 finished · :since lists them"
            )
        );
        assert_eq!(
            said(NOON - HOUR - HOUR / 2).as_deref(),
            Some("while you were away (1 h): 1 Pod needs you · :since lists them")
        );
        assert_eq!(said(NOON - HOUR), None, "it came to need the person before");
        assert_eq!(returned(&family, (Path::new("/elsewhere"), None), NOON - 7 * HOUR, NOON), None);
    }
}
