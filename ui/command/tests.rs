use super::complete::{Sources, complete};
use super::read::read;
use super::*;

fn pod(name: &str) -> PodName {
    PodName::parse(name).expect("a name")
}

fn stop(name: Option<&str>, breadth: Breadth) -> Verb {
    Verb::Stop { pod: name.map(pod), breadth }
}

fn here<'a>(current: Option<&'a PodName>, env: &'a BTreeMap<String, String>) -> Defaults<'a> {
    Defaults { current, cwd: Path::new("/repo"), model: None, env }
}

#[test]
fn lines_become_verbs() {
    assert_eq!(read(":stop alice"), Ok(stop(Some("alice"), Breadth::One)));
    assert_eq!(read("stop"), Ok(stop(None, Breadth::One)));
    assert_eq!(read("stop --tree alice"), Ok(stop(Some("alice"), Breadth::Tree)));
    assert_eq!(
        read("restore alice --plan"),
        Ok(Verb::Restore { pod: Some(pod("alice")), breadth: Breadth::One, step: Step::Show })
    );
    assert_eq!(read("peer bob"), Ok(Verb::Peer("bob".into())));
    assert_eq!(
        read("lend a b my docs --read"),
        Ok(Verb::Lend {
            from: pod("a"),
            to: pod("b"),
            path: "my docs".into(),
            permission: Permission::Read
        })
    );
    assert_eq!(read("policy revoke 3"), Ok(Verb::Policy(Some(3))));
    assert_eq!(read("fork x"), Ok(Verb::Fork { name: Some(pod("x")), at: None }));
    assert_eq!(
        read(":send bob  fix it, please "),
        Ok(Verb::Send { pod: pod("bob"), text: "fix it, please".into() })
    );
    assert_eq!(
        read("new app --cwd sub --model rehearsal:x"),
        Ok(Verb::New {
            name: Some(pod("app")),
            cwd: Some("sub".into()),
            model: Some("rehearsal:x".into()),
            profile: None,
        })
    );
    assert_eq!(read("pin 3 bob"), Ok(Verb::Pin { slot: Some(3), pod: Some(pod("bob")) }));
    assert_eq!(read("pin"), Ok(Verb::Pin { slot: None, pod: None }));
    assert_eq!(read("rewind 3"), Ok(Verb::Rewind(Some(3))));
    assert_eq!(read("help :stop"), Ok(Verb::Help(Some("stop".into()))));
}

#[test]
fn a_bad_line_says_what_is_wrong() {
    let error = |line: &str| read(line).expect_err(line);
    assert_eq!(error(":"), "type a verb; :help lists them");
    assert_eq!(error(":stpo"), "no verb :stpo; did you mean :stop?");
    assert_eq!(error(":zzz"), "no verb :zzz; :help lists them");
    assert_eq!(error(":open"), "usage: :open <pod>");
    assert_eq!(error(":open a/b"), "invalid pod name: a/b");
    assert_eq!(error(":quit now"), ":quit takes no argument");
    assert_eq!(error(":new a b"), ":new takes one name; `b` is one too many");
    assert_eq!(error(":new --fast"), ":new has no option --fast");
    assert_eq!(error(":stop --all"), ":stop has no option --all");
    assert_eq!(error(":lend a b"), "usage: :lend <from> <to> <path> [--read]");
    assert_eq!(error(":policy revoke x"), "`x` is no rule; :policy lists them");
    assert_eq!(error(":fork --at x"), "`x` is no entry");
    assert_eq!(error(":pin 10"), "`10` is no slot: they are 1 to 9");
    assert_eq!(error(":rewind x"), "`x` is no turn; :rewind lists them");
}

#[test]
fn a_line_with_several_pods_is_one_verb_for_each() {
    let trees = ["alice", "bob"].map(|name| stop(Some(name), Breadth::Tree)).to_vec();
    assert_eq!(read_all(":stop alice --tree bob alice"), Ok(trees));
    assert_eq!(read_all("pause a"), Ok(vec![Verb::Pause(Some(pod("a")))]));
    assert_eq!(read_all("rm a b"), Ok(vec![Verb::Remove(pod("a")), Verb::Remove(pod("b"))]));
    assert!(read_all("open a b").is_err());
    assert!(read_all("stop a b/c").is_err());
}

