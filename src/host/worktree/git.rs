//! Runs git for the working tree of a Pod. Settings, hooks, filters and attributes of a repository are programs, and a Pod may
//! have written some of them, so each command of git runs as confined as a command of the Pod does, without the network.

use crate::config::dirs::Env;
use crate::host::Shared;
use crate::host::pod::start::{command_env, command_limits};
use crate::host::worktree::{Worktree, end_of};
use crate::protocol::Refusal;
use crate::sandbox::{
    Around, Command, CommandView, Isolation, Need, Outcome, Person, PodWorld, Sandbox, StartGroup,
    repository_of,
};
use crate::scope::{Permission, Rule, Scope};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long git may take to check a branch out.
const TO_MAKE: Duration = Duration::from_secs(600);
/// How long it may take to compare a working tree with its branch.
const TO_LOOK: Duration = Duration::from_secs(30);
/// The most bytes of its output that are used.
const OUTPUT: usize = 1024 * 1024;
/// The most bytes of a reason.
const REASON: usize = 600;
/// The most differences that a sentence names.
const DIFFERENCES: usize = 5;
const NOT_FOUND: i32 = 127;
/// Where programs are found: a Pod may write other directories of its PATH.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Makes the working tree on its branch, without its files and without hooks: programs that the repository names do not run
/// while all of it can be written. It is locked, because `git worktree prune` in another world does not see it.
const MAKE: &str = r#"
git() { command git -c core.hooksPath=/dev/null --git-dir="$YOI_REPOSITORY" "$@"; }
set -- worktree add --quiet --no-checkout --lock --reason yoi
if git show-ref --verify --quiet "refs/heads/$YOI_BRANCH"; then
  git "$@" -- "$YOI_TREE" "$YOI_BRANCH" || exit
elif head=$(command git --git-dir="$YOI_FROM" rev-parse --quiet --verify 'HEAD^{commit}'); then
  git "$@" --no-track -b "$YOI_BRANCH" -- "$YOI_TREE" "$head" || exit
else
  command -v git >/dev/null || exit 127
  echo 'the repository has no commit yet: make one first'; exit 1
fi
"#;

/// Checks the files out, and prints the commit. Filters run with the rights of the Pod.
const CHECK_OUT: &str =
    "git -c core.hooksPath=/dev/null reset --quiet --hard && echo && git rev-parse HEAD";

/// Prints what is otherwise in a new working tree than in its commit, and what lies there besides.
const COMPARE: &str = r#"
find . -mindepth 2 -name .git -prune || exit 1
git status --porcelain --untracked-files=all --ignored=matching
"#;

/// Prints the branch, the numbers of added and of removed lines, whether the commit is on a branch, the number of new
/// commits, and what would be lost, the worst first. Files that git does not know yet count as added, by an index and
/// objects of this command's own: it writes nothing that lasts. git itself sees no repository in a directory of tracked files.
const LOOK: &str = r#"
export LC_ALL=C
said=$(mktemp)
(
dir=$(git rev-parse --git-dir) || exit
git symbolic-ref --quiet HEAD || echo
index=$(mktemp)
cp "$dir/index" "$index"
objects=$(mktemp -d)
(GIT_ALTERNATE_OBJECT_DIRECTORIES=$(cd "$(git rev-parse --git-path objects)" && pwd)
export GIT_INDEX_FILE="$index" GIT_OBJECT_DIRECTORY="$objects" GIT_ALTERNATE_OBJECT_DIRECTORIES
git add --intent-to-add .
git diff --no-ext-diff --numstat "$YOI_START" --) |
  { a=0; r=0; while read -r added removed _; do
      [ "$added" = - ] || { a=$((a + added)); r=$((r + removed)); }
    done; echo "$a $r"; }
git for-each-ref --count=1 --format=on --contains HEAD refs/heads refs/remotes refs/tags | grep . || echo off
git rev-list --count "$YOI_START..HEAD" -- || echo 0
inner=$(find . -mindepth 2 -name .git -prune) || exit 1
[ -z "$inner" ] || sed 's/^/a repository, which may have commits of its own: /' <<< "$inner"
git ls-files --stage | sed -n 's/^160000 [^\t]*\t/a repository, which may have commits of its own: /p'
[ ! -e "$dir/modules" ] || echo 'submodules, which may have commits of their own'
for state in rebase-merge rebase-apply MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD BISECT_LOG; do
  [ ! -e "$dir/$state" ] || echo "$state: an operation of git is under way"
done
git ls-files -v | grep '^[a-zS]' | sed 's/^. /marked so that git does not look at it: /'
git status --porcelain --untracked-files=all --ignored=matching --ignore-submodules=none
) 2>"$said" || { code=$?; cat "$said"; exit "$code"; }
"#;

