//! `-p`: one message, run to its end.

use crate::headless::Work;
use crate::headless::exit::{Exit, Failure, is_signalled};
use crate::headless::line_client::{LineClient, View, stuck};
use crate::headless::line_runner::{LineRunner, model_in_words, uncorrected, without_model};
use crate::headless::run_tracker::End;
use crate::start::Opening;
use crate::verb;
use crate::wording::moved;
use yoi::protocol::method::NewPod;
use yoi::protocol::{Begun, Effort, Event, Method, PodInfo, PodName, Queued, Segment, State};

/// The Pod that gets the message, and the state in which it is left.
struct Addressee {
    name: PodName,
    after: After,
    /// The model that a Pod which exists is to use.
    model: Option<String>,
    /// The effort with which it is to use that.
    effort: Option<Effort>,
    /// Whether its model and its notes were printed.
    is_noted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// It was made for this message: its children are stopped with it.
    StopTree,
    Stop,
    /// It was live before.
    LeaveLive,
}

/// How often a Pod that another program stops is brought back for the message.
const TRIES: usize = 3;

/// Sends the prompt to a new Pod, or to the named one, and waits for the end of the run and of all work
/// of its children. The Pod is stopped afterwards, unless it was live before or another program has given
/// it a message.
pub async fn once(
    client: &mut LineClient,
    runner: &mut LineRunner<'_>,
    input: Vec<Segment>,
) -> Result<(), Failure> {
    let (opening, work) = (runner.opening, runner.work);
    if client.is_stopped_by_settings() {
        let names_model = work.model.is_some() || work.pod.is_some();
        let exit = if names_model { Exit::Failed } else { Exit::NoModel };
        return Err(Failure::new(exit, uncorrected("nothing was sent", opening)));
    }
    let mut addressee = match &work.pod {
        None => create(client, opening, work, None).await?,
        Some(name) => match client.find(name).cloned() {
            Ok(info) => continue_with(client, work, info).await?,
            Err(_) => create_or_continue(client, opening, work, name).await?,
        },
    };
    client.take_charge_of(&addressee.name);
    let mut given = give(client, runner, &mut addressee, &input).await;
    for _ in 0..TRIES {
        let again = match &given {
            Ok(_) | Err(Failure { exit: Exit::Signal(_) | Exit::NoModel, .. }) => false,
            // Another program stopped the Pod after it was found to be live.
            Err(_) => work.pod.is_some() && client.bring_back(&addressee.name).await?,
        };
        if !again {
            break;
        }
        if addressee.after == After::LeaveLive {
            addressee.after = After::Stop;
        }
        given = give(client, runner, &mut addressee, &input).await;
    }
    let (message, result) = match given {
        Ok(begun) => {
            let result = converse(client, &addressee.name, &begun).await;
            (Some(begun), result)
        }
        Err(failure) => (None, Err(failure)),
    };
    if is_signalled(&result) {
        leave_after_signal(client, &addressee, message).await;
        return result;
    }
    leave_addressee(client, &addressee, result).await
}

/// Makes the Pod. If another program made one of this name in the meantime, the message goes to that.
async fn create_or_continue(
    client: &mut LineClient,
    opening: &Opening,
    work: &Work,
    name: &PodName,
) -> Result<Addressee, Failure> {
    let created = create(client, opening, work, Some(name.clone())).await;
    let Err(failure) = created else { return created };
    let Ok(info) = client.find(name).cloned() else { return Err(failure) };
    let addressee = continue_with(client, work, info).await?;
    // It was made for both messages: the program that ends last stops it.
    Ok(Addressee { after: After::StopTree, ..addressee })
}

