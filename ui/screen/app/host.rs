//! Events of the host, which change the state, and its replies, which continue what a call was for.

use crate::screen::app::frame::is_of_the_family;
use crate::screen::app::pace::Pace;
use crate::screen::app::screen_state::Returning;
use crate::screen::app::{App, Asked, Effect, Link, RequestToken};
use crate::screen::notice::Kind;
use crate::screen::pane::composer::Message;
use crate::wording::corrected;
use serde::Deserialize as _;
use yoi::client::family::MistakeChange;
use yoi::llm::rehearsal::{TOUR_LINES, TOUR_RETURN, plays_tour};
use yoi::protocol::entry::domain;
use yoi::protocol::{
    Entry, Event, Fact, Method, Outgoing, PodInfo, PodName, Refusal, Segment, SettingsMistake,
    State,
};
use yoi::text::SafeText;

/// How often the screen looks for a host while there is none, in milliseconds.
const FIND_HOST_EVERY: u64 = 1_000;

/// The search for a host while there is none.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    /// When the connection ended.
    pub(super) lost: Option<u64>,
    next: u64,
    under_way: bool,
    /// The last reason why a host refused the connection; it is shown once.
    why: Option<String>,
}

impl App {
    pub(super) fn host(&mut self, outgoing: Outgoing) -> Vec<Effect> {
        let Outgoing { pod, seq, mut event, .. } = outgoing;
        if let Event::PodChanged { info } = &mut event {
            self.pace.hold(self.family.get(&info.name), info, self.now);
        }
        if let Some(pod) = &pod {
            self.family.received(pod, self.now);
            if let Some(transcript) = self.transcripts.get_mut(pod) {
                transcript.apply(seq, &event);
            }
        }
        if is_of_the_family(&event) {
            self.outside_changed();
        }
        let (first, tour) = (!self.family.is_known(), self.pod_of_tour());
        let former = self.family.apply(&event);
        match event {
            // The mark names no Pod, because each may have missed events.
            Event::Lagged => {
                self.transcripts.values_mut().for_each(|one| one.apply(None, &Event::Lagged));
                Vec::new()
            }
            Event::Family { approvals, .. } => {
                self.pace = Pace::default();
                self.note_undecided(&approvals);
                let mut effects = self.family_known(first);
                effects.extend(self.tour_caught_up(tour));
                // A host that finds no mistake lists none.
                if self.mistakes.are_of_former_host() {
                    effects.extend(self.mistakes_came(Vec::new()));
                }
                effects
            }
            Event::HostNotices { notices, mistakes } => {
                self.host_notices_came(notices);
                self.mistakes_came(mistakes)
            }
            Event::PodChanged { info } => {
                self.pod_changed(&info, former.pod.map(|before| before.state))
            }
            Event::PodRemoved { name } => self.pod_removed(&name),
            Event::ApprovalRequested { approval } => {
                self.note_undecided(&[*approval]);
                Vec::new()
            }
            Event::ApprovalDecided { verdict, .. } => match former.request {
                Some(request) => self.request_decided(&request, &verdict),
                None => Vec::new(),
            },
            Event::Entry { entry, .. } => self.taken_back(pod.as_ref(), &entry),
            Event::RunEnd { .. } => {
                self.interrupted.retain(|other| Some(other) != pod.as_ref());
                Vec::new()
            }
            Event::RewindApplied { input, .. } => self.rewound(pod.as_ref(), &Message::of(&input)),
            Event::CompactFailed { error } => self.of_current(pod.as_ref(), Kind::Warned, &error),
            Event::Alert(alert) => self.of_current(pod.as_ref(), Kind::Warned, &alert.message),
            _ => Vec::new(),
        }
    }

    /// Shows what is new of what a person has to know about the host; all of it stays in the row of
    /// notes until the host leaves it out.
    fn host_notices_came(&mut self, notices: Vec<String>) {
        let notices: Vec<_> = notices.into_iter().map(SafeText::line).collect();
        let before = std::mem::replace(&mut self.host_notices, notices.clone());
        for notice in notices.iter().filter(|notice| !before.contains(notice)) {
            self.say(Kind::Warned, notice.as_str());
        }
    }

