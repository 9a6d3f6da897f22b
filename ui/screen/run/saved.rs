//! The files in which a screen keeps what outlives it: read when a dashboard opens, written by a thread
//! of their own while it changes, and when it is left.

use crate::screen::app::{Chosen, ScreenState};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use yoi::disk;
use yoi::protocol::now_ms;

/// The form of the files; another one is kept aside.
const VERSION: u32 = 1;
/// A file beyond this size was not written by this program, in bytes: the drafts of this screen and of another one have room,
/// each byte spelled by six.
const LARGEST: u64 = 128 * 1024 * 1024;
/// How long leaving waits for the last write.
pub(super) const LAST: Duration = Duration::from_secs(2);

/// Where a screen is kept.
#[derive(Clone, Debug)]
pub struct ScreenFiles {
    /// One for each workspace.
    screen: PathBuf,
    /// For all screens, as the next one.
    theme: PathBuf,
    keymap: PathBuf,
}

/// A file as it is written.
#[derive(Serialize, Deserialize)]
struct Saved<T> {
    version: u32,
    content: T,
}

#[derive(Serialize, Deserialize)]
struct Version {
    version: u32,
}

/// What a person chose with a verb: a theme or a keymap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Choice {
    #[serde(alias = "theme")]
    name: String,
    /// What the settings named at that time. Settings that were changed since count.
    settings: Option<String>,
}

impl ScreenFiles {
    /// The files for the screens of a workspace over this data directory.
    pub fn new(state_dir: &Path, data_dir: &Path, workspace: &Path) -> Self {
        let mut hash = blake3::Hasher::new();
        for path in [data_dir, workspace] {
            hash.update(path.as_os_str().as_encoded_bytes()).update(&[0]);
        }
        let dir = state_dir.join("screens");
        let name = &hash.finalize().to_hex()[..16];
        Self {
            screen: dir.join(format!("{name}.json")),
            theme: dir.join("theme.json"),
            keymap: dir.join("keymap.json"),
        }
    }

    /// What the last screen kept. A file that cannot be read is kept aside, and the sentence says so.
    pub fn screen(&self) -> (ScreenState, Option<String>) {
        or_aside(&self.screen)
    }

    /// What was chosen on a screen, unless the settings were changed since, and why a choice cannot be read.
    pub fn chosen(&self, settings: &Chosen) -> (Chosen, Vec<String>) {
        let (theme, no_theme) = choice(&self.theme, &settings.theme);
        let (keymap, no_keymap) = choice(&self.keymap, &settings.keymap);
        (Chosen { theme, keymap }, no_theme.into_iter().chain(no_keymap).collect())
    }
}

fn choice(path: &Path, settings: &Option<String>) -> (Option<String>, Option<String>) {
    let (choice, notice): (Option<Choice>, _) = or_aside(path);
    (choice.filter(|choice| choice.settings == *settings).map(|choice| choice.name), notice)
}

fn or_aside<T: DeserializeOwned + Default>(path: &Path) -> (T, Option<String>) {
    match read(path) {
        Ok(content) => (content.unwrap_or_default(), None),
        Err(why) => (T::default(), Some(put_aside(path, &why))),
    }
}

/// The content of a file; `None` when there is none.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, String> {
    let mut text = String::new();
    let mut file = match disk::open_regular(path) {
        Ok(file) => file.take(LARGEST),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    file.read_to_string(&mut text).map_err(|error| error.to_string())?;
    let written: Version = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if written.version != VERSION {
        let version = written.version;
        return Err(format!("it has version {version}, and this program reads {VERSION}"));
    }
    let saved: Saved<T> = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    Ok(Some(saved.content))
}

/// Renames a file that cannot be read, in place of the last such one.
fn put_aside(path: &Path, why: &str) -> String {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".damaged");
    let (from, to) = (path.display(), Path::new(&aside).display());
    match std::fs::rename(path, &aside) {
        Ok(()) => format!("the saved screen cannot be read ({why}); it is kept as {to}"),
        Err(error) => format!("the saved screen {from} cannot be read ({why}), nor kept ({error})"),
    }
}

/// What there is to write.
struct Snapshot {
    screen: ScreenState,
    chosen: Chosen,
    /// The screen is left: its state is the one that the next screen shows.
    last: bool,
}

/// The thread that writes.
pub struct Saver {
    snapshots: mpsc::Sender<Snapshot>,
    ended: oneshot::Receiver<()>,
}

