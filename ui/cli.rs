//! The command line: its arguments, and which part of the program each of them starts.

use crate::console;
use crate::headless::{self, Exit, Failure, Form, Unanswered, Work};
use crate::start::{self, Opening};
use crate::theme;
use crate::verb::{self, Dialogue, Verb, Way};
use args::{Args, Ask, Command, HostCommand};
use clap::{ArgMatches, FromArgMatches as _};
use install::Deletes;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use yoi::config::{
    Catalogue, Dirs, Keys, ModelContext, Settings, SettingsFile, Wire, WorkspaceSettings,
};

mod args;
mod auth;
mod commands;
mod doctor;
mod log;
mod install;
mod man;
mod mcp;
mod mesh;
mod mesh_audit;
mod mesh_machines;
mod models;
mod prompt;
mod screen;

#[cfg(test)]
pub use args::command;

/// The whole program.
pub fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    match words.next().as_deref().and_then(|word| word.to_str()) {
        // Started by a host for a command: no runtime, no argument parser.
        Some("__run") => return yoi::sandbox::helper_main(words),
        Some("__keep") => return yoi::sandbox::keeper_main(),
        Some("__enter") => return yoi::sandbox::enter_main(words),
        Some("__init") => return yoi::sandbox::init_main(),
        Some("__confine") => return yoi::sandbox::confine_main(),
        Some("__host") => return start::host_main(),
        _ => {}
    }
    yoi::llm::install_crypto();
    let request = match args::read(std::env::args_os().collect()) {
        Ok(matches) => Wanted::read(&matches),
        Err(error) => return args::refused(&error),
    };
    if request.is_host() {
        start::again_as_host();
    }
    let runtime =
        if request.is_dashboard() { start::dashboard_runtime() } else { start::runtime() };
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let hint = match error.kind() {
                std::io::ErrorKind::StorageFull => {
                    ": programs of yours hold all that the kernel lets you watch (fs.epoll.max_user_watches); end what the \
                     commands of pods started, or another program, then try again"
                }
                _ => "",
            };
            crate::console::err(&format!("yoi: cannot start: {error}{hint}"));
            return Exit::Failed.into();
        }
    };
    let exit = runtime.block_on(start_with(request));
    // A thread may still wait for the standard input, which need not ever end.
    runtime.shutdown_background();
    exit.into()
}

/// What the command line starts.
enum Wanted {
    Program(Box<Args>),
    Verb(&'static Verb, ArgMatches),
}

impl Wanted {
    /// Reads the arguments; a wrong command line ends the program with the usage.
    fn read(matches: &ArgMatches) -> Self {
        // A command of this program may have the name of a verb that no shell takes.
        let of_the_shell = |name| verb::find(name).filter(|verb| verb.ways.contains(&Way::Shell));
        match matches.subcommand().and_then(|(name, own)| Some((of_the_shell(name)?, own))) {
            Some((verb, own)) => Self::Verb(verb, own.clone()),
            None => match Args::from_arg_matches(matches) {
                Ok(args) => Self::Program(Box::new(args)),
                Err(error) => error.exit(),
            },
        }
    }

    /// Whether it is a host in the foreground.
    fn is_host(&self) -> bool {
        matches!(self, Self::Program(args) if args.serve)
    }

