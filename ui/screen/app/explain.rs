//! The key of `:explain`, and the menu of verbs that fit a Pod.

use crate::screen::app::peers::CANNOT_BE_TYPED;
use crate::screen::app::{App, Effect, Focus, Layer};
use crate::screen::notice::Kind;
use crate::screen::pick_list::{Choice, ListRow, PickList};
use crate::verb::{Way, find};
use std::cmp::Reverse;
use yoi::client::family::Agent;
use yoi::protocol::mesh::AgentKind;
use yoi::protocol::{PodInfo, PodName, State};
use yoi::text::verb_word;

impl App {
    /// The Pod that a key on a row acts on.
    pub(super) fn row_pod(&self) -> Option<PodName> {
        match self.focus {
            Focus::Peers => self.chosen_peer().cloned(),
            Focus::Tree
            | Focus::Composer
            | Focus::Transcript
            | Focus::Beside
            | Focus::Inbox
            | Focus::Page => self.selected().cloned(),
        }
    }

    pub(super) fn explain_row(&mut self) -> Vec<Effect> {
        if let Some(sentence) = self.chosen_agent().map(about_agent) {
            return self.say(Kind::Info, sentence);
        }
        match self.row_pod() {
            Some(pod) => self.carry_out(&format!("explain {pod}"), Way::Key),
            None => self.carry_out("explain", Way::Key),
        }
    }

    /// Opens a menu of the verbs that fit the state of the Pod in the row; choosing one writes it into
    /// the command line.
    pub(super) fn open_menu(&mut self) -> Vec<Effect> {
        if !self.marked().is_empty() {
            return self.open_marks_menu();
        }
        if self.chosen_agent().is_some() {
            return self.open_agent_menu();
        }
        let Some(info) = self.row_pod().and_then(|name| self.family.get(&name).cloned()) else {
            return self.say(Kind::Info, "there is no Pod here");
        };
        let has_children = self.family.children(&info.name).next().is_some();
        let mut lines = possible(&info, has_children);
        if self.selected() == Some(&info.name) {
            lines.push(("peer ".into(), "make it and another Pod peers"));
            lines.push(("fork ".into(), "make a new Pod with its history"));
        } else {
            lines.push((format!("peer {}", info.name), "make it and the selected Pod peers"));
            lines.push((format!("unpeer {}", info.name), "end the peering with it"));
        }
        self.open_verbs(&format!("{}: what can be done now", info.name), lines)
    }

    fn open_agent_menu(&mut self) -> Vec<Effect> {
        let Some(agent) = self.chosen_agent() else { return Vec::new() };
        let Some(name) = agent.typed().map(|name| verb_word(name).into_owned()) else {
            return self.say(Kind::Info, CANNOT_BE_TYPED);
        };
        let block = match agent.blocked {
            true => (format!("block {name} --end"), "take its messages again"),
            false => (format!("block {name}"), "take none of its messages"),
        };
        let lines = vec![(format!("send {name} "), "send it a message"), block];
        self.open_verbs(&format!("{name}: what can be done now"), lines)
    }

    /// Opens a menu of the verbs that fit some of the marked Pods, each with the Pods that it fits.
    fn open_marks_menu(&mut self) -> Vec<Effect> {
        let mut lines: Vec<(String, &'static str)> = Vec::new();
        let marked = self.marked().to_vec();
        for info in marked.iter().filter_map(|name| self.family.get(name)) {
            for (line, help) in possible(info, false) {
                let Some(verb) = line.strip_suffix(info.name.as_str()).map(str::trim_end) else {
                    continue;
                };
                if find(verb).is_none_or(|verb| !verb.takes_several()) {
                    continue;
                }
                match lines.iter_mut().find(|(line, _)| line.split(' ').next() == Some(verb)) {
                    Some((line, _)) => *line = format!("{line} {}", info.name),
                    None => lines.push((line, help)),
                }
            }
        }
        // The verb for the most Pods comes first; `:compact`, which costs a request to the model, comes last.
        let pods = |line: &str| line.split(' ').count();
        lines.sort_by_key(|(line, _)| (line.starts_with("compact "), Reverse(pods(line))));
        let title = format!("{} marked: what can be done now", marked.len());
        self.open_verbs(&title, lines)
    }

    fn open_verbs(&mut self, title: &str, lines: Vec<(String, &'static str)>) -> Vec<Effect> {
        let row = |(line, help): (String, &str)| ListRow {
            text: format!(":{line}"),
            help: help.to_owned(),
            choice: Choice::Prefill(line),
        };
        let rows = lines.into_iter().map(row).collect();
        self.open_layer(Layer::List(PickList::new(title, rows)))
    }
}

/// The kind of an agent, and the meaning of its `received`.
fn about_agent(agent: &Agent) -> String {
    let name = &agent.shown;
    let what = match agent.kind {
        AgentKind::Pod | AgentKind::Yoi => {
            format!(
                "{name} is an agent of another yoi: `received` means that it has kept a message"
            )
        }
        AgentKind::Agent | AgentKind::Unknown => format!(
            "{name} is an agent of another program: `received` means that it was handed a message, not that it kept it"
        ),
    };
    if agent.blocked {
        format!("{what} · it is blocked: no Pod accepts its messages")
    } else {
        what
    }
}

/// The command lines that fit the state of a Pod, each with its help.
pub(super) fn possible(info: &PodInfo, has_children: bool) -> Vec<(String, &'static str)> {
    let name = &info.name;
    let line = |verb: &str| format!("{verb} {name}");
    let mut lines =
        vec![(line("open"), "go to it"), (format!("send {name} "), "send it a message")];
    match info.state {
        State::Running | State::NeedsYou => {
            lines.push((line("pause"), "interrupt the run so that it can continue"));
            lines.push((line("cancel"), "drop the run"));
        }
        State::Paused => {
            lines.push((line("resume"), "continue the run"));
            lines.push((line("cancel"), "drop the run"));
        }
        State::Failed => lines.push((line("resume"), "try the run again")),
        State::Idle => lines.push((line("compact"), "shorten the history")),
        State::Stopped | State::Damaged | State::Unknown => {}
    }
    if info.state.can_be_restored() {
        lines.push((line("restore"), "bring it back"));
        lines.push((format!("restore {name} --plan"), "say what that would do"));
    }
    if info.state.is_at_rest() {
        lines.push((line("rm"), "delete it and its transcript"));
    }
    if !info.state.is_at_rest() {
        lines.push((line("stop"), "stop it"));
        if has_children {
            lines.push((format!("stop {name} --tree"), "stop it and everything below it"));
        }
    } else if has_children && info.state.can_be_restored() {
        lines.push((format!("restore {name} --tree"), "bring it and everything below it back"));
    }
    lines.push((line("explain"), "say why it is in its state"));
    lines
}
