//! The list of paths in the world of a scope.

use super::*;
use crate::sandbox::access::resolve;
use crate::sandbox::access::view::{Need, ViewInputs};
use crate::sandbox::git::search;
use crate::scope::{Permission, Rule, Scope};
use std::os::unix::fs::symlink;

/// A person with a workspace in their home directory, whose path contains a link.
struct Disk {
    root: PathBuf,
    env: BTreeMap<String, String>,
    _top: tempfile::TempDir,
}

impl Disk {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().canonicalize().unwrap();
        for dir in
            ["me/ws/src", "me/ws/lent", "me/ws/.git/hooks", "me/.ssh", "me/.cargo/bin", "own/out"]
        {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        for file in ["me/ws/.git/HEAD", "me/ws/.git/config", "me/.netrc", "me/notes"] {
            fs::write(root.join(file), "").unwrap();
        }
        symlink("me", root.join("home")).unwrap();
        let env = [("HOME", root.join("home").display().to_string()), ("PATH", "/usr/bin".into())];
        let env = env.map(|(name, value)| (name.to_owned(), value)).into();
        Self { root, env, _top: top }
    }

    fn world(&self, scope: &Scope, needs: &[Need]) -> World {
        let person = UserPaths { env: &self.env };
        let outputs = self.root.join("own/out");
        let asked = CommandView::new(&ViewInputs {
            own: &[self.root.join("own")],
            needs,
            outputs: Some(&outputs),
            private: Some(&self.root.join("own/private")),
            ..ViewInputs::new(scope, person)
        });
        let view = resolve::resolved(asked.clone());
        let (holes, _) = plan::holes(&view, &search::find(&asked, &view));
        World::of(&asked, &view, &holes, person)
    }

    /// The paths of a world below the directory of this test.
    fn shown(&self, world: &World) -> Vec<String> {
        let name = |path: &Path| Some(path.strip_prefix(&self.root).ok()?.display().to_string());
        let parts = world.parts.iter().filter_map(|(path, part)| Some((name(path)?, part)));
        let parts = parts.map(|(path, part)| format!("{path}: {part:?}"));
        let links = world.links.iter().filter_map(|(path, to)| Some((name(path)?, to)));
        parts.chain(links.map(|(path, to)| format!("{path} -> {}", to.display()))).collect()
    }

    fn rule(&self, path: &str, permission: Permission) -> Rule {
        Rule::new(self.root.join(path), permission)
    }
}

/// The paths that every world of this person has, and these.
fn with(own: &[&str]) -> Vec<String> {
    let (before, after): (Vec<&str>, Vec<&str>) = own.iter().partition(|line| **line < "me/ws");
    let always = ["me: Memory(256)", "me/.cache: Layered", "me/.cargo/bin: Bind(Read)"];
    let cargo = ["me/.cargo/git: Layered", "me/.cargo/registry: Layered"];
    let rest = ["own/out: Bind(Read)", "home -> me", "own/private/tmp -> /tmp"];
    let all = always.into_iter().chain(cargo).chain(before).chain(after).chain(rest);
    all.map(str::to_owned).collect()
}

#[test]
fn a_world_holds_the_grants_the_tools_and_nothing_else_of_the_person() {
    let disk = Disk::new();
    let world = disk.world(&Scope::default(), &[]);
    assert_eq!(disk.shown(&world), with(&[]));
    let expected = [
        ("/proc", Part::Processes),
        ("/dev", Part::Directory),
        ("/dev/null", Part::Device),
        ("/dev/pts", Part::Terminals),
        ("/dev/shm", Part::Memory(256)),
        ("/tmp", Part::Kept),
        ("/usr", Part::Bind(Level::Read)),
        ("/etc/passwd", Part::Bind(Level::Read)),
    ];
    for (path, part) in expected {
        assert_eq!(world.parts.get(Path::new(path)), Some(&part), "{path}");
    }
    for path in ["/", "/etc", "/etc/shadow", "/root", "/sys", "/etc/resolv.conf", "/run", "/var"] {
        assert!(!world.holds(Path::new(path)), "{path}");
    }
    let read = Scope::new(vec![disk.rule("me/ws/src", Permission::Read)]);
    let shown = disk.shown(&disk.world(&read, &[]));
    assert_eq!(shown, with(&["me/ws: Directory", "me/ws/src: Bind(Read)"]));
}

