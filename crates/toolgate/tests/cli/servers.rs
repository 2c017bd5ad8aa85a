use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::run::{ProgramRun, RunOutput};

/// A configuration of fake servers, given with --config and therefore trusted.
fn config(servers: &[(&str, &[&str])]) -> String {
    let entry = |(name, modes): &(&str, &[&str])| {
        let entry = json!({ "command": fakemcp::program(), "args": modes });
        ((*name).to_owned(), entry)
    };
    let servers: serde_json::Map<String, Value> = servers.iter().map(entry).collect();
    json!({ "mcpServers": servers, "retry": { "attempts": 2, "baseDelay": "50ms" } }).to_string()
}

fn run(servers: &[(&str, &[&str])], arguments: &[&str], mark: &str) -> RunOutput {
    let done = ProgramRun::new(["--config", "house.json"])
        .args(arguments)
        .file("house.json", config(servers))
        .env(fakemcp::MARK, mark)
        .done();
    assert!(
        fakemcp::processes(mark).is_empty(),
        "left behind by {arguments:?}"
    );
    done
}

#[test]
fn a_misspelled_tools_pattern_gets_a_suggestion() {
    let servers: &[(&str, &[&str])] = &[("house", &[])];
    for (pattern, expected) in [
        ("house/argumnts", "did you mean 'house/arguments'?"),
        ("house__argumnts", "did you mean 'house__arguments'?"),
    ] {
        let ask = ["ask", "-p", "intents", "-t", pattern, "hello"];
        let done = run(servers, &ask, "spelt");
        assert!(done.stderr.contains(expected), "{done:?}");
        assert_eq!((done.stdout.as_str(), done.code), ("", Some(2)), "{done:?}");
    }
}

#[test]
fn a_renamed_parameter_is_not_reported_as_misspelled() {
    let tools = json!([{
        "name": "lamp", "description": "A lamp",
        "inputSchema": { "type": "object", "properties": { "device_name": { "type": "string" } } },
    }]);
    let entry = json!({
        "command": fakemcp::program(), "args": ["list=tools.json"], "normalize": "always",
    });
    for (word, expected) in [
        ("device_name=a", None),
        ("devise_name=a", Some("did you mean 'device_name'?")),
    ] {
        let done = ProgramRun::new(["--config", "house.json", "call", "lamp", word, "--dry-run"])
            .file(
                "house.json",
                json!({ "mcpServers": { "house": entry } }).to_string(),
            )
            .file("tools.json", tools.to_string())
            .done();
        assert_eq!(done.json()["dry_run"], true, "{done:?}");
        let hint = done.stderr.lines().find(|line| line.contains("declared"));
        let is_told = hint.map(|line| line.contains(expected.unwrap_or_default()));
        assert_eq!(is_told, expected.map(|_| true), "{done:?}");
    }
}

