//! Finds the scripts that a command line runs and that its Pod can change: in the scope, in `/tmp`
//! and in caches. A script is a word of the line that names such a file on the disk.

use crate::config::shell::{self, GitCommand, Interpreter, Operand, Takes, interpreter};
use crate::files;
use crate::protocol::ScriptHash;
use crate::sandbox::{GIT, PodStorage, UserPaths, remotes, repositories_of, script_hash};
use crate::scope::Permission;
use crate::tools::{Context, scoped_path};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The most scripts of one command line that are read, and the most directories from which the line may start them.
pub const MAX_SCRIPTS: usize = 256;
const DIRECTORIES: usize = 64;
/// The most links in `/tmp` that are followed one after the other.
const LINKS: usize = 8;
/// The most parts of the words of one line that are looked for on the disk.
const PARTS: usize = 4096;
/// The beginning of a program or a library, and where it says which of them it is: 2 or 3 in either order of bytes.
const ELF: &[u8] = b"\x7fELF";
const ELF_TYPE: std::ops::Range<usize> = 16..18;
/// The signs that a name of a file inside of a word may contain.
const SIGNS: usize = 3;
/// A variable with other directories in which `cd` searches for its argument.
const CDPATH: &str = "CDPATH=";
/// The suffix that `ruby -r x` adds to a name.
const RUBY: &str = ".rb";
/// The suffix that `node x` adds to a name.
const NODE: &str = ".js";
/// The file that `python3 directory` runs.
const PACKAGE: &str = "__main__.py";
/// The file whose scripts a manager of packages runs, the managers, their verbs that do, and how many directories up the
/// file is looked for.
const SCRIPTS_OF_PACKAGE: &str = "package.json";
const MANAGERS: [&str; 3] = ["npm", "pnpm", "yarn"];
const MANAGED: [&str; 8] = ["run", "run-script", "test", "t", "tst", "start", "stop", "restart"];
const PARENTS: usize = 16;
/// Verbs before a script.
const RUNS: [&str; 2] = ["run", "watch"];
/// Variables that name a file that a shell reads when it starts. Other programs use the second name for other things.
const READ_AT_START: [(&str, Named); 2] = [("BASH_ENV=", Named::Surely), ("ENV=", Named::Perhaps)];

/// Whether a word certainly names a script, so that it also counts if the file does not exist yet:
/// the command itself may create it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    /// Only a file that exists counts.
    IfThere,
    /// Only if it looks like a path.
    Perhaps,
    Surely,
}

/// What a command line shows of the files that it runs.
pub struct Shown {
    /// The scripts, in order, each once. Every word that may name a script counts, so more files may be compared than
    /// run.
    pub scripts: Vec<ScriptHash>,
    /// Whether the line may run something else the next time: its words are not all literal, or a part of one names a
    /// program or a script that the Pod can change.
    pub may_run_another: bool,
    /// The words by which a program may be handed such a file: options with their values, and parts of other words.
    pub handed: Vec<String>,
    /// Whether a command of git may find a repository whose settings the Pod can write.
    pub any_repository: bool,
    /// Whether a program of the line may obey files that the Pod can write. Only a command of git is known not to, which
    /// finds a guarded repository in the current directory and reaches a remote of it or an address.
    pub may_obey_the_pod: bool,
}

/// The scripts of a command line. Reads the disk.
pub fn of_line(ctx: &Context, line: &str) -> Shown {
    let mut search = Search::new(ctx, stays(line));
    search.may_run_another = shell::read(line).is_err();
    let mut may_obey_the_pod = !line.starts_with("git ");
    for words in shell::named_commands(line) {
        search.command(&words);
        may_obey_the_pod |= !search.obeys_the_person(&words);
        search.names_a_program(&words);
        search.repository(&words);
    }
    // The first beyond the most stands for all further ones. Without a hash no rule for certain contents holds.
    let further = search.found.keys().nth(MAX_SCRIPTS).cloned().map(ScriptHash::unread);
    let found = search.found.iter().take(MAX_SCRIPTS);
    let scripts: Vec<ScriptHash> =
        found.flat_map(|(path, held)| hashed(path, *held)).chain(further).collect();
    let may_run_another = search.may_run_another || !scripts.is_empty();
    let Search { handed, any_repository, .. } = search;
    Shown { scripts, may_run_another, handed, any_repository, may_obey_the_pod }
}