#[test]
fn holes_of_a_writable_grant_are_closed_and_held_in_their_place() {
    let disk = Disk::new();
    let write = Scope::new(vec![disk.rule("me/ws", Permission::Write)]);
    let git = ["me/ws: Bind(Write)", "me/ws/.git: Pinned", "me/ws/.git/config: Bind(Read)"];
    let hooks = "me/ws/.git/hooks: Bind(Read)";
    let own: Vec<&str> = git.into_iter().chain([hooks]).collect();
    assert_eq!(disk.shown(&disk.world(&write, &[])), with(&own));
    let own = ["me/ws: Bind(Write)"];
    assert_eq!(disk.shown(&disk.world(&write, &[Need::Git])), with(&own));
    // The scope of a child: a part of the parent's, which has lent another part to another Pod.
    let child = Scope {
        allow: vec![
            disk.rule("me/ws", Permission::Read),
            disk.rule("me/ws/src", Permission::Write),
        ],
        deny: vec![disk.rule("me/ws/lent", Permission::Read)],
    };
    let own = ["me/ws: Bind(Read)", "me/ws/lent: Hidden", "me/ws/src: Bind(Write)"];
    assert_eq!(disk.shown(&disk.world(&child, &[])), with(&own));
}

#[test]
fn the_way_from_home_to_the_scope_takes_no_files() {
    let disk = Disk::new();
    for dir in ["me/src/team/app", "me/docs/shown", "me/.local/share/app"] {
        fs::create_dir_all(disk.root.join(dir)).unwrap();
    }
    let scope = Scope::new(vec![
        disk.rule("me/src/team/app", Permission::Write),
        disk.rule("me/docs/shown", Permission::Read),
        disk.rule("me/.local/share/app", Permission::Write),
    ]);
    let shown = disk.shown(&disk.world(&scope, &[]));
    let closed: Vec<&String> = shown.iter().filter(|line| line.ends_with(": Directory")).collect();
    assert_eq!(closed, ["me/docs: Directory", "me/src: Directory", "me/src/team: Directory"]);
}

#[test]
fn secret_files_are_left_out_of_a_readable_home_and_covered_in_a_writable_one() {
    let disk = Disk::new();
    let read = Scope::new(vec![disk.rule("me", Permission::Read)]);
    let shown = disk.shown(&disk.world(&read, &[]));
    assert!(shown.contains(&"me/notes: Bind(Read)".to_owned()), "{shown:?}");
    let secret = |line: &&String| line.contains(".netrc") || line.contains(".ssh");
    assert_eq!(shown.iter().find(secret), None);
    let write = Scope::new(vec![disk.rule("me", Permission::Write)]);
    let shown = disk.shown(&disk.world(&write, &[]));
    for line in ["me: Bind(Write)", "me/.netrc: Hidden", "me/.ssh: Hidden"] {
        assert!(shown.contains(&line.to_owned()), "{line}: {shown:?}");
    }
}

#[test]
fn of_a_readable_directory_with_a_secret_file_only_so_many_entries_are_mounted() {
    let disk = Disk::new();
    let read = Scope::new(vec![disk.rule("me", Permission::Read)]);
    for index in 0..AROUND {
        fs::File::create(disk.root.join(format!("me/{index}"))).unwrap();
    }
    let world = disk.world(&read, &[]);
    let (shown, all) = (disk.shown(&world).len(), with(&[]).len());
    assert!((AROUND - 10..=AROUND + all).contains(&shown), "{shown}");
    let home = disk.root.join("me").display().to_string();
    let said = |line: &&String| line.contains("are shown") && line.contains(&home);
    assert!(world.cost.iter().any(|line| said(&line)), "{:?}", world.cost);
}
