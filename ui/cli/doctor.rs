//! `yoi doctor`: what works on this machine and what does not, each problem with what to do about it;
//! with `--report` also one file for a bug report. Every check has a time limit, and no file is created
//! but the report.

/// The findings, as text and as JSON.
mod finding;
/// The host of the data directory.
mod host;
/// Directories, sockets, limits and the sandbox of commands.
mod machine;
/// The server over which this machine reaches others.
mod machines;
/// MCP servers.
mod mcp;
/// Models, keys and local servers.
mod model;
/// The file for a bug report.
mod report;
/// The terminal, and tmux between it and the program.
mod terminal;
/// The files of workspaces that the person trusts.
mod trust;

use crate::headless::{Exit, Failure};
use crate::screen::keys::{self, Keymap};
use crate::start;
use crate::theme::{self, Depth, Ground, Theme};
use finding::{Finding, Page};
use std::path::{Path, PathBuf};
use std::time::Duration;
use yoi::config::dirs::Dirs;
use yoi::config::keys::register_secrets;
use yoi::config::settings::IN_USE;
use yoi::config::{Keys, Settings, Workspace};

/// How long the program's own files may take to be read.
const FILES: Duration = Duration::from_secs(1);

/// The arguments of `yoi doctor`.
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// Print the findings as one JSON object
    #[arg(long)]
    json: bool,
    /// Also ask the provider of the model for the list of its models, which costs nothing
    #[arg(long)]
    online: bool,
    /// Write one file for a bug report, without secrets and messages; if you name no file, it is
    /// written to the state directory
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    report: Option<Option<PathBuf>>,
}

/// Prints what this machine offers. It fails when something is broken.
pub async fn doctor(wanted: Doctor) -> Result<(), Failure> {
    let env = start::environment();
    yoi::trace::start(&env, None);
    let dirs = match Dirs::open(&env, start::usual().as_ref()) {
        Ok(dirs) => dirs,
        Err(error) => return without_directories(&wanted, &error),
    };
    let OwnFiles { settings, keymap, mut findings } = own_files(&dirs).await;
    register_secrets(&env, &settings);
    let keys = Keys::at(&dirs.config);
    let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let terminal = terminal::findings(&env, &keymap).await;
    let (model, directories, sockets, walls, (host, reached), machines) = tokio::join!(
        model::findings(&settings, &env, &keys, &cwd),
        machine::directories(&dirs),
        machine::sockets(&dirs),
        machine::walls(),
        host::finding(&dirs.data),
        machines::findings(&dirs.state),
    );
    let mut all = program();
    all.append(&mut findings);
    all.push(trust::finding(reached.as_ref()).await);
    all.extend(terminal);
    all.extend(model);
    if wanted.online {
        all.extend(model::online(&settings, &env, &keys, &cwd, &dirs.config).await);
    }
    let workspace = Workspace::root_of(&cwd, &env);
    all.extend(mcp::findings(&settings, &env, &workspace, reached.as_ref()).await);
    all.extend(walls);
    all.extend([host, sockets]);
    all.extend(machines);
    all.extend(machines::clock(reached.as_ref()).await);
    all.extend(directories);
    all.extend(machine::limits());
    let page = Page::new(all);
    print(&page, wanted.json);
    if let Some(file) = wanted.report {
        let path = report::write(&page.text(), &dirs, &env, reached.as_ref(), file).await?;
        crate::console::err(&format!("wrote {}: look at it before you send it", path.display()));
    }
    verdict(&page)
}

/// The findings when the directories of the program are unknown: no other check is possible.
fn without_directories(wanted: &Doctor, error: &dyn std::error::Error) -> Result<(), Failure> {
    let mut all = program();
    let way_out = "set HOME, or YOI_HOME, to an absolute path";
    all.push(Finding::broken("disk", "directories", error.to_string(), way_out));
    let page = Page::new(all);
    print(&page, wanted.json);
    verdict(&page)
}

fn print(page: &Page, json: bool) {
    let text = if json { page.json() } else { page.text() };
    crate::console::out(text.trim_end());
}

