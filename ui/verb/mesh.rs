//! `:mesh`: has a Pod join or leave the agent mesh, or lists the agents that it can reach.

use crate::verb::dialogue::or_end;
use crate::verb::targets::{Target, few};
use crate::verb::{CONVERSATION, Dialogue, End, Known, Next, Pick, Reply, Request, Verb, of, verb};
use clap::{Args, Subcommand};
use yoi::mesh::machines::address;
use yoi::protocol::mesh::{
    AgentKind, MachineMessage, MachineView, MeshAgent, MeshMember, MeshView,
};
use yoi::protocol::{ClientKind, Event, Method, PodName, State};
use yoi::text::SafeText;

pub static VERB: Verb = of::<Mesh>(Verb {
    // `yoi mesh` is the mesh from a shell.
    ways: CONVERSATION,
    client: ClientKind::Lasting,
    more: &[
        "The agent mesh connects agents of several programs on this machine. Alone, the verb lists the Pods of this \
         host that take part, and the agents of other programs. With join, a Pod joins under its own name: its model \
         gets the tools list_peers and agent_send, and messages to it arrive in its mailbox. It joins again whenever \
         it becomes live, until you type :mesh leave. A stopped Pod does not take part.",
        "What an agent writes is information for the model: it approves nothing. Only messages of peers wake an idle \
         Pod, others wait for its next run; `wake` below [mesh] in config.toml changes that. :block refuses the \
         messages of an agent.",
    ],
    ..verb("mesh", "list the agents on the mesh, or have a Pod join or leave it")
});

#[derive(Args)]
struct Mesh {
    #[command(subcommand)]
    change: Option<Change>,
    #[arg(skip)]
    target: Option<PodName>,
}

#[derive(Subcommand)]
enum Change {
    /// Join, now and whenever the Pod becomes live
    Join { pod: Option<Target> },
    /// Leave, and do not join again
    Leave { pod: Option<Target> },
}

impl Dialogue for Mesh {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let Some(reply) = last else { return or_end(self.begin(known)) };
        if let Reply::Picked(_) = reply {
            return Next::End(End::default());
        }
        or_end(reply.single().map(|event| {
            let Event::Mesh(view) = event else { return Next::End(End::default()) };
            match (&self.change, &self.target) {
                (None, _) => list(&view),
                (Some(Change::Join { .. }), Some(pod)) => {
                    Next::End(End::done(joined(known, pod, &view)))
                }
                (Some(_), pod) => {
                    let pod = pod.as_ref().map_or("the pod", PodName::as_str);
                    Next::End(End::done(format!("{pod} takes no part in the mesh")))
                }
            }
        }))
    }
}

impl Mesh {
    fn begin(&mut self, known: &Known<'_>) -> Result<Next, End> {
        let (pod, method) = match &self.change {
            None => return Ok(Next::call(Request::host(Method::MeshAgents))),
            Some(Change::Join { pod }) => (pod, Method::MeshJoin),
            Some(Change::Leave { pod }) => (pod, Method::MeshLeave),
        };
        let target = known.target(pod.as_ref())?;
        self.target = Some(target.clone());
        Ok(Next::call(Request::to(target, method)))
    }
}

fn joined(known: &Known<'_>, pod: &PodName, view: &MeshView) -> String {
    let stopped = known.family.get(pod).is_some_and(|info| info.state == State::Stopped);
    let standing = view.members.first().and_then(|member| member.standing.as_ref());
    match standing {
        _ if stopped => {
            let restore = known.spell_for("restore", std::slice::from_ref(pod));
            format!("{pod} joins the mesh when it is live · {restore} brings it back")
        }
        Some(standing) => match (&standing.name, &standing.why) {
            (Some(name), _) => {
                format!(
                    "{pod} is on the mesh as {}{}",
                    SafeText::line(name),
                    leader(standing.led_by_yoi)
                )
            }
            (None, Some(why)) => {
                format!("{pod} joins the mesh as soon as it can: {}", SafeText::line(why))
            }
            (None, None) => format!("{pod} is joining the mesh"),
        },
        None => format!("{pod} joins the mesh when it is live"),
    }
}

fn leader(led_by_yoi: bool) -> &'static str {
    if led_by_yoi { "" } else { " · another program leads it, so `received` means less" }
}

fn list(view: &MeshView) -> Next {
    let machine = view.machine.iter().map(|machine| (line_of_machine(machine), String::new()));
    let members = view.members.iter().map(|member| (line_of(member), String::new()));
    let agents = view.agents.iter().map(|agent| (line(agent), String::new()));
    let blocked = view.blocked.iter();
    let blocked = blocked.map(|name| (format!("{}  blocked", SafeText::line(name)), String::new()));
    let messages = view.machine.iter().flat_map(|machine| machine.messages.iter().rev());
    let messages = messages.map(|message| (line_of_message(message), String::new()));
    let rows: Vec<_> =
        machine.chain(members).chain(agents).chain(blocked).chain(messages).collect();
    if rows.is_empty() {
        return Next::End(End::shown(
            "no Pod of this host is on the mesh · type :mesh join to add one",
        ));
    }
    Next::Pick(Pick { title: "the agent mesh".into(), about: None, rows })
}

fn line_of(member: &MeshMember) -> String {
    let pod = &member.pod;
    let Some(standing) = &member.standing else { return format!("{pod}  takes no part") };
    match (&standing.name, &standing.why) {
        (Some(name), _) => {
            let leads = if standing.leads { ", leads" } else { leader(standing.led_by_yoi) };
            let name = if name == pod.as_str() {
                String::new()
            } else {
                format!(" as {}", SafeText::line(name))
            };
            format!("{pod}  Pod of this host{name}{leads}")
        }
        (None, Some(why)) => format!("{pod}  has not joined: {}", SafeText::line(why)),
        (None, None) => format!("{pod}  is joining"),
    }
}

fn line_of_machine(machine: &MachineView) -> String {
    let MachineView { name, server, connected, why, machines, .. } = machine;
    let name = if name.is_empty() { "this machine" } else { name };
    let (name, server) = (SafeText::line(name), SafeText::line(server));
    match (connected, why) {
        (true, _) if machines.is_empty() => {
            format!("{name}  on {server}, no other machine is there")
        }
        (true, _) => {
            let machines = machines.join(", ");
            format!("{name}  on {server}, with {}", SafeText::line(machines))
        }
        (false, Some(why)) => format!("{name}  not connected to others: {}", SafeText::line(why)),
        (false, None) => format!("{name}  is connecting to {server}"),
    }
}

fn line_of_message(message: &MachineMessage) -> String {
    let MachineMessage { id, pod, to, state, .. } = message;
    format!("{pod} to {}  message {}, {}", SafeText::line(to), SafeText::line(id), state.as_str())
}

fn line(agent: &MeshAgent) -> String {
    let kind = match agent.kind {
        AgentKind::Pod => "Pod of this host",
        AgentKind::Yoi => "agent of another yoi",
        AgentKind::Agent | AgentKind::Unknown => "agent of another program",
    };
    let of_machine = address(&agent.name).is_some();
    let stopped = match agent.reachable {
        true => "",
        false if of_machine => ", away",
        false => ", stopped",
    };
    let pods = |what: &str, pods: &[PodName]| match pods {
        [] => String::new(),
        pods => format!(", {what} {}", few(pods)),
    };
    let (peers, asked) = (pods("peer of", &agent.peers), pods("asked by", &agent.asked));
    format!("{}  {kind}{peers}{asked}{stopped}", SafeText::line(&agent.name))
}
