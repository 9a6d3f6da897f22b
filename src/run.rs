//! One run: model, tools, model, until the model is done. A run owns the Pod's `SessionState` while it
//! lasts; it commits to the log first and tells the Pod's actor second, through `RunEvent`.

use crate::config::settings::{Watch, WhenBusy};
use crate::llm::{Provider, retry};
use crate::protocol::entry::domain;
use crate::protocol::{
    Circling, Effort, Entry, EntryId, ErrorCode, Event, Fact, Item, LimitMet, Refusal, Role,
    RunOutcome, RunResult, Segment, SegmentId, SessionId, SystemItem, Trigger, TurnResult,
};
use crate::run::work::WorkSoFar;
use crate::session::{Files, LogPosition, Replay, load_output};
use crate::store::{MailboxMessage, Store};
use crate::{config::models::Model, protocol::PodName, tools};
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc, oneshot, watch};

/// Approval requests of calls.
pub mod approval;
/// `@file` references of inputs.
mod attach;
/// The tool calls of one reply.
mod batch;
/// Calls that fail or are denied again and again.
mod circles;
/// The commands that run now.
mod commands;
/// Compaction of the history.
mod compact;
/// The part of the history that a model request carries.
pub mod context;
/// The details of a call for an approval request.
mod details;
/// What changed since the system prompt was made.
mod environment;
/// Files that tell agents how to work.
mod instructions;
/// Interrupting a run.
mod interrupt;
/// Mailbox messages on their way into the history.
mod mailbox;
/// The models of a run.
mod models;
/// Messages as rows of the mailbox hold them.
mod message;
/// Handling and reporting of a damaged log.
mod damage;
/// The open log of a Pod and its state.
mod session_state;
/// The decision of policy on each call.
pub mod policy;
/// The system prompt and the notes of the runtime.
mod prompt;
/// Outputs that leave the context.
mod pruning;
/// An element of the history that a provider refuses.
mod refused;
/// The text of a broken reply that the next one begins with.
mod repeated;
/// The end of a reply and what follows it.
mod reply_end;
/// The limits on the size of a reply.
mod reply_size;
/// Which Pods screens show.
mod screens;
/// Questions of MCP servers, asked while their calls run.
mod server_question;
/// The MCP servers of a Pod.
mod servers;
/// One model request and its stream.
mod stream;
/// The turn of the Pod to write.
mod turn;
/// Token usage and cost of model requests.
mod usage;
/// What a run does, counted.
mod work;
#[cfg(test)]
mod tests;

pub use approval::ApprovalDecided;
pub(crate) use attach::alert;
pub(crate) use batch::label;
pub use commands::Commands;
pub(crate) use environment::instruction_files;
pub use instructions::OF_PERSON;
pub(crate) use instructions::Sources;
pub use interrupt::Interrupt;
pub(crate) use interrupt::interrupted;
pub use message::{AgentMessage, Input, Notification, sender};
pub use models::Models;
pub use policy::Policy;
pub(crate) use prompt::WORK;
pub use prompt::{no_model, ways_to_connect_without_a_screen};
pub(crate) use refused::TAKEN_BACK;
pub use reply_size::ReplyLimits;
pub use screens::{Screens, Viewers};
pub(crate) use servers::note_decision;
pub use servers::{START_RULE, Servers, TOOLS_RULE, is_about_a_server};
pub use session_state::SessionState;
pub(crate) use stream::ASKED;
pub use turn::{Begun, Turn};