/// The hash of a script, and the mark that it is not held.
fn hashed(path: &Path, held: Held) -> impl Iterator<Item = ScriptHash> {
    let hash = script_hash(path);
    let mark = (hash.is_content() && held == Held::No).then(|| ScriptHash::unheld(path.to_owned()));
    [hash].into_iter().chain(mark)
}

/// Whether a script stays what it is while the command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Yes,
    /// Another Pod may exchange the script, or a directory or a link on the way to it.
    No,
}

/// The parts of a word that may be paths: each begins at the word, behind a sign or the letter of an option, or where an
/// explicit path may begin, and reaches to one of the next signs, for a name may contain a few, to the next blank, or to
/// the end of the word.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let sign = |c: char| !c.is_alphanumeric() && !"./~_-".contains(c);
    let option = word.starts_with('-') && !word.starts_with("--");
    let behind_option = option.then(|| word.char_indices().nth(2).map(|(at, _)| at)).flatten();
    let mut before = None;
    let mut starts: Vec<usize> = Vec::new();
    for (at, c) in word.char_indices() {
        let begins = before.is_none_or(sign) || "./~".contains(c) && before != Some('.');
        if begins && !sign(c) || behind_option == Some(at) {
            starts.push(at);
        }
        before = Some(c);
    }
    let ends: Vec<usize> =
        word.char_indices().filter(|(_, c)| sign(*c)).map(|(at, _)| at).collect();
    starts.into_iter().flat_map(move |start| {
        let next = ends.partition_point(|end| *end <= start);
        let near = ends[next..].iter().copied().take(SIGNS);
        let blank = word[start..].find(char::is_whitespace).map(|at| start + at);
        let each = near.chain(blank).chain([word.len()]).collect::<BTreeSet<usize>>();
        each.into_iter().map(move |end| &word[start..end])
    })
}

/// Whether a file can be started by its name: it is executable, names its interpreter, or is a program or a shared
/// library, which other programs load whatever its mode.
fn can_be_started(file: &Path) -> bool {
    let mode = |file: &Path| file.metadata().map_or(0, |metadata| metadata.permissions().mode());
    let begins = |file: &Path| -> std::io::Result<Vec<u8>> {
        let mut first = Vec::new();
        File::open(file)?.take(ELF_TYPE.end as u64).read_to_end(&mut first)?;
        Ok(first)
    };
    let is_loadable = |first: &[u8]| {
        let of_elf = first.get(ELF_TYPE).filter(|_| first.starts_with(ELF));
        first.starts_with(b"#!")
            || of_elf.is_some_and(|kind| kind.iter().any(|b| matches!(b, 2 | 3)))
    };
    mode(file) & 0o111 != 0 || begins(file).is_ok_and(|first| is_loadable(&first))
}

/// Whether the value of an option is the name of an interpreter, perhaps with options: a later word may be its script.
fn starts_an_interpreter(option: Option<&str>, word: &str) -> bool {
    let value = match word.split_once('=').filter(|(option, _)| option.starts_with('-')) {
        Some((_, value)) => value,
        None if option.is_some_and(|option| option.starts_with("--")) => word,
        None => return false,
    };
    let mut words = value.split_whitespace();
    words.next().is_some_and(is_interpreter) && words.all(|word| word.starts_with('-'))
}

fn is_interpreter(name: &str) -> bool {
    interpreter(name).is_some_and(Interpreter::is_interpreter)
}

/// Whether a line is a `cd` followed only by `&&`, so that the rest runs only if the `cd` succeeded.
fn stays(line: &str) -> bool {
    let ends = line.replace("&&", "");
    line.trim_start().starts_with("cd ") && !ends.contains(['&', '|', ';', '\n'])
}

