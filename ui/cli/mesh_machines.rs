//! `yoi mesh init`, `join` and `leave`: the mesh across machines.

use crate::cli::mesh::failed;
use crate::console;
use crate::headless::Failure;
use crate::start::Opening;
use std::io::Read as _;
use std::path::PathBuf;
use yoi::client::find;
use yoi::mesh::machines::{self, Credentials, MachineName, ServerDir};
use yoi::protocol::mesh::MeshView;
use yoi::protocol::{Event, Method};
use yoi::text::shell_word;

/// The directory of a server that no other is named for, below the data directory.
const SERVER: &str = "mesh-server";
/// The longest line that is read from standard input, in bytes.
const LONGEST: u64 = 1024;

/// The arguments of `yoi mesh init`.
#[derive(Debug, clap::Args)]
pub struct Init {
    /// The directory of the server; the default is `mesh-server` in the data directory
    dir: Option<PathBuf>,
    /// By which the machines reach the server: a host name or an address, with or without a port; the default is
    /// the name of this machine, and port 4223
    #[arg(long, value_name = "HOST", conflicts_with_all = ["add", "remove"])]
    address: Option<String>,
    /// Admit a machine of this name to the running server, and print the line that connects it
    #[arg(long, value_name = "NAME", value_parser = name)]
    add: Option<MachineName>,
    /// Refuse a machine from now on, and delete what the server holds for it
    #[arg(long, value_name = "NAME", value_parser = name, conflicts_with = "add")]
    remove: Option<MachineName>,
}

fn name(text: &str) -> Result<MachineName, String> {
    MachineName::parse(text).map_err(|error| error.to_string())
}

/// Makes a server, or changes which machines it admits.
pub async fn init(opening: &Opening, wanted: Init) -> Result<(), Failure> {
    let named = wanted.dir.as_ref().map(|dir| opening.cwd.join(dir));
    let dir = named.clone().unwrap_or_else(|| opening.dirs.data.join(SERVER));
    let mut server = match wanted.add.is_some() || wanted.remove.is_some() {
        true => ServerDir::open(&dir).map_err(failed)?,
        false => ServerDir::init(&dir, wanted.address.as_deref()).map_err(failed)?,
    };
    if let Some(machine) = wanted.add {
        let credentials = server.add(machine.clone()).await.map_err(failed)?;
        console::err(&format!(
            "run this on {machine}; it holds the key of that machine, so show it to no one else:"
        ));
        console::out(&format!("yoi mesh join {}", shell_word(&credentials.line())));
        return Ok(());
    }
    if let Some(machine) = wanted.remove {
        server.remove(&machine).await.map_err(failed)?;
        console::err(&format!("{machine} is refused from now on"));
        return Ok(());
    }
    let configuration = server.configuration();
    let configuration = configuration.to_string_lossy();
    let dir = named.map(|dir| format!("{} ", shell_word(&dir.to_string_lossy())));
    console::out(&format!("wrote {configuration}"));
    console::err(&format!(
        "machines reach it at {}; another address: --address <host>:<port>",
        server.address()
    ));
    console::err(&format!("start it: nats-server -c {}", shell_word(&configuration)));
    console::err(&format!(
        "admit a machine: yoi mesh init {}--add <name>",
        dir.unwrap_or_default()
    ));
    Ok(())
}

/// Connects this machine: the line is tried, then stored; a running host notices.
pub async fn join(opening: &Opening, words: Vec<String>) -> Result<(), Failure> {
    let mut line = words.join(" ");
    if line == "-" {
        line.clear();
        std::io::stdin().take(LONGEST).read_to_string(&mut line).map_err(failed)?;
    }
    // The line as it was printed begins with the command.
    let line = line.trim().trim_start_matches("yoi mesh join").trim().trim_matches('\'');
    let credentials = Credentials::parse(line);
    let credentials = credentials.map_err(|error| Failure::usage(error.to_string()))?;
    machines::admitted(&credentials).await.map_err(failed)?;
    credentials.write(&opening.dirs.state).map_err(failed)?;
    let Credentials { machine, server, .. } = &credentials;
    console::out(&format!("this machine is {machine} on the mesh of {server}"));
    console::err(
        "agents of other machines are named <machine>:<agent>; Pods take part with :mesh join",
    );
    Ok(())
}

/// Disconnects this machine for good.
pub fn leave(opening: &Opening) -> Result<(), Failure> {
    match Credentials::remove(&opening.dirs.state).map_err(failed)? {
        true => console::out("this machine is no longer connected to other machines"),
        false => console::err("this machine was not connected to other machines"),
    }
    Ok(())
}

/// The agents of other machines, as the running host knows them. Why there are none is said on standard error.
pub async fn agents(opening: &Opening) -> Vec<String> {
    let Ok(Some((client, _events))) = find::connect(&opening.dirs.data).await else {
        return Vec::new();
    };
    let view = client.call(None, Method::MeshAgents).await;
    let Ok(Event::Mesh(MeshView { agents, machine: Some(machine), .. })) = view else {
        return Vec::new();
    };
    if let Some(why) = machine.why {
        console::err(&format!("not connected to other machines: {why}"));
    }
    let there = agents.into_iter().filter(|agent| agent.reachable);
    let names = there.map(|agent| agent.name);
    names.filter(|name| machines::address(name).is_some()).collect()
}
