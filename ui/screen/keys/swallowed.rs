//! Keys that do not arrive: terminals and multiplexers keep some for themselves, and some terminals send two keys alike.

use crate::screen::keys::{label, parse};
use crokey::KeyCombination;
use crossterm::event::{KeyCode, KeyModifiers};
use std::collections::BTreeMap;

/// A program between the keyboard and the screen, and the keys that it keeps.
#[derive(Debug)]
pub struct Swallower {
    /// The variable that it sets, and the beginning of the value.
    variable: (&'static str, &'static str),
    pub name: &'static str,
    keeps: &'static [Kept],
    /// How keys get past it.
    pub way_out: Option<&'static str>,
}

#[derive(Clone, Copy, Debug)]
enum Kept {
    Key(&'static str),
    AltDigits,
    /// All keys with Alt: it types letters with it.
    Option,
    AltArrows,
    ShiftArrows,
    CtrlShiftLetters,
}

use Kept::{AltArrows, AltDigits, CtrlShiftLetters, Key, Option as OptionKey, ShiftArrows};

const fn terminal(
    variable: (&'static str, &'static str),
    name: &'static str,
    keeps: &'static [Kept],
) -> Swallower {
    Swallower { variable, name, keeps, way_out: None }
}

/// Terminals, of which one is in use.
const TERMINALS: &[Swallower] = &[
    terminal(
        ("TERM_PROGRAM", "vscode"),
        "VS Code",
        &[Key("ctrl-p"), Key("ctrl-e"), Key("ctrl-q"), Key("f1")],
    ),
    Swallower {
        way_out: Some("Settings, Profiles, Keyboard: use Option as Meta key"),
        ..terminal(("TERM_PROGRAM", "Apple_Terminal"), "Terminal.app", &[OptionKey])
    },
    Swallower {
        way_out: Some("Settings, Profiles, Keys: Option sends Esc+"),
        ..terminal(("TERM_PROGRAM", "iTerm.app"), "iTerm2", &[OptionKey])
    },
    terminal(("TERM_PROGRAM", "ghostty"), "Ghostty", &[AltDigits, CtrlShiftLetters]),
    terminal(("TERM_PROGRAM", "WezTerm"), "WezTerm", &[Key("alt-enter"), CtrlShiftLetters]),
    terminal(
        ("WT_SESSION", ""),
        "Windows Terminal",
        &[Key("alt-enter"), CtrlShiftLetters, Key("ctrl-v")],
    ),
    terminal(
        ("VTE_VERSION", ""),
        "this terminal (VTE)",
        &[Key("f1"), Key("f10"), Key("f11"), AltDigits, CtrlShiftLetters],
    ),
    terminal(("KONSOLE_VERSION", ""), "Konsole", &[ShiftArrows, CtrlShiftLetters]),
];

/// Programs within a terminal.
const MULTIPLEXERS: &[Swallower] = &[
    Swallower {
        way_out: Some("press it twice"),
        ..terminal(("TMUX", ""), "tmux", &[Key("ctrl-b")])
    },
    Swallower {
        way_out: Some("press Ctrl+A a for one Ctrl+A"),
        ..terminal(("STY", ""), "screen", &[Key("ctrl-a")])
    },
    Swallower {
        way_out: Some("Ctrl+G locks it, so that keys pass"),
        ..terminal(
            ("ZELLIJ", ""),
            "zellij",
            &[
                Key("ctrl-g"),
                Key("ctrl-h"),
                Key("ctrl-n"),
                Key("ctrl-o"),
                Key("ctrl-p"),
                Key("ctrl-q"),
                Key("ctrl-s"),
                Key("ctrl-t"),
                AltArrows,
            ],
        )
    },
];

/// What keeps keys in this environment: the terminal, then what runs within it.
pub fn swallowers(env: &BTreeMap<String, String>) -> Vec<&'static Swallower> {
    let is_here = |swallower: &&Swallower| {
        let (name, begins) = swallower.variable;
        env.get(name).is_some_and(|value| !value.is_empty() && value.starts_with(begins))
    };
    let terminal = TERMINALS.iter().find(is_here);
    terminal.into_iter().chain(MULTIPLEXERS.iter().filter(is_here)).collect()
}

impl Swallower {
    pub fn keeps(&self, key: KeyCombination) -> bool {
        self.keeps.iter().any(|kept| kept.is(key))
    }

