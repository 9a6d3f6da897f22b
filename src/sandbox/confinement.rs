//! How well commands are confined, in words.

use crate::protocol::family::Confined;
use serde::{Deserialize, Serialize};

/// What the kernel does for us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    pub word: Confined,
    /// What a command could do although it should not, each a few words.
    #[serde(default)]
    pub open: Vec<String>,
    /// What a command cannot do although it should, for want of a better way to confine it.
    #[serde(default)]
    pub cost: Vec<String>,
    /// The version of Landlock in use; 0 is none.
    #[serde(default)]
    pub abi: u32,
}

impl Confinement {
    /// Nothing holds a command, for this reason.
    pub fn none(reason: impl Into<String>) -> Self {
        Self { word: Confined::NotEnforced, open: vec![reason.into()], cost: Vec::new(), abi: 0 }
    }

    /// What stands among the notes of a Pod where not everything is enforced.
    pub fn note(&self) -> Option<String> {
        (self.word != Confined::Enforced).then(|| self.text())
    }

    /// `sandbox on`, `sandbox partly on: …` with what is open, or `sandbox off: …` with the reason.
    pub fn text(&self) -> String {
        let (word, open) = (self.word, self.open.join("; "));
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
        let partly = Confinement { word: Confined::Partly, open, cost: Vec::new(), abi: 3 };
        assert_eq!(partly.text(), "sandbox partly on: signals; files");
        assert_eq!(partly.note().unwrap(), "sandbox partly on: signals; files");
        assert_eq!(Confinement::none("no Landlock").text(), "sandbox off: no Landlock");
        let enforced = Confinement { word: Confined::Enforced, open: Vec::new(), ..partly };
        assert_eq!(enforced.text(), "sandbox on");
        assert_eq!(enforced.note(), None);
    }
}