/// The inputs of a run that do not change.
#[derive(Clone)]
pub struct Setup {
    pub pod: PodName,
    pub session: SessionId,
    pub files: Files,
    pub store: Store,
    pub models: Models,
    /// The model that summarises the history, where the settings name one.
    pub summary_model: Option<(Model, Provider)>,
    /// How much the model is to think; a change counts from the next request on.
    pub effort: watch::Receiver<Option<Effort>>,
    /// The answer to a message while there is no model.
    pub without_model: String,
    pub tools: tools::Context,
    /// The Pod's threads for paths that messages and calls name.
    pub path_threads: tools::PathThreads,
    /// The tools that are there now; they may come and go while the run lasts.
    pub tool_set: watch::Receiver<tools::ToolSet>,
    /// The MCP servers of the Pod.
    pub servers: Servers,
    pub limits: Limits,
    /// The retry policy of model requests.
    pub retries: retry::Policy,
    /// The screens that show the Pod: while there is one, a run waits for its provider without end.
    pub viewers: Viewers,
    /// Which calls pass, are denied, or wait for an approval.
    pub permissions: Policy,
    pub workspace: PathBuf,
    /// The payload of the `yoi.pod` entry that every segment begins with.
    pub identity: serde_json::Value,
    /// Stands in the place of the general instruction in the system prompt.
    pub instruction: Option<String>,
    /// Files of the person with instructions for all work.
    pub instruction_files: Vec<PathBuf>,
    /// The Pod's current scope: leases change it during a run.
    pub scope: ScopeNow,
    /// The registry of running commands.
    pub commands: Commands,
    /// The paths that other live Pods may write now.
    pub others: OthersNow,
    /// What the run does while another Pod writes where it wants to.
    pub when_busy: WhenBusy,
    /// From when on a run is shown as going in circles.
    pub watch: Watch,
}

/// Looks up a scope.
pub type ScopeNow = Arc<dyn Fn() -> crate::scope::Scope + Send + Sync>;
/// Looks up paths.
pub type OthersNow = Arc<dyn Fn() -> Vec<std::path::PathBuf> + Send + Sync>;

/// The numbers that bound a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Model requests in one run.
    pub max_turns: u32,
    /// The part of the context window at which the history is compacted.
    pub compact_at: f64,
    /// The number of tokens of the newest history that a compaction keeps verbatim.
    pub keep_tokens: u64,
    pub reply: ReplyLimits,
}

/// Why a run begins.
pub enum Start {
    /// A person's or a parent's message; the sender learns the entry once it is durable.
    User { input: Input, taken: Option<String>, accepted: Option<Accepted> },
    /// Notifications or child events that wait in the mailbox.
    MailboxMessage,
    /// Go on with what was interrupted, without this result where one is named.
    Resume { without: Option<EntryId>, accepted: Option<Accepted> },
    /// A person decided on the request of an earlier run: go on with the call that waited.
    ApprovalDecided { answered: ApprovalDecided, accepted: Option<Accepted> },
    /// Only compact.
    Compact { accepted: Option<Accepted> },
}

impl Start {
    /// Whether no person started the run, but messages of Pods and agents, or the host.
    pub fn is_by_a_pod(&self) -> bool {
        match self {
            Self::User { input, .. } => input.from.is_some(),
            Self::MailboxMessage => true,
            Self::Resume { .. } | Self::ApprovalDecided { .. } | Self::Compact { .. } => false,
        }
    }
}

/// Answered once the input or the change is durable.
pub type Accepted = oneshot::Sender<Result<Recorded, Refusal>>;

/// What the log holds of an accepted request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorded {
    /// The entry of an input.
    pub entry: Option<EntryId>,
    /// The run that the request began or let go on.
    pub run: Option<EntryId>,
}

/// The channels between a run and the Pod's actor.
pub struct Ports {
    /// Waits when it is full: a slow actor slows the stream down, nothing is lost.
    pub out: mpsc::Sender<RunEvent>,
    pub interrupt: watch::Receiver<Interrupt>,
    /// Rows that arrived while the run is under way. When it is full they stay in the store and
    /// wake the Pod afterwards.
    pub mailbox: mpsc::Receiver<MailboxMessage>,
    /// Decisions on the requests of the run.
    pub answers: mpsc::Receiver<ApprovalDecided>,
    /// A person wants the request that waits for its provider made now.
    pub try_now: Arc<Notify>,
    /// The models that a person chose while the run lasts: the next request goes to the first of them.
    pub chosen: watch::Receiver<Models>,
}

