//! Runs the official conformance suites against client and server. The baselines list
//! expected failures with the reason; a suite fails if one of those passes or any other
//! fails. `./test.sh` installs them.

use std::path::{Path, PathBuf};

use fakemcp::{ConformanceSuite, SKILL_SCENARIOS, ServerProcess, SuiteReport, TASK_SCENARIOS};

const BASELINE: &str = "conformance-baseline.yml";
const NEXT_BASELINE: &str = "conformance-next-baseline.yml";

fn baseline(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

fn test_client(suite: &ConformanceSuite, which: [&str; 2], name: &str) -> SuiteReport {
    let client = fakemcp::example("toolgate-mcp", "conformance_client");
    let client = client.display().to_string();
    let arguments = [which[0], which[1], "--command", &client];
    suite.run("client", &arguments, &baseline(name))
}

fn test_server(suite: &ConformanceSuite, which: [&str; 2], name: &str) -> SuiteReport {
    let mut server = ServerProcess::example();
    let arguments = [which[0], which[1], "--url", &server.url];
    let report = suite.run("server", &arguments, &baseline(name));
    assert!(server.is_running(), "{}", report.output);
    report
}

#[test]
fn the_official_suite_passes_except_for_the_baseline() {
    let Some(suite) = ConformanceSuite::released() else {
        return;
    };
    let report = test_client(&suite, ["--suite", "all"], BASELINE);
    report.assert_passed(&[
        ("initialize", 1),
        ("tools_call", 1),
        ("elicitation-sep1034-client-defaults", 5),
        ("sse-retry", 3),
    ]);
}

#[test]
fn the_official_suite_passes_on_our_server_except_for_the_baseline() {
    let Some(suite) = ConformanceSuite::released() else {
        return;
    };
    let report = test_server(&suite, ["--suite", "all"], BASELINE);
    report.assert_passed(&[
        ("server-initialize", 1),
        ("logging-set-level", 1),
        ("tools-list", 1),
        ("tools-call-mixed-content", 1),
        ("tools-call-with-logging", 1),
        ("tools-call-sampling", 1),
        ("tools-call-elicitation", 1),
        ("json-schema-2020-12", 4),
        ("resources-subscribe", 1),
        ("prompts-get-with-args", 1),
        ("server-sse-multiple-streams", 1),
        ("dns-rebinding-protection", 2),
    ]);
}

#[test]
fn our_client_passes_the_next_official_suite_except_for_the_baseline() {
    let Some(suite) = ConformanceSuite::next() else {
        return;
    };
    let report = test_client(&suite, ["--requirements", "2026-07-28"], NEXT_BASELINE);
    report.assert_passed(&[
        ("tools_call", 2),
        ("request-metadata", 6),
        ("sep-2322-client-request-state", 5),
        ("http-standard-headers", 7),
        ("http-custom-headers", 18),
        ("http-invalid-tool-headers", 12),
        ("json-schema-ref-no-deref", 1),
        ("json-schema-2020-12-preservation", 9),
    ]);
    let report = test_client(&suite, ["--requirements", "2025-11-25"], NEXT_BASELINE);
    report.assert_passed(&[
        ("initialize", 1),
        ("tools_call", 2),
        ("elicitation-sep1034-client-defaults", 5),
        ("sse-retry", 3),
        ("json-schema-2020-12-preservation", 9),
    ]);
}

#[test]
fn our_server_passes_the_next_official_suite_except_for_the_baseline() {
    let Some(suite) = ConformanceSuite::next() else {
        return;
    };
    let report = test_server(&suite, ["--requirements", "2026-07-28"], NEXT_BASELINE);
    report.assert_passed(&[
        ("server-stateless", 30),
        ("caching", 8),
        ("http-header-validation", 14),
        ("http-custom-header-server-validation", 10),
        ("input-required-result-multi-round", 4),
        ("input-required-result-ignore-extra-params", 2),
        ("sep-2164-resource-not-found", 4),
    ]);
    let report = test_server(&suite, ["--requirements", "2025-11-25"], NEXT_BASELINE);
    report.assert_passed(&[
        ("server-initialize", 3),
        ("server-session-lifecycle", 3),
        ("server-sse-polling", 2),
        ("logging-set-level", 2),
        ("tools-call-sampling", 2),
        ("elicitation-sep1330-enums", 6),
        ("json-schema-2020-12", 8),
    ]);
}

#[test]
fn the_scenarios_of_tasks_pass_on_our_server() {
    let Some(suite) = ConformanceSuite::next() else {
        return;
    };
    for (scenario, checks) in TASK_SCENARIOS {
        test_server(&suite, ["--scenario", scenario], NEXT_BASELINE).assert_checks(checks);
    }
}

#[test]
fn the_scenarios_of_skills_pass_on_both_sides() {
    let Some(suite) = ConformanceSuite::next() else {
        return;
    };
    for (scenario, checks) in SKILL_SCENARIOS {
        test_server(&suite, ["--scenario", scenario], NEXT_BASELINE).assert_checks(checks);
    }
    for scenario in [
        "sep-2640-client-no-prefetch",
        "sep-2640-client-verify-digest",
        "sep-2640-client-verify-size",
        "sep-2640-client-verify-frontmatter",
    ] {
        test_client(&suite, ["--scenario", scenario], NEXT_BASELINE).assert_checks(1);
    }
}
