//! The hand-made reader of commands, pipelines and lists. It gives up at the first character that could mean
//! something else to bash.

use crate::config::shell::programs::{self, Runs};
use crate::config::shell::{Piece, ShownWord, SimpleCommand, git, interpreters};
use std::iter::Peekable;
use std::str::Chars;

/// The file that a redirection may name without reading or writing anything.
const NULL_DEVICE: &str = "/dev/null";
/// The most digits of a descriptor that is read. Bash takes a number beyond its integers for a word; a line near that limit
/// is not worth reading.
const MAX_DIGITS: usize = 2;

/// A word without its quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    pub pieces: Vec<Piece>,
    /// The length of its beginning that has no quotes, backslashes and variables, in pieces.
    plain: usize,
    /// Whether it has quotes, backslashes or variables.
    is_quoted: bool,
    /// Where it ends in the line, in characters.
    end: usize,
}

impl Word {
    /// The text, if all of it is literal.
    pub fn literal(&self) -> Option<String> {
        let chars = self.pieces.iter().map(|piece| match piece {
            Piece::Char(c) => Some(*c),
            Piece::Blank | Piece::Expands(_) | Piece::Unknown => None,
        });
        chars.collect()
    }

    /// The text with the signs of its file patterns, unless what these stand for may be an option.
    fn unless_any_option(&self) -> Option<String> {
        let is_pattern = |piece: &Piece| matches!(piece, Piece::Expands(c) if *c != '~');
        let is_open = match self.pieces.first() {
            Some(Piece::Char('-')) => self.pieces.iter().any(is_pattern),
            Some(first) => is_pattern(first),
            None => false,
        };
        if is_open { None } else { self.text() }
    }

    /// The text with the signs of its file patterns, if no part of it is unknown.
    fn text(&self) -> Option<String> {
        let char = |piece: &Piece| match piece {
            Piece::Char(c) | Piece::Expands(c) => Some(*c),
            Piece::Blank | Piece::Unknown => None,
        };
        self.pieces.iter().map(char).collect()
    }

    /// The name of the variable that it assigns in front of a command.
    fn assigned(&self) -> Option<String> {
        let end = self.pieces.iter().position(|piece| *piece == Piece::Char('='))?;
        let name = Self { pieces: self.pieces[..end].to_vec(), ..Self::default() }.literal()?;
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let is_name = starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        (is_name && end < self.plain).then_some(name)
    }

    /// Whether bash may take it for an assignment that is not a plain one: `a+=b`, `a[0]=b`.
    fn assigns_oddly(&self) -> bool {
        let plain = &self.pieces[..self.plain.min(self.pieces.len())];
        let end = plain.iter().position(|piece| *piece == Piece::Char('='));
        end.is_some_and(|end| {
            end > 0 && [Piece::Char('+'), Piece::Char(']')].contains(&plain[end - 1])
        })
    }
}

/// What ends a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// `&&`, `||`, `|`: another command follows.
    Joins,
    /// `;` or `&`.
    Ends,
    /// A line feed.
    Row,
    /// The end of the whole text.
    Line,
}

/// The command that is being read.
#[derive(Default)]
struct Pending {
    assignments: Vec<Word>,
    words: Vec<Word>,
    /// Whether a redirection reads or writes a file, or gives a text.
    redirects: bool,
    has_redirection: bool,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.assignments.is_empty() && self.words.is_empty() && !self.has_redirection
    }

    fn word(&mut self, word: Word) -> Option<()> {
        if !self.words.is_empty() {
            self.words.push(word);
            return Some(());
        }
        match word.assigned() {
            Some(name) if programs::decides(&name) => return None,
            Some(_) => self.assignments.push(word),
            None if word.assigns_oddly() || word.literal().is_none() => return None,
            None => self.words.push(word),
        }
        Some(())
    }

    fn command(self) -> Option<SimpleCommand> {
        let Self { assignments, words, redirects, .. } = self;
        let runs = programs::runs(&words);
        if runs == Runs::Hidden {
            return None;
        }
        let all: Vec<&Word> = assignments.iter().chain(&words).collect();
        let whole = joined(&all);
        let starts_another = runs == Runs::Another;
        let is_known = !redirects && !starts_another && !whole.contains(&Piece::Unknown);
        let mut texts = vec![whole.clone()];
        if !words.is_empty() {
            texts.extend(spellings(&words.iter().collect::<Vec<_>>()));
        }
        texts.dedup();
        let spelled = texts.clone();
        texts.iter_mut().for_each(open_blanks);
        let (count, finds_repository) = must_spell(&words);
        let must_spell = if count == 0 { 0 } else { assignments.len() + count };
        let words = shown_words(&all);
        let known = is_known.then_some(whole);
        Some(SimpleCommand {
            texts,
            spelled,
            known,
            starts_another,
            words,
            must_spell,
            finds_repository,
        })
    }
}