/// What the arguments before a word say about it.
struct State {
    named: Named,
    /// The last argument that may be a verb.
    verb: Option<String>,
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
    found: BTreeMap<PathBuf, Held>,
    may_run_another: bool,
    /// The words of [`Shown::handed`].
    handed: Vec<String>,
    /// As in [`Shown::any_repository`].
    any_repository: bool,
    /// How many more parts of words are looked for on the disk.
    parts_left: usize,
}

impl<'a> Search<'a> {
    fn new(ctx: &'a Context, leaves: bool) -> Self {
        let person = UserPaths { env: &ctx.env };
        let caches = person.caches().into_iter().chain(person.caches_by_name());
        let caches = caches.filter_map(|path| files::canonical(&path).ok()).collect();
        Self {
            ctx,
            caches,
            dirs: vec![ctx.cwd.clone()],
            leaves,
            found: BTreeMap::new(),
            may_run_another: false,
            handed: Vec::new(),
            any_repository: false,
            parts_left: PARTS,
        }
    }

    /// Looks for programs and scripts that the Pod can change in all parts of the words: a program may start a file that
    /// an option or a quoted text names, as in `split --filter=./x.sh` or `git -c alias.x='!./x.sh'`.
    fn names_a_program(&mut self, words: &[Option<String>]) {
        let is_blank = |c: char| !c.is_alphanumeric() && !"./_-".contains(c);
        // The name may be attached to the letters of an option: `-TTsh`.
        let names_interpreter = |part: &str| match part.strip_prefix('-') {
            Some(letters) if !letters.starts_with('-') => {
                letters.char_indices().any(|(at, _)| is_interpreter(&letters[at..]))
            }
            _ => is_interpreter(part),
        };
        let (mut interpreted, mut started) = (false, false);
        for (at, word) in words.iter().enumerate() {
            let Some(word) = word else {
                self.may_run_another = true;
                continue;
            };
            let option = at.checked_sub(1).and_then(|at| words[at].as_ref());
            let option = option.filter(|option| option.starts_with('-') && !option.contains('='));
            let any_file = interpreted || at > 0 && word.split(is_blank).any(names_interpreter);
            let starts_it = at > 0 && starts_an_interpreter(option.map(String::as_str), word);
            // What the first word interprets is known already.
            interpreted |= at > 0 && is_interpreter(word) || starts_it;
            let expands = self.is_expanded_later(word);
            let part = parts(word).find(|part| self.is_program(part, any_file));
            self.may_run_another |= expands || part.is_some();
            // A whole word that no option takes is what the program works on.
            let is_value = word.starts_with('-') || option.is_some();
            let starts = part.is_some_and(|part| part != word || is_value || started);
            started |= starts_it;
            if at > 0 && (starts || is_value && expands) {
                self.handed.extend(option.into_iter().chain([word]).cloned());
            }
        }
    }

    /// Whether a literal word names files that only a shell finds, to which a program may hand the word: `'$HOME/x.sh'`,
    /// `'./*.sh'`.
    fn is_expanded_later(&self, word: &str) -> bool {
        let names_value = |at: usize| {
            word[at + 1..].starts_with(|c: char| c.is_alphanumeric() || "_{(".contains(c))
        };
        let in_a_directory = |token: &str| {
            let before = token.find(['*', '?', '[', '{']).map(|at| &token[..at]);
            before.is_some_and(|before| {
                let end = before.rfind('/').map_or(0, |at| at + 1);
                self.is_directory(if end == 0 { "." } else { &before[..end] })
            })
        };
        let mut tokens = word.split(|c: char| c.is_whitespace() || "=!:;,&|<>()'\"".contains(c));
        word.contains('`')
            || word.match_indices('$').any(|(at, _)| names_value(at))
            || tokens.any(|token| token.contains('/') && in_a_directory(token))
    }

    /// Whether a part of a word names a file that the Pod can change and that may be started: a program, a script
    /// or, behind the name of an interpreter, any file.
    fn is_program(&mut self, part: &str, any_file: bool) -> bool {
        let Some(left) = self.parts_left.checked_sub(1) else { return true };
        self.parts_left = left;
        let ends = self.named(part).into_iter().filter_map(|given| Some(self.resolved(&given)?.0));
        let mut files = ends.filter_map(|end| self.changeable(end));
        files.any(|file| any_file || can_be_started(&file))
    }

