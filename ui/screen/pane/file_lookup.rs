//! Asking the host for files whose paths are like a text that is being typed: one request at a time, always for the newest text.

/// Which text the files are known for, and whether a request is in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileLookup {
    /// The text of the last reply that was used.
    known_for: Option<String>,
    in_flight: bool,
}

impl FileLookup {
    /// The text to ask the host about: `text`, unless its files are known or a request is in flight.
    pub fn request(&mut self, text: &str) -> Option<String> {
        if self.in_flight || self.is_known_for(text) {
            return None;
        }
        self.in_flight = true;
        Some(text.to_owned())
    }

    /// Ends the request for `asked`. Whether its reply is of use: `text`, which is typed now, is still the same.
    pub fn replied(&mut self, asked: &str, text: &str) -> bool {
        self.in_flight = false;
        let is_of_use = asked == text;
        if is_of_use {
            self.known_for = Some(asked.to_owned());
        }
        is_of_use
    }

    pub fn is_known_for(&self, text: &str) -> bool {
        self.known_for.as_deref() == Some(text)
    }

    /// Forgets the text whose files were dropped, so that they are asked for again.
    pub fn forget(&mut self) {
        self.known_for = None;
    }
}