/// The events of a run for the Pod's actor, in order.
#[derive(Debug)]
pub enum RunEvent {
    Event(Event),
    /// These entries are durable; the segment is this long now.
    Committed {
        entries: Vec<Entry>,
        end: u64,
    },
    /// The run writes to another segment from here on.
    Rotated {
        segment: SegmentId,
        end: u64,
    },
    /// The run waits for a person.
    ApprovalRequested(Box<crate::protocol::ApprovalRequest>),
    /// The log holds the decision.
    ApprovalDecided(ApprovalDecided),
    /// The activity of the run, in one line.
    Doing(String),
    /// The run waits for its provider until then, in milliseconds since the Unix epoch; its activity says why.
    Waits {
        activity: String,
        until: u64,
    },
    /// The run goes on with another model, and why.
    UsesModel(Box<Model>, String),
    /// The run goes on with the model that a person chose meanwhile.
    UsesChosenModel,
    /// A provider refused something, and took the request without it.
    Learned(Box<crate::llm::adjust::Learned>),
    /// The limit that the commands of the last group met; `None` once they ended without meeting one.
    LimitMet(Option<LimitMet>),
    /// What the run does again and again; `None` once it did something else.
    Circling(Option<Box<Circling>>),
    /// The number of tokens of the next request, and the cost of the Pod so far in US dollars.
    Context {
        tokens: u64,
        cost: Option<f64>,
    },
}

/// The outcome of a run.
#[derive(Debug)]
pub enum End {
    Finished,
    Paused,
    /// With what was reached.
    LimitReached(String),
    /// Nothing was added to the history: the input was taken back.
    RolledBack,
    Cancelled,
    /// It only compacted the history, or the compaction was refused or cancelled.
    Compacted,
    /// It was to compact, and the history is as it was, for this reason.
    NotCompacted(String),
    /// It did not end by itself and was aborted.
    CutOff,
    /// The provider, a tool or the log failed; the text says which.
    Failed(Refusal),
}

impl End {
    /// Logs how a run ended. The sentence of a failure is the host's or the provider's own.
    fn log(&self, took: std::time::Duration, turns: u32) {
        let ms = took.as_millis();
        match self {
            Self::NotCompacted(why) => tracing::warn!(ms, turns, "{why}"),
            Self::Failed(refusal) => tracing::warn!(ms, turns, "failed: {refusal}"),
            Self::Finished
            | Self::Paused
            | Self::LimitReached(_)
            | Self::RolledBack
            | Self::Cancelled
            | Self::Compacted
            | Self::CutOff => tracing::info!(ms, turns, "ended: {self:?}"),
        }
    }
}

/// Why a step of a run did not go on.
pub(crate) enum Stopped {
    Interrupted,
    Failed(Refusal),
}

impl Stopped {
    /// The reason for the caller of the run.
    fn refusal(&self) -> Refusal {
        match self {
            Self::Interrupted => Refusal::internal("the run was interrupted before it began"),
            Self::Failed(refusal) => refusal.clone(),
        }
    }
}

impl<E: Into<Refusal>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// The first entry of a run that a person's input started.
pub(crate) struct FirstEntry {
    id: EntryId,
    at: LogPosition,
    input: Vec<Segment>,
}

