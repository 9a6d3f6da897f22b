//! The loop of the dashboard: hands input and events to the app, performs its effects, and paints a frame
//! when the screen has changed.

use crate::screen::app::{App, Asked, Effect, ExitReason, Msg};
use crate::screen::keys;
use crate::screen::notice::Kind;
use crate::screen::view;
use anyhow::Context as _;
use crossterm::event::Event;
use input::{FromTerminal, Input, JobSignal, JobSignals};
use own_files::OwnFiles;
use saved::Saver;
use std::path::PathBuf;
use std::time::Duration;
use terminal::{Painted, Screen};
use tokio::sync::mpsc;
use tokio::time::Instant;
use yoi::client::{Client, Events};
use yoi::protocol::{Method, PodName, now_ms};

/// Calls to the host.
pub mod call;
/// Puts copies into the clipboard.
mod clipboard;
/// Copies texts from the log.
mod copy;
/// The person's editor.
mod editor;
/// Performs the effects of the app.
mod effects;
/// Reads the terminal and the signals.
pub mod input;
/// Reads long texts of the log.
mod long;
/// Notices changes of the person's own files.
mod own_files;
/// The options of the dashboard, and its app before the first event.
mod open;
/// The files in which a screen keeps what outlives it.
mod saved;
/// The terminal, taken and given back.
mod terminal;
/// A question before there is a screen.
mod two_keys;

pub use open::{Find, Options, Ready, Reconnect};
pub use saved::ScreenFiles;
pub use two_keys::enter_or_esc;

/// The shortest time between two frames, unless a person waits for one: after a key, and when the
/// reply to a request comes. Text that streams is read, not played: 25 frames a second are enough.
const FRAME: Duration = Duration::from_millis(40);
/// The longest such time. The more bytes a frame took, the later the next one comes.
const LONG_FRAME: Duration = Duration::from_millis(125);
/// How many bytes a second may go to the terminal in frames that no key caused. Over a slow line, more of them would delay
/// what is typed.
const BYTES: u64 = 32 * 1024;
/// How long after a change the state of the screen is written: what a crash of the screen loses.
const SAVE: Duration = Duration::from_secs(1);
/// How often a frame is begun again because the terminal has changed its size meanwhile.
const RESIZES: usize = 4;
/// How many messages are handled between two frames.
const BURST: usize = 1024;
/// How many replies and results of tasks wait for the loop; further tasks wait for room.
const ANSWERS: usize = 256;

/// Shows the dashboard over a host until the person leaves.
///
/// # Errors
/// The terminal cannot be read or written.
pub async fn dashboard(
    client: Client,
    events: Events,
    ready: Ready,
    reconnect: Option<Reconnect>,
) -> anyhow::Result<ExitReason> {
    let Ready { options, mut app, saved } = ready;
    app.setup.reconnects = reconnect.is_some();
    let signals = input::signals().context("cannot listen for signals")?;
    let jobs = JobSignals::listen().context("cannot listen for signals")?;
    let screen = Screen::take().context("cannot take the terminal")?;
    app.size = screen.size().context("cannot measure the terminal")?;
    let (sender, answers) = mpsc::channel(ANSWERS);
    let failed = sender.clone();
    let saver = options.screen.and_then(|files| {
        Saver::start(files, saved, options.usual, move |why| {
            // A loop that is over shows no notices.
            let _ = failed.blocking_send(Arrived::Msg(Msg::Said(Kind::Warned, why)));
        })
    });
    let own_files = match options.config_dir.clone() {
        // Without reports of the kernel only the verbs read the files again.
        Some(dir) => OwnFiles::watch(dir, options.keymap.file.clone()).await.ok(),
        None => None,
    };
    let mut running = Loop {
        app,
        screen,
        client,
        events: Some(events),
        input: Some(Input::start().context("cannot read the terminal")?),
        signals,
        jobs,
        retaken: None,
        sender,
        answers,
        reconnect: reconnect.map(std::sync::Arc::new),
        config: options.config_dir,
        own_files,
        keymap: options.keymap,
        copies: options.copies,
        painted: None,
        frame_bytes: 0,
        redraw: false,
        saver,
        save_at: None,
        over: None,
    };
    let reason = running.run().await;
    if let Some(input) = running.input.take() {
        input.stop().await;
    }
    if let Some(saver) = running.saver.take() {
        // No reply is read any more: a full channel would hold the saver where it says why it failed.
        running.answers.close();
        saver.finish(running.app.screen_state(), running.app.looks.chosen.clone()).await;
    }
    reason
}

