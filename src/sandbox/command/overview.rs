//! Computes the access of a command as its helper does, without starting one.

use crate::protocol::{CommandSheet, OwnPlace, ShutPlace};
use crate::sandbox::access::confinement::Isolation;
use crate::sandbox::access::env;
use crate::sandbox::access::view::{CommandView, Hole, Level};
use crate::sandbox::mounts::plan::{self, Right};
use crate::sandbox::mounts::world::{Part, World};
use crate::sandbox::process::prepare::ViewOnDisk;
use crate::sandbox::process::reexec::MARK;
use std::collections::BTreeMap;
use std::path::Path;

/// The paths, the costs and the variables of the next command with this view. Reads the disk. The
/// caller adds the sentences about the sandbox and its limits, and the withheld variables.
pub fn overview(asked: CommandView, cwd: &Path, env: &BTreeMap<String, String>) -> CommandSheet {
    let mut env = env.clone();
    let disk = ViewOnDisk::of(asked);
    let (holes, _) = disk.holes();
    let mut sheet = match disk.view.isolation {
        Isolation::Namespaces => of_world(&disk.world(&holes, cwd, &mut env), &disk.view, &holes),
        Isolation::LandlockOnly => {
            env::place_tools(&mut env);
            env::lead_to(Path::new("a directory of its own"), &mut env);
            of_grants(&disk.view, &holes)
        }
    };
    sheet.shut = holes.iter().filter(|hole| hole.level < Level::Write).map(shut).collect();
    env.insert(MARK.into(), String::new());
    sheet.env = env.into_keys().collect();
    sheet
}

fn of_world(world: &World, view: &CommandView, holes: &[Hole]) -> CommandSheet {
    let mut sheet = CommandSheet { cost: world.cost.clone(), ..CommandSheet::default() };
    let own = |path: &Path, kept, mib| OwnPlace { path: path.to_owned(), kept, mib };
    for (path, part) in &world.parts {
        match part {
            Part::Bind(Level::Write) => sheet.write.push(path.clone()),
            Part::Bind(Level::Read) => sheet.read.push(path.clone()),
            Part::Layered => sheet.caches.push(path.clone()),
            Part::Kept => sheet.own.push(own(path, true, view.limits.tmp_mib)),
            Part::Memory(mib) => sheet.own.push(own(path, false, *mib)),
            Part::Bind(Level::Hidden)
            | Part::Script
            | Part::Pinned
            | Part::Hidden
            | Part::Directory
            | Part::Device
            | Part::Terminals
            | Part::Processes => {}
        }
    }
    // A read-only hole is listed as guarded.
    sheet.read.retain(|path| !holes.iter().any(|hole| hole.path == *path));
    sheet
}

fn of_grants(view: &CommandView, holes: &[Hole]) -> CommandSheet {
    let plan = plan::around_holes(view, holes);
    let with = |right| {
        let rules = plan.rules.iter().filter(move |rule| rule.right == right);
        rules.map(|rule| rule.path.clone()).collect()
    };
    let (read, write) = (with(Right::Read), with(Right::Write));
    CommandSheet { read, write, cost: plan.cost.clone(), ..CommandSheet::default() }
}

fn shut(hole: &Hole) -> ShutPlace {
    ShutPlace {
        path: hole.path.clone(),
        read: hole.level > Level::Hidden,
        why: hole.why.text().into(),
    }
}
