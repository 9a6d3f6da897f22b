use super::*;
use std::collections::BTreeSet;

/// The written keymap: for each place its keys, what each is bound to, and what that does.
const TABLE: &str = include_str!("table.md");

fn problems(text: &str) -> Vec<String> {
    let mut keymap = default_keymap();
    read(&mut keymap, "keymap.toml", text).iter().map(ToString::to_string).collect()
}

/// A binding of the written table or of the keymap: place, key, and what the key is bound to.
type Bound = (String, String, String);

/// The bindings that the table writes. A row holds one binding for all its keys, or one for each.
fn written() -> BTreeSet<Bound> {
    let mut bound = BTreeSet::new();
    let mut place = String::new();
    for line in TABLE.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            place = name.to_lowercase();
        }
        let cells: Vec<&str> = line.split(" | ").map(|cell| cell.trim_matches(['|'])).collect();
        let [keys, bindings, _] = cells[..] else { continue };
        if keys.trim() == "key" {
            continue;
        }
        let keys: Vec<&str> = keys.trim().split(" / ").collect();
        let bindings: Vec<&str> = bindings.split(" / ").map(|one| one.trim_matches('`')).collect();
        assert!([1, keys.len()].contains(&bindings.len()), "{line}");
        for (key, binding) in keys.iter().zip(bindings.iter().cycle()) {
            let row = (place.clone(), (*key).to_owned(), (*binding).to_owned());
            assert!(bound.insert(row.clone()), "{row:?} is written twice");
        }
    }
    bound
}

#[test]
fn the_default_keymap_is_the_written_table() {
    let keymap = default_keymap();
    let bound: BTreeSet<Bound> = CONTEXTS
        .iter()
        .flat_map(|(place, context)| {
            keymap.list(*context).map(|(key, to)| ((*place).to_owned(), label(key), to.written()))
        })
        .collect();
    let written = written();
    let only = |of: &BTreeSet<Bound>, other: &BTreeSet<Bound>| -> Vec<Bound> {
        of.difference(other).cloned().collect()
    };
    let differences = (only(&bound, &written), only(&written, &bound));
    assert_eq!(differences, (vec![], vec![]), "(only in the keymap, only in the table)");
}

#[test]
fn the_default_keymap_has_no_problem_and_every_action_a_name() {
    let mut keymap = Keymap::default();
    let text = include_str!("../../../keymaps/default.toml");
    assert_eq!(read(&mut keymap, "default.toml", text), vec![]);
    for row in action::ACTIONS {
        assert_eq!(Action::named(row.name), Some(row.action));
        assert!(!row.help.is_empty());
    }
}

#[test]
fn no_forbidden_key_is_bound_by_default() {
    let keymap = default_keymap();
    for key in ["ctrl-b", "ctrl-s", "ctrl-q", "ctrl-space", "ctrl-v", "ctrl-\\", "ctrl-]", "f11"] {
        let Some(key) = parse(key) else { panic!("{key} is a key") };
        for (_, context) in CONTEXTS {
            assert_eq!(keymap.get(context, key), None, "{}", label(key));
        }
    }
}

#[test]
fn a_user_file_changes_single_keys() {
    let mut keymap = default_keymap();
    let text = "[everywhere]\n\"F5\" = \"palette\"\n\"f2\" = \"\"\n[tree]\n\"x\" = \":rm {pod}\"\n\"p\" = \"run :pause\"\n";
    assert_eq!(read(&mut keymap, "keymap.toml", text), vec![]);
    let at = |context, key| keymap.get(context, parse(key).expect("a key")).cloned();
    assert_eq!(at(Context::Tree, "f5"), Some(Binding::Do(Action::Palette)));
    assert_eq!(at(Context::Everywhere, "f2"), None);
    assert_eq!(at(Context::Everywhere, "ctrl-p"), Some(Binding::Do(Action::Palette)));
    assert_eq!(at(Context::Tree, "x"), Some(Binding::Prefill("rm {pod}".into())));
    assert_eq!(at(Context::Tree, "p"), Some(Binding::Run("pause".into())));
}

#[test]
fn a_file_with_a_mistake_changes_nothing() {
    let mut keymap = default_keymap();
    let text = "[tree]\n\"f7\" = \"mark\"\n\"f8\" = \"dance\"\n";
    assert_eq!(read(&mut keymap, "keymap.toml", text).len(), 1);
    assert_eq!(keymap, default_keymap());
}

