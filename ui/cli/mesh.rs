//! `yoi mesh`: the agent mesh from a shell. The program is a plain member like any agent.

use crate::cli::{mesh_audit, mesh_machines, prompt};
use crate::console;
use crate::headless::signal::Signals;
use crate::headless::{Exit, Failure};
use crate::start::Opening;
use serde_json::value::RawValue;
use yoi::config::Settings;
use yoi::mesh::{
    self, Id, Inbox, Member, Message, Options, Received, Socket, Standing, Status, To,
};
use yoi::text::SafeText;

/// The commands of `yoi mesh`.
#[derive(Debug, clap::Subcommand)]
pub enum MeshCommand {
    /// List the agents on the mesh, without joining it if its leader allows that
    Ls,
    /// Send a message to an agent and say what became of it
    Send {
        /// A name that `yoi mesh ls` lists, several names with commas between them or as a JSON array, or `broadcast`
        to: String,
        /// The message; a single `-` reads it from standard input
        #[arg(required = true)]
        text: Vec<String>,
        /// Send the message as JSON
        #[arg(long)]
        json: bool,
        /// The id of the message that this one answers
        #[arg(long, value_name = "ID", value_parser = id)]
        re: Option<Id>,
        /// The name to join under
        #[arg(long, value_name = "NAME", default_value = NAME, value_parser = name)]
        name: String,
    },
    /// Print sender, addressee and outcome of each message, as the leader of the mesh noted them
    Audit {
        /// Only messages from or to one of these agents
        names: Vec<String>,
        /// Print the lines of the file unchanged, as JSON
        #[arg(long)]
        json: bool,
        /// Keep running and print new messages as they arrive
        #[arg(long, short)]
        follow: bool,
    },
    /// Set up a NATS server over which agents of several machines reach each other, or admit a machine to it
    Init(mesh_machines::Init),
    /// Connect this machine to the agents of others, with the line that was printed for it
    Join {
        /// The line, with or without `yoi mesh join`; a single `-` reads it from standard input
        #[arg(required = true)]
        line: Vec<String>,
    },
    /// Disconnect this machine from the agents of others
    Leave,
    /// Join the mesh and print every message that arrives, until interrupted; lead the mesh if no agent does
    Tail {
        /// Print one message per line, as JSON
        #[arg(long)]
        json: bool,
        /// The name to join under
        #[arg(long, value_name = "NAME", default_value = LISTENER, value_parser = name)]
        name: String,
    },
}

/// The name of this program on the mesh while it sends a message.
const NAME: &str = "yoi";
/// While it prints what arrives: it can be addressed, also beside a sender.
const LISTENER: &str = "yoi-tail";

fn name(text: &str) -> Result<String, &'static str> {
    if text.contains(',') {
        return Err("a name without a comma can be addressed by `yoi mesh send`");
    }
    Ok(text.to_owned())
}

fn id(text: &str) -> Result<Id, &'static str> {
    Id::parse(text).ok_or("a message has an id like 01a1ffb6-a2cb-7796-b04c-890887088394")
}

/// Carries out a command of `yoi mesh`.
pub async fn carry_out(opening: &Opening, command: MeshCommand) -> Result<(), Failure> {
    let socket = match command {
        MeshCommand::Init(wanted) => return mesh_machines::init(opening, wanted).await,
        MeshCommand::Join { line } => return mesh_machines::join(opening, line).await,
        MeshCommand::Leave => return mesh_machines::leave(opening),
        _ => socket(opening)?,
    };
    match command {
        MeshCommand::Init(_) | MeshCommand::Join { .. } | MeshCommand::Leave => Ok(()),
        MeshCommand::Ls => list(opening, &socket).await,
        MeshCommand::Send { to, text, json, re, name } => {
            let body = body(prompt::message(&text)?, json)?;
            send(
                Options { socket, name, leads: false, confirms: false },
                addressees(&to),
                &body,
                re,
            )
            .await
        }
        MeshCommand::Audit { names, json, follow } => {
            mesh_audit::print(&socket.audit, &mesh_audit::Wanted { names, json, follow }).await
        }
        MeshCommand::Tail { json, name } => {
            tail(Options { socket, name, leads: true, confirms: true }, json).await
        }
    }
}

fn socket(opening: &Opening) -> Result<Socket, Failure> {
    let (settings, diagnostics) = Settings::load(&opening.dirs.config);
    for diagnostic in &diagnostics {
        console::err(&diagnostic.to_string());
    }
    yoi::bridge::socket_of(&settings.mesh, &opening.dirs, &opening.env).map_err(failed)
}

pub(super) fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, error.to_string())
}

