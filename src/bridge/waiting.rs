//! The waiting messages, as a resource. A client that subscribes to it is notified of each new message, in the way of
//! its protocol version.

use rmcp::model::{
    ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
    ResourceUpdatedNotificationParam, SubscriptionFilter,
};
use rmcp::service::{Peer, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::watch;

/// The address of the resource.
const URI: &str = "yoi://messages";

/// How many messages arrived, and whether the client of a session wants to hear of them. Cheap to clone.
#[derive(Clone)]
pub struct Waiting {
    arrived: watch::Sender<u64>,
    /// The number of messages when the last subscription was acknowledged.
    acknowledged: Arc<AtomicU64>,
    /// Whether a session that began with `initialize` is subscribed; later protocol versions subscribe by a request
    /// that stays open.
    subscribed: Arc<AtomicBool>,
}

impl Waiting {
    pub fn new() -> Self {
        let (acknowledged, subscribed) = Default::default();
        Self { arrived: watch::Sender::new(0), acknowledged, subscribed }
    }

    /// Notes that a message arrived, and says so to the client of a session that subscribed.
    pub async fn arrived(&self, peer: &Peer<RoleServer>) {
        self.arrived.send_modify(|count| *count += 1);
        if self.subscribed.load(Ordering::Relaxed) {
            let update = ResourceUpdatedNotificationParam::new(URI);
            if let Err(error) = peer.notify_resource_updated(update).await {
                tracing::warn!("the client could not be told of a message: {error}");
            }
        }
    }

    /// Changes the subscription of a session.
    pub fn subscribe(&self, uri: &str, wanted: bool) -> Result<(), ErrorData> {
        known(uri)?;
        self.subscribed.store(wanted, Ordering::Relaxed);
        Ok(())
    }

    /// The part of a requested subscription that is served; the acknowledgement names it.
    pub fn accepted(&self, requested: &SubscriptionFilter) -> SubscriptionFilter {
        self.acknowledged.store(*self.arrived.borrow(), Ordering::Relaxed);
        let uris = requested.resource_subscriptions.iter().flatten();
        let known = uris.filter(|uri| *uri == URI).cloned();
        SubscriptionFilter::builder().resource_subscriptions(known).build()
    }

    /// Serves a subscription that is a request of its own, until the client ends it.
    pub async fn listen(&self, context: &SubscriptionContext) {
        let mut arrived = self.arrived.subscribe();
        // A message can arrive between the acknowledgement and this.
        if *arrived.borrow() != self.acknowledged.load(Ordering::Relaxed) {
            arrived.mark_changed();
        }
        loop {
            tokio::select! {
                // A client hears of no message after it ended the subscription.
                biased;
                () = context.cancelled() => return,
                // The sender is part of this value.
                _ = arrived.changed() => {
                    if let Err(error) = context.sink().notify_resource_updated(URI).await {
                        tracing::warn!("the client could not be told of a message: {error}");
                    }
                }
            }
        }
    }
}

/// The resource, for a list.
pub fn listed() -> ListResourcesResult {
    let does = "Says that get_messages gives the messages; a subscriber hears of each that arrives";
    let resource = Resource::new(URI, "messages").with_description(does);
    ListResourcesResult::with_all_items(vec![resource.with_mime_type("text/plain")])
}

/// The content of the resource. Messages are given by the tool alone, which knows when they were taken.
pub fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    known(uri)?;
    let text = "Call the tool get_messages: it gives the messages that wait.";
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, URI)]))
}

fn known(uri: &str) -> Result<(), ErrorData> {
    let unknown = || ErrorData::resource_not_found(format!("there is no resource {uri}"), None);
    if uri == URI { Ok(()) } else { Err(unknown()) }
}
