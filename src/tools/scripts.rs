//! Finds the scripts that a command line runs and that its Pod can change: in the scope, in `/tmp`
//! and in caches. A script is a word of the line that names such a file on the disk.

use crate::config::shell;
use crate::files;
use crate::protocol::ScriptHash;
use crate::sandbox::{Person, PodStorage, script_hash};
use crate::tools::{Context, scoped_path};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The most scripts of one command line that are read, and the most directories from which the line may start them.
pub const MAX_SCRIPTS: usize = 256;
const DIRECTORIES: usize = 64;
/// The most links in `/tmp` that are followed one after the other.
const LINKS: usize = 8;
/// A variable with other directories in which `cd` searches for its argument.
const CDPATH: &str = "CDPATH=";
/// Programs beside the shells that run a file that their arguments name. Versions (`python3.12`) count.
const INTERPRETERS: [&str; 24] = [
    ".", "source", "python", "pypy", "node", "nodejs", "deno", "bun", "tsx", "ts-node", "ruby",
    "perl", "php", "lua", "luajit", "Rscript", "pwsh", "tclsh", "awk", "gawk", "mawk", "nawk",
    "uv", "expect",
];
/// Programs that run a file only if this option names it.
const WITH_OPTION: [(&str, char); 5] =
    [("gdb", 'x'), ("gmake", 'f'), ("just", 'f'), ("make", 'f'), ("sed", 'f')];
/// The suffix that `ruby -r x` adds to a name.
const RUBY: &str = ".rb";
/// Variables that name a file that a shell reads when it starts.
const READ_AT_START: [&str; 2] = ["BASH_ENV=", "ENV="];

/// The scripts of a command line, in order, each once. Every word that may name a script counts, so
/// more files may be compared than run. Reads the disk.
pub fn of_line(ctx: &Context, line: &str) -> Vec<ScriptHash> {
    let Ok(commands) = shell::read(line) else { return Vec::new() };
    let mut search = Search::new(ctx, stays(line));
    for words in commands.iter().flat_map(|command| command.words().collect::<Vec<_>>()) {
        search.command(&words);
    }
    let mut found = search.found;
    found.sort_unstable();
    found.dedup();
    // The first beyond the most stands for all further ones. Without a hash no rule for certain contents holds.
    let further = found.get(MAX_SCRIPTS).cloned().map(ScriptHash::unread);
    found.truncate(MAX_SCRIPTS);
    found.iter().filter_map(|path| script_hash(path)).chain(further).collect()
}

/// Whether a line is a `cd` followed only by `&&`, so that the rest runs only if the `cd` succeeded.
fn stays(line: &str) -> bool {
    let ends = line.replace("&&", "");
    line.trim_start().starts_with("cd ") && !ends.contains(['&', '|', ';', '\n'])
}

struct Search<'a> {
    ctx: &'a Context,
    /// The directories of caches, as the line can name them.
    caches: Vec<PathBuf>,
    /// The possible current directories at this point of the line; empty after a `cd` to a
    /// directory that is known only when the command runs.
    dirs: Vec<PathBuf>,
    /// Whether the next `cd` replaces the known directories instead of adding to them.
    leaves: bool,
    found: Vec<PathBuf>,
}

impl<'a> Search<'a> {
    fn new(ctx: &'a Context, leaves: bool) -> Self {
        let person = Person { env: &ctx.env };
        let caches = person.caches().into_iter().chain(person.caches_by_name());
        let caches = caches.filter_map(|path| files::canonical(&path).ok()).collect();
        Self { ctx, caches, dirs: vec![ctx.cwd.clone()], leaves, found: Vec::new() }
    }

