//! A running gateway in its own folder, and a client for it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::{Value, json};

/// Nothing here takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// The part of the log that is kept, because a million calls log more than anybody reads.
const MAX_LOG_BYTES: usize = 16 << 20;

/// A running `toolgate serve`. Killed when it is dropped.
pub(crate) struct ServeProcess {
    pub(crate) child: Child,
    /// `127.0.0.1:port`.
    pub(crate) address: String,
    log: Arc<Mutex<String>>,
}

impl ServeProcess {
    /// Starts one with this configuration, with its state in the folder.
    pub(crate) fn start(folder: &Path, config: &Value) -> Self {
        let file = folder.join("gateway.json");
        std::fs::write(&file, config.to_string()).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolgate"))
            .args(["serve", "--bind", "127.0.0.1:0", "--config"])
            .arg(&file)
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let address = follow(&mut child, &log);
        if let Some(key) = operator_key(folder, &address) {
            KEYS.lock().insert(address.clone(), key);
        }
        Self {
            child,
            address,
            log,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn operator_key(&self) -> Option<String> {
        KEYS.lock().get(&self.address).cloned()
    }

    /// The link that signs the operator in once. `None` if tokens are configured.
    pub(crate) fn link(&self) -> Option<String> {
        let log = self.log();
        let (before, rest) = log.split_once("/?key=")?;
        let start = before.rfind("http://")?;
        let key = rest.split([' ', '"', '\n']).next()?;
        Some(format!("{}/?key={key}", &before[start..]))
    }

    /// Its log so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().clone()
    }

    /// Waits until all servers are connected.
    pub(crate) fn ready(&self) {
        for _ in 0..600 {
            let servers = get(&self.address, "/api/servers").1;
            let is_there = |server: &Value| server["state"] == "connected";
            if servers
                .as_array()
                .is_some_and(|all| all.iter().all(is_there))
            {
                return;
            }
            pause(50);
        }
        panic!("the servers did not come:\n{}", self.log());
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM, as systemd and container runtimes do.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until it exits, and returns its exit status.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        for _ in 0..PATIENCE.as_millis() / 20 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            pause(20);
        }
        panic!("it does not end:\n{}", self.log());
    }
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The keys of gateways that need no token, by address.
static KEYS: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// The key that commands of the same user present. It exists before the gateway answers; a
/// gateway with tokens has none.
fn operator_key(home: &Path, address: &str) -> Option<String> {
    let folder = home.join(".local/state/toolgate/gateways");
    drop(TcpStream::connect(address).unwrap());
    std::fs::read_to_string(folder.join(format!("{address}.key"))).ok()
}

/// Polls, because there is no other way to wait for a process.
#[expect(clippy::disallowed_methods, reason = "nothing here is async")]
pub(crate) fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Collects the log, and returns the address in it.
fn follow(child: &mut Child, log: &Arc<Mutex<String>>) -> String {
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let (found, address) = mpsc::channel();
    let kept = Arc::clone(log);
    std::thread::spawn(move || {
        for line in stderr.lines().map_while(Result::ok) {
            let mut kept = kept.lock();
            if kept.len() > MAX_LOG_BYTES {
                kept.clear();
            }
            kept.push_str(&line);
            kept.push('\n');
            // Last, because a test that waits for the address then looks for the link in the log.
            if let Some((_, rest)) = line.split_once("listening on http://") {
                let end = rest.find(|c: char| !c.is_ascii_digit() && !".:".contains(c));
                drop(found.send(rest[..end.unwrap_or(rest.len())].to_owned()));
            }
        }
    });
    let address = address.recv_timeout(PATIENCE);
    address.unwrap_or_else(|_| panic!("no address:\n{}", log.lock()))
}

/// A configuration entry for a fake server.
pub(crate) fn fake_server(modes: &[&str]) -> Value {
    json!({ "command": fakemcp::program(), "args": modes })
}

/// Like `fake_server`, with processes that can be found by the mark.
pub(crate) fn marked_server(mark: &str) -> Value {
    json!({ "command": fakemcp::program(), "env": { fakemcp::MARK: mark } })
}

/// Waits until no process with the mark is left.
pub(crate) fn nobody_is_left(mark: &str) {
    for _ in 0..200 {
        if fakemcp::processes(mark).is_empty() {
            return;
        }
        pause(50);
    }
    panic!("children are left: {:?}", fakemcp::processes(mark));
}

pub(crate) fn get(address: &str, path: &str) -> (u16, Value) {
    request(address, "GET", path, "").unwrap()
}

/// Sends one request on its own connection. An incomplete response is an error.
pub(crate) fn request(
    address: &str,
    method: &str,
    path: &str,
    body: &str,
) -> std::io::Result<(u16, Value)> {
    let answer = HttpConnection::open(address)?.ask(method, path, body)?;
    Ok((answer.status(), answer.body))
}

/// A connection that stays open.
pub(crate) struct HttpConnection {
    stream: BufReader<TcpStream>,
    address: String,
}

pub(crate) struct HttpAnswer {
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl HttpConnection {
    pub(crate) fn open(address: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream: BufReader::new(stream),
            address: address.to_owned(),
        })
    }

    /// An incomplete response is an error.
    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> std::io::Result<HttpAnswer> {
        let head = self.begin(method, path, "", body)?;
        let length = header(&head, "content-length").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.ok_or_else(cut)?];
        self.stream.read_exact(&mut body)?;
        let body = serde_json::from_slice(&body).map_err(|_| cut())?;
        Ok(HttpAnswer { head, body })
    }

    /// What follows the head that [`begin`](Self::begin) returned.
    pub(crate) fn reader(&mut self) -> &mut impl Read {
        &mut self.stream
    }

    /// Sends a request with more header lines, and returns the head of the response, whose
    /// body may never end.
    pub(crate) fn begin(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> std::io::Result<String> {
        let (host, length) = (&self.address, body.len());
        // Reading and repairing need the operator's key; calls don't.
        let is_operators = [
            "/api/calls",
            "/api/servers",
            "/api/status",
            "/api/stats",
            "/api/tasks",
        ]
        .iter()
        .any(|start| path.starts_with(start));
        let key = KEYS.lock().get(host).cloned();
        let key = key.filter(|_| is_operators).map_or(String::new(), |key| {
            format!("authorization: Bearer {key}\r\n")
        });
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{key}{headers}\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                return Err(cut());
            }
        }
        Ok(head)
    }
}

impl HttpAnswer {
    pub(crate) fn status(&self) -> u16 {
        let status = self.head.split(' ').nth(1);
        status.and_then(|status| status.parse().ok()).unwrap()
    }
}

/// A header of a response. Ours are in lower case.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn cut() -> std::io::Error {
    std::io::ErrorKind::UnexpectedEof.into()
}

/// The folder of Playwright. Without it or the browser, the test is skipped with a note,
/// or fails with `CI=true`.
pub(crate) fn browser_tools() -> Option<PathBuf> {
    let tools = thirdparty::HTTP.folder()?;
    thirdparty::has_programs(&["chromium"]).then_some(tools)
}
