//! Running a line: verbs that are the screen's own, and those that are calls to the host.

use crate::app::{App, Asked, Confirm, Effect, Layer, RequestToken};
use crate::command::{self, Call, Verb};
use crate::notice::Kind;
use crate::pane::actionbar::{Prompt, Purpose};
use crate::pane::transcript::Transcript;
use crate::run::ExitReason;
use std::path::Path;
use yoi::protocol::{Method, PodInfo, PodName, RewindTarget, State};

impl App {
    /// Opens the command line with `text` in it.
    pub(super) fn open_line(&mut self, text: &str) -> Vec<Effect> {
        let row = self.row_pod().map_or(String::new(), |pod| pod.to_string());
        // A verb that takes several Pods means those that are marked.
        let named = match self.meaning_marks(&text.replace("{pod}", "")) {
            Some(_) => self.marked().iter().map(PodName::as_str).collect::<Vec<_>>().join(" "),
            None => row,
        };
        let entry = self.transcript().and_then(Transcript::entry);
        let entry = entry.map_or(String::new(), |entry| entry.to_string());
        let text = text.replace("{pod}", &named).replace("{entry}", &entry);
        let prompt = Prompt::new(Purpose::Verb, &text, &self.sources());
        self.open_layer(Layer::Prompt(prompt))
    }

    /// Enter in the command line. A line that cannot be run stays there.
    pub(super) fn enter_line(&mut self, prompt: Prompt) -> Vec<Effect> {
        let text = prompt.input.text().trim().trim_start_matches(':').to_owned();
        if text.is_empty() {
            self.closed();
            return Vec::new();
        }
        let line = command::complete_verb(&text).unwrap_or(text);
        if let Err(why) = command::read_all(&line) {
            let sources = self.sources();
            let mut prompt = Prompt::new(Purpose::Verb, &line, &sources);
            prompt.wrong = Some(why);
            self.layers.put_back(Layer::Prompt(prompt));
            return Vec::new();
        }
        self.run_line(&line)
    }

    /// Runs a line, without its colon.
    pub(super) fn run_line(&mut self, line: &str) -> Vec<Effect> {
        self.lines.retain(|before| before != line);
        self.lines.insert(0, line.to_owned());
        let marks = self.meaning_marks(line);
        match command::read_all(marks.as_deref().unwrap_or(line)) {
            Ok(verbs) if verbs.len() > 1 || marks.is_some() => self.together(verbs),
            Ok(verbs) => verbs.into_iter().flat_map(|verb| self.run(verb)).collect(),
            Err(why) => self.say(Kind::Refused, why),
        }
    }

    /// Carries a verb out.
    pub(super) fn run(&mut self, verb: Verb) -> Vec<Effect> {
        match &verb {
            Verb::Open(pod) => return self.make_current(pod),
            Verb::Model(None) => return self.say_model(),
            Verb::Model(Some(model)) if self.current.is_none() => {
                return self.choose_model(model.clone());
            }
            Verb::Theme(name) => return vec![Effect::LoadTheme(name.clone())],
            Verb::Remove(pod) => return self.ask_remove(std::slice::from_ref(pod)),
            Verb::Rewind(turn) => return self.ask_rewind_targets(*turn),
            Verb::Stop { pod, breadth } => return self.stop(pod.as_ref(), *breadth),
            Verb::Restore { pod, breadth, step } => {
                return self.plan(pod.as_ref(), *breadth, *step);
            }
            Verb::Reclaim(path) => return self.reclaim(path),
            Verb::Inbox => return self.focus_inbox(),
            Verb::Explain(pod) => return self.explain(pod.as_ref()),
            Verb::Pin { slot, pod } => return self.pin_verb(*slot, pod.as_ref()),
            Verb::Split(pod) => return self.split(pod.as_ref()),
            Verb::Zoom => return self.toggle_zoom(),
            Verb::Notices => return self.list_notices(),
            Verb::Tour => return vec![Effect::Tour(self.request_token())],
            Verb::Redraw => return vec![Effect::Redraw],
            Verb::Keys => return self.list_keys(),
            Verb::Help(about) => return self.list_help(about.as_deref()),
            Verb::Quit => return self.leave(),
            _ => {}
        }
        match command::call(&verb, self.here()) {
            Ok(Call::Host { pod, method }) => {
                self.marks_used(&verb);
                let about = pod.clone().or_else(|| self.selected().cloned());
                let asked = Asked::Verb(verb, about, self.request_token());
                vec![Effect::Call { pod, method, asked }]
            }
            Ok(Call::Local) => Vec::new(),
            Err(why) => self.say(Kind::Refused, why),
        }
    }

