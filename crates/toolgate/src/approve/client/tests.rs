//! Approvals in clients of both eras, over stdio and HTTP. Time is paused, so minutes pass at once.

mod elsewhere;
mod test_client;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_core::{
    Approver, CallContext, CallRecord, FunctionTool, Observer, Policy, Redactor, Scope,
    ToolDefinition, ToolExecutor, ToolManager, ToolOutput, ToolPattern,
};
use toolgate_mcp::{HttpOptions, KnownCaller, McpHttp, McpServer, ServeOptions};

use super::ClientApprover;
use test_client::{ClientKind, TestClient};

/// What a call took longer than, if nobody answered.
const LIMIT: Duration = Duration::from_secs(120);

/// A door that opens with a person's approval.
struct TestDoor {
    server: McpServer,
    http: McpHttp,
    /// Which doors were opened.
    opened: Arc<Mutex<Vec<String>>>,
    calls: EndedCalls,
}

/// How calls ended.
#[derive(Clone, Default)]
struct EndedCalls(Arc<Mutex<Vec<CallEnd>>>);

/// Who approved or refused it, and its error.
type CallEnd = (Option<String>, Option<String>);

impl Observer for EndedCalls {
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        let approval = record.approval.as_ref().map(|approval| {
            let word = if approval.granted {
                "granted"
            } else {
                "refused"
            };
            format!("{word} by {}", approval.by)
        });
        self.0.lock().push((approval, record.outcome.error()));
        None
    }
}

