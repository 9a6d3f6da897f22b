//! The tool calls of one reply: in groups that may run together, each result committed when its
//! call ends. Policy decides about the calls of a group right before they start, so rules, links and
//! scripts count as they are then. A call that needs an approval runs in a group of its own.

use crate::protocol::mesh::SentMessage;
use crate::protocol::{ApprovalRequest, Entry, Event, Fact, Item, Verdict, answer_words};
use crate::run::approval::{denial, unanswered};
use crate::run::circles::Ending;
use crate::run::policy::{ApprovalDraft, Decision, Grant};
use crate::run::server_question::{OpenQuestion, QuestionEnd};
use crate::run::work::By;
use crate::run::{
    Interrupt, Run, RunEvent, Stopped, context, instructions, interrupted, session_state,
};
use crate::sandbox::{MAX_TOGETHER, StartGroup};
use crate::text::SafeText;
use crate::tools::{self, AskedPerson, Done, Lane, PersonPort, ToolSet};
use crate::trace::OrLog as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use std::borrow::Cow;
use std::path::Path;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A tool call of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// A call that may start, with its grant.
struct Allowed<'a> {
    call: &'a Call,
    grant: Grant,
}

/// The most questions of servers that wait until they are shown; a further one is cancelled.
const QUESTIONS: usize = 8;

/// The end of the summary of a call that used a path outside the scope.
const OUTSIDE_SCOPE_NOTE: &str = " · outside the scope, allowed for this call only";
const LENT_NOTE: &str = " · ended because another pod is to write a part of your scope";

/// The most pieces of live output that wait to be published; further ones are only in the result.
const LIVE_OUTPUT_QUEUE: usize = 64;

impl Run {
    /// Runs all calls of a reply. When the run is interrupted, each call without a result is closed
    /// as interrupted, so no call stays open. Only the end of the host leaves open a call that
    /// waits for an approval, and the calls after it.
    pub(crate) async fn call_tools(&mut self, calls: &[Call]) -> Result<(), Stopped> {
        self.acted |= !calls.is_empty();
        let ordered = in_order_of_start(&self.offered, calls);
        let mut rest = ordered.as_ref();
        while !rest.is_empty() {
            let decisions = self.decide(&rest[..alike(&self.offered, rest)]).await;
            let (group, later) = rest.split_at(together(&decisions));
            self.group(group, decisions).await?;
            self.end_if_interrupted(later).await?;
            rest = later;
        }
        Ok(())
    }

    /// Closes the calls that did not start yet if the run is interrupted.
    pub(crate) async fn end_if_interrupted(&mut self, later: &[Call]) -> Result<(), Stopped> {
        if *self.ports.interrupt.borrow() == Interrupt::Go {
            return Ok(());
        }
        let approvals = self.session_state.state.open_approval().is_some();
        for call in later.iter().filter(|_| !approvals) {
            self.close_call(call).await?;
        }
        Err(Stopped::Interrupted)
    }

    pub(crate) async fn close_call(&mut self, call: &Call) -> Result<(), Stopped> {
        let item = context::interrupted(&call.id);
        self.conclude(call, item, Vec::new(), None).await
    }

    /// Starts calls that were just decided, and waits for their ends.
    async fn group(&mut self, calls: &[Call], decisions: Vec<Decision>) -> Result<(), Stopped> {
        let mut allowed = Vec::new();
        for (call, decision) in calls.iter().zip(decisions) {
            match decision {
                Decision::Allow(grant) => allowed.push(Allowed { call, grant }),
                Decision::NeedsApproval(draft) => self.call_after_approval(call, &draft).await?,
                Decision::Deny(why) => self.refuse(call, why).await?,
            }
        }
        self.allowed(allowed).await
    }

    async fn call_after_approval(
        &mut self,
        call: &Call,
        draft: &ApprovalDraft,
    ) -> Result<(), Stopped> {
        match self.request_approval(call, draft, Box::pin(std::future::pending())).await? {
            Some((verdict, approval)) => self.answered(call, &verdict, &approval).await,
            None => Ok(()),
        }
    }

