//! The open text block of a Pod: how much of it was written while it streamed, and the rest that is
//! written when it is committed. Where the two texts differ, the committed text counts.

use crate::headless::output::Piece;
use crate::headless::print::Form;
use yoi::text::SafeStream;

/// The part of a streaming block that was written.
#[derive(Clone, Debug, Default)]
pub struct OpenBlock {
    /// In bytes of the text as the model sent it.
    written: u64,
    hash: blake3::Hasher,
    ends_line: bool,
    safe: SafeStream,
}

impl OpenBlock {
    /// Whether the text so far ends inside a line.
    pub fn inside_a_line(&self) -> bool {
        self.written > 0 && !self.ends_line
    }

    /// The output for the next piece of the text.
    pub fn stream(&mut self, form: Form, text: &str) -> Piece {
        self.written += text.len() as u64;
        self.hash.update(text.as_bytes());
        if !text.is_empty() {
            self.ends_line = text.ends_with('\n');
        }
        match form {
            Form::Raw => Piece::Committed(text.to_owned()),
            Form::Plain | Form::Json => Piece::Safe(self.safe.push(text)),
        }
    }

    /// The completion of this block from its committed text.
    pub fn complete(self) -> Completion {
        Completion { skip: self.written, check: blake3::Hasher::new(), block: self }
    }

    /// The output for a committed text that came whole.
    pub fn finish(self, form: Form, text: &str) -> Vec<Piece> {
        let inside_a_line = self.inside_a_line();
        let mut completion = self.complete();
        if let Ok(piece) = completion.push(form, text)
            && let Ok(end) = completion.end(form)
        {
            return piece.into_iter().chain(end).collect();
        }
        // The text that was shown is not the one that was committed: the whole text follows on a new line.
        let mut again = Self::default();
        let mut pieces: Vec<Piece> = Vec::new();
        pieces.extend(inside_a_line.then(|| Self::default().stream(form, "\n")));
        pieces.push(again.stream(form, text));
        pieces.extend(again.inside_a_line().then(|| again.stream(form, "\n")));
        pieces
    }
}

/// The committed text does not begin with what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Differs;

/// A block that is completed from its committed text, piece by piece.
pub struct Completion {
    /// Bytes that were written before and are compared only.
    skip: u64,
    check: blake3::Hasher,
    block: OpenBlock,
}

impl Completion {
    /// The output for the next piece of the committed text.
    pub fn push(&mut self, form: Form, text: &str) -> Result<Option<Piece>, Differs> {
        let known = usize::try_from(self.skip).unwrap_or(usize::MAX).min(text.len());
        let (known, new) = text.split_at_checked(known).ok_or(Differs)?;
        if self.skip > 0 {
            self.check.update(known.as_bytes());
            self.skip -= known.len() as u64;
            if self.skip == 0 && self.check.finalize() != self.block.hash.finalize() {
                return Err(Differs);
            }
        }
        Ok((!new.is_empty()).then(|| self.block.stream(form, new)))
    }

    /// The output behind the last piece, so that any other output begins a line.
    pub fn end(mut self, form: Form) -> Result<Option<Piece>, Differs> {
        if self.skip > 0 {
            return Err(Differs);
        }
        Ok((!self.block.ends_line).then(|| self.block.stream(form, "\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(pieces: impl IntoIterator<Item = Piece>) -> String {
        let text = |piece| match piece {
            Piece::Safe(text) | Piece::Note(text) => text.into_string(),
            Piece::Committed(text) => text,
        };
        pieces.into_iter().map(text).collect()
    }

    proptest! {
        #[test]
        fn the_committed_text_is_written_once_wherever_the_stream_was_left(
            said in "([a-c\n日🎈\u{1b}\r]){0,60}",
            streamed in any::<prop::sample::Index>(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let at = |index: &prop::sample::Index| {
                said.floor_char_boundary(index.index(said.len() + 1))
            };
            let shown = at(&streamed);
            let mut cuts: Vec<usize> = cuts.iter().map(at).chain([0, said.len()]).collect();
            cuts.sort_unstable();
            for form in [Form::Raw, Form::Plain] {
                let mut block = OpenBlock::default();
                let mut pieces = Vec::new();
                for c in said[..shown].chars() {
                    pieces.push(block.stream(form, &c.to_string()));
                }
                let whole = text(pieces.into_iter().chain(block.clone().finish(form, &said)));
                let mut completion = block.clone().complete();
                let mut rest = Vec::new();
                for cut in cuts.windows(2) {
                    rest.extend(completion.push(form, &said[cut[0]..cut[1]]).unwrap());
                }
                rest.extend(completion.end(form).unwrap());
                let expected = match form {
                    Form::Raw if said.ends_with('\n') => said.clone(),
                    Form::Raw => said.clone() + "\n",
                    _ => {
                        let end = if said.ends_with('\n') { "" } else { "\n" };
                        yoi::text::SafeText::lines(said.clone() + end).into_string()
                    }
                };
                prop_assert_eq!(&whole, &expected);
                prop_assert!(whole.ends_with(&text(rest)));
            }
        }
    }

    #[test]
    fn a_committed_text_that_differs_from_its_stream_follows_whole_on_a_new_line() {
        let mut block = OpenBlock::default();
        block.stream(Form::Raw, "hal");
        assert_eq!(text(block.clone().finish(Form::Raw, "hello")), "\nhello\n");
        assert_eq!(text(block.clone().finish(Form::Raw, "h")), "\nh\n");
        assert!(block.complete().push(Form::Raw, "hello").is_err());
    }
}
