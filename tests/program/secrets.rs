//! A provider's key is sent to its provider and stands nowhere else.

use crate::bench::{Bench, files};

const KEY: &str = "sk-this-key-must-not-be-written";

#[test]
fn no_key_is_ever_written_or_given_to_a_command() {
    let bench = Bench::new();
    bench.settings("[retry]\nminutes = 0\n");
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let dead = format!("http://{}", free.local_addr().expect("its address"));
    drop(free);
    let keys = |command: &mut std::process::Command| {
        command
            .env("ANTHROPIC_API_KEY", KEY)
            .env("MY_OWN_TOKEN", KEY)
            .env("ANTHROPIC_BASE_URL", &dead);
    };
    let mut asking = bench.command(&["--no-ui", "--model", "anthropic/", "-p", "hi", "--json"]);
    keys(&mut asking);
    let asked = bench.finish(asking.spawn().expect("the program starts"));
    let model = bench.model();
    let mut looking = bench.command(&["--no-ui", "--model", &model, "-p", "run env; echo end"]);
    keys(&mut looking);
    let looked = bench.finish(looking.spawn().expect("the program starts"));
    assert!(looked.out.contains("PATH="), "the command saw an environment: {looked:?}");
    for done in [asked, looked] {
        assert!(!done.out.contains(KEY) && !done.err.contains(KEY), "{done:?}");
    }
    let written = files(&bench.path("home"));
    assert!(written.len() > 3, "{written:?}");
    for path in written {
        let bytes = std::fs::read(&path).unwrap_or_default();
        let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!found, "the key stands in {}", path.display());
    }
}
