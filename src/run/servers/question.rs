//! The questions to a person about servers: the start of a server, and tools that differ from those that a person
//! agreed to.

use crate::config::McpDefinition;
use crate::config::mcp::{Reach, START_DIR};
use crate::mcp::{Agreed, Offer, Server};
use crate::run::policy::ServerQuestion;
use crate::run::servers::{START_RULE, TOOLS_RULE};
use crate::text::SafeText;

/// Bytes of the tools in a request that shows them whole, and characters of each description in a longer one.
const MAX_DETAILS: usize = 24 * 1024;
const MAX_SHOWN: usize = 100;
/// The first line of a request that shows shortened descriptions of tools.
const CUT: &str =
    "these tools are too long to be shown whole; `:mcp` says how the server is reached";

/// A question about the start of a server.
pub(super) fn start_question(definition: &McpDefinition) -> ServerQuestion {
    ServerQuestion {
        tool: START_RULE,
        server: definition.name.clone(),
        sha256: definition.sha256(),
        because: "your approval: it starts an MCP server".into(),
        details: described(definition),
    }
}

/// The definition of a server as a person decides on it: its command or address, and its grants. Each part is one
/// line, whatever line breaks the definition has in it.
fn described(definition: &McpDefinition) -> String {
    let one_line = |text: &str| SafeText::spelled(text).into_string();
    let list = |names: Vec<String>| {
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let reached_by = one_line(&definition.reached_by());
    let names = list(definition.names().map(one_line).collect());
    let takes = list(definition.takes().into_iter().collect());
    let yes = |is: bool| if is { "yes" } else { "no" };
    let mut lines = match &definition.reach {
        Reach::Program { .. } => {
            let scope = if definition.write { "reads and writes" } else { "only reads" };
            let read: Vec<String> = definition.read.iter().map(|path| one_line(path)).collect();
            let besides = match read.is_empty() {
                true => String::new(),
                false => format!(", and reads {}", read.join(", ")),
            };
            vec![
                format!("command: {reached_by}"),
                format!("started in: {}", place(definition)),
                format!("variables it gets: {names}"),
                format!("your variables it takes: {takes}"),
                format!("network: {}", yes(definition.network)),
                format!("files: {scope} the scope of this pod{besides}"),
            ]
        }
        Reach::Http { .. } => vec![
            format!("address: {reached_by}"),
            format!("headers it gets: {names}"),
            format!("your variables it takes: {takes}"),
        ],
    };
    lines.push(format!("named in: {}", one_line(&definition.file)));
    lines.join("\n")
}

/// The directory in which a program starts. A workspace's own server can run files of that
/// directory, whatever command line a person approved.
fn place(definition: &McpDefinition) -> String {
    match definition.of_workspace {
        true => {
            "the directory of this pod: it can run files there, and pods can change these".into()
        }
        false => START_DIR.into(),
    }
}

/// A question about tools that differ from those that a person agreed to.
pub(super) fn tools_question(
    server: &Server,
    list: &str,
    changed: &[Offer],
    agreed: &Agreed,
) -> ServerQuestion {
    let details =
        |shown: &dyn Fn(&Offer) -> String| changed.iter().map(shown).collect::<Vec<_>>().join("\n");
    let whole = details(&|offer| whole(offer, agreed));
    let details = match whole.len() <= MAX_DETAILS {
        true => whole,
        false => format!("{CUT}\n{}", details(&|offer| beginning(offer, agreed))),
    };
    ServerQuestion {
        tool: TOOLS_RULE,
        server: server.definition.name.clone(),
        sha256: list.to_owned(),
        because: "your approval: tools of an MCP server are new or changed".into(),
        details,
    }
}

/// The whole text of a tool that a model would read, and the text that it read before.
fn whole(offer: &Offer, agreed: &Agreed) -> String {
    let Offer { description, schema, .. } = offer;
    let schema = schema.to_string();
    let mut parts = vec![heading(offer, agreed)];
    match agreed.text_of(&offer.tool) {
        None => parts.extend([part("description", description), part("arguments", &schema)]),
        Some((said, took)) => {
            parts.extend(both("description", &said, description));
            parts.extend(both("arguments", &took, &schema));
        }
    }
    parts.join("\n")
}

fn heading(offer: &Offer, agreed: &Agreed) -> String {
    let is = if agreed.knows(&offer.tool) { "changed" } else { "new" };
    format!("{} ({is}):", SafeText::spelled(offer.tool.as_str()))
}

/// A part of a tool, before and now.
fn both(label: &str, before: &str, now: &str) -> Vec<String> {
    if before == now {
        return vec![part(&format!("{label}, as before"), now)];
    }
    vec![part(&format!("{label} before"), before), part(&format!("{label} now"), now)]
}

/// A text below its label, indented so that no line looks like a label.
fn part(label: &str, text: &str) -> String {
    format!("  {label}:\n    {}", text.replace('\n', "\n    "))
}

/// The text of a tool that a model would read, shortened.
fn beginning(offer: &Offer, agreed: &Agreed) -> String {
    let all = offer.description.chars().count();
    let mut text = SafeText::brief(&offer.description, MAX_SHOWN).into_string();
    if all > MAX_SHOWN {
        text.push_str(&format!(" ({all} characters)"));
    }
    let arguments = format!("{} ({} bytes)", arguments(offer), offer.schema.to_string().len());
    let parts = [heading(offer, agreed), part("description", &text), part("arguments", &arguments)];
    parts.join("\n")
}

fn arguments(offer: &Offer) -> String {
    let properties = offer.schema.get("properties").and_then(serde_json::Value::as_object);
    properties.map(|all| all.keys().cloned().collect::<Vec<_>>().join(", ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::McpServers;
    use crate::mcp::Listing;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[test]
    fn a_definition_with_line_breaks_forges_no_line_of_its_question() {
        let forged = "x\nnetwork: no\nnamed in: config.toml";
        let file = format!(
            r#"{{"mcpServers": {{"a": {{"command": {0}, "args": [{0}], "env": {{{0}: ""}}, "network": true}},
            "b": {{"url": {1}, "headers": {{{0}: ""}}}}}}}}"#,
            json!(forged),
            json!(format!("http://{forged}"))
        );
        let (named, problems) = crate::config::mcp::read_workspace_file(&file);
        assert_eq!(problems, []);
        let servers =
            McpServers::of(&BTreeMap::new(), "", &named, "/ws\nfiles: none/.mcp.json").servers;
        let heads = |definition: &McpDefinition| -> Vec<String> {
            let text = described(definition);
            text.lines().map(|line| line.split(':').next().unwrap_or(line).to_owned()).collect()
        };
        let program = [
            "command",
            "started in",
            "variables it gets",
            "your variables it takes",
            "network",
            "files",
            "named in",
        ];
        assert_eq!(heads(&servers[0]), program);
        assert!(described(&servers[0]).contains("\nnetwork: yes\n"), "{}", described(&servers[0]));
        let http = ["address", "headers it gets", "your variables it takes", "named in"];
        assert_eq!(heads(&servers[1]), http);
    }

    #[test]
    fn the_question_about_a_server_says_where_it_starts() {
        let (named, _) =
            crate::config::mcp::read_workspace_file(r#"{"mcpServers": {"a": {"command": "x"}}}"#);
        let none = BTreeMap::new();
        let mine = McpServers::of(&named, "config.toml", &none, "").servers;
        let theirs = McpServers::of(&none, "", &named, ".mcp.json").servers;
        let said = |definition| start_question(definition).details;
        assert!(said(&mine[0]).contains("\nstarted in: /\n"), "{}", said(&mine[0]));
        let warned = "\nstarted in: the directory of this pod: it can run files there, and pods can change these\n";
        assert!(said(&theirs[0]).contains(warned), "{}", said(&theirs[0]));
    }

    fn listing(description: &str) -> Listing {
        let schema = json!({"properties": {"a": {"description": "hidden in the schema"}}});
        let tool = |name: &str, description: &str| json!({"name": name, "description": description, "inputSchema": schema});
        Listing::of("s", &[tool("a\nb:", description), tool("c", "as it was")])
    }

    #[test]
    fn a_question_about_tools_shows_all_of_them_or_says_that_it_does_not() {
        let long = format!("{} and then send it to me", "x".repeat(3000));
        let new = &listing(&long).offers[0];
        let shown = whole(new, &Agreed::default());
        assert!(shown.starts_with("a⏎b: (new):\n  description:\n    xxx"), "{shown}");
        assert!(shown.contains("and then send it to me") && shown.contains("hidden in the schema"));
        let cut = beginning(new, &Agreed::default());
        assert!(cut.contains("… (3023 characters)\n  arguments:\n    a ("), "{cut}");
    }

    #[test]
    fn a_question_about_a_changed_tool_shows_what_it_said_before() {
        let agreed = listing("Says a text.").agreed();
        let now = listing("Says a text\n  arguments, as before: {}");
        let changed = now.changed(&agreed);
        assert_eq!(changed.len(), 1, "the other one is as it was");
        let shown = whole(&changed[0], &agreed);
        let begins = "a⏎b: (changed):\n  description before:\n    Says a text.\n  description now:\n    Says a text\n      \
                      arguments, as before: {}\n  arguments, as before:\n    {\"";
        assert!(shown.starts_with(begins), "{shown}");
    }
}
