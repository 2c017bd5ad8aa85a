//! Approvals in the MCP client that made the call.

use std::time::Duration;

use futures::future::{BoxFuture, pending};
use serde_json::json;
use tokio::time::timeout;
use toolgate_core::{
    Approval, ApprovalActor, ApprovalChannel, ApprovalRequest, Approver, Question, QuestionError,
    Redactor,
};

use super::{first_answer, question_text};

// How long only the client is asked. After that, people elsewhere are asked as well.
const CLIENT_FIRST: Duration = Duration::from_secs(15);

/// Asks the person behind the client, if the client can show a form and may approve its calls.
pub(crate) struct ClientApprover {
    pub(crate) redactor: Redactor,
}

impl Approver for ClientApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let question = approval_question(&request, &self.redactor);
            let questions = request
                .questions
                .filter(|questions| question.is_supported_by(questions.capabilities()));
            let Some(questions) = questions else {
                return Approval::Nobody;
            };
            let answers = match questions.ask(vec![question]).await {
                // The executor's time is up as well, and it says so in the error.
                Err(QuestionError::TimedOut) => return pending().await,
                answers => answers.unwrap_or_default(),
            };
            let Some(answer) = answers.first() else {
                return Approval::Nobody;
            };
            let mut by = ApprovalActor::new(ApprovalChannel::Client);
            if let Some(caller) = request.caller {
                by = by.with_name(caller);
            }
            let is_ticked = answer["content"]["run"] == true;
            match answer["action"].as_str() {
                Some("accept") if is_ticked => Approval::Granted(by),
                Some("accept" | "decline") => Approval::Refused(by),
                // The form was dismissed, which is not an answer.
                _ => Approval::Nobody,
            }
        })
    }

    fn hint(&self) -> Option<String> {
        let text = "A person has to agree: make the call again, and tick the box that this client shows. If it shows \
                    none, it can't ask (it needs MCP's elicitation with forms): run the tool with 'toolgate call', or \
                    connect the client to 'toolgate serve', where people approve calls at the dashboard";
        Some(text.to_owned())
    }
}

/// Asks in the client that made the call, if it may approve its calls. Asks elsewhere if it can't,
/// or if nobody answers there. The first answer counts.
pub(crate) struct ClientFirstApprover<T> {
    pub(crate) client: ClientApprover,
    pub(crate) elsewhere: T,
}

impl<T: Approver> Approver for ClientFirstApprover<T> {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        if request.questions.is_none() {
            return self.elsewhere.ask(request);
        }
        Box::pin(async move {
            let mut in_client = self.client.ask(request);
            match timeout(CLIENT_FIRST, &mut in_client).await {
                Ok(Approval::Nobody) => self.elsewhere.ask(request).await,
                Ok(answer) => answer,
                Err(_) => first_answer(in_client, self.elsewhere.ask_alongside(request)).await,
            }
        })
    }

    fn hint(&self) -> Option<String> {
        self.elsewhere.hint()
    }
}

/// The box has to be ticked, so that a client that accepts forms with
/// their defaults approves nothing.
fn approval_question(request: &ApprovalRequest<'_>, redactor: &Redactor) -> Question {
    let run = json!({ "type": "boolean", "title": "Run it", "default": false });
    Question {
        key: "approval".to_owned(),
        server: Question::OWN.to_owned(),
        method: "elicitation/create".to_owned(),
        params: json!({
            "mode": "form",
            "message": question_text(request, redactor),
            "requestedSchema": { "type": "object", "properties": { "run": run }, "required": ["run"] },
        }),
    }
}

#[cfg(test)]
mod tests;
