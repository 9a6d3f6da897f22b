//! What a person has to know about the whole host: damage that was repaired, what it cost, why the host ends, and the
//! mistakes in its settings. Every screen shows it, and `yoi ls`.

use crate::host::Shared;
use crate::protocol::Event;
use std::sync::Arc;

impl Shared {
    /// Adds a notice and sends all of them to every screen; one that is known changes nothing.
    pub(crate) fn add_notice(&self, notice: String) {
        let added = self.notices.send_if_modified(|notices| {
            let new = !notices.contains(&notice);
            if new {
                Arc::make_mut(notices).push(notice);
            }
            new
        });
        if added {
            self.publish_notices();
        }
    }

    /// Sends all notices to every screen, also where none is left: the screen drops those that are over.
    pub(crate) fn publish_notices(&self) {
        self.feed(None, None, &self.all_notices());
    }

    /// All notices, where there are any.
    pub(crate) fn host_notices(&self) -> Option<Event> {
        let all = self.all_notices();
        (all != Event::HostNotices { notices: Vec::new(), mistakes: Vec::new() }).then_some(all)
    }

    /// The event that lists all notices.
    pub(crate) fn all_notices(&self) -> Event {
        let notices = self.notices.borrow().as_ref().clone();
        Event::HostNotices { notices, mistakes: self.settings.last().mistakes }
    }
}
