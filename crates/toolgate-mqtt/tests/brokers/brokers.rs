//! Brokers to start, stop and kill.

use std::{
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{net::TcpStream, runtime::Runtime};
use toolgate_mqtt::{Broker, BrokerSettings};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Embedded,
    Mosquitto,
}

/// A running broker, killed when dropped.
pub(crate) struct RunningBroker {
    kind: Kind,
    addr: SocketAddr,
    user: Option<(&'static str, &'static str)>,
    extra: String,
    folder: TempDir,
    process: Option<BrokerProcess>,
}

enum BrokerProcess {
    /// On its own runtime, so that it can be killed like a process.
    Embedded(Runtime, Option<Broker>),
    Mosquitto(Child),
}

impl RunningBroker {
    pub(crate) async fn start(kind: Kind) -> Self {
        Self::with(kind, None, "").await
    }

    /// Admits only one user.
    pub(crate) async fn guarded(kind: Kind, user: (&'static str, &'static str)) -> Self {
        Self::with(kind, Some(user), "").await
    }

    pub(crate) async fn mosquitto(extra: &str) -> Self {
        Self::with(Kind::Mosquitto, None, extra).await
    }

    async fn with(kind: Kind, user: Option<(&'static str, &'static str)>, extra: &str) -> Self {
        let mut running = Self {
            kind,
            addr: free_port(),
            user,
            extra: extra.to_owned(),
            folder: TempDir::new().expect("a folder"),
            process: None,
        };
        running.restart().await;
        running
    }

    pub(crate) fn url(&self) -> String {
        format!("mqtt://{}", self.addr)
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) async fn restart(&mut self) {
        assert!(self.process.is_none(), "it runs already");
        self.process = Some(match self.kind {
            Kind::Embedded => self.embedded().await,
            Kind::Mosquitto => BrokerProcess::Mosquitto(self.spawn()),
        });
        assert!(
            wait_for(self.addr).await,
            "{:?} does not listen: {}",
            self.kind,
            self.log()
        );
    }

    async fn embedded(&self) -> BrokerProcess {
        let runtime = Runtime::new().expect("a runtime");
        let mut settings = BrokerSettings::default();
        settings.bind = self.addr;
        settings.username = self.user.map(|user| user.0.to_owned());
        settings.password = self.user.map(|user| user.1.to_owned());
        // A killed broker may hold its port for a moment.
        for _ in 0..1000 {
            let starting = runtime.spawn(Broker::start(settings.clone()));
            if let Ok(broker) = starting.await.expect("no panic") {
                return BrokerProcess::Embedded(runtime, Some(broker));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the embedded broker does not start");
    }

    fn spawn(&self) -> Child {
        let file = |name: &str| self.folder.path().join(name);
        let mut config = format!("listener {} 127.0.0.1\n{}\n", self.addr.port(), self.extra);
        match self.user {
            None => config.push_str("allow_anonymous true\n"),
            Some((name, word)) => {
                let passwords = file("passwords");
                let made = Command::new("mosquitto_passwd")
                    .args(["-b", "-c"])
                    .args([passwords.as_os_str()])
                    .args([name, word])
                    .status();
                assert!(made.expect("mosquitto_passwd runs").success());
                readable(&passwords);
                config.push_str(&format!(
                    "allow_anonymous false\npassword_file {}\n",
                    passwords.display()
                ));
            }
        }
        std::fs::write(file("mosquitto.conf"), config).expect("a file");
        // If started by root, Mosquitto switches to another user, who must be able to read these.
        readable(&self.folder.path().to_owned());
        let log = std::fs::File::create(file("log")).expect("a file");
        Command::new("mosquitto")
            .args(["-v", "-c"])
            .arg(file("mosquitto.conf"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .expect("mosquitto starts")
    }

    pub(crate) async fn stop(&mut self) {
        match self.process.take().expect("it runs") {
            BrokerProcess::Embedded(runtime, broker) => {
                let broker = broker.expect("it runs");
                runtime.spawn(broker.stop()).await.expect("no panic");
                runtime.shutdown_background();
            }
            BrokerProcess::Mosquitto(mut child) => {
                signal(&child, Signal::TERM);
                child.wait().expect("it ends");
            }
        }
    }

    pub(crate) fn kill(&mut self) {
        match self.process.take() {
            Some(BrokerProcess::Embedded(runtime, broker)) => {
                runtime.shutdown_background();
                drop(broker);
            }
            Some(BrokerProcess::Mosquitto(mut child)) => {
                child.kill().expect("it is killed");
                child.wait().expect("it ends");
            }
            None => {}
        }
    }

    pub(crate) fn freeze(&self, frozen: bool) {
        match &self.process {
            Some(BrokerProcess::Mosquitto(child)) => {
                signal(child, if frozen { Signal::STOP } else { Signal::CONT });
            }
            _ => panic!("only Mosquitto can be frozen"),
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for RunningBroker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Prints why if it returns false; with `CI=true` that fails the test.
pub(crate) fn mosquitto_is_there() -> bool {
    thirdparty::has_programs(&["mosquitto", "mosquitto_passwd"])
}

// Below the range of outgoing connections, so that nobody else takes the port while its broker is
// down.
pub(crate) fn free_port() -> SocketAddr {
    let free = |_| TcpListener::bind(("127.0.0.1", fastrand::u16(10_000..32_000))).ok();
    let listener = (0..1000).find_map(free).expect("a port");
    listener.local_addr().expect("an address")
}

pub(crate) fn readable(path: &PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let mode = if path.is_dir() { 0o755 } else { 0o644 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a number")).expect("not zero");
    kill_process(pid, signal).expect("it runs");
}

async fn wait_for(addr: SocketAddr) -> bool {
    for _ in 0..1000 {
        if TcpStream::connect(addr).await.is_ok() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

/// Runs a test with each broker.
macro_rules! with_each_broker {
    ($($test:ident),+ $(,)?) => { $(
        mod $test {
            #[tokio::test(flavor = "multi_thread")]
            async fn embedded() {
                super::$test($crate::brokers::Kind::Embedded).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn mosquitto() {
                if $crate::brokers::mosquitto_is_there() {
                    super::$test($crate::brokers::Kind::Mosquitto).await;
                }
            }
        }
    )+ };
}
pub(crate) use with_each_broker;
