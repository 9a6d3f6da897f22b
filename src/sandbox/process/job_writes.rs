//! Looks at the directories of its scope that a command in the background is to write. It may run for days beside other
//! commands and beside the person, so in them lies nothing that is guarded, and they are no part of what git obeys.

use crate::files::{canonical, led_to};
use crate::sandbox::access::project;
use crate::sandbox::access::view::{CommandView, Depth, GIT, Hole, Level, Links, Why};
use crate::sandbox::git::repository::{HEAD, HELD};
use crate::sandbox::git::search::{self, Found};
use crate::sandbox::mounts::plan;
use std::path::{Path, PathBuf};

/// How each refusal ends.
const WAY_OUT: &str = "name a directory that holds only what this command makes, such as dist or .next, or let it write \
                       below /tmp";

/// Why a command must not write one of the directories that its call names, as the model reads it. `asked` and `view` are the
/// view of an ordinary command of the Pod, as sent and with canonical grants.
pub fn why_not(asked: &CommandView, view: &CommandView) -> Option<String> {
    if asked.writes.is_empty() {
        return None;
    }
    let found = search::find(asked, view);
    let (shut, _) = plan::holes(view, &found);
    let guarded = guarded(asked, &shut, &found);
    asked.writes.iter().find_map(|dir| one(asked, dir, &shut, &guarded))
}

fn one(asked: &CommandView, dir: &Path, shut: &[Hole], guarded: &[PathBuf]) -> Option<String> {
    let shown = dir.display();
    let refused = |why: String| Some(format!("writes: {why}; {WAY_OUT}"));
    if canonical(dir).ok().as_deref() != Some(dir) || !dir.is_dir() {
        return refused(format!("{shown} is another place now than when it was named"));
    }
    let has_data = |part: &Path| HELD.iter().all(|name| exists(&part.join(name)));
    let in_git = |part: &Path| part.ends_with(GIT) || exists(&part.join(HEAD)) || has_data(part);
    if let Some(git) = dir.ancestors().find(|part| in_git(part)) {
        let git = git.display();
        return refused(format!("{shown} is a part of {git}, which git obeys"));
    }
    if exists(&dir.join(GIT)) {
        return refused(format!("{shown} is the top of a repository"));
    }
    let mut scope = asked.grants.iter().filter(|grant| grant.links == Links::Refused);
    if scope.any(|grant| grant.depth != Depth::Cache && grant.path.starts_with(dir)) {
        return refused(format!("{shown} is or contains a top directory of the scope"));
    }
    if let Some(hole) = shut.iter().find(|hole| hole.level < Level::Write && hole.restricts(dir)) {
        return refused(format!("{shown} is guarded: {}", hole.why.text()));
    }
    let inside = guarded.iter().find(|path| path.starts_with(dir))?;
    refused(format!("{} is guarded, and is in {shown}", inside.display()))
}

/// Every guarded path, existing or not, and where links at such paths lead.
fn guarded(asked: &CommandView, shut: &[Hole], found: &Found) -> Vec<PathBuf> {
    let Found { dirs, pointers, places, named, projects, .. } = found;
    let holes = asked.holes.iter().chain(shut).filter(|hole| hole.why != Why::Socket);
    let holes = holes.flat_map(|hole| [hole.path.clone()].into_iter().chain(led_to(&hole.path)));
    let git = dirs.keys().chain(pointers.keys()).chain(places).chain(named).cloned();
    holes.chain(git).chain(projects.iter().flat_map(|dir| project::below(dir))).collect()
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
