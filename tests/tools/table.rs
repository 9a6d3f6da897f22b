//! What is offered to a model, and how a call that fits nothing is answered.

use crate::bench::{Bench, argument_error};
use serde_json::json;
use yoi::tools::{self, Lane};

#[test]
fn the_tools_are_these_and_no_others() {
    let names: Vec<&str> = tools::TABLE.iter().map(|tool| tool.name).collect();
    let expected = [
        "AskPerson",
        "Bash",
        "BashOutput",
        "BashStop",
        "Edit",
        "Glob",
        "Grep",
        "ListPods",
        "Read",
        "ReadPodOutput",
        "RestorePod",
        "SendToPeerPod",
        "SendToPod",
        "SpawnPod",
        "StopPod",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskUpdate",
        "Write",
    ];
    assert_eq!(names, expected);
    assert_eq!(yoi::config::policy::TOOLS[..expected.len()], expected, "rules name these");
}

#[test]
fn removed_tools_are_not_registered_and_no_word_of_them_is_left() {
    let removed = ["attach", "listvisiblepods", "inspectpod"];
    let prompts =
        [include_str!("../../prompts/system.md"), include_str!("../../prompts/compaction.md")];
    let specs = tools::ToolSet::default().specs();
    let offered = specs.iter().map(|s| format!("{} {} {}", s.name, s.description, s.schema));
    for text in offered.chain(prompts.map(str::to_owned)) {
        for word in removed {
            assert!(!text.to_lowercase().contains(word), "{word}: {text}");
        }
    }
}

#[test]
fn every_schema_is_a_plain_object_with_a_word_for_each_field() {
    for spec in tools::ToolSet::default().specs() {
        assert_eq!(spec.schema["type"], "object", "{}", spec.name);
        let text = spec.schema.to_string();
        assert!(!text.contains("$ref") && !text.contains("$schema"), "{text}");
        for (field, schema) in spec.schema["properties"].as_object().unwrap() {
            assert!(schema["description"].is_string(), "{}.{field}: {schema}", spec.name);
        }
    }
}

#[test]
fn the_schema_of_grep_has_the_flags_under_their_names() {
    let spec = tools::find("Grep").unwrap().spec();
    let mut fields: Vec<&String> = spec.schema["properties"].as_object().unwrap().keys().collect();
    fields.sort();
    let expected = [
        "-A",
        "-B",
        "-C",
        "-i",
        "-n",
        "glob",
        "head_limit",
        "multiline",
        "offset",
        "output_mode",
        "path",
        "pattern",
        "type",
    ];
    assert_eq!(fields, expected);
    assert_eq!(spec.schema["required"], json!(["pattern"]));
}

#[test]
fn changing_files_and_running_commands_are_in_different_lanes() {
    let lane = |name| tools::find(name).unwrap().lane;
    assert_eq!((lane("Write"), lane("Edit")), (Lane::Change, Lane::Change));
    assert_eq!(lane("Bash"), Lane::Shell);
    assert_eq!((lane("TaskCreate"), lane("TaskUpdate")), (Lane::Note, Lane::Note));
    for name in ["SpawnPod", "SendToPod", "ReadPodOutput", "StopPod", "ListPods", "RestorePod"] {
        assert_eq!(lane(name), Lane::Pods);
    }
    assert_eq!(lane("SendToPeerPod"), Lane::Pods);
    for name in ["Read", "Glob", "Grep", "TaskGet", "TaskList"] {
        assert_eq!(lane(name), Lane::Look);
    }
}

#[tokio::test]
async fn an_unknown_tool_is_said_by_name() {
    let output = Bench::new().call("Fly", json!({})).await;
    assert!(output.is_error);
    assert!(
        output.summary.starts_with("Tool 'Fly' not found; the tools are AskPerson, Bash, "),
        "{output:?}"
    );
}

#[tokio::test]
async fn missing_and_wrong_arguments_name_the_tool_and_the_field() {
    let mut bench = Bench::new();
    for arguments in [json!({}), json!(null), json!([1]), json!("text")] {
        let output = bench.call("Read", arguments).await;
        let said = "invalid Read input: missing field `file_path`; it needs file_path (string); ";
        assert!(argument_error(&output).starts_with(said), "{output:?}");
    }
    let output = bench.call("Bash", json!({"command": 7})).await;
    assert!(argument_error(&output).starts_with("invalid Bash input: invalid type: integer"));
    let output = bench.call("Grep", json!({"pattern": "x", "output_mode": "all"})).await;
    assert!(argument_error(&output).contains("unknown variant `all`"));
}

#[tokio::test]
async fn arguments_that_are_empty_or_cut_off_are_no_panic() {
    let bench = Bench::new();
    for text in ["", "  ", "{\"file_path\": \"/a", "\u{0}"] {
        let done = tools::ToolSet::default()
            .run("Read", text, &bench.ctx, &bench.cancel, &mut |_| {})
            .await;
        assert!(argument_error(&done.output).starts_with("invalid Read input: "));
    }
}
