//! Messages and verbs typed as lines, over the table that the dashboard uses too.

use crate::command::{self, Call, Defaults, Verb};
use crate::headless::exit::{Exit, Failure};
use crate::headless::line_client::{LineClient, View, Whose, stuck};
use crate::headless::run_tracker::End;
use crate::headless::{Unanswered, Work};
use crate::start::Opening;
use std::collections::BTreeSet;
use yoi::protocol::method::NewPod;
use yoi::protocol::{Event, Method, PodName, RewindTarget, Segment, State};

/// Whether there is more to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    GoOn,
    Leave,
}

/// Where lines are typed: the current Pod and what a new one gets.
pub struct LineRunner<'a> {
    opening: &'a Opening,
    work: &'a Work,
    current: Option<PodName>,
    /// Pods that were given something to do: how their last runs end is how the program ends.
    busy: BTreeSet<PodName>,
}

impl<'a> LineRunner<'a> {
    pub fn new(opening: &'a Opening, work: &'a Work) -> Self {
        Self { opening, work, current: None, busy: BTreeSet::new() }
    }

    /// What happens to questions when nobody types any more.
    pub fn unanswered(&self) -> Unanswered {
        self.work.unanswered
    }

    /// One line of input: blank, a verb or a message.
    pub async fn take(&mut self, talk: &mut LineClient, line: &str) -> Result<Next, Failure> {
        if line.trim().is_empty() {
            return Ok(Next::GoOn);
        }
        if let Some(typed) = talk.inbox.typed(line) {
            let (ask, verdict) = typed?;
            talk.answer(&ask, verdict).await?;
            return Ok(Next::GoOn);
        }
        if line.starts_with(':') {
            return self.carry_out(talk, line).await;
        }
        self.say(talk, line).await?;
        Ok(Next::GoOn)
    }

    async fn say(&mut self, talk: &mut LineClient, text: &str) -> Result<(), Failure> {
        let pod = self.somebody(talk).await?;
        talk.look_after(&pod);
        let input = vec![Segment::Text { content: text.to_owned() }];
        let reply = talk.call(Some(&pod), Method::Send { input, queue: true }).await?;
        if let Event::Accepted { queued: Some(_), .. } = reply {
            talk.printer.note(&format!("queued for {pod}: it is sent when the turn ends"));
        }
        self.busy.insert(pod);
        Ok(())
    }

    /// The current Pod; the one named at the start, or a new one, when there is none yet.
    async fn somebody(&mut self, talk: &mut LineClient) -> Result<PodName, Failure> {
        if let Some(pod) = &self.current {
            return Ok(pod.clone());
        }
        let pod = match &self.work.pod {
            Some(name) => talk.find(name)?.name.clone(),
            None => self.create(talk).await?,
        };
        self.go_to(talk, &pod).await?;
        Ok(pod)
    }

    async fn create(&mut self, talk: &mut LineClient) -> Result<PodName, Failure> {
        let new = NewPod {
            cwd: self.work.cwd.clone(),
            model: self.work.model.clone(),
            env: self.opening.env.clone(),
            ..NewPod::default()
        };
        match talk.call(None, Method::New(new)).await? {
            Event::Created { info } => Ok(info.name),
            _ => Err(Failure::new(Exit::Failed, "the host did not say which pod it made")),
        }
    }

    async fn go_to(&mut self, talk: &mut LineClient, pod: &PodName) -> Result<(), Failure> {
        let info = talk.find(pod)?.clone();
        if info.state == State::Stopped {
            talk.call(None, Method::Restore { name: info.name.to_string() }).await?;
        }
        talk.call(Some(&info.name), Method::Open { env: self.opening.env.clone() }).await?;
        let model = if info.model.is_empty() { "no model" } else { &info.model };
        talk.printer.note(&format!("{}: {model}", info.name));
        for note in &info.notes {
            talk.printer.note(note);
        }
        talk.view = View::All(Some(info.name.clone()));
        talk.inbox.look_at(&info.name);
        self.current = Some(info.name);
        Ok(())
    }

