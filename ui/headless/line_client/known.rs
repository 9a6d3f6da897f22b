//! The state of the Pods as the events of the host describe it, and which events are shown.

use crate::headless::exit::{Exit, Failure};
use crate::headless::follow::Follow;
use crate::headless::line_client::LineClient;
use crate::headless::print::Form;
use crate::headless::run_tracker::{End, RunTracker};
use crate::verb::spell;
use crate::wording::corrected;
use crate::wording::why::why_and_way_on;
use std::borrow::Cow;
use yoi::client::family::{Family, MistakeChange};
use yoi::protocol::{Alert, Begun, Event, Outgoing, PodInfo, PodName, SettingsMistake, State};

/// The Pods whose events are printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    NoOne,
    One(PodName),
    /// All for programs; for people, those of this Pod.
    All(Option<PodName>),
}

impl LineClient {
    /// The state of a Pod; names are compared ignoring case.
    pub fn find(&self, name: &PodName) -> Result<&PodInfo, Failure> {
        self.family.get(name).ok_or_else(|| Failure::no_such_pod(name.as_str()))
    }

    /// Whether a Pod takes part in the mesh.
    pub fn has_member_of_mesh(&self) -> bool {
        self.family.all().iter().any(|info| info.mesh.is_some())
    }

    pub(super) fn take(&mut self, outgoing: Outgoing) {
        self.show(&outgoing);
        outgoing.pod.iter().for_each(|pod| self.note_whose_run(pod));
        let Outgoing { pod, event, .. } = outgoing;
        let before = match event {
            Event::Family { .. } => std::mem::take(&mut self.family),
            _ => Family::default(),
        };
        let former = self.family.apply(&event);
        self.inbox.number(self.family.approvals());
        match event {
            Event::Family { .. } => self.family_came(&before),
            Event::HostNotices { notices, mistakes } => {
                self.host_notices_came(notices);
                self.mistakes_came(mistakes);
            }
            Event::PodChanged { info } => self.changed(&info.name, former.pod.as_ref()),
            Event::PodRemoved { name } => self.forget(&name),
            Event::Lagged => self.missed(),
            event => {
                if let Some(runs) = pod.and_then(|pod| self.runs_of(&pod)) {
                    runs.note(&event);
                }
            }
        }
    }

    /// The runs of a Pod of the family.
    pub(super) fn runs_of(&mut self, pod: &PodName) -> Option<&mut RunTracker> {
        self.family.get(pod)?;
        Some(self.runs.entry(pod.clone()).or_default())
    }

    /// Prints what is new of what a person has to know about the host.
    fn host_notices_came(&mut self, notices: Vec<String>) {
        let before = std::mem::replace(&mut self.host_notices, notices);
        for notice in self.host_notices.iter().filter(|notice| !before.contains(notice)) {
            self.printer.note(notice);
        }
    }

    fn mistakes_came(&mut self, mistakes: Vec<SettingsMistake>) {
        for change in self.mistakes.replace(mistakes) {
            match change {
                MistakeChange::New(mistake) => self.printer.note(&mistake.text),
                MistakeChange::Moved { .. } => {}
                MistakeChange::Corrected(mistake) => self.printer.note(&corrected(&mistake)),
            }
        }
    }

    /// Whether no Pod runs because the rules in the settings are not known.
    pub fn is_stopped_by_settings(&self) -> bool {
        self.mistakes.iter().any(|mistake| mistake.stops_runs)
    }

