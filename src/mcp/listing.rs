//! The tools of a server in the form offered to models.

use crate::mcp::names;
use crate::mcp::schema::narrowed;
use crate::text::{SafeText, sha256_hex};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The most tools of one server.
const MAX_TOOLS: usize = 128;
/// The most bytes of a description, and of a tool's name at its server.
const MAX_DESCRIPTION: usize = 4 * 1024;
const MAX_NAME: usize = 256;
/// The most bytes of a tool's text that are stored to show later changes.
const MAX_KEPT: usize = 16 * 1024;
/// The most sentences about omitted or narrowed tools.
const MAX_NOTES: usize = 20;

/// One tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The name for models.
    pub name: String,
    /// The name that the server knows.
    pub tool: String,
    pub description: String,
    pub schema: Value,
    /// The blake3, hex, of name, description and schema as the server sent them.
    pub hash: String,
}

/// The tools of a server at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    pub offers: Vec<Offer>,
    /// Sentences about omitted or narrowed tools, with the reasons.
    pub notes: Vec<String>,
}

/// The approved tools of a server in the stored form, by the server's names: the hash of each and,
/// after a space, the shown description and arguments as a JSON array.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agreed(pub BTreeMap<String, String>);

impl Agreed {
    pub fn knows(&self, tool: &str) -> bool {
        self.0.contains_key(tool)
    }

    fn hash_of(&self, tool: &str) -> Option<&str> {
        self.0.get(tool)?.split(' ').next()
    }

    /// The description and the arguments; `None` if they were too long to be stored.
    pub fn text_of(&self, tool: &str) -> Option<(String, String)> {
        let (_, text) = self.0.get(tool)?.split_once(' ')?;
        serde_json::from_str(text).ok()
    }
}

impl Listing {
    /// Takes what a server sent.
    pub fn of(server: &str, tools: &[Value]) -> Self {
        let mut listing = Self::default();
        let mut names = BTreeSet::new();
        for tool in tools {
            match offer(server, tool) {
                Ok((offer, _)) if names.contains(&offer.name) => {
                    listing.note(&offer.tool, "is named twice: the first one counts");
                }
                Ok(_) if listing.offers.len() == MAX_TOOLS => {
                    let more = tools.len() - MAX_TOOLS;
                    listing
                        .notes
                        .push(format!("{more} tools beyond the first {MAX_TOOLS} are left out"));
                    return listing;
                }
                Ok((offer, without)) => {
                    if !without.is_empty() {
                        let without = without.join(", ");
                        listing.note(&offer.tool, &format!("is offered without {without}"));
                    }
                    names.insert(offer.name.clone());
                    listing.offers.push(offer);
                }
                Err(why) => {
                    let name = tool.get("name").and_then(Value::as_str).unwrap_or("(no name)");
                    listing.note(name, &format!("is left out: {why}"));
                }
            }
        }
        listing
    }

    fn note(&mut self, tool: &str, what: &str) {
        if self.notes.len() < MAX_NOTES {
            let tool = SafeText::line(&tool[..tool.floor_char_boundary(MAX_NAME)]);
            self.notes.push(format!("`{tool}` {what}"));
        }
    }

    /// These tools in the stored form of approved tools.
    pub fn agreed(&self) -> Agreed {
        let kept = |offer: &Offer| {
            let text = serde_json::json!([offer.description, offer.schema.to_string()]).to_string();
            let text = if text.len() > MAX_KEPT { String::new() } else { format!(" {text}") };
            (offer.tool.clone(), format!("{}{text}", offer.hash))
        };
        Agreed(self.offers.iter().map(kept).collect())
    }

    /// The hash of each tool, by the server's name for it.
    fn hashes(&self) -> BTreeMap<String, String> {
        self.offers.iter().map(|offer| (offer.tool.clone(), offer.hash.clone())).collect()
    }

    /// The tools that are new or differ from the approved ones.
    pub fn changed(&self, agreed: &Agreed) -> Vec<Offer> {
        let differs = |offer: &&Offer| agreed.hash_of(&offer.tool) != Some(&offer.hash);
        self.offers.iter().filter(differs).cloned().collect()
    }

    /// The SHA-256, hex, of the whole list.
    pub fn sha256(&self) -> String {
        let text = serde_json::to_string(&self.hashes()).unwrap_or_default();
        sha256_hex(text.as_bytes())
    }
}

