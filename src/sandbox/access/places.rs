//! Well-known paths of a Linux machine: paths that every command may read, caches that it may
//! write, and secrets. One table for commands and for the file tools.

mod obeyed;
mod secrets;
mod system;

pub use obeyed::is_obeyed_by_name;
pub use system::{DEVICES, ETC, KERNEL, NAMES, SYSTEM, of_the_system};

use crate::files::without_parents;
use secrets::{MACHINE_SECRETS, SECRETS, SECRETS_IN};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The directory of one tool.
struct Row {
    /// The variable with its path, or empty.
    var: &'static str,
    /// Its usual path below the home directory; empty if there is none.
    usual: &'static str,
    /// Readable names below it; an empty name is the whole directory.
    read: &'static [&'static str],
    /// Writable names below it; an empty name is the whole directory.
    write: &'static [&'static str],
}

const fn readable(usual: &'static str) -> Row {
    Row { var: "", usual, read: &[""], write: &[] }
}

const fn cache(usual: &'static str) -> Row {
    Row { var: "", usual, read: &[], write: &[""] }
}

const fn cache_by_name(var: &'static str) -> Row {
    Row { var, usual: "", read: &[], write: &[""] }
}

/// Toolchains, readable, and caches, writable.
const TOOLS: &[Row] = &[
    cache(".cache"),
    cache_by_name("CARGO_TARGET_DIR"),
    cache_by_name("GOCACHE"),
    cache_by_name("GOMODCACHE"),
    cache_by_name("npm_config_cache"),
    cache_by_name("NPM_CONFIG_CACHE"),
    cache_by_name("PIP_CACHE_DIR"),
    cache_by_name("UV_CACHE_DIR"),
    cache_by_name("YARN_CACHE_FOLDER"),
    cache_by_name("DENO_DIR"),
    cache_by_name("CCACHE_DIR"),
    cache_by_name("SCCACHE_DIR"),
    Row {
        var: "CARGO_HOME",
        usual: ".cargo",
        read: &["bin", "config", "config.toml", "env"],
        write: &["registry", "git", ".package-cache", ".package-cache-mutate"],
    },
    Row { var: "RUSTUP_HOME", usual: ".rustup", read: &[""], write: &[] },
    Row { var: "GOPATH", usual: "go", read: &["bin", "src"], write: &["pkg"] },
    Row { var: "GOROOT", usual: ".go", read: &[""], write: &[] },
    readable(".config/go"),
    Row { var: "NVM_DIR", usual: ".nvm", read: &[""], write: &[] },
    readable(".volta"),
    readable(".fnm"),
    readable(".local/share/fnm"),
    cache(".npm"),
    cache(".node-gyp"),
    cache(".yarn/berry/cache"),
    readable(".yarn"),
    Row { var: "PNPM_HOME", usual: ".local/share/pnpm", read: &[""], write: &["store"] },
    Row { var: "BUN_INSTALL", usual: ".bun", read: &["bin"], write: &["install/cache"] },
    readable(".deno"),
    Row { var: "PYENV_ROOT", usual: ".pyenv", read: &[""], write: &[] },
    Row { var: "VIRTUAL_ENV", usual: ".virtualenvs", read: &[""], write: &[] },
    Row { var: "CONDA_PREFIX", usual: ".conda", read: &[""], write: &[] },
    readable("miniconda3"),
    readable("anaconda3"),
    readable("miniforge3"),
    readable(".local/bin"),
    readable(".local/lib"),
    readable(".local/pipx"),
    readable(".local/share/pipx"),
    readable(".local/share/uv"),
    readable(".local/share/virtualenvs"),
    readable(".local/share/mise"),
    readable(".config/mise"),
    readable(".asdf"),
    readable(".asdfrc"),
    readable(".tool-versions"),
    Row { var: "RBENV_ROOT", usual: ".rbenv", read: &[""], write: &[] },
    readable(".rvm"),
    Row { var: "GEM_HOME", usual: ".gem", read: &["ruby", "bin", "gems"], write: &[] },
    readable(".bundle/cache"),
    Row { var: "SDKMAN_DIR", usual: ".sdkman", read: &[""], write: &[] },
    Row { var: "JAVA_HOME", usual: ".jdks", read: &[""], write: &[] },
    cache(".m2/repository"),
    readable(".m2/wrapper"),
    Row {
        var: "GRADLE_USER_HOME",
        usual: ".gradle",
        read: &["init.d", "jdks"],
        write: &["caches", "wrapper", "native", "daemon", ".tmp"],
    },
    cache(".ivy2/cache"),
    cache(".sbt/boot"),
    readable(".ghcup"),
    readable(".cabal/bin"),
    cache(".cabal/packages"),
    readable(".stack"),
    readable(".opam"),
    readable(".elan"),
    readable(".juliaup"),
    readable(".julia"),
    readable(".dotnet"),
    cache(".nuget/packages"),
    readable(".nix-profile"),
    readable(".local/state/nix"),
    readable(".zig"),
    readable(".gitconfig"),
    readable(".config/git/config"),
    readable(".config/git/ignore"),
    readable(".config/git/attributes"),
    readable(".gitignore"),
    readable(".gitignore_global"),
    readable(".editorconfig"),
    readable(".terminfo"),
    readable(".inputrc"),
];

