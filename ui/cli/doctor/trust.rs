//! The files of workspaces that the person trusts, and whether they are unchanged.

use crate::cli::doctor::finding::Finding;
use crate::cli::doctor::host::Reached;
use crate::cli::doctor::within;
use std::time::Duration;
use yoi::config::WorkspaceSettings;
use yoi::protocol::{Event, Method, PolicyTrust};

/// How long the host may take to answer, and how long reading the files may take.
const LOOK: Duration = Duration::from_secs(1);

/// The finding about trusted files. The host is asked, because it owns the store.
pub async fn finding(reached: Option<&Reached>) -> Finding {
    let ok = |text: &str| Finding::ok("settings", "trust", text);
    let Some(reached) = reached else {
        return ok("a running host knows which files of workspaces you trust: `yoi policy`");
    };
    let answer = tokio::time::timeout(LOOK, reached.client.call(None, Method::ListPolicy)).await;
    let Ok(Ok(Event::Policy { trusts, .. })) = answer else {
        return ok("not known: the host did not answer with what you trust");
    };
    if trusts.is_empty() {
        return ok("you trust no file of a workspace");
    }
    let text = within(LOOK, move || trusts.iter().map(sentence).collect::<Vec<_>>().join("; "));
    ok(&text.await.unwrap_or_else(|| "the file system of a trusted file does not answer".into()))
}

/// Whether the trust in the files of a workspace is still in force. Blocking.
fn sentence(trust: &PolicyTrust) -> String {
    let root = trust.workspace.display();
    match WorkspaceSettings::load(&trust.workspace).sha256 {
        Some(now) if now == trust.sha256 => format!("you trust the settings of {root}"),
        Some(_) => format!("the settings of {root} have changed since: not trusted"),
        None => format!("the settings of {root}, which you trust, are gone"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trusted_file_that_changed_or_is_gone_is_said_to_count_no_more() {
        let temp = tempfile::tempdir().expect("a directory");
        let root = temp.path().to_owned();
        let file = root.join(".yoi/config.toml");
        std::fs::create_dir(root.join(".yoi")).expect("a new directory");
        std::fs::write(&file, "max_turns = 3\n").expect("a writable directory");
        let sha256 = WorkspaceSettings::load(&root).sha256.expect("a file");
        let trust = PolicyTrust { id: 1, workspace: root, sha256, since: 0 };
        assert!(sentence(&trust).starts_with("you trust the settings of "));
        std::fs::write(&file, "max_turns = 4\n").expect("a writable directory");
        assert!(sentence(&trust).ends_with("have changed since: not trusted"));
        std::fs::remove_file(&file).expect("the file just written");
        assert!(sentence(&trust).ends_with("are gone"));
    }
}
