//! A Pod to which other programs send messages at the same time.

use crate::headless::exit::Failure;
use crate::headless::follow::Follow;
use crate::headless::line_client::{LineClient, View};
use crate::headless::own_runs::OwnRuns;
use yoi::client::pages::{Place, last_page};
use yoi::protocol::event::Line;
use yoi::protocol::{Begun, Event, Method, PodName};

impl LineClient {
    /// Brings a Pod back that is stopped or failed; if it is being stopped, when that is done. False if it
    /// is live.
    pub async fn bring_back(&mut self, pod: &PodName) -> Result<bool, Failure> {
        let reply = self.exchange(None, Method::Restore { name: pod.to_string() }).await??;
        let Event::PodRestored { result } = &reply else { return Ok(false) };
        let is_back = result["action"] != "already_live";
        if is_back && self.view != View::NoOne {
            self.printer.reply(Some(pod), &reply);
            self.printer.note(&format!("restored {pod}"));
        }
        Ok(is_back)
    }

    /// As [`LineClient::follow`], but of runs that other programs' messages began nothing is printed.
    pub async fn follow_own_runs(&mut self, pod: &PodName) -> Result<(), Failure> {
        let (client, name) = (self.client.clone(), pod.clone());
        let page = self.while_listening(async move { last_page(&client, &name).await }).await??;
        let runs = OwnRuns::behind(page.lines.last().and_then(Line::entry));
        let follow = Follow::behind(Place::behind(&page.lines), page.seq, page.streaming);
        self.follows.insert(pod.clone(), follow.only_own_runs(runs));
        self.note_whose_run(pod);
        Ok(())
    }

    /// The host accepted the message of this program.
    pub fn accepted(&mut self, pod: &PodName, message: &Begun) {
        if let Some(follow) = self.follows.get_mut(pod) {
            follow.accepted(message.clone(), &mut self.printer);
        }
        self.note_whose_run(pod);
    }

    /// Whether the Pod works for a message of another program.
    pub fn works_for_others(&self, pod: &PodName) -> bool {
        self.follows.get(pod).and_then(Follow::is_others) == Some(true)
    }

    /// Leaves the requests of a Pod that works for another program to that program.
    pub(super) fn note_whose_run(&mut self, pod: &PodName) {
        if let Some(others) = self.follows.get(pod).and_then(Follow::is_others) {
            self.inbox.works_for_others(pod, others);
        }
    }
}
