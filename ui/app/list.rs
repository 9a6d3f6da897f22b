//! The lists that open over the panes: palette, help, keys, notices, history, queue, rewind.

use crate::app::{App, Effect, Layer, RequestToken};
use crate::command::{self, Argument, Needs, TABLE, find};
use crate::keys::{Binding, CONTEXTS, Context, label};
use crate::notice::Kind;
use crate::palette::{Choice, Palette, Row};
use crate::pane::age;
use crate::pane::fit::wrap;
use crate::pane::glyph::Glyphs;
use yoi::protocol::{PodName, PolicyRule, RewindTarget, flatten};

/// Verbs that end or bring back something are only put into the command line.
const PREFILLED: [&str; 3] = ["stop", "restore", "cancel"];

/// Whether a chosen verb is put into the command line rather than run.
fn waits(row: &command::Row) -> bool {
    let wants = matches!(row.argument, Argument::NewPod | Argument::Model);
    row.needs == Needs::Argument || wants || PREFILLED.contains(&row.name)
}

fn read(text: String, help: String) -> Row {
    Row { text, help, choice: Choice::Nothing }
}

impl App {
    fn open(&mut self, title: &str, rows: Vec<Row>) -> Vec<Effect> {
        self.open_layer(Layer::List(Palette::new(title, rows)))
    }

    /// Every verb and every Pod.
    pub(super) fn open_palette(&mut self) -> Vec<Effect> {
        let pods = self.family.all().iter().map(|info| Row {
            text: info.name.to_string(),
            help: format!("Pod, {}", self.setup.glyphs.look(info).word),
            choice: Choice::Open(info.name.clone()),
        });
        let verbs = TABLE.iter().map(|row| Row {
            text: format!(":{}", row.name),
            help: match self.key_of(row.name) {
                Some(key) => format!("{} ({key})", row.help),
                None => row.help.to_owned(),
            },
            choice: Choice::Verb(row.name),
        });
        let rows = verbs.chain(pods).collect();
        self.open("palette", rows)
    }

    /// The key that does what a verb does, if one does.
    fn key_of(&self, verb: &str) -> Option<String> {
        let action = match verb {
            "quit" => crate::keys::Action::Leave,
            "help" => crate::keys::Action::Help,
            "redraw" => crate::keys::Action::Redraw,
            _ => return None,
        };
        Some(self.keymap.label(Context::Everywhere, action)).filter(|key| !key.is_empty())
    }

    pub(super) fn list_help(&mut self, about: Option<&str>) -> Vec<Effect> {
        if let Some(verb) = about {
            return match find(verb) {
                Some(row) => self.open_sheet(&format!("help: {}", row.name), &command::about(row)),
                None => self.say(Kind::Refused, format!("no verb :{verb}; :help lists them")),
            };
        }
        let rows = TABLE
            .iter()
            .map(|row| Row {
                text: format!(":{} {}", row.name, row.usage).trim_end().to_owned(),
                help: row.help.to_owned(),
                choice: Choice::Verb(row.name),
            })
            .chain([read("keys".into(), ":keys, or ? in a list".into())])
            .collect();
        self.open("help", rows)
    }

    /// The keys of the place the focus is in, then those of everywhere.
    pub(super) fn list_keys(&mut self) -> Vec<Effect> {
        let here = self.place();
        let others =
            CONTEXTS.iter().map(|(_, context)| *context).filter(|context| *context != here);
        let mut rows = Vec::new();
        for context in std::iter::once(here).chain(others) {
            let name = CONTEXTS.iter().find(|(_, of)| *of == context).map_or("", |(name, _)| name);
            for (key, binding) in self.keymap.list(context) {
                let does = match binding {
                    Binding::Do(action) => action.help().to_owned(),
                    Binding::Prefill(line) | Binding::Run(line) => format!(":{line}"),
                };
                let lead = if context == Context::Leader { "Ctrl+X " } else { "" };
                rows.push(read(format!("{lead}{}", label(key)), format!("{does}  ({name})")));
            }
        }
        self.open("keys", rows)
    }

    pub(super) fn list_notices(&mut self) -> Vec<Effect> {
        let ascii = self.setup.glyphs == Glyphs::Ascii;
        let rows: Vec<Row> = self
            .notices
            .past()
            .flat_map(|notice| {
                let at = age::clock(notice.at, self.now, self.zone());
                let text = format!("{at} {} {}", notice.kind.mark(ascii), notice.text);
                wrap(&text, self.sheet_width())
            })
            .map(|line| read(line, String::new()))
            .collect();
        if rows.is_empty() {
            return self.say(Kind::Told, "no notices yet");
        }
        self.open("notices", rows)
    }

