//! The words on the wire, without a process: golden lines, framing, and the recorded vectors of
//! the predecessor.

#[path = "wire/framing.rs"]
mod framing;
#[path = "wire/golden_entries.rs"]
mod golden_entries;
#[path = "wire/golden_events.rs"]
mod golden_events;
#[path = "wire/golden_methods.rs"]
mod golden_methods;
#[path = "wire/lines.rs"]
mod lines;
#[path = "wire/vectors.rs"]
mod vectors;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;

/// Checks that `value` is written as `json` and read back from it, compared as JSON values.
fn golden<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, json: &str) {
    let expected: Value = serde_json::from_str(json).expect(json);
    let written = serde_json::to_value(value).expect("wire types have string keys only");
    assert_eq!(written, expected, "written");
    let read: T = serde_json::from_str(json).unwrap_or_else(|e| panic!("{json}: {e}"));
    assert_eq!(&read, value, "read");
}

/// Checks a table of golden lines and that it has one for every variant. The list of variants is
/// also a match, so a new variant does not compile until it stands here.
macro_rules! every_variant {
    ($type:ident, $table:expr, $($variant:ident)*) => {
        crate::every_variant!($type by crate::golden, $table, $($variant)*)
    };
    ($type:ident by $check:path, $table:expr, $($variant:ident)*) => {{
        fn variant(value: &$type) -> &'static str {
            match value { $($type::$variant { .. } => stringify!($variant)),* }
        }
        let table: Vec<($type, &str)> = $table;
        for (value, json) in &table {
            $check(value, json);
        }
        let seen: std::collections::BTreeSet<_> = table.iter().map(|(v, _)| variant(v)).collect();
        let all = std::collections::BTreeSet::from([$(stringify!($variant)),*]);
        assert_eq!(seen, all, "every variant has a golden line");
    }};
}
pub(crate) use every_variant;
