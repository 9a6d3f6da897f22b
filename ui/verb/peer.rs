//! `:peer`: makes the selected Pod and another one peers of each other.

use crate::verb::dialogue::or_end;
use crate::verb::targets::{Target, one};
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Verb, of, verb};
use clap::Args;
use yoi::protocol::{Event, Method, PodName, State};

pub static VERB: Verb = of::<Peer>(Verb {
    more: &[
        "Makes the selected Pod and another one peers of each other, at any time, also while they run. Peers see \
         each other and may send each other messages.",
        "The other Pod is not asked, and need not be live; a stopped Pod must be restored with :restore before it \
         takes messages.",
        "Peers get nothing else: no scope, no transcript of the other Pod, no notification when it ends, and \
         no control over it.",
        ":unpeer ends the relation.",
    ],
    ..verb("peer", "make the selected Pod and another one peers")
});

#[derive(Args)]
struct Peer {
    /// The other Pod
    pod: Target,
    #[arg(skip)]
    pair: Option<(PodName, PodName)>,
}

impl Dialogue for Peer {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let Some(reply) = last else {
            return or_end(known.current().and_then(|source| {
                let peer = one(known, &self.pod)?.name.clone();
                let name = peer.to_string();
                self.pair = Some((source.clone(), peer));
                Ok(Next::call(Request::to(source, Method::Peer { name })))
            }));
        };
        or_end(reply.single().map(|event| {
            let Some((source, peer)) = pair(event).or(self.pair.take()) else {
                return Next::End(End::default());
            };
            let stopped = known.family.get(&peer).is_some_and(|info| info.state == State::Stopped);
            let needs = match stopped {
                true => {
                    let restore = known.spell_for("restore", std::slice::from_ref(&peer));
                    format!(" · {peer} is stopped; messages to it need {restore}")
                }
                false => String::new(),
            };
            Next::End(End::done(format!("{source} and {peer} are peers{needs}")))
        }))
    }
}

/// The two Pods that a reply names.
pub fn pair(reply: Event) -> Option<(PodName, PodName)> {
    match reply {
        Event::PeerRegistered { result } => Some((result.source, result.peer)),
        Event::Peered { source, peer } | Event::Unpeered { source, peer } => Some((source, peer)),
        _ => None,
    }
}