    /// The keys that it keeps, as people write them.
    pub fn kept(&self) -> String {
        let name = |kept: &Kept| match kept {
            Key(key) => parse(key).map(label).unwrap_or_default(),
            AltDigits => "Alt+digit".into(),
            OptionKey => "Alt (Option types letters)".into(),
            AltArrows => "Alt+arrows".into(),
            ShiftArrows => "Shift+arrows".into(),
            CtrlShiftLetters => "Ctrl+Shift+letters".into(),
        };
        self.keeps.iter().map(name).collect::<Vec<_>>().join(", ")
    }
}

impl Kept {
    fn is(self, key: KeyCombination) -> bool {
        let crokey::OneToThree::One(code) = key.codes else { return false };
        let has = |modifier| key.modifiers.contains(modifier);
        let is_arrow = [KeyCode::Up, KeyCode::Down, KeyCode::Left, KeyCode::Right].contains(&code);
        match self {
            Key(kept) => parse(kept) == Some(key),
            AltDigits => {
                has(KeyModifiers::ALT) && matches!(code, KeyCode::Char(c) if c.is_ascii_digit())
            }
            OptionKey => has(KeyModifiers::ALT),
            AltArrows => has(KeyModifiers::ALT) && is_arrow,
            ShiftArrows => has(KeyModifiers::SHIFT) && is_arrow,
            CtrlShiftLetters => {
                has(KeyModifiers::CONTROL)
                    && has(KeyModifiers::SHIFT)
                    && matches!(code, KeyCode::Char(c) if c.is_alphabetic())
            }
        }
    }
}

/// The plain key that arrives in place of this chord where the terminal does not tell them apart.
pub fn arrives_as(key: KeyCombination) -> Option<KeyCombination> {
    let crokey::OneToThree::One(code) = key.codes else { return None };
    let held = key.modifiers & (KeyModifiers::CONTROL | KeyModifiers::SHIFT);
    let is_alike = matches!(code, KeyCode::Enter | KeyCode::Backspace | KeyCode::Esc);
    (is_alike && !held.is_empty()).then(|| KeyCombination::one_key(code, key.modifiers - held))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_in(pairs: &[(&str, &str)], key: &str) -> Vec<&'static str> {
        let env = pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let key = parse(key).expect("a key");
        let all = swallowers(&env).into_iter();
        all.filter(|swallower| swallower.keeps(key)).map(|swallower| swallower.name).collect()
    }

    #[test]
    fn each_kept_key_is_known_by_its_terminal_and_the_multiplexer_within() {
        let vscode = ("TERM_PROGRAM", "vscode");
        assert_eq!(kept_in(&[vscode], "ctrl-p"), ["VS Code"]);
        assert_eq!(kept_in(&[vscode, ("ZELLIJ", "0")], "ctrl-p"), ["VS Code", "zellij"]);
        assert_eq!(kept_in(&[vscode], "ctrl-x"), [""; 0]);
        assert_eq!(kept_in(&[("TERM_PROGRAM", "Apple_Terminal")], "alt-b"), ["Terminal.app"]);
        assert_eq!(kept_in(&[("VTE_VERSION", "7600")], "alt-1"), ["this terminal (VTE)"]);
        assert_eq!(kept_in(&[("KONSOLE_VERSION", "1")], "shift-up"), ["Konsole"]);
        assert_eq!(kept_in(&[("STY", "1.x"), ("TMUX", "")], "ctrl-a"), ["screen"]);
        assert_eq!(kept_in(&[("TERM", "xterm")], "ctrl-b"), [""; 0]);
    }

    #[test]
    fn every_kept_key_has_a_name() {
        for swallower in TERMINALS.iter().chain(MULTIPLEXERS) {
            let kept = swallower.kept();
            assert!(kept.split(", ").all(|name| !name.is_empty()), "{}: {kept}", swallower.name);
        }
    }

    #[test]
    fn chords_that_some_terminals_send_as_plain_keys_are_known() {
        let plain = |key: &str| arrives_as(parse(key).expect("a key")).map(label);
        assert_eq!(plain("shift-enter").as_deref(), Some("Enter"));
        assert_eq!(plain("ctrl-backspace").as_deref(), Some("Backspace"));
        assert_eq!((plain("alt-enter"), plain("ctrl-x"), plain("shift-tab")), (None, None, None));
    }
}
