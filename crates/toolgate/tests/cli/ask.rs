use std::process::Command;

use fakellm::{Answer, Script};
use serde_json::json;

use crate::llm::{KEY, Llm, PROVIDERS, alone, weekday_call};
use crate::run::{Done, Run};

/// Asks for a tool, then answers.
fn weekday_script() -> [Answer; 2] {
    [weekday_call(), Answer::text("It was a Saturday.")]
}

fn ask_for_a_weekday(provider: &str) -> Llm {
    let llm = Llm::new(weekday_script());
    let done = llm.ask(provider, &["which", "day", "was", "it"]).done();
    assert_eq!(
        (done.stdout.as_str(), done.stderr.as_str(), done.code),
        ("It was a Saturday.\n", "", Some(0)),
        "{provider}"
    );
    llm
}

#[test]
fn ai1_ask_lets_anthropic_use_a_tool_and_prints_its_answer() {
    let llm = ask_for_a_weekday("anthropic");
    let requests = llm.requests();
    assert!(requests[0].json()["tools"][0]["input_schema"].is_object());
    assert_eq!(requests[0].header("x-api-key"), Some(KEY));
    assert!(requests[1].json().to_string().contains("Saturday"));
}

#[test]
fn ai2_ask_lets_ollama_use_a_tool_and_prints_its_answer() {
    let llm = ask_for_a_weekday("ollama");
    let requests = llm.requests();
    assert_eq!(requests[0].json()["tools"][0]["type"], "function");
    assert!(requests[1].json().to_string().contains("Saturday"));
}

#[test]
fn ask_lets_openai_and_its_like_use_a_tool() {
    let llm = ask_for_a_weekday("openai");
    let bearer = format!("Bearer {KEY}");
    assert_eq!(
        llm.requests()[0].header("authorization"),
        Some(bearer.as_str())
    );
}

#[test]
fn without_any_model_sentences_are_understood_all_the_same() {
    for (question, expected) in [
        ("what is 6 times 7", "42"),
        ("which day of the week was 1982-04-24", "Saturday"),
    ] {
        let done = alone(Run::new(["ask", question])).done();
        assert!(done.stdout.contains(expected), "{done:?}");
        assert_eq!((done.stderr.as_str(), done.code), ("", Some(0)));
    }
    // What fails is also in the log.
    for (question, expected, logged) in [
        ("please paint the fence", "I did not understand that.", ""),
        (
            "turn on the kitchen light",
            "I can't switch devices here",
            "",
        ),
        (
            "what is 7 divided by zero",
            "7 / 0 has no finite result.",
            "ERROR tool call failed",
        ),
    ] {
        let done = alone(Run::new(["ask", question])).done();
        assert!(done.stdout.contains(expected), "{done:?}");
        assert!(done.stderr.starts_with(logged), "{done:?}");
        assert_eq!(
            (done.stderr.is_empty(), done.code),
            (logged.is_empty(), Some(1))
        );
    }
    let record = alone(Run::new(["ask", "--json", "what is 6 times 7"])).json();
    assert_eq!(record["provider"], "intents");
    assert_eq!(record["why"], "no model is configured or reachable");
}

#[test]
fn words_before_a_call_are_not_the_answer() {
    for provider in PROVIDERS {
        let first = Answer::text("Let me look it up.").and_call(
            "call_1",
            "datetime",
            &crate::llm::weekday(),
        );
        let llm = Llm::new([first, Answer::text("It was a Saturday.")]);
        let done = llm.ask(provider, &["which day"]).done();
        assert_eq!(done.stdout, "It was a Saturday.\n", "{provider}");
    }
}

#[test]
fn the_record_tells_rounds_calls_and_tokens() {
    let llm = Llm::new(weekday_script());
    let done = llm.ask("ollama", &["--json", "which day"]).done();
    let record = done.json();
    assert_eq!(done.stdout.lines().count(), 1);
    assert_eq!(
        (
            &record["provider"],
            &record["model"],
            &record["answer"],
            &record["end"]
        ),
        (
            &json!("ollama"),
            &json!("qwen3:0.6b"),
            &json!("It was a Saturday."),
            &json!("answered")
        )
    );
    let call = &record["rounds"][0]["calls"][0];
    assert_eq!(
        (
            &call["tool_name"],
            &call["success"],
            &call["arguments"]["date"]
        ),
        (&json!("datetime"), &json!(true), &json!("1982-04-24"))
    );
    assert_eq!(call["result"]["weekday"], "Saturday");
    assert!(
        call["call_id"].is_string() && record["usage"]["input"].is_u64(),
        "{record}"
    );
    assert_eq!(record["why"], "the command line says so");
}

