//! Which part of an environment a command gets, and which part is kept in the store.

use std::collections::BTreeMap;

/// Endings of names whose values are secrets.
const SECRET_ENDINGS: &[&str] = &["_API_KEY", "_TOKEN", "_SECRET"];

/// What is stored with a Pod, so that its commands find their tools after a restart.
const SHORT: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "TMPDIR",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYENV_ROOT",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "CARGO_TARGET_DIR",
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "GOPROXY",
    "NVM_DIR",
    "NODE_PATH",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "JAVA_HOME",
    "GRADLE_USER_HOME",
    "MAVEN_HOME",
    "RBENV_ROOT",
    "GEM_HOME",
    "SDKMAN_DIR",
    "NIX_PATH",
    "NIX_PROFILES",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "PKG_CONFIG_PATH",
    "LD_LIBRARY_PATH",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// The environment without secrets, save those that `pass` names. Names of provider keys that do
/// not look like one belong into `env` already filtered.
pub fn command_env(env: &BTreeMap<String, String>, pass: &[String]) -> BTreeMap<String, String> {
    let kept = |name: &String| pass.contains(name) || !is_secret(name);
    env.iter().filter(|(name, _)| kept(name)).map(clone_pair).collect()
}

/// The short list that may be stored.
pub fn short_env(env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let kept = |name: &str| SHORT.contains(&name) || name.starts_with("LC_");
    env.iter().filter(|(name, _)| kept(name)).map(clone_pair).collect()
}

/// Whether a variable's name says that its value is a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn clone_pair((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(names: &[&str]) -> BTreeMap<String, String> {
        names.iter().map(|name| ((*name).to_owned(), "value".to_owned())).collect()
    }

    fn names(env: &BTreeMap<String, String>) -> Vec<&str> {
        env.keys().map(String::as_str).collect()
    }

    #[test]
    fn secrets_stay_here_unless_they_are_passed_by_name() {
        let all =
            env(&["PATH", "OPENAI_API_KEY", "GITHUB_TOKEN", "my_secret", "TOKENS", "A_TOKEN"]);
        assert_eq!(names(&command_env(&all, &[])), ["PATH", "TOKENS"]);
        let pass = ["GITHUB_TOKEN".to_owned(), "ABSENT".to_owned()];
        assert_eq!(names(&command_env(&all, &pass)), ["GITHUB_TOKEN", "PATH", "TOKENS"]);
    }

    #[test]
    fn the_short_list_holds_no_secret() {
        let all = env(&["PATH", "LC_ALL", "LANG", "VIRTUAL_ENV", "HISTFILE", "AWS_PROFILE"]);
        assert_eq!(names(&short_env(&all)), ["LANG", "LC_ALL", "PATH", "VIRTUAL_ENV"]);
        assert!(SHORT.iter().all(|name| !is_secret(name)));
    }
}
