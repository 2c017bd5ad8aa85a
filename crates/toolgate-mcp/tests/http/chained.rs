//! Toolgate as a client of Toolgate.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_core::{
    LogHandler, LogLevel, LogMessage, ToolCall, ToolExecutor, ToolManager, ToolOutput,
};
use toolgate_mcp::{
    EraChoice, SecretHeaders, ServerConnection, ServerSettings, Servers, ServersOptions,
};

use crate::test_server::{TestMcpServer, add};

/// A gateway with servers behind it; a single one is named `upstream`.
pub(crate) struct TestGateway {
    pub(crate) servers: Servers,
    pub(crate) executor: ToolExecutor,
}

impl TestGateway {
    pub(crate) async fn connect(url: String, era: EraChoice) -> Self {
        Self::connect_all(vec![("upstream", url)], era).await
    }

    /// With servers under these names, in this order.
    pub(crate) async fn connect_all(urls: Vec<(&str, String)>, era: EraChoice) -> Self {
        let manager = Arc::new(ToolManager::new());
        let mut options = ServersOptions::new();
        options.retry.base_delay = Duration::from_millis(50);
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
    let gateway = TestGateway::connect(upstream.url(), EraChoice::Modern).await;
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
    for era in [EraChoice::Modern, EraChoice::Legacy] {
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
