//! Carries out lines: sends messages, and drives the same dialogues of verbs as the dashboard.

use crate::console;
use crate::headless::exit::{Exit, Failure};
use crate::headless::line_client::{LineClient, View, stuck};
use crate::headless::run_tracker;
use crate::headless::{Unanswered, Work, lines, unseen};
use crate::rows;
use crate::start::Opening;
use crate::verb::dialogue::{KeyReply, KeyStep};
use crate::verb::{
    self, Action, Confirm, Dialogue, End, Known, Reply, Request, Said, Unasked, Way, Why,
};
use crate::wording::lines::text_of;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use tokio::sync::mpsc;
use yoi::config::{Catalogue, Secret, Settings, Workspace};
use yoi::protocol::method::NewPod;
use yoi::protocol::{Begun, Effort, Event, Method, PodInfo, PodName, Refusal, Segment, State};

/// The widest first column of a list, in characters.
const TABLE: usize = 48;

/// Whether there is more to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    GoOn,
    Leave,
}

/// Carries out lines for a current Pod.
pub struct LineRunner<'a> {
    pub opening: &'a Opening,
    pub work: &'a Work,
    /// The workspace that the working directory belongs to.
    workspace: PathBuf,
    current: Option<PodName>,
    /// Pods that were given work: the ends of their last runs decide the exit code. Each with its messages, or with
    /// none where its last work was something else.
    busy: BTreeMap<PodName, Vec<Begun>>,
    /// The model of new Pods.
    model: Option<String>,
    /// The effort of new Pods.
    effort: Option<Effort>,
    /// Pods that this environment was offered to.
    offered: BTreeSet<PodName>,
    /// Whether a person at a terminal is asked for confirmations.
    confirms: bool,
    /// Lines of standard input, once they are read.
    pub input: Option<mpsc::Receiver<std::io::Result<String>>>,
}

impl<'a> LineRunner<'a> {
    pub fn new(opening: &'a Opening, work: &'a Work) -> Self {
        Self {
            opening,
            work,
            workspace: Workspace::root_of(&work.cwd, &opening.env),
            current: None,
            busy: BTreeMap::new(),
            model: work.model.clone(),
            effort: work.effort,
            offered: BTreeSet::new(),
            confirms: std::io::stdin().is_terminal(),
            input: None,
        }
    }

    /// Confirmations are asked for and answered by these lines.
    #[cfg(test)]
    pub fn answered_by(self, input: mpsc::Receiver<std::io::Result<String>>) -> Self {
        Self { confirms: true, input: Some(input), ..self }
    }

    /// How approval requests are handled once standard input has ended.
    pub fn unanswered(&self) -> Unanswered {
        self.work.unanswered
    }

    /// One line of input: blank, a verb or a message.
    pub async fn take(&mut self, client: &mut LineClient, line: &str) -> Result<Next, Failure> {
        if line.trim().is_empty() {
            return Ok(Next::GoOn);
        }
        if line.starts_with(':') {
            return self.carry_out(client, line, Way::Input).await;
        }
        self.say(client, line).await?;
        Ok(Next::GoOn)
    }

    async fn say(&mut self, client: &mut LineClient, text: &str) -> Result<(), Failure> {
        let pod = self.current_pod(client).await?;
        client.take_charge_of(&pod);
        client.asked.insert(pod.clone());
        let input = vec![Segment::Text { content: text.to_owned() }];
        let reply = self.send(client, &pod, input).await?;
        if let Event::Accepted { queued: Some(_), .. } = &reply {
            client.printer.note(&verb::send::sentence(&pod, &reply));
        }
        self.note_begun(pod, &reply);
        Ok(())
    }

    fn note_begun(&mut self, pod: PodName, reply: &Event) {
        let messages = self.busy.entry(pod).or_default();
        match Begun::of(reply) {
            Some(message) => messages.push(message),
            None => messages.clear(),
        }
    }

