//! Names of machines. Such a name is a token of the server's subjects, so it has few characters.

use crate::mesh::name::is_agent_name;
use std::fmt;

/// The longest name, in bytes.
const LONGEST: usize = 32;
/// Names that stand for something else in a subject or an address.
const RESERVED: &[&str] = &["all", "to", "broker", "broadcast", ADMINISTRATOR];
/// Who administers a server; no machine can be called so.
const ADMINISTRATOR: &str = "administrator";

/// The name of a machine: lower-case letters, digits and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineName(String);

/// A text is no name of a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a machine has a name of 1 to {LONGEST} lower-case letters, digits and `-`, which begins with a letter or a digit \
     and is not one of: {}", RESERVED.join(", ")
)]
pub struct BadName;

impl MachineName {
    /// # Errors
    /// The text is no such name.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = (1..=LONGEST).contains(&text.len())
            && text.bytes().all(fits)
            && !text.starts_with('-')
            && !RESERVED.contains(&text);
        if is_name { Ok(Self(text.to_owned())) } else { Err(BadName) }
    }

    /// Stands for who administers the server, in the subjects of its answers.
    pub(super) fn administrator() -> Self {
        Self(ADMINISTRATOR.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MachineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a text can name an agent, with or without its machine.
pub(crate) fn is_addressable(text: &str) -> bool {
    is_agent_name(text) || address(text).is_some()
}

/// The machine and the agent of an address such as `casa:reviewer`; `None`: the text is no such address.
pub fn address(text: &str) -> Option<(MachineName, &str)> {
    let (machine, agent) = text.split_once(':')?;
    let machine = MachineName::parse(machine).ok()?;
    is_agent_name(agent).then_some((machine, agent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_a_name_that_is_one_token_of_a_subject() {
        for good in ["casa", "a", "7", "my-mac-2", &"x".repeat(32)] {
            assert!(MachineName::parse(good).is_ok(), "{good}");
        }
        for bad in
            ["", "-a", "Casa", "a.b", "a*", ">", "a b", "caf\u{e9}", "all", "to", &"x".repeat(33)]
        {
            assert_eq!(MachineName::parse(bad), Err(BadName), "{bad}");
        }
    }

    #[test]
    fn an_address_is_split_at_its_first_colon() {
        let parts = |text| address(text).map(|(machine, agent)| (machine.to_string(), agent));
        assert_eq!(parts("casa:proj/a:b"), Some(("casa".to_owned(), "proj/a:b")));
        for other in ["casa", "casa:", ":x", "Casa:x", "all:x"] {
            assert_eq!(parts(other), None, "{other}");
        }
    }
}