/// An input of the loop.
#[allow(clippy::large_enum_variant)]
enum Arrived {
    Terminal(FromTerminal),
    Msg(Msg),
    /// The new connection to a host.
    Host(Client, Events),
    Signal(i32),
    Job(JobSignal),
    /// The terminal has been closed.
    Deaf,
    /// The state of the screen is to be written.
    Save,
    /// A frame is due.
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
    jobs: JobSignals,
    /// When the terminal was taken again after another program had it.
    retaken: Option<Instant>,
    /// The sender for tasks of the loop.
    sender: mpsc::Sender<Arrived>,
    answers: mpsc::Receiver<Arrived>,
    reconnect: Option<std::sync::Arc<Reconnect>>,
    /// The directory of the settings, the keys and the themes.
    config: Option<PathBuf>,
    own_files: Option<OwnFiles>,
    /// Where the keys come from, as the settings say.
    keymap: keys::Source,
    copies: Option<PathBuf>,
    painted: Option<Instant>,
    /// The bytes of that frame.
    frame_bytes: u64,
    /// Whether the messages since the last frame need another one.
    redraw: bool,
    saver: Option<Saver>,
    /// When the state of the screen is written; `None` while it is as it was written.
    save_at: Option<Instant>,
    over: Option<ExitReason>,
}

impl Loop {
    async fn run(&mut self) -> anyhow::Result<ExitReason> {
        self.call(None, Method::Watch, Asked::Watch);
        self.paint().await?;
        self.screen.query()?;
        loop {
            let first = self.next().await;
            let mut urgent = self.take_in(first).await?;
            for _ in 0..BURST {
                if self.over.is_some() {
                    break;
                }
                let Some(more) = self.waiting() else { break };
                urgent |= self.take_in(more).await?;
            }
            if let Some(reason) = self.over.take() {
                return Ok(reason);
            }
            if self.redraw && (urgent || self.frame_is_due()) {
                self.paint().await?;
            }
            self.save_if_due();
        }
    }

    /// Notes that the state of the screen may have changed.
    fn changed(&mut self) {
        if self.saver.is_some() {
            self.save_at.get_or_insert_with(|| Instant::now() + SAVE);
        }
    }

    fn save_if_due(&mut self) {
        let Some(saver) = self.saver.as_ref() else { return };
        let now = Instant::now();
        if self.save_at.is_none_or(|at| at > now) {
            return;
        }
        let saved = saver.save(self.app.screen_state(), self.app.looks.chosen.clone());
        self.save_at = (!saved).then(|| now + SAVE);
    }

    /// Waits for the next input, or until a frame is due.
    async fn next(&mut self) -> Arrived {
        let wake = self.wake();
        tokio::select! {
            biased;
            Some(signal) = self.signals.recv() => Arrived::Signal(signal),
            job = self.jobs.next() => Arrived::Job(job),
            event = from_terminal(&mut self.input) => event.map_or(Arrived::Deaf, Arrived::Terminal),
            Some(arrived) = self.answers.recv() => arrived,
            event = from_host(&mut self.events) => {
                event.map_or(Arrived::Msg(Msg::HostEnded), |event| Arrived::Msg(Msg::Host(event)))
            }
            () = own_files_changed(&mut self.own_files) => Arrived::Msg(Msg::OwnFilesChanged),
            () = until(self.save_at) => Arrived::Save,
            () = until(wake) => Arrived::Frame,
        }
    }

    /// When the next frame is due without further input.
    fn wake(&self) -> Option<Instant> {
        if self.redraw {
            return self.painted.map(|at| at + pause_after(self.frame_bytes));
        }
        let at = self.app.wakes_at()?;
        Some(Instant::now() + Duration::from_millis(at.saturating_sub(now_ms())))
    }

    fn frame_is_due(&self) -> bool {
        self.painted.is_none_or(|at| at.elapsed() >= pause_after(self.frame_bytes))
    }

    /// The next input that has arrived already.
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

