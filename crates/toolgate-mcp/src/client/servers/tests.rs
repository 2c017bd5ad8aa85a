//! Supervision, with servers that are played, under a clock that is.

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
use toolgate_core::{FunctionTool, Redactor, Source, Tool, ToolDefinition, ToolError};
use tracing::subscriber::DefaultGuard;

use super::super::catalogue::Catalogue;
use super::super::connect::ConnectError;
use super::super::health::ServerHealth;
use super::super::peer::{Offer, Peer, Reached, Vitals};
use super::super::scripted::{Does, Scripted};
use super::super::session::Session;
use super::super::transport::End;
use super::*;
use crate::{Connection, Era, Program, ServerState};

/// What a server does at one start.
#[derive(Clone)]
enum Act {
    /// Fails after a while, with this on stderr.
    Fail(Duration, &'static str),
    /// There is no such program.
    Missing,
    /// Fails in a way that will not get better.
    Hopeless,
    /// Says nothing until patience ends.
    Hang,
    /// Connects after a while.
    Connect(Duration),
    /// Connects, and dies after a while.
    Die(Duration),
    /// A mistake of ours.
    Panic,
}

const NOW: Duration = Duration::ZERO;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Plays servers by a script; the last act is repeated for ever.
#[derive(Default)]
struct Stage {
    scripts: Mutex<HashMap<String, VecDeque<Act>>>,
    starts: Mutex<Vec<(String, Instant)>>,
    links: Mutex<HashMap<String, Link>>,
    peers: Mutex<HashMap<String, Arc<Player>>>,
    patience: Mutex<Vec<Duration>>,
    /// What the health tools of servers answer, by server.
    health: Mutex<HashMap<String, Arc<health::Answers>>>,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    /// How long the processes of a server take to be gone.
    clearing: Mutex<Duration>,
}

/// One connected server.
struct Player {
    server: String,
    tools: Mutex<Result<Vec<(String, String)>, String>>,
    changed: Notify,
    listings: AtomicUsize,
    session: Arc<Session>,
    closed: AtomicBool,
    close_takes: Mutex<Duration>,
    health: Arc<health::Answers>,
}

impl Reach for Stage {
    fn reach<'a>(
        &'a self,
        settings: &'a ServerSettings,
        link: &'a Link,
        patience: Duration,
    ) -> BoxFuture<'a, Result<Reached, ConnectError>> {
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

    fn cleared<'a>(&'a self, _server: &'a str) -> BoxFuture<'a, ()> {
        let clearing = *self.clearing.lock();
        Box::pin(sleep(clearing))
    }

    fn vitals(&self, server: &str) -> Vitals {
        Vitals {
            polluted: 2,
            polluted_lines: vec!["hello".to_owned()],
            stderr: vec![format!("stderr of {server}")],
        }
    }
}

impl Stage {
    async fn play(
        &self,
        name: &str,
        act: Act,
        patience: Duration,
    ) -> Result<Reached, ConnectError> {
        let refused = |reason: &str, stderr: &str, hopeless| ConnectError {
            reason: reason.into(),
            stderr: stderr.lines().map(str::to_owned).collect(),
            hopeless,
            not_started: false,
        };
        let life = match act {
            Act::Fail(after, stderr) => {
                sleep(after).await;
                return Err(refused(
                    "it stopped during the handshake (exit status 3)",
                    stderr,
                    false,
                ));
            }
            Act::Missing => {
                return Err(ConnectError {
                    not_started: true,
                    ..refused("command 'a' was not found on the PATH", "", false)
                });
            }
            Act::Hopeless => return Err(refused("the server wants a login (HTTP 401)", "", true)),
            Act::Hang => {
                sleep(patience).await;
                return Err(refused("no answer to the handshake", "", false));
            }
            Act::Panic => panic!("a mistake"),
            Act::Connect(after) => {
                sleep(after).await;
                None
            }
            Act::Die(after) => Some(after),
        };
        let mut player = Player::new(name);
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
        Ok(Reached {
            peer: player,
            offer,
        })
    }

    fn peer(&self, name: &str) -> Arc<Player> {
        Arc::clone(&self.peers.lock()[name])
    }

    fn link(&self, name: &str) -> Link {
        self.links.lock()[name].clone()
    }

