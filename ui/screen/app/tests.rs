use super::*;
use crokey::KeyCombination;
use crossterm::event::{KeyCode, KeyEvent, MouseEvent};
use yoi::client::{Client, Events};
use yoi::host::{Host, IdleExit, Options};
use yoi::protocol::{Event, Method, Outgoing, Refusal, State};

fn name(text: &str) -> PodName {
    PodName::parse(text).expect("a name")
}

/// Replies that wait for the screen; the tasks that send more wait.
const ANSWERS: usize = 64;

/// A key as the terminal reports it.
fn key_event(key: KeyCombination) -> KeyEvent {
    let crokey::OneToThree::One(code) = key.codes else { panic!("one key") };
    KeyEvent::new(code, key.modifiers)
}

/// A key, named as in a keymap.
fn pressed(key: &str) -> Msg {
    Msg::Key(key_event(crate::screen::keys::parse(key).expect("a key")))
}

/// The keys that type a text.
fn typed(text: &str) -> impl Iterator<Item = Msg> {
    text.chars().map(|c| Msg::Key(KeyEvent::from(KeyCode::Char(c))))
}

/// A host in this process with the directories of `env`, and a client of it.
async fn host(env: &BTreeMap<String, String>) -> (Host, Client, Events) {
    let options = Options {
        dirs: yoi::config::Dirs::find(env, None).expect("directories"),
        env: env.clone(),
        helper: "/bin/false".into(),
        old_nofile: None,
        idle_exit: IdleExit::Never,
    };
    let host = Host::start(options).await.expect("a host");
    let (client, events) = host.client().await.expect("a client");
    (host, client, events)
}

/// A Pod of the workspace `/repo`, in this state since 12:00.
pub fn pod(name: &str, state: State) -> PodInfo {
    let name = PodName::parse(name).expect("a name");
    PodInfo {
        model: "anthropic/claude-sonnet-4".into(),
        model_why: "--model".into(),
        model_chosen: true,
        context_tokens: 68_000,
        context_window: 200_000,
        cost: Some(0.12),
        last_activity: NOON,
        ..PodInfo::bare(name, state, NOON, "/repo".into(), "/repo".into())
    }
}

/// A child of the Pod `of`.
fn child(of: &str, child: &str, state: State) -> PodInfo {
    PodInfo { parent: Some(name(of)), ..pod(child, state) }
}

/// An approval request for this command, made at noon.
pub fn approval(id: &str, pod: &str, command: &str) -> yoi::protocol::ApprovalRequest {
    yoi::protocol::ApprovalRequest {
        call_id: format!("call-{id}"),
        action: command.into(),
        because: "network access".into(),
        reason: Some("fetch what is missing".into()),
        scope: vec![yoi::scope::Rule::new("/repo", yoi::scope::Permission::Write)],
        since: NOON,
        ..yoi::protocol::ApprovalRequest::new(
            id.into(),
            PodName::parse(pod).expect("a name"),
            "Bash",
            yoi::protocol::Pattern { tool: "Bash".into(), pattern: command.into() },
        )
    }
}

/// 2026-11-01 12:00 UTC.
pub const NOON: u64 = 1_793_534_400_000;

/// A dashboard without a terminal and without a host: tests send keys and events, and read effects and
/// screens.
pub struct Bench {
    pub app: App,
    now: u64,
}

impl Bench {
    /// A screen of 80x24 over these Pods, in `/repo`, two minutes after noon.
    pub fn new(pods: Vec<PodInfo>) -> Self {
        Self::returning(ScreenState::default(), pods)
    }

    /// The same, when the command line named a Pod.
    pub fn naming(name: &str, pods: Vec<PodInfo>) -> Self {
        Self::opened(Some(PodName::parse(name).expect("a name")), ScreenState::default(), pods)
    }

    /// The same, after a screen that kept this state.
    pub fn returning(state: ScreenState, pods: Vec<PodInfo>) -> Self {
        Self::opened(None, state, pods)
    }

