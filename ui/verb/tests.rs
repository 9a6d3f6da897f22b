use super::complete::{Sources, complete};
use super::line::{complete_verb, offered, read, unusual};
use super::*;
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use std::path::Path;
use yoi::client::family::Family;
use yoi::protocol::method::NewPod;
use yoi::protocol::{ErrorCode, Method, PodName, Refusal, Segment, State};

mod deleting;
mod targets;

fn pod(name: &str) -> PodName {
    PodName::parse(name).expect("a name")
}

fn family(states: &[(&str, State)]) -> Family {
    let info = |&(name, state): &(&str, State)| crate::screen::app::tests::pod(name, state);
    let mut family = Family::default();
    family.replace(states.iter().map(info).collect(), Vec::new(), Vec::new());
    family
}

/// What a verb knows on a screen of `/repo` with these Pods and none selected.
pub fn known_in<'a>(family: &'a Family, env: &'a BTreeMap<String, String>, way: Way) -> Known<'a> {
    static UTC: TimeZone = TimeZone::UTC;
    Known {
        family,
        selected: None,
        pods_are_marked: false,
        numbers: None,
        cwd: Path::new("/repo"),
        workspace: Path::new("/repo"),
        model: None,
        providers: &[],
        absence: None,
        effort: None,
        env,
        now: 0,
        zone: &UTC,
        way,
        with_keys: &crate::screen::keys::with_default_keys,
        is_written: false,
    }
}

/// The first step of a line, with `alice` selected.
fn first(line: &str) -> Next {
    let family = family(&[("alice", State::Idle), ("bob", State::Idle)]);
    let (env, selected) = (BTreeMap::new(), pod("alice"));
    let known = Known { selected: Some(&selected), ..known_in(&family, &env, Way::Line) };
    let mut line = read(line, Way::Line).unwrap_or_else(|why| panic!("{line}: {why}"));
    line.dialogue.next(&known, None)
}

fn requests(line: &str) -> Vec<(Option<String>, Method)> {
    match first(line) {
        Next::Call(requests) => {
            requests.into_iter().map(|r| (r.pod.map(|pod| pod.to_string()), r.method)).collect()
        }
        other => panic!("{line}: {other:?}"),
    }
}

fn to(name: &str, method: Method) -> Vec<(Option<String>, Method)> {
    vec![(Some(name.into()), method)]
}

#[test]
fn a_directory_with_a_blank_in_its_name_can_be_typed() {
    let new = NewPod { name: Some(pod("app")), cwd: "/repo/my dir".into(), ..NewPod::default() };
    for line in [r#"new app --cwd "my dir""#, "new app --cwd 'my dir'", r"new app --cwd my\ dir"] {
        assert_eq!(requests(line), [(None, Method::New(new.clone()))], "{line}");
    }
    assert_eq!(requests("who 'my dir'"), [(None, Method::Who { path: "/repo/my dir".into() })]);
}

#[test]
fn free_text_at_the_end_of_a_line_stays_as_it_was_typed() {
    for (line, text) in [
        ("send bob don't  stop", "don't  stop"),
        ("send bob \"quoted\" --tree", "\"quoted\" --tree"),
        (":send bob  fix it, please ", "fix it, please"),
        ("send bob --help", "--help"),
    ] {
        let input = vec![Segment::Text { content: text.into() }];
        assert_eq!(requests(line), to("bob", Method::Send { input, queue: true }), "{line}");
    }
}

#[test]
fn a_bad_line_says_what_is_wrong_in_one_line() {
    for (line, said) in [
        (":", "type a verb; :help lists them"),
        (":stpo", "no verb :stpo; did you mean :stop?"),
        (":resore", "no verb :resore; did you mean :restore?"),
        (":reume", "no verb :reume; did you mean :resume?"),
        (":stop --Tree", ":stop has no option --Tree"),
        (":zzz", "no verb :zzz; :help lists them"),
        (":open", "usage: :open <pod>"),
        (
            ":open a/b",
            "invalid pod name: a/b (a name has letters, digits, `.`, `_`, `-`, begins with one of the \
             first two, and has at most 64 bytes)",
        ),
        (
            ":open host",
            "invalid pod name: host (broker, broadcast, self, host, user, agent mean something else)",
        ),
        (":quit now", ":quit takes no arguments, but got `now`"),
        (":effort banana", ":effort takes low, medium, high, max, off or default, not `banana`"),
        (
            ":new a b",
            "unexpected `b`: :new [name] [--cwd dir] [--model model] [--profile profile] [--worktree [branch]]",
        ),
        (":new --fast", ":new has no option --fast"),
        (":new --cwd", ":new --cwd <dir> needs a value"),
        (":new --cwd 'a", ":new: the quote ' is not closed"),
        (":stop --fast", ":stop has no option --fast"),
        (":stop --all --tree", ":stop: --all and --tree exclude each other"),
        (":lend a b", "usage: :lend <from> <to> <path> [--read] [--wait] [--end]"),
        (":policy revoke x", "`x` is not a number: :policy lists the numbers"),
        (
            ":fork --at 5",
            "`5` is no entry: an entry is named by its id, which `yoi log <pod> --json` prints; `yoi help \
             fork` says more",
        ),
        (
            ":connect anthropic sk-0123",
            ":connect [provider] [--key-first] takes no more: the key is typed afterwards, unseen",
        ),
        (":pin 10", "`10` is no slot: they are 1 to 9"),
        (":rewind x", "`x` is no message: messages have numbers"),
        (":send bob", "usage: :send <addressee> <text>"),
    ] {
        let error = read(line, Way::Line).err().unwrap_or_else(|| panic!("{line} was read"));
        assert_eq!(error, said, "{line}");
        assert!(!error.contains('\n'), "{line}");
    }
}

