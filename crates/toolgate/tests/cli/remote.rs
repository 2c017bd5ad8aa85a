//! `--at`: commands through a running gateway.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::gateway::RunningServe;
use crate::llm::HANG;
use crate::run::{ProgramRun, RunOutput};

const CONFIG: &str = r#"{ "tools": [{
    "name": "typed", "description": "Repeats. More words.",
    "parameters": { "type": "object", "properties": { "code": { "type": "string" }, "n": { "type": "integer" } } },
    "implementation": { "type": "builtin", "handler": "echo" } }] }"#;

/// The envelope without the fields that differ from call to call.
fn settled(done: &RunOutput) -> Value {
    let mut envelope = done.json();
    for key in ["call_id", "execution_time_ms"] {
        assert!(!envelope[key].is_null(), "{done:?}");
        envelope[key] = Value::Null;
    }
    envelope
}

#[test]
fn remote_calls_match_local_calls() {
    let gateway = RunningServe::start(ProgramRun::new(["serve"]).config(CONFIG));
    for arguments in [
        &["typed", "code=012", "n=3"][..],
        &["typed", "n=x"],
        &["typed", r#"{"n": 1, "deep": [1, {"ä": null}]}"#],
        &["typed", "{ nope"],
        &["typed", "[1]"],
        &["typed", "word"],
        &["echo"],
        &["echo", "-"],
        &["nope", "a=1"],
        &["datetime", "action=fly"],
    ] {
        let local = ProgramRun::new(["call"]).args(arguments).config(CONFIG);
        let local = local.stdin(r#"{"from": "stdin"}"#).done();
        let url = gateway.url();
        let remote = ProgramRun::new(["call", "--at", &url]).args(arguments);
        let remote = remote.stdin(r#"{"from": "stdin"}"#).done();
        assert_eq!(remote.code, local.code, "{arguments:?} {remote:?}");
        assert_eq!(settled(&remote), settled(&local), "{arguments:?}");
    }
    let done = ProgramRun::new(["call", "--at", &gateway.url(), "echo", "no pair", "a=1"]).done();
    assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
    // Without the scheme too, and by its name.
    let (_, port) = gateway.address.split_once(':').unwrap();
    let at = format!("localhost:{port}");
    assert_eq!(
        ProgramRun::new(["call", "--at", &at, "echo"]).done().code,
        Some(0)
    );
}

#[test]
fn tools_of_a_gateway_are_listed_and_shown() {
    let gateway = RunningServe::start(ProgramRun::new(["serve"]).config(CONFIG));
    let url = gateway.url();
    let listed = ProgramRun::new(["list", "--at", &url]).done();
    assert!(
        listed.stdout.contains("typed\tbuiltin\tRepeats\n"),
        "{listed:?}"
    );
    let listed = ProgramRun::new(["list", "--at", &url, "--json"]).json();
    assert_eq!(listed.as_array().unwrap().len(), 6);
    let shown = ProgramRun::new(["inspect", "--at", &url, "typed"]).done();
    assert!(
        shown.stdout.contains("code") && shown.stdout.contains("integer"),
        "{shown:?}"
    );
    let unknown = ProgramRun::new(["inspect", "--at", &url, "typd"]).done();
    assert_eq!(
        (unknown.code, unknown.stdout.as_str()),
        (Some(1), ""),
        "{unknown:?}"
    );
}

#[test]
fn a_server_of_a_gateway_is_shown_with_its_tools() {
    let config = json!({ "mcpServers": { "house": { "command": fakemcp::program() } } });
    let run = ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", config.to_string());
    let gateway = RunningServe::start(run);
    let url = gateway.url();
    let started = Instant::now();
    loop {
        let shown = ProgramRun::new(["inspect", "--at", &url, "house"]).done();
        assert_eq!(shown.code, Some(0), "{shown:?}");
        assert!(shown.stdout.starts_with("Server house  ("), "{shown:?}");
        if shown.stdout.contains("connected over stdio") && shown.stdout.contains("house__echo  ") {
            break;
        }
        assert!(started.elapsed() < HANG, "{shown:?}");
    }
    let shown = ProgramRun::new(["inspect", "--at", &url, "house", "--json"]).json();
    let names = shown["tool_names"].as_array().unwrap();
    assert!(names.contains(&json!("house__echo")), "{shown}");
}

/// Gives every request the same response, and keeps the requests.
fn canned(answer: &'static str) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (asked, requests) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut bytes = [0; 4096];
            loop {
                let count = stream.read(&mut bytes).unwrap();
                request.extend_from_slice(&bytes[..count]);
                let text = String::from_utf8_lossy(&request);
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    continue;
                };
                let length = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case("content-length")
                        .then(|| value.trim().parse().ok())?
                });
                if body.len() >= length.unwrap_or(0) {
                    break;
                }
            }
            let text = String::from_utf8_lossy(&request).into_owned();
            stream.write_all(answer.as_bytes()).unwrap();
            drop(asked.send(text));
        }
    });
    (address, requests)
}

