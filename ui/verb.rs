//! Every verb that a person can carry out, one file each and one list of all. The command line after `:`,
//! palette, keys, `-c`, `yoi <verb>`, `--no-ui`, help, completion, man page and `docs/verbs.md` read this list, and
//! all of them drive the same dialogues.
//!
//! A new verb is a file in `ui/verb/` and a line in [`LIST`].

pub mod effort;
pub mod words;
pub mod dialogue;
pub mod targets;
pub mod several;
pub mod line;
pub mod complete;
pub mod decision;
pub mod numbers;
pub mod running;
pub mod spell;
mod time_span;

mod allow;
mod answer;
mod block;
mod cancel;
mod compact;
mod connect;
mod deny;
mod explain;
mod fork;
mod help;
mod inbox;
mod jobs;
mod later;
mod keys;
mod lend;
mod mesh;
mod mcp;
mod model;
mod new;
mod notices;
mod notify;
mod open;
mod pause;
mod peer;
mod pin;
mod policy;
mod queue;
mod quit;
mod reclaim;
mod redraw;
pub mod restore;
pub mod resume;
mod rewind;
mod rm;
mod since;
pub mod send;
mod split;
mod stop;
mod theme;
mod keymap;
mod tour;
mod trace;
mod trust;
mod unpeer;
mod who;
mod worktree;
mod zoom;

pub use connect::KEY_IN_HISTORY;
pub use dialogue::{
    Action, Confirm, Dialogue, End, Known, Next, Pick, Reply, Request, Said, Unasked, VerbId, Why,
};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use yoi::protocol::{ClientKind, PodName};

/// All verbs, in the order of help.
pub static LIST: &[&Verb] = &[
    &new::VERB,
    &open::VERB,
    &send::VERB,
    &stop::VERB,
    &restore::VERB,
    &peer::VERB,
    &unpeer::VERB,
    &mesh::VERB,
    &block::VERB,
    &queue::VERB,
    &pause::VERB,
    &resume::VERB,
    &cancel::VERB,
    &compact::VERB,
    &rewind::VERB,
    &fork::VERB,
    &inbox::VERB,
    &later::VERB,
    &allow::VERB,
    &answer::VERB,
    &deny::VERB,
    &explain::VERB,
    &lend::VERB,
    &reclaim::VERB,
    &who::VERB,
    &since::VERB,
    &policy::VERB,
    &trust::VERB,
    &mcp::VERB,
    &jobs::VERB,
    &worktree::VERB,
    &connect::VERB,
    &model::VERB,
    &effort::VERB,
    &theme::VERB,
    &keymap::VERB,
    &rm::VERB,
    &pin::VERB,
    &split::VERB,
    &zoom::VERB,
    &notices::VERB,
    &notify::VERB,
    &trace::VERB,
    &tour::VERB,
    &redraw::VERB,
    &keys::VERB,
    &help::VERB,
    &quit::VERB,
];

/// A way through which a verb can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The command line of the dashboard, after `:`.
    Line,
    /// The palette and the other lists of the dashboard.
    Palette,
    /// A key of the keymap.
    Key,
    /// `yoi -c VERB`.
    Command,
    /// `yoi <verb>`.
    Shell,
    /// A line of standard input after `:`, with `--no-ui`.
    Input,
}

/// The ways of a verb that also works without a screen.
pub const EVERYWHERE: &[Way] =
    &[Way::Line, Way::Palette, Way::Key, Way::Command, Way::Shell, Way::Input];
/// The ways of a verb that is about a conversation, on the screen or in lines.
pub const CONVERSATION: &[Way] = &[Way::Line, Way::Palette, Way::Key, Way::Command, Way::Input];
/// The ways of a verb for which the screen has keys of its own.
pub const WITHOUT_SCREEN: &[Way] = &[Way::Command, Way::Shell, Way::Input];
/// The ways of a verb that has a person type something unseen.
pub const UNSEEN: &[Way] = &[Way::Line, Way::Palette, Way::Key, Way::Shell];
/// The ways of a verb about the screen itself.
pub const SCREEN: &[Way] = &[Way::Line, Way::Palette, Way::Key];

