//! Glob: files by the pattern of their path.

use crate::tools::fault::Fault;
use crate::tools::glob_pattern::as_meant;
use crate::tools::walk::{self, Files};
use crate::tools::{Context, Output, input, scoped_path, text_limit};
use globset::{GlobBuilder, GlobSet};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;
use tokio_util::sync::CancellationToken;

pub const DESCRIPTION: &str = "Finds files by a glob pattern such as **/*.rs or src/{a,b}/*.toml, \
newest first, at most 1000. `*` does not cross a directory, `**` does. Hidden and git-ignored \
files are included, .git is not.";

/// Paths in a result.
const MAX: usize = 1000;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// The pattern, relative to path or absolute.
    pattern: String,
    /// The directory to search; the working directory by default.
    path: Option<String>,
}

pub fn glob(arguments: &str, ctx: &Context, cancel: &CancellationToken) -> Result<Output, Fault> {
    let input: Input = input::parse("Glob", arguments)?;
    let (base, pattern) = split(input.path, &input.pattern);
    let base = walk::base(ctx, base.as_deref())?;
    let directory = pattern.trim_end_matches('/');
    let is_within = |path: &Path| path.components().all(|part| part != Component::ParentDir);
    let is_directory =
        !directory.is_empty() && is_within(directory.as_ref()) && base.join(directory).is_dir();
    let pattern = if is_directory { format!("{directory}/**") } else { pattern };
    let matcher = matcher(&pattern, &base)?;
    let mut files = Files::of(walk::builder(ctx, &base, None).build(), ctx, cancel);
    let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
    while let Some(entry) = files.next()? {
        let Ok(relative) = entry.path().strip_prefix(&base) else { continue };
        if matcher.is_match(relative) {
            let changed = entry.metadata().ok().and_then(|meta| meta.modified().ok());
            found.push((changed.unwrap_or(SystemTime::UNIX_EPOCH), entry.into_path()));
        }
    }
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    // The walk goes by paths, which a command may exchange for links meanwhile.
    let mut shown = 0;
    found.retain(|(_, path)| {
        let may_name = shown >= MAX || scoped_path::may_name(ctx, path);
        shown += usize::from(may_name);
        may_name
    });
    let mut left_out = files.left_out(&base);
    if is_directory {
        left_out.push_str(&format!("; the pattern is a directory, so {pattern} was searched"));
    }
    Ok(result(&found, &left_out, &pattern, &base))
}

/// An absolute pattern is a directory without wildcards and the pattern below it.
fn split(path: Option<String>, pattern: &str) -> (Option<String>, String) {
    if !pattern.starts_with('/') {
        return (path, pattern.into());
    }
    let wild = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
    let cut = pattern[..wild].rfind('/').unwrap_or(0);
    let base = if cut == 0 { "/" } else { &pattern[..cut] };
    (Some(base.into()), pattern[cut + 1..].into())
}

/// Where a search begins that is not in the working directory.
pub fn base(path: Option<String>, pattern: &str) -> Option<String> {
    split(path, pattern).0.filter(|base| !base.is_empty())
}

fn matcher(pattern: &str, base: &Path) -> Result<GlobSet, Fault> {
    walk::must_be_bounded(pattern)?;
    let glob = GlobBuilder::new(&as_meant(pattern, base)).literal_separator(true).build();
    // A set says what a single matcher would panic on: a pattern that is too large for its automaton.
    glob.and_then(|glob| GlobSet::new([glob]))
        .map_err(|error| Fault::argument(format!("bad glob pattern: {error}")))
}

fn result(found: &[(SystemTime, PathBuf)], left_out: &str, pattern: &str, base: &Path) -> Output {
    let mut summary = format!("Found {} file(s) in {}", found.len(), base.display());
    if found.len() > MAX {
        summary.push_str(&format!(", the newest {MAX} are shown"));
    }
    summary.push_str(left_out);
    if found.is_empty() && !pattern.contains('/') {
        summary.push_str(&format!("; **/{pattern} looks in subdirectories too"));
    }
    let lines: Vec<String> =
        found.iter().take(MAX).map(|(_, path)| text_limit::name(&path.display())).collect();
    if lines.is_empty() { Output::line(summary) } else { Output::with(summary, lines.join("\n")) }
}