    pub(crate) async fn answered(
        &mut self,
        call: &Call,
        verdict: &Verdict,
        approval: &ApprovalRequest,
    ) -> Result<(), Stopped> {
        match verdict {
            Verdict::Answer { values } => {
                let item = context::answered(&call.id, &answer_words(values));
                self.conclude(call, item, Vec::new(), None).await
            }
            Verdict::Deny { reason } if approval.question.is_some() => {
                self.refuse(call, unanswered(reason)).await
            }
            Verdict::Once | Verdict::Pod { .. } | Verdict::Tree { .. } => {
                match self.granted(call, approval).await {
                    Decision::Allow(grant) => {
                        self.count_allowed(call, By::Person);
                        self.call_group(&[Allowed { call, grant }]).await
                    }
                    Decision::Deny(why) => self.refuse(call, why).await,
                    Decision::NeedsApproval(_) => self.close_call(call).await,
                }
            }
            Verdict::Deny { reason } => self.refuse(call, denial(reason)).await,
            Verdict::Withdrawn { .. } => self.close_call(call).await,
        }
    }

    /// Commits the result of a call that does not start.
    pub(crate) async fn refuse(&mut self, call: &Call, why: String) -> Result<(), Stopped> {
        self.watch_for_circles(call, Ending::Denied).await;
        self.conclude(call, context::refused(&call.id, why), Vec::new(), None).await
    }

    /// The same for a call that cannot be run as the model wrote it.
    pub(crate) async fn refuse_unusable(
        &mut self,
        call: &Call,
        why: String,
    ) -> Result<(), Stopped> {
        self.watch_for_circles(call, Ending::failed(&why, None)).await;
        self.conclude(call, context::refused(&call.id, why), Vec::new(), None).await
    }

    /// Runs allowed calls, after their leases are added to the scope.
    async fn allowed(&mut self, calls: Vec<Allowed<'_>>) -> Result<(), Stopped> {
        if let [Allowed { call, grant: Grant { lease: Some(rule), .. } }] = calls.as_slice() {
            let extended = self.setup.permissions.relations.extend(rule.clone()).await;
            if let Err(refusal) = extended {
                return self.refuse(call, format!("denied: {}", refusal.message)).await;
            }
        }
        for Allowed { call, grant } in &calls {
            self.count_allowed(call, if grant.by_rule { By::Rule } else { By::Walls });
        }
        self.call_group(&calls).await
    }

    /// The context of one call, with its own grant.
    fn context_of(&self, grant: &Grant) -> tools::Context {
        let mut ctx = tools::Context {
            path: grant.path.clone(),
            needs: grant.needs.clone(),
            outside: grant.outside.clone(),
            granted_credentials: grant.credentials.clone(),
            scripts: grant.scripts.clone(),
            ..self.context()
        };
        ctx.scope.allow.extend(grant.lease.clone());
        ctx
    }

    /// The current context of calls.
    pub(crate) fn context(&self) -> tools::Context {
        tools::Context {
            scope: (self.setup.scope)(),
            others: (self.setup.others)(),
            read: self.session_state.state.files.clone(),
            tasks: self.session_state.tasks.clone(),
            rules: self.setup.permissions.rules.clone(),
            ..self.setup.tools.clone()
        }
    }

    /// The context of each call of a group. Commands start together; they wait for no call of another tool.
    fn contexts_of(
        &self,
        group: &[Allowed<'_>],
        to_person: &mpsc::Sender<AskedPerson>,
    ) -> Vec<tools::Context> {
        let is_command = |allowed: &&Allowed<'_>| allowed.call.name == "Bash";
        let mut places = StartGroup::of(group.iter().filter(is_command).count()).into_iter();
        let context = |allowed: &Allowed<'_>| tools::Context {
            group: if is_command(&allowed) {
                places.next().unwrap_or_default()
            } else {
                Default::default()
            },
            person: Some(PersonPort { call_id: allowed.call.id.clone(), to: to_person.clone() }),
            ..self.context_of(&allowed.grant)
        };
        group.iter().map(context).collect()
    }