    fn opened(named: Option<PodName>, state: ScreenState, pods: Vec<PodInfo>) -> Self {
        let mut bench = Self::before_the_family(named, state);
        bench.host(None, family_of(pods));
        bench
    }

    /// A screen that has not heard of the family yet.
    pub fn before_the_family(named: Option<PodName>, state: ScreenState) -> Self {
        let setup = Setup {
            cwd: "/repo".into(),
            workspace: "/repo".into(),
            themes: vec!["night".into(), "day".into(), "mono".into()],
            models: vec![("anthropic/claude-sonnet-4".into(), "window 200k".into())],
            reconnects: true,
            read_only: None,
            ..Setup::default()
        };
        let theme = crate::theme::Theme::default();
        static KEYMAP: std::sync::LazyLock<Keymap> =
            std::sync::LazyLock::new(crate::screen::keys::default_keymap);
        let mut app = App::new(setup, KEYMAP.clone(), theme, named);
        app.restore_screen(state);
        let mut bench = Self { app, now: NOON + 120_000 };
        bench.size(80, 24);
        bench
    }

    pub fn size(&mut self, width: u16, height: u16) {
        self.msg(Msg::Resize(width, height));
    }

    pub fn msg(&mut self, msg: Msg) -> Vec<Effect> {
        self.update(msg).effects
    }

    pub fn update(&mut self, msg: Msg) -> Update {
        self.app.update(msg, self.now)
    }

    pub fn host(&mut self, pod: Option<&str>, event: Event) -> Vec<Effect> {
        let pod = pod.map(|name| PodName::parse(name).expect("a name"));
        self.msg(Msg::Host(Outgoing { re: None, pod, seq: None, event }))
    }

    /// The Pod is told anew.
    pub fn shown(&mut self, info: PodInfo) -> Vec<Effect> {
        self.host(None, Event::PodChanged { info: Box::new(info) })
    }

    pub fn press(&mut self, key: &str) -> Vec<Effect> {
        self.msg(pressed(key))
    }

    pub fn type_in(&mut self, text: &str) -> Vec<Effect> {
        typed(text).flat_map(|key| self.msg(key)).collect()
    }

    /// Makes a Pod the current one; the draft stays.
    pub fn go_to(&mut self, pod: &str) -> Vec<Effect> {
        self.press("ctrl-x");
        self.type_in(&format!(":open {pod}"));
        self.press("enter")
    }

    /// Time passes without anything happening.
    pub fn wait(&mut self, millis: u64) {
        self.app.frame_drawn(self.now);
        self.now += millis;
        self.msg(Msg::Wake);
    }

    /// It is that time now; nothing tells the app.
    pub fn until(&mut self, now: u64) {
        self.now = now;
    }

    /// Time passes without a frame.
    pub fn pass(&mut self, millis: u64) {
        self.now += millis;
        self.msg(Msg::Wake);
    }

    /// Presses a key on a confirmation that has been on the screen long enough to be answered.
    pub fn confirm(&mut self, key: &str) -> Vec<Effect> {
        self.wait(layer::ARMED_AFTER);
        self.press(key)
    }

    /// What the screen shows, one line a row, without trailing spaces.
    pub fn screen(&mut self) -> String {
        self.app.prepare_frame();
        painted(&self.app)
    }

    /// The cells of a frame.
    pub fn painted(&mut self) -> ratatui::buffer::Buffer {
        self.app.prepare_frame();
        buffer(&self.app)
    }

    pub fn notice(&self) -> &str {
        self.app.notices.shown().map_or("", |notice| notice.text.as_str())
    }

    pub fn draft(&self) -> String {
        self.app.composer.draft().message().text
    }
}

fn buffer(app: &App) -> ratatui::buffer::Buffer {
    let backend = ratatui::backend::TestBackend::new(app.size.0, app.size.1);
    let mut terminal = ratatui::Terminal::new(backend).expect("a terminal");
    terminal.draw(|frame| crate::screen::view::draw(app, frame)).expect("a frame");
    terminal.backend().buffer().clone()
}