    fn command(&mut self, words: &[Option<String>]) {
        if words.iter().flatten().any(|word| word.starts_with(CDPATH)) {
            self.dirs.clear();
        }
        let read = |word: &String| {
            READ_AT_START.iter().find_map(|name| word.strip_prefix(name).map(str::to_owned))
        };
        for word in words.iter().flatten().filter_map(read) {
            self.file(&word);
        }
        let Some((Some(program), arguments)) = words.split_first() else { return };
        if let Some(script) = certain_script(program, arguments) {
            self.file_or_later(script);
        }
        match program.as_str() {
            "cd" | "pushd" => self.enter(arguments),
            "popd" => self.dirs.push(self.ctx.cwd.clone()),
            program if program.contains('/') => self.file_or_later(program),
            _ => {}
        }
        if is_interpreter(program) {
            self.arguments(arguments);
        }
        let option = WITH_OPTION.iter().find(|(name, _)| *name == last_part(program));
        if let Some((_, letter)) = option {
            self.named_by(*letter, arguments);
        }
    }

    /// The files that an option names: `-f x`, `-nf x`, `-fx`, `--file=x`, `--file x`.
    fn named_by(&mut self, letter: char, arguments: &[Option<String>]) {
        for (at, word) in arguments.iter().enumerate() {
            let Some(option) = word.as_ref().and_then(|word| word.strip_prefix('-')) else {
                continue;
            };
            let value = match option.strip_prefix('-') {
                Some(long) => Some(long.split_once('=').map_or("", |(_, value)| value)),
                None => option.split_once(letter).map(|(_, value)| value),
            };
            let next = || arguments.get(at + 1).cloned().flatten();
            let value = value.and_then(|v| if v.is_empty() { next() } else { Some(v.to_owned()) });
            if let Some(value) = value {
                self.file(&value);
            }
        }
    }

    /// Follows a `cd`. The directories before it stay possible, because a `cd` in a subshell or one
    /// that fails changes nothing.
    fn enter(&mut self, arguments: &[Option<String>]) {
        let option = |word: &Option<String>| {
            word.as_ref().is_some_and(|word| word.len() > 1 && word.starts_with('-'))
        };
        let leaves = std::mem::take(&mut self.leaves);
        let more = match arguments.iter().find(|word| !option(word)) {
            Some(None) => return self.dirs.clear(),
            Some(Some(word)) if word == "-" => vec![self.ctx.cwd.clone()],
            Some(Some(word)) => self.named(word),
            None => self.home().into_iter().collect(),
        };
        // A shell resolves `..` by removing the last name, and with `cd -P` on the disk.
        let more = more.into_iter().flat_map(|dir| [files::lexical(&dir), dir]).collect();
        // The newest directories come first, so that truncation drops the least likely ones.
        let before = std::mem::replace(&mut self.dirs, more);
        self.dirs.extend(before.into_iter().filter(|_| !leaves));
        let mut seen = BTreeSet::new();
        self.dirs.retain(|dir| seen.insert(dir.clone()));
        self.dirs.truncate(DIRECTORIES);
    }

    fn home(&self) -> Option<PathBuf> {
        self.ctx.env.get("HOME").map(PathBuf::from)
    }

    /// The paths that a word can mean. Absolute paths and those below the home directory do not
    /// depend on the current directory.
    fn named(&self, word: &str) -> Vec<PathBuf> {
        let below = word.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let home =
            below.zip(self.home()).map(|(rest, home)| home.join(rest.trim_start_matches('/')));
        if Path::new(word).is_absolute() {
            return vec![word.into()];
        }
        home.into_iter().chain(self.dirs.iter().map(|dir| dir.join(word))).collect()
    }

    /// Adds the first argument that is a file, and earlier arguments after an option, which may be
    /// a value of the option.
    fn arguments(&mut self, arguments: &[Option<String>]) {
        let mut after_option = false;
        for word in arguments {
            let option = word.as_ref().is_some_and(|word| word.starts_with('-'));
            let attached = word.as_ref().filter(|_| option).and_then(|word| attached(word));
            for name in attached.into_iter().chain(word.as_deref().filter(|_| after_option)) {
                // An option may have its value attached (`-r./x`, `--require=./x`); Ruby appends the suffix.
                let _ = self.file(&format!("{name}{RUBY}")) || option && self.file(name);
            }
            let found = !option && word.as_ref().is_some_and(|word| self.file(word));
            if found && !after_option {
                return;
            }
            after_option = option;
        }
    }

