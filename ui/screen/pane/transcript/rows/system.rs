//! The rows of items that the runtime put into the history: notifications, child events, attachments.

use crate::rows::{Break, Piece, Row, row_width};
use crate::screen::pane::transcript::rows::{Speaker, indented, preview, text, words_of_another};
use crate::screen::pane::transcript::{clean, markdown, notification};
use crate::theme::Role;
use crate::wording::counted;
use yoi::protocol::{NotificationSource, PodEvent, SentByPerson, SystemItem};
use yoi::text::SafeText;

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
    let text = match item {
        SystemItem::FileAttachment { images, .. } => match attached(item)? {
            Ok(image) if !images.is_empty() => {
                return Some(image.trim().trim_matches(['[', ']']).to_owned());
            }
            Ok(text) => text,
            // The head says it in place of the path.
            Err(_) => return None,
        },
        SystemItem::Knowledge { body, .. } | SystemItem::Workflow { body, .. } => body,
        _ => return None,
    };
    Some(counted(text.lines().count(), "line", "lines"))
}

/// The text of a file that a message names, without the line that names the file; or why it was not attached.
fn attached(item: &SystemItem) -> Option<Result<&str, &str>> {
    let SystemItem::FileAttachment { path, body, .. } = item else { return None };
    let text = body.strip_prefix(&format!("[File: {path}]\n")).unwrap_or(body);
    let why = text.strip_prefix("[not attached: ").and_then(|text| text.strip_suffix(']'));
    Some(why.map_or(Ok(text), Err))
}

/// The kind of an item and its preview, for its one-line head.
pub fn title(item: &SystemItem) -> (&'static str, String) {
    match item {
        SystemItem::FileAttachment { path, .. } => {
            let spelled = |text: &str| SafeText::spelled(text.to_owned()).into_string();
            match attached(item) {
                Some(Err(why)) if why.contains(path.as_str()) => ("not attached", spelled(why)),
                Some(Err(why)) => ("not attached", spelled(&format!("{path}: {why}"))),
                Some(Ok(_)) | None => ("attached", spelled(path)),
            }
        }
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
        let attached = |text: &str, images| {
            let path = "ui/first.png".to_owned();
            let body = format!("[File: {path}]\n{text}");
            size(&SystemItem::FileAttachment { path, body, images })
        };
        let image = Image { blob: "00".into(), media_type: "image/png".into() };
        let said = attached("[image, image/png, 2 KiB]", vec![image]);
        assert_eq!(said.as_deref(), Some("image, image/png, 2 KiB"));
        assert_eq!(attached("one\ntwo\n", Vec::new()).as_deref(), Some("2 lines"));
    }

    #[test]
    fn a_file_that_was_not_attached_says_so_and_why() {
        let path = "/t/\u{202e}gnp.exe";
        for (why, said) in [
            (format!("outside: {path}"), r"outside: /t/\u{202e}gnp.exe"),
            ("is broken".into(), r"/t/\u{202e}gnp.exe: is broken"),
        ] {
            let body = format!("[File: {path}]\n[not attached: {why}]");
            let path = path.to_owned();
            let item = SystemItem::FileAttachment { path, body, images: Vec::new() };
            assert_eq!(title(&item), ("not attached", said.to_owned()));
            assert_eq!(size(&item), None);
        }
    }
}
