//! A conversation with a host: sends requests and waits for their replies; events that arrive meanwhile
//! are shown and noted.

use crate::headless::approvals::Inbox;
use crate::headless::exit::{Exit, Failure};
use crate::headless::follow::{CaughtUp, Follow};
use crate::headless::print::Printer;
use crate::headless::run_tracker::RunTracker;
use crate::headless::signal::Signals;
use crate::start::{self, Opening};
use crate::verb::dialogue::begins_work;
use std::collections::{BTreeMap, BTreeSet};
use yoi::client::family::{Family, Mistakes};
use yoi::client::pages::{Place, last_page};
use yoi::client::{Client, Events};
use yoi::host::Reader;
use yoi::protocol::event::Line;
use yoi::protocol::{ClientKind, Entry, ErrorCode, Event, Method, Outgoing, PodName, Refusal};

mod catch_up;
mod idle;
mod known;
mod leave;
mod requests;
mod shared;

pub use known::{View, stuck};

use catch_up::{CatchingUp, joined};
use known::is_busy;

/// How much of a transcript is read again after events were missed, in bytes.
const TAIL: u64 = 256 * 1024;

/// A connection, and the state of the Pods as its events describe it.
pub struct LineClient {
    client: Client,
    events: Events,
    signals: Signals,
    pub printer: Printer,
    pub view: View,
    pub inbox: Inbox,
    /// Whether an approval request waits for room on standard error.
    is_request_unshown: bool,
    pub family: Family,
    runs: BTreeMap<PodName, RunTracker>,
    /// What was printed of what a person has to know about the host.
    host_notices: Vec<String>,
    /// The mistakes in the settings of the host.
    mistakes: Mistakes,
    /// Pods that lines of standard input were sent to: their answers are printed, whichever Pod is in view.
    pub asked: BTreeSet<PodName>,
    /// What was printed of the notes about Pods.
    noted: BTreeSet<(PodName, String)>,
    /// Pods of which events were missed.
    stale: BTreeSet<PodName>,
    /// How far each Pod was shown.
    follows: BTreeMap<PodName, Follow>,
    /// The Pod whose log is being shown.
    catching_up: Option<(PodName, CatchingUp)>,
    /// Whether the host interrupts this program's messages when it is gone.
    attends: bool,
    /// What answers where no host can run.
    reader: Option<Reader>,
}

impl LineClient {
    /// Connects to the host, or starts one, and learns which Pods there are.
    pub async fn open(
        opening: &Opening,
        printer: Printer,
        kind: ClientKind,
    ) -> Result<Self, Failure> {
        let signals = Signals::of_the_process()?;
        let (client, events) = tokio::select! {
            connected = start::attach_or_start(opening, kind) => connected?,
            number = signals.asked() => return Err(interrupted(number)),
        };
        Self::begin(client, events, signals, printer).await
    }

    /// As [`LineClient::open`], for a command that only reads: it needs no host where none can run.
    pub async fn open_to_read(opening: &Opening, printer: Printer) -> Result<Self, Failure> {
        let signals = Signals::of_the_process()?;
        let (client, events, instead) = tokio::select! {
            connected = start::attach_to_read(opening) => connected?,
            number = signals.asked() => return Err(interrupted(number)),
        };
        let mut printer = printer;
        let reader = instead.map(|(reader, why)| {
            printer.note(&why);
            reader
        });
        Ok(Self { reader, ..Self::begin(client, events, signals, printer).await? })
    }

    /// A conversation over a connection to a host.
    #[cfg(test)]
    pub async fn over(client: Client, events: Events, printer: Printer) -> Result<Self, Failure> {
        Self::begin(client, events, Signals::of_the_process()?, printer).await
    }

