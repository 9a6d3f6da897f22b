//! Runs git for the working tree of a Pod. Settings, hooks, filters and attributes of a repository are programs, and a Pod may
//! have written some of them, so each command of git runs as confined as a command of the Pod does, without the network.

use crate::config::dirs::Env;
use crate::host::Shared;
use crate::host::pod::start::{command_env, command_limits};
use crate::host::worktree::{Worktree, end_of};
use crate::protocol::Refusal;
use crate::sandbox::{
    Command, CommandView, Isolation, Need, Outcome, PodWorld, Sandbox, StartGroup, UserPaths,
    ViewInputs, repository_of,
};
use crate::scope::{Permission, Rule, Scope};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long git may take to change the list of working trees, which reads and writes no file of them.
const TO_LIST: Duration = Duration::from_secs(30);
/// How long git may take to check a branch out.
const TO_MAKE: Duration = Duration::from_secs(600);
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
/// while all of it can be written. It is locked, because `git worktree prune` in another world does not see it. Prints the
/// commit of a branch that it makes.
const MAKE: &str = r#"
git() { command git --git-dir="$YOI_REPOSITORY" "$@"; }
set -- worktree add --quiet --no-checkout --lock --reason "$YOI_REASON"
if git show-ref --verify --quiet "refs/heads/$YOI_BRANCH"; then
  git "$@" -- "$YOI_TREE" "$YOI_BRANCH" || exit
elif commit=$(command git --git-dir="$YOI_FROM" rev-parse --quiet --verify 'HEAD^{commit}'); then
  git "$@" --no-track -b "$YOI_BRANCH" -- "$YOI_TREE" "$commit" || exit
  echo "$commit"
else
  command -v git >/dev/null || exit 127
  echo 'the repository has no commit yet: make one first'; exit 1
fi
"#;

/// Checks the files out, and prints the commit. Filters run with the rights of the Pod.
const CHECK_OUT: &str = "git reset --quiet --hard && echo && git rev-parse HEAD";

/// Prints what is otherwise in a new working tree than in its commit, and what lies there besides. A file whose line ends
/// are not those that its attributes ask for counts as changed for git, however it was checked out.
const COMPARE: &str = r#"
set -o pipefail
find . -mindepth 2 -name .git -prune || exit 1
git status --porcelain -z --untracked-files=all --ignored=matching | while IFS= read -r -d '' line; do
  path=${line:3}
  [[ $line == ' M '* && ! -L $path ]] && git cat-file --filters "HEAD:$path" | cmp -s - "$path" && continue
  printf '%s\n' "$line"
done
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
git for-each-ref --count=1 --format=on --contains HEAD refs/heads refs/remotes refs/tags | grep . ||
  git rev-parse --short HEAD || echo HEAD
git rev-list --count "$YOI_START..HEAD" -- || echo 0
git log --no-show-signature --max-count=20 --format='commit %h %s' "$YOI_START..HEAD" --
inner=$(find . -mindepth 2 -name .git -prune) || exit 1
[ -z "$inner" ] || sed 's/^/a repository, which may have commits of its own: /' <<< "$inner"
git ls-files --stage -z | sed -nz 's/^160000 [^\t]*\t//p' | while IFS= read -r -d '' path; do
  [ -z "$(ls -A -- "$path" 2>/dev/null)" ] || echo "a repository, which may have commits of its own: $path"
done
[ ! -e "$dir/modules" ] || echo "a repository, which may have commits of its own: $dir/modules"
for state in $YOI_STATES; do
  [ ! -e "$dir/$state" ] || echo "$state: an operation of git is under way"
done
git for-each-ref --format='a ref of this working tree alone: %(refname)' refs/worktree
git ls-files -v -z | grep -z '^[a-zS]' | while IFS= read -r -d '' line; do
  path=${line:2}
  [ ! -e "$path" ] && [ ! -L "$path" ] || echo "marked so that git does not look at it: $path"
done
git status --porcelain --untracked-files=all --ignored=matching --ignore-submodules=none
) 2>"$said" || { code=$?; cat "$said"; exit "$code"; }
"#;