/// The variables that name an environment of one project, in which commands install packages: one in the scope is no
/// toolchain of the person's.
const OF_PROJECTS: &[&str] = &["VIRTUAL_ENV", "CONDA_PREFIX", "GEM_HOME", "GOPATH"];

/// Where npm puts the programs of the packages of a project.
const PACKAGES: &str = "node_modules/.bin";

/// The directory for a tool whose usual one does not exist yet, as `(variable, usual path, name
/// below the common cache)`, because commands create nothing directly in the home directory.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("npm_config_cache", ".npm", "npm"),
    ("CARGO_HOME", ".cargo", "cargo"),
    ("GOPATH", "go", "go-path"),
    ("GRADLE_USER_HOME", ".gradle", "gradle"),
];

/// Directories beside `bin` that programs need.
const BESIDE: &[&str] =
    &["lib", "lib64", "libexec", "include", "jre", "conf", "pkg", "versions", "version"];

/// Caches that are created if they are missing, by their last name; all are directories.
pub const MADE: &[&str] =
    &[".cache", "registry", "git", "pkg", "store", "repository", "packages", "caches", "wrapper"];

/// The variables that name several paths, as `PATH` does.
const LISTS: &[&str] = &["GOPATH", "KUBECONFIG"];

/// The paths of this person's tools, caches and secrets, derived from environment variables.
#[derive(Clone, Copy, Debug)]
pub struct UserPaths<'a> {
    pub env: &'a BTreeMap<String, String>,
}

