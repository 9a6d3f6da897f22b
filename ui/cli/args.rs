//! The arguments of the command line.

use crate::cli::doctor::Doctor;
use crate::cli::mcp::Mcp;
use crate::cli::mesh::MeshCommand;
use crate::console;
use crate::headless::Exit;
use crate::verb::{self, KEY_IN_HISTORY, Verb, Way};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, CommandFactory as _, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use yoi::config::policy::check_tool;
use yoi::protocol::{Effort, Pattern, PodName};
use yoi::text::nearest;

/// The exit codes in `--help`.
const EXIT_CODES: &str = "Exit codes without a screen:
  0    finished
  1    failed
  2    the command line is wrong
  3    refused by policy or by a provider's filter, or no person was there to decide or answer
  4    stopped early: limit reached, paused or cancelled
  5    no such Pod, or a host of another version
  69   no model
  128+n  ended by signal n";

/// A full-screen terminal dashboard for a family of LLM agents ("Pods").
///
/// Without a command, yoi opens the dashboard. The Pods live in a background process, the host,
/// and go on when you close the dashboard.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true, after_help = EXIT_CODES)]
pub struct Args {
    /// The model of a new Pod: provider/model, provider/ or rehearsal:<script>
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// How much the model of a new Pod thinks: low, medium, high, max or off
    #[arg(long, value_name = "EFFORT", value_parser = crate::verb::effort::parser())]
    pub effort: Option<Effort>,
    /// The working directory of a new Pod
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// The Pod to open or to send to; yoi makes it if no Pod has this name
    #[arg(long, value_name = "NAME")]
    pub pod: Option<PodName>,
    /// The colours: auto, night, day, high-contrast, terminal, mono or one of your own
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
    /// Run the host inside this process: it ends with the dashboard, and the Pods stop working
    #[arg(long)]
    pub inside: bool,
    /// No screen: each line of standard input is a message, or a verb after a colon
    #[arg(long)]
    pub no_ui: bool,
    /// Run only the host, until SIGTERM
    #[arg(long, requires = "no_ui", conflicts_with_all = ["prompt", "verbs", "pod"])]
    pub serve: bool,
    /// Send one message, to a fresh Pod or to the one named with --pod, and print the answer; `-` reads
    /// the message from standard input. yoi appends piped input to it
    #[arg(short, long = "prompt", value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// Keep the fresh Pod of -p; without this it is deleted a day after its last use
    #[arg(long, requires = "prompt", conflicts_with = "pod")]
    pub keep: bool,
    /// Run a verb, as after `:` in the dashboard; can be given several times
    #[arg(short = 'c', long = "command", value_name = "VERB")]
    pub verbs: Vec<String>,
    /// Print one JSON event per line on standard output
    #[arg(long)]
    pub json: bool,
    /// Print text as it is stored, with its control characters, to a pipe or a file
    #[arg(long, conflicts_with = "json")]
    pub raw: bool,
    /// Answer yes to every question that a verb of -c or --no-ui asks
    #[arg(long)]
    pub yes: bool,
    /// Allow calls that would otherwise need an approval; can be given several times
    #[arg(long, value_name = "TOOL:PATTERN", value_parser = rule)]
    pub allow: Vec<Pattern>,
    /// What happens to an approval request when no person can decide it
    #[arg(long = "ask", value_enum, default_value_t = Ask::Deny)]
    pub unattended: Ask,
    /// A message to send when the dashboard opens; the same as `yoi "fix the failing tests"`, or words after `--`
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["prompt", "verbs", "no_ui"])]
    pub message: Option<String>,
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Args {
    /// Whether the arguments name work that needs no dashboard.
    pub fn without_a_screen(&self) -> bool {
        self.no_ui || self.prompt.is_some() || !self.verbs.is_empty()
    }
}

/// A rule of `--allow`; one that no call can match is refused.
fn rule(text: &str) -> Result<Pattern, String> {
    let rule = text.parse::<Pattern>().map_err(|error| error.to_string())?;
    check_tool(&rule.tool).map(|()| rule)
}

