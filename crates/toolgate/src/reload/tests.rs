use std::io::Write;
use std::sync::OnceLock;

use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;
use toolgate_mcp::{ServerState, ServersOptions};
use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber};

use super::pattern_checks::EARLY_CHECK;
use super::*;
use crate::config::{ConfigReadOptions, SecretScope};

/// A hang guard, ten times what it should take.
const PATIENCE: Duration = Duration::from_secs(20);

struct ReloadFixture {
    folder: tempfile::TempDir,
    executor: ToolExecutor,
    servers: Servers,
    _task: tokio::task::JoinHandle<Infallible>,
}

fn mock(name: &str) -> String {
    format!(
        r#"{{ "name": "{name}", "description": "d", "parameters": {{}}, "implementation": {{ "type": "mock", "mock_response": 1 }} }}"#
    )
}

/// A configuration whose servers are there but never started.
fn text(tool: &str, server: &str) -> String {
    let tool = mock(tool);
    format!(
        r#"{{ "tools": [{tool}], "mcpServers": {{ "{server}": {{ "command": "x", "disabled": true }} }} }}"#
    )
}

impl ReloadFixture {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toolgate.json");
        std::fs::write(&path, text("first", "a")).unwrap();
        let config = Config::read(
            &path,
            ConfigReadOptions::new(&|_| None, SecretScope::Everything),
        )
        .unwrap();
        let tools = wiring::build_tools(&config);
        let manager = Arc::clone(&tools.manager);
        let servers = Servers::new(manager, ServersOptions::default());
        servers.apply(servers::settings(&config.servers));
        let executor = wiring::probe_executor(&config, &tools);
        let reload = ConfigReload::new(config, &tools, executor.clone(), servers.clone()).unwrap();
        Self {
            folder,
            executor,
            servers,
            _task: tokio::spawn(reload.run()),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("toolgate.json")
    }

    async fn has(&self, tool: &str, server: &str) {
        let mut changed = self.servers.subscribe();
        let both = async {
            loop {
                let listed = self.servers.status();
                let is_there = listed.len() == 1
                    && listed[0].name == server
                    && listed[0].state == ServerState::Disabled;
                if is_there && self.executor.manager().find(tool).is_some() {
                    return;
                }
                changed.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, both)
            .await
            .expect("a hang guard");
    }
}

#[tokio::test]
async fn an_edited_file_is_applied_however_the_editor_writes_it() {
    let running = ReloadFixture::start();
    running.has("first", "a").await;
    // In place.
    std::fs::write(running.path(), text("second", "b")).unwrap();
    running.has("second", "b").await;
    assert!(running.executor.manager().find("first").is_none());
    // As another file that takes its name.
    let beside = running.folder.path().join("toolgate.json.new");
    for (tool, server) in [("third", "c"), ("fourth", "d")] {
        std::fs::write(&beside, text(tool, server)).unwrap();
        std::fs::rename(&beside, running.path()).unwrap();
        running.has(tool, server).await;
    }
}

#[tokio::test]
async fn a_broken_file_changes_nothing_until_fixed() {
    let running = ReloadFixture::start();
    let mut reload = {
        let config = Config::read(
            &running.path(),
            ConfigReadOptions::new(&|_| None, SecretScope::Everything),
        )
        .unwrap();
        let tools = ConfiguredTools {
            services: ToolServices::default(),
            redactor: toolgate_core::Redactor::default(),
            manager: Arc::clone(running.executor.manager()),
            problems: Vec::new(),
        };
        ConfigReload::new(
            config,
            &tools,
            running.executor.clone(),
            running.servers.clone(),
        )
        .unwrap()
    };
    for broken in ["{ nope", "{ \"limts\": {} }", "{ \"mcpServers\": [] }"] {
        std::fs::write(running.path(), broken).unwrap();
        let read = reload.start_reading(SecretCommands::Remember).await;
        reload.apply(read);
        running.has("first", "a").await;
    }
    std::fs::remove_file(running.path()).unwrap();
    let read = reload.start_reading(SecretCommands::Remember).await;
    reload.apply(read);
    running.has("first", "a").await;
    std::fs::write(running.path(), text("mended", "m")).unwrap();
    running.has("mended", "m").await;
}

#[derive(Clone, Default)]
struct ReloadLog(Arc<Mutex<Vec<u8>>>);

impl Write for ReloadLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl ReloadLog {
    fn keep(&self) -> DefaultGuard {
        // While there is only one subscriber, a thread without one that comes to a log line first
        // would turn it off for all.
        static ANOTHER: OnceLock<Dispatch> = OnceLock::new();
        ANOTHER.get_or_init(|| Dispatch::new(NoSubscriber::new()));
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false);
        tracing::subscriber::set_default(subscriber.with_writer(move || log.clone()).finish())
    }

