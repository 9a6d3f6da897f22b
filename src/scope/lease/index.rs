//! Keys of holders by path: the cost of a lookup grows with the depth of the path and the length of
//! the result, not with the number of holders.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// Maps paths to the holders that have a rule there.
#[derive(Clone, Debug, Default)]
pub struct PathIndex(BTreeMap<PathBuf, BTreeSet<String>>);

impl PathIndex {
    pub fn insert(&mut self, path: &Path, key: &str) {
        self.0.entry(path.to_owned()).or_default().insert(key.to_owned());
    }

    /// Removes both rules of a holder that has two at one path.
    pub fn remove(&mut self, path: &Path, key: &str) {
        if let Some(keys) = self.0.get_mut(path) {
            keys.remove(key);
            if keys.is_empty() {
                self.0.remove(path);
            }
        }
    }

    /// The holders at this path, above it and below it, in the order of their keys.
    pub fn around(&self, path: &Path) -> BTreeSet<&String> {
        let above = path.ancestors().filter_map(|at| self.0.get(at));
        let below = self.0.range::<Path, _>((Bound::Excluded(path), Bound::Unbounded));
        // Paths are compared by component, so everything below one follows it directly.
        let below = below.take_while(|(at, _)| at.starts_with(path)).map(|(_, keys)| keys);
        above.chain(below).flatten().collect()
    }
}

/// Numbers of leases by the key of one of their ends.
#[derive(Clone, Debug, Default)]
pub struct Ends(BTreeMap<String, BTreeSet<u64>>);

impl Ends {
    pub fn insert(&mut self, key: &str, id: u64) {
        self.0.entry(key.to_owned()).or_default().insert(id);
    }

    pub fn remove(&mut self, key: &str, id: u64) {
        if let Some(ids) = self.0.get_mut(key) {
            ids.remove(&id);
            if ids.is_empty() {
                self.0.remove(key);
            }
        }
    }

    /// Oldest first.
    pub fn of(&self, key: &str) -> impl Iterator<Item = u64> {
        self.0.get(key).into_iter().flatten().copied()
    }
}

/// The paths that each lender may not write because it lent them.
#[derive(Clone, Debug, Default)]
pub struct LentPaths(BTreeMap<String, BTreeMap<PathBuf, BTreeSet<u64>>>);

impl LentPaths {
    pub fn insert(&mut self, lender: &str, path: &Path, id: u64) {
        let paths = self.0.entry(lender.to_owned()).or_default();
        paths.entry(path.to_owned()).or_default().insert(id);
    }

    pub fn remove(&mut self, lender: &str, path: &Path, id: u64) {
        let Some(paths) = self.0.get_mut(lender) else { return };
        if let Some(ids) = paths.get_mut(path) {
            ids.remove(&id);
            if ids.is_empty() {
                paths.remove(path);
            }
        }
        if paths.is_empty() {
            self.0.remove(lender);
        }
    }

    /// The leases at this path and above it.
    pub fn above(&self, lender: &str, path: &Path) -> impl Iterator<Item = u64> {
        let paths = self.0.get(lender);
        let at = path.ancestors().filter_map(move |at| paths?.get(at));
        at.flatten().copied()
    }
}