    pub(super) fn list_history(&mut self) -> Vec<Effect> {
        let messages = self.composer.history.newest_first().enumerate();
        let rows: Vec<Row> = messages
            .map(|(i, message)| Row {
                text: message.text.replace('\n', " "),
                help: String::new(),
                choice: Choice::History(i),
            })
            .collect();
        if rows.is_empty() {
            return self.say(Kind::Told, "nothing was sent from here yet");
        }
        self.open("history", rows)
    }

    pub(super) fn list_queue(&mut self) -> Vec<Effect> {
        let Some(info) = self.info() else { return self.say(Kind::Told, "no Pod is current") };
        let (pod, queue) = (info.name.clone(), info.queue.clone());
        if queue.is_empty() {
            return self.say(Kind::Told, "the queue is empty");
        }
        let rows = queue
            .into_iter()
            .map(|queued| Row {
                text: flatten(&queued.input).replace('\n', " "),
                help: String::new(),
                choice: Choice::Queued { pod: pod.clone(), id: queued.id },
            })
            .collect();
        self.open("queue: Enter edits", rows)
    }

    /// Where one can go back to, the last message first; or straight to a turn that was named.
    pub(super) fn choose_rewind(
        &mut self,
        pod: &PodName,
        turn: Option<usize>,
        head: usize,
        targets: Vec<RewindTarget>,
        token: &RequestToken,
    ) -> Vec<Effect> {
        if let Some(turn) = turn {
            return match targets.into_iter().find(|target| target.turn_index == turn) {
                Some(target) => self.rewind(pod.clone(), target, token),
                None => self.say(Kind::Refused, format!("{pod} has no turn {turn}")),
            };
        }
        if targets.is_empty() {
            return self.say(Kind::Told, format!("{pod} has nothing to go back to"));
        }
        let rows = targets
            .into_iter()
            .rev()
            .map(|target| {
                let dropped = head.saturating_sub(target.truncate_entries);
                let help = match &target.disabled_reason {
                    Some(reason) if !target.eligible => reason.clone(),
                    _ => format!("drops {dropped} entries"),
                };
                let text = format!("{}  {}", target.turn_index, target.preview.replace('\n', " "));
                Row {
                    text,
                    help,
                    choice: Choice::Rewind { pod: pod.clone(), target: Box::new(target) },
                }
            })
            .collect();
        let list = Layer::List(Palette::new("rewind to before", rows));
        let late = format!("the messages of {pod} are ready: :rewind lists them");
        self.open_for_reply(token, list, late)
    }

    /// Every rule of what Pods may do; one that an answer made can be ended from here.
    pub(super) fn list_policy(
        &mut self,
        rules: &[PolicyRule],
        token: &RequestToken,
    ) -> Vec<Effect> {
        if rules.is_empty() {
            return self.say(Kind::Told, "no rule is in force");
        }
        let row = |rule: &PolicyRule| Row {
            text: command::done::policy_line(rule),
            help: String::new(),
            choice: match rule.id {
                Some(id) => Choice::Prefill(format!("policy revoke {id}")),
                None => Choice::Nothing,
            },
        };
        let rows = rules.iter().map(row).collect();
        let list = Layer::List(Palette::new("policy: the first that fits counts", rows));
        self.open_for_reply(token, list, "the rules are ready: :policy lists them")
    }

    /// What choosing a row does.
    pub(super) fn chose(&mut self, choice: Choice) -> Vec<Effect> {
        match choice {
            Choice::Verb(name) => match find(name) {
                Some(row) if waits(row) => self.open_line(&format!("{name} ")),
                _ => self.run_line(name),
            },
            Choice::Open(name) => self.make_current(&name),
            Choice::History(at) => {
                let message = self.composer.history.newest_first().nth(at).cloned();
                if let Some(message) = message {
                    self.composer.write(&message);
                }
                Vec::new()
            }
            Choice::Rewind { pod, target } => {
                let token = self.request_token();
                self.rewind(pod, *target, &token)
            }
            Choice::Queued { pod, id } => self.unqueue(&pod, &id),
            Choice::Prefill(line) => self.open_line(&line),
            Choice::Nothing => Vec::new(),
        }
    }
}
