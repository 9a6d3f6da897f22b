//! Notices that the person's own files may have changed: themes and keymaps.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use yoi::disk::Changes;

/// How long the files have to stay as they are before they are read: an editor writes in several steps.
const QUIET: Duration = Duration::from_millis(50);

/// A watch on the directories of the files.
pub struct OwnFiles {
    config: PathBuf,
    /// The keymap that the settings name.
    keymap: Option<PathBuf>,
    changes: Changes,
    /// A change was reported, and [`OwnFiles::changed`] has not resolved since.
    reported: bool,
}

impl OwnFiles {
    /// Watches from now on.
    pub async fn watch(config: PathBuf, keymap: Option<PathBuf>) -> io::Result<Self> {
        let changes = changes_of(&config, keymap.as_deref()).await?;
        Ok(Self { config, keymap, changes, reported: false })
    }

    /// Resolves when the files may have changed and are not being written. Cancel-safe.
    pub async fn changed(&mut self) -> io::Result<()> {
        if !self.reported {
            self.changes.next().await?;
            self.reported = true;
        }
        while let Ok(more) = tokio::time::timeout(QUIET, self.changes.next()).await {
            more?;
        }
        // A directory may have come or gone. It is watched before the files are read, so that no change is missed.
        self.changes = changes_of(&self.config, self.keymap.as_deref()).await?;
        self.reported = false;
        Ok(())
    }
}

/// Sentences about the files, without the directory in which all of them lie: a notice has one row.
pub fn brief(sentences: Vec<String>, config: Option<&Path>) -> Vec<String> {
    let Some(before) = config.map(|config| format!("{}/", config.display())) else {
        return sentences;
    };
    let cut = |text: String| text.strip_prefix(&before).map_or(text.clone(), str::to_owned);
    sentences.into_iter().map(cut).collect()
}

async fn changes_of(config: &Path, keymap: Option<&Path>) -> io::Result<Changes> {
    let (config, keymap) = (config.to_owned(), keymap.map(Path::to_owned));
    // A file system may take its time.
    let dirs = tokio::task::spawn_blocking(move || directories(&config, keymap.as_deref())).await?;
    Changes::of_files(dirs.iter().map(PathBuf::as_path))
}

/// The directories in which the files lie, and those to which their links lead.
fn directories(config: &Path, keymap: Option<&Path>) -> BTreeSet<PathBuf> {
    let themes = config.join("themes");
    let entries = std::fs::read_dir(&themes).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path()).chain([config.join("keymap.toml")]);
    let files: Vec<PathBuf> = files.chain(keymap.map(Path::to_owned)).collect();
    let linked = files.iter().filter_map(|file| std::fs::canonicalize(file).ok());
    let of = |file: &PathBuf| file.parent().map(Path::to_owned);
    let mut dirs: BTreeSet<PathBuf> = linked.filter_map(|file| of(&file)).collect();
    dirs.extend(files.iter().filter_map(of));
    dirs.extend([config.to_owned(), themes]);
    if !config.exists() {
        dirs.extend(config.parent().map(Path::to_owned));
    }
    dirs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_is_written_moved_or_linked_is_noticed_also_in_a_new_directory() {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let (config, elsewhere) = (temp.path().join("config"), temp.path().join("dotfiles"));
        std::fs::create_dir(&elsewhere).expect("made");
        let mut files = OwnFiles::watch(config.clone(), None).await.expect("a watch");
        let theme = config.join("themes/night.toml");
        std::fs::create_dir_all(config.join("themes")).expect("made");
        files.changed().await.expect("noticed");
        std::fs::write(&theme, "[roles]\n").expect("written");
        files.changed().await.expect("noticed");
        std::fs::write(&theme, "[roles]\naccent = \"red\"\n").expect("written in place");
        files.changed().await.expect("noticed");
        let linked = elsewhere.join("keys.toml");
        std::fs::write(&linked, "").expect("written");
        std::os::unix::fs::symlink(&linked, config.join("keymap.toml")).expect("linked");
        files.changed().await.expect("noticed");
        std::fs::write(&linked, "[tree]\n").expect("written behind the link");
        files.changed().await.expect("noticed");
        std::fs::remove_file(&theme).expect("removed");
        files.changed().await.expect("noticed");
    }
}
