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
                // Some servers encode the object once more, as a string.
                b'"' => (self.in_string, self.begun) = (!self.in_string, true),
                _ if self.in_string => {}
                b'{' | b'[' => (self.open, self.begun) = (self.open + 1, true),
                b'}' | b']' => self.open = self.open.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Whether an object, a list or a string began and all of it closed.
    pub fn is_closed(&self) -> bool {
        self.begun && self.open == 0 && !self.in_string
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_complete_where_all_that_began_in_them_closed() {
        for (json, closed) in [
            ("{}", true),
            (r#"{"a": "}"}"#, true),
            (r#"{"a": "#, false),
            (r#""{\"command\": \"ls\"}""#, true),
            (r#""{\"command\": \"ls\"}"#, false),
            (r#""{\"command\": \""#, false),
            ("", false),
        ] {
            let mut counted = Closed::default();
            json.chars().for_each(|c| counted.push(&c.to_string()));
            assert_eq!(counted.is_closed(), closed, "{json}");
        }
    }
}
