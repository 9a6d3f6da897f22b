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
        let word = match self.word {
            Confined::Enforced => return None,
            Confined::Partly => "shell partly confined",
            Confined::NotEnforced => "shell not confined",
        };
        Some(format!("{word}: {}", self.open.join("; ")))
    }

    /// `enforced`, `partly: …` or `not enforced: …`.
    pub fn text(&self) -> String {
        match self.word {
            Confined::Enforced => self.word.to_string(),
            word @ (Confined::Partly | Confined::NotEnforced) => {
                format!("{word}: {}", self.open.join("; "))
            }
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
        assert_eq!(partly.text(), "partly: signals; files");
        assert_eq!(partly.note().unwrap(), "shell partly confined: signals; files");
        assert_eq!(Confinement::none("no Landlock").text(), "not enforced: no Landlock");
        let enforced = Confinement { word: Confined::Enforced, open: Vec::new(), ..partly };
        assert_eq!(enforced.text(), "enforced");
        assert_eq!(enforced.note(), None);
    }
}
