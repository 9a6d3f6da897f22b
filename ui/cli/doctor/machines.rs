//! The server over which this machine reaches others: whether it can be connected to.

use crate::cli::doctor::finding::Finding;
use std::path::Path;
use std::time::Duration;
use yoi::mesh::machines::{Credentials, admitted};

const ABOUT: &str = "mesh";
const NAME: &str = "other machines";
/// How long the server may take.
const ANSWER: Duration = Duration::from_secs(3);

/// Connects once; `None` where this machine joined no others.
pub async fn finding(state: &Path) -> Option<Finding> {
    let credentials = match Credentials::read(state) {
        Ok(found) => found?,
        Err(error) => {
            let way_out = "run `yoi mesh join` with the line that was printed for this machine";
            return Some(Finding::broken(ABOUT, NAME, error.to_string(), way_out));
        }
    };
    let Credentials { machine, server, .. } = &credentials;
    Some(match tokio::time::timeout(ANSWER, admitted(&credentials)).await {
        Ok(Ok(())) => Finding::ok(ABOUT, NAME, format!("{machine} is admitted by {server}")),
        Ok(Err(error)) => Finding::broken(ABOUT, NAME, error.to_string(), LOOK),
        Err(_) => {
            let text = format!("{server} does not answer within {} s", ANSWER.as_secs());
            Finding::broken(ABOUT, NAME, text, LOOK)
        }
    })
}

/// What to do where the server cannot be connected to.
const LOOK: &str =
    "see whether the server runs and its port is open; everything on this machine works without it";