    async fn call_group(&mut self, group: &[Allowed<'_>]) -> Result<(), Stopped> {
        let Some(Allowed { call: first, .. }) = group.first() else { return Ok(()) };
        let cancel = CancellationToken::new();
        // A request for a part of the scope may end it, too.
        let end = cancel.child_token();
        let shells = group.iter().filter(|allowed| allowed.call.name == "Bash");
        let begin = |Allowed { call, .. }: &Allowed<'_>| {
            // One that starts in the background is ended there.
            let in_background = tools::in_background(&call.arguments);
            let end = if in_background { CancellationToken::new() } else { end.clone() };
            self.setup.commands.begin(label(&call.name, &call.arguments), end)
        };
        let commands: Vec<_> = shells.map(begin).collect();
        let (to_person, mut questions) = mpsc::channel(QUESTIONS);
        let contexts = self.contexts_of(group, &to_person);
        let (live, mut live_output) = mpsc::channel::<(String, String)>(LIVE_OUTPUT_QUEUE);
        self.doing(label(&first.name, &first.arguments)).await;
        crate::crash_point!("tool-starting");
        let calls = group.iter().zip(&contexts);
        let tools = self.offered.clone();
        let mut running: FuturesUnordered<_> = calls
            .map(|(allowed, ctx)| run_call(&tools, allowed, ctx, &end, live.clone()))
            .collect();
        let mut interrupt = self.ports.interrupt.clone();
        let mut limit = None;
        let mut open: Option<OpenQuestion> = None;
        loop {
            tokio::select! {
                biased;
                Some((id, text)) = live_output.recv() => {
                    self.publish(Event::ToolOutput { id, text }).await;
                }
                done = running.next() => match done {
                    Some((allowed, mut done)) => {
                        if end.is_cancelled() && !cancel.is_cancelled() && done.output.is_error {
                            done.output.summary.push_str(LENT_NOTE);
                        }
                        let met = done.output.limit.clone();
                        self.concluded(allowed, done).await?;
                        if limit.is_none() && met.is_some() {
                            limit = met;
                            self.send(RunEvent::LimitMet(limit.clone())).await;
                        }
                    }
                    None => break,
                },
                Some(asked) = questions.recv(), if open.is_none() => {
                    let call = group.iter().find(|allowed| allowed.call.id == asked.call_id);
                    if let Some(Allowed { call, .. }) = call {
                        open = self.request_for_server(call, asked).await?;
                    }
                }
                ended = self.question_ends(open.as_mut()), if open.is_some() => {
                    if let Some(question) = open.take() {
                        self.close_question(question, ended).await?;
                    }
                }
                () = interrupted(&mut interrupt), if !cancel.is_cancelled() => cancel.cancel(),
            }
        }
        if let Some(question) = open {
            self.close_question(question, QuestionEnd::Gone("the call ended")).await?;
        }
        if limit.is_none() && !commands.is_empty() {
            self.send(RunEvent::LimitMet(None)).await;
        }
        Ok(())
    }

    async fn concluded(
        &mut self,
        Allowed { call, grant }: &Allowed<'_>,
        done: Done,
    ) -> Result<(), Stopped> {
        if let Some(tasks) = done.tasks {
            self.session_state.tasks = tasks;
        }
        let mut output = done.output;
        let held = (self.setup.scope)();
        if !output.is_error && grant.lease.as_ref().is_some_and(|rule| !held.covers(rule)) {
            output.summary.push_str(OUTSIDE_SCOPE_NOTE);
        }
        if let (Some(lines), Some(path)) = (output.lines, &grant.path) {
            self.work.counted.changed(&path.to_string_lossy(), lines);
        }
        if let Some(path) = grant.path.as_ref().filter(|_| !output.is_error) {
            self.add_instructions(path, &mut output).await;
        }
        let bytes = output.content.as_ref().map_or(0, String::len);
        tracing::debug!(
            tool = call.name,
            call = call.id,
            bytes,
            error = output.is_error,
            "tool ended"
        );
        self.watch_for_circles(call, Ending::of(call, &output)).await;
        let item = Item::ToolResult {
            call_id: call.id.clone(),
            summary: output.summary,
            content: output.content,
            is_error: output.is_error,
            images: output.images,
        };
        self.conclude(call, item, output.files, output.sent).await?;
        self.store_read_cursor(output.read).await;
        Ok(())
    }

