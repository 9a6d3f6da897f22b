//! The dashboard over a real host in this process, with a script as the model.

use super::*;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a test waits for the screen to show something.
const PATIENCE: Duration = Duration::from_secs(20);

/// How the directories of these tests are called.
const PREFIX: &str = "yoi-live-";

const SCRIPT: &str = r#"
chunk = 8
otherwise = "I only know my lines."

[[when]]
says = "change the file*"

[[when.step]]
think = "The file wants another word."
text = "I'll write it."
call = [{ name = "Write", args = { file_path = "{cwd}/note.txt", content = "new words\n" } }]

[[when.step]]
text = "Done: `note.txt` says **new words**."

[[when]]
says = "take your time*"

[[when.step]]
text = "slowly now, one word after the other, "
repeat = 200
delay_ms = 300
"#;

struct Live {
    app: App,
    host: Option<Host>,
    client: Client,
    events: Events,
    sender: mpsc::Sender<Msg>,
    answers: mpsc::Receiver<Msg>,
    dir: tempfile::TempDir,
}

impl Live {
    async fn start(columns: u16, rows: u16) -> Self {
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in("/tmp").expect("a directory");
        let repo = dir.path().join("repo");
        std::fs::create_dir_all(repo.join(".git")).expect("a workspace");
        std::fs::write(dir.path().join("script.toml"), SCRIPT).expect("a script");
        let home = dir.path().join("home");
        let env: BTreeMap<String, String> = [
            ("YOI_HOME".to_owned(), home.display().to_string()),
            ("HOME".to_owned(), home.display().to_string()),
        ]
        .into();
        let (host, client, events) = host(&env).await;
        let setup = Setup {
            cwd: repo.clone(),
            workspace: repo,
            env,
            themes: vec!["night".into()],
            reconnects: true,
            read_only: None,
            ..Setup::default()
        };
        let theme = crate::theme::Theme::default();
        let mut app = App::new(setup, crate::screen::keys::default_keymap(), theme, None);
        app.size = (columns, rows);
        app.model = Some(format!("rehearsal:{}", dir.path().join("script.toml").display()));
        let (sender, answers) = mpsc::channel(ANSWERS);
        let mut live = Self { app, host: Some(host), client, events, sender, answers, dir };
        live.call(None, Method::Watch, Asked::Watch);
        live.until("what to work on").await;
        live
    }

    fn call(&self, pod: Option<PodName>, method: Method, asked: Asked) {
        let message = |reply| Msg::Answered(asked, reply);
        crate::screen::run::call::begin(&self.client, (pod, method), &self.sender, message);
    }

    fn msg(&mut self, msg: Msg) {
        let update = self.app.update(msg, yoi::protocol::now_ms());
        self.perform(update.effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if let Effect::Call { pod, method, asked } = effect {
                self.call(pod, method, asked);
            }
        }
    }

    fn press(&mut self, key: &str) {
        self.msg(pressed(key));
    }

    fn type_in(&mut self, text: &str) {
        typed(text).for_each(|key| self.msg(key));
    }

    /// What the screen shows, times as zeros.
    fn screen(&mut self) -> String {
        let effects = self.app.prepare_frame();
        self.perform(effects);
        steady(&painted(&self.app))
    }

    /// Lets things happen until the screen shows `text`.
    async fn until(&mut self, text: &str) -> String {
        self.until_it(text, |_, screen| screen.contains(text)).await
    }

    /// Lets things happen until this is written in the composer.
    async fn until_draft(&mut self, text: &str) {
        self.until_it(text, |app, _| app.composer.draft().message().text == text).await;
    }

    async fn until_it(&mut self, text: &str, is_so: impl Fn(&App, &str) -> bool) -> String {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_so(&self.app, &screen) {
                return screen;
            }
            let msg = tokio::select! {
                Some(msg) = self.answers.recv() => msg,
                event = self.events.recv() => event.map_or(Msg::HostEnded, Msg::Host),
                () = tokio::time::sleep_until(deadline) => panic!("no {text:?} on\n{screen}"),
            };
            self.msg(msg);
        }
    }

    async fn end(mut self) {
        if let Some(host) = self.host.take() {
            host.end().await;
        }
    }
}

