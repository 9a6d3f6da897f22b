//! What a session holds, in numbers: what a person said, how many tools were called, which files
//! tools changed, which Pods they spawned and what became of these.

use crate::protocol::Losses;
use crate::protocol::entry::{Entry, Fact, NotificationSource, SystemItem};
use crate::protocol::item::Item;
use crate::protocol::method::{PodEvent, Segment};
use crate::protocol::name::{PodName, SegmentId};
use crate::session::glance::Glance;
use crate::session::line::decode;
use crate::session::segment_index::SegmentReader;
use crate::session::stretches::Stretch;
use crate::session::{Files, LogError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// Names of changed files that are listed; of the rest, the number.
const NAMED: usize = 5;
/// The tools that change the file that they name.
const CHANGE_FILES: [&str; 2] = ["Write", "Edit"];
const SPAWN: &str = "SpawnPod";

/// The numbers of some stretches.
#[derive(Debug, Default)]
pub struct Scan {
    /// Oldest first.
    pub inputs: Vec<Input>,
    pub lines: usize,
    /// Lines in the head segment before where the last of its stretches ends.
    pub head_entries: usize,
    tool_calls: usize,
    /// One for each change, oldest first.
    changed: Vec<PathBuf>,
    /// The Pods that were spawned, oldest first.
    pub spawned: Vec<PodName>,
    /// What is known of each child, by its name, oldest first: how its last run ended, that it was stopped after that,
    /// and the last notification after both.
    pub of_children: BTreeMap<String, Vec<OfChild>>,
    /// Calls without a result yet, by their ids.
    open: BTreeMap<String, Leaves>,
    /// The invoke that the next input may belong to.
    invoke: Option<Place>,
}

/// Something that a person or another Pod said.
#[derive(Debug)]
pub struct Input {
    pub place: Place,
    /// The first line that goes when one goes back to before this input: that of its run, or its own
    /// where it entered a run that was under way.
    pub first_dropped: Place,
    pub ts: u64,
    pub segments: Vec<Segment>,
    /// Numbers of what stands before it.
    inputs: usize,
    tool_calls: usize,
    changed: usize,
    spawned: usize,
}

/// What a Pod learned of a child.
#[derive(Clone, Debug, PartialEq)]
pub struct OfChild {
    pub item: SystemItem,
    /// The mailbox row that it came from.
    pub taken: Option<String>,
    aspect: Aspect,
}

/// What an item says of a child. It replaces earlier items of its own aspect and of the later ones: what a child waited
/// for is over with the end of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Aspect {
    RunEnd,
    Stop,
    Notification,
}

/// What a call leaves in the world once it has succeeded.
#[derive(Debug)]
enum Leaves {
    ChangedFile,
    Pod(PodName),
}

/// Where a line stands.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub segment: SegmentId,
    /// In bytes.
    pub offset: u64,
    /// In lines of the segment.
    pub index: usize,
    /// In lines that were scanned.
    pub ordinal: usize,
}

impl Scan {
    /// Looks at each line, oldest first. Of a segment other than `head` that cannot be read, the lines before
    /// the error count.
    pub fn read(files: &Files, head: SegmentId, stretches: &[Stretch]) -> Result<Self, LogError> {
        let mut scan = Self::default();
        // How many lines each segment has before an offset.
        let mut counted: BTreeMap<SegmentId, (u64, usize)> = BTreeMap::new();
        for Stretch { segment, range } in stretches {
            let path = files.segment(*segment);
            let mut read = || -> io::Result<()> {
                let segment_lines = SegmentReader::open(files, *segment)?;
                let (at, lines) = counted.get(segment).copied().unwrap_or_default();
                let index = lines + segment_lines.count_lines(at..range.start)?;
                let before = scan.lines;
                scan.stretch(&segment_lines, *segment, range.clone(), index)?;
                counted.insert(*segment, (range.end, index + scan.lines - before));
                Ok(())
            };
            match read().map_err(LogError::reading(&path)) {
                Err(error) if *segment == head => return Err(error),
                Err(_) | Ok(()) => {}
            }
        }
        scan.head_entries = counted.get(&head).map_or(0, |(_, lines)| *lines);
        Ok(scan)
    }

    /// What stands from an input on, or all of it.
    pub fn losses(&self, from: Option<&Input>) -> Losses {
        let (inputs, tool_calls, changed, spawned) = from.map_or((0, 0, 0, 0), |from| {
            (from.inputs, from.tool_calls, from.changed, from.spawned)
        });
        let mut files: Vec<PathBuf> = self.changed[changed..].to_vec();
        files.sort_unstable();
        files.dedup();
        let more_files = files.len().saturating_sub(NAMED);
        files.truncate(NAMED);
        let files = files.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        Losses {
            messages: self.inputs.len() - inputs,
            tool_calls: self.tool_calls - tool_calls,
            files,
            more_files,
            pods: self.spawned[spawned..].to_vec(),
        }
    }

