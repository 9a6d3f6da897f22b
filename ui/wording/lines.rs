//! Lines of text for a person to read, each with a label, some with what they tell of.

use yoi::protocol::{EntryId, PodName};

/// The columns of the label of a line.
pub const LABEL: usize = 15;

/// What a line tells of: a screen can go there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The oldest thing that needs the person.
    NeedsYou,
    /// The item of the inbox with this id.
    Item(String),
    /// An entry in the log of a Pod, or what the log holds before it.
    Entry(PodName, EntryId),
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Empty where the line continues the one above.
    pub label: &'static str,
    pub text: String,
    pub target: Option<Target>,
}

impl Line {
    /// The same line, which tells of this.
    pub fn of(self, target: Option<Target>) -> Self {
        Self { target, ..self }
    }
}

impl<T: Into<String>> From<(&'static str, T)> for Line {
    fn from((label, text): (&'static str, T)) -> Self {
        Self { label, text: text.into(), target: None }
    }
}

/// Whether a line has a label: then all texts begin behind the column of labels.
pub fn are_labelled(lines: &[Line]) -> bool {
    lines.iter().any(|line| !line.label.is_empty())
}

/// The lines as text.
pub fn text_of(lines: &[Line]) -> String {
    let labelled = are_labelled(lines);
    let line = |Line { label, text, .. }: &Line| match labelled {
        false => text.clone(),
        true => format!("{label:<LABEL$}{text}"),
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_label_stands_below_the_text_of_the_line_above() {
        let lines = |labels: [&'static str; 2]| {
            labels.map(|label| Line::from((label, format!("of {label}"))))
        };
        assert_eq!(text_of(&lines(["may", ""])), "may            of may\n               of ");
        assert_eq!(text_of(&lines(["", ""])), "of \nof ", "lines to copy begin at the left");
    }
}
