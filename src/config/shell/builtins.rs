//! Builtins of bash that evaluate a text which they are given.

use crate::config::shell::commands::Reader;
use crate::config::shell::inner::has_option;
use crate::config::shell::words::Word;

/// The text that a builtin evaluates.
#[derive(Clone, Copy)]
enum Evaluated {
    /// All arguments, with blanks between them.
    Arguments,
    /// The first of several arguments.
    FirstOfSeveral,
    /// The value of this option. Bash adds arguments to it that are known only when it runs.
    Value(char),
    /// Text that the line does not show: from the history, from a file, or under a new name.
    Elsewhere,
    /// The same, with this option only.
    ElsewhereWith(char),
}

/// The builtins that evaluate a text, except `.` and `source`, which read a file as a shell reads a script.
const BUILTINS: &[(&str, Evaluated)] = &[
    ("alias", Evaluated::Elsewhere),
    ("bind", Evaluated::ElsewhereWith('x')),
    ("compgen", Evaluated::Value('C')),
    ("complete", Evaluated::Value('C')),
    ("enable", Evaluated::ElsewhereWith('f')),
    ("eval", Evaluated::Arguments),
    ("fc", Evaluated::Elsewhere),
    ("hash", Evaluated::ElsewhereWith('p')),
    ("mapfile", Evaluated::Value('C')),
    ("readarray", Evaluated::Value('C')),
    ("trap", Evaluated::FirstOfSeveral),
];

/// Reads the text that a builtin evaluates; another name is none of them.
pub fn evaluate(name: &str, arguments: &[&Word], reader: &mut Reader) {
    let Some((_, evaluated)) = BUILTINS.iter().find(|(builtin, _)| *builtin == name) else {
        return;
    };
    match evaluated {
        Evaluated::Arguments => {
            let dashes = usize::from(arguments.first().is_some_and(|word| is(word, "--")));
            reader.inner_line(text(&arguments[dashes..]).as_deref());
        }
        Evaluated::FirstOfSeveral => first_of_several(arguments, reader),
        Evaluated::Value(letter) => values(*letter, arguments, reader),
        Evaluated::Elsewhere => reader.unknown(),
        Evaluated::ElsewhereWith(letter) => {
            if arguments.iter().any(|word| word.text().is_none() || has_option(word, *letter)) {
                reader.unknown();
            }
        }
    }
}

/// `trap` runs its first argument on a signal; `-` or a signal name alone resets the signal's
/// handler. One word that is known only when the command runs may become several.
fn first_of_several(arguments: &[&Word], reader: &mut Reader) {
    let is_option = |word: &&&Word| word.text().is_some_and(|text| text.starts_with("--"));
    let arguments = &arguments[arguments.iter().take_while(is_option).count()..];
    match arguments {
        [] => {}
        [line] if line.text().is_some() => {}
        [line, ..] if is(line, "-") => {}
        [line, ..] => reader.inner_line(line.text().as_deref()),
    }
}

/// The values of an option in each spelling: `-C x`, `-Cx`, `-tC x`. Any letter of a group may be the
/// option, because those before it may take no value.
fn values(letter: char, arguments: &[&Word], reader: &mut Reader) {
    for (at, word) in arguments.iter().enumerate() {
        let Some(text) = word.text() else {
            reader.unknown();
            continue;
        };
        let group = text.strip_prefix('-').filter(|group| !group.starts_with('-'));
        let Some((_, attached)) = group.and_then(|group| group.split_once(letter)) else {
            continue;
        };
        let value = if attached.is_empty() {
            arguments.get(at + 1).and_then(|word| word.text())
        } else {
            Some(attached.to_owned())
        };
        reader.inner_line(value.map(|value| format!("{value} \"$_\"")).as_deref());
    }
}

fn is(word: &Word, text: &str) -> bool {
    word.text().as_deref() == Some(text)
}

/// The words as one text, if all of it is known.
fn text(words: &[&Word]) -> Option<String> {
    let texts: Option<Vec<String>> = words.iter().map(|word| word.text()).collect();
    texts.map(|texts| texts.join(" "))
}