    /// Takes back from whoever lent there: the selected Pod when it did, else the one that did.
    fn reclaim(&mut self, path: &Path) -> Vec<Effect> {
        let path = self.setup.cwd.join(path);
        let at = |info: &&PodInfo| {
            let mut targets = info.lent.iter().map(|lent| &lent.rule.target);
            targets.any(|target| target.starts_with(&path) || path.starts_with(target))
        };
        let selected = self.selected().and_then(|name| self.family.get(name));
        let lender = selected.filter(at).or_else(|| self.family.all().iter().find(at));
        let Some(pod) = lender.or(selected).map(|info| info.name.clone()) else {
            return self.say(Kind::Refused, "no Pod is selected");
        };
        let asked =
            Asked::Verb(Verb::Reclaim(path.clone()), Some(pod.clone()), self.request_token());
        vec![Effect::Call { pod: Some(pod), method: Method::Reclaim { path }, asked }]
    }

    fn say_model(&mut self) -> Vec<Effect> {
        let text = match self.selected().and_then(|name| self.family.get(name)) {
            Some(info) if info.model.is_empty() => format!("{} has no model", info.name),
            Some(info) => format!("{} uses {}: {}", info.name, info.model, info.model_why),
            None => match &self.model {
                Some(model) => format!("new Pods use {model}"),
                None => "new Pods use what the configuration and the keys here offer".into(),
            },
        };
        self.say(Kind::Told, text)
    }

    fn choose_model(&mut self, model: String) -> Vec<Effect> {
        let text = format!("new Pods use {model}");
        self.model = Some(model);
        self.say(Kind::Done, text)
    }

    fn ask_rewind_targets(&mut self, turn: Option<usize>) -> Vec<Effect> {
        let Some(pod) = self.selected().cloned() else {
            return self.say(Kind::Refused, "no Pod is selected");
        };
        let asked = Asked::RewindTargets(pod.clone(), turn, self.request_token());
        vec![Effect::Call { pod: Some(pod), method: Method::ListRewindTargets, asked }]
    }

    /// Goes back, after asking when something cannot be undone by it.
    pub(super) fn rewind(
        &mut self,
        pod: PodName,
        target: RewindTarget,
        token: &RequestToken,
    ) -> Vec<Effect> {
        if !target.eligible {
            let why = target.disabled_reason.unwrap_or_else(|| "one cannot go back there".into());
            return self.say(Kind::Refused, why);
        }
        let Some(warning) = target.warning.clone() else { return self.rewind_to(&pod, &target) };
        let late = format!("not rewound: :rewind {} on {pod} asks again", target.turn_index);
        let confirm = Confirm::Rewind { pod, target: Box::new(target), warning };
        self.open_for_reply(token, Layer::Confirm(confirm), late)
    }

    pub(super) fn rewind_to(&mut self, pod: &PodName, target: &RewindTarget) -> Vec<Effect> {
        let method = Method::Rewind {
            target: target.id,
            expected_head_entries: target.expected_head_entries,
        };
        let asked = Asked::Verb(Verb::Rewind(None), Some(pod.clone()), self.request_token());
        vec![Effect::Call { pod: Some(pod.clone()), method, asked }]
    }

    /// Leaves the screen; asks once while a turn runs.
    pub(super) fn leave(&mut self) -> Vec<Effect> {
        let working: Vec<PodName> = self.family.running().map(|info| info.name.clone()).collect();
        if working.is_empty() || self.link != crate::app::Link::Up {
            return self.leave_now();
        }
        self.open_layer(Layer::Confirm(Confirm::Leave { working }))
    }

    pub(super) fn leave_now(&mut self) -> Vec<Effect> {
        vec![Effect::Quit(ExitReason::Quit { farewell: self.farewell() })]
    }

    /// What the shell shows afterwards: what goes on, how to come back, how to end it.
    fn farewell(&self) -> Vec<String> {
        let live = |info: &&PodInfo| info.state != State::Stopped;
        let pods: Vec<_> = self.family.all().iter().filter(live).collect();
        let Some(one) = self.info().filter(live).or(pods.first().copied()) else {
            return Vec::new();
        };
        let verb = match (pods.len(), self.setup.reconnects) {
            (1, true) => "stays",
            (_, true) => "stay",
            (1, false) => "is kept",
            (_, false) => "are kept",
        };
        let who = match pods.len() {
            1 => one.name.to_string(),
            n => format!("{n} Pods"),
        };
        if !self.setup.reconnects {
            return vec![format!("{who} {verb}; yoi shows it again")];
        }
        let working = match self.family.running().count() {
            0 => "nothing is running".to_owned(),
            1 => "1 turn goes on".to_owned(),
            n => format!("{n} turns go on"),
        };
        vec![
            format!("{who} {verb}; {working}"),
            format!("come back: yoi · end it: yoi stop {} · end all: yoi stop --all", one.name),
        ]
    }
}
