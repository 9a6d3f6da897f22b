//! The variables that a command gets, and those that are stored with a Pod.

use crate::sandbox::access::places::{self, UserPaths};
use std::collections::BTreeMap;
use std::path::Path;

/// Variables that are stored with a Pod, so that its commands find their tools after a restart.
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

/// Further variables that commands get, about builds, search paths and display. In capitals; lower
/// case counts, too.
const ALLOWED: &[&str] = &[
    "ALL_PROXY",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "APP_ENV",
    "AR",
    "AWS_CA_BUNDLE",
    "CARGO_BUILD_JOBS",
    "CARGO_BUILD_TARGET",
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
    "CARGO_TERM_COLOR",
    "CC",
    "CFLAGS",
    "CGO_CFLAGS",
    "CGO_ENABLED",
    "CGO_LDFLAGS",
    "CI",
    "CLICOLOR",
    "COLORTERM",
    "COLUMNS",
    "CONDA_DEFAULT_ENV",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "CPPFLAGS",
    "CURL_CA_BUNDLE",
    "CXX",
    "CXXFLAGS",
    "C_INCLUDE_PATH",
    "DATABASE_URL",
    "DEBIAN_FRONTEND",
    "DJANGO_SETTINGS_MODULE",
    "DOTNET_ROOT",
    "EMAIL",
    "FLASK_APP",
    "FLASK_DEBUG",
    "FLASK_ENV",
    "FORCE_COLOR",
    "FTP_PROXY",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_SSL_CAINFO",
    "GO111MODULE",
    "GOARCH",
    "GOEXPERIMENT",
    "GOFLAGS",
    "GONOPROXY",
    "GONOSUMDB",
    "GOOS",
    "GOPRIVATE",
    "GOSUMDB",
    "GOTOOLCHAIN",
    "GRADLE_OPTS",
    "HOST",
    "HOSTNAME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "INFOPATH",
    "JAVA_OPTS",
    "JDK_HOME",
    "LD",
    "LDFLAGS",
    "LESS",
    "LIBRARY_PATH",
    "LINES",
    "LOG_LEVEL",
    "LS_COLORS",
    "MAKEFLAGS",
    "MANPATH",
    "MAVEN_OPTS",
    "MONGODB_URI",
    "MONGO_URL",
    "MYSQL_HOST",
    "NIX_SSL_CERT_FILE",
    "NODE_ENV",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NO_COLOR",
    "NO_PROXY",
    "PERL5LIB",
    "PGDATABASE",
    "PGHOST",
    "PGPORT",
    "PGUSER",
    "PIP_CERT",
    "PIP_DISABLE_PIP_VERSION_CHECK",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_NO_INDEX",
    "PORT",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "RACK_ENV",
    "RAILS_ENV",
    "RANLIB",
    "REDIS_URL",
    "REQUESTS_CA_BUNDLE",
    "RUBYLIB",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "RUSTUP_AUTO_INSTALL",
    "RUSTUP_DIST_SERVER",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "SOURCE_DATE_EPOCH",
    "TEMP",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TERM_PROGRAM",
    "TEST_DATABASE_URL",
    "TMP",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_DIRS",
];

/// The variables that name an editor. No person sees the terminal of a command, so an editor would
/// wait for keys until the timeout: `true` leaves each text unchanged.
const EDITORS: &[&str] = &["EDITOR", "GIT_EDITOR", "VISUAL"];
const NO_EDITOR: &str = "true";

/// The environment of commands: variables that are known to be no secrets, and those in `pass`.
pub fn command_env(env: &BTreeMap<String, String>, pass: &[String]) -> BTreeMap<String, String> {
    let kept = |(name, value): &(&String, &String)| {
        pass.contains(name) || is_allowed(name) && !holds_password(value) && !is_login(name, value)
    };
    let editors = EDITORS.iter().map(|name| ((*name).to_owned(), NO_EDITOR.to_owned()));
    editors.chain(env.iter().filter(kept).map(clone_pair)).collect()
}

/// Whether a proxy variable contains a login: `name@host`, in any form.
fn is_login(name: &str, value: &str) -> bool {
    name.to_ascii_uppercase().ends_with("_PROXY") && value.contains('@')
}

/// Points the variables for temporary files to this directory.
pub fn lead_to(temp: &Path, env: &mut BTreeMap<String, String>) {
    let shown = temp.display().to_string();
    env.insert("TMPDIR".into(), shown.clone());
    for name in ["TMP", "TEMP"] {
        env.entry(name.into()).and_modify(|value| value.clone_from(&shown));
    }
}

/// Sets the variables of tools whose usual directory is missing.
pub fn place_tools(env: &mut BTreeMap<String, String>) {
    let elsewhere = UserPaths { env: &*env }.elsewhere();
    env.extend(elsewhere.into_iter().map(|(name, path)| (name.into(), path.display().to_string())));
}

/// The short list that may be stored.
pub fn short_env(env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let kept = |name: &str| SHORT.contains(&name) || name.starts_with("LC_");
    env.iter().filter(|(name, _)| kept(name)).map(clone_pair).collect()
}

/// Whether a variable is always passed: it is in one of the lists, is a locale, or names a tool's
/// directory or a secret file, which stays unreadable.
fn is_allowed(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let listed = [SHORT, ALLOWED].into_iter().flatten().any(|known| *known == upper);
    listed || name.starts_with("LC_") || places::variables().any(|known| known == name)
}