/// One tool, with what its schema lacks.
fn offer(server: &str, tool: &Value) -> Result<(Offer, Vec<String>), String> {
    let name = tool.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = name.ok_or("it has no name")?;
    if name.len() > MAX_NAME {
        return Err(format!("its name has more than {MAX_NAME} bytes"));
    }
    let description = tool.get("description").and_then(Value::as_str).unwrap_or_default();
    let schema = tool.get("inputSchema");
    // Invisible characters are removed, because neither a model nor a person sees them.
    let seen = SafeText::lines(description);
    let hash = hash(&[&name.into(), &seen.as_str().into(), schema.unwrap_or(&Value::Null)]);
    let narrowed = narrowed(schema)?;
    let mut without = narrowed.without;
    let short = &description[..description.floor_char_boundary(MAX_DESCRIPTION)];
    if short.len() < description.len() {
        without.push("the end of its description".into());
    }
    let offer = Offer {
        name: names::of_tool(server, name),
        tool: name.to_owned(),
        description: SafeText::lines(short).into_string(),
        schema: narrowed.schema,
        hash,
    };
    Ok((offer, without))
}

/// The hash of values, independent of the order of their keys.
fn hash(values: &[&Value]) -> String {
    let mut text = String::new();
    for value in values {
        canonical(value, &mut text);
        text.push('\n');
    }
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            out.push('{');
            for (key, value) in sorted {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(list) => {
            out.push('[');
            for value in list {
                canonical(value, out);
                out.push(',');
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn invisible_characters_in_a_description_change_no_tool() {
        let listing = |text: &str| Listing::of("s", &[json!({"name": "a", "description": text})]);
        let agreed = listing("Says a text.").agreed();
        assert_eq!(listing("Says\u{200b} a text.\u{202e}").changed(&agreed), []);
        assert_eq!(listing("Says another text.").changed(&agreed).len(), 1);
    }

    #[test]
    fn tools_that_lie_about_themselves_are_left_out_and_the_others_stay() {
        let schema = json!({"type": "object"});
        let listing = Listing::of(
            "s",
            &[
                json!({"name": "good", "description": "Does\u{202e} good.\u{1b}[31m", "inputSchema": schema}),
                json!({"name": "good", "inputSchema": schema}),
                json!({"name": "bad", "inputSchema": "object"}),
                json!({"inputSchema": schema}),
                json!({"name": "x".repeat(300), "inputSchema": schema}),
                json!({"name": "narrow", "inputSchema": {"type": "object", "anyOf": []}}),
                json!(7),
            ],
        );
        let names: Vec<_> = listing.offers.iter().map(|offer| offer.name.as_str()).collect();
        assert_eq!(names, ["mcp__s__good", "mcp__s__narrow"]);
        assert_eq!(listing.offers[0].description, "Does good.");
        assert_eq!(listing.notes.len(), 6, "{:?}", listing.notes);
        assert!(listing.notes[5].contains("no name"));
    }

    #[test]
    fn a_flood_of_tools_is_cut() {
        let tools: Vec<Value> = (0..1000).map(|n| json!({"name": format!("t{n}")})).collect();
        let listing = Listing::of("s", &tools);
        assert_eq!(listing.offers.len(), MAX_TOOLS);
        assert_eq!(listing.notes, ["872 tools beyond the first 128 are left out"]);
    }

    #[test]
    fn a_change_of_a_description_or_a_schema_is_seen_and_the_order_of_keys_is_none() {
        let of = |description: &str, schema: &str| {
            let schema: Value = serde_json::from_str(schema).unwrap();
            Listing::of(
                "s",
                &[json!({"name": "a", "description": description, "inputSchema": schema})],
            )
        };
        let first = of("d", r#"{"type":"object","title":"x"}"#);
        let agreed = first.agreed();
        assert_eq!(of("d", r#"{"title":"x","type":"object"}"#).changed(&agreed), []);
        assert_eq!(of("e", r#"{"type":"object","title":"x"}"#).changed(&agreed).len(), 1);
        assert_eq!(of("d", r#"{"type":"object","title":"y"}"#).changed(&agreed).len(), 1);
        assert_eq!(first.changed(&Agreed::default()).len(), 1);
    }
}