/// A frame as text.
fn painted(app: &App) -> String {
    let buffer = buffer(app);
    let rows = buffer.content.chunks(usize::from(buffer.area.width)).map(|row| {
        let mut text = String::new();
        let mut skip = 0;
        for cell in row {
            if skip == 0 {
                text.push_str(cell.symbol());
                skip = crate::rows::width(cell.symbol()).max(1);
            }
            skip -= 1;
        }
        text.trim_end().to_owned()
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// The event about all Pods, of which none waits and none are peers.
pub fn family_of(pods: Vec<PodInfo>) -> Event {
    Event::Family { pods, peers: Vec::new(), approvals: Vec::new(), agents: Vec::new() }
}

/// The calls among the wishes, as whom and what.
pub fn calls(effects: &[Effect]) -> Vec<(Option<&str>, &Method)> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Call { pod, method, .. } => Some((pod.as_ref().map(PodName::as_str), method)),
            _ => None,
        })
        .collect()
}

fn message(text: &str) -> Method {
    Method::Send { input: crate::screen::pane::composer::tests::plain(text), queue: true }
}

/// The end of a run that finished.
pub fn finished() -> yoi::protocol::LastRun {
    yoi::protocol::LastRun {
        entry: yoi::protocol::EntryId::new(),
        result: yoi::protocol::RunResult::Finished.word().into(),
        error: None,
        at: NOON,
    }
}

/// What the calls among `effects` were for.
fn asked(effects: Vec<Effect>) -> Vec<Asked> {
    let asked = effects.into_iter().filter_map(|effect| match effect {
        Effect::Call { asked, .. } => Some(asked),
        _ => None,
    });
    asked.collect()
}

/// Answers the first call among `effects` with this event.
pub fn answer(bench: &mut Bench, effects: Vec<Effect>, reply: Event) -> Vec<Effect> {
    let asked = asked(effects).into_iter().next();
    bench.msg(Msg::Answered(asked.expect("a call"), Ok(reply)))
}

/// Refuses the first call among `effects` for this reason.
fn refuse(bench: &mut Bench, effects: Vec<Effect>, why: &str) -> Vec<Effect> {
    let asked = asked(effects).into_iter().next();
    bench.msg(Msg::Answered(asked.expect("a call"), Err(Refusal::invalid(why))))
}

/// A message into the run.
fn steer(text: &str) -> Method {
    Method::Steer { id: None, input: crate::screen::pane::composer::tests::plain(text) }
}

fn entering(id: &str, text: &str) -> yoi::protocol::Queued {
    yoi::protocol::Queued { enters: true, ..queued(id, text) }
}

fn queued(id: &str, text: &str) -> yoi::protocol::Queued {
    yoi::protocol::Queued {
        id: id.into(),
        input: crate::screen::pane::composer::tests::plain(text),
        enters: false,
    }
}

/// A message that one can go back to.
pub fn rewind_target(turn_index: usize, preview: &str) -> yoi::protocol::RewindTarget {
    let segment_id = yoi::protocol::SegmentId::new();
    yoi::protocol::RewindTarget {
        id: yoi::protocol::RewindTargetId { segment_id, user_input_entry_index: 3 },
        expected_head_entries: 12,
        truncate_entries: 3,
        turn_index,
        timestamp_ms: None,
        preview: preview.into(),
        eligible: true,
        disabled_reason: None,
        warning: None,
        drops: Some(yoi::protocol::Losses { messages: 2, tool_calls: 1, ..Default::default() }),
    }
}

mod agents;
mod clients;
mod questions;
mod confirm;
mod dragging;
mod every_key;
mod family;
mod guards;
mod hostile;
mod keys;
mod layers;
mod live;
mod open_target;
mod outside;
mod long;
mod page;
mod palette;
mod picked;
mod plays;
mod rebound;
mod redraw;
mod returning;
mod selecting;
mod said;
mod sending;
mod split;
mod tree;
mod ways;
mod walks;
