//! Opening what the block under the cursor leads to.

use crate::screen::app::{App, Effect};
use crate::screen::notice::Kind;
use crate::screen::pane::transcript::{Target, Transcript};

/// The beginnings of addresses that a browser or a mail program gets. Others can start programs on this machine.
const OPENED: [&str; 3] = ["https://", "http://", "mailto:"];

impl App {
    /// Opens the file of the call under the cursor in the person's editor, or the link there in the browser; where no
    /// browser can be started, the address is copied.
    pub(super) fn open_target(&mut self) -> Vec<Effect> {
        let has = |name: &str| self.setup.env.get(name).is_some_and(|value| !value.is_empty());
        let has_browser = (has("WAYLAND_DISPLAY") || has("DISPLAY")) && !has("SSH_CONNECTION");
        match self.transcript().and_then(Transcript::target) {
            Some(Target::File(path, line)) => {
                let cwd =
                    self.pod_read().and_then(|name| self.family.get(name)).map(|info| &info.cwd);
                let path = cwd.map_or(path.clone(), |cwd| cwd.join(path));
                vec![Effect::OpenFile(path, line)]
            }
            Some(Target::Link(link)) => {
                let target = link.target();
                let is_opened = OPENED.iter().any(|scheme| {
                    let start = target.get(..scheme.len());
                    start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
                });
                if has_browser && is_opened {
                    self.say(Kind::Info, format!("opening {target}"));
                    return vec![Effect::OpenLink(target.to_owned())];
                }
                self.copy(target.to_owned())
            }
            None => self.say(Kind::Info, "no file and no link here"),
        }
    }
}
