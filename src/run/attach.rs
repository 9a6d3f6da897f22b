//! `@file` references of an input: what they name is committed to the history as attachments.

use crate::protocol::{Alert, AlertLevel, AlertSource, Entry, Event, Fact, Segment, SystemItem};
use crate::run::{Run, Stopped};
use crate::scope::{Permission, Scope};
use std::path::{Path, PathBuf};

/// How much of a file is attached, in bytes.
const MAX_BYTES: usize = 256 * 1024;
/// How many entries of a directory are listed.
const MAX_LISTED: usize = 100;

/// Commits an attachment for every file reference; what cannot be read raises an alert and leaves
/// a placeholder. Segments we do not know raise an alert too.
pub(crate) async fn references(run: &mut Run, segments: &[Segment]) -> Result<(), Stopped> {
    for segment in segments {
        match segment {
            Segment::FileRef { path } => attach(run, path.clone()).await?,
            Segment::Unknown(_) => {
                let message = "received unknown segment kind from a newer client; passed to LLM as placeholder";
                run.publish(alert(AlertSource::Pod, message)).await;
            }
            Segment::Text { .. }
            | Segment::Paste { .. }
            | Segment::KnowledgeRef { .. }
            | Segment::WorkflowInvoke { .. } => {}
        }
    }
    Ok(())
}

/// A warning that outlives its moment.
pub(crate) fn alert(source: AlertSource, message: impl Into<String>) -> Event {
    let timestamp_ms = i64::try_from(crate::protocol::now_ms()).unwrap_or(i64::MAX);
    Event::Alert(Alert { level: AlertLevel::Warn, source, message: message.into(), timestamp_ms })
}

async fn attach(run: &mut Run, path: String) -> Result<(), Stopped> {
    let full = run.setup.tools.cwd.join(&path);
    let scope = (run.setup.scope)();
    let read = tokio::task::spawn_blocking(move || read(&full, &scope)).await;
    let body = match read.unwrap_or_else(|_| Err("the reader failed".into())) {
        Ok(body) => format!("[File: {path}]\n{body}"),
        Err(why) => {
            run.publish(alert(AlertSource::Pod, format!("cannot attach {path}: {why}"))).await;
            format!("[File: {path}]\n[not attached: {why}]")
        }
    };
    let item = SystemItem::FileAttachment { path, body };
    run.commit(vec![Entry::new(Fact::SystemItem { item, taken: None })]).await
}

fn read(path: &Path, scope: &Scope) -> Result<String, String> {
    let path: PathBuf = path.canonicalize().map_err(|e| e.to_string())?;
    if scope.permission(&path) < Some(Permission::Read) {
        return Err("path is outside allowed scope".into());
    }
    let meta = std::fs::metadata(&path).map_err(|e| e.to_string())?;
    if meta.is_dir() {
        return list(&path);
    }
    if !meta.is_file() {
        return Err("not a regular file".into());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&path).map_err(|e| e.to_string())?;
    std::io::Read::read_to_end(&mut std::io::Read::take(file, MAX_BYTES as u64 + 1), &mut bytes)
        .map_err(|e| e.to_string())?;
    let over = bytes.len() > MAX_BYTES;
    bytes.truncate(MAX_BYTES);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if over {
        text.push_str(&format!("\n[cut at {MAX_BYTES} of {} bytes]", meta.len()));
    }
    Ok(text)
}

fn list(dir: &Path) -> Result<String, String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .map_err(|e| e.to_string())?
        .flatten()
        .map(|entry| {
            let slash = if entry.path().is_dir() { "/" } else { "" };
            format!("{}{slash}", entry.file_name().to_string_lossy())
        })
        .collect();
    names.sort();
    let more = names.len().saturating_sub(MAX_LISTED);
    names.truncate(MAX_LISTED);
    if more > 0 {
        names.push(format!("… and {more} more"));
    }
    Ok(names.join("\n"))
}
