//! Every key is bound to another one. Whatever the dashboard says then, it names the keys in force.

use super::*;
use crate::screen::keys::{Action, CONTEXTS, Context, Keymap, default_keymap, label, read};
use crate::verb::{Way, reached};
use std::collections::BTreeSet;

const DEFAULT: &str = include_str!("../../../../keymaps/default.toml");
/// Modifiers for the keys of everywhere, and for those of one place.
const EVERYWHERE: [&str; 4] = ["ctrl-", "alt-", "", ""];
const PLACE: [&str; 4] = ["ctrl-alt-", "alt-shift-", "ctrl-shift-", "ctrl-alt-shift-"];

/// The default keymap with each binding moved to a chord with a function key.
fn rebound() -> Keymap {
    let (mut own, mut number, mut modifiers) = (String::new(), 0, PLACE);
    for line in DEFAULT.lines() {
        if line.starts_with('[') {
            modifiers = if line == "[everywhere]" { EVERYWHERE } else { PLACE };
            (own, number) = (own + line + "\n", 0);
        }
        let Some((key, binding)) = line.split_once(" = ").filter(|_| line.starts_with('"')) else {
            continue;
        };
        let (modifiers, function) = (modifiers[number / 12], number % 12 + 1);
        own += &format!("{key} = \"\"\n\"{modifiers}f{function}\" = {binding}\n");
        number += 1;
    }
    let mut keymap = default_keymap();
    assert_eq!(read(&mut keymap, "keymap.toml", &own), vec![]);
    keymap
}

/// The names of the default keys, without those that are words or signs of their own: a digit, `a`, `A`, `s` (seconds), `:`.
fn default_names() -> BTreeSet<String> {
    let keymap = default_keymap();
    let keys = CONTEXTS.iter().flat_map(|(_, context)| keymap.list(*context).map(|(key, _)| key));
    let names =
        keys.map(label).filter(|name| name.len() > 1 || name.chars().all(char::is_alphabetic));
    names
        .filter(|name| !["a", "A", "s"].contains(&name.as_str()))
        .filter(|name| name.is_ascii())
        .collect()
}

/// The words of a screen that name a default key.
fn defaults_named(screen: &str) -> Vec<String> {
    let names = default_names();
    let words = screen.split(|c: char| c.is_whitespace() || ",.;:()·│/".contains(c));
    words.filter(|word| names.contains(*word)).map(str::to_owned).collect()
}

fn bench() -> Bench {
    let text = yoi::protocol::Segment::Text { content: "and then write the report".into() };
    let queue = vec![yoi::protocol::Queued { id: "one".into(), input: vec![text], enters: false }];
    let pods = vec![
        PodInfo { queue, ..pod("alice", State::Running) },
        pod("scout", State::Idle),
        pod("old", State::Stopped),
        PodInfo { workspace: "/other".into(), cwd: "/other".into(), ..pod("far", State::Idle) },
    ];
    let mut bench = Bench::new(pods);
    bench.size(160, 60);
    bench.app.keymap = rebound();
    bench.runs("open alice");
    bench
}

impl Bench {
    /// Presses the key that is bound to an action.
    fn does(&mut self, context: Context, action: Action) -> Vec<Effect> {
        let bound = crate::screen::keys::Binding::Do(action);
        let (key, _) = self.app.keymap.list(context).find(|(_, to)| **to == bound).expect("a key");
        let key = key_event(key);
        self.msg(Msg::Key(key))
    }

    fn runs(&mut self, line: &str) -> Vec<Effect> {
        self.does(Context::Composer, Action::CommandLine);
        self.type_in(line);
        self.does(Context::Line, Action::Choose)
    }
}

/// What happens on a dashboard before it is looked at.
type Scene<'a> = &'a dyn Fn(&mut Bench);

/// The screen and the notice, which may be hidden.
fn shown(bench: &mut Bench) -> String {
    format!("{}\n{}", bench.screen(), bench.notice())
}

fn names_no_default(scene: &str, bench: &mut Bench) {
    let shown = shown(bench);
    let named = defaults_named(&shown);
    assert!(named.is_empty(), "{scene} names {named:?}:\n{shown}");
}

#[test]
fn the_default_keys_are_found_in_a_screen_that_names_them() {
    let mut bench = bench();
    bench.app.keymap = default_keymap();
    bench.type_in("draft");
    for key in ["Enter", "Ctrl+P", "Tab"] {
        assert!(defaults_named(&shown(&mut bench)).contains(&key.to_owned()), "{key}");
    }
    assert_eq!(defaults_named("D denies, (T) below · PageDown"), ["D", "T", "PageDown"]);
}

