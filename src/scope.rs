//! Which paths a Pod may read and write. Pure: paths come in canonical, nothing here touches a disk.

pub mod lease;

use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What may be done with a path. Write includes read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    Read,
    Write,
}

/// One path and what may be done with it (`ScopeRule` of the protocol).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rule {
    /// Absolute.
    pub target: PathBuf,
    pub permission: Permission,
    /// Whether everything below the target is covered; if not, only the target and its direct
    /// children are.
    #[serde(default = "yes")]
    pub recursive: bool,
}

fn yes() -> bool {
    true
}

/// The rights of a Pod: the maximum of the matching allows, capped by the matching denies. A deny of `Write` leaves
/// reading; a deny of `Read` takes all rights.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    pub allow: Vec<Rule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Rule>,
}

impl Rule {
    /// A rule for the target and everything below it.
    pub fn new(target: impl Into<PathBuf>, permission: Permission) -> Self {
        Self { target: target.into(), permission, recursive: true }
    }

    /// The rule with its target below `to` where that lay at or below `from`.
    #[must_use]
    pub fn relocated(&self, from: &Path, to: &Path) -> Self {
        let target = relocated(&self.target, from, to).unwrap_or_else(|| self.target.clone());
        Self { target, ..self.clone() }
    }

    /// Whether the rule speaks about this path.
    pub fn covers(&self, path: &Path) -> bool {
        if self.recursive {
            return path.starts_with(&self.target);
        }
        path == self.target || path.parent() == Some(&self.target)
    }

    /// Whether there is a path that both rules speak about.
    pub fn overlaps(&self, other: &Rule) -> bool {
        self.covers(&other.target) || other.covers(&self.target)
    }

    /// Whether this rule speaks about every path that the other speaks about.
    pub fn contains(&self, other: &Rule) -> bool {
        if self.recursive {
            return other.target.starts_with(&self.target);
        }
        !other.recursive && other.target == self.target
    }

    /// The paths both rules speak about, as one rule at the deeper target; `None` if there are none.
    pub(crate) fn shared(&self, other: &Rule) -> Option<Rule> {
        if !self.overlaps(other) {
            return None;
        }
        let (outer, inner) = if self.contains(other) { (self, other) } else { (other, self) };
        if outer.contains(inner) {
            return Some(inner.clone());
        }
        // One of the two ends at its direct children: what they share is a single entry.
        let deeper = if inner.target.starts_with(&outer.target) { inner } else { outer };
        Some(Rule { recursive: false, ..deeper.clone() })
    }
}

/// A path at or below `from`, at its place in `to`; `None` for every other path.
pub fn relocated(path: &Path, from: &Path, to: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix(from).ok()?;
    // Joining nothing would end the path with a slash.
    Some(if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) })
}

impl Scope {
    /// The scope with its rules at their places in `to` where they lay at or below `from`.
    #[must_use]
    pub fn relocated(&self, from: &Path, to: &Path) -> Self {
        let moved = |rules: &[Rule]| rules.iter().map(|rule| rule.relocated(from, to)).collect();
        Self { allow: moved(&self.allow), deny: moved(&self.deny) }
    }

    /// A scope of these allows, without denies.
    pub fn new(allow: Vec<Rule>) -> Self {
        Self { allow, deny: Vec::new() }
    }

    /// The same scope without any access to these directories.
    #[must_use]
    pub fn with_deny(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.deny.extend(paths.into_iter().map(|path| Rule::new(path, Permission::Read)));
        self
    }

    /// What may be done with a canonical path; `None` is nothing at all.
    pub fn permission(&self, path: &Path) -> Option<Permission> {
        let granted =
            self.allow.iter().filter(|rule| rule.covers(path)).map(|r| r.permission).max()?;
        let denied = self.deny.iter().filter(|rule| rule.covers(path)).map(|r| r.permission).min();
        match denied {
            None => Some(granted),
            Some(Permission::Read) => None,
            Some(Permission::Write) => Some(Permission::Read),
        }
    }