    /// When a server was started, in seconds.
    fn starts(&self, name: &str, begin: Instant) -> Vec<f64> {
        let starts = self.starts.lock();
        let of = starts.iter().filter(|(server, _)| server == name);
        of.map(|(_, at)| ((*at - begin).as_secs_f64() * 10.0).round() / 10.0)
            .collect()
    }
}

impl Player {
    fn new(server: &str) -> Self {
        let (session, _) = Scripted::session(|_, _| Does::Nothing);
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

    fn offering(&self) -> Result<Offer, String> {
        let tools = self.tools.lock().clone()?;
        let tools = tools
            .iter()
            .map(|(name, text)| tool(name, text, Source::Mcp(self.server.clone())));
        Ok(Offer {
            tools: tools.chain(self.health.tool(&self.server)).collect(),
            listed: self.tools.lock().clone()?.iter().map(definition).collect(),
            refused: Vec::new(),
        })
    }

    fn set_tools(&self, tools: &[(&str, &str)]) {
        let owned = tools
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        *self.tools.lock() = Ok(owned.collect());
        self.changed.notify_one();
    }

    fn die(&self, end: End) {
        self.session.inbox().closed(end);
    }
}

impl Peer for Player {
    fn era(&self) -> Era {
        Era::Legacy
    }
    fn revision(&self) -> Option<String> {
        self.session.revision()
    }
    fn pid(&self) -> Option<u32> {
        Some(7)
    }
    fn open(&self, link: &Link) {
        link.up(Arc::clone(&self.session));
    }
    fn offer(&self) -> BoxFuture<'_, Result<Offer, String>> {
        self.listings.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { self.offering() })
    }
    fn tools_changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.changed.notified())
    }
    fn ended(&self) -> BoxFuture<'_, End> {
        Box::pin(self.session.ended())
    }
    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.store(true, Ordering::SeqCst);
        Box::pin(sleep(*self.close_takes.lock()))
    }
}

fn exit(status: &str) -> End {
    End {
        status: status.into(),
        stderr: vec!["Traceback".to_owned()],
    }
}

/// As a server lists it. What is called `wipe…` says that it is destructive.
fn definition((name, text): &(String, String)) -> serde_json::Value {
    let annotations = json!({ "destructiveHint": name.starts_with("wipe") });
    json!({ "name": name, "description": text, "inputSchema": { "type": "object" }, "annotations": annotations })
}

fn tool(name: &str, description: &str, source: Source) -> Arc<dyn Tool> {
    let definition = ToolDefinition::builder(name, description, json!({ "type": "object" }));
    let run = async |_: serde_json::Value, _| Ok::<_, ToolError>("done");
    Arc::new(FunctionTool::defined(definition.source(source), run).unwrap())
}

fn server(name: &str) -> ServerSettings {
    let program = Program {
        command: format!("{name}-command"),
        ..Program::default()
    };
    ServerSettings::new(name, Connection::Stdio(program))
}

/// Servers on a stage, the clock at nought, the log at hand.
struct House {
    servers: Servers,
    stage: Arc<Stage>,
    manager: Arc<ToolManager>,
    begin: Instant,
    log: Log,
    _logging: DefaultGuard,
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }

    fn count(&self, part: &str) -> usize {
        self.text().matches(part).count()
    }
}

impl House {
    /// With the built-in tools `volume` and `datetime`; nothing is started yet.
    fn new(scripts: &[(&str, &[Act])]) -> Self {
        Self::with(scripts, ServersOptions::default())
    }

    fn with(scripts: &[(&str, &[Act])], options: ServersOptions) -> Self {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_max_level(tracing::Level::DEBUG)
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .finish();
        let stage = Arc::new(Stage::default());
        for (name, acts) in scripts {
            let script = acts.iter().cloned().collect();
            stage.scripts.lock().insert((*name).to_owned(), script);
        }
        let manager = Arc::new(ToolManager::new());
        manager.add_all(["volume", "datetime"].map(|name| tool(name, "Local", Source::Builtin)));
        let reach = Arc::clone(&stage);
        Self {
            servers: Servers::reaching(Arc::clone(&manager), options, reach),
            stage,
            manager,
            begin: Instant::now(),
            log,
            _logging: tracing::subscriber::set_default(subscriber),
        }
    }

    /// The same, all of them started.
    fn started(scripts: &[(&str, &[Act])]) -> Self {
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

    /// Lets the clock run until this time since the beginning.
    async fn at(&self, time: f64) {
        tokio::time::sleep_until(self.begin + Duration::from_secs_f64(time)).await;
    }
}
