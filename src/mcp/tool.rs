//! A tool of a server, as the tool set of a Pod holds it.

use crate::config::mcp::Reach;
use crate::llm::ToolSpec;
use crate::mcp::answer;
use crate::mcp::connection::Meanwhile;
use crate::mcp::listing::Offer;
use crate::mcp::server::Server;
use crate::tools::{Context, ExternalTool, Lane, Output};
use futures_util::future::BoxFuture;
use rmcp::model::JsonObject;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// One tool of a server.
pub struct ServerTool {
    pub server: Arc<Server>,
    pub offer: Offer,
}

impl ExternalTool for ServerTool {
    fn spec(&self) -> ToolSpec {
        let Offer { name, description, schema, .. } = &self.offer;
        ToolSpec { name: name.clone(), description: description.clone(), schema: schema.clone() }
    }

    /// As commands: such a tool may read what a file tool writes.
    fn lane(&self) -> Lane {
        Lane::Shell
    }

    fn approval_reason(&self) -> Option<String> {
        let definition = &self.server.definition;
        let name = &definition.name;
        match definition.reach {
            Reach::Http { .. } => {
                Some(format!("a call of the MCP server `{name}`, which is reached over HTTP"))
            }
            Reach::Program { .. } if definition.network => {
                Some(format!("a call of the MCP server `{name}`, which has the network"))
            }
            Reach::Program { .. } => None,
        }
    }

    fn call<'a>(
        &'a self,
        arguments: &'a str,
        ctx: &'a Context,
        cancel: &'a CancellationToken,
        live: &'a mut (dyn FnMut(String) + Send),
    ) -> BoxFuture<'a, Result<Output, String>> {
        Box::pin(async move {
            let arguments: JsonObject = serde_json::from_str(arguments)
                .map_err(|error| format!("the arguments are no JSON object: {error}"))?;
            let begun = Instant::now();
            let meanwhile = Meanwhile { progress: live, person: ctx.person.as_ref() };
            let answer = self.server.call(&self.offer.tool, arguments, cancel, meanwhile).await?;
            let (tool, ctx, took) = (self.offer.tool.clone(), ctx.clone(), begun.elapsed());
            let work = move || answer::output(&answer, &tool, took, &ctx);
            tokio::task::spawn_blocking(work).await.map_err(|_| "its answer was lost".to_owned())
        })
    }
}