/// What happens to an approval request when no person can decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ask {
    /// Deny it at once, and print the rule that would allow it
    Deny,
    /// Let it wait until a person decides on another screen
    Wait,
}

/// Commands that need neither a dashboard nor a conversation.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the Pods
    Ls {
        /// Also the stopped Pods of `yoi -p`, which are deleted after a day
        #[arg(long)]
        all: bool,
        /// Print one Pod per line, as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the transcript of a Pod
    Log {
        /// The name of the Pod
        pod: PodName,
        /// Print one entry of the log per line, as JSON
        #[arg(long)]
        json: bool,
        /// Print text as it is stored, with its control characters, to a pipe or a file
        #[arg(long, conflicts_with = "json")]
        raw: bool,
    },
    /// Show the running host, or end it; its Pods are live again at the next start
    Host {
        #[command(subcommand)]
        command: Option<HostCommand>,
    },
    /// List and message the agents of this machine: the agent mesh, which connects agents of several programs
    Mesh {
        #[command(subcommand)]
        command: MeshCommand,
    },
    /// Serve an MCP client, which joins the mesh with it; or add yoi to the settings of a client
    Mcp(Mcp),
    /// Say what this machine offers, what is broken, and what to do about it
    Doctor(Doctor),
    /// List the stored keys, or store one for a provider (it is read without echo)
    Auth {
        /// The provider to store a key for, such as anthropic; without it, the keys are listed
        provider: Option<String>,
        /// Delete the stored key instead
        #[arg(long, requires = "provider")]
        remove: bool,
    },
    /// List the models that yoi knows by name, with their windows and prices
    Models {
        /// Only models whose names contain these words
        text: Vec<String>,
        /// Print one model per line, as JSON
        #[arg(long)]
        json: bool,
    },
    /// Copy this program to ~/.local, with its manual page and shell completions
    Install {
        /// Copy to another directory, such as /usr/local
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
        /// Only say what would be written
        #[arg(long)]
        plan: bool,
    },
    /// Delete what `yoi install` wrote; settings and Pods stay
    Uninstall {
        /// The directory that --to of `yoi install` named
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
        /// Also delete settings, keys, Pods and their transcripts
        #[arg(long)]
        all: bool,
        /// Only list the files that are there, and what would be deleted
        #[arg(long)]
        plan: bool,
        /// Do not ask before --all deletes
        #[arg(long)]
        yes: bool,
    },
    /// Print the completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, for `man -l -`
    Man,
}

/// The whole command line: the arguments, and a subcommand for every verb of the shell.
pub fn command() -> clap::Command {
    let verbs = verb::reached(Way::Shell).map(|verb| match verb.name {
        "send" => verb.subcommand().arg(socket()),
        _ => verb.subcommand(),
    });
    Args::command().subcommands(verbs)
}

/// Reads a command line. Words behind `--` and no command, and words with a blank between them in the place of a
/// command, are a message for the dashboard.
pub fn read(words: Vec<OsString>) -> Result<ArgMatches, clap::Error> {
    let refused = match command().try_get_matches_from(&words) {
        Ok(matches) => return Ok(matches),
        Err(refused) => refused,
    };
    match with_message(words, &refused) {
        Some(words) => command().try_get_matches_from(words),
        None => Err(refused),
    }
}

/// The words of a refused command line with its message as the value of `--message`; `None` if it has none.
fn with_message(mut words: Vec<OsString>, refused: &clap::Error) -> Option<Vec<OsString>> {
    let message = if let Some(at) = words.iter().position(|word| word == "--") {
        let before = command().try_get_matches_from(&words[..at]).ok()?;
        if before.subcommand_name().is_some() {
            return None;
        }
        let behind: Option<Vec<&str>> = words[at + 1..].iter().map(|word| word.to_str()).collect();
        let text = behind?.join(" ");
        words.truncate(at);
        text
    } else {
        let Some(ContextValue::String(text)) = refused.get(ContextKind::InvalidSubcommand) else {
            return None;
        };
        if !text.trim().contains(char::is_whitespace) {
            return None;
        }
        let at = words.iter().position(|word| word.to_str() == Some(text))?;
        words.remove(at);
        text.clone()
    };
    words.extend(["--message".into(), message.into()]);
    Some(words)
}

