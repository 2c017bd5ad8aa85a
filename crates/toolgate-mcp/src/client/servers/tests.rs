//! Tests of supervision with scripted servers and a paused clock.

mod apply;
mod connecting;
mod health;
mod living;
mod pinning;
mod remembering;

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::future::BoxFuture;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use toolgate_core::{FunctionTool, Redactor, Tool, ToolDefinition, ToolError, ToolSource};
use tracing::subscriber::DefaultGuard;

use super::super::catalog::ToolCatalog;
use super::super::connect::ConnectError;
use super::super::connection::{ConnectedServer, ServerOutput, SupervisedConnection, ToolOffer};
use super::super::health::ServerHealthHandler;
use super::super::session::ClientSession;
use super::super::tests::scripted_server::{ScriptedReply, ScriptedServer};
use super::super::transport::SessionEnd;
use super::*;
use crate::client::content::ListedContent;
use crate::{ProtocolEra, ServerConnection, ServerProgram, ServerState};

/// What a scripted server does at one start.
#[derive(Clone)]
enum ScriptedStart {
    /// Fails after a delay, with this text on stderr.
    Fail(Duration, &'static str),
    /// The program doesn't exist.
    Missing,
    /// Fails permanently.
    Hopeless,
    Hang,
    /// Connects after a delay.
    Connect(Duration),
    /// Connects at once and dies after a delay.
    Die(Duration),
    /// Panics, as by a bug of ours.
    Panic,
}

const NOW: Duration = Duration::ZERO;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Plays each server by its script; the last act repeats forever.
#[derive(Default)]
struct ScriptedConnector {
    scripts: Mutex<HashMap<String, VecDeque<ScriptedStart>>>,
    starts: Mutex<Vec<(String, Instant)>>,
    links: Mutex<HashMap<String, ServerLink>>,
    peers: Mutex<HashMap<String, Arc<ScriptedConnection>>>,
    patience: Mutex<Vec<Duration>>,
    /// Answers of health tools, by server.
    health: Mutex<HashMap<String, Arc<health::HealthAnswers>>>,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    /// How long the processes of a server take to end.
    clearing: Mutex<Duration>,
}

struct ScriptedConnection {
    server: String,
    tools: Mutex<Result<Vec<(String, String)>, String>>,
    changed: Notify,
    listings: AtomicUsize,
    session: Arc<ClientSession>,
    closed: AtomicBool,
    close_takes: Mutex<Duration>,
    health: Arc<health::HealthAnswers>,
}

impl ServerConnector for ScriptedConnector {
    fn connect<'a>(
        &'a self,
        settings: &'a ServerSettings,
        link: &'a ServerLink,
        patience: Duration,
    ) -> BoxFuture<'a, Result<ConnectedServer, ConnectError>> {
        let name = settings.name.clone();
        self.starts.lock().push((name.clone(), Instant::now()));
        self.links.lock().insert(name.clone(), link.clone());
        self.patience.lock().push(patience);
        let act = {
            let mut scripts = self.scripts.lock();
            let script = scripts.get_mut(&name).unwrap();
            match script.len() {
                1 => script[0].clone(),
                _ => script.pop_front().unwrap(),
            }
        };
        Box::pin(async move {
            let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_at_once.fetch_max(now, Ordering::SeqCst);
            let played = self.play(&name, act, patience).await;
            self.at_once.fetch_sub(1, Ordering::SeqCst);
            played
        })
    }

    fn wait_for_exit<'a>(&'a self, _server: &'a str) -> BoxFuture<'a, ()> {
        let clearing = *self.clearing.lock();
        Box::pin(sleep(clearing))
    }

    fn output(&self, server: &str) -> ServerOutput {
        ServerOutput {
            stray_line_count: 2,
            stray_lines: vec!["hello".to_owned()],
            stderr: vec![format!("stderr of {server}")],
            sampling: None,
        }
    }
}

