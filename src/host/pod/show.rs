//! Publishes a Pod to clients: its state, its transcript, its events.

use crate::host::absent_person;
use crate::host::pod::{Parental, Pod, Subscription, View};
use crate::protocol::{Event, GoesOnBy, Greeting, PodInfo, PodStatus, State};
use crate::run::TAKEN_BACK;
use crate::store::Wanted;

impl Pod {
    pub(super) fn view(&self) -> View {
        View {
            files: self.files.clone(),
            segment: self.row.segment,
            end: self.end,
            in_flight: self.publisher.in_flight.clone(),
            seq: self.publisher.seq,
        }
    }

    pub(super) fn parental(&self) -> Parental {
        Parental {
            cwd: self.row.cwd.clone(),
            workspace: self.row.workspace.clone(),
            resolved: self.resolved.clone(),
            env: self.env.clone(),
        }
    }

    pub(super) fn subscription(&mut self) -> Subscription {
        self.choose_tools();
        let info = self.info.borrow().clone();
        let (wire, model) = match &self.resolved.model {
            Some(choice) => (choice.model.wire.name().to_owned(), choice.model.model.clone()),
            None => (String::new(), String::new()),
        };
        Subscription {
            greeting: Greeting {
                pod_name: self.row.name.to_string(),
                cwd: self.row.cwd.display().to_string(),
                provider: wire,
                model,
                scope_summary: self.granted.borrow().scope.summary(),
                tools: self.tool_set.borrow().names(),
                context_window: info.context_window,
                context_tokens: info.context_tokens,
            },
            alerts: self.publisher.alerts.iter().cloned().collect(),
            status: self.status(),
            events: self.publisher.reader(),
            view: self.view(),
        }
    }

    /// The status in the words of the frozen wire.
    pub(super) fn status(&self) -> PodStatus {
        self.shared.status(&self.info.borrow())
    }

    /// Changes the info of the Pod, and shows it on every screen when it did change.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut PodInfo)) {
        let seq = self.publisher.seq;
        let mut former = None;
        let changed = self.info.send_if_modified(|info| {
            let before = info.clone();
            former = Some(before.state);
            change(info);
            if info.state != before.state {
                info.since = crate::protocol::now_ms();
            }
            info.seq = seq;
            *info != before
        });
        if let Some(former) = former.filter(|_| changed) {
            absent_person::note(&self.shared, former, &self.info.borrow());
            self.show_info();
        }
    }

    /// Shows the info of the Pod on every screen, once the Pod is listed.
    pub(super) fn show_info(&self) {
        if !self.newborn {
            let info = Box::new(self.info.borrow().clone());
            self.shared.feed(None, None, &Event::PodChanged { info });
        }
    }

    /// Enters a state. The end of a stopped Pod's last run does not show the Pod as live.
    pub(super) fn enter(&mut self, state: State, why: Option<String>) {
        self.enter_until(state, why, None);
    }

    /// The same, with what lets the Pod go on where that is not `resume`.
    pub(super) fn enter_until(&mut self, state: State, why: Option<String>, by: Option<GoesOnBy>) {
        if self.row.wanted == Wanted::Live || state == State::Stopped {
            self.show(state, why, by);
        }
    }

    /// Shows a state, and says so on the wire when its word there changes.
    pub(super) fn show(&mut self, state: State, why: Option<String>, goes_on_by: Option<GoesOnBy>) {
        let before = self.status();
        let is_taken_back = why.as_ref().is_some_and(|why| why.contains(TAKEN_BACK));
        let goes_on_by = goes_on_by.or_else(|| is_taken_back.then_some(GoesOnBy::Message));
        self.change(|info| {
            info.state = state;
            info.why = why;
            (info.goes_on_by, info.retry_at) = (goes_on_by, None);
            info.cut_at = None;
        });
        let status = self.status();
        if status != before {
            self.publisher.publish(&Event::Status { status });
        }
    }

    /// Shows the scope that the Pod holds now.
    pub(super) fn show_granted(&mut self) {
        let granted = self.granted.borrow().clone();
        let mut notes = granted.notes;
        notes.extend(self.notes.iter().cloned());
        notes.extend(self.rules_note.clone());
        notes.extend(self.jobs.waiting());
        notes.extend(self.exchange.note(&self.row.name));
        self.change(|info| {
            info.notes = notes;
            info.scope = granted.scope.allow;
            info.deny = granted.scope.deny;
            info.lent = granted.lent;
        });
    }
}