#[test]
fn the_flag_help_opens_the_page_of_the_verb() {
    for line in ["stop --help", "stop a -h", "help stop", "help :stop"] {
        let Next::End(End { said: Said::Text { title, .. }, .. }) = first(line) else {
            panic!("{line}")
        };
        assert_eq!(title, "help: stop", "{line}");
    }
}

#[test]
fn a_verb_of_the_screen_is_refused_elsewhere_with_the_reason() {
    let why = read(":theme day", Way::Command).err().expect("no screen");
    assert_eq!(
        why,
        ":theme works only on the screen: start `yoi` and type it there, after a colon"
    );
}

#[test]
fn a_verb_without_a_screen_names_what_the_screen_has_instead() {
    let why = read(":allow 1", Way::Line).err().expect("a screen");
    let said = ":allow works with -c, with --no-ui, from a shell; on the screen, :inbox lists the requests, and \
                keys decide them";
    assert_eq!(why, said);
}

#[test]
fn a_verb_means_the_selected_pod_unless_it_names_one() {
    let stop = |tree| Method::StopPods { tree, unless_busy: false, silent: false };
    assert_eq!(requests("stop"), to("alice", stop(false)));
    assert_eq!(requests("stop bob --tree"), to("bob", stop(true)));
    assert_eq!(requests("stop BOB"), to("bob", stop(false)));
    assert_eq!(requests("pause"), to("alice", Method::Pause));
    let plan = Method::RestorePods { tree: false, plan: true };
    assert_eq!(requests("restore bob"), to("bob", plan));
    let Next::End(end) = first("stop carol") else { panic!("no such Pod") };
    assert!(matches!(end.said, Said::Refused(Why::NotThere, _)), "{end:?}");
}