impl ScriptedConnector {
    async fn play(
        &self,
        name: &str,
        act: ScriptedStart,
        patience: Duration,
    ) -> Result<ConnectedServer, ConnectError> {
        let refused = |reason: &str, stderr: &str, hopeless| ConnectError {
            reason: reason.into(),
            stderr: stderr.lines().map(str::to_owned).collect(),
            is_permanent: hopeless,
            is_not_started: false,
        };
        let life = match act {
            ScriptedStart::Fail(after, stderr) => {
                sleep(after).await;
                return Err(refused(
                    "it stopped during the handshake (exit status 3)",
                    stderr,
                    false,
                ));
            }
            ScriptedStart::Missing => {
                return Err(ConnectError {
                    is_not_started: true,
                    ..refused("command 'a' was not found on the PATH", "", false)
                });
            }
            ScriptedStart::Hopeless => {
                return Err(refused("the server requires a login (HTTP 401)", "", true));
            }
            ScriptedStart::Hang => {
                sleep(patience).await;
                return Err(refused("no answer to the handshake", "", false));
            }
            ScriptedStart::Panic => panic!("a mistake"),
            ScriptedStart::Connect(after) => {
                sleep(after).await;
                None
            }
            ScriptedStart::Die(after) => Some(after),
        };
        let mut player = ScriptedConnection::new(name);
        if let Some(health) = self.health.lock().get(name) {
            player.health = Arc::clone(health);
        }
        let player = Arc::new(player);
        if let Some(life) = life {
            let player = Arc::clone(&player);
            tokio::spawn(async move {
                sleep(life).await;
                player.die(exit("exit status 0"));
            });
        }
        let offer = player.offering().unwrap();
        self.peers
            .lock()
            .insert(name.to_owned(), Arc::clone(&player));
        Ok(ConnectedServer {
            connection: player,
            offer,
        })
    }

    fn peer(&self, name: &str) -> Arc<ScriptedConnection> {
        Arc::clone(&self.peers.lock()[name])
    }

    fn link(&self, name: &str) -> ServerLink {
        self.links.lock()[name].clone()
    }

    /// The start times of a server in seconds since `begin`.
    fn starts(&self, name: &str, begin: Instant) -> Vec<f64> {
        let starts = self.starts.lock();
        let of = starts.iter().filter(|(server, _)| server == name);
        of.map(|(_, at)| ((*at - begin).as_secs_f64() * 10.0).round() / 10.0)
            .collect()
    }
}

impl ScriptedConnection {
    fn new(server: &str) -> Self {
        let (session, _) = ScriptedServer::session(|_, _| ScriptedReply::Nothing);
        Self {
            server: server.to_owned(),
            tools: Mutex::new(Ok(vec![(format!("{server}_tool"), "Does it".to_owned())])),
            changed: Notify::new(),
            listings: AtomicUsize::new(0),
            session,
            closed: AtomicBool::new(false),
            close_takes: Mutex::new(Duration::from_millis(100)),
            health: Arc::default(),
        }
    }

    fn offering(&self) -> Result<ToolOffer, String> {
        let tools = self.tools.lock().clone()?;
        let tools = tools
            .iter()
            .map(|(name, text)| tool(name, text, ToolSource::Mcp(self.server.clone())));
        Ok(ToolOffer {
            tools: tools.chain(self.health.tool(&self.server)).collect(),
            listed: self.tools.lock().clone()?.iter().map(definition).collect(),
            refused: Vec::new(),
            content: ListedContent::default(),
            is_ttl_refresh: false,
        })
    }

    fn set_tools(&self, tools: &[(&str, &str)]) {
        let owned = tools
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        *self.tools.lock() = Ok(owned.collect());
        self.changed.notify_one();
    }

    fn die(&self, end: SessionEnd) {
        self.session.inbox().on_closed(end);
    }
}

impl SupervisedConnection for ScriptedConnection {
    fn era(&self) -> ProtocolEra {
        ProtocolEra::Legacy
    }
    fn revision(&self) -> Option<String> {
        self.session.revision()
    }
    fn pid(&self) -> Option<u32> {
        Some(7)
    }
    fn attach(&self, link: &ServerLink) {
        link.set_up(Arc::clone(&self.session));
    }
    fn list_everything(&self) -> BoxFuture<'_, Result<ToolOffer, String>> {
        self.listings.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { self.offering() })
    }
    fn lists_changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.changed.notified())
    }
    fn ended(&self) -> BoxFuture<'_, SessionEnd> {
        Box::pin(self.session.ended())
    }
    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.store(true, Ordering::SeqCst);
        Box::pin(sleep(*self.close_takes.lock()))
    }
}

