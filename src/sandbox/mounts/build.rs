//! Builds the world of a command and makes it the root directory of this process. Must be called
//! with one thread, in mount and PID namespaces of its own.

use crate::sandbox::access::confinement;
use crate::sandbox::access::limits::FILES_PER_MIB;
use crate::sandbox::access::pod_storage::PodStorage;
use crate::sandbox::access::view::Level;
use crate::sandbox::git::check::moved::beside;
use crate::sandbox::mounts::mountinfo::{self, Mount};
use crate::sandbox::mounts::world::{Part, World};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2, renameat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_change, mount_remount, move_mount, open_tree, unmount,
};
use rustix::process::pivot_root;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs::{self, DirBuilder};
use std::io::Write as _;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Directories over which the first root of the build is mounted; any that exists will do.
const BASES: [&str; 3] = ["/tmp", "/usr", "/var"];
/// The paths of the old and the new root during the build.
const OLD: &str = "/old";
const NEW: &str = "/new";
/// The most attempts to create a mount point that another command of the Pod creates at the same
/// time.
const TRIES: usize = 10;
/// The temporary name of a script's copy in the new root, until it is mounted over the script.
const SCRIPT: &str = ".script";
/// The device that is mounted over a hidden file: it cannot be opened on a mount with `nodev`.
const NOTHING: &str = "/dev/null";
/// Lists of keys that the kernel holds for this user, which are in no namespace.
const KEYS: [&str; 2] = ["/proc/keys", "/proc/key-users"];
/// The first kernel with a separate `pid_max` for each PID namespace.
const OWN_PID_MAX: (u32, u32) = (6, 14);

/// What this process has open, by number.
const FDS: &str = "/proc/self/fd";
const INFO: &str = "/proc/self/fdinfo";

const PLAIN: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Non-fatal gaps, which are reported.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Missing {
    pub open: Vec<String>,
    pub cost: Vec<String>,
}

/// Builds the world, makes it the root directory, and detaches the old root.
pub fn build(world: &World, pid_max: u32) -> Result<Missing, String> {
    let mut build = Build::begin(world.script_mib())?;
    let mut missing = Missing::default();
    for (path, part) in &world.parts {
        let done = build.place(world, path, *part, pid_max, &mut missing);
        let done = done.and_then(|id| build.note(world, path, *part, id));
        done.map_err(|error| format!("mounting {}: {}", path.display(), words(error)))?;
    }
    for (path, text) in world.files.iter().filter(|(path, _)| world.owns(path)) {
        let done = build.point(world, path, FileType::RegularFile).map_err(words);
        let done = done.and_then(|file| {
            build.must_lie_in_its_part(&file, path).map_err(words)?;
            fs::write(build.machine.named(&file), text).map_err(|error| error.to_string())
        });
        done.map_err(|error| format!("writing {}: {error}", path.display()))?;
    }
    for (path, target) in &world.links {
        build.link(world, path, target);
    }
    build.restrict(world)?;
    leave().map_err(|error| format!("changing the root directory: {}", words(error)))?;
    Ok(missing)
}

fn words(error: Errno) -> String {
    std::io::Error::from(error).to_string()
}

/// A world that is being built. Other commands of its Pod write to the same directory of temporary files meanwhile, and may
/// move the parents of mount points in it: so mounts are known by their ids, and reached by descriptors.
struct Build {
    machine: Machine,
    new: OwnedFd,
    /// The path of each mount of this world, by its id.
    own: BTreeMap<u64, PathBuf>,
    /// These paths.
    parts: BTreeSet<PathBuf>,
    /// Those that lie right in the directory of temporary files and have others in them: what is in them is reached from
    /// here, wherever their parents go.
    held: BTreeMap<PathBuf, OwnedFd>,
}

