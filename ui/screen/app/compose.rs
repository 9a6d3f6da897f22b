//! Keys and pastes in the composer.

use crate::screen::app::{App, Asked, Effect, Focus, Layer, Link};
use crate::screen::keys::{Action, Binding, Context, pressed};
use crate::screen::notice::Kind;
use crate::screen::pane::actionbar::Purpose;
use crate::screen::pane::composer::{Files, Message, dropped_images, pasted};
use crate::screen::pick_list::PickList;
use crate::verb::words;
use crossterm::event::{KeyEvent, KeyEventKind};
use std::path::Path;
use yoi::llm::rehearsal::{TOUR_LINES, plays_tour};
use yoi::protocol::{Completion, CompletionKind, Method, PodName};
use yoi::scope::{Permission, Rule};
use yoi::text::SafeText;

impl App {
    pub(super) fn composer_action(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Send if self.link == Link::Ended => self.bring_back(),
            Action::Send => self.enter(),
            Action::Up => self.composer_up(),
            Action::Down => {
                self.composer.down();
                Vec::new()
            }
            Action::CommandLine if !self.has_own_draft() => self.open_line(""),
            Action::CommandLine => self.type_in(':'),
            Action::CompleteFile => {
                self.forget_requests();
                self.composer.insert('@');
                self.composer.files = Files::at(self.composer.draft());
                Vec::new()
            }
            Action::EditOutside => vec![Effect::Edit(self.composer.draft().whole_text())],
            Action::Leave if self.has_own_draft() => {
                let before = self.composer.draft().message().text;
                self.composer.edit(Action::DeleteNext);
                if self.composer.draft().message().text == before {
                    let text = "the line is not empty: :quit leaves, and keeps what is typed";
                    return self.say(Kind::Info, text);
                }
                self.follow_files();
                Vec::new()
            }
            other if self.composer.edit(other) => {
                self.forget_requests();
                self.follow_files();
                Vec::new()
            }
            other => self.everywhere(other),
        }
    }

    /// Whether the person wrote what is in the draft. The line that the tour put there does not count until the person
    /// changes it, so that the keys of an empty line work.
    pub(super) fn has_own_draft(&self) -> bool {
        let is_tour = || self.info().is_some_and(plays_tour);
        let is_its_line =
            || TOUR_LINES.contains(&self.composer.draft().message().text.as_str()) && is_tour();
        !self.composer.is_empty() && !is_its_line()
    }

    fn type_in(&mut self, c: char) -> Vec<Effect> {
        self.forget_requests();
        self.composer.insert(c);
        self.follow_files();
        Vec::new()
    }

    /// Up in an empty composer takes the last queued message back; otherwise it goes up a line or to an
    /// older message.
    fn composer_up(&mut self) -> Vec<Effect> {
        let last = self.info().and_then(|info| {
            let waits = info.queue.iter().rfind(|queued| !queued.enters);
            Some((info.name.clone(), waits.or(info.queue.last())?.id.clone()))
        });
        match last.filter(|_| self.composer.is_empty()) {
            Some((pod, id)) => self.unqueue(&pod, &id),
            None => {
                self.composer.up();
                Vec::new()
            }
        }
    }

    /// Inserts pasted text. It is never read as a verb, and its newlines never send or run anything.
    pub(super) fn paste(&mut self, text: &str) -> Vec<Effect> {
        self.forget_requests();
        if let Some(Layer::Confirm(_)) = self.layers.top() {
            self.layers.disturbed(self.now);
            self.composer.history.keep(&Message::plain(&pasted(text)), self.now);
            let said = "what you pasted is in the history · {composer history-search} finds it";
            return self.say(Kind::Info, self.keymap.with_keys(said));
        }
        match self.layers.pop() {
            // Handled above.
            Some(Layer::Confirm(_)) => {}
            Some(Layer::Prompt(mut prompt)) => {
                prompt.input.insert(text);
                prompt.changed(&self.sources());
                self.prompt_follows(&prompt);
                self.layers.put_back(Layer::Prompt(prompt));
            }
            Some(Layer::List(mut list)) => {
                list.insert(text);
                self.layers.put_back(Layer::List(list));
            }
            Some(Layer::Key(mut line)) => {
                line.insert(text);
                self.layers.put_back(Layer::Key(line));
            }
            None => {
                self.leader = false;
                self.focus = Focus::Composer;
                return self.paste_into_draft(text);
            }
        }
        Vec::new()
    }

    /// Inserts pasted text into the draft. The paths of images are names of files, and the host says whether it can
    /// attach them.
    fn paste_into_draft(&mut self, text: &str) -> Vec<Effect> {
        let images = dropped_images(text);
        if let Some(path) = images.iter().find(|path| *SafeText::line(path.as_str()) != ***path) {
            self.composer.paste(&SafeText::line(text.trim()));
            let shown = SafeText::line(path.as_str());
            let why = "its name has hidden characters: rename it";
            return self.say(Kind::Warned, format!("not attached: {shown} · {why}"));
        }
        if images.is_empty() {
            self.composer.paste(text);
        }
        let pod = self.info().map(|info| info.name.clone());
        let look_up = |path: String| {
            self.composer.write_file(&path);
            find_files(pod.clone(), path.clone(), Asked::Dropped(pod.clone(), path))
        };
        images.into_iter().map(look_up).collect()
    }

    /// Makes the path of a dropped image plain text again where the Pod could not attach it, and says why.
    pub(super) fn dropped(
        &mut self,
        pod: Option<&PodName>,
        path: &str,
        found: &[Completion],
    ) -> Vec<Effect> {
        let is_it = |file: &Completion| file.value == path && !file.is_dir;
        if found.iter().any(is_it) || !self.composer.unname_file(pod, path) {
            return Vec::new();
        }
        let info = pod.and_then(|pod| self.family.get(pod));
        let cwd = info.map_or(&self.setup.cwd, |info| &info.cwd);
        let own_scope = [Rule::new(cwd.clone(), Permission::Read)];
        let scope = info.map_or(&own_scope[..], |info| &info.scope);
        let who = pod.map_or("a new Pod", PodName::as_str);
        let why = match scope.iter().any(|rule| rule.covers(Path::new(path))) {
            true => format!("{who} finds no such file that it may read"),
            false => format!(
                "path is outside allowed scope of {who} · copy the image below {}",
                cwd.display()
            ),
        };
        self.say(Kind::Warned, format!("not attached: {path}: {why}"))
    }

    pub(super) fn edited(&mut self, text: Result<String, String>) -> Vec<Effect> {
        match text {
            Ok(text) => {
                self.composer.edited(&text);
                Vec::new()
            }
            Err(why) => self.say(Kind::Refused, why),
        }
    }

    /// Updates the sheet with names after the text changed; closes it when the word is no `@word` any more.
    pub(super) fn follow_files(&mut self) {
        let Some(open) = self.composer.files.take() else { return };
        let now = Files::at(self.composer.draft());
        self.composer.files = now.map(|now| open.with_prefix(now.prefix));
    }

    /// Asks the host for files that match the text behind `@` or in the palette, if a request is due.
    pub(super) fn look_for_files(&mut self) -> Option<Effect> {
        let current = self.info().map(|info| info.name.clone());
        let of_palette = self.layers.palette_mut().and_then(PickList::wants_files);
        let (prefix, asked) = match of_palette {
            Some(query) => (query.clone(), Asked::FilesLike(query)),
            None => {
                if let Some((pod, prefix)) = self.mentioned() {
                    self.mentions = Some((prefix.clone(), Vec::new()));
                    let asked = Asked::FilesMentioned(prefix.clone());
                    return Some(find_files(pod, prefix, asked));
                }
                let prefix = self.composer.files.as_mut()?.wants()?;
                (prefix.clone(), Asked::Files(prefix))
            }
        };
        Some(find_files(current, prefix, asked))
    }

    /// The `@word` of a line whose files were not asked for yet, and the Pod that gets the text.
    fn mentioned(&self) -> Option<(Option<PodName>, String)> {
        let Some(Layer::Prompt(prompt)) = self.layers.top() else { return None };
        let prefix = prompt.mention()?;
        if self.mentions.as_ref().is_some_and(|(known, _)| known == prefix) {
            return None;
        }
        let named = match prompt.purpose {
            Purpose::Verb => words::first(words::first(prompt.input.text()).1).0,
            Purpose::Find
            | Purpose::Filter
            | Purpose::Deny
            | Purpose::Rule
            | Purpose::Answer
            | Purpose::Message => "",
        };
        let named = PodName::parse(named).ok().filter(|name| self.family.get(name).is_some());
        let pod = named.or_else(|| self.info().map(|info| info.name.clone()));
        Some((pod, prefix.to_owned()))
    }

    /// Takes over the files that an `@word` of a line may become.
    pub(super) fn files_mentioned(&mut self, prefix: String, found: Vec<Completion>) {
        self.mentions = Some((prefix, found));
        let sources = self.sources();
        if let Some(prompt) = self.layers.prompt_mut() {
            prompt.complete(&sources);
        }
    }

    /// Handles a key while the sheet is open; `None` if the composer gets the key.
    pub(super) fn files_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let binding = self.keymap.get(Context::Line, pressed(key)).cloned();
        let Some(Binding::Do(action)) = binding else { return None };
        let files = self.composer.files.as_mut()?;
        match action {
            Action::Up | Action::CompleteBack => files.step(-1),
            Action::Down => files.step(1),
            Action::Choose | Action::Complete if files.found.is_empty() => return None,
            Action::Choose | Action::Complete if key.kind == KeyEventKind::Press => {
                self.composer.accept_file();
            }
            _ => return None,
        }
        Some(Vec::new())
    }
}

/// Requests the files that an `@word` may become: of a Pod, or of the directory in which one would be made.
fn find_files(pod: Option<PodName>, prefix: String, asked: Asked) -> Effect {
    let kind = CompletionKind::File;
    match pod {
        Some(_) => Effect::Call { pod, method: Method::ListCompletions { kind, prefix }, asked },
        None => Effect::FindFiles(prefix, asked),
    }
}
