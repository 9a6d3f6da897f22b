//! Changes of `package.json` by a command, which are reported and not undone.

use crate::sandbox::after::{Before, Known, ViewByPath, known_at};
use crate::sandbox::guard::Found;
use crate::sandbox::package::{PACKAGE, changed_package_scripts};
use crate::sandbox::view::{Level, Links};
use std::path::PathBuf;

/// A `package.json` before the command; changes of its scripts are reported.
#[derive(Debug)]
pub struct Package {
    path: PathBuf,
    before: Option<Known>,
}

impl Before {
    /// Records the `package.json` files of the scope's directories and of the working trees found.
    pub fn keep_packages(&mut self, view: &ViewByPath, found: &Found) {
        let own = view
            .asked
            .grants
            .iter()
            .filter(|grant| grant.level == Level::Write && grant.links == Links::Refused);
        let dirs = own.map(|grant| &grant.path).chain(&found.projects);
        let files = dirs.map(|dir| dir.join(PACKAGE)).filter(|path| view.opens(path));
        for path in files {
            let before = self.recorded.known_at(&path);
            if !self.recorded.closes(&path) {
                self.packages.push(Package { path, before });
            }
        }
    }
}

impl Package {
    pub fn said(&self) -> Option<String> {
        let now = known_at(&self.path).filter(|now| self.before.as_ref() != Some(now))?;
        let before = self.before.as_ref().and_then(Known::content);
        changed_package_scripts(&self.path, before, now.content()?)
    }
}

impl Known {
    fn content(&self) -> Option<&[u8]> {
        match self {
            Self::File { bytes, .. } => Some(bytes),
            Self::Link(_) => None,
        }
    }
}