#[test]
fn the_keys_of_vim_have_no_problem_leave_the_line_as_it_is_and_answer_nothing_new() {
    let mut read_alone = Keymap::default();
    let text = include_str!("../../../keymaps/vim.toml");
    assert_eq!(read(&mut read_alone, "vim.toml", text), vec![]);
    let (usual, vim) = (default_keymap(), built_in("vim"));
    let keys = |keymap: &Keymap, context| {
        keymap.list(context).map(|(key, to)| (label(key), to.written())).collect::<BTreeSet<_>>()
    };
    for context in [Context::Everywhere, Context::Composer, Context::Line, Context::Inbox] {
        let changed =
            keys(&vim, context).difference(&keys(&usual, context)).cloned().collect::<Vec<_>>();
        let leader =
            (context == Context::Inbox).then(|| ("Ctrl+W".to_owned(), "leader".to_owned()));
        assert_eq!(changed, Vec::from_iter(leader), "{context:?}");
    }
    for (_, context) in CONTEXTS {
        let lost: Vec<_> =
            keys(&usual, context).difference(&keys(&vim, context)).cloned().collect();
        assert_eq!(lost, [], "every usual key of {context:?} does what it did");
    }
}

#[test]
fn letters_that_answer_a_request_mean_nothing_elsewhere_in_any_keymap() {
    for name in names() {
        let keymap = built_in(name);
        for letter in ["a", "A", "T", "D", "M"] {
            let key = parse(letter).expect("a key");
            let panes = [
                Context::Everywhere,
                Context::Tree,
                Context::Peers,
                Context::Transcript,
                Context::Page,
            ];
            for context in panes {
                assert_eq!(keymap.get(context, key), None, "{letter} of {name} in {context:?}");
            }
        }
    }
}

#[test]
fn a_wrong_setting_is_reported_with_file_line_and_column() {
    assert_eq!(
        problems("[everywhere]\n\"ctrl-p\" = \"dance\"\n"),
        ["keymap.toml:2:12: no such action `dance`; this file changes nothing"]
    );
    assert_eq!(
        problems("[cellar]\n"),
        [
            "keymap.toml:1:2: no such place `cellar` (there are everywhere, composer, line, tree, peers, transcript, inbox, page, leader); this file changes nothing"
        ]
    );
    assert_eq!(
        problems("[tree]\n\"hyper-q\" = \"up\"\n\"o\" = \":fly\"\n"),
        [
            "keymap.toml:2:1: `hyper-q` is no key; this file changes nothing",
            "keymap.toml:3:7: no such verb `:fly`; this file changes nothing",
        ]
    );
    assert_eq!(
        problems("[tree]\n\"ctrl-i\" = \"up\"\n\"tab\" = \"down\"\n"),
        ["keymap.toml:3:1: `tab` is bound twice here; this file changes nothing"]
    );
    assert_eq!(
        problems("[composer]\n\"x\" = \"up\"\n"),
        [
            "keymap.toml:2:1: `x` types in the composer and cannot be bound; this file changes nothing"
        ]
    );
    assert_eq!(
        problems("[tree]\n\"x\" = \"run :rm\"\n"),
        [
            "keymap.toml:2:7: `:rm` is only ever put into the command line: leave out `run`; this file changes nothing"
        ]
    );
    assert_eq!(
        problems("[everywhere]\n\"x\" = \"palette\"\n"),
        [
            "keymap.toml:2:1: `x` types in the composer and cannot be bound; this file changes nothing"
        ]
    );
    assert_eq!(problems("[tree\n").len(), 1);
}

#[test]
fn keys_that_arrive_as_one_byte_are_one_key() {
    let key = |code, modifiers| label(pressed(KeyEvent::new(code, modifiers)));
    assert_eq!(key(KeyCode::Char('7'), KeyModifiers::CONTROL), "Ctrl+_");
    assert_eq!(key(KeyCode::Char('/'), KeyModifiers::CONTROL), "Ctrl+_");
    assert_eq!(key(KeyCode::Char('h'), KeyModifiers::CONTROL), "Backspace");
    assert_eq!(key(KeyCode::BackTab, KeyModifiers::SHIFT), "Shift+Tab");
    assert_eq!(key(KeyCode::Tab, KeyModifiers::SHIFT), "Shift+Tab");
    assert_eq!(key(KeyCode::Char('?'), KeyModifiers::SHIFT), "?");
    assert_eq!(key(KeyCode::Char('G'), KeyModifiers::SHIFT), "G");
    assert_eq!(key(KeyCode::Char('j'), KeyModifiers::CONTROL), "Ctrl+J");
}

#[test]
fn a_key_with_a_modifier_that_no_binding_names_is_another_key() {
    let plain = pressed(KeyEvent::new(KeyCode::Char('a'), KeyModifiers::NONE));
    for modifier in [KeyModifiers::SUPER, KeyModifiers::HYPER, KeyModifiers::META] {
        assert_ne!(pressed(KeyEvent::new(KeyCode::Char('a'), modifier)), plain, "{modifier}");
    }
}
