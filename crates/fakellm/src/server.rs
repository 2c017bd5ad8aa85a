//! The server: one task per connection, and a record of all requests.

use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::answer::AnswerBody;
use crate::http::{self, RecordedRequest};
use crate::rules::{self, Api, IssuedSignatures, ServerKind};
use crate::send::send;
use crate::{Answer, Script};

/// The model that a double claims to have, as Ollama reports it.
#[derive(Debug, Clone)]
pub struct FakeModel {
    /// Requests for any other name get a 404, if the provider knows that error.
    pub name: String,
    pub capabilities: Vec<String>,
    /// The context size it was trained for, in tokens.
    pub context_length: u64,
}

impl FakeModel {
    /// A model that can use tools.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            capabilities: vec!["completion".to_owned(), "tools".to_owned()],
            context_length: 40_960,
        }
    }
}

/// A double that runs until it is dropped.
pub struct FakeLlm {
    shared: Arc<Shared>,
    url: String,
    listening: AbortHandle,
}

struct Shared {
    state: Mutex<State>,
    /// The rules that requests are checked by; `None` if they aren't checked.
    checks: Option<ServerKind>,
    model: Option<FakeModel>,
    /// How many answers were abandoned because the client closed its connection.
    disconnects: watch::Sender<usize>,
    /// How many chat requests have arrived.
    chat_requests: watch::Sender<usize>,
}

struct State {
    script: Script,
    requests: Vec<RecordedRequest>,
    issued: IssuedSignatures,
}

impl FakeLlm {
    /// Checks every request and answers by the script.
    ///
    /// # Panics
    /// If the loopback has no free port.
    pub async fn start(script: Script) -> Self {
        Self::with(script, None, Some(ServerKind::Provider)).await
    }

    /// Like `start`, with one model that can be asked for.
    ///
    /// # Panics
    /// If the loopback has no free port.
    pub async fn with_model(script: Script, model: FakeModel) -> Self {
        Self::with(script, Some(model), Some(ServerKind::Provider)).await
    }

    /// Like `start`, as a self-hosted server, which accepts template options
    /// that OpenAI itself refuses.
    ///
    /// # Panics
    /// If the loopback has no free port.
    pub async fn self_hosted(script: Script, model: FakeModel) -> Self {
        Self::with(script, Some(model), Some(ServerKind::SelfHosted)).await
    }

    /// Accepts everything, to record the requests of other programs.
    ///
    /// # Panics
    /// If the loopback has no free port.
    pub async fn lenient(script: Script) -> Self {
        Self::with(script, None, None).await
    }

    async fn with(script: Script, model: Option<FakeModel>, checks: Option<ServerKind>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("no port on the loopback: {error}"));
        let address = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("a listener without an address: {error}"));
        let state = State {
            script,
            requests: Vec::new(),
            issued: IssuedSignatures::default(),
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            checks,
            model,
            disconnects: watch::Sender::new(0),
            chat_requests: watch::Sender::new(0),
        });
        let listening = tokio::spawn(listen(listener, Arc::clone(&shared))).abort_handle();
        Self {
            shared,
            url: format!("http://{address}"),
            listening,
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// All chat requests so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        let all = self.all_requests().into_iter();
        all.filter(|request| Api::from_chat_path(&request.path).is_some())
            .collect()
    }

    /// All requests so far, including those for the list of models and the like.
    pub fn all_requests(&self) -> Vec<RecordedRequest> {
        self.shared.state().requests.clone()
    }

    /// Deletes the recorded requests, for a double that gets very many.
    pub fn clear_requests(&self) {
        self.shared.state().requests.clear();
    }

    /// Violations of the rules, request by request.
    pub fn refusals(&self) -> Vec<String> {
        let all = self.all_requests().into_iter();
        all.filter_map(|request| request.refused).collect()
    }

    /// A handle for a task that doesn't own the double.
    pub fn waiter(&self) -> RequestWaiter {
        RequestWaiter(Arc::clone(&self.shared))
    }

    /// Waits until this many chat requests have arrived.
    pub async fn wait_for_requests(&self, count: usize) {
        wait_for(&self.shared.chat_requests, count).await;
    }

    /// Waits until clients have closed their connection during this many answers.
    pub async fn wait_for_disconnects(&self, count: usize) {
        wait_for(&self.shared.disconnects, count).await;
    }
}

/// Waits for requests at a double.
pub struct RequestWaiter(Arc<Shared>);

