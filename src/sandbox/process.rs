//! The processes of a command. Each is this program with another first argument: the helper computes what the command sees
//! ([`helper`]), the next makes its namespaces ([`enter`]), the first process in them builds its file system ([`init`]), and
//! the last one confines itself and becomes the command ([`confine`]). A keeper holds a network for several commands.

mod bash;
mod capabilities;
pub mod confine;
pub mod control_group;
pub mod enter;
pub mod helper;
pub mod init;
mod job_writes;
pub mod landlock;
pub mod messages;
pub mod pipes;
pub mod prepare;
pub mod procfs;
mod reaper;
pub mod reexec;
mod seccomp;
mod storage_watch;