    fn count(&self, text: &str) -> usize {
        let bytes = self.0.lock().clone();
        String::from_utf8(bytes).unwrap().matches(text).count()
    }

    /// Waits without letting a paused clock go on.
    #[expect(
        clippy::disallowed_types,
        reason = "tokio's clock may stand still here"
    )]
    async fn has(&self, text: &str) {
        let started = std::time::Instant::now();
        while self.count(text) == 0 {
            assert!(started.elapsed() < PATIENCE, "never: {text}");
            tokio::task::yield_now().await;
        }
    }
}

fn reload_of(path: &Path) -> (ConfigReload, ToolExecutor, Servers) {
    let config = Config::read(
        path,
        ConfigReadOptions::new(&|_| None, SecretScope::Everything),
    )
    .unwrap();
    let tools = wiring::build_tools(&config);
    let servers = Servers::new(Arc::clone(&tools.manager), ServersOptions::default());
    let settings = config.servers.iter().map(|server| server.settings.clone());
    servers.apply(settings.collect());
    let executor = wiring::probe_executor(&config, &tools);
    let reload = ConfigReload::new(config, &tools, executor.clone(), servers.clone()).unwrap();
    (reload, executor, servers)
}

#[tokio::test]
async fn patterns_are_checked_early_and_after_settling() {
    let log = ReloadLog::default();
    let _kept = log.keep();
    let folder = tempfile::tempdir().unwrap();
    let (path, gate) = (folder.path().join("t.json"), folder.path().join("gate"));
    // It answers once the gate is open.
    let script = "until [ -e \"$0\" ]; do sleep 0.05; done; exec \"$1\"";
    let config = json!({
        "policy": { "deny": ["volum", "house/sleeep"] },
        "mcpServers": { "house": {
            "command": "sh", "args": ["-c", script, gate, fakemcp::program()], "startTimeout": "15m",
        } },
    });
    std::fs::write(&path, config.to_string()).unwrap();
    tokio::time::pause();
    let (reload, _executor, servers) = reload_of(&path);
    let _task = tokio::spawn(reload.run());
    let early = "policy.deny: 'volum' matches no tool (unless it belongs to 'house', which can't be asked now)";
    let started = Instant::now();
    while log.count(early) == 0 {
        assert!(started.elapsed() < EARLY_CHECK * 2, "never: {early}");
        tokio::time::advance(SETTLE_TIME).await;
    }
    assert!(started.elapsed() >= EARLY_CHECK);
    assert_eq!(log.count("matches no tool"), 1);
    std::fs::write(&gate, "").unwrap();
    log.has("policy.deny: 'house/sleeep' matches no tool; did you mean 'house/sleep'?")
        .await;
    assert_eq!(log.count("'volum' matches no tool"), 1, "it is told once");
    tokio::time::resume();
    servers.stop().await;
}

#[tokio::test]
async fn without_a_watch_sighup_still_reloads() {
    let log = ReloadLog::default();
    let _kept = log.keep();
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    let path = inner.join("t.json");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(&path, text("first", "a")).unwrap();
    let (mut reload, executor, _servers) = reload_of(&path);
    // A folder that isn't there can't be watched, as none can once the limit of watches is reached.
    std::fs::remove_dir_all(&inner).unwrap();
    reload.watch = FileWatch::start(&path, BTreeSet::new());
    assert!(reload.watch.is_err());
    let hangup = tokio::signal::unix::SignalKind::hangup();
    let reload = reload.on_hangup(Some(tokio::signal::unix::signal(hangup).unwrap()));
    let _task = tokio::spawn(reload.run());
    log.has("SIGHUP applies edits").await;
    let edited = json!({ "tools": [], "policy": { "deny": ["volum"] } });
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(&path, edited.to_string()).unwrap();
    fakemcp::send_signal("-HUP", std::process::id());
    log.has("policy.deny: 'volum' matches no tool").await;
    assert!(executor.manager().find("first").is_none());
}

#[tokio::test]
async fn health_tools_are_asked_under_the_policy_of_an_edited_file() {
    let log = ReloadLog::default();
    let _kept = log.keep();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.json");
    std::fs::write(&path, "{}").unwrap();
    let (reload, _executor, servers) = reload_of(&path);
    let config = Config::default();
    let asking = wiring::probe_executor(&config, &wiring::build_tools(&config));
    servers.watch_health(asking.clone());
    let _task = tokio::spawn(reload.run());
    std::fs::write(&path, r#"{ "policy": { "deny": ["ping"] } }"#).unwrap();
    log.has("changed and is now in use").await;
    let denied = asking.rules().policy.deny.clone();
    assert_eq!(denied.len(), 1);
    assert_eq!(denied[0].to_string(), "ping");
}
