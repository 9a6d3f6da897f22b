//! Starts the dashboard: the host that it shows, and the sentences printed when it is left.

use crate::cli::args::Args;
use crate::console;
use crate::headless::{Exit, Failure, causes};
use crate::screen::app::{Chosen, ExitReason};
use crate::screen::keys;
use crate::screen::run::{self, Find, Options, Ready, Reconnect, ScreenFiles};
use crate::start::{self, Opening};
use crate::wording::model::facts;
use std::path::Path;
use yoi::client::{Client, ConnectError, Events};
use yoi::config::settings::Ui;
use yoi::config::{Access, Catalogue, Settings, Workspace};
use yoi::host::Host;
use yoi::protocol::ClientKind;

/// Shows the dashboard until it is left.
pub async fn show(opening: &Opening, args: Args) -> Result<(), Failure> {
    if args.json {
        return Err(Failure::usage("--json needs --no-ui, -p or -c"));
    }
    if !crate::console::is_interactive() {
        let message = "the dashboard needs a terminal: use --no-ui, or -p with a message";
        return Err(Failure::usage(message));
    }
    if opening.env.get("TERM").is_some_and(|term| term == "dumb") {
        let message = "the dashboard cannot be drawn with TERM=dumb: use --no-ui, or start yoi with the type of your terminal";
        return Err(Failure::usage(message));
    }
    // The screen is made ready while the host starts: neither waits for the other.
    let ready = async { Ready::new(options(opening, &args)) };
    let (reached, mut ready) = tokio::join!(reach(opening, args.inside), ready);
    let reached = match reached {
        Ok(reached) => reached,
        Err(error) => {
            replace_older(opening, error).await?;
            reach(opening, args.inside).await?
        }
    };
    if let Some(notice) = reached.notice {
        ready.say(notice);
    }
    let reconnect = reached.host.is_none().then(|| reconnect(opening));
    let ended = run::dashboard(reached.client, reached.events, ready, reconnect).await;
    if let Some(host) = reached.host {
        host.end().await;
    }
    left(ended?)
}

fn options(opening: &Opening, args: &Args) -> Options {
    // The host says which mistakes the file has.
    let (settings, _) = Settings::load(&opening.dirs.config);
    let found = Workspace::of(&opening.cwd, &opening.env).ok();
    let read_only = found.as_ref().and_then(|found| match &found.access {
        Access::Write => None,
        Access::ReadOnly(why) => Some(why.clone()),
    });
    let workspace = found.map_or_else(|| opening.cwd.clone(), |found| found.root);
    let screen = ScreenFiles::new(&opening.dirs.state, &opening.dirs.data, &workspace);
    let all = Catalogue::with(&settings);
    Options {
        cwd: opening.cwd.clone(),
        workspace,
        read_only,
        model: args.model.clone(),
        effort: args.effort,
        env: opening.env.clone(),
        theme: args.theme.clone(),
        silent: !settings.notify.terminal,
        usual: Chosen {
            theme: settings.ui.theme.clone(),
            keymap: settings.ui.keymap.as_ref().map(|name| name.display().to_string()),
        },
        screen: Some(screen),
        keymap: keymap(&settings.ui, &opening.dirs.config),
        config_dir: Some(opening.dirs.config.clone()),
        copies: Some(opening.dirs.state.join("copies")),
        pod: args.pod.clone(),
        message: args.message.clone(),
        models: models(&all),
        providers: all.providers.keys().cloned().collect(),
    }
}

/// Every model that is known by name, with what is known of it.
fn models(all: &Catalogue) -> Vec<(String, String)> {
    let facts = |spec: &str| all.models.get(spec).map(facts).unwrap_or_default();
    all.specs().into_iter().map(|spec| (spec.clone(), facts(&spec))).collect()
}

/// The keymap of the settings.
fn keymap(settings: &Ui, config: &Path) -> keys::Source {
    keys::Source::of_settings(settings.keymap.as_deref(), Some(config))
}