impl<'a> UserPaths<'a> {
    /// The home directory; `None` if `HOME` is unset or `/`.
    pub fn home(&self) -> Option<&'a Path> {
        self.var("HOME").filter(|home| home.parent().is_some())
    }

    /// The directory for sockets and locks of programs that run.
    pub fn runtime_dir(&self) -> Option<&'a Path> {
        let is_plain = |dir: &&Path| without_parents(dir) == *dir && dir.parent().is_some();
        self.var("XDG_RUNTIME_DIR").filter(is_plain)
    }

    /// The paths that toolchains read, at their usual places below the home directory.
    pub fn readable(&self) -> Vec<PathBuf> {
        self.usual(|row| row.read)
    }

    /// The caches at their usual places below home.
    pub fn caches(&self) -> Vec<PathBuf> {
        self.usual(|row| row.write)
    }

    /// The paths that toolchains read, where a variable names them.
    pub fn readable_by_name(&self) -> Vec<PathBuf> {
        self.moved(|row| row.read)
    }

    /// The same without the environments of projects.
    fn toolchains_by_name(&self) -> Vec<PathBuf> {
        self.moved(|row| if OF_PROJECTS.contains(&row.var) { &[] } else { row.read })
    }

    /// The caches that variables name.
    pub fn caches_by_name(&self) -> Vec<PathBuf> {
        self.moved(|row| row.write)
    }

    /// The directories in which programs are searched.
    pub fn programs(&self) -> Vec<PathBuf> {
        let path = self.env.get("PATH").map_or("", String::as_str);
        let narrow = |dir: &PathBuf| dir.is_absolute() && !self.holds_home(dir);
        let mut dirs: Vec<PathBuf> = std::env::split_paths(path).filter(narrow).collect();
        dirs.sort_unstable();
        dirs.dedup();
        dirs
    }

    /// The directories of programs without those of a project's own environment, which commands install packages into.
    /// `written` is where they may write.
    pub fn guarded_programs<'p>(
        &self,
        written: impl Iterator<Item = &'p Path> + Clone,
    ) -> Vec<PathBuf> {
        let in_scope = |path: &Path| written.clone().any(|dir| path.starts_with(dir));
        let named: Vec<&Path> = OF_PROJECTS.iter().filter_map(|var| self.var(var)).collect();
        // In a scope that contains the home directory it may be the person's own.
        let has_home = self.home().is_some_and(in_scope);
        let is_projects = |dir: &Path| {
            dir.ends_with(PACKAGES)
                || named.iter().any(|place| in_scope(place) && dir.starts_with(place))
        };
        let mut all = self.programs();
        all.retain(|dir| has_home || !in_scope(dir) || !is_projects(dir));
        all
    }

    /// Directories beside a directory of programs that belong to them, such as `lib` beside `bin`.
    pub fn beside_programs(&self) -> Vec<PathBuf> {
        let dirs = self.programs();
        let parents = dirs.iter().filter_map(|dir| dir.parent());
        let own = parents.filter(|parent| !self.holds_home(parent));
        let mut all: Vec<PathBuf> = own.flat_map(|parent| joined(parent, BESIDE)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Variables that point tools whose usual directory is missing to one below the cache.
    pub fn elsewhere(&self) -> Vec<(&'static str, PathBuf)> {
        let cache = self.by_xdg(".cache").or_else(|| Some(self.home()?.join(".cache")));
        let (Some(home), Some(cache)) = (self.home(), cache) else { return Vec::new() };
        let said = |var: &str| self.env.keys().any(|name| name.eq_ignore_ascii_case(var));
        let rows = ELSEWHERE
            .iter()
            .filter(|(var, usual, _)| !said(var) && home.join(usual).symlink_metadata().is_err());
        rows.map(|(var, _, name)| (*var, cache.join(name))).collect()
    }

    /// The paths that no tool and no command may read.
    pub fn secrets(&self) -> Vec<PathBuf> {
        let machine = MACHINE_SECRETS.iter().map(PathBuf::from);
        let own = SECRETS.iter().flat_map(|(var, usual)| {
            let named = self.named(var).into_iter().filter(|path| !self.is_common(path));
            named.chain(self.below_home(usual))
        });
        let moved = SECRETS_IN.iter().flat_map(|(var, names)| {
            let dir = self.var(var).map(Path::to_owned);
            dir.into_iter().flat_map(|dir| joined(&dir, names))
        });
        let mut all: Vec<PathBuf> = machine.chain(own).chain(moved).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The secret that equals or contains this canonical path.
    pub fn secret(&self, path: &Path) -> Option<PathBuf> {
        crate::files::secret_of(path, &self.secrets()).cloned()
    }

    fn usual(&self, part: Part) -> Vec<PathBuf> {
        let rows = TOOLS.iter().filter(|row| !row.usual.is_empty());
        let below = rows.filter_map(|row| Some((self.home()?.join(row.usual), part(row))));
        below.flat_map(|(base, names)| joined(&base, names)).collect()
    }

    fn moved(&self, part: Part) -> Vec<PathBuf> {
        let bases = |row: &Row| {
            let own = self.named(row.var).into_iter().chain(self.by_xdg(row.usual));
            own.filter(|dir| !self.holds_home(dir))
        };
        let all = TOOLS.iter().flat_map(|row| bases(row).map(move |base| (base, part(row))));
        all.collect::<Vec<_>>().iter().flat_map(|(base, names)| joined(base, names)).collect()
    }

    /// Every path below the home directory with this name.
    fn below_home(&self, usual: &str) -> Vec<PathBuf> {
        let homes = self.home().into_iter().map(Path::to_owned).chain(login_home());
        homes.map(|home| home.join(usual)).chain(self.by_xdg(usual)).collect()
    }

    /// The path that an XDG variable gives to a directory that is usually below the home directory.
    fn by_xdg(&self, usual: &str) -> Option<PathBuf> {
        const XDG: [(&str, &str); 4] = [
            (".config", "XDG_CONFIG_HOME"),
            (".cache", "XDG_CACHE_HOME"),
            (".local/share", "XDG_DATA_HOME"),
            (".local/state", "XDG_STATE_HOME"),
        ];
        XDG.iter().find_map(|(base, var)| {
            let rest = Path::new(usual).strip_prefix(base).ok()?;
            let dir = self.var(var)?;
            Some(if rest.as_os_str().is_empty() { dir.into() } else { dir.join(rest) })
        })
    }

    fn var(&self, name: &str) -> Option<&'a Path> {
        let path = Path::new(self.env.get(name)?.as_str());
        path.is_absolute().then_some(path)
    }

    /// The absolute paths that a variable names.
    fn named(&self, var: &str) -> Vec<PathBuf> {
        if !LISTS.contains(&var) {
            return self.var(var).map(Path::to_owned).into_iter().collect();
        }
        let list = self.env.get(var).map_or("", String::as_str);
        std::env::split_paths(list).filter(|path| path.is_absolute()).collect()
    }

    /// Whether a variable names something that must not be hidden: a device such as `/dev/null`, or a directory that
    /// contains the home directory.
    fn is_common(&self, path: &Path) -> bool {
        path.starts_with("/dev") || self.holds_home(path)
    }

    /// Whether granting this directory would grant everything of the person's.
    fn holds_home(&self, dir: &Path) -> bool {
        dir.parent().is_none() || self.home().is_some_and(|home| home.starts_with(dir))
    }
}

/// The variables that name directories of tools and secrets.
pub fn variables() -> impl Iterator<Item = &'static str> {
    let tools = TOOLS.iter().map(|row| row.var);
    let secrets = SECRETS.iter().map(|(var, _)| *var);
    let moved = SECRETS_IN.iter().map(|(var, _)| *var);
    tools.chain(secrets).chain(moved).filter(|var| !var.is_empty())
}

/// A part of a row.
type Part = fn(&Row) -> &'static [&'static str];

fn joined(base: &Path, names: &[&str]) -> Vec<PathBuf> {
    let join = |name: &&str| if name.is_empty() { base.to_owned() } else { base.join(name) };
    names.iter().map(join).collect()
}

/// The home directory of this user in `/etc/passwd`: its secrets stay unreadable whatever `HOME`
/// is.
fn login_home() -> Option<PathBuf> {
    static HOME: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let uid = rustix::process::getuid().as_raw().to_string();
        let users = std::fs::read_to_string("/etc/passwd").ok()?;
        let own = users.lines().find(|line| line.split(':').nth(2) == Some(&uid))?;
        let home = PathBuf::from(own.split(':').nth(5)?);
        home.parent().is_some().then_some(home)
    };
    HOME.get_or_init(find).clone()
}

#[cfg(test)]
mod tests;