/// Writes the names of keys into a text in place of `{place action}`.
pub type WithKeys<'a> = &'a dyn Fn(&str) -> String;

/// What keys and pickers may do with a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// It runs at once and asks nothing.
    Harmless,
    /// It runs, and asks for a confirmation where it does more than was named.
    Confirms,
    /// Keys and pickers only write it into the command line. It may ask for a confirmation, too.
    TypedOnly,
}

/// Whether a verb begins runs when it is a command of the shell, and whether the command waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// It begins none.
    None,
    /// They go on without the command.
    Unattended,
    /// The command waits for their end.
    Awaited,
}

/// One verb.
pub struct Verb {
    pub name: &'static str,
    /// One sentence, without a full stop.
    pub help: &'static str,
    /// Paragraphs that say more, for `:help <verb>`; `{tree mark}` is the key of an action.
    pub more: &'static [&'static str],
    pub safety: Safety,
    pub ways: &'static [Way],
    /// How long a command of the shell needs the host for it. A host that a brief one started stays until no Pod works.
    pub client: ClientKind,
    pub runs: Runs,
    /// Adds its arguments to a command.
    arguments: fn(Command) -> Command,
    /// The same for the shell, where a Pod is selected and confirmations are given by options.
    shell: fn(Command) -> Command,
    /// Begins its dialogue.
    begin: fn(&ArgMatches) -> Result<Box<dyn Dialogue>, clap::Error>,
}

/// The functions that every verb has from its arguments: how they are added, and how they are read.
pub const fn of<D: Args + Dialogue + 'static>(verb: Verb) -> Verb {
    Verb { arguments: D::augment_args, shell: shell::<D>, begin: begin::<D>, ..verb }
}

/// A verb without its arguments; [`of`] adds them.
pub const fn verb(name: &'static str, help: &'static str) -> Verb {
    Verb {
        name,
        help,
        more: &[],
        safety: Safety::Harmless,
        ways: EVERYWHERE,
        client: ClientKind::Brief,
        runs: Runs::None,
        arguments: |command| command,
        shell: |command| command,
        begin: |_| Err(clap::Error::new(clap::error::ErrorKind::InvalidSubcommand)),
    }
}

fn shell<D: Args>(command: Command) -> Command {
    let pod = Arg::new(SELECTED).long("pod").value_name("NAME");
    let pod = pod.help("The Pod to act on if the command names none");
    let yes = Arg::new(YES).long("yes").action(ArgAction::SetTrue).global(true);
    // An option of the shell may follow the words of a verb. Behind `--` stands nothing but words.
    D::augment_args(command)
        .mut_args(|argument| argument.trailing_var_arg(false))
        .arg(pod.value_parser(clap::value_parser!(PodName)))
        .arg(yes.help("Answer yes to every question"))
}

/// The options of every verb in the shell.
pub const SELECTED: &str = "selected";
pub const YES: &str = "yes";

fn begin<D: FromArgMatches + Dialogue + 'static>(
    matches: &ArgMatches,
) -> Result<Box<dyn Dialogue>, clap::Error> {
    Ok(Box::new(D::from_arg_matches(matches)?))
}

/// The verb of this name.
pub fn find(name: &str) -> Option<&'static Verb> {
    LIST.iter().copied().find(|verb| verb.name == name)
}

/// The verbs that can be reached through a way, in the order of help.
pub fn reached(way: Way) -> impl Iterator<Item = &'static Verb> {
    LIST.iter().copied().filter(move |verb| verb.ways.contains(&way))
}

impl Verb {
    /// Its arguments, as a line of words is read: no program name, no flag that was not given by it.
    pub fn line(&self) -> Command {
        let command = Command::new(self.name).no_binary_name(true).disable_help_subcommand(true);
        (self.arguments)(command)
    }