impl EndedCalls {
    async fn wait_for_one(&self) -> CallEnd {
        for _ in 0..1000 {
            if let Some(ended) = self.0.lock().pop() {
                return ended;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("no call has ended");
    }
}

impl TestDoor {
    fn new() -> Self {
        Self::with_approver(approver(), true)
    }

    fn with_approver(approver: impl Approver + 'static, may_approve: bool) -> Self {
        let (opened, calls) = (Arc::<Mutex<Vec<String>>>::default(), EndedCalls::default());
        let keys = Arc::clone(&opened);
        let open = move |arguments: Value, _: CallContext| {
            let door = arguments["door"].as_str().unwrap_or_default().to_owned();
            keys.lock().push(door);
            async { Ok::<_, toolgate_core::ToolError>(ToolOutput::text("open")) }
        };
        let manager = ToolManager::new();
        for name in ["unlock", "lock"] {
            let schema = json!({ "type": "object" });
            let definition = ToolDefinition::builder(name, "A door", schema);
            let tool = FunctionTool::with_definition(definition, open.clone());
            manager.add(tool.unwrap());
        }
        let mut policy = Policy::default();
        policy.ask = vec![ToolPattern::new("*")];
        let executor = ToolExecutor::builder(Arc::new(manager))
            .policy(policy)
            .approver(approver)
            .observer(calls.clone());
        let mut options = ServeOptions::new("test", "1");
        options.clients_may_approve = may_approve;
        let server = McpServer::new(executor.build(), options);
        let http = server.http(HttpOptions::default()).for_caller(KnownCaller {
            scope: Scope::default().for_caller("kitchen"),
            identity: "kitchen".into(),
            may_approve,
        });
        Self {
            server,
            http,
            opened,
            calls,
        }
    }

    async fn client(&self, kind: ClientKind) -> TestClient {
        self.client_with(kind, json!({ "elicitation": { "form": {} } }))
            .await
    }

    async fn client_with(&self, kind: ClientKind, capabilities: Value) -> TestClient {
        TestClient::connect(&self.server, &self.http, kind, capabilities).await
    }

    fn opened(&self) -> Vec<String> {
        self.opened.lock().clone()
    }
}

fn approver() -> ClientApprover {
    ClientApprover {
        redactor: Redactor::new(["hunter2-secret".to_owned()]),
    }
}

fn ticked() -> Value {
    json!({ "action": "accept", "content": { "run": true } })
}

fn text_of(message: &Value) -> &str {
    let text = message["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{message}"))
}

#[tokio::test(start_paused = true)]
async fn a_ticked_box_approves_exactly_what_the_form_shows() {
    for kind in ClientKind::ALL {
        let door = TestDoor::new();
        let mut client = door.client(kind).await;
        let arguments = json!({ "door": "front\u{202e}", "code": "hunter2-secret" });
        let asked = client.call("unlock", arguments).await;
        let form = client.form(&asked);
        let shown = form["message"].as_str().unwrap();
        assert!(shown.starts_with("unlock (") && shown.ends_with("Run unlock?"));
        // What could deceive a person is shown as its code.
        assert!(shown.contains(r"front\u{202e}"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
        let run = &form["requestedSchema"]["properties"]["run"];
        assert_eq!(
            (&run["type"], &run["default"]),
            (&json!("boolean"), &json!(false))
        );
        // A person may take their time.
        tokio::time::sleep(LIMIT - Duration::from_secs(5)).await;
        assert_eq!(door.opened(), [""; 0]);
        let done = client.answer(&asked, ticked()).await;
        assert_eq!(text_of(&done), "open", "{kind:?}");
        assert_eq!(door.opened(), ["front\u{202e}"]);
        let by = if kind.is_http() {
            "kitchen (client)"
        } else {
            "client"
        };
        let (approval, error) = door.calls.wait_for_one().await;
        assert_eq!((approval, error), (Some(format!("granted by {by}")), None));
    }
}

#[tokio::test(start_paused = true)]
async fn any_other_answer_runs_nothing() {
    const DECLINED: &str = "Tool 'unlock' was declined by the person who was asked";
    const UNANSWERED: &str = "Tool 'unlock' needs approval";
    for kind in ClientKind::ALL {
        for (answer, expected) in [
            (
                json!({ "action": "accept", "content": { "run": false } }),
                DECLINED,
            ),
            (
                json!({ "action": "accept", "content": { "run": "true" } }),
                DECLINED,
            ),
            (json!({ "action": "accept", "content": {} }), DECLINED),
            (json!({ "action": "accept" }), DECLINED),
            (
                json!({ "action": "decline", "content": { "run": true } }),
                DECLINED,
            ),
            (
                json!({ "action": "cancel", "content": { "run": true } }),
                UNANSWERED,
            ),
        ] {
            let door = TestDoor::new();
            let mut client = door.client(kind).await;
            let asked = client.call("unlock", json!({})).await;
            let done = client.answer(&asked, answer.clone()).await;
            assert_eq!(done["result"]["isError"], true, "{kind:?} {answer}");
            assert!(text_of(&done).starts_with(expected), "{answer} {done}");
            let (approval, error) = door.calls.wait_for_one().await;
            assert_eq!(approval.is_some(), expected == DECLINED, "{approval:?}");
            assert_eq!(error.as_deref(), Some(expected));
            assert_eq!(door.opened(), [""; 0]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_time_limit_an_answer_counts_for_nothing() {
    for kind in ClientKind::ALL {
        let door = TestDoor::new();
        let mut client = door.client(kind).await;
        let asked = client.call("unlock", json!({})).await;
        tokio::time::sleep(LIMIT + Duration::from_secs(1)).await;
        let (approval, error) = door.calls.wait_for_one().await;
        let expected = "Tool 'unlock' needs approval, and nobody answered in time";
        assert_eq!((approval, error.as_deref()), (None, Some(expected)));
        let done = client.answer(&asked, ticked()).await;
        if kind.is_modern() {
            assert_eq!(done["error"]["code"], -32602, "{done}");
        } else {
            assert_eq!(done["method"], "notifications/cancelled", "{done}");
            assert!(text_of(&client.next().await).starts_with(expected));
        }
        assert_eq!(door.opened(), [""; 0], "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_call_of_a_client_that_is_gone_runs_nothing() {
    for kind in ClientKind::ALL {
        let door = TestDoor::new();
        let mut client = door.client(kind).await;
        client.call("unlock", json!({})).await;
        drop(client);
        let (approval, error) = door.calls.wait_for_one().await;
        assert!(approval.is_none() && error.is_some(), "{kind:?} {error:?}");
        assert_eq!(door.opened(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_shows_no_forms_hears_what_to_do() {
    for kind in ClientKind::ALL {
        for capabilities in [
            json!({}),
            json!({ "elicitation": { "url": {} } }),
            json!({ "sampling": {}, "roots": {} }),
        ] {
            let door = TestDoor::new();
            let mut client = door.client_with(kind, capabilities).await;
            let done = client.call("unlock", json!({})).await;
            let text = text_of(&done);
            assert!(text.starts_with("Tool 'unlock' needs approval. "), "{text}");
            let advice = ["elicitation", "toolgate call", "toolgate serve"];
            assert!(advice.iter().all(|part| text.contains(part)), "{text}");
            assert_eq!(door.opened(), [""; 0]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_without_the_right_is_not_asked() {
    for kind in ClientKind::ALL {
        let door = TestDoor::with_approver(approver(), false);
        let mut client = door.client(kind).await;
        let done = client.call("unlock", json!({})).await;
        assert!(text_of(&done).starts_with("Tool 'unlock' needs approval"));
        assert_eq!(door.opened(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_for_the_call_that_it_was_asked_for() {
    for kind in [ClientKind::LegacyStdio, ClientKind::LegacyHttp] {
        let door = TestDoor::new();
        let mut client = door.client(kind).await;
        let front = client.call("unlock", json!({ "door": "front" })).await;
        client.answer(&front, ticked()).await;
        // The second call asks for itself, and the first answer is used up.
        let back = client.call("unlock", json!({ "door": "back" })).await;
        assert_ne!(front["id"], back["id"], "{kind:?}");
        client.resolve(&front, ticked()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(door.opened(), ["front"]);
        let done = client.answer(&back, json!({ "action": "decline" })).await;
        assert_eq!(done["result"]["isError"], true);
        assert_eq!(door.opened(), ["front"]);
    }
    for kind in [ClientKind::ModernStdio, ClientKind::ModernHttp] {
        let door = TestDoor::new();
        let mut client = door.client(kind).await;
        let front = client.call("unlock", json!({ "door": "front" })).await;
        for (tool, arguments) in [
            ("unlock", json!({ "door": "back" })),
            ("unlock", json!({})),
            ("lock", json!({ "door": "front" })),
        ] {
            let stolen = client.repeat(&front, tool, arguments, ticked()).await;
            assert_eq!(stolen["error"]["code"], -32602, "{kind:?} {stolen}");
        }
        assert_eq!(door.opened(), [""; 0]);
        assert_eq!(text_of(&client.answer(&front, ticked()).await), "open");
        let again = client.answer(&front, ticked()).await;
        assert_eq!(again["error"]["code"], -32602, "{again}");
        assert_eq!(door.opened(), ["front"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_before_the_question_approves_nothing() {
    for kind in [ClientKind::ModernStdio, ClientKind::ModernHttp] {
        let door = TestDoor::new();
        let mut client = door.client(kind).await;
        let asked = client
            .repeat(&Value::Null, "unlock", json!({}), ticked())
            .await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        assert_eq!(door.opened(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_approves_no_call_of_another() {
    let door = TestDoor::new();
    for kind in [ClientKind::LegacyHttp, ClientKind::ModernHttp] {
        let (mut ada, mut eve) = (door.client(kind).await, door.client(kind).await);
        let asked = ada.call("unlock", json!({ "door": "front" })).await;
        eve.use_token(2);
        eve.resolve(&asked, ticked()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(door.opened(), [""; 0], "{kind:?}");
        let done = ada.answer(&asked, json!({ "action": "decline" })).await;
        assert_eq!(done["result"]["isError"], true, "{done}");
    }
}
