//! Toolgate as a client of Toolgate.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_core::{
    ClientId, LogHandler, LogLevel, LogMessage, Question, QuestionError, QuestionHandler, ToolCall,
    ToolExecutor, ToolManager, ToolOutput,
};
use toolgate_mcp::{
    EraSetting, SecretHeaders, ServerConnection, ServerSettings, Servers, ServersOptions,
};

use crate::test_server::{TestMcpServer, add};

/// A gateway with servers behind it; a single one is named `upstream`.
pub(crate) struct TestGateway {
    pub(crate) servers: Servers,
    pub(crate) executor: ToolExecutor,
}

impl TestGateway {
    pub(crate) async fn connect(url: String, era: EraSetting) -> Self {
        Self::connect_all(vec![("upstream", url)], era).await
    }

    /// With servers under these names, in this order.
    pub(crate) async fn connect_all(urls: Vec<(&str, String)>, era: EraSetting) -> Self {
        let manager = Arc::new(ToolManager::new());
        let mut options = ServersOptions::new();
        options.retry.base_delay = Duration::from_millis(50);
        options.relays_questions = true;
        let servers = Servers::new(Arc::clone(&manager), options);
        let settings = urls.into_iter().map(|(name, url)| {
            let headers = SecretHeaders::default();
            let connection = ServerConnection::Http { url, headers };
            let mut settings = ServerSettings::new(name, connection);
            settings.era = era;
            settings
        });
        servers.apply(settings.collect());
        servers.start_all().await;
        let executor = ToolExecutor::builder(manager).without_observers();
        Self {
            servers,
            executor: executor.build(),
        }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let call = ToolCall::new(tool, arguments);
        self.executor.execute(call).await.to_envelope()
    }
}

#[tokio::test]
async fn marked_parameters_reach_a_server_that_compares_them() {
    let upstream = TestMcpServer::open().await;
    let schema = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "at": { "type": "object", "properties": {
            "floor": { "type": "integer", "x-mcp-header": "Floor" },
            "indoors": { "type": "boolean", "x-mcp-header": "Indoors" },
        } },
    } });
    let echo = |arguments, _| -> futures::future::BoxFuture<'static, _> {
        Box::pin(async { Ok(ToolOutput::json(arguments)) })
    };
    add(&upstream.manager, "lamp", schema, Box::new(echo));
    let number = json!({ "type": "object", "properties": {
        "level": { "type": "number", "x-mcp-header": "Level" },
    } });
    add(&upstream.manager, "invalid", number, Box::new(echo));
    let gateway = TestGateway::connect(upstream.url(), EraSetting::Modern).await;
    for arguments in [
        json!({}),
        json!({ "region": "us-west1" }),
        json!({ "region": " größe\n", "at": { "floor": -7, "indoors": false } }),
        json!({ "region": "=?base64?x?=", "at": { "floor": 3.0 } }),
        json!({ "at": { "floor": 9_007_199_254_740_991_u64 } }),
        json!({ "at": {} }),
    ] {
        let envelope = gateway.call("lamp", arguments.clone()).await;
        assert_eq!(envelope["result"], arguments, "{envelope}");
    }
    let unsafe_integer = json!({ "at": { "floor": 9_007_199_254_740_992_u64 } });
    let envelope = gateway.call("lamp", unsafe_integer).await;
    let error = envelope["error"].as_str().unwrap();
    assert!(error.contains("'at.floor' must be between"), "{envelope}");

    let tools = gateway.executor.manager().tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.definition().name()).collect();
    assert!(names.contains(&"lamp"), "{names:?}");
    assert!(!names.contains(&"invalid"), "{names:?}");
    gateway.servers.stop().await;
}

struct TestLog(u64, Mutex<Vec<LogMessage>>);

impl LogHandler for TestLog {
    fn level(&self) -> Option<LogLevel> {
        Some(LogLevel::Info)
    }

    fn caller(&self) -> u64 {
        self.0
    }

    fn log(&self, message: LogMessage) {
        self.1.lock().push(message);
    }
}

