//! Models and providers, secrets, settings, and where things lie on this machine. Everything here
//! reads an environment that is passed in, never the one of the process.

/// The providers and models the program knows, with what the user's settings add.
pub mod catalogue;
/// Which model answers, and why.
pub mod model_select;
/// A sentence about a place in a file.
pub mod diagnostic;
/// Where yoi keeps its files.
pub mod dirs;
/// Keys of providers: where one comes from, and the file that holds the stored ones.
pub mod keys;
/// Keys that a command of the person prints.
pub mod key_command;
/// MCP servers as settings name them.
pub mod mcp;
/// A model to talk to, resolved.
pub mod models;
/// A command line, read as bash reads it.
pub mod shell;
/// Files that a person writes by hand, read within bounds.
pub mod model_of_new_pods;
pub mod plain_file;
/// Which actions pass, are asked about, or are refused.
pub mod policy;
/// The user's settings.
pub mod settings;
/// The settings as the file says them now.
pub mod settings_file;
/// Values with variables of the person in them.
pub mod template;
/// Base URLs: checked and joined.
pub mod url;
/// Which directory a Pod works in, and whether it may write there.
pub mod workspace;
/// What the file of a workspace may say, and what it may say once a person trusts it.
pub mod workspace_settings;

pub use catalogue::{Catalogue, Known};
pub use diagnostic::Diagnostic;
pub use dirs::{ConfigError, Dirs, Env, Usual};
pub use key_command::{KeyCommand, PrintedKeys};
pub use keys::{Keys, KeysError, MissingKey, Secret};
pub use mcp::{McpDefinition, McpServer, McpServers};
pub use model_select::{
    Destination, ModelChoice, ModelContext, ModelError, WantedModel, choose, probe_local,
    rehearsal, resolve,
};
pub use models::{KeySource, LongContextPrice, Model, Price, Reasoning, Wire};
pub use settings::Settings;
pub use settings_file::{Reading, SettingsFile};
pub use workspace::{Access, Workspace};
pub use workspace_settings::WorkspaceSettings;
