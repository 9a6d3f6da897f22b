//! Server-sent events: bytes in, events out, however the bytes are cut.

/// The most bytes one event may have. A whole block can come as one event, so it is as long as a line
/// of the log may be.
const MAX_EVENT: usize = crate::protocol::MAX_LINE;
pub(crate) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The `event` field, empty when there was none.
    pub name: String,
    /// The `data` lines, joined by line feeds.
    pub data: String,
}

/// An event grew past the decoder's limit; nothing more can be read from its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one event is longer than {} MiB, more than is read", .0 >> 20)]
pub struct TooLong(pub usize);

/// Collects bytes until a blank line ends an event. Lines end in CR, LF or CRLF; bytes that are
/// not UTF-8 become U+FFFD; comments and unknown fields are passed over. A line with an unknown field and a `{` is an event
/// of its own: the name `data` was lost or damaged on the way.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    first_line: bool,
    after_cr: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT)
    }
}

impl Decoder {
    /// A decoder that refuses events of more than `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        let (line, event) = (Vec::new(), Event::default());
        Self { limit, line, event, has_data: false, first_line: true, after_cr: false }
    }

    /// Takes the next bytes of the stream and appends the events they complete.
    pub fn feed(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<(), TooLong> {
        if std::mem::take(&mut self.after_cr) {
            bytes = bytes.strip_prefix(b"\n").unwrap_or_else(|| {
                // Only the very next byte can belong to the CR; an empty chunk has none.
                self.after_cr = bytes.is_empty();
                bytes
            });
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
            self.grow(&bytes[..end])?;
            self.end_of_line(events);
            let rest = &bytes[end + 1..];
            let cr = bytes[end] == b'\r';
            self.after_cr = cr && rest.is_empty();
            bytes = if cr { rest.strip_prefix(b"\n").unwrap_or(rest) } else { rest };
        }
        self.grow(bytes)
    }

    /// The stream ended: hands out what a missing blank line held back.
    pub fn finish(&mut self, events: &mut Vec<Event>) {
        if !self.line.is_empty() {
            self.end_of_line(events);
        }
        self.dispatch(events);
    }

    fn grow(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + self.event.data.len() + bytes.len() > self.limit {
            return Err(TooLong(self.limit));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_of_line(&mut self, events: &mut Vec<Event>) {
        let bytes = std::mem::take(&mut self.line);
        let first = std::mem::take(&mut self.first_line);
        let bare = if first { bytes.strip_prefix(BOM).unwrap_or(&bytes) } else { &bytes };
        if bare.is_empty() {
            return self.dispatch(events);
        }
        let line = String::from_utf8_lossy(bare);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.data(value),
            "id" | "retry" => {}
            "event" => {
                self.dispatch_whole(events);
                value.clone_into(&mut self.event.name);
            }
            // An object without its field, or behind a damaged one.
            _ if !field.is_empty() && line.contains('{') => {
                self.dispatch_whole(events);
                let name = std::mem::take(&mut self.event.name);
                events.push(Event { name, data: line.into_owned() });
            }
            _ => {}
        }
    }

    fn data(&mut self, value: &str) {
        if std::mem::replace(&mut self.has_data, true) {
            self.event.data.push('\n');
        }
        self.event.data.push_str(value);
    }

    /// Dispatches an event that has its data: the blank line behind it is missing.
    fn dispatch_whole(&mut self, events: &mut Vec<Event>) {
        if self.has_data {
            self.dispatch(events);
        }
    }

    fn dispatch(&mut self, events: &mut Vec<Event>) {
        let event = std::mem::take(&mut self.event);
        if std::mem::take(&mut self.has_data) {
            events.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
        let (mut decoder, mut events) = (Decoder::default(), Vec::new());
        for chunk in chunks {
            decoder.feed(chunk, &mut events).unwrap();
        }
        decoder.finish(&mut events);
        events
    }

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.into(), data: data.into() }
    }

    #[test]
    fn a_byte_order_mark_comments_and_unknown_fields_are_passed_over() {
        let stream = b"\xEF\xBB\xBF: hello\nid: 7\nretry: 10\nevent: a\ndata: 1\n\n:\n\ndata:2\n\n";
        assert_eq!(decode([&stream[..]]), [event("a", "1"), event("", "2")]);
    }

    #[test]
    fn every_kind_of_line_end_is_a_line_end() {
        let expected = [event("x", "1\n2"), event("", "3")];
        for end in ["\n", "\r", "\r\n"] {
            let stream = ["event: x", "data: 1", "data: 2", "", "data: 3", "", ""].join(end);
            assert_eq!(decode([stream.as_bytes()]), expected, "{end:?}");
        }
    }

    #[test]
    fn a_missing_blank_line_and_a_missing_field_lose_no_event() {
        let stream =
            b"event: a\ndata: 1\nevent: b\ndata: 2\n\n{\"c\": 3}\nd@ta: {4}\nid: {5}\n: {6}\n";
        let expected =
            [event("a", "1"), event("b", "2"), event("", "{\"c\": 3}"), event("", "d@ta: {4}")];
        assert_eq!(decode([&stream[..]]), expected);
    }

    #[test]
    fn an_event_without_data_is_none_and_leaves_no_name_behind() {
        assert_eq!(decode([&b"event: a\n\ndata: 1\n\n"[..]]), [event("", "1")]);
        let bare = decode([&b"data: 1\n{\"c\": 2}\n\nevent: error\n{\"m\": 1}\n\n"[..]]);
        assert_eq!(bare, [event("", "1"), event("", "{\"c\": 2}"), event("error", "{\"m\": 1}")]);
        assert_eq!(decode([&b"data\n\n"[..]]), [event("", "")]);
    }

    #[test]
    fn the_last_event_counts_even_without_its_blank_line() {
        assert_eq!(decode([&b"data: [DONE]"[..]]), [event("", "[DONE]")]);
        assert_eq!(decode([&b"data: 1\n"[..]]), [event("", "1")]);
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(decode([&b"data: a\xFFb\n\n"[..]]), [event("", "a\u{FFFD}b")]);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut decoder = Decoder::with_limit(8);
        let mut events = Vec::new();
        decoder.feed(b"data: 1\n\n", &mut events).unwrap();
        decoder.feed(b"data: 12", &mut events).unwrap();
        assert_eq!(decoder.feed(b"3", &mut events), Err(TooLong(8)));
    }

    #[test]
    fn many_short_lines_of_one_event_are_refused_too() {
        let mut decoder = Decoder::with_limit(64);
        let mut events = Vec::new();
        let refused = (0..100).any(|_| decoder.feed(b"data: x\n", &mut events).is_err());
        assert!(refused && events.is_empty());
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"data: ".to_vec()),
            Just(b"event: ".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"\r".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\n\n".to_vec()),
            Just(BOM.to_vec()),
            Just("日本語👩‍💻é".as_bytes().to_vec()),
            proptest::collection::vec(any::<u8>(), 0..6),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn chunking_never_changes_the_result(bytes in stream(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12)) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(decode(chunks), decode([&bytes[..]]));
            prop_assert_eq!(decode(bytes.chunks(1)), decode([&bytes[..]]));
        }
    }
}
