//! What `doctor` reports about the chosen model, and how `ask` refers to it.

use std::io::{Read, Write};
use std::net::TcpListener;

use fakellm::Answer;
use serde_json::{Value, json};

use crate::llm::{ScriptedLlm, alone};
use crate::run::ProgramRun;

/// An unreachable search service, so that `doctor` doesn't wait for the web.
const SEARCH: &str = r#"{ "search": { "url": "http://127.0.0.1:1" } }"#;

#[test]
fn doctor_checks_the_model_named_on_the_command_line() {
    let llm = ScriptedLlm::new([]);
    let well = "ok       model          ollama qwen3:0.6b: ";
    let missing = "FAILED   ollama         the model 'gemma:2b' is not installed; these models can use tools: qwen3:0.6b";
    for (arguments, expected, code) in [
        (&[][..], well, 0),
        (&["--provider", "ollama"], well, 0),
        (
            &["-p", "ollama", "-m", "qwen3:0.6b"],
            "ok       model          ollama qwen3:0.6b: the command line says so",
            0,
        ),
        (&["-p", "ollama", "-m", "gemma:2b"], missing, 1),
        (&["--model", "ollama:gemma:2b"], missing, 1),
        (
            &["-m", "gemma:2b"],
            "FAILED   model          ollama: it has no model 'gemma:2b'",
            1,
        ),
        (
            &["-p", "intents"],
            "ok       model          intents en: the command line says so",
            0,
        ),
    ] {
        let run = ProgramRun::new(["doctor"]).args(arguments).config(SEARCH);
        let done = llm.known_to(run, "ollama").done();
        assert!(done.stdout.contains(expected), "{arguments:?} {done:?}");
        assert_eq!(done.code, Some(code), "{arguments:?} {done:?}");
    }
}

#[test]
fn doctor_rejects_contradictory_providers() {
    let done = alone(ProgramRun::new([
        "doctor", "-p", "openai", "-m", "ollama:x",
    ]))
    .done();
    let expected = "--provider openai and --model ollama:… are two providers";
    assert!(done.stderr.contains(expected), "{done:?}");
    assert_eq!((done.stdout.as_str(), done.code), ("", Some(2)), "{done:?}");
}

#[test]
fn a_missing_named_model_fails() {
    let llm = ScriptedLlm::new([]);
    let run = alone(ProgramRun::new(["doctor", "-m", "qwen3-0.7b"])).config(SEARCH);
    let done = llm.known_to(run, "openai").done();
    let expected = "FAILED   openai         it has no model 'qwen3-0.7b'; it has qwen3:0.6b";
    assert!(done.stdout.contains(expected), "{done:?}");
    assert_eq!(done.code, Some(1), "{done:?}");
}

/// The arguments of the `toolgate` command that a failed question names.
fn named(stderr: &str) -> &str {
    let line = stderr
        .lines()
        .find(|line| line.ends_with("' checks the model and says what to do"));
    let line = line.unwrap_or_else(|| panic!("{stderr}"));
    let command = line.split('\'').nth(1).unwrap();
    command.strip_prefix("toolgate ").unwrap()
}

#[test]
fn a_failed_question_names_the_doctor_command_for_its_model() {
    // The configuration names another model, which works.
    let llm = ScriptedLlm::new([]);
    let config = json!({
        "search": { "url": "http://127.0.0.1:1" },
        "model": { "provider": "openai", "name": "qwen3:0.6b", "url": format!("{}/v1", llm.url()), "attempts": 1 },
    })
    .to_string();
    for (arguments, expected) in [
        (
            &["ask", "-p", "ollama", "-m", "gemma:2b", "x"][..],
            "doctor -p ollama -m gemma:2b",
        ),
        (
            &["ask", "-m", "ollama:gemma:2b", "x"],
            "doctor -p ollama -m gemma:2b",
        ),
        (
            &["ask", "-p", "ollama", "-m", "odd $name", "x"],
            r#"doctor -p ollama -m "odd \$name""#,
        ),
        (
            &["--config", "toolgate.json", "ask", "-p", "ollama", "x"],
            "--config toolgate.json doctor -p ollama",
        ),
    ] {
        let done = alone(ProgramRun::new([]).args(arguments))
            .config(&config)
            .done();
        assert_eq!(named(&done.stderr), expected, "{done:?}");
    }
    // This command finds the problem, while a plain `toolgate doctor` doesn't.
    let followed = ["doctor", "-p", "ollama", "-m", "gemma:2b"];
    for (arguments, expected, code) in [
        (
            &followed[..],
            "FAILED   ollama         ollama can't be reached",
            1,
        ),
        (&["doctor"], "ok       openai         it answers", 0),
    ] {
        let done = alone(ProgramRun::new([]).args(arguments))
            .config(&config)
            .done();
        assert!(done.stdout.contains(expected), "{done:?}");
        assert_eq!(done.code, Some(code), "{done:?}");
    }
}

#[test]
fn the_doctor_command_leaves_out_what_the_configuration_says() {
    let quick = r#"{ "model": { "attempts": 1, "provider": "ollama", "name": "gemma:2b" } }"#;
    for arguments in [&["ask", "x"][..], &["ask", "-p", "ollama", "x"]] {
        let done = alone(ProgramRun::new([]).args(arguments))
            .config(quick)
            .done();
        assert_eq!(named(&done.stderr), "doctor", "{done:?}");
    }
    let llm = ScriptedLlm::new([Answer::text("ok")]);
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved.json");
    let saved = saved.to_str().unwrap();
    let done = llm.ask("ollama", &["--save", saved, "x"]).done();
    assert_eq!(done.code, Some(0), "{done:?}");
    let run = ProgramRun::new(["ask", "--resume", saved, "x"]);
    let run = run.config(r#"{ "model": { "attempts": 1 } }"#);
    let done = alone(run).done();
    let expected = "doctor -p ollama -m qwen3:0.6b";
    assert_eq!(named(&done.stderr), expected, "{done:?}");
}

/// The address of a server without a model list.
fn without_a_list(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let read = socket.read(&mut [0; 4096]).unwrap();
            assert_ne!(read, 0);
            let body = r#"{"error":"/v1/models not found"}"#;
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}");
            write!(socket, "{head}\r\n\r\n{body}").unwrap();
        }
    });
    url
}

