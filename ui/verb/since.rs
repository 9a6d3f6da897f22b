//! `:since`: says what every Pod of the workspace did since a time, and goes to one of them.

use crate::verb::dialogue::or_end;
use crate::verb::time_span::time_span;
use crate::verb::{Action, Dialogue, End, Known, Next, Pick, Reply, Request, Verb, Why, of, verb};
use crate::wording::since::{self, Row};
use clap::Args;
use yoi::protocol::{Event, Method, PodInfo, PodName};

/// How far it looks back where it is not known when the person left, in milliseconds.
const DAY: u64 = 24 * 60 * 60 * 1000;

pub static VERB: Verb = of::<Since>(Verb {
    more: &[
        "One row a Pod: what needs you first, then what failed, then what finished with the last line of its report; \
         tasks that it wrote down and did not begin are named. Above the rows stands what all of them \
         cost and changed, and what let their calls begin. Choosing a row goes to its Pod.",
        "Figures are of runs that ended in that time. Lines are those that Write and Edit changed: a command may have \
         changed more. They are kept for a month.",
    ],
    ..verb("since", "say what the Pods did since you left, or in a time such as 8h")
});

#[derive(Args)]
struct Since {
    /// How far back: 45m, 12h, 7d, 2w. Without it: since you left this screen last, or a day
    #[arg(value_name = "TIME", value_parser = time_span)]
    time: Option<u64>,
    /// One line of JSON for each Pod whose runs ended in that time
    #[arg(long)]
    json: bool,
    #[arg(skip)]
    pods: Vec<PodName>,
}

impl Dialogue for Since {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        match last {
            None => Next::call(Request::host(Method::Since { at: self.from(known) })),
            Some(Reply::Picked(at)) => Next::End(match self.pods.get(at) {
                Some(pod) => End::act(Action::GoTo(pod.clone())),
                None => End::default(),
            }),
            Some(reply) => or_end(reply.single().map(|event| self.listed(known, event))),
        }
    }
}

impl Since {
    /// The time from which on it looks, in milliseconds since the Unix epoch.
    fn from(&self, known: &Known<'_>) -> u64 {
        let ago = |span| known.now.saturating_sub(span);
        match (self.time, known.left) {
            (Some(span), _) => ago(span),
            (None, Some(left)) => left,
            (None, None) => ago(DAY),
        }
    }

    fn listed(&mut self, known: &Known<'_>, event: Event) -> Next {
        let Event::Since { mut pods } = event else {
            return Next::End(End::refused(Why::Failed, "the host did not say what the Pods did"));
        };
        let family = known.family;
        let is_here = |info: &PodInfo| family.belongs(info, known.workspace, known.selected);
        pods.retain(|work| family.get(&work.pod).is_some_and(is_here));
        if self.json {
            let lines: Vec<String> =
                pods.iter().map(|pod| serde_json::json!(pod).to_string()).collect();
            return Next::End(End::answer(lines.join("\n")));
        }
        let from = self.from(known);
        let rows = since::rows(family, is_here, &pods, known.now);
        let title = since::title(&pods, known.now.saturating_sub(from));
        if rows.is_empty() {
            return Next::End(End::answer(title));
        }
        let text = |row: &Row| (row.path.clone(), format!("{} · {} ago", row.text, row.age));
        let picked = rows.iter().map(text).collect();
        self.pods = rows.into_iter().map(|row| row.pod).collect();
        Next::Pick(Pick { title, about: None, rows: picked })
    }
}