impl RequestWaiter {
    /// Like [`FakeLlm::wait_for_requests`].
    pub async fn wait_for_requests(&self, count: usize) {
        wait_for(&self.0.chat_requests, count).await;
    }
}

async fn wait_for(counter: &watch::Sender<usize>, count: usize) {
    let mut counter = counter.subscribe();
    // The sender lives as long as the double that is borrowed here.
    drop(counter.wait_for(|now| *now >= count).await);
}

impl Drop for FakeLlm {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            // A client that disconnects isn't an error of the double.
            drop(serve(stream, &shared).await);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some(mut request) = http::read(&mut stream, &mut buffer).await? {
        let api = Api::from_path(&request.path);
        let is_chat = Api::from_chat_path(&request.path).is_some();
        let answer = if is_chat {
            shared.answer_chat(&mut request, api)
        } else {
            shared.answer_other(&request)
        };
        shared.state().requests.push(request);
        if is_chat {
            shared.chat_requests.send_modify(|count| *count += 1);
        }
        let sent = send(&mut stream, &answer, api).await;
        if !sent.as_ref().is_ok_and(|sent| *sent) {
            shared.disconnects.send_modify(|count| *count += 1);
            return sent.map(drop);
        }
        if answer.fault.is_some() {
            break;
        }
    }
    Ok(())
}

impl Shared {
    fn answer_chat(&self, request: &mut RecordedRequest, api: Api) -> Answer {
        let mut state = self.state();
        if let Some(server) = self.checks
            && let Err(problem) = rules::check(request, api, server, &state.issued)
        {
            request.refused = Some(problem.clone());
            return Answer::fails(400, "invalid_request_error", &problem);
        }
        if api == Api::Ollama
            && let Some(problem) = self.model_problem(request)
        {
            return problem;
        }
        let answer = state.script.next(request);
        if let AnswerBody::Said(said) = &answer.body {
            state.issued.record(&said.parts);
        }
        answer
    }

    /// What Ollama says about a model that it doesn't have or that lacks a capability.
    fn model_problem(&self, request: &RecordedRequest) -> Option<Answer> {
        let model = self.model.as_ref()?;
        let body = request.json();
        let asked = body["model"].as_str().unwrap_or_default();
        if asked != model.name {
            let text = format!("model '{asked}' not found");
            return Some(Answer::fails(404, "", &text));
        }
        let lacks = |capability: &str| !model.capabilities.iter().any(|known| known == capability);
        let has_tools = body["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty());
        if has_tools && lacks("tools") {
            let text = format!("registry.ollama.ai/library/{asked} does not support tools");
            return Some(Answer::fails(400, "", &text));
        }
        if body["think"] == true && lacks("thinking") {
            let text = format!("\"{asked}\" does not support thinking");
            return Some(Answer::fails(400, "", &text));
        }
        None
    }

    /// Answers requests for the list of models and the like.
    fn answer_other(&self, request: &RecordedRequest) -> Answer {
        let name = self.model.as_ref().map_or("fake", |model| &model.name);
        let details =
            json!({ "family": "qwen3", "parameter_size": "4.0B", "quantization_level": "Q4_K_M" });
        let listed =
            json!({ "name": name, "model": name, "size": 2_500_000_000_u64, "details": details });
        let body = match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/api/version") => json!({ "version": "0.24.0" }),
            ("GET", "/api/tags" | "/api/ps") => json!({ "models": [listed] }),
            ("POST", "/api/show") => return self.show(request),
            ("GET", "/v1/models") => {
                json!({ "object": "list", "data": [{ "id": name, "object": "model" }] })
            }
            ("GET", path) if path.starts_with("/v1beta/models") => {
                json!({ "models": [{ "name": format!("models/{name}"), "inputTokenLimit": 1_048_576 }] })
            }
            _ => return Answer::fails(404, "not_found_error", "there is nothing here"),
        };
        Answer::raw(body.to_string()).header("content-type", "application/json")
    }

    fn show(&self, request: &RecordedRequest) -> Answer {
        let fallback = FakeModel::new("fake");
        let model = self.model.as_ref().unwrap_or(&fallback);
        if request.json()["model"] != model.name.as_str() {
            return Answer::fails(404, "", "model not found");
        }
        let body = json!({
            "capabilities": model.capabilities,
            "model_info": { "general.architecture": "qwen3", "qwen3.context_length": model.context_length },
            "details": { "family": "qwen3" },
        });
        Answer::raw(body.to_string()).header("content-type", "application/json")
    }
}

#[cfg(test)]
mod tests;
