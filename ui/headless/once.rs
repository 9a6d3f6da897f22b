//! `-p`: one message, run to its end.

use crate::headless::Work;
use crate::headless::exit::{Exit, Failure};
use crate::headless::line_client::{LineClient, View, Whose, stuck};
use crate::headless::run_tracker::{Begun, End};
use crate::start::Opening;
use yoi::protocol::method::NewPod;
use yoi::protocol::{Event, Method, PodInfo, PodName, Segment, State};

/// Who is spoken to, and in which state to leave it.
struct Partner {
    name: PodName,
    after: After,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Stop,
    /// It was live before.
    LeaveLive,
}

/// Sends the prompt to a fresh Pod, or to the one that was named, and waits for the end of the run
/// and of everything that it set off. The Pod is left stopped, unless it was live before.
pub async fn once(
    talk: &mut LineClient,
    opening: &Opening,
    work: &Work,
    input: Vec<Segment>,
) -> Result<(), Failure> {
    let partner = match &work.pod {
        None => create(talk, opening, work).await?,
        Some(name) => {
            let info = talk.find(name)?.clone();
            continue_with(talk, opening, work, info).await?
        }
    };
    talk.look_after(&partner.name);
    let result = converse(talk, &partner.name, input).await;
    put_down(talk, &partner, result).await
}

async fn create(talk: &mut LineClient, opening: &Opening, work: &Work) -> Result<Partner, Failure> {
    let new = NewPod {
        cwd: work.cwd.clone(),
        model: work.model.clone(),
        env: opening.env.clone(),
        ..NewPod::default()
    };
    let Event::Created { info } = talk.call(None, Method::New(new)).await? else {
        return Err(Failure::new(Exit::Failed, "the host did not say which pod it made"));
    };
    talk.view = View::One(info.name.clone());
    talk.follow(&info.name).await?;
    talk.printer.reply(Some(&info.name.clone()), &Event::Created { info: info.clone() });
    tell_about(talk, &info);
    Ok(Partner { name: info.name, after: After::Stop })
}

async fn continue_with(
    talk: &mut LineClient,
    opening: &Opening,
    work: &Work,
    info: PodInfo,
) -> Result<Partner, Failure> {
    let name = info.name.clone();
    talk.view = View::One(name.clone());
    talk.follow(&name).await?;
    let after = if info.state == State::Stopped { After::Stop } else { After::LeaveLive };
    if after == After::Stop {
        talk.call(None, Method::Restore { name: name.to_string() }).await?;
    }
    if let Some(model) = work.model.clone() {
        talk.call(Some(&name), Method::SetModel { model }).await?;
    }
    talk.call(Some(&name), Method::Open { env: opening.env.clone() }).await?;
    let info = talk.find(&name)?.clone();
    tell_about(talk, &info);
    Ok(Partner { name, after })
}

/// Who answers, and what a person should know of its scope.
fn tell_about(talk: &mut LineClient, info: &PodInfo) {
    let model = if info.model.is_empty() { "no model" } else { &info.model };
    let why = if info.model_why.is_empty() { "" } else { ", because " };
    talk.printer.note(&format!("{}: {model}{why}{}", info.name, info.model_why));
    for note in &info.notes {
        talk.printer.note(note);
    }
}

async fn converse(
    talk: &mut LineClient,
    name: &PodName,
    input: Vec<Segment>,
) -> Result<(), Failure> {
    let reply = talk.call(Some(name), Method::Send { input, queue: true }).await?;
    let begun = Begun::of(&reply);
    let begun =
        begun.ok_or_else(|| Failure::new(Exit::Failed, "the host did not say what it recorded"))?;
    let ended = wait_for_end(talk, name, &begun).await;
    if matches!(ended, Err(Failure { exit: Exit::Signal(_), .. })) {
        return ended;
    }
    talk.until_done(Whose::Ours).await?;
    ended?;
    let info = talk.find(name)?;
    if info.model.is_empty() {
        return Err(Failure::new(Exit::NoModel, "no model: set a provider's key, or give --model"));
    }
    // News of those below it may have woken it for more runs: the last one decides.
    talk.last_end(name).map_or(Ok(()), End::result)
}

/// Waits until the run of an input is over; its failure is the result.
async fn wait_for_end(talk: &mut LineClient, name: &PodName, begun: &Begun) -> Result<(), Failure> {
    loop {
        if let Some(end) = talk.end_of(name, begun) {
            return end.result();
        }
        let info = talk.find(name)?;
        let waits = talk.inbox.waits() && info.state == State::NeedsYou;
        if let Some(failure) = stuck(info).filter(|_| !waits) {
            return Err(failure);
        }
        talk.step().await?;
    }
}

/// Leaves the Pod as it was found. After a signal its turn is paused first, so that it can go on
/// later.
async fn put_down(
    talk: &mut LineClient,
    partner: &Partner,
    result: Result<(), Failure>,
) -> Result<(), Failure> {
    if let Err(Failure { exit: Exit::Signal(_), .. }) = &result {
        let orders = match partner.after {
            After::Stop => [Method::Pause, Method::Stop].as_slice(),
            After::LeaveLive => &[Method::Pause],
        };
        talk.interrupt(&partner.name, orders).await;
        return result;
    }
    if partner.after == After::Stop
        && talk.find(&partner.name).is_ok_and(|i| i.state != State::Stopped)
    {
        let stopped = talk.call(Some(&partner.name), Method::Stop).await;
        return result.and(stopped.map(drop));
    }
    result
}
