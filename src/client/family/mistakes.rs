//! The mistakes in the settings of the host, as it last listed them.

use crate::protocol::SettingsMistake;

/// The current mistakes.
#[derive(Clone, Debug, Default)]
pub struct Mistakes {
    listed: Vec<SettingsMistake>,
    /// The host that listed them is gone; the next one lists its own, if it finds any.
    is_of_former_host: bool,
}

/// What another list of mistakes says of one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MistakeChange {
    New(SettingsMistake),
    /// The same mistake stands at another line, or another value is used meanwhile.
    Moved {
        before: SettingsMistake,
        now: SettingsMistake,
    },
    Corrected(SettingsMistake),
}

impl Mistakes {
    /// Takes the list of the host, and returns what differs from the one before.
    pub fn replace(&mut self, now: Vec<SettingsMistake>) -> Vec<MistakeChange> {
        self.is_of_former_host = false;
        let mut before = std::mem::replace(&mut self.listed, now);
        let mut changes = Vec::new();
        for mistake in &self.listed {
            let known = before.iter().position(|known| known.about == mistake.about);
            match known.map(|at| before.remove(at)) {
                None => changes.push(MistakeChange::New(mistake.clone())),
                Some(before) if before != *mistake => {
                    changes.push(MistakeChange::Moved { before, now: mistake.clone() });
                }
                Some(_) => {}
            }
        }
        changes.extend(before.into_iter().map(MistakeChange::Corrected));
        changes
    }

    /// The host is gone. What it listed stays until the next one has sent its family.
    pub fn host_is_gone(&mut self) {
        self.is_of_former_host = true;
    }

    /// Whether the host that runs now has listed none yet.
    pub fn are_of_former_host(&self) -> bool {
        self.is_of_former_host
    }

    pub fn iter(&self) -> impl Iterator<Item = &SettingsMistake> {
        self.listed.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }
}