/// A run under way.
pub(crate) struct Run {
    pub(crate) setup: Setup,
    pub(crate) session_state: SessionState,
    pub(crate) ports: Ports,
    /// The first entry of a run that a person's input began. A run that is halted before it has a
    /// result is rolled back to before this entry.
    first: Option<FirstEntry>,
    /// Why this run began; `None` while it only compacts.
    pub(crate) trigger: Option<Trigger>,
    /// Whether a model or a tool did anything yet, or a mailbox message was taken: then the run is
    /// not rolled back.
    pub(crate) acted: bool,
    requests: u32,
    /// How many compactions followed each other closely, and the requests before the last of them.
    compactions: (u32, u32),
    /// Since when the requests for one reply have failed, or wait at the gate of their provider.
    pub(crate) failing_since: Option<tokio::time::Instant>,
    /// The tools that the model was offered last: its calls are calls of these.
    pub(crate) offered: tools::ToolSet,
    /// The turn to write, while it lasts.
    turn: Option<Box<dyn Turn>>,
    reads_beside: turn::ReadsBeside,
    work: WorkSoFar,
    circles: circles::Circles,
}

/// Runs until the model is done or something stops it. The state comes back with the new history,
/// or not at all when its log failed and must be opened and checked anew.
pub async fn run(
    setup: Setup,
    session_state: Option<SessionState>,
    segment: Option<SegmentId>,
    start: Start,
    ports: Ports,
) -> (Option<SessionState>, End) {
    let mut start = start;
    let (turn, reads_beside) = turn::before_prompt(&setup, &start).await;
    let opened = match session_state {
        Some(session_state) => Ok(session_state),
        None => session_state::open(&setup, segment, &ports.out).await,
    };
    let session_state = match opened {
        Ok(session_state) => session_state,
        Err(refusal) => {
            start.refuse(&refusal);
            return (None, End::Failed(refusal));
        }
    };
    let offered = setup.tool_set.borrow().clone();
    let cost_before = session_state.state.cost.unwrap_or(0.0);
    let mut run = Run {
        setup,
        session_state,
        ports,
        first: None,
        trigger: None,
        acted: false,
        requests: 0,
        compactions: (0, 0),
        failing_since: None,
        offered,
        turn,
        reads_beside,
        work: WorkSoFar { cost_before, ..WorkSoFar::default() },
        circles: circles::Circles::default(),
    };
    tracing::info!("started");
    let begun = tokio::time::Instant::now();
    let end = run.all(start).await;
    end.log(begun.elapsed(), run.requests);
    let healthy = !matches!(&end, End::Failed(r) if r.code == ErrorCode::Internal);
    (healthy.then_some(run.session_state), end)
}

impl Start {
    /// The mailbox row of the input that it begins with.
    pub fn queued_input(&self) -> Option<String> {
        match self {
            Self::User { taken, .. } => taken.clone(),
            Self::MailboxMessage
            | Self::Resume { .. }
            | Self::ApprovalDecided { .. }
            | Self::Compact { .. } => None,
        }
    }

    /// The run cannot begin; its caller gets the reason.
    pub fn refused(mut self, refusal: &Refusal) {
        self.refuse(refusal);
    }

    fn refuse(&mut self, refusal: &Refusal) {
        let (Self::User { accepted, .. }
        | Self::Resume { accepted, .. }
        | Self::ApprovalDecided { accepted, .. }
        | Self::Compact { accepted }) = self
        else {
            return;
        };
        refuse(accepted.take(), refusal);
    }
}

impl Run {
    async fn all(&mut self, start: Start) -> End {
        let outcome = match start {
            Start::Compact { accepted } => return self.compact_now(accepted).await,
            Start::User { taken: Some(row), accepted, .. } if self.has_taken(&row) => {
                self.taken(Some(row)).await;
                answer(accepted, Recorded::default());
                return End::Finished;
            }
            start => self.begin(start).await,
        };
        let outcome = match outcome {
            Ok(()) => self.turns().await,
            Err(stopped) => Err(stopped),
        };
        self.end_turn().await;
        match outcome {
            Ok(end) => self.close(end).await,
            Err(Stopped::Interrupted) => self.interrupted().await,
            Err(Stopped::Failed(refusal)) => self.failed(refusal).await,
        }
    }

