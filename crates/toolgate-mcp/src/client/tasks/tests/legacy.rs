//! The tasks of 2025-11-25.

use super::*;

fn state(status: &str, more: &Value) -> Value {
    let mut state = json!({
        "taskId": ID, "status": status, "ttl": 60_000_000, "pollInterval": 5000,
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
    });
    state
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    state
}

/// Creates a task, says these statuses in order, and has a result.
fn statuses(
    statuses: &'static [&'static str],
    result: impl Fn() -> ScriptedReply + Send + Sync + 'static,
) -> impl Fn(&str, &Value) -> ScriptedReply + Send + Sync + 'static {
    let polled = AtomicUsize::new(0);
    move |method, params| match method {
        "tools/call" if params["task"].is_null() => Answers(text("called")),
        "tools/call" => Answers(json!({ "task": state("working", &json!({})) })),
        "tasks/get" => {
            let place = polled.fetch_add(1, Ordering::Relaxed);
            Answers(state(statuses[place.min(statuses.len() - 1)], &json!({})))
        }
        "tasks/result" => result(),
        _ => Answers(json!({})),
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_requires_a_task_is_called_as_one() {
    let complete = || statuses(&["completed"], || Answers(text("done")));
    let offer = json!({ "tasks": { "requests": { "tools": { "call": {} } } } });
    for (support, capabilities, revision, as_task) in [
        ("required", &offer, LEGACY, true),
        ("optional", &offer, LEGACY, false),
        ("forbidden", &offer, LEGACY, false),
        ("sometimes", &offer, LEGACY, false),
        ("required", &json!({}), LEGACY, false),
        (
            "required",
            &json!({ "extensions": { TASKS_EXTENSION: {} } }),
            LEGACY,
            false,
        ),
        ("required", &offer, "2025-06-18", false),
    ] {
        let (session, server) = ScriptedServer::session(complete());
        session.set_offer(&json!({ "capabilities": capabilities }));
        session.set_protocol(ProtocolEra::Legacy, revision, Map::new());
        let more = json!({ "execution": { "taskSupport": support } });
        let test = TaskTest::new((session, server), &more, |_| {}).await;
        let result = if as_task { "done" } else { "called" };
        assert_eq!(test.call().await["result"], result, "{support} {revision}");
        let sent = test.first_sent("tools/call");
        let task = if as_task {
            json!({ "ttl": 86_400_000 })
        } else {
            json!(null)
        };
        assert_eq!(sent["params"]["task"], task, "{support} {revision}");
        assert!(!sent.to_string().contains(TASKS_EXTENSION));
    }
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_task_is_fetched_when_it_is_over() {
    const WAITS: &[&str] = &["working", "working", "completed"];
    let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": ID }, "a": 1 });
    let mut result = text("done");
    result["_meta"] = related;
    let script = statuses(WAITS, move || Answers(result.clone()));
    let test = TaskTest::legacy("required", script).await;
    let outcome = test.executor.execute(ToolCall::new("t", json!({}))).await;
    let output = outcome.result.unwrap();
    assert_eq!(output.meta, json!({ "a": 1 }).as_object().cloned());
    assert_eq!(test.seconds(), 15);
    let methods = test.server.methods();
    assert_eq!(
        methods,
        [
            "tools/call",
            "tasks/get",
            "tasks/get",
            "tasks/get",
            "tasks/result"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_task_gives_the_error_of_its_call() {
    let failing = || {
        let mut result = text("no such file");
        result["isError"] = json!(true);
        Answers(result)
    };
    for (script, error) in [
        (statuses(&["failed"], failing), "no such file"),
        (statuses(&["completed"], failing), "no such file"),
    ] {
        let test = TaskTest::legacy("required", script).await;
        assert_eq!(test.call().await["error"], error);
    }
    let refused = statuses(&["failed"], || Refuses(-32000, "rate limit"));
    let test = TaskTest::legacy("required", refused).await;
    assert_eq!(test.call().await["error"], "rate limit");
    let cancelled = statuses(&["cancelled"], || Refuses(-32602, "?"));
    let test = TaskTest::legacy("required", cancelled).await;
    assert_eq!(
        test.call().await["error"],
        "The server cancelled the task of 't'"
    );
    assert_eq!(test.count("tasks/result"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_task_reaches_the_client_of_its_call() {
    let script = |method: &str, params: &Value| match method {
        "tools/call" => Answers(json!({
            "task": state("working", &json!({ "taskId": params["arguments"]["id"] }))
        })),
        "tasks/get" => Answers(state(
            "input_required",
            &json!({ "taskId": params["taskId"] }),
        )),
        _ => ScriptedReply::Nothing,
    };
    let test = TaskTest::legacy("required", script).await;
    let clients = [NamedClient::new("ada"), NamedClient::new("bob")];
    let calls = clients.each_ref().map(|client| {
        let call = ToolCall::new("t", json!({ "id": client.name }));
        let (call, executor) = (
            call.on_question(Arc::clone(client) as _),
            test.executor.clone(),
        );
        tokio::spawn(async move { executor.execute(call).await.to_envelope() })
    });
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(test.count("tasks/result"), 2);
    let ask = |id: u64, task: Option<&str>| {
        let mut params = form()["params"].clone();
        if let Some(task) = task {
            params["_meta"] = json!({ "io.modelcontextprotocol/related-task": { "taskId": task } });
        }
        let method = "elicitation/create";
        test.server
            .deliver(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    };
    ask(1, Some("bob"));
    // Nobody knows whose these are.
    ask(2, None);
    ask(3, Some("eve"));
    tokio::time::sleep(Duration::from_secs(62)).await;
    let answer = |id: u64| {
        let sent = test.server.sent();
        let answer = sent
            .iter()
            .find(|it| it["id"] == id && it["method"].is_null());
        answer.unwrap()["result"].clone()
    };
    assert_eq!(answer(1)["content"]["name"], "bob");
    assert_eq!(answer(2)["action"], "decline");
    assert_eq!(answer(3)["action"], "decline");
    assert!(clients[0].asked.lock().is_empty());
    let asked = clients[1].asked.lock()[0].params.clone();
    assert!(!asked.to_string().contains("related-task"), "{asked}");
    // The open requests bring the results, without a further poll.
    for message in test.server.sent() {
        if message["method"] == "tasks/result" {
            let name = message["params"]["taskId"].as_str().unwrap();
            let result = text(&format!("for {name}"));
            test.server
                .deliver(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
        }
    }
    for (call, name) in calls.into_iter().zip(["ada", "bob"]) {
        assert_eq!(call.await.unwrap()["result"], format!("for {name}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_may_ask_right_after_it_has_created_the_task() {
    let test = TaskTest::legacy("required", |_, _| ScriptedReply::Nothing).await;
    let ada = NamedClient::new("ada");
    let call = ToolCall::new("t", json!({})).on_question(Arc::clone(&ada) as _);
    let ask = async {
        settle().await;
        let id = test.first_sent("tools/call")["id"].clone();
        let created = json!({ "task": state("working", &json!({})) });
        let mut params = form()["params"].clone();
        params["_meta"] = json!({ "io.modelcontextprotocol/related-task": { "taskId": ID } });
        let method = "elicitation/create";
        for message in [
            json!({ "jsonrpc": "2.0", "id": id, "result": created }),
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }),
        ] {
            test.server.deliver(&message);
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    };
    tokio::select! {
        _ = test.execute(call) => unreachable!(),
        () = ask => {}
    }
    assert_eq!(ada.asked.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_for_the_result_that_is_refused_early_is_made_again() {
    let polled = AtomicUsize::new(0);
    let fetched = Arc::new(AtomicUsize::new(0));
    let fetches = Arc::clone(&fetched);
    let test = TaskTest::legacy("required", move |method, _| match method {
        "tools/call" => Answers(json!({ "task": state("working", &json!({})) })),
        "tasks/get" => Answers(match polled.fetch_add(1, Ordering::Relaxed) {
            0 => state("input_required", &json!({})),
            _ => state("completed", &json!({})),
        }),
        _ if fetches.fetch_add(1, Ordering::Relaxed) == 0 => Refuses(-32602, "not completed yet"),
        _ => Answers(text("done")),
    });
    let test = test.await;
    assert_eq!(test.call().await["result"], "done");
    assert_eq!(fetched.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_can_say_that_a_task_has_changed() {
    const WAITS: &[&str] = &["working", "completed"];
    let test = TaskTest::legacy("required", statuses(WAITS, || Answers(text("done")))).await;
    let notice = async {
        tokio::time::sleep(Duration::from_secs(6)).await;
        for id in ["other", ID] {
            let params = state("completed", &json!({ "taskId": id }));
            let method = "notifications/tasks/status";
            test.server
                .deliver(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
        }
    };
    let (envelope, ()) = tokio::join!(test.call(), notice);
    assert_eq!(envelope["result"], "done");
    assert_eq!(test.seconds(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_changes_does_not_become_a_flood_of_polls() {
    let test = TaskTest::legacy("required", statuses(&["working"], || Answers(text("done")))).await;
    let flood = async {
        loop {
            let params = state("working", &json!({}));
            let method = "notifications/tasks/status";
            test.server
                .deliver(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let call = async { tokio::join!(test.call(), flood) };
    assert!(
        tokio::time::timeout(Duration::from_secs(10), call)
            .await
            .is_err()
    );
    assert!(test.count("tasks/get") <= 50, "{}", test.count("tasks/get"));
}

#[tokio::test(start_paused = true)]
async fn the_progress_token_of_the_call_stays_valid() {
    let test = TaskTest::legacy("required", statuses(&["working"], || Answers(text("done")))).await;
    let reports = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&reports);
    let call = ToolCall::new("t", json!({})).on_progress(move |progress| {
        sink.lock().push(progress.done);
    });
    let report = async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        let token = test.first_sent("tools/call")["params"]["_meta"]["progressToken"].clone();
        let params = json!({ "progressToken": token, "progress": 42 });
        let method = "notifications/progress";
        test.server
            .deliver(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    tokio::select! {
        _ = test.execute(call) => unreachable!(),
        () = report => {}
    }
    assert_eq!(*reports.lock(), [42.0]);
}

#[tokio::test(start_paused = true)]
async fn only_servers_that_can_cancel_tasks_are_asked_to() {
    for can_cancel in [true, false] {
        let mut offer = json!({ "tasks": { "requests": { "tools": { "call": {} } } } });
        if can_cancel {
            offer["tasks"]["cancel"] = json!({});
        }
        let (session, server) =
            ScriptedServer::session(statuses(&["working"], || Answers(text("done"))));
        session.set_offer(&json!({ "capabilities": offer }));
        session.set_protocol(ProtocolEra::Legacy, LEGACY, Map::new());
        let more = json!({ "execution": { "taskSupport": "required" } });
        let test = TaskTest::new((session, server), &more, |_| {}).await;
        assert!(
            tokio::time::timeout(Duration::from_secs(60), test.call())
                .await
                .is_err()
        );
        settle().await;
        assert_eq!(test.count("tasks/cancel"), usize::from(can_cancel));
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_after_a_cancelled_task_reaches_no_other_client() {
    let test = TaskTest::legacy("required", statuses(&["working"], || Answers(text("done")))).await;
    let first = ToolCall::new("t", json!({})).on_question(NamedClient::new("ada") as _);
    let minute = Duration::from_secs(60);
    assert!(
        tokio::time::timeout(minute, test.execute(first))
            .await
            .is_err()
    );
    settle().await;
    let bob = NamedClient::new("bob");
    let second = ToolCall::new("t", json!({})).on_question(Arc::clone(&bob) as _);
    let asking = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let method = "elicitation/create";
        let params = form()["params"].clone();
        test.server
            .deliver(&json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": params }));
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    tokio::select! {
        _ = test.execute(second) => unreachable!(),
        () = asking => {}
    }
    assert!(bob.asked.lock().is_empty());
    let answer = test
        .server
        .sent()
        .into_iter()
        .find(|it| it["id"] == 9)
        .unwrap();
    assert_eq!(answer["result"]["action"], "decline");
    let ids: HashSet<String> = test
        .server
        .sent()
        .iter()
        .map(|it| it["id"].to_string())
        .collect();
    assert!(ids.len() > 3);
}
