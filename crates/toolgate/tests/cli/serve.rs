//! `serve`: how it starts, what it refuses, how it follows its file and how it ends.

use std::net::TcpListener;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::gateway::{Gateway, HANG, request, send, wait_until};
use crate::run::Run;

#[test]
fn tools_are_called_over_http_and_signals_end_it_in_an_orderly_way() {
    for (signal, code) in [("-TERM", 0), ("-INT", 130)] {
        let mut gateway = Gateway::plain();
        assert_eq!(gateway.get("/healthz").0, 200);
        let envelope = gateway.call("echo", r#"{"a":1}"#);
        assert_eq!(
            (&envelope["success"], &envelope["result"]["echo"]["a"]),
            (&json!(true), &json!(1))
        );
        let started = Instant::now();
        assert_eq!(gateway.end(signal), Some(code), "{}", gateway.log());
        assert!(started.elapsed() < HANG, "a hang guard");
        let recorded = Run::new(["calls", "--json"])
            .within(gateway.folder.path())
            .done();
        assert!(
            recorded.stdout.contains(r#""origin":"http""#),
            "{recorded:?}"
        );
    }
}

#[test]
fn others_get_in_only_with_a_token() {
    let file = r#"{ "serve": { "bind": "0.0.0.0:0" } }"#;
    for run in [
        Run::new(["serve", "--bind", "0.0.0.0"]),
        Run::new(["serve", "--bind", "[::]:0"]),
        Run::new(["serve", "--bind", "0.0.0.0:0"]).env("TOOLGATE_TOKEN", ""),
        Run::new(["--config", "t.json", "serve"]).file("t.json", file),
    ] {
        let done = run.done();
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
        assert_eq!(done.stderr.lines().count(), 1, "{done:?}");
        for word in ["token", "TOOLGATE_TOKEN", "--bind 127.0.0.1"] {
            assert!(done.stderr.contains(word), "{done:?}");
        }
    }
}

#[test]
fn a_port_that_is_taken_ends_it_before_anything_starts() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mark = format!("port of {}", std::process::id());
    let config = json!({ "mcpServers": { "a": {
        "command": fakemcp::program(), "env": { fakemcp::MARK: mark },
    } } });
    let started = Instant::now();
    let done = Run::new(["--config", "t.json", "serve", "--bind", &address])
        .file("t.json", config.to_string())
        .done();
    assert!(started.elapsed() < HANG, "a hang guard");
    assert_eq!(
        (done.code, done.stderr.lines().count()),
        (Some(1), 1),
        "{done:?}"
    );
    let port = address.rsplit(':').next().unwrap();
    assert!(
        done.stderr.contains(port) && done.stderr.contains("--bind"),
        "{done:?}"
    );
    assert!(fakemcp::processes(&mark).is_empty());
}

#[test]
fn an_address_that_is_none_ends_it_before_anything_starts() {
    let config = "{\n\"telemetry\": { \"otlp\": \"localhost:4318\" }\n}";
    let done = Run::new(["--config", "t.json", "serve", "--bind", "127.0.0.1:0"])
        .file("t.json", config)
        .done();
    assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
    assert!(
        done.stderr
            .contains("t.json:2: telemetry.otlp: no address; write http://host:4318"),
        "{done:?}"
    );
}

#[test]
fn an_unset_token_is_an_error_for_serve_alone() {
    let config = "{\n\"serve\": { \"token\": \"${NO_SUCH_TOKEN}\" }\n}";
    let done = Run::new(["serve"]).config(config).done();
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(
        done.stderr
            .contains("toolgate.json:2: serve.token: the variable NO_SUCH_TOKEN is not set"),
        "{done:?}"
    );
    for command in [&["list"][..], &["call", "echo"], &["calls"]] {
        let done = Run::new([]).args(command).config(config).done();
        assert_eq!(
            (done.code, done.stderr.contains("NO_SUCH")),
            (Some(0), false),
            "{done:?}"
        );
    }
}

#[test]
fn a_file_in_the_working_folder_makes_the_gateway_narrower_never_wider() {
    for (section, key, value) in [
        ("serve", "bind", json!("0.0.0.0:0")),
        ("serve", "hosts", json!(["evil.example"])),
        ("serve", "origins", json!(["https://evil.example"])),
        ("serve", "addServers", json!(true)),
        ("telemetry", "otlp", json!("http://evil.example:4318")),
    ] {
        let config = json!({ section: { key: value } }).to_string();
        let done = Run::new(["serve"]).config(&config).done();
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(
            done.stderr
                .contains(&format!("toolgate.json:1: {section}.{key}: ")),
            "{done:?}"
        );
        assert!(done.stderr.contains("--config toolgate.json"), "{done:?}");
    }
    // Whoever put the file there knows its token: it opens nothing.
    let token = json!({ "serve": { "token": "0123456789abcdef0123456789abcdef" } }).to_string();
    let done = Run::new(["serve", "--bind", "0.0.0.0:0"])
        .config(&token)
        .done();
    assert_eq!(done.code, Some(2), "{done:?}");
    let named = json!({ "serve": { "hosts": ["tools.example"], "addServers": true } });
    let run = Run::new(["--config", "t.json", "serve"]).file("t.json", named.to_string());
    assert_eq!(Gateway::start(run).get("/healthz").0, 200);
}

/// Tool definitions that answer with a number.
fn config(answer: u32) -> String {
    json!({ "tools": [{
        "name": "number", "description": "d", "parameters": { "type": "object" },
        "implementation": { "type": "mock", "mock_response": answer },
    }] })
    .to_string()
}

#[test]
fn edits_of_the_file_are_applied_under_load_and_cost_no_call() {
    let gateway = Gateway::start(Run::new(["serve"]).config(&config(0)));
    let path = gateway.folder.path().join("toolgate.json");
    let address = gateway.address.clone();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let load = std::thread::spawn(move || {
        let mut answers = Vec::new();
        while stopped.try_recv().is_err() {
            let (status, body) = request(&address, "POST", "/api/tools/number/call", "{}");
            let envelope: Value = serde_json::from_str(&body).unwrap();
            answers.push((status, envelope["success"].clone()));
        }
        answers
    });
    for answer in [1, 2] {
        std::fs::write(&path, "{ broken").unwrap();
        wait_until("the broken file is told of", || {
            gateway.log().matches("stays in force").count() >= answer as usize
        });
        let told = gateway.get("/readyz").1;
        assert!(
            told.contains("degraded")
                && told.contains("toolgate.json:1")
                && told.contains("stays in force"),
            "{told}"
        );
        std::fs::write(&path, config(answer)).unwrap();
        wait_until("the new answer", || {
            gateway.call("number", "{}")["result"] == answer
        });
        assert!(gateway.get("/readyz").1.contains(r#""ready""#));
    }
    stop.send(()).unwrap();
    let answers = load.join().unwrap();
    assert!(!answers.is_empty());
    assert!(
        answers.iter().all(|answer| *answer == (200, json!(true))),
        "{answers:?}"
    );
}

#[test]
fn a_secret_is_nowhere_but_where_it_belongs() {
    const TOKEN: &str = "sentinel-token-6d1f0c9b2a";
    const KEY: &str = "sentinel-key-77aa01fe55";
    let config = json!({ "search": { "key": KEY }, "serve": { "tokens": [] } }).to_string();
    let run = Run::new(["-vv", "--config", "t.json", "serve"]).file("t.json", config);
    let mut gateway = Gateway::start(run.env("TOOLGATE_TOKEN", TOKEN));
    let arguments =
        json!({ "password": "sentinel-password-1", "text": format!("{KEY} and {TOKEN}") });
    let path = "/api/tools/echo/call";
    let body = arguments.to_string();
    let mut stream = std::net::TcpStream::connect(&gateway.address).unwrap();
    {
        use std::io::{Read, Write};
        let (host, length) = (&gateway.address, body.len());
        write!(stream, "POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains(r#""success":true"#), "{answer}");
    }
    assert_eq!(gateway.end("-TERM"), Some(0));
    let recorded = Run::new(["calls", "last", "--json"])
        .within(gateway.folder.path())
        .done();
    assert!(recorded.stdout.contains("[REDACTED]"), "{recorded:?}");
    let state = gateway.folder.path().join(".local/state/toolgate");
    let mut places = vec![
        ("log", gateway.log().into_bytes()),
        ("calls", recorded.stdout.into()),
    ];
    for entry in std::fs::read_dir(state).unwrap().flatten() {
        if entry.path().is_file() {
            places.push(("journal", std::fs::read(entry.path()).unwrap()));
        }
    }
    assert!(
        places
            .iter()
            .any(|(name, bytes)| *name == "journal" && bytes.len() > 1000)
    );
    for (place, bytes) in places {
        for secret in [TOKEN, KEY, "sentinel-password"] {
            let found = bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!found, "{secret} in the {place}");
        }
    }
}

#[test]
fn secrets_that_others_may_read_are_worth_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let config = json!({ "search": { "key": "k-0123456789" } }).to_string();
    for (mode, warned) in [(0o644, true), (0o600, false)] {
        let run = Run::new(["--config", "t.json", "serve"]).file("t.json", &config);
        let path = run.path("t.json");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        let gateway = Gateway::start(run);
        assert_eq!(
            gateway.log().contains("chmod 600"),
            warned,
            "{}",
            gateway.log()
        );
    }
}

#[test]
fn a_call_in_flight_ends_before_the_gateway_does() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = json!({
        "search": { "url": format!("http://{}/", silent.local_addr().unwrap()) },
        "limits": { "perTool": { "search": { "timeout": "1s" } } },
    });
    let run = Run::new(["--config", "t.json", "serve"]).file("t.json", config.to_string());
    let mut gateway = Gateway::start(run);
    let mut asked = send(
        &gateway.address,
        "POST",
        "/api/tools/search/call",
        r#"{"query":"x"}"#,
    );
    let _connection = silent.accept().unwrap();
    gateway.signal("-TERM");
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut asked, &mut answer).unwrap();
    assert!(answer.contains(r#""error_kind":"timeout""#), "{answer:?}");
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let config =
        json!({ "search": { "url": format!("http://{}/", silent.local_addr().unwrap()) } });
    let run = Run::new(["--config", "t.json", "serve"]).file("t.json", config.to_string());
    let mut gateway = Gateway::start(run);
    let _asked = send(
        &gateway.address,
        "POST",
        "/api/tools/search/call",
        r#"{"query":"x"}"#,
    );
    let _connection = silent.accept().unwrap();
    let started = Instant::now();
    gateway.signal("-INT");
    wait_until("the first signal is obeyed", || {
        gateway.log().contains("stopping")
    });
    assert_eq!(gateway.end("-INT"), Some(130), "{}", gateway.log());
    assert!(
        started.elapsed() < std::time::Duration::from_secs(20),
        "a hang guard"
    );
}
