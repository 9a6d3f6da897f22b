//! The real binary, started as a person or a program would start it.

#[path = "program/answers.rs"]
mod answers;
#[path = "program/asking.rs"]
mod asking;
#[path = "program/auth.rs"]
mod auth;
#[path = "program/background.rs"]
mod background;
#[path = "program/bench.rs"]
mod bench;
#[path = "program/brief_hosts.rs"]
mod brief_hosts;
#[path = "program/classic.rs"]
mod classic;
#[path = "program/connecting.rs"]
mod connecting;
#[path = "program/context.rs"]
mod context;
#[path = "program/deliveries.rs"]
mod deliveries;
#[path = "program/diagnostics.rs"]
mod diagnostics;
#[path = "shared/dice.rs"]
mod dice;
#[path = "program/earlier.rs"]
mod earlier;
#[path = "program/endless.rs"]
mod endless;
#[path = "program/ephemeral.rs"]
mod ephemeral;
#[path = "program/exits.rs"]
mod exits;
#[path = "program/family.rs"]
mod family;
#[path = "program/hangs.rs"]
mod hangs;
#[path = "program/headless.rs"]
mod headless;
#[path = "program/host.rs"]
mod host;
#[path = "program/long_blocks.rs"]
mod long_blocks;
#[path = "program/long_logs.rs"]
mod long_logs;
#[path = "program/machines.rs"]
mod machines;
#[path = "program/mcp.rs"]
mod mcp;
#[path = "program/mcp_server.rs"]
mod mcp_server;
#[path = "program/mesh.rs"]
mod mesh;
#[path = "program/names.rs"]
mod names;
#[path = "program/namespaces.rs"]
mod namespaces;
#[path = "program/older_host.rs"]
mod older_host;
#[path = "program/credentials.rs"]
mod credentials;
#[path = "program/outside.rs"]
mod outside;
#[path = "program/planted.rs"]
mod planted;
#[path = "program/plays.rs"]
mod plays;
#[path = "program/pty.rs"]
mod pty;
#[path = "program/read_only.rs"]
mod read_only;
#[path = "program/refused.rs"]
mod refused;
#[path = "program/returning.rs"]
mod returning;
#[path = "program/scarce.rs"]
mod scarce;
#[path = "program/secrets.rs"]
mod secrets;
#[path = "program/signals.rs"]
mod signals;
#[path = "program/sitting.rs"]
mod sitting;
#[path = "program/strangers.rs"]
mod strangers;
#[path = "program/terminal.rs"]
mod terminal;
#[path = "program/waiting.rs"]
mod waiting;
#[path = "program/walks.rs"]
mod walks;
#[path = "program/walls.rs"]
mod walls;
#[path = "program/worktrees.rs"]
mod worktrees;