#[test]
fn the_record_of_tools_that_ran_survives_a_model_that_fails_after_them() {
    for provider in PROVIDERS {
        let llm = Llm::new([
            weekday_call(),
            Answer::fails(400, "invalid_request_error", "no"),
        ]);
        let done = llm.ask(provider, &["--json", "which day"]).done();
        let record = done.json();
        assert_eq!(done.code, Some(1), "{provider}");
        assert!(done.stderr.contains("refused the request"), "{done:?}");
        assert_eq!(record["end"], "failed");
        assert!(record["error"].is_string(), "{record}");
        let call = &record["rounds"][0]["calls"][0];
        assert_eq!(call["result"]["weekday"], "Saturday", "{provider}");
    }
}

#[test]
fn the_question_comes_from_words_or_a_pipe() {
    for (arguments, stdin, expected) in [
        (&["what", "is", "it"][..], "", "what is it"),
        (&["-"], "piped\n", "piped"),
        (&[], "piped\n", "piped"),
        (&["sum up:", "-"], "a\nb\n", "sum up:\n\na\nb"),
    ] {
        let llm = Llm::new([Answer::text("ok")]);
        let done = llm.ask("ollama", arguments).stdin(stdin).done();
        assert_eq!(done.code, Some(0), "{done:?}");
        let request = llm.requests()[0].json();
        let messages = request["messages"].as_array().unwrap();
        assert_eq!(messages.last().unwrap()["content"], expected);
    }
}