    fn stretch(
        &mut self,
        lines: &SegmentReader,
        segment: SegmentId,
        range: std::ops::Range<u64>,
        first: usize,
    ) -> io::Result<()> {
        let before = self.lines;
        self.invoke = None;
        lines.glance(range, |line| {
            let index = first + self.lines - before;
            let place = Place { segment, offset: line.start, index, ordinal: self.lines };
            self.lines += 1;
            self.line(&line, place)
        })
    }

    fn line(&mut self, line: &Glance<'_>, place: Place) -> io::Result<()> {
        let (kind, rest) = line.kind()?;
        match kind.as_ref() {
            "invoke" => self.invoke = Some(place),
            "user_input" => {
                let first_dropped = self.invoke.take().unwrap_or(place);
                self.input(&line.line()?, place, first_dropped);
            }
            "system_item" => {
                if may_be_of_child(rest) {
                    self.of_child(&line.line()?);
                }
            }
            "extension" | "config_changed" => {}
            "assistant_item" => {
                self.invoke = None;
                if is_call(rest) {
                    self.tool_calls += 1;
                    if may_leave_something(rest) {
                        self.call(&line.line()?);
                    }
                }
            }
            "tool_result" => {
                self.invoke = None;
                if !self.open.is_empty() {
                    self.result(&line.line()?);
                }
            }
            _ => self.invoke = None,
        }
        Ok(())
    }

    fn input(&mut self, line: &[u8], place: Place, first_dropped: Place) {
        let Ok(Entry { ts, fact: Fact::UserInput { segments, .. }, .. }) = decode(line) else {
            return;
        };
        let (inputs, tool_calls) = (self.inputs.len(), self.tool_calls);
        let (changed, spawned) = (self.changed.len(), self.spawned.len());
        let input =
            Input { place, first_dropped, ts, segments, inputs, tool_calls, changed, spawned };
        self.inputs.push(input);
    }

    /// A child event, or a notification of the host about a child.
    fn of_child(&mut self, line: &[u8]) {
        let Ok(Entry { fact: Fact::SystemItem { item, taken }, .. }) = decode(line) else { return };
        let (child, aspect) = match &item {
            SystemItem::PodEvent { event: PodEvent::ShutDown { pod_name }, .. } => {
                (pod_name.clone(), Aspect::Stop)
            }
            SystemItem::PodEvent { event, .. } => (event.pod_name().to_owned(), Aspect::RunEnd),
            SystemItem::Notification {
                from: Some(NotificationSource::WaitingChild(child)),
                ..
            } => (child.to_string(), Aspect::Notification),
            _ => return,
        };
        let known = self.of_children.entry(child).or_default();
        known.retain(|earlier| earlier.aspect < aspect);
        known.push(OfChild { item, taken, aspect });
    }

    /// A call that may leave something in the world.
    fn call(&mut self, line: &[u8]) {
        let Ok(Entry { fact: Fact::AssistantItem { item, .. }, .. }) = decode(line) else { return };
        let Item::ToolCall { call_id, name, arguments, .. } = item else { return };
        let leaves = match name.as_str() {
            SPAWN => serde_json::from_str::<Spawned>(&arguments).ok().map(|s| Leaves::Pod(s.name)),
            name if CHANGE_FILES.contains(&name) => Some(Leaves::ChangedFile),
            _ => None,
        };
        self.open.extend(leaves.map(|leaves| (call_id, leaves)));
    }

    fn result(&mut self, line: &[u8]) {
        let Ok(Entry { fact: Fact::ToolResult { item, files, .. }, .. }) = decode(line) else {
            return;
        };
        let Item::ToolResult { call_id, is_error, .. } = item else { return };
        match self.open.remove(&call_id) {
            Some(Leaves::ChangedFile) => {
                self.changed.extend(files.into_iter().map(|mark| mark.path));
            }
            Some(Leaves::Pod(name)) if !is_error => self.spawned.push(name),
            Some(Leaves::Pod(_)) | None => {}
        }
    }
}

/// The argument of a call of SpawnPod that names the Pod.
#[derive(Deserialize)]
struct Spawned {
    name: PodName,
}

/// Whether an item is a tool call. Lines of other programs are not looked into.
fn is_call(rest: &[u8]) -> bool {
    rest.starts_with(br#","item":{"kind":"tool_call""#)
}

/// Whether a system item may tell of a child. Lines of other programs are not looked into.
fn may_be_of_child(rest: &[u8]) -> bool {
    [&br#","item":{"kind":"pod_event""#[..], br#","item":{"kind":"notification""#]
        .iter()
        .any(|start| rest.starts_with(start))
}

/// Whether a call may leave something in the world. A long id before the name leaves no room for it in what is kept of
/// the line: such a line has to be read whole.
fn may_leave_something(rest: &[u8]) -> bool {
    const KEY: &[u8] = br#","name":""#;
    let Some(at) = memchr::memmem::find(rest, KEY) else { return true };
    let name = &rest[at + KEY.len()..];
    let is = |tool: &str, end| name[..end] == *tool.as_bytes();
    memchr::memchr(b'"', name)
        .is_none_or(|end| is(SPAWN, end) || CHANGE_FILES.iter().any(|tool| is(tool, end)))
}