    async fn begin(
        client: Client,
        events: Events,
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
            is_request_unshown: false,
            family: Family::default(),
            runs: BTreeMap::new(),
            host_notices: Vec::new(),
            mistakes: Mistakes::default(),
            asked: BTreeSet::new(),
            noted: BTreeSet::new(),
            stale: BTreeSet::new(),
            follows: BTreeMap::new(),
            catching_up: None,
            attends: false,
            reader: None,
        };
        client.watch().await?;
        Ok(client)
    }

    /// Subscribes, and waits until the host has sent the family.
    async fn watch(&mut self) -> Result<(), Failure> {
        self.call(None, Method::Watch).await?;
        while !self.family.is_known() {
            self.listen().await?;
        }
        Ok(())
    }

    /// From now on the host interrupts the messages of this program when it is gone, also when it was killed.
    pub async fn attend(&mut self) -> Result<(), Failure> {
        self.attends = true;
        self.call(None, Method::Attend { attends: true }).await.map(drop)
    }

    /// The connection, for readers of logs.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Shows every entry that is committed to this Pod's log from now on, while the Pod is in view.
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

    /// Sends a request and waits for its reply. When it returns, every event that the host sent before
    /// the reply is shown and noted.
    pub async fn call(&mut self, pod: Option<&PodName>, method: Method) -> Result<Event, Failure> {
        Ok(self.try_call(pod, method).await??)
    }

    /// As [`LineClient::call`], but returns a refusal as a reply; only a signal ends the wait.
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
            let former = self.family.set((**info).clone());
            self.changed(&info.name, former.as_ref());
        }
        Ok(Ok(reply))
    }

    /// As [`LineClient::try_call`], but does not show the reply. A signal that comes before the reply to a request
    /// for work ends the next wait: what the work is must be known to take it back.
    pub async fn exchange(
        &mut self,
        pod: Option<&PodName>,
        method: Method,
    ) -> Result<Result<Event, Refusal>, Failure> {
        let (client, pod) = (self.client.clone(), pod.cloned());
        let begins_work = begins_work(&method);
        let mut reply = Box::pin(async move { client.call(pod.as_ref(), method).await });
        let reply = loop {
            tokio::select! {
                reply = &mut reply => break reply,
                happened = self.next() => match happened {
                    Ok(Happened::Event(outgoing)) => self.take(outgoing),
                    Ok(Happened::CaughtUp(name, caught)) => self.caught_up(name, *caught)?,
                    Ok(Happened::Wrote) => {}
                    Ok(Happened::HostEnded) => break reply.await,
                    Err(failure) if begins_work && failure.is_signal() => {
                        break self.last_reply(reply).await.ok_or(failure)?;
                    }
                    Err(failure) => return Err(failure),
                },
            }
        };
        while let Ok(outgoing) = self.events.try_recv() {
            self.take(outgoing);
        }
        Ok(reply)
    }

    /// Waits for the next event, and notes it.
    pub async fn step(&mut self) -> Result<(), Failure> {
        self.listen().await?;
        self.refresh().await
    }

    /// Reads the transcripts whose events were missed, and handles the open requests. A call may have noted either,
    /// so this runs after each call and before each wait: no further event may come.
    pub async fn refresh(&mut self) -> Result<(), Failure> {
        loop {
            while let Some(name) = self.stale.pop_first() {
                self.read_again(&name).await?;
            }
            self.handle_requests().await?;
            if self.stale.is_empty() {
                return Ok(());
            }
        }
    }

    async fn read_again(&mut self, pod: &PodName) -> Result<(), Failure> {
        let method = Method::Page { before: None, max_bytes: TAIL };
        let reply = match self.exchange(Some(pod), method).await? {
            // The Pod may have been removed, and its removal may be among the missed events.
            Err(refusal) if refusal.code == ErrorCode::InvalidRequest => return Ok(()),
            reply => reply?,
        };
        let Event::Page { entries, .. } = reply else { return Ok(()) };
        let entries: Vec<Entry> = entries.into_iter().filter_map(Line::into_entry).collect();
        if let Some(runs) = self.runs_of(pod) {
            runs.reread(entries.iter());
        }
        Ok(())
    }

    /// Waits for the next event, output or log, and notes it.
    async fn listen(&mut self) -> Result<(), Failure> {
        match self.next().await? {
            Happened::Event(outgoing) => self.take(outgoing),
            Happened::CaughtUp(name, caught) => self.caught_up(name, *caught)?,
            Happened::Wrote => {}
            Happened::HostEnded => {
                return Err(self.client.why_ended().into());
            }
        }
        Ok(())
    }

    /// The next event, output or log. Cancel-safe.
    async fn next(&mut self) -> Result<Happened, Failure> {
        self.start_catching_up();
        let output = self.printer.output().clone();
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
            () = output.room_for_note(), if self.is_request_unshown => Ok(Happened::Wrote),
        }
    }

    /// Waits for `future` while events are noted; a signal ends the wait.
    pub async fn while_listening<T>(
        &mut self,
        future: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        let mut future = std::pin::pin!(future);
        loop {
            self.refresh().await?;
            tokio::select! {
                value = &mut future => return Ok(value),
                happened = self.listen() => happened?,
            }
        }
    }
}

/// One of the things that a client waits for.
enum Happened {
    Event(Outgoing),
    /// The log of a Pod was shown, or could not be.
    CaughtUp(PodName, Box<Result<CaughtUp, Failure>>),
    /// A waiting line was written, or there is room for one.
    Wrote,
    HostEnded,
}

/// The Pod that a request to the host names.
fn about(method: &Method) -> Option<PodName> {
    match method {
        Method::Restore { name } => PodName::parse(name).ok(),
        Method::New(new) => new.name.clone(),
        _ => None,
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

#[cfg(test)]
mod tests;
