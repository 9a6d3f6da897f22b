//! A host that serves, a client that is connected to it, and what the client was told of the Pod.

use crate::bench::{Bench, Host};
use crate::pty::Terminal;
use crate::walks::history::History;
use crate::walks::words::of_entry;
use crate::walks::{SIZE, Walk};
use std::io::{BufRead as _, BufReader};
use std::time::Duration;
use yoi::client::{Client, Events, find};
use yoi::protocol::event::Line;
use yoi::protocol::{Event, Method, PodInfo, PodName, State};

/// No step takes longer.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a host and waits until it says that it serves.
pub fn serve(bench: &Bench) -> Host {
    let mut child = bench.command(&["--no-ui", "--serve"]).spawn().expect("the program starts");
    let mut errors = BufReader::new(child.stderr.take().expect("its errors"));
    let mut said = String::new();
    while !said.contains("serving on ") {
        let read = errors.read_line(&mut said).expect("text");
        assert_ne!(read, 0, "the host ended: {said}");
    }
    // Its pipe is read on, or the host would wait when it is full.
    std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
    Host { child }
}

/// The time between the start of a host and its end.
pub struct Life<'w> {
    pub walk: &'w mut Walk,
    pub client: Client,
    events: Events,
    info: Option<PodInfo>,
}

impl<'w> Life<'w> {
    pub async fn begin(walk: &'w mut Walk, first: bool) -> Self {
        let found = find::connect(&walk.bench.data()).await.expect("a host that answers");
        let (client, events) = found.expect("a host");
        if first {
            walk.new_pod(&client).await;
            walk.screen = Some(Terminal::sized(&walk.bench, &[], SIZE.0, SIZE.1));
        }
        client.call(None, Method::Watch).await.expect("a host that lives");
        let mut life = Self { walk, client, events, info: None };
        while life.info.is_none() {
            life.event().await;
        }
        life
    }

    pub fn screen(&mut self) -> &mut Terminal {
        self.walk.screen.as_mut().expect("the screen of the walk")
    }

    pub async fn call(&self, method: Method) -> Event {
        self.call_to(&self.walk.pod, method).await
    }

    pub async fn call_to(&self, pod: &PodName, method: Method) -> Event {
        let call = self.client.call(Some(pod), method.clone());
        let reply = tokio::time::timeout(PATIENCE, call).await.expect("a reply in time");
        reply.unwrap_or_else(|refusal| panic!("{method:?}: {refusal}"))
    }

    /// The next event.
    pub async fn event(&mut self) -> Event {
        let event = tokio::time::timeout(PATIENCE, self.events.recv()).await;
        let event = event.expect("an event in time").expect("a host that lives").event;
        self.hear(&event);
        event
    }

    fn hear(&mut self, event: &Event) {
        let ours = |info: &&PodInfo| info.name == self.walk.pod;
        let info = match event {
            Event::Family { pods, .. } => pods.iter().find(ours),
            Event::PodChanged { info } => Some(&**info).filter(ours),
            _ => None,
        };
        if let Some(info) = info {
            self.info = Some(info.clone());
        }
    }

    /// What the client was told of the Pod so far.
    pub fn info(&mut self) -> PodInfo {
        while let Ok(outgoing) = self.events.try_recv() {
            self.hear(&outgoing.event);
        }
        self.info.clone().expect("it is heard of at the beginning")
    }

    /// What is known of the Pod that the walk goes on with.
    pub async fn follow(&mut self, pod: PodName) {
        self.walk.pod = pod;
        self.info = None;
        self.client.call(None, Method::Watch).await.expect("a host that lives");
        while self.info.is_none() {
            self.event().await;
        }
    }

    /// Waits for an event.
    pub async fn until(&mut self, is_wanted: impl Fn(&Event) -> bool) -> Event {
        loop {
            let event = self.event().await;
            if is_wanted(&event) {
                return event;
            }
        }
    }

    /// Waits for the end of the run, and until the Pod is in this state.
    pub async fn until_end(&mut self, state: State) {
        self.until(|event| matches!(event, Event::RunEnd { .. })).await;
        self.until_state(state).await;
    }

    pub async fn until_state(&mut self, state: State) {
        while self.info.as_ref().is_none_or(|info| info.state != state) {
            self.event().await;
        }
    }

    /// The words of the next model request are those of the model.
    pub async fn requested(&mut self, model: &History) -> Result<(), String> {
        let request = tokio::time::timeout(PATIENCE, self.walk.requests.recv()).await;
        let request = request.map_err(|_| "no request in time")?.expect("a provider");
        crate::walks::reading::same("request", &request, &model.context)
    }

    /// The words of the transcript, read in pages of some size.
    pub async fn pages(&self, pod: &PodName, max_bytes: u64) -> Vec<String> {
        let (mut shown, mut before) = (Vec::new(), None);
        loop {
            let page = self.call_to(pod, Method::Page { before, max_bytes }).await;
            let Event::Page { entries, before: next, .. } = page else { panic!("{page:?}") };
            let words = entries.iter().filter_map(|line| match line {
                Line::Whole(entry) | Line::Cut { entry, .. } => of_entry(entry),
                Line::Damaged { damaged, .. } => panic!("{damaged}"),
            });
            shown.splice(0..0, words);
            before = next;
            if before.is_none() {
                return shown;
            }
        }
    }
}
