//! The extension of 2026-07-28, when all goes well.

use super::*;
use crate::client::content::ListedContent;

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_its_task_as_long_as_it_takes() {
    let answers = [vec![task("working", &json!({})); 99], vec![done()]].concat();
    let test = TaskTest::modern(polls(answers)).await;
    let envelope = test.call().await;
    assert_eq!(envelope["result"], "done", "{envelope}");
    // Longer than any limit of a call, at the pace that the server wants.
    assert_eq!(test.seconds(), 500);
    assert_eq!(test.count("tools/call"), 1);
    assert_eq!(test.count("tasks/get"), 100);
    assert_eq!(test.count("tasks/cancel"), 0);
    let announced = test.announced.tasks();
    let expected = RemoteTask {
        server: "house".to_owned(),
        task_id: ID.to_owned(),
        revision: MODERN.to_owned(),
        expires: None,
    };
    assert_eq!(announced, [expected]);
}

#[tokio::test(start_paused = true)]
async fn the_extension_is_declared_where_it_applies_and_polls_name_their_task() {
    let test = TaskTest::modern(polls(vec![done()])).await;
    let mut meta = Map::new();
    meta.insert("com.example/a".to_owned(), json!(1));
    test.execute(ToolCall::new("t", json!({})).meta(meta)).await;
    let key = "io.modelcontextprotocol/clientCapabilities";
    for message in test.server.sent() {
        let declared = &message["params"]["_meta"][key]["extensions"];
        assert_eq!(declared[TASKS_EXTENSION], json!({}), "{message}");
    }
    let names = test.server.names();
    assert_eq!(names, [Some("t".to_owned()), Some(ID.to_owned())]);
    let poll = test.first_sent("tasks/get");
    assert_eq!(poll["params"]["taskId"], ID);
    let meta = &poll["params"]["_meta"];
    assert!(meta["progressToken"].is_null(), "{meta}");
    assert!(meta["com.example/a"].is_null(), "{meta}");
    assert_eq!(
        test.first_sent("tools/call")["params"]["_meta"]["com.example/a"],
        1
    );
    assert!(test.first_sent("tools/call")["params"]["task"].is_null());
}

#[tokio::test(start_paused = true)]
async fn tasks_need_a_server_that_offers_them_and_a_call_of_a_tool() {
    let (session, server) = ScriptedServer::session(polls(vec![done()]));
    session.set_protocol(ProtocolEra::Modern, MODERN, Map::new());
    session.set_offer(
        &json!({ "capabilities": { "tasks": { "requests": { "tools": { "call": {} } } } } }),
    );
    let test = TaskTest::new((session, server), &json!({}), |_| {}).await;
    let envelope = test.call().await;
    assert_eq!(
        envelope["error"],
        "The server of 't' sent an unreadable response"
    );
    assert_eq!(envelope["details"], "a task that was not asked for");
    let meta = &test.first_sent("tools/call")["params"]["_meta"];
    assert!(!meta.to_string().contains(TASKS_EXTENSION), "{meta}");

    // Nothing but a call of a tool can become a task.
    let (session, server) = modern_session(|_, _| Answers(task("working", &json!({}))));
    let link = ServerLink::new();
    link.set_up(session);
    let mut content = ListedContent::default();
    content.capabilities.prompts = true;
    let offer = content.offer(&settings(), &link);
    let manager = Arc::new(ToolManager::new());
    let prompt = ToolCall::new("house/prompts/get", json!({ "name": "p" }));
    let prompt = prompt.resolved_tool(offer.access.get_prompt.unwrap());
    let envelope = ToolExecutor::new(manager)
        .execute(prompt)
        .await
        .to_envelope();
    assert_eq!(
        envelope["details"], "a task that was not asked for",
        "{envelope}"
    );
    let meta = &server.sent()[0]["params"]["_meta"];
    assert!(!meta.to_string().contains(TASKS_EXTENSION), "{meta}");
}

