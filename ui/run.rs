//! The loop of the dashboard: what arrives goes to the app, what the app wishes is done, and a
//! frame is painted when something on it changed.

use crate::app::{App, Asked, Effect, ExitReason, Msg, Redraw, Setup};
use crate::keys;
use crate::notice::Kind;
use crate::pane::glyph::Glyphs;
use crate::theme::Theme;
use crate::view;
use anyhow::Context as _;
use crossterm::event::Event as Terminal;
use futures_util::FutureExt as _;
use input::Input;
use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;
use terminal::{Painted, Screen};
use tokio::sync::mpsc;
use tokio::time::Instant;
use yoi::client::{Client, Events};
use yoi::config::Workspace;
use yoi::protocol::{Method, PodName, now_ms};

mod copy;
mod editor;
mod effects;
mod input;
mod long;
mod terminal;

/// The shortest time between two frames, unless a person waits for one: after a key, and when the
/// reply to a request comes. Text that streams is read, not played: 30 frames a second are enough.
const FRAME: Duration = Duration::from_millis(33);
/// How often a frame is begun anew because the terminal has another size by now.
const RESIZES: usize = 4;
/// How many messages are taken in between two frames.
const BURST: usize = 1024;
/// Answers and finished jobs that wait for the loop; their tasks wait when it is full.
const ANSWERS: usize = 256;

/// Finds the host again after it ended; `None` when none runs and none was to be started.
pub type Reconnect = Box<
    dyn Fn(Find) -> Pin<Box<dyn Future<Output = anyhow::Result<Option<(Client, Events)>>> + Send>>
        + Send
        + Sync,
>;

/// Which host is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// One that runs already.
    Running,
    /// That one, or else a new one.
    OrStart,
}

/// Sentences that may be said once the first frame stands, such as which models answer nearby.
pub type Offers = Pin<Box<dyn Future<Output = Vec<String>> + Send>>;

/// What the dashboard is opened with.
#[derive(Default)]
pub struct Options {
    /// Absolute; the working directory of new Pods.
    pub cwd: PathBuf,
    /// The model of new Pods, when a person chose one.
    pub model: Option<String>,
    /// The environment offered to Pods; also says what the terminal can show.
    pub env: BTreeMap<String, String>,
    /// The theme to begin with; `None` = the default.
    pub theme: Option<String>,
    /// The key map that the settings name; `None` = `keymap.toml`, if there is one.
    pub keymap: Option<PathBuf>,
    /// Where `keymap.toml` and `themes/` are looked for.
    pub config_dir: Option<PathBuf>,
    /// Where a copy goes that is too long for the clipboard.
    pub copies: Option<PathBuf>,
    /// The Pod to begin with.
    pub pod: Option<PodName>,
    /// Models that complete after `:model`.
    pub models: Vec<String>,
    /// A sentence to begin with, such as that the host runs inside this process.
    pub notice: Option<String>,
    /// Called when the host ended and the person wants it back; without it the dashboard ends.
    pub reconnect: Option<Reconnect>,
    /// Looked for after the first frame.
    pub offers: Option<Offers>,
}

/// Shows the dashboard over a host until the person leaves.
///
/// # Errors
/// The terminal cannot be read or written.
pub async fn dashboard(
    client: Client,
    events: Events,
    options: Options,
) -> anyhow::Result<ExitReason> {
    let mut app = open(&options);
    let signals = input::signals().context("cannot listen for signals")?;
    let screen = Screen::take().context("cannot take the terminal")?;
    app.size = screen.size().context("cannot measure the terminal")?;
    let (sender, answers) = mpsc::channel(ANSWERS);
    let themes = options.config_dir.map(|dir| dir.join("themes"));
    let mut running = Loop {
        app,
        screen,
        client,
        events: Some(events),
        input: Some(Input::start()),
        signals,
        sender,
        answers,
        reconnect: options.reconnect.map(std::sync::Arc::new),
        offers: options.offers,
        themes,
        copies: options.copies,
        painted: None,
        redraw: Redraw::Nothing,
        over: None,
    };
    let reason = running.run().await;
    if let Some(input) = running.input.take() {
        input.stop().await;
    }
    reason
}

