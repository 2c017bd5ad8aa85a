//! Calls that go on as tasks, in both eras. Time is paused, so hours pass at once.

use toolgate_core::{CallRecord, ErrorKind, Observer, ServerFailure};

use super::asking::{accepted, answers_to_json, put};
use super::*;
use crate::server::tasks::EXTENSION;

/// Counts how calls ended.
#[derive(Clone, Default)]
pub(super) struct Endings(pub(super) Arc<parking_lot::Mutex<Vec<Option<ErrorKind>>>>);

impl Observer for Endings {
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        let error = record.outcome.result.as_ref().err();
        if !record.left_to_server {
            self.0.lock().push(error.map(ToolError::kind));
        }
        None
    }
}

pub(super) fn slow_tools() -> Arc<ToolManager> {
    let manager = Arc::new(ToolManager::new());
    // Takes as many seconds as it is told, and reports after each.
    manager.add(tool("slow", |arguments, context| {
        Box::pin(async move {
            let seconds = arguments["a"].as_u64().unwrap_or_default();
            for second in 1..=seconds {
                tokio::time::sleep(Duration::from_secs(1)).await;
                context.report(&Progress {
                    done: second as f64,
                    total: Some(seconds as f64),
                    message: (second == 15).then(|| "past the middle".to_owned()),
                    meta: None,
                });
            }
            Ok(ToolOutput::text(format!("after {seconds} s")))
        })
    }));
    manager.add(tool("fails", |_, _| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            Err(ToolError::failed("out of paper"))
        })
    }));
    manager.add(tool("breaks", |_, _| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            let data = Some(json!({ "requiredCapabilities": {} }));
            let failure = ServerFailure::Rpc { code: -32021, data };
            Err(ToolError::failed_with("lacks something", failure))
        })
    }));
    // Asks twice, long after it became a task: two questions at once, then one.
    manager.add(tool("asks", |_, context| {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(15)).await;
            let first = answers_to_json(put(&context, &["one", "two"]).await);
            let second = answers_to_json(put(&context, &["three"]).await);
            Ok(ToolOutput::text(json!([first, second]).to_string()))
        })
    }));
    manager
}

pub(super) fn task_server() -> (McpServer, Endings) {
    let endings = Endings::default();
    let executor = ToolExecutor::builder(slow_tools()).observer(endings.clone());
    let options = ServeOptions::new("test", "1.2.3");
    (McpServer::new(executor.build(), options), endings)
}

pub(super) fn capabilities() -> Value {
    json!({ "elicitation": {}, "extensions": { EXTENSION: {} } })
}

impl LineClient {
    pub(super) async fn ask_with(&mut self, method: &str, mut params: Value, can: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": can,
        });
        self.ask(method, params).await
    }

    /// Asks as a client that supports tasks, and returns the result.
    async fn task(&mut self, method: &str, params: Value) -> Value {
        let message = self.ask_with(method, params, capabilities()).await;
        assert!(message["error"].is_null(), "{message}");
        message["result"].clone()
    }

    async fn start(&mut self, name: &str, arguments: Value) -> Value {
        let params = json!({ "name": name, "arguments": arguments });
        self.task("tools/call", params).await
    }
}

