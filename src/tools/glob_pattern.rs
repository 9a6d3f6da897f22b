//! Glob patterns as people write them: `app/[slug]/*.tsx` and `{{name}}/*.py` name directories that are called so.

use globset::GlobBuilder;
use std::path::{Path, PathBuf};

/// Groups of brackets in a pattern that are taken both as a name and as a class.
const MAX_GROUPS: usize = 8;
const SPECIAL: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// The pattern, relative to the directory of the search, in the language of `globset`. A part of it between slashes
/// that is a name on the disk means that name. Where the disk was not looked at, as behind `**`, a group of
/// brackets is a name or a class, and one that cannot be a class is a name.
pub fn as_meant(pattern: &str, base: &Path) -> String {
    let below = base.to_str().and_then(|base| pattern.strip_prefix(base));
    let pattern = below.filter(|rest| rest.starts_with('/')).unwrap_or(pattern);
    let (mut known, mut groups) = (Some(base.to_owned()), 0);
    let parts = parts(pattern).into_iter().filter(|part| *part != ".");
    let parts = parts.map(|part| meant(part, &mut known, &mut groups));
    let mut meant = parts.collect::<Vec<_>>().join("/");
    // In a list of patterns these would be a comment, and blanks that nobody sees.
    if meant.starts_with('#') {
        meant.insert(0, '\\');
    }
    if let Some(blank) = meant.chars().next_back().filter(|c| c.is_whitespace()) {
        meant.truncate(meant.len() - blank.len_utf8());
        meant.push_str(&format!("[{blank}]"));
    }
    meant
}

/// The parts between slashes that are not in braces.
fn parts(pattern: &str) -> Vec<&str> {
    let (mut depth, mut is_escaped) = (0_usize, false);
    let is_end = |c: char| {
        match c {
            '{' if !is_escaped => depth += 1,
            '}' if !is_escaped => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
        c == '/' && depth == 0
    };
    pattern.split(is_end).collect()
}

/// One part; `known` is the directory on the disk that holds it.
fn meant(part: &str, known: &mut Option<PathBuf>, groups: &mut usize) -> String {
    let there = known.take().map(|dir| dir.join(part));
    if !part.contains(SPECIAL) {
        *known = there;
        return part.to_owned();
    }
    let is_name = |path: &PathBuf| path.symlink_metadata().is_ok();
    if let Some(path) = there.filter(|path| !part.contains(['*', '?', '\\']) && is_name(path)) {
        *known = Some(path);
        return escaped(part);
    }
    let (mut meant, mut rest) = (String::new(), part);
    while let Some(at) = rest.find(['[', '\\']) {
        meant.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = match rest.starts_with('\\') {
            true => rest.chars().take(2).map(char::len_utf8).sum(),
            false => class_end(rest),
        };
        let (group, after) = rest.split_at(end);
        let is_class = group.len() > 1 && GlobBuilder::new(group).build().is_ok();
        match group.starts_with('[') {
            true if !is_class => meant.push_str(&escaped(group)),
            true if *groups < MAX_GROUPS => {
                *groups += 1;
                meant.push_str(&format!("{{{},{group}}}", escaped(group)));
            }
            _ => meant.push_str(group),
        }
        rest = after;
    }
    meant + rest
}

/// Where the class ends that a text begins with; 1 if it does not end.
fn class_end(text: &str) -> usize {
    let inside = text[1..].trim_start_matches(['!', '^']);
    let from = text.len() - inside.len();
    // A bracket at the beginning is one of the characters.
    let first = inside.chars().next().map_or(0, char::len_utf8);
    inside[first..].find(']').map_or(1, |at| from + first + at + 1)
}

fn escaped(name: &str) -> String {
    let special = |c: char| SPECIAL.contains(&c) || matches!(c, ',' | '!' | '#');
    name.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_a_name_on_the_disk_means_that_name() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["app/[slug]/x", "app/{{name}}", "[...rest]"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        for (pattern, expected) in [
            ("src/*.{rs,toml}", "src/*.{rs,toml}"),
            ("./app/[slug]/x/*", r"app/\[slug\]/x/*"),
            ("app/{{name}}/**", r"app/\{\{name\}\}/**"),
            ("[...rest]/*", r"\[...rest\]/*"),
            ("**/[slug]/*.[jt]s", r"**/{\[slug\],[slug]}/*.{\[jt\],[jt]}s"),
            ("app/[[...all]]/x", r"app/{\[\[...all\],[[...all]}]/x"),
            ("{a,b/[c]}/[user-id]", r"{a,b/{\[c\],[c]}}/\[user-id\]"),
            (r"a\[b/[]c]", r"a\[b/{\[\]c\],[]c]}"),
            ("a[", r"a\["),
            ("#a ", r"\#a[ ]"),
        ] {
            assert_eq!(as_meant(pattern, dir.path()), expected, "{pattern}");
        }
        let absolute = format!("{}/app/*", dir.path().display());
        assert_eq!(as_meant(&absolute, dir.path()), "/app/*");
    }
}
