//! The page of F1: the keys of what has the keys, each with what it does now, and the verbs that fit the Pod now.

use crate::screen::app::explain::possible;
use crate::screen::app::{App, Effect, Focus, KeysOf, Layer, OpenPage, Page};
use crate::screen::keys::{Action, Binding, Context, label};
use crate::screen::pane::actionbar::Hint;
use crate::screen::pane::page::{KeyHelp, PageRow, blank, piece, rows_of_keys, rows_of_words};
use crate::theme::Role;
use crate::verb::words::first;
use crate::verb::{Way, find, reached};
use crate::wording::wait;
use yoi::protocol::{PodInfo, State};

use Action as Do;

/// Actions with one sentence about them, in a place where their keys work.
struct Sentence(Context, &'static [Action], &'static str);

/// What the keys of each place do. The keys of an action without a sentence here have the words of the action.
const SENTENCES: &[Sentence] = &[
    Sentence(Context::Tree, &[Do::Up, Do::Down], "another Pod: its transcript is shown"),
    Sentence(Context::Tree, &[Do::First, Do::Last], "the first, the last"),
    Sentence(Context::Tree, &[Do::Choose], "go to it"),
    Sentence(Context::Tree, &[Do::Unfold, Do::Fold], "unfold, fold what is below it"),
    Sentence(Context::Tree, &[Do::Filter], "only Pods whose names match"),
    Sentence(Context::Tree, &[Do::Mark], "mark it; :stop and other verbs act on all marked Pods"),
    Sentence(Context::Tree, &[Do::Menu], "every verb possible now"),
    Sentence(Context::Tree, &[Do::Explain], "why it is in its state"),
    Sentence(Context::Tree, &[Do::Copy], "copy its name"),
    Sentence(Context::Tree, &[Do::Split], "its transcript beside this one"),
    Sentence(Context::Peers, &[Do::Up, Do::Down], "another peer or agent"),
    Sentence(Context::Peers, &[Do::First, Do::Last], "the first, the last"),
    Sentence(Context::Peers, &[Do::Choose], "go to a peer; write to an agent"),
    Sentence(Context::Peers, &[Do::Menu], "every verb possible now"),
    Sentence(Context::Peers, &[Do::Explain], "why it is in its state"),
    Sentence(Context::Peers, &[Do::Copy], "copy its name"),
    Sentence(Context::Peers, &[Do::Split], "its transcript beside this one"),
    Sentence(Context::Transcript, &[Do::Up, Do::Down], "up, down"),
    Sentence(Context::Transcript, &[Do::HalfPageUp, Do::HalfPageDown], "half a page up, down"),
    Sentence(Context::Transcript, &[Do::PageUp, Do::PageDown], "a page up, down"),
    Sentence(Context::Transcript, &[Do::Top, Do::Tail], "to the top, to the tail"),
    Sentence(Context::Transcript, &[Do::PreviousTurn, Do::NextTurn], "previous, next message"),
    Sentence(Context::Transcript, &[Do::UnfoldHere], "unfold or fold the row"),
    Sentence(Context::Transcript, &[Do::Unfold, Do::Fold], "unfold, fold"),
    Sentence(Context::Transcript, &[Do::FindNext, Do::FindBack], "next match, previous match"),
    Sentence(Context::Transcript, &[Do::Copy], "copy the block, or the call"),
    Sentence(Context::Inbox, &[Do::Up, Do::Down], "another one that needs you"),
    Sentence(Context::Inbox, &[Do::OpenPod], "go to the Pod that waits"),
    Sentence(Context::Inbox, &[Do::Composer], "write to the Pod that waits"),
    Sentence(Context::Page, &[Do::Up, Do::Down], "the row above, below"),
    Sentence(Context::Page, &[Do::First, Do::Last], "the first row, the last"),
    Sentence(Context::Page, &[Do::Choose], "go where the row leads"),
    Sentence(Context::Page, &[Do::Copy], "copy the row, or the whole page"),
    Sentence(Context::Page, &[Do::Composer], "write; the page stays"),
    Sentence(Context::Page, &[Do::Back], "close the page"),
    Sentence(Context::Line, &[Do::Choose], "choose the row, or run the line"),
    Sentence(Context::Line, &[Do::Complete, Do::CompleteBack], "next completion, previous one"),
    Sentence(Context::Line, &[Do::Up, Do::Down], "the row above, below; earlier lines"),
    Sentence(Context::Line, &[Do::Back], "leave it; what is typed is kept"),
    Sentence(Context::Everywhere, &[Do::NextNeedsYou], "what needs you"),
    Sentence(Context::Everywhere, &[Do::Palette], "find anything"),
    Sentence(Context::Everywhere, &[Do::Leader], "panes and more keys"),
    Sentence(Context::Everywhere, &[Do::Leave], "leave; Pods go on"),
];