/// The app as it is before the first event, with what its files complain about.
fn open(options: &Options) -> App {
    let env = |name: &str| options.env.get(name).cloned();
    let themes = options.config_dir.as_ref().map(|dir| dir.join("themes"));
    let wanted = options.theme.as_deref().unwrap_or("night");
    let (theme, mut diagnostics) = Theme::load(wanted, themes.as_deref());
    let mut keymap = keys::default_keymap();
    let own = || options.config_dir.as_ref().map(|dir| dir.join("keymap.toml"));
    if let Some(file) = options.keymap.clone().or_else(own) {
        let name = file.display().to_string();
        match std::fs::read_to_string(&file) {
            Ok(text) => {
                let problems = keys::read(&mut keymap, &name, &text);
                diagnostics.extend(problems.iter().map(ToString::to_string));
            }
            Err(error)
                if error.kind() == std::io::ErrorKind::NotFound && options.keymap.is_none() => {}
            Err(error) => diagnostics.push(format!("{name}: {error}")),
        }
    }
    let setup = Setup {
        cwd: options.cwd.clone(),
        workspace: Workspace::of(&options.cwd, &options.env)
            .map_or_else(|_| options.cwd.clone(), |workspace| workspace.root),
        env: options.env.clone(),
        models: options.models.clone(),
        themes: Theme::names(themes.as_deref()),
        zone: Some(jiff::tz::TimeZone::system()),
        glyphs: Glyphs::detect(env),
        reconnects: options.reconnect.is_some(),
    };
    let mut app = App::new(setup, keymap, theme, options.pod.clone());
    app.model.clone_from(&options.model);
    let now = now_ms();
    for diagnostic in diagnostics {
        app.notices.say(Kind::Warned, diagnostic, now);
    }
    if let Some(notice) = &options.notice {
        app.notices.say(Kind::Info, notice.clone(), now);
    }
    app
}

/// What reached the loop; it is moved into the app and gone.
#[allow(clippy::large_enum_variant)]
enum Arrived {
    Terminal(Terminal),
    Msg(Msg),
    /// The connection is there again.
    Host(Client, Events),
    Signal(i32),
    /// The terminal cannot be read any more.
    Deaf,
    /// It is time for a frame.
    Frame,
}

struct Loop {
    app: App,
    screen: Screen,
    client: Client,
    /// `None` while there is no host.
    events: Option<Events>,
    /// `None` while another program reads the terminal.
    input: Option<Input>,
    signals: mpsc::Receiver<i32>,
    /// For tasks that were started here.
    sender: mpsc::Sender<Arrived>,
    answers: mpsc::Receiver<Arrived>,
    reconnect: Option<std::sync::Arc<Reconnect>>,
    offers: Option<Offers>,
    themes: Option<PathBuf>,
    copies: Option<PathBuf>,
    painted: Option<Instant>,
    /// What the messages since the last frame want to be painted.
    redraw: Redraw,
    over: Option<ExitReason>,
}

impl Loop {
    async fn run(&mut self) -> anyhow::Result<ExitReason> {
        self.call(None, Method::Watch, Asked::Watch);
        self.paint().await?;
        self.look_for_offers();
        loop {
            let first = self.next().await;
            let mut urgent = self.take_in(first).await?;
            for _ in 0..BURST {
                let Some(more) = self.waiting() else { break };
                urgent |= self.take_in(more).await?;
            }
            if let Some(reason) = self.over.take() {
                return Ok(reason);
            }
            if self.redraw == Redraw::Frame && (urgent || self.frame_is_due()) {
                self.paint().await?;
            }
        }
    }

    fn look_for_offers(&mut self) {
        let Some(offers) = self.offers.take() else { return };
        let sender = self.sender.clone();
        tokio::spawn(async move {
            for offer in offers.await {
                // A loop that is over needs no offers.
                let _ = sender.send(Arrived::Msg(Msg::Said(Kind::Info, offer))).await;
            }
        });
    }

    /// Waits for the next thing to happen; sleeps when nothing will by itself.
    async fn next(&mut self) -> Arrived {
        let wake = self.wake();
        tokio::select! {
            biased;
            Some(signal) = self.signals.recv() => Arrived::Signal(signal),
            event = from_terminal(&mut self.input) => event.map_or(Arrived::Deaf, Arrived::Terminal),
            Some(arrived) = self.answers.recv() => arrived,
            event = from_host(&mut self.events) => {
                event.map_or(Arrived::Msg(Msg::HostEnded), |event| Arrived::Msg(Msg::Host(event)))
            }
            () = until(wake) => Arrived::Frame,
        }
    }

    /// When something is to be painted although nothing happens.
    fn wake(&self) -> Option<Instant> {
        if self.redraw == Redraw::Frame {
            return self.painted.map(|at| at + FRAME);
        }
        let at = self.app.wakes_at()?;
        Some(Instant::now() + Duration::from_millis(at.saturating_sub(now_ms())))
    }

    fn frame_is_due(&self) -> bool {
        self.painted.is_none_or(|at| at.elapsed() >= FRAME)
    }

