//! How far one Pod has read what another one said, by the id of an entry: ids outlive compaction,
//! fork, rewind and restore.

use crate::protocol::name::{EntryId, PodName};
use crate::store::{Store, StoreError};
use rusqlite::{Connection, OptionalExtension};

impl Store {
    /// The last entry that `reader` has read of `pod`.
    pub async fn cursor(
        &self,
        reader: &PodName,
        pod: &PodName,
    ) -> Result<Option<EntryId>, StoreError> {
        let keys = [reader.key(), pod.key()];
        let sql = "SELECT entry FROM cursors WHERE reader = ?1 AND pod = ?2";
        let read = move |db: &Connection| {
            let text: Option<String> = db.query_row(sql, keys, |row| row.get(0)).optional()?;
            // One that cannot be read means reading from the start once more.
            Ok(text.and_then(|text| text.parse().ok()))
        };
        self.reader.run("read", read).await
    }

    /// `reader` has read `pod` up to and including this entry.
    pub async fn set_cursor(
        &self,
        reader: &PodName,
        pod: &PodName,
        entry: EntryId,
    ) -> Result<(), StoreError> {
        let row = [reader.key(), pod.key(), entry.to_string()];
        let sql = "INSERT INTO cursors (reader, pod, entry) VALUES (?1, ?2, ?3)
            ON CONFLICT (reader, pod) DO UPDATE SET entry = excluded.entry";
        self.writer.run("write to", move |db| Ok(db.execute(sql, row).map(drop)?)).await
    }
}