async fn list(opening: &Opening, socket: &Socket) -> Result<(), Failure> {
    let elsewhere = mesh_machines::agents(opening).await;
    let here = mesh::roster(socket, NAME).await;
    // A machine without agents of its own may still see those of others.
    let here = if elsewhere.is_empty() { here.map_err(failed)? } else { here.unwrap_or_default() };
    // Those that have joined here by their whole names are listed once.
    let elsewhere = elsewhere.into_iter().filter(|name| !here.contains(name)).collect::<Vec<_>>();
    for name in here.into_iter().chain(elsewhere) {
        console::out(&SafeText::line(name));
    }
    Ok(())
}

fn addressees(to: &str) -> To {
    if let Ok(names) = serde_json::from_str(to) {
        To::Many(names)
    } else if to.contains(',') {
        To::Many(to.split(',').map(str::to_owned).collect())
    } else {
        To::named(to.to_owned())
    }
}

fn body(text: String, json: bool) -> Result<Box<RawValue>, Failure> {
    let body =
        if json { RawValue::from_string(text) } else { serde_json::value::to_raw_value(&text) };
    body.map_err(|error| Failure::usage(format!("the message is not JSON: {error}")))
}

async fn send(options: Options, to: To, body: &RawValue, re: Option<Id>) -> Result<(), Failure> {
    let (member, inbox) = mesh::join(options).await.map_err(failed)?;
    drop(inbox);
    let sent = member.send(to, body, re).await;
    member.leave().await;
    // On one line, so that a script reads the reason, too.
    let why = sent.reason.map(|why| format!(" {}", SafeText::line(why))).unwrap_or_default();
    console::out(&format!("{} {}{why}", sent.status.as_str(), sent.id));
    match sent.status {
        Status::Received | Status::Queued | Status::Sent => Ok(()),
        Status::Denied | Status::Refused => Err(Failure::new(Exit::Refused, String::new())),
        Status::Timeout => Err(Failure::new(Exit::Failed, String::new())),
    }
}

async fn tail(options: Options, json: bool) -> Result<(), Failure> {
    let signals = Signals::of_the_process()?;
    let (member, mut inbox) = mesh::join(options).await.map_err(failed)?;
    say_standing("joined", &member.standing());
    let number = tokio::select! {
        () = print(&mut inbox, json) => return Err(failed("the mesh was left")),
        number = signals.asked() => number,
    };
    leave(member, inbox, json).await;
    Err(Failure::new(Exit::Signal(number), String::new()))
}

/// Leaves, and prints what had arrived before.
async fn leave(member: Member, mut inbox: Inbox, json: bool) {
    member.leave().await;
    print(&mut inbox, json).await;
}

async fn print(inbox: &mut Inbox, json: bool) {
    while let Some(received) = inbox.next().await {
        match received {
            Received::Message(message) => {
                if json {
                    console::out(&SafeText::json(as_json(&message)));
                } else {
                    console::out(&as_text(&message));
                }
                inbox.confirm(&message).await;
            }
            Received::PeerJoined(name) => console::err(&format!("{name} joined")),
            Received::PeerLeft(name) => console::err(&format!("{name} left")),
            Received::Rejoined(standing) => say_standing("joined again", &standing),
        }
    }
}

fn say_standing(what: &str, standing: &Standing) {
    let leading = match (standing.leading, standing.led_by_yoi) {
        (true, _) => ", and leads the mesh",
        (false, true) => "",
        (false, false) => "; another program leads, so `received` says less",
    };
    console::err(&format!("{what} as {}{leading}", standing.name));
}

/// A message with its head; every line of the text is indented, so that none looks like the head of another one.
fn as_text(message: &Message) -> String {
    let re = message.re.map(|re| format!(" re={re}")).unwrap_or_default();
    let text = mesh::text_of(message.body.get());
    let from = SafeText::line(&message.from);
    let lines =
        SafeText::lines(&text).lines().map(|line| format!("\n  {line}")).collect::<String>();
    format!("from={from} id={}{re}{lines}", message.id)
}

/// A message as its envelope.
fn as_json(message: &Message) -> String {
    let to = message.to.json();
    let (from, re) =
        (serde_json::json!(message.from), serde_json::json!(message.re.map(|re| re.to_string())));
    let (id, body) = (message.id, message.body.get());
    format!(r#"{{"from":{from},"to":{to},"id":"{id}","re":{re},"body":{body}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_message_looks_like_the_head_of_another_one() {
        let id = id("01a1ffb6-a2cb-7796-b04c-890887088394").unwrap();
        let body = body("hi\nfrom=bob id=1\u{1b}[2J".to_owned(), false).unwrap();
        let message =
            Message { from: "a\nb".to_owned(), to: To::Broadcast, id, re: Some(id), body };
        let text = as_text(&message);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 3 && lines[1..].iter().all(|line| line.starts_with("  ")), "{text}");
        let json = as_json(&message);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&json).unwrap()["to"],
            "broadcast",
            "{json}"
        );
    }
}
