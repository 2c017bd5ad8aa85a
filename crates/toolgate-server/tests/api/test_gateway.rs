//! A gateway with small tools, for tests over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_core::{
    Annotations, CallContext, Limits, LogObserver, Policy, Redactor, Tool, ToolDefinition,
    ToolError, ToolExecutor, ToolFuture, ToolManager, ToolOutput, ToolPattern, ToolSource,
    ValidArguments,
};
use toolgate_journal::{Journal, JournalSettings, OpenRetry};
use toolgate_mcp::{ServerSettings, Servers, ServersOptions};
use toolgate_models::ModelSettings;
use toolgate_server::{
    CallFeed, ConfigWriter, DashboardApprovals, DashboardQuestions, Gateway, GatewayParts, Metrics,
    Notifications, ServeSettings, Stats, TokenSettings,
};

use crate::client::{ApiEvents, ApiReply, expect_described, send, whole};

/// A secret that the redactor knows.
pub(crate) const SECRET: &str = "s3cret-value-77";

/// The command that the gateway was started as.
pub(crate) const COMMAND: &str = "toolgate test";

#[derive(Default)]
pub(crate) struct TestGatewayOptions {
    pub(crate) settings: ServeSettings,
    pub(crate) limits: Limits,
    pub(crate) has_journal: bool,
    /// Breaks the journal: a folder is where its file should be.
    pub(crate) has_blocked_journal: bool,
    pub(crate) workshop: Option<Arc<dyn ConfigWriter>>,
    pub(crate) model: ModelSettings,
    pub(crate) notifications: Notifications,
    pub(crate) mcp_servers: Vec<ServerSettings>,
}

/// A gateway that runs until it is dropped.
pub(crate) struct ApiTestGateway {
    pub(crate) address: SocketAddr,
    pub(crate) executor: ToolExecutor,
    pub(crate) servers: Servers,
    /// The journal's file, if there is one.
    pub(crate) journal: PathBuf,
    /// How often `count` ran.
    pub(crate) counted: Arc<AtomicUsize>,
    /// Calls of `wait` that were begun and not ended.
    pub(crate) waiting: Arc<AtomicUsize>,
    /// Lets calls of `hold` go on.
    pub(crate) held: Arc<Semaphore>,
    /// Tells the gateway to stop.
    pub(crate) stop: CancellationToken,
    document: Value,
    token: Option<&'static str>,
    /// The cookie of the operator, who signed in by the link.
    cookie: Option<String>,
    gateway: Gateway,
    _stop: DropGuard,
    _folder: tempfile::TempDir,
}

/// A tool of a name and a function.
struct SmallTool {
    definition: ToolDefinition,
    run: Box<dyn Fn(Value, CallContext) -> ToolFuture<'static> + Send + Sync>,
}

impl Tool for SmallTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        (self.run)(arguments.as_value().clone(), context.clone())
    }
}

fn tool(
    name: &str,
    parameters: Value,
    annotations: Annotations,
    run: impl Fn(Value, CallContext) -> ToolFuture<'static> + Send + Sync + 'static,
) -> SmallTool {
    let definition = ToolDefinition::builder(name, format!("Does {name}"), parameters);
    SmallTool {
        definition: definition
            .source(ToolSource::Builtin)
            .annotations(annotations)
            .build()
            .unwrap(),
        run: Box::new(run),
    }
}

fn add_tools(
    manager: &ToolManager,
    counted: &Arc<AtomicUsize>,
    waiting: &Arc<AtomicUsize>,
    held: &Arc<Semaphore>,
) {
    let any = || json!({ "type": "object" });
    let level = json!({
        "type": "object",
        "properties": { "level": { "type": "integer", "maximum": 100 } },
        "required": ["level"],
        "additionalProperties": false,
    });
    let usual = Annotations::default();
    let echo = |arguments: Value, context: CallContext| -> ToolFuture<'static> {
        let mut told = json!({ "echo": arguments });
        if let Some(state) = context.trace_state() {
            told["tracestate"] = state.into();
        }
        Box::pin(async move { Ok(ToolOutput::json(told)) })
    };
    for name in ["echo", "a/b", "..", "up:to.date"] {
        manager.add(tool(name, any(), Annotations::READ_ONLY, echo));
    }
    manager.add(tool("dim", level, usual, echo));
    manager.add(tool("lock", any(), usual, echo));
    let times = Arc::clone(counted);
    manager.add(tool("count", any(), usual, move |_, _| {
        let times = times.fetch_add(1, Ordering::SeqCst) + 1;
        Box::pin(async move { Ok(ToolOutput::json(json!({ "times": times }))) })
    }));
    let begun = Arc::clone(waiting);
    manager.add(tool("wait", any(), usual, move |_, _| {
        let begun = RunningGuard::new(&begun);
        Box::pin(async move {
            let _begun = begun;
            std::future::pending().await
        })
    }));
    let (begun, gate) = (Arc::clone(waiting), Arc::clone(held));
    manager.add(tool("hold", any(), usual, move |_, _| {
        let (begun, gate) = (RunningGuard::new(&begun), Arc::clone(&gate));
        Box::pin(async move {
            let _begun = begun;
            drop(gate.acquire().await);
            Ok(ToolOutput::text("held"))
        })
    }));
    manager.add(tool("fail", any(), usual, |_, _| {
        let error = ToolError::failed(format!("it broke on {SECRET}"));
        Box::pin(async { Err(error.with_details("stderr: a line of another's call")) })
    }));
    manager.add(tool("panic", any(), usual, |_, _| panic!("a bug")));
    manager.add(tool("long", any(), usual, |_, _| {
        Box::pin(async { Ok(ToolOutput::text("x".repeat(300 << 10))) })
    }));
    manager.add(tool("tell", any(), usual, |_, _| {
        let told = json!({ "password": "hunter2", "note": format!("{SECRET} is it") });
        Box::pin(async { Ok(ToolOutput::json(told)) })
    }));
}

