//! The MCP servers of a Pod: policy decides whether one starts, and its tools are offered with the
//! next request. A tool that differs from the approved one waits for another approval.

mod question;

use crate::config::dirs::Env;
use crate::config::{McpDefinition, McpServers};
use crate::llm::Http;
use crate::mcp::{
    Accepted, Agreed, Asked, Decided, Launch, Listing, Offer, PodServers, Server, ServerTool,
    Surroundings, Topic,
};
use crate::protocol::{AlertSource, ApprovalRequest, Verdict};
use crate::run::approval::denial;
use crate::run::batch::Call;
use crate::run::policy::{Decision, ServerQuestion};
use crate::run::{Interrupt, Run, Stopped, alert, interrupted};
use crate::tools::ToolSet;
use crate::trace::OrLog as _;
use futures_util::future::BoxFuture;
use question::{start_question, tools_question};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The tool name of rules about the start of a server.
pub const START_RULE: &str = crate::protocol::START_SERVER;
/// The tool name of rules about changed tools.
pub const TOOLS_RULE: &str = crate::protocol::CHANGED_TOOLS;
/// The most tools of all servers of a Pod, and the most bytes of their names, descriptions and
/// schemas.
const MAX_TOOLS: usize = 256;
const MAX_SPECS: usize = 512 * 1024;
/// The most reported sentences about the tools of one list; `:mcp` shows all.
const MAX_NOTES: usize = 3;
/// The interval at which the settings are read while a request about a server waits.
const LOOK: Duration = Duration::from_secs(1);

/// The servers that a Pod may use, and those that it uses.
#[derive(Clone)]
pub struct Servers {
    pub configured: Arc<McpServers>,
    /// The servers that the settings name now; `None` where they cannot be read.
    pub configured_now: Arc<dyn Fn() -> BoxFuture<'static, Option<McpServers>> + Send + Sync>,
    pub in_use: PodServers,
    /// The person's environment.
    pub env: Arc<Env>,
    pub http: Http,
    /// The directory of the files that servers write.
    pub dir: PathBuf,
}

impl Servers {
    fn is_empty(&self) -> bool {
        let McpServers { servers, problems } = &*self.configured;
        servers.is_empty() && problems.is_empty() && self.in_use.servers().is_empty()
    }

    /// The reason why a definition is not in force any more, if the settings have changed.
    async fn why_gone(&self, definition: &McpDefinition) -> Option<String> {
        let now = (self.configured_now)().await?;
        let name = &definition.name;
        match now.servers.iter().find(|server| server.name == *name) {
            Some(server) if server == definition => None,
            Some(_) => Some(format!("the settings define `{name}` in another way now")),
            None => Some(format!("{} does not name `{name}` any more", definition.file)),
        }
    }

    /// Resolves with the reason when the settings no longer define a server in this way.
    async fn gone(self, definition: McpDefinition) -> String {
        loop {
            tokio::time::sleep(LOOK).await;
            if let Some(why) = self.why_gone(&definition).await {
                return why;
            }
        }
    }
}

/// The outcome of a question about a server.
enum Answered {
    Allowed,
    /// Holds the reason.
    Refused(String),
}

impl Run {
    /// Starts the servers that the Pod may use, and waits for their tools. A server that does not
    /// start is reported once, and the run continues without it.
    pub(crate) async fn start_servers(&mut self) -> Result<(), Stopped> {
        if self.setup.servers.is_empty() {
            return Ok(());
        }
        let Servers { configured, in_use, .. } = self.setup.servers.clone();
        let names = configured.servers.iter().map(|server| server.name.as_str()).collect();
        in_use.keep_only(&names, &configured.problems);
        for problem in &configured.problems {
            self.report(Topic::Settings(problem.clone()), problem, problem).await;
        }
        for definition in &configured.servers {
            self.start_server(definition).await?;
        }
        let servers = in_use.servers();
        self.wait_for(&servers).await?;
        for server in servers {
            let failed = Topic::Failed(server.definition.name.clone());
            match server.failure() {
                Some(why) => self.report(failed, &why, &why).await,
                None if server.is_ready() => in_use.is_right(&failed),
                None => {}
            }
            if let Some(listing) = server.listing() {
                self.accept_tools(&server, &listing).await?;
            }
        }
        self.report_left_out().await;
        Ok(())
    }