    /// Looks at the repository in which a command of git works, and at the other one of `git push` and its like.
    fn repository(&mut self, words: &[Option<String>]) {
        let Some(GitCommand { finds_repository, remotes: words, .. }) = shell::git_command(words)
        else {
            return;
        };
        let guarded = self.guarded_repository();
        self.any_repository |= finds_repository && guarded.is_none();
        let Some(words) = words else { return };
        let known = guarded.map(|git| remotes(&git)).unwrap_or_default();
        // Without a configured remote git reads its name in a file of the repository.
        self.any_repository |= words.is_empty() && known.is_empty();
        let is_near = |word: &String| !is_far(word) || self.is_directory(word);
        let near: Vec<String> =
            words.into_iter().filter(|word| !known.contains(word) && is_near(word)).collect();
        self.handed.extend(near);
    }

    /// Whether these words start git in a guarded repository, with one of its remotes or an address, and nothing in them
    /// names other settings.
    fn obeys_the_person(&self, words: &[Option<String>]) -> bool {
        let is_git = words.first().is_some_and(|word| word.as_deref() == Some("git"));
        let (Some(command), Some(git)) = (shell::git_command(words), self.guarded_repository())
        else {
            return false;
        };
        let GitCommand { must_spell: 0, finds_repository: true, remotes: Some(named) } = command
        else {
            return false;
        };
        let known = remotes(&git);
        let is_far = |word: &String| is_far(word) && !self.is_directory(word);
        is_git
            && words.iter().all(Option::is_some)
            && !(named.is_empty() && known.is_empty())
            && named.iter().all(|word| known.contains(word) || is_far(word))
    }

    /// The `.git` in each of the possible current directories, if its configuration is guarded. A directory without one
    /// may become a repository while the line runs, and a repository that no person gave to the Pod may be made by one.
    fn guarded_repository(&self) -> Option<PathBuf> {
        let known = repositories_of(&self.ctx.given);
        let mut gits = self.dirs.iter().map(|dir| dir.join(GIT));
        let first = gits.clone().next()?;
        let is_guarded = |git: PathBuf| {
            let is_link = git.symlink_metadata().map(|meta| meta.is_symlink());
            known.contains(&git) && is_link.is_ok_and(|is_link| !is_link)
        };
        gits.all(is_guarded).then_some(first)
    }

    fn command(&mut self, words: &[Option<String>]) {
        if words.iter().flatten().any(|word| word.starts_with(CDPATH)) {
            self.dirs.clear();
        }
        for word in words.iter().flatten() {
            for (variable, named) in READ_AT_START {
                if let Some(file) = word.strip_prefix(variable) {
                    self.script(file, named);
                }
            }
        }
        let Some((Some(program), arguments)) = words.split_first() else { return };
        match program.as_str() {
            "cd" | "pushd" => self.enter(arguments),
            "popd" => self.dirs.push(self.ctx.cwd.clone()),
            program if program.contains('/') => {
                let variable = program.split('/').next().is_some_and(|first| first.contains('='));
                // In a line that cannot be read, an address stands where a program may stand.
                let is_address = program.contains("://");
                self.script(
                    program,
                    if variable || is_address { Named::IfThere } else { Named::Surely },
                );
            }
            _ => {}
        }
        if let Some(interpreter) = interpreter(program) {
            self.arguments(interpreter, arguments);
        }
        if MANAGERS.contains(&last_part(program)) {
            self.of_package(arguments);
        }
    }

    /// Adds the `package.json` whose scripts a manager of packages runs: the nearest one, and that of each directory
    /// that an argument names.
    fn of_package(&mut self, arguments: &[Option<String>]) {
        let runs =
            |word: &Option<String>| word.as_deref().is_none_or(|word| MANAGED.contains(&word));
        if !arguments.iter().any(runs) {
            return;
        }
        for word in arguments.iter().flatten() {
            let dir = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
            if self.is_directory(dir) {
                self.file(&format!("{dir}/{SCRIPTS_OF_PACKAGE}"));
            }
        }
        let mut nearest = (0..PARENTS).map(|up| "../".repeat(up) + SCRIPTS_OF_PACKAGE);
        if !nearest.any(|file| self.file(&file)) {
            self.add(SCRIPTS_OF_PACKAGE, Self::made_later);
        }
    }

