//! The official conformance suites through the whole gateway: suite, `/mcp`, gateway, and
//! behind it a server of either era in another process. `conformance/` has a baseline for
//! each server and era.

use std::path::{Path, PathBuf};

use fakemcp::{ConformanceSuite, SKILL_SCENARIOS, ServerProcess, TASK_SCENARIOS};
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
    // The suite doesn't wait for long until a call becomes a task.
    let tasks = json!({ "after": "300ms" });
    let config = json!({ "mcpServers": { "suite": suite }, "serve": { "tasks": tasks } });
    let gateway = ServeProcess::start(folder, &config);
    gateway.ready();
    gateway
}

/// With the server in both eras.
fn test_released_suite(suite: &ConformanceSuite, server: &ServerProcess, name: &str) {
    for (era, _) in ERAS {
        let folder = tempfile::tempdir().unwrap();
        let gateway = gateway(folder.path(), server, era);
        let url = format!("{}/mcp", gateway.url());
        let arguments = ["--suite", "all", "--url", &url];
        let report = suite.run("server", &arguments, &baseline(name, era));
        report.assert_passed(&[
            ("tools-call-with-progress", 1),
            ("tools-call-with-logging", 1),
            ("server-sse-polling", 2),
            ("resources-templates-read", 1),
            ("prompts-get-embedded-resource", 1),
            ("completion-complete", 1),
            ("dns-rebinding-protection", 2),
        ]);
        if (name, era) != ("reference", "modern") {
            report.assert_passed(&[
                ("tools-call-sampling", 1),
                ("tools-call-elicitation", 1),
                ("elicitation-sep1330-enums", 5),
                ("resources-subscribe", 1),
            ]);
        }
    }
}

#[test]
fn the_released_suite_passes_through_the_gateway() {
    let Some(suite) = ConformanceSuite::released() else {
        return;
    };
    test_released_suite(&suite, &ServerProcess::example(), "example");
}

#[test]
fn the_released_suite_passes_through_the_gateway_on_the_server_of_the_next() {
    let suites = ConformanceSuite::released().zip(ConformanceSuite::next());
    let Some((suite, next)) = suites else {
        return;
    };
    if let Some(server) = next.reference_server() {
        test_released_suite(&suite, &server, "reference");
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
            // These count towards no requirements, so nothing else asserts them.
            report.assert_passed(match revision {
                "2025-11-25" => &[("server-session-lifecycle", 3), ("server-sse-polling", 2)],
                _ => &[("http-header-validation", 14)],
            });
            if (name, revision) == ("example", "2026-07-28") {
                report.assert_passed(&[("http-custom-header-server-validation", 10)]);
            }
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
fn the_scenarios_of_tasks_and_skills_pass_through_the_gateway() {
    let Some(suite) = ConformanceSuite::next() else {
        return;
    };
    let server = ServerProcess::example();
    for (era, _) in ERAS {
        let folder = tempfile::tempdir().unwrap();
        let gateway = gateway(folder.path(), &server, era);
        let url = format!("{}/mcp", gateway.url());
        for (scenario, checks) in TASK_SCENARIOS.into_iter().chain(SKILL_SCENARIOS) {
            // Expects a tool to refuse clients without tasks. Behind Toolgate it can't: Toolgate
            // itself has tasks in both eras, and waits for the result in place of such a client.
            if scenario == "tasks-required-task-error" {
                continue;
            }
            let arguments = ["--scenario", scenario, "--url", &url];
            let report = suite.run("server", &arguments, &baseline("example", era));
            report.assert_checks(checks);
        }
    }
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
