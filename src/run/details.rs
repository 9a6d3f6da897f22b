//! What a tool call carries besides the action it names, as an approval request shows it.

use crate::run::policy::telling;
use serde_json::Value;

/// The details of a call: for `Write` and `Edit` the lines that go (`- `) and come (`+ `), for every
/// other tool each argument under its name. `None` if the action says everything.
pub(crate) fn details(tool: &str, arguments: &Value) -> Option<String> {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    match tool {
        "Write" => text("content").map(|content| marked("+ ", content)),
        "Edit" => {
            let (old, new) = (text("old_string")?, text("new_string")?);
            let all = arguments.get("replace_all").and_then(Value::as_bool) == Some(true);
            let each = if all { "at each place:\n" } else { "" };
            Some(format!("{each}{}\n{}", marked("- ", old), marked("+ ", new)))
        }
        _ => {
            // An approval request has lines of its own for the model's reason, the needs and their paths.
            let own = ["reason", "needs", "outside"];
            let said = |name: &str| telling(tool).contains(&name) || own.contains(&name);
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

fn named(name: &str, value: &Value) -> String {
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
        false => lines.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_of_a_file_shows_each_line_that_goes_and_comes() {
        let write = json!({ "file_path": "/w/a", "content": "#!/bin/sh\nrm x\n" });
        assert_eq!(details("Write", &write).unwrap(), "+ #!/bin/sh\n+ rm x");
        let edit = json!({ "file_path": "/w/a", "old_string": "a\nb", "new_string": "", "replace_all": true });
        assert_eq!(details("Edit", &edit).unwrap(), "at each place:\n- a\n- b\n+ (nothing)");
    }

    #[test]
    fn other_tools_show_each_argument_that_the_action_does_not_say() {
        let spawn = json!({ "name": "kid", "message": "one\ntwo", "scope": ["/w"], "reason": "r" });
        assert_eq!(details("SpawnPod", &spawn).unwrap(), "message:\n  one\n  two\nscope: [\"/w\"]");
        assert_eq!(details("Bash", &json!({ "command": "ls", "needs": ["git"] })), None);
        assert_eq!(
            details("Bash", &json!({ "command": "ls", "timeout": 5 })).unwrap(),
            "timeout: 5"
        );
    }
}