    /// Adds the scripts that the arguments of an interpreter name. Where it is not certain which of
    /// them is the script, each counts.
    fn arguments(&mut self, interpreter: &Interpreter, arguments: &[Option<String>]) {
        let (mut before, mut options_end) = (Takes::Nothing, false);
        let mut state = State { named: Named::Surely, verb: None };
        for word in arguments {
            let Some(word) = word.as_deref() else {
                // It may be an option, a value or the script.
                let is_value = !matches!(before, Takes::Nothing | Takes::Perhaps);
                before = if is_value { Takes::Nothing } else { Takes::Perhaps };
                continue;
            };
            if word == "-" {
                // The input is the program, or as for a shell, the options end.
                (options_end, state.named) = (true, state.named.min(Named::Perhaps));
                continue;
            }
            match std::mem::replace(&mut before, Takes::Nothing) {
                Takes::Nothing | Takes::Perhaps if !options_end && word == "--" => {
                    options_end = true
                }
                Takes::Nothing | Takes::Perhaps
                    if !options_end && word.len() > 1 && word.starts_with(['-', '+']) =>
                {
                    before = self.option(interpreter, word, &mut state);
                }
                Takes::Nothing => {
                    if self.operand(interpreter.operand, word, &mut state) {
                        return;
                    }
                }
                Takes::Perhaps if self.operand(interpreter.operand, word, &mut state) => {
                    state.named = state.named.min(Named::Perhaps);
                }
                Takes::Perhaps => {}
                takes => self.value(takes, word),
            }
        }
    }

    /// Adds the file that is attached to an option; returns what the next word is.
    fn option(&mut self, interpreter: &Interpreter, word: &str, state: &mut State) -> Takes {
        let (takes, attached) = interpreter.option(word);
        if takes == Takes::Code {
            state.named = Named::IfThere;
        }
        match attached {
            Some(value) => self.value(takes, value),
            None if takes == Takes::Writes => {}
            None => return takes,
        }
        Takes::Nothing
    }

    fn value(&mut self, takes: Takes, value: &str) {
        match takes {
            Takes::File => drop(self.script(value, Named::Surely)),
            Takes::Module if !self.file(&format!("{value}{RUBY}")) => {
                let is_path = value.starts_with(['.', '/']);
                self.script(value, if is_path { Named::Surely } else { Named::IfThere });
            }
            Takes::Perhaps => drop(self.file(value)),
            Takes::Module | Takes::Nothing | Takes::Value | Takes::Code | Takes::Writes => {}
        }
    }

    /// Adds the script that an argument names; returns whether no later argument is the script.
    fn operand(&mut self, operand: Operand, word: &str, state: &mut State) -> bool {
        match operand {
            Operand::Data
            | Operand::Code
            | Operand::Text
            | Operand::Other
            | Operand::Bundle
            | Operand::Compiler => false,
            Operand::Script => self.script(word, state.named),
            Operand::ScriptOrPackage if self.is_directory(word) => {
                self.script(&format!("{word}/{PACKAGE}"), state.named)
            }
            Operand::ScriptOrPackage => self.script(word, state.named),
            Operand::Module if self.is_directory(word) => {
                // Its `package.json` says which file runs.
                let read = |search: &Self, path: PathBuf| {
                    scoped_path::readable(search.ctx, &path).then_some(path)
                };
                self.add(word, read)
            }
            Operand::Module => {
                self.file(word)
                    || self.file(&format!("{word}{NODE}"))
                    || self.script(word, state.named)
            }
            Operand::ScriptOrVerb | Operand::Verb => {
                let runs = state.verb.as_ref().is_none_or(|verb| RUNS.contains(&verb.as_str()));
                state.verb.get_or_insert_with(|| word.to_owned());
                let named = if runs { Named::Perhaps } else { Named::IfThere };
                self.script(word, named.min(state.named))
            }
        }
    }

