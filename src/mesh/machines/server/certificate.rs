//! The certificate of the server, signed by its own key: machines know it by its hash.

use crate::disk::{DiskError, replace};
use crate::mesh::machines::server::{ServerError, key_error, parts};
use crate::mesh::machines::tls::Pin;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use std::fs;
use std::path::Path;

pub(super) const FILE: &str = "server.pem";
pub(super) const KEY: &str = "server-key.pem";
/// The characters of a line of a PEM file.
const LINE: usize = 64;

/// Makes key and certificate, unless they are there. The names in it are for other programs; machines look at the hash.
pub(super) fn make(dir: &Path, address: &str) -> Result<(), ServerError> {
    if dir.join(FILE).exists() && dir.join(KEY).exists() {
        return Ok(());
    }
    let key = KeyPair::generate().map_err(key_error)?;
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let host = parts(address).0.trim_matches(['[', ']']).to_owned();
    if !names.contains(&host) {
        names.push(host);
    }
    let parameters = CertificateParams::new(names).map_err(key_error)?;
    let certificate = parameters.self_signed(&key).map_err(key_error)?;
    replace(&dir.join(KEY), pem("PRIVATE KEY", key.serialized_der()).as_bytes(), 0o600)?;
    replace(&dir.join(FILE), pem("CERTIFICATE", certificate.der()).as_bytes(), 0o600)?;
    Ok(())
}

/// The hash of the certificate.
pub(super) fn pin(dir: &Path) -> Result<Pin, ServerError> {
    let path = dir.join(FILE);
    let text = fs::read_to_string(&path).map_err(DiskError::at("read", &path))?;
    let body: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    let der = STANDARD.decode(body.trim());
    let damaged = |error: base64::DecodeError| ServerError::Damaged(path, error.to_string());
    Ok(Pin::of(&der.map_err(damaged)?))
}

fn pem(kind: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let lines: Vec<&str> =
        (0..body.len()).step_by(LINE).map(|at| &body[at..body.len().min(at + LINE)]).collect();
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"))
}
