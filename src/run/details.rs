//! What a tool call carries besides the action it names, as an approval request shows it.

use crate::files::{self, FileError, Limit, Miss};
use crate::run::policy::MAX_DETAILS;
use crate::text::SafeText;
use crate::tools::Tool;
use crate::tools::file_text::FileText;
use crate::tools::line_diff::line_diff;
use serde_json::Value;
use std::borrow::Cow;
use std::path::Path;

/// The most blank rows in a row that are shown as they are.
const GAP: usize = 3;
/// Bytes of a file that is compared with the text which replaces it.
const MAX_COMPARED: u64 = 1024 * 1024;

/// The details of a call of the program's own tool: for `Write` and `Edit` the lines that go (`- `) and come (`+ `),
/// for every other tool each argument under its name. `None` if the action says everything.
pub(crate) fn details(tool: &Tool, arguments: &Value) -> Option<String> {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    match tool.name {
        "Write" => text("content").map(|content| marked("+ ", content)),
        "Edit" => {
            let (old, new) = (text("old_string")?, text("new_string")?);
            // Models write a truth value as text, too, and the tool takes it.
            let all = |value: &Value| {
                value == true || value.as_str().is_some_and(|text| text.trim() == "true")
            };
            let each =
                if arguments.get("replace_all").is_some_and(all) { "at each place:\n" } else { "" };
            Some(format!("{each}{}\n{}", marked("- ", old), marked("+ ", new)))
        }
        _ => {
            // An approval request has lines of its own for the model's reason, the needs and their paths.
            let own = ["reason", "needs", "outside"];
            let said = |name: &str| tool.telling.contains(&name) || own.contains(&name);
            let shown: Vec<String> = arguments
                .as_object()?
                .iter()
                .filter(|(name, _)| !said(name))
                .map(|(name, value)| named(name, value))
                .collect();
            (!shown.is_empty()).then(|| shown.join("\n"))
        }
    }
}

/// The details of a call of an external tool, whose action is the JSON text of all its arguments: each argument under
/// its name if one of them has several lines. None is left out, because the schema is its server's.
pub(crate) fn details_of_external(arguments: &Value) -> Option<String> {
    let arguments = arguments.as_object()?;
    let has_lines = |value: &Value| value.as_str().is_some_and(|text| text.contains('\n'));
    let all = arguments.iter().map(|(name, value)| named(name, value)).collect::<Vec<_>>();
    arguments.values().any(has_lines).then(|| all.join("\n"))
}

/// The details of a `Write` to this canonical path: the lines that go and come if it replaces a file. Where those
/// cannot be shown, a sentence says why, and the whole new text follows. `None` if there is no such file.
pub(crate) fn replacement(path: &Path, content: &str) -> Option<String> {
    let instead = |why: &str| format!("it replaces {why}\n{}", marked("+ ", content));
    // A file without a directory above it is `/`, which is none.
    let found = match files::read_below(path.parent()?, path, Limit::whole(MAX_COMPARED)) {
        Ok(found) => found,
        Err(Miss::Moved | Miss::Error(FileError::Missing(..))) => return None,
        Err(Miss::Error(FileError::TooLarge { size, .. })) => {
            return Some(instead(&format!(
                "a file of {}, too large to compare:",
                files::size(size)
            )));
        }
        Err(Miss::Error(error)) => {
            return Some(instead(&format!("a file not shown here ({error}):")));
        }
    };
    let old = FileText::of(&found.bytes);
    if old.encoding.is_some() {
        return Some(instead(&format!("a file of {} that is no text:", files::size(found.size))));
    }
    let (now, new) = (old.marked(&old.text), old.rewritten(content));
    let changed = match now == new {
        true => "the file has this content already".to_owned(),
        false => without_long_gaps(&line_diff(&now, &new).unwrap_or_default()),
    };
    let shown = !changed.is_empty() && changed.len() <= MAX_DETAILS;
    Some(if shown {
        changed
    } else {
        instead(&format!("a text of {}, too different to show:", files::size(found.size)))
    })
}

fn named(name: &str, value: &Value) -> String {
    let name = SafeText::spelled(name);
    match value.as_str() {
        Some(text) if text.contains('\n') => format!("{name}:\n{}", marked("  ", text)),
        Some(text) => format!("{name}: {text}"),
        None => format!("{name}: {value}"),
    }
}

/// A text with a mark before each of its lines.
fn marked(mark: &str, text: &str) -> String {
    let lines: Vec<String> =
        text.split_terminator('\n').map(|line| format!("{mark}{line}")).collect();
    match lines.is_empty() {
        true => format!("{mark}(nothing)"),
        false => without_long_gaps(&lines.join("\n")),
    }
}

