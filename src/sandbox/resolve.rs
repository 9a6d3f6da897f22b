//! Resolves grants to canonical paths, and follows no link that a command may have created.

use crate::files::{canonical, links_on};
use crate::sandbox::places::{MADE, of_the_system};
use crate::sandbox::view::{CommandView, Depth, Grant, Links, Why};
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
fn some_pod_writes(view: &CommandView, path: &Path) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::places::Person;
    use crate::sandbox::view::{Around, Level};
    use crate::scope::{Permission, Rule, Scope};
    use std::collections::BTreeMap;
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
            let person = Person { env: &self.env };
            resolved(CommandView::new(&Around::new(&scope, person))).grants
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
        let person = Person { env: &disk.env };
        let reaches = |scope: Vec<Rule>, given: Vec<Rule>, others: &[PathBuf]| {
            let (scope, given) = (Scope::new(scope), Scope::new(given));
            let around = Around { given: &given, others, ..Around::new(&scope, person) };
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
        let around = Around::new(&scope, Person { env: &disk.env });
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
}
