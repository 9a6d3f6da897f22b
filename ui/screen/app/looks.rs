//! How the screen looks, and what the terminal says of itself.

use crate::screen::app::{App, Effect, LoadFor};
use crate::screen::keys::{self, Keymap};
use crate::screen::notice::Kind;
use crate::screen::pick_list::{Choice, ListRow};
use crate::screen::reply::Reply;
use crate::theme::{AUTO, Ground, Theme, over};

/// The names that the person chose here or on an earlier screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    pub theme: Option<String>,
    pub keymap: Option<String>,
}

/// The looks and keys that were asked for, and what the terminal can do.
#[derive(Clone, Debug, Default)]
pub struct Looks {
    /// The name of the theme that was asked for; it may be [`AUTO`].
    pub theme: String,
    /// As the terminal named it.
    pub ground: Ground,
    /// What was wrong in the file of the theme when it was read last.
    pub wrong_theme: Vec<String>,
    /// The built-in keymap in force.
    pub keymap: String,
    /// What was wrong in the person's keymap when it was read last.
    pub wrong_keymap: Vec<String>,
    pub chosen: Chosen,
    /// Whether the terminal tells all chords apart; `None` while it has not replied.
    pub chords: Option<bool>,
}

impl App {
    pub(super) fn terminal_replied(&mut self, reply: Reply) -> Vec<Effect> {
        match reply {
            Reply::Records(states) => self.takes_records(states),
            Reply::Chords => self.looks.chords = Some(true),
            Reply::Attributes => drop(self.looks.chords.get_or_insert(false)),
            Reply::Ground(ground) => {
                let changed = std::mem::replace(&mut self.looks.ground, ground) != ground;
                if changed && self.looks.theme == AUTO {
                    return vec![Effect::LoadTheme(LoadFor::Ground)];
                }
            }
        }
        Vec::new()
    }

    /// The name of the theme that is loaded for this reason.
    pub fn wanted_theme<'a>(&'a self, load_for: &'a LoadFor) -> &'a str {
        over(load_for.name(&self.looks.theme), self.looks.ground)
    }

    pub(super) fn theme_loaded(
        &mut self,
        load_for: LoadFor,
        theme: Theme,
        wrong: Vec<String>,
    ) -> Vec<Effect> {
        let is_new = wrong != self.looks.wrong_theme;
        self.looks.wrong_theme.clone_from(&wrong);
        let fits = wrong.is_empty();
        match load_for {
            LoadFor::Choice(name) => {
                self.theme = theme;
                self.looks.theme.clone_from(&name);
                self.looks.chosen.theme = Some(name.clone());
                if fits {
                    return self.say(Kind::Done, format!("theme {name}"));
                }
            }
            LoadFor::Ground => self.theme = theme,
            // A file with a mistake changes nothing.
            LoadFor::Change if fits && self.theme != theme => {
                let text = format!("theme {}: its file was read again", theme.name);
                self.theme = theme;
                return self.say(Kind::Info, text);
            }
            LoadFor::Change if !is_new => return Vec::new(),
            LoadFor::Change => {}
        }
        self.warn_of_all(wrong)
    }

    fn warn_of_all(&mut self, problems: Vec<String>) -> Vec<Effect> {
        for problem in problems {
            self.notices.say(Kind::Warned, problem, self.now);
        }
        Vec::new()
    }

    /// The built-in keymap that is loaded for this reason.
    pub fn wanted_keymap<'a>(&'a self, load_for: &'a LoadFor) -> &'a str {
        load_for.name(&self.looks.keymap)
    }

    /// Chooses a keymap by its name.
    pub(super) fn choose_keymap(&mut self, name: String) -> Vec<Effect> {
        if keys::names().any(|known| known == name) {
            return vec![Effect::LoadKeymap(LoadFor::Choice(name))];
        }
        let names = keys::names().collect::<Vec<_>>().join(", ");
        self.say(Kind::Refused, format!("no keymap named {name}; there are {names}"))
    }

    pub(super) fn keymap_loaded(
        &mut self,
        load_for: LoadFor,
        keymap: Keymap,
        wrong: Vec<String>,
    ) -> Vec<Effect> {
        let is_new = wrong != self.looks.wrong_keymap;
        self.looks.wrong_keymap.clone_from(&wrong);
        let fits = wrong.is_empty();
        match load_for {
            LoadFor::Choice(name) => {
                self.keymap = keymap;
                self.looks.keymap.clone_from(&name);
                self.looks.chosen.keymap = Some(name.clone());
                if fits {
                    let text = format!("keymap {name}: {{leader keys}} lists every key");
                    return self.say(Kind::Done, self.keymap.with_keys(&text));
                }
            }
            LoadFor::Change if fits && self.keymap != keymap => {
                self.keymap = keymap;
                return self.say(Kind::Info, "the keymap was read again");
            }
            LoadFor::Change if is_new => {}
            LoadFor::Change | LoadFor::Ground => return Vec::new(),
        }
        self.warn_of_all(wrong)
    }

    /// Opens the list of keymaps.
    pub(super) fn list_keymaps(&mut self) -> Vec<Effect> {
        let row_of = |name: &str| {
            let about = match name {
                "vim" => "panes and pages as in vim; the line keeps its keys",
                _ => "the usual keys",
            };
            row("keymap", name, about, name == self.looks.keymap)
        };
        let rows = keys::names().map(row_of).collect();
        self.open("keymap", rows)
    }

    /// Opens the list of themes.
    pub(super) fn list_themes(&mut self) -> Vec<Effect> {
        let row_of = |name: &String| row("theme", name, about(name), *name == self.looks.theme);
        let rows = self.setup.themes.iter().map(row_of).collect();
        self.open("theme", rows)
    }
}

/// A row that runs a verb with this name.
fn row(verb: &str, name: &str, about: &str, is_in_use: bool) -> ListRow {
    let said = [about, if is_in_use { "in use" } else { "" }];
    let said: Vec<&str> = said.into_iter().filter(|text| !text.is_empty()).collect();
    let choice = Choice::Line(format!("{verb} {name}"));
    ListRow { text: name.to_owned(), help: said.join(" · "), choice }
}

/// What a list says of a built-in theme.
fn about(theme: &str) -> &'static str {
    match theme {
        AUTO => "night or day, to match the background of the terminal",
        "night" => "dark",
        "day" => "light",
        "high-contrast" => "dark; all text with a contrast of 7 to 1 or more",
        "terminal" => "the colours and the background of the terminal",
        "mono" => "no colours",
        _ => "",
    }
}
