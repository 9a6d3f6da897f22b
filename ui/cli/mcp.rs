//! `yoi mcp`: an MCP server on standard input and output, through which a client becomes an agent of the mesh and a
//! caller of Pods; and the change of a client's settings that makes it known there.

use crate::cli::mcp::install::{Change, Client};
use crate::headless::Failure;
use crate::start::Opening;
use std::io::IsTerminal as _;
use std::path::PathBuf;

mod agent;
mod host;
mod install;
mod mailbox;
mod pods;
mod server;
mod stdio;
mod tools;
mod waiting;
mod words;

/// The arguments of `yoi mcp`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Mcp {
    /// The name to join the mesh under; without it, that of the folder
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
    /// Make yoi known to an MCP client: shows the change of its settings first, and asks
    Install {
        /// The client
        client: Client,
        /// The name that its agents ask for, instead of that of their folder
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Make the change without asking
        #[arg(long)]
        yes: bool,
    },
    /// Take yoi out of the settings of an MCP client
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
    server::serve(opening.clone(), yoi::mesh::FolderAgent::new(&folder, name)).await
}
