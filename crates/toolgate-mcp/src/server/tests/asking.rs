//! Calls that ask their client something before they answer. Time is paused, so
//! minutes pass at once.

use futures::future::join;
use serde_json::Map;
use toolgate_core::{CallRecord, ErrorKind, Observer, Question, QuestionError};

use super::*;

mod early;

const STATE: &str = "requestState";
/// What a client may take to answer, by default.
const LIMIT: Duration = Duration::from_secs(120);

fn form(key: &str) -> Question {
    Question {
        key: key.to_owned(),
        server: "files".to_owned(),
        method: "elicitation/create".to_owned(),
        params: json!({ "message": key, "requestedSchema": { "type": "object" } }),
    }
}

pub(super) async fn put(context: &CallContext, keys: &[&str]) -> Result<Vec<Value>, QuestionError> {
    let handler = context.questions().ok_or(QuestionError::Gone)?;
    let _paused = context.pause_clock();
    handler
        .ask(keys.iter().map(|key| form(key)).collect())
        .await
}

pub(super) fn answers_to_json(answers: Result<Vec<Value>, QuestionError>) -> Value {
    answers.map_or_else(|error| json!(error.to_string()), Value::from)
}

/// Notes how calls ended.
#[derive(Clone, Default)]
struct OutcomeRecorder(Arc<parking_lot::Mutex<Vec<Option<ErrorKind>>>>);

impl Observer for OutcomeRecorder {
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        let error = record.outcome.result.as_ref().err();
        self.0.lock().push(error.map(ToolError::kind));
        None
    }
}

impl OutcomeRecorder {
    async fn wait_for(&self, count: usize) -> Vec<Option<ErrorKind>> {
        for _ in 0..1000 {
            if self.0.lock().len() >= count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.0.lock().clone()
    }
}

fn asking_server() -> (McpServer, OutcomeRecorder) {
    let manager = Arc::new(ToolManager::new());
    manager.add(tool("ask", |arguments, context| {
        Box::pin(async move {
            let mut answers = Vec::new();
            for round in 0..arguments["a"].as_u64().unwrap_or(1) {
                answers.push(answers_to_json(
                    put(&context, &[&format!("round {round}")]).await,
                ));
            }
            Ok(ToolOutput::text(json!(answers).to_string()))
        })
    }));
    manager.add(tool("several", |_, context| {
        Box::pin(async move {
            let answers = answers_to_json(put(&context, &["one", "two"]).await);
            Ok(ToolOutput::text(answers.to_string()))
        })
    }));
    manager.add(tool("overlap", |_, context| {
        Box::pin(async move {
            let (one, two) = join(put(&context, &["one"]), put(&context, &["two"])).await;
            Ok(ToolOutput::text(
                json!([answers_to_json(one), answers_to_json(two)]).to_string(),
            ))
        })
    }));
    // Its server ends while a person thinks.
    manager.add(tool("dies", |_, context| {
        Box::pin(async move {
            let asking = put(&context, &["one"]);
            drop(tokio::time::timeout(Duration::from_secs(5), asking).await);
            Err(ToolError::failed("the server has died"))
        })
    }));
    manager.add(tool("endless", |_, context| {
        Box::pin(async move {
            let mut asked = 0;
            while put(&context, &["again"]).await.is_ok() {
                asked += 1;
            }
            Ok(ToolOutput::text(asked.to_string()))
        })
    }));
    let endings = OutcomeRecorder::default();
    let executor = ToolExecutor::builder(manager).observer(endings.clone());
    let options = ServeOptions::new("test", "1.2.3");
    (McpServer::new(executor.build(), options), endings)
}

fn text(message: &Value) -> &str {
    let text = message["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{message}"))
}

pub(super) fn accepted() -> Value {
    json!({ "action": "accept", "content": { "who": "Ada" } })
}

fn legacy_call(id: u64, name: &str, arguments: &Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

fn modern_call(id: u64, name: &str, arguments: &Value, more: Value) -> Value {
    let mut message = legacy_call(id, name, arguments);
    let Value::Object(more) = more else { panic!() };
    let params = message["params"].as_object_mut().unwrap();
    params.extend(more);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    params.insert("_meta".to_owned(), meta);
    message
}

/// Answers every question of an `input_required` result.
fn answers_to(asked: &Value, answer: &Value) -> Value {
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    let answers: Map<String, Value> = requests
        .keys()
        .map(|key| (key.clone(), answer.clone()))
        .collect();
    json!({ "inputResponses": answers, STATE: asked["result"][STATE] })
}

async fn legacy_client(server: McpServer) -> LineClient {
    let mut client = LineClient::new(server);
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "c", "version": "1" },
    });
    client.ask("initialize", params).await;
    client
}