    /// Handles an input, and tells whether the next frame comes at once.
    async fn take_in(&mut self, arrived: Arrived) -> anyhow::Result<bool> {
        let (msg, urgent) = match arrived {
            Arrived::Terminal(event) => (of_terminal(event), true),
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
            Arrived::Job(JobSignal::Stop) => {
                self.suspend().await?;
                return Ok(true);
            }
            Arrived::Job(JobSignal::Continued) => {
                self.continued().await?;
                return Ok(true);
            }
            Arrived::Deaf => {
                self.over = Some(ExitReason::Signal(HANGUP));
                return Ok(false);
            }
            Arrived::Save => return Ok(false),
            Arrived::Frame => (Msg::Wake, true),
        };
        if !matches!(msg, Msg::Host(_) | Msg::Wake | Msg::Focus(_) | Msg::Terminal(_)) {
            self.changed();
        }
        if matches!(msg, Msg::HostEnded) {
            self.events = None;
        }
        let effects = self.update(msg);
        self.perform_all(effects).await?;
        Ok(urgent)
    }

    /// Hands a message to the app, notes whether it needs a frame, and returns its effects.
    fn update(&mut self, msg: Msg) -> Vec<Effect> {
        let update = self.app.update(msg, now_ms());
        self.redraw |= update.redraw;
        update.effects
    }

    /// Paints a frame, and again if the terminal has another size by then. If its size changes with every
    /// frame, the next input paints again.
    async fn paint(&mut self) -> anyhow::Result<()> {
        let before = self.screen.written();
        for _ in 0..RESIZES {
            let Painted::Resized(columns, rows) = self.paint_once().await? else { break };
            let effects = self.update(Msg::Resize(columns, rows));
            self.perform_all(effects).await?;
        }
        self.painted = Some(Instant::now());
        self.frame_bytes = self.screen.written() - before;
        Ok(())
    }

    async fn paint_once(&mut self) -> anyhow::Result<Painted> {
        self.redraw = false;
        let effects = self.app.prepare_frame();
        self.perform_all(effects).await?;
        #[cfg(feature = "crash-points")]
        panic_point(&self.app);
        let app = &self.app;
        let links = view::links(app);
        let mut selected = None;
        let painted = self.screen.paint(app.size, links, |frame| {
            view::draw(app, frame);
            selected = app.selected_text(frame.buffer_mut());
        });
        let painted = painted.context("cannot write to the terminal")?;
        if painted == Painted::Whole {
            self.app.frame_drawn(now_ms());
        }
        if let Some(text) = selected {
            let effects = self.update(Msg::Selected(text));
            self.perform_all(effects).await?;
        }
        Ok(painted)
    }

    /// Calls the host; the reply comes back as a message.
    fn call(&self, pod: Option<PodName>, method: Method, asked: Asked) {
        let message = |reply| Arrived::Msg(Msg::Answered(asked, reply));
        call::begin(&self.client, (pod, method), &self.sender, message);
    }
}

/// Lets a test see what a panic of the screen leaves behind.
#[cfg(feature = "crash-points")]
fn panic_point(app: &App) {
    assert!(app.composer.draft().message().text != "panic!", "the panic that was asked for");
}

/// How long the next frame waits after one of so many bytes, unless a key causes it.
fn pause_after(bytes: u64) -> Duration {
    Duration::from_millis(bytes * 1_000 / BYTES).clamp(FRAME, LONG_FRAME)
}

/// The number of SIGHUP.
const HANGUP: i32 = 1;

async fn from_terminal(input: &mut Option<Input>) -> Option<FromTerminal> {
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

async fn own_files_changed(files: &mut Option<OwnFiles>) {
    if let Some(watch) = files
        && watch.changed().await.is_ok()
    {
        return;
    }
    *files = None;
    std::future::pending().await
}

async fn until(wake: Option<Instant>) {
    match wake {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn of_terminal(event: FromTerminal) -> Msg {
    let event = match event {
        FromTerminal::Reply(reply) => return Msg::Terminal(reply),
        FromTerminal::Event(event) => event,
    };
    match event {
        Event::Key(key) => Msg::Key(key),
        Event::Paste(text) => Msg::Paste(text),
        Event::Mouse(event) => Msg::Mouse(event),
        Event::Resize(width, height) => Msg::Resize(width, height),
        Event::FocusGained => Msg::Focus(true),
        Event::FocusLost => Msg::Focus(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_without_a_key_are_fewer_the_larger_they_are() {
        let pauses = [0, 1_000, 3_276, 1_000_000].map(|bytes| pause_after(bytes).as_millis());
        assert_eq!(pauses, [40, 40, 99, 125]);
    }
}
