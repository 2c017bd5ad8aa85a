//! `serve`: how it starts, what it refuses, how it follows its file and how it ends.

use std::net::TcpListener;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::gateway::{HANG, RunningServe, request, send, wait_until};
use crate::run::ProgramRun;

#[test]
fn tools_are_called_over_http_and_signals_shut_it_down_cleanly() {
    for (signal, code) in [("-TERM", 0), ("-INT", 130)] {
        let mut gateway = RunningServe::plain();
        assert_eq!(gateway.get("/healthz").0, 200);
        let envelope = gateway.call("echo", r#"{"a":1}"#);
        assert_eq!(
            (&envelope["success"], &envelope["result"]["echo"]["a"]),
            (&json!(true), &json!(1))
        );
        let started = Instant::now();
        assert_eq!(gateway.end(signal), Some(code), "{}", gateway.log());
        assert!(started.elapsed() < HANG, "a hang guard");
        let recorded = ProgramRun::new(["calls", "--json"])
            .within(gateway.folder.path())
            .done();
        assert!(
            recorded.stdout.contains(r#""origin":"http""#),
            "{recorded:?}"
        );
    }
}

#[test]
fn other_machines_need_a_token() {
    let file = r#"{ "serve": { "bind": "0.0.0.0:0" } }"#;
    for run in [
        ProgramRun::new(["serve", "--bind", "0.0.0.0"]),
        ProgramRun::new(["serve", "--bind", "[::]:0"]),
        ProgramRun::new(["serve", "--bind", "0.0.0.0:0"]).env("TOOLGATE_TOKEN", ""),
        ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", file),
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
    let done = ProgramRun::new(["--config", "t.json", "serve", "--bind", &address])
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
fn an_invalid_address_ends_it_before_anything_starts() {
    let config = "{\n\"telemetry\": { \"otlp\": \"localhost:4318\" }\n}";
    let done = ProgramRun::new(["--config", "t.json", "serve", "--bind", "127.0.0.1:0"])
        .file("t.json", config)
        .done();
    assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
    assert!(
        done.stderr
            .contains("t.json:2:16: telemetry.otlp: is not an address; write http://host:4318"),
        "{done:?}"
    );
}

#[test]
fn unsafe_settings_are_reported_with_their_position() {
    let short = r#"{ "tokens": [{ "token": "0123456789abcdef" }, { "token": "short" }] }"#;
    for (serve, expected) in [
        (short, "t.json:2:56: serve.tokens[1] has 5 characters"),
        (
            r#"{ "hosts": ["https://a/"] }"#,
            "t.json:2:12: serve.hosts: ",
        ),
        (
            r#"{ "concurrency": 0 }"#,
            "t.json:2:12: serve.concurrency is 0",
        ),
    ] {
        let done = ProgramRun::new(["--config", "t.json", "serve"])
            .file("t.json", format!("{{\n\"serve\": {serve}\n}}"))
            .done();
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.stderr.contains(expected), "{done:?}");
    }
    // The problem is in an environment variable, so it has no position in the file.
    let done = ProgramRun::new(["--config", "t.json", "serve"])
        .file("t.json", r#"{ "serve": {} }"#)
        .env("TOOLGATE_TOKEN", "short")
        .done();
    assert!(
        done.stderr
            .contains("error: serve.token (or TOOLGATE_TOKEN) has 5 characters"),
        "{done:?}"
    );
}

#[test]
fn an_unset_token_is_an_error_for_serve_alone() {
    let config = "{\n\"serve\": { \"token\": \"${NO_SUCH_TOKEN}\" }\n}";
    let done = ProgramRun::new(["serve"]).config(config).done();
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(
        done.stderr
            .contains("toolgate.json:2:12: serve.token: the variable NO_SUCH_TOKEN is not set"),
        "{done:?}"
    );
    for command in [&["list"][..], &["call", "echo"], &["calls"]] {
        let done = ProgramRun::new([]).args(command).config(config).done();
        assert_eq!(
            (done.code, done.stderr.contains("NO_SUCH")),
            (Some(0), false),
            "{done:?}"
        );
    }
}

#[test]
fn a_named_file_may_open_the_gateway() {
    let named = json!({ "serve": { "hosts": ["tools.example"], "addServers": true } });
    let run = ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", named.to_string());
    assert_eq!(RunningServe::start(run).get("/healthz").0, 200);
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
fn edits_are_applied_under_load_and_lose_no_call() {
    let gateway = RunningServe::start(ProgramRun::new(["serve"]).config(&config(0)));
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
        wait_until("the broken file is reported", || {
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
    let run = ProgramRun::new(["-vv", "--config", "t.json", "serve"]).file("t.json", config);
    let mut gateway = RunningServe::start(run.env("TOOLGATE_TOKEN", TOKEN));
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
    let recorded = ProgramRun::new(["calls", "last", "--json"])
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
        let run = ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", &config);
        let path = run.path("t.json");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        let gateway = RunningServe::start(run);
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
    let run = ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", config.to_string());
    let mut gateway = RunningServe::start(run);
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
    let run = ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", config.to_string());
    let mut gateway = RunningServe::start(run);
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

fn status(gateway: &RunningServe) -> Value {
    serde_json::from_str(&gateway.get("/api/status").1).unwrap()
}

#[test]
fn an_edited_policy_and_limits_apply_to_the_next_call() {
    let gateway = RunningServe::start(ProgramRun::new(["serve"]).config("{}"));
    let path = gateway.folder.path().join("toolgate.json");
    assert_eq!(gateway.call("echo", "{}")["success"], true);
    let edited = json!({
        "policy": { "deny": ["echo"], "ask": ["volum"] },
        "limits": { "maxArguments": "64B" },
        "model": { "maxTokens": 99 },
        "serve": { "rate": 1000 },
    });
    std::fs::write(&path, edited.to_string()).unwrap();
    wait_until("the new policy", || {
        gateway.call("echo", "{}")["error_kind"] == "not_found"
    });
    let long = json!({ "expression": "1+".repeat(100) }).to_string();
    assert_eq!(gateway.call("math_eval", &long)["error_kind"], "too_large");
    let now = status(&gateway);
    assert_eq!(
        now["restart_needed"],
        json!(["model", "serve.rate"]),
        "{now}"
    );
    assert_eq!((&now["status"], &now["tools"]), (&json!("ok"), &json!(4)));
    wait_until("the patterns are compared with the tools", || {
        gateway
            .log()
            .contains("policy.ask: 'volum' matches no tool; did you mean 'volume'?")
    });
    let told = "'model', 'serve.rate' changed, which takes effect after a restart";
    assert_eq!(gateway.log().matches(told).count(), 1, "{}", gateway.log());

    // An unusable file changes nothing.
    let broken = json!({ "policy": {}, "serve": { "tokens": [{ "token": "short" }] } });
    std::fs::write(&path, broken.to_string()).unwrap();
    wait_until("the broken file is reported", || {
        status(&gateway)["status"] == "degraded"
    });
    let now = status(&gateway);
    let reason = now["reasons"][0].as_str().unwrap();
    assert!(
        reason.contains("serve.tokens[0] has 5 characters") && reason.contains("stays in force"),
        "{reason}"
    );
    assert!(gateway.get("/readyz").1.contains("stays in force"));
    wait_until("the log tells it too", || {
        gateway.log().contains("serve.tokens[0] has 5 characters")
    });
    assert_eq!(gateway.call("echo", "{}")["error_kind"], "not_found");

    std::fs::write(&path, "{}").unwrap();
    wait_until("the old policy", || {
        gateway.call("echo", "{}")["success"] == true
    });
    assert_eq!(status(&gateway)["restart_needed"], json!([]));
}

#[test]
fn unmatched_patterns_are_reported_once_the_servers_have_settled() {
    let config = json!({
        "policy": { "deny": ["volum", "house/sleeep", "house/sleep"], "ask": ["away/lock"] },
        "mcpServers": {
            "house": { "command": fakemcp::program() },
            "away": { "command": "x", "disabled": true },
        },
    });
    let run = ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", config.to_string());
    let gateway = RunningServe::start(run);
    let told = "policy.deny: 'house/sleeep' matches no tool; did you mean 'house/sleep'?";
    wait_until("it is told", || gateway.log().contains(told));
    let log = gateway.log();
    assert!(
        log.contains("'volum' matches no tool; did you mean 'volume'?"),
        "{log}"
    );
    assert_eq!(log.matches("matches no tool").count(), 2, "{log}");
}

#[test]
fn tm7_a_reordered_file_changes_the_owner_of_a_name() {
    let server = json!({ "command": fakemcp::program(), "startTimeout": "60s" });
    let config = |order: [&str; 2]| {
        let servers = order.map(|name| (name.to_owned(), server.clone()));
        let servers: serde_json::Map<String, Value> = servers.into_iter().collect();
        json!({ "mcpServers": servers }).to_string()
    };
    let run =
        ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", config(["one", "two"]));
    let gateway = RunningServe::start(run);
    let owner = || {
        let (_, listed) = gateway.get("/api/tools");
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let mut tools = listed.as_array().unwrap().iter();
        let found = tools.find(|tool| tool["name"] == "pid");
        found.map(|tool| tool["source"].as_str().unwrap().to_owned())
    };
    let is_connected = |name: &str| {
        let (_, servers) = gateway.get("/api/servers");
        let servers: Value = serde_json::from_str(&servers).unwrap();
        let mut servers = servers.as_array().unwrap().iter();
        servers.any(|server| server["name"] == name && server["state"] == "connected")
    };
    wait_until("both are connected", || {
        is_connected("one") && is_connected("two")
    });
    assert_eq!(owner().as_deref(), Some("mcp:one"));
    std::fs::write(gateway.folder.path().join("t.json"), config(["two", "one"])).unwrap();
    wait_until("the other one owns the name", || {
        owner().as_deref() == Some("mcp:two")
    });
}

#[test]
fn sighup_reads_the_file_again_and_ends_nothing() {
    let mut gateway = RunningServe::start(ProgramRun::new(["serve"]).config("{}"));
    gateway.signal("-HUP");
    wait_until("it is told", || {
        gateway
            .log()
            .contains("SIGHUP: reading toolgate.json again")
    });
    assert_eq!(gateway.call("echo", "{}")["success"], true);
    assert_eq!(gateway.end("-TERM"), Some(0), "{}", gateway.log());
    // Without a file there is nothing to read, and no reason to end.
    let mut gateway = RunningServe::plain();
    gateway.signal("-HUP");
    assert_eq!(gateway.call("echo", "{}")["success"], true);
    assert_eq!(gateway.end("-TERM"), Some(0), "{}", gateway.log());
}

#[test]
fn denied_tools_are_not_counted_and_every_address_is_shown() {
    let config =
        json!({ "policy": { "deny": ["volume"] }, "serve": { "hosts": ["tools.example"] } });
    let run = ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", config.to_string());
    let gateway = RunningServe::start(run);
    let log = || gateway.log();
    wait_until("all is shown", || log().contains("also reachable at"));
    assert!(log().contains("tools=4"), "{}", log());
    let port = gateway.address.rsplit(':').next().unwrap();
    let also = format!("also reachable at http://localhost:{port}, tools.example");
    assert!(log().contains(&also), "{}", log());
    assert!(!log().contains("other machines"), "{}", log());
}

#[test]
fn health_is_asked_without_a_token_and_answered_by_the_exit_code() {
    let token = "0123456789abcdef0123456789abcdef";
    let config = json!({ "serve": { "tokens": [{ "token": token }] } }).to_string();
    let run = ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", &config);
    let mut gateway = RunningServe::start(run);
    wait_until("it is ready", || gateway.get("/readyz").0 == 200);
    let done = ProgramRun::new(["health", &gateway.address]).done();
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (Some(0), "ready\n"),
        "{done:?}"
    );
    let configured = json!({ "serve": { "bind": gateway.address } }).to_string();
    let done = ProgramRun::new(["--config", "c.json", "health"])
        .file("c.json", configured)
        .done();
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(gateway.end("-TERM"), Some(0));
    for run in [
        ProgramRun::new(["health", &gateway.address]),
        ProgramRun::new(["health", "not an address"]),
        ProgramRun::new(["--config", "nope.json", "health"]),
        ProgramRun::new(["health"]).config("{ nope"),
    ] {
        let done = run.done();
        assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{done:?}");
        assert_eq!(done.stderr.lines().count(), 1, "{done:?}");
    }
}

#[test]
fn beyond_loopback_it_explains_how_to_add_names() {
    let run = ProgramRun::new(["serve"]).env("TOOLGATE_TOKEN", "0123456789abcdef0123456789abcdef");
    let gateway = RunningServe::start_at(run, "0.0.0.0:0");
    let told = "other machines get in by an address in numbers alone; to add a name: \"serve\": { \"hosts\": [\"tools.example.org\"] } in the configuration";
    wait_until("it is told", || gateway.log().contains(told));
}

#[test]
fn an_edited_retry_policy_applies_to_the_next_server() {
    let config = |attempts: u32, servers: &Value| {
        json!({ "retry": { "attempts": attempts, "baseDelay": "10ms" }, "mcpServers": servers })
            .to_string()
    };
    let run =
        ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", config(1, &json!({})));
    let gateway = RunningServe::start(run);
    let servers = json!({ "lost": { "command": "no-such-program-of-toolgate" } });
    let path = gateway.folder.path().join("t.json");
    std::fs::write(path, config(2, &servers)).unwrap();
    wait_until("the server is given up", || {
        gateway.log().contains("MCP connection failed after")
    });
    let log = gateway.log();
    assert!(
        log.contains("MCP connection failed after 2 attempts"),
        "{log}"
    );
    assert_eq!(status(&gateway)["restart_needed"], json!([]));
}

#[test]
fn sighup_applies_changes_that_no_watch_notices() {
    use std::os::unix::fs::symlink;
    let deny = json!({ "policy": { "deny": ["echo"] } }).to_string();
    let run = ProgramRun::new(["--config", "seen/t.json", "serve"])
        .file("old/t.json", "{}")
        .file("new/t.json", deny)
        .file("seen/other", "")
        .file("between/other", "");
    // As in Kubernetes: the link that changes is in neither of the folders that are watched, those
    // of the name and of the file.
    symlink("../between/t.json", run.path("seen/t.json")).unwrap();
    let link = run.path("between/t.json");
    symlink("../old/t.json", &link).unwrap();
    let gateway = RunningServe::start(run);
    std::fs::remove_file(&link).unwrap();
    symlink("../new/t.json", &link).unwrap();
    assert_eq!(gateway.call("echo", "{}")["success"], true);
    gateway.signal("-HUP");
    wait_until("the tool is denied", || {
        gateway.call("echo", "{}")["error_kind"] == "not_found"
    });
}
