mod doctor;

use fakellm::{Answer, Script};
use serde_json::json;

use crate::llm::{KEY, ScriptedLlm, alone};
use crate::run::ProgramRun;

#[test]
fn wrong_usage_or_settings_print_nothing_to_stdout() {
    for (arguments, config, expected) in [
        (&["ask"][..], "{}", "ask what?"),
        (&["ask", "-"], "{}", "ask what?"),
        (
            &["ask", "-p", "chatgpt", "x"],
            "{}",
            "invalid value 'chatgpt'",
        ),
        (
            &["ask", "-p", "anthropic", "x"],
            "{}",
            "anthropic needs a key: set ANTHROPIC_API_KEY",
        ),
        (
            &["ask", "-p", "openai", "x"],
            "{}",
            "openai needs a key: set OPENAI_API_KEY",
        ),
        (
            &["ask", "-p", "gemini", "x"],
            "{}",
            "gemini needs a key: set GEMINI_API_KEY",
        ),
        (
            &["ask", "-p", "openai", "-m", "ollama:x", "x"],
            "{}",
            "are two providers",
        ),
        (
            &["ask", "-m", "gpt-9", "x"],
            "{}",
            "no provider here has the model 'gpt-9'",
        ),
        (
            &["ask", "--resume", "nowhere.json", "x"],
            "{}",
            "cannot read nowhere.json",
        ),
        (
            &["ask", "--resume", "toolgate.json", "x"],
            "{}",
            "toolgate.json can't be resumed",
        ),
        (
            &["ask", "x"],
            r#"{ "model": { "provider": "olama" } }"#,
            "toolgate.json:1:14: model.provider: 'olama' is unknown; did you mean 'ollama'?",
        ),
        (
            &["ask", "x"],
            r#"{ "model": { "maxToolRound": 1 } }"#,
            "unknown key 'model.maxToolRound'; did you mean 'maxToolRounds'?",
        ),
        (
            &["ask", "x"],
            r#"{ "model": { "key": "${NOPE}" } }"#,
            "toolgate.json:1:14: model.key: the variable NOPE is not set",
        ),
        (
            &["ask", "x"],
            r#"{ "model": { "url": "http://127.0.0.1:1" } }"#,
            "model.url needs model.provider",
        ),
        (
            &["ask", "x"],
            r#"{ "model": { "provider": "openai", "url": "nowhere" } }"#,
            "model.url: ",
        ),
        (&["chat", "-p", "anthropic"], "{}", "anthropic needs a key"),
        (
            &["ask", "-m", "", "x"],
            "{}",
            "a value is required for '--model <NAME>'",
        ),
        (
            &["ask", "--save", "/dev/null", "x"],
            "{}",
            "cannot write /dev/null: it is a folder, a device or a pipe",
        ),
        (
            &["ask", "--save", "no/such/folder/c.json", "x"],
            "{}",
            "cannot write no/such/folder/c.json",
        ),
        (
            &["ask", "--save", "toolgate.json", "x"],
            "{}",
            "toolgate.json exists and is not a saved conversation",
        ),
    ] {
        let done = alone(ProgramRun::new([]).args(arguments))
            .config(config)
            .done();
        assert!(done.stderr.contains(expected), "{arguments:?} {done:?}");
        assert_eq!(
            (done.stdout.as_str(), done.code),
            ("", Some(2)),
            "{arguments:?}"
        );
    }
}

#[test]
fn only_model_commands_need_the_models_variable() {
    let config = r#"{ "model": { "key": "${NOPE}" } }"#;
    for arguments in [&["list"][..], &["call", "echo"], &["mcp"]] {
        let done = ProgramRun::new([]).args(arguments).config(config).done();
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(!done.stderr.contains("NOPE"), "{done:?}");
    }
}

#[test]
fn an_unreachable_model_is_reported_with_the_fix() {
    let config = r#"{ "model": { "provider": "anthropic", "url": "http://models.invalid/" } }"#;
    let done = ProgramRun::new(["ask", "x"])
        .config(config)
        .env("ANTHROPIC_API_KEY", KEY)
        .done();
    assert!(
        done.stderr.contains("anthropic can't be reached")
            && done
                .stderr
                .contains("'--provider intents' answers built-in sentences"),
        "{done:?}"
    );
}

