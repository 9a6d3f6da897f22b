//! What a Pod knows while it runs: its open log and the fold of it.

use crate::protocol::entry::domain;
use crate::protocol::{
    AlertSource, Entry, EntryId, Fact, Refusal, RequestConfig, SegmentId, SegmentOrigin, SessionId,
    Trigger,
};
use crate::run::compact::Compaction;
use crate::run::instructions::Sources;
use crate::run::{RunEvent, Setup, damage, prompt};
use crate::sandbox::UserPaths;
use crate::session::{self, Journal, Replay};
use crate::tools::tasks::Tasks;
use crate::trace::OrLog as _;
use std::time::Duration;
use tokio::sync::mpsc;

/// After this time the screen says that a log is being read.
const LONG_FOLD: Duration = Duration::from_millis(300);

/// How many bytes of the newest long outputs are read with a log; a request reads what it carries.
const HELD: u64 = 48 * 1024;

/// What a Pod cost in the segments before this one, in its `yoi.pod` record.
pub(crate) const COST: &str = "cost";

/// An open log and what it says.
pub struct SessionState {
    pub(crate) journal: Journal,
    pub(crate) segment: SegmentId,
    pub(crate) system: std::sync::Arc<str>,
    pub(crate) state: Replay,
    pub(crate) tasks: Tasks,
    /// Set by a compaction until a request was made: another one now would not help.
    pub(crate) compacted: Option<Compaction>,
}

impl SessionState {
    /// Whether the history holds this mailbox row.
    pub fn has_taken(&self, row: &str) -> bool {
        self.state.taken.contains(row)
    }

    /// Ends the log's writer; everything committed is on disk already.
    pub async fn close(self) {
        self.journal.close().await;
    }
}

/// Opens the Pod's segment, or begins its first one.
pub(crate) async fn open(
    setup: &Setup,
    segment: Option<SegmentId>,
    out: &mpsc::Sender<RunEvent>,
) -> Result<SessionState, Refusal> {
    match segment {
        Some(segment) => reopen(setup, segment, out).await,
        None => first(setup, out).await,
    }
}

async fn reopen(
    setup: &Setup,
    segment: SegmentId,
    out: &mpsc::Sender<RunEvent>,
) -> Result<SessionState, Refusal> {
    let (journal, opened) = Journal::open(&setup.files, segment).await.map_err(internal)?;
    let mut state = fold_with_word(setup, segment, out).await?;
    let mut end = opened.end;
    if changed(state.pod.as_ref(), &setup.identity) {
        let entry = Entry::extension(domain::POD, setup.identity.clone());
        end = journal.commit(vec![entry.clone()]).await.map_err(internal)?;
        state.apply(&entry);
    }
    // Everything up to here is durable and may be shown.
    let _ = out.send(RunEvent::Rotated { segment, end }).await;
    // Rows whose id the log holds were delivered; the mark was lost with the last host. Where this
    // fails, it is done when the log is opened next.
    let settled = setup.store.delete_taken_messages(&setup.pod, state.taken.clone()).await;
    settled.or_log("mark mailbox messages as taken");
    let system = state.system_prompt.clone().unwrap_or_default().into();
    let tasks = Tasks::replay(state.history.iter().map(|kept| &kept.item));
    let opened_at = opened.last_ts;
    let state = SessionState { journal, segment, system, tasks, state, compacted: None };
    damage::say(&state.state, opened_at, out).await;
    match &state.state.system_prompt {
        Some(_) => Ok(state),
        None => damage::begin_anew(setup, state, out).await,
    }
}

/// The system prompt as it is made now. What instruction files are not in it is said.
pub(super) async fn new_prompt(
    setup: &Setup,
    out: &mpsc::Sender<RunEvent>,
) -> Result<String, Refusal> {
    let own = setup.clone();
    // The instruction files may lie on a mount that never answers.
    let prompt = setup.path_threads.run(move || system_prompt(&own)).await;
    let (system, diagnostics) = prompt
        .map_err(|why| Refusal::internal(format!("the system prompt could not be made: {why}")))?;
    for diagnostic in diagnostics {
        let event = crate::run::attach::alert(AlertSource::AgentsMd, diagnostic);
        let _ = out.send(RunEvent::Event(event)).await;
    }
    Ok(system)
}

async fn first(setup: &Setup, out: &mpsc::Sender<RunEvent>) -> Result<SessionState, Refusal> {
    let system = new_prompt(setup, out).await?;
    let start =
        Start { system, history: Vec::new(), compacted_from: None, run: None, under_way: None };
    begin(setup, setup.session, start, out).await
}

/// The parts of the system prompt that can change, as they are now.
pub(super) async fn prompt_parts(setup: &Setup) -> Result<Vec<prompt::Part>, Refusal> {
    let own = setup.clone();
    let parts = setup.path_threads.run(move || with_facts(&own, prompt::parts)).await;
    parts.map_err(internal)
}

fn system_prompt(setup: &Setup) -> (String, Vec<String>) {
    with_facts(setup, prompt::system)
}