    /// Starts a server unless it runs, or reports why it is not started. Policy decides about a
    /// running server, too, because rules may have changed.
    async fn start_server(&mut self, definition: &McpDefinition) -> Result<(), Stopped> {
        let (name, servers) = (&definition.name, self.setup.servers.clone());
        let ctx = self.context();
        let surroundings =
            Surroundings { ctx: &ctx, env: &servers.env, http: &servers.http, kept: &servers.dir };
        let launch = Launch::of(definition, &surroundings);
        // A server with former settings has outdated grants, so it is released even if the new one
        // does not start.
        servers.in_use.release(name, launch.as_ref().ok().map(|(key, _)| key.as_str()));
        let why = match launch {
            Ok((key, launch)) => {
                match self.approval_for(start_question(definition), definition).await? {
                    Answered::Allowed => {
                        if !servers.in_use.holds(name, &key) {
                            servers.in_use.hold(key, definition, launch);
                        }
                        servers.in_use.is_right(&Topic::NotStarted(name.clone()));
                        return Ok(());
                    }
                    Answered::Refused(why) => why,
                }
            }
            Err(why) => why,
        };
        servers.in_use.release(name, None);
        let what = format!("not started: {why}");
        self.report_of(name, Topic::NotStarted(name.clone()), &what).await;
        Ok(())
    }

    /// Decides a question about a server by policy, or by an approval request where policy needs
    /// one. Policy is evaluated each time, because rules may have changed; the decision of a person
    /// is cached until the host ends.
    async fn approval_for(
        &mut self,
        question: ServerQuestion,
        definition: &McpDefinition,
    ) -> Result<Answered, Stopped> {
        let tool = question.tool;
        let (server, sha256) = (question.server.clone(), question.sha256.clone());
        let asked = Asked { tool: tool.to_owned(), server, sha256 };
        let servers = self.setup.servers.clone();
        let draft = match self.decide_about(question).await {
            Decision::Allow(_) => return Ok(Answered::Allowed),
            Decision::Deny(why) => return Ok(Answered::Refused(why)),
            Decision::NeedsApproval(draft) => draft,
        };
        match servers.in_use.decision(&asked) {
            Some(Decided::Agreed) => return Ok(Answered::Allowed),
            Some(Decided::Refused(why)) => return Ok(Answered::Refused(why)),
            None => {}
        }
        if let Some(why) = servers.why_gone(definition).await {
            return Ok(Answered::Refused(why));
        }
        let id = format!("{tool}:{}", definition.name);
        let call = Call { id, name: tool.to_owned(), arguments: "{}".into() };
        let gone = Box::pin(servers.clone().gone(definition.clone()));
        let verdict = self.request_approval(&call, &draft, gone).await?.map(|(verdict, _)| verdict);
        if let Some(decided) = verdict.as_ref().and_then(decided) {
            servers.in_use.decide(asked, decided);
        }
        match verdict {
            Some(Verdict::Once | Verdict::Pod { .. } | Verdict::Tree { .. }) => {
                Ok(Answered::Allowed)
            }
            Some(Verdict::Deny { reason }) => Ok(Answered::Refused(denial(&reason))),
            Some(Verdict::Withdrawn { why }) if *self.ports.interrupt.borrow() == Interrupt::Go => {
                Ok(Answered::Refused(why))
            }
            // No question is asked here, so nothing answers one.
            Some(Verdict::Answer { .. } | Verdict::Withdrawn { .. }) | None => {
                Err(Stopped::Interrupted)
            }
        }
    }

