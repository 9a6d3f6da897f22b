//! The task list of a Pod: what a model plans to do. It lives in the history alone and is rebuilt
//! from it.

use crate::protocol::Item;
use crate::tools::fault::Fault;
use crate::tools::{Output, input, text_limit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub const CREATE: &str = "Adds a task to your task list, to plan work of several steps and to \
keep track of it. Ids count from 1.";
pub const GET: &str = "Shows one task of your task list with its description.";
pub const LIST: &str = "Shows your task list: id, status and subject of each task.";
pub const UPDATE: &str = "Changes the status, subject or description of a task. Set a task to \
inprogress when you begin it and to completed when it is done; deleted removes it.";

/// Tasks in the list at a time.
const MAX_TASKS: usize = 200;
/// Characters.
const MAX_SUBJECT: usize = 200;
const MAX_DESCRIPTION: usize = 4000;
/// Characters of a description that a compaction keeps.
const KEPT_DESCRIPTION: usize = 1000;
/// The prefix of the call id of the list's snapshot in a compacted history.
const SNAPSHOT_CALL: &str = "task-list-";
/// The prefix of a creation's summary; the id follows.
const CREATED: &str = "Created task ";

/// All tasks, by id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tasks {
    /// The highest id given so far.
    last: u64,
    tasks: Vec<Task>,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub taskid: u64,
    pub status: Status,
    pub subject: String,
    pub description: String,
}

/// The state of a task; `Deleted` removes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Pending,
    #[serde(alias = "in_progress")]
    Inprogress,
    Completed,
    Deleted,
}

#[derive(Deserialize, JsonSchema)]
pub struct Create {
    /// What is to be done, in one line.
    subject: String,
    /// What belongs to it, and when it is done.
    #[serde(default)]
    description: String,
}

#[derive(Deserialize, JsonSchema)]
pub struct Get {
    /// The id of the task.
    taskid: u64,
}

#[derive(Deserialize, JsonSchema)]
pub struct List {}

#[derive(Deserialize, JsonSchema)]
pub struct Update {
    /// The id of the task.
    taskid: u64,
    /// The new status.
    status: Option<Status>,
    /// The new subject.
    subject: Option<String>,
    /// The new description.
    description: Option<String>,
}

pub fn create(arguments: &str, tasks: &mut Tasks) -> Result<Output, Fault> {
    let input: Create = input::parse("TaskCreate", arguments)?;
    let id = tasks.last + 1;
    let task = tasks.add(id, input)?;
    Ok(Output::line(format!("{CREATED}{id}: {}", task.subject)))
}

pub fn get(arguments: &str, tasks: &mut Tasks) -> Result<Output, Fault> {
    let input: Get = input::parse("TaskGet", arguments)?;
    let task = tasks.find(input.taskid)?;
    let text = serde_json::to_string(task).map_err(|e| Fault::Internal(e.to_string()))?;
    Ok(Output::with(format!("Task {}: {}", task.taskid, task.subject), text))
}

pub fn list(arguments: &str, tasks: &mut Tasks) -> Result<Output, Fault> {
    let List {} = input::parse("TaskList", arguments)?;
    Ok(if tasks.tasks.is_empty() {
        Output::line("No tasks")
    } else {
        Output::with(tasks.counts(), tasks.lines())
    })
}

pub fn update(arguments: &str, tasks: &mut Tasks) -> Result<Output, Fault> {
    let input: Update = input::parse("TaskUpdate", arguments)?;
    let id = input.taskid;
    if input.status.is_none() && input.subject.is_none() && input.description.is_none() {
        return Err(Fault::argument("nothing to change: give status, subject or description"));
    }
    tasks.find(id)?;
    tasks.change(input)?;
    Ok(Output::line(match tasks.find(id) {
        Ok(task) => format!("Task {id} is {}: {}", task.status.word(), task.subject),
        Err(_) => format!("Task {id} is deleted"),
    }))
}

impl Status {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Inprogress => "inprogress",
            Self::Completed => "completed",
            Self::Deleted => "deleted",
        }
    }
}

