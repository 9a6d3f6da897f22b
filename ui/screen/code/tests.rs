//! The tables against files, and against syntect with the syntaxes of bat as judges.

use super::{Class, Highlighter, LONGEST, tables};
use std::path::Path;
use std::sync::LazyLock;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

/// What every character of a text is.
fn classes(language: &str, text: &str) -> Vec<Class> {
    let mut highlighter = Highlighter::new(language);
    let mut all = Vec::new();
    for line in text.lines() {
        let mut at = 0;
        for (len, class) in highlighter.line(line) {
            all.extend(line[at..at + len].chars().map(|_| class));
            at += len;
        }
        assert_eq!(at, line.len(), "the pieces are the line: {line}");
        all.push(Class::Text);
    }
    all
}

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// What the judge takes a character for.
#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Is(Class),
    /// A word of a library, a tag in a selector, a mark beside a keyword: text or keyword, as a table likes.
    Either,
}

impl Verdict {
    /// The innermost scope that says what the character is, which belongs to this word.
    fn of(scopes: &[Scope], c: char, word: &str) -> Self {
        let names: Vec<String> = scopes.iter().rev().map(|scope| scope.build_string()).collect();
        let is = |name: &String, some: &[&str]| some.iter().any(|with| name.starts_with(with));
        if let Some(comment) = names.iter().find(|name| is(name, &["comment"])) {
            // Documentation in the form of a string.
            let docstring = is(
                comment,
                &["comment.block.documentation.python", "comment.documentation.heredoc"],
            );
            return Self::Is(if docstring { Class::String } else { Class::Comment });
        }
        for name in &names {
            if is(name, &["string.unquoted", "string.name.value"])
                && !name.contains("heredoc")
                && !name.contains("block")
            {
                continue;
            }
            if is(name, &["string", "constant.character"]) {
                return Self::Is(Class::String);
            }
            if is(name, &["constant.numeric", "keyword.other.unit"]) {
                return Self::Is(Class::Number);
            }
            if is(name, &["meta.interpolation", "meta.template.expression"]) {
                return Self::Is(Class::Text);
            }
            let library = is(name, &["support", "entity.name.tag.css"])
                || is(name, &["storage.type"]) && word.starts_with(char::is_uppercase);
            let keyword = is(
                name,
                &[
                    "constant.language",
                    "keyword",
                    "storage",
                    "variable.language",
                    "entity.name.tag",
                ],
            );
            if library || keyword && !(c.is_alphanumeric() || c == '_') {
                return Self::Either;
            }
            if keyword {
                return Self::Is(Class::Keyword);
            }
        }
        Self::Is(Class::Text)
    }

    fn accepts(self, class: Class) -> bool {
        match self {
            Self::Is(expected) => expected == class,
            Self::Either => matches!(class, Class::Text | Class::Keyword),
        }
    }
}

/// The word around a byte of a line.
fn word_at(line: &str, at: usize) -> &str {
    let no_word = |c: char| !c.is_alphanumeric() && c != '_';
    let start = line[..at].rfind(no_word).map_or(0, |before| line.ceil_char_boundary(before + 1));
    let end = line[at..].find(no_word).map_or(line.len(), |end| at + end);
    &line[start.min(at)..end]
}

/// What the judge takes every character of a text for.
fn verdicts(language: &str, text: &str) -> Option<Vec<Verdict>> {
    let syntax = SYNTAXES.find_syntax_by_token(language)?;
    let mut state = ParseState::new(syntax);
    let mut stack = ScopeStack::new();
    let mut all = Vec::new();
    for line in text.lines() {
        let line = format!("{line}\n");
        let operations = state.parse_line(&line, &SYNTAXES).ok()?;
        let mut operations = operations.iter().peekable();
        for (at, c) in line.char_indices() {
            while let Some((_, operation)) = operations.next_if(|(from, _)| *from <= at) {
                stack.apply(operation).ok()?;
            }
            all.push(Verdict::of(stack.as_slice(), c, word_at(&line, at)));
        }
        for (_, operation) in operations {
            stack.apply(operation).ok()?;
        }
    }
    Some(all)
}

/// How many characters that can be seen have the class that the judge gives them, of how many; and the
/// lines with the most differences.
fn compare(language: &str, text: &str) -> Option<(usize, usize, Vec<String>)> {
    let (ours, theirs) = (classes(language, text), verdicts(language, text)?);
    let (mut same, mut seen, mut at) = (0, 0, 0);
    let mut worst = Vec::new();
    for line in text.lines() {
        let mut wrong = String::new();
        for c in line.chars() {
            let agrees = theirs[at].accepts(ours[at]);
            if !c.is_whitespace() {
                seen += 1;
                same += usize::from(agrees);
                wrong.push(if agrees { '·' } else { c });
            }
            at += 1;
        }
        at += 1;
        let count = wrong.chars().filter(|c| *c != '·').count();
        if count > 0 {
            worst.push((count, format!("{line}   [{wrong}]")));
        }
    }
    worst.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let worst = worst.into_iter().take(12).map(|(_, line)| line).collect();
    Some((same, seen, worst))
}