fn keys(task: &Value) -> Vec<String> {
    let requests = task["inputRequests"].as_object();
    let requests = requests.unwrap_or_else(|| panic!("{task}"));
    requests.keys().cloned().collect()
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_becomes_a_task_and_a_fast_one_does_not() {
    let (server, endings) = task_server();
    let mut client = LineClient::new(server);
    let fast = client.start("slow", json!({ "a": 9 })).await;
    assert_eq!(fast["resultType"], "complete");
    assert_eq!(fast["content"][0]["text"], "after 9 s");

    let began = tokio::time::Instant::now();
    let seed = client.start("slow", json!({ "a": 20 })).await;
    assert_eq!(began.elapsed().as_secs(), 10);
    assert_eq!(seed["resultType"], "task");
    assert_eq!(seed["status"], "working");
    assert_eq!(
        (&seed["ttlMs"], &seed["pollIntervalMs"]),
        (&json!(3_600_000), &json!(1000))
    );
    assert!(seed["createdAt"].as_str().unwrap().ends_with('Z'), "{seed}");
    for absent in ["result", "error", "inputRequests", "requestState", "task"] {
        assert!(seed[absent].is_null(), "{seed}");
    }
    let id = json!({ "taskId": seed["taskId"] });
    assert_eq!(seed["taskId"].as_str().unwrap().len(), 43);

    tokio::time::sleep(Duration::from_millis(2500)).await;
    let working = client.task("tasks/get", id.clone()).await;
    assert_eq!(working["resultType"], "complete");
    assert_eq!(
        (&working["status"], &working["statusMessage"]),
        (&json!("working"), &json!("12 of 20"))
    );
    tokio::time::sleep(Duration::from_secs(3)).await;
    let working = client.task("tasks/get", id.clone()).await;
    assert_eq!(working["statusMessage"], "past the middle");

    tokio::time::sleep(Duration::from_secs(6)).await;
    let done = client.task("tasks/get", id.clone()).await;
    assert_eq!(done["status"], "completed");
    assert_eq!(
        done["result"]["content"],
        json!([{ "type": "text", "text": "after 20 s" }])
    );
    assert_eq!(done["result"]["isError"], false);
    assert!(done["result"]["_meta"]["io.modelcontextprotocol/related-task"].is_null());
    assert_eq!(
        done["ttlMs"], 3_610_000,
        "it is kept for an hour after its end"
    );
    assert_eq!(*endings.0.lock(), [None, None]);

    tokio::time::sleep(Duration::from_secs(3590)).await;
    assert_eq!(
        client.task("tasks/get", id.clone()).await["status"],
        "completed"
    );
    tokio::time::sleep(Duration::from_secs(20)).await;
    let gone = client.ask_with("tasks/get", id, capabilities()).await;
    assert_eq!(gone["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn a_local_tool_outlasts_the_limit_of_calls_as_a_task_and_only_then() {
    let (server, endings) = task_server();
    let mut client = LineClient::new(server);
    let seed = client.start("slow", json!({ "a": 4000 })).await;
    tokio::time::sleep(Duration::from_secs(4000)).await;
    let done = client
        .task("tasks/get", json!({ "taskId": seed["taskId"] }))
        .await;
    assert_eq!(done["result"]["content"][0]["text"], "after 4000 s");
    let params = json!({ "name": "slow", "arguments": { "a": 4000 } });
    let plain = client.ask_modern("tools/call", params).await;
    assert_eq!(plain["result"]["isError"], true, "{plain}");
    assert_eq!(*endings.0.lock(), [None, Some(ErrorKind::Timeout)]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_the_tool_is_a_result_and_a_protocol_error_is_not() {
    let (server, _) = task_server();
    let mut client = LineClient::new(server);
    let fails = client.start("fails", json!({})).await;
    let breaks = client.start("breaks", json!({})).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let failed = client
        .task("tasks/get", json!({ "taskId": fails["taskId"] }))
        .await;
    assert_eq!(failed["status"], "completed");
    assert_eq!(failed["result"]["isError"], true);
    let broken = client
        .task("tasks/get", json!({ "taskId": breaks["taskId"] }))
        .await;
    assert_eq!(
        (&broken["status"], &broken["error"]["code"]),
        (&json!("failed"), &json!(-32021))
    );
    assert!(
        broken["result"].is_null() && broken["statusMessage"].is_string(),
        "{broken}"
    );
}

#[tokio::test(start_paused = true)]
async fn questions_are_answered_through_the_task_in_rounds() {
    let (server, endings) = task_server();
    let mut client = LineClient::new(server);
    let seed = client.start("asks", json!({})).await;
    let id = seed["taskId"].clone();
    let get = json!({ "taskId": id });
    tokio::time::sleep(Duration::from_secs(10)).await;
    let asked = client.task("tasks/get", get.clone()).await;
    assert_eq!(asked["status"], "input_required");
    let first = keys(&asked);
    assert_eq!(first.len(), 2);
    assert_eq!(
        asked["inputRequests"][&first[0]]["params"]["message"],
        "one"
    );
    // A person may take longer than a tool.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(keys(&client.task("tasks/get", get.clone()).await), first);
    // Answers of the wrong form, and to questions that nobody asked, change nothing.
    let nonsense = json!({ &first[0]: { "action": "dance" }, "made up": accepted() });
    let update = json!({ "taskId": id, "inputResponses": nonsense });
    let ack = client.task("tasks/update", update).await;
    assert_eq!(
        ack.as_object().unwrap().len(),
        2,
        "nothing but its type and _meta: {ack}"
    );
    // One answer at a time.
    let update = json!({ "taskId": id, "inputResponses": { &first[1]: accepted() } });
    client.task("tasks/update", update).await;
    assert_eq!(
        keys(&client.task("tasks/get", get.clone()).await),
        [first[0].clone()]
    );
    let update = json!({ "taskId": id, "inputResponses": { &first[0]: accepted() } });
    client.task("tasks/update", update.clone()).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let second = keys(&client.task("tasks/get", get.clone()).await);
    assert!(
        second.len() == 1 && !first.contains(&second[0]),
        "no key is used twice"
    );
    // The second question is not answered by repeating the first answer.
    client.task("tasks/update", update).await;
    assert_eq!(keys(&client.task("tasks/get", get.clone()).await), second);
    // Nobody answers it in time.
    tokio::time::sleep(Duration::from_secs(121)).await;
    let done = client.task("tasks/get", get).await;
    let text = done["result"]["content"][0]["text"].as_str().unwrap();
    let expected = json!([[accepted(), accepted()], "nobody answered in time"]);
    assert_eq!(text, expected.to_string());
    assert_eq!(*endings.0.lock(), [None]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_stays_cancelled_and_its_call_ends() {
    let (server, endings) = task_server();
    let mut client = LineClient::new(server);
    let seed = client.start("slow", json!({ "a": 25 })).await;
    let id = json!({ "taskId": seed["taskId"] });
    for _ in 0..2 {
        let ack = client.task("tasks/cancel", id.clone()).await;
        assert_eq!(ack["resultType"], "complete");
        assert!(ack["status"].is_null(), "{ack}");
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    let task = client.task("tasks/get", id).await;
    assert_eq!(task["status"], "cancelled");
    assert!(task["result"].is_null(), "{task}");
    assert_eq!(*endings.0.lock(), [Some(ErrorKind::Cancelled)]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_say_so_gets_no_task_and_no_methods() {
    let (server, _) = task_server();
    let mut client = LineClient::new(server);
    let params = json!({ "name": "slow", "arguments": { "a": 20 }, "task": { "ttl": 1 } });
    let result = client.ask_modern("tools/call", params).await;
    assert_eq!(result["result"]["content"][0]["text"], "after 20 s");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = client
            .ask_modern(method, json!({ "taskId": "a", "inputResponses": {} }))
            .await;
        assert_eq!(refused["error"]["code"], -32021, "{method}");
        let required = &refused["error"]["data"]["requiredCapabilities"];
        assert!(required["extensions"][EXTENSION].is_object(), "{refused}");
    }
    for method in ["tasks/result", "tasks/list"] {
        let params = json!({ "taskId": "a" });
        let refused = client.ask_with(method, params, capabilities()).await;
        assert_eq!(refused["error"]["code"], -32601, "{method}");
    }
    let unknown = client
        .ask_with("tasks/get", json!({ "taskId": "a" }), capabilities())
        .await;
    assert_eq!(unknown["error"]["code"], -32602);
    let discovered = client.ask_modern("server/discover", json!({})).await;
    let offered = &discovered["result"]["capabilities"];
    assert!(offered["extensions"][EXTENSION].is_object() && offered["tasks"].is_null());
}

#[tokio::test(start_paused = true)]
async fn one_caller_cannot_have_all_tasks_and_calls_beyond_that_are_waited_for() {
    let (server, _) = task_server();
    let mut limits = toolgate_core::Limits::default();
    limits.concurrency = 2000;
    let executor = &server.service.executor;
    executor.set_rules(limits, toolgate_core::Policy::default());
    let mut client = LineClient::new(server);
    let params = json!({ "name": "slow", "arguments": { "a": 28 } });
    for id in 0..300 {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities(),
        });
        client
            .send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
            .await;
    }
    let (mut tasks, mut results) = (0, 0);
    for _ in 0..300 {
        match client.next().await["result"]["resultType"].as_str() {
            Some("task") => tasks += 1,
            _ => results += 1,
        }
    }
    assert_eq!((tasks, results), (250, 50));
}
