//! The configuration of the server: TLS, one account, and what each machine may do.

use crate::mesh::machines::name::MachineName;
use crate::mesh::machines::server::{PROCESS, Registry, certificate, is_loopback, parts};
use crate::mesh::machines::subject;
use std::fmt::Write as _;
use std::path::Path;

/// The text of the file. Each machine is a user that is known by its key.
pub(super) fn text(dir: &Path, registry: &Registry, administrator: &str) -> String {
    let (host, port) = parts(&registry.address);
    let listen = if is_loopback(host) { host } else { "0.0.0.0" };
    let below = |file: &str| dir.join(file).display().to_string();
    let mut text = format!(
        "# Written by `yoi mesh init`, and written anew whenever a machine is added or removed.\n\
         listen: \"{listen}:{port}\"\n\
         server_name: \"yoi-mesh\"\n\
         pid_file: \"{}\"\n\
         max_payload: {}\n\
         tls {{ cert_file: \"{}\", key_file: \"{}\", timeout: 5 }}\n\
         jetstream {{ store_dir: \"{}\" }}\n\
         accounts {{ MESH {{ jetstream: enabled, users: [\n  {{ nkey: \"{administrator}\" }}\n",
        below(PROCESS),
        subject::MOST_BYTES,
        below(certificate::FILE),
        below(certificate::KEY),
        below("store"),
    );
    for (machine, key) in &registry.machines {
        // A name that a person wrote into the file by hand, and that is none, is left out.
        let Ok(name) = MachineName::parse(machine) else { continue };
        let (publish, subscribe) = (subject::may_publish(&name), subject::may_subscribe(&name));
        let user = format!(
            "  {{ nkey: \"{key}\", permissions {{ publish {{ allow: {} }}, subscribe {{ allow: {} }} }} }} # {name}",
            list(&publish),
            list(&subscribe)
        );
        // Writing to a text does not fail.
        let _ = writeln!(text, "{user}");
    }
    text.push_str("] } }\n");
    text
}

fn list(subjects: &[String]) -> String {
    let quoted: Vec<String> = subjects.iter().map(|subject| format!("\"{subject}\"")).collect();
    format!("[{}]", quoted.join(", "))
}
