//! `@file` references of an input: what they name is committed to the history as attachments.

use crate::files::FileError;
use crate::protocol::{Alert, AlertLevel, AlertSource, Entry, Event, Fact, Segment, SystemItem};
use crate::run::{Run, Stopped};
use crate::tools::{self, Context};

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
    let ctx = Context { scope: (run.setup.scope)(), ..run.setup.tools.clone() };
    let given = path.clone();
    let read = run.setup.path_threads.run(move || tools::attachment(&given, &ctx)).await;
    let read = read.unwrap_or_else(|why| Err(FileError::Failed(why.to_string())));
    let body = match read {
        Ok(body) => format!("[File: {path}]\n{body}"),
        Err(why) => {
            run.publish(alert(AlertSource::Pod, format!("cannot attach {path}: {why}"))).await;
            format!("[File: {path}]\n[not attached: {why}]")
        }
    };
    let item = SystemItem::FileAttachment { path, body };
    run.commit(vec![Entry::new(Fact::SystemItem { item, taken: None })]).await
}
