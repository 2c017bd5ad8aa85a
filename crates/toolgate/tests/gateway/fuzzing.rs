//! Requests that the API's own document allows, and many that it doesn't: no response is a 5xx, and
//! every one matches the document.

use std::process::Command;

use serde_json::json;

use crate::support::{ServeProcess, fake_server, get};

const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance";

#[test]
fn generated_requests_are_answered_as_the_api_document_says() {
    let Some(tools) = thirdparty::HTTP.folder() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "mcpServers": { "house": fake_server(&[]) },
        "model": { "provider": "intents" },
        // The fuzzer finds the names of tools, some of which never answer.
        "limits": { "timeout": "2s" },
    });
    let gateway = ServeProcess::start(folder.path(), &config);
    gateway.ready();
    let done = Command::new(tools.join("python/bin/schemathesis"))
        .args(["run", &format!("{}/openapi.json", gateway.url())])
        .args(["--phases", "examples,coverage,fuzzing", "--checks", CHECKS])
        // The same requests every time: a run of the tests must not fail by chance.
        .args([
            "--max-examples",
            "15",
            "--seed",
            "20261116",
            "--generation-database",
            "none",
        ])
        // Streams don't end on their own.
        .args([
            "--exclude-path",
            "/api/events",
            "--exclude-path",
            "/api/chat",
            "--exclude-path",
            "/mcp",
        ])
        .args([
            "--workers",
            "2",
            "--request-timeout",
            "20",
            "--no-color",
            "--warnings",
            "off",
        ])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success(),
        "{said}\n{}\n{}",
        String::from_utf8_lossy(&done.stderr),
        gateway.log()
    );
    assert_eq!(get(&gateway.address, "/healthz").0, 200);
}
