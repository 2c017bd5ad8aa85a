use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::run::{ProgramRun, RunOutput};

fn call(id: u64, name: &str, arguments: &Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// A handshake, followed by these messages.
fn session(messages: &[Value]) -> String {
    session_with(&json!({}), messages)
}

/// Like `session`, of a client with these capabilities.
fn session_with(capabilities: &Value, messages: &[Value]) -> String {
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client });
    let mut all = vec![
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
    ];
    all.extend_from_slice(messages);
    all.iter().map(|message| format!("{message}\n")).collect()
}

/// A whole JSON-RPC message and nothing else: a request, a notification, or an answer with either a
/// result or an error. Only the answer to a line that could not be read has no `id`.
pub(crate) fn check_message(message: &Value) {
    let fields = message.as_object().unwrap_or_else(|| panic!("{message}"));
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    let has = |name: &str| fields.contains_key(name);
    let id_is_sound = message["id"].is_number() || message["id"].is_string();
    if has("method") {
        assert!(message["method"].is_string(), "{message}");
        assert!(!has("result") && !has("error"), "{message}");
        assert!(!has("id") || id_is_sound, "{message}");
        let params = message.get("params");
        assert!(params.is_none_or(Value::is_object), "{message}");
    } else {
        assert!(
            has("result") != has("error"),
            "exactly one of them: {message}"
        );
        let code = message["error"]["code"].as_i64();
        assert!(
            !has("error") || code.is_some() && message["error"]["message"].is_string(),
            "{message}"
        );
        let unread = matches!(code, Some(-32700 | -32600));
        assert!(id_is_sound || (unread && !has("id")), "{message}");
    }
    let known = ["jsonrpc", "id", "method", "params", "result", "error"];
    assert!(
        fields.keys().all(|name| known.contains(&name.as_str())),
        "{message}"
    );
}

/// Every line of stdout, which must all be JSON-RPC.
fn messages(done: &RunOutput) -> Vec<Value> {
    let parse = |line: &str| -> Value {
        let message: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        check_message(&message);
        message
    };
    assert!(
        done.stdout.is_empty() || done.stdout.ends_with('\n'),
        "{done:?}"
    );
    done.stdout.lines().map(parse).collect()
}

#[test]
fn ms1_stdout_carries_json_rpc_and_nothing_else_at_every_log_level() {
    let config = json!({
        "search": { "url": "http://127.0.0.1:9/" }, "policy": { "ask": ["volume"] }, "mcpServers": { "": 7 },
        "tools": [{ "name": "bad" }],
    });
    let mut input = session(&[
        call(1, "echo", &json!({ "a": "line\nline" })),
        call(2, "search", &json!({ "query": "x" })),
        call(3, "datetime", &json!({ "action": "fly" })),
        call(4, "nope", &json!({})),
        call(5, "volume", &json!({ "action": "get" })),
    ]);
    input.push_str("garbage\n\n{\"level\":\"info\"}\n");
    for level in [
        &["-q"][..],
        &[],
        &["-v"],
        &["-vv"],
        &["-vvvv"],
        &["-vv", "--log-format", "json"],
    ] {
        let done = ProgramRun::new(["mcp"])
            .args(level)
            .config(&config.to_string())
            .stdin(input.as_str())
            .done();
        let answers = messages(&done);
        assert_eq!(
            (answers.len(), done.code),
            (8, Some(0)),
            "{level:?} {done:?}"
        );
        for id in 0..=5 {
            let of_it = answers.iter().filter(|answer| answer["id"] == id);
            assert_eq!(of_it.count(), 1, "{id} at {level:?}");
        }
        // Unreadable lines are answered too, and only those answers have no id.
        let without_id = answers.iter().filter(|answer| answer.get("id").is_none());
        assert!(
            without_id
                .map(|answer| &answer["error"]["code"])
                .eq([-32700, -32600].iter()),
            "{answers:?}"
        );
        assert!(
            !done.stderr.is_empty(),
            "the failures are told on stderr: {level:?}"
        );
    }
}