    /// Commits why this run begins.
    async fn begin(&mut self, start: Start) -> Result<(), Stopped> {
        let fresh = matches!(start, Start::User { .. });
        self.trigger = Some(Trigger::UserSend);
        if let Start::ApprovalDecided { answered, accepted } = start {
            self.go_on_with(answered, accepted).await?;
            return self.begin_working().await;
        }
        let mut start = start;
        let mut prepared = match self.withdraw().await {
            Ok(()) => self.close_open_calls(fresh).await,
            failed => failed,
        };
        if fresh && prepared.is_ok() {
            prepared = self.note_move().await;
        }
        if let Err(stopped) = prepared {
            start.refuse(&stopped.refusal());
            return Err(stopped);
        }
        match start {
            Start::User { input: Input { segments, from }, taken, accepted } => {
                let mut invoke = Entry::new(Fact::Invoke { trigger: Trigger::UserSend });
                tracing::Span::current().record("id", invoke.id.map(tracing::field::display));
                if let Some(id) = invoke.id.filter(|_| from.is_none()) {
                    let offset = self.session_state.journal.end();
                    let at = LogPosition { segment: self.session_state.segment, offset };
                    self.first = Some(FirstEntry { id, at, input: segments.clone() });
                }
                let by_person = from.is_none();
                let fact = Fact::UserInput { segments: segments.clone(), taken, from };
                let mut input = Entry::new(fact);
                let (entry, row) = (input.id, taken_id(&input));
                (invoke.run, input.run) = (entry, entry);
                crate::crash_point!("input-received");
                let accepted = self.commit_for(accepted, vec![invoke, input]).await?;
                crate::crash_point!("input-committed");
                self.taken(row).await;
                answer(accepted, Recorded { entry, run: entry });
                self.begin_working().await?;
                crate::run::attach::references(self, &segments, by_person).await
            }
            Start::MailboxMessage => {
                self.commit_invoke_for_mailbox().await?;
                self.begin_working().await
            }
            Start::Resume { without, accepted } => {
                let resumed = vec![Entry::extension(domain::RESUMED, json!({}))];
                let accepted = self.commit_for(accepted, resumed).await?;
                crate::crash_point!("resume-committed");
                self.goes_on(accepted);
                if let Some(result) = without {
                    self.leave_out(result).await?;
                }
                let is_unfinished = self.ends_with_own_text();
                self.begin_working().await?;
                if is_unfinished { self.request_continuation().await } else { Ok(()) }
            }
            Start::ApprovalDecided { .. } | Start::Compact { .. } => Ok(()),
        }
    }

    /// The request that let the last run go on is durable.
    pub(crate) fn goes_on(&self, accepted: Option<Accepted>) {
        answer(accepted, Recorded { entry: None, run: self.session_state.state.run });
    }

    /// Begins the turn of the Pod, and says what changed since its last run.
    async fn begin_working(&mut self) -> Result<(), Stopped> {
        self.begin_turn().await?;
        self.note_changes().await
    }

    /// Whether the history ends with the model's own text, which is unfinished while its run goes on. No request carries
    /// thinking at the end.
    fn ends_with_own_text(&self) -> bool {
        let mut items = self.session_state.state.history.iter().rev().map(|kept| &kept.item);
        let last = items.find(|item| !matches!(item, Item::Reasoning { .. }));
        matches!(last, Some(Item::Message { role: Role::Assistant, .. }))
    }

    /// Commits a note that tells the model to go on with its text.
    async fn request_continuation(&mut self) -> Result<(), Stopped> {
        let item = SystemItem::Interrupt { body: prompt::RESUMED.into() };
        self.commit(vec![Entry::new(Fact::SystemItem { item, taken: None })]).await
    }

