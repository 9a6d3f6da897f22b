//! Standard output and standard error while no screen is drawn and no answer streams. Names, paths and
//! reasons may hold escape sequences, so every line becomes safe text here.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use yoi::text::SafeText;

/// Writes lines to standard output.
pub fn out(text: &str) {
    // A reader that closed the pipe wants no more lines.
    let _ = writeln!(io::stdout(), "{}", SafeText::lines(text));
}

/// Writes a sentence to standard error, without secrets: what a file or a provider says may hold one.
pub fn err(text: &str) {
    // If standard error is closed, the error cannot be reported either.
    let _ = writeln!(io::stderr(), "{}", sentence(&yoi::trace::redact(text)));
}

/// A sentence for standard error. What a provider or a file says may have several lines: all but the
/// first are indented, so that none of them looks like a sentence of yoi.
pub fn sentence(text: &str) -> SafeText<'static> {
    let safe = SafeText::lines(text);
    let mut lines = safe.split('\n');
    let mut out = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        out.push('\n');
        if !line.is_empty() && !line.starts_with("  ") {
            out.push_str("  ");
        }
        out.push_str(line);
    }
    SafeText::lines(out)
}

/// Whether an answer to a question `[y/N]` agrees.
pub fn agrees(answer: &str) -> bool {
    matches!(answer.trim(), "y" | "Y" | "yes")
}

/// Asks a question `[y/N]` on the terminal; whether the answer agrees.
pub fn confirms(question: &str) -> io::Result<bool> {
    prompt(&format!("{question} [y/N] "))?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(agrees(&answer))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_further_line_of_a_sentence_looks_like_one_of_yoi() {
        let error = "yoi: bad \u{1b}[31m\r\nyoi: approve?\ryoi: [y/n]\n\n    stays";
        assert_eq!(sentence(error), "yoi: bad \n  yoi: approve?\n  yoi: [y/n]\n\n    stays");
        assert_eq!(sentence("one line"), "one line");
    }
}