#[test]
fn several_pods_are_named_in_one_confirmation() {
    let asked = |line| match first(line) {
        Next::Confirm(confirm) => confirm.question,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(asked("stop alice bob alice"), "stop alice, bob?");
    assert_eq!(asked("stop --all"), "stop alice, bob?");
    assert_eq!(asked("compact alice bob"), "shorten the histories of alice, bob?");
}

#[test]
fn every_verb_confirms_only_as_its_safety_says() {
    for verb in LIST {
        if let Ok(Next::Confirm(confirm)) =
            std::panic::catch_unwind(|| first(&format!("{} alice bob", verb.name)))
        {
            assert_ne!(verb.safety, Safety::Harmless, "{}: {confirm:?}", verb.name);
        }
    }
}

#[test]
fn the_arguments_of_every_verb_are_consistent() {
    for verb in LIST {
        verb.line().debug_assert();
        assert!(
            !verb.help.ends_with('.') && verb.help.chars().next().is_some_and(char::is_lowercase)
        );
        assert_eq!(LIST.iter().filter(|other| other.name == verb.name).count(), 1, "{}", verb.name);
        for argument in verb.line().get_arguments() {
            assert!(argument.get_help().is_some(), "{} {}: no help", verb.name, source(argument));
        }
    }
}

#[test]
fn usage_names_arguments_then_options() {
    let usage = |name| find(name).expect("a verb").usage();
    assert_eq!(usage("stop"), "[pod …] [--tree] [--all]");
    assert_eq!(usage("rm"), "[pod …] [--stopped] [--older-than time] [--all]");
    assert_eq!(usage("lend"), "<from> <to> <path> [--read] [--wait] [--end]");
    assert_eq!(usage("policy"), "[revoke <n>]");
    assert_eq!(usage("send"), "<addressee> <text>");
    assert_eq!(usage("zoom"), "");
    assert_eq!(usage("queue"), "");
}

#[test]
fn help_on_peer_says_that_the_other_side_is_not_asked_and_what_it_gives() {
    let text =
        find("peer").expect("a verb").about(&crate::screen::keys::with_default_keys).join(" ");
    for said in [
        "is not asked",
        "need not be live",
        "may send each other messages",
        "nothing else",
        "a person there allows it",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
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
fn a_message_in_the_form_of_a_command_is_named() {
    let named = |text| unusual(text).unwrap_or_default();
    let as_message = "would go to the model as a message";
    assert_eq!(
        named(" /clear "),
        format!("no verb :clear; :help lists them · `/clear` {as_message}")
    );
    assert!(named("/stpo alice").starts_with("no verb :stpo; did you mean :stop?"));
    assert_eq!(named("!ls -l"), format!("no command runs from this line · `!ls` {as_message}"));
    for text in
        ["/usr/bin/stop is what?", "/clear\nand more", "/", "!", "!!", "!= is wrong", "a /b", ""]
    {
        assert_eq!(named(text), "", "{text}");
    }
}

#[test]
fn an_unambiguous_beginning_is_completed() {
    assert_eq!(complete_verb("pau"), Some("pause".into()));
    assert_eq!(complete_verb("sto bob"), Some("stop bob".into()));
    assert_eq!(complete_verb("re"), None);
    assert_eq!(complete_verb("stop"), None);
}

#[test]
fn marks_are_the_pods_of_a_verb_that_names_none() {
    let means = |line| line::means_marks(line).map(|verb| verb.name);
    assert_eq!(means("stop --tree"), Some("stop"));
    assert_eq!(means(":rm"), Some("rm"));
    let others = ["rm --stopped", "rm --older-than 7d --all", "stop --all"];
    for line in ["stop scout", "explain", "model x", "nonsense", ""].into_iter().chain(others) {
        assert_eq!(means(line), None, "{line}");
    }
}

#[test]
fn words_complete_to_the_values_of_their_argument() {
    let sources = Sources {
        pods: [("alice", "idle"), ("bob", "running"), ("old", "stopped")]
            .map(|(name, state)| (name.into(), state.into()))
            .into(),
        at_rest: vec!["old".into()],
        selected: Some("alice".into()),
        selectors: ["@idle", "alice/**"].map(|text| (text.into(), String::new())).into(),
        agents: vec![("proj/a".into(), "agent".into()), ("my pi".into(), "yoi".into())],
        providers: ["anthropic", "openai"].map(str::to_owned).into(),
        models: ["anthropic/claude", "openai/gpt"].map(|spec| (spec.into(), String::new())).into(),
        paths: vec!["/repo/ui".into(), "/repo/my docs".into()],
        themes: vec!["night".into(), "day".into()],
        keymaps: vec!["default".into(), "vim".into()],
        mentions: (
            "ui".into(),
            vec![yoi::protocol::Completion { value: "ui".into(), is_dir: true }],
        ),
    };
    let texts = |line: &str| {
        let found = complete(line, &sources);
        found.candidates.into_iter().map(|c| c.text).collect::<Vec<_>>()
    };
    let none = Vec::<String>::new();
    assert_eq!(texts("").len(), reached(Way::Line).count());
    assert_eq!(texts("res")[..2], ["restore", "resume"]);
    assert_eq!(texts("stop "), ["alice", "bob", "@idle"]);
    assert_eq!(texts("rm "), ["old", "@idle"]);
    assert_eq!(texts("stop @"), ["@idle"]);
    assert_eq!(texts("stop alice/"), ["alice/**"]);
    assert_eq!(texts("stop @idle "), ["alice", "bob"]);
    assert_eq!(texts("stop bo"), ["bob"]);
    assert_eq!(texts("stop bob "), ["alice", "@idle"]);
    assert_eq!(
        (texts("peer "), texts("unpeer ")),
        (vec!["bob".into(), "old".into()], vec!["bob".into(), "old".into()])
    );
    assert_eq!(texts("open bob "), none);
    assert_eq!(texts("pin 3 a"), ["alice"]);
    assert_eq!(texts("send bo"), ["bob"]);
    assert_eq!(texts("restore "), ["old", "@idle", "alice", "bob"]);
    assert_eq!(texts("send "), ["alice", "bob", "old", "@idle", "proj/a", "'my pi'"]);
    assert_eq!(texts("send proj"), ["proj/a"]);
    assert_eq!(texts("block "), ["proj/a", "'my pi'"]);
    assert_eq!(texts("send bob hel"), none);
    assert_eq!(texts("send bob don't he"), none);
    assert_eq!(texts("model gpt"), ["openai/gpt"]);
    assert_eq!(texts("model openai/gpt "), ["alice", "bob", "old", "@idle"]);
    assert_eq!(texts("new x --model cla"), ["anthropic/claude"]);
    assert_eq!(texts("theme d"), ["day"]);
    assert_eq!(texts("keymap v"), ["vim"]);
    assert_eq!(texts("send bob ask @al"), ["alice"]);
    assert_eq!(texts("send bob don't touch @ui"), ["@ui/"]);
    assert_eq!(texts("send bob @"), ["alice", "bob", "old"]);
    assert_eq!(texts("send bob a@b"), none);
    assert_eq!(complete("send bob é @ui", &sources).start, 12);
    assert_eq!(texts("stop --tr"), ["--tree"]);
    assert_eq!(texts("lend alice "), ["bob", "old"]);
    assert_eq!(texts("lend alice bob d"), ["'/repo/my docs'"]);
    assert_eq!(complete("who '/repo/my", &sources).start, 4);
    assert_eq!(texts("who ui"), ["/repo/ui"]);
    assert_eq!(texts("policy re"), ["revoke"]);
    assert_eq!(texts("help sto"), ["stop", "restore"]);
}

/// The table of `docs/verbs.md`, as the list has it.
fn table() -> String {
    let way = |verb: &Verb| match verb.ways {
        ways if ways == EVERYWHERE => "everywhere",
        ways if ways == CONVERSATION => "`:` `-c` `--no-ui`",
        ways if ways == WITHOUT_SCREEN => "`-c` `--no-ui` shell",
        ways if ways == UNSEEN => "`:` shell",
        ways if ways == SCREEN => "screen",
        ways => panic!(":{}: say in docs/verbs.md where {ways:?} is", verb.name),
    };
    let row = |verb: &&Verb| {
        let heading = verb.heading().replace('|', r"\|");
        format!("| `{heading}` | {} | {} |\n", verb.help, way(verb))
    };
    let rows: String = LIST.iter().map(row).collect();
    format!("| verb | what it does | where |\n|---|---|---|\n{rows}")
}

#[test]
fn the_table_of_verbs_in_the_documents_is_the_list() {
    let page = include_str!("../../docs/verbs.md");
    let table = table();
    assert!(page.contains(&table), "docs/verbs.md has another table; it is to be:\n{table}");
}

/// Every step of a verb in a way with nothing selected, until it ends.
fn driven(line: &str, way: Way, states: &[(&str, State)], replies: Vec<Reply>) -> End {
    let family = family(states);
    let env = BTreeMap::new();
    let known = known_in(&family, &env, way);
    let verb = find(line.split(' ').next().unwrap_or_default()).expect("a verb");
    let words = line.split(' ').skip(1);
    let matches = verb.line().try_get_matches_from(words).expect("arguments");
    let mut dialogue = verb.begin(&matches).expect("a dialogue");
    let mut last = None;
    for reply in replies.into_iter().map(Some).chain([None]) {
        match dialogue.next(&known, std::mem::replace(&mut last, reply)) {
            Next::End(end) => return end,
            Next::Call(_) | Next::Confirm(_) | Next::Pick(_) | Next::Key(_) => {}
        }
    }
    panic!("{line} has not ended")
}

fn refusal(end: End) -> String {
    match end.said {
        Said::Refused(_, text) => text,
        other => panic!("{other:?}"),
    }
}

fn done_with(event: yoi::protocol::Event) -> Reply {
    Reply::Results(vec![Ok(event)])
}

/// The reply that names a model; `effort_unsent` why no request to it carries an effort.
fn found_model(model: &str, effort_unsent: Option<&str>) -> Reply {
    let model = yoi::protocol::reply::FoundModel {
        model: model.into(),
        why: "typed".into(),
        sends: None,
        effort_unsent: effort_unsent.map(str::to_owned),
    };
    done_with(yoi::protocol::Event::ModelFound {
        model: Some(model),
        effort: None,
        config: "/c".into(),
        mistakes: Vec::new(),
    })
}

#[test]
fn the_next_step_is_printed_as_it_is_typed_where_it_is_read() {
    use yoi::protocol::{Event, PlanStep, Restoring};
    let plan = || {
        let step = PlanStep { name: pod("shop"), what: Restoring::Paused, notes: Vec::new() };
        done_with(Event::Plan { steps: vec![step], done: true })
    };
    let replies = || vec![plan(), Reply::Confirmed, plan()];
    for (way, said) in [
        (Way::Shell, "shop is back, paused; `yoi resume shop` continues"),
        (Way::Command, "shop is back, paused; :resume shop continues"),
        (Way::Line, "shop is back, paused; :resume shop continues"),
    ] {
        let end = driven("restore shop", way, &[("shop", State::Stopped)], replies());
        assert_eq!(end.said, Said::Done(said.into()), "{way:?}");
    }
    let notes = vec!["read-only below /w: p took it back".to_owned()];
    let step = PlanStep { name: pod("shop"), what: Restoring::Paused, notes };
    let noted = || done_with(Event::Plan { steps: vec![step.clone()], done: true });
    let replies = vec![noted(), Reply::Confirmed, noted()];
    let end = driven("restore shop", Way::Line, &[("shop", State::Stopped)], replies);
    let said =
        "shop is back, paused; :resume shop continues · shop: read-only below /w: p took it back";
    assert_eq!(end.said, Said::Done(said.into()));
    let end = driven(
        "pause shop",
        Way::Shell,
        &[("shop", State::Running)],
        vec![done_with(Event::Lagged)],
    );
    let said = "paused shop · `yoi resume shop` continues · `yoi cancel shop` drops the run";
    assert_eq!(end.said, Said::Done(said.into()));
    let none = "no Pod is selected: name one, as `yoi ls` lists them";
    for line in ["stop", "restore", "pause", "explain"] {
        assert_eq!(refusal(driven(line, Way::Shell, &[], Vec::new())), none, "{line}");
    }
    let none = "no Pod is selected: add --pod <name>";
    assert_eq!(refusal(driven("rewind", Way::Shell, &[], Vec::new())), none);
}

#[test]
fn a_message_for_a_stopped_or_failed_pod_restores_it_first_in_every_way() {
    use yoi::protocol::{Event, PlanStep, PodName, Restoring};
    for state in [State::Stopped, State::Failed] {
        for way in [Way::Line, Way::Command, Way::Shell] {
            let replies = || vec![done_with(Event::Lagged), done_with(Event::Lagged)];
            let end = driven("send shop go on", way, &[("shop", state)], replies());
            assert_eq!(end.said, Said::Done("restored shop · sent to shop".into()), "{way:?}");
        }
    }
    let notes = vec!["read-only: bob holds write here".to_owned()];
    let step = PlanStep { name: PodName::parse("shop").unwrap(), what: Restoring::Idle, notes };
    let replies =
        vec![done_with(Event::Plan { steps: vec![step], done: true }), done_with(Event::Lagged)];
    let end = driven("send shop go on", Way::Shell, &[("shop", State::Stopped)], replies);
    let said = "restored shop, read-only: bob holds write here · sent to shop";
    assert_eq!(end.said, Said::Done(said.into()));
    let live = driven(
        "send shop go on",
        Way::Line,
        &[("shop", State::Idle)],
        vec![done_with(Event::Lagged)],
    );
    assert_eq!(live.said, Said::Done("sent to shop".into()));
    let refused = yoi::protocol::Refusal::invalid("its directory is gone");
    let end = driven(
        "send shop go on",
        Way::Line,
        &[("shop", State::Stopped)],
        vec![Reply::Results(vec![Err(refused)])],
    );
    assert_eq!(refusal(end), "its directory is gone");
}

#[test]
fn without_a_pod_the_effort_is_that_of_new_pods() {
    use yoi::protocol::{Effort, Event};
    let found = |effort| {
        let config = "/c/config.toml".into();
        done_with(Event::ModelFound { model: None, effort, config, mistakes: Vec::new() })
    };
    let driven = |line: &str, way, effort| driven(line, way, &[], vec![found(effort)]);
    for way in [Way::Shell, Way::Line] {
        let end = driven("effort", way, Some(Effort::Low));
        assert_eq!(end.said, Said::Answer("new Pods: effort low".into()));
        let end = driven("effort", way, None);
        let said = "new Pods: the provider's default effort for the model";
        assert_eq!(end.said, Said::Answer(said.into()));
    }
    let end = driven("effort high", Way::Line, Some(Effort::Low));
    assert_eq!(end.said, Said::Done("new Pods: effort high".into()));
    assert_eq!(end.action, Some(Action::EffortOfNewPods(Some(Effort::High))));
    let end = driven("effort default", Way::Line, Some(Effort::Low));
    assert_eq!(end.said, Said::Done("new Pods: effort low".into()));
    let refused = refusal(driven("effort high", Way::Shell, None));
    assert_eq!(
        refused,
        "no Pod is selected, so nothing was changed: add --pod <name> to change one Pod; to change every new Pod, write \
         effort = \"high\" at the top of /c/config.toml"
    );
}

#[test]
fn a_model_is_answered_by_the_name_it_came_to_and_not_as_it_was_typed() {
    let found = || found_model("x/m-1", None);
    let end = driven("model x/", Way::Line, &[], vec![found()]);
    assert_eq!(end.said, Said::Done("new Pods use x/m-1".into()));
    assert_eq!(end.action, Some(Action::ModelOfNewPods("x/".into())));
    let end = driven("model x/", Way::Shell, &[], vec![found()]);
    assert!(refusal(end).ends_with("write model = \"x/m-1\" at the top of /c"));
}

#[test]
fn a_rule_that_was_revoked_is_named() {
    use yoi::protocol::{Action as Does, Event, Lent, Pattern, PolicyRule};
    use yoi::scope::{Permission, Rule};
    let lent = |path: &str, recursive| Lent {
        to: pod("shop"),
        rule: Rule { recursive, ..Rule::new(path, Permission::Write) },
    };
    let rule = PolicyRule {
        id: Some(4),
        pod: Some(pod("shop")),
        tree: true,
        pattern: Pattern { tool: "Write".into(), pattern: "*.txt".into() },
        action: Does::Allow,
        source: "your decision".into(),
    };
    let replies = vec![done_with(Event::Policy {
        rules: vec![rule],
        consents: Vec::new(),
        trusts: Vec::new(),
        clients: Vec::new(),
        closed: vec![lent("/out/a.txt", false)],
        kept: vec![lent("/out", true)],
    })];
    let end = driven("policy revoke 4", Way::Line, &[], replies);
    let said = "rule 4 no longer applies: allow Write: *.txt for shop and its children; revoked: write /out/a.txt alone \
                for shop; still granted until the pods to which they are lent stop: write /out for shop";
    assert_eq!(end.said, Said::Done(said.into()));
}

#[test]
fn the_rules_of_the_workspace_of_the_selected_pod_are_listed_before_the_decisions_for_others() {
    use yoi::protocol::{Action as Does, Event, Method, Pattern, PolicyRule};
    let rule = |id: Option<u64>, pattern: &str, source: &str| PolicyRule {
        id,
        pod: id.map(|_| pod("bob")),
        tree: false,
        pattern: Pattern { tool: "Bash".into(), pattern: pattern.into() },
        action: Does::Deny,
        source: source.into(),
    };
    let policy = |rules: Vec<PolicyRule>| {
        Ok(Event::Policy {
            rules,
            consents: Vec::new(),
            trusts: Vec::new(),
            clients: Vec::new(),
            closed: Vec::new(),
            kept: Vec::new(),
        })
    };
    let family = family(&[("alice", State::Idle), ("bob", State::Idle)]);
    let (env, selected) = (BTreeMap::new(), pod("alice"));
    let known = Known { selected: Some(&selected), ..known_in(&family, &env, Way::Line) };
    let mut dialogue = read("policy", Way::Line).unwrap_or_else(|why| panic!("{why}")).dialogue;
    let Next::Call(requests) = dialogue.next(&known, None) else { panic!("no request") };
    let of: Vec<_> =
        requests.iter().map(|request| request.pod.as_ref().map(PodName::as_str)).collect();
    assert_eq!(of, [Some("alice"), None]);
    assert!(requests.iter().all(|request| request.method == Method::ListPolicy));
    let own = vec![rule(None, "git push*", "/w/.yoi/config.toml"), rule(None, "*", "the program")];
    let all = vec![rule(Some(3), "make", "your decision for bob"), rule(None, "*", "the program")];
    let replies = Reply::Results(vec![policy(own), policy(all)]);
    let Next::Pick(pick) = dialogue.next(&known, Some(replies)) else { panic!("no list") };
    let rows: Vec<&str> = pick.rows.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(
        rows,
        [
            "deny Bash: git push*  (/w/.yoi/config.toml)",
            "deny Bash: *  (the program)",
            "3  deny Bash: make for bob  (your decision for bob)",
        ]
    );
}

#[test]
fn a_consent_is_a_numbered_row_of_the_rules_and_is_named_when_it_is_taken_back() {
    use yoi::protocol::{Event, PolicyConsent};
    let consent = PolicyConsent {
        id: 7,
        provider: "far".into(),
        base_url: "https://far.example/v1".into(),
        key: "with the key from FAR_KEY".into(),
        since: 0,
    };
    let reply = || {
        done_with(Event::Policy {
            rules: Vec::new(),
            consents: vec![consent.clone()],
            trusts: Vec::new(),
            clients: Vec::new(),
            closed: Vec::new(),
            kept: Vec::new(),
        })
    };
    let what = "send text to far at https://far.example/v1 with the key from FAR_KEY";
    let mut dialogue = read("policy", Way::Line).unwrap_or_else(|why| panic!("{why}")).dialogue;
    let (family, env) = (family(&[]), BTreeMap::new());
    let known = known_in(&family, &env, Way::Line);
    let Next::Pick(pick) = dialogue.next(&known, Some(reply())) else { panic!("no list") };
    let since = crate::wording::age::clock(0, known.now, known.zone);
    assert_eq!(pick.rows[0].0, format!("7  {what}  (your consent, since {since})"));
    let Next::End(end) = dialogue.next(&known, Some(Reply::Picked(0))) else { panic!() };
    assert_eq!(end.action, Some(Action::Prefill("policy revoke 7".into())));
    for way in [Way::Line, Way::Shell] {
        let end = driven("policy revoke 7", way, &[], vec![reply()]);
        let said = format!("consent 7 is taken back: {what}; the next message there asks again");
        assert_eq!(end.said, Said::Done(said));
    }
}

#[test]
fn a_part_of_the_rules_is_not_listed_as_if_it_were_all() {
    use yoi::protocol::{Event, Refusal};
    let none = || Event::Policy {
        rules: Vec::new(),
        consents: Vec::new(),
        trusts: Vec::new(),
        clients: Vec::new(),
        closed: Vec::new(),
        kept: Vec::new(),
    };
    let ended = |results| driven("policy", Way::Line, &[], vec![Reply::Results(results)]);
    let refused = || Err(Refusal::invalid("the store cannot be read"));
    assert_eq!(refusal(ended(vec![Ok(none()), refused()])), "the store cannot be read");
    let other = "the host did not say which rules are in force";
    assert_eq!(refusal(ended(vec![Ok(none()), Ok(Event::Lagged)])), other);
    assert_eq!(refusal(ended(vec![Ok(Event::Lagged)])), other);
    let whole = ended(vec![Ok(none()), Ok(none())]);
    assert_eq!(whole.said, Said::Info("no rule is in force".into()));
}

#[test]
fn a_file_is_trusted_with_the_hash_that_was_shown_and_its_values_are_spelled_out() {
    use yoi::protocol::{Event, Method, PolicyTrust, WorkspaceFile};
    let file = |trusted| WorkspaceFile {
        file: "/w/.yoi/config.toml".into(),
        sha256: "ab12".into(),
        trusted,
        changes: vec![
            format!("permissions.rule = allow Bash: ls{}; rm *", " ".repeat(3000)),
            "provider.x.base_url = \"\u{1b}[8m\"".into(),
        ],
    };
    let reply = |trusted| done_with(Event::WorkspaceFile(file(trusted)));
    let (family, env) = (family(&[]), BTreeMap::new());
    let known = known_in(&family, &env, Way::Line);
    let mut dialogue = read("trust", Way::Line).unwrap_or_else(|why| panic!("{why}")).dialogue;
    let Next::Confirm(confirm) = dialogue.next(&known, Some(reply(false))) else { panic!() };
    let lines: Vec<&str> = confirm.question.lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(lines[1], "permissions.rule = allow Bash: ls⟨3000 blanks⟩; rm *");
    assert!(lines[2].starts_with("provider.x.base_url = ") && !lines[2].contains('\u{1b}'));
    let Next::Call(requests) = dialogue.next(&known, Some(Reply::Confirmed)) else { panic!() };
    let workspace = known.workspace.to_owned();
    let trust = Method::Trust { workspace, sha256: Some("ab12".into()) };
    assert_eq!(requests, [Request::host(trust)]);
    let again = driven("trust", Way::Line, &[], vec![reply(true)]);
    assert!(matches!(again.said, Said::Answer(text) if text.contains("is trusted as it is")));
    let trust = PolicyTrust { id: 9, workspace: "/w".into(), sha256: "c".repeat(64), since: 0 };
    let ended = Event::Policy {
        rules: vec![],
        consents: vec![],
        trusts: vec![trust],
        clients: vec![],
        closed: Vec::new(),
        kept: Vec::new(),
    };
    let end = driven("policy revoke 9", Way::Line, &[], vec![done_with(ended)]);
    let said = "trust 9 is taken back: trust /w (.yoi/config.toml, .mcp.json) with SHA-256 cccccccccccc; the next run goes \
                without it";
    assert_eq!(end.said, Said::Done(said.into()));
}

#[test]
fn the_line_that_takes_a_path_back_is_right_in_every_shell_and_runs_no_part_of_the_path() {
    let accepted = yoi::protocol::Event::done();
    let states = [("alice", State::Idle), ("bob", State::Idle)];
    for (path, reclaim) in [
        ("d$(touch${IFS}pwned)", "`yoi reclaim '/repo/d$(touch${IFS}pwned)'`"),
        ("part", "`yoi reclaim /repo/part`"),
        ("/w/part", "`yoi reclaim /w/part`"),
    ] {
        let line = format!("lend alice bob {path}");
        let end = driven(&line, Way::Shell, &states, vec![done_with(accepted.clone())]);
        let said = format!("alice lent {path} to bob · {reclaim} takes it back");
        assert_eq!(end.said, Said::Done(said));
    }
    let missing = done_with(yoi::protocol::Event::PathLent { exists: false });
    let end = driven("lend alice bob /w/x", Way::Line, &states, vec![missing]);
    let said = "alice lent /w/x to bob · nothing exists there yet · :reclaim /w/x takes it back";
    assert_eq!(end.said, Said::Done(said.into()));
}

#[test]
fn a_reclaim_names_what_each_pod_may_do_there_still() {
    use yoi::protocol::{Event, Lent};
    use yoi::scope::{Permission, Rule};
    let lent = |to: &str, may| Lent { to: pod(to), rule: Rule::new("/w/a", may) };
    let reply = Event::Reclaimed {
        leases: vec![lent("z", Permission::Write)],
        left: vec![lent("z", Permission::Read), lent("kid", Permission::Read)],
    };
    let line = "reclaim /w/a";
    let mut dialogue = read(line, Way::Line).unwrap_or_else(|why| panic!("{why}")).dialogue;
    let family = family(&[("alice", State::Idle)]);
    let (env, alice) = (BTreeMap::new(), pod("alice"));
    let known = Known { selected: Some(&alice), ..known_in(&family, &env, Way::Line) };
    let Next::End(end) = dialogue.next(&known, Some(done_with(reply))) else { panic!() };
    let said = "took back write /w/a from z · z may still read /w/a · kid may still read /w/a";
    assert_eq!(end.said, Said::Done(said.into()));
}

#[test]
fn pausing_a_paused_pod_says_that_it_is_paused_already() {
    use yoi::protocol::Event;
    let states = [("a", State::Paused), ("b", State::Running)];
    let both = Reply::Results(vec![Ok(Event::Lagged), Ok(Event::Lagged)]);
    let Said::Done(said) =
        driven("pause a b", Way::Line, &states, vec![Reply::Confirmed, both]).said
    else {
        panic!("not done")
    };
    assert!(said.starts_with("paused b · a is paused already · :resume a b continues"), "{said}");
    let end = driven("pause a", Way::Line, &states, vec![done_with(Event::Lagged)]);
    let Said::Done(said) = end.said else { panic!("not done") };
    assert!(said.starts_with("a is paused already"), "{said}");
}

#[test]
fn a_pod_that_is_not_running_is_named_when_it_cannot_be_paused() {
    let not_running = Refusal::new(ErrorCode::NotRunning, "Pod is not running");
    for verb in ["pause a", "cancel a"] {
        let reply = Reply::Results(vec![Err(not_running.clone())]);
        let said = refusal(driven(verb, Way::Line, &[("a", State::Idle)], vec![reply]));
        assert_eq!(said, "a is not running");
    }
}

#[test]
fn of_several_pods_none_is_deleted_when_one_does_not_exist() {
    let states = [("a", State::Stopped), ("b", State::Stopped)];
    let said = refusal(driven("rm a b nobody", Way::Shell, &states, Vec::new()));
    assert_eq!(said, "there is no pod `nobody`: `yoi ls` shows those there are");
}

#[test]
fn a_path_in_no_scope_is_not_called_unreadable() {
    let holders = yoi::protocol::Event::Holders { holders: Vec::new() };
    let Said::Answer(said) =
        driven("who /etc/passwd", Way::Shell, &[], vec![done_with(holders)]).said
    else {
        panic!("no answer")
    };
    assert!(said.contains("commands see it only if it belongs to the system"), "{said}");
}

/// The first step of a line on a screen where alice, on the mesh, is selected, and bob is not there.
fn first_on_mesh(line: &str) -> Next {
    let mut family = Family::default();
    let mesh =
        yoi::protocol::mesh::MeshStanding { name: Some("alice".into()), ..Default::default() };
    let alice = yoi::protocol::PodInfo {
        mesh: Some(mesh),
        ..crate::screen::app::tests::pod("alice", State::Idle)
    };
    family.replace(
        vec![alice, crate::screen::app::tests::pod("carol", State::Idle)],
        vec![],
        vec![],
    );
    let (env, selected) = (BTreeMap::new(), pod("alice"));
    let known = Known { selected: Some(&selected), ..known_in(&family, &env, Way::Line) };
    let mut line = read(line, Way::Line).unwrap_or_else(|why| panic!("{line}: {why}"));
    line.dialogue.next(&known, None)
}

#[test]
fn a_message_goes_to_an_agent_whatever_its_name_is_and_to_a_pod_of_that_name_first() {
    for (line, to) in [
        ("send proj/a hi", "proj/a"),
        ("send pi-1@x hi", "pi-1@x"),
        ("send 'my pi' hi", "my pi"),
        ("send bob#2 hi", "bob#2"),
    ] {
        let Next::Call(requests) = first_on_mesh(line) else { panic!("{line} calls the host") };
        let to = yoi::protocol::method::Addressees::One(to.into());
        let method = Method::MeshSend { to, body: "hi".into(), re: None };
        let sent: Vec<_> = requests.into_iter().map(|r| (r.pod, r.method)).collect();
        assert_eq!(sent, [(Some(pod("alice")), method)], "{line}");
    }
    let Next::Call(requests) = first_on_mesh("send carol hi") else { panic!("it calls the host") };
    assert!(matches!(requests[0].method, Method::Send { .. }), "{:?}", requests[0].method);
    let Next::End(end) = first("send proj/a hi") else { panic!("alice is not on the mesh") };
    let said = refusal(end);
    assert!(said.contains("there is no pod `proj/a`, and alice reaches no agents"), "{said}");
}

#[test]
fn a_new_effort_names_the_cost_to_the_prompt_cache_once_something_was_sent() {
    use yoi::protocol::{Effort, PodInfo};
    let said = |model: &str, context_tokens, effort| {
        let mut family = Family::default();
        family.set(PodInfo {
            model: model.to_owned(),
            context_tokens,
            effort,
            ..crate::screen::app::tests::pod("alice", State::Idle)
        });
        let (env, selected) = (BTreeMap::new(), pod("alice"));
        let known = Known { selected: Some(&selected), ..known_in(&family, &env, Way::Line) };
        let mut verb =
            read("effort high", Way::Line).unwrap_or_else(|why| panic!("{why}")).dialogue;
        assert!(matches!(verb.next(&known, None), Next::Call(_)));
        let done = found_model(model, None);
        let Next::End(end) = verb.next(&known, Some(done)) else { panic!("no end") };
        let Said::Done(said) = end.said else { panic!("{:?}", end.said) };
        said
    };
    let plain = "alice: effort high from the next request on";
    let cost = "; that request reads nothing from the prompt cache";
    assert_eq!(said("anthropic/m", 0, None), plain);
    assert_eq!(said("anthropic/m", 900, None), format!("{plain}{cost}"));
    assert_eq!(said("anthropic/m", 900, Some(Effort::High)), plain, "it changes nothing");
    assert_eq!(said("mine/m", 900, None), plain);
}

#[test]
fn an_effort_that_no_request_carries_is_answered_with_why() {
    use yoi::protocol::{Effort, PodInfo};
    let info = |unsent: Option<&str>| PodInfo {
        effort: Some(Effort::High),
        effort_unsent: unsent.map(str::to_owned),
        model: "mine/m".into(),
        ..crate::screen::app::tests::pod("alice", State::Idle)
    };
    let why = ", but no request carries it: no way";
    for (unsent, said, chosen) in [
        (
            None,
            "alice: effort high".to_owned(),
            "alice: effort high from the next request on".into(),
        ),
        (Some("no way"), format!("alice: effort high{why}"), format!("alice: effort high{why}")),
    ] {
        let mut family = Family::default();
        family.set(info(unsent));
        let (env, selected) = (BTreeMap::new(), pod("alice"));
        let known = Known { selected: Some(&selected), ..known_in(&family, &env, Way::Line) };
        let mut answer = read("effort", Way::Line).unwrap_or_else(|why| panic!("{why}")).dialogue;
        let Next::End(end) = answer.next(&known, None) else { panic!("it asks") };
        assert_eq!(end.said, Said::Answer(said));
        let mut verb =
            read("effort high", Way::Line).unwrap_or_else(|why| panic!("{why}")).dialogue;
        assert!(matches!(verb.next(&known, None), Next::Call(_)));
        let Next::End(end) = verb.next(&known, Some(found_model("mine/m", unsent))) else {
            panic!("no end")
        };
        assert_eq!(end.said, Said::Done(chosen));
    }
}
