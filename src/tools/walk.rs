//! Walks a directory for Glob and Grep: only readable paths of the scope, limited and cancellable.

use crate::files;
use crate::scope::{Permission, Scope};
use crate::tools::fault::Fault;
use crate::tools::ignored::Ignored;
use crate::tools::scoped_path::{self, ScopedPath};
use crate::tools::{Context, guard};
use ignore::{DirEntry, Walk, WalkBuilder};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// The most entries visited in one search.
pub const MAX_ENTRIES: usize = 500_000;

/// Bytes of a glob pattern of a model, and its opening braces: the parser of patterns calls itself for each brace.
const MAX_PATTERN_BYTES: usize = 4 * 1024;
const MAX_BRACES: usize = 16;

/// Refuses a glob pattern that is too long or has too many braces.
pub fn must_be_bounded(pattern: &str) -> Result<(), Fault> {
    let braces = pattern.bytes().filter(|byte| *byte == b'{').count();
    if pattern.len() <= MAX_PATTERN_BYTES && braces <= MAX_BRACES {
        return Ok(());
    }
    Err(Fault::argument(format!(
        "bad glob pattern: it may have at most {MAX_PATTERN_BYTES} bytes and {MAX_BRACES} opening braces"
    )))
}

/// The start of a search: the given directory, or the working directory.
pub fn base(ctx: &Context, given: Option<&str>) -> Result<PathBuf, Fault> {
    let Some(given) = given.filter(|path| !path.is_empty()) else { return own(ctx) };
    base_of(ctx, &absolute(ctx, given))
}

/// A path as it is meant from the working directory.
pub fn absolute(ctx: &Context, given: &str) -> String {
    ctx.cwd.join(given).to_string_lossy().into_owned()
}

fn own(ctx: &Context) -> Result<PathBuf, Fault> {
    base_of(ctx, &ctx.cwd.to_string_lossy())
}

fn base_of(ctx: &Context, given: &str) -> Result<PathBuf, Fault> {
    if let Ok(real) = scoped_path::meant(ctx, Path::new(given)).canonicalize()
        && real.is_dir()
        && scoped_path::reaches(ctx, &real)
        && guard::closed(ctx, &real, Permission::Read).is_none()
    {
        scoped_path::must_be_decided(ctx, Path::new(given), &real)?;
        return Ok(real);
    }
    let found = ScopedPath::find(ctx, given, Permission::Read)?;
    if !found.exists {
        return Err(Fault::argument(missing(ctx, given)));
    }
    Ok(found.path)
}

/// Why nothing is searched at a path that does not exist.
pub fn missing(ctx: &Context, given: &str) -> String {
    format!("path not found: {given}{}", scoped_path::other_spelling(ctx, given.as_ref()))
}

/// A walk below `base` that skips `.git`, directories out of scope and what is ignored, and follows no link.
pub fn builder(ctx: &Context, base: &Path, ignored: Option<Arc<Ignored>>) -> WalkBuilder {
    let mut builder = WalkBuilder::new(base);
    let (ctx, top) = (ctx.clone(), base.to_owned());
    builder.standard_filters(false).follow_links(false).filter_entry(move |entry| {
        let directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        let seen =
            || scoped_path::reaches(&ctx, entry.path()) && !files::is_processes(entry.path());
        // The directory that a search names is searched, even if it is ignored.
        let named = entry.path() == top;
        let ignored =
            || !named && ignored.as_ref().is_some_and(|all| all.contains(entry.path(), directory));
        (!directory || (entry.file_name() != ".git" && seen())) && !ignored()
    });
    builder
}

/// Where a walk for a person's list of files ends: after this many entries, counting those that are left out, or at this time.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    pub entries: usize,
    pub until: Instant,
}

/// The files and directories below a canonical directory that the scope reads, without hidden and ignored ones, as far as
/// the bound goes; links are not followed.
pub fn visible(
    base: &Path,
    scope: &Scope,
    own: Vec<PathBuf>,
    bound: Bound,
) -> impl Iterator<Item = DirEntry> {
    let ignored = Ignored::of_scope(scope, own, base);
    let (reaches, reads) = (scope.clone(), scope.clone());
    let visited = AtomicUsize::new(0);
    let mut builder = WalkBuilder::new(base);
    builder.standard_filters(false).hidden(true).follow_links(false).filter_entry(move |entry| {
        let is_over = visited.fetch_add(1, Ordering::Relaxed) >= bound.entries;
        if is_over || Instant::now() >= bound.until {
            return false;
        }
        let directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        let path = entry.path();
        let seen = !directory || reaches.reaches(path) && !files::is_processes(path);
        seen && (entry.depth() == 0 || !ignored.contains(path, directory))
    });
    let entries = builder.build().flatten().filter(|entry| entry.depth() > 0);
    entries.filter(move |entry| reads.permission(entry.path()) >= Some(Permission::Read))
}

/// The readable regular files of a walk, in its order.
pub struct Files<'a> {
    walk: Walk,
    ctx: &'a Context,
    cancel: &'a CancellationToken,
    seen: usize,
    /// Whether a rule may deny a file to Read.
    some_denied: bool,
    /// The files that were left out because a rule denies them to Read.
    denied: usize,
    /// It ended before all entries were visited.
    cut: bool,
}

impl<'a> Files<'a> {
    pub fn of(walk: Walk, ctx: &'a Context, cancel: &'a CancellationToken) -> Self {
        let some_denied = ctx.rules.may_deny_reading();
        Self { walk, ctx, cancel, seen: 0, some_denied, denied: 0, cut: false }
    }

    /// The next file, `None` at the end.
    pub fn next(&mut self) -> Result<Option<DirEntry>, Fault> {
        loop {
            if self.cancel.is_cancelled() {
                return Err(Fault::cancelled());
            }
            if self.seen >= MAX_ENTRIES {
                self.cut = true;
                return Ok(None);
            }
            self.seen += 1;
            // A directory that cannot be listed counts as empty for a model.
            let Some(entry) = self.walk.next() else { return Ok(None) };
            let Ok(entry) = entry else { continue };
            let file = entry.file_type().is_some_and(|kind| kind.is_file());
            if !file || !scoped_path::readable(self.ctx, entry.path()) {
                continue;
            }
            if self.some_denied && self.ctx.rules.deny_reading(entry.path(), &self.ctx.cwd) {
                self.denied += 1;
                continue;
            }
            return Ok(Some(entry));
        }
    }

    /// What the summary of a search below `base` adds about files that it did not visit.
    pub fn left_out(&self, base: &Path) -> String {
        let part = match scoped_path::readable(self.ctx, base) {
            true => "",
            false => "; only what your scope holds of it was searched",
        };
        let denied = match self.denied {
            0 => String::new(),
            denied => format!("; {denied} file(s) that a rule denies to Read are left out"),
        };
        let cut =
            if self.cut { format!("; stopped after {MAX_ENTRIES} entries") } else { String::new() };
        part.to_owned() + &denied + &cut
    }
}
