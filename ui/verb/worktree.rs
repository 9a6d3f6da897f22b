//! `:worktree`: shows the working tree that was made for a Pod, keeps it, or deletes its directory.

use crate::verb::dialogue::or_end;
use crate::verb::targets::Target;
use crate::verb::{
    Confirm, Dialogue, End, Known, Next, Reply, Request, Said, Unasked, Verb, Why, of, verb,
};
use crate::wording::lines::Line;
use clap::{Args, Subcommand};
use yoi::protocol::{Event, Method, PodName, WorktreeChange, WorktreeState};
use yoi::text::SafeText;

/// The most lines of git that a confirmation names.
const NAMED: usize = 12;

pub static VERB: Verb = of::<Worktree>(Verb {
    more: &[
        ":new --worktree makes a Pod that works in a working tree of its own, on a branch of its own. Shows where that is, \
         its branch, the lines and commits since the branch was checked out first, and what is not committed.",
        ":worktree drop deletes the directory of a stopped Pod, and names first what in it is not committed, with \
         what .gitignore names (!!). The branch and its commits stay in the repository, where you merge them with git; \
         :restore makes the directory again on that branch.",
        ":rm deletes the directory with its Pod only if nothing would be lost, and never after :worktree keep.",
    ],
    ..verb("worktree", "show the working tree of a Pod, keep it, or delete it (asks)")
});

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
struct Worktree {
    /// The Pod whose working tree is shown; without it, the selected one
    pod: Option<Target>,
    #[command(subcommand)]
    change: Option<Change>,
    #[arg(skip)]
    shown: Option<Shown>,
}

#[derive(Subcommand)]
enum Change {
    /// Have it stay when its Pod is deleted
    Keep {
        /// Its Pod; without it, the selected one
        pod: Option<Target>,
    },
    /// Delete its directory; the branch stays
    Drop {
        /// Its Pod; without it, the selected one
        pod: Option<Target>,
    },
}

/// The working tree that is to be deleted, as it was shown.
struct Shown {
    pod: PodName,
    digest: String,
    is_asked: bool,
}

impl Dialogue for Worktree {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        match last {
            None => or_end(self.begin(known)),
            Some(Reply::Confirmed) => self.drop_shown(),
            Some(reply) => or_end(reply.single().map(|event| match event {
                Event::Worktree(state) => self.go_on(known, &state),
                _ => Next::End(End::shown("the host did not say what the working tree is")),
            })),
        }
    }
}

impl Worktree {
    fn pod(&self, known: &Known<'_>) -> Result<PodName, End> {
        let named = match &self.change {
            Some(Change::Keep { pod } | Change::Drop { pod }) => pod.as_ref(),
            None => self.pod.as_ref(),
        };
        known.target(named)
    }

    fn begin(&self, known: &Known<'_>) -> Result<Next, End> {
        let pod = self.pod(known)?;
        if matches!(self.change, Some(Change::Drop { .. })) && is_live(known, &pod) {
            let text = format!("{pod} is live and may change its working tree: stop it first");
            return Err(End::refused(Why::Failed, text));
        }
        let is_kept = matches!(self.change, Some(Change::Keep { .. }));
        let change = is_kept.then_some(WorktreeChange::Keep);
        Ok(Next::call(Request::to(pod, Method::Worktree { change })))
    }

    fn go_on(&mut self, known: &Known<'_>, state: &WorktreeState) -> Next {
        let path = shown(&state.info.path.display().to_string());
        let branch = shown(&state.info.branch);
        let pod = match self.pod(known) {
            Ok(pod) => pod,
            Err(end) => return Next::End(end),
        };
        match (&self.change, &self.shown) {
            (None, _) => Next::End(sheet(known, &pod, state)),
            (Some(Change::Keep { .. }), _) => {
                Next::End(End::done(format!("{path} stays when {pod} is deleted")))
            }
            (Some(Change::Drop { .. }), Some(Shown { is_asked: true, .. })) => {
                let text = format!("deleted {path}; its branch {branch} stays");
                Next::End(End::done(text))
            }
            (Some(Change::Drop { .. }), _) => {
                let digest = state.digest.clone();
                self.shown = Some(Shown { pod: pod.clone(), digest, is_asked: false });
                Next::Confirm(Confirm {
                    question: question(&path, state),
                    about: vec![pod],
                    enter: "delete",
                    unasked: Unasked::Asking,
                })
            }
        }
    }

