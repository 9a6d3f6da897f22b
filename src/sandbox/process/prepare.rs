//! Resolves a view on this disk before a command starts, and records the state that is compared
//! after it.

use crate::files::canonical;
use crate::sandbox::access::confinement::WITHOUT_NAMESPACES;
use crate::sandbox::access::env::{self, place_tools};
use crate::sandbox::access::places::UserPaths;
use crate::sandbox::access::resolve;
use crate::sandbox::access::view::{CommandView, Hole, Level, Links, Network, Sockets, Why};
use crate::sandbox::git::check::Snapshot;
use crate::sandbox::git::linked_tree;
use crate::sandbox::git::search::{self, Found};
use crate::sandbox::mounts::plan::{self, Plan};
use crate::sandbox::mounts::world::{Part, World};
use crate::sandbox::process::job_writes;
use crate::sandbox::process::messages::{Inner, Order, Streams, WorldOrder};
use std::collections::BTreeMap;
use std::path::Path;

/// A view on this disk, without the holes that take nothing from a command.
pub struct ViewOnDisk {
    /// With the grants as the host sent them.
    pub asked: CommandView,
    /// With canonical grants.
    pub view: CommandView,
    /// The repositories in it.
    found: Found,
    /// Why the directories that a command in the background names cannot be written.
    refused: Option<String>,
}

/// A view on this disk, and what is compared after its command.
pub struct Prepared {
    disk: ViewOnDisk,
    holes: Vec<Hole>,
    open: Vec<String>,
    before: Snapshot,
}

impl ViewOnDisk {
    /// Looks for what is granted and for repositories. Missing directories of caches are made.
    pub fn of(asked: CommandView) -> Self {
        let mut asked = asked;
        let mut view = resolve::resolved(asked.clone());
        let (grants, parts) = linked_tree::of(&view);
        view.grants.extend(grants.iter().cloned());
        asked.grants.extend(grants);
        asked.holes.extend(parts);
        let holes = resolve::relevant_holes(&asked, &view);
        // Only now: what is a link of the person and which repository belongs to a scope depend on what its Pod may write.
        let asked = CommandView { holes: holes.clone(), ..asked };
        let view = CommandView { holes, ..view };
        let refused = job_writes::why_not(&asked, &view);
        let (asked, view) = (asked.narrowed(), view.narrowed());
        let found = search::find(&asked, &view);
        Self { asked, view, found, refused }
    }

    /// Refuses a command in the background whose scope contains a place of keys where nothing is: only what is there can be
    /// hidden, and the command may run for days.
    fn refuse_later_keys(&self) -> Result<(), String> {
        let scope = || self.asked.grants.iter().filter(|grant| grant.links == Links::Refused);
        let shown = |path: &Path| scope().any(|grant| grant.covers(path));
        let mut secrets = self.asked.holes.iter().filter(|hole| hole.why == Why::Secret);
        let later = secrets.find(|hole| shown(&hole.path) && hole.path.symlink_metadata().is_err());
        match later.filter(|_| self.asked.in_background) {
            None => Ok(()),
            Some(hole) => Err(format!(
                "nothing may run in the background in a scope that contains {}: a key that is put there meanwhile would be \
                 readable; run it in the foreground, or in a pod with a narrower scope",
                hole.path.display()
            )),
        }
    }

    /// The holes that are there and take something away, and what cannot be protected, in words. Missing
    /// directories of hooks are made.
    pub fn holes(&self) -> (Vec<Hole>, Vec<String>) {
        plan::holes(&self.view, &self.found)
    }

    /// Computes the world of a command, and sets the variables of its directories.
    pub fn world(&self, holes: &[Hole], cwd: &Path, env: &mut BTreeMap<String, String>) -> World {
        place_tools(env);
        let mut world = World::of(&self.asked, &self.view, holes, UserPaths { env: &*env });
        if let Ok(real) = canonical(cwd) {
            world.follow_path(cwd);
            if !world.holds(&real) {
                world.parts.insert(real, Part::Directory);
            }
        }
        env::lead_to(&world.tmp, env);
        world
    }
}

impl Prepared {
    /// Resolves the grants and finds the guarded paths. Creates missing directories that must
    /// exist: of caches, of hooks, and `~/.ssh`.
    pub fn of(asked: CommandView) -> Self {
        let mut disk = ViewOnDisk::of(asked);
        let in_background = disk.asked.in_background;
        // What only reads changes nothing that would have to be undone.
        let mut before = match in_background && disk.asked.writes.is_empty() {
            true => Snapshot::default(),
            false => Snapshot::of(&disk.asked, &disk.found),
        };
        disk.found.closed.extend(before.closed().cloned());
        let (holes, open) = disk.holes();
        // Through a socket another command could pass a file that it may write.
        if !in_background
            && disk.found.area.scan.unseen.is_empty()
            && (disk.view.network, disk.view.sockets) == (Network::Off, Sockets::Refused)
        {
            disk.view.sockets = Sockets::Own;
        }
        before.take_area(&mut disk.found);
        Self { disk, holes, open, before }
    }

    /// Refuses a command that cannot start here, with a sentence.
    fn refuse(&self, cwd: &Path) -> Result<(), String> {
        enterable(cwd, &self.holes)?;
        self.disk.refused.clone().map_or(Ok(()), Err)?;
        self.disk.refuse_later_keys()
    }

    /// The world for a command.
    pub fn world(self, mut order: Order) -> Result<(WorldOrder, Snapshot), String> {
        self.refuse(&order.cwd)?;
        let mut world = self.disk.world(&self.holes, &order.cwd, &mut order.env);
        let streams = order.streams;
        let mut inner = Inner::of(order, self.disk.view, world.path_rules());
        if streams == Streams::Pipes && inner.view.sockets == Sockets::Own {
            // A server runs for hours, in which other programs make sockets.
            inner.view.sockets = Sockets::Refused;
        }
        inner.open = self.open;
        inner.cost = std::mem::take(&mut world.cost);
        inner.cost.extend(self.before.cost());
        Ok((WorldOrder { world, inner }, self.before))
    }

    /// The request for a command without namespaces.
    pub fn alone(self, mut order: Order) -> Result<(Inner, Snapshot), String> {
        self.refuse(&order.cwd)?;
        place_tools(&mut order.env);
        let Plan { rules, cost } = plan::around_holes(&self.disk.view, &self.holes);
        let mut inner = Inner::of(order, self.disk.view, rules);
        inner.open = WITHOUT_NAMESPACES.iter().map(|what| (*what).to_owned()).collect();
        inner.open.extend(self.open);
        inner.cost = cost;
        inner.cost.extend(self.before.cost());
        Ok((inner, self.before))
    }
}

/// Refuses a working directory that is missing or hidden from the command.
fn enterable(cwd: &Path, holes: &[Hole]) -> Result<(), String> {
    let real = canonical(cwd)
        .map_err(|error| format!("the directory {} cannot be entered: {error}", cwd.display()))?;
    let hidden = |hole: &&Hole| hole.level == Level::Hidden && real.starts_with(&hole.path);
    let Some(hole) = holes.iter().find(hidden) else { return Ok(()) };
    let (real, hole) = (real.display(), hole.path.display());
    Err(format!("commands may not run in {real}: {hole} is secret or belongs to another pod"))
}
