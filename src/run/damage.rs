//! What is done and said about a log that is damaged. The first line of a segment carries the system
//! prompt and the history that a compaction or a fork handed over: where it cannot be read, the Pod
//! goes on in a new segment that has both again, as far as they can be found.

use crate::protocol::entry::Kept;
use crate::protocol::{
    AlertSource, Entry, Fact, Refusal, SegmentId, SegmentOrigin, SystemItem, now_ms,
};
use crate::run::session_state::{self, COST, SessionState, Start};
use crate::run::{RunEvent, Setup, attach, prompt};
use crate::session::{LogError, Replay, compacted_from, load_output, replay};
use std::sync::Arc;
use tokio::sync::mpsc;

/// How far the newest entry may be ahead of the clock before that is said, in milliseconds.
const AHEAD: u64 = 60_000;

/// Says on the screens what the log holds that was not expected: damaged lines, entries of the
/// future.
pub(super) async fn say(state: &Replay, last_ts: u64, out: &mpsc::Sender<RunEvent>) {
    let mut said = Vec::new();
    match state.damaged.len() {
        0 => {}
        1 => said.push(
            "1 line of the log is damaged: it is shown in its place and not sent to the model"
                .to_owned(),
        ),
        many => said.push(format!(
            "{many} lines of the log are damaged: they are shown in their places and not sent to the model"
        )),
    }
    if last_ts > now_ms().saturating_add(AHEAD) {
        let at =
            i64::try_from(last_ts).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        let at = at.map_or_else(|| "the far future".to_owned(), |at| at.to_string());
        said.push(format!(
            "the newest entry of the log is of {at}, which is later than the clock says now; nothing is lost, because the order of the lines counts"
        ));
    }
    for text in said {
        let event = attach::alert(AlertSource::Pod, text);
        // An actor that is gone reads no events.
        let _ = out.send(RunEvent::Event(event)).await;
    }
}

/// Begins a new segment after the first line of the log was lost. It has a freshly rendered system prompt.
/// If the lost line held the summary of a compaction, the history from before that compaction is used
/// instead. An entry tells people and the model. A run that waits for an approval stays in its segment
/// and gets the new prompt.
pub(super) async fn begin_anew(
    setup: &Setup,
    damaged: SessionState,
    out: &mpsc::Sender<RunEvent>,
) -> Result<SessionState, Refusal> {
    let system = session_state::new_prompt(setup, out).await?;
    if damaged.state.open_approval().is_some() {
        return Ok(SessionState { system: system.into(), ..damaged });
    }
    let older = before(setup, damaged.segment).await;
    let note = sentence(&damaged.state, older.is_some());
    let old = &damaged.state;
    let history = older.unwrap_or_default().into_iter().chain(old.history.clone()).collect();
    let history = with_outputs(setup, history).await?;
    let origin = SegmentOrigin { segment_id: damaged.segment, at_turn_index: old.turn_count };
    let start =
        Start { system, history, compacted_from: Some(origin), run: old.run, under_way: None };
    let mut setup = setup.clone();
    if let Some(cost) = old.cost {
        setup.identity[COST] = cost.into();
    }
    let mut next = session_state::begin(&setup, setup.session, start, out).await?;
    next.state.taken.clone_from(&old.taken);
    next.state.files.clone_from(&old.files);
    (next.state.interrupted, next.state.cut_at) = (old.interrupted, old.cut_at);
    let turn_count = old.turn_count;
    damaged.close().await;
    let body = prompt::notification(&note);
    let item = SystemItem::Notification { message: note, body, from: None };
    let entries = vec![
        Entry::new(Fact::TurnEnd { turn_count }),
        Entry::new(Fact::SystemItem { item, taken: None }),
    ];
    let end = next.journal.commit(entries.clone()).await?;
    entries.iter().for_each(|entry| next.state.apply(entry));
    let _ = out.send(RunEvent::Committed { entries, end }).await;
    Ok(next)
}

/// The history with every output that was left in the log.
async fn with_outputs(setup: &Setup, history: Vec<Arc<Kept>>) -> Result<Vec<Kept>, Refusal> {
    let files = setup.files.clone();
    let whole = move |kept| {
        let mut kept = Arc::unwrap_or_clone(kept);
        load_output(&files, &mut kept)?;
        Ok::<_, LogError>(Kept { output: None, ..kept })
    };
    let read = move || history.into_iter().map(whole).collect::<Result<Vec<_>, _>>();
    Ok(tokio::task::spawn_blocking(read)
        .await
        .map_err(|error| Refusal::internal(error.to_string()))??)
}

/// The history of the segment that a compaction closed with this one.
async fn before(setup: &Setup, segment: SegmentId) -> Option<Vec<Arc<Kept>>> {
    let files = setup.files.clone();
    let read = move || {
        let older = compacted_from(&files, segment)?;
        replay(&files, older, None).ok().map(|older| older.history)
    };
    tokio::task::spawn_blocking(read).await.ok().flatten()
}

fn sentence(state: &Replay, older_is_read: bool) -> String {
    let reason = state.damaged.iter().find(|damaged| damaged.byte == 0);
    let reason = reason.map_or_else(String::new, |damaged| format!(" ({})", damaged.reason));
    let handover = if older_is_read {
        "the handover of the last compaction is lost, and what was said before it is sent to the model instead"
    } else {
        "if this pod is a fork, what it took over is not sent to the model any more"
    };
    format!(
        "the first line of the log is damaged{reason}: its system prompt was made anew; {handover}"
    )
}
