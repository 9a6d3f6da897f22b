//! The first part of a rule, before its colon: a tool and what its call may need, as in
//! `Bash+network+read=/srv/data`.

/// What stands between the words.
const AND: char = '+';
/// What ends them.
const END: char = ':';

/// The words of this text, the tool first. `\` before a plus or a colon makes it a part of its word; before
/// any other character it stays, for patterns give it a meaning.
pub fn split(tool: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut chars = tool.chars();
    while let Some(c) = chars.next() {
        if c == AND {
            words.push(String::new());
            continue;
        }
        let Some(word) = words.last_mut() else { continue };
        match c {
            '\\' => match chars.next() {
                Some(literal @ (AND | END)) => word.push(literal),
                other => {
                    word.push('\\');
                    word.extend(other);
                }
            },
            c => word.push(c),
        }
    }
    words
}

/// A text as a word that stands for exactly this text, also where the word is a pattern.
pub fn literal(text: &str) -> String {
    let mut word = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '\\' | AND | END) {
            word.push('\\');
        }
        word.push(c);
    }
    word
}

/// The place of the colon that ends the words of a rule.
pub fn end(rule: &str) -> Option<usize> {
    let mut escaped = false;
    rule.char_indices().find_map(|(at, c)| {
        let ends = c == END && !escaped;
        escaped = c == '\\' && !escaped;
        ends.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tool_and_its_needs_are_words() {
        assert_eq!(split("Bash+network+git"), ["Bash", "network", "git"]);
        assert_eq!(split(r"Bash+read=/a\+b\:c\*d\\"), ["Bash", r"read=/a+b:c\*d\\"]);
        assert_eq!(end(r"Bash+read=/a\:b:cargo x:y"), Some(15));
        assert_eq!(end(r"Bash\\:x"), Some(6));
    }

    proptest! {
        #[test]
        fn a_literal_word_is_one_word_and_ends_nowhere(text in r"[a+:*?\\ /é]{0,12}") {
            let word = literal(&text);
            prop_assert_eq!(split(&word).len(), 1);
            prop_assert_eq!(end(&word), None);
            prop_assert_eq!(end(&format!("{word}:x")), Some(word.len()));
        }
    }
}
