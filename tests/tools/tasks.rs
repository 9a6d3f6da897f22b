//! The task tools and the list that is rebuilt from the history.

use crate::bench::{Bench, argument_error, content};
use serde_json::{Value, json};
use yoi::protocol::Item;
use yoi::tools::tasks::{Status, Tasks};

/// Calls a tool and writes call and result down, as a Pod's history does.
async fn act(bench: &mut Bench, history: &mut Vec<Item>, name: &str, input: Value) {
    let output = bench.call(name, input.clone()).await;
    let call_id = format!("call-{}", history.len());
    let arguments = input.to_string();
    history.push(Item::ToolCall { call_id: call_id.clone(), name: name.into(), arguments });
    history.push(Item::ToolResult {
        call_id,
        summary: output.summary,
        content: output.content,
        is_error: output.is_error,
        images: Vec::new(),
    });
}

async fn some_history(bench: &mut Bench) -> Vec<Item> {
    let mut history = Vec::new();
    for (name, input) in [
        ("TaskCreate", json!({"subject": "first", "description": "the first"})),
        ("TaskCreate", json!({"subject": ""})),
        ("TaskCreate", json!({"subject": "second", "description": "the second"})),
        ("TaskCreate", json!({"subject": "third"})),
        ("TaskUpdate", json!({"taskid": 1, "status": "completed"})),
        ("TaskUpdate", json!({"taskid": "2", "status": "inprogress", "subject": "2nd"})),
        ("TaskUpdate", json!({"taskid": 3, "status": "deleted"})),
        ("TaskUpdate", json!({"taskid": 9, "status": "completed"})),
        ("TaskList", json!({})),
    ] {
        act(bench, &mut history, name, input).await;
    }
    history
}

#[tokio::test]
async fn tasks_are_made_changed_shown_and_removed() {
    let mut bench = Bench::new();
    let output = bench.call("TaskCreate", json!({"subject": "first", "description": "d"})).await;
    assert_eq!((output.summary.as_str(), &output.content), ("Created task 1: first", &None));
    bench.call("TaskCreate", json!({"subject": "second"})).await;
    let output = bench.call("TaskUpdate", json!({"taskid": 1, "status": "inprogress"})).await;
    assert_eq!(output.summary, "Task 1 is inprogress: first");
    let output = bench.call("TaskList", json!({})).await;
    assert_eq!(output.summary, "2 task(s): 1 inprogress, 1 pending, 0 completed");
    assert_eq!(content(&output), "1 [inprogress] first\n2 [pending] second");
    let output = bench.call("TaskGet", json!({"taskid": 1})).await;
    let task: Value = serde_json::from_str(content(&output)).unwrap();
    let expected =
        json!({"taskid": 1, "status": "inprogress", "subject": "first", "description": "d"});
    assert_eq!(task, expected);
    let output = bench.call("TaskUpdate", json!({"taskid": 1, "status": "deleted"})).await;
    assert_eq!(output.summary, "Task 1 is deleted");
    let output = bench.call("TaskCreate", json!({"subject": "third"})).await;
    assert_eq!(output.summary, "Created task 3: third", "an id is never given twice");
}

#[tokio::test]
async fn a_task_call_that_says_nothing_is_refused() {
    let mut bench = Bench::new();
    bench.call("TaskCreate", json!({"subject": "first"})).await;
    let cases = [
        ("TaskUpdate", json!({"taskid": 1}), "nothing to change"),
        ("TaskUpdate", json!({"taskid": 7, "status": "pending"}), "no task 7"),
        ("TaskUpdate", json!({"taskid": 1, "status": "paused"}), "invalid TaskUpdate input"),
        ("TaskUpdate", json!({"taskid": 1, "subject": " "}), "subject is empty"),
        ("TaskGet", json!({"taskid": 7}), "no task 7"),
        ("TaskGet", json!({"taskid": "x"}), "invalid TaskGet input"),
        ("TaskCreate", json!({"subject": "x".repeat(201)}), "subject is longer than 200"),
        ("TaskCreate", json!({"description": "x"}), "invalid TaskCreate input: missing field"),
    ];
    for (name, input, text) in cases {
        let output = bench.call(name, input).await;
        assert!(argument_error(&output).starts_with(text), "{}", output.summary);
    }
}

#[tokio::test]
async fn the_list_is_full_at_two_hundred_and_its_results_stay_small() {
    let mut bench = Bench::new();
    for _ in 0..200 {
        bench.call("TaskCreate", json!({"subject": "x".repeat(200)})).await;
    }
    let output = bench.call("TaskCreate", json!({"subject": "one more"})).await;
    assert!(argument_error(&output).starts_with("the list is full"));
    let output = bench.call("TaskList", json!({})).await;
    assert!(content(&output).len() <= bench.ctx.max_output);
    let output = bench.call("TaskUpdate", json!({"taskid": 200, "status": "completed"})).await;
    assert!(output.summary.len() <= 210 && output.content.is_none());
}

#[tokio::test]
async fn the_list_is_rebuilt_from_the_history() {
    let mut bench = Bench::new();
    let history = some_history(&mut bench).await;
    let tasks = Tasks::replay(&history);
    assert_eq!(tasks, bench.ctx.tasks);
    let shown: Vec<_> = tasks.all().iter().map(|t| (t.taskid, t.status, &*t.subject)).collect();
    assert_eq!(shown, [(1, Status::Completed, "first"), (2, Status::Inprogress, "2nd")]);
}

#[tokio::test]
async fn the_list_survives_a_compaction_through_its_snapshot() {
    let mut bench = Bench::new();
    some_history(&mut bench).await;
    let mut history = bench.ctx.tasks.snapshot();
    act(&mut bench, &mut history, "TaskCreate", json!({"subject": "fourth"})).await;
    let tasks = Tasks::replay(&history);
    let shown: Vec<_> = tasks.all().iter().map(|t| (t.taskid, &*t.description)).collect();
    assert_eq!(shown, [(1, ""), (2, "the second"), (4, "")]);
    assert_eq!(Tasks::default().snapshot(), []);
}

#[tokio::test]
async fn calls_kept_beside_the_snapshot_do_not_count_twice() {
    let mut bench = Bench::new();
    let old = some_history(&mut bench).await;
    let state = |history: &[Item]| {
        let tasks = Tasks::replay(history);
        tasks.all().iter().map(|t| (t.taskid, t.status, t.subject.clone())).collect::<Vec<_>>()
    };
    let expected = state(&old);
    for kept in 0..=old.len() {
        let mut history = bench.ctx.tasks.snapshot();
        history.extend_from_slice(&old[old.len() - kept..]);
        assert_eq!(state(&history), expected, "with the last {kept} items");
    }
    let (one, two) = (bench.ctx.tasks.snapshot(), bench.ctx.tasks.snapshot());
    assert_ne!(one[0], two[0], "each has an id of its own");
}

#[test]
fn a_call_without_a_result_changes_nothing() {
    let call = Item::ToolCall {
        call_id: "1".into(),
        name: "TaskCreate".into(),
        arguments: json!({"subject": "never answered"}).to_string(),
    };
    assert_eq!(Tasks::replay(&[call]), Tasks::default());
}