    fn drop_shown(&mut self) -> Next {
        let Some(shown) = &mut self.shown else { return Next::End(End::default()) };
        shown.is_asked = true;
        let change = Some(WorktreeChange::Drop { digest: shown.digest.clone() });
        Next::call(Request::to(shown.pod.clone(), Method::Worktree { change }))
    }
}

fn shown(text: &str) -> String {
    SafeText::spelled(text.to_owned()).into_string()
}

/// Names what would be lost.
fn question(path: &str, state: &WorktreeState) -> String {
    if state.unsaved.is_empty() {
        return format!("delete {path}? All of it is committed, and the branch stays");
    }
    let mut lines: Vec<String> = state.unsaved.iter().take(NAMED).map(|line| shown(line)).collect();
    if let more @ 1.. = state.unsaved.len().saturating_sub(NAMED) {
        lines.push(format!("and {more} more"));
    }
    format!("{path} holds what is not committed:\n{}\ndelete it for good?", lines.join("\n"))
}

fn is_live(known: &Known<'_>, pod: &PodName) -> bool {
    known.family.get(pod).is_some_and(|info| !info.state.is_at_rest())
}

/// What became of the working tree of a Pod that was deleted.
pub fn fate(state: &WorktreeState) -> String {
    let (path, branch) = (state.info.path.display(), shown(&state.info.branch));
    let repository = state.repository.display();
    let path = shown(&path.to_string());
    match &state.stays {
        None => {
            format!("its branch {branch} stays in {repository}, and the working tree is deleted")
        }
        Some(why) if !state.is_there => {
            format!("the working tree {path} is not there ({why})")
        }
        Some(why) => format!(
            "the working tree {path} stays, because {why}: `git -C {repository} worktree remove --force --force {path}` \
             deletes it"
        ),
    }
}

fn sheet(known: &Known<'_>, pod: &PodName, state: &WorktreeState) -> End {
    let WorktreeState { info, repository, is_there, kept, ahead, commits, unsaved, setup, .. } =
        state;
    let mut lines: Vec<Line> = vec![
        ("directory", shown(&info.path.display().to_string())).into(),
        ("branch", shown(&info.branch)).into(),
        ("repository", shown(&repository.display().to_string())).into(),
    ];
    if let Some(changed) = info.lines {
        let text = format!("+{} −{} lines since it was made", changed.added, changed.removed);
        lines.push(("changed", text).into());
    }
    lines.extend(commits.iter().map(|commit| ("commit", shown(commit)).into()));
    if let more @ 1.. = ahead.saturating_sub(commits.len() as u64) {
        lines.push(("", format!("and {more} earlier ones")).into());
    }
    lines.extend(setup.iter().map(|said| ("setup", shown(said)).into()));
    let kept = match kept {
        true => "yes: it stays when the Pod is deleted",
        false => "no: it is deleted with the Pod if all is committed",
    };
    lines.push(("kept", kept.to_owned()).into());
    match (is_there, unsaved.is_empty()) {
        (false, _) => {
            let stop =
                if is_live(known, pod) { format!(":stop {pod}, then ") } else { String::new() };
            let text = format!("not there; {stop}:restore {pod} makes it on its branch");
            lines.push(("state", text).into());
        }
        (true, true) => lines.push(("state", "all is committed".to_owned()).into()),
        (true, false) => {
            lines.extend(unsaved.iter().map(|line| ("not committed", shown(line)).into()))
        }
    }
    End { said: Said::Text { title: format!("working tree of {pod}"), lines }, ..End::default() }
}