#[test]
fn every_pane_hints_at_the_keys_in_force() {
    let request = approval("q", "alice", &"echo more;\n".repeat(40));
    let panes = [
        (Action::Composer, Context::Composer),
        (Action::Tree, Context::Tree),
        (Action::Peers, Context::Peers),
        (Action::Transcript, Context::Transcript),
        (Action::NextNeedsYou, Context::Inbox),
        (Action::Inbox, Context::Page),
    ];
    for (begin, place) in panes {
        let mut bench = bench();
        let approval = Box::new(request.clone());
        bench.host(Some("alice"), Event::ApprovalRequested { approval });
        let name = |name| PodName::parse(name).expect("a name");
        bench.host(None, Event::Peered { source: name("alice"), peer: name("scout") });
        bench.does(Context::Everywhere, Action::Leader);
        names_no_default("the leader", &mut bench);
        bench.does(Context::Leader, begin);
        assert_eq!(bench.app.place(), place);
        for size in [(160, 60), (110, 24)] {
            bench.size(size.0, size.1);
            // A card gives the keys back when the screen is resized.
            bench.does(Context::Everywhere, Action::Leader);
            bench.does(Context::Leader, begin);
            bench.wait(1_000);
            names_no_default(begin.name(), &mut bench);
        }
        bench.type_in("~");
        names_no_default("a key without a meaning", &mut bench);
    }
}

#[test]
fn every_list_and_help_page_names_the_keys_in_force() {
    assert!(bench().screen().contains("1 more in 1 workspace"));
    for line in ["help", "keys", "notices", "pin", "pin 3 scout", "split scout", "zoom", "explain"]
    {
        let mut bench = bench();
        bench.runs(line);
        names_no_default(line, &mut bench);
    }
    for verb in reached(Way::Line) {
        let mut bench = bench();
        bench.runs(&format!("help {}", verb.name));
        assert!(bench.app.page.is_some(), "{}", verb.name);
        names_no_default(&format!("help {}", verb.name), &mut bench);
    }
}

#[test]
fn every_confirmation_names_the_keys_in_force() {
    for (name, opens, _) in confirm::ALL {
        let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("old", State::Stopped)]);
        opens(&mut bench);
        assert!(matches!(bench.app.layers.top(), Some(Layer::Confirm(_))), "{name}");
        bench.app.keymap = rebound();
        bench.app.notices = crate::screen::notice::Notices::default();
        bench.wait(layer::ARMED_AFTER);
        // These letters answer a confirmation and cannot be bound.
        let fixed = ["p: pause and leave", "s: send it as a message"];
        let shown = fixed.iter().fold(shown(&mut bench), |text, answer| text.replace(answer, ""));
        assert_eq!(defaults_named(&shown), Vec::<String>::new(), "{name}:\n{shown}");
    }
}

#[test]
fn notices_name_the_keys_in_force() {
    let everywhere =
        |action| move |bench: &mut Bench| drop(bench.does(Context::Everywhere, action));
    let request = |bench: &mut Bench, command: &str| {
        let approval = Box::new(approval("q", "alice", command));
        bench.host(Some("alice"), Event::ApprovalRequested { approval });
        bench.does(Context::Everywhere, Action::NextNeedsYou);
        bench.wait(1_000);
    };
    let scenes: [(&str, Scene<'_>); 9] = [
        ("interrupt", &everywhere(Action::Interrupt)),
        ("no such key of the leader", &|bench| {
            bench.does(Context::Everywhere, Action::Leader);
            bench.type_in("~");
        }),
        ("a cleared draft", &|bench| {
            bench.shown(pod("alice", State::Idle));
            bench.type_in("draft");
            bench.does(Context::Everywhere, Action::Interrupt);
        }),
        ("nothing to split with", &|bench| {
            bench.app.previous = None;
            bench.runs("split");
            assert!(bench.notice().contains("in the tree"), "{}", bench.notice());
        }),
        ("the queue", &|bench| {
            bench.does(Context::Everywhere, Action::Leader);
            bench.does(Context::Leader, Action::EditQueue);
            assert!(shown(bench).contains("queue: "), "{}", shown(bench));
        }),
        ("pin", &|bench| {
            bench.does(Context::Everywhere, Action::Leader);
            bench.does(Context::Leader, Action::Tree);
            bench.does(Context::Tree, Action::Pin);
            names_no_default("pinning", bench);
            bench.type_in("~");
        }),
        ("an unread request", &|bench| {
            request(bench, &"echo more;\n".repeat(90));
            bench.does(Context::Inbox, Action::AllowOnce);
            assert!(bench.notice().contains("more lines"), "{}", bench.notice());
        }),
        ("a rule", &|bench| {
            request(bench, "cargo fetch");
            bench.does(Context::Inbox, Action::AllowTree);
            assert!(shown(bench).contains("makes it"), "{}", shown(bench));
        }),
        ("a host that ended", &|bench| drop(bench.msg(Msg::HostEnded))),
    ];
    for (scene, plays) in scenes {
        let mut bench = bench();
        plays(&mut bench);
        names_no_default(scene, &mut bench);
    }
    let mut empty = Bench::new(Vec::new());
    empty.app.keymap = rebound();
    names_no_default("the first screen", &mut empty);
}