fn verdict(page: &Page) -> Result<(), Failure> {
    match page.is_broken() {
        true => Err(Failure::new(Exit::Failed, "")),
        false => Ok(()),
    }
}

fn program() -> Vec<Finding> {
    let version = format!("{} ({})", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let mut found = vec![Finding::ok("program", "version", version)];
    // Linux appends this to the link of a program whose file was replaced.
    let replaced = std::env::current_exe().is_ok_and(|path| path.ends_with(" (deleted)"));
    if replaced {
        let text = "the file of this program was replaced since it started";
        found.push(Finding::warning("program", "file", text, "start it again"));
    }
    found
}

/// The person's own files as they were read, and the problems in them.
struct OwnFiles {
    settings: Settings,
    keymap: Keymap,
    findings: Vec<Finding>,
}

/// Reads settings, keymap and themes, and lists the problems in them.
async fn own_files(dirs: &Dirs) -> OwnFiles {
    let config = dirs.config.clone();
    let read = move || read_own_files(&config);
    within(FILES, read).await.unwrap_or_else(|| {
        let text = format!("{}: the file system does not answer", dirs.config.display());
        let way_out = "mend the mount, or set YOI_CONFIG_DIR";
        let findings = vec![Finding::broken("settings", "files", text, way_out)];
        OwnFiles { settings: Settings::default(), keymap: keys::default_keymap(), findings }
    })
}

fn read_own_files(config: &Path) -> OwnFiles {
    let (settings, diagnostics) = Settings::load(config);
    let unread = settings.unread.iter().map(|text| {
        let way_out = "mend it; a host that starts now runs no Pod, because it does not know the rules; one that runs keeps the former settings";
        Finding::broken("settings", "settings", text.clone(), way_out)
    });
    let said = diagnostics.iter().map(ToString::to_string);
    let mut said: Vec<String> = said.filter(|said| !settings.unread.contains(said)).collect();
    let source = keys::Source::of_settings(settings.ui.keymap.as_deref(), Some(config));
    let keys::Loaded { keymap, hidden, wrong } = source.load();
    said.extend(wrong);
    let theme = settings.ui.theme.as_deref().unwrap_or(theme::AUTO);
    let theme = theme::over(theme, Ground::default());
    let themes = config.join("themes");
    said.extend(Theme::load(theme, Some(&themes)).1);
    // The themes that the person may choose later are checked, too.
    let others = Theme::names(Some(&themes)).into_iter();
    let others = others.filter(|name| ![theme, theme::AUTO].contains(&name.as_str()));
    said.extend(others.flat_map(|name| Theme::load_for(&name, Some(&themes), Depth::True).1));
    let way_out = format!("correct it; {IN_USE}");
    let warning = |text| Finding::warning("settings", "settings", text, way_out.clone());
    let mut found: Vec<Finding> = unread.chain(said.into_iter().map(warning)).collect();
    if found.is_empty() {
        let text = format!("{}, read without a complaint", config.display());
        found.push(Finding::ok("settings", "settings", text));
    }
    found.extend(hidden_keys(&hidden));
    OwnFiles { settings, keymap, findings: found }
}

/// The keys whose binding for everywhere has no effect in a place that binds them to something else.
fn hidden_keys(hidden: &keys::Hidden) -> Vec<Finding> {
    let way_out = "bind the key in that place, too, or choose another one";
    let own =
        hidden.own.iter().map(|text| Finding::warning("settings", "key", text.clone(), way_out));
    let by_own = hidden.by_own.iter().map(|text| Finding::ok("settings", "key", text.clone()));
    own.chain(by_own).collect()
}

/// Runs `look` in a thread of its own and returns its result, or `None` when it takes longer than
/// `limit`. The thread is not ended: a file system may never answer it.
async fn within<T: Send + 'static>(
    limit: Duration,
    look: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    tokio::time::timeout(limit, tokio::task::spawn_blocking(look)).await.ok()?.ok()
}
