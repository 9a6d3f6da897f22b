//! The rows of items that the runtime put into the history: notifications, child events, attachments.

use crate::rows::{Break, Piece, Row, row_width};
use crate::screen::pane::transcript::rows::{Speaker, indented, preview, text, words_of_another};
use crate::screen::pane::transcript::{clean, markdown, notification};
use crate::theme::Role;
use crate::wording::counted;
use yoi::protocol::{NotificationSource, PodEvent, SentByPerson, SystemItem};

/// What a child is to its parent.
const CHILD: &str = "child";
/// Rows of a report that are shown while it is folded.
const REPORT_ROWS: usize = 6;

/// Whose words an item holds; `None` for attachments and for what the runtime itself says.
pub fn speaker(item: &SystemItem) -> Option<Speaker> {
    match item {
        SystemItem::Notification { from: Some(NotificationSource::WaitingChild(_)), .. } => None,
        SystemItem::Notification { message, from, .. } => {
            Some(notification::speaker(message, from.as_ref()))
        }
        SystemItem::PodEvent { event, .. } => {
            report(item).map(|_| Speaker::new(CHILD, event.pod_name()))
        }
        SystemItem::FileAttachment { .. }
        | SystemItem::Knowledge { .. }
        | SystemItem::Workflow { .. }
        | SystemItem::TaskReminder { .. }
        | SystemItem::Interrupt { .. }
        | SystemItem::Unknown(_) => None,
    }
}

/// The outcome of a message that a person sent in the name of the Pod.
pub fn sent(item: &SystemItem) -> Option<&SentByPerson> {
    match item {
        SystemItem::Notification { from: Some(NotificationSource::Person(sent)), .. } => Some(sent),
        _ => None,
    }
}

/// The last message of a child, which its notification carries.
pub fn report(item: &SystemItem) -> Option<&str> {
    match item {
        SystemItem::PodEvent { event: PodEvent::TurnEnded { result, .. }, .. } => result.as_deref(),
        _ => None,
    }
}

/// What the runtime says of a child: the child, and what happened to it.
pub fn fact(item: &SystemItem) -> Option<(Speaker, Role, String)> {
    let (child, role, words) = match item {
        SystemItem::Notification {
            message,
            from: Some(NotificationSource::WaitingChild(child)),
            ..
        } => {
            let sentence = message.strip_prefix(&format!("pod `{child}` ")).unwrap_or(message);
            (child.as_str(), Role::Dim, preview(sentence))
        }
        SystemItem::PodEvent { event, body } => {
            let (role, words) = match event {
                PodEvent::TurnEnded { result: Some(_), .. } => return None,
                PodEvent::TurnEnded { result: None, .. } => (Role::Dim, "finished".into()),
                PodEvent::Errored { message, .. } => {
                    (Role::Error, format!("failed: {}", clean::one_line(message)))
                }
                PodEvent::ShutDown { .. } => (Role::Dim, "stopped".into()),
                PodEvent::ScopeSubDelegated { .. } => (Role::Dim, preview(body)),
            };
            (event.pod_name(), role, words)
        }
        _ => return None,
    };
    Some((Speaker::new(CHILD, child), role, words))
}

/// The rows of an item.
pub fn rows(item: &SystemItem, cells: usize, out: &mut Vec<Row>) {
    if speaker(item).is_none() {
        let body = clean::words(item.body().trim_end());
        return indented(&body, Role::Dim, Break::Words, cells, out);
    }
    let mut words = Vec::new();
    let bar = words_of_another();
    let beside = cells.saturating_sub(row_width(std::slice::from_ref(&bar))).max(1);
    match report(item) {
        Some(report) => words = markdown::render(report, beside),
        None => text(said(item), Role::Text, beside, &mut words),
    }
    if let Some(reason) = sent(item).and_then(|sent| sent.reason.as_ref()) {
        text(&format!("({})", clean::one_line(reason)), Role::Dim, beside, &mut words);
    }
    out.extend(words.into_iter().map(|row| [vec![bar.clone()], row].concat()));
}

/// Cuts the rows of a report to its beginning, and says how many more there are.
pub fn shorten(rows: &mut Vec<Row>) {
    let more = rows.len().saturating_sub(REPORT_ROWS);
    if more > 1 {
        rows.truncate(REPORT_ROWS);
        rows.push(vec![words_of_another(), Piece::new(format!("… {more} more rows"), Role::Dim)]);
    }
}

/// The text of its speaker, without the words that the runtime adds for the model.
pub fn said(item: &SystemItem) -> &str {
    match item {
        SystemItem::Notification { message, from, .. } => {
            notification::text(message, from.as_ref())
        }
        SystemItem::PodEvent { .. } => report(item).unwrap_or_else(|| item.body()),
        other => other.body(),
    }
}

/// How large what came with a message is: the lines of a text, the kind and size of an image.
pub fn size(item: &SystemItem) -> Option<String> {
    if let SystemItem::FileAttachment { images, body, .. } = item
        && !images.is_empty()
    {
        let said = body.lines().next().unwrap_or_default();
        return Some(said.trim_matches(['[', ']']).to_owned());
    }
    let (SystemItem::FileAttachment { body, .. }
    | SystemItem::Knowledge { body, .. }
    | SystemItem::Workflow { body, .. }) = item
    else {
        return None;
    };
    Some(counted(body.lines().count(), "line", "lines"))
}

/// The kind of an item and its preview, for its one-line head.
pub fn title(item: &SystemItem) -> (&'static str, String) {
    match item {
        SystemItem::FileAttachment { path, .. } => ("attached", clean::one_line(path).into_owned()),
        SystemItem::Knowledge { slug, .. } => ("knowledge", clean::one_line(slug).into_owned()),
        SystemItem::Workflow { slug, .. } => ("workflow", clean::one_line(slug).into_owned()),
        SystemItem::TaskReminder { body, .. } => ("reminder", preview(body)),
        SystemItem::Interrupt { body } => ("interrupted", preview(body)),
        SystemItem::Notification { message, .. } => ("notification", preview(message)),
        SystemItem::PodEvent { body, .. } => ("child", preview(body)),
        SystemItem::Unknown(_) => ("system", preview(item.body())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yoi::protocol::item::Image;

    #[test]
    fn an_image_says_its_size_and_a_text_its_lines() {
        let attached = |body: &str, images| {
            let (path, body) = ("ui/first.png".to_owned(), body.to_owned());
            size(&SystemItem::FileAttachment { path, body, images })
        };
        let image = Image { blob: "00".into(), media_type: "image/png".into() };
        let said = attached("[image, image/png, 2 KiB]", vec![image]);
        assert_eq!(said.as_deref(), Some("image, image/png, 2 KiB"));
        assert_eq!(attached("one\ntwo\n", Vec::new()).as_deref(), Some("2 lines"));
    }
}
