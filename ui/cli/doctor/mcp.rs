//! The MCP servers: whether each that the settings name could be started, and why one of the host failed.

use crate::cli::doctor::finding::Finding;
use crate::cli::doctor::host::Reached;
use crate::cli::doctor::within;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use yoi::config::dirs::Env;
use yoi::config::key_command::program_of;
use yoi::config::mcp::Reach;
use yoi::config::{McpDefinition, McpServers, Settings, url};
use yoi::protocol::{Event, McpServerState, Method};
use yoi::trace::redact;

const ABOUT: &str = "MCP servers";
/// How long the host may take to answer, and how long the directories on PATH may take.
const LOOK: Duration = Duration::from_secs(1);

/// Judges the servers of the person's own settings without starting one, then those that failed in the host: it has
/// those of workspaces, too.
pub async fn findings(
    settings: &Settings,
    env: &Env,
    workspace: &Path,
    host: Option<&Reached>,
) -> Vec<Finding> {
    // An entry without a command and a url only grants something to a server of a workspace.
    let own = settings.mcp.iter().filter(|(_, server)| !server.is_only_grants());
    let own: BTreeMap<_, _> = own.map(|(name, server)| (name.clone(), server.clone())).collect();
    let McpServers { servers, problems } =
        McpServers::of(&own, "config.toml", &BTreeMap::new(), "");
    let problem = |why: String| Finding::broken(ABOUT, "settings", why, "correct config.toml");
    let mut found: Vec<Finding> = problems.into_iter().map(problem).collect();
    for server in &servers {
        found.push(judged(server, env).await);
    }
    if let Some(host) = host {
        found.extend(failed(host, workspace).await);
    }
    found
}

async fn judged(server: &McpDefinition, env: &Env) -> Finding {
    let name = server.name.clone();
    if let Err(unset) = server.values(env) {
        let way_out = format!("set it where yoi starts, or take it out of [mcp.{name}]");
        return Finding::broken(ABOUT, name, unset.to_string(), way_out);
    }
    let command = match &server.reach {
        Reach::Program { command, .. } => command,
        // A path may hold a key.
        Reach::Http { url, .. } => {
            let origin: Vec<&str> = url::shown(url).splitn(4, '/').take(3).collect();
            let origin = redact(&origin.join("/")).into_owned();
            return Finding::ok(ABOUT, name, format!("{origin} (not connected to)"));
        }
    };
    let (argv, env) = (vec![command.clone()], env.clone());
    match within(LOOK, move || program_of(&argv, &env)).await {
        Some(Ok(path)) => {
            Finding::ok(ABOUT, name, format!("{} can be started (not run)", path.display()))
        }
        Some(Err(why)) => {
            let way_out = format!("install it, or correct `command` below [mcp.{name}]");
            Finding::broken(ABOUT, name, format!("cannot be started: {why}"), way_out)
        }
        None => {
            let text = "the file system of its program does not answer";
            Finding::broken(ABOUT, name, text, "mend the mount")
        }
    }
}

/// The servers that do not work now in the host, each with its reason.
async fn failed(host: &Reached, workspace: &Path) -> Vec<Finding> {
    let method = Method::ListServers { workspace: workspace.to_owned() };
    let answer = tokio::time::timeout(LOOK, host.client.call(None, method)).await;
    let Ok(Ok(Event::McpServers { servers, .. })) = answer else { return Vec::new() };
    let failed = servers.into_iter().filter(|server| server.state == McpServerState::Failed);
    let finding = failed.map(|server| {
        let why = server.last_error.unwrap_or_else(|| "for no known reason".into());
        let text = format!("does not work now: {why}");
        Finding::broken(ABOUT, server.name, text, format!("see `{}`", server.file))
    });
    finding.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::finding::Level;

    #[tokio::test]
    async fn each_server_of_the_settings_is_judged_and_none_is_started() {
        let temp = tempfile::tempdir().expect("a directory");
        let toml = "[mcp.good]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"exit 9\"]\n\
                    [mcp.gone]\ncommand = \"/nowhere/server\"\n\
                    [mcp.grants]\nnetwork = true\n\
                    [mcp.unset]\nurl = \"https://h/mcp\"\nheaders = { A = \"${NOT_SET}\" }\n\
                    [mcp.web]\nurl = \"https://h/mcp?key=hunter2\"\n\
                    [mcp.wrong]\nurl = \"ftp://h\"\n";
        std::fs::write(temp.path().join("config.toml"), toml).expect("a writable directory");
        let (settings, said) = Settings::load(temp.path());
        assert!(said.is_empty(), "{said:?}");
        let found = findings(&settings, &Env::new(), temp.path(), None).await;
        let found: Vec<_> =
            found.iter().map(|one| (one.name.as_str(), one.level, &*one.text)).collect();
        assert_eq!(
            found,
            [
                (
                    "settings",
                    Level::Broken,
                    "MCP server `wrong` in config.toml: its url begins with neither http:// nor https://"
                ),
                ("gone", Level::Broken, "cannot be started: there is no /nowhere/server"),
                ("good", Level::Ok, "/bin/sh can be started (not run)"),
                (
                    "unset",
                    Level::Broken,
                    "its header A takes ${NOT_SET}, which is not set where yoi was started"
                ),
                ("web", Level::Ok, "https://h (not connected to)"),
            ]
        );
    }
}