    /// Each mistake is one notice, whose words follow it to another line, and its correction is one more.
    fn mistakes_came(&mut self, mistakes: Vec<SettingsMistake>) -> Vec<Effect> {
        let changes = self.mistakes.replace(mistakes);
        if changes.is_empty() {
            return Vec::new();
        }
        for change in changes {
            match change {
                MistakeChange::New(mistake) => drop(self.say(Kind::Warned, mistake.text)),
                MistakeChange::Moved { before, now } => {
                    self.notices.reword(&before.text, &now.text);
                }
                MistakeChange::Corrected(mistake) => {
                    self.notices.end(&mistake.text);
                    self.say(Kind::Done, corrected(&mistake));
                }
            }
        }
        self.look_for_model_again().into_iter().collect()
    }

    fn family_known(&mut self, first: bool) -> Vec<Effect> {
        self.forget_the_gone();
        if !first {
            return Vec::new();
        }
        let returning = self.returning.take();
        let typed = self.composer.draft().message().text != self.restored_text;
        let mut effects = self.first_pod(returning);
        if let Some(current) = self.current.clone().filter(|_| typed) {
            // What was typed before the family was known stays in view.
            self.composer.adopt(&current);
        }
        effects.extend(self.look_back(typed || self.first_message.is_some()));
        effects.extend(self.send_first_message());
        self.tour_returns();
        effects
    }

    /// Makes a Pod the current one on a screen that was just opened, if there is one to show.
    fn first_pod(&mut self, returning: Option<Returning>) -> Vec<Effect> {
        let workspace = self.setup.workspace.clone();
        match self.initial_pod.clone() {
            Some(name) if self.family.get(&name).is_some() => self.make_current(&name),
            // The first message makes the Pod; the model of the command line is one for a new Pod, too.
            named if named.is_some() || self.model.is_some() => {
                self.not_returned = returning;
                self.look_for_model().into_iter().collect()
            }
            _ if returning.as_ref().is_some_and(|returning| self.can_return(returning)) => {
                returning.map(|returning| self.return_to(returning)).unwrap_or_default()
            }
            _ => {
                self.not_returned = returning;
                match self.family.likely(&workspace).map(|info| info.name.clone()) {
                    Some(name) => self.make_current(&name),
                    None => self.look_for_model().into_iter().collect(),
                }
            }
        }
    }

    fn pod_changed(&mut self, info: &PodInfo, was: Option<State>) -> Vec<Effect> {
        self.notices.state_changed(&info.name, info.state);
        self.model_came(&info.name);
        let mut effects = self.bring_back_unentered(&info.name);
        effects.extend(self.tour_goes_on(&info.name, was, info.state));
        effects
    }

    fn pod_removed(&mut self, name: &PodName) -> Vec<Effect> {
        self.close_layers_about(name);
        self.transcripts.remove(name);
        self.bookmarks.remove(name);
        self.opened.remove(name);
        self.forget_the_gone();
        if self.current.as_ref() == Some(name) {
            let others = self.family.likely(&self.setup.workspace);
            if others.is_none() && self.composer.is_empty() {
                self.current = None;
                return self.say(Kind::Info, format!("{name} was removed"));
            }
            self.current_is_gone = true;
            return self.say(Kind::Info, self.gone(name));
        }
        Vec::new()
    }

    /// What is left of a Pod that was removed, and where its draft can go.
    pub fn gone(&self, name: &PodName) -> String {
        format!("{name} was removed: choose another Pod, or :new")
    }

    /// Puts the input that a rewind took back into the composer, when nothing is written there, and takes it
    /// out when the rewind is undone.
    fn rewound(&mut self, pod: Option<&PodName>, input: &Message) -> Vec<Effect> {
        self.composer.rewound(pod, input);
        Vec::new()
    }

    /// Puts the message of an interrupted run back into the composer, if the run was taken back because no
    /// answer had begun.
    fn taken_back(&mut self, pod: Option<&PodName>, entry: &Entry) -> Vec<Effect> {
        let Fact::Extension { domain, payload } = &entry.fact else { return Vec::new() };
        if domain != domain::ROLLED_BACK || !pod.is_some_and(|pod| self.interrupted.contains(pod)) {
            return Vec::new();
        }
        let input = Vec::<Segment>::deserialize(&payload["input"]).unwrap_or_default();
        self.composer.give_back(pod, &Message::of(&input), self.now);
        Vec::new()
    }

    fn of_current(&mut self, pod: Option<&PodName>, kind: Kind, text: &str) -> Vec<Effect> {
        if pod.is_none() || pod != self.current.as_ref() {
            return Vec::new();
        }
        self.say(kind, text)
    }

