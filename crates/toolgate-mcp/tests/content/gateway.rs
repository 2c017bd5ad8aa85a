//! The setup of these tests: fake servers with content, and a gateway in front of them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;
use toolgate_core::{Limits, Policy, Scope, ToolCall, ToolExecutor, ToolManager, ToolPattern};
use toolgate_mcp::{
    McpServer, ProtocolEra, ServeOptions, ServerConnection, ServerProgram, ServerSettings, Servers,
    ServersOptions, ToolCatalog,
};

use crate::client::{PATIENCE, TestClient};

pub(crate) const ERAS: [ProtocolEra; 2] = [ProtocolEra::Legacy, ProtocolEra::Modern];

/// All pairs of the client's and the server's era.
pub(crate) fn era_pairs() -> impl Iterator<Item = (ProtocolEra, ProtocolEra)> {
    ERAS.into_iter()
        .flat_map(|client| ERAS.map(|server| (client, server)))
}

pub(crate) struct Gateway {
    pub(crate) servers: Servers,
    pub(crate) executor: ToolExecutor,
    pub(crate) server: McpServer,
    pub(crate) settings: Vec<ServerSettings>,
    folder: TempDir,
}

impl Gateway {
    /// Starts one server of the given era for each name, with this content.
    pub(crate) async fn start(era: ProtocolEra, servers: &[(&str, Value)]) -> Self {
        let gateway = Self::prepare(era, servers, |_| {});
        gateway.start_all().await;
        gateway
    }

    /// Like `start`, but starts no server.
    pub(crate) fn prepare(
        era: ProtocolEra,
        servers: &[(&str, Value)],
        change: impl FnOnce(&mut ServersOptions),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let manager = Arc::new(ToolManager::new());
        let mut options = ServersOptions::new();
        options.retry.base_delay = Duration::from_millis(10);
        options.catalog = ToolCatalog::new(folder.path().join("catalogue"));
        change(&mut options);
        let all = Servers::new(Arc::clone(&manager), options);
        let executor = ToolExecutor::builder(Arc::clone(&manager)).without_observers();
        let executor = executor.build();
        let server = McpServer::new(executor.clone(), ServeOptions::gateway("1.0.0"));
        server.wait_for(all.clone());
        let mut gateway = Self {
            servers: all,
            executor,
            server,
            settings: Vec::new(),
            folder,
        };
        for (name, content) in servers {
            gateway.add(name, era, content);
        }
        gateway.servers.apply(gateway.settings.clone());
        gateway
    }

    /// A second gateway with the same folder and settings, as after a restart.
    pub(crate) fn again(self, change: impl FnOnce(&mut ServersOptions)) -> Self {
        let mut other = Self::prepare(ProtocolEra::Legacy, &[], |options| {
            options.catalog = ToolCatalog::new(self.folder.path().join("catalogue"));
            change(options);
        });
        other.folder = self.folder;
        other.settings = self.settings;
        other.servers.apply(other.settings.clone());
        other
    }

    /// Adds a server to the settings without applying them.
    pub(crate) fn add(&mut self, name: &str, era: ProtocolEra, content: &Value) {
        self.write(name, content);
        let mut program = ServerProgram {
            command: fakemcp::program().display().to_string(),
            args: vec![
                format!("content={}", self.path(name).display()),
                format!("count={}", self.path(&format!("{name}.count")).display()),
            ],
            ..ServerProgram::default()
        };
        if era == ProtocolEra::Modern {
            program.args.push("modern".to_owned());
        }
        let identity = json!({ "command": "fakemcp" });
        let mut settings = ServerSettings::new(name, ServerConnection::Stdio(program))
            .with_identity(&identity, self.folder.path());
        settings.start_timeout = Some(Duration::from_secs(60));
        self.settings.push(settings);
    }

    /// Changes how a server is started, without applying it.
    pub(crate) fn add_argument(&mut self, server: &str, argument: &str) {
        let folder = self.folder.path().display().to_string();
        for settings in self.settings.iter_mut().filter(|it| it.name == server) {
            if let ServerConnection::Stdio(program) = &mut settings.connection {
                program.args.push(argument.replace('@', &folder));
            }
        }
    }