    /// The allow that gives `permission` on this path, the deepest when several do. Denies are not
    /// looked at: ask [`Scope::permission`] first.
    pub fn rule_for(&self, path: &Path, permission: Permission) -> Option<&Rule> {
        let giving = |rule: &&Rule| rule.permission >= permission && rule.covers(path);
        self.allow.iter().filter(giving).max_by_key(|rule| rule.target.components().count())
    }

    /// Whether something at or below this directory may be readable.
    pub fn reaches(&self, directory: &Path) -> bool {
        let below = Rule::new(directory, Permission::Read);
        let closed = self
            .deny
            .iter()
            .any(|deny| deny.permission == Permission::Read && deny.contains(&below));
        !closed && self.allow.iter().any(|rule| rule.overlaps(&below))
    }

    /// Whether everything the rule speaks about is held with at least its permission, so that it
    /// can be handed on.
    pub fn covers(&self, rule: &Rule) -> bool {
        let allowed =
            self.allow.iter().any(|own| own.permission >= rule.permission && own.contains(rule));
        let narrowed =
            self.deny.iter().any(|deny| deny.permission <= rule.permission && deny.overlaps(rule));
        allowed && !narrowed
    }

    /// Where both scopes may write, the deeper target of each pair, sorted. Reading never conflicts;
    /// a region that either side denies itself entirely is not its own.
    pub fn write_conflicts(&self, other: &Scope) -> Vec<PathBuf> {
        let regions = self.write_overlaps(other).into_iter().map(|region| region.target);
        let mut shared: Vec<PathBuf> = regions.collect();
        shared.sort_unstable();
        shared.dedup();
        shared
    }

    /// The regions behind [`Scope::write_conflicts`], as rules to write.
    fn write_overlaps(&self, other: &Scope) -> Vec<Rule> {
        let pairs =
            self.writable().flat_map(|own| other.writable().map(move |theirs| (own, theirs)));
        pairs
            .filter_map(|(own, theirs)| own.shared(theirs))
            .filter(|region| !self.hides(region) && !other.hides(region))
            .collect()
    }

    /// The regions that this one writes and `after` does not.
    pub fn write_lost_in(&self, after: &Scope) -> Vec<Rule> {
        let kept = |own: &Rule| after.writable().any(|rule| rule.contains(own));
        let closes = |deny: &Rule| {
            let region = Rule { permission: Permission::Write, ..deny.clone() };
            !self.write_overlaps(&Scope::new(vec![region])).is_empty()
        };
        let mut lost: Vec<Rule> = self.writable().filter(|own| !kept(own)).cloned().collect();
        let new = after.deny.iter().filter(|deny| !self.deny.contains(deny) && closes(deny));
        for deny in new {
            if !lost.iter().any(|rule| rule.contains(deny)) {
                lost.push(deny.clone());
            }
        }
        lost
    }

    /// The same paths, without the right to change them.
    #[must_use]
    pub fn as_read_only(&self) -> Self {
        let mut scope = self.clone();
        for rule in &mut scope.allow {
            rule.permission = Permission::Read;
        }
        scope
    }

    /// The scope in words for a model or a person. What is denied for reading, too, is not shown. What only writing is
    /// denied for stands first: a text that ends alike would be contained in the one with it.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        let held = |rule: &&Rule| {
            rule.permission == Permission::Write && self.writable().any(|own| own.overlaps(rule))
        };
        if self.deny.iter().any(|rule| held(&rule)) {
            text.push_str("Not writable now, another Pod writes there:\n");
            list(&mut text, self.deny.iter().filter(held));
        }
        text.push_str("Readable:\n");
        list(&mut text, self.allow.iter());
        text.push_str("Writable:\n");
        list(&mut text, self.writable());
        text.trim_end().into()
    }

    pub(crate) fn writable(&self) -> impl Iterator<Item = &Rule> {
        self.allow.iter().filter(|rule| rule.permission == Permission::Write)
    }

    fn hides(&self, region: &Rule) -> bool {
        self.deny.iter().any(|deny| deny.contains(region))
    }
}