#[test]
fn a_server_is_inspected_with_its_tools_and_listed_alone() {
    let servers: &[(&str, &[&str])] = &[("house", &[]), ("other", &["after:initialize=exit:3"])];
    let done = run(servers, &["inspect", "house"], "inspected");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.stdout
            .starts_with("Server house  (connected over stdio")
            && done.stdout.contains("\n  house__echo  "),
        "{done:?}"
    );
    let done = run(servers, &["inspect", "house", "--json"], "inspected");
    let names = &done.json()["tool_names"];
    assert!(
        names.as_array().unwrap().contains(&json!("house__echo")),
        "{names}"
    );
    // The other one is not started, so nothing is said about it.
    let done = run(servers, &["list", "--server", "house"], "inspected");
    assert!(
        done.stdout
            .lines()
            .all(|line| line.contains("\tmcp:house\t")),
        "{done:?}"
    );
    assert!(!done.stderr.contains("'other'"), "{done:?}");
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn tools_of_servers_are_listed_and_missing_ones_are_named() {
    let servers: &[(&str, &[&str])] = &[
        ("house", &[]),
        ("dead", &["stderr=no broker\\n", "after:initialize=exit:3"]),
    ];
    let done = run(servers, &["list"], "list");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.stdout.contains("\nhouse__echo\tmcp:house\t"),
        "{done:?}"
    );
    assert!(done.stdout.contains("\narguments\tmcp:house\t"), "{done:?}");
    for expected in [
        "❌ Failed to initialize MCP tools after 2 attempts",
        "server 'dead' has no tools here (failed: ",
        "'toolgate doctor' shows more",
    ] {
        assert!(done.stderr.contains(expected), "{expected}\n{done:?}");
    }
    let list = run(servers, &["list", "--json"], "list-json").json();
    let tool = list
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "arguments")
        .unwrap();
    let seen = ["server", "transport", "era", "state"].map(|key| tool[key].as_str());
    assert_eq!(
        seen,
        [
            Some("house"),
            Some("stdio"),
            Some("legacy"),
            Some("connected")
        ]
    );
    assert_eq!(list[0].get("server"), None, "a local tool has none");
}

#[test]
fn tm8_local_tools_are_there_when_a_server_fails_at_once() {
    let tool = json!({ "name": "greet", "description": "Greets", "parameters": { "type": "object" },
                       "implementation": { "type": "mock", "mock_response": "hello" } });
    // It fails before anything else can happen, so anything set up later than the servers would be
    // missing in the block.
    let servers = json!({ "dead": { "command": "false" } });
    let config = json!({ "mcpServers": servers, "tools": [tool], "retry": { "attempts": 1 } });
    let light = "turn on the kitchen light";
    for command in [&["list"][..], &["ask", "-p", "intents", light]] {
        let done = ProgramRun::new(["--config", "house.json"])
            .args(command)
            .file("house.json", config.to_string())
            .done();
        let expected = "⚠️ Continuing with local tools only (datetime, echo, math_eval, search, volume, greet)";
        assert!(done.stderr.contains(expected), "{done:?}");
    }
}

#[test]
fn im6_server_health_starts_all_servers_and_says_how_they_are() {
    let tool = json!({ "name": "servers", "description": "How the servers are", "parameters": { "type": "object" },
                       "implementation": { "type": "internal", "handler": "server_health" } });
    let entry = |modes: &[&str]| json!({ "command": fakemcp::program(), "args": modes });
    let servers = json!({ "house": entry(&[]), "dead": entry(&["after:initialize=exit:3"]) });
    let config = json!({ "mcpServers": servers, "tools": [tool], "retry": { "attempts": 1 } });
    let done = ProgramRun::new(["--config", "house.json", "-q", "call", "servers"])
        .file("house.json", config.to_string())
        .env(fakemcp::MARK, "health")
        .done();
    let answer = done.json();
    let servers = answer["result"]["servers"].as_array().unwrap();
    let states: Vec<_> = servers
        .iter()
        .map(|server| (server["name"].as_str(), server["state"].as_str()))
        .collect();
    let expected = [
        (Some("house"), Some("connected")),
        (Some("dead"), Some("failed")),
    ];
    assert_eq!(states, expected, "{done:?}");
}

#[test]
fn a_call_starts_only_the_servers_it_needs() {
    // A server that creates a file wherever it is started.
    let servers: &[(&str, &[&str])] = &[("one", &["failing=0:one"]), ("two", &["failing=0:two"])];
    for (tool, started) in [
        ("echo", [false, false]),
        ("one__echo", [true, false]),
        ("pid", [true, true]),
    ] {
        let run = ProgramRun::new(["--config", "house.json", "call", tool, "text=x"])
            .file("house.json", config(servers));
        let (child, folder) = run.start();
        let done = RunOutput::from(child.wait_with_output().unwrap());
        let found = ["one", "two"].map(|name| folder.path().join(name).exists());
        assert_eq!(found, started, "{tool}: {done:?}");
    }
}

