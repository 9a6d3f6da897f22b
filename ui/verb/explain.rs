//! `:explain`: says why a Pod is in its state, what it waits for, and its scope.

use crate::verb::dialogue::or_end;
use crate::verb::{Dialogue, End, Known, Next, Reply, Said, Verb, of, verb};
use crate::wording::why;
use clap::Args;
use yoi::protocol::PodName;

pub static VERB: Verb = of::<Explain>(verb(
    "explain",
    "say why a Pod is in its state, what it waits for, and its scope",
));

#[derive(Args)]
struct Explain {
    /// The Pod; none is the selected one
    pod: Option<PodName>,
}

impl Dialogue for Explain {
    fn next(&mut self, known: &Known<'_>, _last: Option<Reply>) -> Next {
        or_end(known.target(self.pod.as_ref()).and_then(|pod| {
            let info = known.find(&pod)?;
            let words = why::Known { family: known.family, now: known.now, zone: known.zone };
            let lines = words.explain(info).into_iter();
            let lines =
                lines.map(|(label, text)| (label, known.worded(&text, Some(&pod)))).collect();
            let title = format!("{}: {}", info.name, crate::wording::state::of_pod(info));
            let said = Said::Sheet { title, lines };
            Ok(Next::End(End { said, ..End::default() }))
        }))
    }
}
