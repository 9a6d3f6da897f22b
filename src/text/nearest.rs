//! The name that a person may have meant.

/// From which Jaro-Winkler likeness on (0 to 1) a name is offered for an unknown word.
const ALIKE: f64 = 0.8;

/// The one of these names that is most like `word`, for a hint; `None` if none is like it, or several are equally.
pub fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut like: Vec<(f64, &str)> =
        names.map(|name| (strsim::jaro_winkler(name, word), name)).collect();
    like.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    like.dedup_by_key(|(_, name)| *name);
    match like[..] {
        [(best, name)] if best >= ALIKE => Some(name),
        [(best, name), (second, _), ..] if best >= ALIKE && best > second => Some(name),
        _ => None,
    }
}