    /// Writes the next line of the tour after each run of its Pod.
    fn tour_goes_on(&mut self, pod: &PodName, was: Option<State>, is: State) -> Vec<Effect> {
        let Some(tour) = &mut self.tour else { return Vec::new() };
        let ended = was == Some(State::Running) && is == State::Idle;
        if tour.pod != *pod || !ended {
            return Vec::new();
        }
        self.tour_step()
    }

    fn pod_of_tour(&self) -> Option<PodInfo> {
        self.family.get(&self.tour.as_ref()?.pod).cloned()
    }

    /// The same if the event for the end of the run was missed: the host left events out before it sent the family.
    fn tour_caught_up(&mut self, before: Option<PodInfo>) -> Vec<Effect> {
        let (Some(before), Some(now)) = (before, self.pod_of_tour()) else { return Vec::new() };
        let ran = before.state == State::Running || before.since != now.since;
        if ran && now.state == State::Idle { self.tour_step() } else { Vec::new() }
    }

    /// Puts the next message of the tour into the composer once no Pod below its Pod works any more.
    pub(super) fn tour_step(&mut self) -> Vec<Effect> {
        let Some(tour) = &mut self.tour else { return Vec::new() };
        let works = |info: &PodInfo| matches!(info.state, State::Running | State::NeedsYou);
        let is_below = |info: &PodInfo| self.family.lineage(info).contains(&&tour.pod);
        let busy = self.family.all().iter().any(|info| works(info) && is_below(info));
        tour.due = !busy;
        if busy || !self.composer.is_empty() || self.current.as_ref() != Some(&tour.pod) {
            return Vec::new();
        }
        tour.due = false;
        let Some(line) = TOUR_LINES[..TOUR_RETURN].get(tour.next) else {
            self.tour = None;
            return Vec::new();
        };
        tour.next += 1;
        self.composer.write(&Message::plain(line));
        Vec::new()
    }

    /// Writes the last message of the tour where the person was sent away by the one before it and is back.
    fn tour_returns(&mut self) {
        let mut sent = self.composer.history.newest_first().map(|message| message.text.as_str());
        let last = sent.find(|text| TOUR_LINES.contains(text));
        let is_away = last == Some(TOUR_LINES[TOUR_RETURN - 1]);
        drop(sent);
        let is_tour = self.info().is_some_and(plays_tour);
        if is_tour && is_away && self.composer.is_empty() {
            self.composer.write(&Message::plain(TOUR_LINES[TOUR_RETURN]));
        }
    }

    /// The connection ended: the state of every Pod is unknown, except that stopped Pods stay stopped.
    pub(super) fn host_ended(&mut self) -> Vec<Effect> {
        self.link = Link::Ended;
        self.opened.clear();
        self.decisions_interrupted();
        self.verbs_interrupted();
        self.family.lose();
        let next = self.now.saturating_add(FIND_HOST_EVERY);
        self.search = Search { lost: Some(self.now), next, ..Search::default() };
        Vec::new()
    }

    pub(super) fn connect_failed(&mut self, why: &str) -> Vec<Effect> {
        self.link = Link::Ended;
        self.say(Kind::Refused, why)
    }

    /// When the next search for a host is due.
    pub(super) fn looks_at(&self) -> Option<u64> {
        let looks = self.link == Link::Ended && self.setup.reconnects && !self.search.under_way;
        looks.then_some(self.search.next)
    }

    /// Searches for a host once a second while there is none, so that a host started by another program
    /// is found. To be called after every message.
    pub(super) fn look_for_host(&mut self) -> Option<Effect> {
        self.looks_at().filter(|at| self.now >= *at)?;
        self.search.under_way = true;
        Some(Effect::FindHost)
    }

    pub(super) fn not_found(&mut self, why: Option<String>) -> Vec<Effect> {
        self.search.under_way = false;
        self.search.next = self.now.saturating_add(FIND_HOST_EVERY);
        if self.search.why == why {
            return Vec::new();
        }
        self.search.why.clone_from(&why);
        match why {
            Some(why) => self.say(Kind::Warned, why),
            None => Vec::new(),
        }
    }