    /// What has arrived besides.
    fn waiting(&mut self) -> Option<Arrived> {
        if let Ok(signal) = self.signals.try_recv() {
            return Some(Arrived::Signal(signal));
        }
        if let Some(event) = self.input.as_mut().and_then(|input| input.events.try_recv().ok()) {
            return Some(Arrived::Terminal(event));
        }
        if let Ok(arrived) = self.answers.try_recv() {
            return Some(arrived);
        }
        let event = self.events.as_mut()?.try_recv().ok()?;
        Some(Arrived::Msg(Msg::Host(event)))
    }

    /// Takes in what arrived; tells whether a person waits for the frame.
    async fn take_in(&mut self, arrived: Arrived) -> anyhow::Result<bool> {
        let (msg, urgent) = match arrived {
            Arrived::Terminal(event) => match of_terminal(event) {
                Some(msg) => (msg, true),
                None => return Ok(false),
            },
            Arrived::Msg(msg) => {
                let is_reply = matches!(msg, Msg::Answered(..));
                (msg, is_reply)
            }
            Arrived::Host(client, events) => {
                self.client = client;
                self.events = Some(events);
                (Msg::Connected, false)
            }
            Arrived::Signal(number) => {
                self.over = Some(ExitReason::Signal(number));
                return Ok(false);
            }
            Arrived::Deaf => {
                self.over = Some(ExitReason::Signal(HANGUP));
                return Ok(false);
            }
            Arrived::Frame => (Msg::Wake, true),
        };
        if matches!(msg, Msg::HostEnded) {
            self.events = None;
        }
        let effects = self.update(msg);
        self.perform_all(effects).await?;
        Ok(urgent)
    }

    /// Gives a message to the app: what it wants to be painted is collected until the next frame, and
    /// what it wants to be done is to be performed.
    fn update(&mut self, msg: Msg) -> Vec<Effect> {
        let update = self.app.update(msg, now_ms());
        self.redraw = self.redraw.max(update.redraw);
        update.effects
    }

    /// Paints a frame; again when the terminal turns out to have another size. While it changes with
    /// every frame the next one has to wait, because something has changed.
    async fn paint(&mut self) -> anyhow::Result<()> {
        for _ in 0..RESIZES {
            let Painted::Resized(columns, rows) = self.paint_once().await? else { break };
            let effects = self.update(Msg::Resize(columns, rows));
            self.perform_all(effects).await?;
        }
        self.painted = Some(Instant::now());
        Ok(())
    }

    async fn paint_once(&mut self) -> anyhow::Result<Painted> {
        self.redraw = Redraw::Nothing;
        let effects = self.app.prepare_frame();
        self.perform_all(effects).await?;
        #[cfg(feature = "crash-points")]
        panic_point(&self.app);
        let app = &self.app;
        let painted = self.screen.paint(app.size, |frame| view::draw(app, frame));
        let painted = painted.context("cannot write to the terminal")?;
        if painted == Painted::Whole {
            self.app.frame_drawn(now_ms());
        }
        Ok(painted)
    }

    /// Calls the host in a task of its own; the reply comes back as a message.
    fn call(&self, pod: Option<PodName>, method: Method, asked: Asked) {
        let (client, sender) = (self.client.clone(), self.sender.clone());
        let mut call = Box::pin(async move { client.call(pod.as_ref(), method).await });
        // Begun here, so that orders reach the host in the order in which they were wished for.
        let early = (&mut call).now_or_never();
        tokio::spawn(async move {
            let reply = match early {
                Some(reply) => reply,
                None => call.await,
            };
            // The loop is gone when the dashboard is: nobody waits for the reply.
            let _ = sender.send(Arrived::Msg(Msg::Answered(asked, reply))).await;
        });
    }
}

/// Lets a test see what a panic of the screen leaves behind.
#[cfg(feature = "crash-points")]
fn panic_point(app: &App) {
    assert!(app.composer.draft().message().text != "panic!", "the panic that was asked for");
}

/// The number of SIGHUP.
const HANGUP: i32 = 1;

async fn from_terminal(input: &mut Option<Input>) -> Option<Terminal> {
    match input {
        Some(input) => input.events.recv().await,
        None => std::future::pending().await,
    }
}

async fn from_host(events: &mut Option<Events>) -> Option<yoi::protocol::Outgoing> {
    match events {
        Some(events) => events.recv().await,
        None => std::future::pending().await,
    }
}

async fn until(wake: Option<Instant>) {
    match wake {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn of_terminal(event: Terminal) -> Option<Msg> {
    match event {
        Terminal::Key(key) => Some(Msg::Key(key)),
        Terminal::Paste(text) => Some(Msg::Paste(text)),
        Terminal::Mouse(event) => Some(Msg::Mouse(event)),
        Terminal::Resize(width, height) => Some(Msg::Resize(width, height)),
        Terminal::FocusGained | Terminal::FocusLost => None,
    }
}