/// Removes what the repository has of a working tree whose directory is gone, if it has anything. Some of that is guarded, so
/// this needs git. It starts no program that the repository names: git looks at no file of a working tree that is not there.
const FORGET: &str = r#"
[ ! -e "$YOI_TREE" ] || { echo 'its directory is there'; exit 1; }
git() { command git -c core.hooksPath=/dev/null --git-dir="$YOI_REPOSITORY" "$@"; }
list=$(git worktree list --porcelain) || exit
entry=$(awk '$0 == "worktree " ENVIRON["YOI_TREE"] { found = 1 } found && /^$/ { exit } found' <<< "$list")
[ -n "$entry" ] || exit 0
head=$(sed -n 's/^HEAD //p' <<< "$entry")
if [ -z "$agreed" ] && grep -qx detached <<< "$entry" && [[ $head == *[!0]* ]] &&
  [ -z "$(git for-each-ref --count=1 --contains "$head" refs/heads refs/remotes refs/tags)" ]; then
  echo "its commit $head is on no branch: git branch NAME $head keeps it"; exit 1
fi
git worktree remove --force --force -- "$YOI_TREE"
"#;

/// Whether a person agreed to lose what is on no branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    Agreed,
    Refused,
}

/// What git reports of a working tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// `None`: no branch is checked out.
    pub(super) branch: Option<String>,
    pub(super) added: u64,
    pub(super) removed: u64,
    pub(super) ahead: u64,
    pub(super) unsaved: Vec<String>,
    /// The hash of all of it.
    pub(super) digest: String,
}

/// What a command of git may do.
#[derive(Default)]
struct Rights<'a> {
    writes: Vec<PathBuf>,
    needs: &'a [Need],
    /// It only reads what it could write.
    only_reads: bool,
    /// It checks the files of the working tree out.
    checks_out: bool,
}

/// git in the repository of one working tree.
pub(super) struct Git<'a> {
    pub(super) shared: &'a Shared,
    /// The environment of the Pod.
    pub(super) env: &'a Env,
    pub(super) tree: &'a Worktree,
}

