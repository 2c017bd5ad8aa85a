//! The listener: one task for each connection, all requests kept.

use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::answer::Body;
use crate::http::{self, Recorded};
use crate::rules::{self, Api, Issued, Server};
use crate::send::send;
use crate::{Answer, Script};

/// The model a double claims to have, as Ollama tells of it.
#[derive(Debug, Clone)]
pub struct Model {
    /// Its name; every other one is a 404, as far as the provider has such.
    pub name: String,
    /// What it can do.
    pub capabilities: Vec<String>,
    /// How many tokens it was trained for.
    pub context_length: u64,
}

impl Model {
    /// One that can use tools.
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
    /// By whose rules requests are checked; `None`: they are not.
    checks: Option<Server>,
    model: Option<Model>,
    /// How many answers the client left by closing its connection.
    left: watch::Sender<usize>,
    /// How many requests for chat have come.
    asked: watch::Sender<usize>,
}

struct State {
    script: Script,
    requests: Vec<Recorded>,
    issued: Issued,
}

impl FakeLlm {
    /// Checks every request and answers by the script.
    ///
    /// # Panics
    /// If there is no free port on the loopback.
    pub async fn start(script: Script) -> Self {
        Self::with(script, None, Some(Server::Provider)).await
    }

    /// The same, with one model that can be asked for.
    ///
    /// # Panics
    /// If there is no free port on the loopback.
    pub async fn with_model(script: Script, model: Model) -> Self {
        Self::with(script, Some(model), Some(Server::Provider)).await
    }

    /// The same as a server of one's own, which takes what OpenAI itself refuses: options for a model's template.
    ///
    /// # Panics
    /// If there is no free port on the loopback.
    pub async fn own_server(script: Script, model: Model) -> Self {
        Self::with(script, Some(model), Some(Server::Own)).await
    }

    /// Answers whatever it is asked: a recorder of other programs' requests.
    ///
    /// # Panics
    /// If there is no free port on the loopback.
    pub async fn lenient(script: Script) -> Self {
        Self::with(script, None, None).await
    }

    async fn with(script: Script, model: Option<Model>, checks: Option<Server>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("no port on the loopback: {error}"));
        let address = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("a listener without an address: {error}"));
        let state = State {
            script,
            requests: Vec::new(),
            issued: Issued::default(),
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            checks,
            model,
            left: watch::Sender::new(0),
            asked: watch::Sender::new(0),
        });
        let listening = tokio::spawn(listen(listener, Arc::clone(&shared))).abort_handle();
        Self {
            shared,
            url: format!("http://{address}"),
            listening,
        }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// All requests for chat so far.
    pub fn requests(&self) -> Vec<Recorded> {
        let all = self.all_requests().into_iter();
        all.filter(|request| Api::of_chat(&request.path).is_some())
            .collect()
    }

    /// All requests so far, also those for the list of models and the like.
    pub fn all_requests(&self) -> Vec<Recorded> {
        self.shared.state().requests.clone()
    }

    /// Forgets the requests so far, for a double that is asked very often.
    pub fn forget(&self) {
        self.shared.state().requests.clear();
    }

    /// What was off, request by request.
    pub fn refusals(&self) -> Vec<String> {
        let all = self.all_requests().into_iter();
        all.filter_map(|request| request.refused).collect()
    }

    /// For a task that waits beside the one that talks.
    pub fn waiter(&self) -> Waiter {
        Waiter(Arc::clone(&self.shared))
    }

    /// Waits until so many requests for chat have come.
    pub async fn asked(&self, count: usize) {
        wait_for(&self.shared.asked, count).await;
    }

    /// Waits until the client has left so many answers by closing its connection.
    pub async fn left(&self, count: usize) {
        wait_for(&self.shared.left, count).await;
    }
}

/// Waits for what happens at a double.
pub struct Waiter(Arc<Shared>);

impl Waiter {
    /// As [`FakeLlm::asked`].
    pub async fn asked(&self, count: usize) {
        wait_for(&self.0.asked, count).await;
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
            // A client that goes away is no failure of the double.
            drop(serve(stream, &shared).await);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some(mut request) = http::read(&mut stream, &mut buffer).await? {
        let api = Api::of_path(&request.path);
        let is_chat = Api::of_chat(&request.path).is_some();
        let answer = if is_chat {
            shared.answer_chat(&mut request, api)
        } else {
            shared.answer_other(&request)
        };
        shared.state().requests.push(request);
        if is_chat {
            shared.asked.send_modify(|count| *count += 1);
        }
        let sent = send(&mut stream, &answer, api).await;
        if !sent.as_ref().is_ok_and(|sent| *sent) {
            shared.left.send_modify(|count| *count += 1);
            return sent.map(drop);
        }
        if answer.fault.is_some() {
            break;
        }
    }
    Ok(())
}

impl Shared {
    fn answer_chat(&self, request: &mut Recorded, api: Api) -> Answer {
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
        if let Body::Said(said) = &answer.body {
            state.issued.note(&said.parts);
        }
        answer
    }

    /// What Ollama says of a model it has not, or that can not do what is asked of it.
    fn model_problem(&self, request: &Recorded) -> Option<Answer> {
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

    /// The list of models and the like.
    fn answer_other(&self, request: &Recorded) -> Answer {
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

    fn show(&self, request: &Recorded) -> Answer {
        let fallback = Model::new("fake");
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