    /// Adds the instruction files of directories that a call touches, each once and again when it changed.
    async fn add_instructions(&self, path: &Path, output: &mut tools::Output) {
        let mut known = self.session_state.state.files.clone();
        known.extend(output.files.iter().map(|mark| (mark.path.clone(), mark.hash.clone())));
        let (setup, path) = (self.setup.clone(), path.to_owned());
        let look = move || {
            session_state::with_sources(&setup, |sources| {
                instructions::below(sources, &path, &known)
            })
        };
        // Paths that do not answer have none.
        let Ok((text, marks)) = self.setup.path_threads.run(look).await else { return };
        if !text.is_empty() {
            let text = self.context().credentials.cut_text(text);
            output.content.get_or_insert_default().push_str(&text);
            output.files.extend(marks);
        }
    }

    /// Output of another Pod counts as read once the log holds it; after a crash in between it is read once
    /// more, and nothing is lost.
    async fn store_read_cursor(&self, read: Option<tools::Reading>) {
        let Some(tools::Reading { pod, upto }) = read else { return };
        // If this fails, the same text is read again.
        self.setup
            .store
            .set_cursor(&self.setup.pod, &pod, upto)
            .await
            .or_log("store how far the output was read");
    }

    async fn conclude(
        &mut self,
        call: &Call,
        item: Item,
        files: Vec<crate::protocol::FileMark>,
        sent: Option<SentMessage>,
    ) -> Result<(), Stopped> {
        crate::crash_point!("tool-ended");
        self.commit(vec![Entry::new(Fact::ToolResult { item: item.clone(), files, sent })]).await?;
        self.note_refused_write(call, &item).await?;
        crate::crash_point!("tool-result-committed");
        let Item::ToolResult { call_id, summary, content, is_error, .. } = item else {
            return Ok(());
        };
        let event = Event::ToolResult { id: call_id, summary, output: content, is_error };
        self.send(RunEvent::Event(event)).await;
        Ok(())
    }
}

/// Runs one call; its live output goes to `live`.
async fn run_call<'a>(
    tools: &ToolSet,
    allowed: &'a Allowed<'a>,
    ctx: &tools::Context,
    cancel: &CancellationToken,
    live: mpsc::Sender<(String, String)>,
) -> (&'a Allowed<'a>, Done) {
    let call = allowed.call;
    let mut show = |text: String| {
        // Only live output is lost when the screen lags; the result contains all of it.
        let _ = live.try_send((call.id.clone(), text));
    };
    let done = tools.run(&call.name, &call.arguments, ctx, cancel, &mut show).await;
    ctx.group.leave();
    (allowed, done)
}

/// The calls in the order in which they start: among calls that look or run commands, all commands come
/// right behind the first one, so that they run together. What a model looks at before the first command is
/// as it was before, and what it looks at behind one is as all of them left it.
fn in_order_of_start<'a>(tools: &ToolSet, calls: &'a [Call]) -> Cow<'a, [Call]> {
    let lane = |call: &Call| tools.lane(&call.name).unwrap_or(Lane::Look);
    let is_shell = |call: &Call| lane(call) == Lane::Shell;
    let stretches = calls
        .chunk_by(|a, b| [a, b].iter().all(|call| matches!(lane(call), Lane::Look | Lane::Shell)));
    let mut ordered = Vec::new();
    for stretch in stretches {
        let first = stretch.iter().position(is_shell).unwrap_or(0);
        let (before, rest) = stretch.split_at(first);
        let (commands, looks): (Vec<&Call>, Vec<&Call>) =
            rest.iter().partition(|call| is_shell(call));
        ordered.extend(before.iter().chain(commands).chain(looks));
    }
    match ordered.iter().zip(calls).all(|(a, b)| std::ptr::eq(*a, b)) {
        true => Cow::Borrowed(calls),
        false => Cow::Owned(ordered.into_iter().cloned().collect()),
    }
}

/// The number of next calls whose tools may run together: reads, or commands. Every other call runs
/// alone, in call order.
fn alike(tools: &ToolSet, calls: &[Call]) -> usize {
    let lane = |call: &Call| tools.lane(&call.name).unwrap_or(Lane::Look);
    // What a later call may do depends on what runs in the background beside it.
    let is_alone = |call: &Call| call.name == "Bash" && tools::in_background(&call.arguments);
    match calls.first().map(lane) {
        Some(first @ (Lane::Look | Lane::Shell)) => calls
            .iter()
            .take(usize::from(MAX_TOGETHER))
            .take_while(|call| lane(call) == first && !is_alone(call))
            .count()
            .max(1),
        Some(Lane::Change | Lane::Note | Lane::Pods) | None => 1,
    }
}

