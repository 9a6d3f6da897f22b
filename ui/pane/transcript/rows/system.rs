//! The rows of items that the runtime put into the history: notifications, child events, attachments.

use crate::pane::transcript::rows::{Speaker, indented, preview, text};
use crate::pane::transcript::{clean, markdown, notification};
use crate::rows::{Break, Row};
use crate::theme::Role;
use yoi::protocol::{NotificationSource, PodEvent, SentByPerson, SystemItem};

/// The speaker of an item of the runtime; `None` for attachments.
pub fn speaker(item: &SystemItem) -> Option<Speaker> {
    match item {
        SystemItem::Notification { message, from, .. } => {
            Some(Speaker::Other(notification::speaker(message, from.as_ref())))
        }
        SystemItem::PodEvent { event, .. } => {
            let child = match event {
                PodEvent::TurnEnded { pod_name, .. }
                | PodEvent::Errored { pod_name, .. }
                | PodEvent::ShutDown { pod_name } => pod_name,
                PodEvent::ScopeSubDelegated { sub_pod, .. } => sub_pod,
            };
            Some(Speaker::Other(format!("child {}", clean::one_line(child))))
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

/// The rows of an item.
pub fn rows(item: &SystemItem, cells: usize, out: &mut Vec<Row>) {
    if let Some(report) = report(item) {
        out.extend(markdown::render(report, cells));
    } else if speaker(item).is_some() {
        text(&said(item), Role::Text, cells, out);
        if let Some(reason) = sent(item).and_then(|sent| sent.reason.as_ref()) {
            text(&format!("({})", clean::one_line(reason)), Role::Dim, cells, out);
        }
    } else {
        let body = clean::words(item.body().trim_end());
        indented(&body, Role::Dim, Break::Words, cells, out);
    }
}

/// The text of its speaker, without the words that the runtime adds for the model.
pub fn said(item: &SystemItem) -> String {
    match item {
        SystemItem::Notification { message, from, .. } => {
            notification::text(message, from.as_ref()).to_owned()
        }
        SystemItem::PodEvent { event, body } => {
            let sentence = event.sentence().unwrap_or_else(|| body.clone());
            match report(item) {
                Some(report) => format!("{sentence}: {report}"),
                None => sentence,
            }
        }
        other => other.body().to_owned(),
    }
}

/// The kind of an item and its preview, for its one-line head.
pub fn title(item: &SystemItem) -> (&'static str, String) {
    let lines = |body: &str| match body.lines().count() {
        1 => "1 line".to_owned(),
        many => format!("{many} lines"),
    };
    match item {
        SystemItem::FileAttachment { path, body } => {
            ("attached", format!("{}  {}", clean::one_line(path), lines(body)))
        }
        SystemItem::Knowledge { slug, body } => {
            ("knowledge", format!("{}  {}", clean::one_line(slug), lines(body)))
        }
        SystemItem::Workflow { slug, body } => {
            ("workflow", format!("{}  {}", clean::one_line(slug), lines(body)))
        }
        SystemItem::TaskReminder { body, .. } => ("reminder", preview(body)),
        SystemItem::Interrupt { body } => ("interrupted", preview(body)),
        SystemItem::Notification { message, .. } => ("notification", preview(message)),
        SystemItem::PodEvent { body, .. } => ("child", preview(body)),
        SystemItem::Unknown(_) => ("system", preview(item.body())),
    }
}