    /// Whether it is a dashboard whose host is another process.
    fn is_dashboard(&self) -> bool {
        let Self::Program(args) = self else { return false };
        args.command.is_none() && !args.serve && !args.inside && !args.without_a_screen()
    }
}

async fn start_with(wanted: Wanted) -> Exit {
    let result = match wanted {
        Wanted::Program(args) => return program(*args).await,
        Wanted::Verb(verb, matches) => one_verb(verb, &matches).await,
    };
    exit_of(result)
}

/// `yoi <verb>`.
async fn one_verb(verb: &Verb, matches: &ArgMatches) -> Result<(), Failure> {
    let opening = opening(None)?;
    let Some(dialogue) = dialogue(verb, matches).await? else { return Ok(()) };
    let work = Work {
        pod: matches.get_one(verb::SELECTED).cloned(),
        yes: matches.get_flag(verb::YES),
        ..Work::in_directory(opening.cwd.clone())
    };
    headless::one_verb(&opening, work, verb, dialogue).await
}

/// The dialogue of a verb of the shell; `None` if it has been carried out already.
async fn dialogue(verb: &Verb, matches: &ArgMatches) -> Result<Option<Box<dyn Dialogue>>, Failure> {
    let wrong = |error: clap::Error| Failure::usage(error.to_string());
    if verb.name != "send" {
        return verb.begin(matches).map(Some).map_err(wrong);
    }
    let send = verb::send::Send::from_arg_matches(matches).map_err(wrong)?;
    let input = prompt::joined(&send.text)?;
    if send.text != [verb::send::INPUT] {
        prompt::say_unread(&send.addressee);
    }
    match matches.get_one::<PathBuf>(args::SOCKET) {
        None => Ok(Some(Box::new(send.with(input)))),
        Some(socket) => {
            commands::send_to_socket(socket, &send.addressee, input).await.map(|()| None)
        }
    }
}

fn exit_of(result: Result<(), Failure>) -> Exit {
    match result {
        Ok(()) => Exit::Finished,
        Err(failure) => headless::say_last(&failure),
    }
}

async fn program(args: Args) -> Exit {
    // The doctor also works where the directories are broken.
    if let Some(Command::Doctor(wanted)) = args.command {
        return exit_of(doctor::doctor(wanted).await);
    }
    let opening = match opening(args.cwd.as_deref()) {
        Ok(opening) => opening,
        Err(failure) => return headless::say_last(&failure),
    };
    if let Some(theme) = &args.theme
        && let Err(unknown) = theme::must_exist(theme, Some(&opening.dirs.config.join("themes")))
    {
        return headless::say_last(&Failure::usage(unknown));
    }
    let model = match checked_model(&opening, args.model.clone()) {
        Ok(model) => model,
        Err(failure) => return headless::say_last(&failure),
    };
    let args = Args { model, ..args };
    let result = match args.command {
        Some(command) => carry_out(&opening, command).await,
        None if args.serve => headless::serve(&opening).await,
        None if args.without_a_screen() => return without_a_screen(&opening, args).await,
        None if !args.allow.is_empty() => {
            let text = "--allow is for -p, -c and --no-ui; on the screen you are asked";
            Err(Failure::usage(text))
        }
        None => screen::show(&opening, args).await,
    };
    exit_of(result)
}

fn opening(cwd: Option<&Path>) -> Result<Opening, Failure> {
    let env = start::environment();
    let dirs = Dirs::open(&env, start::usual().as_ref())
        .map_err(|e| Failure::new(Exit::Failed, e.to_string()))?;
    yoi::trace::start(&env, Some(&dirs.state));
    let cwd = match cwd {
        Some(dir) => absolute(dir)?,
        None => working_directory()?,
    };
    Ok(Opening { dirs, env, cwd })
}

/// The working directory. One that was deleted has a name that says so: most commands need none,
/// and those that do are refused with that name.
fn working_directory() -> Result<PathBuf, Failure> {
    let found = absolute(Path::new("."));
    found.or_else(|failure| std::fs::read_link("/proc/self/cwd").map_err(|_| failure))
}

fn absolute(dir: &Path) -> Result<PathBuf, Failure> {
    let found = dir.canonicalize();
    let found = found.map_err(|e| Failure::usage(format!("{}: {e}", dir.display())))?;
    if !found.is_dir() {
        return Err(Failure::usage(format!("{} is not a directory", dir.display())));
    }
    Ok(found)
}

/// The model of the command line; one that no Pod could use is a wrong command line.
fn checked_model(opening: &Opening, model: Option<String>) -> Result<Option<String>, Failure> {
    let Some(model) = resolved_model(model) else { return Ok(None) };
    let file = SettingsFile::open(&opening.dirs.config).last();
    let settings = Settings::clone(&file.settings);
    let (workspace, keys) = (WorkspaceSettings::default(), Keys::at(&opening.dirs.config));
    let (env, cwd) = (&opening.env, opening.cwd.as_path());
    let (workspace, keys) = (&workspace, &keys);
    let context = ModelContext { settings: &settings, workspace, env, host: env, keys, cwd };
    let found = yoi::config::resolve(&Catalogue::with(&settings), &model, &context);
    let (found, _) = found.map_err(|error| Failure::usage(error.with_mistakes(&file.mistakes)))?;
    let script = (found.wire == Wire::Rehearsal).then_some(found.model);
    let file = script.filter(|script| !script.starts_with('@'));
    match file.filter(|file| !Path::new(file).is_file()) {
        Some(file) => Err(Failure::usage(format!("there is no script {file}"))),
        None => Ok(Some(model)),
    }
}

/// A script given by a relative path is resolved in this directory, not in that of the host.
fn resolved_model(model: Option<String>) -> Option<String> {
    let model = model?;
    let script = model.strip_prefix("rehearsal:").map(Path::new);
    match script.and_then(|script| script.canonicalize().ok()) {
        Some(path) => Some(format!("rehearsal:{}", path.display())),
        None => Some(model),
    }
}

async fn without_a_screen(opening: &Opening, args: Args) -> Exit {
    if args.prompt.is_some() && args.pod.is_none() && !opening.cwd.is_dir() {
        let text =
            "the working directory was deleted: change to another one, or name one with --cwd";
        return headless::say_last(&Failure::usage(text));
    }
    let form = match form(args.json, args.raw) {
        Ok(form) => form,
        Err(failure) => return headless::say_last(&failure),
    };
    let unanswered = match args.unattended {
        Ask::Deny => Unanswered::End,
        Ask::Wait => Unanswered::Wait,
    };
    let prompt = match args.prompt.as_deref().map(prompt::whole).transpose() {
        Ok(prompt) => prompt,
        Err(failure) => return headless::say_last(&failure),
    };
    if prompt.is_none() {
        args.verbs
            .iter()
            .filter_map(|line| verb::send::addressee(line))
            .for_each(|pod| prompt::say_unread(pod.as_str()));
    }
    let work = Work {
        verbs: args.verbs,
        prompt,
        pod: args.pod,
        keep: args.keep,
        model: args.model,
        effort: args.effort,
        cwd: opening.cwd.clone(),
        form,
        unanswered,
        allow: args.allow,
        yes: args.yes,
    };
    headless::run(opening, work).await
}

async fn carry_out(opening: &Opening, command: Command) -> Result<(), Failure> {
    match command {
        Command::Ls { all, json } => commands::ls(opening, all, json).await,
        Command::Log { pod, json, raw } => log::log(opening, &pod, form(json, raw)?).await,
        Command::Host { command: None } => commands::host(opening).await,
        Command::Host { command: Some(HostCommand::Stop { yes }) } => {
            commands::stop_host(opening, yes).await
        }
        Command::Mesh { command } => mesh::carry_out(opening, command).await,
        Command::Mcp(wanted) => mcp::carry_out(opening, wanted).await,
        Command::Doctor(wanted) => doctor::doctor(wanted).await,
        Command::Auth { provider: None, .. } => auth::list(opening),
        Command::Auth { provider: Some(provider), remove: true } => {
            auth::remove(opening, &provider)
        }
        Command::Models { text, json } => models::list(opening, &text, json),
        Command::Completions { shell } => {
            console::out(String::from_utf8_lossy(&install::completions(shell)).trim_end());
            Ok(())
        }
        Command::Install { to, plan } => install::install(opening, to, plan),
        Command::Uninstall { to, all, plan, yes } => {
            install::uninstall(opening, to, Deletes { all, plan, yes }).await
        }
        Command::Man => {
            let failed = |e: std::io::Error| Failure::new(Exit::Failed, e.to_string());
            console::out(man::page().map_err(failed)?.trim_end());
            Ok(())
        }
        Command::Auth { provider: Some(provider), remove: false } => auth::set(opening, &provider),
    }
}

/// How text is printed. Committed bytes may hold escape sequences, so a terminal never gets them.
fn form(json: bool, raw: bool) -> Result<Form, Failure> {
    match (json, raw) {
        (true, _) => Ok(Form::Json),
        (false, false) => Ok(Form::Plain),
        (false, true) if console::out_is_terminal() => {
            let text = "--raw is for a pipe or a file: send the output to one, or leave it out";
            Err(Failure::usage(text))
        }
        (false, true) => Ok(Form::Raw),
    }
}