    /// Sends a message, once a person has agreed to the Pod's model where that is needed.
    pub async fn send(
        &mut self,
        client: &mut LineClient,
        pod: &PodName,
        input: Vec<Segment>,
    ) -> Result<Event, Failure> {
        self.agree(client, pod).await?;
        let send = Method::Send { input, queue: true };
        match client.try_call(Some(pod), send.clone()).await? {
            Ok(reply) => Ok(reply),
            // The Pod found another model just now.
            Err(_) if client.find(pod)?.model_sends.is_some() => {
                self.agree(client, pod).await?;
                client.call(Some(pod), send).await
            }
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Asks whether text may go where the model of a Pod is, if no person chose the model or agreed.
    async fn agree(&mut self, client: &mut LineClient, pod: &PodName) -> Result<(), Failure> {
        let Ok(info) = client.find(pod) else { return Ok(()) };
        let Some(sends) = info.model_sends.clone() else { return Ok(()) };
        let (model, why) = (&info.model, &info.model_why);
        let question = format!("{model} ({why}) {sends}. You are asked once.");
        let enter = "send";
        let confirm = Confirm { question, about: Vec::new(), enter, unasked: Unasked::Asking };
        self.confirm(client, &confirm).await?;
        client.call(Some(pod), Method::Consent { sends }).await.map(drop)
    }

    /// The current Pod; at first the one named at the start, or a new one.
    async fn current_pod(&mut self, client: &mut LineClient) -> Result<PodName, Failure> {
        if let Some(pod) = &self.current {
            return Ok(pod.clone());
        }
        let pod = match &self.work.pod {
            Some(name) => client.find(name)?.name.clone(),
            None => self.create(client).await?,
        };
        self.go_to(client, &pod).await?;
        Ok(pod)
    }

    async fn create(&mut self, client: &mut LineClient) -> Result<PodName, Failure> {
        let new = NewPod {
            cwd: self.work.cwd.clone(),
            model: self.model.clone(),
            effort: self.effort,
            env: self.opening.env.clone(),
            ..NewPod::default()
        };
        match client.call(None, Method::New(new)).await? {
            Event::Created { info } => Ok(info.name),
            _ => Err(Failure::new(Exit::Failed, "the host did not say which pod it made")),
        }
    }

    async fn go_to(&mut self, client: &mut LineClient, pod: &PodName) -> Result<(), Failure> {
        let info = client.find(pod)?.clone();
        if info.state.can_be_restored() {
            client.call(None, Method::Restore { name: info.name.to_string() }).await?;
            client.printer.note(&format!("restored {}", info.name));
        }
        client.call(Some(&info.name), Method::Open { env: self.opening.env.clone() }).await?;
        // The host sent what a restore or an opening changed before its reply.
        let info = client.find(&info.name)?.clone();
        self.offered.insert(info.name.clone());
        client.printer.note(&model_in_words(&info));
        client.print_notes(&info);
        client.follow(&info.name).await?;
        client.view = View::All(Some(info.name.clone()));
        client.inbox.select(&info.name);
        self.current = Some(info.name);
        Ok(())
    }

    /// One verb, with or without its colon.
    pub async fn carry_out(
        &mut self,
        client: &mut LineClient,
        line: &str,
        way: Way,
    ) -> Result<Next, Failure> {
        if client.view == View::NoOne {
            client.view = View::All(None);
        }
        let line = verb::line::read(line, way).map_err(Failure::usage)?;
        if self.current.is_none() && self.work.pod.is_some() && line.verb.name != "quit" {
            self.current_pod(client).await?;
        }
        self.drive(client, line.dialogue, way).await
    }

    /// Carries out a verb of the shell for this Pod.
    pub async fn drive_for(
        &mut self,
        client: &mut LineClient,
        pod: PodName,
        dialogue: Box<dyn Dialogue>,
    ) -> Result<(), Failure> {
        self.current = Some(pod);
        self.drive(client, dialogue, Way::Shell).await.map(drop)
    }

    /// Carries a verb out, step by step.
    pub async fn drive(
        &mut self,
        client: &mut LineClient,
        mut dialogue: Box<dyn Dialogue>,
        way: Way,
    ) -> Result<Next, Failure> {
        let zone = jiff::tz::TimeZone::system();
        let mut last = None;
        // The question that the person has confirmed.
        let mut confirmed: Option<String> = None;
        let mut about = self.current.clone();
        let providers = self.providers();
        loop {
            let known = Known {
                family: &client.family,
                selected: self.current.as_ref(),
                pods_are_marked: false,
                numbers: Some(client.inbox.numbers()).filter(|_| way == Way::Input),
                cwd: &self.work.cwd,
                workspace: &self.workspace,
                model: self.model.as_deref(),
                providers: &providers,
                absence: None,
                effort: self.effort,
                env: &self.opening.env,
                now: yoi::protocol::now_ms(),
                zone: &zone,
                way,
                with_keys: &crate::screen::keys::with_default_keys,
                is_written: false,
            };
            let changed = confirmed.take().and_then(|question| {
                dialogue.confirmation_now(&known).filter(|now| now.question != question)
            });
            let next = match changed {
                Some(now) => verb::Next::Confirm(now),
                None => dialogue.next(&known, last.take()),
            };
            match next {
                verb::Next::Call(requests) => {
                    about = requests.first().and_then(|request| request.pod.clone()).or(about);
                    last = Some(Reply::Results(self.send_all(client, requests).await?));
                }
                verb::Next::Confirm(confirm) => {
                    self.confirm(client, &confirm).await?;
                    (last, confirmed) = (Some(Reply::Confirmed), Some(confirm.question));
                }
                verb::Next::Pick(pick) => {
                    client.printer.note(&pick.title);
                    client.printer.data(&table(&pick.rows));
                    return Ok(Next::GoOn);
                }
                verb::Next::Key(step) => last = Some(Reply::Key(self.key_step(step).await?)),
                verb::Next::End(end) => {
                    let end = End {
                        said: end.said.map(|text| {
                            known.worded(text, about.as_ref().filter(|_| way == Way::Shell))
                        }),
                        ..end
                    };
                    return self.end(client, end, way).await;
                }
            }
        }
    }

    /// The providers that are known by name.
    fn providers(&self) -> Vec<String> {
        let (settings, _) = Settings::load(&self.opening.dirs.config);
        Catalogue::with(&settings).providers.into_keys().collect()
    }

    async fn key_step(&self, step: KeyStep) -> Result<KeyReply, Failure> {
        let KeyStep::Type { provider, .. } = step else {
            return Ok(step.carry_out(&self.opening.dirs.config, &self.opening.env).await);
        };
        let typed = tokio::task::spawn_blocking(move || unseen::key(&provider)).await;
        let typed = typed.map_err(|error| Failure::new(Exit::Failed, error.to_string()))??;
        Ok(KeyReply::Typed(Secret::new(typed.trim())))
    }

    /// Sends requests one after the other. A refusal keeps none of the others from being sent.
    async fn send_all(
        &mut self,
        client: &mut LineClient,
        requests: Vec<Request>,
    ) -> Result<Vec<Result<Event, Refusal>>, Failure> {
        let mut results = Vec::new();
        for request in requests {
            let begins = request.pod.clone().filter(|_| request.begins_work());
            if let Some(pod) = request.pod.as_ref().filter(|_| request.needs_environment()) {
                self.offer_environment(client, pod).await?;
            }
            if let Some(pod) = &begins {
                self.agree(client, pod).await?;
                client.take_charge_of(pod);
                client.printer.before_request();
            }
            if let Method::Decide { approval, .. } = &request.method {
                client.inbox.decided(approval);
            }
            let result = client.try_call(request.pod.as_ref(), request.method).await?;
            if let (Some(pod), Ok(reply)) = (begins, &result) {
                self.note_begun(pod, reply);
            }
            results.push(result);
        }
        Ok(results)
    }

    /// Offers the environment to a Pod once: commands of the Pod inherit the environment of the program
    /// that gave it work.
    async fn offer_environment(
        &mut self,
        client: &mut LineClient,
        pod: &PodName,
    ) -> Result<(), Failure> {
        if self.offered.insert(pod.clone()) {
            let env = self.opening.env.clone();
            // If the Pod refuses it, the next request is refused with the same reason.
            let _ = client.try_call(Some(pod), Method::Open { env }).await?;
        }
        Ok(())
    }

    /// Asks `y/N` on a terminal; elsewhere only `--yes` confirms.
    async fn confirm(&mut self, client: &mut LineClient, confirm: &Confirm) -> Result<(), Failure> {
        if confirm.unasked == Unasked::Does || self.work.yes {
            return Ok(());
        }
        if !self.confirms {
            let message = format!("{}\nnot done: it needs --yes", confirm.question);
            return Err(Failure::new(Exit::Refused, message));
        }
        client.printer.note(&format!("{} [y/N]", confirm.question));
        let input = self.input.get_or_insert_with(lines::input);
        let answer = client.while_listening(input.recv()).await?;
        match answer {
            Some(Ok(line)) if console::agrees(&line) => Ok(()),
            _ => Err(Failure::new(Exit::StoppedShort, "not done")),
        }
    }

    /// Prints the result of a verb, and does what its end requires of this front end.
    async fn end(&mut self, client: &mut LineClient, end: End, way: Way) -> Result<Next, Failure> {
        match end.said {
            Said::Nothing => {}
            // The work may be over before the reply that it began is here, and its events said so in their order.
            Said::Done(_)
                if client.printer.has_followed()
                    && matches!(end.while_in, Some((_, State::Running))) => {}
            Said::Done(text) | Said::Info(text) => client.printer.note(&text),
            Said::Answer(text) => client.printer.data(&text),
            Said::Text { lines, .. } => client.printer.data(&text_of(&lines)),
            Said::Since(_, report) => {
                client.printer.note(&report.heading());
                client.printer.data(&report.lines().join("\n"));
            }
            Said::Refused(why, text) => return Err(Failure::new(Exit::from(why), text)),
        }
        match end.action {
            None | Some(Action::Prefill(_) | Action::TypeAgain | Action::CallByTerminal) => {}
            // A shell has no current Pod.
            Some(Action::GoTo(_) | Action::Created(_)) if way == Way::Shell => {}
            Some(Action::GoTo(pod)) => self.go_to(client, &pod).await?,
            Some(Action::Created(info)) => self.go_to(client, &info.name).await?,
            Some(Action::ModelOfNewPods(model)) => self.model = Some(model),
            Some(Action::EffortOfNewPods(effort)) => self.effort = effort,
            Some(Action::Inbox) => list_inbox(client, way),
            Some(Action::Quit) => return Ok(Next::Leave),
            Some(
                Action::Theme(_)
                | Action::Keymap(_)
                | Action::Pin { .. }
                | Action::Split(_)
                | Action::Zoom
                | Action::Queue
                | Action::Notices
                | Action::Tour
                | Action::Redraw
                | Action::Keys,
            ) => return Err(Failure::usage("this needs the screen")),
        }
        Ok(Next::GoOn)
    }

    /// Pauses what was begun here, after a signal.
    pub async fn pause(&mut self, client: &mut LineClient) {
        for (pod, messages) in &self.busy {
            if client.interrupt_messages(pod, messages).await {
                client.note_paused(pod);
            }
        }
    }

    /// Waits until every run that was started here has ended.
    pub async fn finish(&mut self, client: &mut LineClient) -> Result<(), Failure> {
        client.until_idle().await?;
        let mut result = Ok(());
        for pod in self.busy.keys() {
            let Ok(info) = client.find(pod) else { continue };
            let failure = stuck(info).or_else(|| without_model(info, self.opening));
            let ended = || match client.last_end(pod) {
                // The note about its last event gave the reason.
                Some(run_tracker::End { exit, why: Some(why) }) if client.printer.has_said(why) => {
                    Err(Failure::new(*exit, String::new()))
                }
                end => end.map_or(Ok(()), run_tracker::End::result).map_err(|failure| {
                    let message = client.spelled(&failure.message, Some(pod));
                    Failure { message, ..failure }
                }),
            };
            let ended = failure.map_or_else(ended, Err);
            result = result.and(ended);
        }
        result
    }
}

/// Which model a Pod uses, where that is, which key it gets, and why.
pub fn model_in_words(info: &PodInfo) -> String {
    if info.model.is_empty() {
        return format!("{}: no model", info.name);
    }
    let mut text = format!("{}: {}", info.name, info.model);
    if let (Some(address), Some(key)) = (&info.model_address, &info.model_key) {
        text += &format!(" at {address}, {key}");
    }
    if !info.model_why.is_empty() {
        text += &format!(", because {}", info.model_why);
    }
    if let (Some(effort), Some(why)) = (info.effort, &info.effort_unsent) {
        text += &format!("; no request carries effort {}: {why}", effort.name());
    }
    text
}

/// The sentence that nothing runs until the settings are corrected. The mistake was printed already, with its place.
pub fn uncorrected(what: impl fmt::Display, opening: &Opening) -> String {
    format!("{what}: correct {} first", opening.dirs.config.join("config.toml").display())
}

/// The failure of a program whose Pod has no model: the mistake because of which the settings name none, or the ways to
/// connect one.
pub fn without_model(info: &PodInfo, opening: &Opening) -> Option<Failure> {
    let pod = &info.name;
    let message = || {
        let (settings, _) = Settings::load(&opening.dirs.config);
        if !settings.unread.is_empty() {
            return uncorrected(format!("nothing was sent to {pod}"), opening);
        }
        let config = opening.dirs.config.join("config.toml");
        let ways = yoi::run::ways_to_connect_without_a_screen(&config);
        format!(
            "{pod} has no model, so nothing was sent; --model <provider>/<name> takes one\n\n{ways}"
        )
    };
    info.model.is_empty().then(|| Failure::new(Exit::NoModel, message()))
}

fn list_inbox(client: &mut LineClient, way: Way) {
    let items = client.inbox.listed(&client.family, way);
    if items.is_empty() {
        client.printer.note("nothing needs you");
    }
    items.iter().for_each(|item| client.printer.data(item));
}

/// Rows of text and help; the help stands in one column.
fn table(list: &[(String, String)]) -> String {
    let width = list.iter().map(|(text, _)| rows::width(text)).max().unwrap_or(0).min(TABLE);
    let row = |(text, help): &(String, String)| {
        let gap = " ".repeat(width.saturating_sub(rows::width(text)) + 2);
        format!("{text}{gap}{help}").trim_end().to_owned()
    };
    list.iter().map(row).collect::<Vec<_>>().join("\n")
}

impl From<Why> for Exit {
    fn from(why: Why) -> Self {
        match why {
            Why::Usage => Self::Usage,
            Why::NotThere => Self::NotThere,
            Why::Failed => Self::Failed,
        }
    }
}
