//! Writes the model of new Pods into `config.toml`, for a person who chose it on the screen.

use crate::config::{dirs, plain_file};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use toml_edit::DocumentMut;

const KEY: &str = "model";

/// Writes `model = "…"` into the settings of the directory `config`, unless they name a model already. Comments, order and
/// a link to the file stay. Returns the model that they name now.
///
/// # Errors
/// A sentence that says why the file stays as it is: it is no TOML, or cannot be read or written.
pub fn write(config: &Path, model: &str) -> Result<String, String> {
    let file = config.join("config.toml");
    let failed = |why: io::Error| format!("{}: {why}", file.display());
    dirs::private_tree(config).map_err(failed)?;
    let text = match plain_file::read(&file) {
        Ok(text) => text,
        Err(why) if why.kind() == io::ErrorKind::NotFound && !file.is_symlink() => String::new(),
        Err(why) => return Err(failed(why)),
    };
    let mut document: DocumentMut = text
        .parse()
        .map_err(|_| format!("{} has a mistake, which `yoi doctor` names", file.display()))?;
    if let Some(named) = document.get(KEY) {
        let one = named.as_str().map(str::to_owned);
        return Ok(one.unwrap_or_else(|| named.to_string().trim().to_owned()));
    }
    document[KEY] = toml_edit::value(model);
    let mode = file.metadata().map_or(0o600, |found| found.permissions().mode() & 0o777);
    plain_file::write(&file, &document.to_string(), mode).map_err(|why| why.to_string())?;
    Ok(model.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_model_is_written_once_and_what_a_person_wrote_stays() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("yoi");
        assert_eq!(write(&config, "a/b").unwrap(), "a/b");
        let file = config.join("config.toml");
        assert_eq!(fs::read_to_string(&file).unwrap(), "model = \"a/b\"\n");
        assert_eq!(write(&config, "c/d").unwrap(), "a/b");
        let own = "# mine\n[provider.x] # local\nbase_url = \"http://127.0.0.1:1/v1\"\n";
        fs::write(&file, own).unwrap();
        assert_eq!(write(&config, "x/m").unwrap(), "x/m");
        let after = fs::read_to_string(&file).unwrap();
        assert!(after.contains(own.trim_end()), "{after}");
        let read: toml::Table = toml::from_str(&after).unwrap();
        assert_eq!(read["model"].as_str(), Some("x/m"));
        fs::write(&file, "model = [").unwrap();
        assert!(write(&config, "x/m").unwrap_err().contains("yoi doctor"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "model = [");
    }
}
