//! A conversation with a host: orders and their replies, while the events that arrive meanwhile
//! are shown and noted.

use crate::family::Family;
use crate::headless::approvals::{Inbox, Meeting};
use crate::headless::exit::{Exit, Failure, after_host};
use crate::headless::follow::{CaughtUp, Follow};
use crate::headless::pages::{Place, last_page};
use crate::headless::print::{Form, Printer};
use crate::headless::run_tracker::{Begun, End, RunTracker};
use crate::headless::signal::Signals;
use crate::start::{self, Opening};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::task::JoinHandle;
use yoi::client::{Client, Events};
use yoi::host::{Host, HostError, HostLockError};
use yoi::protocol::event::Line;
use yoi::protocol::{
    ApprovalRequest, Entry, Event, Method, Outgoing, PeerEdge, PodInfo, PodName, Refusal, State,
    Verdict,
};

mod rest;

pub use rest::Whose;

/// How much of a transcript is read again after events were missed, in bytes.
const TAIL: u64 = 256 * 1024;
/// How often the running host is looked for again after another process was faster.
const TRIES: u32 = 5;
/// How often it is looked whether the other clients of a host in this process have left.
const LOOK: Duration = Duration::from_millis(200);
/// How long a turn may take to be paused when a signal ends the program.
const PAUSE: Duration = Duration::from_secs(5);

/// Which host to talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The running one; without one, this process is the host until the talk is over.
    AttachOrBeTheHost,
    /// The running one; without one, a new one in the background.
    AttachOrStart,
}

/// Whose events are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    NoOne,
    One(PodName),
    /// All for programs; for people, those of this Pod.
    All(Option<PodName>),
}

/// The task that shows the log of a Pod.
type CatchingUp = JoinHandle<Result<CaughtUp, Failure>>;

/// A connection with everything that was heard on it.
pub struct LineClient {
    client: Client,
    events: Events,
    signals: Signals,
    pub printer: Printer,
    pub view: View,
    pub inbox: Inbox,
    /// Whether the family was told once.
    known: bool,
    pods: BTreeMap<PodName, Known>,
    peers: Vec<PeerEdge>,
    /// Pods of which events were missed.
    stale: BTreeSet<PodName>,
    /// What of which Pod was shown.
    follows: BTreeMap<PodName, Follow>,
    /// The Pod whose log is being shown.
    catching_up: Option<(PodName, CatchingUp)>,
    /// Set when this process is the host.
    host: Option<Host>,
}

struct Known {
    info: PodInfo,
    marks: RunTracker,
}

impl LineClient {
    /// Connects and learns which Pods there are.
    pub async fn open(opening: &Opening, printer: Printer, reach: Reach) -> Result<Self, Failure> {
        let signals = signals_of_the_process()?;
        let (client, events, host) = connect(opening, reach).await?;
        Self::begin(client, events, host, signals, printer).await
    }

    /// A conversation over a connection to a host that goes on without it.
    #[cfg(test)]
    pub async fn over(client: Client, events: Events, printer: Printer) -> Result<Self, Failure> {
        Self::begin(client, events, None, signals_of_the_process()?, printer).await
    }

    async fn begin(
        client: Client,
        events: Events,
        host: Option<Host>,
        signals: Signals,
        printer: Printer,
    ) -> Result<Self, Failure> {
        let mut client = Self {
            client,
            events,
            signals,
            printer,
            view: View::NoOne,
            inbox: Inbox::default(),
            known: false,
            pods: BTreeMap::new(),
            peers: Vec::new(),
            stale: BTreeSet::new(),
            follows: BTreeMap::new(),
            catching_up: None,
            host,
        };
        client.watch().await?;
        Ok(client)
    }

    /// Subscribes, and waits until the family was told.
    async fn watch(&mut self) -> Result<(), Failure> {
        self.call(None, Method::Watch).await?;
        while !self.known {
            self.listen().await?;
        }
        Ok(())
    }

