//! The MCP servers of a Pod: policy decides whether one starts, and its tools are offered with the next
//! request. A tool that is other than a person agreed to waits for an approval.

use crate::config::dirs::Env;
use crate::config::{McpDefinition, McpServers};
use crate::llm::Http;
use crate::mcp::{
    Accepted, Decided, Launch, Listing, Offer, PodServers, Server, ServerTool, Surroundings,
};
use crate::protocol::{AlertSource, Verdict};
use crate::run::approval::denial;
use crate::run::batch::Call;
use crate::run::policy::{Decision, ServerQuestion};
use crate::run::{Run, Stopped, alert, interrupted};
use crate::tools::ToolSet;
use crate::trace::OrLog as _;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// The name under which rules speak about the start of a server.
pub const START: &str = "McpServer";
/// The name under which rules speak about tools that changed.
pub const TOOLS: &str = "McpTools";
/// Characters of a description in a request.
const MAX_SHOWN: usize = 400;

/// The servers that a Pod may use, and those that it uses.
#[derive(Clone)]
pub struct Servers {
    pub named: Arc<McpServers>,
    pub used: PodServers,
    /// The person's environment.
    pub env: Arc<Env>,
    pub http: Http,
    /// Where servers keep what they write.
    pub kept: PathBuf,
}

impl Servers {
    fn are_none(&self) -> bool {
        let McpServers { servers, problems } = &*self.named;
        servers.is_empty() && problems.is_empty() && self.used.servers().is_empty()
    }
}

impl Run {
    /// Starts the servers that the Pod may use, and waits for their tools. A server that does not start is said
    /// once, and the run goes on without it.
    pub(crate) async fn take_servers(&mut self) -> Result<(), Stopped> {
        if self.setup.servers.are_none() {
            return Ok(());
        }
        let (named, used) = (self.setup.servers.named.clone(), self.setup.servers.used.clone());
        for problem in &named.problems {
            self.say_once(problem).await;
        }
        used.keep_only(&named.servers.iter().map(|server| server.name.as_str()).collect());
        for definition in &named.servers {
            self.take_server(definition).await?;
        }
        let held = used.servers();
        self.wait_for(&held).await?;
        for server in held {
            if let Some(why) = server.failure() {
                self.say_once(&why).await;
            }
            if let Some(listing) = server.listing() {
                self.accept_tools(&server, &listing).await?;
            }
        }
        Ok(())
    }

    async fn take_server(&mut self, definition: &McpDefinition) -> Result<(), Stopped> {
        let (hash, servers) = (definition.sha256(), self.setup.servers.clone());
        let decided = servers.used.decision(&hash);
        if decided == Some(Decided::Refused) {
            return Ok(());
        }
        let ctx = self.context();
        let around =
            Surroundings { ctx: &ctx, env: &servers.env, http: &servers.http, kept: &servers.kept };
        let (key, launch) = match Launch::of(definition, &around) {
            Ok(launch) => launch,
            Err(why) => {
                let why = format!("MCP server `{}` is not started: {why}", definition.name);
                self.say_once(&why).await;
                return Ok(());
            }
        };
        if servers.used.holds(&definition.name, &key) {
            return Ok(());
        }
        let agreed = decided == Some(Decided::Agreed)
            || self.may_start(definition, &hash, &servers.used).await?;
        if agreed {
            servers.used.hold(key, definition, launch);
        }
        Ok(())
    }

