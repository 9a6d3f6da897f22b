//! Marks on Pods that a verb is starting or stopping. A mark lasts as long as its verb: one that is
//! dropped, for whatever reason, takes its mark with it.

use crate::host::supervisor::Family;
use crate::protocol::{PodName, Refusal};
use tokio::sync::watch;

/// What a verb is doing with a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// The Pod is being created or restored: the store says that it is live, its actor not yet.
    Starting,
    Stopping,
}

/// A mark, held by the verb that made it.
pub(crate) struct Mark {
    _held: watch::Sender<()>,
}

/// A mark as the supervisor sees it.
pub(super) struct Marked {
    doing: Doing,
    gone: watch::Receiver<()>,
}

impl Marked {
    fn lasts(&self) -> bool {
        self.gone.has_changed().is_ok()
    }
}

impl Family {
    pub(crate) fn mark(&mut self, key: &str, doing: Doing) -> Mark {
        let (held, gone) = watch::channel(());
        let marks = self.marks.entry(key.to_owned()).or_default();
        marks.retain(Marked::lasts);
        marks.push(Marked { doing, gone });
        self.marks.retain(|_, marks| marks.iter().any(Marked::lasts));
        Mark { _held: held }
    }

    /// Resolves, for a Pod that is being started, when that is over.
    pub(crate) fn starting(&self, key: &str) -> Option<watch::Receiver<()>> {
        let mut marks = self.marks.get(key)?.iter().filter(|mark| mark.lasts());
        marks.find(|mark| mark.doing == Doing::Starting).map(|mark| mark.gone.clone())
    }

    /// Resolves, for a Pod that is being started or stopped, when that is over.
    pub(crate) fn changing(&self, key: &str) -> Option<watch::Receiver<()>> {
        let mut marks = self.marks.get(key)?.iter().filter(|mark| mark.lasts());
        marks.next().map(|mark| mark.gone.clone())
    }

    fn is_stopping(&self, key: &str) -> bool {
        let marks = self.marks.get(key).into_iter().flatten();
        marks.filter(|mark| mark.lasts()).any(|mark| mark.doing == Doing::Stopping)
    }

    /// A Pod that is being stopped gets no child, and is neither restored nor deleted meanwhile.
    pub(crate) fn must_not_be_stopping(&self, name: &PodName) -> Result<(), Refusal> {
        if self.is_stopping(&name.key()) {
            let text = format!("pod `{name}` is being stopped; try again when it is");
            return Err(Refusal::invalid(text));
        }
        Ok(())
    }

    /// A Pod that is being started is not restored or deleted meanwhile.
    pub(crate) fn must_not_be_starting(&self, name: &PodName) -> Result<(), Refusal> {
        if self.starting(&name.key()).is_some() {
            let text = format!("pod `{name}` is being started; try again when it is");
            return Err(Refusal::invalid(text));
        }
        Ok(())
    }
}
