//! A running `toolgate serve`, and a minimal HTTP client for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;

use crate::run::ProgramRun;

/// Ten times as long as anything here should take.
pub(crate) const HANG: Duration = Duration::from_secs(60);

pub(crate) struct RunningServe {
    pub(crate) child: Child,
    pub(crate) folder: TempDir,
    home: PathBuf,
    /// Host and port.
    pub(crate) address: String,
    log: Arc<Mutex<String>>,
}

impl RunningServe {
    /// Starts `serve` on a free port and waits until it listens.
    pub(crate) fn start(run: ProgramRun) -> Self {
        Self::start_at(run, "127.0.0.1:0")
    }

    /// Like `start`, at another address.
    pub(crate) fn start_at(run: ProgramRun, bind: &str) -> Self {
        let home = run.home();
        let (child, folder) = run.args(&["--bind", bind]).start();
        let mut gateway = Self::following(child, folder);
        gateway.home = home;
        gateway
    }

    /// A `serve` command that was assembled elsewhere.
    pub(crate) fn of(mut command: Command, folder: TempDir) -> Self {
        let piped = command.stdin(Stdio::null()).stdout(Stdio::piped());
        Self::following(piped.stderr(Stdio::piped()).spawn().unwrap(), folder)
    }

    /// Waits until it listens.
    fn following(mut child: Child, folder: TempDir) -> Self {
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let address = loop {
            let line = lines.next().unwrap_or_else(|| panic!("it ended: {said}"));
            said.push_str(&format!("{}\n", line.unwrap()));
            let line = said.lines().last().unwrap();
            if let Some((_, rest)) = line.split_once("listening on http://") {
                // In JSON a quote follows.
                break rest.split([' ', '"']).next().unwrap().to_owned();
            }
        };
        let log = Arc::new(Mutex::new(said));
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kept.lock().push_str(&format!("{line}\n"));
            }
        });
        let home = folder.path().to_owned();
        Self {
            child,
            folder,
            home,
            address,
            log,
        }
    }

    pub(crate) fn plain() -> Self {
        Self::start(ProgramRun::new(["serve"]))
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().clone()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A GET as the operator's commands send it.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        request_with(&self.address, "GET", path, &self.operator(), "")
    }

    /// A POST as the operator's commands send it.
    pub(crate) fn operate(&self, path: &str, body: &str) -> (u16, String) {
        request_with(&self.address, "POST", path, &self.operator(), body)
    }

    fn operator(&self) -> String {
        let key = self.operator_key();
        key.map_or(String::new(), |key| {
            format!("authorization: Bearer {key}\r\n")
        })
    }

    /// The key that commands of the same user present to a gateway without tokens.
    pub(crate) fn operator_key(&self) -> Option<String> {
        let state = self.home.join(".local/state/toolgate/gateways");
        std::fs::read_to_string(state.join(format!("{}.key", self.address))).ok()
    }

    /// The latest link that signs the operator in.
    pub(crate) fn link(&self) -> Option<String> {
        let log = self.log();
        let (_, key) = log.rsplit_once("/?key=")?;
        let key = key.split([' ', '"', '\n']).next()?;
        Some(format!("/?key={key}"))
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, String) {
        request(&self.address, "POST", path, body)
    }

    /// The envelope of a call.
    pub(crate) fn call(&self, tool: &str, arguments: &str) -> Value {
        let (_, body) = self.post(&format!("/api/tools/{tool}/call"), arguments);
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(name, &self.child);
    }

    /// Sends a signal, and returns the exit code.
    pub(crate) fn end(&mut self, name: &str) -> Option<i32> {
        self.signal(name);
        self.child.wait().unwrap().code()
    }
}

impl Drop for RunningServe {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn signal(name: &str, child: &Child) {
    fakemcp::send_signal(name, child.id());
}

/// One request on a connection of its own.
pub(crate) fn request(address: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    request_with(address, method, path, "", body)
}

/// Like `request`, with more header lines.
pub(crate) fn request_with(
    address: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> (u16, String) {
    let (head, body) = exchange(address, method, path, headers, body);
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    (status.unwrap_or(0), body)
}

/// Returns the head of the response and its body.
pub(crate) fn exchange(
    address: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> (String, String) {
    let mut stream = send_with(address, method, path, headers, body);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.to_owned(), body.to_owned())
}

/// Sends a request and doesn't wait for the response.
pub(crate) fn send(address: &str, method: &str, path: &str, body: &str) -> TcpStream {
    send_with(address, method, path, "", body)
}

fn send_with(address: &str, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANG)).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
    .unwrap();
    stream
}

/// Waits for an effect of another process.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = tokio::time::Instant::now();
    while !holds() {
        assert!(started.elapsed() < HANG, "never: {what}");
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "nothing here is async")]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}