#[test]
fn instructions_explain_the_gateway_and_approvals() {
    let input = session(&[call(1, "echo", &json!({})), call(2, "nope", &json!({}))]);
    let done = ProgramRun::new(["mcp"])
        .config(r#"{ "policy": { "ask": ["echo"] } }"#)
        .stdin(input)
        .done();
    let answers = messages(&done);
    let of = |id: u64| answers.iter().find(|answer| answer["id"] == id).unwrap();
    let instructions = of(0)["result"]["instructions"].as_str().unwrap();
    assert!(instructions.contains("server__tool") && instructions.contains("approval"));
    let text = |id| of(id)["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text(1).starts_with("Tool 'echo' needs approval. "),
        "{}",
        text(1)
    );
    assert!(text(1).contains("dashboard"), "{}", text(1));
    assert_eq!(
        text(2),
        "Tool 'nope' not found. Available tools: datetime, echo, math_eval, search, volume"
    );
}

#[test]
fn the_person_behind_the_client_approves_a_call() {
    let capabilities = json!({ "elicitation": {} });
    let (mut child, mut lines, folder) =
        started_with(r#"{ "policy": { "ask": ["echo"] } }"#, &capabilities);
    let mut stdin = child.stdin.take().unwrap();
    let mut exchange = |message: Value| -> Value {
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let asked = exchange(call(1, "echo", &json!({ "text": "hi" })));
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let result = json!({ "action": "accept", "content": { "run": true } });
    let done = exchange(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
    assert_eq!(done["id"], 1, "{done}");
    assert!(done.to_string().contains("hi"), "{done}");
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let shown = ProgramRun::new(["calls", "last"]).within(folder.path());
    let shown = shown.done();
    assert!(shown.stdout.contains("approved by client at "), "{shown:?}");
}

#[test]
fn calls_are_logged_by_default() {
    let input = session(&[call(1, "echo", &json!({}))]);
    let loud = ProgramRun::new(["mcp"]).stdin(input.as_str()).done();
    assert!(
        loud.stderr.contains("INFO") && loud.stderr.contains("echo"),
        "{loud:?}"
    );
    let quiet = ProgramRun::new(["mcp", "-q"]).stdin(input).done();
    assert_eq!(quiet.stderr, "");
}

#[test]
fn only_the_tools_asked_for_are_offered() {
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    for (options, expected) in [
        (
            &[][..],
            &["datetime", "echo", "math_eval", "search", "volume"][..],
        ),
        (
            &["--allow", "e*", "--allow", "math_eval"],
            &["echo", "math_eval"],
        ),
        (
            &["--deny", "s*", "--deny", "volume"],
            &["datetime", "echo", "math_eval"],
        ),
        (&["--allow", "e*", "--deny", "echo"], &[]),
    ] {
        let done = ProgramRun::new(["mcp"])
            .args(options)
            .stdin(session(std::slice::from_ref(&list)))
            .done();
        let answers = messages(&done);
        let tools = answers[1]["result"]["tools"].as_array().unwrap();
        let names: Vec<&str> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, expected, "{options:?}");
    }
    let done = ProgramRun::new(["mcp", "--deny", "echo"])
        .stdin(session(&[call(1, "echo", &json!({}))]))
        .done();
    assert_eq!(messages(&done)[1]["result"]["isError"], true);
}

/// The program, past its handshake and still running.
pub(crate) fn started(config: &str) -> (Child, BufReader<ChildStdout>, tempfile::TempDir) {
    started_with(config, &json!({}))
}

/// Like `started`, with these capabilities of the client.
fn started_with(
    config: &str,
    capabilities: &Value,
) -> (Child, BufReader<ChildStdout>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("toolgate.json"), config).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolgate"))
        .args(["mcp", "-q", "--config", "toolgate.json"])
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(session_with(capabilities, &[]).as_bytes())
        .unwrap();
    assert!(lines.read_line(&mut String::new()).unwrap() > 0);
    (child, lines, folder)
}

#[test]
fn signals_shut_it_down_cleanly() {
    for (signal, code) in [("-INT", 130), ("-TERM", 0)] {
        let (mut child, mut lines, _folder) = started("{}");
        // Kept open, because closing it would end the program.
        let _stdin = child.stdin.take();
        let started = Instant::now();
        fakemcp::send_signal(signal, child.id());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        assert!(started.elapsed() < Duration::from_secs(20), "a hang guard");
    }
}

#[test]
fn sighup_ends_nothing_and_a_denied_tool_changes_the_list() {
    let (mut child, mut lines, folder) = started("{}");
    crate::gateway::signal("-HUP", &child);
    let policy = r#"{ "policy": { "deny": ["echo"] } }"#;
    std::fs::write(folder.path().join("toolgate.json"), policy).unwrap();
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed", "{line}");
    let mut stdin = child.stdin.take().unwrap();
    let asked = call(1, "echo", &json!({}));
    stdin.write_all(format!("{asked}\n").as_bytes()).unwrap();
    line.clear();
    lines.read_line(&mut line).unwrap();
    assert!(line.contains("not found"), "{line}");
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_client_that_no_longer_reads_ends_it_quietly() {
    let (mut child, lines, _folder) = started("{}");
    drop(lines);
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(ping.as_bytes())
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(stderr, "");
}

#[test]
fn a_hanging_call_does_not_delay_the_shutdown() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let (mut child, mut lines, _folder) = started(&json!({ "search": { "url": url } }).to_string());
    let mut stdin = child.stdin.take().unwrap();
    let both = [
        call(1, "search", &json!({ "query": "x" })),
        call(2, "echo", &json!({})),
    ];
    for message in both {
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
    }
    let (mut connection, _) = silent.accept().unwrap();
    let mut answer = String::new();
    lines.read_line(&mut answer).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&answer).unwrap()["id"],
        2,
        "the slow call is in nobody's way"
    );
    let started = Instant::now();
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(20), "a hang guard");
    // The call was really stopped: its connection is closed.
    connection.read_to_end(&mut Vec::new()).unwrap();
}