#[test]
fn unknown_names_fail_once_servers_settled() {
    let servers: &[(&str, &[&str])] = &[("house", &["wait=200"])];
    let done = run(servers, &["call", "house__echo", "text=hi"], "call");
    assert_eq!(
        (done.json()["result"].as_str(), done.code),
        (Some("hi"), Some(0)),
        "{done:?}"
    );
    let done = run(
        servers,
        &["call", "arguments", "{\"a\": 1}"],
        "call-original",
    );
    assert_eq!(done.code, Some(0), "{done:?}");
    let done = run(servers, &["call", "house__nope"], "call-nope");
    assert_eq!(done.json()["error"], "Tool 'house__nope' not found");
    assert_eq!(done.code, Some(1));
}

#[test]
fn ctrl_c_while_servers_start_ends_everything() {
    let mark = "ctrl-c";
    let (child, _folder) = ProgramRun::new(["--config", "house.json", "call", "mute__x"])
        .file("house.json", config(&[("mute", &["mute"])]))
        .env(fakemcp::MARK, mark)
        .start();
    let started = Instant::now();
    while fakemcp::processes(mark).len() < 3 && started.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    fakemcp::send_signal("-INT", child.id());
    let done = RunOutput::from(child.wait_with_output().unwrap());
    assert_eq!(done.code, Some(130), "{done:?}");
    assert_eq!(done.json()["error_kind"], "cancelled");
    assert!(fakemcp::processes(mark).is_empty());
    assert!(started.elapsed() < Duration::from_secs(60), "a hang guard");
}

#[test]
fn inspect_and_doctor_show_the_state_of_servers() {
    let servers: &[(&str, &[&str])] = &[
        ("house", &["stdout=a stray line\\n"]),
        (
            "dead",
            &["stderr=Traceback: no broker\\n", "after:initialize=exit:3"],
        ),
    ];
    let tool = run(servers, &["inspect", "arguments"], "inspect").stdout;
    for expected in [
        "(mcp:house",
        "Server house  (connected over stdio, legacy protocol, ",
        "1 line on its stdout was not a message",
        "  a stray line",
    ] {
        assert!(tool.contains(expected), "{expected}\n{tool}");
    }
    let server = run(servers, &["inspect", "house", "--json"], "inspect-json").json();
    assert_eq!(
        (server["name"].as_str(), server["polluted"].as_u64()),
        (Some("house"), Some(1))
    );
    let done = run(servers, &["doctor"], "doctor");
    assert_eq!(done.code, Some(1), "{done:?}");
    for expected in [
        "ok       house          connected over stdio, legacy protocol, ",
        "warning  house          1 line on its stdout was not a message; a server should log to stderr\n",
        "stdout: a stray line\n",
        "FAILED   dead           failed over stdio: ",
        "stderr: Traceback: no broker\n",
        "installed and on the PATH",
    ] {
        assert!(done.stdout.contains(expected), "{expected}\n{done:?}");
    }
}

#[test]
fn doctor_fails_and_names_the_broker_the_zwave_server_cannot_reach() {
    // Nobody listens on this port.
    let server = json!({
        "command": env!("CARGO_BIN_EXE_toolgate"),
        "args": ["zwave-mcp-server"],
        "env": { "MQTT_BROKER_URL": "mqtt://127.0.0.1:1" },
        "startTimeout": "60s",
    });
    let config = |server: &Value| json!({ "mcpServers": { "house": server } }).to_string();
    let doctor = |server: &Value| {
        ProgramRun::new(["--config", "house.json", "doctor"])
            .file("house.json", config(server))
            .done()
    };
    let done = doctor(&server);
    assert_eq!(done.code, Some(1), "{done:?}");
    let mut lines = done.stdout.lines();
    let found = lines
        .find(|line| line.starts_with("FAILED   house "))
        .unwrap();
    for expected in [
        "connected over stdio",
        "it can't do its work: ",
        "MQTT broker",
        "(reported by check_zwave_health)",
    ] {
        assert!(found.contains(expected), "{expected}\n{done:?}");
    }
    let check = "check: MQTT broker running, zwave-mcp-server installed\n";
    assert!(done.stdout.contains(check), "{done:?}");

    let mut other = server.clone();
    other["health"] = json!("no_such_tool");
    let done = doctor(&other);
    let warning = "its health is unknown: the server offers no tool 'no_such_tool' here";
    assert!(done.stdout.contains(warning), "{done:?}");
    other["health"] = json!(false);
    let done = doctor(&other);
    assert!(done.stdout.contains("ok       house "), "{done:?}");
}

