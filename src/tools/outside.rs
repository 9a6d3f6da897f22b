//! The paths outside its scope that a command names: resolves them, and refuses those that no
//! approval can grant.

use crate::files;
use crate::protocol::{Credential, OutsideAccess, OutsidePath, ScriptHash};
use crate::sandbox::{Isolation, Need, PATH_SOCKETS};
use crate::scope::Permission;
use crate::tools::bash::{self, Input};
use crate::tools::scripts::{self, Shown};
use crate::tools::{Context, guard, input};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs::Metadata;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The most paths that one command may name.
const MOST: usize = 20;
/// The directory of devices, none of which can be granted.
const DEVICES: &str = "/dev";
/// An example of the argument, for a model that omitted it.
const FORM: &str = r#"outside: [{"path": "/srv/data", "write": false}]"#;

/// A path as a call names it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Named {
    /// Absolute: a file, a directory with everything in it, or the socket of another program.
    path: PathBuf,
    /// Whether the command changes it; a socket is only connected to.
    #[serde(default)]
    write: bool,
}

/// What a command needs beyond its scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandNeeds {
    pub needs: Vec<Need>,
    /// Sorted, without duplicates.
    pub outside: Vec<OutsidePath>,
    /// Sorted, without duplicates.
    pub credentials: Vec<Credential>,
    /// The socket of the ssh agent that one of these reaches.
    pub agent: Option<OutsidePath>,
    /// The paths as the call names them, where these contain links.
    pub names: Vec<PathBuf>,
    /// The scripts that it runs and that its Pod can change.
    pub scripts: Vec<ScriptHash>,
    /// Whether its line may run something else the next time.
    pub may_run_another: bool,
    /// Its words that name a program or a script that the Pod can change, for another program to start.
    pub handed: Vec<String>,
    /// Whether a command of git may find a repository whose settings the Pod can write.
    pub any_repository: bool,
    /// Whether one of its programs may obey files that the Pod can write.
    pub may_obey_the_pod: bool,
    /// Why no approval can grant this, as the model reads it.
    pub closed: Option<String>,
}

/// What a call of Bash needs. Reads the disk.
pub fn command_needs(arguments: &str, ctx: &Context) -> CommandNeeds {
    // A call that cannot be parsed needs nothing: the tool refuses it.
    let Ok(input) = input::parse::<Input>("Bash", arguments) else {
        return CommandNeeds::default();
    };
    let needs = input.needs();
    match found(ctx, &input) {
        Ok(found) => {
            let Shown { scripts, may_run_another, handed, any_repository, may_obey_the_pod } =
                scripts::of_line(&ctx.canonical(), &input.command);
            CommandNeeds {
                scripts,
                may_run_another,
                handed,
                any_repository,
                may_obey_the_pod,
                ..found
            }
        }
        Err(why) => CommandNeeds { needs, closed: Some(why), ..CommandNeeds::default() },
    }
}

/// Why the needs of a call do not fit its paths, as the model reads it.
pub fn why_needs_do_not_fit(needs: &[Need], named: &[Named]) -> Option<String> {
    if needs.contains(&Need::Outside) && named.is_empty() {
        return Some(format!(
            "needs outside opens only the paths that the call names: add {FORM}, each path absolute and as \
             narrow as possible"
        ));
    }
    (named.len() > MOST).then(|| {
        format!("outside names more than {MOST} paths: name a directory that contains them")
    })
}

/// What a call names, on this disk and in these settings.
pub fn found(ctx: &Context, input: &Input) -> Result<CommandNeeds, String> {
    let found = find(ctx, &input.outside, &input.needs())?;
    let credentials = ctx.credentials.find(&input.credentials(), ctx)?;
    let agent = ctx.credentials.agent(&credentials, ctx)?;
    let found = CommandNeeds { credentials, agent, ..found };
    if let Some(agent) = &found.agent {
        let all: Vec<OutsidePath> = found.outside.iter().chain([agent]).cloned().collect();
        refuse_socket_with_directory(&all)?;
        if bash::view(ctx, &found).level(&agent.path) < crate::sandbox::Level::Write {
            return Err(why_not_granted(ctx, agent));
        }
    }
    Ok(found)
}

/// Resolves the paths of a call on this disk.
fn find(ctx: &Context, named: &[Named], needs: &[Need]) -> Result<CommandNeeds, String> {
    if let Some(why) = why_needs_do_not_fit(needs, named) {
        return Err(why);
    }
    let mut found = CommandNeeds { needs: needs.to_vec(), ..CommandNeeds::default() };
    for named in named {
        let path = one(ctx, named)?;
        if path.path != named.path {
            found.names.push(files::lexical(&named.path));
        }
        found.outside.push(path);
    }
    found.outside.sort_unstable();
    found.outside.dedup();
    refuse_socket_with_directory(&found.outside)?;
    refuse_unconfined_socket(ctx, &found.outside)?;
    let view = bash::view(ctx, &found);
    for path in &found.outside {
        let wanted = match path.access {
            OutsideAccess::Read => crate::sandbox::Level::Read,
            OutsideAccess::Write | OutsideAccess::Socket => crate::sandbox::Level::Write,
        };
        if view.level(&path.path) < wanted || is_written_by_another_pod(ctx, path) {
            return Err(why_not_granted(ctx, path));
        }
    }
    Ok(found)
}

