//! `:since`: says what every Pod of the workspace did since a time, and goes to one of them.

use crate::verb::dialogue::or_end;
use crate::verb::time_span::time_span;
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Said, Verb, Way, Why, of, verb};
use crate::wording::duration::in_words;
use crate::wording::since::{self, Span};
use clap::Args;
use yoi::protocol::{Event, Method, PodInfo};

/// How far it looks back where it is not known when the person left, in milliseconds.
const DAY: u64 = 24 * 60 * 60 * 1000;

pub static VERB: Verb = of::<Since>(Verb {
    more: &[
        "One row for each Pod: first those that need you, then those that failed, then those that finished, with the \
         last line of their report and the tasks that they wrote down and did not begin. Above the rows it says what \
         they cost and changed in all; below the rows, what allowed their calls: a rule, the sandbox or you.",
        "On the screen it is a page. {leader since} opens it and gives it the keys, {page choose} goes to the end of \
         the run, {page seen} marks a result as seen, {everywhere back} closes the page. When you come back to the \
         screen, the page opens by itself, and the line keeps the keys.",
        "The figures are those of runs that ended in that period. Lines are counted for Write and Edit only: a command \
         may have changed more. The figures are kept for a month.",
    ],
    ..verb("since", "say what the Pods did since you left, or in a period such as the last 8h")
});

#[derive(Args)]
struct Since {
    /// How far back: 45m, 12h, 7d, 2w; without it, since you last left this screen, or one day
    #[arg(value_name = "TIME", value_parser = time_span)]
    time: Option<u64>,
    /// Print one line of JSON for each Pod whose runs ended in that period
    #[arg(long)]
    json: bool,
}

impl Dialogue for Since {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        match last {
            None => Next::call(Request::host(Method::Since { at: self.span(known).from() })),
            Some(reply) => or_end(reply.single().map(|event| self.listed(known, event))),
        }
    }
}

impl Since {
    fn span(&self, known: &Known<'_>) -> Span {
        let ago = |span| Span::Chosen(known.now.saturating_sub(span));
        match (self.time, known.absence) {
            (Some(span), _) => ago(span),
            (None, Some(absence)) => Span::Left(absence),
            (None, None) => ago(DAY),
        }
    }

    fn listed(&self, known: &Known<'_>, event: Event) -> Next {
        let Event::Since { mut pods } = event else {
            return Next::End(End::refused(Why::Failed, "the host did not say what the Pods did"));
        };
        let family = known.family;
        let is_here = |info: &PodInfo| family.belongs(info, known.workspace, known.selected);
        if self.json {
            pods.retain(|work| family.get(&work.pod).is_some_and(is_here));
            let lines: Vec<String> =
                pods.iter().map(|pod| serde_json::json!(pod).to_string()).collect();
            return Next::End(End::answer(lines.join("\n")));
        }
        let since = since::Since { span: self.span(known), pods };
        let report = since.report(family, is_here, known.now);
        if report.groups.is_empty() {
            let passed = in_words(known.now.saturating_sub(since.span.from()));
            let Some(elsewhere) = since.pods.first() else {
                return Next::End(End::answer(format!("no run ended in the last {passed}")));
            };
            let pod = &elsewhere.pod;
            let way = match known.way {
                Way::Shell => format!("{} lists them", known.spell(&format!("since --pod {pod}"))),
                _ => format!("go to {pod} to list them"),
            };
            return Next::End(End::answer(format!(
                "no run of this workspace ended in the last {passed}, but runs of another one did; {way}"
            )));
        }
        Next::End(End { said: Said::Since(since, Box::new(report)), ..End::default() })
    }
}