    /// Calls without a result get the result that they were interrupted: they never run again.
    pub(crate) async fn close_open_calls(&mut self, fresh: bool) -> Result<(), Stopped> {
        let interrupted = self.session_state.state.interrupted;
        let cut = self.session_state.state.cut_at.is_some();
        let open = std::mem::take(&mut self.session_state.state.open_calls);
        let mut entries: Vec<Entry> = open
            .iter()
            .map(|(id, _)| {
                let item = if cut { context::cut_off(id) } else { context::interrupted(id) };
                Entry::new(Fact::ToolResult { item, files: Vec::new(), sent: None })
            })
            .collect();
        if fresh && interrupted {
            let body = if cut { prompt::CUT_OFF } else { prompt::INTERRUPTED }.to_owned();
            entries.push(Entry::new(Fact::SystemItem {
                item: SystemItem::Interrupt { body },
                taken: None,
            }));
        }
        self.session_state.state.interrupted = false;
        if entries.is_empty() { Ok(()) } else { self.commit(entries).await }
    }

    /// Makes model requests and calls tools until the model calls no more tools.
    async fn turns(&mut self) -> Result<End, Stopped> {
        let mut unfinished = reply_end::Unfinished::default();
        loop {
            self.drain_mailbox().await?;
            if self.requests >= self.setup.limits.max_turns {
                let why = format!("stopped after {} model requests", self.requests);
                return Ok(End::LimitReached(why));
            }
            self.start_servers().await?;
            self.use_chosen_model().await;
            self.prune_when_full().await?;
            self.compact_when_full().await?;
            self.requests += 1;
            let turn = self.session_state.state.turn_count;
            self.publish(Event::TurnStart { turn }).await;
            let reply = self.request_reply().await?;
            self.session_state.state.turn_count = turn + 1;
            self.publish(Event::TurnEnd { turn, result: TurnResult::Finished }).await;
            let was_called = !reply.calls.is_empty();
            let (calls, stop) = self.refuse_cut_calls(reply).await?;
            self.call_tools(&calls).await?;
            let calls_of_reply = match (was_called, calls.is_empty()) {
                (false, _) => reply_end::CallsOfReply::Absent,
                (true, true) => reply_end::CallsOfReply::Refused,
                (true, false) => reply_end::CallsOfReply::Ran,
            };
            match self.after_reply(&stop, calls_of_reply, &mut unfinished).await? {
                reply_end::Next::Request => {}
                reply_end::Next::End(end) => return Ok(end),
                reply_end::Next::Finished => {
                    if !self.drain_at_end().await? {
                        return Ok(End::Finished);
                    }
                    unfinished = reply_end::Unfinished::default();
                }
            }
        }
    }

    /// Makes entries durable, then tells.
    pub(crate) async fn commit(&mut self, mut entries: Vec<Entry>) -> Result<(), Stopped> {
        for entry in &mut entries {
            entry.run = entry.run.or(self.session_state.state.run);
        }
        let end = self.session_state.journal.commit(&entries).await?;
        for entry in &entries {
            self.session_state.state.apply(entry);
        }
        self.send(RunEvent::Committed { entries, end }).await;
        Ok(())
    }

    /// Reads outputs that the next request carries and that were left in the log.
    pub(crate) async fn load_wanted(&mut self) -> Result<(), Stopped> {
        let history = &self.session_state.state.history;
        let wanted = context::wanted(history);
        self.load(wanted).await
    }

    /// Reads the outputs of these items of the history.
    pub(crate) async fn load(&mut self, wanted: Vec<usize>) -> Result<(), Stopped> {
        if wanted.is_empty() {
            return Ok(());
        }
        let files = self.setup.files.clone();
        let mut history = std::mem::take(&mut self.session_state.state.history);
        let read = tokio::task::spawn_blocking(move || {
            let mut each = wanted.into_iter();
            let read =
                || each.try_for_each(|at| load_output(&files, Arc::make_mut(&mut history[at])));
            // The history comes back also from a panic.
            let read = catch_unwind(AssertUnwindSafe(read));
            (history, read)
        });
        let (history, read) = read.await.map_err(|error| Refusal::internal(error.to_string()))?;
        self.session_state.state.history = history;
        read.map_err(|_| Refusal::internal("reading an earlier output failed"))??;
        Ok(())
    }