/// Times, durations and the names of temporary directories differ from run to run.
fn steady(screen: &str) -> String {
    let chars: Vec<char> = screen.chars().collect();
    let digit = |i: usize| chars.get(i).is_some_and(char::is_ascii_digit);
    let clock = |i: usize| {
        chars.get(i) == Some(&':') && i > 0 && digit(i - 1) && digit(i + 1) && digit(i + 2)
    };
    let point = |i: usize| chars.get(i) == Some(&'.') && i > 0 && digit(i - 1) && digit(i + 1);
    let near = |i: usize, is: &dyn Fn(usize) -> bool| (i.saturating_sub(2)..=i + 2).any(is);
    let masked = |i: usize| digit(i) && (near(i, &clock) || near(i, &point));
    let text: String = (0..chars.len()).map(|i| if masked(i) { '0' } else { chars[i] }).collect();
    let mut parts = text.split(PREFIX);
    let mut steady = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let named = part.chars().take_while(char::is_ascii_alphanumeric).count();
        steady += PREFIX;
        steady.extend(std::iter::repeat_n('x', named));
        steady += &part[named..];
    }
    steady
}

#[tokio::test]
async fn a_message_makes_a_pod_that_really_changes_a_file() {
    let mut live = Live::start(100, 30).await;
    live.type_in("change the file, please");
    live.press("enter");
    live.until("says new words").await;
    let screen = live.until("○ repo").await;
    let file = live.dir.path().join("repo/note.txt");
    assert_eq!(std::fs::read_to_string(file).expect("the file"), "new words\n");
    // What can be confined is this machine's; everything else is not.
    let rows = screen.lines().enumerate().filter(|(row, _)| *row != 1);
    let screen: Vec<&str> = rows.map(|(_, line)| line).collect();
    insta::assert_snapshot!(screen.join("\n"));
    live.end().await;
}

#[tokio::test]
async fn a_run_is_paused_by_escape_and_queued_messages_are_shown() {
    let mut live = Live::start(100, 30).await;
    live.type_in("take your time");
    live.press("enter");
    live.until("slowly").await;
    live.type_in("and then this");
    live.press("tab");
    live.until("you    and then this ").await;
    live.type_in("look at this");
    live.press("enter");
    live.until("you    look at this ").await;
    live.type_in("and at that");
    live.press("enter");
    live.until("you    and at that ").await;
    live.press("esc");
    live.until("‖ repo").await;
    live.until_draft("look at this\nand at that").await;
    let only_queued = |_: &App, screen: &str| {
        screen.contains("you    and then this ") && !screen.contains("enters at the next tool")
    };
    live.until_it("what steered only as the draft", only_queued).await;
    live.end().await;
}

#[tokio::test]
async fn without_a_model_the_answer_says_what_is_missing() {
    let mut live = Live::start(100, 40).await;
    live.app.model = None;
    live.type_in("hello");
    live.press("enter");
    live.until("No model is connected").await;
    live.end().await;
}

#[tokio::test]
async fn a_stopped_pod_comes_back_with_a_message_and_its_transcript() {
    let mut live = Live::start(100, 30).await;
    live.type_in("hello there");
    live.press("enter");
    live.until("I only know my lines").await;
    live.type_in(":stop");
    live.press("enter");
    live.until("◌ repo").await;
    live.type_in("change the file");
    live.press("enter");
    let screen = live.until("says new words").await;
    assert!(screen.contains("hello there"), "{screen}");
    live.end().await;
}

#[tokio::test]
async fn two_screens_over_one_host_show_the_same() {
    let mut one = Live::start(100, 30).await;
    let (client, events) = one.host.as_ref().expect("a host").client().await.expect("a client");
    let theme = crate::theme::Theme::default();
    let mut app =
        App::new(one.app.setup.clone(), crate::screen::keys::default_keymap(), theme, None);
    app.size = (100, 30);
    let (sender, answers) = mpsc::channel(ANSWERS);
    let dir = tempfile::tempdir().expect("a directory");
    let mut two = Live { app, host: None, client, events, sender, answers, dir };
    two.call(None, Method::Watch, Asked::Watch);
    two.until("what to work on").await;
    one.type_in("change the file");
    one.press("enter");
    one.until("says new words").await;
    one.until("○ repo").await;
    two.until("○ repo").await;
    two.type_in(":open repo");
    two.press("enter");
    let seen = two.until("says new words").await;
    assert!(seen.contains("change the file"), "{seen}");
    one.end().await;
}