/// Whether a value has a recognisable password: in an address (`https://name:password@host`, also
/// without `https://`), or after a word that names one (`?token=…`, `-Dhttp.proxyPassword=…`,
/// `Authorization: …`).
pub fn holds_password(value: &str) -> bool {
    let words = value.split(|c: char| c.is_whitespace() || matches!(c, ',' | '"' | '\'' | '|'));
    words.into_iter().any(has_login) || is_said(value)
}

/// Whether a word is an address with a name and a password, or with a token alone.
fn has_login(word: &str) -> bool {
    let authority =
        |rest: &str| rest.split(['/', '?', '#']).next().is_some_and(|a| a.contains('@'));
    match word.contains("://") {
        true => word.split("://").skip(1).any(authority),
        false => word.split_once('@').is_some_and(|(login, _)| {
            login.split_once(':').is_some_and(|(_, password)| !password.is_empty())
        }),
    }
}

/// Words in the names of secrets.
const SECRET_WORDS: &[&str] = &[
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "api_key",
    "api-key",
    "credential",
    "private_key",
];
/// Names of secrets that count only as a whole word.
const SECRET_NAMES: &[&str] =
    &["auth", "authorization", "bearer", "key", "pass", "pwd", "sig", "signature"];

/// Whether the name of a setting is that of a secret.
pub fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.contains(&&*name) || SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Whether a text assigns a value to the name of a secret: `name=value` or `name: value`.
fn is_said(value: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    value.match_indices(['=', ':']).any(|(at, sign)| {
        let (before, after) = (&value[..at], value[at + sign.len()..].trim_start());
        let name = before.rsplit(|c| !is_name(c)).next().unwrap_or_default();
        !after.is_empty() && names_secret(name)
    })
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
    fn a_command_gets_the_variables_that_are_listed_and_those_that_are_passed_by_name() {
        let secrets = [
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSWORD",
            "GITHUB_PAT",
            "OPENAI_KEY",
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "my_secret",
            "CARGO_REGISTRY_TOKEN",
            "SSH_AUTH_SOCK",
            "YOI_HOME",
            "ANYTHING_ELSE",
        ];
        let useful = ["CARGO_HOME", "LC_ALL", "PATH", "PYTHONPATH", "TERM", "http_proxy"];
        let all = env(&[secrets.as_slice(), useful.as_slice()].concat());
        assert_eq!(passed(&command_env(&all, &[])), useful);
        let pass = ["GITHUB_TOKEN".to_owned(), "ABSENT".to_owned()];
        assert!(command_env(&all, &pass).contains_key("GITHUB_TOKEN"));
        assert_eq!(passed(&command_env(&all, &pass)).len(), useful.len() + 1);
    }

    /// The names without those of editors.
    fn passed(env: &BTreeMap<String, String>) -> Vec<&str> {
        names(env).into_iter().filter(|name| !EDITORS.contains(name)).collect()
    }

    #[test]
    fn the_editor_of_a_command_leaves_texts_as_they_are_unless_one_is_passed_by_name() {
        let all = env(&["EDITOR", "GIT_EDITOR", "PATH"]);
        let pass = ["GIT_EDITOR".to_owned()];
        let got = command_env(&all, &pass);
        let values: Vec<&str> = EDITORS.iter().map(|name| got[*name].as_str()).collect();
        assert_eq!(values, ["true", "value", "true"]);
        assert!(!short_env(&all).contains_key("EDITOR"));
    }

    #[test]
    fn an_address_with_a_password_is_held_back() {
        let pairs = [
            ("HTTPS_PROXY", "http://me:secret@proxy:3128"),
            ("GOPROXY", "https://proxy.golang.org,https://token@example.com/go"),
            ("http_proxy", "http://proxy:3128"),
            ("NO_PROXY", "localhost"),
            ("ALL_PROXY", "me:secret@proxy:3128"),
            ("DATABASE_URL", "postgres://me@db/app"),
            ("REDIS_URL", "redis://localhost:6379"),
            ("https_proxy", "token@proxy"),
            ("PIP_INDEX_URL", "https://h/simple?token=x"),
            ("MAVEN_OPTS", "-Xmx1g -Dhttp.proxyPassword=x"),
            ("JAVA_OPTS", "-Dserver.port=1 -Dapi-key=x"),
            ("GRADLE_OPTS", "-Dorg.gradle.jvmargs=-Xmx2g"),
            ("GOFLAGS", "-mod=mod -tags=a:b"),
            ("RUSTFLAGS", "-C target-cpu=native --cfg x=\"y\""),
        ];
        let all = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let kept = ["GOFLAGS", "GRADLE_OPTS", "NO_PROXY", "REDIS_URL", "RUSTFLAGS", "http_proxy"];
        assert_eq!(passed(&command_env(&all, &[])), kept);
    }

    #[test]
    fn the_short_list_holds_nothing_that_a_command_would_not_get() {
        let all = env(&["PATH", "LC_ALL", "LANG", "VIRTUAL_ENV", "HISTFILE", "AWS_PROFILE"]);
        assert_eq!(names(&short_env(&all)), ["LANG", "LC_ALL", "PATH", "VIRTUAL_ENV"]);
    }
}
