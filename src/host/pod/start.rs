//! The start of a run: its inputs, and the channels between it and the actor.

use crate::client::pod_api::PodApi;
use crate::config::McpServers;
use crate::config::dirs::{Env, var};
use crate::config::keys::MissingKey;
use crate::config::policy::Rules;
use crate::config::settings::Settings;
use crate::host::pod::Pod;
use crate::host::pod::phase::{Phase, Running};
use crate::host::rules;
use crate::host::{Answer, Shared, worktree};
use crate::llm::Policy;
use crate::protocol::{ErrorCode, Event, Refusal, State};
use crate::run::{self, Accepted, Interrupt, Limits, Models, Ports, Recorded, Setup, Start};
use crate::sandbox::{CommandLimits, Isolation};
use crate::scope::Permission;
use crate::store::{MailboxKind, MailboxMessage};
use crate::tools;
use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tracing::Instrument as _;

/// Events of a run that may wait for its actor.
const EVENTS: usize = 256;
/// Mailbox messages that may wait for a run; the rest waits in the store.
const MAILBOX: usize = 128;
/// Decisions on their way to a run, which waits for one at a time.
const DECISIONS: usize = 4;

/// Why a run does not start.
enum NotStarted {
    NoKey(MissingKey),
    /// No person agreed to send text to the address of the model.
    Unagreed(Refusal),
    /// The rules of the workspace cannot be read now.
    NoRules(Refusal),
}

impl Pod {
    /// Starts a run of a live Pod; refused while another run is under way.
    pub(super) async fn start(&mut self, start: Start) {
        if self.phase.is_running() {
            return start.refused(&Refusal::already_running());
        }
        self.find_model_again().await;
        self.start_now(start).await;
    }

    /// Starts the run after the model was selected.
    pub(super) async fn start_now(&mut self, start: Start) {
        if !start.is_by_a_pod() {
            self.exchange.end();
            self.show_granted();
        }
        self.choose_tools();
        let setup = match self.setup().await {
            Ok(setup) => setup,
            Err(why) => return self.not_started(start, why),
        };
        self.note_directory().await;
        self.show_rules(&setup.permissions.rules);
        self.show_model();
        self.show_effort();
        let handed = BTreeSet::from_iter(start.queued_input());
        let (out, events) = mpsc::channel(EVENTS);
        let (interrupt, interrupted) = watch::channel(Interrupt::Go);
        let (mailbox, inbox) = mpsc::channel(MAILBOX);
        if !matches!(start, Start::MailboxMessage) {
            self.offer_waiting(&mailbox).await;
        }
        let (decisions, decided) = mpsc::channel(DECISIONS);
        let try_now = Arc::new(Notify::new());
        let (models, chosen) = watch::channel(Models::default());
        let ports = Ports {
            out,
            interrupt: interrupted,
            mailbox: inbox,
            answers: decided,
            try_now: try_now.clone(),
            chosen,
        };
        self.cut_is_over("goes on with the run that was interrupted").await;
        // Removes the activity of the former run.
        self.change(|info| info.activity = None);
        // Published first, so that no screen gets an event of the run while it shows the Pod as
        // idle.
        self.enter(State::Running, None);
        let span = self.run_span();
        let run = run::run(setup, self.phase.take_log(), self.row.segment, start, ports);
        let task = tokio::spawn(run.instrument(span));
        self.phase = Phase::Running(Box::new(Running {
            task,
            events,
            interrupt,
            mailbox,
            decisions,
            try_now,
            models,
            handed,
            taken: BTreeSet::new(),
            interrupting: Vec::new(),
            ended: None,
            abort_at: None,
        }));
    }

    /// The span of everything that a run logs; the run adds its id, that of its first log entry.
    fn run_span(&self) -> tracing::Span {
        let model = self.resolved.model.as_ref().map(|choice| choice.model.spec());
        let (pod, model) = (self.row.name.as_str(), model.as_deref());
        tracing::info_span!("run", pod, model, id = tracing::field::Empty)
    }

    /// Adds waiting notifications to the run that starts, whatever its cause.
    async fn offer_waiting(&mut self, mailbox: &mpsc::Sender<MailboxMessage>) {
        for row in self.shared.store.messages(&self.row.name).await.unwrap_or_default() {
            let is_offered = !matches!(row.kind, MailboxKind::Input | MailboxKind::Agent);
            if is_offered && mailbox.try_send(row).is_err() {
                return;
            }
        }
    }

    fn not_started(&mut self, start: Start, why: NotStarted) {
        let (state, refusal) = match why {
            NotStarted::NoKey(missing) => {
                let provider = self.resolved.model.as_ref().map(|choice| &choice.model.provider);
                let why = missing.sentence(provider.map_or("", String::as_str));
                (State::NeedsYou, Refusal::new(ErrorCode::ProviderError, why))
            }
            NotStarted::Unagreed(refusal) => (State::NeedsYou, refusal),
            NotStarted::NoRules(refusal) => (State::Failed, refusal),
        };
        start.refused(&refusal);
        self.enter(state, Some(refusal.message));
    }

