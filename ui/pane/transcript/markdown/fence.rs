//! Blocks of code between fences, followed through a text that comes in pieces.

/// How many bytes of a line are read: enough for a fence and the language behind it.
pub const FENCE_LINE: usize = 256;

/// An open block of code: what closes it, and its language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    mark: char,
    count: usize,
    pub language: String,
}

impl Fence {
    pub fn opened_by(line: &str, language: &str) -> Option<Self> {
        let line = line.trim_start();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let count = line.chars().take_while(|c| *c == mark).count();
        Some(Self { mark, count, language: language.into() })
    }

    /// The block of code that a line of the top level begins, if it does.
    fn begun_by(line: &str) -> Option<Self> {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let found = Self::opened_by(line, "").filter(|fence| indent < 4 && fence.count >= 3)?;
        let info = &line[indent + found.count..];
        let inline = found.mark == '`' && info.contains('`');
        (!inline).then(|| Self { language: language_of(info.trim()), ..found })
    }

    pub fn closed_by(&self, line: &str) -> bool {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let line = line.trim();
        indent < 4 && line.len() >= self.count && line.chars().all(|c| c == self.mark)
    }
}

/// The language that the words behind a fence name.
pub fn language_of(info: &str) -> String {
    info.split([' ', ',', '{']).next().unwrap_or("").to_owned()
}

/// Tells, while a text is read, whether its current place is inside a block of code.
#[derive(Clone, Debug, Default)]
pub struct Fences {
    /// The beginning of the line that is not complete.
    line: String,
    open: Option<Fence>,
    blank: bool,
}

impl Fences {
    pub fn push(&mut self, piece: &str) {
        for line in piece.split_inclusive('\n') {
            let room = FENCE_LINE.saturating_sub(self.line.len());
            self.line.push_str(&line[..line.floor_char_boundary(room)]);
            if line.ends_with('\n') {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = line.trim_end_matches('\n');
        self.blank = line.trim().is_empty();
        match &self.open {
            Some(fence) if fence.closed_by(line) => self.open = None,
            Some(_) => {}
            None => self.open = Fence::begun_by(line),
        }
    }

    /// The block of code that is open after the last complete line.
    pub fn open(&self) -> Option<&Fence> {
        self.open.as_ref()
    }

    /// Whether the last complete line was empty.
    pub fn after_blank(&self) -> bool {
        self.blank
    }
}
