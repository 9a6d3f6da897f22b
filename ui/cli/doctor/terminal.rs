//! The terminal: its type, its colours, keys and characters, and the settings of tmux.

use crate::cli::doctor::finding::Finding;
use crate::cli::doctor::within;
use crate::console;
use crate::screen::keys::{Action, Context, Keymap, Swallower, swallowers};
use crate::screen::pane::glyph::Glyphs;
use crate::theme::Depth;
use std::process::Stdio;
use std::time::Duration;
use yoi::config::dirs::{Env, var};

const ABOUT: &str = "terminal";
/// How long tmux may take to print its settings.
const TMUX: Duration = Duration::from_millis(500);
/// How long the terminal may take to report its keyboard protocol; the library waits 2 s for it.
const KEYS: Duration = Duration::from_millis(2_300);
/// The smallest screen on which every pane fits.
const SMALLEST: (u16, u16) = (60, 15);
/// The longest `escape-time` of tmux, in milliseconds, that a person does not notice.
const ESCAPE_TIME: u32 = 50;

/// The findings about the terminal.
pub async fn findings(env: &Env, keymap: &Keymap) -> Vec<Finding> {
    let mut found = vec![terminal(env), colours(env), characters(env), keys(keymap).await];
    found.extend(kept_keys(env, keymap));
    if var(env, "TMUX").is_some() {
        found.extend(tmux_findings(&tmux().await));
    } else if var(env, "STY").is_some() {
        let text = "inside screen: Ctrl+A is its prefix, and colours and clipboard are limited";
        let way_out = "use tmux, or press Ctrl+A a for one Ctrl+A";
        found.push(Finding::warning(ABOUT, "screen", text, way_out));
    }
    if var(env, "SSH_CONNECTION").is_some() {
        let text = "over SSH: copies reach your clipboard only if your terminal allows OSC 52";
        found.push(Finding::ok(ABOUT, "ssh", text));
    }
    found
}

fn terminal(env: &Env) -> Finding {
    let term = var(env, "TERM").unwrap_or("");
    if !console::is_interactive() {
        let text = format!("TERM={term}; input or output is not a terminal");
        return Finding::ok(ABOUT, "terminal", format!("{text}: --no-ui and -p work here"));
    }
    let size = crossterm::terminal::size().unwrap_or((0, 0));
    let text = format!("TERM={term}, {} x {}", size.0, size.1);
    if matches!(term, "" | "dumb") {
        let way_out = "export TERM=xterm-256color, or use --no-ui";
        return Finding::warning(ABOUT, "terminal", text, way_out);
    }
    if size.0 < SMALLEST.0 || size.1 < SMALLEST.1 {
        let way_out = format!("make it at least {} x {}", SMALLEST.0, SMALLEST.1);
        return Finding::warning(ABOUT, "terminal", text, way_out);
    }
    Finding::ok(ABOUT, "terminal", text)
}

fn colours(env: &Env) -> Finding {
    let name = "colours";
    match Depth::detect(|name| env.get(name).cloned()) {
        Depth::Mono if var(env, "NO_COLOR").is_some() => {
            Finding::ok(ABOUT, name, "none, as NO_COLOR asks")
        }
        Depth::Mono => Finding::ok(ABOUT, name, "none, as TERM is dumb"),
        Depth::Ansi => {
            let way_out = "export TERM=xterm-256color if your terminal shows more";
            Finding::warning(ABOUT, name, "16", way_out)
        }
        Depth::Palette => {
            Finding::ok(ABOUT, name, "256; COLORTERM=truecolor gives the themes' exact colours")
        }
        Depth::True => Finding::ok(ABOUT, name, "24 bits"),
    }
}

fn characters(env: &Env) -> Finding {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| Some((name, var(env, name)?)));
    let text = set.map_or("no locale is set".into(), |(name, value)| format!("{name}={value}"));
    match Glyphs::detect(|name| env.get(name).cloned()) {
        Glyphs::Unicode => Finding::ok(ABOUT, "characters", text),
        Glyphs::Ascii => {
            let text = format!("{text}: shapes are drawn with ASCII");
            Finding::warning(ABOUT, "characters", text, "export LANG=C.UTF-8")
        }
    }
}

/// Whether the terminal tells keys such as Shift+Enter and Enter apart (the kitty protocol).
async fn keys(keymap: &Keymap) -> Finding {
    let name = "keys";
    if !console::is_interactive() {
        return Finding::ok(ABOUT, name, "not asked: input or output is not a terminal");
    }
    let approval = || {
        crossterm::terminal::enable_raw_mode()?;
        let answer = crossterm::terminal::supports_keyboard_enhancement();
        crossterm::terminal::disable_raw_mode()?;
        answer
    };
    match within(KEYS, approval).await {
        Some(Ok(true)) => Finding::ok(ABOUT, name, "all chords are told apart (kitty protocol)"),
        Some(Ok(false) | Err(_)) | None => {
            let text = "chords such as Shift+Enter arrive as plain keys; {everywhere leader} and a key, or \
                        {composer newline} for a new line, do the same";
            Finding::ok(ABOUT, name, keymap.with_keys(text))
        }
    }
}