    async fn setup(&self) -> Result<Setup, NotStarted> {
        let granted = self.granted.clone();
        let models = self.models().map_err(NotStarted::NoKey)?;
        if let Some(refusal) = self.unagreed() {
            return Err(NotStarted::Unagreed(refusal));
        }
        // The settings may change while the run starts: the following values are those of the
        // newest ones.
        let (permissions, named) = self.permissions().await.map_err(NotStarted::NoRules)?;
        let settings = self.shared.settings.last().settings;
        let confinement = self.shared.confinement().await;
        Ok(Setup {
            models,
            summary_model: self.summary_model(),
            effort: self.effort.subscribe(),
            without_model: crate::run::no_model(&self.shared.settings.path(), &self.mistakes),
            pod: self.row.name.clone(),
            session: self.row.session,
            files: self.files.clone(),
            store: self.shared.store.clone(),
            tools: tools::Context {
                landlock: confinement.abi,
                ..self.tools(&settings, confinement.isolation())
            },
            path_threads: self.path_threads.clone(),
            tool_set: self.tool_set.subscribe(),
            servers: self.servers(named),
            limits: limits(&settings, self.resolved.max_turns),
            retries: retries(&settings),
            viewers: self.viewers(),
            workspace: self.instructed_in(),
            identity: self.row.record(),
            instruction: self.resolved.instruction.clone(),
            instruction_files: instruction_files(&self.shared, &self.env, &settings),
            scope: Arc::new(move || granted.borrow().scope.clone()),
            commands: self.commands.clone(),
            others: self.others(),
            when_busy: settings.scope.when_busy,
            watch: settings.watch,
            permissions,
        })
    }

    /// Where instruction files are looked for: from here to the working directory. A working tree has its own ones.
    pub(super) fn instructed_in(&self) -> PathBuf {
        let (cwd, workspace) = (&self.row.cwd, &self.row.workspace);
        let tree = || worktree::top_of(&self.shared.dirs.worktrees(), cwd);
        let is_inside = cwd.starts_with(workspace);
        (!is_inside).then(tree).flatten().unwrap_or_else(|| workspace.clone())
    }

    /// Shows or removes the notice that the rules of the workspace are unknown.
    fn show_rules(&mut self, rules: &Rules) {
        let note = rules.unread_note();
        if self.rules_note != note {
            self.rules_note = note;
            self.show_granted();
        }
    }

    fn servers(&self, configured: McpServers) -> run::Servers {
        let env = self.whole_env();
        let (shared, workspace) = (self.shared.clone(), self.row.workspace.clone());
        let configured_now = move || -> BoxFuture<'static, Option<McpServers>> {
            let (shared, workspace) = (shared.clone(), workspace.clone());
            let servers = async move { rules::servers_now(&shared, workspace).await.ok() };
            Box::pin(async move { Some(servers.await?.0) })
        };
        run::Servers {
            configured: Arc::new(configured),
            configured_now: Arc::new(configured_now),
            in_use: self.used_servers.clone(),
            env: Arc::new(env),
            http: self.shared.http.clone(),
            dir: crate::mcp::kept_in(&self.shared.dirs.data),
        }
    }

    async fn permissions(&self) -> Result<(run::Policy, McpServers), Refusal> {
        let (workspace, supervisor) = (self.row.workspace.clone(), self.supervisor.clone());
        rules::policy(&self.shared, &self.row.name, workspace, supervisor).await
    }

    /// The screens that show this Pod or one above it.
    fn viewers(&self) -> run::Viewers {
        let above = rules::lineage(&self.shared, &self.row.name);
        run::Viewers::new(self.shared.screens.subscribe(), self.row.name.clone(), above)
    }

    /// Looks up the paths that every other live Pod may write.
    pub(super) fn others(&self) -> run::OthersNow {
        let (shared, own) = (self.shared.clone(), self.row.name.key());
        Arc::new(move || {
            let members = shared.members.borrow().clone();
            let others = members.0.iter().filter(|(key, _)| **key != own);
            let live = others.filter(|(_, handle)| handle.info.borrow().state != State::Stopped);
            let written = live.flat_map(|(_, handle)| {
                let scope = handle.granted.borrow().scope.clone();
                scope.allow.into_iter().filter(|rule| rule.permission == Permission::Write)
            });
            written.map(|rule| rule.target).collect()
        })
    }

    /// The context of a command that begins now, outside of a run.
    pub(super) async fn command_context(&self) -> tools::Context {
        let settings = self.shared.settings.last().settings;
        let confinement = self.shared.confinement().await;
        tools::Context {
            landlock: confinement.abi,
            others: (self.others())(),
            ..self.tools(&settings, confinement.isolation())
        }
    }

    pub(super) fn tools(&self, settings: &Settings, isolation: Isolation) -> tools::Context {
        let (scope, given) = {
            // Borrowed once: a second borrow would wait for a writer that waits for the first.
            let granted = self.granted.borrow();
            (granted.scope.clone(), granted.given.clone())
        };
        tools::Context {
            cwd: self.row.cwd.clone(),
            scope,
            given,
            env: command_env(settings, &self.env),
            read: std::collections::BTreeMap::new(),
            blobs: self.files.blobs(),
            outputs: self.files.outputs(),
            private: self.files.private(),
            tasks: tools::tasks::Tasks::default(),
            helper: self.shared.helper.clone(),
            old_nofile: self.shared.old_nofile,
            pod_world: self.pod_world.clone(),
            jobs: self.jobs.clone(),
            own: self.shared.dirs.own(),
            command_time: command_time(settings),
            command_limits: command_limits(settings),
            isolation,
            landlock: 0,
            others: Vec::new(),
            group: Default::default(),
            path: None,
            needs: Vec::new(),
            outside: Vec::new(),
            credentials: Arc::new(tools::Credentials::of(&settings.credential, &self.whole_env())),
            granted_credentials: Vec::new(),
            scripts: Vec::new(),
            person: None,
            rules: Arc::default(),
            pod_api: Some(PodApi::new(self.row.name.clone(), self.shared.pod_api.clone())),
            max_output: tools::max_output(
                self.resolved.model.as_ref().map_or(0, |choice| choice.model.window),
            ),
        }
    }
}

