//! Runs the official conformance suite against client and server. `conformance-baseline.yml`
//! lists expected failures with the reason; the suite fails if one of those passes or any other
//! fails. `./test.sh` installs it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
const BASELINE: &str = "conformance-baseline.yml";
/// The folder of the unreleased suite for 2026-07-28.
const NEXT: &str = "mcp-next";
const NEXT_BASELINE: &str = "conformance-next-baseline.yml";

/// Runs the suite in a folder. Returns its output, and whether the results match the baseline.
fn look(servers: &Path, suite: &Path, baseline: &str, arguments: &[&str]) -> (String, bool) {
    let package = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
    let done = Command::new(fakemcp::node(servers))
        .arg(suite.join(package))
        .args(arguments)
        .arg("--expected-failures")
        .arg(Path::new(TESTS).join(baseline))
        .output()
        .unwrap();
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (said, done.status.success())
}

/// Runs the suite, which has to go as the baseline says.
fn run(servers: &Path, arguments: &[&str]) -> String {
    let (said, is_well) = look(servers, servers, BASELINE, arguments);
    assert!(is_well, "{said}");
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
    let said = run(&servers, &arguments);
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
    let said = run(&servers, &arguments);
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

/// This suite is not released, so it is optional and its result is only shown.
#[test]
fn our_server_outlives_the_next_official_suite() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    let suite = servers.with_file_name(NEXT);
    if !suite.join("npm.txt").exists() {
        thirdparty::skip_optional("the next conformance suite (./test.sh installs it)");
        return;
    }
    let mut server = Server::start();
    let url = server.url.clone();
    for which in [
        ["--requirements", "2026-07-28"],
        ["--scenario", "server-session-lifecycle"],
    ] {
        let arguments = ["server", which[0], which[1], "--url", &url];
        let (said, is_well) = look(&servers, &suite, NEXT_BASELINE, &arguments);
        let is_summary = |line: &&str| line.contains(" passed, ");
        let summary: Vec<&str> = said.lines().filter(is_summary).collect();
        let word = if is_well { "as" } else { "not as" };
        show(&format!("the next suite, {word} its baseline says:"));
        show(&summary.join("\n"));
        assert!(server.child.try_wait().unwrap().is_none(), "{said}");
    }
}

/// Skills are final, although the suite that knows them is not released.
#[test]
fn the_scenarios_of_skills_pass_on_both_sides() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    let suite = servers.with_file_name(NEXT);
    if !suite.join("npm.txt").exists() {
        thirdparty::skip_optional("the next conformance suite (./test.sh installs it)");
        return;
    }
    let server = Server::start();
    for (scenario, checks) in [
        ("sep-2640-skills-enumeration", 32),
        ("sep-2640-skills-directory", 7),
        ("sep-2640-skills-manifest", 6),
    ] {
        let arguments = ["server", "--scenario", scenario, "--url", &server.url];
        let (said, _) = look(&servers, &suite, NEXT_BASELINE, &arguments);
        let summary = format!("Passed: {checks}/{checks}, 0 failed, 0 warnings");
        assert!(said.contains(&summary), "{scenario}: {said}");
    }
    let client = fakemcp::example("toolgate-mcp", "conformance_client");
    for scenario in [
        "sep-2640-client-no-prefetch",
        "sep-2640-client-verify-digest",
        "sep-2640-client-verify-size",
        "sep-2640-client-verify-frontmatter",
    ] {
        let client = client.to_str().unwrap();
        let arguments = ["client", "--scenario", scenario, "--command", client];
        let (said, _) = look(&servers, &suite, NEXT_BASELINE, &arguments);
        assert!(
            said.contains("Passed: 1/1, 0 failed, 0 warnings"),
            "{scenario}: {said}"
        );
    }
}

fn show(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}