    /// The connection, for what reads beside the events.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// From now on everything that is committed in this Pod's log is shown when it is in view.
    pub async fn follow(&mut self, pod: &PodName) -> Result<(), Failure> {
        if self.follows.contains_key(pod) {
            return Ok(());
        }
        let (client, name) = (self.client.clone(), pod.clone());
        let page = self.while_listening(async move { last_page(&client, &name).await }).await??;
        let follow = Follow::behind(Place::behind(&page.lines), page.seq, page.streaming);
        self.follows.insert(pod.clone(), follow);
        Ok(())
    }

    /// Every Pod there is.
    pub fn pods(&self) -> impl Iterator<Item = &PodInfo> {
        self.pods.values().map(|known| &known.info)
    }

    /// What is known of a Pod; names are compared ignoring case.
    pub fn find(&self, name: &PodName) -> Result<&PodInfo, Failure> {
        let found = self.pods().find(|info| info.name.key() == name.key());
        found.ok_or_else(|| Failure::no_such_pod(name.as_str()))
    }

    /// What is known of all Pods, as verbs decide by it.
    pub fn known_family(&self) -> Family {
        let mut family = Family::default();
        let requests = self.inbox.open().to_vec();
        family.replace(self.pods().cloned().collect(), self.peers.clone(), requests);
        family
    }

    /// Gives an order and waits for its reply. When it returns, everything that the host said
    /// before the reply is shown and noted.
    pub async fn call(&mut self, pod: Option<&PodName>, method: Method) -> Result<Event, Failure> {
        Ok(self.try_call(pod, method).await??)
    }

