//! Questions that a server wants to be answered as tasks. Time is paused.

use super::*;
use crate::client::questions::{Elicitation, ElicitationAnswer, ElicitationHandler};
use crate::era::LEGACY;

/// Takes as many seconds as the question's message says. Counts the questions that are open.
#[derive(Clone, Default)]
struct SlowPerson(Arc<Mutex<usize>>);

struct OpenForm(Arc<Mutex<usize>>);

impl Drop for OpenForm {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
    }
}

impl ElicitationHandler for SlowPerson {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
        *self.0.lock() += 1;
        let form = OpenForm(Arc::clone(&self.0));
        Box::pin(async move {
            let _form = form;
            let seconds = question.message.parse().unwrap();
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            ElicitationAnswer::Accept(Map::from_iter([("who".to_owned(), json!("Ada"))]))
        })
    }
}

struct AskingServer {
    session: Arc<ClientSession>,
    recorder: Arc<RecordingTransport>,
    inbox: Arc<dyn TransportInbox>,
    person: SlowPerson,
    last_id: u64,
}

impl AskingServer {
    fn new(revision: &str) -> Self {
        let person = SlowPerson::default();
        let questions = ServerQuestions {
            elicitation_handler: Some(Arc::new(person.clone())),
            ..ServerQuestions::default()
        };
        let diagnostics = ServerDiagnostics::new("house", Redactor::default());
        let subscriptions = ResourceSubscriptions::new();
        let session = ClientSession::new(diagnostics, Arc::new(questions), subscriptions);
        let recorder = Arc::new(RecordingTransport::default());
        session.set_transport(Arc::clone(&recorder) as Arc<dyn Transport>);
        session.set_protocol(ProtocolEra::Legacy, revision, Map::new());
        Self {
            inbox: session.inbox(),
            session,
            recorder,
            person,
            last_id: 0,
        }
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let request = RpcMessage::Request {
            id: json!(self.last_id),
            method: method.to_owned(),
            params,
        };
        self.inbox.on_message(request, None);
        self.last_id
    }

    fn response(&self, id: u64) -> Option<Value> {
        let mut sent = self.recorder.sent().into_iter();
        sent.find(|message| message["id"] == id)
    }