#[test]
fn mc2_only_secrets_are_hidden_in_the_block_and_the_details() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("works");
    let script = r#"[ -e "$WORKS" ] && exec "$PROGRAM"
        echo "mode $NODE_ENV, token $API_TOKEN, key $TLS_KEY, header $1" >&2; exit 3"#;
    let config = json!({
        "retry": { "attempts": 1 },
        "mcpServers": { "house": {
            "command": "sh",
            "args": ["-c", script, "--header", "Authorization: Bearer short-tok-1"],
            "env": {
                "NODE_ENV": "production", "API_TOKEN": "quiet-please", "TLS_KEY": "/etc/k.pem",
                "WORKS": file, "PROGRAM": fakemcp::program(),
            },
        } },
    });
    std::fs::write(folder.path().join("t.json"), config.to_string()).unwrap();
    let run = |arguments: &[&str]| {
        let run = ProgramRun::new(["--config", "t.json"]).args(arguments);
        run.within(folder.path()).done()
    };
    // Its tools are remembered from when it worked.
    std::fs::write(&file, "").unwrap();
    assert_eq!(run(&["list"]).code, Some(0));
    std::fs::remove_file(&file).unwrap();
    let done = run(&["call", "house__echo", "text=hi"]);
    let answer = done.json();
    let details = answer["details"]
        .as_str()
        .unwrap_or_else(|| panic!("{done:?}"));
    assert!(done.stderr.contains("❌ Failed to initialize"), "{done:?}");
    for text in [details, &done.stderr] {
        let shown = text.lines().find(|line| line.contains("mode "));
        let shown = shown.unwrap_or_else(|| panic!("{done:?}"));
        for (expected, hidden) in [
            ("mode production", "quiet-please"),
            ("key /etc/k.pem", "short-tok-1"),
            ("header Authorization: ", "Bearer"),
        ] {
            assert!(shown.contains(expected), "{expected}: {shown}");
            assert!(!text.contains(hidden), "{hidden}: {text}");
        }
    }
}

#[test]
fn doctor_names_the_folder_of_a_broken_package_cache() {
    let folder = tempfile::tempdir().unwrap();
    let npx = folder.path().join("npx");
    let script = "#!/bin/sh\necho \"npm error path $HOME/.npm/_npx/0123456789abcdef/node_modules/x\" >&2\n\
                  echo 'npm error code ENOTEMPTY' >&2\nexit 1\n";
    std::fs::write(&npx, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&npx, mode).unwrap();
    let entry = json!({ "command": npx, "args": ["-y", "x"] });
    let config = json!({ "retry": { "attempts": 1 }, "mcpServers": { "x": entry } });
    let done = ProgramRun::new(["--config", "t.json", "doctor"])
        .file("t.json", config.to_string())
        .done();
    assert_eq!(done.code, Some(1), "{done:?}");
    let check = done.stdout.lines().find(|line| line.contains("check: "));
    let check = check.unwrap_or_else(|| panic!("{done:?}"));
    assert!(check.contains("/_npx/0123456789abcdef"), "{check}");
}

