//! The journal: who writes it, what survives, and the commands `calls` and `replay`, which read it.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};

use crate::gateway::{RunningServe, signal, wait_until};
use crate::run::{ProgramRun, RunOutput};

/// The recorded calls of a folder, newest first.
fn calls(folder: &Path, options: &[&str]) -> Vec<Value> {
    let done = ProgramRun::new(["calls", "--json"])
        .args(options)
        .within(folder)
        .done();
    assert_eq!(done.code, Some(0), "{done:?}");
    let lines = done.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn within(folder: &Path, arguments: &[&str]) -> RunOutput {
    let run = ProgramRun::new([]).args(arguments).within(folder);
    match folder.join("toolgate.json").exists() {
        true => run.env("TOOLGATE_CONFIG", "toolgate.json").done(),
        false => run.done(),
    }
}

/// The value of a key in each call.
fn each<'a>(calls: &'a [Value], key: &str) -> Vec<&'a str> {
    calls.iter().filter_map(|call| call[key].as_str()).collect()
}

#[test]
fn every_command_that_runs_tools_records_its_calls() {
    let gateway = RunningServe::plain();
    let folder = gateway.folder.path();
    gateway.call("echo", "{}");
    within(folder, &["call", "nope"]);
    within(folder, &["ask", "--provider", "intents", "what is 6 * 7"]);
    let script = ProgramRun::new(["chat", "--provider", "intents"]).within(folder);
    script.stdin("what time is it\n").done();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo", "arguments": {} } });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let session = format!("{hello}\n{ready}\n{call}\n");
    ProgramRun::new(["mcp", "-q"])
        .within(folder)
        .stdin(session)
        .done();
    let found = calls(folder, &[]);
    assert_eq!(
        each(&found, "origin"),
        ["mcp", "chat", "chat", "cli", "http"]
    );
    assert_eq!(
        each(&found, "tool"),
        ["echo", "datetime", "math_eval", "nope", "echo"]
    );
    assert_eq!(found[3]["outcome"], "not_found");
    // Listing and dry runs aren't calls.
    within(folder, &["call", "echo", "--dry-run"]);
    within(folder, &["list"]);
    assert_eq!(calls(folder, &[]).len(), 5);
}

#[test]
fn calls_are_found_by_every_filter() {
    let first = ProgramRun::new(["call", "echo", "a=needle"]);
    let (child, folder) = first.start();
    child.wait_with_output().unwrap();
    let folder = folder.path();
    within(folder, &["call", "datetime", "action=fly"]);
    within(folder, &["call", "echo", "b=2"]);
    for (options, expected) in [
        (&[][..], 3),
        (&["--tool", "echo"], 2),
        (&["--outcome", "failed"], 1),
        (&["--outcome", "invalid_arguments"], 1),
        (&["--outcome", "success"], 2),
        (&["--search", "NEEDLE"], 1),
        (&["--origin", "http"], 0),
        (&["--origin", "cli", "--since", "1h"], 3),
        (&["--since", "2020-01-01", "--until", "2020-02-01"], 0),
        (&["--limit", "2"], 2),
        (&["--server", "house"], 0),
        (&["--caller", "call"], 3),
        (&["--caller", "chat"], 0),
    ] {
        assert_eq!(calls(folder, options).len(), expected, "{options:?}");
    }
    for wrong in [
        &["calls", "--outcome", "well"][..],
        &["calls", "--since", "yesterday"],
        &["calls", "--limit", "0"],
        &["calls", "last", "--follow"],
        &["calls", "xyz"],
        &["calls", "--save-as-mock", "m"],
    ] {
        let done = within(folder, wrong);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
    }
    let lines = within(folder, &["calls"]);
    assert_eq!(lines.stdout.lines().count(), 3, "{lines:?}");
    assert!(
        lines
            .stdout
            .lines()
            .all(|line| line.split('\t').count() == 8)
    );
    // The beginning of an id is enough, and 'last' is the newest.
    let id = calls(folder, &[])[2]["id"].as_str().unwrap().to_owned();
    for name in [&id[..], &id[..12]] {
        let call = within(folder, &["calls", name, "--json"]).json();
        assert_eq!(
            (&call["id"], &call["asked"]),
            (&json!(id), &json!({ "a": "needle" }))
        );
        assert_eq!(call["run"]["command"], "toolgate call");
    }
    assert_eq!(
        within(folder, &["calls", "last", "--json"]).json()["asked"],
        json!({ "b": 2 })
    );
    let shown = within(folder, &["calls", "last"]).stdout;
    assert!(
        shown.contains("toolgate replay") && shown.contains("success"),
        "{shown}"
    );
    assert_eq!(within(folder, &["calls", "ffffffffffff"]).code, Some(1));
}