fn list<'a>(text: &mut String, rules: impl Iterator<Item = &'a Rule>) {
    let before = text.len();
    for rule in rules {
        let suffix = if rule.recursive { "" } else { " [non-recursive]" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  - {}{suffix}", rule.target.display());
    }
    if text.len() == before {
        text.push_str("  (none)\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(target: &str, permission: Permission, recursive: bool) -> Rule {
        Rule { target: target.into(), permission, recursive }
    }

    fn read(target: &str) -> Rule {
        Rule::new(target, Permission::Read)
    }

    fn write(target: &str) -> Rule {
        Rule::new(target, Permission::Write)
    }

    #[test]
    fn the_strongest_allow_counts_and_denies_cap_it() {
        let scope = Scope {
            allow: vec![read("/a"), write("/a/b"), read("/a/b/c")],
            deny: vec![write("/a/b/held"), read("/a/b/own")],
        };
        let permission = |path: &str| scope.permission(Path::new(path));
        assert_eq!(permission("/"), None);
        assert_eq!(permission("/ab"), None);
        assert_eq!(permission("/a"), Some(Permission::Read));
        assert_eq!(permission("/a/b/c/d"), Some(Permission::Write));
        assert_eq!(permission("/a/b/held/x"), Some(Permission::Read));
        assert_eq!(permission("/a/b/own/x"), None);
    }

    #[test]
    fn a_rule_that_is_not_recursive_ends_at_the_direct_children() {
        let flat = rule("/a", Permission::Write, false);
        assert!(flat.covers(Path::new("/a")) && flat.covers(Path::new("/a/b")));
        assert!(!flat.covers(Path::new("/a/b/c")));
        assert!(flat.overlaps(&write("/a/b")) && flat.overlaps(&write("/")));
        assert!(!flat.overlaps(&write("/a/b/c")));
        let scope = Scope::new(vec![flat.clone()]);
        assert!(scope.covers(&flat) && !scope.covers(&write("/a")));
        assert!(!scope.covers(&rule("/a/b", Permission::Write, false)));
    }

    #[test]
    fn only_two_writers_conflict_and_a_region_denied_entirely_is_free() {
        let own = Scope::new(vec![write("/a"), read("/r")]);
        let other = Scope::new(vec![write("/a/b"), write("/r"), write("/x")]);
        assert_eq!(own.write_conflicts(&other), [PathBuf::from("/a/b")]);
        let lent = Scope { deny: vec![write("/a/b")], ..own.clone() };
        assert!(lent.write_conflicts(&other).is_empty());
        let partly = Scope { deny: vec![write("/a/b/c")], ..own };
        assert_eq!(partly.write_conflicts(&other), [PathBuf::from("/a/b")]);
    }

    #[test]
    fn the_summary_lists_what_can_be_read_and_what_can_be_written() {
        let scope = Scope {
            allow: vec![write("/a"), rule("/b", Permission::Read, false)],
            deny: vec![read("/a/own")],
        };
        let expected = "Readable:\n  - /a\n  - /b [non-recursive]\nWritable:\n  - /a";
        assert_eq!(scope.summary(), expected);
        let expected = "Readable:\n  - /a\n  - /b [non-recursive]\nWritable:\n  (none)";
        assert_eq!(scope.as_read_only().summary(), expected);
        let lent = Scope { deny: vec![read("/a/own"), write("/a/lent"), write("/b/c")], ..scope };
        let expected = "Not writable now, another Pod writes there:\n  - /a/lent\nReadable:\n  - /a\n  - /b [non-recursive]\nWritable:\n  - /a";
        assert_eq!(lent.summary(), expected);
    }

    #[test]
    fn every_region_that_is_not_written_any_more_is_lost() {
        let own = Scope::new(vec![write("/a"), write("/b"), write("/c"), read("/r")]);
        let after = Scope { allow: vec![write("/b"), read("/c")], deny: vec![read("/b/x")] };
        assert_eq!(own.write_lost_in(&after), [write("/a"), write("/c"), read("/b/x")]);
        let lent = Scope { deny: vec![write("/a/1"), write("/a/2"), write("/r/1")], ..own.clone() };
        assert_eq!(own.write_lost_in(&lent), [write("/a/1"), write("/a/2")]);
        assert_eq!(lent.write_lost_in(&own), []);
        let gone = Scope { allow: vec![write("/b"), write("/c")], deny: vec![write("/a/1")] };
        assert_eq!(own.write_lost_in(&gone), [write("/a")], "named once, with all that is in it");
    }

    #[test]
    fn a_denied_directory_is_out_of_reach_and_not_handed_on() {
        let scope = Scope::new(vec![write("/home")]).with_deny(["/home/own".into()]);
        assert_eq!(scope.permission(Path::new("/home/own/x")), None);
        assert!(scope.covers(&write("/home/work")));
        assert!(!scope.covers(&write("/home")) && !scope.covers(&read("/home/own/x")));
    }

    /// Paths of up to three components out of two names: small enough that rules meet.
    fn path() -> impl Strategy<Value = PathBuf> {
        prop::collection::vec(prop::sample::select(vec!["a", "b"]), 0..4)
            .prop_map(|names| names.iter().fold(PathBuf::from("/"), |path, name| path.join(name)))
    }

    fn any_rule() -> impl Strategy<Value = Rule> {
        let permission = prop::sample::select(vec![Permission::Read, Permission::Write]);
        (path(), permission, any::<bool>()).prop_map(|(target, permission, recursive)| Rule {
            target,
            permission,
            recursive,
        })
    }

    fn any_scope() -> impl Strategy<Value = Scope> {
        let rules = |max| prop::collection::vec(any_rule(), 0..max);
        (rules(4), rules(3)).prop_map(|(allow, deny)| Scope { allow, deny })
    }

    proptest! {
        #[test]
        fn a_scope_permits_every_path_it_covers(scope in any_scope(), rule in any_rule(), path in path()) {
            if scope.covers(&rule) && rule.covers(&path) {
                prop_assert!(scope.permission(&path) >= Some(rule.permission));
            }
        }

        #[test]
        fn rules_overlap_exactly_when_they_share_a_path(one in any_rule(), two in any_rule()) {
            // Every path that matters is a target or one step below it.
            let near = |rule: &Rule| vec![rule.target.clone(), rule.target.join("a")];
            let shared = near(&one).into_iter().chain(near(&two)).any(|p| one.covers(&p) && two.covers(&p));
            prop_assert_eq!(one.overlaps(&two), shared);
            prop_assert_eq!(one.overlaps(&two), two.overlaps(&one));
        }

        #[test]
        fn without_a_conflict_no_path_has_two_writers(
            one in any_scope(), two in any_scope(), path in path(),
        ) {
            let both = [&one, &two].iter().all(|s| s.permission(&path) == Some(Permission::Write));
            if one.write_conflicts(&two).is_empty() {
                prop_assert!(!both);
            }
            prop_assert_eq!(one.write_conflicts(&two), two.write_conflicts(&one));
        }

        #[test]
        fn what_was_written_and_is_not_any_more_lies_in_a_region_that_is_lost(
            before in any_scope(), after in any_scope(), path in path(),
        ) {
            let writes = |scope: &Scope| scope.permission(&path) == Some(Permission::Write);
            if writes(&before) && !writes(&after) {
                let lost = before.write_lost_in(&after);
                prop_assert!(lost.iter().any(|rule| rule.covers(&path)), "{:?}", lost);
            }
        }

        #[test]
        fn read_only_takes_writing_and_nothing_else(scope in any_scope(), path in path()) {
            let plain = scope.as_read_only();
            prop_assert!(plain.permission(&path) != Some(Permission::Write));
            let deny_write = scope.deny.iter().any(|rule| rule.permission == Permission::Write);
            if !deny_write {
                prop_assert_eq!(plain.permission(&path).is_some(), scope.permission(&path).is_some());
            }
        }

        #[test]
        fn every_permission_comes_from_a_rule_and_every_rule_is_reached(scope in any_scope(), path in path()) {
            if let Some(held) = scope.permission(&path) {
                prop_assert!(scope.rule_for(&path, held).is_some_and(|rule| rule.covers(&path)));
                prop_assert!(path.ancestors().all(|parent| scope.reaches(parent)));
            }
        }
    }
}