/// The instruction files of the person: that of the configuration directory, and those that the settings name.
pub(crate) fn instruction_files(
    shared: &Shared,
    offered: &Env,
    settings: &Settings,
) -> Vec<PathBuf> {
    let config = &shared.dirs.config;
    let home = var(offered, "HOME").or_else(|| var(&shared.env, "HOME")).map(Path::new);
    let named = settings.instructions.iter().map(|path| match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => config.join(path),
    });
    std::iter::once(config.join(run::OF_PERSON)).chain(named).collect()
}

/// The patience of a run with its provider.
pub(crate) fn retries(settings: &Settings) -> Policy {
    let budget = std::time::Duration::from_secs(settings.retry.minutes.saturating_mul(60));
    Policy { budget, ..Policy::default() }
}

/// The limits of a run.
pub(crate) fn limits(settings: &Settings, max_turns: u32) -> Limits {
    let compaction = &settings.compaction;
    Limits {
        max_turns,
        compact_at: compaction.threshold_ratio.get(),
        keep_tokens: compaction.keep_tokens,
        reply: run::ReplyLimits {
            whole: settings.limits.reply_mib.bytes(),
            block: settings.limits.block_mib.bytes(),
            arguments: settings.limits.argument_mib.bytes(),
        },
    }
}

/// The time limits of a Pod's commands.
pub(crate) fn command_time(settings: &Settings) -> tools::CommandTime {
    let seconds = |value: std::num::NonZeroU64| std::time::Duration::from_secs(value.get());
    let shell = &settings.shell;
    tools::CommandTime { default: seconds(shell.timeout_s), max: seconds(shell.max_timeout_s) }
}

/// The resource limits of a Pod's commands.
pub(crate) fn command_limits(settings: &Settings) -> CommandLimits {
    let own = &settings.limits;
    CommandLimits {
        processes: own.processes.get(),
        memory_mib: own.memory_mib,
        open_files: own.open_files.get(),
        file_mib: own.file_mib,
        tmp_mib: own.tmp_mib.get(),
        cache_mib: own.cache_mib.get(),
        home_mib: own.home_mib.get(),
        shm_mib: own.shm_mib.get(),
    }
}

/// The environment of a Pod's commands: without keys of providers, unless the user passes them, and without what only a
/// credential gives.
pub(crate) fn command_env(settings: &Settings, offered: &Env) -> Env {
    let pass = &settings.shell.pass;
    let mut env = crate::sandbox::command_env(offered, pass);
    let keys = crate::config::catalogue::Catalogue::with(settings).key_variables();
    let of_credential = |name: &String| {
        settings.credential.values().any(|one| one.env.contains(name))
            && tools::may_be_a_credential(name)
    };
    env.retain(|name, _| (pass.contains(name) || !keys.contains(name)) && !of_credential(name));
    env
}

/// Turns the first commit of a run into the reply to the request that started it.
pub(super) fn accepted(answer: Answer) -> Accepted {
    let (accepted, committed) = oneshot::channel();
    tokio::spawn(async move {
        let reply =
            committed.await.unwrap_or_else(|_| Err(Refusal::internal("the run ended early")));
        // A caller that has disconnected needs no reply.
        let _ = answer.send(reply.map(|Recorded { entry, run }| Event::Accepted {
            entry,
            queued: None,
            run,
        }));
    });
    accepted
}