    /// The screen is connected again: it subscribes anew and forgets what it had loaded.
    pub(super) fn connected(&mut self) -> Vec<Effect> {
        self.link = Link::Up;
        self.host_notices.clear();
        self.mistakes.host_is_gone();
        self.search = Search::default();
        self.set_bookmarks();
        self.transcripts.clear();
        self.verbs.retain(|_, verb| !verb.waits_for_results());
        self.seen.clear();
        self.known_shown = None;
        let watch = Effect::Call { pod: None, method: Method::Watch, asked: Asked::Watch };
        std::iter::once(watch).chain(self.offer_environment()).collect()
    }

    pub(super) fn answered(&mut self, asked: Asked, reply: Result<Event, Refusal>) -> Vec<Effect> {
        if matches!(asked, Asked::NewFor(..)) {
            self.creating = false;
        }
        match reply {
            Ok(event) => self.granted(asked, event),
            Err(refusal) => self.refused(asked, &refusal),
        }
    }

    fn granted(&mut self, asked: Asked, reply: Event) -> Vec<Effect> {
        match asked {
            Asked::Verb(id, at) => self.verb_answered(id, at, Ok(reply)),
            Asked::Page(pod) => {
                self.page(&pod, reply);
                Vec::new()
            }
            Asked::Since(left, token) => {
                self.looked_back(left, &token, Some(reply));
                Vec::new()
            }
            Asked::Whole(pod) => {
                if let (Event::Fetched { entry }, Some(transcript)) =
                    (reply, self.transcripts.get_mut(&pod))
                {
                    transcript.whole(*entry);
                }
                Vec::new()
            }
            Asked::Parts(pod, range) => {
                if let (Event::FetchedRange { start, line, .. }, Some(transcript)) =
                    (reply, self.transcripts.get_mut(&pod))
                {
                    transcript.parts(range, start, &line);
                }
                Vec::new()
            }
            Asked::NewFor(message, token) => match reply {
                Event::Created { info } => self.created_for(*info, message, &token),
                _ => Vec::new(),
            },
            Asked::NewTour(token) => match reply {
                Event::Created { info } => self.tour_begins(*info, &token),
                _ => Vec::new(),
            },
            Asked::AgreedFor(pod, message) => self.restore_and_send(&pod, message),
            Asked::ReadyFor(pod, message) => self.send_now(&pod, message),
            Asked::Files(prefix) => {
                if let Event::Completions { entries, .. } = reply {
                    let pods = self.family.listed().map(|info| info.name.as_str());
                    if let Some(files) = &mut self.composer.files {
                        files.found(&prefix, entries, pods);
                    }
                }
                Vec::new()
            }
            Asked::FilesMentioned(prefix) => {
                if let Event::Completions { entries, .. } = reply {
                    self.files_mentioned(prefix, entries);
                }
                Vec::new()
            }
            Asked::FilesLike(query) => {
                if let Event::Completions { entries, .. } = reply {
                    self.files_like(&query, entries);
                }
                Vec::new()
            }
            Asked::Dropped(pod, path) => match reply {
                Event::Completions { entries, .. } => self.dropped(pod.as_ref(), &path, &entries),
                _ => Vec::new(),
            },
            Asked::Unqueue(pod, message) => {
                self.composer.add(Some(&pod), &message);
                let state = self.family.get(&pod).map(|info| info.state);
                if state != Some(State::Paused) {
                    return Vec::new();
                }
                let text = "your message is back in the line · {composer send} sends it";
                let text = self.keymap.with_keys(text);
                self.of_current(Some(&pod), Kind::Info, &text)
            }
            Asked::FirstModel => {
                self.first_model(Ok(reply));
                Vec::new()
            }
            Asked::Steered => self
                .say(Kind::Info, "the first queued goes into the run with its next model request"),
            // A transcript in view shows it.
            Asked::Send(pod, ..) if ![self.shown(), self.beside()].contains(&Some(&pod)) => {
                self.say(Kind::Done, format!("sent to {pod}"))
            }
            Asked::Send(..)
            | Asked::Watch
            | Asked::Decision(_)
            | Asked::Quietly
            | Asked::Silently => Vec::new(),
        }
    }

