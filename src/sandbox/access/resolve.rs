//! Resolves grants to canonical paths, and follows no link that a command may have created.

use crate::files::{canonical, leads_through_links, links_on};
use crate::sandbox::access::places::{MADE, of_the_system};
use crate::sandbox::access::view::{CommandView, Depth, Grant, Hole, Level, Links, Why};
use std::collections::HashSet;
use std::fs::{DirBuilder, read_dir};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Directories of `/` without ordinary files; a scope of `/` does not include them.
const NO_FILES: [&str; 3] = ["/dev", "/proc", "/sys"];

/// The view with canonical grants, without those that do not exist; missing caches are created.
pub fn resolved(view: CommandView) -> CommandView {
    let home = view.home.clone().map(|home| {
        let real = canonical(&home).unwrap_or_else(|_| home.clone());
        (home, real)
    });
    let grants = view.grants.iter().flat_map(|grant| one(grant, home.as_ref(), &view));
    let grants = grants.flat_map(without_devices).collect();
    CommandView { grants, ..view }
}

fn one(grant: &Grant, home: Option<&(PathBuf, PathBuf)>, view: &CommandView) -> Option<Grant> {
    let place = |path: PathBuf| Grant { path, links: Links::Refused, ..grant.clone() };
    if grant.links == Links::Refused {
        return Some(grant.clone());
    }
    // The scope covers this grant already, and commands can create links there.
    if grant.depth != Depth::Device && in_scope(view, grant) {
        return None;
    }
    if grant.depth == Depth::Cache {
        make(&grant.path, home);
    }
    let real = canonical(&grant.path).ok()?;
    let plain = match home {
        Some((home, real)) => match grant.path.strip_prefix(home) {
            Ok(rest) => real.join(rest),
            Err(_) => grant.path.clone(),
        },
        None => grant.path.clone(),
    };
    let is_kept = || links_on(&grant.path).iter().any(|link| some_pod_writes(view, link));
    let leads_on = real != plain && !of_the_system(&real);
    let kept = grant.links == Links::Kept && leads_on || !of_the_system(&real) && is_kept();
    (!kept).then(|| place(real))
}

/// Whether a command of this Pod, of one above it or of another may have put a link there: some scope covers a part of the
/// path. A scope that only reads may be a part of one that writes.
pub fn some_pod_writes(view: &CommandView, path: &Path) -> bool {
    let scope = || view.grants.iter().filter(|own| own.links == Links::Refused);
    let others = view.holes.iter().filter(|hole| hole.why == Why::Others).map(|hole| &hole.path);
    path.ancestors().any(|part| scope().any(|own| own.covers(part)))
        || view.given.iter().chain(others).any(|written| path.starts_with(written))
}

fn in_scope(view: &CommandView, grant: &Grant) -> bool {
    let scope = view.grants.iter().filter(|own| own.links == Links::Refused);
    scope
        .into_iter()
        .any(|own| own.depth == Depth::Whole && own.level >= grant.level && own.covers(&grant.path))
}

/// Creates a missing cache directory if its parent exists; directly in the home directory only `.cache`.
fn make(path: &Path, home: Option<&(PathBuf, PathBuf)>) {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return };
    let in_home = path.parent() == home.map(|(home, _)| home.as_path());
    if MADE.contains(&name) && (name == ".cache" || !in_home) && !path.exists() {
        // If this fails, the tool reports it.
        let _ = DirBuilder::new().mode(0o700).create(path);
    }
}

/// A grant of `/` becomes grants of its entries without devices and files of the kernel.
fn without_devices(grant: Grant) -> Vec<Grant> {
    if grant.path != Path::new("/") {
        return vec![grant];
    }
    let entries = read_dir("/").into_iter().flatten().flatten().map(|entry| entry.path());
    let files = entries.filter(|path| !NO_FILES.iter().any(|no| path == Path::new(no)));
    let real = files.filter_map(|path| canonical(&path).ok());
    real.map(|path| Grant { path, ..grant.clone() }).collect()
}

/// The paths of grants, and their ancestors.
#[derive(Default)]
struct Places<'a> {
    granted: HashSet<&'a Path>,
    around: HashSet<&'a Path>,
}

impl<'a> Places<'a> {
    fn of(grants: impl Iterator<Item = &'a Grant>) -> Self {
        let mut places = Self::default();
        for grant in grants {
            let mut above = grant.path.ancestors();
            places.granted.extend(above.next());
            // The ancestors of a known directory are known, too.
            above.take_while(|dir| places.around.insert(dir)).for_each(drop);
        }
        places
    }

    /// Whether a grant is at this path, above it or below it.
    fn touch(&self, path: &Path) -> bool {
        self.around.contains(path) || path.ancestors().any(|dir| self.granted.contains(dir))
    }
}

