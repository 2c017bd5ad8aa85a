//! Real servers from npm and PyPI, added with empty caches over a slow line: none is broken by its
//! first start, even when Ctrl-C comes in the middle of it. `SOAK_FIRST_STARTS` is how many of the
//! servers are added one after another; with all ten, five are interrupted besides, each with
//! caches of its own, at a random moment of its download.

mod registry;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use registry::SlowRegistry;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

/// Bytes per second from each registry. A download then takes longer than a server that needs no
/// download may take to start.
const RATE: u64 = 1_500_000;
/// How long that is, in seconds.
const USUAL_LIMIT: f64 = 10.0;
/// Long enough that only a hang reaches it, not a slow machine.
const HANG: Duration = Duration::from_secs(600);

/// Name and command.
type PackageServer = (&'static str, &'static [&'static str]);

/// Which of them are interrupted at a random moment: some of npx, some of uvx.
const INTERRUPTED: [usize; 5] = [1, 2, 4, 6, 8];

/// The first ones run in every test run.
const SERVERS: [PackageServer; 10] = [
    (
        "memory",
        &["npx", "-y", "@modelcontextprotocol/server-memory"],
    ),
    ("time", &["uvx", "mcp-server-time"]),
    ("context7", &["npx", "-y", "@upstash/context7-mcp"]),
    (
        "everything",
        &["npx", "-y", "@modelcontextprotocol/server-everything"],
    ),
    ("fetch", &["uvx", "mcp-server-fetch"]),
    (
        "files",
        &[
            "npx",
            "-y",
            "@modelcontextprotocol/server-filesystem",
            "/tmp",
        ],
    ),
    (
        "thinking",
        &[
            "npx",
            "-y",
            "@modelcontextprotocol/server-sequential-thinking",
        ],
    ),
    ("ddg", &["uvx", "duckduckgo-mcp-server"]),
    ("notion", &["npx", "-y", "@notionhq/notion-mcp-server"]),
    ("git", &["uvx", "mcp-server-git"]),
];

/// A home of its own with empty caches, and the slow registries around it.
struct FreshHome {
    home: TempDir,
    npm: SlowRegistry,
    pypi: SlowRegistry,
    path: String,
}

impl FreshHome {
    /// `None` without the package managers or the registries; a failure with `CI=true`.
    fn new() -> Option<Self> {
        let folder = thirdparty::MCP_SERVERS.folder()?;
        if !thirdparty::has_programs(&["npm", "npx"]) {
            return None;
        }
        let bin = folder.join("python/bin");
        let there = |registry: Option<SlowRegistry>, what| {
            if registry.is_none() {
                thirdparty::skip(what);
            }
            registry
        };
        let npm = SlowRegistry::start(&npm_registry(), RATE);
        let npm = there(npm, "npm's registry within reach")?;
        let pypi = SlowRegistry::start(&index(&bin), RATE);
        let pypi = there(pypi, "PyPI's index within reach")?;
        let path = std::env::var("PATH").unwrap();
        Some(Self {
            home: tempfile::tempdir().unwrap(),
            npm,
            pypi,
            path: format!("{}:{path}", bin.display()),
        })
    }

    /// The program, with caches that start empty.
    fn toolgate(&self, arguments: &[&str]) -> Command {
        let cache = self.home.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        command
            .args(arguments)
            .env_clear()
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env("PATH", &self.path)
            .env("XDG_STATE_HOME", cache.join("state"))
            .env("XDG_CONFIG_HOME", cache.join("config"))
            .env("npm_config_cache", cache.join("npm"))
            .env("npm_config_registry", self.npm.url())
            .env("npm_config_replace_registry_host", "always")
            .env("npm_config_audit", "false")
            .env("npm_config_update_notifier", "false")
            .env("UV_CACHE_DIR", cache.join("uv"))
            .env("UV_DEFAULT_INDEX", self.pypi.url())
            .env("UV_PYTHON_DOWNLOADS", "never")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn add(&self, (name, command): PackageServer) -> Child {
        let mark = format!("{}={}", fakemcp::MARK, self.mark(name));
        let words = ["add", "--force", name, "-e", &mark, "--"];
        let words: Vec<&str> = words.iter().chain(command).copied().collect();
        self.toolgate(&words).spawn().unwrap()
    }

    /// The mark of a server's processes.
    fn mark(&self, name: &str) -> String {
        format!("{name} of {}", std::process::id())
    }

    /// How many bytes were downloaded so far.
    fn sent(&self) -> u64 {
        self.npm.sent() + self.pypi.sent()
    }

    /// Interrupts the start of a server and waits until all its processes are gone. Returns the
    /// exit code and how long that took, in seconds.
    fn interrupt(&self, server: PackageServer, is_time: impl Fn() -> bool) -> (Option<i32>, f64) {
        let (name, child) = (server.0, self.add(server));
        until("the moment", is_time);
        fakemcp::send_signal("-INT", child.id());
        let began = Instant::now();
        let output = child.wait_with_output().unwrap();
        let mark = self.mark(name);
        until("nothing of it is left", || {
            fakemcp::processes(&mark).is_empty()
        });
        (output.status.code(), began.elapsed().as_secs_f64())
    }

    /// Starts a server again from what was downloaded, and lists its tools.
    fn list(&self, name: &str, tools: usize) {
        let mut list = self.toolgate(&["list", "--json"]);
        let state = self.home.path().join(format!("state {name}"));
        let output = list.env("XDG_STATE_HOME", state).output().unwrap();
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of_it = listed.as_array().unwrap().iter();
        let of_it = of_it.filter(|tool| tool["source"] == format!("mcp:{name}"));
        assert_eq!(of_it.count(), tools, "{name}: {output:?}");
    }

    /// True while npx unpacks. It writes a list of the packages when it is done.
    fn unpacks(&self) -> bool {
        let packages = std::fs::read_dir(self.home.path().join("npm/_npx"));
        let mut packages = packages.into_iter().flatten().flatten();
        packages.any(|package| {
            let modules = package.path().join("node_modules");
            modules.exists() && !modules.join(".package-lock.json").exists()
        })
    }
}

/// The registry that npm is set up for.
fn npm_registry() -> String {
    said(Command::new("npm").args(["config", "get", "registry"])).unwrap()
}

/// The index that pip is set up for.
fn index(bin: &Path) -> String {
    let usual = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)";
    let python = bin.join("python");
    std::env::var("PIP_INDEX_URL")
        .ok()
        .or_else(|| said(Command::new(bin.join("pip")).args(["config", "get", "global.index-url"])))
        .or_else(|| said(Command::new(python).args(["-c", usual])))
        .unwrap()
}

fn said(command: &mut Command) -> Option<String> {
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    Some(text).filter(|text| !text.is_empty())
}

fn until(what: &str, is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < HANG, "never: {what}");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

/// The tools that a server has; it must have started.
fn done(child: Child, name: &str) -> usize {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or_default();
    let tools = last.strip_prefix(&format!("connected to {name}: "));
    let tools = tools.and_then(|rest| rest.split(' ').next()?.parse().ok());
    assert!(output.status.success(), "{name}: {text}");
    tools.unwrap_or_else(|| panic!("{name}: {text}"))
}

/// Interrupts the first start of a server at a random moment of its download, and checks that
/// the next start works. Prints the moment, unless the registries are unreachable.
fn interrupt_somewhere(server: PackageServer) -> Option<String> {
    let (whole, broken) = (FreshHome::new()?, FreshHome::new()?);
    let name = server.0;
    done(whole.add(server), name);
    let moment = 0.02 + 0.96 * fastrand::f64();
    let bytes = (whole.sent() as f64 * moment) as u64;
    let (code, took) = broken.interrupt(server, || broken.sent() >= bytes);
    assert_eq!(code, Some(130), "{name} at {moment}");
    let tools = done(broken.add(server), name);
    broken.list(name, tools);
    let percent = moment * 100.0;
    Some(format!(
        "{name}: Ctrl-C at {percent:.0} % of its download, gone after {took:.1} s"
    ))
}

#[test]
fn real_servers_are_added_over_a_slow_line_and_ctrl_c_breaks_none() {
    let count = std::env::var("SOAK_FIRST_STARTS").ok();
    let count: usize = count.map_or(2, |count| count.parse().unwrap());
    let Some(newcomer) = FreshHome::new() else {
        return;
    };
    for (number, server) in SERVERS.into_iter().take(count).enumerate() {
        let (name, command) = server;
        let before = newcomer.sent();
        if number == 0 {
            // The worst moment: when files are being unpacked.
            let (code, took) = newcomer.interrupt(server, || newcomer.unpacks());
            println!("{name}: gone {took:.1} s after Ctrl-C");
            // It may have finished a moment before.
            assert!(matches!(code, Some(130 | 0)), "{name}: {code:?}");
        }
        let began = Instant::now();
        let tools = done(newcomer.add(server), name);
        let (bytes, took) = (newcomer.sent() - before, began.elapsed().as_secs_f64());
        println!(
            "{name} ({}): {bytes} bytes, {tools} tools after {took:.1} s",
            command[0]
        );
        // The others find some of their packages in the cache.
        let download = bytes as f64 / RATE as f64;
        assert!(number > 1 || download > USUAL_LIMIT, "{name}: {download} s");
        newcomer.list(name, tools);
    }
    if count >= SERVERS.len() {
        for number in INTERRUPTED {
            println!("{}", interrupt_somewhere(SERVERS[number]).unwrap());
        }
    }
}
