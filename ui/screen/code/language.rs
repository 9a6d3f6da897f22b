//! What a table says of a language.

/// A language, as far as colours need it.
#[derive(Debug, PartialEq, Eq)]
pub struct Language {
    /// Its names behind a fence, and the endings of its files; lower case.
    pub names: &'static [&'static str],
    /// Words that the language defines, separated by spaces.
    pub words: &'static str,
    /// Whether upper and lower case make no difference in words.
    pub any_case: bool,
    /// Characters of a word besides letters, digits and `_`.
    pub in_words: &'static str,
    /// Characters that make a name of the word behind them, even if it is in `words`.
    pub sigils: &'static str,
    /// What begins a comment that ends with the line.
    pub line_comments: &'static [&'static str],
    /// What begins and ends a comment that may span lines.
    pub block_comments: &'static [(&'static str, &'static str)],
    /// Whether block comments nest.
    pub nested: bool,
    /// The longer openings come first.
    pub quotes: &'static [Quote],
    pub forms: &'static [Form],
}

/// A kind of string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    pub open: &'static str,
    pub close: &'static str,
    /// Whether a backslash takes the character behind it into the string.
    pub escapes: bool,
    /// Whether it may span lines; another one ends with its line at the latest.
    pub lines: bool,
}

/// A form that only some languages have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `'a` is a name; `'a'` is a character.
    Lifetimes,
    /// `r"…"` and `r#"…"#` with any number of `#`.
    RawStrings,
    /// A text of whole lines up to a line that is the word behind this mark.
    Heredoc(&'static str),
    /// `[[…]]` and `[=[…]=]`, also as comments behind `--`.
    LongBrackets,
    /// `/…/` where no value ends before it.
    Regex,
    /// `#include <file>` and other words behind a `#` at the start of a line.
    Preprocessor,
    /// `[ ]key:` or `key =` at the start of a line: what stands between key and value.
    Keys(&'static str),
    /// `name: value` inside of braces.
    Properties,
    /// The first word of a line is a word of the language; elsewhere it is not.
    FirstWord,
    /// `<tag name="value">text</tag>`.
    Markup,
    /// Documentation between a line that begins with `=` and a word, and one with this word; and all
    /// that stands behind `__END__`.
    Pod(&'static str),
    /// Lines that begin with `+`, `-` or `@`.
    Patch,
    /// A text of whole lines that are indented deeper than the key before it.
    Indented,
    /// `q(…)`, `m/…/`, `s/…/…/` and other words that quote what follows them, on one line.
    QuoteWords,
}

/// A language without anything, from which tables begin.
pub const BARE: Language = Language {
    names: &[],
    words: "",
    any_case: false,
    in_words: "",
    sigils: "",
    line_comments: &[],
    block_comments: &[],
    nested: false,
    quotes: &[DOUBLE, SINGLE],
    forms: &[],
};

/// A language in the manner of C.
pub const C_LIKE: Language =
    Language { line_comments: &["//"], block_comments: &[("/*", "*/")], ..BARE };

/// A language in the manner of a shell.
pub const HASH: Language = Language { line_comments: &["#"], ..BARE };

/// `"…"` on one line.
pub const DOUBLE: Quote = quote("\"", true, false);
/// `'…'` on one line.
pub const SINGLE: Quote = quote("'", true, false);
/// `"…"` over lines.
pub const LONG_DOUBLE: Quote = quote("\"", true, true);
/// `'…'` over lines.
pub const LONG_SINGLE: Quote = quote("'", true, true);
/// `'…'` over lines without escapes.
pub const RAW_SINGLE: Quote = quote("'", false, true);
/// `"""…"""`.
pub const TRIPLE_DOUBLE: Quote = quote("\"\"\"", true, true);
/// `'''…'''`.
pub const TRIPLE_SINGLE: Quote = quote("'''", true, true);
/// `` `…` `` over lines.
pub const BACKTICKS: Quote = quote("`", true, true);

/// A string that begins and ends with the same mark.
pub const fn quote(mark: &'static str, escapes: bool, lines: bool) -> Quote {
    Quote { open: mark, close: mark, escapes, lines }
}

impl Language {
    /// Whether this is a word of the language.
    pub fn defines(&self, word: &str) -> bool {
        self.words.split(' ').any(|known| {
            if self.any_case { known.eq_ignore_ascii_case(word) } else { known == word }
        })
    }

    pub fn has(&self, form: Form) -> bool {
        self.forms.contains(&form)
    }

    /// Whether a word goes on with this character.
    pub fn is_in_word(&self, c: char) -> bool {
        c.is_alphanumeric() || c == '_' || self.in_words.contains(c)
    }
}