impl Tasks {
    /// The list after all successful creations and changes in these items, from the last snapshot
    /// on.
    pub fn replay<'i>(items: impl IntoIterator<Item = &'i Item>) -> Self {
        let (mut tasks, mut calls) = (Self::default(), BTreeMap::new());
        for item in items {
            match item {
                Item::ToolCall { call_id, name, arguments } => {
                    calls.insert(call_id.as_str(), (name.as_str(), arguments.as_str()));
                }
                Item::ToolResult { call_id, summary, content, is_error: false, .. } => {
                    if let Some((name, arguments)) = calls.get(call_id.as_str()) {
                        tasks.redo(name, arguments, summary, content.as_deref());
                    }
                }
                _ => {}
            }
        }
        tasks
    }

    /// A call and its result with the whole list, for the start of a compacted history before the
    /// kept calls; empty for an empty list.
    pub fn snapshot(&self) -> Vec<Item> {
        if self.last == 0 {
            return Vec::new();
        }
        let mut kept = self.clone();
        for task in &mut kept.tasks {
            let max = if task.status == Status::Completed { 0 } else { KEPT_DESCRIPTION };
            task.description = text_limit::cut(&task.description, max);
        }
        // An earlier snapshot may be kept beside this one, and providers refuse an id used twice.
        let call_id = format!("{SNAPSHOT_CALL}{}", uuid::Uuid::now_v7());
        let call = Item::ToolCall {
            call_id: call_id.clone(),
            name: "TaskList".into(),
            arguments: "{}".into(),
        };
        let result = Item::ToolResult {
            call_id,
            summary: self.counts(),
            content: serde_json::to_string(&kept).ok(),
            is_error: false,
            images: Vec::new(),
        };
        vec![call, result]
    }

    /// All tasks, by id.
    pub fn all(&self) -> &[Task] {
        &self.tasks
    }

    /// The subject of the task that is being worked on.
    pub fn at_work(&self) -> Option<&str> {
        let at_work = self.tasks.iter().find(|task| task.status == Status::Inprogress);
        at_work.map(|task| task.subject.as_str())
    }

    /// Replays a successful call; invalid parts are ignored.
    fn redo(&mut self, name: &str, arguments: &str, summary: &str, content: Option<&str>) {
        match name {
            "TaskCreate" => {
                let Ok(input) = input::parse(name, arguments) else { return };
                let id = created_id(summary).unwrap_or(self.last + 1);
                let _ = self.add(id, input);
            }
            "TaskUpdate" => {
                let Ok(input) = input::parse(name, arguments) else { return };
                let _ = self.change(input);
            }
            "TaskList" => {
                if let Some(base) = content.and_then(|text| serde_json::from_str(text).ok()) {
                    *self = base;
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, id: u64, input: Create) -> Result<&Task, Fault> {
        check(Some(&input.subject), Some(&input.description))?;
        // After a snapshot, a creation that is older than it is replayed once more.
        self.tasks.retain(|task| task.taskid != id);
        if self.tasks.len() >= MAX_TASKS {
            let text = format!("the list is full ({MAX_TASKS} tasks): delete completed ones first");
            return Err(Fault::argument(text));
        }
        self.last = self.last.max(id);
        let Create { subject, description } = input;
        let task = Task { taskid: id, status: Status::Pending, subject, description };
        let at = self.tasks.partition_point(|other| other.taskid < id);
        self.tasks.insert(at, task);
        Ok(&self.tasks[at])
    }

    fn change(&mut self, input: Update) -> Result<(), Fault> {
        check(input.subject.as_deref(), input.description.as_deref())?;
        if input.status == Some(Status::Deleted) {
            self.tasks.retain(|task| task.taskid != input.taskid);
            return Ok(());
        }
        let Some(task) = self.tasks.iter_mut().find(|task| task.taskid == input.taskid) else {
            return Err(unknown(input.taskid));
        };
        task.status = input.status.unwrap_or(task.status);
        task.subject = input.subject.unwrap_or_else(|| task.subject.clone());
        task.description = input.description.unwrap_or_else(|| task.description.clone());
        Ok(())
    }

    fn find(&self, id: u64) -> Result<&Task, Fault> {
        self.tasks.iter().find(|task| task.taskid == id).ok_or_else(|| unknown(id))
    }

    fn counts(&self) -> String {
        let count = |status| self.tasks.iter().filter(|task| task.status == status).count();
        format!(
            "{} task(s): {} inprogress, {} pending, {} completed",
            self.tasks.len(),
            count(Status::Inprogress),
            count(Status::Pending),
            count(Status::Completed)
        )
    }

    fn lines(&self) -> String {
        let line = |task: &Task| {
            format!("{} [{}] {}", task.taskid, task.status.word(), task.subject.replace('\n', " "))
        };
        self.tasks.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

fn unknown(id: u64) -> Fault {
    Fault::argument(format!("no task {id}; TaskList shows those there are"))
}

fn created_id(summary: &str) -> Option<u64> {
    summary.strip_prefix(CREATED)?.split(':').next()?.parse().ok()
}

fn check(subject: Option<&str>, description: Option<&str>) -> Result<(), Fault> {
    if subject.is_some_and(|text| text.trim().is_empty()) {
        return Err(Fault::argument("subject is empty"));
    }
    let too_long = |what, max| Fault::argument(format!("{what} is longer than {max} characters"));
    if subject.is_some_and(|text| text.chars().count() > MAX_SUBJECT) {
        return Err(too_long("subject", MAX_SUBJECT));
    }
    if description.is_some_and(|text| text.chars().count() > MAX_DESCRIPTION) {
        return Err(too_long("description", MAX_DESCRIPTION));
    }
    Ok(())
}