/// The places in the order in which a page lists the keys of all others.
const ELSEWHERE: [(Context, &str); 9] = [
    (Context::Everywhere, "Everywhere"),
    (Context::Leader, "After {everywhere leader}"),
    (Context::Composer, "In the line"),
    (Context::Tree, "In the tree"),
    (Context::Peers, "Among the peers"),
    (Context::Transcript, "In the transcript"),
    (Context::Inbox, "On a card"),
    (Context::Page, "On a page"),
    (Context::Line, "In the command line and in lists"),
];

/// What answers a card; each card takes only some of them.
const ANSWERS: [Action; 6] =
    [Do::AllowOnce, Do::AllowEach, Do::AllowPod, Do::AllowTree, Do::Deny, Do::Seen];

/// The verbs that are named where there is no Pod.
const WITHOUT_POD: [&str; 4] = ["connect", "model", "tour", "since"];

/// The keys of everywhere that each page of keys has.
const EVERYWHERE: [Action; 4] = [Do::NextNeedsYou, Do::Palette, Do::Leader, Do::Leave];

impl App {
    /// The key of help: opens the page for what has the keys, and the same key closes it. The line keeps the keys.
    pub(in crate::screen::app) fn help_key(&mut self) -> Vec<Effect> {
        let of = match self.layers.top() {
            Some(Layer::Prompt(_) | Layer::List(_)) => KeysOf::Place(Context::Line),
            Some(Layer::Key(_)) => KeysOf::Key,
            Some(Layer::Confirm(_)) => KeysOf::Confirm,
            None => KeysOf::Place(self.place()),
        };
        self.help_on(of)
    }

    /// Whether the page of keys that is open describes a layer, not a pane.
    pub(in crate::screen::app) fn explains_layer(&self) -> bool {
        let of_layer =
            |of| matches!(of, KeysOf::Place(Context::Line) | KeysOf::Confirm | KeysOf::Key);
        matches!(&self.page, Some(OpenPage { page: Page::Keys(of), .. }) if of_layer(*of))
    }

    /// Opens the page of keys for a place, or closes the page of keys that is open.
    pub(in crate::screen::app) fn help_on(&mut self, of: KeysOf) -> Vec<Effect> {
        let is_open = matches!(&self.page, Some(OpenPage { page: Page::Keys(_), .. }));
        if is_open {
            self.close_page();
            return Vec::new();
        }
        let back = self.focus;
        self.show_page(Page::Keys(of));
        if back != Focus::Composer {
            self.give_keys_to_page(back);
        }
        Vec::new()
    }

    /// Where the keys are that a page describes.
    pub(super) fn title_of_keys(&self, of: KeysOf) -> String {
        let place = match of {
            KeysOf::Place(place) => place,
            KeysOf::Confirm => return "Confirming".into(),
            KeysOf::Key => return "Typing a key".into(),
        };
        match place {
            Context::Composer => match self.info() {
                Some(info) => format!("Writing to {}", info.name),
                None => match &self.current {
                    Some(gone) => format!("Writing to {gone}, which was removed"),
                    None => "Writing to a new Pod".into(),
                },
            },
            Context::Tree => "In the tree".into(),
            Context::Peers => "Among the peers".into(),
            Context::Transcript => match self.shown() {
                Some(name) => format!("Reading {name}"),
                None => "Reading".into(),
            },
            Context::Inbox => "Deciding what waits".into(),
            Context::Page => "On a page".into(),
            Context::Line => "In a line or list".into(),
            Context::Leader => self.keymap.with_keys("After {everywhere leader}"),
            Context::Everywhere => "Everywhere".into(),
        }
    }

    /// The key of the list of all keys, for the head.
    pub(super) fn all_keys(&self) -> String {
        self.keymap.with_keys("{leader keys}: every key")
    }