/// Ends a program whose command line is wrong. A verb that no shell takes is named with where it works, an option before
/// a command with where it goes.
pub fn refused(error: &clap::Error) -> ExitCode {
    let elsewhere = || verb_elsewhere(error).map(|verb| verb::line::not_here(verb, Way::Shell));
    let too_much = || key_in_line(error, std::env::args().nth(1).as_deref()?);
    let said = too_much().or_else(|| misplaced(error)).or_else(elsewhere);
    match said.or_else(|| mistyped(error)) {
        Some(text) => {
            console::err(&format!("yoi: {text}"));
            Exit::Usage.into()
        }
        None => error.exit(),
    }
}

/// What is wrong with a word in the place where a person may have typed a key; the sentence does not repeat the word.
fn key_in_line(error: &clap::Error, command: &str) -> Option<String> {
    let reads_unseen = command == "auth" || verb::line::of_unseen(command).is_some();
    let ContextValue::String(word) = error.get(ContextKind::InvalidArg)? else { return None };
    (reads_unseen && !word.starts_with('-')).then(|| {
        format!(
            "`yoi {command} <provider>` takes no more, and asks for the key unseen; {KEY_IN_HISTORY}, or replace the key"
        )
    })
}

/// What is wrong with an option before a command.
fn misplaced(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.first().cloned(),
        _ => None,
    };
    if error.kind() != ErrorKind::ArgumentConflict {
        return None;
    }
    let name = text(ContextKind::InvalidSubcommand)?;
    let typed = text(ContextKind::PriorArg)?;
    let option = typed.split([' ', '=']).next().unwrap_or_default();
    let mut all = command();
    // The arguments of a verb are added when it is built.
    all.build();
    let takes = |argument: &Arg| argument.get_long() == option.strip_prefix("--");
    let is_own = all.find_subcommand(&name).is_some_and(|own| own.get_arguments().any(takes));
    Some(match is_own {
        true => format!("put {option} after the command: `yoi {name} {typed}`"),
        false => format!(
            "`yoi {name}` takes no {option}, which is for the dashboard, -p, -c and --no-ui; `yoi {name} --help` lists \
             its options"
        ),
    })
}

/// Names the verb that a mistyped command may mean.
fn mistyped(error: &clap::Error) -> Option<String> {
    let ContextValue::String(word) = error.get(ContextKind::InvalidSubcommand)? else {
        return None;
    };
    // The words of other commands, such as `host`, are not verbs.
    let is_first = std::env::args().nth(1).as_ref() == Some(word);
    let message =
        format!("a message to a Pod has several words in quotes, or follows `--`: `yoi -- {word}`");
    Some(match meant(word).filter(|_| is_first) {
        Some(name) => {
            format!("no command `{word}`; did you mean `yoi {name}`? Otherwise, {message}")
        }
        None if is_first => format!("no command `{word}`: `yoi --help` lists them; {message}"),
        None => return None,
    })
}

/// The command that is most like a word.
fn meant(word: &str) -> Option<String> {
    let all = command();
    let shown = all.get_subcommands().filter(|one| !one.is_hide_set());
    nearest(word, shown.map(clap::Command::get_name)).map(str::to_owned)
}

fn verb_elsewhere(error: &clap::Error) -> Option<&'static Verb> {
    match error.get(ContextKind::InvalidSubcommand)? {
        ContextValue::String(name) => verb::find(name),
        _ => None,
    }
}

/// The option of `yoi send` for Pods of other programs.
pub const SOCKET: &str = "socket";

fn socket() -> Arg {
    let socket = Arg::new(SOCKET).long("socket").value_name("PATH");
    socket.value_parser(clap::value_parser!(PathBuf)).help(
        "Send to this socket of a Pod, also one of another program that speaks the same protocol",
    )
}