    /// Commits what a request began; where that fails, its caller gets the reason.
    async fn commit_for(
        &mut self,
        accepted: Option<Accepted>,
        entries: Vec<Entry>,
    ) -> Result<Option<Accepted>, Stopped> {
        match self.commit(entries).await {
            Ok(()) => Ok(accepted),
            Err(stopped) => {
                refuse(accepted, &stopped.refusal());
                Err(stopped)
            }
        }
    }

    pub(crate) async fn publish(&self, event: Event) {
        self.send(RunEvent::Event(event)).await;
    }

    pub(crate) async fn doing(&self, what: impl Into<String>) {
        self.send(RunEvent::Doing(what.into())).await;
    }

    pub(crate) async fn send(&self, out: RunEvent) {
        // An actor that is gone reads no events; its handle aborts the run.
        let _ = self.ports.out.send(out).await;
    }

    /// The number of tokens of the next request.
    pub(crate) fn tokens(&self) -> u64 {
        let Replay { history, usage, .. } = &self.session_state.state;
        let beginning = match usage {
            Some(_) => 0,
            None => self.session_state.system.len() + self.offered.spec_bytes(),
        };
        context::tokens(beginning, history, *usage)
    }

    /// The size of what stands before the history in each request, in bytes.
    pub(crate) fn beginning(&self) -> usize {
        self.session_state.system.len() + self.offered.spec_bytes()
    }

    async fn close(&mut self, end: End) -> End {
        let (outcome, result) = match end {
            End::LimitReached(_) => (RunOutcome::LimitReached, RunResult::LimitReached),
            _ => (RunOutcome::Finished, RunResult::Finished),
        };
        crate::crash_point!("run-ending");
        let entry = match self.commit_end(vec![outcome.entry()]).await {
            Err(Stopped::Failed(refusal)) => return self.failed(refusal).await,
            Err(Stopped::Interrupted) => None,
            Ok(entry) => entry,
        };
        crate::crash_point!("run-ended");
        self.publish_end(result, entry).await;
        end
    }

    /// Tells how the run ended, and with which entry.
    async fn publish_end(&self, result: RunResult, entry: Option<EntryId>) {
        let run = self.session_state.state.run;
        self.publish(Event::RunEnd { result, entry, run }).await;
    }

    async fn failed(&mut self, refusal: Refusal) -> End {
        let outcome = RunOutcome::Failed(&refusal.message);
        let entry = if refusal.code == ErrorCode::Internal {
            None
        } else {
            // When the log fails now, the first failure is still the one to report.
            self.commit_end(vec![outcome.entry()]).await.unwrap_or_default()
        };
        self.publish(refusal.clone().into()).await;
        self.publish_end(RunResult::Failed, entry).await;
        End::Failed(refusal)
    }

    /// Commits the entries that end the run, behind the count of its turns, and returns the id of the last.
    async fn commit_end(&mut self, ends: Vec<Entry>) -> Result<Option<EntryId>, Stopped> {
        let turn_count = self.session_state.state.turn_count;
        let id = ends.last().and_then(|end| end.id);
        let mut entries = vec![Entry::new(Fact::TurnEnd { turn_count })];
        entries.extend(ends);
        if let Some(end) = entries.last_mut() {
            self.add_work(end);
        }
        self.commit(entries).await?;
        Ok(id)
    }
}

fn taken_id(entry: &Entry) -> Option<String> {
    match &entry.fact {
        Fact::UserInput { taken, .. } => taken.clone(),
        _ => None,
    }
}

fn refuse(accepted: Option<Accepted>, refusal: &Refusal) {
    if let Some(accepted) = accepted {
        // The caller may have gone.
        let _ = accepted.send(Err(refusal.clone()));
    }
}

pub(crate) fn answer(accepted: Option<Accepted>, recorded: Recorded) {
    if let Some(accepted) = accepted {
        // The caller may have gone.
        let _ = accepted.send(Ok(recorded));
    }
}
