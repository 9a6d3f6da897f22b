//! `:unpeer`: ends what `:peer` began.

use crate::verb::dialogue::or_end;
use crate::verb::peer::{Other, pair};
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Verb, of, verb};
use clap::Args;
use yoi::protocol::{Method, PodName};
use yoi::text::SafeText;

pub static VERB: Verb =
    of::<Unpeer>(verb("unpeer", "end the peering of the selected Pod with another one"));

#[derive(Args)]
struct Unpeer {
    /// The other Pod, or an agent of another machine
    pod: Other,
    #[arg(skip)]
    pair: Option<(PodName, String)>,
}

impl Dialogue for Unpeer {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let Some(reply) = last else {
            return or_end(known.current().and_then(|source| {
                let name = self.pod.name(known)?;
                self.pair = Some((source.clone(), name.clone()));
                Ok(Next::call(Request::to(source, Method::Unpeer { name })))
            }));
        };
        or_end(reply.single().map(|event| {
            let Some((source, peer)) = pair(event).or(self.pair.take()) else {
                return Next::End(End::default());
            };
            let peer = SafeText::line(&peer);
            Next::End(End::done(format!("{source} and {peer} are not peers any more")))
        }))
    }
}
