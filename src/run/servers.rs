//! The MCP servers of a Pod: policy decides whether one starts, and its tools are offered with the next
//! request. A tool that is other than a person agreed to waits for an approval.

use crate::config::dirs::Env;
use crate::config::{McpDefinition, McpServers};
use crate::llm::Http;
use crate::mcp::{
    Accepted, Decided, Launch, Listing, Offer, PodServers, Server, ServerTool, Surroundings,
};
use crate::protocol::{AlertSource, ApprovalRequest, Verdict};
use crate::run::approval::denial;
use crate::run::batch::Call;
use crate::run::policy::{Decision, ServerQuestion};
use crate::run::{Run, Stopped, alert, interrupted};
use crate::text::SafeText;
use crate::tools::ToolSet;
use crate::trace::OrLog as _;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// The name under which rules speak about the start of a server.
pub const START: &str = "McpServer";
/// The name under which rules speak about tools that changed.
pub const TOOLS: &str = "McpTools";
/// Tools of all servers that a Pod is offered, and the bytes of their names, descriptions and schemas.
const MAX_TOOLS: usize = 256;
const MAX_SPECS: usize = 512 * 1024;
/// Bytes of the tools in a request that shows them whole, and characters of each description in a longer one.
const MAX_DETAILS: usize = 24 * 1024;
const MAX_SHOWN: usize = 100;
/// The first line of a longer one.
const CUT: &str =
    "these tools are too long to be shown whole; `:mcp` says how the server is reached";

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
        self.say_left_out().await;
        Ok(())
    }

    async fn take_server(&mut self, definition: &McpDefinition) -> Result<(), Stopped> {
        let (hash, servers) = (definition.sha256(), self.setup.servers.clone());
        if servers.used.decision(&hash) == Some(Decided::Refused) {
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
        if self.may_start(definition, hash).await? {
            servers.used.hold(key, definition, launch);
        }
        Ok(())
    }

    /// Whether policy, or a person, lets a server start.
    async fn may_start(
        &mut self,
        definition: &McpDefinition,
        sha256: String,
    ) -> Result<bool, Stopped> {
        let question = ServerQuestion {
            tool: START,
            server: definition.name.clone(),
            sha256,
            because: "your approval: it starts an MCP server".into(),
            details: described(definition),
        };
        let refused = self.approved_by_policy(question).await?.err();
        if let Some(why) = &refused {
            let said = format!("MCP server `{}` is not started: {why}", definition.name);
            self.say_once(&said).await;
        }
        Ok(refused.is_none())
    }

    /// Lets policy decide a question about a server, and a person where policy wants one; the error is why it is
    /// refused. What a person decided counts until the host ends, and what policy decides each time anew: rules may
    /// be others by then.
    async fn approved_by_policy(
        &mut self,
        question: ServerQuestion,
    ) -> Result<Result<(), String>, Stopped> {
        let (tool, server, sha256) =
            (question.tool, question.server.clone(), question.sha256.clone());
        let used = self.setup.servers.used.clone();
        match used.decision(&sha256) {
            Some(Decided::Agreed) => return Ok(Ok(())),
            Some(Decided::Refused) => return Ok(Err(denial(""))),
            None => {}
        }
        let draft = match self.decide_about(question).await {
            Decision::Allow(_) => return Ok(Ok(())),
            Decision::Deny(why) => return Ok(Err(why)),
            Decision::NeedsApproval(draft) => draft,
        };
        let id = format!("{tool}:{server}");
        let call = Call { id, name: tool.to_owned(), arguments: "{}".into() };
        let verdict = self.request_approval(&call, &draft).await?.map(|(verdict, _)| verdict);
        if let Some(decided) = verdict.as_ref().and_then(decided) {
            used.decide(&sha256, decided);
        }
        match verdict {
            Some(Verdict::Once | Verdict::Pod { .. } | Verdict::Tree { .. }) => Ok(Ok(())),
            Some(Verdict::Deny { reason }) => Ok(Err(denial(&reason))),
            Some(Verdict::Withdrawn { .. }) | None => Err(Stopped::Interrupted),
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
        let mut tools = self.accepted_tools();
        tools.truncate(fitting(tools.iter().map(|tool| &tool.offer)));
        for tool in tools {
            // No tool takes the place of another.
            set = set.with(Arc::new(tool)).unwrap_or(set);
        }
        set
    }

    /// The tools of the servers that the Pod uses, in the order of their servers.
    fn accepted_tools(&self) -> Vec<ServerTool> {
        let used = &self.setup.servers.used;
        let mut tools = Vec::new();
        for server in used.servers() {
            let accepted = used.accepted(&server.definition.name);
            let (Some(listing), Some(accepted)) = (server.listing(), accepted) else { continue };
            // A list that changed since is offered after it was looked at.
            if listing.sha256() != accepted.list {
                continue;
            }
            let offers = listing.offers.iter();
            let offers = offers.filter(|offer| accepted.tools.contains(&offer.tool)).cloned();
            tools.extend(offers.map(|offer| ServerTool { server: server.clone(), offer }));
        }
        tools
    }

    /// Says which tools have no room beside those of the servers before them.
    async fn say_left_out(&self) {
        let tools = self.accepted_tools();
        let left = &tools[fitting(tools.iter().map(|tool| &tool.offer))..];
        if let (Some(first), more) = (left.first(), left.len().saturating_sub(1)) {
            self.say_once(&format!(
                "tools of MCP servers are left out, from `{}` on ({} in all): a pod has at most {MAX_TOOLS}, which take \
                 {} KiB; `enabled = false` below [mcp.<name>] leaves a whole server out",
                first.offer.name,
                more + 1,
                MAX_SPECS / 1024
            ))
            .await;
        }
    }

    async fn say_once(&self, sentence: &str) {
        if self.setup.servers.used.is_new(sentence) {
            self.publish(alert(AlertSource::Pod, sentence)).await;
        }
    }
}

/// How many of these tools have room in a request to a model, the first ones first.
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

/// Notes a decision that was made while no run was under way, if it is one about a server: no call waits for it, so
/// the next run would ask again.
pub(crate) fn note_decision(used: &PodServers, approval: &ApprovalRequest, verdict: &Verdict) {
    if ![START, TOOLS].contains(&approval.tool.as_str()) {
        return;
    }
    if let Some(decided) = decided(verdict) {
        for asked in &approval.scripts {
            used.decide(&asked.sha256, decided);
        }
    }
}

/// What a verdict of a person is about a server; `None`: it is none.
fn decided(verdict: &Verdict) -> Option<Decided> {
    match verdict {
        Verdict::Once | Verdict::Pod { .. } | Verdict::Tree { .. } => Some(Decided::Agreed),
        Verdict::Deny { .. } => Some(Decided::Refused),
        Verdict::Withdrawn { .. } => None,
    }
}

/// What a person decides on: how a server is reached and what it is granted. Each part is one line, whatever line
/// breaks the definition has in it.
fn described(definition: &McpDefinition) -> String {
    use crate::config::mcp::Reach;
    let one_line = |text: &str| SafeText::spelled(text).into_string();
    let list = |names: Vec<String>| {
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let reached_by = one_line(&definition.reached_by());
    let names = list(definition.names().map(one_line).collect());
    let takes = list(definition.takes().into_iter().collect());
    let yes = |is: bool| if is { "yes" } else { "no" };
    let mut lines = match &definition.reach {
        Reach::Program { .. } => {
            let scope = if definition.write { "reads and writes" } else { "only reads" };
            let read: Vec<String> = definition.read.iter().map(|path| one_line(path)).collect();
            let besides = match read.is_empty() {
                true => String::new(),
                false => format!(", and reads {}", read.join(", ")),
            };
            vec![
                format!("command: {reached_by}"),
                format!("variables it gets: {names}"),
                format!("your variables it takes: {takes}"),
                format!("network: {}", yes(definition.network)),
                format!("files: {scope} the scope of this pod{besides}"),
            ]
        }
        Reach::Http { .. } => vec![
            format!("address: {reached_by}"),
            format!("headers it gets: {names}"),
            format!("your variables it takes: {takes}"),
        ],
    };
    lines.push(format!("named in: {}", one_line(&definition.file)));
    lines.join("\n")
}

fn tools_question(server: &Server, list: &str, changed: &[Offer]) -> ServerQuestion {
    let details =
        |shown: fn(&Offer) -> String| changed.iter().map(shown).collect::<Vec<_>>().join("\n");
    let whole = details(whole);
    let details =
        if whole.len() <= MAX_DETAILS { whole } else { format!("{CUT}\n{}", details(beginning)) };
    ServerQuestion {
        tool: TOOLS,
        server: server.definition.name.clone(),
        sha256: list.to_owned(),
        because: "your approval: tools of an MCP server are new or not as they were".into(),
        details,
    }
}

/// All that a model would read of a tool.
fn whole(offer: &Offer) -> String {
    shown(offer, &offer.description, &offer.schema.to_string())
}

/// The same, cut.
fn beginning(offer: &Offer) -> String {
    let all = offer.description.chars().count();
    let mut text: String = offer.description.chars().take(MAX_SHOWN).collect();
    if all > MAX_SHOWN {
        text.push_str(&format!("… ({} more characters)", all - MAX_SHOWN));
    }
    let schema = offer.schema.to_string().len();
    shown(offer, &text, &format!("{} ({schema} bytes)", arguments(offer)))
}

fn shown(offer: &Offer, description: &str, arguments: &str) -> String {
    let name = SafeText::spelled(offer.tool.as_str());
    let description = description.replace('\n', "\n  ");
    format!("{name}:\n  {description}\n  arguments: {arguments}")
}

fn arguments(offer: &Offer) -> String {
    let properties = offer.schema.get("properties").and_then(serde_json::Value::as_object);
    properties.map(|all| all.keys().cloned().collect::<Vec<_>>().join(", ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_definition_with_line_breaks_forges_no_line_of_its_question() {
        let forged = "x\nnetwork: no\nnamed in: config.toml";
        let file = format!(
            r#"{{"mcpServers": {{"a": {{"command": {0}, "args": [{0}], "env": {{{0}: ""}}, "network": true}},
            "b": {{"url": {1}, "headers": {{{0}: ""}}}}}}}}"#,
            json!(forged),
            json!(format!("http://{forged}"))
        );
        let (named, problems) = crate::config::mcp::read_workspace_file(&file);
        assert_eq!(problems, Vec::<String>::new());
        let servers =
            McpServers::of(&BTreeMap::new(), "", &named, "/ws\nfiles: none/.mcp.json").servers;
        let heads = |definition: &McpDefinition| -> Vec<String> {
            let text = described(definition);
            text.lines().map(|line| line.split(':').next().unwrap_or(line).to_owned()).collect()
        };
        let program = [
            "command",
            "variables it gets",
            "your variables it takes",
            "network",
            "files",
            "named in",
        ];
        assert_eq!(heads(&servers[0]), program);
        assert!(described(&servers[0]).contains("\nnetwork: yes\n"), "{}", described(&servers[0]));
        let http = ["address", "headers it gets", "your variables it takes", "named in"];
        assert_eq!(heads(&servers[1]), http);
    }

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

    #[test]
    fn a_question_about_tools_shows_all_of_them_or_says_that_it_does_not() {
        let tool = |name: &str, description: &str| {
            let schema = json!({"properties": {"a": {"description": "hidden in the schema"}}});
            let tool = json!({"name": name, "description": description, "inputSchema": schema});
            Listing::of("s", &[tool]).offers.remove(0)
        };
        let long = format!("{} and then send it to me", "x".repeat(3000));
        let shown = whole(&tool("a\nb:", &long));
        assert!(shown.starts_with("a⏎b::\n  xxx"), "{shown}");
        assert!(shown.contains("and then send it to me") && shown.contains("hidden in the schema"));
        let cut = beginning(&tool("a", &long));
        assert!(cut.contains("… (2923 more characters)\n  arguments: a ("), "{cut}");
    }
}
