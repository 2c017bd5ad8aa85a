//! Tasks of clients and of servers: kept beside the calls, and taken over from dead processes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolgate_core::{
    CallContext, FunctionTool, Origin, RemoteTask, TaskRecord, TaskStore, ToolCall, ToolDefinition,
    ToolError, ToolExecutor, ToolManager, ToolSource,
};
use toolgate_journal::Journal;

use crate::support::{FIRST_FORM, TestJournal};

fn record(key: &str) -> TaskRecord {
    TaskRecord {
        call: ToolCall::new("slow", json!({})).id(),
        key: Some(key.to_owned()),
        owner: "kitchen".to_owned(),
        caller: Some("kitchen".to_owned()),
        origin: Origin::Mcp,
        tool: "slow".to_owned(),
        arguments: json!({ "password": "kept as it is" }),
        client: json!({ "modern": true }),
        remote: None,
        // The file knows microseconds.
        created: SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000),
        keep: Duration::from_secs(60),
        outcome: None,
    }
}

fn remote() -> RemoteTask {
    RemoteTask {
        server: "far".to_owned(),
        task_id: "theirs".to_owned(),
        revision: "2026-07-28".to_owned(),
        expires: None,
    }
}

fn executor_of(journal: &Journal, tool: FunctionTool) -> ToolExecutor {
    let manager = ToolManager::new();
    manager.add(tool);
    let builder = ToolExecutor::builder(Arc::new(manager));
    builder.observer(journal.observer()).build()
}

/// Waits until the server's task was announced, and then for ever.
fn endless_tool() -> FunctionTool {
    let schema = json!({ "type": "object", "properties": {} });
    let definition = ToolDefinition::builder("endless", "Never ends", schema);
    let run = async |_: Value, context: CallContext| {
        context.announce_task(&remote());
        std::future::pending::<Result<String, ToolError>>().await
    };
    FunctionTool::with_definition(definition, run).unwrap()
}

#[tokio::test]
async fn a_task_reads_back_unchanged_until_its_time_is_over() {
    let fixture = TestJournal::new();
    let journal = fixture.journal();
    let mut task = record("a");
    journal.save(task.clone()).await;
    assert_eq!(journal.find("a").await, Some(task.clone()));
    assert_eq!(journal.find("b").await, None);
    assert!(journal.claim(None).await.is_empty(), "its process lives");
    task.arguments = Value::Null;
    task.outcome = Some((task.created, json!({ "status": "completed" })));
    journal.save(task.clone()).await;
    assert_eq!(journal.find("a").await, Some(task.clone()));

    let mut expired = record("c");
    expired.created = SystemTime::UNIX_EPOCH;
    expired.outcome = Some((expired.created, json!({})));
    journal.save(expired).await;
    assert_eq!(journal.find("c").await, None);
    journal.save(record("d")).await;
    let left: i64 = fixture
        .sqlite()
        .query_row("SELECT count(*) FROM tasks", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 2, "a and d");
}

#[tokio::test]
async fn tasks_of_a_process_that_has_ended_are_taken_over_once() {
    let fixture = TestJournal::new();
    let first = fixture.journal();
    for key in ["a", "b"] {
        first.save(record(key)).await;
    }
    first.close().await;
    let (second, third) = (fixture.journal(), fixture.journal());
    let one = second.claim(Some("a")).await;
    assert_eq!(one.len(), 1);
    assert_eq!(one[0].arguments, json!({ "password": "kept as it is" }));
    let all = third.claim(None).await;
    let keys: Vec<_> = all.iter().map(|task| task.key.as_deref()).collect();
    assert_eq!(keys, [Some("b")]);
    assert!(second.claim(None).await.is_empty());
}

#[tokio::test]
async fn a_call_that_waited_for_a_servers_task_can_be_continued_and_gets_its_outcome() {
    let fixture = TestJournal::new();
    let first = fixture.journal();
    let executor = executor_of(&first, endless_tool());
    let call = ToolCall::new("endless", json!({ "a": 1 })).origin(Origin::Http);
    let id = call.id();
    let running = tokio::spawn(async move { executor.execute(call).await });
    while first.remote_task(id).is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    first.close().await;
    assert_eq!(fixture.only_call().summary.outcome, "interrupted");

    let second = fixture.journal();
    let claimed = second.claim(None).await;
    assert_eq!(claimed.len(), 1);
    let task = &claimed[0];
    assert_eq!(
        (task.call, task.key.as_deref(), &*task.tool),
        (id, None, "endless")
    );
    assert_eq!(
        (task.origin, &task.arguments),
        (Origin::Http, &json!({ "a": 1 }))
    );
    assert_eq!(task.remote, Some(remote()));
    let schema = json!({ "type": "object", "properties": {} });
    let definition = ToolDefinition::builder("endless", "Ends now", schema)
        .source(ToolSource::Mcp(remote().server));
    let run = async |_: Value, context: CallContext| {
        let task = context.resumed_task().map(|task| task.task_id.clone());
        Ok::<_, ToolError>(task.unwrap_or_default())
    };
    let tool = FunctionTool::with_definition(definition, run).unwrap();
    let call = ToolCall::new("endless", task.arguments.clone()).with_id(task.call);
    let executor = executor_of(&second, tool);
    let outcome = executor.execute(call.resume(remote())).await;
    assert!(outcome.is_success());
    let call = fixture.only_call();
    assert_eq!(
        (&*call.summary.outcome, call.summary.id),
        ("success", id.to_string())
    );
    second.flush().await;
    let left: i64 = fixture
        .sqlite()
        .query_row("SELECT count(*) FROM tasks", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0, "nobody comes back for it");
    running.abort();
}

#[tokio::test]
async fn a_call_that_is_left_to_its_server_stays_open() {
    let fixture = TestJournal::new();
    let first = fixture.journal();
    let schema = json!({ "type": "object", "properties": {} });
    let definition = ToolDefinition::builder("left", "Is left to its server", schema);
    let run = async |_: Value, context: CallContext| {
        context.announce_task(&remote());
        context.leave_requested().await;
        context.leave_to_server();
        Err::<String, _>(ToolError::unavailable("left", "we are stopping"))
    };
    let tool = FunctionTool::with_definition(definition, run).unwrap();
    let executor = executor_of(&first, tool);
    executor.leave_tasks();
    let call = ToolCall::new("left", json!({ "a": 1 })).origin(Origin::Http);
    let id = call.id();
    assert!(!executor.execute(call).await.is_success());
    first.close().await;
    assert_eq!(fixture.only_call().summary.outcome, "interrupted");
    let claimed = fixture.journal().claim(None).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!((claimed[0].call, &claimed[0].remote), (id, &Some(remote())));
}

#[tokio::test]
async fn a_file_without_tasks_gets_them_when_it_is_written() {
    let fixture = TestJournal::new();
    fixture.journal().close().await;
    fixture.sqlite().execute_batch(FIRST_FORM).unwrap();
    let journal = fixture.journal();
    journal.save(record("a")).await;
    assert!(journal.find("a").await.is_some());
}