/// The holes of a view that can matter on this disk. `resolved` is the view with canonical grants.
/// A path through a link is kept, because its target can be granted.
pub fn relevant_holes(asked: &CommandView, resolved: &CommandView) -> Vec<Hole> {
    let grants = || asked.grants.iter().chain(&resolved.grants);
    let all = Places::of(grants());
    let written = Places::of(grants().filter(|grant| grant.level == Level::Write));
    let near = |hole: &&Hole| match (hole.why, hole.level) {
        (Why::Secret | Why::Obeyed | Why::Rules | Why::Project, level) => {
            let places = if level == Level::Hidden { &all } else { &written };
            places.touch(&hole.path) || leads_through_links(&hole.path)
        }
        (
            Why::Scope | Why::Own | Why::Programs | Why::Git | Why::Socket | Why::Others | Why::Job,
            _,
        ) => true,
    };
    asked.holes.iter().filter(near).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::access::places::UserPaths;
    use crate::sandbox::access::view::ViewInputs;
    use crate::sandbox::git::check::Snapshot;
    use crate::sandbox::git::search;
    use crate::sandbox::mounts::plan;
    use crate::scope::{Permission, Rule, Scope};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::symlink;

    struct Disk {
        root: PathBuf,
        env: BTreeMap<String, String>,
        _top: tempfile::TempDir,
    }

    impl Disk {
        fn new(pairs: &[(&str, &str)]) -> Self {
            let top = tempfile::tempdir().unwrap();
            let root = top.path().canonicalize().unwrap();
            for dir in ["ws", "real-home/.cargo", "other", "docs"] {
                std::fs::create_dir_all(root.join(dir)).unwrap();
            }
            symlink("real-home", root.join("home")).unwrap();
            let full = |(name, path): &(&str, &str)| {
                ((*name).to_owned(), root.join(path).display().to_string())
            };
            Self { env: pairs.iter().map(full).collect(), root, _top: top }
        }

        fn grants(&self) -> Vec<Grant> {
            let scope = Scope::new(vec![Rule::new(self.root.join("ws"), Permission::Write)]);
            let person = UserPaths { env: &self.env };
            resolved(CommandView::new(&ViewInputs::new(&scope, person))).grants
        }

        fn given(&self, path: &str) -> bool {
            self.grants().iter().any(|grant| grant.covers(&self.root.join(path)))
        }
    }

    #[test]
    fn a_home_behind_a_link_is_followed_and_missing_caches_are_made() {
        let disk = Disk::new(&[("HOME", "home")]);
        assert!(disk.given("real-home/.cache/x") && disk.given("real-home/.cargo/registry/x"));
        assert!(disk.root.join("real-home/.cache").is_dir());
        for path in [".npm", ".cargo/.package-cache", ".cargo/bin"] {
            assert!(!disk.root.join("real-home").join(path).exists(), "{path} is not ours to make");
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_of_programs_leads_nowhere() {
        let disk =
            Disk::new(&[("HOME", "home"), ("PATH", "ws/tools/bin"), ("CARGO_HOME", "other")]);
        std::fs::create_dir(disk.root.join("ws/tools")).unwrap();
        symlink(disk.root.join("docs"), disk.root.join("ws/tools/bin")).unwrap();
        symlink(disk.root.join("docs"), disk.root.join("other/registry")).unwrap();
        assert!(!disk.given("docs/letter"));
        std::fs::create_dir(disk.root.join("other/bin")).unwrap();
        assert!(disk.given("other/bin/cargo"));
    }

    #[test]
    fn a_link_at_the_place_of_a_cache_leads_nowhere_where_a_pod_may_have_made_it() {
        let disk = Disk::new(&[("HOME", "home")]);
        let home = disk.root.join("real-home");
        std::fs::create_dir(home.join("go")).unwrap();
        symlink(disk.root.join("docs"), home.join("go/pkg")).unwrap();
        let person = UserPaths { env: &disk.env };
        let reaches = |scope: Vec<Rule>, given: Vec<Rule>, others: &[PathBuf]| {
            let (scope, given) = (Scope::new(scope), Scope::new(given));
            let around = ViewInputs { given: &given, others, ..ViewInputs::new(&scope, person) };
            let grants = resolved(CommandView::new(&around)).grants;
            grants.iter().any(|grant| grant.covers(&disk.root.join("docs/letter")))
        };
        let ws = || vec![Rule::new(disk.root.join("ws"), Permission::Write)];
        assert!(reaches(ws(), ws(), &[]), "the person made the link");
        let go = |permission| vec![Rule::new(home.join("go"), permission)];
        let flat = vec![Rule { recursive: false, ..Rule::new(&home, Permission::Write) }];
        for (scope, given, others) in [
            (go(Permission::Write), go(Permission::Write), vec![]),
            (go(Permission::Read), ws(), vec![]),
            (flat, ws(), vec![]),
            (ws(), go(Permission::Write), vec![]),
            (ws(), ws(), vec![home.join("go")]),
        ] {
            assert!(!reaches(scope.clone(), given, &others), "{scope:?} {others:?}");
        }
        // The person moved the cache into the scope, and a command put a link there.
        std::fs::remove_file(home.join("go/pkg")).unwrap();
        symlink(disk.root.join("ws/pkg"), home.join("go/pkg")).unwrap();
        symlink(disk.root.join("docs"), disk.root.join("ws/pkg")).unwrap();
        assert!(!reaches(ws(), ws(), &[]));
    }

    #[test]
    fn a_scope_of_the_whole_machine_is_everything_but_devices_and_the_kernel() {
        let disk = Disk::new(&[("HOME", "home")]);
        let scope = Scope::new(vec![Rule::new("/", Permission::Write)]);
        let around = ViewInputs::new(&scope, UserPaths { env: &disk.env });
        let grants = resolved(CommandView::new(&around)).grants;
        let written = |path: &str| {
            let covering = grants.iter().filter(|grant| grant.covers(Path::new(path)));
            covering.map(|grant| grant.level).max() == Some(Level::Write)
        };
        assert!(
            written("/usr/local/x") && written(&disk.root.join("docs/x").display().to_string())
        );
        assert!(!written("/dev/sda") && !written("/proc/sysrq-trigger") && !written("/sys/x"));
        assert!(written("/dev/null"));
    }

    /// Paths of a home directory and a workspace: secrets, settings of programs, caches, and project files.
    const PLACES: [&str; 13] = [
        "home",
        "home/.ssh/id",
        "home/.bashrc",
        "home/.config/git/config",
        "home/.cargo/config.toml",
        "home/.cargo/credentials",
        "home/.netrc",
        "home/dotfiles/bashrc",
        "ws",
        "ws/bin",
        "ws/bin/env",
        "ws/.mcp.json",
        "ws/.zed",
    ];

    fn place() -> impl Strategy<Value = &'static str> {
        prop::sample::select(&PLACES)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_is_left_out_changes_nothing_of_what_is_shut_and_compared(
            files in prop::collection::vec(place(), 0..5),
            links in prop::collection::vec((place(), place()), 0..4),
            written in prop::collection::vec(place(), 1..3),
            read in prop::collection::vec(place(), 0..2),
        ) {
            let top = tempfile::tempdir().unwrap();
            let root = top.path().canonicalize().unwrap();
            fs::create_dir_all(root.join("home/.cache")).unwrap();
            for (from, to) in links {
                fs::create_dir_all(root.join(from).parent().unwrap()).unwrap_or_default();
                // An existing path is not changed.
                symlink(root.join(to), root.join(from)).unwrap_or_default();
            }
            for file in files {
                fs::create_dir_all(root.join(file).parent().unwrap()).unwrap_or_default();
                fs::write(root.join(file), "x").unwrap_or_default();
            }
            let rule = |permission| {
                let root = &root;
                move |path: &&str| Rule::new(root.join(path), permission)
            };
            let written = written.iter().map(rule(Permission::Write));
            let scope = Scope::new(written.chain(read.iter().map(rule(Permission::Read))).collect());
            let home = root.join("home").display().to_string();
            let env = BTreeMap::from([("HOME".to_owned(), home)]);
            let asked = CommandView::new(&ViewInputs::new(&scope, UserPaths { env: &env }));
            let view = resolved(asked.clone());
            let with = |holes: Vec<Hole>| {
                let asked = CommandView { holes: holes.clone(), ..asked.clone() };
                let view = CommandView { holes, ..view.clone() };
                let found = search::find(&asked, &view);
                let before = format!("{:?}", Snapshot::of(&asked, &found));
                (plan::holes(&view, &found), before)
            };
            let near = relevant_holes(&asked, &view);
            prop_assert_eq!(with(near), with(asked.holes.clone()));
        }
    }

    #[test]
    fn of_a_home_directory_that_is_not_granted_only_what_a_link_leads_elsewhere_is_left() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("home/.ssh")).unwrap();
        fs::create_dir_all(root.join("ws")).unwrap();
        fs::write(root.join("home/.profile"), "").unwrap();
        symlink(root.join("ws/bashrc"), root.join("home/.bashrc")).unwrap();
        let scope = Scope::new(vec![Rule::new(root.join("ws"), Permission::Write)]);
        let home = root.join("home");
        let env = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
        let asked = CommandView::new(&ViewInputs::new(&scope, UserPaths { env: &env }));
        let near = relevant_holes(&asked, &resolved(asked.clone()));
        let in_home = near.iter().filter(|hole| hole.path.starts_with(&home));
        let in_home = in_home.filter(|hole| !hole.path.starts_with(home.join(".cache")));
        let left: Vec<&Path> = in_home.map(|hole| hole.path.as_path()).collect();
        assert_eq!(left, [home.join(".bashrc")]);
        assert!(asked.holes.len() > near.len() + 100, "{}", near.len());
    }
}