#[test]
fn doctor_fails_if_the_named_model_is_unavailable() {
    let named =
        r#"{ "search": { "url": "http://127.0.0.1:1" }, "model": { "provider": "openai" } }"#;
    let nobody = r#"{ "search": { "url": "http://127.0.0.1:1" } }"#;
    for (config, word, code) in [(named, "FAILED", 1), (nobody, "warning", 0)] {
        let done = alone(ProgramRun::new(["doctor"]))
            .config(config)
            .env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
            .done();
        let expected = format!("{word:<8} openai         openai can't be reached");
        assert!(done.stdout.contains(&expected), "{done:?}");
        assert_eq!(done.code, Some(code), "{done:?}");
    }
    let llm = ScriptedLlm::new([]);
    let other = named.replace(r#""openai" }"#, r#""openai", "name": "qwen3:0.7b" }"#);
    let run = ProgramRun::new(["doctor"]).config(&other);
    let done = llm.known_to(run, "openai").done();
    let expected = "FAILED   openai         it has no model 'qwen3:0.7b'; it has qwen3:0.6b";
    assert!(done.stdout.contains(expected), "{done:?}");
    assert_eq!(done.code, Some(1), "{done:?}");
}

#[test]
fn the_configuration_names_the_model_and_the_command_line_wins() {
    let llm = ScriptedLlm::scripted(Script::always(Answer::text("ok")));
    let config =
        json!({ "model": { "provider": "ollama", "name": "qwen3:0.6b", "url": llm.url() } })
            .to_string();
    let record = ProgramRun::new(["ask", "--json", "x"])
        .config(&config)
        .json();
    assert_eq!(
        (&record["provider"], &record["why"]),
        (&json!("ollama"), &json!("the configuration says so"))
    );
    let run = ProgramRun::new(["ask", "--json", "-p", "openai", "x"]).config(&config);
    let record = llm.known_to(run, "openai").json();
    assert_eq!(record["provider"], "openai");
    let record = llm
        .known_to(ProgramRun::new(["ask", "--json", "x"]), "ollama")
        .json();
    assert_eq!(record["model"], "qwen3:0.6b", "found by itself");
}

#[test]
fn doctor_reports_the_model() {
    let search = r#""search": { "url": "http://127.0.0.1:1" }"#;
    let done = alone(ProgramRun::new(["doctor"]))
        .config(&format!("{{ {search} }}"))
        .done();
    assert!(
        done.stdout
            .contains("ok       model          intents en: no model is configured or reachable"),
        "{done:?}"
    );
    assert!(
        done.stdout
            .contains("skipped: ollama: it can't be reached at http://127.0.0.1:1"),
        "{done:?}"
    );
    assert_eq!(done.code, Some(0), "{done:?}");

    let llm = ScriptedLlm::new([]);
    let run = ProgramRun::new(["doctor"]).config(&format!("{{ {search} }}"));
    let done = llm.known_to(run, "ollama").done();
    assert!(
        done.stdout
            .contains("ok       model          ollama qwen3:0.6b: it answers at"),
        "{done:?}"
    );
    assert!(done.stdout.contains("ok       ollama"), "{done:?}");

    let config = format!(
        r#"{{ {search}, "model": {{ "provider": "ollama", "url": "http://127.0.0.1:1" }} }}"#
    );
    let done = ProgramRun::new(["doctor"]).config(&config).done();
    assert!(done.stdout.contains("FAILED   ollama"), "{done:?}");
    assert_eq!(done.code, Some(1));

    let done = alone(ProgramRun::new(["doctor"]))
        .config(&format!(
            r#"{{ {search}, "model": {{ "provider": "anthropic" }} }}"#
        ))
        .done();
    assert!(
        done.stdout
            .contains("FAILED   model          anthropic needs a key"),
        "{done:?}"
    );
}

#[test]
fn doctor_checks_the_tools_that_would_be_offered() {
    let properties: serde_json::Map<_, _> = (0..3000)
        .map(|n| (format!("property_{n}"), json!({ "type": "string" })))
        .collect();
    let tool = |name: &str, parameters| json!({ "name": name, "description": "d", "parameters": parameters, "implementation": { "type": "mock", "mock_response": {} } });
    let huge = tool(
        "huge",
        json!({ "type": "object", "properties": properties }),
    );
    let llm = ScriptedLlm::new([]);
    let config = json!({
        "search": { "url": "http://127.0.0.1:1" },
        "tools": [huge],
        "model": { "provider": "ollama", "url": llm.url(), "name": "qwen3:0.6b", "contextTokens": 4096 },
    });
    let done = ProgramRun::new(["doctor"])
        .config(&config.to_string())
        .done();
    let expected = "warning  model tools    tool 'huge' can't be offered to the model: its parameters take more than 64 KiB";
    assert!(done.stdout.contains(expected), "{done:?}");
    assert!(!done.stdout.contains("would be cut"), "{done:?}");
    assert_eq!(done.code, Some(0), "{done:?}");
}