#[test]
fn an_empty_journal_is_reported() {
    let done = ProgramRun::new(["calls"]).done();
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), ""));
    assert!(
        done.stderr.contains("no call has been recorded yet"),
        "{done:?}"
    );
    for command in [["calls", "last"], ["replay", "last"]] {
        let done = ProgramRun::new(command).done();
        assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{done:?}");
    }
}

/// A search that nobody answers.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    (listener, json!({ "search": { "url": url } }).to_string())
}

#[test]
fn a_call_whose_process_was_killed_is_interrupted_outcome_unknown() {
    let (server, config) = silent();
    let (mut child, folder) = ProgramRun::new(["call", "search", "query=x"])
        .config(&config)
        .start();
    let _connection = server.accept().unwrap();
    // Other processes see it once it has left the spool of its process.
    wait_until("the running call", || {
        let running = calls(folder.path(), &["--outcome", "running"]);
        each(&running, "tool") == ["search"]
    });
    signal("-KILL", &child);
    child.wait().unwrap();
    let found = calls(folder.path(), &[]);
    assert_eq!(each(&found, "outcome"), ["interrupted"]);
    assert_eq!(
        (&found[0]["success"], &found[0]["duration_ms"]),
        (&Value::Null, &Value::Null)
    );
    // Another run doesn't change that.
    within(folder.path(), &["call", "echo"]);
    assert_eq!(
        each(&calls(folder.path(), &[]), "outcome"),
        ["success", "interrupted"]
    );
    let doctor = within(folder.path(), &["doctor"]).stdout;
    assert!(doctor.contains("--outcome interrupted"), "{doctor}");
}

#[test]
fn processes_that_share_a_journal_count_each_other_as_alive() {
    let (server, config) = silent();
    let run = ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", config);
    let gateway = RunningServe::start(run);
    let folder = gateway.folder.path();
    let body = r#"{"query":"x"}"#;
    let _asked = crate::gateway::send(&gateway.address, "POST", "/api/tools/search/call", body);
    let _connection = server.accept().unwrap();
    let others: Vec<_> = (0..6)
        .map(|n| {
            ProgramRun::new(["call", "echo"])
                .args(&[&format!("n={n}")])
                .within(folder)
                .start()
        })
        .collect();
    for (child, _folder) in others {
        let done = RunOutput::from(child.wait_with_output().unwrap());
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{done:?}");
    }
    let found = calls(folder, &[]);
    let of = |outcome: &str| {
        found
            .iter()
            .filter(|call| call["outcome"] == outcome)
            .count()
    };
    assert_eq!(
        (of("success"), of("running"), found.len()),
        (6, 1, 7),
        "{found:?}"
    );
}