/// The language of a file, by its ending, or by its name if it has none.
fn language_of(path: &Path) -> Option<&str> {
    path.extension().or(path.file_name()).and_then(|name| name.to_str())
}

#[test]
fn at_least_95_of_100_characters_have_the_colour_that_the_judge_gives_them() {
    let mut files = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("ui/screen/code/corpus"), &mut files);
    let (mut languages, mut wrong) = (std::collections::BTreeSet::new(), Vec::new());
    for path in files {
        let language = language_of(&path).unwrap();
        let table = tables::find(language).unwrap_or_else(|| panic!("no table for {language}"));
        languages.insert(table.names[0]);
        let text = std::fs::read_to_string(&path).unwrap();
        let (same, seen, worst) =
            compare(language, &text).unwrap_or_else(|| panic!("no judge for {language}"));
        if same * 100 < seen * 95 {
            wrong.push(format!("{language}: {same} of {seen}\n  {}", worst.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(languages.len() >= 20, "{languages:?}");
}

/// `YOI_CORPUS=<directory>` compares the files below it.
#[test]
fn the_files_of_a_directory_have_the_colours_that_the_judge_gives_them() {
    let Some(dir) = std::env::var_os("YOI_CORPUS") else { return };
    let mut files = Vec::new();
    collect(Path::new(&dir), &mut files);
    let mut by_language = std::collections::BTreeMap::<&str, (usize, usize, Vec<String>)>::new();
    for path in files {
        let Some(ending) = language_of(&path) else { continue };
        let Some(language) = tables::find(ending) else { continue };
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        if text.len() > 60_000 || text.lines().any(|line| line.len() > LONGEST) {
            continue;
        }
        let all = by_language.entry(language.names[0]).or_default();
        if all.1 > 400_000 {
            continue;
        }
        let Some((same, seen, worst)) = compare(ending, &text) else { continue };
        all.0 += same;
        all.1 += seen;
        if same * 100 < seen * 95 {
            all.2.extend(
                worst.into_iter().take(2).map(|line| format!("{}: {line}", path.display())),
            );
        }
    }
    let (mut all_same, mut all, mut report) = (0, 0, String::new());
    for (language, (same, seen, worst)) in by_language {
        (all_same, all) = (all_same + same, all + seen);
        report += &format!("{language}: {same} of {seen}\n{}\n", worst.join("\n"));
    }
    assert!(all_same * 100 >= all * 95, "{all_same} of {all}\n{report}");
}

fn collect(dir: &Path, files: &mut Vec<std::path::PathBuf>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

#[test]
fn the_pieces_of_a_line_are_the_line_in_every_language() {
    let lines = [
        "it's 'x",
        "日本 \"語",
        "a//b",
        "x#y",
        "''",
        "\\",
        "r#\"",
        "<<EOF",
        "s{a}{b}",
        "[==[",
        "<a b='",
        "=begin",
        "'",
        "é'a'",
        "q(",
    ];
    for language in tables::all() {
        let mut highlighter = Highlighter::new(language.names[0]);
        for line in lines.iter().chain(&lines) {
            let spans = highlighter.line(line);
            assert_eq!(spans.iter().map(|(len, _)| len).sum::<usize>(), line.len(), "{line}");
            let mut at = 0;
            for (len, _) in spans {
                at += len;
                assert!(line.is_char_boundary(at), "{line} in {}", language.names[0]);
            }
        }
    }
}

#[test]
fn a_line_that_is_too_long_has_no_colours_and_changes_nothing() {
    let mut highlighter = Highlighter::new("c");
    highlighter.line("/*");
    let long = "*/ ".repeat(LONGEST);
    assert_eq!(highlighter.line(&long), [(long.len(), Class::Text)]);
    assert_eq!(highlighter.line("still"), [(5, Class::Comment)]);
}

#[test]
fn no_name_means_two_languages() {
    let mut names: Vec<&str> =
        tables::all().flat_map(|language| language.names.iter().copied()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn the_lines_of_a_patch_say_what_it_changes() {
    let mut patch = Highlighter::new("diff");
    let mut class = |line: &str| patch.line(line)[0].1;
    assert_eq!(class("@@ -1 +1 @@"), Class::Keyword);
    assert_eq!(class("-old"), Class::Removed);
    assert_eq!(class("+new"), Class::Added);
    assert_eq!(class(" same"), Class::Comment);
}
