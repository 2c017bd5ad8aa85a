use fakellm::{Answer, Script};
use serde_json::{Value, json};

use crate::llm::{KEY, PROVIDERS, ScriptedLlm, alone, weekday_call, weekday_script};
use crate::run::{ProgramRun, RunOutput};

fn ask_for_a_weekday(provider: &str) -> ScriptedLlm {
    let llm = ScriptedLlm::new(weekday_script());
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
fn without_a_model_sentences_are_still_understood() {
    for (question, expected) in [
        ("what is 6 times 7", "42"),
        ("which day of the week was 1982-04-24", "Saturday"),
        ("what is -5 plus 3", "-2"),
        ("what is 5 - 3", "5 - 3 = 2"),
    ] {
        // As people type them: without quotes.
        let words: Vec<&str> = question.split(' ').collect();
        let done = alone(ProgramRun::new(["ask"]).args(&words)).done();
        assert!(done.stdout.contains(expected), "{done:?}");
        assert_eq!((done.stderr.as_str(), done.code), ("", Some(0)));
    }
    // A failure is also logged, and a question that needs a model says how to get one.
    let no_model = "no model is configured or reachable, so only simple sentences are understood (ollama: it can't be reached at";
    for (question, expected, remark) in [
        (
            "please paint the fence",
            "I did not understand that.",
            no_model,
        ),
        (
            "turn on the kitchen light",
            "I can't switch devices here",
            no_model,
        ),
        (
            "what is 7 divided by zero",
            "7 / 0 has no finite result.",
            "ERROR tool call failed",
        ),
    ] {
        let done = alone(ProgramRun::new(["ask", question])).done();
        assert!(done.stdout.contains(expected), "{done:?}");
        assert!(done.stderr.starts_with(remark), "{done:?}");
        assert_eq!((done.stderr.lines().count(), done.code), (1, Some(1)));
    }
    let wanted = ProgramRun::new(["ask", "-p", "intents", "please paint the fence"]).done();
    assert_eq!((wanted.stderr.as_str(), wanted.code), ("", Some(1)));
    let record = alone(ProgramRun::new(["ask", "--json", "what is 6 times 7"])).json();
    assert_eq!(record["provider"], "intents");
    assert_eq!(record["why"], "no model is configured or reachable");
    let reasons: Vec<&str> = record["passed_over"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let expected = [
        "ollama: it can't be reached at http://127.0.0.1:1",
        "anthropic: ",
        "openai: ",
        "gemini: ",
    ];
    assert_eq!(reasons.len(), expected.len(), "{record}");
    for (reason, expected) in reasons.iter().zip(expected) {
        assert!(reason.starts_with(expected), "{record}");
    }
}

#[test]
fn an_unreachable_default_model_falls_back() {
    let run = |arguments: &[&str]| {
        let run = alone(ProgramRun::new(["ask"]).args(arguments));
        let nowhere = run.env("ANTHROPIC_BASE_URL", "http://127.0.0.1:1");
        nowhere.env("ANTHROPIC_API_KEY", KEY).done()
    };
    let done = run(&["what is -6 times 7"]);
    assert!(done.stdout.contains("-42"), "{done:?}");
    assert!(
        done.stderr.contains("anthropic can't be reached") && done.code == Some(0),
        "{done:?}"
    );
    for arguments in [
        &["please paint the fence"][..],
        &["-p", "anthropic", "what is 6 times 7"],
        &["-m", "claude-x", "what is 6 times 7"],
    ] {
        let done = run(arguments);
        assert_eq!((done.stdout.as_str(), done.code), ("", Some(1)), "{done:?}");
        assert!(done.stderr.contains("can't be reached at"), "{done:?}");
    }
    let record = run(&["--json", "please paint the fence"]).json();
    assert_eq!(record["error_kind"], "unreachable");
}

#[test]
fn text_before_a_call_is_recorded_but_not_the_answer() {
    let said_first = || {
        let first = Answer::text("Let me look it up.");
        let first = first.and_call("call_1", "datetime", &crate::llm::weekday());
        ScriptedLlm::new([first, Answer::text("It was a Saturday.")])
    };
    for provider in PROVIDERS {
        let done = said_first().ask(provider, &["which day"]).done();
        assert_eq!(done.stdout, "It was a Saturday.\n", "{provider}");
        let record = said_first().ask(provider, &["--json", "which day"]).json();
        let said = ["Let me look it up.", "It was a Saturday."];
        let rounds = record["rounds"].as_array().unwrap();
        let texts: Vec<&str> = rounds
            .iter()
            .filter_map(|round| round["text"].as_str())
            .collect();
        assert_eq!(texts, said, "{provider}");
    }
}

#[test]
fn the_record_shows_rounds_calls_and_tokens() {
    let llm = ScriptedLlm::new(weekday_script());
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
    assert_eq!(record["passed_over"], json!([]));
}

#[test]
fn the_question_comes_from_words_or_a_pipe() {
    for (arguments, stdin, expected) in [
        (&["what", "is", "it"][..], "", "what is it"),
        (&["-"], "piped\n", "piped"),
        (&[], "piped\n", "piped"),
        (&["sum up:", "-"], "a\nb\n", "sum up:\n\na\nb"),
    ] {
        let llm = ScriptedLlm::new([Answer::text("ok")]);
        let done = llm.ask("ollama", arguments).stdin(stdin).done();
        assert_eq!(done.code, Some(0), "{done:?}");
        let request = llm.requests()[0].json();
        let messages = request["messages"].as_array().unwrap();
        assert_eq!(messages.last().unwrap()["content"], expected);
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
            let done = ScriptedLlm::new(answers()).ask(provider, arguments).done();
            assert_eq!(done.code, Some(0), "{done:?}");
            assert!(!format!("{done:?}").contains(KEY), "{done:?}");
        }
        let llm = ScriptedLlm::new(weekday_script());
        let run = llm.ask(provider, &["-vvv", "--json", "--save", "talk.json", "x"]);
        let (child, folder) = run.start();
        let done = RunOutput::from(child.wait_with_output().unwrap());
        assert_eq!(done.json()["answer"], "It was a Saturday.", "{done:?}");
        assert!(!format!("{done:?}").contains(KEY), "{done:?}");
        let saved = std::fs::read_to_string(folder.path().join("talk.json")).unwrap();
        assert!(
            saved.contains("Saturday") && !saved.contains(KEY),
            "{saved}"
        );
        let kind = format!("bad key {KEY}");
        let llm = ScriptedLlm::new([Answer::fails(401, &kind, &kind)]);
        let done = llm.ask(provider, &["-vv", "--json", "x"]).done();
        assert_eq!(done.json()["error_kind"], "key", "{done:?}");
        assert!(!format!("{done:?}").contains(KEY), "{done:?}");
        let llm = ScriptedLlm::scripted(Script::always(Answer::fails(401, &kind, &kind)));
        let config = json!({ "model": { "provider": provider, "key": KEY, "url": llm.url() }, "search": { "url": "http://127.0.0.1:1" } });
        let done = ProgramRun::new(["--config", "toolgate.json", "doctor", "-vv"])
            .config(&config.to_string())
            .done();
        assert!(done.stdout.contains("ok       model"), "{done:?}");
        assert!(!format!("{done:?}").contains(KEY), "{done:?}");
    }
}

#[test]
fn an_answer_cannot_control_the_terminal() {
    let llm = ScriptedLlm::new([Answer::text("a\u{1b}[31m\u{7}b\r\n\tc\u{202e}\u{9b}")]);
    let done = llm.ask("ollama", &["x"]).done();
    assert_eq!(done.stdout, "ab\n\tc\n");
}

#[test]
fn thinking_is_not_the_answer() {
    for provider in ["anthropic", "ollama"] {
        let llm = ScriptedLlm::new([Answer::empty().and_thinking("hmm", "sig").and_text("42")]);
        let done = llm.ask(provider, &["x"]).done();
        assert_eq!(
            (done.stdout.as_str(), done.stderr.as_str()),
            ("42\n", ""),
            "{provider}"
        );
    }
}

#[test]
fn a_cut_prompt_is_reported_in_a_pipe_too() {
    let llm = ScriptedLlm::new([Answer::text("ok").prompt_tokens(1)]);
    let done = llm.ask("ollama", &["x"]).done();
    assert_eq!((done.stdout.as_str(), done.code), ("ok\n", Some(0)));
    assert!(done.stderr.contains("WARN"), "{done:?}");
    let llm = ScriptedLlm::new([Answer::text("ok").prompt_tokens(1)]);
    let record = llm.ask("ollama", &["--json", "x"]).json();
    let notice = record["notices"][0].as_str().unwrap();
    assert!(notice.contains("cut"), "{record}");
}

#[test]
fn the_round_limit_ends_with_an_answer_and_a_note() {
    let llm = ScriptedLlm::new([weekday_call(), Answer::text("Saturday, I think.")]);
    let config = r#"{ "model": { "maxToolRounds": 1 } }"#;
    let done = llm.ask("ollama", &["x"]).config(config).done();
    assert_eq!(
        (done.stdout.as_str(), done.code),
        ("Saturday, I think.\n", Some(0)),
        "{done:?}"
    );
    assert!(done.stderr.contains("(model.maxToolRounds)"), "{done:?}");
}

#[test]
fn sentences_can_go_before_the_model() {
    let llm = ScriptedLlm::scripted(Script::always(Answer::text("from the model")));
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
    let run = ProgramRun::new(["ask", "-p", "intents", "knock knock"]);
    let done = run.config(config).file("own.json", own).done();
    assert_eq!(done.stdout, "Who is there?\n", "{done:?}");
    let done = llm.ask("ollama", &["x"]).config(config).done();
    assert!(done.stderr.contains("model.intents: "), "{done:?}");
    assert_eq!(done.code, Some(2));
}

#[test]
fn local_tools_are_used_without_any_server() {
    let config = r#"{ "mcpServers": { "gone": { "command": "no-such-command" } } }"#;
    let light = "turn on the kitchen light";
    for (tools, question, answer, is_started) in [
        ("math_eval", "what is 6 times 7", "42", false),
        ("math*", "what is 6 times 7", "42", false),
        ("math_eval", light, "I can't switch devices", false),
        ("*", light, "I can't switch devices", true),
    ] {
        let run = ProgramRun::new(["ask", "--tools", tools, question]).config(config);
        let done = alone(run.env("TOOLGATE_CONFIG", "toolgate.json")).done();
        assert!(done.stdout.contains(answer), "{done:?}");
        assert_eq!(done.stderr.contains("gone"), is_started, "{done:?}");
    }
}

#[test]
fn mc5_a_late_server_delays_only_questions_that_may_need_it() {
    let folder = tempfile::tempdir().unwrap();
    let started = folder.path().join("started");
    let line = format!("touch '{}'; exec sleep 600", started.display());
    let late = json!({ "command": "sh", "args": ["-c", line], "startTimeout": "5m" });
    let config = json!({ "mcpServers": { "late": late } }).to_string();
    std::fs::write(folder.path().join("house.json"), config).unwrap();
    for (question, answer, is_needed) in [
        ("what is 6 times 7", "42", false),
        ("turn on the kitchen light", "I can't switch devices", true),
    ] {
        let run = ProgramRun::new(["--config", "house.json", "ask", question]);
        let done = alone(run.within(folder.path())).done();
        assert!(done.stdout.contains(answer), "{done:?}");
        let told = "MCP server has not answered yet: its tools are not offered";
        let is_told = done.stderr.contains(told) && done.stderr.contains("server=late");
        // It is named only if the wait for it was in vain; otherwise it isn't even started.
        assert_eq!(
            (is_told, started.exists()),
            (is_needed, is_needed),
            "{done:?}"
        );
    }
}
