//! Trust: shows what the settings file of a workspace asks for beyond narrowing, and stores that a person
//! trusts the content that was shown.

use crate::config::workspace_settings::{WorkspaceSettings, mcp_file_of};
use crate::host::rules::trusted_hash;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Refusal, WorkspaceFile};
use std::path::{Path, PathBuf};

pub(crate) struct Trust {
    /// The root of the workspace.
    pub(crate) workspace: PathBuf,
    /// The hash of the content that the person was shown and agrees to; `None` only shows.
    pub(crate) sha256: Option<String>,
}

impl Verb for Trust {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let shown = read(&cx, &self.workspace).await?;
        let Some(agreed) = self.sha256 else { return Ok(Event::WorkspaceFile(shown)) };
        let file = shown.file.display();
        if shown.sha256 != agreed {
            let text = format!("{file} changed after it was shown; :trust shows it as it is now");
            return Err(Refusal::invalid(text));
        }
        let Some(workspace) = self.workspace.to_str() else {
            let text = format!("{file} cannot be trusted: its path is not valid UTF-8");
            return Err(Refusal::invalid(text));
        };
        cx.shared.store.trust(workspace.to_owned(), agreed).await?;
        Ok(Event::WorkspaceFile(WorkspaceFile { trusted: true, ..shown }))
    }
}

/// What the file of a workspace asks for as it is now.
async fn read(cx: &Cx, workspace: &Path) -> Result<WorkspaceFile, Refusal> {
    let trusted = trusted_hash(&cx.shared, workspace).await?;
    let (shared, root) = (cx.shared.clone(), workspace.to_owned());
    let load = move || (shared.settings_now().settings, WorkspaceSettings::load(&root));
    let (settings, says) = cx.files(workspace, load).await?;
    let file = says.trusted_file(workspace);
    let Some(sha256) = says.sha256.clone() else {
        let text = match says.notices.first() {
            Some(why) => format!("there is nothing to trust: {why}"),
            None => format!(
                "there is nothing to trust: there is no {} and no {}",
                file.display(),
                mcp_file_of(workspace).display()
            ),
        };
        return Err(Refusal::invalid(text));
    };
    let changes = says.trust_changes(&settings);
    let trusted = trusted.as_ref() == Some(&sha256);
    Ok(WorkspaceFile { file, sha256, trusted, changes })
}