/// The rows, in which a long run of blank rows of one mark is their number: it could push the rest out of sight.
fn without_long_gaps(rows: &str) -> String {
    let blank = |row: &str| {
        let mark = row.chars().next();
        row.chars().skip(1).all(|c| matches!(c, ' ' | '\t' | '\r')).then_some(mark)
    };
    // What is too long is refused, whatever it consists of.
    if rows.len() > MAX_DETAILS {
        return rows.to_owned();
    }
    let mut shown: Vec<Cow<'_, str>> = Vec::new();
    let rows: Vec<&str> = rows.split('\n').collect();
    for run in rows.chunk_by(|one, next| blank(one).is_some() && blank(one) == blank(next)) {
        match run {
            [first, ..] if run.len() > GAP => {
                let mark = first.chars().next().unwrap_or(' ');
                shown.push(format!("{mark} ⟨{} blank lines⟩", run.len()).into());
            }
            run => shown.extend(run.iter().map(|row| Cow::from(*row))),
        }
    }
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::line_diff::MAX_LINES;
    use serde_json::json;

    fn details_of(tool: &str, arguments: &Value) -> Option<String> {
        details(crate::tools::find(tool).unwrap(), arguments)
    }

    #[test]
    fn an_argument_of_several_lines_of_an_external_tool_stands_under_its_name_with_all_others() {
        let hiding =
            json!({ "command": "a\nb", "needs": ["x"], "outside": 1, "reason": "r", "x\ny": {} });
        let rows = "command:\n  a\n  b\nneeds: [\"x\"]\noutside: 1\nreason: r\nx⏎y: {}";
        assert_eq!(details_of_external(&hiding).unwrap(), rows);
        assert_eq!(details_of_external(&json!({ "command": "a", "name": "b" })), None);
    }

    #[test]
    fn a_change_of_a_file_shows_each_line_that_goes_and_comes() {
        let write = json!({ "file_path": "/w/a", "content": "#!/bin/sh\nrm x\n" });
        assert_eq!(details_of("Write", &write).unwrap(), "+ #!/bin/sh\n+ rm x");
        let far = format!("a\n{}b\n\n\nc\n{}", " \n\t\r\n".repeat(1500), "\t\n".repeat(4));
        let far = json!({ "file_path": "/w/a", "content": far });
        let near = "+ a\n+ ⟨3000 blank lines⟩\n+ b\n+ \n+ \n+ c\n+ ⟨4 blank lines⟩";
        assert_eq!(details_of("Write", &far).unwrap(), near);
        let edit = json!({ "file_path": "/w/a", "old_string": "a\nb", "new_string": "", "replace_all": true });
        let all = "at each place:\n- a\n- b\n+ (nothing)";
        assert_eq!(details_of("Edit", &edit).unwrap(), all);
        let edit = json!({ "file_path": "/w/a", "old_string": "a\nb", "new_string": "", "replace_all": "true" });
        assert_eq!(details_of("Edit", &edit).unwrap(), all, "the tool takes the text, too");
    }

    #[test]
    fn a_file_that_is_replaced_shows_the_lines_that_go_and_come_or_why_not() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().canonicalize().unwrap().join("a");
        let of = |old: &[u8], new: &str| {
            std::fs::write(&file, old).unwrap();
            replacement(&file, new).unwrap()
        };
        let numbers = |n: usize| (1..=n).map(|n| format!("{n}\n")).collect::<String>();
        let new = numbers(20).replace("10\n", "ten\n");
        assert_eq!(
            of(numbers(20).as_bytes(), &new),
            "from line 7:\n  7\n  8\n  9\n- 10\n+ ten\n  11\n  12\n  13"
        );
        let end = "from line 1:\n- a\n+ a (without a line end)";
        assert_eq!(of(b"a\n", "a"), end);
        assert_eq!(of(b"a\n", "a\n"), "the file has this content already");
        assert_eq!(of(b"\xff\n", "b\n"), "it replaces a file of 2 bytes that is no text:\n+ b");
        let long = of(&vec![b'x'; 2 * 1024 * 1024], "b\n");
        assert_eq!(long, "it replaces a file of 2.0 MiB, too large to compare:\n+ b");
        let other = of(numbers(MAX_LINES + 2).as_bytes(), "b\n");
        assert_eq!(other, "it replaces a text of 8.6 KiB, too different to show:\n+ b");
        let wide = of("x".repeat(MAX_DETAILS).as_bytes(), "b\n");
        assert_eq!(wide, "it replaces a text of 32.0 KiB, too different to show:\n+ b");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(replacement(&file, "b"), None);
    }

    #[test]
    fn other_tools_show_each_argument_that_the_action_does_not_say() {
        let spawn = json!({ "name": "kid", "message": "one\ntwo", "scope": ["/w"], "reason": "r" });
        assert_eq!(
            details_of("SpawnPod", &spawn).unwrap(),
            "message:\n  one\n  two\nscope: [\"/w\"]"
        );
        let spawn = json!({ "name": "kid", "task": "mend", "worktree": "fix" });
        assert!(details_of("SpawnPod", &spawn).unwrap().contains("worktree: fix"));
        assert_eq!(details_of("Bash", &json!({ "command": "ls", "needs": ["git"] })), None);
        assert_eq!(
            details_of("Bash", &json!({ "command": "ls", "timeout": 5 })).unwrap(),
            "timeout: 5"
        );
    }
}
