//! The paths that a command gets on different machines.

use super::*;

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

fn has(paths: &[PathBuf], path: &str) -> bool {
    paths.contains(&PathBuf::from(path))
}

#[test]
fn tools_are_found_below_home_and_where_variables_put_them() {
    let env = env(&[("HOME", "/h"), ("CARGO_HOME", "/c"), ("XDG_CACHE_HOME", "/x")]);
    let person = UserPaths { env: &env };
    for path in ["/h/.cargo/registry", "/h/.cache"] {
        assert!(has(&person.caches(), path), "{path}");
    }
    for path in ["/c/registry", "/x"] {
        assert!(has(&person.caches_by_name(), path), "{path}");
    }
    assert!(has(&person.readable_by_name(), "/c/bin"));
    assert!(has(&person.readable(), "/h/.rustup"));
    assert!(has(&person.secrets(), "/c/credentials.toml"));
}

#[test]
fn a_variable_that_names_the_home_directory_opens_nothing() {
    let env = env(&[
        ("HOME", "/home/me"),
        ("XDG_CACHE_HOME", "/home/me"),
        ("RUSTUP_HOME", "/"),
        ("PATH", "/home:/usr/bin:relative::/home/me"),
    ]);
    let person = UserPaths { env: &env };
    for dirs in [person.caches_by_name(), person.readable_by_name(), person.programs()] {
        assert!(dirs.iter().all(|dir| !Path::new("/home/me").starts_with(dir)), "{dirs:?}");
    }
    assert_eq!(person.programs(), [PathBuf::from("/usr/bin")]);
    let beside = person.beside_programs();
    assert!(has(&beside, "/usr/lib") && beside.iter().all(|dir| dir.starts_with("/usr")));
}

#[test]
fn no_cache_is_a_place_for_programs_or_for_secrets() {
    let env = env(&[("HOME", "/h")]);
    let person = UserPaths { env: &env };
    for cache in person.caches() {
        assert!(!cache.ends_with("bin"), "{}", cache.display());
        assert!(person.secret(&cache).is_none(), "{}", cache.display());
    }
    assert_eq!(person.secret(Path::new("/h/.ssh/id_ed25519")), Some("/h/.ssh".into()));
    assert_eq!(person.secret(Path::new("/h/.sshx")), None);
}

#[test]
fn a_variable_that_names_no_file_or_everything_shuts_nothing() {
    let env = env(&[
        ("HOME", "/home/me"),
        ("HISTFILE", "/dev/null"),
        ("PIP_CONFIG_FILE", "/dev/null"),
        ("GNUPGHOME", "/home"),
        ("HF_HOME", "/data/hf"),
    ]);
    let person = UserPaths { env: &env };
    assert_eq!(person.secret(Path::new("/dev/null")), None);
    assert_eq!(person.secret(Path::new("/home/me/a")), None);
    assert!(person.secret(Path::new("/data/hf/token")).is_some());
}

#[test]
fn without_a_home_nothing_of_it_is_granted() {
    let env = BTreeMap::new();
    let person = UserPaths { env: &env };
    assert!(person.caches().is_empty() && person.readable().is_empty());
}

#[test]
fn each_path_of_a_variable_that_is_a_list_counts() {
    let env = env(&[("HOME", "/h"), ("KUBECONFIG", "/ws/a:/ws/b::c"), ("GOPATH", "/go1:/go2:/h")]);
    let person = UserPaths { env: &env };
    for path in ["/ws/a", "/ws/b"] {
        assert_eq!(person.secret(Path::new(path)), Some(path.into()));
    }
    assert_eq!(person.secret(Path::new("/ws/c")), None);
    for path in ["/go1/bin", "/go2/bin"] {
        assert!(has(&person.readable_by_name(), path), "{path}");
    }
    for path in ["/go1/pkg", "/go2/pkg"] {
        assert!(has(&person.caches_by_name(), path), "{path}");
    }
    assert!(!has(&person.caches_by_name(), "/h/pkg"));
}

#[test]
fn secrets_are_found_where_variables_name_them() {
    for var in [
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_CONFIG_FILE",
        "AZURE_CONFIG_DIR",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "NETRC",
        "PGPASSFILE",
        "PASSWORD_STORE_DIR",
    ] {
        let env = env(&[("HOME", "/h"), (var, "/ws/secret")]);
        let found = UserPaths { env: &env }.secret(Path::new("/ws/secret"));
        assert_eq!(found, Some("/ws/secret".into()), "{var}");
    }
}

#[test]
fn a_toolchain_of_the_person_is_obeyed_where_a_variable_puts_it() {
    let env = env(&[
        ("HOME", "/h"),
        ("CARGO_HOME", "/data/cargo"),
        ("PYENV_ROOT", "/data/pyenv"),
        ("PNPM_HOME", "/data/pnpm"),
        ("VIRTUAL_ENV", "/data/project/.venv"),
    ]);
    let obeyed = UserPaths { env: &env }.obeyed();
    for path in ["/data/cargo/config.toml", "/data/cargo/bin", "/data/pyenv"] {
        assert!(has(&obeyed, path), "{path}");
    }
    // One holds a cache, and packages are installed in the other.
    for path in ["/data/pnpm", "/data/project/.venv", "/data/cargo"] {
        assert!(!has(&obeyed, path), "{path}");
    }
}