struct Reached {
    client: Client,
    events: Events,
    /// Set when this process is the host.
    host: Option<Host>,
    notice: Option<String>,
}

/// Connects to a host in the background, or to one in this process if `inside` is set or a background
/// host cannot be started.
async fn reach(opening: &Opening, inside: bool) -> anyhow::Result<Reached> {
    let notice = if inside {
        if let Some((client, events)) = start::attach(opening, ClientKind::Lasting).await? {
            let notice = Some("a host runs already; --inside was not needed".to_owned());
            return Ok(Reached { client, events, host: None, notice });
        }
        "the host runs inside this screen: what runs is paused when you leave".to_owned()
    } else {
        match start::attach_or_start(opening, ClientKind::Lasting).await {
            Ok((client, events)) => {
                return Ok(Reached { client, events, host: None, notice: None });
            }
            Err(error) if error.downcast_ref::<ConnectError>().is_some() => {
                return Err(error);
            }
            Err(error) => {
                let why = causes(&error);
                format!("no host in the background ({why}); it runs inside this screen")
            }
        }
    };
    let (host, client, events) = start::inside(opening).await?;
    Ok(Reached { client, events, host: Some(host), notice: Some(notice) })
}

/// Ends the host of an older program, if that is why none was reached and the person agrees.
async fn replace_older(opening: &Opening, error: anyhow::Error) -> Result<(), Failure> {
    let Some(ConnectError::OtherVersion(older)) = error.downcast_ref() else {
        return Err(error.into());
    };
    if !older.is_older() {
        return Err(error.into());
    }
    let process = older.pid.map(|pid| format!("process {pid}, ")).unwrap_or_default();
    let version = &older.version;
    console::err(&format!("a host of an older yoi runs here ({process}version {version})"));
    let paused = older.paused();
    console::err(&format!("stopping it {paused}; its Pods come back with the new host"));
    let failed = |error: std::io::Error| Failure::new(Exit::Failed, error.to_string());
    let agrees = run::enter_or_esc("stops it and starts a new one", "leaves");
    let agrees = agrees.await.map_err(failed)?;
    console::err("");
    if !agrees {
        return Err(error.into());
    }
    start::stop(opening, |_| Ok(true)).await?;
    Ok(())
}

fn reconnect(opening: &Opening) -> Reconnect {
    let opening = opening.clone();
    Box::new(move |find| {
        let opening = opening.clone();
        Box::pin(async move {
            match find {
                Find::Running => start::attach(&opening, ClientKind::Lasting).await,
                Find::OrStart => {
                    start::attach_or_start(&opening, ClientKind::Lasting).await.map(Some)
                }
            }
        })
    })
}

fn left(reason: ExitReason) -> Result<(), Failure> {
    match reason {
        ExitReason::Quit { farewell } => {
            for sentence in farewell {
                crate::console::err(&sentence);
            }
            Ok(())
        }
        ExitReason::HostEnded => {
            Err(Failure::new(Exit::Failed, "the host ended: `yoi` starts it again"))
        }
        ExitReason::Signal(number) => {
            let number = u8::try_from(number).unwrap_or(15);
            Err(Failure::new(Exit::Signal(number), String::new()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_choose_the_keymap() {
        let settings = Ui { keymap: Some("mine.toml".into()), ..Ui::default() };
        assert_eq!(keymap(&settings, Path::new("/c")).file, Some("/c/mine.toml".into()));
        let elsewhere = Ui { keymap: Some("/k.toml".into()), ..Ui::default() };
        assert_eq!(keymap(&elsewhere, Path::new("/c")).file, Some("/k.toml".into()));
        let vim = Ui { keymap: Some("vim".into()), ..Ui::default() };
        assert_eq!(keymap(&vim, Path::new("/c")).name, "vim");
        let usual = keymap(&Ui::default(), Path::new("/c"));
        assert_eq!((usual.name.as_str(), usual.file), ("default", Some("/c/keymap.toml".into())));
    }
}
