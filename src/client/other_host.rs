//! A host of an older or newer program, with which no conversation is possible but to end it.

use crate::protocol::{PROTOCOL, PodName};
use std::fmt;

/// The host that was met, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherHost {
    /// Its process, where it is another one than this.
    pub pid: Option<u32>,
    pub protocol: u32,
    pub version: String,
    /// The Pods whose runs its end would pause; `None` where it did not say.
    pub running: Option<Vec<PodName>>,
}

impl OtherHost {
    /// Whether its program is older than this one, which can then end it.
    pub fn is_older(&self) -> bool {
        self.protocol < PROTOCOL
    }

    /// What its end does to runs: `pauses the runs of alice and bob`.
    pub fn paused(&self) -> String {
        let names = self.running.as_deref().map(|pods| pods.iter().map(PodName::as_str));
        match names.map(Iterator::collect::<Vec<_>>).as_deref() {
            None => "pauses what runs in it".into(),
            Some([]) => "pauses nothing: no run is under way".into(),
            Some([one]) => format!("pauses the run of {one}"),
            Some([first @ .., last]) => {
                format!("pauses the runs of {} and {last}", first.join(", "))
            }
        }
    }
}

impl fmt::Display for OtherHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let age = if self.is_older() { "older" } else { "newer" };
        write!(f, "the host that runs is of an {age} yoi (")?;
        if let Some(pid) = self.pid {
            write!(f, "process {pid}, ")?;
        }
        let Self { version, protocol, .. } = self;
        write!(f, "version {version}, protocol {protocol}; this program speaks {PROTOCOL}): ")?;
        if self.is_older() {
            write!(f, "`yoi host stop` ends it and {}; then start again", self.paused())
        } else {
            f.write_str("start that yoi in place of this one")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runs_that_the_end_of_an_older_host_pauses_are_named() {
        let host = |names: Option<&[&str]>| OtherHost {
            pid: Some(7),
            protocol: 0,
            version: "0.0.9".into(),
            running: names
                .map(|names| names.iter().filter_map(|name| PodName::parse(name).ok()).collect()),
        };
        let paused = |names| host(names).paused();
        assert_eq!(paused(None), "pauses what runs in it");
        assert_eq!(paused(Some(&[])), "pauses nothing: no run is under way");
        assert_eq!(paused(Some(&["a"])), "pauses the run of a");
        assert_eq!(paused(Some(&["a", "b", "c"])), "pauses the runs of a, b and c");
        let said = host(Some(&["a"])).to_string();
        assert!(said.contains("older yoi (process 7, version 0.0.9, protocol 0; "), "{said}");
        assert!(said.contains("`yoi host stop` ends it and pauses the run of a; "), "{said}");
        let newer = OtherHost { protocol: PROTOCOL + 1, ..host(None) };
        assert!(newer.to_string().ends_with("start that yoi in place of this one"), "{newer}");
    }
}
