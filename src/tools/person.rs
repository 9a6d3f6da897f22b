//! Questions of external tools to the person, while their calls run.

use crate::protocol::{Question, Values};
use tokio::sync::{mpsc, oneshot};

/// Where a call asks the person.
#[derive(Clone, Debug)]
pub struct PersonPort {
    pub call_id: String,
    pub to: mpsc::Sender<AskedPerson>,
}

/// A question of a call. It is withdrawn when the receiver of the reply is dropped.
#[derive(Debug)]
pub struct AskedPerson {
    pub call_id: String,
    pub text: String,
    pub question: Question,
    pub reply: oneshot::Sender<PersonReply>,
}

/// The reply of a person.
#[derive(Clone, Debug, PartialEq)]
pub enum PersonReply {
    Answered(Values),
    Declined,
    /// No answer comes any more: the run was interrupted.
    Gone,
}

impl PersonPort {
    /// Asks; without room, and when the run has ended, the reply is dropped.
    pub fn request(&self, text: String, question: Question, reply: oneshot::Sender<PersonReply>) {
        let call_id = self.call_id.clone();
        let _ = self.to.try_send(AskedPerson { call_id, text, question, reply });
    }
}
