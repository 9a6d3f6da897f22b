//! How a client starts yoi: program, arguments, variables.

use crate::cli::mcp::install::Shape;
use crate::headless::{Exit, Failure};
use crate::start::Opening;
use serde_json::{Map, Value, json};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use yoi::config::dirs::{Env, var};

/// The name of the server in the settings of a client.
pub const SERVER: &str = "yoi";

/// Variables that say where yoi keeps its files. Clients start their servers with few variables, and yoi must find
/// the same mesh with them.
const PLACES: [&str; 10] = [
    "YOI_HOME",
    "YOI_CONFIG_DIR",
    "YOI_DATA_DIR",
    "YOI_RUNTIME_DIR",
    "YOI_STATE_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "REMOTE_PI_HOME",
];

/// What came of a change of a text.
#[derive(Debug, PartialEq, Eq)]
pub enum Edited {
    Unchanged,
    Changed(String),
}

/// Keys with their values, in the order in which they are written.
pub type Fields = Vec<(&'static str, Value)>;

/// How a client starts yoi.
#[derive(Clone, Debug)]
pub struct Entry {
    pub program: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
}

impl Entry {
    /// The entry for this program in this environment.
    pub fn of(opening: &Opening, name: Option<&str>) -> Result<Self, Failure> {
        let program = program(&opening.env).and_then(|path| path.to_str().map(str::to_owned));
        let unnamed = || Failure::new(Exit::Failed, "the path of this program is not known");
        let mut args = vec!["mcp".to_owned()];
        args.extend(name.into_iter().flat_map(|name| ["--name".to_owned(), name.to_owned()]));
        let set = |name: &&str| Some(((*name).to_owned(), var(&opening.env, name)?.to_owned()));
        let env = PLACES.iter().filter_map(set).collect();
        Ok(Self { program: program.ok_or_else(unnamed)?, args, env })
    }

    /// The entry as keys with their values.
    pub fn written(&self, shape: Shape) -> Fields {
        let whole: Vec<&String> = std::iter::once(&self.program).chain(&self.args).collect();
        let (kind, command, args) = match shape {
            Shape::Plain => (None, json!(self.program), Some(json!(self.args))),
            Shape::Typed => (Some("stdio"), json!(self.program), Some(json!(self.args))),
            Shape::Opencode => (Some("local"), json!(whole), None),
        };
        let env: Map<String, Value> =
            self.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let env = (!env.is_empty()).then_some(Value::Object(env));
        let of_env = if shape == Shape::Opencode { "environment" } else { "env" };
        let fields = [
            ("type", kind.map(Value::from)),
            ("command", Some(command)),
            ("args", args),
            (of_env, env),
            ("enabled", (shape == Shape::Opencode).then_some(json!(true))),
        ];
        fields.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

/// The path under which a shell finds this program, which stays when a newer one takes its place; else where the
/// program lies.
fn program(env: &Env) -> Option<PathBuf> {
    let called = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    Some(lasting_path(
        &std::env::current_exe().ok()?,
        &called,
        var(env, "PATH").unwrap_or_default(),
    ))
}

/// The program may be a file of one version to which a link leads: the link, under the name by which it was called or
/// its usual one, counts before the file.
pub(super) fn lasting_path(own: &Path, called: &Path, path: &str) -> PathBuf {
    let is_own = |found: &PathBuf| found.canonicalize().is_ok_and(|found| found == own);
    let dirs: Vec<PathBuf> = std::env::split_paths(path).filter(|dir| dir.is_absolute()).collect();
    let names = [called.file_name(), Some(OsStr::new(SERVER)), own.file_name()];
    let on_path =
        names.into_iter().flatten().flat_map(|name| dirs.iter().map(move |d| d.join(name)));
    let called = Some(called.to_owned()).filter(|called| called.is_absolute());
    on_path.chain(called).find(is_own).unwrap_or_else(|| own.to_owned())
}
