//! Questions of MCP servers: asked while a call runs, in the same way as an approval request, and answered to the
//! server.

use crate::protocol::{ApprovalRequest, Verdict, answer_words};
use crate::run::approval::unanswered;
use crate::run::batch::Call;
use crate::run::policy::ApprovalDraft;
use crate::run::{Interrupt, Run, Stopped};
use crate::tools::{AskedPerson, PersonReply};
use tokio::sync::oneshot;

/// A question of a server that waits for the person.
pub(crate) struct OpenQuestion {
    /// The id of its request.
    id: String,
    reply: oneshot::Sender<PersonReply>,
}

/// How the wait for an answer ends.
pub(crate) enum QuestionEnd {
    Decided(Verdict),
    /// Without a decision, for this reason.
    Gone(&'static str),
}

impl Run {
    /// Makes the request for a question. `None` where the answer would not be read.
    pub(crate) async fn request_for_server(
        &mut self,
        call: &Call,
        asked: AskedPerson,
    ) -> Result<Option<OpenQuestion>, Stopped> {
        let AskedPerson { text, question, reply, .. } = asked;
        if *self.ports.interrupt.borrow() != Interrupt::Go || reply.is_closed() {
            return Ok(None);
        }
        let draft = ApprovalDraft::question(call, text, question);
        let id = self.make_request(call, &draft).await?.id;
        Ok(Some(OpenQuestion { id, reply }))
    }

    /// Waits until the open question is decided, or its answer would not be read; for ever without a question.
    pub(crate) async fn question_ends(&mut self, open: Option<&mut OpenQuestion>) -> QuestionEnd {
        let Some(OpenQuestion { id, reply }) = open else { return std::future::pending().await };
        tokio::select! {
            biased;
            decided = self.answer_to(id) => match decided {
                Some(verdict) => QuestionEnd::Decided(verdict),
                None => QuestionEnd::Gone(self.why_withdrawn()),
            },
            () = reply.closed() => QuestionEnd::Gone("the server wants no answer any more"),
        }
    }

    /// Commits the end of a question, then replies to the server.
    pub(crate) async fn close_question(
        &mut self,
        OpenQuestion { id, reply }: OpenQuestion,
        end: QuestionEnd,
    ) -> Result<(), Stopped> {
        let verdict = match end {
            QuestionEnd::Decided(verdict) => verdict,
            QuestionEnd::Gone(why) => {
                // Dropping the reply cancels the question.
                return self.take_back(&id, why).await.map(drop);
            }
        };
        self.commit_decision(&id, &verdict, Vec::new()).await?;
        // A server that is gone reads no reply.
        let _ = reply.send(match verdict {
            Verdict::Answer { values } => PersonReply::Answered(values),
            Verdict::Deny { .. } => PersonReply::Declined,
            Verdict::Once
            | Verdict::Pod { .. }
            | Verdict::Tree { .. }
            | Verdict::Withdrawn { .. } => PersonReply::Gone,
        });
        Ok(())
    }

    /// Goes on after a question of a server that ended with the host: its call and those that may have run beside it
    /// are closed, and the model reads the answer.
    pub(crate) async fn go_on_without_server(
        &mut self,
        approval: &ApprovalRequest,
        verdict: &Verdict,
    ) -> Result<(), Stopped> {
        let answer = match verdict {
            Verdict::Answer { values } => format!("the person's answer: {}", answer_words(values)),
            Verdict::Deny { reason } => unanswered(reason),
            Verdict::Once
            | Verdict::Pod { .. }
            | Verdict::Tree { .. }
            | Verdict::Withdrawn { .. } => "no answer".into(),
        };
        let lost = format!(
            "interrupted: the host ended while the MCP server waited for an answer, which it did not get, and what it \
             did of the call is not known; {answer}"
        );
        for call in self.open_calls() {
            match call.id == approval.call_id {
                true => self.refuse(&call, lost.clone()).await?,
                false => self.close_call(&call).await?,
            }
        }
        Ok(())
    }
}
