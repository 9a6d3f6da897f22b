//! `:fork`: makes a new Pod with the history of the selected one.

use crate::verb::dialogue::or_end;
use crate::verb::new::created;
use crate::verb::{Dialogue, Known, Next, Reply, Request, Verb, of, verb};
use clap::Args;
use yoi::protocol::{ClientKind, EntryId, Method, PodName};

pub static VERB: Verb = of::<Fork>(Verb {
    client: ClientKind::Lasting,
    more: &[
        "Makes a new Pod with the history of the selected one: all of it, or up to the message on which {transcript \
         :fork} was pressed in the transcript. The original Pod stays as it is.",
        "--at names the last entry that the new Pod gets. An entry is one record of the log: a message, an answer or \
         a call. It is named by its id, not by the number of a message. {transcript :fork} in the transcript writes \
         the id into the line, and yoi log prints it with --json.",
    ],
    ..verb("fork", "make a new Pod with the history of the selected one")
});

#[derive(Args)]
struct Fork {
    /// The name of the new Pod
    name: Option<PodName>,
    /// The last entry of the history that it gets
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
