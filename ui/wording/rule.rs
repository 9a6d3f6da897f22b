//! The rules of what Pods may do, as people read them.

use yoi::protocol::Pattern;
use yoi::text::SafeText;

/// A rule: the tool, and what it may be called with.
pub fn pattern(rule: &Pattern) -> String {
    SafeText::spelled(format!("{}: {}", rule.tool, rule.pattern)).into_string()
}