    /// The response to a request that is answered at once.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        settle().await;
        self.response(id)
            .unwrap_or_else(|| panic!("no answer to {method}"))
    }

    /// Asks for a task, and returns it.
    async fn start(&mut self, seconds: u64, wanted: Value) -> Value {
        let params = json!({ "message": seconds.to_string(), "task": wanted });
        let mut created = self.ask("elicitation/create", params).await;
        assert!(created["error"].is_null(), "{created}");
        created["result"]["task"].take()
    }

    async fn status(&mut self, id: &Value) -> Value {
        let state = self.ask("tasks/get", json!({ "taskId": id })).await;
        state["result"]["status"].clone()
    }

    async fn count(&mut self) -> usize {
        let listed = self.ask("tasks/list", json!({})).await;
        listed["result"]["tasks"].as_array().unwrap().len()
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_as_a_task() {
    let mut server = AskingServer::new(LEGACY);
    let task = server.start(100, json!({ "ttl": 90_000 })).await;
    assert_eq!(
        (&task["status"], &task["ttl"], &task["pollInterval"]),
        (&json!("working"), &json!(90_000), &json!(1000))
    );
    assert!(task["createdAt"].as_str().unwrap().ends_with('Z'), "{task}");
    let id = &task["taskId"];
    let waits = server.send("tasks/result", json!({ "taskId": id }));
    tokio::time::sleep(Duration::from_secs(99)).await;
    assert_eq!(server.status(id).await, "working");
    assert_eq!(server.response(waits), None, "it waits for the end");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let expected = json!({
        "action": "accept", "content": { "who": "Ada" },
        "_meta": { "io.modelcontextprotocol/related-task": { "taskId": id } },
    });
    assert_eq!(server.response(waits).unwrap()["result"], expected);
    assert_eq!(server.status(id).await, "completed");
    let again = server.ask("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(again["result"], expected);
    assert_eq!(server.count().await, 1);
    // Its time is over, but the server may not have asked for it yet.
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(server.count().await, 1);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(server.count().await, 0);
    assert_eq!(server.status(id).await, Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_question_is_withdrawn_and_stays_cancelled() {
    let mut server = AskingServer::new(LEGACY);
    let id = server.start(10, json!({})).await["taskId"].take();
    settle().await;
    assert_eq!(*server.person.0.lock(), 1);
    let waits = server.send("tasks/result", json!({ "taskId": id }));
    let cancelled = server.ask("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(cancelled["result"]["status"], "cancelled");
    assert_eq!(*server.person.0.lock(), 0, "nobody is asked any more");
    assert_eq!(
        server.response(waits).unwrap()["result"]["action"],
        "cancel"
    );
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(server.status(&id).await, "cancelled");
    let late = server.ask("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(late["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn tasks_of_others_and_nonsense_are_refused() {
    let mut server = AskingServer::new(LEGACY);
    let mut other = AskingServer::new(LEGACY);
    let foreign = other.start(10, json!({})).await["taskId"].take();
    let ids = [foreign, json!("made up"), json!(1), json!({}), Value::Null];
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        for id in &ids {
            let refused = server.ask(method, json!({ "taskId": id })).await;
            assert_eq!(refused["error"]["code"], -32602, "{method} {id}");
        }
        let refused = server.ask(method, json!("nonsense")).await;
        assert_eq!(refused["error"]["code"], -32602, "{method}");
    }
    let refused = server.ask("tasks/list", json!({ "cursor": "2" })).await;
    assert_eq!(refused["error"]["code"], -32602);
    for wanted in [
        json!({ "ttl": -1 }),
        json!({ "ttl": "x" }),
        json!({ "ttl": 1e300 }),
    ] {
        assert_eq!(server.start(1, wanted).await["ttl"], 3_600_000);
    }
    assert_eq!(server.start(1, json!({ "ttl": 1 })).await["ttl"], 60_000);
}

#[tokio::test(start_paused = true)]
async fn questions_without_tasks_are_answered_as_before() {
    for (revision, wanted) in [
        (LEGACY, Value::Null),
        (LEGACY, json!(true)),
        ("2025-06-18", json!({ "ttl": 1000 })),
    ] {
        let mut server = AskingServer::new(revision);
        let params = json!({ "message": "0", "task": wanted });
        let id = server.send("elicitation/create", params);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let answer = server.response(id).unwrap();
        assert_eq!(answer["result"]["action"], "accept", "{revision}");
    }
    // No model answers here, so there is no task either.
    let mut server = AskingServer::new(LEGACY);
    let params = json!({ "messages": [], "task": {} });
    let refused = server.ask("sampling/createMessage", params).await;
    assert!(refused["error"]["message"].is_string(), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_asks_for_results_takes_bounded_memory() {
    let mut server = AskingServer::new(LEGACY);
    let mut refused = 0;
    for _ in 0..100 {
        let params = json!({ "message": "10", "task": {} });
        let created = server.ask("elicitation/create", params).await;
        refused += usize::from(created["error"]["code"] == -32603);
    }
    assert_eq!(refused, 100 - MAX_OPEN_QUESTIONS);
    assert_eq!(*server.person.0.lock(), MAX_OPEN_QUESTIONS);
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_secs(20)).await;
        for _ in 0..MAX_OPEN_QUESTIONS {
            server.start(10, json!({})).await;
        }
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(server.count().await, 64);
    // Requests that wait are limited too. The others are ignored.
    let id = server.start(10_000, json!({})).await["taskId"].take();
    let before = server.last_id;
    for _ in 0..500 {
        server.send("tasks/result", json!({ "taskId": id }));
    }
    settle().await;
    let cancelled = server.send("tasks/cancel", json!({ "taskId": id }));
    settle().await;
    assert_eq!(server.response(cancelled), None, "128 requests are open");
    tokio::time::sleep(Duration::from_secs(20_000)).await;
    let answered = (before + 1..=server.last_id).filter(|id| server.response(*id).is_some());
    assert_eq!(answered.count(), 128);
}

#[tokio::test(start_paused = true)]
async fn questions_end_with_their_session() {
    let mut server = AskingServer::new(LEGACY);
    server.start(10_000, json!({})).await;
    settle().await;
    assert_eq!(*server.person.0.lock(), 1);
    server.inbox.on_closed(SessionEnd::default());
    settle().await;
    assert_eq!(*server.person.0.lock(), 0);
    assert_eq!(Arc::strong_count(&server.session), 1);
}