    fn refused(&mut self, asked: Asked, refusal: &Refusal) -> Vec<Effect> {
        match asked {
            Asked::Silently => return Vec::new(),
            // The notice that it is gone says all.
            Asked::Page(pod) | Asked::Parts(pod, _) if self.is_gone(&pod) => return Vec::new(),
            Asked::FirstModel => {
                self.first_model(Err(refusal.clone()));
                return Vec::new();
            }
            Asked::Verb(id, at) => return self.verb_answered(id, at, Err(refusal.clone())),
            Asked::Since(left, token) => {
                self.looked_back(left, &token, None);
                return Vec::new();
            }
            Asked::Page(pod) => {
                if let Some(transcript) = self.transcripts.get_mut(&pod) {
                    transcript.page_failed(refusal.message.clone());
                }
            }
            Asked::Parts(pod, range) => {
                if let Some(transcript) = self.transcripts.get_mut(&pod) {
                    transcript.parts_failed(range, refusal.message.clone());
                }
            }
            Asked::Send(pod, message, token) => {
                if self.sending_refused(&pod, &message, &token) {
                    return Vec::new();
                }
                self.composer.give_back(Some(&pod), &message, self.now);
            }
            Asked::AgreedFor(pod, message) | Asked::ReadyFor(pod, message) => {
                self.composer.give_back(Some(&pod), &message, self.now);
            }
            Asked::NewFor(message, _) => self.composer.give_back(None, &message, self.now),
            Asked::Files(_) => self.composer.files = None,
            // A path that cannot be looked up is looked up again when the message is sent.
            Asked::FilesMentioned(_) | Asked::Dropped(..) => {}
            Asked::FilesLike(query) => {
                self.files_like(&query, Vec::new());
                return Vec::new();
            }
            Asked::Decision(id) => {
                if let Some(deciding) = self.deciding.remove(&id) {
                    self.composer.history.keep(&deciding.text, self.now);
                }
                if self.link == Link::Ended {
                    self.unconfirmed.insert(id);
                }
            }
            Asked::Watch
            | Asked::Whole(_)
            | Asked::NewTour(_)
            | Asked::Unqueue(..)
            | Asked::Steered
            | Asked::Quietly => {}
        }
        if self.link == Link::Ended {
            return Vec::new();
        }
        self.say(Kind::Refused, refusal.message.clone())
    }

    /// Whether it is known that no Pod has this name.
    pub fn is_gone(&self, pod: &PodName) -> bool {
        self.family.is_known() && self.family.get(pod).is_none()
    }

    fn page(&mut self, pod: &PodName, reply: Event) {
        let Some(transcript) = self.transcripts.get_mut(pod) else { return };
        if let Event::Page { entries, before, in_flight, seq } = reply {
            transcript.page(entries, before, in_flight, seq);
        }
    }

    /// Adds a new Pod to the family; its event may come before or after.
    pub(super) fn known(&mut self, info: PodInfo) {
        // It was created with this environment.
        self.opened.insert(info.name.clone());
        if self.family.get(&info.name).is_none() {
            self.family.set(info);
        }
    }

    /// Makes a new Pod the current one.
    pub(super) fn created(&mut self, info: PodInfo) -> Vec<Effect> {
        let name = info.name.clone();
        self.known(info);
        self.make_current(&name)
    }

    /// Sends a message to the Pod that was created for it, and makes that Pod current unless the person
    /// did something else meanwhile.
    fn created_for(
        &mut self,
        info: PodInfo,
        message: Message,
        token: &RequestToken,
    ) -> Vec<Effect> {
        let name = info.name.clone();
        let waits = self.still_waits(token);
        let mut effects = Vec::new();
        self.composer.adopt(&name);
        if self.current.is_none() {
            effects = self.created(info);
        } else {
            self.known(info);
        }
        let approvals = self.family.get(&name).is_some_and(|info| info.model_sends.is_some());
        if approvals && !waits {
            self.composer.give_back(Some(&name), &message, self.now);
            let text = format!(
                "{name} is ready; your message was not sent yet: it waits in its composer or history (Up)"
            );
            self.say(Kind::Info, text);
        } else {
            effects.extend(self.send_to(&name, message));
        }
        effects
    }

    fn tour_begins(&mut self, info: PodInfo, token: &RequestToken) -> Vec<Effect> {
        let name = info.name.clone();
        if !self.still_waits(token) {
            self.known(info);
            self.tour = Some(crate::screen::app::Tour { pod: name.clone(), next: 0, due: true });
            return self.say(Kind::Info, format!("the tour is ready: :open {name} begins it"));
        }
        let mut effects = self.created(info);
        self.tour = Some(crate::screen::app::Tour { pod: name.clone(), next: 1, due: false });
        self.say(Kind::Info, "a script plays the model; everything else is real");
        effects.extend(self.send_now(&name, Message::plain(TOUR_LINES[0])));
        effects
    }
}