#[test]
fn an_unreachable_or_refusing_gateway_is_reported_plainly() {
    let away = ProgramRun::new(["call", "--at", "127.0.0.1:9", "echo", "a=1"]).done();
    assert_eq!(
        (away.code, &away.json()["error_kind"]),
        (Some(1), &json!("unavailable")),
        "{away:?}"
    );
    assert!(away.stderr.contains("toolgate serve"), "{away:?}");
    let away = ProgramRun::new(["list", "--at", "127.0.0.1:9"]).done();
    assert_eq!((away.code, away.stdout.as_str()), (Some(1), ""), "{away:?}");
    const UNAUTHORIZED: &str =
        "HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    const FORBIDDEN: &str = "HTTP/1.1 403 Forbidden\r\ncontent-length: 30\r\nconnection: close\r\n\r\n{\"detail\":\"unknown host name\"}";
    const PAGE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>";
    for (answer, token, words) in [
        (UNAUTHORIZED, "", "TOOLGATE_TOKEN"),
        (UNAUTHORIZED, "s3cret-token", "does not know this token"),
        (FORBIDDEN, "", "unknown host name"),
        (PAGE, "", "is not a Toolgate gateway"),
    ] {
        let (address, requests) = canned(answer);
        let run = ProgramRun::new(["call", "--at", &address, "echo", "{}"]);
        let done = run.env("TOOLGATE_TOKEN", token).done();
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
        assert!(
            done.stderr.contains(words) && !done.stderr.contains("s3cret"),
            "{done:?}"
        );
        let request = requests.recv().unwrap();
        assert_eq!(
            request.contains("authorization: Bearer s3cret-token"),
            !token.is_empty()
        );
    }
    for wrong in ["ftp://h", "http://me:pw@h/", ""] {
        let done = ProgramRun::new(["call", "--at", wrong, "echo"]).done();
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
    }
}

#[test]
fn a_dry_run_asks_the_gateway_to_check() {
    const CHECKED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 94\r\nconnection: close\r\n\r\n{\"valid\":true,\"executed\":{\"b\":1},\"renamed\":[[\"a\",\"b\"]],\"dropped\":[\"c\"],\"needs_approval\":false}";
    let (address, requests) = canned(CHECKED);
    let run = ProgramRun::new(["call", "--at", &address, "t t", r#"{"a":1}"#, "--dry-run"]);
    let answer = run.json();
    assert_eq!(answer["arguments"], json!({ "b": 1 }));
    assert_eq!(
        (&answer["renamed"], &answer["dry_run"]),
        (&json!({ "a": "b" }), &json!(true))
    );
    let request = requests.recv().unwrap();
    assert!(
        request.starts_with("POST /api/tools/t%20t/check "),
        "{request}"
    );
    let gateway = RunningServe::start(ProgramRun::new(["serve"]).config(CONFIG));
    let url = gateway.url();
    for (argument, code) in [("n=3", 0), ("n=x", 1)] {
        let run = ProgramRun::new(["call", "--at", &url, "typed", argument, "--dry-run"]);
        let done = run.done();
        assert_eq!(done.code, Some(code), "{done:?}");
        let local = ProgramRun::new(["call", "typed", argument, "--dry-run"]).config(CONFIG);
        let local = local.json();
        let remote = done.json();
        for key in ["arguments", "error", "error_kind", "tool_name"] {
            assert_eq!(remote[key], local[key], "{key}");
        }
    }
}

#[test]
fn the_timeout_is_passed_on_and_gateway_calls_can_be_shown() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let config =
        json!({ "search": { "url": format!("http://{}/", silent.local_addr().unwrap()) } });
    let run = ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", config.to_string());
    let gateway = RunningServe::start(run);
    let url = gateway.url();
    let done = ProgramRun::new([
        "call",
        "--at",
        &url,
        "search",
        "query=x",
        "--timeout",
        "200ms",
    ])
    .done();
    assert_eq!(
        done.json()["error"],
        "Tool 'search' timed out after 0.2 s",
        "{done:?}"
    );
    let own = |arguments: &[&str]| {
        let run = ProgramRun::new(["calls", "--at", &url]).args(arguments);
        run.within(gateway.folder.path()).done()
    };
    let listed = own(&["--json", "--outcome", "failed"]);
    assert_eq!(listed.json()["outcome"], "timeout", "{listed:?}");
    let shown = own(&["last", "--json"]).json();
    assert_eq!(shown["asked"], json!({ "query": "x" }));
}

#[test]
fn calls_of_a_gateway_are_printed_as_they_end() {
    let mut gateway = RunningServe::start(ProgramRun::new(["serve"]).config(CONFIG));
    gateway.call("typed", r#"{"n": 0}"#);
    let url = gateway.url();
    let arguments = [
        "calls", "--follow", "--json", "--tool", "typed", "--at", &url,
    ];
    let run = ProgramRun::new(arguments).within(gateway.folder.path());
    let (mut child, _folder) = run.start();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next =
        move || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["arguments"], json!({ "n": 0 }));
    for n in 1..4 {
        gateway.call("datetime", "{}");
        gateway.call("typed", &json!({ "n": n }).to_string());
        assert_eq!(next()["arguments"], json!({ "n": n }));
    }
    // It ends with the gateway and reports that.
    gateway.end("-TERM");
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("the gateway at http://"), "{said}");
}

#[test]
fn the_gateway_replays_its_own_call() {
    let gateway = RunningServe::start(ProgramRun::new(["serve"]).config(CONFIG));
    let url = gateway.url();
    let again = |arguments: &[&str]| {
        let run = ProgramRun::new(["replay", "--at", &url]).args(arguments);
        run.within(gateway.folder.path()).done()
    };
    let nothing = again(&["last"]);
    assert_eq!(
        (nothing.code, nothing.stdout.as_str()),
        (Some(1), ""),
        "{nothing:?}"
    );
    gateway.call("datetime", r#"{"action": "now"}"#);
    let read = again(&["last"]);
    assert_eq!(
        (read.code, &read.json()["tool_name"]),
        (Some(0), &json!("datetime")),
        "{read:?}"
    );
    // A tool that doesn't claim to be read-only is replayed only with `--yes`.
    let id = gateway.call("typed", r#"{"n": 7}"#)["call_id"].clone();
    let id = id.as_str().unwrap();
    let refused = again(&[id]);
    assert_eq!(
        (refused.code, refused.stdout.as_str()),
        (Some(2), ""),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("--yes"), "{refused:?}");
    let agreed = again(&[id, "--yes"]);
    assert_eq!(
        agreed.json()["result"]["echo"],
        json!({ "n": 7 }),
        "{agreed:?}"
    );
    // The beginning of an id is enough, and a failure is a failure.
    gateway.call("typed", r#"{"n": "x"}"#);
    let failed = again(&["last", "--yes"]);
    assert_eq!(
        (failed.code, &failed.json()["error_kind"]),
        (Some(1), &json!("invalid_arguments"))
    );
    let secret = gateway.call("typed", r#"{"password": "hunter2"}"#)["call_id"].clone();
    let refused = again(&[secret.as_str().unwrap(), "--yes"]);
    assert_eq!(
        (refused.code, refused.stdout.as_str()),
        (Some(2), ""),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("secret"), "{refused:?}");
    let timed = again(&["last", "--timeout", "1s"]);
    assert_eq!(timed.code, Some(2), "{timed:?}");
}

#[test]
fn doctor_asks_a_running_gateway() {
    let config =
        r#"{ "serve": { "tokens": [{ "token": "kitchen-kitchen-kitchen", "name": "kitchen" }] } }"#;
    let gateway = RunningServe::start(ProgramRun::new(["serve"]).config(config));
    let url = gateway.url();
    let doctor = |token: &str| {
        let run = ProgramRun::new(["doctor", "--at", &url]);
        run.env("TOOLGATE_TOKEN", token).done()
    };
    let well = doctor("kitchen-kitchen-kitchen");
    assert_eq!(well.code, Some(0), "{well:?}");
    for expected in [
        "ok       gateway        it answers\n",
        "ok       token          accepted\n",
        concat!("ok       version        ", env!("CARGO_PKG_VERSION"), "\n"),
        "ok       tools          5 can be called with this token\n",
        "ok       journal        calls are recorded\n",
        "ok       ready          ready\n",
    ] {
        assert!(well.stdout.contains(expected), "{expected}: {well:?}");
    }
    for (token, expected) in [
        ("", "needs a token: set TOOLGATE_TOKEN"),
        ("another-another-another", "does not know this token"),
    ] {
        let bad = doctor(token);
        assert_eq!(bad.code, Some(1), "{bad:?}");
        assert!(bad.stdout.contains("FAILED   token"), "{bad:?}");
        assert!(bad.stdout.contains(expected), "{expected}: {bad:?}");
    }
    let nobody = ProgramRun::new(["doctor", "--at", "127.0.0.1:1"]).done();
    assert_eq!(nobody.code, Some(1), "{nobody:?}");
    assert!(
        nobody
            .stdout
            .starts_with("FAILED   gateway        no gateway answers"),
        "{nobody:?}"
    );
}

#[test]
fn doctor_reports_a_gateway_whose_server_is_down() {
    let config = r#"{ "retry": { "attempts": 1 }, "mcpServers": { "lamp": { "command": "/nowhere/lamp" } } }"#;
    let run = ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", config);
    let gateway = RunningServe::start(run);
    let url = gateway.url();
    crate::gateway::wait_until("the server has failed", || {
        ProgramRun::new(["doctor", "--at", &url])
            .done()
            .stdout
            .contains("FAILED   lamp           failed")
    });
    let down = ProgramRun::new(["doctor", "--at", &url]).done();
    assert_eq!(down.code, Some(1), "{down:?}");
    assert!(
        !down.stdout.contains("ready          lamp"),
        "it is told once: {down:?}"
    );
}

#[test]
fn doctor_fails_for_a_gateway_whose_server_is_degraded() {
    // Nobody listens on this port.
    let config = json!({ "mcpServers": { "house": {
        "command": env!("CARGO_BIN_EXE_toolgate"),
        "args": ["zwave-mcp-server"],
        "env": { "MQTT_BROKER_URL": "mqtt://127.0.0.1:1" },
        "startTimeout": "60s",
    } } });
    let run = ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", config.to_string());
    let gateway = RunningServe::start(run);
    crate::gateway::wait_until("the server is degraded", || {
        gateway.get("/api/servers").1.contains("\"degraded\"")
    });
    let done = ProgramRun::new(["doctor", "--at", &gateway.url()]).done();
    assert_eq!(done.code, Some(1), "{done:?}");
    let row = done.stdout.lines().find(|line| line.contains(" house "));
    let row = row.unwrap_or_else(|| panic!("{done:?}"));
    assert!(
        row.starts_with("FAILED   house          connected over stdio, but it can't do its work: "),
        "{row}"
    );
    assert!(row.contains("MQTT broker"), "{row}");
    assert!(row.ends_with("(reported by check_zwave_health)"), "{row}");
    assert!(
        !done.stdout.contains("ready          house"),
        "it is told once: {done:?}"
    );
}

#[test]
fn doctor_warns_of_edits_that_need_a_restart() {
    let run = ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", "{}");
    let gateway = RunningServe::start(run);
    let edited = r#"{ "serve": { "rate": 7 }, "model": { "provider": "intents" } }"#;
    std::fs::write(gateway.folder.path().join("t.json"), edited).unwrap();
    crate::gateway::wait_until("the edit is noticed", || {
        gateway.get("/api/status").1.contains("serve.rate")
    });
    let done = ProgramRun::new(["doctor", "--at", &gateway.url()]).done();
    assert_eq!(done.code, Some(0), "{done:?}");
    let row = "warning  configuration  'model', 'serve.rate' changed in the file, which takes effect after a restart\n";
    assert!(done.stdout.contains(row), "{done:?}");
}

#[test]
fn calls_are_filtered_by_caller() {
    let config = r#"{ "serve": { "token": "operator-operator-operator",
        "tokens": [{ "token": "kitchen-kitchen-kitchen", "name": "kitchen" }] } }"#;
    let gateway = RunningServe::start(ProgramRun::new(["serve"]).config(config));
    let url = gateway.url();
    let at = |arguments: &[&str], token: &str| {
        let run = ProgramRun::new([]).args(arguments).args(&["--at", &url]);
        run.env("TOOLGATE_TOKEN", token).done()
    };
    let kitchen = at(&["call", "echo", "from=kitchen"], "kitchen-kitchen-kitchen");
    assert_eq!(kitchen.code, Some(0), "{kitchen:?}");
    at(
        &["call", "echo", "from=operator"],
        "operator-operator-operator",
    );
    let folder = gateway.folder.path();
    ProgramRun::new(["call", "echo", "from=shell"])
        .within(folder)
        .done();
    for (caller, expected) in [("kitchen", "kitchen"), ("call", "shell")] {
        let remote = at(&["calls", "--caller", caller], "operator-operator-operator");
        let local = ProgramRun::new(["calls", "--caller", caller])
            .within(folder)
            .done();
        for done in [remote, local] {
            assert_eq!(done.stdout.lines().count(), 1, "{caller}: {done:?}");
            assert!(done.stdout.contains(expected), "{caller}: {done:?}");
            assert!(done.stdout.ends_with(&format!("\t{caller}\n")), "{done:?}");
        }
    }
}