#[test]
fn a_server_that_lists_no_models_has_not_failed() {
    for status in ["404 Not Found", "405 Method Not Allowed"] {
        let url = without_a_list(status);
        for arguments in [
            &["doctor", "-p", "openai"][..],
            &["doctor", "-p", "openai", "-m", "tiny"],
        ] {
            let run = alone(ProgramRun::new([]).args(arguments)).config(SEARCH);
            let done = run.env("OPENAI_BASE_URL", &url).done();
            let expected = format!(
                "warning  openai         it answers, but has no list of models at {url}/models"
            );
            assert!(done.stdout.contains(&expected), "{done:?}");
            let hint = "the address usually ends in /v1";
            assert_eq!(
                done.stdout.contains(hint),
                !url.ends_with("/v1"),
                "{done:?}"
            );
            assert!(
                done.stdout
                    .contains("check OPENAI_BASE_URL and OPENAI_API_KEY"),
                "{done:?}"
            );
            assert!(!done.stdout.contains("''"), "{done:?}");
            assert_eq!(done.code, Some(0), "{done:?}");
        }
    }
}

/// A tool that no provider can be offered.
fn huge() -> Value {
    let properties: serde_json::Map<_, _> = (0..3000)
        .map(|n| (format!("property_{n}"), json!({ "type": "string" })))
        .collect();
    json!({
        "name": "huge", "description": "d",
        "parameters": { "type": "object", "properties": properties },
        "implementation": { "type": "mock", "mock_response": {} },
    })
}

#[test]
fn doctor_explains_missing_tools_and_names_the_fix() {
    let pin = "fix: list the tools that it must always have in \"pinnedTools\"";
    let policy = "fix: change policy.allow and policy.deny so that some remain";
    let larger = "fix: raise \"maxToolTokens\" or \"contextTokens\"";
    for (model, allow, expected, todo) in [
        (
            json!({}),
            json!(["*"]),
            "ok       model tools    the model gets 5 of 6 tools with each question; 1 can't be offered",
            None,
        ),
        (
            json!({ "maxTools": 2 }),
            json!(["e*", "d*", "m*"]),
            "ok       model tools    the model gets 2 of 6 tools with each question, chosen by relevance (limited by model.maxTools); the policy hides 3",
            Some(pin),
        ),
        (
            json!({ "pinnedTools": ["echo", "nosuch"] }),
            json!(["*"]),
            "warning  model tools    model.pinnedTools: there is no tool named 'nosuch'",
            None,
        ),
        (
            json!({ "maxToolTokens": 300 }),
            json!(["*"]),
            " with each question, chosen by relevance (more would exceed model.maxToolTokens); 1 can't be offered",
            Some(pin),
        ),
        (
            json!({ "contextTokens": 600 }),
            json!(["*"]),
            " with each question, chosen by relevance (more would take over half of the 600 tokens",
            Some(pin),
        ),
        (
            json!({ "maxToolTokens": 1 }),
            json!(["*"]),
            "warning  model tools    the model gets no tools: more would exceed model.maxToolTokens",
            Some(larger),
        ),
        (
            json!({}),
            json!(["house/*"]),
            "warning  model tools    the model gets no tools: the policy hides all 6",
            Some(policy),
        ),
        (
            json!({}),
            json!(["huge"]),
            "warning  model tools    the model gets no tools: the policy hides 5, and the other 1 can't be offered",
            Some("fix: change the parameters of the tools named above"),
        ),
    ] {
        for provider in ["ollama", "openai"] {
            let llm = ScriptedLlm::new([]);
            let mut model = model.clone();
            model["provider"] = json!(provider);
            model["name"] = json!("qwen3:0.6b");
            let config = json!({
                "search": { "url": "http://127.0.0.1:1" },
                "tools": [huge()], "model": model, "policy": { "allow": allow },
            });
            let run = ProgramRun::new(["doctor"]).config(&config.to_string());
            let done = llm.known_to(run, provider).done();
            assert!(done.stdout.contains(expected), "{expected}: {done:?}");
            let below = done.stdout.split_once(expected).unwrap().1;
            let next = below.lines().nth(1).unwrap_or_default().trim_start();
            match todo {
                Some(todo) => assert!(next.starts_with(todo), "{todo}: {done:?}"),
                None => assert!(!next.starts_with("fix: "), "{done:?}"),
            }
        }
    }
}

#[test]
fn doctor_says_that_a_call_written_as_text_would_not_be_run() {
    let llm = ScriptedLlm::new([]);
    for (rescue, told) in [(true, false), (false, true)] {
        let config = json!({
            "search": { "url": "http://127.0.0.1:1" }, "model": { "rescue": rescue },
        });
        let run = ProgramRun::new(["doctor"]).config(&config.to_string());
        let done = llm.known_to(run, "ollama").done();
        let remark = "ok       ollama         a call that the model writes as text, as small ones do, is not run";
        assert_eq!(done.stdout.contains(remark), told, "{done:?}");
        let todo = "fix: remove \"rescue\" from the model's settings";
        assert_eq!(done.stdout.contains(todo), told, "{done:?}");
        assert_eq!(done.code, Some(0), "{done:?}");
    }
}