/// The keys that the terminal or a multiplexer does not pass on. tmux and screen have findings of their own.
fn kept_keys(env: &Env, keymap: &Keymap) -> Vec<Finding> {
    let leader = keymap.name(Context::Everywhere, Action::Leader);
    let found = swallowers(env).into_iter().filter(|one| !["tmux", "screen"].contains(&one.name));
    let finding = |swallower: &Swallower| {
        let text = format!(
            "{} keeps {}; {leader} and a key does the same",
            swallower.name,
            swallower.kept()
        );
        match swallower.way_out {
            Some(way_out) => Finding::warning(ABOUT, "swallowed keys", text, way_out),
            None => Finding::ok(ABOUT, "swallowed keys", text),
        }
    };
    found.map(finding).collect()
}

/// The relevant settings of tmux as `name value` lines; empty if tmux does not print them.
async fn tmux() -> String {
    let mut command = tokio::process::Command::new("tmux");
    let command = command.args(["show-options", "-As"]).stdin(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(TMUX, command.output()).await {
        Ok(Ok(output)) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Ok(Err(_)) | Err(_) => String::new(),
    }
}

fn tmux_findings(options: &str) -> Vec<Finding> {
    let value = |name: &str| {
        options.lines().find_map(|line| {
            let (key, value) = line.split_once(' ')?;
            (key.trim_end_matches('*') == name).then(|| value.trim().to_owned())
        })
    };
    let mut found = Vec::new();
    let escape = value("escape-time").and_then(|time| time.parse::<u32>().ok());
    if let Some(time) = escape.filter(|time| *time > ESCAPE_TIME) {
        let text = format!("Esc is held back for {time} ms");
        found.push(Finding::warning(ABOUT, "tmux", text, "tmux set -s escape-time 20"));
    }
    if value("set-clipboard").is_some_and(|value| value == "off") {
        let text = "copies do not reach your clipboard";
        found.push(Finding::warning(ABOUT, "tmux", text, "tmux set -s set-clipboard on"));
    }
    if value("extended-keys").is_some_and(|value| value == "off") {
        let text = "chords such as Shift+Enter arrive as plain keys";
        found.push(Finding::warning(ABOUT, "tmux", text, "tmux set -s extended-keys on"));
    }
    if found.is_empty() {
        found.push(Finding::ok(ABOUT, "tmux", "inside tmux: Ctrl+B is its prefix"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::finding::Level;

    fn env(pairs: &[(&str, &str)]) -> Env {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn a_locale_without_utf_8_is_a_warning_with_its_remedy() {
        assert_eq!(characters(&env(&[("LANG", "de_DE.UTF-8")])).level, Level::Ok);
        for pairs in [&[("LANG", "C")][..], &[], &[("LC_ALL", "POSIX"), ("LANG", "C.UTF-8")]] {
            let found = characters(&env(pairs));
            assert_eq!(found.level, Level::Warning, "{found:?}");
            assert_eq!(found.way_out.as_deref(), Some("export LANG=C.UTF-8"));
        }
    }

    #[test]
    fn settings_of_tmux_that_break_keys_are_named_with_the_command_that_mends_them() {
        let ways = |options: &str| -> Vec<String> {
            tmux_findings(options).into_iter().filter_map(|found| found.way_out).collect()
        };
        assert_eq!(
            ways("escape-time 500\nset-clipboard off\nextended-keys off\n"),
            [
                "tmux set -s escape-time 20",
                "tmux set -s set-clipboard on",
                "tmux set -s extended-keys on"
            ]
        );
        assert!(ways("escape-time* 10\nset-clipboard external\n").is_empty());
        assert!(ways("").is_empty());
    }

    #[test]
    fn the_keys_that_a_known_terminal_keeps_are_named() {
        let said = |pairs: &[(&str, &str)]| {
            let found = kept_keys(&env(pairs), &crate::screen::keys::default_keymap());
            found.into_iter().map(|found| found.text).collect::<Vec<_>>().join("\n")
        };
        assert!(said(&[("TERM_PROGRAM", "vscode")]).contains("Ctrl+P"));
        assert!(said(&[("VTE_VERSION", "7600")]).contains("F10"));
        assert!(said(&[("ZELLIJ", "0")]).contains("Ctrl+T, Alt+arrows"));
        assert_eq!(said(&[("TERM", "xterm"), ("TMUX", "/tmp/x")]), "");
    }

    #[test]
    fn colours_follow_the_variables_that_the_screen_reads() {
        assert_eq!(colours(&env(&[("NO_COLOR", "1")])).text, "none, as NO_COLOR asks");
        assert_eq!(colours(&env(&[("TERM", "linux")])).level, Level::Warning);
        assert_eq!(colours(&env(&[("COLORTERM", "truecolor")])).text, "24 bits");
    }
}
