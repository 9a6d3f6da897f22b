//! The first process of a world: builds it, starts the command in it, and ends the remaining
//! processes. When it ends, for whatever reason, the kernel kills all processes of the world.

use crate::protocol::LimitMet;
use crate::sandbox::access::directory;
use crate::sandbox::access::limits::{CommandLimits, FIRST_TO_DIE};
use crate::sandbox::access::places::UserPaths;
use crate::sandbox::access::view::CommandView;
use crate::sandbox::mounts::build::{self, Missing};
use crate::sandbox::mounts::world::{Part, World, is_hidden};
use crate::sandbox::process::capabilities;
use crate::sandbox::process::messages::{Report, WorldOrder};
use crate::sandbox::process::reaper::{self, Reaper, Watchers};
use rustix::fs::statvfs;
use rustix::process::{DumpableBehavior, Signal};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::ExitCode;

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

/// The home directory of a world, which is discarded with it.
struct Home {
    path: PathBuf,
    /// The names in it that belong to the world.
    own: BTreeSet<OsString>,
    /// The places of settings and secrets of the person's programs in it, which the world does not show.
    settings: Vec<PathBuf>,
    /// The files in it that were made for the command, with their contents.
    made: Vec<(PathBuf, String)>,
}

impl Home {
    /// The home directory, if it lies in memory.
    fn of(world: &World, view: &CommandView, person: UserPaths) -> Option<Self> {
        let path = world.home_in_memory(view)?;
        let known = person.obeyed().into_iter().chain(person.secrets());
        let is_shown = |file: &PathBuf| {
            world.holds(file) || world.files.contains_key(file) || world.has_more_in(file)
        };
        let settings = known.filter(|file| file.starts_with(&path) && !is_shown(file));
        let made = world.files.iter().filter(|(file, _)| file.starts_with(&path));
        let made = made.map(|(file, text)| (file.clone(), text.clone())).collect();
        Some(Self { own: world.names_in(&path), settings: settings.collect(), made, path })
    }

    /// What a command left there, and the settings that it changed. Other hidden files are not named: programs write them on
    /// their own.
    fn lost(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name());
        let names = names.filter(|name| !is_hidden(name) && !self.own.contains(name));
        let settings = self.settings.iter().filter(|file| file.symlink_metadata().is_ok());
        // A command may have put anything at their paths.
        let is_changed = |(file, text): &&(PathBuf, String)| {
            let now = directory::read(file, text.len() as u64);
            file.symlink_metadata().is_ok() && now.as_deref() != Some(text.as_bytes())
        };
        let changed = self.made.iter().filter(is_changed).map(|(file, _)| file);
        let inside = settings.chain(changed).filter_map(|file| file.strip_prefix(&self.path).ok());
        let mut lost: Vec<OsString> = names.chain(inside.map(OsString::from)).collect();
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
        .map_err(|reason| format!("the world of the command could not be built: {reason}"))?;
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
    let home = Home::of(&world, &inner.view, UserPaths { env: &inner.env });
    let places = world.parts.into_iter().filter_map(|(path, part)| match part {
        Part::Memory(mib) => Some((path, mib)),
        _ => None,
    });
    Ok((reaper, places.collect(), home))
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
