//! Paths that people and models write, in the one form that scopes compare.

use crate::files::{self, Resolved};
use crate::host::verb::Cx;
use crate::protocol::Refusal;
use std::path::{Path, PathBuf};

/// The canonical form of a path, or why it has none. What does not exist yet has one too.
pub(crate) async fn canonical(cx: &Cx, path: &Path) -> Result<PathBuf, Refusal> {
    Ok(resolved(cx, path).await?.path)
}

/// The same, and whether it exists.
pub(crate) async fn resolved(cx: &Cx, path: &Path) -> Result<Resolved, Refusal> {
    let named = path.to_owned();
    let resolved = cx.files(path, move || files::resolve(&named)).await?;
    resolved.map_err(|error| Refusal::invalid(error.to_string()))
}
