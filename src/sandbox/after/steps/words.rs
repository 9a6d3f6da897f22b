//! Options of git's merges and patches that neither name a program nor a file to write.

use crate::sandbox::gitfile;

/// The strategies that are part of git.
const STRATEGIES: [&str; 6] = ["ort", "recursive", "resolve", "octopus", "ours", "subtree"];
/// The options of these strategies that git documents.
const STRATEGY_OPTIONS: [&str; 16] = [
    "ours",
    "theirs",
    "subtree",
    "patience",
    "histogram",
    "diff-algorithm",
    "ignore-space-change",
    "ignore-all-space",
    "ignore-space-at-eol",
    "ignore-cr-at-eol",
    "renormalize",
    "no-renormalize",
    "find-renames",
    "no-renames",
    "rename-threshold",
    "no-rename-threshold",
];
/// The options of `git apply` that `git am` and `git rebase` pass on.
const APPLY_OPTIONS: [&str; 8] = [
    "--whitespace",
    "--directory",
    "--exclude",
    "--include",
    "--reject",
    "--ignore-space-change",
    "--ignore-whitespace",
    "--no-ignore-whitespace",
];
/// The same with one letter, followed by a number.
const APPLY_LETTERS: [&str; 2] = ["-C", "-p"];

pub fn is_own_strategy(name: &[u8]) -> bool {
    STRATEGIES.iter().any(|own| own.as_bytes() == name)
}

/// Whether a file has only options of git's own strategies.
pub fn are_strategy_options(bytes: &[u8]) -> bool {
    are_words(bytes, |word| is_strategy_option(word.strip_prefix("--").unwrap_or(word)))
}

/// Whether a file has only options with which `git apply` writes nothing but the files of its patch.
pub fn are_apply_options(bytes: &[u8]) -> bool {
    are_words(bytes, |word| {
        let number = APPLY_LETTERS.iter().find_map(|letter| word.strip_prefix(letter));
        APPLY_OPTIONS.contains(&name(word))
            || number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// Whether a file, in the format of a configuration as git writes it, has no strategy and no options of a strategy that
/// are not git's own.
pub fn are_options(bytes: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(bytes) else { return false };
    let mut lines = 0_usize;
    // One line for each setting, so that git cannot read settings that the parser does not find.
    let plain = text.lines().filter(|line| *line != "[options]").all(|line| {
        lines += 1;
        let is_key = line
            .strip_prefix('\t')
            .is_some_and(|key| key.starts_with(|c: char| c.is_ascii_lowercase()));
        is_key && !line.ends_with('\\')
    });
    let settings = gitfile::parse(text);
    plain
        && settings.len() == lines
        && settings.iter().all(|setting| {
            let value = setting.value.as_deref().unwrap_or_default();
            match setting.name.as_str() {
                "strategy" => is_own_strategy(value.as_bytes()),
                "strategy-option" => is_strategy_option(value.strip_prefix("--").unwrap_or(value)),
                _ => true,
            }
        })
}

fn is_strategy_option(option: &str) -> bool {
    STRATEGY_OPTIONS.contains(&name(option))
}

/// An option without its value.
fn name(option: &str) -> &str {
    option.split_once('=').map_or(option, |(name, _)| name)
}

/// Whether a text has only such words, which may be in quotes. A word with a quote or a backslash in it is refused.
fn are_words(bytes: &[u8], is_well: impl Fn(&str) -> bool) -> bool {
    let Ok(text) = str::from_utf8(bytes) else { return false };
    text.split_ascii_whitespace().all(|word| {
        let bare =
            ['\'', '"'].into_iter().find_map(|quote| word.strip_prefix(quote)?.strip_suffix(quote));
        let bare = bare.unwrap_or(word);
        !bare.contains(['\'', '"', '\\']) && is_well(bare)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_git_writes_name_no_program_and_others_are_refused() {
        for text in [
            "",
            "\n",
            "\"theirs\" \"subtree=a\"\n",
            " '--theirs' '--subtree=a/b'\n",
            "--find-renames=50%",
        ] {
            assert!(are_strategy_options(text.as_bytes()), "{text}");
        }
        for text in [
            "--index-output=x",
            "\"index-output=x\"",
            "'--theirs' '--upload-pack=x'",
            "\"--th\\eirs\"",
            "--a'b",
        ] {
            assert!(!are_strategy_options(text.as_bytes()), "{text}");
        }
        for text in ["", " '--whitespace=fix' '-C1' '-p0'\n", "'--directory=a'"] {
            assert!(are_apply_options(text.as_bytes()), "{text}");
        }
        for text in ["'--build-fake-ancestor=x'", "'--unsafe-paths'", "-pa", "--whitespacex", "x"] {
            assert!(!are_apply_options(text.as_bytes()), "{text}");
        }
        for text in ["", "[options]\n\tedit = true\n\tstrategy = ort\n\tstrategy-option = theirs\n"]
        {
            assert!(are_options(text.as_bytes()), "{text}");
        }
        for text in [
            "[options]\n\tstrategy = x/evil\n",
            "[options] strategy = x\n",
            "[options]\n\tedit = \\\n\tstrategy = x\n",
            "[options]\n\tedit = \"\n\tstrategy = x\n",
            "[options]\n\t?\n\tstrategy = x\n",
            "[options]\n\tSTRATEGY = x\n",
            "[options]\n\tstrategy-option = index-output=x\n",
            "[options]\r\tstrategy = x\n",
        ] {
            assert!(!are_options(text.as_bytes()), "{text}");
        }
    }
}