struct RunningGuard(Arc<AtomicUsize>);

impl RunningGuard {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A token as long as one has to be.
pub(crate) fn long(name: &str) -> String {
    format!("{name}-0123456789abcdef0123456789abcdef")
}

/// A token that may use only these tools.
pub(crate) fn token(token: &str, allow: &[&str]) -> TokenSettings {
    token_with(token, allow, &[])
}

/// Like `token`, with rights.
pub(crate) fn token_with(token: &str, allow: &[&str], rights: &[&str]) -> TokenSettings {
    let token = json!({ "token": long(token), "name": token, "allow": allow, "rights": rights });
    serde_json::from_value(token).unwrap()
}

impl ApiTestGateway {
    pub(crate) async fn start() -> Self {
        Self::start_with(TestGatewayOptions::default()).await
    }

    pub(crate) async fn start_with(plan: TestGatewayOptions) -> Self {
        let needs_token = !plan.settings.token.is_empty() || !plan.settings.tokens.is_empty();
        let (counted, waiting) = (Arc::default(), Arc::default());
        let held = Arc::new(Semaphore::new(0));
        let manager = Arc::new(ToolManager::new());
        add_tools(&manager, &counted, &waiting, &held);
        let redactor = Redactor::new([SECRET.to_owned()]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.db");
        if plan.has_blocked_journal {
            std::fs::create_dir(&file).unwrap();
        }
        let journal = (plan.has_journal || plan.has_blocked_journal).then(|| {
            let mut settings = JournalSettings::default();
            settings.open_retry = OpenRetry::Endless;
            Journal::open(&file, &settings, redactor.clone(), COMMAND).unwrap()
        });
        let mut policy = Policy::default();
        policy.ask = vec![ToolPattern::new("lock")];
        let (feed, stats, metrics) = (CallFeed::default(), Stats::default(), Metrics::default());
        let approvals = DashboardApprovals::default();
        let mut executor = ToolExecutor::builder(Arc::clone(&manager))
            .limits(plan.limits)
            .policy(policy)
            .approver(approvals.clone());
        if let Some(journal) = &journal {
            executor = executor.observer(journal.observer());
        }
        let executor = executor
            .observer(LogObserver::default())
            .observer(stats.clone())
            .observer(metrics.clone())
            .observer(feed.clone())
            .build();
        let questions = DashboardQuestions::default();
        let mut options = ServersOptions::new();
        options.elicitation_handler = Some(Arc::new(questions.clone()));
        options.relays_questions = true;
        let servers = Servers::new(manager, options);
        servers.apply(plan.mcp_servers);
        let gateway = Gateway::new(GatewayParts {
            executor: executor.clone(),
            servers: servers.clone(),
            feed,
            stats,
            metrics,
            traces: None,
            approvals,
            questions,
            notifications: plan.notifications,
            redactor,
            model: plan.model,
            command: COMMAND.to_owned(),
            journal,
            journal_problem: None,
            config_writer: plan.workshop,
            settings: plan.settings,
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = toolgate_server::serve(gateway.clone(), listener, stop.clone());
        tokio::spawn(serving);
        let mut gateway = Self {
            address,
            executor,
            servers,
            journal: file,
            counted,
            waiting,
            held,
            stop: stop.clone(),
            document: Value::Null,
            token: None,
            cookie: None,
            gateway,
            _stop: stop.drop_guard(),
            _folder: folder,
        };
        gateway.document = gateway.read_document().await;
        if !needs_token {
            gateway.open_link().await;
        }
        gateway
    }

    async fn read_document(&self) -> Value {
        let bearer = format!("Bearer {}", long("full"));
        let headers = [("authorization", bearer.as_str())];
        let document = send(self.address, &Method::GET, "/openapi.json", &headers, "").await;
        whole(document).await.json()
    }

    /// Sends this token with every further request.
    pub(crate) fn sign_in(&mut self, token: &'static str) {
        self.token = Some(token);
    }

    /// Sends further requests as the operator in a signed-in browser.
    pub(crate) async fn open_link(&mut self) {
        let key = self.new_link();
        self.cookie = Some(self.follow_link(&key).await.unwrap());
        self.token = None;
    }

    /// The cookie that opening a link gives.
    pub(crate) async fn follow_link(&self, key: &str) -> Option<String> {
        let path = format!("/?key={key}");
        let reply = whole(send(self.address, &Method::GET, &path, &[], "").await).await;
        assert_eq!(
            (reply.status.as_u16(), reply.header("location")),
            (303, "/")
        );
        let cookie = reply.header("set-cookie").split(';').next().unwrap();
        (!cookie.is_empty()).then(|| cookie.to_owned())
    }

    pub(crate) fn new_link(&self) -> String {
        let key = toolgate_server::random_key().unwrap();
        self.gateway.accept_sign_in_key(&key);
        key
    }

    pub(crate) fn new_command_key(&self) -> String {
        let key = toolgate_server::random_key().unwrap();
        self.gateway.accept_command_key(&key);
        key
    }

    /// Sends further requests without a token.
    pub(crate) fn sign_out(&mut self) {
        (self.token, self.cookie) = (None, None);
    }

    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    pub(crate) async fn open(
        &self,
        method: Method,
        path: &str,
        body: &str,
    ) -> http::Response<hyper::body::Incoming> {
        let token = self.token.map(|token| format!("Bearer {}", long(token)));
        let mut headers = vec![("content-type", "application/json")];
        let origin = format!("http://{}", self.address);
        match (&token, &self.cookie) {
            (Some(token), _) => headers.push(("authorization", token)),
            (None, Some(cookie)) => headers.extend([("cookie", &**cookie), ("origin", &origin)]),
            (None, None) => {}
        }
        send(self.address, &method, path, &headers, body.to_owned()).await
    }

    /// Sends a request and checks the answer against the document.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: &str) -> ApiReply {
        let reply = whole(self.open(method.clone(), path, body).await).await;
        expect_described(&self.document, &method, path, &reply);
        reply
    }

    pub(crate) async fn get(&self, path: &str) -> ApiReply {
        self.ask(Method::GET, path, "").await
    }

    /// Like `get`, with this token.
    pub(crate) async fn get_as(&self, token: &str, path: &str) -> ApiReply {
        self.get_with(&long(token), path).await
    }

    /// Like `get_as`, with the token unchanged.
    pub(crate) async fn get_with(&self, token: &str, path: &str) -> ApiReply {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str())];
        let reply = whole(send(self.address, &Method::GET, path, &headers, "").await).await;
        expect_described(&self.document, &Method::GET, path, &reply);
        reply
    }

