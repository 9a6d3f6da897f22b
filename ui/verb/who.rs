//! `:who <path>`: lists the Pods that may read or write a path.

use crate::verb::dialogue::or_end;
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Verb, of, verb};
use clap::Args;
use std::path::{Path, PathBuf};
use yoi::protocol::{Event, Method, PathHolder};
use yoi::scope::Permission;

pub static VERB: Verb = of::<Who>(verb("who", "say which Pods may read or write a path"));

#[derive(Args)]
struct Who {
    /// The file or directory to look up
    path: PathBuf,
}

impl Dialogue for Who {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let Some(reply) = last else {
            return Next::call(Request::host(Method::Who { path: known.cwd.join(&self.path) }));
        };
        or_end(reply.single().map(|event| {
            Next::End(End::answer(match event {
                Event::Holders { holders } => sentence(&known.cwd.join(&self.path), &holders),
                _ => "the host did not say which Pods hold it".into(),
            }))
        }))
    }
}

fn sentence(path: &Path, holders: &[PathHolder]) -> String {
    if holders.is_empty() {
        let own = if path.starts_with("/tmp") {
            ". What a Pod itself calls /tmp is a directory of its own"
        } else {
            ""
        };
        let path = path.display();
        return format!(
            "{path} is in no live Pod's scope: file tools need an approval or refuse, and commands see it only if \
             it belongs to the system{own}"
        );
    }
    let path = path.display();
    let one = |holder: &PathHolder| {
        let access = match holder.permission {
            Permission::Read => "may read",
            Permission::Write => "may read and write",
        };
        let lent = holder.lender.as_ref().map(|lender| format!(" (lent by {lender})"));
        format!("{} {access}{}", holder.pod, lent.unwrap_or_default())
    };
    format!("{path}: {}", holders.iter().map(one).collect::<Vec<_>>().join(" · "))
}
