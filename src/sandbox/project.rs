//! Files of a project that editors and agents execute or read as settings when a person opens its directory.

use crate::files::{canonical, led_to};
use crate::sandbox::view::RULES;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Their names below the directory of the project, each with the program that obeys it without asking the person. A
/// directory includes its content.
pub const PROJECT_FILES: [(&str, &str); 32] = [
    (".vim/coc-settings.json", "coc.nvim"),
    (".zed/debug.json", "Zed"),
    (".zed/settings.json", "Zed"),
    (".zed/tasks.json", "Zed"),
    (".mcp.json", "Claude Code"),
    (".claude/hooks", "Claude Code"),
    (".claude/settings.json", "Claude Code"),
    (".claude/settings.local.json", "Claude Code"),
    (".codex/config.toml", "Codex"),
    (".codex/hooks.json", "Codex"),
    (".cursor/cli.json", "Cursor"),
    (".cursor/hooks.json", "Cursor"),
    (".cursor/mcp.json", "Cursor"),
    (".crush.json", "Crush"),
    ("crush.json", "Crush"),
    (".gemini/.env", "Gemini CLI"),
    (".gemini/extensions", "Gemini CLI"),
    (".gemini/settings.json", "Gemini CLI"),
    // Helix asks only since 2026.
    (".helix/config.toml", "Helix"),
    (".helix/languages.toml", "Helix"),
    (".hg/hgrc", "Mercurial"),
    (".hg/hgrc-not-shared", "Mercurial"),
    (".hg/sharedpath", "Mercurial"),
    (".kiro/settings/mcp.json", "Kiro"),
    (".opencode", "opencode"),
    ("opencode.json", "opencode"),
    ("opencode.jsonc", "opencode"),
    (".qwen/.env", "Qwen Code"),
    (".qwen/extensions", "Qwen Code"),
    (".qwen/settings.json", "Qwen Code"),
    (".roo/mcp.json", "Roo Code"),
    (".windsurf/mcp_config.json", "Windsurf"),
];
/// Files whose programs ask the person first, or run them only for a verb of the person. They are not guarded: the result
/// of a command names those that it changed.
pub const ASKED: [(&str, &str); 28] = [
    (".envrc", "direnv"),
    (".vscode/tasks.json", "VS Code"),
    (".vscode/settings.json", "VS Code"),
    (".vscode/launch.json", "VS Code"),
    (".vscode/mcp.json", "VS Code"),
    (".idea", "JetBrains"),
    (".devcontainer", "development containers"),
    (".devcontainer.json", "development containers"),
    (".exrc", "Vim"),
    (".nvimrc", "Neovim"),
    (".nvim.lua", "Neovim"),
    (".vimrc", "Vim"),
    (".pre-commit-config.yaml", "pre-commit"),
    (".husky", "husky"),
    ("lefthook.yml", "lefthook"),
    ("lefthook.yaml", "lefthook"),
    (".cargo/config.toml", "cargo"),
    (".npmrc", "npm"),
    ("mise.toml", "mise"),
    (".mise.toml", "mise"),
    (".bazelrc", "Bazel"),
    (".factory", "Factory"),
    (".mvn", "Maven"),
    (".pi", "pi"),
    (".pnpmfile.cjs", "pnpm"),
    (".yarnrc.yml", "Yarn"),
    ("rust-toolchain", "rustup"),
    ("rust-toolchain.toml", "rustup"),
];

/// Whether only some files of a directory are guarded, as in that of Visual Studio Code.
pub fn is_guarded_in_part(dir: &Path) -> bool {
    let mut parts = PROJECT_FILES.into_iter().filter_map(|(name, _)| name.rsplit_once('/'));
    parts.any(|(name, _)| dir.ends_with(name))
}

/// Whether a path is a project file at any depth, or lies in such a directory.
pub fn is_project_file(path: &Path) -> bool {
    path.ancestors().any(|dir| PROJECT_FILES.iter().any(|(name, _)| dir.ends_with(name)))
}

/// Whether a project file or a `.yoi`, in one of these directories or an ancestor, is a link to
/// `path` or to an ancestor of it, but not to the whole of a path that a person gave. Reads the disk.
pub fn is_behind_project_file<'a>(
    path: &Path,
    dirs: impl Iterator<Item = &'a Path>,
    given: impl Iterator<Item = &'a Path> + Clone,
) -> bool {
    let dirs = with_ancestors(dirs);
    let files = dirs.iter().flat_map(|dir| below(dir).chain([dir.join(RULES)]));
    let mut real = files.filter_map(|file| led_to(&file).filter(|real| *real != file));
    real.any(|real| path.starts_with(&real) && !given.clone().any(|given| given.starts_with(&real)))
}

/// The project files of these directories and of their ancestors. One that lies outside can be a link into them.
pub fn in_and_around<'a>(dirs: impl Iterator<Item = &'a Path>) -> impl Iterator<Item = PathBuf> {
    with_ancestors(dirs).into_iter().flat_map(below)
}

fn with_ancestors<'a>(dirs: impl Iterator<Item = &'a Path>) -> BTreeSet<&'a Path> {
    dirs.flat_map(Path::ancestors).collect()
}

/// The paths of the project files of a directory, existing or not.
pub fn below(dir: &Path) -> impl Iterator<Item = PathBuf> {
    PROJECT_FILES.into_iter().map(move |(name, _)| dir.join(name))
}

/// Whether naming a path grants one of these files: it is the file, or its directory of which only some
/// files are guarded.
pub fn opens(named: &Path, file: &Path) -> bool {
    named == file || is_guarded_in_part(named) && file.parent() == Some(named)
}

/// The target of a dangling link.
pub fn dangling(path: &Path) -> Option<PathBuf> {
    let target = led_to(path).filter(|_| path.is_symlink() && !path.exists())?;
    let dir = canonical(target.parent()?).ok()?;
    Some(dir.join(target.file_name()?))
}