impl LineClient {
    async fn answer(&mut self, question: &Value, result: &Value) {
        assert_eq!(question["method"], "elicitation/create", "{question}");
        self.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }))
            .await;
    }

    async fn modern(&mut self, name: &str, arguments: Value, more: Value) -> Value {
        self.send(modern_call(1, name, &arguments, more)).await;
        self.next().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_with_a_session_is_asked_in_rounds_and_its_first_answer_counts() {
    let (server, endings) = asking_server();
    let mut client = legacy_client(server).await;
    client.send(legacy_call(7, "ask", &json!({ "a": 2 }))).await;
    let first = client.next().await;
    assert_eq!(first["params"]["message"], "round 0");
    // A person may take longer than a tool.
    tokio::time::sleep(Duration::from_secs(100)).await;
    client.answer(&first, &accepted()).await;
    let second = client.next().await;
    assert_ne!(first["id"], second["id"]);
    client.answer(&first, &json!({ "action": "decline" })).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    client.answer(&second, &accepted()).await;
    let done = client.next().await;
    assert_eq!(done["id"], 7);
    let both: Value = serde_json::from_str(text(&done)).unwrap();
    assert_eq!(both, json!([[accepted()], [accepted()]]));
    assert_eq!(endings.wait_for(1).await, [None]);
}

#[tokio::test(start_paused = true)]
async fn overlapping_questions_are_all_answered() {
    let expected = json!([[{ "action": "accept", "n": 1 }], [{ "action": "accept", "n": 2 }]]);
    let (server, _) = asking_server();
    let mut client = legacy_client(server).await;
    client.send(legacy_call(7, "overlap", &json!({}))).await;
    let (one, two) = (client.next().await, client.next().await);
    client
        .answer(&two, &json!({ "action": "accept", "n": 2 }))
        .await;
    client
        .answer(&one, &json!({ "action": "accept", "n": 1 }))
        .await;
    let done = client.next().await;
    assert_eq!(
        serde_json::from_str::<Value>(text(&done)).unwrap(),
        expected
    );

    let (server, _) = asking_server();
    let mut client = LineClient::new(server);
    let one = client.modern("overlap", json!({}), json!({})).await;
    let answer = answers_to(&one, &json!({ "action": "accept", "n": 1 }));
    let two = client.modern("overlap", json!({}), answer).await;
    let answer = answers_to(&two, &json!({ "action": "accept", "n": 2 }));
    let done = client.modern("overlap", json!({}), answer).await;
    assert_eq!(
        serde_json::from_str::<Value>(text(&done)).unwrap(),
        expected
    );
}

#[tokio::test(start_paused = true)]
async fn nonsense_and_errors_of_a_client_are_no_answers() {
    for (answer, expected) in [
        (
            json!({ "result": { "action": "dance" } }),
            "can't be understood",
        ),
        (json!({ "result": 7 }), "can't be understood"),
        (
            json!({ "error": { "code": -1, "message": "no thanks" } }),
            "no thanks (code -1)",
        ),
    ] {
        let (server, _) = asking_server();
        let mut client = legacy_client(server).await;
        client.send(legacy_call(7, "ask", &json!({}))).await;
        let question = client.next().await;
        let mut message = json!({ "jsonrpc": "2.0", "id": question["id"] });
        (message.as_object_mut().unwrap()).extend(answer.as_object().unwrap().clone());
        client.send(message).await;
        let done = client.next().await;
        assert!(text(&done).contains(expected), "{done}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_is_withdrawn() {
    let (server, endings) = asking_server();
    let mut client = legacy_client(server).await;
    for (tool, seconds, expected) in [
        ("ask", 120, "nobody answered in time"),
        ("dies", 5, "the server has died"),
    ] {
        let started = tokio::time::Instant::now();
        client.send(legacy_call(7, tool, &json!({}))).await;
        let question = client.next().await;
        let withdrawn = client.next().await;
        assert_eq!(started.elapsed().as_secs(), seconds);
        assert_eq!(withdrawn["method"], "notifications/cancelled");
        assert_eq!(withdrawn["params"]["requestId"], question["id"]);
        assert!(text(&client.next().await).contains(expected));
    }
    client.send(legacy_call(8, "ask", &json!({}))).await;
    let question = client.next().await;
    let params = json!({ "requestId": 8 });
    client
        .send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
        .await;
    let withdrawn = client.next().await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    let all = endings.wait_for(3).await;
    let expected = [None, Some(ErrorKind::ToolError), Some(ErrorKind::Cancelled)];
    assert_eq!(all, expected);
}

#[tokio::test(start_paused = true)]
async fn a_modern_client_answers_with_its_next_request() {
    let (server, endings) = asking_server();
    let mut client = LineClient::new(server);
    let mut asked = client.modern("ask", json!({ "a": 3 }), json!({})).await;
    for round in 0..3 {
        let key = format!("round {round}");
        let requests = &asked["result"]["inputRequests"];
        assert_eq!(requests[&key]["params"]["message"], key, "{asked}");
        tokio::time::sleep(Duration::from_secs(100)).await;
        let answer = answers_to(&asked, &accepted());
        asked = client.modern("ask", json!({ "a": 3 }), answer).await;
    }
    let all: Value = serde_json::from_str(text(&asked)).unwrap();
    assert_eq!(all, json!([[accepted()], [accepted()], [accepted()]]));
    assert_eq!(endings.wait_for(1).await, [None]);
}

#[tokio::test(start_paused = true)]
async fn a_state_is_valid_once_for_one_request() {
    let (server, _) = asking_server();
    let mut client = LineClient::new(server);
    let asked = client.modern("several", json!({ "a": 1 }), json!({})).await;
    let answer = answers_to(&asked, &accepted());
    let refused = |message: &Value| {
        assert_eq!(message["error"]["code"], -32602, "{message}");
        let text = message["error"]["message"].as_str().unwrap();
        assert!(text.contains("requestState"), "{text}");
    };
    // Of another tool, with other arguments, and made up.
    refused(
        &client
            .modern("ask", json!({ "a": 1 }), answer.clone())
            .await,
    );
    refused(
        &client
            .modern("several", json!({ "a": 2 }), answer.clone())
            .await,
    );
    let mut made_up = answer.clone();
    made_up[STATE] = json!("AAAA");
    refused(&client.modern("several", json!({ "a": 1 }), made_up).await);
    // None of it used the state up.
    let done = client
        .modern("several", json!({ "a": 1 }), answer.clone())
        .await;
    assert_eq!(text(&done), json!([accepted(), accepted()]).to_string());
    refused(&client.modern("several", json!({ "a": 1 }), answer).await);
}

#[tokio::test(start_paused = true)]
async fn missing_and_unusable_answers_are_asked_for_again_without_more_time() {
    let (server, endings) = asking_server();
    let mut client = LineClient::new(server);
    let started = tokio::time::Instant::now();
    let mut asked = client.modern("several", json!({}), json!({})).await;
    let mut rounds = 0;
    while asked["error"].is_null() {
        assert_eq!(
            asked["result"]["inputRequests"].as_object().unwrap().len(),
            2
        );
        tokio::time::sleep(Duration::from_secs(50)).await;
        let nonsense = json!({ "one": { "action": "dance" }, "three": 3 });
        let answer = json!({ "inputResponses": nonsense, STATE: asked["result"][STATE] });
        asked = client.modern("several", json!({}), answer).await;
        rounds += 1;
    }
    assert_eq!((rounds, started.elapsed().as_secs()), (3, 150));
    assert_eq!(
        endings.wait_for(1).await,
        [None],
        "it went on without answers"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_while_its_client_thinks_is_recorded_and_kept_until_it_expires() {
    let (server, endings) = asking_server();
    let suspended = Arc::clone(&server.service.shared.suspended);
    let mut client = LineClient::new(server);
    let asked = client.modern("dies", json!({}), json!({})).await;
    let failed = Some(ErrorKind::ToolError);
    assert_eq!(endings.wait_for(1).await, [failed]);
    let answer = answers_to(&asked, &accepted());
    let done = client.modern("dies", json!({}), answer).await;
    assert_eq!(text(&done), "the server has died");
    // Nobody fetches the result of the second one.
    client.modern("dies", json!({}), json!({})).await;
    assert_eq!(suspended.len(), 1);
    tokio::time::sleep(LIMIT + Duration::from_secs(1)).await;
    assert_eq!(suspended.len(), 0);
    assert_eq!(endings.wait_for(2).await, [failed, failed]);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_client_never_comes_back_runs_to_its_end() {
    let (server, endings) = asking_server();
    let suspended = Arc::clone(&server.service.shared.suspended);
    let mut client = LineClient::new(server);
    let asked = client.modern("ask", json!({ "a": 5 }), json!({})).await;
    tokio::time::sleep(LIMIT + Duration::from_secs(1)).await;
    assert_eq!(endings.wait_for(1).await, [None]);
    assert_eq!(suspended.len(), 0);
    let late = answers_to(&asked, &accepted());
    let late = client.modern("ask", json!({ "a": 5 }), late).await;
    assert_eq!(late["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_ends_its_suspended_calls_and_records_them() {
    let (server, endings) = asking_server();
    let suspended = Arc::clone(&server.service.shared.suspended);
    let mut client = LineClient::new(server);
    for _ in 0..20 {
        client.modern("ask", json!({}), json!({})).await;
    }
    let started = tokio::time::Instant::now();
    let (rest, end) = client.close().await;
    end.unwrap();
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "nobody can answer"
    );
    assert_eq!((rest.len(), suspended.len()), (0, 0));
    assert_eq!(
        endings.0.lock().len(),
        20,
        "recorded before the session is over"
    );
}

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_may_wait_and_the_next_one_goes_on_without_answers() {
    let (server, endings) = asking_server();
    let suspended = Arc::clone(&server.service.shared.suspended);
    let mut limits = toolgate_core::Limits::default();
    limits.concurrency = 2000;
    let executor = &server.service.executor;
    executor.set_rules(limits, toolgate_core::Policy::default());
    let mut client = LineClient::new(server);
    let mut states = std::collections::HashSet::new();
    for _ in 0..1000 {
        let asked = client.modern("ask", json!({}), json!({})).await;
        states.insert(asked["result"][STATE].as_str().unwrap().to_owned());
    }
    assert_eq!((states.len(), suspended.len()), (1000, 1000));
    let over = client.modern("ask", json!({}), json!({})).await;
    assert!(text(&over).contains("too many calls wait"), "{over}");
    tokio::time::sleep(LIMIT + Duration::from_secs(1)).await;
    assert_eq!(endings.wait_for(1001).await.len(), 1001);
    assert_eq!(suspended.len(), 0);
    let again = client.modern("ask", json!({}), json!({})).await;
    assert!(again["result"][STATE].is_string(), "{again}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_without_end_gets_no_more_answers() {
    let (server, _) = asking_server();
    let mut client = legacy_client(server).await;
    client.send(legacy_call(7, "endless", &json!({}))).await;
    let mut asked = 0;
    let done = loop {
        let message = client.next().await;
        if message["id"] == 7 && message["method"].is_null() {
            break message;
        }
        client.answer(&message, &accepted()).await;
        asked += 1;
    };
    assert_eq!((text(&done), asked), ("128", 128));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_gets_whole_lines_later() {
    let (server, _) = asking_server();
    // A pipe that holds less than one question.
    let (ours, theirs) = tokio::io::duplex(64);
    let (reader, writer) = tokio::io::split(theirs);
    let stop = CancellationToken::new();
    tokio::spawn(async move { server.serve(reader, writer, stop).await });
    let (reader, mut writer) = tokio::io::split(ours);
    let mut lines = BufReader::new(reader).lines();
    let initialize = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "c", "version": "1" } },
    });
    let line = format!("{initialize}\n");
    writer.write_all(line.as_bytes()).await.unwrap();
    lines.next_line().await.unwrap().unwrap();
    for id in [7, 8] {
        let line = format!("{}\n", legacy_call(id, "dies", &json!({})));
        writer.write_all(line.as_bytes()).await.unwrap();
    }
    // Both calls end while their questions are half written.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let (mut ids, mut questions) = (Vec::new(), 0);
    while ids.len() < 2 {
        let line = lines.next_line().await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        match message["method"].as_str() {
            None => ids.push(message["id"].as_u64().unwrap()),
            Some("elicitation/create") => questions += 1,
            Some(other) => assert_eq!(other, "notifications/cancelled"),
        }
    }
    ids.sort_unstable();
    assert_eq!((ids, questions), (vec![7, 8], 2));
}
