//! The files in which a screen keeps what outlives it: read when a dashboard opens, written by a thread
//! of their own while it changes, and when it is left.

use crate::screen::app::ScreenState;
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
/// A file beyond this size was not written by this program, in bytes.
const LARGEST: u64 = 32 * 1024 * 1024;
/// How long leaving waits for the last write.
const LAST: Duration = Duration::from_secs(2);

/// Where a screen is kept.
#[derive(Clone, Debug)]
pub struct ScreenFiles {
    /// One for each workspace.
    screen: PathBuf,
    /// One for all screens.
    theme: PathBuf,
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

/// The theme that a person chose with the verb.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ChosenTheme {
    theme: String,
    /// The theme of the settings at that time. Settings that were changed since count.
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
        Self { screen: dir.join(format!("{name}.json")), theme: dir.join("theme.json") }
    }

    /// What the last screen kept. A file that cannot be read is kept aside, and the sentence says so.
    pub fn screen(&self) -> (ScreenState, Option<String>) {
        or_aside(&self.screen)
    }

    /// The theme that was chosen on a screen, unless the settings were changed since.
    pub fn theme(&self, settings: Option<&str>) -> (Option<String>, Option<String>) {
        let (chosen, notice): (Option<ChosenTheme>, _) = or_aside(&self.theme);
        let chosen = chosen.filter(|chosen| chosen.settings.as_deref() == settings);
        (chosen.map(|chosen| chosen.theme), notice)
    }
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
    let mut file = match File::open(path) {
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
    theme: Option<String>,
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
        settings: Option<String>,
        failed: impl FnOnce(String) + Send + 'static,
    ) -> Option<Self> {
        let (snapshots, waiting) = mpsc::channel(1);
        let (end, ended) = oneshot::channel();
        let mut writer = Writer { files, base, theme: None, settings };
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
    pub fn save(&self, screen: ScreenState, theme: Option<String>) -> bool {
        self.snapshots.try_send(Snapshot { screen, theme, last: false }).is_ok()
    }

    /// Writes the last state, and waits for that.
    pub async fn finish(self, screen: ScreenState, theme: Option<String>) {
        let Self { snapshots, ended } = self;
        let writing = async {
            // A thread that has ended writes nothing more.
            let _ = snapshots.send(Snapshot { screen, theme, last: true }).await;
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
    theme: Option<String>,
    settings: Option<String>,
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
        let Snapshot { screen, theme, last } = snapshot;
        if screen != self.base || last {
            self.write_screen(&screen.clone().written_at(now_ms()))?;
            self.base = screen;
        }
        if theme != self.theme
            && let Some(theme) = theme
        {
            let content = ChosenTheme { theme: theme.clone(), settings: self.settings.clone() };
            write(&self.files.theme, content)?;
            self.theme = Some(theme);
        }
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
