//! Reports changes of the scripts in `package.json`, which are not guarded.

use serde_json::{Map, Value};
use std::path::Path;

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