#[test]
fn doctor_warns_of_patterns_that_match_nothing_while_a_server_is_away() {
    let config = json!({
        "retry": { "attempts": 1 },
        "policy": { "deny": ["volum", "away/lock"] },
        "serve": { "tokens": [
            { "token": "0123456789abcdef", "name": "kitchen", "allow": ["datetme"] },
        ] },
        "mcpServers": { "away": { "command": "/nowhere/away" } },
    });
    let done = ProgramRun::new(["--config", "t.json", "doctor"])
        .file("t.json", config.to_string())
        .done();
    let caveat = "(unless it belongs to 'away', which can't be asked now)";
    for expected in [
        format!("policy.deny: 'volum' matches no tool {caveat}; did you mean 'volume'?"),
        format!(
            "serve.tokens[0].allow (kitchen): 'datetme' matches no tool {caveat}; did you mean 'datetime'?"
        ),
    ] {
        let row = format!("warning  configuration  {expected}\n");
        assert!(done.stdout.contains(&row), "{row}{done:?}");
    }
    assert!(!done.stdout.contains("'away/lock'"), "{done:?}");
}

#[test]
fn servers_of_a_file_in_the_folder_wait_for_an_agreement() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("toolgate.json"),
        config(&[("house", &[])]),
    )
    .unwrap();
    let run = |arguments: &[&str]| {
        ProgramRun::new([])
            .args(arguments)
            .within(folder.path())
            .done()
    };
    let note = "toolgate.json in this folder is not in use, because you haven't agreed to it; 'toolgate trust' shows what it would do and asks you";
    let before = run(&["list"]);
    assert!(!before.stdout.contains("mcp:house"), "{before:?}");
    assert_eq!(before.stderr, format!("{note}\n"));
    let doctor = run(&["doctor"]);
    let row = format!("warning  configuration  {note}\n");
    assert!(doctor.stdout.contains(&row), "{doctor:?}");
    assert!(!doctor.stdout.contains("house"), "{doctor:?}");
    let call = run(&["call", "house__echo", "text=x"]);
    assert!(
        call.stderr.contains(note) && call.code == Some(1),
        "{call:?}"
    );
    assert_eq!(run(&["trust", "--yes"]).code, Some(0));
    assert!(run(&["list"]).stdout.contains("mcp:house"));
}

#[test]
fn toolgate_mcp_offers_the_tools_of_servers_and_follows_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("house.json");
    std::fs::write(&file, config(&[("one", &[])])).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolgate"))
        .args(["--config", "house.json", "mcp"])
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .env(fakemcp::MARK, "follow")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut send = |message: Value| writeln!(stdin, "{message}").unwrap();
    let mut next = |wanted: &dyn Fn(&Value) -> bool| loop {
        let message: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if wanted(&message) {
            return message;
        }
    };
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }));
    next(&|message| message["id"] == 1);
    send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    send(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
    let list = next(&|message| message["id"] == 2).to_string();
    assert!(list.contains("\"one__echo\""), "{list}");

    std::fs::write(&file, config(&[("one", &[]), ("two", &[])])).unwrap();
    for id in 3.. {
        next(&|message| message["method"] == "notifications/tools/list_changed");
        send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" }));
        let list = next(&|message| message["id"] == id).to_string();
        if list.contains("\"two__echo\"") {
            break;
        }
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(fakemcp::processes("follow").is_empty());
}

#[test]
fn calling_a_tool_hides_name_clashes() {
    let servers: &[(&str, &[&str])] = &[("house", &[]), ("office", &[])];
    let clash = "the same name";
    let listed = run(servers, &["list"], "clash");
    assert!(listed.stderr.contains(clash), "{listed:?}");
    let call = ["call", "nope"];
    let called = run(servers, &call, "clash");
    assert!(!called.stderr.contains(clash), "{called:?}");
    let verbose = run(servers, &["-v", "call", "nope"], "clash");
    assert!(verbose.stderr.contains(clash), "{verbose:?}");
}
