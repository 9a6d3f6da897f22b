//! The lists that open over the panes: keys, history, queue.

use crate::screen::app::everything::one_row;
use crate::screen::app::verb::is_written;
use crate::screen::app::{App, Effect, Layer};
use crate::screen::keys::{
    Action as KeyAction, Binding, CONTEXTS, Context, Swallower, arrives_as, label, swallowers,
};
use crate::screen::notice::Kind;
use crate::screen::pick_list::{Choice, ListRow, PickList};
use crate::verb::words::first;
use crate::verb::{Reply, Way, find, reached};
use crokey::KeyCombination;
use yoi::protocol::flatten;

fn read(text: String, help: String) -> ListRow {
    ListRow { text, help, choice: Choice::Nothing }
}

impl App {
    pub(super) fn open(&mut self, title: &str, rows: Vec<ListRow>) -> Vec<Effect> {
        self.open_layer(Layer::List(PickList::new(title, rows)))
    }

    /// The key of a verb, if it has one; a key of the pane in focus comes first.
    pub(super) fn key_of(&self, verb: &str) -> Option<String> {
        let places = [self.place(), Context::Everywhere, Context::Leader];
        places.into_iter().find_map(|context| {
            let mut keys = self.keymap.list(context);
            let (key, _) = keys.find(|(_, binding)| verb_of(binding) == Some(verb))?;
            Some(self.keymap.pressed_name(context, key))
        })
    }

    /// The context of the keymap in which a verb has a key.
    fn key_anywhere(&self, verb: &str) -> Option<Context> {
        let mut places = CONTEXTS.iter().map(|(_, context)| *context);
        places.find(|context| {
            self.keymap.list(*context).any(|(_, binding)| verb_of(binding) == Some(verb))
        })
    }

    /// Opens the list of keys: those of the pane in focus, then those that work everywhere.
    pub(super) fn list_keys(&mut self) -> Vec<Effect> {
        let here = self.place();
        let others =
            CONTEXTS.iter().map(|(_, context)| *context).filter(|context| *context != here);
        let mut rows = self.rows_of_swallowers();
        for context in std::iter::once(here).chain(others) {
            let name = CONTEXTS.iter().find(|(_, of)| *of == context).map_or("", |(name, _)| name);
            for (key, binding) in self.keymap.list(context) {
                let does = match binding {
                    Binding::Do(action) => action.help(),
                    Binding::Prefill(_) | Binding::Run(_) => {
                        verb_of(binding).and_then(find).map_or("", |verb| verb.help)
                    }
                };
                // The name of the verb is in the text, because the search looks there.
                let line = match (binding, verb_of(binding)) {
                    (Binding::Prefill(line) | Binding::Run(line), _) => {
                        format!("  :{}", line.trim_end())
                    }
                    (Binding::Do(_), Some(verb)) => format!("  :{verb}"),
                    (Binding::Do(_), None) => String::new(),
                };
                let lost = self.does_not_arrive(key).map(|why| format!(", {why}"));
                let key = self.keymap.pressed_name(context, key);
                let lost = lost.unwrap_or_default();
                rows.push(read(format!("{key}{line}"), format!("{does}  ({name}){lost}")));
            }
        }
        let unbound = reached(Way::Line).filter(|verb| self.key_anywhere(verb.name).is_none());
        rows.extend(unbound.map(|verb| read(format!(":{}", verb.name), verb.help.to_owned())));
        self.open("keys", rows)
    }

    /// The rows about programs that keep keys for themselves. They come before the keys.
    fn rows_of_swallowers(&self) -> Vec<ListRow> {
        let row = |swallower: &Swallower| {
            let leader = self.keymap.name(Context::Everywhere, KeyAction::Leader);
            let way_out = match swallower.way_out {
                Some(way_out) => way_out.to_owned(),
                None => format!("{leader} and a key does the same"),
            };
            read(swallower.name.into(), format!("keeps {} · {way_out}", swallower.kept()))
        };
        swallowers(&self.setup.env).into_iter().map(row).collect()
    }

    /// Why a key does not reach the screen in this terminal, as far as that is known.
    fn does_not_arrive(&self, key: KeyCombination) -> Option<String> {
        let keeps = |swallower: &&Swallower| swallower.keeps(key);
        if let Some(swallower) = swallowers(&self.setup.env).into_iter().find(keeps) {
            return Some(format!("kept by {}", swallower.name));
        }
        let plain = arrives_as(key).filter(|_| self.looks.chords == Some(false))?;
        let in_tmux = self.setup.env.get("TMUX").is_some_and(|socket| !socket.is_empty());
        let unless = if in_tmux { " unless tmux has extended-keys on" } else { "" };
        Some(format!("arrives as {}{unless}", label(plain)))
    }

    pub(super) fn list_history(&mut self) -> Vec<Effect> {
        let rows = self.message_rows("");
        if rows.is_empty() {
            return self.say(Kind::Info, "nothing was sent from here yet");
        }
        self.open("history", rows)
    }

    pub(super) fn list_queue(&mut self) -> Vec<Effect> {
        let Some(info) = self.info() else { return self.say(Kind::Info, "no Pod is current") };
        let (pod, queue) = (info.name.clone(), info.queue.clone());
        if queue.is_empty() {
            return self.say(Kind::Info, "the queue is empty");
        }
        let rows = queue
            .into_iter()
            .map(|queued| ListRow {
                text: one_row(&flatten(&queued.input)),
                help: String::new(),
                choice: Choice::Queued { pod: pod.clone(), id: queued.id },
            })
            .collect();
        let edit = self.keymap.name(Context::Line, KeyAction::Choose);
        self.open(&format!("queue: {edit} edits"), rows)
    }

    /// Does what the chosen row of a list is for.
    pub(super) fn chose(&mut self, choice: Choice) -> Vec<Effect> {
        match choice {
            Choice::Verb(name) => match find(name) {
                Some(verb) if is_written(verb) => self.open_line(&format!("{name} ")),
                _ => self.run_line(name, Way::Palette),
            },
            Choice::Line(line) => self.run_line(&line, Way::Palette),
            Choice::Open(name) => self.make_current(&name),
            Choice::File(path) => self.write_file(&path),
            Choice::Setting(key) => vec![Effect::OpenSettings(key)],
            Choice::History(message) => {
                let draft = self.composer.draft().message();
                self.composer.history.keep(&draft, self.now);
                self.composer.write(&message);
                Vec::new()
            }
            Choice::Picked { verb, at, .. } => self.verb_replied(verb, Reply::Picked(at)),
            Choice::Queued { pod, id } => self.unqueue(&pod, &id),
            Choice::Prefill(line) => self.open_line(&line),
            Choice::Nothing => Vec::new(),
        }
    }
}

/// The verb that a key runs or writes into the command line.
fn verb_of(binding: &Binding) -> Option<&'static str> {
    let name = match binding {
        Binding::Do(KeyAction::Leave) => "quit",
        Binding::Do(action) => action.name(),
        Binding::Prefill(line) | Binding::Run(line) => first(line).0,
    };
    find(name).map(|verb| verb.name)
}
