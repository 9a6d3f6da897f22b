//! The confinement of commands, in words.

use crate::protocol::family::Confined;
use serde::{Deserialize, Serialize};

/// The isolation of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Namespaces in which only granted paths exist, then Landlock and seccomp.
    Namespaces,
    /// Landlock and seccomp deny everything that is not granted, without namespaces: the siblings
    /// of a hole are granted one by one.
    LandlockOnly,
}

/// Actions that are not prevented without namespaces, each in a few words. The escape tests show
/// every one of them, and `docs/confinement.md` lists them.
pub const WITHOUT_NAMESPACES: [&str; 8] = [
    "modes, owners, times and attributes of your files can be changed",
    "every path can be checked and watched, and directories that contain a guarded path can be listed",
    "command lines of your other processes can be read, and names of keys that the kernel holds for you",
    UNLIMITED,
    "temporary files have no limit of their own",
    "your settings of git are shown whole, with passwords in them",
    "the caches of your toolchains are written: what a command puts there, your tools and other Pods may run later",
    "a command can exchange a script that was approved with it before it runs the script",
];
/// Not prevented where the kernel refuses to mount a new `/proc`.
pub const OTHERS_SHOWN: &str = "command lines of your other processes can be read";
/// Not prevented without namespaces, and for root also where the kernel refuses to mount a new
/// `/proc`.
pub const UNLIMITED: &str = "processes have no limit of their own";
/// Not prevented for root on a kernel before 6.14.
pub const UNCOUNTED: &str = "processes have no limit (root, Linux before 6.14)";

/// The confinement of commands on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    pub word: Confined,
    /// Actions that are not prevented, each in a few words.
    #[serde(default)]
    pub open: Vec<String>,
    /// Legitimate actions that the confinement prevents.
    #[serde(default)]
    pub cost: Vec<String>,
    /// The version of Landlock in use; 0 is none.
    #[serde(default)]
    pub abi: u32,
    /// Why commands run without namespaces: the step that failed, and its error.
    #[serde(default)]
    pub no_world: Option<String>,
}

impl Confinement {
    /// Commands are not confined, for this reason.
    pub fn none(reason: impl Into<String>) -> Self {
        Self {
            word: Confined::NotEnforced,
            open: vec![reason.into()],
            cost: Vec::new(),
            abi: 0,
            no_world: None,
        }
    }

    /// Adds the reason why namespaces could not be set up.
    pub fn without_world(self, reason: String) -> Self {
        Self { no_world: Some(reason), ..self }
    }

    /// The isolation to use for commands on this machine.
    pub fn isolation(&self) -> Isolation {
        match self.no_world {
            None => Isolation::Namespaces,
            Some(_) => Isolation::LandlockOnly,
        }
    }

    /// The note at a Pod when the confinement is incomplete.
    pub fn note(&self) -> Option<String> {
        (self.word != Confined::Enforced).then(|| self.text())
    }

    /// `sandbox on`, `sandbox partly on: …` with the openings, or `sandbox off: …` with the reason.
    pub fn text(&self) -> String {
        let none = self.no_world.as_ref();
        let none = none.map(|reason| format!("commands have no world of their own ({reason})"));
        let open: Vec<String> = none.into_iter().chain(self.open.iter().cloned()).collect();
        let (word, open) = (self.word, open.join("; "));
        match word {
            Confined::Enforced => format!("sandbox {word}"),
            Confined::Partly | Confined::NotEnforced => format!("sandbox {word}: {open}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_what_is_open() {
        let open = vec!["signals".to_owned(), "files".to_owned()];
        let partly =
            Confinement { word: Confined::Partly, open, cost: Vec::new(), abi: 3, no_world: None };
        assert_eq!(partly.text(), "sandbox partly on: signals; files");
        assert_eq!(partly.note().unwrap(), "sandbox partly on: signals; files");
        assert_eq!(Confinement::none("no Landlock").text(), "sandbox off: no Landlock");
        let enforced = Confinement { word: Confined::Enforced, open: Vec::new(), ..partly };
        assert_eq!(enforced.text(), "sandbox on");
        assert_eq!(enforced.note(), None);
        let degraded = Confinement { word: Confined::Partly, open: vec!["a".into()], ..enforced };
        assert_eq!(degraded.isolation(), Isolation::Namespaces);
        let degraded = degraded.without_world("namespaces: Operation not permitted".into());
        assert_eq!(degraded.isolation(), Isolation::LandlockOnly);
        let said = "sandbox partly on: commands have no world of their own (namespaces: Operation \
                    not permitted); a";
        assert_eq!(degraded.text(), said);
    }
}
