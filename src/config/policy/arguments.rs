//! The arguments of a call of an external tool, as rules see them. Only its server knows what such a tool does
//! with an argument, so no text of the call is left out.

use crate::config::policy::pattern::{Matcher, Reach};
use crate::protocol::Action;
use serde_json::Value;
use std::borrow::Cow;

/// The name of all arguments together, as their JSON text.
pub const ALL: &str = "";

/// Whether a rule speaks about a call with these arguments. One that allows must match each text that it looks at,
/// one that asks or denies any of them. `named` is the argument that the rule names.
pub fn matches(arguments: &Value, named: Option<&str>, pattern: &Matcher, action: Action) -> bool {
    match (named, action) {
        (None, _) if pattern.is_everything() => true,
        // In JSON a wildcard could stand for further arguments.
        (Some(ALL), Action::Allow) => {
            pattern.is_everything() || pattern.is_exact() && fits(pattern, &arguments.to_string())
        }
        // A server may hand a text to a shell.
        (_, Action::Allow) => {
            let texts = texts(arguments, named);
            !texts.is_empty() && texts.iter().all(|text| pattern.fits(text, Reach::OneCommand))
        }
        (_, Action::Ask | Action::Deny) => {
            texts(arguments, named).iter().any(|text| fits(pattern, text))
        }
    }
}

fn fits(pattern: &Matcher, text: &str) -> bool {
    pattern.fits(text, Reach::Anything)
}

/// The texts of the named argument, or of every argument.
fn texts<'a>(arguments: &'a Value, named: Option<&str>) -> Vec<Cow<'a, str>> {
    let mut texts = Vec::new();
    match (named, arguments) {
        (Some(ALL), _) => texts.push(arguments.to_string().into()),
        (Some(name), _) => add_named(arguments, name, &mut texts),
        (None, Value::Object(members)) => {
            members.values().for_each(|value| add_texts(value, &mut texts));
        }
        (None, _) => add_texts(arguments, &mut texts),
    }
    texts
}

