//! What the commands of a Pod get, and which files tell it how to work, in labelled lines.

use crate::wording::duration::in_words;
use crate::wording::scope::path;
use std::path::PathBuf;
use yoi::protocol::{CommandSheet, InstructionFile, OwnPlace, ShutPlace};
use yoi::text::SafeText;

/// What the next command of a Pod gets.
pub fn sheet(sheet: &CommandSheet) -> Vec<(&'static str, String)> {
    let mistakes = sheet.mistakes.iter().map(|mistake| ("settings", spelled(mistake)));
    let mut lines: Vec<_> = mistakes.chain(sheet.instructions.iter().map(instructions)).collect();
    lines.extend(sheet.learned.iter().map(|learned| ("model", spelled(learned))));
    lines.push(("commands", spelled(&sheet.sandbox)));
    let paths = |paths: &[PathBuf]| list(paths.iter().map(|dir| path(dir)));
    lines.push(("they write", paths(&sheet.write)));
    lines.push(("they read", paths(&sheet.read)));
    lines.push(("caches", paths(&sheet.caches)));
    lines.push(("their own", list(sheet.own.iter().map(own))));
    lines.extend(sheet.shut.iter().map(|place| ("shut", shut(place))));
    lines.extend(sheet.cost.iter().map(|cost| ("not possible", spelled(cost))));
    lines.push(("network", "only with needs network, beside their own".into()));
    lines.push(("variables", list(sheet.env.iter().map(|name| spelled(name)))));
    lines.push(("withheld", list(sheet.withheld.iter().map(|name| spelled(name)))));
    lines.extend(sheet.limits.iter().map(|limit| ("limit", spelled(limit))));
    lines.retain(|(_, text)| !text.is_empty());
    lines
}

fn instructions(file: &InstructionFile) -> (&'static str, String) {
    let age = file.age_s.map(|age| format!(", written {} ago", in_words(age.saturating_mul(1000))));
    let changed = match file.changed {
        false => "",
        true => {
            "; it changed, and the model reads that when its next run begins or uses its directory"
        }
    };
    ("instructions", format!("{}{}{changed}", path(&file.path), age.unwrap_or_default()))
}

fn own(OwnPlace { path: place, kept, mib }: &OwnPlace) -> String {
    let lasts = if *kept { "kept" } else { "gone with each command" };
    format!("{} ({mib} MiB, {lasts})", path(place))
}

fn shut(ShutPlace { path: place, read, why }: &ShutPlace) -> String {
    let left = if *read { "read-only" } else { "hidden" };
    format!("{} ({left}: {})", path(place), spelled(why))
}

fn list(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

fn spelled(text: &str) -> String {
    SafeText::spelled(text).into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_place_has_its_line_and_what_is_empty_has_none() {
        let text = sheet(&CommandSheet {
            sandbox: "sandbox on".into(),
            write: vec!["/w".into(), "/x\u{1b}[2K".into()],
            own: vec![OwnPlace { path: "/tmp".into(), kept: true, mib: 1024 }],
            shut: vec![
                ShutPlace { path: "/w/.git/hooks".into(), read: true, why: "git runs it".into() },
                ShutPlace { path: "/w/key".into(), read: false, why: "secret".into() },
            ],
            env: vec!["HOME".into(), "PATH".into()],
            withheld: vec!["AWS_SECRET".into()],
            learned: vec!["requests to a/b leave `c` out: unknown\u{7}".into()],
            instructions: [
                ("/w/AGENTS.md", Some(300), true),
                ("/w/a\u{1b}[2K/AGENTS.md", None, false),
            ]
            .map(|(path, age_s, changed)| InstructionFile { path: path.into(), age_s, changed })
            .into(),
            ..CommandSheet::default()
        });
        let lines: Vec<String> =
            text.iter().map(|(label, text)| format!("{label}: {text}")).collect();
        let expected = [
            "instructions: /w/AGENTS.md, written 5 min ago; it changed, and the model reads that when its next run \
             begins or uses its directory",
            "instructions: /w/a\\x1b[2K/AGENTS.md",
            "model: requests to a/b leave `c` out: unknown\\x07",
            "commands: sandbox on",
            "they write: /w, /x\\x1b[2K",
            "their own: /tmp (1024 MiB, kept)",
            "shut: /w/.git/hooks (read-only: git runs it)",
            "shut: /w/key (hidden: secret)",
            "network: only with needs network, beside their own",
            "variables: HOME, PATH",
            "withheld: AWS_SECRET",
        ];
        assert_eq!(lines, expected);
    }
}
