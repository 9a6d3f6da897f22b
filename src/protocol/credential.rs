//! Credentials of the person that a command asks for by name.

use serde::{Deserialize, Serialize};

/// What a command gets with a credential: names, and no value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Credential {
    /// `github` of `[credential.github]`.
    pub name: String,
    /// The variables that it sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Whether it may have the person's ssh agent sign for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ssh_agent: bool,
}

impl std::fmt::Display for Credential {
    /// `github (the variable GH_TOKEN, your ssh agent)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let variables = match self.env.as_slice() {
            [] => None,
            [name] => Some(format!("the variable {name}")),
            names => Some(format!("the variables {}", names.join(", "))),
        };
        let agent = self.ssh_agent.then(|| "your ssh agent, with all its keys".to_owned());
        let what: Vec<String> = variables.into_iter().chain(agent).collect();
        write!(f, "{} ({})", self.name, what.join(", "))
    }
}
