//! The official conformance suites through the whole gateway: suite, `/mcp`, gateway, and behind it
//! a server of either era in another process. `conformance/` has a baseline for each server and era.

use std::path::{Path, PathBuf};

use fakemcp::{ConformanceSuite, ServerProcess};
use serde_json::json;

use crate::support::ServeProcess;

/// How the gateway connects to the server, and for each way the suite that needs nothing else.
const ERAS: [(&str, &str); 2] = [("legacy", "2025-11-25"), ("modern", "2026-07-28")];

fn baseline(server: &str, era: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/conformance");
    folder.join(format!("{server}-{era}.yml"))
}

/// A gateway in front of the server.
fn gateway(folder: &Path, server: &ServerProcess, era: &str) -> ServeProcess {
    let suite = json!({ "url": server.url, "era": era });
    let config = json!({ "mcpServers": { "suite": suite } });
    let gateway = ServeProcess::start(folder, &config);
    gateway.ready();
    gateway
}

#[test]
fn the_released_suite_passes_through_the_gateway() {
    let Some(suite) = ConformanceSuite::released() else {
        return;
    };
    let server = ServerProcess::example();
    for (era, _) in ERAS {
        let folder = tempfile::tempdir().unwrap();
        let gateway = gateway(folder.path(), &server, era);
        let url = format!("{}/mcp", gateway.url());
        let arguments = ["--suite", "all", "--url", &url];
        let report = suite.run("server", &arguments, &baseline("example", era));
        report.assert_passed(&[
            ("tools-call-with-progress", 1),
            ("tools-call-with-logging", 1),
            ("tools-call-sampling", 1),
            ("tools-call-elicitation", 1),
            ("elicitation-sep1330-enums", 5),
            ("resources-subscribe", 1),
            ("resources-templates-read", 1),
            ("prompts-get-embedded-resource", 1),
            ("completion-complete", 1),
            ("dns-rebinding-protection", 2),
        ]);
    }
}

/// The scenarios of both revisions, with the server in both eras.
fn test_next_suite(suite: &ConformanceSuite, server: &ServerProcess, name: &str) {
    for (era, own_revision) in ERAS {
        let folder = tempfile::tempdir().unwrap();
        let gateway = gateway(folder.path(), server, era);
        let url = format!("{}/mcp", gateway.url());
        for (_, revision) in ERAS {
            let arguments = ["--requirements", revision, "--url", &url];
            let report = suite.run("server", &arguments, &baseline(name, era));
            // What the server offers in this era needs no translation.
            let questions: &[_] = match (revision == own_revision, revision) {
                (true, "2025-11-25") => &[
                    ("tools-call-sampling", 2),
                    ("tools-call-elicitation", 2),
                    ("resources-subscribe", 2),
                ],
                (true, _) => &[
                    ("input-required-result-multiple-input-requests", 3),
                    ("input-required-result-multi-round", 4),
                    ("input-required-result-capability-check", 2),
                ],
                (false, _) => &[],
            };
            report.assert_passed(questions);
            report.assert_passed(&[
                ("tools-call-with-progress", 2),
                ("tools-call-mixed-content", 2),
                ("resources-templates-read", 2),
                ("prompts-get-embedded-resource", 2),
                ("completion-complete", 2),
                ("json-schema-2020-12", 8),
                ("dns-rebinding-protection", 2),
            ]);
        }
    }
}

#[test]
fn the_next_suite_passes_through_the_gateway() {
    let Some(suite) = ConformanceSuite::next() else {
        return;
    };
    test_next_suite(&suite, &ServerProcess::example(), "example");
}

#[test]
fn the_next_suite_passes_through_the_gateway_on_its_own_server() {
    let Some(suite) = ConformanceSuite::next() else {
        return;
    };
    if let Some(server) = suite.reference_server() {
        test_next_suite(&suite, &server, "reference");
    }
}
