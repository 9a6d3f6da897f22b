//! `:lend`: lends a part of a Pod's scope to another Pod.

use crate::verb::dialogue::or_end;
use crate::verb::running::{RUNNING, Running};
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Verb, of, verb};
use clap::Args;
use std::path::PathBuf;
use yoi::protocol::{Event, Method, PodName};
use yoi::scope::{Permission, Rule};
use yoi::text::shell_word;

pub static VERB: Verb = of::<Lend>(Verb {
    more: &[
        "Lends a path of one Pod to another for writing; --read lends it for reading only. Both Pods must be live. \
         The lender cannot write there until the lease ends.",
        RUNNING,
        "The lease ends when the borrower stops, or when you take it back with :reclaim. :who says which Pods may \
         use a path.",
    ],
    ..verb("lend", "lend a part of a Pod's scope to another Pod")
});

#[derive(Args)]
struct Lend {
    /// The Pod that lends
    from: PodName,
    /// The Pod that borrows
    to: PodName,
    /// The file or directory
    path: PathBuf,
    /// Lend reading only
    #[arg(long)]
    read: bool,
    #[command(flatten)]
    running: Running,
    #[arg(skip)]
    pair: Option<(PodName, PodName)>,
}

impl Dialogue for Lend {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let Some(reply) = last else {
            return or_end(self.begin(known));
        };
        let (from, to) = self.pair.as_ref().map_or((&self.from, &self.to), |(a, b)| (a, b));
        let path = self.path.display();
        // A line for another shell, which may be in another directory.
        let absolute = known.cwd.join(&self.path).display().to_string();
        let reclaim = known.spell(&format!("reclaim {}", shell_word(&absolute)));
        or_end(reply.single().map(|event| {
            let missing = match event {
                Event::PathLent { exists: false } => " · nothing exists there yet",
                _ => "",
            };
            let said = match self.read {
                true => format!("{to} may read {path}, lent by {from}{missing}"),
                false => format!("{from} lent {path} to {to}{missing}"),
            };
            Next::End(End::done(format!("{said} · {reclaim} takes it back")))
        }))
    }
}

impl Lend {
    fn begin(&mut self, known: &Known<'_>) -> Result<Next, End> {
        let (from, to) = (known.find(&self.from)?.name.clone(), known.find(&self.to)?.name.clone());
        let permission = if self.read { Permission::Read } else { Permission::Write };
        let rule = Rule::new(known.cwd.join(&self.path), permission);
        self.pair = Some((from.clone(), to.clone()));
        Ok(Next::call(Request::to(
            from,
            Method::Lend { to: to.to_string(), rule, running: (&self.running).into() },
        )))
    }
}
