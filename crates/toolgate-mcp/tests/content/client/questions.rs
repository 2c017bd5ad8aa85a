//! How the test client answers questions.

use serde_json::{Value, json};

use super::{Listener, TestClient, write_line};

pub(super) fn question_label(question: &Value) -> String {
    let message = question["params"]["message"].as_str();
    let method = || question["method"].as_str();
    message.or_else(method).unwrap().to_owned()
}

/// The answer of a person to a form, or of a model or a program to other questions.
pub(super) fn answer_to(question: &Value, form: &Value) -> Value {
    match question["method"].as_str().unwrap() {
        "elicitation/create" => form.clone(),
        "sampling/createMessage" => json!({
            "role": "assistant", "model": "m", "content": { "type": "text", "text": "the model says so" },
        }),
        "roots/list" => json!({ "roots": [{ "uri": "file:///home/ada", "name": "home" }] }),
        method if method.starts_with("thing/") => json!({ "answers": question["params"] }),
        other => panic!("{other}"),
    }
}

impl TestClient {
    /// Answers the questions of a task.
    pub(crate) async fn answer_task(&mut self, id: &Value, state: &Value) {
        let mut params = id.clone();
        for (key, question) in state["inputRequests"].as_object().unwrap() {
            let label = question_label(question);
            self.received_questions.lock().push(label);
            params["inputResponses"][key] = answer_to(question, self.answer.as_ref().unwrap());
        }
        self.result("tasks/update", params).await;
    }
}

impl Listener {
    pub(super) async fn answer_question(&self, question: &Value) {
        self.received_questions
            .lock()
            .push(question_label(question));
        self.question_requests.lock().push(question.clone());
        let result = answer_to(question, self.answer.as_ref().unwrap());
        let response = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
        write_line(&self.writer, &response).await;
    }
}
