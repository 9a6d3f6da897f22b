//! `-p`: one message, run to its end.

use crate::headless::Work;
use crate::headless::exit::{Exit, Failure};
use crate::headless::line_client::{Awaited, LineClient, View, stuck};
use crate::headless::line_runner::{LineRunner, without_model};
use crate::headless::run_tracker::{Begun, End};
use crate::start::Opening;
use yoi::protocol::method::NewPod;
use yoi::protocol::{Event, Method, PodInfo, PodName, Segment, State};

/// The Pod that gets the message, and the state in which it is left.
struct Addressee {
    name: PodName,
    after: After,
}

const STOP_TREE: Method = Method::StopPods { tree: true };

#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// It was made for this message: its children are stopped with it.
    StopTree,
    Stop,
    /// It was live before.
    LeaveLive,
}

/// Sends the prompt to a new Pod, or to the named one, and waits for the end of the run and of all work
/// of its children. The Pod is stopped afterwards, unless it was live before.
pub async fn once(
    client: &mut LineClient,
    runner: &mut LineRunner<'_>,
    input: Vec<Segment>,
) -> Result<(), Failure> {
    let (opening, work) = (runner.opening, runner.work);
    let addressee = match &work.pod {
        None => create(client, opening, work, None).await?,
        Some(name) => match client.find(name).cloned() {
            Ok(info) => continue_with(client, opening, work, info).await?,
            Err(_) => create(client, opening, work, Some(name.clone())).await?,
        },
    };
    client.take_charge_of(&addressee.name);
    let result = converse(client, runner, &addressee.name, input).await;
    leave_addressee(client, &addressee, result).await
}

async fn create(
    client: &mut LineClient,
    opening: &Opening,
    work: &Work,
    name: Option<PodName>,
) -> Result<Addressee, Failure> {
    let new = NewPod {
        // A name is given to a Pod in order to come back to it.
        ephemeral: name.is_none() && !work.keep,
        name,
        cwd: work.cwd.clone(),
        model: work.model.clone(),
        env: opening.env.clone(),
        ..NewPod::default()
    };
    let Event::Created { info } = client.call(None, Method::New(new)).await? else {
        return Err(Failure::new(Exit::Failed, "the host did not say which pod it made"));
    };
    client.view = View::One(info.name.clone());
    client.follow(&info.name).await?;
    client.printer.reply(Some(&info.name.clone()), &Event::Created { info: info.clone() });
    print_notes(client, &info);
    Ok(Addressee { name: info.name, after: After::StopTree })
}

async fn continue_with(
    client: &mut LineClient,
    opening: &Opening,
    work: &Work,
    info: PodInfo,
) -> Result<Addressee, Failure> {
    let name = info.name.clone();
    client.view = View::One(name.clone());
    client.follow(&name).await?;
    let after = if info.state == State::Stopped { After::Stop } else { After::LeaveLive };
    if info.state.can_be_restored() {
        client.call(None, Method::Restore { name: name.to_string() }).await?;
    }
    if let Some(model) = work.model.clone() {
        client.call(Some(&name), Method::SetModel { model }).await?;
    }
    client.call(Some(&name), Method::Open { env: opening.env.clone() }).await?;
    let info = client.find(&name)?.clone();
    print_notes(client, &info);
    Ok(Addressee { name, after })
}

/// Prints the model of the Pod and the notes about its scope.
fn print_notes(client: &mut LineClient, info: &PodInfo) {
    let model = if info.model.is_empty() { "no model" } else { &info.model };
    let why = if info.model_why.is_empty() { "" } else { ", because " };
    client.printer.note(&format!("{}: {model}{why}{}", info.name, info.model_why));
    for note in &info.notes {
        client.printer.note(note);
    }
}

async fn converse(
    client: &mut LineClient,
    runner: &mut LineRunner<'_>,
    name: &PodName,
    input: Vec<Segment>,
) -> Result<(), Failure> {
    if let Some(failure) = without_model(client.find(name)?, runner.opening) {
        return Err(failure);
    }
    let reply = runner.send(client, name, input).await?;
    let begun = Begun::of(&reply);
    let begun =
        begun.ok_or_else(|| Failure::new(Exit::Failed, "the host did not say what it recorded"))?;
    let ended = wait_for_end(client, name, &begun).await;
    if matches!(ended, Err(Failure { exit: Exit::Signal(_), .. })) {
        return ended;
    }
    client.until_idle(Awaited::OwnPods).await?;
    ended?;
    // Child events may have started more runs: the last one decides.
    client.last_end(name).map_or(Ok(()), End::result)
}

/// Waits until the run of an input is over; its failure is the result.
async fn wait_for_end(
    client: &mut LineClient,
    name: &PodName,
    begun: &Begun,
) -> Result<(), Failure> {
    loop {
        if let Some(end) = client.end_of(name, begun) {
            return end.result();
        }
        let info = client.find(name)?;
        let waits = client.inbox.waits_for_person() && info.state == State::NeedsYou;
        if let Some(failure) = stuck(info).filter(|_| !waits) {
            return Err(failure);
        }
        client.step().await?;
    }
}

/// Leaves the Pod in the state that it had before. After a signal its run is paused first, so that it can be
/// resumed.
async fn leave_addressee(
    client: &mut LineClient,
    addressee: &Addressee,
    result: Result<(), Failure>,
) -> Result<(), Failure> {
    if let Err(Failure { exit: Exit::Signal(_), .. }) = &result {
        let requests = match addressee.after {
            After::StopTree => [Method::Pause, STOP_TREE].as_slice(),
            After::Stop => &[Method::Pause, Method::Stop],
            After::LeaveLive => &[Method::Pause],
        };
        client.interrupt(&addressee.name, requests).await;
        return result;
    }
    let stop = match addressee.after {
        After::StopTree => STOP_TREE,
        After::Stop => Method::Stop,
        After::LeaveLive => return result,
    };
    if client.find(&addressee.name).is_ok_and(|i| i.state != State::Stopped) {
        let stopped = client.call(Some(&addressee.name), stop).await;
        return result.and(stopped.map(drop));
    }
    result
}
