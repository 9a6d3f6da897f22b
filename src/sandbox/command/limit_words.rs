//! Finds error messages about limits in the output of a command. The kernel reports most limits
//! only to the program, which may print an error.

use crate::protocol::{LimitKind, LimitMet};
use crate::sandbox::access::confinement::Isolation;
use crate::sandbox::access::limits::CommandLimits;

/// A limit that the output of a program suggests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitHint {
    pub limit: LimitMet,
    pub trust: Trust,
}

/// The certainty that the words are about a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The command failed with these words, or its own shell printed them.
    Likely,
    /// The words occur, but could be about something else.
    Possible,
}

/// The error messages of programs for each kind of limit, in lower case.
const WORDS: [(LimitKind, &[&str]); 5] = [
    (
        LimitKind::Processes,
        &[
            "resource temporarily unavailable",
            "can't start new thread",
            "cannot fork",
            "spawn eagain",
            "unable to create native thread",
        ],
    ),
    (LimitKind::OpenFiles, &["too many open files", "emfile"]),
    (LimitKind::FileSize, &["file size limit exceeded", "file too large", "efbig"]),
    (
        LimitKind::Memory,
        &[
            "memoryerror",
            "cannot allocate memory",
            "failed to map segment",
            "out of memory",
            "std::bad_alloc",
            "enomem",
        ],
    ),
    (LimitKind::Space, &["no space left on device", "enospc"]),
];

/// Words in whose line the missing resource is a process or a thread.
const STARTS: [&str; 3] = ["fork", "thread", "spawn"];

impl CommandLimits {
    /// The limit that the output of a command suggests. For a successful command only lines count
    /// that end with an error, because it may have printed text about errors.
    pub fn limit_hint(
        &self,
        content: &str,
        failed: bool,
        isolation: Isolation,
    ) -> Option<LimitHint> {
        let content = content.to_ascii_lowercase();
        let hint = |(kind, words): &(LimitKind, &[&str])| {
            let shell = content.lines().any(|line| is_of_shell(*kind, line));
            let has = |text: &str| words.iter().any(|word| text.contains(word));
            let likely = shell || failed && has(&content) && is_plain(*kind, &content);
            let possible =
                || failed && has(&content) || content.lines().any(|line| is_error(line, words));
            let trust = match likely {
                true => Trust::Likely,
                false if possible() => Trust::Possible,
                false => return None,
            };
            Some(LimitHint { limit: self.met(*kind, isolation)?, trust })
        };
        WORDS.iter().find_map(hint)
    }
}

/// Whether the shell of a command reports that a limit ended a program or prevented its start.
fn is_of_shell(kind: LimitKind, line: &str) -> bool {
    line.starts_with("bash: ")
        && match kind {
            LimitKind::FileSize => line.contains("file size limit exceeded"),
            LimitKind::Processes => line.contains("fork: "),
            LimitKind::Memory | LimitKind::OpenFiles | LimitKind::Space | LimitKind::Unknown => {
                false
            }
        }
}

/// Whether these words of a failed command are very likely about a limit. Words about a full disk
/// may be about the disk of the workspace.
fn is_plain(kind: LimitKind, content: &str) -> bool {
    match kind {
        LimitKind::Processes => STARTS.iter().any(|word| content.contains(word)),
        LimitKind::Space => false,
        LimitKind::OpenFiles | LimitKind::FileSize | LimitKind::Memory | LimitKind::Unknown => true,
    }
}

/// Whether a line is an error that ends with these words, as programs write an error of the system.
fn is_error(line: &str, words: &[&str]) -> bool {
    let line = line.trim_end();
    let line = line.rfind(" (os error ").map_or(line, |end| &line[..end]);
    let before = words.iter().find_map(|word| line.strip_suffix(word));
    before.is_some_and(|before| before.is_empty() || before.trim_end().ends_with([':', ']']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> CommandLimits {
        CommandLimits { memory_mib: 64, ..CommandLimits::default() }
    }

    #[test]
    fn words_of_a_failed_command_point_to_the_limit_that_it_met() {
        let cases = [
            ("bash: fork: retry: Resource temporarily unavailable", LimitKind::Processes),
            (
                "thread 'main' panicked: failed to spawn thread: Os { code: 11, kind: WouldBlock, message: \
              \"Resource temporarily unavailable\" }",
                LimitKind::Processes,
            ),
            ("OSError: [Errno 24] Too many open files", LimitKind::OpenFiles),
            ("head: write error: File too large", LimitKind::FileSize),
            ("MemoryError", LimitKind::Memory),
            ("fatal error: runtime: cannot allocate memory", LimitKind::Memory),
            ("libm.so.6: failed to map segment from shared object", LimitKind::Memory),
        ];
        for (content, kind) in cases {
            let hint = limits().limit_hint(content, true, Isolation::Namespaces).expect(content);
            assert_eq!((hint.limit.kind, hint.trust), (kind, Trust::Likely), "{content}");
        }
        let full = "cp: error writing 'a': No space left on device";
        let hint = limits().limit_hint(full, true, Isolation::Namespaces).expect(full);
        assert_eq!((hint.limit.kind, hint.trust), (LimitKind::Space, Trust::Possible));
        assert!(hint.limit.sentence.contains("256 MiB in /dev/shm"), "{hint:?}");
        let wait = "recv: Resource temporarily unavailable";
        let hint = limits().limit_hint(wait, true, Isolation::Namespaces).map(|hint| hint.trust);
        assert_eq!(hint, Some(Trust::Possible), "not every such error is about processes");
        let missing = "cat: a: No such file or directory";
        assert_eq!(limits().limit_hint(missing, true, Isolation::Namespaces), None);
    }

    #[test]
    fn of_a_command_that_did_not_fail_an_error_is_a_possible_limit_and_a_text_is_none() {
        let hint = |content: &str| {
            let hint = limits().limit_hint(content, false, Isolation::Namespaces)?;
            Some((hint.limit.kind, hint.trust))
        };
        let possible = |kind| Some((kind, Trust::Possible));
        assert_eq!(hint("Traceback\nMemoryError\ndone\n"), possible(LimitKind::Memory));
        assert_eq!(
            hint("dd: error writing 'x': No space left on device\nend"),
            possible(LimitKind::Space)
        );
        assert_eq!(
            hint("error: could not write: No space left on device (os error 28)"),
            possible(LimitKind::Space)
        );
        let shell = "bash: line 1:    12 File size limit exceeded dd if=/dev/zero of=big\nend";
        assert_eq!(hint(shell), Some((LimitKind::FileSize, Trust::Likely)));
        for text in [
            "#define ENOSPC 28 /* No space left on device */",
            "docs/a.md: what to do when a file is too large and you are out of memory",
            "Too many open files is what the kernel says",
        ] {
            assert_eq!(hint(text), None, "{text}");
        }
    }

    #[test]
    fn words_about_a_limit_that_is_not_set_or_does_not_hold_point_to_none() {
        let default = CommandLimits::default();
        assert_eq!(default.limit_hint("MemoryError", true, Isolation::Namespaces), None);
        for content in ["No space left on device", "bash: fork: Resource temporarily unavailable"] {
            assert_eq!(
                default.limit_hint(content, true, Isolation::LandlockOnly),
                None,
                "{content}"
            );
        }
    }
}