impl Build {
    /// Moves everything below [`OLD`] and mounts an empty root at [`NEW`], with room for this many MiB of scripts.
    fn begin(script_mib: u64) -> Result<Self, String> {
        let step = |what: &str, error: Errno| format!("{what}: {}", words(error));
        let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
        mount_change("/", private).map_err(|error| step("making mounts private", error))?;
        let base = BASES.iter().map(Path::new).find(|base| base.is_dir() && !base.is_symlink());
        let base = base.ok_or("no directory to mount on")?;
        let begin = || {
            mount("yoi", base, "tmpfs", PLAIN, c"mode=0755,size=64k")?;
            for dir in [OLD, NEW] {
                mkdirat(CWD, below(base, Path::new(dir)), 0o755.into())?;
            }
            pivot_root(base, below(base, Path::new(OLD)))?;
            rustix::process::chdir("/")?;
            let options = format!("mode=0755,size={}m,nr_inodes=65536", 8 + script_mib);
            let options = CString::new(options).map_err(|_| Errno::INVAL)?;
            mount("yoi", NEW, "tmpfs", PLAIN, options.as_c_str())?;
            let new = openat(CWD, NEW, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            let machine = Machine::at(OLD)?;
            let own = BTreeMap::from([(machine.mount_of(&new)?, PathBuf::from("/"))]);
            Ok(Self { machine, new, own, parts: BTreeSet::new(), held: BTreeMap::new() })
        };
        begin().map_err(|error| step("mounting a root directory", error))
    }

    /// Mounts a part, and returns the id of the mount if that is known before it is at its path.
    fn place(
        &self,
        world: &World,
        path: &Path,
        part: Part,
        pid_max: u32,
        missing: &mut Missing,
    ) -> Result<Option<u64>, Errno> {
        match part {
            Part::Bind(_) | Part::Device => return self.bind(world, path, path).map(Some),
            Part::Pinned => return skip_own(world, path, self.pin(path).map(Some), None),
            Part::Hidden => skip_own(world, path, self.hide(path), ()),
            Part::Layered => self.layer(world, path, missing),
            Part::Kept => {
                let private = world.private.as_ref().ok_or(Errno::INVAL)?;
                return self.bind(world, &private.tmp(), path).map(Some);
            }
            Part::Script => return self.script(world, path).map(Some),
            Part::Directory => {
                let made = self.point(world, path, FileType::Directory).map(drop);
                if made.is_ok() && self.lies_in_memory(world, path) {
                    return self.pin(path).map(Some);
                }
                made
            }
            Part::Memory(mib) => {
                let inodes = u64::from(mib) * FILES_PER_MIB;
                let mode =
                    if path == world.tmp || path == Path::new("/dev/shm") { 1777 } else { 700 };
                let options = format!("mode={mode},size={mib}m,nr_inodes={inodes}");
                self.mount(world, path, "tmpfs", PLAIN, &options)
            }
            Part::Terminals => {
                let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
                let options = "newinstance,ptmxmode=0666,mode=620";
                self.mount(world, path, "devpts", flags, options)
            }
            Part::Processes => {
                match self.mount(world, path, "proc", PLAIN | MountFlags::NOEXEC, "") {
                    Ok(()) => {
                        limit_processes(pid_max, missing);
                        self.hide_keys()
                    }
                    // The kernel refuses a new `/proc` where parts of the old one are covered by mounts.
                    Err(Errno::PERM) => {
                        missing.open.push(confinement::OTHERS_SHOWN.into());
                        // `pid_max` can be set only in a new `/proc`, and no other limit applies to root.
                        missing.open.extend(is_root().then(|| confinement::UNLIMITED.into()));
                        self.bind(world, path, path)?;
                        self.hide_keys()
                    }
                    Err(error) => Err(error),
                }
            }
        }
        .map(|()| None)
    }

    /// Notes the mount of a part that was placed; `known` is its id. Another mount at its path means that its parents were
    /// moved.
    fn note(
        &mut self,
        world: &World,
        path: &Path,
        part: Part,
        known: Option<u64>,
    ) -> Result<(), Errno> {
        if part == Part::Directory && !self.lies_in_memory(world, path) {
            return Ok(());
        }
        let Some(place) = skip_own(world, path, self.reach(path).map(Some), None)? else {
            return Ok(());
        };
        let id = self.machine.mount_of(&place)?;
        if known.is_some_and(|known| known != id) {
            return Err(Errno::STALE);
        }
        if let Some(other) = self.own.get(&id) {
            // A hole in a layer that lacks the path is no mount.
            let is_no_mount =
                matches!(part, Part::Hidden | Part::Pinned) && is_layered(world, path);
            return if is_no_mount && path.starts_with(other) { Ok(()) } else { Err(Errno::STALE) };
        }
        if self.around(path).is_some_and(|dir| world.parts.get(dir) == Some(&Part::Kept))
            && world.has_more_in(path)
        {
            self.held.insert(path.to_owned(), place);
        }
        self.own.insert(id, path.to_owned());
        self.parts.insert(path.to_owned());
        Ok(())
    }

    /// The nearest mount above a path; `None` above the root.
    fn around<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let is_mount = |dir: &&Path| *dir == Path::new("/") || self.parts.contains(*dir);
        path.ancestors().skip(1).find(is_mount)
    }