fn shown_words(words: &[&Word]) -> Vec<ShownWord> {
    let ends = words.iter().scan(0, |end, word| {
        *end += word.pieces.len() + 1;
        Some(*end - 1)
    });
    let shown =
        |(word, end): (&&Word, usize)| ShownWord { text: word.text(), end, end_in_line: word.end };
    words.iter().zip(ends).map(shown).collect()
}

/// How many words of a command a rule with a wildcard must spell, and whether git finds the repository of the command.
fn must_spell(words: &[Word]) -> (usize, bool) {
    let plain: Vec<Option<String>> = words.iter().map(Word::unless_any_option).collect();
    if let Some(git) = git::command(&plain) {
        return (git.must_spell, git.finds_repository);
    }
    let Some((Some(program), arguments)) = plain.split_first() else { return (0, false) };
    let spelled = interpreters::of(program).map_or(0, |row| row.spelled(arguments));
    (if spelled == 0 { 0 } else { spelled + 1 }, false)
}

/// The value of a variable may be empty, or several words: it stands for the blanks around it, too.
fn open_blanks(text: &mut Vec<Piece>) {
    let mut words: Vec<Vec<Piece>> =
        text.split(|p| *p == Piece::Blank).map(<[_]>::to_vec).collect();
    let is_open = |word: &Vec<Piece>| word.contains(&Piece::Unknown);
    let mut opened = words.remove(0);
    let mut before = is_open(&opened);
    for word in words {
        if !before && !is_open(&word) {
            opened.push(Piece::Blank);
        }
        before = is_open(&word);
        opened.extend(word);
    }
    *text = opened;
}

/// The words unchanged, and with the directory of the program removed.
fn spellings(words: &[&Word]) -> impl Iterator<Item = Vec<Piece>> {
    let text = joined(words);
    let end = words.first().map_or(0, |first| first.pieces.len());
    let slash = text[..end].iter().rposition(|piece| *piece == Piece::Char('/'));
    let short = slash.map(|at| text[at + 1..].to_vec());
    std::iter::once(text).chain(short)
}

/// Words with a blank between them.
fn joined(words: &[&Word]) -> Vec<Piece> {
    let words: Vec<&[Piece]> = words.iter().map(|word| word.pieces.as_slice()).collect();
    words.join(&Piece::Blank)
}

/// Reads a line. Its functions return `None` at a form that is not read.
pub struct Reader<'a> {
    chars: Source<'a>,
}

/// The characters of a line, counted.
struct Source<'a> {
    chars: Peekable<Chars<'a>>,
    taken: usize,
}

impl Source<'_> {
    fn peek(&mut self) -> Option<char> {
        self.chars.peek().copied()
    }

    fn next(&mut self) -> Option<char> {
        self.next_if(|_| true)
    }

    fn next_if(&mut self, takes: impl FnOnce(char) -> bool) -> Option<char> {
        let next = self.chars.next_if(|c| takes(*c));
        self.taken += usize::from(next.is_some());
        next
    }
}

impl<'a> Reader<'a> {
    pub fn new(line: &'a str) -> Self {
        Self { chars: Source { chars: line.chars().peekable(), taken: 0 } }
    }

    /// The commands of the whole line.
    pub fn line(&mut self) -> Option<Vec<SimpleCommand>> {
        let mut commands = Vec::new();
        let mut joined = false;
        loop {
            let (command, end) = self.command()?;
            let is_empty = command.is_empty();
            let blank_row = is_empty && matches!(end, End::Row | End::Line);
            if is_empty && (!blank_row || joined && end == End::Line) {
                return None;
            }
            if !is_empty {
                commands.push(command.command()?);
                joined = end == End::Joins;
            }
            if end == End::Line {
                return Some(commands);
            }
        }
    }

    /// The next command, and what ends it.
    fn command(&mut self) -> Option<(Pending, End)> {
        let mut command = Pending::default();
        loop {
            while self.chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
            let Some(c) = self.chars.peek() else { return Some((command, End::Line)) };
            match c {
                '#' => while self.chars.next_if(|c| c != '\n').is_some() {},
                '\n' | ';' | '&' | '|' => {
                    self.chars.next();
                    match self.operator(c)? {
                        Some(end) => return Some((command, end)),
                        None => self.redirection(&mut command)?,
                    }
                }
                '<' | '>' => self.redirection(&mut command)?,
                _ => {
                    let word = self.word()?;
                    match self.chars.peek() {
                        Some('<' | '>') if is_number(&word) && word.plain > MAX_DIGITS => {
                            return None;
                        }
                        Some('<' | '>') if is_number(&word) => self.redirection(&mut command)?,
                        _ => command.word(word)?,
                    }
                }
            }
        }
    }

