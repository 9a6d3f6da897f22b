//! Which files of its scope a command line runs as scripts, found by its words and by what lies on the disk.

use crate::config::shell;
use crate::files;
use crate::protocol::ScriptHash;
use crate::sandbox::script_hash;
use crate::tools::{Context, scoped_path};
use std::path::{Path, PathBuf};

/// Scripts of one command line that are looked at, and directories to which it may change first.
const MOST: usize = 16;
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
        let more: Vec<PathBuf> = self.dirs.iter().map(|dir| dir.join(to)).collect();
        self.dirs.extend(more);
        self.dirs.dedup();
        self.dirs.truncate(MOST);
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
            let Ok(found) = files::resolve(&files::lexical(&dir.join(word))) else { continue };
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