    /// Whether a path lies in a directory in memory that commands may write.
    fn lies_in_memory(&self, world: &World, path: &Path) -> bool {
        let mut above = path.ancestors().skip(1).filter_map(|dir| world.parts.get(dir));
        above
            .find(|part| **part != Part::Directory)
            .is_some_and(|part| matches!(part, Part::Memory(_)))
    }

    /// Opens a path of this world.
    fn reach(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let held = path.ancestors().skip(1).find_map(|dir| Some((dir, self.held.get(dir)?)));
        match held {
            Some((dir, held)) => open(held, path.strip_prefix(dir).unwrap_or(path)),
            None => open(&self.new, path),
        }
    }

    /// Refuses what lies in another mount than the nearest one above its path: a parent was moved there.
    fn must_lie_in_its_part(&self, open: &OwnedFd, path: &Path) -> Result<(), Errno> {
        let part = self.own.get(&self.machine.mount_of(open)?);
        if part.map(PathBuf::as_path) == self.around(path) { Ok(()) } else { Err(Errno::STALE) }
    }

    fn mount(
        &self,
        world: &World,
        path: &Path,
        kind: &str,
        flags: MountFlags,
        options: &str,
    ) -> Result<(), Errno> {
        let place = self.point(world, path, FileType::Directory)?;
        let options = CString::new(options).map_err(|_| Errno::INVAL)?;
        mount("yoi", self.machine.named(&place), kind, flags, options.as_c_str())
    }

    /// Bind-mounts `source` of the old root at `path`. No link is followed.
    fn bind(&self, world: &World, source: &Path, path: &Path) -> Result<u64, Errno> {
        let from = self.machine.open(source)?;
        let kind = FileType::from_raw_mode(fstat(&from)?.st_mode);
        self.attach(&copy(&from)?, &self.point(world, path, kind)?)
    }

    /// Mounts a detached tree, and returns the id of its mount.
    fn attach(&self, tree: &OwnedFd, place: &OwnedFd) -> Result<u64, Errno> {
        attach(tree, place)?;
        self.machine.mount_of(tree)
    }

    /// Mounts a layer of the Pod over a cache of the person.
    fn layer(&self, world: &World, path: &Path, missing: &mut Missing) -> Result<(), Errno> {
        let place = self.point(world, path, FileType::Directory)?;
        let private = world.private.as_ref().ok_or(Errno::INVAL)?;
        missing.cost.extend(self.machine.mount_layer(private, path, &place)?);
        Ok(())
    }

