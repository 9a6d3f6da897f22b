//! `:peer`: makes the selected Pod and another one, or an agent of another machine, peers of each other.

use crate::verb::dialogue::or_end;
use crate::verb::targets::{Target, one};
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Verb, of, verb};
use clap::Args;
use std::str::FromStr;
use yoi::mesh::machines::address;
use yoi::protocol::{Event, Method, PodName, State};
use yoi::text::SafeText;

pub static VERB: Verb = of::<Peer>(Verb {
    more: &[
        "Makes the selected Pod and another one peers of each other, at any time, also while they run. Peers see \
         each other and may send each other messages.",
        "The other Pod is not asked, and need not be live; a stopped Pod must be restored with :restore before it \
         takes messages.",
        "With a name such as casa:reviewer, which :mesh lists, it asks for an agent of another machine: a person there \
         allows it in the inbox. Messages of such a peer wake your Pod.",
        "Peers get nothing else: no scope, no transcript of the other Pod, no notification when it ends, and \
         no control over it.",
        ":unpeer ends the relation.",
    ],
    ..verb("peer", "make the selected Pod and another one peers")
});

#[derive(Args)]
struct Peer {
    /// The other Pod, or an agent of another machine
    pod: Other,
    #[arg(skip)]
    pair: Option<(PodName, String)>,
}

/// The other one of two peers.
#[derive(Clone, Debug)]
pub enum Other {
    Pod(Target),
    /// An agent of another machine.
    Agent(String),
}

impl FromStr for Other {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match address(text) {
            Some(_) => Ok(Self::Agent(text.to_owned())),
            None => text.parse().map(Self::Pod),
        }
    }
}

impl Other {
    /// Its name, as the host knows it.
    pub fn name(&self, known: &Known<'_>) -> Result<String, End> {
        match self {
            Self::Pod(target) => Ok(one(known, target)?.name.to_string()),
            Self::Agent(name) => Ok(name.clone()),
        }
    }
}

impl Dialogue for Peer {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let Some(reply) = last else {
            return or_end(known.current().and_then(|source| {
                let name = self.pod.name(known)?;
                self.pair = Some((source.clone(), name.clone()));
                Ok(Next::call(Request::to(source, Method::Peer { name })))
            }));
        };
        or_end(reply.single().map(|event| {
            if let Event::MeshSent { status, reason, .. } = &event {
                return Next::End(self.asked(status, reason.as_deref()));
            }
            let Some((source, peer)) = pair(event).or(self.pair.take()) else {
                return Next::End(End::default());
            };
            let info = PodName::parse(&peer).ok().and_then(|peer| known.family.get(&peer));
            let stopped = info.filter(|info| info.state == State::Stopped);
            let needs = stopped.map_or_else(String::new, |info| {
                let restore = known.spell_for("restore", std::slice::from_ref(&info.name));
                format!(" · {peer} is stopped; messages to it need {restore}")
            });
            let peer = SafeText::line(&peer);
            Next::End(End::done(format!("{source} and {peer} are peers{needs}")))
        }))
    }
}

impl Peer {
    /// The sentence about a request to another machine.
    fn asked(&self, status: &str, reason: Option<&str>) -> End {
        let peer = self.pair.as_ref().map_or("", |(_, peer)| peer);
        let peer = SafeText::line(peer);
        match status {
            "received" => End::done(format!("asked {peer}: a person there decides in the inbox")),
            _ => {
                let why = reason.map(|why| format!(": {}", SafeText::line(why)));
                End::done(format!("{peer} will be asked ({status}){}", why.unwrap_or_default()))
            }
        }
    }
}

/// The two Pods that a reply names.
pub fn pair(reply: Event) -> Option<(PodName, String)> {
    match reply {
        Event::PeerRegistered { result } => Some((result.source, result.peer.to_string())),
        Event::Peered { source, peer } | Event::Unpeered { source, peer } => {
            Some((source, peer.to_string()))
        }
        _ => None,
    }
}
