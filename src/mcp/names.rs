//! The names under which tools of servers are offered: `mcp__<server>__<tool>`.

/// The prefix of every such name.
const PREFIX: &str = "mcp__";
const BETWEEN: &str = "__";
/// Bytes of a name that every provider takes.
const MAX_NAME: usize = 64;
/// Hex digits of the hash that replaces removed characters of a name.
const DIGITS: usize = 8;

/// The name of a server's tool for models: at most 64 bytes of letters, digits, `-` and `_`. A name that does not
/// fit is shortened, and ends with digits of its hash, so that two of them differ.
pub fn of_tool(server: &str, tool: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let whole = format!("{PREFIX}{server}{BETWEEN}{tool}");
    let mut name: String = whole.chars().map(plain).collect();
    if name == whole && name.len() <= MAX_NAME {
        return name;
    }
    name.truncate(MAX_NAME - DIGITS - 1);
    let hash = blake3::hash(whole.as_bytes()).to_hex();
    format!("{name}_{}", &hash[..DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_every_provider_and_two_tools_never_share_one() {
        assert_eq!(of_tool("git", "git_log"), "mcp__git__git_log");
        let long = "x".repeat(60);
        let names = [
            of_tool("git", &long),
            of_tool("git", &format!("{long}y")),
            of_tool("git", "a.b"),
            of_tool("git", "a/b"),
            of_tool("git", "a_b"),
            of_tool("git", "é"),
        ];
        for name in &names {
            assert!(name.len() <= MAX_NAME && name.starts_with("mcp__git__"), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)), "{name}");
        }
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
    }
}