#[test]
fn a_line_that_names_no_pod_is_given_some_when_its_verb_takes_several() {
    let pods = [pod("alice"), pod("bob")];
    assert_eq!(naming("stop --tree", &pods), Some("stop alice bob --tree".into()));
    assert_eq!(naming(":pause", &pods), Some("pause alice bob".into()));
    for line in ["stop scout", "explain", "model x", "nonsense", ""] {
        assert_eq!(naming(line, &pods), None, "{line}");
    }
    assert_eq!(naming("stop", &[]), None);
}

#[test]
fn every_row_of_the_table_is_read() {
    for row in TABLE {
        let line = match row.needs {
            Needs::Nothing => row.name.to_owned(),
            Needs::Argument if matches!(row.argument, Argument::Pod | Argument::Pods) => {
                format!("{} alice", row.name)
            }
            Needs::Argument => format!("{} alice text path", row.name),
        };
        assert!(read(&line).is_ok(), "{line}: {:?}", read(&line));
    }
}

#[test]
fn a_verb_means_the_current_pod_unless_it_names_one() {
    let env = BTreeMap::new();
    let alice = pod("alice");
    let to = |verb: &Verb, current| call(verb, here(current, &env));
    assert_eq!(
        to(&stop(None, Breadth::One), Some(&alice)),
        Ok(Call::Host { pod: Some(pod("alice")), method: Method::StopPods { tree: false } })
    );
    assert_eq!(
        to(&stop(Some("bob"), Breadth::Tree), Some(&alice)),
        Ok(Call::Host { pod: Some(pod("bob")), method: Method::StopPods { tree: true } })
    );
    assert_eq!(
        to(&Verb::Pause(None), None),
        Err("no Pod is selected: name one, or :open it first".into())
    );
    assert_eq!(to(&Verb::Quit, None), Ok(Call::Local));
}

#[test]
fn only_a_known_verb_as_the_whole_first_word_is_offered() {
    assert_eq!(offered("/stop alice"), Some("stop alice".into()));
    assert_eq!(offered(" exit "), Some("quit".into()));
    assert_eq!(offered(":q"), Some("quit".into()));
    assert_eq!(offered(":peer bob"), Some("peer bob".into()));
    assert_eq!(offered("/stopper"), None);
    assert_eq!(offered("/usr/bin/stop is what?"), None);
    assert_eq!(offered("exit the loop early"), None);
    assert_eq!(offered("/help\nand more"), None);
}

#[test]
fn an_unambiguous_beginning_is_completed() {
    assert_eq!(complete_verb("pau"), Some("pause".into()));
    assert_eq!(complete_verb("sto bob"), Some("stop bob".into()));
    assert_eq!(complete_verb("re"), None);
    assert_eq!(complete_verb("stop"), None);
}

#[test]
fn words_complete_by_what_they_can_be() {
    let sources = Sources {
        pods: vec![("alice".into(), "idle".into()), ("bob".into(), "running".into())],
        models: vec!["anthropic/claude".into(), "openai/gpt".into()],
        paths: vec!["/repo/ui".into(), "/repo/docs".into()],
        themes: vec!["night".into(), "day".into()],
    };
    let texts = |line: &str| {
        let found = complete(line, &sources);
        found.candidates.into_iter().map(|c| c.text).collect::<Vec<_>>()
    };
    assert_eq!(texts("").len(), TABLE.len());
    assert_eq!(texts("res")[..2], ["restore", "resume"]);
    assert_eq!(texts("stop "), ["alice", "bob"]);
    assert_eq!(texts("stop bo"), ["bob"]);
    assert_eq!(texts("stop bob "), ["alice"]);
    assert_eq!(texts("open bob "), Vec::<String>::new());
    assert_eq!(texts("pin 3 a"), ["alice"]);
    assert_eq!(texts("send bob hel"), Vec::<String>::new());
    assert_eq!(texts("model gpt"), ["openai/gpt"]);
    assert_eq!(texts("new x --model cla"), ["anthropic/claude"]);
    assert_eq!(texts("theme d"), ["day"]);
    assert_eq!(texts("stop --"), ["--tree"]);
    assert_eq!(texts("lend alice "), ["alice", "bob"]);
    assert_eq!(texts("lend alice bob d"), ["/repo/docs"]);
    assert_eq!(texts("who ui"), ["/repo/ui"]);
    assert_eq!(texts("help sto"), ["stop", "restore"]);
}
