//! `:fork`: makes a new Pod with the history of the selected one.

use crate::verb::dialogue::or_end;
use crate::verb::new::created;
use crate::verb::{Dialogue, Known, Next, Reply, Request, Verb, of, verb};
use clap::Args;
use yoi::protocol::{ClientKind, EntryId, Method, PodName};

pub static VERB: Verb = of::<Fork>(Verb {
    client: ClientKind::Lasting,
    more: &[
        "Makes a new Pod with the history of the selected one, up to the message where {transcript :fork} was pressed or \
         all of it. The one it comes from stays as it is.",
        "An entry is one record of the log: a message, an answer, a call. It is named by its id, not by the number \
         of a message: {transcript :fork} on it in the transcript writes the id into the line, and yoi log prints it with \
         --json.",
    ],
    ..verb("fork", "make a new Pod with the history of the selected one")
});

#[derive(Args)]
struct Fork {
    /// The name of the new Pod
    name: Option<PodName>,
    /// The last entry that it gets
    #[arg(long, value_name = "ENTRY", value_parser = entry)]
    at: Option<EntryId>,
    #[arg(skip)]
    from: Option<PodName>,
}

fn entry(text: &str) -> Result<EntryId, String> {
    text.parse().map_err(|_| format!(
            "`{text}` is no entry: an entry is named by its id, which `yoi log <pod> --json` prints; `yoi help \
             fork` says more"
        ))
}

impl Dialogue for Fork {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let Some(reply) = last else {
            return or_end(known.current().map(|from| {
                self.from = Some(from.clone());
                let method = Method::Fork { name: self.name.clone(), at: self.at };
                Next::call(Request::to(from, method))
            }));
        };
        let from = self.from.as_ref().map_or("the Pod", PodName::as_str);
        let said = |name: &PodName| format!("{name} goes on from the history of {from}");
        or_end(reply.single().map(|event| Next::End(created(event, said))))
    }
}