impl Saver {
    /// Starts the thread. `base` is what was read; a failure to write is given to `failed`, once.
    pub fn start(
        files: ScreenFiles,
        base: ScreenState,
        settings: Chosen,
        failed: impl FnOnce(String) + Send + 'static,
    ) -> Option<Self> {
        let (snapshots, waiting) = mpsc::channel(1);
        let (end, ended) = oneshot::channel();
        let mut writer = Writer { files, base, chosen: Chosen::default(), settings };
        let write = move || {
            writer.serve(waiting, failed);
            // A screen that has not waited for the last write is gone.
            let _ = end.send(());
        };
        // Without a thread the screen is not kept, and works.
        std::thread::Builder::new().name("screen-state".into()).spawn(write).ok()?;
        Some(Self { snapshots, ended })
    }

    /// Writes in the background; `false` while an earlier state waits.
    pub fn save(&self, screen: ScreenState, chosen: Chosen) -> bool {
        self.snapshots.try_send(Snapshot { screen, chosen, last: false }).is_ok()
    }

    /// Writes the last state, and waits for that.
    pub async fn finish(self, screen: ScreenState, chosen: Chosen) {
        let Self { snapshots, ended } = self;
        let writing = async {
            // A thread that has ended writes nothing more.
            let _ = snapshots.send(Snapshot { screen, chosen, last: true }).await;
            drop(snapshots);
            let _ = ended.await;
        };
        if timeout(LAST, writing).await.is_err() {
            tracing::warn!("the state of the screen was not written within {LAST:?}");
        }
    }
}

struct Writer {
    files: ScreenFiles,
    /// The own state as it was read or written last.
    base: ScreenState,
    chosen: Chosen,
    settings: Chosen,
}

impl Writer {
    fn serve(
        &mut self,
        mut snapshots: mpsc::Receiver<Snapshot>,
        failed: impl FnOnce(String) + Send + 'static,
    ) {
        let mut failed = Some(failed);
        while let Some(snapshot) = snapshots.blocking_recv() {
            if let Err(why) = self.write(snapshot) {
                tracing::warn!(why, "cannot write the state of the screen");
                if let Some(failed) = failed.take() {
                    failed(format!("this screen will not be shown again: {why}"));
                }
            }
        }
    }

    fn write(&mut self, snapshot: Snapshot) -> Result<(), String> {
        let Snapshot { screen, chosen, last } = snapshot;
        if screen != self.base || last {
            self.write_screen(&screen.clone().written_at(now_ms()))?;
            self.base = screen;
        }
        let of =
            |path, settings: &Option<String>, before: &Option<String>, now: &Option<String>| {
                match now.clone().filter(|_| now != before) {
                    Some(name) => write(path, Choice { name, settings: settings.clone() }),
                    None => Ok(()),
                }
            };
        let (files, settings, before) = (&self.files, &self.settings, &self.chosen);
        of(&files.theme, &settings.theme, &before.theme, &chosen.theme)?;
        of(&files.keymap, &settings.keymap, &before.keymap, &chosen.keymap)?;
        self.chosen = chosen;
        Ok(())
    }

    /// Joins the own state with that of another screen, and writes both while no other screen does.
    fn write_screen(&self, screen: &ScreenState) -> Result<(), String> {
        let path = &self.files.screen;
        disk::private_dir(path.parent().unwrap_or(path)).map_err(|error| error.to_string())?;
        let lock = path.with_extension("lock");
        let lock = File::create(&lock).and_then(|file| file.lock().map(|()| file));
        let _lock = lock.map_err(|error| format!("cannot lock {}: {error}", path.display()))?;
        let found = read::<ScreenState>(path).unwrap_or_else(|why| {
            tracing::warn!("{}", put_aside(path, &why));
            None
        });
        let joined = match &found {
            Some(other) => screen.clone().merged(&self.base, other.clone()),
            None => screen.clone(),
        };
        if found.as_ref() == Some(&joined) {
            return Ok(());
        }
        write(path, joined)
    }
}

fn write<T: Serialize>(path: &Path, content: T) -> Result<(), String> {
    let saved = Saved { version: VERSION, content };
    let bytes = serde_json::to_vec(&saved).map_err(|error| error.to_string())?;
    disk::private_dir(path.parent().unwrap_or(path)).map_err(|error| error.to_string())?;
    disk::replace(path, &bytes, 0o600).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