fn one(ctx: &Context, named: &Named) -> Result<OutsidePath, String> {
    let given = named.path.display();
    let resolved = files::resolve(&named.path).map_err(|error| format!("outside: {error}"))?;
    let path = resolved.path;
    let missing =
        || format!("outside: {given} does not exist; name the directory it is to be made in");
    let meta = path.metadata().map_err(|_| missing())?;
    if path.display().to_string().chars().any(char::is_control) {
        return Err(format!("outside: {given:?} has a control character in its name; rename it"));
    }
    if path.parent().is_none() {
        return Err(
            "outside: / is the whole machine; name the paths that the command works with".into()
        );
    }
    let need = if named.write { Permission::Write } else { Permission::Read };
    if let Some(why) = guard::closed(ctx, &path, need).or_else(|| device_refusal(&path)) {
        return Err(format!("outside: {why}"));
    }
    let access = access(&meta, named.write).ok_or_else(|| {
        format!("outside: {given} is neither a file nor a directory nor a socket")
    })?;
    Ok(OutsidePath { path, access })
}

fn access(meta: &Metadata, write: bool) -> Option<OutsideAccess> {
    match meta.file_type() {
        kind if kind.is_socket() => Some(OutsideAccess::Socket),
        kind if kind.is_file() || kind.is_dir() => {
            Some(if write { OutsideAccess::Write } else { OutsideAccess::Read })
        }
        _ => None,
    }
}

/// Why a device is refused; `None` for any other path.
fn device_refusal(path: &Path) -> Option<String> {
    path.starts_with(DEVICES)
        .then(|| format!("devices cannot be granted to a command: {}", path.display()))
}

/// Refuses a socket together with a directory: before Landlock 9 the command could connect to other
/// sockets in the directory.
fn refuse_socket_with_directory(outside: &[OutsidePath]) -> Result<(), String> {
    let socket = outside.iter().find(|path| path.access == OutsideAccess::Socket);
    let directory = outside.iter().find(|path| path.path.is_dir());
    match (socket, directory) {
        (Some(socket), Some(directory)) => Err(format!(
            "outside: a socket and a directory are not given to one command, for other sockets may lie in the \
             directory: use {} and {} in two commands, or name the files one by one",
            socket.path.display(),
            directory.path.display()
        )),
        _ => Ok(()),
    }
}

/// Refuses a socket unless namespaces hide the other sockets or Landlock restricts them: otherwise
/// one approval would grant connections to every listening program of the person.
fn refuse_unconfined_socket(ctx: &Context, outside: &[OutsidePath]) -> Result<(), String> {
    if ctx.isolation == Isolation::Namespaces || ctx.landlock >= PATH_SOCKETS {
        return Ok(());
    }
    match outside.iter().find(|path| path.access == OutsideAccess::Socket) {
        Some(socket) => Err(format!(
            "outside: {} is not opened for connecting: commands run without namespaces here, and with one socket \
             the kernel would allow every socket of the person's programs (needs namespaces or Landlock {PATH_SOCKETS}); \
             leave this step to the person, to whom `yoi doctor` shows what is missing",
            socket.path.display()
        )),
        None => Ok(()),
    }
}

/// Whether another Pod may write a path that the command wants to write.
fn is_written_by_another_pod(ctx: &Context, OutsidePath { path, access }: &OutsidePath) -> bool {
    let own = || ctx.scope.permission(path) == Some(Permission::Write);
    *access == OutsideAccess::Write
        && ctx.others.iter().any(|other| path.starts_with(other))
        && !own()
}

/// Why a named path cannot be granted.
fn why_not_granted(ctx: &Context, named: &OutsidePath) -> String {
    let OutsidePath { path, access } = named;
    let shown = path.display();
    let person = crate::sandbox::UserPaths { env: &ctx.env };
    let around = |dirs: Vec<PathBuf>| dirs.into_iter().find(|dir| path.starts_with(dir));
    let why = match (
        is_written_by_another_pod(ctx, named),
        around(person.programs()),
        around(person.obeyed()),
    ) {
        (true, ..) => "another pod works there".to_owned(),
        (false, Some(dir), _) => {
            format!("it is in a directory on PATH; name that directory, {}", dir.display())
        }
        (false, None, Some(dir)) => {
            let dir = dir.display();
            format!(
                "programs of the person execute or read the files in {dir}; name that directory"
            )
        }
        (false, None, None) => "it is yoi's own, or lent to another pod, or guarded".to_owned(),
    };
    let doing = match access {
        OutsideAccess::Read => "reading",
        OutsideAccess::Write => "writing",
        OutsideAccess::Socket => "connecting",
    };
    format!("outside: {shown} is not opened for {doing}: {why}")
}