    /// One verb, with or without its colon.
    pub async fn carry_out(&mut self, talk: &mut LineClient, line: &str) -> Result<Next, Failure> {
        if talk.view == View::Nobody {
            talk.view = View::All(None);
        }
        let verbs = command::read_all(line).map_err(Failure::usage)?;
        if self.current.is_none() && self.work.pod.is_some() && verbs != [Verb::Quit] {
            self.somebody(talk).await?;
        }
        if let [verb] = verbs.as_slice() {
            return self.carry_out_one(talk, verb).await;
        }
        let mut failed: Option<Failure> = None;
        for verb in &verbs {
            // One that fails keeps no other from being done.
            if let Err(failure) = self.carry_out_one(talk, verb).await {
                let pod = verb.pod().map_or("", PodName::as_str);
                let why = format!("{pod}: {}", failure.message);
                let before =
                    failed.map(|before| format!("{} · ", before.message)).unwrap_or_default();
                failed = Some(Failure::new(failure.exit, before + &why));
            }
        }
        failed.map_or(Ok(Next::GoOn), Err)
    }

    async fn carry_out_one(&mut self, talk: &mut LineClient, verb: &Verb) -> Result<Next, Failure> {
        let here = Defaults {
            current: self.current.as_ref(),
            cwd: &self.work.cwd,
            model: self.work.model.as_deref(),
            env: &self.opening.env,
        };
        match command::call(verb, here).map_err(Failure::usage)? {
            Call::Local => self.here(talk, verb).await,
            Call::Host { pod, method } => self.there(talk, verb, pod, method).await,
        }
    }

    /// A verb that the host carries out.
    async fn there(
        &mut self,
        talk: &mut LineClient,
        verb: &Verb,
        pod: Option<PodName>,
        method: Method,
    ) -> Result<Next, Failure> {
        let pod = match pod {
            Some(pod) => Some(talk.find(&pod)?.name.clone()),
            None => None,
        };
        if let Some(other) = second(verb) {
            talk.find(&other)?;
        }
        let begins = matches!(verb, Verb::Send { .. } | Verb::Resume(_) | Verb::Compact(_));
        if let Some(pod) = pod.as_ref().filter(|_| begins) {
            talk.look_after(pod);
        }
        let reply = talk.call(pod.as_ref(), method).await?;
        if let (Verb::Rewind(turn), Event::RewindTargets { head_entries, targets }) = (verb, &reply)
        {
            return self.rewind(talk, *turn, *head_entries, targets).await;
        }
        let needs = match (verb, second(verb)) {
            (Verb::Peer(_), Some(peer)) => command::peer_needs(talk.find(&peer).ok()),
            _ => String::new(),
        };
        talk.printer.note(&(command::done(verb, pod.as_ref(), &reply) + &needs));
        if let (Verb::New { .. }, Event::Created { info }) = (verb, reply) {
            self.go_to(talk, &info.name).await?;
        }
        self.busy.extend(pod.filter(|_| begins));
        Ok(Next::GoOn)
    }

    async fn rewind(
        &mut self,
        talk: &mut LineClient,
        turn: Option<usize>,
        head: usize,
        targets: &[RewindTarget],
    ) -> Result<Next, Failure> {
        let Some(turn) = turn else {
            for target in targets {
                talk.printer.data(&format!("{}  {}", target.turn_index, target.preview));
            }
            return Ok(Next::GoOn);
        };
        let found = targets.iter().find(|target| target.turn_index == turn);
        let target = found.ok_or_else(|| {
            Failure::usage(format!("there is no turn {turn}; :rewind lists them"))
        })?;
        if let Some(why) = target.disabled_reason.as_ref().filter(|_| !target.eligible) {
            return Err(Failure::new(Exit::Failed, why.clone()));
        }
        let method = Method::Rewind { target: target.id, expected_head_entries: head };
        let pod = self.current.clone();
        talk.call(pod.as_ref(), method).await?;
        talk.printer.note(&format!("went back to before: {}", target.preview));
        Ok(Next::GoOn)
    }

