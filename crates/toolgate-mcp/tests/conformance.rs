//! The official conformance suite, both sides. What is not expected to pass stands in `conformance-baseline.yml`, with the
//! reason; the suite fails when one of those passes, and when any other fails. `./test.sh` installs it.
#![expect(clippy::unwrap_used, reason = "a test that can not go on says where")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
const BASELINE: &str = "conformance-baseline.yml";
/// The suite as it will be, for 2026-07-28.
const NEXT: &str = "conformance-next";
const NEXT_BASELINE: &str = "conformance-next-baseline.yml";

/// Runs a suite, and gives what it said.
fn run(servers: &Path, suite: &str, baseline: &str, arguments: &[&str]) -> String {
    let done = Command::new(fakemcp::node(servers))
        .arg(
            servers
                .join("node_modules")
                .join(suite)
                .join("dist/index.js"),
        )
        .args(arguments)
        .arg("--expected-failures")
        .arg(Path::new(TESTS).join(baseline))
        .output()
        .unwrap();
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(done.status.success(), "{said}");
    said
}

/// The suite calls a scenario in which nothing was checked a success.
fn expect_checks(said: &str, scenarios: &[(&str, usize)]) {
    for (scenario, checks) in scenarios {
        let summary = format!("✓ {scenario}: {checks} passed, 0 failed");
        assert!(said.contains(&summary), "{summary}: {said}");
    }
}

#[test]
fn the_official_suite_passes_but_for_the_baseline() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    let client = fakemcp::example("toolgate-mcp", "conformance_client");
    let client = client.to_str().unwrap();
    let arguments = ["client", "--suite", "all", "--command", client];
    let suite = "@modelcontextprotocol/conformance";
    let said = run(&servers, suite, BASELINE, &arguments);
    expect_checks(
        &said,
        &[
            ("initialize", 1),
            ("tools_call", 1),
            ("elicitation-sep1034-client-defaults", 5),
            ("sse-retry", 3),
        ],
    );
}

/// Our server half over HTTP, with the tools that the suite wants. It ends when its input does.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Self {
        let program: PathBuf = fakemcp::example("toolgate-mcp", "conformance_server");
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        Self { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

#[test]
fn the_official_suite_passes_on_our_server_but_for_the_baseline() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    let server = Server::start();
    let arguments = ["server", "--suite", "all", "--url", &server.url];
    let suite = "@modelcontextprotocol/conformance";
    let said = run(&servers, suite, BASELINE, &arguments);
    expect_checks(
        &said,
        &[
            ("server-initialize", 1),
            ("tools-list", 1),
            ("tools-call-mixed-content", 1),
            ("tools-call-error", 1),
            ("tools-call-with-progress", 1),
            ("json-schema-2020-12", 4),
            ("server-sse-multiple-streams", 1),
            ("dns-rebinding-protection", 2),
        ],
    );
}

/// Not yet released, so nobody has to have it.
#[test]
fn the_next_official_suite_passes_on_our_server_but_for_its_baseline() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    if !servers.join("node_modules").join(NEXT).exists() {
        let why = "skipped: the next conformance suite is not installed: ./test.sh does it";
        drop(writeln!(std::io::stderr(), "{why}"));
        return;
    }
    let server = Server::start();
    let arguments = [
        "server",
        "--requirements",
        "2026-07-28",
        "--url",
        &server.url,
    ];
    let said = run(&servers, NEXT, NEXT_BASELINE, &arguments);
    expect_checks(
        &said,
        &[
            ("tools-list", 4),
            ("tools-call-with-progress", 2),
            ("json-schema-2020-12", 8),
            ("http-header-validation", 14),
            ("http-custom-header-server-validation", 10),
        ],
    );
    assert!(
        said.contains("✗ server-stateless: 26 passed, 2 failed"),
        "{said}"
    );
    let arguments = [
        "server",
        "--scenario",
        "server-session-lifecycle",
        "--url",
        &server.url,
    ];
    run(&servers, NEXT, NEXT_BASELINE, &arguments);
}
