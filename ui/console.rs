//! Standard output and standard error while no screen is drawn and no answer streams. Names, paths and
//! reasons come from others, so every line becomes safe text here.

use std::io::{self, IsTerminal as _, Write as _};
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

/// Writes a prompt to standard error; the cursor stays behind it.
pub fn prompt(text: &str) -> io::Result<()> {
    let mut err = io::stderr();
    write!(err, "{}", SafeText::line(text)).and_then(|()| err.flush())
}

/// Whether standard output is a terminal.
pub fn out_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether both standard input and standard output are a terminal.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && out_is_terminal()
}
