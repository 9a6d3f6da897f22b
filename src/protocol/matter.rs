//! Why a person is called, and the sentence that says it.

use serde::{Deserialize, Serialize};

/// What a Pod calls a person for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Matter {
    /// It waits for an approval, an answer, a model or a key.
    Needs,
    Failed,
    /// A root has finished its run, and no Pod below it works.
    Finished,
}

/// The Pods that one sentence names; of more it says how many.
const NAMES: usize = 3;

impl Matter {
    const ALL: [Self; 3] = [Self::Needs, Self::Failed, Self::Finished];

    /// The words behind one name, and behind several.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Needs => ("needs you", "need you"),
            Self::Failed => ("failed", "failed"),
            Self::Finished => ("is done", "are done"),
        }
    }

    /// Several Pods in one sentence: "ann, bob need you · cid failed · 5 are done".
    pub fn sentence(pods: &[(&str, Self)]) -> String {
        let part = |matter: Self| {
            let its = pods.iter().filter(|(_, of)| *of == matter).map(|(name, _)| *name);
            let names: Vec<&str> = its.collect();
            let (one, several) = matter.words();
            match names[..] {
                [] => None,
                [name] => Some(format!("{name} {one}")),
                _ if names.len() <= NAMES => Some(format!("{} {several}", names.join(", "))),
                _ => Some(format!("{} {several}", names.len())),
            }
        };
        Self::ALL.into_iter().filter_map(part).collect::<Vec<_>>().join(" · ")
    }
}

/// What a call says that is only a test.
pub const TEST_CALL: &str = "yoi calls you: this is a test";

/// What came of one way to call a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriedWay {
    /// Its key in `[notify]`: `command` or `url`.
    pub name: String,
    pub is_set: bool,
    /// Why it did not reach the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_few_pods_and_counts_many() {
        use Matter::{Failed, Finished, Needs};
        let pods = [("bob", Finished), ("ann", Needs), ("cid", Failed), ("dan", Needs)];
        assert_eq!(Matter::sentence(&pods), "ann, dan need you · cid failed · bob is done");
        assert_eq!(Matter::sentence(&[("a", Failed); 4]), "4 failed");
        assert_eq!(Matter::sentence(&[]), "");
    }
}
