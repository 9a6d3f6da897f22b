//! `@file` references of an input: what they name is committed to the history as attachments.

use crate::files::FileError;
use crate::protocol::{Alert, AlertLevel, AlertSource, Entry, Event, Fact, Segment, SystemItem};
use crate::run::{Run, Stopped};
use crate::tools::{self, Context};
use std::collections::BTreeSet;

/// The most paths that one input names by typing them.
const MAX_TYPED: usize = 20;

/// Commits an attachment for every file reference; what cannot be read raises an alert and leaves
/// a placeholder. Segments we do not know raise an alert too. A path that a person typed counts where it is there.
pub(crate) async fn references(
    run: &mut Run,
    segments: &[Segment],
    by_person: bool,
) -> Result<(), Stopped> {
    let chosen = segments.iter().filter_map(|segment| match segment {
        Segment::FileRef { path } => Some(path.as_str()),
        _ => None,
    });
    let mut named: BTreeSet<&str> = chosen.collect();
    for segment in segments {
        match segment {
            Segment::FileRef { path } => attach(run, path, Missing::IsSaid).await?,
            Segment::Unknown(_) => {
                let message = "received unknown segment kind from a newer client; passed to LLM as placeholder";
                run.publish(alert(AlertSource::Pod, message)).await;
            }
            Segment::Text { content } if by_person => {
                let mut paths = typed(content);
                for path in paths.by_ref().take(MAX_TYPED).filter(|path| named.insert(path)) {
                    attach(run, path, Missing::IsNoReference).await?;
                }
                if paths.next().is_some() {
                    let message = format!(
                        "only the first {MAX_TYPED} words with an @ were looked up as files; the rest stay text"
                    );
                    run.publish(alert(AlertSource::Pod, message)).await;
                }
            }
            Segment::Text { .. }
            | Segment::Paste { .. }
            | Segment::KnowledgeRef { .. }
            | Segment::WorkflowInvoke { .. } => {}
        }
    }
    Ok(())
}

/// What a path means that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// It was chosen, so that the person should know.
    IsSaid,
    /// The word was not meant as a path.
    IsNoReference,
}

/// The words of a text that stand behind `@`, without the punctuation around them.
fn typed(text: &str) -> impl Iterator<Item = &str> {
    let words =
        text.split_whitespace().map(|word| word.trim_start_matches(['(', '[', '"', '\'', '`']));
    let behind = words.filter_map(|word| word.strip_prefix('@'));
    let paths = behind.map(|word| {
        word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'', '`'])
    });
    paths.filter(|path| !path.is_empty() && !path.contains('@'))
}

/// A warning that outlives its moment.
pub(crate) fn alert(source: AlertSource, message: impl Into<String>) -> Event {
    let timestamp_ms = i64::try_from(crate::protocol::now_ms()).unwrap_or(i64::MAX);
    Event::Alert(Alert { level: AlertLevel::Warn, source, message: message.into(), timestamp_ms })
}

async fn attach(run: &mut Run, path: &str, missing: Missing) -> Result<(), Stopped> {
    let ctx = Context { scope: (run.setup.scope)(), ..run.setup.tools.clone() };
    let given = path.to_owned();
    let read = run.setup.path_threads.run(move || tools::attachment(&given, &ctx)).await;
    let read = read.unwrap_or_else(|why| Err(FileError::Failed(why.to_string())));
    let (body, images) = match read {
        Ok(tools::Attachment { text, images }) => (format!("[File: {path}]\n{text}"), images),
        Err(FileError::Missing(..)) if missing == Missing::IsNoReference => return Ok(()),
        Err(why) => {
            run.publish(alert(AlertSource::Pod, format!("cannot attach {path}: {why}"))).await;
            (format!("[File: {path}]\n[not attached: {why}]"), Vec::new())
        }
    };
    let item = SystemItem::FileAttachment { path: path.to_owned(), body, images };
    run.commit(vec![Entry::new(Fact::SystemItem { item, taken: None })]).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_path_is_a_word_behind_an_at_sign_without_the_punctuation_around_it() {
        let text = "see @src/a.rs, (@b.txt) and \"@c d\"; write to me@example.org or @, @@x. @e/";
        assert_eq!(typed(text).collect::<Vec<_>>(), ["src/a.rs", "b.txt", "c", "e/"]);
    }
}
