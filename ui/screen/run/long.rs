//! Reads the tables of long texts in the log, piece by piece, each in a task of its own.

use crate::screen::app::Msg;
use crate::screen::pane::transcript::{LongText, PartTable, TableBuilder};
use crate::screen::run::{Arrived, Loop};
use yoi::client::Client;
use yoi::client::whole_entry::WholeEntry;
use yoi::protocol::{PodName, Refusal};

impl Loop {
    /// Finds the parts of a long text; they come back as a message.
    pub(super) fn read_table(&self, pod: PodName, text: LongText) {
        let (client, sender) = (self.client.clone(), self.sender.clone());
        tokio::spawn(async move {
            let read = table(client, pod.clone(), &text).await;
            let msg = Msg::Table(pod, text.entry, read.map_err(|refusal| refusal.message));
            // The loop is gone when the dashboard has been left; then the table is not needed.
            let _ = sender.send(Arrived::Msg(msg)).await;
        });
    }
}

async fn table(client: Client, pod: PodName, text: &LongText) -> Result<PartTable, Refusal> {
    let whole = WholeEntry::open(client, pod, text.entry).await?;
    let mut builder = TableBuilder::behind(text.kept);
    let spans = whole.texts().iter().filter(|span| text.fields.contains(&span.field.as_str()));
    for span in spans.skip(text.skip) {
        builder.begin(span.start);
        let mut reading = whole.span(span);
        while let Some(piece) = whole.next(&mut reading).await? {
            builder.push(&piece).map_err(|error| Refusal::internal(error.to_string()))?;
        }
        builder.end();
    }
    Ok(builder.table(whole.place()))
}
