//! Standard output and standard error while no screen is drawn. Names, paths and reasons come from
//! others, so every line passes the door of safe text here.

use std::io::{self, Write as _};
use yoi::text::SafeText;

/// Writes lines to standard output.
pub fn out(text: &str) {
    // A reader that closed the pipe wants no more lines.
    let _ = writeln!(io::stdout(), "{}", SafeText::lines(text));
}

/// Writes lines to standard error, without secrets: what a file or a provider says may hold one.
pub fn err(text: &str) {
    // A closed standard error leaves no place to say so.
    let _ = writeln!(io::stderr(), "{}", SafeText::lines(yoi::trace::redact(text)));
}