    /// The rows of the page: the keys of what has the keys, and verbs; then the keys of all other places.
    pub(super) fn rows_of_help(&self, of: KeysOf, columns: usize) -> Vec<PageRow> {
        let mut rows = match of {
            KeysOf::Place(place) => self.rows_of_place(place, columns),
            KeysOf::Confirm => self.rows_of_keys(&self.keys_of_confirm(), &[], columns),
            KeysOf::Key => self.rows_of_keys(&self.keys_of_key_line(), &[], columns),
        };
        let others = ELSEWHERE.iter().filter(|(other, _)| of != KeysOf::Place(*other));
        for (other, title) in others {
            let mut keys = self.keys_of_place(*other);
            if *other == Context::Everywhere && of == KeysOf::Place(Context::Line) {
                // In a line these do something else.
                let is_free =
                    |key: &str| !self.keymap.list(Context::Line).any(|(own, _)| label(own) == key);
                keys.retain(|help| help.keys.split(' ').any(is_free));
            }
            let (first, second) = keys.split_at(keys.len().div_ceil(2));
            let title = piece(self.keymap.with_keys(title), Role::Dim);
            rows.extend([PageRow::default(), PageRow::new(vec![blank(1), title])]);
            rows.extend(self.rows_of_keys(first, second, columns));
        }
        rows
    }

    /// The rows for these keys, each named as the terminal can show it, for its columns depend on that.
    fn rows_of_keys(&self, first: &[KeyHelp], second: &[KeyHelp], columns: usize) -> Vec<PageRow> {
        let plain = |text: &String| self.setup.glyphs.plain(text);
        let shown = |help: &KeyHelp| KeyHelp {
            keys: plain(&help.keys),
            does: plain(&help.does),
            more: help.more.iter().map(|(key, does)| (plain(key), plain(does))).collect(),
        };
        let shown = |all: &[KeyHelp]| all.iter().map(shown).collect::<Vec<_>>();
        rows_of_keys(&shown(first), &shown(second), columns)
    }

    /// The keys of the sheet that asks for a confirmation.
    fn keys_of_confirm(&self) -> Vec<KeyHelp> {
        let name = |context, action| self.keymap.name(context, action);
        let pages = [Do::PageUp, Do::PageDown].map(|action| name(Context::Everywhere, action));
        let keys = [
            (name(Context::Line, Do::Choose), "does what the sheet says"),
            (name(Context::Line, Do::Back), "leaves it; nothing is done"),
            (pages.join(" "), "the rest of a long sheet"),
        ];
        keys.map(|(keys, does)| KeyHelp { keys, does: does.into(), more: Vec::new() }).into()
    }

    /// The keys of the line in which a key of a provider is typed.
    fn keys_of_key_line(&self) -> Vec<KeyHelp> {
        let keys = [
            (Do::Choose, "tries the key, and stores it if it works"),
            (Do::Back, "leaves the line and forgets what is typed"),
            (Do::DeleteBack, "deletes the last character; on an empty line leaves it"),
            (Do::DeleteToStart, "deletes all of it"),
        ];
        let help = |(action, does): (Action, &str)| KeyHelp {
            keys: self.keymap.name(Context::Line, action),
            does: does.into(),
            more: Vec::new(),
        };
        keys.map(help).into()
    }

    /// The keys of a place with what they do now, and the verbs that fit.
    fn rows_of_place(&self, of: Context, columns: usize) -> Vec<PageRow> {
        let mut own = self.keys_of_place(of);
        if of == Context::Inbox {
            own = self.keys_of_card(own);
        }
        // A key of the place itself does something else there.
        let is_own = |keys: &str| self.keymap.list(of).any(|(key, _)| label(key) == keys);
        let everywhere = EVERYWHERE.iter().filter_map(|action| {
            let keys = self.keymap.label(Context::Everywhere, *action);
            let does = sentence(Context::Everywhere, *action)?.2.to_owned();
            let shown = of == Context::Composer || !is_own(&keys);
            (!keys.is_empty() && shown).then_some(KeyHelp { keys, does, more: Vec::new() })
        });
        let mut rows = match of {
            Context::Composer => {
                let everywhere: Vec<KeyHelp> = everywhere.collect();
                self.rows_of_keys(&self.keys_of_line(), &everywhere, columns)
            }
            _ => {
                let all: Vec<KeyHelp> = own.into_iter().chain(everywhere).collect();
                let (first, second) = all.split_at(all.len().div_ceil(2));
                self.rows_of_keys(first, second, columns)
            }
        };
        rows.push(PageRow::default());
        rows.extend(rows_of_words("Verbs now", &self.verbs_now(of), columns));
        rows
    }

