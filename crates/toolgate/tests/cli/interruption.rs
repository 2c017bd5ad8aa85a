use std::io::Read;
use std::net::TcpListener;
use std::process::Child;
use std::time::Duration;

use fakellm::Answer;
use serde_json::json;
use tokio::time::Instant;

use crate::llm::{ScriptedLlm, weekday_call};
use crate::run::{ProgramRun, RunOutput};
use crate::terminal::TmuxTerminal;

/// A server that accepts connections and never answers.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let config =
        json!({ "search": { "url": format!("http://{}/", listener.local_addr().unwrap()) } });
    (listener, config.to_string())
}

/// Sends what Ctrl-C sends.
fn interrupt(child: &Child) {
    fakemcp::send_signal("-INT", child.id());
}

#[test]
fn ex6_a_timeout_given_with_the_call_applies() {
    let (_server, config) = silent();
    let done = ProgramRun::new(["call", "search", "query=x", "--timeout", "200ms"])
        .config(&config)
        .done();
    assert_eq!(done.json()["error"], "Tool 'search' timed out after 0.2 s");
    assert_eq!(
        (done.json()["error_kind"].as_str(), done.code),
        (Some("timeout"), Some(1))
    );
}

#[test]
fn ctrl_c_cancels_the_call_and_says_so() {
    let (server, config) = silent();
    let (child, _folder) = ProgramRun::new(["call", "search", "query=x"])
        .config(&config)
        .start();
    let (mut connection, _) = server.accept().unwrap();
    assert!(connection.read(&mut [0; 64]).unwrap() > 0);
    let started = Instant::now();
    interrupt(&child);
    let done = RunOutput::from(child.wait_with_output().unwrap());
    assert_eq!(done.code, Some(130), "{done:?}");
    assert_eq!(
        done.json()["error"],
        "Tool 'search' was cancelled before it answered"
    );
    assert!(done.stderr.contains("cancelling the call"), "{done:?}");
    assert!(started.elapsed() < Duration::from_secs(5), "a hang guard");
}

#[tokio::test]
async fn ctrl_c_cancels_the_task_of_a_call() {
    for modes in [&["version=2025-11-25"][..], &["modern"]] {
        let run = ProgramRun::new(["call", "task", "ms=60000"]);
        let kept = run.path("kept");
        let tasks = format!("tasks={}", kept.display());
        let args = [modes, &[&tasks]].concat();
        let server = json!({ "command": fakemcp::program(), "args": args });
        let config = json!({ "mcpServers": { "house": server } }).to_string();
        let (child, _folder) = run.config(&config).start();
        let task = || {
            let kept = std::fs::read(&kept).unwrap_or_default();
            let mut kept: serde_json::Value = serde_json::from_slice(&kept).unwrap_or_default();
            kept["task-1"].take()
        };
        let started = Instant::now();
        while !task().is_object() {
            assert!(started.elapsed() < Duration::from_secs(30), "a hang guard");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // The call has to read the answer that its task was created.
        tokio::time::sleep(Duration::from_millis(500)).await;
        interrupt(&child);
        let done = RunOutput::from(child.wait_with_output().unwrap());
        assert_eq!(done.code, Some(130), "{done:?}");
        assert_eq!(task()["cancelled"], true, "{modes:?}");
    }
}

#[test]
fn a_broken_pipe_is_quiet() {
    let (mut child, _folder) = ProgramRun::new(["list", "--json"]).start();
    drop(child.stdout.take());
    let done = RunOutput::from(child.wait_with_output().unwrap());
    assert_eq!(done.stderr, "");
}

#[test]
fn a_tool_that_needs_approval_runs_only_with_it() {
    let config = r#"{ "policy": { "ask": ["echo"] } }"#;
    let done = ProgramRun::new(["call", "echo"]).config(config).done();
    assert_eq!(done.json()["error"], "Tool 'echo' needs approval");
    assert_eq!(
        (done.json()["error_kind"].as_str(), done.code),
        (Some("denied"), Some(1))
    );
    assert_eq!(
        ProgramRun::new(["call", "echo", "--yes"])
            .config(config)
            .done()
            .code,
        Some(0)
    );
    assert_eq!(
        ProgramRun::new(["call", "echo", "--dry-run"])
            .config(config)
            .json()["needs_approval"],
        true
    );
}

#[test]
fn a_call_finishes_quickly() {
    let started = Instant::now();
    assert_eq!(ProgramRun::new(["call", "echo"]).done().code, Some(0));
    assert!(started.elapsed() < Duration::from_secs(5), "a hang guard");
}

#[test]
fn ctrl_c_ends_a_program_that_waits_for_its_reader() {
    let large = json!({ "a": "x".repeat(500_000) }).to_string();
    let (mut child, _folder) = ProgramRun::new(["call", "echo", "-"]).stdin(large).start();
    // Once the first bytes have arrived the pipe is full, and nobody reads the rest.
    let mut first = [0; 1];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn json_of_a_stopped_question_reports_its_calls() {
    let llm = ScriptedLlm::new([weekday_call(), Answer::black_hole()]);
    let (child, _folder) = llm.ask("openai", &["--json", "which day"]).start();
    llm.asked(2);
    interrupt(&child);
    let done = RunOutput::from(child.wait_with_output().unwrap());
    assert_eq!(done.code, Some(130), "{done:?}");
    let record = done.json();
    assert_eq!(record["error"], "stopped before there was an answer");
    assert_eq!(record["provider"], "openai");
    let messages = record["messages"].to_string();
    for part in ["which day", "datetime", "Saturday"] {
        assert!(messages.contains(part), "{part}: {messages}");
    }
}

#[test]
fn what_a_model_said_before_ctrl_c_is_saved() {
    let stalled = Answer::text(&"word ".repeat(200)).stall_after(1200);
    let llm = ScriptedLlm::new([stalled]);
    let ollama = format!("OLLAMA_HOST={}", llm.url());
    let command = "ask -p ollama --save said.json tell me";
    let Some(terminal) = TmuxTerminal::open("{}", &ollama, command) else {
        return;
    };
    terminal.shows("word word ");
    terminal.keys(&["C-c"]);
    terminal.shows("left with 130");
    let saved = std::fs::read_to_string(terminal.home().join("said.json")).unwrap();
    assert!(saved.contains("word word "), "{saved}");
}
