//! `:notify`: tries the ways in which a person is called.

use crate::verb::dialogue::or_end;
use crate::verb::{Action, Dialogue, End, Known, Next, Reply, Request, Said, Verb, of, verb};
use clap::{Args, ValueEnum};
use yoi::protocol::{Event, Method, TriedWay};

pub static VERB: Verb = of::<Notify>(Verb {
    more: &[
        "yoi notifies you when a Pod needs you, fails, or finishes the work of its family: through the terminal \
         while you look elsewhere, and through the command and the address of [notify] in config.toml when no screen \
         was open for a minute. :notify test notifies you at once in each of these ways, and says which are set up \
         and what went wrong.",
    ],
    ..verb("notify", "test how yoi notifies you")
});

#[derive(Args)]
struct Notify {
    /// Notify you now in each of these ways
    #[arg(value_name = "TEST")]
    what: What,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    Test,
}

impl Dialogue for Notify {
    fn next(&mut self, _known: &Known<'_>, last: Option<Reply>) -> Next {
        let What::Test = self.what;
        let Some(reply) = last else {
            return Next::call(Request::host(Method::TryNotify));
        };
        or_end(reply.single().map(|event| Next::End(tried(event))))
    }
}

/// What came of each way; a screen calls by its terminal, too.
fn tried(event: Event) -> End {
    let Event::NotifyTried { ways } = event else {
        return End::shown("this host cannot test that");
    };
    let line = |way: &TriedWay| {
        let outcome = match (&way.is_set, &way.failure) {
            (false, _) => format!("not set: [notify] {} in config.toml", way.name),
            (true, None) => "called you".to_owned(),
            (true, Some(why)) => format!("did not reach you: {why}"),
        };
        format!("{}: {outcome}", way.name)
    };
    let lines = ways.iter().map(|way| ("", line(way)).into()).collect();
    let said = Said::Text { title: "The ways in which you are called".into(), lines };
    End { said, action: Some(Action::CallByTerminal), ..End::default() }
}