#[test]
fn an_unwritable_journal_is_one_warning_and_fails_no_call() {
    let folder_there = json!({ "journal": { "file": "somewhere" } }).to_string();
    for (name, text) in [
        ("somewhere/inside", ""),
        ("somewhere", "SQLite format 3\0 and then noise"),
    ] {
        let run = ProgramRun::new(["--config", "t.json", "call", "echo", "a=1"]);
        let done = run.file("t.json", &folder_there).file(name, text).done();
        assert_eq!(
            (&done.json()["success"], done.code),
            (&json!(true), Some(0)),
            "{done:?}"
        );
        let (word, most) = match name.contains('/') {
            true => ("calls are not recorded", 1),
            false => ("it was set aside", 2),
        };
        assert!(done.stderr.contains(word), "{done:?}");
        assert!(done.stderr.matches("WARN").count() <= most, "{done:?}");
    }
    let unset = json!({ "journal": { "file": "${NO_SUCH_FILE}" } }).to_string();
    let done = ProgramRun::new(["call", "echo"]).config(&unset).done();
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(done.stderr.matches("WARN").count(), 1, "{done:?}");
    assert_eq!(
        ProgramRun::new(["calls"]).config(&unset).done().code,
        Some(1)
    );
}

#[test]
fn a_journal_is_recorded_where_the_configuration_says() {
    let run = ProgramRun::new(["call", "echo"]).config(r#"{ "journal": { "file": "here.db" } }"#);
    let here = run.path("here.db");
    let (child, _folder) = run.start();
    assert_eq!(
        RunOutput::from(child.wait_with_output().unwrap()).stderr,
        ""
    );
    assert!(here.exists());
}

#[test]
fn replay_needs_read_only_or_consent() {
    let mock = json!({ "tools": [{
        "name": "act", "description": "d", "parameters": { "type": "object" },
        "implementation": { "type": "mock", "mock_response": 7 },
    }] });
    let (child, folder) = ProgramRun::new(["call", "echo", "a=1"])
        .config(&mock.to_string())
        .start();
    child.wait_with_output().unwrap();
    let folder = folder.path();
    let again = within(folder, &["replay", "last"]);
    assert_eq!(
        (&again.json()["result"]["echo"], again.code),
        (&json!({ "a": 1 }), Some(0))
    );
    within(folder, &["call", "act", "b=2"]);
    let refused = within(folder, &["replay", "last"]);
    assert_eq!(
        (refused.code, refused.stdout.as_str()),
        (Some(2), ""),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("--yes"), "{refused:?}");
    let agreed = within(folder, &["replay", "last", "--yes"]);
    assert_eq!(
        (&agreed.json()["result"], agreed.code),
        (&json!(7), Some(0))
    );
    assert_eq!(
        each(&calls(folder, &[]), "tool"),
        ["act", "act", "echo", "echo"]
    );
    within(folder, &["call", "echo", "password=s3cret-word"]);
    let secret = within(folder, &["replay", "last"]);
    assert_eq!(secret.code, Some(2), "{secret:?}");
    assert!(secret.stderr.contains("secret"), "{secret:?}");
    assert_eq!(within(folder, &["replay", "ffffffffffff"]).code, Some(1));
}

#[test]
fn a_recorded_call_becomes_a_tool_that_always_answers_the_same() {
    let (child, folder) = ProgramRun::new(["call", "datetime"])
        .config("{\n  // mine\n}\n")
        .start();
    let first = RunOutput::from(child.wait_with_output().unwrap()).json();
    let folder = folder.path();
    let tried = within(
        folder,
        &["calls", "last", "--save-as-mock", "then", "--dry-run"],
    );
    assert_eq!(
        tried.json()["implementation"]["mock_response"],
        first["result"]
    );
    assert_eq!(
        within(folder, &["call", "then"]).code,
        Some(1),
        "nothing was written"
    );
    within(folder, &["call", "datetime"]);
    let saved = within(folder, &["calls", "last", "--save-as-mock", "then"]);
    assert_eq!(saved.code, Some(0), "{saved:?}");
    let answer = within(folder, &["call", "then"]).json();
    assert_eq!(
        answer["result"],
        saved.json()["implementation"]["mock_response"]
    );
    let text = std::fs::read_to_string(folder.join("toolgate.json")).unwrap();
    assert!(text.contains("// mine"), "{text}");
    for (name, why) in [("then", "already"), ("echo", "already"), ("", "NAME")] {
        let done = within(folder, &["calls", "last", "--save-as-mock", name]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
        assert!(done.stderr.contains(why), "{done:?}");
    }
    within(folder, &["call", "datetime", "action=fly"]);
    let failed = within(folder, &["calls", "last", "--save-as-mock", "never"]);
    assert!(
        failed.code == Some(2) && failed.stderr.contains("only a successful call"),
        "{failed:?}"
    );
}

#[test]
fn following_shows_each_call_once() {
    for is_first in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path();
        let call = |n: usize| within(folder, &["call", "echo", &format!("n={n}")]);
        if !is_first {
            call(0);
        }
        let follow =
            ProgramRun::new(["calls", "--follow", "--json", "--tool", "echo"]).within(folder);
        let (mut child, _own) = follow.start();
        let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
        if is_first {
            let note = told.next().unwrap().unwrap();
            assert!(note.contains("waiting for the first one"), "{note}");
            call(0);
        }
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next =
            move || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
        assert_eq!(next()["arguments"], json!({ "n": 0 }));
        for n in 1..3 {
            within(folder, &["call", "datetime"]);
            call(n);
            assert_eq!(next()["arguments"], json!({ "n": n }));
        }
        signal("-INT", &child);
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
}

#[test]
fn a_gateway_records_once_its_journal_can_be_opened() {
    let config = r#"{ "journal": { "file": "late/journal.db" } }"#;
    let run = ProgramRun::new(["serve"])
        .config(config)
        .file("late", "no folder");
    let gateway = RunningServe::start(run);
    gateway.call("echo", r#"{"n":1}"#);
    let folder = gateway.folder.path();
    std::fs::remove_file(folder.join("late")).unwrap();
    wait_until("the call is recorded", || {
        within(folder, &["calls", "--json"])
            .stdout
            .contains(r#""n":1"#)
    });
}

#[test]
fn inspect_shows_the_statistics_of_a_tool() {
    let (child, folder) = ProgramRun::new(["call", "datetime"]).start();
    child.wait_with_output().unwrap();
    let folder = folder.path();
    within(folder, &["call", "datetime", "action=fly"]);
    let found = within(folder, &["inspect", "datetime", "--json"]).json();
    assert_eq!(
        (&found["calls"]["calls"], &found["calls"]["failures"]),
        (&json!(2), &json!(1))
    );
    let shown = within(folder, &["inspect", "datetime"]).stdout;
    assert!(
        shown.contains("Calls in the last 30 days: 2, 1 failed"),
        "{shown}"
    );
    assert!(
        !within(folder, &["inspect", "echo"])
            .stdout
            .contains("failed")
    );
}

#[test]
fn a_tool_reports_recent_calls() {
    let tool = |name: &str, handler: &str| {
        json!({
            "name": name, "description": "d", "parameters": { "type": "object" },
            "implementation": { "type": "internal", "handler": handler },
        })
    };
    let config =
        json!({ "tools": [tool("history", "recent_calls"), tool("health", "server_health")] });
    let gateway = RunningServe::start(ProgramRun::new(["serve"]).config(&config.to_string()));
    gateway.call("echo", r#"{"a":1}"#);
    let told = gateway.call("history", r#"{"limit":5}"#);
    assert_eq!(told["result"]["calls"][0]["tool"], "echo", "{told}");
    assert_eq!(gateway.call("health", "{}")["success"], true);
    // Another process counts them too, and the tools stay when the file changes.
    // Calls that are still in the gateway's spool become visible a moment later.
    wait_until("the calls of the gateway", || {
        let other = within(gateway.folder.path(), &["call", "history"]).json();
        let calls = other["result"]["calls"].as_array().unwrap();
        let of_gateway = calls.iter().filter(|call| call["origin"] == "http");
        of_gateway.filter(|call| call["success"] == true).count() == 3
    });
    let mut changed = config;
    changed["tools"][0]["name"] = json!("past");
    let path = gateway.folder.path().join("toolgate.json");
    std::fs::write(path, changed.to_string()).unwrap();
    wait_until("the tool under its new name", || {
        gateway.call("past", "{}")["success"] == true
    });
}
