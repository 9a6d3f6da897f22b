//! The verbs of the host: each request that a person, a client or a Pod makes is carried out here.

use crate::host::{Shared, approvals, pod, supervisor};
use crate::protocol::{Event, Method, PodName, Refusal};
use tokio::sync::{mpsc, oneshot};

/// Carries an order out: a person's, or a Pod's (`by`).
pub(crate) async fn carry_out(
    shared: &Shared,
    orders: &mpsc::Sender<supervisor::Order>,
    by: Option<PodName>,
    pod: Option<PodName>,
    method: Method,
) -> Result<Event, Refusal> {
    match pod {
        Some(name) => of_pod(shared, orders, by, name, method).await,
        None => of_host(shared, orders, method).await,
    }
}

/// Asks the supervisor and waits for its answer.
async fn ask(
    orders: &mpsc::Sender<supervisor::Order>,
    order: impl FnOnce(crate::host::Answer) -> supervisor::Order,
) -> Result<Event, Refusal> {
    let ending = || Refusal::internal("the host is ending");
    let (answer, reply) = oneshot::channel();
    orders.send(order(answer)).await.map_err(|_| ending())?;
    reply.await.map_err(|_| ending())?
}

async fn of_host(
    shared: &Shared,
    orders: &mpsc::Sender<supervisor::Order>,
    method: Method,
) -> Result<Event, Refusal> {
    use supervisor::Order;
    match method {
        Method::New(new) => ask(orders, |answer| Order::New { new, answer }).await,
        Method::Restore { name } => ask(orders, |answer| Order::Restore { name, answer }).await,
        Method::Stop => ask(orders, |answer| Order::Stop { answer }).await,
        Method::Who { path } => ask(orders, |answer| Order::Who { path, answer }).await,
        Method::ListPods => Ok(crate::host::listing::of_host(shared)),
        Method::Decide { ask, verdict } => approvals::answer(shared, orders, &ask, verdict).await,
        Method::ListPolicy => approvals::list(shared, None).await,
        Method::Revoke { rule } => approvals::revoke(shared, rule).await,
        Method::HostStatus => Ok(Event::Host {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            data_dir: shared.dirs.data.clone(),
            runtime_dir: shared.dirs.runtime.clone(),
        }),
        _ => Err(Refusal::invalid("this order needs a pod: add \"pod\": its name")),
    }
}

async fn of_pod(
    shared: &Shared,
    orders: &mpsc::Sender<supervisor::Order>,
    by: Option<PodName>,
    name: PodName,
    method: Method,
) -> Result<Event, Refusal> {
    use supervisor::{Order, Restore};
    if matches!(method, Method::Remove) {
        // Also one whose record cannot be read, which is no member.
        return ask(orders, |answer| Order::Remove { name, answer }).await;
    }
    let missing = || Refusal::invalid(format!("no pod named `{name}`"));
    let handle = shared.pod(&name).ok_or_else(missing)?;
    match method {
        Method::Spawn(new) => {
            ask(orders, |answer| Order::Spawn { parent: name, new, answer }).await
        }
        Method::StopPods { tree } => {
            ask(orders, |answer| Order::StopPods { name, tree, by, answer }).await
        }
        Method::RestorePods { tree, plan } => {
            let how = Restore { tree, plan };
            ask(orders, |answer| Order::RestorePods { name, how, answer }).await
        }
        Method::Unpeer { name: peer } => {
            ask(orders, |answer| Order::Unpeer { source: name, name: peer, answer }).await
        }
        Method::Lend { to, rule } => {
            ask(orders, |answer| Order::Lend { from: name, to, rule, answer }).await
        }
        Method::Reclaim { path } => {
            ask(orders, |answer| Order::Reclaim { owner: name, path, answer }).await
        }
        Method::Fork { name: new, at } => {
            ask(orders, |answer| Order::Fork { source: name, name: new, at, answer }).await
        }
        Method::ListPolicy => approvals::list(shared, Some(&handle)).await,
        // Whoever it is addressed to, it is the host's to do.
        method @ (Method::Who { .. } | Method::Decide { .. } | Method::Revoke { .. }) => {
            of_host(shared, orders, method).await
        }
        Method::Page { before, max_bytes } => page(&handle, before, max_bytes).await,
        Method::Fetch { entry, range: None } => fetch(&handle, entry).await,
        Method::Fetch { entry, range: Some(range) } => fetch_range(&handle, entry, range).await,
        Method::ReadOutput => crate::host::output::read(shared, by.as_ref(), &name).await,
        method => handle.call_by(by, method).await,
    }
}

async fn page(
    handle: &pod::Handle,
    before: Option<crate::protocol::EntryId>,
    max_bytes: u64,
) -> Result<Event, Refusal> {
    let view = handle.look().await.ok_or_else(|| Refusal::internal("the pod is gone"))?;
    let (seq, in_flight) = (view.seq, view.in_flight);
    let Some(segment) = view.segment else {
        return Ok(Event::Page { entries: Vec::new(), before: None, in_flight, seq });
    };
    let read = move || crate::session::page(&view.files, segment, view.end, before, max_bytes);
    let page = tokio::task::spawn_blocking(read).await;
    let page = page.map_err(|e| Refusal::internal(e.to_string()))?;
    let page = page.map_err(|e| Refusal::internal(e.to_string()))?;
    Ok(Event::Page { entries: page.entries, before: page.before, in_flight, seq })
}

async fn fetch(handle: &pod::Handle, entry: crate::protocol::EntryId) -> Result<Event, Refusal> {
    let view = handle.look().await.ok_or_else(|| Refusal::internal("the pod is gone"))?;
    let none = || Refusal::invalid("that entry is not in this transcript");
    let segment = view.segment.ok_or_else(none)?;
    let read = move || crate::session::fetch(&view.files, segment, entry);
    let entry = tokio::task::spawn_blocking(read).await;
    let entry = entry.map_err(|e| Refusal::internal(e.to_string()))?;
    Ok(Event::Fetched { entry: Box::new(entry.map_err(|e| Refusal::invalid(e.to_string()))?) })
}

async fn fetch_range(
    handle: &pod::Handle,
    entry: crate::protocol::EntryId,
    range: crate::protocol::ByteRange,
) -> Result<Event, Refusal> {
    let view = handle.look().await.ok_or_else(|| Refusal::internal("the pod is gone"))?;
    let none = || Refusal::invalid("that entry is not in this transcript");
    let segment = view.segment.ok_or_else(none)?;
    let read = move || crate::session::piece(&view.files, segment, entry, range);
    let piece = tokio::task::spawn_blocking(read).await;
    let piece = piece.map_err(|e| Refusal::internal(e.to_string()))?;
    let crate::session::Piece { entry, start, line, shape } =
        piece.map_err(|e| Refusal::invalid(e.to_string()))?;
    Ok(Event::FetchedRange { entry, start, line, shape })
}
