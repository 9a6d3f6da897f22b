//! Which paths a Pod may read and write. Pure: paths come in canonical, nothing here touches a disk.

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

/// What a Pod holds: the maximum of the matching allows, capped by the matching denies.
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
    fn contains(&self, other: &Rule) -> bool {
        if self.recursive {
            return other.target.starts_with(&self.target);
        }
        !other.recursive && other.target == self.target
    }

    /// The paths both rules speak about, as one rule at the deeper target; `None` if there are none.
    fn shared(&self, other: &Rule) -> Option<Rule> {
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

impl Scope {
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

    /// Whether something at or below this directory may be read.
    pub fn reaches(&self, directory: &Path) -> bool {
        self.permission(directory).is_some()
            || self.allow.iter().any(|rule| rule.target.starts_with(directory))
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
        let mut shared: Vec<PathBuf> = self
            .writable()
            .flat_map(|own| other.writable().filter_map(|foreign| own.shared(foreign)))
            .filter(|region| !self.hides(region) && !other.hides(region))
            .map(|region| region.target)
            .collect();
        shared.sort();
        shared.dedup();
        shared
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

    /// The scope in words for a model or a person; denies are not shown.
    pub fn summary(&self) -> String {
        let mut text = String::from("Readable:\n");
        list(&mut text, self.allow.iter());
        text.push_str("Writable:\n");
        list(&mut text, self.writable());
        text.trim_end().into()
    }

    fn writable(&self) -> impl Iterator<Item = &Rule> {
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
