//! Whether the arguments of a call are complete, told piece by piece: looking at all of them again for each piece
//! would take a time that grows with the square of their length.

/// Counts the brackets of a JSON text as it arrives.
#[derive(Default)]
pub struct Closed {
    open: usize,
    begun: bool,
    in_string: bool,
    escaped: bool,
}

impl Closed {
    pub fn push(&mut self, json: &str) {
        for byte in json.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => (self.open, self.begun) = (self.open + 1, true),
                b'}' | b']' => self.open = self.open.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Whether an object or a list began and as many brackets closed as opened.
    pub fn is_closed(&self) -> bool {
        self.begun && self.open == 0 && !self.in_string
    }
}
