//! `:trust`: shows what the settings file of a workspace asks for, and trusts it as it is.

use crate::verb::dialogue::or_end;
use crate::verb::{
    Confirm, Dialogue, End, Known, Next, Reply, Request, Safety, Unasked, Verb, of, verb,
};
use clap::Args;
use std::path::PathBuf;
use yoi::protocol::{Event, Method, WorkspaceFile};
use yoi::text::SafeText;

pub static VERB: Verb = of::<Trust>(Verb {
    safety: Safety::TypedOnly,
    more: &[
        "The file .yoi/config.toml of a workspace may come from a stranger. Until you trust it, it can only choose a \
         model that yoi knows, lower limits, and make rules that ask or deny. This verb lists what else the file \
         asks for, each key with its value: rules that allow, a default, more turns, providers with their addresses, \
         the setup command of working trees. It also covers the MCP servers in .mcp.json.",
        "You trust the content: after any change the file is not trusted until you trust it again. Its rules apply \
         from the next run on, the rest to Pods that are made from then on. Your own settings and decisions come \
         first. :policy lists what you trust, and :policy revoke <n> ends it.",
    ],
    ..verb("trust", "show what the workspace's settings ask for, and trust them (asks)")
});

#[derive(Args)]
struct Trust {
    /// What was shown.
    #[arg(skip)]
    shown: Option<Shown>,
}

struct Shown {
    workspace: PathBuf,
    sha256: String,
}

impl Dialogue for Trust {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        match (last, &self.shown) {
            (None, _) => trust(workspace(known), None),
            (Some(Reply::Confirmed), Some(Shown { workspace, sha256 })) => {
                trust(workspace.clone(), Some(sha256.clone()))
            }
            (Some(reply), shown) => {
                let is_agreed = shown.is_some();
                or_end(reply.single().map(|event| match event {
                    Event::WorkspaceFile(file) if is_agreed => Next::End(done(known, &file)),
                    Event::WorkspaceFile(file) => self.show(known, &file),
                    _ => Next::End(End::shown("the host did not say what the file asks for")),
                }))
            }
        }
    }
}

/// The workspace of the selected Pod, else the one in which yoi was started.
fn workspace(known: &Known<'_>) -> PathBuf {
    let selected = known.selected.and_then(|pod| known.family.get(pod));
    selected.map_or(known.workspace, |info| &info.workspace).to_owned()
}

fn trust(workspace: PathBuf, sha256: Option<String>) -> Next {
    Next::call(Request::host(Method::Trust { workspace, sha256 }))
}

impl Trust {
    fn show(&mut self, known: &Known<'_>, file: &WorkspaceFile) -> Next {
        let name = name(file);
        if file.changes.is_empty() {
            let text = format!("{name} asks for nothing that needs trust");
            return Next::End(End::answer(text));
        }
        if file.trusted {
            let policy = known.spell("policy");
            let text = format!("{name} is trusted as it is; {policy} lists it with its number");
            return Next::End(End::answer(text));
        }
        self.shown = Some(Shown { workspace: workspace(known), sha256: file.sha256.clone() });
        let lines = file.changes.iter().map(|line| SafeText::spelled(line.clone()).into_string());
        let lines = lines.collect::<Vec<_>>().join("\n");
        let question = format!("{name} asks for:\n{lines}\ntrust it with this content?");
        Next::Confirm(Confirm {
            question,
            about: Vec::new(),
            enter: "trust",
            unasked: Unasked::Asking,
        })
    }
}

fn done(known: &Known<'_>, file: &WorkspaceFile) -> End {
    let policy = known.spell("policy");
    End::done(format!(
        "{} is trusted with this content: its rules count from the next run, the rest for new Pods · {policy} lists it",
        name(file)
    ))
}

fn name(file: &WorkspaceFile) -> String {
    SafeText::spelled(file.file.display().to_string()).into_string()
}