#[tokio::test(start_paused = true)]
async fn answers_that_the_server_refuses_are_not_asked_for_again() {
    let polled = polls(vec![task(
        "input_required",
        &json!({ "inputRequests": { "a": form() } }),
    )]);
    let test = TaskTest::modern(move |method, params| match method {
        "tasks/update" => Refuses(-32602, "no such key"),
        _ => polled(method, params),
    });
    let test = test.await;
    let client = NamedClient::new("ada");
    let call = ToolCall::new("t", json!({})).on_question(Arc::clone(&client) as _);
    assert_eq!(
        test.execute(call).await["details"],
        "JSON-RPC error -32602: no such key"
    );
    assert_eq!(client.asked.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn each_question_of_a_task_is_asked_once() {
    let need = |keys: &[&str]| {
        let requests: Map<String, Value> =
            keys.iter().map(|key| ((*key).to_owned(), form())).collect();
        task("input_required", &json!({ "inputRequests": requests }))
    };
    let answers = vec![
        need(&["a"]),
        // The server hasn't worked on the answer yet.
        need(&["a"]),
        task("working", &json!({})),
        need(&["a", "b"]),
        done(),
    ];
    let test = TaskTest::modern(polls(answers)).await;
    let client = NamedClient::new("ada");
    // The clock stops while a person answers.
    let call = ToolCall::new("t", json!({})).on_question(Arc::clone(&client) as _);
    let envelope = test.execute(call.timeout(Duration::from_secs(30))).await;
    assert_eq!(envelope["result"], "done", "{envelope}");
    let asked: Vec<String> = client
        .asked
        .lock()
        .iter()
        .map(|it| it.key.clone())
        .collect();
    assert_eq!(asked, ["a", "b"]);
    let sent = test.server.sent().into_iter();
    let updates: Vec<Value> = sent
        .filter(|message| message["method"] == "tasks/update")
        .map(|message| message["params"]["inputResponses"].clone())
        .collect();
    let answer = json!({ "action": "accept", "content": { "name": "ada" } });
    assert_eq!(updates, [json!({ "a": answer }), json!({ "b": answer })]);
}

#[tokio::test(start_paused = true)]
async fn answers_are_sent_until_the_server_has_them() {
    let (updates, polled) = (
        AtomicUsize::new(0),
        polls(vec![
            task(
                "input_required",
                &json!({ "inputRequests": { "a": form() } }),
            ),
            done(),
        ]),
    );
    let test = TaskTest::modern(move |method, params| match method {
        "tasks/update" if updates.fetch_add(1, Ordering::Relaxed) < 2 => Refuses(-32603, "busy"),
        _ => polled(method, params),
    });
    let test = test.await;
    let client = NamedClient::new("ada");
    let call = ToolCall::new("t", json!({})).on_question(Arc::clone(&client) as _);
    assert_eq!(test.execute(call).await["result"], "done");
    assert_eq!(client.asked.lock().len(), 1);
    assert_eq!(test.count("tasks/update"), 3);
}

#[tokio::test(start_paused = true)]
async fn what_a_task_says_reaches_the_caller_as_progress() {
    let says = |message: &str| task("working", &json!({ "statusMessage": message }));
    let answers = vec![
        says("one"),
        says("one"),
        says("two"),
        says("s3\u{1b}[2J"),
        done(),
    ];
    let test = TaskTest::modern(polls(answers)).await;
    let reports = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&reports);
    let call = ToolCall::new("t", json!({})).on_progress(move |progress| {
        sink.lock()
            .push((progress.done, progress.message.clone().unwrap()));
    });
    assert_eq!(test.execute(call).await["result"], "done");
    let reports = reports.lock().clone();
    assert_eq!(
        reports[..2],
        [(1.0, "one".to_owned()), (2.0, "two".to_owned())]
    );
    assert_eq!(reports.len(), 3);
    assert!(!reports[2].1.contains('\u{1b}'), "{reports:?}");
}

#[tokio::test(start_paused = true)]
async fn the_pace_of_polls_is_bounded() {
    for (interval, seconds) in [
        (json!(0), 2),
        (json!(-5), 65),
        (json!(null), 65),
        (json!("soon"), 65),
        (json!(2500), 25),
        (json!(1e300), 600),
        (json!(u64::MAX), 600),
    ] {
        let paced = move |status: &str| {
            task(
                status,
                &json!({ "pollIntervalMs": interval, "result": text("done") }),
            )
        };
        let polled = AtomicUsize::new(0);
        let test = TaskTest::modern(move |method, _| match method {
            "tools/call" => Answers(paced("working")),
            _ if polled.fetch_add(1, Ordering::Relaxed) == 9 => Answers(paced("completed")),
            _ => Answers(paced("working")),
        });
        let test = test.await;
        assert_eq!(test.call().await["result"], "done");
        assert_eq!(test.count("tasks/get"), 10);
        assert_eq!(test.seconds(), seconds, "{}", test.first_sent("tasks/get"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_may_ask_before_it_becomes_a_task() {
    let polled = polls(vec![done()]);
    let test = TaskTest::modern(move |method, params| match method {
        "tools/call" if params["inputResponses"].is_null() => Answers(json!({
            "resultType": "input_required", "inputRequests": { "a": form() }, "requestState": "s",
        })),
        _ => polled(method, params),
    });
    let test = test.await;
    assert_eq!(test.call().await["result"], "done");
    assert_eq!(test.count("tools/call"), 2);
}