    /// The same where a refusal is an answer like others; only a signal ends the wait.
    pub async fn try_call(
        &mut self,
        pod: Option<&PodName>,
        method: Method,
    ) -> Result<Result<Event, Refusal>, Failure> {
        let about = pod.cloned().or_else(|| about(&method));
        let reply = match self.exchange(pod, method).await? {
            Ok(reply) => reply,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if self.view != View::NoOne {
            self.printer.reply(about.as_ref(), &reply);
        }
        if let Event::Created { info } = &reply {
            self.know((**info).clone());
        }
        Ok(Ok(reply))
    }

    /// The same without showing the reply.
    async fn exchange(
        &mut self,
        pod: Option<&PodName>,
        method: Method,
    ) -> Result<Result<Event, Refusal>, Failure> {
        let (client, pod) = (self.client.clone(), pod.cloned());
        let mut reply = Box::pin(async move { client.call(pod.as_ref(), method).await });
        let reply = loop {
            tokio::select! {
                reply = &mut reply => break reply,
                happened = self.next() => match happened? {
                    Happened::Event(outgoing) => self.take(outgoing),
                    Happened::CaughtUp(name, caught) => self.caught_up(name, *caught)?,
                    Happened::Wrote => {}
                    Happened::HostEnded => break reply.await,
                },
            }
        };
        while let Ok(outgoing) = self.events.try_recv() {
            self.take(outgoing);
        }
        Ok(reply)
    }

    /// Waits until the host says something, and notes it.
    pub async fn step(&mut self) -> Result<(), Failure> {
        self.listen().await?;
        self.refresh().await
    }

    /// Reads again what was missed.
    async fn refresh(&mut self) -> Result<(), Failure> {
        while let Some(name) = self.stale.pop_first() {
            let method = Method::Page { before: None, max_bytes: TAIL };
            let reply = self.exchange(Some(&name), method).await??;
            let Event::Page { entries, seq, .. } = reply else { continue };
            let entries: Vec<Entry> = entries.into_iter().filter_map(entry_of).collect();
            if let Some(known) = self.pods.get_mut(&name) {
                known.marks.reread(entries.iter(), seq);
            }
        }
        self.meet().await
    }

    /// Meets every question that has come.
    async fn meet(&mut self) -> Result<(), Failure> {
        while let Some((approval, meeting)) = self.inbox.next() {
            match meeting {
                Meeting::Wait { note } => self.printer.note(&note),
                Meeting::Answer { verdict, note } => {
                    self.printer.note(&note);
                    self.answer_or_deny(&approval, verdict).await?;
                }
            }
        }
        Ok(())
    }

    /// A question whose answer is refused, because what it wants cannot be given, is denied with
    /// that sentence.
    async fn answer_or_deny(
        &mut self,
        approval: &ApprovalRequest,
        verdict: Verdict,
    ) -> Result<(), Failure> {
        let refused = match self.answer(approval, verdict).await {
            Ok(()) => return Ok(()),
            Err(Failure { exit: Exit::Signal(number), message }) => {
                return Err(Failure::new(Exit::Signal(number), message));
            }
            Err(refused) => refused.message,
        };
        let deny = Verdict::Deny { reason: refused.clone() };
        if self.answer(approval, deny).await.is_ok() {
            let note = format!("denied: {}: {refused}", approval.line());
            self.printer.note(&note);
            self.inbox.deny(&note);
        }
        // Where this is refused, too, somebody else has answered.
        Ok(())
    }

    /// Answers a question.
    pub async fn answer(
        &mut self,
        approval: &ApprovalRequest,
        verdict: Verdict,
    ) -> Result<(), Failure> {
        let method = Method::Decide { approval: approval.id.clone(), verdict };
        self.call(None, method).await.map(drop)
    }

    /// Waits until something happens, and notes it.
    async fn listen(&mut self) -> Result<(), Failure> {
        match self.next().await? {
            Happened::Event(outgoing) => self.take(outgoing),
            Happened::CaughtUp(name, caught) => self.caught_up(name, *caught)?,
            Happened::Wrote => {}
            Happened::HostEnded => {
                return Err(Failure::new(Exit::Failed, "the connection to the host ended"));
            }
        }
        Ok(())
    }

    /// What happens next. Cancel-safe.
    async fn next(&mut self) -> Result<Happened, Failure> {
        self.start_catching_up();
        tokio::select! {
            outgoing = self.events.recv() => {
                Ok(outgoing.map_or(Happened::HostEnded, Happened::Event))
            }
            number = self.signals.asked() => Err(interrupted(number)),
            failure = self.printer.output().clone().closed() => Err(failure),
            (name, caught) = joined(&mut self.catching_up) => {
                Ok(Happened::CaughtUp(name, Box::new(caught)))
            }
            () = self.printer.write_waiting(), if self.printer.is_waiting() => Ok(Happened::Wrote),
        }
    }

    /// Begins to show the log of a Pod of which events were missed, one Pod at a time.
    fn start_catching_up(&mut self) {
        if self.catching_up.is_some() {
            return;
        }
        let Some((name, follow)) = self.follows.iter_mut().find(|(_, f)| f.is_behind()) else {
            return;
        };
        let task = follow.catch_up(self.client.clone(), name.clone(), &self.printer);
        self.catching_up = Some((name.clone(), tokio::spawn(task.run())));
    }

    fn caught_up(
        &mut self,
        name: PodName,
        caught: Result<CaughtUp, Failure>,
    ) -> Result<(), Failure> {
        match caught {
            Ok(caught) => {
                if let Some(follow) = self.follows.get_mut(&name) {
                    follow.caught_up(caught);
                }
                Ok(())
            }
            // Its log went with it.
            Err(_) if !self.pods.contains_key(&name) => {
                self.follows.remove(&name);
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    /// Waits until everything that was committed is shown, and written.
    async fn all_shown(&mut self) -> Result<(), Failure> {
        let behind = |client: &Self| {
            client.catching_up.is_some() || client.follows.values().any(Follow::is_behind)
        };
        while behind(self) || self.printer.is_waiting() {
            self.listen().await?;
        }
        let output = self.printer.output().clone();
        self.while_listening(async move { output.flush().await }).await
    }

    fn take(&mut self, outgoing: Outgoing) {
        self.show(&outgoing);
        self.inbox.note(&outgoing.event);
        let Outgoing { pod, event, seq, .. } = outgoing;
        match event {
            Event::Family { pods, peers, .. } => {
                self.peers = peers;
                self.family(pods);
            }
            Event::Peered { source, peer } => self.peers.push(PeerEdge::new(source, peer)),
            Event::Unpeered { source, peer } => {
                let edge = PeerEdge::new(source, peer);
                self.peers.retain(|known| *known != edge);
            }
            Event::PodChanged { info } => self.know(*info),
            Event::PodRemoved { name } => {
                self.pods.remove(&name);
                self.peers.retain(|edge| edge.other(&name).is_none());
            }
            Event::Lagged => self.missed(),
            event => {
                if let Some(known) = pod.and_then(|pod| self.pods.get_mut(&pod)) {
                    known.marks.note(seq, &event);
                }
            }
        }
    }

    fn show(&mut self, outgoing: &Outgoing) {
        let all = match (&self.view, &outgoing.pod) {
            (View::NoOne, _) => return,
            (View::One(name), Some(of)) if of == name => false,
            (View::One(_), _) => return,
            (View::All(current), Some(of)) if current.as_ref() == Some(of) => false,
            (View::All(_), _) => true,
        };
        let programs = self.printer.form() == Form::Json;
        match &outgoing.pod {
            // Of other Pods only programs are told.
            Some(name) if outgoing.seq.is_some() && (programs || !all) => {
                let follow = self.follows.entry(name.clone()).or_insert_with(Follow::from_here);
                follow.event(outgoing, &mut self.printer);
            }
            _ => self.printer.aside(outgoing),
        }
    }

    fn family(&mut self, pods: Vec<PodInfo>) {
        self.known = true;
        self.pods.retain(|name, _| pods.iter().any(|info| info.name == *name));
        for info in pods {
            self.know(info);
        }
    }

    /// Events were missed: what matters of them is read from the transcripts.
    fn missed(&mut self) {
        let received = self.pods.iter().filter(|(_, known)| !known.marks.is_empty());
        self.stale.extend(received.map(|(name, _)| name.clone()));
        if let View::One(name) | View::All(Some(name)) = &self.view {
            self.stale.insert(name.clone());
        }
        self.follows.values_mut().for_each(Follow::missed);
    }

    fn know(&mut self, info: PodInfo) {
        if !is_busy(info.state) {
            self.inbox.rested(&info.name);
        }
        match self.pods.get_mut(&info.name) {
            Some(known) => known.info = info,
            None => {
                if self.known && matches!(self.view, View::All(_)) {
                    self.follows.entry(info.name.clone()).or_insert_with(Follow::from_start);
                }
                let marks = RunTracker::default();
                self.pods.insert(info.name.clone(), Known { info, marks });
            }
        }
    }

    /// How the run of an input ended, once it has.
    pub fn end_of(&self, pod: &PodName, begun: &Begun) -> Option<&End> {
        self.pods.get(pod)?.marks.end_of(begun)
    }

    /// How the last run that was seen ended.
    pub fn last_end(&self, pod: &PodName) -> Option<&End> {
        self.pods.get(pod)?.marks.last_end()
    }

    /// Waits for `future` while events are noted; a signal ends the wait.
    pub async fn while_listening<T>(
        &mut self,
        future: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        let mut future = std::pin::pin!(future);
        loop {
            tokio::select! {
                value = &mut future => return Ok(value),
                happened = self.listen() => happened?,
            }
            self.refresh().await?;
        }
    }

    /// Interrupts a Pod after a signal. It is asked once and not waited for longer than a pause
    /// may take.
    pub async fn interrupt(&mut self, pod: &PodName, then: &[Method]) {
        for method in then {
            let call = self.client.call(Some(pod), method.clone());
            // The host may be ending too; there is nothing left to do about a refusal.
            let _ = tokio::time::timeout(PAUSE, call).await;
        }
    }

    /// Ends the conversation and says whether something was refused during it. A host that is this
    /// process ends with it, once no Pod is at work and nobody else is attached; after a signal at
    /// once.
    pub async fn leave(mut self, result: &Result<(), Failure>) -> Result<(), Failure> {
        let signalled = matches!(result, Err(Failure { exit: Exit::Signal(_), .. }));
        let shown = if signalled { Ok(()) } else { self.all_shown().await };
        let Some(host) = self.host.take() else {
            return shown.and(self.inbox.outcome());
        };
        let signalled = signalled || shown.is_err();
        let waited = if signalled { Ok(()) } else { self.while_others_work(&host).await };
        let ended = shown.and(waited).and(self.inbox.outcome());
        drop(self);
        host.end().await;
        ended
    }

    /// Waits as long as a Pod is at work or another client is attached to the host in this process.
    async fn while_others_work(&mut self, host: &Host) -> Result<(), Failure> {
        loop {
            self.while_others_are_attached(host).await?;
            tokio::select! {
                done = self.until_done(Whose::Everybody) => done?,
                ending = host.ended() => return after_host(ending),
            }
            if host.others(1) == 0 {
                return Ok(());
            }
        }
    }

    async fn while_others_are_attached(&mut self, host: &Host) -> Result<(), Failure> {
        let mut look = tokio::time::interval(LOOK);
        while host.others(1) > 0 {
            tokio::select! {
                _ = look.tick() => {}
                happened = self.listen() => happened?,
                ending = host.ended() => return after_host(ending),
            }
            self.refresh().await?;
        }
        Ok(())
    }
}

/// What a client waits for.
enum Happened {
    Event(Outgoing),
    /// The log of a Pod was shown, or could not be.
    CaughtUp(PodName, Box<Result<CaughtUp, Failure>>),
    /// Something that waited was written.
    Wrote,
    HostEnded,
}

/// The end of the task that shows a log. Cancel-safe.
async fn joined(task: &mut Option<(PodName, CatchingUp)>) -> (PodName, Result<CaughtUp, Failure>) {
    let Some((_, running)) = task else { return std::future::pending().await };
    let ended = running.await.unwrap_or_else(|error| {
        Err(Failure::new(Exit::Failed, format!("the log could not be shown: {error}")))
    });
    let name = task.take().map(|(name, _)| name);
    match name {
        Some(name) => (name, ended),
        None => std::future::pending().await,
    }
}

fn signals_of_the_process() -> Result<Signals, Failure> {
    let failed = |e| Failure::new(Exit::Failed, format!("cannot listen for signals: {e}"));
    Signals::listen().map_err(failed)
}

async fn connect(
    opening: &Opening,
    reach: Reach,
) -> Result<(Client, Events, Option<Host>), Failure> {
    if reach == Reach::AttachOrStart {
        let (client, events) = start::attach_or_start(opening).await?;
        return Ok((client, events, None));
    }
    let mut tries = TRIES;
    loop {
        if let Some((client, events)) = start::attach(opening).await? {
            return Ok((client, events, None));
        }
        match start::inside(opening).await {
            Ok((host, client, events)) => return Ok((client, events, Some(host))),
            Err(error) if tries > 0 && is_taken(&error) => tries -= 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Another process became the host in the meantime.
fn is_taken(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(HostError::HostLock(HostLockError::Taken { .. })))
}

/// The Pod that an order to the host is about.
fn about(method: &Method) -> Option<PodName> {
    match method {
        Method::Restore { name } => PodName::parse(name).ok(),
        Method::New(new) => new.name.clone(),
        _ => None,
    }
}

fn entry_of(line: Line) -> Option<Entry> {
    match line {
        Line::Whole(entry) | Line::Cut { entry, .. } => Some(*entry),
        Line::Damaged { .. } => None,
    }
}

fn interrupted(number: u8) -> Failure {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        _ => "SIGTERM",
    };
    Failure::new(Exit::Signal(number), format!("ended by {name}"))
}

/// Whether a Pod in this state has a turn under way or a question open.
fn is_busy(state: State) -> bool {
    match state {
        State::Running | State::NeedsYou => true,
        State::Paused | State::Idle | State::Stopped | State::Failed | State::Unknown => false,
    }
}

/// Why a Pod cannot get further without a person, when that is so.
pub fn stuck(info: &PodInfo) -> Option<Failure> {
    let why = |otherwise: &str| info.why.clone().unwrap_or_else(|| otherwise.to_owned());
    match info.state {
        State::Failed => Some(Failure::new(Exit::Failed, why("the pod failed"))),
        State::NeedsYou => Some(Failure::new(Exit::Refused, why("it needs an answer"))),
        State::Stopped => Some(Failure::new(
            Exit::StoppedShort,
            format!("{0} was stopped: `yoi restore {0}` brings it back", info.name),
        )),
        State::Running | State::Paused | State::Idle | State::Unknown => None,
    }
}
