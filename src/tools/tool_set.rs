//! The tools of a Pod as a value: the built-in ones, and external ones that change at run time. The
//! greeting, model requests and the dispatch of calls read the same value.

use crate::llm::ToolSpec;
use crate::tools::fault::Fault;
use crate::tools::{Context, Done, Lane, MESH, Output, TABLE, Tool, act, text_limit};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A tool that is not built in, such as one of another program.
pub trait ExternalTool: Send + Sync {
    /// Its name, description and schema for the model.
    fn spec(&self) -> ToolSpec;
    /// Which calls of one reply it may run beside.
    fn lane(&self) -> Lane;
    /// Why each call needs an approval if no rule matches; `None`: it needs none by default.
    fn approval_reason(&self) -> Option<String> {
        None
    }
    /// Carries out one call; `arguments` is JSON text. The error is a sentence for the model.
    /// `live` gets output to show meanwhile.
    fn call<'a>(
        &'a self,
        arguments: &'a str,
        ctx: &'a Context,
        cancel: &'a CancellationToken,
        live: &'a mut (dyn FnMut(String) + Send),
    ) -> BoxFuture<'a, Result<Output, String>>;
}

/// The current tools by name. Cloning is cheap.
#[derive(Clone)]
pub struct ToolSet(Arc<BTreeMap<String, Member>>);

#[derive(Clone)]
enum Member {
    BuiltIn(&'static Tool),
    External(Arc<dyn ExternalTool>),
}

/// A tool of this name exists already.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is a tool named {0} already")]
pub struct NameTaken(pub String);

impl Default for ToolSet {
    /// The built-in tools.
    fn default() -> Self {
        let member = |tool: &'static Tool| (tool.name.to_owned(), Member::BuiltIn(tool));
        Self(Arc::new(TABLE.iter().map(member).collect()))
    }
}

impl ToolSet {
    /// This set with one more tool, which cannot replace another one.
    pub fn with(&self, tool: Arc<dyn ExternalTool>) -> Result<Self, NameTaken> {
        let name = tool.spec().name;
        if self.0.contains_key(&name) {
            return Err(NameTaken(name));
        }
        let mut members = BTreeMap::clone(&self.0);
        members.insert(name, Member::External(tool));
        Ok(Self(Arc::new(members)))
    }

    /// This set with the tools of the mesh.
    #[must_use]
    pub fn with_mesh(&self) -> Self {
        let mut members = BTreeMap::clone(&self.0);
        members.extend(MESH.iter().map(|tool| (tool.name.to_owned(), Member::BuiltIn(tool))));
        Self(Arc::new(members))
    }

    /// This set without an external tool; built-in tools stay.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut members = BTreeMap::clone(&self.0);
        members.retain(|key, member| key != name || matches!(member, Member::BuiltIn(_)));
        Self(Arc::new(members))
    }

    /// Sorted.
    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// All tools, as they are described to the model.
    pub fn specs(&self) -> Vec<ToolSpec> {
        let spec = |member: &Member| match member {
            Member::BuiltIn(tool) => tool.spec(),
            Member::External(tool) => tool.spec(),
        };
        self.0.values().map(spec).collect()
    }

    /// The size of all descriptions in a request, in bytes.
    pub fn spec_bytes(&self) -> usize {
        let size = |spec: ToolSpec| {
            spec.name.len() + spec.description.len() + spec.schema.to_string().len()
        };
        self.specs().into_iter().map(size).sum()
    }

    /// Which calls a call of this tool may run beside; `None` for an unknown tool.
    pub fn lane(&self, name: &str) -> Option<Lane> {
        self.0.get(name).map(|member| match member {
            Member::BuiltIn(tool) => tool.lane,
            Member::External(tool) => tool.lane(),
        })
    }