async fn create(
    client: &mut LineClient,
    opening: &Opening,
    work: &Work,
    name: Option<PodName>,
) -> Result<Addressee, Failure> {
    let is_named = name.is_some();
    let new = NewPod {
        // A name is given to a Pod in order to come back to it.
        ephemeral: name.is_none() && !work.keep,
        name,
        cwd: work.cwd.clone(),
        model: work.model.clone(),
        effort: work.effort,
        env: opening.env.clone(),
        ..NewPod::default()
    };
    let created = client.call(None, Method::New(new)).await;
    let created = created.map_err(|failure| match client.without_mistakes(&failure.message) {
        none if none.is_empty() && !failure.message.is_empty() => {
            Failure { message: uncorrected("nothing was sent", opening), ..failure }
        }
        message => Failure { message, ..failure },
    });
    let Event::Created { info } = created? else {
        return Err(Failure::new(Exit::Failed, "the host did not say which pod it made"));
    };
    client.follow_own_runs(&info.name).await?;
    client.view = View::One(info.name.clone());
    client.printer.reply(Some(&info.name.clone()), &Event::Created { info: info.clone() });
    // A named one is opened before it gets the message, and its notes are printed then.
    if !is_named {
        print_notes(client, &info);
    }
    Ok(Addressee {
        name: info.name,
        after: After::StopTree,
        model: None,
        effort: None,
        is_noted: !is_named,
    })
}

async fn continue_with(
    client: &mut LineClient,
    work: &Work,
    info: PodInfo,
) -> Result<Addressee, Failure> {
    if let Some(cwd) = moved::around(&info, &work.cwd) {
        // Refused where the old path is there as well, and then nothing is to be moved.
        let followed = client.exchange(Some(&info.name), Method::Relocate { cwd }).await?;
        if let Some(said) = followed.ok().as_ref().and_then(moved::sentence) {
            client.printer.note(&said);
        }
    }
    let name = info.name;
    client.follow_own_runs(&name).await?;
    client.view = View::One(name.clone());
    let is_back = client.bring_back(&name).await?;
    let was_stopped = is_back && info.state != State::Failed;
    let after = if was_stopped { After::Stop } else { After::LeaveLive };
    let (model, effort) = (work.model.clone(), work.effort);
    Ok(Addressee { name, after, model, effort, is_noted: false })
}

/// The sentence of a failed run, for a program that chooses the model by an option.
fn by_option(text: &str) -> String {
    let verbs = [" :model", "(:model", "`:model"];
    verbs.iter().fold(text.to_owned(), |text, verb| text.replace(verb, &verb.replace(':', "--")))
}

/// Prints the model of the Pod and the notes about its scope.
fn print_notes(client: &mut LineClient, info: &PodInfo) {
    client.printer.note(&model_in_words(info));
    client.print_notes(info);
}

/// Offers the environment to the Pod, then sets its model, whose address and key may stand there, then
/// sends the message. Returns the message as the host names it.
async fn give(
    client: &mut LineClient,
    runner: &mut LineRunner<'_>,
    addressee: &mut Addressee,
    input: &[Segment],
) -> Result<Begun, Failure> {
    let name = &addressee.name;
    if runner.work.pod.is_some() {
        let env = runner.opening.env.clone();
        client.call(Some(name), Method::Open { env }).await?;
        // A model that is chosen again is asked as if nothing were known of its server.
        let known = client.find(name)?;
        let is_chosen = |model: &String| known.model_chosen && known.model == *model;
        if let Some(model) = addressee.model.clone().filter(|model| !is_chosen(model)) {
            client.call(Some(name), Method::SetModel { model }).await?;
        }
        if let Some(effort) = addressee.effort {
            client.call(Some(name), Method::SetEffort { effort: Some(effort) }).await?;
        }
        let info = client.find(name)?.clone();
        if !std::mem::replace(&mut addressee.is_noted, true) {
            print_notes(client, &info);
        }
    }
    if let Some(failure) = without_model(client.find(name)?, runner.opening) {
        return Err(failure);
    }
    let reply = runner.send(client, name, input.to_vec()).await?;
    let begun = Begun::of(&reply)
        .ok_or_else(|| Failure::new(Exit::Failed, "the host did not say what it recorded"))?;
    client.accepted(name, &begun);
    if matches!(begun, Begun::Queued(_)) && client.works_for_others(name) {
        client.printer.note(&verb::send::sentence(name, &reply));
    }
    Ok(begun)
}