    /// The rest of an operator. The inner `None` means that `first` is the `&` of `&>`, a redirection.
    fn operator(&mut self, first: char) -> Option<Option<End>> {
        let next = self.chars.peek();
        Some(match (first, next) {
            ('\n', _) => Some(End::Row),
            (';', Some(';' | '&')) => return None,
            (';', _) => Some(End::Ends),
            ('&', Some('>')) => None,
            ('&', Some('&')) | ('|', Some('|' | '&')) => {
                self.chars.next();
                Some(End::Joins)
            }
            ('&', _) => Some(End::Ends),
            (_, _) => Some(End::Joins),
        })
    }

    fn redirection(&mut self, command: &mut Pending) -> Option<()> {
        let mut operator = String::new();
        while operator.len() < 4
            && let Some(c) = self.chars.next_if(|c| matches!(c, '<' | '>' | '&' | '|'))
        {
            operator.push(c);
        }
        if !["<", ">", ">>", ">|", "<>", "<<<", "<&", ">&"].contains(&operator.as_str()) {
            return None;
        }
        while self.chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        // No word begins at `(`: `<(` and `>(` start commands.
        let target = self.word()?;
        // A pattern or a variable may name several files, or none.
        let text = target.literal()?;
        let is_descriptor = operator.ends_with('&')
            && text.trim_end_matches('-').chars().all(|c| c.is_ascii_digit());
        command.has_redirection = true;
        command.redirects |= !is_descriptor && (operator == "<<<" || text != NULL_DEVICE);
        Some(())
    }

    /// A word; `None` also where none begins.
    fn word(&mut self) -> Option<Word> {
        let mut word = Word::default();
        let mut any = false;
        while let Some(c) =
            self.chars.next_if(|c| !matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>'))
        {
            any = true;
            match c {
                '\'' => self.single(&mut word)?,
                '"' => self.double(&mut word)?,
                '\\' => word.pieces.push(Piece::Char(self.chars.next().filter(|c| printable(*c))?)),
                '$' => self.variable(&mut word)?,
                '*' | '?' | '[' | '~' => word.pieces.push(Piece::Expands(c)),
                '`' | '(' | ')' | '{' | '}' | '!' => return None,
                c if c.is_ascii_graphic() => word.pieces.push(Piece::Char(c)),
                _ => return None,
            }
            word.is_quoted |= matches!(c, '\'' | '"' | '\\' | '$');
            if !word.is_quoted {
                word.plain = word.pieces.len();
            }
        }
        if word.pieces == [Piece::Expands('[')] {
            // Alone it is the name of a builtin, and no pattern.
            word.pieces = vec![Piece::Char('[')];
        }
        word.end = self.chars.taken;
        any.then_some(word)
    }

    fn single(&mut self, word: &mut Word) -> Option<()> {
        loop {
            match self.chars.next()? {
                '\'' => return Some(()),
                c => word.pieces.push(Piece::Char(Some(c).filter(|c| shown(*c))?)),
            }
        }
    }

    fn double(&mut self, word: &mut Word) -> Option<()> {
        loop {
            match self.chars.next()? {
                '"' => return Some(()),
                '`' => return None,
                '$' => self.variable(word)?,
                '\\' => match self.chars.next()? {
                    c @ ('"' | '\\' | '$' | '`') => word.pieces.push(Piece::Char(c)),
                    c if printable(c) => word.pieces.extend([Piece::Char('\\'), Piece::Char(c)]),
                    _ => return None,
                },
                c => word.pieces.push(Piece::Char(Some(c).filter(|c| shown(*c))?)),
            }
        }
    }

    /// The plain value of a variable: `$x` or `${x}`.
    fn variable(&mut self, word: &mut Word) -> Option<()> {
        let in_braces = self.chars.next_if(|c| c == '{').is_some();
        self.chars.next_if(|c| c.is_ascii_alphabetic() || c == '_')?;
        while self.chars.next_if(|c| c.is_ascii_alphanumeric() || c == '_').is_some() {}
        if in_braces {
            self.chars.next_if(|c| c == '}')?;
        }
        word.pieces.push(Piece::Unknown);
        Some(())
    }
}

/// Whether a word is the descriptor of a redirection behind it.
fn is_number(word: &Word) -> bool {
    let digits = word.pieces.iter().all(|p| matches!(p, Piece::Char(c) if c.is_ascii_digit()));
    digits && !word.is_quoted && word.plain > 0
}

/// Characters that a quoted text may have.
fn shown(c: char) -> bool {
    !c.is_control() || matches!(c, '\n' | '\t')
}

/// Characters that a backslash may stand before.
fn printable(c: char) -> bool {
    !c.is_control()
}
