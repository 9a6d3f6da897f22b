//! What a person has to know about the whole host: damage that was repaired, what it cost, and why
//! the host ends. Every screen shows it, and `yoi ls`.

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
        if let Some(event) = self.host_notices().filter(|_| added) {
            self.feed(None, None, &event);
        }
    }

    /// All notices, where there are any.
    pub(crate) fn host_notices(&self) -> Option<Event> {
        let notices = self.notices.borrow().as_ref().clone();
        (!notices.is_empty()).then_some(Event::HostNotices { notices })
    }
}