#[tokio::test]
async fn log_messages_of_a_server_reach_the_caller_in_both_eras() {
    let upstream = TestMcpServer::open().await;
    add(
        &upstream.manager,
        "talk",
        json!({ "type": "object" }),
        Box::new(|arguments, context| {
            Box::pin(async move {
                context.log(LogLevel::Debug, "not wanted");
                context.log(LogLevel::Info, arguments["word"].clone());
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(ToolOutput::text("done"))
            })
        }),
    );
    for era in [EraSetting::Modern, EraSetting::Legacy] {
        let gateway = TestGateway::connect(upstream.url(), era).await;
        let logs = [1, 2].map(|caller| Arc::new(TestLog(caller, Mutex::default())));
        let calls = logs.iter().map(|log| {
            let call = ToolCall::new("talk", json!({ "word": log.0 }));
            gateway.executor.execute(call.on_log(Arc::clone(log) as _))
        });
        for outcome in futures::future::join_all(calls).await {
            assert!(outcome.is_success(), "{}", outcome.to_envelope());
        }
        for log in &logs {
            let expected = LogMessage {
                level: LogLevel::Info,
                logger: Some("upstream".to_owned()),
                data: json!(log.0),
                meta: None,
            };
            assert_eq!(*log.1.lock(), [expected], "{era:?}");
        }
        gateway.servers.stop().await;
    }
}

/// A client that says its name.
struct TestPerson {
    name: &'static str,
    client: ClientId,
    capabilities: Value,
    asked: Mutex<Vec<Value>>,
}

impl QuestionHandler for TestPerson {
    fn client(&self) -> ClientId {
        self.client
    }

    fn capabilities(&self) -> &Value {
        &self.capabilities
    }

    fn ask<'a>(
        &'a self,
        questions: Vec<Question>,
    ) -> BoxFuture<'a, Result<Vec<Value>, QuestionError>> {
        let asked = questions.iter().map(|it| it.params["message"].clone());
        self.asked.lock().extend(asked);
        let answer = json!({ "action": "accept", "content": { "name": self.name } });
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok(vec![answer; questions.len()])
        })
    }
}

/// Asks what the argument says, and answers with the answer.
fn offer_asking_tool(upstream: &TestMcpServer) {
    let ask = |arguments: Value, context: toolgate_core::CallContext| -> BoxFuture<'static, _> {
        Box::pin(async move {
            let schema =
                json!({ "type": "object", "properties": { "name": { "type": "string" } } });
            let question = Question {
                key: "name".to_owned(),
                server: "upstream".to_owned(),
                method: "elicitation/create".to_owned(),
                params: json!({ "message": arguments["word"], "requestedSchema": schema }),
            };
            let handler = context.questions().expect("the client can be asked");
            let answers = handler.ask(vec![question]).await.expect("it answers");
            Ok(ToolOutput::json(answers[0].clone()))
        })
    };
    add(
        &upstream.manager,
        "ask",
        json!({ "type": "object" }),
        Box::new(ask),
    );
}

#[tokio::test]
async fn questions_reach_the_caller_they_are_about_while_others_use_the_server() {
    let upstream = TestMcpServer::open().await;
    offer_asking_tool(&upstream);
    for era in [EraSetting::Modern, EraSetting::Legacy] {
        let gateway = TestGateway::connect(upstream.url(), era).await;
        let people = ["Ada", "Bob"].map(|name| {
            Arc::new(TestPerson {
                name,
                client: ClientId::unique(),
                capabilities: json!({ "elicitation": {} }),
                asked: Mutex::default(),
            })
        });
        let calls = people.iter().map(|person| {
            let call = ToolCall::new("ask", json!({ "word": person.name }));
            gateway
                .executor
                .execute(call.on_question(Arc::clone(person) as _))
        });
        let outcomes = futures::future::join_all(calls).await;
        for (person, outcome) in people.iter().zip(outcomes) {
            let envelope = outcome.to_envelope();
            assert_eq!(
                envelope["result"]["content"]["name"], person.name,
                "{era:?} {envelope}"
            );
            assert_eq!(*person.asked.lock(), [json!(person.name)], "{era:?}");
        }
        gateway.servers.stop().await;
    }
}
