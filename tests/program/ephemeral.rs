//! The Pods of `yoi -p`: out of the lists when their message is done, kept when they are wanted again.

use crate::bench::{Bench, Done, eventually, signal};

impl Bench {
    fn listed(&self, args: &[&str]) -> Vec<String> {
        let done = self.yoi(&[&["ls", "--json"], args].concat());
        assert_eq!(done.code, Some(0), "{done:?}");
        done.events().iter().map(|info| info["name"].as_str().expect("a name").to_owned()).collect()
    }

    fn prompt(&self, args: &[&str]) -> Done {
        let done = self.yoi(&[&["--model", &self.model()], args].concat());
        assert_eq!(done.code, Some(0), "{done:?}");
        done
    }
}

#[test]
fn the_pod_of_one_message_is_in_no_list_but_that_of_all_pods() {
    let bench = Bench::new();
    bench.prompt(&["-p", "one"]);
    bench.prompt(&["-p", "two"]);
    assert_eq!(bench.listed(&[]), Vec::<String>::new());
    assert_eq!(bench.listed(&["--all"]), ["ws", "ws-2"]);
    let none = bench.yoi(&["ls"]);
    assert!(none.err.contains("no pods but 2 of `yoi -p`: `yoi ls --all` lists them"), "{none:?}");
    let all = bench.yoi(&["ls", "--all"]);
    assert_eq!(all.out.matches("stopped (ephemeral, 23 h left)").count(), 2, "{all:?}");
}

#[test]
fn the_pod_of_one_message_is_kept_by_its_option_and_by_a_later_use() {
    let bench = Bench::new();
    bench.prompt(&["--keep", "-p", "one"]);
    assert_eq!(bench.listed(&[]), ["ws"]);
    bench.prompt(&["-p", "two"]);
    bench.prompt(&["--pod", "ws-2", "-p", "three"]);
    assert_eq!(bench.listed(&[]), ["ws", "ws-2"]);
    bench.prompt(&["-p", "four"]);
    assert_eq!(bench.yoi(&["restore", "ws-3"]).code, Some(0));
    assert_eq!(bench.listed(&[]), ["ws", "ws-2", "ws-3"]);
    let both = bench.yoi(&["--keep", "--pod", "ws", "-p", "five"]);
    assert_eq!(both.code, Some(2), "{both:?}");
}

#[test]
fn a_message_for_a_name_that_no_pod_has_begins_an_ordinary_pod_of_that_name() {
    let bench = Bench::new();
    let done = bench.prompt(&["--pod", "nightly", "-p", "one"]);
    assert_eq!(done.out.trim_end(), "heard: one");
    bench.prompt(&["--pod", "Nightly", "-p", "two"]);
    assert_eq!(bench.listed(&[]), ["nightly"]);
    let entries = bench.log("nightly");
    assert_eq!(
        entries.iter().filter(|entry| entry["kind"] == "user_input").count(),
        2,
        "{entries:?}"
    );
}

#[test]
fn a_program_that_is_killed_leaves_no_live_pod_and_the_workspace_to_the_next_one() {
    for serves in [true, false] {
        let bench = Bench::new();
        let _host = serves.then(|| bench.serve());
        let model = bench.model();
        let prompt = ["--model", &model, "-p", "run touch begun; sleep 1000"];
        let program = bench.command(&prompt).spawn().expect("the program starts");
        eventually("the command runs", || bench.ws().join("begun").exists());
        signal(program.id(), "KILL");
        assert_eq!(bench.finish(program).code, None);
        eventually("its Pod is stopped", || {
            bench.pod("ws").is_some_and(|ws| ws["state"] == "stopped")
        });
        let next = bench.prompt(&["-p", "run touch second"]);
        assert!(bench.ws().join("second").exists(), "{next:?}");
        assert!(!next.err.contains("read-only"), "{next:?}");
    }
}

#[test]
fn a_message_without_a_key_fails_and_leaves_neither_a_live_pod_nor_itself_to_be_sent_later() {
    let bench = Bench::new();
    let _host = bench.serve();
    let done = bench.yoi(&["--model", "anthropic/", "-p", "one"]);
    assert_eq!(done.code, Some(3), "{done:?}");
    assert_eq!(bench.pod("ws").expect("the pod")["state"], "stopped", "{done:?}");
}
