//! The text that a model writes once more from its beginning, although it is to go on behind the place where its
//! connection broke.

use crate::protocol::{Item, Role};

/// Finds the text of a broken reply at the beginning of the next one.
pub(crate) struct Repeated {
    /// Empty where no text may be repeated any more.
    broken: String,
    /// What came so far, while it may turn out to be the same text.
    came: String,
}

impl Repeated {
    pub(crate) fn of(broken: String) -> Self {
        Self { broken, came: String::new() }
    }

    /// What of the text so far is new and was not handed out before. It is empty while it may be a repetition.
    pub(crate) fn new_part(&mut self, piece: String) -> String {
        if self.broken.is_empty() || self.came.len() >= self.broken.len() {
            return piece;
        }
        self.came.push_str(&piece);
        if let Some(new) = self.came.strip_prefix(&self.broken) {
            return new.to_owned();
        }
        if self.broken.starts_with(&self.came) {
            return String::new();
        }
        self.broken.clear();
        std::mem::take(&mut self.came)
    }

    /// The new part of a complete block, `None` where it repeats nothing. Only the first message can.
    pub(crate) fn new_block(&mut self, item: &Item) -> Option<String> {
        let Item::Message { role: Role::Assistant, .. } = item else { return None };
        let broken = std::mem::take(&mut self.broken);
        let new = item.text()?.strip_prefix(&broken).map(str::to_owned);
        new.filter(|_| !broken.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_begins_anew_is_found_and_one_that_goes_on_is_kept() {
        for (broken, pieces, shown, block) in [
            (
                "one two",
                &["one", " two", " three", " four"][..],
                " three four",
                Some(" three four"),
            ),
            ("one two", &["one two"], "", Some("")),
            ("one two", &[" three"], " three", None),
            ("one two", &["one", " more"], "one more", None),
            ("one two", &["one"], "", None),
            ("", &["one"], "one", None),
        ] {
            let mut repeated = Repeated::of(broken.into());
            let parts = pieces.iter().map(|piece| repeated.new_part((*piece).to_owned()));
            assert_eq!(parts.collect::<String>(), shown, "{pieces:?}");
            let item = Item::message(Role::Assistant, pieces.concat());
            assert_eq!(repeated.new_block(&item).as_deref(), block, "{pieces:?}");
            assert_eq!(repeated.new_block(&item), None, "a later block counts as it is");
        }
    }
}
