use fakellm::{Answer, Script};
use serde_json::json;

use crate::llm::{PROVIDERS, ScriptedLlm, alone, weekday_call, weekday_script};
use crate::run::{ProgramRun, RunOutput};

#[test]
fn the_record_of_tools_that_ran_survives_a_model_that_fails_after_them() {
    for provider in PROVIDERS {
        let llm = ScriptedLlm::new([
            weekday_call(),
            Answer::fails(400, "invalid_request_error", "no"),
        ]);
        let done = llm.ask(provider, &["--json", "which day"]).done();
        let record = done.json();
        assert_eq!(done.code, Some(1), "{provider}");
        assert!(done.stderr.contains("refused the request"), "{done:?}");
        assert_eq!(record["end"], "failed");
        assert!(record["error"].is_string(), "{record}");
        assert!(record["error_kind"].is_string(), "{record}");
        let call = &record["rounds"][0]["calls"][0];
        assert_eq!(call["result"]["weekday"], "Saturday", "{provider}");
    }
}

#[test]
fn an_unavailable_model_is_a_failure() {
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
        let llm = ScriptedLlm::new([answer]);
        let done = llm.ask(provider, &["x"]).done();
        assert_eq!((done.stdout.as_str(), done.code), ("", Some(1)), "{done:?}");
        assert!(done.stderr.contains(expected), "{done:?}");
        assert_eq!(llm.requests().len(), 1, "asked once: {provider}");
    }
    let done = alone(ProgramRun::new(["ask", "-p", "ollama", "x"])).done();
    assert!(done.stderr.contains("ollama can't be reached"), "{done:?}");
    assert_eq!(done.code, Some(1));
    let llm = ScriptedLlm::new([Answer::fails(400, "invalid_request_error", "no")]);
    let record = llm.ask("openai", &["--json", "x"]).done();
    assert!(
        record.json()["error"].as_str().unwrap().contains("refused"),
        "{record:?}"
    );
    assert_eq!(record.code, Some(1));
}

#[test]
fn ctrl_c_ends_the_question_and_closes_the_request() {
    for provider in PROVIDERS {
        let llm = ScriptedLlm::new([Answer::black_hole()]);
        let (child, _folder) = llm.ask(provider, &["x"]).start();
        llm.asked(1);
        fakemcp::send_signal("-INT", child.id());
        let done = RunOutput::from(child.wait_with_output().unwrap());
        assert_eq!(
            (done.stdout.as_str(), done.code),
            ("", Some(130)),
            "{provider}: {done:?}"
        );
        llm.left(1);
    }
}

#[test]
fn only_chosen_tools_are_offered() {
    for chosen in [
        &["-t", "date*", "--tools", "echo"][..],
        &["--tools", "datetime, echo"],
    ] {
        let llm = ScriptedLlm::new([Answer::text("ok")]);
        let done = llm.ask("ollama", &[chosen, &["x"]].concat()).done();
        assert_eq!(done.code, Some(0), "{done:?}");
        let request = llm.requests()[0].json();
        let tools = request["tools"].as_array().unwrap();
        let names: Vec<_> = tools
            .iter()
            .map(|tool| tool["function"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["datetime", "echo"]);
    }
}

#[test]
fn a_tool_that_needs_approval_is_denied_without_it() {
    for (flags, expected) in [(&[][..], "needs approval"), (&["--yes"], "hello")] {
        let llm = ScriptedLlm::new([
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
        let remark = "nobody could be asked for approval; --yes approves calls in advance";
        assert_eq!(done.stderr.contains(remark), flags.is_empty(), "{done:?}");
    }
}

#[test]
fn a_conversation_is_saved_and_resumed_by_another_provider() {
    let folder = tempfile::tempdir().unwrap();
    let llm = ScriptedLlm::new(weekday_script());
    let done = llm
        .ask("ollama", &["--save", "c.json", "which day"])
        .within(folder.path())
        .done();
    assert_eq!(done.code, Some(0), "{done:?}");
    let llm = ScriptedLlm::new([Answer::text("As I said.")]);
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
fn a_conversation_resumes_with_its_provider() {
    let folder = tempfile::tempdir().unwrap();
    let ollama = ScriptedLlm::scripted(Script::always(Answer::text("ok")));
    let done = ollama
        .ask("ollama", &["--save", "c.json", "a secret"])
        .within(folder.path())
        .done();
    assert_eq!(done.code, Some(0), "{done:?}");
    let resumed = |arguments: &[&str]| {
        let run = ProgramRun::new(["ask", "--json", "--resume", "c.json"]);
        run.args(arguments).within(folder.path())
    };
    let openai = ScriptedLlm::scripted(Script::always(Answer::text("ok")));
    // Ollama is gone now, and another provider is available.
    let done = openai.known_to(alone(resumed(&["x"])), "openai").done();
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("ollama can't be reached"), "{done:?}");
    assert!(openai.requests().is_empty());
    let run = ollama.known_to(openai.known_to(resumed(&["x"]), "openai"), "ollama");
    let record = run.json();
    assert_eq!(
        (&record["provider"], &record["model"], &record["why"]),
        (
            &json!("ollama"),
            &json!("qwen3:0.6b"),
            &json!("it answered in the saved conversation")
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
        done.stderr.contains("anthropic needs a key")
            && done.stderr.contains("--provider continues"),
        "{done:?}"
    );
}

#[test]
fn unknown_tools_are_reported() {
    for (pattern, expected) in [
        (
            "datetme",
            "--tools datetme: no tool matches; did you mean 'datetime'?",
        ),
        (
            "zzz/*",
            "--tools zzz/*: no tool matches; 'toolgate list' shows",
        ),
        ("echo,nope__*", "--tools nope__*: no tool matches"),
    ] {
        let llm = ScriptedLlm::new([]);
        let done = llm.ask("ollama", &["-t", pattern, "x"]).done();
        assert!(done.stderr.contains(expected), "{done:?}");
        assert_eq!((done.stdout.as_str(), done.code), ("", Some(2)), "{done:?}");
        assert!(llm.requests().is_empty());
    }
}

#[test]
fn sigterm_sets_the_exit_code() {
    let llm = ScriptedLlm::new([Answer::black_hole()]);
    let (child, _folder) = llm.ask("ollama", &["x"]).start();
    llm.asked(1);
    fakemcp::send_signal("-TERM", child.id());
    let done = RunOutput::from(child.wait_with_output().unwrap());
    assert_eq!((done.stdout.as_str(), done.code), ("", Some(143)));
}

#[test]
fn a_turn_that_takes_too_long_ends() {
    let llm = ScriptedLlm::new([Answer::black_hole()]);
    let done = llm.ask("ollama", &["--timeout", "300ms", "x"]).done();
    assert_eq!((done.stdout.as_str(), done.code), ("", Some(1)), "{done:?}");
    for part in ["ollama did not", "to wait longer, use --timeout"] {
        assert!(done.stderr.contains(part), "{done:?}");
    }
}

#[test]
fn an_empty_reply_is_a_failure() {
    let llm = ScriptedLlm::scripted(Script::always(Answer::empty()));
    let done = llm.ask("ollama", &["x"]).done();
    assert_eq!((done.stdout.as_str(), done.code), ("", Some(1)), "{done:?}");
    assert!(
        done.stderr.starts_with("error: The model gave no answer"),
        "{done:?}"
    );
}
