//! What the Pods did since a time: one sentence for all, and one row for each.

use crate::family::{Cost, Family};
use crate::wording::duration::in_words;
use crate::wording::why::because;
use crate::wording::{model, state};
use std::path::Path;
use yoi::protocol::work::MAX_FILES;
use yoi::protocol::{PodInfo, PodName, PodWork, RunResult, State, Work};
use yoi::text::SafeText;

/// The shortest absence that is worth a sentence, in milliseconds.
const AWAY: u64 = 60_000;
/// The most tasks of a Pod that a row names.
const SUBJECTS: usize = 3;

/// What a row says of a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub pod: PodName,
    /// Its name behind those of its ancestors.
    pub path: String,
    pub text: String,
    /// How long ago that was.
    pub age: String,
}

/// What all of them did together, in the last `span` milliseconds.
pub fn title(pods: &[PodWork], span: u64) -> String {
    let span = in_words(span);
    if pods.is_empty() {
        return format!("no run ended in the last {span}");
    }
    let mut all = Work::default();
    pods.iter().for_each(|pod| all.add(pod.work.clone()));
    let runs: u64 = pods.iter().map(|pod| pod.runs).sum();
    let runs = if runs == 1 { "1 run ended".to_owned() } else { format!("{runs} runs ended") };
    let parts = [Some(format!("the last {span}: {runs}")), figures(&all), allowed(&all)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Cost, files and lines, as far as there are any.
fn figures(work: &Work) -> Option<String> {
    let cost = Cost { dollars: work.cost.unwrap_or(0.0), unknown: work.cost_unknown };
    let cost = Some(model::cost(&cost)).filter(|cost| !cost.is_empty());
    let files = match work.files.len() {
        0 => None,
        1 => Some("1 file".to_owned()),
        // No more names are kept.
        MAX_FILES.. => Some(format!("{MAX_FILES}+ files")),
        more => Some(format!("{more} files")),
    };
    let lines = &work.lines;
    let changed = files.map(|files| format!("{files} +{} −{}", lines.added, lines.removed));
    let parts: Vec<String> = [cost, changed].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// What let calls begin.
fn allowed(work: &Work) -> Option<String> {
    let parts = [(work.by_walls, "walls"), (work.by_rules, "rules"), (work.by_person, "you")];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, by)| format!("{count} by {by}")).collect();
    (!parts.is_empty()).then(|| format!("allowed: {}", parts.join(", ")))
}

/// One row for each Pod that is here and needs the person or whose runs ended: what needs the person first, then
/// what failed, then the rest, each the newest first.
pub fn rows(
    family: &Family,
    is_here: impl Fn(&PodInfo) -> bool,
    pods: &[PodWork],
    now: u64,
) -> Vec<Row> {
    let waiting = family.needs_you().into_iter().filter(|info| is_here(info));
    let mut found: Vec<(u8, u64, Row)> = waiting
        .map(|info| (0, info.since, row(family, info, because(info), info.since, now)))
        .collect();
    for work in pods {
        let Some(info) = family.get(&work.pod) else { continue };
        if info.state == State::NeedsYou {
            continue;
        }
        let failed = work.last.result == RunResult::Failed.word();
        let (place, at) = (if failed { 1 } else { 2 }, work.last.at);
        found.push((place, at, row(family, info, report(work), at, now)));
    }
    found.sort_by_key(|(place, at, _)| (*place, std::cmp::Reverse(*at)));
    found.into_iter().map(|(_, _, row)| row).collect()
}

fn row(family: &Family, info: &PodInfo, text: String, at: u64, now: u64) -> Row {
    let mut names: Vec<&str> = family.lineage(info).into_iter().map(PodName::as_str).collect();
    names.push(info.name.as_str());
    Row {
        pod: info.name.clone(),
        path: names.join(" › "),
        text,
        age: in_words(now.saturating_sub(at)),
    }
}

/// How the last run of a Pod ended, and what its runs changed.
fn report(pod: &PodWork) -> String {
    let safe = |text: &str| SafeText::line(text).into_string();
    let said = pod.work.report.as_deref().map(safe);
    let ended = match (&pod.last.error, said) {
        (Some(error), _) => format!("failed: {}", safe(error)),
        (None, Some(report)) if pod.last.result == RunResult::Finished.word() => report,
        (None, Some(report)) => format!("{}: {report}", state::of_end(&pod.last)),
        (None, None) => state::of_end(&pod.last),
    };
    let subjects: Vec<String> =
        pod.work.subjects.iter().take(SUBJECTS).map(|subject| safe(subject)).collect();
    let more = pod.work.tasks_not_begun.saturating_sub(subjects.len() as u64);
    let tasks = match (subjects.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(format!("tasks not begun: {}", subjects.join(", "))),
        (false, more) => Some(format!("tasks not begun: {} and {more} more", subjects.join(", "))),
    };
    [Some(ended), figures(&pod.work), tasks].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// What happened since a screen was left, in one sentence for the next one; `None` where that is little.
pub fn returned(family: &Family, workspace: &Path, left: u64, now: u64) -> Option<String> {
    let here = family.all().iter().filter(|info| family.belongs(info, workspace, None));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::tests::{NOON, pod};
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
        let rows = rows(&family, |_| true, &pods, NOON);
        let shown: Vec<String> =
            rows.iter().map(|row| format!("{} | {} | {}", row.path, row.text, row.age)).collect();
        assert_eq!(
            shown,
            [
                "shop › tester | wants the network | 1 h",
                "shop › bench | failed: exit 101 · $0.25 | 2 h",
                r"shop › fmt | All pass.\x1b[31m · $0.50 · 2 files +12 −3 · tasks not begun: CHANGELOG, docs, x and 47 more | 3 h",
            ]
        );
    }

    #[test]
    fn the_title_sums_runs_cost_files_and_what_let_calls_begin() {
        let (_, pods) = shop();
        assert_eq!(
            title(&pods, 8 * HOUR),
            "the last 8 h: 3 runs ended · $0.75 · 2 files +12 −3 · allowed: 4 by walls, 1 by you"
        );
        assert_eq!(title(&[], 8 * HOUR), "no run ended in the last 8 h");
    }

    #[test]
    fn a_screen_that_opens_counts_what_happened_since_the_last_one_and_says_so_only_then() {
        let (family, _) = shop();
        let place = PathBuf::from(&family.all()[0].workspace);
        let said = |left| returned(&family, &place, left, NOON);
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
        assert_eq!(returned(&family, &PathBuf::from("/elsewhere"), NOON - 7 * HOUR, NOON), None);
    }
}
