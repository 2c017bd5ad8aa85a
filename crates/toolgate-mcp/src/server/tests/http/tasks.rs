//! Tasks over HTTP: who may have which, the stream that tells of changes, and restarts.

use std::time::SystemTime;

use proptest::prelude::*;
use toolgate_core::{CallId, CallRecord, Observer, RemoteTask, Scope, TaskRecord, TaskStore};

use super::super::tasks::{Endings, capabilities, slow_tools, task_server};
use super::*;
use crate::KnownCaller;

fn with_tasks(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities() });
    let mut message = modern_request_message(method, params);
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities();
    message
}

async fn start(mcp: &McpHttp, name: &str, arguments: Value) -> String {
    let params = json!({ "name": name, "arguments": arguments });
    let caller = HttpCaller::modern(mcp, "tools/call", name);
    let answer = json_of(caller.post(with_tasks("tools/call", params)).await).await;
    let id = answer["result"]["taskId"].as_str();
    id.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

async fn use_task(mcp: &McpHttp, method: &str, id: &str) -> Value {
    let params = json!({ "taskId": id, "inputResponses": {} });
    let caller = HttpCaller::modern(mcp, method, id);
    json_of(caller.post(with_tasks(method, params)).await).await
}

#[tokio::test(start_paused = true)]
async fn a_task_outlives_its_connection_and_names_itself_in_a_header() {
    let (server, _) = task_server();
    let mcp = server.http(HttpOptions::default());
    let id = start(&mcp, "slow", json!({ "a": 20 })).await;
    assert_eq!(mcp.tasks().len(), 1);
    assert_eq!(mcp.tasks()[0].tool, "slow");
    let wrong = HttpCaller::modern(&mcp, "tasks/get", "another");
    let refused = wrong
        .post(with_tasks("tasks/get", json!({ "taskId": id })))
        .await;
    assert_eq!(refused.status(), 400);
    assert_eq!(json_of(refused).await["error"]["code"], -32020);
    let nameless = HttpCaller::modern(&mcp, "tasks/get", "");
    let params = json!({ "taskId": id });
    let task = json_of(nameless.post(with_tasks("tasks/get", params)).await).await;
    assert_eq!(task["result"]["status"], "working", "FastMCP's client");
    tokio::time::sleep(Duration::from_secs(11)).await;
    let done = use_task(&mcp, "tasks/get", &id).await;
    assert_eq!(done["result"]["status"], "completed");
    assert!(mcp.tasks().is_empty(), "only those that run");
}

#[tokio::test(start_paused = true)]
async fn tasks_are_listed_and_cancelled_by_the_id_of_their_call() {
    let (server, _) = task_server();
    let mcp = server.http(HttpOptions::default());
    let id = start(&mcp, "slow", json!({ "a": 28 })).await;
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let task = mcp.tasks().remove(0);
    assert_eq!(
        (task.status, task.done, task.total),
        ("working", Some(12.0), Some(28.0))
    );
    let call = task.call.to_string();
    assert_ne!(call, id, "the task's id stays secret");
    assert!(!mcp.cancel_task(&id).await);
    assert!(mcp.cancel_task(&call).await);
    assert!(!mcp.cancel_task(&call).await, "it has ended");
    let task = use_task(&mcp, "tasks/get", &id).await;
    assert_eq!(task["result"]["status"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_listens_is_told_of_every_state() {
    let (server, _) = task_server();
    let mcp = server.http(HttpOptions::default());
    let id = start(&mcp, "slow", json!({ "a": 13 })).await;
    let ids = json!({ "notifications": { "taskIds": [id, "made up"] } });
    let undeclared = HttpCaller::modern(&mcp, "subscriptions/listen", "");
    let response = undeclared.post(modern_request_message("subscriptions/listen", ids.clone()));
    let refused = text_of(response.await).await;
    assert!(refused.contains("-32021"), "{refused}");
    let caller = HttpCaller::modern(&mcp, "subscriptions/listen", "");
    let response = caller.post(with_tasks("subscriptions/listen", ids)).await;
    let mut events = TestEvents::new(response);
    let acknowledged = events.message().await;
    assert_eq!(
        acknowledged["params"]["notifications"]["taskIds"],
        json!([id])
    );
    let mut seen = Vec::new();
    loop {
        let update = events.message().await;
        assert_eq!(update["method"], "notifications/tasks");
        let task = &update["params"];
        assert_eq!(task["taskId"], id);
        assert_eq!(task["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
        seen.push(task["statusMessage"].as_str().unwrap_or("-").to_owned());
        if task["status"] == "completed" {
            assert_eq!(task["result"]["content"][0]["text"], "after 13 s");
            break;
        }
    }
    assert!(seen.contains(&"12 of 13".to_owned()), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_session_hears_of_its_tasks_on_its_stream() {
    let (server, _) = task_server();
    let mcp = server.http(HttpOptions::default());
    let session = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let other = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let mut others = TestEvents::new(other.get().await);
    let call = |seconds: u64| {
        json!({ "name": "slow", "arguments": { "a": seconds }, "task": {},
            "_meta": { "progressToken": seconds } })
    };
    // Without a stream nothing is lost but what the latest state replaces.
    let json_only = session.with("accept", "application/json");
    let ended = json_only.ask("tools/call", call(2)).await;
    let running = json_only.ask("tools/call", call(9)).await;
    tokio::time::sleep(Duration::from_millis(5500)).await;
    let mut events = TestEvents::new(session.get().await);
    let task = |answer: &Value| answer["result"]["task"]["taskId"].clone();
    let first = events.message().await;
    assert_eq!(first["params"]["taskId"], task(&ended), "{first}");
    assert_eq!(first["params"]["status"], "completed");
    for done in [5.0, 6.0, 7.0, 8.0] {
        let progress = events.message().await;
        assert_eq!(progress["method"], "notifications/progress");
        assert_eq!(progress["params"]["progressToken"], 9);
        assert_eq!(progress["params"]["progress"], done);
    }
    let last = events.message().await;
    assert_eq!(last["params"]["taskId"], task(&running), "{last}");
    assert_eq!(last["params"]["status"], "completed");
    let quiet = tokio::time::timeout(Duration::from_secs(60), others.message()).await;
    assert!(quiet.is_err(), "another session hears nothing: {quiet:?}");
}

/// A journal's part, in memory.
#[derive(Clone, Default)]
struct MemoryStore(Arc<parking_lot::Mutex<MemoryState>>);

#[derive(Default)]
struct MemoryState {
    records: Vec<TaskRecord>,
    remote: Option<(CallId, RemoteTask)>,
}

impl TaskStore for MemoryStore {
    fn save(&self, task: TaskRecord) -> BoxFuture<'_, ()> {
        let mut state = self.0.lock();
        state.records.retain(|known| known.call != task.call);
        state.records.push(task);
        Box::pin(async {})
    }

    fn find(&self, key: &str) -> BoxFuture<'_, Option<TaskRecord>> {
        let state = self.0.lock();
        let is_it = |task: &&TaskRecord| task.key.as_deref() == Some(key);
        let found = state.records.iter().find(is_it).cloned();
        Box::pin(async { found })
    }

    fn claim(&self, key: Option<&str>) -> BoxFuture<'_, Vec<TaskRecord>> {
        let state = self.0.lock();
        let mut open = state.records.clone();
        open.retain(|task| task.outcome.is_none());
        open.retain(|task| key.is_none() || task.key.as_deref() == key);
        for task in &mut open {
            let remote = state.remote.clone().filter(|(call, _)| *call == task.call);
            task.remote = remote.map(|(_, task)| task);
        }
        Box::pin(async { open })
    }

    fn remote_task(&self, call: CallId) -> Option<RemoteTask> {
        let state = self.0.lock();
        let remote = state.remote.as_ref();
        remote
            .filter(|(known, _)| *known == call)
            .map(|(_, task)| task.clone())
    }
}

impl Observer for MemoryStore {
    fn became_task(&self, context: &CallContext, task: &RemoteTask) {
        self.0.lock().remote = Some((context.id(), task.clone()));
    }

    fn finished<'a>(&'a self, _: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        None
    }
}

/// Waits for a task of the server, unless the call is to be continued later.
async fn wait_for_task(seconds: u64, context: &CallContext) -> Result<ToolOutput, ToolError> {
    tokio::select! {
        () = tokio::time::sleep(Duration::from_secs(seconds)) => Ok(ToolOutput::text("the end")),
        () = context.leave_requested() => {
            context.leave_to_server();
            Err(ToolError::unavailable("slow", "we are stopping"))
        }
    }
}

/// Tools like those of a server: a call that is continued waits for the server's task.
fn restarted(store: &MemoryStore, endings: &Endings) -> McpHttp {
    let manager = slow_tools();
    let far = ToolSource::Mcp("far".into());
    manager.add(tool_from(far, "slow", |arguments, context| {
        Box::pin(async move {
            let seconds = arguments["a"].as_u64().unwrap_or_default();
            if let Some(task) = context.resumed_task().cloned() {
                context.announce_task(&task);
                let waited = wait_for_task(5, &context).await;
                return waited.map(|_| ToolOutput::text(format!("the end of {}", task.task_id)));
            }
            if arguments["b"] == "task" {
                context.announce_task(&remote());
                return wait_for_task(seconds, &context).await;
            }
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(ToolOutput::text("not continued"))
        })
    }));
    let executor = ToolExecutor::builder(manager).observer(endings.clone());
    let executor = executor.observer(store.clone());
    let server = McpServer::new(executor.build(), ServeOptions::new("test", "1.2.3"));
    server.keep_tasks(Arc::new(store.clone()));
    server.http(HttpOptions::default())
}

fn remote() -> RemoteTask {
    RemoteTask {
        server: "far".to_owned(),
        task_id: "theirs".to_owned(),
        revision: "2026-07-28".to_owned(),
        expires: None,
    }
}

#[tokio::test(start_paused = true)]
async fn results_tasks_of_servers_and_cut_off_calls_survive_a_restart() {
    let (store, endings) = (MemoryStore::default(), Endings::default());
    let mcp = restarted(&store, &endings);
    let finished = start(&mcp, "slow", json!({ "a": 11 })).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let cut_off = start(&mcp, "slow", json!({ "a": 25 })).await;
    mcp.close(Duration::ZERO).await;
    let keys: Vec<_> = store
        .0
        .lock()
        .records
        .iter()
        .map(|task| task.key.clone())
        .collect();
    assert!(
        !keys.contains(&Some(cut_off.clone())),
        "only hashes of ids are kept"
    );

    let mcp = restarted(&store, &endings);
    let task = use_task(&mcp, "tasks/get", &finished).await;
    assert_eq!(
        task["result"]["result"]["content"][0]["text"],
        "not continued"
    );
    let task = use_task(&mcp, "tasks/get", &cut_off).await;
    assert_eq!(task["result"]["status"], "failed", "{task}");
    assert_eq!(task["result"]["error"]["code"], -32603);

    // Its server goes on with it while we are away.
    let going_on = start(&mcp, "slow", json!({ "a": 25, "b": "task" })).await;
    let began = tokio::time::Instant::now();
    mcp.close(Duration::from_secs(20)).await;
    assert_eq!(began.elapsed(), Duration::ZERO, "nothing waits for it");
    let endings = Endings::default();
    let mcp = restarted(&store, &endings);
    mcp.restore_tasks().await;
    let task = use_task(&mcp, "tasks/get", &going_on).await;
    assert_eq!(task["result"]["status"], "working", "{task}");
    assert_eq!(mcp.tasks().len(), 1);
    tokio::time::sleep(Duration::from_secs(6)).await;
    let task = use_task(&mcp, "tasks/get", &going_on).await;
    assert_eq!(
        task["result"]["result"]["content"][0]["text"],
        "the end of theirs"
    );
    assert_eq!(*endings.0.lock(), [None]);
    let kept = store.0.lock().records.last().cloned().unwrap();
    assert!(kept.outcome.is_some() && kept.arguments.is_null());
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_client_asks_first_is_continued_without_a_general_restore() {
    let (store, endings) = (MemoryStore::default(), Endings::default());
    let mcp = restarted(&store, &endings);
    let id = start(&mcp, "slow", json!({ "a": 25, "b": "task" })).await;
    mcp.close(Duration::ZERO).await;
    let mcp = restarted(&store, &endings);
    let task = use_task(&mcp, "tasks/get", &id).await;
    assert_eq!(task["result"]["status"], "working", "{task}");
    tokio::time::sleep(Duration::from_secs(6)).await;
    let task = use_task(&mcp, "tasks/get", &id).await;
    assert_eq!(
        task["result"]["result"]["content"][0]["text"],
        "the end of theirs"
    );
}

#[tokio::test(start_paused = true)]
async fn a_continued_task_is_left_again_at_every_stop() {
    let (store, endings) = (MemoryStore::default(), Endings::default());
    let mcp = restarted(&store, &endings);
    let id = start(&mcp, "slow", json!({ "a": 25, "b": "task" })).await;
    mcp.close(Duration::ZERO).await;
    for _ in 0..3 {
        let mcp = restarted(&store, &endings);
        mcp.restore_tasks().await;
        // The second time, its call has begun.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let began = tokio::time::Instant::now();
        mcp.close(Duration::from_secs(20)).await;
        assert_eq!(began.elapsed(), Duration::ZERO, "nothing waits for it");
        let mcp = restarted(&store, &endings);
        mcp.restore_tasks().await;
        mcp.close(Duration::from_secs(20)).await;
    }
    assert!(endings.0.lock().is_empty(), "nothing has ended");
    let mcp = restarted(&store, &endings);
    mcp.restore_tasks().await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let task = use_task(&mcp, "tasks/get", &id).await;
    assert_eq!(
        task["result"]["result"]["content"][0]["text"],
        "the end of theirs"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_waits_for_is_continued_and_recorded() {
    let (store, endings) = (MemoryStore::default(), Endings::default());
    let call = "019aa0000000000000000000000000ff".parse().unwrap();
    store.0.lock().remote = Some((call, remote()));
    store.0.lock().records.push(TaskRecord {
        call,
        key: None,
        owner: String::new(),
        caller: Some("kitchen".to_owned()),
        origin: toolgate_core::Origin::Http,
        tool: "slow".to_owned(),
        arguments: json!({ "a": 1 }),
        client: Value::Null,
        remote: None,
        created: SystemTime::now(),
        keep: Duration::ZERO,
        outcome: None,
    });
    let mcp = restarted(&store, &endings);
    mcp.restore_tasks().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    mcp.close(Duration::from_secs(20)).await;
    assert!(endings.0.lock().is_empty(), "its server goes on with it");
    let mcp = restarted(&store, &endings);
    mcp.restore_tasks().await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(*endings.0.lock(), [None]);
}

const CALLERS: usize = 4;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever a client does with ids that it knows from others, it learns and changes nothing.
    #[test]
    fn no_client_ever_gets_a_task_of_another(
        steps in prop::collection::vec((0..CALLERS, 0..CALLERS * 2, 0..4_usize), 1..24),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (store, endings) = (MemoryStore::default(), Endings::default());
            let view = |mcp: &McpHttp, caller: usize| {
                mcp.for_caller(KnownCaller {
                    scope: Scope::default(),
                    identity: format!("caller {caller}").into(),
                    may_approve: false,
                })
            };
            let mut mcp = restarted(&store, &endings);
            let mut tasks = Vec::new();
            for caller in 0..CALLERS {
                for seconds in [11, 29] {
                    let id = start(&view(&mcp, caller), "slow", json!({ "a": seconds })).await;
                    tasks.push((caller, id));
                }
            }
            for (caller, task, method) in steps {
                let (owner, id) = &tasks[task];
                let view = view(&mcp, caller);
                if method == 3 {
                    // The right caller, in the other era.
                    let session = HttpCaller::with_session(&view, "2025-11-25").await;
                    let answer = session.ask("tasks/get", json!({ "taskId": id })).await;
                    assert_eq!(answer["error"]["code"], -32602);
                    mcp.close(Duration::ZERO).await;
                    mcp = restarted(&store, &endings);
                    continue;
                }
                let method = ["tasks/get", "tasks/update", "tasks/cancel"][method];
                let answer = use_task(&view, method, id).await;
                let made_up = use_task(&view, method, &"A".repeat(43)).await;
                match owner == &caller {
                    true => assert!(answer["result"].is_object(), "{answer}"),
                    false => assert_eq!(answer, made_up, "as if there were no such task"),
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
    }
}
