//! The links of a frame. Its cells hold marks only; what each mark stands for is listed here.

use crate::rows::Link;
use crate::screen::app::App;
use ratatui::style::Color;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// What the mark of a cell stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    /// `None` where two targets of one frame have the same mark: neither is a link then.
    pub link: Option<Link>,
    /// The colour that the underline has on the screen; in the cell, the mark takes its place.
    pub underline: Color,
}

/// What the marks of a frame stand for.
#[derive(Clone, Debug, Default)]
pub struct Links {
    marks: HashMap<Color, Marked>,
}

impl Links {
    /// Adds a link whose underline would have this colour.
    pub fn add(&mut self, link: &Link, underline: Color) {
        match self.marks.entry(link.mark()) {
            Entry::Vacant(place) => {
                place.insert(Marked { link: Some(link.clone()), underline });
            }
            Entry::Occupied(mut place) => {
                let marked = place.get_mut();
                marked.link.take_if(|other| other != link);
            }
        }
    }

    /// What a cell whose underline has this colour belongs to.
    pub fn of(&self, underline: Color) -> Option<&Marked> {
        self.marks.get(&underline)
    }
}

/// The links in the transcripts that are shown. The cost follows the rows in view.
pub fn links(app: &App) -> Links {
    let mut links = Links::default();
    let shown = [app.shown(), app.beside()].into_iter().flatten();
    for transcript in shown.filter_map(|name| app.transcript_at(name)) {
        for (piece, link) in transcript.links() {
            let underline = app.theme.style(piece.style.role).underline_color;
            links.add(link, underline.unwrap_or_default());
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_targets_with_one_mark_are_no_links() {
        let [one, other] = ["https://a/1", "https://a/2"].map(|text| Link::parse(text).unwrap());
        let mut links = Links::default();
        links.add(&one, Color::Red);
        links.add(&one, Color::Blue);
        let found = links.of(one.mark()).expect("the first link");
        assert_eq!((found.link.as_ref(), found.underline), (Some(&one), Color::Red));
        assert_eq!(links.of(other.mark()), None);
        // As if both had one hash.
        let marked = Marked { link: Some(other), underline: Color::Reset };
        links.marks.insert(one.mark(), marked);
        for _ in 0..2 {
            links.add(&one, Color::Red);
            let found = links.of(one.mark()).expect("the mark of both");
            assert_eq!((found.link.as_ref(), found.underline), (None, Color::Reset));
        }
    }
}
