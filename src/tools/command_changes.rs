//! What a command changed of the files that the model has read: its result shows it, and those files
//! count as read again.

use crate::files::Limit;
use crate::protocol::FileMark;
use crate::scope::Permission;
use crate::tools::line_diff::line_diff;
use crate::tools::scoped_path::ScopedPath;
use crate::tools::{Context, text_limit};
use std::path::{Path, PathBuf};

/// Bytes of one file that is compared, and of all of them.
const MAX_FILE: u64 = 256 * 1024;
const MAX_ALL: usize = 4 * 1024 * 1024;
/// Bytes of the changes that a result shows.
const MAX_SHOWN: usize = 8 * 1024;
/// Files that are named although their change is not shown.
const MAX_NAMED: usize = 20;

/// The files whose content the model knows, as they are before a command.
#[derive(Debug, Default)]
pub struct KnownFiles(Vec<(PathBuf, Vec<u8>)>);

/// The changes of known files.
#[derive(Debug, Default)]
pub struct KnownChanges {
    /// Lines for the result.
    pub lines: Vec<String>,
    /// The files whose change is shown whole.
    pub files: Vec<FileMark>,
}

impl KnownFiles {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the files that still have the content that the model has read. `ctx` is canonical. Blocking.
    pub fn read(ctx: &Context) -> Self {
        let (mut known, mut all) = (Vec::new(), 0);
        for (path, hash) in &ctx.read {
            if all >= MAX_ALL {
                break;
            }
            let Some(bytes) = content(ctx, path) else { continue };
            if text_limit::hash(&bytes) == *hash {
                all += bytes.len();
                known.push((path.clone(), bytes));
            }
        }
        Self(known)
    }

    /// What became of them. Blocking.
    pub fn changes(self, ctx: &Context) -> KnownChanges {
        let (mut changes, mut room, mut unshown) = (KnownChanges::default(), MAX_SHOWN, Vec::new());
        for (path, before) in self.0 {
            let now = match content(ctx, &path) {
                Some(now) if now == before => continue,
                Some(now) => now,
                None => {
                    unshown.push(path);
                    continue;
                }
            };
            let texts = std::str::from_utf8(&before).ok().zip(std::str::from_utf8(&now).ok());
            let diff = texts.and_then(|(before, now)| line_diff(before, now));
            match diff.filter(|diff| diff.len() <= room) {
                Some(diff) => {
                    room -= diff.len();
                    let name = path.display();
                    changes.lines.push(format!("[{name} changed while this command ran]\n{diff}"));
                    changes.files.push(FileMark {
                        hash: text_limit::hash(&now),
                        path,
                        before: None,
                    });
                }
                None => unshown.push(path),
            }
        }
        changes.lines.extend(named(&unshown));
        changes
    }
}

/// The sentence about files whose change is not shown.
fn named(paths: &[PathBuf]) -> Option<String> {
    let names = paths.iter().take(MAX_NAMED).map(|path| path.display().to_string());
    let names = names.collect::<Vec<_>>().join(", ");
    let more = match paths.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!paths.is_empty()).then(|| {
        format!("[changed or removed while this command ran: {names}{more}; use Read on them before you edit them]")
    })
}

fn content(ctx: &Context, path: &Path) -> Option<Vec<u8>> {
    let given = path.to_str()?;
    let limit = Limit::whole(MAX_FILE);
    ScopedPath::read_as_far(ctx, given, Permission::Read, limit).ok().map(|(_, found)| found.bytes)
}