#[test]
fn what_is_wrong_with_the_usage_or_the_settings_is_said_and_nothing_is_printed() {
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
            &["ask", "-p", "openai", "-m", "ollama:x", "x"],
            "{}",
            "are two providers",
        ),
        (
            &["ask", "-m", "gpt-9", "x"],
            "{}",
            "nobody here has the model 'gpt-9'",
        ),
        (
            &["ask", "--resume", "nowhere.json", "x"],
            "{}",
            "cannot read nowhere.json",
        ),
        (
            &["ask", "--resume", "toolgate.json", "x"],
            "{}",
            "toolgate.json can not be resumed",
        ),
        (
            &["ask", "x"],
            r#"{ "model": { "provider": "olama" } }"#,
            "toolgate.json:1: model.provider: unknown variant `olama`",
        ),
        (
            &["ask", "x"],
            r#"{ "model": { "maxToolRound": 1 } }"#,
            "unknown key 'model.maxToolRound'; did you mean 'maxToolRounds'?",
        ),
        (
            &["ask", "x"],
            r#"{ "model": { "key": "${NOPE}" } }"#,
            "toolgate.json:1: model.key: the variable NOPE is not set",
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
            "toolgate.json is there and holds no saved conversation",
        ),
    ] {
        let done = alone(Run::new([]).args(arguments)).config(config).done();
        assert!(done.stderr.contains(expected), "{arguments:?} {done:?}");
        assert_eq!(
            (done.stdout.as_str(), done.code),
            ("", Some(2)),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_variable_that_only_the_model_needs_is_missed_by_no_other_command() {
    let config = r#"{ "model": { "key": "${NOPE}" } }"#;
    for arguments in [&["list"][..], &["call", "echo"], &["mcp"]] {
        let done = Run::new([]).args(arguments).config(config).done();
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(!done.stderr.contains("NOPE"), "{done:?}");
    }
}

#[test]
fn a_file_in_the_working_folder_sends_nothing_elsewhere() {
    let config = r#"{ "model": { "provider": "anthropic", "url": "http://models.invalid/" } }"#;
    for arguments in [&["ask", "x"][..], &["chat"], &["doctor"]] {
        let done = Run::new([])
            .args(arguments)
            .config(config)
            .env("ANTHROPIC_API_KEY", KEY)
            .done();
        let told = format!("{}{}", done.stdout, done.stderr);
        assert!(
            told.contains("model.url: a file that lies in the working folder must not send"),
            "{done:?}"
        );
        assert!(told.contains("--config toolgate.json"), "{done:?}");
    }
    // Nor does it once the model is changed, nor say which secret is the key.
    let llm = Llm::new([]);
    let key = r#"{ "model": { "provider": "openai", "key": "${ANTHROPIC_API_KEY}" } }"#;
    let login = r#"{ "model": { "provider": "openai", "url": "http://${ANTHROPIC_API_KEY}@127.0.0.1:1" } }"#;
    let elsewhere = r#"{ "model": { "provider": "openai", "url": "http://models.invalid/" } }"#;
    for (config, expected) in [
        (key, "model.key: a file that lies in the working folder"),
        (login, "model.url: a file that lies in the working folder"),
        (
            elsewhere,
            "model.url: a file that lies in the working folder",
        ),
    ] {
        let run = Run::new(["chat", "-p", "intents"])
            .config(config)
            .env("ANTHROPIC_API_KEY", KEY)
            .stdin("/model openai\nhello\n");
        let done = llm.known_to(run, "openai").done();
        assert!(done.stderr.contains(expected), "{done:?}");
        assert!(!format!("{done:?}").contains(KEY), "{done:?}");
        let run = Run::new(["ask", "x"])
            .config(config)
            .env("ANTHROPIC_API_KEY", KEY);
        let done = llm.known_to(run, "openai").done();
        assert!(done.stderr.contains(expected), "{done:?}");
        assert_eq!(done.code, Some(2), "{done:?}");
    }
    assert!(llm.requests().is_empty());
    let done = Run::new(["--config", "toolgate.json", "ask", "x"])
        .config(config)
        .env("ANTHROPIC_API_KEY", KEY)
        .done();
    assert!(
        done.stderr.contains("anthropic can not be reached"),
        "{done:?}"
    );
}

#[test]
fn a_model_that_can_not_be_had_is_a_failure() {
    for (provider, answer, expected) in [
        (
            "anthropic",
            Answer::fails(401, "authentication_error", "invalid x-api-key"),
            "does not accept the key",
        ),
        (
            "openai",
            Answer::fails(400, "invalid_request_error", "no"),
            "refused the request",
        ),
        (
            "ollama",
            Answer::fails(404, "", "model 'x' not found"),
            "ollama pull",
        ),
    ] {
        let llm = Llm::new([answer]);
        let done = llm.ask(provider, &["x"]).done();
        assert_eq!((done.stdout.as_str(), done.code), ("", Some(1)), "{done:?}");
        assert!(done.stderr.contains(expected), "{done:?}");
        assert_eq!(llm.requests().len(), 1, "asked once: {provider}");
    }
    let done = alone(Run::new(["ask", "-p", "ollama", "x"])).done();
    assert!(
        done.stderr.contains("ollama can not be reached"),
        "{done:?}"
    );
    assert_eq!(done.code, Some(1));
    let llm = Llm::new([Answer::fails(400, "invalid_request_error", "no")]);
    let record = llm.ask("openai", &["--json", "x"]).done();
    assert!(
        record.json()["error"].as_str().unwrap().contains("refused"),
        "{record:?}"
    );
    assert_eq!(record.code, Some(1));
}

#[test]
fn ctrl_c_leaves_the_question_and_the_model_hears_of_it() {
    for provider in PROVIDERS {
        let llm = Llm::new([Answer::black_hole()]);
        let (child, _folder) = llm.ask(provider, &["x"]).start();
        llm.asked(1);
        let killed = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(killed.unwrap().success());
        let done = Done::from(child.wait_with_output().unwrap());
        assert_eq!(
            (done.stdout.as_str(), done.code),
            ("", Some(130)),
            "{provider}: {done:?}"
        );
        llm.left(1);
    }
}

#[test]
fn a_key_is_never_shown() {
    let answers = || {
        [
            Answer::call("c", "echo", &json!({ "text": format!("is it {KEY}?") })),
            Answer::text("done"),
        ]
    };
    for provider in ["anthropic", "openai"] {
        for arguments in [&["-vv", "x"][..], &["-vvv", "x"]] {
            let done = Llm::new(answers()).ask(provider, arguments).done();
            assert_eq!(done.code, Some(0), "{done:?}");
            assert!(!done.stderr.contains(KEY), "{done:?}");
        }
        let kind = format!("bad key {KEY}");
        let llm = Llm::new([Answer::fails(401, &kind, &kind)]);
        let done = llm.ask(provider, &["-vv", "x"]).done();
        assert!(!format!("{done:?}").contains(KEY), "{done:?}");
        let llm = Llm::scripted(Script::always(Answer::fails(401, &kind, &kind)));
        let config = json!({ "model": { "provider": provider, "key": KEY, "url": llm.url() }, "search": { "url": "http://127.0.0.1:1" } });
        let done = Run::new(["--config", "toolgate.json", "doctor", "-vv"])
            .config(&config.to_string())
            .done();
        assert!(done.stdout.contains("ok       model"), "{done:?}");
        assert!(!format!("{done:?}").contains(KEY), "{done:?}");
    }
}

#[test]
fn an_answer_drives_no_terminal() {
    let llm = Llm::new([Answer::text("a\u{1b}[31m\u{7}b\r\n\tc\u{202e}\u{9b}")]);
    let done = llm.ask("ollama", &["x"]).done();
    assert_eq!(done.stdout, "ab\n\tc\n");
}

#[test]
fn thinking_is_not_the_answer() {
    for provider in ["anthropic", "ollama"] {
        let llm = Llm::new([Answer::empty().and_thinking("hmm", "sig").and_text("42")]);
        let done = llm.ask(provider, &["x"]).done();
        assert_eq!(
            (done.stdout.as_str(), done.stderr.as_str()),
            ("42\n", ""),
            "{provider}"
        );
    }
}

#[test]
fn only_the_tools_that_were_chosen_are_offered() {
    let llm = Llm::new([Answer::text("ok")]);
    let done = llm
        .ask("ollama", &["-t", "date*", "--tools", "echo", "x"])
        .done();
    assert_eq!(done.code, Some(0), "{done:?}");
    let request = llm.requests()[0].json();
    let tools = request["tools"].as_array().unwrap();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["datetime", "echo"]);
}

#[test]
fn a_tool_that_needs_approval_is_denied_without_it() {
    for (flags, expected) in [(&[][..], "needs approval"), (&["--yes"], "hello")] {
        let llm = Llm::new([
            Answer::call("c", "echo", &json!({ "text": "hello" })),
            Answer::text("ok"),
        ]);
        let done = llm
            .ask("ollama", &["x"])
            .args(flags)
            .config(r#"{ "policy": { "ask": ["echo"] } }"#)
            .done();
        assert_eq!(done.code, Some(0), "{done:?}");
        let result = llm.requests()[1].json()["messages"].to_string();
        assert!(result.contains(expected), "{result}");
    }
}

#[test]
fn a_conversation_is_saved_and_resumed_by_another_provider() {
    let folder = tempfile::tempdir().unwrap();
    let llm = Llm::new(weekday_script());
    let done = llm
        .ask("ollama", &["--save", "c.json", "which day"])
        .within(folder.path())
        .done();
    assert_eq!(done.code, Some(0), "{done:?}");
    let llm = Llm::new([Answer::text("As I said.")]);
    let done = llm
        .ask(
            "anthropic",
            &["--resume", "c.json", "--save", "c.json", "sure?"],
        )
        .within(folder.path())
        .done();
    assert_eq!(
        (done.stdout.as_str(), done.code),
        ("As I said.\n", Some(0)),
        "{done:?}"
    );
    let messages = llm.requests()[0].json()["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 5, "{messages}");
    assert!(messages.to_string().contains("Saturday"));
    let saved = std::fs::read_to_string(folder.path().join("c.json")).unwrap();
    assert!(saved.contains("As I said."), "{saved}");
}

#[test]
fn a_conversation_goes_on_with_whom_it_was_unless_told_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let ollama = Llm::scripted(Script::always(Answer::text("ok")));
    let done = ollama
        .ask("ollama", &["--save", "c.json", "a secret"])
        .within(folder.path())
        .done();
    assert_eq!(done.code, Some(0), "{done:?}");
    let resumed = |arguments: &[&str]| {
        let run = Run::new(["ask", "--json", "--resume", "c.json"]);
        run.args(arguments).within(folder.path())
    };
    let openai = Llm::scripted(Script::always(Answer::text("ok")));
    // Ollama is not there now, and somebody else is.
    let done = openai.known_to(alone(resumed(&["x"])), "openai").done();
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(
        done.stderr.contains("ollama can not be reached"),
        "{done:?}"
    );
    assert!(openai.requests().is_empty());
    let run = ollama.known_to(openai.known_to(resumed(&["x"]), "openai"), "ollama");
    let record = run.json();
    assert_eq!(
        (&record["provider"], &record["model"], &record["why"]),
        (
            &json!("ollama"),
            &json!("qwen3:0.6b"),
            &json!("the saved conversation was with it")
        )
    );
    let run = resumed(&["-p", "openai", "-m", "qwen3:0.6b", "x"]);
    let record = openai.known_to(run, "openai").json();
    assert_eq!(record["provider"], "openai");
    let saved = std::fs::read_to_string(folder.path().join("c.json")).unwrap();
    let saved = saved.replace("\"ollama\"", "\"anthropic\"");
    std::fs::write(folder.path().join("c.json"), saved).unwrap();
    let done = openai.known_to(alone(resumed(&["x"])), "openai").done();
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(
        done.stderr.contains("anthropic needs a key") && done.stderr.contains("--provider goes on"),
        "{done:?}"
    );
}

#[test]
fn tools_that_nobody_has_are_said() {
    for (pattern, expected) in [
        (
            "datetme",
            "--tools datetme: no tool is like that; near it: datetime",
        ),
        (
            "zzz/*",
            "--tools zzz/*: no tool is like that; 'toolgate list' shows",
        ),
        ("echo,nope__*", "--tools nope__*: no tool is like that"),
    ] {
        let llm = Llm::new([]);
        let done = llm.ask("ollama", &["-t", pattern, "x"]).done();
        assert!(done.stderr.contains(expected), "{done:?}");
        assert_eq!((done.stdout.as_str(), done.code), ("", Some(2)), "{done:?}");
        assert!(llm.requests().is_empty());
    }
}

#[test]
fn a_prompt_that_was_cut_is_said_in_a_pipe_too() {
    let llm = Llm::new([Answer::text("ok").prompt_tokens(1)]);
    let done = llm.ask("ollama", &["x"]).done();
    assert_eq!((done.stdout.as_str(), done.code), ("ok\n", Some(0)));
    assert!(done.stderr.contains("WARN"), "{done:?}");
}

#[test]
fn a_signal_to_terminate_is_seen_in_the_exit_code() {
    let llm = Llm::new([Answer::black_hole()]);
    let (child, _folder) = llm.ask("ollama", &["x"]).start();
    llm.asked(1);
    let killed = Command::new("kill").arg(child.id().to_string()).status();
    assert!(killed.unwrap().success());
    let done = Done::from(child.wait_with_output().unwrap());
    assert_eq!((done.stdout.as_str(), done.code), ("", Some(143)));
}

#[test]
fn doctor_fails_if_the_model_that_is_named_can_not_be_had() {
    let named =
        r#"{ "search": { "url": "http://127.0.0.1:1" }, "model": { "provider": "openai" } }"#;
    let nobody = r#"{ "search": { "url": "http://127.0.0.1:1" } }"#;
    for (config, word, code) in [(named, "FAILED", 1), (nobody, "warning", 0)] {
        let done = alone(Run::new(["doctor"]))
            .config(config)
            .env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
            .done();
        let expected = format!("{word:<8} openai         openai can not be reached");
        assert!(done.stdout.contains(&expected), "{done:?}");
        assert_eq!(done.code, Some(code), "{done:?}");
    }
    let llm = Llm::new([]);
    let other = named.replace(r#""openai" }"#, r#""openai", "name": "qwen3:0.7b" }"#);
    let run = Run::new(["doctor"]).config(&other);
    let done = llm.known_to(run, "openai").done();
    let expected = "FAILED   openai         it has no model 'qwen3:0.7b'; it has qwen3:0.6b";
    assert!(done.stdout.contains(expected), "{done:?}");
    assert_eq!(done.code, Some(1), "{done:?}");
}

#[test]
fn a_turn_that_takes_too_long_ends() {
    let llm = Llm::new([Answer::black_hole()]);
    let done = llm.ask("ollama", &["--timeout", "300ms", "x"]).done();
    assert_eq!((done.stdout.as_str(), done.code), ("", Some(1)), "{done:?}");
    assert!(done.stderr.contains("ollama did not"), "{done:?}");
}

#[test]
fn the_configuration_names_the_model_and_the_command_line_wins() {
    let llm = Llm::scripted(Script::always(Answer::text("ok")));
    let config =
        json!({ "model": { "provider": "ollama", "name": "qwen3:0.6b", "url": llm.url() } })
            .to_string();
    let record = Run::new(["ask", "--json", "x"]).config(&config).json();
    assert_eq!(
        (&record["provider"], &record["why"]),
        (&json!("ollama"), &json!("the configuration says so"))
    );
    let run = Run::new(["ask", "--json", "-p", "openai", "x"]).config(&config);
    let record = llm.known_to(run, "openai").json();
    assert_eq!(record["provider"], "openai");
    let record = llm
        .known_to(Run::new(["ask", "--json", "x"]), "ollama")
        .json();
    assert_eq!(record["model"], "qwen3:0.6b", "found by itself");
}

#[test]
fn doctor_tells_of_the_model() {
    let search = r#""search": { "url": "http://127.0.0.1:1" }"#;
    let done = alone(Run::new(["doctor"]))
        .config(&format!("{{ {search} }}"))
        .done();
    assert!(
        done.stdout
            .contains("ok       model          intents en: no model is configured or reachable"),
        "{done:?}"
    );
    assert!(
        done.stdout
            .contains("passed over: ollama: nobody answers at http://127.0.0.1:1"),
        "{done:?}"
    );
    assert_eq!(done.code, Some(0), "{done:?}");

    let llm = Llm::new([]);
    let run = Run::new(["doctor"]).config(&format!("{{ {search} }}"));
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
    let done = Run::new(["doctor"]).config(&config).done();
    assert!(done.stdout.contains("FAILED   ollama"), "{done:?}");
    assert_eq!(done.code, Some(1));

    let done = alone(Run::new(["doctor"]))
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
fn a_model_that_says_nothing_has_not_answered() {
    let llm = Llm::scripted(Script::always(Answer::empty()));
    let done = llm.ask("ollama", &["x"]).done();
    assert_eq!((done.stdout.as_str(), done.code), ("", Some(1)), "{done:?}");
    assert!(
        done.stderr.starts_with("error: The model gave no answer"),
        "{done:?}"
    );
}

#[test]
fn at_the_limit_of_rounds_there_is_an_answer_and_a_remark() {
    let llm = Llm::new([weekday_call(), Answer::text("Saturday, I think.")]);
    let config = r#"{ "model": { "maxToolRounds": 1 } }"#;
    let done = llm.ask("ollama", &["x"]).config(config).done();
    assert_eq!(
        (done.stdout.as_str(), done.code),
        ("Saturday, I think.\n", Some(0)),
        "{done:?}"
    );
}

#[test]
fn sentences_can_go_before_the_model() {
    let llm = Llm::scripted(Script::always(Answer::text("from the model")));
    let own = r#"{ "intents": [{ "sentences": ["knock knock"], "say": "Who is there?" }] }"#;
    let config = r#"{ "model": { "intentsFirst": true, "intents": ["own.json"] } }"#;
    for (question, expected, asked) in [
        ("what is 6 times 7", "42", 0),
        ("write me a poem", "from the model", 1),
    ] {
        let run = llm.ask("ollama", &[question]);
        let done = run.config(config).file("own.json", own).done();
        assert!(done.stdout.contains(expected), "{done:?}");
        assert_eq!(llm.requests().len(), asked, "{question}");
    }
    let run = Run::new(["ask", "-p", "intents", "knock knock"]);
    let done = run.config(config).file("own.json", own).done();
    assert_eq!(done.stdout, "Who is there?\n", "{done:?}");
    let done = llm.ask("ollama", &["x"]).config(config).done();
    assert!(done.stderr.contains("model.intents: "), "{done:?}");
    assert_eq!(done.code, Some(2));
}