impl Git<'_> {
    /// Makes the working tree; the commit at which it begins.
    pub(super) async fn make(&self) -> Result<String, Refusal> {
        self.in_repository(MAKE, &[]).await?;
        let path = &self.tree.path;
        let writes = vec![path.clone()];
        let rights = Rights { writes: writes.clone(), checks_out: true, ..Rights::default() };
        let output = self.run(CHECK_OUT, rights, path, TO_MAKE).await?;
        let commit = output.lines().last().unwrap_or_default();
        let is_commit = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_dir = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        if !is_commit || !is_dir {
            return Err(self.failed(&output));
        }
        self.must_belong()?;
        // Only now, because a filter may leave a program that writes until its command ends.
        let rights = Rights { writes, only_reads: true, ..Rights::default() };
        let differs = self.run(COMPARE, rights, path, TO_MAKE).await?;
        let differs: Vec<&str> = differs.lines().take(DIFFERENCES).collect();
        match differs.is_empty() {
            true => Ok(commit.to_owned()),
            false => Err(Refusal::invalid(format!(
                "what git checked out in {} is not what {commit} has: {}; look at the filters and attributes of the repository",
                path.display(),
                differs.join(", ")
            ))),
        }
    }

    /// Refuses a directory whose `.git` names another repository than that of the working tree.
    fn must_belong(&self) -> Result<(), Refusal> {
        let (_, repository) = self.repository()?;
        let Worktree { path, repository: top, .. } = self.tree;
        match repository_of(path) {
            Some((_, own)) if own == repository => Ok(()),
            _ => Err(Refusal::invalid(format!(
                "{} is no working tree of {}: look at what lies there, and move or delete it yourself",
                path.display(),
                top.display()
            ))),
        }
    }

    /// Has the repository forget the working tree, whose directory is gone.
    pub(super) async fn forget(&self, loss: Loss) -> Result<(), Refusal> {
        let agreed = if loss == Loss::Agreed { "yes" } else { "" };
        let program = format!("agreed={agreed}\n{FORGET}");
        self.in_repository(&program, &[Need::Git]).await.map(drop)
    }

    /// Compares the working tree with its branch. It reads the working tree and what git needs of the repository, as a command
    /// of the Pod in the background does.
    pub(super) async fn look(&self) -> Result<Report, Refusal> {
        self.must_belong()?;
        let path = &self.tree.path;
        let rights = Rights { writes: vec![path.clone()], only_reads: true, ..Rights::default() };
        let output = self.run(LOOK, rights, path, TO_LOOK).await?;
        report(&output).ok_or_else(|| self.failed(&output))
    }

    /// A command that writes the repository and the directory in which the working tree lies, and reads nothing else: not
    /// the other working trees.
    async fn in_repository(&self, program: &str, needs: &[Need]) -> Result<String, Refusal> {
        let (_, repository) = self.repository()?;
        let home = self.tree.home().to_owned();
        let writes = vec![repository, home.clone()];
        let rights = Rights { writes, needs, ..Rights::default() };
        // It is never closed.
        let _one_at_a_time = self.shared.worktree_lists.acquire().await;
        self.run(program, rights, &home, TO_MAKE).await
    }

    fn repository(&self) -> Result<(PathBuf, PathBuf), Refusal> {
        let top = &self.tree.repository;
        repository_of(top).ok_or_else(|| {
            Refusal::invalid(format!("{} is not a git repository of yours any more", top.display()))
        })
    }

    async fn run(
        &self,
        program: &str,
        rights: Rights<'_>,
        cwd: &Path,
        limit: Duration,
    ) -> Result<String, Refusal> {
        let isolation = self.shared.confinement().await.isolation();
        if isolation != Isolation::Namespaces {
            return Err(Refusal::invalid(
                "working trees need the namespaces of Linux, in which git runs confined; `yoi doctor` says why there \
                 are none here",
            ));
        }
        let settings = self.shared.settings.last().settings;
        let mut env = command_env(&settings, self.env);
        let (own, limits) = (self.shared.dirs.own(), command_limits(&settings));
        let Rights { writes, needs, only_reads, checks_out } = rights;
        let writes = writes.into_iter().map(|path| Rule::new(path, Permission::Write));
        let scope = Scope::new(writes.collect());
        let around = Around::new(&scope, Person { env: &env });
        let view = CommandView::new(&Around { own: &own, needs, limits, ..around });
        let checks_out = checks_out.then(|| self.tree.path.clone());
        let view = Some(CommandView { in_background: only_reads, checks_out, ..view });
        let text = |path: &Path| path.display().to_string();
        let own_dir = |top: &Path| repository_of(top).map(|(own, _)| text(&own));
        let repository = own_dir(&self.tree.repository).unwrap_or_default();
        let from = match &self.tree.from {
            Some(from) => own_dir(from).unwrap_or_default(),
            None => repository.clone(),
        };
        let start = self.tree.start.clone().unwrap_or_else(|| "HEAD".into());
        env.extend([
            ("PATH".into(), PATH.into()),
            ("GIT_OPTIONAL_LOCKS".into(), "0".into()),
            // It would start programs that the repository names, to get what is missing in it.
            ("GIT_NO_LAZY_FETCH".into(), "1".into()),
            ("YOI_REPOSITORY".into(), repository),
            ("YOI_FROM".into(), from),
            ("YOI_TREE".into(), text(&self.tree.path)),
            ("YOI_BRANCH".into(), self.tree.branch.clone()),
            ("YOI_START".into(), start),
        ]);
        let (program, cwd, group) = (program.to_owned(), cwd.to_owned(), StartGroup::default());
        let command = Command { program, cwd, env, timeout: limit, view, group };
        let (helper, nofile) = (self.shared.helper.clone(), self.shared.old_nofile);
        let sandbox = Sandbox { helper, nofile, world: PodWorld::default() };
        let mut output = Vec::new();
        let take = |bytes: &[u8]| {
            let room = OUTPUT.saturating_sub(output.len());
            output.extend_from_slice(&bytes[..bytes.len().min(room)]);
        };
        let ended = sandbox.run(&command, &CancellationToken::new(), take).await;
        let ended = ended.map_err(|error| Refusal::internal(error.to_string()))?;
        if !ended.undone.is_empty() {
            let (path, undone) = (self.tree.path.display(), ended.undone.join("; "));
            self.shared.add_notice(format!("git for the working tree {path}: {undone}"));
        }
        let output = String::from_utf8_lossy(&output).into_owned();
        match ended.outcome {
            Outcome::Exited(0) => Ok(output),
            Outcome::Exited(NOT_FOUND) => {
                Err(Refusal::invalid(format!("git was not found in {PATH}: install it there")))
            }
            Outcome::TimedOut => {
                let (path, limit) = (self.tree.path.display(), limit.as_secs());
                Err(Refusal::invalid(format!("git took more than {limit} s for {path}")))
            }
            _ => Err(self.failed(&output)),
        }
    }

    /// What git said last.
    fn failed(&self, output: &str) -> Refusal {
        let said = match end_of(output, REASON) {
            "" => "it did not say why",
            said => said,
        };
        Refusal::invalid(format!("git, for {}: {said}", self.tree.path.display()))
    }
}

fn report(output: &str) -> Option<Report> {
    let mut lines = output.lines();
    let head = lines.next()?;
    let branch = head.strip_prefix("refs/heads/").map(str::to_owned);
    let (added, removed) = lines.next()?.split_once(' ')?;
    let is_on_branch = lines.next()? == "on";
    let ahead = lines.next()?.parse().ok()?;
    let mut unsaved: Vec<String> = lines.map(str::to_owned).collect();
    if !is_on_branch {
        unsaved.insert(0, "commits that are on no branch".into());
    }
    let digest = blake3::hash(output.as_bytes()).to_hex().to_string();
    let (added, removed) = (added.parse().ok()?, removed.parse().ok()?);
    Some(Report { branch, added, removed, ahead, unsaved, digest })
}
