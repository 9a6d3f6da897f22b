//! The options of the dashboard, and its state before it meets a host.

use crate::screen::app::{App, Chosen, Clipboard, Looks, ScreenState, Setup};
use crate::screen::keys;
use crate::screen::notice::Kind;
use crate::screen::pane::glyph::Glyphs;
use crate::screen::run::own_files::brief;
use crate::screen::run::saved::ScreenFiles;
use crate::theme::{self, Ground, Theme};
use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use yoi::client::{Client, Events};
use yoi::protocol::{Effort, PodName, now_ms};

/// Connects to a host after the first one ended; `None` if none runs and none was to be started.
/// A dashboard without it ends with its host.
pub type Reconnect = Box<
    dyn Fn(Find) -> Pin<Box<dyn Future<Output = anyhow::Result<Option<(Client, Events)>>> + Send>>
        + Send
        + Sync,
>;

/// Which host to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// A running one.
    Running,
    /// A running one, or else a new one.
    OrStart,
}

/// The options of the dashboard.
#[derive(Default)]
pub struct Options {
    /// Absolute; the working directory of new Pods.
    pub cwd: PathBuf,
    /// The root of its workspace.
    pub workspace: PathBuf,
    /// Why a Pod may not write in it; `None` when it may.
    pub read_only: Option<String>,
    /// The model of new Pods, if the person chose one.
    pub model: Option<String>,
    /// The environment offered to Pods; it also tells what the terminal can show.
    pub env: BTreeMap<String, String>,
    /// The theme that the command line names.
    pub theme: Option<String>,
    /// The theme and the keymap of the settings.
    pub usual: Chosen,
    /// The settings want neither the bell nor notifications of the terminal.
    pub silent: bool,
    /// Where the screen is kept.
    pub screen: Option<ScreenFiles>,
    /// Where the keys come from, as the settings say.
    pub keymap: keys::Source,
    /// The directory of `keymap.toml` and `themes/`.
    pub config_dir: Option<PathBuf>,
    /// The directory for copies that are too long for the clipboard.
    pub copies: Option<PathBuf>,
    /// The Pod to show first.
    pub pod: Option<PodName>,
    /// The message that is sent as the screen opens.
    pub message: Option<String>,
    /// Models that complete after `:model`.
    pub models: Vec<(String, String)>,
    /// Providers that complete after `:connect`.
    pub providers: Vec<String>,
    /// The effort of new Pods, if the person chose one.
    pub effort: Option<Effort>,
}

/// A dashboard that has read its files and waits for a host.
pub struct Ready {
    pub(super) options: Options,
    pub(super) app: App,
    /// The screen as the last one left it.
    pub(super) saved: ScreenState,
}

impl Ready {
    /// Reads the files of the screen; those that are damaged or missing are said in notices.
    pub fn new(options: Options) -> Self {
        let (app, saved) = open(&options);
        Self { options, app, saved }
    }

    /// Adds a notice, such as that the host runs inside this process.
    pub fn say(&mut self, notice: String) {
        self.app.notices.say(Kind::Info, notice, now_ms());
    }
}

/// The app before the first event, with notices about problems in its files, and what the last screen
/// kept.
fn open(options: &Options) -> (App, ScreenState) {
    let env = |name: &str| options.env.get(name).cloned();
    let themes = options.config_dir.as_ref().map(|dir| dir.join("themes"));
    let usual = options.usual.theme.as_deref();
    let files = options.screen.as_ref();
    let (saved, damaged) = files.map(ScreenFiles::screen).unwrap_or_default();
    let (chosen, lost) = files.map(|files| files.chosen(&options.usual)).unwrap_or_default();
    let wanted = theme_name(options.theme.as_deref(), chosen.theme.as_deref(), usual);
    let over = theme::over(wanted, Ground::default());
    let (theme, wrong_theme) = Theme::load(over, themes.as_deref());
    let config = options.config_dir.as_deref();
    let wrong_theme = brief(wrong_theme, config);
    let mut diagnostics = wrong_theme.clone();
    diagnostics.extend(damaged.into_iter().chain(lost));
    let source = match &chosen.keymap {
        Some(name) => options.keymap.over(name),
        None => options.keymap.clone(),
    };
    let keys::Loaded { keymap, wrong, .. } = source.load();
    let wrong = brief(wrong, config);
    diagnostics.extend(wrong.iter().cloned());
    let setup = Setup {
        cwd: options.cwd.clone(),
        workspace: options.workspace.clone(),
        env: options.env.clone(),
        models: options.models.clone(),
        providers: options.providers.clone(),
        effort: options.effort,
        themes: Theme::names(themes.as_deref()),
        zone: Some(jiff::tz::TimeZone::system()),
        glyphs: Glyphs::detect(env),
        clipboard: Clipboard::of_screen(env),
        reconnects: false,
        read_only: options.read_only.clone(),
        silent: options.silent,
    };
    let mut app = App::new(setup, keymap, theme, options.pod.clone());
    app.model.clone_from(&options.model);
    app.first_message.clone_from(&options.message);
    app.looks = Looks {
        theme: wanted.to_owned(),
        wrong_theme,
        keymap: source.name,
        wrong_keymap: wrong,
        chosen,
        ..Looks::default()
    };
    app.restore_screen(saved.clone());
    let now = now_ms();
    for diagnostic in diagnostics {
        app.notices.say(Kind::Warned, diagnostic, now);
    }
    (app, saved)
}

/// The theme that is loaded: that of the command line, of the verb on an earlier screen, of the settings.
fn theme_name<'a>(
    command_line: Option<&'a str>,
    chosen: Option<&'a str>,
    settings: Option<&'a str>,
) -> &'a str {
    command_line.or(chosen).or(settings).unwrap_or(theme::AUTO)
}

#[cfg(test)]
mod tests {
    use super::theme_name;

    #[test]
    fn the_theme_is_that_of_the_command_line_else_the_chosen_one_else_that_of_the_settings() {
        assert_eq!(theme_name(Some("a"), Some("b"), Some("c")), "a");
        assert_eq!(theme_name(None, Some("b"), Some("c")), "b");
        assert_eq!(theme_name(None, None, Some("c")), "c");
        assert_eq!(theme_name(None, None, None), "auto");
    }
}
