//! Each kind of file through a Pod whose history is rewound after a change, and whose rewind is taken back: no jump
//! touches the file, and the Pod knows of it what its history says.

use crate::bench::Bench;
use crate::kinds::{Kind, bytes, kinds, others, says, standing, unmount};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use yoi::client::{Client, Events};
use yoi::config::dirs::{Dirs, Env};
use yoi::host::{Host, IdleExit, Options};
use yoi::protocol::method::NewPod;
use yoi::protocol::{Event, Method, PodName, Verdict};
use yoi::tools::Output;

struct Family {
    host: Host,
    client: Client,
    events: Events,
    home: TempDir,
}

impl Family {
    async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().display().to_string();
        let env = Env::from([("YOI_HOME".to_owned(), path.clone()), ("HOME".to_owned(), path)]);
        let options = Options {
            dirs: Dirs::find(&env, None).unwrap(),
            env,
            helper: env!("CARGO_BIN_EXE_yoi").into(),
            old_nofile: None,
            idle_exit: IdleExit::Never,
        };
        let host = Host::start(options).await.unwrap();
        let (client, events) = host.client().await.unwrap();
        client.call(None, Method::Watch).await.unwrap();
        Self { host, client, events, home }
    }

    /// A Pod in a workspace that makes these calls, each for the message of its name.
    async fn new_pod(&self, cwd: PathBuf, calls: &[(&str, Value)]) -> PodName {
        let when = |(says, call): &(&str, Value)| json!({"says": says, "step": [{"call": [call]}, {"text": "Done."}]});
        let script = json!({"when": calls.iter().map(when).collect::<Vec<_>>()});
        let file = self.home.path().join(format!("{}.toml", uuid::Uuid::now_v7()));
        fs::write(&file, toml::to_string(&script).unwrap()).unwrap();
        let model = Some(format!("rehearsal:{}", file.display()));
        let new = Method::New(NewPod { cwd, model, ..NewPod::default() });
        match self.client.call(None, new).await.unwrap() {
            Event::Created { info } => info.name,
            other => panic!("{other:?}"),
        }
    }

    /// The result of the call that the Pod makes for this message.
    async fn result(&mut self, pod: &PodName, message: &str) -> Output {
        self.client.call(Some(pod), Method::say(message)).await.unwrap();
        let mut found = None;
        loop {
            match self.events.recv().await.expect("the host is there").event {
                Event::ToolResult { summary, output: content, is_error, .. } => {
                    found = Some(Output { summary, content, is_error, ..Output::default() });
                }
                // Nobody grants a path out of the scope.
                Event::ApprovalRequested { approval } => {
                    let verdict = Verdict::Deny { reason: "out of the scope".into() };
                    let deny = Method::Decide { approval: approval.id.clone(), verdict };
                    self.client.call(Some(&approval.pod), deny).await.unwrap();
                }
                Event::RunEnd { .. } => return found.expect("a call for each message"),
                _ => {}
            }
        }
    }

    /// Goes back to before the newest message.
    async fn rewind(&self, pod: &PodName) {
        let listed = self.client.call(Some(pod), Method::ListRewindTargets).await.unwrap();
        let Event::RewindTargets { head_entries, targets, .. } = listed else { panic!() };
        let target = targets.first().unwrap().id;
        let back = Method::Rewind { target, expected_head_entries: head_entries };
        self.client.call(Some(pod), back).await.unwrap();
    }

    async fn undo(&self, pod: &PodName) {
        let listed = self.client.call(Some(pod), Method::ListRewindTargets).await.unwrap();
        let Event::RewindTargets { head_entries, undo, .. } = listed else { panic!() };
        let entry = undo.unwrap().entry;
        let back = Method::UndoRewind { entry, expected_head_entries: head_entries };
        self.client.call(Some(pod), back).await.unwrap();
    }

    /// Whether the former content of a file is kept beside a log.
    fn keeps(&self, content: &[u8]) -> bool {
        let sessions = fs::read_dir(self.home.path().join("data/sessions")).unwrap().flatten();
        let kept = sessions.flat_map(|session| fs::read_dir(session.path().join("blobs")));
        kept.flatten().flatten().any(|blob| fs::read(blob.path()).unwrap() == content)
    }
}

fn edit(path: &Path, old: &str, new: &str) -> Value {
    let args = json!({"file_path": path, "old_string": old, "new_string": new});
    json!({"name": "Edit", "args": args})
}

fn write(path: &Path, content: &str) -> Value {
    json!({"name": "Write", "args": {"file_path": path, "content": content}})
}

/// What is wrong with a change of a file of this kind that is rewound.
async fn wrong(family: &mut Family, kind: &Kind) -> Option<String> {
    let bench = Bench::new();
    let path = bench.path("ws").join(kind.file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    (kind.make)(&bench, &path);
    // Write is for what Edit finds nothing in.
    let is_edit = kind.edited.is_ok() || kind.written.is_err();
    let (change, back, expected) = match is_edit {
        true => (edit(&path, "one", "two"), edit(&path, "two", "one"), &kind.edited),
        false => (write(&path, "two\nlast\n"), write(&path, "one\nend\n"), &kind.written),
    };
    let read = json!({"name": "Read", "args": {"file_path": path}});
    let calls = [("read", read), ("change", change), ("back", back)];
    let pod = family.new_pod(bench.path("ws"), &calls).await;
    let mut faults = Vec::new();
    let mut must = |holds: bool, what: String| {
        if !holds {
            faults.push(what.chars().take(500).collect::<String>());
        }
    };

    let read = family.result(&pod, "read").await;
    must(says(&read, kind.read), format!("read: {read:?}"));
    (kind.meanwhile)(&path);
    let former = bytes(&path);
    let first = family.result(&pod, "change").await;
    // A Pod may name another reason than the tool alone: its host decides first what may be asked of a person.
    let is_refused = expected.is_err();
    must(first.is_error == is_refused, format!("change: {first:?}"));
    let (content, stood, beside) = (bytes(&path), standing(&path), others(&path));
    let wanted = expected.as_ref().ok().or(former.as_ref());
    must(content.as_ref() == wanted, "the content after the change".into());

    family.rewind(&pod).await;
    let same = || bytes(&path) == content && standing(&path) == stood && others(&path) == beside;
    must(same(), "the rewind touched the file".into());
    let again = family.result(&pod, "change").await;
    let stale = if is_refused { "" } else { "file was modified since it was read" };
    must(says(&again, Err(stale)), format!("the same change after the rewind: {again:?}"));
    must(same(), "a refused change touched the file".into());

    family.undo(&pod).await;
    must(same(), "the undo touched the file".into());
    if let (false, Some(former)) = (is_refused, former) {
        must(family.keeps(&former), "the former content is lost".into());
        let back = family.result(&pod, "back").await;
        must(says(&back, Ok("")), format!("a change after the undo, without Read: {back:?}"));
        must(!is_edit || bytes(&path) == Some(former), "the content that was put back".into());
        must(standing(&path) == stood && others(&path) == beside, "what stands at last".into());
    }
    family.client.call(Some(&pod), Method::Stop).await.unwrap();
    unmount(&path);
    let all = || format!("{}:\n  {}", kind.name, faults.join("\n  "));
    (!faults.is_empty()).then(all)
}

#[tokio::test]
async fn each_kind_of_file_stays_as_it_is_when_its_change_is_rewound_and_comes_back() {
    let mut family = Family::new().await;
    let mut found = Vec::new();
    for kind in kinds() {
        found.extend(wrong(&mut family, &kind).await);
    }
    family.host.end().await;
    assert!(found.is_empty(), "{}", found.join("\n"));
}