    /// Mounts the copy of a script over the script. The copy has no other name in the world.
    fn script(&self, world: &World, path: &Path) -> Result<u64, Errno> {
        let copy_of = world.scripts.get(path).ok_or(Errno::INVAL)?;
        let place = self.point(world, path, FileType::RegularFile)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&self.new, SCRIPT, flags, copy_of.mode.into())?;
        let mut file = fs::File::from(file);
        let written = file
            .write_all(&copy_of.bytes)
            .and_then(|()| file.set_permissions(fs::Permissions::from_mode(copy_of.mode)));
        written.map_err(|error| errno(&error))?;
        drop(file);
        let tree = copy(&open(&self.new, Path::new(SCRIPT))?)?;
        let id = self.attach(&tree, &place)?;
        unlinkat(&self.new, SCRIPT, AtFlags::empty())?;
        Ok(id)
    }

    fn pin(&self, path: &Path) -> Result<u64, Errno> {
        let place = self.reach(path)?;
        self.attach(&copy(&place)?, &place)
    }

    fn hide_keys(&self) -> Result<(), Errno> {
        KEYS.iter().try_for_each(|list| match self.hide(Path::new(list)) {
            // A kernel without keys has no list of them.
            Err(Errno::NOENT) => Ok(()),
            done => done,
        })
    }

    fn hide(&self, path: &Path) -> Result<(), Errno> {
        let place = self.reach(path)?;
        match FileType::from_raw_mode(fstat(&place)?.st_mode) {
            FileType::Directory => {
                // Files of yoi that a command may see need mount points in it.
                let options = c"size=64k,nr_inodes=64,mode=0755";
                let flags = PLAIN | MountFlags::NOEXEC;
                mount("yoi", self.machine.named(&place), "tmpfs", flags, options)
            }
            _ => attach(&copy(&self.machine.open(Path::new(NOTHING))?)?, &place),
        }
    }

    /// Opens the mount point at a path. Creates a missing one in a directory of this world or its
    /// Pod, and removes a file, or moves a directory aside, that a command left there. Creates
    /// nothing in a directory that is bound from outside.
    fn point(&self, world: &World, path: &Path, kind: FileType) -> Result<OwnedFd, Errno> {
        let mut point = self.made_point(world, path, kind);
        for _ in 1..TRIES {
            match point {
                // Another command of the Pod creates the same mount point at this moment.
                Err(Errno::EXIST | Errno::NOENT) => point = self.made_point(world, path, kind),
                point => return point,
            }
        }
        point
    }

    fn made_point(&self, world: &World, path: &Path, kind: FileType) -> Result<OwnedFd, Errno> {
        let own = path.parent().is_some_and(|dir| world.owns(dir));
        let is_there = match self.reach(path) {
            Ok(place) if !own || fits(&place, kind)? => return Ok(place),
            Err(error) if !own => return Err(error),
            Err(Errno::NOENT) => false,
            Ok(_) | Err(_) => true,
        };
        let (parent, name) = (path.parent().ok_or(Errno::INVAL)?, path.file_name());
        let parent = self.point(world, parent, FileType::Directory)?;
        self.must_lie_in_its_part(&parent, path)?;
        let name = name.ok_or(Errno::INVAL)?;
        // The removal of another obstacle may have removed this one, too.
        let removed = || match unlinkat(&parent, name, AtFlags::empty()) {
            Err(Errno::ISDIR) => renameat(&parent, name, &parent, beside(name, "put-aside")),
            removed => removed,
        };
        match if is_there { removed() } else { Ok(()) } {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
        match kind {
            FileType::Directory => mkdirat(&parent, name, 0o755.into())?,
            _ => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                openat(&parent, name, flags, 0o644.into()).map(drop)?;
            }
        }
        self.reach(path)
    }

    /// Creates a link. Errors are ignored, because the target can be reached at its own path.
    fn link(&self, world: &World, path: &Path, target: &Path) {
        let Some((parent, name)) = path.parent().zip(path.file_name()) else { return };
        if let Ok(parent) = self.point(world, parent, FileType::Directory)
            && self.must_lie_in_its_part(&parent, path).is_ok()
        {
            let _ = rustix::fs::symlinkat(target, &parent, name);
        }
    }

    /// Remounts every mount with the flags that its part needs: a read-only part is read-only with all mounts in it.
    fn restrict(&self, world: &World) -> Result<(), String> {
        let table = Path::new(OLD).join("proc/self/mountinfo");
        let table = fs::read(table).map_err(|error| format!("mountinfo: {error}"))?;
        let all: Mounts<'_> = mountinfo::mounts(&table).map(|mount| (mount.id, mount)).collect();
        if self.own.keys().any(|id| !all.contains_key(id)) {
            return Err("a mount was removed meanwhile".into());
        }
        for mount in all.values().filter(|mount| mount.point.starts_with(NEW)) {
            let path = self.path_of(mount, &all).ok_or("a mount was moved meanwhile")?;
            match self.remount(mount, &path, taken(world, &path)) {
                Ok(()) => {}
                // It cannot be entered at all.
                Err(Errno::ACCESS) if !self.own.contains_key(&mount.id) => {}
                Err(_) if !self.own.contains_key(&mount.id) && is_covered(mount, &all) => {}
                Err(error) => {
                    return Err(format!("restricting {}: {}", path.display(), words(error)));
                }
            }
        }
        Ok(())
    }

    /// The path of a mount in this world. `None` if it, or the part that it lies in, is not where it was made.
    fn path_of(&self, mount: &Mount<'_>, all: &Mounts<'_>) -> Option<PathBuf> {
        let part = on(Some(mount), all).find(|mount| self.own.contains_key(&mount.id))?;
        let path = self.own.get(&part.id)?;
        let around = on(all.get(&part.parent), all).find_map(|mount| self.own.get(&mount.id));
        let is_there = part.point == below(NEW.as_ref(), path)
            && (path == Path::new("/") || around.map(PathBuf::as_path) == self.around(path));
        let inner = mount.point.strip_prefix(&part.point).ok().filter(|_| is_there)?;
        // A joined path of no components would end in a slash.
        Some(if inner.as_os_str().is_empty() { path.clone() } else { path.join(inner) })
    }

    /// Sets the flags of a mount, which must be the one at this path.
    fn remount(&self, mount: &Mount<'_>, path: &Path, taken: MountFlags) -> Result<(), Errno> {
        let place = self.reach(path)?;
        if self.machine.mount_of(&place)? != mount.id {
            return Err(Errno::STALE);
        }
        mount_remount(self.machine.named(&place), MountFlags::BIND | mount.flags() | taken, c"")
    }
}

