//! `:unpeer`: ends what `:peer` began.

use crate::verb::dialogue::or_end;
use crate::verb::peer::pair;
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Verb, of, verb};
use clap::Args;
use yoi::protocol::{Method, PodName};

pub static VERB: Verb = of::<Unpeer>(verb("unpeer", "let two peers be peers no more"));

#[derive(Args)]
struct Unpeer {
    /// The other Pod
    pod: PodName,
    #[arg(skip)]
    source: Option<PodName>,
}

impl Dialogue for Unpeer {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let Some(reply) = last else {
            return or_end(known.current().and_then(|source| {
                let name = known.find(&self.pod)?.name.to_string();
                self.source = Some(source.clone());
                Ok(Next::call(Request::to(source, Method::Unpeer { name })))
            }));
        };
        or_end(reply.single().map(|event| {
            let (source, peer) = pair(event, self.source.as_ref().unwrap_or(&self.pod), &self.pod);
            Next::End(End::done(format!("{source} and {peer} are not peers any more")))
        }))
    }
}