/// Adds the texts of each value that has this name: `options.path` is the `path` in `options`, also where `options`
/// is a list.
fn add_named<'a>(value: &'a Value, name: &str, texts: &mut Vec<Cow<'a, str>>) {
    match value {
        Value::Object(members) => {
            for (key, below) in members {
                match name.strip_prefix(key.as_str()) {
                    Some("") => add_texts(below, texts),
                    Some(rest) => {
                        rest.strip_prefix('.').into_iter().for_each(|r| add_named(below, r, texts));
                    }
                    None => {}
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|below| add_named(below, name, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Adds every text in a value. The keys inside of an argument are texts, too, because the model may choose them. What
/// is no string counts as its JSON text.
fn add_texts<'a>(value: &'a Value, texts: &mut Vec<Cow<'a, str>>) {
    match value {
        Value::String(text) => texts.push(text.into()),
        Value::Array(elements) if !elements.is_empty() => {
            elements.iter().for_each(|below| add_texts(below, texts));
        }
        Value::Object(members) if !members.is_empty() => {
            for (key, below) in members {
                texts.push(key.into());
                add_texts(below, texts);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            texts.push(value.to_string().into())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::policy::{Subject, exactly, matches};
    use crate::protocol::{Action, Pattern};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn call(arguments: Value) -> Subject {
        Subject { tool: "mcp__sh__run".into(), arguments: Some(arguments), ..Subject::default() }
    }

    fn speaks(rule: &str, action: Action, arguments: &Value) -> bool {
        matches(&rule.parse::<Pattern>().unwrap(), action, &call(arguments.clone()))
    }

    #[test]
    fn a_rule_that_allows_an_external_tool_matches_each_argument_or_the_one_that_it_names() {
        let allows = |rule: &str, arguments: Value| speaks(rule, Action::Allow, &arguments);
        let hiding = || json!({ "command": "rm -rf ~", "name": "ls x" });
        assert!(!allows("mcp__sh__run:ls*", hiding()));
        assert!(!allows("mcp__sh__run(command):ls*", hiding()));
        assert!(allows("mcp__sh__run(name):ls*", hiding()));
        assert!(allows("mcp__sh__*(command):ls *", json!({ "command": "ls x", "timeout": 5 })));
        assert!(!allows("mcp__sh__run:ls *", json!({ "command": "ls x", "timeout": 5 })));
        assert!(allows("mcp__sh__run:ls *", json!({ "command": ["ls x", "ls y"] })));
        for arguments in [
            json!({ "command": ["ls x", "rm y"] }),
            json!({ "command": "ls x", "then": { "command": "rm y" } }),
            json!({ "command": "ls x", "env": { "rm y": "ls x" } }),
            json!({ "command": "ls x", "force": true }),
            json!({ "command": "ls x", "more": [] }),
            json!({ "command": "ls x; rm y" }),
            json!({ "command": "ls x\nrm y" }),
            json!({}),
        ] {
            assert!(!allows("mcp__sh__run:ls *", arguments.clone()), "{arguments}");
            assert!(allows("mcp__sh__run:*", arguments.clone()), "{arguments}");
        }
        assert!(!allows("mcp__sh__run(command):*", json!({ "cmd": "ls" })), "it has none");
        let nested = json!({ "options": [{ "path": "/w/a" }, { "path": "/w/b" }], "x": "y" });
        assert!(allows("mcp__sh__run(options.path):/w/*", nested.clone()));
        assert!(!allows("mcp__sh__run(options.path):/w/a", nested.clone()));
        assert!(!allows("mcp__sh__run(options):/w/*", nested), "the keys count there");
        assert!(!allows(r#"mcp__sh__run():{"command":"ls *"}"#, json!({ "command": "ls x" })));
    }

    #[test]
    fn a_rule_that_denies_an_external_tool_matches_any_text_of_its_call() {
        for action in [Action::Deny, Action::Ask] {
            let speaks = |rule: &str, arguments: &Value| speaks(rule, action, arguments);
            for arguments in [
                json!({ "script": "rm x", "name": "ls" }),
                json!({ "steps": [{ "run": "rm x" }] }),
                json!({ "files": { "rm x": "ls" } }),
                json!({ "path": ["ls", "rm x"] }),
            ] {
                assert!(speaks("mcp__sh__run:rm *", &arguments), "{arguments}");
                assert!(!speaks("mcp__sh__run(command):rm *", &arguments), "{arguments}");
            }
            assert!(speaks("mcp__sh__run(force):true", &json!({ "force": true })));
            assert!(speaks("mcp__sh__run:22", &json!({ "port": 22 })));
            assert!(speaks(
                "mcp__sh__run(steps.run):rm *",
                &json!({ "steps": [{ "run": "rm x" }] })
            ));
            assert!(speaks("mcp__sh__run():*rm x*", &json!({ "steps": [{ "run": "rm x" }] })));
            assert!(!speaks("mcp__sh__run:rm *", &json!({ "rm x": "ls" })), "a name is no text");
        }
    }

    #[test]
    fn a_rule_that_names_an_argument_is_about_no_other_tool() {
        let bash = Subject { tool: "Bash".into(), texts: vec!["ls".into()], ..Subject::default() };
        let rule: Pattern = "*(command):*".parse().unwrap();
        assert!(!matches(&rule, Action::Allow, &bash));
        assert!(matches(&rule, Action::Allow, &call(json!({ "command": "ls" }))));
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3_u8).prop_map(Value::from),
            r#"[ab*?\\"{}:]{0,3}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 6, 2, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..2).prop_map(Value::from),
                prop::collection::btree_map(r"[ab*\\]{0,2}", inner, 0..2)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_rule_of_an_answer_allows_a_call_with_these_arguments_and_no_other(
            one in json_value(), two in json_value(),
        ) {
            let (one, two) = (json!({ "a": one }), json!({ "a": two }));
            let rule = exactly(&call(one.clone()));
            let rule: Pattern = rule.to_string().parse().unwrap();
            prop_assert!(matches(&rule, Action::Allow, &call(one.clone())));
            prop_assert_eq!(matches(&rule, Action::Allow, &call(two.clone())), one == two);
            let as_text = json!({ "a": one.to_string() });
            prop_assert_eq!(matches(&rule, Action::Allow, &call(as_text.clone())), one == as_text);
        }
    }
}