    /// Why each call of an external tool needs an approval.
    pub fn approval_reason(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Member::BuiltIn(_) => None,
            Member::External(tool) => tool.approval_reason(),
        }
    }

    /// Why a call cannot succeed even if it is approved: the tool does not exist, or its arguments
    /// are invalid. An external tool checks its own arguments when it is called.
    pub fn check(&self, name: &str, arguments: &str) -> Result<(), String> {
        match self.0.get(name) {
            None => Err(self.not_found(name)),
            Some(Member::External(_)) => Ok(()),
            Some(Member::BuiltIn(tool)) => {
                (tool.takes)(tool.name, arguments).map_err(|fault| fault.to_string())
            }
        }
    }

    /// The error for the name of no tool: it names the nearest one, or where none is near, all.
    fn not_found(&self, name: &str) -> String {
        let short = text_limit::cut(name, MAX_NAME);
        let wanted = plain(&short);
        let alike = self.0.keys().map(|tool| (strsim::jaro_winkler(&wanted, &plain(tool)), tool));
        let nearest = alike.max_by(|(a, _), (b, _)| a.total_cmp(b));
        match nearest {
            Some((likeness, tool)) if likeness >= ALIKE => {
                format!("Tool '{short}' not found; did you mean {tool}?")
            }
            _ => format!("Tool '{short}' not found; the tools are {}", self.names().join(", ")),
        }
    }

    /// Carries out one call. Returns errors as an output for the model. `arguments` is JSON text;
    /// `live` gets the output of a command while it runs, bounded.
    pub async fn run(
        &self,
        name: &str,
        arguments: &str,
        ctx: &Context,
        cancel: &CancellationToken,
        live: &mut (dyn FnMut(String) + Send),
    ) -> Done {
        let Some(member) = self.0.get(name) else {
            return Done { output: Output::error(self.not_found(name)), tasks: None };
        };
        let work = async {
            match member {
                Member::BuiltIn(tool) => act(tool, arguments, ctx, cancel, live).await,
                Member::External(tool) => {
                    let called = tool.call(arguments, ctx, cancel, live).await;
                    called.map(Done::of).map_err(Fault::Execution)
                }
            }
        };
        let result = match AssertUnwindSafe(work).catch_unwind().await {
            Ok(result) => result,
            Err(_) => Err(Fault::Internal(format!("{name} broke off; nothing more is known"))),
        };
        let is_failed = result.is_err();
        let mut done = result.unwrap_or_else(|fault| Done::of(Output::failed(&fault)));
        done.output.cut(&ctx.credentials);
        if !is_failed {
            done.output.bound(ctx.max_output);
        }
        done
    }
}

/// How alike a name and that of a tool must be for the latter to be named alone.
const ALIKE: f64 = 0.88;
/// Characters of an unknown name in its error, and the most that are compared.
const MAX_NAME: usize = 128;

/// A name to compare: without case and the marks between words.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Named(&'static str);

    impl ExternalTool for Named {
        fn spec(&self) -> ToolSpec {
            ToolSpec { name: self.0.into(), description: "x".into(), schema: json!({}) }
        }
        fn lane(&self) -> Lane {
            Lane::Look
        }
        fn call<'a>(
            &'a self,
            _: &'a str,
            _: &'a Context,
            _: &'a CancellationToken,
            _: &'a mut (dyn FnMut(String) + Send),
        ) -> BoxFuture<'a, Result<Output, String>> {
            Box::pin(async { Ok(Output::default()) })
        }
    }

    #[test]
    fn no_tool_takes_the_place_of_another_and_built_in_tools_stay() {
        let set = ToolSet::default();
        assert_eq!(set.with(Arc::new(Named("Read"))).err(), Some(NameTaken("Read".into())));
        let more = set.with(Arc::new(Named("weather"))).unwrap();
        assert!(more.with(Arc::new(Named("weather"))).is_err());
        assert_eq!(more.without("weather").names(), set.names());
        assert_eq!(set.without("Read").names(), set.names());
    }

    #[test]
    fn an_unknown_tool_is_answered_with_the_nearest_name_or_with_all() {
        let set = ToolSet::default().with(Arc::new(Named("mcp__demo__echo"))).unwrap();
        for (name, nearest) in [
            ("bash", "Bash"),
            ("read_file", "Read"),
            ("ReadFile", "Read"),
            ("spawn_pod", "SpawnPod"),
            ("task-create", "TaskCreate"),
            ("mcp_demo_ech", "mcp__demo__echo"),
        ] {
            let expected = format!("Tool '{name}' not found; did you mean {nearest}?");
            assert_eq!(set.check(name, "{}"), Err(expected));
        }
        let all = set.check("fly", "{}").unwrap_err();
        assert!(
            all.starts_with("Tool 'fly' not found; the tools are AskPerson, Bash, BashOutput, "),
            "{all}"
        );
        assert!(all.ends_with(", mcp__demo__echo"), "{all}");
        let long = set.check(&"x".repeat(1 << 20), "{}").unwrap_err();
        assert!(long.chars().count() < 1000, "{}", long.len());
    }
}