    pub(crate) async fn post_as(&self, token: &str, path: &str, body: &Value) -> ApiReply {
        let bearer = format!("Bearer {}", long(token));
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let reply = send(
            self.address,
            &Method::POST,
            path,
            &headers,
            body.to_string(),
        );
        let reply = whole(reply.await).await;
        expect_described(&self.document, &Method::POST, path, &reply);
        reply
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> ApiReply {
        self.ask(Method::POST, path, &body.to_string()).await
    }

    /// Sends the current token, if there is one.
    pub(crate) async fn call(&self, tool: &str, arguments: &Value) -> ApiReply {
        let path = format!("/api/tools/{tool}/call");
        if self.token.is_some() {
            return self.post(&path, arguments).await;
        }
        let headers = [("content-type", "application/json")];
        let arguments = arguments.to_string();
        let reply = send(self.address, &Method::POST, &path, &headers, arguments).await;
        let reply = whole(reply).await;
        expect_described(&self.document, &Method::POST, &path, &reply);
        reply
    }

    pub(crate) async fn events(&self, path: &str) -> ApiEvents {
        ApiEvents::of(self.open(Method::GET, path, "").await)
    }

    /// Like `events`, with this token.
    pub(crate) async fn events_as(&self, token: &str, path: &str) -> ApiEvents {
        let bearer = format!("Bearer {}", long(token));
        let headers = [("authorization", bearer.as_str())];
        let stream = send(self.address, &Method::GET, path, &headers, "").await;
        assert_eq!(stream.status(), 200);
        ApiEvents::of(stream)
    }
}

/// Waits for a condition that soon holds.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    let soon = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(crate::client::HANG, soon)
        .await
        .unwrap();
}