/// Mounts by their ids.
type Mounts<'a> = BTreeMap<u64, Mount<'a>>;

/// A mount, the one that it is mounted on, and so on.
fn on<'a>(
    mount: Option<&'a Mount<'a>>,
    all: &'a Mounts<'a>,
) -> impl Iterator<Item = &'a Mount<'a>> {
    // The first mount of a machine is on itself.
    let below = |mount: &&'a Mount<'a>| all.get(&mount.parent).filter(|on| on.id != mount.id);
    std::iter::successors(mount, below)
}

/// Whether the way to a mount leads to another one, which covers it.
fn is_covered(mount: &Mount<'_>, all: &Mounts<'_>) -> bool {
    let below: Vec<u64> = on(Some(mount), all).map(|mount| mount.id).collect();
    all.values().any(|other| mount.point.starts_with(&other.point) && !below.contains(&other.id))
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// The root directory of the machine, and its path in the mount namespace of this process.
struct Machine {
    root: OwnedFd,
    path: &'static str,
}

impl Machine {
    fn at(path: &'static str) -> Result<Self, Errno> {
        let root = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root, path })
    }

    fn open(&self, path: &Path) -> Result<OwnedFd, Errno> {
        open(&self.root, path)
    }

    /// A name of what is open: the kernel follows no link from it, and no mount that came since.
    fn named(&self, open: &OwnedFd) -> String {
        format!("{}/{}", below(self.path.as_ref(), FDS.as_ref()).display(), open.as_raw_fd())
    }

    /// The id of the mount in which something open lies.
    fn mount_of(&self, open: &OwnedFd) -> Result<u64, Errno> {
        let info = below(self.path.as_ref(), INFO.as_ref()).join(open.as_raw_fd().to_string());
        let info = fs::read_to_string(info).map_err(|error| errno(&error))?;
        let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:"));
        id.and_then(|id| id.trim().parse().ok()).ok_or(Errno::NOTSUP)
    }

    /// Opens a directory of the Pod, which is created if it is missing.
    fn made(&self, dir: &Path) -> Result<OwnedFd, Errno> {
        match self.open(dir) {
            Err(Errno::NOENT) => {
                let dir_here = below(self.path.as_ref(), dir);
                let made = DirBuilder::new().recursive(true).mode(0o700).create(dir_here);
                made.map_err(|error| errno(&error))?;
                self.open(dir)
            }
            found => found,
        }
    }

    /// Mounts an overlay of the Pod's layer and a cache of the person, or the layer alone if the kernel refuses the
    /// overlay: then it returns why.
    fn mount_layer(
        &self,
        private: &PodStorage,
        cache: &Path,
        place: &OwnedFd,
    ) -> Result<Option<String>, Errno> {
        let layer = private.layer(cache);
        let (upper, work) = (self.made(&layer.upper)?, self.made(&layer.work)?);
        // These names hide the paths of the machine in the command's list of mounts.
        let named = |dir: &OwnedFd| self.named(dir);
        let kept = layer.lower.and_then(|kept| self.open(&kept).ok());
        let real = self.open(cache)?;
        let lower: Vec<String> = kept.iter().chain([&real]).map(named).collect();
        // Without `volatile` each command would end only after a sync of the whole file system.
        let options = format!(
            "userxattr,volatile,index=off,lowerdir={},upperdir={},workdir={}",
            lower.join(":"),
            named(&upper),
            named(&work)
        );
        let options = CString::new(options).map_err(|_| Errno::INVAL)?;
        match mount("yoi", named(place), "overlay", PLAIN, options.as_c_str()) {
            Ok(()) => Ok(None),
            Err(error) => {
                attach(&copy(&upper)?, place)?;
                let (cache, error) = (cache.display(), words(error));
                Ok(Some(format!("what you have in {cache} is not shown ({error})")))
            }
        }
    }
}

