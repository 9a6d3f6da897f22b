//! Which files of its scope a command line runs as scripts, found by its words and by what lies on the disk.

use crate::config::shell;
use crate::files;
use crate::protocol::ScriptHash;
use crate::sandbox::script_hash;
use crate::tools::{Context, scoped_path};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The most scripts of one command line that are read, and the most directories from which the line may start them.
const MOST: usize = 256;
const DIRECTORIES: usize = 64;
/// Programs that run a file that their arguments name. Versions (`python3.12`) count.
const INTERPRETERS: [&str; 28] = [
    ".", "source", "sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "python", "pypy", "node",
    "nodejs", "deno", "bun", "tsx", "ts-node", "ruby", "perl", "php", "lua", "luajit", "Rscript",
    "pwsh", "tclsh", "awk", "gawk", "expect",
];

/// The scripts of a command line, in order, each once. A word that may be one counts: more is compared then than
/// would be needed. Looks at the disk.
pub fn of_line(ctx: &Context, line: &str) -> Vec<ScriptHash> {
    let Ok(commands) = shell::read(line) else { return Vec::new() };
    let mut search = Search { ctx, dirs: vec![ctx.cwd.clone()], found: Vec::new() };
    for words in commands.iter().flat_map(|command| command.words().collect::<Vec<_>>()) {
        search.command(&words);
    }
    let mut found = search.found;
    found.sort_unstable();
    found.dedup();
    found.truncate(MOST);
    found.iter().filter_map(|path| script_hash(path)).collect()
}

struct Search<'a> {
    ctx: &'a Context,
    /// Where the command may be when it comes to a script.
    dirs: Vec<PathBuf>,
    found: Vec<PathBuf>,
}

impl Search<'_> {
    fn command(&mut self, words: &[Option<String>]) {
        let Some((Some(program), arguments)) = words.split_first() else { return };
        match program.as_str() {
            "cd" | "pushd" => self.enter(arguments),
            program if program.contains('/') => drop(self.file(program)),
            _ => {}
        }
        if is_interpreter(program) {
            self.arguments(arguments);
        }
    }

    fn enter(&mut self, arguments: &[Option<String>]) {
        let mut named = arguments.iter().flatten().filter(|word| !word.starts_with('-'));
        let Some(to) = named.next() else { return };
        // A shell takes `..` for the directory above by name, and with an option for the one on the disk.
        let joined = self.dirs.iter().map(|dir| dir.join(to));
        let more = joined.flat_map(|dir| [files::lexical(&dir), dir]).collect();
        // The directories of the last steps come first, so the least likely ones of many are left out.
        let before = std::mem::replace(&mut self.dirs, more);
        self.dirs.extend(before);
        let mut seen = BTreeSet::new();
        self.dirs.retain(|dir| seen.insert(dir.clone()));
        self.dirs.truncate(DIRECTORIES);
    }

    /// The first argument that is a file, and those before it that follow an option: the option may be one with
    /// a value or one without.
    fn arguments(&mut self, arguments: &[Option<String>]) {
        let mut after_option = false;
        for word in arguments {
            let option = word.as_ref().is_some_and(|word| word.starts_with('-'));
            let found = !option && word.as_ref().is_some_and(|word| self.file(word));
            if found && !after_option {
                return;
            }
            after_option = option;
        }
    }

    /// Whether a word names a file of the scope, from any of the directories.
    fn file(&mut self, word: &str) -> bool {
        let mut any = false;
        for dir in self.dirs.clone() {
            // The path as the kernel resolves it: `..` behind a link leads to the directory above the link's target.
            let Ok(found) = files::resolve(&dir.join(word)) else { continue };
            if scoped_path::readable(self.ctx, &found.path) && found.path.is_file() {
                self.found.push(found.path);
                any = true;
            }
        }
        any
    }
}

fn is_interpreter(program: &str) -> bool {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&plain)
}
