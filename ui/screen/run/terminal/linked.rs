//! The backend of the dashboard: writes cells as crossterm's does, and the links among them as hyperlinks (OSC 8).

use crate::rows::Link;
use crate::screen::run::terminal::{drops_unknown_strings, size};
use crate::screen::view::Links;
use crossterm::{cursor, queue};
use ratatui::backend::{Backend, ClearType, CrosstermBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};
use ratatui::style::Color;
use std::io::{self, Write};

/// Ends a link.
const END: &str = "\x1b]8;;\x1b\\";

/// Whether the terminal gets hyperlinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hyperlinks {
    Written,
    LeftOut,
}

impl Hyperlinks {
    /// How the terminal with these variables is treated. One that does not know the sequence drops it, with exceptions.
    pub fn of_terminal(env: impl Fn(&str) -> Option<String>) -> Self {
        let term = env("TERM").unwrap_or_default();
        let is_in_tmux = env("TMUX").is_some_and(|socket| !socket.is_empty());
        // GNU screen prints the end of a long sequence. tmux has the same name.
        let is_screen = term.starts_with("screen") && !is_in_tmux;
        // Terminals of VTE up to 0.50.0 crash.
        let vte = env("VTE_VERSION").and_then(|version| version.parse::<u32>().ok());
        let is_old = vte.is_some_and(|version| version <= 5000);
        if !drops_unknown_strings(&term) || is_screen || is_old {
            return Self::LeftOut;
        }
        Self::Written
    }
}

/// Crossterm's backend, and the links that it does not know of.
pub struct LinkedBackend<W: Write> {
    /// Writes everything but the links.
    pub inner: CrosstermBackend<W>,
    hyperlinks: Hyperlinks,
    /// The links of the frame that is written next.
    pub links: Links,
}

impl<W: Write> LinkedBackend<W> {
    /// A backend that writes to `writer`. Before its first frame it knows no links.
    pub fn new(writer: W, hyperlinks: Hyperlinks) -> Self {
        let inner = CrosstermBackend::new(writer);
        Self { inner, hyperlinks, links: Links::default() }
    }

    /// Writes cells of one link. Its identity lets the terminal show the parts in several rows as one.
    fn draw_link(&mut self, link: &Link, cells: &[(u16, u16, Cell)]) -> io::Result<()> {
        if let Color::Rgb(red, green, blue) = link.mark() {
            let target = link.target();
            write!(self.inner, "\x1b]8;id=yoi{red:02x}{green:02x}{blue:02x};{target}\x1b\\")?;
        }
        self.draw_plain(cells)?;
        write!(self.inner, "{END}")
    }

    fn draw_plain(&mut self, cells: &[(u16, u16, Cell)]) -> io::Result<()> {
        self.inner.draw(cells.iter().map(|(x, y, cell)| (*x, *y, cell)))
    }
}

impl<W: Write> Backend for LinkedBackend<W> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut content = content.peekable();
        while let Some((_, _, first)) = content.peek() {
            let mark = first.underline_color;
            let Some(marked) = self.links.of(mark).cloned() else {
                let links = &self.links;
                let has_none = |cell: &Cell| links.of(cell.underline_color).is_none();
                let next = || content.next_if(|(_, _, cell)| has_none(cell));
                self.inner.draw(std::iter::from_fn(next))?;
                continue;
            };
            let mut cells = Vec::new();
            while let Some((x, y, cell)) =
                content.next_if(|(_, _, cell)| cell.underline_color == mark)
            {
                let mut cell = cell.clone();
                cell.underline_color = marked.underline;
                cells.push((x, y, cell));
            }
            match &marked.link {
                Some(link) if self.hyperlinks == Hyperlinks::Written => {
                    self.draw_link(link, &cells)?
                }
                Some(_) | None => self.draw_plain(&cells)?,
            }
        }
        Ok(())
    }

    fn append_lines(&mut self, lines: u16) -> io::Result<()> {
        self.inner.append_lines(lines)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        queue!(self.inner, cursor::Hide)
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        queue!(self.inner, cursor::Show)
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        self.inner.get_cursor_position()
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        queue!(self.inner, cursor::MoveTo(x, y))
    }

    fn clear(&mut self) -> io::Result<()> {
        self.inner.clear()
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.inner.clear_region(region)
    }

    /// crossterm's opens the terminal anew each time.
    fn size(&self) -> io::Result<Size> {
        size().map(Size::from)
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        self.inner.window_size()
    }

    /// A frame is flushed with what stands around it, so that it is one write.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
