//! `:reclaim`: takes back what was lent at a path.

use crate::verb::dialogue::or_end;
use crate::verb::running::{RUNNING, Running};
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Verb, Why, of, verb};
use crate::wording::scope;
use clap::Args;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use yoi::protocol::{Event, Method, PodInfo, PodName};

pub static VERB: Verb =
    of::<Reclaim>(Verb { more: &[RUNNING], ..verb("reclaim", "take back a path that was lent") });

const NOTHING_LENT: &str = "nothing was lent there";

#[derive(Args)]
struct Reclaim {
    /// The file or directory
    path: PathBuf,
    #[command(flatten)]
    running: Running,
}

impl Dialogue for Reclaim {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let Some(reply) = last else {
            let path = known.cwd.join(&self.path);
            let running = (&self.running).into();
            return or_end(
                lender(known, &path)
                    .map(|pod| Next::call(Request::to(pod, Method::Reclaim { path, running }))),
            );
        };
        or_end(reply.single().map(|event| Next::End(End::done(sentence(&event)))))
    }
}

/// The Pod that lent there: the selected one when it did, else the first that did.
fn lender(known: &Known<'_>, path: &Path) -> Result<PodName, End> {
    let lent_there = |info: &&PodInfo| {
        let mut targets = info.lent.iter().map(|lent| &lent.rule.target);
        targets.any(|target| target.starts_with(path) || path.starts_with(target))
    };
    let selected = known.selected.and_then(|name| known.family.get(name));
    let lender = selected.filter(lent_there).or_else(|| known.family.all().iter().find(lent_there));
    match (lender, known.selected) {
        (Some(info), _) => Ok(info.name.clone()),
        (None, Some(selected)) => Ok(selected.clone()),
        (None, None) => Err(End::refused(Why::Failed, NOTHING_LENT)),
    }
}

fn sentence(reply: &Event) -> String {
    match reply {
        Event::Reclaimed { leases, left } if !leases.is_empty() => {
            let back = leases.iter().map(|l| format!("{} from {}", scope::rule(&l.rule), l.to));
            let mut text = format!("took back {}", back.collect::<Vec<_>>().join(", "));
            for left in left {
                let _ = write!(text, " · {} may still {}", left.to, scope::rule(&left.rule));
            }
            text
        }
        _ => NOTHING_LENT.into(),
    }
}
