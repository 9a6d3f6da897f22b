//! Copying: a text goes to the clipboard of the terminal, a long one to a file.

use crate::screen::app::{App, Clipboard, Effect};
use crate::screen::notice::Kind;
use crate::screen::pane::transcript::{Copy, LogCopy, Source, Transcript};
use crate::wording::scope;
use std::path::PathBuf;

/// The longest text for the clipboard, in bytes: terminals refuse more at once, so a longer text goes
/// to a file.
pub const CLIPBOARD: usize = 1024 * 1024;

/// A text that was read from the log to be copied.
#[derive(Debug)]
pub enum Copied {
    /// For the clipboard.
    Text(String),
    /// The new file that holds it, and its size in bytes.
    File(PathBuf, u64),
}

impl App {
    /// Copies a part of the transcript; `of` names that part in the notice.
    pub(super) fn copy_from(
        &mut self,
        what: impl Fn(&Transcript) -> Option<Copy>,
        of: &str,
    ) -> Vec<Effect> {
        match self.transcript().and_then(what) {
            Some(Copy::Text(text)) => self.copy_named(text, &format!(" of {of}")),
            Some(Copy::FromLog(copy)) => self.copy_from_log(copy),
            Some(Copy::Incomplete) => {
                self.say(Kind::Info, "not copied: wait until this answer is complete")
            }
            None => self.say(Kind::Info, "nothing to copy here"),
        }
    }

    pub(super) fn copy(&mut self, text: String) -> Vec<Effect> {
        self.copy_named(text, "")
    }

    fn copy_named(&mut self, text: String, of: &str) -> Vec<Effect> {
        if text.len() > CLIPBOARD {
            let sources = vec![Source::Text(text)];
            return self.copy_from_log(LogCopy { entry: None, sources, code: false });
        }
        let lines = text.lines().count();
        let size = match (lines, text.chars().count()) {
            (2.., _) => format!("{lines} lines"),
            (_, 1) => "1 char".to_owned(),
            (_, chars) => format!("{chars} chars"),
        };
        self.say(Kind::Done, format!("copied {size}{of} ({})", self.setup.clipboard.name()));
        vec![Effect::Copy(text)]
    }

    /// The program of the display did not take a text: the terminal gets this one and those that follow.
    pub(super) fn not_copied(&mut self, text: String, why: &str) -> Vec<Effect> {
        self.setup.clipboard = Clipboard::Terminal;
        self.say(
            Kind::Warned,
            format!("{why}: copied by the terminal ({})", Clipboard::Terminal.name()),
        );
        vec![Effect::Copy(text)]
    }

    fn copy_from_log(&mut self, copy: LogCopy) -> Vec<Effect> {
        let Some(pod) = self.pod_read().cloned() else {
            return self.say(
                Kind::Refused,
                "not copied: so long a text goes to a file of a Pod, and none is selected",
            );
        };
        self.say(Kind::Info, "copying: the text is being read from the log …");
        vec![Effect::CopyFromLog(pod, copy)]
    }

    pub(super) fn copied(&mut self, copied: Result<Copied, String>) -> Vec<Effect> {
        match copied {
            Ok(Copied::Text(text)) if text.is_empty() => {
                self.say(Kind::Info, "nothing to copy here")
            }
            Ok(Copied::Text(text)) => self.copy(text),
            Ok(Copied::File(path, bytes)) => {
                let size = format!("{:.1} MB", bytes as f64 / 1e6);
                let path = scope::from_home(&path, &self.setup.env);
                self.say(Kind::Done, format!("copied {size} to {path}"))
            }
            Err(why) => self.say(Kind::Refused, format!("not copied: {why}")),
        }
    }
}