    /// Waits until servers that were just started offer their tools, or the run is interrupted.
    async fn wait_for(&mut self, servers: &[Arc<Server>]) -> Result<(), Stopped> {
        let starting: Vec<&str> = servers
            .iter()
            .filter(|server| server.is_first_starting())
            .map(|server| server.definition.name.as_str())
            .collect();
        if !starting.is_empty() {
            self.doing(format!("starting MCP servers: {}", starting.join(", "))).await;
        }
        let mut interrupt = self.ports.interrupt.clone();
        let started = servers.iter().map(|server| server.want_and_wait());
        tokio::select! {
            biased;
            () = interrupted(&mut interrupt) => Err(Stopped::Interrupted),
            _ = futures_util::future::join_all(started) => Ok(()),
        }
    }

    /// Determines which tools of a list are offered. The first list of a server is stored; tools
    /// that differ from it later wait for an approval.
    async fn accept_tools(&mut self, server: &Server, listing: &Listing) -> Result<(), Stopped> {
        let (in_use, list) = (self.setup.servers.in_use.clone(), listing.sha256());
        let name = &server.definition.name;
        if in_use.accepted(name).is_some_and(|accepted| accepted.list == list) {
            return Ok(());
        }
        self.report_unfit(name, &listing.notes).await;
        let (identity, store) = (server.definition.sha256(), self.setup.store.clone());
        // If the database cannot be read, every tool counts as changed.
        let agreed = store.agreed_tools(&identity).await.unwrap_or_else(|_| Some(BTreeMap::new()));
        let agreed = agreed.map(Agreed);
        let changed = agreed.as_ref().map_or(Vec::new(), |agreed| listing.changed(agreed));
        let mut refused = BTreeSet::new();
        if let (false, Some(agreed)) = (changed.is_empty(), &agreed) {
            let question = tools_question(server, &list, &changed, agreed);
            if let Answered::Refused(why) = self.approval_for(question, &server.definition).await? {
                refused = changed.iter().map(|offer| offer.tool.clone()).collect();
                self.report_refused(name, &refused, &why).await;
            }
        }
        if refused.is_empty() {
            in_use.is_right(&Topic::Refused(name.clone()));
        }
        if changed.is_empty() {
            // The stored tools count for every Pod. An approval of changes may cover only some
            // Pods, so changed tools are not stored.
            store
                .agree_to_tools(&identity, listing.agreed().0)
                .await
                .or_log("store the tools of a server");
        }
        let offered = listing.offers.iter().map(|offer| offer.tool.clone());
        let tools = offered.filter(|tool| !refused.contains(tool)).collect();
        in_use.accept(name, Accepted { list, tools });
        Ok(())
    }

    /// The current tools: those of the host, and those of the servers that the Pod uses.
    pub(crate) fn tools_now(&self) -> ToolSet {
        let mut set = self.setup.tool_set.borrow().clone();
        let mut tools = self.accepted_tools();
        tools.truncate(fitting(tools.iter().map(|tool| &tool.offer)));
        for tool in tools {
            // A tool cannot replace another one.
            set = set.with(Arc::new(tool)).unwrap_or(set);
        }
        set
    }

    /// The tools of the servers that the Pod uses, in the order of their servers.
    fn accepted_tools(&self) -> Vec<ServerTool> {
        let in_use = &self.setup.servers.in_use;
        let mut tools = Vec::new();
        for server in in_use.servers() {
            let accepted = in_use.accepted(&server.definition.name);
            let (Some(listing), Some(accepted)) = (server.listing(), accepted) else { continue };
            // The next turn checks a list that has changed; until then no tool of it is offered.
            if listing.sha256() != accepted.list {
                continue;
            }
            let offers = listing.offers.iter();
            let offers = offers.filter(|offer| accepted.tools.contains(&offer.tool)).cloned();
            tools.extend(offers.map(|offer| ServerTool { server: server.clone(), offer }));
        }
        tools
    }

    /// Reports tools that are narrowed or left out because of their names or schemas.
    async fn report_unfit(&self, server: &str, notes: &[String]) {
        let topic = Topic::Unfit(server.to_owned());
        if notes.is_empty() {
            return self.setup.servers.in_use.is_right(&topic);
        }
        let mut what = notes[..notes.len().min(MAX_NOTES)].join("; ");
        if notes.len() > MAX_NOTES {
            what.push_str(&format!("; and {} more, which :mcp lists", notes.len() - MAX_NOTES));
        }
        self.report_of(server, topic, &what).await;
    }

