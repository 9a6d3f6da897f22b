//! The shapes of the screen, with an ASCII set for terminals that cannot show others.

use crate::theme::Role;
use crate::wording::state;
use yoi::protocol::{PodInfo, State};

/// Which shapes the terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Glyphs {
    #[default]
    Unicode,
    Ascii,
}

/// The look of a state: shape, word and colour, so that the state can be told without any one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSign {
    pub shape: &'static str,
    pub word: &'static str,
    pub role: Role,
}

impl Glyphs {
    /// Reads the locale through `env`: anything that is not UTF-8 gets ASCII.
    pub fn detect(env: impl Fn(&str) -> Option<String>) -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| env(name).filter(|value| !value.is_empty()))
            .unwrap_or_default()
            .to_lowercase();
        if locale.contains("utf-8") || locale.contains("utf8") {
            Self::Unicode
        } else {
            Self::Ascii
        }
    }

    /// The one of the two that can be shown.
    pub fn pick<T>(self, unicode: T, ascii: T) -> T {
        match self {
            Self::Unicode => unicode,
            Self::Ascii => ascii,
        }
    }

    /// How the state of a Pod looks.
    pub fn state_sign(self, info: &PodInfo) -> StateSign {
        let (shape, role) = self.sign_of(info.state, info.unseen);
        StateSign { shape, word: state::of_pod(info), role }
    }

    /// The shape and the role of a state; `unseen`: nobody looked at the result yet.
    pub fn sign_of(self, state: State, unseen: bool) -> (&'static str, Role) {
        let (unicode, ascii, role) = match state {
            // What goes as it should has no colour.
            State::Running => ("●", "*", Role::Text),
            State::NeedsYou => ("▲", "!", Role::Needs),
            State::Paused => ("‖", "\"", Role::Warn),
            State::Idle if unseen => ("✓", "v", Role::Text),
            State::Idle => ("○", "o", Role::Dim),
            State::Stopped => ("◌", ".", Role::Dim),
            State::Failed | State::Damaged => ("✕", "x", Role::Error),
            State::Unknown => ("?", "?", Role::Warn),
        };
        (self.pick(unicode, ascii), role)
    }

    /// The ASCII sign for a shape of one column; `None` for text, which is shown as it is.
    pub fn sign(symbol: &str) -> Option<&'static str> {
        Some(match symbol {
            "·" | "─" | "━" | "╌" | "−" => "-",
            "│" | "┃" | "▏" | "▎" | "▌" => "|",
            "┌" | "┐" | "└" | "┘" | "├" | "┤" | "┬" | "┴" | "┼" => "+",
            "…" => "~",
            "¢" => "c",
            "›" | "▸" | "❯" => ">",
            "▾" | "↓" => "v",
            "↑" => "^",
            "←" => "<",
            "→" => ">",
            "•" | "●" => "*",
            "○" => "o",
            "⇄" => "=",
            "✓" => "v",
            "✕" | "✗" | "×" => "x",
            "▲" => "!",
            "“" | "”" => "\"",
            "‘" | "’" => "'",
            _ => return None,
        })
    }

    /// A row of an exact action: a character that would be replaced by another one is spelled, but for the sign of a line
    /// break.
    pub fn exact(self, row: &str) -> String {
        let spelled = |c: char| match self.plain(c.encode_utf8(&mut [0; 4])) {
            shown if c == '⏎' || shown.chars().eq([c]) => shown,
            _ => format!("\\u{{{:x}}}", u32::from(c)),
        };
        row.chars().map(spelled).collect()
    }

    /// Text with every shape that ASCII lacks replaced.
    pub fn plain(self, text: &str) -> String {
        if self == Self::Unicode {
            return text.to_owned();
        }
        let mut plain = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '·' | '−' => plain.push('-'),
                '…' => plain.push('~'),
                '›' => plain.push('>'),
                '↑' => plain.push_str("Up"),
                '↓' => plain.push_str("Down"),
                '←' => plain.push_str("Left"),
                '→' => plain.push_str("Right"),
                '↔' => plain.push_str("<->"),
                '×' => plain.push('x'),
                '⇄' => plain.push('='),
                '▲' => plain.push('!'),
                '⏎' => plain.push('$'),
                c => plain.push(c),
            }
        }
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_chooses_the_shapes() {
        let with = |name: &'static str, value: &'static str| {
            Glyphs::detect(move |key| (key == name).then(|| value.to_owned()))
        };
        assert_eq!(with("LANG", "en_US.UTF-8"), Glyphs::Unicode);
        assert_eq!(with("LC_ALL", "C.utf8"), Glyphs::Unicode);
        assert_eq!(with("LANG", "C"), Glyphs::Ascii);
        assert_eq!(with("TERM", "xterm"), Glyphs::Ascii);
    }

    #[test]
    fn an_exact_action_hides_no_character_that_ascii_lacks() {
        let action = "echo a → b › c … ⏎";
        let spelled = "echo a \\u{2192} b \\u{203a} c \\u{2026} $";
        assert_eq!(Glyphs::Ascii.exact(action), spelled);
        assert_eq!(Glyphs::Unicode.exact(action), action);
    }
}
