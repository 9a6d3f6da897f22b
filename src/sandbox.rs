//! Starts, confines and ends commands. Each runs under a small helper process that is the subreaper
//! of every descendant and ends all of them with the command.
//!
//! The rooms are listed bottom to top: each uses only those before it.

/// Which paths, variables and limits a command gets, and which it does not.
mod access;
/// The repositories where a command may write: what git obeys there is found before the command and compared after it.
mod git;
/// The file system that a command sees, and how it is mounted.
mod mounts;
/// The processes between the host and the command, and what each of them gives up.
mod process;
/// The host's side of a command: starts its helper, and reads its output and its report.
mod command;

pub use access::confinement::{Confinement, Isolation, OTHERS_SHOWN, WITHOUT_NAMESPACES};
pub use access::env::{command_env, short_env};
pub use access::limits::{CommandLimits, MAX_TOGETHER};
pub use access::places::{
    UserPaths, is_obeyed_by_name, of_the_system, variables as place_variables,
};
pub use access::pod_storage::PodStorage;
pub use access::project::{
    RULES, changed_package_scripts, is_behind_project_file, is_project_file,
};
pub use access::scripts::script_hash;
pub use access::view::{
    CommandView, Depth, GIT, GUARDED, Grant, Hole, Level, Links, Need, Network, Sockets,
    ViewInputs, Why, repositories_of, writes_git,
};
pub use command::limit_words::{LimitHint, Trust};
pub use command::overview::overview;
pub use command::pod_world::PodWorld;
pub use command::server::{Served, Server, ending as serving_end};
pub use command::start_group::StartGroup;
pub use command::{Command, Ended, Outcome, Sandbox, SandboxError, WITHOUT_PAUSE};
pub use git::linked_tree::repository_of;
pub use git::own_repositories::hooks_out_of_sight;
pub use git::own_repositories::remotes;
pub use git::search::is_named;
pub use mounts::git_settings::COSTS as COSTS_OF_GIT;
pub(crate) use mounts::mountinfo::mounts;
pub use process::confine::confine_main;
pub use process::control_group::Delegated;
pub use process::enter::{enter_main, keeper_main};
pub use process::helper::helper_main;
pub use process::init::init_main;
pub use process::landlock::PATH_SOCKETS;
pub use process::procfs::{Process as KeptNetwork, is_ours};
pub use process::reexec::{
    CONFINE_ARG, ENTER_ARG, HELPER_ARG, INIT_ARG, KEEPER_ARG, OWN_NAME, OWN_PROGRAM,
};