    /// Reports tools that a person or policy refused.
    async fn report_refused(&self, server: &str, tools: &BTreeSet<String>, why: &str) {
        let names = tools.iter().cloned().collect::<Vec<_>>().join(", ");
        let what = format!("new or changed tools are left out: {names} ({why})");
        self.report_of(server, Topic::Refused(server.to_owned()), &what).await;
    }

    /// Reports tools beyond the limit of tools.
    async fn report_left_out(&self) {
        let tools = self.accepted_tools();
        let left = &tools[fitting(tools.iter().map(|tool| &tool.offer))..];
        let Some(first) = left.first() else {
            return self.setup.servers.in_use.is_right(&Topic::NoRoom);
        };
        let sentence = format!(
            "tools of MCP servers are left out, from `{}` on ({} in all): a pod has at most {MAX_TOOLS}, which take \
             {} KiB; `enabled = false` below [mcp.<name>] leaves a whole server out",
            first.offer.name,
            left.len(),
            MAX_SPECS / 1024
        );
        self.report(Topic::NoRoom, &sentence, &sentence).await;
    }

    /// Reports the problems of a server.
    async fn report_of(&self, server: &str, topic: Topic, what: &str) {
        self.report(topic, what, &format!("MCP server `{server}`: {what}")).await;
    }

    /// Records the problem `what`, and reports it with `sentence` if it is new.
    async fn report(&self, topic: Topic, what: &str, sentence: &str) {
        if self.setup.servers.in_use.is_wrong(topic, what) {
            self.publish(alert(AlertSource::Pod, sentence)).await;
        }
    }
}

/// The number of leading tools that fit into a model request.
fn fitting<'a>(offers: impl Iterator<Item = &'a Offer>) -> usize {
    let mut room = MAX_SPECS;
    let fits = |offer: &&Offer| {
        let size = offer.name.len() + offer.description.len() + offer.schema.to_string().len();
        let left = room.checked_sub(size);
        room = left.unwrap_or(0);
        left.is_some()
    };
    offers.take(MAX_TOOLS).take_while(fits).count()
}

/// Whether no call of a model waits for this request: the run itself asks whether a server may start, or whether its
/// tools are offered.
pub fn is_about_a_server(approval: &ApprovalRequest) -> bool {
    [START_RULE, TOOLS_RULE].contains(&approval.tool.as_str())
}

/// Records a decision about a server that was made while no run was under way. No call waits for
/// such a decision, so without this the next run would ask again.
pub(crate) fn note_decision(in_use: &PodServers, approval: &ApprovalRequest, verdict: &Verdict) {
    if !is_about_a_server(approval) {
        return;
    }
    if let Some(decided) = decided(verdict) {
        for asked in &approval.scripts {
            let server = asked.path.display().to_string();
            let asked = Asked { tool: approval.tool.clone(), server, sha256: asked.sha256.clone() };
            in_use.decide(asked, decided.clone());
        }
    }
}

/// The decision about a server in a verdict of a person; `None` for a withdrawn request.
fn decided(verdict: &Verdict) -> Option<Decided> {
    match verdict {
        Verdict::Once | Verdict::Pod { .. } | Verdict::Tree { .. } => Some(Decided::Agreed),
        Verdict::Deny { reason } => Some(Decided::Refused(denial(reason))),
        Verdict::Answer { .. } | Verdict::Withdrawn { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tools_of_all_servers_together_have_limits() {
        let offers = |count: usize, bytes: usize| {
            let tool =
                |number| json!({"name": format!("t{number}"), "description": "x".repeat(bytes)});
            let tools = (0..count).map(|number| Listing::of("s", &[tool(number)]).offers.remove(0));
            let tools: Vec<Offer> = tools.collect();
            fitting(tools.iter())
        };
        assert_eq!((offers(3, 10), offers(1000, 10)), (3, MAX_TOOLS));
        let large = offers(1000, 4000);
        assert!((120..131).contains(&large), "{large}");
    }
}