/// The beginning of a line of LOOK with a new commit.
const COMMIT: &str = "commit ";

/// Removes what the repository has of a working tree whose directory is gone, if it has anything. Some of that is guarded, so
/// this needs git. It starts no program that the repository names: git looks at no file of a working tree that is not there.
const FORGET: &str = r#"
[ ! -e "$YOI_TREE" ] || { echo 'its directory is there'; exit 1; }
git() { command git --git-dir="$dir" "$@"; }
record=
for named in "$YOI_COMMON"/worktrees/*/gitdir; do
  dir=${named%/gitdir}
  [ -f "$named" ] || continue
  path=$(cat "$named" 2>/dev/null) || continue
  [[ $path == /* ]] || path=$(realpath -m -- "$dir/$path")
  [ "$path" != "$YOI_TREE/.git" ] || record=$dir
done
[ -n "$record" ] || exit 0
if [ -z "$agreed" ]; then
  dir=$record
  lost=$(git for-each-ref --count=1 --format='%(refname)' refs/worktree) || [ ! -e "$record/commondir" ] || exit
  for state in $YOI_STATES; do
    [ ! -e "$record/$state" ] || lost=$state
  done
  if ! git symbolic-ref --quiet HEAD >/dev/null && head=$(git rev-parse --quiet --verify 'HEAD^{commit}') &&
    [ -z "$(git for-each-ref --count=1 --contains "$head" refs/heads refs/remotes refs/tags)" ]; then
    lost="the commit $head, which is on no branch: git branch NAME $head keeps it"
  fi
  [ -z "$lost" ] || { echo "$record has what would be lost ($lost); git worktree remove --force --force gives it up"; exit 1; }
fi
dir=$YOI_REPOSITORY
git worktree remove --force --force -- "$YOI_TREE"
"#;

/// Deletes the branch that was made for a working tree, unless it has new commits or is checked out elsewhere.
const DELETE_BRANCH: &str = r#"
git() { command git --git-dir="$YOI_REPOSITORY" "$@"; }
[ "$(git rev-parse --quiet --verify "refs/heads/$YOI_BRANCH")" = "$commit" ] || exit 0
list=$(git worktree list --porcelain) || exit 0
! grep -qxF "branch refs/heads/$YOI_BRANCH" <<< "$list" || exit 0
git update-ref -d "refs/heads/$YOI_BRANCH" "$commit"
"#;

/// What is in the directory of git of a working tree while an operation is under way.
const STATES: &str = "rebase-merge rebase-apply sequencer MERGE_HEAD MERGE_AUTOSTASH CHERRY_PICK_HEAD REVERT_HEAD BISECT_LOG";

/// Why git does not prune the working trees that yoi makes.
const REASON_OF_LOCK: &str = "yoi";

/// Settings for every git that is started here: no hook runs, and files are compared as they lie there, whatever the
/// repository lets git believe.
const SETTINGS: [(&str, &str); 7] = [
    ("core.hooksPath", "/dev/null"),
    ("core.quotePath", "false"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.checkStat", "default"),
    ("core.trustctime", "true"),
    ("worktree.useRelativePaths", "false"),
];

/// Whether a person agreed to lose what is on no branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
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
    pub(super) commits: Vec<String>,
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
    /// Makes the working tree without its files; the commit of the branch, if that is new.
    pub(super) async fn make(&self) -> Result<Option<String>, Refusal> {
        let made = self.in_repository(MAKE, &[]).await?;
        Ok(made.lines().last().filter(|line| is_commit(line)).map(str::to_owned))
    }

    /// Checks the files out; the commit at which the working tree begins.
    pub(super) async fn check_out(&self) -> Result<String, Refusal> {
        let path = &self.tree.path;
        let writes = vec![path.clone()];
        let rights = Rights { writes: writes.clone(), checks_out: true, ..Rights::default() };
        let output = self.run(CHECK_OUT, rights, path, TO_MAKE).await?;
        let commit = output.lines().last().unwrap_or_default();
        let is_dir = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        if !is_commit(commit) || !is_dir {
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
    pub(super) fn must_belong(&self) -> Result<(), Refusal> {
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

    /// Refuses to make way if a person made a working tree where this one is to lie: it may hold work, and its record more.
    pub(super) fn must_not_be_by_hand(&self) -> Result<(), Refusal> {
        let Worktree { path, repository, .. } = self.tree;
        let Some((own, _)) = repository_of(path) else { return Ok(()) };
        let reason = fs::read_to_string(own.join("locked")).unwrap_or_default();
        if reason.trim_end() == REASON_OF_LOCK {
            return Ok(());
        }
        Err(Refusal::invalid(format!(
            "{} holds a working tree that yoi did not make: move it elsewhere, with `git worktree move` if {} lists it",
            path.display(),
            repository.display()
        )))
    }

    /// Deletes the branch, unless it left this commit.
    pub(super) async fn delete_branch(&self, commit: &str) -> Result<(), Refusal> {
        let program = format!("commit={commit}\n{DELETE_BRANCH}");
        self.in_repository(&program, &[]).await.map(drop)
    }

    /// Has the repository forget the working tree, whose directory is gone.
    pub(super) async fn forget(&self, loss: Loss) -> Result<(), Refusal> {
        let agreed = if loss == Loss::Agreed { "yes" } else { "" };
        let program = format!("agreed={agreed}\n{FORGET}");
        self.in_repository(&program, &[Need::Git]).await.map(drop)
    }

    /// Compares the working tree with its branch. It reads the working tree and what git needs of the repository, as a command
    /// of the Pod in the background does.
    pub(super) async fn look(&self, limit: Duration) -> Result<Report, Refusal> {
        self.must_belong()?;
        let path = &self.tree.path;
        let rights = Rights { writes: vec![path.clone()], only_reads: true, ..Rights::default() };
        let (output, digest) = self.run_whole(LOOK, rights, path, limit).await?;
        report(&output, digest).ok_or_else(|| self.failed(&output))
    }

    /// A command that writes the repository and the directory in which the working tree lies, and reads nothing else: not
    /// the other working trees.
    async fn in_repository(&self, program: &str, needs: &[Need]) -> Result<String, Refusal> {
        let (_, repository) = self.repository()?;
        let home = self.tree.home();
        // A person may have deleted it.
        fs::create_dir_all(home)
            .map_err(|error| Refusal::internal(format!("{}: {error}", home.display())))?;
        let list = {
            let lists = self.shared.worktree_lists.lock();
            let mut lists = lists.unwrap_or_else(PoisonError::into_inner);
            lists.entry(repository.clone()).or_default().clone()
        };
        let _one_at_a_time = list.lock().await;
        let writes = vec![repository, home.to_owned()];
        let rights = Rights { writes, needs, ..Rights::default() };
        self.run(program, rights, home, TO_LIST).await
    }

    fn repository(&self) -> Result<(PathBuf, PathBuf), Refusal> {
        let top = &self.tree.repository;
        repository_of(top).ok_or_else(|| {
            Refusal::invalid(format!(
                "{} is not a git repository of yours any more; its working trees need it there",
                top.display()
            ))
        })
    }

    async fn run(
        &self,
        program: &str,
        rights: Rights<'_>,
        cwd: &Path,
        limit: Duration,
    ) -> Result<String, Refusal> {
        Ok(self.run_whole(program, rights, cwd, limit).await?.0)
    }

    /// The beginning of the output of a program, and the hash of all of it.
    async fn run_whole(
        &self,
        program: &str,
        rights: Rights<'_>,
        cwd: &Path,
        limit: Duration,
    ) -> Result<(String, String), Refusal> {
        let isolation = self.shared.confinement().await.isolation();
        if isolation != Isolation::Namespaces {
            return Err(Refusal::invalid(
                "working trees need the namespaces of Linux, in which git runs confined; `yoi doctor` says why there \
                 are none here",
            ));
        }
        let settings = self.shared.settings.last().settings;
        let env = command_env(&settings, self.env);
        let (own, limits) = (self.shared.dirs.own(), command_limits(&settings));
        let Rights { writes, needs, only_reads, checks_out } = rights;
        let writes = writes.into_iter().map(|path| Rule::new(path, Permission::Write));
        let scope = Scope::new(writes.collect());
        let around = ViewInputs::new(&scope, UserPaths { env: &env });
        let view = CommandView::new(&ViewInputs { own: &own, needs, limits, ..around });
        let checks_out = checks_out.then(|| self.tree.path.clone());
        let view = Some(CommandView { in_background: only_reads, checks_out, ..view });
        let env = self.environment(env)?;
        let (program, cwd, group) = (program.to_owned(), cwd.to_owned(), StartGroup::default());
        let command = Command { program, cwd, env, timeout: limit, view, group };
        let (helper, nofile) = (self.shared.helper.clone(), self.shared.old_nofile);
        let sandbox = Sandbox { helper, nofile, world: PodWorld::default() };
        let (mut output, mut hash) = (Vec::new(), blake3::Hasher::new());
        let take = |bytes: &[u8]| {
            hash.update(bytes);
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
            Outcome::Exited(0) => Ok((output, hash.finalize().to_hex().to_string())),
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

    /// The environment of the Pod's commands with the settings of git, and what the programs are about.
    fn environment(&self, mut env: Env) -> Result<Env, Refusal> {
        let text = |path: &Path| path.display().to_string();
        let (own_dir, common) = self.repository()?;
        let from = match &self.tree.from {
            Some(from) => repository_of(from).map_or(text(&own_dir), |(own, _)| text(&own)),
            None => text(&own_dir),
        };
        let start = self.tree.start.clone().unwrap_or_else(|| "HEAD".into());
        env.extend([
            ("PATH".into(), PATH.into()),
            ("GIT_OPTIONAL_LOCKS".into(), "0".into()),
            // It would start programs that the repository names, to get what is missing in it.
            ("GIT_NO_LAZY_FETCH".into(), "1".into()),
            ("GIT_CONFIG_COUNT".into(), SETTINGS.len().to_string()),
            ("YOI_REPOSITORY".into(), text(&own_dir)),
            ("YOI_COMMON".into(), text(&common)),
            ("YOI_STATES".into(), STATES.into()),
            ("YOI_REASON".into(), REASON_OF_LOCK.into()),
            ("YOI_FROM".into(), from),
            ("YOI_TREE".into(), text(&self.tree.path)),
            ("YOI_BRANCH".into(), self.tree.branch.clone()),
            ("YOI_START".into(), start),
        ]);
        for (at, (key, value)) in SETTINGS.iter().enumerate() {
            env.insert(format!("GIT_CONFIG_KEY_{at}"), (*key).into());
            env.insert(format!("GIT_CONFIG_VALUE_{at}"), (*value).into());
        }
        Ok(env)
    }

    /// What git said last.
    fn failed(&self, output: &str) -> Refusal {
        let said: Vec<&str> = output.lines().filter(|line| !line.starts_with("hint:")).collect();
        let said = said.join("\n");
        let said = match end_of(&said, REASON) {
            "" => "it did not say why",
            said => said,
        };
        Refusal::invalid(format!("git: {said}"))
    }
}

fn is_commit(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn report(output: &str, digest: String) -> Option<Report> {
    let mut lines = output.lines();
    let head = lines.next()?;
    let branch = head.strip_prefix("refs/heads/").map(str::to_owned);
    let (added, removed) = lines.next()?.split_once(' ')?;
    let on_no_branch = lines.next().filter(|head| *head != "on");
    let ahead = lines.next()?.parse().ok()?;
    let mut lines = lines.peekable();
    let commit = || lines.next_if(|line| line.starts_with(COMMIT));
    let commits = std::iter::from_fn(commit).map(|line| line[COMMIT.len()..].to_owned()).collect();
    let mut unsaved: Vec<String> = lines.map(str::to_owned).collect();
    if let Some(head) = on_no_branch {
        unsaved.insert(0, format!("the commit {head}, which is on no branch"));
    }
    let (added, removed) = (added.parse().ok()?, removed.parse().ok()?);
    Some(Report { branch, added, removed, ahead, commits, unsaved, digest })
}
