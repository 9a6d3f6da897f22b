//! The ways of the dashboard.

use super::*;
use crate::screen::app::verb::is_written;
use crate::screen::pick_list::Choice;

/// A dashboard over a recorded connection.
struct Screen {
    app: App,
    client: Client,
    events: Events,
    sender: mpsc::Sender<Msg>,
    answers: mpsc::Receiver<Msg>,
    now: u64,
    acted: Vec<&'static str>,
}

impl Screen {
    async fn start(world: &World, client: Client, events: Events, key: &str) -> Self {
        let setup = Setup {
            cwd: world.cwd(),
            workspace: world.cwd(),
            env: world.env.clone(),
            themes: vec!["night".into(), "day".into()],
            providers: yoi::config::Catalogue::builtin().providers.keys().cloned().collect(),
            ..Setup::default()
        };
        let mut keymap = crate::screen::keys::default_keymap();
        let text = format!("[composer]\n\"f5\" = {key:?}\n");
        assert_eq!(crate::screen::keys::read(&mut keymap, "test.toml", &text), []);
        let theme = crate::theme::Theme::default();
        let mut app = App::new(setup, keymap, theme, Some(name("alice")));
        app.size = (200, 60);
        let (sender, answers) = mpsc::channel(ANSWERS);
        let now = yoi::protocol::now_ms();
        let acted = Vec::new();
        let mut screen = Self { app, client, events, sender, answers, now, acted };
        screen.call(None, Method::Watch, Asked::Watch);
        while screen.app.current.is_none() {
            screen.one().await;
        }
        screen.app.notices = crate::screen::notice::Notices::default();
        screen
    }

    fn call(&self, pod: Option<PodName>, method: Method, asked: Asked) {
        let message = |reply| Msg::Answered(asked, reply);
        crate::screen::run::call::begin(&self.client, (pod, method), &self.sender, message);
    }

    fn msg(&mut self, msg: Msg) {
        self.now += 1_000;
        let mut effects = self.app.update(msg, self.now).effects;
        effects.extend(self.app.prepare_frame());
        for effect in effects {
            match effect {
                Effect::Call { pod, method, asked } => self.call(pod, method, asked),
                Effect::LoadTheme(_) => self.acted.push("theme"),
                Effect::LoadKeymap(_) => self.acted.push("keymap"),
                Effect::Tour(_) => self.acted.push("tour"),
                Effect::Redraw => self.acted.push("redraw"),
                Effect::Quit(_) => self.acted.push("quit"),
                _ => {}
            }
        }
        self.app.frame_drawn(self.now);
    }

    async fn one(&mut self) {
        let msg = tokio::select! {
            Some(msg) = self.answers.recv() => msg,
            Some(event) = self.events.recv() => Msg::Host(event),
            else => panic!("the host ended"),
        };
        self.msg(msg);
    }

    fn press(&mut self, key: &str) {
        self.msg(pressed(key));
    }

    fn type_in(&mut self, text: &str) {
        typed(text).for_each(|key| self.msg(key));
    }

    /// Gives the verb in one of the ways of the screen.
    fn give(&mut self, verb: &Verb, line: &str, way: Way) {
        match way {
            Way::Line => {
                self.type_in(&format!(":{line}"));
                self.press("enter");
            }
            Way::Palette => {
                self.press("ctrl-p");
                self.type_in(&format!(":{}", verb.name));
                self.press("enter");
                if is_written(verb) {
                    self.type_in(line[verb.name.len()..].trim_start());
                    self.press("enter");
                }
            }
            Way::Key => {
                self.press("f5");
                if verb.is_only_typed() {
                    self.press("enter");
                }
            }
            Way::Command | Way::Shell | Way::Input => panic!("no screen"),
        }
    }

    /// Lets the verb come to its end; what it asks is confirmed.
    async fn finish(&mut self) -> Option<String> {
        let mut confirmation = None;
        loop {
            if let Some(Layer::Confirm(Confirm::Verb { confirm, .. })) = self.app.layers.top() {
                confirmation = Some(confirm.question.clone());
                self.press("enter");
            } else if self
                .app
                .verbs
                .values()
                .any(crate::screen::app::verb::RunningVerb::waits_for_results)
            {
                self.one().await;
            } else {
                return confirmation;
            }
        }
    }

    /// The page that is open, in lines.
    fn page(&self) -> String {
        match self.app.page.as_ref().map(|open| &open.page) {
            Some(Page::Since(since)) => {
                let report = self.app.report(since);
                let lines = std::iter::once(report.heading()).chain(report.lines());
                lines.collect::<Vec<_>>().join("\n")
            }
            Some(Page::Text { lines, .. }) => crate::wording::lines::text_of(lines),
            Some(Page::Keys(_) | Page::Notices | Page::Inbox) | None => String::new(),
        }
    }

    /// The notice, the list on top, or the page.
    fn said(&self) -> String {
        match self.app.layers.top() {
            Some(Layer::List(list)) => {
                // Rows to choose from have a title without a screen, too.
                let chosen = list.rows().any(|row| matches!(row.choice, Choice::Picked { .. }));
                let title = chosen.then(|| format!("{}\n", list.title));
                let rows = list.rows().map(|row| format!("{} {}\n", row.text, row.help));
                title.into_iter().chain(rows).collect()
            }
            None if self.app.page.is_some() => self.page(),
            _ => self.app.notices.shown().map_or(String::new(), |notice| notice.text.to_string()),
        }
    }
}

/// Gives a verb in one of the ways of the dashboard.
pub async fn on_screen(world: &World, verb: &Verb, line: &str, way: Way) -> Outcome {
    let (client, events, sent) = world.recorded().await;
    let run = if verb.is_only_typed() { "" } else { "run " };
    let key = format!("{run}:{line}");
    let mut screen = Screen::start(world, client, events, &key).await;
    screen.give(verb, line, way);
    let confirmation = screen.finish().await;
    let requests = steady_requests(&sent.lock().expect("a record"));
    Outcome { requests, confirmation, said: screen.said(), acted: screen.acted }
}
