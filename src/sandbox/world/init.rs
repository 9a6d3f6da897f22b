//! The first process of a world: builds it, starts the command in it, and ends everything that is
//! left. When it ends, for whatever reason, the kernel kills all that lives in the world.

use crate::sandbox::order::Report;
use crate::sandbox::places::Person;
use crate::sandbox::reaper::{self, Reaper};
use crate::sandbox::view::{CommandView, Hole};
use crate::sandbox::world::build::{self, Missing};
use crate::sandbox::world::{Part, World};
use crate::sandbox::{confine, helper, plan, resolve, stage};
use rustix::process::{DumpableBehavior, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::ExitCode;

/// The `oom_score_adj` of commands: the kernel kills them before other programs when memory runs out.
const FIRST_TO_DIE: &str = "800";

/// The whole life of this process; called first thing in `main`. Order on standard input, report on
/// standard output, the command's output on standard error.
pub fn init_main() -> ExitCode {
    // This process dies with the stage before it. If that stage is gone already, the closed pipe of the
    // order ends this process.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let _ = rustix::process::setsid();
    let report = match begin() {
        Ok(mut reaper) => reaper.reap(),
        Err(reason) => Report { failed: Some(reason), ..Report::default() },
    };
    stage::report(&report)
}

fn begin() -> Result<Reaper, String> {
    let mut order = reaper::read_order().ok_or("the order is not readable")?;
    reaper::give_back_limit(order.nofile);
    let asked = order.view.take().ok_or("the order has no view")?;
    let view = resolve::resolved(asked.clone());
    let (holes, mut open) = plan::holes(&view);
    confine::enterable(&order.cwd, &holes)?;
    let mut world = compute(&asked, &view, &holes, &order.cwd, &mut order.env);
    let mut score = OutOfMemory::open();
    let Missing { open: missing, cost: lost } = build::build(&world, view.limits.most_processes())
        .map_err(|reason| format!("the world of the command could not be built: {reason}"))?;
    open.extend(missing);
    world.cost.extend(lost);
    give_up_powers().map_err(|error| format!("giving up powers: {error}"))?;
    let command =
        reaper::Confine { order, view, open, gives: Some(world.gives()), cost: world.cost };
    score.set(FIRST_TO_DIE);
    let spawned = reaper::spawn_confined(command);
    score.restore();
    let (leader, confinement) = spawned?;
    // Commands cannot read or trace this process. Until here Landlock alone keeps them from it.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| format!("the first process: {error}"))?;
    Ok(Reaper::watch_world(leader, confinement))
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
            // If this fails, commands are merely no likelier to be killed than other programs.
            let _ = file.write_all_at(score.as_bytes(), 0);
        }
    }

    /// Puts the score back: this process has to live to report that the kernel killed a command.
    fn restore(&mut self) {
        let before = self.0.as_ref().map(|(_, before)| before.clone());
        self.set(before.as_deref().unwrap_or_default());
    }
}

/// Computes the world of a command, and puts its directories into the environment of the command.
pub fn compute(
    asked: &CommandView,
    view: &CommandView,
    holes: &[Hole],
    cwd: &Path,
    env: &mut BTreeMap<String, String>,
) -> World {
    reaper::place_tools(env);
    let mut world = World::of(asked, view, holes, Person { env: &*env });
    if let Ok(real) = cwd.canonicalize() {
        world.follow_path(cwd);
        if !world.holds(&real) {
            world.parts.insert(real, Part::Directory);
        }
    }
    helper::lead_to(&world.tmp, env);
    world
}

/// Drops every capability of this process and of all it starts. Root keeps `CAP_DAC_OVERRIDE`, because the
/// files of its workspace may belong to other users.
fn give_up_powers() -> rustix::io::Result<()> {
    let kept = match rustix::process::geteuid().is_root() {
        true => CapabilitySet::DAC_OVERRIDE,
        false => CapabilitySet::empty(),
    };
    rustix::thread::clear_ambient_capability_set()?;
    for power in CapabilitySet::all().difference(kept).iter() {
        match rustix::thread::remove_capability_from_bounding_set(power) {
            // This kernel does not know it.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error),
        }
    }
    let held = rustix::thread::capabilities(None)?.permitted.intersection(kept);
    let inheritable = CapabilitySet::empty();
    let sets = CapabilitySets { effective: held, permitted: held, inheritable };
    rustix::thread::set_capabilities(None, sets)?;
    rustix::thread::set_no_new_privs(true)
}
