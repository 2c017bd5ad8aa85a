//! Sends arbitrary requests to the client while a call runs.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::FakeServer;
use crate::start::pause;

// A request may be ignored.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sends requests of the form `{method, params}`, and returns the responses. `"times": N` repeats
/// one at once; `"later": true` returns its response last, while others are sent; `{"pause": MS}`
/// waits. `$TASK` in parameters is the id of the first task that a response has named.
pub(crate) fn send_all(server: &FakeServer, requests: &Value) -> Value {
    let (mut responses, mut waiting) = (Vec::new(), Vec::new());
    let mut task = None;
    for request in requests.as_array().into_iter().flatten() {
        if let Some(ms) = request["pause"].as_u64() {
            pause(ms);
            continue;
        }
        let mut params = request["params"].clone();
        if let (Some(task), Some("$TASK")) = (&task, params["taskId"].as_str()) {
            params["taskId"] = json!(task);
        }
        let method = request["method"].as_str().unwrap_or_default();
        let times = request["times"].as_u64().unwrap_or(1);
        let sent: Vec<Receiver<Value>> = (0..times).map(|_| server.ask(method, &params)).collect();
        if request["later"] == true {
            waiting.extend(sent);
            continue;
        }
        let mut patience = PATIENCE;
        for response in sent {
            let response = response.recv_timeout(patience).unwrap_or_default();
            // If one is ignored, so are the rest.
            if response.is_null() {
                patience = Duration::ZERO;
            }
            let id = response["result"]["task"]["taskId"].as_str();
            task = task.or_else(|| id.map(str::to_owned));
            responses.push(response);
        }
    }
    let late = waiting
        .iter()
        .map(|it| it.recv_timeout(PATIENCE).unwrap_or_default());
    responses.extend(late);
    json!(responses)
}
