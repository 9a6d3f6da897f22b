//! The files below the home directory that shells, desktops, editors and tools of the person
//! execute or read as settings. They matter if a scope contains the home directory, or the target
//! of a link in it.

use crate::sandbox::access::places::{TOOLS, UserPaths, joined};
use std::path::{Path, PathBuf};

/// Files, and directories with their content.
const OBEYED: &[&str] = &[
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/fish",
    ".config/nushell",
    ".config/starship.toml",
    ".cshrc",
    ".inputrc",
    ".kshrc",
    ".login",
    ".logout",
    ".oh-my-zsh",
    ".profile",
    ".tcshrc",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    ".config/autostart",
    ".config/environment.d",
    ".config/hypr",
    ".config/i3",
    ".config/plasma-workspace",
    ".config/sway",
    ".config/systemd",
    ".local/share/applications",
    ".local/share/dbus-1",
    ".local/share/gnome-shell",
    ".local/share/systemd",
    ".pam_environment",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".config/Code/User",
    ".config/Cursor/User",
    ".config/VSCodium/User",
    ".config/emacs",
    ".config/helix",
    ".config/kak",
    ".config/nvim",
    ".config/vim",
    ".config/zed",
    ".cursor/extensions",
    ".cursor/mcp.json",
    ".emacs",
    ".emacs.d",
    ".local/share/nvim",
    ".nanorc",
    ".vim",
    ".vimrc",
    ".vscode/extensions",
    ".vscode-server",
    ".claude/hooks",
    ".claude/settings.json",
    ".codex/config.toml",
    ".config/opencode",
    ".gemini/settings.json",
    ".Rprofile",
    ".ansible.cfg",
    ".bunfig.toml",
    ".condarc",
    ".config/containers",
    ".config/curlrc",
    ".config/direnv",
    ".config/gdb",
    ".config/git",
    ".config/hg",
    ".config/tmux",
    ".curlrc",
    ".docker/cli-plugins",
    ".forward",
    ".gdbinit",
    ".ghci",
    ".gitconfig",
    ".gradle/init.gradle",
    ".hgrc",
    ".ipython",
    ".irbrc",
    ".jupyter",
    ".lessfilter",
    ".lldbinit",
    ".mailcap",
    ".mavenrc",
    ".pryrc",
    ".psqlrc",
    ".rhosts",
    ".screenrc",
    ".shosts",
    ".sqliterc",
    ".tmux.conf",
    ".wgetrc",
    ".yarnrc",
    "bin",
];

/// A directory of a toolchain in which people store their own sources.
const SOURCES: &str = "src";

/// Directories of programs; `PATH` may name further ones.
const PROGRAMS: &str = "bin";

/// Whether a path ends in one of these names, or is below one. Used only for the text of a message.
pub fn is_obeyed_by_name(path: &Path) -> bool {
    let tools = TOOLS.iter().flat_map(|row| joined(row.usual.as_ref(), row.read));
    let names = OBEYED.iter().map(PathBuf::from).chain(tools);
    let mut names = names.filter(|name| name.iter().next().is_some() && !name.ends_with(PROGRAMS));
    names.any(|name| path.ancestors().any(|dir| dir.ends_with(&name)))
}

impl UserPaths<'_> {
    /// The files that this person's programs execute or read as settings, and toolchains, which are
    /// always read-only for commands.
    pub fn obeyed(&self) -> Vec<PathBuf> {
        let caches: Vec<PathBuf> = self.caches().into_iter().chain(self.caches_by_name()).collect();
        let holds_cache = |path: &PathBuf| caches.iter().any(|cache| cache.starts_with(path));
        let tools = self.readable().into_iter().chain(self.toolchains_by_name());
        let tools = tools.filter(|path| !holds_cache(path) && !path.ends_with(SOURCES));
        let mut all: Vec<PathBuf> =
            OBEYED.iter().flat_map(|usual| self.below_home(usual)).chain(tools).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether a canonical path is one of these or lies in one, except where a person gave that path
    /// itself or a part of it: `given` are the paths that a person gave for writing.
    pub fn is_obeyed<'p>(
        &self,
        path: &Path,
        given: impl Iterator<Item = &'p Path> + Clone,
    ) -> bool {
        let own = |place: &Path| given.clone().any(|root| root.starts_with(place));
        let is = |place: &Path| path.starts_with(place) && !own(place);
        let real = |place: &PathBuf| crate::files::led_to(place);
        self.obeyed().iter().any(|place| is(place) || real(place).is_some_and(|real| is(&real)))
    }
}