/// The number of calls that form the next group, from the decisions about calls whose tools may run
/// together. A call that policy does not allow at once, or that needs a lease, is alone. So is a command
/// with approved scripts, because another command could exchange them, or with a credential, because another one could
/// have it do something else.
fn together(decisions: &[Decision]) -> usize {
    let runs_beside = |decision: &&Decision| {
        matches!(decision, Decision::Allow(Grant { lease: None, scripts, credentials, .. })
            if scripts.is_empty() && credentials.is_empty())
    };
    decisions.iter().take_while(runs_beside).count().max(1)
}

/// The arguments of external tools that usually name what a call is about.
const TELLING: &[&str] = &["command", "file_path", "path", "pattern", "query", "url", "name"];

/// A one-line label of a call: the tool and its main argument, or the subject of its task.
pub(crate) fn label(name: &str, arguments: &str) -> String {
    let parsed: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    let keys = tools::find(name).map_or(TELLING, |tool| tool.telling);
    let mut keys = keys.iter().chain(&["subject"]);
    let telling = keys.find_map(|key| parsed.get(key)?.as_str());
    let short = SafeText::brief(telling.unwrap_or(""), 120);
    format!("{name} {short}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_run_together_and_changes_one_by_one() {
        let call =
            |name: &&str| Call { id: "1".into(), name: (*name).into(), arguments: "{}".into() };
        let set = ToolSet::default();
        let of = |names: &[&str]| alike(&set, &names.iter().map(call).collect::<Vec<_>>());
        assert_eq!(of(&["Read", "Grep", "Write", "Read"]), 2);
        assert_eq!(of(&["Write", "Write"]), 1);
        assert_eq!(of(&["Bash", "Bash", "Edit"]), 2);
        assert_eq!(of(&["Bash", "Read"]), 1);
        assert_eq!(of(&["Read"; 100]), usize::from(MAX_TOGETHER));
        assert_eq!(of(&["Bash"; 100]), usize::from(MAX_TOGETHER));
    }

    #[test]
    fn commands_around_a_look_start_together_and_the_look_behind_one_waits_for_them() {
        let set = ToolSet::default();
        let order = |names: &[&str]| {
            let call = |(at, name): (usize, &&str)| Call {
                id: at.to_string(),
                name: (*name).into(),
                arguments: "{}".into(),
            };
            let calls: Vec<Call> = names.iter().enumerate().map(call).collect();
            let ordered = in_order_of_start(&set, &calls);
            let first = alike(&set, &ordered);
            (ordered.iter().map(|call| call.id.as_str()).collect::<String>(), first)
        };
        assert_eq!(order(&["Bash", "Read", "Bash", "Bash"]), ("0231".into(), 3));
        assert_eq!(order(&["Read", "Bash", "Grep", "Bash", "Glob"]), ("01324".into(), 1));
        assert_eq!(order(&["Bash", "Read", "Edit", "Read", "Bash"]), ("01234".into(), 1));
        assert_eq!(order(&["Bash", "Write", "Bash"]), ("012".into(), 1));
        assert_eq!(order(&["Read", "Read"]), ("01".into(), 2));
        assert_eq!(order(&[]), (String::new(), 1));
    }

    #[test]
    fn a_call_that_needs_a_decision_runs_alone() {
        let allow = || Decision::Allow(Grant::default());
        let deny = || Decision::Deny("no".into());
        assert_eq!(together(&[allow(), allow(), deny(), allow()]), 2);
        assert_eq!(together(&[deny(), deny(), allow()]), 1);
        let script = crate::protocol::ScriptHash { path: "/w/a.sh".into(), sha256: "a".into() };
        let grant = Grant { scripts: vec![script], ..Grant::default() };
        let scripted = || Decision::Allow(grant.clone());
        assert_eq!(together(&[scripted(), allow()]), 1, "no other command exchanges it");
        assert_eq!(together(&[allow(), allow(), scripted()]), 2);
    }

    #[test]
    fn a_label_names_the_tool_and_what_it_is_about() {
        assert_eq!(label("Bash", r#"{"command":"cargo test\nls"}"#), "Bash cargo test⏎ls");
        assert_eq!(label("TaskList", "not json"), "TaskList");
    }
}