/// Waits until all work for the message is done.
async fn converse(client: &mut LineClient, name: &PodName, begun: &Begun) -> Result<(), Failure> {
    let ended = wait_for_end(client, name, begun).await;
    if is_signalled(&ended) {
        return ended;
    }
    client.until_idle().await?;
    ended?;
    // Reports of children may have let the run go on, also after it failed: its last end decides.
    let ended = client.end_of(name, begun).map_or(Ok(()), End::result);
    ended.map_err(|failure| {
        let message = client.spelled(&by_option(&failure.message), Some(name));
        Failure { message, ..failure }
    })
}

/// Waits until the run of an input is over, however it ended. The failure says why it cannot end.
async fn wait_for_end(
    client: &mut LineClient,
    name: &PodName,
    begun: &Begun,
) -> Result<(), Failure> {
    client.refresh().await?;
    loop {
        let info = client.find(name)?;
        if !is_queued(info, begun) && client.end_of(name, begun).is_some() {
            return Ok(());
        }
        let left = client.inbox.waits_for_person()
            || client.inbox.decides_for(name, client.family.approvals())
            || client.works_for_others(name);
        let waits = left && info.state == State::NeedsYou;
        if let Some(failure) = stuck(info).or_else(|| paused(info, begun)).filter(|_| !waits) {
            return Err(with_queued(failure, info, begun));
        }
        client.step().await?;
    }
}

/// A Pod whose run is paused takes nothing from its queue until a person lets it go on.
fn paused(info: &PodInfo, begun: &Begun) -> Option<Failure> {
    let name = &info.name;
    let text = || format!("{name} is paused: `yoi resume {name}` goes on with its run");
    let waits = info.state == State::Paused && is_queued(info, begun);
    waits.then(|| Failure::new(Exit::StoppedShort, text()))
}

fn is_queued(info: &PodInfo, begun: &Begun) -> bool {
    matches!(begun, Begun::Queued(id) if info.queue.iter().any(|queued| queued.id == *id))
}

/// The failure, and what became of a message that no run has taken.
fn with_queued(failure: Failure, info: &PodInfo, begun: &Begun) -> Failure {
    if !is_queued(info, begun) {
        return failure;
    }
    let message = format!("your message waits in the queue of {}; {}", info.name, failure.message);
    Failure::new(failure.exit, message)
}

/// Interrupts the run of the message, so that it can be resumed, and leaves the Pod in the state that it had before,
/// unless it has a message of another program.
async fn leave_after_signal(
    client: &mut LineClient,
    addressee: &Addressee,
    message: Option<Begun>,
) {
    let name = &addressee.name;
    let is_own = |queued: &Queued| matches!(&message, Some(Begun::Queued(id)) if queued.id == *id);
    let waits = |info: &PodInfo| info.queue.iter().any(|queued| !is_own(queued));
    let is_shared = client.works_for_others(name) || client.find(name).is_ok_and(waits);
    let is_paused = if message.is_none() && is_shared {
        false
    } else {
        client.interrupt_messages(name, message.as_slice()).await
    };
    if addressee.after != After::LeaveLive && !is_shared {
        let tree = addressee.after == After::StopTree;
        let stop = Method::StopPods { tree, unless_busy: false, silent: false };
        client.interrupt(name, &[stop]).await;
    } else if is_paused {
        client.note_paused(name);
    }
}

/// Leaves the Pod in the state that it had before.
async fn leave_addressee(
    client: &mut LineClient,
    addressee: &Addressee,
    result: Result<(), Failure>,
) -> Result<(), Failure> {
    let tree = addressee.after == After::StopTree;
    if addressee.after == After::LeaveLive {
        return result;
    }
    let info = client.find(&addressee.name).ok().filter(|info| info.state != State::Stopped);
    if let Some(info) = info {
        // No other program uses an ephemeral Pod: a message that failed here is not sent later.
        let unless_busy = !info.ephemeral;
        let stop = Method::StopPods { tree, unless_busy, silent: false };
        let stopped = client.call(Some(&addressee.name), stop).await;
        return result.and(stopped.map(drop));
    }
    result
}
