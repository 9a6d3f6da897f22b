//! Landlock: denies opening, connecting to and signalling everything that is not granted here.

use crate::protocol::{OutsideAccess, OutsidePath};
use crate::sandbox::access::confinement::Isolation;
use crate::sandbox::access::view::{CommandView, Network};
use crate::sandbox::mounts::plan::{PathRule, Right};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    PathBeneath, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// The newest version whose rights are used here; an older kernel handles fewer of them.
const NEWEST: ABI = ABI::V9;
/// The first version that restricts connections to sockets with a path.
pub const PATH_SOCKETS: u32 = 9;
/// The first version that restricts abstract sockets and signals to the command's own processes.
pub const SCOPES: u32 = 6;

/// Confines this thread and all its children to these paths. Returns the version of Landlock in
/// use, 0 for none, and the paths that could not be granted.
pub fn restrict(
    view: &CommandView,
    paths: &[PathRule],
) -> Result<(u32, Vec<String>), RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    if view.network == Network::Off && view.isolation == Isolation::LandlockOnly {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut rules = rules.create()?;
    let mut missed = Vec::new();
    for rule in paths {
        match open(rule) {
            Ok((place, is_dir)) => rules = add(rules, place, rights(rule, is_dir, view))?,
            // A missing path needs no rule, and a path that this user cannot open stays closed anyway.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::PERM) => {}
            Err(error) => missed.push(format!("{}: {error}", rule.path.display())),
        }
    }
    let abi = match rules.restrict_self()?.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as u32,
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    };
    Ok((abi, missed))
}

fn add(
    rules: RulesetCreated,
    place: OwnedFd,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    rules.add_rule(PathBeneath::new(place, rights))
}

fn open(rule: &PathRule) -> Result<(OwnedFd, bool), Errno> {
    let strict = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let place = openat2(CWD, &rule.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), strict)?;
    let kind = FileType::from_raw_mode(fstat(&place)?.st_mode);
    Ok((place, kind == FileType::Directory))
}

fn rights(rule: &PathRule, is_dir: bool, view: &CommandView) -> BitFlags<AccessFs> {
    let read = AccessFs::from_read(NEWEST);
    let all = match rule.right {
        Right::List => AccessFs::ReadDir.into(),
        Right::Read => read,
        Right::Write => read | written(),
        Right::Device => {
            AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev
        }
    };
    let is_named =
        |named: &OutsidePath| named.access == OutsideAccess::Socket && named.path == rule.path;
    let own = match view.outside.iter().any(is_named) {
        true => AccessFs::ResolveUnix.into(),
        false => BitFlags::EMPTY,
    };
    if is_dir { all | own } else { (all | own) & AccessFs::from_file(NEWEST) }
}

/// All write rights except making devices and their ioctls.
fn written() -> BitFlags<AccessFs> {
    AccessFs::from_write(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}
