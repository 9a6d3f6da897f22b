//! A part of a history in numbers: what a rewind drops, or what comes back.

use crate::wording::counted;
use std::path::Path;
use yoi::protocol::Losses;
use yoi::text::SafeText;

/// `8 messages, 14 tool calls`.
pub fn count(losses: &Losses) -> String {
    let messages = counted(losses.messages, "message", "messages");
    match losses.tool_calls {
        0 => messages,
        calls => format!("{messages}, {}", counted(calls, "tool call", "tool calls")),
    }
}

/// The files that stay as tools left them, in a sentence; `None` when no tool changed one.
pub fn files(losses: &Losses) -> Option<String> {
    let name = |path: &String| {
        let name =
            Path::new(path).file_name().map_or(path.as_str().into(), |n| n.to_string_lossy());
        SafeText::line(name.as_ref()).to_string()
    };
    let mut names: Vec<String> = losses.files.iter().map(name).collect();
    if losses.more_files > 0 {
        names.push(format!("{} more", losses.more_files));
    }
    (!names.is_empty()).then(|| format!("changed files stay as they are: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_read_as_a_sentence() {
        let losses = |messages, tool_calls, files: &[&str], more_files| Losses {
            pods: Vec::new(),
            messages,
            tool_calls,
            files: files.iter().map(|file| (*file).to_owned()).collect(),
            more_files,
        };
        assert_eq!(count(&losses(8, 14, &[], 0)), "8 messages, 14 tool calls");
        assert_eq!(count(&losses(1, 1, &[], 0)), "1 message, 1 tool call");
        assert_eq!(count(&losses(2, 0, &[], 0)), "2 messages");
        assert_eq!(files(&losses(1, 1, &[], 0)), None);
        let named = files(&losses(1, 3, &["/w/a.rs", "/w/b\u{1b}c"], 2));
        let named = named.expect("a sentence");
        assert!(named.starts_with("changed files stay as they are: a.rs, b"), "{named}");
        assert!(named.ends_with(", 2 more") && !named.contains('\u{1b}'), "{named}");
    }
}
