//! A deliberately slow package registry on loopback. It fetches from the registry that this
//! machine is configured for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// Bytes sent at a time.
const CHUNK: usize = 8 * 1024;
/// The path prefix of files from other hosts. Scheme and host follow it.
const ELSEWHERE: &str = "/~/";
/// Headers of a request that are passed on. Not its encoding, because a compressed
/// response couldn't be rewritten.
const ASKED: [&str; 2] = ["accept", "range"];
/// Headers of a response that a package manager needs.
const ANSWERED: [&str; 4] = ["content-type", "content-range", "accept-ranges", "etag"];

/// Runs until it is dropped.
pub(crate) struct SlowRegistry {
    shared: Arc<SlowRegistryState>,
    path: String,
    _runtime: Runtime,
}

struct SlowRegistryState {
    client: reqwest::Client,
    /// Scheme and host of the registry behind it.
    origin: String,
    /// Scheme and host of this one.
    own: String,
    /// Bytes per second for all connections together.
    rate: u64,
    sent: AtomicU64,
    free_at: Mutex<Instant>,
    /// Earlier responses, because only the connection to the package manager is slow.
    known: Mutex<HashMap<String, Arc<RegistryAnswer>>>,
}

struct RegistryAnswer {
    status: u16,
    headers: String,
    body: Vec<u8>,
}

impl SlowRegistry {
    /// In front of `upstream`, with this many bytes per second. `None` if it is unreachable.
    pub(crate) fn start(upstream: &str, rate: u64) -> Option<Self> {
        toolgate_net::install_tls_provider();
        let runtime = Runtime::new().unwrap();
        let upstream = reqwest::Url::parse(upstream).unwrap();
        let client = reqwest::Client::new();
        let there = client
            .head(upstream.clone())
            .timeout(Duration::from_secs(30));
        runtime.block_on(async { there.send().await }).ok()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let shared = Arc::new(SlowRegistryState {
            client,
            origin: upstream.origin().ascii_serialization(),
            own: format!("http://{}", listener.local_addr().unwrap()),
            rate,
            sent: AtomicU64::new(0),
            free_at: Mutex::new(Instant::now()),
            known: Mutex::default(),
        });
        runtime.spawn(listen(listener, Arc::clone(&shared)));
        Some(Self {
            shared,
            path: upstream.path().to_owned(),
            _runtime: runtime,
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("{}{}", self.shared.own, self.path)
    }

    /// How many bytes were sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }
}

async fn listen(listener: TcpListener, shared: Arc<SlowRegistryState>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        // A client may disconnect at any time.
        tokio::spawn(async move { serve(stream, &shared).await.ok() });
    }
}

/// Answers the requests of a connection, each a GET without a body.
async fn serve(stream: TcpStream, shared: &SlowRegistryState) -> std::io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    while let Some(request) = lines.next_line().await? {
        let mut headers = Vec::new();
        while let Some(line) = lines.next_line().await?.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').unwrap_or_default();
            let name = name.to_ascii_lowercase();
            if ASKED.contains(&name.as_str()) {
                headers.push((name, value.trim().to_owned()));
            }
        }
        let mut words = request.split(' ');
        let (method, path) = (words.next(), words.next().unwrap_or("/"));
        let answer = match method {
            Some("GET" | "HEAD") => shared.fetch(path, headers).await,
            _ => Arc::new(RegistryAnswer::empty(404)),
        };
        let head = format!(
            "HTTP/1.1 {} -\r\n{}content-length: {}\r\n\r\n",
            answer.status,
            answer.headers,
            answer.body.len()
        );
        writer.write_all(head.as_bytes()).await?;
        if method == Some("GET") {
            for chunk in answer.body.chunks(CHUNK) {
                shared.wait_for(chunk.len() as u64).await;
                writer.write_all(chunk).await?;
            }
        }
    }
    Ok(())
}

impl SlowRegistryState {
    async fn fetch(&self, path: &str, headers: Vec<(String, String)>) -> Arc<RegistryAnswer> {
        let key = format!("{path} {headers:?}");
        if let Some(known) = self.known.lock().get(&key) {
            return Arc::clone(known);
        }
        let url = match path
            .strip_prefix(ELSEWHERE)
            .and_then(|rest| rest.split_once('/'))
        {
            Some((scheme, rest)) => format!("{scheme}://{rest}"),
            None => format!("{}{path}", self.origin),
        };
        let mut request = self.client.get(url);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let answer = match request.send().await {
            Ok(response) => Arc::new(self.answer(response).await),
            Err(error) => panic!("{path}: {error:?}"),
        };
        self.known.lock().insert(key, Arc::clone(&answer));
        answer
    }

    async fn answer(&self, response: reqwest::Response) -> RegistryAnswer {
        let status = response.status().as_u16();
        let header = |name: &&str| {
            let value = response.headers().get(*name)?.to_str().ok()?;
            Some(format!("{name}: {value}\r\n"))
        };
        let headers: String = ANSWERED.iter().filter_map(header).collect();
        let is_index = headers.contains("pypi.simple") || headers.contains("text/html");
        let Ok(body) = response.bytes().await else {
            return RegistryAnswer::empty(502);
        };
        let mut body = body.to_vec();
        if is_index && let Ok(text) = std::str::from_utf8(&body) {
            // Its files are on another host, and should be just as slow.
            let ours = |scheme: &str| format!("{}{ELSEWHERE}{scheme}/", self.own);
            let text = text.replace("https://", &ours("https"));
            body = text.into_bytes();
        }
        RegistryAnswer {
            status,
            headers,
            body,
        }
    }

    /// Waits until this many more bytes may be sent.
    async fn wait_for(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
        let free_at = {
            let mut free_at = self.free_at.lock();
            let cost = Duration::from_secs_f64(bytes as f64 / self.rate as f64);
            *free_at = (*free_at).max(Instant::now()) + cost;
            *free_at
        };
        tokio::time::sleep_until(free_at).await;
    }
}

impl RegistryAnswer {
    fn empty(status: u16) -> Self {
        Self {
            status,
            headers: String::new(),
            body: Vec::new(),
        }
    }
}