    /// The lines of a text that are no mistakes in the settings, which were printed already.
    pub fn without_mistakes(&self, text: &str) -> String {
        let is_new = |line: &&str| !self.mistakes.iter().any(|mistake| mistake.text == *line);
        text.lines().filter(is_new).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn show(&mut self, outgoing: &Outgoing) {
        let all = match (&self.view, &outgoing.pod) {
            (View::NoOne, _) => return,
            (View::One(name), Some(of)) if of == name => false,
            (View::One(_), _) => return,
            (View::All(current), Some(of)) if current.as_ref() == Some(of) => false,
            (View::All(_), _) => true,
        };
        let programs = self.printer.form() == Form::Json;
        let outgoing = self.worded(outgoing);
        match &outgoing.pod {
            // Events of other Pods are only for programs, and answers to lines of standard input.
            Some(name)
                if outgoing.seq.is_some() && (programs || !all || self.asked.contains(name)) =>
            {
                let follow = self.follows.entry(name.clone()).or_insert_with(Follow::from_here);
                follow.stands_beside(all && !programs, &mut self.printer);
                follow.event(&outgoing, &mut self.printer);
            }
            _ => self.printer.aside(&outgoing),
        }
    }

    /// An event of a Pod; its text for a person names verbs as they are typed here.
    fn worded<'a>(&self, outgoing: &'a Outgoing) -> Cow<'a, Outgoing> {
        let Event::Alert(alert) = &outgoing.event else { return Cow::Borrowed(outgoing) };
        if self.printer.form() == Form::Json {
            return Cow::Borrowed(outgoing);
        }
        let message = self.spelled(&alert.message, outgoing.pod.as_ref());
        let event = Event::Alert(Alert { message, ..alert.clone() });
        Cow::Owned(Outgoing { event, ..outgoing.clone() })
    }

    /// A sentence of the host. A program that reads no verbs, as it shows one Pod or none, names those of the shell.
    pub fn spelled(&self, text: &str, about: Option<&PodName>) -> String {
        match &self.view {
            View::NoOne | View::One(_) => spell::for_shell(text, &self.family, about),
            View::All(_) => text.to_owned(),
        }
    }

    fn family_came(&mut self, before: &Family) {
        for PodInfo { name, .. } in before.all() {
            if self.family.get(name).is_none() {
                self.forget(name);
            }
        }
        let names: Vec<PodName> = self.family.all().iter().map(|info| info.name.clone()).collect();
        names.iter().for_each(|name| self.changed(name, before.get(name)));
    }

    /// Forgets a Pod that was removed: a new Pod of its name counts its events from 0.
    fn forget(&mut self, pod: &PodName) {
        self.runs.remove(pod);
        self.follows.remove(pod);
        self.stale.remove(pod);
        self.noted.retain(|(of, _)| of != pod);
    }

    /// Notes that events were missed: the ends of runs are read from the transcripts.
    pub(super) fn missed(&mut self) {
        let received = self.runs.iter().filter(|(_, runs)| !runs.is_empty());
        self.stale.extend(received.map(|(name, _)| name.clone()));
        if let View::One(name) | View::All(Some(name)) = &self.view {
            self.stale.insert(name.clone());
        }
        self.follows.values_mut().for_each(Follow::missed);
    }

    /// A Pod was added, or changed from what it was.
    pub(super) fn changed(&mut self, name: &PodName, former: Option<&PodInfo>) {
        let Some(info) = self.family.get(name) else { return };
        if !is_busy(info.state) {
            self.inbox.became_idle(name);
        }
        match former {
            Some(former) => self.print_new_notes(former),
            None if self.family.is_known() && matches!(self.view, View::All(_)) => {
                self.follows.entry(name.clone()).or_insert_with(Follow::from_start);
            }
            None => {}
        }
    }

    /// Prints the notes about a Pod.
    pub fn print_notes(&mut self, info: &PodInfo) {
        for note in &info.notes {
            self.printer.note(&self.spelled(note, Some(&info.name)));
            self.noted.insert((info.name.clone(), note.clone()));
        }
    }

    /// Prints the notes that a Pod which works for this program got since: one may be why nothing more comes.
    fn print_new_notes(&mut self, before: &PodInfo) {
        let Some(now) = self.family.get(&before.name).filter(|now| self.is_ours(now)) else {
            return;
        };
        // A note that went is new when it comes back.
        for gone in before.notes.iter().filter(|note| !now.notes.contains(note)) {
            self.noted.remove(&(before.name.clone(), gone.clone()));
        }
        let is_new = |note: &&String| !before.notes.contains(note);
        let new: Vec<String> = now.notes.iter().filter(is_new).cloned().collect();
        for note in new {
            if self.noted.insert((before.name.clone(), note.clone())) {
                self.printer.note(&self.spelled(&note, Some(&before.name)));
            }
        }
    }

    /// How the run of an input that no longer waits ended last, once it has.
    pub fn end_of(&self, pod: &PodName, begun: &Begun) -> Option<&End> {
        self.runs.get(pod)?.end_of(begun)
    }

    /// The end of the last run.
    pub fn last_end(&self, pod: &PodName) -> Option<&End> {
        self.runs.get(pod)?.last_end()
    }
}

/// Whether a Pod in this state has a run under way or a request open.
pub fn is_busy(state: State) -> bool {
    match state {
        State::Running | State::NeedsYou => true,
        State::Paused
        | State::Idle
        | State::Stopped
        | State::Failed
        | State::Damaged
        | State::Unknown => false,
    }
}

/// Why a Pod cannot get further without a person, when that is so.
pub fn stuck(info: &PodInfo) -> Option<Failure> {
    let why = |otherwise: &str| {
        let why = why_and_way_on(info, otherwise);
        spell::for_shell(&why, &Family::default(), Some(&info.name))
    };
    match info.state {
        State::Failed => Some(Failure::new(Exit::Failed, why("the pod failed"))),
        State::Damaged => Some(Failure::new(Exit::Failed, why("its record cannot be read"))),
        State::NeedsYou => Some(Failure::new(Exit::Refused, why("it needs an answer"))),
        State::Stopped => Some(Failure::new(
            Exit::StoppedShort,
            format!("{0} was stopped: `yoi restore {0}` brings it back", info.name),
        )),
        State::Running | State::Paused | State::Idle | State::Unknown => None,
    }
}