    /// Whether policy, or a person, lets a server start.
    async fn may_start(
        &mut self,
        definition: &McpDefinition,
        hash: &str,
        used: &PodServers,
    ) -> Result<bool, Stopped> {
        let question = ServerQuestion {
            tool: START,
            server: definition.name.clone(),
            sha256: hash.to_owned(),
            because: "your approval: it starts an MCP server".into(),
            details: described(definition),
        };
        let refused =
            |why: String| format!("MCP server `{}` is not started: {why}", definition.name);
        match self.approved_by_policy(question).await? {
            Ok(()) => used.decide(hash, Decided::Agreed),
            Err(why) => {
                used.decide(hash, Decided::Refused);
                self.say_once(&refused(why)).await;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lets policy decide a question about a server, and a person where policy wants one; the error is why it is
    /// refused.
    async fn approved_by_policy(
        &mut self,
        question: ServerQuestion,
    ) -> Result<Result<(), String>, Stopped> {
        let (tool, server) = (question.tool, question.server.clone());
        match self.decide_about(question).await {
            Decision::Allow(_) => Ok(Ok(())),
            Decision::Deny(why) => Ok(Err(why)),
            Decision::NeedsApproval(draft) => {
                let call = Call {
                    id: format!("{tool}:{server}"),
                    name: tool.to_owned(),
                    arguments: "{}".into(),
                };
                match self.request_approval(&call, &draft).await? {
                    Some((Verdict::Once | Verdict::Pod { .. } | Verdict::Tree { .. }, _)) => {
                        Ok(Ok(()))
                    }
                    Some((Verdict::Deny { reason }, _)) => Ok(Err(denial(&reason))),
                    Some((Verdict::Withdrawn { .. }, _)) | None => Err(Stopped::Interrupted),
                }
            }
        }
    }

    /// Waits until servers that were just started offer their tools, or the run is interrupted.
    async fn wait_for(&mut self, held: &[Arc<Server>]) -> Result<(), Stopped> {
        let starting: Vec<&str> = held
            .iter()
            .filter(|server| server.is_new())
            .map(|s| s.definition.name.as_str())
            .collect();
        if !starting.is_empty() {
            self.doing(format!("starting MCP servers: {}", starting.join(", "))).await;
        }
        let mut interrupt = self.ports.interrupt.clone();
        let settled = futures_util::future::join_all(held.iter().map(|server| server.settled()));
        tokio::select! {
            biased;
            () = interrupted(&mut interrupt) => Err(Stopped::Interrupted),
            _ = settled => Ok(()),
        }
    }

    /// Finds out which tools of a list are offered. The first list of a server is remembered; what differs from
    /// it later waits for an approval.
    async fn accept_tools(&mut self, server: &Server, listing: &Listing) -> Result<(), Stopped> {
        let (used, list) = (self.setup.servers.used.clone(), listing.sha256());
        let name = &server.definition.name;
        if used.accepted(name).is_some_and(|accepted| accepted.list == list) {
            return Ok(());
        }
        for note in &listing.notes {
            self.say_once(&format!("MCP server `{name}`: {note}")).await;
        }
        let (identity, store) = (server.definition.sha256(), self.setup.store.clone());
        // Where the store does not answer, everything counts as changed.
        let agreed = store.agreed_tools(&identity).await.unwrap_or_else(|_| Some(BTreeMap::new()));
        let changed = match &agreed {
            None => Vec::new(),
            Some(agreed) => listing.changed(agreed).offers,
        };
        let refused = match changed.as_slice() {
            [] => BTreeSet::new(),
            changed => match self.approved_by_policy(tools_question(server, &list, changed)).await?
            {
                Ok(()) => BTreeSet::new(),
                Err(why) => {
                    let left: BTreeSet<String> = changed.iter().map(|o| o.tool.clone()).collect();
                    let names = left.iter().cloned().collect::<Vec<_>>().join(", ");
                    let said =
                        format!("MCP server `{name}`: changed tools are left out ({names}): {why}");
                    self.say_once(&said).await;
                    left
                }
            },
        };
        if refused.is_empty() {
            store
                .agree_to_tools(&identity, listing.hashes())
                .await
                .or_log("store the tools of a server");
        }
        let offered = listing.offers.iter().map(|offer| offer.tool.clone());
        let tools = offered.filter(|tool| !refused.contains(tool)).collect();
        used.accept(name, Accepted { list, tools });
        Ok(())
    }

    /// The tools that are there now: those of the host, and those of the servers that the Pod uses.
    pub(crate) fn tools_now(&self) -> ToolSet {
        let mut set = self.setup.tool_set.borrow().clone();
        let used = &self.setup.servers.used;
        for server in used.servers() {
            let accepted = used.accepted(&server.definition.name);
            let (Some(listing), Some(accepted)) = (server.listing(), accepted) else { continue };
            let is_accepted = |offer: &&Offer| accepted.tools.contains(&offer.tool);
            // A list that changed since is offered after it was looked at.
            if listing.sha256() != accepted.list {
                continue;
            }
            for offer in listing.offers.iter().filter(is_accepted) {
                let tool = ServerTool { server: server.clone(), offer: offer.clone() };
                // No tool takes the place of another.
                set = set.with(Arc::new(tool)).unwrap_or(set);
            }
        }
        set
    }

    async fn say_once(&self, sentence: &str) {
        if self.setup.servers.used.is_new(sentence) {
            self.publish(alert(AlertSource::Pod, sentence)).await;
        }
    }
}

/// What a person decides on: how a server is reached and what it is granted.
fn described(definition: &McpDefinition) -> String {
    use crate::config::mcp::Reach;
    let mut lines = Vec::new();
    let list =
        |names: Vec<&str>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let names = list(definition.names().collect());
    let takes = definition.takes();
    let takes = list(takes.iter().map(String::as_str).collect());
    let yes = |is: bool| if is { "yes" } else { "no" };
    match &definition.reach {
        Reach::Program { .. } => {
            lines.push(format!("command: {}", definition.reached_by()));
            lines.push(format!("variables it gets: {names}"));
            lines.push(format!("your variables it takes: {takes}"));
            lines.push(format!("network: {}", yes(definition.network)));
            let scope = if definition.write { "reads and writes" } else { "only reads" };
            lines.push(format!("files: {scope} the scope of this pod"));
        }
        Reach::Http { url, .. } => {
            lines.push(format!("address: {url}"));
            lines.push(format!("headers it gets: {names}"));
            lines.push(format!("your variables it takes: {takes}"));
        }
    }
    lines.push(format!("named in: {}", definition.file));
    lines.join("\n")
}

fn tools_question(server: &Server, list: &str, changed: &[Offer]) -> ServerQuestion {
    let shown = |offer: &Offer| {
        let text: String = offer.description.chars().take(MAX_SHOWN).collect();
        format!(
            "{}:\n  {}\n  arguments: {}",
            offer.tool,
            text.replace('\n', "\n  "),
            arguments(offer)
        )
    };
    ServerQuestion {
        tool: TOOLS,
        server: server.definition.name.clone(),
        sha256: list.to_owned(),
        because: "your approval: tools of an MCP server are new or not as they were".into(),
        details: changed.iter().map(shown).collect::<Vec<_>>().join("\n"),
    }
}

fn arguments(offer: &Offer) -> String {
    let properties = offer.schema.get("properties").and_then(serde_json::Value::as_object);
    properties.map(|all| all.keys().cloned().collect::<Vec<_>>().join(", ")).unwrap_or_default()
}
