//! The user's settings as `config.toml` says them now. The file is read again when it is another file or was
//! written since. A file with a mistake changes nothing: the last good settings stay in force, and the mistakes
//! are said.

use crate::config::diagnostic::Diagnostic;
use crate::config::settings::Settings;
use crate::protocol::SettingsMistake;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The values that a host uses that starts with a mistake in the file.
const USUAL: &str = "until you correct it, yoi uses the default of that setting";
/// The same for a host that runs already.
const BEFORE: &str = "until you correct it, the settings from before this change stay in force";

/// The file and what it said last.
pub struct SettingsFile {
    config: PathBuf,
    last: Mutex<Reading>,
}

/// The settings in force.
#[derive(Clone)]
pub struct Reading {
    pub settings: Arc<Settings>,
    /// The mistakes of the file as it is now, each with its place; empty when all of it is in force.
    pub mistakes: Vec<SettingsMistake>,
    stamp: Option<Stamp>,
}

/// Differs whenever another file lies there, or the same one was written.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds of the last change.
    changed: (i64, i64),
}

impl Stamp {
    /// `None` without a file.
    fn of(file: &Path) -> Option<Self> {
        let found = std::fs::metadata(file).ok()?;
        let changed = (found.ctime(), found.ctime_nsec());
        Some(Self { device: found.dev(), inode: found.ino(), size: found.len(), changed })
    }
}

impl Reading {
    /// The settings when there are none from before that could stay in force.
    fn first(settings: Settings, diagnostics: &[Diagnostic], stamp: Option<Stamp>) -> Self {
        let said = diagnostics.iter().map(|mistake| settings.with_value_in_use(mistake, USUAL));
        let mistakes = said.collect();
        Self { settings: Arc::new(settings), mistakes, stamp }
    }

    /// The sentences about the mistakes.
    pub fn sentences(&self) -> Vec<String> {
        self.mistakes.iter().map(SettingsMistake::to_string).collect()
    }
}

impl SettingsFile {
    /// Reads the settings of a configuration directory. Of a file with mistakes, what can be read is in
    /// force. Blocking.
    pub fn open(config: &Path) -> Self {
        let config = config.to_owned();
        let stamp = Stamp::of(&file_in(&config));
        let (settings, diagnostics) = Settings::load(&config);
        let last = Reading::first(settings, &diagnostics, stamp);
        Self { config, last: Mutex::new(last) }
    }

    /// The path of the file, which need not exist.
    pub fn path(&self) -> PathBuf {
        file_in(&self.config)
    }

    /// The settings in force, as they were read last.
    pub fn last(&self) -> Reading {
        self.lock().clone()
    }

    /// The settings in force, after another look at the file. Blocking.
    pub fn now(&self) -> Reading {
        let stamp = Stamp::of(&self.path());
        let before = self.last();
        if before.stamp == stamp {
            return before;
        }
        let (settings, diagnostics) = Settings::load(&self.config);
        // Settings without their rules are no valid ones to keep.
        let reading = if diagnostics.is_empty() || !before.settings.unread.is_empty() {
            Reading::first(settings, &diagnostics, stamp)
        } else {
            let mistakes = diagnostics.iter().map(|mistake| mistake.with_value_in_use(BEFORE));
            Reading { settings: before.settings, mistakes: mistakes.collect(), stamp }
        };
        for mistake in &reading.mistakes {
            tracing::warn!("{mistake}");
        }
        *self.lock() = reading.clone();
        reading
    }

    fn lock(&self) -> MutexGuard<'_, Reading> {
        // A reading is replaced whole, so it is whole also after a panic.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn file_in(config: &Path) -> PathBuf {
    config.join("config.toml")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::catalogue::Names;

    fn written(text: &str) -> (tempfile::TempDir, SettingsFile) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.toml"), text).unwrap();
        let file = SettingsFile::open(dir.path());
        (dir, file)
    }

    #[test]
    fn a_file_that_is_written_replaced_or_deleted_is_read_again() {
        let (dir, file) = written("model = 'a/b'\n");
        let model = || file.now().settings.model.clone();
        assert_eq!(model().as_ref().and_then(Names::first), Some("a/b"));
        std::fs::write(file.path(), "model = 'a/c'\n").unwrap();
        assert_eq!(model().as_ref().and_then(Names::first), Some("a/c"));
        let other = dir.path().join("other");
        std::fs::write(&other, "model = 'a/d'\n").unwrap();
        std::fs::rename(&other, file.path()).unwrap();
        assert_eq!(model().as_ref().and_then(Names::first), Some("a/d"));
        std::fs::remove_file(file.path()).unwrap();
        assert_eq!(model(), None);
    }

    #[test]
    fn a_mistake_is_said_with_its_place_and_the_last_good_settings_stay_in_force() {
        let (_dir, file) = written("model = 'a/b'\n");
        std::fs::write(file.path(), "model = 'a/c'\nmodle = 1\n").unwrap();
        let reading = file.now();
        assert_eq!(reading.settings.model.as_ref().and_then(Names::first), Some("a/b"));
        let [mistake] = &reading.mistakes[..] else { panic!("{:?}", reading.mistakes) };
        assert!(
            mistake.text.contains("config.toml:2:1") && mistake.text.contains("stay in force"),
            "{mistake}"
        );
        assert_eq!(file.now().mistakes, reading.mistakes, "said until the file is right");
        std::fs::write(file.path(), "model = 'a/c'\n").unwrap();
        assert!(file.now().mistakes.is_empty());
        assert_eq!(file.last().settings.model.as_ref().and_then(Names::first), Some("a/c"));
    }

    #[test]
    fn rules_that_were_not_known_at_the_start_are_known_when_they_are_corrected() {
        let (_dir, file) = written("[[permissions.rule]]\naction = 'dney'\n");
        let [mistake] = &file.last().mistakes[..] else { panic!() };
        assert!(
            mistake.text.contains("is 'dney'") && mistake.text.contains("no Pod runs"),
            "{mistake}"
        );
        let corrected = "modle = 1\n[[permissions.rule]]\naction = 'deny'\n";
        std::fs::write(file.path(), corrected).unwrap();
        let Reading { settings, mistakes, .. } = file.now();
        assert_eq!((settings.unread.len(), settings.permissions.rule.len()), (0, 1));
        assert!(
            mistakes[0].text.contains("`modle`") && !mistakes[0].text.contains("no Pod"),
            "{mistakes:?}"
        );
        std::fs::write(file.path(), "[[permissions.rule]]\naction = 'dney'\n").unwrap();
        let Reading { settings, mistakes, .. } = file.now();
        assert_eq!(settings.permissions.rule.len(), 1, "the last valid rules stay");
        assert!(mistakes[0].text.contains("stay in force"), "{mistakes:?}");
    }

    #[test]
    fn a_file_that_did_not_change_is_not_read_again() {
        let (_dir, file) = written("model = 'a/b'\n");
        assert!(Arc::ptr_eq(&file.last().settings, &file.now().settings));
    }
}
