//! `:rm`: deletes stopped Pods and their transcripts: those that are named, or those that are stopped, or
//! were last active long ago.

use crate::verb::several::{Each, confirmation, ended, unfinished};
use crate::verb::targets::{Target, few, list, meant};
use crate::verb::time_span::time_span;
use crate::verb::worktree::fate;
use crate::verb::{
    Confirm, Dialogue, End, Known, Next, Reply, Request, Safety, Verb, Why, of, verb,
};
use crate::wording::duration::in_words;
use clap::Args;
use std::cmp::Reverse;
use yoi::protocol::{Event, Method, PodInfo, PodName, Refusal, State};

pub static VERB: Verb = of::<Remove>(Verb {
    safety: Safety::TypedOnly,
    more: &[
        "Deletes the named Pods, or with --stopped every stopped Pod of this workspace. --older-than 7d deletes only \
         the stopped Pods that were last active longer ago than that (30m, 12h, 7d, 2w). With --all it deletes those \
         of every workspace.",
        "A live Pod is never deleted. The Pods are listed before you confirm.",
        crate::verb::help::SELECTORS,
    ],
    ..verb("rm", "delete stopped Pods and their transcripts (asks)")
});

#[derive(Args)]
struct Remove {
    /// The Pods
    #[arg(value_name = "POD", required_unless_present_any = ["stopped", "older_than", "all"])]
    pods: Vec<Target>,
    /// Every stopped Pod of this workspace
    #[arg(long, conflicts_with = "pods")]
    stopped: bool,
    /// The stopped Pods that were last active longer ago than this: 45m, 12h, 7d, 2w
    #[arg(long, value_name = "TIME", value_parser = time_span, conflicts_with = "pods")]
    older_than: Option<u64>,
    /// The stopped Pods of every workspace, not only of this one
    #[arg(long, conflicts_with = "pods")]
    all: bool,
    #[arg(skip)]
    targets: Vec<PodName>,
    /// How the confirmation names them.
    #[arg(skip)]
    names: String,
    /// The results of the first of them.
    #[arg(skip)]
    results: Vec<Result<Event, Refusal>>,
}

impl Dialogue for Remove {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        match last {
            None if self.pods.is_empty() && !self.stopped && self.older_than.is_none() => {
                let line = known.spell("rm --stopped --all");
                let text = format!("--all alone names no Pod: {line} deletes every stopped one");
                Next::End(End::refused(Why::Usage, text))
            }
            None if self.pods.is_empty() => self.begin_stopped(known),
            None => self.begin_named(known),
            Some(Reply::Confirmed) => {
                self.targets.sort_by_key(|pod| Reverse(known.family.depth(pod)));
                self.delete_further(known)
            }
            Some(Reply::Results(results)) => {
                self.results.extend(results);
                if self.results.len() < self.targets.len() {
                    return self.delete_further(known);
                }
                let results = std::mem::take(&mut self.results);
                let unknown = |pod: &&PodName| known.family.get(pod).is_none();
                match self.targets.iter().find(unknown) {
                    Some(pod) if results.iter().all(Result::is_err) => {
                        Next::End(known.no_such(pod.as_str()))
                    }
                    _ => Next::End(ended(known, &self.targets, results, self)),
                }
            }
            Some(Reply::Picked(_) | Reply::Key(_)) => Next::End(End::default()),
        }
    }

    fn confirmation_now(&self, known: &Known<'_>) -> Option<Confirm> {
        let question = self.question(&self.names) + &unfinished(known, &self.targets);
        Some(confirmation(&self.targets, question, self.enter()))
    }
}

impl Remove {
    /// Only a Pod at rest can be deleted: a stopped one, or one whose records cannot be read. All that are
    /// named are known, or none is deleted.
    fn begin_named(&mut self, known: &Known<'_>) -> Next {
        let meant = match meant(known, &self.pods, |info| self.fits(info)) {
            Ok(meant) => meant,
            Err(unknown) => return Next::End(unknown),
        };
        let live = |pod: &&PodName| known.family.get(pod).is_some_and(|info| !self.fits(info));
        if let Some(pod) = meant.pods.iter().find(live) {
            let stop = known.spell(&format!("stop {pod}"));
            let text = format!("{pod} is live: {stop} comes first");
            return Next::End(End::refused(Why::Failed, text));
        }
        self.names = meant.names(known);
        self.targets = meant.pods;
        self.confirm_first(known)
    }

    /// Deletes the next Pods of one depth: the working tree of a parent goes only when no child works there.
    fn delete_further(&self, known: &Known<'_>) -> Next {
        let rest = self.targets.get(self.results.len()..).unwrap_or_default();
        let depths = || rest.iter().map(|pod| known.family.depth(pod));
        let first = depths().next();
        let next = rest.iter().zip(depths()).take_while(|(_, depth)| Some(*depth) == first);
        Next::Call(next.map(|(pod, _)| Request::to(pod.clone(), Method::Remove)).collect())
    }

    /// The stopped Pods that the options mean.
    fn begin_stopped(&mut self, known: &Known<'_>) -> Next {
        let least = self.older_than.unwrap_or_default();
        let found: Vec<&PodInfo> = known
            .family
            .all()
            .iter()
            .filter(|info| info.state == State::Stopped)
            .filter(|info| self.all || info.workspace == known.workspace)
            .filter(|info| age(info, known.now) >= least)
            .collect();
        let Some(oldest) = found.iter().map(|info| age(info, known.now)).max() else {
            return Next::End(End::shown(self.nothing_to_delete()));
        };
        self.targets = found.iter().map(|info| info.name.clone()).collect();
        let (pods, age) = (few(&self.targets), in_words(oldest));
        self.names = match self.targets.len() {
            1 => format!("{pods} (last active {age} ago)"),
            count => format!("{count} stopped Pods ({pods}; the oldest last active {age} ago)"),
        };
        self.confirm_first(known)
    }

    fn confirm_first(&self, known: &Known<'_>) -> Next {
        self.confirmation_now(known).map_or_else(|| Next::End(End::default()), Next::Confirm)
    }

    fn nothing_to_delete(&self) -> String {
        let place = if self.all { "in any workspace" } else { "in this workspace" };
        let age = self
            .older_than
            .map(|least| format!(" that was last active more than {} ago", in_words(least)));
        format!("nothing to delete: there is no stopped Pod {place}{}", age.unwrap_or_default())
    }
}

/// For how long a Pod has done nothing and was in its state, in milliseconds.
fn age(info: &PodInfo, now: u64) -> u64 {
    now.saturating_sub(info.since.max(info.last_activity))
}

impl Each for Remove {
    fn method(&self) -> Method {
        Method::Remove
    }

    fn fits(&self, info: &PodInfo) -> bool {
        info.state.is_at_rest()
    }

    fn question(&self, pods: &str) -> String {
        let their = if self.targets.len() > 1 { "their transcripts" } else { "its transcript" };
        format!("delete {pods} and {their} for good?")
    }

    fn enter(&self) -> &'static str {
        "delete"
    }

    fn said(&self, _known: &Known<'_>, done: &[(PodName, Event)]) -> String {
        let names: Vec<PodName> = done.iter().map(|(name, _)| name.clone()).collect();
        let deleted = match self.pods.is_empty() && names.len() > 1 {
            true => format!("deleted {} Pods: {}", names.len(), few(&names)),
            false => format!("deleted {}", list(&names)),
        };
        let trees = done.iter().filter_map(|(name, event)| match event {
            Event::Worktree(state) => Some(format!("; {name}: {}", fate(state))),
            _ => None,
        });
        std::iter::once(deleted).chain(trees).collect()
    }
}
