//! Handles requests of a server: `ping` is answered, and a question is handed to the call that it belongs to. So is
//! progress.

use crate::mcp::elicitation;
use crate::protocol::Question;
use crate::tools::PersonReply;
use rmcp::ClientHandler;
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability,
    ErrorData, FormElicitationCapability, Implementation, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{NotificationContext, RequestContext};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// The client's side of one connection; clones share it. It declares that forms are filled in, and no other
/// capability, so sampling, roots and questions by URL are refused.
#[derive(Clone, Debug)]
pub struct Handler {
    /// The name of the server.
    server: String,
    /// The calls that are followed, the newest last.
    calls: Arc<Mutex<Calls>>,
}

type Calls = Vec<(ProgressToken, mpsc::Sender<CallEvent>)>;

/// What a server sends while it works on a call.
#[derive(Debug)]
pub enum CallEvent {
    /// A line for the screen.
    Progress(String),
    Question {
        text: String,
        question: Question,
        reply: oneshot::Sender<PersonReply>,
    },
    /// The server has the reply to its question, or does not want it any more.
    Replied,
}

/// The registration of a call for its progress and its questions, until this is dropped.
pub struct Following {
    handler: Handler,
    token: ProgressToken,
}

impl Handler {
    pub fn new(server: &str) -> Self {
        Self { server: server.to_owned(), calls: Arc::default() }
    }

    /// From now on what belongs to the call with this token goes to `to`; progress that does not fit is dropped.
    pub fn follow(&self, token: ProgressToken, to: mpsc::Sender<CallEvent>) -> Following {
        self.lock().push((token.clone(), to));
        Following { handler: self.clone(), token }
    }

    /// The question, and the call that it goes to. A server does not say which of its calls a question belongs to: it
    /// is the newest.
    fn question(
        &self,
        request: ElicitRequestParams,
    ) -> Result<(String, Question, mpsc::Sender<CallEvent>), ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request
        else {
            return Err(ErrorData::invalid_params(
                "only questions that have a form are taken",
                None,
            ));
        };
        let order = requested_schema.property_order.clone().unwrap_or_default();
        let form = serde_json::to_value(requested_schema).unwrap_or_default();
        let question = elicitation::question(&self.server, &message, &form, &order)
            .map_err(|why| ErrorData::invalid_params(why, None))?;
        let call = self.lock().last().map(|(_, to)| to.clone());
        let call = call.ok_or_else(|| {
            ErrorData::invalid_request("a question is asked only while a call is under way", None)
        })?;
        Ok((message, question, call))
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.handler.lock().retain(|(token, _)| *token != self.token);
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let me = Implementation::new("yoi", env!("CARGO_PKG_VERSION"));
        let forms = ElicitationCapability::new().with_form(FormElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(forms);
        ClientConfig::new(capabilities, me)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let (text, question, call) = self.question(request)?;
        let (reply, answer) = oneshot::channel();
        // A call that has ended wants no answer: the reply is dropped with the question.
        let _ = call.send(CallEvent::Question { text, question, reply }).await;
        let answer = tokio::select! {
            answer = answer => answer.unwrap_or(PersonReply::Gone),
            () = context.ct.cancelled() => PersonReply::Gone,
        };
        let _ = call.send(CallEvent::Replied).await;
        Ok(elicitation::result(answer))
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let is_its = |(token, _): &&(ProgressToken, _)| *token == progress.progress_token;
        let Some((_, to)) = self.lock().iter().find(is_its).cloned() else { return };
        // A screen that lags misses a line; the result holds everything.
        let _ = to.try_send(CallEvent::Progress(sentence(&progress)));
    }
}

/// Bytes of a message about progress.
const MAX_MESSAGE: usize = 500;

fn sentence(progress: &ProgressNotificationParam) -> String {
    let message = progress.message.as_deref().unwrap_or_default();
    let message = &message[..message.floor_char_boundary(MAX_MESSAGE)];
    let count = match progress.total {
        Some(total) => format!("{} of {total}", progress.progress),
        None => progress.progress.to_string(),
    };
    format!("[{count}] {message}\n")
}
