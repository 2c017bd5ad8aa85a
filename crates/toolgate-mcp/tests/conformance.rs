//! The official conformance suite, client scenarios. What is not expected to pass stands in `conformance-baseline.yml`, with
//! the reason; the suite fails when one of those passes, and when any other fails. `./test.sh` installs it.

use std::path::Path;
use std::process::Command;

const BASELINE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/conformance-baseline.yml"
);

#[test]
fn the_official_suite_passes_but_for_the_baseline() {
    let Some(servers) = fakemcp::real_servers() else {
        return;
    };
    let client = fakemcp::example("toolgate-mcp", "conformance_client");
    let done = Command::new(fakemcp::node(&servers))
        .arg(servers.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"))
        .args(["client", "--suite", "all", "--expected-failures", BASELINE])
        .args([Path::new("--command"), &client])
        .output()
        .unwrap();
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(done.status.success(), "{said}");
    // The suite calls a scenario in which nothing was checked a success.
    for (scenario, checks) in [
        ("initialize", 1),
        ("tools_call", 1),
        ("elicitation-sep1034-client-defaults", 5),
        ("sse-retry", 3),
    ] {
        let summary = format!("✓ {scenario}: {checks} passed, 0 failed");
        assert!(said.contains(&summary), "{summary}: {said}");
    }
}
