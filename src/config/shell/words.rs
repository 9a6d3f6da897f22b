//! The text of a word after quoting.

use crate::config::shell::{Piece, raw};
use rable::{Node, NodeKind};
use std::iter::Peekable;
use std::str::Chars;

/// A word after quote removal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    pub pieces: Vec<Piece>,
    /// Whether a part of it comes from a variable or a substitution.
    pub is_computed: bool,
    /// Whether its expansion can run commands that the parser did not find.
    pub hides_commands: bool,
    /// Whether a part of it is an arithmetic expression.
    pub calculates: bool,
}

impl Word {
    /// Reads a word of the parser; another node is an unknown word.
    pub fn of(node: &Node) -> Self {
        let mut word = Self::default();
        let NodeKind::Word { parts, value, .. } = &node.kind else {
            word.unknown();
            word.hides_commands = true;
            return word;
        };
        let mut quoted = false;
        for part in parts {
            word.part(&part.kind, &mut quoted);
        }
        // The parser omits parts of an arithmetic expression that it does not understand.
        let calculations = parts.iter().filter(|part| is_calculation(part)).count();
        word.calculates = calculations > 0;
        // `$((a; b) )` is a substitution with a group in it.
        word.hides_commands |=
            calculations > 0 && !value.split("$((").skip(1).all(raw::is_arithmetic);
        // `${x@P}` expands the value of `x` once more, with the substitutions in it.
        word.hides_commands |= value.contains("@P}");
        word.hides_commands |=
            calculations > 0 && starts_commands(&value.replacen("$((", "", calculations));
        word
    }

    /// A word of these characters.
    pub fn plain(text: &str) -> Self {
        Self { pieces: text.chars().map(Piece::Char).collect(), ..Self::default() }
    }

    /// The text, unless a part is unknown or it is a pattern of file names.
    pub fn text(&self) -> Option<String> {
        let chars = self.pieces.iter().map(|piece| match piece {
            Piece::Char(c) => Some(*c),
            Piece::Blank => Some(' '),
            // Braces that the parser did not expand are literal.
            Piece::Expands(c @ ('~' | '{')) => Some(*c),
            Piece::Expands(_) | Piece::Unknown => None,
        });
        chars.collect()
    }

    /// An unknown word.
    pub fn computed() -> Self {
        Self { pieces: vec![Piece::Unknown], is_computed: true, ..Self::default() }
    }

    /// Whether its text contains substitutions that quotes prevented bash from expanding.
    pub fn quotes_commands(&self) -> bool {
        let chars = self.pieces.iter().map(|piece| match piece {
            Piece::Char(c) | Piece::Expands(c) => *c,
            Piece::Blank | Piece::Unknown => ' ',
        });
        starts_commands(&chars.collect::<String>())
    }

    fn part(&mut self, part: &NodeKind, quoted: &mut bool) {
        match part {
            NodeKind::WordLiteral { value } => self.literal(value, quoted),
            NodeKind::AnsiCQuote { decoded, .. } => {
                self.pieces.extend(decoded.chars().map(Piece::Char));
                self.is_computed = true;
            }
            NodeKind::BraceExpansion { .. } => self.pieces.push(Piece::Unknown),
            // The reader of commands visits these.
            NodeKind::CommandSubstitution { .. } | NodeKind::ProcessSubstitution { .. } => {
                self.unknown();
            }
            NodeKind::ParamExpansion { param, op, arg } => {
                let plain =
                    param.chars().all(|c| c.is_ascii_alphanumeric() || "_@*#?-$!".contains(c));
                let texts = [op, arg].into_iter().flatten();
                self.hides_commands |=
                    !plain || texts.into_iter().any(|text| starts_commands(text));
                self.unknown();
            }
            other => {
                self.hides_commands |= starts_commands(&format!("{other:?}"));
                self.unknown();
            }
        }
    }

    fn unknown(&mut self) {
        self.pieces.push(Piece::Unknown);
        self.is_computed = true;
    }

    /// Removes the quotes of a literal. `quoted` is whether a double quote is open.
    fn literal(&mut self, text: &str, quoted: &mut bool) {
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '"' => *quoted = !*quoted,
                '\'' if !*quoted => {
                    self.pieces.extend(chars.by_ref().take_while(|c| *c != '\'').map(Piece::Char));
                }
                '\\' => self.escaped(&mut chars, *quoted),
                '`' => self.hidden(),
                '$' if chars.peek().is_some_and(|next| begins_expansion(*next, *quoted)) => {
                    self.hidden();
                }
                '*' | '?' | '[' | '{' if !*quoted => self.pieces.push(Piece::Expands(c)),
                '~' if !*quoted => self.pieces.push(Piece::Expands(c)),
                c => self.pieces.push(Piece::Char(c)),
            }
        }
    }

    /// An expansion that the parser did not separate from a literal.
    fn hidden(&mut self) {
        self.unknown();
        self.hides_commands = true;
    }

    fn escaped(&mut self, chars: &mut Peekable<Chars<'_>>, quoted: bool) {
        match chars.next() {
            Some('\n') => {}
            Some(c) => {
                if quoted && !matches!(c, '$' | '`' | '"' | '\\') {
                    self.pieces.push(Piece::Char('\\'));
                }
                self.pieces.push(Piece::Char(c));
            }
            None => self.pieces.push(Piece::Char('\\')),
        }
    }
}

fn is_calculation(part: &Node) -> bool {
    matches!(part.kind, NodeKind::ArithmeticExpansion { .. })
}

fn begins_expansion(next: char, quoted: bool) -> bool {
    next.is_ascii_alphanumeric()
        || "_@*#?-$!{([".contains(next)
        || !quoted && matches!(next, '\'' | '"')
}

/// Whether bash starts commands when it expands this text.
pub fn starts_commands(text: &str) -> bool {
    [
        "$(",
        "`",
        "<(",
        ">(",
        "${ ",
        "${|",
        "${\t",
        "${\n",
        "CommandSubstitution",
        "ProcessSubstitution",
    ]
    .iter()
    .any(|start| text.contains(start))
}