/// The restricting flags of a mount at this path.
fn taken(world: &World, path: &Path) -> MountFlags {
    match world.around(path) {
        // A device can be written even on a read-only file system.
        Some(Part::Device) => MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::RDONLY,
        Some(Part::Terminals) => MountFlags::NOSUID | MountFlags::NOEXEC,
        Some(Part::Hidden | Part::Processes) => PLAIN | MountFlags::NOEXEC | MountFlags::RDONLY,
        _ if world.level(path) == Level::Write => PLAIN,
        _ => PLAIN | MountFlags::RDONLY,
    }
}

/// Whether a file of this kind can be mounted here.
fn fits(place: &OwnedFd, kind: FileType) -> Result<bool, Errno> {
    let found = FileType::from_raw_mode(fstat(place)?.st_mode);
    // A FIFO that another command left there would be waited for.
    Ok(found == kind || kind != FileType::Directory && found == FileType::RegularFile)
}

/// Ignores a missing mount point in a layered cache: the Pod removed or replaced that path in its
/// layer, so no file of the person is visible there.
fn skip_own<T>(world: &World, path: &Path, done: Result<T, Errno>, skipped: T) -> Result<T, Errno> {
    match done {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if is_layered(world, path) => Ok(skipped),
        done => done,
    }
}

fn is_layered(world: &World, path: &Path) -> bool {
    path.ancestors().any(|dir| world.parts.get(dir) == Some(&Part::Layered))
}

/// An absolute path below another root.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn open(root: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let inner = path.strip_prefix("/").unwrap_or(path);
    let inner = if inner.as_os_str().is_empty() { Path::new(".") } else { inner };
    let strict = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::BENEATH;
    openat2(root, inner, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), strict)
}

/// A detached, recursive copy of the mount at this path.
fn copy(place: &OwnedFd) -> Result<OwnedFd, Errno> {
    let whole = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE;
    open_tree(place, "", whole | OpenTreeFlags::AT_EMPTY_PATH | OpenTreeFlags::OPEN_TREE_CLOEXEC)
}

fn attach(tree: &OwnedFd, place: &OwnedFd) -> Result<(), Errno> {
    let both = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, "", place, "", both)
}

/// Limits the processes and threads of this PID namespace. Before [`OWN_PID_MAX`] the number
/// applies to the machine and is not changed.
fn limit_processes(pid_max: u32, missing: &mut Missing) {
    let file = below(NEW.as_ref(), Path::new("/proc/sys/kernel/pid_max"));
    if !has_own_pid_max() || fs::write(file, pid_max.to_string()).is_err() {
        // For ordinary users RLIMIT_NPROC applies.
        missing.open.extend(is_root().then(|| confinement::UNCOUNTED.to_owned()));
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn has_own_pid_max() -> bool {
    let file = below(OLD.as_ref(), Path::new("/proc/sys/kernel/osrelease"));
    let release = fs::read_to_string(file).unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= OWN_PID_MAX
}

/// Makes the new root the only one.
fn leave() -> Result<(), Errno> {
    rustix::process::chdir(NEW)?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")
}
