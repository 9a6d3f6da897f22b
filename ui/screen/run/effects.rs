//! Performs the effects of the app.

use crate::screen::app::{Asked, Effect, LoadFor, Msg, RequestToken};
use crate::screen::keys::Loaded;
use crate::screen::notice::Kind;
use crate::screen::run::input::{self, Input};
use crate::screen::run::own_files::brief;
use crate::screen::run::terminal::{give_back, stop_group};
use crate::screen::run::{Arrived, Find, Loop, clipboard, editor};
use crate::theme::{self, Theme};
use crate::verb::VerbId;
use crate::verb::dialogue::KeyStep;
use anyhow::Context as _;
use std::collections::VecDeque;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use tokio::time::Instant;
use yoi::llm::rehearsal::{TOUR_DIRECTORY, TOUR_MODEL};
use yoi::protocol::method::NewPod;
use yoi::protocol::{CompletionKind, Event, Method};

/// Within this time after a suspension its SIGCONT arrives.
const CONTINUED: Duration = Duration::from_millis(500);

impl Loop {
    /// Performs effects, and the effects that follow from their results.
    pub(super) async fn perform_all(&mut self, effects: Vec<Effect>) -> anyhow::Result<()> {
        let mut effects = VecDeque::from(effects);
        while self.over.is_none()
            && let Some(effect) = effects.pop_front()
        {
            if let Some(msg) = self.perform(effect).await? {
                effects.extend(self.update(msg));
            }
        }
        Ok(())
    }

    async fn perform(&mut self, effect: Effect) -> anyhow::Result<Option<Msg>> {
        match effect {
            Effect::Call { pod, method, asked } => self.call(pod, method, asked),
            Effect::KeyStep(verb, step) => self.key_step(verb, step),
            Effect::CopyFromLog(pod, copy) => self.copy_from_log(pod, copy),
            Effect::ReadTable(pod, text) => self.read_table(pod, text),
            Effect::Copy(text) => self.copy(text)?,
            Effect::Edit(text) => {
                let edited = self.in_editor(move |editor| editor::edit(editor, &text)).await?;
                return Ok(Some(Msg::Edited(edited)));
            }
            Effect::OpenFile(path, line) => {
                let opened = self.in_editor(move |name| editor::open(name, &path, line)).await?;
                return Ok(opened.err().map(|why| Msg::Said(Kind::Refused, why)));
            }
            Effect::OpenSettings(key) => {
                let Some(file) = self.config.as_ref().map(|dir| dir.join("config.toml")) else {
                    let why = "no configuration directory is known";
                    return Ok(Some(Msg::Said(Kind::Refused, why.into())));
                };
                let opened = move |name: &str| editor::open_settings(name, &file, &key);
                let opened = self.in_editor(opened).await?;
                return Ok(opened.err().map(|why| Msg::Said(Kind::Refused, why)));
            }
            Effect::OpenLink(address) => self.open_link(address),
            Effect::FindFiles(prefix, asked) => self.find_files(prefix, asked),
            Effect::LoadTheme(load_for) => return Ok(Some(self.load_theme(load_for))),
            Effect::LoadKeymap(load_for) => return Ok(Some(self.load_keymap(load_for))),
            Effect::Tour(token) => return Ok(self.tour(token)),
            Effect::Title(title) => self.screen.set_title(&title)?,
            Effect::Notify(text) => self.screen.notify(&text)?,
            Effect::Records(sequences) => self.screen.report(&sequences)?,
            Effect::Mouse(capture) => self.screen.capture_mouse(capture)?,
            Effect::Redraw => self.screen.forget()?,
            Effect::Suspend => self.suspend().await?,
            Effect::Reconnect => self.connect_again(Find::OrStart),
            Effect::FindHost => self.connect_again(Find::Running),
            Effect::Quit(reason) => self.over = Some(reason),
        }
        Ok(None)
    }