fn with_facts<T>(setup: &Setup, make: impl Fn(&prompt::Facts<'_>) -> T) -> T {
    let model = setup.models.model.as_ref().map(|(model, _)| model.spec());
    with_sources(setup, |sources| {
        make(&prompt::Facts {
            pod: setup.pod.as_str(),
            sources: *sources,
            instruction: setup.instruction.as_deref(),
            model: model.as_deref(),
        })
    })
}

/// Hands over where instruction files of the Pod are looked for.
pub(super) fn with_sources<T>(setup: &Setup, work: impl FnOnce(&Sources<'_>) -> T) -> T {
    let secrets = UserPaths { env: &setup.tools.env }.secrets();
    work(&Sources {
        person: &setup.instruction_files,
        cwd: &setup.tools.cwd,
        workspace: &setup.workspace,
        reads: &(setup.scope)(),
        secrets: &secrets,
    })
}

/// How a new segment begins.
pub(crate) struct Start {
    pub(crate) system: String,
    pub(crate) history: Vec<crate::protocol::entry::Kept>,
    pub(crate) compacted_from: Option<SegmentOrigin>,
    /// The last run of the history.
    pub(crate) run: Option<EntryId>,
    /// Set when a run goes on in the new segment: a host that dies now cut that run off.
    pub(crate) under_way: Option<Trigger>,
}

/// Creates a segment, makes it the Pod's, and publishes it. The store names the segment before the
/// segment holds an entry of the run, so a crash in between leaves at most an unused segment.
pub(crate) async fn begin(
    setup: &Setup,
    session_id: SessionId,
    start: Start,
    out: &mpsc::Sender<RunEvent>,
) -> Result<SessionState, Refusal> {
    let segment = SegmentId::new();
    let config = RequestConfig {
        max_tokens: setup.models.model.as_ref().map(|(model, _)| model.max_output),
        ..RequestConfig::default()
    };
    let mut entries = vec![
        Entry::new(Fact::SegmentStart {
            session_id,
            system_prompt: Some(start.system.clone()),
            config,
            history: start.history,
            forked_from: None,
            compacted_from: start.compacted_from,
        }),
        Entry::extension(domain::POD, setup.identity.clone()),
    ];
    entries.iter_mut().for_each(|entry| entry.run = start.run);
    let mut written = entries.clone();
    // Clients learned of this run when it began; only the log of the new segment lacks it.
    let under_way = start.under_way.map(|trigger| Entry::new(Fact::Invoke { trigger }));
    written.extend(under_way.map(|invoke| Entry { run: start.run, ..invoke }));
    let created = Journal::create(&setup.files, segment, written).await;
    let (journal, end) = created.map_err(internal)?;
    crate::crash_point!("segment-created");
    setup.store.set_segment(&setup.pod, Some(segment)).await.map_err(internal)?;
    crate::crash_point!("segment-stored");
    let state = fold(setup, segment).await?;
    let _ = out.send(RunEvent::Rotated { segment, end }).await;
    let _ = out.send(RunEvent::Committed { entries, end }).await;
    let tasks = Tasks::replay(state.history.iter().map(|kept| &kept.item));
    let system = start.system.into();
    Ok(SessionState { journal, segment, system, state, tasks, compacted: None })
}

fn internal(error: impl ToString) -> Refusal {
    Refusal::internal(error.to_string())
}

/// Folds a segment; when that takes long, the screen says so.
async fn fold_with_word(
    setup: &Setup,
    segment: SegmentId,
    out: &mpsc::Sender<RunEvent>,
) -> Result<Replay, Refusal> {
    let mut folding = std::pin::pin!(fold(setup, segment));
    tokio::select! {
        folded = &mut folding => return folded,
        () = tokio::time::sleep(LONG_FOLD) => {}
    }
    // An actor that is gone reads no events; its handle aborts the run.
    let _ = out.send(RunEvent::Doing("reading its log".into())).await;
    folding.await
}

pub(crate) async fn fold(setup: &Setup, segment: SegmentId) -> Result<Replay, Refusal> {
    let files = setup.files.clone();
    let begun = tokio::time::Instant::now();
    let folded = tokio::task::spawn_blocking(move || session::fold(&files, segment, HELD)).await;
    let folded = folded.map_err(internal)?.map_err(internal)?;
    tracing::debug!(read = folded.read, ms = begun.elapsed().as_millis(), "folded the log");
    let mut state = folded.keep();
    let earlier = state.pod.as_ref().and_then(|pod| pod.get(COST)?.as_f64());
    if let Some(earlier) = earlier {
        *state.cost.get_or_insert_default() += earlier;
    }
    Ok(state)
}

/// Whether the log's record of the Pod is another one than the store's; what the Pod cost in
/// earlier segments is no part of it.
fn changed(recorded: Option<&serde_json::Value>, identity: &serde_json::Value) -> bool {
    let mut recorded = recorded.cloned().unwrap_or_default();
    let mut identity = identity.clone();
    for value in [&mut recorded, &mut identity] {
        if let Some(fields) = value.as_object_mut() {
            fields.remove(COST);
        }
    }
    recorded != identity
}
