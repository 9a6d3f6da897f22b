//! `:new`: creates a Pod and goes to it.

use crate::verb::dialogue::or_end;
use crate::verb::{Action, Dialogue, End, Known, Next, Reply, Request, Verb, Why, of, verb};
use clap::Args;
use std::path::PathBuf;
use yoi::protocol::method::NewPod;
use yoi::protocol::{ClientKind, Event, Method, NewWorktree, PodName};

pub static VERB: Verb = of::<New>(Verb {
    client: ClientKind::Lasting,
    more: &[
        "Without a name, the Pod is named after its workspace: the nearest directory, from the working directory \
         upwards, that has a .git or .yoi. The workspace becomes its scope. --cwd chooses another working directory; \
         put a directory with blanks in quotes. A name may have letters, digits, `.`, `_` and `-`.",
        "With --worktree, git checks the branch out in a directory of its own, beside the state directory of yoi, and \
         that is the scope of the Pod. A branch that does not exist begins at what is checked out in the working \
         directory. Without a name, the Pod is named after the branch. :worktree shows, keeps or deletes the directory.",
    ],
    ..verb("new", "create a Pod and go to it")
});

#[derive(Args)]
struct New {
    /// The name of the Pod
    name: Option<PodName>,
    /// The working directory; without it, this one
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The model: provider/model, provider/ or rehearsal:<script>
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The profile, [profile.<name>] in config.toml
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// Work in a working tree of git of its own, on this branch; without a name, the branch is named after the Pod
    #[arg(long, value_name = "BRANCH", num_args = 0..=1, default_missing_value = "")]
    worktree: Option<String>,
}

impl Dialogue for New {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let Some(reply) = last else {
            return Next::call(Request::host(Method::New(NewPod {
                name: self.name.clone(),
                cwd: self.cwd.as_ref().map_or(known.cwd.to_owned(), |dir| known.cwd.join(dir)),
                model: self.model.clone().or_else(|| known.model.map(str::to_owned)),
                effort: known.effort,
                profile: self.profile.clone(),
                env: known.env.clone(),
                worktree: self.worktree.clone().map(|branch| NewWorktree {
                    branch: Some(branch).filter(|branch| !branch.is_empty()),
                }),
                ..NewPod::default()
            })));
        };
        or_end(
            reply
                .single()
                .map(|event| Next::End(created(event, |name| format!("{name} is ready")))),
        )
    }
}

/// The end of a verb that created a Pod.
pub fn created(reply: Event, said: impl FnOnce(&PodName) -> String) -> End {
    match reply {
        Event::Created { info } | Event::Spawned { info, .. } => {
            End::done(said(&info.name)).and(Action::Created(info))
        }
        _ => End::refused(Why::Failed, "the host did not say which Pod it created"),
    }
}