    /// Tries or stores a key in the background. If the person has left the line meanwhile, the app drops the reply.
    fn key_step(&self, verb: VerbId, step: KeyStep) {
        let (config, env) = (self.config.clone(), self.app.setup.env.clone());
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let reply = step.carry_out(&config.unwrap_or_default(), &env).await;
            // The loop is gone when the dashboard has been left; then nobody waits for the reply.
            let _ = sender.send(Arrived::Msg(Msg::KeyStepDone(verb, reply))).await;
        });
    }

    fn find_files(&self, prefix: String, asked: Asked) {
        let (cwd, sender) = (self.app.setup.cwd.clone(), self.sender.clone());
        let own: Vec<_> = self.config.iter().cloned().collect();
        // A file system may take its time.
        tokio::task::spawn_blocking(move || {
            let entries = yoi::host::files_for_new_pod(&cwd, own, &prefix);
            let found = Event::Completions { kind: CompletionKind::File, entries };
            // A loop that is over shows no files.
            let _ = sender.blocking_send(Arrived::Msg(Msg::Answered(asked, Ok(found))));
        });
    }

    fn load_keymap(&self, load_for: LoadFor) -> Msg {
        let source = self.keymap.over(self.app.wanted_keymap(&load_for));
        let Loaded { keymap, wrong, .. } = source.load();
        Msg::KeymapLoaded(load_for, Box::new(keymap), brief(wrong, self.config.as_deref()))
    }

    /// Loads a theme, and lists anew which there are.
    fn load_theme(&mut self, load_for: LoadFor) -> Msg {
        let dir = self.config.as_deref().map(|config| config.join("themes"));
        let dir = dir.as_deref();
        self.app.setup.themes = Theme::names(dir);
        let name = self.app.wanted_theme(&load_for);
        if let LoadFor::Choice(_) = &load_for {
            if let Err(unknown) = theme::must_exist(name, dir) {
                return Msg::Said(Kind::Refused, unknown);
            }
            if let Some(why) = theme::why_mono().filter(|_| name != theme::MONO) {
                return Msg::Said(Kind::Refused, format!("no colours: {why}"));
            }
        }
        let (theme, wrong) = Theme::load(name, dir);
        Msg::ThemeLoaded(load_for, Box::new(theme), brief(wrong, self.config.as_deref()))
    }

    /// Creates a directory for the tour and requests its Pod; a failure becomes a notice.
    fn tour(&self, token: RequestToken) -> Option<Msg> {
        let made = tempfile::Builder::new()
            .prefix(TOUR_DIRECTORY)
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir();
        let cwd = match made {
            // The directory stays as long as the Pod: the host deletes both together.
            Ok(dir) => dir.keep(),
            Err(error) => {
                let text = format!("cannot make a directory for the tour: {error}");
                return Some(Msg::Said(Kind::Refused, text));
            }
        };
        let new = NewPod {
            name: yoi::protocol::PodName::parse("tour").ok().filter(|name| !self.has(name)),
            cwd,
            model: Some(TOUR_MODEL.into()),
            env: self.app.setup.env.clone(),
            ..NewPod::default()
        };
        self.call(None, Method::New(new), Asked::NewTour(token));
        None
    }

    fn has(&self, name: &yoi::protocol::PodName) -> bool {
        self.app.family.get(name).is_some()
    }

    fn connect_again(&self, find: Find) {
        let (Some(reconnect), sender) = (self.reconnect.clone(), self.sender.clone()) else {
            return;
        };
        tokio::spawn(async move {
            let arrived = match (reconnect(find).await, find) {
                (Ok(Some((client, events))), _) => Arrived::Host(client, events),
                (Ok(None), _) => Arrived::Msg(Msg::NotFound(None)),
                (Err(error), Find::Running) => Arrived::Msg(Msg::NotFound(Some(error.to_string()))),
                (Err(error), Find::OrStart) => {
                    Arrived::Msg(Msg::ConnectFailed(format!("{error:#}")))
                }
            };
            // The loop is gone when the dashboard has been left; then no connection is needed.
            let _ = sender.send(arrived).await;
        });
    }

    /// Gives the terminal back and stops, as Ctrl+Z of a shell does; returns when this process is continued.
    pub(super) async fn suspend(&mut self) -> anyhow::Result<()> {
        self.pause_input().await;
        give_back();
        stop_group().context("cannot suspend")?;
        self.resume_input()
    }

    /// Takes the terminal again after a stop that this process did not see.
    pub(super) async fn continued(&mut self) -> anyhow::Result<()> {
        // After a suspension of its own this process has the terminal already.
        if self.retaken.is_some_and(|at| at.elapsed() < CONTINUED) {
            return Ok(());
        }
        self.pause_input().await;
        give_back();
        self.resume_input()
    }

    /// Gives the terminal to `$VISUAL` or `$EDITOR` for this work.
    async fn in_editor<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&str) -> Result<T, String> + Send + 'static,
    ) -> anyhow::Result<Result<T, String>> {
        let env = |name: &str| self.app.setup.env.get(name).filter(|v| !v.is_empty()).cloned();
        let editor = env("VISUAL").or_else(|| env("EDITOR")).unwrap_or_else(|| "vi".into());
        self.pause_input().await;
        // Ctrl+C is a signal as long as the terminal is not the screen's.
        input::ignore_interrupts(true);
        give_back();
        let done = tokio::task::spawn_blocking(move || work(&editor)).await;
        let resumed = self.resume_input();
        input::ignore_interrupts(false);
        resumed?;
        Ok(done.unwrap_or_else(|error| Err(format!("cannot run the editor: {error}"))))
    }

    /// Hands an address to the program that the display has for it.
    fn open_link(&self, address: String) {
        let sender = self.sender.clone();
        tokio::spawn(async move {
            if let Err(error) = clipboard::give(&["xdg-open", &address], "").await {
                let text = format!("xdg-open cannot open {address}: {error}");
                // A loop that is over shows no notices.
                let _ = sender.send(Arrived::Msg(Msg::Said(Kind::Refused, text))).await;
            }
        });
    }

    async fn pause_input(&mut self) {
        if let Some(input) = self.input.take() {
            input.stop().await;
        }
    }

    fn resume_input(&mut self) -> anyhow::Result<()> {
        self.screen.retake().context("cannot take the terminal again")?;
        self.screen.capture_mouse(self.app.capture)?;
        self.input = Some(Input::start().context("cannot read the terminal again")?);
        self.app.size = self.screen.size()?;
        self.app.terminal_retaken();
        self.retaken = Some(Instant::now());
        self.redraw = true;
        Ok(())
    }
}