    pub(crate) async fn apply(&self) {
        self.servers.apply(self.settings.clone());
        self.start_all().await;
    }

    pub(crate) async fn start_all(&self) {
        let started = tokio::time::timeout(Duration::from_secs(100), self.servers.start_all());
        started.await.unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Changes the content of a server, which reads it for every request.
    pub(crate) fn write(&self, name: &str, content: &Value) {
        let mut content = content.clone();
        if content["name"].is_null() {
            content["name"] = json!(name);
        }
        // Renamed into place, so that the server never reads half a file.
        let partial = self.path(&format!("{name}.new"));
        std::fs::write(&partial, content.to_string()).unwrap();
        std::fs::rename(&partial, self.path(name)).unwrap();
    }

    pub(crate) async fn client(&self, era: ProtocolEra) -> TestClient {
        TestClient::new(self.server.clone(), era).await
    }

    /// A client whose scope is `allow` without `deny`.
    pub(crate) async fn client_within(
        &self,
        era: ProtocolEra,
        allow: &[&str],
        deny: &[&str],
    ) -> TestClient {
        TestClient::new(self.server.within(scope(allow, deny)), era).await
    }

    /// Like `client_within`, for a client that fills in every form with this
    /// and wants log messages.
    pub(crate) async fn client_answering(
        &self,
        era: ProtocolEra,
        allow: &[&str],
        deny: &[&str],
        content: Value,
    ) -> TestClient {
        TestClient::answering(self.server.within(scope(allow, deny)), era, content).await
    }

    pub(crate) fn deny(&self, patterns: &[&str]) {
        let mut policy = Policy::default();
        policy.deny = patterns.iter().map(|text| ToolPattern::new(text)).collect();
        self.executor.set_rules(Limits::default(), policy);
    }

    /// Calls a tool of a fake server directly, not through a client.
    pub(crate) async fn call(&self, server: &str, tool: &str, arguments: Value) -> Value {
        let call = ToolCall::new(format!("{server}__{tool}"), arguments);
        let envelope = self.executor.execute(call).await.to_envelope();
        assert_eq!(envelope["success"], true, "{tool}: {envelope}");
        match &envelope["result"] {
            Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
            other => other.clone(),
        }
    }

    /// The parameters of the requests of this method that a server has received.
    pub(crate) async fn received(&self, server: &str, method: &str) -> Vec<Value> {
        let messages = self.received_messages(server).await.into_iter();
        let of_method = messages.filter(|message| message["method"] == method);
        of_method
            .map(|mut message| message["params"].take())
            .collect()
    }

    /// All messages that a server has received.
    pub(crate) async fn received_messages(&self, server: &str) -> Vec<Value> {
        let messages = self.call(server, "received", json!({})).await;
        messages.as_array().unwrap().clone()
    }

    /// Makes a server announce a changed list.
    pub(crate) async fn announce(&self, server: &str, kind: &str) {
        let method = format!("notifications/{kind}/list_changed");
        let arguments = json!({ "method": method, "params": {} });
        self.call(server, "notify", arguments).await;
    }

    /// Announces an update, and returns whether the server knows of a subscription.
    pub(crate) async fn update(&self, server: &str, uri: &str) -> bool {
        self.call(server, "update", json!({ "uri": uri })).await == true
    }

    /// Waits until a server has exactly these subscriptions.
    pub(crate) async fn wait_until_subscribed(&self, server: &str, uris: &[&str]) {
        let started = Instant::now();
        let wanted = json!(uris);
        loop {
            let now = self.call(server, "subscribed", json!({})).await;
            if now == wanted {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "{now} is not {wanted}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn stop(self) {
        let stopped = tokio::time::timeout(Duration::from_secs(100), self.servers.stop());
        stopped.await.unwrap();
    }
}

pub(crate) fn scope(allow: &[&str], deny: &[&str]) -> Scope {
    let patterns = |texts: &[&str]| texts.iter().map(|text| ToolPattern::new(text)).collect();
    Scope::only(patterns(allow)).except(patterns(deny))
}