    fn is_directory(&self, word: &str) -> bool {
        let ends = self.named(word).into_iter().filter_map(|given| Some(self.resolved(&given)?.0));
        ends.into_iter().any(|end| scoped_path::readable(self.ctx, &end) && end.is_dir())
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

    /// Adds the files that a word names in any of the directories and that the Pod can change;
    /// returns whether there are any.
    fn file(&mut self, word: &str) -> bool {
        self.add(word, Self::changeable)
    }

    /// Adds the scripts that `script` finds at the paths that a word can mean; returns whether there are any.
    fn add(&mut self, word: &str, script: fn(&Self, PathBuf) -> Option<PathBuf>) -> bool {
        let mut any = false;
        for given in self.named(word) {
            let Some((end, held)) = self.resolved(&given) else { continue };
            let Some(found) = script(self, end) else { continue };
            any = true;
            let known = self.found.entry(found).or_insert(held);
            if held == Held::No {
                *known = held;
            }
        }
        any
    }

    /// Adds the files that a word names; returns whether there are any or the word surely names one.
    fn script(&mut self, word: &str, named: Named) -> bool {
        let is_path = word.contains(['.', '/']);
        let later = match named {
            Named::Surely => true,
            Named::Perhaps => is_path,
            Named::IfThere => false,
        };
        let found = self.file(word);
        if !found && later {
            self.add(word, Self::made_later);
        }
        found || later
    }

    /// The path of a missing or unreadable file in the scope or the Pod's `/tmp`.
    fn made_later(&self, path: PathBuf) -> Option<PathBuf> {
        (scoped_path::readable(self.ctx, &path) && !path.is_dir()).then_some(path)
    }

    /// The path on the disk of the file that a command sees at `path`, if it is in the scope, the
    /// Pod's `/tmp` or a cache.
    fn changeable(&self, path: PathBuf) -> Option<PathBuf> {
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

    /// The resolved path on the disk, and whether another Pod may exchange a part of the way to it.
    fn resolved(&self, given: &Path) -> Option<(PathBuf, Held)> {
        // `..` after a link is the parent directory of the link's target, as for the kernel. A link
        // target in `/tmp` is in the Pod's `/tmp`, too.
        let (mut path, mut held) = (given.to_owned(), Held::Yes);
        for _ in 0..=LINKS {
            let meant = scoped_path::meant(self.ctx, &path);
            if files::places_on(&meant).iter().any(|place| self.is_anothers(place)) {
                held = Held::No;
            }
            let next = files::led_to(&meant)?;
            if std::mem::replace(&mut path, next) == path {
                break;
            }
        }
        path.to_str().is_some().then_some((path, held))
    }

    /// Whether another live Pod may put something else at this place, which lies below a path that only that Pod may write;
    /// or a command of this Pod in the background, which writes in its `/tmp` and perhaps there.
    fn is_anothers(&self, place: &Path) -> bool {
        let ctx = self.ctx;
        let below = |other: &PathBuf| place != other && place.starts_with(other);
        if place.starts_with(&ctx.private) {
            return ctx.jobs.any_runs();
        }
        let by_others = || ctx.others.iter().any(below);
        ctx.jobs.written().iter().any(below)
            || by_others() && ctx.scope.permission(place) != Some(Permission::Write)
    }
}

/// Whether git takes a text for the address of a repository that it reaches through the network.
fn is_far(address: &str) -> bool {
    let is_word = |text: &str| !text.is_empty() && !text.contains('/');
    let is_url =
        |(scheme, _): (&str, &str)| is_word(scheme) && !scheme.eq_ignore_ascii_case("file");
    // `host:path`; behind a `/` a colon is a part of a path.
    let has_host = || address.split_once(':').is_some_and(|(host, _)| is_word(host));
    !address.contains("::") && address.split_once("://").map_or_else(has_host, is_url)
}

/// The name of a program without its directory.
fn last_part(program: &str) -> &str {
    Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program)
}