    /// Adds the files that a word names in any of the directories and that the Pod can change;
    /// returns whether there are any.
    fn file(&mut self, word: &str) -> bool {
        let found: Vec<PathBuf> =
            self.named(word).iter().filter_map(|path| self.changeable(path)).collect();
        self.found.extend_from_slice(&found);
        !found.is_empty()
    }

    /// Adds the files that a word names, as `file` does. The word certainly names a script, so it
    /// also counts if the file does not exist yet: the command itself may create it.
    fn file_or_later(&mut self, word: &str) {
        if !self.file(word) {
            let named = self.named(word);
            let later: Vec<PathBuf> =
                named.iter().filter_map(|path| self.made_later(path)).collect();
            self.found.extend(later);
        }
    }

    /// The path of a missing or unreadable file in the scope or the Pod's `/tmp`.
    fn made_later(&self, given: &Path) -> Option<PathBuf> {
        let path = self.resolved(given)?;
        (scoped_path::readable(self.ctx, &path) && !path.is_dir()).then_some(path)
    }

    /// The path on the disk of the file that a command sees at `given`, if it is in the scope, the
    /// Pod's `/tmp` or a cache.
    fn changeable(&self, given: &Path) -> Option<PathBuf> {
        let path = self.resolved(given)?;
        if scoped_path::readable(self.ctx, &path) {
            return path.is_file().then_some(path);
        }
        let cache = self.caches.iter().find(|cache| path.starts_with(cache))?;
        let layer = PodStorage::of(&self.ctx.private).kept_layer(cache);
        let written = layer.join(path.strip_prefix(cache).ok()?);
        // The target of a link in the layer may be outside of it.
        let written = files::canonical(&written).ok().filter(|real| real.starts_with(&layer));
        written.into_iter().chain([path]).find(|path| path.is_file())
    }

    fn resolved(&self, given: &Path) -> Option<PathBuf> {
        // `..` after a link is the parent directory of the link's target, as for the kernel. A link
        // target in `/tmp` is in the Pod's `/tmp`, too.
        let mut path = given.to_owned();
        for _ in 0..=LINKS {
            let next = files::led_to(&scoped_path::meant(self.ctx, &path))?;
            if std::mem::replace(&mut path, next) == path {
                break;
            }
        }
        path.to_str().is_some().then_some(path)
    }
}

/// Interpreters whose first argument is a script unless it is an option, and shells, which accept
/// options before it.
const FIRST: [&str; 7] = [".", "source", "python", "python3", "ruby", "perl", "php"];

/// The word of a command that certainly names a script. Options that contain the program (`-c`) or
/// have a value (`-o`) end the search.
fn certain_script<'a>(program: &str, arguments: &'a [Option<String>]) -> Option<&'a str> {
    let name = last_part(program);
    let passes = |word: &str| {
        shell::SHELLS.contains(&name) && word.starts_with('-') && !word.contains(['c', 'o'])
    };
    let mut words = arguments.iter().map_while(|word| word.as_deref());
    let first = words.find(|word| !passes(word))?;
    let is_known = shell::SHELLS.contains(&name) || FIRST.contains(&name);
    (is_known && !first.starts_with('-')).then_some(first)
}

fn is_interpreter(program: &str) -> bool {
    let name = last_part(program);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_one = |name| shell::SHELLS.contains(&name) || INTERPRETERS.contains(&name);
    is_one(name) || is_one(plain)
}

/// What an option has attached: `./x` of `-r./x` and of `--require=./x`.
fn attached(option: &str) -> Option<&str> {
    match option.strip_prefix("--") {
        Some(long) => long.split_once('=').map(|(_, value)| value),
        None => option.get(2..),
    }
}

/// The name of a program without its directory.
fn last_part(program: &str) -> &str {
    Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program)
}