fn exit(status: &str) -> SessionEnd {
    SessionEnd {
        status: status.into(),
        stderr: vec!["Traceback".to_owned()],
    }
}

/// A `tools/list` entry. A name that starts with `wipe` is marked destructive.
fn definition((name, text): &(String, String)) -> serde_json::Value {
    let annotations = json!({ "destructiveHint": name.starts_with("wipe") });
    json!({ "name": name, "description": text, "inputSchema": { "type": "object" }, "annotations": annotations })
}

fn tool(name: &str, description: &str, source: ToolSource) -> Arc<dyn Tool> {
    let definition = ToolDefinition::builder(name, description, json!({ "type": "object" }));
    let run = async |_: serde_json::Value, _| Ok::<_, ToolError>("done");
    Arc::new(FunctionTool::with_definition(definition.source(source), run).unwrap())
}

fn server(name: &str) -> ServerSettings {
    let program = ServerProgram {
        command: format!("{name}-command"),
        ..ServerProgram::default()
    };
    ServerSettings::new(name, ServerConnection::Stdio(program))
}

/// Scripted servers, the time of the start, and the log.
struct SupervisionTest {
    servers: Servers,
    stage: Arc<ScriptedConnector>,
    manager: Arc<ToolManager>,
    begin: Instant,
    log: SupervisionLog,
    _logging: DefaultGuard,
}

#[derive(Clone, Default)]
struct SupervisionLog(Arc<Mutex<Vec<u8>>>);

impl Write for SupervisionLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl SupervisionLog {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }

    fn count(&self, part: &str) -> usize {
        self.text().matches(part).count()
    }
}

impl SupervisionTest {
    /// Creates local tools `volume` and `datetime`, and starts no server.
    fn new(scripts: &[(&str, &[ScriptedStart])]) -> Self {
        Self::with(scripts, ServersOptions::default())
    }

    fn with(scripts: &[(&str, &[ScriptedStart])], options: ServersOptions) -> Self {
        let log = SupervisionLog::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_max_level(tracing::Level::DEBUG)
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .finish();
        let stage = Arc::new(ScriptedConnector::default());
        for (name, acts) in scripts {
            let script = acts.iter().cloned().collect();
            stage.scripts.lock().insert((*name).to_owned(), script);
        }
        let manager = Arc::new(ToolManager::new());
        manager
            .add_all(["volume", "datetime"].map(|name| tool(name, "Local", ToolSource::Builtin)));
        let reach = Arc::clone(&stage);
        Self {
            servers: Servers::with_connector(Arc::clone(&manager), options, reach),
            stage,
            manager,
            begin: Instant::now(),
            log,
            _logging: tracing::subscriber::set_default(subscriber),
        }
    }

    /// Like `new`, but starts all servers.
    fn started(scripts: &[(&str, &[ScriptedStart])]) -> Self {
        let house = Self::new(scripts);
        house.apply(scripts.iter().map(|(name, _)| server(name)));
        house
    }

    fn apply(&self, settings: impl IntoIterator<Item = ServerSettings>) {
        self.servers.apply(settings.into_iter().collect());
    }

    fn state(&self, name: &str) -> ServerState {
        self.status(name).state
    }

    fn status(&self, name: &str) -> ServerStatus {
        let mut all = self.servers.status().into_iter();
        all.find(|status| status.name == name).unwrap()
    }

    fn starts(&self, name: &str) -> Vec<f64> {
        self.stage.starts(name, self.begin)
    }

    /// Seconds since the beginning.
    fn now(&self) -> f64 {
        (self.begin.elapsed().as_secs_f64() * 10.0).round() / 10.0
    }

    fn has(&self, tool: &str) -> bool {
        self.manager.find(tool).is_some()
    }

    /// Advances the clock to this many seconds after the start.
    async fn at(&self, time: f64) {
        tokio::time::sleep_until(self.begin + Duration::from_secs_f64(time)).await;
    }
}