    /// Those of the keys of cards that do something on this one. What a key does to a question is in the words of its card.
    fn keys_of_card(&self, mut keys: Vec<KeyHelp>) -> Vec<KeyHelp> {
        let label = |action: &Action| self.keymap.label(Context::Inbox, *action);
        let first = |keys: &str| keys.split(' ').next().unwrap_or_default().to_owned();
        let all: Vec<String> = ANSWERS.iter().map(label).collect();
        let hints = self.all_answers();
        let is_question = self.chosen_question().is_some();
        keys.retain_mut(|help| {
            let hint = hints.iter().find(|hint| hint.key == first(&help.keys));
            if let Some(hint) = hint.filter(|_| is_question) {
                help.does.clone_from(&hint.does);
            }
            hint.is_some() || !all.contains(&first(&help.keys))
        });
        let is_digit = |hint: &&Hint| hint.key.starts_with(|c: char| c.is_ascii_digit());
        let digits = hints.iter().filter(is_digit).map(|hint| KeyHelp {
            keys: hint.key.clone(),
            does: hint.does.clone(),
            more: Vec::new(),
        });
        digits.chain(keys).collect()
    }

    /// The keys of the line with what they do to this Pod now, and the keys that a person bound to verbs.
    fn keys_of_line(&self) -> Vec<KeyHelp> {
        let place = Context::Composer;
        let key = |action, does: String| {
            let keys = self.keymap.label(place, action);
            (!keys.is_empty()).then(|| KeyHelp { keys, does, more: Vec::new() })
        };
        let back = self.keymap.label(Context::Everywhere, Do::Back);
        let back = (!back.is_empty()).then(|| KeyHelp {
            keys: back,
            does: self.back_does(),
            more: Vec::new(),
        });
        let more = [(Do::Up, "history"), (Do::CompleteFile, "file")];
        let more = more.into_iter().filter_map(|(action, does)| {
            let key = self.keymap.label(place, action);
            (!key.is_empty()).then(|| (key, does.to_owned()))
        });
        let newline = key(Do::Newline, "new line".into());
        let newline = newline.map(|help| KeyHelp { more: more.collect(), ..help });
        let tab = key(Do::Queue, self.queue_does().into());
        let keys = [key(Do::Send, self.send_does().into()), tab, back, newline];
        let own = self.keymap.list(place).filter_map(|(key, binding)| match binding {
            Binding::Prefill(_) | Binding::Run(_) => Some(self.unnamed(place, key, binding)),
            Binding::Do(_) => None,
        });
        keys.into_iter().flatten().chain(own).collect()
    }

