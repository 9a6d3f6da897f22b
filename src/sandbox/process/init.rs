//! The first process of a world: builds it, starts the command in it, and ends the remaining
//! processes. When it ends, for whatever reason, the kernel kills all processes of the world.

use crate::protocol::LimitMet;
use crate::sandbox::access::directory;
use crate::sandbox::access::limits::{CommandLimits, FIRST_TO_DIE};
use crate::sandbox::access::places::UserPaths;
use crate::sandbox::mounts::build::{self, Missing};
use crate::sandbox::mounts::world::{Part, World, is_hidden};
use crate::sandbox::process::capabilities;
use crate::sandbox::process::messages::{Report, WorldOrder};
use crate::sandbox::process::reaper::{self, Reaper, Watchers};
use rustix::fs::statvfs;
use rustix::process::{DumpableBehavior, Signal};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How the reason begins for a world that could not be built. The next one is planned with the paths that exist then.
pub const NOT_BUILT: &str = "the world of the command could not be built";
/// The most names of lost files in a report.
const LOST: usize = 20;
/// The main function of this process. Reads the order from standard input and writes the report to
/// standard output; the command's output goes to standard error.
pub fn init_main() -> ExitCode {
    // This process dies with the stage before it. If that stage is gone already, the closed pipe of the
    // order ends this process.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let _ = rustix::process::setsid();
    let report = match begin() {
        Ok((mut reaper, places, home)) => {
            let report = reaper.reap();
            let limit = report.limit.or_else(|| full(&places));
            let lost = home.map(|home| home.lost()).unwrap_or_default();
            Report { limit, lost, ..report }
        }
        Err(reason) => Report::failed(reason),
    };
    report.send()
}

/// An in-memory file system, with its size in MiB.
type InMemory = (PathBuf, u32);

/// The first in-memory file system that is full now. Space that the command freed before its end
/// counts as free.
fn full(places: &[InMemory]) -> Option<LimitMet> {
    let is_full = |(path, _): &&InMemory| {
        statvfs(path).is_ok_and(|free| free.f_bfree == 0 || free.f_ffree == 0)
    };
    places.iter().find(is_full).map(|(path, mib)| CommandLimits::full(path, *mib))
}

/// A world whose home directory lies in memory and is discarded with it.
struct Home {
    path: PathBuf,
    world: World,
    /// The environment of the command, which names the places of programs.
    env: BTreeMap<String, String>,
}

impl Home {
    /// What a command left there, and the settings that it changed. Other hidden files are not named: programs write them on
    /// their own.
    fn lost(&self) -> Vec<String> {
        let (world, person) = (&self.world, UserPaths { env: &self.env });
        let own = world.names_in(&self.path);
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name());
        let names = names.filter(|name| !is_hidden(name) && !own.contains(name));
        let is_in = |file: &Path| file.starts_with(&self.path) && file.symlink_metadata().is_ok();
        let is_shown = |file: &PathBuf| {
            world.holds(file) || world.files.contains_key(file) || world.has_more_in(file)
        };
        let settings = person.obeyed().into_iter().chain(person.secrets());
        let settings = settings.filter(|file| is_in(file) && !is_shown(file));
        // A command may have put anything at their paths.
        let changed = world.files.iter().filter(|(file, text)| {
            is_in(file)
                && directory::read(file, text.len() as u64).as_deref() != Some(text.as_bytes())
        });
        let inside = settings.chain(changed.map(|(file, _)| file.clone()));
        let inside = inside.filter_map(|file| Some(file.strip_prefix(&self.path).ok()?.into()));
        let mut lost: Vec<OsString> = names.chain(inside).collect();
        lost.sort_unstable();
        lost.dedup();
        let more = lost.len().saturating_sub(LOST);
        let names = lost.iter().take(LOST).map(|name| name.to_string_lossy().into_owned());
        names.chain((more > 0).then(|| format!("… ({more} more)"))).collect()
    }
}

fn begin() -> Result<(Reaper, Vec<InMemory>, Option<Home>), String> {
    // The last stage starts meanwhile and waits for its order. It drops its capabilities itself.
    let mut score = OutOfMemory::open();
    score.set(FIRST_TO_DIE);
    let last = reaper::start_last_stage();
    score.restore();
    let mut last = last?;
    reaper::wait_until_started(&mut last)?;
    reaper::wait_for_order(&last)?;
    let WorldOrder { mut world, mut inner } =
        reaper::read_order().ok_or("the order is not readable")?;
    world.hold_scripts(&inner.view.scripts)?;
    let Missing { open, cost } = build::build(&world, inner.view.limits.pid_max())
        .map_err(|reason| format!("{NOT_BUILT}: {reason}"))?;
    inner.open.extend(open);
    inner.cost.extend(cost);
    capabilities::drop_all().map_err(|error| format!("dropping capabilities: {error}"))?;
    let watchers = Watchers::start()?;
    // Commands cannot read or trace this process, from their first moment on.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| format!("the first process: {error}"))?;
    let (leader, confinement) = reaper::become_command(last, &inner)?;
    let reaper = Reaper::watch_world(watchers, leader, confinement);
    let reaper = reaper.with_streams(inner.streams).with_limits(inner.view.limits);
    let places = world.parts.iter().filter_map(|(path, part)| match part {
        Part::Memory(mib) => Some((path.clone(), *mib)),
        _ => None,
    });
    let places = places.collect();
    let path = world.home_in_memory(&inner.view);
    Ok((reaper, places, path.map(|path| Home { path, world, env: inner.env })))
}

/// The `oom_score_adj` of this process and of those it starts. The file is opened before the world is
/// built, because it cannot be written in the world.
struct OutOfMemory(Option<(File, String)>);

impl OutOfMemory {
    fn open() -> Self {
        const FILE: &str = "/proc/self/oom_score_adj";
        let before = fs::read_to_string(FILE).ok();
        Self(File::options().write(true).open(FILE).ok().zip(before))
    }

    fn set(&mut self, score: &str) {
        if let Some((file, _)) = &mut self.0 {
            // If this fails, the kernel does not prefer commands when it kills programs.
            let _ = file.write_all_at(score.as_bytes(), 0);
        }
    }

    /// Restores the score, because this process must survive to report that the kernel killed a
    /// command.
    fn restore(&mut self) {
        let before = self.0.as_ref().map(|(_, before)| before.clone());
        self.set(before.as_deref().unwrap_or_default());
    }
}
