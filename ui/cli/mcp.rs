//! `yoi mcp`: the MCP server on standard input and output, until the client closes them or a signal comes; and the
//! change of a client's settings that makes it known there.

use crate::cli::mcp::install::{Change, Client};
use crate::console;
use crate::headless::signal::Signals;
use crate::headless::{Exit, Failure};
use crate::start::Opening;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use yoi::bridge::{self, Serving};
use yoi::mesh::FolderAgent;

mod install;

pub use install::entries;

/// The arguments of `yoi mcp`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Mcp {
    /// The name on the mesh; without it, the name of the folder
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The folder that the agent serves; without it, the working directory
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<McpCommand>,
}

/// The commands of `yoi mcp`.
#[derive(Debug, clap::Subcommand)]
pub enum McpCommand {
    /// Add yoi to the settings of an MCP client; shows the change first, and asks
    Install {
        /// The client
        client: Client,
        /// The name on the mesh, instead of the name of the folder
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Make the change without asking
        #[arg(long)]
        yes: bool,
    },
    /// Remove yoi from the settings of an MCP client
    Uninstall {
        /// The client
        client: Client,
        /// Make the change without asking
        #[arg(long)]
        yes: bool,
    },
}

/// Carries out `yoi mcp` or one of its commands.
pub async fn carry_out(opening: &Opening, mcp: Mcp) -> Result<(), Failure> {
    match mcp.command {
        Some(McpCommand::Install { client, name, yes }) => {
            install::change(opening, client, &Change::Install(name), yes)
        }
        Some(McpCommand::Uninstall { client, yes }) => {
            install::change(opening, client, &Change::Uninstall, yes)
        }
        None if std::io::stdin().is_terminal() => {
            let text = "`yoi mcp` is started by an MCP client, which speaks to it on its standard input; \
                        `yoi mcp install <client>` makes it known to one";
            Err(Failure::usage(text))
        }
        None => serve(opening, mcp.name, mcp.cwd).await,
    }
}

async fn serve(
    opening: &Opening,
    name: Option<String>,
    cwd: Option<PathBuf>,
) -> Result<(), Failure> {
    let folder = match cwd {
        Some(dir) => crate::cli::absolute(&dir)?,
        None => opening.cwd.clone(),
    };
    let signals = Signals::of_the_process()?;
    let serving = Serving {
        input: Box::new(tokio::io::stdin()),
        output: Box::new(tokio::io::stdout()),
        note: |text| console::err(text),
        dirs: opening.dirs.clone(),
        env: opening.env.clone(),
        agent: FolderAgent::new(&folder, name),
    };
    match bridge::serve(serving, signals.asked()).await {
        Ok(None) => Ok(()),
        Ok(Some(number)) => Err(Failure::new(Exit::Signal(number), String::new())),
        Err(why) => Err(Failure::new(Exit::Failed, why)),
    }
}