    fn send_does(&self) -> &'static str {
        let Some(info) = self.info() else {
            return match self.current {
                Some(_) => "nothing: the Pod was removed",
                None => "makes a Pod here and sends",
            };
        };
        match info.state {
            State::Running | State::NeedsYou if self.runs(info) => {
                "steers: enters at the next tool"
            }
            State::Running | State::NeedsYou => "queues to the end of the run",
            State::Paused => "sends; on an empty line continues",
            state if state.can_be_restored() => "restores it and sends",
            State::Damaged => "nothing: it is damaged",
            State::Idle | State::Stopped | State::Failed | State::Unknown => "sends",
        }
    }

    fn queue_does(&self) -> &'static str {
        match self.info().is_some_and(|info| self.runs(info)) {
            true => "queues to the end of the run",
            false => "from an empty line into this page",
        }
    }

    /// Esc closes the page before it does anything else.
    fn back_does(&self) -> String {
        match self.info() {
            Some(info) if info.state == State::Running => {
                format!("closes this, then pauses {}", info.name)
            }
            Some(_) | None => "closes this".into(),
        }
    }

    /// All keys of a place, in the order of the keymap; actions with one sentence together.
    fn keys_of_place(&self, of: Context) -> Vec<KeyHelp> {
        let mut done: Vec<Action> = Vec::new();
        let mut all = Vec::new();
        for (key, binding) in self.keymap.list(of) {
            let Binding::Do(action) = binding else {
                all.push(self.unnamed(of, key, binding));
                continue;
            };
            if done.contains(action) {
                continue;
            }
            let together =
                sentence(of, *action).map_or(std::slice::from_ref(action), |found| found.1);
            all.extend(self.keys_of(of, together));
            done.extend(together);
        }
        all
    }

    /// The keys of these actions with their sentence; none where none has a key.
    fn keys_of(&self, of: Context, actions: &[Action]) -> Option<KeyHelp> {
        let first = *actions.first()?;
        if matches!(first, Do::Slot(_)) {
            let does = "go to its pinned Pod, else to that row".to_owned();
            return (first == Do::Slot(1)).then(|| KeyHelp {
                keys: self.slot_keys(of),
                does,
                more: Vec::new(),
            });
        }
        let keys_of = |action: &Action| {
            let bound = Binding::Do(*action);
            let keys = self.keymap.list(of).filter(|(_, binding)| **binding == bound);
            keys.map(|(key, _)| label(key)).collect::<Vec<_>>()
        };
        let each: Vec<Vec<String>> = actions.iter().map(keys_of).collect();
        let most = each.iter().map(Vec::len).max().unwrap_or(0);
        // The first key of each action, then the second of each.
        let keys =
            (0..most).flat_map(|at| each.iter().filter_map(move |keys| keys.get(at).cloned()));
        let keys = keys.collect::<Vec<_>>().join(" ");
        let mut does = sentence(of, first).map_or(first.help(), |found| found.2).to_owned();
        // There the transcript of another Pod may be in view.
        let lists = matches!(of, Context::Tree | Context::Peers);
        if let Some(current) = self.current.as_ref().filter(|_| lists && first == Do::Composer) {
            does = format!("write to {current}");
        }
        (!keys.is_empty()).then_some(KeyHelp { keys, does, more: Vec::new() })
    }

    /// A key that is bound to a line: the verb of that.
    fn unnamed(&self, of: Context, key: crokey::KeyCombination, binding: &Binding) -> KeyHelp {
        let does = match binding {
            Binding::Prefill(line) | Binding::Run(line) => format!(":{}", first(line).0),
            Binding::Do(action) => action.help().to_owned(),
        };
        KeyHelp { keys: self.keymap.pressed_name(of, key), does, more: Vec::new() }
    }

    /// The verbs that fit the Pod now, and how many more there are.
    fn verbs_now(&self, of: Context) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut verbs: Vec<&str> = Vec::new();
        let pod = if of == Context::Tree { self.tree.chosen() } else { self.current.as_ref() };
        let info = pod.and_then(|name| self.family.get(name));
        let waits = info.is_some_and(|info| {
            info.state == State::NeedsYou || wait::sentence(info, &self.family, self.now).is_some()
        });
        let lines = info.map(|info: &PodInfo| {
            let has_children = self.family.children(&info.name).next().is_some();
            let mut lines = possible(info, has_children);
            // Enter and the line itself do these.
            lines.retain(|(line, _)| !["open", "send"].contains(&first(line).0));
            lines.sort_by_key(|(line, _)| first(line).0 != "explain");
            lines.extend([("peer".to_owned(), ""), ("fork".to_owned(), "")]);
            lines
        });
        let without = || WITHOUT_POD.iter().map(|verb| ((*verb).to_owned(), "")).collect();
        for (line, _) in lines.unwrap_or_else(without) {
            let Some(verb) = find(first(&line).0).filter(|verb| !verbs.contains(&verb.name)) else {
                continue;
            };
            verbs.push(verb.name);
            words.push(match verb.name {
                "explain" if waits => ":explain why it waits".to_owned(),
                name => format!(":{name}"),
            });
        }
        let more = reached(Way::Line).count().saturating_sub(verbs.len());
        let palette = self.keymap.name(Context::Everywhere, Do::Palette);
        words.push(format!("{more} more: {palette}"));
        words
    }
}

/// The sentence for an action in a place.
fn sentence(of: Context, action: Action) -> Option<&'static Sentence> {
    SENTENCES.iter().find(|Sentence(place, actions, _)| *place == of && actions.contains(&action))
}
