//! How an event and the spans around it become one line:
//! `2026-11-22T10:27:49.123Z INFO 4242 yoi::run run{pod=alice id=7}: finished ms=1203`.

use crate::trace::Sink;
use std::fmt::Write as _;
use std::sync::Arc;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// Turns events into lines.
pub(super) struct Lines {
    sink: Arc<Sink>,
}

impl Lines {
    pub(super) fn new(sink: Arc<Sink>) -> Self {
        Self { sink }
    }
}

/// The fields of a span or an event, as text; the message stands first.
#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing to a string never fails.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.others, " {name}={value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

impl<S> Layer<S> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let (now, level) = (jiff::Timestamp::now(), metadata.level());
        let (pid, target) = (std::process::id(), metadata.target());
        let mut line = format!("{now:.3} {level} {pid} {target}");
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            line.push_str(&format!(" {}", span.name()));
            if let Some(Fields { others, .. }) = span.extensions().get::<Fields>() {
                line.push_str(&format!("{{{}}}", others.trim_start()));
            }
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        line.push_str(&format!(": {}{}", fields.message, fields.others));
        self.sink.line(&line);
    }
}
