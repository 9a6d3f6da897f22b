//! `:trace`: shows the newest log lines of the host.

use crate::verb::dialogue::or_end;
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Said, Verb, of, verb};
use clap::Args;
use yoi::protocol::{Event, Method};

pub static VERB: Verb = of::<Trace>(Verb {
    more: &[
        "The host keeps its newest log lines in memory, without secrets and without messages. Words after :trace \
         select the lines that contain them, as in :trace warn or :trace pod=alice. To log more, set \
         YOI_LOG=yoi=debug,warn where the host starts. `yoi doctor --report` writes everything that a bug report \
         needs into one file.",
    ],
    ..verb("trace", "show the newest log lines of the host")
});

#[derive(Args)]
struct Trace {
    /// Only lines that contain these words
    filter: Vec<String>,
}

impl Dialogue for Trace {
    fn next(&mut self, _known: &Known<'_>, last: Option<Reply>) -> Next {
        let filter = self.filter.join(" ");
        let Some(reply) = last else {
            return Next::call(Request::host(Method::Trace { filter }));
        };
        or_end(reply.single().map(|event| Next::End(shown(event, &filter))))
    }
}

/// The lines as they came: the host made them safe when it logged them.
fn shown(event: Event, filter: &str) -> End {
    let Event::Trace { lines } = event else {
        return End::shown("this host keeps no log lines");
    };
    if lines.is_empty() {
        return End::answer(match filter {
            "" => "the host has logged nothing yet".to_owned(),
            filter => format!("no log line contains `{filter}`"),
        });
    }
    let lines = lines.into_iter().map(|line| ("", line).into()).collect();
    End { said: Said::Text { title: "trace".into(), lines }, ..End::default() }
}
