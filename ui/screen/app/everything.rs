//! The palette: one list of verbs, Pods, agents, themes, models, settings, sent messages and files.

use crate::screen::app::{App, Effect, Focus, Layer};
use crate::screen::pane::composer::Message;
use crate::screen::pick_list::{Choice, ListRow, PickList};
use crate::verb::{Verb, Way, reached};
use std::collections::BTreeMap;
use yoi::protocol::Completion;
use yoi::text::verb_word;

/// The most rows whose number of uses is remembered.
const MAX_CHOSEN: usize = 300;
/// The most characters of a message that a row shows.
const MESSAGE: usize = 200;
/// The page that lists the settings and explains them.
const SETTINGS: &str = include_str!("../../../docs/config.md");

impl App {
    /// Opens the palette.
    pub(super) fn open_palette(&mut self) -> Vec<Effect> {
        let rows = [
            self.verb_rows(),
            self.pod_rows(),
            self.value_rows(),
            settings(SETTINGS),
            self.message_rows("message"),
        ];
        let palette = PickList::of_everything("palette", rows.concat(), &self.chosen);
        self.open_layer(Layer::List(palette))
    }

    fn verb_rows(&self) -> Vec<ListRow> {
        let row = |verb: &Verb| ListRow {
            text: format!(":{}", verb.name),
            help: match self.key_of(verb.name) {
                Some(key) => format!("{} ({key})", verb.help),
                None => verb.help.to_owned(),
            },
            choice: Choice::Verb(verb.name),
        };
        reached(Way::Palette).map(row).collect()
    }

    fn pod_rows(&self) -> Vec<ListRow> {
        let pods = self.family.listed().map(|info| ListRow {
            text: info.name.to_string(),
            help: format!("Pod, {}", self.setup.glyphs.state_sign(info).word),
            choice: Choice::Open(info.name.clone()),
        });
        let agents = self.known_agents().into_iter().map(|(name, kind)| ListRow {
            choice: Choice::Prefill(format!("send {} ", verb_word(&name))),
            text: name,
            help: kind,
        });
        pods.chain(agents).collect()
    }

    /// Lines that choose a value: a theme, or a model for the current Pod.
    fn value_rows(&self) -> Vec<ListRow> {
        let row = |line: String, help: &str| ListRow {
            text: format!(":{line}"),
            help: help.to_owned(),
            choice: Choice::Line(line),
        };
        let themes = self.setup.themes.iter();
        let themes = themes.map(|name| row(format!("theme {}", verb_word(name)), "colours"));
        let models = self.setup.models.iter().filter(|_| self.info().is_some());
        let models = models.map(|(name, help)| row(format!("model {}", verb_word(name)), help));
        themes.chain(models).collect()
    }

    /// The messages that were sent from here, newest first.
    pub(super) fn message_rows(&self, help: &str) -> Vec<ListRow> {
        let row = |message: &Message| ListRow {
            text: one_row(&message.text),
            help: help.to_owned(),
            choice: Choice::History(Box::new(message.clone())),
        };
        self.composer.history.newest_first().map(row).collect()
    }

    /// Shows the files that the host found for the palette.
    pub(super) fn files_like(&mut self, query: &str, found: Vec<Completion>) {
        let row = |file: Completion| ListRow {
            help: if file.is_dir { "directory" } else { "file" }.to_owned(),
            choice: Choice::File(file.value.clone()),
            text: file.value,
        };
        let files = found.into_iter().map(row).collect();
        if let Some(palette) = self.layers.palette_mut() {
            palette.found(query, files);
        }
    }

    /// Names a file in the composer, which gets the keys.
    pub(super) fn write_file(&mut self, path: &str) -> Vec<Effect> {
        self.focus = Focus::Composer;
        self.forget_requests();
        self.composer.write_file(path);
        Vec::new()
    }

    /// Counts that a row of the palette was chosen, so that it comes first later.
    pub(super) fn count_use(&mut self, row: &ListRow) {
        if matches!(row.choice, Choice::History(_) | Choice::File(_)) {
            return;
        }
        *self.chosen.entry(row.text.clone()).or_default() += 1;
        keep_most(&mut self.chosen, &row.text);
    }
}

/// The beginning of a message as one row of a list.
pub(super) fn one_row(message: &str) -> String {
    message.chars().take(MESSAGE).collect::<String>().replace('\n', " ")
}

/// The settings in the TOML examples of a page. Each comes from a line `key = value  # explanation`; the name of its table
/// stands before the key.
fn settings(page: &str) -> Vec<ListRow> {
    let mut rows: Vec<ListRow> = Vec::new();
    let (mut inside, mut table) = (false, String::new());
    for line in page.lines() {
        let (code, meaning) = line.split_once('#').map_or((line, ""), |(code, said)| (code, said));
        let (code, meaning) = (code.trim(), meaning.trim());
        if line.starts_with("```") {
            (inside, table) = (line == "```toml", String::new());
        } else if !inside {
            continue;
        } else if let Some(name) = code.strip_prefix('[') {
            table = format!("{}.", name.trim_start_matches('[').trim_end_matches(']'));
        } else if let Some((key, value)) = code.split_once('=') {
            let (key, value) = (key.trim(), value.trim());
            let help = format!("setting, such as {value}: {meaning}");
            rows.push(ListRow {
                text: format!("{table}{key}"),
                help: help.trim_end_matches([':', ' ']).to_owned(),
                choice: Choice::Setting(format!("{table}{key}")),
            });
        } else if let Some(row) = rows.last_mut().filter(|_| code.is_empty() && !meaning.is_empty())
        {
            row.help.push(' ');
            row.help.push_str(meaning);
        }
    }
    rows
}

/// Removes the rows that were chosen least often, until few enough are left. The newest one stays.
fn keep_most(chosen: &mut BTreeMap<String, u32>, newest: &str) {
    while chosen.len() > MAX_CHOSEN {
        let others = chosen.iter().filter(|(text, _)| *text != newest);
        let Some((least, _)) = others.min_by_key(|(_, uses)| **uses) else { break };
        let least = least.clone();
        chosen.remove(&least);
    }
}

/// Joins the counts of two screens of the same workspace: of each row the larger one.
pub(super) fn most(
    mut own: BTreeMap<String, u32>,
    other: BTreeMap<String, u32>,
) -> BTreeMap<String, u32> {
    for (text, uses) in other {
        let count = own.entry(text).or_default();
        *count = uses.max(*count);
    }
    keep_most(&mut own, "");
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_of_the_page_is_a_row_with_its_table_and_its_meaning() {
        let rows =
            settings("x = 1\n```toml\na = 1 # one\n[b]\nc = [2] # two\n   # lines\n```\ny = 2\n");
        let rows: Vec<(&str, &str)> = rows.iter().map(|row| (&*row.text, &*row.help)).collect();
        let expected =
            [("a", "setting, such as 1: one"), ("b.c", "setting, such as [2]: two lines")];
        assert_eq!(rows, expected);
        let real = settings(SETTINGS);
        let turns = real.iter().find(|row| row.text == "limits.max_turns").unwrap();
        assert!(turns.help.contains("model requests"), "{}", turns.help);
        assert_eq!(turns.choice, Choice::Setting("limits.max_turns".into()));
    }
}
