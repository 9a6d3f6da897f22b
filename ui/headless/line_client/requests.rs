//! Approval requests in a conversation of lines: shown to the person who types, or decided at once.

use crate::headless::approvals::Handling;
use crate::headless::exit::{Exit, Failure};
use crate::headless::line_client::LineClient;
use yoi::protocol::{ApprovalRequest, Method, Verdict};

impl LineClient {
    /// Shows or decides every open request that has not been handled yet. A request that finds no room on
    /// standard error stays open, and is shown when there is room.
    pub(super) async fn handle_requests(&mut self) -> Result<(), Failure> {
        self.is_request_unshown = false;
        while let Some((approval, handling)) = self.inbox.next(self.family.approvals()) {
            match handling {
                Handling::Show { note } => {
                    if self.printer.try_note(&note).is_err() {
                        self.inbox.show_again(&approval.id);
                        self.is_request_unshown = true;
                        return Ok(());
                    }
                }
                Handling::Decide { verdict, note } => {
                    if let Some(note) = note {
                        if matches!(verdict, Verdict::Deny { .. }) {
                            self.printer.denied(&approval.call_id);
                        }
                        self.printer.note(&note);
                    }
                    self.decide_or_deny(&approval, verdict).await?;
                }
            }
        }
        Ok(())
    }

    /// Decides a request. Where the host refuses the decision, because the scope cannot be given, the
    /// request is denied with the sentence of the refusal.
    pub(super) async fn decide_or_deny(
        &mut self,
        approval: &ApprovalRequest,
        verdict: Verdict,
    ) -> Result<(), Failure> {
        let refused = match self.decide(approval, verdict).await {
            Ok(()) => return Ok(()),
            Err(Failure { exit: Exit::Signal(number), message }) => {
                return Err(Failure::new(Exit::Signal(number), message));
            }
            Err(refused) => refused.message,
        };
        let deny = Verdict::Deny { reason: refused.clone() };
        if self.decide(approval, deny).await.is_ok() {
            let note = format!("denied: {}: {refused}", approval.line());
            self.printer.denied(&approval.call_id);
            self.printer.note(&note);
            self.inbox.note_denied(&note);
        }
        // Where this is refused, too, another client has decided.
        Ok(())
    }

    /// Sends the decision of a request.
    pub async fn decide(
        &mut self,
        approval: &ApprovalRequest,
        verdict: Verdict,
    ) -> Result<(), Failure> {
        let method = Method::Decide { approval: approval.id.clone(), verdict };
        self.call(None, method).await.map(drop)
    }
}
