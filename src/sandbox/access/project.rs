//! Files of a project that editors and agents execute or read as settings when a person opens its directory.

use crate::files::{canonical, led_to};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The directory of a workspace with its settings of yoi.
pub const RULES: &str = ".yoi";

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

/// The file of a Node package.
pub const PACKAGE: &str = "package.json";
/// The most names that are shown of one change, besides those that run on their own.
const SHOWN: usize = 10;
/// The scripts that an installation or the making of a package runs without being asked for them (npm, `using-npm/scripts`).
const ON_THEIR_OWN: [&str; 12] = [
    "preinstall",
    "install",
    "postinstall",
    "preprepare",
    "prepare",
    "postprepare",
    "prepublish",
    "prepublishOnly",
    "prepack",
    "postpack",
    "dependencies",
    "uninstall",
];

/// Names the `scripts` that differ between two contents of a `package.json`; `None` for every other
/// file and if none differs. Invalid JSON has no scripts.
pub fn changed_package_scripts(path: &Path, before: Option<&[u8]>, now: &[u8]) -> Option<String> {
    if path.file_name()? != PACKAGE {
        return None;
    }
    let (before, now) = (scripts(before.unwrap_or_default()), scripts(now));
    let other = |name: &&String| before.get(*name) != now.get(*name);
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    let (mut names, others): (Vec<&String>, Vec<&String>) = now
        .keys()
        .filter(other)
        .chain(gone)
        .partition(|name| ON_THEIR_OWN.contains(&name.as_str()));
    let more = others.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.extend(others.into_iter().take(SHOWN));
    let shown = names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let path = path.display();
    (!names.is_empty()).then(|| {
        format!(
            "the scripts {shown}{more} in {path} changed: package managers run them as programs"
        )
    })
}

fn scripts(package: &[u8]) -> Map<String, Value> {
    let package: Value = serde_json::from_slice(package).unwrap_or_default();
    package.get("scripts").and_then(Value::as_object).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(before: &str, now: &str) -> Option<String> {
        changed_package_scripts(
            Path::new("/w/package.json"),
            Some(before.as_bytes()),
            now.as_bytes(),
        )
    }

    #[test]
    fn a_change_of_scripts_is_said_and_no_other() {
        let first = r#"{"name": "a", "scripts": {"test": "x", "build": "y"}}"#;
        assert_eq!(
            said(first, r#"{"scripts": {"build": "y", "test": "x"}, "version": "2"}"#),
            None
        );
        let now = r#"{"scripts": {"test": "x; y", "prepare\n": "z"}}"#;
        let expected = "the scripts \"prepare\\n\", \"test\", \"build\" in /w/package.json changed: package \
                        managers run them as programs";
        assert_eq!(said(first, now).as_deref(), Some(expected));
        assert_eq!(said("{", first).map(|said| said.contains("\"build\", \"test\"")), Some(true));
        let many: Vec<String> = (0..12).map(|n| format!("\"s{n}\": \"\"")).collect();
        let many = format!("{{\"scripts\": {{{}}}}}", many.join(","));
        assert!(said("", &many).is_some_and(|said| said.contains(" and 2 more in ")));
        let last = many.replace("\"s11\"", "\"postinstall\"");
        let last = said("", &last).expect("a change");
        assert!(last.starts_with("the scripts \"postinstall\", \"s0\", "), "{last}");
        let other = changed_package_scripts(Path::new("/w/other.json"), None, first.as_bytes());
        assert_eq!(other, None);
    }
}