    /// A verb that is done where it was typed.
    async fn here(&mut self, talk: &mut LineClient, verb: &Verb) -> Result<Next, Failure> {
        match verb {
            Verb::Quit => return Ok(Next::Leave),
            Verb::Open(pod) => self.go_to(talk, pod).await?,
            Verb::Help(about) => talk.printer.data(&help(about.as_deref())?),
            Verb::Inbox => {
                let questions = talk.inbox.questions();
                if questions.is_empty() {
                    talk.printer.note("nothing waits for you");
                }
                questions.iter().for_each(|question| talk.printer.data(question));
            }
            Verb::Explain(pod) => {
                let pod = self.named_or_current(pod.as_ref())?;
                talk.printer.data(&talk.explain(&pod)?);
            }
            Verb::Model(None) => {
                let pod = self.named_or_current(None)?;
                let info = talk.find(&pod)?;
                let text = format!("{}: {} ({})", info.name, info.model, info.model_why);
                talk.printer.data(&text);
            }
            other => return Err(only_on_the_screen(other)),
        }
        Ok(Next::GoOn)
    }

    fn named_or_current(&self, named: Option<&PodName>) -> Result<PodName, Failure> {
        let pod = named.or(self.current.as_ref()).cloned();
        pod.ok_or_else(|| Failure::usage("which pod? name one, or :open it first"))
    }

    /// Waits until nothing runs any more that was begun here.
    pub async fn finish(&mut self, talk: &mut LineClient) -> Result<(), Failure> {
        let result = self.wait(talk).await;
        if let Err(Failure { exit: Exit::Signal(_), .. }) = &result {
            for pod in &self.busy {
                talk.interrupt(pod, &[Method::Pause]).await;
            }
        }
        result
    }

    async fn wait(&mut self, talk: &mut LineClient) -> Result<(), Failure> {
        talk.until_done(Whose::Ours).await?;
        let mut result = Ok(());
        for pod in &self.busy {
            let Ok(info) = talk.find(pod) else { continue };
            let ended =
                stuck(info).map_or_else(|| talk.last_end(pod).map_or(Ok(()), End::result), Err);
            result = result.and(ended);
        }
        result
    }
}

/// The other Pod that a verb is about; a name that is none is left to the host, which says why.
fn second(verb: &Verb) -> Option<PodName> {
    match verb {
        Verb::Peer(name) | Verb::Unpeer(name) => PodName::parse(name).ok(),
        Verb::Lend { to, .. } => Some(to.clone()),
        _ => None,
    }
}

fn help(about: Option<&str>) -> Result<String, Failure> {
    let line = |row: &command::Row| {
        let usage = format!(":{} {}", row.name, row.usage);
        format!("{:<36} {}", usage.trim_end(), row.help)
    };
    let Some(name) = about else {
        return Ok(command::TABLE.iter().map(line).collect::<Vec<_>>().join("\n"));
    };
    let row = command::find(name);
    row.map(line).ok_or_else(|| Failure::usage(format!("no verb :{name}; :help lists them")))
}

fn only_on_the_screen(verb: &Verb) -> Failure {
    let name = match verb {
        Verb::Theme(_) => "theme",
        Verb::Pin { .. } => "pin",
        Verb::Split(_) => "split",
        Verb::Zoom => "zoom",
        Verb::Notices => "notices",
        Verb::Tour => "tour",
        Verb::Redraw => "redraw",
        Verb::Keys => "keys",
        _ => "that verb",
    };
    Failure::usage(format!(":{name} needs the screen: start yoi without --no-ui"))
}
