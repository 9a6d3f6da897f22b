//! What the dashboard is opened with, and the app that follows from it.

use crate::app::{App, Setup};
use crate::keys;
use crate::notice::Kind;
use crate::pane::glyph::Glyphs;
use crate::theme::Theme;
use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use yoi::client::{Client, Events};
use yoi::config::Workspace;
use yoi::protocol::{PodName, now_ms};

/// Finds the host again after it ended; `None` when none runs and none was to be started.
pub type Reconnect = Box<
    dyn Fn(Find) -> Pin<Box<dyn Future<Output = anyhow::Result<Option<(Client, Events)>>> + Send>>
        + Send
        + Sync,
>;

/// Which host is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// One that runs already.
    Running,
    /// That one, or else a new one.
    OrStart,
}

/// Sentences that may be said once the first frame stands, such as which models answer nearby.
pub type Offers = Pin<Box<dyn Future<Output = Vec<String>> + Send>>;

/// What the dashboard is opened with.
#[derive(Default)]
pub struct Options {
    /// Absolute; the working directory of new Pods.
    pub cwd: PathBuf,
    /// The model of new Pods, when a person chose one.
    pub model: Option<String>,
    /// The environment offered to Pods; also says what the terminal can show.
    pub env: BTreeMap<String, String>,
    /// The theme to begin with; `None` = the default.
    pub theme: Option<String>,
    /// The key map that the settings name; `None` = `keymap.toml`, if there is one.
    pub keymap: Option<PathBuf>,
    /// Where `keymap.toml` and `themes/` are looked for.
    pub config_dir: Option<PathBuf>,
    /// Where a copy goes that is too long for the clipboard.
    pub copies: Option<PathBuf>,
    /// The Pod to begin with.
    pub pod: Option<PodName>,
    /// Models that complete after `:model`.
    pub models: Vec<String>,
    /// A sentence to begin with, such as that the host runs inside this process.
    pub notice: Option<String>,
    /// Called when the host ended and the person wants it back; without it the dashboard ends.
    pub reconnect: Option<Reconnect>,
    /// Looked for after the first frame.
    pub offers: Option<Offers>,
}

/// The app as it is before the first event, with what its files complain about.
pub fn open(options: &Options) -> App {
    let env = |name: &str| options.env.get(name).cloned();
    let themes = options.config_dir.as_ref().map(|dir| dir.join("themes"));
    let wanted = options.theme.as_deref().unwrap_or("night");
    let (theme, mut diagnostics) = Theme::load(wanted, themes.as_deref());
    let mut keymap = keys::default_keymap();
    let own = || options.config_dir.as_ref().map(|dir| dir.join("keymap.toml"));
    if let Some(file) = options.keymap.clone().or_else(own) {
        let name = file.display().to_string();
        match std::fs::read_to_string(&file) {
            Ok(text) => {
                let problems = keys::read(&mut keymap, &name, &text);
                diagnostics.extend(problems.iter().map(ToString::to_string));
            }
            Err(error)
                if error.kind() == std::io::ErrorKind::NotFound && options.keymap.is_none() => {}
            Err(error) => diagnostics.push(format!("{name}: {error}")),
        }
    }
    let setup = Setup {
        cwd: options.cwd.clone(),
        workspace: Workspace::of(&options.cwd, &options.env)
            .map_or_else(|_| options.cwd.clone(), |workspace| workspace.root),
        env: options.env.clone(),
        models: options.models.clone(),
        themes: Theme::names(themes.as_deref()),
        zone: Some(jiff::tz::TimeZone::system()),
        glyphs: Glyphs::detect(env),
        reconnects: options.reconnect.is_some(),
    };
    let mut app = App::new(setup, keymap, theme, options.pod.clone());
    app.model.clone_from(&options.model);
    let now = now_ms();
    for diagnostic in diagnostics {
        app.notices.say(Kind::Warned, diagnostic, now);
    }
    if let Some(notice) = &options.notice {
        app.notices.say(Kind::Info, notice.clone(), now);
    }
    app
}
