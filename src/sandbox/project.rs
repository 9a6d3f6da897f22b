//! Files of a project that direnv, editors and development containers execute or read as settings
//! when a person enters or opens its directory.

use crate::files::{canonical, led_to};
use crate::sandbox::view::RULES;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The directory of Visual Studio Code, of which only some files are guarded.
pub const VSCODE: &str = ".vscode";

/// Their names below the directory of the project. A directory includes its content.
pub const PROJECT_FILES: [&str; 12] = [
    ".envrc",
    ".vscode/tasks.json",
    ".vscode/settings.json",
    ".vscode/launch.json",
    ".idea",
    ".devcontainer",
    ".devcontainer.json",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".vimrc",
    ".vim",
];

/// Whether a path is a project file at any depth, or lies in such a directory.
pub fn is_project_file(path: &Path) -> bool {
    path.ancestors().any(|dir| PROJECT_FILES.iter().any(|name| dir.ends_with(name)))
}

/// Whether a project file or a `.yoi`, in one of these directories or an ancestor, is a link to
/// `path` or to an ancestor of it. Reads the disk.
pub fn is_behind_project_file<'a>(path: &Path, dirs: impl Iterator<Item = &'a Path>) -> bool {
    let dirs: BTreeSet<&Path> = dirs.flat_map(Path::ancestors).collect();
    let files = dirs.iter().flat_map(|dir| below(dir).chain([dir.join(RULES)]));
    let mut real = files.filter_map(|file| led_to(&file).filter(|real| *real != file));
    real.any(|real| path.starts_with(real))
}

/// The project files below a writable directory, and those that contain it.
pub fn in_and_around(root: &Path) -> impl Iterator<Item = PathBuf> {
    let all = root.ancestors().flat_map(below);
    all.filter(move |path| path.starts_with(root) || root.starts_with(path))
}

/// The paths of the project files of a directory, existing or not.
pub fn below(dir: &Path) -> impl Iterator<Item = PathBuf> {
    PROJECT_FILES.into_iter().map(move |name| dir.join(name))
}

/// Whether naming a path grants one of these files: it is the file, or the directory of Visual
/// Studio Code.
pub fn opens(named: &Path, file: &Path) -> bool {
    named == file || named.ends_with(VSCODE) && file.parent() == Some(named)
}

/// The target of a dangling link.
pub fn dangling(path: &Path) -> Option<PathBuf> {
    let target = led_to(path).filter(|_| path.is_symlink() && !path.exists())?;
    let dir = canonical(target.parent()?).ok()?;
    Some(dir.join(target.file_name()?))
}