    /// Its subcommand in the shell. The arguments are added when they are needed.
    pub fn subcommand(&self) -> Command {
        let more = self.more.iter().filter_map(|paragraph| help::without_screen(paragraph));
        let more: Vec<String> = more.map(|paragraph| spell::for_help(&paragraph)).collect();
        Command::new(self.name)
            .about(spell::for_help(self.help))
            .after_help(more.join("\n\n"))
            .defer(self.shell)
    }

    /// Begins its dialogue with arguments that were read.
    pub fn begin(&self, matches: &ArgMatches) -> Result<Box<dyn Dialogue>, clap::Error> {
        (self.begin)(matches)
    }

    /// Its arguments, as help writes them: `[pod …] [--tree]`.
    pub fn usage(&self) -> String {
        let command = self.line();
        let (named, options): (Vec<_>, Vec<_>) =
            shown(&command).partition(|argument| argument.is_positional());
        let subcommands = command.get_subcommands().map(|subcommand| {
            let arguments: String =
                shown(subcommand).map(|a| format!(" {}", usage_of(a))).collect();
            format!("[{}{arguments}]", subcommand.get_name())
        });
        let all = named.into_iter().chain(options).map(usage_of).chain(subcommands);
        all.collect::<Vec<_>>().join(" ")
    }

    /// The line that help lists: `:stop [pod …] [--tree]`.
    pub fn heading(&self) -> String {
        format!(":{} {}", self.name, self.usage()).trim_end().to_owned()
    }

    /// Everything there is to say about it, in paragraphs.
    pub fn about(&self, with_keys: WithKeys<'_>) -> Vec<String> {
        let mut text = vec![self.heading(), format!("{}.", self.help)];
        let command = self.line();
        let options = shown(&command).filter(|argument| !argument.is_positional());
        text.extend(options.filter_map(|option| {
            let help = option.get_help()?;
            let usage = usage_of(option);
            let usage = usage.strip_prefix('[').and_then(|usage| usage.strip_suffix(']'));
            Some(format!("{}: {help}.", usage.unwrap_or_default()))
        }));
        text.extend(self.more.iter().map(|paragraph| with_keys(paragraph)));
        text
    }

    /// Whether it cannot be carried out without an argument.
    pub fn needs_argument(&self) -> bool {
        self.line().get_arguments().any(Arg::is_required_set)
    }

    /// Whether its first argument is a free choice, so that it is completed before it runs.
    pub fn is_completed_first(&self) -> bool {
        let command = self.line();
        let first = command.get_positionals().next().map(source);
        self.needs_argument() || first.is_some_and(|first| first == "name" || first == "model")
    }

    /// Whether it takes several Pods as its first words.
    pub fn takes_several(&self) -> bool {
        let command = self.line();
        let first = command.get_positionals().next();
        first.is_some_and(|argument| source(argument) == "pod" && repeats(argument))
    }

    /// Whether a key or a picker writes it into the command line instead of running it.
    pub fn is_only_typed(&self) -> bool {
        self.safety == Safety::TypedOnly
    }
}

fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| !argument.is_hide_set())
}

/// What stands for an argument in usage lines; completion reads it, too.
pub fn source(argument: &Arg) -> String {
    let name = argument.get_value_names().and_then(|names| names.first());
    name.map_or(argument.get_id().as_str(), |name| name.as_str()).to_lowercase()
}

fn repeats(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Append)
}

fn usage_of(argument: &Arg) -> String {
    let value = source(argument);
    let Some(long) = argument.get_long() else {
        let dots =
            if repeats(argument) && !argument.is_trailing_var_arg_set() { " …" } else { "" };
        return match argument.is_required_set() {
            true => format!("<{value}{dots}>"),
            false => format!("[{value}{dots}]"),
        };
    };
    let is_optional = argument.get_num_args().is_some_and(|values| values.min_values() == 0);
    match argument.get_action().takes_values() {
        true if is_optional => format!("[--{long} [{value}]]"),
        true => format!("[--{long} {value}]"),
        false => format!("[--{long}]"),
    }
}

#[cfg(test)]
mod tests;
