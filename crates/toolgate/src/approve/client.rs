//! Approvals in the MCP client that made the call.

use futures::future::BoxFuture;
use serde_json::json;
use toolgate_core::{
    Approval, ApprovalActor, ApprovalChannel, ApprovalRequest, Approver, Question, Redactor,
};

use super::question_text;

/// Asks the person behind the client, if the client can show a form. Only for clients that this
/// person started: a client with a token could answer for them.
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
            let answers = questions.ask(vec![question]).await.unwrap_or_default();
            let Some(answer) = answers.first() else {
                return Approval::Nobody;
            };
            let by = ApprovalActor::new(ApprovalChannel::Client);
            let is_accepted = answer["action"] == "accept" && answer["content"]["run"] == true;
            match answer["action"].as_str() {
                Some("accept" | "decline") if is_accepted => Approval::Granted(by),
                Some("accept" | "decline") => Approval::Refused(by),
                // The form was dismissed, which is not an answer.
                _ => Approval::Nobody,
            }
        })
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
