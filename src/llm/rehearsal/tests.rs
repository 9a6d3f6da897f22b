//! Scripts as they are played: the whole way from a file and a request to deltas.

use super::*;
use crate::llm::{Delta, Stop, ToolSpec, Usage};
use crate::protocol::{Content, Item, RequestConfig, Role};
use futures_util::StreamExt;
use proptest::prelude::*;
use std::path::PathBuf;

/// A script file and the conversation so far.
struct Bench {
    /// Removed with the bench.
    _dir: tempfile::TempDir,
    script: PathBuf,
    request: Request,
}

impl Bench {
    fn new(script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.toml");
        std::fs::write(&path, script).unwrap();
        let tool = ToolSpec {
            name: "Read".into(),
            description: String::new(),
            schema: serde_json::Value::Null,
        };
        let request = Request {
            system: "You are alice.\nWorking directory: /w\n".into(),
            input: Vec::new(),
            tools: vec![tool],
            config: RequestConfig::default(),
            conversation: dir.path().display().to_string(),
            tokens: 0,
            blobs: dir.path().into(),
        };
        Self { _dir: dir, script: path, request }
    }

    fn add(&mut self, item: Item) -> &mut Self {
        self.request.input.push(crate::llm::bench::plain(item));
        self
    }

    fn user(&mut self, text: &str) -> &mut Self {
        self.add(Item::message(Role::User, text))
    }

    fn result(&mut self, call_id: &str, content: &str) -> &mut Self {
        self.add(Item::ToolResult {
            call_id: call_id.into(),
            summary: "ok".into(),
            content: Some(content.into()),
            is_error: false,
            images: vec![],
        })
    }

    fn open(&self) -> Result<Deltas, Failure> {
        open(&self.script, &self.request)
    }

    async fn all(&self) -> Vec<Result<Delta, Failure>> {
        self.open().unwrap().collect().await
    }

    /// The deltas of a reply that goes well.
    async fn deltas(&self) -> Vec<Delta> {
        self.all().await.into_iter().map(Result::unwrap).collect()
    }

    /// Plays a reply, puts its items into the conversation, answers its calls with `ok`, and says
    /// it as lines.
    async fn play(&mut self) -> Vec<String> {
        let deltas = self.deltas().await;
        let items: Vec<Item> = deltas
            .into_iter()
            .filter_map(|delta| match delta {
                Delta::Block { item, .. } => Some(item),
                _ => None,
            })
            .collect();
        for item in &items {
            self.add(item.clone());
        }
        for item in &items {
            if let Item::ToolCall { call_id, .. } = item {
                self.result(call_id, "done");
            }
        }
        items.iter().map(line).collect()
    }

    async fn failure(&self) -> Failure {
        match self.open() {
            Err(failure) => failure,
            Ok(deltas) => deltas.collect::<Vec<_>>().await.pop().unwrap().unwrap_err(),
        }
    }
}

fn line(item: &Item) -> String {
    match item {
        Item::Message { content, .. } => content.iter().map(Content::text).collect(),
        Item::ToolCall { name, arguments, .. } => format!("{name} {arguments}"),
        Item::Reasoning { text, .. } => format!("({text})"),
        other => format!("{other:?}"),
    }
}

