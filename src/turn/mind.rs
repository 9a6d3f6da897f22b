//! What a Pod knows while it runs: its open log and the fold of it.

use crate::protocol::entry::domain;
use crate::protocol::{
    AlertSource, Entry, Fact, Refusal, RequestConfig, SegmentId, SegmentOrigin, SessionId, now_ms,
};
use crate::session::{Journal, Replay, replay};
use crate::tools::tasks::Tasks;
use crate::turn::{Out, Setup, prompt};
use serde_json::json;
use tokio::sync::mpsc;

/// An open log and what it says.
pub struct Mind {
    pub(crate) journal: Journal,
    pub(crate) segment: SegmentId,
    pub(crate) system: String,
    pub(crate) state: Replay,
    pub(crate) tasks: Tasks,
    /// Set by a compaction until a request was made: another one now would not help.
    pub(crate) compacted: bool,
}

impl Mind {
    /// Ends the log's writer; everything committed is on disk already.
    pub async fn close(self) {
        self.journal.close().await;
    }
}

/// Opens the Pod's segment, or begins its first one.
pub(crate) async fn open(
    setup: &Setup,
    segment: Option<SegmentId>,
    out: &mpsc::Sender<Out>,
) -> Result<Mind, Refusal> {
    match segment {
        Some(segment) => reopen(setup, segment, out).await,
        None => first(setup, out).await,
    }
}

async fn reopen(
    setup: &Setup,
    segment: SegmentId,
    out: &mpsc::Sender<Out>,
) -> Result<Mind, Refusal> {
    let (journal, opened) = Journal::open(&setup.files, segment).await.map_err(internal)?;
    let state = fold(setup, segment).await?;
    // Everything up to here is durable and may be shown.
    let _ = out.send(Out::Rotated { segment, end: opened.end }).await;
    let taken: Vec<String> = state.taken.iter().cloned().collect();
    // Rows whose id the log holds were delivered; the mark was lost with the last host.
    let _ = setup.store.take_mail(&setup.pod, taken).await;
    let items: Vec<_> = state.history.iter().map(|kept| kept.item.clone()).collect();
    let system = state.system_prompt.clone().unwrap_or_default();
    Ok(Mind { journal, segment, system, tasks: Tasks::replay(&items), state, compacted: false })
}

async fn first(setup: &Setup, out: &mpsc::Sender<Out>) -> Result<Mind, Refusal> {
    let facts = prompt::Facts {
        pod: setup.pod.as_str(),
        cwd: &setup.tools.cwd,
        workspace: &setup.workspace,
        scope: setup.tools.scope.summary(),
    };
    let (system, complaints) = prompt::system(&facts);
    for complaint in complaints {
        let event = crate::turn::attach::alert(AlertSource::AgentsMd, complaint);
        let _ = out.send(Out::Event(event)).await;
    }
    let start = Start { system, history: Vec::new(), compacted_from: None };
    begin(setup, setup.session, start, out).await
}

/// How a new segment begins.
pub(crate) struct Start {
    pub(crate) system: String,
    pub(crate) history: Vec<crate::protocol::entry::Kept>,
    pub(crate) compacted_from: Option<SegmentOrigin>,
}

/// Creates a segment, makes it the Pod's, and tells. The store is told before anything is said in
/// it, so a crash in between leaves at most an empty segment that nobody heard of.
pub(crate) async fn begin(
    setup: &Setup,
    session_id: SessionId,
    start: Start,
    out: &mpsc::Sender<Out>,
) -> Result<Mind, Refusal> {
    let segment = SegmentId::new();
    let config = RequestConfig {
        max_tokens: setup.model.as_ref().map(|(model, _)| model.max_output),
        ..RequestConfig::default()
    };
    let entries = vec![
        Entry::new(Fact::SegmentStart {
            session_id,
            system_prompt: Some(start.system.clone()),
            config,
            history: start.history,
            forked_from: None,
            compacted_from: start.compacted_from,
        }),
        Entry::extension(domain::POD, identity(setup)),
    ];
    let created = Journal::create(&setup.files, segment, entries.clone()).await;
    let (journal, end) = created.map_err(internal)?;
    setup.store.set_segment(&setup.pod, Some(segment)).await.map_err(internal)?;
    let state = fold(setup, segment).await?;
    let _ = out.send(Out::Rotated { segment, end }).await;
    let _ = out.send(Out::Committed { entries, end }).await;
    let items: Vec<_> = state.history.iter().map(|kept| kept.item.clone()).collect();
    let tasks = Tasks::replay(&items);
    Ok(Mind { journal, segment, system: start.system, state, tasks, compacted: false })
}

fn internal(error: impl ToString) -> Refusal {
    Refusal::internal(error.to_string())
}

async fn fold(setup: &Setup, segment: SegmentId) -> Result<Replay, Refusal> {
    let path = setup.files.segment(segment);
    let state = tokio::task::spawn_blocking(move || replay(&path, None)).await;
    state.map_err(internal)?.map_err(internal)
}

fn identity(setup: &Setup) -> serde_json::Value {
    let mut payload = setup.identity.clone();
    payload["at"] = json!(now_ms());
    payload
}
