//! The tables, one for each language.

mod compiled;
mod data;
mod scripts;

use crate::screen::code::language::Language;

/// The language with this name or file ending; upper and lower case make no difference.
pub fn find(name: &str) -> Option<&'static Language> {
    let name = name.to_ascii_lowercase();
    let known = |language: &&&'static Language| language.names.contains(&name.as_str());
    all().find(known).copied()
}

/// All languages.
pub fn all() -> impl Iterator<Item = &'static &'static Language> {
    compiled::ALL.iter().chain(scripts::ALL).chain(data::ALL)
}
