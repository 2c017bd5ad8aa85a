//! Notifications of extensions over HTTP, in both eras.

use parking_lot::Mutex;
use toolgate_core::{
    ContentMethod, ExtensionListener, ExtensionNotification, SourceContent, ToolRank,
};

use super::*;

const THING: &str = "com.example/thing";

type LastingListeners = Arc<Mutex<Vec<Arc<dyn ExtensionListener>>>>;

/// Takes what goes to the server, and remembers where notifications between calls go.
struct ThingTool {
    definition: ToolDefinition,
    received: Arc<Mutex<Vec<Value>>>,
    lasting: LastingListeners,
}

impl Tool for ThingTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, given: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        let mut received = given.as_value().clone();
        received["by"] = json!(context.meta());
        self.received.lock().push(received);
        let listener = context.extension_listener();
        self.lasting
            .lock()
            .extend(listener.and_then(|it| it.outside_calls()));
        if let Some(listener) = listener.filter(|_| given.as_value()["isNotification"] != true) {
            listener.notify(notice(1));
        }
        Box::pin(async { Ok(ToolOutput::json(json!({ "found": 1 }))) })
    }
}

fn notice(n: u64) -> ExtensionNotification {
    ExtensionNotification {
        server: "s".to_owned(),
        method: "notifications/thing/changed".to_owned(),
        params: json!({ "n": n }),
    }
}

struct ThingServer {
    mcp: McpHttp,
    received: Arc<Mutex<Vec<Value>>>,
    lasting: LastingListeners,
}

impl ThingServer {
    fn new() -> Self {
        let (manager, received, lasting) = (
            ToolManager::new(),
            Arc::default(),
            LastingListeners::default(),
        );
        let source = ToolSource::Mcp("s".to_owned());
        let definition = ContentMethod::CallExtension.definition(source.clone());
        let tool = ThingTool {
            definition: definition.build().unwrap(),
            received: Arc::clone(&received),
            lasting: Arc::clone(&lasting),
        };
        let mut content = SourceContent::default();
        content.extensions.insert(THING.to_owned(), json!({}));
        content.access.call_extension = Some(Arc::new(tool));
        manager.replace_content(&source, ToolRank::Server(0), Some(Arc::new(content)));
        let mcp = http(&Arc::new(manager));
        Self {
            mcp,
            received,
            lasting,
        }
    }

    async fn session(&self) -> HttpCaller {
        let caller = HttpCaller::new(&self.mcp);
        let mut message = initialize("2025-11-25");
        message["params"]["capabilities"] = json!({ "extensions": { THING: {} } });
        let answer = caller.post(message).await;
        let session = answer.headers()["mcp-session-id"].to_str().unwrap();
        caller.with("mcp-session-id", session)
    }
}

fn notification(params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/thing/changed", "params": params })
}

fn modern(mut message: Value) -> Value {
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "extensions": { THING: {} } });
    message
}

#[tokio::test(start_paused = true)]
async fn a_notification_has_arrived_once_it_is_accepted() {
    let server = ThingServer::new();
    let session = server.session().await;
    let modern_caller = HttpCaller::modern(&server.mcp, "notifications/thing/changed", "");
    let given = notification(&json!({ "n": 1, "_meta": { "example.org/a": 2 } }));
    for (caller, message) in [
        (&session, given.clone()),
        (&modern_caller, modern(given.clone())),
    ] {
        assert_eq!(caller.post(message).await.status(), 202);
        let received = server.received.lock().pop().unwrap();
        let arguments = json!({
            "method": "notifications/thing/changed", "isNotification": true, "params": { "n": 1 },
            "by": { "example.org/a": 2 },
        });
        assert_eq!(received, arguments);
    }
    // It doesn't say what its client supports, or its session doesn't exist.
    assert_eq!(modern_caller.post(given.clone()).await.status(), 202);
    let stranger = session.with("mcp-session-id", &"0".repeat(32));
    assert_eq!(stranger.post(given).await.status(), 404);
    assert!(server.received.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn notifications_come_before_the_response_or_on_the_stream_of_the_session() {
    let server = ThingServer::new();
    let session = server.session().await;
    let find = request_message("thing/find", json!({}));
    let mut events = TestEvents::new(session.post(find.clone()).await);
    let told = events.message().await;
    assert_eq!(
        (&told["method"], &told["params"]["n"]),
        (&json!(notice(1).method), &json!(1))
    );
    assert_eq!(events.message().await["result"]["found"], 1);

    let lasting = server.lasting.lock().pop().unwrap();
    let mut stream = TestEvents::new(session.get().await);
    assert!(lasting.notify(notice(2)));
    assert_eq!(stream.message().await["params"]["n"], 2);
    drop(stream);
    let taken = (0..1_000).filter(|n| lasting.notify(notice(*n))).count();
    assert_eq!(taken, 64);

    // A client of 2026-07-28 gets nothing between its requests.
    let caller = HttpCaller::modern(&server.mcp, "thing/find", "");
    let mut events = TestEvents::new(caller.with("accept", BOTH).post(modern_find()).await);
    assert_eq!(events.message().await["params"]["n"], 1);
    assert_eq!(events.message().await["result"]["found"], 1);
    assert!(server.lasting.lock().is_empty());
}

fn modern_find() -> Value {
    let mut find = modern(request_message("thing/find", json!({})));
    find["params"]["_meta"]["progressToken"] = json!(1);
    find
}
