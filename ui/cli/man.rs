//! The manual page, from the command line and the list of verbs.

use crate::cli::args;
use crate::screen::keys::with_default_keys;
use crate::verb::LIST;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io;

/// The page as roff.
pub fn page() -> io::Result<String> {
    let mut command = args::command();
    command.build();
    let exits = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(command.after_help(""));
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    man.render_subcommands_section(&mut text)?;
    verbs().to_writer(&mut text)?;
    exit_codes(&exits).to_writer(&mut text)?;
    man.render_version_section(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The section of the verbs, which are typed after `:`.
fn verbs() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["VERBS"]);
    roff.text([roman("Typed after : on the screen and with --no-ui, and given to -c.")]);
    for verb in LIST {
        roff.control("TP", []);
        roff.text([bold(verb.heading())]);
        for (at, text) in verb.about(&with_default_keys).into_iter().skip(1).enumerate() {
            if at > 0 {
                roff.control("IP", []);
            }
            roff.text([roman(text)]);
        }
    }
    roff
}

fn exit_codes(text: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for line in text.lines().skip(1) {
        let (code, meaning) = line.trim().split_once("  ").unwrap_or((line, ""));
        roff.control("TP", []);
        roff.text([bold(code)]);
        roff.text([roman(meaning.trim())]);
    }
    roff
}
