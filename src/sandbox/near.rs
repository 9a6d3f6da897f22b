//! Removes the holes that restrict no grant: secrets and settings of the person at paths that are
//! not granted at all. There are hundreds, and each one that remains is compared and looked up
//! several times.

use crate::files::leads_through_links;
use crate::sandbox::view::{CommandView, Grant, Hole, Level, Why};
use std::collections::HashSet;
use std::path::Path;

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
pub fn holes(asked: &CommandView, resolved: &CommandView) -> Vec<Hole> {
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
    use crate::sandbox::places::Person;
    use crate::sandbox::view::Around;
    use crate::sandbox::{after, guard, plan, resolve};
    use crate::scope::{Permission, Rule, Scope};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::symlink;

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
            let asked = CommandView::new(&Around::new(&scope, Person { env: &env }));
            let view = resolve::resolved(asked.clone());
            let with = |holes: Vec<Hole>| {
                let asked = CommandView { holes: holes.clone(), ..asked.clone() };
                let view = CommandView { holes, ..view.clone() };
                let found = guard::find(&asked, &view);
                let before = format!("{:?}", after::look(&asked, &found));
                (plan::holes(&view, &found), before)
            };
            let near = holes(&asked, &view);
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
        let asked = CommandView::new(&Around::new(&scope, Person { env: &env }));
        let near = holes(&asked, &resolve::resolved(asked.clone()));
        let in_home = near.iter().filter(|hole| hole.path.starts_with(&home));
        let in_home = in_home.filter(|hole| !hole.path.starts_with(home.join(".cache")));
        let left: Vec<&Path> = in_home.map(|hole| hole.path.as_path()).collect();
        assert_eq!(left, [home.join(".bashrc")]);
        assert!(asked.holes.len() > near.len() + 100, "{}", near.len());
    }
}