fn text(deltas: &[Delta]) -> String {
    let texts = deltas.iter().filter_map(|delta| match delta {
        Delta::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

const STORY: &str = r#"
[[when]]
says = "look at *"
[[when.step]]
think = "which of them"
text = "I look at {1}."
call = [
  { name = "Read", args = { file_path = "{cwd}/{1}" } },
  { name = "Bash", args = '{"command": "echo {input}"}' },
]
[[when.step]]
text = "It says {result}."

[[when]]
any = true
text = "Hello, {1}"
"#;

#[tokio::test]
async fn the_message_picks_the_line_and_the_tool_rounds_pick_the_step() {
    let mut bench = Bench::new(STORY);
    bench.user("Look at a.txt");
    assert_eq!(
        bench.play().await,
        [
            "(which of them)",
            "I look at a.txt.",
            r#"Read {"file_path":"/w/a.txt"}"#,
            r#"Bash {"command":"echo Look at a.txt"}"#
        ]
    );
    assert_eq!(bench.play().await, ["It says done."]);
    assert_eq!(bench.user("you").play().await, ["Hello, you"]);
    assert_eq!(bench.user("look at b").play().await[1], "I look at b.");
}

#[test]
fn a_number_that_is_too_large_is_refused_with_its_place() {
    let head = "[[when]]\nany = true\n[[when.step]]\ntext = 'ab'\n";
    let most = i64::MAX;
    for (line, why) in [
        (format!("repeat = {most}"), "the repeated text is larger than 256 MiB"),
        (format!("delay_ms = {most}"), "a time is a year at most"),
        (format!("wait_ms = {most}"), "a time is a year at most"),
        (format!("fault = {{ status = 429, retry_after = {most} }}"), "a time is a year at most"),
    ] {
        let wrong = Script::read(Path::new("s.toml"), &format!("{head}{line}\n")).unwrap_err();
        let said = wrong.to_string();
        assert!(said.starts_with("s.toml:5:") && said.contains(why), "{line}: {said}");
    }
    let wrong = Script::read(Path::new("s.toml"), &format!("delay_ms = {most}\n{head}"));
    assert!(wrong.unwrap_err().to_string().starts_with("s.toml:1:"));
}

#[tokio::test]
async fn the_same_request_gets_the_same_deltas_and_call_ids_never_repeat() {
    let mut bench = Bench::new(STORY);
    bench.user("look at a");
    assert_eq!(bench.deltas().await, bench.deltas().await);
    bench.play().await;
    bench.play().await;
    bench.user("look at a").play().await;
    let mut ids: Vec<_> = bench
        .request
        .input
        .iter()
        .filter_map(|input| match &input.item {
            Item::ToolCall { call_id, .. } => Some(call_id.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ids.len(), 4);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

#[tokio::test]
async fn a_reply_is_streamed_in_order_and_ends_with_usage_and_reason() {
    let mut bench = Bench::new(
        "chunk = 4\n[[when]]\nany = true\n[[when.step]]\nthink = \"hm\"\ntext = \"abcdef\"\n\
         usage = { input = 10, output = 3, cache_read = 8, reasoning = 1 }\nstop = \"max_tokens\"",
    );
    let block = |item| Delta::Block { item, native: None, cut: false };
    let thought = Item::Reasoning {
        text: "hm".into(),
        summary: vec![],
        encrypted_content: None,
        signature: None,
    };
    assert_eq!(
        bench.user("x").deltas().await,
        [
            Delta::ThinkingStart,
            Delta::Thinking("hm".into()),
            block(thought),
            Delta::Text("abcd".into()),
            Delta::Text("ef".into()),
            block(Item::message(Role::Assistant, "abcdef")),
            Delta::Usage(Usage {
                input: Some(10),
                output: Some(3),
                cache_read: Some(8),
                cache_write: None,
                reasoning: Some(1)
            }),
            Delta::End(Stop::MaxTokens),
        ]
    );
}

#[tokio::test]
async fn a_cut_stream_is_gone_on_with_where_it_broke() {
    let mut bench = Bench::new(
        "[[when]]\nany = true\n[[when.step]]\ntext = \"one two three\"\nfault = { cut = 4, times = 2 }",
    );
    bench.user("go");
    let mut whole = String::new();
    for _ in 0..2 {
        let mut all = bench.all().await;
        assert!(matches!(all.pop(), Some(Err(Failure::Cut(_)))));
        let part = text(&all.into_iter().map(Result::unwrap).collect::<Vec<_>>());
        assert_eq!(part.chars().count(), 4);
        whole.push_str(&part);
        bench.add(Item::message(Role::Assistant, part));
        bench.add(Item::message(Role::System, "[The connection broke. Go on.]"));
    }
    whole.push_str(&text(&bench.deltas().await));
    assert_eq!(whole, "one two three");
}

#[tokio::test]
async fn a_status_comes_as_often_as_it_should_and_then_the_answer() {
    let mut bench = Bench::new(
        "[[when]]\nany = true\n[[when.step]]\ntext = \"ok\"\n\
         fault = { status = 429, retry_after = 2, times = 2 }",
    );
    bench.user("go");
    for _ in 0..2 {
        let Failure::Status { status, retry_after, .. } = bench.failure().await else { panic!() };
        assert_eq!((status, retry_after), (429, Some(Duration::from_secs(2))));
    }
    assert_eq!(text(&bench.deltas().await), "ok");
}

#[tokio::test(start_paused = true)]
async fn a_hanging_stream_says_what_it_has_and_then_nothing() {
    let mut bench =
        Bench::new("[[when]]\nany = true\n[[when.step]]\ntext = \"abc\"\nfault = { hang = 2 }");
    let mut deltas = bench.user("go").open().unwrap();
    assert_eq!(deltas.next().await, Some(Ok(Delta::Text("ab".into()))));
    let silence = tokio::time::timeout(Duration::from_secs(3600), deltas.next()).await;
    assert!(silence.is_err());
}

#[tokio::test]
async fn an_error_inside_the_stream_differs_from_a_refusal() {
    let script = |fault: &str| format!("[[when]]\nany = true\n[[when.step]]\nfault = {fault}");
    let mut error = Bench::new(&script("{ error = \"overloaded\", retryable = true }"));
    error.user("x");
    let Failure::Provider { message, retryable: true, .. } = error.failure().await else {
        panic!()
    };
    assert_eq!(message, "overloaded");
    let mut refusal = Bench::new(&script("{ refuse = \"no\" }"));
    let deltas = refusal.user("x").deltas().await;
    assert_eq!(deltas, [Delta::End(Stop::Refusal("no".into()))]);
}

#[tokio::test]
async fn a_note_is_answered_by_its_own_line_and_never_resets_another() {
    let mut bench = Bench::new(
        "[[when]]\nnote = \"*from bob*\"\ntext = \"Heard bob.\"\n[[when]]\nany = true\ntext = \"Hi.\"",
    );
    bench.user("hello").play().await;
    bench.add(Item::message(Role::System, "[Notification]\nfrom bob: done"));
    assert_eq!(bench.play().await, ["Heard bob."]);
    bench.add(Item::message(Role::System, "[Notification]\nfrom eve: done"));
    assert_eq!(bench.play().await, ["The script has nothing to add."]);
}

#[tokio::test]
async fn a_message_outside_the_script_is_answered_with_a_clear_sentence() {
    let mut bench = Bench::new("[[when]]\nsays = \"ping\"\ntext = \"pong\"");
    let reply = bench.user("else").play().await;
    assert!(reply[0].contains("s.toml has no line for this. It knows: \"ping\""), "{reply:?}");
    let mut short = Bench::new("[[when]]\nany = true\n[[when.step]]\ncall = [{ name = \"Read\" }]");
    assert_eq!(short.user("x").play().await, ["Read {}"]);
    assert!(short.play().await[0].contains("The script ends here"));
}

#[tokio::test]
async fn a_handover_is_given_without_the_script_having_a_line_for_it() {
    let mut bench = Bench::new(STORY);
    bench.user(include_str!("../../../prompts/compaction.md"));
    let handover = bench.play().await;
    assert!(handover[0].starts_with("This conversation was a rehearsal"), "{handover:?}");
}

#[test]
fn a_script_that_does_not_fit_is_named_by_file_line_and_column() {
    for (script, words) in [
        ("[[when]]\nsays = \"x\"\nanswer = \"y\"", "s.toml:3:1: unknown field `answer`"),
        ("[[when]]\ntext = \"y\"", "s.toml:1:1: a [[when]] has exactly one of says"),
        ("[[when]]\nany = true", "s.toml:1:1: a [[when]] has either text"),
        (
            "[[when]]\nany = true\n[[when.step]]\ncall = [{ name = \"R\", args = \"{\" }]",
            "s.toml:4:9: the args of a call",
        ),
        (
            "[[when]]\nany = true\n[[when.step]]\nfault = { cut = 1, hang = 2 }",
            "s.toml:4:9: a fault is exactly one",
        ),
        ("[[when]\n", "s.toml:1:"),
    ] {
        let mut bench = Bench::new(script);
        let Err(Failure::Unusable(sentence)) = bench.user("x").open() else { panic!("{script}") };
        assert!(sentence.contains(words), "{sentence}");
    }
    let missing = open(Path::new("/no/such.toml"), &Bench::new("").request);
    assert!(matches!(missing, Err(Failure::Unusable(words)) if words.contains("/no/such.toml")));
}

#[tokio::test]
async fn a_place_that_cannot_be_filled_is_an_error_and_not_a_wrong_path() {
    let mut bench = Bench::new(STORY);
    bench.request.system = "nothing".into();
    let failure = bench.user("look at a").failure().await;
    assert!(failure.to_string().contains("{cwd} cannot be filled"), "{failure}");
}

#[test]
fn the_system_prompt_says_where_the_pod_works_in_the_line_a_script_looks_for() {
    let prompt = include_str!("../../../prompts/system.md");
    assert!(prompt.lines().any(|line| line == "Working directory: {cwd}"));
}

#[tokio::test(start_paused = true)]
async fn the_tour_answers_each_of_its_messages_to_the_end() {
    let mut bench = Bench { script: TOUR.into(), ..Bench::new("") };
    for message in TOUR_LINES {
        bench.user(message);
        for round in 0.. {
            assert!(round < 20, "{message}");
            let end = bench.deltas().await.pop();
            let said = bench.play().await.join("\n");
            assert!(!said.contains("I only know my lines"), "{message}: {said}");
            assert!(!said.contains("The script ends here"), "{message}: {said}");
            if end != Some(Delta::End(Stop::ToolUse)) {
                assert_eq!(end, Some(Delta::End(Stop::EndTurn)));
                break;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_deltas_of_a_text_are_the_text(text in "\\PC{0,80}", chunk in 0usize..9) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let quoted = toml::Value::String(text.clone()).to_string();
        let mut bench = Bench::new(&format!("chunk = {chunk}\n[[when]]\nany = true\ntext = {quoted}"));
        bench.request.system = "Working directory: {cwd}".into();
        bench.user("{input}");
        let deltas = runtime.block_on(bench.deltas());
        let said = super::tests::text(&deltas);
        let fill = pattern::Fill {
            input: "{input}".into(),
            captures: vec!["{input}".into()],
            cwd: Some("{cwd}".into()),
            result: String::new(),
        };
        let filled = fill.text(&text).unwrap();
        prop_assert_eq!(&said, &filled);
        let block = deltas.iter().find_map(|delta| match delta {
            Delta::Block { item, .. } => item.text(),
            _ => None,
        });
        prop_assert_eq!(block.unwrap_or_default(), filled);
    }

    #[test]
    fn a_text_cut_anywhere_is_whole_in_the_end(text in "\\PC{1,40}", after in 0usize..50) {
        prop_assume!(!text.contains('{') && !text.trim().is_empty());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let quoted = toml::Value::String(text.clone()).to_string();
        let mut bench = Bench::new(&format!(
            "[[when]]\nany = true\n[[when.step]]\ntext = {quoted}\nfault = {{ cut = {after} }}"
        ));
        bench.user("x");
        let mut first = runtime.block_on(bench.all());
        prop_assert!(matches!(first.pop(), Some(Err(Failure::Cut(_)))));
        let part = super::tests::text(&first.into_iter().map(Result::unwrap).collect::<Vec<_>>());
        if part.trim() == text.trim() {
            return Ok(());
        }
        if !part.is_empty() {
            bench.add(Item::message(Role::Assistant, part.clone()));
        }
        let rest = super::tests::text(&runtime.block_on(bench.deltas()));
        prop_assert_eq!(part + &rest, text);
    }
}