/// Commands about the host.
#[derive(Debug, Subcommand)]
pub enum HostCommand {
    /// End the host; its Pods are live again at the next start
    Stop {
        /// Do not ask first if that interrupts runs
        #[arg(long)]
        yes: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches as _;

    fn matches(words: &str) -> Result<clap::ArgMatches, ErrorKind> {
        let words = std::iter::once("yoi").chain(words.split_whitespace());
        command().try_get_matches_from(words).map_err(|e| e.kind())
    }

    fn read(words: &str) -> Result<Args, ErrorKind> {
        Args::from_arg_matches(&matches(words)?).map_err(|e| e.kind())
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_bare_word_is_no_pod() {
        assert_eq!(read("alice").err(), Some(ErrorKind::InvalidSubcommand));
    }

    #[test]
    fn words_with_a_blank_are_a_message_for_the_dashboard() {
        let message = |words: &[&str]| {
            let words = std::iter::once("yoi").chain(words.iter().copied()).map(Into::into);
            let matches = super::read(words.collect()).map_err(|error| error.kind())?;
            let args = Args::from_arg_matches(&matches).expect("arguments");
            Ok((args.message.unwrap_or_default(), args.model))
        };
        let model = || Some("a/b".to_owned());
        assert_eq!(message(&["fix the tests"]), Ok(("fix the tests".into(), None)));
        assert_eq!(message(&["fix it", "--model", "a/b"]), Ok(("fix it".into(), model())));
        assert_eq!(message(&["--model", "a/b", "fix it"]), Ok(("fix it".into(), model())));
        assert_eq!(message(&["--", "stop"]), Ok(("stop".into(), None)));
        assert_eq!(message(&["--", "--help", "is", "odd"]), Ok(("--help is odd".into(), None)));
        for words in [&["stpo"][..], &["stop "], &["fix it", "now"], &["fix it", "--", "now"]] {
            assert_eq!(message(words), Err(ErrorKind::InvalidSubcommand), "{words:?}");
        }
        assert_eq!(message(&["ls", "--", "now"]), Err(ErrorKind::UnknownArgument));
        for option in ["--no-ui", "-p=x", "-c=:ls"] {
            assert_eq!(message(&["fix it", option]), Err(ErrorKind::ArgumentConflict), "{option}");
        }
        assert_eq!(message(&["stop", "fix it"]), Err(ErrorKind::ValueValidation), "no name");
    }

    #[test]
    fn a_mistyped_word_may_mean_any_command_of_the_shell_and_none_of_the_screen() {
        let meant = |word: &str| super::meant(word).unwrap_or_default();
        assert_eq!(["stpo", "doctro", "isntall"].map(meant), ["stop", "doctor", "install"]);
        assert_eq!(["tuor", "them", "hi"].map(meant), ["", "", ""], "`:tour` is for the screen");
    }

    #[test]
    fn a_verb_is_a_subcommand_with_all_its_options() {
        assert!(matches("stop alice bob --tree --yes").is_ok() && matches("stop --all").is_ok());
        assert_eq!(matches("stop alice --all").err(), Some(ErrorKind::ArgumentConflict));
        assert!(matches("peer bob --pod alice").is_ok() && matches("restore a --plan").is_ok());
        assert_eq!(matches("theme day").err(), Some(ErrorKind::InvalidSubcommand));
    }

    #[test]
    fn an_option_behind_a_text_is_no_part_of_it_unless_the_text_stands_behind_two_hyphens() {
        let words = |line: &str, verb: &str, id: &str| {
            let read = matches(line).expect(line);
            let verb = read.subcommand_matches(verb).expect("the verb");
            let words = verb.get_many::<String>(id).expect("a text").cloned().collect::<Vec<_>>();
            (words.join(" "), verb.get_one::<PodName>(verb::SELECTED).map(ToString::to_string))
        };
        let pod = || Some("p2".to_owned());
        for line in
            ["send ra fix it --pod p2", "send --pod p2 ra fix it", "send ra --pod=p2 fix it"]
        {
            assert_eq!(words(line, "send", "text"), ("fix it".to_owned(), pod()), "{line}");
        }
        let behind = words("send ra --pod p2 -- --pod is an option", "send", "text");
        assert_eq!(behind, ("--pod is an option".to_owned(), pod()));
        assert_eq!(words("send ra -", "send", "text"), ("-".to_owned(), None));
        assert_eq!(matches("send ra why --verbose").err(), Some(ErrorKind::UnknownArgument));
        let denied = words("deny 1a2b3c not now --pod p2", "deny", "words");
        assert_eq!(denied, ("1a2b3c not now".to_owned(), pod()));
        assert!(matches("send ra text --socket /run/sock").is_ok());
    }

    #[test]
    fn an_option_before_a_command_is_named_with_where_it_goes() {
        let said = |line: &str| {
            let words = std::iter::once("yoi").chain(line.split_whitespace());
            misplaced(&command().try_get_matches_from(words).expect_err("no option goes there"))
        };
        let behind = "put --pod after the command: `yoi explain --pod <NAME>`";
        assert_eq!(said("--pod a explain").as_deref(), Some(behind));
        for line in ["--model x/y ls", "--model=x/y stop a"] {
            let text = said(line).expect("a sentence");
            assert!(text.contains("takes no --model, which is for the dashboard"), "{text}");
        }
        assert_eq!(said("stop a --all"), None);
    }

    #[test]
    fn a_verb_that_no_shell_takes_says_where_it_works() {
        let said = |words: &[&str]| {
            let error = command().try_get_matches_from(words).expect_err("no subcommand");
            verb_elsewhere(&error).map(|verb| verb::line::not_here(verb, Way::Shell))
        };
        let screen =
            "`yoi theme` works only on the screen: start `yoi` and type it there, after a colon";
        assert_eq!(said(&["yoi", "theme", "day"]).as_deref(), Some(screen));
        let open = "`yoi open` works on the screen, with -c, with --no-ui";
        assert_eq!(said(&["yoi", "open", "kid"]).as_deref(), Some(open));
        assert_eq!(said(&["yoi", "nosuch"]), None);
        for verb in verb::LIST.iter().filter(|verb| !verb.ways.contains(&Way::Shell)) {
            // `yoi help` belongs to clap; in a shell `yoi mesh` and `yoi mcp` are commands of their own.
            if !["help", "mesh", "mcp"].contains(&verb.name) {
                assert!(said(&["yoi", verb.name]).is_some(), "{}", verb.name);
            }
        }
    }

    #[test]
    fn every_verb_of_the_shell_is_in_the_help_the_completions_and_the_manual_page() {
        let mut completions = Vec::new();
        clap_complete::generate(
            clap_complete::Shell::Bash,
            &mut command(),
            "yoi",
            &mut completions,
        );
        let completions = String::from_utf8(completions).expect("text");
        let (help, man) =
            (command().render_help().to_string(), crate::cli::man::page().expect("a page"));
        for verb in verb::reached(Way::Shell) {
            assert!(help.contains(&format!("  {}  ", verb.name)), "{}: {help}", verb.name);
            assert!(completions.contains(&format!("yoi__subcmd__{}", verb.name)), "{}", verb.name);
        }
        for verb in verb::LIST {
            assert!(man.contains(&format!(":{}", verb.name)), "{}", verb.name);
        }
        assert!(completions.contains("--tree") && man.contains("EXIT"), "{man}");
    }

    #[test]
    fn a_prompt_or_a_verb_needs_no_screen() {
        assert!(read("-p hi").is_ok_and(|args| args.without_a_screen()));
        assert!(read("-c ls").is_ok_and(|args| args.without_a_screen()));
        assert!(read("--model rehearsal:x").is_ok_and(|args| !args.without_a_screen()));
        assert!(read("--serve").is_err());
    }

    #[test]
    fn a_rule_names_tool_and_pattern() {
        assert!(read("-p hi --allow Bash:cargo").is_ok());
        assert!(read("-p hi --allow Bash").is_err());
        assert!(read("-p hi --allow mcp__git__log:*").is_ok());
        assert!(read("-p hi --allow Bahs:cargo").is_err());
        let error = rule("Bahs:cargo").expect_err("there is no such tool");
        assert!(error.starts_with("no tool is named `Bahs`; there are AskPerson, Bash"), "{error}");
    }

    #[test]
    fn an_impossible_pod_name_is_refused_while_parsing() {
        assert!(read("log ../x").is_err());
    }
}
